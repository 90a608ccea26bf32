# SPDX-License-Identifier: Apache-2.0
"""Every entry of the PMIx server (docs/design/007-pmix-server.md), asked by tests/programs/pmix_client.c
over one, two and three agents, with three releases of the client library."""
import pathlib
import re
import socket
import sys

import pytest

from support.build import SANITIZE
from support.pmix_clients import CLIENTS, PLACES, client, where  # noqa: F401


@pytest.mark.matrix(2)
@pytest.mark.parametrize("case", [
    "job", "modex", "big", "barrier", "subset", "dmodex", "publish", "first-read", "lookup-timeout",
    "connect", "group", "event", "event-custom", "query", "control", "pause", "spawn", "spawn-stopped",
    "spawn-apart", "refused", "control-false", "fence-timeout", "fence-missed"])
def test_entry(client, case, where):
    result = client(case, where=where).ok()
    ranks = PLACES[where][-1]
    assert result.out.startswith(f"{case} ok on {ranks} ranks, OpenPMIx {client.version}")
    waiting = [line for line in result.err.splitlines() if "waits for a debugger, in PMIx_Init" in line]
    assert len(waiting) == len(result.err.splitlines()) == (3 if case == "spawn-stopped" else 0)


@pytest.mark.parametrize("where", ["two", "three"])
def test_group_that_is_given_up(client, where):
    """The next one of its name is made of those that are in it then."""
    result = client("group-timeout", where=where).ok()
    assert result.out.startswith(f"group-timeout ok on {PLACES[where][-1]} ranks")


@pytest.mark.parametrize("here", ["one", "three"])
def test_ranks_of_two_jobs(client, drarun, here, tmp_path):
    """They connect, read what the others have put, before and later, fence together and disconnect."""
    command = CLIENTS[1].command()  # of other releases of the client than `client`
    place = tmp_path / "run"
    place.mkdir(mode=0o700)
    other = drarun.start(*PLACES["two"], *command, "far", "right", "left", env={"XDG_RUNTIME_DIR": place})
    result = client("far", "left", "right", where=here, env={"XDG_RUNTIME_DIR": place}).ok()
    assert result.out.startswith(f"far ok on {PLACES[here][-1]} ranks")
    assert other.finish().ok().out.startswith("far ok on 4 ranks")
    assert not list(place.iterdir())


def test_spawn_that_cannot_be(client, where):
    """An error for the rank that asked, with the reason on our stderr, and the job goes on."""
    result = client("spawn-refused", where=where).ok()
    ranks = PLACES[where][-1]
    assert result.out.startswith(f"spawn-refused ok on {ranks} ranks")
    said = sorted(result.err.splitlines())
    assert len(said) == ranks and all(line.startswith(f"drarun: rank {rank}: spawn: ") for rank, line in enumerate(said))
    assert all("/nonexistent/program" in line for line in said)


@pytest.mark.parametrize("libraries,status", [("libmpich.so.12", 1), ("libmpi.so.12", 1), ("libmpi.so.40 libopen-pal.so.40", 0)])
def test_spawn_by_a_library_that_waits(drarun, tmp_path, libraries, status):
    """MPICH waits for its children in a fence, which would never end; Open MPI tells them of a port."""
    script = ("import mmap, subprocess, sys\nfiles = [open(path) for path in sys.argv[1].split()]\n"
              "maps = [mmap.mmap(each.fileno(), 0, access=mmap.ACCESS_READ) for each in files]\nsys.exit(subprocess.call(sys.argv[2:]))")
    for name in libraries.split():
        (tmp_path / name).write_text("stands in for one that is loaded")
    result = drarun(*PLACES["two"], sys.executable, "-c", script, libraries, *CLIENTS[1].command(), "spawn-apart", cwd=tmp_path, timeout=60)
    assert result.rc == status and ("without connecting to PMIx" in result.err) == (status == 1), result


@pytest.mark.parametrize("where", ["one", "two"])
def test_namespaces_of_ended_groups_are_released(drarun, where):
    """Of 200 groups there are those that run, and few that have ended."""
    result = drarun(*PLACES[where], *CLIENTS[1].command(), "spawn-often", timeout=120).ok()
    names, more = map(int, re.fullmatch(r"(\d+) namespaces, (-?\d+) KiB more\n", result.err).groups())
    assert names < 50
    assert more < 2048 or SANITIZE, "KiB: namespaces pile up"


def test_ranks_whose_neighbours_have_ended(drarun, tmp_path):
    """Those of worker 0 have used no PMIx, and its agent keeps no directory for them any more."""
    first = "echo $PMIX_SERVER_TMPDIR >new && mv new folder"
    last = 'until test -e folder; do sleep 0.02; done; while test -d $(cat folder); do sleep 0.02; done; exec "$@" last'
    drarun("--workers", 2, "-n", 1, "sh", "-c", first, ":", "-n", 1, "sh", "-c", last, "sh", *CLIENTS[1].command(), cwd=tmp_path, timeout=60).ok()
    folder = pathlib.Path((tmp_path / "folder").read_text().strip())
    assert folder.is_absolute() and not folder.exists()


@pytest.mark.matrix(2)
@pytest.mark.parametrize("case,status,said", [
    ("abort", 7, r"rank 1 on worker 0 \({host}\) aborted the job with status 7 after .*: enough"),
    ("kill", 137, r"rank {last} on worker \d \({host}\) was killed by signal 9 .*\n  a rank or a tool asked drarun to send it \(PMIx_Job_control\)"),
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


@pytest.mark.parametrize("where", ["one", "two"])
@pytest.mark.parametrize("before,left,status,said", [
    ("", "barrier", 1, "exited with status 0 .*without connecting to PMIx"),
    ("job >/dev/null", "abort", 7, r"aborted the job with status 7\b.*enough"),
])
def test_process_that_a_rank_left(drarun, where, before, left, status, said):
    """It speaks as the rank, whose end was reported before."""
    program = " ".join(map(str, CLIENTS[1].command()))
    script = (f"{f'{program} {before} || exit' if before else ':'}; test $RANK = 1 || exec sleep 1000; "
              f"(while kill -0 $$; do sleep 0.02; done; exec {program} {left}) >/dev/null 2>&1 &")
    result = drarun(*PLACES[where], "sh", "-c", script, timeout=60)
    assert result.rc == status, repr(result)
    assert re.search(rf"^drarun: rank 1 on worker 0 \(.*\) {said}", result.err, re.M), repr(result)


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
