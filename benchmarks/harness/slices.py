# SPDX-License-Identifier: Apache-2.0
"""Two jobs that run by turns of milliseconds, so that both meet the same states of the machine: what a virtual machine's
processors share with others changes within a second, more than what is to be compared."""
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.harness.processes import children

END_S = 20  # for a launcher that was told to end


def ranks(pid, program):
    """Processes below pid that run the program."""
    found = []
    for child in children(pid):
        try:
            if os.readlink(f"/proc/{child}/exe") == str(program):
                found.append(child)
                continue
        except OSError:
            continue
        found += ranks(child, program)
    return found


def text(file):
    file.seek(0)
    return file.read()


class Job:
    """A launcher's command that was started. program: what its ranks run, count of them."""

    def __init__(self, command, program, count, env):
        self.command, self.program, self.count = [str(word) for word in command], Path(program).resolve(), count
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # nobody reads while they run
        self.process = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        self.ranks = []

    def running(self):
        return self.process.poll() is None

    def started(self):
        """All ranks are there, or never will be."""
        self.ranks = ranks(self.process.pid, self.program)
        return len(self.ranks) == self.count or not self.running()

    def signal(self, number):
        for pid in self.ranks:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def output(self, seconds):
        if self.process.wait(seconds) != 0:
            raise RuntimeError(f"{' '.join(self.command)}: {text(self.err).strip()[-300:]}")
        return text(self.out)

    def close(self):
        """Ends it: the launcher ends its ranks, or is killed with them when it does not."""
        self.signal(signal.SIGCONT)
        if self.running():
            self.process.terminate()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()


def beside(jobs, slice_s, seconds=120):
    """What the jobs print. They run one at a time, slice_s seconds each, from when all have their ranks until the first ends;
    then the others go on to their end. A call that a turn's end falls into takes longer by the others' turns."""
    end = time.monotonic() + seconds
    try:
        while not all(job.started() for job in jobs):
            if time.monotonic() > end:
                raise RuntimeError(f"no ranks after {seconds} s: {jobs[0].command}")
            time.sleep(0.002)
        for job in jobs[1:]:
            job.signal(signal.SIGSTOP)
        turn = 0
        while all(job.running() for job in jobs) and time.monotonic() < end:
            time.sleep(slice_s)
            jobs[turn].signal(signal.SIGSTOP)
            turn = (turn + 1) % len(jobs)
            jobs[turn].signal(signal.SIGCONT)
        for job in jobs:
            job.signal(signal.SIGCONT)
        return [job.output(max(1, end - time.monotonic())) for job in jobs]
    finally:
        for job in jobs:
            job.close()


def alone(job, seconds=120):
    try:
        return job.output(seconds)
    finally:
        job.close()
