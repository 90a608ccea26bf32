# SPDX-License-Identifier: Apache-2.0
"""A guest as a node (support/guest_node.py) whose hardware changes under the plugin: virtual functions, NICs that are pulled out
while they are idle, promised or in use, power that is cut while claims are prepared, and the boot after that."""
import json
import os
import shutil
import subprocess
import time

import pytest

from support.cluster import Cluster
from support.cluster.api import wait
from support.guest_node import GuestNode
from support.live_guest import CALL_S

pytestmark = pytest.mark.plain("the hook under runc is the static one")
NICS = 5  # e1000e
PF = "52:54:00:00:02:00"
STATE = "/var/lib/drarun"
VIRTUAL = 'device.attributes["dra.net"].?isSriovVf.orValue(false)'
DISK_MIB = 16
# (what is called, the system call after which the power goes, the how manieth); the others with DRARUN_SOAK set
CUTS = [("prepare", "fsync", 1), ("prepare", "rename", 1), ("unprepare", "unlinkat", 1)]
if os.environ.get("DRARUN_SOAK"):
    CUTS += [("prepare", "rename", 3), ("unprepare", "fsync", 1)]


def mac(i):
    return f"52:54:00:00:01:{i:02x}"


def machine(disks):
    """Two host bridges on two NUMA nodes; a root port for each NIC."""
    words = ["-object", "memory-backend-ram,id=m0,size=640M", "-object", "memory-backend-ram,id=m1,size=640M",
             "-numa", "node,nodeid=0,memdev=m0,cpus=0", "-numa", "node,nodeid=1,memdev=m1,cpus=1"]
    for k in (0, 1):
        words += ["-device", f"pxb-pcie,id=hb{k},bus_nr={64 * (k + 1)},bus=pcie.0,numa_node={k}"]
    for i, device in enumerate([*(f"e1000e,mac={mac(i)}" for i in range(NICS)), f"igb,mac={PF}"]):
        words += ["-netdev", f"hubport,hubid=0,id=h{i}", "-device", f"pcie-root-port,id=rp{i},bus=hb{i % 2},chassis={i + 1},slot={i + 1}",
                  "-device", f"{device},netdev=h{i},bus=rp{i},id=nic{i}"]
    for i, disk in enumerate(disks):
        words += ["-drive", f"if=none,id=disk{i},file={disk},format=raw", "-device", f"virtio-blk-pci,bus=pcie.0,drive=disk{i},serial=disk{i}"]
    return words


class Bed:
    """boot() makes a node of the disks; the first is its state's."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder, self.node = cluster, folder, None
        self.disk = folder / "state"
        subprocess.run(["mkfs.ext4", "-q", self.disk, f"{DISK_MIB}M"], check=True)
        self.pod, self.cuts = None, {}

    def boot(self, names, mtu):
        """names[i]: the host's interface of NIC i, as another udev or another order of drivers would have it."""
        node = GuestNode(self.cluster, "shared", machine([self.disk, *self.cuts.values()]), memory_mib=1280,
                         modules=("e1000e", "igb", "igbvf", "virtio_blk", "ext4"))
        self.node = node
        for i, name in enumerate(names):
            node.sh("ip link set $1 down; ip link set $1 name $2 mtu $3 up", node.interface(mac(i)), name, mtu)
        node.ok("ip", "link", "set", node.interface(PF), "up")
        self.mount("disk0")
        node.start()
        return node

    def mount(self, serial):
        self.node.sh('mkdir -p $1; for each in /sys/block/vd*; do [ "$(cat $each/serial)" = $2 ] || continue; '
                     'mount /dev/${each##*/} $1; exit 0; done; exit 1', STATE, serial)

    def cut_power(self, name):
        """What a disk holds when the power goes now. The guest goes on."""
        self.node.qmp("stop")
        self.cuts[name] = self.folder / name
        shutil.copyfile(self.disk, self.cuts[name])
        self.node.qmp("cont")


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4; run scripts/setup --test")
    with Cluster() as cluster:
        made = Bed(cluster, tmp_path_factory.mktemp("disks"))
        made.boot([f"nic{i}" for i in range(NICS)], 1400).wait_published(lambda found: len(found) == NICS + 1, "not all NICs")
        yield made
        made.node.close()


def of(i):
    return f'device.attributes["dra.net"].mac == "{mac(i)}"'


def address(i):
    return {"interface": {"name": "net1", "addresses": [f"10.9.0.{i + 1}/24"]}}


def by_mac(found):
    return {each["attributes"]["dra.net/mac"]["string"]: each for each in found.values() if "dra.net/mac" in each["attributes"]}


def taints(device):
    return [each["key"] for each in device.get("taints", ())]


def host_links(node):
    return {each["ifname"]: (each["mtu"], "UP" in each["flags"], each["address"]) for each in json.loads(node.ok("ip", "-j", "link"))
            if each["ifname"].startswith(("nic", "net", "dev"))}


