# SPDX-License-Identifier: Apache-2.0
"""Launch times, PMIx times, scale and memory of drarun beside its peers."""
from benchmarks.harness.command import Family

from . import crowded, memory, mpi, noop, output, pmix, spawn, strangers
from . import scale as sizes


class Scale:
    """rounds: repetitions of a row. large: take the time for the largest sizes."""

    def __init__(self, rounds, large):
        self.rounds, self.large = rounds, large


FAMILY = Family(
    "Launch benchmarks", "Each row was measured in one go, {rounds} in the order ABBA; large N half of that. Ratios are of "
    "medians, with a 95 % bootstrap interval.",
    {"usual": Scale(15, True), "smoke": Scale(1, False), "quick": Scale(5, False), "full": Scale(41, True)},
    {"noop": noop.run, "mpi": mpi.run, "crowded": crowded.run, "spawn": spawn.run, "output": output.run, "pmix": pmix.run, "strangers": strangers.run,
     "scale": sizes.run, "memory": memory.run},
    programs=["bin/drarun", "bin/bench/stopwatch"])
