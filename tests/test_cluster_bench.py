# SPDX-License-Identifier: Apache-2.0
"""benchmarks/cluster and benchmarks/plugin in short: it runs, and what does not depend on the machine's speed holds."""
import sys

import pytest

from support.build import SOURCE

sys.path.insert(0, str(SOURCE))

from benchmarks.cluster import counts, reaction, start  # noqa: E402
from benchmarks.cluster.bed import Bed  # noqa: E402
from benchmarks.harness.launchers import Missing  # noqa: E402
from benchmarks.harness.report import Report  # noqa: E402
from benchmarks.plugin import agent, idle, pods, prepare, reuse  # noqa: E402
from benchmarks.plugin.node_bed import NodeBed  # noqa: E402

pytestmark = pytest.mark.plain("times of a sanitizer build say nothing")


class Scale:
    """Of benchmarks/run cluster --smoke, less the node's loss."""
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
    # whether a goal is met is the benchmark's to say
    assert not [each for each in report.missed if ", goal " not in each], "\n".join(report.lines + report.missed)
    assert sum(" direct " in line or " template " in line for line in report.lines) == 2 * len(Scale.counted), report.lines


def test_reaction_to_a_deleted_pod(bed):
    report = Report()
    reaction.event_to_action(bed, report, Scale)
    assert "2 times" in "\n".join(report.lines)


def test_pods_with_nics_and_the_kubelets_calls(cluster):
    with NodeBed(cluster) as bed:
        rows = pods.measure(bed, 1)
        assert all(len(values) == 1 and values[0] > 0 for values in rows.values()), rows
        assert reuse.turn(bed, 0) > 0
        assert all(0 < start < word for start, word in (agent.start(bed, way) for way in (agent.CLAIM, agent.COPY)))
        assert all(idle.measure(bed)[group]["Rss"] > 10 for group in ("code", "constants", "data", "heap", "stack"))
        try:
            times = prepare.measure(bed, 3)
        finally:
            bed.node.start_kubelet()
        assert len(times) == 3 and all(value > 0 for each in times for value in each.values()), times
