# SPDX-License-Identifier: Apache-2.0
"""Every system call that launcher, agent or guard makes fails in turn, as on a machine that runs out of
memory, descriptors or processes: the job ends soon, either whole or with an error in words, and leaves
nothing behind. strace makes the calls fail."""
import shutil
from collections import Counter

import pytest

from support.timed import and_timed

# what a kernel under pressure answers
FAULTS = {
    "brk,mmap": "ENOMEM",
    "openat": "EMFILE",
    "socketpair,socket": "ENFILE",
    "pipe2,eventfd2,epoll_create1,fcntl": "EMFILE",
    "epoll_ctl": "ENOMEM",
    "clone,clone3,fork,vfork": "EAGAIN",
    "mkdir,mkdirat": "ENOSPC",
    "listen,bind,accept4": "ENOBUFS",
    "sched_getaffinity,sched_setaffinity,setpgid,setsid,prctl": "EPERM",
    "sendmsg,writev,sendto": "ENOBUFS",
}
# of each call in each process; so many fail one after another in jobs of their own
TURNS = 30
# calls of libc before main, whose failure kills without a word
LIBC = 3
# not over agents: the loader's own mmap kills without a word, a lost epoll_ctl ends by deadlines of 30 s, and TLS
# sends with write(2), which error messages need too
LOCAL_ONLY = ("brk,mmap", "epoll_ctl", "sendmsg,writev,sendto")
CASES = [(*fault, ("-n", 2)) for fault in FAULTS.items()]
CASES += [(*fault, ("--workers", 2, "-n", 2)) for fault in FAULTS.items() if fault[0] not in LOCAL_ONLY]


def strace(calls, error, turn, log):
    """-D: strace is the grandchild, so that the job has our process for its parent as always."""
    return ("strace", "-D", "-f", "-qq", "-o", log, "-e", "signal=none", "-e", f"trace={calls}",
            "-e", f"inject={calls}:error={error}:when={turn}")


@pytest.mark.plain("strace and sanitizers slow each other down, and sanitizers die of a failed mmap")
@pytest.mark.parametrize("calls,error,where", CASES, ids=[f"{calls.split(',')[0]}-{len(where)}" for calls, _, where in CASES])
@and_timed
def test_each_call_fails_in_turn(drarun, calls, error, where, tmp_path, timed):
    agents = where[0] == "--workers"
    if not shutil.which("strace"):
        pytest.skip("no strace: scripts/setup --test")
    ends = Counter()
    for turn in range(1, TURNS // (3 if agents else 1) + 1):
        result = drarun(*where, "/bin/echo", "hello", under=strace(calls, error, turn, tmp_path / f"{turn}"))
        assert not timed or result.seconds < 10, (turn, result)
        if result.rc == 0:
            assert result.out == "hello\n" * 2, (turn, result)
        elif turn > LIBC:
            assert result.err, (turn, result)
        ends[result.rc] += 1
    assert len(ends) >= 1
    assert any("(INJECTED)" in path.read_text(errors="replace") for path in tmp_path.iterdir()), "nothing failed"
