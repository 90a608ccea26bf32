# SPDX-License-Identifier: Apache-2.0
"""deploy/chart: what Helm makes of it, and what a real API server says to that."""
import copy
import json
import os
import re
import runpy
import shutil
import subprocess

import pytest
import yaml

from support import foreign_api, pages
from support.build import BUILD, SOURCE, patience
from support.cluster import Cluster
from support.helm import CHART, NAMESPACE, RELEASE, Helm, named, program

READY_S = 60
CONTROLLER, PLUGIN, DEFINITION = "drarun-controller", "drarun-plugin", "drajobs.drarun.dev"
OURS = "app.kubernetes.io/", "helm.sh/"
CHECKSUM = "checksum/config"  # of the plugin's configuration, in its pods' annotations
RECOMMENDED = {"helm.sh/chart", *(f"app.kubernetes.io/{name}" for name in ("name", "instance", "version", "component", "part-of", "managed-by"))}
OF_PODS = RECOMMENDED - {"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"}  # those that no upgrade changes
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
LINUX = "kubernetes.io/os"  # of nodes, which may be Windows' too
SECURITY = "pod-security.kubernetes.io/enforce"


def manifests(*names):
    """{(kind, name): object} of the files of deploy/, but for their namespaces, which the chart's user makes."""
    found = named(each for name in names for each in yaml.safe_load_all((SOURCE / "deploy" / name).read_text()))
    return {key: each for key, each in found.items() if key[0] != "Namespace"}


def heads(each):
    """The metadata of an object, and of the pods that it makes."""
    template = each["spec"].get("template") if each["kind"] in ("Deployment", "DaemonSet") else None
    return [each["metadata"], *([template["metadata"]] if template else [])]


def unlabelled(objects):
    """Without the recommended labels, of which the manifests have few, and the checksum, which they have not."""
    found = copy.deepcopy(objects)
    for each in found.values():
        for head in heads(each):
            head.get("annotations", {}).pop(CHECKSUM, None)
            labels = {key: value for key, value in head.pop("labels", {}).items() if not key.startswith(OURS)}
            head.update({"labels": labels} if labels else {})
    return found


def container_of(each):
    container, = each["spec"]["template"]["spec"]["containers"]
    return container


@pytest.fixture
def helm(tmp_path):
    return Helm(tmp_path)


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


# ---- beside the manifests ----

def of_the_controller():
    """deploy/controller.yaml and crd.yaml in the chart's namespace, and with what keeps the definition."""
    text = json.dumps([*manifests("controller.yaml", "crd.yaml").values()])
    for where in ('"namespace": "{}"', "serviceaccount:{}:"):
        text = text.replace(where.format(CONTROLLER), where.format(NAMESPACE))
    found = named(json.loads(text))
    found["CustomResourceDefinition", DEFINITION]["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return unlabelled(found)


def of_the_plugin():
    return unlabelled(manifests("plugin.yaml", "admission.yaml"))


def test_default_is_the_controller(helm):
    assert unlabelled(helm.rendered()) == of_the_controller()


def test_plugin_is_enabled_by_a_value(helm):
    """Beside the controller, and alone."""
    assert unlabelled(helm.rendered(plugin={"enabled": True})) == {**of_the_controller(), **of_the_plugin()}
    assert unlabelled(helm.rendered(plugin={"enabled": True}, controller={"enabled": False})) == of_the_plugin()
    assert helm.rendered(controller={"enabled": False}) == {}


ADMISSION = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}


@pytest.mark.parametrize("values,without", [
    ({"controller": {"crd": False}}, {"CustomResourceDefinition"}),
    ({"controller": {"admissionPolicy": False}}, {kind for kind in ADMISSION if kind.startswith("Validating")}),
    ({"controller": {"networkPolicy": False}}, {"NetworkPolicy"}),
    ({"controller": {"aggregateRoles": False}}, {("ClusterRole", "drarun-view"), ("ClusterRole", "drarun-edit")}),
    ({"controller": {"podDisruptionBudget": False}}, {"PodDisruptionBudget"}),
    ({"plugin": {"deviceClasses": False}}, {"DeviceClass"}),
    ({"plugin": {"networkPolicy": False}}, {"NetworkPolicy"}),
    ({"plugin": {"admission": {"claims": False}}}, {kind for kind in ADMISSION if kind.startswith("Mutating")}),
    ({"plugin": {"admission": dict.fromkeys(("claims", "configuration", "slices", "claimStatus"), False)}}, ADMISSION),
], ids=lambda value: "-".join(sorted(map(str, value))) if isinstance(value, set) else None)
def test_parts_that_are_left_out(helm, values, without):
    (part, wanted), = values.items()
    alone = {"plugin": {"enabled": part == "plugin"}, "controller": {"enabled": part == "controller"}}
    whole, made = helm.rendered(**alone), helm.rendered(**{**alone, part: {**alone[part], **wanted}})
    assert made == {key: each for key, each in whole.items() if not {key, key[0]} & without} and len(made) < len(whole)


def test_budget_of_replicas(helm):
    """Of one replica there is none: it would say nothing."""
    assert ("PodDisruptionBudget", CONTROLLER) not in helm.rendered(controller={"replicas": 1})
    assert helm.rendered(controller={"replicas": 3})["PodDisruptionBudget", CONTROLLER]["spec"]["maxUnavailable"] == 1


NOT_IN_1_34 = re.compile(r"\.(?:flatten|sort|sortBy|slice|distinct|reverse|first|last)\(|lists\.range\(")


def test_older_kubernetes(helm):
    """Before 1.36 no API server has MutatingAdmissionPolicy in v1, and that of 1.34 refuses new expressions with what it has added to CEL itself
    (MinCompatibilityVersion of apiserver's cel/environment): Helm would install nothing of the release."""
    new, old, oldest = (helm.rendered(plugin={"enabled": True}, kubernetes=version) for version in ("1.36.0-gke.1", "1.35.4", "1.34.2"))
    assert old == {key: each for key, each in new.items() if not key[0].startswith("Mutating")} and len(new) == len(old) + 2
    assert oldest == {key: each for key, each in old.items() if key[1] != "drarun-plugin-configuration"} and len(old) == len(oldest) + 2
    assert NOT_IN_1_34.search(json.dumps([*old.values()])) and not NOT_IN_1_34.search(json.dumps([*oldest.values()]))


# ---- values ----

