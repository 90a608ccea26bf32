# SPDX-License-Identifier: Apache-2.0
"""Jobs that claim devices, on two real nodes that show a captured machine: the scheduler allocates, our node plugin
prepares, and the agents look at what came."""
import json
import re

import pytest

from support.build import ANYWHERE_MISSING, BUILD
from support.cluster.machines import GPU, NIC, RDMA, TOLD, claimed, shown, told, value_of, vendor_folders, without_pairs, without_rdma

GPUS = 8
SHOW = ["sh", "-c", 'env | sed "s/^/$RANK /"; for each in /dev/nvidia* /dev/infiniband/*; do echo "$RANK $each"; done']


@pytest.fixture
def jobs(machines, jobs):
    return jobs


def planned(jobs, spec):
    """What `drarun plan` says for this cluster before the job: the variables of all ranks, by rank."""
    plan = json.loads(jobs.verb("plan", spec, "--live", "-o", "json").ok().out)["plan"]
    return {rank["rank"]: plan["env"] | worker.get("env", {}) | rank.get("env", {}) for worker in plan["workers"]
            for rank in worker["ranks"]}


@pytest.mark.parametrize("claims,mode", [("direct", ["--here"]), ("direct", []), ("template", [])],
                         ids=["here", "pod", "template"])
def test_ranks_get_the_plans_environment_and_devices(jobs, claims, mode):
    wanted = {"workers": 2, "devices": claimed(GPUS, GPUS, claims=claims), "command": SHOW}
    plan = planned(jobs, jobs.file(**wanted))
    assert len(plan) == 2 * GPUS and plan[0]["NCCL_IB_HCA"].startswith("=mlx5_0:1,mlx5_3:1")
    result = jobs.run(*mode, **wanted).ok()
    assert result.err.count("ResourceSlices are not known") == (0 if mode else 1)  # in its pod it has our Role alone
    ranks = shown(result.out)
    assert sorted(ranks) == list(range(2 * GPUS))
    for rank, lines in ranks.items():
        has = dict(line.split("=", 1) for line in lines if "=" in line)
        for name, value in plan[rank].items():
            if name != "MASTER_ADDR":  # a pod's address is not known before
                assert has.get(name) == value, (rank, name, value, has.get(name))
        assert {name for name in has if name.startswith("NCCL_")} == {n for n in plan[rank] if n.startswith("NCCL_")}
        assert sorted(line for line in lines if line.startswith("/dev/nvidia")) == [
            "/dev/nvidia-uvm", *(f"/dev/nvidia{k}" for k in range(8)), "/dev/nvidiactl"]
        assert sum(line.startswith("/dev/infiniband/uverbs") for line in lines) == 8


# what the library does: one file for each process, which grows. A piece of a transfer is 256 KiB
INSPECTED = """set -e; cd "$NCCL_INSPECTOR_DUMP_DIR"; test $NCCL_INSPECTOR_ENABLE = 1; test -e "$NCCL_PROFILER_PLUGIN"
echo '{"header": {"rank": '$RANK'}}' >host-pid$RANK.log; head -c 600000 /dev/zero | tr '\\0' x >>host-pid$RANK.log
mkdir -p sub; ln -sf /etc/passwd link; echo .hidden >.hidden"""


def with_inspector(jobs):
    """A container of ranks in which a file stands for the library."""
    jobs.cluster.api.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inspector", "namespace": jobs.namespace.name},
                           "data": {"libnccl-profiler-inspector.so": "no library: the ranks here are shells"}})
    container = {"name": "worker", "image": "localhost/busybox:1", "command": ["sh", "-c", INSPECTED],
                 "volumeMounts": [{"name": "nccl", "mountPath": "/opt/nccl/lib"}]}
    return {"spec": {"containers": [container], "volumes": [{"name": "nccl", "configMap": {"name": "inspector"}}]}}


def test_what_nccls_inspector_writes_is_kept(jobs, tmp_path):
    report, wanted = tmp_path / "report.json", {"workers": 2, "ranksPerWorker": 2, "devices": claimed(2, 2), "nccl": {"inspector": True}}
    result = jobs.run("--here", "--report", report, template=with_inspector(jobs), **wanted).ok()
    folder = tmp_path / "report.json.inspector"
    told = json.loads(report.read_text())["inspector"]
    assert (told["folder"], told["files"]) == (str(folder), 4) and f"NCCL's inspector: 4 files in {folder}" in result.err, result
    found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    ranks = {"worker-0/host-pid0.log": 0, "worker-0/host-pid1.log": 1, "worker-1/host-pid2.log": 2, "worker-1/host-pid3.log": 3}
    assert {name: json.loads(text.splitlines()[0])["header"]["rank"] for name, text in found.items()} == ranks
    assert all(text.splitlines()[1] == 600000 * "x" for text in found.values()) and told["bytes"] == sum(map(len, found.values()))
    jobs.cluster.api.delete("v1", "ConfigMap", "inspector", jobs.namespace.name)


