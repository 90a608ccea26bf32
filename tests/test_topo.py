# SPDX-License-Identifier: Apache-2.0
"""drarun topo on the machines of tests/data/fixtures, on broken trees, and on this machine."""
import itertools
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from support import nccl_xml
from support.build import SOURCE, patience
from support.sysfs_tree import leaves, make_tree

FIXTURES = {path.stem: json.loads(path.read_text())
            for path in sorted((SOURCE / "tests/data/fixtures").glob("*.json"))}
SVG = "{http://www.w3.org/2000/svg}"


def topo(drarun, root, *args):
    run = drarun("topo", "--root", root, *args)
    assert run.rc == 0, run.err
    return run


def facts(drarun, root):
    return json.loads(topo(drarun, root, "--format", "json").out)


def places(fixture):
    """address -> (switches from the root down, NUMA node), as the fixture has them."""
    return {address: (switches, entry["numa"])
            for entry in fixture["truth"]["pci"] for address, switches in leaves(entry["tree"])}


def expected_path(fixture, gpu, nic):
    """What the fixture's tree says, computed from nesting alone."""
    where = places(fixture)
    a, b = where[gpu], where[nic]
    if a[1] != b[1]:
        return "SYS"
    real = [s for s in a[0] if not s.startswith("ffff")]
    if real and real[0] in b[0]:
        return "PIX" if a[0] == b[0] else "PXB"
    if fixture["truth"]["gpu"]["c2c"]:
        return "P2C"
    # a topology file's switch is one host bridge in sysfs
    return "PHB" if a[0] and a[0] == b[0] else "NODE"


def test_there_are_fixtures():
    assert len(FIXTURES) >= 10


@pytest.mark.parametrize("name", FIXTURES)
def test_machine(drarun, tmp_path, name):
    fixture = FIXTURES[name]
    truth = fixture["truth"]
    machine = facts(drarun, make_tree(fixture, tmp_path))
    assert machine["warnings"] == []
    assert [node["cpus"] for node in machine["numaNodes"]] == [n["cpus"] for n in truth["cpu"]["numa"]]
    gpus = sorted(set(places(fixture)) - set(truth["nics"]))
    assert [gpu["pciBusID"] for gpu in machine["gpus"]] == gpus
    by_name = {nic["name"]: nic for nic in machine["nics"]}
    for address, nic in truth["nics"].items():
        seen = by_name[nic["ibdev"] or nic["netdev"]]
        assert seen["pciBusID"] == address
        assert seen["rateMbps"] == nic["speedMbps"]
        assert seen["netdev"] == nic["netdev"]
        assert seen["rdma"] == (nic["ibdev"] is not None)
        gids = [(g["index"], g["type"], g["address"]) for p in seen["ports"] for g in p["gids"]]
        if nic["linkLayer"] in ("InfiniBand", "EFA"):  # every port has its own, in entry 0
            assert gids.pop(0)[0] == 0
        assert gids == [(g["index"], g["type"], g["ip"]) for g in nic.get("gids", [])]
    assert len(by_name) == len(truth["nics"])
    for gpu in machine["gpus"]:
        for nic, path in gpu["paths"].items():
            assert path == expected_path(fixture, gpu["pciBusID"], by_name[nic]["pciBusID"]), (gpu, nic)
    assert machine["machine"]["peermem"] == truth["gdr"]["peermem"]
    assert machine["machine"]["dmabufInferred"] == truth["gdr"]["dmabuf"]
    assert machine["machine"]["c2cInferred"] == truth["gpu"]["c2c"]