ALL_ON = {"plugin": {"enabled": True, "image": {"repository": "registry.example/plugin"}}, "podMonitor": {"enabled": True}}
OTHERS = {  # of values that have no other one by their kind: enough to be seen
    "image.repository": "registry.example:5000/team/drarun", "image.tag": "2", "image.digest": DIGEST, "image.pullPolicy": "Always",
    "imagePullSecrets": ["key"], "commonLabels": {"team": "a"},
    "controller.namespace": "train", "controller.ttl": "12h", "controller.runAsUser": 4711, "controller.log": "text", "controller.extraArgs": ["--verbose"],
    "controller.agent": "copy", "controller.extraEnv": [{"name": "A", "value": "b"}], "controller.resources": {"limits": {"cpu": 1}},
    "controller.nodeSelector": {"jobs": "yes"}, "controller.tolerations": [{"key": "a", "operator": "Exists"}],
    "controller.affinity": {"nodeAffinity": {}}, "controller.priorityClassName": "high", "controller.podLabels": {"a": "b"},
    "controller.podAnnotations": {"a": "b c"},
    "plugin.image.repository": "registry.example/other", "plugin.image.tag": "2", "plugin.image.digest": DIGEST, "plugin.drivers": ["nic"],
    "plugin.nvidia.runtimeClassName": "nvidia", "plugin.takeover": "dra.net", "plugin.config": {"rescan": "1m"}, "plugin.log": "text", "plugin.extraArgs": ["--verbose"],
    "plugin.kubeletDir": "/var/lib/k0s/kubelet", "plugin.hookDir": "/home/kubernetes/bin/drarun",
    "plugin.updateStrategy": {"type": "OnDelete"}, "plugin.resources": {"limits": {"cpu": 1}}, "plugin.nodeSelector": {"gpus": "yes"},
    "plugin.tolerations": [], "plugin.affinity": {"nodeAffinity": {}}, "plugin.priorityClassName": "", "plugin.podLabels": {"a": "b"}, "plugin.podAnnotations": {"a": "b c"},
    "podMonitor.interval": "30s", "podMonitor.labels": {"release": "prometheus"},
}
PAGE = runpy.run_path(str(SOURCE / "scripts/chart-page"))
VALUES = {".".join(path): default for path, default, _ in PAGE["entries"]((CHART / "values.yaml").read_text())}
GROUPS = {path for path, default in VALUES.items() if default is PAGE["GROUP"]}
LEAVES = {path: default for path, default in VALUES.items() if path not in GROUPS}


def changed(values, path):
    """The values with another one at that path."""
    *way, last = path.split(".")
    made = copy.deepcopy(values)
    at = made
    for key in way:
        at = at.setdefault(key, {})
    old = at.get(last, LEAVES[path])
    at[last] = OTHERS[path] if path in OTHERS else not old if isinstance(old, bool) else old + 1
    return made


@pytest.fixture(scope="module")
def all_on(tmp_path_factory):
    return Helm(tmp_path_factory.mktemp("helm")).rendered(**ALL_ON)


@pytest.mark.parametrize("path", LEAVES)
def test_each_value_is_read(helm, all_on, path):
    """With another value the release is another one."""
    assert helm.rendered(**changed(ALL_ON, path)) != all_on


def test_templates_read_values_that_there_are():
    read = {path for file in (CHART / "templates").iterdir() for path in re.findall(r"\.Values\.(\w+(?:\.\w+)*)", file.read_text())}
    assert len(read) > 20 and not read - set(VALUES)


def test_controller_of_one_namespace(helm, drarun, cluster):
    """It has a Role there and nothing else."""
    made = helm.rendered(image={"repository": "registry.example/drarun", "tag": "2", "pullPolicy": "Always"}, imagePullSecrets=["key"], controller={
        "crd": False, "namespace": "train", "replicas": 1, "log": "text", "resources": {"limits": {"memory": "64Mi"}}, "nodeSelector": {"jobs": "yes"},
        "tolerations": [{"key": "a", "operator": "Exists"}], "extraArgs": ["--verbose"], "priorityClassName": "high", "podAnnotations": {"a": "b"}})
    assert sorted((kind, each["metadata"]["namespace"]) for (kind, _), each in made.items()) == [
        ("Deployment", NAMESPACE), ("NetworkPolicy", NAMESPACE), ("Role", "train"), ("RoleBinding", "train"), ("ServiceAccount", NAMESPACE)]
    assert made["RoleBinding", CONTROLLER]["subjects"][0]["namespace"] == NAMESPACE
    printed = named(json.loads(drarun("install", "-n", "train", "--controller-role", "--format", "json").ok().out)["items"])
    assert made["Role", CONTROLLER]["rules"] == printed["Role", CONTROLLER]["rules"]
    spec = made["Deployment", CONTROLLER]["spec"]
    pod, container = spec["template"]["spec"], container_of(made["Deployment", CONTROLLER])
    assert (spec["replicas"], pod["nodeSelector"], pod["imagePullSecrets"], pod["tolerations"], pod["priorityClassName"]) == \
        (1, {LINUX: "linux", "jobs": "yes"}, [{"name": "key"}], [{"key": "a", "operator": "Exists"}], "high")
    assert spec["template"]["metadata"]["annotations"] == {"a": "b"}
    assert (container["image"], container["env"][0]["value"], container["imagePullPolicy"]) == (*["registry.example/drarun:2"] * 2, "Always")
    assert container["command"] == ["/bin/drarun", "controller", "--namespace=train", "--heartbeat=/run/drarun/heartbeat", "--metrics-port=7172", "--log=text", "--verbose"]
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}}
    taken(cluster, made)


AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["system"]}]}]}}}


def test_definition_of_a_controller_of_one_namespace(helm):
    """What belongs to the whole cluster and to no account comes with it."""
    made = helm.rendered(controller={"namespace": "train"})
    assert {name for kind, name in made if kind in ("ClusterRole", "CustomResourceDefinition")} == {"drarun-view", "drarun-edit", DEFINITION}


