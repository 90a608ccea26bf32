# SPDX-License-Identifier: Apache-2.0
"""NICs that are to reach each other (docs/design/038-open-nics.md): workers of `drarun exec`, or agents, in a guest, each in a network
namespace with two NICs that have soft-RoCE devices, whose cables go to a hub for each rail."""
import contextlib
import re
import secrets

import pytest

from support.build import BUILD
from support.fabric_check import LIMIT_MS, checked
from support.rail_guest import RailGuest

pytestmark = pytest.mark.plain("the agent that opens NICs is the static one")


@pytest.fixture(scope="module")
def guest():
    made = RailGuest()
    try:
        yield made
    finally:
        made.close()


def run(guest, second=(0, 1), workers=2, **env):
    """The Results of all workers. second: of the second worker."""
    env = {"DRARUN_KEY": secrets.token_hex(32), "DRARUN_REACH_MS": LIMIT_MS, **env}
    started = [guest.pod(name, BUILD / "bin/drarun", "exec", "-v", "--network", "rdma", "--workers", workers, "--",
                     "sh", "-c", "echo rank $DRARUN_RANK runs", rails=second if name == "b" else (0, 1), **env)
               for name in guest.workers[:workers]]
    return [each() for each in started]


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
    assert "reach each other" not in first.err, first


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