@pytest.mark.parametrize("name", FIXTURES)
def test_matrix_says_the_same(drarun, tmp_path, name):
    root = make_tree(FIXTURES[name], tmp_path)
    machine, text = facts(drarun, root), topo(drarun, root).out
    rows = {line.split()[0]: line.split() for line in text.splitlines()
            if re.match(r"(GPU|NIC)\d+ ", line)}
    assert len(rows) == len(machine["gpus"]) + len(machine["nics"])
    gpus, nics = machine["gpus"], machine["nics"]
    for i, gpu in enumerate(gpus):
        for j, nic in enumerate(nics):
            path = gpu["paths"][nic["name"]]
            assert rows[f"GPU{i}"][1 + len(gpus) + j] == path
            assert rows[f"NIC{j}"][1 + i] == path
        assert rows[f"GPU{i}"][1 + i] == "X"
        pci = next(p for p in machine["pci"] if p["address"] == gpu["pciBusID"])
        assert rows[f"GPU{i}"][-1] == str(pci["numaNode"])
        assert rows[f"GPU{i}"][-2] == machine["numaNodes"][pci["numaNode"]]["cpus"]


@pytest.mark.parametrize("name,pairs", [
    ("a4-highgpu-8g", [[f"mlx5_{i}"] for i in range(8)]),
    ("dgx-h100", [[f"mlx5_{i}"] for i in (0, 3, 4, 5, 6, 9, 10, 11)]),  # never those of storage
    ("aws-p4d-24xlarge", [[n] for n in ("rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27") for _ in "ab"]),
    ("oke-gb200-v3-4", [["mlx5_0", "mlx5_1"], ["mlx5_2", "mlx5_3"], ["mlx5_5", "mlx5_6"], ["mlx5_7", "mlx5_8"]]),
    ("a3-megagpu-8g", [[f"eth{i}"] for i in range(1, 9)]),
    ("small-l4-2gpu", [[], []]),
])
def test_pairing(drarun, tmp_path, name, pairs):
    machine = facts(drarun, make_tree(FIXTURES[name], tmp_path))
    assert [gpu["nics"] for gpu in machine["gpus"]] == pairs


@pytest.mark.parametrize("gpus,nics", [((0, 1, 4, 5), (1, 2, 4, 7)), ((2, 3, 6), (0, 3, 6)), ((0, 4), (0, 1, 4, 5)),
                                       ((1, 3, 5, 7), (0, 2)), ((5,), (0, 1))])
def test_pairing_is_the_best_there_is(drarun, tmp_path, gpus, nics):
    """Of a part of the machine too: as few far pairs as any assignment has, tried one by one."""
    whole = facts(drarun, make_tree(FIXTURES["a4-highgpu-8g"], tmp_path / "whole"))
    given = [whole["gpus"][g]["pciBusID"] for g in gpus] + [whole["nics"][n]["pciBusID"] for n in nics]
    pod = facts(drarun, make_tree(FIXTURES["a4-highgpu-8g"], tmp_path / "pod", given))
    order = ["PIX", "PXB", "PHB", "NODE", "SYS"]
    held = [g for g in pod["gpus"] if g["pciBusID"] in given]
    names = [whole["nics"][n]["name"] for n in nics]
    assert all(g["nics"] and set(g["nics"]) <= set(names) for g in held)

    def cost(assignment):
        far = [order.index(g["paths"][name]) for g, name in assignment]
        return [far.count(i) for i in reversed(range(len(order)))]

    if len(gpus) <= len(nics) < 2 * len(gpus):
        best = min(cost(zip(held, chosen)) for chosen in itertools.permutations(names, len(held)))
        assert cost((g, g["nics"][0]) for g in held) == best


@pytest.mark.parametrize("name", ["a4-highgpu-8g", "oke-gb200-v3-4", "dgx-h100"])
def test_pairing_of_slices_is_that_of_the_machine(drarun, tmp_path, name):
    machine = facts(drarun, make_tree(FIXTURES[name], tmp_path / "tree"))
    slices = from_slices(drarun, slice_file(tmp_path, name))
    address = {nic["name"]: nic["pciBusID"] for nic in machine["nics"] + slices["nics"]}
    pairs = [[[address[n] for n in g["nics"]][:1] for g in each["gpus"]] for each in (machine, slices)]
    if name != "dgx-h100":  # slices tell no speed: storage NICs count there
        assert pairs[0] == pairs[1]
    assert all(pairs[1])


