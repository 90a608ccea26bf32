# SPDX-License-Identifier: Apache-2.0
"""deploy/: what a real API server makes of the manifests, and what they make of pods and claims."""
import copy
import json
import os
import re

import pytest
import yaml

from support import pages
from support.build import BUILD, SOURCE
from support.cluster import Cluster
from support.cluster.plugin import NIC

ADMISSION_S = 30
CLAIMS = [f"resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1")]


def manifest(name):
    return list(yaml.safe_load_all((SOURCE / "deploy" / name).read_text()))


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.api.make(*manifest("admission.yaml"))
        yield made


@pytest.fixture(scope="module")
def admitted(cluster):
    """The API server takes some time until it obeys new policies."""
    wrong, bare = claim({"nothing": 1}), pod([{"name": "a"}])
    cluster.wait("the policy for configuration does not work", lambda: send(cluster, wrong)[0] == 422, ADMISSION_S)
    cluster.wait("the policy for pods does not work", lambda: listed(send(cluster, bare)[1]) == {"a": ["gpu", "nic"]}, ADMISSION_S)


def send(cluster, made):
    """A dry run: (status, the object as it would be or why not)."""
    where = made["metadata"].get("namespace")
    return cluster.api.request("POST", cluster.api.path(made["apiVersion"], made["kind"], where) + "?dryRun=All", made)


def claim(parameters, kind="ResourceClaim", driver=NIC, version=CLAIMS[0]):
    config = [{"opaque": {"driver": "other.example.com", "parameters": {"any": [1]}}},
              {"opaque": {"driver": driver, "parameters": parameters}}]
    asks = {"deviceClassName": "nic.drarun.dev"}
    request = {"name": "nic", **(asks if version.endswith("v1beta1") else {"exactly": asks})}
    spec = {"devices": {"requests": [request], "config": config}}
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "tried"}}
    if kind == "DeviceClass":
        return {**made, "spec": {"config": config}}
    made["metadata"]["namespace"] = "default"
    return {**made, "spec": spec if kind == "ResourceClaim" else {"spec": spec}}


def pod(containers, names=("gpu", "nic"), labels=None, namespace="default", **spec):
    each = [{"image": "x", **container} for container in containers]
    claims = [{"name": name, "resourceClaimTemplateName": "any"} for name in names]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": namespace, "labels": labels or {}},
            "spec": {"containers": each, **({"resourceClaims": claims} if claims else {}), **spec}}


def listed(pod):
    spec = pod["spec"]
    return {each["name"]: [claim["name"] for claim in each.get("resources", {}).get("claims", ())]
            for each in spec.get("initContainers", []) + spec["containers"]}


def meant(made, names):
    made["metadata"]["annotations"] = {"drarun.dev/claim-containers": names}
    return made


SIDECAR = {"name": "s", "image": "x", "restartPolicy": "Always"}


def lists(*names):
    return {"resources": {"claims": [{"name": name} for name in names]}}


