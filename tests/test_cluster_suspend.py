# SPDX-License-Identifier: Apache-2.0
"""Jobs that are suspended and resumed: by their spec, and by a queue, whose part the test plays."""
import json

import pytest


def suspend(cluster, namespace, name, value):
    path = cluster.api.path("batch/v1", "Job", namespace.name, name)
    cluster.api.ok("PATCH", path, {"spec": {"suspend": value}}, content="application/merge-patch+json")


ADMISSION = "admissionregistration.k8s.io/v1"
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture
def default_queue(jobs):
    """A policy as Kueue's webhook where the namespace has a LocalQueue called default: each Job is put into it, suspended."""
    api, name = jobs.cluster.api, jobs.namespace.name
    if not api.plural(ADMISSION, "MutatingAdmissionPolicy"):
        pytest.skip(f"no MutatingAdmissionPolicies in Kubernetes {jobs.cluster.plane.version}")
    label = QUEUE.replace("/", "~1")
    change = f'[JSONPatch{{op: "add", path: "/metadata/labels/{label}", value: "default"}}, JSONPatch{{op: "add", path: "/spec/suspend", value: true}}]'
    named = {"metadata": {"name": f"queue-{name}"}}
    api.make({"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicy", **named, "spec": {
                 "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {
                     "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                     "resourceRules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}]},
                 "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": change}}]}},
             {"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicyBinding", **named, "spec": {"policyName": f"queue-{name}"}})
    probe = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe", "namespace": name, "labels": {"a": "b"}},
             "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}
    jobs.cluster.wait("the policy does not work", lambda: api.create(probe, dry_run=True)[1].get("spec", {}).get("suspend"), 60)
    yield
    for kind in ("MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"):
        api.delete(ADMISSION, kind, f"queue-{name}")


def worker_job(jobs):
    """The uid of the worker Job that is there to be admitted, or None."""
    found = jobs.cluster.api.get("batch/v1", "Job", "job-w", jobs.namespace.name)
    return found["metadata"]["uid"] if found and "deletionTimestamp" not in found["metadata"] else None


def queued(jobs):
    """What carries the queue's label."""
    return [each for kind, api in (("Job", "batch/v1"), ("Pod", "v1"))
            for each in jobs.cluster.api.get(api, kind, namespace=jobs.namespace.name)
            if each["metadata"].get("labels", {}).get(QUEUE) == "team-a"]


def wait_phase(jobs, phase):
    jobs.cluster.wait(lambda: f"the job is not {phase}: {json.dumps(jobs.status())}",
                      lambda: (jobs.status() or {}).get("phase") == phase, 60)


def pods(jobs):
    return [each for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
            if "drarun.dev/worker" in each["metadata"]["labels"] or each["metadata"]["name"].startswith("job-w-")]


def admit_and_take_back(jobs):
    """The worker Job, and the next one."""
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
    admit_and_take_back(jobs)


def test_queue_on_the_hosts_network(jobs):
    """Where each worker has a node of its own, one port serves all of an Indexed Job."""
    pod = {"spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "ranks", "image": "localhost/busybox:1", "command": ["sh", "-c", "echo on the network of $DRARUN_NODE"]}]}}
    jobs.verb("submit", jobs.file(queue="team-a", workers=2, placement={"spread": "node"}, template=pod)).ok()
    jobs.cluster.wait("no worker Job", lambda: worker_job(jobs), 30)
    suspend(jobs.cluster, jobs.namespace, "job-w", False)
    jobs.verb("wait", "job").ok()
    assert sorted(jobs.verb("logs", "job").ok().out.splitlines()) == [f"on the network of {node}" for node in ("n0", "n1")]


def test_default_queue_holds_the_pods(jobs, default_queue):
    """Until Kueue admits the launcher's Job, which it put into the queue itself, the workers hold nothing."""
    jobs.verb("submit", jobs.file(workers=2, command=["echo", "admitted"])).ok()
    jobs.cluster.wait("there are no pods", lambda: len(pods(jobs)) == 2, 30)
    assert all(each["spec"].get("schedulingGates") == [{"name": "drarun.dev/suspended"}] for each in pods(jobs))
    assert "queue default has not admitted it" in jobs.verb("status", "job").ok().out
    suspend(jobs.cluster, jobs.namespace, "job", False)
    assert jobs.verb("wait", "job").ok()
    assert jobs.verb("logs", "job").ok().out.count("admitted") == 2


def test_default_queue_admits_and_takes_back_the_worker_job(jobs, default_queue):
    """It is in the queue as the launcher's Job is: the launcher leaves it to the queue."""
    jobs.verb("submit", jobs.file(devices={"claims": "template"}, workers=2, command=["sleep", "1000"])).ok()
    jobs.cluster.wait("no worker Job", lambda: worker_job(jobs), 30)
    suspend(jobs.cluster, jobs.namespace, "job", False)
    wait_phase(jobs, "queued")
    jobs.cluster.wait(lambda: f"the queue is not named: {jobs.status()}",
                      lambda: "queue default has not admitted it" in json.dumps(jobs.status().get("waiting")), 60)
    assert jobs.cluster.api.get("batch/v1", "Job", "job-w", jobs.namespace.name)["spec"]["suspend"]
    admit_and_take_back(jobs)


def test_queue_deadline_names_the_queue(jobs):
    result = jobs.run("--here", queue="team-a", workers=1, command=["true"],
                      timeouts={"queue": "2s"})
    assert result.rc == 75 and "queue team-a has not admitted it" in result.err
