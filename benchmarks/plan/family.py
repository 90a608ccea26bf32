# SPDX-License-Identifier: Apache-2.0
"""What planning costs."""
from benchmarks.harness.command import Family

from . import verbs


class Scale:
    def __init__(self, rounds):
        self.rounds = rounds


FAMILY = Family("Planning", "{rounds}.", {"usual": Scale(11), "smoke": Scale(1), "full": Scale(41)},
                {"verbs": verbs.verbs, "pairing": verbs.pairing}, programs=["bin/drarun", "bin/bench/pairing"])
