# SPDX-License-Identifier: Apache-2.0
"""Namespaces with Pod Security admission, on a real API server without nodes: what is refused, how that is said, and that nothing of it stays.
What runs there is in test_cluster_security.py."""
import json
import re

import pytest

LABEL = "pod-security.kubernetes.io/"
NICS = {"devices": {"nics": {"count": 1, "class": "dranet"}}}
TEMPLATE = {"devices": {"nics": {"count": 1, "class": "dranet"}, "claims": "template"}}
GPUS = {"devices": {"gpus": {"count": 1, "class": "gpu.nvidia.com"}}}
COMPLIES = {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
KEEP_AWAY = 69


class Space:
    """A namespace with labels, which drarun's once-per-namespace objects are in already, and a client for it."""

    def __init__(self, drarun, folder, namespace):
        self.drarun, self.folder, self.namespace, self.api = drarun, folder, namespace, namespace.api
        self.env = {"KUBECONFIG": str(namespace.cluster.kubeconfig(namespace=namespace.name))}
        namespace.cluster.kubectl("apply", "-f", "-", input=drarun("install", "--namespace", namespace.name).ok().out)
        namespace.before = namespace.objects()

    def label(self, **levels):
        labels = {LABEL + key.replace("_", "-"): value for key, value in levels.items()}
        self.api.ok("PATCH", self.api.path("v1", "Namespace", None, self.namespace.name), {"metadata": {"labels": labels}},
                    content="application/merge-patch+json")
        return self

    def file(self, workers=2, container=None, **spec):
        path = self.folder / "job.json"
        template = {"template": {"spec": {"containers": [{"securityContext": container}]}}} if container else {}
        path.write_text(json.dumps({"workers": workers, "image": "a", "command": ["b"], **template, **spec}))
        return path

    def verb(self, *words):
        return self.drarun(*words, env=self.env)

    def jobs(self):
        return [each["metadata"]["name"] for each in self.api.get("batch/v1", "Job", namespace=self.namespace.name)]


@pytest.fixture
def space(control_plane, drarun, tmp_path, request):
    """In which nothing may be left."""
    control_plane.device_classes()
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-30:].strip("-")
    with control_plane.clean_namespace(name) as namespace:
        yield Space(drarun, tmp_path, namespace)


def label_line(namespace, level):
    return f"kubectl label --overwrite namespace {namespace} pod-security.kubernetes.io/enforce={level}"


@pytest.mark.parametrize("devices", [NICS, TEMPLATE], ids=["direct", "template"])
@pytest.mark.parametrize("verb", [["submit"], ["run"], ["run", "--here"]], ids=" ".join)
def test_capability_is_refused_in_one_sentence(space, verb, devices):
    name = space.label(enforce="baseline").namespace.name
    result = space.verb(*verb, space.file(**devices))
    assert result.rc == KEEP_AWAY and result.out == "", result
    (line,) = [each for each in result.err.splitlines() if "forbids" in each]
    assert re.search(fr'namespace {name} enforces Pod Security "baseline:latest", which forbids pod "job-w-0": IPC_LOCK in '
                     fr'capabilities\.add, .*: {label_line(name, "privileged")}; or, .*drop: \[IPC_LOCK\]', line), line
    assert not space.namespace.leftovers()


@pytest.mark.parametrize("devices", [{}, GPUS, NICS], ids=["none", "gpus", "nics"])
def test_container_that_does_not_comply(space, devices):
    """What is missing is named as the line to write, and with that line it complies."""
    name = space.label(enforce="restricted").namespace.name
    result = space.verb("submit", space.file(**devices))
    assert result.rc == KEEP_AWAY and 'enforces Pod Security "restricted:latest", which forbids pod "job-w-0"' in result.err, result
    assert "spec.template.spec.containers[0].securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, " \
           "runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}" in result.err, result
    assert label_line(name, "privileged" if devices is NICS else "baseline") in result.err, result
    assert not space.namespace.leftovers()
    space.verb("submit", space.file(container=COMPLIES, **devices)).ok()
    space.verb("cancel", "job").ok()


