# SPDX-License-Identifier: Apache-2.0
"""drarun render --as: jobs for KubeRay and Kubeflow Trainer against goldens, against those systems' own Go types, and
the entry point of their pods as it runs.

tests/data/render_as is as tests/data/render (test_render.py); a golden begins with what is told on standard error."""
import json
import os
import shlex
import shutil
import subprocess

import pytest
import yaml

from support import foreign_api
from support.build import SOURCE, patience
from support.network_policies import selects
from support.sysfs_tree import make_tree

DATA = SOURCE / "tests" / "data" / "render_as"
JOBS = sorted(path.name.removesuffix(".job.yaml") for path in DATA.glob("*.job.yaml"))
SEED = SOURCE / "tests" / "data" / "seeds" / "ray-all-nic.yaml"
OF_RAY = SOURCE / "examples" / "ray" / "cluster.yaml"
EXAMPLES = {"raycluster": ["ray/cluster", "jobs/ray-all-nic", "jobs/two-by-two", "jobs/compute-domain"],
            "rayjob": ["jobs/two-by-two"], "trainjob": ["jobs/queued-torchrun", "jobs/ray-all-nic"]}
TRAINER = "trainer.kubeflow.org/v1alpha1"
FOREIGN = {"RayCluster": "ray.io/v1", "RayJob": "ray.io/v1", "TrainJob": TRAINER, "TrainingRuntime": TRAINER}


def render(drarun, name, *more):
    path = DATA / f"{name}.job.yaml"
    first = path.read_text().splitlines()[0]
    assert first.startswith("# render: --as ")
    return drarun("render", *shlex.split(first.removeprefix("# render:")), *more, path).ok()


def documents(text):
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(manifests, kind):
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


def all_manifests(drarun):
    made = [json.loads(render(drarun, name, "--format", "json").out)["items"] for name in JOBS]
    for system, names in EXAMPLES.items():
        made += [json.loads(drarun("render", "--as", system, "--format", "json",
                                   SOURCE / "examples" / f"{name}.yaml").ok().out)["items"] for name in names]
    return [each for manifests in made for each in manifests]


@pytest.mark.parametrize("name", JOBS)
def test_golden(drarun, name):
    golden = DATA / f"{name}.yaml"
    result = render(drarun, name)
    text = "".join(f"# {line}\n" for line in result.err.splitlines()) + result.out
    if os.environ.get("DRARUN_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()
    assert documents(result.out) == json.loads(render(drarun, name, "--format", "json").out)["items"]


# ---- against the systems' own types ----

@pytest.fixture
def types():
    program, reason = foreign_api.fetched()
    if not program:
        pytest.skip(reason)
    return lambda manifests: foreign_api.ask(program, manifests)


def lost(ours, theirs, path=""):
    """Paths whose value the type did not keep; quantities and defaults may be written otherwise."""
    if isinstance(ours, dict):
        return [each for key, value in ours.items() if value not in ({}, [], None)
                for each in lost(value, (theirs or {}).get(key), f"{path}.{key}")]
    if isinstance(ours, list):
        if len(ours) != len(theirs or ()):
            return [path]
        return [each for i, value in enumerate(ours) for each in lost(value, theirs[i], f"{path}[{i}]")]
    return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]


def test_types_read_all(drarun, types):
    manifests = [each for each in all_manifests(drarun) if each["kind"] in FOREIGN]
    assert len(manifests) >= 14 and {each["kind"] for each in manifests} == set(FOREIGN)
    assert {(each["kind"], each["apiVersion"]) for each in manifests} == set(FOREIGN.items())
    assert [lost(*pair) for pair in zip(manifests, types(manifests))] == [[]] * len(manifests)


