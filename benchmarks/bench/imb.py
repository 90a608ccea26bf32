# SPDX-License-Identifier: Apache-2.0
"""The same collective of the same sizes by drarun-bench and by IMB-MPI1, in turns in the same processes."""
import math
import mmap
import os
import random
import re
import subprocess

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.spread import Spread, midmean
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
LIMIT_S = 120  # of a start
# Before what else this machine does. Where each session has its share of the CPUs (sched_autogroup_enabled) nice does little; real time
# takes nearly all of them from everybody else while ranks wait for each other.
BEFORE_OTHERS = ["chrt", "--rr", "1"] if os.environ.get("DRARUN_BENCH_REALTIME") == "1" else ["nice", "-n", "-20"]
WARM_UP = 10  # calls that IMB makes, after as many as it will time, before it does; fewer where it times fewer
SETTLING = 3  # the first of so many parts of a start's cycles is left out: what the library makes at first use, pages among it
EDGES = (13, 19, 23)  # of the paces: sizes below 2^13 bytes, 2^19, 2^23, and the rest
HALF = r" +([\d.e+]+) +[\d.e+]+ +[\d.e+]+ +\S+"
OURS = re.compile(rf"^ +(\d+) +\d+ +float +\w+ +-?\d+{HALF}{HALF}$", re.M)
IN_PLACE = {"broadcast"}  # MPI's is; NCCL's out of place copies at the root beside it
THEIRS = re.compile(r"^ +(\d+) +\d+ +[\d.]+ +[\d.]+ +([\d.]+)(?: +[\d.]+)?$", re.M)
THEIRS_BARRIER = re.compile(r"^ +\d+ +[\d.]+ +[\d.]+ +([\d.]+)$", re.M)


def ranges(scale, least):
    """(first power, last power, pace): sizes that are called equally often."""
    edges = [edge for edge in EDGES if edge <= scale.largest]
    return zip([least, *edges], [*(edge - 1 for edge in edges), scale.largest], scale.paces)


