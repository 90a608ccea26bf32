# SPDX-License-Identifier: Apache-2.0
"""Every MPI library under drarun: what tests/programs/mpi_check.c checks on each rank, and how jobs end
when a rank does not do its part."""
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from support.build import SOURCE

WHERE = {
    "1": ["-n", 1], "2": ["-n", 2], "8": ["-n", 8], "2x1": ["--workers", 2, "-n", 2],
    "2x2": ["--workers", 2, "-n", 4], "3x2": ["--workers", 3, "-n", 6],
    "4x2": ["--workers", 4, "-n", 8],
}
CPUS = os.sched_getaffinity(0)
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


def test_intel_mpi_where_modules_are_for_srun(drarun, mpi_named, tmp_path):
    """They name Slurm's PMI library, here one that cannot stand for it. A user may still do so."""
    mpi = mpi_named("impi")
    program = mpi.compile("mpi_check.c")
    env = {**mpi.env, "SLURM_JOB_ID": "5", "I_MPI_PMI": "pmi2", "I_MPI_PMI_LIBRARY": "libm.so.6"}
    right(drarun("-n", 2, program, "all", env=env, cwd=tmp_path, timeout=90), mpi, ["-n", 2])
    assert drarun("-x", "I_MPI_PMI_LIBRARY", "sh", "-c", "echo $I_MPI_PMI_LIBRARY", env=env).ok().out == "libm.so.6\n"


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


def cpu_set(text):
    """{0, 1, 4} of "0-1,4"."""
    ranges = [part.split("-") for part in text.strip().split(",")]
    return {cpu for ends in ranges for cpu in range(int(ends[0]), int(ends[-1]) + 1)}


def usable(pattern, allowed):
    """The sets of CPUs in files of /sys/devices/system, as far as they are allowed."""
    sets = [cpu_set(path.read_text()) & allowed for path in sorted(Path("/sys/devices/system").glob(pattern))]
    return [each for n, each in enumerate(sets) if each and each not in sets[:n]]


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where,bind", [("2", "core"), ("2", "numa"), ("2", "list"), ("2", "pod"), ("2", "unread"), ("2x1", "core")])
def test_bound_ranks(drarun, mpi, where, bind):
    """The kernel, hwloc and (as far as it tells) the library agree with what was asked for. pod: the agent has
    one CPU of the machine, as under the kubelet's static CPU manager. unread: hwloc fails in the agent, so the ranks read
    the topology themselves."""
    allowed = os.sched_getaffinity(0)
    first, last = min(allowed), max(allowed)
    under = ["taskset", "-c", str(last)] if bind == "pod" else []
    option = {"list": f"{last};{first}", "pod": "core", "unread": "core"}.get(bind, bind)
    unread = {"HWLOC_COMPONENTS": "stop"} if bind == "unread" else {}
    result = drarun("--bind", option, *WHERE[where], "env", "-u", "HWLOC_COMPONENTS", mpi.compile("mpi_bind.c"),
                    env={**mpi.env, **unread}, under=under).ok()
    assert result.err == ""
    lines = [line.split() for line in sorted(result.out.splitlines())]
    got = [cpu_set(line[1]) for line in lines]
    assert all(line[1] == line[2] == line[3] for line in lines), repr(result)
    cores = usable("cpu/cpu[0-9]*/topology/thread_siblings_list", allowed)
    if bind in ("core", "unread"):
        assert got[0] in cores and got[1] in cores and (got[0] != got[1] or len(cores) == 1)
    elif bind == "numa":
        assert all(each in usable("node/node[0-9]*/cpulist", allowed) for each in got)
    else:
        assert got == [{last}, {first} if bind == "list" else {last}]
    if mpi.api == "pmix":
        fellow = where == "2" and bind != "unread" and any(got[0] & core and got[1] & core for core in cores)
        assert [line[4] for line in lines] == ["2" if fellow else "1"] * 2, repr(result)


