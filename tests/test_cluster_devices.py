# SPDX-License-Identifier: Apache-2.0
"""Jobs that claim devices, on two real nodes that show a captured machine: the scheduler allocates, a test driver
prepares through CDI, and the agents look at what came."""
import json

import pytest

from support.cluster.machines import RDMA, claimed, shown, value_of, without_pairs, without_rdma

GPUS = 8
SHOW = ["sh", "-c", 'env | sed "s/^/$RANK /"; for each in /dev/nvidia* /dev/infiniband/*; do echo "$RANK $each"; done']


@pytest.fixture
def jobs(machines, jobs):
    return jobs


def planned(jobs, spec):
    """What `drarun plan` says for this cluster before the job: the variables of all ranks, by rank."""
    plan = json.loads(jobs.verb("plan", spec, "--live", "-o", "json").ok().out)["plan"]
    return {rank["rank"]: plan["env"] | worker["env"] | rank["env"] for worker in plan["workers"]
            for rank in worker["ranks"]}


@pytest.mark.parametrize("claims,mode", [("direct", ["--here"]), ("direct", []), ("template", [])],
                         ids=["here", "pod", "template"])
def test_ranks_get_the_plans_environment_and_devices(jobs, claims, mode):
    wanted = {"workers": 2, "devices": claimed(GPUS, GPUS, claims=claims), "command": SHOW}
    plan = planned(jobs, jobs.file(**wanted))
    assert len(plan) == 2 * GPUS and plan[0]["NCCL_IB_HCA"].startswith("=mlx5_0:1,mlx5_3:1")
    result = jobs.run(*mode, **wanted).ok()
    assert result.err.count("ResourceSlices are not known") == (0 if mode else 1)  # in its pod it has our Role alone
    ranks = shown(result.out)
    assert sorted(ranks) == list(range(2 * GPUS))
    for rank, lines in ranks.items():
        has = dict(line.split("=", 1) for line in lines if "=" in line)
        for name, value in plan[rank].items():
            if name != "MASTER_ADDR":  # a pod's address is not known before
                assert has.get(name) == value, (rank, name, value, has.get(name))
        assert {name for name in has if name.startswith("NCCL_")} == {n for n in plan[rank] if n.startswith("NCCL_")}
        assert sorted(line for line in lines if line.startswith("/dev/nvidia")) == [f"/dev/nvidia{k}" for k in range(8)]
        assert sum(line.startswith("/dev/infiniband/uverbs") for line in lines) == 8


@pytest.fixture
def cluster_role(jobs):
    """What `drarun install --cluster-role` prints."""
    made = jobs.verb("install", "-n", jobs.namespace.name, "--cluster-role", "--format", "json").ok().out
    jobs.cluster.kubectl("apply", "--server-side", "-f", "-", input=made)
    yield
    jobs.cluster.kubectl("delete", "-f", "-", input=made)


def test_with_the_cluster_role_the_slices_are_known(jobs, cluster_role):
    result = jobs.run(ranksPerWorker=1, devices=claimed(2, 2, align="required"), command=["sh", "-c", "env"]).ok()
    assert "not known" not in result.err
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_3:1" in result.out and "CUDA_VISIBLE_DEVICES=GPU-0077e9e7" in result.out


def test_gpu_and_nic_of_a_pair_share_their_root(machines, jobs):
    """Four workers of two pairs each: the claims' constraint holds, whatever the scheduler takes first."""
    result = jobs.run("--here", workers=4, ranksPerWorker=1, devices=claimed(2, 2, selector=RDMA, align="required"),
                      command=["sh", "-c", "env"]).ok()
    roots = {found["device"]["name"]: value_of(found["device"], "pcieRoot")
             for driver in machines.drivers for found in driver.settings["Devices"]}
    held = [line.split("=")[0][len("DEVICE_"):].lower().replace("_", "-") for line in result.out.splitlines()
            if line.startswith("DEVICE_")]
    assert len(held) == 16
    for worker in (held[i:i + 4] for i in range(0, 16, 4)):
        gpus = sorted(roots[name] for name in worker if name.startswith("gpu"))
        assert gpus == sorted(roots[name] for name in worker if name.startswith("pci")), worker


@pytest.fixture
def unaligned(machines):
    machines.become(slices=without_pairs)
    yield
    machines.become()


def test_preferred_alignment_does_without(jobs, unaligned):
    result = jobs.run("--here", devices=claimed(align="preferred"), ranksPerWorker=1, command=["echo", "placed"]).ok()
    assert result.out == "placed\n"
    assert "without alignment in the claims" in result.err


def test_required_alignment_waits_and_says_why(jobs, unaligned):
    result = jobs.run("--here", devices=claimed(align="required"), command=["true"], timeouts={"allocation": "8s"})
    assert result.rc == 75, result
    assert "timeouts.allocation" in result.err and "pcieRoot" in result.err


@pytest.fixture
def ethernet(machines):
    machines.become(machine=without_rdma)
    yield
    machines.become()


def test_nics_without_rdma_carry_data_over_tcp_where_any_network_is_asked_for(jobs, ethernet):
    wanted = {"workers": 2, "network": "any", "ranksPerWorker": 1, "command": ["sh", "-c", "echo $RANK ${NCCL_NET-none}"],
              "devices": claimed(2, 2, selector='device.attributes["dra.net"].rdma == false')}
    result = jobs.run("--here", **wanted).ok()
    assert sorted(line.split()[0] for line in result.out.splitlines()) == ["0", "1"]
    assert "IB" not in result.out and "NIC_NOT_RDMA" in result.err
    refused = jobs.run("--here", **{**wanted, "network": "rdma"}, name="refused")
    assert refused.rc == 76 and "NO_RDMA_NIC" in refused.err and refused.out == ""
