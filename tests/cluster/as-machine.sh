#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# as-machine.sh TREE PROGRAM...: the program sees a captured machine's sysfs, driver's procfs and device nodes in place of
# this one's. In a mount namespace of its own, which tests/support/cluster/machines.py makes.
set -eu
tree=$1
shift
mount --make-rslave /
mount --bind "$tree/sys" /sys
mount --bind "$tree/proc/driver" /proc/driver
mount --bind "$tree/dev" /dev
exec "$@"
