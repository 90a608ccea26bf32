# SPDX-License-Identifier: Apache-2.0
"""A guest as a node (support/guest_node.py): PCI NICs with RDMA devices, from ResourceSlices to traffic between containers, and
home again. In exclusive mode the RDMA device goes with the NIC; in shared mode it stays, and a container has its device node."""
import concurrent.futures
import json
import os
import re
import threading

import pytest

from support import vm
from support.build import BUILD
from support.cluster import Cluster
from support.cluster.api import wait
from support.guest_node import GuestNode
from support.live_guest import CALL_S

pytestmark = pytest.mark.plain("the hook under runc is the static one")
MACS = ["52:54:00:00:01:00", "52:54:00:00:01:01"]
OPTIONS = [word for i, mac in enumerate(MACS) for word in (
    "-netdev", f"hubport,hubid=0,id=h{i}", "-device", f"pxb-pcie,id=hb{i},bus_nr={64 * (i + 1)},bus=pcie.0",
    "-device", f"pcie-root-port,id=rp{i},bus=hb{i},chassis={i + 1}", "-device", f"e1000e,bus=rp{i},netdev=h{i},mac={mac}")]
MTU = 4200  # room for RoCE's 4096
ALLREDUCE = BUILD / "bin/examples/allreduce"
KEY = "/run/agents.key"
PAYLOAD = 10 * (1 << 20)  # what each rank of examples/allreduce sends: ten times 2^17 doubles
# rxe leaves the service level of a completion 0, by which UCX up to 1.17 drops what came with an IPv4 header (openucx/ucx 10209)
RXE = ["-x", "UCX_UD_VERBS_ETH_DGID_CHECK=n"]
ROUNDS = 40 if os.environ.get("DRARUN_SOAK") else 3


def modes():
    """Both with DRARUN_SOAK set; exclusive mode is the one that moves more."""
    return ["exclusive", "shared"] if os.environ.get("DRARUN_SOAK") else ["exclusive"]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


@pytest.fixture(scope="module", params=modes())
def node(cluster, request):
    vm.need_movable_rdma()
    made = GuestNode(cluster, request.param, OPTIONS)
    for i, mac in enumerate(MACS):
        made.sh('ip link set $1 name rail$2 mtu $3 up; rdma link add rxe_$2 type rxe netdev rail$2', made.interface(mac), i, MTU)
    made.start()
    made.wait_published(lambda found: len(found) == 2 and all(
        "drarun.dev/rdmaDevice" in each["attributes"] for each in found.values()), "not two NICs with RDMA devices")
    made.home = host(made)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def cleared(node):
    yield
    node.clear()


def host(node):
    """What the host has of the NICs: interfaces, addresses and RDMA devices."""
    links = {each["ifname"]: (each["mtu"], "UP" in each["flags"], each["address"], len(each["addr_info"]))
             for each in json.loads(node.ok("ip", "-j", "address")) if each["ifname"].startswith(("rail", "net", "dev"))}
    rdma = {each["ifname"]: each.get("netdev") for each in json.loads(node.ok("rdma", "-j", "link"))}
    return links, rdma


def at_home(node):
    """All that pods had is on the host as it was, and the plugin keeps nothing."""
    wait(lambda: f"expected {node.home}, found {host(node)}\n{node.log()}", lambda: host(node) == node.home, CALL_S)
    left = node.sh("ls /var/lib/drarun/nic.drarun.dev /run/drarun/orders; ls /var/run/cdi")
    assert "json" not in left and "metadata" not in left, left


def net(i):
    return {"interface": {"name": "net1", "addresses": [f"10.9.0.{i + 1}/24"], "mtu": MTU}}


def packets(node):
    """{RDMA device: packets sent}, wherever it is: a device is seen in its own network namespace, or from all."""
    found = {}
    for space in ["", *node.sh("ip netns list | cut -d' ' -f1").split()]:
        enter = ["ip", "netns", "exec", space] if space else []
        for each in json.loads(node.ok(*enter, "rdma", "-j", "statistic")):
            found[each["ifname"]] = each["sent_pkts"]
    return found


def sees(done):
    """(RDMA devices listed, verbs devices that can be opened, RoCE v2 GIDs of IPv4) in a container."""
    lists, nodes, gids = done.ok().out.split("\n--\n")
    return lists.split(), nodes.split(), gids.split()


