# SPDX-License-Identifier: Apache-2.0
"""measured.py FILE COMMAND...: runs a test program and writes to FILE, as JSON, its wall time and the CPU time of all
processes that it started and that ended before it did, those that it left to init included, and the seconds that it added to
the file DRARUN_TEST_SPENT, a line each: of processes for which the kernel keeps no account. Ends as the program did."""
import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SPENT = "DRARUN_TEST_SPENT"
LIBC = ctypes.CDLL(None, use_errno=True)


def start(command):
    """Its pid. It is killed when this process is, so that ctest's timeout ends it too."""
    pid = os.fork()
    if pid == 0:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"measured.py: {command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    return pid


def reap(program):
    """The wait status of program. Orphans among its descendants come to this process, which must not keep them as zombies."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            break
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    return status


def main(path, *command):
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    told = path.with_suffix(".spent")
    told.write_text("")
    os.environ[SPENT] = str(told)
    began = time.monotonic()
    status = reap(start(command))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    more = sum(map(float, told.read_text().split()))
    told.unlink()
    path.write_text(json.dumps({"wall_s": round(time.monotonic() - began, 3),
                                "cpu_s": round(used.ru_utime + used.ru_stime + more, 3)}) + "\n")
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
