# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Timed stages for scripts that people watch. Sourced.

# stage NAME COMMAND...: runs it with its output kept aside, and says how long it took; on failure
# shows the output and returns its status.
stage() {
    local name=$1 log status=0 begin=$SECONDS; shift
    log=$(mktemp)
    printf '== %-40s ' "$name"
    "$@" >"$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        printf '%s\n' "$(elapsed $((SECONDS - begin)))"
    else
        printf 'FAILED (%s) after %s\n' "$status" "$(elapsed $((SECONDS - begin)))"
        cat "$log"
    fi
    rm -f "$log"
    return "$status"
}

elapsed() { # SECONDS
    if [ "$1" -lt 60 ]; then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

build() { # PRESET
    cmake --preset "$1"
    cmake --build --preset "$1"
}
