# SPDX-License-Identifier: Apache-2.0
"""--launch mpirun: the user's own mpirun, whose daemons are started through the agents
(docs/design/020-mpirun.md)."""
import json
import os
import shutil
import signal

import pytest

from support.build import patience

NAMES = ["openmpi4", "openmpi5", "mpich4", "mpich5", "impi"]


def starter(mpi):
    """That library's own mpirun."""
    if mpi.debian:
        found = shutil.which({"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}[mpi.debian])
        if not found:
            pytest.skip(f"no mpirun of {mpi.debian}; run scripts/setup --test")
        return found
    return str(mpi.home() / "bin" / ("mpiexec.hydra" if mpi.name == "impi" else "mpiexec"))


@pytest.mark.parametrize("name", NAMES)
def test_own_mpirun(drarun, nodes, agents, mpi_named, name):
    mpi = mpi_named(name)
    program = mpi.compile("mpi_check.c")
    machines = nodes(3)
    some = agents(machines)
    env = {**mpi.env, "I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"} if name == "impi" else mpi.env
    result = drarun(*some.options, "--ranks-per-worker", 2, "--launch", "mpirun", "--",
                    "env", *(f"{key}={value}" for key, value in env.items()), starter(mpi), "-n", 6, "sh", "-c",
                    f"RANK=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} WORLD_SIZE=6 LOCAL_WORLD_SIZE=2 {program} all",
                    under=machines.head.enter, timeout=120)
    assert result.rc == 0, result
    assert "ok: 6 ranks, 3 nodes\n" in result.out and mpi.version in result.out
    assert all(agent.rc == 0 for agent in some.finish())


LOCAL = ("--workers", 2, "--ranks-per-worker", 2, "--launch", "mpirun")


def test_remote_start_is_like_ssh(drarun):
    script = ('rsh=$(dirname $DRARUN_REMOTE)/drarun-rsh; '
              '$rsh -x -q -o BatchMode=yes -l me drarun-w-1 echo "\\"a  b\\"" \'$((1+2))\'; '
              '$rsh me@drarun-w-1 "echo to stderr >&2; exit 7"; echo status $?; '
              '$rsh $(hostname) "exit 9"; echo status $?; '
              '$rsh drarun-w-1 kill -9 \'$$\'; echo status $?; cat $DRARUN_HOSTFILE')
    result = drarun(*LOCAL, "sh", "-c", script).ok()
    lines = result.out.splitlines()
    assert lines[:4] == ["a  b 3", "status 7", "status 9", "status 137"]
    assert lines[5] == "drarun-w-1 slots=2" and lines[4].endswith(" slots=2")
    assert result.err == "to stderr\n"


@pytest.mark.parametrize("words,message", [
    ("nowhere true", "no worker of this job is called nowhere"),
    ("drarun-w-1", "expected a host and a command"),
    ("-x -q", "expected a host and a command"),
])
def test_remote_start_refused(drarun, words, message):
    result = drarun(*LOCAL, "sh", "-c",
                    f"$(dirname $DRARUN_REMOTE)/drarun-rsh {words}; echo status $?").ok()
    assert result.out == "status 255\n" and message in result.err


def test_much_output_is_passed_on_in_bounds(drarun):
    result = drarun(*LOCAL, "sh", "-c", "$(dirname $DRARUN_REMOTE)/drarun-rsh drarun-w-1 "
                    "'seq 200000' | (sleep 0.5; cat) | md5sum").ok()
    same = drarun("-n", 1, "sh", "-c", "seq 200000 | md5sum").ok()
    assert result.out == same.out


def test_no_descriptor_is_inherited(drarun):
    result = drarun(*LOCAL, "sh", "-c", "$(dirname $DRARUN_REMOTE)/drarun-rsh drarun-w-1 'ls /proc/$$/fd; true'").ok()
    assert result.out.split() == ["0", "1", "2"]


def test_descriptors_for_all_workers(drarun):
    """Its limit of open files grows with the workers, for each of which mpirun has a connection over worker 0's agent."""
    def limit(workers):
        script = "awk '/Max open files/ {print $4}' /proc/$PPID/limits"
        return int(drarun("--workers", workers, "--radix", 2, "--launch", "mpirun", "sh", "-c", script,
                          under=["sh", "-c", 'ulimit -Sn 64; exec "$@"', "sh"]).ok().out)
    assert limit(6) - limit(3) == 3


def test_no_rank_variables(drarun):
    """What mpirun starts are the ranks: ours must say nothing of them."""
    result = drarun(*LOCAL, "env").ok()
    names = {line.split("=", 1)[0] for line in result.out.splitlines()}
    assert not names & {"RANK", "WORLD_SIZE", "LOCAL_RANK", "DRARUN_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                        "PMIX_RANK", "OMPI_MCA_schizo"}
    assert {"DRARUN_JOB", "MASTER_ADDR", "OMPI_MCA_plm_rsh_agent", "HYDRA_LAUNCHER_EXEC"} <= names


def test_status_and_leftovers(drarun):
    """mpirun's status is the job's, and what its daemons left is ended."""
    job = drarun.start(*LOCAL, "sh", "-c", "$(dirname $DRARUN_REMOTE)/drarun-rsh drarun-w-1 "
                       "'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo up'; exit 5")
    result = job.finish(30)
    assert result.rc == 5 and result.out == "up\n"


def test_end_reaches_the_other_workers(drarun):
    job = drarun.start(*LOCAL, "sh", "-c", "$(dirname $DRARUN_REMOTE)/drarun-rsh drarun-w-1 "
                       "'echo up; exec sleep 1000'")
    assert job.process.stdout.readline() == "up\n"
    job.signal(15)
    assert job.finish(20).rc == 143


@pytest.mark.parametrize("signo,status", [(signal.SIGUSR1, 0), (signal.SIGINT, 130)])
def test_signals_are_for_mpirun(drarun, tmp_path, signo, status):
    """It ends its processes itself, or has them write a checkpoint: the signal must not end the servers that run them."""
    go = tmp_path / "go"
    job = drarun.start("--kill-after", patience(), *LOCAL, "sh", "-c",
                       f"trap 'touch {go}' {signo.name[3:]}; setsid $(dirname $DRARUN_REMOTE)/drarun-rsh drarun-w-1 "
                       f"'echo up; while [ ! -e {go} ]; do sleep 0.02; done; sleep 0.2; echo over' & "
                       "while kill -0 $! 2>/dev/null; do wait $!; done")
    assert job.process.stdout.readline() == "up\n"
    job.signal(signo)
    result = job.finish(patience())
    assert result.rc == status and result.out == "over\n", result


def test_a_cancelled_client_ends_its_program(drarun, tmp_path):
    result = drarun(*LOCAL, "sh", "-c",
                    "rsh=$(dirname $DRARUN_REMOTE)/drarun-rsh; $rsh drarun-w-1 'echo $$; exec sleep 1000' >out & "
                    "while ! [ -s out ]; do sleep 0.02; done; kill $!; "
                    "for i in $(seq 1200); do kill -0 $(cat out) 2>/dev/null || { echo gone; break; }; "
                    "sleep 0.05; done", cwd=tmp_path).ok()
    assert result.out == "gone\n"


def test_workers_of_one_host_share_no_segment(drarun, mpi_named, source):
    """Open MPI 4 names its segments in /dev/shm by host and local rank. (Open MPI 5 cannot run two
    daemons on one host.)"""
    mpi = mpi_named("openmpi4")
    program = mpi.compile(source / "examples" / "allreduce" / "allreduce.c")
    result = drarun("--workers", 2, "--ranks-per-worker", 4, "--launch", "mpirun", starter(mpi), "-n", 8,
                    program, 1000).ok()
    assert "8 ranks" in result.out and "every element right on every rank" in result.out


def test_several_runs_and_one_worker(drarun, mpi_named):
    """A script may run mpirun as often as it likes."""
    run = starter(mpi_named("openmpi4"))
    result = drarun(*LOCAL, "sh", "-c", f"for i in 1 2; do {run} hostname || exit 1; done").ok()
    assert len(result.out.splitlines()) == 8
    alone = drarun("--launch", "mpirun", "--ranks-per-worker", 2, run, "hostname").ok()
    assert len(alone.out.splitlines()) == 2


CPUS = len(os.sched_getaffinity(0))


@pytest.mark.parametrize("options,slots", [
    ((), CPUS), (("--workers", 2), 1), (("--ranks-per-worker", 3), 3), (("--ranks-per-worker", 3, "--slots", 5), 5)])
def test_slots(drarun, options, slots):
    """What mpirun may start on a worker: without an option as many as it has CPUs, and of several workers one on each."""
    hosts = drarun(*options, "--launch", "mpirun", "sh", "-c", "cat $DRARUN_HOSTFILE").ok().out.splitlines()
    assert hosts and {host.split(" slots=")[1] for host in hosts} == {str(slots)}, hosts


@pytest.mark.parametrize("spec,slots", [
    ({}, 1), ({"ranksPerWorker": 3}, 3), ({"devices": {"gpus": {"count": 4}}}, 1), ({"ranksPerWorker": 3, "slots": 5}, 5),
    ({"workers": 1, "devices": {"gpus": {"count": CPUS + 1}}}, CPUS)])
def test_slots_of_a_job(drarun, tmp_path, spec, slots):
    job = {"workers": 2, "launch": "mpirun", "image": "i", "command": ["sh", "-c", "cat $DRARUN_HOSTFILE"], **spec}
    (tmp_path / "job.json").write_text(json.dumps({"spec": job}))
    hosts = drarun("run", "--local", tmp_path / "job.json").ok().out.splitlines()
    assert [host.split(" slots=")[1] for host in hosts] == [str(slots)] * job["workers"], hosts


def test_refused(drarun):
    result = drarun(*LOCAL, "-n", 4, "mpirun", "true")
    assert result.rc == 64 and "give the number of processes to your mpirun (-n)" in result.err
