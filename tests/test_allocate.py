# SPDX-License-Identifier: Apache-2.0
"""The scheduler's own allocator: what our claims get from it on captured machines, and whether we predict what it
does with random claims on random clusters (tests/cluster)."""
import json
import os
import subprocess

import pytest

from support.build import SOURCE, patience
from support.cluster import fetched
from support.random_claims import questions

SEED = 1
COUNT = int(os.environ.get("DRARUN_CLUSTERS", 600))

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
RDMA = 'device.attributes["dra.net"].rdma == true'
CLASSES = [{"metadata": {"name": name}, "spec": {"selectors": [{"cel": {
    "expression": f'device.driver == "{driver}"'}}]}} for name, driver in (
        ("gpu.nvidia.com", "gpu.nvidia.com"), ("dranet", "dra.net"))]


class Machine:
    """One node of a fixture; allocate(claims) gives [(request, root), ...] for each, None where it has no room."""

    def __init__(self, name, numa=False):
        self.slices = json.loads((SOURCE / "tests/data/fixtures" / f"{name}.json").read_text())["resourceSlices"]
        if numa:
            self.publish_numa()
        self.roots = {(each["spec"]["driver"], device["name"]): device["attributes"].get(ROOT, {}).get("string")
                      for each in self.slices for device in each["spec"]["devices"]}

    def publish_numa(self):
        """As newer drivers do: what DraNet wrote under its own name, and for GPUs two sockets in their order."""
        for each in self.slices:
            devices = each["spec"]["devices"] if each["spec"]["driver"] in ("gpu.nvidia.com", "dra.net") else []
            for i, device in enumerate(devices):
                own = device["attributes"].get("dra.net/numaNode")
                device["attributes"][NUMA] = own or {"int": 2 * i // len(devices)}

    def numa(self, claims):
        """allocate(claims) with NUMA nodes in place of roots."""
        self.roots = {(each["spec"]["driver"], device["name"]): device["attributes"].get(NUMA, {}).get("int")
                      for each in self.slices for device in each["spec"]["devices"]}
        return self.allocate(claims)

    def allocate(self, claims):
        programs, reason = fetched()
        if not programs:
            pytest.skip(reason)
        given = json.dumps({"slices": self.slices, "classes": CLASSES, "claims": claims})
        run = subprocess.run([programs / "allocate"], input=given, capture_output=True, text=True, timeout=patience(100))
        assert run.returncode == 0, run.stderr
        return [each and [(one["request"], self.roots[one["driver"], one["device"]]) for one in each]
                for each in json.loads(run.stdout)]


@pytest.fixture
def claims(drarun, tmp_path):
    def make(workers, gpus, nics, *args, align="required", profile="auto"):
        path = tmp_path / "job.json"
        path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
            "workers": workers, "image": "i", "command": ["c"], "devices": {
                "gpus": {"count": gpus, "class": "gpu.nvidia.com"},
                "nics": {"count": nics, "class": "dranet", "selector": RDMA}, "align": align},
            "nccl": {"profile": profile}}}))
        out = json.loads(drarun("render", "--format", "json", *args, path).ok().out)
        return [each for each in out["items"] if each["kind"] == "ResourceClaim"]
    return make


def pairs(results):
    """Roots by pair: {"0": {"pci0000:8c"}, ...}."""
    found = {}
    for request, root in results:
        found.setdefault(request.split("-")[1], set()).add(root)
    return found


@pytest.mark.parametrize("machine,workers,gpus,nics", [
    ("a4-highgpu-8g", 8, 1, 1), ("a4-highgpu-8g", 2, 4, 4), ("a4-highgpu-8g", 1, 8, 8), ("a4-highgpu-8g", 2, 3, 3),
    ("a4-highgpu-8g", 1, 8, 4), ("a4-highgpu-8g", 1, 4, 8), ("aws-p4d-24xlarge", 1, 8, 4),
    ("aws-p4d-24xlarge", 4, 2, 1)])
def test_pairs_share_a_root(claims, machine, workers, gpus, nics):
    results = Machine(machine).allocate(claims(workers, gpus, nics))
    assert len(results) == workers
    for each in results:
        assert len(each) == gpus + nics
        found = pairs(each)
        assert len(found) == min(gpus, nics) and all(len(roots) == 1 for roots in found.values())


