# SPDX-License-Identifier: Apache-2.0
"""DraJobs and the chart across an upgrade from tests/base-release to this tree, and back: a real API server, and Helm."""
import copy
import json

import pytest
import yaml

from support.cluster import Cluster
from support.skew import TREE, base
from test_chart import DEFINITION, READY_S, Release, namespaced
from test_crd import API, KIND, as_object, job_of, send

STATUS = {"state": "Succeeded", "reason": "Succeeded", "message": "all ranks have ended", "observedGeneration": 1, "ready": "0/2",
          "workers": {"count": 2, "allocated": 0, "ready": 0}, "devices": {"gpus": "16"}, "ranks": 16, "attempt": 1, "restarts": 0,
          "startTime": "2026-11-01T08:00:00Z", "completionTime": "2026-11-01T09:00:00Z", "exitStatus": 0, "launcherUID": "of-no-job-here",
          "conditions": [{"type": "Succeeded", "status": "True", "observedGeneration": 1, "lastTransitionTime": "2026-11-01T09:00:00Z",
                          "reason": "Succeeded", "message": ""}]}


@pytest.fixture
def server():
    with Cluster() as made:
        yield made


def apply(server, side):
    """kubectl apply of a side's definition, as its page says."""
    server.kubectl("apply", "--server-side", "--force-conflicts", "-f", side.source / "deploy/crd.yaml")
    wanted = yaml.safe_load((side.source / "deploy/crd.yaml").read_text())["spec"]

    def there():
        found = server.api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", DEFINITION)
        served = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions") or ()}
        return found["spec"]["versions"] == wanted["versions"] and served.get("Established") == "True"
    server.wait(f"the definition of {side} is not served", there, READY_S)


def objects(server):
    """{name: spec and status} of all DraJobs."""
    return {each["metadata"]["name"]: {key: each.get(key) for key in ("spec", "status")} for each in server.api.get(API, KIND, namespace="default")}


def put_back(server, name):
    """Stores an object as it was read, by the definition that is served now."""
    found = server.api.get(API, KIND, name, "default")
    status, answer = server.api.request("PUT", server.api.path(API, KIND, "default", name) + "?fieldValidation=Strict", found)
    assert status == 200, answer


def test_objects_of_an_earlier_definition(server):
    """All that examples and tests of the base may write is taken by the tree's definition as it is, stored again, and comes back under
    the base's: no key is lost either way."""
    apply(server, base())
    wanted = {}
    for number, path in enumerate(sorted((base().source / "examples").glob("**/*.yaml"))):
        job = job_of(path)
        if job:
            made = as_object(job)
            made["metadata"]["name"] = f"job-{number}"
            server.wait(f"the definition does not take {path}", lambda: send(server, copy.deepcopy(made))[0], READY_S)  # it may be served late
            server.api.make(made)
            wanted[made["metadata"]["name"]] = made["spec"]
    assert len(wanted) >= 10
    for name in wanted:
        path = server.api.path(API, KIND, "default", name) + "/status"
        status, answer = server.api.request("PATCH", path, {"status": STATUS}, content="application/merge-patch+json")
        assert status == 200, answer
    before = objects(server)
    assert {name: each["status"] for name, each in before.items()} == dict.fromkeys(wanted, STATUS)
    for side in (TREE, base()):
        apply(server, side)
        for name in wanted:
            put_back(server, name)
        assert objects(server) == before, side
    for name in wanted:
        server.api.delete(API, KIND, name, "default")


# ---- the next version of the API, whose steps docs/stable.md has ----

NEXT = "drarun.dev/v1beta1"
OLD_DEPRECATED = "drarun.dev/v1alpha1 DraJob is deprecated: write drarun.dev/v1beta1"
STEPS = {  # v1alpha1: served, stored; v1beta1: the same, None where the definition does not have it
    "before N": ((True, True), None),
    "N": ((True, True), (True, False)),
    "N+1": ((True, False), (True, True)),
    "N+3": ((False, False), (True, True)),
    "the end": (None, (True, True)),
}


def definition_at(step):
    """The tree's definition with both versions as of that step; v1beta1 has v1alpha1's schema, as conversion None demands."""
    made = yaml.safe_load((TREE.source / "deploy/crd.yaml").read_text())
    version, = made["spec"]["versions"]
    made["spec"]["versions"] = []
    for name, how in zip(("v1alpha1", "v1beta1"), STEPS[step]):
        if how:
            more = {"deprecated": True, "deprecationWarning": OLD_DEPRECATED} if name == "v1alpha1" and STEPS[step][1] else {}
            made["spec"]["versions"].append({**version, "name": name, "served": how[0], "storage": how[1], **more})
    return made


