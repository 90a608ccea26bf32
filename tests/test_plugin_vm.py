# SPDX-License-Identifier: Apache-2.0
"""`drarun-plugin discover` on real PCI functions, in a guest (tests/vm): what QEMU was told is what it finds."""
import json

from support import vm
from support.build import BUILD

# Host bridges 40 and 80 on two NUMA nodes; below the first a switch with two NICs, below the second a NIC alone and
# one with virtual functions. On bus 0 the node's uplink.
DEVICES = [
    "virtio-net-pci,bus=pcie.0,mac=52:54:00:00:00:01",
    "pxb-pcie,id=hb1,bus_nr=64,bus=pcie.0,numa_node=0", "pxb-pcie,id=hb2,bus_nr=128,bus=pcie.0,numa_node=1",
    "pcie-root-port,id=rp1,bus=hb1,chassis=1", "pcie-root-port,id=rp2,bus=hb2,chassis=2",
    "pcie-root-port,id=rp3,bus=hb2,chassis=3", "x3130-upstream,id=up,bus=rp1",
    "xio3130-downstream,id=down1,bus=up,chassis=4", "xio3130-downstream,id=down2,bus=up,chassis=5",
    "e1000e,bus=down1,mac=52:54:00:00:00:11", "e1000e,bus=down2,mac=52:54:00:00:00:12",
    "e1000e,bus=rp2,mac=52:54:00:00:00:21", "igb,bus=rp3,mac=52:54:00:00:00:31",
]
OPTIONS = ["-object", "memory-backend-ram,id=m0,size=512M", "-object", "memory-backend-ram,id=m1,size=512M",
           "-numa", "node,nodeid=0,memdev=m0,cpus=0", "-numa", "node,nodeid=1,memdev=m1,cpus=1"]
LOOK = """
await() { # so many functions have an interface here
    local found; shopt -s nullglob
    until found=(/sys/bus/pci/devices/*/net/eth* /sys/bus/pci/devices/*/virtio*/net/eth*); [ ${#found[@]} -ge "$1" ]; do sleep 0.1; done
}
modprobe -a e1000e igb igbvf virtio_net rdma_rxe
await 5
of() { grep -lx "52:54:00:00:00:$1" /sys/class/net/*/address | cut -d/ -f5; }
ip link set "$(of 01)" up; ip address add 10.9.9.2/24 dev "$(of 01)"; ip route add default via 10.9.9.1
ip link set "$(of 12)" down; rdma link add rxe_0 type rxe netdev "$(of 21)"
shown() { "$1" discover -o json --node vm; echo; }
shown "$1"
ip netns add pod; ip link set "$(of 11)" netns pod
pf=$(of 31); echo 2 >/sys/class/net/$pf/device/sriov_numvfs
await 6 # two more, and one in the pod
shown "$1"
"""


def devices(text):
    found = json.loads(text)["items"]
    return [{"name": device["name"], **{key: next(iter(value.values())) for key, value in device["attributes"].items()}}
            for each in found for device in each["spec"].get("devices", ())]


def test_functions_of_a_guest():
    done = vm.run("bash", "-c", LOOK, "bash", BUILD / "bin/drarun-plugin", devices=DEVICES, options=OPTIONS)
    assert done.rc == 0, done
    first, second = (devices(part) for part in done.out.strip().split("\n\n"))
    by_mac = {each["dra.net/mac"][-2:]: each for each in first if "dra.net/mac" in each}
    assert sorted(by_mac) == ["11", "12", "21", "31"], done  # not the uplink
    assert "it has the default route" in done.err
    places = {key: (each["resource.kubernetes.io/pcieRoot"], each["resource.kubernetes.io/numaNode"])
              for key, each in by_mac.items()}
    assert places == {"11": ("pci0000:40", 0), "12": ("pci0000:40", 0), "21": ("pci0000:80", 1), "31": ("pci0000:80", 1)}
    switches = {key: each.get("drarun.dev/pcieSwitch") for key, each in by_mac.items()}
    assert switches["11"] == switches["12"] and switches["11"].startswith("0000:4"), switches
    assert switches["21"] is None and switches["31"] is None
    assert by_mac["31"]["dra.net/sriov"] is True and by_mac["31"]["dra.net/sriovVfs"] == 0
    assert by_mac["21"]["drarun.dev/rdmaDevice"] == "rxe_0" and by_mac["21"]["dra.net/rdma"] is True
    assert {key: each["name"] for key, each in by_mac.items()} == {
        key: "pci-" + each["dra.net/pciAddress"].replace(":", "-").replace(".", "-") for key, each in by_mac.items()}
    # in a pod its function alone is left; a PF with virtual functions gives way to them
    names = {each["name"]: each for each in second}
    away = names[by_mac["11"]["name"]]
    assert "dra.net/ifName" not in away and away["resource.kubernetes.io/pcieRoot"] == "pci0000:40"
    assert f"{away['name']} is published only while a claim has it: it has neither an interface nor an RDMA device" in done.err
    assert by_mac["31"]["name"] not in names and "it has virtual functions" in done.err
    virtual = [each for each in second if each.get("dra.net/isSriovVf")]
    assert len(virtual) == 2 and all(each["resource.kubernetes.io/pcieRoot"] == "pci0000:80" for each in virtual), second