def test_values_of_the_plugin(helm, cluster):
    made = helm.rendered(image={"repository": "registry.example/drarun", "tag": "2", "pullPolicy": "Always"}, imagePullSecrets=["key"],
                         controller={"enabled": False}, plugin={
        "enabled": True, "drivers": ["nic"], "takeover": "dra.net", "nodeSelector": {"gpus": "yes"}, "affinity": AFFINITY, "tolerations": [{"key": "a", "operator": "Exists"}],
        "priorityClassName": "", "updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "20%"}}, "resources": {"limits": {"memory": "64Mi"}},
        "config": {"nics": {"virtualPrefixes": ["nic"]}, "rescan": "1m"}, "extraArgs": ["--verbose"], "metrics": {"port": 0}, "log": "text",
        "podAnnotations": {"a": "b"}})
    spec = made["DaemonSet", PLUGIN]["spec"]
    pod, container = spec["template"]["spec"], container_of(made["DaemonSet", PLUGIN])
    assert spec["updateStrategy"] == {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "20%"}} and "priorityClassName" not in pod
    assert (pod["nodeSelector"], pod["affinity"], pod["imagePullSecrets"], pod["tolerations"]) == \
        ({LINUX: "linux", "gpus": "yes"}, AFFINITY, [{"name": "key"}], [{"key": "a", "operator": "Exists"}])
    assert (container["image"], container["imagePullPolicy"], container["resources"]) == \
        ("registry.example/drarun:2", "Always", {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}})
    assert container["command"][-4:] == ["--log=text", "--drivers=nic", "--takeover=dra.net", "--verbose"]
    assert ("Service", "drarun-plugin-metrics") not in made and spec["template"]["metadata"]["annotations"].keys() == {"a", CHECKSUM}
    assert made["NetworkPolicy", PLUGIN]["spec"]["ingress"] == []
    assert yaml.safe_load(made["ConfigMap", PLUGIN]["data"]["plugin.yaml"]) == {
        "apiVersion": "drarun.dev/v1alpha1", "kind": "PluginConfig", "nics": {"virtualPrefixes": ["nic"]}, "rescan": "1m"}
    assert "dra.net" in made["ClusterRole", PLUGIN]["rules"][3]["resourceNames"]
    drivers = made["ValidatingAdmissionPolicy", "drarun-plugin-configuration"]["spec"]["variables"][0]
    assert drivers == {"name": "drivers", "expression": '["nic.drarun.dev", "dra.net"]'}
    for name in ("drarun-plugin-slices", "drarun-plugin-claim-status"):
        drivers = made["ValidatingAdmissionPolicy", name]["spec"]["variables"][0]
        assert drivers == {"name": "drivers", "expression": '["gpu.drarun.dev", "nic.drarun.dev", "dra.net"]'}
    taken(cluster, made)


def test_runtime_class(helm):
    """NVIDIA's runtime gives NVML to containers that ask for it by these variables."""
    plain, made = (helm.rendered(plugin={"enabled": True, "nvidia": {"runtimeClassName": name}})["DaemonSet", PLUGIN] for name in ("", "nvidia"))
    more = [each for each in container_of(made)["env"] if each not in container_of(plain)["env"]]
    assert {each["name"]: each["value"] for each in more} == {
        "NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility", "NVIDIA_MIG_MONITOR_DEVICES": "all"}
    assert made["spec"]["template"]["spec"].pop("runtimeClassName") == "nvidia"
    container_of(made)["env"] = container_of(plain)["env"]
    assert made == plain


def test_change_of_the_configuration(helm):
    """It makes other pods, for the plugin reads the file when it starts. What is no configuration makes none."""
    def template(config, **values):
        return helm.rendered(plugin={"enabled": True, "config": config}, **values)["DaemonSet", PLUGIN]["spec"]["template"]
    first = template({"rescan": "1m", "uplinks": ["eth0"]})
    assert template({"uplinks": ["eth0"], "rescan": "1m"}, controller={"replicas": 3}) == first
    assert template({"rescan": "2m", "uplinks": ["eth0"]}) != first and template({}) != first


def test_update_of_many_nodes(helm):
    """A share of them at a time: one by one, a thousand would take hours."""
    made = helm.rendered(plugin={"enabled": True})["DaemonSet", PLUGIN]
    assert made["spec"]["updateStrategy"] == {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}


def test_nodes_of_other_systems(helm):
    """They would not start the pods; a selector of the user's own can take the label away."""
    for made in (helm.rendered(plugin={"enabled": True}), manifests("plugin.yaml", "controller.yaml")):
        assert [made[key]["spec"]["template"]["spec"]["nodeSelector"] for key in (("Deployment", CONTROLLER), ("DaemonSet", PLUGIN))] == [{LINUX: "linux"}] * 2
    assert "nodeSelector" not in helm.rendered(controller={"nodeSelector": {LINUX: None}})["Deployment", CONTROLLER]["spec"]["template"]["spec"]


def test_drivers_in_any_order(helm):
    """The plugin knows one."""
    made = helm.rendered(plugin={"enabled": True, "drivers": ["nic", "gpu"]})["DaemonSet", PLUGIN]
    assert not [word for word in container_of(made)["command"] if word.startswith("--drivers")]


def images(made):
    controller, plugin = container_of(made["Deployment", CONTROLLER]), container_of(made["DaemonSet", PLUGIN])
    assert controller["env"][0] == {"name": "DRARUN_IMAGE", "value": controller["image"]}  # of the jobs' launchers and agents
    return controller["image"], plugin["image"]


def test_images(helm, drarun):
    """By digest where there is one; of the plugin, another one where it is named."""
    version = drarun("version").ok().out.split()[1]
    assert images(helm.rendered(plugin={"enabled": True})) == (f"ghcr.io/drarun/drarun:{version}",) * 2
    both = {"repository": "registry.example/drarun", "tag": "2", "digest": DIGEST}
    assert images(helm.rendered(image=both, plugin={"enabled": True})) == (f"registry.example/drarun@{DIGEST}",) * 2
    own = {"enabled": True, "image": {"repository": "registry.example/plugin"}}
    assert images(helm.rendered(image=both, plugin=own)) == (f"registry.example/drarun@{DIGEST}", f"registry.example/plugin:{version}")
    own["image"]["digest"] = DIGEST
    assert images(helm.rendered(plugin=own)) == (f"ghcr.io/drarun/drarun:{version}", f"registry.example/plugin@{DIGEST}")


def test_environment_of_the_controller(helm):
    """What it tells the launchers that it makes."""
    more = [{"name": "DRARUN_METRICS", "value": "off"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    plain, made = (container_of(helm.rendered(controller=values)["Deployment", CONTROLLER]) for values in ({}, {"agent": "copy", "extraEnv": more}))
    assert made.pop("env") == [*plain.pop("env"), {"name": "DRARUN_AGENT", "value": "copy"}, *more] and made == plain


def test_secrets_of_the_registry(helm):
    """By name, and as a pod names them."""
    made = helm.rendered(imagePullSecrets=["a", {"name": "b"}], plugin={"enabled": True})
    for each in (made["Deployment", CONTROLLER], made["DaemonSet", PLUGIN]):
        assert each["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]


def texts(value):
    """All that stands for a name in it: what a key of such a name has."""
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    if not isinstance(value, dict):
        return []
    here = [value[key] for key in ("name", "namespace", "priorityClassName", "runtimeClassName") if key in value]
    return here + [text for each in value.values() for text in texts(each)]


def test_names_of_digits(helm, cluster):
    """A name may have nothing else, which YAML would take for a number, and the API server refuse."""
    made = helm.rendered(namespace="2024", imagePullSecrets=["1", {"name": "2"}], controller={
        "namespace": "4711", "crd": False, "priorityClassName": "3"}, plugin={
        "enabled": True, "takeover": "1.5", "priorityClassName": "4", "nvidia": {"runtimeClassName": "5"}}, podMonitor={"enabled": True})
    found = texts([*made.values()])
    assert {"2024", "4711", *"12345"} <= {*found} and {*map(type, found)} == {str}
    assert made["PodMonitor", "drarun-jobs"]["spec"]["namespaceSelector"] == {"matchNames": ["4711"]}
    taken(cluster, {key: each for key, each in made.items() if key[0] != "PodMonitor"})


@pytest.mark.parametrize("enabled", [True, False])
def test_part_of_another_chart(helm, tmp_path, enabled):
    """A condition of the other chart is a value of this one: Helm takes it for both."""
    shutil.copytree(CHART, tmp_path / "site/charts/drarun")
    (tmp_path / "site/Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "site", "version": "1.0.0", "dependencies": [
        {"name": "drarun", "version": ">=0.0.0-0", "condition": "drarun.enabled"}]}))
    made = helm.rendered(chart=tmp_path / "site", drarun={"enabled": enabled, "plugin": {"enabled": True}}, **{"global": {"region": "a"}})
    assert unlabelled(made) == ({**of_the_controller(), **of_the_plugin()} if enabled else {})


