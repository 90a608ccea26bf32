# SPDX-License-Identifier: Apache-2.0
"""What a launcher pays for a change of one worker of many, beside a registry of objects instead of a cluster."""
import json
import signal
import time
from pathlib import Path

import pytest

from support.build import patience
from support.registry import Registry, path_of

JOB_MAP = path_of("configmaps", "job-status")
FEW, MANY = 50, 1000
CHANGES = 500
PAUSE_S = 0.002  # so that each is a turn of the launcher's loop
LAST = "the last change"
GROWTH = 3  # times, for 20 times as many workers


def cpu_us(pid):
    """That the process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1000


def change(registry, worker, why):
    path = path_of("pods", f"job-w-{worker}")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": f"0/4 nodes are available: {why}."}
    registry.put(path, {**registry.objects[path], "status": {"phase": "Pending", "conditions": [condition]}})


def status_has(registry, text):
    return text in registry.objects[JOB_MAP].get("data", {}).get("status.json", "")


def wait(registry, what, there):
    with registry.changed:
        assert registry.changed.wait_for(there, patience()), what


def cost_of_a_change(drarun, folder, workers):
    """Of its pods, which wait for a node; microseconds of the launcher's CPU."""
    file = folder / f"{workers}.json"
    file.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": workers, "image": "a", "command": ["true"]}}))
    with Registry().serving() as registry:
        job = drarun.start("run", "--here", file, env={"KUBECONFIG": registry.kubeconfig(folder), "DRARUN_IMAGE": "a"})
        wait(registry, "not all pods are made", lambda: sum("/pods/" in path for path in registry.objects) == workers)
        for worker in range(workers):
            change(registry, worker, "no room")
        wait(registry, "it does not see that no node has room", lambda: status_has(registry, "no room"))
        before = cpu_us(job.pid)
        for i in range(CHANGES):
            change(registry, i * 7 % workers, "no room")
            time.sleep(PAUSE_S)
        change(registry, 0, LAST)
        wait(registry, "it does not see the last change", lambda: status_has(registry, LAST))
        used = cpu_us(job.pid) - before
        job.signal(signal.SIGTERM)
        job.finish(60)
    return used / CHANGES


@pytest.mark.plain("processor time of the plain build is the measure")
def test_work_per_change_does_not_grow_with_the_job(drarun, tmp_path):
    few, many = (cost_of_a_change(drarun, tmp_path, workers) for workers in (FEW, MANY))
    print(f"{few:.0f} us of {FEW} workers, {many:.0f} us of {MANY}")
    assert many < GROWTH * few, f"{few:.0f} us of {FEW} workers, {many:.0f} us of {MANY}"
