# SPDX-License-Identifier: Apache-2.0
"""drarun plan on a cluster as it is now, against the same objects from files; and how submit brings the agent to the nodes
that it reads."""
import itertools
import json
import re

import pytest

JOB = {"workers": 1, "image": "i", "command": ["c"], "devices": {
    "gpus": {"count": 2, "class": "gpu.nvidia.com"},
    "nics": {"count": 2, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'}}}


@pytest.fixture(scope="module")
def nodes(control_plane):
    control_plane.fake_nodes(2, "a4-highgpu-8g", prefix="live")
    return control_plane


def plan(drarun, cluster, tmp_path, *options, spec=JOB):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"spec": spec}))
    return drarun("plan", path, *options, under=cluster.under)


def test_live_is_as_from_files(drarun, nodes, tmp_path):
    config = nodes.kubeconfig()
    live = plan(drarun, nodes, tmp_path, "--kubeconfig", config, "--output", "json").ok()
    captured = tmp_path / "captured.json"
    captured.write_text(nodes.kubectl("get", "resourceslices,nodes,deviceclasses", "-o", "json"))
    claims = tmp_path / "claims.json"
    claims.write_text(nodes.kubectl("get", "resourceclaims", "-A", "-o", "json"))
    files = plan(drarun, nodes, tmp_path, "--slices", captured, "--output", "json").ok()
    assert json.loads(live.out)["workers"] == json.loads(files.out)["workers"]


def test_rules_are_of_the_cluster(drarun, nodes, tmp_path):
    """Those of the API server's version, or of one that might follow."""
    minor = re.match("[0-9]+", json.loads(nodes.kubectl("get", "--raw", "/version"))["minor"]).group()
    for options, version in ([], f"1.{min(int(minor), 37)}"), (["--kubernetes", "1.36"], "1.36"):
        result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), "-o", "json", *options).ok()
        assert json.loads(result.out)["prediction"]["kubernetes"] == version


def test_rules_of_taints_are_asked(drarun, nodes, tmp_path):
    """Of every GPU of one node: the worker goes to the other, and the second has no room."""
    api, group = nodes.api, "resource.k8s.io"
    served = json.loads(nodes.kubectl("get", "--raw", f"/apis/{group}"))["versions"]
    version = next(each["groupVersion"] for each in served if each["version"] in ("v1", "v1beta2") and any(
        one["name"] == "devicetaintrules" for one in json.loads(nodes.kubectl("get", "--raw", f"/apis/{each['groupVersion']}"))["resources"]))
    pools = {each["spec"]["nodeName"]: each["spec"]["pool"]["name"] for each in api.get("resource.k8s.io/v1", "ResourceSlice")
             if each["spec"]["driver"] == "gpu.nvidia.com"}
    first, second = sorted(pools)
    api.make({"apiVersion": version, "kind": "DeviceTaintRule", "metadata": {"name": "worn"}, "spec": {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": pools[first]}, "taint": {"key": "example.com/worn", "effect": "NoSchedule"}}})
    try:
        result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), "-o", "json", spec={**JOB, "workers": 2})
    finally:
        api.delete(version, "DeviceTaintRule", "worn")
    answer = json.loads(result.out)
    assert result.rc == 75 and [each["node"] for each in answer["prediction"]["workers"]] == [second], result
    assert {each["tainted"] for each in answer["prediction"]["requests"] if each["requests"].startswith("gpu")} == {8}
    plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec={**JOB, "workers": 2}).ok()


def test_a_class_that_the_cluster_lacks(drarun, nodes, tmp_path):
    """Though its driver brings it usually."""
    spec = json.loads(json.dumps(JOB))
    spec["devices"]["nics"]["class"] = "dra.cpu"
    result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec=spec)
    assert result.rc == 65 and "the cluster has no DeviceClass dra.cpu: install" in result.err and "gpu.nvidia.com" in result.err, result


