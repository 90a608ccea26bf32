# SPDX-License-Identifier: Apache-2.0
"""Which NICs, ports and addresses the derivation takes, and what counts as a GPU or a NIC: public reports, rebuilt
small below tests/regress, and further machines of the same kinds."""
import itertools
import json

import pytest

from support.regress import REGRESS, load, make_tree

IPV4 = "0000:0000:0000:0000:0000:ffff:%04x:%04x"
LOCAL = "fe80:0000:0000:0000:0200:00ff:fe00:%04x"
ULA = "fd93:0016:0000:%04x:0000:0000:0000:0007"
RATES = {25: "25 Gb/sec (1X EDR)", 100: "100 Gb/sec (4X EDR)", 200: "200 Gb/sec (4X HDR)", 400: "400 Gb/sec (4X NDR)"}


def both(text, netdev):
    """An address as the kernel lists it: RoCE v1, then v2."""
    return [[text, "IB/RoCE v1", netdev], [text, "RoCE v2", netdev]]


def gids(i, *kinds):
    """The GID table of NIC i: what each kind of address, and of another namespace's, adds to it."""
    table = []
    for kind in kinds:
        table += {"local": both(LOCAL % i, f"net{i}"), "v4": both(IPV4 % (0x0a00 + i, 2), f"net{i}"),
                  "v6": both(ULA % i, f"net{i}"), "169.254": both(IPV4 % (0xa9fe, 2 + i), f"net{i}"),
                  "neighbour": both(IPV4 % (0x0a63, 2 + i), f"net{i}"), "foreign": [[IPV4 % (0x0a63, i), None, None]] * 2,
                  "foreign6": [["fd94:" + (ULA % i)[5:], None, None]] * 2, "hole": [[None, None, None]] * 2}[kind]
    return table


def nic(i, ports=None, link="Ethernet", rate=400, kinds=("local", "v4"), **more):
    """A NIC on the switch of GPU i; ports: [(state, link)], numbered from 1."""
    root = f"0000:{0x10 * (i % 8 + 1):02x}:01.0"
    bus = 0x10 * (i % 8 + 1)
    path = f"pci0000:{bus:02x}/{root}/0000:{bus + 1:02x}:00.0/0000:{bus + 2:02x}:{1 + i // 8:02x}.0/0000:{bus + 4 + i // 8:02x}:00.0"
    table = gids(i, *kinds) if link == "Ethernet" else [[LOCAL % i, "IB/RoCE v1", f"net{i}"]]
    listed = [{"n": n, "state": state, "link": layer or link, "gids": table if state.endswith("ACTIVE") else []}
              for n, (state, layer) in enumerate(ports or [("4: ACTIVE", None)], 1)]
    return dict({"path": path, "numa": int(i % 8 > 1), "ib": f"mlx5_{i}", "netdev": f"net{i}", "link": link,
                 "rate": RATES[rate], "ports": listed}, **more)


def machine(nics, gpus=2, netdevs=({"name": "eth0"},), **more):
    paths = [f"pci0000:{b:02x}/0000:{b:02x}:01.0/0000:{b + 1:02x}:00.0/0000:{b + 2:02x}:00.0/0000:{b + 3:02x}:00.0"
             for b in (0x10 * (i + 1) for i in range(gpus))]
    return dict({"gpus": [{"path": path, "numa": int(i > 1)} for i, path in enumerate(paths)], "nics": nics,
                 "netdevs": list(netdevs)}, **more)


class Result:
    def __init__(self, run):
        self.run, self.rc, self.err = run, run.rc, run.err
        plan = json.loads(run.out) if run.rc == 0 else {}
        self.variables = dict(plan["env"], **plan["workers"][0]["env"]) if plan else {}

    def get(self, name):
        return self.variables.get(name)

    def warnings(self, code):
        return [line.split(f"{code}: ", 1)[1] for line in self.err.splitlines() if f": {code}: " in line]


@pytest.fixture
def env(drarun, tmp_path):
    roots = itertools.count()

    def run(described, *options, **more):
        if isinstance(described, str):
            described = load(described)
        root = tmp_path / f"root{next(roots)}"
        make_tree(described, root)
        return Result(drarun("env", "--root", root, "--format", "json", *options, **more))
    return run


@pytest.fixture
def topo(drarun, tmp_path):
    roots = itertools.count()

    def run(described, *options):
        if isinstance(described, str):
            described = load(described)
        root = tmp_path / f"topo{next(roots)}"
        make_tree(described, root)
        return drarun("topo", "--root", root, *options).ok()
    return run


