# SPDX-License-Identifier: Apache-2.0
"""Times and API requests of jobs on a real Kubernetes of two nodes, beside plain Jobs."""
from benchmarks.harness.command import Family

from . import counts, kept, reaction, start
from . import scale as scaling
from .bed import Bed


class Scale:
    """rounds: of every row. workers: numbers of them that are timed; counted: whose requests are counted.
    events: deletions that are answered; losses: of a node; scaled: workers on nodes that are objects only."""

    def __init__(self, rounds, workers, counted, events, losses, scaled):
        self.rounds, self.workers, self.counted, self.events = rounds, workers, counted, events
        self.losses, self.scaled = losses, scaled


FAMILY = Family(
    "Jobs on a cluster", "Two real nodes of tests/support/cluster on this machine; {rounds} in turns, the order reversed "
    "every other round.",
    {"usual": Scale(7, [2, 4, 8], [1, 8, 16], 50, 2, [500, 1000]), "smoke": Scale(1, [2], [1], 2, 0, [50]),
     "quick": Scale(3, [2, 4, 8], [1, 8], 20, 1, [500]), "full": Scale(15, [2, 4, 8], [1, 8, 16], 200, 5, [500, 1000])},
    on_bed={"start": start.run, "requests": counts.run, "reaction": reaction.run, "scale": scaling.run, "kept": kept.run}, bed=Bed)
