# SPDX-License-Identifier: Apache-2.0
"""drarun-attach: a NIC into a pod's network namespace and back, in namespaces of the test's own."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from support import cluster
from support.build import BUILD, SANITIZE, patience
from support.nodes import Node
from support.timed import and_timed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
ATTACH = BUILD / "bin" / "drarun-attach"
SIZES = {"gsoMaxSize": "gso_max_size", "groMaxSize": "gro_max_size", "gsoIPv4MaxSize": "gso_ipv4_max_size",
         "groIPv4MaxSize": "gro_ipv4_max_size"}
numbers = itertools.count(1)


class Bed:
    """A host with NICs (one end of a veth each; the other, wireN, stays) and pods, each a namespace."""

    def __init__(self, folder):
        self.folder, self.pods = folder, []
        self.host = Node("host", "10.88.0.1")

    def pod(self):
        self.pods.append(Node(f"pod{len(self.pods)}", "10.88.0.2"))
        return self.pods[-1]

    def nic(self, name, up=True, mtu=1400, addresses=(), kind="veth"):
        """Makes a NIC; its order as Prepare would write it, without configuration."""
        i = next(numbers)
        mac = f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}"
        peer = ("peer", "name", f"wire{i}") if kind == "veth" else ()
        self.host.run("ip", "link", "add", name, "address", mac, "mtu", mtu, "type", kind, *peer)
        for address in addresses:
            self.host.run("ip", "address", "add", address, "dev", name)
        if up:
            self.host.run("ip", "link", "set", name, "up")
        if peer:
            self.host.run("ip", "link", "set", f"wire{i}", "up")
        now = link(self.host, name)
        sizes = {ours: now[theirs] for ours, theirs in SIZES.items() if theirs in now}
        return {"version": 1, "claim": {"namespace": "default", "name": "c", "uid": f"uid-{i}"}, "device": f"nic-{name}",
                "mac": mac, "host": {"name": name, "mtu": mtu, "up": up, "addresses": list(addresses),
                                     "hardwareAddr": mac, **sizes},
                "config": {"interface": {"name": "net1"}}, "wire": f"wire{i}"}

    def write(self, order, mode=0o600):
        path = self.folder / f"{order['device']}.json"
        path.write_text(json.dumps({key: value for key, value in order.items() if key != "wire"}))
        path.chmod(mode)
        return path

    def attach(self, pod, *paths, state=None, env=None, how=(), given=()):
        """given: the environment of the container's configuration."""
        (self.folder / "config.json").write_text(json.dumps({"root": {"path": "rootfs"}, "process": {"env": ["PATH=/bin", *given]}}))
        state = state if state is not None else json.dumps({"ociVersion": "1.0.2", "id": "x", "status": "creating",
                                                            "pid": pod.holder.pid, "bundle": str(self.folder)})
        return subprocess.run([*self.host.enter, *how, ATTACH, "attach", *paths], input=state, capture_output=True,
                              text=True, timeout=patience(), env=env)

    def restore(self, *paths):
        return subprocess.run([*self.host.enter, ATTACH, "restore", *paths], capture_output=True, text=True, timeout=patience())

    def close(self):
        for node in [*self.pods, self.host]:
            node.close()


@pytest.fixture
def bed(tmp_path):
    made = Bed(tmp_path)
    yield made
    made.close()


def shown(node, *what):
    return json.loads(node.run("ip", "-j", *what) or "[]")


def link(node, name):
    found = [each for each in shown(node, "-d", "link") if each["ifname"] == name]
    for each in found:  # the kernel says some time later what it sees of a cable
        each["flags"] = [flag for flag in each["flags"] if flag not in ("NO-CARRIER", "LOWER_UP")]
    return found[0] if found else None


def addresses(node, name):
    return sorted(f"{each['local']}/{each['prefixlen']}" for each in shown(node, "address", "show", "dev", name)[0]["addr_info"]
                  if each["scope"] != "link")


def good(run):
    assert run.returncode == 0, run.stderr
    return run


def refused(run, *parts, device=None):
    assert run.returncode == 1, (run.returncode, run.stderr)
    assert run.stderr.startswith(f"drarun-attach: {device or ''}") and run.stderr.count("\n") == 1, run.stderr
    for part in parts:
        assert part in run.stderr, run.stderr


WHOLE = {
    "interface": {"name": "net1", "addresses": ["10.9.0.2/24", "fd00:9::2/64"], "mtu": 1350,
                  "hardwareAddr": "02:aa:00:00:00:01", "gsoMaxSize": 32768, "groMaxSize": 32768, "gsoIPv4MaxSize": 30000,
                  "groIPv4MaxSize": 30000, "forwarding": True, "arpIgnore": 1, "arpAnnounce": 2},
    "routes": [{"destination": "10.20.0.0/16", "gateway": "10.9.0.1"},
               {"destination": "10.21.0.0/16", "gateway": "172.16.0.1", "table": 1000, "source": "10.9.0.2"},
               {"destination": "172.16.0.1/32", "scope": 253, "table": 1000},
               {"destination": "172.16.0.1/32", "scope": 253},
               {"destination": "fd00:20::/64", "gateway": "fd00:9::1", "table": 77},
               {"destination": "0.0.0.0/0", "gateway": "10.9.0.1"}],
    "rules": [{"priority": 100, "source": "10.9.0.2/32", "table": 1000}, {"destination": "fd00:20::/64", "table": 77}],
    "neighbors": [{"destination": "10.9.0.77", "hardwareAddr": "02:00:00:00:77:77"}],
    "ethtool": {"features": {"tso": False, "tx-checksumming": False, "rx-gro": False}},
}


