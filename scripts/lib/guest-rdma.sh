# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Software RDMA of a guest's kernel, built out of tree from Debian's packages of that very version: rdma_rxe with
# tests/vm/rxe-netns.patch, and siw (iWARP), which Debian's kernel has not. Sourced by fetch-vm, after foreign-apt.sh,
# with the private root open.
# shellcheck disable=SC2154 # $out, $work and $source are fetch-vm's

# guest_rdma_sources VERSION: sets $headers and $sw, the folder of the modules' sources, patched
guest_rdma_sources() {
    local version=$1 root=$work/headers program libraries=$out/qemu/usr/lib/x86_64-linux-gnu
    headers=$root/usr/src/linux-headers-$version
    sw=$work/sw
    foreign_unpack "$root" "linux-headers-$version" "linux-headers-${version%-amd64}-common" "linux-kbuild-${version%-amd64}" \
        "linux-source-$(cut -d. -f1,2 <<<"$version")=$(foreign_version "linux-image-$version")"
    # it names its other half absolutely
    sed -i "s#/usr/src/#$root&#" "$headers/Makefile"
    xz -dcT0 "$root"/usr/src/linux-source-*.tar.xz |
        tar -x -C "$work" --wildcards --strip-components=3 '*/drivers/infiniband/sw/rxe/*' '*/drivers/infiniband/sw/siw/*'
    patch -s -d "$sw/rxe" -p1 <"$source/rxe-netns.patch"
    # these want that suite's C library
    for program in "$headers"/{tools/objtool/objtool.real-x86,scripts/mod/modpost.real-lsb-64}; do
        mv "$program" "$program.there"
        printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$libraries/ld-linux-x86-64.so.2" "$libraries" "$program.there" >"$program"
        chmod 755 "$program"
    done
}

# guest_module DRIVER MODULE TO: builds the module of $sw/DRIVER and puts it into the folder TO
guest_module() {
    # shellcheck disable=SC2016 # make expands it
    sed -i 's/obj-$(CONFIG_RDMA_[A-Z]*)/obj-m/' "$sw/$1/Makefile"
    # what this machine's compiler has not, the kernel's has
    make -s -j"$(nproc)" -C "$headers" M="$sw/$1" CC=gcc CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= modules
    strip -g "$sw/$1/$2.ko"
    install -D -m 644 "$sw/$1/$2.ko" "$3/$2.ko"
}

# guest_rdma VERSION TO: makes both modules' files in the folder TO
guest_rdma() {
    guest_rdma_sources "$1"
    guest_module rxe rdma_rxe "$2"
    guest_module siw siw "$2"
}
