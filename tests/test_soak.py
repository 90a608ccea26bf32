# SPDX-License-Identifier: Apache-2.0
"""A short scripts/soak: the same launches, fewer of them, from a fixed seed."""
import sys

from support.build import SLOW_BUILD, SOURCE

sys.path.insert(0, str(SOURCE))

from benchmarks.harness.launchers import BENCH  # noqa: E402
from benchmarks.soak import plan, run, summary  # noqa: E402

SEED = 20261121
LAUNCHES, KILLS = 420 // SLOW_BUILD, 80 // SLOW_BUILD


def carry_out(plans):
    pmix = (BENCH / "soak-rank-pmix").exists()
    tally = summary.Tally()
    for outcome in run.outcomes(each for each in plans if pmix or not each.pmix):
        tally.add(outcome)
    assert tally.good, "\n".join(["", *summary.details(tally)])
    assert tally.launches > 0


def test_launches():
    carry_out(plan.launches(SEED, LAUNCHES))


def test_launcher_and_agents_killed():
    carry_out(plan.kills(SEED, KILLS))
