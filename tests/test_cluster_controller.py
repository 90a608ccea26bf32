# SPDX-License-Identifier: Apache-2.0
"""DraJobs that are applied, and drarun controller: a process beside the API server that may do what deploy/controller.yaml
or drarun install --controller-role says, and the Deployment of that file."""
import contextlib
import json
import os
import re
import signal
import threading
import time

import pytest
import yaml

from support import metrics
from support.api_proxy import Exchange, NodesProxy
from support.build import BUILD, SOURCE
from support.cluster.objects import DISCOVERY
from support.cluster_jobs import IMAGE, RUN_S, in_namespace
from support.run import Runner, peak_memory_kib

API, KIND = "drarun.dev/v1alpha1", "DraJob"
HOME = "drarun-controller"
ACCOUNT = f"system:serviceaccount:{HOME}:{HOME}"
DEPLOYMENT = "Deployment"
ENDS = ("Succeeded", "Failed", "Cancelled")
TAKE_OVER_S = 90  # 15 s of a Lease that nobody renews, on a busy machine


def manifests(name):
    return list(yaml.safe_load_all((SOURCE / "deploy" / name).read_text()))


@pytest.fixture(scope="module")
def served(cluster):
    """The cluster with DraJobs and the controller's account."""
    cluster.api.make(*manifests("crd.yaml"))
    cluster.wait("the server does not tell of DraJobs", lambda: cluster.api.plural(API, KIND) and '"drajobs"' in json.dumps(
        cluster.api.ok("GET", "/apis", accept=DISCOVERY)), 60)
    cluster.api.make(*[each for each in manifests("controller.yaml") if each["kind"] != DEPLOYMENT])
    yield cluster
    for each in reversed(manifests("controller.yaml") + manifests("crd.yaml")):
        cluster.api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))


class Applied:
    """Jobs in a namespace of the test's own, as objects."""

    def __init__(self, jobs):
        self.jobs, self.cluster, self.namespace = jobs, jobs.cluster, jobs.namespace.name
        self.verb = jobs.verb

    def apply(self, name="job", **spec):
        """kubectl apply of the document; what it said against it, or ""."""
        made = {"apiVersion": API, "kind": KIND, "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"workers": 1, "image": "localhost/busybox:1", **spec}}
        run = self.cluster.in_ns([self.cluster.programs / "kubectl", "apply", "-f", "-"], input=json.dumps(made))
        return "" if run.returncode == 0 else run.stderr

    def get(self, name="job"):
        return self.cluster.api.get(API, KIND, name, self.namespace)

    def state(self, name="job"):
        return ((self.get(name) or {}).get("status") or {}).get("state")

    def wait(self, state, name="job", seconds=RUN_S):
        def there():
            now = self.state(name)
            assert now == state or now not in ENDS, f"{name} is {now}: {json.dumps(self.get(name)['status'])}"
            return now == state
        self.cluster.wait(lambda: f"{name} is not {state}:\n{self.seen(name)}", there, seconds)
        return self.get(name)["status"]

    def seen(self, name):
        """What there is of a job, for a failure's words."""
        said = [json.dumps((self.get(name) or {}).get("status"))]
        for words in (["get", "jobs,pods", "-o", "wide"], ["get", "jobs", "-o", "json"], ["logs", f"job/{name}", "--tail=30"]):
            run = self.cluster.in_ns([self.cluster.programs / "kubectl", *words, "-n", self.namespace])
            said.append(run.stdout + run.stderr)
        return "\n".join(said)

    def conditions(self, name="job"):
        return {each["type"]: each["status"] for each in self.get(name)["status"]["conditions"]}

    def patch(self, change, name="job"):
        return self.cluster.api.request("PATCH", self.cluster.api.path(API, KIND, self.namespace, name), change,
                                        content="application/merge-patch+json")

    def events(self, name="job"):
        """(reason, type) of those on the DraJob; their names begin with the job's, and the time."""
        return [(each["reason"], each["type"]) for each in sorted(
            self.cluster.api.get("v1", "Event", namespace=self.namespace), key=lambda each: each["metadata"]["name"])
            if each["involvedObject"]["kind"] == KIND and each["involvedObject"]["name"] == name]

    def parts(self):
        """What there is of jobs, but for DraJobs."""
        return sorted(found for kind, api in (("Job", "batch/v1"), ("Pod", "v1"), ("Secret", "v1"), ("ResourceClaim", "resource.k8s.io/v1"))
                      for found in ((kind, each["metadata"]["name"]) for each in self.cluster.api.get(api, kind, namespace=self.namespace)))

    def remove(self):
        """All DraJobs, and with them what they own. The garbage collector looks for new kinds every 30 s."""
        for each in self.cluster.api.get(API, KIND, namespace=self.namespace):
            self.cluster.api.delete(API, KIND, each["metadata"]["name"], self.namespace)
        self.cluster.wait(lambda: f"what it owned stays: {self.parts()}", lambda: not self.parts(), 2 * RUN_S)


@pytest.fixture
def applied(served, drarun, tmp_path, request):
    """A namespace in which nothing is left once its DraJobs are deleted."""
    with in_namespace(served, drarun, tmp_path, request.node.name) as jobs:
        jobs.install()
        made = Applied(jobs)
        yield made
        made.remove()


@contextlib.contextmanager
def controller(applied, name="controller", home=HOME, scope=("--all-namespaces",), through=None, program=None, image=IMAGE):
    """One with no more rights than the account drarun-controller of the namespace home has. through: a proxy; program: in place of drarun;
    image: of launchers and agents."""
    cluster = applied.cluster
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.ok("POST", cluster.api.path("v1", "ServiceAccount", home, HOME) + "/token", asked)["status"]["token"]
    config = cluster.keys.kubeconfig(applied.jobs.folder / f"{name}.conf", through.url if through else cluster.plane.server, {"token": token}, home)
    runner = Runner(program) if program else applied.jobs.drarun
    job = runner.start("controller", *scope, under=cluster.under, env={"KUBECONFIG": str(config), "DRARUN_IMAGE": image})
    yield job
    if job.process.poll() is None:
        job.signal(signal.SIGTERM)
        result = job.finish(60)
        assert result.rc == 0, result
    if program:
        runner.close()


def said(job, stream="stderr"):
    """What a program that runs has written so far, such as a controller's log."""
    fd = getattr(job.process, stream).fileno()
    os.set_blocking(fd, False)
    job.log = getattr(job, "log", "")
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 65536):
            job.log += chunk.decode()
    return job.log


class Following:
    """tests/programs/api_follow.c, which follows jobs that are there: drarun_job_follow_start."""

    def __init__(self, applied, build, loop, *names):
        self.cluster = applied.cluster
        self.job = applied.jobs.drarun.start(loop, *names, program=build / "tests" / "api_follow", under=self.cluster.under, env=applied.jobs.env)

    def wait_lines(self, *lines):
        self.cluster.wait(lambda: f"it does not tell what is awaited: {self.job.log}", lambda: {*lines} <= {*said(self.job, "stdout").splitlines()}, RUN_S)

    def told(self):
        """At its end, sorted, but for what was awaited."""
        result = self.job.finish(RUN_S)
        assert (result.rc, result.err) == (0, ""), result
        lines = (getattr(self.job, "log", "") + result.out).splitlines()
        return sorted(line for line in lines if " awaited: " not in line and not line.startswith("events left"))


