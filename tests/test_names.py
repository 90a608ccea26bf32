# SPDX-License-Identifier: Apache-2.0
"""Names of ports that the jobs of one user on one machine know of each other (docs/design/037-spawn.md), with every MPI library:
tests/programs/mpi_names.c. The files themselves: launcher/job/test/user_names_test.c."""
import os
import signal
import time

import pytest

from support.build import patience
from support.mpi import ALL, EACH_API, EVERY

# Not MPICH 4.0 on UCX, which opens no port.
MEETS = {"openmpi4": {}, "openmpi5": {}, "mpich5": {"MPIR_CVAR_CH4_NETMOD": "ofi"}, "impi": {"I_MPI_FABRICS": "shm:ofi"}}
meets = pytest.mark.parametrize("mpi", [mpi for mpi in EVERY if mpi.name in MEETS], ids=lambda mpi: mpi.name)
# Their processes need the servers of both jobs to connect them; the others' ports are addresses.
served = pytest.mark.parametrize("mpi", [mpi for mpi in EVERY if mpi.api == "pmix"], ids=lambda mpi: mpi.name)


@pytest.fixture
def names(drarun, tmp_path):
    """names(mpi, "look", "ocean"): the program's Result, names("..", start=True): its Job."""
    place = tmp_path / "run"
    place.mkdir(mode=0o700)

    def run(mpi, *words, options=("-n", 2), start=False, **env):
        call = drarun.start if start else drarun
        env = {**mpi.env, **MEETS.get(mpi.name, {}), "XDG_RUNTIME_DIR": place, **env}
        return call(*options, mpi.compile("mpi_names.c"), *words, env=env, cwd=tmp_path, **({} if start else {"timeout": 60}))

    run.place = place
    yield run
    assert not list(place.iterdir())


def await_true(job, condition):
    deadline = time.monotonic() + patience()
    while not condition():
        assert time.monotonic() < deadline and job.process.poll() is None, repr(job.finish())
        time.sleep(0.02)


def await_line(job, file, line):
    await_true(job, lambda: file.exists() and f"{line}\n" in file.read_text())


def await_waiting(names, job):
    """One more job is in the directory: what it has published for another one is there."""
    await_true(job, lambda: any(b" once\n" in file.read_bytes()[:64] for file in (names.place / "drarun").iterdir() if len(file.name) == 64))


def serving(names, mpi, folder, word, *words, options=("-n", 2)):
    job = names(mpi, word, *(words or ["ocean"]), options=(*options, "--output-dir", folder / "out"), start=True)
    await_line(job, folder / "out" / "rank.0.out", "published")
    return job


def sweep(names, mpi):
    """A job that publishes removes what killed ones have left."""
    names(mpi, "brief", "sea").ok()


def said(result):
    return result.ok().out.splitlines()[1:]


@pytest.mark.parametrize("mpi", EVERY, ids=lambda mpi: mpi.name)
def test_another_job_knows_a_name(names, mpi, tmp_path):
    """Once, from MPI_Publish_name to MPI_Unpublish_name."""
    job = serving(names, mpi, tmp_path, "publish")
    assert said(names(mpi, "look", "ocean")) == ["there: a-port"]
    assert said(names(mpi, "look", "ocean", options=("--workers", 2, "-n", 2))) == ["there: a-port"]
    assert said(names(mpi, "look", "sea")) == ["not there"]
    assert said(names(mpi, "refused", "ocean")) == ["refused"]
    (tmp_path / "stop").touch()
    job.finish().ok()
    assert said(names(mpi, "look", "ocean")) == ["not there"]


@meets
def test_jobs_meet(names, mpi, tmp_path):
    """MPI_Comm_accept and MPI_Comm_connect, by name."""
    job = serving(names, mpi, tmp_path, "serve")
    assert said(names(mpi, "call", "ocean", options=("-n", 3))) == ["met 2"]
    job.finish().ok()
    assert "met 3\n" in (tmp_path / "out" / "rank.0.out").read_text()


