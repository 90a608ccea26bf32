# SPDX-License-Identifier: Apache-2.0
"""What a stolen token of the node plugin's or the controller's account can write, and whose pods reach a job's workers: a
real API server, with the roles and policies of deploy/."""
import copy
import json
import re
import subprocess

import pytest
import yaml

from support.build import BUILD, SOURCE, patience
from support.cluster import Cluster
from support.cluster.plugin import GPU, NIC
from support.network_policies import Policies, selects

READY_S = 60
CLAIMS = "resource.k8s.io/v1"
PLUGIN, CONTROLLER, LAUNCHER = "drarun-plugin", "drarun-controller", "drarun-launcher"
SYSTEM = "drarun-system"
PROGRAMS = ("DaemonSet", "Deployment")
JOBS = "drarun.dev/v1alpha1"
RBAC = "rbac.authorization.k8s.io/v1"


def manifests(name):
    return [each for each in yaml.safe_load_all((SOURCE / "deploy" / name).read_text()) if each["kind"] not in PROGRAMS]


def installed(*options):
    run = subprocess.run([BUILD / "bin/drarun", "install", "-n", "train", "--format", "json", *options], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["items"]


def before_1_36():
    """What an account could do that may write the status of claims, before that was split into verbs of a driver and node."""
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/driver"], "verbs": ["arbitrary-node:update", "arbitrary-node:patch"]},
             {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/binding"], "verbs": ["update", "patch"]}]
    return [{"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "before-1-36"}, "rules": rules},
            {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "before-1-36"},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "before-1-36"},
             "subjects": [{"kind": "ServiceAccount", "name": PLUGIN, "namespace": SYSTEM}]}]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.api.make(*manifests("crd.yaml"), *manifests("plugin.yaml"), *manifests("controller.yaml"), *before_1_36())
        for name in ("n0", "n1"):
            made.api.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        for name in ("train", "other"):
            made.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        made.api.make(*installed())
        made.wait("DraJobs are not served", lambda: made.api.plural("drarun.dev/v1alpha1", "DraJob"), READY_S)
        yield made


def token_of(cluster, namespace, account, pod=None):
    """As one who has it can use it: of the account, or of a pod of it."""
    spec = {"expirationSeconds": 3600}
    if pod:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = cluster.api.path("v1", "ServiceAccount", namespace, account) + "/token"
    return cluster.plane.api_with(cluster.api.ok("POST", path, asked)["status"]["token"])


def refused(answer, *words):
    status, said = answer
    assert status == 403, answer  # also by a policy: nothing is wrong with the object
    assert all(word in said["message"] for word in words), said["message"]


@pytest.fixture(scope="module")
def plugin(cluster):
    """The token of the plugin's pod on node n0, once the policies are in force."""
    pod = cluster.api.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plugin-n0", "namespace": SYSTEM}, "spec": {
        "nodeName": "n0", "serviceAccountName": PLUGIN, "containers": [{"name": "plugin", "image": "x"}]}})
    thief = token_of(cluster, SYSTEM, PLUGIN, pod)
    cluster.wait("the policy of slices is not in force", lambda: thief.create(device_slice("tried", node="n1"), dry_run=True)[0] == 403, READY_S)
    made = claimed(cluster, "tried")
    cluster.wait("the policy of claims is not in force", lambda: write_status(thief, made, reservedFor=[])[0] == 403, READY_S)
    return thief


