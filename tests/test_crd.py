# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition of DraJob on a real API server, held against the parser: what it takes and refuses,
whether its messages name the field, and that an accepted job's spec stays as it is."""
import copy
import json
import subprocess

import pytest
import yaml

from support.build import SANITIZE, SOURCE, patience
from support.cluster import Cluster
from test_validate import LACKS, MANAGERS, SHORT, all_variants, documents

JOBS = sorted([*(SOURCE / "examples").glob("**/*.yaml"), *(SOURCE / "tests/data/render").glob("*.job.yaml"),
               *(SOURCE / "tests/data/render_as").glob("*.job.yaml")])
API, KIND = "drarun.dev/v1alpha1", "DraJob"
MANAGER = "kueue.x-k8s.io/multikueue"


@pytest.fixture(scope="module")
def server():
    with Cluster() as cluster:
        crd = yaml.safe_load((SOURCE / "deploy/crd.yaml").read_text())
        cluster.api.make(crd)
        cluster.wait("the server does not serve DraJobs", lambda: cluster.api.plural(API, KIND), 30)
        yield cluster


def test_pods_are_those_of_kubernetes(server, tmp_path):
    """The table of a pod's fields, and its copy in the schema, are of the API server that the tests usually have."""
    if server.plane.version not in (SOURCE / "tests/cluster/go.mod").read_text():
        return  # another was chosen, whose pods have other fields
    status, document = server.api.request("GET", "/openapi/v2")
    assert status == 200
    (tmp_path / "swagger.json").write_text(json.dumps(document))
    run = subprocess.run([SOURCE / "scripts/pod-schema", "--check", tmp_path / "swagger.json"], capture_output=True, text=True, timeout=patience())
    assert run.returncode == 0, run.stderr


def as_object(document, name="tried"):
    """What would be applied: a spec alone has no counterpart."""
    known = {"apiVersion", "kind", "metadata", "spec"}
    made = copy.deepcopy(document if known & set(document) else {"spec": document})
    return {"apiVersion": API, "kind": KIND, **made, "metadata": {"name": name, **made.get("metadata", {}), "namespace": "default"}}


def send(server, made):
    """(taken, what was said), with unknown fields refused, as kubectl asks for."""
    path = server.api.path(API, KIND, "default") + "?dryRun=All&fieldValidation=Strict"
    status, answer = server.api.request("POST", path, made)
    return status == 201, "" if status == 201 else answer.get("message", str(answer))


def job_of(path):
    found = [each for each in yaml.safe_load_all(path.read_text()) if each]
    return next((each for each in found if each.get("kind") == KIND or "workers" in each or "spec" in each
                 and "apiVersion" not in each), None)


def test_deployed_definition_is_what_install_prints(drarun):
    assert (SOURCE / "deploy/crd.yaml").read_text() == drarun("install", "--crd").ok().out


@pytest.mark.parametrize("path", [path for path in JOBS if job_of(path)], ids=lambda path: path.name)
def test_jobs_of_examples_and_tests_are_taken(server, path):
    assert send(server, as_object(job_of(path))) == (True, "")


# What a structural schema and its rules cannot judge. `drarun controller` does, and tells it in the status.
UNSEEN = {"selector": "a text or a list: rules see nothing of it", "config": "what a driver makes of it",
          "profile": "versions know different ones", "image": "which names a kubelet takes",
          "env": "a map or a list: rules see nothing of it", "imagePullSecrets": "names or objects",
          "containers": "which of them runs the ranks, and names", "contains": "one shm",
          "persistentVolumeClaim": "a name or a source", "hostPath": "likewise", "emptyDir": "likewise", "shm": "a quantity",
          "cpu": "a quantity", "memory": "a quantity"}
# Kubernetes' own, which it may take more of than we, or which say where an object is.
OUTSIDE = {"apiVersion", "kind", "metadata"}


def cases():
    """(keys that lead to what was changed, the object)"""
    for name, document in documents():
        if isinstance(document, dict) and document:
            yield (name,), as_object(document)
    for path, document in all_variants():
        if path[0] == "spec" and isinstance(document.get("spec"), dict):
            yield path, as_object(document)


