# SPDX-License-Identifier: Apache-2.0
"""Why a job waits, as `drarun status` says it while it does, and what is done about it."""
import contextlib
import json
import re
import time

import pytest

from support.cluster import devices
from support.cluster.machines import GPU, PAIRED, claimed
from support.cluster_jobs import Running
from support.timed import and_timed

SAID_S = 30
SLACK_S = 0.5  # of looking
LASTED = r"(?:\d+ \w+ )+"  # 921 ms, 3 s, 1 min 2 s


@pytest.fixture
def jobs(machines, jobs):
    return jobs


@contextlib.contextmanager
def waiting(jobs, *options, name="job", **spec):
    """A job that runs in the foreground; it is interrupted at the end, unless it has ended."""
    job = jobs.drarun.start("run", jobs.file(name, **spec), "--here", *options, under=jobs.cluster.under, env=jobs.env)
    try:
        yield job
    except AssertionError as error:
        job.signal(2)
        raise AssertionError(f"{error}\nthe job: {job.finish(timeout=60)}") from error
    job.signal(2)
    job.finish(timeout=60)


def says(jobs, *words, name="job", env=None):
    """`drarun status` says all of these, in one answer."""
    def said():
        answer = jobs.verb("status", name, env=env)
        told = answer.out
        said.last = told + answer.err
        return told if all(word in told for word in words) else None
    said.last = ""
    return jobs.cluster.wait(lambda: f"status does not say {words}: {said.last}", said, SAID_S)


def test_selector_that_rules_out_all(jobs):
    selector = f'{PAIRED} && device.attributes["dra.net"].numaNode > 1'
    with waiting(jobs, devices=claimed(selector=selector), command=["true"]):
        says(jobs, "no device of class nic.drarun.dev with rdma == true and", "numaNode > 1 (request nic-0, nic-1) rules out 16")


def test_user_who_may_not_read_slices_is_told_what_the_launcher_knows(jobs):
    items = json.loads(jobs.verb("install", "-n", jobs.namespace.name, "--format", "json").ok().out)["items"]
    user = jobs.namespace.rbac_user(next(each for each in items if each["kind"] == "Role"))
    selector = f'{PAIRED} && device.attributes["dra.net"].numaNode > 1'
    with waiting(jobs, devices=claimed(selector=selector), command=["true"]):
        says(jobs, "numaNode > 1 (request nic-0, nic-1) rules out 16", env={"KUBECONFIG": str(user)})


def test_devices_that_others_hold(jobs):
    with waiting(jobs, name="first", workers=2, devices=claimed(8, 8), command=["sleep", "1000"]):
        says(jobs, "running", name="first")
        with waiting(jobs, devices=claimed(2, 2), command=["true"]):
            space = jobs.namespace.name
            says(jobs, "no device of class gpu.drarun.dev left", "taken by claims", f"; held by {space}/first-w-0 (16 devices on n",
                 f", pod first-w-0), {space}/first-w-1 (16 devices on n", ", pod first-w-1)")


@pytest.mark.parametrize("claims", ["direct", "template"])
def test_workers_with_nics_are_on_nodes_of_their_own(jobs, claims):
    """Each node has room for all of them: the scheduler alone may take one node for both."""
    with waiting(jobs, workers=2, ranksPerWorker=1, devices=claimed(claims=claims), command=["sleep", "1000"]):
        says(jobs, ": running")
        pods = jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
        assert len({each["spec"]["nodeName"] for each in pods if each["metadata"]["name"].startswith("job-w-")}) == 2


def test_warning_of_several_workers_is_one_line(jobs):
    result = jobs.run("--here", workers=3, ranksPerWorker=1, devices={"gpus": {"count": 1, "class": GPU}}, command=["true"]).ok()
    lines = [line for line in result.err.splitlines() if "NO_RDMA_NIC" in line]
    assert len(lines) == 1 and "workers 0-2: NO_RDMA_NIC: " in lines[0], result
    led = jobs.run(name="led", devices={"gpus": {"count": 1, "class": GPU}}, command=["true"]).ok()  # it may read no slices
    assert "GPUS_UNKNOWN" not in led.err and "GPUS_BY_DEVICE_PLUGIN" not in led.err, led  # the driver's metadata tells


