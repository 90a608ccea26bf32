# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Timed stages for scripts that people watch. Sourced.

# stage NAME COMMAND...: runs it with its output kept aside, and says how long it took; on failure
# shows the output and returns its status.
stage() {
    printf '== %-40s ' "$1"
    timed "${@:2}"
}

# stage_aside NAME COMMAND...: the same where other stages run meanwhile: prints its line whole, at its end.
stage_aside() {
    local text status=0
    text=$(timed "${@:2}") || status=$?
    printf '== %-40s %s\n' "$1" "$text"
    return "$status"
}

timed() { # COMMAND...
    local log status=0 begin=$SECONDS
    log=$(mktemp)
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

# fetch_libraries [ARCH]: those that nothing builds without and that are no packages, side by side
fetch_libraries() {
    local status=0 curl
    scripts/fetch-curl "$@" &
    curl=$!
    scripts/fetch-pmix "$@" || status=$?
    wait "$curl" || status=$?
    return "$status"
}

# build PRESET: with ccache where it is installed, which serves any clone of the same sources
build() {
    if command -v ccache >/dev/null; then
        export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
    fi
    cmake --preset "$1"
    cmake --build --preset "$1"
}