def data_nics(topo, described):
    """The devices that topo says carry data."""
    return [n["name"] for n in json.loads(topo(described, "--format", "json").out)["nics"] if n["data"]]


# ---- ports ----

def test_a_port_that_is_down_is_no_nic(env, topo):
    case = "11-env-port-down-and-no-address"
    result = env(case, "--mpi", "rdma")
    want = ["rocep1s0f0", "roceP2p1s0f0", "roceP2p1s0f1"]
    assert result.get("NCCL_IB_HCA") == "=" + ",".join(f"{name}:1" for name in want)
    assert result.get("UCX_NET_DEVICES") == ",".join(f"{name}:1" for name in want)
    assert "1 GPUs, 3 NICs" in result.err
    assert "rocep1s0f1 (port 1 is DOWN)" in result.warnings("NIC_LEFT_OUT")[0]
    assert data_nics(topo, case) == want


def test_the_active_port_of_a_card(env, topo):
    case = "12-env-second-port-active"
    result = env(case, "--mpi", "rdma")
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:2,mlx5_1:2"
    assert result.get("UCX_NET_DEVICES") == "mlx5_0:2,mlx5_1:2"
    assert result.warnings("NIC_LEFT_OUT") == []
    text = topo(case).out
    assert "port 1 DOWN" in text and "port DOWN" not in text


def test_both_ports_of_a_card(env):
    two = [("4: ACTIVE", None)] * 2
    result = env(machine([nic(i, ports=two, link="InfiniBand", rate=200) for i in range(2)]))
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_0:2,mlx5_1:1,mlx5_1:2"
    assert "100 GB/s of 100" in result.err  # twice 25 GB/s a card


@pytest.mark.parametrize("state", ["1: DOWN", "2: INIT", "3: ARMED"])
def test_every_port_is_down(env, state):
    down = machine([nic(i, ports=[(state, None)], link="InfiniBand") for i in range(2)])
    result = env(down)
    assert result.rc == 65 and "NO_RDMA_NIC" in result.err
    assert f"mlx5_0 (port 1 is {state[3:]})" in result.err and f"mlx5_1 (port 1 is {state[3:]})" in result.err


def test_every_port_is_down_and_tcp_will_do(env):
    result = env(machine([nic(i, ports=[("1: DOWN", None)]) for i in range(2)]), "--network", "any")
    assert result.get("NCCL_NET") == "Socket" and result.get("NCCL_IB_HCA") is None


def test_a_port_of_each_fabric_on_one_card(env):
    """A card with one port on InfiniBand and one on Ethernet."""
    ports = [("4: ACTIVE", "Ethernet"), ("4: ACTIVE", "InfiniBand")]
    result = env(machine([nic(i, ports=ports, link="InfiniBand") for i in range(2)]))
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:2,mlx5_1:2"
    assert "generic-ib" in result.err


def test_the_graph_has_the_active_port(topo):
    """The XML that NCCL reads names the port too."""
    assert topo("12-env-second-port-active", "--format", "nccl-xml").out.count('port="2"') == 2


# ---- what a NIC is for ----

def test_the_child_of_the_uplink(env, topo):
    case = "13-env-uplink-vf-aks"
    result = env(case)
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"
    assert "generic-ib (link layer InfiniBand): 4 GPUs, 4 NICs" in result.err
    assert result.warnings("NIC_LEFT_OUT") == ["mlx5_4 (part of the uplink eth0)"]
    assert data_nics(topo, case) == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"]
    assert "part of the uplink eth0" in topo(case).out


ROUTE = ("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
         "%s\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0")


def routed(described, name):
    return dict(described, files={"proc/net/route": ROUTE % name})


def test_the_interface_of_the_default_route(env, topo):
    """Four RoCE NICs of one rate: the one over which everything else is reached is not for data."""
    many = routed(machine([nic(i) for i in range(4)], gpus=3), "net3")
    assert env(many).get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1,mlx5_2:1"
    assert data_nics(topo, many) == ["mlx5_0", "mlx5_1", "mlx5_2"]


def test_a_bond_on_the_default_route(env):
    """Its two ports, by their master; the default route is on a VLAN of the bond."""
    nics = [nic(i) for i in range(2)] + [nic(i, master="bond0") for i in (2, 3)]
    netdevs = [{"name": "eth0"}, {"name": "bond0"}, {"name": "bond0.7", "slaves": ["bond0"]}]
    result = env(routed(machine(nics, netdevs=netdevs), "bond0.7"))
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1"
    assert result.warnings("NIC_LEFT_OUT") == [
        "mlx5_2 (part of the uplink bond0.7), mlx5_3 (part of the uplink bond0.7)"]


