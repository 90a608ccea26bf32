# SPDX-License-Identifier: Apache-2.0
"""A launcher that cannot lead the job, or tell of its end, which it knows after a minute or more."""
import signal
import threading
import time

from support.following import LEASE, MAP, until
from support.registry import path_of
from test_lead import cancel, is_told, replaced_launcher, written


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
    registry.busy = {"PATCH"}
    cancel(registry)
    end = time.monotonic() + 70  # longer than a call is tried
    while launcher.process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    registry.busy = set()
    result = launcher.finish(200)
    assert is_told(registry), result