@pytest.mark.parametrize("delivery", ["copy", "volume"])
@pytest.mark.parametrize("devices", [{}, GPUS, NICS, TEMPLATE], ids=["none", "gpus", "nics", "template"])
def test_what_we_add_complies(space, devices, delivery):
    """However the agent comes; the launcher's pod too, which the Job controller makes."""
    space.label(enforce="restricted").env["DRARUN_AGENT"] = delivery
    result = space.verb("submit", "--dry-run=server", space.file(container=COMPLIES, **devices)).ok()
    assert "warns" not in result.out and "v1 Pod job-w-0: ok" in result.out, result
    space.verb("submit", space.file(container=COMPLIES, **devices)).ok()
    space.namespace.cluster.wait("there is no launcher's pod", lambda: [
        each for each in space.api.get("v1", "Pod", namespace=space.namespace.name)
        if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == "job"], 60)
    space.verb("cancel", "job").ok()


@pytest.mark.parametrize("devices", [NICS, TEMPLATE], ids=["direct", "template"])
def test_capability_that_is_dropped_is_not_added(space, devices):
    space.label(enforce="baseline")
    space.verb("submit", "--dry-run=server", space.file(container={"capabilities": {"drop": ["IPC_LOCK"]}}, **devices)).ok()


@pytest.mark.parametrize("devices", [NICS, TEMPLATE], ids=["direct", "template"])
def test_dry_run_says_it(space, devices):
    """With the server's word on the other objects, and nothing is made."""
    name = space.label(enforce="baseline").namespace.name
    result = space.verb("submit", "--dry-run=server", space.file(**devices))
    assert result.rc == KEEP_AWAY and label_line(name, "privileged") in result.err, result
    (line,) = [line for line in result.out.splitlines() if line.startswith("v1 Pod ")]
    assert line.startswith(f'v1 Pod job-w-0: namespace {name} enforces Pod Security "baseline:latest", which forbids') and "batch/v1 Job job: ok" in result.out, result
    assert not space.namespace.leftovers(0)


def test_volume_and_network_of_the_node(space):
    """What the user wrote is refused in the server's words."""
    name = space.label(enforce="baseline").namespace.name
    result = space.verb("submit", space.file(volumes=[{"name": "data", "hostPath": "/data", "mountPath": "/data"}]))
    assert f'hostPath volumes (volume "data"): take it out of the job, or {label_line(name, "privileged")}' in result.err, result
    assert not space.namespace.leftovers()


def test_other_refusals_of_pods_stay_as_they_are(space):
    """Of a quota, which the dry run of a template's pods does not wait for."""
    there = space.namespace.name
    space.api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": there}, "spec": {"hard": {"pods": "0"}}})
    space.namespace.cluster.wait("the quota is not counted", lambda: space.api.get("v1", "ResourceQuota", "none", there).get("status", {}).get("hard"), 60)
    result = space.verb("submit", space.file())
    assert result.rc == KEEP_AWAY and "exceeded quota: none" in result.err, result
    space.verb("submit", space.file(**TEMPLATE)).ok()  # the queue's pods may have room later
    space.verb("cancel", "job").ok()
    space.api.delete("v1", "ResourceQuota", "none", there)


@pytest.mark.parametrize("levels", [{"warn": "restricted"}, {"warn": "restricted", "audit": "restricted", "enforce": "baseline"}], ids=["warn", "all"])
@pytest.mark.parametrize("devices", [{}, {**GPUS, "devices": {**GPUS["devices"], "claims": "template"}}], ids=["direct", "template"])
def test_warning_comes_once(space, devices, levels):
    """Of five workers, and of the Job that makes them."""
    name = space.label(**levels).namespace.name
    tried = space.verb("submit", "--dry-run=server", space.file(workers=5, **devices)).ok()
    assert tried.out.count('the API server warns: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false') == 1, tried
    made = space.verb("submit", space.file(workers=5, **devices)).ok()
    assert made.err.count("would violate PodSecurity") == 1, made
    kind = r"Pod job-w-\d" if not devices else "Job job-w"
    assert re.search(f"the API server warns of {kind} in namespace {name}: would violate PodSecurity", made.err), made
    space.verb("cancel", "job").ok()
