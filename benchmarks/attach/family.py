# SPDX-License-Identifier: Apache-2.0
"""The NIC hook beside `ip`."""
from benchmarks.harness.command import Family

from . import moves


class Scale:
    def __init__(self, rounds):
        self.rounds = rounds


FAMILY = Family("The NIC hook", "{rounds} in turns, the order reversed every other round.",
                {"usual": Scale(10), "smoke": Scale(1), "full": Scale(41)}, {"moves": moves.run}, programs=["bin/drarun-attach"])