@pytest.mark.parametrize("name,kind,path,key,value", [
    ("ray-plain", "RayCluster", ("spec",), "heads", 1),
    ("ray-plain", "RayCluster", ("spec", "workerGroupSpecs", 0), "replicas", "2"),
    ("ray-plain", "RayCluster", ("spec", "workerGroupSpecs", 0, "template", "spec"), "resourceClaim", []),
    ("ray-plain", "RayCluster", ("spec", "workerGroupSpecs", 0, "template", "spec"), "resourceClaims", {}),
    ("ray-job", "RayJob", ("spec",), "entryPoint", "x"),
    ("ray-job", "RayJob", ("spec", "rayClusterSpec", "workerGroupSpecs", 0), "minReplica", 1),
    ("train", "TrainJob", ("spec", "trainer"), "nodes", 2),
    ("train", "TrainJob", ("spec",), "suspend", "yes"),
    ("train", "TrainingRuntime", ("spec", "mlPolicy", "torch"), "processes", 8),
    ("train", "TrainingRuntime", ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec"), "backOffLimit", 0),
    ("train", "TrainingRuntime", ("spec", "template", "spec", "failurePolicy"), "maxRestarts", "3"),
])
def test_types_look(drarun, types, name, kind, path, key, value):
    """What they refuse: otherwise the test above could not fail."""
    wrong = of_kind(json.loads(render(drarun, name, "--format", "json").out)["items"], kind)
    assert "error" not in types([wrong])[0]
    at = wrong
    for step in path:
        at = at[step]
    at[key] = value
    (answer,) = types([wrong])
    assert key in answer.get("error", ""), answer


# ---- the published cluster ----

def test_a_published_cluster_of_a_short_job(drarun):
    """The seed's RayCluster: what its author wrote by hand is there, or is derived in the pod (test below)."""
    assert len(OF_RAY.read_text().splitlines()) <= 13  # with the licence
    made = documents(drarun("render", "--as", "raycluster", "--api", "v1beta1", OF_RAY).ok().out)
    seed = documents(SEED.read_text())
    ours, theirs = of_kind(made, "RayCluster"), of_kind(seed, "RayCluster")
    assert ours["metadata"]["name"] == theirs["metadata"]["name"]
    heads = [each["spec"]["headGroupSpec"] for each in (ours, theirs)]
    assert heads[0]["template"]["spec"] == heads[1]["template"]["spec"]
    assert heads[0]["rayStartParams"] == heads[1]["rayStartParams"]
    (ours,), (theirs,) = [each["spec"]["workerGroupSpecs"] for each in (ours, theirs)]
    assert ours["replicas"] == theirs["replicas"]
    pods = [each["template"]["spec"] for each in (ours, theirs)]
    assert pods[0]["tolerations"] == pods[1]["tolerations"]
    (mine,), (other,) = [pod["containers"] for pod in pods]
    assert mine["image"] == other["image"]
    assert mine["resources"]["limits"] == other["resources"]["limits"]

    def mounts(pod):
        sources = {each["name"]: each for each in pod["volumes"]}
        places = {each["mountPath"]: sources[each["name"]] for each in pod["containers"][0]["volumeMounts"]}
        return {path: each.get("hostPath", {}).get("path") or each["emptyDir"]["medium"] for path, each in places.items()
                if path != "/.drarun"}
    assert mounts(pods[0]) == mounts(pods[1])
    claims = [of_kind(each, "ResourceClaimTemplate")["spec"]["spec"]["devices"]["requests"] for each in (made, seed)]
    assert claims[0] == claims[1]
    # the seed's claim is listed by no container, so that no device would reach one
    assert mine["resources"]["claims"] == [{"name": "devices"}] and "claims" not in other["resources"]


def test_autoscaled_as_published(drarun):
    """The seed's bounds, which KubeRay's autoscaler needs to be switched on for; without them the group is as it was planned."""
    (seed,) = of_kind(documents(SEED.read_text()), "RayCluster")["spec"]["workerGroupSpecs"]
    for options, bounds in ((["--replicas", f"{seed['minReplicas']}:{seed['maxReplicas']}"], (0, 4)), ([], (2, 2))):
        made = of_kind(documents(drarun("render", "--as", "raycluster", *options, OF_RAY).ok().out), "RayCluster")["spec"]
        (group,) = made["workerGroupSpecs"]
        assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (2, *bounds)
        assert made.get("enableInTreeAutoscaling") == (True if options else None)


def test_rayjob_has_the_cluster_of_a_raycluster(drarun, tmp_path):
    """Beside what is the job's: its program, as a shell reads it, and its end."""
    path = tmp_path / "job.yaml"
    path.write_text((DATA / "ray-job.job.yaml").read_text())
    job, alone = (of_kind(documents(drarun("render", "--as", system, path).ok().out), kind)
                  for system, kind in (("rayjob", "RayJob"), ("raycluster", "RayCluster")))
    inside = job["spec"].pop("rayClusterSpec")
    assert inside == alone["spec"]
    assert shlex.split(job["spec"].pop("entrypoint")) == ["python", "train.py", "--name", "it's a run", ""]
    assert job["spec"] == {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 600, "activeDeadlineSeconds": 90,
                           "backoffLimit": 2}
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"


@pytest.mark.parametrize("system,kind", [("raycluster", "RayCluster"), ("rayjob", "RayJob"), ("trainjob", "TrainJob")])
def test_applied_again_after_kueue_has_admitted_it(drarun, tmp_path, system, kind):
    """Kueue sets suspend when the object is made, and takes it away: in the manifest, it would stop what runs."""
    path = tmp_path / "job.json"
    for queue, suspend in (("team-a", None), (None, True), ("team-a", True), (None, None)):
        own = {key: value for key, value in (("queue", queue), ("suspend", suspend)) if value}
        path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
            "workers": 1, "launch": "env", "image": "i", "command": ["torchrun", "t.py"], "devices": {"gpus": {"count": 1}}, **own}}))
        made = of_kind(documents(drarun("render", "--as", system, path).ok().out), kind)
        assert made["spec"].get("suspend") == suspend and made["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") == queue


