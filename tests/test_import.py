# SPDX-License-Identifier: Apache-2.0
"""drarun import on published manifests and on small ones; examples/jobs as specs."""
import json

import pytest
import yaml

from support.build import SOURCE
from support.imports import complete
from support.short_form import in_template

SEEDS = SOURCE / "tests/data/seeds"


@pytest.fixture
def imported(drarun, tmp_path):
    """imported(text or file, *program): (spec, notes), the result having been validated, if need be with a program; all of the pod is
    in the spec's template."""
    def run(what, *program):
        file = what
        if isinstance(what, str):
            file = tmp_path / "in.yaml"
            file.write_text(what)
        result = drarun("import", file, *(["--", *program] if program else []))
        out = tmp_path / "out.yaml"
        out.write_text(complete(result))
        drarun("validate", out).ok()
        assert "containers:" in drarun("render", out).ok().out
        return in_template(next(yaml.safe_load_all(result.out))["spec"]), result.err
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


def test_the_last_of_two_keys_counts(imported):
    """Google's manifests have two lists of resources in a container; kubectl takes the second."""
    spec, notes = imported("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: i, command: [c],\n"
                           "  resources: {limits: {cpu: 1}},\n  resources: {limits: {memory: 1Gi}}}]}\n")
    assert first(spec)["resources"] == {"limits": {"memory": "1Gi"}}
    assert 'the key "resources" is given twice, first in line' in notes and "the last one is used" in notes


def test_mpijob(imported):
    spec, notes = imported(SEEDS / "mpijob-1x1.yaml")
    assert spec["workers"] == 2 and spec["ranksPerWorker"] == 1
    assert spec["devices"]["nics"] == {
        "count": 1, "class": "dranet-rdma-for-mpi", "driver": "dra.net",
        "config": {"interface": {"name": "dranet0"}}}
    assert "it names one NIC of each node" in notes
    assert "config: is beside devices, where the API has no config: read as if it were inside" in notes
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
    assert "cannot be imported: Ray starts its own workers" in run.err


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
      constraints: [{requests: [g, x], matchAttribute: resource.kubernetes.io/pcieRoot}]
      config:
      - {requests: [x], opaque: {driver: dra.net, parameters: {interface: {mtu: 8896}}}}
"""
GPU = {"deviceClassName": "gpu.nvidia.com", "count": 4}
NIC = {"deviceClassName": "dranet", "allocationMode": "All"}
SHAPES = {
    "v1": [{"name": "g", "exactly": GPU}, {"name": "x", "exactly": NIC}],
    "v1beta2": [{"name": "g", "exactly": GPU}, {"name": "x", "exactly": NIC}],
    "v1beta1": [{"name": "g", **GPU}, {"name": "x", **NIC}],
}


@pytest.mark.parametrize("attribute", ["numaNode", "pcieRoot"])
@pytest.mark.parametrize("requests,holder", [("[g, x]", "devices"), ("[]", "devices"), ("[x]", "nics"), ("[g]", "gpus")])
def test_an_attribute_over_gpus_and_nics(imported, requests, holder, attribute):
    text = JOB.replace("VERSION", "v1").replace("REQUESTS", json.dumps(SHAPES["v1"])).replace("pcieRoot", attribute)
    spec, notes = imported(text.replace("requests: [g, x]", f"requests: {requests}"))
    devices, aligned = spec["devices"], (holder, attribute) == ("devices", "pcieRoot")
    places = {"devices": devices, "gpus": devices["gpus"], "nics": devices["nics"]}
    assert {name: each["match"] for name, each in places.items() if "match" in each} == (
        {} if aligned else {holder: [f"resource.kubernetes.io/{attribute}"]})
    assert (devices.get("align") == "required") == aligned and "constraint is left out" not in notes


def test_constraints_of_several_claims(imported):
    """Each is over the devices of its own claim, in whatever order the pod has them."""
    def template(name, *requests, **more):
        return {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [*requests], **more}}}}

    def job(*claims):
        names = [each["metadata"]["name"] for each in claims]
        pod = changed(TRAIN, resources={"claims": [{"name": name} for name in names]})
        pod["spec"]["resourceClaims"] = [{"name": name, "resourceClaimTemplateName": name} for name in names]
        return of_kind("Job", {"template": pod}) + "---\n" + yaml.safe_dump_all(claims)
    attribute = "resource.kubernetes.io/pcieRoot"
    gpus = template("a", {"name": "g", "exactly": GPU}, constraints=[{"matchAttribute": attribute}])
    nics = template("b", {"name": "x", "exactly": NIC})
    for claims in ((gpus, nics), (nics, gpus)):
        spec, notes = imported(job(*claims))
        assert spec["devices"]["gpus"]["match"] == [attribute] and not {"match", "align"} & {*spec["devices"]}, spec
    cpus = {"name": "c", "exactly": {"deviceClassName": "dra.cpu", "capacity": {"requests": {"dra.cpu/cpu": "16"}}}}
    gpus = template("a", {"name": "g", "exactly": GPU}, cpus, constraints=[{"matchAttribute": "resource.kubernetes.io/numaNode"}])
    assert imported(job(gpus))[0]["devices"]["match"] == ["resource.kubernetes.io/numaNode"]
    for claims in ((gpus, nics), (nics, gpus)):
        spec, notes = imported(job(*claims))
        assert "match" not in spec["devices"] and "this constraint is left out: it does not cover all GPUs, all NICs or all claimed devices" in notes


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
        "name": "worker", "image": "i", "command": ["train", "--all"], "ports": [{"containerPort": 8080}],
        "env": [{"name": "OTHER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": 4}}}
    assert spec["template"]["metadata"] == {"labels": {"a": "b"}}
    assert "NCCL_IB_HCA=mlx5_0 is left out" in notes and "MASTER_ADDR=j-0.svc is left out" in notes
    assert "in.yaml:2:1: each of the 4 workers gets a node of its own, since they ask for NICs" in notes
    assert spec["ranksPerWorker"] == 1 and "each pod runs its program once, whatever its GPUs" in notes
    assert "sshd's port" in notes and len(notes.splitlines()) == 5


def choice(name, device_class="gpu.nvidia.com", count=4, **more):
    return {"name": name, "deviceClassName": device_class, "count": count, **more}


def product(name):
    return [{"cel": {"expression": f'device.attributes["gpu.nvidia.com"].productName == "{name}"'}}]


def with_requests(*requests, constraint="[g, x]", config="[x]"):
    text = JOB.replace("VERSION", "v1").replace("REQUESTS", json.dumps(requests))
    return text.replace("requests: [g, x]", f"requests: {constraint}").replace("requests: [x]", f"requests: {config}")


ANY = [choice("a", selectors=product("A")), choice("b", selectors=product("B"), tolerations=[{"key": "t", "operator": "Exists"}]),
       choice("c", "other-gpu.example.com")]
NICS = [choice("x", "dranet"), choice("y", "sriov.example.com")]


@pytest.mark.parametrize("second,count,said", [(None, 4, None), ({"memory": "40Gi"}, 8, None), ({"memory": "20Gi"}, 4, "the first asks for other capacity")])
def test_amounts_of_requests(imported, second, count, said):
    asked = {**GPU, "capacity": {"requests": {"memory": "40Gi"}}}
    more = [{"name": "h", "exactly": {**GPU, "capacity": {"requests": second}}}] if second else []
    spec, notes = imported(with_requests({"name": "g", "exactly": asked}, *more, SHAPES["v1"][1]))
    assert spec["devices"]["gpus"]["capacity"] == {"memory": "40Gi"} and spec["devices"]["gpus"]["count"] == count
    assert ("a second request for devices of this kind is left out" in notes) == bool(said) and (said or "") in notes
    listed = [ANY[0], choice("s", capacity={"requests": {"a.b/cores": 2}})]
    spec, notes = imported(with_requests({"name": "g", "firstAvailable": listed}, SHAPES["v1"][1]))
    assert spec["devices"]["gpus"]["firstAvailable"][1] == {"capacity": {"a.b/cores": 2}} and "capacity" not in notes, notes


def test_settings_of_a_claim_that_are_left_out(imported):
    """A kind of devices has one configuration, and labels are the job's."""
    text = JOB.replace("VERSION", "v1").replace("REQUESTS", json.dumps(SHAPES["v1"]))
    text = text.replace("spec:\n  spec:\n", "spec:\n  metadata: {labels: {a: b}}\n  spec:\n")
    spec, notes = imported(text + "      - {requests: [x], opaque: {driver: dra.net, parameters: {interface: {mtu: 1500}}}}\n")
    assert spec["devices"]["nics"]["config"] == {"interface": {"mtu": 8896}}
    assert "config[1].opaque: left out: these devices have a configuration already" in notes, notes
    assert "spec.metadata: left out: claims of a job have the labels and annotations of the job" in notes, notes


@pytest.mark.parametrize("gpus,shown", [(0, "0"), ("many", '"many"'), ("1500m", '"1500m"')])
def test_gpus_that_are_no_number(drarun, gpus, shown):
    template = changed(TRAIN, resources={"limits": {"nvidia.com/gpu": gpus}})
    run = drarun("import", "-", input=of_kind("Job", {"template": template}))
    assert f'resources.limits["nvidia.com/gpu"]: expected a number of GPUs, got {shown}\n' in run.err and "devices:" not in run.out, run


def test_choices_of_devices(imported):
    """In their order, each with what it says beside the others; the attribute over all holds for each."""
    spec, notes = imported(with_requests({"name": "g", "firstAvailable": ANY}, {"name": "x", "firstAvailable": NICS}))
    assert spec["devices"] == {
        "gpus": {"count": 4, "class": "gpu.nvidia.com", "firstAvailable": [
            {"selector": 'device.attributes["gpu.nvidia.com"].productName == "A"'},
            {"selector": 'device.attributes["gpu.nvidia.com"].productName == "B"', "tolerations": [{"key": "t", "operator": "Exists"}]},
            {"class": "other-gpu.example.com"}]},
        "nics": {"count": 4, "class": "dranet", "firstAvailable": [{"class": "dranet"}, {"class": "sriov.example.com"}],
                 "driver": "dra.net", "config": {"interface": {"mtu": 8896}}},
        "align": "required"}
    assert "firstAvailable" not in notes, notes


@pytest.mark.parametrize("choices,left,said", [
    ([ANY[0], choice("half", count=2), ANY[2]], [0, 2], "firstAvailable[1]: this choice is left out: its count differs from that of earlier choices"),
    ([ANY[0], choice("all", allocationMode="All")], [0], "firstAvailable[1]: this choice is left out: its count"),
    ([ANY[0], choice("n", "dranet")], [0], "firstAvailable[1]: this choice is left out: earlier choices are of the other kind (GPUs or NICs)"),
    ([choice("t", "tpu.google.com"), ANY[0], ANY[2]], [1, 2], "firstAvailable[0]: left out: TPUs (class tpu.google.com) are not supported"),
    ([ANY[0], {"name": "b"}], [0], "firstAvailable[1]: left out: no deviceClassName"),
    ([ANY[0], choice("c", "compute-domain-default-channel.nvidia.com")], [0], "computeDomain asks for it"),
])
def test_choices_that_are_left_out(imported, choices, left, said):
    spec, notes = imported(with_requests({"name": "g", "firstAvailable": choices}, SHAPES["v1"][1]))
    assert said in notes, notes
    gpus = spec["devices"]["gpus"]
    if len(left) == 1:
        assert gpus == {"count": 4, "class": "gpu.nvidia.com", "selector": ANY[0]["selectors"][0]["cel"]["expression"]}
    else:
        assert len(gpus["firstAvailable"]) == 2 and gpus["count"] == 4


@pytest.mark.parametrize("second,count,said", [
    ({"name": "h", "firstAvailable": ANY}, 8, None),
    ({"name": "h", "firstAvailable": ANY[:2]}, 4, "the first has other choices"),
    ({"name": "h", "exactly": GPU}, 4, "the first has other choices"),
    ({"name": "h", "exactly": {**GPU, "tolerations": [{"operator": "Exists"}]}}, 4, "the first has other tolerations"),
])
def test_a_second_request_with_choices(imported, second, count, said):
    spec, notes = imported(with_requests({"name": "g", "firstAvailable": ANY}, second, SHAPES["v1"][1]))
    assert spec["devices"]["gpus"]["count"] == count and (said or "") in notes
    assert ("a second request for devices of this kind is left out" in notes) == bool(said)


@pytest.mark.parametrize("names,constraint,config", [("[g, x]", True, True), ("[g/a, g/b, g/c, x]", True, True), ("[g/a, x]", False, True),
                                                     ("[g, x/x]", False, False), ("[g, x/x, x/y]", True, True)])
def test_what_is_said_of_some_choices(imported, names, constraint, config):
    spec, notes = imported(with_requests({"name": "g", "firstAvailable": ANY}, {"name": "x", "firstAvailable": NICS},
                                         constraint=names, config="[x/x]" if not config else "[x]"))
    assert ("align" in spec["devices"]) == constraint and ("config" in spec["devices"]["nics"]) == config
    assert ("constraint is left out: it applies to some choices of firstAvailable only" in notes) == (not constraint)
    assert ("configuration is left out: it applies to some choices of firstAvailable only" in notes) == (not config)


