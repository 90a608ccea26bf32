# SPDX-License-Identifier: Apache-2.0
"""Why a job waits, as `drarun status` says it while it does, and what is done about it."""
import contextlib
import json
import re

import pytest

from support.cluster import devices
from support.cluster.machines import GPU, PAIRED, claimed
from support.cluster_jobs import Running

SAID_S = 30


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
        says(jobs, "no device of class nic.drarun.dev with rdma == true and", "numaNode > 1 (request nic) rules out 16")


def test_user_who_may_not_read_slices_is_told_what_the_launcher_knows(jobs):
    items = json.loads(jobs.verb("install", "-n", jobs.namespace.name, "--format", "json").ok().out)["items"]
    user = jobs.namespace.rbac_user(next(each for each in items if each["kind"] == "Role"))
    selector = f'{PAIRED} && device.attributes["dra.net"].numaNode > 1'
    with waiting(jobs, devices=claimed(selector=selector), command=["true"]):
        says(jobs, "numaNode > 1 (request nic) rules out 16", env={"KUBECONFIG": str(user)})


def test_devices_that_others_hold(jobs):
    with waiting(jobs, name="first", workers=2, devices=claimed(8, 8), command=["sleep", "1000"]):
        says(jobs, "running", name="first")
        with waiting(jobs, devices=claimed(2, 2), command=["true"]):
            says(jobs, "no device of class gpu.drarun.dev left", "taken by claims")


def template(container, **pod):
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["true"], **container}
    return {"spec": {"containers": [container], **pod}}


def test_no_room_for_the_pod(jobs):
    with waiting(jobs, template=template({"resources": {"requests": {"cpu": "1000"}}})):
        says(jobs, "no node has room: 2 nodes: 2 Insufficient cpu")


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


def test_image_that_does_not_exist(jobs):
    with waiting(jobs, image="localhost/nothing:1", command=["true"]) as job:
        says(jobs, "image localhost/nothing:1 cannot be pulled (")
        del job


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


def test_class_that_does_not_exist(jobs):
    result = jobs.run("--here", devices={"gpus": {"count": 1, "class": "gpu.example.com"}}, command=["true"])
    assert result.rc == 65 and "device class gpu.example.com does not exist" in result.err, result
    assert "kubectl get deviceclasses" in result.err


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
        with waiting(jobs, workers=3, ranksPerWorker=1, devices=claimed(2, 2), command=["sleep", "1000"]):
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
        assert result.rc == 75 and "given back" not in result.err, result


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
ENDS = ["sh", "-c", "sleep 4; echo $RANK done"]
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


def test_claims_deleted_under_a_job(jobs):
    """Claims that a pod has stay until it has ended. Those without are made again, as long as nothing runs."""
    def begin(phase, **spec):
        return {(phase, claims): Running(jobs, "--here", name=f"{phase}-{claims}", workers=2, ranksPerWorker=1,
                                         devices=claimed(1, 1, claims=claims), **{"template": template({"command": ENDS}), **spec})
                for claims in ("direct", "template")}

    def runs(name):
        return (jobs.status(name) or {}).get("phase") == "running"
    under_way = begin("starting", template=template({"command": ENDS}, initContainers=SLOW)) | begin("running")
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
