# SPDX-License-Identifier: Apache-2.0
"""A job's launcher in the cluster: beside a registry of objects, with what others have made or changed before it leads."""
import json
import signal
import socket
import time

import pytest

from support.agents import Agents
from support.build import BUILD, patience
from support.following import JOB, LEASE, MAP, Following, environment, job_file, until
from support.registry import Registry, path_of
from support.run import UNREAD


def test_pod_of_an_earlier_job_leads_none(drarun, following):
    """A Job that was deleted, and made again at once, may leave a pod that starts beside the new one's."""
    registry, lease = following.registry, path_of("coordination.k8s.io/v1/leases", "job")
    following.pod(socket.gethostname(), "running", owner="uid-old")
    launcher = drarun.start("run", "--job", "job", env={**following.env, "DRARUN_KEY": "5a" * 32, "DRARUN_SECRET": "key"})
    until_led(registry, launcher, lambda: lease in registry.objects)
    assert lease not in registry.objects
    result = launcher.finish(20)
    assert result.rc == 69 and "is of an earlier Job job, which was deleted: it does not lead this job" in result.err, result


def replaced_launcher(drarun, following, document, earlier=False, **more):
    """A new launcher, after somebody who may write ConfigMaps but no pods has written that document."""
    registry = following.registry
    registry.remove(path_of("pods", "job-w-0"))
    found = registry.objects[MAP]
    registry.put(MAP, {**found, "data": {**found["data"], "job.json": json.dumps(document)}})
    given = {each["name"]: each.get("value") for each in registry.objects[JOB]["spec"]["template"]["spec"]["containers"][0]["env"]}
    names = {"DRARUN_SECRET", "DRARUN_DOCUMENT", "DRARUN_DOCUMENT_WORKERS"} - ({"DRARUN_DOCUMENT_WORKERS"} if earlier else set())
    return drarun.start("run", "--job", "job", env={**following.env, "DRARUN_KEY": "5a" * 32, **{name: given[name] for name in names}, **more})


def written(following):
    return json.loads(following.registry.objects[MAP]["data"]["job.json"])


def continues(following, attempt=2, **members):
    """What an earlier launcher has written of the job: the next one goes on from there."""
    found = following.registry.objects[MAP]
    document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "uid": following.uid, "phase": "placing",
                "attempt": attempt, **members}
    following.registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps(document)}})


def until_led(registry, launcher, there):
    """Until the launcher has done so, or has ended."""
    until(registry, lambda: launcher.process.poll() is not None or there())


def has_heard(pid, signo):
    """The signal is no longer pending."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return not next(int(line.split()[1], 16) for line in status if line.startswith("ShdPnd")) >> (signo - 1) & 1


def half_made(drarun, registry, folder, workers=10):
    """A job of which only worker 0's pod is there; the pods as they were created, by path."""
    following = Following(drarun, registry, folder, words=["run", job_file(folder, workers=workers)])
    paths = [path_of("pods", f"job-w-{i}") for i in range(workers)]
    made = {path: registry.wait(path) for path in paths}
    for path in paths[1:]:
        registry.remove(path)
    return following, made


@pytest.mark.parametrize("change", [
    {"image": "evil"}, {"command": ["sh"]}, {"restarts": 9}, {"workers": 2}, {"devices": {"gpus": {"count": 1, "class": "gpu.nvidia.com"}}},
    {"image": None, "command": None, "template": {"spec": {
        "serviceAccountName": "admin", "volumes": [{"name": "host", "hostPath": {"path": "/"}}], "containers": [
            {"name": "worker", "image": "a", "command": ["sh"], "volumeMounts": [{"name": "host", "mountPath": "/host"}]}]}}}],
    ids=["image", "command", "restarts", "workers", "devices", "template"])
def test_launcher_refuses_a_document_that_its_job_was_not_made_with(drarun, following, change):
    """A launcher may create pods, which whoever can write the ConfigMap need not be allowed to do. It creates none, and writes an Event
    of the Job."""
    registry, document = following.registry, written(following)
    document["spec"] = {key: value for key, value in {**document["spec"], **change}.items() if value is not None}
    launcher = replaced_launcher(drarun, following, document)

    def made():
        return [path for path in registry.objects if "/pods/" in path or "/leases/" in path or "/resourceclaims/" in path]
    until_led(registry, launcher, made)
    assert made() == []
    result = launcher.finish(20)
    assert result.rc == 65 and "ConfigMap job-status is not the document that Job job was made with" in result.err, result
    event = next(each for path, each in registry.objects.items() if "/events/" in path)
    assert (event["reason"], event["type"], event["involvedObject"]["uid"]) == ("DocumentRefused", "Warning", following.uid)
    expected = "it has 2 workers, expected 1" if "workers" in change else "expected sha256:"
    assert expected in event["message"] and "nothing was made" in event["message"]


