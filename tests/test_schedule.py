# SPDX-License-Identifier: Apache-2.0
"""Claims of jobs before the real scheduler, on nodes that are captured machines but for their containers: how well
GPUs and NICs come aligned, and whether `drarun plan` knows beforehand what there is room for."""
import json
import os
import random

import pytest

from support.cluster.machines import RDMA, value_of

SEED = int(os.environ.get("DRARUN_SEED", 1))
CASES = int(os.environ.get("DRARUN_SCHEDULES", 24))
PLACED_S = 60
QUIET_S = 0.5  # a scheduler that has answered for every pod answers again within this if something was freed


def nics_backwards(_, *slices):
    """The order of a slice's devices must not be what pairs them."""
    for each in slices:
        if each["spec"]["driver"] == "dra.net":
            each["spec"]["devices"].reverse()


class Bench:
    """Jobs' claims and pods, as `drarun render` has them, in one namespace of a cluster of fake nodes."""

    def __init__(self, cluster, drarun, folder, namespace):
        self.cluster, self.drarun, self.folder, self.namespace = cluster, drarun, folder, namespace
        self.env = {"KUBECONFIG": str(cluster.kubeconfig())}

    def file(self, name, **spec):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"metadata": {"name": name}, "spec": {"image": "i", "command": ["c"], **spec}}))
        return path

    def make(self, path):
        out = self.drarun("render", "--format", "json", "--namespace", self.namespace, path, timeout=100).ok().out
        items = [each for each in json.loads(out)["items"] if each["kind"] in ("ResourceClaim", "Pod")]
        for each in items:
            each["metadata"].pop("ownerReferences", None)
        self.cluster.api.make(*items)

    def fits(self, path):
        """What `drarun plan` says of the cluster as it is now."""
        result = self.drarun("plan", "--live", "-o", "json", path, env=self.env, timeout=100)
        assert result.rc in (0, 65, 75), result
        return json.loads(result.out)["prediction"]["shortage"] is None

    def pods(self, name):
        return [each for each in self.cluster.api.get("v1", "Pod", namespace=self.namespace)
                if each["metadata"]["labels"]["drarun.dev/job"] == name]

    def verdicts(self, name):
        """By pod: True where it has a node, False where the scheduler has found none, None before."""
        return [True if each["spec"].get("nodeName") else
                next((False for condition in each.get("status", {}).get("conditions", ())
                      if condition["reason"] == "Unschedulable"), None) for each in self.pods(name)]

    def settled(self, name):
        """All of its pods are placed, or so many are as there is room for: all(...) of it tells."""
        def look():
            found = self.verdicts(name)
            return found if found and None not in found else None
        found = self.cluster.wait(lambda: f"no verdict: {self.verdicts(name)}", look, PLACED_S)
        while not all(found):
            try:
                found = self.cluster.wait("no news", lambda before=found: None if look() in (before, None) else look(), QUIET_S)
            except AssertionError:
                break
        return found

    def allocations(self, name):
        """By claim: [(request, driver, pool, device), ...]."""
        return [[(each["request"], each["driver"], each["pool"], each["device"])
                 for each in claim["status"]["allocation"]["devices"]["results"]]
                for claim in self.cluster.api.get("resource.k8s.io/v1", "ResourceClaim", namespace=self.namespace)
                if claim["metadata"]["labels"]["drarun.dev/job"] == name]

    def clear(self):
        for version, kind in (("v1", "Pod"), ("resource.k8s.io/v1", "ResourceClaim")):
            path = self.cluster.api.path(version, kind, self.namespace) + "?gracePeriodSeconds=0"
            self.cluster.api.ok("DELETE", path)
        self.cluster.wait("pods and claims stay", lambda: not self.cluster.api.get(
            "v1", "Pod", namespace=self.namespace) and not self.cluster.api.get(
                "resource.k8s.io/v1", "ResourceClaim", namespace=self.namespace), PLACED_S)


@pytest.fixture
def bench(control_plane, drarun, tmp_path):
    made = Bench(control_plane, drarun, tmp_path, "default")
    yield made
    made.clear()
    for node in control_plane.api.get("v1", "Node"):
        control_plane.api.delete("v1", "Node", node["metadata"]["name"])
    for each in control_plane.api.get("resource.k8s.io/v1", "ResourceSlice"):
        control_plane.api.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])


def devices(gpus, nics, align, selector=RDMA):
    wanted = {"align": align}
    if gpus:
        wanted["gpus"] = {"count": gpus, "class": "gpu.nvidia.com"}
    if nics:
        wanted["nics"] = {"count": nics, "class": "dranet", **({"selector": selector} if selector else {})}
    return wanted


# ---- alignment ----

@pytest.mark.parametrize("align,expected", [("required", 32), ("none", 0)])
def test_32_pairs_on_4_nodes(bench, align, expected):
    """8 GPUs and 8 NICs a node, one of each for each worker: all are given, and all or none share a PCIe root."""
    bench.cluster.fake_nodes(4, "a4-highgpu-8g", alter=nics_backwards)
    roots = {(each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]): value_of(device, "pcieRoot")
             for each in bench.cluster.api.get("resource.k8s.io/v1", "ResourceSlice") for device in each["spec"]["devices"]}
    bench.make(bench.file("job", workers=32, devices=devices(1, 1, align)))
    assert all(bench.settled("job"))
    pairs = [{roots[device] for _, *rest in claim for device in [tuple(rest)]} for claim in bench.allocations("job")]
    assert len(pairs) == 32
    assert sum(len(pair) == 1 for pair in pairs) == expected


# ---- prediction ----

MACHINES = ("a4-highgpu-8g", "aws-p4d-24xlarge", "dgx-h100")
SELECTORS = (None, RDMA, RDMA, 'device.attributes["dra.net"].numaNode == 0')


def job(rng, most):
    gpus = rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 6, 8])
    nics = rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 8])
    return {"workers": rng.randint(1, most),
            "devices": devices(gpus or int(not nics), nics, rng.choice(["required", "none"]), rng.choice(SELECTORS))}


def test_plan_and_scheduler_agree_on_what_fits(bench):
    """Random jobs on nodes of which random other jobs have taken a part."""
    for machine in MACHINES:
        bench.cluster.fake_nodes(2, machine, prefix=f"{machine}-", alter=nics_backwards)
    wrong, fitting = [], 0
    for case in range(CASES):
        rng = random.Random(SEED * 1000003 + case)
        for other in range(rng.randint(0, 3)):
            bench.make(bench.file(f"other{other}", **job(rng, 4)))
            bench.settled(f"other{other}")
        wanted = job(rng, 8)
        path = bench.file("job", **wanted)
        predicted = bench.fits(path)
        bench.make(path)
        real = all(bench.settled("job"))
        fitting += real
        if predicted != real:
            wrong.append((case, wanted, {"predicted": predicted, "scheduled": bench.verdicts("job")}))
        bench.clear()
    assert not wrong, f"{len(wrong)} of {CASES} (DRARUN_SEED={SEED}): {wrong[:5]}"
    assert 0 < fitting < CASES
