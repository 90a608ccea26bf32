# SPDX-License-Identifier: Apache-2.0
"""Verbs that look at jobs of a cluster, with the words that people bring from kubectl: beside a registry of objects."""
import datetime
import json
import time

import pytest

from support.registry import Registry, path_of

pytestmark = pytest.mark.gate
LINES = b'{"event":"log","job":"%b","lines":0}\n' + b"".join(b"[%d] line %d\n" % (i % 2, i) for i in range(6))


def document(name, exit):
    document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": name, "namespace": "default", "uid": f"uid-of-{name}",
                "phase": "running", "ranks": 2, "workers": {"count": 2, "running": 2}, "launcher": {"pod": f"{name}-a", "lines": 8}}
    if not exit:  # the launcher of an earlier release told no devices
        document["devices"] = {"gpus": "16"}
    if exit is not None:
        document |= {"phase": "ended", "exit": exit, "result": "failed" if exit else "succeeded"}
    return document


class Jobs:
    def __init__(self, drarun, registry, folder):
        self.drarun, self.registry = drarun, registry
        self.env = {"KUBECONFIG": str(registry.kubeconfig(folder)), "DRARUN_IMAGE": "a"}

    def add(self, name, exit=0, writer=None, **labels):
        """As its launcher left it. writer: uid of the job whose launcher wrote the status; None: its own."""
        labels = {"drarun.dev/job": name, **labels}
        spec = {"metadata": {"name": name}, "spec": {"workers": 2, "image": "a", "command": ["true"]}}
        job = self.registry.put(path_of("batch/v1/jobs", name), {"metadata": {"labels": labels}})
        owner = [{"kind": "Job", "apiVersion": "batch/v1", "name": name, "uid": job["metadata"]["uid"]}]
        self.registry.put(path_of("configmaps", f"{name}-status"), {
            "metadata": {"labels": labels, "ownerReferences": owner},
            "data": {"job.json": json.dumps(spec), "status.json": json.dumps({**document(name, exit), "uid": writer or job["metadata"]["uid"]})}})
        ended = json.dumps({"event": "ended", "job": name, "launcher": f"{name}-a", "lines": 8, "status": exit}).encode() + b"\n"
        self.registry.logs[f"{name}-a"] = lambda: iter([LINES % name.encode() + ended])
        self.registry.put(path_of("pods", f"{name}-a"), {
            "metadata": {"labels": {**labels, "batch.kubernetes.io/job-name": name}, "ownerReferences": owner},
            "status": {"phase": "Succeeded", "containerStatuses": [{"name": "launcher", "state": {"terminated": {"exitCode": exit or 0}}}]}})

    def verb(self, *words):
        return self.drarun(*words, env=self.env)

    def file(self, folder, name):
        """To submit it again."""
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"metadata": {"name": name}, "spec": {"workers": 1, "image": "a", "command": ["true"]}}))
        return path


@pytest.fixture
def jobs(drarun, tmp_path):
    with Registry().serving() as registry:
        yield Jobs(drarun, registry, tmp_path)


def test_list_in_each_format(jobs):
    jobs.add("one", team="a")
    jobs.add("two", exit=3, team="b")
    heading, *rows = jobs.verb("list").ok().out.splitlines()
    assert heading.split() == ["NAME", "PHASE", "WORKERS", "RESTARTS", "AGE", "STATE"]
    assert [(row.split()[0], row.partition("  -  ")[2]) for row in rows] == [("one", "succeeded"), ("two", "failed (3)")]
    heading, *rows = jobs.verb("list", "-o", "wide").ok().out.splitlines()
    assert heading.split()[5:] == ["RANKS", "GPUS", "NICS", "LAUNCHER", "STATE"]
    assert [row.split()[5:] for row in rows] == [["2", "16", "-", "one-a", "succeeded"], ["2", "-", "-", "two-a", "failed", "(3)"]]
    assert jobs.verb("list", "-o", "name").ok().out == "one\ntwo\n"
    listed = json.loads(jobs.verb("list", "-o", "json").ok().out)
    assert [each["name"] for each in listed] == ["one", "two"]
    assert jobs.verb("list", "-o", "yaml").ok().out.startswith("- apiVersion: drarun.dev/v1alpha1\n")
    assert jobs.verb("list", "-l", "team=b", "-o", "name").ok().out == "two\n"
    assert jobs.verb("list", "-l", "team=c").ok().out == ""
    wrong = jobs.verb("list", "-o", "xml")
    assert wrong.rc == 64 and 'expected one of "text wide json yaml name", got "xml"' in wrong.err
    assert 'drarun status two shows one job' in jobs.verb("list", "two").err


