# SPDX-License-Identifier: Apache-2.0
"""The same collective of the same sizes by drarun-bench and by IMB-MPI1, in turns."""
import os
import re
import statistics

from benchmarks.harness import slices
from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import number
from benchmarks.harness.spread import ratio
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
SETTLING = 3  # the first of so many parts of a start's cycles is left out: what the library makes at first use, pages among it
EDGES = (13, 19)  # below 2^13 bytes a size is small, below 2^19 middle
HALF = r" +([\d.e+]+) +[\d.e+]+ +[\d.e+]+ +\S+"
OURS = re.compile(rf"^ +(\d+) +\d+ +float +\w+ +-?\d+{HALF}{HALF}$", re.M)
IN_PLACE = {"broadcast"}  # MPI's is; NCCL's out of place copies at the root beside it
THEIRS = re.compile(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +([\d.]+)(?: +[\d.]+)?$", re.M)
THEIRS_BARRIER = re.compile(r"^ +\d+ +[\d.]+ +[\d.]+ +([\d.]+)$", re.M)


def ranges(scale, least):
    """(first power, last power, pace): sizes that are called equally often."""
    ends = [*(edge - 1 for edge in EDGES), scale.largest]
    begin = least
    for end, pace in zip(ends, scale.paces):
        end = min(end, scale.largest)
        if begin <= end:
            yield begin, end, pace
        begin = end + 1


def medians(pairs):
    """{size: us} of the cycles of a start."""
    found = {}
    for size, us in pairs:
        found.setdefault(int(size), []).append(float(us))
    return {size: statistics.median(times[len(times) // SETTLING:]) for size, times in found.items()}


class Beside:
    def __init__(self, name):
        self.mpi = BY_NAME["impi"]
        self.name = name
        self.theirs, self.counts, self.synced = SAME[name]
        self.factor = RANKS if self.counts == "part" else 1
        folder = SOURCE / "benchmarks" / "bench"
        shared = ["-O2", "-shared", "-fPIC"]
        flags = [*shared, "-fvisibility=hidden", "-D_GNU_SOURCE", f"-I{SOURCE / 'include'}", "-lm"]
        self.module = self.mpi.compile(folder / "mpi_backend.c", folder / "element.c", SOURCE / "lib/base/error.c", flags=flags)
        self.memory = self.mpi.compile(folder / "same_memory.c", flags=shared)

    def job(self, *words):
        first = BEFORE_OTHERS if os.geteuid() == 0 else []
        command = [*first, BUILD / "bin" / "drarun", "-n", RANKS, "--bind", "core", "-x", f"LD_PRELOAD={self.memory}", *words]
        return slices.Job(command, words[0], RANKS, {**os.environ, **self.mpi.env, "DRARUN_BENCH_MODULE": str(self.module)})

    def ours(self, first, last, calls, cycles, checks=0):
        factor = self.factor
        return self.job(BUILD / "bin" / "drarun-bench", self.name, "-b", factor << first, "-e", factor << last, "-f", 2, "-n", calls,
                        "-N", cycles, "-c", checks, "-w", 1, "--settle", calls, "-z", 3 if self.synced else 0)

    def our_times(self, out):
        """{size as IMB counts it: us}"""
        if "values : 0 OK" not in out:
            raise RuntimeError(f"{self.name}: wrong data:\n{out}")
        return medians((int(size) // self.factor, in_place if self.name in IN_PLACE else out_of_place)
                       for size, out_of_place, in_place in OURS.findall(out))

    def imb(self, first, last, calls, cycles):
        return self.job(self.mpi.home() / "bin" / "IMB-MPI1", "-iter", f"{calls},{calls << 30}", "-iter_policy", "off", "-time", 100,
                        "-zero_size", "off", "-root_shift", "off", "-sync", "on", "-imb_barrier", "off", "-data_type", "float",
                        "-red_data_type", "float", "-mem", 4, "-msglog", f"{first}:{last}", *[self.theirs] * cycles)

    def their_times(self, out):
        return medians((0, us) for us in THEIRS_BARRIER.findall(out)) if self.counts == "none" else medians(THEIRS.findall(out))

    def round(self, order, first, last, pace):
        """{"ours": {size: us}, "imb": …} of one start of each."""
        make = {"ours": self.ours, "imb": self.imb}
        jobs = (make[who](first, last, pace.calls, pace.cycles) for who in order)  # started when they are asked for
        out = slices.beside(list(jobs), pace.slice_s) if pace.slice_s else [slices.alone(job) for job in jobs]
        read = {"ours": self.our_times, "imb": self.their_times}
        return {who: read[who](text) for who, text in zip(order, out)}

    def sample(self, rounds, scale):
        """{"ours": {size: [us of each start]}, "imb": …}"""
        least = 4 if self.counts == "part" else 3  # a part is a multiple of 16 bytes
        samples = {"ours": {}, "imb": {}}
        for first, last, pace in [(0, 0, scale.paces[0])] if self.counts == "none" else ranges(scale, least):
            self.our_times(slices.alone(self.ours(first, last, 1, 1, checks=1)))
            for number in range(rounds):
                for who, found in self.round(["ours", "imb"][::-1 if number % 2 else 1], first, last, pace).items():
                    for size, us in found.items():
                        samples[who].setdefault(size, []).append(us)
        if set(samples["ours"]) != set(samples["imb"]):
            raise RuntimeError(f"{self.name}: sizes differ: {sorted(set(samples['ours']) ^ set(samples['imb']))}")
        return samples


def table(name):
    def run(report, scale):
        samples = Beside(name).sample(scale.rounds, scale)
        report.heading(name)
        report.table(["bytes", "drarun-bench", "p25-p75", "IMB-MPI1", "p25-p75", "ratio", "95 %", "of pairs", "goal", "verdict"])
        for size in sorted(samples["ours"]):
            ours, theirs = samples["ours"][size], samples["imb"][size]
            value, low, high = ratio(ours, theirs)
            cells = [report.spread(f"{size} {who}", values) for who, values in (("drarun-bench", ours), ("IMB-MPI1", theirs))]
            verdict = report.verdict(f"{name} of {size} bytes, per cent beside IMB", abs(value - 1) * 100, GOAL)
            pairs = statistics.median(a / b for a, b in zip(ours, theirs))  # of starts that met the same moments
            report.row(size, cells[0][0], cells[0][3], cells[1][0], cells[1][3], f"{value:.3f}", f"{low:.3f}-{high:.3f}", f"{pairs:.3f}",
                       f"{GOAL} %",
                       verdict if low > 1 + GOAL / 100 or high < 1 - GOAL / 100 or verdict == "met" else verdict + number_note(low, high))
    return run


def number_note(low, high):
    """An interval that reaches into the goal says that the machine was too loud to tell."""
    return f" (interval {number(low)}-{number(high)} reaches it)"