def test_pod_sees_what_it_was_given(drarun, tmp_path):
    given = {"0000:8f:00.0", "0000:c4:00.0", "0000:91:00.0", "0000:cd:00.0"}
    root = make_tree(FIXTURES["a4-highgpu-8g"], tmp_path, given)
    machine = facts(drarun, root)
    assert {d["pciBusID"] for d in machine["gpus"] + machine["nics"] if d["usable"]} == given
    assert [g["nics"] for g in machine["gpus"]] == [["mlx5_0"], [], [], [], ["mlx5_6"], [], [], []]
    assert machine["gpus"][4]["paths"]["mlx5_6"] == "NODE"
    assert topo(drarun, root).out.count("not given to this pod") == 12
    xml = ElementTree.fromstring(topo(drarun, root, "--format", "nccl-xml").out)
    assert [g.get("dev") for g in xml.iter("gpu")] == ["0", "1"]
    assert [n.get("name") for n in xml.iter("net")] == ["mlx5_0", "mlx5_6"]


# ---- XML for NCCL


@pytest.mark.parametrize("name", FIXTURES)
def test_nccl_takes_the_xml(drarun, tmp_path, name):
    """By its reader's own rules, which are fewer than XML's; and nothing of it is passed over."""
    text = topo(drarun, make_tree(FIXTURES[name], tmp_path), "--format", "nccl-xml").out
    parsed = ElementTree.fromstring(text)

    def same(element):
        return (element.tag, dict(element.attrib), [same(child) for child in element])

    assert nccl_xml.read(text) == same(parsed)


NCCL = os.environ.get("DRARUN_NCCL_SOURCE")


@pytest.mark.skipif(not NCCL, reason="DRARUN_NCCL_SOURCE names no source tree of NCCL")
def test_nccls_own_reader_takes_the_xml(drarun, tmp_path):
    """The part of src/graph/xml.cc before autodetection, compiled without CUDA: what it read is all that we wrote."""
    ours = SOURCE / "tests" / "nccl"
    source = (Path(NCCL) / "src" / "graph" / "xml.cc").read_text()
    reading = source[:source.index("/* XML creation")].rsplit("/***", 1)[0]
    program = tmp_path / "reader"
    (tmp_path / "reader.cc").write_text(reading + (ours / "read_and_dump.cc").read_text())
    for name in ("core", "nccl", "debug", "checks", "alloc", "os", "nvmlwrap"):
        (tmp_path / f"{name}.h").write_text(f'#include "{ours / "shim.hpp"}"\n')
    subprocess.run(["g++", "-std=c++17", "-w", "-fpermissive", f"-I{tmp_path}", f"-I{NCCL}/src/graph",
                    tmp_path / "reader.cc", "-o", program], check=True, timeout=patience(120))

    def same(element):
        return (element.tag, dict(element.attrib), [same(child) for child in element])

    for name in FIXTURES:
        text = topo(drarun, make_tree(FIXTURES[name], tmp_path / name), "--format", "nccl-xml").out
        (tmp_path / "in.xml").write_text(text)
        done = subprocess.run([program, tmp_path / "in.xml", tmp_path / "out.xml"], capture_output=True, text=True,
                              timeout=patience())
        assert done.returncode == 0 and "WARN" not in done.stderr and "gnoring" not in done.stderr, done.stderr
        assert same(ElementTree.parse(tmp_path / "out.xml").getroot()) == same(ElementTree.fromstring(text))


@pytest.mark.parametrize("text,says", [
    ("<system version=\"2\"></system>", 'system: version="2"'),
    ("<system version=\"1\"><cpu numaid=\"0\">x</cpu></system>", "expected <"),
    ("<system version=\"1\"><cpu  numaid=\"0\"/></system>", "attribute"),
    ("<system version=\"1\"><cpu numaid=\"0\"/>", "system is not closed"),
    ("<system version=\"1\"><cpu numaid=\"0\"></system></cpu>", "closed within cpu"),
    ("<system version=\"1\"><gpu dev=\"0\"/></system>", "gpu within system"),
    ("<system version=\"1\"><cpu arch=\"x86_64\"/></system>", "cpu lacks numaid"),
    ("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:8F:00.0\"/></cpu></system>", "busid"),
    ("<system version=\"1\"><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>", "numaid comes twice"),
    ("<system version=\"1\"><cpu numaid=\"0\" name=\"" + "x" * 300 + "\"/></system>", "too long"),
])
def test_nccls_rules(text, says):
    """The rules do refuse."""
    with pytest.raises(nccl_xml.Wrong, match=re.escape(says)):
        nccl_xml.read(text)


