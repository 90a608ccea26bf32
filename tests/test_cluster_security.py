# SPDX-License-Identifier: Apache-2.0
"""Jobs in namespaces that enforce Pod Security, on two real nodes that show a captured machine."""
import contextlib
import json
import re
import shlex

import pytest
import yaml

from support.cluster.machines import claimed, without_rdma

COMPLIES = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 4711, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"}}
WHO = ["sh", "-c", 'echo "user $(id -u)"; grep ^NoNewPrivs: /proc/self/status']
GPUS = {"devices": {"gpus": {"count": 1, "class": "gpu.drarun.dev"}}}
IMAGE = "localhost/busybox:1"
MEMLOCK = 76
IPC_LOCK = 1 << 14


@pytest.fixture
def jobs(machines, jobs):
    return jobs


def enforce(jobs, level):
    jobs.cluster.kubectl("label", "--overwrite", "namespace", jobs.namespace.name, f"pod-security.kubernetes.io/enforce={level}")
    return jobs.namespace.name


def complying(**more):
    return {"template": {"spec": {"containers": [{"name": "worker", "image": IMAGE, "command": WHO,
                                                  "securityContext": {key: value for key, value in {**COMPLIES, **more}.items() if value is not None}}]}}}


@pytest.mark.parametrize("agent", ["copy", "volume", None], ids=["copy", "volume", "best"])
@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
@pytest.mark.parametrize("devices", [{}, GPUS], ids=["none", "gpus"])
def test_runs_where_restricted_is_enforced(jobs, devices, mode, agent):
    """The launcher's pod, what brings the agent, and the workers: all that a job is made of."""
    if agent == "volume" and jobs.cluster.plane.minor < 35:
        pytest.skip(f"no image volumes in Kubernetes {jobs.cluster.plane.version}")
    enforce(jobs, "restricted")
    result = jobs.run(*mode, workers=2, env={"DRARUN_AGENT": agent} if agent else {}, **devices, **complying()).ok()
    assert sorted(result.out.splitlines()) == sorted(["user 4711", "NoNewPrivs:\t1"] * 2), result
    assert "warn" not in result.err, result


ASSIGNED = 1000660000  # as OpenShift does it, for each namespace other ones; with group 0
ADMISSION = "admissionregistration.k8s.io/v1"


def assigning(namespace):
    """Policies of the namespace: a pod that names no user gets the assigned one, and one that names another is refused."""
    where = {"matchPolicy": "Equivalent", "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
             "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}
    user = f"Object{{spec: Object.spec{{securityContext: Object.spec.securityContext{{runAsUser: {ASSIGNED}, fsGroup: {ASSIGNED}}}}}}}"
    containers = "(object.spec.containers + object.spec.?initContainers.orValue([]))"
    allowed = f"c.?securityContext.?runAsUser.orValue({ASSIGNED}) == {ASSIGNED} && c.?securityContext.?capabilities.?add.orValue([]).size() == 0"
    binding = {"metadata": {"name": f"assign-{namespace}"}, "spec": {"policyName": f"assign-{namespace}"}}
    return [{"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicy", "metadata": binding["metadata"], "spec": {
                "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": where,
                "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": user}}]}},
            {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": binding["metadata"], "spec": {
                "failurePolicy": "Fail", "matchConstraints": where, "validations": [
                    {"expression": f"{containers}.all(c, {allowed})", "message": f"runAsUser: expected {ASSIGNED}, or none"}]}},
            {"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicyBinding", **binding},
            {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", **binding,
             "spec": {**binding["spec"], "validationActions": ["Deny"]}}]


@pytest.fixture
def assigned(jobs):
    """A namespace whose pods have a user that no image knows; its policies work."""
    if not jobs.cluster.api.plural(ADMISSION, "MutatingAdmissionPolicy"):
        pytest.skip(f"no MutatingAdmissionPolicies in Kubernetes {jobs.cluster.plane.version}")
    name, api = enforce(jobs, "restricted"), jobs.cluster.api
    made = assigning(name)
    api.make(*made)

    def tried(**security):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": name},
               "spec": {"containers": [{"name": "a", "image": IMAGE, "securityContext": {**{
                   key: value for key, value in COMPLIES.items() if key != "runAsUser"}, **security}}]}}
        return api.create(pod, dry_run=True)
    jobs.cluster.wait("the policies do not work", lambda: tried()[1].get("spec", {}).get("securityContext", {}).get("runAsUser") == ASSIGNED and
                      tried(runAsUser=65532)[0] == 422, 60)
    yield jobs
    for each in reversed(made):
        api.delete(ADMISSION, each["kind"], each["metadata"]["name"])


@pytest.mark.parametrize("agent", ["copy", None], ids=["copy", "best"])
@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
def test_user_that_the_platform_assigns(assigned, mode, agent):
    """Without an entry in any passwd: launcher, what brings the agent, and ranks, from run to exit status."""
    job = complying(runAsUser=None)
    job["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", 'echo "$(id -u) $(id -g) $HOME"; touch /tmp/own; exit 7']
    result = assigned.run(*mode, workers=2, ranksPerWorker=2, env={"DRARUN_AGENT": agent} if agent else {}, **job)
    assert result.rc == 7 and f"{ASSIGNED} 0 /" in result.out.splitlines(), result
    assert {line for line in result.out.splitlines()} == {f"{ASSIGNED} 0 /"}, result
    assert "Permission" not in result.err and "warn" not in result.err, result


