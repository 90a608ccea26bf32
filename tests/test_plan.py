# SPDX-License-Identifier: Apache-2.0
"""drarun plan: what a job would claim and get, on captured machines."""
import json
import re
from xml.etree import ElementTree

import pytest
import yaml

from support.build import SOURCE
from test_input import on_terminal

RDMA = 'device.attributes["dra.net"].rdma == true'
PACKED = "  placement: {spread: none}\n"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def spec(tmp_path):
    """A job spec of so many workers, GPUs and NICs each; more: further lines of spec."""
    def make(workers, gpus, nics, selector=RDMA, more=""):
        path = tmp_path / "job.yaml"
        path.write_text(f"""apiVersion: drarun.dev/v1alpha1
kind: DraJob
metadata: {{name: all-reduce}}
spec:
  workers: {workers}
  devices:
    gpus: {{count: {gpus}, class: gpu.nvidia.com}}
    nics: {{count: {nics}, class: dranet, selector: '{selector}'}}
{more}  image: example/nccl-tests
  command: [all_reduce_perf]
""")
        return path
    return make


def test_whole_nodes(drarun, machine, spec):
    result = drarun("plan", spec(2, 8, 8), *machine("a4-highgpu-8g", 2)).ok()
    assert "each GPU with a NIC of its PCIe root" in result.out
    assert "worker 0  node-0  gpu-0 pci-0000-91-00-0" in result.out
    assert "worker 1  node-1" in result.out
    assert "Ranks, 16 in all:" in result.out
    assert "workers 0 to 1: 8 GPUs, 8 NICs: 8 PIX; 400 GB/s of 400" in result.out
    assert "score of the job: 1.00" in result.out
    assert "profile gke-a4: node label" in result.out
    assert "  NCCL_NET=gIB\n" in result.out
    assert "MISALIGNED" not in result.out and result.err == ""


@pytest.mark.parametrize("each,said,numbers", [
    (1, "Ranks, 2 in all, one for the GPUs of a worker:", ["0", "0", "1", "1"]),
    (2, "Ranks, 4 in all:", ["0", "1", "2", "3"]),
    (4, "Ranks, 8 in all, which share the GPUs of their worker:", ["0-3", "0-3", "4-7", "4-7"]),
])
def test_ranks_per_worker(drarun, machine, spec, each, said, numbers):
    """The ranks that the job will have, whatever their GPUs."""
    job, options = spec(2, 2, 2, more=f"  ranksPerWorker: {each}\n"), machine("a4-highgpu-8g", 2)
    text = drarun("plan", job, *options).ok().out
    rows = re.findall(r"(?m)^  (\S+) +([01]) +gpu-", text)
    assert said in text and [number for number, _ in rows] == numbers, text
    workers = json.loads(drarun("plan", "-o", "json", job, *options).ok().out)["plan"]["workers"]
    assert [rank["rank"] for worker in workers for rank in worker["ranks"]] == [int(each.split("-")[0]) for each in numbers]
    sizes = {rank["env"]["WORLD_SIZE"] for worker in workers for rank in worker["ranks"] if "env" in rank}
    assert sizes == ({"4"} if each == 2 else set())


def test_ranks_without_a_cluster(drarun, source, spec):
    """How many there are needs no slices."""
    def said(job):
        return drarun("plan", job).ok().out
    assert "\n16 ranks on each worker, 32 in all\n" in said(source / "examples/jobs/mpi-cpus.yaml")
    assert "\n8 ranks on each worker, 16 in all\n" in said(spec(2, 8, 8))
    assert "\none rank on each worker\n" in said(spec(2, 8, 8, more="  ranksPerWorker: 1\n"))
    for more in ("  launch: mpirun\n", ""):  # how many mpirun starts, and how many GPUs a node has
        assert "on each worker" not in said(spec(2, 8 if more else "all", 8 if more else "all", more=more))


def test_halves_are_aligned_by_construction(drarun, machine, spec):
    result = drarun("plan", "-o", "json", spec(2, 4, 4, more=PACKED), *machine("a4-highgpu-8g")).ok()
    answer = json.loads(result.out)
    plan = answer["plan"]
    paths = {path for worker in plan["workers"] for rank in worker["ranks"] for path in rank["path"]}
    assert paths == {"PIX"} and plan["jobScore"] == 1.0
    assert "SAME_NODE_PODS" in {warning["code"] for warning in plan["warnings"]}
    nic, = (need for need in answer["prediction"]["requests"] if need["requests"].startswith("nic-0"))
    assert nic["admitted"] == 8
    assert {"where": "class dranet", "term": "device.driver == 'dra.net'", "ruledOut": 8} in nic["terms"]


def test_roots_that_never_match_fall_back(drarun, machine, spec):
    """On this machine each device is alone under its root: preferred goes on without, required does not. With a profile
    that says nothing of roots, as with a machine that nothing names."""
    options, other = machine("azure-nd96isr-h100-v5"), "  nccl: {profile: generic-ib}\n"
    result = drarun("plan", spec(1, 4, 4, "true", other), *options).ok()
    assert "without a constraint: no node can meet pcieRoot or numaNode (align: preferred)" in result.out
    result = drarun("plan", spec(1, 4, 4, "true", "    align: required\n" + other), *options)
    assert result.rc == 75
    assert "no free devices share resource.kubernetes.io/pcieRoot" in result.out


def test_too_few_nodes_are_no_reason_for_weaker_claims(drarun, machine, spec):
    result = drarun("plan", spec(3, 2, 2), *machine("a4-highgpu-8g"))
    assert result.rc == 75 and "1 node fits; placement.spread: none packs them" in result.out
    assert "each GPU with a NIC of its PCIe root, by a constraint of the claim\n" in result.out


def test_a_topology_file_that_is_taken_to_be_there(drarun, machine, spec):
    """Azure's: the variable names it, and so the paths are those that it tells. A file of the user's is known to nobody."""
    options = machine("azure-nd96isr-h100-v5")
    for more, path, score in (("", "PIX", 1.0), ("  nccl: {env: {NCCL_TOPO_FILE: ''}}\n", "PHB", 0.7)):
        plan = json.loads(drarun("plan", spec(1, 8, 8, "true", more), *options, "--output", "json").ok().out)["plan"]
        ranks = plan["workers"][0]["ranks"]
        assert [rank["path"] for rank in ranks] == [[path]] * 8 and plan["jobScore"] == score
        assert any(each["code"] == "MISALIGNED_PHB" for each in plan["warnings"]) == (path == "PHB")
        if path == "PIX":
            assert plan["env"]["NCCL_TOPO_FILE"] == "/opt/microsoft/ndv5/topo.xml"
            assert [rank["nics"] for rank in ranks] == [[f"mlx5_{rail}"] for rail in range(8)]