def foreign(jobs, **names):
    """A status document with these names, by somebody who may write ConfigMaps."""
    jobs.registry.put(path_of("configmaps", "good-status"), {
        "metadata": {"labels": {"drarun.dev/job": "$(bad)"}},
        "data": {"status.json": json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", **names})}})


@pytest.mark.parametrize("names", [
    {"name": "$(touch${IFS}x)"}, {"name": "good\nother", "namespace": "other"}, {}, {"name": 7}], ids=["shell", "lines", "none", "number"])
def test_names_of_others(jobs, names):
    """They are the ConfigMap's own, whatever its text says."""
    foreign(jobs, **names)
    for verb in (["list"], ["status"], ["status", "good"], ["describe", "good"]):
        assert jobs.verb(*verb, "-o", "name").ok().out == "good\n"
    [listed] = json.loads(jobs.verb("list", "-o", "json").ok().out)
    assert (listed["name"], listed["namespace"]) == ("good", "default")
    assert jobs.verb("cancel", "--all").ok().err == ""
    assert path_of("configmaps", "good-status") not in jobs.registry.objects


def test_status_that_an_earlier_jobs_launcher_wrote(jobs, tmp_path):
    """It does not know yet that its job is gone: the job that has the name now goes on."""
    jobs.add("one", exit=3, writer="uid-of-the-earlier")
    assert [each["phase"] for each in json.loads(jobs.verb("list", "-o", "json").ok().out)] == ["created"]
    assert "exit" not in json.loads(jobs.verb("status", "one", "-o", "json").ok().out)
    early = jobs.verb("exec", "one", 0, "true")
    assert early.rc == 64 and "the ranks of one do not run yet" in early.err, early
    taken = jobs.verb("submit", "--replace", jobs.file(tmp_path, "one"))
    assert taken.rc == 69 and 'there is a job "one" in namespace default already' in taken.err, taken
    assert path_of("batch/v1/jobs", "one") in jobs.registry.objects


def test_exec_while_a_pod_of_an_earlier_attempt_goes(jobs):
    """The command runs beside the ranks of the job, and not in the pod that its node has yet to end."""
    jobs.add("one", exit=None)
    for name, more in (("one-w-0", {"deletionTimestamp": "2026-11-21T15:00:00Z"}), ("one-w-0-r1", {})):
        labels = {"drarun.dev/job": "one", "drarun.dev/worker": "0"}
        jobs.registry.put(path_of("pods", name), {"metadata": {"labels": labels, **more}, "status": {"phase": "Running"}})
    assert jobs.verb("exec", "one", 0, "true").rc != 0  # the registry runs nothing
    asked = [path for path in jobs.registry.reads if path.endswith("/exec")]
    assert asked and set(asked) == {path_of("pods", "one-w-0-r1") + "/exec"}


@pytest.mark.parametrize("later", ["batch/v1/jobs", "drarun.dev/v1alpha1/drajobs"])
def test_rest_of_an_earlier_job_beside_the_next_one(jobs, tmp_path, later):
    """The garbage collector has yet to delete it, and the next job waits for that: it is not the one that has ended."""
    jobs.add("one")
    job, map = path_of("batch/v1/jobs", "one"), path_of("configmaps", "one-status")
    jobs.registry.objects[map]["metadata"]["creationTimestamp"] = "2026-11-21T15:00:00Z"
    jobs.registry.put(job, {"metadata": {**jobs.registry.remove(job)["metadata"], "uid": "uid-of-the-next"}})
    jobs.registry.put(path_of(later, "one"), {"metadata": {"labels": {"drarun.dev/job": "one"}, "uid": "uid-of-the-next",
                                                           "creationTimestamp": "2026-11-21T16:00:00Z"}})
    taken = jobs.verb("submit", "--replace", jobs.file(tmp_path, "one"))
    assert taken.rc == 69 and 'there is a job "one" in namespace default already' in taken.err, taken
    assert "had ended before" not in taken.err and {job, path_of(later, "one")} <= set(jobs.registry.objects)
    assert "had ended before" not in jobs.verb("cancel", "one").ok().err
    assert not {job, path_of(later, "one")} & set(jobs.registry.objects)


def test_cancel_of_a_job_that_was_just_suspended(jobs):
    """Its Job is gone, and its ConfigMap goes later: the DraJob would run again when it is resumed."""
    jobs.add("one", exit=None)
    jobs.registry.remove(path_of("batch/v1/jobs", "one"))
    suspended = path_of("drarun.dev/v1alpha1/drajobs", "one")
    jobs.registry.put(suspended, {"metadata": {}, "spec": {"suspend": True}})
    assert jobs.verb("cancel", "one").ok().err == ""
    assert suspended not in jobs.registry.objects and path_of("configmaps", "one-status") not in jobs.registry.objects


def test_map_that_is_no_jobs(jobs):
    """A ConfigMap's name may hold points, and more characters than a job's."""
    for name in ("a.b-status", f"{'a' * 64}-status", "-status"):
        jobs.registry.put(path_of("configmaps", name), {"metadata": {"labels": {"drarun.dev/job": "a"}}, "data": {}})
    listed = jobs.verb("list", "-o", "name").ok()
    assert listed.out == "" and "there are no jobs in namespace default" in listed.err


@pytest.mark.parametrize("name", [".", "..", "a/b", "", "A", "a%2fb", "a" * 64])
def test_what_is_no_name(jobs, name):
    """It never becomes a part of a request's path."""
    jobs.add("one")
    seen = dict(jobs.registry.objects)
    for words in (["cancel", name], ["cancel", "one", name], ["status", name], ["describe", name], ["logs", name], ["wait", name], ["exec", name, 0, "true"]):
        result = jobs.verb(*words)
        assert result.rc == 64 and f'"{name}" is not the name of a job' in result.err, result
    for words in (["list", f"--namespace={name}"], ["cancel", "-n", name, "one"], ["status", "one", "-n", name]):
        result = jobs.verb(*words)
        assert result.rc == 64 and f'"{name}" is not a namespace' in result.err, result
    assert jobs.registry.objects == seen


@pytest.mark.parametrize("ahead", [-7200, 7200], ids=["early", "late"])
def test_list_deletes_what_has_expired(jobs, ahead):
    """By the API server's clock. This machine's is wrong by two hours."""
    jobs.registry.ahead = ahead
    jobs.add("one")
    kept = path_of("configmaps", "one-status")
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + ahead / 2))
    jobs.registry.objects[kept]["metadata"]["annotations"] = {"drarun.dev/expires": expires}
    jobs.verb("list").ok()
    assert (kept in jobs.registry.objects) == (ahead < 0)


def test_list_goes_on_with_what_changes(jobs):
    jobs.add("one", exit=None)
    watching = jobs.drarun.start("list", "-w", env=jobs.env)
    lines = [watching.process.stdout.readline() for _ in range(2)]
    assert lines[0].startswith("NAME") and lines[1].startswith("one "), lines
    jobs.add("two")
    assert watching.process.stdout.readline().startswith("two ")
    jobs.add("one", exit=5)
    line = watching.process.stdout.readline()
    assert line.startswith("one ") and "failed (5)" in line
    watching.process.terminate()
    watching.finish(20)


def test_status_of_the_only_job(jobs):
    none = jobs.verb("status")
    assert none.rc == 66 and "there are no jobs in namespace default" in none.err, none
    jobs.add("one", exit=3)
    assert jobs.verb("status").ok().out == jobs.verb("status", "one").ok().out != ""
    assert jobs.verb("status", "-o", "name").ok().out == "one\n"
    assert json.loads(jobs.verb("status", "-o", "json").ok().out)["exit"] == 3
    assert "exit: 3\n" in jobs.verb("status", "-o", "yaml").ok().out
    jobs.add("two")
    several = jobs.verb("status")
    assert several.rc == 64 and "there are 2 jobs in namespace default, name one: one, two" in several.err, several
    described = json.loads(jobs.verb("describe", "two", "-o", "json").ok().out)
    assert described["status"]["name"] == "two" and described["events"] == [] and described["agents"] == {}


def test_events_of_a_job_and_its_parts(jobs):
    """Not of a job whose name begins as its does."""
    own = ["DraJob/one", "Job/one", "Job/one-w", "Pod/one-2abcd", "Pod/one-w-0", "Pod/one-w-0-x2k8f", "ConfigMap/one-status", "ResourceClaim/one-w-0"]
    others = ["Job/one-2", "Job/one-2abcd", "Pod/one-2-w-0", "Pod/one-2-x2k8f", "PodGroup/one-2-w", "ConfigMap/one-2-status", "Pod/ones-w-0"]
    for i, (kind, _, name) in enumerate(each.partition("/") for each in own + others):
        jobs.registry.put(path_of("events", f"e{i}"), {"metadata": {}, "involvedObject": {"kind": kind, "name": name}, "reason": "R"})
    for name in ("one", "one-2"):
        jobs.add(name)
    described = json.loads(jobs.verb("describe", "one", "-o", "json").ok().out)
    assert ["{kind}/{name}".format(**each["involvedObject"]) for each in described["events"]] == own


GPU = "gpu.nvidia.com"


def serve_devices(registry, *classes):
    """One GPU on one node. classes: those of the cluster, which select all of their driver; none: they cannot be read."""
    def serve(path, *items):
        registry.objects[path] = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": list(items)}
    group = "/apis/resource.k8s.io/v1"
    registry.groups = [{"metadata": {"name": "resource.k8s.io"}, "versions": [{"version": "v1", "resources": [{"resource": "resourceclaims"}]}]}]
    serve("/api/v1/nodes", {"metadata": {"name": "n", "labels": {}}})
    serve(f"{group}/resourceslices", {"metadata": {"name": "s"}, "spec": {
        "driver": GPU, "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}]}})
    if classes:
        serve(f"{group}/deviceclasses", *({"metadata": {"name": name}, "spec": {"selectors": [
            {"cel": {"expression": f"device.driver == '{'dra.net' if name == 'dranet' else name}'"}}]}} for name in classes))


UNPLACED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                                "message": "0/1 nodes are available: 1 cannot allocate all claims."}]}
UNKNOWN = "cannot read the job's DeviceClasses, assuming their drivers' usual devices: "


@pytest.mark.parametrize("classes", [[GPU], ["mig.nvidia.com"], []], ids=["it", "others", "unknown"])
def test_waiting_for_devices_of_the_clusters_classes(jobs, classes):
    """Of a class that it lacks nothing is predicted, though its driver brings it usually. Where classes cannot be read,
    that is told."""
    registry = jobs.registry
    serve_devices(registry, *classes)
    jobs.add("one", None)
    registry.remove(path_of("pods", "one-a"))
    spec = {"metadata": {"name": "one"}, "spec": {"image": "a", "command": ["true"], "devices": {"gpus": {
        "count": 1, "selector": f'device.attributes["{GPU}"].type == "other"'}}}}
    found = registry.objects[path_of("configmaps", "one-status")]
    registry.put(path_of("configmaps", "one-status"), {**found, "data": {
        "job.json": json.dumps(spec), "status.json": json.dumps({**document("one", None), "phase": "placing"})}})
    labels = {"drarun.dev/job": "one", "drarun.dev/attempt": "1", "drarun.dev/worker": "0"}
    registry.put(path_of("resource.k8s.io/v1/resourceclaims", "one-w-0"), {"metadata": {"labels": labels}})
    registry.put(path_of("pods", "one-w-0"), {"metadata": {"labels": labels}, "status": UNPLACED})
    result = jobs.verb("status", "one").ok()
    lacks = classes and GPU not in classes
    assert (f"no device of class {GPU} with type ==" in result.out) != bool(lacks), result
    assert ("cannot allocate all claims" in result.out) == bool(lacks), result
    assert result.err.count(UNKNOWN) == (not classes), result


def test_no_job_is_impossible_by_classes_that_are_not_known(drarun, tmp_path):
    """No step of its claims has room: it stays at the first, unless the cluster's classes might select other devices. Two clusters
    beside each other: the classes of one can be read."""
    def admit(path, made):
        if "/pods/" in path:
            made["status"] = UNPLACED
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        "image": "a", "command": ["true"], "timeouts": {"allocation": "9s"},
        "devices": {"gpus": {"count": 1}, "nics": {"count": 1, "class": "dranet"}, "align": "preferred"}}}))
    with Registry().serving() as one, Registry().serving() as other:
        begun = []
        for registry, classes in ((one, [GPU, "dranet"]), (other, [])):
            registry.admit = admit
            serve_devices(registry, *classes)
            folder = tmp_path / f"{len(classes)} classes"
            folder.mkdir()
            begun.append((classes, drarun.start("run", "--here", file, env=Jobs(drarun, registry, folder).env)))
        for classes, job in begun:
            result = job.finish()
            assert "waiting for worker 0: no device of class dranet: no node publishes one" in result.err, result
            assert ("the next try follows at once with each GPU and a NIC of its NUMA node" in result.err) == (not classes), result
            assert result.err.count(UNKNOWN) == (not classes), result


