# SPDX-License-Identifier: Apache-2.0
"""NICs that are opened (docs/design/038-open-nics.md), in a guest with soft-RoCE devices and in one with iWARP (siw): `drarun-worker --nics`
tells the same facts as rdma-core's ibv_devinfo and the kernel, and sees each fault."""
import json
import re

import pytest

from support import vm
from support.build import BUILD
from support.live_guest import LiveGuest

pytestmark = pytest.mark.plain("the agent that opens NICs is the static one")
WORKER, DRARUN, CALLER = (BUILD / name for name in ("bin/drarun-worker", "bin/drarun", "tests/programs/wire_caller"))
RAILS = 2
MODULES = {"rxe": "rdma_rxe", "siw": "siw"}
SETUP = """
modprobe -a $2 ib_uverbs
modprobe dummy numdummies=0
for i in 0 1; do
    ip link add rail$i type dummy
    ip link set rail$i mtu 4200 up
    ip address add 10.9.$i.1/24 dev rail$i
    rdma link add $1_$i type $1 netdev rail$i
done
for i in 0 1; do
    until test -e /dev/infiniband/uverbs$i; do sleep 0.1; done
    test $1 = siw || until grep -qs 0a09 /sys/class/infiniband/rxe_$i/ports/1/gids/*; do sleep 0.1; done
done
"""
SMALL_MEMLOCK = ["prlimit", "--memlock=65536:65536", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


DOWN = "ip link set rail1 down; until grep -q DOWN /sys/class/infiniband/{}/ports/1/state; do sleep 0.1; done"
UP = "ip link set rail1 up; until grep -q ACTIVE /sys/class/infiniband/{}/ports/1/state; do sleep 0.1; done"


@pytest.fixture(scope="module", params=MODULES)
def guest(request):
    """Its devices are those of one driver."""
    if request.param == "siw":
        vm.need_iwarp()
    made = LiveGuest()
    made.iwarp, made.devices = request.param == "siw", [f"{request.param}_{i}" for i in range(RAILS)]
    try:
        made.sh(SETUP, request.param, MODULES[request.param])
        yield made
    finally:
        made.close()


def nics(guest, *under):
    """{device: what the agent tells of it}."""
    told = [json.loads(line) for line in guest.ok(*under, WORKER, "--nics").splitlines()]
    return {each["device"]: each for each in told}


def devinfo(guest):
    """{device: ({name: value}, [GIDs of its port])}, as ibv_devinfo -v prints them."""
    found = {}
    for line in guest.ok("ibv_devinfo", "-v").splitlines():
        name, _, value = (word.strip() for word in line.partition(":"))
        if name == "hca_id":
            values, gids = found[value] = {}, []
        elif name.startswith("GID["):
            gids.append(line.split(":", 1)[1].strip())
        else:
            values[name] = value
    return found


def plain(value):
    """Of "4096 (5)" and "0x3f": the number."""
    return int(value.split()[0], 0)


def test_all_is_as_ibv_devinfo_says(guest):
    mine, theirs = nics(guest), devinfo(guest)
    assert sorted(mine) == sorted(theirs) == guest.devices
    for name, nic in mine.items():
        values, gids = theirs[name]
        [port] = nic["ports"]
        assert "inferred" not in nic, nic
        assert nic["firmware"] == values["fw_ver"] and nic["nodeGuid"] == values["node_guid"]
        assert nic["limits"] == {"qps": plain(values["max_qp"]), "cqs": plain(values["max_cq"]), "mrs": plain(values["max_mr"]),
                                 "mrBytes": min(plain(values["max_mr_size"]), (1 << 63) - 1)}
        assert f"PORT_{port['state']} " in values["state"]
        if not guest.iwarp:  # of which ibv_devinfo does not tell it
            assert port["physState"].upper() == values["phys_state"].split()[0].replace("_", "")
        assert port["linkLayer"] == values["link_layer"]
        assert (port["mtu"], port["maxMtu"]) == (plain(values["active_mtu"]), plain(values["max_mtu"]))
        assert port.get("lid", 0) == plain(values["port_lid"])
        assert f"{port['lanes']}X" == values["active_width"].split()[0]
        lane = float(values["active_speed"].split()[0])
        assert port["rateMbps"] == lane * 1000 * port["lanes"] and {2.5: "SDR", 5.0: "DDR", 10.0: "QDR", 14.0: "FDR", 25.0: "EDR"}[lane] \
            == port["laneSpeed"]
        assert guest.iwarp or [f"{each['address']}, {each['type']}" for each in port["gidTable"]] == [each.replace("::ffff:", "") for each in gids]
        assert {each["netdev"] for each in port["gidTable"]} == {f"rail{guest.devices.index(name)}"}
        assert (gids, port["gids"]) == ([], 1) if guest.iwarp else len(gids) == port["gids"] >= 2
        assert nic.get("iwarp", False) == guest.iwarp == ("iWARP" in values["transport"])


def test_rdma_link_agrees(guest):
    links = {each["ifname"]: each for each in json.loads(guest.ok("rdma", "-j", "link"))}
    for name, nic in nics(guest).items():
        [port] = nic["ports"]
        assert (port["state"], port["physState"].upper()) == (links[name]["state"], links[name]["physical_state"].replace("_", ""))


def test_each_step_is_done(guest):
    for nic in nics(guest).values():
        assert nic["opens"] and {name: step["done"] for name, step in nic["steps"].items()} == dict.fromkeys(
            ("open", "query", "cq", "qp", "memory"), True), nic


def test_memory_that_may_not_be_locked(guest):
    for nic in nics(guest, *SMALL_MEMLOCK).values():
        assert nic["steps"]["memory"] == {"done": False, "code": 12, "why": "Cannot allocate memory"}, nic
        assert nic["steps"]["qp"] == {"done": True} and "inferred" not in nic


def test_node_that_may_not_be_opened(guest):
    """What sysfs tells is there, and marked."""
    guest.sh("chmod 600 /dev/infiniband/uverbs1")
    try:
        found = nics(guest, *NOBODY)
    finally:
        guest.sh("chmod 666 /dev/infiniband/uverbs1")
    closed = next(each for each in found.values() if each["path"].endswith("uverbs1"))
    other = next(each for each in found.values() if each is not closed)
    assert not closed["opens"] and closed["why"] == closed["inferred"] == "Permission denied", closed
    assert closed["steps"] == {"open": {"done": False, "code": 13, "why": "Permission denied"}}
    assert closed["ports"][0]["state"] == "ACTIVE" and closed["limits"] == {} and "mtu" not in closed["ports"][0]
    assert other["opens"] and "inferred" not in other


def test_node_that_is_not_there(guest):
    """As in a pod that was not given the device: it is not the pod's."""
    script = "mount -t tmpfs none /dev/infiniband && mknod -m 666 /dev/infiniband/uverbs0 c 231 192 && exec $1 --nics"
    told = guest.ok("unshare", "-m", "bash", "-ec", script, "bash", WORKER)
    assert [json.loads(line)["path"] for line in told.splitlines()] == ["/dev/infiniband/uverbs0"]


def test_port_that_is_down(guest):
    guest.sh(DOWN.format(guest.devices[1]))
    try:
        found = nics(guest)
    finally:
        guest.sh(UP.format(guest.devices[1]))
    [port] = found[guest.devices[1]]["ports"]
    assert (port["state"], port["active"]) == ("DOWN", False) and found[guest.devices[1]]["opens"], port
    assert found[guest.devices[0]]["ports"][0]["active"]


def test_nothing_is_loaded(guest):
    """The providers are in the agent."""
    done = guest.run("strace", "-f", "-e", "trace=openat,open", WORKER, "--nics").ok()
    assert "uverbs0" in done.err and not re.findall(r"\S+\.so\b|\S+libibverbs\.d\S*", done.err), done.err


# ---- drarun doctor --nics, which judges as a job's preflight does ----

def doctor(guest, *under):
    """(exit status, {check: [(state, what was seen, what to change)]}, what is known of the NICs)."""
    done = guest.run(*under, DRARUN, "doctor", "--nics", "-o", "json")
    told, found = json.loads(done.out), {}
    for each in told["checks"]:
        found.setdefault(each["check"], []).append((each["state"], each["seen"], each.get("change", "")))
    return done.rc, found, told["nics"]


def test_doctor_of_good_nics(guest):
    rc, found, known = doctor(guest)
    assert rc == 0
    for i, device in enumerate(guest.devices):
        address = f"iWARP over rail{i}" if guest.iwarp else f"GID 1 10.9.{i}.1 (RoCE v2, rail{i})"
        assert found[device] == [("ok", f"port 1 ACTIVE, 2.5 Gb/s (1X SDR), MTU 4096, {address}; queues made, 64 MiB registered", "")], found
    assert {each["device"]: each for each in known} == nics(guest)


def test_doctor_of_a_port_that_is_down(guest):
    guest.sh(DOWN.format(guest.devices[1]))
    try:
        rc, found, _ = doctor(guest)
    finally:
        guest.sh(UP.format(guest.devices[1]))
    [(state, seen, change)] = found[guest.devices[1]]
    assert (rc, state, seen) == (1, "failed", f"the link of its NIC {guest.devices[1]}, port 1, is DOWN") and "cable" in change
    assert found[guest.devices[0]][0][0] == "ok"


def test_doctor_of_memory_that_may_not_be_locked(guest):
    rc, found, _ = doctor(guest, *SMALL_MEMLOCK)
    for device in guest.devices:
        [(state, seen, change)] = found[device]
        assert state == "failed" and "IPC_LOCK" in change
        assert seen == f"it cannot register 64 MiB of memory with its NIC {device}: Cannot allocate memory; it may lock 64 KiB of memory"
    assert rc == 1


def test_doctor_of_an_interface_elsewhere(guest):
    """The device is here, as all are in shared mode, and its interface in another network namespace."""
    rc, found, _ = doctor(guest, "unshare", "-n", "-m", "sh", "-c", 'mount -t sysfs none /sys && exec "$@"', "sh")
    for device in guest.devices:
        [(state, seen, change)] = found[device]
        assert seen == (f"the interface of its NIC {device}, port 1, is not in the pod" if guest.iwarp else
                        f"its NIC {device}, port 1, has no GID for an interface that is in the pod")
        assert state == "failed" and "interface" in change
    assert rc == 1


def test_doctor_of_a_node_that_is_not_there(guest):
    rc, found, _ = doctor(guest, "unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/infiniband && exec "$@"', "sh")
    assert rc == 0
    assert sorted(found[device][0][:2] for device in guest.devices) == [("unknown", f"/dev/infiniband/uverbs{i} is not here") for i in range(RAILS)]


def test_doctor_without_the_agent(guest):
    """sysfs must do, and it says so."""
    rc, found, known = doctor(guest, "env", "DRARUN_WORKER_PROGRAM=/nowhere/drarun-worker")
    for device in guest.devices:
        [(state, seen, _)] = found[device]
        assert state == "unknown" and seen.startswith(f"its NIC {device} is known from sysfs only: DRARUN_WORKER_PROGRAM=/nowhere"), seen
    assert rc == 0 and all(each["limits"] == {} and each["ports"][0]["state"] == "ACTIVE" for each in known)


# ---- an agent ----

INSPECTED = """
umask 077; cd $(mktemp -d); od -An -N32 -vtx1 /dev/urandom | tr -d ' \n' >key
DRARUN_KEY=$(cat key) "$1" --listen 127.0.0.1:7199 --pod --once 2>log &
until grep -q 'listening on port' log; do sleep 0.1; done
mkfifo in; "$2" 127.0.0.1:7199 key job 1 0 1 <in >out &
exec 3>in
until grep -qE '^(inspection|closed|failure)' out; do sleep 0.1; done
echo end >&3
grep ^inspection out | cut -d' ' -f2-
exec 3>&-
kill %1
"""


@pytest.mark.parametrize("wanted", [True, False], ids=["open", "off"])
def test_agent_opens_nics_where_the_launcher_wants_it(guest, wanted):
    env = {"WIRE_CALLER_OPEN_NICS": "1"} if wanted else {}
    document = json.loads(guest.sh(INSPECTED, WORKER, CALLER, env=env))
    assert len(document["verbs"]) == RAILS
    for nic in document["verbs"]:
        if wanted:
            assert all(step["done"] for step in nic["steps"].values()) and nic["limits"]["qps"] > 0 and "inferred" not in nic, nic
        else:
            assert nic["inferred"] == "it was not opened" and nic["limits"] == {} and "steps" not in nic and nic["opens"], nic
    assert [["fe80", f"10.9.{i}.1"] for i in range(RAILS)] == [
        sorted((text[:4] if text.startswith("fe80") else text for text in each["addresses"]), reverse=True)
        for each in document["netdevs"] if each["name"].startswith("rail")]


POD = """
mount -t sysfs none /sys
ip link add rail9 type dummy
ip link set rail9 up
rdma link add rxe_9 type rxe netdev rail9
ip link set rail9 carrier off
until grep -q DOWN /sys/class/infiniband/rxe_9/ports/1/state; do sleep 0.1; done
umask 077; cd $(mktemp -d); od -An -N32 -vtx1 /dev/urandom | tr -d ' \n' >key
ip link set lo up
DRARUN_KEY=$(cat key) "$1" --listen 127.0.0.1:7199 --pod --once 2>log &
until grep -q 'listening on port' log; do sleep 0.1; done
mkfifo in; "$2" 127.0.0.1:7199 key job 1 0 1 <in >out &
exec 3>in
until grep -qE '^(note|inspection|closed|failure)' out; do sleep 0.1; done
ip link set rail9 carrier on
until grep -qE '^(inspection|closed|failure)' out; do sleep 0.1; done
echo end >&3
cat out
exec 3>&-
wait
"""


@pytest.mark.parametrize("guest", ["rxe"], indirect=True)  # siw's ports follow the interface's setting, not its carrier
def test_agent_waits_for_a_link(guest):
    """As after a driver has moved the NIC into the pod: its link is up only a while later."""
    told = dict(line.split(" ", 1) for line in guest.ok("unshare", "-n", "-m", "bash", "-ec", POD, "bash", WORKER, CALLER).splitlines()
                if line.startswith(("note ", "inspection ")))
    assert re.fullmatch(r"waits up to \d+ s for the link of its NIC rxe_9, which is down", told["note"]), told
    [nic] = [each for each in json.loads(told["inspection"])["verbs"] if each["device"] == "rxe_9"]
    assert nic["ports"][0]["active"], nic
