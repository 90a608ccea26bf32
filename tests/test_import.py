# SPDX-License-Identifier: Apache-2.0
"""drarun import on published manifests and on small ones; examples/jobs as specs."""
import json

import pytest
import yaml

from support.build import SOURCE

SEEDS = SOURCE / "tests/data/seeds"


@pytest.fixture
def imported(drarun, tmp_path):
    """imported(text or file, *program): (spec, notes), the result having been validated."""
    def run(what, *program):
        file = what
        if isinstance(what, str):
            file = tmp_path / "in.yaml"
            file.write_text(what)
        result = drarun("import", file, *program).ok()
        out = tmp_path / "out.yaml"
        out.write_text(result.out)
        drarun("validate", out).ok()
        assert "containers:" in drarun("render", out).ok().out
        return yaml.safe_load(result.out)["spec"], result.err
    return run


def first(spec):
    return spec["template"]["spec"]["containers"][0]


def test_gpus_by_index(imported):
    spec, notes = imported(SEEDS / "gpu-2x2.yaml")
    assert spec["workers"] == 2
    assert spec["devices"] == {"gpus": {"count": 2, "class": "gpu.nvidia.com"}}
    assert ":16:25: spec.spec.devices.requests[0].selectors[0].cel.expression" in notes
    assert "index and minor left the driver's attributes" in notes
    assert "container_entry.sh shell\" is left out: starts sshd" in notes
    assert "resourceClaims" not in spec["template"]["spec"] and "resources" not in first(spec)
    assert first(spec)["command"] == ["PROGRAM"] and "in place of PROGRAM" in notes


def test_unbalanced_selector(imported):
    spec, notes = imported(SEEDS / "gpu-nic-2x2.yaml", "all_gather_perf", "-b", "1K")
    assert spec["devices"]["nics"] == {"count": 2, "class": "dranet",
                                       "selector": 'device.attributes["dra.net"].rdma == true'}
    assert "left out but for rdma == true: a bracket is not closed" in notes
    assert "no container lists the claim nic under resources.claims" in notes
    assert "the claim gpu " not in notes  # that one is listed
    assert first(spec)["command"] == ["all_gather_perf", "-b", "1K"]


