# SPDX-License-Identifier: Apache-2.0
"""Runs commands in turn under the stopwatch (launch/stopwatch.c), which has a deadline and counts hung runs."""
import os
import subprocess
import tempfile

from .launchers import BENCH
from .turns import in_turns

HEADROOM = 10  # seconds that the stopwatch gets beyond the job's deadline, to clean up


class Sample:
    """One run. start, end: CLOCK_MONOTONIC in ns. wall, cpu: ms. out: what it wrote to stdout."""

    def __init__(self, line, out, err):
        fields = [int(word) for word in line.split()]
        self.start, self.end, self.status, hung, self.left, cpu_us, self.maxrss_kib, self.least_mib = fields
        self.hung = hung == 1
        self.wall, self.cpu = (self.end - self.start) / 1e6, cpu_us / 1e3
        self.out, self.err = out, err
        self.failure = ""
        if hung:
            self.failure = "hung" if self.hung else f"ended since only {self.least_mib} MiB of memory were left"
        elif self.status != 0:
            self.failure = f"status {self.status}"
        elif self.left:
            self.failure = f"left {self.left} processes"

    @property
    def good(self):
        return not self.failure


class Others:
    """What else used the CPUs while samples were taken: says how far the numbers can be trusted."""

    def __init__(self):
        self.busy_ms = self.jobs_ms = self.all_ms = 0.0

    def add(self, busy_ms, sample):
        self.busy_ms += busy_ms
        self.jobs_ms += sample.cpu
        self.all_ms += sample.wall * os.cpu_count()

    def take(self):
        """The share since the last call, in per cent; None: nothing was measured."""
        share = 100 * max(0.0, self.busy_ms - self.jobs_ms) / self.all_ms if self.all_ms else None
        self.__init__()
        return share


others = Others()


def busy_ms():
    """CPU time of all processes since the boot."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) * 1000.0 / os.sysconf("SC_CLK_TCK")


def run(command, env, deadline, memory_mib=0):
    """Runs a command for at most deadline seconds, and as long as that much memory is available; stdin
    /dev/null, output kept."""
    read_end, write_end = os.pipe()
    before, busy = available_mib() if memory_mib else 0, busy_ms()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        limit = f"{deadline}:{memory_mib}" if memory_mib else str(deadline)
        subprocess.run([BENCH / "stopwatch", limit, str(write_end), *command], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[write_end],
                       timeout=deadline + HEADROOM, check=True)
        os.close(write_end)
        with os.fdopen(read_end) as result:
            line = result.read()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    sample = Sample(line, *texts)
    sample.available_mib = before
    others.add(busy_ms() - busy, sample)
    return sample


def available_mib():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("MemAvailable"))


class Contender:
    """A launcher with its command for this row, and what was measured of it. check(sample): returns a
    reason to count a run as failed, or ''; it may set attributes of the sample."""

    def __init__(self, launcher, ranks, *words, check=None):
        self.name = launcher.name
        self.command, self.env = launcher.command(ranks, *words), launcher.environment()
        self.check = check
        self.samples, self.bad, self.bad_in_a_row = [], [], 0

    def run_once(self, deadline, keep=True):
        """keep: a good run; a bad one always counts."""
        sample = run(self.command, self.env, deadline)
        if sample.good and self.check:
            sample.failure = self.check(sample)
        if keep or not sample.good:
            (self.samples if sample.good else self.bad).append(sample)
        self.bad_in_a_row = 0 if sample.good else self.bad_in_a_row + 1
        return sample

    @property
    def hung(self):
        return sum(sample.hung for sample in self.bad)

    @property
    def failed(self):
        return len(self.bad) - self.hung

    def first_failure(self):
        """Of the runs that did not hang: why, and the last line that was said."""
        for sample in self.bad:
            if not sample.hung:
                lines = (sample.err or sample.out).strip().splitlines()
                return sample.failure + (f": {lines[-1][:120]}" if lines else "")
        return ""

    def values(self, name):
        return [getattr(sample, name) for sample in self.samples]


def interleave(contenders, rounds, deadline, warm_up=1, give_up=5):
    """Runs in turns. A contender is left out when its last give_up runs were bad."""
    for number, contender in in_turns(contenders, rounds, warm_up):
        if contender.bad_in_a_row < give_up:
            contender.run_once(deadline, keep=number >= 0)
