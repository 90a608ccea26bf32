# SPDX-License-Identifier: Apache-2.0
"""Real GPUs on a real node: our plugin publishes and prepares them, pods see the one they claimed, and one command runs NCCL on it."""
import json
import os
import re
from pathlib import Path

import pytest

from support.build import ANYWHERE_MISSING
from support.cluster import Cluster
from support.cluster.plugin import GPU, Plugin, device_class
from support.nvidia import driver_root, fault, gpus, libraries, needs_gpu

pytestmark = [needs_gpu, pytest.mark.plain("NVIDIA's libraries are not made for a sanitizer")]
IMAGE = "localhost/bookworm:1"
BENCH = ["/.drarun/bin/drarun-bench", "all_reduce", "--backend", "nccl", "-b", "1M", "-e", "64M", "-f", "4"]
INSPECTOR = os.environ.get("DRARUN_NCCL_INSPECTOR")
XID_S = 5  # how often the plugin asks


@pytest.fixture(scope="module")
def cluster():
    """One node: what it publishes is this machine's."""
    with Cluster(nodes=1, images=("busybox", "bookworm", "drarun")) as made:
        made.api.make(device_class(GPU, GPU))
        yield made


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster):
    made = Plugin(cluster.node(0), "--drivers", "gpu", *driver_root(), name="drarun-gpus", driver=GPU)
    made.start().wait(len(gpus()))
    yield made
    cluster.wait(made.log, lambda: not made.checkpoints(), 60)
    made.stop()


def spec(count=1, **more):
    """A job whose workers claim GPUs, and have NCCL and CUDA from the node."""
    folders = libraries()
    return {"image": IMAGE, "devices": {"gpus": {"count": count, "class": GPU}}, "ranksPerWorker": count,
            "volumes": [{"hostPath": folder, "mountPath": f"/nvidia/{k}", "readOnly": True} for k, folder in enumerate(folders)],
            "variables": {"LD_LIBRARY_PATH": ":".join(f"/nvidia/{k}" for k in range(len(folders)))}, **more}


def test_a_rank_sees_the_gpu_of_its_claim(jobs):
    result = jobs.run("--here", **spec(command=["sh", "-c", "nvidia-smi -L; ls -d /dev/nvidia[0-9]*"]), timeout=180).ok()
    uuid, = re.findall(r"UUID: (\S+)\)", result.out)
    assert uuid in {gpu.uuid for gpu in gpus()} and len(re.findall("^/dev/nvidia", result.out, re.M)) == 1, result


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_one_command_measures_nccl(jobs, mode, tmp_path):
    """On all GPUs of the node, with NCCL and CUDA from folders of it, in an image that has neither."""
    result = jobs.verb("bench", "all_reduce", "--job", jobs.file(**spec(len(gpus()))), "-b", "1K", "-e", "256M", "-f", "16", *mode,
                       "-J", tmp_path / "run.json", timeout=300)
    assert result.rc == 0 and "# Out of bounds values : 0 OK" in result.out and result.out.count(f"] {gpus()[0].name}") == len(gpus()), result
    assert "cannot be saved" not in result.err, result
    assert json.loads((tmp_path / "run.json").read_text())["about"]["job"]["spec"]["devices"]["gpus"]["count"] == len(gpus())


def test_roles_with_and_without_gpus(jobs):
    """Each role is a world of its own, and sees the GPUs that it claims alone."""
    wanted = spec(len(gpus()))
    own = {"devices": wanted.pop("devices"), "ranksPerWorker": wanted.pop("ranksPerWorker")}
    shown = 'echo "$DRARUN_ROLE $RANK of $WORLD_SIZE: $(ls /dev/nvidia[0-9]* 2>/dev/null | wc -l)"'
    roles = [{"name": "train", "command": ["sh", "-c", shown], **own}, {"name": "feed", "ranksPerWorker": 2, "command": ["sh", "-c", shown]}]
    result = jobs.run("--here", roles=roles, world="own", placement={"spread": "none"}, timeout=180, **wanted).ok()
    assert sorted(result.out.splitlines()) == sorted(
        [f"feed {rank} of 2: 0" for rank in range(2)] + [f"train {rank} of {len(gpus())}: {len(gpus())}" for rank in range(len(gpus()))]), result


@pytest.mark.skipif(not INSPECTOR, reason="DRARUN_NCCL_INSPECTOR names no libnccl-profiler-inspector.so of NCCL's")
@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_nccls_inspector(jobs, tmp_path):
    """Of a communicator of one rank NCCL reports nothing to it."""
    report, wanted = tmp_path / "report.json", spec(len(gpus()), command=BENCH)
    wanted["volumes"].append({"hostPath": str(Path(INSPECTOR).parent), "mountPath": "/inspector", "readOnly": True})
    wanted["nccl"] = {"inspector": True, "env": {"NCCL_PROFILER_PLUGIN": f"/inspector/{Path(INSPECTOR).name}", "NCCL_DEBUG": "INFO"}}
    result = jobs.run("--here", "--report", report, timeout=180, **wanted).ok()
    assert "PROFILER/Plugin: Loaded Inspector" in result.out + result.err, result
    if len(gpus()) == 1:
        assert "NCCL's inspector has written nothing" in result.err, result
        return
    found = [path.read_text().splitlines() for path in (tmp_path / "report.json.inspector").rglob("*.log")]
    assert json.loads(report.read_text())["inspector"]["files"] == len(found) == len(gpus()), result
    assert sorted(json.loads(lines[0])["header"]["rank"] for lines in found) == list(range(len(gpus()))), found


def test_more_gpus_than_there_are(jobs):
    result = jobs.run("--here", **spec(len(gpus()) + 1, command=["true"], timeouts={"allocation": "10s"}), timeout=120)
    assert result.rc == 75 and "gpu" in result.err.lower(), result


@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_acceptance_of_the_node(jobs):
    """Alone: there is no pair."""
    result = jobs.verb("accept", jobs.file(**spec(len(gpus()), command=BENCH)), "--here", "--alone", "--records", jobs.folder / "records", "-o", "json", timeout=300)
    assert result.rc == 0, result
    assert json.loads(result.out), result


def test_a_programs_fault_is_no_fault_of_the_gpu(cluster, jobs, plugin):
    """The driver reports an Xid: the GPU gets no taint, and the next job is given it."""
    fault()
    cluster.never("the GPU is tainted", lambda: [each for each in plugin.published().values() if each.get("taints")], 3 * XID_S)
    assert jobs.run("--here", **spec(command=["nvidia-smi", "-L"]), timeout=180).ok().out.startswith("GPU 0: ")
