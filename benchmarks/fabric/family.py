# SPDX-License-Identifier: Apache-2.0
"""What it costs to open NICs and to try whether they reach each other, before a job's ranks start."""
from benchmarks.harness.command import Family

from . import reaching, starting


class Scale:
    def __init__(self, rounds):
        self.rounds = rounds


FAMILY = Family("NICs before the ranks",
                "Soft-RoCE in a guest that QEMU emulates, so that only ratios mean something; {rounds} in turns, the order reversed every other round.",
                {"usual": Scale(15), "smoke": Scale(1), "full": Scale(41)},
                {"open": starting.opening, "start": starting.run, "reach": reaching.run},
                programs=["bin/drarun", "bin/drarun-worker"])
