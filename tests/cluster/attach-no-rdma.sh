#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# attach-no-rdma.sh PROGRAM attach|restore ORDER...: PROGRAM, which is drarun-attach, with the orders but for their RDMA devices:
# those of a captured machine are in no kernel here. Where there is nothing else, nothing is to be done.
set -eu
umask 077
program=$1 verb=$2
shift 2
here=/run/drarun/no-rdma
mkdir -p "$here"
for order; do
    shift
    grep -q '"host":' "$order" || continue
    sed 's/"rdma":"[^"]*",//' "$order" >"$here/.$$"
    mv "$here/.$$" "$here/${order##*/}"
    set -- "$@" "$here/${order##*/}"
done
[ $# -gt 0 ] || exit 0
exec "$program" "$verb" "$@"