def test_events_in_the_order_of_their_times(jobs):
    """The API server lists them by name. Those of one second keep its order, and the time of a series is its last one."""
    def at(second):
        return f"2026-11-21T15:24:{second}Z"
    times = [{"lastTimestamp": at(44), "firstTimestamp": at(40)}, {"lastTimestamp": None, "eventTime": at("43.500000")}, {"lastTimestamp": at(42)},
             {"lastTimestamp": None, "eventTime": at("40.000000"), "series": {"count": 3, "lastObservedTime": at("45.000000")}}, {"lastTimestamp": at(42)}]
    jobs.add("one")
    for i, each in enumerate(times):
        jobs.registry.put(path_of("events", f"e{i}"), {"metadata": {}, "involvedObject": {"kind": "Pod", "name": "one-w-0"}, "reason": f"R{i}", **each})
    described = json.loads(jobs.verb("describe", "one", "-o", "json").ok().out)
    assert [each["reason"] for each in described["events"]] == ["R2", "R4", "R1", "R0", "R3"]
    lines = jobs.verb("describe", "one").ok().out.partition("Events:\n")[2].splitlines()
    assert [line.split()[:4] for line in lines] == [[at(second), "Pod", "one-w-0:", f"R{i}:"] for i, second in (
        (2, 42), (4, 42), (1, "43.500000"), (0, 44), (3, "45.000000"))], lines


