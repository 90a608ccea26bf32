# SPDX-License-Identifier: Apache-2.0
"""NICs that are to reach each other (docs/design/038-open-nics.md): workers of `drarun exec`, or agents, in a guest, each in a network
namespace with two NICs that have soft-RoCE devices, whose cables go to a hub for each rail."""
import contextlib
import json
import re
import secrets

import pytest

from support import vm
from support.build import BUILD, patience
from support.live_guest import LiveGuest

pytestmark = pytest.mark.plain("the agent that opens NICs is the static one")
DOMAIN = "web.train.svc.cluster.local"
LIMIT_MS = 1000 * int(patience(20))
WORKERS = "abcd"  # their interfaces are a0, a1, b0 and so on, their devices rxe_a0 and so on
PORT = 7100
MACS = {f"{worker}{rail}": f"52:54:00:00:0{i}:0{rail}" for i, worker in enumerate(WORKERS) for rail in (0, 1)}
OPTIONS = [word for name, mac in MACS.items() for word in (
    "-netdev", f"hubport,hubid={name[1]},id={name}", "-device", f"e1000e,bus=pcie.0,netdev={name},mac={mac},romfile=")]
# the RDMA subsystem's mode cannot change once there are network namespaces
SETUP = """
modprobe ib_core netns_mode=0
modprobe -a rdma_rxe ib_uverbs veth bridge
ip link add pods type bridge
ip link set pods up
for worker in a b c d; do
    ip netns add $worker
    ip link add up_$worker type veth peer name eth0 netns $worker
    ip link set up_$worker master pods up
done
modprobe e1000e
for each in $2; do
    name=${each%%=*} mac=${each#*=} worker=${each%?=*}
    until old=$(grep -lx $mac /sys/class/net/*/address); do sleep 0.1; done
    old=${old%/address}
    ip link set ${old##*/} name $name mtu 4200 up
    rdma link add rxe_$name type rxe netdev $name
    ip link set $name netns $worker
    rdma dev set rxe_$name netns $worker
done
for each in a:1 b:2 c:3 d:4; do
    worker=${each%:*} last=${each#*:}
    ip -n $worker -batch - <<EOF
link set lo up
link set eth0 up
address add 10.77.0.$last/24 dev eth0
link set ${worker}0 up
link set ${worker}1 up
address add 10.9.0.$last/24 dev ${worker}0
address add 10.9.1.$last/24 dev ${worker}1
EOF
    ip netns exec $worker sysctl -qw net.ipv4.conf.all.arp_ignore=1  # as NICs that are apart: only its own address
    printf '127.0.0.1 localhost\\n' >/run/hosts-$worker
    for i in 1 2 3 4; do echo 10.77.0.$i web-$((i - 1)).$1; done >>/run/hosts-$worker
    sed -i "s/10.77.0.$last .*/& web-$((last - 1))/" /run/hosts-$worker
    for rail in 0 1; do
        ip netns exec $worker sh -c "until grep -qs 0a09:0${rail}0$last /sys/class/infiniband/rxe_$worker$rail/ports/1/gids/*; do sleep 0.1; done"
    done
done
"""
# A container of a pod. The metadata file stands for the driver, since software RDMA shows no PCI device
POD = """
hostname web-$1; mount --bind /run/hosts-$2 /etc/hosts
mount -t tmpfs none /dev/infiniband
for each in /sys/class/infiniband_verbs/uverbs*; do
    mknod -m 666 /dev/infiniband/${each##*/} c $(tr : ' ' <$each/dev)
done
mkdir -p /run/kubernetes.io; mount -t tmpfs none /run/kubernetes.io
folder=/run/kubernetes.io/dra-device-attributes/resourceclaims/nics/nic
mkdir -p $folder; printf %s "$METADATA" >$folder/nic.example.com-metadata.json
shift 2; exec "$@"
"""


