# SPDX-License-Identifier: Apache-2.0
"""Claims of jobs before the real scheduler, on nodes that are captured machines but for their containers: how well
GPUs and NICs come aligned, and whether `drarun plan` knows beforehand what there is room for."""
import json
import os
import random
import re
import time

import pytest
import yaml

from support.build import SOURCE
from support.cluster.machines import RDMA, value_of
from support.imports import complete

SEED = int(os.environ.get("DRARUN_SEED", 1))
CASES = int(os.environ.get("DRARUN_SCHEDULES", 24))
EXTENDED_CASES = CASES // 3
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
        path.write_text(json.dumps({"metadata": {"name": name}, "spec": {**({} if "template" in spec else {"image": "i", "command": ["c"]}), **spec}}))
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

    def reasons(self, name):
        """By pod: its node, or why the scheduler has found none."""
        return [each["spec"].get("nodeName") or next((condition["message"] for condition in each.get("status", {}).get("conditions", ())
                                                      if condition["reason"] == "Unschedulable"), None) for each in self.pods(name)]

    def is_placed(self, name, fits=True):
        """Whether all of its pods have nodes. That is waited for where it fits; else until the scheduler has found none for one of them,
        and has nothing new to say."""
        def look():
            found = self.verdicts(name)
            return found if found and None not in found and (all(found) or not fits) else None
        try:
            found = self.cluster.wait(lambda: f"no verdict: {self.verdicts(name)}", look, PLACED_S)
            while not all(found):
                before, end = found, time.monotonic() + QUIET_S
                while found == before and time.monotonic() < end:
                    time.sleep(0.05)
                    found = look() or before
                if found == before:
                    return False
            return True
        except AssertionError:
            return False

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
    bench.make(bench.file("job", workers=32, placement={"spread": "none"}, devices=devices(1, 1, align)))
    assert bench.is_placed("job"), bench.verdicts("job")
    pairs = [{roots[device] for _, *rest in claim for device in [tuple(rest)]} for claim in bench.allocations("job")]
    assert len(pairs) == 32
    assert sum(len(pair) == 1 for pair in pairs) == expected


# ---- prediction ----

MACHINES = ("a4-highgpu-8g", "aws-p4d-24xlarge", "dgx-h100")
SELECTORS = (None, RDMA, RDMA, 'device.attributes["dra.net"].numaNode == 0')


def placement(rng):
    """Left out, or given: then some jobs with NICs share nodes, and some without have a node for each worker."""
    return rng.choice([{}, {"placement": {"spread": "node"}}, {"placement": {"spread": "none"}}, {"placement": {"spread": "none"}}])


def job(rng, most):
    gpus = rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 6, 8])
    nics = rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 8])
    return {"workers": rng.randint(1, most), **placement(rng),
            "devices": devices(gpus or int(not nics), nics, rng.choice(["required", "none"]), rng.choice(SELECTORS))}


def test_plan_and_scheduler_agree_on_what_fits(bench):
    """Random jobs on nodes of which random other jobs have taken a part."""
    for machine in MACHINES:
        bench.cluster.fake_nodes(2, machine, prefix=f"{machine}-", alter=nics_backwards)
    wrong, fitting = [], 0
    for case in range(CASES):
        rng = random.Random(SEED * 1000003 + case)
        for other in range(rng.randint(0, 3)):
            path = bench.file(f"other{other}", **job(rng, 4))
            fits = bench.fits(path)
            bench.make(path)
            bench.is_placed(f"other{other}", fits)
        wanted = job(rng, 8)
        path = bench.file("job", **wanted)
        predicted = bench.fits(path)
        bench.make(path)
        real = bench.is_placed("job", predicted)
        fitting += real
        if predicted != real:
            wrong.append((case, wanted, {"predicted": predicted, "scheduled": bench.reasons("job")}))
        bench.clear()
    assert not wrong, f"{len(wrong)} of {CASES} (DRARUN_SEED={SEED}): {wrong[:5]}"
    assert 0 < fitting < CASES


EXTENDED = "example.com/gpu"