@pytest.mark.parametrize("request_,cpus,said", [
    ({"capacity": {"requests": {"dra.cpu/cpu": "16"}}}, {"count": 16}, None),
    ({"count": 2, "capacity": {"requests": {"dra.cpu/cpu": 8}}, "selectors": [{"cel": {"expression": "1 < 2"}}]},
     {"count": 16, "groups": 2, "selector": "1 < 2"}, None),
    ({"count": 4}, None, "CPUs of a job are a whole number of the capacity dra.cpu/cpu of each group"),
    ({"capacity": {"requests": {"dra.cpu/cpu": "1500m"}}}, None, "a whole number of the capacity")])
def test_cpus_of_a_claim(imported, request_, cpus, said):
    spec, notes = imported(with_requests({"name": "g", "exactly": GPU}, SHAPES["v1"][1], {"name": "c", "exactly": {"deviceClassName": "dra.cpu", **request_}})
                           .replace(", limits: {cpu: 4}", ""))
    assert spec["devices"].get("cpus") == cpus and spec["devices"]["gpus"]["count"] == 4 and (said or "") in notes, notes


def test_claims_that_are_elsewhere(imported):
    """They stay what they are: all workers hold them, each named once."""
    text = JOB.replace("VERSION", "v1").replace("REQUESTS", json.dumps(SHAPES["v1"]))
    text = text.replace("[{name: c, resourceClaimTemplateName: t}]", "[{name: c, resourceClaimName: team}, {name: d, resourceClaimName: team}]")
    spec, notes = imported(text)
    assert spec["devices"] == {"shared": [{"claim": "team"}]} and "resourceClaims" not in json.dumps(spec), spec
    assert notes.count("the ResourceClaim team is not among these manifests: all workers share it by its name") == 1, notes


def test_claims_of_a_template_that_is_elsewhere(imported):
    """As DraNet publishes its jobs, beside their templates: the cluster has those, and so each worker gets its claim of it."""
    claims = [{"name": "c", "resourceClaimTemplateName": "t"}, {"name": "nics", "resourceClaimTemplateName": "two-nics"}]
    listed = [{"name": "c"}, {"name": "nics", "request": "nic"}]
    template = changed(TRAIN, resources={"claims": listed})
    template["spec"]["resourceClaims"] = claims
    job = of_kind("Job", {"template": template})
    gpus = {"kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": SHAPES["v1"][:1]}}}}
    for text, left, devices in ((job, 0, None), (job + "---\n" + yaml.safe_dump(gpus), 1, {"gpus": {"count": 4, "class": "gpu.nvidia.com"}})):
        spec, notes = imported(text)
        assert spec["template"]["spec"]["resourceClaims"] == claims[left:] and first(spec)["resources"]["claims"] == listed[left:], spec
        assert spec.get("devices") == devices and "request: left out" not in notes, notes
        assert "resourceClaims[1]: kept unchanged: ResourceClaimTemplate two-nics is not among these manifests" in notes
        assert "add the output of kubectl get resourceclaimtemplate two-nics -o yaml" in notes
    del claims[1]["resourceClaimTemplateName"]
    spec, notes = imported(of_kind("Job", {"template": template}))
    assert "resourceClaims[1]: left out: it names neither a claim nor a template of one" in notes, notes
    assert spec["template"]["spec"]["resourceClaims"] == claims[:1] and first(spec)["resources"]["claims"] == listed[:1]


def test_claims_that_other_containers_share(imported):
    """They list them by the names that a worker's pod has; the ranks' container gets all without a word."""
    template = changed(TRAIN, resources={"claims": [{"name": "c"}]})
    listed = [{"name": "c"}, {"name": "team"}, {"name": "imex"}, {"name": "d"}, {"name": "mine"}]
    template["spec"].update(
        resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}, {"name": "team", "resourceClaimName": "team"}, {"name": "imex", "resourceClaimTemplateName": "channel"},
                        {"name": "d", "resourceClaimTemplateName": "t"}, {"name": "mine", "resourceClaimTemplateName": "elsewhere"}],
        initContainers=[{"name": "daemon", "image": "i", "restartPolicy": "Always", "resources": {"claims": listed, "limits": {"cpu": 1}}}])
    template["spec"]["containers"].append({"name": "monitor", "image": "i", "resources": {"claims": [{"name": "d", "request": "gpu"}]}})
    gpus = {"kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": SHAPES["v1"][:1]}}}}
    spec, notes = imported(of_kind("Job", {"template": template}) + "---\n" + yaml.safe_dump(gpus))
    pod = spec["template"]["spec"]
    (daemon,), (ranks, monitor) = pod["initContainers"], pod["containers"]
    assert daemon["resources"] == {"claims": [{"name": name} for name in ("devices", "shared-0", "channel", "mine")], "limits": {"cpu": 1}}
    assert monitor["resources"] == {"claims": [{"name": "devices"}]} and "resources" not in ranks, notes
    assert "containers[1].resources.claims[0].request: left out: the container gets all devices of the claim" in notes


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
    (["mpiexec", "-n", "6", "-genv", "X", "1", "app"], ["app"], {"X": "1"}),
    (["mpiexec", "-genv", "X=1=2", "-n", "6", "-env", "Y=", "app", "-v"], ["app", "-v"], {"X": "1=2", "Y": ""}),
    (["sh", "-c", "mpiexec -n 6 -genv 'X=a b' -env Y 2 app"], ["app"], {"X": "a b", "Y": "2"}),
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
    assert first(spec)["command"] == command
    assert {v["name"]: v["value"] for v in first(spec).get("env", [])} == env
    assert ("in place of PROGRAM" in notes) == (command == ["PROGRAM"])


@pytest.mark.parametrize("launcher,program", [(["deepspeed", "--hostfile", "/etc/mpi/hostfile", "train.py"], ["train"]),
                                              (["bash", "/scripts/launcher.sh"], ["train", "PROGRAM"])])
def test_a_program_that_is_still_to_be_given(drarun, tmp_path, launcher, program):
    """Such a job would claim its devices to say that there is no such program: it is printed, and refused."""
    file = tmp_path / "job.yaml"
    manifest = MPIJOB.replace("COMMAND", json.dumps(launcher))
    run = drarun("import", "-", input=manifest)
    assert run.rc == 65 and "  command:\n  - PROGRAM\n" in run.out, repr(run)
    line = run.out.splitlines().index("  - PROGRAM") + 1
    assert f"<stdout>:{line}:3: spec.command: PROGRAM stands in place of the ranks' program, which drarun import did not find" in run.err
    assert "no mpirun with a program was found here: put the ranks' program in place of PROGRAM" in run.err
    assert run.err.endswith("the imported job is printed, but not complete: mend the 1 error in it\n")
    file.write_text(run.out)
    for verb in ("validate", "render", "plan"):
        refused = drarun(verb, file)
        assert refused.rc == 65 and "command: PROGRAM stands in place" in refused.out + refused.err, repr(refused)
    file.write_text(drarun("import", "-", "--", *program, input=manifest).ok().out)
    drarun("validate", file).ok()


def test_mpiruns_variables_are_taken_as_those_of_the_container(imported):
    launcher = ["mpirun", "-x", "NCCL_IB_HCA=mlx5_0", "-x", "NCCL_DEBUG=INFO", "-x", "MASTER_PORT=1", "-x", "JAX_PROCESS_ID=1", "-x", "A=b",
                "app"]
    spec, notes = imported(MPIJOB.replace("COMMAND", json.dumps(launcher)))
    assert spec["nccl"] == {"env": {"NCCL_DEBUG": "INFO"}} and first(spec)["env"] == [{"name": "A", "value": "b"}]
    assert "mpirun's NCCL_IB_HCA=mlx5_0 is left out: it is derived" in notes
    assert "mpirun's MASTER_PORT=1 is left out: each rank gets its own" in notes
    assert "mpirun's JAX_PROCESS_ID=1 is left out: each rank gets its own" in notes


@pytest.mark.parametrize("option,said", [
    ("--continuous", "; failurePolicy: {onRankFailure: continue} lets ranks fail alone"),
    ("--report-bindings", "; reportBindings: true reports where each rank runs"),
    ("--rank-by node", "; ranks are numbered worker after worker, which may change their order"),
    ("--rank-by slot", ", not needed"),
    ("--byslot", ", not needed"),
    ("--output-filename /logs", "; what ranks print is the job's log: drarun run --output-dir DIR also keeps a file for each rank"),
    ("--output tag", "; what ranks print is the job's log: drarun run --output-dir DIR"),
    ("--allow-run-as-root", ", not needed")])
def test_options_that_are_not_carried_over(imported, option, said):
    """Only what a job has no need of is said to be of none."""
    _, notes = imported(MPIJOB.replace("COMMAND", json.dumps(["mpirun", "-np", "6", *option.split(), "app"])))
    assert f"mpirun {option}: not carried over{said}" in notes, notes


@pytest.mark.parametrize("deadline,total,said", [(None, "600s", "now timeouts.total"), (3600, "600s", "now timeouts.total"), (600, "600s", "now timeouts.total"),
                                                 (60, "60s", "left out: another limit ends the job after 60 s already")])
def test_a_time_limit_of_mpirun(imported, deadline, total, said):
    text = MPIJOB.replace("COMMAND", json.dumps(["mpirun", "-np", "6", "--timeout", "600", "app"]))
    spec, notes = imported(text.replace("backoffLimit: 4", f"backoffLimit: 4, activeDeadlineSeconds: {deadline}") if deadline else text)
    assert spec["timeouts"] == {"total": total} and f"mpirun --timeout 600 is {said}" in notes, notes


def test_a_launcher_that_is_a_worker(drarun, imported):
    """Its pod has slots: without it the job would have fewer ranks than were asked for."""
    text = MPIJOB.replace("COMMAND", '["mpirun", "-np", "8", "app"]')
    spec, notes = imported(text.replace("slotsPerWorker", "runLauncherAsWorker: true\n  slotsPerWorker"))
    assert spec["workers"] == 4 and spec["ranksPerWorker"] == 2 and "one more worker: 4 now" in notes
    run = drarun("import", "-", input=text.replace("slotsPerWorker", "runLauncherAsWorker: false\n  slotsPerWorker"))
    assert run.rc == 65 and run.out == "" and "8 ranks are more than 3 workers with 2 slots hold" in run.err


@pytest.mark.parametrize("text,part", [
    ("kind: Deployment\nmetadata: {name: x}\n", "the Deployment x of no apiVersion cannot be imported: expected an MPIJob, a PyTorchJob"),
    ("apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: x}\n", "the JAXJob x of kubeflow.org/v1 cannot be imported: expected an MPIJob"),
    ("kind: ConfigMap\nmetadata: {name: x}\n", "<stdin>: no workload: expected an MPIJob"),
    ("apiVersion: drarun.dev/v1alpha1\nkind: DraJob\nmetadata: {name: x}\n", "the DraJob x cannot be imported: it is a job of drarun already"),
    ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec: {minAvailable: 3, tasks: [{replicas: 1}]}\n",
     "the Job x of batch.volcano.sh/v1alpha1 cannot be imported: expected"),
    ("kind: JobSet\nmetadata: {name: x}\n", "the JobSet x has no pod template"),
    ("kind: Job\nmetadata: {name: a}\n---\nkind: MPIJob\nmetadata: {name: b}\n",
     "<stdin>:4: the MPIJob b is a second workload: <stdin>:1 has the Job a; import one at a time"),
    ("kind: StatefulSet\nspec: {template: {spec: {}}}\n", "has no container"),
    ("kind: StatefulSet\nspec: {}\n", "has no pod template"),
    ("kind: StatefulSet\nspec: 3\n", "has no pod template"),
    ("kind: MPIJob\nspec: {mpiReplicaSpecs: {Launcher: {}}}\n", "no mpiReplicaSpecs.Worker"),
    (MPIJOB.replace("replicas: 3", ""), "<stdin>:14: Worker.replicas has no number: the MPI Operator takes that as 0 workers and rejects the MPIJob"),
    (MPIJOB.replace("replicas: 3", "replicas:"), "<stdin>:13: Worker.replicas has no number"),
    (MPIJOB.replace("replicas: 3", 'replicas: "3"'), "<stdin>:13: Worker.replicas has no number"),
    ("[1, 2]\n", "no workload"),
    ("3\n", "no workload"),
    ("", "no workload"),
    ("a: [\n", "YAML: did not find"),
])
def test_refused(drarun, text, part):
    run = drarun("import", "-", input=text)
    assert run.rc == 65 and run.out == "" and part in run.err, repr(run)


