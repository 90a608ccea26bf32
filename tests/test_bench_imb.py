# SPDX-License-Identifier: Apache-2.0
"""drarun-bench's times beside those of IMB-MPI1, in the same processes: benchmarks/run bench, with few measurements and a wide goal.
What differs by a method, and not by some per cent, shows: warm-up calls without the barriers of the timed ones made a reduce of 64 bytes
take 1.3 of IMB's time, the buffers' place up to 3.5."""
import statistics
import sys

import pytest

from support.build import SOURCE

sys.path.insert(0, str(SOURCE))

from benchmarks.bench.family import Pace, Scale  # noqa: E402
from benchmarks.bench.imb import SAME, Beside  # noqa: E402

pytestmark = pytest.mark.timed

SCALE = Scale(4, (Pace(128, 18), Pace(64, 12)), largest=17)
EACH, ALL = 1.25, 1.1  # of a size; of the sizes of a collective
UNSTEADY = {("broadcast", 4096): 1.5}  # of one page: 1.0 to 1.4 from one run to the next, alike in all starts of a run


def measured(name):
    """{size: our time over IMB's, start by start}"""
    samples = Beside(name).sample(SCALE.rounds, SCALE)
    ratios = {size: [a / b for a, b in zip(samples["ours"][size], samples["imb"][size])] for size in samples["ours"]}
    assert len(ratios) == 1 if name == "barrier" else len(ratios) >= 14, ratios
    return ratios


def is_outside(ratios, limit):
    """In every start, on the same side: what else the machine does at a moment does not do that, a method does."""
    return min(ratios) > limit or max(ratios) < 1 / limit


@pytest.mark.parametrize("name", SAME)
def test_times_are_those_of_imb(name):
    ratios = measured(name)
    outside = {size: each for size, each in ratios.items() if is_outside(each, UNSTEADY.get((name, size), EACH))}
    of_all = [statistics.median(start) for start in zip(*ratios.values())]
    assert not outside and not is_outside(of_all, ALL), (outside, of_all)