@pytest.mark.parametrize("change, earlier", [({}, False), ({"suspend": False}, False), ({}, True)], ids=["keys", "suspend", "earlier"])
def test_launcher_takes_its_document_resumed(drarun, following, change, earlier):
    """And with its keys in another order. earlier: of a Job that an earlier release has made, which does not tell how many workers."""
    registry, document = following.registry, written(following)
    document["spec"] = {**change, **dict(reversed(document["spec"].items())), **change}
    launcher = replaced_launcher(drarun, following, dict(reversed(document.items())), earlier)
    until_led(registry, launcher, lambda: LEASE in registry.objects)
    assert LEASE in registry.objects, launcher.finish(5)
    kill(registry, launcher)


def test_job_that_is_still_being_made(drarun, tmp_path):
    """Its launcher creates the rest itself once nobody else does any more."""
    asked = []
    with Registry().serving() as registry:
        following, made = half_made(drarun, registry, tmp_path)
        registry.admit = lambda path, each: asked.append(path)
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: LEASE in registry.objects)
        *others, last = made
        for path in others:
            registry.put(path, made[path])
            time.sleep(0.5)  # less than it waits for, and all of them more
        assert not [path for path in asked if "/pods/" in path], asked
        until_led(registry, launcher, lambda: last in asked)
        assert [path for path in asked if "/pods/" in path] == [last]
        kill(registry, launcher)


def test_job_that_is_cancelled_while_it_is_made(drarun, tmp_path):
    """Its launcher ends it once no further pods appear: those would stay."""
    with Registry().serving() as registry:
        following, made = half_made(drarun, registry, tmp_path)
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: LEASE in registry.objects)
        cancel(registry)
        for path, each in made.items():
            assert not is_told(registry), path
            registry.put(path, each)
            time.sleep(0.5)  # less than it waits for, and all of them more
        until_led(registry, launcher, lambda: is_told(registry))
        assert is_told(registry) and told(registry)["report"]["cause"] == {
            "kind": "interrupted", "signal": 2, "text": "the job was interrupted by signal 2 (SIGINT)"}
        kill(registry, launcher)


@pytest.mark.parametrize("silent", [False, True], ids=["", "silent"])
def test_pod_of_an_attempt_that_has_ended(drarun, tmp_path, silent):
    """A client that is slow creates it when the pods of its attempt are deleted already, under the name of the next attempt's. silent:
    its node does not answer."""
    document = job_file(tmp_path, workers=2, template={"spec": {"terminationGracePeriodSeconds": 1}})
    pods = [path_of("pods", f"job-w-{i}") for i in range(2)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", document])
        if silent:
            registry.silent.add("job-w-1")
        late = registry.wait(pods[1])
        continues(following)
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: all(attempt(registry, path) == "2" for path in pods))
        assert [attempt(registry, path) for path in pods] == ["2", "2"], launcher.finish(5)
        assert registry.objects[pods[1]]["metadata"]["uid"] != late["metadata"]["uid"]
        kill(registry, launcher)


CLAIMS_SERVED = [{"metadata": {"name": "resource.k8s.io"}, "versions": [{"version": "v1", "resources": [{"resource": "resourceclaims"}]}]}]


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_worker_job_of_an_attempt_that_has_ended(drarun, tmp_path, when):
    """With claims: template, a client that is slow creates both under the names of the next attempt's, before its launcher looks or
    while it creates its own: that would wait for pods that are of none of its workers."""
    late = [path_of("batch/v1/jobs", "job-w"), path_of("resource.k8s.io/v1/resourceclaimtemplates", "job-w")]
    document = job_file(tmp_path, workers=2, devices={"claims": "template", "gpus": {"count": 1, "class": "gpu.nvidia.com"}})
    with Registry().serving() as registry:
        registry.groups = CLAIMS_SERVED
        following = Following(drarun, registry, tmp_path, words=["run", document], last=late[0])
        made = [registry.wait(path) for path in late]
        continues(following)
        late_job = [(late[0], made[0])] if when == "meanwhile" else []
        if late_job:
            registry.remove(late[0])
            registry.admit = lambda path, _: registry.put(*late_job.pop()) if path == late[1] else None
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: all(attempt(registry, path) == "2" for path in late))
        assert [attempt(registry, path) for path in late] == ["2", "2"] and not late_job, launcher.finish(5)
        assert not {registry.objects[path]["metadata"]["uid"] for path in late} & {each["metadata"]["uid"] for each in made}
        kill(registry, launcher)


@pytest.mark.parametrize("step, shared, replaced", [(1, "numaNode", True), (0, "pcieRoot", False)], ids=["another step", "a restart"])
def test_claims_of_an_attempt_that_has_ended(drarun, tmp_path, step, shared, replaced):
    """A client that is slow creates those of the first step, where NICs share the root of their GPU, when the gang goes on with weaker
    ones because no node has room: it would wait for that node. A restart keeps its claims."""
    devices = {"align": "preferred", "gpus": {"count": 1, "class": "gpu.nvidia.com"}, "nics": {"count": 1, "class": "nic.example.com"}}
    names = [f"job-w-{i}" for i in range(2)]
    claims = [path_of("resource.k8s.io/v1/resourceclaims", name) for name in names]
    pods = [path_of("pods", name) for name in names]
    with Registry().serving() as registry:
        registry.groups = CLAIMS_SERVED
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=2, devices=devices)], last=pods[-1])
        late = [registry.wait(path) for path in claims]
        continues(following, step=step, gang={"phase": "placing", "step": step})
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: all(attempt(registry, path) == "2" for path in pods))
        made = [registry.objects[path] for path in claims]
        assert [attempt(registry, path) for path in claims] == ["2" if replaced else "1"] * 2, launcher.finish(5)
        assert [each["metadata"]["uid"] != before["metadata"]["uid"] for each, before in zip(made, late)] == [replaced] * 2
        for each in made:
            assert each["spec"]["devices"]["constraints"][0]["matchAttribute"] == f"resource.kubernetes.io/{shared}"
        kill(registry, launcher)