@and_timed
def test_every_setting_is_there(bed, timed):
    """All of a configuration, seen from within; a second time nothing is changed; and back as it was."""
    order = bed.nic("eth1", addresses=["10.7.0.7/24"])
    order["config"] = WHOLE
    pod, path = bed.pod(), bed.write(order)
    before = link(bed.host, "eth1")
    good(bed.attach(pod, path))
    assert link(bed.host, "eth1") is None
    see_whole(pod)
    cluster.api.wait("net1 does not settle", lambda: settled(pod, "net1"), 60)
    with followed(pod) as said:
        started = time.monotonic()
        good(bed.attach(pod, path))
        took = time.monotonic() - started
    assert said == [], "a repeated attach changes nothing"
    see_whole(pod)
    assert not timed or took < 2.5, f"{took}: it waits for nothing"
    # with what another container's namespace setup has lost
    pod.run("ip", "link", "set", "net1", "down")
    pod.run("ip", "address", "flush", "dev", "net1")
    pod.run("ip", "link", "set", "net1", "mtu", "1200")
    good(bed.attach(pod, path))
    see_whole(pod)
    good(bed.restore(path))
    after = link(bed.host, "eth1")
    for key in ("mtu", "address", "flags", "gso_max_size", "gro_max_size", "gso_ipv4_max_size"):
        assert set(after[key]) == set(before[key]) if key == "flags" else after.get(key) == before.get(key), key
    assert addresses(bed.host, "eth1") == ["10.7.0.7/24"]
    good(bed.restore(path))


def settled(node, name):
    """What the kernel does by itself after a device has come up is done."""
    now = link(node, name)
    return now["operstate"] == "UP" and not any(each.get("tentative") for each in shown(node, "address", "show", "dev", name)[0]["addr_info"])


@contextlib.contextmanager
def followed(node):
    """Of a block: the lines of what changes in the node's network. What the kernel learns of neighbors by their link-local
    addresses, as of a peer that looks for routers, is nobody's change."""
    said, text, fresh = [], bytearray(), (f"127.9.9.{n}" for n in itertools.count(1))
    run = subprocess.Popen([*node.enter, "ip", "-o", "monitor", "link", "address", "route", "rule", "neigh"],
                           stdout=subprocess.PIPE)
    os.set_blocking(run.stdout.fileno(), False)

    def marked():  # for ip says nothing when it has begun
        mark = next(fresh)
        node.run("ip", "address", "add", f"{mark}/32", "dev", "lo")
        time.sleep(0.05)
        text.extend(run.stdout.read() or b"")
        return f"{mark}/".encode() in text
    try:
        cluster.api.wait("ip monitor says nothing", marked, 60)
        before = text.count(b"\n")
        yield said
        cluster.api.wait("ip monitor says nothing any more", marked, 60)
        said += [line for line in text.decode().splitlines()[before:] if "127.9.9." not in line
                 and not (line.removeprefix("Deleted ").startswith("fe80:") and "PERMANENT" not in line)]
    finally:
        run.kill()
        run.communicate()


def see_whole(pod):
    net1 = link(pod, "net1")
    assert net1["mtu"] == 1350 and net1["address"] == "02:aa:00:00:00:01" and "UP" in net1["flags"], net1
    assert [net1[key] for key in ("gso_max_size", "gro_max_size")] == [32768, 32768], net1
    assert addresses(pod, "net1") == ["10.9.0.2/24", "fd00:9::2/64"]
    assert not [each for each in shown(pod, "address", "show", "dev", "net1")[0]["addr_info"]
                if each["scope"] == "global" and "tentative" in each]
    main = {each["dst"]: each for each in shown(pod, "route")}
    assert main["10.20.0.0/16"]["gateway"] == "10.9.0.1" and main["default"]["dev"] == "net1", main
    more = {each["dst"]: each for each in shown(pod, "route", "show", "table", "1000")}
    assert more["10.21.0.0/16"]["prefsrc"] == "10.9.0.2" and more["172.16.0.1"]["scope"] == "link", more
    assert shown(pod, "-6", "route", "show", "table", "77")[0]["gateway"] == "fd00:9::1"
    assert [each["table"] for each in shown(pod, "rule") if each["priority"] == 100] == ["1000"]
    assert [each["table"] for each in shown(pod, "-6", "rule") if each.get("dst") == "fd00:20::"] == ["77"]
    assert [each["lladdr"] for each in shown(pod, "neigh") if each["state"] == ["PERMANENT"]] == ["02:00:00:00:77:77"]
    for name, value in (("arp_ignore", "1"), ("arp_announce", "2"), ("forwarding", "1")):
        assert pod.run("cat", f"/proc/sys/net/ipv4/conf/net1/{name}").strip() == value
    assert pod.run("cat", "/proc/sys/net/ipv6/conf/net1/forwarding").strip() == "1"