@pytest.mark.parametrize("given,becomes", [
    (pod([{"name": "a"}, {"name": "b"}]), {"a": ["gpu", "nic"], "b": ["gpu", "nic"]}),
    (pod([{"name": "a", **lists("gpu")}, {"name": "b"}]), {"a": ["gpu", "nic"], "b": ["nic"]}),
    (pod([{"name": "a", **lists("gpu", "nic")}, {"name": "b"}]), {"a": ["gpu", "nic"], "b": []}),
    (pod([{"name": "a"}], initContainers=[{"name": "i", "image": "x", **lists("nic")}]), {"i": ["nic", "gpu"], "a": ["gpu"]}),
    (pod([{"name": "a", "resources": {"claims": [{"name": "nic", "request": "one"}], "requests": {"cpu": "1"}}}], ["nic"]),
     {"a": ["nic"]}),
    (pod([{"name": "a"}], ()), {"a": []}),
    (pod([{"name": "a"}], initContainers=[SIDECAR, {"name": "i", "image": "x"}]), {"s": [], "i": ["gpu", "nic"], "a": ["gpu", "nic"]}),
    (meant(pod([{"name": "a"}, {"name": "b"}, {"name": "c"}]), "a, c"), {"a": ["gpu", "nic"], "b": [], "c": ["gpu", "nic"]}),
    (meant(pod([{"name": "a"}], initContainers=[SIDECAR]), "s"), {"s": ["gpu", "nic"], "a": []}),
    (pod([{"name": "a"}], labels={"drarun.dev/list-claims": "false"}), {"a": []}),
    (pod([{"name": "a"}], namespace="refusing"), {"a": []}),
], ids=["none", "one", "all", "init", "request", "no-claims", "sidecar", "named", "named-sidecar", "pod-refuses", "namespace-refuses"])
def test_claims_that_no_container_lists(cluster, admitted, given, becomes):
    """They are added to the containers that are meant, and nothing else of the pod changes."""
    namespace = given["metadata"]["namespace"]
    if namespace != "default":
        cluster.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": namespace, "labels": {"drarun.dev/list-claims": "false"}}})
        cluster.wait("no service account", lambda: cluster.api.get("v1", "ServiceAccount", "default", namespace), ADMISSION_S)
    status, answer = cluster.wait("the pod is not taken", lambda: (
        found := send(cluster, given)) and (found[0] != 403 or "no API token" not in str(found[1])) and found, ADMISSION_S)
    assert status == 201, answer
    assert listed(answer) == becomes
    assert [each.get("resources", {}).get("requests") for each in answer["spec"]["containers"]] == \
        [each.get("resources", {}).get("requests") for each in given["spec"]["containers"]]


WHOLE = {"interface": {"name": "net1", "addresses": ["10.0.0.2/24", "fd00::2/64"], "mtu": 9000, "hardwareAddr": "02:00:00:00:00:01",
                       "gsoMaxSize": 65536, "groMaxSize": 65536, "gsoIPv4MaxSize": 65536, "groIPv4MaxSize": 65536,
                       "disableEbpfPrograms": True, "forwarding": False, "arpIgnore": 8, "arpAnnounce": 2, "dhcp": False},
         "routes": [{"destination": "10.1.0.0/16", "gateway": "10.0.0.1", "source": "10.0.0.2", "table": 7},
                    {"destination": "fd01::/64", "scope": 253}],
         "rules": [{"priority": 100, "source": "10.0.0.2/32", "destination": "0.0.0.0/0", "table": 7}],
         "neighbors": [{"destination": "10.0.0.1", "hardwareAddr": "02:00:00:00:00:02"}],
         "ethtool": {"features": {"tx-checksum-ipv4": False}, "privateFlags": {"x": True}}}


def changed(path, value):
    made = copy.deepcopy(WHOLE)
    *way, last = path
    at = made
    for key in way:
        at = at[key]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return made


@pytest.mark.parametrize("version", CLAIMS)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate", "DeviceClass"])
def test_configuration_of_each_kind(cluster, admitted, kind, version):
    for parameters in ({}, WHOLE, {"interface": {"name": "a-15.characters"[:15], "vrf": {"name": "red", "table": 1001}}},
                       {"interface": {"hardwareAddr": ":".join(["0a"] * 20)}}):
        status, answer = send(cluster, claim(parameters, kind, version=version))
        assert status == 201, answer
    status, answer = send(cluster, claim({"interface": {"mtu": 67}}, kind, version=version))
    assert status == 422 and "config[1].opaque.parameters.interface.mtu: expected a whole number from 68" in answer["message"]
    status, answer = send(cluster, claim({"interface": {"mtu": 67}}, kind, "dra.net", version))
    assert status == 201, answer