@pytest.mark.parametrize("ttl,given", [("", False), ("0", False), ("0s", False), ("0h0m", False), ("12h", True), ("0.5d", True), ("1h30m", True)])
def test_time_to_live(helm, ttl, given):
    """The policy lets the controller delete what its option says, and no more."""
    made = helm.rendered(controller={"ttl": ttl})
    assert (f"--ttl={ttl}" in container_of(made["Deployment", CONTROLLER])["command"]) == bool(ttl)
    last = made["ValidatingAdmissionPolicy", CONTROLLER]["spec"]["validations"][-1]
    assert "oldObject.?status.?completionTime.hasValue())" in last["expression"]
    assert ("ttlSecondsAfterFinished" in last["expression"], "ttlSecondsAfterFinished" in last["message"]) == (not given,) * 2


@pytest.mark.parametrize("words,given", [(["--verbose", "--ttl=7d"], True), (["--ttl=0.5h"], True), (["--ttl=0"], False), (["--verbose"], False)])
def test_time_to_live_as_an_option(helm, words, given):
    made = helm.rendered(controller={"extraArgs": words})
    last = made["ValidatingAdmissionPolicy", CONTROLLER]["spec"]["validations"][-1]
    assert ("ttlSecondsAfterFinished" in last["expression"], "ttlSecondsAfterFinished" in last["message"]) == (not given,) * 2


def test_user_of_the_platform(helm):
    """OpenShift chooses it, and refuses another one; the plugin's is root, whatever its image says."""
    made = helm.rendered(plugin={"enabled": True})
    context = container_of(made["Deployment", CONTROLLER])["securityContext"]
    assert "runAsUser" not in context and context["runAsNonRoot"]
    assert container_of(helm.rendered(controller={"runAsUser": 4711})["Deployment", CONTROLLER])["securityContext"]["runAsUser"] == 4711
    assert container_of(made["DaemonSet", PLUGIN])["securityContext"]["runAsUser"] == 0


def test_host_files_under_selinux(helm):
    """The label of containers that are not privileged, container_t, may write none of the folders that the plugin has from its host. Runtimes
    take no notice of the options where SELinux is off (go-selinux: InitLabels)."""
    context = container_of(helm.rendered(plugin={"enabled": True})["DaemonSet", PLUGIN])["securityContext"]
    assert context["seLinuxOptions"] == {"type": "spc_t", "level": "s0"} and "privileged" not in context


def mounted(pod):
    """{the path in the container: the path on the node} of what comes from there."""
    container, = pod["containers"]
    paths = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}
    return {each["mountPath"]: paths[each["name"]] for each in container["volumeMounts"] if each["name"] in paths}


def test_folders_of_the_nodes(helm):
    """Each is mounted where it is on the node, since the plugin tells the kubelet and the container runtime its paths."""
    plain, made = (helm.rendered(plugin={"enabled": True, "takeover": "dra.net", **values})["DaemonSet", PLUGIN]["spec"]["template"]["spec"] for values in (
        {}, {"kubeletDir": "/var/lib/k0s/kubelet", "hookDir": "/home/kubernetes/bin/drarun"}))
    others = {path: host for path, host in mounted(plain).items() if not path.startswith("/var/lib/kubelet/")}
    assert mounted(made) == {**others, **{path: path for path in (
        "/var/lib/k0s/kubelet/plugins_registry", "/home/kubernetes/bin/drarun",
        *(f"/var/lib/k0s/kubelet/plugins/{driver}" for driver in ("gpu.drarun.dev", "nic.drarun.dev", "dra.net")))}}
    (before,), (after,) = plain["containers"], made["containers"]
    assert [word for word in after["command"] if word not in before["command"]] == [
        "--plugins-dir=/var/lib/k0s/kubelet/plugins", "--registry-dir=/var/lib/k0s/kubelet/plugins_registry",
        "--hook=/home/kubernetes/bin/drarun/drarun-attach", "--agent-dir=/home/kubernetes/bin/drarun/agent"]