def test_fewer_nodes_than_workers_with_nics(jobs):
    with waiting(jobs, workers=3, ranksPerWorker=1, devices=claimed(), command=["sleep", "1000"]):
        says(jobs, "3 workers, one per node by placement.spread; 2 nodes fit; placement.spread: none packs them")
    with waiting(jobs, name="packed", workers=3, ranksPerWorker=1, devices=claimed(), placement={"spread": "none"},
                 command=["sleep", "1000"]):
        says(jobs, ": running", name="packed")


def test_fewer_nodes_than_workers_without_devices(jobs):
    """No slice tells of them: the scheduler does."""
    job = Running(jobs, "--here", workers=3, placement={"spread": "node"}, timeouts={"allocation": "20s"}, command=["true"])
    says(jobs, "3 workers, one per node by placement.spread; 2 nodes fit; placement.spread: none lets them share nodes: "
         "2 nodes: 2 node(s) didn't match pod anti-affinity rules")
    result = job.ended()
    assert result.rc == 75 and ("have claims and nodes within 20 s (timeouts.allocation): 3 workers, one per node by "
                                "placement.spread; 2 nodes fit; placement.spread: none lets them share nodes") in result.err, result


def template(container, **pod):
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["true"], **container}
    return {"spec": {"containers": [container], **pod}}


def test_no_room_for_the_pod(jobs):
    with waiting(jobs, template=template({"resources": {"requests": {"cpu": "1000"}}})):
        says(jobs, "no node has room: 2 nodes: 2 Insufficient cpu")


def autoscaler_says(jobs, pod, reason, message):
    """An Event as cluster-autoscaler writes it."""
    space, api = jobs.namespace.name, jobs.cluster.api
    about = jobs.cluster.wait(f"{pod} is not there", lambda: api.get("v1", "Pod", pod, space), 60)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    api.make({"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{pod}.{reason.lower()}", "namespace": space}, "type": "Normal",
              "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": space, "uid": about["metadata"]["uid"]},
              "reason": reason, "message": message, "firstTimestamp": now, "lastTimestamp": now, "count": 1,
              "source": {"component": "cluster-autoscaler"}, "reportingComponent": "cluster-autoscaler", "reportingInstance": ""})


def test_what_an_autoscaler_says_is_the_reason(jobs):
    """timeouts.nodes runs from the first node that was ordered, also once the autoscaler has given up."""
    ordered, full = "pod triggered scale-up: [{gpu-pool 0->1 (max: 4)}]", "1 in backoff after failed scale-up"
    nowhere = template({}, nodeSelector={"no": "where"})
    late = Running(jobs, "--here", name="late", template=nowhere, timeouts={"nodes": "15s"})
    for reason, message in (("TriggeredScaleUp", ordered), ("NotTriggerScaleUp", f"pod didn't trigger scale-up: {full}")):
        autoscaler_says(jobs, "late-w-0", reason, message)
    with waiting(jobs, template=nowhere):
        autoscaler_says(jobs, "job-w-0", "TriggeredScaleUp", ordered)
        says(jobs, f"a node is being added: {ordered}")
        time.sleep(1)  # Events have whole seconds
        autoscaler_says(jobs, "job-w-0", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {full}")
        says(jobs, "no node has room: 2 nodes", f"; the autoscaler adds no node: {full}")
    result = late.ended()
    assert result.rc == 75 and "the requested nodes did not come within 15 s (timeouts.nodes): the autoscaler: " in result.err and full in result.err, result


def test_plugin_that_refuses_and_then_prepares(machines, jobs):
    """The reason is live: it is another one as soon as the cluster says so, and gone with its cause."""
    for each in machines:
        each.fill()
    with waiting(jobs, devices=claimed(), ranksPerWorker=1, command=["sleep", "1000"]):
        says(jobs, "its devices cannot be prepared", "No space left on device")
        written = jobs.cluster.wait("the launcher does not write it", lambda: (jobs.status() or {}).get("waiting"), 60)
        assert "No space left on device" in written["text"]
        for each in machines:
            each.empty()
        says(jobs, ": running")


def test_plugin_that_is_not_registered(machines, jobs):
    """Its devices are published and allocated, and the kubelet does not know of it: it looks for plugins elsewhere."""
    for each in machines:
        each.stop()
        each.node.ok(["mkdir", "-p", "/run/nobody-looks-here"])
        each.start("--registry-dir", "/run/nobody-looks-here")
    with waiting(jobs, devices={"gpus": {"count": 1, "class": GPU}}, command=["sleep", "1000"]):
        try:
            says(jobs, "its devices cannot be prepared", f"{GPU} is not registered")
        finally:
            for each in machines:
                each.stop()
                each.start().wait()
        says(jobs, ": running")


RUNTIME = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "absent"}, "handler": "absent"}
# what a pod names, the Event's reason, and what is said
CANNOT = {
    "secret": ({"volumes": [{"name": "v", "secret": {"secretName": "nope"}}]}, "FailedMount",
               ('a volume cannot be mounted: MountVolume.SetUp failed for volume "v" : secret "nope" not found (pod secret-w-0)',
                "create the Secret, or correct the volume in spec.template")),
    "path": ({"volumes": [{"name": "v", "hostPath": {"path": "/nope", "type": "Directory"}}]}, "FailedMount",
             ("/nope is not a ", " (pod path-w-0)", "make it on this node")),  # 1.37 says more of it
    "sandbox": ({"runtimeClassName": "absent"}, "FailedCreatePodSandBox",
                ('no runtime for "absent" is configured (pod sandbox-w-0)', "or correct runtimeClassName in spec.template")),
}


