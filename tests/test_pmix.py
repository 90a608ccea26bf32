# SPDX-License-Identifier: Apache-2.0
"""Every entry of the PMIx server (docs/design/007-pmix-server.md), asked by tests/programs/pmix_client.c
over one, two and three agents, with three releases of the client library."""
import re
import socket
import time

import pytest

from support.build import SANITIZE
from support.mpi import BY_NAME
from support.run import peak_memory_kib

PLACES = {"one": ["-n", 4], "two": ["--workers", 2, "-n", 4], "three": ["--workers", 3, "-n", 6]}


class Client:
    """name: a program of the build. library: whose libpmix it runs with, when not its own."""

    def __init__(self, name, version, library=None):
        self.name, self.version, self.library = name, version, library

    def command(self, build):
        program = build / "tests" / "programs" / self.name
        if not program.exists():
            pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
        if not self.library:
            return [program]
        path = BY_NAME[self.library].home() / "lib" / "openmpi"
        return ["env", f"LD_LIBRARY_PATH={path}", program]


CLIENTS = [Client("pmix_client", "4."), Client("pmix_client_inside", "5.0.5"),
           Client("pmix_client", "5.0.11", library="openmpi5")]


@pytest.fixture(params=CLIENTS, ids=lambda client: f"client{client.version.rstrip('.')}")
def client(request, build, drarun):
    """client("modex", where="two"): the Result of that case. options: more of drarun's."""

    def run(*case, where, options=(), **how):
        return drarun(*options, *PLACES[where], *request.param.command(build), *case, **{"timeout": 30, **how})

    run.version = request.param.version
    return run


@pytest.fixture(params=PLACES)
def where(request):
    return request.param


def test_rank_that_publishes_too_much(client):
    """It is refused the rest, and the others are not; its agent's memory is not the rank's."""
    result = client("publish-much", where="two", timeout=300).ok()  # a file for each key
    assert result.err == "drarun-worker: rank 0: PMIx: it has published more than 4096 keys or 16777216 bytes: the rest is rejected\n"


@pytest.mark.matrix(2)
@pytest.mark.parametrize("case", [
    "job", "modex", "big", "barrier", "subset", "dmodex", "publish", "first-read", "lookup-timeout",
    "connect", "group", "event", "event-custom", "query", "control", "pause", "spawn", "spawn-stopped", "refused"])
def test_entry(client, case, where):
    result = client(case, where=where).ok()
    ranks = PLACES[where][-1]
    assert result.out.startswith(f"{case} ok on {ranks} ranks, OpenPMIx {client.version}")
    waiting = [line for line in result.err.splitlines() if "waits for a debugger, in PMIx_Init" in line]
    assert len(waiting) == len(result.err.splitlines()) == (3 if case == "spawn-stopped" else 0)


def test_spawn_that_cannot_be(client, where):
    """An error for the rank that asked, with the reason on our stderr, and the job goes on."""
    result = client("spawn-refused", where=where).ok()
    ranks = PLACES[where][-1]
    assert result.out.startswith(f"spawn-refused ok on {ranks} ranks")
    said = sorted(result.err.splitlines())
    assert len(said) == ranks and all(line.startswith(f"drarun: rank {rank}: spawn: ") for rank, line in enumerate(said))
    assert all("/nonexistent/program" in line for line in said)


@pytest.mark.parametrize("where", ["one", "two"])
def test_namespaces_of_ended_groups_are_released(drarun, build, where):
    """Of 200 groups there are those that run, and few that have ended."""
    result = drarun(*PLACES[where], *CLIENTS[1].command(build), "spawn-often", timeout=120).ok()
    names, more = map(int, re.fullmatch(r"(\d+) namespaces, (-?\d+) KiB more\n", result.err).groups())
    assert names < 50
    assert more < 2048 or SANITIZE, "KiB: namespaces pile up"


@pytest.mark.matrix(1)
def test_log_becomes_output_of_the_rank(client, where):
    result = client("log", where=where).ok()
    ranks = PLACES[where][-1]
    assert sorted(result.err.splitlines()) == [f"logged by {rank}" for rank in range(ranks)]


@pytest.mark.matrix(1)
def test_logs_keep_their_place_among_the_output(client, where):
    """Of each rank every other line is logged: whole, and where it was."""
    out = client("log-turns", where=where).ok().out
    for rank in range(PLACES[where][-1]):
        numbers = [line.split(":") for line in out.splitlines() if line.startswith(f"{rank}:")]
        assert [(int(number), len(rest)) for _, number, rest in numbers] == [(i, i % 300 + 1) for i in range(400)]


@pytest.mark.matrix(1)
def test_a_long_log_is_whole(client, where):
    """Each rank waits for the answer to one request of 1.2 MB."""
    result = client("log-long", where=where).ok()
    assert len(re.findall("^x{1023}$", result.out, re.M)) == PLACES[where][-1] * 2 * 600
    assert "drarun" not in result.err


def memory_kib(job):
    """The most of drarun's own processes."""
    ours = [pid for pid, line in job.processes().items() if re.match(r"(\S*/)?drarun(-worker)?( |$)", line)]
    return max(peak_memory_kib(pid) for pid in ours)


