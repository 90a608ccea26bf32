# SPDX-License-Identifier: Apache-2.0
"""Jobs whose workers are of several roles, on two real nodes: one gang, one MPI_COMM_WORLD, one end."""
import json

import pytest

from support.cluster.machines import GPU, claimed, shown
from support.cluster_jobs import Running

MODES = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
SHOW = "echo $DRARUN_ROLE $RANK/$WORLD_SIZE worker $DRARUN_WORKER local $LOCAL_RANK/$LOCAL_WORLD_SIZE"
UP = "echo up; trap 'echo $DRARUN_ROLE told; exit 0' TERM; while :; do sleep 0.1; done"


def role(name, script=SHOW, **keys):
    return {"name": name, "command": ["sh", "-c", script], **keys}


@pytest.mark.gate
@MODES
def test_each_role_runs_on_its_own_workers(jobs, mode):
    hosts = SHOW + "; echo $(hostname -i | cut -d' ' -f1) is in $DRARUN_HOSTS_TRAIN"
    result = jobs.run(*mode, roles=[role("head", env={"A": "b"}), role("train", hosts, workers=2, ranksPerWorker=2)]).ok()
    lines = result.out.splitlines()
    assert sorted(line for line in lines if "worker" in line) == [
        "head 0/5 worker 0 local 0/1", "train 1/5 worker 1 local 0/2", "train 2/5 worker 1 local 1/2",
        "train 3/5 worker 2 local 0/2", "train 4/5 worker 2 local 1/2"]
    told = [line.split(" is in ") for line in lines if " is in " in line]
    assert len(told) == 4 and len({hosts for _, hosts in told}) == 1
    assert {own for own, _ in told} == set(told[0][1].split(",")), told
    assert mode or jobs.status()["roles"] == [  # of a launcher that is gone nothing is kept
        {"name": "head", "first": 0, "workers": 1, "ranks": 1}, {"name": "train", "first": 1, "workers": 2, "ranks": 4}]


@MODES
def test_worlds_of_their_own(jobs, mode):
    """Each counts its ranks from 0, and its rank 0 listens in its own first pod."""
    show = SHOW + "; echo $(hostname -i | cut -d' ' -f1) $RANK: $DRARUN_ROLE listens at $MASTER_ADDR:$MASTER_PORT"
    result = jobs.run(*mode, roles=[role("head", show), role("train", show, workers=2, ranksPerWorker=2)], world="own").ok()
    lines = result.out.splitlines()
    assert sorted(line for line in lines if "worker" in line) == [
        "head 0/1 worker 0 local 0/1", "train 0/4 worker 1 local 0/2", "train 1/4 worker 1 local 1/2",
        "train 2/4 worker 2 local 0/2", "train 3/4 worker 2 local 1/2"]
    listens = [line.split() for line in lines if "listens" in line]
    first = {words[2]: words[0] for words in listens if words[1] == "0:"}
    assert len(listens) == 5 and len(set(first.values())) == 2, lines
    assert all(words[5] == f"{first[words[2]]}:29500" for words in listens), lines


def test_status_and_exec_know_the_roles(jobs):
    job = Running(jobs, roles=[role("head", UP, ranksPerWorker=1), role("train", UP, workers=2, ranksPerWorker=2)],
                  success="head").wait_lines(5)
    job.wait_running()
    assert "roles: head (worker 0, 1 rank), train (workers 1-2, 4 ranks)\n" in jobs.verb("status", "job").ok().out
    for rank, name in [(0, "job-w-0"), (1, "job-w-1"), (2, "job-w-1"), (3, "job-w-2"), (4, "job-w-2")]:
        assert jobs.verb("exec", "job", rank, "--", "sh", "-c", "echo $(hostname) $RANK").ok().out == f"{name} {rank}\n"
    jobs.verb("cancel", "job").ok()
    assert job.ended().rc == 130


@MODES
def test_success_of_a_role_is_the_jobs(jobs, mode):
    result = jobs.run(*mode, roles=[role("serve", UP, workers=2), role("work", "sleep 1; echo done")], success="work").ok()
    lines = result.out.splitlines()
    assert lines.count("done") == 1 and set(lines) <= {"done", "up", "serve told"}, lines
    status = None if mode else jobs.status()
    assert mode or (status["phase"], status["result"], status["exit"]) == ("ended", "succeeded", 0), status


