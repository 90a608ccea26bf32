# SPDX-License-Identifier: Apache-2.0
"""Ranks that ranks start (docs/design/037-spawn.md), with every MPI library that can: what
tests/programs/mpi_spawn.c sees on both sides, and that its ranks are the job's like all others."""
import json
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from support.build import SANITIZE, patience
from support.mpi import ALL, BY_NAME, EACH_API, EVERY

HOST = socket.gethostname()
# The same under their own launchers.
CANNOT = {"mpich4": "MPICH 4.0 to 4.2 built on UCX, as Debian's is, opens no port before it asks PMI to spawn: it fails under Hydra, too"}
LIBRARIES = [pytest.param(mpi, id=mpi.name, marks=[pytest.mark.skip(reason=CANNOT[mpi.name])] if mpi.name in CANNOT else [])
             for mpi in EVERY]


def of(libraries):
    """In place of all of them."""
    return pytest.mark.parametrize("mpi", [pytest.param(mpi, id=mpi.name) for mpi in libraries], indirect=True)


# What is the agent's and the launcher's doing: once over PMIx and once over PMI-1.
each_api = of(EACH_API)
each_api_with_errors = of([BY_NAME["openmpi5"], BY_NAME["mpich5"]])  # Open MPI 4 gives the error of a spawn to one rank


@pytest.fixture(params=LIBRARIES)
def mpi(request):
    return request.param


def environment(mpi):
    """Intel MPI's shared memory alone "does not support Spawns"."""
    return {**mpi.env, "I_MPI_FABRICS": "shm:ofi"} if mpi.name == "impi" else mpi.env


@pytest.fixture
def spawn(drarun, mpi, tmp_path):
    """spawn("-n", 2, case=["once"]): the Result of that case of the program."""

    def run(*options, case, start=False, **how):
        call = drarun.start if start else drarun
        words = [*options, mpi.compile("mpi_spawn.c"), *case]
        return call(*words, env={**environment(mpi), **how.pop("env", {})}, cwd=how.pop("cwd", tmp_path), **({} if start else {"timeout": 60, **how}))

    return run


def children(result):
    """The words behind "child R of N" by rank, of one world."""
    found = re.findall(r"child (\d+) of (\d+) on (.*)", result.out)
    return {int(rank): rest for rank, _, rest in found}


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where,workers", [
    (["-n", 2, "--slots", 4], ["0", "0"]),
    (["--workers", 2, "-n", 2, "--slots", 2], ["0", "1"]),
    (["--workers", 2, "-n", 1, "--slots", 1, "--oversubscribe"], ["0", "1"]),
    (["--workers", 2, "-n", 2, "--ranks-per-worker", 2, "--slots", 2], ["1", "1"]),
], ids=["one", "two", "crowded", "behind"])
def test_children_meet_their_parents(spawn, mpi, where, workers):
    """They fill free slots in the workers' order; a worker that had no rank gets some."""
    result = spawn(*where, case=["once"]).ok()
    assert mpi.version in result.out
    assert [rest.split()[0] for _, rest in sorted(children(result).items())] == workers, repr(result)
    assert all(rest.endswith(" as a b") for rest in children(result).values())
    assert "drarun" not in result.err


@each_api
def test_no_place_for_names(spawn, tmp_path):
    """As in a launcher's pod: parents and children are of one job, which needs none."""
    (tmp_path / "drarun").touch()
    result = spawn("--workers", 2, "-n", 2, "--slots", 2, case=["once"], env={"XDG_RUNTIME_DIR": tmp_path}).ok()
    assert len(children(result)) == 2


@pytest.mark.matrix(1)
@pytest.mark.parametrize("case,options,worlds", [
    ("again", ["-n", 2, "--slots", 4], ["2"] * 6),
    ("multiple", ["--workers", 2, "-n", 2, "--slots", 3], ["3"] * 3),
    ("nested", ["-n", 1, "--slots", 3], ["1", "1"]),
    ("each", ["-n", 3, "--slots", 6], ["1"] * 3),
], ids=lambda value: value if isinstance(value, str) else "")
def test_further_forms(spawn, case, options, worlds):
    """Again: slots of children that have ended are free. Each: ranks ask at the same time."""
    result = spawn(*options, case=[case]).ok()
    assert re.findall(r"child \d+ of (\d+)", result.out) == worlds, repr(result)
    if case == "multiple":
        assert sorted(re.findall(r"child (\d) .* as (\w+)", result.out)) == [("0", "first"), ("1", "second"), ("2", "second")]