@pytest.mark.parametrize("fetch", [["fetch-roots", "bullseye"], ["fetch-hwloc"]], ids=["2.4", "2.11"])
@pytest.mark.parametrize("name", ["openmpi4", "mpich4"])
def test_bound_ranks_with_another_hwloc(drarun, mpi_named, name, fetch, tmp_path):
    """Older, of Debian 11, or newer, of PyPI, than the agent's, whose topology the ranks read. Open MPI 5 has 2.7, Debian 12 has 2.9."""
    fetched = subprocess.run([SOURCE / "scripts" / fetch[0], *fetch[1:]], capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"scripts/{' '.join(fetch)}: {fetched.stderr.strip()[-300:]}")
    program = mpi_named(name).compile("mpi_bind.c")
    library = next(Path(fetched.stdout.split()[-1]).rglob("libhwloc.so.15"))
    (tmp_path / library.name).symlink_to(library.resolve())
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert f"=> {tmp_path / library.name}" in drarun("ldd", program, env=env).ok().out
    lines = [line.split() for line in drarun("--bind", "core", "-n", 2, program, env=env).ok().out.splitlines()]
    cores = usable("cpu/cpu[0-9]*/topology/thread_siblings_list", os.sched_getaffinity(0))
    assert len(lines) == 2 and all(cpu_set(line[1]) in cores and line[1] == line[2] == line[3] for line in lines), lines


@pytest.mark.matrix(1)
@pytest.mark.parametrize("case", [[], ["flags"]], ids=["traps", "flags"])
def test_no_floating_point_exception_in_init(drarun, mpi, case):
    """None of ours: by default libxml2 would raise some as it reads the topology."""
    result = drarun("-n", 1, mpi.compile("mpi_traps.c", flags=["-lm"]), *case, env=mpi.env).ok()
    assert result.out == "0\n" and result.err == ""


def test_a_job_in_a_rank_of_a_job(drarun, mpi, tmp_path):
    """The inner job's workers are nodes of their own: nothing of the outer job's only worker is left to share."""
    where = "2x2" if mpi.api == "pmix" else "2x1"
    right(drarun(drarun.program, *WHERE[where], mpi.compile("mpi_check.c"), "all", env=mpi.env, cwd=tmp_path, timeout=90),
          mpi, where)


@pytest.mark.parametrize("where,waits", [
    (("-n", 1), False),
    (("-n", len(CPUS) + 1), True),
    (("-n", 2, "--bind", min(CPUS)), True),  # both on one CPU
    (("--workers", 2, "-n", len(CPUS) + 1), True),
])
def test_ranks_without_a_cpu_of_their_own_wait_for_others(drarun, where, waits):
    """jobs/ranks/rankenv.c has the variables of all libraries in one table."""
    lines = drarun(*where, "env").ok().out.splitlines()
    assert lines.count("I_MPI_WAIT_MODE=1") == (where[where.index("-n") + 1] if waits else 0)
    kept = drarun(*where, "-x", "I_MPI_WAIT_MODE=0", "env").ok().out
    assert "I_MPI_WAIT_MODE=1" not in kept and "I_MPI_WAIT_MODE=0" in kept


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "2x2"])
def test_spawn_without_slots_is_refused(drarun, mpi, where, tmp_path):
    """With an error that a program may handle; Open MPI 4 would keep it from ranks that wait, so the job ends."""
    result = drarun(*WHERE[where], "--slots", 1, mpi.compile("mpi_check.c"), "spawn", env=mpi.env, cwd=tmp_path)
    if mpi.name == "openmpi4":
        assert result.rc == 1 and "Open MPI 4 would return this error on this rank alone" in result.err, result
    else:
        assert re.search("refused: .*(error|MPI_ERR)", result.ok().out)


def test_spawn_ends_a_program_that_does_not_handle_it(drarun, mpi, tmp_path):
    result = drarun(*WHERE["2x2"], "--slots", 1, mpi.compile("mpi_check.c"), "spawn-all", env=mpi.env, cwd=tmp_path, timeout=30)
    assert result.rc not in (0, 124)
    assert "spawned" not in result.out
    assert re.search(r"drarun: rank \d on worker \d .* (aborted the job|exited)", result.err)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", ["2", "2x2"])
def test_names_are_published(check, where):
    """And found by the job's other ranks."""
    assert check(where, "publish").ok().out == "ok: published and found\n"


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
