# SPDX-License-Identifier: Apache-2.0
"""`drarun alloc job.yaml`: pods of two real nodes that are kept for one job after another."""
import json
import os
import re
import signal
from pathlib import Path

import pytest
import yaml

from support.build import BUILD
from support.cluster import programs
from support.cluster.machines import claimed, shown
from support.cluster_jobs import APART

pytestmark = pytest.mark.plain("the agent is linked dynamically there, and images have not its libraries")
MPI = f"localhost/{programs.NAME}:1"
ALLREDUCE = programs.program("openmpi4", "allreduce")
SPAWN = programs.program("openmpi5", "mpi_spawn")
READY_S = 60
GONE_S = 60
SHELL = ["sh", "-c", "echo $DRARUN_ALLOC; exec sleep 1000 >&- 2>&-"]
GPUS = 8  # of a node, so that the scheduler has no choice


@pytest.fixture(scope="session")
def cluster(mpi_cluster):
    return mpi_cluster


class Allocation:
    """One whose shell sleeps: run(...) is a drarun -n in it."""

    def __init__(self, jobs, *options, **spec):
        self.jobs = jobs
        self.job = jobs.drarun.start("alloc", jobs.file(**spec), *options, "--", *SHELL, under=jobs.cluster.under, env=jobs.env)
        self.folder = self.job.process.stdout.readline().strip()
        assert self.folder, self.job.finish()
        self.env = {"DRARUN_ALLOC": self.folder}

    def run(self, *words, **how):
        return self.jobs.verb(*words, env=self.env, **how)

    def start(self, *words):
        return self.jobs.drarun.start(*words, under=self.jobs.cluster.under, env={**self.jobs.env, **self.env})

    def uids(self):
        return uids(self.jobs)

    def end(self):
        self.job.signal(signal.SIGTERM)
        result = self.job.finish(GONE_S)
        assert result.rc == 143 and not Path(self.folder).exists(), result
        assert not remains(self.jobs), result
        assert self.jobs.cluster.api.get("batch/v1", "Job", "job", self.jobs.namespace.name) is None  # its name is free


def uids(jobs):
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
            if "drarun.dev/worker" in each["metadata"]["labels"]}


def remains(jobs):
    """Pods of workers, and claims."""
    claims = jobs.cluster.kubectl("get", "resourceclaims", "-n", jobs.namespace.name, "-o", "name").split()
    return [*uids(jobs), *claims]


def wait_gone(jobs):
    jobs.cluster.wait(lambda: f"still there: {remains(jobs)}", lambda: not remains(jobs), GONE_S)


def planned(jobs, spec):
    plan = json.loads(jobs.verb("plan", spec, "--live", "-o", "json").ok().out)["plan"]
    return {rank["rank"]: plan["env"] | worker["env"] | rank["env"] for worker in plan["workers"] for rank in worker["ranks"]}


def test_jobs_on_kept_pods(jobs, machines):
    """With the devices' environment and the spec's slots, whatever ends a job before; a pod that is lost is named."""
    wanted = {"workers": 2, "devices": claimed(GPUS, GPUS), "image": MPI, "slots": GPUS + 1}
    plan = planned(jobs, jobs.file(**wanted, command=["true"]))
    kept = Allocation(jobs, **wanted)
    pods = kept.uids()
    assert len(pods) == 2

    ranks = shown(kept.run("sh", "-c", 'env | sed "s/^/$RANK /"').ok().out)
    assert sorted(ranks) == list(range(2 * GPUS))  # a rank for each GPU, as in the job of the spec
    for rank, lines in ranks.items():
        has = dict(line.split("=", 1) for line in lines if "=" in line)
        for name, value in plan[rank].items():
            assert name == "MASTER_ADDR" or has.get(name) == value, (rank, name, value, has.get(name))
        assert "DRARUN_KEY" not in has and "DRARUN_ALLOC" not in has

    assert "NICs: 0 opened, 16 not known; 0 of 16 reach" in jobs.verb("status", "-v", "job").ok().out
    result = kept.run("-n", 4, ALLREDUCE).ok()
    assert "known from sysfs only" not in result.err  # that was said when they were allocated
    assert result.out.startswith("allreduce: 4 ranks, workers: 2, hosts: 2;") and "right on every rank" in result.out
    for options, where in (((), ("0", "0")), (("--slots", 2), ("0", "1"))):
        result = kept.run("-n", 2, *options, SPAWN, "once").ok()
        assert sorted(re.findall(r"^child (\d) of 2 on (\d) ", result.out, re.M)) == [("0", where[0]), ("1", where[1])], result
    result = kept.run("-n", 2, "sh", "-c", "exit 3")
    assert result.rc == 3 and "exited with status 3" in result.err
    assert kept.run("-n", 2, "nosuch").rc == 127
    ends(kept)
    assert kept.run("--label", "-n", 2, "cat", input="word\n").ok().out == "[0] word\n"
    assert kept.uids() == pods
    lost(jobs, kept, sorted(pods))
    kept.end()