@pytest.fixture(scope="module")
def guest():
    vm.need_movable_rdma()
    made = LiveGuest(options=OPTIONS)
    try:
        made.sh(SETUP, DOMAIN, " ".join(f"{name}={mac}" for name, mac in MACS.items()))
        yield made
    finally:
        made.close()


def metadata(worker, rails):
    """Of its NICs, in the order of their PCI addresses."""
    devices = []
    for place, rail in enumerate(rails):
        values = {"resource.kubernetes.io/pciBusID": f"0000:{place + 1:02x}:00.0", "rdmaDevice": f"rxe_{worker}{rail}", "ifName": f"{worker}{rail}"}
        devices.append({"driver": "nic.example.com", "pool": "vm", "name": f"nic-{rail}",
                        "attributes": {name: {"string": value} for name, value in values.items()}})
    return json.dumps({"kind": "DeviceMetadata", "apiVersion": "metadata.resource.k8s.io/v1beta1",
                       "metadata": {"name": "nics", "namespace": "train", "generation": 1}, "requests": [{"name": "nic", "devices": devices}]})


def start(guest, name, *argv, rails=(0, 1), under=(), **env):
    """A command in the pod of a worker, whose NICs are those of the hubs `rails`, in their order. under: around the pod."""
    return guest.start(*under, "ip", "netns", "exec", name, "unshare", "--uts", "--mount", "bash", "-ec", POD, "pod", WORKERS.index(name), name,
                       *argv, env={**env, "METADATA": metadata(name, rails)})


def run(guest, second=(0, 1), workers=2, **env):
    """The Results of all workers. second: of the second worker."""
    env = {"DRARUN_KEY": secrets.token_hex(32), "DRARUN_REACH_MS": LIMIT_MS, **env}
    started = [start(guest, name, BUILD / "bin/drarun", "exec", "-v", "--network", "rdma", "--workers", workers, "--",
                     "sh", "-c", "echo rank $DRARUN_RANK runs", rails=second if name == "b" else (0, 1), **env)
               for name in WORKERS[:workers]]
    return [each() for each in started]


def checked(guest, *words, second=(0, 1), workers=2, under=(), **env):
    """The Result of drarun bench fabric on agents, and what it found; second and under: of the second worker."""
    guest.write("/run/fabric-key", secrets.token_hex(32))
    guest.sh("chmod 600 /run/fabric-key")
    names = WORKERS[:workers]
    agents = [start(guest, name, BUILD / "bin/drarun-worker", "--listen", f"10.77.0.{i + 1}:{PORT}", "--key-file", "/run/fabric-key",
                    rails=second if name == "b" else (0, 1), under=under if name == "b" else ()) for i, name in enumerate(names)]
    result = guest.run("ip", "netns", "exec", "a", BUILD / "bin/drarun", "bench", "fabric", "-o", "json", *words, "--agents",
                       ",".join(f"10.77.0.{i + 1}:{PORT}" for i in range(workers)), "--key-file", "/run/fabric-key",
                       env={"DRARUN_REACH_MS": LIMIT_MS, **env})
    guest.run("pkill", "-f", f"^{BUILD}/bin/drarun-worker --listen")  # also where nobody has called them
    for agent in agents:
        agent()
    return result, json.loads(result.out) if result.out else None


@contextlib.contextmanager
def changed(guest, script, back):
    guest.sh(script)
    try:
        yield
    finally:
        guest.sh(back)


def told(first):
    """{(rail, writer): what is wrong}, of the lines about pairs."""
    found = re.findall(r"worker (\d) \(web-\d\S*\): its NIC rxe_[ab](\d) -> worker \d \(web-\d\S*\) rxe_[ab]\d: (.*)", first.err)
    return {(int(rail), int(writer)): why for writer, rail, why in found}


@pytest.mark.parametrize("workers", [2, 4])
def test_all_is_well(guest, workers):
    """All ranks run, data have come on both rails to each next worker, and no alarm is raised."""
    first, *others = run(guest, workers=workers)
    assert sorted(first.ok().out.splitlines()) == [f"rank {i} runs" for i in range(workers)]
    assert f"the NICs of {workers} workers reach each other: {2 * workers} pairs" in first.err and "its NIC" not in first.err
    assert all(other.ok() for other in others)