@pytest.mark.parametrize("name", FIXTURES)
def test_nccl_xml(drarun, tmp_path, name):
    fixture = FIXTURES[name]
    root = make_tree(fixture, tmp_path)
    machine = facts(drarun, root)
    xml = ElementTree.fromstring(topo(drarun, root, "--format", "nccl-xml").out)
    assert (xml.tag, xml.get("version")) == ("system", "1")
    cpu = fixture["truth"]["cpu"]
    for node in xml:
        assert node.tag == "cpu" and node.get("arch") == cpu["arch"]
        assert node.get("modelid") == (str(cpu["model"]) if "model" in cpu else None)
    above = {child: parent for parent in xml.iter() for child in parent}
    assert len(list(xml.iter("gpu"))) == len(machine["gpus"])
    assert {net.get("name") for net in xml.iter("net")} == {nic["name"] for nic in machine["nics"]}
    where = places(fixture)
    for gpu in xml.iter("gpu"):
        chain, node = [], above[gpu]
        address = node.get("busid")
        assert node.get("link_speed") == "32.0 GT/s PCIe" and node.get("link_width") == "16"
        assert node.get("class") == "0x030200"
        while (node := above[node]).tag == "pci":
            chain.insert(0, node.get("busid"))
        assert chain == [s for s in where[address][0] if not s.startswith("ffff")]
        assert node.get("numaid") == str(where[address][1])


def test_nccl_xml_of_nics_without_a_link(drarun, tmp_path):
    """A hypervisor's own, whose function has no PCIe capability. NCCL ends where an attribute is missing."""
    fixture = FIXTURES["a4-highgpu-8g"]
    root = make_tree(fixture, tmp_path)
    for address in fixture["truth"]["nics"]:
        for path in (root / "sys/bus/pci/devices" / address).glob("*_link_*"):
            path.unlink()
    text = topo(drarun, root, "--format", "nccl-xml").out
    nccl_xml.read(text)
    nics = [pci for pci in ElementTree.fromstring(text).iter("pci") if pci.find("nic") is not None]
    assert nics and all((pci.get("link_speed"), pci.get("link_width")) == ("", "0") for pci in nics)


def test_ports_of_a_card_are_one_device_for_nccl(drarun, tmp_path):
    root = make_tree(FIXTURES["oke-gb200-v3-4"], tmp_path)
    xml = ElementTree.fromstring(topo(drarun, root, "--format", "nccl-xml").out)
    cards = {pci.get("busid"): [net.get("name") for net in pci.iter("net")]
             for pci in xml.iter("pci") if pci.find("nic") is not None}
    assert cards["0000:03:00.0"] == ["mlx5_0", "mlx5_1"]
    assert len(cards) == 4


# ---- the picture


def boxes(svg, *classes):
    return [tuple(float(r.get(k)) for k in ("x", "y", "width", "height")) for r in svg.iter(f"{SVG}rect")
            if r.get("class").split()[0] in classes]


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def inside(inner, outer):
    return (outer[0] <= inner[0] and outer[1] <= inner[1] and inner[0] + inner[2] <= outer[0] + outer[2]
            and inner[1] + inner[3] <= outer[1] + outer[3])