def test_check_of_nics(jobs, machines):
    """drarun bench fabric on the pods of a job. Their NICs are files alone, so each is unknown: that is what it says, and all is taken away."""
    spec = jobs.file(workers=2, devices=claimed(GPUS, GPUS), command=["true"])
    result = jobs.verb("bench", "fabric", "--reach", "-o", "json", "--name", "nics", "--job", spec)
    found = json.loads(result.out)
    assert result.rc == 1 and "its NIC mlx5_0 is known from sysfs only" in result.err, result
    for part in found["opened"], found["reach"]:
        assert (part["matrix"], part["unknown"], part["failed"]) == (["?" * GPUS] * 2, 2 * GPUS, 0), found
    assert not remains(jobs) and jobs.cluster.api.get("batch/v1", "Job", "nics", jobs.namespace.name) is None
    plan = ["plan", spec, "--live", "-o", "svg", "--fabric", "-"]
    assert "NICs: 0 opened, 16 not known; 0 of 16 reach the next worker, 16 not known" in jobs.verb(*plan, input=result.out).ok().out


def started(kept, *options):
    job = kept.start(*options, "-n", 2, "sh", "-c", "echo up; exec sleep 1000")
    assert [job.process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    return job


def ends(kept):
    """Ctrl-C, and SIGKILL: the next job runs."""
    job = started(kept)
    busy = kept.run("-n", 2, "true")
    assert busy.rc == 75 and "another drarun runs in this allocation" in busy.err, busy
    job.signal(signal.SIGINT)
    assert job.finish().rc == 130
    assert sorted(kept.run("-n", 2, "sh", "-c", "echo $DRARUN_WORKER").ok().out.split()) == ["0", "1"]
    job = started(kept)
    job.signal(signal.SIGKILL)
    assert job.finish(clean=False).rc == -9
    assert kept.run("-n", 2, "true").rc == 0


def lost(jobs, kept, pods):
    job = started(kept)
    jobs.cluster.kubectl("delete", "pod", "-n", jobs.namespace.name, pods[1], "--wait=false")
    result = job.finish()
    assert result.rc == 70 and f"worker 1 ({pods[1]}" in result.err, result
    jobs.cluster.wait("it is not known", lambda: "lost" in (Path(kept.folder) / "kept.json").read_text(), READY_S)
    result = kept.run("-n", 2, "true")
    assert result.rc == 70 and f"worker 1 (pod {pods[1]} on " in result.err and "is lost" in result.err, result


def as_user(jobs):
    there = jobs.namespace.name
    jobs.install()
    role, = json.loads(jobs.verb("install", "-n", there, "--user-role", "--format", "json").ok().out)["items"]
    jobs.env["KUBECONFIG"] = str(jobs.namespace.rbac_user(role))


def test_through_the_api_server(jobs):
    """From where pods cannot be dialled, by somebody who has the user's role and no more: all that passes does so by the
    API server."""
    as_user(jobs)
    kept = Allocation(jobs, "--through", "api", workers=2, ranksPerWorker=2)
    doc = json.loads((Path(kept.folder) / "kept.json").read_text())
    assert all(each["dial"].startswith("127.0.0.1:") and each["dial"] != each["address"] for each in doc["workers"])
    assert sorted(kept.run("sh", "-c", "echo $DRARUN_RANK").ok().out.split()) == ["0", "1", "2", "3"]
    result = kept.run("-n", 2, "seq", 100000).ok()
    assert sorted(result.out.split(), key=int) == sorted([str(i) for i in range(1, 100001)] * 2, key=int)
    much = "".join(f"{i}\n" for i in range(100000))
    assert kept.run("-n", 2, "sh", "-c", "test $DRARUN_RANK = 1 || cat", input=much).ok().out == much
    assert kept.run("-n", 2, "sh", "-c", "exit 3").rc == 3
    kept.end()


def launcher(jobs):
    """The name of its pod that runs; None."""
    pods = jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
    return next((each["metadata"]["name"] for each in pods if each["metadata"]["labels"].get("job-name") == "job" and
                 each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]), None)


