# SPDX-License-Identifier: Apache-2.0
"""Whose log `drarun run` takes for a job's, and when it has all of it: beside a registry of objects instead of a cluster,
which lets each thing come about in the worst order."""
import datetime
import json
import re
import signal
import socket
import threading
import time

import pytest

from support.build import patience
from support.nccl_tests import Run
from support.ports import free_port
from support.registry import Registry, path_of
from support.run import peak_memory_kib

JOB = path_of("batch/v1/jobs", "job")
MAP = path_of("configmaps", "job-status")
LEASE = path_of("coordination.k8s.io/v1/leases", "job")
LABELS = {"drarun.dev/job": "job", "batch.kubernetes.io/job-name": "job"}
OUTPUT = b'{"event":"log","job":"job","lines":0}\n[0] of the leader\n'


def record(launcher, status=0, lines=2):
    return json.dumps({"event": "ended", "job": "job", "launcher": launcher, "lines": lines, "status": status}).encode() + b"\n"


def job_file(folder, **spec):
    path = folder / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "a", "command": ["true"], **spec}}))
    return path


def environment(registry, folder):
    return {"KUBECONFIG": str(registry.kubeconfig(folder)), "DRARUN_IMAGE": "a"}


class Following:
    """`drarun run`, or other words, of a job whose launchers the test plays. shell: a command of bash, in which {} is that."""

    def __init__(self, drarun, registry, folder, shell=None, words=None):
        self.registry = registry
        self.env = environment(registry, folder)
        words = words or ["run", job_file(folder)]
        if shell:
            words = ["-c", shell.format(" ".join(map(str, [drarun.program, *words])))]
        self.job = drarun.start(*words, env=self.env, program="bash" if shell else None)
        registry.wait(path_of("pods", "job-w-0"))  # the last one
        self.uid = registry.objects[JOB]["metadata"]["uid"]

    def pod(self, name, state, log=None, owner=None, phase="Running", **status):
        """state: waiting, running or terminated. log: yields its pieces."""
        if log is not None:
            self.registry.logs[name] = log
        self.registry.put(path_of("pods", name), {
            "metadata": {"labels": LABELS, "ownerReferences": [{"kind": "Job", "name": "job", "uid": owner or self.uid}]},
            "status": {"phase": phase, "containerStatuses": [{"name": "launcher", "state": {state: {}}}], **status}})

    def tell(self, launcher, exit=None, uid=None, fabric=None, **more):
        """The status document. more: of its launcher."""
        found = self.registry.objects[MAP]
        document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "uid": uid or self.uid,
                    "phase": "running" if exit is None else "ended", "launcher": {"pod": launcher, **more}, "fabric": fabric}
        if exit is not None:
            document |= {"exit": exit, "result": "failed" if exit else "succeeded"}
        self.registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps(document)}})

    def ended(self):
        return self.job.finish(30)


@pytest.fixture
def following(drarun, tmp_path):
    with Registry().serving() as registry:
        yield Following(drarun, registry, tmp_path)


def annotation(registry, name):
    """Of the job's owner."""
    return registry.objects[JOB]["metadata"].get("annotations", {}).get(name)


def until(registry, there):
    """A piece of a log that comes once that is so."""
    end = time.monotonic() + patience()
    while not there() and not registry.closed:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_another_launcher_tells_the_end_before_the_leaders_container_is_known(following):
    """It waits for the Lease, and finds the job ended: its log has no output."""
    read = []

    def of_the_other():
        read.append("other")
        yield b'{"event":"log","job":"job","lines":0}\n'
        until(following.registry, lambda: "status.json" in following.registry.objects[MAP]["data"])
        yield record("job-a", lines=1)
        read.append("told")
    following.pod("job-b", "running", of_the_other)
    until(following.registry, lambda: read)
    following.pod("job-a", "waiting", lambda: iter([OUTPUT, record("job-a")]))
    following.tell("job-a", exit=0)
    until(following.registry, lambda: "told" in read)
    time.sleep(0.3)  # the kubelet is slow
    following.pod("job-a", "terminated")
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_log_of_a_leader_that_was_killed_before_its_record(following):
    """The stream ends where the connection was closed, and goes on; its end is that of the ended container."""
    opened = []

    def in_pieces():
        opened.append(1)
        yield OUTPUT
        if len(opened) > 1:
            yield b"[0] and on\n"
            return
        until(following.registry, lambda: "status.json" in following.registry.objects[MAP]["data"])
        time.sleep(0.2)
    following.pod("job-a", "running", in_pieces)
    until(following.registry, lambda: opened)
    following.tell("job-a", exit=0)
    until(following.registry, lambda: len(opened) > 1)
    following.pod("job-a", "terminated")
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\nand on\n"), result