def test_a_bridge_of_open_vswitch_on_the_default_route(env, topo):
    """Ports have one master whatever their bridge, which has the address of its uplink (OVN-Kubernetes, on the host's network).
    The default route is on a VLAN of the bridge."""
    nics = [nic(0), nic(1, master="ovs-system"), nic(2, master="ovs-system", mac="04:3f:72:00:00:02")]
    netdevs = [{"name": "br-ex", "mac": "04:3f:72:00:00:02"}, {"name": "br-ex.7", "slaves": ["br-ex"]}, {"name": "ovs-system"}]
    described = routed(machine(nics, netdevs=netdevs), "br-ex.7")
    result = env(described)
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1"
    assert result.warnings("NIC_LEFT_OUT") == ["mlx5_2 (part of the uplink br-ex.7)"]
    assert data_nics(topo, described) == ["mlx5_0", "mlx5_1"]


def test_a_bond_that_carries_data(env):
    """A master alone makes no uplink."""
    netdevs = [{"name": "eth0"}, {"name": "bond1"}, {"name": "bond2"}]
    bonds = machine([nic(i, master=f"bond{i + 1}") for i in range(2)], netdevs=netdevs)
    assert env(bonds).get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1"


def test_the_only_nic_is_the_uplink(env, topo):
    """A small machine has one NIC for everything, and perhaps a second port without a cable."""
    for second in ([], [nic(1, ports=[("1: DOWN", None)])]):
        small = routed(machine([nic(0), *second], gpus=1), "net0")
        assert env(small).get("NCCL_IB_HCA") == "=mlx5_0:1"
        assert data_nics(topo, small) == ["mlx5_0"]


def test_the_uplink_is_no_substitute(env):
    """InfiniBand is down: the uplink of another fabric does not take its place in silence."""
    nics = [nic(i, ports=[("1: DOWN", None)], link="InfiniBand") for i in range(2)] + [nic(2, master="eth0")]
    result = env(machine(nics))
    assert result.rc == 65 and "mlx5_0 (port 1 is DOWN)" in result.err and "mlx5_2 (part of the uplink" in result.err


@pytest.mark.parametrize("first", [True, False])
def test_the_fabric_of_most_nics(env, topo, first):
    """Four of InfiniBand and one of Ethernet, which comes first or last."""
    ib = [nic(i, link="InfiniBand") for i in range(int(first), 4 + int(first))]
    other = nic(0 if first else 4)
    mixed = machine([other, *ib] if first else [*ib, other], gpus=4)
    result = env(mixed)
    want = [n["ib"] for n in ib]
    assert result.get("NCCL_IB_HCA") == "=" + ",".join(f"{name}:1" for name in want)
    assert "generic-ib" in result.err
    assert result.warnings("NIC_LEFT_OUT") == [f"{other['ib']} (Ethernet, most others are InfiniBand)"]
    assert data_nics(topo, mixed) == want


def test_storage_nics_are_slower(env, topo):
    """Four NICs of 100 Gb/s do not outvote two of 400."""
    mixed = machine([nic(i, link="InfiniBand") for i in range(2)] + [nic(i, rate=100) for i in range(2, 6)])
    result = env(mixed)
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1" and "generic-ib" in result.err
    assert data_nics(topo, mixed) == ["mlx5_0", "mlx5_1"]
    same = machine([nic(i) for i in range(2)] + [nic(i, rate=100) for i in range(2, 4)])
    result = env(same)
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_1:1"
    assert result.warnings("NIC_LEFT_OUT") == ["mlx5_2 (100 Gb/s, others have 400), mlx5_3 (100 Gb/s, others have 400)"]


def test_few_faster_nics(env, topo):
    """One or two of 400 Gb/s for storage beside eight of 200 for data, of their fabric or of another."""
    for link in ("InfiniBand", "Ethernet"):
        data = [nic(i, rate=200) for i in range(8)]
        mixed = machine([*data, nic(8, link=link)], gpus=8)
        result = env(mixed)
        assert result.get("NCCL_IB_HCA") == "=" + ",".join(f"mlx5_{i}:1" for i in range(8)), link
        why = "Ethernet" if link == "Ethernet" else "InfiniBand, most others are Ethernet"
        assert result.warnings("NIC_LEFT_OUT") == [f"mlx5_8 ({'400 Gb/s, others have 200' if link == 'Ethernet' else why})"]
        assert data_nics(topo, mixed) == [n["ib"] for n in data]


