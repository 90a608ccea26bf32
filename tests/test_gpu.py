# SPDX-License-Identifier: Apache-2.0
"""With real GPUs: what discovery says of them, NCCL's collectives under drarun, and what is left on a GPU when a job is cut off."""
import json
import os
import re
import signal
import subprocess

import pytest

from support.build import BUILD, patience
from support.cluster.api import wait
from support.nvidia import environment, gpus, needs_gpu, smi
from test_bench import NAMES, rows

pytestmark = [needs_gpu, pytest.mark.plain("NVIDIA's libraries are not made for a sanitizer")]

BENCH = BUILD / "bin" / "drarun-bench"
WITH_DATA = [name for name in NAMES if name != "barrier"]


@pytest.fixture
def bench(drarun):
    return lambda ranks, *words, **more: drarun("-n", ranks, BENCH, *words, "--backend", "nccl", env={**environment(), **more}, timeout=180)


def published():
    run = subprocess.run([BUILD / "bin/drarun-plugin", "discover", "-o", "json", "--node", "here"], check=True, capture_output=True, text=True)
    return [device for each in json.loads(run.stdout)["items"] if each["spec"]["driver"].startswith("gpu.") for device in each["spec"]["devices"]]


def test_discovery_says_what_nvidia_smi_says():
    found = {device["attributes"]["gpu.nvidia.com/uuid"]["string"]: device for device in published()}
    assert sorted(found) == sorted(gpu.uuid for gpu in gpus())
    for gpu in gpus():
        device = found[gpu.uuid]
        said = {name.split("/")[-1]: next(iter(value.values())) for name, value in device["attributes"].items()}
        assert said["productName"] == gpu.name and said["minor"] >= 0, said
        assert said["pciBusID"] == gpu.address, said
        assert [int(part) for part in said["driverVersion"].split(".")] == [int(part) for part in gpu.driver.split(".")], said
        assert said["cudaComputeCapability"].startswith(gpu.capability), said
        assert int(re.match(r"\d+", device["capacity"]["gpu.nvidia.com/memory"]["value"])[0]) == gpu.memory, device


@pytest.mark.parametrize("name", WITH_DATA)
def test_data_is_right(bench, name):
    """A rank for each GPU, all sizes from 8 bytes to 128 MiB."""
    result = bench(len(gpus()), name, "-b", "8", "-e", "128M", "-f", "16", "-n", "5")
    found = rows(result)
    assert len(found) == 7 and {row[6] for row in found} == {"0"} and {row[8] for row in found} <= {"0", "N/A"}, result
    for gpu in gpus():
        assert re.search(rf"^#  Rank +\d+ .*\[{gpu.address[:-2]}.*{re.escape(gpu.name)}$", result.out, re.M), result.out


def test_buffers_are_compared_on_the_gpu():
    run = subprocess.run([BUILD / "tests/bench_cuda_compare_test"], env={**os.environ, **environment()}, capture_output=True, text=True, timeout=patience())
    assert run.returncode == 0, run.stderr + run.stdout


@pytest.mark.parametrize("words", [["-y", "1"], ["-R", "1"], ["-m", "3"], ["-z", "1"], ["-I", "1", "-a", "3"]], ids=" ".join)
def test_ways_to_measure(bench, words):
    result = bench(len(gpus()), "all_reduce", "-b", "1M", "-e", "1M", "-n", "5", *words).ok()
    assert "# Out of bounds values : 0 OK" in result.out, result


def test_all_types_and_operations(bench):
    result = bench(len(gpus()), "all_reduce", "-b", "64K", "-e", "64K", "-n", "1", "-d", "all", "-o", "all")
    assert result.rc == 0 and "# Out of bounds values : 0 OK" in result.out, result


def test_two_ranks_of_one_gpu(bench):
    """NCCL would refuse it without naming them."""
    result = bench(2, "all_reduce", CUDA_VISIBLE_DEVICES="0")
    assert result.rc == 70 and re.search(r"ranks 0 and 1 both have GPU \S+ of \S+: NCCL wants one for each rank", result.err), result


def test_nccl_takes_our_topology(bench, drarun, tmp_path):
    (tmp_path / "topo.xml").write_text(drarun("topo", "-o", "nccl-xml").ok().out)
    result = bench(len(gpus()), "all_reduce", "-b", "1M", "-e", "1M", NCCL_TOPO_FILE=str(tmp_path / "topo.xml"), NCCL_DEBUG="INFO")
    assert result.rc == 0 and str(tmp_path / "topo.xml") in result.out, result


def used():
    """MiB of each GPU."""
    return [int(line) for line in smi("--query-gpu=memory.used", "--format=csv,noheader,nounits").split()]


def processes():
    """Those that have something on a GPU, as nvidia-smi counts."""
    return set(smi("--query-compute-apps=pid", "--format=csv,noheader").split())


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL], ids=lambda sent: sent.name)
def test_a_job_that_is_cut_off_leaves_nothing_on_the_gpu(drarun, sent):
    before, others = used(), processes()
    job = drarun.start("-n", len(gpus()), BENCH, "all_reduce", "-b", "1G", "-e", "1G", "-N", "0", "--backend", "nccl", env=environment())
    wait("the ranks have nothing on their GPUs",
         lambda: job.process.poll() is not None or all(now > then + 1000 for now, then in zip(used(), before)), 60)
    assert job.process.poll() is None, job.finish(10)
    job.signal(sent)
    job.finish(60)
    wait(lambda: f"left on a GPU: {processes() - others}", lambda: not processes() - others, 60)