def test_vrf_is_shared_by_name(bed):
    """Two NICs join one VRF, whose table their routes are in; one of another table is refused, and is back on the host."""
    pod = bed.pod()
    if subprocess.run([*pod.enter, "ip", "link", "add", "red", "type", "vrf", "table", "77"], capture_output=True).returncode:
        pytest.skip("this kernel has no VRF; test_attach_guest.py has")
    pod.run("ip", "link", "del", "red")
    for i, (name, table) in enumerate((("eth1", 77), ("eth2", 77), ("eth3", 78))):
        order = bed.nic(name)
        order["config"] = {"interface": {"name": f"net{i}", "addresses": [f"10.9.{i}.2/24", f"fd00:{i}::2/64"],
                                         "vrf": {"name": "red", "table": table}},
                           "routes": [{"destination": f"10.2{i}.0.0/16", "gateway": f"10.9.{i}.1"}]}
        run = bed.attach(pod, bed.write(order))
        if table == 77:
            good(run)
            assert link(pod, f"net{i}")["master"] == "red" and len(addresses(pod, f"net{i}")) == 2
            good(bed.attach(pod, bed.write(order)))
        else:
            refused(run, "VRF red: is there with table 77, expected 78", device="nic-eth3: ")
            assert link(bed.host, "eth3") and link(pod, "net2") is None
    routes = {each["dst"] for each in shown(pod, "route", "show", "table", "77")}
    assert {"10.20.0.0/16", "10.21.0.0/16"} <= routes and "10.20.0.0/16" not in {each["dst"] for each in shown(pod, "route")}
    assert pod.run("cat", "/proc/sys/net/ipv4/tcp_l3mdev_accept").strip() == "1"


def broken(config):
    """(a configuration that the kernel refuses, what the message says)"""
    return {"interface": {"name": "net1", "addresses": ["10.9.0.2/24"], **config.pop("interface", {})}, **config}


@pytest.mark.parametrize("config, says", [
    ({"interface": {"mtu": 70000}}, "move eth1 into the container as net1"),
    ({"interface": {"hardwareAddr": "01:00:00:00:00:01"}}, "move eth1 into the container as net1"),
    ({"interface": {"gsoMaxSize": 2147483647}}, "move eth1 into the container as net1"),
    ({"routes": [{"destination": "10.20.0.0/16", "gateway": "10.99.0.1"}]}, "route 10.20.0.0/16 via 10.99.0.1: "),
    ({"routes": [{"destination": "10.20.0.0/16", "scope": 253, "source": "10.99.0.1"}]}, "route 10.20.0.0/16: "),
    ({"routes": [{"destination": "10.77.0.0/24", "scope": 253}]}, "route 10.77.0.0/24: another one is in its place"),
    ({"ethtool": {"features": {"tx-checksuming": True}}}, "has no feature"),
    ({"ethtool": {"features": {"rx-ntuple-filter": True}}}, "fixed at off"),
    ({"ethtool": {"privateFlags": {"turbo": True}}}, 'the device has no private flag "turbo"'),
    ({"interface": {"vrf": {"name": "other"}}}, "VRF other: a device of that name is there and is no VRF"),
])
def test_refused_and_back_as_it_was(bed, config, says):
    """Whatever the kernel refuses refuses the container, in one sentence, and the NIC is on the host as it was."""
    order = bed.nic("eth1", addresses=["10.7.0.7/24", "fd00:7::7/64"])
    order["config"] = broken(config)
    pod, path = bed.pod(), bed.write(order)
    pod.run("ip", "link", "add", "other", "type", "bridge")
    pod.run("ip", "address", "add", "10.77.0.1/24", "dev", "other", "noprefixroute")
    pod.run("ip", "link", "set", "other", "up")
    pod.run("ip", "route", "add", "10.77.0.0/24", "dev", "other", "scope", "link")
    before = link(bed.host, "eth1")
    refused(bed.attach(pod, path), says, device="nic-eth1: ")
    after = link(bed.host, "eth1")
    assert after and [after[key] for key in ("mtu", "address", "flags")] == [before[key] for key in ("mtu", "address", "flags")]
    assert addresses(bed.host, "eth1") == ["10.7.0.7/24", "fd00:7::7/64"] and link(pod, "net1") is None
    order["config"] = broken({})
    bed.write(order)
    good(bed.attach(pod, path))
    assert addresses(pod, "net1") == ["10.9.0.2/24"]


def test_name_taken_missing_and_in_use(bed):
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    pod.run("ip", "link", "add", "net1", "type", "bridge")
    refused(bed.attach(pod, path), "the container has another device called net1 already", device="nic-eth1: ")
    assert "UP" in link(bed.host, "eth1")["flags"]
    pod.run("ip", "link", "del", "net1")
    bed.host.run("ip", "link", "add", "br9", "type", "bridge")
    bed.host.run("ip", "link", "set", "eth1", "master", "br9")
    refused(bed.attach(pod, path), "eth1 is in use on the host: it belongs to another device")
    bed.host.run("ip", "link", "del", "eth1")
    started = time.monotonic()
    refused(bed.attach(pod, path), f"eth1 ({order['mac']}) is neither on the host nor in the container")
    assert time.monotonic() - started > 2.9