def test_the_numa_node_is_between_root_and_none(drarun, machine, spec):
    """What DraNet and NVIDIA's driver publish by now makes pairs on GB200: also `required` ones, where the profile says
    that there is no common root."""
    options = machine("oke-gb200-v3-4")
    path = options[options.index("--slices") + 1]
    slices = json.loads(path.read_text())
    for each in slices["items"]:
        devices = each["spec"]["devices"] if each["spec"]["driver"] in ("gpu.nvidia.com", "dra.net") else []
        for i, device in enumerate(devices):
            device["attributes"]["resource.kubernetes.io/numaNode"] = {"int": 2 * i // len(devices)}
    path.write_text(json.dumps(slices))
    other = "  nccl: {profile: generic-roce}\n"
    result = drarun("plan", spec(2, 2, 2, more=PACKED + other), *options).ok()
    assert "each GPU with a NIC of its NUMA node, by a constraint of the claim: no node can meet pcieRoot" in result.out
    assert "MISALIGNED" not in result.out
    required = "    align: required\n"
    assert drarun("plan", spec(2, 2, 2, more=required + PACKED + other), *options).rc == 75
    job = spec(2, 2, 2, more=required + PACKED)  # the nodes name it
    result = drarun("plan", job, *options).ok()
    assert "NUMA node, by a constraint of the claim: oci-gb200 has no common root" in result.out
    assert json.loads(drarun("plan", "-o", "json", job, *options).ok().out)["rung"] == "numaNode"


def test_no_room_says_why(drarun, machine, spec):
    result = drarun("plan", spec(3, 8, 8, more=PACKED), *machine("a4-highgpu-8g", 2))
    assert result.rc == 75
    assert "No room: worker 2 of 3 has no node" in result.out
    assert "taken by earlier workers on 2 nodes" in result.out


def test_nodes_that_do_not_exist_yet(drarun, machine, spec):
    """Of a pool at zero nobody publishes a device: that is no answer about its nodes, and weakens no claim."""
    options = machine("a4-highgpu-8g", 2)
    path = options[options.index("--slices") + 1]
    given = json.loads(path.read_text())
    given["items"] = [each for each in given["items"] if each.get("spec", {}).get("driver") != "gpu.nvidia.com"]
    path.write_text(json.dumps(given))
    result = drarun("plan", spec(2, 8, 8), *options)
    assert result.rc == 75 and "\nNo room on the nodes that are there: worker 0 of 2 has no node: " in result.out, result
    assert "\nNot predicted: nodes that do not exist yet: no node publishes devices of class gpu.nvidia.com: a pool that has no node yet " \
        "publishes none\n" in result.out
    assert "each GPU with a NIC of its PCIe root, by a constraint of the claim" in result.out and "no node can meet" not in result.out
    status = "nodeGroups:\n- {name: a4, health: {cloudProviderTarget: 0, minSize: 0, maxSize: 4}, scaleUp: {status: NoActivity}}\n"
    given["items"].append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": status}})
    path.write_text(json.dumps(given))
    found = json.loads(drarun("plan", "-o", "json", spec(2, 8, 8), *options).out)["prediction"]["notPredicted"]
    assert any("; cluster-autoscaler may add nodes to a4 (0 of at most 4); which devices they would have is not known" in each for each in found), found


@pytest.mark.parametrize("selector,crosses", [("", True), (""", selector: 'device.attributes["gpu.amd.com"].numaNode == 1'""", False)])
def test_gpus_of_amd(drarun, machine, spec, selector, crosses):
    """Their class is known; on a machine where nothing shares a root, selectors choose the socket, and what crosses is said."""
    options = machine("azure-nd96isr-mi300x-v5", 2)
    job = spec(2, 4, 4, selector=f'{RDMA} && device.attributes["dra.net"].numaNode == 1', more=PACKED)
    job.write_text(job.read_text().replace("class: gpu.nvidia.com", f"class: gpu.amd.com{selector}"))
    plan = json.loads(drarun("plan", job, "-o", "json", *options).ok().out)["plan"]
    assert plan["profile"] == "azure-mi300x" and plan["env"]["NCCL_DMABUF_ENABLE"] == "1"
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1"
    ranks = plan["workers"][0]["ranks"]
    first = 0 if crosses else 4
    assert [rank["gpu"] for rank in ranks] == [f"gpu-{i + 1}-{128 + i}" for i in range(first, first + 4)]
    assert all("HIP_VISIBLE_DEVICES" in rank["env"] and "CUDA_VISIBLE_DEVICES" not in rank["env"] for rank in ranks)
    said = {each["code"] for each in plan["warnings"]}
    assert "GPU_VENDOR" in said and ("MISALIGNED_SYS" in said) == crosses


def test_one_worker_per_node(drarun, machine, spec):
    """A network test whose workers share a node would test no network; what would pack them is told where it would."""
    def planned(*words, nodes=2):
        result = drarun("plan", spec(*words[:3], more="".join(words[3:])), "-o", "json", *machine("a4-highgpu-8g", nodes))
        found = json.loads(result.out)["prediction"]
        return result.rc, [each["node"] for each in found["workers"]], found["shortage"]
    assert planned(2, 2, 2) == (0, ["node-0", "node-1"], None)
    assert planned(2, 2, 2, PACKED) == (0, ["node-0", "node-0"], None)
    assert planned(3, 2, 2) == (75, ["node-0", "node-1"], "worker 2 of 3 has no node: 3 workers, one per node by "
                                "placement.spread; 2 nodes fit; placement.spread: none packs them")
    assert planned(2, 2, 2, nodes=1) == (75, ["node-0"], "worker 1 of 2 has no node: 2 workers, one per node by "
                                         "placement.spread; 1 node fits; placement.spread: none packs them")
    assert planned(3, 8, 8) == (75, ["node-0", "node-1"], "worker 2 of 3 has no node: 3 workers, one per node by "
                                "placement.spread; 2 nodes fit")
    text = drarun("plan", spec(2, 2, 2), *machine("a4-highgpu-8g", 2)).ok().out
    assert "one worker per node (placement.spread by default)\n" in text and "SAME_NODE_PODS" not in text
    assert "one worker per node" not in drarun("plan", spec(2, 2, 2, more=PACKED), *machine("a4-highgpu-8g", 2)).ok().out


def test_workers_that_their_template_keeps_apart(drarun, machine, spec):
    term = '{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}'
    path = spec(3, 1, 1)
    text = path.read_text()
    path.write_text(text[:text.index("  image:")] + f"""  placement: {{spread: none}}
  template:
    metadata: {{labels: {{app: x}}}}
    spec:
      containers: [{{name: a, image: i, command: [c]}}]
      affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}
""")
    result = drarun("plan", path, *machine("a4-highgpu-8g", 2))
    assert result.rc == 75 and "one worker per node (the template's podAntiAffinity)\n" in result.out, result
    assert result.out.endswith("3 workers, one per node by the template's podAntiAffinity; 2 nodes fit\n")


def test_selector_that_admits_nothing(drarun, machine, spec):
    selector = RDMA + ' && device.attributes["dra.net"].ifName == "eth7"'
    result = drarun("plan", spec(1, 1, 1, selector), *machine("a4-highgpu-8g"))
    assert result.rc == 75
    assert 'ruled out by request nic: device.attributes["dra.net"].ifName == "eth7"' in result.out


@pytest.mark.parametrize("kubelets,options,version", [
    ([], [], "1.37"), ([], ["--kubernetes", "1.36"], "1.36"), ([], ["--kubernetes", "v1.34.4-gke.1"], "1.36"),
    ([], ["--kubernetes", "1.99"], "1.37"), (["v1.35.2", "v1.36.3", "v1.35.1", None], [], "1.36"),
    (["v1.36.3", "v1.37.0"], [], "1.37"), (["v1.36.3"], ["--kubernetes", "1.37"], "1.37")])
def test_rules_are_of_a_version(drarun, tmp_path, kubelets, options, version):
    """Of the option, else the newest kubelet's, else the newest known; of the oldest known for older ones, which is
    said. 1.36 rounds capacity to whole numbers."""
    gpu = {"name": "gpu-0", "allowMultipleAllocations": True, "attributes": {"type": {"string": "gpu"}}, "capacity": {"share": {
        "value": "4", "requestPolicy": {"default": "1", "validRange": {"min": "500m", "step": "250m"}}}}}
    items = [{"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "gpu.nvidia.com", "nodeName": "node-0", "pool": {"name": "node-0", "generation": 1, "resourceSliceCount": 1},
        "devices": [gpu]}}]
    for i, kubelet in enumerate(kubelets):
        items.append({"kind": "Node", "metadata": {"name": f"node-{i}"},
                      "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"},
                                 **({"nodeInfo": {"kubeletVersion": kubelet}} if kubelet else {})}})
    slices, job = tmp_path / "slices.json", tmp_path / "job.json"
    slices.write_text(json.dumps({"kind": "List", "items": items}))
    job.write_text(json.dumps({"workers": 1, "image": "i", "command": ["c"], "devices": {"gpus": {"count": 1, "capacity": {"share": "600m"}}}}))
    prediction = json.loads(drarun("plan", job, "--slices", slices, "-o", "json", *options).ok().out)["prediction"]
    assert prediction["kubernetes"] == version
    older = [each for each in prediction["notPredicted"] if "differs from that of 1.36, which is followed" in each]
    assert len(older) == ("v1.34.4-gke.1" in options) and all("1.34" in each and "being updated" in each for each in older)
    result, = prediction["workers"][0]["results"]
    assert result["consumedCapacity"] == {"share": "750m" if version == "1.37" else "1"}
    told = ":" if version == "1.37" else f", as Kubernetes {version} allocates:"
    assert f"Requests over the slices{told}\n" in drarun("plan", job, "--slices", slices, *options).ok().out


@pytest.mark.parametrize("version", ["", "1", "37", "1.x", "1.36+"])
def test_a_version_that_is_none(drarun, machine, spec, version):
    result = drarun("plan", spec(1, 1, 1), *machine("a4-highgpu-8g"), "--kubernetes", version)
    assert result.rc == 64 and f'kubernetes: expected a version such as 1.36, got "{version}"' in result.err, result


@pytest.mark.parametrize("version", ["", "2", "two", "2.28.x"])
def test_a_version_of_nccl_that_is_none(drarun, machine, spec, version):
    result = drarun("plan", spec(1, 1, 1), *machine("a4-highgpu-8g"), "--nccl-version", version)
    assert result.rc == 64 and f'NCCL version: expected one like 2.28.9, got "{version}"' in result.err, result


def test_capacity_as_a_minimum(drarun, machine, spec):
    """The GPUs of this machine have 183359Mi each, and are handed out whole."""
    path = spec(1, 8, 8)
    text = path.read_text()
    path.write_text(text.replace("gpu.nvidia.com}", "gpu.nvidia.com, capacity: {memory: 179Gi}}"))
    assert "8 GPUs, 8 NICs: 8 PIX" in drarun("plan", path, *machine("a4-highgpu-8g")).ok().out
    path.write_text(text.replace("gpu.nvidia.com}", "gpu.nvidia.com, capacity: {memory: 180Gi}}"))
    result = drarun("plan", "-o", "json", path, *machine("a4-highgpu-8g"))
    assert result.rc == 75, result
    gpu, = (need for need in json.loads(result.out)["prediction"]["requests"] if need["requests"] == "gpu")
    assert gpu["admitted"] == 0
    assert {"where": "request gpu", "term": 'device.capacity[device.driver]["memory"].compareTo(quantity("180Gi")) >= 0', "ruledOut": 8} in gpu["terms"]
    path.write_text(text.replace("gpu.nvidia.com}", "gpu.nvidia.com, capacity: {cores: 1}}"))
    result = drarun("plan", path, *machine("a4-highgpu-8g"))
    assert result.rc == 75 and '"cores" in device.capacity[device.driver]' in result.out, result