def device_slice(name, node="n0", driver=NIC, pool=None, **spec):
    where = spec or {"nodeName": node}
    return {"apiVersion": CLAIMS, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
        "driver": driver, **where, "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "eth1"}]}}


@pytest.mark.parametrize("change,says", [
    ({}, None), ({"driver": GPU}, None),
    ({"node": "n1"}, "the plugin of node n0 must not write a slice of node n1"),
    ({"pool": "n1"}, "the plugin of node n0 must not write a slice of pool n1"),
    ({"driver": "gpu.nvidia.com"}, "the plugin must not write a slice of driver gpu.nvidia.com"),
    ({"allNodes": True, "pool": "n0"}, "the plugin of node n0 must not write a slice of node"),
], ids=["own", "own-gpus", "node", "pool", "driver", "all-nodes"])
def test_stolen_plugin_token_and_slices(cluster, plugin, change, says):
    made = device_slice("stolen", **change)
    path = cluster.api.path(CLAIMS, "ResourceSlice", name="stolen")
    answer = plugin.create(made)
    if not says:
        assert answer[0] == 201, answer
        answer[1]["spec"]["pool"]["generation"] = 2
        assert plugin.request("PUT", path, answer[1])[0] == 200
        assert plugin.request("DELETE", path)[0] == 200
        return
    refused(answer, says)
    there = cluster.api.make(made)
    there["spec"]["devices"].append({"name": "eth2"})
    refused(plugin.request("PUT", path, there), says)
    refused(plugin.request("DELETE", path), says)
    cluster.api.delete(CLAIMS, "ResourceSlice", "stolen")


def claimed(cluster, name):
    """A claim with a NIC of node n0, one of n1 and another driver's GPU, which has written its status."""
    made = cluster.api.make({"apiVersion": CLAIMS, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "train"}, "spec": {
        "devices": {"requests": [{"name": "all", "exactly": {"deviceClassName": NIC, "count": 3}}]}}})
    made["status"] = {
        "allocation": {"devices": {"results": [{"request": "all", **each} for each in (OWN, FAR, OTHER)]}},
        "reservedFor": [CONSUMER], "devices": [{**OTHER, "data": {"index": 1}}]}
    return cluster.api.ok("PUT", cluster.api.path(CLAIMS, "ResourceClaim", "train", name) + "/status", made)


OWN, FAR = ({"driver": NIC, "pool": node, "device": "eth1"} for node in ("n0", "n1"))
CONSUMER = {"apiGroup": "example.com", "resource": "things", "name": "any", "uid": "1"}  # no pod, which would have to be there
OTHER = {"driver": "gpu.nvidia.com", "pool": "n0", "device": "gpu-0"}


def write_status(thief, made, version="v1", **status):
    """A dry run of writing these members of the status."""
    path = f"/apis/resource.k8s.io/{version}/namespaces/train/resourceclaims/{made['metadata']['name']}/status?dryRun=All"
    return thief.request("PATCH", path, {"status": status}, content="application/merge-patch+json")


@pytest.fixture(scope="module")
def claim(cluster, plugin):
    return claimed(cluster, "given")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("status,says", [
    ({"devices": [{**OTHER, "data": {"index": 1}}, {**OWN, "networkData": {"interfaceName": "net1"}}]}, None),
    ({"devices": [{**OTHER, "data": {"index": 1}}, FAR]}, "the plugin of node n0 must not change what a claim's status says"),
    ({"devices": [{**OTHER, "data": {"index": 2}}]}, "the plugin of node n0 must not change what a claim's status says"),
    ({"devices": []}, "the plugin of node n0 must not change what a claim's status says"),
    ({"reservedFor": []}, "must not change for whom a claim is reserved"),
    ({"reservedFor": [CONSUMER, {"resource": "pods", "name": "mine", "uid": "2"}]},
     "must not change for whom a claim is reserved"),
    ({"allocation": None, "reservedFor": None, "devices": None}, "must not change a claim's allocation"),
], ids=["own", "node", "driver", "remove", "release", "reserve", "deallocate"])
def test_stolen_plugin_token_and_claims(plugin, claim, status, says, version):
    answer = write_status(plugin, claim, version, **status)
    if says:
        refused(answer, "drarun-plugin-claim-status", says)
    else:
        assert answer[0] == 200, answer


def test_plugin_token_of_no_node(cluster, plugin, claim):
    """One that was asked for without a pod writes nothing at all."""
    thief = token_of(cluster, SYSTEM, PLUGIN)
    refused(thief.create(device_slice("any"), dry_run=True), "the plugin of node  must not write a slice of node n0")
    refused(write_status(thief, claim, devices=[{**OTHER, "data": {"index": 1}}, OWN]), "was not made for a pod on a node")


@pytest.fixture(scope="module")
def controller(cluster):
    """The token of the controller's account, once the policies are in force."""
    thief = token_of(cluster, CONTROLLER, CONTROLLER)
    cluster.wait("the policy is not in force", lambda: thief.create(part("ConfigMap", "other"), dry_run=True)[0] >= 400, READY_S)
    cluster.wait("no account in train", lambda: cluster.api.get("v1", "ServiceAccount", "default", "train"), READY_S)
    return thief


JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "1"}
DRAJOB = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "name": "job", "uid": "1", "controller": True}
SPECS = {"Pod": {"spec": {"containers": [{"name": "a", "image": "x"}]}},
         "ResourceClaim": {"spec": {"devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": NIC}}]}}}}


def part(kind, namespace="train", owners=(JOB,), labels=None, version="v1", **fields):
    labels = {"drarun.dev/job": "job"} if labels is None else labels
    return {"apiVersion": CLAIMS if kind == "ResourceClaim" else version, "kind": kind, "metadata": {
        "name": "stolen", "namespace": namespace, "labels": labels, "ownerReferences": list(owners)}, **SPECS.get(kind, {}), **fields}


def job(owner, account=LAUNCHER, namespace="train"):
    pod = {"serviceAccountName": account, "restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}
    return part("Job", namespace, (owner,), version="batch/v1", spec={"suspend": True, "template": {"spec": pod}})


def event(kind, namespace="train"):
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "stolen", "namespace": namespace},
            "involvedObject": {"kind": kind, "name": "any", "namespace": namespace}}


TOKEN = part("Secret", type="kubernetes.io/service-account-token")
TOKEN["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}
PLACE = "only where drarun install was run"


@pytest.mark.parametrize("made,says", [
    *[(part(kind), None) for kind in ("Pod", "Secret", "ConfigMap", "ResourceClaim")],
    (job(DRAJOB), None), (job(JOB, account="users"), None), (event("DraJob"), None), (event("DraJob", "other"), None),
    *[(part(kind, "kube-system"), PLACE) for kind in ("Pod", "Secret", "ConfigMap", "ResourceClaim")],
    (part("Secret", CONTROLLER), PLACE), (job(DRAJOB, namespace="other"), PLACE),
    *[(part(kind, owners=()), "of a job alone") for kind in ("Pod", "Secret", "ConfigMap", "ResourceClaim")],
    (part("Pod", labels={}), "of a job alone"),
    (part("Pod", owners=[{**JOB, "kind": "ReplicaSet", "apiVersion": "apps/v1"}]), "of a job alone"),
    (job({**DRAJOB, "controller": False}), "launchers of DraJobs"), (job(DRAJOB, account="default"), "launchers of DraJobs"),
    (TOKEN, "of type Opaque alone"),
    (event("Node"), "events of DraJobs alone"),
])
def test_stolen_controller_token(controller, made, says):
    answer = controller.create(made, dry_run=True)
    if says:
        refused(answer, says)
    else:
        assert answer[0] == 201, answer


def test_stolen_controller_token_and_deletions(cluster, controller):
    """It deletes no Job of others, and no DraJob that runs or that its user keeps."""
    api = cluster.api
    theirs = api.make({**job(JOB), "metadata": {"name": "theirs", "namespace": "train"}})
    refused(controller.request("DELETE", api.path("batch/v1", "Job", "train", "theirs")), "Jobs of DraJobs alone")
    assert api.get("batch/v1", "Job", "theirs", "train")["metadata"]["uid"] == theirs["metadata"]["uid"]
    for name, more, end in (("runs", {"ttlSecondsAfterFinished": 0}, {}), ("kept", {}, {"completionTime": "2026-11-21T15:24:42Z"}),
                            ("over", {"ttlSecondsAfterFinished": 0}, {"completionTime": "2026-11-21T15:24:42Z"})):
        api.make({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": name, "namespace": "train"},
                  "spec": {"workers": 1, "image": "x", "command": ["true"], **more}})
        api.patch_status("drarun.dev/v1alpha1", "DraJob", name, {"state": "Running", **end}, "train")
        answer = controller.request("DELETE", api.path("drarun.dev/v1alpha1", "DraJob", "train", name))
        if name == "over":
            assert answer[0] == 200, answer
        else:
            refused(answer, "that has ended and has ttlSecondsAfterFinished")
    owner = api.get("drarun.dev/v1alpha1", "DraJob", "kept", "train")["metadata"]["uid"]
    own = job({**DRAJOB, "name": "kept", "uid": owner})
    own["metadata"]["name"] = "kept"
    api.make(own)
    assert controller.request("DELETE", api.path("batch/v1", "Job", "train", "kept"))[0] == 200


def test_stolen_controller_token_and_leases(cluster, controller):
    """It takes the lead of no other program in its namespace, which may be kube-system."""
    version = "coordination.k8s.io/v1"
    for name, status in (("scheduler", 403), (CONTROLLER, 200)):
        lease = cluster.api.make({"apiVersion": version, "kind": "Lease", "metadata": {"name": name, "namespace": CONTROLLER}, "spec": {"holderIdentity": "it"}})
        path = cluster.api.path(version, "Lease", CONTROLLER, name)
        lease["spec"]["holderIdentity"] = "thief"
        assert [controller.request("GET", path)[0], controller.request("PUT", path, lease)[0]] == [status] * 2, name
        cluster.api.delete(version, "Lease", name, CONTROLLER)
    made = {"apiVersion": version, "kind": "Lease", "metadata": {"name": CONTROLLER, "namespace": CONTROLLER}}
    assert controller.create(made, dry_run=True)[0] == 201


def test_policies_are_for_these_accounts_alone(cluster, plugin, controller):
    """Others write what they may, wherever."""
    for made in (device_slice("any", node="n1", driver="gpu.nvidia.com"), part("ConfigMap", "other", ()), part("Secret", "kube-system", ()), event("Node", "other")):
        status, answer = cluster.api.create(made, dry_run=True)
        assert status == 201, answer
    assert write_status(cluster.api, claimed(cluster, "any"), devices=[])[0] == 200


def allowed(role):
    """{"plural.group": verbs} of a role, each resource once, but for a rule of objects with names."""
    found = {}
    for rule in role["rules"]:
        for resource in (".".join(filter(None, (resource, group))) for group in rule["apiGroups"] for resource in rule["resources"]):
            assert resource not in found or "resourceNames" in rule
            found.setdefault(resource, []).extend(rule["verbs"])
    assert "*" not in str(found) and all(len({*verbs}) == len(verbs) for verbs in found.values())
    return {resource: sorted(verbs) for resource, verbs in found.items()}


def shipped():
    """{the title of its table: what the role allows}"""
    made = [*manifests("plugin.yaml"), *manifests("controller.yaml")]
    for options in ([], ["--cluster-role"], ["--user-role"], ["--controller-role"]):
        made += installed(*options)
    title = {None: "{}, ClusterRole", CONTROLLER: "{}, Role of its own namespace", "train": "{}, Role of a namespace of jobs"}
    return {title[each["metadata"].get("namespace")].format(each["metadata"]["name"]): allowed(each)
            for each in made if each["kind"] in ("Role", "ClusterRole")}


def test_table_of_rights_is_what_is_shipped():
    """Each verb of each account stands in docs/design/036-rights.md, with a reason, and is counted."""
    told = {}
    for part_of in (SOURCE / "docs/design/036-rights.md").read_text().split("\n## ")[1:]:
        title, count = re.match(r"(.*): (\d+) verbs\n", part_of).groups()
        rows = [line.strip("|").split("|") for line in part_of.splitlines() if line.startswith("| ")][1:]
        assert all(why.strip() for _, _, why in rows)
        told[title] = {name.strip(): sorted(verbs.strip().split(", ")) for names, verbs, _ in rows for name in names.split(",")}
        assert sum(map(len, told[title].values())) == int(count), title
    assert told == shipped() and len(told) == 9


def people(cluster, role):
    """One who has this role of Kubernetes' own in namespace other."""
    cluster.api.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": role, "namespace": "other"}},
                     {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": role, "namespace": "other"},
                      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                      "subjects": [{"kind": "ServiceAccount", "name": role, "namespace": "other"}]})
    return token_of(cluster, "other", role)