def test_waits_for_a_device_on_its_way_back(bed):
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    bed.host.run("ip", "link", "set", "eth1", "netns", bed.pod().holder.pid)
    later = subprocess.Popen([*bed.pods[1].enter, "sh", "-c",
                              f"sleep 0.7; ip link set eth1 name dev7 netns {bed.host.holder.pid}"])
    good(bed.attach(pod, path))
    later.wait()
    assert link(pod, "net1")["address"] == order["mac"]


def test_host_network_pod_leaves_it_on_the_host(bed):
    """It does not start: of a claim that pods share, Prepare has seen another one."""
    order = bed.nic("eth1")
    order["config"] = WHOLE
    done = bed.attach(bed.host, bed.write(order))
    assert done.returncode == 1 and "hostNetwork: true), where eth1 cannot be its own" in done.stderr, done
    assert link(bed.host, "eth1")["mtu"] == 1400 and link(bed.host, "net1") is None


def test_several_orders_in_one_call(bed):
    orders = [bed.nic(f"eth{i}") for i in range(1, 4)]
    for i, order in enumerate(orders):
        order["config"] = {"interface": {"name": f"net{i}", "addresses": [f"10.9.{i}.2/24"]}}
    pod, paths = bed.pod(), [bed.write(order) for order in orders]
    good(bed.attach(pod, *paths))
    assert [addresses(pod, f"net{i}") for i in range(3)] == [[f"10.9.{i}.2/24"] for i in range(3)]


def test_several_taken_back_in_one_call(bed):
    """One that fails and one that is gone keep no other from coming back."""
    orders = [bed.nic(f"eth{i}") for i in range(1, 5)]
    for i, order in enumerate(orders):
        order["config"] = {"interface": {"name": f"net{i}"}}
    pod, paths = bed.pod(), [bed.write(order) for order in orders]
    good(bed.attach(pod, *paths))
    bed.host.run("ip", "link", "add", "eth1", "type", "veth", "peer", "name", "another")
    pod.run("ip", "link", "del", "net1")
    run = bed.restore(*paths)
    refused(run, "cannot come back from a pod as eth1", device="nic-eth1: ")
    assert run.stdout == "nic-eth2: eth2 ended with its pod's network\n"
    assert link(bed.host, "eth3") and link(bed.host, "eth4") and link(pod, "net0")
    bed.host.run("ip", "link", "del", "eth1")
    assert bed.restore(*paths).returncode == 3 and link(bed.host, "eth1")
    good(bed.restore(paths[0], *paths[2:]))


def test_a_container_gets_what_it_lists(bed):
    """One hook for all devices of a claim: those that the container's environment marks. Another claim's marks say nothing, and
    without one of its own all are meant: an older plugin's specification has a hook for each."""
    orders = [bed.nic(f"eth{i}") for i in (1, 2, 3)]
    for i, order in enumerate(orders):
        order["claim"]["uid"], order["config"] = "0a-1b", {"interface": {"name": f"net{i}"}}
    pod, other, paths = bed.pod(), bed.pod(), [bed.write(order) for order in orders]

    def inside(where):
        return [name for name in ("net0", "net1", "net2") if link(where, name)]
    good(bed.attach(pod, *paths, given=["DRARUN_NIC_0a_1b_nic_eth2=1", "DRARUN_NIC_other_nic_eth3=1"]))
    assert inside(pod) == ["net1"]
    good(bed.attach(pod, *paths, given=["DRARUN_NIC_0a_1b_nic_eth3=1", "DRARUN_NIC_0a_1b_nic_eth2=1"]))
    assert inside(pod) == ["net1", "net2"]
    for path in paths:
        good(bed.restore(path))
    good(bed.attach(other, *paths, given=["DRARUN_NIC_other_nic_eth3=1"]))
    assert inside(other) == ["net0", "net1", "net2"]


def test_taken_back_from_a_pod_that_lives(bed):
    """Found by its process, down or up as it was, under its name."""
    for up in (True, False):
        order = bed.nic(f"eth-{up}", up=up, addresses=["10.7.0.7/24"])
        order["config"] = {"interface": {"name": "net1", "mtu": 1300, "hardwareAddr": "02:bb:00:00:00:01"}}
        pod, path = bed.pod(), bed.write(order)
        good(bed.attach(pod, path))
        good(bed.restore(path))
        back = link(bed.host, f"eth-{up}")
        assert back["mtu"] == 1400 and back["address"] == order["mac"] and ("UP" in back["flags"]) == up, back
        assert addresses(bed.host, f"eth-{up}") == ["10.7.0.7/24"] and link(pod, "net1") is None


def test_what_a_pod_has_put_on_it_does_not_stay(bed):
    """On the next one's NIC it would see that pod's packets. What is the pod's from another NIC of the host is not touched."""
    order, other, pod = bed.nic("eth1"), bed.nic("eth2"), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    for name in ("mac0", "mac1"):
        pod.run("ip", "link", "add", "link", "net1", "name", name, "type", "macvlan", "mode", "bridge")
    bed.host.run("ip", "link", "add", "link", other["host"]["name"], "name", "mac2", "type", "macvlan", "mode", "bridge")
    bed.host.run("ip", "link", "set", "mac2", "netns", pod.holder.pid)
    good(bed.restore(path))
    assert link(bed.host, "eth1") and [name for name in ("net1", "mac0", "mac1", "mac2") if link(pod, name)] == ["mac2"]


