# SPDX-License-Identifier: Apache-2.0
"""What the cluster does to a running job on two real nodes: said once as the first cause, and tried again."""
import re
import time

from support.build import SLOWER
from support.cluster import Cluster
from support.cluster_jobs import Running, in_namespace

LOST_S = 15
# says "saved" when it is told to end
SAVES = ["sh", "-c", 'trap "echo rank $RANK saved; exit 0" TERM; echo up; while :; do sleep 0.1; done']
SLEEPS = ["sh", "-c", "echo up; exec sleep 1000"]


def evict(jobs, pod):
    path = jobs.cluster.api.path("v1", "Pod", jobs.namespace.name, pod)
    jobs.cluster.api.ok("POST", f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {
        "name": pod, "namespace": jobs.namespace.name}})


def test_eviction_gives_every_rank_its_grace(jobs):
    job = Running(jobs, "--here", workers=2, command=SAVES).wait_lines(2)
    evict(jobs, "job-w-1")
    result = job.ended()
    assert result.rc == 70, result
    assert sorted(result.out.split("\n")) == ["", "rank 0 saved", "rank 1 saved", "up", "up"], result
    assert re.search(r"worker 1 \(job-w-1 on n\d\) was evicted", result.err), result


def test_deleted_pod_is_the_cause(jobs):
    job = Running(jobs, "--here", workers=2, command=SAVES).wait_lines(2)
    jobs.cluster.api.delete("v1", "Pod", "job-w-0", jobs.namespace.name)
    result = job.ended()
    assert result.rc == 70 and "worker 0 (job-w-0 on n" in result.err and "was deleted" in result.err, result
    assert "rank 1 saved" in result.out, result


def test_oom_kill_is_the_cause(jobs):
    hog = ["sh", "-c", "[ $RANK = 0 ] && sleep 1000; x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo $x | wc -c"]
    template = {"spec": {"containers": [{"name": "main", "image": "localhost/busybox:1", "command": hog,
                                         "resources": {"limits": {"memory": "64Mi"}}}]}}
    result = jobs.run("--here", workers=2, template=template)
    assert result.rc == 137 and "OOM" in result.err and "worker 1" in result.err, result


def test_restart_keeps_its_claims_and_tells_its_history(jobs):
    once = ["sh", "-c", "echo attempt $DRARUN_ATTEMPT; exec sleep 1000"]
    job = Running(jobs, "--here", workers=2, command=once, restarts=1)
    job.wait_running()
    evict(jobs, "job-w-0")
    job.wait_running(attempt=2)
    status = jobs.status()
    assert status["restarts"] == 1 and status["history"][0]["cause"]["end"] == "evicted", status
    evict(jobs, "job-w-0")
    result = job.ended()
    assert result.rc == 70 and "attempt 2 follows (1 of 1 restarts)" in result.err, result


def test_cancel_of_a_job_led_from_here(jobs):
    job = Running(jobs, "--here", workers=2, command=SAVES).wait_lines(2)
    jobs.verb("cancel", "job").ok()
    result = job.ended()
    assert result.rc == 130, result


def test_total_deadline_under_running_ranks(jobs):
    result = jobs.run("--here", command=SLEEPS, timeouts={"total": "15s"})
    assert result.rc == 124 and "spec.timeouts.total" in result.err, result


def test_events_tell_the_course(jobs):
    jobs.run(command=["true"]).ok()
    events = jobs.cluster.api.ok("GET", f"/api/v1/namespaces/{jobs.namespace.name}/events")["items"]
    told = [each["reason"] for each in events if each["reportingComponent"] == "drarun.dev/launcher"]
    assert sorted(told) == ["Started", "Succeeded"], told


def test_silent_node_is_lost_within_15_s(drarun, tmp_path):
    with Cluster(nodes=2) as cluster, in_namespace(cluster, drarun, tmp_path, "lost") as jobs:
        job = Running(jobs, "--here", workers=2, command=SLEEPS).wait_lines(2)
        lost = cluster.api.get("v1", "Pod", "job-w-1", jobs.namespace.name)["spec"]["nodeName"]
        began = time.monotonic()
        next(each for each in cluster.nodes if each.name == lost).cut()
        result = job.ended()
        assert result.rc == 70 and "lost with its node" in result.err, result
        assert job.at - began < LOST_S + 5 * SLOWER, job.at - began
