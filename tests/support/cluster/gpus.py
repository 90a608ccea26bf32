# SPDX-License-Identifier: Apache-2.0
"""GPUs of a captured machine on a real node: its sysfs for discovery, clones of /dev/null for their device nodes, text
files for the driver's libraries and programs."""
import json
import os
import stat

from ..build import SOURCE
from ..sysfs_tree import make_tree

FIXTURE = SOURCE / "tests/data/fixtures/a4-highgpu-8g.json"
VERSION = "570.133.20"  # of the driver
AS_HOST = 'mount --rbind "$0/sys" /sys && mount --bind "$0/proc/driver" /proc/driver && exec "$@"'
WITH_NICS = ('mkdir -p "$0/sys/devices/virtual" "$0/sys/class/net" && mount --bind /sys/class/net "$0/sys/class/net" && '
             'mount --bind /sys/devices/virtual "$0/sys/devices/virtual" && ') + AS_HOST


class Gpus:
    """root: the driver's root of the machine, made below folder. count: of its GPUs."""

    count = 8

    def __init__(self, folder):
        self.root = make_tree(json.loads(FIXTURE.read_text()), folder)
        for name in [f"nvidia{k}" for k in range(self.count)] + ["nvidiactl", "nvidia-uvm"]:
            (self.root / "dev" / name).unlink(missing_ok=True)
            os.mknod(self.root / "dev" / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        libraries = self.root / "usr/lib64"
        libraries.mkdir(parents=True)
        for name in ("libcuda", "libnvidia-ml"):
            (libraries / f"{name}.so.{VERSION}").write_text(f"{name} of the host\n")
            (libraries / f"{name}.so.1").symlink_to(f"{name}.so.{VERSION}")
        smi = self.root / "usr/bin/nvidia-smi"
        smi.parent.mkdir(parents=True)
        smi.write_text("#!/bin/sh\necho smi of the host\n")
        smi.chmod(0o755)

    def under(self, nics=False):
        """Words before a plugin's: the captured machine is the host's, as far as it sees; with nics, those of the node
        are there instead of the captured ones."""
        return ["unshare", "-m", "sh", "-c", WITH_NICS if nics else AS_HOST, self.root]