def test_rails_crossed(guest):
    """The second worker's first cable is in the second rail's switch, and the other way round."""
    first, second = run(guest, second=(1, 0))
    assert (first.rc, second.rc) == (76, 76), first
    assert first.out == "" and set(told(first)) == {(0, 0), (1, 0), (0, 1), (1, 1)}, first
    assert all("has no way to 10.9." in why for why in told(first).values()), first


def test_one_rail_does_not_arrive(guest):
    """A switch that drops RoCE on the second rail: the neighbours find each other, and no data comes."""
    drop = "tc -n b qdisc {} dev b1 {}"
    with changed(guest, "modprobe -a sch_ingress cls_u32 act_gact; " + drop.format("add", "handle ffff: ingress") + "\n"
                 "tc -n b filter add dev b1 parent ffff: protocol ip u32 match ip dport 4791 0xffff action drop",
                 drop.format("delete", "ingress")):
        first, second = run(guest)
    assert (first.rc, second.rc) == (76, 76), first
    assert set(told(first)) == {(1, 0), (1, 1)} and first.out == "", first
    assert "packets to 10.9.1.2 are not acknowledged" in told(first)[1, 0], first


def test_deadline(guest):
    """Nobody answers so fast: what was waited for is said, and the job runs, since nothing is known to be wrong."""
    first, second = run(guest, DRARUN_REACH_MS=1)
    assert sorted(first.ok().out.splitlines()) == ["rank 0 runs", "rank 1 runs"] and second.ok()
    assert re.search(r"it is not known whether its NIC rxe_a0 reaches worker 1 \(web-1\S*\) rxe_b0: after 0.001 s worker \d had not opened "
                     r"rxe_[ab]0", first.err), first


# ---- drarun bench fabric: the same without ranks ----

@pytest.mark.parametrize("workers", [2, 4])
def test_good_nics_of_agents(guest, workers):
    result, found = checked(guest, "--reach", workers=workers)
    assert result.ok() and "its NIC" not in result.err, result
    assert found["opened"] == {"workers": workers, "rails": 2, "good": 2 * workers, "failed": 0, "unknown": 0, "matrix": [".."] * workers, "broken": []}
    reach = found["reach"]
    assert (reach["pairs"], reach["reached"], reach["matrix"], reach["broken"]) == (2 * workers, 2 * workers, [".."] * workers, []), reach


def test_nics_that_are_opened_alone(guest):
    result, found = checked(guest)
    assert result.ok() and found["opened"]["matrix"] == ["..", ".."] and found["reach"] is None, result


def test_rails_of_agents_crossed(guest):
    """Of four, the second's cables: what it sends and what is sent to it is named, and nothing else."""
    result, found = checked(guest, "--reach", second=(1, 0), workers=4)
    assert result.rc == 76, result
    assert found["opened"]["failed"] == 0 and found["reach"]["matrix"] == ["xx", "xx", "..", ".."], found
    assert {(each["from"]["worker"], each["to"]["worker"]) for each in found["reach"]["broken"]} == {(0, 1), (1, 2)}
    assert all(each["fault"] == "route" for each in found["reach"]["broken"]), found


def test_agent_that_may_lock_little(guest):
    """Its NICs fail alone, by number and by what must change, and nothing is sent."""
    under = ["prlimit", "--memlock=65536:65536", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
    result, found = checked(guest, "--reach", under=under)
    assert result.rc == 76 and "IPC_LOCK" in result.err, result
    assert found["opened"]["matrix"] == ["..", "xx"] and found["reach"] is None, found
    assert {(each["worker"], each["device"], each["code"]) for each in found["opened"]["broken"]} == {(1, "rxe_b0", "MEMLOCK"), (1, "rxe_b1", "MEMLOCK")}
