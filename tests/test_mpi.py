# SPDX-License-Identifier: Apache-2.0
"""Every MPI library under drarun: what tests/programs/mpi_check.c checks on each rank, and how jobs end
when a rank does not do its part."""
import re
import socket

import pytest

WHERE = {
    "1": ["-n", 1], "2": ["-n", 2], "8": ["-n", 8], "2x1": ["--workers", 2, "-n", 2],
    "2x2": ["--workers", 2, "-n", 4], "3x2": ["--workers", 3, "-n", 6],
    "4x2": ["--workers", 4, "-n", 8],
}
HOST = re.escape(socket.gethostname())


@pytest.fixture
def check(drarun, mpi, tmp_path):
    """check("2x2", "all"): that case of the program, compiled with this MPI library."""

    def run(where, *case, **how):
        # in a folder of its own: Intel MPI writes backtraces where it is
        return drarun(*WHERE[where], mpi.compile("mpi_check.c"), *case, env=mpi.env, cwd=tmp_path,
                      **how)

    return run


def right(result, mpi, where):
    """All ranks are one job (N singletons would each fail), of the library that was meant."""
    result.ok()
    options = WHERE[where] if isinstance(where, str) else where
    nodes = options[1] if options[0] == "--workers" else 1
    assert mpi.version in result.out
    assert f"ok: {options[-1]} ranks, {nodes} nodes\n" in result.out
    assert result.err == ""


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", WHERE)
def test_right_on_every_rank(check, mpi, where):
    right(check(where, "all", timeout=90), mpi, where)


@pytest.mark.plain("64 ranks on two cores take minutes")
@pytest.mark.parametrize("name", ["openmpi4", "openmpi5", "mpich5"])
@pytest.mark.parametrize("where", [["-n", 64], ["--workers", 4, "-n", 64]], ids=["64", "4x16"])
def test_64_ranks(drarun, mpi_named, name, where):
    mpi = mpi_named(name)
    right(drarun(*where, mpi.compile("mpi_check.c"), "all", timeout=120), mpi, where)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "8", "3x2"])
def test_sessions(check, mpi, where):
    """Communicators from a session's process set. One session: in a second one every library crashes or
    hangs, also under its own launcher."""
    if mpi.name == "openmpi4":
        pytest.skip("Open MPI 4 has no sessions")
    result = check(where, "sessions", 1).ok()
    assert f"ok: {WHERE[where][-1]} ranks, sessions\n" in result.out


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "2x2"])
def test_mpi4py(drarun, mpi, where):
    code = ("from mpi4py import MPI; w = MPI.COMM_WORLD; n = w.size; "
            f"assert n == {WHERE[where][-1]} and w.allreduce(w.rank) == n * (n - 1) // 2; "
            "w.rank == 0 and print(MPI.Get_library_version())")
    result = drarun(*WHERE[where], mpi.python, "-B", "-c", code, env=mpi.python_env).ok()
    assert mpi.version in result.out


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "2x2"])
def test_spawn_is_refused(check, where):
    """With an error that a program may handle."""
    result = check(where, "spawn").ok()
    assert re.search("refused: .*(error|MPI_ERR)", result.out)


def test_spawn_ends_a_program_that_does_not_handle_it(check):
    result = check("2x2", "spawn-all", timeout=30)
    assert result.rc not in (0, 124)
    assert "spawned" not in result.out
    assert re.search(r"drarun: rank \d on worker \d .* (aborted the job|exited)", result.err)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "2x2"])
def test_names_are_published(check, mpi, where):
    """By Open MPI; MPICH wants a name server of Hydra's for it and says so otherwise."""
    result = check(where, "publish")
    if mpi.api == "pmix":
        assert result.ok().out == "ok: published and found\n"
    else:
        assert result.rc == 3 and "MPI_Publish_name fails" in result.err


@pytest.mark.matrix(2)
@pytest.mark.parametrize("where", ["2", "2x2"])
@pytest.mark.parametrize("how,status,said", [
    ("segv", 139, r"was killed by signal 11 \(SIGSEGV\)"),
    ("kill", 137, r"was killed by signal 9 \(SIGKILL\)"),
    ("exit", 5, "exited with status 5"),
    ("quit", 1, "exited with status 0 after .* without finalizing"),
    ("abort", 7, "aborted the job with status 7"),
])
def test_a_rank_that_leaves(check, mpi, where, how, status, said):
    """Its fellows wait in a barrier, for which they may have many words, but the job's status is its own."""
    result = check(where, how, timeout=30)
    if mpi.name == "impi" and "terminated with signal 11" in result.err:
        status, said = 1, "exited with status 1"  # Intel MPI caught it between nodes
    assert result.rc == status, repr(result)
    assert re.search(rf"drarun: rank 1 on worker 0 \({HOST}\) {said}", result.err), repr(result)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("where", ["2", "2x1"])
@pytest.mark.parametrize("how,status,said", [
    ("early-kill", 137, r"was killed by signal 9 \(SIGKILL\)"),
    ("early-exit", 5, "exited with status 5"),
    ("early-quit", 1, "exited with status 0 .* without connecting to PMI"),
])
def test_a_rank_that_leaves_before_mpi_init(check, where, how, status, said):
    """The others wait in MPI_Init."""
    result = check(where, how, timeout=30)
    assert result.rc == status, repr(result)
    worker = 1 if where == "2x1" else 0
    assert re.search(rf"drarun: rank 1 on worker {worker} \({HOST}\) {said}", result.err), repr(result)