@each_api
def test_groups_that_have_ended_are_in_nobodys_way(spawn):
    """The servers forget them one after the other; numbers go on, also in the report of ends."""
    groups = 8 if SANITIZE else 25
    result = spawn("--workers", 2, "-n", 2, "--slots", 2, "--oversubscribe", case=["again", groups]).ok()
    assert len(re.findall(r"child \d of 2", result.out)) == 2 * groups and "drarun" not in result.err, repr(result)


@each_api
def test_a_worker_gets_its_first_rank_after_a_group_has_ended(spawn):
    """Its server starts then, and has nothing to say about that group."""
    result = spawn("--workers", 2, "-n", 1, "--slots", 2, case=["later"]).ok()
    found = re.findall(r"child (\d) of (\d) on (\d)", result.out)
    assert sorted(found) == [("0", "1", "0"), ("0", "3", "0"), ("1", "3", "1"), ("2", "3", "1")], repr(result)
    assert "drarun" not in result.err


@each_api
def test_ranks_that_have_ended_need_no_cpu(spawn):
    """Children of a crowd yield theirs while they wait; one that comes when that is gone does not."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    result = spawn("-n", 1, "--oversubscribe", case=["later", 2, 1], under=["taskset", "-c", ",".join(map(str, cpus))]).ok()
    found = re.findall(r"child \d of (\d) on 0 in \S+ on CPUs \S+?( yielding)? with", result.out)
    assert sorted(found) == [("1", "" if len(cpus) == 2 else " yielding"), ("2", " yielding"), ("2", " yielding")], repr(result)


def distinct_cores():
    """A CPU of each core that we may use."""
    cores = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.exists() else cpu, str(cpu))
    return list(cores.values())


@each_api
def test_children_are_bound_to_cores_that_are_free(spawn):
    """The second child gets that of the first, which has ended, and not its parent's."""
    cpus = distinct_cores()[:2]
    if len(cpus) < 2:
        pytest.skip("one core: a child has its parent's")
    result = spawn("-n", 1, "--slots", 2, "--bind", "core", "--report-bindings", case=["later", 1, 1],
                   under=["taskset", "-c", ",".join(cpus)]).ok()
    bound = re.findall(r"drarun: rank (\d) on \S+: CPUs (.*)", result.err)
    assert bound == [("0", cpus[0]), ("1", cpus[1]), ("2", cpus[1])], repr(result)


@each_api
def test_children_are_ranks_of_the_job(spawn, tmp_path):
    """Numbered on in labels, files and the report."""
    result = spawn("-n", 2, "--slots", 4, "--label", "--report", tmp_path / "report", case=["once"]).ok()
    assert sorted(re.findall(r"\[(\d)\] child (\d)", result.out)) == [("2", "0"), ("3", "1")]
    report = json.loads((tmp_path / "report").read_text())
    assert report["ranks"] == report["ended"] == 4 and report["status"] == 0
    spawn("-n", 2, "--slots", 4, "--output-dir", tmp_path / "out", case=["once"]).ok()
    assert "child 1 of 2" in (tmp_path / "out" / "rank.3.out").read_text()


KEYS = {"env": {"openmpi5": "PMIX_ENVAR"}, "bind": {"openmpi5": "PMIX_BINDTO", "openmpi4": "bind_to"}}


@pytest.mark.matrix(1)
@pytest.mark.parametrize("key,value,says", [
    ("host", "localhost", ""),
    ("wdir", "{folder}", "in {folder} on"),
    ("bind", "core", ""),
    ("env", "SPAWN_VARIABLE=x y", "SPAWN_VARIABLE=x y"),
])
def test_info_keys(spawn, mpi, tmp_path, key, value, says):
    folder = tmp_path / "there"
    folder.mkdir()
    name = KEYS.get(key, {}).get(mpi.name, key)
    result = spawn("-n", 1, "--slots", 3, case=["info", name, value.format(folder=folder)]).ok()
    assert len(children(result)) == 2
    for rest in children(result).values():
        assert says.format(folder=folder) in rest, repr(result)
        if key == "bind" and len(os.sched_getaffinity(0)) > 1:
            allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
            assert re.search(r"CPUs (\S+)", rest)[1] not in (allowed, f"0-{max(os.sched_getaffinity(0))}"), repr(result)