def test_shares_of_a_device(drarun, machine, tmp_path):
    """Where the driver hands out shares, several workers have one GPU, as long as its memory lasts."""
    options = machine("small-l4-2gpu")
    path = options[options.index("--slices") + 1]
    answer = json.loads(path.read_text())
    for each in answer["items"]:
        for device in each["spec"]["devices"] if each["spec"]["driver"] == "gpu.nvidia.com" else []:
            device["allowMultipleAllocations"] = True
            device["capacity"]["memory"]["requestPolicy"] = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    path.write_text(json.dumps(answer))
    job = tmp_path / "shares.json"
    def planned(workers):
        job.write_text(json.dumps({"workers": workers, "image": "i", "command": ["c"], "devices": {"gpus": {"count": 1, "capacity": {"memory": "7.5Gi"}}}}))
        return drarun("plan", "-o", "json", job, *options)
    results = [each["results"][0] for each in json.loads(planned(4).ok().out)["prediction"]["workers"]]
    assert [each["device"] for each in results] == [results[0]["device"]] * 2 + [results[2]["device"]] * 2 and results[0]["device"] != results[2]["device"]
    assert {each["consumedCapacity"]["memory"] for each in results} == {"8Gi"}
    assert planned(5).rc == 75


@pytest.fixture
def cpus(machine):
    """A machine on which dra-driver-cpu publishes a group of 48 CPUs for each of two NUMA nodes, and the GPUs' drivers their nodes."""
    options = machine("a4-highgpu-8g")
    path = options[options.index("--slices") + 1]
    items = json.loads(path.read_text())["items"]
    for each in items:
        if each["spec"]["driver"] == "gpu.nvidia.com":
            for i, device in enumerate(each["spec"]["devices"]):
                device["attributes"]["resource.kubernetes.io/numaNode"] = {"int": i // 4}
    groups = [{"name": f"cpudevnuma00{i}", "allowMultipleAllocations": True, "capacity": {"dra.cpu/cpu": {"value": "48"}},
               "attributes": {"resource.kubernetes.io/numaNode": {"int": i}, "dra.net/numaNode": {"int": i}, "dra.cpu/numCPUs": {"int": 48}}} for i in (0, 1)]
    items.append({**items[0], "metadata": {"name": "cpus"}, "spec": {"driver": "dra.cpu", "nodeName": "node-0", "devices": groups,
                                                                    "pool": {"name": "node-0", "generation": 1, "resourceSliceCount": 1}}})
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return options


def test_cpus_of_a_claim(drarun, cpus, tmp_path):
    job = tmp_path / "job.json"
    def planned(workers, gpus, **devices):
        job.write_text(json.dumps({"workers": workers, "image": "i", "command": ["c"], "devices": {"gpus": {"count": gpus}, **devices}}))
        result = drarun("plan", "-o", "json", job, *cpus)
        given = [sorted(each["device"] for each in worker["results"] or []) for worker in json.loads(result.out)["prediction"]["workers"]]
        return result.rc, [[name for name in each if name.startswith("cpu")] for each in given], given
    assert planned(4, 2, cpus={"count": 24})[:2] == (0, [["cpudevnuma000"]] * 2 + [["cpudevnuma001"]] * 2)
    assert planned(5, 1, cpus={"count": 24})[0] == 75
    assert planned(1, 8, cpus={"count": 96, "groups": 2})[:2] == (0, [["cpudevnuma000", "cpudevnuma001"]])
    assert planned(1, 8, cpus={"count": 32, "groups": 2})[:2] == (0, [["cpudevnuma000", "cpudevnuma001"]])
    assert planned(1, 8, cpus={"count": 96})[0] == 75  # no group has so many
    rc, groups, given = planned(2, 3, cpus={"count": 8}, match=["resource.kubernetes.io/numaNode"])
    assert rc == 0 and groups == [["cpudevnuma000"], ["cpudevnuma001"]] and "gpu-4" in given[1] and "gpu-3" not in given[1], given
    job.write_text(job.read_text().replace('"count": 3', '"count": 1'))
    assert "2 workers, each with 1 GPU of class gpu.nvidia.com and 8 CPUs of class dra.cpu" in drarun("plan", job, *cpus).ok().out


def held(name, node, slices):
    """A claim of a NIC of the node, as the scheduler leaves it; node None: not yet."""
    status = {}
    if node:
        nics = next(each["spec"] for each in slices if each["spec"].get("nodeName") == node and each["spec"]["driver"] == "dra.net")
        device = next(each["name"] for each in nics["devices"] if each["attributes"].get("dra.net/rdma", {}).get("bool"))
        only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        status = {"allocation": {"nodeSelector": {"nodeSelectorTerms": [only]}, "devices": {"results": [
            {"request": "any", "driver": "dra.net", "pool": nics["pool"]["name"], "device": device}]}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "team"}, "status": status,
            "spec": {"devices": {"requests": [{"name": "any", "exactly": {"deviceClassName": "dranet"}}]}}}


def test_claims_that_workers_share(drarun, machine, tmp_path):
    """Their devices count with the workers' own, and keep all workers on their node; what is not known of them is said."""
    options = machine("a4-highgpu-8g", 2)
    path = options[options.index("--slices") + 1]
    items = json.loads(path.read_text())["items"]
    path.write_text(json.dumps({"kind": "List", "items": [*items, held("here", "node-1", items), held("later", None, items)]}))
    job = tmp_path / "job.json"
    def planned(gpus, *claims):
        job.write_text(json.dumps({"workers": 2, "image": "i", "command": ["c"], "devices": {
            "gpus": {"count": gpus}, "shared": [{"claim": each} for each in claims]}}))
        result = drarun("plan", "-o", "json", job, *options)
        return result.rc, json.loads(result.out)
    rc, answer = planned(4, "here", "later", "gone")
    assert rc == 0 and [each["node"] for each in answer["prediction"]["workers"]] == ["node-1"] * 2, answer
    assert [len(rank["nics"]) for each in answer["plan"]["workers"] for rank in each["ranks"]] == [1] * 8 and answer["plan"]["env"]["NCCL_NET"] == "gIB"
    told = "\n".join(answer["prediction"]["notPredicted"])
    assert "the shared claim later, which is not allocated yet" in told and "the shared claim gone, which was not given" in told and "here" not in told
    rc, answer = planned(5, "here")
    assert rc == 75 and "the shared claim here holds devices of node-1" in answer["prediction"]["shortage"], answer["prediction"]["shortage"]


def test_a_shared_claim_of_nodes_with_a_label(drarun, machine, tmp_path):
    """As a fabric's devices have it, which are attached to any node of a zone."""
    options = machine("a4-highgpu-8g", 2)
    path = options[options.index("--slices") + 1]
    items = json.loads(path.read_text())["items"]
    claim = held("zonal", "node-0", items)
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
    path.write_text(json.dumps({"kind": "List", "items": [each for each in items if each["kind"] == "ResourceSlice"] + [claim]}))
    job, nodes = tmp_path / "job.json", tmp_path / "zones.json"
    job.write_text(json.dumps({"workers": 1, "image": "i", "command": ["c"], "devices": {"gpus": {"count": 8}, "shared": [{"claim": "zonal"}]}}))

    def planned(*zones, workers=1):
        nodes.write_text(json.dumps({"kind": "List", "items": [
            {"kind": "Node", "metadata": {"name": f"node-{i}", "labels": {"zone": zone}}} for i, zone in enumerate(zones)]}))
        result = drarun("plan", "-o", "json", job, "--workers", workers, "--slices", path, *(("--nodes", nodes) if zones else ()))
        answer = json.loads(result.out)["prediction"]
        return result.rc, [each["node"] for each in answer["workers"]], answer["shortage"], "\n".join(answer["notPredicted"])
    assert planned("a", "b")[:2] == (0, ["node-1"])
    rc, _, shortage, _ = planned("a", "b", workers=2)
    assert rc == 75 and "the shared claim zonal holds devices of other nodes on 1 node" in shortage, shortage
    rc, where, _, told = planned()
    assert (rc, where) == (0, ["node-0"]) and "whether node-0 reaches the devices of the shared claim zonal: labels decide: give the Nodes" in told, told


def test_nodes_that_were_not_given(drarun, machine, spec, tmp_path):
    options, nodes = machine("a4-highgpu-8g", 3), tmp_path / "some.json"
    node = {"kind": "Node", "metadata": {"name": "node-0"}, "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}}
    nodes.write_text(json.dumps({"kind": "List", "items": [node]}))
    path = options[options.index("--slices") + 1]
    items = [each for each in json.loads(path.read_text())["items"] if each["kind"] == "ResourceSlice"]
    path.write_text(json.dumps({"kind": "List", "items": items}))

    def told(workers):
        result = drarun("plan", spec(workers, 8, 8), "--slices", path, "--nodes", nodes, "-o", "json").ok()
        return [each for each in json.loads(result.out)["prediction"]["notPredicted"] if "not given" in each]
    assert not told(1)
    assert told(2) == ["whether node-1 takes the pods (taints, labels, CPU, memory): its Node was not given"]
    assert told(3) == ["whether node-1 and 1 other node take the pods (taints, labels, CPU, memory): their Nodes were not given"]


def roles_job(path, **roles):
    """Roles of one worker each, or as many as they say."""
    path.write_text(json.dumps({"metadata": {"name": "j"}, "spec": {
        "launch": "env", "image": "i", "world": "own", "roles": [{"name": name, "workers": 1, "command": ["c"], **role} for name, role in roles.items()]}}))
    return path


def nodes_of(result):
    return [[each["node"] for each in role["prediction"]["workers"]] for role in json.loads(result.out)["roles"]]


def test_roles_keep_apart_from_each_other(drarun, machine, tmp_path):
    """With the label that the pods of both have; a role that does not spread goes anywhere."""
    pair = {"gpus": {"count": 1}, "nics": {"count": 1, "class": "dranet", "selector": RDMA}}
    job = roles_job(tmp_path / "job.json", a={"devices": pair}, b={"devices": pair}, c={"devices": {"gpus": {"count": 1}}})
    result = drarun("plan", job, *machine("a4-highgpu-8g", 2), "-o", "json").ok()
    assert nodes_of(result) == [["node-0"], ["node-1"], ["node-0"]], result
    result = drarun("plan", job, *machine("a4-highgpu-8g", 1))
    assert result.rc == 75 and "\nNo room: worker 0 of 1 has no node: a worker of role a (placement.spread) on 1 node" in result.out, result


def test_roles_share_what_a_node_has(drarun, tmp_path):
    """CPU, memory and pods of the others are used; a role that finds no room after the others is placed before them."""
    nodes = tmp_path / "nodes.json"

    def planned(cpus, *options, **roles):
        nodes.write_text(json.dumps({"kind": "List", "items": [
            {"kind": "Node", "metadata": {"name": name, "labels": {"node": name}}, "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}}}
            for name, cpu in cpus.items()]}))
        asks = {name: {"resources": {"requests": {"cpu": 6}}, **role} for name, role in roles.items()}
        return drarun("plan", roles_job(tmp_path / "job.json", **asks), "--nodes", nodes, *options)
    result = planned({"n1": "8"}, a={}, b={})
    assert result.rc == 75 and "\nNo room: worker 0 of 1 has no node: too little cpu beside the job's other pods on 1 node" in result.out, result
    assert nodes_of(planned({"n1": "8", "n2": "8"}, "-o", "json", a={}, b={}).ok()) == [["n1"], ["n2"]]
    on_first = {"template": {"spec": {"nodeSelector": {"node": "n1"}, "containers": [{"name": "main", "image": "i", "command": ["c"]}]}}}
    assert nodes_of(planned({"n1": "8", "n2": "8"}, "-o", "json", a={}, b=on_first).ok()) == [["n2"], ["n1"]]
    result = planned({"n1": "8", "n2": "8"}, a={}, b={"workers": 2})
    assert result.rc == 75 and "\nNo room: worker 1 of 2" in result.out, result


def test_explain(drarun, machine, spec):
    result = drarun("plan", spec(2, 8, 8), "--explain", *machine("a4-highgpu-8g", 2)).ok()
    after = result.out.split("  NCCL_NET=gIB\n")[1]
    assert after.lstrip().startswith("because ")
    assert "rule " in after.split("NCCL_CROSS_NIC")[0]


def test_with_a_sites_profile(drarun, machine, spec, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("""profiles:
- name: ours
  detect: {instanceType: [a4-*]}
  variables: [{name: NCCL_IB_TC, value: "96", reason: our switches}]
""")
    words = spec(1, 1, 1), "--profiles", site, "--explain", *machine("a4-highgpu-8g")
    result = drarun("plan", *words).ok()
    assert "profile ours: node label" in result.out and "our switches" in result.out
    assert "  NCCL_IB_TC=96\n" in result.out and "gIB" not in result.out
    site.write_text("profiles:\n- {name: ours, speed: 3}\n")
    result = drarun("plan", *words)
    assert result.rc == 65 and f'{site}: profile ours: unknown key "speed"' in result.err
    site.write_text("--- {}\n--- {}\n")
    result = drarun("plan", *words)
    assert result.rc == 65 and "expected one document, got 2" in result.err


def hybrid(spec, workers, gpus, nics, more=""):
    path = spec(workers, gpus, nics, more=more)
    path.write_text(path.read_text().replace("class: gpu.nvidia.com", "resource: nvidia.com/gpu"))
    return path


@pytest.mark.parametrize("network,net", [({}, "gIB"), ({"network": "rdma"}, "gIB"), ({"network": "any"}, None)], ids=str)
def test_a_job_that_may_use_tcp_is_not_kept_from_it(drarun, machine, tmp_path, network, net):
    """Where the spec says so; that any is the default of a job whose NICs are not claimed says nothing."""
    job = tmp_path / "job.json"
    job.write_text(json.dumps(dict({"workers": 1, "image": "i", "command": ["c"], "devices": {
        "gpus": {"count": 1}, "nics": {"count": 1, "class": "dranet"}}}, **network)))
    assert json.loads(drarun("plan", "-o", "json", job, *machine("a4-highgpu-8g", 1)).ok().out)["plan"]["env"].get("NCCL_NET") == net


def test_gpus_of_a_device_plugin(drarun, machine, spec):
    """In no slice: what is known of the job is planned, and what is left to the pod is said."""
    words = hybrid(spec, 2, 8, 8), *machine("a4-highgpu-8g", 2)
    plan = json.loads(drarun("plan", "-o", "json", *words).ok().out)["plan"]
    assert plan["refuse"] is None and plan["profile"] == "gke-a4" and plan["env"]["NCCL_NET"] == "gIB"
    # MPI keeps to TCP: the job has GPUs
    assert plan["env"]["UCX_NET_DEVICES"] == "eth0"
    assert [(worker["pluginGpus"], worker["firstRank"]) for worker in plan["workers"]] == [(8, 0), (8, 8)]
    assert [len(worker["nics"]) for worker in plan["workers"]] == [8, 8]
    assert all(worker["ranks"] == [] and worker["score"] is None for worker in plan["workers"])
    codes = {warning["code"] for warning in plan["warnings"]}
    assert "GPUS_BY_DEVICE_PLUGIN" in codes and not codes & {"FEWER_NICS_THAN_GPUS", "NO_GPU"}
    text = drarun("plan", *words).ok().out
    assert "NICs, for 16 ranks on GPUs by the device plugin:" in text
    assert "WORKER  NIC        PCI           NUMA  RAIL" in text
    assert "1       gpu7rdma0" in text


def test_fewer_nics_than_plugin_gpus(drarun, machine, spec):
    result = drarun("plan", hybrid(spec, 1, 8, 4), *machine("a4-highgpu-8g")).ok()
    assert "FEWER_NICS_THAN_GPUS, worker 0: 4 NICs for 8 GPUs" in result.out
    assert "8 GPUs by the device plugin, 4 NICs: paired in the pod" in result.out


@pytest.mark.parametrize("workers,gpus,nics,more,advised", [
    (1, 8, 8, "", True),
    (1, 8, 8, "    align: required\n", True),
    (3, 8, 8, "", True),  # without room it matters most
    (1, 8, 8, "    align: none\n", False),
    (1, 4, 4, "", False),
    (1, 4, 8, "", False),  # four pairs are cheap
], ids=str)
def test_advice_for_whole_nodes(drarun, machine, spec, workers, gpus, nics, more, advised):
    words = spec(workers, gpus, nics, more=more), *machine("a4-highgpu-8g")
    assert ('Advice: the NICs of a worker are all that a node has: "nics: {count: all}"'
            in drarun("plan", *words).out) == advised
    assert ("advice" in json.loads(drarun("plan", "-o", "json", *words).out)) == advised


def test_no_advice_where_nics_are_left(drarun, machine, spec):
    """A machine with more NICs than the worker takes: the constraint chooses."""
    assert "Advice" not in drarun("plan", spec(1, 8, 8, "true"), *machine("dgx-h100")).out


def test_without_slices(drarun, spec):
    result = drarun("plan", spec(2, 8, 8)).ok()
    assert "2 workers, each with 8 GPUs of class gpu.nvidia.com and 8 NICs of class dranet" in result.out
    assert "--slices" in result.out


@pytest.mark.parametrize("words,rc,said", [
    ((), 64, "expected one file"),
    (("a.yaml", "b.yaml"), 64, "expected one file"),
    (("--slice", "x", "a.yaml"), 64, "--slices"),
    (("/no/such.yaml",), 65, "/no/such.yaml"),
], ids=["none", "two", "option", "absent"])
def test_usage(drarun, words, rc, said):
    result = drarun("plan", *words)
    assert result.rc == rc and said in result.err


def test_what_is_taken_or_tainted(drarun, machine, spec, tmp_path):
    """Devices that claims hold and that DeviceTaintRules taint are not predicted."""
    options = machine("a4-highgpu-8g")
    before = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), *options).ok().out)
    gpu, nic = before["prediction"]["workers"][0]["results"]
    claim = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "held"}, "spec": {},
             "status": {"allocation": {"devices": {"results": [gpu]}}}}
    claims = tmp_path / "claims.json"
    claims.write_text(json.dumps({"kind": "List", "items": [claim]}))
    after = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), *options, "--claims", claims).ok().out)
    assert gpu not in after["prediction"]["workers"][0]["results"]
    rule = {"kind": "DeviceTaintRule", "apiVersion": "resource.k8s.io/v1beta2", "metadata": {"name": "bad"}, "spec": {
        "deviceSelector": {key: nic[key] for key in ("driver", "pool", "device")},
        "taint": {"key": "example.com/bad", "effect": "NoSchedule"}}}
    slices = json.loads(open(options[options.index("--slices") + 1], encoding="utf-8").read())
    slices["items"] += [claim, rule]
    together = tmp_path / "together.json"
    together.write_text(json.dumps(slices))
    both = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), "--slices", together).ok().out)
    assert both["prediction"]["notPredicted"] == ["whether nodes take the pods (taints, labels, CPU, memory): give the Nodes",
                                                  "quotas and limit ranges of the namespace"]
    assert gpu not in both["prediction"]["workers"][0]["results"]
    assert nic not in both["prediction"]["workers"][0]["results"]
    assert both["prediction"]["requests"][1]["tainted"] == 1
    rule["spec"]["deviceSelector"] = {"selectors": [{"cel": {"expression": "true"}}]}
    together.write_text(json.dumps(slices))
    result = drarun("plan", spec(1, 1, 1), "--slices", together).ok()
    assert "Not predicted: DeviceTaintRule bad selects by more than driver, pool and device" in result.out


