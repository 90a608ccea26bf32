# SPDX-License-Identifier: Apache-2.0
"""Ranks of pods to which the kubelet gives CPUs of their own (the CPU manager's static policy): they are bound to these, and MPI knows it. And
of pods that share what is left. The launcher is outside: on a machine of two CPUs its pod has no room beside the worker's."""
import os
import re
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.cluster_jobs import Running
from support.cluster.programs import BASE, library_files, program
from support.mpi import ALL

CPUS = os.sched_getaffinity(0)
RESERVED = min(CPUS)
ALONE = min(2, len(CPUS) - 1)  # CPUs that a worker gets; one stays with the system
RESOURCES = {each: {"cpu": ALONE, "memory": "512Mi"} for each in ("requests", "limits")}
IMAGE = "localhost/mpi-bind:1"
# CPUs of a process: what the kubelet gives the worker, of which the agent uses all, is the rank's parent's.
CPUS_OF = "sed -n s/^Cpus_allowed_list://p /proc/{}/status"
OWN = CPUS_OF.format("$PPID")


@pytest.fixture(scope="session")
def cluster():
    files = {}
    for each in ALL:
        files[program(each.name, "mpi_bind")] = each.compile("mpi_bind.c")
        files |= library_files(each)
    with Cluster(nodes=1, images=("busybox", BASE, "drarun"), kubelet={"cpuManagerPolicy": "static", "reservedSystemCPUs": str(RESERVED)}) as made:
        made.image("mpi-bind", files=files, base=BASE)
        yield made


def cpus_of(text):
    """{0, 1, 4} of "0-1,4"."""
    return {cpu for part in text.split(",") for low, _, high in [part.partition("-")] for cpu in range(int(low), int(high or low) + 1)}


def cores_of(cpus):
    """Of each core that has some of these CPUs, those."""
    files = (Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus)
    return {frozenset(cpus_of(each.read_text().strip()) & cpus) for each in files}


def of_ranks(result, library=""):
    """The sets that each rank has told, in the order of the lines, which end with this MPI library's name."""
    lines = result.ok().out.splitlines()
    assert all(library in line for line in lines), (library, lines)
    return [[cpus_of(word) for word in line.split(": ")[0].split()] for line in lines]


@pytest.fixture(scope="session")
def seen():
    """What the first worker of all got: the kubelet gives the same CPUs to the next one, as none is left between tests."""
    return []


@pytest.fixture
def own(jobs, seen):
    """The CPUs of a worker whose ranks are not bound."""
    if not seen:
        [[found]] = of_ranks(jobs.run("--here", name="unbound", resources=RESOURCES, command=["sh", "-c", OWN]))
        assert len(found) == ALONE and RESERVED not in found, found
        seen.append(found)
    return seen[0]


def test_worker_keeps_its_class(jobs, own):
    """drarun's own container takes nothing from what the kubelet gives CPUs to."""
    job = Running(jobs, "--here", command=["sh", "-c", "echo up; exec sleep 1000"], resources=RESOURCES).wait_lines(1)
    assert jobs.cluster.api.get("v1", "Pod", "job-w-0", jobs.namespace.name)["status"]["qosClass"] == "Guaranteed"
    job.job.signal(2)
    assert job.ended().rc == 130


def test_bound_ranks(jobs, own, mpi):
    """Each within the worker's CPUs as was asked for, before and after MPI_Init and as hwloc sees it: to a core, to all of the node's, or to
    one CPU of a list that two ranks share."""
    script = f"{program(mpi.name, 'mpi_bind')} | {{ read _ before after hwloc _ library; echo $({OWN}) $before $after $hwloc: \"$library\"; }}"
    for bind, ranks in (("core", ALONE), ("numa", ALONE), (str(max(own)), 2)):
        told = of_ranks(jobs.run("--here", name=f"bind-{bind}", image=IMAGE, command=["sh", "-c", script], bind=bind, ranksPerWorker=ranks,
                                 variables=mpi.env, resources=RESOURCES), mpi.version)
        assert len(told) == ranks and all(worker == own for worker, *_ in told), (bind, told, own)
        assert all(before == after == hwloc for _, before, after, hwloc in told), (bind, told)
        bound = [before for _, before, *_ in told]
        if bind == "core":
            assert set(map(frozenset, bound)) == cores_of(own), (told, own)
        else:
            assert bound == [own if bind == "numa" else {max(own)}] * ranks, (bind, told, own)


def test_report_of_bindings(jobs, own):
    """What the kernel says of the rank, bound or not, with its pod and node."""
    node = jobs.cluster.nodes[0].name
    for bind, says in (("none", " (not bound)"), ("core", "")):
        name = f"report-{bind}"
        result = jobs.run("--here", "--report-bindings", name=name, command=["sh", "-c", CPUS_OF.format("self")], bind=bind, resources=RESOURCES)
        [[cpus]] = of_ranks(result)
        found = re.search(rf"worker 0: rank 0 on {name}-w-0 \(node {re.escape(node)}\): CPUs (\S+){re.escape(says)}$", result.err, re.M)
        assert found and cpus_of(found[1]) == cpus and cpus <= own, (result, own)


def test_report_of_bindings_by_a_launcher_pod(jobs):
    """It learns from the job's document that it is wanted."""
    result = jobs.run("--report-bindings", command=["sh", "-c", CPUS_OF.format("self")])
    [[cpus]] = of_ranks(result)
    found = re.findall(rf"worker 0: rank 0 on job-w-0 \(node {re.escape(jobs.cluster.nodes[0].name)}\): CPUs (\S+) \(not bound\)$", result.err, re.M)
    assert [cpus_of(each) for each in found] == [cpus], result


def test_list_beyond_the_worker_is_refused(jobs, own):
    result = jobs.run("--here", command=["true"], bind=str(RESERVED), resources=RESOURCES)
    assert result.rc not in (0, 70) and f"CPU {RESERVED}" in result.err, result


def test_workers_that_share_their_cpus_take_turns(jobs):
    """Without CPUs of their own, workers on one node have the same ones: their ranks are bound to different cores as long as there are enough."""
    script = f"echo $({OWN}) $({CPUS_OF.format('self')})"
    told = of_ranks(jobs.run("--here", workers=len(CPUS), placement={"spread": "none"}, bind="core", command=["sh", "-c", script]))
    assert len(told) == len(CPUS) and all(worker == CPUS for worker, _ in told), told
    assert {frozenset(bound) for _, bound in told} == cores_of(CPUS), told
