# SPDX-License-Identifier: Apache-2.0
"""What was measured: as markdown to the terminal while it grows and to a file, and as JSON with all samples."""
import json

from . import machine
from .spread import Spread, ratio

SPREAD_COLUMNS = ["median", "95 %", "min", "p25-p75", "max"]
RATIO_COLUMNS = ["ratio", "95 %", "goal", "verdict"]


class Report:
    def __init__(self):
        self.lines, self.missed, self.held = [], [], 0
        self.machine, self.tables, self.samples = {}, [], []
        self._heading = ""

    def line(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def heading(self, text):
        self._heading = text
        self.line()
        self.line(f"## {text}")

    def table(self, columns):
        self.tables.append({"heading": self._heading, "columns": list(columns), "rows": []})
        self.line()
        self.line("| " + " | ".join(columns) + " |")
        self.line("|" + "---|" * len(columns))

    def row(self, *cells):
        self.tables[-1]["rows"].append([str(cell) for cell in cells])
        self.line("| " + " | ".join(str(cell) for cell in cells) + " |")

    def spread(self, what, values):
        """The cells of SPREAD_COLUMNS; the values themselves go to the JSON, by heading and what."""
        self.samples.append({"heading": self._heading, "what": what, "values": list(values)})
        return spread_cells(values)

    def verdict(self, what, value, goal):
        """The words for a goal of "at most", kept for the summary."""
        if value <= goal:
            self.held += 1
            return "met"
        self.missed.append(f"{what}: {number(value)}, goal {number(goal)}")
        return "**not met**"

    def ratio(self, what, ours, theirs, goal):
        """The cells of RATIO_COLUMNS; goal None: only for information."""
        if not ours or not theirs:
            if goal is not None and not ours:
                self.missed.append(f"{what}: no run of ours succeeded")
            return ["-", "-", "-" if goal is None else number(goal), "-"]
        value, low, high = ratio(ours, theirs)
        return [number(value), f"{number(low)}-{number(high)}", "-" if goal is None else number(goal),
                "" if goal is None else self.verdict(what, value, goal)]

    def bad(self, what, contender, ours):
        """"F / H" failed and hung; one of ours is a goal missed."""
        if ours and contender.bad:
            reason = contender.first_failure() or "hung"
            self.missed.append(f"{what}: {contender.failed} failed and {contender.hung} hung ({reason})")
        return f"{contender.failed} / {contender.hung}"

    def begin(self, title, text):
        self.machine = machine.describe()
        self.line(f"# {title}")
        self.line()
        self.line(f"{machine.sentence(self.machine)} {text}")

    def summary(self):
        self.heading("Goals")
        self.line()
        self.line(f"{self.held} met, {len(self.missed)} not met.")
        for text in self.missed:
            self.line(f"- not met: {text}")

    def write(self, path):
        with open(path, "w") as file:
            file.write("\n".join(self.lines) + "\n")

    def write_json(self, path):
        with open(path, "w") as file:
            json.dump({"machine": self.machine, "tables": self.tables, "samples": self.samples,
                       "goals": {"met": self.held, "missed": self.missed}}, file, indent=1)
            file.write("\n")


def counted(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def number(value):
    """Three digits that matter."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def spread_cells(values):
    if not values:
        return ["-"] * len(SPREAD_COLUMNS)
    s = Spread(values)
    return [number(s.median), f"{number(s.low)}-{number(s.high)}", number(s.min), f"{number(s.p25)}-{number(s.p75)}",
            number(s.max)]


def middle(values):
    """The median as a cell."""
    return spread_cells(values)[0]


def quarters(values):
    return spread_cells(values)[3]