def test_a_pool_that_lists_a_device_twice(drarun, machine, spec):
    """The scheduler leaves it out and takes the other node; so do we."""
    options = machine("a4-highgpu-8g", 2)
    path = options[options.index("--slices") + 1]
    items = json.loads(path.read_text())["items"]
    first = next(each for each in items if each.get("spec", {}).get("driver") == "gpu.nvidia.com" and each["spec"].get("nodeName") == "node-0")
    again = json.loads(json.dumps(first))
    again["metadata"]["name"] += "-2"
    again["spec"]["devices"] = again["spec"]["devices"][:1]
    again["spec"]["devices"][0]["attributes"]["uuid"] = {"string": "GPU-another"}
    for each in (first, again):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    path.write_text(json.dumps({"kind": "List", "items": [*items, again]}))
    result = drarun("plan", spec(1, 8, 8), *options, "-o", "json").ok()
    assert [each["node"] for each in json.loads(result.out)["prediction"]["workers"]] == ["node-1"], result
    result = drarun("plan", spec(2, 8, 8), *options)
    assert result.rc == 75 and "has two devices of one name" in result.out, result


def test_files_of_the_wrong_kind(drarun, machine, spec):
    words = machine("a4-highgpu-8g")
    result = drarun("plan", spec(1, 1, 1), "--slices", words[3])
    assert result.rc == 65 and "expected objects of kind ResourceSlice, got Node" in result.err


