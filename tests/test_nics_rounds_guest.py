# SPDX-License-Identifier: Apache-2.0
"""Faults of NICs, again and again (docs/design/038-open-nics.md): each is named as what it is and where it is, each time, and a clean
fabric raises no alarm. `drarun bench fabric --reach` on agents in a guest, each in a network namespace with two soft-RoCE NICs.
DRARUN_NIC_ROUNDS: of all faults, in an order of its own each (default 1); in each round as many clean checks as there are faults."""
import contextlib
import os
import random

import pytest

from support.fabric_check import checked
from support.rail_guest import RailGuest

pytestmark = pytest.mark.plain("the agent that opens NICs is the static one")
ROUNDS = int(os.environ.get("DRARUN_NIC_ROUNDS", "1"))
WORKERS = 4
SMALL_MEMLOCK = ["prlimit", "--memlock=65536:65536", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
PORT = "until grep -q {} /sys/class/infiniband/rxe_b1/ports/1/state; do sleep 0.1; done"
INGRESS = "tc -n b qdisc {} dev b1 {}"
# (script, what takes it back): of the second worker's second NIC
DOWN = ("ip -n b link set b1 down\nip netns exec b sh -c '" + PORT.format("DOWN") + "'",
        "ip -n b link set b1 up\nip -n b address replace 10.9.1.2/24 dev b1\nip netns exec b sh -c '" + PORT.format("ACTIVE") +
        "; until grep -qs 0a09:0102 /sys/class/infiniband/rxe_b1/ports/1/gids/*; do sleep 0.1; done'")
DROPPED = ("modprobe -a sch_ingress cls_u32 act_gact\n" + INGRESS.format("add", "handle ffff: ingress") + "\n"
           "tc -n b filter add dev b1 parent ffff: protocol ip u32 match ip dport 4791 0xffff action drop", INGRESS.format("delete", "ingress"))


class Fault:
    """changed: (script, back) in the guest; how: of the second worker's pod. What must be found: broken NICs {(worker, device, code)}, or
    pairs {(from, to, rail)} with their fault."""

    def __init__(self, changed=None, nics=(), pairs=(), fault=None, **how):
        self.changed, self.nics, self.pairs, self.fault, self.how = changed, set(nics), set(pairs), fault, how


def around(rail):
    """The pairs of the second worker."""
    return {(0, 1, rail), (1, 2, rail)}


FAULTS = {
    "port down": Fault(DOWN, nics=[(1, "rxe_b1", "LINK_DOWN")]),
    "memory lock": Fault(under=SMALL_MEMLOCK, nics=[(1, f"rxe_b{i}", "MEMLOCK") for i in (0, 1)]),
    "no device file": Fault(opened=(0,), nics=[(1, "rxe_b1", "NIC_MISSING")]),
    "rails crossed": Fault(second=(1, 0), pairs=around(0) | around(1), fault="route"),
    "packets dropped": Fault(DROPPED, pairs=around(1), fault="retry"),
}


@contextlib.contextmanager
def made(guest, fault):
    script, back = fault.changed or ("true", "true")
    guest.sh(script)
    try:
        yield
    finally:
        guest.sh(back)


@pytest.fixture(scope="module")
def guest():
    found = RailGuest(workers=WORKERS)
    try:
        yield found
    finally:
        found.close()


def pair(broken):
    """(from, to, rail). The rail by the end that is not the second worker's, whose cables may be crossed."""
    ends = broken["from"], broken["to"]
    return *(end["worker"] for end in ends), int(next(end["device"] for end in ends if end["worker"] != 1)[-1])


def judge(guest, fault):
    """What is wrong with what was found; empty when nothing is."""
    with made(guest, fault):
        result, found = checked(guest, "--reach", workers=WORKERS, **fault.how)
    nics = {(each["worker"], each["device"], each["code"]) for each in found["opened"]["broken"] if each["result"] == "failed"}
    broken = [each for each in (found["reach"] or {}).get("broken", ()) if each["result"] == "failed"]
    pairs = {pair(each) for each in broken}
    faults = {each["fault"] for each in broken}
    good = (result.rc, nics, pairs, faults) == (76, fault.nics, fault.pairs, {fault.fault} if fault.fault else set())
    return "" if good else f"{result.rc} {nics} {pairs} {faults}\n{found}\n{result.err}"


def clean(guest):
    result, found = checked(guest, "--reach", workers=WORKERS)
    good = result.rc == 0 and "its NIC" not in result.err and found["reach"]["matrix"] == [".."] * WORKERS == found["opened"]["matrix"]
    return "" if good else f"{result.rc}\n{found}\n{result.err}"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_each_fault_is_named(guest, number):
    draw = random.Random(number)
    wrong = {}
    for name in draw.sample(sorted(FAULTS), len(FAULTS)):
        wrong[name] = judge(guest, FAULTS[name])
        wrong[f"clean after {name}"] = clean(guest)
    assert not any(wrong.values()), "\n".join(f"{name}: {why}" for name, why in wrong.items() if why)