def judged(drarun, objects, folder):
    """What the parser says of each: a list of findings."""
    files = []
    for number, each in enumerate(objects):
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps(each))
    runs = [drarun("validate", "--output", "json", *files[at:at + 400]) for at in range(0, len(files), 400)]
    return [result["findings"] for run in runs for result in json.loads(run.out)]


def names_field(path, said):
    """The key that was changed, or the one above it where it is missing or in a list."""
    keys = [key for key in path if isinstance(key, str) and key.isalnum()]
    return any(key in said for key in keys[-3:])


def test_judges_as_the_parser(drarun, server, tmp_path):
    """What the parser takes is taken. What it refuses is refused with the field's name, but for what is listed above,
    and for null, which the server takes for left out; 2.0 is no whole number to it."""
    chosen = [case for number, case in enumerate(cases()) if not SANITIZE or number % 10 == 0]
    wrong, refused = [], 0
    for (path, made), findings in zip(chosen, judged(drarun, [made for _, made in chosen], tmp_path)):
        taken, said = send(server, made)
        refused += not taken
        if not findings and not taken and path[-1] != "2.0":
            wrong.append(f"{path}: refused: {said}")
        elif findings and taken and not (set(path) & set(UNSEEN) or path[-1] == "null" or "/".join(map(str, path)) in LACKS
                                       or all("both must be one number" in each["message"] or "timeouts.total" in each["message"]
                                              or "timeouts.agent" in each["message"]
                                              or "the API server would reject it" in each["message"]  # of the pod
                                              for each in findings)):  # a quantity and a duration, likewise
            wrong.append(f"{path}: taken, the parser says {findings}")
        elif not taken and len(path) > 1 and not names_field(path, said):
            wrong.append(f"{path}: the field is not named: {said}")
    assert not wrong, "\n".join(wrong[:40]) + f"\n{len(wrong)} of {len(chosen)}"
    assert refused > len(chosen) // 3


def changed(**spec):
    made = as_object({"spec": {**copy.deepcopy(SHORT), **spec}})
    return made


def with_role(**keys):
    return changed(roles=[{"name": "a", **keys}])


@pytest.mark.parametrize("made,field,said", [
    (as_object({"workers": 1, "image": "i"}), "spec", "command is missing"),
    (as_object({"template": {"spec": {"containers": [{"image": "i"}]}}}), "spec", "command is missing"),
    (changed(template={"spec": {"nodeSelektor": {"a": "b"}}}), "spec.template.spec.nodeSelektor", "unknown field"),
    (changed(template={"spec": {"tolerations": "oops"}}), "spec.template.spec.tolerations", "must be of type array"),
    (changed(tolerations=[{"kee": "a"}]), "spec.tolerations[0].kee", "unknown field"),
    (changed(volumes=[{"mountPath": "/x"}]), "spec.volumes[0]", "must validate one and only one schema"),
    (changed(volumes=[{"emptyDir": {}}]), "spec.volumes[0]", "Required value"),
    (changed(labels={"drarun.dev/x": "y"}), "spec.labels", "drarun's own"),
    (changed(queue="q", devices={"claims": "direct"}), "spec.devices.claims", "queue needs claims: template"),
    (changed(workers=1000, ranksPerWorker=1001), "spec.ranksPerWorker", "1000000 ranks"),
    (changed(ranksPerWorker=4, slots=3), "spec.slots", "fewer than the ranks"),
    (with_role(ranksPerWorker=4, slots=3), "spec.roles[0].slots", "fewer than the ranks"),
    (changed(launch="env", slots=3), "spec.slots", "launch: env has no PMIx"),
    (changed(launch="mpirun", oversubscribe=True), "spec.oversubscribe", "use launch: pmix"),
    (changed(launch="mpirun", failurePolicy={"onRankFailure": "continue"}), "spec.failurePolicy.onRankFailure", "use launch: pmix"),
    (changed(nccl={"env": {"1X": "y"}}), "spec.nccl.env", "names of variables"),
    (changed(devices={"nics": {"count": 1}}), "spec.devices.nics", "class is missing"),
    (changed(devices={"nics": {"count": 1, "class": "a", "resource": "b/c"}}), "spec.devices.nics", "class and resource exclude each other"),
    (changed(devices={"gpus": {"count": "all", "resource": "a.b/c"}}), "spec.devices.gpus.count", "all needs a class"),
    (changed(devices={"gpus": {"count": 1, "resource": "a.b/c", "match": ["d/e"]}}), "spec.devices.gpus.resource", "use class"),
    (changed(devices={"gpus": {"count": 1, "resource": "a.b/c", "selector": "true"}}), "spec.devices.gpus", ""),
    (changed(devices={"gpus": {"count": 1, "driver": "a.b"}}), "spec.devices.gpus.driver", "config is missing"),
    (changed(devices={"gpus": {"count": "most"}}), "spec.devices.gpus.count", ""),
    (changed(timeouts={"queue": "soon"}), "spec.timeouts.queue", ""),
    (changed(netwerk="any"), "spec.netwerk", "unknown field"),
    (with_role(imagee="i"), "spec.roles[0].imagee", "unknown field"),
    (with_role(workers=0), "spec.roles[0].workers", "greater than or equal to 1"),
    (with_role(ranksPerWorker="two"), "spec.roles[0].ranksPerWorker", "must be of type integer"),
    (with_role(devices={"claims": "direct"}), "spec.roles[0].devices.claims", "unknown field"),
    (with_role(devices={"nics": {"count": 1}}), "spec.roles[0].devices.nics", "class is missing"),
    (with_role(devices={"gpus": {"count": 1, "tolerations": [{}]}}), "spec.roles[0].devices.gpus.tolerations[0]", "Equal has a key"),
    (with_role(labels={"drarun.dev/x": "y"}), "spec.roles[0].labels", "drarun's own"),
    (with_role(nccl={"env": {"1X": "y"}}), "spec.roles[0].nccl.env", "names of variables"),
    (with_role(volumes=[{"mountPath": "/x"}]), "spec.roles[0].volumes[0]", "must validate one and only one schema"),
    (with_role(template={"spec": {"nodeSelektor": {"a": "b"}}}), "spec.roles[0].template.spec.nodeSelektor", "unknown field"),
], ids=lambda value: value if isinstance(value, str) and value else "")
def test_rules(server, made, field, said):
    taken, message = send(server, made)
    assert not taken and field in message and said in message, message