def test_selector_that_fails(drarun, machine, spec):
    result = drarun("plan", spec(1, 1, 1, 'device.attributes["dra.net"].speed > 3'), *machine("a4-highgpu-8g"))
    assert result.rc == 65 and "the scheduler gives up" in result.err


@pytest.mark.plain("minutes for what is a matter of size")
def test_a_thousand_nodes(drarun, machine, spec):
    """The goal is 1 s and 300 MB for workers of 8 GPUs and 8 NICs (benchmarks/plan)."""
    result = drarun("plan", "-o", "json", spec(1000, 8, 8), *machine("a4-highgpu-8g", 1000), timeout=60).ok()
    assert len(json.loads(result.out)["plan"]["workers"]) == 1000


@pytest.mark.parametrize("name,where,nodes,shows", [
    ("two-by-two", "a4-highgpu-8g", 2, ["worker 1  node-1", "2 GPUs, 2 NICs: 2 PIX; 100 GB/s of 100", "NCCL_NET=gIB"]),
    ("half-nodes-aligned", "a4-highgpu-8g", 2, ["workers 0 to 3: 4 GPUs, 4 NICs: 4 PIX; 200 GB/s of 200"]),
    ("whole-nodes", "a4-highgpu-8g", 2, ["8 GPUs from a device plugin", "drarun env tells there", "NCCL_NET=gIB",
                                         "8 GPUs by the device plugin, 8 NICs: paired in the pod", "for 16 ranks"]),
    ("renamed-interface", "a3-ultragpu-8g", 2, ["1 NIC of class dranet", "worker 1  node-1",
                                                "1 GPUs by the device plugin, 1 NICs: paired in the pod"]),
    ("ray-all-nic", "a4-highgpu-8g", 2, ["all NICs of class dranet", "worker 1  node-1", "paired in the pod"]),
    ("compute-domain", "a4x-highgpu-4g", 4, ["NCCL_MNNVL_ENABLE=1", ": workers 0-3, ranks 0-15\n",
                                             "4 GPUs, 4 NICs: 4 P2C; 200 GB/s of 200"]),
], ids=lambda value: value if isinstance(value, str) else "")
def test_examples(drarun, machine, source, name, where, nodes, shows):
    """Each scenario on the machine that it is for."""
    result = drarun("plan", source / "examples" / "jobs" / f"{name}.yaml", *machine(where, nodes)).ok()
    for text in shows:
        assert text in result.out, result.out
    for code in ("MISALIGNED", "IMEX_CHANNEL_MISSING", "Refused"):
        assert code not in result.out


def test_class_of_the_cluster(drarun, machine, source, tmp_path):
    spec = source / "examples" / "jobs" / "queued-torchrun.yaml"
    words = ["plan", spec, "--workers", 2, *machine("a4-highgpu-8g", 2)]
    result = drarun(*words)  # what GKE's own class selects is published nowhere: taken for its driver's devices, and said
    assert result.rc == 75 and "too few devices for request nic" in result.out and \
        "Not predicted: which devices DeviceClass mrdma.google.com selects" in result.out, result
    classes = tmp_path / "classes.yaml"
    classes.write_text("""apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mrdma.google.com}
spec:
  selectors: [{cel: {expression: 'device.driver == "dra.net" && device.attributes["dra.net"].rdma'}}]
""")
    result = drarun(*words, "--classes", classes).ok()
    assert "request nic" in result.out or "nic-0" in result.out
    assert "worker 1  node-1" in result.out


