# SPDX-License-Identifier: Apache-2.0
"""drarun-bench on the GPUs of this machine, beside nccl-tests."""
from benchmarks.harness.command import Family

from . import beside


class Scale:
    """rounds: starts of each program; largest: of the messages, as nccl-tests writes it; whole: of the one of which a start is timed."""

    def __init__(self, rounds, largest="1G", whole="4G"):
        self.rounds, self.largest, self.whole = rounds, largest, whole


FAMILY = Family("drarun-bench beside nccl-tests",
                "All GPUs of this machine, with one NCCL and one CUDA runtime for both: drarun-bench with a rank for each GPU, nccl-tests with a "
                "thread for each (`-t`), {rounds} in turns, the order reversed every other round. us, the mean of 20 calls; of a start one "
                "value a size. Data are checked in each. Goal: within 5 % of nccl-tests' time.",
                {"usual": Scale(9), "smoke": Scale(1, "16M", "16M"), "full": Scale(31, "8G", "8G")},
                {**{name: beside.table(name) for name in beside.NAMES}, "whole": beside.whole}, programs=["bin/drarun", "bin/drarun-bench"])
