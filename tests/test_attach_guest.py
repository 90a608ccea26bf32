# SPDX-License-Identifier: Apache-2.0
"""drarun-attach on PCI NICs and RDMA devices, in a guest: tests/programs/attach_guest.sh, one boot for all."""
import pytest

from support import vm
from support.build import BUILD, SOURCE

pytestmark = pytest.mark.plain("the guest runs the static program")
# two NICs behind root ports of two PCIe host bridges
DEVICES = [f"{kind}" for i in (1, 2) for kind in (f"pxb-pcie,id=hb{i},bus_nr={64 * i},bus=pcie.0",
                                                  f"pcie-root-port,id=rp{i},bus=hb{i},chassis={i}",
                                                  f"e1000e,bus=rp{i},netdev=h{i}")]
WIRE = ["-netdev", "hubport,hubid=0,id=h1", "-netdev", "hubport,hubid=0,id=h2"]
AS_IT_WAS = "rc=0 UP mtu 1400 inet 10.7.0.7/24"


@pytest.fixture(scope="module")
def said():
    result = vm.run(SOURCE / "tests/programs/attach_guest.sh", BUILD / "bin/drarun-attach", BUILD / "tests/programs/bpf_pin",
                    devices=DEVICES, options=WIRE)
    print(result.out, result.err)
    return dict(line.split(": ", 1) for line in result.out.replace(" \n", "\n").splitlines() if ": " in line)


def test_attach_and_death_of_the_namespace(said):
    """By PCI address; back under its in-pod name or devN, and then as it was."""
    assert said["pci"].endswith(":00.0") and said["pci"] != "0000:00:00.0"
    assert said["attach"] == "rc=0 inet 10.9.0.2/24" and said["again"] == "rc=0", said
    assert said["away"] == "0"
    assert said["died"] == AS_IT_WAS, said  # within the hook's own five seconds
    assert said["idle"] == AS_IT_WAS
    assert said["taken"] == "rc=0 eth0" and said["dev-name"].startswith("dev") and said["dev-restored"] == AS_IT_WAS, said


def test_names_that_cross(said):
    """Back under each other's name, and then as they were."""
    assert said["crossing"] == "rc=0 rc=0" and said["crossed"] == f"{AS_IT_WAS} eth0", said


def test_the_next_pod_has_it_at_once(said):
    assert said["next-first"] == "rc=0" and said["next"] == "rc=0 net1", said
    assert said["alive"] == AS_IT_WAS, said


def test_settings_of_this_kernel(said):
    assert said["vrf"] == "rc=0 master red 10.20.0.0/16" and said["vrf-again"] == "rc=0", said
    assert said["dummy"] == "rc=0" and "dum0 ended with its pod's network rc=3" in said["dummy-gone"], said
    assert said["bpf-before"] == "xdpgeneric 2" and said["bpf"] == "rc=0  0" and said["bpf-again"] == "rc=0", said
    assert said["bpf-of-pod-attach"] == "rc=0" and said["bpf-of-pod"] == "xdpgeneric 2", said
    assert said["bpf-left"] == "rc=0  0", "a pod's programs stay on the NIC"


def test_under_crun(said):
    if "crun-one" not in said:
        pytest.skip("no crun; run scripts/setup --test")
    assert said["crun-one"] == said["crun-two"] == "inet 10.9.0.2/24", said


def test_rdma_devices(said):
    """In shared mode it stays; in exclusive mode it goes with the NIC and comes back by itself or by us."""
    assert said["shared"] == "rc=0 rxe1" and said["shared-restored"] == "rc=0 rxe1", said
    assert "netns exclusive" in said["mode"], said
    if said["movable"] != "yes":
        assert "rxe1: its driver cannot move it" in said["exclusive"] and "rc=1 host=rxe1 pod=" in said["exclusive"], said
        assert said["exclusive-host"] == "eth0", said
        return
    assert said["exclusive"] == "rc=0 host= pod=rxe1" and said["exclusive-again"] == "rc=0", said
    assert said["exclusive-pulled"] == "rc=0 host=rxe1 eth0" and said["exclusive-next"] == "rc=0", said
    assert said["exclusive-other"] == "rc=0", said
    if "crun-one" in said:
        assert said["crun-nodes"] == "uverbs0 e7:c0", said
    assert said["exclusive-died"] == "rc=0 host=rxe1", said


def test_unplugged(said):
    """Refused; and restore says that nothing can come back, so that the pod that had it ends."""
    assert "is neither on the host nor in the container" in said["unplugged"] and "rc=1" in said["unplugged"], said
    assert "is gone from this machine, or has no driver" in said["unplugged-restore"], said
    assert "rc=3" in said["unplugged-restore"], said
    assert "rc=3" in said["unbound"] and "is gone from this machine, or has no driver" in said["unbound"], said
    assert said["rebound"] == "rc=0", said