@and_timed
def test_what_the_kubelet_cannot_do_for_a_pod(jobs, timed):
    """Pod, the kubelet's words and the cure: in status, describe and the ConfigMap 2 s after the Event, and at the deadline."""
    under_way, came, told = {}, {}, {}
    jobs.cluster.api.make(RUNTIME)
    for name, (pod, _, _) in CANNOT.items():
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]} if "volumes" in pod else {}
        under_way[name] = Running(jobs, "--here", name=name, template=template(mounts, **pod), timeouts={"imagePull": "30s"})

    def all_told():
        events = {(each["involvedObject"]["name"], each["reason"]) for each in
                  jobs.cluster.api.get("v1", "Event", namespace=jobs.namespace.name)}
        for name, (_, reason, words) in CANNOT.items():
            if (f"{name}-w-0", reason) in events:
                came.setdefault(name, time.monotonic())
            text = ((jobs.status(name) or {}).get("waiting") or {}).get("text", "")
            if all(word in text for word in words):
                told.setdefault(name, time.monotonic())
        return len(told) == len(CANNOT)
    jobs.cluster.wait(lambda: f"only {told} are told of {came}", all_told, SAID_S, 0.05)
    late = {name: told[name] - came[name] for name in CANNOT}
    assert not timed or all(each < 2 + SLACK_S for each in late.values()), late
    for name, (_, _, words) in CANNOT.items():
        described = jobs.verb("describe", name).ok().out.split("Events:")[0]
        assert all(word in described for word in words), described
    for name, (_, _, words) in CANNOT.items():
        result = under_way[name].ended()
        assert result.rc == 70 and all(word in result.err for word in ("(timeouts.imagePull): worker 0 on n", *words)), result
    jobs.cluster.api.delete("node.k8s.io/v1", "RuntimeClass", "absent")


@pytest.mark.gate
def test_image_that_does_not_exist(jobs):
    with waiting(jobs, image="localhost/nothing:1", command=["true"]) as job:
        says(jobs, "image localhost/nothing:1 of the ranks cannot be pulled (")
        del job