@pytest.mark.parametrize("system,head,own,told", [
    ("rayjob", "plain", {"env": {"A": "1"}, "workingDir": "/w"}, "not its env, workingDir: --head worker gives it all of them"),
    ("rayjob", "worker", {"env": {"A": "1"}}, None), ("rayjob", "plain", {}, None), ("raycluster", "plain", {"env": {"A": "1"}}, None)])
def test_what_a_driver_on_a_plain_head_has_not(drarun, tmp_path, system, head, own, told):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 2, "image": "i", "command": ["python", "t.py"], **own}}))
    result = drarun("render", "--as", system, "--head", head, path).ok()
    assert (told in result.err) if told else "HEAD_PLAIN" not in result.err, result


def test_references_of_a_rayjobs_program(drarun, tmp_path):
    """The kubelet of the pod that submits it knows none of the job's variables, and makes $(A) of $$(A)."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "i", "command": ["python", "t.py"], "env": {"A": "it's", "E": ""},
                                                                      "args": ["--a=$(A)", "$(E)", "$$(A)", "$(B)", "5$", "$(( $(nproc) / 2 ))"]}}))
    job = of_kind(documents(drarun("render", "--as", "rayjob", path).ok().out), "RayJob")
    assert shlex.split(job["spec"]["entrypoint"]) == ["python", "t.py", "--a=it's", "", "$$(A)", "$$(B)", "5$", "$(( $(nproc) / 2 ))"]


def working_head(folder, ports):
    path = folder / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 2, "template": {"spec": {"containers": [
        {"name": "w", "image": "i", "command": ["ray", "start"], "ports": ports}]}}}}))
    return "render", "--as", "raycluster", "--head", "worker", path


def test_ports_that_a_working_head_has_already(drarun, tmp_path):
    """KubeRay's API takes a port once, and KubeRay looks for Ray's by their names."""
    ports = [{"containerPort": 8265}, {"containerPort": 9000, "name": "own"}, {"containerPort": 6379, "name": "gcs-server", "protocol": "TCP"}]
    head = of_kind(documents(drarun(*working_head(tmp_path, ports)).ok().out), "RayCluster")["spec"]["headGroupSpec"]
    made = head["template"]["spec"]["containers"][0]["ports"]
    assert made == [{"containerPort": 8265, "name": "dashboard"}, *ports[1:], {"name": "client", "containerPort": 10001}]


@pytest.mark.parametrize("port,name", [({"containerPort": 8265, "name": "web"}, "dashboard"), ({"containerPort": 10001, "protocol": "UDP"}, "client")])
def test_ports_that_a_working_head_cannot_have(drarun, tmp_path, port, name):
    result = drarun(*working_head(tmp_path, [port]))
    assert result.rc != 0 and f"port {port['containerPort']} of a Ray head is called {name}, with protocol TCP" in result.err, result


@pytest.mark.parametrize("command,words,told", [
    (["torchrun", "train.py"], ["torchrun", "--nproc-per-node=gpu", "train.py"], False),
    (["python3", "-m", "torch.distributed.run", "train.py"], ["python3", "-m", "torch.distributed.run", "--nproc-per-node=gpu", "train.py"], False),
    (["/opt/torchrun/bin/python3", "-Wignore:torch.distributed", "-um", "torch.distributed.run", "t.py"],
     ["/opt/torchrun/bin/python3", "-Wignore:torch.distributed", "-um", "torch.distributed.run", "--nproc-per-node=gpu", "t.py"], False),
    (["torchrun", "--nproc_per_node", "4", "train.py"], None, False), (["bash", "-c", "torchrun --nproc-per-node gpu train.py"], None, False),
    (["bash", "-c", "torchrun train.py"], None, True), (["torchrun"], ["torchrun", "--nproc-per-node=gpu"], False)])
def test_processes_of_a_trainjob_with_all_gpus(drarun, tmp_path, command, words, told):
    """From Trainer 2.2 on numProcPerNode is a number, and only the TrainJob's: it refuses another one, as kubectl does an unknown key."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        "workers": 2, "launch": "env", "ranksPerWorker": 1, "devices": {"gpus": {"count": "all"}}, "image": "i", "command": command}}))
    run = drarun("render", "--as", "trainjob", path).ok()
    runtime, job = (of_kind(documents(run.out), kind) for kind in ("TrainingRuntime", "TrainJob"))
    assert runtime["spec"]["mlPolicy"] == {"numNodes": 2, "torch": {}}
    assert job["spec"]["trainer"] == {"numNodes": 2, "numProcPerNode": 1}
    (container,) = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][container["command"].index("--") + 1:] == (words or command)
    assert ("ONE_PROCESS: spec.devices.gpus.count: all" in run.err) == told, run.err