def test_what_was_left_out_is_said_once(env):
    result = env("13-env-uplink-vf-aks")
    assert result.warnings("EXTRA_IB_DEVICES_VISIBLE") == [] and "MIXED_NIC_SPEED" not in result.err


def test_what_is_not_in_the_pod_does_not_count(env):
    """sysfs shows the whole node; what was given decides."""
    nics = [nic(i, link="InfiniBand", given=False) for i in range(4)] + [nic(4), nic(5)]
    result = env(machine(nics))
    assert result.get("NCCL_IB_HCA") == "=mlx5_4:1,mlx5_5:1" and "generic-roce" in result.err


def sub_function(i):
    """Of NIC 0: in sysfs it lies below its PCI function, at whose address it is."""
    return dict(nic(i), path=nic(0)["path"], numa=0, sf=f"mlx5_core.sf.{i}")


def test_sub_functions_of_one_nic(env):
    """A pod has two of them, and not the NIC's own RDMA device; a machine has all."""
    both = [sub_function(4), sub_function(5)]
    assert env(machine([nic(0, given=False), *both], gpus=1)).get("NCCL_IB_HCA") == "=mlx5_4:1,mlx5_5:1"
    assert env(machine([nic(0), *both], gpus=1)).get("NCCL_IB_HCA") == "=mlx5_0:1,mlx5_4:1,mlx5_5:1"


def test_sub_functions_of_the_uplink(env, topo):
    """The default route is over the NIC's own interface, not over theirs."""
    described = routed(machine([nic(0), sub_function(4), sub_function(5)], gpus=1), "net0")
    result = env(described)
    assert result.get("NCCL_IB_HCA") == "=mlx5_4:1,mlx5_5:1"
    assert result.warnings("NIC_LEFT_OUT") == ["mlx5_0 (part of the uplink net0)"]
    assert data_nics(topo, described) == ["mlx5_4", "mlx5_5"]


# ---- addresses ----

def test_ipv6_alone(env):
    case = "10-env-roce-ipv6-only"
    result = env(case)
    assert result.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6" and result.get("NCCL_IB_GID_INDEX") is None
    assert "NIC_NO_ADDRESS" not in result.err
    # NCCL knows the family from 2.21; before, its index is 0 unless it is given one
    older = env(case, "--nccl-version", "2.20.5")
    assert older.get("NCCL_IB_ADDR_FAMILY") is None and older.get("NCCL_IB_GID_INDEX") == "3"


@pytest.mark.parametrize("version,index", [("2.20.5", "3"), ("2.21.5", None), ("2.30.7", None)])
def test_ipv4_at_its_usual_entry(env, version, index):
    result = env(machine([nic(i) for i in range(2)]), "--nccl-version", version)
    assert result.get("NCCL_IB_GID_INDEX") == index and result.get("NCCL_IB_ADDR_FAMILY") is None
    assert "GID" not in result.err


def test_ipv4_where_both_are(env):
    result = env(machine([nic(i, kinds=("local", "v4", "v6")) for i in range(2)]))
    assert result.get("NCCL_IB_ADDR_FAMILY") is None and result.get("NCCL_IB_GID_INDEX") is None


def test_ipv6_where_not_all_have_ipv4(env):
    nics = [nic(0, kinds=("local", "v6")), nic(1, kinds=("local", "v6", "v4"))]
    assert env(machine(nics)).get("NCCL_IB_ADDR_FAMILY") == "AF_INET6"


def test_no_family_is_common_to_all(env):
    nics = [nic(0), nic(1), nic(2, kinds=("local", "v6"))]
    result = env(machine(nics))
    assert result.get("NCCL_IB_ADDR_FAMILY") is None
    assert "mlx5_2:1 has only IPv6 addresses, and others have IPv4" in result.warnings("NIC_NO_ADDRESS")[0]


def test_the_users_family(env):
    result = env(machine([nic(i, kinds=("local", "v4", "v6")) for i in range(2)]),
                 env={"NCCL_IB_ADDR_FAMILY": "AF_INET6"})
    assert result.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6" and result.get("NCCL_IB_GID_INDEX") == "5"


def test_a_link_local_address(env):
    result = env("11-env-port-down-and-no-address")
    [warning] = result.warnings("NIC_NO_ADDRESS")
    assert warning.startswith("roceP2p1s0f0:1 has only the link-local address 169.254.77.3: connections")
    assert "time out" in warning and "rocep1s0f0:1" not in warning


