# SPDX-License-Identifier: Apache-2.0
"""What a job left behind: processes that carry its token, files in its TMPDIR, shared memory."""
import contextlib
import ctypes
import fcntl
import fnmatch
import os
import signal
import subprocess
import time
from pathlib import Path

TOKEN = "DRARUN_TEST_TOKEN"
CLONE_NEWNS = 0x00020000
SHM = Path("/dev/shm")
CGROUPS = Path("/sys/fs/cgroup")

# The thread sanitizer's runtime makes this before main and removes it in the next call: a kill between them leaves it.
OF_SANITIZERS = "tsan.rodata.*"

_private_shm = False


def make_shm_private():
    """A /dev/shm for this process and its children alone, so that what is in it is ours. Needs root;
    without, shared memory is not checked."""
    global _private_shm
    libc = ctypes.CDLL(None, use_errno=True)
    if _private_shm or libc.unshare(CLONE_NEWNS) != 0:
        return
    private = ["mount", "--make-rprivate", "/"]
    tmpfs = ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(SHM)]
    _private_shm = all(subprocess.run(c, stderr=subprocess.DEVNULL).returncode == 0
                       for c in (private, tmpfs))


def run_file():
    """Held by every pytest of this user that runs."""
    return Path(f"/tmp/drarun-tests-{os.getuid()}.lock")


def _lock_fd(path):
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def note_run():
    """Until this process ends, support/sweep.py leaves things alone: those of a /tmp, and control groups, which runs share whose
    /tmp is their own."""
    for path in (run_file(), CGROUPS):
        fcntl.flock(_lock_fd(path), fcntl.LOCK_SH)


@contextlib.contextmanager
def alone(path):
    """with alone(run_file()) as alone: whether no pytest that has noted itself there runs; none starts meanwhile."""
    fd = _lock_fd(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(fd)


# {pid: when it was seen first} of processes whose environment has no token: most of the machine's, which are not read each time. The
# kernel's have none at all. One that this process starts has its environment for a moment, and none has one while it begins a program;
# after a while the number may be another process's.
_others = {}
SURE_S, KNOWN_S = 0.5, 5


def _is_other(pid, now):
    since = _others.get(pid, now)
    if now - since >= KNOWN_S:
        del _others[pid]
    return SURE_S <= now - since < KNOWN_S


def processes(token):
    """{pid: command line} of the processes whose environment has the token, None: any token; zombies have none."""
    found, now = {}, time.monotonic()
    needle = f"{TOKEN}=".encode() if token is None else f"{TOKEN}={token}\0".encode()
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or _is_other(pid, now):
            continue
        try:
            environment = _read(pid, "environ")
            if needle in environment:
                _others.pop(pid, None)
                words = _read(pid, "cmdline").split(b"\0")
                found[int(pid)] = b" ".join(words).decode(errors="replace").strip()
            elif TOKEN.encode() not in environment:
                _others.setdefault(pid, now)
        except OSError:
            continue  # it ended meanwhile, or belongs to another user
    found.pop(os.getpid(), None)
    return found


def _read(pid, name):
    """Of /proc. Without pathlib, which takes as long as the kernel does, for each process of the machine and each job."""
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill(token):
    for _ in range(100):
        left = processes(token)
        if not left:
            return
        for pid in left:
            end(pid)
        time.sleep(0.02)


def describe(token, tmp, allowed, shm_before, patience):
    """Lines that name what is left after at most `patience` seconds; none: all is well. allowed:
    patterns of names in tmp that may stay."""
    deadline = time.monotonic() + patience
    while True:
        lines = [f"process {pid}: {line}" for pid, line in processes(token).items()]
        lines += [f"file {p}" for top in sorted(tmp.iterdir())
                  if not any(fnmatch.fnmatch(top.name, pattern) for pattern in (*allowed, OF_SANITIZERS))
                  for p in below(top)]
        if _private_shm:
            lines += [f"file {SHM / name}" for name in sorted(shm_names() - shm_before)]
        if not lines or time.monotonic() > deadline:
            return lines
        time.sleep(0.02)


def below(top):
    """A file, or a directory and all in it; what goes away meanwhile is left out."""
    yield top
    for folder, folders, files in os.walk(top):  # it passes over directories that are gone
        yield from (Path(folder) / name for name in sorted(folders + files))


def shm_names():
    return set(os.listdir(SHM)) if _private_shm else set()