@pytest.mark.parametrize("name", FIXTURES)
def test_picture(drarun, tmp_path, name):
    root = make_tree(FIXTURES[name], tmp_path)
    machine = facts(drarun, root)
    svg = ElementTree.fromstring(topo(drarun, root, "--format", "svg").out)
    devices, panels = boxes(svg, "gpu", "nic"), boxes(svg, "numa")
    frames = boxes(svg, "root")
    assert len(devices) == len(machine["gpus"]) + len(machine["nics"])
    for shapes in (devices, panels, frames):
        assert not any(overlap(a, b) for i, a in enumerate(shapes) for b in shapes[:i])
    page = (0, 0, float(svg.get("width")), float(svg.get("height")))
    assert all(inside(panel, page) for panel in panels)
    assert all(any(inside(frame, panel) for panel in panels) for frame in frames)
    assert all(any(inside(box, frame) for frame in frames) for box in devices)
    # frames of switches are nested or apart
    frames += boxes(svg, "switch")
    assert all(inside(a, b) or inside(b, a) or not overlap(a, b) for a in frames for b in frames)
    links = [p for p in svg.iter(f"{SVG}path") if "C" in p.get("d")]
    assert len(links) == sum(len(gpu["nics"]) for gpu in machine["gpus"])
    # each link starts at the lower edge of a GPU and ends at the upper edge of a NIC
    for link in links:
        x1, y1, *_, x2, y2 = map(float, re.findall(r"-?\d+", link.get("d")))
        assert any(x < x1 < x + w and y1 == y + h for x, y, w, h in boxes(svg, "gpu"))
        assert any(x < x2 < x + w and y2 == y for x, y, w, h in boxes(svg, "nic"))


def test_picture_marks_what_is_claimed(drarun, tmp_path):
    given = {"0000:8f:00.0", "0000:91:00.0"}
    root = make_tree(FIXTURES["a4-highgpu-8g"], tmp_path, given)
    text = topo(drarun, root, "--format", "svg").out
    assert len(re.findall(r'class="(?:gpu|nic) claimed"', text)) == 2
    assert len(re.findall(r'class="(?:gpu|nic) other"', text)) == 14


def test_picture_can_be_rendered(drarun, tmp_path):
    if not shutil.which("rsvg-convert"):
        pytest.skip("no rsvg-convert; install librsvg2-bin")
    svg = tmp_path / "x.svg"
    svg.write_text(topo(drarun, make_tree(FIXTURES["dgx-h100"], tmp_path / "tree"), "--format", "svg").out)
    png = subprocess.run(["rsvg-convert", svg], capture_output=True, check=True).stdout
    assert png.startswith(b"\x89PNG") and len(png) > 20000


# ---- ResourceSlices


def slice_file(tmp_path, *names):
    items = [item for name in names for item in FIXTURES[name]["resourceSlices"]]
    path = tmp_path / "slices.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def from_slices(drarun, *args):
    run = drarun("topo", "--format", "json", "--slices", *args)
    assert run.rc == 0, run.err
    return json.loads(run.out)


@pytest.mark.parametrize("name", [name for name in FIXTURES if not name.endswith("v1beta1")])
def test_slices_never_contradict_the_machine(drarun, tmp_path, name):
    """What attributes tell agrees with sysfs; the rest is not known."""
    machine = facts(drarun, make_tree(FIXTURES[name], tmp_path / "tree"))
    slices = from_slices(drarun, slice_file(tmp_path, name))
    assert [g["pciBusID"] for g in slices["gpus"]] == [g["pciBusID"] for g in machine["gpus"]]
    real = {(g["pciBusID"], nic["pciBusID"]): g["paths"][nic["name"]]
            for g in machine["gpus"] for nic in machine["nics"]}
    seen = {(g["pciBusID"], nic["pciBusID"]): g["paths"][nic["name"]]
            for g in slices["gpus"] for nic in slices["nics"]}
    assert set(real) <= set(seen)  # slices also have the management NIC, which no fixture's tree has
    for pair in real:
        path = seen[pair]
        allowed = {"ROOT": {"PIX", "PXB", "PHB"}, "?": {"NODE", "SYS", "PHB"}}.get(path, {path})
        assert real[pair] in allowed, (pair, path, real[pair])
    assert set(p["bridges"] is None for p in slices["pci"]) <= {True}
    assert slices["fromAttributes"] and slices["limits"]["shmBytes"] is None
    if name in ("a4-highgpu-8g", "dgx-h100", "oke-gb200-v3-4", "aws-p4d-24xlarge"):
        assert "?" not in seen.values()