READING = "drarun: the workers are up; reading the log of job-a\n"


@pytest.mark.parametrize("lines, log, says", [
    ({"lines": 2}, "late", ["NIC_UNTRIED: worker 0 (job-w-0)\n"]),
    ({"lines": 2}, "never", [READING, "messages of the launcher are missing: the log of job-a was not read: "]),
    ({"lines": 2}, "refused", ["the registry says no"]),
    ({}, "never", [])], ids=["late", "never", "refused", "older launcher"])
def test_messages_from_before_an_allocation_is_up(drarun, tmp_path, lines, log, says):
    """Its document comes another way than its log, and may be ahead of it; it tells how many lines that has by then."""
    fabric = {"opened": {"nics": 0, "good": 0, "failed": 0, "unknown": 0, "matrix": [""]}}
    warning = json.dumps({"level": "note", "text": "NIC_UNTRIED: worker 0 (job-w-0)"}).encode() + b"\n"
    words = ["bench", "fabric", "-o", "json", "--name", "job", "--job", job_file(tmp_path)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=words)

        def late():
            yield b'{"event":"log","job":"job","lines":0}\n'
            until(registry, lambda: "status.json" in registry.objects[MAP]["data"])
            time.sleep(0.5)
            yield warning
        registry.refused = {"log"} if log == "refused" else set()
        following.pod("job-a", "running", None if log == "never" else late)
        following.tell("job-a", fabric=fabric, **lines)
        until(registry, lambda: annotation(registry, "drarun.dev/alloc") == "ended")
        registry.remove(path_of("pods", "job-w-0"))
        result = following.ended()
    assert json.loads(result.out) == fabric, result
    for text in ("NIC_UNTRIED", "messages of the launcher are missing", "the registry says no"):
        assert result.err.count(text) == any(text in each for each in says), result
    assert all(each in result.err for each in says), result


def test_interrupted_while_messages_are_awaited(drarun, tmp_path):
    """The job is followed to its end."""
    over = threading.Event()

    def log():
        yield b'{"event":"log","job":"job","lines":0}\n'
        over.wait(patience())
        yield record("job-a", status=130, lines=1)
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["alloc", job_file(tmp_path), "--", "echo", "up"])
        following.pod("job-a", "running", log)
        following.tell("job-a", lines=2)
        assert next(line for line in following.job.process.stderr if "reading" in line) == READING
        following.job.signal(signal.SIGINT)
        until(registry, lambda: is_cancelled(registry))
        following.tell("job-a", lines=3)
        time.sleep(0.5)
        assert following.job.process.poll() is None
        over.set()
        following.tell("job-a", exit=130)
        result = following.ended()
    assert (result.rc, result.out) == (130, "") and "are kept" not in result.err, result


def test_leaders_pod_is_gone_with_its_log(following):
    opened = []

    def half():
        opened.append(1)
        yield OUTPUT
        until(following.registry, lambda: path_of("pods", "job-a") not in following.registry.objects)
    following.pod("job-a", "running", half)
    until(following.registry, lambda: opened)
    following.tell("job-a", exit=0, lines=3)
    following.registry.remove(path_of("pods", "job-a"))
    result = following.ended()
    assert result.rc == 70 and result.out == "of the leader\n", result
    assert "output of job job was not read to its end: pod job-a, whose log has it, is gone" in result.err, result