def test_taken_back_from_a_namespace_without_process(bed, tmp_path):
    """As a sandbox's that has ended: it is mounted in /run/netns alone."""
    order, name = bed.nic("eth1"), f"drarun-test-{os.getpid()}"
    path = bed.write(order)
    # a process of the host's mount namespace sees what another's mounts, where ip netns makes them shared
    script = (f"set -e; mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns; ip netns add {name}; mkfifo {tmp_path}/ready; "
              f"ip netns exec {name} sh -c 'echo $$ >{tmp_path}/ready; exec sleep 600' & read pid <{tmp_path}/ready; "
              f"echo '{{\"status\": \"creating\", \"pid\": '$pid'}}' | {ATTACH} attach {path}; ip netns exec {name} ip link show net1; "
              f"kill $pid; wait $pid || true; {ATTACH} restore {path}; ip link show eth1")
    out = bed.host.run("sh", "-c", script)
    assert "net1" in out and "eth1" in out, out


def plant(node, name, mac, *more):
    node.run("ip", "link", "add", name, "address", mac, *more, "type", "veth", "peer", "name", f"{name}-peer")


@pytest.mark.parametrize("attached", [False, True], ids=["never-attached", "attached"])
@pytest.mark.parametrize("asked", [None, "02:cc:00:00:00:01"], ids=["its-own-address", "one-of-the-claim"])
def test_another_pods_interface_is_not_taken(bed, asked, attached):
    """A tenant chooses hardware addresses: in a claim's configuration, and in its own pod."""
    order, victim, pod = bed.nic("eth1"), bed.pod(), bed.pod()
    order["config"] = {"interface": {"name": "net1", **({"hardwareAddr": asked} if asked else {})}}
    path, mac = bed.write(order), asked or order["mac"]
    if attached:
        good(bed.attach(pod, path))
    plant(victim, "eth0", mac)
    bed.host.run("ip", "link", "del", order["wire"])
    assert bed.restore(path).returncode == 3
    assert link(victim, "eth0")["address"] == mac and link(bed.host, "eth1") is None


def test_a_pair_that_a_pod_has_planted_is_not_taken(bed):
    """Under the name, address and numbers of the NIC that it has deleted: the pod would hold the other end of a cable."""
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    was = link(pod, "net1")
    pod.run("ip", "link", "del", "net1")
    pod.run("ip", "link", "add", "net1", "index", was["ifindex"], "address", order["mac"], "type", "veth", "peer", "name", "mine",
            "index", was["link_index"])
    assert bed.restore(path).returncode == 3
    assert link(pod, "net1")["address"] == order["mac"] and link(bed.host, "eth1") is None


TUNNEL = ("type", "vxlan", "id", "7", "dstport", "4789", "local", "10.88.0.1")


def tunnel(bed):
    """A NIC that is an end of a tunnel of the host's."""
    order = bed.nic("eth1")
    bed.host.run("ip", "link", "del", "eth1")
    bed.host.run("ip", "link", "add", "eth1", "address", order["mac"], *TUNNEL)
    order["host"] = {"name": "eth1", "mtu": link(bed.host, "eth1")["mtu"], "up": False, "addresses": []}
    return order


def test_a_tunnel_of_the_host_comes_back(bed):
    order, pod = tunnel(bed), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    good(bed.restore(path))
    assert link(bed.host, "eth1")["address"] == order["mac"] and link(pod, "net1") is None


def test_a_tunnel_that_a_pod_has_planted_is_not_taken(bed):
    """In place of the host's, when the hook was killed before it could note the device's number: its other end is in a network of
    the pod's."""
    order, pod, inner = tunnel(bed), bed.pod(), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    place = next(bed.folder.glob("*.place"))
    place.write_text(json.dumps({**json.loads(place.read_text()), "index": 0, "peerNs": -1}))
    was = link(pod, "net1")
    pod.run("ip", "link", "del", "net1")
    inner.run("ip", "link", "add", "net1", "index", was["ifindex"], "address", order["mac"], *TUNNEL)
    inner.run("ip", "link", "set", "net1", "netns", pod.holder.pid)
    assert bed.restore(path).returncode == 3
    assert link(pod, "net1")["address"] == order["mac"] and link(bed.host, "eth1") is None


def test_a_device_of_the_hosts_is_not_given_away(bed):
    """Not for an address that the claim asks for, when the NIC itself is not there."""
    order, pod = bed.nic("eth1"), bed.pod()
    bed.host.run("ip", "link", "del", order["wire"])
    plant(bed.host, "flannel.1", "02:dd:00:00:00:01")
    order["config"] = {"interface": {"name": "net1", "hardwareAddr": "02:dd:00:00:00:01"}}
    refused(bed.attach(pod, bed.write(order)), "is neither on the host nor in the container", device="nic-eth1: ")
    assert link(bed.host, "flannel.1") and link(pod, "net1") is None


