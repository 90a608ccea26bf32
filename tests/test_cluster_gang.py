# SPDX-License-Identifier: Apache-2.0
"""Jobs on a cluster whose scheduler places all workers of one or none (PodGroup). On one that has none of it the same jobs
are in test_cluster_waiting.py."""
import pytest

from support.cluster import Cluster
from support.cluster.machines import claimed

SAID_S = 30


@pytest.fixture(scope="session")
def cluster():
    with Cluster(nodes=2, gang=True, images=("busybox", "drarun")) as made:
        yield made


@pytest.fixture
def jobs(machines, jobs):
    return jobs


def allocated(jobs, name):
    return [each for each in jobs.cluster.api.get("resource.k8s.io/v1", "ResourceClaim", namespace=jobs.namespace.name)
            if each["metadata"]["name"].startswith(f"{name}-w") and "allocation" in each.get("status", {})]


def held_back(jobs, name):
    """The scheduler has looked at the group, and says why it waits."""
    gangs = jobs.cluster.plane.gangs
    group = jobs.cluster.api.get(gangs.version, "PodGroup", f"{name}-w", jobs.namespace.name)
    return [each["message"] for each in (group or {}).get("status", {}).get("conditions", ())
            if each["type"] == gangs.condition and each["status"] == "False"]


def waits(status):
    """What the status document says of it."""
    return ((status or {}).get("waiting") or {}).get("text", "")


@pytest.mark.parametrize("mode,claims", [(["--here"], "direct"), ([], "template")], ids=["here-direct", "pod-template"])
def test_gang_that_does_not_fit_holds_nothing_and_is_not_released(jobs, mode, claims):
    """Three workers of which two would find devices: the scheduler gives none to any before all three can have theirs."""
    first = jobs.drarun.start("run", jobs.file("first", workers=2, ranksPerWorker=1, command=["sleep", "1000"],
                                               devices=claimed(6, 6)), "--here", under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait("the first does not run", lambda: (jobs.status("first") or {}).get("phase") == "running", SAID_S)
    job = jobs.drarun.start("run", jobs.file("job", workers=3, ranksPerWorker=1, placement={"spread": "none"}, devices=claimed(
        2, 2, claims=claims, align="none"), command=["sh", "-c", "echo $RANK"]), *mode, under=jobs.cluster.under,
                            env=jobs.env)
    jobs.cluster.wait("its group is not held back", lambda: held_back(jobs, "job"), SAID_S)
    # longer than what a gang that holds devices is given (GANG_GRACE_MS), seen from where it is told
    jobs.cluster.wait(lambda: f"it is not told: {jobs.status()}", lambda: (jobs.status() or {}).get("phase") == "placing",
                      SAID_S)
    jobs.cluster.never("it holds devices, or was released", lambda: allocated(jobs, "job") or jobs.status()["tries"], 7)
    first.signal(2)
    first.finish(timeout=60)
    result = job.finish(timeout=60).ok()
    assert sorted(result.out.split()) == ["0", "1", "2"] and "are released" not in result.err, result
    assert jobs.status() is None or jobs.status()["tries"] == 0


def test_two_jobs_that_do_not_fit_together_both_finish(jobs):
    """Each wants every device of both nodes: one after the other."""
    spec = {"workers": 2, "ranksPerWorker": 1, "devices": claimed(8, 8, align="none"),
            "command": ["sh", "-c", "[ $RANK = 0 ] && echo done; exit 0"]}
    both = [jobs.drarun.start("run", jobs.file(name, **spec), "--here", under=jobs.cluster.under, env=jobs.env)
            for name in ("first", "second")]
    for each in both:
        result = each.finish(timeout=60).ok()
        assert result.out == "done\n" and "are released" not in result.err, result


@pytest.fixture
def urgent(cluster):
    """The name of a PriorityClass."""
    made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    cluster.api.make(made)
    yield "urgent"
    cluster.api.delete("scheduling.k8s.io/v1", "PriorityClass", "urgent")


def test_job_of_a_priority_class_starts(jobs, urgent):
    """Its group has the priority of its pods, which Kubernetes 1.37 and later refuse to schedule otherwise."""
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["sh", "-c", "echo $RANK"]}
    result = jobs.run(workers=2, ranksPerWorker=1,
                      template={"spec": {"priorityClassName": urgent, "containers": [container]}}).ok()
    assert sorted(result.out.split()) == ["0", "1"], result


def test_gang_that_does_not_fit_says_so_by_its_group(jobs):
    """Two nodes for three workers, one per node: two fit alone, and the scheduler's word about them is their group's."""
    refused = "PodGroup job-w cannot be scheduled (Unschedulable): "
    blocker = "no node has room for worker"
    job = jobs.drarun.start("run", jobs.file("job", workers=3, placement={"spread": "node"}, timeouts={"allocation": "15s"},
                                             command=["true"]), "--here", under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait(lambda: f"the launcher does not say it: {jobs.status()}", lambda: refused in waits(jobs.status()), SAID_S)
    said = jobs.verb("status", "job").ok().out
    assert refused in said and blocker in said, said
    result = job.finish(timeout=60)
    line, error = (next(each for each in result.err.splitlines() if word in each) for word in ("waiting ", "timeouts.allocation"))
    assert result.rc == 75 and refused in line and blocker in line and (refused in error or "2 nodes fit" in error), result
    assert "no node has room: pod group" not in result.err and "no node has room: minCount" not in result.err, result


def test_job_whose_own_group_is_not_there_says_so(jobs):
    """The scheduler says nothing at all of pods whose group does not exist, or wants more pods."""
    gangs, api = jobs.cluster.plane.gangs, jobs.cluster.api
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["sh", "-c", "echo $RANK"]}
    job = jobs.drarun.start("run", jobs.file("job", workers=2, template={"spec": {
        "schedulingGroup": {"podGroupName": "users"}, "containers": [container]}}), under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait(lambda: f"it is not told: {jobs.status()}",
                      lambda: "PodGroup users does not exist: create it" in waits(jobs.status()), SAID_S)
    assert "PodGroup users does not exist: create it" in jobs.verb("status", "job").ok().out
    api.make({"apiVersion": gangs.version, "kind": "PodGroup", "metadata": {"name": "users", "namespace": jobs.namespace.name},
              "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    try:
        result = job.finish(timeout=60).ok()
    finally:
        api.delete(gangs.version, "PodGroup", "users", jobs.namespace.name)
    assert sorted(result.out.split()) == ["0", "1"], result