@pytest.mark.parametrize("role,may", [("view", False), ("edit", True), ("admin", True)])
def test_own_roles_of_kubernetes(cluster, role, may):
    """They hold for DraJobs as for Jobs, in the namespaces where somebody has them."""
    somebody = people(cluster, role)
    listed = cluster.api.path(JOBS, "DraJob", "other")
    cluster.wait("the role is not in force", lambda: somebody.request("GET", listed)[0] == 200, READY_S)
    made = {"apiVersion": JOBS, "kind": "DraJob", "metadata": {"name": f"of-{role}", "namespace": "other"}, "spec": {"workers": 1, "image": "x", "command": ["true"]}}
    assert somebody.create(made)[0] == (201 if may else 403)
    assert somebody.request("DELETE", cluster.api.path(JOBS, "DraJob", "other", f"of-{role}"))[0] == (200 if may else 403)
    assert somebody.request("GET", cluster.api.path(JOBS, "DraJob", "train"))[0] == 403


# ---- whose pods reach a job's workers ----

AGENT, METRICS, SERVED, ANY, DASHBOARD = 7173, 7172, 6006, 40000, 8265


@pytest.mark.parametrize("selector,labels,expected", [
    ({}, {}, True), ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True), ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
    *[({"matchExpressions": [{"key": "a", "operator": operator, "values": ["1"]}]}, labels, expected)
      for operator, labels, expected in (("In", {"a": "1"}, True), ("In", {}, False), ("NotIn", {"a": "1"}, False), ("NotIn", {}, True))],
    ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, {"a": "1", "b": ""}, False),
])
def test_label_selectors_of_the_evaluation(selector, labels, expected):
    assert selects(selector, labels) == expected