def test_fe80_alone(env):
    result = env(machine([nic(i, kinds=("local",)) for i in range(2)]))
    [warning] = result.warnings("NIC_NO_ADDRESS")
    assert "mlx5_0:1 has only the link-local address fe80::" in warning and "mlx5_1:1 has only" in warning
    assert result.get("NCCL_IB_ADDR_FAMILY") is None


def test_unknown_is_not_without_address(env):
    """The types cannot be read at all, or there is no table: nothing is said, and nothing set."""
    for kinds in ((), ("foreign",)):
        result = env(machine([nic(i, kinds=kinds) for i in range(2)]))
        assert "NIC_NO_ADDRESS" not in result.err and result.get("NCCL_IB_GID_INDEX") is None


def test_iwarp_has_addresses_without_gids(env):
    """Its one GID is of its MAC, and of no type of RoCE v2."""
    mac = [["0216:3e00:0001:0000:0000:0000:0000:0000", "IB/RoCE v1", None]]
    result = env(machine([dict(nic(i), node_type="4: RNIC", ib=f"erdma_{i}", ports=[{"n": 1, "gids": mac}]) for i in range(2)]))
    assert result.get("NCCL_IB_HCA") == "=erdma_0:1,erdma_1:1" and "NIC_NO_ADDRESS" not in result.err
    assert result.get("NCCL_IB_GID_INDEX") is None and result.get("NCCL_IB_ADDR_FAMILY") is None


def test_infiniband_needs_no_address(env):
    assert "NIC_NO_ADDRESS" not in env("13-env-uplink-vf-aks").err


@pytest.mark.parametrize("version,says", [
    ("2.20.5", "NCCL 2.20.5 takes one entry for all NICs, and none fits: use NCCL 2.26"),
    ("2.21.5", "NCCL 2.21.5 ends with a system error (ncclIbRoceGetVersionNum)"),
    ("2.24.3", "NCCL 2.24.3 ends with a system error"), ("2.25.1", "NCCL 2.25.1 ends with a system error"),
    ("2.26.2", "NCCL 2.26.2 finds each NIC's own"), ("2.30.7", "NCCL 2.30.7 finds each NIC's own")])
def test_gids_of_other_namespaces(env, version, says):
    result = env("15-env-macvlan-gids", "--nccl-version", version)
    [warning] = result.warnings("GID_INDEX_DIFFERS")
    assert "(mlx5_0 7, mlx5_1 11)" in warning and says in warning
    assert result.get("NCCL_IB_GID_INDEX") is None


@pytest.mark.parametrize("version,index", [("2.20.5", "3"), ("2.21.5", "3"), ("2.25.1", "3"), ("2.26.2", None)])
def test_gids_of_other_namespaces_behind_the_own(env, version, index):
    """All agree on the usual entry: setting it keeps NCCL from reading the others."""
    result = env(machine([nic(i, kinds=("local", "v4", "foreign")) for i in range(2)]), "--nccl-version", version)
    assert result.get("NCCL_IB_GID_INDEX") == index


def test_gids_of_other_namespaces_that_look_like_own(env):
    """The kernel's own drivers tell their types, too, and their interfaces have the same names: addresses tell them apart."""
    nics = [nic(i, kinds=("local", "neighbour", "v4")) for i in range(2)]
    table = "".join(f"           |-- 10.{i}.0.2\n              /32 host LOCAL\n" for i in range(2))
    own = dict(machine(nics), files={"proc/net/fib_trie": f"Local:\n  +-- 0.0.0.0/0 3 0 5\n{table}"})
    result = env(own)
    assert result.get("NCCL_IB_GID_INDEX") == "5" and result.get("UCX_IB_GID_INDEX") == "5"
    assert env(machine(nics)).get("NCCL_IB_GID_INDEX") is None  # nothing tells


def test_gids_of_other_namespaces_alike_on_all(env):
    result = env(machine([nic(i, kinds=("foreign", "foreign", "foreign", "v4")) for i in range(2)]),
                 "--nccl-version", "2.21.5")
    assert result.get("NCCL_IB_GID_INDEX") == "7" and result.get("UCX_IB_GID_INDEX") == "7"


def test_a_link_local_address_before_the_own(env):
    """NCCL takes 169.254 for an address like any other, and it comes first."""
    agree = env(machine([nic(i, kinds=("local", "169.254", "v4")) for i in range(2)]))
    assert agree.get("NCCL_IB_GID_INDEX") == "5"
    differ = env(machine([nic(0, kinds=("local", "169.254", "v4")), nic(1)]))
    assert "takes entry 3 of mlx5_0: set NCCL_IB_ADDR_RANGE" in differ.warnings("GID_INDEX_DIFFERS")[0]


