# SPDX-License-Identifier: Apache-2.0
"""deploy/chart: what Helm makes of it, and what a real API server says to that."""
import json
import subprocess

import pytest
import yaml

from support.build import SOURCE, patience


def manifest(name):
    return list(yaml.safe_load_all((SOURCE / "deploy" / name).read_text()))


@pytest.fixture(scope="module")
def helm():
    run = subprocess.run([SOURCE / "scripts" / "fetch-helm"], capture_output=True, text=True, timeout=patience(600))
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-helm: {run.stderr.strip()[-300:]}")
    return run.stdout.strip()


def rendered(helm, folder, **values):
    """{(kind, name): object} that Helm's engine makes of the chart, or what it says against the values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    run = subprocess.run([helm, SOURCE / "deploy/chart", file], capture_output=True, text=True, timeout=patience())
    return named(yaml.safe_load_all(run.stdout)) if run.returncode == 0 else run.stderr


def named(objects):
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}


def test_chart_is_the_manifests(helm, tmp_path):
    plain = named(manifest("plugin.yaml") + manifest("admission.yaml"))
    assert rendered(helm, tmp_path, namespace={"create": True}) == plain
    namespace = ("Namespace", "drarun-system")
    assert rendered(helm, tmp_path) == {key: each for key, each in plain.items() if key != namespace}


def controller_s_manifests():
    """deploy/controller.yaml and crd.yaml, in the chart's namespace."""
    text = (SOURCE / "deploy/controller.yaml").read_text().replace("namespace: drarun-controller", "namespace: drarun-system") \
        .replace("serviceaccount:drarun-controller:", "serviceaccount:drarun-system:")
    made = named([*yaml.safe_load_all(text), *manifest("crd.yaml")])
    made["CustomResourceDefinition", "drajobs.drarun.dev"]["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    namespace = made.pop(("Namespace", "drarun-controller"))
    return {**made, ("Namespace", "drarun-system"): {**namespace, "metadata": {**namespace["metadata"], "name": "drarun-system"}}}


def test_chart_s_controller_is_the_manifests(helm, tmp_path):
    """Alone, and beside the plugin."""
    alone = {"plugin": {"enabled": False}, "controller": {"enabled": True}}
    plain = controller_s_manifests()
    assert rendered(helm, tmp_path, **alone, namespace={"create": True}) == plain
    namespace = plain.pop(("Namespace", "drarun-system"))
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert rendered(helm, tmp_path, controller={"enabled": True}) == {**rendered(helm, tmp_path), **plain}
    policies = [key for key in plain if key[0].startswith("ValidatingAdmissionPolicy")]
    without = {key: each for key, each in plain.items() if key not in policies}
    assert len(policies) == 2 and rendered(helm, tmp_path, **alone, admission={"controller": False}) == without
    plain.pop(("CustomResourceDefinition", "drajobs.drarun.dev"))
    assert rendered(helm, tmp_path, plugin={"enabled": False}, controller={"enabled": True, "crd": False}) == plain


def taken(control_plane, made):
    """The API server takes all of it."""
    for name in {each["metadata"].get("namespace", "default") for each in made.values()}:
        if not control_plane.api.get("v1", "Namespace", name):
            control_plane.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for each in made.values():
        status, answer = control_plane.api.create(each, dry_run=True)
        assert status == 201, answer


def test_chart_s_controller(helm, drarun, tmp_path, control_plane):
    """Of all namespaces, and of one, for which it has a Role there and nothing else."""
    taken(control_plane, rendered(helm, tmp_path, plugin={"enabled": False}, controller={"enabled": True}))
    made = rendered(helm, tmp_path, image="registry.example/plugin:1", imagePullPolicy="Always", imagePullSecrets=["key"], plugin={"enabled": False}, controller={
        "enabled": True, "crd": False, "namespace": "train", "image": "registry.example/drarun:2", "replicas": 1, "log": "text",
        "resources": {"limits": {"memory": "64Mi"}}, "nodeSelector": {"jobs": "yes"}, "tolerations": [{"key": "a", "operator": "Exists"}]})
    assert sorted((kind, each["metadata"]["namespace"]) for (kind, _), each in made.items()) == [
        ("Deployment", "drarun-system"), ("NetworkPolicy", "drarun-system"), ("Role", "train"), ("RoleBinding", "train"), ("ServiceAccount", "drarun-system")]
    assert made["RoleBinding", "drarun-controller"]["subjects"][0]["namespace"] == "drarun-system"
    printed = named(json.loads(drarun("install", "-n", "train", "--controller-role", "--format", "json").ok().out)["items"])
    assert made["Role", "drarun-controller"]["rules"] == printed["Role", "drarun-controller"]["rules"]
    spec = made["Deployment", "drarun-controller"]["spec"]
    pod, container = spec["template"]["spec"], spec["template"]["spec"]["containers"][0]
    assert (spec["replicas"], pod["nodeSelector"], pod["imagePullSecrets"], pod["tolerations"]) == \
        (1, {"jobs": "yes"}, [{"name": "key"}], [{"key": "a", "operator": "Exists"}])
    assert (container["image"], container["env"][0]["value"], container["imagePullPolicy"]) == (*["registry.example/drarun:2"] * 2, "Always")
    assert container["command"] == ["/bin/drarun", "controller", "--namespace=train", "--heartbeat=/run/drarun/heartbeat", "--log=text"]
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    taken(control_plane, made)


def test_chart_s_values(helm, tmp_path, control_plane):
    """Each does what it says, and the API server takes all of it."""
    made = rendered(helm, tmp_path, image="registry.example/drarun:2", imagePullPolicy="Always", imagePullSecrets=["key"],
                    drivers=["nic"], takeover="dra.net", nodeSelector={"gpus": "yes"}, tolerations=[{"key": "a", "operator": "Exists"}],
                    priorityClassName="", updateStrategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}}, resources={"limits": {"memory": "64Mi"}},
                    config={"nics": {"virtualPrefixes": ["nic"]}, "rescan": "1m"}, extraArgs=["--verbose"], metrics={"port": 0}, log="text", namespace={"create": True})
    spec = made["DaemonSet", "drarun-plugin"]["spec"]
    pod, container = spec["template"]["spec"], spec["template"]["spec"]["containers"][0]
    assert spec["updateStrategy"] == {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 2}} and "priorityClassName" not in pod
    assert (pod["nodeSelector"], pod["imagePullSecrets"], pod["tolerations"]) == \
        ({"gpus": "yes"}, [{"name": "key"}], [{"key": "a", "operator": "Exists"}])
    assert (container["image"], container["imagePullPolicy"], container["resources"]) == \
        ("registry.example/drarun:2", "Always", {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}})
    assert container["command"][-4:] == ["--log=text", "--drivers=nic", "--takeover=dra.net", "--verbose"]
    assert ("Service", "drarun-plugin-metrics") not in made and "annotations" not in spec["template"]["metadata"]
    assert yaml.safe_load(made["ConfigMap", "drarun-plugin"]["data"]["plugin.yaml"]) == {
        "apiVersion": "drarun.dev/v1alpha1", "kind": "PluginConfig", "nics": {"virtualPrefixes": ["nic"]}, "rescan": "1m"}
    assert "dra.net" in made["ClusterRole", "drarun-plugin"]["rules"][3]["resourceNames"]
    drivers = made["ValidatingAdmissionPolicy", "drarun-plugin-configuration"]["spec"]["variables"][0]
    assert drivers == {"name": "drivers", "expression": '["nic.drarun.dev", "dra.net"]'}
    for name in ("drarun-plugin-slices", "drarun-plugin-claim-status"):
        drivers = made["ValidatingAdmissionPolicy", name]["spec"]["variables"][0]
        assert drivers == {"name": "drivers", "expression": '["gpu.drarun.dev", "nic.drarun.dev", "dra.net"]'}
    assert made.pop(("Namespace", "drarun-system"))["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    for each in made.values():
        each["metadata"]["name"] += "-tried"
    taken(control_plane, made)


@pytest.mark.parametrize("value,without", [
    ({"deviceClasses": False}, ["DeviceClass"]),
    ({"admission": {"claims": False}}, ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]),
    ({"admission": {"claims": False, "configuration": False, "slices": False, "claimStatus": False}},
     ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]),
])
def test_parts_of_the_chart(helm, tmp_path, value, without):
    whole, made = rendered(helm, tmp_path), rendered(helm, tmp_path, **value)
    assert made == {key: each for key, each in whole.items() if key[0] not in without}


@pytest.mark.parametrize("value", [{"takover": "dra.net"}, {"takeover": "Dra.Net"}, {"drivers": ["gpus"]}, {"tolerations": {}},
                                   {"imagePullPolicy": "Sometimes"}, {"admission": {"pods": True}}, {"plugin": {"enabled": "no"}},
                                   {"controller": {"enable": True}}, {"controller": {"namespace": "Train"}}, {"controller": {"replicas": -1}}])
def test_values_that_are_refused(helm, tmp_path, value):
    said = rendered(helm, tmp_path, **value)
    assert isinstance(said, str) and next(iter(value)) in said
