# SPDX-License-Identifier: Apache-2.0
"""The API server is away while jobs are in every phase: they go on when it is back, and nothing remains.

scripts/soak lets it be away for DRARUN_OUTAGE_S seconds and more."""
import os
import time

import pytest

from support.cluster.machines import GPU, Machine, SMALL, only
from support.cluster.pods import BUSYBOX
from support.cluster_jobs import Running

OUTAGE_S = float(os.environ.get("DRARUN_OUTAGE_S", 6))
# clients of the API server that could not reach it try again after pauses that double up to 30 s: the kubelets',
# the controllers' (of them the garbage collector's), and ours of 5 s
AGAIN_S = 30 + 2 * min(OUTAGE_S, 30)
MODES = {"here": ["--here"], "pod": []}
PHASES = ("creating", "allocating", "starting", "running", "ending")


class Gates:
    """Files for which ranks wait; their folder is at /gates."""

    def __init__(self, folder):
        self.folder = folder

    def template(self, phase, claims=()):
        main = {"name": "main", "image": BUSYBOX, "volumeMounts": [{"name": "gates", "mountPath": "/gates"}],
                "command": ["sh", "-c", f"echo up; until [ -e /gates/{phase} ]; do sleep 0.1; done; echo $RANK done"]}
        first = {**main, "name": "first", "command": ["sh", "-c", "until [ -e /gates/start ]; do sleep 0.1; done"]}
        pod = {"containers": [{**main, "resources": {"claims": [{"name": each["name"]} for each in claims]}}],
               "volumes": [{"name": "gates", "hostPath": {"path": str(self.folder)}}], "resourceClaims": list(claims)}
        if phase == "starting":
            pod["initContainers"] = [first]
        return {"spec": pod}

    def open(self, phase):
        (self.folder / phase).touch()


def begin(jobs, gates, phase, mode):
    """A job on its way to its phase."""
    name = f"{phase}-{mode}"
    if phase == "allocating":
        return Running(jobs, *MODES[mode], name=name, template=gates.template(phase, [
            {"name": "gpu", "resourceClaimTemplateName": "gpu"}]))
    return Running(jobs, *MODES[mode], name=name, workers=2, template=gates.template(phase))


def pods_of(jobs, name):
    return [each["status"] for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
            if each["metadata"]["name"].startswith(f"{name}-w-")]


def is_there(jobs, phase, mode):
    name = f"{phase}-{mode}"
    if phase in ("running", "ending"):
        return (jobs.status(name) or {}).get("phase") == "running"
    if phase == "starting":
        return [s for s in pods_of(jobs, name) if any("running" in c["state"] for c in s.get("initContainerStatuses", ()))]
    return [s for s in pods_of(jobs, name) if any(c["type"] == "PodScheduled" and c["status"] == "False"
                                                  for c in s.get("conditions", ()))]


def create(jobs, gates):
    """Jobs whose creation is under way: their owners are there, and not all else."""
    made = {("creating", mode): begin(jobs, gates, "creating", mode) for mode in MODES}

    def owned():
        return jobs.cluster.api.get("v1", "ConfigMap", "creating-here-status", jobs.namespace.name) or \
            jobs.cluster.api.get("batch/v1", "Job", "creating-pod", jobs.namespace.name)
    jobs.cluster.wait("no job is being created", owned, 20, 0.002)
    return made


@pytest.fixture
def gpu(cluster, jobs):
    """A machine whose devices are published by start(), and a template of claims for one."""
    cluster.device_classes()
    cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {
        "name": "gpu", "namespace": jobs.namespace.name}, "spec": {"spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": GPU}}]}}}})
    machine = Machine(cluster.node(0), SMALL, only(2))
    yield machine
    cluster.api.delete("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", jobs.namespace.name)
    cluster.wait("claims are not gone", lambda: not cluster.api.get(
        "resource.k8s.io/v1", "ResourceClaim", namespace=jobs.namespace.name), AGAIN_S)
    machine.become(only(0))
    cluster.wait("its devices stay", lambda: not machine.published(GPU), 20)
    machine.stop()


