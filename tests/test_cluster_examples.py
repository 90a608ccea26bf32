# SPDX-License-Identifier: Apache-2.0
"""The specs of examples/jobs on two real nodes that show a captured a4-highgpu-8g: what they claim, how it is paired and
what the ranks get is theirs; images that cannot be had here and what is in them give place to a shell."""
import contextlib
import copy
import json
import re

import pytest
import yaml

from support.cluster.devices import device_class
from support.cluster.machines import GPU, Machines, SEEDS, TOLD, shown, told, vendor_folders
from support.cluster_jobs import Running

MACHINE = "a4-highgpu-8g"
SHOW = ["sh", "-c", 'env | sed "s/^/$RANK /"; for each in /dev/nvidia[0-9]*; do echo "$RANK $each"; done; '
                    'sed -n "s/^ *\\([a-z0-9]*\\):.*/$RANK if \\1/p" /proc/net/dev; ' +
        TOLD.format('echo "$RANK $(head -n 1 $each)"')]
GPU_PLUGIN = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def machines(cluster):
    """Our plugin with the classes and under the name that the examples are written for. GPUs also as the extended
    resource of the device plugin, which the class stands for (KEP-5004)."""
    classes = [device_class("gpu.nvidia.com", GPU), device_class("dranet", "dra.net"),
               device_class("mrdma.google.com", "dra.net")]
    classes[0]["spec"]["extendedResourceName"] = GPU_PLUGIN
    classes[2]["spec"]["selectors"].append({"cel": {"expression": 'device.attributes["dra.net"].rdma == true'}})
    with cluster.own_classes(*classes), tainted(cluster), vendor_folders(cluster):
        made = Machines(cluster, MACHINE, **SEEDS)
        yield made
        made.stop()


@contextlib.contextmanager
def tainted(cluster):
    """The nodes as GKE and OKE keep theirs with GPUs; claims get no toleration of the API server, as extended resources do."""
    nodes = [node.name for node in cluster.nodes]
    cluster.kubectl("taint", "node", *nodes, f"{GPU_PLUGIN}=present:NoSchedule")
    yield
    cluster.kubectl("taint", "node", *nodes, f"{GPU_PLUGIN}-")


def spec_of(source, name, workers):
    """An example's `spec`, which this machine can run."""
    spec = copy.deepcopy(yaml.safe_load((source / "examples/jobs" / f"{name}.yaml").read_text())["spec"])
    spec["workers"] = workers
    spec.pop("ttlSecondsAfterFinished", None)
    for key in ("template", "volumes", "resources"):
        spec.pop(key, None)
    return {**spec, "image": "localhost/busybox:1", "command": SHOW}


class Rank:
    def __init__(self, lines):
        self.env = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("{"))
        self.gpus = [line for line in lines if line.startswith("/dev/nvidia") and "*" not in line]
        self.nics = [device["name"] for line in lines if line.startswith("{") for device in told(line)
                     if device["driver"] == "dra.net"]
        self.interfaces = {line[3:] for line in lines if line.startswith("if ")}


# example: workers here, ranks of one, GPUs and NICs of one
ROWS = {"two-by-two": (2, 2, 2, 2), "half-nodes-aligned": (4, 4, 4, 4), "whole-nodes": (2, 8, 8, 8),
        "renamed-interface": (2, 1, 1, 1), "ray-all-nic": (2, 1, 8, 8), "accept-a4": (2, 8, 8, 8)}


@pytest.mark.parametrize("name", ROWS)
def test_example(machines, jobs, source, name):
    workers, ranks_each, gpus, nics = ROWS[name]
    spec = spec_of(source, name, workers)
    result = jobs.run("--here", name=name, **spec).ok()
    ranks = {number: Rank(lines) for number, lines in shown(result.out).items()}
    assert sorted(ranks) == list(range(workers * ranks_each)), result
    for rank in ranks.values():
        assert len(rank.gpus) == gpus and len(rank.nics) == nics, (rank.gpus, rank.env)
        assert rank.env["NCCL_NET"] == "gIB"
    if name == "renamed-interface":
        assert all("dranet0" in rank.interfaces for rank in ranks.values())