def test_captured_cluster(drarun, source, tmp_path):
    """One file with slices and nodes is enough. Without the profile's name the nodes name it, unless they differ, which is told."""
    slices = "--slices", source / "examples/clusters/a4-two-nodes.json"
    example = source / "examples/jobs/half-nodes-aligned.yaml"
    result = drarun("plan", example, *slices).ok()
    assert "workers 0 to 3: 4 GPUs, 4 NICs: 4 PIX; 200 GB/s of 200" in result.out
    assert "pods tolerate the taint nvidia.com/gpu (nodes with GPUs)" in result.out
    assert "profile gke-a4: asked for" in result.out and "PROFILE_NOT_NAMED" not in result.out
    job = yaml.safe_load(example.read_text())
    del job["spec"]["nccl"]
    unnamed, mounted = tmp_path / "unnamed.yaml", tmp_path / "mounted.yaml"
    unnamed.write_text(yaml.safe_dump(job))
    result = drarun("plan", unnamed, *slices).ok()
    assert "profile gke-a4: node label" in result.out
    assert "PROFILE_NOT_NAMED" not in result.out and "which machine" not in result.out
    lists = json.loads(slices[1].read_text())
    other = next(each for each in lists["items"] if each["kind"] == "Node" and each["metadata"]["name"] == "a4-1")
    other["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "a3-ultragpu-8g"
    mixed = tmp_path / "mixed.json"
    mixed.write_text(json.dumps(lists))
    job["spec"]["workers"] = 1
    unnamed.write_text(yaml.safe_dump(job))
    result = drarun("plan", unnamed, "--slices", mixed).ok()
    assert "PROFILE_NOT_NAMED: not mounted into the pods: /usr/local/nvidia, /usr/local/gib: set nccl: {profile: gke-a4}" in result.out
    assert "which machine the workers get is not known before they have nodes (node a4-0 is of gke-a4, and node a4-1 of gke-a3u)" in result.out
    paths = "/usr/local/nvidia", "/usr/local/gib"
    container = {"name": "a", "image": job["spec"].pop("image"), "command": job["spec"].pop("command"),
                 "volumeMounts": [{"name": f"v{i}", "mountPath": path} for i, path in enumerate(paths)]}
    volumes = [{"name": f"v{i}", "hostPath": {"path": f"/home{path}"}} for i, path in enumerate(paths)]
    job["spec"]["template"] = {"spec": {"containers": [container], "volumes": volumes}}
    mounted.write_text(yaml.safe_dump(job))
    assert "PROFILE_NOT_NAMED" not in drarun("plan", mounted, "--slices", mixed).ok().out


@pytest.mark.parametrize("where,profile", [("a4-highgpu-8g", "gke-a4"), ("a3-ultragpu-8g", "gke-a3u"), ("azure-nd96isr-h100-v5", "azure-ndv5"),
                                           ("dgx-h100", None)])
def test_machine_that_nobody_names(drarun, machine, spec, where, profile):
    """What is mounted is what a job gets that names the profile; where nothing names the machine, the name is asked for."""
    result = drarun("plan", spec(1, 1, 1), *machine(where)).ok()
    assert ("set nccl: {profile: NAME}" in result.out) == (profile is None), result
    assert "PROFILE_NOT_NAMED" not in result.out and (not profile or f"profile {profile}: node label" in result.out)


def test_a_picture_of_a_worker(drarun, source, tmp_path):
    words = "plan", source / "examples/jobs/half-nodes-aligned.yaml"
    slices = "--slices", source / "examples/clusters/a4-two-nodes.json"
    first, last = (drarun(*words, *slices, "-o", "svg", *more).ok().out for more in ([], ["--worker", 3]))
    for picture, marked, plain in ((first, "GPU0", "GPU7"), (last, "GPU7", "GPU0")):
        found = re.findall(r'class="gpu (claimed|other)"/>\n<text [^>]*>(GPU\d)<', picture)
        boxes = {name: kind for kind, name in found}
        assert len(boxes) == 8 and boxes[marked] == "claimed" and boxes[plain] == "other", boxes
        assert (picture.count('class="nic claimed"'), picture.count('>ROOT</text>'), picture.count('class="link unsure"')) == (4, 4, 4 + 1)  # the legend's
        assert picture.count('class="small dim">RoCE, speed ?<') == 8 and "prefers-color-scheme:dark" in picture
    shown = drarun("topo", *slices, "--node", "a4-0", "--format", "svg").ok().out
    assert shown.count('>ROOT</text>') == 8 and shown.count('class="link unsure"') == 8 + 1  # as topo draws them
    assert ElementTree.fromstring(shown).get("aria-label") == "8 GPUs, 8 NICs; a4-0"
    told = drarun(*words, *slices).ok().out
    assert told.count("  PATH is known by ") == 1 and "  PATH is known by the PCIe root that GPU and NIC share" in told
    plugin = drarun("plan", source / "examples/jobs/whole-nodes.yaml", *slices, "-o", "svg").ok().out
    assert 'class="nic"' in plugin and 'class="gpu"' in plugin and plugin.count('class="link ') == 1 + 8
    job = yaml.safe_load((source / "examples/jobs/whole-nodes.yaml").read_text())
    del job["spec"]["devices"]["nics"]["selector"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    (tmp_path / "no-rdma.json").write_text(json.dumps(without_rdma(json.loads(slices[1].read_text()))))
    refused = drarun("plan", tmp_path / "job.yaml", "--slices", tmp_path / "no-rdma.json", "-o", "svg")
    assert refused.rc == 65 and refused.out.count('class="link unsure"') == 8 + 1 and refused.out.count(">ROOT</text>") == 8, refused
    assert "ROOT: below one host bridge; switches not known" in refused.out  # which GPUs the plugin gives is not known here, either
    for more, rc, says in [((*slices, "--worker", 4), 64, "expected one of the job's 4"), ((), 64, "ResourceSlices"),
                           ((*slices, "--workers", 400), 75, "no room: worker 4 of 400")]:
        result = drarun(*words, *more, "-o", "svg")
        assert (result.rc, result.out) == (rc, "") and says in result.err, result
    assert "--worker is for --output svg" in drarun(*words, "--worker", 1).err


def without_rdma(objects, node=None):
    """The same List with NICs that do no RDMA, on one node or on all."""
    for each in objects["items"]:
        if each["kind"] == "ResourceSlice" and node in (None, each["spec"].get("nodeName")):
            for device in each["spec"]["devices"]:
                attributes = device.get("basic", device).get("attributes", {})
                if "dra.net/rdma" in attributes:
                    attributes["dra.net/rdma"] = {"bool": False}
    return objects


def test_a_refused_plan_shows_what_was_read(drarun, source, machine, tmp_path):
    """The NVLink domain of the workers stands in the answer although there are no ranks to tell."""
    job = yaml.safe_load((source / "examples/jobs/compute-domain.yaml").read_text())
    job["spec"]["workers"] = 2
    job["spec"]["devices"]["nics"] = {"count": 4, "class": "dranet"}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    words = machine("a4x-highgpu-4g", 2)
    command = "plan", tmp_path / "job.yaml", *words
    told, = json.loads(drarun(*command, "-o", "json").ok().out)["cliques"]
    assert (told["workers"], told["ranks"]) == ("0-1", "0-7"), told
    words[1].write_text(json.dumps(without_rdma(json.loads(words[1].read_text()), "node-1")))
    refused = drarun(*command, "-o", "json")
    answer = json.loads(refused.out)
    assert refused.rc == 65 and (answer["plan"]["refuse"]["code"], answer["plan"]["refuse"]["worker"]) == ("NO_RDMA_NIC", 1), refused
    assert answer["cliques"] == [{"clique": told["clique"], "workers": "0-1"}]
    for worker in (0, 1):
        picture = drarun(*command, "--worker", worker, "-o", "svg")
        assert picture.rc == 65 and "2 workers on 2 nodes; 1 NVLink domain; " in picture.out, picture.out[:2000]


def glance(picture):
    """{node: its workers, the drawn one in brackets} of the job's line."""
    found = {}
    for box in picture.split('class="node-box"')[1:]:
        name, *rest = re.findall(r'<text [^>]*class="([^"]*)">([^<]*)<', box)
        chips = [text for text in rest if "mid" in text[0].split()]
        found[name[1]] = [f"[{text}]" if "chip-text-here" in kind else text for kind, text in chips]
    return found


def test_the_job_above_the_picture(drarun, source, machine, spec):
    words = "plan", source / "examples/jobs/half-nodes-aligned.yaml", "--slices", source / "examples/clusters/a4-two-nodes.json", "-o", "svg"
    picture = drarun(*words, "--worker", 3).ok().out
    assert glance(picture) == {"a4-0": ["0", "1"], "a4-1": ["2", "[3]"]}
    title = "job all-gather-4x4: worker 3 on a4-1, ranks 12 to 15 of 16"
    texts = [each.text for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]
    assert texts[:2] == [title, "4 workers on 2 nodes; the node: 8 GPUs, 8 NICs; a4-1"]
    assert ElementTree.fromstring(picture).get("aria-label") == title
    many = drarun("plan", spec(60, 8, 8), *machine("a4-highgpu-8g", 60), "-o", "svg").ok().out
    assert len(glance(many)) == 48 and ">workers 48 to 59 are not shown<" in many
    page = ElementTree.fromstring(many)
    assert all(float(each.get("x")) + float(each.get("width")) <= float(page.get("width")) for each in page.iter(f"{SVG}rect") if each.get("class") == "node-box")


def fabric(opened, reached):
    """What the check of a job's NICs found, as its report has it."""
    parts = {"opened": {"good": "".join(opened).count("."), "failed": "".join(opened).count("x"), "unknown": 0, "matrix": opened, "broken": []},
             "reach": {"ms": 12, "pairs": 4, "reached": "".join(reached).count("."), "failed": "".join(reached).count("x"),
                       "unknown": "".join(reached).count("?"), "matrix": reached, "broken": []}}
    return json.dumps({"status": 76, "fabric": parts})


def test_nics_over_the_picture(drarun, source, tmp_path):
    """The matrix stands below the picture, which is as it was but for the marks on the NICs of the drawn worker."""
    slices = source / "examples/clusters/a4-two-nodes.json"
    command = ["plan", source / "examples/jobs/two-by-two.yaml", "--slices", slices, "-o", "svg"]
    (tmp_path / "report.json").write_text(fabric([".x", ".."], ["..", "x?"]))
    plain = [line for line in drarun(*command).ok().out.splitlines() if line.startswith(("<rect", "<path", "<text"))]
    for worker, marks in ((0, ["\u2713", "\u2717"]), (1, ["\u219b", "?"])):
        drawn = ElementTree.fromstring(drarun(*command, "--worker", worker, "--fabric", tmp_path / "report.json").ok().out)
        texts = [(each.get("class"), each.text, int(each.get("y"))) for each in drawn.iter(f"{SVG}text")]
        title = next(y for kind, text, y in texts if text == "NICs: 3 opened, 1 failed; 2 of 4 reach the next worker, 1 failed, 1 not known (12 ms)")
        signs = [(text, y) for kind, text, y in texts if kind == "sign"]
        # of the boxes; in the legend; the rows of both workers
        assert [text for text, y in signs if y < title] == marks
        assert [text for text, y in signs if y > title] == ["\u2713", "\u2717", "\u219b", "?", "\u2713", "\u2717", "\u219b", "?"]
        assert [kind for kind, text, _ in texts if text == f"worker {worker}"] == ["name"]
        assert max(y for _, _, y in texts) < int(drawn.get("height"))
    drawn = drarun(*command, "--fabric", tmp_path / "report.json").ok().out
    assert all(line in drawn for line in plain if 'class="page"' not in line)


def test_nics_of_another_plan(drarun, source, tmp_path):
    """Rails that are not the plan's NICs are not marked on them; other workers are refused."""
    command = ["plan", source / "examples/jobs/two-by-two.yaml", "--slices", source / "examples/clusters/a4-two-nodes.json", "-o", "svg"]
    (tmp_path / "three.json").write_text(fabric(["...", "..."], ["...", "..."]))
    drawn = drarun(*command, "--fabric", tmp_path / "three.json").ok().out
    assert "The worker has not as many rails as its plan has NICs: none is marked above." in drawn
    for text, rc, said in ((fabric(["..", "..", ".."], ["..", "..", ".."]), 64, "the NICs are those of 3 workers, and the plan has 2"),
                           ('{"status": 0}', 65, "fabric.json: nothing is in it about NICs"), ("{", 65, "fabric.json:1:1: "),
                           (fabric([".", ".y"], ["..", ".."]), 65, "fabric.json: opened.matrix[1]: expected a word of 1 letters")):
        (tmp_path / "fabric.json").write_text(text)
        result = drarun(*command, "--fabric", tmp_path / "fabric.json")
        assert result.rc == rc and said in result.err and result.out == "", result
    result = drarun("plan", source / "examples/jobs/two-by-two.yaml", "--fabric", tmp_path / "three.json")
    assert result.rc == 64 and "--fabric is for --output svg" in result.err


def test_nics_of_many_workers(drarun, machine, spec, tmp_path):
    """Of more rows than can be drawn: those in which something is wrong, and the drawn worker's."""
    rows = ["." * 8] * 40
    rows[33] = ".......x"
    (tmp_path / "report.json").write_text(fabric(["." * 8] * 40, rows))
    drawn = drarun("plan", spec(40, 8, 8), *machine("a4-highgpu-8g", 40), "-o", "svg", "--fabric", tmp_path / "report.json").ok().out
    shown = [each.text for each in ElementTree.fromstring(drawn).iter(f"{SVG}text") if (each.text or "").startswith("worker ")]
    assert shown == ["worker 0", "worker 33"] and "2 of 40 workers are shown; something is wrong with 1" in drawn


@pytest.mark.parametrize("file", ["--slices", "--nodes", "--classes", "--claims"])
@pytest.mark.parametrize("cluster", [["--live"], ["--kubeconfig", "none"]], ids=["live", "kubeconfig"])
def test_files_beside_a_cluster_are_refused(drarun, spec, file, cluster):
    """They would not be read."""
    result = drarun("plan", spec(1, 1, 1), *cluster, file, "none.json")
    assert result.rc == 64 and f"plan: {file} and --live (--context, --kubeconfig): give one of them" in result.err, result


def test_nodes_that_take_no_pods(drarun, source, tmp_path):
    """Devices are not all that a node must have; what the pods bring along is what the launcher gives them."""
    cluster = json.loads((source / "examples/clusters/a4-two-nodes.json").read_text())
    nodes = [each for each in cluster["items"] if each["kind"] == "Node"]
    slices = tmp_path / "cluster.json"

    def planned(pod, example="two-by-two", **more):
        job = yaml.safe_load((source / f"examples/jobs/{example}.yaml").read_text())
        container = {"name": "a", "image": job["spec"].pop("image"), "command": job["spec"].pop("command"), **pod.pop("container", {})}
        job["spec"]["template"] = {"spec": {"containers": [container], **pod}}
        job["spec"].update(more)
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump(job))
        slices.write_text(json.dumps(cluster))
        return drarun("plan", path, "--slices", slices)

    for node in nodes:
        node["spec"] = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
        node["status"] = {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}}
    planned({}).ok()  # the taint of GPUs
    for node in nodes:
        node["spec"]["taints"].append({"key": "team", "effect": "NoSchedule"})
    result = planned({})
    assert result.rc == 75 and "worker 0 of 2 has no node: taint team not tolerated on 2 nodes" in result.out, result
    planned({"tolerations": [{"key": "team", "operator": "Exists"}]}).ok()
    nodes[0]["spec"] = {"unschedulable": True}
    nodes[1]["spec"] = {}
    result = planned({"container": {"resources": {"limits": {"cpu": "5"}}}})
    assert result.rc == 75 and "1 node fits; elsewhere cordoned on 1 node\n" in result.out, result
    result = planned({"container": {"resources": {"limits": {"cpu": "5"}}}}, placement={"spread": "none"})
    assert result.rc == 75 and "worker 1 of 2 has no node: cordoned on 1 node, too little cpu on 1 node" in result.out, result
    result = planned({"nodeSelector": {"pool": "a"}})
    assert result.rc == 75 and "cordoned on 1 node, label pool of nodeSelector missing on 1 node" in result.out, result