def test_reason_is_told_without_a_terminal(jobs):
    """Once for each cause, led from here and from a pod, as CI's logs and nohup have it; what is missing is named."""
    large = {"containers": [{"name": "worker", "image": "localhost/busybox:1", "command": ["true"],
                             "resources": {"requests": {"cpu": "1000"}}}]}
    told = {"image": (rf"waiting {LASTED}for n\d: image localhost/nothing:1 of the ranks cannot be pulled \(", {
                "image": "localhost/nothing:1", "command": ["true"]}),
            "room": (rf"waiting {LASTED}for worker 0: no node has room: 2 nodes: 2 Insufficient cpu", {"template": {"spec": large}})}
    under_way = {(name, mode): Running(jobs, *(["--here"] if mode == "here" else []), name=f"{name}-{mode}", **spec)
                 for name, (_, spec) in told.items() for mode in ("here", "pod")}
    ended = {}
    try:
        for (name, mode), job in under_way.items():
            jobs.cluster.wait(lambda one=job: f"{one.name} does not say why: {one.said}", lambda one=job, words=told[name][0]: any(
                re.match(f"drarun: {words}", line) for line in one.said), SAID_S)
    finally:
        for each in under_way.values():
            each.job.signal(2)
        for (name, mode), job in under_way.items():
            ended[name, mode] = job.ended()
    for (name, mode), result in ended.items():
        assert len(re.findall(f"drarun: {told[name][0]}", result.err)) == 1, result


def test_launcher_that_does_not_start(jobs):
    """The client says why, without a terminal too, and so does status; agent and launcher have one image."""
    name, api = jobs.namespace.name, jobs.cluster.api
    api.make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "refused"}, "value": 1})
    api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": name}, "spec": {
        "hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["refused"]}]}}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in api.get("v1", "ResourceQuota", "none", name).get("status", {}), 30)
    said = {"image": "localhost/nothing:1 of the launcher cannot be pulled (",
            "node": "no node has room: 2 nodes: 2 node(s) didn't match Pod's node affinity/selector",
            "quota": "its pod is refused: "}
    under_way = {
        "image": Running(jobs, name="image", command=["true"], env={"DRARUN_IMAGE": "localhost/nothing:1"}),
        "node": Running(jobs, name="node", command=["true"], launcher={"nodeSelector": {"no": "where"}}),
        "quota": Running(jobs, name="quota", command=["true"], launcher={"priorityClassName": "refused"})}
    try:
        for job, words in said.items():
            says(jobs, "the launcher does not start: ", words, name=job)
            jobs.cluster.wait(lambda one=job: f"{one} does not say why: {under_way[one].said}", lambda one=job: any(
                "the launcher does not start: " in line for line in under_way[one].said), SAID_S)
        says(jobs, "image localhost/nothing:1 of the agent cannot be pulled (", "by --image or DRARUN_IMAGE", name="image")
    finally:
        for each in under_way.values():
            each.job.signal(2)
        ended = {job: each.ended() for job, each in under_way.items()}
        api.delete("v1", "ResourceQuota", "none", name)
        api.delete("scheduling.k8s.io/v1", "PriorityClass", "refused")
    for job, words in said.items():
        told = [line for line in ended[job].err.splitlines() if "the launcher does not start: " in line]
        assert len(told) == 1 and words in told[0], ended[job]
    assert "exceeded quota: none" in ended["quota"].err, ended


def test_run_gives_a_launcher_up(jobs):
    """At once where waiting cures nothing, else with the clock that holds for workers, too. Nothing of the job stays."""
    late = Running(jobs, name="late", command=["true"], launcher={"nodeSelector": {"no": "where"}}, timeouts={"allocation": "15s"})
    named = jobs.run(name="named", command=["true"], env={"DRARUN_IMAGE": "localhost/Upper:1"})
    assert named.rc == 65 and "image localhost/Upper:1 of the launcher is not a valid name" in named.err, named
    late = late.ended()
    assert late.rc == 75 and "the launcher has not started within 15 s (timeouts.allocation): pod late-" in late.err, late
    assert "no node has room: 2 nodes" in late.err, late


@pytest.mark.parametrize("claims", ["direct", "template"])
def test_quota(jobs, claims):
    name = jobs.namespace.name
    jobs.cluster.api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": name},
                           "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "1"}}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in jobs.cluster.api.get(
        "v1", "ResourceQuota", "few", name).get("status", {}), 30)
    result = jobs.run("--here", workers=2, devices=claimed(claims=claims), command=["true"])
    assert result.rc == 69 and "exceeded quota: few" in result.err, result
    jobs.cluster.api.delete("v1", "ResourceQuota", "few", name)


