# SPDX-License-Identifier: Apache-2.0
"""The derivation's rules on vectors that are changed in one point, and `drarun env` on files."""
import copy
import json
import os
import subprocess

import pytest

from support.build import patience
from support.sysfs_tree import make_tree

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def load(kind, name):
    with open(os.path.join(DATA, kind, name + ".json")) as file:
        return json.load(file)


@pytest.fixture
def vector():
    def get(name):
        return copy.deepcopy(load("vectors", name))
    return get


@pytest.fixture
def derive(build, tmp_path):
    """Runs the vector and gives what came out in place of what it expects, by the differences."""
    def run(vector):
        folder = tmp_path / "vectors"
        folder.mkdir(exist_ok=True)
        fixtures = tmp_path / "fixtures"
        if not fixtures.exists():
            fixtures.symlink_to(os.path.join(DATA, "fixtures"))
        (folder / "v.json").write_text(json.dumps(vector))
        done = subprocess.run([build / "bin" / "drarun-vectors", "--strict", folder], capture_output=True,
                              text=True, timeout=patience())
        return done.stdout
    return run


def passes(out):
    assert "1 passed, 0 failed" in out, out


def warn(vector, code, worker):
    vector["expect"]["warnings"].append({"code": code, "worker": worker, "detail": ""})


def refuse(vector, code, worker, warnings=()):
    vector["expect"] = {"refuse": {"code": code, "worker": worker, "detail": ""}, "warnings": list(warnings)}


def results(worker, claim):
    return worker["claims"][claim]["status"]["allocation"]["devices"]["results"]


