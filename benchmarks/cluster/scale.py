# SPDX-License-Identifier: Apache-2.0
"""Many workers on nodes that are objects only: their claims and pods are made, and seen allocated."""
import json
import subprocess
import time
from pathlib import Path

from benchmarks.cluster.bed import OURS, WRITES
from benchmarks.harness.launchers import DRARUN
from support.cluster import Cluster

MACHINE, PER_NODE = "a4-highgpu-8g", 8  # GPUs with a NIC on the same root
PODS_GOAL = {500: 3.9}  # MPI Operator with its client's limits taken away (reference: 98.8 s as shipped)
MEMORY_GOAL = 64
SEEN_S = 900


def spec(workers, claims):
    template = {"metadata": {"annotations": {"test.drarun.dev/stays": "yes"}}, "spec": {"containers": [
        {"name": "main", "image": "localhost/busybox:1", "command": ["true"]}]}}
    return {"workers": workers, "template": template, "placement": {"spread": "none"}, "devices": {
        "claims": claims, "gpus": {"count": 1, "class": "gpu.nvidia.com"}, "nics": {"count": 1, "class": "dranet"},
        "align": "required"}, "timeouts": {"allocation": f"{SEEN_S}s", "start": f"{SEEN_S}s"}}


def memory_of(pid):
    """MiB at its most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def allocated(cluster, namespace):
    """Workers whose claims the launcher says are allocated."""
    found = cluster.api.get("v1", "ConfigMap", "job-status", namespace)
    text = (found or {}).get("data", {}).get("status.json")
    return json.loads(text)["workers"]["allocated"] if text else 0


class Times:
    """One job's. pods: from its owner's creation to the last pod's, s; seen: to all allocated, in the launcher's
    words; scheduler: to the last allocation that was written."""

    def __init__(self, requests, seen, memory):
        ours = [each for each in requests if each.agent.startswith(OURS)]
        owner = min(each.received for each in ours if each.verb == "create")
        made = [each.answered for each in requests if each.verb == "create" and each.resource == "pods" and
                each.code == 201 and not each.subresource]
        written = [each.answered for each in requests if each.resource == "resourceclaims" and
                   each.subresource == "status" and each.agent.startswith("kube-scheduler")]
        self.pods, self.seen = max(made) - owner, seen - owner
        self.scheduler = max(written) - owner if written else 0
        self.count, self.memory = len(made), memory
        self.conflicts = sum(each.code == 409 for each in ours)
        self.writes = sum(each.verb in WRITES and each.resource != "events" for each in ours)


def one(cluster, workers, claims, name):
    with cluster.clean_namespace(name, 300) as namespace:
        path = Path(cluster.folder) / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": "job"},
                                    "spec": spec(workers, claims)}))
        env = {**DRARUN.environment(), "KUBECONFIG": str(cluster.kubeconfig(namespace=namespace.name)),
               "DRARUN_IMAGE": "localhost/drarun:1"}
        mark = cluster.audit.mark()
        process = subprocess.Popen([*cluster.under, DRARUN.program(), "run", "--here", path], env=env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            cluster.wait(lambda: f"{allocated(cluster, namespace.name)} of {workers} are allocated; {process.poll()}",
                         lambda: allocated(cluster, namespace.name) == workers, SEEN_S, 0.1)
            seen, memory = time.time(), memory_of(process.pid)
        finally:
            process.terminate()
            process.communicate(timeout=300)
        return Times(cluster.audit.requests(since=mark, namespace=namespace.name), seen, memory)


def run(_, report, scale):
    nodes = max(scale.scaled) // PER_NODE + 1
    report.heading(f"Workers of one GPU and one NIC on {nodes} nodes that are objects only, --here")
    report.table(["claims", "workers", "all pods made, s", "goal", "verdict", "all allocated, s", "seen, s", "writes", "conflicts",
                  "launcher, MiB", "goal", "verdict"])
    with Cluster() as cluster:
        cluster.fake_nodes(nodes, MACHINE)
        for workers in scale.scaled:
            for claims in ("direct", "template"):
                times = one(cluster, workers, claims, f"{claims}-{workers}")
                what, goal = f"{workers} workers, {claims} mode", PODS_GOAL.get(workers)
                if times.conflicts:
                    report.missed.append(f"{what}: {times.conflicts} conflicts")
                report.row(claims, workers, f"{times.pods:.2f}", goal or "-",
                           report.verdict(f"{what}: all pods made, s", times.pods, goal) if goal else "",
                           f"{times.scheduler:.1f}", f"{times.seen:.1f}", times.writes, times.conflicts,
                           f"{times.memory:.0f}", MEMORY_GOAL,
                           report.verdict(f"{what}: launcher, MiB", times.memory, MEMORY_GOAL))
