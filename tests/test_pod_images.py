# SPDX-License-Identifier: Apache-2.0
"""The agent as the first process of containers: no shell, nothing writable, users without a name."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.build import SANITIZE, patience

pytestmark = [
    pytest.mark.skipif(bool(SANITIZE), reason="sanitizer build: linked dynamically"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for mounts and chroot"),
]

# $1: the root, $2: the user. /dev has what containers have; /dev/shm only where the root has it.
CONTAINER = """
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/dev"
for node in null zero urandom; do touch "$1/dev/$node"; mount --bind /dev/$node "$1/dev/$node"; done
case "$3" in *shm*) mkdir "$1/dev/shm"; mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" ;; esac
mount -o remount,ro "$1/dev"
case "$3" in *rw*) ;; *) mount -o remount,ro,bind "$1" ;; esac
root=$1 user=$2
shift 3
exec chroot --userspec="$user" --groups= "$root" "$@"
"""


@pytest.fixture
def image(build, tmp_path):
    """image(): the root of an image that holds our agent, a static busybox as /busybox, and nothing else."""
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("no busybox")

    def make(*folders):
        root = tmp_path / "image"
        for folder in ("proc", "dev", ".drarun/bin", *folders):
            (root / folder).mkdir(parents=True)
        shutil.copy(build / "bin" / "drarun-worker", root / ".drarun" / "bin")
        shutil.copy(busybox, root / "busybox")
        return root

    return make


def container(root, user="4711:4711", options="shm"):
    return {"under": ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINER,
                      "sh", root, user, options],
            "program": "/.drarun/bin/drarun-worker"}


def first_process(job):
    """The agent's own pid, seen from here: the child of unshare."""
    task = Path(f"/proc/{job.pid}/task/{job.pid}/children")
    return int(task.read_text().split()[0])


def test_distroless(drarun, image, pod):
    """No shell, no /tmp, nothing writable but /dev/shm, a user that /etc/passwd does not know."""
    some = pod(**container(image()))
    result = drarun(*some.options, "-n", 2, "/busybox", "env").ok()
    assert sorted(line for line in result.out.splitlines() if line.startswith("RANK=")) == ["RANK=0", "RANK=1"]
    assert some.key not in result.out and result.err == ""
    assert some.agent.finish(20).rc == 0


def test_session_in_shared_memory(image, pod):
    caller = pod(**container(image("tmp"))).call()
    assert caller.line().startswith("hello")
    document = caller.inspection()
    assert document["session"]["dir"] == "/dev/shm" and document["limits"]["uid"] == 4711
    assert document["limits"]["shmInMemory"] and not document["limits"]["ipcLock"]


def test_nowhere_to_write(drarun, image, pod):
    some = pod(**container(image("tmp"), options=""))
    result = drarun(*some.options, "-n", 1, "/busybox", "true")
    assert result.rc == 70
    assert "no place for the session directory (/tmp/dt-" in result.err  # TMPDIR, which is not there
    assert ("/tmp: Read-only file system, /dev/shm: No such file or directory, /run: No such file or "
            "directory): mount an emptyDir at /tmp") in result.err
    some.agent.finish(20)


@pytest.mark.parametrize("user", ["0:0", "4711:4711"])
def test_pmix_in_a_bare_image(drarun, image, pod, build, user):
    """Its files and sockets find a place, too, in two containers."""
    root = image()
    shutil.copy(build / "tests" / "programs" / "pmix_client_inside", root / "client")
    libraries = subprocess.run(["ldd", root / "client"], capture_output=True, text=True).stdout
    for word in libraries.split():
        if word.startswith("/"):
            (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, root / word[1:])
    pods = [pod(**container(root, user)) for _ in range(2)]
    addresses = ",".join(each.address for each in pods)
    drarun("--agents", addresses, "--key-file", pods[0].key_file, "-n", 4, "/client", "modex",
           timeout=40).ok()
    assert [each.agent.finish(20).rc for each in pods] == [0, 0]


def test_ranks_cannot_reach_the_key(drarun, image, pod):
    """By the same user: neither the environment nor the memory of the agent and of its guard."""
    some = pod(**container(image()))
    script = ("for p in /proc/[0-9]*; do for f in environ mem; do "
              "[ $p = /proc/$$ ] || /busybox cat $p/$f 2>&1 | /busybox head -c 100000; done; done; "
              "/busybox env; echo looked at $(/busybox ls -d /proc/[0-9]* | /busybox wc -l)")
    result = drarun(*some.options, "-n", 1, "/busybox", "sh", "-c", script).ok()
    assert some.key not in result.out and some.key[:16] not in result.out
    denied = [line for line in result.out.splitlines() if "Permission denied" in line]
    assert any("/proc/1/environ" in line for line in denied) and any("/proc/1/mem" in line for line in denied)
    assert some.agent.finish(20).rc == 0


def test_orphans_are_reaped(drarun, image, pod):
    some = pod(**container(image()))
    job = drarun.start(*some.options, "-n", 1, "/busybox", "sh", "-c",
                       "for i in 1 2 3; do (/busybox sh -c '/busybox true & :' &) ; done; echo up; exec /busybox sleep 1000")
    assert job.process.stdout.readline() == "up\n", job.process.stderr.read()
    inner = first_process(some.agent)
    deadline = time.monotonic() + patience()
    while True:
        states = subprocess.run(["ps", "-o", "stat=", "--ppid", str(inner)], capture_output=True,
                                text=True).stdout.split()
        if not any(state.startswith("Z") for state in states):
            break
        assert time.monotonic() < deadline, states
        time.sleep(0.02)
    job.signal(signal.SIGTERM)
    assert job.finish(20).rc == 143
    some.agent.finish(20)


def test_sigterm_as_first_process(image, pod):
    """The kernel drops signals that a first process has no handler for: ours is there in time."""
    some = pod(**container(image()))
    os.kill(first_process(some.agent), signal.SIGTERM)
    some.agent.finish(10)