@pytest.mark.parametrize("values,says", [
    ({"takeover": "dra.net"}, "'takeover' not allowed"),  # as the chart drarun-plugin had it
    ({"enabled": False}, "'/enabled': value must be true"),  # which another chart can say alone
    ({"imagePullSecrets": [{"secret": "a"}]}, "'/imagePullSecrets/0'"),
    ({"image": "registry.example/drarun:2"}, "'/image': got string, want object"),
    ({"image": {"repository": "registry.example/drarun:2"}}, "'/image/repository'"),
    ({"image": {"tag": 1.2}}, "'/image/tag': got number, want string"),
    ({"image": {"digest": "0123"}}, "'/image/digest'"),
    ({"image": {"pullPolicy": "Sometimes"}}, "'/image/pullPolicy': value must be one of"),
    ({"controller": {"enable": True}}, "'enable' not allowed"),
    ({"controller": {"replicas": -1}}, "'/controller/replicas'"),
    ({"controller": {"namespace": "Train"}}, "'/controller/namespace'"),
    ({"controller": {"runAsUser": 0}}, "'/controller/runAsUser'"),
    ({"controller": {"ttl": "a week"}}, "'/controller/ttl'"),
    ({"controller": {"ttl": "1h30"}}, "'/controller/ttl'"),
    ({"controller": {"resources": {"limit": {}}}}, "'limit' not allowed"),
    ({"controller": {"resources": {"limits": {"memory": "64 MB"}}}}, "'/controller/resources/limits/memory'"),
    ({"controller": {"agent": "claim"}}, "'/controller/agent': value must be one of"),
    ({"controller": {"extraEnv": {"A": "b"}}}, "'/controller/extraEnv': got object, want array"),
    ({"controller": {"extraEnv": [{"name": "A", "value": 1}]}}, "'/controller/extraEnv/0/value': got number, want string"),
    ({"controller": {"extraEnv": [{"name": "DRARUN_AGENT", "value": "copy"}]}}, "'/controller/extraEnv/0/name'"),  # which has a value of its own
    ({"controller": {"affinity": {"nodes": {}}}}, "'nodes' not allowed"),
    ({"plugin": {"enabled": "no"}}, "'/plugin/enabled': got string, want boolean"),
    ({"plugin": {"takover": "dra.net"}}, "'takover' not allowed"),
    ({"plugin": {"takeover": "Dra.Net"}}, "'/plugin/takeover'"),
    ({"plugin": {"drivers": ["gpus"]}}, "'/plugin/drivers/0': value must be one of 'gpu', 'nic'"),
    ({"plugin": {"tolerations": {}}}, "'/plugin/tolerations': got object, want array"),
    ({"plugin": {"tolerations": [{"operator": "exists"}]}}, "'/plugin/tolerations/0/operator'"),
    ({"plugin": {"admission": {"pods": True}}}, "'pods' not allowed"),
    ({"plugin": {"updateStrategy": {"maxSurge": 1}}}, "'maxSurge' not allowed"),
    ({"plugin": {"config": {"nic": {}}}}, "'nic' not allowed"),
    ({"plugin": {"nvidia": {"runtimeClassName": "Nvidia"}}}, "'/plugin/nvidia/runtimeClassName'"),
    ({"plugin": {"metrics": {"port": 100000}}}, "'/plugin/metrics/port'"),
    ({"plugin": {"kubeletDir": "/var/snap/microk8s/common/var/lib/kubelet"}}, "'/plugin/kubeletDir'"),  # no room for a socket
    ({"plugin": {"kubeletDir": ""}}, "'/plugin/kubeletDir'"),
    ({"plugin": {"hookDir": "bin"}}, "'/plugin/hookDir'"),
    ({"plugin": {"extraArgs": ["verbose"]}}, "'/plugin/extraArgs/0'"),
    ({"podMonitor": {"interval": "often"}}, "'/podMonitor/interval'"),
    ({"podMonitor": {"labels": {"a": "b c"}}}, "'/podMonitor/labels/a'"),
    # what no schema says
    ({"plugin": {"enabled": True, "image": {"tag": "2"}}}, "plugin.image.tag and plugin.image.digest are of plugin.image.repository, which is empty"),
    ({"plugin": {"enabled": True, "drivers": ["gpu"], "takeover": "dra.net"}}, "plugin.takeover serves NICs, and plugin.drivers has none"),
], ids=str)
def test_values_that_are_refused(helm, values, says):
    assert says in helm.refusal(**values)


def test_kubernetes_that_is_refused(helm):
    assert "requires kubeVersion: >=1.34.0-0 which is incompatible with Kubernetes v1.33.1" in helm.refusal(kubernetes="1.33.1")


EDITS = {"env": {"A": "b"}, "mounts": [{"hostPath": "/opt/a", "containerPath": "/opt/b", "options": ["ro", "bind"]}],
         "deviceNodes": [{"path": "/dev/a", "hostPath": "/dev/b", "permissions": "rw"}]}
WHOLE_CONFIG = {
    "rescan": "1m", "uplinks": ["eth0"], "taints": {"linkDown": "None", "xid": "NoExecute", "lost": "NoSchedule"},
    "claims": {"allow": ["interface.name", "rules"], "addresses": ["10.1.0.0/16"]}, "names": [{"match": "true", "name": "rail-{rail}"}],
    "nics": {"include": "true", "exclude": "false", "excludePrefixes": ["docker"], "virtualPrefixes": ["rail"], "managementNodes": False, "edits": EDITS},
    "gpus": {"include": "true", "exclude": "false", "edits": EDITS}}


def keys_of(node, definitions):
    """All names of members in a schema, with what it refers to."""
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]]
    found = set(node.get("properties", {}))
    for below in (*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])):
        found |= keys_of(below, definitions)
    return found


def keys_in(value):
    if isinstance(value, list):
        return set().union(*map(keys_in, value))
    return set(value).union(*map(keys_in, value.values())) if isinstance(value, dict) else set()


def test_configuration_of_the_plugin(helm, drarun, tmp_path):
    """The chart's schema has the keys that the plugin has."""
    file = tmp_path / "plugin.yaml"
    file.write_text(helm.rendered(plugin={"enabled": True, "config": WHOLE_CONFIG})["ConfigMap", PLUGIN]["data"]["plugin.yaml"])
    assert yaml.safe_load(file.read_text()) == {"apiVersion": "drarun.dev/v1alpha1", "kind": "PluginConfig", **WHOLE_CONFIG}
    drarun("discover", "--root", tmp_path, "--config", file, program=BUILD / "bin/drarun-plugin").ok()
    schema = json.loads((CHART / "values.schema.json").read_text())["definitions"]
    assert keys_of(schema["pluginConfig"], schema) == keys_in(WHOLE_CONFIG) - {"A"}  # a variable
    source = (SOURCE / "plugin/discover/config.c").read_text()
    tables = set(re.findall(r'^    \{"(\w+)", FIELD_', source, re.M)) - {"apiVersion", "kind"}
    texts = re.findall(r'reader_known\(\w+, "([^"]+)"', source + (SOURCE / "plugin/discover/config_edits.c").read_text())
    assert keys_in(WHOLE_CONFIG) - {"A"} == tables.union(*(text.split() for text in texts))


# ---- labels, policies, metrics ----

def test_labels(helm):
    """Every object has the recommended labels and the user's. Pods have no label that an upgrade would change."""
    own = {"team": "a"}
    made = helm.rendered(commonLabels={**own, "app.kubernetes.io/name": "mine"}, podMonitor={"enabled": True}, plugin={"enabled": True, "podLabels": {"p": "q"}})
    for key, each in made.items():
        head, *pods = heads(each)
        assert RECOMMENDED <= set(head["labels"]) and own.items() <= head["labels"].items(), key
        assert head["labels"]["app.kubernetes.io/name"] == ("drarun" if key[0] == "CustomResourceDefinition" else
                                                            f"drarun-{head['labels']['app.kubernetes.io/component']}"), key
        assert (head["labels"]["app.kubernetes.io/instance"], head["labels"]["app.kubernetes.io/managed-by"]) == (RELEASE, "Helm"), key
        for pod in pods:
            assert set(pod["labels"]) - {"p"} == OF_PODS | set(own), key
    assert made["DaemonSet", PLUGIN]["spec"]["template"]["metadata"]["labels"]["p"] == "q"


