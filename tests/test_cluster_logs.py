# SPDX-License-Identifier: Apache-2.0
"""The launcher's log when its node rotates it: what `run`, `logs -f` and `logs` make of that."""
import contextlib
import json
import re

import pytest

from support.build import SLOWER
from support.cluster_jobs import Running
from support.timed import and_timed

LINES = 45000
SHORT = 100
MARK = 5000  # FRAMED_MARK_LINES of launcher/streams/framed.h
# about 4.5 MiB in eight seconds; the last line when the kubelet has looked at the rest, so that it stays
TALK = ["sh", "-c", f'i=0; while [ $i -lt {LINES} ]; do i=$((i+1)); [ $i != {LINES} ] || sleep {5 * SLOWER}; '
                    f'echo "line $i {"x" * 80}"; [ $((i % 600)) != 0 ] || sleep 0.1; done']


@contextlib.contextmanager
def kubelet_of(node, **settings):
    """The node's kubelet with other settings, for a while."""
    file = node.folder / "kubelet.yaml"
    before = file.read_text()

    def begin(text):
        file.write_text(text)
        node.kill_daemon("kubelet")
        node.start_kubelet()
        node.wait_ready()
    begin(json.dumps({**json.loads(before), **settings}))
    try:
        yield
    finally:
        begin(before)


@pytest.fixture(scope="module")
def rotating(cluster):
    with contextlib.ExitStack() as stack:
        for node in cluster.nodes:
            stack.enter_context(kubelet_of(node, containerLogMaxSize="1Mi", containerLogMaxFiles=2,
                                           containerLogMonitorInterval="3s"))
        yield


def numbers(result):
    return [int(line.split()[1]) for line in result.out.splitlines() if line.startswith("line ")]


def missing(result):
    """How many lines it says are missing; the launcher's own count, too."""
    return sum(map(int, re.findall(r"(\d+) lines of the log of job-\S+ are missing here: its node keeps", result.err)))


def is_accounted_for(result):
    got = numbers(result)
    assert got == sorted(set(got)), "out of order, or twice"
    assert 0 <= len(got) + missing(result) - LINES <= 2 * LINES / MARK + 5, (len(got), result.err)
    return got


@and_timed
def test_rotations_while_it_is_followed(jobs, rotating, timed):
    """Nothing is missing from what is read in time; what is read late has the end alone, and says so."""
    result = jobs.run(workers=1, command=TALK, timeout=120).ok()
    assert is_accounted_for(result)[-1] == LINES and (not timed or missing(result) == 0), result.err
    late = jobs.verb("logs", "job").ok()
    assert is_accounted_for(late)[-1] == LINES and missing(late) > 0, late.err
    again = jobs.verb("logs", "job", "--rank", "0").ok()
    assert again.out == late.out, (again.err, late.err)


def first_kept(jobs):
    """The number of the first line that the launcher's node still has."""
    files = f"/var/log/pods/{jobs.namespace.name}_job-*/launcher/*.log*"
    for node in jobs.cluster.nodes:
        if found := re.search(r"line (\d+) ", node.run(["sh", "-c", f"head -c 5000 $(ls -tr {files} | head -n 1)"]).stdout):
            return int(found[1])
    return 0


def test_connection_is_lost_while_the_log_is_rotated(jobs, rotating, jobs_proxy):
    """The log goes on behind the last line that was seen, or behind what the node no longer has."""
    job = Running(jobs, workers=1, env=jobs_proxy.env, command=TALK).wait_lines(5000, "line")
    jobs_proxy.down()
    jobs.cluster.wait(lambda: f"its node has the log from line {first_kept(jobs)} on", lambda: first_kept(jobs) > len(job.lines) + 100, 60)
    jobs_proxy.up()
    result = job.ended(90)
    assert result.rc == 0, result.err
    assert is_accounted_for(result)[-1] == LINES and missing(result) > 0, result.err


def test_log_breaks_off(jobs, jobs_proxy):
    """Every line comes once, wherever it breaks."""
    for after in (400, 1001, 1777):
        jobs_proxy.fault(lambda exchange, after=after: exchange.forward(cut_after=after), lambda _, path: "/log?" in path)
    result = jobs.run(workers=1, env=jobs_proxy.env, command=[
        "sh", "-c", f'for i in $(seq 1 {SHORT}); do echo line $i; [ $((i % 10)) != 0 ] || sleep 0.2; done'])
    assert numbers(result) == list(range(1, SHORT + 1)) and missing(result) == 0, result
    assert len([path for _, _, path, _ in jobs_proxy.requests if "/log?" in path]) >= 4
