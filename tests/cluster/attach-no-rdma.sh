#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# attach-no-rdma.sh PROGRAM attach|restore ORDER: PROGRAM, which is drarun-attach, with the order but for its RDMA device:
# those of a captured machine are in no kernel here. Where there is nothing else, nothing is to be done.
set -eu
umask 077
program=$1 verb=$2 order=$3
grep -q '"host":' "$order" || exit 0
here=/run/drarun/no-rdma
mkdir -p "$here"
sed 's/"rdma":"[^"]*",//' "$order" >"$here/.$$"
mv "$here/.$$" "$here/${order##*/}"
exec "$program" "$verb" "$here/${order##*/}"
