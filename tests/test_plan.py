# SPDX-License-Identifier: Apache-2.0
"""drarun plan: what a job would claim and get, on captured machines."""
import json
import re

import pytest

RDMA = 'device.attributes["dra.net"].rdma == true'


@pytest.fixture
def spec(tmp_path):
    """A job spec of so many workers, GPUs and NICs each; more: further lines of spec."""
    def make(workers, gpus, nics, selector=RDMA, more=""):
        path = tmp_path / "job.yaml"
        path.write_text(f"""apiVersion: drarun.dev/v1alpha1
kind: DraJob
metadata: {{name: all-reduce}}
spec:
  workers: {workers}
  devices:
    gpus: {{count: {gpus}, class: gpu.nvidia.com}}
    nics: {{count: {nics}, class: dranet, selector: '{selector}'}}
{more}  image: example/nccl-tests
  command: [all_reduce_perf]
""")
        return path
    return make


def test_whole_nodes(drarun, machine, spec):
    result = drarun("plan", spec(2, 8, 8), *machine("a4-highgpu-8g", 2)).ok()
    assert "each GPU with a NIC of its PCIe root" in result.out
    assert "worker 0  node-0  gpu-0 pci-0000-91-00-0" in result.out
    assert "worker 1  node-1" in result.out
    assert "Ranks, 16 in all:" in result.out
    assert "workers 0 to 1: 8 GPUs, 8 NICs: 8 PIX; 400 GB/s of 400" in result.out
    assert "score of the job: 1.00" in result.out
    assert "profile gke-a4: node label" in result.out
    assert "  NCCL_NET=gIB\n" in result.out
    assert "MISALIGNED" not in result.out and result.err == ""


def test_halves_are_aligned_by_construction(drarun, machine, spec):
    result = drarun("plan", "-o", "json", spec(2, 4, 4), *machine("a4-highgpu-8g")).ok()
    answer = json.loads(result.out)
    plan = answer["plan"]
    paths = {path for worker in plan["workers"] for rank in worker["ranks"] for path in rank["path"]}
    assert paths == {"PIX"} and plan["jobScore"] == 1.0
    assert "SAME_NODE_PODS" in {warning["code"] for warning in plan["warnings"]}
    nic, = (need for need in answer["prediction"]["requests"] if need["requests"].startswith("nic-0"))
    assert nic["admitted"] == 8
    assert {"where": "class dranet", "term": "device.driver == 'dra.net'", "ruledOut": 8} in nic["terms"]


def test_roots_that_never_match_fall_back(drarun, machine, spec):
    """On this machine each device is alone under its root: preferred goes on without, required does not."""
    options = machine("azure-nd96isr-h100-v5")
    result = drarun("plan", spec(1, 4, 4, "true"), *options).ok()
    assert "without a constraint: no node can meet it" in result.out
    result = drarun("plan", spec(1, 4, 4, "true", "    align: required\n"), *options)
    assert result.rc == 75
    assert "no free devices share resource.kubernetes.io/pcieRoot" in result.out


def test_no_room_says_why(drarun, machine, spec):
    result = drarun("plan", spec(3, 8, 8), *machine("a4-highgpu-8g", 2))
    assert result.rc == 75
    assert "No room: worker 2 of 3 has no node" in result.out
    assert "taken by earlier workers on 2 nodes" in result.out


def test_selector_that_admits_nothing(drarun, machine, spec):
    selector = RDMA + ' && device.attributes["dra.net"].ifName == "eth7"'
    result = drarun("plan", spec(1, 1, 1, selector), *machine("a4-highgpu-8g"))
    assert result.rc == 75
    assert 'ruled out by request nic: device.attributes["dra.net"].ifName == "eth7"' in result.out


def test_explain(drarun, machine, spec):
    result = drarun("plan", spec(2, 8, 8), "--explain", *machine("a4-highgpu-8g", 2)).ok()
    after = result.out.split("  NCCL_NET=gIB\n")[1]
    assert after.lstrip().startswith("because ")
    assert "rule " in after.split("NCCL_CROSS_NIC")[0]


