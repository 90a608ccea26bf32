# SPDX-License-Identifier: Apache-2.0
"""Device metadata files (KEP-5304) in a captured tree, as `drarun env` reads them."""
import copy
import json
import os
import subprocess

import pytest

from support import regress
from support.build import patience
from support.sysfs_tree import make_tree

FOLDER = "run/kubernetes.io/dra-device-attributes"
DRIVER = "sriovnetwork.k8snetworkplumbingwg.io"


def document(devices, version="v1beta1", **more):
    return json.dumps({"kind": "DeviceMetadata", "apiVersion": f"metadata.resource.k8s.io/{version}",
                       "metadata": {"name": "nics-x7k2p", "namespace": "train", "generation": 1},
                       "requests": [{"name": "nic", "devices": devices}], **more})


def stream(devices):
    """As kubeletplugin writes it: all versions, newest first."""
    return document(devices) + "\n" + document(devices, "v1alpha1") + "\n"


def nic(address, driver=DRIVER, **attributes):
    values = {"resource.kubernetes.io/pciBusID": address, "rdmaDevice": None, **attributes}
    return {"driver": driver, "pool": "node-0", "name": "vf-" + address.replace(":", "-").replace(".", "-"),
            "attributes": {name: {"string": value} for name, value in values.items() if value}}


class Tree:
    def __init__(self, build, source, root):
        self.build, self.source, self.root = build, source, root

    def machine(self, name, given=None):
        fixture = json.loads((self.source / f"tests/data/fixtures/{name}.json").read_text())
        make_tree(fixture, self.root, given)
        return self

    def file(self, text, claim="resourceclaimtemplates/nics", request="nic", driver=DRIVER):
        path = self.root / FOLDER / claim / request / f"{driver}-metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        link = self.root / "var/run"  # as in most images
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to("/run")
        path.write_text(text)
        return path

    def env(self, *options):
        done = subprocess.run([self.build / "bin" / "drarun", "env", "--root", self.root, "--format", "json",
                               *options], capture_output=True, text=True, timeout=patience())
        assert done.returncode in (0, 65), done.stderr
        return (json.loads(done.stdout) if done.stdout else None), done.stderr