@pytest.fixture
def led(applied):
    with controller(applied):
        yield applied


def test_controller_without_definition_or_rights(cluster, drarun, request):
    """It ends, and says who can help."""
    if cluster.api.plural(API, KIND):
        pytest.skip("the definition is there already: this test comes first in its file")
    run = drarun("controller", under=cluster.under, env={"KUBECONFIG": str(cluster.kubeconfig())})
    assert run.rc == 69 and "does not serve DraJobs: ask somebody with the rights to run drarun install --crd" in run.err, run
    request.getfixturevalue("served")
    run = drarun("controller", "-A", under=cluster.under, env={"KUBECONFIG": str(cluster.kubeconfig(user="nobody"))})
    assert run.rc == 69 and "leases" in run.err and "403" in run.err, run
    run = drarun("controller", "job.yaml")
    assert run.rc == 64 and 'unexpected argument "job.yaml"' in run.err, run


def test_killed_controller_leaves_jobs_alone(applied):
    """Another one takes over once the Lease has run out; the job never notices, and its end is told."""
    with controller(applied, "first") as first:
        assert applied.apply(workers=2, command=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.2; done"]) == ""
        before = applied.wait("Running")
        with controller(applied, "second") as second:
            applied.cluster.wait("the second one does not wait", lambda: "waiting until it ends" in said(second), 30)
            first.signal(signal.SIGKILL)
            first.process.wait()
            applied.cluster.wait("nobody takes over", lambda: "manages the DraJobs" in said(second), TAKE_OVER_S)
            assert applied.apply("other", command=["true"]) == ""  # it works
            applied.wait("Succeeded", "other")
            assert applied.get()["status"] == before
            for worker in range(2):
                applied.cluster.kubectl("exec", f"job-w-{worker}", "-n", applied.namespace, "--", "touch", "/tmp/go")
            status = applied.wait("Succeeded")
            assert (status["launcherUID"], status["attempt"], status["restarts"]) == (before["launcherUID"], 1, 0)


@pytest.mark.gate
def test_applied_job_runs(led):
    """From kubectl apply to the exit status, and all of it goes with the object."""
    assert led.apply(workers=2, command=["sh", "-c", "echo rank $RANK; exit $((RANK * 7))"]) == ""
    status = led.wait("Failed")
    assert (status["reason"], status["exitStatus"], status["ready"], status["workers"]["count"]) == ("Exit", 7, "0/2", 2)
    assert "rank 1" in status["message"] and status["cause"]["kind"] == "exit"
    assert led.conditions() == {"Accepted": "True", "Suspended": "False", "Allocated": "False", "Running": "False",
                                "Succeeded": "False", "Failed": "True"}
    head, row = led.cluster.kubectl("get", "drajobs", "-n", led.namespace).splitlines()
    assert dict(zip(head.split(), ("job", "2"))) == {"NAME": "job", "WORKERS": "2"} and " Failed " in row and " 7 " in row
    assert led.verb("wait", "job").rc == 7 and "rank 1\n" in led.verb("logs", "job").ok().out
    assert "failed (7)" in led.verb("list").ok().out
    owner = led.cluster.api.get("batch/v1", "Job", "job", led.namespace)["metadata"]["ownerReferences"]
    assert [(each["kind"], each["controller"]) for each in owner] == [(KIND, True)]
    led.remove()


def test_applied_job_with_roles_runs(led):
    """The definition keeps what is in roles, and the column counts the workers of all of them."""
    show = ["sh", "-c", "echo $DRARUN_ROLE $RANK $A"]
    assert led.apply(roles=[{"name": "head", "command": show, "env": {"A": "b"}},
                            {"name": "train", "command": show, "workers": 2, "ranksPerWorker": 2}], success="all") == ""
    status = led.wait("Succeeded")
    assert status["ready"].endswith("/3") and status["workers"]["count"] == 3 and status["ranks"] == 5, status
    head, row = led.cluster.kubectl("get", "drajobs", "-n", led.namespace).splitlines()
    assert dict(zip(head.split(), row.split()[:2])) == {"NAME": "job", "WORKERS": "3"}
    assert status["devices"] == {}
    assert sorted(led.verb("logs", "job").ok().out.splitlines()) == ["head 0 b", *(f"train {rank}" for rank in range(1, 5))]


def test_roles_that_the_controller_refuses(led):
    assert led.apply(roles=[{"name": "head"}]) == ""  # an image is at the top, a command is nowhere
    status = led.wait("Invalid")
    assert status["reason"] == "InvalidSpec" and "command is missing" in status["message"], status
    assert "name" in led.apply("other", roles=[{"command": ["true"]}])


def test_refused_spec_is_corrected_in_its_place(led):
    """What the schema lets through, the status names; a second apply is taken."""
    assert led.apply(command=["true"], nccl={"profile": "gke-a5"}) == ""
    status = led.wait("Invalid")
    assert status["reason"] == "InvalidSpec" and 'spec.nccl.profile: no profile "gke-a5"; did you mean gke-a4?' in status["message"]
    assert led.conditions() == {"Accepted": "False"} and led.parts() == []
    waited = led.verb("wait", "job")
    assert waited.rc == 65 and "no profile" in waited.err
    assert "no profile" in led.verb("status", "job").ok().out
    assert led.apply(command=["true"], nccl={"profile": "auto"}) == ""
    assert led.verb("wait", "job").rc == 0  # what was refused is another spec
    assert led.wait("Succeeded")["exitStatus"] == 0
    assert "is fixed once the job is accepted" in led.apply(command=["false"], nccl={"profile": "auto"})


@pytest.mark.plain("linked static with what takes a function's place")
def test_object_that_is_never_read(applied):
    """A fault of the reader costs the one job that meets it: it is refused with the reason, and the others go on."""
    for name, number in {"slow": 0.1, "crashes": 0.7}.items():
        assert applied.apply(name, command=["true"], devices={"gpus": {"count": 1, "config": {"number": number}}}) == ""
    assert applied.apply("whole", command=["true"]) == ""
    with controller(applied, program=BUILD / "tests/programs/drarun_cluster_slow"):
        why = {name: applied.wait("Invalid", name) for name in ("slow", "crashes")}
        applied.wait("Succeeded", "whole")
        assert [each["reason"] for each in why.values()] == ["InvalidSpec"] * 2
        assert "reading it takes more than 2 s of processor time" in why["slow"]["message"]
        assert "reading it ends with signal 11" in why["crashes"]["message"]
        assert applied.conditions("slow") == {"Accepted": "False"}
        applied.cluster.wait("no Event says so", lambda: applied.events("slow") == [("InvalidSpec", "Warning")], 30)
        assert applied.apply("slow", command=["true"]) == ""  # corrected in its place
        applied.wait("Succeeded", "slow")


@pytest.mark.parametrize("loop", ["libevent", "poll"])
def test_library_awaits_beside_other_work(applied, build, loop):
    """What was applied, before a controller comes: one is refused, one deleted, one runs; one is left while it waits."""
    specs = {"refused": {"nccl": {"profile": "gke-a5"}}, "deleted": {"suspend": True}, "runs": {}, "deaf": {"suspend": True}}
    for name, spec in specs.items():
        assert applied.apply(name, command=["sh", "-c", "echo up; exit 3"], **spec) == ""
    followed = Following(applied, build, loop, *specs)
    followed.wait_lines(*(f"{name} awaited: DraJob {name} has no objects yet: no drarun controller has seen it" for name in specs))
    with controller(applied):
        applied.wait("Suspended", "deleted")
        applied.cluster.api.delete(API, KIND, "deleted", applied.namespace)
        deleted, refused, *ran = followed.told()
    assert deleted == "deleted error infrastructure: the DraJob deleted was deleted" and ran == ["runs rank 0: up", "runs status 3"]
    assert refused.startswith("refused error spec: the spec of DraJob refused is invalid: ") and "no profile" in refused, refused


def test_suspended_and_resumed(led, build):
    """As with Kueue: nothing is there of a suspended job; one that runs gives all of it back, and starts anew."""
    assert led.apply(workers=2, command=["sleep", "1000"], suspend=True) == ""
    assert led.wait("Suspended")["reason"] == "Suspended"
    assert led.parts() == [] and led.conditions()["Suspended"] == "True"
    assert "suspended" in led.verb("status", "job").ok().out
    assert led.patch({"spec": {"suspend": False}})[0] == 200
    first = led.wait("Running")["launcherUID"]
    assert led.conditions()["Running"] == led.conditions()["Allocated"] == "True"
    waiting = led.jobs.drarun.start("wait", "job", under=led.cluster.under, env=led.jobs.env)
    followed = Following(led, build, "libevent", "job")
    assert led.patch({"spec": {"suspend": True}})[0] == 200
    assert "launcherUID" not in led.wait("Suspended")
    assert led.parts() == []
    assert led.patch({"spec": {"suspend": False}})[0] == 200
    assert led.wait("Running")["launcherUID"] != first
    led.verb("cancel", "job").ok()
    assert led.wait("Cancelled")["exitStatus"] == 130
    assert waiting.finish(RUN_S).rc == 130
    assert followed.told() == ["job status 130"]


def test_events(led):
    """One for each step, and none for what is looked at again."""
    assert led.apply(command=["sleep", "1000"], nccl={"profile": "gke-a5"}) == ""
    led.wait("Invalid")
    assert led.apply(command=["sleep", "1000"]) == ""
    led.wait("Running")
    for suspend, state in ((True, "Suspended"), (False, "Running")):
        assert led.patch({"spec": {"suspend": suspend}})[0] == 200
        led.wait(state)
    led.verb("cancel", "job").ok()
    led.wait("Cancelled")
    wanted = [("InvalidSpec", "Warning"), ("Created", "Normal"), ("Suspended", "Normal"), ("Resumed", "Normal"),
              ("Created", "Normal"), ("Cancelled", "Warning")]
    led.cluster.wait(lambda: f"its Events are {led.events()}", lambda: led.events() == wanted, 30)
    shown = led.cluster.kubectl("describe", "dj", "job", "-n", led.namespace)
    assert 'no profile "gke-a5"' in shown.split("Events:")[1], shown


def test_half_made_job_is_made_again(applied):
    """A controller died between the Job and what its pod needs."""
    assert applied.apply(command=["true"]) == ""
    owner = {"apiVersion": API, "kind": KIND, "name": "job", "uid": applied.get()["metadata"]["uid"], "controller": True}
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "launcher", "image": IMAGE, "envFrom": [{"secretRef": {"name": "none"}}]}]}}
    made = applied.cluster.api.make({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {
            "name": "job", "namespace": applied.namespace, "labels": {"drarun.dev/job": "job"}, "ownerReferences": [owner]},
        "spec": {"template": pod}})
    with controller(applied):
        assert applied.wait("Succeeded")["launcherUID"] != made["metadata"]["uid"]


