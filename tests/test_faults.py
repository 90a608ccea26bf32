# SPDX-License-Identifier: Apache-2.0
"""Somebody kills any one process at any moment: the job ends soon, with a status that says so, and
nothing is left (which every finished job is looked at for)."""
import os
import random
import signal
import tempfile
import time

import pytest

from support.build import SLOW_BUILD, patience

ROUNDS = int(os.environ.get("DRARUN_KILL_ROUNDS", "40"))  # scripts/soak does more
PROGRAM = "sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait"


def role(line):
    """What a command line of the job is: launcher, agent or rank."""
    word = os.path.basename(line.split(" ")[0])
    return {"drarun": "launcher", "drarun-remote": "launcher", "drarun-worker": "agent"}.get(word, "rank")


@pytest.mark.parametrize("where", [("-n", 3), ("--workers", 2, "-n", 4)])
def test_any_process_is_killed_at_any_moment(drarun, where):
    choose = random.Random(20261121)
    seen = set()
    for n in range(ROUNDS // 2):
        job = drarun.start("--kill-after", "0.5", *where, "sh", "-c", PROGRAM)
        if n % 4 == 3:  # all is there, on the slowest machine too
            assert job.process.stdout.readline() == "ready\n"
        time.sleep(choose.random() * 0.12 * SLOW_BUILD)
        there = job.processes() or {job.pid: "drarun"}  # not executed yet
        pid = choose.choice(sorted(there))
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        victim = role(there[pid])
        seen.add(victim)
        if victim == "rank":  # a grandchild's death is nobody's business: end the job ourselves
            time.sleep(0.3)
            if job.process.poll() is None:
                job.signal(signal.SIGTERM)
        result = job.finish(timeout=20)
        # a process that is just being started still has its parent's name, and a slow launcher no handlers yet
        allowed = {"launcher": {-9, 70}, "agent": {70, 137}, "rank": {137, 143, -signal.SIGTERM}}[victim]
        assert result.rc in allowed, (victim, result)
    assert len(seen) > 1, "the moments were chosen badly"


def test_ranks_die_while_they_connect(drarun, build):
    """All ranks are killed in their handshake with the PMIx server, which nobody else would clean up
    after: the launcher is gone."""
    client = build / "tests" / "programs" / "pmix_client_inside"
    choose = random.Random(20261122)
    for _ in range(ROUNDS // min(SLOW_BUILD, 4)):
        job = drarun.start("-n", 32, client, "connect")
        time.sleep(0.02 + choose.random() * 0.08)
        job.signal(signal.SIGKILL)
        assert job.finish(timeout=20).rc in (-9, 0)


def test_descendants_of_a_killed_rank(drarun):
    """Children of a rank that was killed, in sessions of their own, holding its pipes."""
    job = drarun.start("-n", 2, "sh", "-c", PROGRAM)
    assert job.process.stdout.readline() == "ready\n"
    assert job.process.stdout.readline() == "ready\n"
    ranks = [pid for pid, line in job.processes().items() if line.startswith("sh -c")]
    os.kill(ranks[0], signal.SIGKILL)
    result = job.finish()
    assert result.rc == 137 and "signal 9" in result.err


def test_singletons_are_explained(drarun, mpi_named):
    """Ranks of an MPI program that each run alone; Open MPI 4 does so when schizo is not ours."""
    program = mpi_named("openmpi4").compile("mpi_alone.c")
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="one.") as folder:
        # three jobs of one rank would take away one directory, each at its end, which another one begins to use
        result = drarun("-n", 3, "-x", "OMPI_MCA_schizo=orte", "sh", "-c", 'mkdir "$0/$RANK" && TMPDIR=$0/$RANK exec "$1"', folder, program, timeout=60)
    assert result.out == "alone: 1 of 1\n" * 3, result
    assert "each seems to have run as a job of one rank" in result.err, repr(result)


def test_a_rank_killed_by_sigpipe_when_nobody_reads(drarun):
    job = drarun.start("-n", 1, "sh", "-c", "echo ready; while echo more; do :; done")
    assert job.process.stdout.readline() == "ready\n"
    job.process.stdout.close()
    job.process.wait(timeout=patience())
    assert job.process.returncode != 0