def test_process_of_another_container(bed):
    """A state that names it moves nothing out of the container that has the device, or into the host's first process."""
    order, pod, other = bed.nic("eth1"), bed.pod(), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    refused(bed.attach(other, path), "is neither on the host nor in the container", device="nic-eth1: ")
    assert link(pod, "net1")["address"] == order["mac"] and link(other, "net1") is None
    good(bed.restore(path))


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace; run scripts/setup --test")
@and_timed
def test_unplugged_while_it_is_attached(bed, tmp_path, timed):
    """Before its Nth message, for every fourth N, and at its end: refused with a sentence or attached to what is gone, and
    restore ends at once, well."""
    pod, seen, took, stopped = bed.pod(), [], [], True
    for n in itertools.count(1, 4):
        if not stopped:
            break
        assert n < 100
        order = bed.nic("eth1")
        order["config"] = WHOLE
        path = bed.write(order)
        run, stopped = unplugged_before(bed, pod, path, n, tmp_path / f"strace-{n}", order["wire"])
        seen.append(run.returncode)
        if run.returncode:
            refused(run, device="nic-eth1: ")
        started = time.monotonic()
        assert bed.restore(path).returncode == 3
        took.append(time.monotonic() - started)
        assert link(pod, "net1") is None and link(bed.host, "eth1") is None
        for family in ("-4", "-6"):  # which are the namespace's
            pod.run("sh", "-c", f"ip {family} rule del table 1000; ip {family} rule del table 77; true")
    assert seen[-1] == 0 and seen.count(1) > 3, seen
    assert not timed or max(took) < 3, took


def unplugged_before(bed, pod, path, n, trace, wire):
    """drarun-attach, stopped before its Nth message until the device is gone: (how it ended, whether it was stopped)."""
    how = ["env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-D", "-qq", "-o", trace, "-e", "trace=sendmsg",
           "-e", f"inject=sendmsg:signal=STOP:when={n}"]  # LeakSanitizer cannot live with a tracer
    run = subprocess.Popen([*bed.host.enter, *how, ATTACH, "attach", path], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdin.write(json.dumps({"pid": pod.holder.pid}))
    run.stdin.close()
    cluster.api.wait(f"neither stopped before message {n} nor ended", lambda: run.poll() is not None or is_stopped(trace), 60)
    stopped = run.returncode is None
    bed.host.run("ip", "link", "del", wire)
    if stopped:
        run.send_signal(signal.SIGCONT)
    err = run.stderr.read()
    return subprocess.CompletedProcess(run.args, run.wait(timeout=patience()), "", err), stopped


def is_stopped(trace):
    return trace.exists() and "stopped by SIGSTOP" in trace.read_text()


def test_virtual_device_that_died_is_told(bed):
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    pod.close()
    for _ in range(2):
        run = bed.restore(path)
        assert run.returncode == 3 and run.stdout == "nic-eth1: eth1 ended with its pod's network\n", run


def test_host_name_taken_meanwhile(bed):
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    good(bed.attach(pod, path))
    bed.host.run("ip", "link", "add", "eth1", "type", "bridge")
    refused(bed.restore(path), "cannot come back from a pod as eth1: the host has another eth1")
    assert link(pod, "net1")
    bed.host.run("ip", "link", "del", "eth1")
    good(bed.restore(path))


def crossed(bed, count):
    """NICs whose names in the pod are each other's on the host, in a circle: (their orders' files, how they are on the host)."""
    names = [f"eth{i}" for i in range(count)]
    orders = [bed.nic(name, mtu=1400 + i, addresses=[f"10.7.{i}.7/24"]) for i, name in enumerate(names)]
    for i, order in enumerate(orders):
        order["config"] = {"interface": {"name": names[(i + 1) % count]}}
    return [bed.write(order) for order in orders], [host_state(bed, name) for name in names]


def cross(bed, count):
    """As the kernel gives hardware NICs back when the pod's network dies: down, under their names there. (A veth would end with it.)"""
    for i in range(count):
        bed.host.run("ip", "link", "set", f"eth{i}", "down")
        bed.host.run("ip", "link", "set", f"eth{i}", "name", f"way{i}")
    for i in range(count):
        bed.host.run("ip", "link", "set", f"way{i}", "name", f"eth{(i + 1) % count}")


def as_they_were(bed, before):
    return [host_state(bed, f"eth{i}") for i in range(len(before))] == before


@pytest.mark.parametrize("count", [2, 3])
def test_names_that_cross(bed, count):
    """Out of a pod that lives, and after its network has died."""
    paths, before = crossed(bed, count)
    for path in paths:
        good(bed.attach(bed.pods[0] if bed.pods else bed.pod(), path))
    assert [link(bed.pods[0], f"eth{(i + 1) % count}")["mtu"] for i in range(count)] == [1400 + i for i in range(count)]
    good(bed.restore(*paths))
    assert as_they_were(bed, before)
    cross(bed, count)
    good(bed.restore(*paths))
    assert as_they_were(bed, before)


def test_names_that_cross_between_claims(bed):
    """Each has its own Unprepare: the first one's is refused once."""
    paths, before = crossed(bed, 2)
    cross(bed, 2)
    refused(bed.restore(paths[0]), "cannot be called eth0 again: the host has another eth0", device="nic-eth0: ")
    good(bed.restore(paths[1]))
    good(bed.restore(paths[0]))
    assert as_they_were(bed, before)


@pytest.mark.plain("strace traces it, and so does the leak check")
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace; run scripts/setup --test")
def test_killed_while_names_cross(bed):
    """After its Nth message: what is repeated then ends where it always ends."""
    paths, before = crossed(bed, 2)
    killed = 0
    for n in itertools.count(1):
        cross(bed, 2)
        run = subprocess.run([*bed.host.enter, *kill_after(n), ATTACH, "restore", *paths], capture_output=True, text=True, timeout=patience())
        assert run.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), run
        killed += run.returncode != 0
        good(bed.restore(*paths))
        assert as_they_were(bed, before), n
        if run.returncode == 0:
            break
        assert n < 100
    assert killed > 3, killed