@pytest.mark.parametrize("path,value,says", [
    (["hallo"], 1, ".hallo: no such key; expected one of ethtool, interface, neighbors, routes, rules"),
    (["interface"], "net1", ".interface: expected an object"),
    (["interface", "mtuu"], 1, ".interface.mtuu: no such key"),
    (["interface", "name"], "a/b", ".interface.name: expected an interface's name of 1 to 15"),
    (["interface", "name"], "sixteen-is-a-lot", ".interface.name: expected an interface's name of 1 to 15"),
    (["interface", "name"], "..", ".interface.name: expected an interface's name"),
    (["interface", "name"], "", ".interface.name: expected an interface's name"),
    (["interface", "addresses"], ["10.0.0.1"], ".interface.addresses: expected a list of addresses with their prefixes"),
    (["interface", "addresses"], ["10.0.0.1/33"], ".interface.addresses: expected"),
    (["interface", "addresses"], ["::ffff:10.0.0.1/96"], ".interface.addresses: expected"),
    (["interface", "mtu"], "9000", ".interface.mtu: expected a whole number from 68 to 2147483647"),
    (["interface", "mtu"], 1500.5, ".interface.mtu: expected a whole number"),
    (["interface", "dhcp"], True, "give addresses instead of dhcp"),
    (["interface", "forwarding"], "yes", ".interface.forwarding: expected true or false"),
    (["interface", "arpIgnore"], 5, ".interface.arpIgnore: expected one of 0, 1, 2, 3 and 8"),
    (["interface", "hardwareAddr"], "02:00:00:00:00", ".interface.hardwareAddr: expected a hardware address"),
    (["interface", "vrf"], {"table": 254}, ".interface.vrf.table: this table is the kernel's own"),
    (["interface", "vrf"], {"name": "red"}, ".rules: the kernel's rules know no VRF"),
    (["routes", 1], {"destination": "10.0.0.0/8"}, ".routes[1]: a route needs a gateway, or scope 253 (link)"),
    (["routes", 0, "destination"], None, ".routes[0]: a route needs destination"),
    (["routes", 0, "gateway"], "10.0.0.1/24", ".routes[0].gateway: expected an address without prefix"),
    (["routes", 0, "scope"], 1, ".routes[0].scope: expected 0 (universe) or 253 (link)"),
    (["routes"], {}, ".routes: expected a list"),
    (["routes", 0], 7, ".routes[0]: expected an object"),
    (["rules", 0, "table"], None, ".rules[0]: a rule needs table"),
    (["rules", 0, "priority"], 32768, ".rules[0].priority: expected a whole number from 0 to 32767"),
    (["neighbors", 0, "hardwareAddr"], None, ".neighbors[0]: a neighbor needs hardwareAddr"),
    (["ethtool", "features"], {"a": 1}, ".ethtool.features: expected names of settings, each true or false"),
    (["profile"], "a4", ".profile: expected nothing: profiles are a cloud provider's"),
])
def test_configuration_that_is_refused(cluster, admitted, path, value, says):
    status, answer = send(cluster, claim(changed(path, value)))
    assert status == 422, answer
    assert ("spec.devices.config[1].opaque.parameters" if says[0] == "." else "") + says in answer["message"]


AGENT = {"agent": "v1-pmix-5.0.7", "apiVersion": "drarun.dev/v1alpha1", "kind": "WorkerAgent", "sharedMemory": {"size": "8Gi"}}