def test_nccls_inspector_that_cannot_be(jobs, tmp_path):
    """What is not in the image, or would have no place for its files, is said, and the job runs."""
    off = ["sh", "-c", 'test -z "$NCCL_INSPECTOR_ENABLE$NCCL_PROFILER_PLUGIN$NCCL_INSPECTOR_DUMP_DIR"']
    wanted = {"ranksPerWorker": 1, "devices": claimed(1, 1), "nccl": {"inspector": True}}
    result = jobs.run("--here", "--report", tmp_path / "r", command=off, **wanted).ok()
    assert "INSPECTOR_MISSING: NCCL's inspector is off: the image has no libnccl-profiler-inspector.so" in result.err, result
    result = jobs.run("--here", name="nowhere", command=off, **wanted).ok()
    assert "NCCL's inspector is off: its files would be lost with the pods; launch from here with a report" in result.err, result


@pytest.fixture
def cluster_role(jobs):
    """What `drarun install --cluster-role` prints."""
    made = jobs.verb("install", "-n", jobs.namespace.name, "--cluster-role", "--format", "json").ok().out
    jobs.cluster.kubectl("apply", "--server-side", "-f", "-", input=made)
    yield
    jobs.cluster.kubectl("delete", "-f", "-", input=made)


def test_with_the_cluster_role_the_slices_are_known(jobs, cluster_role):
    result = jobs.run(ranksPerWorker=1, devices=claimed(2, 2, align="required"), command=["sh", "-c", "env"]).ok()
    assert "install --cluster-role" not in result.err, result.err  # what a worker without it says
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_3:1" in result.out and "CUDA_VISIBLE_DEVICES=GPU-0077e9e7" in result.out


@pytest.mark.gate
def test_gpu_and_nic_of_a_pair_share_their_root(jobs):
    """Four workers of two pairs each: the claims' constraint holds, whatever the scheduler takes first."""
    result = jobs.run("--here", workers=4, ranksPerWorker=1, placement={"spread": "none"}, devices=claimed(2, 2, selector=RDMA, align="required"),
                      command=["sh", "-c", TOLD.format('echo "$RANK $(head -n 1 $each)"')]).ok()
    held = {rank: [device for line in lines for device in told(line)] for rank, lines in shown(result.out).items()}
    assert [len(held[rank]) for rank in range(4)] == [4] * 4
    for devices in held.values():
        roots = {which: sorted(value_of(device, "pcieRoot") for device in devices if (device["driver"] == GPU) == which)
                 for which in (True, False)}
        assert len(roots[True]) == 2 and roots[True] == roots[False], devices