def test_jobs_that_claim_nothing(drarun, source, tmp_path):
    """GPUs of a device plugin, and none at all: the nodes alone decide, and without them that is said."""
    cluster = json.loads((source / "examples/clusters/a4-two-nodes.json").read_text())
    nodes, job = tmp_path / "nodes.json", tmp_path / "job.yaml"
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    amounts = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
    items = [{**each, "spec": {"taints": taints}, "status": {"allocatable": amounts}} for each in cluster["items"] if each["kind"] == "Node"]
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def planned(workers, *options, **more):
        job.write_text(yaml.safe_dump({"metadata": {"name": "j"}, "spec": {"workers": workers, "image": "i", "command": ["c"], **more}}))
        return drarun("plan", job, *options)

    gpus = {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}}
    for where in (("--nodes", nodes), ("--slices", source / "examples/clusters/a4-two-nodes.json", "--nodes", nodes)):
        result = planned(2, *where, devices=gpus).ok()
        assert re.search(r"Nodes, predicted.*\n  worker 0  \S+0\s.*\n  worker 1  \S+1\s", result.out), result
        assert "other pods use" in result.out and "Requests" not in result.out and "Allocation" not in result.out
        result = planned(3, *where, devices=gpus)
        assert result.rc == 75 and "No room: worker 2 of 3 has no node: too little nvidia.com/gpu on 2 nodes" in result.out, result
        result = planned(2, *where)
        assert result.rc == 75 and "worker 0 of 2 has no node: taint nvidia.com/gpu not tolerated on 2 nodes" in result.out, result
    result = planned(3, "--nodes", nodes, devices={"gpus": {"count": 1, "resource": "nvidia.com/gpu"}}, placement={"spread": "node"})
    assert result.rc == 75 and "3 workers, one per node by placement.spread; 2 nodes fit; placement.spread: none packs them" in result.out, result
    answer = json.loads(planned(2, "--nodes", nodes, "-o", "json", devices=gpus).ok().out)["prediction"]
    assert [each["results"] for each in answer["workers"]] == [[], []] and answer["shortage"] is None
    assert "With --nodes FILE" in planned(2, devices=gpus).ok().out
    result = planned(2, "--nodes", nodes, template={"spec": {"nodeName": "elsewhere"}}).ok()
    assert "worker 1  elsewhere" in result.out and "whether elsewhere takes the pods (taints, labels, CPU, memory): its Node was not given" in result.out, result
    nodes.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [{**each, "status": {}} for each in items]}))
    assert "Nodes that are given without status.allocatable" in planned(2, "--nodes", nodes, devices=gpus).ok().out