@pytest.mark.parametrize("state, says", [
    ("", "container state: expected one document, got 0"),
    ("{", "container state:1:"),
    ("[]", "expected a mapping"),
    ("{}", "expected \"pid\""),
    ('{"pid": 1}', "expected an integer of at least 2"),
    ('{"pid": 0}', "expected an integer of at least 2"),
    ('{"pid": -5}', "expected an integer"),
    ('{"pid": "5"}', "expected an integer"),
    ('{"pid": 4194305}', "expected an integer of at most"),
    ('{"pid": 4194303}', "the container's process 4194303: "),
    ('{"pid": 99999999999999999999}', "container state:1:"),
    ('{"status": "stopped", "pid": 5}', "the container has ended already"),
    pytest.param("x" * (2 << 20), "larger than 1048576 bytes", id="too-large"),  # ids go into the environment
    ('{"a":' * 100, "container state:1:"),
    ('{"pid": 5}{"pid": 6}', "expected one document, got 2"),
])
def test_hostile_state(bed, state, says):
    path = bed.write(bed.nic("eth1"))
    refused(bed.attach(bed.host, path, state=state), says, device="hook: ")


def test_state_that_does_not_end(bed):
    run = subprocess.Popen([ATTACH, "attach", bed.write(bed.nic("eth1"))], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdin.write("{")
    run.stdin.flush()
    assert run.wait(timeout=patience()) == 1 and "its end has not come on standard input" in run.stderr.read()


def test_orders_that_root_must_not_follow(bed):
    """Links, others' files, devices: refused before anything is done."""
    order, pod = bed.nic("eth1"), bed.pod()
    path = bed.write(order)
    real = path.rename(path.with_suffix(".real"))
    path.symlink_to(real)
    refused(bed.attach(pod, path), "is a link", device="order: ")
    path.unlink()
    os.mkfifo(path)
    refused(bed.attach(pod, path), "expected a regular file", device="order: ")
    path.unlink()
    real.rename(path)
    path.chmod(0o622)
    refused(bed.attach(pod, path), "others may write it", device="order: ")
    path.chmod(0o600)
    os.chown(path, 1234, 1234)
    refused(bed.attach(pod, path), "belongs to user 1234", device="order: ")
    os.chown(path, 0, 0)
    refused(bed.attach(pod, "/dev/null"), "expected a regular file", device="order: ")
    assert link(bed.host, "eth1")
    order["version"] = 2
    bed.write(order)
    refused(bed.attach(pod, path), "this program reads version 1", device="order: ")
    refused(bed.restore(path), "this program reads version 1", device="order: ")


def test_environment_and_descriptors_change_nothing(bed):
    order, pod = bed.nic("eth1"), bed.pod()
    hostile = {"LD_PRELOAD": "/tmp/x.so", "LD_LIBRARY_PATH": "/tmp", "NLCB": "debug", "NLDBG": "9", "MALLOC_TRACE": "/tmp/trace",
               "LANG": "xx", "PATH": "", "GCONV_PATH": "/tmp", "RES_OPTIONS": "x", "TMPDIR": "/nonexistent"}
    if SANITIZE:
        hostile.pop("LD_PRELOAD"), hostile.pop("LD_LIBRARY_PATH")
    # nsenter itself is dynamic: the environment is for the hook alone
    words = ["env", *(f"{name}={value}" for name, value in hostile.items())]
    run = good(bed.attach(pod, bed.write(order), how=words))
    assert run.stdout == "" and run.stderr.replace("ERROR: ld.so", "") == run.stderr or SANITIZE, run
    run = bed.host.run("sh", "-c", f'echo \'{{"pid": {pod.holder.pid}}}\' | {ATTACH} attach {bed.folder}/nic-eth1.json >&- 2>&-')
    assert link(pod, "net1")


@pytest.mark.plain("strace traces it, and so does the leak check")
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace; run scripts/setup --test")
@pytest.mark.parametrize("action, step", [("attach", 2), ("restore", 4)])
def test_killed_between_orders_to_the_kernel(bed, action, step):
    """Killed after its Nth message, for every second (fourth) N: what is repeated then ends where it always ends."""
    order = bed.nic("eth1", addresses=["10.7.0.7/24"])
    order["config"] = WHOLE
    pod, path = bed.pod(), bed.write(order)
    before, killed = host_state(bed), 0
    for n in itertools.count(1, step):
        if action == "restore":
            good(bed.attach(pod, path))
        run = bed.attach(pod, path, how=kill_after(n)) if action == "attach" else subprocess.run(
            [*bed.host.enter, *kill_after(n), ATTACH, "restore", path], capture_output=True, text=True, timeout=patience())
        assert run.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), run
        killed += run.returncode != 0
        if n % 6 == 1:
            good(bed.attach(pod, path))
            see_whole(pod)
        good(bed.restore(path))
        assert host_state(bed) == before, n
        if run.returncode == 0:
            break
        assert n < 100
    assert killed > 3, killed