def test_client_writes_the_same_object(led):
    """drarun run, with the definition there: its job is a DraJob like others, whose objects it makes itself."""
    role = json.loads(led.verb("install", "-n", led.namespace, "--user-role", "--format", "json").ok().out)["items"][0]
    led.jobs.env["KUBECONFIG"] = str(led.jobs.namespace.rbac_user(role))  # what people have is enough
    assert led.jobs.run(workers=2, command=["echo", "hello"]).ok().out == "hello\nhello\n"
    assert led.wait("Succeeded")["exitStatus"] == 0
    again = led.jobs.run(command=["true"])
    assert again.rc == 69 and 'there is a job "job"' in again.err
    assert "had ended before: succeeded" in led.verb("cancel", "job").ok().err
    led.cluster.wait("the DraJob stays", lambda: not led.get() and not led.parts(), RUN_S)
    assert led.jobs.run(command=["echo", "again"]).ok().out == "again\n"


def test_client_without_a_controller(applied, build):
    """Its job runs as ever; one that was applied waits, and says for whom."""
    assert applied.jobs.run(command=["echo", "alone"]).ok().out == "alone\n"
    assert applied.state() is None and applied.verb("wait", "job").rc == 0
    assert applied.apply("waiting", command=["true"]) == ""
    assert "no drarun controller has seen it" in applied.verb("status", "waiting").ok().out
    assert "waiting" in applied.verb("list").ok().out
    assert applied.verb("wait", "waiting", "--timeout", "1s").rc == 124
    logs = applied.verb("logs", "waiting").ok()
    assert logs.out == "" and "DraJob waiting has no objects yet: no drarun controller has seen it" in logs.err, logs
    for verb, said_of_it in (("logs", ""), ("status", "no drarun controller has seen it"), ("document", '"image": "localhost/busybox:1"')):
        told = applied.jobs.verb(verb, "waiting", program=build / "tests" / "api_caller").ok()  # the library says the same
        assert said_of_it in told.out and told.out.endswith("status 0\n"), told
    applied.verb("cancel", "waiting").ok()
    assert applied.get("waiting") is None
    with controller(applied):
        assert applied.wait("Succeeded")["exitStatus"] == 0  # what ended before it came


def test_client_that_makes_its_job_while_it_is_awaited(applied, build):
    """No controller tells that its objects are there."""
    metadata = {"name": "job", "namespace": applied.namespace}
    applied.cluster.api.make({"apiVersion": API, "kind": KIND, "metadata": {**metadata, "annotations": {"drarun.dev/made-by-client": "true"}},
                              "spec": {"image": "localhost/busybox:1", "command": ["true"]}})
    followed = Following(applied, build, "poll", "job")
    followed.wait_lines("job awaited: DraJob job has no objects yet: no drarun controller has seen it")
    document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "phase": "ended", "exit": 4}
    applied.cluster.api.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "name": "job-status"},
                              "data": {"status.json": json.dumps(document)}})
    assert followed.told() == ["job status 4"]
    applied.cluster.api.delete("v1", "ConfigMap", "job-status", applied.namespace)


def test_time_to_live_and_names_in_use(led):
    """A job goes with its time; the name of a job that is going is waited for."""
    assert led.apply(command=["sleep", "1000"]) == ""
    led.wait("Running")
    led.cluster.api.delete(API, KIND, "job", led.namespace)
    assert led.apply(command=["true"], ttlSecondsAfterFinished=1) == ""
    led.cluster.wait("an ended job stays", lambda: led.get() is None, RUN_S)
    led.cluster.wait(lambda: f"what it owned stays: {led.parts()}", lambda: not led.parts(), RUN_S)


