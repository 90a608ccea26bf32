# SPDX-License-Identifier: Apache-2.0
"""Table "crowded": all_reduce with twice as many ranks as CPUs, under drarun and each library's own launcher."""
import os
from pathlib import Path

from benchmarks.harness.launchers import DRARUN, INTEL, LIBRARIES, MPICH4, Missing
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS
from benchmarks.harness.stopwatch import Contender, interleave

SIZES = [8, 64 * 1024, 1024 * 1024]
MEASURE_MS = 100
DEADLINE = 60
GOAL = 1.2


def check(ranks):
    """Adds the time of a call of each size, in us, to a sample."""
    def check_sample(sample):
        lines = [line.split() for line in sample.out.splitlines() if line.startswith("crowded ")]
        if [(int(words[1]), int(words[2])) for words in lines] != [(ranks, size) for size in SIZES]:
            return f"not a line for each size from a job of {ranks} ranks"
        for words in lines:
            setattr(sample, f"us_{words[2]}", int(words[3]) / 1e3)
        return ""
    return check_sample


def run(report, scale):
    ranks = 2 * len(os.sched_getaffinity(0))
    report.heading(f"All_reduce of {ranks} ranks on {ranks // 2} CPUs")
    report.line()
    report.line("Time of a call in us. A rank that spins while it waits keeps the one that it waits for from running. "
                "MPICH 4.0 always spins: where other programs run, the kernel's autogroups then favour Hydra, whose "
                "ranks are each a session of its own. In a cgroup of the cpu controller, as in a pod, there are none.")
    rows = []
    report.table(["library", "bytes", "launcher", *SPREAD_COLUMNS, "failed / hung"])
    for library in [*LIBRARIES, MPICH4, INTEL]:
        try:
            program = library.compile(Path(__file__).parent / "crowded.c")
            library.launcher.program()
        except Missing as missing:
            report.row(library.name, "", f"skipped: {missing}", *[""] * (len(SPREAD_COLUMNS) + 1))
            continue
        pair = [Contender(launcher, ranks, program, MEASURE_MS, check=check(ranks))
                for launcher in (DRARUN, library.launcher)]
        interleave(pair, max(5, scale.rounds // 2) if scale.rounds > 1 else 1, DEADLINE)
        for size in SIZES:
            for c in pair:
                what = f"{library.name}, {size} bytes, {c.name}"
                report.row(library.name, size, c.name, *report.spread(what, c.values(f"us_{size}")),
                           report.bad(what, c, c is pair[0]))
        rows.append((library.name, pair))
    report.table(["library", "bytes", "drarun against its own launcher", *RATIO_COLUMNS])
    for name, (ours, theirs) in rows:
        for size in SIZES:
            key = f"us_{size}"
            report.row(name, size, "all_reduce", *report.ratio(f"{name}, {size} bytes", ours.values(key),
                                                               theirs.values(key), GOAL if size == 8 else None))
