# SPDX-License-Identifier: Apache-2.0
"""Jobs that are suspended and resumed: by their spec, and by a queue, whose part the test plays."""
import json

import pytest


def suspend(cluster, namespace, name, value):
    path = cluster.api.path("batch/v1", "Job", namespace.name, name)
    cluster.api.ok("PATCH", path, {"spec": {"suspend": value}}, content="application/merge-patch+json")


def worker_job(jobs):
    """The uid of the worker Job that is there to be admitted, or None."""
    found = jobs.cluster.api.get("batch/v1", "Job", "job-w", jobs.namespace.name)
    return found["metadata"]["uid"] if found and "deletionTimestamp" not in found["metadata"] else None


def queued(jobs):
    """What carries the queue's label."""
    return [each for kind, api in (("Job", "batch/v1"), ("Pod", "v1"))
            for each in jobs.cluster.api.get(api, kind, namespace=jobs.namespace.name)
            if each["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name") == "team-a"]


def wait_phase(jobs, phase):
    jobs.cluster.wait(lambda: f"the job is not {phase}: {json.dumps(jobs.status())}",
                      lambda: (jobs.status() or {}).get("phase") == phase, 60)


def pods(jobs):
    return [each for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
            if "drarun.dev/worker" in each["metadata"]["labels"] or each["metadata"]["name"].startswith("job-w-")]


@pytest.mark.gate
def test_suspended_job_runs_when_it_is_resumed(jobs):
    """Its pods wait at our gate, which the launcher opens."""
    jobs.verb("submit", jobs.file(suspend=True, workers=2, command=["echo", "resumed"])).ok()
    jobs.cluster.wait("there are no gated pods", lambda: len(pods(jobs)) == 2, 30)
    assert all(each["spec"]["schedulingGates"] == [{"name": "drarun.dev/suspended"}] for each in pods(jobs))
    suspend(jobs.cluster, jobs.namespace, "job", False)
    assert jobs.verb("wait", "job").ok()
    assert jobs.verb("logs", "job").ok().out.count("resumed") == 2


def test_running_job_is_suspended_and_resumed(jobs):
    """Suspending the launcher's Job takes the workers back; the next launcher makes them again."""
    jobs.verb("submit", jobs.file(workers=2, command=["sleep", "1000"])).ok()
    wait_phase(jobs, "running")
    suspend(jobs.cluster, jobs.namespace, "job", True)
    jobs.cluster.wait("the workers of a suspended job stay", lambda: not pods(jobs), 60)
    suspend(jobs.cluster, jobs.namespace, "job", False)
    jobs.cluster.wait(lambda: f"the ranks do not run again: {jobs.status()}", lambda: len(pods(jobs)) == 2, 60)
    wait_phase(jobs, "running")
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


def test_queue_admits_and_takes_back(jobs):
    """As Kueue does: the worker Job alone is suspended, admitted, suspended again and admitted again."""
    jobs.verb("submit", jobs.file(queue="team-a", workers=2,
                                  command=["sh", "-c", "sleep ${SECONDS_TO_RUN:-1000}"])).ok()
    jobs.cluster.wait("no worker Job", lambda: worker_job(jobs), 30)
    wait_phase(jobs, "queued")
    assert "queue team-a has not admitted it" in jobs.verb("status", "job").ok().out
    assert [each["metadata"]["name"] for each in queued(jobs)] == ["job-w"]
    suspend(jobs.cluster, jobs.namespace, "job-w", False)
    wait_phase(jobs, "running")
    first = worker_job(jobs)
    suspend(jobs.cluster, jobs.namespace, "job-w", True)
    jobs.cluster.wait("the workers are not queued again", lambda: worker_job(jobs) not in (None, first), 60)
    wait_phase(jobs, "queued")
    suspend(jobs.cluster, jobs.namespace, "job-w", False)
    wait_phase(jobs, "running")
    assert jobs.status()["restarts"] == 0 and jobs.status()["attempt"] == 2
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


def test_queue_deadline_names_the_queue(jobs):
    result = jobs.run("--here", queue="team-a", workers=1, command=["true"],
                      timeouts={"queue": "2s"})
    assert result.rc == 75 and "queue team-a has not admitted it" in result.err