class Reach:
    """Pods by name in namespace "reach", made as their systems make them."""

    def __init__(self, cluster, folder):
        self.cluster, self.api, self.folder = cluster, cluster.api, folder
        cluster.kubectl("create", "namespace", "reach")
        cluster.kubectl("create", "namespace", "elsewhere")
        cluster.kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "v1", "kind": "List", "items": json.loads(self.drarun("install", "-n", "reach", "--format", "json").stdout)["items"]}))

    def drarun(self, *words, config=None):
        run = subprocess.run([BUILD / "bin/drarun", *words], capture_output=True, text=True, timeout=patience(READY_S),
                             env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "KUBECONFIG": str(config or self.cluster.kubeconfig(namespace="reach"))})
        assert run.returncode == 0, run.stderr
        return run

    def file(self, name, pod=None, **spec):
        pod = {"containers": [{"name": "main", "image": "x", "command": ["true"], **(pod or {})}]}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": name},
                                    "spec": {"workers": 2, "template": {"spec": pod}, **spec}}))
        return path

    def submit(self, name, config=None, **more):
        return self.drarun("submit", self.file(name, **more), config=config).stderr

    def foreign(self, name, namespace="reach", **labels):
        """A pod of somebody else's."""
        self.api.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels},
                       "spec": {"containers": [{"name": "main", "image": "x"}]}})

    def rendered(self, name, system, *path):
        """The pod that another system makes of the template there: with the labels that it adds."""
        listed = json.loads(self.drarun("render", "--as", system, "--format", "json", self.file(name, launch="env")).stdout)
        at = next(each for each in listed["items"] if each["kind"] in ("RayCluster", "TrainingRuntime"))
        for step in path:
            at = at[step]
        added = {"batch.kubernetes.io/job-completion-index": "0"} if system == "trainjob" else {"ray.io/cluster": name}
        labels = {"drarun.dev/job": name, **at.get("metadata", {}).get("labels", {}), **added}
        self.foreign(f"{system}-{path[1]}".lower(), **labels)

    def pods(self):
        """Of all, by name; the launchers' and those of Indexed Jobs without what the Job controller drew."""
        found = self.api.get("v1", "Pod", namespace="reach") + self.api.get("v1", "Pod", namespace="elsewhere")
        return {re.sub(r"-[a-z0-9]{5}$", "", each["metadata"]["name"]) if "job-name" in each["metadata"].get("labels", {})
                else each["metadata"]["name"]: each for each in found}