def virtual(found):
    """Those that have their interface, which comes after the function."""
    return [each for each in found.values() if each["attributes"].get("dra.net/isSriovVf", {}).get("bool") and "dra.net/ifName" in each["attributes"]]


def test_virtual_functions(bed):
    """A PF gives way to its VFs, one of them runs in a pod and comes back; VFs that are taken away from a pod can be unprepared."""
    node = bed.node
    pf = by_mac(node.published())[PF]
    places = {key: (each["attributes"]["resource.kubernetes.io/pcieRoot"]["string"], each["attributes"]["resource.kubernetes.io/numaNode"]["int"])
              for key, each in by_mac(node.published()).items()}
    assert places == {**{mac(i): (f"pci0000:{'48'[i % 2]}0", i % 2) for i in range(NICS)}, PF: ("pci0000:80", 1)}
    assert pf["attributes"]["dra.net/sriovVfs"]["int"] == 0
    vfs = f"/sys/bus/pci/devices/{pf['attributes']['resource.kubernetes.io/pciBusID']['string']}/sriov_numvfs"
    node.sh("echo 2 >$1", vfs)
    node.wait_published(lambda found: len(virtual(found)) == 2 and pf["name"] not in found, "not the VFs in place of their PF")
    pod = node.pod("vf", [VIRTUAL], address(9)).prepare().sandbox()
    assert "10.9.0.10/24" in pod.run("ip address show net1").ok().out
    assert pf["name"] not in node.published() and len(virtual(node.published())) == 2
    pod.end()
    pod.unprepare()
    pod.delete()
    pod = node.pod("vf-again", [VIRTUAL], address(9)).prepare().sandbox()
    assert "10.9.0.10/24" in pod.run("ip address show net1").ok().out
    (given,) = [each["device"] for each in pod.claim()["status"]["allocation"]["devices"]["results"]]
    node.sh("echo 0 >$1", vfs)
    node.wait_published(lambda found: taints(found.get(given, {})) == ["drarun.dev/lost"], "a VF that a pod has lost is not tainted")
    pod.end()
    pod.unprepare()
    pod.delete()
    node.wait_published(lambda found: not virtual(found) and pf["name"] in found, "the PF is not back")


def changed(node, name, address):
    """As a pod that may set up its interfaces."""
    node.sh("ip -n $1 link set net1 down && ip -n $1 link set net1 address $2 && ip -n $1 link set net1 up", name, address)


def test_other_hardware_addresses(bed):
    """VFs, whose addresses are no one's own, come back to the host: with one that a pod has set, out of a namespace that lives and
    of one that has died, and one that was made again meanwhile."""
    node = bed.node
    pf = by_mac(node.published())[PF]
    vfs = f"/sys/bus/pci/devices/{pf['attributes']['resource.kubernetes.io/pciBusID']['string']}/sriov_numvfs"
    node.sh("echo 1 >$1", vfs)
    node.wait_published(lambda found: len(virtual(found)) == 1, "not the VF in place of its PF")
    (vf,) = virtual(node.published())
    bus = vf["attributes"]["resource.kubernetes.io/pciBusID"]["string"]

    def at_home():
        return {path.split("/")[-2]: text.strip() for path, text in node.guest.read(f"/sys/bus/pci/devices/{bus}/net/*/address").items()}

    before = wait("the VF has no interface", at_home, CALL_S)
    pod = node.pod("vf-living", [VIRTUAL], address(9)).prepare().sandbox()
    assert "10.9.0.10/24" in pod.run("ip address show net1").ok().out and at_home() == {}
    changed(node, pod.name, "02:00:00:00:00:77")
    pod.unprepare()
    assert at_home() == before
    pod.end()
    pod.delete()
    pod = node.pod("vf-died", [VIRTUAL], address(9)).prepare().sandbox()
    assert "10.9.0.10/24" in pod.run("ip address show net1").ok().out and at_home() == {}
    changed(node, pod.name, "02:00:00:00:00:78")
    pod.end()
    pod.unprepare()
    assert at_home() == before
    pod.delete()
    pod = node.pod("vf-anew", [VIRTUAL], address(9)).prepare().sandbox()
    assert "10.9.0.10/24" in pod.run("ip address show net1").ok().out and at_home() == {}
    node.sh("echo 0 >$1; echo 1 >$1", vfs)
    wait("the VF is not there again", at_home, CALL_S)
    pod.end()
    pod.unprepare()
    assert [*at_home()] == [*before]
    node.sh("echo 0 >$1", vfs)
    node.wait_published(lambda found: not virtual(found) and pf["name"] in found, "the PF is not back")


