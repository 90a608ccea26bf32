# SPDX-License-Identifier: Apache-2.0
"""Programs that say their version and end: what their libraries cost at each start."""
import os
from pathlib import Path

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import SPREAD_COLUMNS
from benchmarks.harness.stopwatch import run as watch
from benchmarks.harness.turns import sampled

GOAL_MS = 3
DEADLINE_S = 10
PROGRAMS = ("libexec/drarun/drarun-cluster", "libexec/drarun/drarun-remote", "bin/drarun-plugin")


def start(program):
    """The time in ms from its spawn to its end."""
    sample = watch([program, "--version"], {}, DEADLINE_S)
    if not sample.good or not sample.out:
        raise RuntimeError(f"{program} --version: {sample.failure or 'no output'}: {sample.err}")
    return sample.wall


def run(report, scale):
    before = os.environ.get("DRARUN_BEFORE")
    trees = {"": BUILD, **({", before": Path(before).resolve()} if before else {})}
    programs = {f"{Path(name).name}{which}": tree / name for which, tree in trees.items() for name in PROGRAMS}
    times = sampled({name: lambda path=path: start(path) for name, path in programs.items()}, scale.starts)
    report.heading(f"From a program's spawn to its end, PROGRAM --version, {scale.starts} times in turns, ms")
    report.line()
    report.line("Before: the build tree that DRARUN_BEFORE names." if before else
                "Nothing to compare with: DRARUN_BEFORE may name another build tree, such as one with -DDRARUN_STATIC=OFF.")
    report.table(["program", *SPREAD_COLUMNS, "goal", "verdict"])
    for name, values in times.items():
        cells = report.spread(name, values)
        ours = not name.endswith(", before")
        report.row(name, *cells, GOAL_MS if ours else "-", report.verdict(f"{name}, median ms", float(cells[0]), GOAL_MS) if ours else "")