@pytest.mark.parametrize("launch", ["pmix", "env"])
def test_torchrun_is_started_once_on_each_worker(machines, jobs, source, launch):
    """With all its GPUs and no others that the pod sees, where the spec says nothing of ranks."""
    line = 'torchrun() { echo "node $PET_NODE_RANK of $PET_NNODES has $CUDA_VISIBLE_DEVICES"; }; torchrun --nproc-per-node=2 train.py'
    result = jobs.run("--here", **{**spec_of(source, "two-by-two", 2), "launch": launch, "command": ["sh", "-c", line]}).ok()
    assert re.fullmatch("".join(rf"node {node} of 2 has GPU-[\w-]+,GPU-[\w-]+\n" for node in range(2)), "".join(sorted(result.out.splitlines(True)))), result


FOLDERS = ["sh", "-c", 'test -f /usr/local/gib/scripts/set_nccl_env.sh && echo "$RANK mounted"; '
                       'touch /usr/local/gib/mine 2>/dev/null && echo "$RANK changed"; ls /usr/local/nvidia >/dev/null']
ASKED = "which machine the workers get is not known before they have nodes"


def unnamed(source):
    spec = spec_of(source, "two-by-two", 2)
    del spec["nccl"]
    return {**spec, "command": FOLDERS, "launcher": {"tolerations": [{"operator": "Exists"}]}}


@pytest.mark.parametrize("where", [["--here"], []], ids=["here", "pod"])
def test_example_without_its_profile(machines, jobs, source, where):
    """The nodes name the machine, so the pods have the vendor's folders, mounted read-only, under both kinds of launcher."""
    result = jobs.run(*where, **unnamed(source)).ok()
    assert sorted(line for line in result.out.splitlines() if "mounted" in line) == [f"{rank} mounted" for rank in range(4)], result
    assert "changed" not in result.out and ASKED not in result.err, result


def test_example_on_nodes_that_nothing_names(machines, jobs, source):
    """Nothing is mounted by guess, and the profile is asked for by name."""
    nodes, label = [node.name for node in jobs.cluster.nodes], "node.kubernetes.io/instance-type"
    accelerator = "cloud.google.com/gke-accelerator"
    labels = jobs.cluster.api.get("v1", "Node", nodes[0])["metadata"]["labels"]
    jobs.cluster.kubectl("label", "node", *nodes, f"{label}-", f"{accelerator}-")
    try:
        result = jobs.run("--here", **{**unnamed(source), "command": ["sh", "-c", "ls /usr/local; true"]}).ok()
    finally:
        jobs.cluster.kubectl("label", "node", *nodes, *(f"{key}={labels[key]}" for key in (label, accelerator)))
    assert ASKED in result.err and "names its machine" in result.err and "set nccl: {profile: NAME}" in result.err, result
    assert "gib" not in result.out


def test_queued_example(machines, jobs, source):
    """Kueue's part is played: the worker Job alone has its label and is suspended until it is admitted."""
    space = jobs.namespace.name
    spec = spec_of(source, "queued-torchrun", 2)
    job = Running(jobs, "--here", **spec)
    found = jobs.cluster.wait("no worker Job", lambda: jobs.cluster.api.get("batch/v1", "Job", "job-w", space), 30)
    assert found["spec"]["suspend"] and found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    jobs.cluster.wait("the queue is not told", lambda: "team-a" in json.dumps((jobs.status() or {}).get("waiting")), 30)
    jobs.cluster.kubectl("patch", "-n", space, "job/job-w", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    ranks = {number: Rank(lines) for number, lines in shown(job.ended().ok().out).items()}
    assert sorted(ranks) == [0, 1]
    assert all(len(rank.gpus) == 8 and len(rank.nics) == 8 for rank in ranks.values())


def test_every_example_is_here(source):
    """That of computeDomain needs a controller and other machines: test_cluster_domain.py. Those whose point is the
    short form are the server's dry run's (test_dry_run.py), and its parts are in pods of test_cluster_short_form.py. Roles are in test_cluster_roles.py, the first job is in test_cluster_tutorial.py."""
    files = {path.stem for path in (source / "examples/jobs").glob("*.yaml")}
    forms = {"one-node", "ddp-checkpoints", "coordinator", "mig", "mpi-cpus", "rl-roles", "hello"}
    assert files == {*ROWS, "queued-torchrun", "compute-domain", *forms}
