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

pytestmark = pytest.mark.plain("what is timed has no sanitizer in it")

SCALE = Scale(5, (Pace(128, 18), Pace(64, 12)), largest=17)
EACH, ALL = 1.25, 1.1  # of a size; of the sizes of a collective


def measured(name):
    """{size: our time over IMB's, the median of the starts}"""
    samples = Beside(name).sample(SCALE.rounds, SCALE)
    ratios = {size: statistics.median(a / b for a, b in zip(samples["ours"][size], samples["imb"][size])) for size in samples["ours"]}
    assert len(ratios) == 1 if name == "barrier" else len(ratios) >= 14, ratios
    return ratios


def outside(ratios):
    """The sizes that are, and "all" where their median is."""
    return {size for size, value in ratios.items() if not 1 / EACH < value < EACH} | (
        set() if 1 / ALL < statistics.median(ratios.values()) < ALL else {"all"})


@pytest.mark.parametrize("name", SAME)
def test_times_are_those_of_imb(name):
    """Once more where they are not: what else the machine does meanwhile does not choose the same size twice."""
    first = measured(name)
    if outside(first):
        second = measured(name)
        assert not outside(first) & outside(second), (first, second)