LOOK = """ls /sys/class/infiniband; echo --; cd /dev/infiniband; for each in uverbs*; do : <>$each && echo $each; done; echo --
grep -h 0000:ffff: /sys/class/infiniband/*/ports/1/gids/* || true"""


def test_all_reduce_over_roce(node):
    """Claims allocated by the scheduler, prepared by the plugin, attached by the hook; agents in the containers, a launcher outside,
    the environment from `drarun env` inside: the sums are right, and the devices' counters show that the data went over RDMA."""
    if not ALLREDUCE.exists():
        pytest.skip("no MPI library when this was built; run scripts/setup --test")
    node.sh("umask 077; od -An -N32 -vtx1 /dev/urandom | tr -d ' \\n' >$1", KEY)
    pods = [node.pod(name, config=net(i)).prepare().sandbox() for i, name in enumerate(("a", "b"))]
    rank = f'e=$({BUILD}/bin/drarun env --network rdma) && eval "$e" && echo devices $UCX_NET_DEVICES && exec {ALLREDUCE}'
    before, around = packets(node), [pod.network_bytes() for pod in pods]
    agents = []
    for pod in pods:
        agents.append(pod.start(f"exec {BUILD}/bin/drarun-worker --listen {pod.address}:7100 --key-file {KEY} --once", binds=[KEY]))
    for pod in pods:
        pod.await_container()
    done = node.run(BUILD / "bin/drarun", "--agents", ",".join(f"{pod.address}:7100" for pod in pods), "--key-file", KEY,
                    "--start-timeout", CALL_S, "-n", 2, "-x", "OMPI_MCA_pml=ucx", "-x", "UCX_LOG_LEVEL=info", *RXE, "sh", "-c", rank)
    after = packets(node)
    assert done.rc == 0 and "2 ranks, workers: 2, hosts: 2; 131072 doubles" in done.out and "every element right" in done.out, \
        f"{done.out}\n{done.err}"
    assert sorted(re.findall(r"devices (\S+)", done.out)) == ["rxe_0:1", "rxe_1:1"], done
    assert re.findall(r"ep_cfg\[1\]: tag\((\w+)/rxe_\d:1\)", done.out) == ["rc_verbs"] * 2, done
    for name, count in after.items():
        assert (count - before[name]) * 4096 >= PAYLOAD, (before, after, done)
    assert all(pod.network_bytes() - was < PAYLOAD / 10 for pod, was in zip(pods, around)), "the pod network had a part in it"
    for agent, pod in zip(agents, pods):
        agent().ok()
        lists, nodes, gids = sees(pod.run(LOOK))
        assert len(nodes) == 1 and (len(lists), len(gids)) == ((1, 1) if node.rdma == "exclusive" else (2, 2)), (lists, nodes, gids)
    for pod in pods:
        pod.end()
        pod.unprepare()
    at_home(node)


def seen_right(node, done, own):
    """A container sees its own device: one verbs node, which opens and has the number that the kernel says."""
    lists, nodes, gids = sees(done)
    if node.rdma == "exclusive":
        assert lists == [own] and len(nodes) == len(gids) == 1, (own, lists, nodes, gids)
    else:
        assert own in lists and len(nodes) == 1, (own, lists, nodes, gids)


def own_device(pod):
    """The claimed RDMA device, as the claim's status says."""
    return wait("no status of the claim's device", lambda: [
        each["data"]["rdmaDevice"] for each in pod.claim()["status"].get("devices", ()) if "rdmaDevice" in each.get("data", {})], CALL_S)[0]


def test_started_at_once(node):
    """Two containers that start at the same moment: the devices move one after the other, and each container has the node of its
    own, whichever number the moves made of it."""
    pods = [node.pod(name, config=net(i)) for i, name in enumerate(("left", "right"))]
    for _ in range(ROUNDS):
        own = [own_device(pod.prepare().sandbox()) for pod in pods]
        for done, name in zip([pod.start(LOOK) for pod in pods], own):
            seen_right(node, done(), name)
        for pod in pods:
            pod.end()
            pod.unprepare()
    at_home(node)


def number_given(pod):
    """Of the claim's verbs node, by its CDI edits."""
    return next(int(each["path"].removeprefix("/dev/infiniband/uverbs")) for edit in pod.edits() for each in edit.get("deviceNodes", ())
                if each["path"].startswith("/dev/infiniband/uverbs"))