def values(cluster, namespace, port):
    """{(metric, other labels): value}: what a controller tells Prometheus of itself and of that namespace's jobs."""
    status, _, text = metrics.scrape(cluster, "127.0.0.1", port)
    assert status == 200, text
    return {(name, *(value for key, value in labels.items() if key != "namespace")): value for name, labels, value in metrics.samples(text)
            if labels.get("namespace", namespace) == namespace}


def test_metrics(applied):
    """Jobs by state and ends are told by who leads; the other one says that it does not."""
    cluster, scope = applied.cluster, ("--all-namespaces", "--metrics-port")
    with controller(applied, scope=(*scope, "7172")):
        assert applied.apply("good", command=["true"]) == "" and applied.apply("bad", command=["false"]) == ""
        assert applied.apply("short", command=["true"], ttlSecondsAfterFinished=0) == ""
        assert applied.apply("wrong", command=["true"], devices={"nics": {"count": 1, "class": "dranet", "selector": "device.driver = 1"}}) == ""
        assert applied.apply("idle", command=["true"], suspend=True) == ""
        applied.wait("Succeeded", "good"), applied.wait("Failed", "bad"), applied.wait("Suspended", "idle"), applied.wait("Invalid", "wrong")
        cluster.wait("an ended job stays", lambda: applied.get("short") is None, RUN_S)
        with controller(applied, "second", scope=(*scope, "7174")):
            cluster.wait("the second controller does not serve", lambda: cluster.in_ns(["sh", "-c", "ss -Hltn sport = :7174 | grep -q ."]).returncode == 0, RUN_S)
            other = values(cluster, applied.namespace, 7174)
        cluster.wait(lambda: f"{values(cluster, applied.namespace, 7172)}",
                     lambda: values(cluster, applied.namespace, 7172).get(("drarun_controller_ended_total", "Succeeded")) == 2, RUN_S)
        found = values(cluster, applied.namespace, 7172)
    assert {key[1]: value for key, value in found.items() if key[0] == "drarun_controller_jobs"} == {
        "Succeeded": 1, "Failed": 1, "Suspended": 1, "Invalid": 1}
    assert {key[1]: value for key, value in found.items() if key[0] == "drarun_controller_ended_total"} == {"Succeeded": 2, "Failed": 1, "Cancelled": 0}
    assert {name: found[f"drarun_controller_{name}",] for name in ("created_total", "refused_total", "expired_total", "oldest_pending_seconds", "leads")} == {
        "created_total": 3, "refused_total": 1, "expired_total": 1, "oldest_pending_seconds": 0, "leads": 1}
    assert found["drarun_controller_looks_total",] >= 5 and found["drarun_controller_look_seconds_total",] > 0
    assert other["drarun_controller_leads",] == 0 and other["drarun_controller_created_total",] == 0
    assert not [key for key in other if key[0] == "drarun_controller_jobs"]


def test_metrics_port_that_is_taken(applied):
    """It says so, and makes nothing: a Deployment's pods have their ports to themselves."""
    with controller(applied, scope=("--all-namespaces", "--metrics-port", "7172")):
        applied.cluster.wait("the controller does not serve", lambda: applied.cluster.in_ns(["sh", "-c", "ss -Hltn sport = :7172 | grep -q ."]).returncode == 0, RUN_S)
        run = applied.jobs.verb("controller", "--all-namespaces", "--metrics-port", "7172")
    assert run.rc == 70 and "controller: metrics are not served: port 7172: Address already in use" in run.err, run
@pytest.fixture
def policy_of_a_ttl(served):
    """The policy as deploy/controller.yaml asks for with --ttl."""
    policy, = (each for each in manifests("controller.yaml") if each["kind"] == "ValidatingAdmissionPolicy")
    changed = json.loads(json.dumps(policy).replace("oldObject.?spec.?ttlSecondsAfterFinished.hasValue() && ", ""))
    assert changed != policy
    yield lambda made=changed: served.kubectl("apply", "-f", "-", input=json.dumps(made))
    served.kubectl("apply", "-f", "-", input=json.dumps(policy))


def test_time_to_live_of_the_site(applied, policy_of_a_ttl):
    """It is that of jobs that ended before it was set, too, and of none whose spec has its own; status says when, and whose."""
    with controller(applied, "without"):
        assert applied.apply("old", command=["true"]) == "" and applied.apply("own", command=["true"], ttlSecondsAfterFinished=86400) == ""
        assert "expirationTime" not in applied.wait("Succeeded", "old")
        kept = applied.wait("Succeeded", "own")
        assert kept["expirationReason"] == "Spec" and kept["expirationTime"] > kept["completionTime"]
        assert "will be deleted" not in applied.verb("status", "old").ok().out
        assert re.search(r"will be deleted in 23 h.* \(spec\.ttlSecondsAfterFinished\)", applied.verb("status", "own").ok().out)
    with controller(applied, "long", scope=("--all-namespaces", "--ttl", "2h")):
        applied.cluster.wait("it is not dated", lambda: applied.get("old")["status"].get("expirationReason") == "SiteDefault", RUN_S)
        told = applied.verb("describe", "old").ok().out
        assert re.search(r"will be deleted in 1 h.* \(the site's default time to live, drarun controller --ttl\)", told), told
        assert json.loads(applied.verb("status", "old", "-o", "json").ok().out)["expiration"] == {
            "time": applied.get("old")["status"]["expirationTime"], "reason": "site"}
        assert "ttlSecondsAfterFinished" not in applied.get("old")["spec"] and applied.get("old")["spec"]["command"] == ["true"]
    policy_of_a_ttl()
    with controller(applied, "short", scope=("--all-namespaces", "--ttl", "1s")):
        applied.cluster.wait("a job stays that ended before", lambda: applied.get("old") is None, 2 * RUN_S)
        assert applied.apply("new", command=["true"]) == ""
        applied.cluster.wait("a job stays that ended now", lambda: applied.get("new") is None, RUN_S)
        assert applied.get("own")["status"]["expirationReason"] == "Spec"


def report(applied, name, **status):
    """Who manages the job writes its status; the object's version then."""
    path = applied.cluster.api.path(API, KIND, applied.namespace, name) + "/status"
    return applied.cluster.api.ok("PATCH", path, {"status": status}, content="application/merge-patch+json")["metadata"]["resourceVersion"]


def version(applied, name):
    return applied.get(name)["metadata"]["resourceVersion"]