def test_a_wrong_expectation_is_told(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    v["expect"]["env"]["NCCL_IB_TC"] = "53"
    v["expect"]["workers"][1]["ranks"][0]["nics"] = ["mlx5_1"]
    warn(v, "GDR_UNAVAILABLE", 0)
    out = derive(v)
    assert '.env.NCCL_IB_TC: expected "53", got "52"' in out
    assert '.workers[1].ranks[0].nics[0]: expected "mlx5_1", got "mlx5_0"' in out
    assert "GDR_UNAVAILABLE" in out and "0 passed, 1 failed" in out


def test_without_a_probe(vector, derive):
    """Names of IB devices and CPUs are not known, all else is."""
    v = vector("01-a4-2gpu-2nic")
    for w, worker in enumerate(v["input"]["workers"]):
        del worker["probe"]
        warn(v, "IBDEV_UNKNOWN", w)
        for i, rank in enumerate(v["expect"]["workers"][w]["ranks"]):
            rank["cpus"] = None
            rank["nics"] = [f"gpu{i}rdma0"]
    passes(derive(v))


def test_profile_file_missing(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    v["input"]["workers"][1]["probe"]["files"]["/usr/local/gib/configs/tuner_config_a4.txtpb"] = False
    del v["expect"]["env"]["NCCL_TUNER_CONFIG_PATH"]
    warn(v, "PROFILE_FILE_MISSING", 1)
    passes(derive(v))


def test_device_not_in_slices(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    results(v["input"]["workers"][1], 1)[0]["device"] = "pci-0000-00-00-0"
    refuse(v, "DEVICE_NOT_IN_SLICES", 1)
    passes(derive(v))


def test_no_gpu(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    results(v["input"]["workers"][0], 0).clear()
    refuse(v, "NO_GPU", 0)
    passes(derive(v))


def test_mixed_profiles(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    other = vector("06-a3u-1gpu-1nic-renamed")
    v["nodes"].update(other["nodes"])
    v["input"]["workers"].append(other["input"]["workers"][1])
    refuse(v, "MIXED_PROFILES", 2)
    passes(derive(v))


def test_a_claim_that_is_not_allocated(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    del v["input"]["workers"][1]["claims"][0]["status"]["allocation"]
    assert "worker 1 nccl-gib-test-1: claim nccl-gib-test-1-gpu-x7k2p is not allocated" in derive(v)


def test_not_an_rdma_nic(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    for w, worker in enumerate(v["input"]["workers"]):
        entry = dict(results(worker, 1)[0], device="pci-0000-00-13-0")
        results(worker, 1).append(entry)
        warn(v, "NIC_NOT_RDMA", w)
    passes(derive(v))


def test_cliques_differ(vector, derive):
    v = vector("14-a4x-computedomain")
    v["nodes"]["gke-a4x-1"]["labels"] = {"nvidia.com/gpu.clique": "other.1"}
    v["expect"]["env"]["NCCL_MNNVL_ENABLE"] = "2"
    del v["expect"]["env"]["NCCL_CUMEM_ENABLE"]
    warn(v, "IMEX_CLIQUE_MISMATCH", None)
    passes(derive(v))


def test_gdr_level_by_version(vector, derive):
    """Before 2.29.2 the recipes' PIX passes on a chip-to-chip path; 2.26 calls the path PHB."""
    v = vector("14-a4x-computedomain")
    v["input"]["launcher"]["ncclVersion"] = "2.28.9"
    v["expect"]["env"]["NCCL_NET_GDR_LEVEL"] = "PIX"
    passes(derive(v))
    v["input"]["launcher"]["ncclVersion"] = "2.26.6"
    for worker in v["expect"]["workers"]:
        worker["score"] = 0.7
        for rank in worker["ranks"]:
            rank["path"] = ["PHB"]
    v["expect"]["jobScore"] = 0.7
    passes(derive(v))


def test_gid_index(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    for w, worker in enumerate(v["input"]["workers"]):
        for ibdev in worker["probe"]["ibdevs"].values():
            ibdev["gidIndex"] = 5
        v["expect"]["workers"][w]["env"] = {"NCCL_IB_GID_INDEX": "5", "UCX_IB_GID_INDEX": "5"}
        warn(v, "GID_INDEX_DIFFERS", w)
    passes(derive(v))
    v["input"]["workers"][1]["probe"]["ibdevs"]["mlx5_1"]["gidIndex"] = 6
    v["expect"]["workers"][1]["env"] = {}
    passes(derive(v))


def test_uneven_workers(vector, derive):
    v = vector("01-a4-2gpu-2nic")
    worker = v["input"]["workers"][1]
    results(worker, 0).pop()
    results(worker, 1).pop()
    worker["probe"]["visibleIbdevs"] = ["mlx5_0"]
    worker["probe"]["visibleGpus"] = 1
    ranks = v["expect"]["workers"][1]["ranks"]
    ranks.pop()
    ranks[0]["cpus"] = "0-55,112-167"
    ranks[0]["env"].update(LOCAL_WORLD_SIZE="1", CUDA_VISIBLE_DEVICES="0")
    for worker in v["expect"]["workers"]:
        for rank in worker["ranks"]:
            rank["env"]["WORLD_SIZE"] = "3"
    for code in ("UNEVEN_GPUS", "UNEVEN_NICS", "RAIL_MISMATCH"):
        warn(v, code, 1)
    passes(derive(v))


def test_one_mig_device_a_rank(vector, derive):
    """Slices of two GPUs: one UUID a rank, which is its own CUDA device 0."""
    v = vector("13-mig-same-parent-refused")
    worker = v["input"]["workers"][0]
    results(worker, 0)[1]["device"] = "gpu-4-mig-3g40gb-9-0"
    uuids = {d["name"]: d["attributes"]["uuid"]["string"]
             for d in load("fixtures", "dgx-h100")["resourceSlices"][0]["spec"]["devices"]}
    expect = vector("11-dgx-h100-8x8-shared")["expect"]
    ranks = []
    for i, (name, pci, path) in enumerate([("gpu-0-mig-3g40gb-9-0", "0000:1b:00.0", "PXB"),
                                           ("gpu-4-mig-3g40gb-9-0", "0000:9d:00.0", "SYS")]):
        ranks.append({
            "rank": i, "localRank": i, "gpu": name, "uuid": uuids[name], "pci": pci, "numa": i,
            "nics": ["mlx5_0"], "path": [path], "gdr": [path == "PXB"], "rails": [0],
            "cpus": ["0-55,112-167", "56-111,168-223"][i],
            "env": {"RANK": str(i), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                    "CUDA_VISIBLE_DEVICES": uuids[name]}})
    v["expect"] = {
        "refuse": None, "profile": "generic-ib", "env": expect["env"], "prepend": {},
        "workers": [{"worker": 0, "pod": "w-0", "env": {"NCCL_IB_HCA": "=mlx5_0:1"}, "ranks": ranks,
                     "score": 0.375}],  # both share 50 GB/s: 25, and half of 25
        "jobScore": 0.375, "warnings": []}
    for code in ("MIG_NO_P2P", "FEWER_NICS_THAN_GPUS", "MISALIGNED_SYS"):
        warn(v, code, 0)
    passes(derive(v))


def test_crossed_sockets(vector, derive):
    """Four lower GPUs with four upper NICs: the socket link limits all of them together."""
    v = vector("03-a4-4x4-aligned")
    workers = v["input"]["workers"]
    workers[0]["claims"][1], workers[2]["claims"][1] = workers[2]["claims"][1], workers[0]["claims"][1]
    workers[0]["probe"], workers[2]["probe"] = workers[2]["probe"], workers[0]["probe"]
    out = derive(v)
    assert '.workers[0].score: expected 1.0, got 0.2' in out
    assert '.workers[0].ranks[0].path[0]: expected "PIX", got "SYS"' in out


def test_azure_without_its_topology_file(vector, derive):
    v = vector("16-azure-ndv5-4x4-aligned")
    del v["expect"]["env"]["NCCL_TOPO_FILE"]
    for w, worker in enumerate(v["input"]["workers"]):
        worker["probe"]["files"] = {}
        del worker["probe"]["topoFilePairs"]
        warn(v, "PROFILE_FILE_MISSING", w)
        v["expect"]["workers"][w]["score"] = 0.7
        # all four NICs are equally near: spread by mirrored index
        for rank, nic in zip(v["expect"]["workers"][w]["ranks"], (0, 2, 1, 3)):
            rank.update(nics=[f"mlx5_{nic}"], rails=[nic], path=["PHB"], gdr=[False])
            warn(v, "MISALIGNED_PHB", w)
    v["expect"]["jobScore"] = 0.7
    passes(derive(v))


def test_mpi_on_rdma_without_gpus(vector, derive):
    v = vector("11-dgx-h100-8x8-shared")
    v["input"]["launcher"].update(gpus=0, ranksPerPod="pod")
    expect = v["expect"]
    for name in ("UCX_NET_DEVICES", "OMPI_MCA_coll_hcoll_enable"):
        del expect["env"][name]
    for w, worker in enumerate(v["input"]["workers"]):
        del worker["claims"][0]
        env = expect["workers"][w]["env"]
        env.update(UCX_NET_DEVICES=env["NCCL_IB_HCA"][1:], RANK=str(w), WORLD_SIZE="2")
        nics = [name.partition(":")[0] for name in env["NCCL_IB_HCA"][1:].split(",")]
        expect["workers"][w].update(ranks=[], nics=nics, score=None)
    expect["jobScore"] = None
    passes(derive(v))


def test_old_shapes(vector, derive):
    """v1beta1 slices of mid-2025: GPUs by index, NICs by the names of their interfaces."""
    v = vector("01-a4-2gpu-2nic")
    for node in v["nodes"].values():
        node["fixture"] = "fixtures/a4-highgpu-8g-v1beta1.json"
    for w, worker in enumerate(v["input"]["workers"]):
        for i, result in enumerate(results(worker, 1)):
            result["device"] = f"gpu{i}rdma0"
        for claim in worker["claims"]:
            claim["apiVersion"] = "resource.k8s.io/v1beta1"
        for rank in v["expect"]["workers"][w]["ranks"]:
            rank.update(pci=None, numa=None, cpus=None)
        warn(v, "NUMA_UNKNOWN", w)
    passes(derive(v))


# ---- a vendor's script ----

GIB = "/usr/local/gib/scripts/set_nccl_env.sh"
TABLE = {  # of gke-a4, without the rows that stay beside a script
    "NCCL_CROSS_NIC": "0", "NCCL_NET_GDR_LEVEL": "PIX", "NCCL_P2P_NET_CHUNKSIZE": "131072",
    "NCCL_NVLS_CHUNKSIZE": "524288", "NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_IB_QPS_PER_CONNECTION": "4",
    "NCCL_IB_TC": "52", "NCCL_IB_FIFO_TC": "84",
    "NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner_config_a4.txtpb"}


@pytest.fixture
def scripted(vector):
    """Vector 01 with what the script is said to have set on each worker."""
    def get(*environments):
        v = vector("01-a4-2gpu-2nic")
        for worker, environment in zip(v["input"]["workers"], environments * 2):
            worker["probe"]["script"] = {"path": GIB, **environment}
        return v
    return get


def test_script_as_the_table(scripted, derive):
    passes(derive(scripted({"env": {"NCCL_NET": "gIB", **TABLE}})))


def test_script_of_another_release(scripted, derive):
    """A value changed, one is new, one is gone; NCCL_NET stays, which no script may leave to chance."""
    script = {**TABLE, "NCCL_IB_TC": "60", "NCCL_P2P_NVL_CHUNKSIZE": "262144"}
    del script["NCCL_NVLS_CHUNKSIZE"]
    v = scripted({"env": script})
    v["expect"]["env"].update(NCCL_IB_TC="60", NCCL_P2P_NVL_CHUNKSIZE="262144")
    del v["expect"]["env"]["NCCL_NVLS_CHUNKSIZE"]
    for _ in range(3):
        warn(v, "VENDOR_SCRIPT_DIFFERS", None)
    passes(derive(v))


def test_script_does_not_decide_for_us(scripted, derive):
    """Interfaces and the user's own values stand above it."""
    v = scripted({"env": {**TABLE, "NCCL_SOCKET_IFNAME": "eth0,eth1", "NCCL_IB_TC": "60"}})
    v["input"]["launcher"]["userEnv"] = {"NCCL_IB_TC": "7"}
    v["expect"]["env"]["NCCL_IB_TC"] = "7"
    for _ in range(2):
        warn(v, "VENDOR_SCRIPT_DIFFERS", None)
    warn(v, "USER_OVERRIDES_PROFILE", None)
    passes(derive(v))


def test_script_and_the_gid_index(scripted, derive):
    v = scripted({"env": {**TABLE, "NCCL_IB_GID_INDEX": "3"}})
    v["expect"]["env"]["NCCL_IB_GID_INDEX"] = "3"
    warn(v, "VENDOR_SCRIPT_DIFFERS", None)
    for w, worker in enumerate(v["input"]["workers"]):
        for ibdev in worker["probe"]["ibdevs"].values():
            ibdev["gidIndex"] = 5
        v["expect"]["workers"][w]["env"] = {"NCCL_IB_GID_INDEX": "5", "UCX_IB_GID_INDEX": "5"}
        warn(v, "GID_INDEX_DIFFERS", w)
    warn(v, "VENDOR_SCRIPT_DIFFERS", None)
    passes(derive(v))


@pytest.mark.parametrize("path,expected,differs", [
    ("/usr/local/gib/lib64:", "/usr/local/gib/lib64:/usr/local/nvidia/lib64", False),
    ("/new:/usr/local/gib/lib64", "/new:/usr/local/gib/lib64:/usr/local/nvidia/lib64", True),
    ("::", "/usr/local/gib/lib64:/usr/local/nvidia/lib64", False),
])
def test_script_and_the_library_path(scripted, derive, path, expected, differs):
    """Both are searched, the script's first; an empty element would be the current directory."""
    v = scripted({"env": {**TABLE, "LD_LIBRARY_PATH": path}})
    v["expect"]["prepend"]["LD_LIBRARY_PATH"] = expected
    if differs:
        warn(v, "VENDOR_SCRIPT_DIFFERS", None)
    passes(derive(v))


def test_script_that_was_not_used(scripted, derive):
    v = scripted({"reason": "ended with status 1"})
    for w in range(2):
        warn(v, "VENDOR_SCRIPT_NOT_USED", w)
    passes(derive(v))


def test_scripts_that_disagree(scripted, derive):
    v = scripted({"env": TABLE}, {"env": {**TABLE, "NCCL_IB_TC": "60"}})
    warn(v, "VENDOR_SCRIPT_DIFFERS", 1)
    passes(derive(v))


@pytest.mark.parametrize("script,says", [
    ([], "script: expected an object"),
    ({"env": {}}, "script.path"),
    ({"path": GIB}, "env, or the reason"),
    ({"path": GIB, "env": {}, "reason": "both"}, "env, or the reason"),
    ({"path": GIB, "env": []}, "env: expected an object"),
    ({"path": GIB, "env": {"A;reboot": "1"}}, "script.env: expected names"),
])
def test_script_of_a_wrong_shape(vector, derive, script, says):
    v = vector("01-a4-2gpu-2nic")
    v["input"]["workers"][0]["probe"]["script"] = script
    assert says in derive(v)


# ---- drarun env ----

@pytest.fixture
def files(tmp_path, vector):
    """The first worker of a vector as kubectl would print it; options for `drarun env`."""
    def write(name, fixture):
        worker = vector(name)["input"]["workers"][0]
        node = load("fixtures", fixture)
        slices = json.loads(json.dumps(node["resourceSlices"]).replace(node["node"]["name"], worker["node"]))
        documents = {
            "claims": {"kind": "List", "items": worker["claims"]},
            "slices": {"kind": "List", "items": slices},
            "nodes": {"kind": "Node", "metadata": {"name": worker["node"], "labels": node["node"]["labels"]}},
            "probe": worker["probe"],
        }
        options = []
        for option, document in documents.items():
            path = tmp_path / f"{option}.json"
            path.write_text(json.dumps(document))
            options += [f"--{option}", path]
        return options
    return write


@pytest.fixture
def env(build):
    def run(*options, variables=()):
        return subprocess.run([build / "bin" / "drarun", "env", *options], capture_output=True, text=True,
                              timeout=patience(), env={"PATH": os.environ["PATH"], **dict(variables)})
    return run


def test_env_is_for_eval(files, env):
    done = env(*files("01-a4-2gpu-2nic", "a4-highgpu-8g"), "--explain")
    assert done.returncode == 0, done.stderr
    assert "gke-a4" in done.stderr and "2 PIX" in done.stderr
    script = done.stdout + "\nenv -0"
    shell = subprocess.run(["sh", "-eu"], input=script, capture_output=True, text=True,
                           env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": "/mine"})
    got = dict(item.split("=", 1) for item in shell.stdout.split("\0") if "=" in item)
    assert got["NCCL_NET"] == "gIB" and got["NCCL_SOCKET_IFNAME"] == "eth0"
    assert got["LD_LIBRARY_PATH"] == "/usr/local/gib/lib64:/usr/local/nvidia/lib64:/mine"
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} & set(got)


@pytest.mark.parametrize("before", [{}, {"LD_LIBRARY_PATH": "/mine"}, {"LD_LIBRARY_PATH": ""},
                                    {"NCCL_NET": "Socket", "LD_LIBRARY_PATH": "/a:/usr/local/gib/lib64:/usr/local/nvidia/lib64"}])
def test_env_of_a_command_is_what_a_shell_gets(files, env, build, before):
    """`drarun env -- COMMAND` and `eval "$(drarun env)"`; a second time changes nothing."""
    options = files("01-a4-2gpu-2nic", "a4-highgpu-8g")
    shell = subprocess.run(["sh", "-eu"], input=env(*options, variables=before).stdout + "\nexec env -0",
                           capture_output=True, text=True, env={"PATH": os.environ["PATH"], **before})
    again = ["--", build / "bin" / "drarun", "env", *options]
    for words in ([], again):
        done = env(*options, *words, "--", "env", "-0", variables=before)
        assert done.returncode == 0, done.stderr
        got, wanted = [{each for each in text.split("\0") if each and not each.startswith(("_=", "PWD="))}
                       for text in (done.stdout, shell.stdout)]
        assert got == wanted


@pytest.mark.parametrize("options,line", [
    (["--hca-list", "always"], r"NCCL_IB_HCA==mlx5_0:1,mlx5_1:1"), (["--hca-list", "never"], None),
    (["--mpi", "rdma"], "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1"), (["--mpi", "tcp"], "UCX_NET_DEVICES=eth0"),
])
def test_env_as_the_spec_says(files, env, options, line):
    lines = env(*files("01-a4-2gpu-2nic", "a4-highgpu-8g"), *options, "--format", "docker").stdout.splitlines()
    assert (line in lines) if line else not [each for each in lines if each.startswith("NCCL_IB_HCA=")]


@pytest.mark.parametrize("before,after", [
    ({}, "/usr/local/gib/lib64:/usr/local/nvidia/lib64"),
    ({"LD_LIBRARY_PATH": ""}, "/usr/local/gib/lib64:/usr/local/nvidia/lib64"),
    ({"LD_LIBRARY_PATH": "/a b:/it's"}, "/usr/local/gib/lib64:/usr/local/nvidia/lib64:/a b:/it's"),
    ({"LD_LIBRARY_PATH": "/x/usr/local/gib/lib64:/usr/local/nvidia/lib64"},
     "/usr/local/gib/lib64:/usr/local/nvidia/lib64:/x/usr/local/gib/lib64:/usr/local/nvidia/lib64"),
])
def test_env_twice_is_env_once(files, env, before, after):
    """Nothing is put before the image's paths a second time; what a user put before ours stays there."""
    def evaluated(script, variables):
        shell = subprocess.run(["sh", "-eu"], input=script + "\nenv -0", capture_output=True, text=True,
                               env={"PATH": os.environ["PATH"], **variables})
        assert shell.stderr == ""
        return dict(item.split("=", 1) for item in shell.stdout.split("\0") if "=" in item)

    options = files("01-a4-2gpu-2nic", "a4-highgpu-8g")
    once = evaluated(env(*options, variables=before).stdout, before)
    assert once["LD_LIBRARY_PATH"] == after
    assert evaluated(env(*options, variables=once).stdout, once) == once
    mine = {**once, "LD_LIBRARY_PATH": "/mine:" + after}
    assert evaluated(env(*options, variables=mine).stdout, mine)["LD_LIBRARY_PATH"] == "/mine:" + after
    docker = [line for line in env(*options, "--format", "docker", variables=once).stdout.splitlines()
              if line.startswith("LD_LIBRARY_PATH=")]
    assert docker == ["LD_LIBRARY_PATH=/usr/local/gib/lib64:/usr/local/nvidia/lib64"]


def test_env_formats(files, env):
    options = files("16-azure-ndv5-4x4-aligned", "azure-nd96isr-h100-v5")
    plan = json.loads(env(*options, "--format", "json", "--explain").stdout)
    assert plan["profile"] == "azure-ndv5"
    assert plan["workers"][0]["explain"]["NCCL_IB_HCA"]["rule"] == "hca-list"
    assert all(entry["reason"] for entry in plan["explain"].values())
    conf = env(*options, "--format", "nccl.conf").stdout.splitlines()
    assert "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1" in conf
    assert all(line.startswith("NCCL_") for line in conf)
    assert "UCX_NET_DEVICES=eth0" in env(*options, "--format", "docker").stdout.splitlines()


def test_env_user_wins(files, env):
    done = env(*files("01-a4-2gpu-2nic", "a4-highgpu-8g"), variables={"NCCL_IB_TC": "7"})
    assert "export NCCL_IB_TC='7'" in done.stdout
    assert "USER_OVERRIDES_PROFILE" in done.stderr


def test_env_knows_its_own_values(files, env):
    """What an earlier eval set is not the user's; what was changed after it is."""
    options = files("01-a4-2gpu-2nic", "a4-highgpu-8g")
    first = env(*options, variables={"NCCL_IB_TC": "7"})
    shell = subprocess.run(["sh", "-eu"], input=first.stdout + "\nexport NCCL_CROSS_NIC=1\nenv -0", text=True,
                           capture_output=True, env={"PATH": os.environ["PATH"], "NCCL_IB_TC": "7"})
    got = dict(item.split("=", 1) for item in shell.stdout.split("\0") if "=" in item)
    second = env(*options, variables=got)
    assert "export NCCL_IB_TC='7'" in second.stdout and "export NCCL_CROSS_NIC='1'" in second.stdout
    assert "export NCCL_NET_GDR_LEVEL='PIX'" in second.stdout
    overridden = [line for line in second.stderr.splitlines() if "USER_OVERRIDES_PROFILE" in line]
    assert any("NCCL_IB_TC" in line for line in overridden), second.stderr
    assert not any("NCCL_NET_GDR_LEVEL" in line or "NCCL_NVLS" in line for line in overridden), second.stderr


def make_pod(worker, name, namespace="train"):
    """The Pod of a worker of a vector as the API has it; the last claim is one that the scheduler made."""
    names = [claim["metadata"]["name"] for claim in worker["claims"]]
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": worker["node"], "resourceClaims": [
                {"name": "gpus", "resourceClaimTemplateName": "gpus"}]},
            "status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": names[0]}],
                       "extendedResourceClaimStatus": {"resourceClaimName": names[1], "requestMappings": []}}}


@pytest.fixture
def cluster(files, vector, tmp_path):
    """Options as `files` gives them, with the claims and Pods of two workers among those of others."""
    def write(*changes):
        options = files("01-a4-2gpu-2nic", "a4-highgpu-8g")
        workers = vector("01-a4-2gpu-2nic")["input"]["workers"]
        items = [{"kind": "ResourceClaim", "metadata": {"name": "waits", "namespace": "train"}, "status": {}}]
        for i, worker in enumerate(workers):
            items.append(make_pod(worker, f"w-{i}"))
            for claim in worker["claims"]:
                claim["metadata"]["namespace"] = "train"
                other = copy.deepcopy(claim)
                other["metadata"]["namespace"] = "other"
                other["status"]["allocation"]["devices"]["results"] = []
                items += [other, claim]
        for change in changes:
            change(items)
        (tmp_path / "claims.json").write_text(json.dumps({"kind": "List", "items": items}))
        return options
    return write


def test_env_of_a_pod_among_many(cluster, env):
    """Its claims are those that its status names, also the scheduler's own for extended resources."""
    done = env(*cluster(), "--pod", "w-0", "--format", "json")
    assert done.returncode == 0, done.stderr
    worker, = json.loads(done.stdout)["workers"]
    assert worker["pod"] == "w-0" and len(worker["ranks"]) == 2
    assert {nic for rank in worker["ranks"] for nic in rank["nics"]} == {"mlx5_0", "mlx5_1"}


def test_env_of_the_only_pod(cluster, env):
    def one(items):
        items.remove(next(item for item in items if item["metadata"]["name"] == "w-1"))
    assert "2 GPUs, 2 NICs: 2 PIX" in env(*cluster(one)).stderr


@pytest.mark.parametrize("change,options,says", [
    (None, [], "the files hold 2 Pods (w-0, w-1): name one of them"),
    (None, ["--pod", "w-2"], "pod w-2: the files of claims hold the Pods w-0, w-1"),
    (lambda items: items.clear() or items.append({"kind": "ResourceClaim", "metadata": {"name": "x"}}),
     ["--pod", "w-0"], "pod w-0: the files of claims hold no Pod"),
    (lambda items: items.__delitem__(slice(2, 6)), ["--pod", "w-0"],
     "pod w-0 holds the claim nccl-gib-test-0-gpu-"),
])
def test_env_of_which_pod(cluster, env, change, options, says):
    done = env(*cluster(*[change] if change else []), *options)
    assert done.returncode == 65 and says in done.stderr and done.stdout == "(exit 65)\n", done


@pytest.mark.parametrize("options,status,says", [
    (["--claims", "/none"], 64, "claims need slices"),
    (["--slices", "/none", "--claims", "/none"], 65, "/none"),
    (["--nccl-version", "two", "--network", "any"], 64, "NCCL version"),
    (["--format", "xml"], 64, "--format"),
    (["--profile", "moon", "--network", "any"], 65, 'no profile "moon"'),
    (["extra"], 64, "unexpected argument"),
    (["--network", "any", "--format", "json", "--", "true"], 64, "--output and --explain print"),
    (["--network", "any", "--explain", "--", "true"], 64, "--output and --explain print"),
    (["--network", "any", "--", "no-such-program"], 127, "no-such-program: No such file"),
    (["--network", "any", "--", "/"], 126, "/: Permission denied"),
    (["--", "echo", "started"], 65, "NO_RDMA_NIC"),
    (["--hca-list", "some"], 64, "--hca-list"),
    (["--mpi", "udp"], 64, "--mpi"),
])
def test_env_wrong_use(env, options, status, says, tmp_path):
    done = env("--root", tmp_path, *options)
    assert done.returncode == status and says in done.stderr, done.stderr
    assert done.stdout in ("", f"(exit {status})\n")  # nothing that eval would set


def test_env_refuses_an_empty_machine(env, tmp_path):
    done = env("--root", tmp_path)
    assert done.returncode == 65 and "NO_RDMA_NIC" in done.stderr
    assert env("--root", tmp_path, "--network", "any").returncode == 0


def test_env_with_a_sites_profile(files, env, tmp_path):
    site = tmp_path / "site.json"
    site.write_text(json.dumps({"profiles": [{
        "name": "ours", "detect": {"instanceType": ["a4-*"]},
        "variables": [{"name": "NCCL_IB_TC", "value": "96", "reason": "our switches"}]}]}))
    done = env(*files("01-a4-2gpu-2nic", "a4-highgpu-8g"), "--profiles", site, "--explain")
    assert "export NCCL_IB_TC='96'" in done.stdout and "our switches" in done.stdout
    assert "gIB" not in done.stdout


@pytest.mark.parametrize("fixture,profile,path,line", [
    ("a4-highgpu-8g", "gke-a4", "PIX", "8 GPUs, 8 NICs: 8 PIX; 400 GB/s of 400"),
    ("dgx-h100", "generic-ib", "PXB", "8 GPUs, 8 NICs: 8 PXB; 400 GB/s of 400"),  # and 4 of 200 Gb/s for storage
    ("oke-gb200-v3-4", "generic-roce", "P2C", "4 GPUs, 8 NICs: 4 P2C; 200 GB/s of 200"),
])
def test_env_of_a_captured_tree(env, tmp_path, fixture, profile, path, line):
    """No claims: what sysfs shows gives the same pairs as the slices do."""
    done = env("--root", make_tree(load("fixtures", fixture), tmp_path), "--format", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["profile"] == profile and plan["jobScore"] == 1.0 and line in done.stderr
    ranks = plan["workers"][0]["ranks"]
    assert {p for rank in ranks for p in rank["path"]} == {path}
    assert all(all(rank["gdr"]) and rank["cpus"] for rank in ranks)


ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


@pytest.mark.parametrize("names,want", [(["ens5"], "ens5"), ([], "eth0"), (["ens5", "ens6"], "ens5"), (["ens5", "eth0"], "eth0")])
def test_socket_interface_is_that_of_the_default_route(env, tmp_path, names, want):
    """Of two of the same metric eth0, else the first."""
    root = make_tree(load("fixtures", "dgx-h100"), tmp_path)
    for each in names:
        (root / "sys/class/net" / each).mkdir(exist_ok=True)
    (root / "proc/net").mkdir(parents=True, exist_ok=True)
    (root / "proc/net/route").write_text(ROUTES + "".join(
        f"{name}\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" for name in names))
    assert json.loads(env("--root", root, "--format", "json").stdout)["env"]["GLOO_SOCKET_IFNAME"] == want


@pytest.mark.parametrize("channels,mnnvl,code", [([0], "2", None), ([], "0", "IMEX_CHANNEL_MISSING")])
def test_imex_channel_is_a_device_file(env, tmp_path, channels, mnnvl, code):
    """Claims of a pod that asks for itself are not known, and not to whom the other pods belong."""
    root = make_tree(load("fixtures", "oke-gb200-v3-4"), tmp_path)
    folder = root / "dev/nvidia-caps-imex-channels"
    for each in folder.iterdir():
        each.unlink()
    for number in channels:
        (folder / f"channel{number}").touch()
    plan = json.loads(env("--root", root, "--format", "json").stdout)
    assert plan["env"]["NCCL_MNNVL_ENABLE"] == mnnvl and "NCCL_CUMEM_ENABLE" not in plan["env"]
    assert [w["code"] for w in plan["warnings"] if w["code"].startswith("IMEX")] == ([code] if code else [])


def test_env_of_a_captured_tree_with_efa(env, tmp_path):
    """EFA says "Unspecified" for its link layer, and NCCL's own network does not drive it."""
    done = env("--root", make_tree(load("fixtures", "aws-p4d-24xlarge"), tmp_path), "--format", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["profile"] == "aws-efa" and "8 GPUs, 4 NICs" in done.stderr
    assert plan["env"]["FI_PROVIDER"] == "efa" and "NCCL_NET" not in plan["env"]
    assert "NCCL_IB_HCA" not in plan["workers"][0]["env"]
