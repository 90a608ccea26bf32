# SPDX-License-Identifier: Apache-2.0
"""Launchers that do not start, fail, or are silent, as `drarun run` sees them: beside a registry of objects."""
import datetime
import functools
import json
import re
import signal
import threading
import time

import pytest

from support.build import patience
from support.following import JOB, LEASE, MAP, OUTPUT, Following, environment, job_file, record, until
from support.registry import Registry, path_of


def fail_job(registry):
    found = registry.objects[JOB]
    registry.put(JOB, {**found, "status": {"conditions": [
        {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 69"}]}})


def complete_job(registry):
    found = registry.objects[JOB]
    registry.put(JOB, {**found, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})


def test_launcher_job_is_complete_without_a_word(drarun, following):
    """Its launcher was told to go and could not write the job's end, and its pod is gone with its log: all ranks have succeeded, and
    their output was not read."""
    registry, pod, read = following.registry, path_of("pods", "job-a"), threading.Event()

    def log():
        yield OUTPUT
        read.set()
        until(registry, lambda: pod not in registry.objects)
    following.pod("job-a", "running", log)
    following.tell("job-a")
    assert read.wait(patience())
    registry.remove(pod)
    complete_job(registry)
    result = following.ended()
    assert (result.rc, result.out) == (70, "of the leader\n") and "(its ranks have succeeded)" in result.err, result
    waited = drarun("wait", "job", env=following.env, timeout=20)
    assert (waited.rc, waited.err) == (0, ""), waited


def test_end_that_the_controller_alone_tells(drarun, following):
    """Its launcher was lost, and its document says that the ranks run."""
    following.tell("job-a")
    following.registry.put(path_of("drarun.dev/v1alpha1/drajobs", "job"), {"metadata": {}, "spec": {"workers": 1}, "status": {
        "state": "Failed", "exitStatus": 70, "message": "its launcher was lost", "completionTime": "2026-11-21T15:24:42Z",
        "launcherUID": following.uid}})
    shown = json.loads(drarun("status", "job", "-o", "json", env=following.env).ok().out)
    [listed] = json.loads(drarun("list", "-o", "json", env=following.env).ok().out)
    for each in (shown, listed):
        assert (each["phase"], each["result"], each["exit"], each["launcher"]["pod"]) == ("ended", "failed", 70, "job-a"), each
        assert each["report"]["cause"]["text"] == "its launcher was lost", each
    assert "failed (70)" in drarun("list", env=following.env).ok().out


def test_another_programs_job_is_complete(drarun, tmp_path):
    """It has the name of a job of run --here, of which it tells nothing."""
    document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "uid": "uid-here", "attempt": 1, "phase": "running"}
    with Registry().serving() as registry:
        def tell(**more):
            registry.put(MAP, {"metadata": {"uid": "uid-here"}, "data": {"status.json": json.dumps({**document, **more})}})
        tell()
        job = registry.put(JOB, {"metadata": {}, "spec": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        waiting = drarun.start("wait", "job", env=environment(registry, tmp_path))
        until(registry, lambda: waiting.process.poll() is not None or (len(registry.told) >= 3 and registry.is_known(job)))
        tell(phase="ended", exit=3, result="failed")
        result = waiting.finish(30)
    assert result.rc == 3, result


@pytest.mark.parametrize("phase", ["created", "running"])
def test_end_of_an_earlier_job_that_the_controller_tells(drarun, following, phase):
    """Nothing is left of it but its DraJob, and a job of run --here has its name."""
    registry = following.registry
    found = registry.objects[MAP]
    registry.put(MAP, {**found, "metadata": {**found["metadata"], "uid": "uid-here", "ownerReferences": []}})
    if phase == "running":
        following.tell("host_1", uid="uid-here")
    registry.put(path_of("drarun.dev/v1alpha1/drajobs", "job"), {"metadata": {}, "spec": {"workers": 1}, "status": {
        "state": "Failed", "exitStatus": 70, "launcherUID": following.uid, "completionTime": "2026-11-21T15:24:42Z"}})
    shown = json.loads(drarun("status", "job", "-o", "json", env=following.env).ok().out)
    [listed] = json.loads(drarun("list", "-o", "json", env=following.env).ok().out)
    assert (shown["phase"], listed["phase"]) == (phase, phase) and "exit" not in {**shown, **listed}, (shown, listed)


@pytest.mark.parametrize("late", [False, True], ids=["", "late"])
def test_launcher_job_fails_before_it_leads(following, late):
    """Its workers would keep their devices: nobody else knows of them. What its launcher has said comes first. late: the Job's failure is
    known once the log has ended."""
    words = json.dumps({"level": "error", "text": "pods is forbidden: a Role must allow it"}).encode() + b"\n"
    read = threading.Event()

    def log():
        yield words
        read.set()
    following.pod("job-a", "terminated", log, phase="Failed")
    if late:
        assert read.wait(patience(60))
        time.sleep(0.5)  # until it has seen the end
    fail_job(following.registry)
    result = following.ended()
    assert result.rc == 70 and "the launcher Job job failed: exit code 69" in result.err, result
    assert "a Role must allow it" in result.err and "is missing" not in result.err, result
    assert JOB not in following.registry.objects


def test_launcher_job_fails_before_its_pod_is_seen(following):
    """The watches of Jobs and pods do not keep step."""
    words = json.dumps({"level": "error", "text": "pods is forbidden: a Role must allow it"}).encode() + b"\n"
    fail_job(following.registry)
    time.sleep(0.5)  # until it has seen that
    following.pod("job-a", "terminated", lambda: iter([words]), phase="Failed")
    result = following.ended()
    assert result.rc == 70 and "a Role must allow it" in result.err, result


def test_launcher_job_fails_without_a_pod(following):
    fail_job(following.registry)
    result = following.ended()
    assert result.rc == 70 and "the launcher Job job failed: exit code 69" in result.err, result
    assert JOB not in following.registry.objects


def test_interrupted_while_a_job_without_a_launcher_is_deleted(following):
    """The API server is slow with that: the first signal asks for nothing more, and the second one leaves the job as it is."""
    registry = following.registry
    held = registry.hold("DELETE", JOB)
    fail_job(registry)
    until(registry, lambda: held.count)
    following.job.signal(signal.SIGINT)
    assert next(line for line in following.job.process.stderr if "interrupt again" in line)
    following.job.signal(signal.SIGINT)
    result = following.ended()
    assert result.rc == 70 and "the launcher Job job failed: exit code 69" in result.err and JOB in registry.objects, result
    assert held.count == 1, "it was asked for again, after half a minute"


def test_launcher_job_fails_before_its_document_is_seen(following):
    """The watch of the document is behind: it has the job's end, and the job stays as it is."""
    registry = following.registry
    with registry.changed:
        seen = registry.version
        following.tell("job-a", exit=3)
        registry.events = [each for each in registry.events if each[0] <= seen]
    following.pod("job-a", "terminated", lambda: iter([OUTPUT]), phase="Failed")
    fail_job(registry)
    result = following.ended()
    assert (result.rc, result.out) == (3, "of the leader\n"), result
    assert JOB in registry.objects


def test_queue_that_the_job_does_not_name(drarun, tmp_path):
    """Kueue's webhook puts Jobs into it, suspended, where the namespace has a LocalQueue called default."""
    def admit(path, made):
        if path == JOB:
            made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "default"
            made["spec"]["suspend"] = True
    with Registry().serving() as registry:
        registry.admit = admit
        following = Following(drarun, registry, tmp_path)
        assert registry.objects[path_of("pods", "job-w-0")]["spec"].get("schedulingGates") == [{"name": "drarun.dev/suspended"}]
        said = next(line for line in following.job.process.stderr if "waiting for the launcher to start" in line)
        assert said == "drarun: waiting for the launcher to start: queue default has not admitted it\n"
        shown = drarun("status", "job", env=following.env).ok()
        assert "queue default has not admitted it" in shown.out, shown
        following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a")]))
        following.tell("job-a", exit=0)
        assert following.ended().rc == 0


def test_what_the_launcher_waits_for_is_told(drarun, following):
    """A client without a terminal says after 2 s what it waits for, and says it again when that changes."""
    clients = [following.job, drarun.start("wait", "job", env=following.env)]
    over, pod, on_node = threading.Event(), "job-aaaaa", {"nodeName": "n0", "containers": [{"name": "launcher", "image": "a"}]}
    head = "drarun: waiting for the launcher to start: "

    def told(words):
        lines = [next(line for line in client.process.stderr if line.startswith(head)) for client in clients]
        assert lines == [f"{head}{words}\n"] * 2

    def comes(sandbox, message=""):
        following.pod(pod, "waiting", phase="Pending", spec=on_node, message=message,
                      conditions=[{"type": "PodReadyToStartContainers", "status": sandbox}])

    def log():
        yield OUTPUT
        over.wait(patience())
        yield record(pod)
    told("its pod does not exist yet")
    comes("False")
    comes("False", "which changes nothing")
    told("pod job-aaaaa on n0: the kubelet prepares its devices, volumes and sandbox")
    comes("True")
    told("pod job-aaaaa on n0: image a of the launcher is being pulled")
    following.pod(pod, "running", log, spec=on_node)
    told("pod job-aaaaa runs and has not reported yet")
    over.set()
    following.tell(pod, exit=0)
    assert [client.finish(30).rc for client in clients] == [0, 0]


LIMIT_S = 8


def test_time_of_a_suspended_job_is_no_time_of_its_launcher(drarun, tmp_path):
    """The deadline for its start begins when the job is resumed, or when a queue admits it."""
    words = ["run", job_file(tmp_path, suspend=True, timeouts={"allocation": f"{LIMIT_S}s"})]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=words)
        time.sleep(LIMIT_S + 1)
        found = registry.objects[JOB]
        registry.put(JOB, {**found, "spec": {**found["spec"], "suspend": False}})
        following.pod("job-a", "waiting", phase="Pending", conditions=[
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 too small."}])
        assert next(line for line in following.job.process.stderr if "the launcher does not start" in line)
        following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a")]))
        following.tell("job-a", exit=0)
        result = following.ended()
        assert (result.rc, result.out) == (0, "of the leader\n") and JOB in registry.objects, result


def lease(registry, holder, seconds):
    """Renewed so long ago."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    registry.put(LEASE, {"metadata": {}, "spec": {
        "holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})


def lose_node(registry, pod):
    """The pod's node does not answer: the node controller has set its Ready condition to False."""
    path = path_of("pods", pod)
    found = registry.objects[path]
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    registry.put(path, {**found, "spec": {"nodeName": "n7"}, "status": {**found["status"], "conditions": conditions}})


def test_launcher_that_is_silent(drarun, tmp_path):
    """A job without restarts ends where its launcher's node does not answer; of another the launcher is late alone."""
    folders = [tmp_path / each for each in ("lost", "late")]
    over, never = threading.Event(), threading.Event()

    def log(end):
        yield b'{"event":"log","job":"job","lines":0}\n'
        end.wait(patience())
        yield record("job-aaaaa", status=130, lines=1)
    with Registry().serving() as one, Registry().serving() as other:
        for folder in folders:
            folder.mkdir()
        lost, late = Following(drarun, one, folders[0]), Following(drarun, other, folders[1])
        for each, end in ((lost, never), (late, over)):
            each.pod("job-aaaaa", "running", functools.partial(log, end))
            each.tell("job-aaaaa")
        lose_node(one, "job-aaaaa")
        lease(one, "job-aaaaa", 70)
        lease(other, "job-aaaaa", 31)
        until(other, lambda: other.reads[LEASE] >= 2)
        lease(other, "job-aaaaa", 0)
        before = other.reads[LEASE]
        until(other, lambda: other.reads[LEASE] > before)
        late.job.signal(signal.SIGINT)
        until(other, lambda: "drarun.dev/cancel" in other.objects[JOB]["metadata"].get("annotations", {}))
        over.set()
        late.tell("job-aaaaa", exit=130)
        result = late.ended()
        assert re.search(r"drarun: launcher job-aaaaa has not renewed its Lease for 3\d s\n", result.err), result
        assert "drarun: launcher job-aaaaa renews its Lease again\n" in result.err and result.rc == 130, result
        result = lost.ended()
        assert result.rc == 70, result
        assert "drarun: launcher job-aaaaa on n7 has not renewed its Lease for 7" in result.err, result
        assert "its node does not answer: job job is over" in result.err and JOB not in one.objects, result


def tell_event(registry, kind, name, uid, reason, message, seconds=0):
    """Of so long ago."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    registry.put(path_of("events", f"{name}.{registry.version}"), {
        "metadata": {}, "involvedObject": {"kind": kind, "name": name, "namespace": "default", "uid": uid}, "reason": reason,
        "message": message, "type": "Warning", "count": 2, "lastTimestamp": then.strftime("%Y-%m-%dT%H:%M:%SZ")})


def does_not_fit(following):
    following.pod("job-bbbbb", "waiting", phase="Pending", conditions=[
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 too small."}])
    return "pod job-bbbbb: ", "1 too small"


def does_not_mount(following):
    """Its status does not say so, and its Events do."""
    pod = path_of("pods", "job-bbbbb")
    following.pod("job-bbbbb", "waiting", phase="Pending", spec={"nodeName": "n0", "containers": [{"name": "launcher", "image": "a"}]})
    tell_event(following.registry, "Pod", "job-bbbbb", following.registry.objects[pod]["metadata"]["uid"], "FailedMount",
               'MountVolume.SetUp failed for volume "document": not there')
    return "pod job-bbbbb on n0: ", "not there"


def is_refused(following):
    """There is none, and the Job's Events say why. What refused the first one has passed."""
    registry = following.registry
    tell_event(registry, "Job", "job", following.uid, "FailedCreate", "a webhook said no", seconds=90)
    before = registry.reads[LEASE]
    until(registry, lambda: registry.reads[LEASE] > before + 1)
    tell_event(registry, "Job", "job", following.uid, "FailedCreate", "exceeded quota: pods")
    return "its pod is refused: ", "exceeded quota"


@pytest.mark.parametrize("come", [does_not_fit, does_not_mount, is_refused], ids=["node", "mount", "refused"])
def test_successor_that_does_not_start(following, come):
    """The pod that could take the job over."""
    registry, over = following.registry, threading.Event()

    def log():
        yield OUTPUT
        over.wait(patience())
        yield record("job-aaaaa")
    following.pod("job-aaaaa", "running", log)
    following.tell("job-aaaaa")
    lease(registry, "job-aaaaa", 40)
    assert next(line for line in following.job.process.stderr if "has not renewed its Lease" in line)
    which, why = come(following)
    line = next(line for line in following.job.process.stderr if "successor" in line)
    assert line.startswith(f"drarun: the launcher's successor does not start: {which}") and why in line, line
    lease(registry, "job-aaaaa", 0)
    assert next(line for line in following.job.process.stderr if "renews its Lease again" in line)
    over.set()
    following.tell("job-aaaaa", exit=0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_launcher_that_could_not_renew_its_lease(following):
    """As after an outage of the API server: old at the first look, on a node of which the same is said, and soon renewed."""
    registry, over = following.registry, threading.Event()

    def log():
        yield OUTPUT
        over.wait(patience())
        yield record("job-aaaaa")
    following.pod("job-aaaaa", "running", log)
    following.tell("job-aaaaa")
    lose_node(registry, "job-aaaaa")
    lease(registry, "job-aaaaa", 70)
    until(registry, lambda: registry.reads[LEASE] >= 3)
    lease(registry, "job-aaaaa", 0)
    assert next(line for line in following.job.process.stderr if "renews its Lease again" in line)
    over.set()
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n") and JOB in registry.objects, result
