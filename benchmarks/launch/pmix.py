# SPDX-License-Identifier: Apache-2.0
"""Table "pmix": the same PMIx client under four servers."""
import contextlib

from benchmarks.harness.launchers import BENCH, DRARUN, OPENMPI4, OPENMPI5, Missing
from benchmarks.harness.stopwatch import Contender, interleave
from benchmarks.launch.noop import skipped
from benchmarks.harness.report import RATIO_COLUMNS, middle, quarters
from benchmarks.launch.slurm import Slurm

RANKS = 64
BARRIERS = 20
DEADLINE = 30


def check(ranks, barriers):
    """Adds init, fence, get, get_median, both and barrier, in ms, to a sample."""
    def check_sample(sample):
        lines = [line.split() for line in sample.out.splitlines() if line.startswith("px ")]
        if len(lines) != ranks or {int(words[1]) for words in lines} != set(range(ranks)):
            return f"{len(lines)} of {ranks} ranks reported"
        if any(int(words[2]) != ranks for words in lines):
            return "ranks in jobs of their own"
        columns = list(zip(*([int(word) for word in words[3:]] for words in lines)))
        main, init, put, fenced, got, begin, end, _ = columns
        gets = sorted(b - a for a, b in zip(fenced, got))
        sample.init = max(b - a for a, b in zip(main, init)) / 1e6
        sample.fence = (max(fenced) - max(put)) / 1e6
        sample.get, sample.get_median = gets[-1] / 1e6, gets[len(gets) // 2] / 1e6
        sample.both = (max(got) - max(put)) / 1e6
        sample.barrier = (max(end) - max(begin)) / 1e6 / max(barriers, 1)
        return ""
    return check_sample


def run(report, scale):
    report.heading(f"PMIx client, {RANKS} ranks, one node")
    report.line()
    report.line(f"Milliseconds, medians with p25-p75. Init: slowest rank's PMIx_Init. Fence: with 128 B a rank, "
                f"from the last rank's entry to the last rank's return. Gets: {RANKS} of 128 B, slowest and median "
                f"rank, data checked. Fence + Gets: from the last entry to the last rank's last Get. Bare fence: "
                f"mean of {BARRIERS} in a row. The client is the same program with Debian's libpmix everywhere.")
    if not (BENCH / "px").exists():
        report.line("Skipped: no PMIx client: run scripts/setup --bench and build again")
        return
    with contextlib.ExitStack() as stack:
        launchers = [each for each in (DRARUN, OPENMPI4, OPENMPI5) if not skipped(report, each)]
        try:
            launchers.append(stack.enter_context(Slurm()).launcher)
        except Missing as missing:
            report.line()
            report.line(f"Skipped: srun: {missing}")
        contenders = [Contender(each, RANKS, BENCH / "px", "all", BARRIERS, check=check(RANKS, BARRIERS))
                      for each in launchers]
        interleave(contenders, scale.rounds, DEADLINE)
    show(report, contenders)


def show(report, contenders):
    ours, peers = contenders[0], contenders[1:]
    columns = [("init", "PMIx_Init"), ("fence", "fence"), ("get", "Gets, slowest"),
               ("get_median", "Gets, median rank"), ("both", "fence + Gets"), ("barrier", "bare fence"),
               ("wall", "total")]
    report.table(["server", *(title for _, title in columns), "failed / hung"])
    for c in contenders:
        cells = [f"{middle(c.values(key))} ({quarters(c.values(key))})" for key, _ in columns]
        report.row(c.name, *cells, report.bad("PMIx", c, c is ours))
    report.table(["what", "best peer", *RATIO_COLUMNS])
    goals = {"fence": 1.0, "get": 1.0, "both": 1.0}
    for key, title in columns:
        usable = [c for c in peers if c.samples]
        if not usable:
            continue
        best = min(usable, key=lambda c: sorted(c.values(key))[len(c.samples) // 2])
        report.row(title, best.name, *report.ratio(f"PMIx, {RANKS} ranks, {title}, against {best.name}",
                                                  ours.values(key), best.values(key), goals.get(key)))