def test_slices_of_a_deleted_node(drarun, nodes, tmp_path):
    made = "gone0"
    nodes.fake_nodes(1, "a4-highgpu-8g", prefix="gone")
    try:
        selected = {**JOB, "workers": 3}
        plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec=selected).ok()
        nodes.api.delete("v1", "Node", made)
        result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec=selected)
        assert result.rc == 75 and "slices but no Node object on 1 node" in result.out, result
    finally:
        nodes.api.delete("v1", "Node", made)  # or it is gone
        for each in nodes.api.get("resource.k8s.io/v1", "ResourceSlice"):
            if each["spec"].get("nodeName") == made:
                nodes.api.delete("resource.k8s.io/v1", "ResourceSlice", each["metadata"]["name"])


def test_no_room_is_said(drarun, nodes, tmp_path):
    spec = json.loads(json.dumps(JOB))
    spec["devices"]["nics"]["selector"] = 'device.attributes["dra.net"].mtu == 1'
    result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec=spec)
    assert result.rc == 75 and "mtu == 1" in result.out


STATUS = """time: 2026-11-25 08:19:44.090873082 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: a4-pool
  health:
    status: Healthy
    cloudProviderTarget: 2
    minSize: 0
    maxSize: 4
  scaleUp:
    status: NoActivity
"""
KARPENTER = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nodepools.karpenter.sh"}, "spec": {
    "group": "karpenter.sh", "scope": "Cluster", "names": {"kind": "NodePool", "listKind": "NodePoolList", "plural": "nodepools", "singular": "nodepool"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def test_autoscalers_are_asked(drarun, nodes, tmp_path):
    """Where their pools may grow, no room now is not no room."""
    api, where = nodes.api, "kube-system"
    spec = json.loads(json.dumps(JOB))
    spec["devices"]["nics"]["selector"] = 'device.attributes["dra.net"].mtu == 1'

    def planned():
        result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig(), spec=spec)
        assert result.rc == 75 and "done without" not in result.err, result
        return result.out
    assert "\nNo room: " in planned() and "do not exist yet" not in planned()
    api.make({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status", "namespace": where}, "data": {"status": STATUS}},
             KARPENTER)
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}}
    try:
        nodes.wait("the NodePools are not served", lambda: api.request("POST", "/apis/karpenter.sh/v1/nodepools", pool)[0] == 201, 60)
        said = planned()
    finally:
        api.delete("v1", "ConfigMap", "cluster-autoscaler-status", where)
        api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh")
    assert "cluster-autoscaler may add nodes to a4-pool (2 of at most 4)" in said and "Karpenter may add nodes of its NodePools gpu" in said, said


def test_who_may_not_read_slices_is_told(drarun, nodes, tmp_path):
    result = plan(drarun, nodes, tmp_path, "--kubeconfig", nodes.kubeconfig("nobody"))
    assert result.rc == 69 and "resourceslices" in result.err and "403" in result.err


# ---- what a namespace admits ----

def container(**resources):
    return {"name": "w", "image": "i", "command": ["c"], "resources": resources}


