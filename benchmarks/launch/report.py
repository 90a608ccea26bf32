# SPDX-License-Identifier: Apache-2.0
"""Markdown of what was measured, to the terminal as it grows and to a file at the end."""
import datetime
import os
import platform

from measure import Spread, ratio


class Report:
    def __init__(self):
        self.lines, self.missed, self.held = [], [], 0

    def line(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def heading(self, text):
        self.line()
        self.line(f"## {text}")

    def table(self, columns):
        self.line()
        self.line("| " + " | ".join(columns) + " |")
        self.line("|" + "---|" * len(columns))

    def row(self, *cells):
        self.line("| " + " | ".join(str(cell) for cell in cells) + " |")

    def verdict(self, what, value, goal):
        """The words for a goal of "at most", kept for the summary."""
        if value <= goal:
            self.held += 1
            return "met"
        self.missed.append(f"{what}: {number(value)}, goal {number(goal)}")
        return "**not met**"

    def machine(self, title, seconds_text):
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
        self.line(f"# {title}")
        self.line()
        self.line(f"{datetime.date.today()}, {os.cpu_count()} x {model}, Linux {platform.release()}, "
                  f"load average at the start {os.getloadavg()[0]:.1f}. {seconds_text}")

    def summary(self):
        self.heading("Goals")
        self.line()
        self.line(f"{self.held} met, {len(self.missed)} not met.")
        for text in self.missed:
            self.line(f"- not met: {text}")

    def write(self, path):
        with open(path, "w") as file:
            file.write("\n".join(self.lines) + "\n")


def number(value):
    """Three digits that matter."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


SPREAD_COLUMNS = ["median", "min", "p25-p75", "max"]


def spread_cells(values):
    if not values:
        return ["-"] * 4
    s = Spread(values)
    return [number(s.median), number(s.min), f"{number(s.p25)}-{number(s.p75)}", number(s.max)]


def ratio_cells(report, what, ours, theirs, goal):
    """Ratio, its interval, goal and verdict; goal None: only for information."""
    if not ours or not theirs:
        if goal is not None and not ours:
            report.missed.append(f"{what}: no run of ours succeeded")
        return ["-", "-", "-" if goal is None else number(goal), "-"]
    value, low, high = ratio(ours, theirs)
    return [number(value), f"{number(low)}-{number(high)}", "-" if goal is None else number(goal),
            "" if goal is None else report.verdict(what, value, goal)]


RATIO_COLUMNS = ["ratio", "95 %", "goal", "verdict"]


def count_bad(report, what, contender, ours):
    """"F / H" failed and hung; one of ours is a goal missed."""
    if ours and contender.bad:
        reason = contender.first_failure() or "hung"
        report.missed.append(f"{what}: {contender.failed} failed and {contender.hung} hung ({reason})")
    return f"{contender.failed} / {contender.hung}"
