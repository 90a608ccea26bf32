# SPDX-License-Identifier: Apache-2.0
"""Every rule of the derivation on a machine made for it. The table of rules, with what each is held by, is
docs/design/017-derivation-rules.md; test_table_of_rules holds it against this file."""
import os
import pathlib
import re

import pytest

from support.world import World, gpu, nic

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSTANCE = "node.kubernetes.io/instance-type"
A, B, C, D = "pci0000:10", "pci0000:50", "pci0000:90", "pci0000:d0"
IB = {"port": 1, "linkLayer": "InfiniBand", "speedMbps": 400000}
ROCE = dict(IB, linkLayer="Ethernet")
RULES = {}


def rule(*names):
    def mark(function):
        for name in names:
            RULES.setdefault(name, []).append(function.__name__)
        return function
    return mark


@pytest.fixture
def derive(build, tmp_path):
    def run(world):
        plan = world.derive(build / "bin" / "drarun-vectors", tmp_path)
        assert "error" not in plan, plan["error"]
        return plan
    return run


def codes(plan, worker=None):
    return sorted({w["code"] for w in plan["warnings"] if worker is None or w["worker"] == worker})


def uses(plan, key, worker=0):
    return [rank[key] for rank in plan["workers"][worker]["ranks"]]


def nics(plan, worker=0):
    return [[name.replace("mlx5_", "") for name in names] for names in uses(plan, "nics", worker)]


def paths(plan, worker=0):
    return ["+".join(sorted(set(path))) for path in uses(plan, "path", worker)]


def gdr(plan, worker=0):
    return [all(list_) for list_ in uses(plan, "gdr", worker)]