def test_second_attempt_and_indexed_job(jobs):
    """Whose pods the launcher and the Job controller make."""
    enforce(jobs, "restricted")
    script = ["sh", "-c", "[ $DRARUN_ATTEMPT = 2 ] && echo again || exit 3"]
    job = complying()
    job["template"]["spec"]["containers"][0]["command"] = script
    devices = {"gpus": {"count": 1, "class": "gpu.drarun.dev"}, "claims": "template"}
    assert "again" in jobs.run(restarts=1, devices=devices, env={"DRARUN_AGENT": "copy"}, **job).ok().out


def test_what_the_refusal_says_mends_it(jobs):
    """The container's line, put in as it is; busybox' user is root."""
    enforce(jobs, "restricted")
    refused = jobs.run(workers=2, command=WHO)
    assert refused.rc == 69, refused
    text = re.search(r"containers\[0\]\.securityContext: (\{.*\}\}), and runAsUser where its image has root's", refused.err).group(1)
    template = {"spec": {"containers": [{"securityContext": {**yaml.safe_load(text), "runAsUser": 1000}}]}}
    result = jobs.run(workers=2, image=IMAGE, command=WHO, template=template).ok()
    assert result.out.count("user 1000") == 2, result


def test_image_whose_user_is_root(jobs):
    """Which Pod Security cannot know, and the kubelet finds out."""
    enforce(jobs, "restricted")
    result = jobs.run(**complying(runAsUser=None))
    assert result.rc == 65 and "container has runAsNonRoot and image will run as root" in result.err, result
    assert result.err.splitlines()[-1].endswith("; give it a user who is not root in its securityContext, as runAsUser: 1000"), result


def test_label_of_the_refusal_mends_it(jobs):
    enforce(jobs, "baseline")
    refused = jobs.run(workers=2, devices=claimed(2, 2), command=["true"])
    assert refused.rc == 69 and "IPC_LOCK" in refused.err, refused
    words = shlex.split(re.search("kubectl (label .*?)(;|$)", refused.err, re.M).group(1))
    jobs.cluster.kubectl(*words)
    jobs.run(workers=2, devices=claimed(2, 2), command=["true"]).ok()


@contextlib.contextmanager
def container_limit(jobs, limit):
    """Of bytes that containers made meanwhile may lock, as by LimitMEMLOCK of the runtime's unit. The hard limit stays: who lowers it may not raise it."""
    def each(do):
        for node in jobs.cluster.nodes:
            node.ok(["sh", "-c", f"for pid in $(pgrep -x containerd); do {do}; done"])
    each(f"prlimit --pid $pid --memlock --noheadings --raw --output=SOFT >/run/memlock; prlimit --pid $pid --memlock={limit}:")
    yield
    each("prlimit --pid $pid --memlock=$(cat /run/memlock):")


WITHOUT = pytest.mark.parametrize("security,level", [({"capabilities": {"drop": ["IPC_LOCK"]}}, "baseline"), (COMPLIES, "restricted")],
                                  ids=["dropped", "nobody"])


def without(security, **devices):
    """A job whose container drops the capability, or has a user whom it does not reach."""
    return {"workers": 2, "ranksPerWorker": 1, "image": IMAGE, "devices": claimed(2, 2, **devices), "command": ["grep", "^CapBnd:", "/proc/self/status"],
            "template": {"spec": {"containers": [{"securityContext": security}]}}}


@WITHOUT
def test_limit_holds_a_job_without_the_capability(jobs, security, level):
    enforce(jobs, level)
    with container_limit(jobs, 65536):
        refused = jobs.run(**without(security))
    assert refused.rc == MEMLOCK and "it may lock 64 KiB of memory" in refused.err and "LimitMEMLOCK" in refused.err, refused


@pytest.fixture
def ethernet(machines):
    machines.become(without_rdma)
    yield
    machines.become()


@WITHOUT
def test_runs_without_the_capability(jobs, ethernet, security, level):
    """With NICs that need no locked memory, as no machine of the tests has the others."""
    enforce(jobs, level)
    result = jobs.run(network="any", **without(security, selector='device.attributes["dra.net"].rdma == false')).ok()
    has = [int(line.split()[1], 16) for line in result.out.splitlines()]
    assert len(has) == 2 and not any(each & IPC_LOCK for each in has), result


def test_label_that_comes_after_the_job(jobs):
    """The pods of an Indexed Job are refused to its controller, whose Event the launcher explains."""
    jobs.verb("submit", jobs.file(queue="team-a", workers=2, devices=claimed(2, 2, claims="template"), command=["true"])).ok()
    jobs.cluster.wait(lambda: f"it is not queued: {json.dumps(jobs.status())}", lambda: (jobs.status() or {}).get("phase") == "queued", 60)
    name = enforce(jobs, "baseline")
    path = jobs.cluster.api.path("batch/v1", "Job", name, "job-w")
    jobs.cluster.api.ok("PATCH", path, {"spec": {"suspend": False}}, content="application/merge-patch+json")
    result = jobs.verb("wait", "job")
    assert result.rc == 69 and f"namespace {name} enforces Pod Security" in result.err, result
    assert f"kubectl label --overwrite namespace {name} pod-security.kubernetes.io/enforce=privileged" in result.err, result
