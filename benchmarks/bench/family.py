# SPDX-License-Identifier: Apache-2.0
"""drarun-bench beside the Intel MPI Benchmarks, which measure the same calls of the same library."""
from benchmarks.harness.command import Family

from . import imb


class Pace:
    """calls of one size are timed together, cycles times in a start, in a share of the starts. Few calls: what interrupts one spoils few
    measurements. In multiples of 8 where they can be: Intel MPI's messages go through 8 places by turns, of which some are slower."""

    def __init__(self, calls, cycles, share=1.0):
        self.calls, self.cycles, self.share = calls, cycles, share


class Scale:
    """rounds: starts; paces: of small to large sizes (imb.EDGES); largest: bytes, as a power of two."""

    def __init__(self, rounds, paces, largest=26):
        self.rounds, self.paces, self.largest = rounds, paces, largest


PACES = (Pace(128, 40), Pace(64, 24), Pace(16, 16, 0.5), Pace(4, 10, 0.3))

FAMILY = Family("drarun-bench beside IMB-MPI1",
                "Intel MPI 2021, 2 ranks under drarun, bound to cores, floats, {rounds}: starts of IMB-MPI1, in whose processes drarun-bench "
                "measures the same before or after each of its measurements (same_process.c), with the same memory (same_memory.c) and communicator. Times are the mean of "
                "both ranks over the calls of a size, in us; of a start the midmean of its cycles counts, without the first third. "
                "Both synchronise as IMB does: a barrier after each call, outside of the time, but for sendrecv and barrier; both call as often "
                "before, untimed. Ratio: of each start, their median and its 95 % interval. Goal: within 5 %.",
                {"usual": Scale(15, PACES), "smoke": Scale(3, (Pace(128, 9), Pace(64, 6), Pace(16, 4)), 20), "full": Scale(60, PACES)},
                {name: imb.table(name) for name in imb.SAME}, programs=["bin/drarun", "benchmarks/bench-guest.so"])