@pytest.mark.parametrize("mode,claims", [(["--here"], "direct"), ([], "template")], ids=["here-direct", "pod-template"])
def test_a_nic_that_workers_share(jobs, mode, claims):
    """A claim of the user's, made before: both workers hold its NIC beside their own GPU, NCCL's variables name it, and it outlives the job."""
    nic = claimed(0, 1)["nics"]
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "team-nic", "namespace": jobs.namespace.name},
            "spec": {"devices": {"requests": [{"name": "any", "exactly": {"deviceClassName": nic["class"], "count": 1, "selectors": [{"cel": {"expression": nic["selector"]}}]}}]}}}
    jobs.cluster.api.make(made)
    # nobody has asked for NICs, which would have given both: the machine's NICs are shown, and cannot be opened
    lock = {"spec": {"containers": [{"name": "worker", "image": "localhost/busybox:1", "command": SHOW, "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}]}}
    result = jobs.run(*mode, workers=2, ranksPerWorker=1, devices={"gpus": claimed(1, 0)["gpus"], "shared": [{"claim": "team-nic"}], "claims": claims},
                      template=lock, preflight={"fabric": "off"})
    left = jobs.cluster.api.get("resource.k8s.io/v1", "ResourceClaim", "team-nic", jobs.namespace.name)
    jobs.cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", "team-nic", jobs.namespace.name)
    result.ok()
    assert not left["metadata"].get("deletionTimestamp")
    ranks = shown(result.out)
    assert sorted(ranks) == [0, 1]
    for lines in ranks.values():
        has = dict(line.split("=", 1) for line in lines if "=" in line)
        assert has["NCCL_IB_HCA"].startswith("=mlx5_") and sum(line.startswith("/dev/infiniband/uverbs") for line in lines) == 1, lines


FIRST = [{"selector": f'device.driver == "{GPU}" && "none" in device.attributes["{GPU}"]'}, {"selector": f'device.driver == "{GPU}"'}]


@pytest.mark.parametrize("mode,claims", [(["--here"], "direct"), ([], "template")], ids=["here-direct", "pod-template"])
def test_the_first_kind_that_a_node_has(jobs, mode, claims):
    """No node has the first: all workers get pairs of the second kind, as plan has said."""
    devices = claimed(2, 2, align="required", claims=claims)
    devices["gpus"]["firstAvailable"] = FIRST
    spec = {"workers": 2, "ranksPerWorker": 1, "devices": devices, "command": ["sh", "-c", 'env | sed "s/^/$RANK /"']}
    plan = planned(jobs, jobs.file(**spec))
    result = jobs.run(*mode, **spec).ok()
    for rank, lines in shown(result.out).items():
        has = dict(line.split("=", 1) for line in lines if "=" in line)
        assert has["NCCL_IB_HCA"] == plan[rank]["NCCL_IB_HCA"] and len(has["CUDA_VISIBLE_DEVICES"].split(",")) == 2, (rank, has)


@pytest.fixture
def vendor(cluster):
    with vendor_folders(cluster) as write:
        yield write


def test_vendor_script_is_run_in_the_pods(jobs, vendor):
    """Its values are those of the release that the node has; ours are of the one that was read."""
    spec = {"workers": 2, "ranksPerWorker": 1, "devices": claimed(1, 1), "nccl": {"profile": "gke-a4"},
            "command": ["sh", "-c", "echo $RANK $NCCL_NET $NCCL_IB_TC"]}
    result = jobs.run("--here", **spec).ok()
    assert sorted(result.out.splitlines()) == ["0 gIB 77", "1 gIB 77"]
    assert result.err.count("NCCL_IB_TC: the script says 77") == 1 and "VENDOR_SCRIPT_DIFFERS" in result.err, result
    vendor(jobs.cluster.nodes[1], "exit 4")
    broken = jobs.run("--here", **spec, name="broken").ok()
    assert "VENDOR_SCRIPT_NOT_USED" in broken.err and "ended with status 4" in broken.err, broken


def test_files_of_a_profile_are_looked_for_in_the_pods(jobs, vendor):
    there = jobs.run("--here", workers=2, ranksPerWorker=1, devices=claimed(1, 1), nccl={"profile": "gke-a4"},
                     command=["sh", "-c", "echo $RANK $NCCL_NET"]).ok()
    assert "PROFILE_FILE_MISSING" not in there.err and sorted(there.out.splitlines()) == ["0 gIB", "1 gIB"], there
    for node in jobs.cluster.nodes:
        node.ok(["rm", "/home/kubernetes/bin/gib/scripts/set_nccl_env.sh"])
    gone = jobs.run("--here", name="gone", ranksPerWorker=1, devices=claimed(1, 1), nccl={"profile": "gke-a4"},
                    command=["true"]).ok()
    assert "PROFILE_FILE_MISSING" in gone.err and "set_nccl_env.sh: the image lacks" in gone.err, gone


@pytest.fixture(scope="module")
def nccl_image(machines):
    """A user's image: a C library, stand-ins for NCCL and CUDA, nothing of ours."""
    standin = BUILD / "tests/standin"
    return machines.cluster.image("nccl", base="bookworm", files={
        "/usr/local/lib/libnccl.so.2": standin / "nccl/libnccl.so.2",
        "/usr/local/lib/libcudart.so.12": standin / "cudart/libcudart.so.12"})


@pytest.fixture
def as_a4(jobs, vendor):
    """Nodes with the label and the folders of GKE's machine."""
    labels = "node.kubernetes.io/instance-type"
    jobs.cluster.kubectl("label", "nodes", "--all", f"{labels}=a4-highgpu-8g")
    yield
    jobs.cluster.kubectl("label", "nodes", "--all", f"{labels}-")


BENCH = ["bench", "all_reduce", "--gpus", 4, "-b", "1K", "-e", "32K", "-f", 32, "--iters", 2, "-x", "LD_LIBRARY_PATH=/usr/local/lib",
         "--no-verdict"]  # stand-ins are worth none


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_bench_of_nccl_in_any_image(jobs, as_a4, nccl_image, mode, tmp_path):
    """Counts and an image are enough: the classes, the backend and the machine's profile are found."""
    result = jobs.verb(*BENCH, *mode, "--nics", 4, "--image", nccl_image, "-J", tmp_path / "run.json", timeout=240).ok()
    assert "cannot be saved" not in result.err, result
    assert "GPUs by claim: DeviceClass gpu.drarun.dev\n" in result.err and "NICs by claim: DeviceClass nic.drarun.dev\n" in result.err, result
    assert "drarun: profile gke-a4: " in result.err and "a4-highgpu-8g" in result.err, result
    assert "stand-in for NCCL" in result.out and result.out.count("drarun stand-in, not a GPU") == 4, result
    assert "# Out of bounds values : 0 OK" in result.out
    job = json.loads((tmp_path / "run.json").read_text())["about"]["job"]["spec"]
    assert job["nccl"] == {"profile": "gke-a4"} and job["ranksPerWorker"] == 4, job


def test_gpus_of_the_node_are_no_workers(jobs):
    """Sysfs shows them to a worker that has claimed a NIC alone."""
    result = jobs.run("--here", devices={"nics": {"count": 1, "class": NIC, "selector": RDMA}}, command=["ls", "/sys/bus/pci/devices"]).ok()
    assert len(result.out.split()) > 4 and not re.search("FEWER_NICS_THAN_GPUS|MISALIGNED", result.err), result


@pytest.fixture
def unaligned(machines):
    machines.become(without_pairs)
    yield
    machines.become()


def test_preferred_alignment_takes_the_numa_node(jobs, unaligned):
    result = jobs.run("--here", devices=claimed(align="preferred"), ranksPerWorker=1, command=["echo", "placed"]).ok()
    assert result.out == "placed\n"
    assert "are released; the next try follows at once with each GPU and a NIC of its NUMA node" in result.err


def test_required_alignment_waits_and_says_why(jobs, unaligned):
    result = jobs.run("--here", devices=claimed(align="required"), command=["true"], timeouts={"allocation": "20s"})
    assert result.rc == 75, result
    assert "timeouts.allocation" in result.err and "pcieRoot" in result.err


@pytest.fixture
def ethernet(machines):
    machines.become(without_rdma)
    yield
    machines.become()


def test_nics_without_rdma_carry_data_over_tcp_where_any_network_is_asked_for(jobs, ethernet):
    wanted = {"workers": 2, "network": "any", "ranksPerWorker": 1,
              "command": ["sh", "-c", "echo $RANK ${NCCL_NET-none} $OMPI_MCA_btl_tcp_if_include; cat /proc/net/dev"],
              "devices": claimed(2, 2, selector='device.attributes["dra.net"].rdma == false')}
    result = jobs.run("--here", **wanted).ok()
    said = sorted(line.split() for line in result.out.splitlines() if " Socket " in line)
    assert [rank for rank, *_ in said] == ["0", "1"] and "NIC_NOT_RDMA" in result.err
    for _, _, interfaces in said:
        assert len(interfaces.split(",")) == 2 and all(f"{each}: " in result.out for each in interfaces.split(",")), result
    refused = jobs.run("--here", **{**wanted, "network": "rdma"}, name="refused")
    assert refused.rc == 76 and "NO_RDMA_NIC" in refused.err and refused.out == ""


DEVICES_API = "resource.k8s.io"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_cluster_with_an_older_api_of_devices(jobs, serving, version):
    server = serving(DEVICES_API, version)
    jobs.run("--here", env=server.env, workers=2, devices=claimed(2, 2), command=["true"]).ok()
    assert server.versions_asked(DEVICES_API) == {version}
    assert any(method == "POST" and "/resourceclaims" in path for _, method, path, _ in server.requests)


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
def test_cluster_without_an_api_of_devices(jobs, serving, mode):
    server = serving(DEVICES_API)
    result = jobs.run(*mode, env=server.env, devices=claimed(1, 1), command=["true"])
    assert result.rc == 69 and f"serves no {DEVICES_API}" in result.err and "Kubernetes 1.34" in result.err, result
    assert not [each for each in server.requests if each[1] == "POST" and "selfsubject" not in each[2]], server.requests
    if mode:
        jobs.run(*mode, env=server.env, command=["true"]).ok()  # that needs none