@served
def test_jobs_meet_one_after_the_other(names, mpi, tmp_path):
    """On one agent and on several."""
    job = serving(names, mpi, tmp_path, "serve", "ocean", 3, options=("--workers", 2, "-n", 3))
    for options in (("-n", 3), ("--workers", 2, "-n", 3), ("-n", 1)):
        assert said(names(mpi, "call", "ocean", options=options)) == ["met 3"]
    job.finish().ok()
    assert [line for line in (tmp_path / "out" / "rank.0.out").read_text().splitlines() if line[:3] == "met"] == ["met 3", "met 3", "met 1"]


def met(folder):
    return sorted(line for line in (folder / "rank.0.out").read_text().splitlines() if line[:3] == "met")


@served
def test_jobs_connect_at_the_same_time(names, mpi, tmp_path):
    """One after the other is accepted, and none gets the answer that is for another one."""
    server = serving(names, mpi, tmp_path, "queue", "ocean", 3)
    (tmp_path / "go").touch()
    clients = {ranks: names(mpi, "late", "ocean", options=("-n", ranks, "--output-dir", tmp_path / f"client{ranks}"), start=True)
               for ranks in (1, 2, 3)}
    for ranks, client in clients.items():
        await_line(client, tmp_path / f"client{ranks}" / "rank.0.out", "found")
    await_waiting(names, server)
    (tmp_path / "accept").touch()
    for ranks, client in clients.items():
        client.finish().ok()
        assert met(tmp_path / f"client{ranks}") == ["met 2"]
    server.finish().ok()
    assert met(tmp_path / "out") == ["met 1", "met 2", "met 3"]


@served
def test_ranks_connect_at_the_same_time(names, mpi, tmp_path):
    """Each by itself, of two jobs."""
    server = serving(names, mpi, tmp_path, "queue", "ocean", 4, options=("-n", 1))
    clients = [names(mpi, "each", "ocean", options=(*workers, "-n", 2), start=True) for workers in ((), ("--workers", 2))]
    await_waiting(names, server)
    (tmp_path / "accept").touch()
    for client in clients:
        assert said(client.finish()) == ["met 1"]
    server.finish().ok()
    assert met(tmp_path / "out") == ["met 1"] * 4


@pytest.mark.parametrize("where", [("-n", 4), ("--workers", 2, "-n", 4)], ids=["one", "two"])
@served
def test_ranks_of_one_job_meet(names, mpi, where):
    """At a port of one of them, all at the same time; a place for other jobs is not needed."""
    (names.place / "drarun").touch()
    assert said(names(mpi, "inside", "ocean", options=where)) == ["published", *["met 1"] * 3, "unpublished"]
    (names.place / "drarun").unlink()
    assert said(names(mpi, "inside", "ocean", options=where)) == ["published", *["met 1"] * 3, "unpublished"]


@pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.name == "openmpi4"], ids=lambda mpi: mpi.name)
def test_root_that_calls_again(names, mpi, tmp_path):
    """When nobody accepts, Open MPI tells only the root. The server takes back what the root has published, so that an accept meets
    its next call."""
    server = serving(names, mpi, tmp_path, "queue", "ocean", 2)
    client = names(mpi, "again", "ocean", options=("-n", 2, "--output-dir", tmp_path / "client"), start=True, OMPI_MCA_pmix_base_exchange_timeout=2)
    await_line(client, tmp_path / "client" / "rank.0.out", "again")
    (tmp_path / "accept").touch()
    result = client.finish().ok()
    assert "rank 0: no process has come to the port of its MPI_Comm_connect or MPI_Comm_accept within 2 s" in result.err, repr(result)
    assert said(names(mpi, "call", "ocean")) == ["met 2"]
    server.finish().ok()
    assert met(tmp_path / "client") == ["met 2"] and met(tmp_path / "out") == ["met 2"] * 2


@meets
def test_three_jobs_meet(names, mpi, tmp_path):
    """The second together with the first."""
    first = serving(names, mpi, tmp_path, "chain")
    second = names(mpi, "join", "ocean", options=("-n", 1), start=True)
    await_line(first, tmp_path / "out" / "rank.0.out", "two")
    names(mpi, "third", "ocean").ok()
    first.finish().ok()
    assert said(second.finish()) == ["three 3 + 2"]