def attempt(registry, pod):
    return registry.objects.get(pod, {"metadata": {}})["metadata"].get("labels", {}).get("drarun.dev/attempt")


@pytest.mark.parametrize("way, exit, ended", [("refused", 3, "failed"), ("cancelled", 130, "cancelled"), ("listed late", 130, "cancelled")])
def test_attempt_that_none_follows(drarun, tmp_path, way, exit, ended):
    """It has failed, and its pods cannot be deleted, or the job is cancelled before they are gone. Document, log and launcher say the
    same of the job's end. listed late: the new launcher does not know the pods for a while, which are not gone for that."""
    failure = {"status": 3, "cause": {"kind": "exit", "exit": 3, "rank": 0, "worker": 0, "text": "rank 0 on worker 0 (a) exited with status 3"}}
    pod = path_of("pods", "job-w-1")
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=2, restarts=1)], last=pod)
        continues(following, attempt=1, phase="running", report=failure)
        if way == "refused":
            registry.refused.add("DELETE")
        else:
            registry.silent.add("job-w-1")
        pods = registry.hold("GET", path_of("pods", "")[:-1]) if way == "listed late" else None
        launcher = replaced_launcher(drarun, following, written(following))
        if pods:
            until_led(registry, launcher, lambda: LEASE in registry.objects and pods.count)
            time.sleep(1)  # it could begin the next attempt meanwhile
            assert told(registry)["attempt"] == 1, launcher.finish(5)
            pods.set()
        if way != "refused":
            until_led(registry, launcher, lambda: "deletionTimestamp" in registry.objects[pod]["metadata"])
            cancel(registry)
        result = launcher.finish(30)
        said = "attempt 2 cannot be started: delete pods in namespace default: 403: the registry says no; the job ends as attempt 1 did"
        assert result.rc == (exit if exit < 128 else 1) and (said in result.out) == (way == "refused"), result
        assert [each["status"] for each in map(json.loads, result.out.splitlines()) if each.get("event") == "ended"] == [exit]
        document = last_document(registry)
        assert (document["exit"], document["result"], document["report"]["cause"]) == (exit, ended, failure["cause"])


def slow_to_start(folder):
    """Its image does not come in time, which another attempt may cure."""
    return job_file(folder, restarts=1, timeouts={"imagePull": "1s"}, template={"spec": {"terminationGracePeriodSeconds": 1}})


def test_restart_of_workers_that_did_not_start(drarun, tmp_path):
    """No rank has run, so nothing but the launcher tells why there is another attempt."""
    pod, said = path_of("pods", "job-w-0"), "0 of 1 workers have their images and run within 1 s (timeouts.imagePull)"
    with Registry().serving() as registry:
        lead = drarun.start("run", "--here", slow_to_start(tmp_path), env=environment(registry, tmp_path))
        place(registry, pod, registry.wait(pod))
        until_led(registry, lead, lambda: attempt(registry, pod) == "2" and told(registry).get("attempt") == 2)
        lead.signal(signal.SIGTERM)
        [first] = told(registry).get("history") or [None]
        result = lead.finish(30)
        assert said in result.err and "attempt 1 ended with 70: attempt 2 follows (1 of 1 restarts)" in result.err, result
        assert first["status"] == 70 and first["cause"]["text"].startswith(said), first


def test_what_killed_launchers_left_is_not_waited_for(drarun, tmp_path):
    """An API server answers a list that must be up to date a tenth of a second later; this one need not be."""
    with Registry().serving() as registry:
        lead = drarun.start("run", "--here", job_file(tmp_path), env=environment(registry, tmp_path))
        registry.wait(path_of("pods", "job-w-0"))
        maps = path_of("configmaps", "")[:-1]
        until_led(registry, lead, lambda: any(path == maps for path, _ in registry.lists))
        assert [query.get("resourceVersion") for path, query in registry.lists if path == maps] == ["0"]
        lead.signal(signal.SIGTERM)
        lead.finish(30)


