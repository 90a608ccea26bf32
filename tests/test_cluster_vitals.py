# SPDX-License-Identifier: Apache-2.0
"""What the launcher sees of running ranks on two real nodes: that they hang, and that TCP carries their data."""
import json
import os
import re
import time

import pytest

from support.build import patience
from support.cluster_jobs import Running
from support.sysfs_tree import make_tree

HANG = "no progress for"
APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchExpressions": [{"key": "drarun.dev/worker", "operator": "Exists"}]},
     "topologyKey": "kubernetes.io/hostname"}]}}}
NIC = "test.drarun.dev/nic"


def told(jobs, reason):
    events = jobs.cluster.api.ok("GET", f"/api/v1/namespaces/{jobs.namespace.name}/events")["items"]
    return [each["message"] for each in events if each["reason"] == reason]


def test_silent_job_is_reported_with_what_its_ranks_do(jobs):
    command = ["sh", "-c", "[ $RANK != 3 ] || exec sleep 1000; read line < /tmp/pipe$RANK"]
    hangs = ["sh", "-c", f"mkfifo /tmp/pipe$RANK; {command[2]}"]
    job = Running(jobs, workers=2, ranksPerWorker=2, command=hangs, hangAfter="4s").wait_running()
    jobs.cluster.wait("no Event says that the job is silent", lambda: told(jobs, "Silent"), 60)
    jobs.verb("cancel", "job").ok()
    result = job.ended()
    assert result.rc == 130 and result.err.count(HANG) == 1, result
    said = result.err[result.err.index(HANG):]
    assert re.search(r"ranks 0-2: sh sleeps \(S\)", said) and re.search(r"rank 3: sleep sleeps \(S\)", said), result
    assert told(jobs, "Silent")[0].startswith(HANG), told(jobs, "Silent")


def test_job_that_does_something_is_not_silent(jobs):
    deeds = {"computes": "while :; do :; done", "writes": "while :; do echo x; sleep 0.5; done"}
    for job in [Running(jobs, "--here", name=name, workers=2, hangAfter="8s", timeouts={"total": "25s"},
                        command=["sh", "-c", f"[ $RANK = 0 ] && exec sleep 1000; {deed}"]) for name, deed in deeds.items()]:
        result = job.ended()
        assert result.rc == 124 and HANG not in result.err, result


@pytest.fixture
def machine(jobs, source):
    """The parts of a pod template in which the agent sees a DGX with one RDMA NIC: its /sys is ours, with counters that
    the test writes, as no RDMA device is here. The NIC is a resource of the node, as of a device plugin."""
    fixture = json.loads((source / "tests/data/fixtures/dgx-h100.json").read_text())
    address = next(address for address, nic in fixture["truth"]["nics"].items() if nic["linkLayer"] == "InfiniBand")
    make_tree(fixture, jobs.folder / "machine", {address})
    counters = jobs.folder / "machine/sys/class/net/eth0/statistics"
    counters.mkdir(parents=True)
    for name in ("tx_bytes", "rx_bytes"):
        (counters / name).write_text("0\n")
    verbs = jobs.folder / "verbs"
    verbs.mkdir()
    os.mknod(verbs / "uverbs0", 0o020666, os.makedev(1, 3))
    for node in jobs.cluster.nodes:
        jobs.cluster.api.patch_status("v1", "Node", node.name, {part: {NIC: "1"} for part in ("capacity", "allocatable")})
    places = {"sys": ("/sys", jobs.folder / "machine/sys"), "verbs": ("/dev/infiniband", verbs)}
    jobs.counters = counters
    yield {"volumes": [{"name": name, "hostPath": {"path": str(here)}} for name, (_, here) in places.items()],
           "container": {"securityContext": {"privileged": True},
                         "volumeMounts": [{"name": name, "mountPath": there} for name, (there, _) in places.items()]}}
    for node in jobs.cluster.nodes:
        jobs.cluster.api.patch_status("v1", "Node", node.name, {part: {NIC: None} for part in ("capacity", "allocatable")})


@pytest.mark.parametrize("then", ["fail", "report"])
def test_data_over_tcp_in_place_of_rdma(jobs, machine, then):
    container = {"name": "main", "image": "localhost/busybox:1", "command": ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"],
                 **machine.pop("container")}
    job = Running(jobs, "--here", workers=2, template={"spec": {"containers": [container], **APART, **machine}},
                  devices={"nics": {"count": 1, "resource": NIC}}, network="rdma", onTcpFallback=then, hangAfter="4s")
    job.wait_running()
    moved, end = 0, time.monotonic() + patience()
    while job.job.process.poll() is None and not (then == "report" and told(jobs, "TcpFallback")) and time.monotonic() < end:
        moved += 50 << 20  # 0.5 GB/s from each worker
        (jobs.counters / "tx_bytes").write_text(f"{moved}\n")
        time.sleep(0.1)
    if then == "report":
        for rank in range(2):
            jobs.verb("exec", "job", rank, "--", "touch", "/tmp/go").ok()
    result = job.ended()
    assert result.rc == (76 if then == "fail" else 0), result
    said = re.findall(r"its data moves over TCP: (\d+) MiB through network interfaces, 0 MiB by RDMA", result.err)
    assert len(said) == 1 and int(said[0]) > 512, result
    assert len(told(jobs, "TcpFallback")) == 1