def test_extended_resources_of_a_class(drarun, source, tmp_path):
    """GPUs that no device plugin has, and that a DeviceClass serves: its devices decide, with those of earlier roles taken."""
    cluster = json.loads((source / "examples/clusters/a4-two-nodes.json").read_text())
    nodes = [each for each in cluster["items"] if each["kind"] == "Node"]
    where, job = tmp_path / "cluster.json", tmp_path / "job.yaml"
    cluster["items"].append({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {
        "extendedResourceName": "nvidia.com/gpu", "selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}})
    for each in nodes:
        each["status"] = {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}

    def planned(*options, **spec):
        where.write_text(json.dumps(cluster))
        job.write_text(yaml.safe_dump({"metadata": {"name": "j"}, "spec": {"image": "i", "command": ["c"], **spec}}))
        return drarun("plan", job, "--slices", where, *options)

    gpus = {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}}
    nics = {"nics": {"count": 2, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'}}
    for devices in (gpus, {**gpus, **nics}):
        workers = json.loads(planned("-o", "json", workers=2, devices=devices).ok().out)["prediction"]["workers"]
        assert [len(each["results"]) for each in workers] == [8 + 2 * (len(devices) - 1)] * 2
        assert "each with 8 GPUs (nvidia.com/gpu, served by DeviceClass gpu.nvidia.com)" in planned(workers=2, devices=devices).out
        result = planned("--kubernetes", "1.35", workers=2, devices=devices)
        assert result.rc == 75 and "too little nvidia.com/gpu on 2 nodes" in result.out, result
    result = planned(workers=3, devices=gpus)
    assert result.rc == 75 and "worker 2 of 3 has no node: those for nvidia.com/gpu are taken" in result.out, result
    assert "\n  nvidia.com/gpu: 16 of " in result.out, result
    roles = [{"name": name, "devices": gpus} for name in "abc"]
    planned(roles=roles[:2]).ok()
    result = planned(roles=roles)
    assert result.rc == 75 and "those for nvidia.com/gpu are taken by claims or earlier workers" in result.out, result
    result = planned(roles=[{"name": "a", "workers": 3, "devices": gpus}, {"name": "b", "workers": 2, "devices": gpus}])
    assert result.rc == 75 and result.out.count("has no node") == 1, result  # a role without room takes nothing
    nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    result = planned(workers=2, devices=gpus).ok()
    assert "Not predicted: devices of DeviceClass gpu.nvidia.com for nvidia.com/gpu: some nodes have a device plugin" in result.out, result
    result = planned(workers=3, devices=gpus)
    assert result.rc == 75 and "worker 2 of 3 has no node: too little nvidia.com/gpu" in result.out, result
    cluster["items"].append({**nodes[0], "metadata": {"name": "cpus-alone"}, "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}})
    result = planned(workers=3, devices=gpus)
    assert result.rc == 75 and "worker 2 of 3 has no node: too little nvidia.com/gpu" in result.out, result
    where.write_text(json.dumps({**cluster, "items": [each for each in cluster["items"] if each["kind"] != "ResourceSlice"]}))
    result = drarun("plan", job, "--workers", 2, "--nodes", where)  # as where all GPUs are a plugin's
    assert result.rc == 75 and "worker 1 of 2 has no node: too little nvidia.com/gpu" in result.out, result


def test_gkes_own_driver(drarun, machine, source):
    """Its slices have DraNet's attributes under the driver's own name."""
    options = machine("a4-highgpu-8g", 2)
    path = options[options.index("--slices") + 1]
    path.write_text(path.read_text().replace('"driver": "dra.net"', '"driver": "mrdma.google.com"'))
    result = drarun("plan", source / "examples/jobs/queued-torchrun.yaml", "--workers", 2, *options).ok()
    assert "worker 1  node-1" in result.out and "8 GPUs, 8 NICs: 8 PIX" in result.out, result
    assert "Not predicted: which devices DeviceClass mrdma.google.com selects" in result.out


def test_quotas_and_limit_ranges(drarun, source, tmp_path):
    """Of the job's namespace, in the files of slices or of nodes. Where none are given, that is said."""
    slices, rules = source / "examples/clusters/a4-two-nodes.json", tmp_path / "cluster.json"
    example = source / "examples/jobs/two-by-two.yaml"
    assert "Not predicted: quotas and limit ranges of the namespace" in drarun("plan", example, "--slices", slices).ok().out
    quota = {"kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "train"}}
    of_class = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
    nodes = [each for each in json.loads(slices.read_text())["items"] if each["kind"] == "Node"]
    for used, rc, says in [("0", 0, "score of the job"), ("2", 75, f"No room: ResourceQuota team: {of_class}: the job asks for 4, 2 of 4 are used")]:
        items = [{**quota, "spec": {"hard": {of_class: "4"}}, "status": {"used": {of_class: used}}}]
        rules.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *items]}))
        result = drarun("plan", example, "--slices", slices, "--nodes", rules)
        assert result.rc == rc and says in result.out and "quotas and limit" not in result.out, result
    quota_alone = tmp_path / "quota.json"
    quota_alone.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert drarun("plan", example, "--slices", slices, "--nodes", quota_alone).rc == 75
    limit = {"kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [{"type": "Pod", "max": {"memory": "1Gi"}}]}}
    rules.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, limit]}))
    answer = json.loads(drarun("plan", example, "--slices", slices, "--nodes", rules, "-o", "json").out)
    assert answer["prediction"]["shortage"] == "LimitRange small: the launcher's pod says nothing of memory, at most 1Gi is allowed" or \
        "small: a worker's pod says nothing of memory" in answer["prediction"]["shortage"], answer["prediction"]["shortage"]


@pytest.mark.parametrize("devices", [{}, {"devices": {"gpus": {"count": 8}}}])
@pytest.mark.parametrize("nodes", [[], [{"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}]])
def test_quota_without_slices(drarun, tmp_path, devices, nodes):
    """It refuses the job whatever devices there are."""
    job, cluster = tmp_path / "job.json", tmp_path / "cluster.json"
    job.write_text(json.dumps({"metadata": {"name": "j"}, "spec": {"workers": 2, "image": "i", "command": ["c"], **devices}}))
    for most, rc in ("9", 0), ("2", 75):
        quota = {"kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": most}}, "status": {"used": {"pods": "0"}}}
        cluster.write_text(json.dumps({"kind": "List", "items": [*nodes, quota]}))
        result = drarun("plan", job, "--nodes", cluster)
        assert result.rc == rc and ("No room: ResourceQuota team: pods: the job asks for 3, 0 of 2 are used" in result.out) == bool(rc), result
        found = json.loads(drarun("plan", job, "--nodes", cluster, "-o", "json").out).get("prediction", {})
        assert ("ResourceQuota team" in (found.get("shortage") or "")) == bool(rc), found


def test_quota_of_the_page(drarun, source, tmp_path):
    """docs/tasks.md limits a namespace's devices by their classes."""
    block, = re.findall(r"\n\n((?:    .*\n)*    kind: ResourceQuota\n(?:    .*\n)*)", (source / "docs/tasks.md").read_text())
    quota = yaml.safe_load("".join(line[4:] for line in block.splitlines(True)))
    slices = source / "examples/clusters/a4-two-nodes.json"
    nodes = [each for each in json.loads(slices.read_text())["items"] if each["kind"] == "Node"]
    job, cluster = tmp_path / "job.yaml", tmp_path / "cluster.json"
    job.write_text(json.dumps({"metadata": {"name": "j", "namespace": quota["metadata"]["namespace"]}, "spec": {
        "workers": 2, "devices": {"gpus": {"count": 8}, "nics": {"count": 8, "class": "dranet"}}, "image": "i", "command": ["c"]}}))
    for of, used, rc in (("gpu.nvidia.com", "0", 0), ("gpu.nvidia.com", "8", 75), ("dranet", "1", 75)):
        name = f"{of}.deviceclass.resource.k8s.io/devices"
        assert quota["spec"]["hard"][name] == "16"
        cluster.write_text(json.dumps({"kind": "List", "items": [*nodes, {**quota, "status": {"hard": quota["spec"]["hard"], "used": {name: used}}}]}))
        result = drarun("plan", job, "--slices", slices, "--nodes", cluster)
        assert result.rc == rc and (f"{name}: the job asks for 16, {used} of 16 are used" in result.out) == bool(rc), result


def test_defaults_of_limit_ranges_take_room(drarun, tmp_path):
    """A container that says no amounts gets those of the namespace, and its node is full sooner."""
    job, cluster = tmp_path / "job.json", tmp_path / "cluster.json"
    job.write_text(json.dumps({"metadata": {"name": "j", "namespace": "team"}, "spec": {"workers": 2, "image": "i", "command": ["c"]}}))
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}}
    for namespace, cpu, rc in ("team", "2", 0), ("team", "3", 75), ("other", "3", 0):
        limits = {"kind": "LimitRange", "metadata": {"name": "r", "namespace": namespace}, "spec": {"limits": [
            {"type": "Container", "defaultRequest": {"cpu": cpu}, "default": {"cpu": "8"}}]}}
        cluster.write_text(json.dumps({"kind": "List", "items": [node, limits]}))
        result = drarun("plan", job, "--nodes", cluster)
        assert result.rc == rc and ("too little cpu" in result.out) == bool(rc), result


PAGE = (SOURCE / "docs/clusters.md").read_text()
JOBS = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.S))


@pytest.mark.parametrize("where", JOBS)
def test_jobs_of_the_page_on_clusters(drarun, machine, tmp_path, where):
    """Each job of docs/clusters.md has room on two of the machines that it is for, with the profile that it names."""
    spec = yaml.safe_load(JOBS[where])
    path = tmp_path / "job.yaml"
    path.write_text(JOBS[where])
    result = json.loads(drarun("plan", path, "-o", "json", *machine(where, 2)).ok().out)
    assert result["prediction"]["shortage"] is None
    wanted = spec.get("nccl", {}).get("profile")
    assert result["plan"]["profile"] == wanted if wanted else result["plan"]["profile"].startswith("generic")
    assert not {each["code"] for each in result["plan"]["warnings"]} & {"PROFILE_NOT_NAMED", "MISALIGNED_SYS", "NIC_NOT_RDMA"}, result["plan"]["warnings"]


def test_device_plugins_of_the_page_on_clusters(drarun, tmp_path):
    parts = [yaml.safe_load(each) for each in re.findall(r"`((?:gpus|nics): \{count: [^`]+, resource: [^`]+)`", PAGE)]
    assert {device["resource"] for part in parts for device in part.values()} == {"nvidia.com/gpu", "vpc.amazonaws.com/efa"}
    for part in parts:
        (tmp_path / "job.json").write_text(json.dumps({"image": "i", "command": ["a"], "devices": part}))
        drarun("validate", tmp_path / "job.json").ok()


def test_sentences_fit_a_terminal(drarun, machine, spec, monkeypatch):
    """The text is the same but for where its lines end; what programs read stays as it is."""
    monkeypatch.setenv("TERM", "dumb")
    words = "plan", spec(2, 2, 2), *machine("a4-highgpu-8g", 2)

    def both(*words):
        shown = on_terminal(drarun.program, *words)[0].decode().replace("\r\n", "\n")
        return shown, drarun(*words).ok().out
    shown, plain = both(*words)
    long = [line for line in shown.splitlines() if len(line) > 80]
    assert shown.split() == plain.split() and shown != plain
    assert all(re.search(r"\S  +\S|^ *\w+=", line) for line in long), long
    shown, plain = both(*words, "-o", "json")
    assert shown == plain and max(map(len, plain.splitlines())) > 80
