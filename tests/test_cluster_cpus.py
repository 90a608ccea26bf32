# SPDX-License-Identifier: Apache-2.0
"""Ranks of pods to which the kubelet gives CPUs of their own (the CPU manager's static policy): they are bound to these, and MPI knows it. The launcher
is outside: on a machine of two CPUs its pod has no room beside the worker's."""
import os

import pytest

from support.cluster import Cluster
from support.cluster_jobs import Running
from support.cluster.programs import BASE, MPIS, _of_library, program
from support.mpi import BY_NAME

CPUS = os.sched_getaffinity(0)
RESERVED = min(CPUS)
ALONE = min(2, len(CPUS) - 1)  # CPUs that a worker gets; one stays with the system
RESOURCES = {each: {"cpu": ALONE, "memory": "512Mi"} for each in ("requests", "limits")}
IMAGE = "localhost/mpi-bind:1"


@pytest.fixture(scope="session")
def cluster():
    files = {}
    for each in map(BY_NAME.get, MPIS):
        files[program(each.name, "mpi_bind")] = each.compile("mpi_bind.c")
        files |= {} if each.debian else {str(path): path for path in _of_library(each.home())}
    with Cluster(nodes=1, images=("busybox", BASE), kubelet={"cpuManagerPolicy": "static", "reservedSystemCPUs": str(RESERVED)}) as made:
        made.image("mpi-bind", files=files, base=BASE)
        yield made


def cpus_of(text):
    """{0, 1, 4} of "0-1,4"."""
    return {cpu for part in text.split(",") for low, _, high in [part.partition("-")] for cpu in range(int(low), int(high or low) + 1)}


def of_ranks(result):
    """The sets that each rank has told, in the order of the lines."""
    return [[cpus_of(word) for word in line.split()] for line in result.ok().out.splitlines()]


@pytest.fixture
def own(jobs):
    """The CPUs of a worker whose ranks are not bound."""
    [[found]] = of_ranks(jobs.run("--here", name="unbound", resources=RESOURCES, command=["awk", "/^Cpus_allowed_list/{print $2}", "/proc/self/status"]))
    assert len(found) == ALONE and RESERVED not in found, found
    return found


def test_worker_keeps_its_class(jobs, own):
    """drarun's own container takes nothing from what the kubelet gives CPUs to."""
    job = Running(jobs, "--here", command=["sh", "-c", "echo up; exec sleep 1000"], resources=RESOURCES).wait_lines(1)
    assert jobs.cluster.api.get("v1", "Pod", "job-w-0", jobs.namespace.name)["status"]["qosClass"] == "Guaranteed"
    job.job.signal(2)
    assert job.ended().rc == 130


@pytest.mark.parametrize("name", MPIS)
def test_bound_ranks(jobs, own, name):
    """Each to a core of the worker's, before and after MPI_Init and as hwloc sees it."""
    told = of_ranks(jobs.run("--here", image=IMAGE, command=["sh", "-c", f"{program(name, 'mpi_bind')} | cut -d' ' -f2-4"], bind="core",
                             ranksPerWorker=ALONE, resources=RESOURCES))
    assert len(told) == ALONE and all(len(set(map(frozenset, each))) == 1 for each in told), told
    assert set().union(*(each[0] for each in told)) <= own, (told, own)


def test_list_beyond_the_worker_is_refused(jobs, own):
    result = jobs.run("--here", command=["true"], bind=str(RESERVED), resources=RESOURCES)
    assert result.rc not in (0, 70) and f"CPU {RESERVED}" in result.err, result