# ---- the entry point ----

class Pod:
    """A root with a machine's /sys and /proc, bash, and what the init container puts there."""

    def __init__(self, build, root, manifest):
        self.root, self.container = root, manifest["containers"][0]
        make_tree(json.loads((SOURCE / "tests/data/fixtures/a4-highgpu-8g.json").read_text()), root)
        (init,) = [each for each in manifest["initContainers"] if each["name"] == "drarun-agent"]
        program, option, folder = init["command"]
        assert program == "/bin/drarun-worker"
        (root / ".drarun").mkdir()
        for _ in range(2):  # it may be run again
            subprocess.run([build / "bin" / "drarun-worker", option, f"{root}{folder}"], check=True, timeout=patience())
        (root / "bin").mkdir(exist_ok=True)
        for program in ("bash", "env"):
            self.copy(shutil.which(program), f"bin/{program}")

    def copy(self, program, where):
        shutil.copy(program, self.root / where)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=patience()).stdout
        for library in (word for word in listed.split() if word.startswith("/")):
            (self.root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, self.root / library[1:])

    def ray(self, *lines):
        """In the place of Ray's own: a script."""
        (self.root / "bin/ray").write_text("\n".join(["#!/bin/bash", *lines, ""]))
        (self.root / "bin/ray").chmod(0o755)

    def run(self, **more):
        given = {each["name"]: each["value"] for each in self.container.get("env", ())}
        return subprocess.run([shutil.which("chroot"), self.root, *self.container["command"]], capture_output=True,
                              text=True, timeout=patience(), env={"PATH": "/bin", **given, **more})