def test_job_of_another_manager(led):
    """As MultiKueue has it in the cluster of its users: nothing is made of it, nobody else writes or deletes it, and verbs show what
    its manager reports. A status that another cluster's controller wrote names a launcher that is not here."""
    manager = "kueue.x-k8s.io/multikueue"
    assert led.apply("far", command=["true"], managedBy=manager, ttlSecondsAfterFinished=0) == ""
    assert led.apply("held", command=["true"], managedBy=manager, suspend=True) == ""
    before = {name: version(led, name) for name in ("far", "held")}
    assert led.apply("ours", command=["true"], managedBy="drarun.dev/drajob-controller") == ""
    launcher = led.wait("Succeeded", "ours")["launcherUID"]  # it has looked at the others before
    assert {name: version(led, name) for name in before} == before

    whose = f"managed by {manager}"
    for verb in ("status", "describe"):
        assert f"{whose}, not by drarun's controller" in led.verb(verb, "far").ok().out
    row = next(line for line in led.verb("list").ok().out.splitlines() if line.startswith("far "))
    assert row.endswith(f"it has reported no status yet ({whose})"), row
    waited = led.verb("wait", "far", "--timeout", "2s")
    assert waited.rc == 124 and f"DraJob far is {whose}, not by drarun's controller" in waited.err, waited
    report(led, "far", state="Running", reason="Running", message="the ranks run", launcherUID=launcher, ready="1/1",
           workers={"count": 1, "allocated": 0, "ready": 1})
    assert "pods 1/1 running" in led.verb("status", "far").ok().out
    logs = led.verb("logs", "far").ok()
    assert logs.out == "" and whose in logs.err, logs
    waiting = led.jobs.drarun.start("wait", "far", under=led.cluster.under, env=led.jobs.env)
    led.cluster.wait(lambda: f"it does not wait: {said(waiting)}", lambda: whose in said(waiting), RUN_S)
    ended = report(led, "far", state="Failed", reason="Exit", message="rank 0 exited", exitStatus=3, completionTime="2026-01-01T00:00:00Z")
    assert waiting.finish(RUN_S).rc == 3

    assert led.apply("later", command=["true"]) == ""
    led.wait("Succeeded", "later")  # and has seen that end, and that the time to live of 0 is over
    assert (version(led, "far"), version(led, "held")) == (ended, before["held"])
    assert "finalizers" not in led.get("far")["metadata"]
    assert not [part for part in led.parts() if "far" in part[1] or "held" in part[1]] and led.events("far") == []
    led.verb("cancel", "far").ok()
    assert led.get("far") is None


def test_copy_that_kueue_makes(led):
    """In the cluster that runs it: without managedBy, with what marks the copy, which its parts do not have."""
    marks = {"kueue.x-k8s.io/multikueue-origin": "multikueue", "kueue.x-k8s.io/prebuilt-workload-name": "drajob-job-1a2b3"}
    led.cluster.api.make({"apiVersion": API, "kind": KIND, "metadata": {"name": "job", "namespace": led.namespace, "labels": {"team": "a", **marks}},
                          "spec": {"image": "localhost/busybox:1", "command": ["true"]}})
    led.wait("Succeeded")
    for kind, api in (("Job", "batch/v1"), ("Pod", "v1"), ("ConfigMap", "v1")):
        labels = [each["metadata"].get("labels", {}) for each in led.cluster.api.get(api, kind, namespace=led.namespace)]
        assert not [each for each in labels if set(each) & set(marks)], (kind, labels)
    assert led.cluster.api.get("batch/v1", "Job", "job", led.namespace)["metadata"]["labels"]["team"] == "a"
    assert led.get()["metadata"]["labels"].items() >= marks.items()


def test_launcher_that_may_not_read_its_job(led):
    """It fails before it leads: the object says why, and its workers release their nodes."""
    before, api = led.parts(), led.cluster.api
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]  # without that, the controller makes nothing
    api.request("PATCH", api.path("rbac.authorization.k8s.io/v1", "Role", led.namespace, "drarun-launcher"), {"rules": rules},
                content="application/merge-patch+json")
    assert led.apply(workers=2, command=["sleep", "1000"]) == ""
    status = led.wait("Failed")
    assert (status["reason"], status["exitStatus"]) == ("LauncherFailed", 70), status
    text = next(each["message"] for each in status["conditions"] if each["type"] == "Failed")
    assert re.search(r"; pod job-\w{5} ended with status 69: .* is forbidden: .*: a Role must allow it", text), text
    led.cluster.wait(lambda: f"it stays: {led.parts()}", lambda: led.parts() == before, RUN_S)
    assert led.get()["status"] == status


def test_launcher_on_a_lost_node(led):
    """Reported, of a job that nobody follows. Without restarts it ends, and gives back its devices; with restarts another launcher
    takes over when the node is back."""
    cluster = led.cluster
    lost = cluster.nodes[0]
    for name, restarts in (("last", 0), ("again", 1)):
        assert led.apply(name, command=["sleep", "1000"], restarts=restarts,
                         launcher={"nodeSelector": {"kubernetes.io/hostname": lost.name}}) == ""
    for name in ("last", "again"):
        led.wait("Running", name)
    lost.kill()
    try:
        for name in ("last", "again"):
            cluster.wait(lambda name=name: f"it is not reported: {led.seen(name)}",
                         lambda name=name: ("LauncherSilent", "Warning") in led.events(name), RUN_S)
        status = led.get("again")["status"]
        assert (status["state"], status["reason"], led.conditions("again")["Running"]) == ("Running", "LauncherSilent", "Unknown"), status
        assert re.match(rf"launcher again-\w{{5}} on {lost.name} has not renewed its Lease since 20\S*Z", status["message"]), status
        status = led.wait("Failed", "last", 3 * RUN_S)
        assert (status["reason"], status["exitStatus"]) == ("LauncherLost", 70), status
        assert status["message"].endswith(": its node does not answer"), status
        cluster.wait(lambda: f"its Job stays: {led.seen('last')}", lambda: ("Job", "last") not in led.parts(), RUN_S)
        assert led.state("again") == "Running" and ("Job", "again") in led.parts()
    finally:
        lost.boot()
        lost.wait_ready()
    cluster.wait(lambda: f"no launcher takes over: {led.seen('again')}", lambda: led.get("again")["status"]["reason"] == "Running"
                 and led.get("again")["status"]["restarts"] == 1 and led.conditions("again")["Running"] == "True", 3 * RUN_S)


def test_deleted_launcher_and_quota(led):
    """What somebody else does: the Job is deleted; a quota that is lifted later."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": led.namespace},
             "spec": {"hard": {"count/jobs.batch": "0"}}}
    mark = led.cluster.audit.mark()

    def refused():
        return led.cluster.audit.requests(since=mark, resource="jobs", verb="create", namespace=led.namespace, code=403)
    led.cluster.api.make(quota)
    led.cluster.wait("the quota does not work", lambda: led.cluster.api.get("v1", "ResourceQuota", "none", led.namespace).get(
        "status", {}).get("hard"), 30)
    assert led.apply(command=["sleep", "1000"]) == ""
    led.cluster.wait("it is not told why", lambda: "exceeded quota" in (led.get().get("status") or {}).get("message", ""), RUN_S)
    assert led.state() == "Pending" and led.get()["status"]["reason"] == "CannotCreate"
    led.cluster.wait("it is not tried again", lambda: len(refused()) > 2, 30)
    led.cluster.wait(lambda: f"its Events are {led.events()}", lambda: led.events() == [("CannotCreate", "Warning")], 30)
    led.cluster.api.delete("v1", "ResourceQuota", "none", led.namespace)
    led.wait("Running")
    led.cluster.api.delete("batch/v1", "Job", "job", led.namespace)
    assert led.wait("Cancelled")["reason"] == "JobDeleted"


def test_namespace_with_pod_security(led):
    """What mends a refusal is the object's message, told once, and mends it; nothing stays of what was tried."""
    api, there = led.cluster.api, led.namespace
    mark = led.cluster.audit.mark()

    def refused():
        return led.cluster.audit.requests(since=mark, resource="pods", verb="create", namespace=there, code=403)
    led.cluster.kubectl("label", "namespace", there, "pod-security.kubernetes.io/enforce=baseline")
    before = led.parts()
    assert led.apply(workers=3, devices={"nics": {"count": 1, "class": "dranet"}}, command=["true"]) == ""
    line = f"kubectl label --overwrite namespace {there} pod-security.kubernetes.io/enforce=privileged"
    led.cluster.wait("it is not told what mends it", lambda: line in (led.get().get("status") or {}).get("message", ""), RUN_S)
    status = led.get()["status"]
    assert (status["state"], status["reason"], status["devices"]) == ("Pending", "CannotCreate", {"nics": "3"}), status
    assert f'namespace {there} enforces Pod Security "baseline:latest", which forbids pod "job-w-0": IPC_LOCK' in status["message"]
    assert [each["type"] for each in status["conditions"] if each["reason"] == "CannotCreate" and line in each["message"]] == ["Allocated", "Running"]
    seen = set()

    def tried_again():
        seen.add(led.get()["status"]["reason"])
        return len(refused()) > 3
    led.cluster.wait("it is not tried again", tried_again, RUN_S)
    assert seen == {"CannotCreate"}, seen  # also while what was tried goes
    led.cluster.wait(lambda: f"its Events are {led.events()}", lambda: led.events() == [("CannotCreate", "Warning")], 30)
    led.cluster.wait(lambda: f"what was tried stays: {led.parts()}", lambda: led.parts() == before, RUN_S)
    led.cluster.kubectl(*line.split()[1:])
    led.cluster.wait(lambda: f"it is not made: {led.get()}", lambda: len(
        [each for each in led.parts() if each[0] == "Pod" and each[1].startswith("job-w-")]) == 3, 2 * RUN_S)
    led.cluster.wait("it is still told", lambda: api.get(API, KIND, "job", there)["status"]["reason"] != "CannotCreate", RUN_S)