@served
def test_port_that_is_known_in_another_way(names, mpi, tmp_path):
    """As from a file: no name is looked up."""
    job = serving(names, mpi, tmp_path, "serve")
    port = said(names(mpi, "look", "ocean"))[0].removeprefix("there: ")
    assert said(names(mpi, "pass", port)) == ["met 2"]
    job.finish().ok()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("first", [True, False], ids=["accepts", "connects"])
@served
def test_jobs_that_are_connected_end_together(names, mpi, tmp_path, first, signum):
    """However one of them ends: ranks of the other may wait for it."""
    server = serving(names, mpi, tmp_path, "hold")
    client = names(mpi, "hang", "ocean", options=("-n", 2, "--output-dir", tmp_path / "client"), start=True)
    await_line(server, tmp_path / "out" / "rank.0.out", "hangs")
    await_line(client, tmp_path / "client" / "rank.0.out", "hangs")
    ends, stays = (server, client) if first else (client, server)
    os.kill(ends.pid, signum)
    result = stays.finish()
    assert result.rc == 70 and "and ranks of this job are connected with its ranks (MPI_Comm_connect)" in result.err, repr(result)
    ends.finish(clean=False)
    sweep(names, mpi)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
@served
def test_job_that_ends_before_it_accepts(names, mpi, tmp_path, signum):
    """Open MPI's root gets an error, and its other ranks would wait for it forever."""
    server = serving(names, mpi, tmp_path, "open")
    client = names(mpi, "call", "ocean", options=("-n", 2, "--output-dir", tmp_path / "client"), start=True)
    await_waiting(names, client)
    os.kill(server.pid, signum)
    result = client.finish()
    assert result.rc == 1 and "cannot connect to the port of another job, which has ended" in result.err, repr(result)
    server.finish(clean=False)
    sweep(names, mpi)


@served
def test_job_that_has_ended_before_one_connects(names, mpi, tmp_path):
    """Nothing of it is left."""
    server = serving(names, mpi, tmp_path, "open")
    client = names(mpi, "late", "ocean", options=("-n", 2, "--output-dir", tmp_path / "client"), start=True)
    await_line(client, tmp_path / "client" / "rank.0.out", "found")
    os.kill(server.pid, signal.SIGTERM)
    server.finish(clean=False)
    (tmp_path / "go").touch()
    result = client.finish()
    assert result.rc == 1 and "cannot connect to the port of another job, which has ended" in result.err, repr(result)


@served
def test_job_that_has_disconnected(names, mpi, tmp_path):
    """Its end is its own."""
    server = serving(names, mpi, tmp_path, "serve", "ocean", 2)
    client = names(mpi, "fail", "ocean", options=("-n", 2))
    assert client.rc == 3, repr(client)
    assert said(names(mpi, "call", "ocean")) == ["met 2"]
    server.finish().ok()


@pytest.mark.parametrize("mpi", EACH_API, ids=lambda mpi: mpi.name)
def test_names_go_with_their_job(names, mpi, tmp_path):
    """However it ends."""
    job = serving(names, mpi, tmp_path, "publish")
    assert len(list((names.place / "drarun").iterdir())) == (3 if mpi.api == "pmix" else 2)  # with what finds a job by its namespaces
    os.kill(job.pid, signal.SIGKILL)
    job.process.wait()
    assert said(names(mpi, "look", "ocean")) == ["not there"]
    (tmp_path / "stop").touch()  # as for the next, which takes the name
    assert "published" in said(names(mpi, "publish", "ocean"))
    job.finish(clean=False)


@pytest.mark.parametrize("mpi", EACH_API, ids=lambda mpi: mpi.name)
def test_directory_that_others_may_use(names, mpi, tmp_path):
    """Names stay within the job, and the user hears why."""
    (names.place / "drarun").mkdir(mode=0o755)
    (tmp_path / "stop").touch()
    result = names(mpi, "publish", "ocean")
    assert said(result) == ["published"]
    assert f"drarun: published names are not shared with other jobs: {names.place}/drarun: " in result.err
    (names.place / "drarun").rmdir()
