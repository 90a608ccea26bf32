# SPDX-License-Identifier: Apache-2.0
"""The examples that run on this machine: the commands of their READMEs as they stand there, and other numbers of ranks, workers and hosts."""
import json
import os
import re
import shutil
import subprocess

import pytest

from support import pages
from support.build import BUILD, SOURCE, patience

PYTHON = "/usr/bin/python3"  # Debian's, with Debian's torch
CHECKED = r"[0-9]+ doubles, first sum \d+, every element right on every rank"
PI = r"mpmd: 1 coordinator, 3 integrators: pi = 3\.141592654, right\n"
TRAINED = r"torchrun: 4 ranks, workers: {}, y = 3\.000 x -1\.000, the same and right on every rank\n"

# By example, each command of its README: the status, and what the output must have.
SAYS = {
    "allreduce": {
        "drarun -n 4 build/bin/examples/allreduce": (0, rf"\Aallreduce: 4 ranks, workers: 1, hosts: 1; {CHECKED}"),
        "drarun --workers 4 -n 16 build/bin/examples/allreduce": (0, rf"\Aallreduce: 16 ranks, workers: 4, hosts: 1; {CHECKED}"),
        "drarun -n 4 build/bin/examples/allreduce 1048576": (0, r"; 1048576 doubles, first sum 10, every element right on every rank"),
        "mpicc -O2 -o allreduce allreduce.c": (0, r"\A\Z"),
        "drarun -n 4 ./allreduce": (0, rf"\Aallreduce: 4 ranks, workers: 1, hosts: 1; {CHECKED}"),
    },
    "clusters": {
        "drarun plan examples/jobs/half-nodes-aligned.yaml --slices examples/clusters/a4-two-nodes.json": (0, r"\Ajob all-gather-4x4: 4 workers, each with 4 GPUs"),
        "drarun topo --slices examples/clusters/a4-two-nodes.json --node a4-0": (0, r"(?s)\A8 GPUs, 8 NICs; a4-0\n.*paired with NIC7\n\Z"),
    },
    "mpi4py": {
        "drarun -n 4 python3 examples/mpi4py/allreduce.py": (0, r"\Ampi4py: 4 ranks, hosts: 1, sum of 1000 doubles right on every rank\n\Z"),
    },
    "mpmd": {
        "drarun -n 1 build/bin/examples/pi-coordinator : -n 3 build/bin/examples/pi-integrator": (0, rf"\A{PI}\Z"),
        "PATH=$PWD/build/bin/examples:$PATH drarun run --local examples/mpmd/job.yaml": (0, rf"\A{PI}\Z"),
    },
    "nccl-id": {
        "drarun -n 4 build/bin/examples/nccl-id": (0, r"\Anccl-id: 4 ranks, id from .+: the same on every rank\n\Z"),
    },
    "torchrun": {
        f"drarun --launch env -n 4 {PYTHON} examples/torchrun/train.py": (0, rf"\A{TRAINED.format(1)}\Z"),
        # which Debian's torchrun fails with, as the page says
        "drarun --workers 2 --ranks-per-worker 1 -- torchrun --nproc_per_node 2 examples/torchrun/train.py": (1, r"'NoneType' object has no attribute 'get'"),
        "drarun -x PET_REDIRECTS=9:1 -x PET_TEE=9:1 --workers 2 --ranks-per-worker 1 -- torchrun --nproc_per_node 2 examples/torchrun/train.py":
            (0, TRAINED.format(2)),
    },
}
PLAIN = pytest.mark.plain("half a minute of torch; what drarun does of it is in test_torchrun_is_started_once_on_each_worker")
BY_HAND = "mpicc", "./"  # what is typed in the example's own folder


def page_of(name):
    return f"examples/{name}/README.md"


def typed():
    """{(page, command)} of what is run here."""
    return {(page_of(name), command) for name, says in SAYS.items() for command in says}


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


@pytest.fixture
def reader(drarun, tmp_path):
    """reader("drarun -n 4 ..."): typed at the top of a tree that is like the source."""
    shutil.copytree(SOURCE / "examples", tmp_path / "examples")
    (tmp_path / "build").symlink_to(BUILD)

    def run(command, name, env):
        folder = tmp_path / "examples" / name if any(f" {each}" in f" {command}" for each in BY_HAND) else tmp_path
        path = f"{BUILD}/bin:{env.get('PATH', os.environ['PATH'])}"
        return drarun("-c", command, program="/bin/bash", cwd=folder, env={**env, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}, leaves=["torchelastic_*"])
    return run


@pytest.mark.parametrize("name", [pytest.param(name, marks=PLAIN) if name == "torchrun" else name for name in SAYS])
def test_readme(reader, example, mpi_named, request, name):
    """All its commands in their order, those aside that are left out for a reason."""
    env = {}
    if name in ("allreduce", "nccl-id"):
        example(name)
    if name == "mpmd":
        example("pi-coordinator")
    if name == "torchrun":
        request.getfixturevalue("torch")
    if name == "mpi4py":
        mpi = mpi_named("openmpi5")
        env = {**mpi.env, "PATH": f"{os.path.dirname(mpi.python)}:{os.environ['PATH']}"}
    for _, command, _ in pages.commands(page_of(name)):
        if command in pages.LEFT_OUT.get(page_of(name), ()):
            continue
        status, says = SAYS[name][command]
        result = reader(command, name, env)
        assert result.rc == status and re.search(says, result.out if status == 0 else result.err), result