def number_now(node, rdma):
    return int(node.sh("basename $(dirname $(grep -lx $1 /sys/class/infiniband_verbs/uverbs*/ibdev))", rdma).strip().removeprefix("uverbs"))


def prepared_now(node, pod):
    """Prepared, again until the plugin has seen what the test before has plugged."""
    def right():
        pod.unprepare()
        return number_given(pod.prepare()) == number_now(node, own_device(pod))
    return wait(lambda: f"{pod.name} is given uverbs{number_given(pod)}\n{node.log()}", lambda: right() and pod, CALL_S)


def unplugged_first(node, pods):
    """Of two pods, prepared here, the one whose RDMA device has the higher number, when the other's device has been unplugged."""
    pods = sorted((prepared_now(node, pod) for pod in pods), key=number_given)
    other = own_device(pods[0])
    node.ok("rdma", "link", "delete", other)
    return pods[1], other


def replug(node, rdma):
    node.ok("rdma", "link", "add", rdma, "type", "rxe", "netdev", rdma.replace("rxe_", "rail"))


def test_number_changes_with_the_move(node):
    """The device of a lower number was unplugged after Prepare: the move gives its number to ours, and the container has that."""
    if node.rdma == "shared":
        pytest.skip("nothing moves in shared mode")
    pod, other = unplugged_first(node, [node.pod(name, config=net(i)) for i, name in enumerate(("low", "high"))])
    own = own_device(pod)
    try:
        seen_right(node, pod.sandbox().run(LOOK), own)
        seen_right(node, pod.run(LOOK), own)  # the next container of the pod, without a move
        assert pod.run("ls -A /dev/infiniband").ok().out.split() == ["rdma_cm", "uverbs0"]
        pod.end()
    finally:
        replug(node, other)
    pod.unprepare()


def test_number_changes_where_it_cannot_be_corrected(node):
    """In a pod with a user namespace the container has only what its claim named: it does not start, and the line says why."""
    if node.rdma == "shared":
        pytest.skip("nothing moves in shared mode")
    pod, other = unplugged_first(node, [node.pod(name, hostUsers=False) for name in ("lower", "higher")])
    try:
        done = pod.sandbox().run("true")
        assert done.rc != 0 and "is /dev/infiniband/uverbs0, number 231:192, by now" in done.err, done
        assert "delete the pod" in done.err, done
        pod.end()
    finally:
        replug(node, other)
    pod.unprepare()


def killed(pod):
    """A container of the pod that holds its RDMA device open, and its network namespace, end as one."""
    holding = pod.start("exec 3<>$(ls /dev/infiniband/uverbs*) && sleep 1000")
    pod.await_container()
    pod.kill_container()
    pod.end()
    holding()


@pytest.mark.parametrize("order", ["namespace first", "unprepare first", "at once", "long before", "holder killed"])
def test_every_order_of_teardown(node, order):
    """The interface and the RDMA device are back as they were; the next order's pod shows that they can be had again."""
    pod = node.pod(order.replace(" ", "-"), config=net(0)).prepare().sandbox()
    assert "10.9.0.1/24" in pod.run("ip address show net1 && : <>$(ls /dev/infiniband/uverbs*)").ok().out
    if order == "unprepare first":
        pod.unprepare()
        at_home(node)
        pod.end()
    elif order == "at once":
        ends = threading.Thread(target=pod.end)
        ends.start()
        pod.unprepare()
        ends.join()
    else:
        killed(pod) if order == "holder killed" else pod.end()
        if order == "long before":
            wait("the NICs do not come back by themselves", lambda: len(host(node)[0]) == 2, CALL_S)
        pod.unprepare()
    at_home(node)


def test_next_pod_before_unprepare(node):
    """Forced deletion: the namespace dies, the next pod's Prepare comes first, then the old one's Unprepare."""
    old = node.pod("old", count=2).prepare().sandbox()
    old.run("true").ok()
    old.delete()
    new = node.pod("new", config=net(1))
    old.end()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        preparing = pool.submit(new.prepare)
        old.unprepare()
        preparing.result()
    assert "10.9.0.2/24" in new.sandbox().run("ip address show net1 && : <>$(ls /dev/infiniband/uverbs*)").ok().out
    new.end()
    new.unprepare()
    at_home(node)