def test_slices_of_an_old_driver(drarun, tmp_path):
    slices = from_slices(drarun, slice_file(tmp_path, "a4-highgpu-8g-v1beta1"))
    assert len(slices["gpus"]) == 8 and {g["pciBusID"] for g in slices["gpus"]} == {None}
    assert len({p["address"] for p in slices["pci"]}) >= 8
    assert [g["minor"] for g in slices["gpus"]] == list(range(8))


def test_slices_in_yaml_and_pieces(drarun, tmp_path):
    yaml = pytest.importorskip("yaml")
    whole = from_slices(drarun, slice_file(tmp_path, "dgx-h100"))
    files = []
    for i, item in enumerate(FIXTURES["dgx-h100"]["resourceSlices"]):
        files.append(tmp_path / f"{i}.yaml")
        files[-1].write_text(yaml.safe_dump(item))
    assert from_slices(drarun, *files) == whole


def test_claimed_part_of_slices(drarun, tmp_path):
    slices = slice_file(tmp_path, "a4-highgpu-8g")
    node = FIXTURES["a4-highgpu-8g"]["resourceSlices"][0]["spec"]["pool"]["name"]
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": "gpu-2"},
               {"request": "nic", "driver": "dra.net", "pool": node, "device": "pci-0000-98-00-0"}]
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
             "spec": {"devices": {"requests": []}},
             "status": {"allocation": {"devices": {"results": results}}}}
    claims = tmp_path / "claims.json"
    claims.write_text(json.dumps(claim))
    seen = from_slices(drarun, slices, "--claims", claims)
    assert {d["pciBusID"] for d in seen["gpus"] + seen["nics"] if d["usable"]} == {"0000:96:00.0", "0000:98:00.0"}
    assert [g["nics"] for g in seen["gpus"]] == [[], [], ["gpu2rdma0"], [], [], [], [], []]
    svg = drarun("topo", "--slices", slices, "--claims", claims, "--format", "svg").out
    assert svg.count(' claimed"') == 2 and "switches not known" in svg


def test_slices_of_several_nodes(drarun, tmp_path):
    slices = slice_file(tmp_path, "a4-highgpu-8g", "oke-gb200-v3-4")
    run = drarun("topo", "--slices", slices)
    assert run.rc == 64 and "--node" in run.err
    node = FIXTURES["oke-gb200-v3-4"]["resourceSlices"][0]["spec"]["nodeName"]
    assert len(from_slices(drarun, slices, "--node", node)["gpus"]) == 4
    assert drarun("topo", "--slices", slices, "--node", "nobody").rc == 64


@pytest.mark.parametrize("text,says", [
    ("", "expected objects of kind ResourceSlice"),
    ("{", "bad.json:1"),
    ("[]", "expected objects of kind ResourceSlice"),
    ('{"kind": "ResourceSlice", "spec": 1}', "no spec.driver"),
    ("a: [", "bad.json:1"),
])
def test_bad_slices(drarun, tmp_path, text, says):
    path = tmp_path / "bad.json"
    path.write_text(text)
    run = drarun("topo", "--slices", path)
    assert run.rc == 65 and says in run.err and run.out == ""


def test_hostile_attributes(drarun, tmp_path):
    fixture = json.loads(json.dumps(FIXTURES["azure-nd96isr-h100-v5"]))
    for piece in fixture["resourceSlices"]:
        for device in piece["spec"]["devices"]:
            for name in device["attributes"]:
                if name.split("/")[-1] in ("productName", "rdmaDevice", "ifName"):
                    device["attributes"][name] = {"string": "\x1b[31m<x>&\"\n" + "y" * 40}
    path = tmp_path / "slices.json"
    path.write_text(json.dumps({"kind": "List", "items": fixture["resourceSlices"]}))
    for form in ("text", "svg", "json"):
        run = drarun("topo", "--slices", path, "--format", form)
        assert run.rc == 0 and "\x1b" not in run.out + run.err
        if form == "svg":
            ElementTree.fromstring(run.out)


# ---- this machine, and bad input


def network_devices():
    return {name for name in os.listdir("/sys/class/net") if name != "bonding_masters"}