def test_with_a_sites_profile(drarun, machine, spec, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("""profiles:
- name: ours
  detect: {instanceType: [a4-*]}
  variables: [{name: NCCL_IB_TC, value: "96", reason: our switches}]
""")
    words = spec(1, 1, 1), "--profiles", site, "--explain", *machine("a4-highgpu-8g")
    result = drarun("plan", *words).ok()
    assert "profile ours: node label" in result.out and "our switches" in result.out
    assert "  NCCL_IB_TC=96\n" in result.out and "gIB" not in result.out
    site.write_text("profiles:\n- {name: ours, speed: 3}\n")
    result = drarun("plan", *words)
    assert result.rc == 65 and f'{site}: profile ours: unknown key "speed"' in result.err
    site.write_text("--- {}\n--- {}\n")
    result = drarun("plan", *words)
    assert result.rc == 65 and "expected one document, got 2" in result.err


def hybrid(spec, workers, gpus, nics, more=""):
    path = spec(workers, gpus, nics, more=more)
    path.write_text(path.read_text().replace("class: gpu.nvidia.com", "resource: nvidia.com/gpu"))
    return path


def test_gpus_of_a_device_plugin(drarun, machine, spec):
    """In no slice: what is known of the job is planned, and what is left to the pod is said."""
    words = hybrid(spec, 2, 8, 8), *machine("a4-highgpu-8g", 2)
    plan = json.loads(drarun("plan", "-o", "json", *words).ok().out)["plan"]
    assert plan["refuse"] is None and plan["profile"] == "gke-a4" and plan["env"]["NCCL_NET"] == "gIB"
    # MPI keeps to TCP: the job has GPUs
    assert plan["env"]["UCX_TLS"] == "tcp,sm,self"
    assert [worker["pluginGpus"] for worker in plan["workers"]] == [8, 8]
    assert [len(worker["nics"]) for worker in plan["workers"]] == [8, 8]
    assert all(worker["ranks"] == [] and worker["score"] is None for worker in plan["workers"])
    codes = {warning["code"] for warning in plan["warnings"]}
    assert "GPUS_BY_DEVICE_PLUGIN" in codes and not codes & {"FEWER_NICS_THAN_GPUS", "NO_GPU"}
    text = drarun("plan", *words).ok().out
    assert "NICs, for 16 ranks on GPUs by the device plugin:" in text
    assert "WORKER  NIC        PCI           NUMA  RAIL" in text
    assert "1       gpu7rdma0" in text


def test_fewer_nics_than_plugin_gpus(drarun, machine, spec):
    result = drarun("plan", hybrid(spec, 1, 8, 4), *machine("a4-highgpu-8g")).ok()
    assert "FEWER_NICS_THAN_GPUS, worker 0: 4 NICs for 8 GPUs" in result.out
    assert "8 GPUs by the device plugin, 4 NICs: paired in the pod" in result.out


@pytest.mark.parametrize("workers,gpus,nics,more,advised", [
    (1, 8, 8, "", True),
    (1, 8, 8, "    align: required\n", True),
    (3, 8, 8, "", True),  # without room it matters most
    (1, 8, 8, "    align: none\n", False),
    (1, 4, 4, "", False),
    (1, 4, 8, "", False),  # four pairs are cheap
], ids=str)
def test_advice_for_whole_nodes(drarun, machine, spec, workers, gpus, nics, more, advised):
    words = spec(workers, gpus, nics, more=more), *machine("a4-highgpu-8g")
    assert ('Advice: the NICs of a worker are all that a node has: "nics: {count: all}"'
            in drarun("plan", *words).out) == advised
    assert ("advice" in json.loads(drarun("plan", "-o", "json", *words).out)) == advised


def test_no_advice_where_nics_are_left(drarun, machine, spec):
    """A machine with more NICs than the worker takes: the constraint chooses."""
    assert "Advice" not in drarun("plan", spec(1, 8, 8, "true"), *machine("dgx-h100")).out


def test_without_slices(drarun, spec):
    result = drarun("plan", spec(2, 8, 8)).ok()
    assert "2 workers, each with 8 GPUs of class gpu.nvidia.com and 8 NICs of class dranet" in result.out
    assert "--slices" in result.out


@pytest.mark.parametrize("words,rc,said", [
    ((), 64, "expected one file"),
    (("a.yaml", "b.yaml"), 64, "expected one file"),
    (("--slice", "x", "a.yaml"), 64, "--slices"),
    (("/no/such.yaml",), 65, "/no/such.yaml"),
], ids=["none", "two", "option", "absent"])
def test_usage(drarun, words, rc, said):
    result = drarun("plan", *words)
    assert result.rc == rc and said in result.err


def test_what_is_taken_or_tainted(drarun, machine, spec, tmp_path):
    """Devices that claims hold and that DeviceTaintRules taint are not predicted."""
    options = machine("a4-highgpu-8g")
    before = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), *options).ok().out)
    gpu, nic = before["prediction"]["workers"][0]["results"]
    claim = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "held"}, "spec": {},
             "status": {"allocation": {"devices": {"results": [gpu]}}}}
    claims = tmp_path / "claims.json"
    claims.write_text(json.dumps({"kind": "List", "items": [claim]}))
    after = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), *options, "--claims", claims).ok().out)
    assert gpu not in after["prediction"]["workers"][0]["results"]
    rule = {"kind": "DeviceTaintRule", "apiVersion": "resource.k8s.io/v1beta2", "metadata": {"name": "bad"}, "spec": {
        "deviceSelector": {key: nic[key] for key in ("driver", "pool", "device")},
        "taint": {"key": "example.com/bad", "effect": "NoSchedule"}}}
    slices = json.loads(open(options[options.index("--slices") + 1], encoding="utf-8").read())
    slices["items"] += [claim, rule]
    together = tmp_path / "together.json"
    together.write_text(json.dumps(slices))
    both = json.loads(drarun("plan", "-o", "json", spec(1, 1, 1), "--slices", together).ok().out)
    assert both["prediction"]["notPredicted"] == []
    assert gpu not in both["prediction"]["workers"][0]["results"]
    assert nic not in both["prediction"]["workers"][0]["results"]
    assert both["prediction"]["requests"][1]["tainted"] == 1
    rule["spec"]["deviceSelector"] = {"selectors": [{"cel": {"expression": "true"}}]}
    together.write_text(json.dumps(slices))
    result = drarun("plan", spec(1, 1, 1), "--slices", together).ok()
    assert "Not predicted: DeviceTaintRule bad selects by more than driver, pool and device" in result.out


