# SPDX-License-Identifier: Apache-2.0
"""Starts our programs with a deadline and looks at what they leave behind."""
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from . import leftovers, sanitizer
from .build import BUILD, patience

# What an outer launcher, Python, user or login sets must not reach a job under test: in a login's directory the names that ranks publish
# meet those of all of the user's jobs.
DROPPED = ("OMPI_", "PMIX_", "PMI_", "PET_", "DRARUN_", "NCCL_", "UCX_", "FI_", "I_MPI_", "MPICH_", "XDG_RUNTIME_DIR")
UNREAD = ["bash", "-c", 'exec 3> >(exec <&-); wait $!; exec "$@" 2>&3', "bash"]  # before a program: the reader of its stderr is gone
PATIENCE = 15  # seconds after the launcher's end in which everything else must have gone


class Result:
    """rc: exit status, -N for signal N. out, err: text, or bytes as asked. seconds: how long."""

    def __init__(self, argv, rc, out, err, seconds):
        self.argv, self.rc, self.out, self.err, self.seconds = argv, rc, out, err, seconds

    def __repr__(self):
        def shown(text):
            return text if len(text) < 20000 else text[:10000] + type(text)() + text[-10000:]
        return (f"$ {shlex.join(self.argv)}\nstatus {self.rc} after {self.seconds:.2f} s\n"
                f"--- stdout\n{shown(self.out)}\n--- stderr\n{shown(self.err)}")

    def ok(self):
        """This result, having succeeded."""
        assert self.rc == 0, repr(self)
        return self


class Job:
    """A started program. finish() waits for it; a test that does not has it killed."""

    def __init__(self, argv, env, cwd, stdin, text, under):
        self.argv = [str(word) for word in argv]
        self.text = text
        self.token = uuid.uuid4().hex
        self.closed = False
        self.tmp = Path(tempfile.mkdtemp(prefix="dt-", dir="/tmp"))  # short: holds sockets
        self.reports = Path(tempfile.mkdtemp(prefix="dt-report-", dir="/tmp"))
        self.shm = leftovers.shm_names()
        full = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED)}
        full.update(sanitizer.environment(self.reports))
        full.update({"TMPDIR": str(self.tmp), leftovers.TOKEN: self.token, "LC_ALL": "C.UTF-8"})
        full.update({k: str(v) for k, v in (env or {}).items()})
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [*under, *self.argv], env=full, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=text, errors="replace" if text else None,
            start_new_session=True)

    @property
    def pid(self):
        return self.process.pid

    def signal(self, signo):
        self.process.send_signal(signo)

    def processes(self):
        """{pid: command line} of everything that runs for this job, the launcher included."""
        return leftovers.processes(self.token)

    def result(self, out, err):
        empty = "" if self.text else b""
        return Result(self.argv, self.process.returncode, out or empty, err or empty,
                      time.monotonic() - self.started)

    def finish(self, timeout=60, input=None, clean=True, leaves=()):
        """Waits at most patience(timeout) seconds and returns the Result. clean: fail when processes or files are left. leaves: patterns
        of what the ranks themselves leave in TMPDIR."""
        limit = patience(timeout)
        then = None
        try:
            out, err = self.process.communicate(input, timeout=limit)
        except subprocess.TimeoutExpired:
            then = "\n".join(f"  {pid} {line}" for pid, line in self.processes().items())
            leftovers.kill(self.token)
            out, err = self.process.communicate()
        result = self.result(out, err)
        if then is not None:
            pytest.fail(f"no end after {limit} s; processes then:\n{then}\n{result!r}",
                        pytrace=False)
        left = (leftovers.describe(self.token, self.tmp, (*leaves, *sanitizer.LEAVES), self.shm, patience(PATIENCE))
                if clean else [])
        report = sanitizer.reports(self.reports)
        self.close(gone=clean and not left)
        if report:
            pytest.fail(f"sanitizer report:\n{report}\n{result!r}", pytrace=False)
        if left:
            pytest.fail("left behind:\n  " + "\n  ".join(left) + f"\n{result!r}", pytrace=False)
        return result

    def close(self, gone=False):
        """gone: no process is left, so none has to be looked for."""
        if self.closed:
            return
        self.closed = True
        if not gone:
            leftovers.kill(self.token)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        shutil.rmtree(self.tmp, ignore_errors=True)
        shutil.rmtree(self.reports, ignore_errors=True)


class Runner:
    """drarun("-n", 4, "program") runs build/bin/drarun to its end. See tests/README.md."""

    def __init__(self, program=None):
        self.program = Path(program or BUILD / "bin" / "drarun")
        self.jobs = []

    def start(self, *args, program=None, env=None, cwd=None, stdin=subprocess.DEVNULL, text=True,
              under=()):
        """under: words before the program, as for a network namespace."""
        job = Job([program or self.program, *args], env, cwd, stdin, text, under)
        self.jobs.append(job)
        return job

    def __call__(self, *args, timeout=60, input=None, clean=True, leaves=(), **how):
        if input is not None:
            how["stdin"] = subprocess.PIPE
        return self.start(*args, **how).finish(timeout, input, clean, leaves)

    def close(self):
        for job in self.jobs:
            job.close()


def peak_memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(each.split()[1]) for each in status if each.startswith("VmHWM"))


def output_of(*command, **how):
    """Of a command that must succeed, run as it is: for tools of others. A process that must leave nothing is a Runner's."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=patience(200), **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