def test_quota_that_an_earlier_job_of_that_name_met(jobs):
    """The API still has its Events, which are about another Job."""
    api, name = jobs.cluster.api, jobs.namespace.name
    spec = {"workers": 2, "devices": {"claims": "template"}, "command": ["true"]}
    api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": name}, "spec": {"hard": {"pods": "0"}}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in api.get("v1", "ResourceQuota", "none", name).get("status", {}), 30)
    refused = jobs.run("--here", **spec)
    assert refused.rc == 69 and "the workers' pods are refused: " in refused.err and "exceeded quota: none" in refused.err, refused
    api.delete("v1", "ResourceQuota", "none", name)
    assert [each for each in api.get("v1", "Event", namespace=name) if each["reason"] == "FailedCreate" and each["involvedObject"]["name"] == "job-w"]
    queued = jobs.run("--here", queue="team-a", timeouts={"queue": "10s"}, **spec)  # its pods are not there, with time to hear all
    assert queued.rc == 75 and "queue team-a has not admitted it" in queued.err, queued
    jobs.run("--here", **spec).ok()


def test_class_that_does_not_exist(jobs):
    result = jobs.run("--here", devices={"gpus": {"count": 1, "class": "gpu.example.com"}}, command=["true"])
    assert result.rc == 65 and "device class gpu.example.com does not exist" in result.err, result
    assert "kubectl get deviceclasses" in result.err
    led = jobs.run(name="led", devices={"gpus": {"count": 1, "class": "gpu.example.com"}}, command=["true"])
    assert led.rc == 65 and led.err.count("device class gpu.example.com does not exist") == 1, led


def test_template_of_a_claim_that_does_not_exist(jobs):
    pod = template({"resources": {"claims": [{"name": "own"}]}},
                   resourceClaims=[{"name": "own", "resourceClaimTemplateName": "nothing"}])
    result = jobs.run("--here", template=pod)
    assert result.rc == 69 and "its claim cannot be made" in result.err and '"nothing" not found' in result.err, result


# ---- gangs ----

def test_a_gang_gives_back_what_others_could_use(jobs):
    """Three workers of which two find devices: those two are released, and all three come once there is room."""
    with waiting(jobs, name="first", workers=2, ranksPerWorker=1, devices=claimed(6, 6), command=["sleep", "1000"]) as first:
        says(jobs, ": running", name="first")
        with waiting(jobs, workers=3, ranksPerWorker=1, placement={"spread": "none"}, devices=claimed(2, 2),
                     command=["sleep", "1000"]):
            says(jobs, "claims 2/3 allocated")
            before = held(jobs)
            jobs.cluster.wait(lambda: f"nothing is given back: {jobs.status()}", lambda: jobs.status()["tries"] > 0, 30)
            first.signal(2)
            says(jobs, ": running")
            assert not before & held(jobs)


def held(jobs):
    """The uids of claims of `job` that have devices."""
    return {each["metadata"]["uid"] for each in jobs.cluster.api.get("resource.k8s.io/v1", "ResourceClaim",
                                                                      namespace=jobs.namespace.name)
            if each["metadata"]["name"].startswith("job-w") and "allocation" in each.get("status", {})}


def test_a_job_that_holds_nothing_is_not_released(jobs):
    with waiting(jobs, name="first", workers=2, ranksPerWorker=1, devices=claimed(8, 8), command=["sleep", "1000"]):
        says(jobs, ": running", name="first")
        result = jobs.run("--here", workers=2, devices=claimed(align="none"), command=["true"],
                          timeouts={"allocation": "8s"})
        assert result.rc == 75 and "are released" not in result.err, result


def test_two_jobs_that_do_not_fit_together_both_finish(jobs):
    """Each wants every device of both nodes."""
    spec = {"workers": 2, "ranksPerWorker": 1, "devices": claimed(8, 8), "timeouts": {"allocation": "3m"},
            "command": ["sh", "-c", "[ $RANK = 0 ] && echo done; exit 0"]}
    both = [jobs.drarun.start("run", jobs.file(name, **spec), "--here", under=jobs.cluster.under, env=jobs.env)
            for name in ("first", "second")]
    for each in both:
        result = each.finish(timeout=200).ok()
        assert re.fullmatch("done\n", result.out)