@pytest.fixture(scope="module")
def reach(cluster, tmp_path_factory):
    made = Reach(cluster, tmp_path_factory.mktemp("reach"))
    made.submit("a", pod={"ports": [{"containerPort": SERVED}]})
    made.submit("b")
    made.submit("indexed", devices={"claims": "template"})
    role = copy.deepcopy(next(each for each in json.loads(made.drarun(
        "install", "-n", "reach", "--user-role", "--format", "json").stdout)["items"] if each["kind"] == "Role"))
    role["rules"] = [each for each in role["rules"] if each["resources"] != ["networkpolicies"]]
    made.api.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": "reach"}},
                  {**role, "metadata": {"name": "guest", "namespace": "reach"}},
                  {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "guest", "namespace": "reach"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "guest"},
                   "subjects": [{"kind": "ServiceAccount", "name": "guest", "namespace": "reach"}]})
    config = cluster.keys.kubeconfig(cluster.folder / "guest.conf", cluster.plane.server, {"token": guest_token(made)}, "reach")
    made.told = [made.submit(name, config=config) for name in ("guest-a", "guest-b")]
    made.rendered("a", "raycluster", "spec", "headGroupSpec", "template")
    made.rendered("a", "raycluster", "spec", "workerGroupSpecs", 0, "template")
    made.rendered("indexed", "trainjob", "spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template")
    made.foreign("stranger")
    made.foreign("operator", "elsewhere")
    names = ("a", "indexed-w-0", "indexed-w-1")
    cluster.wait("the Job controller made no pods", lambda: all(each in made.pods() for each in names), READY_S)
    return made


def guest_token(made):
    path = made.api.path("v1", "ServiceAccount", "reach", "guest") + "/token"
    spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return made.api.ok("POST", path, spec)["status"]["token"]


OUTSIDE = "192.0.2.7"


@pytest.mark.parametrize("source,target,port,expected", [
    ("a-w-0", "a-w-1", ANY, True), ("indexed-w-0", "indexed-w-1", ANY, True), ("guest-a-w-0", "guest-a-w-1", ANY, True),
    ("a-w-0", "b-w-0", ANY, False), ("a-w-0", "b-w-0", AGENT, True), ("a-w-0", "indexed-w-0", ANY, False), ("indexed-w-0", "a-w-0", ANY, False),
    ("a", "a-w-0", AGENT, True), ("a", "a-w-0", ANY, False), ("operator", "a", METRICS, True), (OUTSIDE, "a", METRICS, True),
    ("stranger", "a-w-0", ANY, False), ("stranger", "a-w-0", AGENT, True), ("stranger", "a-w-0", SERVED, True), ("stranger", "b-w-0", SERVED, False),
    ("operator", "indexed-w-0", ANY, False), (OUTSIDE, "a-w-0", ANY, False), (OUTSIDE, "a-w-0", SERVED, True), (OUTSIDE, "indexed-w-1", AGENT, True),
    # whose creator may make no policies: they share the namespace's, which lets them into no other job
    ("guest-a-w-0", "guest-b-w-0", ANY, True), ("guest-a-w-0", "a-w-0", ANY, False), ("stranger", "guest-a-w-0", ANY, False),
    # pods of a Ray cluster and of a TrainJob, each called as a job is
    *[(source, f"raycluster-{pod}", DASHBOARD, True) for source in ("stranger", "operator", OUTSIDE, "a-w-0") for pod in ("headgroupspec", "workergroupspecs")],
    ("operator", "trainjob-template", ANY, True), ("raycluster-headgroupspec", "a-w-0", ANY, False), ("trainjob-template", "indexed-w-0", ANY, False),
    ("a-w-0", "stranger", ANY, True),
])
def test_who_reaches_whom(reach, source, target, port, expected):
    pods = reach.pods()
    assert Policies(reach.api).reaches(pods.get(source, source), pods[target], port) == expected


def test_policies_of_jobs(reach):
    """One each, of the owner's, where the creator may make them; else that is told."""
    owned = {each["metadata"]["name"]: [owner["name"] for owner in each["metadata"].get("ownerReferences", ())]
             for each in reach.api.get("networking.k8s.io/v1", "NetworkPolicy", namespace="reach")}
    assert owned == {"drarun": [], "a-w": ["a"], "b-w": ["b"], "indexed-w": ["indexed"]}
    for told in reach.told:
        assert "create networkpolicies" in told and "are reached by those of other jobs in namespace reach" in told, told
