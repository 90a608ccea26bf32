# SPDX-License-Identifier: Apache-2.0
"""The command line that all benchmarks share, and what they do around their tables."""
import argparse
import contextlib
import sys
import time

from .launchers import BUILD
from .report import Report, counted
from .stopwatch import others


class Family:
    """What `benchmarks/run NAME` measures.

    title, text: how its report opens; {rounds} in the text becomes "11 rounds"
    tables:      {name: run(report, scale)}
    on_bed:      {name: run(bed, report, scale)}, in this order, on what the context manager bed() makes once for all
    scales:      {"usual": object with .rounds, "smoke": …}; each but the usual one is an option
    programs:    that must have been built, below the build tree
    """

    def __init__(self, title, text, scales, tables=None, on_bed=None, bed=contextlib.nullcontext, programs=("bin/drarun",)):
        self.title, self.text, self.scales, self.bed, self.programs = title, text, scales, bed, programs
        self.tables, self.on_bed = tables or {}, on_bed or {}

    def missing(self):
        return [BUILD / each for each in self.programs if not (BUILD / each).exists()]


def options_of(name, family, words):
    parser = argparse.ArgumentParser(prog=f"benchmarks/run {name}", description=family.title)
    how = parser.add_mutually_exclusive_group()
    for option, scale in family.scales.items():
        if option != "usual":
            how.add_argument(f"--{option}", action="store_const", dest="scale", const=scale, help=counted(scale.rounds, "round"))
    names = [*family.tables, *family.on_bed]
    parser.add_argument("--rounds", type=int, metavar="N", help=f"in place of {family.scales['usual'].rounds}")
    parser.add_argument("--only", action="append", choices=names, metavar="TABLE", help=f"one of {', '.join(names)}; may be repeated")
    parser.add_argument("--output", metavar="FILE", help="write the tables there too, as markdown")
    parser.add_argument("--json", metavar="FILE", help="write machine, tables and every sample there")
    return parser.parse_args(words)


def one(report, table, *arguments):
    table(*arguments)
    share = others.take()
    if share is not None:
        report.line()
        report.line(f"Other programs used {share:.0f} % of the CPUs meanwhile.")


def measure(family, report, scale, wanted):
    for name, table in family.tables.items():
        if name in wanted:
            one(report, table, report, scale)
    if any(name in wanted for name in family.on_bed):
        with family.bed() as bed:
            for name, table in family.on_bed.items():
                if name in wanted:
                    one(report, table, bed, report, scale)


def run(name, family, words):
    """The exit status: 1 when a goal is missed."""
    options = options_of(name, family, words)
    for program in family.missing():
        sys.exit(f"benchmarks/run: no {program}: build first, or set DRARUN_BUILD")
    scale = options.scale or family.scales["usual"]
    scale.rounds = options.rounds or scale.rounds
    report, began = Report(), time.monotonic()
    report.begin(family.title, family.text.format(rounds=counted(scale.rounds, "round")))
    measure(family, report, scale, options.only or [*family.tables, *family.on_bed])
    report.summary()
    report.line()
    report.line(f"Measured in {(time.monotonic() - began) / 60:.1f} minutes.")
    if options.output:
        report.write(options.output)
    if options.json:
        report.write_json(options.json)
    return 1 if report.missed else 0
