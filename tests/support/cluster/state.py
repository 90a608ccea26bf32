# SPDX-License-Identifier: Apache-2.0
"""The directory of one running cluster, and its removal, also of those whose pytest was killed.

Everything that a cluster starts ends with this process (PR_SET_PDEATHSIG; a node's process 1 takes its
pid namespace along). What can stay behind after SIGKILL is the directory and the cgroups that its file
"cgroups" lists. The directory is locked while its owner lives: one that can be locked is removed by the
next start."""
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

PARENT = Path("/tmp")
PREFIX = "dt-cluster-"
REMOVE_S = 20


class State:
    """path: the directory. note_cgroup(path) has it removed with the directory."""

    def __init__(self):
        clean_stale()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PARENT))
        self.path.chmod(0o755)  # pods that run as other users reach what is mounted from here
        self.lock = _lock(self.path)

    def note_cgroup(self, path):
        with open(self.path / "cgroups", "a") as file:
            file.write(f"{path}\n")

    def close(self):
        """After the end of all processes."""
        _remove(self.path)
        os.close(self.lock)


def _lock(path):
    """The descriptor that holds the lock, or None where another one does."""
    fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def remove_left(path):
    """Removes what a cluster left whose process was killed. False: it lives, or another run is at it."""
    try:
        lock = _lock(path)
    except OSError:
        return False  # another run was faster
    if lock is None:
        return False
    try:
        _remove(path, kill=True)
    finally:
        os.close(lock)
    return True


def clean_stale():
    """Removes what clusters left whose process was killed."""
    for path in PARENT.glob(PREFIX + "*"):
        try:
            if path.stat().st_uid == os.getuid() and time.time() - path.stat().st_mtime > 2:  # else it may just be being made
                remove_left(path)
        except OSError as error:  # a dead cluster must not fail a new one
            print(f"what a cluster left at {path} stays: {error}", file=sys.stderr)


def _remove(path, kill=False):
    """kill: ends processes that are left in its cgroups."""
    try:
        cgroups = (path / "cgroups").read_text().split()
    except FileNotFoundError:
        cgroups = []
    for cgroup in cgroups:
        remove_cgroup(Path(cgroup), kill)
    shutil.rmtree(path, ignore_errors=True)


def note_spent(cgroup, init):
    """Tells scripts/lib/measured.py what CPU time the processes of a cgroup have had: those that end with process 1 of their pid
    namespace, init, are in nobody's account."""
    told = os.environ.get("DRARUN_TEST_SPENT")
    if told:
        pids = {int(pid) for folder, _, _ in os.walk(cgroup) for pid in _read(Path(folder, "cgroup.procs")).split()}
        ticks = sum(map(_ticks, pids - {init}))
        with open(told, "a") as file:
            file.write(f"{ticks / os.sysconf('SC_CLK_TCK'):.2f}\n")


def _read(path):
    """"" of what has gone meanwhile."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _ticks(pid):
    """Of a process and the children that it has waited for: utime, stime, cutime and cstime of proc(5), 11 fields behind the name."""
    return sum(map(int, _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[11:15]))


def _kill_all(top):
    """The processes of a cgroup and of those below; a frozen one does not see a signal."""
    for folder, _, _ in os.walk(top):
        for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            file = Path(folder, name)
            try:
                if file.exists():
                    file.write_text(word)
            except OSError:
                pass
        try:
            for pid in Path(folder, "cgroup.procs").read_text().split():
                if int(pid) > 0:  # 0: in a pid namespace that this process does not see
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def remove_cgroup(top, kill):
    """A cgroup goes when the last process in it has gone, which takes the kernel a moment."""
    end = time.monotonic() + REMOVE_S
    while True:
        if kill:
            _kill_all(top)
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass
        if not top.exists():
            return
        if time.monotonic() > end:
            raise TimeoutError(f"{top} still has processes {REMOVE_S} s after their end: "
                               f"{(top / 'cgroup.procs').read_text().split()}")
        time.sleep(0.02)