@pytest.fixture
def ray_pod(drarun, build, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    made = documents(drarun("render", "--as", "raycluster", OF_RAY).ok().out)
    (group,) = of_kind(made, "RayCluster")["spec"]["workerGroupSpecs"]
    return Pod(build, tmp_path / "root", group["template"]["spec"])


PLAIN = pytest.mark.plain("a sanitizer's program does not start in a bare root")
GENERATED = {"KUBERAY_GEN_RAY_START_CMD": "ray start  --address=h:6379  --resources='{\"a b\": 1}'  --block "}


@PLAIN
def test_workers_have_the_published_variables(ray_pod):
    """Each variable that the seed's author wrote by hand is in Ray's environment, of a table or derived; its
    arguments come as KubeRay means them."""
    (seed,) = of_kind(documents(SEED.read_text()), "RayCluster")["spec"]["workerGroupSpecs"]
    written = {each["name"]: each["value"] for each in seed["template"]["spec"]["containers"][0]["env"]}
    ray_pod.ray('printf "%s\\n" "$#" "$@" >&2', "exec env -0")
    done = ray_pod.run(**GENERATED)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith('\n4\nstart\n--address=h:6379\n--resources={"a b": 1}\n--block\n')
    got = dict(item.split("=", 1) for item in done.stdout.split("\0") if item)
    assert got["LD_LIBRARY_PATH"].split(":")[-1] == written.pop("LD_LIBRARY_PATH")
    written.pop("TORCH_DISTRIBUTED_DEBUG")  # a wish of its author, which the example leaves out
    assert {name: got.get(name) for name in written} == written
    assert got["NCCL_SOCKET_IFNAME"] == "eth0"  # which he forgot


@PLAIN
def test_ray_does_not_start_without_its_devices(ray_pod):
    shutil.rmtree(ray_pod.root / "sys/class/infiniband")
    ray_pod.ray("echo started")
    done = ray_pod.run(**GENERATED)
    assert done.returncode == 65 and done.stdout == "" and "NO_RDMA_NIC" in done.stderr


# ---- what is refused and told ----

@pytest.mark.parametrize("options,job,status,message", [
    (["--as", "rayservice"], {}, 64, '--as: expected one of "raycluster rayjob trainjob"'),
    (["--as", "rayjob"], {}, 65, 'spec.command: expected the program of the RayJob; KubeRay writes "ray start" itself'),
    (["--as", "rayjob"], {"metadata": {"name": "a" * 48}}, 65, "metadata.name: at most 47 characters"),
    *[(["--as", "raycluster", "--replicas", bad], {}, 64, f'replicas: expected MIN:MAX, the bounds of an autoscaler, got "{bad}"')
      for bad in ("4", "1:", "-1:4", "1:-4", "1:+4", "1: 4", "1:4x", "4:1", "x", "1:9999999")],
    *[(["--as", "raycluster", "--replicas", bad], {}, 64, "replicas: expected at most the group's 1 workers") for bad in ("2:3", "0:0")],
    (["--as", "trainjob", "--replicas", "1:2"], {"launch": "env"}, 64, "replicas: for a raycluster or a rayjob alone"),
    (["--as", "raycluster", "--here"], {}, 64, "here: not for a "),
    (["--as", "raycluster", "--claims", "template"], {}, 64, "claims: not for a "),
    (["--as", "raycluster", "--pod-groups", "v1alpha2"], {}, 64, "pod_groups: not for a "),
    (["--as", "raycluster", "--owner-uid", "u"], {}, 64, "owner_uid: not for a "),
    (["--as", "raycluster", "--profiles", "/none"], {}, 64, "--profiles cannot be used with --as"),
    (["--as", "raycluster", "--step", "2"], {}, 64, "the job's ladder has 1"),
    (["--as", "raycluster", "--head", "big"], {}, 64, "--head"),
    (["--head", "worker"], {}, 64, "head: for a raycluster or a rayjob alone"),
    (["--as", "raycluster"], {"metadata": {"name": "a" * 54}}, 65, "metadata.name: at most 53 characters"),
    (["--as", "raycluster"], {"metadata": {"name": "1st"}}, 65, "metadata.name: expected a letter first"),
    (["--as", "raycluster"], {"nccl": {"env": {"A": "1"}}, "container": {"env": [{"name": "A", "value": "2"}]}}, 65,
     'drarun adds an entry with name "A"'),
    (["--as", "raycluster"], {"devices": {"nics": {"count": 1, "class": "dranet"}}, "pod": {"hostNetwork": True}}, 65,
     "hostNetwork: a claimed NIC is moved into the pod's own network"),
    (["--as", "trainjob", "--head", "worker"], {"launch": "env"}, 64, "head: for a raycluster or a rayjob alone"),
    (["--as", "trainjob"], {}, 65, "spec.launch: expected env, got pmix"),
    (["--as", "trainjob"], {"launch": "mpirun"}, 65, "spec.launch: expected env, got mpirun"),
    (["--as", "trainjob"], {"launch": "env", "ranksPerWorker": 2}, 65, "spec.ranksPerWorker: expected 1"),
    (["--as", "trainjob"], {"launch": "env", "devices": {"gpus": {"count": 2}}}, 65, "spec.ranksPerWorker: expected 1"),
    (["--as", "trainjob"], {"launch": "env", "devices": {"gpus": {"count": "all"}}}, 65, "spec.ranksPerWorker: expected 1"),
    (["--as", "trainjob"], {"launch": "env", "metadata": {"name": "a" * 49}}, 65, "metadata.name: at most 48 characters"),
    (["--as", "trainjob"], {"launch": "env", "pod": {"initContainers": [{"name": "node", "image": "i"}]}}, 65,
     "the first container is called node"),
    (["--as", "trainjob"], {"launch": "env", "pod": {"restartPolicy": "Always"}}, 65, "expected Never, got"),
])
def test_refused(drarun, tmp_path, options, job, status, message):
    container = {"name": "c", "image": "i", "command": ["ray", "start"], **job.pop("container", {})}
    metadata = job.pop("metadata", {"name": "job"})
    pod = {"containers": [container], **job.pop("pod", {})}
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"metadata": metadata, "spec": {"workers": 1, "template": {"spec": pod}, **job}}))
    result = drarun("render", *options, path)
    assert (result.rc, result.out) == (status, ""), result.err
    assert message in result.err