def test_several_files(drarun, tmp_path):
    """Class, template and job are three files in most recipes; so is kubectl kustomize's output."""
    template, job = JOB.replace("VERSION", "v1").replace("REQUESTS", json.dumps(SHAPES["v1"])).split("\n---\n")[::-1]
    folder = tmp_path / "recipe"
    (folder / "inner").mkdir(parents=True)
    (folder / "10-template.yml").write_text(template)
    (folder / "20-job.yaml").write_text(job)
    for other in ["README.md", ".hidden.yaml", "inner/job.yaml"]:
        (folder / other).write_text(job)
    whole = drarun("import", "-", input=template + "---\n" + job).ok()
    assert yaml.safe_load(whole.out)["spec"]["devices"]["gpus"]["count"] == 4
    for arguments in ([folder], [folder / "20-job.yaml", folder / "10-template.yml"], ["-", folder / "10-template.yml"]):
        run = drarun("import", *arguments, "--", "prog", "-x", input=job).ok()
        spec = in_template(yaml.safe_load(run.out)["spec"])
        assert spec["devices"] == yaml.safe_load(whole.out)["spec"]["devices"]
        assert first(spec)["command"] == ["prog", "-x"]
        name = "<stdin>" if arguments[0] == "-" else f"{folder}/20-job.yaml"
        assert f"{name}:24:11: spec.template.spec.containers[0].env[1]: NCCL_IB_HCA=mlx5_0" in run.err


def test_classes_are_carried_over(drarun, tmp_path):
    """plan of the result knows the class, and kubectl apply makes it."""
    objects = [o for o in yaml.safe_load_all((SEEDS / "mpijob-1x1.yaml").read_text()) if o]
    classes = [o for o in objects if o["kind"] == "DeviceClass"]
    assert [c["metadata"]["name"] for c in classes] == ["dranet-rdma-for-mpi"]
    classes[0]["metadata"].update(uid="1", resourceVersion="5")
    classes[0]["status"] = {}
    (tmp_path / "class.json").write_text(json.dumps(classes[0]))
    (tmp_path / "job.yaml").write_text(yaml.safe_dump_all([o for o in objects if o["kind"] != "DeviceClass"]))
    out = tmp_path / "out.yaml"
    run = drarun("import", tmp_path).ok()
    out.write_text(run.out)
    job, new = yaml.safe_load_all(run.out)
    assert job["kind"] == "DraJob" and new["kind"] == "DeviceClass" and new["spec"] == classes[0]["spec"]
    assert new["metadata"] == {"name": "dranet-rdma-for-mpi"} and "status" not in new
    assert "class.json:1: the DeviceClass dranet-rdma-for-mpi is carried over" in run.err.replace(":1:1:", ":1:")
    drarun("validate", out).ok()
    slices = SOURCE / "examples/clusters/a4-two-nodes.json"
    assert "class dranet-rdma-for-mpi" not in (plan := drarun("plan", out, "--slices", slices)).err, repr(plan)
    out.write_text(yaml.safe_dump(job))
    assert "dranet-rdma-for-mpi" in drarun("plan", out, "--slices", slices).err
    out.write_text(yaml.safe_dump_all([job, job]))
    assert "expected one document, a DraJob" in drarun("validate", out).out


def two_pods(change=lambda pod: None):
    """Google's usual form of an NCCL test: two Pods and their Services, no controller."""
    objects = []
    for i in "12":
        pod = {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": f"nccl-test-host-{i}", "labels": {"name": f"nccl-host-{i}", "app": "nccl"}},
               "spec": {"hostname": f"host{i}", "subdomain": f"nccl-host-{i}",
                        "nodeSelector": {"kubernetes.io/hostname": f"node-{i}", "pool": "a4"},
                        "containers": [{"name": "test", "image": "i", "command": ["all_gather_perf"],
                                        "env": [{"name": "NODE_RANK", "value": i}, {"name": "A", "value": "b"}],
                                        "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}
        if i == "2":
            change(pod)
        objects += [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"nccl-host-{i}"},
                     "spec": {"clusterIP": "None", "selector": {"name": f"nccl-host-{i}"}}}, pod]
    return yaml.safe_dump_all(objects, sort_keys=False)


def test_pods_of_one_job(drarun, imported):
    spec, notes = imported(two_pods())
    assert spec["workers"] == 2 and spec["devices"]["gpus"] == {"count": 8, "resource": "nvidia.com/gpu"}
    assert spec["template"]["metadata"] == {"labels": {"app": "nccl"}}
    assert sorted(spec["template"]["spec"]) == ["containers", "nodeSelector"]
    assert spec["template"]["spec"]["nodeSelector"] == {"pool": "a4"}
    assert first(spec)["env"] == [{"name": "A", "value": "b"}]
    for path in ["metadata.labels.name", "spec.hostname", "spec.subdomain", 'spec.nodeSelector["kubernetes.io/hostname"]']:
        assert f"{path}: left out: it differs from that of the Pod nccl-test-host-1" in notes
    assert "the Service nccl-host-2 is left out" in notes
    document = yaml.safe_load(drarun("import", "-", input=two_pods()).ok().out)
    assert document["metadata"] == {"name": "nccl-test-host"}


@pytest.mark.parametrize("change,path,line", [
    (lambda p: p["spec"]["containers"][0].update(image="j"), "spec.containers[0].image", 61),
    (lambda p: p["spec"]["containers"][0]["env"][1].update(value="c"), "spec.containers[0].env[1].value", 68),
    (lambda p: p["spec"].update(hostNetwork=True), "spec.hostNetwork", None),
    (lambda p: p["spec"]["containers"].append({"name": "x", "image": "i"}), "spec.containers", None),
    (lambda p: p["metadata"].update(annotations={"a": "b"}), "metadata.annotations", None),
    (lambda p: p["metadata"].update(namespace="other"), "metadata.namespace", None),
    (lambda p: p["spec"].pop("containers"), "spec.containers", None),
    (lambda p: p.pop("spec"), "spec", None),
], ids=lambda x: x if isinstance(x, str) else "")
def test_pods_that_differ(drarun, change, path, line):
    run = drarun("import", "-", input=two_pods(change))
    assert run.rc == 65 and run.out == ""
    assert f": {path} of the Pod nccl-test-host-2 is not that of the Pod nccl-test-host-1 (<stdin>:10)" in run.err
    assert line is None or f"<stdin>:{line}: " in run.err, run.err


def test_pods_that_differ_in_nothing_that_counts(imported):
    """As published: one file ends without a line end, and one pod calls a volume otherwise."""
    def daemon(pod, volume, end):
        pod["spec"]["containers"][0].update(command=["bash", "-c"], args=["run_test" + end], volumeMounts=[
            {"name": volume, "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}])
        pod["spec"]["volumes"] = [{"name": volume, "emptyDir": {}}, {"name": "b", "emptyDir": {}}]

    objects = list(yaml.safe_load_all(two_pods()))
    pods = [each for each in objects if each["kind"] == "Pod"]
    for pod, volume, end in zip(pods, ("proc", "proc-sys"), ("\n", "")):
        daemon(pod, volume, end)
    spec, _ = imported(yaml.safe_dump_all(objects, sort_keys=False))
    assert spec["workers"] == 2 and first(spec)["volumeMounts"][0] == {"name": "proc", "mountPath": "/a"}


@pytest.mark.parametrize("change", [
    lambda c, v: c["volumeMounts"][0].update(name="b"),
    lambda c, v: v[0].update(emptyDir={"medium": "Memory"}),
    lambda c, v: c.update(args=["run_test x"]),
])
def test_pods_whose_volumes_differ(drarun, change):
    objects = list(yaml.safe_load_all(two_pods()))
    for pod in (each for each in objects if each["kind"] == "Pod"):
        pod["spec"]["containers"][0].update(args=["run_test"], volumeMounts=[{"name": "a", "mountPath": "/a"}])
        pod["spec"]["volumes"] = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    change(objects[-1]["spec"]["containers"][0], objects[-1]["spec"]["volumes"])
    run = drarun("import", "-", input=yaml.safe_dump_all(objects, sort_keys=False))
    assert run.rc == 65 and "is not that of the Pod nccl-test-host-1" in run.err, run


def test_pods_with_config_maps_of_their_own(drarun):
    """Their volumes are called as the ConfigMaps are: the name of the volume is the pod's affair, that of the ConfigMap is not."""
    objects = list(yaml.safe_load_all(two_pods()))
    for i, pod in enumerate(each for each in objects if each["kind"] == "Pod"):
        pod["spec"]["containers"][0].update(args=["run_test"], volumeMounts=[{"name": f"conf-{i}", "mountPath": "/a"}])
        pod["spec"]["volumes"] = [{"name": f"conf-{i}", "configMap": {"name": f"conf-{i}"}}]
    run = drarun("import", "-", input=yaml.safe_dump_all(objects, sort_keys=False))
    assert run.rc == 65 and "is not that of the Pod nccl-test-host-1" in run.err, run


HOSTS = "NUM_GPUS=4\nNUM_HOSTS={}\n"


@pytest.mark.parametrize("script,ranks", [
    (HOSTS.format("$(sed -n '$=' /etc/mpi/hostfile)") + "NP=$(($NUM_HOSTS*$NUM_GPUS))\nmpirun -np $NP -npernode $NUM_GPUS app", 4),
    (HOSTS.format("$(wc -l < /etc/mpi/hostfile)") + 'NP="$(( (NUM_HOSTS + 1) * ${NUM_GPUS} - 4 ))"\nmpirun -np "$NP" app', 4),
    (HOSTS.format("$(cat /etc/mpi/hostfile | wc -l)") + "export NP=$((NUM_HOSTS*NUM_GPUS/2*2))\nmpirun -np $NP app", 4),
    *[(HOSTS.format(f"$({count})") + "NP=$((NUM_HOSTS * NUM_GPUS))\nmpirun -np $NP app", 4) for count in [
        "awk 'NF {print $1}' /etc/mpi/hostfile | sort -u | wc -l", "awk '{print $1}' /etc/mpi/hostfile|sort|uniq|grep -c .",
        "cut -d' ' -f1 < /etc/mpi/hostfile | sort -u | sed -n '$='", "cut -d ' ' -f1 /etc/mpi/hostfile | sort -u | wc -l",
        'cut -d " " -f 1 /etc/mpi/hostfile | wc -l', "cat /etc/mpi/hostfile | cut -f1 -d' ' | wc -l", "cut -f 1 -d ' ' /etc/mpi/hostfile | wc -l",
        "grep -c '' /etc/mpi/hostfile", "wc -l</etc/mpi/hostfile",
        "awk 'END {print NR}' \"$OMPI_MCA_orte_default_hostfile\"", "sort -u /etc/mpi/hostfile | wc -l"]],
])
def test_numbers_that_the_launchers_script_computes(imported, script, ranks):
    """From the hostfile, which has a line for each worker, and by arithmetic: as OCI's tests are published."""
    spec, notes = imported(MPIJOB.replace("slotsPerWorker: 2", "slotsPerWorker: 4").replace("COMMAND", json.dumps(["bash", "-c", script])))
    assert (spec["workers"], spec["ranksPerWorker"]) == (3, ranks) and first(spec)["command"] == ["app"], spec
    assert "the launcher's NUM_HOSTS=$(" in notes and " is 3" in notes


@pytest.mark.parametrize("value", [
    "$(grep -v x /etc/mpi/hostfile | wc -l)", "$(wc -l /etc/mpi/hostfile)", "$(wc -l <<< /etc/mpi/hostfile)", "$(cat /etc/mpi/hostfile)",
    "$(wc -l < /etc/mpi/hostfile > x)", "$(cat /etc/mpi/hostfile | sort; wc -l)", "$(cat /a | wc -l)",
    "$(cat /etc/mpi/hostfile | sort /b | wc -l)", "$(cut -d ' ' -s -f1 /etc/mpi/hostfile | wc -l)", "$(cat x /etc/mpi/hostfile | wc -l)",
    "$(hostname)", "$((UNKNOWN*2))", "$((1/0))", "$((2**3))", "$((010))", "$((9999999999))", "$((99999*99999))", "$((2)", "$(nproc)"])
def test_numbers_that_only_the_launcher_can_compute(drarun, value):
    run = drarun("import", "-", input=MPIJOB.replace("COMMAND", json.dumps(["bash", "-c", f"NP={value}\nmpirun -np $NP app"])))
    assert (run.rc == 65 and "only the launcher's shell knows the value $NP" in run.err) or "no mpirun with a program" in run.err, run


def test_a_daemon_before_the_ranks(imported):
    """The container that asks for GPUs is the ranks', wherever it stands."""
    ranks = {"name": "test", "image": "i", "command": ["app"], "env": [{"name": "NCCL_IB_HCA", "value": "mlx5"}],
             "resources": {"limits": {"nvidia.com/gpu": 8}}}
    daemon = {"name": "tcpx-daemon", "image": "d", "command": ["daemon"]}
    pod = {"kind": "Job", "metadata": {"name": "s"}, "spec": {"template": {"spec": {"containers": [daemon, ranks]}}}}
    spec, notes = imported(yaml.safe_dump(pod))
    assert [each["name"] for each in spec["template"]["spec"]["containers"]] == ["worker", "tcpx-daemon"]
    assert spec["devices"] == {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}} and "resources" not in first(spec)
    assert "spec.template.spec.containers[1]: the ranks run in this container, the only one that asks for GPUs or lists claims" in notes
    assert "spec.template.spec.containers[1].env[0]: NCCL_IB_HCA=mlx5 is left out" in notes
    daemon["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    spec, notes = imported(yaml.safe_dump(pod))
    assert first(spec)["command"] == ["daemon"] and "the ranks' container" not in notes


POD = {"metadata": {"labels": {"team": "a"}, "annotations": {"sidecar.istio.io/inject": "false"}}, "spec": {
    "serviceAccountName": "train", "priorityClassName": "high", "schedulerName": "other", "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"pool": "a4"}, "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "hostIPC": True,
    "containers": [{
        "name": "pytorch", "image": "example/train:1", "command": ["torchrun"], "args": ["train.py", "--epochs", "3"], "workingDir": "/work",
        "env": [{"name": "MODE", "value": "a"}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}],
        "envFrom": [{"configMapRef": {"name": "settings"}}], "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "64Gi"}},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}, {"name": "dshm", "mountPath": "/dev/shm"},
                         {"name": "scratch", "mountPath": "/a", "subPath": "a"}, {"name": "scratch", "mountPath": "/b", "subPath": "b"}]}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
                {"name": "scratch", "emptyDir": {}}]}}
BY_HAND = """\
workers: 4
ranksPerWorker: 1
launch: env
devices: {gpus: {count: 8, resource: nvidia.com/gpu}}
image: example/train:1
command: [torchrun]
args: [train.py, --epochs, "3"]
workingDir: /work
env:
  MODE: a
  TOKEN: {secretKeyRef: {name: hub, key: token}}
  PET_NPROC_PER_NODE: auto
envFrom: [{configMapRef: {name: settings}}]
resources: {limits: {memory: 64Gi}}
volumes:
- {name: data, persistentVolumeClaim: data, mountPath: /data, readOnly: true}
- {name: dshm, shm: 16Gi}
tolerations: [{key: nvidia.com/gpu, operator: Exists}]
nodeSelector: {pool: a4}
priorityClassName: high
serviceAccountName: train
imagePullSecrets: [registry]
schedulerName: other
labels: {team: a}
annotations: {sidecar.istio.io/inject: "false"}
template:
  spec:
    hostIPC: true
    containers:
    - name: worker
      securityContext: {capabilities: {add: [IPC_LOCK]}}
      volumeMounts: [{name: scratch, mountPath: /a, subPath: a}, {name: scratch, mountPath: /b, subPath: b}]
    volumes: [{name: scratch, emptyDir: {}}]
"""


def test_as_a_person_would_write_it(drarun):
    """In the short form and in the order of docs/design/009; the template has what the short form cannot say."""
    run = drarun("import", "-", input=of_kind("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 4, "template": POD}}})).ok()
    spec = yaml.safe_load(run.out)["spec"]
    assert spec == yaml.safe_load(BY_HAND) and list(spec) == list(yaml.safe_load(BY_HAND))


def test_variables_that_need_their_order_stay_a_list(drarun):
    pod = json.loads(json.dumps(POD))
    pod["spec"]["containers"][0]["env"] = [{"name": "Z", "value": "1"}, {"name": "A", "value": "$(Z)"}]
    run = drarun("import", "-", input=of_kind("Job", {"template": pod})).ok()
    assert yaml.safe_load(run.out)["spec"]["env"] == [{"name": "Z", "value": "1"}, {"name": "A", "value": "$(Z)"}]


def test_a_number_of_pods_that_is_to_be_filled_in(imported):
    spec, notes = imported(jobset(replicated("w", TRAIN, 1, "__NUM_NODES__")))
    assert spec["workers"] == 1
    assert "template.spec.parallelism: expected a number, assuming 1; set spec.workers to the number of pods" in notes


def away(kind="podAntiAffinity", **selector):
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}}}


def with_affinity(pod, labels="{app: x}", queue=""):
    worker = {"containers": [{"name": "w", "image": "i", "command": ["sshd"]}], **pod}
    return f"""
kind: MPIJob
metadata: {{name: m, labels: {{{queue}}}}}
spec:
  mpiReplicaSpecs:
    Launcher: {{template: {{spec: {{containers: [{{image: i, command: [mpirun, app]}}]}}}}}}
    Worker: {{replicas: 2, template: {{metadata: {{labels: {labels}}}, spec: {json.dumps(worker)}}}}}
"""


OURS = {"labelSelector": {"matchExpressions": [{"key": "drarun.dev/worker", "operator": "Exists"}]},
        "matchLabelKeys": ["drarun.dev/job"], "topologyKey": "kubernetes.io/hostname"}
NAME, ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/job-role"


@pytest.mark.parametrize("selector", [
    {"matchLabels": {NAME: "m", ROLE: "worker"}},
    {"matchExpressions": [{"key": NAME, "operator": "In", "values": ["m"]}]},
    {"matchLabels": {"batch.kubernetes.io/job-name": "m-workers-0"}},
    {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "m", "app": "x"}},
    {"matchLabels": {"training.kubeflow.org/replica-type": "worker"}},
])
def test_affinity_to_labels_of_a_controller(imported, selector):
    """No pod of ours has such labels: copied, the spread would be lost without a word."""
    pod = away(**selector)
    pod["affinity"]["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 5, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}]}
    pod["topologySpreadConstraints"] = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
                                         "topologyKey": "kubernetes.io/hostname"}]
    spec, notes = imported(with_affinity(pod))
    new = spec["template"]["spec"]
    assert new["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == [OURS]
    assert new["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {"weight": 5, "podAffinityTerm": OURS}]
    assert new["topologySpreadConstraints"] == [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **OURS}]
    assert notes.count("is another controller's: the term now selects the workers of this job") == 3


@pytest.mark.parametrize("selector,reason", [
    ({"matchLabels": {NAME: "m", ROLE: "launcher"}}, "it selects the launcher's pod"),
    ({"matchLabels": {NAME: "other"}}, "it names another job"),
    ({"matchExpressions": [{"key": NAME, "operator": "Exists"}, {"key": NAME, "operator": "NotIn", "values": ["m"]}]},
     "it excludes pods"),
])
def test_affinity_that_cannot_be_carried(imported, selector, reason):
    spec, notes = imported(with_affinity(away(**selector)))
    assert "affinity" not in spec["template"]["spec"]
    assert f"labelSelector: this term on the label {NAME} is left out: {reason}" in notes or (
        f"labelSelector: this term on the label {ROLE} is left out: {reason}" in notes)


@pytest.mark.parametrize("selector,told", [({"matchLabels": {"app": "x"}}, False), ({"matchLabels": {"app": "y"}}, True)])
def test_affinity_to_own_labels_stays(imported, selector, told):
    """Workers have the template's labels."""
    spec, notes = imported(with_affinity(away(**selector)))
    assert spec["template"]["spec"]["affinity"] == away(**selector)["affinity"]
    assert ("no worker of this job has these labels" in notes) == told


def test_affinity_of_a_queued_job(imported):
    """Its workers are pods of an Indexed Job, which have no drarun.dev/worker."""
    spec, _ = imported(with_affinity(away(matchLabels={NAME: "m"}), queue="kueue.x-k8s.io/queue-name: q"))
    assert "batch.kubernetes.io/job-completion-index" in json.dumps(spec["template"]["spec"]["affinity"])


def test_affinity_of_two_pods(drarun):
    """The label by which each is found is not on both."""
    text = list(yaml.safe_load_all(two_pods()))
    for pod in text[1::2]:
        pod["spec"].update(away(matchExpressions=[{"key": "name", "operator": "Exists"}]))
    run = drarun("import", "-", input=yaml.safe_dump_all(text)).ok()
    pod = in_template(yaml.safe_load(run.out)["spec"])["template"]["spec"]
    assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == [OURS]


TRAIN = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [
    {"name": "train", "image": "i", "command": ["torchrun", "train.py"], "env": [{"name": "NCCL_IB_HCA", "value": "mlx5_0"}]}]}}
