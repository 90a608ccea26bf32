# SPDX-License-Identifier: Apache-2.0
"""Table "scale": many agents on this one machine, which all share its cores and memory. So times grow
with the number of messages of all agents together; a sound tree has an exponent of about 1, not 2."""
import json
import math
import tempfile
from pathlib import Path

from benchmarks.harness import stopwatch
from benchmarks.harness.launchers import BENCH, DRARUN
from benchmarks.launch.pmix import check
from benchmarks.harness.report import number

START_TIMEOUT = 300  # seconds: all agents share the cores
DEADLINE = 400
LEAST_MIB = 3072  # the machine is not ours alone: a job is ended before it is full
FENCES = 10
GOAL_EXPONENT = 1.5
GOAL_BYTES = 1.1

COLUMNS = ["agents", "ranks", "total s", "CPU s", "client init", "fence 128 B", "bare fence", "4 Gets, slowest",
           "launcher B / agent", "of it a fence", "largest process MiB", "memory used MiB"]


class Run:
    """One job. program: a client that prints px's line; {fences} in its words is replaced."""

    def __init__(self, agents, ranks, words, fences=FENCES):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            report = Path(folder) / "report"
            options = ["--start-timeout", START_TIMEOUT, "--workers", agents, "--report", report]
            words = [str(word).format(fences=fences) for word in words]
            command = DRARUN.command(ranks, *words)
            command[1:1] = map(str, options)
            self.sample = stopwatch.run(command, DRARUN.environment(), DEADLINE, LEAST_MIB)
            self.report = json.loads(report.read_text()) if report.exists() else {}
        if self.sample.good:
            self.sample.failure = check(ranks, fences)(self.sample)
        self.agents, self.ranks = agents, ranks
        self.bytes = self.report.get("launcher_bytes", 0) / agents

    def why(self):
        lines = [line for line in self.sample.err.splitlines() if line.startswith("drarun:")]
        return f"{self.sample.failure}: {lines[-1][:200]}" if lines else self.sample.failure


def run(report, scale):
    report.heading("Many agents on this machine")
    report.line()
    report.line("Milliseconds where nothing else is said; steps as in the table of PMIx. Light clients speak PMIx "
                "without libpmix and keep nothing (benchmarks/launch/light.c); agents alone have one PMI-1 client "
                f"each. Bare fence: mean of {FENCES}. Launcher bytes: sent and received by drarun, start to end, the "
                "ranks' own output of about 130 B each included; of it a fence: what another fence adds.")
    clients = [(4, 16), (16, 16), (16, 64), (32, 32)] + ([(64, 64)] if scale.large else [])
    alone = [(k, 1) for k in ([16, 64, 256, 1024] if scale.large else [16, 64, 256])]
    series(report, "Light PMIx clients", clients, [BENCH / "light", "4", "{fences}"])
    runs = series(report, "Agents alone", alone, [BENCH / "barrier", "{fences}"])
    growth(report, runs)


def series(report, title, sizes, words):
    report.line()
    report.line(f"### {title}")
    report.table(COLUMNS)
    runs = []
    for agents, each in sizes:
        this = Run(agents, agents * each, words)
        if not this.sample.good:
            report.row(agents, agents * each, f"failed: {this.why()}", *[""] * (len(COLUMNS) - 3))
            report.missed.append(f"scale, {title}, {agents} x {each}: {this.why()}")
            break
        runs.append(this)
        more = Run(agents, agents * each, words, FENCES * 11) if agents <= 64 else None
        show(report, this, more)
    return runs


def show(report, this, more):
    s = this.sample
    fence = "-"
    if more and more.sample.good:
        fence = number(max(0.0, more.bytes - this.bytes) / (FENCES * 10))
    report.row(this.agents, this.ranks, number(s.wall / 1e3), number(s.cpu / 1e3), number(s.init), number(s.fence),
               number(s.barrier), number(s.get), f"{this.bytes:.0f}", fence, number(s.maxrss_kib / 1024),
               s.available_mib - s.least_mib)


def growth(report, runs):
    """How times and bytes grow from the smallest to the largest number of agents."""
    if len(runs) < 2:
        return
    first, last = runs[0], runs[-1]
    report.table(["from", "to", "what", "value", "goal", "verdict"])
    for title, name in (("bare fence", "barrier"), ("fence 128 B", "fence")):
        exponent = (math.log(getattr(last.sample, name) / getattr(first.sample, name)) /
                    math.log(last.agents / first.agents))
        what = f"exponent of the {title} in the number of agents"
        report.row(first.agents, last.agents, what, number(max(exponent, 0)), GOAL_EXPONENT,
                   report.verdict(what, exponent, GOAL_EXPONENT))
    value = last.bytes / first.bytes
    what = "launcher's bytes an agent, largest to smallest"
    report.row(first.agents, last.agents, what, number(value), GOAL_BYTES, report.verdict(what, value, GOAL_BYTES))