def test_device_plugin_and_claimed_nics(imported):
    spec, notes = imported(SEEDS / "rdma-8x8.yaml")
    assert spec["devices"] == {
        "gpus": {"count": 8, "resource": "nvidia.com/gpu"},
        "nics": {"count": 8, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'}}
    assert "the Service nccl-gib-test is left out" in notes
    assert "resources" not in first(spec)
    assert [v["name"] for v in spec["template"]["spec"]["volumes"]] == [
        "library-dir-host", "gib", "shared-memory"]


def test_nics_chosen_by_names(imported):
    spec, notes = imported(SEEDS / "rdma-4x4.yaml")
    assert spec["workers"] == 4 and spec["devices"]["nics"]["count"] == 4
    assert spec["devices"]["nics"]["selector"] == 'device.attributes["dra.net"].rdma == true'
    assert "which is chance where GPUs are not chosen with them" in notes


def test_mpijob(imported):
    spec, notes = imported(SEEDS / "mpijob-1x1.yaml")
    assert spec["workers"] == 2 and spec["ranksPerWorker"] == 1
    assert spec["devices"]["nics"] == {
        "count": 1, "class": "dranet-rdma-for-mpi", "driver": "dra.net",
        "config": {"interface": {"name": "dranet0"}}}
    assert "it names one NIC of each node" in notes
    assert "config: stands beside devices" in notes
    assert "no container lists the claim worker-rdma-nic" in notes
    assert "mpirun --mca routed direct: a parameter of mpirun's own daemons" in notes
    command = first(spec)["command"]
    assert command[:2] == ["bash", "-c"] and "all_reduce_perf" in command[2]
    assert first(spec)["env"] == [{"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"}]


def test_ray_is_explained(drarun):
    run = drarun("import", SEEDS / "ray-all-nic.yaml")
    assert run.rc == 65 and run.out == ""
    assert "NCCL_IB_TC=52 is left out: it is derived" in run.err
    assert "NCCL_DEBUG=" not in run.err
    assert "a RayCluster cannot be imported: Ray starts its own workers" in run.err


def test_claim_of_a_gone_version_is_explained(drarun):
    run = drarun("import", SEEDS / "fabric-claim.yaml")
    assert run.rc == 65 and run.out == ""
    assert "resource.k8s.io/v1alpha2 with resourceClassName and parameters ended" in run.err
    assert "devices.gpus.match" in run.err and "no workload" in run.err


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: ns, labels: {kueue.x-k8s.io/queue-name: team-a}}
spec:
  completions: 4
  parallelism: 4
  completionMode: Indexed
  backoffLimit: 2
  activeDeadlineSeconds: 3600
  ttlSecondsAfterFinished: 60
  template:
    metadata: {labels: {a: b}}
    spec:
      restartPolicy: Never
      resourceClaims: [{name: c, resourceClaimTemplateName: t}]
      containers:
      - name: x
        image: i
        command: [train, --all]
        ports: [{containerPort: 2222}, {containerPort: 8080}]
        env:
        - {name: NCCL_DEBUG, value: INFO}
        - {name: NCCL_IB_HCA, value: mlx5_0}
        - {name: MASTER_ADDR, value: j-0.svc}
        - {name: OTHER, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        resources: {claims: [{name: c}], limits: {cpu: 4}}
---
apiVersion: resource.k8s.io/VERSION
kind: ResourceClaimTemplate
metadata: {name: t}
spec:
  spec:
    devices:
      requests: REQUESTS
      constraints: [{requests: [g, n], matchAttribute: resource.kubernetes.io/pcieRoot}]
      config:
      - {requests: [n], opaque: {driver: dra.net, parameters: {interface: {mtu: 8896}}}}
"""
GPU = {"deviceClassName": "gpu.nvidia.com", "count": 4}
NIC = {"deviceClassName": "dranet", "allocationMode": "All"}
SHAPES = {
    "v1": [{"name": "g", "exactly": GPU}, {"name": "n", "exactly": NIC}],
    "v1beta2": [{"name": "g", "exactly": GPU}, {"name": "n", "exactly": NIC}],
    "v1beta1": [{"name": "g", **GPU}, {"name": "n", **NIC}],
}


@pytest.mark.parametrize("version", SHAPES)
def test_job(drarun, tmp_path, imported, version):
    text = JOB.replace("VERSION", version).replace("REQUESTS", json.dumps(SHAPES[version]))
    spec, notes = imported(text)
    assert spec["devices"] == {
        "gpus": {"count": 4, "class": "gpu.nvidia.com"},
        "nics": {"count": "all", "class": "dranet", "driver": "dra.net", "config": {"interface": {"mtu": 8896}}},
        "align": "required"}
    assert (spec["workers"], spec["restarts"], spec["queue"]) == (4, 2, "team-a")
    assert spec["timeouts"] == {"total": "3600s"} and spec["ttlSecondsAfterFinished"] == 60
    assert spec["nccl"] == {"env": {"NCCL_DEBUG": "INFO"}}
    assert first(spec) == {
        "name": "x", "image": "i", "command": ["train", "--all"], "ports": [{"containerPort": 8080}],
        "env": [{"name": "OTHER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": 4}}}
    assert spec["template"]["metadata"] == {"labels": {"a": "b"}}
    assert "NCCL_IB_HCA=mlx5_0 is left out" in notes and "MASTER_ADDR=j-0.svc is left out" in notes
    assert "sshd's port" in notes and len(notes.splitlines()) == 3


MPIJOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: m}
spec:
  slotsPerWorker: 2
  sshAuthMountPath: /home/user/.ssh
  mpiImplementation: OpenMPI
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 4}
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{image: i, command: COMMAND}]}}}
    Worker:
      replicas: 3
      template: {spec: {containers: [{name: w, image: i, command: [/usr/sbin/sshd, -De]}]}}
"""


@pytest.mark.parametrize("launcher,command,env", [
    (["mpirun", "-np", "6", "./app", "-x", "1"], ["./app", "-x", "1"], {}),
    (["/opt/bin/mpirun", "--hostfile", "/etc/mpi/hostfile", "-x", "A=b c", "--mca", "pml", "ucx", "app"],
     ["app"], {"A": "b c", "OMPI_MCA_pml": "ucx"}),
    (["mpiexec", "-n", "6", "-genv", "X", "1", "app"], None, None),
    (["sh", "-c", "cd /w && mpirun -np 6 --oversubscribe app 'a b' \"c\\\"d\" e\\ f | tee log; echo done"],
     ["app", "a b", 'c"d', "e f"], {}),
    (["sh", "-c", "# mpirun x\nmpirun \\\n  -np 6 \\\n  app\n"], ["app"], {}),
    (["python3", "launch.py"], ["PROGRAM"], {}),
    (["sh", "-c", "mpirun 'open"], ["PROGRAM"], {}),
    (["mpirun"], ["PROGRAM"], {}),
    (["mpirun", "-np"], ["PROGRAM"], {}),
])
def test_mpirun(imported, launcher, command, env):
    spec, notes = imported(MPIJOB.replace("COMMAND", json.dumps(launcher)))
    assert spec["workers"] == 3 and spec["ranksPerWorker"] == 2 and spec["restarts"] == 4
    for word in ["sshAuthMountPath", "mpiImplementation", "cleanPodPolicy"]:
        assert word in notes
    if command is None:  # Hydra's -genv takes two words
        return
    assert first(spec)["command"] == command
    assert {v["name"]: v["value"] for v in first(spec).get("env", [])} == env
    if command == ["PROGRAM"]:
        assert "in place of PROGRAM" in notes


@pytest.mark.parametrize("text,part", [
    ("kind: Deployment\nmetadata: {name: x}\n", "no workload"),
    ("kind: JobSet\nmetadata: {name: x}\n", "a JobSet cannot be imported"),
    ("kind: Pod\n---\nkind: Pod\n", "more than one workload"),
    ("kind: StatefulSet\nspec: {template: {spec: {}}}\n", "has no container"),
    ("kind: StatefulSet\nspec: {}\n", "has no pod template"),
    ("kind: StatefulSet\nspec: 3\n", "has no pod template"),
    ("kind: MPIJob\nspec: {mpiReplicaSpecs: {Launcher: {}}}\n", "no mpiReplicaSpecs.Worker"),
    ("kind: Pod\nmetadata: {name: Bad_Name}\nspec: {containers: [{image: i, command: [c]}]}\n",
     "metadata.name: expected a DNS label"),
    ("[1, 2]\n", "no workload"),
    ("3\n", "no workload"),
    ("", "no workload"),
    ("a: [\n", "YAML: did not find"),
])
def test_refused(drarun, text, part):
    run = drarun("import", "-", input=text)
    assert run.rc == 65 and run.out == "" and part in run.err, repr(run)


def test_list_of_kubectl(drarun):
    objects = list(yaml.safe_load_all((SEEDS / "rdma-8x8.yaml").read_text()))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    spec = yaml.safe_load(drarun("import", "-", input=text).ok().out)["spec"]
    assert spec["devices"]["nics"]["count"] == 8


def test_wrong_types_everywhere(drarun, tmp_path):
    """Each value of a manifest replaced by others: imported or refused, never a crash."""
    for seed in ["mpijob-1x1.yaml", "gpu-nic-2x2.yaml"]:
        objects = list(yaml.safe_load_all((SEEDS / seed).read_text()))
        text = json.dumps(objects)

        def walk(node):
            for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
                for other in [None, 3, "x", [], [1], {}, {"x": [{}]}]:
                    node[key] = other
                    yield
                node[key] = value
                if isinstance(value, (dict, list)):
                    yield from walk(value)
        file = tmp_path / "wrong.json"
        for count, _ in enumerate(walk(objects)):
            if count % 9:  # each program takes milliseconds
                continue
            file.write_text("\n".join(json.dumps(o) for o in objects))
            run = drarun("import", file, clean=False)
            assert run.rc in (0, 65), repr(run)
        assert json.dumps(objects) == text


EXAMPLES = sorted((SOURCE / "examples/jobs").glob("*.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example(drarun, file):
    spec = yaml.safe_load(file.read_text())["spec"]
    line = drarun("validate", file).ok().out
    assert "kind: ResourceClaim" in drarun("render", file).ok().out
    workers = spec.get("workers", 1)  # drarun accept says how many itself
    assert f", {workers} worker{'s' if workers > 1 else ''}, {spec['devices']['gpus']['count']} GPU" in line
    assert f"`{file.name}`" in (file.parent / "README.md").read_text()


def test_usage(drarun):
    assert drarun("import").rc == 64
    assert "Usage: drarun import" in drarun("import", "--help").ok().out