@pytest.mark.parametrize("name,workers,taken", [("a" * 55, 1, True), ("a" * 56, 1, False), ("a.b", 1, False),
                                                ("a" * 55, 10000, True)])
def test_names(server, name, workers, taken):
    well, said = send(server, as_object({"spec": {**SHORT, "workers": workers}}, name))
    assert well == taken and (well or "metadata.name" in said), said


def patch(server, path, change):
    return server.api.request("PATCH", path, change, content="application/merge-patch+json")


CHANGES = [{"workers": 3}, {"image": "other"}, {"command": ["other"]}, {"devices": {"gpus": {"count": 2}}},
           {"nccl": {"env": {"A": "2"}}}, {"ttlSecondsAfterFinished": 1}, {"image": None}]


def test_accepted_spec_is_fixed(server):
    """Before it is accepted, and while it is refused, it may be corrected; then only suspend changes."""
    made = as_object({"spec": {**SHORT, "devices": {"gpus": {"count": 1}}, "nccl": {"env": {"A": "1"}}}}, "fixed")
    server.api.make(made)
    path = server.api.path(API, KIND, "default", "fixed")
    assert patch(server, path, {"spec": {"workers": 4}})[0] == 200
    assert patch(server, path + "/status", {"status": {"state": "Invalid", "reason": "InvalidSpec"}})[0] == 200
    assert patch(server, path, {"spec": {"workers": 2}})[0] == 200
    assert patch(server, path + "/status", {"status": {"state": "Running", "reason": "Running"}})[0] == 200
    for change in CHANGES:
        status, answer = patch(server, path, {"spec": change})
        assert status == 422 and f"spec.{next(iter(change))}" in answer["message"], (change, answer)
        assert None in change.values() or "is fixed once the job is accepted" in answer["message"]
    assert patch(server, path, {"spec": {"suspend": True}})[0] == 200
    assert patch(server, path, {"metadata": {"labels": {"a": "b"}}})[0] == 200
    server.api.delete(API, KIND, "fixed", "default")