MPIRUN = {"spec": {"containers": [{"name": "l", "image": "i", "command": ["mpirun", "-np", "4", "app"]}]}}


def of_kind(kind, spec):
    return yaml.safe_dump({"kind": kind, "metadata": {"name": "s"}, "spec": spec}, sort_keys=False)


def test_references_of_a_command(imported):
    """A job replaces them as the kubelet does; a program on the command line has none."""
    words = ["--rank=$(RANK)", "--epochs=$(EPOCHS)", "$$(EPOCHS)"]
    text = of_kind("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": changed(
        TRAIN, command=["train"], args=words, env=[{"name": "EPOCHS", "value": "3"}])}}})
    spec, _ = imported(text)
    assert (first(spec)["command"], first(spec)["args"]) == (["train"], words) and {"name": "EPOCHS", "value": "3"} in first(spec)["env"]
    spec, _ = imported(text, "echo", "$(RANK)", "$(date +%s)", "$$")
    assert first(spec)["command"] == ["echo", "$$(RANK)", "$(date +%s)", "$$$"]


def test_references_of_torchrun(imported):
    """Variables that only its ranks have stay in its words, and are told."""
    words = ["--nnodes=$(WORLD_SIZE)", "--node_rank=$(RANK)", "--master_addr=$(MASTER_ADDR)", "train.py"]
    spec, notes = imported(of_kind("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": changed(TRAIN, args=words)}}}))
    assert first(spec)["args"] == words
    assert "args[0]: $(WORLD_SIZE) is not replaced: torchrun sets it for its ranks only; write $(NNODES), or remove" in notes
    assert "args[1]: $(RANK) is not replaced" in notes and "since PET_NODE_RANK has the same effect" in notes and "MASTER_ADDR" not in notes, notes


def replicated(name, template, replicas=1, parallelism=1):
    return {"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": parallelism, "completions": parallelism, "backoffLimit": 0, "template": template}}}


def jobset(*jobs, **more):
    return of_kind("JobSet", {"replicatedJobs": list(jobs), "failurePolicy": {"maxRestarts": 3},
                              "network": {"enableDNSHostnames": True}, **more})


def lws(**more):
    return of_kind("LeaderWorkerSet", {"replicas": 1, "leaderWorkerTemplate": {"size": 4, "workerTemplate": TRAIN, **more}})


def torch(**replicas):
    return of_kind("PyTorchJob", {"nprocPerNode": 8, "runPolicy": {"backoffLimit": 2}, "pytorchReplicaSpecs": {
        name: {"replicas": count, "template": template} for name, (count, template) in replicas.items()}})


def changed(template, **change):
    new = json.loads(json.dumps(template))
    new["spec"]["containers"][0].update(change)
    return new


@pytest.mark.parametrize("text,workers,command,more", [
    (jobset(replicated("w", TRAIN, 2, 3)), 6, ["torchrun", "train.py"], {"restarts": 3}),
    (jobset(replicated("l", MPIRUN), replicated("w", TRAIN, 1, 4), suspend=True), 4, ["app"], {"restarts": 3, "suspend": True}),
    (jobset(replicated("w", TRAIN, 4), replicated("l", MPIRUN)), 4, ["app"], {"restarts": 3}),
    (lws(), 4, ["torchrun", "train.py"], {}),
    (lws(leaderTemplate=TRAIN), 4, ["torchrun", "train.py"], {}),
    (lws(leaderTemplate=changed(MPIRUN, command=["mpirun", "-np", "3", "app"])), 3, ["app"], {}),
    (torch(Master=(1, TRAIN), Worker=(3, TRAIN)), 4, ["torchrun", "train.py"],
     {"restarts": 2, "ranksPerWorker": 1, "launch": "env"}),
    (torch(Worker=(3, TRAIN)), 3, ["torchrun", "train.py"], {"restarts": 2, "ranksPerWorker": 1, "launch": "env"}),
])
def test_sets(imported, text, workers, command, more):
    spec, notes = imported(text)
    assert spec["workers"] == workers and first(spec)["command"] == command
    assert {key: spec[key] for key in spec if key not in ("workers", "template", "nccl")} == more
    assert "NCCL_IB_HCA=mlx5_0 is left out: it is derived" in notes
    assert first(spec).get("env") == ([{"name": "PET_NPROC_PER_NODE", "value": "8"}] if "launch" in more else None)
    assert ("spec.network: left out" in notes) == ("replicatedJobs" in text)


@pytest.mark.parametrize("text,error", [
    (jobset(replicated("a", TRAIN), replicated("b", TRAIN)), "a second ReplicatedJob, and neither is a launcher"),
    (jobset(*[replicated(x, TRAIN) for x in "abc"]), "a third ReplicatedJob, beside workers and a launcher: import makes workers of one kind; "
     "import one of them by --only NAME (a, b, c), and add others to the job as roles"),
    (jobset({"name": "x"}), "template.spec.template is missing"),
    (of_kind("JobSet", {"x": 1}), "spec.replicatedJobs is missing"),
    (lws().replace("replicas: 1", "replicas: 2"), "<stdin>:5: spec.replicas: each group is a job of its own"),
    (lws(leaderTemplate=MPIRUN), "4 ranks cannot be divided among 3 workers"),
    (lws(leaderTemplate=changed(TRAIN, image="j")), "spec.containers[0].image of the leaderTemplate is not that of the workerTemplate"),
    (of_kind("LeaderWorkerSet", {"x": 1}), "spec.leaderWorkerTemplate.workerTemplate is missing"),
    (torch(Master=(1, TRAIN), Worker=(3, changed(TRAIN, args=["x"]))), "spec.containers[0].args of Worker is not that of Master"),
    (torch(), "Master.template, or Worker.template is missing"),
    (of_kind("PyTorchJob", {"x": 1}), "spec.pytorchReplicaSpecs is missing"),
])
def test_sets_that_are_no_job(drarun, text, error):
    run = drarun("import", "-", input=text)
    assert run.rc == 65 and run.out == "" and error in run.err and "drarun: <stdin>:" in run.err, repr(run)


