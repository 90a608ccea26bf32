# SPDX-License-Identifier: Apache-2.0
"""Names of ports that the jobs of one user on one machine know of each other (docs/design/037-spawn.md), with every MPI library:
tests/programs/mpi_names.c. The files themselves: launcher/job/test/user_names_test.c."""
import os
import signal
import time

import pytest

from support.build import patience
from support.mpi import ALL

# Its own names beside Open MPI's, whose processes cannot meet across jobs, and MPICH 4.0's on UCX, which opens no port.
MEETS = {"mpich5": {"MPIR_CVAR_CH4_NETMOD": "ofi"}, "impi": {"I_MPI_FABRICS": "shm:ofi"}}


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


def await_published(job, file):
    deadline = time.monotonic() + patience()
    while not file.exists() or "published\n" not in file.read_text():
        assert time.monotonic() < deadline and job.process.poll() is None, repr(job.finish())
        time.sleep(0.02)


def serving(names, mpi, folder, word, name="ocean"):
    job = names(mpi, word, name, options=("-n", 2, "--output-dir", folder / "out"), start=True)
    await_published(job, folder / "out" / "rank.0.out")
    return job


def said(result):
    return result.ok().out.splitlines()[1:]


@pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.name)
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


@pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.name in MEETS], ids=lambda mpi: mpi.name)
def test_jobs_meet(names, mpi, tmp_path):
    """MPI_Comm_accept and MPI_Comm_connect, by name."""
    job = serving(names, mpi, tmp_path, "serve")
    assert said(names(mpi, "call", "ocean", options=("-n", 3))) == ["met 2"]
    job.finish().ok()
    assert "met 3\n" in (tmp_path / "out" / "rank.0.out").read_text()


@pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.api == "pmix"], ids=lambda mpi: mpi.name)
def test_jobs_that_cannot_meet(names, mpi, tmp_path):
    """Open MPI's root would get an error, and its other ranks wait for it forever."""
    job = serving(names, mpi, tmp_path, "serve")
    result = names(mpi, "call", "ocean")
    assert result.rc == 1, repr(result)
    assert "aborted the job with status 1" in result.err and "cannot connect to a port of another job here" in result.err, repr(result)
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 143


@pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.name in ("openmpi5", "mpich5")], ids=lambda mpi: mpi.name)
def test_names_go_with_their_job(names, mpi, tmp_path):
    """However it ends."""
    job = serving(names, mpi, tmp_path, "publish")
    assert len(list((names.place / "drarun").iterdir())) == 2
    os.kill(job.pid, signal.SIGKILL)
    job.process.wait()
    assert said(names(mpi, "look", "ocean")) == ["not there"]
    (tmp_path / "stop").touch()  # as for the next, which takes the name
    assert "published" in said(names(mpi, "publish", "ocean"))
    job.finish(clean=False)


@pytest.mark.parametrize("mpi", [mpi for mpi in ALL if mpi.name in ("openmpi5", "mpich5")], ids=lambda mpi: mpi.name)
def test_directory_that_others_may_use(names, mpi, tmp_path):
    """Names stay within the job, and the user hears why."""
    (names.place / "drarun").mkdir(mode=0o755)
    (tmp_path / "stop").touch()
    result = names(mpi, "publish", "ocean")
    assert said(result) == ["published"]
    assert f"drarun: published names are not shared with other jobs: {names.place}/drarun: " in result.err
    (names.place / "drarun").rmdir()
