# SPDX-License-Identifier: Apache-2.0
"""drarun-bench beside the Intel MPI Benchmarks, which measure the same calls of the same library."""
from benchmarks.harness.command import Family

from . import imb


class Scale:
    """plan: calls of one size and how often a start measures all sizes, for small, middle and large ones; largest: bytes, as a
    power of two. Few calls: what interrupts one spoils few measurements, and the median leaves them out."""

    def __init__(self, rounds, plan, largest=26):
        self.rounds, self.plan, self.largest = rounds, plan, largest


FAMILY = Family("drarun-bench beside IMB-MPI1",
                "Intel MPI 2021, 2 ranks under drarun, floats, {rounds} of starts in turns, the order reversed every other round. Times are the "
                "mean of both ranks over the calls of a size, in us; the cells are medians over all cycles of all rounds. Both synchronise as IMB does: "
                "a barrier after each call, outside of the time, but for sendrecv and barrier; both call as often before, untimed. "
                "Goal: within 5 %.",
                {"usual": Scale(4, ((200, 40), (50, 20), (3, 3))), "smoke": Scale(1, ((20, 3), (5, 2), (1, 1)), 20),
                              "full": Scale(20, ((200, 40), (50, 40), (5, 8)))},
                {name: imb.table(name) for name in imb.SAME}, programs=["bin/drarun", "bin/drarun-bench"])