def test_one_of_several_replicated_jobs(drarun):
    text = jobset(replicated("a", TRAIN), replicated("b", changed(TRAIN, command=["serve"]), 2, 3), replicated("l", MPIRUN), suspend=True)
    for name, workers, command in (("a", 1, ["torchrun", "train.py"]), ("b", 6, ["serve"])):
        run = drarun("import", "--only", name, "-", input=text).ok()
        job = yaml.safe_load(run.out)
        assert job["metadata"]["name"] == f"s-{name}" and job["spec"]["command"] == command
        assert (job["spec"]["workers"], job["spec"]["restarts"], job["spec"]["suspend"]) == (workers, 3, True)
        assert run.err.count(f"left out: --only {name} imports another") == 2 and "replicatedJobs[2]: left out" in run.err, run.err
    given = drarun("import", "--only=l", "-", "--", "app", input=text).ok()
    assert yaml.safe_load(given.out)["spec"]["command"] == ["app"]
    for source, only, said in (
            (text, "c", "<stdin>:6: no ReplicatedJob c; --only takes one of: a, b, l\n"),
            (lws(), "a", "<stdin>:1: the LeaderWorkerSet s has no ReplicatedJobs: --only a works only with a JobSet")):
        run = drarun("import", "--only", only, "-", input=source)
        assert run.rc == 65 and run.out == "" and said in run.err and "left out" not in run.err, repr(run)


GPUS = {"limits": {"nvidia.com/gpu": 8}}
SHELL = ["bash", "-c", "torchrun --nproc_per_node=8 --node_rank=$JOB_COMPLETION_INDEX train.py"]
ONCE = "each pod runs its program once, whatever its GPUs: ranksPerWorker is 1"


@pytest.mark.parametrize("resources,command,program,each", [
    (GPUS, SHELL, [], 1),
    (GPUS, ["python3", "spawn.py"], [], 1),
    ({"limits": {"amd.com/gpu": 8}}, ["all_reduce_perf", "-g", "8"], [], 1),
    (GPUS, ["torchrun", "train.py"], [], None),                  # which drarun starts once on each worker
    (GPUS, ["python3", "-m", "torch.distributed.run", "train.py"], [], None),
    ({"limits": {"nvidia.com/gpu": 1}}, ["app"], [], None),
    ({}, ["app"], [], None),
    (GPUS, ["sleep", "infinity"], [], None),                     # the ranks' program is another one
    (GPUS, ["app"], ["all_reduce_perf", "-g", "1"], None),
])
def test_the_program_of_a_pod_runs_once(imported, resources, command, program, each):
    """A job starts a rank for each GPU, each of which would start eight processes more."""
    spec, notes = imported(jobset(replicated("w", changed(TRAIN, command=command, resources=resources), 1, 2)), *program)
    assert spec.get("ranksPerWorker") == each and (ONCE in notes) == (each == 1), notes


def test_a_pod_with_gpus_of_two_vendors(imported):
    """A worker has one kind of them, and the other is not dropped without a word."""
    spec, notes = imported(of_kind("Job", {"template": changed(TRAIN, resources={"limits": {"nvidia.com/gpu": 8, "amd.com/gpu": "4", "cpu": "2"}})}))
    assert spec["devices"]["gpus"] == {"count": 8, "resource": "nvidia.com/gpu"}
    assert "amd.com/gpu" not in json.dumps(spec) and '"cpu": "2"' in json.dumps(spec)
    assert 'limits["amd.com/gpu"]: left out: the container asks for nvidia.com/gpu, too, and a worker has one kind of GPUs' in notes, notes


def test_a_pod_that_runs_mpirun_is_no_single_rank(imported):
    spec, notes = imported(of_kind("Job", {"template": changed(TRAIN, command=["mpirun", "-np", "8", "app"], resources=GPUS)}))
    assert "ranksPerWorker" not in spec and ONCE not in notes and spec["launch"] == "mpirun"


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
WORKER = "metadata.labels['drarun.dev/worker']"


@pytest.mark.parametrize("replicas,queue", [(1, None), (2, None), (1, "team-a")])
def test_what_other_controllers_give_their_pods(imported, replicas, queue):
    """The ranks' own variables go; a pod's number is the worker's, if its controller counted so; the rest is said."""
    template = changed(TRAIN, command=SHELL, env=[
        field("RANK", INDEX), {"name": "NCCL_IB_HCA", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "hca"}}},
        field("INDEX", INDEX), field("GROUP", "metadata.labels['leaderworkerset.sigs.k8s.io/group-index']"),
        field("TEAM", "metadata.labels['team']"), field("OWN", "metadata.labels['group-name']"), field("NODE", "spec.nodeName")])
    template["metadata"]["labels"]["group-name"] = "a"
    text = jobset(replicated("w", template, replicas, 2))
    if queue:
        text = text.replace("metadata:\n  name: s\n", f"metadata:\n  name: s\n  labels: {{kueue.x-k8s.io/queue-name: {queue}}}\n")
    spec, notes = imported(text)
    assert spec.get("queue") == queue
    env = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in first(spec)["env"]}
    known = replicas == 1 and not queue
    assert [*env] == ["JOB_COMPLETION_INDEX"] * known + ["INDEX", "GROUP", "TEAM", "OWN", "NODE"]
    assert env["INDEX"] == (WORKER if known else INDEX) and env.get("JOB_COMPLETION_INDEX", WORKER) == WORKER
    assert "RANK=valueFrom is left out: each rank gets its own" in notes
    assert "NCCL_IB_HCA=valueFrom is left out: it is derived from what the worker holds" in notes
    assert "GROUP will be empty: leaderworkerset.sigs.k8s.io/group-index is of another controller's pods" in notes
    assert not any(f"{name} will" in notes for name in ("TEAM", "OWN", "NODE"))
    reads = "command[2]: the program reads JOB_COMPLETION_INDEX, which another controller sets: "
    if queue:  # its pods are those of an Indexed Job
        assert "INDEX will" not in notes and "INDEX is now" not in notes and reads not in notes
    elif known:
        assert "INDEX is now from drarun.dev/worker, since batch.kubernetes.io/job-completion-index is of" in notes
        assert reads + "it is a variable of the job now; each rank has it as NODE_RANK, too" in notes
    else:
        assert "INDEX will be empty" in notes and reads + "each rank has NODE_RANK instead" in notes


@pytest.mark.parametrize("label", ["training.kubeflow.org/replica-index", "replica-index"])
@pytest.mark.parametrize("queue,path,key", [(None, WORKER, "drarun.dev/worker"), ("q", INDEX, "batch.kubernetes.io/job-completion-index")])
def test_the_number_of_a_pytorchjobs_pod(drarun, imported, label, queue, path, key):
    """It is the worker's where there are Workers alone; a Master has the number of the first of them."""
    template = changed(TRAIN, command=["sh", "-c", "[ $REPLICA_INDEX = 0 ]"], env=[field("REPLICA_INDEX", f"metadata.labels['{label}']")])
    labels = {"labels": {"kueue.x-k8s.io/queue-name": queue}} if queue else {}

    def text(**replicas):
        return yaml.safe_dump({"kind": "PyTorchJob", "metadata": {"name": "s", **labels}, "spec": {"pytorchReplicaSpecs": {
            name: {"replicas": count, "template": template} for name, count in replicas.items()}}})
    for replicas in ({"Worker": 2}, {"Master": 1}):
        spec, notes = imported(text(**replicas))
        assert field("REPLICA_INDEX", path) in first(spec)["env"], spec
        assert f"REPLICA_INDEX is now from {key}, since {label} is of another controller's pods" in notes, notes
    run = drarun("import", "-", input=text(Master=1, Worker=2))
    assert run.rc == 65 and run.out == "", repr(run)
    assert f"the variable REPLICA_INDEX is from {label}, which counts the Master and the Workers each from 0" in run.err, run.err


@pytest.mark.parametrize("program,env,said", [
    (["serve", "$(LWS_GROUP_SIZE)"], [{"name": "LWS_GROUP_SIZE", "value": "4"}], "args[1]: the program reads LWS_GROUP_SIZE, which another "
     "controller sets: it is a variable of the job now; each rank has it as NNODES, too"),
    (["serve $LWS_WORKER_INDEX $LWS_WORKER_INDEX"], [field("LWS_WORKER_INDEX", WORKER)], "each rank has it as NODE_RANK, too"),
    (["serve $LWS_LEADER_ADDRESS:1"], [], "the program reads LWS_LEADER_ADDRESS, which another controller sets: each rank has MASTER_ADDR instead"),
    (["serve", "MY_LWS_GROUP_SIZE_2"], [], None)])
def test_variables_of_a_leaderworkerset(imported, program, env, said):
    spec, notes = imported(lws(workerTemplate=changed(TRAIN, command=["sh", "-c"], args=program)))
    assert first(spec).get("env", []) == env
    assert notes.count(said) == 1 if said else "the program reads" not in notes, notes


def test_a_variable_that_the_manifest_sets(imported):
    """As recipes do that are read by a script of the image: no second one, and nothing to say of the program."""
    spec, notes = imported(of_kind("Job", {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": changed(
        TRAIN, command=SHELL, env=[field("JOB_COMPLETION_INDEX", INDEX)])}))
    assert first(spec)["env"] == [field("JOB_COMPLETION_INDEX", WORKER)] and "the program reads" not in notes


HOST = "is a pod of another controller, and no worker has this name in DNS: each rank has that of rank 0's worker in MASTER_ADDR"


@pytest.mark.parametrize("kind,spec,name", [
    ("StatefulSet", {"replicas": 2, "serviceName": "peers"}, "s-0.peers"),
    ("Job", {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}, "s-0.nccl"),
    ("JobSet", {}, "s-w-0-0.s"),
    ("JobSet", {"network": {"subdomain": "own"}}, "s-w-0-0.own"),
    ("PyTorchJob", {}, "s-master-0"), ("PyTorchJob", {}, "s-worker-10")])
def test_names_of_pods_in_dns(imported, kind, spec, name):
    """MASTER_ADDR as a variable is replaced; a name in the program or elsewhere would not resolve."""
    template = changed(TRAIN, command=["sh", "-c", f"exec torchrun --master_addr={name} --log={name}-1.txt train-2.s2 1.5 as-worker-0 s-workers-0"],
                       env=[{"name": "HEAD", "value": f"http://{name}.ns.svc:80"}, {"name": "VERSION", "value": "v1.ss"}])
    if kind == "Job":
        template["spec"]["subdomain"] = "nccl"
    if kind == "PyTorchJob":
        spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}
    text = jobset(replicated("w", template, 1, 2), **spec) if kind == "JobSet" else of_kind(kind, {**spec, "template": template})
    _, notes = imported(text)
    assert notes.count(f"{name} {HOST}") == 2 and notes.count(HOST) == 2, notes
    assert "command[2]: " in notes and "env[0].value: " in notes


def test_names_in_dns_of_a_trainjob(imported):
    """Its pods are those of a JobSet that has its name."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    name = f"{job['metadata']['name']}-node-0-0.{job['metadata']['name']}"
    job["spec"]["trainer"]["args"] = [f"--head={name}"]
    assert f"{name} {HOST}" in imported(yaml.safe_dump_all([runtime, job]))[1]


@pytest.mark.parametrize("program", [[], ["other"]])
@pytest.mark.parametrize("replicas", [1, 2])
def test_what_containers_beside_the_ranks_read(imported, program, replicas):
    """An init container that waits for a pod's name would wait forever; one that reads the pod's number gets the worker's."""
    template = changed(TRAIN, command=["app"], env=[field("MINE", INDEX)])
    template["spec"]["initContainers"] = [
        {"name": "wait", "image": "i", "command": ["sh", "-c", "until nslookup s-w-0-0.s; do sleep 2; done"]},
        {"name": "fetch", "image": "i", "command": ["fetch"], "args": ["--shard=$(JOB_COMPLETION_INDEX)"], "env": [field("NUMBER", INDEX)]}]
    template["spec"]["containers"].append({"name": "log", "image": "i", "command": ["log", "$(LWS_LEADER_ADDRESS)"], "env": [
        {"name": "HEAD", "value": "s-w-0-0.s"}]})
    spec, notes = imported(jobset(replicated("w", template, replicas, 2)), *program)
    known, pod = replicas == 1, spec["template"]["spec"]
    path = WORKER if known else INDEX
    assert pod["initContainers"][1]["env"] == [field("JOB_COMPLETION_INDEX", WORKER)] * known + [field("NUMBER", path)]
    assert first(spec)["env"] == [field("MINE", path)] and "env" not in pod["initContainers"][0]
    host = "s-w-0-0.s is a pod of another controller, and no worker has this name in DNS: "
    reads = "the program reads JOB_COMPLETION_INDEX, which another controller sets: "
    assert "initContainers[0].command[2]: " + host + "a worker whose init container waits for it never starts" in notes, notes
    assert "containers[1].env[0].value: " + host + "this container does not find it" in notes
    assert "initContainers[1].args[0]: " + reads + ("it is a variable of this container now\n" if known else "this container has none\n") in notes
    assert "containers[1].command[1]: the program reads LWS_LEADER_ADDRESS, which another controller sets: this container has none\n" in notes
    assert all((f"{name} is now from" if known else f"{name} will be empty") in notes for name in ("MINE", "NUMBER"))