@pytest.mark.parametrize("options,ranks,workers", [
    ((), 1, 1),
    (("--workers", 3, "-n", 5), 5, 3),
])
def test_allreduce(drarun, example, options, ranks, workers):
    result = drarun(*options, example("allreduce")).ok()
    assert result.out.startswith(f"allreduce: {ranks} ranks, workers: {workers}, hosts: 1; ")
    assert f"first sum {ranks * (ranks + 1) // 2}, every element right on every rank" in result.out
    assert re.search(r"\n +[\d.]+ ms \([\d.]+ to [\d.]+\)\n\Z", result.out) and result.out.count("\n") == 2 and result.err == ""


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


def test_mpmd_over_workers(drarun, example):
    result = drarun("--workers", 2, "-n", 1, example("pi-coordinator"), ":", "-n", 5,
                    example("pi-integrator")).ok()
    assert "5 integrators: pi = 3.141592654, right" in result.out


def test_mpmd_in_the_wrong_order(drarun, example):
    result = drarun("-n", 1, example("pi-integrator"), ":", "-n", 1, example("pi-coordinator"))
    assert result.rc == 2
    assert "rank 0 must be a pi-coordinator" in result.err


@pytest.mark.parametrize("options", [("-n", 1), ("--workers", 3, "-n", 7)])
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


@PLAIN
def test_torch_with_a_process_a_rank(drarun, source, torch):
    result = drarun("--launch", "env", "--workers", 2, "-n", 4, PYTHON, source / "examples/torchrun/train.py").ok()
    assert re.fullmatch(TRAINED.format(2), result.out)


@pytest.mark.parametrize("launch", ["pmix", "env"])
@pytest.mark.parametrize("command", [["torchrun", "--nproc-per-node=8", "train.py"], ["bash", "-c", "exec torchrun --nproc-per-node=8 train.py"],
                                     ["env", "-S", "A=b torchrun", "--nproc-per-node=8", "train.py"]], ids=["itself", "in-a-line", "split-by-env"])
def test_torchrun_is_started_once_on_each_worker(drarun, source, tmp_path, launch, command):
    """Whatever the GPUs: it starts a process for each. The plan gives it all of them."""
    program, job = tmp_path / "torchrun", tmp_path / "job.json"
    program.write_text('#!/bin/sh\necho "node $PET_NODE_RANK of $PET_NNODES: $*"\n')
    program.chmod(0o755)
    job.write_text(json.dumps({"workers": 2, "image": "i", "launch": launch, "devices": {"gpus": {"count": 8}}, "command": command}))
    result = drarun("run", "--local", job, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).ok()
    assert sorted(result.out.splitlines()) == [f"node {node} of 2: --nproc-per-node=8 train.py" for node in range(2)]
    plan = drarun("plan", job, "--slices", source / "examples/clusters/a4-two-nodes.json").ok()
    assert "\nRanks, 2 in all, one for the GPUs of a worker:\n" in plan.out, plan
    assert result.err.count("not one for each of its 8 GPUs: its command runs torchrun") == (command[0] != "torchrun"), result


@pytest.mark.parametrize("line", ["./app --launcher torchrun", "command -v torchrun > /dev/null; ./app"])
def test_a_word_of_a_line_is_no_torchrun(drarun, tmp_path, line):
    """A rank for each GPU, as for any program."""
    program, job = tmp_path / "app", tmp_path / "job.json"
    program.write_text('#!/bin/sh\necho "$RANK of $WORLD_SIZE"\n')
    program.chmod(0o755)
    job.write_text(json.dumps({"image": "i", "devices": {"gpus": {"count": 4}}, "command": ["bash", "-c", f"cd {tmp_path}; {line}"]}))
    result = drarun("run", "--local", job).ok()
    assert sorted(result.out.splitlines()) == [f"{rank} of 4" for rank in range(4)]
    assert "torchrun" not in result.err, result


@PLAIN
def test_torchrun_behind_a_shell(drarun, torch, tmp_path):
    """One job, not one for each worker; also as a spec, where nothing says how many ranks a worker has."""
    line = f"{PYTHON} -m torch.distributed.run --nproc_per_node 2 {SOURCE}/examples/torchrun/train.py"
    settings = {"PET_REDIRECTS": "9:1", "PET_TEE": "9:1"}  # Debian's torchrun fails without them
    result = drarun("--workers", 2, "--", "bash", "-c", f"echo begin && {line}", env=settings, leaves=["torchelastic_*"]).ok()
    assert len(re.findall(TRAINED.format(2).strip(), result.out)) == 1, result
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps({"workers": 2, "image": "i", "launch": "env", "devices": {"gpus": {"count": 2}}, "command": ["bash", "-c", line]}))
    again = drarun("run", "--local", job, env=settings, leaves=["torchelastic_*"]).ok()
    assert re.search(TRAINED.format(2).strip(), again.out), again