@pytest.mark.parametrize("when", ["a signal", "placing", "ended"])
def test_what_a_killed_launcher_left(drarun, tmp_path, when):
    """It is asked once more whether its Lease is renewed, and the next job goes on meanwhile."""
    old, lease = path_of("configmaps", "old-status"), path_of("coordination.k8s.io/v1/leases", "old")
    pod, address = path_of("pods", "job-w-0"), "127.0.71.76"
    with Registry().serving() as registry:
        made = registry.put(old, {"metadata": {"labels": {"drarun.dev/job": "old"}}})
        registry.put(lease, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "old-status", "uid": made["metadata"]["uid"]}]},
                             "spec": {"holderIdentity": "other_1", "leaseDurationSeconds": 60, "renewTime": "2026-01-01T00:00:00.000000Z"}})
        lead = drarun.start("run", "--here", job_file(tmp_path), env=environment(registry, tmp_path))
        until_led(registry, lead, lambda: registry.reads[lease])
        if when == "ended":
            key = next(each for path, each in registry.objects.items() if "/secrets/" in path)["stringData"]["key"]
            agent = drarun.start("--listen", f"{address}:7173", "--pod", "--once", program=BUILD / "bin" / "drarun-worker", env={"DRARUN_KEY": key})
            Agents.port(agent, "stderr")
            given = registry.wait(pod)
            registry.put(pod, {**given, "spec": {**given["spec"], "nodeName": "n0"}, "status": {**READY, "podIP": address, "podIPs": [{"ip": address}]}})
            agent.finish(30)
        elif when == "placing":
            until_led(registry, lead, lambda: old not in registry.objects)
        if when != "ended":
            lead.signal(signal.SIGTERM)
        result = lead.finish(30)
        assert result.rc == (0 if when == "ended" else 128 + signal.SIGTERM) and MAP not in registry.objects, result
        assert (old in registry.objects) == (when == "a signal"), result
        assert ("job old: its launcher, a drarun run --here, is gone" in result.err) == (when != "a signal"), result


def test_launcher_that_is_lost_before_the_next_attempt(drarun, tmp_path):
    """The workers of the first did not start in time, and their node does not answer. The next launcher goes on with the second."""
    pod = path_of("pods", "job-w-0")
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", slow_to_start(tmp_path)])
        registry.silent.add("job-w-0")
        launcher = replaced_launcher(drarun, following, written(following))
        place(registry, pod, registry.wait(pod))
        until_led(registry, launcher, lambda: told(registry).get("restarts") == 1)
        launcher.signal(signal.SIGKILL)
        launcher.finish(20, clean=False)
        registry.silent.clear()
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: attempt(registry, pod) == "2")
        assert attempt(registry, pod) == "2", launcher.finish(5)
        kill(registry, launcher)


@pytest.mark.parametrize("left", ["all", "claims"])
def test_launcher_that_is_lost_while_it_releases(drarun, tmp_path, left):
    """It has written that, and has deleted nothing of the workers yet, or their pods alone. The next launcher deletes the rest: nobody
    else does, and the next try waits for that."""
    document = job_file(tmp_path, workers=2, devices={"gpus": {"count": 1, "class": "gpu.nvidia.com"}})
    names = [f"job-w-{i}" for i in range(2)]
    pods, claims = [path_of("pods", name) for name in names], [path_of("resource.k8s.io/v1/resourceclaims", name) for name in names]
    with Registry().serving() as registry:
        registry.groups = CLAIMS_SERVED
        following = Following(drarun, registry, tmp_path, words=["run", document], last=pods[-1])
        made = [registry.wait(path) for path in pods + claims]
        for path in pods if left == "claims" else []:
            registry.remove(path)
        continues(following, attempt=1, phase="releasing", gang={"phase": "releasing"})
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: all(attempt(registry, path) == "2" for path in pods + claims))
        assert [attempt(registry, path) for path in pods + claims] == ["2"] * 4, launcher.finish(5)
        assert not {registry.objects[path]["metadata"]["uid"] for path in pods + claims} & {each["metadata"]["uid"] for each in made}
        kill(registry, launcher)


def last_document(registry):
    """The status of the job that was written last, though it may be deleted by now."""
    texts = [each.get("data", {}).get("status.json") for _, path, _, each in registry.events if path == MAP]
    return json.loads([text for text in texts if text][-1])


CLAIMS = {"metadata": {"name": "resource.k8s.io"}, "versions": [{"version": "v1", "resources": [
    {"resource": "resourceclaims", "responseKind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
     "scope": "Namespaced", "verbs": ["list"]}]}]}


POD_GROUPS = {"metadata": {"name": "scheduling.k8s.io"}, "versions": [{"version": "v1alpha3", "resources": [
    {"resource": "podgroups", "responseKind": {"group": "scheduling.k8s.io", "version": "v1alpha3", "kind": "PodGroup"},
     "scope": "Namespaced", "verbs": ["get"]}]}]}


