# SPDX-License-Identifier: Apache-2.0
"""Every example, as its README says to run it."""
import re
import subprocess

import pytest

from support.build import patience

PYTHON = "/usr/bin/python3"  # Debian's, with Debian's torch
TORCHRUN_CURE = ["-x", "PET_REDIRECTS=9:1", "-x", "PET_TEE=9:1"]  # examples/torchrun/README.md


@pytest.fixture
def example(examples):
    """example("allreduce"): its program; skipped where the build left it out."""

    def find(name):
        if not (examples / name).exists():
            pytest.skip(f"the build left out the example {name}: its compiler or library is missing")
        return examples / name

    return find


@pytest.fixture
def torch():
    if subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True).returncode:
        pytest.skip("no torch in Debian's python3; run scripts/setup --test")


@pytest.mark.parametrize("options,ranks,workers", [
    ((), 1, 1),
    (("-n", 4), 4, 1),
    (("--workers", 4, "-n", 16), 16, 4),
    (("--workers", 3, "-n", 5), 5, 3),
])
def test_allreduce(drarun, example, options, ranks, workers):
    result = drarun(*options, example("allreduce")).ok()
    assert result.out.startswith(f"allreduce: {ranks} ranks, workers: {workers}, hosts: 1; ")
    assert f"first sum {ranks * (ranks + 1) // 2}, every element right on every rank" in result.out
    assert result.out.count("\n") == 1 and result.err == ""


def test_allreduce_on_nodes(drarun, example, nodes, agents):
    """Three hosts, a network between them, shared memory only within each."""
    machines = nodes(3)
    three = agents(machines)
    result = drarun(*three.options, "-n", 6, example("allreduce"), under=machines.head.enter).ok()
    assert result.out.startswith("allreduce: 6 ranks, workers: 3, hosts: 3; ")
    assert [agent.rc for agent in three.finish()] == [0, 0, 0]


def test_allreduce_refuses_wrong_arguments(drarun, example):
    result = drarun("-n", 2, example("allreduce"), "many")
    assert result.rc == 2
    assert "usage: allreduce" in result.err


def test_mpmd(drarun, example):
    result = drarun("-n", 1, example("pi-coordinator"), ":", "-n", 3, example("pi-integrator")).ok()
    assert result.out == "mpmd: 1 coordinator, 3 integrators: pi = 3.141592654, right\n"


def test_mpmd_over_workers(drarun, example):
    result = drarun("--workers", 2, "-n", 1, example("pi-coordinator"), ":", "-n", 5,
                    example("pi-integrator")).ok()
    assert "5 integrators: pi = 3.141592654, right" in result.out


def test_mpmd_in_the_wrong_order(drarun, example):
    result = drarun("-n", 1, example("pi-integrator"), ":", "-n", 1, example("pi-coordinator"))
    assert result.rc == 2
    assert "rank 0 must be a pi-coordinator" in result.err


@pytest.mark.parametrize("options", [("-n", 1), ("-n", 4), ("--workers", 3, "-n", 7)])
def test_nccl_id(drarun, example, options):
    result = drarun(*options, example("nccl-id")).ok()
    assert re.fullmatch(rf"nccl-id: {options[-1]} ranks, id from .+: the same on every rank\n",
                        result.out)


def test_nccl_id_without_a_launcher(example):
    """A user who forgets drarun is told."""
    run = subprocess.run([example("nccl-id")], capture_output=True, text=True, timeout=patience())
    assert run.returncode == 1
    assert "start it with: drarun" in run.stderr


@pytest.mark.parametrize("name", ["openmpi5", "mpich5", "impi"])
def test_mpi4py(drarun, source, mpi_named, name):
    mpi = mpi_named(name)
    result = drarun("--workers", 2, "-n", 4, mpi.python, "-B", source / "examples/mpi4py/allreduce.py",
                    env=mpi.env).ok()
    assert result.out == "mpi4py: 4 ranks, hosts: 1, sum of 1000 doubles right on every rank\n"


@pytest.mark.parametrize("options,workers", [(("-n", 4), 1), (("--workers", 2, "-n", 4), 2)])
def test_torch_with_a_process_a_rank(drarun, source, torch, options, workers):
    result = drarun("--launch", "env", *options, PYTHON, source / "examples/torchrun/train.py").ok()
    assert result.out == (f"torchrun: 4 ranks, workers: {workers}, y = 3.000 x -1.000, "
                          "the same and right on every rank\n")


def test_torchrun_itself(drarun, source, torch):
    result = drarun(*TORCHRUN_CURE, "--workers", 2, "--ranks-per-worker", 1, "--", "torchrun",
                    "--nproc_per_node", 2, source / "examples/torchrun/train.py",
                    leaves=["torchelastic_*"]).ok()
    assert ("torchrun: 4 ranks, workers: 2, y = 3.000 x -1.000, the same and right on every rank\n"
            in result.out)
