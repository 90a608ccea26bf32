#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# node-init.sh DIRECTORY NAME ADDRESS/BITS GATEWAY: becomes process 1 of a node: private mounts and network,
# then containerd. All that names a default path there (/run, /var/lib/kubelet, /run/cdi, /run/nri)
# means this node's own. tests/support/cluster/node.py starts it in new namespaces and makes eth0.
set -euo pipefail
d=$1 name=$2 address=$3 gateway=$4
mount --make-rprivate /
hostname "$name"
until [ -e "$d/go" ]; do sleep 0.02; done # eth0 is there
ip link set lo up
flags=()
if [[ $address == *:* ]]; then
    flags=(nodad)
    echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
fi
ip addr add "$address" dev eth0 "${flags[@]}"
ip link set eth0 up
ip route add default via "$gateway"
ip link add rails type bridge forward_delay 0 # far ends of NICs
ip link set rail0 master rails up
ip link set rails up
echo 1 >/proc/sys/net/ipv4/ip_forward

# The machine's sysctls are not this node's to set, but for its network's. The kubelet insists on six
# values: it is shown them, in files laid over.
while read -r key value; do
    mkdir -p "$d/sysctl/${key%/*}"
    echo "$value" >"$d/sysctl/$key"
    mount --bind "$d/sysctl/$key" "/proc/sys/$key"
done <<-S
	vm/overcommit_memory 1
	vm/panic_on_oom 0
	kernel/panic 10
	kernel/panic_on_oops 1
	kernel/keys/root_maxkeys 1000000
	kernel/keys/root_maxbytes 25000000
S
mount --rbind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind -o rw /proc/sys/net /proc/sys/net
mount -o remount,bind,rw /proc/sys/net

mount -t sysfs sysfs /sys
if grep -q '^[1-9]' /proc/self/cgroup; then # cgroup v1, each hierarchy as this namespace sees it
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    while IFS=: read -r _ controller _; do
        where=/sys/fs/cgroup/${controller#name=}
        if [ -z "$controller" ]; then
            mkdir /sys/fs/cgroup/unified
            mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
        else
            mkdir "$where"
            mount -t cgroup -o "$controller" cgroup "$where"
        fi
    done </proc/self/cgroup
else
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir /sys/fs/cgroup/init
    echo $$ >/sys/fs/cgroup/init/cgroup.procs
    read -ra controllers </sys/fs/cgroup/cgroup.controllers
    for controller in "${controllers[@]}"; do
        echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
    done
fi
mount -t tmpfs -o mode=755 tmpfs /run
mount --make-shared /run # as a machine's is: pods see what is mounted there later
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir -p /run/cdi /run/lock /var/lib/kubelet /var/lib/containerd /var/lib/cni
mount --bind "$d/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount --bind "$d/containerd" /var/lib/containerd
mount --bind "$d/log" /var/log
exec "$d/bin/pause"
