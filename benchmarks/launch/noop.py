# SPDX-License-Identifier: Apache-2.0
"""Table "noop": a program that does nothing, so that the launcher's own time is left."""
from benchmarks.harness.launchers import BENCH, DRARUN, FLOOR, HYDRA, OPENMPI4, OPENMPI5
from benchmarks.harness.stopwatch import Contender, interleave
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS, middle

GOALS = {HYDRA.name: 1.0, OPENMPI5.name: 0.35, OPENMPI4.name: 0.25, FLOOR.name: None}
SIZES = [1, 8, 64, 256]
DEADLINE = {1: 8, 8: 8, 64: 8, 256: 15}  # seconds, after which a run counts as hung


def run(report, scale):
    report.heading("No-op program, one agent")
    report.line()
    report.line("Wall time in ms from the launcher's spawn to its end; CPU is of the whole job. The program "
                "is static and does nothing. The posix_spawn loop redirects stdio as launchers do. "
                "A run that takes 8 s (N = 256: 15 s) counts as hung.")
    launchers = [launcher for launcher in (FLOOR, DRARUN, HYDRA, OPENMPI5, OPENMPI4)
                 if not skipped(report, launcher)]
    rows = []
    report.table(["N", "launcher", *SPREAD_COLUMNS, "CPU", "failed / hung"])
    for ranks in SIZES:
        contenders = [Contender(launcher, ranks, BENCH / "nop") for launcher in launchers]
        interleave(contenders, scale.rounds if ranks < 256 else max(5, scale.rounds // 2), DEADLINE[ranks])
        for c in contenders:
            report.row(ranks, c.name, *report.spread(f"{ranks} ranks, {c.name}", c.values("wall")), middle(c.values("cpu")),
                       report.bad(f"no-op, N = {ranks}", c, c.name == DRARUN.name))
        rows.append((ranks, contenders))
    report.table(["N", "drarun against", *RATIO_COLUMNS])
    for ranks, contenders in rows:
        ours = next(c for c in contenders if c.name == DRARUN.name)
        for c in contenders:
            if c is not ours:
                what = f"no-op, N = {ranks}, against {c.name}"
                report.row(ranks, c.name, *report.ratio(what, ours.values("wall"),
                                                       c.values("wall"), GOALS[c.name]))


def skipped(report, launcher):
    reason = launcher.reason_missing()
    if reason:
        report.line()
        report.line(f"Skipped: {launcher.name}: {reason}")
    return reason
