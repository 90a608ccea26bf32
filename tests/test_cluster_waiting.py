# SPDX-License-Identifier: Apache-2.0
"""Why a job waits, as `drarun status` says it while it does, and what is done about it."""
import contextlib
import json
import re

import pytest

from support.cluster import devices
from support.cluster.machines import PAIRED, claimed

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
        says(jobs, "no device of class dranet with rdma == true and", "numaNode > 1 (request nic) rules out 16")


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
            says(jobs, "no device of class gpu.nvidia.com left", "taken by claims")


def template(container, **pod):
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["true"], **container}
    return {"spec": {"containers": [container], **pod}}


def test_no_room_for_the_pod(jobs):
    with waiting(jobs, template=template({"resources": {"requests": {"cpu": "1000"}}})):
        says(jobs, "no node has room: 2 nodes: 2 Insufficient cpu")


def test_driver_that_refuses_and_then_prepares(machines, jobs):
    """The reason is live: it is another one as soon as the cluster says so, and gone with its cause."""
    for node in range(2):
        machines.driver(devices.NIC, node).fault(refuse="the fabric is down")
    with waiting(jobs, devices=claimed(), ranksPerWorker=1, command=["sleep", "1000"]):
        says(jobs, "its devices cannot be prepared", "the fabric is down")
        written = jobs.cluster.wait("the launcher does not write it", lambda: (jobs.status() or {}).get("waiting"), 10)
        assert "the fabric is down" in written["text"]
        for node in range(2):
            machines.driver(devices.NIC, node).fault()
        says(jobs, ": running")


def test_driver_that_is_not_registered(jobs):
    """Its devices are published and allocated, and the kubelet does not know of it."""
    drivers = [jobs.cluster.driver(node, "ghost.example.com", devices.gpus(1)).start(register=False).wait()
               for node in range(2)]
    made = devices.device_class("ghost.example.com", "ghost.example.com")
    jobs.cluster.api.make(made)
    try:
        with waiting(jobs, devices={"gpus": {"count": 1, "class": "ghost.example.com"}}, command=["true"]):
            says(jobs, "its devices cannot be prepared", "ghost.example.com is not registered")
    finally:
        jobs.cluster.api.delete("resource.k8s.io/v1", "DeviceClass", "ghost.example.com")
        for each in drivers:
            each.stop()


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