def test_accepted_template_is_fixed(server):
    spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": "i", "command": ["c"], "tty": True}]}}}
    server.api.make(as_object({"spec": spec}, "pods"))
    path = server.api.path(API, KIND, "default", "pods")
    assert patch(server, path + "/status", {"status": {"state": "Running", "reason": "Running"}})[0] == 200
    for change in ({"metadata": {"labels": {"a": "c"}}}, {"spec": {"containers": [{"image": "j", "command": ["c"]}]}},
                   {"spec": {"hostNetwork": True}}):
        status, answer = patch(server, path, {"spec": {"template": change}})
        assert status == 422 and "spec.template" in answer["message"], (change, answer)
    server.api.delete(API, KIND, "pods", "default")


@pytest.mark.parametrize("manager", MANAGERS)
def test_manager_is_judged_as_that_of_a_job(server, manager):
    """The API server takes the same names of controllers for spec.managedBy of its own Jobs."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "tried"}, "spec": {"managedBy": manager, "template": {"spec": pod}}}
    status, answer = server.api.request("POST", server.api.path("batch/v1", "Job", "default") + "?dryRun=All", job)
    assert status in (201, 422), answer
    taken, said = send(server, changed(managedBy=manager))
    assert taken == (status == 201), (said, answer)
    assert taken or "spec.managedBy" in said


def test_manager_is_fixed_from_the_creation(server):
    """Also before anybody has reported a status, and while the spec is refused."""
    other = "example.com/other"
    for name, given in (("without", {}), ("ours", {"managedBy": "drarun.dev/drajob-controller"}), ("theirs", {"managedBy": MANAGER})):
        server.api.make(as_object({"spec": {**SHORT, **given}}, name))
        path = server.api.path(API, KIND, "default", name)
        for reported in ({}, {"state": "Invalid", "reason": "InvalidSpec"}):
            if reported:
                assert patch(server, path + "/status", {"status": reported})[0] == 200
            for value in (other, None) if given else (other,):
                status, answer = patch(server, path, {"spec": {"managedBy": value}})
                assert status == 422 and "spec.managedBy" in answer["message"] and "is fixed once the object is there" in answer["message"], answer
            workers = 5 if reported else 4
            assert patch(server, path, {"spec": {"workers": workers}})[0] == 200
        assert server.api.get(API, KIND, name, "default")["spec"].get("managedBy") == given.get("managedBy")
        server.api.delete(API, KIND, name, "default")


def test_status_of_another_cluster_is_taken(server):
    """As Kueue does: a copy of the object without managedBy, whose whole status is put on the object. Its generations and times
    are those of the copy."""
    spec = {**SHORT, "managedBy": MANAGER}
    server.api.make(as_object({"spec": spec}, "far"))
    status = {"state": "Succeeded", "reason": "Succeeded", "message": "all ranks have ended", "observedGeneration": 7, "ready": "0/2",
              "workers": {"count": 2, "allocated": 0, "ready": 0}, "devices": {"gpus": "16"}, "ranks": 16, "attempt": 2, "restarts": 1,
              "startTime": "2026-11-01T08:00:00Z", "completionTime": "2026-11-01T09:00:00Z", "exitStatus": 0, "launcherUID": "of-no-job-here",
              "expirationTime": "2026-11-01T10:00:00Z", "expirationReason": "SiteDefault",
              "conditions": [{"type": kind, "status": "True", "observedGeneration": 7, "lastTransitionTime": "2026-11-01T09:00:00Z",
                              "reason": "Succeeded", "message": ""} for kind in ("Accepted", "Succeeded")]}
    path = server.api.path(API, KIND, "default", "far")
    assert patch(server, path + "/status", {"status": status})[0] == 200
    found = server.api.get(API, KIND, "far", "default")
    assert found["status"] == status and found["spec"].items() >= spec.items()
    server.api.delete(API, KIND, "far", "default")


def job_file(folder, **spec):
    path = folder / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "sent"}, "spec": {**SHORT, **spec}}))
    return path


@pytest.mark.parametrize("verb", [["run"], ["run", "--here"], ["submit"], ["submit", "--dry-run=server"], ["alloc"]], ids=" ".join)
def test_verbs_make_nothing_of_another_managers_job(server, drarun, tmp_path, verb):
    """The spec names who runs it, which is not drarun."""
    refused = drarun(*verb, job_file(tmp_path, managedBy=MANAGER), env={"KUBECONFIG": str(server.kubeconfig())})
    assert refused.rc == 65 and f"spec.managedBy: {MANAGER} runs the job sent, not drarun: kubectl apply makes the DraJob" in refused.err, refused
    assert not server.api.get(API, KIND, namespace="default") and not server.api.get("batch/v1", "Job", namespace="default")


@pytest.fixture
def admission(server):
    """Names a manager when a DraJob is made, as a webhook of Kueue does."""
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["drarun.dev"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["drajobs"]}
    change = {"patchType": "JSONPatch", "jsonPatch": {"expression": f'[JSONPatch{{op: "add", path: "/spec/managedBy", value: "{MANAGER}"}}]'}}
    server.api.make({"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": "manager"}, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}, "mutations": [change]}})
    server.api.make({"apiVersion": group, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "manager"}, "spec": {"policyName": "manager"}})
    seen = []

    def manager():
        """Of a DraJob that would be made now. The server knows a new kind for its policies some time after it serves it: 503."""
        seen[:] = server.api.request("POST", server.api.path(API, KIND, "default") + "?dryRun=All", changed())
        return seen[1]["spec"].get("managedBy") if seen[0] == 201 else "?"
    server.wait(lambda: f"the policy does nothing: {seen}", lambda: manager() == MANAGER, 60)
    yield
    for kind in ("MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"):
        server.api.delete(group, kind, "manager")
    server.wait(lambda: f"the policy stays: {seen}", lambda: manager() is None, 60)


def test_admission_names_another_manager(server, drarun, tmp_path, admission):
    """What drarun has made until then is taken back: the other one is to run the job."""
    refused = drarun("submit", job_file(tmp_path), env={"KUBECONFIG": str(server.kubeconfig())})
    assert refused.rc == 69 and f"the cluster's admission made {MANAGER} the manager of DraJob sent" in refused.err, refused
    assert not server.api.get(API, KIND, namespace="default") and not server.api.get("batch/v1", "Job", namespace="default")


@pytest.fixture(params=["", "Forbidden"], ids=["422", "403"])
def denied(server, request):
    """A site's policy that wants no DraJob."""
    group, name = "admissionregistration.k8s.io/v1", "no-jobs"
    rule = {"apiGroups": ["drarun.dev"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["drajobs"]}
    reason = {"reason": request.param} if request.param else {}
    server.api.make({"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no queue is named", **reason}]}})
    server.api.make({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {
        "policyName": name, "validationActions": ["Deny"]}})

    def tried():
        return server.api.request("POST", server.api.path(API, KIND, "default") + "?dryRun=All", changed())[0]
    server.wait("the policy does nothing", lambda: tried() == (403 if request.param else 422), 60)
    yield
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
        server.api.delete(group, kind, name)
    server.wait("the policy stays", lambda: tried() == 201, 60)