def test_an_exclusive_domain_is_left_out(imported):
    """JobSet and LeaderWorkerSet place by it; as an annotation of a job it would do nothing."""
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    text = jobset(replicated("w", TRAIN)).replace("name: s\n", f"name: s\n  annotations: {{{key}: rack, a: b}}\n", 1)
    _, notes = imported(text)
    assert f'metadata.annotations["{key}"]: left out: a job has no such placement' in notes, notes


def test_labels_and_annotations_of_the_jobs_of_a_set(imported):
    """By one of them a ReplicatedJob is placed; nothing of the others is lost without a word."""
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    job = replicated("w", TRAIN)
    job["template"]["metadata"] = {"annotations": {key: "rack"}, "labels": {"team": "a", "jobset.sigs.k8s.io/x": "y"}}
    _, notes = imported(jobset(job))
    assert f'template.metadata.annotations["{key}"]: left out: a job has no such placement' in notes, notes
    assert "template.metadata.labels.team: left out: of a Job, which is not made here; a job has its own in metadata" in notes and "/x" not in notes, notes


def test_retries_of_a_jobs_pods(imported):
    job = replicated("w", TRAIN)
    job["template"]["spec"]["backoffLimit"] = 5
    spec, notes = imported(jobset(job))
    assert spec["restarts"] == 3 and "backoffLimit: left out: a JobSet restarts as a whole" in notes
    assert "backoffLimit" not in imported(jobset(replicated("w", TRAIN)))[1]


def test_the_time_of_a_jobset(imported):
    """The first of its Jobs that is out of time ends an attempt; a job's time is that of all attempts."""
    launcher, workers = replicated("l", MPIRUN), replicated("w", TRAIN, 1, 4)
    launcher["template"]["spec"]["activeDeadlineSeconds"], workers["template"]["spec"]["activeDeadlineSeconds"] = 60, 600
    for jobs, more, total, told in (((launcher, workers), {}, "60s", 2), ((workers, launcher), {"failurePolicy": {}}, "60s", 0),
                                    ((workers,), {}, "600s", 1)):
        spec, notes = imported(jobset(*jobs, **more))
        assert spec["timeouts"] == {"total": total} and notes.count("activeDeadlineSeconds: in a JobSet each attempt has this time") == told, notes


IN_A_QUEUE = ("name: s\n", "name: s\n  labels: {kueue.x-k8s.io/queue-name: q}\n")


def test_a_job_that_no_verb_would_take(drarun):
    """It is printed, since the findings are about it."""
    pod = changed(TRAIN)
    pod["spec"]["hostNetwork"] = True
    text = of_kind("Job", {"parallelism": 2, "completions": 2, "template": pod})
    assert "hostNetwork: true" in drarun("import", "-", input=text).ok().out
    pod["spec"].update(away("podAffinity", matchLabels={"a": "b"}))
    queued = of_kind("Job", {"parallelism": 2, "completions": 2, "template": pod}).replace(*IN_A_QUEUE, 1)
    run = drarun("import", "-", input=queued)
    line = next(line for line in run.err.splitlines() if "requires all workers to be on one node" in line)
    at = int(line.split("<stdout>:")[1].split(":")[0])
    assert run.rc == 65 and "spread: node" in run.out.splitlines()[at - 1], repr(run)
    assert run.err.endswith("the imported job is printed, but not complete: mend the 1 error in it\n")


@pytest.mark.parametrize("workers,pod,queued,spread,said", [
    (2, {}, True, {"spread": "node"}, True),
    (1, {}, True, None, False),
    (2, {}, False, None, False),
    (2, {"hostNetwork": False}, True, None, False),
    (2, away(matchLabels={"a": "b"}), True, None, False)])
def test_queued_workers_of_the_hosts_network(imported, workers, pod, queued, spread, said):
    """As published tests of networks are: there sshd's port keeps them apart, and here the agent's."""
    template = changed(TRAIN)
    template["spec"].update({"hostNetwork": True, **pod})
    text = of_kind("Job", {"parallelism": workers, "completions": workers, "template": template})
    spec, notes = imported(text.replace(*IN_A_QUEUE, 1) if queued else text)
    assert spec.get("placement") == spread and ("queue" in spec) == queued
    assert ("spec.hostNetwork: each of the 2 workers gets a node of its own (placement: {spread: node})" in notes) == said, notes


def test_all_that_is_wrong_with_an_imported_job(drarun):
    """As of templates that a tool has yet to fill in."""
    run = drarun("import", "-", input="kind: Pod\nmetadata: {name: Bad_Name}\nspec: {containers: [{image: i, command: [c]}]}\n")
    assert run.rc == 65 and "metadata.name: expected a DNS label" in run.err and "name: Bad_Name" in run.out, repr(run)
    pod = changed(TRAIN, image="$IMAGE", resources={"limits": {"memory": "$MEMORY"}, "requests": {"memory": "$MEMORY"}})
    run = drarun("import", "-", input=of_kind("Job", {"template": pod}))
    assert run.rc == 65 and run.err.count(": fill in the manifest's variables first, by envsubst") == 3, run.err
    assert "mend the 3 errors in it" in run.err and "image: $IMAGE" in run.out
    for limits in ({"\u00e4": "$R", "\u00e9.com/gpu": "$Q"}, {"memory": "$M\nfoo"}, {"memory": "\n$M\n"}):  # behind such letters, and below its key
        pod = changed(TRAIN, resources={"limits": limits})
        run = drarun("import", "-", input=of_kind("Job", {"template": pod}))
        wrong = [line for line in run.err.splitlines() if "<stdout>:" in line]
        assert run.rc == 65 and wrong and all(": fill in the manifest's variables first" in line for line in wrong), run.err


def test_keys_without_a_value(drarun, imported):
    """As NVIDIA's and Google's manifests have them: to an API server they are not there, and a volume of no kind is an emptyDir."""
    pod = changed(TRAIN, env=None, volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "h", "mountPath": "/h"}])
    pod["spec"].update(nodeSelector=None, volumes=[{"name": "v", "emptyDir": None}, {"name": "h", "hostPath": {"path": "/h"}, "emptyDir": None}])
    for metadata, kept in (({"labels": None, "annotations": None}, None), ({"labels": {"a": "b"}, "annotations": None}, {"labels": {"a": "b"}})):
        pod["metadata"] = metadata  # as a chart leaves them that has none to give
        spec, _ = imported(of_kind("Job", {"template": pod}))
        assert spec["template"].get("metadata") == kept
    assert "env" not in first(spec) and "nodeSelector" not in spec["template"]["spec"]
    assert spec["template"]["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/h"}}], spec
    run = drarun("import", "-", input=of_kind("Job", {"template": changed(TRAIN, resources={"limits": {"nvidia.com/gpu": None}})}))
    assert run.rc == 65 and 'limits["nvidia.com/gpu"]: expected a quantity' in run.err, repr(run)


def test_a_script_is_no_manifest(drarun, tmp_path):
    file = tmp_path / "train.sbatch"
    for text in ("export A=1\nsrun app\n", "srun bash -c 'echo a: b'\n", "", "if true; then\n  srun a\nfi\n"):  # YAML, and none
        file.write_text("#!/bin/bash\n#SBATCH --nodes=2\n" + text)
        run = drarun("import", file)
        assert run.rc == 65 and f"{file}: this is a script, and import reads Kubernetes manifests" in run.err, run.err
        assert "--nodes is spec.workers" in run.err and len(run.err.splitlines()) == 1
    file.write_text("#!/usr/bin/env -S kubectl apply -f\n" + of_kind("Job", {"template": TRAIN}))
    assert "name: s" in drarun("import", file).ok().out


@pytest.mark.parametrize("policy,env,said", [
    ({}, {"PET_NPROC_PER_NODE": "auto"}, []),
    ({"nprocPerNode": "gpu"}, {"PET_NPROC_PER_NODE": "gpu"}, ["spec.nprocPerNode: is now the variable PET_NPROC_PER_NODE"]),
    ({"nprocPerNode": "2", "elasticPolicy": {"nProcPerNode": 8, "minReplicas": 2, "rdzvBackend": "c10d"}}, {"PET_NPROC_PER_NODE": "8"},
     ["elasticPolicy.nProcPerNode: is now", "elasticPolicy.minReplicas: left out: the number of workers is fixed",
      "elasticPolicy.rdzvBackend: left out: drarun tells torchrun where its rendezvous is, and static keeps"]),
    ({"elasticPolicy": {"maxRestarts": 3, "rdzvBackend": "c10d"}},
     {"PET_MAX_RESTARTS": "3", "PET_RDZV_BACKEND": "c10d", "PET_NPROC_PER_NODE": "auto"},
     ["elasticPolicy.maxRestarts: is now the variable PET_MAX_RESTARTS", "ranks have no fixed order of workers then; for a fixed order remove both variables"]),
    ({"elasticPolicy": {"maxRestarts": 1, "rdzvBackend": "etcd"}}, {"PET_MAX_RESTARTS": "1", "PET_RDZV_BACKEND": "c10d", "PET_NPROC_PER_NODE": "auto"},
     ["elasticPolicy.rdzvBackend: left out: drarun tells torchrun where its rendezvous is, which is c10d's"])])