@pytest.fixture
def tree(build, source, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    return Tree(build, source, root)


def used(plan):
    """GPU -> its NICs and their rails."""
    ranks = plan["workers"][0]["ranks"]
    return {rank["gpu"]: list(zip(rank["nics"], rank["rails"])) for rank in ranks}


def test_what_the_pod_cannot_know(tree):
    """The interface's name on the host tells the rail; in the pod it is another. All else is the pod's."""
    tree.machine("a4-highgpu-8g")
    before, _ = tree.env()
    tree.file(stream([nic("0000:91:00.0", ifName="gpu5rdma0", **{"resource.kubernetes.io/pcieRoot": "pci0000:00"})]))
    after, said = tree.env()
    assert "METADATA" not in said
    assert {("mlx5_0", 5)} == {use for uses in used(after).values() for use in uses if use[0] == "mlx5_0"}
    for rank in [*before["workers"][0]["ranks"], *after["workers"][0]["ranks"]]:
        del rank["rails"]
    assert after["workers"] == before["workers"]


def card(tree, *nics):
    """A machine with one GPU and a NIC, whose RDMA devices these are."""
    path = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:0{0}.0/0000:1{1}:00.0"
    regress.make_tree({"gpus": [{"path": path.format(0, 3)}], "netdevs": [{"name": "eth0"}],
                       "nics": [dict(each, path=path.format(1, 4)) for each in nics]}, tree.root)


@pytest.mark.parametrize("ports,want", [([2], "=mlx4_0:2"), ([1, 2], "=mlx4_0:1,mlx4_0:2"), ([2, 1, 2], "=mlx4_0:1,mlx4_0:2")])
def test_ports_that_are_devices_of_their_own(tree, ports, want):
    """The pod shows their card once, with all of its ports."""
    card(tree, {"ib": "mlx4_0", "ports": [{"n": n, "state": "4: ACTIVE"} for n in (1, 2)]})
    devices = [dict(nic("0000:14:00.0", rdmaDevice="mlx4_0"), name=f"port-{n}") for n in ports]
    for n, device in zip(ports, devices):
        device["attributes"]["drarun.dev/port"] = {"int": n}
    tree.file(stream(devices))
    plan, said = tree.env()
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == want and "METADATA" not in said, said


def test_sub_functions_are_told_apart_by_their_names(tree):
    """They are at one address, whatever the order of the file."""
    card(tree, *({"ib": f"mlx5_{i}", "netdev": f"net{i}", "sf": f"mlx5_core.sf.{i}"} for i in (4, 5)))
    tree.file(stream([nic("0000:14:00.0", rdmaDevice=f"mlx5_{i}", ifName=f"gpu{i}rdma0") for i in (5, 4)]))
    plan, said = tree.env()
    [uses] = used(plan).values()
    assert sorted(uses) == [("mlx5_4", 4), ("mlx5_5", 5)] and "METADATA" not in said, said


def test_where_the_pod_shows_nothing(tree):
    """No GPU to be seen, but one allocated: its NIC is found by the PCIe root that both files tell."""
    tree.machine("a4-highgpu-8g", given=["0000:91:00.0", "0000:c6:00.0"])
    root = tree.env("--network", "any")[0]
    assert root["workers"][0]["ranks"] == []
    gpu = {"driver": "gpu.example.com", "pool": "node-0", "name": "gpu-0", "attributes": {
        "uuid": {"string": "GPU-1"}, "type": {"string": "gpu"}, "resource.kubernetes.io/numaNode": {"int": 1},
        "resource.kubernetes.io/pciBusID": {"string": "0000:c4:00.0"}}}
    tree.file(stream([gpu]), claim="resourceclaims/gpu", request="gpu", driver="gpu.example.com")
    plan, said = tree.env()
    rank, = plan["workers"][0]["ranks"]
    assert rank["gpu"] == "gpu-0" and rank["numa"] == 1 and rank["uuid"] == "GPU-1", said
    assert len(rank["nics"]) == 1


def test_a_device_that_the_pod_does_not_show(tree):
    """Others of its kind are there, so it is not: never a NIC that NCCL would not find."""
    tree.machine("a4-highgpu-8g")
    before, _ = tree.env()
    tree.file(stream([nic("0000:ff:00.0", ifName="gpu9rdma0")]))
    after, said = tree.env()
    assert "METADATA_NOT_USED: device vf-0000-ff-00-0 of claim nics-x7k2p: the pod does not show it" in said
    assert after["workers"] == before["workers"]


@pytest.mark.parametrize("text,says", [
    ("", "is empty"),
    ("{", "metadata.json:1:2: "),
    ("\0" * 100, "metadata.json"),
    ("\xff\xfe", "metadata.json"),
    (document([]).replace("v1beta1", "v7"), "got metadata.resource.k8s.io/v7"),
    (document([{"driver": "d"}]), "requests[0].devices[0]: expected driver, pool and name"),
    (document([nic("nowhere")]), '"nowhere" is no PCI address'),
    (document([nic("0000:92:00.0", **{"dra.net/pciAddress": "0000:93:00.0"})]), "pciAddress is 0000:93:00.0"),
    ("[" * 100000, "16"),
    (" " * (1 << 20) + " {}", "larger than 1 MiB"),
    (document([nic(f"0000:{i:02x}:00.0") for i in range(5)] * 2000), "larger than 1 MiB"),
], ids=lambda value: value[:20] if isinstance(value, str) else None)
def test_files_that_are_wrong(tree, text, says):
    """Each is said, and the rest goes on."""
    tree.machine("a4-highgpu-8g")
    before, _ = tree.env()
    tree.file(text)
    tree.file(stream([nic("0000:91:00.0", ifName="gpu5rdma0")]), claim="resourceclaims/good")
    after, said = tree.env()
    line, = (line for line in said.splitlines() if "METADATA_NOT_USED" in line)
    assert says in line
    assert ("mlx5_0", 5) in sum(used(after).values(), [])


def test_nothing_yet(tree):
    """A network driver fills its file when the interface is there: empty content is no fault."""
    tree.machine("a4-highgpu-8g")
    tree.file(document([], requests=[{"name": "nic"}]))
    assert "METADATA" not in tree.env()[1]


def test_things_that_are_no_files(tree):
    """Links out of the tree, pipes, folders: none is followed or waited for."""
    tree.machine("a4-highgpu-8g")
    good = tree.file(stream([nic("0000:91:00.0", ifName="gpu5rdma0")]))
    outside = tree.root.parent / "outside.json"
    outside.write_text(stream([nic("0000:92:00.0", ifName="gpu7rdma0")]))
    folder = good.parent
    (folder / "a-metadata.json").symlink_to(outside)
    (folder / "b-metadata.json").symlink_to("../" * 20 + str(outside))
    (folder / "c-metadata.json").symlink_to("c-metadata.json")
    os.mkfifo(folder / "d-metadata.json")
    (folder / "e-metadata.json").mkdir()
    (folder / "f-other.json").write_text("{")
    (folder.parent / "loop").symlink_to(".")
    (tree.root / FOLDER / "resourceclaims").symlink_to("/")
    plan, said = tree.env()
    lines = [line for line in said.splitlines() if "METADATA_NOT_USED" in line]
    for name, why in (("a", "No such file"), ("b", "No such file"), ("c", "Too many levels"),
                      ("d", "no regular file"), ("e", "no regular file")):
        assert any(f"/nic/{name}-metadata.json: {why}" in line for line in lines), (name, lines)
    assert not any("f-other" in line for line in lines)
    assert ("mlx5_1", 7) not in sum(used(plan).values(), [])


def test_no_end_of_files(tree):
    tree.machine("a4-highgpu-8g")
    for i in range(300):
        tree.file(stream([]), claim=f"resourceclaims/c{i % 2}", request=f"r{i // 2}")
    said = tree.env()[1]
    assert "not read, nor what follows: more than 256 files" in said
    for i in range(300):
        tree.file(stream([]), claim=f"resourceclaimtemplates/c{i}")
    assert "more than 256 entries; none is read" in tree.env()[1]


@pytest.fixture
def claimed(tree, source, tmp_path):
    """Vector 01's first worker; the slices lack its NICs, as where a driver drops them once they are in a
    pod. Options for env."""
    vector = json.loads((source / "tests/data/vectors/01-a4-2gpu-2nic.json").read_text())
    fixture = json.loads((source / "tests/data/fixtures/a4-highgpu-8g.json").read_text())
    worker = vector["input"]["workers"][0]
    slices = json.loads(json.dumps(fixture["resourceSlices"]).replace(fixture["node"]["name"], worker["node"]))
    nics = []
    for piece in slices:
        if piece["spec"]["driver"] == "dra.net":
            nics += piece["spec"]["devices"]
            piece["spec"]["devices"] = []
    tree.machine("a4-highgpu-8g")
    options = []
    node = {"kind": "Node", "metadata": {"name": worker["node"], "labels": fixture["node"]["labels"]}}
    for option, item in (("claims", worker["claims"]), ("slices", slices), ("nodes", [node])):
        path = tmp_path / f"{option}.json"
        path.write_text(json.dumps({"kind": "List", "items": item}))
        options += [f"--{option}", path]
    return worker, {each["name"]: each for each in nics}, options


def test_the_file_of_a_claim(tree, claimed):
    """By the exact path: other files, as of a claim of the same name in another pod's tree, are not read."""
    worker, nics, options = claimed
    claim = worker["claims"][1]
    results = claim["status"]["allocation"]["devices"]["results"]
    before, said = tree.env(*options)
    assert before is None and "DEVICE_NOT_IN_SLICES" in said
    devices = []
    for result in results:
        known = copy.deepcopy(nics[result["device"]])
        devices.append({**known, "driver": "dra.net", "pool": result["pool"]})
    pod_claim = claim["metadata"].get("annotations", {}).get("resource.kubernetes.io/pod-claim-name")
    folder = f"resourceclaimtemplates/{pod_claim}" if pod_claim else f"resourceclaims/{claim['metadata']['name']}"
    tree.file("{", claim="resourceclaims/other")
    tree.file(stream(devices), claim=folder, request=results[0]["request"], driver="dra.net")
    after, said = tree.env(*options)
    assert "METADATA" not in said
    assert sorted(sum(used(after).values(), [])) == [("mlx5_0", 0), ("mlx5_1", 1)]
    assert "2 GPUs, 2 NICs: 2 PIX" in said