READY = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
         "containerStatuses": [{"name": "worker", "state": {"running": {}}, "ready": True, "started": True}]}


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow"])
def test_signal_between_placing_and_running(drarun, tmp_path, slow):
    """While the claims are read that the workers' pods name: the ranks are not started. slow: the API server answers when it is too
    late."""
    named = {"resourceClaims": [{"name": "c", "resourceClaimName": "shared"}],
             "containers": [{"name": "worker", "image": "a", "command": ["true"], "resources": {"claims": [{"name": "c"}]}}]}
    pod = path_of("pods", "job-w-0")
    with Registry().serving() as registry:
        registry.groups = [CLAIMS]
        listed, asked = registry.matching, []

        def interrupt(path, query):
            if path.endswith("/resourceclaims") and "watch" not in query and "status" in registry.objects[pod]:
                asked.append(path)
                lead.signal(signal.SIGTERM)
                until(registry, lambda: not slow or lead.process.poll() is not None)
            return listed(path, query)
        registry.matching = interrupt
        spec = tmp_path / "job.json"
        spec.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, "template": {"spec": named}}}))
        lead = drarun.start("run", "--here", spec, env=environment(registry, tmp_path))
        made = registry.wait(pod)
        registry.put(pod, {**made, "spec": {**made["spec"], "nodeName": "n0"}, "status": {
            **READY, "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})
        result = lead.finish(30)
        assert result.rc == 128 + signal.SIGTERM and MAP not in registry.objects, result
        assert len(asked) == 1, "it was asked for again, after half a minute"


# Rank 1 ends a while after it is told to, when rank 0 has failed.
FAILS = """cd {folder}
if test $RANK = 0; then until test -e ready; do sleep 0.1; done; exit 3; fi
trap 'touch ending' TERM
touch ready
while :; do sleep 0.1; done"""


@pytest.mark.parametrize("where", ["pod", "here"])
def test_signal_while_an_attempt_ends(drarun, tmp_path, where):
    """Another one is to follow. That is for the next launcher where this one's pod is to go, and here for nobody: the job ends."""
    pod, address, key = path_of("pods", "job-w-0"), "127.0.71.75", "5a" * 32
    document = job_file(tmp_path, restarts=1, ranksPerWorker=2, command=["sh", "-c", FAILS.format(folder=tmp_path)])
    with Registry().serving() as registry:
        if where == "pod":
            following = Following(drarun, registry, tmp_path, words=["run", document])
            lead = replaced_launcher(drarun, following, written(following))
        else:
            lead = drarun.start("run", "--here", document, env=environment(registry, tmp_path))
        made = registry.wait(pod)
        if where == "here":
            key = next(each for path, each in registry.objects.items() if "/secrets/" in path)["stringData"]["key"]
        agent = drarun.start("--listen", f"{address}:7173", "--pod", "--once", program=BUILD / "bin" / "drarun-worker", env={"DRARUN_KEY": key})
        Agents.port(agent, "stderr")
        registry.put(pod, {**made, "spec": {**made["spec"], "nodeName": "n0"}, "status": {**READY, "podIP": address, "podIPs": [{"ip": address}]}})
        until_led(registry, lead, (tmp_path / "ending").exists)
        lead.signal(signal.SIGTERM)
        until_led(registry, lead, lambda: attempt(registry, pod) == "2")
        assert attempt(registry, pod) != "2", "it has begun the next attempt"
        result = lead.finish(30)
        agent.finish(30)
        if where == "here":
            assert result.rc == 3 and "attempt 2" not in result.err and MAP not in registry.objects, result
            return
        left = told(registry)
        assert result.rc == 128 + signal.SIGTERM and (left["exit"], left["report"]["status"]) == (None, 3), result
        lead = replaced_launcher(drarun, following, written(following))
        until_led(registry, lead, lambda: attempt(registry, pod) == "2")
        assert attempt(registry, pod) == "2", lead.finish(5)
        kill(registry, lead)


def test_signal_while_a_queue_takes_the_workers_back(drarun, tmp_path):
    """Their Job stays as it is: by that the next launcher knows that the queue has them."""
    queued, pod, address = path_of("batch/v1/jobs", "job-w"), path_of("pods", "job-w-0-abcde"), "127.0.71.77"
    document = job_file(tmp_path, queue="team-a", ranksPerWorker=2, command=["sh", "-c", FAILS.format(folder=tmp_path)])
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", document], last=queued)
        made = registry.objects[queued]
        admitted = registry.put(queued, {**made, "spec": {**made["spec"], "suspend": False}})
        template = admitted["spec"]["template"]
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-completion-index": "0"}
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job-w", "uid": admitted["metadata"]["uid"], "controller": True}
        registry.put(pod, {"metadata": {"labels": labels, "annotations": labels, "ownerReferences": [owner]},
                           "spec": {**template["spec"], "nodeName": "n0"}, "status": {**READY, "podIP": address, "podIPs": [{"ip": address}]}})
        agent = drarun.start("--listen", f"{address}:7173", "--pod", "--once", program=BUILD / "bin" / "drarun-worker", env={"DRARUN_KEY": "5a" * 32})
        Agents.port(agent, "stderr")
        lead = replaced_launcher(drarun, following, written(following))
        until_led(registry, lead, (tmp_path / "ending").exists)
        back = registry.put(queued, {**admitted, "spec": {**admitted["spec"], "suspend": True}})
        until_led(registry, lead, lambda: registry.is_known(back))
        lead.signal(signal.SIGTERM)
        result = lead.finish(30)
        agent.finish(30)
        assert result.rc == 128 + signal.SIGTERM, result
        assert registry.objects.get(queued, {"metadata": {}})["metadata"].get("uid") == made["metadata"]["uid"], result


def test_job_whose_messages_nobody_reads(drarun, tmp_path):
    """It is ended all the same, and nothing of it stays."""
    pod, address = path_of("pods", "job-w-0"), "127.0.71.73"
    with Registry().serving() as registry, socket.create_server((address, 7173)) as agent:
        agent.settimeout(patience())
        lead = drarun.start("run", "--here", "--output", "json", job_file(tmp_path), env=environment(registry, tmp_path), under=UNREAD)
        made = registry.wait(pod)
        registry.put(pod, {**made, "spec": {**made["spec"], "nodeName": "n0"}, "status": {**READY, "podIP": address, "podIPs": [{"ip": address}]}})
        with agent.accept()[0]:
            lead.signal(signal.SIGTERM)
            result = lead.finish(30)
        assert result.rc == 128 + signal.SIGTERM and MAP not in registry.objects, result


def test_lease_is_deleted_with_an_ended_job(drarun, tmp_path):
    """By run --here, which keeps the document alone: that the Lease cannot be renewed meanwhile is nothing that the job's status tells."""
    with Registry().serving() as registry:
        lead = drarun.start("run", "--here", job_file(tmp_path, ttlSecondsAfterFinished=600), env=environment(registry, tmp_path))
        until_led(registry, lead, lambda: LEASE in registry.objects)
        deleting = registry.hold("DELETE", LEASE)
        lead.signal(signal.SIGTERM)
        until_led(registry, lead, lambda: deleting.count)
        registry.remove(LEASE)  # as the API server does, whose answer is late
        renewing = registry.hold("PUT", LEASE)
        until_led(registry, lead, lambda: renewing.count)
        renewing.set()
        time.sleep(1)
        deleting.set()
        result = lead.finish(30)
        assert result.rc == 128 + signal.SIGTERM and "is lost" not in result.err and told(registry)["exit"] == result.rc, result


def test_allocation_whose_watch_has_broken_without_a_word(drarun, tmp_path):
    """As where a network drops what the API server sends: the shell writes its words, and the launcher hears of none. It asks before it
    takes the workers away, and does so once there are no more words."""
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path)])
        continues(following, attempt=1, phase="running", gang={"phase": "running"})
        launcher = replaced_launcher(drarun, following, written(following), DRARUN_KEEP="4")
        until_led(registry, launcher, lambda: "launcher" in told(registry))
        for number in range(40):
            with registry.changed:
                job = registry.objects[JOB]
                registry.put(JOB, {**job, "metadata": {**job["metadata"], "annotations": {"drarun.dev/alloc": str(number)}}})
                registry.events.pop()
            time.sleep(0.3)
        assert told(registry)["result"] is None, launcher.finish(5)
        until_led(registry, launcher, lambda: told(registry)["result"])
        result = launcher.finish(30)
    assert result.rc == 1 and "no heartbeat from the allocation's shell for 4 s: its workers are deleted" in result.out, result
    assert (last_document(registry)["result"], last_document(registry)["exit"]) == ("cancelled", 128 + signal.SIGHUP)