def test_power_cuts(bed):
    """The disk as it is after steps of Prepare and Unprepare, for the next boot; here all goes on."""
    node = bed.node
    pod = bed.pod = node.pod("cut", [of(0)], address(0))
    for verb, call, count in CUTS:
        pod.unprepare() if verb == "prepare" else pod.prepare()
        pid = node.ok("pgrep", "-x", "drarun-plugin").strip()
        node.ok("rm", "-f", "/run/strace")
        strace = node.guest.start("strace", "-o", "/run/strace", "-e", f"trace={call}", "-e", f"inject={call}:signal=STOP:when={count}",
                                  "-p", pid)
        wait("strace does not begin", lambda: "TracerPid:\t0" not in node.guest.read(f"/proc/{pid}/status").popitem()[1], CALL_S)
        calling = node.guest.start(*pod.words(verb))
        wait(lambda: f"the plugin does not come to {call} {count} of {verb}:\n{node.log()}",
             lambda: "stopped by SIGSTOP" in node.guest.read("/run/strace").get("/run/strace", ""), CALL_S)
        bed.cut_power(f"{verb}-{call}-{count}")
        node.ok("pkill", "-x", "strace")
        strace()
        node.ok("kill", "-CONT", pid)
        assert '"error"' not in calling().ok().out


def pulled(node):
    node.qmp("query-status")  # events come before its answer
    return {each["data"].get("device") for each in node.guest.events if each["event"] == "DEVICE_DELETED"}


def test_unplugged(bed):
    """Idle, promised to a pod, and in a running container: tainted, refused with a sentence, and taken back without an error."""
    node = bed.node
    before = node.published()
    promised = node.pod("promised", [of(3)], address(3)).prepare()
    running = node.pod("running", [of(4)], address(4)).prepare().sandbox()
    holding = running.start("ip address show net1; sleep 1000")
    running.await_container()
    for i in (2, 3, 4):
        node.qmp("device_del", id=f"nic{i}")
    lost = [by_mac(before)[mac(i)]["name"] for i in (2, 3, 4)]
    # a slot's button is pressed for five seconds before the kernel lets go
    wait(lambda: f"not tainted: {json.dumps(node.published())}\n{node.guest.text('console')[-3000:]}\n{node.log()}",
         lambda: all(taints(node.published().get(name, {})) == ["drarun.dev/lost"] for name in lost), CALL_S)
    wait("QEMU has not pulled them all", lambda: {"nic2", "nic3", "nic4"} <= pulled(node), CALL_S)
    refused = promised.sandbox().run("true")
    assert refused.rc != 0 and "is neither on the host nor in the container" in refused.err, refused
    running.kill_container()
    assert "10.9.0.5/24" in holding().out
    for pod in (promised, running):
        pod.unprepare()
        pod.end()
        pod.delete()
    others = {name for name in before if name not in lost}
    # the link of one that was just given back needs seconds to come up
    node.wait_published(lambda found: others <= set(found) and not any(taints(found[name]) for name in others), "others are tainted, too")


def test_boot(bed):
    """Pods have NICs when the node is reset; then the interfaces have each other's names. The old checkpoints neither restore nor keep
    anything, their claims can be prepared again and taken back; so can those of disks whose power was cut."""
    node = bed.node
    first, second = (bed.pod or node.pod("boot-0", [of(0)], address(0))).prepare(), node.pod("boot-1", [of(1)], address(1)).prepare()
    assert "10.9.0.1/24" in first.sandbox().run("ip address show net1").ok().out
    node.ok("sync")
    node.guest.start("sh", "-c", "echo b >/proc/sysrq-trigger")
    node.guest.process.wait(CALL_S)
    node.close()
    again = bed.boot(["nic1", "nic0", "other2", "other3", "other4"], 1300)
    again.wait_published(lambda found: len(found) == NICS + 1 and not any(map(taints, found.values())) and
                         by_mac(found)[mac(0)]["attributes"]["dra.net/ifName"]["string"] == "nic1", "not all NICs after the boot")
    home = host_links(again)
    assert again.log().count("prepared before the node's last boot") == 2, again.log()
    for pod in (first, second):
        pod.node = again
    assert "10.9.0.1/24" in first.prepare().sandbox().run("ip address show net1").ok().out
    first.unprepare()
    first.end()
    second.unprepare()
    assert host_links(again) == home
    assert again.ok("ls", f"{STATE}/nic.drarun.dev").split() == []
    for i, name in enumerate(bed.cuts):
        after_cut(bed, first, f"disk{i + 1}", name, home)


def after_cut(bed, pod, serial, name, home):
    """The plugin starts on what the disk held: a whole checkpoint or none, for what it promised has ended with the power;
    the claim can be had and given back."""
    node = bed.node
    node.stop()
    node.sh(f"umount {STATE}; echo >/run/plugin.log")
    bed.mount(serial)
    node.start()
    wait(lambda: f"{name}: the plugin does not serve:\n{node.log()}", lambda: not node.run("test", "-S", pod.SOCKET).rc, CALL_S)
    assert "anew" not in node.log() and "damaged" not in node.log(), (name, node.log())
    files = node.ok("ls", "-A", f"{STATE}/nic.drarun.dev").split()
    assert files in ([], [f"{pod.uid}.json"]), (name, files)
    assert "10.9.0.1/24" in pod.prepare().sandbox().run("ip address show net1").ok().out
    pod.end()
    pod.unprepare()
    assert host_links(node) == home, name
    assert node.ok("ls", "-A", f"{STATE}/nic.drarun.dev").split() == [], name