# what the API server does, and for which part of OUTAGE_S
OUTAGES = {"hung-then-down": [("freeze", 0.4), ("kill", 0.6)], "down": [("kill", 1)], "hung": [("freeze", 1)]}
CHOSEN = list(OUTAGES) if "DRARUN_OUTAGE_S" in os.environ else ["hung-then-down"]


def be_away(cluster, steps, gates):
    """Meanwhile ranks of `ending` end."""
    for action, share in steps:
        getattr(cluster.apiserver, action)()
        time.sleep(OUTAGE_S * share / 2)
        gates.open("ending")
        time.sleep(OUTAGE_S * share / 2)
    if cluster.apiserver.running():
        cluster.apiserver.thaw()
    else:
        cluster.apiserver.start()
    cluster.plane.wait_ready()


@pytest.mark.parametrize("how", CHOSEN)
def test_api_server_is_away_in_every_phase(cluster, jobs, gpu, tmp_path, how):
    gates = Gates(tmp_path)
    running = {(phase, mode): begin(jobs, gates, phase, mode) for phase in PHASES[1:] for mode in MODES}
    for phase, mode in running:
        cluster.wait(lambda p=phase, m=mode: f"{p}-{m} does not come to its phase: {pods_of(jobs, f'{p}-{m}')}",
                     lambda p=phase, m=mode: is_there(jobs, p, m), 60)
    running |= create(jobs, gates)
    be_away(cluster, OUTAGES[how], gates)
    gpu.start().wait()
    for gate in ("start", *PHASES):
        gates.open(gate)
    for (phase, mode), job in running.items():
        result = job.ended(AGAIN_S + 30)
        assert result.rc == 0, f"{phase} {mode}: {result!r}"
        ranks = range(1 if phase == "allocating" else 2)
        assert sorted(result.out.split()) == sorted(word for r in ranks for word in ("up", str(r), "done")), result
        if mode == "pod":
            assert jobs.status(job.name)["exit"] == 0, jobs.status(job.name)
            cluster.api.delete("batch/v1", "Job", job.name, jobs.namespace.name)
    kept = {"gpu", "drarun-launcher", "drarun"}
    cluster.wait(lambda: f"left: {jobs.namespace.leftovers(0)}",
                 lambda: not [each for each in jobs.namespace.leftovers(0) if each[1] not in kept], AGAIN_S, 0.3)


LEASE_S = 60  # of a job: after that without a renewal another launcher may take it


def renewed(jobs, name):
    return jobs.cluster.api.get("coordination.k8s.io/v1", "Lease", name, jobs.namespace.name)["spec"]["renewTime"]


def test_ranks_run_on_through_an_outage_longer_than_the_lease(cluster, jobs, tmp_path):
    """Nobody can take the Lease meanwhile, so nobody has lost it: the launchers renew it afterwards, and lead on."""
    gates = Gates(tmp_path)
    running = {mode: begin(jobs, gates, "running", mode) for mode in MODES}
    for mode in running:
        cluster.wait(f"running-{mode} does not run", lambda m=mode: is_there(jobs, "running", m), 60)
    before = {job.name: renewed(jobs, job.name) for job in running.values()}
    cluster.apiserver.kill()
    away = time.monotonic()
    cluster.wait("the Lease's life", lambda: time.monotonic() > away + LEASE_S + 10, 2 * LEASE_S)
    cluster.apiserver.start()
    cluster.plane.wait_ready()
    for name, at in before.items():
        cluster.wait(f"{name}: the Lease is not renewed", lambda n=name, a=at: renewed(jobs, n) != a, 60)
    gates.open("running")
    for mode, job in running.items():
        result = job.ended(AGAIN_S + 30)
        assert result.rc == 0 and sorted(result.out.split()) == ["0", "1", "done", "done", "up", "up"], f"{mode}: {result!r}"
        if mode == "pod":
            status = jobs.status(job.name)
            assert (status["exit"], status["attempt"]) == (0, 1), status