@pytest.mark.parametrize("first", ["end", "document"])
def test_leaders_pod_is_gone_and_its_log_was_read(following, first):
    """The document tells how long it was; it may come behind the log's end."""
    opened, registry = [], following.registry

    def whole():
        opened.append(1)
        yield OUTPUT
        until(registry, lambda: path_of("pods", "job-a") not in registry.objects)
    following.pod("job-a", "running", whole)
    until(registry, lambda: opened)
    if first == "end":
        registry.remove(path_of("pods", "job-a"))
        time.sleep(0.3)
    following.tell("job-a", exit=0, lines=2)
    registry.remove(path_of("pods", "job-a"))
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_what_an_earlier_jobs_launcher_tells_is_of_no_account(following):
    following.tell("job-old", exit=7, uid="uid-old")
    time.sleep(0.5)
    assert following.job.process.poll() is None
    following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a")]))
    following.tell("job-a", exit=0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_rest_of_a_log_comes_before_its_successors(following):
    """Of a launcher that was killed, whose last lines are late."""
    opened = []

    def slow():
        opened.append(1)
        yield b'{"event":"log","job":"job","lines":0}\n[0] of the first\n'
        until(following.registry, lambda: path_of("pods", "job-b") in following.registry.objects)
        time.sleep(0.2)
        yield b"[0] last of the first\n"
    following.pod("job-a", "running", slow)
    following.tell("job-a")
    until(following.registry, lambda: opened)
    following.pod("job-a", "terminated")
    following.pod("job-b", "running", lambda: iter([OUTPUT, record("job-b")]))
    following.tell("job-b", exit=0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the first\nlast of the first\nof the leader\n"), result


def test_wait_for_a_job_that_is_deleted_and_its_document_not_yet(drarun, following):
    """The garbage collector takes its time."""
    registry = following.registry
    following.tell("job-a")
    registry.remove(JOB)
    waited = drarun("wait", "job", env=following.env, timeout=20)
    assert waited.rc == 70 and "job job was deleted" in waited.err, waited


@pytest.mark.parametrize("holder, stays", [("job-a", True), ("job-b", False)])
def test_cancel_leaves_the_end_to_a_launcher_that_leads(drarun, following, holder, stays):
    """The kubelet has not told yet that its pod runs."""
    registry = following.registry
    following.pod("job-a", "waiting", phase="Pending")
    registry.put(LEASE, {"metadata": {}, "spec": {"holderIdentity": holder}})
    drarun("cancel", "job", env=following.env, timeout=20).ok()
    assert (JOB in registry.objects) == stays
    assert not stays or "drarun.dev/cancel" in str(registry.objects[JOB]["metadata"]["annotations"])


def fail_job(registry):
    found = registry.objects[JOB]
    registry.put(JOB, {**found, "status": {"conditions": [
        {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit code 69"}]}})


def test_launcher_job_fails_before_it_leads(following):
    """Its workers would keep their devices: nobody else knows of them. What its launcher has said comes first."""
    words = json.dumps({"level": "error", "text": "pods is forbidden: a Role must allow it"}).encode() + b"\n"

    def late():
        yield words
    following.pod("job-a", "terminated", late, phase="Failed")
    fail_job(following.registry)
    result = following.ended()
    assert result.rc == 70 and "the launcher Job job failed: exit code 69" in result.err, result
    assert "a Role must allow it" in result.err and "is missing" not in result.err, result
    assert JOB not in following.registry.objects


def test_launcher_job_fails_without_a_pod(following):
    fail_job(following.registry)
    result = following.ended()
    assert result.rc == 70 and "the launcher Job job failed: exit code 69" in result.err, result
    assert JOB not in following.registry.objects


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


def test_pod_of_an_earlier_job_leads_none(drarun, following):
    """A Job that was deleted, and made again at once, may leave a pod that starts beside the new one's."""
    registry, lease = following.registry, path_of("coordination.k8s.io/v1/leases", "job")
    following.pod(socket.gethostname(), "running", owner="uid-old")
    launcher = drarun.start("run", "--job", "job", env={**following.env, "DRARUN_KEY": "5a" * 32, "DRARUN_SECRET": "key"})
    until(registry, lambda: launcher.process.poll() is not None or lease in registry.objects)
    assert lease not in registry.objects
    result = launcher.finish(20)
    assert result.rc == 69 and "is of an earlier Job job, which was deleted: it does not lead this job" in result.err, result


def replaced_launcher(drarun, following, document, earlier=False):
    """A new launcher, after somebody who may write ConfigMaps but no pods has written that document."""
    registry = following.registry
    registry.remove(path_of("pods", "job-w-0"))
    found = registry.objects[MAP]
    registry.put(MAP, {**found, "data": {**found["data"], "job.json": json.dumps(document)}})
    given = {each["name"]: each.get("value") for each in registry.objects[JOB]["spec"]["template"]["spec"]["containers"][0]["env"]}
    names = {"DRARUN_SECRET", "DRARUN_DOCUMENT", "DRARUN_DOCUMENT_WORKERS"} - ({"DRARUN_DOCUMENT_WORKERS"} if earlier else set())
    return drarun.start("run", "--job", "job", env={**following.env, "DRARUN_KEY": "5a" * 32, **{name: given[name] for name in names}})


def written(following):
    return json.loads(following.registry.objects[MAP]["data"]["job.json"])


@pytest.mark.parametrize("change", [
    {"image": "evil"}, {"command": ["sh"]}, {"restarts": 9}, {"workers": 2}, {"devices": {"gpus": {"count": 1, "class": "gpu.nvidia.com"}}},
    {"image": None, "command": None, "template": {"spec": {
        "serviceAccountName": "admin", "volumes": [{"name": "host", "hostPath": {"path": "/"}}], "containers": [
            {"name": "worker", "image": "a", "command": ["sh"], "volumeMounts": [{"name": "host", "mountPath": "/host"}]}]}}}],
    ids=["image", "command", "restarts", "workers", "devices", "template"])
def test_launcher_refuses_a_document_that_its_job_was_not_made_with(drarun, following, change):
    """It may make pods, and whoever may write the ConfigMap may not: it makes none, and says so on the Job."""
    registry, document = following.registry, written(following)
    document["spec"] = {key: value for key, value in {**document["spec"], **change}.items() if value is not None}
    launcher = replaced_launcher(drarun, following, document)

    def made():
        return [path for path in registry.objects if "/pods/" in path or "/leases/" in path or "/resourceclaims/" in path]
    until(registry, lambda: launcher.process.poll() is not None or made())
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
    until(registry, lambda: launcher.process.poll() is not None or LEASE in registry.objects)
    assert LEASE in registry.objects, launcher.finish(5)
    kill(registry, launcher)


def test_job_that_is_still_being_made(drarun, tmp_path):
    """Its launcher creates the rest itself once nobody else does any more."""
    workers, asked = 10, []
    pods = [path_of("pods", f"job-w-{i}") for i in range(workers)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=workers)])
        made = [registry.wait(path) for path in pods]
        for path in pods[1:]:
            registry.remove(path)
        registry.admit = lambda path, each: asked.append(path)
        launcher = replaced_launcher(drarun, following, written(following))
        until(registry, lambda: launcher.process.poll() is not None or LEASE in registry.objects)
        for path, each in list(zip(pods, made))[:-1]:
            registry.put(path, each)
            time.sleep(0.5)  # less than it waits for, and all of them more
        assert not [path for path in asked if "/pods/" in path], asked
        until(registry, lambda: launcher.process.poll() is not None or pods[-1] in asked)
        assert [path for path in asked if "/pods/" in path] == pods[-1:]
        kill(registry, launcher)


def test_job_that_is_cancelled_while_it_is_made(drarun, tmp_path):
    """Its launcher ends it once no further pods appear: those would stay."""
    workers = 10
    pods = [path_of("pods", f"job-w-{i}") for i in range(workers)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=workers)])
        made = [registry.wait(path) for path in pods]
        for path in pods[1:]:
            registry.remove(path)
        launcher = replaced_launcher(drarun, following, written(following))
        until(registry, lambda: launcher.process.poll() is not None or LEASE in registry.objects)
        job = registry.objects[JOB]
        registry.put(JOB, {**job, "metadata": {**job["metadata"], "annotations": {"drarun.dev/cancel": "test"}}})
        for path, each in zip(pods, made):
            assert not is_told(registry), path
            registry.put(path, each)
            time.sleep(0.5)  # less than it waits for, and all of them more
        until(registry, lambda: launcher.process.poll() is not None or is_told(registry))
        assert is_told(registry)
        kill(registry, launcher)


def test_pod_of_an_attempt_that_has_ended(drarun, tmp_path):
    """A client that is slow creates it when the pods of its attempt are deleted already, under the name of the next attempt's."""
    pods = [path_of("pods", f"job-w-{i}") for i in range(2)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", job_file(tmp_path, workers=2)])
        late = registry.wait(pods[1])
        found = registry.objects[MAP]
        registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps({
            "apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "uid": following.uid, "phase": "placing", "attempt": 2})}})
        launcher = replaced_launcher(drarun, following, written(following))
        until(registry, lambda: launcher.process.poll() is not None or all(attempt(registry, path) == "2" for path in pods))
        assert [attempt(registry, path) for path in pods] == ["2", "2"], launcher.finish(5)
        assert registry.objects[pods[1]]["metadata"]["uid"] != late["metadata"]["uid"]
        kill(registry, launcher)


def attempt(registry, pod):
    return registry.objects.get(pod, {"metadata": {}})["metadata"].get("labels", {}).get("drarun.dev/attempt")


def is_told(registry):
    """The end of the job."""
    return "exit" in json.loads(registry.objects[MAP].get("data", {}).get("status.json", "{}"))


def kill(registry, launcher):
    registry.remove(JOB)
    launcher.signal(signal.SIGKILL)
    launcher.finish(20, clean=False)


def owners(registry, path):
    return [each["uid"] for each in registry.objects.get(path, {"metadata": {}})["metadata"].get("ownerReferences", [])]


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


def lease(registry, holder, seconds):
    """Renewed so long ago."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
    registry.put(LEASE, {"metadata": {}, "spec": {
        "holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})


def lose_node(registry, pod):
    """As the node controller tells of a node that does not answer."""
    path = path_of("pods", pod)
    found = registry.objects[path]
    conditions = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    registry.put(path, {**found, "spec": {"nodeName": "n7"}, "status": {**found["status"], "conditions": conditions}})


def test_launcher_that_is_silent(drarun, tmp_path):
    """A job without restarts ends where its launcher's node does not answer; of another the launcher is late alone."""
    folders = [tmp_path / each for each in ("lost", "late")]
    over = threading.Event()

    def log():
        yield b'{"event":"log","job":"job","lines":0}\n'
        over.wait(patience())
        yield record("job-aaaaa", status=130, lines=1)
    with Registry().serving() as one, Registry().serving() as other:
        for folder in folders:
            folder.mkdir()
        lost, late = Following(drarun, one, folders[0]), Following(drarun, other, folders[1])
        for each in (lost, late):
            each.pod("job-aaaaa", "running", log)
            each.tell("job-aaaaa")
        lose_node(one, "job-aaaaa")
        lease(one, "job-aaaaa", 70)
        lease(other, "job-aaaaa", 31)
        result = lost.ended()
        assert result.rc == 70, result
        assert "drarun: launcher job-aaaaa on n7 has not renewed its Lease for 7" in result.err, result
        assert "its node does not answer: job job is over" in result.err and JOB not in one.objects, result
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


def test_launcher_that_could_not_renew_its_lease(following):
    """As after an outage of the API server: old at the first look, on a node of which the same is said, and soon renewed."""
    registry = following.registry

    def log():
        yield OUTPUT
        until(registry, lambda: registry.reads[LEASE] >= 4)
        yield record("job-aaaaa")
    following.pod("job-aaaaa", "running", log)
    following.tell("job-aaaaa")
    lose_node(registry, "job-aaaaa")
    lease(registry, "job-aaaaa", 70)
    until(registry, lambda: registry.reads[LEASE] >= 3)
    lease(registry, "job-aaaaa", 0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n") and "renews its Lease again" in result.err, result
    assert JOB in registry.objects


@pytest.mark.parametrize("verb, says", [("run", "cancelling job"), ("submit", "")])
def test_interrupted_while_it_is_submitted(drarun, tmp_path, verb, says):
    """When the first object is there, and others are not."""
    with Registry().serving() as registry:
        registry.answering.clear()
        job = drarun.start(verb, job_file(tmp_path), env=environment(registry, tmp_path))
        registry.wait(JOB)
        job.signal(signal.SIGINT)
        registry.answering.set()
        result = job.finish(20)
        assert (result.rc, result.out) == (130, "") and says in result.err, result
        assert "job is being submitted and will then be cancelled" in result.err, result
        assert JOB not in registry.objects


def test_interrupted_twice_while_it_is_submitted(drarun, tmp_path):
    with Registry().serving() as registry:
        registry.answering.clear()
        job = drarun.start("run", job_file(tmp_path), env=environment(registry, tmp_path))
        registry.wait(JOB)
        for signo in (signal.SIGINT, signal.SIGTERM):
            job.signal(signo)
        assert job.finish(20).rc in (-signal.SIGINT, -signal.SIGTERM)


NOT_SUBMITTED = "drarun: job was not submitted: the API server has not answered\n"


@pytest.mark.parametrize("words, says", [
    (["run", "{}"], NOT_SUBMITTED),
    (["submit", "{}"], NOT_SUBMITTED),
    (["alloc", "{}", "--", "true"], NOT_SUBMITTED),
    (["controller", "--all-namespaces"], ""),
])
def test_interrupted_before_the_api_server_has_answered(drarun, tmp_path, words, says):
    """As on a laptop whose cluster is stopped: nothing was made, so there is nothing to wait for."""
    with Registry().serving() as registry:
        env = environment(registry, tmp_path)
    job = drarun.start(*(word.format(job_file(tmp_path)) for word in words), env=env)
    assert "the API server does not answer, retrying" in job.process.stderr.readline()
    job.signal(signal.SIGINT)
    result = job.finish(20)
    assert (result.rc, result.err) == (-signal.SIGINT, says), result


# ---- a reader that pauses

PAUSED = 40000  # lines of a kilobyte: far more than the buffers on the way hold


def line(number):
    return f"{number:9} {'x' * 1000}\n"


def is_beginning(out):
    """Of all lines, cut anywhere."""
    return out == "".join(map(line, range(len(out) // len(line(0)) + 1)))[:len(out)]


class Flood:
    """The log of a launcher whose rank prints many lines, behind others; its end comes when the test sets .end. status None: without
    a record."""

    def __init__(self, status=0, others=()):
        self.status, self.others, self.sent, self.end = status, others, 0, threading.Event()

    def __call__(self):
        yield b'{"event":"log","job":"job","lines":0}\n'
        if self.others:
            yield "".join(f"[0] {each}" for each in self.others).encode()
        for first in range(0, PAUSED, 100):
            yield "".join(f"[0] {line(number)}" for number in range(first, first + 100)).encode()
            self.sent = first + 100
        self.end.wait(patience())
        if self.status is not None:
            yield record("job-a", self.status, lines=1 + len(self.others) + PAUSED)

    def wait_held_back(self):
        """Until the buffers are full."""
        end, before = time.monotonic() + patience(), -1
        while self.sent != before or not self.sent:
            assert time.monotonic() < end
            before = self.sent
            time.sleep(1)
        assert self.sent < 0.8 * PAUSED, "nothing holds it back"


def flooded(following, **how):
    log = Flood(**how)
    following.pod("job-a", "running", log)
    following.tell("job-a")
    log.wait_held_back()
    return log


def is_cancelled(registry):
    return annotation(registry, "drarun.dev/cancel") is not None


def is_all(out, *more):
    """No line of them is lost, doubled or torn. (A comparison in an assertion would show the difference.)"""
    return out == "".join([*map(line, range(PAUSED)), *more])


def test_reader_that_pauses_gets_every_line(following):
    """The job ends meanwhile."""
    log = flooded(following)
    following.tell("job-a", exit=0)
    log.end.set()
    following.pod("job-a", "terminated")
    time.sleep(1.5)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out), result


@pytest.mark.plain("measures memory")
def test_what_a_paused_reader_costs(following):
    """No memory."""
    log = flooded(following)
    assert peak_memory_kib(following.job.pid) < 24 * 1024
    log.end.set()
    following.tell("job-a", exit=0)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out), result


def test_log_of_the_first_launcher_waits_for_the_reader(following):
    """For longer than the rest of the log of a launcher that is gone is awaited."""
    flooded(following, status=None).end.set()
    following.pod("job-a", "terminated")
    following.pod("job-b", "running", lambda: iter([OUTPUT, record("job-b")]))
    following.tell("job-b", exit=0)
    time.sleep(6)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out, "of the leader\n"), result


@pytest.mark.parametrize("shell", [None, "exec {} 2>&1"], ids=["alone", "with stderr"])
def test_interrupted_while_its_reader_pauses(drarun, tmp_path, shell):
    """The signal cancels the job, and the job's end is seen: the reader has two seconds more."""
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, shell)
        flooded(following, status=130)
        following.job.signal(signal.SIGINT)
        until(registry, lambda: is_cancelled(registry))
        then = time.monotonic()
        following.tell("job-a", exit=130)
        following.job.process.wait(patience())
        took = time.monotonic() - then
        result = following.ended()
    assert result.rc == 130 and took > 1.5, (took, result)
    assert is_beginning("".join(each for each in result.out.splitlines(keepends=True) if not each.startswith("drarun:"))), result
    assert shell or "drarun: standard output has not been read for 2 s: the rest of it is dropped\n" in result.err, result


def test_interrupted_twice_while_its_reader_pauses(following):
    """The job goes on."""
    flooded(following)
    following.job.signal(signal.SIGINT)
    until(following.registry, lambda: is_cancelled(following.registry))
    following.job.signal(signal.SIGINT)
    following.job.process.wait(patience())
    result = following.ended()
    assert result.rc == 130 and is_beginning(result.out), result


def test_logs_interrupted_while_their_reader_pauses(drarun, following):
    """Which ends them alone."""
    log = Flood()
    following.pod("job-a", "running", log)
    following.tell("job-a")
    logs = drarun.start("logs", "-f", "job", env=following.env)
    log.wait_held_back()
    logs.signal(signal.SIGINT)
    logs.process.wait(patience())
    result = logs.finish(20)
    assert result.rc == 130 and is_beginning(result.out), result
    assert not is_cancelled(following.registry)


def test_interrupted_while_the_rest_is_written(following):
    """The job has ended well, and its output was read: what the reader does not take is lost."""
    small = [f"[0] {line(number)}".encode() for number in range(200)]
    following.pod("job-a", "running", lambda: iter([b'{"event":"log","job":"job","lines":0}\n', *small, record("job-a", lines=201)]))
    following.tell("job-a", exit=0)
    time.sleep(1.5)
    assert following.job.process.poll() is None
    following.job.signal(signal.SIGINT)
    following.job.process.wait(patience())
    result = following.ended()
    assert result.rc == 130 and is_beginning(result.out), result
    assert JOB in following.registry.objects, "it was cancelled"


@pytest.mark.parametrize("shell, rc, says", [
    ("exec {} >/dev/full", 70, "cannot write to standard output: No space left on device; job job goes on"),
    ("set -o pipefail; {} | head -n 1", 128 + signal.SIGPIPE, "")], ids=["full", "gone"])
def test_output_that_cannot_be_written(drarun, tmp_path, shell, rc, says):
    """The job goes on."""
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, shell)
        log = Flood()
        following.pod("job-a", "running", log)
        following.tell("job-a")
        result = following.ended()
        assert result.rc == rc and says in result.err, result
        assert JOB in registry.objects and not is_cancelled(registry)


BENCH = ["bench", "all_reduce", "--workers", "1", "--image", "a", "--name", "job", "--no-verdict"]


@pytest.mark.parametrize("end", [0, 130], ids=["goes on", "interrupted"])
def test_bench_while_its_reader_pauses(drarun, tmp_path, end):
    """It keeps a copy of the output, with lines that are for nobody else."""
    kept, table = tmp_path / "run.json", Run().text()
    others = [*table.splitlines(keepends=True), "#drarun-bench 0.{}\n"]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=[*BENCH, "-J", kept])
        log = Flood(end, others)
        following.pod("job-a", "running", log)
        following.tell("job-a")
        log.wait_held_back()
        if end:
            following.job.signal(signal.SIGINT)
            until(registry, lambda: is_cancelled(registry))
        log.end.set()
        following.tell("job-a", exit=end)
        if end:
            following.job.process.wait(patience())
        result = following.ended()
    assert result.rc == end and result.out.startswith(table), result
    out = result.out[len(table):]
    assert is_beginning(out) if end else is_all(out) and json.loads(kept.read_text())["results"], result


# ---- what it waits for

def test_status_line_of_a_narrow_terminal_has_the_reason(drarun, tmp_path):
    """In 80 columns, of which the last is free; a character is one column."""
    with Registry().serving() as registry:
        words = ["stty", "cols", "80", ";", "exec", str(drarun.program), "run", str(job_file(tmp_path))]
        job = drarun.start("-qfc", " ".join(words), "/dev/null", program="script", env={
            **environment(registry, tmp_path), "TERM": "xterm"})
        registry.wait(path_of("pods", "job-w-0"))
        reason = "no device of class gpu.drarun.dev left: éé of 16 are taken by claims"
        found, name = registry.objects[MAP], "job-aaaaa"
        text = f"waiting 3 s for worker 0: {reason}; claims 0/1 allocated, pods 0/1 running"
        registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps({
            "apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "phase": "placing",
            "launcher": {"pod": name}, "waiting": {"text": text, "reasons": [{"text": reason}]}})}})
        shown, limit = "", time.monotonic() + patience()
        while "for worker 0" not in shown.rpartition("\033[K")[0] and time.monotonic() < limit:
            shown += job.process.stdout.read(1)
        registry.remove(JOB)
        job.finish(20)
    lines = [line.partition("\033")[0] for line in shown.splitlines() if "for worker 0" in line]
    assert lines[0] == "drarun: waiting 3 s for worker 0: no device of class gpu.drarun.dev left: éé...", lines


# ---- no API server

UNANSWERED = "drarun: the API server does not answer, retrying: http://127.0.0.1:"


def test_who_only_looks_gives_a_dead_api_server_up_at_once(drarun, tmp_path):
    """Nobody takes the connection: there is nothing to wait for, and it is tried once."""
    with Registry(port=free_port()) as registry:
        env = environment(registry, tmp_path)
    job = job_file(tmp_path)
    for words in (["list"], ["status", "job"], ["describe", "job"], ["logs", "job"], ["plan", "--live", job]):
        result = drarun(*words, env=env)
        assert result.rc == 69 and "Couldn't connect to server" in result.err and "tries" not in result.err, result
        assert len(result.err.splitlines()) == 1, result


def test_who_waits_is_told_of_a_dead_api_server(drarun, tmp_path):
    with Registry(port=free_port()) as registry:
        env = environment(registry, tmp_path)
    for words in (["wait", "job"], ["submit", job_file(tmp_path)], ["cancel", "job"]):
        job = drarun.start(*words, env=env)
        line = job.process.stderr.readline()
        job.process.kill()
        job.finish(30)
        assert line.startswith(UNANSWERED) and "Couldn't connect" in line, (words, line)


def test_api_server_that_comes_back(drarun, tmp_path):
    with Registry(port=free_port()) as registry:
        env, port = environment(registry, tmp_path), registry.server_address[1]
    waiting = drarun.start("cancel", "job", env=env)
    assert waiting.process.stderr.readline().startswith(UNANSWERED)
    with Registry(port=port).serving():
        result = waiting.finish(30)
    assert result.rc == 66 and result.err.startswith("drarun: the API server answers again\n"), result
    assert "there is no job job" in result.err, result


@pytest.mark.parametrize("spec", [
    {"command": ["echo", "own"]}, {"command": ["echo"], "args": ["own"]},
    {"command": ["echo"], "args": ["own"], "template": {"spec": {"containers": [{"name": "side", "image": "b", "command": ["own"]}]}}},
    {"template": {"spec": {"containers": [{"name": "ranks", "image": "a", "command": ["echo"], "args": ["own"]}]}}}])
def test_arguments_of_the_command_line_reach_the_launcher(drarun, tmp_path, spec):
    """By the job's document, as they are; those of another container stay."""
    path = tmp_path / "job.json"
    image = {} if "command" not in spec else {"image": "a"}
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, **image, **spec}}))
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", path, "--", "$(RANK)", "$$"])
        told = json.loads(registry.objects[MAP]["data"]["job.json"])["spec"]
        following.tell("job-a", exit=0)
        following.ended()
    containers = told.get("template", {}).get("spec", {}).get("containers", [])
    says = next((each for each in containers if each["name"] != "side"), told)
    assert says["args"] == ["$$(RANK)", "$$$"] and all(each["command"] == ["own"] for each in containers if each["name"] == "side"), told