def test_hundreds_of_gids(env):
    """A node of many pods: the own entry is found behind all of theirs."""
    many = machine([nic(i, kinds=("local", *["foreign"] * 120, "v4")) for i in range(2)])
    assert env(many).get("NCCL_IB_GID_INDEX") == "243"


def test_the_address_of_the_second_port(env):
    """The table of the port that carries data counts."""
    ports = [{"n": 1, "state": "1: DOWN", "gids": gids(0, "foreign", "v4")},
             {"n": 2, "state": "4: ACTIVE", "gids": gids(0, "local", "hole", "v4")}]
    result = env(machine([dict(nic(0), ports=ports)], gpus=1))
    assert result.get("NCCL_IB_HCA") == "=mlx5_0:2" and result.get("NCCL_IB_GID_INDEX") == "5"


# ---- words ----

@pytest.mark.parametrize("bridges,word", [((0x10, 0x20), "NODE"), ((0x10, 0x10), "PHB")])
def test_env_and_topo_have_one_vocabulary(env, topo, bridges, word):
    """A GPU and a NIC of one NUMA node: behind two host bridges, or two ports of one."""
    paths = [f"pci0000:{bus:02x}/0000:{bus:02x}:{1 + i:02x}.0/0000:{bus + 1 + i:02x}:00.0" for i, bus in enumerate(bridges)]
    described = machine([dict(nic(0), path=paths[1], numa=0)], gpus=1)
    described["gpus"][0]["path"] = paths[0]
    result = env(described)
    assert result.warnings(f"MISALIGNED_{word}") and f"1 {word}" in result.err
    assert f"nearest NIC0 ({word})" in topo(described).out
    other = "PHB" if word == "NODE" else "NODE"
    assert not result.warnings(f"MISALIGNED_{other}")


# ---- what a device is ----

def imported(drarun, tmp_path, text):
    file = tmp_path / "manifest.yaml"
    file.write_text(text)
    return drarun("import", file)


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: %s, exactly: {deviceClassName: %s, count: 2%s}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: rank}
spec:
  resourceClaims: [{name: c, resourceClaimTemplateName: t}]
  containers: [{name: w, image: "example.org/mpi:1", command: [./app], resources: {claims: [{name: c}]}}]
"""
SELECTS = ", selectors: [{cel: {expression: \"device.attributes['x.example.com'].%s\"}}]"


def test_a_class_of_virtual_functions(drarun):
    run = drarun("import", REGRESS / "08-import-sriov-class/vf.yaml")
    assert run.rc == 0 and "neither" not in run.err and "left out" not in run.err, run.err
    assert "nics:" in run.out and "class: sriovnetwork.k8snetworkplumbingwg.io" in run.out and "count: 2" in run.out
    assert "netAttachDefName: rdma-net" in run.out
    slices = REGRESS / "08-import-sriov-class/slices.json"
    plan = drarun("plan", REGRESS / "08-import-sriov-class/job.yaml", "--slices", slices, "--classes", slices).ok()
    assert "2 GPUs, 2 NICs: 2 PIX" in plan.out


@pytest.mark.parametrize("request_name,device_class,selector,key", [
    ("r", "efa.networking.k8s.aws", "", "nics"), ("r", "fast-nics", "", "nics"), ("r", "gpu.intel.com", "", "gpus"),
    ("r", "a100.example.com", SELECTS % "gpuModel == 'A100'", "gpus"), ("gpu", "a100.example.com", "", "gpus"),
    ("nic-0", "fabric.example.com", "", "nics"), ("r", "fabric.example.com", SELECTS % "rdmaCapable == true", "nics")])
def test_classes_of_any_name(drarun, tmp_path, request_name, device_class, selector, key):
    run = imported(drarun, tmp_path, CLAIM % (request_name, device_class, selector))
    assert run.rc == 0 and f"{key}:" in run.out and f"class: {device_class}" in run.out, run.err


def test_a_class_by_what_it_selects(drarun, tmp_path):
    definition = ("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: fabric}\nspec: {selectors: [{cel: "
                  "{expression: \"device.driver == 'sriovnetwork.example.com'\"}}]}\n---\n")
    run = imported(drarun, tmp_path, definition + CLAIM.lstrip() % ("r", "fabric", ""))
    assert run.rc == 0 and "nics:" in run.out, run.err


@pytest.mark.parametrize("device_class,says", [
    ("tpu.google.com", "TPUs (class tpu.google.com) are not supported"),
    ("dra.cpu", "left out: CPUs of a job are a whole number of the capacity dra.cpu/cpu of each group"),
    ("things.example.com", "neither the class things.example.com nor the request's name or selectors say")])
def test_what_is_not_supported(drarun, tmp_path, device_class, says):
    run = imported(drarun, tmp_path, CLAIM % ("r", device_class, ""))
    assert says in run.err and "devices:" not in run.out


AMD = "14-amd-gpus"


def test_amd_gpus_in_slices(drarun):
    slices = REGRESS / AMD / "slices.yaml"
    plan = drarun("plan", REGRESS / AMD / "job.yaml", "--slices", slices, "--classes", slices).ok()
    assert "Refused" not in plan.out and "2 GPUs, 2 NICs: 2 PIX" in plan.out
    assert "GPU_VENDOR, worker 0: 2 GPUs of AMD" in plan.out
    shown = drarun("topo", "--slices", slices).ok().out
    assert "2 GPUs, 2 NICs" in shown and "0002:00:04.0" in shown and "MI300X" in shown


def test_amd_gpus_in_a_pod(env, topo):
    result = env(AMD)
    assert "8 GPUs, 8 NICs: 8 PIX; 400 GB/s of 400" in result.err
    assert result.get("HIP_VISIBLE_DEVICES") == "0,1,2,3,4,5,6,7" and result.get("CUDA_VISIBLE_DEVICES") is None
    assert "8 GPUs of AMD" in result.warnings("GPU_VENDOR")[0]
    assert "8 GPUs, 8 NICs" in topo(AMD).out


def kfd(*nodes):
    """Files of the KFD: (its PCI address as domain, bus, device; render node) of each, behind a CPU's node."""
    def node(number, domain, bus, device, minor, simds=1216):
        return {f"sys/class/kfd/kfd/topology/nodes/{number}/properties":
                f"cpu_cores_count {0 if simds else 64}\nsimd_count {simds}\nlocation_id {bus << 8 | device << 3}\n"
                f"domain {domain}\ndrm_render_minor {minor}\nunique_id 1234"}
    files = node(0, 0, 0, 0, 0, simds=0)
    for number, (domain, bus, device, minor) in enumerate(nodes, 1):
        files.update(node(number, domain, bus, device, minor))
    return files