def test_plan_and_scheduler_agree_on_extended_resources(bench):
    """GPUs that pods ask for as an extended resource: devices of its class serve them, beside the claims of the same pods and of others."""
    api = bench.cluster.api
    of_class = api.path("resource.k8s.io/v1", "DeviceClass", None, "gpu.nvidia.com")

    def name_resource(name):
        api.ok("PATCH", of_class, {"spec": {"extendedResourceName": name}}, content="application/merge-patch+json")
    bench.cluster.fake_nodes(2, "a4-highgpu-8g")
    name_resource(EXTENDED)
    wrong, fitting = [], 0
    try:
        for case in range(EXTENDED_CASES):
            rng = random.Random(SEED * 1000003 + case)
            other = bench.file("other", workers=rng.randint(1, 3), placement={"spread": "none"}, devices=devices(rng.choice([1, 2, 4]), 0, "none"))
            fits = bench.fits(other)
            bench.make(other)
            bench.is_placed("other", fits)
            wanted = {"workers": rng.randint(1, 5), "placement": {"spread": "none"}, "devices": {
                "gpus": {"count": rng.choice([1, 2, 3, 4, 8]), "resource": rng.choice([EXTENDED, "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])},
                **({"nics": {"count": rng.randint(1, 4), "class": "dranet", "selector": RDMA}} if rng.random() < 0.5 else {})}}
            path = bench.file("job", **wanted)
            predicted = bench.fits(path)
            bench.make(path)
            real = bench.is_placed("job", predicted)
            fitting += real
            if predicted != real:
                wrong.append((case, wanted, {"predicted": predicted, "scheduled": bench.reasons("job")}))
            bench.clear()
    finally:
        name_resource(None)
    assert not wrong, f"{len(wrong)} of {EXTENDED_CASES} (DRARUN_SEED={SEED}): {wrong[:5]}"
    minor = int(re.match("[0-9]+", json.loads(bench.cluster.kubectl("get", "--raw", "/version"))["minor"]).group())
    assert 0 < fitting < EXTENDED_CASES or minor < 36


# ---- prediction of what nodes want of pods ----

TAINTS = ("nvidia.com/gpu", "team")  # pods of jobs with GPUs tolerate the first by themselves
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")


def unkind(rng):
    """alter() of fake nodes: taints, labels, cordons, and amounts that few pods fit into."""
    def alter(node, *_):
        node["metadata"]["labels"]["pool"] = rng.choice("ab")
        spec, amounts = node.setdefault("spec", {}), node["status"]["allocatable"]
        spec["taints"] = [{"key": key, "value": rng.choice("xy"), "effect": rng.choice(EFFECTS)} for key in TAINTS if rng.random() < 0.4]
        spec["unschedulable"] = rng.random() < 0.1
        amounts.update(cpu=rng.choice(["1", "2500m", "8", "64"]), memory=rng.choice(["1Gi", "3000M", "64Gi"]), pods=rng.choice(["1", "3", "110"]))
        node["status"]["capacity"] = dict(amounts)
    return alter


OWN = ({"matchLabels": {"app": "x"}}, {"matchLabels": {"app": "x", "drarun.dev/job": "job"}},
       {"matchExpressions": [{"key": "drarun.dev/worker", "operator": "Exists"}]}, {"matchLabels": {"app": "y"}})


def choosy(rng):
    """A job whose pods ask something of nodes beside devices."""
    pod = {"containers": [{"name": "w", "image": "i", "command": ["c"]}]}
    if rng.random() < 0.6:
        amounts = {"cpu": rng.choice(["100m", "1", "2"]), "memory": rng.choice(["100Mi", "1Gi", "2G"])}
        pod["containers"][0]["resources"] = {rng.choice(["requests", "limits"]): amounts}
        if rng.random() < 0.3:
            pod["initContainers"] = [{"name": "load", "image": "i", "resources": {"requests": {"cpu": "2200m"}},
                                      **({"restartPolicy": "Always"} if rng.random() < 0.5 else {})}]
    if rng.random() < 0.3:
        pod["nodeSelector"] = {"pool": rng.choice("ab")}
    if rng.random() < 0.3:
        terms = [{"key": "pool", "operator": rng.choice(["In", "NotIn"]), "values": [rng.choice("ab")]}]
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}}
    template = {"spec": pod}
    if rng.random() < 0.3:  # how workers share nodes, in the template's own words
        template["metadata"] = {"labels": {"app": "x"}}
        pod.setdefault("affinity", {})["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": rng.choice(OWN)}]}
    if rng.random() < 0.5:
        pod["tolerations"] = [rng.choice([{"key": "team", "operator": "Exists"}, {"key": "team", "value": "x"}, {"operator": "Exists"},
                                          {"key": "team", "operator": "Exists", "effect": "NoSchedule"}])]
    return {"workers": rng.randint(1, 6), **placement(rng), "devices": devices(rng.choice([0, 1, 2]), 1, "none"),
            "template": template}


