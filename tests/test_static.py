# SPDX-License-Identifier: Apache-2.0
"""The agent is one file without needs: it runs in any root, and the launcher loads next to nothing."""
import os
import platform
import shutil
import subprocess

import pytest

from support.build import SANITIZE

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="sanitizer build: linked dynamically")


def roots(source):
    """{name: path} of the root file systems that scripts/fetch-roots has made."""
    run = subprocess.run([source / "scripts" / "fetch-roots"], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-roots: {run.stderr.strip()[-300:]}")
    found = {}
    for line in run.stdout.split():
        for name in ("busybox", "bookworm", "trixie", "sid"):
            if name in os.path.basename(line):
                found[name] = line
    return found


@pytest.mark.parametrize("program", ["drarun", "drarun-worker"])
def test_no_loader_and_no_library(build, program):
    out = subprocess.run(["readelf", "-ld", build / "bin" / program], capture_output=True, text=True,
                         check=True).stdout
    assert "INTERP" not in out and "NEEDED" not in out


def test_the_agent_is_small(build, tmp_path):
    subprocess.run(["strip", "-o", tmp_path / "worker", build / "bin" / "drarun-worker"], check=True)
    assert (tmp_path / "worker").stat().st_size < 9 << 20


@pytest.mark.parametrize("root", ["busybox", "bookworm", "trixie", "sid"])
def test_a_job_in_another_root(drarun, build, source, tmp_path, root):
    if os.geteuid() != 0:
        pytest.skip("needs root for chroot and mount")
    found = roots(source)
    if root not in found:
        pytest.skip(f"scripts/fetch-roots makes no {root} root here")
    inside = tmp_path / "root"
    shutil.copytree(found[root], inside, symlinks=True)
    (inside / "opt").mkdir(exist_ok=True)
    for program in ("drarun", "drarun-worker"):
        shutil.copy(build / "bin" / program, inside / "opt")
    for folder in ("proc", "sys", "dev", "tmp"):
        (inside / folder).mkdir(exist_ok=True)
    script = " && ".join([f"mount -t proc proc {inside}/proc", f"mount --rbind /sys {inside}/sys",
                          f"mount --rbind /dev {inside}/dev",
                          f"exec env TMPDIR=/tmp chroot {inside} /opt/drarun -n 3 "
                          "/bin/sh -c 'echo rank $RANK of $PMIX_NAMESPACE'"])
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True,
                         timeout=60, env={"PATH": os.environ["PATH"]})
    assert run.returncode == 0, run.stderr
    lines = sorted(run.stdout.splitlines())
    assert [line.split()[1] for line in lines] == ["0", "1", "2"]
    assert all("drarun." in line for line in lines)
    assert list((inside / "tmp").iterdir()) == []


def test_the_local_job_loads_no_library(drarun):
    """libcurl alone would cost 7 ms: what a local job does not need it must not load."""
    job = drarun.start("-n", 1, "sh", "-c", "sleep 0.5; echo ready; sleep 1")
    assert job.process.stdout.readline() == "ready\n" # the topology has been read by then
    names = set()
    for pid, line in job.processes().items():
        if "drarun" not in line.split(" ")[0]:
            continue
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            names |= {os.path.basename(m.split()[-1]) for m in maps if "/" in m}
    job.finish().ok()
    assert names and not [name for name in names if ".so" in name], names


def test_arm64(source, tmp_path):
    """Both programs are built for arm64 and run under user-mode emulation."""
    emulator = shutil.which("qemu-aarch64-static")
    if platform.machine() == "aarch64":
        pytest.skip("this machine is arm64: every other test runs there")
    if not emulator or not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("no cross compiler or no emulator; run scripts/setup --test")
    folder = source / "build-arm64"
    for command in (["cmake", "--preset", "arm64"],
                    ["cmake", "--build", folder, "--target", "drarun", "drarun-worker"]):
        run = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=240)
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    for program in ("drarun", "drarun-worker"):
        run = subprocess.run([emulator, folder / "bin" / program, "--version"], capture_output=True,
                             text=True, timeout=30)
        assert run.returncode == 0 and "0.1.0" in run.stdout, run.stderr
    # the launcher starts the agent by name, which the kernel cannot run: a script stands between
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\nexec {emulator} {folder}/bin/drarun-worker \"$@\"\n")
    worker.chmod(0o755)
    run = subprocess.run([emulator, folder / "bin" / "drarun", "-n", "2", "/bin/sh", "-c",
                          "echo rank $RANK"], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "DRARUN_WORKER": str(worker), "TMPDIR": str(tmp_path)})
    # launcher and agent have met and the agent has looked at the program, which is not for "its" machine;
    # one that is could not be started by this machine's kernel
    assert run.returncode == 126, run.stderr
    assert "it is a program for x86_64 (ELF machine 62), this is aarch64" in run.stderr