def test_required_waits_where_no_root_is_shared(claims):
    machine = Machine("oke-gb200-v3-4")
    assert machine.allocate(claims(1, 1, 1)) == [None]
    steps = [claims(1, 1, 1, "--step", str(i), align="preferred") for i in (1, 2, 3)]
    assert machine.allocate(steps[0]) == [None]
    assert machine.allocate(steps[1]) == [None]  # its drivers do not publish NUMA nodes
    assert len(machine.allocate(steps[2])[0]) == 2


@pytest.mark.parametrize("machine,profile,workers,gpus,nics", [
    ("oke-gb200-v3-4", "oci-gb200", 2, 2, 2), ("oke-gb200-v3-4", "oci-gb200", 4, 1, 1),
    ("oke-gb200-v3-4", "oci-gb200", 1, 4, 4), ("azure-nd96isr-h100-v5", "azure-ndv5", 2, 4, 4),
    ("azure-nd96isr-h100-v5", "azure-ndv5", 8, 1, 1), ("azure-nd96isr-h100-v5", "azure-ndv5", 1, 8, 8)])
def test_pairs_share_a_numa_node_where_they_have_no_common_root(claims, machine, profile, workers, gpus, nics):
    node = Machine(machine, numa=True)
    results = node.numa(claims(workers, gpus, nics, profile=profile))
    assert len(results) == workers
    for each in results:
        assert each and len(each) == gpus + nics
        assert all(len(nodes) == 1 for nodes in pairs(each).values()), each


def test_match_keeps_all_devices_of_a_worker_together(drarun, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        "workers": 3, "image": "i", "command": ["c"], "devices": {
            "gpus": {"count": 3, "class": "gpu.nvidia.com"}, "nics": {"count": 2, "class": "dranet", "selector": RDMA},
            "match": [NUMA], "align": "none"}}}))
    items = json.loads(drarun("render", "--format", "json", path).ok().out)["items"]
    results = Machine("azure-nd96isr-h100-v5", numa=True).numa([one for one in items if one["kind"] == "ResourceClaim"])
    assert [each and len({node for _, node in each}) for each in results] == [1, 1, None]
    path.write_text(path.read_text().replace('"class": "gpu.nvidia.com"', '"resource": "nvidia.com/gpu"'))
    refused = drarun("render", path)
    assert refused.rc == 65 and "match" in refused.err and "request both by class" in refused.err


@pytest.mark.parametrize("amount,found", [("179Gi", 8), ("180Gi", 0)])
def test_capacity_is_a_minimum_of_whole_devices(drarun, tmp_path, amount, found):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"image": "i", "command": ["c"], "devices": {
        "gpus": {"count": 8, "capacity": {"memory": amount}}}}}))
    items = json.loads(drarun("render", "--format", "json", path).ok().out)["items"]
    result, = Machine("a4-highgpu-8g").allocate([one for one in items if one["kind"] == "ResourceClaim"])
    assert len(result or []) == found


def test_required_does_not_become_the_numa_node_by_itself(claims):
    """A machine that no profile names may have a root in common elsewhere: only preferred goes on."""
    node = Machine("oke-gb200-v3-4", numa=True)
    assert node.numa(claims(1, 1, 1)) == [None]
    assert len(node.numa(claims(1, 1, 1, "--step", "2", align="preferred"))[0]) == 2


def taken(count, root):
    expression = f'{RDMA} && device.attributes["resource.kubernetes.io"].pcieRoot == "{root}"'
    return {"metadata": {"name": root}, "spec": {"devices": {"requests": [{"name": "nic", "exactly": {
        "deviceClassName": "dranet", "count": count, "selectors": [{"cel": {"expression": expression}}]}}]}}}


def test_a_prioritized_list_stops_at_a_crossed_pair(claims):
    """Why the second step of `preferred` is a second claim (docs/design/010-claims.md, "The ladder")."""
    def request(name, device_class):
        selectors = [{"cel": {"expression": RDMA}}] if device_class == "dranet" else []
        return {"name": name, "firstAvailable": [{"name": each, "deviceClassName": device_class, "count": 1,
                                                  "selectors": selectors} for each in ("aligned", "any")]}
    listed = {"metadata": {"name": "listed"}, "spec": {"devices": {
        "requests": [request("gpu-0", "gpu.nvidia.com"), request("nic-0", "dranet")],
        "constraints": [{"requests": ["gpu-0/aligned", "nic-0/aligned"], "matchAttribute": ROOT}]}}}
    machine, busy = Machine("a4-highgpu-8g"), taken(2, "pci0000:8c")
    (_, first), (_, second) = machine.allocate([busy, listed])[1]
    assert first != second
    ((_, first), (_, second)) = machine.allocate([busy, *claims(1, 1, 1)])[1]
    assert first == second != "pci0000:8c"