def test_site_denies_the_object(server, drarun, tmp_path, denied):
    """The job does not go without it, as where no Role allows DraJobs: nothing is made, and the site's words are told."""
    refused = drarun("submit", job_file(tmp_path), env={"KUBECONFIG": str(server.kubeconfig())})
    assert refused.rc == 69 and "no queue is named" in refused.err, refused
    assert not server.api.get(API, KIND, namespace="default") and not server.api.get("batch/v1", "Job", namespace="default")


def test_columns(server):
    server.api.make(as_object({"spec": {**SHORT, "managedBy": MANAGER, "devices": {"gpus": {"count": 8}, "nics": {"count": "all", "class": "dranet"}}}}, "shown"))
    path = server.api.path(API, KIND, "default", "shown")
    head, row = server.kubectl("get", "dj", "shown", "-o", "wide").splitlines()  # no controller has seen it
    at = [head.index(name) for name in ("SPEC-WORKERS", "SPEC-GPUS", "SPEC-NICS", "MANAGED-BY")]
    assert [row[begin:].split()[0] for begin in at] == ["2", "8", "all", MANAGER], row
    status = {"state": "Running", "ready": "1/2", "reason": "Running", "workers": {"count": 2}, "devices": {"gpus": "16", "nics": "8+all"}}
    assert patch(server, path + "/status", {"status": status})[0] == 200
    head, row = server.kubectl("get", "dj", "shown").splitlines()
    assert head.split() == ["NAME", "WORKERS", "GPUS", "NICS", "STATE", "READY", "EXIT", "AGE"]
    assert row.split()[:6] == ["shown", "2", "16", "8+all", "Running", "1/2"]
    server.api.delete(API, KIND, "shown", "default")
