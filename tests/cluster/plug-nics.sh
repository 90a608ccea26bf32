#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# plug-nics.sh NAME,MAC,MTU,ADDRESS...: makes these interfaces, each one end of a veth pair whose other end is on the bridge
# that joins all nodes; and again when one has died with the network namespace of its pod, which hardware does not.
set -u
plug()
{
    k=0
    for nic in "$@"; do
        k=$((k + 1))
        [ -e "/sys/class/net/w-nic$k" ] && continue
        IFS=, read -r name mac mtu address <<-N
		$nic
		N
        ip link add "$name" address "$mac" mtu "$mtu" type veth peer name "w-nic$k" mtu "$mtu"
        ip link set "w-nic$k" master rails up
        ip addr add "$address" dev "$name"
    done
}

plug "$@"
# on a busy machine the kernel drops news that nobody has read in time
while sleep 1; do plug "$@"; done &
ip -o monitor link | while read -r line; do
    case $line in
    Deleted*w-nic*) plug "$@" ;;
    esac
done