def test_plan_and_scheduler_agree_on_which_nodes(bench):
    """What plan says is neither a false yes nor a false no."""
    api, wrong, fitting = bench.cluster.api, [], 0
    for case in range(CASES):
        rng = random.Random(SEED * 7000003 + case)
        bench.cluster.fake_nodes(3, "a4-highgpu-8g", alter=unkind(rng))
        wanted = choosy(rng)
        path = bench.file("job", **wanted)
        predicted = bench.fits(path)
        bench.make(path)
        real = bench.is_placed("job", predicted)
        fitting += real
        if predicted != real:
            nodes = [(each["spec"], each["metadata"]["labels"]["pool"], each["status"]["allocatable"]) for each in api.get("v1", "Node")]
            wrong.append((case, wanted, nodes, {"predicted": predicted, "scheduled": bench.reasons("job")}))
        bench.clear()
        for node in api.get("v1", "Node"):
            api.delete("v1", "Node", node["metadata"]["name"])
        for each in api.get("resource.k8s.io/v1", "ResourceSlice"):
            api.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])
    assert not wrong, f"{len(wrong)} of {CASES} (DRARUN_SEED={SEED}): {wrong[:3]}"
    assert 0 < fitting < CASES


# ---- one worker per node ----

SEEDS = SOURCE / "tests" / "data" / "seeds"
# and what each job says beside what was imported: four workers share two nodes
SCENARIOS = {"gpu-nic-2x2": {}, "mpijob-1x1": {}, "rdma-8x8": {}, "rdma-4x4": {"placement": {"spread": "none"}}}


def nodes_of(bench, name):
    return sorted(each["spec"].get("nodeName", "-") for each in bench.pods(name))


@pytest.mark.parametrize("seed", SCENARIOS)
def test_two_node_scenarios_are_on_two_nodes(bench, seed):
    """The published tests of a network, imported: plan and scheduler have their workers on both of two nodes, one of
    which no pod would choose."""
    def worse(node, *_):
        if node["metadata"]["name"] == "fake1":
            node["spec"] = {"taints": [{"key": "test/worse", "effect": "PreferNoSchedule"}]}
    bench.cluster.fake_nodes(2, "a4-highgpu-8g", resources={"nvidia.com/gpu": "8"}, alter=worse)
    documents = list(yaml.safe_load_all(complete(bench.drarun("import", SEEDS / f"{seed}.yaml"))))
    job, classes = documents[0], [each for each in documents[1:] if each["metadata"]["name"] not in ("dranet", "gpu.nvidia.com")]
    job["spec"].update(SCENARIOS[seed])
    job["metadata"]["name"] = "job"
    job["spec"].setdefault("nccl", {})["profile"] = "auto"  # stand-ins of nodes have no folders of a vendor
    path = bench.folder / "job.json"
    path.write_text(json.dumps(job))
    bench.cluster.api.make(*classes)
    try:
        found = bench.drarun("plan", "--live", "-o", "json", path, env=bench.env, timeout=100).ok().out
        planned = sorted(each["node"] for each in json.loads(found)["prediction"]["workers"])
        bench.make(path)
        assert bench.is_placed("job")
        placed = nodes_of(bench, "job")
    finally:
        for each in classes:
            bench.cluster.api.delete("resource.k8s.io/v1", "DeviceClass", each["metadata"]["name"])
    assert planned == placed == sorted(["fake0", "fake1"] * (job["spec"]["workers"] // 2))


def test_a_job_does_not_wait_for_what_is_left_of_its_last_attempt(bench):
    """Pods of an attempt before, on nodes that do not answer perhaps, stay as long as they like. The job's own pods, and
    those alone, keep apart."""
    bench.cluster.fake_nodes(2, "a4-highgpu-8g")
    path = bench.file("job", workers=2, devices=devices(1, 1, "none"))
    out = bench.drarun("render", "--format", "json", "--namespace", bench.namespace, path).ok().out
    items = [each for each in json.loads(out)["items"] if each["kind"] in ("ResourceClaim", "Pod")]
    left = json.loads(json.dumps(items).replace("job-w-", "left-w-"))
    for each in left:
        each["metadata"]["labels"]["drarun.dev/attempt"] = "0"
        for term in each["spec"].get("affinity", {}).get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            term["labelSelector"]["matchLabels"]["drarun.dev/attempt"] = "0"
    bench.cluster.api.make(*left)
    assert bench.is_placed("job") and len(set(nodes_of(bench, "job"))) == 2
    bench.cluster.api.make(*items)
    assert bench.is_placed("job") and nodes_of(bench, "job") == ["fake0", "fake0", "fake1", "fake1"]