SAYS = container(requests={"cpu": "2", "memory": "8Gi"}, limits={"cpu": "4", "memory": "8Gi"})
PODS = [{"containers": [SAYS]}, {"containers": [container()]},
        {"containers": [container()], "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "6", "memory": "8Gi"}}}]
QUOTAS = [{"pods": "9"}, {"limits.cpu": "100"}, {"requests.cpu": "1"}, {"cpu": "100", "memory": "100Gi"}, {"limits.memory": "7Gi"}]
RANGES = [None, {"type": "Container", "max": {"memory": "8Gi"}}, {"type": "Container", "max": {"memory": "4Gi"}},
          {"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "5", "memory": "1Gi"}},
          {"type": "Pod", "max": {"cpu": "4"}}, {"type": "Pod", "min": {"memory": "1Gi"}},
          {"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}}, {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}]
TOGETHER = [*((quota, None) for quota in QUOTAS), *((QUOTAS[0], limit) for limit in RANGES[1:]), (QUOTAS[2], RANGES[3]), (QUOTAS[3], RANGES[1]),
            (QUOTAS[4], RANGES[1]), (QUOTAS[4], RANGES[3])]


def test_the_namespaces_rules_are_the_servers(drarun, nodes, tmp_path):
    """plan says of a worker's pod what the API server says. The launcher's pod must not be what it is about: it gets
    what any of these rules allow."""
    api, where, wrong, verdicts = nodes.api, "tight", [], set()
    nodes.namespace(where)
    amounts = {"cpu": "1m", "memory": "1Gi"}
    launcher = {"resources": {"requests": amounts, "limits": amounts}}
    for case, (pod, (quota, limit)) in enumerate((pod, both) for pod in PODS for both in TOGETHER):
        spec = {"workers": 1, "template": {"spec": pod}, "launcher": launcher}
        api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": where}, "spec": {"hard": quota}})
        if limit:
            api.make({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r", "namespace": where}, "spec": {"limits": [limit]}})
        api.ok("PATCH", f"{api.path('v1', 'ResourceQuota', where, 'q')}/status", {"status": {"hard": quota, "used": dict.fromkeys(quota, "0")}},
               content="application/merge-patch+json")
        file = tmp_path / "job.json"
        file.write_text(json.dumps({"metadata": {"name": f"j{case}", "namespace": where}, "spec": spec}))
        result = drarun("plan", file, "--kubeconfig", nodes.kubeconfig(), "-o", "json", under=nodes.under)
        assert result.rc in (0, 75), result
        made = next(each for each in json.loads(drarun("render", file, "--format", "json").ok().out)["items"] if each["kind"] == "Pod")
        made["metadata"].pop("ownerReferences", None)
        status, answer = api.request("POST", api.path("v1", "Pod", where) + "?dryRun=All", made)
        verdicts.add(result.rc)
        if (status == 201) != (result.rc == 0):
            wrong.append((pod, quota, limit, json.loads(result.out)["prediction"]["shortage"], status, answer.get("message")))
        api.delete("v1", "ResourceQuota", "q", where)
        if limit:
            api.delete("v1", "LimitRange", "r", where)
    assert not wrong and verdicts == {0, 75}


OF_CLASS = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
CLAIMED = [{"count": 2, "class": "gpu.nvidia.com"},
           {"count": 2, "firstAvailable": [{"class": "gpu.nvidia.com", "selector": "true"}, {"class": "gpu.nvidia.com"}]}]
CHARGED = [OF_CLASS, "requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com", "count/resourceclaims.resource.k8s.io"]


def test_quotas_of_claims_are_the_servers(drarun, nodes, tmp_path):
    """plan says of a worker's claim what the API server says, of each resource by which it charges claims."""
    api, where, wrong, verdicts = nodes.api, "charged", [], set()
    nodes.namespace(where)
    of_class = api.path("resource.k8s.io/v1", "DeviceClass", None, "gpu.nvidia.com")

    def name_resource(name):
        api.ok("PATCH", of_class, {"spec": {"extendedResourceName": name}}, content="application/merge-patch+json")
    name_resource("example.com/gpu")
    try:
        for much, gpus, resource in itertools.product("012", CLAIMED, CHARGED):
            quota = {resource: much}
            api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": where}, "spec": {"hard": quota}})
            api.ok("PATCH", f"{api.path('v1', 'ResourceQuota', where, 'q')}/status", {"status": {"hard": quota, "used": {resource: "0"}}},
                   content="application/merge-patch+json")
            file = tmp_path / "job.json"
            file.write_text(json.dumps({"metadata": {"name": "j", "namespace": where}, "spec": {
                "workers": 1, "image": "i", "command": ["c"], "devices": {"gpus": gpus}}}))
            result = drarun("plan", file, "--kubeconfig", nodes.kubeconfig(), "-o", "json", under=nodes.under)
            assert result.rc in (0, 75), result
            made = next(each for each in json.loads(drarun("render", file, "--format", "json").ok().out)["items"]
                        if each["kind"] == "ResourceClaim")
            made["metadata"].pop("ownerReferences", None)

            def is_refused():
                return api.request("POST", api.path("resource.k8s.io/v1", "ResourceClaim", where) + "?dryRun=All", made)[0] == 403
            verdicts.add(result.rc)
            if result.rc == 75:  # the server reads of the class's resource some time after it is written
                nodes.wait(f"{quota} does not refuse {gpus}", is_refused, 20)
            elif is_refused():
                wrong.append((gpus, quota))
            api.delete("v1", "ResourceQuota", "q", where)
    finally:
        name_resource(None)
    assert not wrong and verdicts == {0, 75}


def test_files_or_cluster(drarun, nodes, tmp_path):
    result = plan(drarun, nodes, tmp_path, "--live", "--slices", "x")
    assert result.rc == 64 and "give one of them" in result.err


# ---- drarun bench looks at the same objects, for where devices come from ----

def bench(drarun, cluster, *words, user="admin"):
    """A name that no job may have: all is looked at, and nothing is made."""
    result = drarun("bench", "all_reduce", *words, "--image", "i", "--name", "No_Name", "--kubeconfig", cluster.kubeconfig(user),
                    under=cluster.under)
    assert result.rc == 65 and "No_Name" in result.err, result
    return result.err


def test_bench_finds_what_is_served(drarun, nodes):
    said = bench(drarun, nodes, "--gpus", 8, "--nics", 8)
    assert "drarun: GPUs by claim: DeviceClass gpu.nvidia.com\n" in said, said
    assert 'drarun: NICs by claim: DeviceClass dranet, device.attributes["dra.net"].rdma == true\n' in said, said
    assert "drarun: profile gke-a4: " in said, said
    assert "claim" not in bench(drarun, nodes, "--gpus", 8, "--gpu-resource", "nvidia.com/gpu")


def test_bench_of_who_may_not_look(drarun, nodes):
    said = bench(drarun, nodes, "--nics", 1, user="nobody")
    assert "403" in said and "GPUs are taken from gpu.nvidia.com and NICs from nic.drarun.dev" in said, said


def node_of(pool, kubelet, runtime):
    """With NICs of a device plugin; no kubelet would take away the pods that it gets."""
    names = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion", "operatingSystem", "architecture")
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": pool, "labels": {"pool": pool}}, "spec": {"unschedulable": True}}, {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", "a.b/nic": "4"},
        "nodeInfo": {**dict.fromkeys(names, ""), "kubeletVersion": kubelet, "containerRuntimeVersion": runtime}}


@pytest.mark.parametrize("kubelet,runtime,copied", [
    ("v1.36.3", "containerd://2.2.0", False), ("v1.34.2-eks-99", "containerd://2.2.0", True), ("v1.36.3", "containerd://2.0.6", True)])
def test_agent_comes_as_the_nodes_can_have_it(drarun, control_plane, tmp_path, request, kubelet, runtime, copied):
    """An image volume is for nodes that can mount it; the launcher brings the agent the same way to later attempts."""
    if control_plane.plane.minor < 35:
        pytest.skip(f"no image volumes in Kubernetes {control_plane.plane.version}")
    pool = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-30:].strip("-")
    made, status = node_of(pool, kubelet, runtime)
    with control_plane.clean_namespace(pool) as namespace:
        control_plane.kubectl("apply", "-f", "-", input=drarun("install", "--namespace", pool).ok().out)
        namespace.before = namespace.objects()
        control_plane.api.make(made)
        control_plane.api.patch_status("v1", "Node", pool, status)
        path = tmp_path / "job.json"
        path.write_text(json.dumps({"spec": {"workers": 1, "devices": {"nics": {"count": 1, "resource": "a.b/nic"}}, "template": {"spec": {
            "nodeSelector": {"pool": pool}, "containers": [{"name": "main", "image": "i", "command": ["c"]}]}}}}))
        env = {"KUBECONFIG": str(control_plane.kubeconfig(namespace=pool))}
        drarun("submit", path, env=env).ok()
        worker = control_plane.api.get("v1", "Pod", "job-w-0", pool)["spec"]
        launcher, = control_plane.api.get("batch/v1", "Job", "job", pool)["spec"]["template"]["spec"]["containers"]
        control_plane.api.delete("batch/v1", "Job", "job", pool)
        control_plane.api.delete("v1", "Node", pool)
    assert [each["name"] for each in worker.get("initContainers", ())] == (["drarun-agent"] if copied else [])
    assert [each["value"] for each in launcher["env"] if each["name"] == "DRARUN_AGENT"] == (["copy"] if copied else [])