# ---- objects that are deleted under a job ----

CLAIM = "resource.k8s.io/v1", "ResourceClaim"
ENDS = ["sh", "-c", "until [ -e /gate/open ]; do sleep 0.1; done; echo $RANK done"]
SLOW = [{"name": "slow", "image": "localhost/busybox:1", "command": ["sleep", "3"]}]


def claims_of(jobs, name):
    return [each for each in jobs.cluster.api.get(*CLAIM, namespace=jobs.namespace.name)
            if each["metadata"]["name"].startswith(f"{name}-w")]


def delete_claims(jobs, name, ready):
    """Once there are two that are ready: as somebody does who clears a namespace up."""
    def there():
        found = claims_of(jobs, name)
        return found if len(found) == 2 and all(map(ready, found)) else None
    for each in jobs.cluster.wait(lambda: f"no claims of {name}: {claims_of(jobs, name)}", there, SAID_S):
        jobs.cluster.api.delete(*CLAIM, each["metadata"]["name"], jobs.namespace.name)


def is_reserved(claim):
    return "reservedFor" in claim.get("status", {})


def test_claims_deleted_under_a_job(jobs, tmp_path):
    """Claims that a pod has stay until it has ended. Those without are made again, as long as nothing runs."""
    gate = [{"name": "gate", "hostPath": {"path": str(tmp_path)}}]
    container = {"command": ENDS, "volumeMounts": [{"name": "gate", "mountPath": "/gate"}]}

    def begin(phase, **pod):
        return {(phase, claims): Running(jobs, "--here", name=f"{phase}-{claims}", workers=2, ranksPerWorker=1,
                                         devices=claimed(1, 1, claims=claims),
                                         template=template(container, volumes=gate, **pod))
                for claims in ("direct", "template")}

    def runs(name):
        return (jobs.status(name) or {}).get("phase") == "running"
    under_way = begin("starting", initContainers=SLOW) | begin("running")
    for phase, claims in under_way:
        name = f"{phase}-{claims}"
        delete_claims(jobs, name, lambda claim, n=name, p=phase: is_reserved(claim) and (p == "starting" or runs(n)))
    jobs.cluster.scheduler.freeze()
    try:
        waiting = begin("waiting")
        for _, claims in waiting:
            delete_claims(jobs, f"waiting-{claims}", lambda claim: True)
    finally:
        jobs.cluster.scheduler.thaw()
    (tmp_path / "open").touch()
    for job in (under_way | waiting).values():
        result = job.ended().ok()
        assert sorted(result.out.split()) == ["0", "1", "done", "done"], result


def test_class_or_template_deleted_while_jobs_wait(jobs):
    kind = "resource.k8s.io/v1", "ResourceClaimTemplate"
    jobs.cluster.api.make(devices.device_class("passing.example.com", GPU))
    classless = Running(jobs, "--here", devices={"gpus": {"count": 9, "class": "passing.example.com"}}, command=["true"])
    says(jobs, "too few devices for request gpu")
    jobs.cluster.controllers.freeze()  # there are no claims yet
    try:
        shapeless = Running(jobs, "--here", name="other", devices=claimed(1, 1, claims="template"), command=["true"])
        jobs.cluster.wait("no template", lambda: jobs.cluster.api.get(*kind, "other-w", jobs.namespace.name), SAID_S)
        jobs.cluster.api.delete(*kind, "other-w", jobs.namespace.name)
        jobs.cluster.api.delete("resource.k8s.io/v1", "DeviceClass", "passing.example.com")
    finally:
        jobs.cluster.controllers.thaw()
    result = classless.ended()
    assert result.rc == 65 and "device class passing.example.com does not exist" in result.err, result
    result = shapeless.ended()
    assert result.rc == 69 and "its claim cannot be made" in result.err and '"other-w" not found' in result.err, result