def test_processes_of_a_pytorchjob(drarun, policy, env, said):
    """As the operator's variables say it to the torchrun of each pod."""
    run = drarun("import", "-", input=of_kind("PyTorchJob", {**policy, "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TRAIN}}})).ok()
    assert yaml.safe_load(run.out)["spec"]["env"] == env and all(line in run.err for line in said), run.err


@pytest.mark.parametrize("suspend", [True, False])
def test_a_suspended_job_of_a_queue(drarun, suspend):
    """Only Kueue would resume it, and it does so by itself."""
    text = of_kind("Job", {"suspend": suspend, "template": TRAIN})
    assert yaml.safe_load(drarun("import", "-", input=text).ok().out)["spec"]["suspend"] == suspend
    run = drarun("import", "-", input=text.replace("name: s\n", "name: s\n  labels: {kueue.x-k8s.io/queue-name: q}\n", 1)).ok()
    assert "suspend" not in yaml.safe_load(run.out)["spec"]
    assert ("spec.suspend: left out: Kueue suspends and resumes the job itself" in run.err) == suspend


def test_amounts_that_kueue_may_change(drarun):
    keys = [f"kueue.x-k8s.io/{key}" for key in ("job-min-parallelism", "job-completions-equal-parallelism", "elastic-job")]
    run = drarun("import", "-", input=yaml.safe_dump({"kind": "Job", "spec": {"template": TRAIN}, "metadata": {
        "name": "s", "labels": {"kueue.x-k8s.io/queue-name": "q"}, "annotations": {**dict.fromkeys(keys, "1"), "a": "b"}}})).ok()
    assert yaml.safe_load(run.out)["metadata"]["annotations"] == {"a": "b"}
    assert all(f'metadata.annotations["{key}"]: left out: the size of a job is fixed' in run.err for key in keys), run.err


WRITTEN = {"batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "s", "controller-uid": "u", "job-name": "s"}


def test_what_controllers_have_written(imported):
    """By these labels another Job would adopt the workers, and a queue's Job is refused; fields read what is the author's."""
    template = changed(TRAIN, env=[field("INDEX", INDEX), field("GROUP", "metadata.labels['group-name']"),
                                   field("NAME", "metadata.labels['batch.kubernetes.io/job-name']")])
    template["metadata"] = {"labels": {"a": "b", "group-name": "g", "job-role": "r", "scheduling.x-k8s.io/pod-group": "p", **WRITTEN},
                            "annotations": {"batch.kubernetes.io/job-completion-index": "1"}}
    spec, notes = imported(yaml.safe_dump({"kind": "Job", "spec": {"template": template}, "metadata": {
        "name": "s", "annotations": {"batch.kubernetes.io/job-tracking": ""}}}))
    assert spec["template"]["metadata"] == {"labels": {"a": "b", "group-name": "g", "scheduling.x-k8s.io/pod-group": "p"}}
    assert "metadata.labels: left out, as another controller sets them: batch.kubernetes.io/controller-uid" in notes
    assert 'annotations["batch.kubernetes.io/job-tracking"]: left out: another controller sets it' in notes
    assert "INDEX is now from drarun.dev/worker" in notes and "NAME will be empty" in notes and "GROUP will" not in notes


@pytest.mark.parametrize("queue", [{}, {"kueue.x-k8s.io/queue-name": "q"}])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_what_kueue_has_written(imported, kind, queue):
    """By it workers would be of a group of Pods that is not there, and with its gate they would never be scheduled."""
    written = {"labels": ("managed", "podset", "tas", "pod-group-name", "prebuilt-workload-name"),
               "annotations": ("pod-group-total-count", "pod-suspending-parent", "role-hash", "workload")}
    labels, annotations = ({f"kueue.x-k8s.io/{key}": "x" for key in keys} for keys in written.values())
    topology = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    pod = {**changed(TRAIN), "metadata": {"labels": {"a": "b", **labels, **queue}, "annotations": {**annotations, **topology}}}
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.com/quota"}]
    one = {"Pod": {**pod, "metadata": {"name": "s", **pod["metadata"]}}, "Job": {"spec": {"template": pod}, "metadata": {"name": "s", "labels": queue}}}
    spec, notes = imported(yaml.safe_dump({"kind": kind, **one[kind]}))
    assert spec["template"]["metadata"] == {"labels": {"a": "b"}, "annotations": topology}
    assert spec["template"]["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]
    assert spec.get("queue") == ("q" if queue else None)
    assert "schedulingGates[0]: left out: Kueue adds it to the pods that it holds back" in notes and "schedulingGates[1]" not in notes
    for part, keys in written.items():
        line = next(each for each in notes.splitlines() if f"metadata.{part}: left out, as another controller sets them: " in each)
        assert all(f"kueue.x-k8s.io/{key}" in line for key in keys) and "topology" not in line


@pytest.mark.parametrize("uid", [None, "u"])
def test_a_pod_that_has_run(imported, uid):
    """Its node, its priority as a number and its token are those of this Pod."""
    token = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    pod = changed(TRAIN, volumeMounts=[{"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    pod["spec"].update(nodeName="node-1", priority=0, preemptionPolicy="Never", volumes=[token, {"name": "d", "emptyDir": {}}])
    spec, notes = imported(yaml.safe_dump({"kind": "Pod", "spec": pod["spec"], "metadata": {"name": "s", **({"uid": uid} if uid else {})}}))
    kept = spec["template"]["spec"]
    for key in ("nodeName", "priority", "preemptionPolicy"):
        assert (key in kept) == (not uid) and (f"spec.{key}: left out: " in notes) == bool(uid)
    assert [each["name"] for each in kept["volumes"]] == (["d"] if uid else ["kube-api-access-x", "d"])
    assert ("volumeMounts" in first(spec)) == (not uid)


@pytest.mark.parametrize("handler,about", [
    ({"tcpSocket": {"port": 22}}, True), ({"tcpSocket": {"port": "ssh"}}, True), ({"tcpSocket": {"port": "web"}}, False),
    ({"exec": {"command": ["pgrep", "sshd"]}}, True), ({"exec": {"command": ["sh", "-c", "service ssh start"]}}, True),
    ({"httpGet": {"port": 8080}}, False)])
def test_probes_and_hooks_of_sshd(imported, handler, about):
    """The kubelet would end each worker in which no sshd answers."""
    pod = changed(TRAIN, ports=[{"name": "ssh", "containerPort": 2222}, {"name": "web", "containerPort": 80}], livenessProbe=handler,
                  readinessProbe=handler, lifecycle={"postStart": handler})
    for program in ([], ["app"]):
        spec, notes = imported(of_kind("Job", {"template": pod}), *program)
        for key in ("livenessProbe", "readinessProbe", "lifecycle"):
            assert (key in first(spec)) == (not about), key
        assert notes.count(": left out: there is no sshd in a worker") == 3 * about
        assert ("livenessProbe: kept, though the program is another one now" in notes) == (not about and bool(program)), notes


def test_a_group_of_the_scheduler(imported):
    pod = changed(TRAIN)
    pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    spec, notes = imported(of_kind("Job", {"template": pod}))
    assert "schedulingGroup" not in spec["template"]["spec"]
    assert "schedulingGroup: left out: drarun places all workers or none itself" in notes


def test_claims_that_a_jobset_makes(imported):
    """Its pods share them."""
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    other = {**template, "metadata": {"name": "other"}}
    pod = changed(TRAIN, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    spec, notes = imported(jobset(replicated("w", pod), volumeClaimPolicies=[{"templates": [template, other]}]))
    assert spec["template"]["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-s"}}]
    assert "templates[0]: the workers share the PersistentVolumeClaim data-s" in notes and "templates[1]: left out: no worker mounts it" in notes


def test_variables_that_name_what_left(imported):
    env = [("MASTER_ADDR", "a"), ("NCCL_DEBUG", "INFO"), ("NCCL_IB_HCA", "mlx5"), ("NCCL_ALGO", "$(NCCL_DEBUG)"), ("RDZV", "$(MASTER_ADDR):1"),
           ("LEVEL", "$(NCCL_DEBUG) $(NCCL_IB_HCA) $$(NCCL_DEBUG) $(LATER) $(NCCL_PROTO)"),
           ("LATER", "$(NCCL_ALGO)"), ("NCCL_PROTO", "ll")]
    spec, notes = imported(of_kind("Job", {"template": changed(TRAIN, env=[{"name": k, "value": v} for k, v in env])}))
    kept = {each["name"]: each["value"] for each in first(spec)["env"]}
    assert kept == {"NCCL_ALGO": "INFO", "RDZV": "$(MASTER_ADDR):1", "LEVEL": "INFO mlx5 $$(NCCL_DEBUG) $(LATER) $(NCCL_PROTO)", "LATER": "$(NCCL_ALGO)"}
    assert "env[4]: RDZV refers to MASTER_ADDR, which is left out" in notes and "LATER refers" not in notes and "LEVEL refers" not in notes


def test_references_of_nccls_variables(imported):
    """Nobody replaces them in nccl.env, so that all pods would write one file."""
    env = [field("POD", "metadata.name"), {"name": "NCCL_DEBUG_FILE", "value": "/logs/$(POD).%p"}, {"name": "NCCL_DEBUG", "value": "INFO"}]
    spec, _ = imported(of_kind("Job", {"template": changed(TRAIN, env=env)}))
    assert first(spec)["env"] == env[:2] and spec["nccl"] == {"env": {"NCCL_DEBUG": "INFO"}}


@pytest.mark.parametrize("resource,claimed,network", [("rdma/ib", False, "rdma"), ("vpc.amazonaws.com/efa", False, "rdma"),
                                                      ("nvidia.com/mlnxnics", False, "rdma"), ("example.com/disk", False, None), ("rdma/ib", True, None)])
def test_nics_of_a_device_plugin(imported, resource, claimed, network):
    limits = {resource: 1} if claimed else {resource: 1, "nvidia.com/gpu": 8}
    pod = changed(TRAIN, resources={"limits": limits})
    text = of_kind("Job", {"template": pod})
    if claimed:
        pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "t"}]
        text = of_kind("Job", {"template": pod}) + "---\n" + yaml.safe_dump({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"},
            "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": GPU}]}}}})
    spec, notes = imported(text)
    assert spec.get("network") == network and ("these are NICs for RDMA: network is rdma" in notes) == bool(network)
    assert first(spec)["resources"]["limits"][resource] == 1


def test_plugins_and_transports_stay(imported):
    env = {"UCX_TLS": "rc,sm", "NCCL_NET_PLUGIN": "/opt/ofi/libnccl-net.so", "NCCL_TUNER_PLUGIN": "libnccl-tuner.so"}
    spec, notes = imported(of_kind("Job", {"template": changed(TRAIN, env=[{"name": k, "value": v} for k, v in env.items()])}))
    assert first(spec)["env"] == [{"name": "UCX_TLS", "value": "rc,sm"}]
    assert spec["nccl"]["env"] == {"NCCL_NET_PLUGIN": "/opt/ofi/libnccl-net.so"} and "NCCL_TUNER_PLUGIN=libnccl-tuner.so is left out" in notes


def test_pods_that_differ_and_have_no_names(drarun):
    pods = [{"kind": "Pod", "metadata": {"generateName": "train-"}, "spec": changed(TRAIN, image=image)["spec"]} for image in "ab"]
    run = drarun("import", "-", input=yaml.safe_dump_all(pods))
    assert "image of the Pod train is not that of the Pod train (<stdin>:" in run.err, run.err


RUNTIMES = SOURCE / "tests/data/import"