def test_selectors(helm):
    """They are of the component's pods, and of no other's in the namespace."""
    made = helm.rendered(**ALL_ON)
    pods = {name: made[kind, name]["spec"]["template"]["metadata"]["labels"] for kind, name in (("Deployment", CONTROLLER), ("DaemonSet", PLUGIN))}
    for name in pods:
        found = [each["spec"].get("podSelector") or each["spec"]["selector"] for key, each in made.items()
                 if key[1] in (name, f"{name}-metrics") and key[0] in ("Deployment", "DaemonSet", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Service")]
        assert len(found) == 4
        for labels in (each.get("matchLabels", each) for each in found):
            assert {pod for pod, has in pods.items() if labels.items() <= has.items()} == {name}


def test_time_for_the_last_work_of_the_controller(helm):
    """A call that is not answered, and those that create objects."""
    pod = helm.rendered()["Deployment", CONTROLLER]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= 60 + 10


def test_probes(helm):
    """They are commands, which no network policy is in the way of."""
    container = container_of(helm.rendered()["Deployment", CONTROLLER])
    file, = (word.partition("=")[2] for word in container["command"] if word.startswith("--heartbeat="))
    for name in ("readinessProbe", "livenessProbe"):
        assert container[name]["exec"] == {"command": ["/bin/drarun", "controller", f"--check-heartbeat={file}"]}


def relabelled(rules, labels):
    """As Prometheus does it: those of action replace."""
    for rule in rules:
        value = ";".join(labels.get(name, "") for name in rule["sourceLabels"])
        found = re.fullmatch(rule.get("regex", "(.*)"), value)
        if found:
            labels = {**labels, rule["targetLabel"]: found.expand(re.sub(r"\$(\d)", r"\\\1", rule.get("replacement", "$1")))}
    return labels


@pytest.mark.parametrize("address,target", [("10.0.0.1", "10.0.0.1:9000"), ("fd00::1", "[fd00::1]:9000")])
def test_pod_monitor_of_the_plugin(helm, address, target):
    """Its pods declare no port, so the target is made of the node's address; that port is open."""
    made = helm.rendered(controller={"enabled": False}, plugin={"enabled": True, "metrics": {"port": 9000}}, podMonitor={"enabled": True, "interval": "30s"})
    assert [name for kind, name in made if kind == "PodMonitor"] == [PLUGIN]
    endpoint, = made["PodMonitor", PLUGIN]["spec"]["podMetricsEndpoints"]
    found = relabelled(endpoint["relabelings"], {"__meta_kubernetes_pod_ip": address, "__address__": address, "__meta_kubernetes_pod_node_name": "n0"})
    assert (found["__address__"], found["node"], endpoint["interval"]) == (target, "n0", "30s")
    assert "--metrics-port=9000" in container_of(made["DaemonSet", PLUGIN])["command"]
    assert made["NetworkPolicy", PLUGIN]["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9000}]}]


def test_pod_monitor_of_the_controller(helm):
    """Its port is open, by name; without it nothing serves, and nothing is monitored."""
    only = {"podMonitor": {"enabled": True, "jobs": False}}
    made = helm.rendered(**only, controller={"metrics": {"port": 9001}})
    endpoint, = made["PodMonitor", CONTROLLER]["spec"]["podMetricsEndpoints"]
    container = container_of(made["Deployment", CONTROLLER])
    assert container["ports"] == [{"name": endpoint["port"], "containerPort": 9001}] and "--metrics-port=9001" in container["command"]
    assert made["NetworkPolicy", CONTROLLER]["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9001}]}]
    without = helm.rendered(**only, controller={"metrics": {"port": 0}})
    assert not [name for kind, name in without if kind == "PodMonitor"] and without["NetworkPolicy", CONTROLLER]["spec"]["ingress"] == []
    assert not [word for word in container_of(without["Deployment", CONTROLLER])["command"] if "metrics" in word]


def test_pod_monitor_of_jobs(helm, drarun, examples):
    """It selects the launcher's pod and no worker's, whether drarun or an Indexed Job has made the worker. That pod has the port it asks for."""
    assert [name for kind, name in helm.rendered(podMonitor={"enabled": True}) if kind == "PodMonitor"] == [CONTROLLER, "drarun-jobs"]
    made = helm.rendered(podMonitor={"enabled": True}, controller={"namespace": "train"})["PodMonitor", "drarun-jobs"]["spec"]
    assert made["namespaceSelector"] == {"matchNames": ["train"]} and made["podMetricsEndpoints"][0]["port"] == "metrics"
    job = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": "job"}, "spec": {"workers": 2, "image": "x", "command": ["true"]}}
    objects = json.loads(drarun("render", "-", "--format", "json", input=json.dumps(job)).ok().out)["items"]
    pods = [each["spec"]["template"] if each["kind"] == "Job" else each for each in objects if each["kind"] in ("Job", "Pod")]
    rules = {each["key"]: each["operator"] == "Exists" for each in made["selector"]["matchExpressions"]}
    selected = [each for each in pods if all((key in each["metadata"]["labels"]) == wanted for key, wanted in rules.items())]
    assert len(pods) == 3 and len(selected) == 1
    indexed = {"drarun.dev/job": "job", "batch.kubernetes.io/job-completion-index": "0"}  # as the Job controller labels its pods
    assert not all((key in indexed) == wanted for key, wanted in rules.items())
    assert [port["name"] for container in selected[0]["spec"]["containers"] for port in container["ports"]] == ["metrics"]
    installed = json.loads(drarun("install", "-n", "train", "--format", "json").ok().out)["items"]
    held = [each["spec"]["podSelector"] for each in installed if each["kind"] == "NetworkPolicy"]
    assert held and all({"key": "drarun.dev/worker", "operator": "Exists"} in each["matchExpressions"] for each in held)


# ---- the API server ----

def namespaced(cluster, name, **labels):
    """Makes it where it is not there."""
    if not cluster.api.get("v1", "Namespace", name):
        cluster.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def taken(cluster, made):
    """The API server takes all of it."""
    for name in {each["metadata"].get("namespace", "default") for each in made.values()}:
        namespaced(cluster, name)
    for each in made.values():
        status, answer = cluster.api.create(each, dry_run=True)
        assert status == 201, answer


def test_objects_are_valid(helm, cluster):
    taken(cluster, helm.rendered())
    taken(cluster, helm.rendered(plugin={"enabled": True}))


def test_pod_monitors_are_valid(helm, cluster):
    """By the definition that prometheus-operator installs, which refuses what it does not know."""
    program, reason = foreign_api.fetched()
    assert program, reason
    definition, = foreign_api.crds(program, "monitoring.coreos.com")
    cluster.api.make(definition)
    version = "monitoring.coreos.com/v1"
    cluster.wait("PodMonitors are not served", lambda: cluster.api.plural(version, "PodMonitor"), READY_S)
    for interval in (None, "30s"):
        made = helm.rendered(plugin={"enabled": True, "metrics": {"port": 9000}}, podMonitor={"enabled": True, "interval": interval, "labels": {"release": "x"}})
        monitors = {key: each for key, each in made.items() if key[0] == "PodMonitor"}
        assert len(monitors) == 3
        taken(cluster, monitors)
    wrong = copy.deepcopy(monitors["PodMonitor", PLUGIN])
    wrong["spec"]["podMetricsEndpoints"][0]["interval"] = "often"
    status, answer = cluster.api.create(wrong, dry_run=True)
    assert status == 422 and "interval" in answer["message"], answer
    cluster.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition["metadata"]["name"])


@pytest.fixture(scope="module")
def levels(cluster):
    """Namespaces of each level of Pod Security, with both accounts."""
    for level in ("restricted", "baseline", "privileged"):
        cluster.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": level, "labels": {SECURITY: level}}})
        for name in (CONTROLLER, PLUGIN):
            cluster.api.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": level}})


@pytest.mark.parametrize("level,admitted", [("restricted", {CONTROLLER}), ("baseline", {CONTROLLER}), ("privileged", {CONTROLLER, PLUGIN})])
def test_pod_security(helm, cluster, levels, level, admitted):
    """Only the plugin needs the level privileged: it has the host's folders, network and processes."""
    made, found = helm.rendered(plugin={"enabled": True, "priorityClassName": ""}), set()
    for kind, name in (("Deployment", CONTROLLER), ("DaemonSet", PLUGIN)):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": level}, "spec": made[kind, name]["spec"]["template"]["spec"]}
        status, answer = cluster.api.create(pod, dry_run=True)
        assert status == 201 or f'violates PodSecurity "{level}' in answer["message"], answer
        found |= {name} if status == 201 else set()
    assert found == admitted


class Release:
    """A release of the chart, by Helm itself, with the user's values. chart: its folder, which may be set anew before an upgrade."""

    def __init__(self, cluster, folder, name=RELEASE, namespace=NAMESPACE, chart=CHART):
        self.helm, self.cluster, self.name, self.namespace, self.chart = Helm(folder, cluster), cluster, name, namespace, chart

    def run(self, verb, *words, **values):
        chart = () if verb == "uninstall" else (self.chart, *self.helm.values(values))
        return self.helm.run(verb, self.name, *chart, "--namespace", self.namespace, *words)

    def ok(self, verb, *words, **values):
        done = self.run(verb, *words, **values)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, verb, *words, **values):
        done = self.run(verb, *words, **values)
        assert done.returncode != 0, done.stdout
        return done.stderr


def typed(cluster, notes, folder):
    """The commands of the notes, one by one."""
    env = {"PATH": f"{BUILD / 'bin'}:{cluster.programs}:{os.environ['PATH']}"}
    commands = [line.strip() for line in notes.partition("NOTES:")[2].splitlines() if line.startswith("    ")]
    for each in commands:
        done = cluster.in_ns(["bash", "-ec", f"set -o pipefail; {each}"], env=env, cwd=folder)
        assert done.returncode == 0, f"{each}: {done.stderr}"
    return commands


def drajobs(cluster):
    return [each["metadata"]["name"] for each in cluster.api.get("drarun.dev/v1alpha1", "DraJob", namespace="train")]


def undefined(cluster):
    """Takes the definition of DraJobs away, which has no release any more."""
    version, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    cluster.api.delete(version, kind, DEFINITION)
    cluster.wait("the definition stays", lambda: not cluster.api.get(version, kind, DEFINITION), READY_S)


def test_life_of_a_release(cluster, drarun, tmp_path):
    """Installed, used as its notes say, with the plugin, removed: jobs stay, and the next release takes their definition over."""
    release = Release(cluster, tmp_path, namespace="life")
    namespaced(cluster, "life", **{SECURITY: "restricted"})
    namespaced(cluster, "train")
    notes = release.ok("install")
    cluster.wait("the controller's pods are not made", lambda: len(cluster.api.get("v1", "Pod", namespace="life")) == 2, READY_S)
    cluster.wait("DraJobs are not served", lambda: cluster.api.plural("drarun.dev/v1alpha1", "DraJob"), READY_S)
    (tmp_path / "job.yaml").write_text(drarun("init", "cpu").ok().out)
    install, apply = typed(cluster, notes, tmp_path)
    assert install.startswith("drarun install -n train ") and apply.startswith("kubectl apply -n train ") and len(drajobs(cluster)) == 1

    said = release.refused("upgrade", plugin={"enabled": True})
    assert "namespace life has the label pod-security.kubernetes.io/enforce: restricted, and admits no pod of the node plugin" in said
    cluster.kubectl(*re.search(r"kubectl (label .*?), or install", said)[1].split())
    notes = release.ok("upgrade", plugin={"enabled": True})
    assert "kubectl get resourceslices\n" in notes and cluster.api.get("apps/v1", "DaemonSet", PLUGIN, "life")

    assert DEFINITION in release.ok("uninstall")
    assert len(drajobs(cluster)) == 1 and cluster.api.get("apps/v1", "Deployment", namespace="life") == []
    namespaced(cluster, "other")
    other = Release(cluster, tmp_path, "other", "other")
    assert f'CustomResourceDefinition "{DEFINITION}"' in other.refused("install")
    other.ok("install", controller={"crd": False})
    other.ok("uninstall")
    release.ok("install")
    assert len(drajobs(cluster)) == 1
    release.ok("uninstall")
    other.ok("install", "--take-ownership")
    other.ok("uninstall")
    assert len(drajobs(cluster)) == 1
    undefined(cluster)


def test_releases_for_several_namespaces(cluster, tmp_path):
    """Beside each other, as the page says: each in a namespace of its own, and what belongs to the whole cluster with the first."""
    first, second, third, every = (Release(cluster, tmp_path, f"of-{name}", f"system-{where}")
                                   for name, where in (("aa", "a"), ("bb", "b"), ("cb", "b"), ("every", "c")))
    for name in ("system-a", "system-b", "system-c", "jobs-a", "jobs-b"):
        namespaced(cluster, name)
    others = {"crd": False, "aggregateRoles": False}
    first.ok("install", controller={"namespace": "jobs-a"})
    second.ok("install", controller={"namespace": "jobs-b", **others})
    assert f'"{CONTROLLER}" in namespace "system-b" exists' in third.refused("install", controller={"namespace": "jobs-a", **others})
    assert re.search(r'ClusterRole "drarun-(view|edit)" in namespace "" exists', every.refused("install", controller={"crd": False}))
    every.ok("install", controller=others)
    for release in (every, second, first):
        release.ok("uninstall")
    undefined(cluster)


PAGES = {"deploy/chart/README.md": None, "docs/node-plugin.md": "Install"}  # and the section
INSTALL, SYSTEM = "helm install drarun deploy/chart", "drarun-system"
# The commands of these pages that are about the chart, in an order that one cluster takes; each round begins without a release. After each
# command the namespaces of (controller, plugin).
ROUNDS = [
    [(f"{INSTALL} -n {SYSTEM} --create-namespace --set-string image.repository=REGISTRY/drarun,image.tag=TAG", (SYSTEM, None)),
     (f"helm upgrade drarun deploy/chart -n {SYSTEM} --reset-then-reuse-values", (SYSTEM, None)),
     (f"helm uninstall drarun -n {SYSTEM}", (None, None))],
    [(f"kubectl create namespace {SYSTEM}", (None, None)),
     (f"kubectl label namespace {SYSTEM} {SECURITY}=privileged", (None, None)),
     (f"helm upgrade --install drarun deploy/chart -n {SYSTEM} --reset-then-reuse-values --set plugin.enabled=true "
      "--set-string image.repository=REGISTRY/drarun,image.tag=TAG", (SYSTEM, SYSTEM))],
    [(f"{INSTALL} -n drarun --create-namespace", ("drarun", None)),
     (f"helm install drarun-plugin deploy/chart -n {SYSTEM} --set plugin.enabled=true,controller.enabled=false", ("drarun", SYSTEM))],
]
BEFORE = {2: f"kubectl create namespace {SYSTEM}"}  # as the page's first commands have it


def typed_of_pages():
    """Those of the pages that are run here."""
    known = {command for each in ROUNDS for command, _ in each}
    return [each for page, title in PAGES.items() for each in pages.commands(page, title) if each.text in known]


def test_plugin_is_added_to_a_release(cluster, tmp_path):
    """By the command of the pages: what the release has as values stays."""
    command, = {each.text for each in typed_of_pages() if "--install" in each.text}
    namespaced(cluster, SYSTEM, **{SECURITY: "privileged"})
    release = Release(cluster, tmp_path, namespace=SYSTEM)
    release.ok("install", controller={"ttl": "7d"})
    done = release.helm.run(*(CHART if word == "deploy/chart" else word for word in command.split()[1:]))
    assert done.returncode == 0, done.stderr
    assert cluster.api.get("apps/v1", "DaemonSet", PLUGIN, SYSTEM)
    assert "--ttl=7d" in container_of(cluster.api.get("apps/v1", "Deployment", CONTROLLER, SYSTEM))["command"]
    release.ok("uninstall")
    undefined(cluster)


def test_commands_of_the_pages(cluster, tmp_path):
    """As they stand there. No node is there to start a pod."""
    (tmp_path / "deploy").symlink_to(SOURCE / "deploy")
    env = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}
    env["PATH"] = f"{program().parent}:{cluster.programs}:{os.environ['PATH']}"

    def run(command):
        done = cluster.in_ns(["bash", "-c", command], 300, env=env, cwd=tmp_path)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def end():
        for release in json.loads(run("helm list --all-namespaces --output json")):
            run(f"helm uninstall {release['name']} -n {release['namespace']}")
        run(f"kubectl delete --ignore-not-found crd {DEFINITION}")
        run(f"kubectl delete --ignore-not-found namespace drarun {SYSTEM}")

    def there():
        found = [each["metadata"] for each in json.loads(run("kubectl get deployments,daemonsets --all-namespaces --output json"))["items"]]
        return tuple(next((each["namespace"] for each in found if each["name"] == name), None) for name in (CONTROLLER, PLUGIN))

    assert {command for each in ROUNDS for command, _ in each} == {each.text for each in typed_of_pages()}
    assert {each.page for each in typed_of_pages()} == {*PAGES}
    for k, commands in enumerate(ROUNDS):
        end()
        run(BEFORE.get(k, "true"))
        for command, made in commands:
            run(command)
            assert there() == made, command
            if "REGISTRY" in command:
                pod = cluster.api.get("apps/v1", "Deployment", CONTROLLER, SYSTEM)["spec"]["template"]
                assert {each["image"] for each in pod["spec"]["containers"]} == {"REGISTRY/drarun:TAG"}
    end()


# ---- the chart's files ----

@pytest.mark.parametrize("values", [{}, ALL_ON, {"controller": {"namespace": "train"}}], ids=["default", "all", "namespace"])
def test_lint(helm, values):
    """No finding, and no word beside."""
    done = helm.run("lint", "--strict", CHART, "--kube-version", "1.36.0", *helm.values(values))
    assert done.returncode == 0 and "1 chart(s) linted, 0 chart(s) failed" in done.stdout
    assert not re.search(r"^\[", done.stdout, re.M) and not done.stderr, done.stdout + done.stderr


@pytest.fixture
def chart_files(tmp_path):
    """A copy of the chart and of the script that writes its page; (folder of the chart, run)."""
    shutil.copytree(CHART, tmp_path / "deploy/chart")
    (tmp_path / "scripts/lib").mkdir(parents=True)
    for name in ("chart-page", "lib/wrap_markdown.py"):
        shutil.copy(SOURCE / "scripts" / name, tmp_path / "scripts" / name)

    def run(*words):
        return subprocess.run([tmp_path / "scripts/chart-page", *words], capture_output=True, text=True, timeout=patience())
    return tmp_path / "deploy/chart", run


def test_page_is_what_the_values_say():
    done = subprocess.run([SOURCE / "scripts/chart-page", "--check"], capture_output=True, text=True, timeout=patience())
    assert done.returncode == 0, done.stderr


def test_page_follows_the_values(chart_files):
    folder, run = chart_files
    values, page = folder / "values.yaml", folder / "README.md"
    values.write_text(values.read_text().replace("  replicas: 2\n", "  replicas: 7\n"))
    assert run("--check").stderr == "chart-page: deploy/chart/README.md is not what values.yaml says: run scripts/chart-page\n"
    assert run().returncode == 0 and "| `controller.replicas` | `7` |" in page.read_text()
    assert run("--check").returncode == 0


@pytest.mark.parametrize("file,old,new,says", [
    ("values.yaml", "  # Name of a PriorityClass.\n  priorityClassName: \"\"\n", "  priorityClassName: \"\"\n",
     r"deploy/chart/values\.yaml:\d+: controller\.priorityClassName has no comment above it"),
    ("values.yaml", "  # Such as `30s`", "  # Another one.\n  other: 1\n  # Such as `30s`", r"values\.schema\.json has no podMonitor\.other, unlike values\.yaml"),
    ("values.schema.json", '"replicas":', '"replica":', r"values\.schema\.json has no controller\.replicas, unlike values\.yaml"),
    ("values.schema.json", '"claimStatus": {', '"more": {}, "claimStatus": {', r"values\.yaml has no plugin\.admission\.more, unlike values\.schema\.json"),
    ("README.md", "<!-- the end of the values -->\n", "", r"README\.md: expected the lines"),
])
def test_page_of_wrong_files(chart_files, file, old, new, says):
    folder, run = chart_files
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    done = run("--check")
    assert done.returncode == 1 and re.search(says, done.stderr), done.stderr
