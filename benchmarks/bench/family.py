# SPDX-License-Identifier: Apache-2.0
"""drarun-bench beside the Intel MPI Benchmarks, which measure the same calls of the same library."""
from benchmarks.harness.command import Family

from . import imb


class Pace:
    """calls of one size are timed together, cycles times in a start; slice_s: of a turn, while both programs run, None: one start
    after the other. Few calls: what interrupts one spoils few measurements, and the median leaves them out."""

    def __init__(self, calls, cycles, slice_s):
        self.calls, self.cycles, self.slice_s = calls, cycles, slice_s


class Scale:
    """rounds: starts of both programs, many, since where a start's memory lies stays with it and is worth a fifth of a small call; paces: of small, middle and large sizes; largest: bytes, as a power of two."""

    def __init__(self, rounds, paces, largest=26):
        self.rounds, self.paces, self.largest = rounds, paces, largest


PACES = (Pace(100, 24, 0.02), Pace(30, 18, 0.1), Pace(3, 3, None))

FAMILY = Family("drarun-bench beside IMB-MPI1",
                "Intel MPI 2021, 2 ranks under drarun, bound to cores, floats, {rounds} of starts, the order reversed every other round. "
                "Below 512 KiB both run at once, by turns of 20 or 100 ms (slices.py); above one starts after the other. Both have the same "
                "memory (same_memory.c). Times are the mean of both ranks over the calls of a size, in us; of a start the median of its cycles "
                "counts, without the first third, and the cells are medians over the starts. Both synchronise as IMB does: "
                "a barrier after each call, outside of the time, but for sendrecv and barrier; both call as often before, untimed. "
                "Ratio: of the medians; of pairs: the median of the ratios of each round. Goal: within 5 %.",
                {"usual": Scale(12, PACES), "smoke": Scale(1, (Pace(20, 3, 0.02), Pace(5, 2, 0.1), Pace(1, 1, None)), 20), "full": Scale(100, PACES)},
                {name: imb.table(name) for name in imb.SAME}, programs=["bin/drarun", "bin/drarun-bench"])