@pytest.mark.matrix(1)
@of([mpi for mpi in EVERY if mpi.name in ("mpich5", "impi")])
def test_program_in_directory_of_info(spawn, mpi, tmp_path):
    """The directories of the info key path come before those of PATH. Open MPI does not pass the key on."""
    program = Path(mpi.compile("mpi_spawn.c"))
    (tmp_path / program.name).mkdir()  # no program
    search = f"relative:/nonexistent:{tmp_path}:{program.parent}"
    result = spawn("-n", 1, "--slots", 3, case=["info", "path", search]).ok()
    assert len(children(result)) == 2


@pytest.mark.matrix(1)
def test_program_in_the_working_directory(spawn, mpi, tmp_path):
    """What no directory of PATH has is looked for there, as by Open MPI's own mpirun."""
    program = Path(mpi.compile("mpi_spawn.c"))
    (tmp_path / program.name).symlink_to(program)
    result = spawn("-n", 1, "--slots", 3, case=["info", "path", "/nonexistent"]).ok()
    assert len(children(result)) == 2


@pytest.mark.matrix(1)
@pytest.mark.parametrize("options,case,says", [
    (["-n", 2, "--slots", 3], ["own", 2], "2 ranks are asked for, 1 slot is free: --slots N gives each worker N, --oversubscribe"),
    (["--workers", 2, "-n", 2, "--slots", 2], ["/nonexistent/program", 2], "/nonexistent/program"),
    (["-n", 2, "--slots", 4], ["own", 1, "host", "elsewhere"], "no worker of the job is on host elsewhere"),
], ids=["slots", "program", "host"])
def test_what_cannot_be_is_an_error(spawn, mpi, options, case, says):
    """With the reason on our stderr; the parents go on and the job ends with 0. Open MPI 4 tells the error to the rank that asked alone,
    also under its own mpirun: so the job ends, and no rank waits forever."""
    result = spawn(*options, case=["refused", *case])
    assert re.search(rf"drarun: rank 0: spawn: .*{re.escape(says)}", result.err), repr(result)
    if mpi.name == "openmpi4":
        assert result.rc == 1 and re.search(rf"drarun: rank 0 .* aborted the job with status 1 after .*: spawn: .*{re.escape(says)}.*; Open MPI 4 would return "
                                            "this error on this rank alone and leave the other ranks waiting;", result.err), repr(result)
    else:
        assert "refused\n" in result.ok().out


@of([mpi for mpi in ALL if mpi.name == "openmpi4"])
@pytest.mark.parametrize("under", [[], ["sh", "-c", '"$@"; exit $?', "sh"]], ids=["rank", "below"])
def test_open_mpi_4_gives_the_error_to_one_rank(drarun, mpi, tmp_path, under):
    """A rank by itself leaves nobody waiting, and gets it. A rank's program may be below its shell."""
    program = mpi.compile("mpi_spawn.c")
    result = drarun("-n", 1, "--slots", 3, *under, program, "refused", "own", 3, env=mpi.env, cwd=tmp_path).ok()
    assert "refused\n" in result.out and "3 ranks are asked for, 2 slots are free" in result.err
    result = drarun("-n", 2, "--slots", 3, *under, program, "refused", "own", 3, env=mpi.env, cwd=tmp_path)
    assert result.rc == 1 and "leave the other ranks waiting" in result.err, repr(result)


LOW = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]


@each_api_with_errors
def test_descriptors_of_those_that_run_count(spawn):
    """Each alone, the first ranks and the new ones, would have enough. What just fits is started."""
    result = spawn("-n", 8, "--slots", 40, case=["refused", "own", 9], under=LOW).ok()
    assert "refused\n" in result.out
    assert ("drarun: rank 0: spawn: 9 ranks on this worker beside the 8 that run need 92 open files, and the limit is 64: raise it (ulimit -n), "
            "or give it fewer ranks\n") in result.err, repr(result)
    assert len(children(spawn("-n", 8, "--slots", 40, case=["once"], under=LOW).ok())) == 2