def test_nothing_is_told_of_what_is_carried(drarun):
    assert drarun("render", "--as", "raycluster", OF_RAY).ok().err == ""
    job = SOURCE / "examples/jobs/queued-torchrun.yaml"
    told = drarun("render", "--as", "trainjob", job).ok().err.splitlines()
    assert [line.split(": ")[2:4] for line in told] == [["LEFT_OUT", "spec.timeouts.queue"],
                                                        ["STEP_FIXED", "spec.devices.align"],
                                                        ["TOTAL_PER_ATTEMPT", "spec.timeouts.total"]]


def pod_labels(part):
    """Of every Pod and pod template in a document."""
    if isinstance(part, list):
        return [found for each in part for found in pod_labels(each)]
    if not isinstance(part, dict):
        return []
    own = [part.get("metadata", {}).get("labels", {})] if "containers" in part.get("spec", {}) else []
    return own + [found for each in part.values() for found in pod_labels(each)]


def test_network_policies_leave_pods_of_other_systems_alone(drarun):
    """Operators, dashboards and clients must reach a Ray cluster, and Prometheus a launcher. tests/test_rights.py asks an API server."""
    ours = json.loads(drarun("render", SOURCE / "examples/jobs/two-by-two.yaml", "--format", "json").ok().out)["items"]
    installed = json.loads(drarun("install", "-n", "train", "--format", "json").ok().out)["items"]
    (name,) = {each["metadata"]["labels"]["drarun.dev/job"] for each in ours}
    foreign = [{**labels, "drarun.dev/job": name} for labels in pod_labels(all_manifests(drarun))]
    for policy, wanted in ((of_kind(ours, "NetworkPolicy"), True), (of_kind(installed, "NetworkPolicy"), False)):
        selector = policy["spec"]["podSelector"]
        assert foreign and not [labels for labels in foreign if selects(selector, labels)]
        kinds = {each["kind"]: [selects(selector, labels) for labels in pod_labels(each)] for each in ours}
        assert kinds["Pod"] == [wanted] and kinds["Job"] == [False]


@pytest.mark.parametrize("args,rung", [([], None), (["--step", "1"], "numaNode")])
def test_claims_that_many_drivers_cannot_meet_are_asked_for_by_step(drarun, tmp_path, args, rung):
    """On GB200 the first step is the NUMA node, and nobody goes on where no driver publishes it."""
    path = tmp_path / "job.yaml"
    path.write_text("""
metadata: {name: job}
spec:
  workers: 2
  image: i
  command: [ray, start]
  devices: {gpus: {class: gpu.nvidia.com, count: 2}, nics: {class: dranet, count: 2}}
  nccl: {profile: oci-gb200}
""")
    made = drarun("render", "--as", "raycluster", *args, path).ok()
    template, = (each for each in yaml.safe_load_all(made.out) if each and each["kind"] == "ResourceClaimTemplate")
    constraints = template["spec"]["spec"]["devices"].get("constraints", [])
    assert {each["matchAttribute"] for each in constraints} == (
        {f"resource.kubernetes.io/{rung}"} if rung else set())
    assert f"of step {1 if rung else 2}" in made.err