def kill_after(n):
    return ["strace", "-qq", "-o", "/dev/null", "-e", "trace=sendmsg", "-e", f"inject=sendmsg:signal=KILL:when={n}"]


def host_state(bed, name="eth1"):
    now = link(bed.host, name)
    return now and [now[key] for key in ("mtu", "address", "gso_max_size", "gro_max_size")] + ["UP" in now["flags"], addresses(bed.host, name)]


def test_two_at_once(bed):
    """Two containers' hooks for one NIC: one after the other, both succeed."""
    order = bed.nic("eth1")
    order["config"] = WHOLE
    pod, path = bed.pod(), bed.write(order)
    runs = [subprocess.Popen([*bed.host.enter, ATTACH, "attach", path], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(4)]
    for run in runs:
        run.stdin.write(json.dumps({"pid": pod.holder.pid}))
        run.stdin.close()
    assert [run.wait(timeout=patience()) for run in runs] == [0] * 4, [run.stderr.read() for run in runs]
    see_whole(pod)


def bundle(folder, program, pod, orders, command):
    """A container of busybox in the pod's network, with the hook as CDI edits have it."""
    root = folder.parent / "rootfs"
    for name in ("bin", "proc", "dev", "sys"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    folder.mkdir()
    subprocess.run([program, "spec"], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    config["process"].update(args=["/bin/busybox", "sh", "-c", command], terminal=False)
    for each in ("bounding", "effective", "permitted"):
        config["process"]["capabilities"][each] = ["CAP_NET_RAW"]
    config["process"].pop("rlimits", None), config["process"].pop("oomScoreAdj", None)
    config["root"] = {"path": str(root), "readonly": True}
    config["linux"].update(namespaces=[*({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                                       {"type": "network", "path": f"/proc/{pod.holder.pid}/ns/net"}],
                           cgroupsPath=f"/drarun-test-{os.getpid()}-{folder.name}")
    config["linux"].pop("resources", None)
    config["mounts"] = [each for each in config["mounts"] if each["type"] in ("proc", "tmpfs")]
    config["hooks"] = {"createRuntime": [{"path": str(ATTACH), "args": ["drarun-attach", "attach", *map(str, orders)],
                                          "timeout": 30}]}
    (folder / "config.json").write_text(json.dumps(config))


def test_under_runc(bed, tmp_path):
    """An init container, two containers of the pod, one of them again: each sees its NIC before its first instruction, and a
    container whose NIC cannot be had does not start."""
    programs, reason = cluster.fetched()
    if not programs:
        pytest.skip(reason)
    program, order, pod = programs / "runc", bed.nic("eth1"), bed.pod()
    order["config"] = WHOLE
    path, other = bed.write(order), bed.write({**bed.nic("eth2"), "mac": "02:ff:ff:ff:ff:ff"})
    bed.host.run("ip", "address", "add", "10.9.0.1/24", "dev", order["wire"])

    def run(container, *orders):
        folder = tmp_path / container
        bundle(folder, program, pod, orders, "busybox ip -o addr show net1; busybox ping -c1 -W2 10.9.0.1 || busybox true")
        # the network alone: cgroups are mounted in this mount namespace
        enter = ["nsenter", "-t", str(bed.host.holder.pid), "--net"]
        started = subprocess.run([*enter, program, "--root", tmp_path / "state", "run", "-b", folder,
                                  f"drarun-test-{os.getpid()}-{container}"], capture_output=True, text=True, timeout=patience(),
                                 stdin=subprocess.DEVNULL)
        subprocess.run([program, "--root", tmp_path / "state", "delete", "-f", f"drarun-test-{os.getpid()}-{container}"],
                       capture_output=True, timeout=patience())
        return started

    for done in [run(container, path) for container in ("init", "one", "two", "one-again")]:
        assert "10.9.0.2/24" in done.stdout and "1 packets received" in done.stdout, done
    none = run("none", other)
    assert none.returncode != 0 and "net1" not in none.stdout, none
    assert "drarun-attach: nic-eth2: eth2 (02:ff:ff:ff:ff:ff) is neither on the host nor in the container" in none.stderr, none
    good(bed.restore(path))


def test_usage():
    for words in ((), ("attach",), ("detach", "x"), ("restore",)):
        run = subprocess.run([ATTACH, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert run.returncode == 64 and run.stderr.startswith("usage: drarun-attach attach ORDER"), run
    assert "createRuntime" in subprocess.run([ATTACH, "--help"], capture_output=True, text=True, check=True).stdout


@pytest.mark.plain("linked dynamically")
def test_static_and_small():
    out = subprocess.run(["readelf", "-ld", ATTACH], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in out and "NEEDED" not in out
