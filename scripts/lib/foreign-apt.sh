# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Debian packages of another suite or architecture, unpacked without being installed. Sourced.
#
# The private apt root reads its own source list and keeps its own state; the machine's settings
# (proxy, credentials, keyring) stay in force and apt checks the archive's signature as usual.

cache_dir() { printf '%s\n' "${DRARUN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/drarun}"; }

die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# plain_cache: for libraries that are built there: configure refuses a folder with a blank in its path, and compilers divide options at it
plain_cache() {
    [[ $(cache_dir) != *[[:space:]]* ]] || die "libraries cannot be built in $(cache_dir): its path has a blank; set DRARUN_CACHE to a folder without one"
}

# work_dir: a fresh directory beside the results, so that a rename publishes them; removed on exit.
# Sets $work (a subshell's trap would remove it at once).
work_dir() {
    mkdir -p "$(cache_dir)"
    work=$(mktemp -d "$(cache_dir)/.tmp.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
}

# publish FROM TO: rename; when another run was faster, its result is as good
publish() {
    mv -T "$1" "$2" 2>/dev/null || [ -d "$2" ] || die "cannot move the result to $2"
}

# one_at_a_time NAME: two runs for the same result wait for each other
one_at_a_time() {
    mkdir -p "$(cache_dir)"
    exec 9>"$(cache_dir)/.lock.$1"
    flock -w 900 9 || die "another run has held $(cache_dir)/.lock.$1 for 15 minutes"
}

# sources SUITE ARCH: one-line sources for the suite and, where this machine has one, its security
# archive. The addresses are those under which this machine's apt finds its own release; of a machine
# with another distribution, Debian's own.
sources() {
    local suite=$1 arch=$2 keyring=/usr/share/keyrings/debian-archive-keyring.gpg codename
    [ -e "$keyring" ] || die "no $keyring; install debian-archive-keyring"
    if ! grep -qx 'ID=debian' /etc/os-release; then
        printf 'deb [arch=%s signed-by=%s] http://deb.debian.org/%s main\n' "$arch" "$keyring" "debian $suite"
        [ "$suite" = sid ] || printf 'deb [arch=%s signed-by=%s] http://deb.debian.org/%s main\n' "$arch" "$keyring" "debian-security $suite-security"
        return
    fi
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # shellcheck disable=SC2016 # apt expands these
    apt-get indextargets --no-release-info --format '$(CREATED_BY) $(COMPONENT) $(RELEASE) $(REPO_URI)' |
        awk -v own="$codename" -v suite="$suite" -v options="[arch=$arch signed-by=$keyring]" '
            $1 != "Packages" || $2 != "main" { next }
            !main && ($3 == own || $3 ~ /^(old)?stable$|^testing$|^unstable$|^sid$/) { main = $4 }
            !sec && $3 ~ /^[a-z]+-security$/ { sec = $4 }
            END {
                if (!main) exit 1
                print "deb", options, main, suite, "main"
                if (sec && suite != "sid") print "deb", options, sec, suite "-security", "main"
            }' || die "apt on this machine has no Debian source for '$codename', from which the archive's address is taken"
}

# foreign_apt_open SUITE ARCH [TYPE]: the private root, with fresh lists, under $work; then use foreign_apt.
# TYPE: deb (default) or deb-src
foreign_apt_open() {
    local suite=$1 arch=$2 type=${3:-deb} d=$work/apt-$1-$2
    mkdir -p "$d"/{state/lists/partial,cache/archives/partial}
    : >"$d/status"
    sources "$suite" "$arch" | sed "s/^deb /$type /" >"$d/sources.list"
    cat >"$d/apt.conf" <<EOF
Dir::Etc::SourceList "$d/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$d/state";
Dir::State::status "$d/status";
Dir::Cache "$d/cache";
APT::Architecture "$arch";
#clear APT::Architectures;
APT::Architectures { "$arch"; };
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Acquire::Languages "none";
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
EOF
    foreign_apt_conf=$d/apt.conf
    foreign_apt apt-get update || die "apt could not read the package list of Debian $suite ($arch); its reason is above"
}

# -c is read after the machine's own configuration, APT_CONFIG would be before
foreign_apt() { local tool=$1; shift; "$tool" -qq -c "$foreign_apt_conf" "$@"; }

# foreign_version PACKAGE: the newest version in the suite, empty if none
foreign_version() {
    foreign_apt apt-cache show --no-all-versions "$1" 2>/dev/null | awk '/^Version:/ { print $2; exit }'
}

# foreign_unpack DEST PACKAGE...: exactly these packages, no dependencies
foreign_unpack() {
    local dest=$1 d; shift
    local debs; debs=$(mktemp -d "$work/debs.XXXXXX")
    (cd "$debs" && foreign_apt apt-get download "$@") || die "apt could not download: $*"
    mkdir -p "$dest"
    for d in "$debs"/*.deb; do
        # not dpkg-deb -x, which would replace a merged root's links such as lib
        dpkg-deb --fsys-tarfile "$d" | tar -C "$dest" -xp --keep-directory-symlink || die "cannot unpack ${d##*/}"
    done
    (cd "$debs" && ls) >>"$dest/.packages"
    rm -rf "$debs"
}

# foreign_closure PACKAGE...: these and all that they depend on, names only
foreign_closure() {
    foreign_apt apt-get install -s -q=1 --no-install-recommends "$@" |
        awk '/^Inst/ { sub(/:.*/, "", $2); print $2 }' | sort -u
}
