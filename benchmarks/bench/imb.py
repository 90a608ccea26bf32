# SPDX-License-Identifier: Apache-2.0
"""The same collective of the same sizes by drarun-bench and by IMB-MPI1, in turns."""
import os
import re
import subprocess

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import number
from benchmarks.harness.spread import ratio
from benchmarks.harness.turns import in_turns
from support.build import SOURCE
from support.mpi import BY_NAME

# ours: (IMB's, what it counts as a size: all of a buffer or the part of a rank, whether a barrier follows each call)
SAME = {
    "all_reduce": ("Allreduce", "all", True),
    "all_gather": ("Allgather", "part", True),
    "reduce_scatter": ("Reduce_scatter_block", "part", True),
    "broadcast": ("Bcast", "all", True),
    "reduce": ("Reduce", "all", True),
    "alltoall": ("Alltoall", "part", True),
    "gather": ("Gather", "part", True),
    "scatter": ("Scatter", "part", True),
    "sendrecv": ("Sendrecv", "all", False),
    "barrier": ("Barrier", "none", False),
}
RANKS = 2
GOAL = 5  # per cent
# Before what else this machine does. Where each session has its share of the CPUs (sched_autogroup_enabled) nice does little; real time
# takes nearly all of them from everybody else while ranks wait for each other.
BEFORE_OTHERS = ["chrt", "--rr", "1"] if os.environ.get("DRARUN_BENCH_REALTIME") == "1" else ["nice", "-n", "-20"]
EDGES = (13, 19)  # below 2^13 bytes a size is small, below 2^19 middle
HALF = r" +([\d.e+]+) +[\d.e+]+ +[\d.e+]+ +\S+"
OURS = re.compile(rf"^ +(\d+) +\d+ +float +\w+ +-?\d+{HALF}{HALF}$", re.M)
IN_PLACE = {"broadcast"}  # MPI's is; NCCL's out of place copies at the root beside it
THEIRS = re.compile(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +([\d.]+)(?: +[\d.]+)?$", re.M)
THEIRS_BARRIER = re.compile(r"^ +\d+ +[\d.]+ +[\d.]+ +([\d.]+)$", re.M)


def ranges(scale, least):
    """(first power, last power, calls, cycles): sizes that are called equally often."""
    ends = [*(edge - 1 for edge in EDGES), scale.largest]
    begin = least
    for end, (calls, cycles) in zip(ends, scale.plan):
        end = min(end, scale.largest)
        if begin <= end:
            yield begin, end, calls, cycles
        begin = end + 1


def lists(pairs):
    """{size: [us]}"""
    found = {}
    for size, us in pairs:
        found.setdefault(int(size), []).append(float(us))
    return found


class Beside:
    def __init__(self, name):
        self.mpi = BY_NAME["impi"]
        self.name = name
        self.theirs, self.counts, self.synced = SAME[name]
        folder = SOURCE / "benchmarks" / "bench"
        flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-I{SOURCE / 'include'}", "-lm"]
        self.module = self.mpi.compile(folder / "mpi_backend.c", folder / "element.c", SOURCE / "lib/base/error.c", flags=flags)

    def run(self, *words):
        first = BEFORE_OTHERS if os.geteuid() == 0 else []
        command = [*first, BUILD / "bin" / "drarun", "-n", str(RANKS), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **self.mpi.env,
                                                                                        "DRARUN_BENCH_MODULE": str(self.module)})
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(str(word) for word in words)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def ours(self, first, last, calls, cycles, checks=0):
        """{size as IMB counts it: [us]}"""
        factor = RANKS if self.counts == "part" else 1
        out = self.run(BUILD / "bin" / "drarun-bench", self.name, "-b", str(factor << first), "-e", str(factor << last), "-f", "2",
                       "-n", str(calls), "-N", str(cycles), "-c", str(checks), "-w", "1",
                       "--settle", str(calls), "-z", "3" if self.synced else "0")
        if "values : 0 OK" not in out:
            raise RuntimeError(f"{self.name}: wrong data:\n{out}")
        return lists((int(size) // factor, in_place if self.name in IN_PLACE else out_of_place)
                     for size, out_of_place, in_place in OURS.findall(out))

    def imb(self, first, last, calls, cycles):
        out = self.run(self.mpi.home() / "bin" / "IMB-MPI1", "-iter", f"{calls},{calls << 30}", "-iter_policy", "off", "-time", "100",
                       "-zero_size", "off", "-root_shift", "off", "-sync", "on", "-imb_barrier", "off", "-data_type", "float", "-red_data_type", "float", "-mem", "4", "-msglog", f"{first}:{last}",
                       *[self.theirs] * cycles)
        if self.counts == "none":
            return lists((0, us) for us in THEIRS_BARRIER.findall(out))
        return lists((size, us) for size, us in THEIRS.findall(out) if 1 << first <= int(size) <= 1 << last)

    def sample(self, rounds, scale):
        """{"ours": {size: [us]}, "imb": …}"""
        least = 4 if self.counts == "part" else 3  # a part is a multiple of 16 bytes
        samples = {"ours": {}, "imb": {}}
        for plan in [(0, 0, *scale.plan[0])] if self.counts == "none" else ranges(scale, least):
            self.ours(*plan[:2], 1, 1, checks=1)
            for _, who in in_turns(["ours", "imb"], rounds, warm_up=0):
                for size, times in (self.ours if who == "ours" else self.imb)(*plan).items():
                    samples[who].setdefault(size, []).extend(times)
        if set(samples["ours"]) != set(samples["imb"]):
            raise RuntimeError(f"{self.name}: sizes differ: {sorted(set(samples['ours']) ^ set(samples['imb']))}")
        return samples


def table(name):
    def run(report, scale):
        samples = Beside(name).sample(scale.rounds, scale)
        report.heading(name)
        report.table(["bytes", "drarun-bench", "p25-p75", "IMB-MPI1", "p25-p75", "ratio", "95 %", "goal", "verdict"])
        for size in sorted(samples["ours"]):
            ours, theirs = samples["ours"][size], samples["imb"][size]
            value, low, high = ratio(ours, theirs)
            cells = [report.spread(f"{size} {who}", values) for who, values in (("drarun-bench", ours), ("IMB-MPI1", theirs))]
            verdict = report.verdict(f"{name} of {size} bytes, per cent beside IMB", abs(value - 1) * 100, GOAL)
            report.row(size, cells[0][0], cells[0][3], cells[1][0], cells[1][3], f"{value:.3f}", f"{low:.3f}-{high:.3f}", f"{GOAL} %",
                       verdict if low > 1 + GOAL / 100 or high < 1 - GOAL / 100 or verdict == "met" else verdict + number_note(low, high))
    return run


def number_note(low, high):
    """An interval that reaches into the goal says that the machine was too loud to tell."""
    return f" (interval {number(low)}-{number(high)} reaches it)"
