# SPDX-License-Identifier: Apache-2.0
"""benchmarks/cluster in short: it runs, and what does not depend on the machine's speed holds."""
import sys

import pytest

from support.build import SOURCE

sys.path[:0] = [str(SOURCE / "benchmarks" / each) for each in ("cluster", "launch", ".")]

import counts  # noqa: E402
import reaction  # noqa: E402
import start  # noqa: E402
from bed import Bed  # noqa: E402
from launchers import Missing  # noqa: E402
from report import Report  # noqa: E402

pytestmark = pytest.mark.plain("times of a sanitizer build say nothing")


class Scale:
    """Of benchmarks/cluster/run --smoke, less the node's loss."""
    rounds, workers, counted, events, losses = 1, [2], [1], 2, 0


@pytest.fixture(scope="session")
def bed(cluster):
    try:
        made = Bed(cluster)
    except Missing as missing:
        pytest.skip(str(missing))
    with made:
        yield made


def test_times_of_one_round(bed):
    rows = start.measure(bed, 2, 1)
    assert not rows.failures
    assert all(len(values) == 1 and values[0] > 0 for values in rows.values.values()), rows.values
    for mode in start.MODES:
        assert f"{mode}: last rank's end to the prompt" in rows.values


def test_requests_for_one_job(bed):
    report = Report()
    counts.run(bed, report, Scale)
    assert not report.missed, "\n".join(report.lines + report.missed)


def test_reaction_to_a_deleted_pod(bed):
    report = Report()
    reaction.event_to_action(bed, report, Scale)
    assert "2 times" in "\n".join(report.lines)