def amd(count=4):
    """GPUs on the buses 0x13, 0x23, ..., whose NICs are beside them."""
    described = machine([nic(i) for i in range(count)], gpus=count)
    return dict(described, gpus=[dict(g, vendor="0x1002", **{"class": "0x120000"}) for g in described["gpus"]])


def test_amd_gpus_in_rocms_order(env):
    """HIP counts the KFD's nodes, whose order is not that of the addresses."""
    result = env(dict(amd(), files=kfd((0, 0x43, 0, 131), (0, 0x33, 0, 130), (0, 0x13, 0, 128), (0, 0x23, 0, 129))))
    assert result.get("HIP_VISIBLE_DEVICES") == "2,3,1,0"
    assert "order" not in result.warnings("GPU_VENDOR")[0]
    assert env(amd()).warnings("GPU_VENDOR")[0].endswith("and it is taken for that of their addresses")


def test_amd_gpus_that_the_container_was_given(env, topo):
    """sysfs shows four; the KFD's nodes, or the render nodes, say which two are here."""
    two = kfd((0, 0x43, 0, 131), (0, 0x33, 0, 130))
    four = kfd((0, 0x43, 0, 131), (0, 0x33, 0, 130), (0, 0x13, 0, 140), (0, 0x23, 0, 141))
    for files in (two, four):
        result = env(dict(amd(), files=files))
        assert "2 GPUs, 4 NICs" in result.err and result.get("HIP_VISIBLE_DEVICES") == "1,0", result.err


def test_partitions_of_an_amd_gpu(env):
    """Each has as many numbers as it has partitions."""
    files = kfd((0, 0x23, 0, 129), (0, 0x23, 0, 129), (0, 0x13, 0, 128), (0, 0x13, 0, 128))
    assert env(dict(amd(2), files=files)).get("HIP_VISIBLE_DEVICES") == "2,3,0,1"


def test_graphics_beside_accelerators(env):
    """AMD's integrated graphics do not count beside NVIDIA's GPUs, nor without the driver for computing."""
    described = machine([nic(i) for i in range(2)])
    graphics = {"path": "pci0000:00/0000:00:08.1/0000:09:00.0", "vendor": "0x1002", "class": "0x030000"}
    both_kinds = dict(described, gpus=[*described["gpus"], graphics])
    result = env(both_kinds)
    assert "2 GPUs, 2 NICs" in result.err and result.get("CUDA_VISIBLE_DEVICES") == "0,1"
    result = env(dict(described, gpus=[dict(graphics, kfd=False)]))
    assert "0 GPUs" in result.err and result.get("HIP_VISIBLE_DEVICES") is None


