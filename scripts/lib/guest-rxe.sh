# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# rdma_rxe of a guest's kernel with tests/vm/rxe-netns.patch, built out of tree from Debian's packages of that very
# version. Sourced by fetch-vm, after foreign-apt.sh, with the private root open.
# shellcheck disable=SC2154 # $out, $work and $source are fetch-vm's

# guest_rxe_sources VERSION: sets $headers and $rxe, the module's patched source
guest_rxe_sources() {
    local version=$1 root=$work/headers
    headers=$root/usr/src/linux-headers-$version
    rxe=$work/rxe
    foreign_unpack "$root" "linux-headers-$version" "linux-headers-${version%-amd64}-common" "linux-kbuild-${version%-amd64}" \
        "linux-source-$(cut -d. -f1,2 <<<"$version")=$(foreign_version "linux-image-$version")"
    # it names its other half absolutely
    sed -i "s#/usr/src/#$root&#" "$headers/Makefile"
    xz -dcT0 "$root"/usr/src/linux-source-*.tar.xz |
        tar -x -C "$work" --wildcards --strip-components=4 '*/drivers/infiniband/sw/rxe/*'
    patch -s -d "$rxe" -p1 <"$source/rxe-netns.patch"
}

# guest_rxe VERSION TO: makes the module's file
guest_rxe() {
    local program libraries=$out/qemu/usr/lib/x86_64-linux-gnu
    guest_rxe_sources "$1"
    # these want that suite's C library
    for program in "$headers"/{tools/objtool/objtool.real-x86,scripts/mod/modpost.real-lsb-64}; do
        mv "$program" "$program.there"
        printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$libraries/ld-linux-x86-64.so.2" "$libraries" "$program.there" >"$program"
        chmod 755 "$program"
    done
    # shellcheck disable=SC2016 # make expands it
    sed -i 's/obj-$(CONFIG_RDMA_RXE)/obj-m/' "$rxe/Makefile"
    # what this machine's compiler has not, the kernel's has
    make -s -j"$(nproc)" -C "$headers" M="$rxe" CC=gcc CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= modules
    strip -g "$rxe/rdma_rxe.ko"
    install -D -m 644 "$rxe/rdma_rxe.ko" "$2"
}