def of_cycles(pairs):
    """{size: us} of the cycles of a start. Both tables have hundredths of microseconds, a twentieth of the shortest call: their mean
    has more, and without the outer quarters it knows as little as a median of what interrupted a cycle."""
    found = {}
    for size, us in pairs:
        found.setdefault(int(size), []).append(float(us))
    return {size: midmean(times[len(times) // SETTLING:]) for size, times in found.items()}


class Pages:
    """Memory that is taken while starts come and go, other and of another size each time: the kernel gives a start the pages that the last one
    gave back, and where pages lie is worth some per cent of one program's time and not of the other's."""

    def __init__(self):
        self.random = random.Random(1)
        self.held = []

    def others(self):
        taken = []
        for advice in (mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE):
            block = mmap.mmap(-1, self.random.randrange(16, 200) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            block.madvise(advice)
            for page in range(0, len(block), mmap.PAGESIZE):
                block[page] = 1
            taken.append(block)
        self.held, before = taken, self.held
        for block in before:
            block.close()


class Beside:
    def __init__(self, name):
        self.mpi = BY_NAME["impi"]
        self.name = name
        self.theirs, self.counts, self.synced = SAME[name]
        self.factor = RANKS if self.counts == "part" else 1
        folder = SOURCE / "benchmarks" / "bench"
        shared = ["-O2", "-shared", "-fPIC"]
        flags = [*shared, "-fvisibility=hidden", "-D_GNU_SOURCE", "-DBENCH_WORLD=same_process_world", f"-I{SOURCE / 'include'}", "-lm"]
        self.module = self.mpi.compile(folder / "mpi_backend.c", folder / "element.c", SOURCE / "lib/base/error.c", SOURCE / "lib/base/plain.c",
                                       flags=flags)
        self.preloaded = [self.mpi.compile(folder / part, flags=[*shared, "-ldl"]) for part in ("same_process.c", "same_memory.c")]

    def ours(self, first, last, calls, checks):
        factor = self.factor
        return [BUILD / "bin" / "drarun-bench", self.name, "-b", factor << first, "-e", factor << last, "-f", 2, "-n", calls,
                "-c", checks, "-w", 1, "--settle", calls + min(calls, WARM_UP), "-z", 3 if self.synced else 0]

    def imb(self, first, last, calls, cycles):
        return [self.mpi.home() / "bin" / "IMB-MPI1", "-iter", f"{calls},{calls << 30}", "-iter_policy", "off", "-time", 100,
                "-zero_size", "off", "-root_shift", "off", "-sync", "on", "-imb_barrier", "off", "-data_type", "float",
                "-red_data_type", "float", "-mem", 4, "-msglog", f"{first}:{last}", *[self.theirs] * cycles]

    def output(self, first, last, calls, cycles, checks=0):
        """What both print in one start."""
        before = BEFORE_OTHERS if os.geteuid() == 0 else []
        command = [str(word) for word in [*before, BUILD / "bin" / "drarun", "-n", RANKS, "--bind", "core",
                                          "-x", f"LD_PRELOAD={':'.join(str(part) for part in self.preloaded)}", *self.imb(first, last, calls, cycles)]]
        env = {**os.environ, **self.mpi.env, "DRARUN_BENCH_MODULE": str(self.module), "DRARUN_BENCH_GUEST": str(BUILD / "benchmarks" / "bench-guest.so"),
               "DRARUN_BENCH_WORDS": " ".join(str(word) for word in self.ours(first, last, calls, checks))}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def check(self, first, last):
        """drarun-bench looks at the data of each size."""
        out = self.output(first, last, 1, 1, checks=1)
        if "values : 0 OK" not in out:
            raise RuntimeError(f"{self.name}: wrong data:\n{out}")

    def start(self, first, last, pace):
        """{"ours": {size as IMB counts it: us}, "imb": …} of one start."""
        counted = self.counts != "none"
        out = self.output(first - counted, last, pace.calls, pace.cycles)  # one size more, which meets what the other left in the caches
        ours = ((int(size) // self.factor, in_place if self.name in IN_PLACE else out_of_place)
                for size, out_of_place, in_place in OURS.findall(out))
        theirs = THEIRS.findall(out) if counted else ((0, us) for us in THEIRS_BARRIER.findall(out))
        least = 1 << first if counted else 0
        return {who: {size: us for size, us in of_cycles(pairs).items() if size >= least} for who, pairs in (("ours", ours), ("imb", theirs))}

    def sample(self, rounds, scale):
        """{"ours": {size: [us of each start]}, "imb": …}"""
        least = 4 if self.counts == "part" else 3  # a part is a multiple of 16 bytes
        samples, pages = {"ours": {}, "imb": {}}, Pages()
        for first, last, pace in [(0, 0, scale.paces[0])] if self.counts == "none" else ranges(scale, least):
            self.check(first, last)
            for _ in range(math.ceil(rounds * pace.share)):
                pages.others()
                for who, found in self.start(first, last, pace).items():
                    for size, us in found.items():
                        samples[who].setdefault(size, []).append(us)
        sizes = {who: {size: len(times) for size, times in of.items()} for who, of in samples.items()}
        if sizes["ours"] != sizes["imb"]:
            raise RuntimeError(f"{self.name}: sizes differ: {sizes}")
        return samples


def table(name):
    def run(report, scale):
        samples = Beside(name).sample(scale.rounds, scale)
        report.heading(name)
        report.table(["bytes", "drarun-bench", "p25-p75", "IMB-MPI1", "p25-p75", "of medians", "ratio", "95 %", "goal", "verdict"])
        for size in sorted(samples["ours"]):
            ours, theirs = samples["ours"][size], samples["imb"][size]
            cells = [report.spread(f"{size} {who}", values) for who, values in (("drarun-bench", ours), ("IMB-MPI1", theirs))]
            pairs = Spread([a / b for a, b in zip(ours, theirs)])
            medians = Spread(ours).median / Spread(theirs).median
            verdict = report.verdict(f"{name} of {size} bytes, per cent beside IMB", abs(pairs.median - 1) * 100, GOAL)
            reaches = pairs.low <= 1 + GOAL / 100 and pairs.high >= 1 - GOAL / 100
            report.row(size, cells[0][0], cells[0][3], cells[1][0], cells[1][3], f"{medians:.3f}", f"{pairs.median:.3f}",
                       f"{pairs.low:.3f}-{pairs.high:.3f}", f"{GOAL} %", verdict + (" (the interval reaches it)" if reaches and verdict != "met" else ""))
    return run