def test_a_killed_one_is_taken_away(jobs):
    """Also by a launcher that follows another, and that leaves what is kept as it is."""
    kept = Allocation(jobs, "--lost-after", 15, workers=1)
    first, pods = launcher(jobs), kept.uids()
    jobs.cluster.kubectl("delete", "pod", "-n", jobs.namespace.name, first, "--grace-period=1")
    jobs.cluster.wait("no other launcher", lambda: launcher(jobs) not in (None, first), READY_S)
    assert kept.run("-n", 2, "echo", "on").ok().out == "on\non\n"
    assert kept.uids() == pods and len(pods) == 1
    kept.job.signal(signal.SIGKILL)
    kept.job.process.wait()
    wait_gone(jobs)
    for pid, line in kept.job.processes().items():
        assert "sleep" in line  # the shell's own
        os.kill(pid, signal.SIGKILL)
    kept.job.finish(clean=False)
    assert "no heartbeat from the allocation's shell for 15 s" in jobs.cluster.kubectl("logs", "-n", jobs.namespace.name, "job/job")
    assert jobs.status()["result"] == "cancelled"


def test_the_example(jobs, machines, source, tmp_path):
    spec = yaml.safe_load((source / "examples/alloc/job.yaml").read_text())
    spec["spec"].update(image=MPI, devices=claimed(2, 2))
    path = tmp_path / "session.json"
    path.write_text(json.dumps(spec))
    result = jobs.verb("alloc", path, "--", source / "examples/alloc/session.sh", timeout=READY_S + GONE_S,
                       env={"PATH": f"{BUILD}/bin:/usr/bin:/bin", "PROGRAM": ALLREDUCE}).ok()
    lines = result.out.splitlines()
    assert sorted(lines[:2]) == ["worker 0 is session-w-0", "worker 1 is session-w-1"], result
    assert [line.split()[0] for line in sorted(lines[2:6])] == ["rank"] * 4 and "GPU-" in lines[2]
    assert lines[6].startswith("allreduce: 2 ranks, workers: 2,") and lines[8].startswith("allreduce: 4 ranks, workers: 2,")
    assert lines[10:] == ["the last one ended with 3: the allocation is still there"] and not remains(jobs)
    assert f"drarun: 2 workers of session are kept until {source}/examples/alloc/session.sh ends" in result.err, result


def test_bad_input(jobs, tmp_path):
    def refused(rc, words, *argv, **how):
        result = jobs.verb(*argv, **how)
        assert result.rc == rc and words in result.err, result
    refused(65, "expected an integer", "alloc", jobs.file(workers="two"), "--", "true")
    refused(65, "No such file", "alloc", tmp_path / "no.yaml", "--", "true")
    refused(65, "device class nosuch does not exist", "alloc", jobs.file(devices={"gpus": {"count": 1, "class": "nosuch"}}), "--", "true")
    refused(75, "(timeouts.allocation)", "alloc", jobs.file("large", **plain_pod({"cpu": "1000"}), timeouts={"allocation": "5s"}),
            "--", "true")
    refused(66, "no kubeconfig: looked at", "alloc", jobs.file(), "--", "true", env={"KUBECONFIG": str(tmp_path / "none")})
    refused(64, "is no allocation", "--alloc", tmp_path, "-n", 2, "true")
    (tmp_path / "kept.json").write_text("{}")
    refused(64, "is no allocation's file", "--alloc", tmp_path, "-n", 2, "true")
    assert not remains(jobs)


def plain_pod(requests=None):
    container = {"name": "c", "image": "localhost/busybox:1", "resources": {"requests": requests or {}}}
    return {"template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container],
                                  "topologySpreadConstraints": APART}}}


def test_a_lost_node(jobs):
    kept = Allocation(jobs, workers=2, **plain_pod())
    nodes = {each["node"] for each in json.loads((Path(kept.folder) / "kept.json").read_text())["workers"]}
    assert nodes == {each.name for each in jobs.cluster.nodes}
    job, node = started(kept), jobs.cluster.nodes[1]
    node.cut()
    try:
        result = job.finish()
        assert result.rc == 70 and f"on {node.name}) was lost with its node" in result.err, result
        again = kept.run("--start-timeout", 2, "-n", 2, "true")  # by its silence, or what the cluster knows of it
        assert again.rc == 70 and f"on {node.name})" in again.err, again
    finally:
        node.mend()
    kept.end()


def test_interrupted_while_it_waits(jobs):
    job = jobs.drarun.start("alloc", jobs.file(**plain_pod({"cpu": "1000"})), "--", "true", under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait("it does not wait", lambda: (jobs.status() or {}).get("waiting"), READY_S)
    job.signal(signal.SIGINT)
    assert job.finish(GONE_S).rc == 130
    wait_gone(jobs)
    assert jobs.cluster.api.get("batch/v1", "Job", "job", jobs.namespace.name) is None
