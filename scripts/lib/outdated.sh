#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# outdated.sh: prints "PACKAGE VERSION NEWEST" for each package of this machine that Debian's archive has in a newer version today.
# Reads package lists of its own, whatever the age of the machine's; needs no right to install.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
. "$here/foreign-apt.sh"
work='' # work_dir sets it

suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
arch=$(dpkg --print-architecture)
work_dir
foreign_apt_open "$suite" "$arch"
cp /var/lib/dpkg/status "$work/apt-$suite-$arch/status" # opened as that of a machine without packages
foreign_apt apt-get -s upgrade | sed -nE 's/^Inst ([^ ]+) \[([^]]+)\] \(([^ ]+) .*/\1 \2 \3/p'
