# SPDX-License-Identifier: Apache-2.0
"""Counts outcomes, and puts them into markdown."""
from collections import Counter

CLASSES = ["hung", "wrong status", "orphans", "files left", "output lost", "wrong report", "sanitizer"]


class Tally:
    def __init__(self):
        self.launches, self.kinds, self.problems = 0, Counter(), Counter()
        self.seconds, self.bad, self.slowest = [], [], None

    def add(self, outcome):
        self.launches += 1
        self.kinds[outcome.plan.kind] += 1
        self.seconds.append(outcome.seconds)
        if not self.slowest or outcome.seconds > self.slowest.seconds:
            self.slowest = outcome
        for kind in {kind for kind, _ in outcome.problems}:
            self.problems[kind] += 1
        if outcome.problems:
            self.bad.append(outcome)

    @property
    def good(self):
        return not self.bad

    def cells(self):
        ordered = sorted(self.seconds) or [0]
        return [self.launches, *(self.problems[c] for c in CLASSES if c != "sanitizer"),
                f"{1e3 * ordered[len(ordered) // 2]:.0f}", f"{1e3 * ordered[-1]:.0f}"]

    def bound(self):
        """The 95 % upper bound for the part of launches that go wrong, when none did."""
        return f"{300 / self.launches:.2g} %" if self.launches and self.good else "-"


COLUMNS = ["launches", *(c for c in CLASSES if c != "sanitizer"), "median ms", "max ms"]


def table(rows):
    yield "| | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 1) + "|"
    for title, tally in rows:
        yield f"| {title} | " + " | ".join(map(str, tally.cells())) + " |"


def describe(outcome):
    yield f"- {outcome.launcher}: {outcome.plan}"
    for kind, text in outcome.problems:
        yield f"  {kind}: " + text.replace("\n", "\n    ")
    if outcome.note:
        yield "    stderr: " + outcome.note.strip().replace("\n", "\n    ")


def details(tally, most=10):
    for outcome in tally.bad[:most]:
        yield from describe(outcome)
    if len(tally.bad) > most:
        yield f"- and {len(tally.bad) - most} more"