@pytest.fixture
def refusing(led):
    """A policy of the cluster without a reason, so that its refusal is a 422: no worker's pod in that namespace, for now."""
    version, api = "admissionregistration.k8s.io/v1", led.cluster.api
    name = {"name": f"not-now-{led.namespace}"}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": led.namespace}},
             "objectSelector": {"matchExpressions": [{"key": "drarun.dev/worker", "operator": "Exists"}]},
             "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
    kinds = {"ValidatingAdmissionPolicy": {"matchConstraints": where, "validations": [{"expression": "false", "message": "not now"}]},
             "ValidatingAdmissionPolicyBinding": {"policyName": name["name"], "validationActions": ["Deny"]}}
    api.make(*({"apiVersion": version, "kind": kind, "metadata": name, "spec": spec} for kind, spec in kinds.items()))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": led.namespace, "labels": {"drarun.dev/worker": "0"}},
           "spec": {"containers": [{"name": "a", "image": IMAGE}]}}
    led.cluster.wait("the policy does not work", lambda: api.create(pod, dry_run=True)[0] == 422, RUN_S)

    def lift():
        for kind in reversed(kinds):
            api.delete(version, kind, name["name"])
    yield lift
    lift()


def wait_refused(led, words, name="job"):
    """Its objects cannot be made, for that reason, and nothing is wrong with its spec."""
    led.cluster.wait(lambda: f"it is not told why: {led.get(name)}", lambda: words in (led.get(name).get("status") or {}).get("message", ""), RUN_S)
    status = led.get(name)["status"]
    assert (status["state"], status["reason"], led.conditions(name)["Accepted"]) == ("Pending", "CannotCreate", "True"), status


def test_policy_that_refuses_without_a_reason(led, refusing):
    """That says nothing against the spec: the job starts once the policy lets it."""
    assert led.apply(command=["true"]) == ""
    wait_refused(led, "denied request: not now")
    refusing()
    assert led.wait("Succeeded")["exitStatus"] == 0


def test_rights_of_a_namespace_come_late(led):
    """The controller's own policy refuses the job until the launcher may make pods there."""
    api, binding = led.cluster.api, ("rbac.authorization.k8s.io/v1", "RoleBinding", "drarun-launcher", led.namespace)
    api.delete(*binding)
    assert led.apply(command=["true"]) == ""
    wait_refused(led, "the controller makes objects only where drarun install was run")
    led.cluster.kubectl("apply", "-f", "-", input=led.verb("install", "--namespace", led.namespace).ok().out)
    assert led.wait("Succeeded")["exitStatus"] == 0


@pytest.fixture
def webhook_down(led):
    """A webhook for the pods of job "held" that nobody serves: the server answers with 500."""
    version, kind, api = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", led.cluster.api
    name = f"down-{led.namespace}"
    api.make({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "webhooks": [{
        "name": "pods.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": led.namespace}},
        "objectSelector": {"matchLabels": {"drarun.dev/job": "held"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}]})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": led.namespace, "labels": {"drarun.dev/job": "held"}},
           "spec": {"containers": [{"name": "a", "image": IMAGE}]}}
    led.cluster.wait("the webhook is not asked", lambda: api.create(pod, dry_run=True)[0] == 500, RUN_S)

    def mend():
        api.delete(version, kind, name)
    yield mend
    mend()


def test_job_that_a_webhook_holds_back(led, webhook_down):
    """The controller does not try for long at a time, since others' jobs may wait for its place."""
    mark = led.cluster.audit.mark()

    def asked(verb, resource, **what):
        return [each.received for each in led.cluster.audit.requests(
            since=mark, verb=verb, resource=resource, namespace=led.namespace, user=ACCOUNT, **what)]

    def tries():
        return asked("create", "pods", code=500)
    assert led.apply("held", command=["true"]) == ""
    led.cluster.wait("its pod is not tried", tries, RUN_S)
    assert led.apply(command=["true"]) == ""
    led.wait("Succeeded")
    wait_refused(led, "failed calling webhook", "held")
    _, told, *_ = sorted(asked("update", "drajobs", subresource="status", name="held"))  # the first one says that it is accepted
    assert len([each for each in tries() if each < told]) < 12  # with pauses that double to 5 s; in a minute there are more
    webhook_down()
    led.wait("Succeeded", "held", 2 * RUN_S)


def renewed(applied):
    return applied.cluster.api.get("coordination.k8s.io/v1", "Lease", HOME, HOME)["spec"]["renewTime"]