def removed_workers(drarun, registry, folder, workers):
    """Of a job that was made whole."""
    following = Following(drarun, registry, folder, words=["run", job_file(folder, workers=workers)])
    pods = [path_of("pods", f"job-w-{i}") for i in range(workers)]
    for path in pods:
        registry.wait(path)
    for path in pods:
        registry.remove(path)
    return following


def test_signal_while_workers_are_created(drarun, tmp_path):
    """Those that were begun are created, and the others are left to the next launcher."""
    workers = 200
    pods = [path_of("pods", f"job-w-{i}") for i in range(workers)]
    with Registry().serving() as registry:
        following = removed_workers(drarun, registry, tmp_path, workers)
        registry.admit = lambda path, made: "/pods/" in path and registry.answering.clear()
        launcher = replaced_launcher(drarun, following, written(following))
        until(registry, lambda: launcher.process.poll() is not None or sum(path in registry.objects for path in pods) > 20)
        launcher.signal(signal.SIGTERM)
        until(registry, lambda: has_heard(launcher.pid, signal.SIGTERM))
        registry.admit = lambda path, made: None
        registry.answering.set()
        result = launcher.finish(20)
        assert result.rc == 128 + signal.SIGTERM, result
        assert 20 < sum(path in registry.objects for path in pods) < workers, result


def test_signal_to_the_launcher_of_a_cancelled_job(drarun, tmp_path):
    """Its pod goes, as part of that: the job ends as one that was cancelled."""
    with Registry().serving() as registry:
        following = removed_workers(drarun, registry, tmp_path, 1)
        registry.admit = lambda path, made: "/pods/" in path and registry.answering.clear()
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: path_of("pods", "job-w-0") in registry.objects)
        cancel(registry)
        until_led(registry, launcher, lambda: registry.is_known(registry.objects[JOB]))
        launcher.signal(signal.SIGTERM)
        until(registry, lambda: has_heard(launcher.pid, signal.SIGTERM))
        registry.answering.set()
        result = launcher.finish(20)
        document = last_document(registry)
        assert (document["result"], document["exit"]) == ("cancelled", 128 + signal.SIGINT), result
        assert document["report"]["cause"]["text"] == "the job was interrupted by signal 2 (SIGINT)"


