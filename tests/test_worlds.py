# SPDX-License-Identifier: Apache-2.0
"""Roles that are each an MPI_COMM_WORLD of their own (world: own, docs/design/039-roles.md), with every MPI library: tests/programs/mpi_world.c."""
import pytest
import yaml

from support.mpi import ALL

# Debian's MPICH 4.0 is built on UCX, for which it has no MPI_Open_port, so that these fail under Hydra, too.
MEET = {"openmpi4": {}, "openmpi5": {}, "mpich5": {"MPIR_CVAR_CH4_NETMOD": "ofi"}, "impi": {"I_MPI_FABRICS": "shm:ofi"}}
LIBRARIES = pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.name)
THOSE_THAT_MEET = pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.name in MEET], ids=lambda mpi: mpi.name)


@pytest.fixture
def worlds(drarun, tmp_path):
    """worlds(mpi, {"a": words}, workers=2): the Result of a job with these roles."""
    def run(mpi, roles, *options, environment=None, **keys):
        path = tmp_path / "job.yaml"
        spec = {"image": "i", "world": "own",
                "roles": [{"name": name, "command": [str(word) for word in words], **keys} for name, words in roles.items()]}
        path.write_text(yaml.safe_dump({"metadata": {"name": "job"}, "spec": spec}))
        return drarun("run", "--local", path, *options, env={**mpi.env, **(environment or {})}, cwd=tmp_path, timeout=60)

    return run


@LIBRARIES
def test_each_role_is_a_world(worlds, mpi):
    program = mpi.compile("mpi_world.c")
    result = worlds(mpi, {"a": [program], "b": [program]}, workers=2, ranksPerWorker=2).ok()
    assert mpi.version in result.out
    assert sorted(line for line in result.out.splitlines() if "rank" in line) == [
        f"{role}: rank {rank} of 4, program 0, launched, right" for role in "ab" for rank in range(4)]


@THOSE_THAT_MEET
def test_worlds_meet_by_name(worlds, mpi, tmp_path):
    """MPI_Comm_accept in one role, MPI_Comm_connect in the other."""
    program = mpi.compile("mpi_names.c")
    await_name = f"until grep -q published {tmp_path}/out/rank.0.out; do sleep 0.05; done; exec {program} call ocean"
    worlds(mpi, {"server": [program, "serve", "ocean"], "client": ["sh", "-c", await_name]}, "--output-dir", tmp_path / "out",
           environment=MEET[mpi.name], ranksPerWorker=2).ok()
    assert [(tmp_path / "out" / f"rank.{rank}.out").read_text().splitlines()[1:] for rank in (0, 2)] == [
        ["published", "met 2", "unpublished"], ["met 2"]]


@THOSE_THAT_MEET
def test_a_role_spawns(worlds, mpi):
    """Its child is of a world of its own, too, and gets what its role got."""
    program = mpi.compile("mpi_world.c")
    result = worlds(mpi, {"a": [program], "b": [program, program]}, "--oversubscribe", environment=MEET[mpi.name], env={"A": "b"}).ok()
    assert sorted(line for line in result.out.splitlines() if "rank" in line) == [
        "a: rank 0 of 1, program 0, launched, right", "b: rank 0 of 1, program 0, launched, right", "b: rank 0 of 1, program 0, spawned, right"]