def two_sockets():
    """Two GPUs and two NICs on a switch of each socket."""
    return ([gpu(i, [A, B][i // 2]) for i in range(4)],
            [nic(i, [A, B][i // 2], i // 2) for i in range(4)])


def gb200(version="2.30.7", labels=(), arch="arm64", count=2, **more):
    """GPUs and NICs in different PCI domains, a GPU and a NIC on each of two CPUs."""
    gpus = [gpu(i, f"pci00{8 + 16 * i:02x}:00", pci=f"00{8 + 16 * i:02x}:01:00.0", productName="NVIDIA GB200")
            for i in range(count)]
    return World(gpus, [nic(i, f"pci00{16 * i:02x}:00", i, pci=f"00{16 * i:02x}:03:00.0") for i in range(count)],
                 dict({"kubernetes.io/arch": arch}, **dict(labels)), version=version, **more)


# ---- T: which NICs a GPU uses ----

@rule("T1")
@pytest.mark.parametrize("speeds,want", [((400000, 400000), "0"), ((200000, 400000), "1"), ((400000, 200000), "0")])
def test_bandwidth_before_type(derive, speeds, want):
    """NIC 0 is on the GPU's switch, NIC 1 behind the host bridge."""
    world = World([gpu(0)], [nic(i, [A, B][i], 0, ib=dict(IB, name=f"mlx5_{i}", speedMbps=speeds[i]))
                             for i in range(2)])
    assert nics(derive(world)) == [[want]]


@rule("T1")
def test_the_socket_link_loses_by_bandwidth(derive):
    world = World([gpu(0, numa=0)], [nic(0, B, 1), nic(1, C, 0, ib=dict(IB, name="mlx5_1", speedMbps=200000))])
    assert nics(derive(world)) == [["1"]]  # 25 GB/s, the link between the sockets has 22


@rule("T2")
@pytest.mark.parametrize("policy,version,want", [
    (None, "2.28.9", [["0", "1"], ["1", "2"]]), ("AUTO", "2.28.9", [["0", "1"], ["1", "2"]]),
    ("ALL", "2.28.9", [["0", "1", "2"], ["1", "2", "0"]]), ("all", "2.28.9", [["0", "1", "2"], ["1", "2", "0"]]),
    ("MAX:1", "2.28.9", [["0"], ["1"]]), ("max:9", "2.28.9", [["0", "1", "2"], ["1", "2", "0"]]),
    ("MAX:1", "2.27.7", [["0", "1"], ["1", "2"]]),
])
def test_nics_of_a_gpu(derive, policy, version, want):
    env = {"NCCL_NETDEVS_POLICY": policy} if policy else {}
    assert nics(derive(World([gpu(0), gpu(1)], [nic(i) for i in range(3)], version=version, userEnv=env))) == want


@rule("T3")
def test_the_start_is_mirrored(derive):
    assert nics(derive(World([gpu(i) for i in range(4)], [nic(i) for i in range(4)]))) == [["0"], ["2"], ["1"], ["3"]]


@rule("T3")
@pytest.mark.parametrize("version,want", [("2.26.6", ["2", "0"]), ("2.30.4", ["2", "0"]), ("2.30.7", ["0", "1"])])
def test_the_start_modulo_the_local_gpus(derive, version, want):
    """Three NICs beside the GPUs 2 and 3: not a power of two, so that the start is the index itself."""
    world = World([gpu(i, [A, B][i // 2]) for i in range(4)], [nic(i, B, 1) for i in range(3)], version=version)
    assert nics(derive(world))[2] == want


@rule("T4")
@pytest.mark.parametrize("visible,want", [(2, [["0", "1"], ["2", "3"]]), (4, [["1", "2"], ["3", "0"]])])
def test_the_index_is_that_of_the_container(derive, visible, want):
    """The upper two of four GPUs: 2 and 3 where the container sees all, else 0 and 1."""
    world = World([gpu(i, claimed=i > 1) for i in range(4)], [nic(i) for i in range(4)])
    world.workers[0]["probe"]["visibleGpus"] = visible
    assert nics(derive(world)) == want


@rule("T5")
def test_cuda_visible_devices_changes_no_nic(derive):
    world = World(*two_sockets(), userEnv={"CUDA_VISIBLE_DEVICES": "3,2,1,0"})
    assert nics(derive(world)) == [["0"], ["1"], ["2"], ["3"]]


# ---- P: through a peer GPU ----

def one_far(far_first=False, **more):
    """A GPU beside the only NIC and one on the other socket."""
    roots = [B, A] if far_first else [A, B]
    world = World([gpu(i, root, numa=int(root == B)) for i, root in enumerate(roots)], [nic(0, A, 0)], **more)
    return world


@rule("P1", "G4")
def test_a_peer_on_the_switch_relays(derive):
    plan = derive(one_far())
    assert paths(plan) == ["PIX", "PXN"] and gdr(plan) == [True, True]
    assert "NIC_VIA_PXN" in codes(plan)


@rule("P2")
def test_no_relay_without_nvlink(derive):
    world = one_far()
    world.workers[0]["probe"]["nvlink"] = False
    assert paths(derive(world)) == ["PIX", "SYS"]


@rule("P2")
def test_no_relay_when_switched_off(derive):
    assert paths(derive(one_far(userEnv={"NCCL_PXN_DISABLE": "1"}))) == ["PIX", "SYS"]


@rule("P3")
def test_the_relay_must_be_on_a_switch(derive):
    """Behind the host bridge it serves nobody."""
    world = World([gpu(0, A, 0), gpu(1, B, 1)], [nic(0, C, 0)])
    assert paths(derive(world)) == ["PHB", "SYS"]


@rule("P3")
@pytest.mark.parametrize("version,env,want", [
    ("2.27.7", {}, "SYS"), ("2.27.7", {"NCCL_PXN_C2C": "1"}, "PXN"), ("2.28.9", {}, "PXN"),
    ("2.28.9", {"NCCL_PXN_C2C": "0"}, "SYS"),
])
def test_a_relay_on_a_chip_to_chip_link(derive, version, env, want):
    world = gb200(version, userEnv=env)
    world.nics.pop()
    world.workers = [world.worker(0)]
    assert paths(derive(world)) == ["P2C", want]


@rule("P4")
@pytest.mark.parametrize("version", ["2.26.6", "2.28.9", "2.30.7"])
def test_a_relay_without_gpudirect(derive, version):
    world = one_far(far_first=True, version=version)
    world.workers[0]["probe"]["gdr"] = {"peermem": False, "dmabuf": False}
    assert paths(derive(world)) == ["SYS", "PHB"]


@rule("P5")
def test_distant_nics_idle(derive):
    """Two aligned pairs and two crossed: the crossed GPUs share the aligned NICs."""
    gpus = [gpu(i, root) for i, root in enumerate([A, B, C, D])]
    world = World(gpus, [nic(0, A, 0), nic(1, B, 0), nic(2, "pci0000:e0", 0), nic(3, "pci0000:f0", 0)])
    for g, numa in zip(gpus, (0, 0, 1, 1)):
        g["numa"] = numa
    plan = derive(world)
    assert paths(plan) == ["PIX", "PIX", "PXN", "PXN"]
    assert {n for names in nics(plan)[2:] for n in names} <= {"0", "1"}
    assert [w["detail"] for w in plan["warnings"] if w["code"] == "NIC_UNUSED_P2P"] == ["mlx5_2,mlx5_3"]


# ---- G: GPUDirect RDMA ----

@rule("G1")
@pytest.mark.parametrize("shown,env,on", [
    ({"peermem": True, "dmabuf": False}, {}, True), ({"peermem": False, "dmabuf": True}, {}, True),
    ({"peermem": False, "dmabuf": False}, {}, False), ({}, {}, True),
    ({"peermem": False, "dmabuf": True}, {"NCCL_DMABUF_ENABLE": "0"}, False),
    ({"peermem": True, "dmabuf": True}, {"NCCL_DMABUF_ENABLE": "0"}, True),
])
def test_what_gpudirect_needs(derive, shown, env, on):
    world = World([gpu(0)], [nic(0)], userEnv=env)
    world.workers[0]["probe"]["gdr"] = shown
    plan = derive(world)
    assert gdr(plan) == [on] and ("GDR_UNAVAILABLE" in codes(plan)) != on
    assert paths(plan) == ["PIX" if on else "PHB"]  # staged through the GPU's CPU


@rule("G2")
@pytest.mark.parametrize("level,on", [
    (None, {"PIX": True, "PXB": True, "PHB": False}), ("PHB", {"PIX": True, "PXB": True, "PHB": True}),
    ("3", {"PIX": True, "PXB": True, "PHB": True}), ("PIX", {"PIX": True, "PXB": False, "PHB": False}),
    ("1", {"PIX": True, "PXB": False, "PHB": False}), ("LOC", {"PIX": False, "PXB": False, "PHB": False}),
    ("0", {"PIX": False, "PXB": False, "PHB": False}), ("17", {"PIX": True, "PXB": True, "PHB": True}),
    ("phb", {"PIX": True, "PXB": True, "PHB": False}), ("", {"PIX": True, "PXB": True, "PHB": False}),
])
@pytest.mark.parametrize("path", ["PIX", "PXB", "PHB"])
def test_the_level(derive, level, on, path):
    """NCCL says nothing of a text that it does not know."""
    world = World([gpu(0, numa=0)], [nic(0, B if path == "PHB" else A, 0)],
                  userEnv={} if level is None else {"NCCL_NET_GDR_LEVEL": level})
    world.workers[0]["probe"]["nestedSwitch"] = path == "PXB"
    assert gdr(derive(world)) == [on[path]]


@rule("G3")
@pytest.mark.parametrize("version,env,path,on", [
    ("2.26.6", {"NCCL_NET_GDR_C2C": "0"}, "PHB", False), ("2.26.6", {"NCCL_NET_GDR_C2C": "1"}, "PHB", True),
    ("2.26.6", {"NCCL_NET_GDR_C2C": "1", "NCCL_NET_GDR_LEVEL": "PIX"}, "PHB", True),
    ("2.27.3", {}, "P2C", True), ("2.28.9", {"NCCL_NET_GDR_LEVEL": "PIX"}, "P2C", True),
    ("2.28.9", {"NCCL_NET_GDR_C2C": "0"}, "P2C", False), ("2.29.2", {}, "P2C", True),
    ("2.29.2", {"NCCL_NET_GDR_LEVEL": "PIX"}, "P2C", False), ("2.30.7", {"NCCL_NET_GDR_LEVEL": "PXB"}, "P2C", False),
    ("2.30.7", {"NCCL_NET_GDR_LEVEL": "P2C"}, "P2C", True), ("2.30.7", {"NCCL_NET_GDR_C2C": "0"}, "P2C", False),
])
def test_chip_to_chip(derive, version, env, path, on):
    plan = derive(gb200(version, userEnv=env))
    assert paths(plan) == [path] * 2 and gdr(plan) == [on] * 2
    assert ("C2C_GDR_OFF" in codes(plan)) != on


@rule("G3")
def test_chip_to_chip_needs_a_switch_in_226(derive):
    """Off by default there: every profile of such machines sets it."""
    for labels in ({INSTANCE: "Standard_ND128isr_GB300_v6"}, {INSTANCE: "BM.GPU.GB200-v3.4"},
                   {INSTANCE: "a4x-highgpu-4g"}, {INSTANCE: "p6e-gb200.36xlarge"}):
        plan = derive(gb200("2.26.6", labels))
        assert plan["env"]["NCCL_NET_GDR_C2C"] == "1" and gdr(plan) == [True, True]


@rule("G5")
def test_a_level_of_a_later_version_is_no_level(derive):
    """P2C came with 2.27: before, NCCL keeps its default."""
    world = World([gpu(0)], [nic(0)], version="2.26.6", userEnv={"NCCL_NET_GDR_LEVEL": "P2C"})
    world.workers[0]["probe"]["nestedSwitch"] = True
    assert gdr(derive(world)) == [True]


@rule("S6")
@pytest.mark.parametrize("upper_nics,path,score", [(False, "PIX", 1.0), (True, "SYS", 40 / 200)])
def test_four_gpus_and_four_nics(derive, upper_nics, path, score):
    """The machine's halves: aligned, or lower GPUs with upper NICs, all over one link."""
    roots = [[A, A, B, B], [C, C, D, D]][upper_nics]
    world = World([gpu(i, [A, B][i // 2], 0) for i in range(4)],
                  [nic(i, roots[i], int(upper_nics)) for i in range(4)])
    world.workers[0]["probe"]["interSocketGBs"] = 40.0
    plan = derive(world)
    assert paths(plan) == [path] * 4 and gdr(plan) == [not upper_nics] * 4
    # 4 GPUs of 50 GB/s; crossed each has half of that, together 100, of which the link carries 40
    assert plan["jobScore"] == pytest.approx(score)


# ---- A: reading what was allocated ----

@rule("A1")
def test_names_say_nothing(derive):
    world = World([gpu(0, name="mlx5-nic")], [nic(0, name="gpu-7-h100")])
    plan = derive(world)
    assert uses(plan, "gpu") == ["mlx5-nic"] and nics(plan) == [["0"]]


@rule("A2")
def test_interfaces_have_the_pods_names(derive):
    n = nic(0, ifName="eth1", rdma=False)
    world = World([gpu(i) for i in range(8)], [n], {INSTANCE: "a3-megagpu-8g"})
    world.workers[0]["status"] = [{"driver": "dra.net", "pool": "node-0", "device": n["name"],
                                   "networkData": {"interfaceName": "data0"}}]
    assert derive(world)["env"]["NCCL_FASTRAK_IFNAME"] == "data0"


def numa_case(rung):
    """A machine on which the GPU's NUMA node is known by this rung and all below it, which say otherwise."""
    order = ["own", "root", "sysfs", "pair", "none"]
    known = order[order.index(rung):]
    g = gpu(0, A, numa=1 if "own" == rung else None, pci="0001:00:00.0")
    paired = nic(1, B, 1 if rung == "pair" else 0, pci="0101:00:00.0")
    others = [nic(0, A if "root" in known else C, 1 if rung == "root" else 0)]
    world = World([g], others + [paired], {INSTANCE: "Standard_ND96isr_H100_v5"} if "pair" in known else {})
    if "sysfs" in known:
        world.workers[0]["probe"]["pciNuma"] = {"0001:00:00.0": 1 if rung == "sysfs" else 0}
    return world


@rule("A3")
@pytest.mark.parametrize("rung", ["own", "root", "sysfs", "pair"])
def test_numa_node_of_a_gpu(derive, rung):
    """Its own, a NIC's of its root, the pod's sysfs, the profile's table: the first that is known."""
    assert uses(derive(numa_case(rung)), "numa") == [1]


@rule("A3")
@pytest.mark.parametrize("domain,numa", [("0008", 0), ("0009", 0), ("0018", 1), ("0019", 1)])
def test_numa_node_by_the_domain(derive, domain, numa):
    world = World([gpu(0, None, pci=f"{domain}:01:00.0", productName="NVIDIA GB200")], [nic(0, B, 0)],
                  {INSTANCE: "BM.GPU.GB200-v3.4"})
    assert uses(derive(world), "numa") == [numa]


@rule("A3", "W:NUMA_UNKNOWN")
def test_numa_node_unknown(derive):
    plan = derive(numa_case("none"))
    assert uses(plan, "numa") == [None] and uses(plan, "cpus") == [None] and "NUMA_UNKNOWN" in codes(plan)


@rule("A3")
def test_a_gpu_whose_numa_node_is_not_known_crosses_none(derive):
    plan = derive(World([gpu(0, A)], [nic(0, B, 0)]))
    assert paths(plan) == ["SYS"] and "NUMA_UNKNOWN" in codes(plan) and "MISALIGNED_SYS" not in codes(plan)


@rule("A3")
def test_the_nic_of_the_root_need_not_be_claimed(derive):
    world = World([gpu(0, A)], [nic(0, B, 0), nic(1, A, 1, claimed=False)])
    assert uses(derive(world), "numa") == [1]


@rule("A4", "W:IBDEV_UNKNOWN")
@pytest.mark.parametrize("shown,published,want", [
    ({"name": "ibp3", "port": 2}, "mlx5_9", "=ibp3:2"), (None, "mlx5_9", "=mlx5_9:1"), (None, None, None)])
def test_name_of_the_ib_device(derive, shown, published, want):
    """What the pod shows at the address, then what the driver publishes, else no list."""
    plan = derive(World([gpu(0)], [nic(0, ib=shown and dict(IB, **shown), rdmaDevice=published)]))
    assert plan["workers"][0]["env"].get("NCCL_IB_HCA") == want
    assert ("IBDEV_UNKNOWN" in codes(plan)) == (want is None)


@rule("A4")
def test_one_unknown_name_and_there_is_no_list(derive):
    plan = derive(World([gpu(0)], [nic(0), nic(1, ib=None)]))
    assert "NCCL_IB_HCA" not in plan["workers"][0]["env"]


@rule("A5", "W:EXTRA_IB_DEVICES_VISIBLE")
def test_only_claimed_devices_are_used(derive):
    world = World([gpu(0)], [nic(0)])
    world.workers[0]["probe"]["visibleIbdevs"] += ["mlx5_7", "mlx5_8"]
    plan = derive(world)
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:1"
    assert [w["detail"] for w in plan["warnings"] if w["code"] == "EXTRA_IB_DEVICES_VISIBLE"] == ["mlx5_7,mlx5_8"]


@rule("A7", "W:GPU_VENDOR")
@pytest.mark.parametrize("kind,vendor,known", [("amdgpu", "AMD", "HIP_VISIBLE_DEVICES"), ("xpu-gpu", "Intel", None)])
def test_gpus_of_other_vendors(derive, kind, vendor, known):
    """By the type's words; the driver's name tells the vendor."""
    world = World([gpu(0, type=kind)], [nic(0)])
    plan = derive(world)
    assert [rank["gpu"] for rank in plan["workers"][0]["ranks"]] == ["gpu-0"]
    world = unclaimed(World([gpu(0)], [nic(0)]))
    world.workers[0]["probe"]["gpus"][0]["vendor"] = vendor
    plan = derive(world)
    names = [name for name in plan["workers"][0]["ranks"][0]["env"] if name.endswith("VISIBLE_DEVICES")]
    assert names == ([known] if known else []) and "GPU_VENDOR" in codes(plan)


@rule("A7")
def test_accelerators_that_nothing_drives(derive):
    world = unclaimed(World([], [nic(0)], ranksPerPod="pod"))
    world.workers[0]["probe"].update(gpus=[], visibleGpus=0, otherGpus={"Intel": 2})
    assert "accelerators: 2 of Intel" in [w["detail"] for w in derive(world)["warnings"] if w["code"] == "GPU_VENDOR"][0]


@rule("A8")
def test_the_requests_role(derive):
    """Attributes that say nothing of a type: what was asked for as a NIC is one, and the pod shows that it does RDMA."""
    plain = dict(nic(0), rdma=None)
    plan = derive(World([gpu(0)], [plain]))
    assert nics(plan) == [["0"]] and codes(plan) == []


# ---- N: which NICs carry data ----

def port(number=1, state="ACTIVE", link="InfiniBand", mbps=400000, gids=()):
    return {"number": number, "state": state, "linkLayer": link, "rateMbps": mbps, "gids": list(gids)}


def shown(i, *ports, **more):
    """A claimed NIC as a probe shows it, port by port."""
    return nic(i, ib=dict({"name": f"mlx5_{i}", "ports": list(ports)}, **more))


def unclaimed(world):
    """The same devices in a pod whose claims nobody has: what it shows is all that is known."""
    for entry in world.workers:
        entry["probe"]["gpus"] = [{"pci": g["pci"], "root": g["root"], "numa": g["numa"], "uuid": g["uuid"],
                                   "product": g["productName"]} for g in world.gpus]
        for n in world.nics:
            entry["probe"]["ibdevs"][n["ib"]["name"]].update(root=n["root"], numa=n["numa"])
    world.claimed = False
    return world


def left_out(plan):
    return [w["detail"] for w in plan["warnings"] if w["code"] == "NIC_LEFT_OUT"]


@rule("N1", "W:NIC_LEFT_OUT")
def test_ports_that_are_not_active(derive):
    made = [shown(0, port(1, "DOWN"), port(2)), shown(1, port(1, "INIT")), shown(2, port(1), port(2))]
    plan = derive(World([gpu(0)], made))
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:2,mlx5_2:1,mlx5_2:2"
    assert left_out(plan) == ["mlx5_1 (port 1 is INIT)"]
    plan = derive(World([gpu(0)], [shown(0, port(1, "DOWN"))]))
    assert plan["refuse"]["code"] == "NO_RDMA_NIC" and "mlx5_0 (port 1 is DOWN)" in plan["refuse"]["detail"]


@rule("N1")
def test_a_state_that_is_not_known(derive):
    made = [shown(0, port(1, None)), shown(1)]
    assert derive(World([gpu(0)], made))["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"


@rule("N2")
def test_the_uplink_carries_no_data(derive):
    made = [shown(0, port(link="Ethernet"), uplink="eth0"), shown(1, port(link="Ethernet"))]
    plan = derive(World([gpu(0)], made))
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert left_out(plan) == ["mlx5_0 (part of the uplink eth0)"]
    assert left_out(derive(World([gpu(0)], made[:1]))) == []  # there is no other


@rule("N3")
@pytest.mark.parametrize("links,kept", [
    ("EIII", "123"), ("IIIE", "012"), ("EEI", "01"), ("IE", "0"), ("EI", "1")])
def test_the_link_layer_of_most(derive, links, kept):
    names = {"I": "InfiniBand", "E": "Ethernet"}
    plan = derive(World([gpu(0)], [shown(i, port(link=names[link])) for i, link in enumerate(links)]))
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_{i}:1" for i in kept)
    assert plan["profile"] == ("generic-ib" if links[int(kept[0])] == "I" else "generic-roce")


@rule("N3")
def test_the_link_layer_of_slices(derive):
    """Nothing was probed: the attributes tell as much."""
    made = [nic(i, ib=None, rdmaDevice=f"mlx5_{i}", encapsulation="infiniband") for i in range(3)]
    made.append(nic(3, ib=None, rdmaDevice="mlx5_3", ifName="ens3"))
    plan = derive(World([gpu(0)], made))
    assert left_out(plan) == ["mlx5_3 (Ethernet, most others are InfiniBand)"]


@rule("N4")
def test_slower_nics_carry_data_where_they_are_claimed(derive):
    made = [shown(i, port(mbps=mbps)) for i, mbps in enumerate((400000, 400000, 100000))]
    assert derive(World([gpu(0)], made))["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1,mlx5_2:1"
    plan = derive(unclaimed(World([gpu(0)], made)))
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    assert left_out(plan) == ["mlx5_2 (100 Gb/s, others have 400)"]


# ---- D: the steps ----

@rule("D1", "W:NIC_NOT_RDMA")
def test_nics_without_rdma_are_dropped(derive):
    plan = derive(World([gpu(0)], [nic(0), nic(1, rdma=False, ib=None)]))
    assert nics(plan) == [["0"]] and codes(plan) == ["NIC_NOT_RDMA"]


@rule("D1")
def test_an_rdma_nic_that_no_profile_knows(derive):
    """Not over TCP in silence."""
    made = [shown(0, port(link="other"))]
    assert derive(World([gpu(0)], made))["refuse"]["code"] == "NO_RDMA_NIC"
    assert derive(World([gpu(0)], made, network="any"))["env"]["NCCL_NET"] == "Socket"
    assert derive(World([gpu(0)], made, profile="aws-efa"))["refuse"] is None


@rule("D1", "W:NO_RDMA_NIC")
@pytest.mark.parametrize("left", [[], [nic(0, rdma=False, ib=None)]])
def test_no_rdma_nic(derive, left):
    plan = derive(World([gpu(0)], left))
    assert plan["refuse"]["code"] == "NO_RDMA_NIC" and plan["refuse"]["worker"] == 0
    plan = derive(World([gpu(0)], left, network="any"))
    assert plan["profile"] == "socket" and plan["env"]["NCCL_NET"] == "Socket" and "NO_RDMA_NIC" in codes(plan)


@rule("D1")
@pytest.mark.parametrize("addressed,network,first", [(2, "any", "=net1,net2"), (1, "any", "=eth0"), (2, "rdma", None)])
def test_nics_without_rdma_carry_tcp_where_all_workers_have_addresses_on_theirs(derive, addressed, network, first):
    world = World([], [nic(i, rdma=False, ib=None) for i in range(3)], workers=2, network=network, ranksPerPod="pod")
    world.launcher["gpus"] = 0
    for w, worker in enumerate(world.workers):
        worker["status"] = [{"driver": "dra.net", "pool": worker["node"], "device": name, "networkData": {
            "interfaceName": f"net{i + 1}", **({"ips": [f"10.0.{i}.{w + 1}/24"]} if i < 2 and w < addressed else {})}}
                            for i, name in enumerate(worker["nics"])]
    plan = derive(world)
    if network == "rdma":
        assert plan["refuse"]["code"] == "NO_RDMA_NIC"
        return
    env = plan["env"] | plan["workers"][0]["env"]
    assert env["NCCL_SOCKET_IFNAME"] == first
    assert env["OMPI_MCA_btl_tcp_if_include"] == env["UCX_NET_DEVICES"] == first.lstrip("=")
    assert "NIC_NOT_RDMA" in codes(plan)


@rule("D1", "W:NO_GPU")
def test_no_gpu_is_refused_where_gpus_were_asked_for(derive):
    world = World([gpu(0, claimed=False)], [nic(0)])
    assert derive(world)["refuse"]["code"] == "NO_GPU"
    world.launcher.update(gpus=0, ranksPerPod="pod")
    assert derive(world)["refuse"] is None


@rule("D2")
def test_order_of_detection(derive):
    """What is asked for, instance type, attribute of the node's NICs, label, link layer."""
    facts = [("launcher", "generic-ib"), (INSTANCE, "p5en.48xlarge"), ("azure.dra.net/vmSize", "Standard_ND96amsr_A100_v4"),
             ("cloud.google.com/gke-accelerator", "nvidia-b200"), ("layer", "Ethernet")]
    want = ["generic-ib", "aws-efa", "azure-ndv4", "gke-a4", "generic-roce"]
    for known in range(len(facts)):
        here = dict(facts[known:])
        n = nic(0, ib=dict(ROCE, name="mlx5_0"))
        if "azure.dra.net/vmSize" in here:
            n["azure.dra.net/vmSize"] = here["azure.dra.net/vmSize"]
        world = World([gpu(0)], [n], {key: text for key, text in here.items() if "/" in key and "azure" not in key})
        if "launcher" in here:
            world.launcher["profile"] = here["launcher"]
        assert derive(world)["profile"] == want[known]


@rule("D2")
def test_an_empty_attribute_tells_nothing(derive):
    n = nic(0, **{"oke.dra.net/gpuMemoryFabricId": "", "oke.dra.net/rackId": "r7"})
    assert derive(World([gpu(0)], [n]))["profile"] == "oci-roce"
    n["oke.dra.net/gpuMemoryFabricId"] = "ocid1.fabric"
    assert derive(World([gpu(0)], [n]))["profile"] == "oci-gb200"


@rule("D2", "W:MIXED_PROFILES")
def test_workers_of_two_profiles(derive):
    world = World([gpu(0)], [nic(0)], {INSTANCE: "p5.48xlarge"}, workers=2)
    world.workers[1]["labels"][INSTANCE] = "gx3d-160x1792x8h100"
    assert derive(world)["refuse"] == {"code": "MIXED_PROFILES", "worker": 1, "detail": derive(world)["refuse"]["detail"]}


@rule("D3")
def test_order_of_pci_addresses(derive):
    world = World([gpu(2), gpu(0), gpu(1)], [nic(1), nic(0), nic(2)])
    plan = derive(world)
    assert uses(plan, "gpu") == ["gpu-0", "gpu-1", "gpu-2"]
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1,mlx5_2:1"


@rule("D3")
def test_without_addresses_by_index(derive):
    gpus = [gpu(i, None, name=f"g{i}", index=9 - i) for i in range(3)]
    for g in gpus:
        g["pci"] = None
    assert uses(derive(World(gpus, [nic(0)])), "gpu") == ["g2", "g1", "g0"]


@rule("D4")
@pytest.mark.parametrize("roots,numas,nested,path", [
    ((A, A), (0, 0), False, "PIX"), ((A, A), (0, 1), False, "PIX"), ((A, A), (0, 0), True, "PXB"),
    ((A, B), (0, 0), False, "PHB"), ((A, B), (0, 0), True, "PHB"), ((A, B), (0, 1), False, "SYS"),
    ((None, None), (0, 0), False, "PHB"), ((None, B), (None, 0), False, "SYS"),
])
def test_class_of_a_pair(derive, roots, numas, nested, path):
    world = World([gpu(0, roots[0], numas[0])], [nic(0, roots[1], numas[1])])
    world.workers[0]["probe"]["nestedSwitch"] = nested
    assert paths(derive(world)) == [path]


@rule("D4")
@pytest.mark.parametrize("rail,path", [(4, "PIX"), (5, "PIX"), (6, "PHB"), (7, "PHB"), (3, "SYS"), (0, "SYS")])
def test_class_by_gkes_names(derive, rail, path):
    """GPU 5 of a machine whose drivers publish no root: pairs share a switch, fours a socket."""
    world = World([gpu(5, None, index=5)], [nic(0, None, None, ifName=f"gpu{rail}rdma0")], {INSTANCE: "a4-highgpu-8g"})
    assert paths(derive(world)) == [path]
    world.labels = {}
    world.workers = [world.worker(0)]
    assert paths(derive(world)) == ["SYS"]  # the names mean nothing elsewhere


@rule("D4")
@pytest.mark.parametrize("env,there,path", [
    ({}, True, "PIX"), ({}, False, "PHB"), ({"NCCL_TOPO_FILE": ""}, True, "PHB"),
    ({"NCCL_TOPO_FILE": "/mine.xml"}, True, "PIX")])
def test_class_by_the_topology_file(derive, env, there, path):
    world = World([gpu(0, "pci0001:00", 0, pci="0001:00:00.0")], [nic(0, "pci0101:00", 0, pci="0101:00:00.0")],
                  {INSTANCE: "Standard_ND96isr_H100_v5"}, userEnv=env)
    world.workers[0]["probe"].update(topoFilePairs=[["0001:00:00.0", "0101:00:00.0"]],
                                     files={"/opt/microsoft/ndv5/topo.xml": there})
    assert paths(derive(world)) == [path]


@rule("D4")
@pytest.mark.parametrize("shown,path", [("PIX", "PIX"), ("PXB", "PXB"), ("PHB", "PHB"), ("NODE", "PHB"), ("SYS", "SYS")])
def test_the_pods_sysfs_knows_better_than_roots(derive, shown, path):
    """Two root ports of one root bus are PHB, although pcieRoot is equal."""
    world = World([gpu(0)], [nic(0)])
    world.workers[0]["probe"]["paths"] = {"0000:11:00.0": {"0000:31:00.0": shown}}
    assert paths(derive(world)) == [path]


@rule("D5")
def test_ranks_are_numbered_worker_by_worker(derive):
    plan = derive(World(*two_sockets(), workers=2))
    assert [rank["rank"] for worker in plan["workers"] for rank in worker["ranks"]] == list(range(8))
    last = plan["workers"][1]["ranks"][3]["env"]
    assert last == {"RANK": "7", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4",
                    "CUDA_VISIBLE_DEVICES": "0,1,2,3"}


@rule("D5")
def test_one_rank_a_pod(derive):
    plan = derive(World(*two_sockets(), workers=2, ranksPerPod="pod"))
    assert plan["workers"][1]["env"]["RANK"] == "1" and plan["workers"][1]["env"]["WORLD_SIZE"] == "2"
    assert plan["workers"][1]["env"]["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


@rule("D6")
@pytest.mark.parametrize("visible,want", [(2, "0,1"), (8, "GPU-0000,GPU-0001")])
def test_cuda_devices(derive, visible, want):
    world = World([gpu(0), gpu(1)], [nic(0)])
    world.workers[0]["probe"]["visibleGpus"] = visible
    assert derive(world)["workers"][0]["ranks"][1]["env"]["CUDA_VISIBLE_DEVICES"] == want


@rule("D6")
def test_cuda_devices_without_uuids(derive):
    """The second of two GPUs in a pod that sees both, of a driver that publishes no UUID."""
    world = World([gpu(0, claimed=False), gpu(1, uuid=None)], [nic(0)])
    world.workers[0]["probe"].update(visibleGpus=2, gpus=[{"pci": f"0000:{0x11 + i:02x}:00.0"} for i in range(2)])
    assert derive(world)["workers"][0]["ranks"][0]["env"]["CUDA_VISIBLE_DEVICES"] == "1"


@rule("D6", "W:MIG_NO_P2P", "W:MIG_SAME_PARENT")
def test_mig(derive):
    slices = [gpu(i, type="mig", uuid=f"MIG-{i}", parentUUID=f"GPU-{i}") for i in range(2)]
    plan = derive(World(slices, [nic(0)]))
    assert [rank["env"]["CUDA_VISIBLE_DEVICES"] for rank in plan["workers"][0]["ranks"]] == ["MIG-0", "MIG-1"]
    assert [rank["env"]["LOCAL_RANK"] for rank in plan["workers"][0]["ranks"]] == ["0", "0"]
    assert "MIG_NO_P2P" in codes(plan)
    slices[1]["parentUUID"] = "GPU-0"
    plan = derive(World(slices, [nic(0)]))
    assert plan["refuse"]["code"] == "MIG_SAME_PARENT" and codes(plan) == ["MIG_NO_P2P"]


@rule("D7")
@pytest.mark.parametrize("gpus,cpuset,want", [
    (1, None, ["0-7,16-23"]), (2, None, ["0-3,16-19", "4-7,20-23"]),
    (3, None, ["0-1,16-17", "2-4,18-20", "5-7,21-23"]), (2, "2-5,20", ["2-3", "4-5,20"]), (2, "8-9", [None, None]),
    (2, "0-3,16-19", ["0-1,16-17", "2-3,18-19"]), (2, "0,4,16,20", ["0,16", "4,20"]),
    (2, "0,2,4-5,16,18,20-21", ["0,2,16,18", "4-5,20-21"]), (4, "1,3-5,17,19-21", ["1,17", "3,19", "4,20", "5,21"]),
    (4, "0,2,4,6-7,16,18,20,22-23", ["0,16", "2,18", "4,20", "6-7,22-23"]),
    (4, "1,3,17,19", ["1", "17", "3", "19"]), (4, "1,17", ["1,17"] * 4),
])
def test_cpus(derive, gpus, cpuset, want):
    """The cores of the NUMA node that the pod may use, in equal parts for the ranks of the node."""
    world = World([gpu(i) for i in range(gpus)], [nic(0)])
    if cpuset:
        world.workers[0]["probe"]["cpuset"] = cpuset
    assert uses(derive(world), "cpus") == want


@rule("D7")
@pytest.mark.parametrize("gpus,want", [
    (1, ["0,2,4,6,8,10,12,14"]), (2, ["0,2,8,10", "4,6,12,14"]), (4, ["0,8", "2,10", "4,12", "6,14"]), (3, ["0,8", "2,10", "4,6,12,14"]),
])
def test_cpus_that_are_numbered_in_turns(derive, gpus, want):
    """Each second CPU is of the other NUMA node; the second half are the other hardware threads of the same cores."""
    world = World([gpu(i) for i in range(gpus)], [nic(0)])
    world.workers[0]["probe"]["numaCpus"] = {"0": "0,2,4,6,8,10,12,14", "1": "1,3,5,7,9,11,13,15"}
    assert uses(derive(world), "cpus") == want


@rule("D7")
def test_each_node_is_cut_for_its_own_ranks(derive):
    assert uses(derive(World([gpu(0, A), gpu(1, B), gpu(2, B)], [nic(0, A, 0), nic(1, B, 1)])), "cpus") == [
        "0-7,16-23", "8-11,24-27", "12-15,28-31"]


@rule("D8", "W:USER_OVERRIDES_PROFILE")
def test_the_users_values_win(derive):
    env = {"NCCL_NET": "Socket", "NCCL_IB_HCA": "mlx5", "NCCL_BUFFSIZE": "1", "GLOO_SOCKET_IFNAME": "eth0"}
    plan = derive(World([gpu(0)], [nic(0)], userEnv=env))
    assert all(plan["env"][name] == value for name, value in env.items())
    assert "NCCL_IB_HCA" not in plan["workers"][0]["env"]
    said = [w["detail"] for w in plan["warnings"] if w["code"] == "USER_OVERRIDES_PROFILE"]
    assert sorted(text.split("=")[0] for text in said) == ["NCCL_IB_HCA", "NCCL_NET"]  # what we would set otherwise


@rule("D12")
@pytest.mark.parametrize("user,left_out", [
    ({"OMPI_MCA_btl_tcp_if_exclude": "lo,docker0"}, ["OMPI_MCA_btl_tcp_if_include"]),
    ({"UCX_NET_DEVICES": "mlx5_0:1"}, []), ({"UCX_TLS": "rc,sm,self"}, ["UCX_NET_DEVICES"]),
    ({"UCX_TLS": "tcp,self"}, []), ({"NCCL_NET_PLUGIN": "spcx"}, ["NCCL_NET"]), ({"NCCL_NET_PLUGIN": "none"}, []),
    ({"NCCL_IB_DISABLE": "1"}, []), ({"NCCL_COLLNET_ENABLE": "1"}, ["NCCL_NET"]),
    ({"NCCL_COLLNET_ENABLE": "1", "NCCL_NET": "IB"}, []),
], ids=str)
def test_what_the_users_values_rule_out(derive, user, left_out):
    """Libraries fail where both are set, or ignore what the user set."""
    names = {"OMPI_MCA_btl_tcp_if_include", "UCX_NET_DEVICES", "NCCL_NET"}
    plan = derive(World([gpu(0)], [nic(0)], workers=2, userEnv=user))
    env = dict(plan["env"], **plan["workers"][1]["env"])
    assert sorted(names - set(env)) == left_out and all(env[name] == value for name, value in user.items())
    said = [w["detail"] for w in plan["warnings"] if f"{list(user)[0]}=" in w["detail"] and "is not set" in w["detail"]]
    assert [re.search(r": (\w+) is not set: ", text)[1] for text in said] == left_out


@rule("D12")
@pytest.mark.parametrize("user,fails", [
    ({"NCCL_IB_DISABLE": "1"}, True), ({"NCCL_IB_DISABLE": "0"}, False), ({"NCCL_IB_DISABLE": "1", "NCCL_NET": "Socket"}, False)],
    ids=str)
def test_rdma_is_required_and_disabled(derive, user, fails):
    """NCCL ends with an error, as the job wants it, and its words do not say why."""
    plan = derive(World([gpu(0)], [nic(0)], userEnv=user))
    said = [w["detail"] for w in plan["warnings"] if "network: any" in w["detail"]]
    assert said == ["NCCL_IB_DISABLE=1: NCCL finds no network beside NCCL_NET=IB, and ends; network: any lets it use TCP"] * fails


@rule("D8", "W:PROFILE_FILE_MISSING")
def test_a_file_that_one_worker_lacks(derive):
    world = World(*two_sockets(), labels={INSTANCE: "a4-highgpu-8g"}, workers=2)
    files = {"/usr/local/gib/scripts/set_nccl_env.sh": True, "/usr/local/gib/configs/tuner_config_a4.txtpb": True}
    for worker in world.workers:
        worker["probe"]["files"] = dict(files)
    assert derive(world)["env"]["NCCL_TUNER_CONFIG_PATH"] == "/usr/local/gib/configs/tuner_config_a4.txtpb"
    world.workers[1]["probe"]["files"]["/usr/local/gib/configs/tuner_config_a4.txtpb"] = False
    plan = derive(world)
    assert "NCCL_TUNER_CONFIG_PATH" not in plan["env"]
    assert codes(plan, 0) == [] and codes(plan, 1) == ["PROFILE_FILE_MISSING"]


@rule("D8")
def test_a_file_is_believed_where_nothing_was_probed(derive):
    world = World([gpu(0)], [nic(0)], {INSTANCE: "a4-highgpu-8g"})
    world.workers[0]["probe"] = None
    assert "NCCL_TUNER_CONFIG_PATH" in derive(world)["env"]


@rule("D9")
def test_the_vendors_file_confirms(derive):
    """The label says a4; an image without the library starts no RDMA."""
    world = World([gpu(0)], [nic(0)], {INSTANCE: "a4-highgpu-8g"})
    world.workers[0]["probe"]["files"] = {"/usr/local/gib/configs/tuner_config_a4.txtpb": True}
    plan = derive(world)
    assert plan["env"]["NCCL_NET"] == "gIB" and codes(plan) == ["PROFILE_FILE_MISSING"]


GIB = "/usr/local/gib/scripts/set_nccl_env.sh"


@rule("D10", "W:VENDOR_SCRIPT_DIFFERS")
@pytest.mark.parametrize("script,user,expected", [
    ({"NCCL_IB_TC": "60"}, {}, {"NCCL_IB_TC": "60", "NCCL_NET": "gIB", "NCCL_CROSS_NIC": None}),
    ({"NCCL_NEW": "1"}, {}, {"NCCL_NEW": "1", "NCCL_IB_TC": None}),
    ({"NCCL_NET": "other"}, {}, {"NCCL_NET": "other"}),
    ({"NCCL_SOCKET_IFNAME": "eth9"}, {}, {"NCCL_SOCKET_IFNAME": "eth0"}),
    ({"NCCL_IB_TC": "60"}, {"NCCL_IB_TC": "7"}, {"NCCL_IB_TC": "7"}),
], ids=str)
def test_the_vendors_script_knows_better(derive, script, user, expected):
    world = World([gpu(0)], [nic(0)], {INSTANCE: "a4-highgpu-8g"}, userEnv=user)
    world.workers[0]["probe"]["script"] = {"path": GIB, "env": script}
    plan = derive(world)
    assert {name: plan["env"].get(name) for name in expected} == expected
    assert "VENDOR_SCRIPT_DIFFERS" in codes(plan)


@rule("D10", "W:VENDOR_SCRIPT_NOT_USED")
def test_a_script_in_vain_leaves_the_table(derive):
    world = World([gpu(0)], [nic(0)], {INSTANCE: "a4-highgpu-8g"})
    world.workers[0]["probe"]["script"] = {"path": GIB, "reason": "ended with status 1"}
    plan = derive(world)
    assert plan["env"]["NCCL_IB_TC"] == "52" and codes(plan) == ["VENDOR_SCRIPT_NOT_USED"]


@rule("D11")
@pytest.mark.parametrize("product,there,profile", [
    ("NVIDIA B200", True, "gke-a4"), ("NVIDIA H200", True, "gke-a3u"), ("NVIDIA GB200", True, "gke-a4x"),
    ("NVIDIA B200", False, "generic-roce"), ("NVIDIA H100 80GB HBM3", True, "generic-roce"), (None, True, "generic-roce"),
])
def test_the_vendors_file_and_the_gpu_tell(derive, product, there, profile):
    world = World([gpu(0)], [nic(0, ib=dict(ROCE, name="mlx5_0"))])
    world.workers[0]["probe"].update(files={GIB: there}, gpus=[{"pci": "0000:11:00.0", "product": product}])
    assert derive(world)["profile"] == profile


@rule("A6", "W:METADATA_NOT_USED")
@pytest.mark.parametrize("told,rails,warned", [
    ({"ifName": "gpu7rdma0"}, [7], []),
    ({"ifName": "gpu7rdma0", "resource.kubernetes.io/pciBusID": "0000:99:00.0"}, [0], ["METADATA_NOT_USED"]),
    ({}, [0], []),
], ids=str)
def test_device_metadata_comes_last(derive, told, rails, warned):
    """The interface's name on the host, which tells the rail, stands nowhere else; a slice is not contradicted."""
    world = World([gpu(0)], [nic(0)])
    device = {"driver": "dra.net", "pool": "node-0", "name": world.nics[0]["name"],
              "attributes": {name: {"string": text} for name, text in told.items()}}
    world.workers[0]["probe"]["metadata"] = [{
        "kind": "DeviceMetadata", "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "metadata": {"name": "nics"}, "requests": [{"name": "nic", "devices": [device]}]}]
    plan = derive(world)
    assert uses(plan, "rails") == [rails] and codes(plan) == warned


# ---- H: NCCL_IB_HCA, NCCL_IB_GID_INDEX ----

@rule("H1")
@pytest.mark.parametrize("labels,auto", [
    ({}, True), ({INSTANCE: "a4-highgpu-8g"}, False), ({INSTANCE: "a4x-highgpu-4g"}, False),
    ({INSTANCE: "p5.48xlarge"}, False), ({INSTANCE: "BM.GPU.H100.8"}, True),
    ({INSTANCE: "Standard_ND96isr_H100_v5"}, True)])
@pytest.mark.parametrize("wish", [None, "always", "never"])
def test_when_the_list_is_set(derive, labels, auto, wish):
    plan = derive(World([gpu(0)], [nic(0), nic(1)], labels, **({"hcaList": wish} if wish else {})))
    want = {"always": True, "never": False}.get(wish, auto)
    assert plan["workers"][0]["env"].get("NCCL_IB_HCA") == ("=mlx5_0:1,mlx5_1:1" if want else None)


@rule("H1")
def test_the_list_of_a_tcpxo_machine_is_never_set(derive):
    world = World([gpu(i) for i in range(8)], [nic(0, rdma=False, ifName="eth1")], {INSTANCE: "a3-megagpu-8g"},
                  hcaList="always")
    assert "NCCL_IB_HCA" not in derive(world)["workers"][0]["env"]


V4, V6, LINK = "10.0.0.2", "fd93::7", "fe80::1"


def table(*addresses):
    """Each address with a RoCE v1 and a v2 entry; None: an interface of another namespace."""
    return [{"index": 2 * i + k, "address": address or "10.9.9.9", "type": ["RoCE v1", "RoCE v2"][k] if address else None}
            for i, address in enumerate(addresses) for k in range(2)]


def roce(*tables, version="2.28.9", **more):
    return World([gpu(0)], [shown(i, port(link="Ethernet", gids=one)) for i, one in enumerate(tables)],
                 version=version, **more)


@rule("H2")
@pytest.mark.parametrize("version,addresses,want", [
    ("2.20.5", (LINK, V4), "3"), ("2.21.5", (LINK, V4), None), ("2.21.5", (LINK, V4, None), "3"),
    ("2.26.2", (LINK, V4, None), None), ("2.26.2", (None, None, V4), "5")])
def test_gid_index_by_version(derive, version, addresses, want):
    env = derive(roce(table(*addresses), table(*addresses), version=version))["workers"][0]["env"]
    assert env.get("NCCL_IB_GID_INDEX") == want and env.get("UCX_IB_GID_INDEX") == (want if want == "5" else None)


@rule("H2", "D12")
@pytest.mark.parametrize("user,version,want", [
    ({}, "2.28.9", "5"), ({"NCCL_IB_ADDR_RANGE": "10.1.0.0/16"}, "2.28.9", None),
    ({"NCCL_IB_ROCE_VERSION_NUM": "1"}, "2.28.9", None)])
def test_an_index_would_hide_the_users_range(derive, user, version, want):
    """With an index NCCL looks at neither."""
    tables = [table(LINK, None, V4)] * 2
    assert derive(roce(*tables, version=version, userEnv=user))["workers"][0]["env"].get("NCCL_IB_GID_INDEX") == want


@rule("H2")
def test_an_index_would_hide_the_vendors_range(derive):
    """CoreWeave's fabric has its own range, which need not be the first address."""
    made = [shown(0, port(link="Ethernet", gids=table(LINK, None, V6)), name="ibp0")]
    plan = derive(World([gpu(0)], made, {"kubernetes.io/arch": "arm64"}))
    assert plan["profile"] == "coreweave-roce" and plan["env"]["NCCL_IB_ADDR_RANGE"] == "fd02::/16"
    assert "NCCL_IB_GID_INDEX" not in plan["workers"][0]["env"]


@rule("H2")
@pytest.mark.parametrize("version,own,says", [
    ("2.28.9", "-1", "NCCL 2.28.9 finds each NIC's own"), ("2.20.5", None, "takes one entry for all NICs")])
def test_the_vendors_index_is_not_for_all(derive, version, own, says):
    """Oracle's list has 3 for all NICs; one of these has its entry elsewhere."""
    world = roce(table(LINK, V4), table(LINK, None, V4), version=version)
    for worker in world.workers:
        worker["labels"][INSTANCE] = "BM.GPU.H200.8"
    plan = derive(world)
    assert plan["env"]["NCCL_IB_GID_INDEX"] == "3" and plan["workers"][0]["env"].get("NCCL_IB_GID_INDEX") == own
    assert says in [w["detail"] for w in plan["warnings"] if w["code"] == "GID_INDEX_DIFFERS"][0]


@rule("H2")
def test_the_users_index_is_for_all(derive):
    plan = derive(roce(table(LINK, V4), table(LINK, None, V4), userEnv={"NCCL_IB_GID_INDEX": "3"}))
    assert "NCCL_IB_GID_INDEX" not in plan["workers"][0]["env"]
    [said] = [w["detail"] for w in plan["warnings"] if w["code"] == "GID_INDEX_DIFFERS"]
    assert said.endswith("your NCCL_IB_GID_INDEX=3 is taken for all NICs: remove it, and use NCCL 2.26 or newer")


@rule("H3", "W:NIC_NO_ADDRESS")
def test_gid_family(derive):
    plan = derive(roce(table(LINK, V6), table(LINK, V6)))
    assert plan["workers"][0]["env"]["NCCL_IB_ADDR_FAMILY"] == "AF_INET6" and "NIC_NO_ADDRESS" not in codes(plan)
    plan = derive(roce(table(LINK, V4), table(LINK)))
    assert "NCCL_IB_ADDR_FAMILY" not in plan["workers"][0]["env"] and "NIC_NO_ADDRESS" in codes(plan)
    assert "NIC_NO_ADDRESS" not in codes(derive(roce(table(None), table(None))))  # not known
    first = [{"index": 0, "address": V4, "type": "RoCE v2"}]  # of a NIC that has no RoCE v1
    assert "NIC_NO_ADDRESS" not in codes(derive(roce(first, first)))


@rule("H3")
def test_the_family_is_the_jobs(derive):
    """One worker has both families, the other IPv6 alone."""
    world = roce(table(LINK, V4, V6), workers=2)
    world.workers[1]["probe"]["ibdevs"]["mlx5_0"]["ports"] = [port(link="Ethernet", gids=table(LINK, V6))]
    plan = derive(world)
    assert [w["env"].get("NCCL_IB_ADDR_FAMILY") for w in plan["workers"]] == ["AF_INET6"] * 2
    assert [w["env"].get("NCCL_IB_GID_INDEX") for w in plan["workers"]] == ["5", None]


@rule("H2", "W:GID_INDEX_DIFFERS")
@pytest.mark.parametrize("layer,indices,want,warned", [
    ("Ethernet", (3, 3), None, False), ("Ethernet", (5, 5), "5", True), ("Ethernet", (5, 3), None, True),
    ("Ethernet", (5, None), None, False), ("InfiniBand", (5, 5), None, False)])
def test_gid_index(derive, layer, indices, want, warned):
    made = [nic(i, ib=dict(IB, name=f"mlx5_{i}", linkLayer=layer)) for i in range(2)]
    for n, index in zip(made, indices):
        if index is not None:
            n["ib"]["gidIndex"] = index
    plan = derive(World([gpu(0)], made))
    env = plan["workers"][0]["env"]
    assert env.get("NCCL_IB_GID_INDEX") == want and env.get("UCX_IB_GID_INDEX") == want
    assert ("GID_INDEX_DIFFERS" in codes(plan)) == warned


# ---- R: rails ----

@rule("R1")
@pytest.mark.parametrize("names,want", [
    (["gpu4rdma0", "gpu5rdma0"], [4, 5]), (["rdma2", "rdma7"], [2, 7]), (["eth1", "eth2"], [1, 2]),
    ([None, None], [1, 2])])
def test_rail_of_a_nic(derive, names, want):
    """The number in the host's name, else the place among the node's RDMA NICs, claimed or not."""
    made = [nic(0, claimed=False)] + [nic(i + 1, A, 0, ifName=name) for i, name in enumerate(names)]
    plan = derive(World([gpu(0), gpu(1)], made))
    assert uses(plan, "rails") == [[rail] for rail in want]


@rule("R1")
@pytest.mark.parametrize("names,want", [(["enp26s0np0", "enp141s0np0"], [0, 1]), (["gpu4rdma0", "gpu5rdma0"], [4, 5])])
def test_rails_that_the_driver_publishes(derive, names, want):
    """The kernel calls interfaces by their slots, which two kinds of machine have different ones of; vendors by their rails."""
    made = [nic(i, A, 0, ifName=name, **{"drarun.dev/rail": i}) for i, name in enumerate(names)]
    plan = derive(World([gpu(0), gpu(1)], made))
    assert uses(plan, "rails") == [[rail] for rail in want]


@rule("R2", "W:RAIL_MISMATCH")
def test_rails_must_be_equal(derive):
    gpus, made = two_sockets()
    world = World(gpus, made, workers=2)
    for worker, upper in zip(world.workers, (0, 1)):
        worker["gpus"] = [g["name"] for g in gpus[2 * upper:2 * upper + 2]]
        worker["nics"] = [n["name"] for n in made[2 * upper:2 * upper + 2]]
        worker["probe"]["visibleIbdevs"] = [n["ib"]["name"] for n in made[2 * upper:2 * upper + 2]]
    plan = derive(world)
    assert plan["jobScore"] == 1.0 and codes(plan, 1) == ["RAIL_MISMATCH"]


# ---- S: score ----

@rule("S1")
@pytest.mark.parametrize("roots,numas,score", [
    ((A, A), (0, 0), 1.0), ((A, B), (0, 0), 0.7), ((A, B), (0, 1), 22 / 50)])
def test_score_of_a_pair(derive, roots, numas, score):
    """PHB is an estimate; SYS is half, here further capped by the link's 22 GB/s."""
    plan = derive(World([gpu(0, roots[0], numas[0])], [nic(0, roots[1], numas[1])]))
    assert plan["jobScore"] == pytest.approx(score)


@rule("S2")
def test_score_of_a_shared_nic(derive):
    plan = derive(World([gpu(0), gpu(1)], [nic(0)]))
    assert plan["jobScore"] == 0.5 and "FEWER_NICS_THAN_GPUS" in codes(plan)


@rule("S2")
def test_more_nics_than_the_fastest_do_not_count(derive):
    assert derive(World([gpu(0)], [nic(0), nic(1)]))["jobScore"] == 1.0


@rule("S3")
@pytest.mark.parametrize("link,score", [(40.0, 0.5), (10.0, 0.2), (16.0, 0.32)])
def test_the_socket_link_caps(derive, link, score):
    world = World([gpu(0, A, 0)], [nic(0, B, 1)])
    world.workers[0]["probe"]["interSocketGBs"] = link
    assert derive(world)["jobScore"] == pytest.approx(score)


@rule("S3")
def test_no_cap_on_arm(derive):
    world = World([gpu(0, A, 0)], [nic(0, B, 1)], {"kubernetes.io/arch": "arm64"})
    world.workers[0]["probe"]["interSocketGBs"] = 6.0
    assert derive(world)["jobScore"] == 0.5


@rule("S3")
def test_the_machines_own_link_without_a_probe(derive):
    for machine, link in (("p5.48xlarge", 16), ("p4d.24xlarge", 10), ("gx3d-160x1792x8h100", 22)):
        world = World([gpu(0, A, 0)], [nic(0, B, 1, ib=None)], {INSTANCE: machine})
        world.workers[0]["probe"] = None
        speed = {"p5.48xlarge": 12.5, "p4d.24xlarge": 12.5}.get(machine, 50)
        assert derive(world)["jobScore"] == pytest.approx(min(0.5 * speed, link) / speed)


@rule("S4")
def test_score_without_gpudirect(derive):
    plan = derive(gb200("2.30.7", userEnv={"NCCL_NET_GDR_LEVEL": "PIX"}))
    assert plan["jobScore"] == 0.8
    world = World([gpu(0)], [nic(0)])
    world.workers[0]["probe"]["gdr"] = {"peermem": False, "dmabuf": False}
    assert derive(world)["jobScore"] == 0.7


@rule("S5")
def test_a_jobs_score_is_its_worst_workers(derive):
    world = World([gpu(0, A), gpu(1, A)], [nic(0), nic(1)], workers=2)
    world.workers[1]["nics"].pop()
    plan = derive(world)
    assert [worker["score"] for worker in plan["workers"]] == [1.0, 0.5] and plan["jobScore"] == 0.5


# ---- M: NVLink between nodes ----

@rule("M1", "W:IMEX_CHANNEL_MISSING", "W:IMEX_CLIQUE_MISMATCH")
@pytest.mark.parametrize("channels,cliques,mnnvl,cumem,code", [
    ((True, True), ("u.1", "u.1"), "1", "1", None), ((True, True), ("u.1", "u.2"), "2", None, "IMEX_CLIQUE_MISMATCH"),
    ((True, False), ("u.1", "u.1"), "0", None, "IMEX_CHANNEL_MISSING"),
    ((False, False), ("u.1", "u.1"), "0", None, "IMEX_CHANNEL_MISSING"),
    ((True, True), ("u.1", None), "2", None, "IMEX_CLIQUE_MISMATCH")])
def test_mnnvl(derive, channels, cliques, mnnvl, cumem, code):
    world = gb200("2.30.7", {INSTANCE: "a4x-highgpu-4g"}, workers=2)
    for worker, channel, clique in zip(world.workers, channels, cliques):
        worker["channel"] = channel
        if clique:
            worker["labels"]["nvidia.com/gpu.clique"] = clique
    plan = derive(world)
    assert plan["env"]["NCCL_MNNVL_ENABLE"] == mnnvl and plan["env"].get("NCCL_CUMEM_ENABLE") == cumem
    assert codes(plan) == ([code] if code else [])


@rule("M1")
@pytest.mark.parametrize("clique,mnnvl", [("u.1", "1"), (None, "2")])
def test_mnnvl_by_the_channel_that_a_pod_shows(derive, clique, mnnvl):
    """The claim that brings it may be another's: of a Ray cluster, or one that may not be read."""
    world = gb200("2.30.7", {INSTANCE: "a4x-highgpu-4g"}, workers=2)
    for worker, channel in zip(world.workers, (True, False)):
        worker["channel"] = channel
        worker["probe"]["imexChannels"] = [3]
        worker["labels"].update({"nvidia.com/gpu.clique": clique} if clique else {})
    assert derive(world)["env"]["NCCL_MNNVL_ENABLE"] == mnnvl


@rule("M1")
@pytest.mark.parametrize("channel,mnnvl,warned", [(False, "0", ["IMEX_CHANNEL_MISSING"]), (True, "1", [])])
def test_mnnvl_without_nics(derive, channel, mnnvl, warned):
    """NCCL looks for the channel whatever carries the rest, and by default ends where it is missing."""
    world = gb200("2.30.7", {"nvidia.com/gpu.clique": "u.1"}, network="any", channel=channel)
    world.nics.clear()
    world.workers = [world.worker(w) for w in range(2)]
    plan = derive(world)
    assert plan["profile"] == "socket" and plan["env"]["NCCL_MNNVL_ENABLE"] == mnnvl
    assert [code for code in codes(plan) if code.startswith("IMEX")] == warned


@rule("M1")
def test_mnnvl_is_for_chip_to_chip_machines(derive):
    assert "NCCL_MNNVL_ENABLE" not in derive(World([gpu(0)], [nic(0)]))["env"]


# ---- V: variables ----

@rule("V1")
@pytest.mark.parametrize("machine,net", [
    ("a4-highgpu-8g", "gIB"), ("a3-ultragpu-8g", "gIB"), ("a4x-highgpu-4g", "gIB"), ("a4x-maxgpu-4g-metal", "gIB"),
    ("Standard_ND96isr_H100_v5", "IB"), ("Standard_ND96amsr_A100_v4", "IB"), ("Standard_ND128isr_GB200_v6", "IB"),
    ("BM.GPU.H100.8", "IB"), ("BM.GPU.GB300.4", "IB"), ("gx3d-160x1792x8h100", "IB"), (None, "IB"),
    ("BM.GPU.MI355X.8", None), ("p5.48xlarge", None)])
def test_no_silent_fallback_to_tcp(derive, machine, net):
    """EFA's plugin has had two names, and Oracle names its shape's plugin alone: NCCL_NET stays unset there."""
    assert derive(World([gpu(0)], [nic(0)], {INSTANCE: machine} if machine else {}))["env"].get("NCCL_NET") == net


@rule("V1")
@pytest.mark.parametrize("machine", [None, "a4-highgpu-8g", "BM.GPU.H100.8"])
def test_tcp_is_no_failure_where_it_will_do(derive, machine):
    """With a name in NCCL_NET NCCL would end where the image has no libibverbs."""
    env = derive(World([gpu(0)], [nic(0)], {INSTANCE: machine} if machine else {}, network="any"))["env"]
    assert "NCCL_NET" not in env


@rule("V2")
@pytest.mark.parametrize("machine,want", [
    (None, "=eth0"), ("BM.GPU.H100.8", "=eth0"), ("a4-highgpu-8g", "eth0"), ("a4x-highgpu-4g", "eth0"),
    ("p5.48xlarge", "eth0")])
def test_socket_interface(derive, machine, want):
    env = derive(World([gpu(0)], [nic(0)], {INSTANCE: machine} if machine else {}))["env"]
    assert env["NCCL_SOCKET_IFNAME"] == want and env["GLOO_SOCKET_IFNAME"] == "eth0"


@rule("V2")
@pytest.mark.parametrize("shown,want", [
    (("ens5", "ens5"), "ens5"), (("ens5", None), "ens5"), ((None, None), "eth0"), (("ens5", "eno1"), "eth0")])
def test_socket_interface_is_the_pods_own(derive, shown, want):
    """With hostNetwork, and where the network plugin names it so."""
    world = World([gpu(0)], [nic(0)], workers=2, podInterface=None)
    for worker, name in zip(world.workers, shown):
        worker["probe"].update({"podInterface": name} if name else {})
    env = derive(world)["env"]
    assert env["NCCL_SOCKET_IFNAME"] == f"={want}" and env["GLOO_SOCKET_IFNAME"] == want
    assert env["OMPI_MCA_btl_tcp_if_include"] == want


@rule("V2")
@pytest.mark.parametrize("user", [{}, {"GLOO_SOCKET_IFNAME": "bond0"}])
def test_socket_interface_of_each_worker(derive, user):
    """hostNetwork on machines of several kinds: each has the name that its own default route shows."""
    world = World([gpu(0)], [nic(0)], workers=3, podInterface=None, **({"userEnv": user} if user else {}))
    for worker, name in zip(world.workers, ("ens5", "bond0", None)):
        worker["probe"].update({"podInterface": name} if name else {})
    plan = derive(world)
    for worker, name in zip(plan["workers"], ("ens5", "bond0", "eth0")):
        env = {**plan["env"], **worker["env"]}
        assert env["NCCL_SOCKET_IFNAME"] == f"={name}" and env["OMPI_MCA_btl_tcp_if_include"] == name
        assert env["UCX_NET_DEVICES"] == name and env["GLOO_SOCKET_IFNAME"] == user.get("GLOO_SOCKET_IFNAME", name)


@rule("V3")
@pytest.mark.parametrize("transport,gpus,tcp", [
    (None, 1, True), ("auto", 1, True), ("tcp", 1, True), ("rdma", 1, False), ("auto", 0, False), ("tcp", 0, True),
    ("rdma", 0, False)])
def test_mpi_transport(derive, transport, gpus, tcp):
    world = World([gpu(0, claimed=gpus > 0)], [nic(0)], **({"mpiTransport": transport} if transport else {}))
    if not gpus:
        world.launcher.update(gpus=0, ranksPerPod="pod")
    plan = derive(world)
    env = dict(plan["env"], **plan["workers"][0]["env"])
    assert env["UCX_NET_DEVICES"] == ("eth0" if tcp else "mlx5_0:1")
    assert "UCX_TLS" not in env  # a list takes what it does not name from UCX: the copies of GPUs' memory
    assert "OMPI_MCA_btl" not in env and env["OMPI_MCA_btl_tcp_if_include"] == "eth0"
    assert env.get("OMPI_MCA_coll_hcoll_enable") == ("0" if tcp else None)


@rule("V3")
@pytest.mark.parametrize("machine,rails", [("a4-highgpu-8g", "1"), (None, None)])
def test_ucx_keeps_to_a_rail(derive, machine, rails):
    env = derive(World([gpu(0)], [nic(0)], {INSTANCE: machine} if machine else {}, mpiTransport="rdma"))["env"]
    assert env.get("UCX_MAX_RNDV_RAILS") == rails
    assert "UCX_IB_ROCE_LOCAL_SUBNET" not in env  # the addresses are /32 there: no NIC would reach another


@rule("V4")
@pytest.mark.parametrize("version,want", [("2.26.6", "PIX"), ("2.28.9", "PIX"), ("2.29.2", None), ("2.30.7", None)])
def test_gdr_level_of_chip_to_chip_machines(derive, version, want):
    plan = derive(gb200(version, {INSTANCE: "a4x-highgpu-4g"}))
    assert plan["env"].get("NCCL_NET_GDR_LEVEL") == want


@rule("V4")
@pytest.mark.parametrize("machine", ["Standard_ND128isr_GB300_v6", "BM.GPU.GB200-v3.4", "BM.GPU.GB300.4",
                                     "p6e-gb200.36xlarge", "a4x-maxgpu-4g-metal"])
def test_no_gdr_level_on_other_chip_to_chip_machines(derive, machine):
    assert "NCCL_NET_GDR_LEVEL" not in derive(gb200("2.30.7", {INSTANCE: machine}))["env"]


@rule("V5")
@pytest.mark.parametrize("version,variable,want", [
    ("2.19.4", None, None), ("2.23.4", "NCCL_IB_MERGE_NICS", "0"), ("2.28.9", "NCCL_NET_MERGE_LEVEL", "LOC"),
    (None, "NCCL_NET_MERGE_LEVEL", "LOC")])
def test_ports_of_one_card_on_two_rails(derive, version, variable, want):
    """Where the version is not known, it may be any: what 2.30.7 added is not used."""
    ports = [nic(i, pci=f"0000:31:00.{i}", ifName=f"rdma{i}") for i in range(2)]
    world = World([gpu(0)], ports, version=version)
    if not version:
        del world.launcher["ncclVersion"]
    env = derive(world)["workers"][0]["env"]
    assert {k: v for k, v in env.items() if "MERGE" in k} == ({variable: want} if variable else {})


@rule("V5")
def test_ports_of_one_rail_are_merged(derive):
    ports = [nic(i, pci=f"0000:31:00.{i}", ifName="rdma4") for i in range(2)]
    assert not [k for k in derive(World([gpu(0)], ports))["workers"][0]["env"] if "MERGE" in k]


OCI = {"NCCL_IB_SPLIT_DATA_ON_QPS": "0", "NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "41", "NCCL_IB_SL": "0",
       "NCCL_IB_TIMEOUT": "22"}
BIG = {"NCCL_CUMEM_ENABLE": "0", "NCCL_IGNORE_CPU_AFFINITY": "1"}


@rule("V6")
@pytest.mark.parametrize("machine,want", [
    ("BM.GPU4.8", dict(OCI, NCCL_IB_QPS_PER_CONNECTION="4")),
    ("BM.GPU.A100-v2.8", dict(OCI, NCCL_IB_QPS_PER_CONNECTION="4")),
    ("BM.GPU.B4.8", dict(OCI, NCCL_IB_QPS_PER_CONNECTION="4")),
    ("BM.GPU.H100.8", dict(OCI, **BIG)), ("BM.GPU.H200.8", dict(OCI, **BIG)), ("BM.GPU.B200.8", dict(OCI, **BIG)),
    ("BM.GPU.B300.8", dict(OCI, **BIG)),
    ("BM.GPU.RTXPRO.8", dict(OCI, NCCL_IB_QPS_PER_CONNECTION="1", NCCL_NET_PLUGIN="none", **BIG)),
    ("BM.GPU.MI355X.8", {
        "NCCL_NET_PLUGIN": "librccl-anp.so", "NCCL_IB_GID_INDEX": "1", "NCCL_IB_TC": "41", "NCCL_IB_FIFO_TC": "185",
        "NCCL_IB_QPS_PER_CONNECTION": "2", "NCCL_IB_USE_INLINE": "1", "NCCL_NET_OPTIONAL_RECV_COMPLETION": "1",
        "NCCL_GDR_FLUSH_DISABLE": "1", "RCCL_GDR_FLUSH_GPU_MEM_NO_RELAXED_ORDERING": "0", "NCCL_DMABUF_ENABLE": "0",
        "NCCL_BUFFSIZE": "16777216", "NCCL_MAX_P2P_NCHANNELS": "32", "NCCL_PXN_DISABLE": "0", "NCCL_IGNORE_CPU_AFFINITY": "1",
        "RCCL_IB_ABORT_ON_ERROR": "1", "RCCL_LL128_FORCE_ENABLE": "1"}),
    ("BM.GPU.GB200-v3.4", dict(OCI, NCCL_NET_GDR_C2C="1", NCCL_NET_PLUGIN="none", NCCL_IB_DATA_DIRECT="0")),
    ("BM.GPU.GB200.4", {"NCCL_NET_PLUGIN": "sys", "NCCL_NVLS_ENABLE": "1", "NCCL_NET_GDR_C2C": "1"}),
    ("BM.GPU.GB200-v2.4", {"NCCL_NET_PLUGIN": "sys", "NCCL_NVLS_ENABLE": "1", "NCCL_NET_GDR_C2C": "1"}),
    ("BM.GPU.GB300.4", dict(OCI, NCCL_NET_GDR_C2C="1", NCCL_NET_PLUGIN="none", NCCL_NVLS_ENABLE="1",
                            NCCL_IB_QPS_PER_CONNECTION="4", NCCL_BUFFSIZE="16777216", NCCL_DMABUF_ENABLE="1")),
])
def test_oracle_shapes(derive, machine, want):
    env = derive(gb200("2.30.7", {INSTANCE: machine}))["env"]
    common = {"NCCL_NET", "NCCL_SOCKET_IFNAME", "NCCL_MNNVL_ENABLE"}
    assert {k: v for k, v in env.items() if k.startswith(("NCCL_", "RCCL_")) and k not in common} == want


@rule("V7")
def test_efa_sets_little(derive):
    """The plugin sets the rest by itself."""
    env = derive(World([gpu(0)], [nic(0)], {INSTANCE: "p5en.48xlarge"}))["env"]
    assert {k: v for k, v in env.items() if k.startswith(("NCCL_", "FI_"))} == {
        "NCCL_SOCKET_IFNAME": "eth0", "FI_PROVIDER": "efa"}


@rule("V7")
@pytest.mark.parametrize("machine,env,count", [
    ("p5en.48xlarge", {}, 1), ("p6-b200.48xlarge", {}, 1), ("p5.48xlarge", {}, 4),
    ("p5en.48xlarge", {"NCCL_NETDEVS_POLICY": "ALL"}, 4)])
def test_efas_plugin_limits_the_nics_of_a_gpu(derive, machine, env, count):
    plan = derive(World([gpu(0)], [nic(i) for i in range(4)], {INSTANCE: machine}, userEnv=env))
    assert [len(names) for names in nics(plan)] == [count]


@rule("V8")
@pytest.mark.parametrize("names,set_", [(["eth1", "eth2", "eth3", "eth4"], True), (["ens4", "ens5", "ens6", "ens7"], False)])
def test_tcpx_bindings_are_for_known_names(derive, names, set_):
    world = World([gpu(i) for i in range(8)], [nic(i, rdma=False, ifName=name, ib=None) for i, name in enumerate(names)],
                  {INSTANCE: "a3-highgpu-8g"})
    env = derive(world)["env"]
    assert env["NCCL_GPUDIRECTTCPX_SOCKET_IFNAME"] == ",".join(names)
    assert ("NCCL_GPUDIRECTTCPX_TX_BINDINGS" in env) == ("NCCL_GPUDIRECTTCPX_RX_BINDINGS" in env) == set_


@rule("V9")
@pytest.mark.parametrize("machine,level", [("g4-standard-96", "PHB"), ("g4-standard-384", "SYS")])
def test_machines_without_rdma(derive, machine, level):
    world = World([gpu(0)], [], {INSTANCE: machine}, network="any")
    plan = derive(world)
    assert plan["profile"] == "gke-g4" and plan["env"]["NCCL_NET"] == "Socket" and plan["env"]["NCCL_P2P_LEVEL"] == level
    world.launcher["network"] = "rdma"
    assert derive(world)["refuse"]["code"] == "NO_RDMA_NIC"


@rule("V10")
def test_coreweaves_ethernet(derive):
    world = gb200("2.30.7")
    for n in world.nics:
        n["ib"] = dict(ROCE, name=n["ib"]["name"].replace("mlx5_", "ibp"))
    world.workers = [world.worker(0)]
    plan = derive(world)
    assert plan["profile"] == "coreweave-roce" and plan["env"]["NCCL_IB_ADDR_RANGE"] == "fd02::/16"
    assert plan["workers"][0]["env"]["NCCL_IB_HCA"] == "=ibp0:1,ibp1:1"


@rule("V10")
@pytest.mark.parametrize("name,arch,profile", [
    ("ibp7", "amd64", "coreweave-ib"), ("ibp3", "arm64", "coreweave-gb"), ("ibp65s0", "amd64", "generic-ib"),
    ("ibp65s0f0", "arm64", "generic-ib"), ("ibP2p1s0", "arm64", "generic-ib")])
def test_udevs_names_are_not_coreweaves(derive, name, arch, profile):
    """rdma-core's rule renames devices by bus and slot, on any machine."""
    world = World([gpu(0)], [nic(0, ib=dict(IB, name=name))], {"kubernetes.io/arch": arch})
    assert derive(world)["profile"] == profile


@rule("V11")
def test_what_is_not_confirmed_says_so(derive):
    plan = derive(World([gpu(0)], [nic(0)], {INSTANCE: "gx3d-160x1792x8h100"}))
    assert "not confirmed on a machine" in plan["explain"]["NCCL_IB_TIMEOUT"]["source"]
    assert "not confirmed" not in plan["explain"]["CUDA_DEVICE_ORDER"]["source"]
    assert "not confirmed" not in derive(World([gpu(0)], [nic(0)]))["explain"]["NCCL_NET"]["source"]


INSPECTOR = "/usr/local/lib/libnccl-profiler-inspector.so"


def with_files(world, *files):
    """files: by worker, what its image has."""
    for worker, there in zip(world.workers, files, strict=True):
        worker["probe"]["files"] = {INSPECTOR: False, **dict.fromkeys(there, True)}
    return world


@rule("V12")
def test_nccls_inspector_where_all_have_it(derive):
    world = with_files(World([gpu(0)], [nic(0)], workers=2, inspector=True), [INSPECTOR], [INSPECTOR])
    env = derive(world)["env"]
    assert (env["NCCL_PROFILER_PLUGIN"], env["NCCL_INSPECTOR_ENABLE"]) == (INSPECTOR, "1")
    assert env["NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"] == "1000000"
    world.launcher["userEnv"] = {"NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "7"}
    assert derive(world)["env"]["NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"] == "7"
    for off in (with_files(World([gpu(0)], [nic(0)]), [INSPECTOR]), World([gpu(0)], [nic(0)], inspector=True)):  # not wanted; not asked
        plan = derive(off)
        assert "NCCL_INSPECTOR_ENABLE" not in plan["env"] and "INSPECTOR_MISSING" not in codes(plan)


@rule("V12", "W:INSPECTOR_MISSING")
def test_nccls_inspector_that_a_worker_lacks(derive):
    plan = derive(with_files(World([gpu(0)], [nic(0)], workers=2, inspector=True), [INSPECTOR], []))
    assert "NCCL_INSPECTOR_ENABLE" not in plan["env"]
    assert [(w["worker"], "has no libnccl-profiler-inspector.so" in w["detail"]) for w in plan["warnings"] if w["code"] == "INSPECTOR_MISSING"] == [
        (1, True)]
    named = World([gpu(0)], [nic(0)], inspector=True, userEnv={"NCCL_PROFILER_PLUGIN": "/mine/plugin.so"})
    assert "INSPECTOR_MISSING" in codes(derive(with_files(named, [INSPECTOR])))
    assert derive(with_files(named, ["/mine/plugin.so"]))["env"]["NCCL_PROFILER_PLUGIN"] == "/mine/plugin.so"


# ---- W: what is said ----

@rule("W:MISALIGNED_NODE", "W:MISALIGNED_PHB")
@pytest.mark.parametrize("word", ["NODE", "PHB"])
def test_misaligned_as_sysfs_says(derive, word):
    world = World([gpu(0, A, 0)], [nic(0, B, 0)])
    world.workers[0]["probe"]["paths"] = {world.gpus[0]["pci"]: {world.nics[0]["pci"]: word}}
    plan = derive(world)
    assert codes(plan) == [f"MISALIGNED_{word}"] and paths(plan) == ["PHB"]  # NCCL has one word for both


@rule("W:MISALIGNED_SYS", "W:MISALIGNED_PHB")
def test_misaligned(derive):
    plan = derive(World([gpu(0, A, 0)], [nic(0, B, 0)]))
    assert codes(plan) == ["MISALIGNED_PHB"]
    plan = derive(World([gpu(0, A, 0)], [nic(0, B, 1)]))
    assert codes(plan) == ["MISALIGNED_SYS"]


@rule("W:C2C_GDR_OFF", "W:GDR_UNAVAILABLE")
def test_gpudirect_off(derive):
    plan = derive(gb200("2.30.7", {}, userEnv={"NCCL_NET_GDR_LEVEL": "PIX"}))
    assert len([w for w in plan["warnings"] if w["code"] == "C2C_GDR_OFF"]) == 2  # one a pair
    world = World([gpu(0)], [nic(0)])
    world.workers[0]["probe"]["gdr"] = {"peermem": False, "dmabuf": False}
    assert codes(derive(world)) == ["GDR_UNAVAILABLE"]


@rule("W:NIC_VIA_PXN", "W:NIC_UNUSED_P2P", "W:FEWER_NICS_THAN_GPUS")
def test_shared_and_idle(derive):
    assert codes(derive(one_far())) == ["FEWER_NICS_THAN_GPUS", "NIC_VIA_PXN"]
    plan = derive(World([gpu(0, A, 0)], [nic(0, A, 0), nic(1, B, 0)]))
    assert codes(plan) == ["NIC_UNUSED_P2P"]


@rule("W:MIXED_NIC_SPEED")
def test_mixed_speed(derive):
    made = [nic(0), nic(1, ib=dict(IB, name="mlx5_1", speedMbps=200000))]
    assert "MIXED_NIC_SPEED" in codes(derive(World([gpu(0), gpu(1)], made)))
    del made[1]["ib"]["speedMbps"]
    assert "MIXED_NIC_SPEED" not in codes(derive(World([gpu(0), gpu(1)], made)))  # not known


@rule("W:UNEVEN_GPUS", "W:UNEVEN_NICS", "W:SAME_NODE_PODS")
def test_workers_differ(derive):
    gpus, made = two_sockets()
    world = World(gpus, made, workers=3)
    world.workers[1].update(gpus=["gpu-0"], nics=[made[0]["name"]])
    world.workers[2]["node"] = "node-0"
    plan = derive(world)
    assert {"UNEVEN_GPUS", "UNEVEN_NICS"} <= set(codes(plan, 1)) and codes(plan, 2) == ["SAME_NODE_PODS"]


@rule("W:DEVICE_NOT_IN_SLICES")
def test_device_not_in_slices(derive):
    world = World([gpu(0)], [nic(0)])
    world.workers[0]["nics"] = ["pci-0000-99-00-0"]
    assert derive(world)["refuse"]["code"] == "DEVICE_NOT_IN_SLICES"


@rule("W:PROFILE_NEEDS_WHOLE_NODE")
@pytest.mark.parametrize("claimed,warned", [(8, False), (4, True)])
def test_whole_node(derive, claimed, warned):
    world = World([gpu(i, claimed=i < claimed) for i in range(8)], [nic(0, rdma=False, ifName="eth1", ib=None)],
                  {INSTANCE: "a3-megagpu-8g"})
    assert ("PROFILE_NEEDS_WHOLE_NODE" in codes(derive(world))) == warned


# ---- the tables ----

def test_every_code_has_a_test():
    """Here, or by name in another file of tests."""
    with open(os.path.join(ROOT, "jobs/derive/warnings/warnings.h")) as file:
        known = set(re.findall(r"^    X\((\w+)\)", file.read(), re.M))
    here = {name[2:] for name in RULES if name.startswith("W:")}
    others = "".join(path.read_text() for path in pathlib.Path(ROOT, "tests").glob("test_*.py")
                     if path.name != "test_rules.py")
    assert len(known) > 20 and here <= known
    assert {code for code in known - here if f'"{code}"' not in others} == set()


def test_table_of_rules():
    """docs/design/017 lists the rules of this file and no others."""
    with open(os.path.join(ROOT, "docs", "design", "017-derivation-rules.md")) as file:
        listed = re.findall(r"^\| ([A-Z]\d+) \|", file.read(), re.M)
    assert listed and len(listed) == len(set(listed))
    assert set(listed) == {name for name in RULES if not name.startswith("W:")}