def test_files_of_the_wrong_kind(drarun, machine, spec):
    words = machine("a4-highgpu-8g")
    result = drarun("plan", spec(1, 1, 1), "--slices", words[3])
    assert result.rc == 65 and "expected objects of kind ResourceSlice, got Node" in result.err


def test_selector_that_fails(drarun, machine, spec):
    result = drarun("plan", spec(1, 1, 1, 'device.attributes["dra.net"].speed > 3'), *machine("a4-highgpu-8g"))
    assert result.rc == 65 and "the scheduler gives up" in result.err


@pytest.mark.plain("minutes for what is a matter of size")
def test_a_thousand_nodes(drarun, machine, spec):
    """The goal is 1 s and 300 MB for workers of 8 GPUs and 8 NICs (benchmarks/plan)."""
    result = drarun("plan", "-o", "json", spec(1000, 8, 8), *machine("a4-highgpu-8g", 1000), timeout=60).ok()
    assert len(json.loads(result.out)["plan"]["workers"]) == 1000


@pytest.mark.parametrize("name,where,nodes,shows", [
    ("two-by-two", "a4-highgpu-8g", 1, ["2 GPUs, 2 NICs: 2 PIX; 100 GB/s of 100", "NCCL_NET=gIB"]),
    ("half-nodes-aligned", "a4-highgpu-8g", 2, ["workers 0 to 3: 4 GPUs, 4 NICs: 4 PIX; 200 GB/s of 200"]),
    ("whole-nodes", "a4-highgpu-8g", 2, ["8 GPUs from a device plugin", "drarun env tells there", "NCCL_NET=gIB",
                                         "8 GPUs by the device plugin, 8 NICs: paired in the pod", "for 16 ranks"]),
    ("renamed-interface", "a3-ultragpu-8g", 1, ["1 NIC of class dranet", "worker 1  node-0",
                                                "1 GPUs by the device plugin, 1 NICs: paired in the pod"]),
    ("ray-all-nic", "a4-highgpu-8g", 2, ["all NICs of class dranet", "worker 1  node-1", "paired in the pod"]),
    ("compute-domain", "a4x-highgpu-4g", 4, ["NCCL_MNNVL_ENABLE=1", ": workers 0-3, ranks 0-15\n",
                                             "4 GPUs, 4 NICs: 4 P2C; 200 GB/s of 200"]),
], ids=lambda value: value if isinstance(value, str) else "")
def test_examples(drarun, machine, source, name, where, nodes, shows):
    """Each scenario on the machine that it is for."""
    result = drarun("plan", source / "examples" / "jobs" / f"{name}.yaml", *machine(where, nodes)).ok()
    for text in shows:
        assert text in result.out, result.out
    for code in ("MISALIGNED", "IMEX_CHANNEL_MISSING", "Refused"):
        assert code not in result.out


