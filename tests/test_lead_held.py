# SPDX-License-Identifier: Apache-2.0
"""A launcher that cannot lead the job, or tell of its end, which it knows after a minute or more."""
import signal
import threading
import time

import pytest

from support.build import patience
from support.following import LEASE, MAP, Following, job_file, until
from support.registry import Registry, path_of
from test_cluster_controller import said
from test_lead import cancel, continues, is_told, replaced_launcher, written


def hold(following, number=0):
    """What another launcher writes that leads the job."""
    following.registry.put(LEASE, {"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": following.uid}]}, "spec": {
        "holderIdentity": "other_1", "leaseDurationSeconds": 60, "leaseTransitions": 0, "renewTime": f"2026-01-01T00:00:00.{number:06}Z"}})


def test_another_launcher_keeps_the_lease(drarun, following):
    """That one leads the job: nothing of it is changed, and the launcher ends as one that has lost the Lease."""
    registry, pod = following.registry, path_of("pods", "job-w-0")
    made = registry.wait(pod)
    ended = threading.Event()

    def renew(number=0):
        while not ended.wait(5):
            number += 1
            hold(following, number)
    hold(following)
    other = threading.Thread(target=renew)
    other.start()
    try:
        launcher = replaced_launcher(drarun, following, written(following))
        registry.put(pod, made)
        result = launcher.finish(200)
    finally:
        ended.set()
        other.join()
    assert result.rc == 128 + signal.SIGTERM and "another launcher (other_1) still holds the job's Lease and renews it after 90 s: it leads the job" in result.out, result
    assert pod in registry.objects and "status.json" not in registry.objects[MAP]["data"]
    assert registry.objects[LEASE]["spec"]["holderIdentity"] == "other_1"


def test_api_server_that_is_away(drarun, following):
    """Nobody can say whether the other one leads the job still: nothing of it is changed, and its Job makes another pod."""
    registry, pod = following.registry, path_of("pods", "job-w-0")
    made = registry.wait(pod)
    hold(following)
    launcher = replaced_launcher(drarun, following, written(following))
    registry.put(pod, made)
    until(registry, lambda: registry.reads[LEASE] > 1 or launcher.process.poll() is not None)
    held = registry.hold("GET", LEASE)
    result = launcher.finish(200)
    assert held.count > 0 and result.rc == 128 + signal.SIGTERM and "the job is left to the next launcher: " in result.out, result
    assert pod in registry.objects and "status.json" not in registry.objects[MAP]["data"]


def test_end_that_cannot_be_told_for_long(drarun, following):
    """As while a control plane is updated: nobody else knows of it, so the launcher stays until it is told."""
    registry, pod = following.registry, path_of("pods", "job-w-0")
    launcher = replaced_launcher(drarun, following, written(following))
    registry.wait(pod)
    registry.busy = {"PATCH", "DELETE"}
    cancel(registry)
    wait_for_word(launcher, '"event":"ended"', 200)  # who follows its log need not wait for the rest
    assert not is_told(registry) and pod in registry.objects
    registry.busy = set()
    result = launcher.finish(200)
    assert is_told(registry) and pod not in registry.objects, result
    assert '"event":"ended"' not in result.out and "deletes what remains" not in launcher.log + result.out, result


def wait_for_word(launcher, word, seconds=60):
    """Of its log."""
    end = time.monotonic() + patience(seconds)
    while word not in said(launcher, "stdout") and launcher.process.poll() is None:
        assert time.monotonic() < end, said(launcher, "stdout")
        time.sleep(0.1)
    assert word in said(launcher, "stdout"), said(launcher, "stdout")


def test_end_that_cannot_be_told_before_the_pod_must_go(drarun, tmp_path):
    """The launcher ends as the job did, within its pod's grace: its Job is then complete, or has failed, and makes no other launcher,
    which would run the job again."""
    failure = {"status": 3, "cause": {"kind": "exit", "exit": 3, "rank": 0, "worker": 0, "text": "rank 0 on worker 0 (a) exited with status 3"}}
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, restarts=1)])
        continues(following, attempt=1, phase="running", report=failure)
        registry.refused, registry.busy = {"DELETE"}, {"PATCH"}
        launcher = replaced_launcher(drarun, following, written(following))
        wait_for_word(launcher, "attempt 2 cannot be started")
        launcher.signal(signal.SIGTERM)
        result = launcher.finish(30)  # of a call that waits for its answer nothing is repeated for longer
        log = launcher.log + result.out
        assert result.rc == 3 and not is_told(registry), result
        assert "could not write the job's end" in log and log.count("deletes what remains") == 1 and '"event":"ended"' in log, log


def test_lease_is_lost_while_the_end_cannot_be_told(drarun, following):
    """Another launcher leads the job: nothing of that is deleted."""
    registry, pod = following.registry, path_of("pods", "job-w-0")
    launcher = replaced_launcher(drarun, following, written(following))
    registry.wait(pod)
    until(registry, lambda: LEASE in registry.objects)
    registry.busy = {"PATCH"}
    cancel(registry)
    wait_for_word(launcher, "the job is cancelled")
    found = registry.objects[LEASE]
    registry.put(LEASE, {**found, "metadata": {**found["metadata"]}, "spec": {**found["spec"], "holderIdentity": "other_1", "leaseTransitions": 7}})
    result = launcher.finish(50)
    assert result.rc == 128 + signal.SIGTERM and "other_1 has taken it" in launcher.log + result.out, result
    assert pod in registry.objects and not is_told(registry)


def test_lease_is_lost_while_a_document_is_not_written(drarun, following):
    """The document is another launcher's by then: what this one had to say is not written over it."""
    registry = following.registry
    registry.busy = {"PATCH"}
    launcher = replaced_launcher(drarun, following, written(following))
    until(registry, lambda: LEASE in registry.objects)
    time.sleep(5)  # it has something to write after 2 s
    found = registry.objects[LEASE]
    registry.put(LEASE, {**found, "metadata": {**found["metadata"]}, "spec": {**found["spec"], "holderIdentity": "other_1", "leaseTransitions": 7}})
    wait_for_word(launcher, "other_1 has taken it")
    registry.busy = set()
    result = launcher.finish(50)
    assert result.rc == 128 + signal.SIGTERM, result
    assert "status.json" not in registry.objects[MAP]["data"]