@pytest.mark.parametrize("numa", [False, True], ids=["", "numa"])
@pytest.mark.parametrize("align", ["required", "preferred", "none"])
@pytest.mark.parametrize("machine,workers,gpus,nics", [
    ("a4-highgpu-8g", 8, 1, 1), ("a4-highgpu-8g", 2, 4, 4), ("a4-highgpu-8g", 1, 8, 8), ("a4-highgpu-8g", 3, 3, 3),
    ("a4-highgpu-8g", 1, 8, 4), ("a4-highgpu-8g", 1, 4, 8), ("aws-p4d-24xlarge", 2, 4, 4),
    ("oke-gb200-v3-4", 2, 2, 2), ("azure-nd96isr-h100-v5", 2, 4, 4),
])
def test_plan_predicts_it(drarun, tmp_path, machine, workers, gpus, nics, align, numa):
    """drarun plan gives each worker the devices that the allocator gives it, and says how near they are."""
    node = Machine(machine, numa)
    files = {"slices": node.slices, "classes": [{"kind": "DeviceClass", **each} for each in CLASSES]}
    for name, items in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))
    spec = tmp_path / "job.json"
    spec.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        "workers": workers, "placement": {"spread": "none"}, "image": "i", "command": ["c"], "devices": {
            "gpus": {"count": gpus, "class": "gpu.nvidia.com"},
            "nics": {"count": nics, "class": "dranet", "selector": RDMA}, "align": align}}}))
    result = drarun("plan", "-o", "json", spec, "--slices", tmp_path / "slices.json", "--classes",
                    tmp_path / "classes.json")
    assert result.rc in (0, 65, 75), result
    answer = json.loads(result.out)
    rooted = machine.startswith(("a4", "aws"))
    if align == "preferred" and not rooted:
        assert answer["rung"] == ("numaNode" if numa else "none")
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": answer["claim"]}
    claims = [{**claim, "metadata": {"name": f"job-w-{i}", "namespace": "default", "uid": f"uid-{i}"}}
              for i in range(workers)]
    real = node.allocate(claims)
    placed = [[(one["request"], node.roots[one["driver"], one["device"]]) for one in worker["results"]]
              for worker in answer["prediction"]["workers"]]
    assert placed + [None] * (workers - len(placed)) == real


# ---- random clusters and claims

def device(result):
    """What is compared of a result; a shareID is random."""
    return (*(result.get(key) for key in ("request", "driver", "pool", "device", "adminAccess")), "shareID" in result,
            tuple(sorted(result.get("consumedCapacity", {}).items())))


def workers(answer):
    return [(worker["node"], [device(result) for result in worker["results"]]) for worker in answer["workers"]]


def differ(theirs, ours):
    """We don't tell who was placed before a selector failed: there is an error alone."""
    if bool(theirs.get("stop")) != bool(ours.get("stop")):
        return True
    return workers(theirs) != workers(ours) and not (theirs.get("stop") and not ours["workers"])


def answers(command, asked):
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    run = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=patience(300))
    assert run.returncode == 0, run.stderr[-2000:]
    result = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(result) == len(asked)
    return result


@pytest.mark.parametrize("minor,allocator", [("36", "allocate-1.36"), ("37", "allocate-batch")])
def test_predictions_agree(build, minor, allocator):
    """Feasible or not, the devices, what they consume of shared ones, and where the scheduler gives up: by the rules
    of each version, which matter to some of the questions."""
    programs, reason = fetched()
    if not programs:
        pytest.skip(reason)
    asked = list(questions(SEED, COUNT))
    predict = build / "tests" / "programs" / "predict_claim"
    theirs = answers([programs / allocator], asked)
    ours = answers([predict, minor], asked)
    other = answers([predict, {"36": "37", "37": "36"}[minor]], asked)
    assert any(differ(*pair) for pair in zip(theirs, other))
    assert sum(bool(each["workers"]) for each in theirs) > COUNT / 5
    assert sum(bool(each.get("stop")) for each in theirs) > COUNT / 20
    wrong = [f"{json.dumps(question)}\n  theirs: {a}\n  ours: {b}"
             for question, a, b in zip(asked, theirs, ours) if differ(a, b)]
    wrong.sort(key=len)
    assert not wrong, f"{len(wrong)} of {COUNT}:\n" + "\n".join(wrong[:3])