def test_api_server_goes_away(applied):
    """The controller waits for it, and tells what happened meanwhile."""
    with controller(applied, "first") as first, contextlib.ExitStack() as more:
        assert applied.apply(command=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.2; done"]) == ""
        applied.wait("Running")
        applied.cluster.apiserver.kill()
        applied.cluster.apiserver.start()
        applied.cluster.plane.wait_ready()
        before = renewed(applied)
        applied.cluster.wait("it neither renews its Lease nor ends", lambda: renewed(applied) != before or first.process.poll() is not None,
                             LOST_S)
        if first.process.poll() is not None:  # a busy machine took longer than its Lease: its Deployment starts another one
            lost = first.finish(LOST_S)
            assert lost.rc == 70 and "Lease is lost" in lost.err, lost
            more.enter_context(controller(applied, "second"))
        applied.cluster.kubectl("exec", "job-w-0", "-n", applied.namespace, "--", "touch", "/tmp/go")
        assert applied.wait("Succeeded", seconds=TAKE_OVER_S + RUN_S)["exitStatus"] == 0


LOST_S = 20           # after which a Lease of 15 s is lost by a holder that cannot renew it
CALL_S = 60           # a call is retried for this time


def created(applied, mark, name):
    """How often a Job of that name was made."""
    return len([each for each in applied.cluster.audit.requests(
        since=mark, resource="jobs", verb="create", name=name, namespace=applied.namespace) if each.code == 201])


def test_api_server_is_away_for_longer_than_the_lease(applied):
    """Who leads ends, who waits takes over. Jobs that ran and those that are applied right after are made once."""
    cluster = applied.cluster
    with controller(applied, "first") as first:
        mark = cluster.audit.mark()
        assert applied.apply(workers=2, command=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.2; done"]) == ""
        before = applied.wait("Running")
        with controller(applied, "second") as second:
            cluster.wait("the second one does not wait", lambda: "waiting until it ends" in said(second), 30)
            cluster.apiserver.kill()
            lost = first.finish(LOST_S + 60)
            assert lost.rc == 70 and "controller: the controller's Lease is lost" in lost.err, lost
            cluster.apiserver.start()
            cluster.plane.wait_ready()
            names = [f"after-{i}" for i in range(3)]
            for name in names:
                cluster.wait(f"{name} is not taken", lambda: applied.apply(name, command=["true"]) == "", 60)
            cluster.wait("nobody takes over", lambda: "manages the DraJobs" in said(second), TAKE_OVER_S)
            for worker in range(2):
                cluster.kubectl("exec", f"job-w-{worker}", "-n", applied.namespace, "--", "touch", "/tmp/go")
            for name in ("job", *names):
                status = applied.wait("Succeeded", name, 2 * RUN_S)
                assert (status["attempt"], status["restarts"], created(applied, mark, name)) == (1, 0, 1)
            assert applied.get()["status"]["launcherUID"] == before["launcherUID"]


@contextlib.contextmanager
def proxies(cluster, count):
    made = [NodesProxy(cluster) for _ in range(count)]
    yield made
    for each in made:
        each.close()


def test_answer_to_a_renewal_is_lost(applied):
    """What the server has taken from this holder is not another's doing: it leads on."""
    with proxies(applied.cluster, 1) as (one,), controller(applied, through=one) as leader:
        def renewals():
            return [path for _, _, path, _ in one.seen("PUT") if "/leases/" in path]
        applied.cluster.wait("it does not begin", lambda: "manages the DraJobs" in said(leader), 30)
        one.fault(Exchange.lose, lambda method, path: method == "PUT" and "/leases/" in path)
        before = len(renewals())  # of the next, the answer is lost, it is sent again, and refused
        applied.cluster.wait(lambda: f"it does not renew: {said(leader)}", lambda: len(renewals()) >= before + 4, 3 * LOST_S)
        assert leader.process.poll() is None and "lost" not in said(leader), said(leader)


HELD_S = 6  # less than one creation may take; a job needs four, one after the other, so that a Lease's time ends meanwhile


def test_lease_is_lost_while_a_job_is_made(applied):
    """Who had it finishes the call and tells nothing; who waits for it does so for longer than a call, and makes the job anew."""
    cluster, go = applied.cluster, threading.Event()

    def held(exchange):
        go.wait(HELD_S)
        exchange.forward()
    with proxies(cluster, 2) as (one, two), controller(applied, "first", through=one) as first:
        cluster.wait("it does not begin", lambda: "manages the DraJobs" in said(first), 30)
        with controller(applied, "second", through=two) as second:
            cluster.wait("the second one does not wait", lambda: "waiting until it ends" in said(second), 30)
            looks = len(two.requests)
            cluster.wait("it does not look at the Lease", lambda: len(two.requests) > looks + 1, 30)
            two.down()  # before the other loses it: the second one is not to take it now
            one.fault(Exchange.drop, lambda method, path: method == "PUT" and "/leases/" in path, 10 ** 6)
            one.fault(held, lambda method, path: method == "POST" and f"/namespaces/{applied.namespace}/" in path, 10 ** 6)
            away = time.monotonic()
            assert applied.apply(command=["true"]) == ""
            cluster.wait("it makes nothing", lambda: any("/jobs" in path for _, _, path, _ in one.seen("POST")), 30)
            cluster.wait("a Lease's time", lambda: time.monotonic() > away + LOST_S, 2 * LOST_S)
            go.set()
            cluster.wait("it does not end", lambda: first.process.poll() is not None, 60)
            assert first.process.returncode == 70 and "Lease is lost" in said(first)
            assert cluster.api.get("batch/v1", "Job", "job", applied.namespace) and "launcherUID" not in applied.get()["status"]
            cluster.wait("a call's time", lambda: time.monotonic() > away + CALL_S + 5, 2 * CALL_S)
            two.up()
            applied.wait("Succeeded", seconds=TAKE_OVER_S + RUN_S)
            assert "waiting for the API server" in said(second) and second.process.poll() is None


@pytest.mark.plain("memory of the plain build is the limit")
def test_large_objects_of_strangers(applied):
    """They have the label of a job's parts, and are there when the controller begins, or come later; and jobs that have ended."""
    api, namespace = applied.cluster.api, applied.namespace

    def add(numbers):
        api.make(*({"apiVersion": "v1", "kind": "ConfigMap", "data": {"it": "x" * 900_000}, "metadata": {
            "name": f"large-{i}", "namespace": namespace, "labels": {"drarun.dev/job": f"large-{i}"}, "annotations": {"it": "x" * 100_000}}} for i in numbers))
    add(range(40))
    for i in range(40):
        api.make({"apiVersion": API, "kind": KIND, "metadata": {"name": f"ended-{i}", "namespace": namespace},
                  "spec": {"image": "localhost/busybox:1", "command": ["true"], "args": ["x" * 200_000]}})
        api.patch_status(API, KIND, f"ended-{i}", {"state": "Succeeded", "completionTime": "2026-11-27T00:00:00Z"}, namespace)
    with controller(applied) as running:
        applied.cluster.wait("it does not begin", lambda: "manages the DraJobs" in said(running), 30)
        add(range(40, 80))
        assert applied.apply(command=["true"]) == ""
        applied.wait("Succeeded")
        assert peak_memory_kib(running.process.pid) < 20 * 1024
    for i in range(80):
        api.delete("v1", "ConfigMap", f"large-{i}", namespace)


NOT_TRIED = {("computedomains", "get"), ("computedomains", "create"), ("podgroups", "get"), ("podgroups", "create"),  # no such API here
             ("configmaps", "get"), ("jobs", "get"), ("resourceclaims", "get"), ("resourceclaimtemplates", "get"), ("networkpolicies", "get"),  # of what is in the way
             ("configmaps", "list"), ("drajobs", "list"), ("jobs", "list"),  # servers that do not stream their lists
             ("leases", "list"),  # of jobs that run for a quarter of a minute
             ("resourceslices", "list")}  # where a class may bring the agent


def given(objects):
    """(resource, verb) of their roles."""
    return {(name, verb) for each in objects for rule in each.get("rules", ()) for name in rule["resources"] for verb in rule["verbs"]}


def asked(cluster, mark, account):
    """What it has asked for since: the requests, and (resource, verb) of them."""
    found = [each for each in cluster.audit.requests(since=mark, user=account) if each.resource]
    return found, {(f"{each.resource}/{each.subresource}" if each.subresource else each.resource, each.verb) for each in found}


@contextlib.contextmanager
def deployed(cluster, scope="--all-namespaces", probe=()):
    """The Deployment as it is deployed, but for the image's name, whose DraJobs, and how often it is probed."""
    deployment = next(each for each in manifests("controller.yaml") if each["kind"] == DEPLOYMENT)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["image"] = container["env"][0]["value"] = IMAGE
    container["command"][container["command"].index("--all-namespaces")] = scope
    container["livenessProbe"].update(probe)
    cluster.api.make(deployment)
    try:
        yield
    finally:
        cluster.api.delete("apps/v1", DEPLOYMENT, HOME, HOME)
        cluster.wait("its pods stay", lambda: not cluster.api.get("v1", "Pod", namespace=HOME), RUN_S)


def use_all(applied):
    """Whatever a controller does."""
    cluster = applied.cluster
    assert applied.apply(workers=2, command=["true"]) == ""
    assert applied.wait("Succeeded", seconds=2 * RUN_S)["ready"] == "0/2"
    assert applied.apply("gone", command=["true"], ttlSecondsAfterFinished=0) == ""
    for mode in ("direct", "template"):  # the devices are nowhere
        assert applied.apply(mode, command=["true"], devices={"claims": mode, "gpus": {"count": 1}, "nics": {"count": 1, "class": "dranet"}}) == ""
        cluster.wait("it does not wait", lambda: applied.state(mode) == "Placing", RUN_S)
        assert applied.conditions(mode)["Allocated"] == "False"
        assert applied.patch({"spec": {"suspend": True}}, mode)[0] == 200
        applied.wait("Suspended", mode)
    cluster.wait("its time does not end", lambda: not applied.get("gone"), RUN_S)
    applied.remove()


def test_deployment(applied):
    """The rights of its account are those that it uses."""
    cluster = applied.cluster
    cluster.device_classes()
    mark = cluster.audit.mark()
    with deployed(cluster):
        cluster.wait("there are not two that run", lambda: [
            each["status"]["phase"] for each in cluster.api.get("v1", "Pod", namespace=HOME)] == ["Running"] * 2, 2 * RUN_S)
        use_all(applied)
    requests, used = asked(cluster, mark, ACCOUNT)
    # a template's pod is tried for Pod Security's word alone: without the owner that the policy wants
    assert not [each for each in requests if each.code == 403 and "dryRun=All" not in each.uri], requests
    may = given(each for each in manifests("controller.yaml") if each["metadata"]["name"] == HOME)  # others are of people
    assert not may - used - NOT_TRIED and not used - may


def stop_controllers(cluster):
    """SIGSTOP: as a loop that stands still."""
    for node in cluster.nodes:
        node.ok(["sh", "-c", "kill -STOP $(grep -lz ^--heartbeat=/run/drarun /proc/[0-9]*/cmdline | cut -d/ -f3)"])


def test_hung_controller_is_restarted(applied):
    """The probe fails when the loop stands still, not when it only waits for the Lease, and the kubelet ends what hangs."""
    cluster = applied.cluster

    def restarts():
        return sorted(each["restartCount"] for pod in cluster.api.get("v1", "Pod", namespace=HOME)
                      for each in pod["status"].get("containerStatuses", ()) if each.get("ready"))
    with deployed(cluster, probe={"initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 30}):
        cluster.wait(lambda: f"there are not two that run: {restarts()}", lambda: restarts() == [0, 0], 2 * RUN_S)
        assert applied.apply("before", command=["true"]) == ""
        applied.wait("Succeeded", "before", 2 * RUN_S)
        assert restarts() == [0, 0]
        stop_controllers(cluster)
        cluster.wait(lambda: f"they are not restarted: {restarts()}", lambda: len(restarts()) == 2 and min(restarts()) > 0, 2 * RUN_S)
        assert applied.apply("after", command=["true"]) == ""
        applied.wait("Succeeded", "after", 2 * RUN_S)
        applied.remove()


@contextlib.contextmanager
def own_role(applied, home):
    """What drarun install --controller-role prints for the namespace, bound to the account of the namespace home."""
    api, printed = applied.cluster.api, json.loads(applied.verb(
        "install", "-n", applied.namespace, "--controller-role", "--format", "json").ok().out)["items"]
    for each in printed:
        for subject in each.get("subjects", ()):
            subject["namespace"] = home
    api.make(*printed)
    try:
        applied.cluster.wait("the role is not in force", lambda: applied.cluster.in_ns([
            applied.cluster.programs / "kubectl", "auth", "can-i", "create", "leases", "-n", applied.namespace,
            "--as", f"system:serviceaccount:{home}:{HOME}"]).returncode == 0, 30)
        yield printed
    finally:
        for each in (*printed, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": HOME}}):
            api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], applied.namespace)


ONE_NOT_TRIED = NOT_TRIED | {("leases", "get"), ("pods", "get")}  # of one that finds the Lease held


def test_controller_of_one_namespace(applied):
    """A Role there is enough for it, but for classes and slices, which are the cluster's; DraJobs elsewhere are not its own."""
    cluster, there = applied.cluster, applied.namespace
    cluster.device_classes()
    elsewhere = {"apiVersion": API, "kind": KIND, "metadata": {"name": "elsewhere", "namespace": HOME},
                 "spec": {"image": "localhost/busybox:1", "command": ["true"]}}
    cluster.api.make(elsewhere)
    with own_role(applied, there) as printed:
        mark = cluster.audit.mark()
        with controller(applied, home=there, scope=("-n", there)) as job:
            use_all(applied)
            assert f"manages the DraJobs of namespace {there}" in said(job)
        assert "status" not in cluster.api.get(API, KIND, "elsewhere", HOME)
    cluster.api.delete(API, KIND, "elsewhere", HOME)
    requests, used = asked(cluster, mark, f"system:serviceaccount:{there}:{HOME}")
    refused = [each for each in requests if each.code == 403]
    assert {each.resource for each in refused} == {"deviceclasses", "resourceslices"}, refused
    assert {each.namespace for each in requests if each not in refused} == {there}
    may, used = given(printed), used - {("deviceclasses", "list"), ("resourceslices", "list")}
    assert not may - used - ONE_NOT_TRIED and not used - may


def test_lease_of_pods_in_another_namespace(applied):
    """The one that waits does not take the Lease from one whose pod is not where the Lease is."""
    cluster = applied.cluster

    def logs():
        return cluster.in_ns([cluster.programs / "kubectl", "logs", "-n", HOME, "-l", f"app.kubernetes.io/name={HOME}"]).stdout

    def lease():
        return cluster.api.get("coordination.k8s.io/v1", "Lease", HOME, applied.namespace)["spec"]
    with own_role(applied, HOME), deployed(cluster, f"--namespace={applied.namespace}"):
        cluster.wait(lambda: f"nobody waits: {logs()}", lambda: "waiting until it ends" in logs(), 2 * RUN_S)
        before = lease()
        cluster.wait("it is not renewed", lambda: lease()["renewTime"] != before["renewTime"], TAKE_OVER_S)
        assert lease()["holderIdentity"] == before["holderIdentity"] and lease()["leaseTransitions"] == 0
        assert applied.apply(command=["true"]) == ""
        applied.wait("Succeeded", seconds=2 * RUN_S)
        applied.remove()