@pytest.mark.parametrize("vendor,name", [("0x8086", "Intel"), ("0x1ed5", "another vendor")])
def test_accelerators_of_other_vendors(env, vendor, name):
    described = machine([nic(i) for i in range(2)])
    others = [dict(g, vendor=vendor, **{"class": "0x120000"}) for g in described["gpus"]]
    result = env(dict(described, gpus=others))
    assert f"accelerators: 2 of {name}; they are not used" in result.warnings("GPU_VENDOR")[0]
    assert result.get("CUDA_VISIBLE_DEVICES") is None
    assert result.get("UCX_NET_DEVICES") == "mlx5_0:1,mlx5_1:1"  # MPI has the NICs


UNKNOWN = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n0, labels: {kubernetes.io/hostname: n0}}, status: {capacity: {cpu: "8"}}}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: a}
  spec:
    {driver: acme.example.com, nodeName: n0, pool: {name: n0, generation: 1, resourceSliceCount: 1}, devices: [
      {name: x0, attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:10"}}},
      {name: x1, attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:20"}}}]}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: b}
  spec:
    {driver: dra.net, nodeName: n0, pool: {name: n0, generation: 1, resourceSliceCount: 1}, devices: [
      {name: y0, attributes: {rdma: {bool: true}, rdmaDevice: {string: mlx5_0}, ifName: {string: ens0},
                              resource.kubernetes.io/pcieRoot: {string: "pci0000:10"}}},
      {name: y1, attributes: {rdma: {bool: true}, rdmaDevice: {string: mlx5_1}, ifName: {string: ens1},
                              resource.kubernetes.io/pcieRoot: {string: "pci0000:20"}}}]}
- {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: acme},
   spec: {selectors: [{cel: {expression: "device.driver == 'acme.example.com'"}}]}}
"""


def test_the_role_of_the_request(drarun, tmp_path):
    """Nothing but the spec says that these are GPUs: devices.gpus does."""
    (tmp_path / "slices.yaml").write_text(UNKNOWN)
    (tmp_path / "job.yaml").write_text("workers: 1\ndevices: {gpus: {count: 2, class: acme}, nics: {count: 2, class: dranet}}\n"
                                       "image: example.org/a:1\ncommand: [./a]\n")
    slices = tmp_path / "slices.yaml"
    plan = drarun("plan", tmp_path / "job.yaml", "--slices", slices, "--classes", slices).ok()
    assert "Refused" not in plan.out and "2 GPUs, 2 NICs: 2 PIX" in plan.out


def test_what_the_claims_hold_is_named(drarun, tmp_path):
    """A claim whose request says nothing: the refusal tells what it holds, not that there is nothing."""
    (tmp_path / "slices.yaml").write_text(UNKNOWN)
    results = [{"request": "r", "driver": "acme.example.com", "pool": "n0", "device": "x0"},
               {"request": "n", "driver": "dra.net", "pool": "n0", "device": "y0"}]
    requests = [{"name": "r", "exactly": {"deviceClassName": "many-gpus"}}]
    (tmp_path / "claim.json").write_text(json.dumps({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": {"devices": {"requests": requests}}, "status": {"allocation": {"devices": {"results": results}}}}))
    run = drarun("env", "--claims", tmp_path / "claim.json", "--slices", tmp_path / "slices.yaml")
    assert run.rc == 65 and "NO_GPU: the claims hold x0 of acme.example.com" in run.err, run.err


@pytest.mark.parametrize("script, status, out", [
    ('eval "$({env})"; echo "it is $?"', 0, "it is 65\n"), ('set -e; eval "$({env})"; echo on', 65, ""),
    ('eval "$({env})" || exit 9; echo on', 9, ""), ('eval "$({env} --format sh --explain)"; echo "it is $?"', 0, "it is 65\n"),
    ("{env} --format json", 65, ""), ("{env} --format docker", 65, ""), ("{env} --format nccl.conf", 65, ""), ("{env} -- echo on", 65, "")])
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_refusal_ends_eval(drarun, tmp_path, shell, script, status, out):
    """A shell's eval has status 0 when what it evaluates is empty, whatever the program that printed it says."""
    run = drarun("-c", script.format(env=f"{drarun.program} env --root {tmp_path}"), program=shell)
    assert (run.rc, run.out) == (status, out) and run.err.count("env: ") == 1, repr(run)