@MODES
def test_failure_of_a_role_is_the_jobs(jobs, mode):
    result = jobs.run(*mode, roles=[role("serve", UP), role("work", "sleep 1; exit 7")], success="work")
    assert result.rc == 7 and "rank 1 of program 2 on worker 1" in result.err and "exited with status 7" in result.err, result


def test_all_roles_start_again(jobs):
    script = "echo $DRARUN_ROLE in attempt $DRARUN_ATTEMPT; [ $DRARUN_ATTEMPT = 2 ] || "
    result = jobs.run(roles=[role("a", script + "exec sleep 1000"), role("b", script + "{ sleep 1; exit 3; }", workers=2)], restarts=1).ok()
    lines = result.out.splitlines()
    assert "b in attempt 1" in lines and sorted(line for line in lines if line.endswith("2")) == [f"{name} in attempt 2" for name in "abb"], lines
    assert jobs.status()["restarts"] == 1


def test_lost_worker_of_one_role_ends_all(jobs):
    job = Running(jobs, "--here", roles=[role("a", UP), role("b", UP)]).wait_lines(2)
    jobs.cluster.api.delete("v1", "Pod", "job-w-1", jobs.namespace.name)
    result = job.ended()
    assert result.rc == 70 and "worker 1 (job-w-1 on n" in result.err and "was deleted" in result.err, result


def test_only_one_role_claims(machines, jobs):
    """GPUs and NICs for the trainers, on a node each; the head has none, and no variables of theirs."""
    show = 'env | sed "s/^/$RANK /"'
    result = jobs.run("--here", roles=[role("head", show), role("train", show, workers=2, ranksPerWorker=1, devices=claimed(4, 4))]).ok()
    ranks = {rank: dict(line.split("=", 1) for line in lines if "=" in line) for rank, lines in shown(result.out).items()}
    assert sorted(ranks) == [0, 1, 2]
    assert "NCCL_IB_HCA" not in ranks[0] and ranks[1]["NCCL_IB_HCA"].count("mlx5_") == 4, ranks[0]
    assert ranks[1]["DRARUN_NODE"] != ranks[2]["DRARUN_NODE"]
    assert [ranks[r]["DRARUN_ROLE"] for r in range(3)] == ["head", "train", "train"]


def test_nics_of_all_roles_are_checked(machines, jobs):
    """drarun bench fabric: rails of workers of two roles make one ring, and one that no other worker has makes none. The head, which asks for
    no devices, is not made. The NICs are files alone, so each is unknown."""
    spec = jobs.file(placement={"spread": "none"}, roles=[role("head"), role("train", devices=claimed(4, 4)), role("serve", workers=2, devices=claimed(2, 2))])
    words = ["bench", "fabric", "--reach", "-o", "json", "--job", spec]
    result = jobs.verb(*words, "--name", "nics")
    found = json.loads(result.out)
    assert result.rc == 1 and "role head asks for no devices and takes no part" in result.err, result
    assert (found["opened"]["matrix"], found["opened"]["unknown"]) == (["????", "??--", "??--"], 8), found
    assert (found["reach"]["matrix"], found["reach"]["pairs"], found["reach"]["unknown"]) == (["??--", "??--", "??--"], 6, 6), found
    assert {(each["from"]["worker"], each["to"]["worker"]) for each in found["reach"]["broken"]} == {(0, 1), (1, 2), (2, 0)}, found
    assert jobs.cluster.api.get("batch/v1", "Job", "nics", jobs.namespace.name) is None
    result = jobs.verb(*words, "--name", "serve", "--role", "serve")
    found = json.loads(result.out)
    assert (found["opened"]["matrix"], found["reach"]["pairs"]) == (["??", "??"], 4) and "takes no part" not in result.err, result


def test_gang_is_over_all_roles(machines, jobs):
    """Where one role finds no room, the other's devices are given back, and no rank starts."""
    many = {"gpus": {"count": 8, "class": GPU}}
    result = jobs.run("--here", roles=[role("small", devices={"gpus": {"count": 1, "class": GPU}}), role("large", workers=4, devices=many)],
                      timeouts={"allocation": "10s"})
    assert result.rc == 75 and result.out == "", result
    assert f"no device of class {GPU} left: those for request gpu are taken by earlier workers on 2 nodes" in result.err, result