def test_class_of_the_cluster(drarun, machine, source, tmp_path):
    spec = source / "examples" / "jobs" / "queued-torchrun.yaml"
    words = ["plan", spec, "--workers", 2, *machine("a4-highgpu-8g", 2)]
    result = drarun(*words)
    assert result.rc == 65 and "no DeviceClass mrdma.google.com is known here" in result.err
    classes = tmp_path / "classes.yaml"
    classes.write_text("""apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mrdma.google.com}
spec:
  selectors: [{cel: {expression: 'device.driver == "dra.net" && device.attributes["dra.net"].rdma'}}]
""")
    result = drarun(*words, "--classes", classes).ok()
    assert "request nic" in result.out or "nic-0" in result.out
    assert "worker 1  node-1" in result.out


def test_captured_cluster(drarun, source):
    """One file with slices and nodes is enough."""
    result = drarun("plan", source / "examples/jobs/half-nodes-aligned.yaml", "--slices",
                    source / "examples/clusters/a4-two-nodes.json").ok()
    assert "workers 0 to 3: 4 GPUs, 4 NICs: 4 PIX; 200 GB/s of 200" in result.out
    assert "profile gke-a4: node label" in result.out


def test_a_picture_of_a_worker(drarun, source):
    words = "plan", source / "examples/jobs/half-nodes-aligned.yaml"
    slices = "--slices", source / "examples/clusters/a4-two-nodes.json"
    first, last = (drarun(*words, *slices, "-o", "svg", *more).ok().out for more in ([], ["--worker", 3]))
    for picture, marked, plain in ((first, "GPU0", "GPU7"), (last, "GPU7", "GPU0")):
        found = re.findall(r'class="gpu (claimed|other)"/>\n<text [^>]*>(GPU\d)<', picture)
        boxes = {name: kind for kind, name in found}
        assert len(boxes) == 8 and boxes[marked] == "claimed" and boxes[plain] == "other", boxes
        assert (picture.count('class="nic claimed"'), picture.count('class="link pix"')) == (4, 1 + 4)  # the legend's
    plugin = drarun("plan", source / "examples/jobs/whole-nodes.yaml", *slices, "-o", "svg").ok().out
    assert 'class="nic"' in plugin and 'class="gpu"' in plugin and plugin.count('class="link ') == 4 + 8
    for more, rc, says in [((*slices, "--worker", 4), 64, "expected one of the job's 4"), ((), 64, "ResourceSlices"),
                           ((*slices, "--workers", 400), 75, "no room: worker 4 of 400")]:
        result = drarun(*words, *more, "-o", "svg")
        assert (result.rc, result.out) == (rc, "") and says in result.err, result
    assert "--worker is for --output svg" in drarun(*words, "--worker", 1).err