def test_this_machine(drarun):
    run = drarun("topo")
    assert run.rc == 0
    if not os.path.exists("/dev/nvidia0") and not os.path.exists("/sys/class/infiniband"):
        assert run.out.startswith("no GPU and no RDMA NIC here")
    online = open("/sys/devices/system/cpu/online", encoding="utf-8").read().strip()
    assert f"CPUs {online}\n" in run.out
    before = network_devices()
    machine = json.loads(drarun("topo", "--format", "json").out)
    after = network_devices()  # others may make some meanwhile, or take them away
    assert before & after <= {n["name"] for n in machine["netdevs"]} <= before | after
    assert machine["limits"]["memlockKnown"]


@pytest.mark.timed
def test_is_fast(drarun, build, tmp_path):
    root = make_tree(FIXTURES["dgx-h100"], tmp_path)
    times = []
    for _ in range(15):
        start = time.monotonic()
        subprocess.run([build / "bin/drarun", "topo", "--root", root], check=True, stdout=subprocess.DEVNULL)
        times.append(time.monotonic() - start)
    assert min(times) < 0.030, times


def test_empty_tree(drarun, tmp_path):
    for form in ("text", "svg", "nccl-xml", "json"):
        out = topo(drarun, tmp_path, "--format", form).out
        assert out
    assert topo(drarun, tmp_path).out.startswith("no GPU and no RDMA NIC here\nCPUs not known\n")


def test_hostile_tree(drarun, tmp_path):
    root = make_tree(FIXTURES["dgx-h100"], tmp_path)
    ib = root / "sys/class/infiniband"
    (ib / "bad\nname\x1b[31m").mkdir()
    (ib / ("x" * 250)).mkdir()
    (ib / "dangling").symlink_to("../../nothing")
    (ib / "loop").symlink_to("loop")
    (ib / "outside").symlink_to("../" * 40 + "etc")
    (root / "sys/bus/pci/devices/0000:ff:00.0").symlink_to("/etc")
    os.mkfifo(root / "proc/cpuinfo.fifo")
    (root / "proc/cpuinfo").unlink()
    (root / "proc/cpuinfo").symlink_to("cpuinfo.fifo")
    gpu = next(root.glob("sys/devices/**/0000:1b:00.0"))
    (gpu / "numa_node").write_text("-1\n")
    (root / "proc/driver/nvidia/gpus/0000:1b:00.0/information").write_text("Model: <b>&\"" + "x" * 5000)
    run = topo(drarun, root)
    assert "bad?name?[31m" in run.err and "dangling" in run.err and "loop" in run.err
    assert "\x1b" not in run.out + run.err
    rows = {line.split()[0]: line.split() for line in run.out.splitlines() if line.startswith(("GPU", "NIC"))}
    assert rows["GPU0"][2] == "?" and rows["GPU0"][-1] == "?"  # another socket's or not: not known
    assert "PXB" in rows["GPU0"]
    svg = ElementTree.fromstring(topo(drarun, root, "--format", "svg").out)
    assert "<b>&\"" in "".join(svg.itertext())
    nccl_xml.read(topo(drarun, root, "--format", "nccl-xml").out)
    assert facts(drarun, root)["warnings"]


@pytest.mark.parametrize("args,says", [
    (["--root", "/nowhere/at/all"], "--root /nowhere/at/all: No such file or directory"),
    (["--root", "/etc/passwd"], "Not a directory"),
    (["--format", "png"], "png"),
    (["--formt", "svg"], "--format"),
    (["x"], 'unexpected argument "x"'),
    (["--node", "n"], "--claims and --node need --slices"),
    (["--slices", "x", "--root", "/"], "--root and --slices exclude each other"),
    (["--slices", "x", "--format", "nccl-xml"], "slices do not describe PCIe switches"),
])
def test_usage_errors(drarun, args, says):
    run = drarun("topo", *args)
    assert run.rc == 64
    assert says in run.err and run.out == ""


def test_help(drarun):
    run = drarun("topo", "--help")
    assert run.rc == 0
    assert "Usage: drarun topo" in run.out and "--root DIR" in run.out and "nccl-xml" in run.out