def test_trainjob_of_torch(imported):
    """The runtime's pods with what the TrainJob sets in their place."""
    spec, notes = imported(RUNTIMES / "trainjob-torch.yaml")
    pod, container = spec["template"]["spec"], first(spec)
    assert (spec["workers"], spec["ranksPerWorker"], spec["launch"], spec["queue"]) == (2, 1, "env", "team-a")
    assert spec["devices"] == {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}} and spec["nccl"] == {"env": {"NCCL_DEBUG": "INFO"}}
    assert (container["image"], container["command"], container["args"]) == ("example/tune:2", ["torchrun", "tune.py"], ["--epochs", "3"])
    assert container["env"] == [{"name": "MODE", "value": "a"}, {"name": "PET_NPROC_PER_NODE", "value": "8"}]
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"pool": "a4"}, [{"key": "team", "operator": "Exists"}])
    assert pod["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert "ClusterTrainingRuntime torch-distributed is left out" not in notes


def test_trainjob_of_mpi(imported):
    """Its launcher's pod is one of its nodes, and there is no sshd."""
    spec, notes = imported(RUNTIMES / "trainjob-mpi.yaml")
    assert (spec["workers"], spec["ranksPerWorker"], spec["nccl"]) == (3, 8, {"env": {"NCCL_DEBUG": "INFO"}})
    assert first(spec)["command"] == ["all_reduce_perf", "-b", "1K"] and "args" not in first(spec)
    assert "readinessProbe" not in first(spec) and "there is no sshd" in notes
    assert spec["devices"] == {"gpus": {"count": 8, "resource": "nvidia.com/gpu"}}


def test_trainjob_of_mpi_without_a_label(imported):
    """Trainer finds MPI's jobs by their names; by the label it finds where the TrainJob's own values go."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-mpi.yaml").read_text())
    launcher = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]
    del launcher["metadata"]
    launcher["spec"]["template"]["spec"]["containers"][0]["command"] = ["mpirun", "app"]
    runtime["spec"]["mlPolicy"]["mpi"].update(numProcPerNode=8, runLauncherAsNode=False)
    keys = {"volumeMounts": [{"name": "mpi-ssh-auth", "mountPath": "/k"}]}
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    node["containers"][0].update(keys)
    node["initContainers"] = [{"name": "fix", "image": "i", **keys}, {"name": "other", "image": "i"}]
    job["spec"]["trainer"] = {"numNodes": 2, "image": "example/other:1"}
    spec, notes = imported(yaml.safe_dump_all([runtime, job]))
    assert (spec["workers"], spec["ranksPerWorker"]) == (2, 8) and first(spec)["command"] == ["app"]
    assert [each["name"] for each in spec["template"]["spec"]["initContainers"]] == ["other"] and "volumeMounts" not in first(spec)
    assert "the init container fix is left out: it prepares the keys of sshd" in notes and "the mount of sshd's keys in the container node is" in notes
    assert first(spec)["image"] == "example/mpi:1" and "spec.trainer.image: left out: no Job of the runtime has the label" in notes


@pytest.mark.parametrize("implementation,given", [("OpenMPI", None), (None, None), ("Intel", "1"), ("MPICH", "1")])
def test_the_mpi_of_a_trainjob(imported, implementation, given):
    """Intel MPI and MPICH hand on the launcher's variables, Open MPI what -x names."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-mpi.yaml").read_text())
    mpi = runtime["spec"]["mlPolicy"]["mpi"]
    mpi["brandNew"] = mpi.pop("mpiImplementation")
    mpi.update({"mpiImplementation": implementation} if implementation else {})
    launcher = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    launcher["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    job["spec"]["trainer"]["command"] = ["mpirun", "app"]
    spec, notes = imported(yaml.safe_dump_all([runtime, job]))
    assert {each["name"]: each["value"] for each in first(spec).get("env", [])}.get("A") == given, notes
    assert ("the launcher's variables A are left out" in notes) == (not given) and "mlPolicy.mpi.brandNew: left out" in notes


@pytest.mark.parametrize("own,base,gpus,slots", [(None, 1, 8, 8), (None, None, 8, 8), (4, 1, 8, 4), (None, 2, 8, 2), (None, 1, None, 1), (1, 1, 8, 1)])
def test_slots_of_a_trainjobs_mpi(imported, own, base, gpus, slots):
    """Trainer writes them into /etc/mpi/hostfile: of 1, which the API puts there too, it makes one for each GPU."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-mpi.yaml").read_text())
    for holder, value in ((runtime["spec"]["mlPolicy"]["mpi"], base), (job["spec"]["trainer"], own)):
        holder.update({"numProcPerNode": value} if value else {})
        if not value:
            holder.pop("numProcPerNode", None)
    job["spec"]["trainer"].update(command=["mpirun", "--hostfile", "/etc/mpi/hostfile", "app"], resourcesPerNode={"limits": {"nvidia.com/gpu": gpus} if gpus else {}})
    spec, notes = imported(yaml.safe_dump_all([runtime, job]))
    assert (spec["workers"], spec["ranksPerWorker"]) == (3, slots) and first(spec)["command"] == ["app"], notes


def test_trainjob_and_its_runtime_in_other_files(drarun, tmp_path):
    """In any order, as kubectl prints them; initializers and other pods' overrides are told."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    fetch = {"name": "dataset-initializer", "template": {"metadata": {"labels": {
        "trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}}, "spec": {"template": {"spec": {"containers": [{"name": "d"}]}}}}}
    runtime["spec"]["template"]["spec"]["replicatedJobs"].insert(0, fetch)
    job["spec"]["podTemplateOverrides"] += [{"targetJobs": [{"name": "dataset-initializer"}], "spec": {"nodeSelector": {"a": "b"}}}]
    job["spec"]["initializer"] = {"dataset": {"storageUri": "hf://x"}}
    for name, each in (("a", job), ("b", runtime)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": [each]}))
    run = drarun("import", tmp_path).ok()
    spec = next(yaml.safe_load_all(run.out))["spec"]
    assert spec["workers"] == 2 and spec["nodeSelector"] == {"pool": "a4"}
    assert "left out: dataset-initializer is no step of a job here" in run.err
    assert "it is for other pods than the workers'" in run.err and "spec.initializer" in run.err
    assert run.err.count("dataset-initializer is no step") == 1


@pytest.mark.parametrize("base,own,made", [
    ({"requests": {"cpu": 4, "memory": "8Gi"}, "limits": {"memory": "8Gi"}}, {"limits": {"nvidia.com/gpu": 8, "memory": "16Gi"}},
     {"requests": {"cpu": 4, "memory": "8Gi"}, "limits": {"memory": "16Gi"}}),
    ({"requests": {"cpu": 4}}, {}, {"requests": {"cpu": 4}}), (None, {}, None),
    ({}, {"limits": {"cpu": 2}, "requests": {"cpu": 1}}, {"limits": {"cpu": 2}, "requests": {"cpu": 1}})])
def test_resources_of_a_trainjobs_node(drarun, base, own, made):
    """They are merged with those of the runtime."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    if base is not None:
        node["spec"]["containers"][0]["resources"] = base
    job["spec"]["trainer"]["resourcesPerNode"] = own
    spec = next(yaml.safe_load_all(drarun("import", "-", input=yaml.safe_dump_all([runtime, job])).ok().out))["spec"]
    assert spec.get("resources") == made
    assert spec.get("devices") == ({"gpus": {"count": 8, "resource": "nvidia.com/gpu"}} if "nvidia.com/gpu" in str(own) else None)
    node["spec"] = "no pod"
    assert "has no pod template" in drarun("import", "-", input=yaml.safe_dump_all([runtime, job])).err


@pytest.mark.parametrize("each,base,own,count", [
    (None, None, None, "1"), ("auto", {"requests": {"cpu": "1500m"}}, None, "2"), (None, {"limits": {"cpu": 4}, "requests": {"cpu": 3}}, None, "3"),
    (None, {"limits": {"nvidia.com/gpu": 8}}, {"limits": {"cpu": "250m"}}, "1"), (None, None, {"limits": {"cpu": 4, "nvidia.com/gpu": 2}}, "auto"),
    ("gpu", None, None, "gpu"), (5, None, None, "5")])
def test_processes_of_a_trainjob(drarun, each, base, own, count):
    """Trainer's "auto" is torchrun's where there are GPUs."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    trainer = job["spec"]["trainer"]
    for holder, key, value in ((trainer, "numProcPerNode", each), (node["spec"]["containers"][0], "resources", base), (trainer, "resourcesPerNode", own)):
        holder.pop(key, None)
        if value is not None:
            holder[key] = value
    run = drarun("import", "-", input=yaml.safe_dump_all([runtime, job])).ok()
    assert next(yaml.safe_load_all(run.out))["spec"]["env"]["PET_NPROC_PER_NODE"] == count
    assert f"torchrun starts {count} processes in each pod" in run.err


def test_the_time_of_a_trainjob(drarun):
    """That of its runtime's Job, as drarun render --as trainjob writes it, and its own."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["activeDeadlineSeconds"] = 600
    for own, total in ((None, "600s"), (60, "60s"), (6000, "600s")):
        job["spec"].update({"activeDeadlineSeconds": own} if own else {})
        made = next(yaml.safe_load_all(drarun("import", "-", input=yaml.safe_dump_all([runtime, job])).ok().out))
        assert made["spec"]["timeouts"] == {"total": total}


@pytest.mark.parametrize("policy,said", [({"xgboost": {}}, "Trainer tells XGBoost's workers of their tracker by DMLC_TRACKER_URI"),
                                         ({"flux": {}}, "Flux starts the ranks"), ({"other": {}}, "mlPolicy.other: left out: a job has no such policy"),
                                         ({"torch": {"elasticPolicy": {"maxRestarts": 3}}}, "mlPolicy.torch.elasticPolicy: left out: the number of nodes is fixed"),
                                         ({"torch": {"other": 1}}, "mlPolicy.torch.other: left out"), ({"jax": {"other": 1}}, "mlPolicy.jax.other: left out")])
def test_policies_of_a_runtime(drarun, policy, said):
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    runtime["spec"]["mlPolicy"] = {"numNodes": 1, **policy}
    run = drarun("import", "-", input=yaml.safe_dump_all([runtime, job]))
    assert run.rc == (65 if {"xgboost", "flux"} & {*policy} else 0) and said in run.err, repr(run)


def test_patches_of_a_trainjobs_runtime(drarun):
    """Trainer 2.2 has them in place of podTemplateOverrides: maps and keyed lists are merged, tolerations replaced."""
    runtime, job = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    zone = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}]}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"team": "b"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    node["metadata"] = {"labels": {"team": "a", "kept": "x"}}
    node["spec"].update(tolerations=[{"key": "old", "operator": "Exists"}], nodeSelector={"pool": "a4"}, affinity=zone,
                        securityContext={"runAsUser": 7, "fsGroup": 1})
    pod = {"serviceAccountName": "training", "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "new", "operator": "Exists"}],
           "securityContext": {"fsGroup": 2}, "affinity": apart, "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
           "terminationGracePeriodSeconds": 90, "volumes": [{"name": "data", "emptyDir": {}}],
           "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/d"}], "securityContext": {"privileged": True}},
                          {"name": "other", "env": []}]}

    def patch(name, template):
        return {"name": name, "template": {"metadata": {"labels": {"of": "job"}}, "spec": {"template": template}}}
    del job["spec"]["podTemplateOverrides"]
    job["spec"]["activeDeadlineSeconds"] = 600
    job["spec"]["runtimePatches"] = [
        {"manager": "a.b/team", "time": "2026-01-01T00:00:00Z", "trainingRuntimeSpec": {"template": {
            "metadata": {"labels": {"of": "set"}},
            "spec": {"replicatedJobs": [patch("node", {"metadata": {"labels": {"team": "b"}}, "spec": pod}), patch("dataset-initializer", {})]}}}},
        {"manager": "c.d/queue", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
            patch("node", {"spec": {"nodeSelector": {"disk": "nvme"}}})]}}}},
        {"manager": "e.f/none"}]
    run = drarun("import", "-", input=yaml.safe_dump_all([runtime, job])).ok()
    made = in_template(next(yaml.safe_load_all(run.out))["spec"])
    template, spec = made["template"]["metadata"], made["template"]["spec"]
    assert made["timeouts"] == {"total": "600s"} and template["labels"] == {"team": "b", "kept": "x"}
    assert spec["nodeSelector"] == {"pool": "a4", "disk": "nvme"} and spec["tolerations"] == [{"key": "new", "operator": "Exists"}]
    assert spec["affinity"] == {**zone, **apart} and spec["securityContext"] == {"runAsUser": 7, "fsGroup": 2}
    assert spec["serviceAccountName"] == "training" and spec["terminationGracePeriodSeconds"] == 90
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}] and "schedulingGates" not in spec
    container = spec["containers"][0]
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/d"}] and container["securityContext"] == {"privileged": True}
    for said in ("template.metadata: left out: of the JobSet", "replicatedJobs[0].template.metadata: left out: of a Job",
                 "schedulingGates: left out: another controller's", "containers[1]: left out: the runtime's pod has no such container",
                 "replicatedJobs[1]: left out: it is for other pods than the workers'"):
        assert said in run.err, run.err
    assert "runtimePatches: left out" not in run.err and "activeDeadlineSeconds" not in run.err


@pytest.mark.parametrize("ref,error", [
    ({"name": "torch-distributed"}, "pods of the TrainJob s are those of the ClusterTrainingRuntime torch-distributed, which is not in the "
                                    "input: give it, too (kubectl get clustertrainingruntime torch-distributed -o yaml)"),
    ({"name": "own", "kind": "TrainingRuntime"}, "(kubectl get trainingruntime own -o yaml)"),
    (None, "spec.runtimeRef.name is missing"),
])
def test_trainjob_without_its_runtime(drarun, ref, error):
    run = drarun("import", "-", input=of_kind("TrainJob", {"runtimeRef": ref} if ref else {"trainer": {"numNodes": 2}}))
    assert run.rc == 65 and run.out == "" and error in run.err and "drarun: <stdin>:" in run.err, repr(run)


def test_runtime_without_jobs(drarun):
    manifest, runtime = yaml.safe_load_all((RUNTIMES / "trainjob-torch.yaml").read_text())
    if manifest["kind"] != "TrainJob":
        manifest, runtime = runtime, manifest
    del runtime["spec"]["template"]["spec"]["replicatedJobs"]
    run = drarun("import", "-", input=yaml.safe_dump_all([manifest, runtime]))
    assert run.rc == 65 and run.out == "" and "spec.template.spec.replicatedJobs is missing" in run.err, repr(run)


SWITCHES = {"NCCL_SHM_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}


def test_switches_of_demonstrations(imported):
    """They turn off what was claimed, for each worker, forever."""
    env = [{"name": k, "value": v} for k, v in {**SWITCHES, "NCCL_MNNVL_ENABLE": "0", "NCCL_DEBUG": "INFO"}.items()]
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"image": "i", "command": ["c"], "env": env}]}}
    spec, notes = imported(json.dumps(pod))
    assert spec["nccl"]["env"] == {**SWITCHES, "NCCL_DEBUG": "INFO"}
    words = [word for name, value in SWITCHES.items() for word in ["-x", f"{name}={value}"]]
    ran, more = imported(MPIJOB.replace("COMMAND", json.dumps(["mpirun", *words, "app"])))
    assert ran["nccl"]["env"] == SWITCHES
    for name, value in SWITCHES.items():
        for said in (notes, more):
            assert f"{name}={value} stays in nccl.env: it turns off" in said
    assert "NCCL_DEBUG" not in notes and "NCCL_MNNVL_ENABLE=0 is left out: it is derived" in notes


@pytest.mark.parametrize("script,told", [
    ("source /usr/local/gib/scripts/set_nccl_env.sh\nexec all_gather_perf", True),
    ("exec all_gather_perf", False),
    ("source /usr/local/gib/scripts/set_nccl_env.sh\nsleep infinity", False)])
def test_vendors_script(imported, script, told):
    spec, notes = imported(json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"image": "i", "command": ["bash", "-c", script]}]}}))
    assert ("spec.containers[0].command: set_nccl_env.sh stays in the command" in notes) == told
    assert ("set_nccl_env.sh\" is left out" in notes) == ("sleep" in script)
    assert first(spec)["command"] == (["PROGRAM"] if "sleep" in script else ["bash", "-c", script])


def test_files_that_cannot_be_joined(drarun, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: i, command: [c]}]}\n")
    (tmp_path / "empty").mkdir()
    for arguments, status, part in [
            ([job, "prog"], 65, "the ranks' program goes after --: prog: cannot be opened"),
            ([tmp_path / "empty"], 65, "the directory has no file *.yaml, *.yml or *.json"),
            (["-", "-"], 64, "can be given once only"), (["--", "prog"], 64, "expected a file"),
            ([job, tmp_path / "empty/../bad.yaml"], 65, "bad.yaml:2:1: YAML")]:
        (tmp_path / "bad.yaml").write_text("a: [\n")
        run = drarun("import", *arguments, input="")
        assert run.rc == status and run.out == "" and part in run.err, repr(run)


def test_list_of_kubectl(drarun):
    objects = list(yaml.safe_load_all((SEEDS / "rdma-8x8.yaml").read_text()))
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    spec = next(yaml.safe_load_all(complete(drarun("import", "-", input=text))))["spec"]
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
    roles = spec.get("roles", [spec])
    assert ("kind: ResourceClaim" in drarun("render", file).ok().out) == any("devices" in role for role in roles)
    workers = sum(role.get("workers", 1) for role in roles)  # drarun accept says how many itself
    gpus = spec.get("devices", {}).get("gpus", {}).get("count")
    assert f"`{file.name}`" in (file.parent / "README.md").read_text()
    if "roles" in spec:
        assert f", {workers} workers, " in line and all(f" of role {role['name']}" in line for role in roles)
        return
    assert f", {workers} worker{'s' if workers > 1 else ''}" + (f", {gpus} GPU" if gpus else ")") in line


def test_usage(drarun):
    assert drarun("import").rc == 64
    assert "Usage: drarun import" in drarun("import", "--help").ok().out