@pytest.mark.parametrize("change,says", [
    ({}, None), ({"sharedMemory": {}}, None), ({"sharedMemory": {"size": 4096}}, None),
    ({"agent": "../bin"}, ".agent: expected what nodes publish"),
    ({"apiVersion": "v1"}, ".apiVersion: expected drarun.dev/v1alpha1"),
    ({"sharedMemory": {"size": "much"}}, ".sharedMemory.size: expected a quantity of bytes"),
    ({"sharedMemory": {"size": "0.5"}}, ".sharedMemory.size: expected a quantity of bytes"),
    ({"sharedMemory": {"sice": "1"}}, ".sharedMemory.sice: no such key; expected one of size"),
    ({"sharedMemory": True}, ".sharedMemory: expected an object"),
    ({"interface": {}}, ".interface: no such key; expected one of agent, apiVersion, kind, sharedMemory"),
])
def test_what_asks_for_the_agent(cluster, admitted, change, says):
    status, answer = send(cluster, claim({**AGENT, **change}))
    assert status == (422 if says else 201), answer
    assert not says or "spec.devices.config[1].opaque.parameters" + says in answer["message"]
    for missing in ("agent", "apiVersion"):
        status, answer = send(cluster, claim({key: value for key, value in AGENT.items() if key != missing}))
        assert status == 422 and f"parameters: an agent needs {missing}" in answer["message"]
    status, answer = send(cluster, claim(AGENT, "DeviceClass"))
    assert status == 422 and "a class cannot ask for the agent" in answer["message"]


def test_configuration_has_the_plugin_s_keys():
    """The policy and the plugin read one schema."""
    policy = next(each for each in manifest("admission.yaml") if each["metadata"]["name"] == "drarun-plugin-configuration")
    schema = next(each for each in policy["spec"]["variables"] if each["name"] == "schema")["expression"]
    here = {kind: set(re.findall(r'"(\w+)":', keys)) for kind, keys in re.findall(r'"(\w+)": \{([^{}]*)\}', schema)}
    source = (SOURCE / "plugin/attach/net_config.c").read_text()
    there = {name: set(re.findall(r'\{"(\w+)", FIELD_', body)) for name, body in re.findall(
        r"struct field (\w+)_fields\[\] = \{(.*?)\n\};", source, re.S)}
    there["configuration"] = there.pop("config")
    wish = (SOURCE / "plugin/prepare/agent_config.c").read_text()
    there["sharedMemory"], there["agent"] = (set(keys.split()) for keys in re.findall(r'reader_known\(node, "([^"]+)"', wish))
    assert here == there and len(here) == 9


# ---- the controller ----

CONTROLLER = "drarun-controller"


def test_controller_of_one_namespace(cluster):
    """By the commands of the page: it runs there, its account has its rights there and nowhere else, and nothing else is made of the file."""
    where, env = "jobs-of-one", {"PATH": f"{BUILD / 'bin'}:{cluster.programs}:{os.environ['PATH']}"}
    cluster.kubectl("create", "namespace", where)
    typed = [each.text.replace("NAMESPACE", where) for each in pages.commands("deploy/README.md", "A controller for one namespace")]
    for each in typed:
        done = cluster.in_ns(["bash", "-ec", f"set -o pipefail; {each}"], env=env, cwd=SOURCE)
        assert done.returncode == 0, f"{each}: {done.stderr}"
    kinds = "deployments,networkpolicies,poddisruptionbudgets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,validatingadmissionpolicies"
    found = {(each["kind"], each["metadata"].get("namespace")) for each in json.loads(cluster.kubectl("get", kinds, "-A", "-o", "json"))["items"]
             if each["metadata"]["name"] == CONTROLLER}
    assert found == {(kind, where) for kind in ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount", "Role", "RoleBinding")}
    pod = cluster.api.get("apps/v1", "Deployment", CONTROLLER, where)["spec"]["template"]["spec"]
    assert f"--namespace={where}" in pod["containers"][0]["command"]

    def may(verb, resource, namespace):
        account = f"system:serviceaccount:{where}:{pod['serviceAccountName']}"
        return cluster.in_ns([cluster.programs / "kubectl", "auth", "can-i", verb, resource, "-n", namespace, "--as", account]).returncode == 0
    cluster.wait("its account has no rights", lambda: may("create", "leases.coordination.k8s.io", where), ADMISSION_S)
    assert may("watch", "drajobs.drarun.dev", where) and not may("watch", "drajobs.drarun.dev", "default")