class Definition:
    """DraJobs of a real API server, taken through the steps."""

    def __init__(self, server):
        self.server, self.path = server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + DEFINITION

    def go(self, step):
        wanted = definition_at(step)
        self.server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(wanted))
        served = {f"drarun.dev/{each['name']}" for each in wanted["spec"]["versions"] if each["served"]}
        stored, = (each["name"] for each in wanted["spec"]["versions"] if each["storage"])
        self.server.wait(f"the definition of {step} is not served", lambda: stored in self.stored() and all(
            self.server.api.request("GET", self.objects_of(api))[0] == (200 if api in served else 404) for api in (API, NEXT)), READY_S)

    @staticmethod
    def objects_of(api, name=""):
        return f"/apis/{api}/namespaces/default/drajobs{name and '/' + name}"

    def ok(self, method, path, body=None):
        """The answer. A while after a change of the definition the server says 429: storage is (re)initializing."""
        self.server.wait(f"{method} {path} is not answered", lambda: self.server.api.request("GET", path.partition("?")[0])[0] != 429, READY_S)
        return self.server.api.ok(method, path, body)

    def specs(self, api):
        """{name: spec}, of objects that say that they are of that version."""
        found = self.ok("GET", self.objects_of(api))["items"]
        assert all(each["apiVersion"] == api for each in found)
        return {each["metadata"]["name"]: each["spec"] for each in found}

    def write(self, api, name, spec):
        self.ok("POST", self.objects_of(api) + "?fieldValidation=Strict", {
            "apiVersion": api, "kind": KIND, "metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def stored(self):
        return self.server.api.ok("GET", self.path)["status"]["storedVersions"]

    def migrate(self):
        """As docs/stable.md says it."""
        kubectl = [self.server.programs / "kubectl", "--kubeconfig", self.server.kubeconfig()]
        listed = self.server.in_ns([*kubectl, "get", "drajobs", "-A", "-o", "json"])
        done = self.server.in_ns([*kubectl, "replace", "-f", "-"], input=listed.stdout)
        assert done.returncode == 0, done.stderr
        self.server.api.ok("PATCH", self.path + "/status", {"status": {"storedVersions": ["v1beta1"]}}, content="application/merge-patch+json")


def test_next_version_of_the_api(server):
    """No object is lost or changed by a step, forward or back to the one before; an old client is warned before it is refused."""
    definition = Definition(server)
    examples = [job_of(path)["spec"] for path in sorted((TREE.source / "examples/jobs").glob("*.yaml"))]
    definition.go("before N")
    for number, spec in enumerate(examples):
        definition.write(API, f"old-{number}", spec)
    wanted = definition.specs(API)
    definition.go("N")
    definition.write(NEXT, "new", examples[0])
    wanted["new"] = definition.specs(API)["new"]
    assert definition.specs(API) == definition.specs(NEXT) == wanted and definition.stored() == ["v1alpha1"]
    warned = server.in_ns([server.programs / "kubectl", "--kubeconfig", server.kubeconfig(), "get", "drajobs.v1alpha1.drarun.dev"])
    assert warned.returncode == 0 and OLD_DEPRECATED in warned.stderr, warned
    definition.go("before N")  # a downgrade
    assert definition.specs(API) == wanted
    for step in ("N", "N+1"):
        definition.go(step)
    assert definition.specs(API) == definition.specs(NEXT) == wanted and definition.stored() == ["v1alpha1", "v1beta1"]
    definition.go("N")  # a downgrade: what is stored in v1beta1 is read
    definition.go("N+1")
    definition.migrate()
    for step in ("N+3", "the end"):
        definition.go(step)
        assert definition.specs(NEXT) == wanted, step
    assert definition.stored() == ["v1beta1"]
    for name in wanted:
        definition.ok("DELETE", definition.objects_of(NEXT, name))
    server.api.ok("DELETE", definition.path)


@pytest.mark.parametrize("plugin", [False, True], ids=["controller", "plugin"])
def test_chart_is_upgraded_and_taken_back(server, tmp_path, plugin):
    """By Helm, with values of the base: no field is changed that Kubernetes keeps, and jobs stay. What the tree's chart makes more is
    gone after the way back."""
    values = {"plugin": {"enabled": plugin}, "controller": {"ttl": "12h"}}
    namespaced(server, "life", **{"pod-security.kubernetes.io/enforce": "privileged"})
    release = Release(server, tmp_path, namespace="life", chart=base().source / "deploy/chart")
    release.ok("install", **values)
    server.wait("DraJobs are not served", lambda: server.api.plural(API, KIND), READY_S)
    server.wait("the controller's pods are not made", lambda: len(server.api.get("v1", "Pod", namespace="life")) >= 2, READY_S)
    server.wait("the definition takes no job", lambda: server.api.create(as_object({"spec": {"workers": 1, "image": "i", "command": ["true"]}}, "kept"))[0] in (201, 409), READY_S)
    before, names = objects(server), made_by(release)
    for side in (TREE, base()):
        release.chart = side.source / "deploy/chart"
        release.ok("upgrade", **values)
        assert objects(server) == before, side
        assert names <= made_by(release), side
    assert made_by(release) == names
    release.ok("uninstall")
    assert objects(server) == before


def made_by(release):
    """(kind, name) of what the release's manifest has; all of it is there."""
    done = release.helm.run("get", "manifest", release.name, "--namespace", release.namespace)
    assert done.returncode == 0, done.stderr
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    missing = [each["metadata"]["name"] for each in found if not release.cluster.api.get(
        each["apiVersion"], each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))]
    assert found and not missing, json.dumps(missing)
    return {(each["kind"], each["metadata"]["name"]) for each in found}
