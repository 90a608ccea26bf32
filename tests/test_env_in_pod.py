# SPDX-License-Identifier: Apache-2.0
"""`drarun env` where it runs: in a root of its own, with the devices of a captured machine and a vendor's
script in the image."""
import json
import os
import shutil
import subprocess
import time

import pytest

from support.build import patience
from support.sysfs_tree import make_tree

SCRIPT = "usr/local/gib/scripts/set_nccl_env.sh"
SETS = ["NCCL_NET=gIB", "NCCL_CROSS_NIC=0", "NCCL_IB_TC=60", "NCCL_P2P_NVL_CHUNKSIZE=262144"]


class Pod:
    """A root with a machine's /sys, /proc and /dev, a shell and drarun. Its /proc is a captured one: what
    a script leaves behind is found by the real one in test vendor_script."""

    def __init__(self, build, root, fixture):
        self.root = root
        make_tree(fixture, root)
        (root / "bin").mkdir()
        shutil.copy(build / "bin" / "drarun", root / "bin")
        (root / "usr/local/gib/scripts").mkdir(parents=True, exist_ok=True)

    def shell(self):
        shutil.copy(shutil.which("busybox"), self.root / "bin/busybox")
        for name in ("sh", "env", "sleep", "id"):
            (self.root / "bin" / name).symlink_to("busybox")
        null = self.root / "dev/null"
        if not null.exists():
            os.mknod(null, 0o020666, os.makedev(1, 3))

    def script(self, *lines):
        (self.root / SCRIPT).write_text("\n".join(["#!/bin/sh", *lines, ""]))

    def env(self, *options, variables=(), under=("chroot",)):
        program = [shutil.which(under[0]), *under[1:], self.root, "/bin/drarun"]
        return subprocess.run([*program, "env", *options], capture_output=True, text=True, timeout=patience(),
                              env=dict(variables))


@pytest.fixture
def pod(build, source, tmp_path):
    """pod("a4-highgpu-8g"): with a shell; shell=False: without."""
    def make(name, shell=True):
        if os.geteuid() != 0:
            pytest.skip("chroot needs root")
        if not shutil.which("busybox"):
            pytest.skip("no busybox; run scripts/setup --test")
        made = Pod(build, tmp_path / "root", json.loads((source / f"tests/data/fixtures/{name}.json").read_text()))
        if shell:
            made.shell()
        return made
    return make


def exported(script):
    shell = subprocess.run(["sh", "-eu"], input=script + "\nenv -0", capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"]})
    assert shell.stderr == ""
    return dict(item.split("=", 1) for item in shell.stdout.split("\0") if "=" in item)


pytestmark = pytest.mark.plain("a sanitizer's program does not start in a bare root")


def test_the_script_tells_the_machine_and_its_values(pod):
    """No claims, no labels: the vendor's script and the GPU tell the profile."""
    a4 = pod("a4-highgpu-8g")
    a4.script(*(f"export {each}" for each in SETS), "export ODD=\"one\ntwo 'three'\"",
              "export LD_LIBRARY_PATH=/usr/local/gib/lib64:$LD_LIBRARY_PATH")
    done = a4.env("--explain")
    assert done.returncode == 0, done.stderr
    assert f"gke-a4 (/{SCRIPT} with NVIDIA B200)" in done.stderr
    assert "8 PIX; 400 GB/s of 400" in done.stderr
    got = exported(done.stdout)
    for each in SETS:
        name, value = each.split("=")
        assert got[name] == value
    assert got["ODD"] == "one\ntwo 'three'"
    assert got["LD_LIBRARY_PATH"] == "/usr/local/gib/lib64:/usr/local/nvidia/lib64"
    assert "NCCL_NVLS_CHUNKSIZE" not in got and got["NCCL_SOCKET_IFNAME"] == "eth0"
    assert "NCCL_IB_TC: the script says 60, table 52; the script's is used" in done.stderr
    assert f"# vendor script: set by /{SCRIPT} in the pod; " in done.stdout
    assert a4.env("--format", "docker").stdout.count("ODD") == 1  # and says that it is left out


def test_the_user_stands_above_the_script(pod):
    a4 = pod("a4-highgpu-8g")
    a4.script("export NCCL_IB_TC=${NCCL_IB_TC:-60} NCCL_NET=gIB")
    done = a4.env(variables={"NCCL_IB_TC": "7"})
    assert exported(done.stdout)["NCCL_IB_TC"] == "7"
    assert "USER_OVERRIDES_PROFILE: NCCL_IB_TC=7 (vendor script: 60)" in done.stderr


def test_twice_is_once(pod):
    """What the script set is not the user's wish the next time, when it may say something else."""
    a4 = pod("a4-highgpu-8g")
    a4.script("export NCCL_NET=gIB NCCL_IB_TC=60 LD_LIBRARY_PATH=/x")
    once = exported(a4.env().stdout)
    a4.script("export NCCL_NET=gIB NCCL_IB_TC=61 LD_LIBRARY_PATH=/x")
    done = a4.env(variables=once)
    assert "USER" not in done.stderr and exported(done.stdout)["NCCL_IB_TC"] == "61"


@pytest.mark.parametrize("lines,says", [
    (["echo no such machine >&2", "return 3"], "ended with status 3: no such machine"),
    (["exit 0"], "before it told what it set"),
    (["if ("], "ended with status"),
    ([], "set nothing"),
])
def test_a_script_that_fails_leaves_the_table(pod, lines, says):
    a4 = pod("a4-highgpu-8g")
    a4.script(*lines)
    done = a4.env()
    assert done.returncode == 0
    line, = (line for line in done.stderr.splitlines() if "VENDOR_SCRIPT" in line)
    assert f"VENDOR_SCRIPT_NOT_USED: /{SCRIPT}: " in line and says in line
    assert exported(done.stdout)["NCCL_IB_TC"] == "52"


def test_a_script_that_hangs(pod):
    a4 = pod("a4-highgpu-8g")
    a4.script("export NCCL_IB_TC=60", "sleep 1000")
    start = time.monotonic()
    done = a4.env()
    assert time.monotonic() - start >= 5
    assert "not done after 5.0 s; killed" in done.stderr and exported(done.stdout)["NCCL_IB_TC"] == "52"


def test_no_shell(pod):
    a4 = pod("a4-highgpu-8g", shell=False)
    a4.script("export NCCL_IB_TC=60")
    done = a4.env()
    assert "the image has no /bin/sh to run it" in done.stderr
    assert exported(done.stdout)["NCCL_IB_TC"] == "52"


def test_another_trees_script_is_not_run(pod, build):
    a4 = pod("a4-highgpu-8g")
    a4.script("export NCCL_IB_TC=60", "echo >/ran")
    done = subprocess.run([build / "bin" / "drarun", "env", "--root", a4.root], capture_output=True, text=True,
                          timeout=patience())
    assert f"VENDOR_SCRIPT_NOT_USED: /{SCRIPT}: not run, since root is not this machine's own" in done.stderr
    assert exported(done.stdout)["NCCL_IB_TC"] == "52"
    assert not os.path.exists("/ran") and not (a4.root / "ran").exists()


def test_as_the_calling_user(pod):
    a4 = pod("a4-highgpu-8g")
    os.chmod(a4.root, 0o755)
    a4.script("export NCCL_NET=gIB WHO=$(id -u)")
    done = a4.env(under=("chroot", "--userspec=4711:4711"))
    assert exported(done.stdout)["WHO"] == "4711", done.stderr