@each_api_with_errors
@pytest.mark.parametrize("group", [("pids", "pids.max", "55")], indirect=True)
def test_processes_of_all_workers_count(spawn, group):
    """The control group is the machine's: the share of each worker alone would have room in it."""
    under = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
    result = spawn("--workers", 2, "-n", 2, "--slots", 60, case=["refused", "own", 60], under=under).ok()
    assert "refused\n" in result.out
    assert "rank 0: spawn: 60 ranks on this machine are more than the control group may hold, 55 processes and threads" in result.err, repr(result)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("how,status,said", [
    ("abort", 5, "aborted the job with status 5"),
    ("segv", 139, r"was killed by signal 11 \(SIGSEGV\)"),
    ("exit", 7, "exited with status 7"),
    ("silent", 1, "exited with status 0 .* without connecting to PMI"),
])
def test_a_child_that_leaves_ends_the_job(spawn, mpi, how, status, said):
    """Its parents wait for it: MPI counts them as one with it."""
    result = spawn("-n", 2, "--slots", 4, case=["lost", how])
    if mpi.name == "impi" and "terminated with signal 11" in result.err:
        status, said = 1, "exited with status 1"  # Intel MPI caught it
    assert result.rc == status, repr(result)
    assert re.search(rf"drarun: rank [23] of program 2 on worker 0 \({re.escape(HOST)}\) {said}", result.err), repr(result)


@of([mpi for mpi in EVERY if mpi.api == "pmix"])
def test_a_program_for_which_nobody_waits(spawn):
    """Open MPI starts programs without MPI, too, with an info key."""
    result = spawn("-n", 2, "--slots", 4, case=["apart"]).ok()
    assert result.out.count("apart\n") == 2 and "drarun" not in result.err, repr(result)


@each_api_with_errors
def test_slots_of_a_spec(drarun, mpi, tmp_path):
    """--local takes the job's keys, which the options override."""
    file = tmp_path / "job.json"

    def run(*options, case, **spec):
        command = [str(mpi.compile("mpi_spawn.c")), *map(str, case)]
        file.write_text(json.dumps({"spec": {"workers": 2, "image": "none", "command": command, **spec}}))
        return drarun("run", "--local", file, *options, env=environment(mpi), cwd=tmp_path, timeout=60).ok()

    def workers(result):
        return [rest.split()[0] for _, rest in sorted(children(result).items())]

    assert workers(run(slots=2, case=["once"])) == ["0", "1"]
    assert workers(run(slots=1, oversubscribe=True, case=["once"])) == ["0", "1"]
    assert workers(run("--slots", 3, slots=1, case=["once"])) == ["0", "0"]
    result = run(slots=2, case=["refused", "own", 3])
    assert "3 ranks are asked for, 2 slots are free: --slots N gives each worker N, --oversubscribe" in result.err, repr(result)


@each_api
def test_signals_reach_children(spawn, tmp_path):
    """And nothing of them is left, which the fixture checks."""
    job = spawn("--workers", 2, "-n", 1, "--slots", 2, case=["lost", "hang"], start=True)
    deadline = time.monotonic() + patience()
    while len(list(tmp_path.glob("hanging.*"))) < 2:
        assert time.monotonic() < deadline and job.process.poll() is None, repr(job.finish())
        time.sleep(0.02)
    job.signal(signal.SIGTERM)
    result = job.finish()
    assert result.rc == 143, repr(result)


def test_python_executor_without_its_module(drarun, mpi):
    """mpi4py's MPIPoolExecutor starts its workers itself, as many as the universe has beside its caller."""
    if mpi.name == "impi":
        pytest.skip("Intel MPI 2021.19 ends in SIGSEGV in MPI_Comm_disconnect, under its own mpirun, too")
    code = ("from mpi4py.futures import MPIPoolExecutor\n"
            "if __name__ == '__main__':\n"
            "    with MPIPoolExecutor() as pool:\n"
            "        print(sum(pool.map(abs, range(-10, 0))), pool.num_workers)\n")
    env = {**mpi.python_env, **environment(mpi)}
    result = drarun("-n", 1, "--slots", 3, mpi.python, "-B", "-c", code, env=env, timeout=90).ok()
    assert result.out == "55 2\n", repr(result)