def test_status_until_the_end(jobs):
    jobs.add("one", exit=None)
    watching = jobs.drarun.start("status", "-w", env=jobs.env)
    assert "one: " in watching.process.stdout.readline()
    jobs.add("one", exit=0)
    result = watching.finish(30)
    assert result.rc == 0 and "succeeded" in result.out, result


def test_parts_of_a_log(jobs):
    jobs.add("one")
    whole = [f"line {i}" for i in range(6)]
    assert jobs.verb("logs", "one").ok().out.splitlines() == whole
    assert jobs.verb("logs", "--tail", 2, "one").ok().out.splitlines() == whole[4:]
    assert jobs.verb("logs", "one", "--tail", 2, "--rank", 0).ok().out.splitlines() == ["line 2", "line 4"]
    assert jobs.verb("logs", "--tail", 0, "one").ok().out == ""
    stamped = jobs.verb("logs", "--timestamps", "--tail", 1, "one").ok().out
    assert stamped.startswith("2026-11-21T15:24:42.") and stamped.endswith("Z line 5\n"), stamped
    assert jobs.verb("logs", "--since", "1s", "one").ok().out == ""
    written = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc).timestamp()  # the registry's logs
    hours = int((time.time() - written) / 3600) + 1
    assert jobs.verb("logs", "--since", f"{hours}h", "one").ok().out.splitlines() == whole
    jobs.registry.ahead = written + 16 * 3600 - time.time()  # by the server's clock they are half an hour old, whatever ours says
    assert jobs.verb("logs", "--since", "1h", "one").ok().out.splitlines() == whole
    assert jobs.verb("logs", "--since", "1m", "one").ok().out == ""
    wrong = jobs.verb("logs", "-f", "--tail", 2, "one")
    assert wrong.rc == 64 and "cannot be used with --follow" in wrong.err


