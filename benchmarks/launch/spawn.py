# SPDX-License-Identifier: Apache-2.0
"""Table "spawn": MPI_Comm_spawn of eight children by one rank, under drarun and each library's own launcher."""
from pathlib import Path

from benchmarks.harness.launchers import BUILD, LIBRARIES, Launcher, Missing
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS
from benchmarks.harness.stopwatch import Contender, interleave

CHILDREN = 8
DEADLINE = 60
GOAL = 1.0
DRARUN = Launcher("drarun", lambda: BUILD / "bin" / "drarun", ["--oversubscribe"])


def check(sample):
    """Adds the times of the call, and until all children have answered, in ms, to a sample."""
    lines = [line.split() for line in sample.out.splitlines() if line.startswith("spawn ")]
    if [words[1] for words in lines] != [str(1 + CHILDREN)]:
        return f"not one line from a parent of {CHILDREN} children"
    sample.called, sample.answered = (int(word) / 1e6 for word in lines[0][2:])
    return ""


def run(report, scale):
    report.heading(f"MPI_Comm_spawn of {CHILDREN} children")
    report.line()
    report.line("ms from the call until it returns, and until every child has taken part in an all_reduce.")
    rows = []
    report.table(["library", "until", "launcher", *SPREAD_COLUMNS, "failed / hung"])
    for library in LIBRARIES:
        try:
            program = library.compile(Path(__file__).parent / "spawn.c")
            library.launcher.program()
        except Missing as missing:
            report.row(library.name, "", f"skipped: {missing}", *[""] * (len(SPREAD_COLUMNS) + 1))
            continue
        pair = [Contender(launcher, 1, program, CHILDREN, check=check) for launcher in (DRARUN, library.launcher)]
        interleave(pair, scale.rounds, DEADLINE)
        for key in ("called", "answered"):
            for c in pair:
                report.row(library.name, key, c.name, *report.spread(f"{library.name}, {key}, {c.name}", c.values(key)),
                           report.bad(f"{library.name}, {key}, {c.name}", c, c is pair[0]))
        rows.append((library.name, pair))
    report.table(["library", "until", "drarun against its own launcher", *RATIO_COLUMNS])
    for name, (ours, theirs) in rows:
        for key in ("called", "answered"):
            goal = GOAL if key == "called" and name != "Open MPI 4.1" else None
            report.row(name, key, "spawn", *report.ratio(f"{name}, {key}", ours.values(key), theirs.values(key), goal))