@pytest.mark.plain("measures memory")
def test_a_slow_reader_slows_what_is_logged(drarun, build):
    job = drarun.start("-n", 4, *CLIENTS[1].command(build), "log-flood", text=False)
    time.sleep(1)
    size = 0
    while size < 240_000_000:  # the rest is more than all may hold: they are there yet
        size += len(job.process.stdout.read(1 << 20))
    assert memory_kib(job) < 48 * 1024, "KiB: logs pile up"
    size += len(job.process.stdout.read())
    assert 256_000_000 < size < 256_001_000
    job.finish().ok()


@pytest.mark.plain("measures memory")
def test_who_does_not_wait_may_log_so_much(drarun, build):
    """Each request is answered; the rest of the text is rejected and not kept."""
    job = drarun.start("-n", 2, *CLIENTS[1].command(build), "log-unwaited")
    time.sleep(1)
    assert memory_kib(job) < 64 * 1024, "KiB: logs pile up"
    result = job.finish().ok()
    rejected = sum(map(int, re.findall(r"^rejected (\d+)$", result.err, re.M)))
    assert rejected > 0 and len(re.findall("^x{1023}$", result.out, re.M)) == 2 * 20000 - rejected
    assert len(re.findall(r"^drarun(?:-worker)?: rank \d: PMIx: more of what it logs waits for its reader than drarun keeps: ", result.err, re.M)) == 1


@pytest.mark.matrix(1)
def test_what_no_message_carries_is_refused(client, where):
    """17 MiB by direct modex: an answer, not a hang."""
    result = client("dmodex-too-big", where=where).ok()
    assert ("a fence that collects data has no such limit" in result.err) == (where != "one")


@pytest.mark.matrix(2)
@pytest.mark.parametrize("case,status,said", [
    ("abort", 7, r"rank 1 on worker 0 \({host}\) aborted the job with status 7 after .*: enough"),
    ("kill", 137, r"rank {last} on worker \d \({host}\) was killed by signal 9"),
    ("leave segv", 139, r"rank 1 on worker 0 \({host}\) was killed by signal 11 \(SIGSEGV\)"),
    ("leave exit5", 5, r"rank 1 on worker 0 \({host}\) exited with status 5"),
    ("leave exit0", 1, r"rank 1 on worker 0 \({host}\) exited with status 0 .*without finalizing"),
])
def test_end(client, where, case, status, said):
    """The others wait in a fence, in which nobody must stay."""
    result = client(*case.split(), where=where)
    assert result.rc == status, repr(result)
    said = said.format(host=re.escape(socket.gethostname()), last=PLACES[where][-1] - 1)
    assert len(re.findall(f"drarun: {said}", result.err)) == 1
    assert result.err.count("drarun: ") == 1
    assert "PMIX ERROR" not in result.err


@pytest.mark.matrix(1)
def test_abort_holds_its_rank_until_the_job_ends(client):
    """Else its fellows see it leave, and abort for that with another status, which may be read first."""
    result = client("abort-unread", where="two")
    assert result.rc == 7 and "came back" not in result.err, repr(result)


@pytest.mark.parametrize("where", ["two", "three"])
def test_exit_that_is_told_after_the_abort_that_it_caused(client, where):
    """The agent of the rank that leaves is late; the job's status is that rank's all the same."""
    result = client("exit-unread", where=where)
    assert result.rc == 5, repr(result)
    assert f"rank 1 on worker 0 ({socket.gethostname()}) exited with status 5" in result.err, repr(result)


# MPICH 5 aborts when it connects to a process that is gone, and crashes as it leaves. Rank 2's end is told 200 ms late, as its child has its pipes.
ABORT_AND_CRASH = """
import os, pathlib, resource, signal, socket, subprocess, time

def wait(ready):
    while not ready():
        time.sleep(0.001)

server, rank = socket.socket(fileno=int(os.environ["PMI_FD"])), os.environ["RANK"]
server.sendall(b"cmd=init pmi_version=1 pmi_subversion=1\\n")
server.recv(4096)
pathlib.Path(f"up.{rank}").touch()
wait(lambda: all(pathlib.Path(f"up.{each}").exists() for each in range(3)))
if rank == "2":
    subprocess.Popen(["sleep", "2"])
    pathlib.Path("new").write_text(str(os.getpid()))
    pathlib.Path("new").rename("gone")
    os._exit(7)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
wait(pathlib.Path("gone").exists)
wait(lambda: not pathlib.Path("/proc", pathlib.Path("gone").read_text()).exists())
server.sendall(b"cmd=abort exitcode=15\\n")
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_crashes_of_ranks_that_had_aborted(drarun, tmp_path):
    """All of them are echoes of the exit, however many abort while it is not told yet."""
    result = drarun("-n", 3, "/usr/bin/python3", "-c", ABORT_AND_CRASH, cwd=tmp_path, timeout=30)
    assert result.rc == 7, repr(result)
    assert f"rank 2 on worker 0 ({socket.gethostname()}) exited with status 7" in result.err and "SIGSEGV" not in result.err, repr(result)


@pytest.mark.matrix(2)
@pytest.mark.parametrize("bind", ["core", "0"])
@pytest.mark.parametrize("cores", [True, False], ids=["cores", "no-cores"])
def test_bound_ranks(client, bind, cores, tmp_path):
    """Described by the topology of the agent, also where that shows no cores."""
    (tmp_path / "sys").mkdir()
    env = {} if cores else {"HWLOC_FSROOT": str(tmp_path), "HWLOC_HIDE_ERRORS": "2"}
    result = client("bound", where="one", options=["--bind", bind], env=env).ok()
    assert result.out.startswith("bound ok on 4 ranks") and result.err == ""
