# SPDX-License-Identifier: Apache-2.0
"""Table "output": a gigabyte of lines that eight ranks write at once, read from the launcher's stdout."""
from benchmarks.harness.launchers import BENCH, DRARUN, HYDRA, OPENMPI4, OPENMPI5, Launcher
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS
from benchmarks.harness.stopwatch import Contender, interleave
from benchmarks.launch.noop import skipped

RANKS = 8
BYTES = 1_000_000_000
SMOKE_BYTES = 10_000_000
DEADLINE = 120
GOALS = {HYDRA.name: 1.3}


class Drained(Launcher):
    """A launcher whose output goes into drain."""

    def __init__(self, launcher):
        super().__init__(launcher.name, launcher.program, launcher.options, launcher.env)

    def command(self, ranks, *words):
        return [str(BENCH / "drain"), *super().command(ranks, *words)]


def check(least):
    def of(sample):
        words = next((line.split() for line in sample.out.splitlines() if line.startswith("drained ")), None)
        if not words:
            return "drain said nothing"
        got, talkers, _, sample.torn, sample.lost = (int(word) for word in words[1:])
        return "" if got >= least and talkers >= RANKS else f"{got} bytes of {talkers} ranks"
    return of


def tally(samples):
    """(torn lines, lost lines), of all runs."""
    torn = sum(sample.torn for sample in samples)
    return torn, "-" if torn else sum(sample.lost for sample in samples)


def run(report, scale):
    size = BYTES if scale.rounds > 1 else SMOKE_BYTES
    report.heading("Output")
    report.line()
    report.line(f"ms for {size / 1e9:g} GB of lines of 20 to 200 bytes, which {RANKS} ranks write in blocks, from the launcher's stdout into a pipe. Torn: lines that "
                "do not come as they were written; lost, where none is torn: lines that do not come; of all runs.")
    contenders = [Contender(Drained(launcher), RANKS, BENCH / "talk", size // RANKS, check=check(size))
                  for launcher in (DRARUN, HYDRA, OPENMPI5, OPENMPI4) if not skipped(report, launcher)]
    interleave(contenders, scale.rounds, DEADLINE)
    report.table(["launcher", *SPREAD_COLUMNS, "torn", "lost", "failed / hung"])
    for c in contenders:
        report.row(c.name, *report.spread(f"output, {c.name}", c.values("wall")), *tally(c.samples),
                   report.bad(f"output, {c.name}", c, c is contenders[0]))
    ours = contenders[0]
    report.table(["lines of drarun that are", "how many", "goal", "verdict"])
    for what in ("torn", "lost"):
        bad = sum(getattr(sample, what) for sample in ours.samples)
        report.row(what, bad, 0, report.verdict(f"lines {what}", bad, 0))
    report.table(["what", "against", *RATIO_COLUMNS])
    for c in contenders[1:]:
        report.row("output", c.name, *report.ratio(f"output, against {c.name}", ours.values("wall"), c.values("wall"), GOALS.get(c.name)))