def test_cancel_of_several(jobs):
    def there():
        return [name for name in ("one", "two", "three") if path_of("batch/v1/jobs", name) in jobs.registry.objects]
    for name in ("one", "two", "three"):
        jobs.add(name)
    for words in ((), ("--all", "one")):
        wrong = jobs.verb("cancel", *words)
        assert wrong.rc == 64 and "expected names of jobs, or --all" in wrong.err, wrong
    assert there() == ["one", "two", "three"]
    mixed = jobs.verb("cancel", "one", "nothing", "two")
    assert mixed.rc == 66 and "there is no job nothing" in mixed.err and there() == ["three"], mixed
    jobs.add("one", exit=None)
    jobs.add("two")
    jobs.registry.refused = {"PATCH"}
    refused = jobs.verb("cancel", "--all")  # all but one that goes on and cannot be asked to end
    assert refused.rc == 69 and refused.err.count("the registry says no") == 1 and there() == ["one"], refused
    jobs.registry.refused = set()
    jobs.verb("cancel", "--all").ok()
    assert there() == []


def test_acceptance_of_nodes_that_the_job_does_not_tolerate(jobs, tmp_path):
    """No test waits for room on them."""
    tainted = {"metadata": {"name": "head", "uid": "uid-of-head"}, "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]},
               "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    jobs.registry.objects["/api/v1/nodes"] = {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": [tainted]}
    none = jobs.verb("accept", jobs.file(tmp_path, "one"))
    assert none.rc == 69 and "nodes: 1 nodes are there, and none is ready to be tested; head: the job does not tolerate its taint node-role.kubernetes.io/control-plane: " in none.err, none
