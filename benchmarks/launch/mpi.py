# SPDX-License-Identifier: Apache-2.0
"""Table "mpi": MPI_Init to MPI_Finalize with four libraries, each under drarun and its own launcher."""
from operator import sub
from pathlib import Path

from benchmarks.harness.launchers import BENCH, DRARUN, LIBRARIES, MPICH4, Missing
from benchmarks.harness.stopwatch import Contender, interleave
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS, middle, quarters

SIZES = [2, 8, 32]
FEW = [2, 8]  # MPICH 4.0, whose ranks spin
DEADLINE = 40
GOAL_OVERHEAD, GOAL_TOTAL, AIM_TOTAL = 0.5, 1.0, 0.85


def check(ranks):
    """Adds slowest, overhead, init, own, before, loading and after, in ms, to a sample."""
    def check_sample(sample):
        lines = [line.split() for line in sample.out.splitlines() if line.startswith("mpi ")]
        if len(lines) != ranks or {int(words[1]) for words in lines} != set(range(ranks)):
            return f"{len(lines)} of {ranks} ranks reported"
        if any(int(words[2]) != ranks for words in lines):
            return "ranks in jobs of their own"
        started, begin, up, _, down = zip(*([int(word) for word in words[3:8]] for words in lines))
        sample.slowest = max(map(sub, down, begin)) / 1e6
        sample.overhead = sample.wall - sample.slowest
        sample.own = sample.wall - max(map(sub, down, started)) / 1e6
        sample.init = max(map(sub, up, begin)) / 1e6
        sample.loading = max(map(sub, begin, started)) / 1e6
        sample.before = (min(started) - sample.start) / 1e6
        sample.after = (sample.end - max(down)) / 1e6
        return ""
    return check_sample


def run(report, scale):
    report.heading("MPI_Init to MPI_Finalize, one agent")
    report.line()
    report.line("Wall time in ms. Slowest: the longest MPI_Init to MPI_Finalize of a rank. Overhead: total less "
                "slowest. Most of that is the dynamic loader's time between a rank's exec and its main (loading: the "
                "slowest rank's), the same under any launcher, so less loading is total less the longest exec to "
                "MPI_Finalize. Before: until the first rank is executed; after: from the last rank's end of "
                "MPI_Finalize. Transports are the library's own choice under both launchers.")
    rows = []
    report.table(["library", "N", "launcher", *("total " + c for c in SPREAD_COLUMNS), "slowest", "MPI_Init",
                  "overhead", "p25-p75", "less loading", "p25-p75", "before", "loading", "after", "CPU",
                  "failed / hung"])
    for library in [*LIBRARIES, MPICH4]:
        try:
            program = library.compile(Path(__file__).parent / "mpi_times.c")
            library.launcher.program()
        except Missing as missing:
            report.row(library.name, "", f"skipped: {missing}", *[""] * 15)
            continue
        for ranks in FEW if library is MPICH4 else SIZES:
            pair = [Contender(launcher, ranks, BENCH / "stamp", program, check=check(ranks))
                    for launcher in (DRARUN, library.launcher)]
            interleave(pair, scale.rounds if ranks < 32 else max(5, scale.rounds // 2), DEADLINE)
            for c in pair:
                medians = [middle(c.values(name)) for name in ("slowest", "init", "before", "loading", "after", "cpu")]
                what = f"{library.name}, N = {ranks}"
                report.row(library.name, ranks, c.name, *report.spread(f"{library.name}, {ranks} ranks, {c.name}", c.values("wall")), medians[0], medians[1],
                           *[cell(c.values(name)) for name in ("overhead", "own") for cell in (middle, quarters)],
                           *medians[2:], report.bad(what, c, c is pair[0]))
            rows.append((library.name, ranks, pair))
    report.table(["library", "N", "drarun against its own launcher", *RATIO_COLUMNS])
    for name, ranks, (ours, theirs) in rows:
        for what, key, goal in (("overhead", "overhead", GOAL_OVERHEAD),
                                ("overhead less loading", "own", GOAL_OVERHEAD), ("total", "wall", GOAL_TOTAL)):
            cells = report.ratio(f"{name}, N = {ranks}, {what}", ours.values(key), theirs.values(key), goal)
            if what == "total":
                cells[2] += f" (aim {AIM_TOTAL})"
            report.row(name, ranks, what, *cells)