def test_lease_is_renewed_while_creations_wait(drarun, tmp_path):
    """The API server answers none of them: renewing waits neither for those that are under way nor for those behind them, nor
    does the question what became of a renewal whose answer was lost."""
    asked = []
    with Registry().serving() as registry:
        def hold_pods(path, made):
            if "/pods/" in path:
                asked.append(path)
                registry.answering.clear()
        following = removed_workers(drarun, registry, tmp_path, 200)
        registry.admit = hold_pods
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: len(asked) == 64)
        found = registry.objects[LEASE]
        renewed = found["spec"]["renewTime"]
        registry.put(LEASE, {**found, "metadata": {**found["metadata"]}})
        until_led(registry, launcher, lambda: registry.objects[LEASE]["spec"]["renewTime"] != renewed)
        assert len(asked) == 64, "others have come before it"
        kill(registry, launcher)


def test_slices_that_are_slow_to_read(drarun, tmp_path):
    """No node has room, and the API server keeps what would say why. The job goes on all the same, and a signal ends it."""
    pod, claim = path_of("pods", "job-w-0"), path_of("resource.k8s.io/v1/resourceclaims", "job-w-0")
    spec = job_file(tmp_path, devices={"gpus": {"count": 1, "class": "gpu.nvidia.com"}})
    with Registry().serving() as registry:
        registry.groups = [CLAIMS]
        lead = drarun.start("run", "--here", spec, env=environment(registry, tmp_path))
        made, asked = registry.wait(pod), registry.wait(claim)
        held = registry.hold("GET", "/apis/resource.k8s.io/v1/resourceslices")
        registry.put(pod, {**made, "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 too small."}]}})
        until(registry, lambda: held.count)
        registry.put(claim, {**asked, "status": {"allocation": {"devices": {"results": [
            {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": "gpu-0"}]}}}})
        place(registry, pod, made)
        assert_goes_on_and_ends(registry, lead)
        assert held.count == 1, "they were asked for again, after half a minute"


SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def slices_of(*nodes):
    return {"kind": "ResourceSliceList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": node}, "spec": {
        "driver": "gpu.nvidia.com", "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {}}]}} for node in nodes]}


@pytest.mark.parametrize("node, times", [("n0", 1), ("n1", 2)], ids=["before", "later"])
def test_slices_of_a_node_that_comes(drarun, tmp_path, node, times):
    """As an autoscaler's, after the job has begun: the plan of its ranks would not find the devices that it has got."""
    pod, claim, address = path_of("pods", "job-w-0"), path_of("resource.k8s.io/v1/resourceclaims", "job-w-0"), "127.0.71.74"
    spec = job_file(tmp_path, devices={"gpus": {"count": 1, "class": "gpu.nvidia.com"}})
    with Registry().serving() as registry, socket.create_server((address, 7173)) as agent:
        registry.groups = [CLAIMS]
        registry.objects[SLICES] = slices_of("n0")
        agent.settimeout(patience())
        lead = drarun.start("run", "--here", spec, env=environment(registry, tmp_path))
        made, asked = registry.wait(pod), registry.wait(claim)
        until(registry, lambda: registry.reads[SLICES])
        registry.objects[SLICES] = slices_of("n0", "n1")
        registry.put(claim, {**asked, "status": {"allocation": {"devices": {"results": [
            {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": "gpu-0"}]}}}})
        registry.put(pod, {**made, "spec": {**made["spec"], "nodeName": node}, "status": {**READY, "podIP": address, "podIPs": [{"ip": address}]}})
        with agent.accept()[0]:
            assert registry.reads[SLICES] == times
            lead.signal(signal.SIGTERM)
            result = lead.finish(30)
        assert result.rc == 128 + signal.SIGTERM, result


def test_pod_group_that_is_slow_to_read(drarun, tmp_path):
    """As slices: of workers that wait for a node without a reason of their own it is read."""
    pods = [path_of("pods", f"job-w-{i}") for i in range(2)]
    with Registry().serving() as registry:
        registry.groups = [POD_GROUPS]
        held = registry.hold("GET", path_of("scheduling.k8s.io/v1alpha3/podgroups", "job-w"))
        lead = drarun.start("run", "--here", job_file(tmp_path, workers=2), env=environment(registry, tmp_path))
        made = [registry.wait(path) for path in pods]
        until(registry, lambda: held.count)
        for path, each in zip(pods, made):
            place(registry, path, each)
        assert_goes_on_and_ends(registry, lead)
        assert held.count == 1, "it was asked for again, after half a minute"


def place(registry, pod, made):
    """On a node that has not started it yet."""
    registry.put(pod, {**made, "spec": {**made["spec"], "nodeName": "n0"}, "status": {
        "phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}]}})


def assert_goes_on_and_ends(registry, lead):
    until(registry, lambda: told(registry).get("phase") == "pulling")
    lead.signal(signal.SIGTERM)
    result = lead.finish(30)
    assert result.rc == 128 + signal.SIGTERM and MAP not in registry.objects, result


def told(registry):
    """The status document."""
    return json.loads(registry.objects[MAP].get("data", {}).get("status.json", "{}"))


def cancel(registry):
    job = registry.objects[JOB]
    registry.put(JOB, {**job, "metadata": {**job["metadata"], "annotations": {"drarun.dev/cancel": "test"}}})


def is_told(registry):
    """The end of the job."""
    return "exit" in told(registry)


def kill(registry, launcher):
    registry.remove(JOB)
    launcher.signal(signal.SIGKILL)
    launcher.finish(20, clean=False)


def owners(registry, path):
    return [each["uid"] for each in registry.objects.get(path, {"metadata": {}})["metadata"].get("ownerReferences", [])]


def test_signal_while_another_launcher_holds_the_lease(drarun, following):
    """It changes nothing of the job, which may be suspended: the other one knows of that."""
    registry, pod = following.registry, path_of("pods", "job-w-0")
    made = registry.wait(pod)
    registry.put(LEASE, {"metadata": {}, "spec": {"holderIdentity": "other_1", "leaseDurationSeconds": 60, "leaseTransitions": 0}})
    launcher = replaced_launcher(drarun, following, written(following))
    registry.put(pod, made)
    until(registry, lambda: registry.reads[LEASE] > 1 or launcher.process.poll() is not None)
    suspend(registry, True)
    launcher.signal(signal.SIGTERM)
    result = launcher.finish(20)
    assert result.rc == 128 + signal.SIGTERM and result.seconds < 40, result
    assert pod in registry.objects and "status.json" not in registry.objects[MAP]["data"]


@pytest.mark.parametrize("holder, refused", [("", set()), ("other_1", set()), ("", {"PUT"})], ids=["free", "held", "refused"])
def test_lease_that_an_earlier_job_left(drarun, following, holder, refused):
    """The garbage collector is behind, and will delete it with its owner. refused: OwnerReferencesPermissionEnforcement."""
    registry = following.registry
    registry.put(LEASE, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "job-status", "uid": "uid-old"}]},
                         "spec": {"holderIdentity": holder, "leaseDurationSeconds": 60, "leaseTransitions": 2}})
    registry.refused = refused
    launcher = replaced_launcher(drarun, following, written(following))

    def taken():
        return launcher.process.poll() is not None or owners(registry, LEASE) == [following.uid]
    if holder or refused:
        until(registry, lambda: registry.reads[LEASE] > 1 or taken())
        assert registry.remove(LEASE)
    until(registry, lambda: taken() or "status.json" in registry.objects[MAP]["data"])
    assert owners(registry, LEASE) == [following.uid], launcher.finish(5)
    kill(registry, launcher)


def test_job_that_is_resumed_while_the_api_server_fails(drarun, tmp_path):
    """As with an etcd that chooses its leader: the gates of the workers' pods are opened once it can do that."""
    pods = [path_of("pods", f"job-w-{i}") for i in range(2)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=2, suspend=True)], last=pods[-1])
        assert registry.objects[pods[1]]["spec"]["schedulingGates"] == [{"name": "drarun.dev/suspended"}]
        suspend(registry, False)
        registry.busy = {"PATCH"}
        opening = registry.hold("PATCH", pods[1])
        opening.set()
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: opening.count > 1)
        registry.busy = set()
        until_led(registry, launcher, lambda: not any(registry.objects[path]["spec"]["schedulingGates"] for path in pods))
        assert [registry.objects[path]["spec"]["schedulingGates"] for path in pods] == [[], []], launcher.finish(5)
        kill(registry, launcher)


def test_job_that_was_suspended_for_long(drarun, tmp_path):
    """For two days nobody led it. timeouts.queue is a day, and begins when it is resumed; timeouts.total does not count the time."""
    two_days = 2 * 24 * 3600 * 1000
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, timeouts={"total": "1h"})])
        launcher = replaced_launcher(drarun, following, written(following))
        registry.wait(path_of("pods", "job-w-0"))
        suspended = suspend(registry, True)
        until(registry, lambda: registry.is_known(suspended))
        launcher.signal(signal.SIGTERM)
        result = launcher.finish(20)
        assert result.rc == 128 + signal.SIGTERM and told(registry)["attempt"] == 2, result
        gang = told(registry)["gang"]
        continues(following, phase="queued", gang={**gang, **{key: gang[key] and gang[key] - two_days for key in ("since", "phaseSince", "tickingSince")}})
        suspend(registry, False)
        launcher = replaced_launcher(drarun, following, written(following))
        until_led(registry, launcher, lambda: told(registry)["phase"] == "placing")
        assert told(registry)["phase"] == "placing", launcher.finish(5)
        kill(registry, launcher)


def suspend(registry, value):
    job = registry.objects[JOB]
    return registry.put(JOB, {**job, "spec": {**job["spec"], "suspend": value}})
