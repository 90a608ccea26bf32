# SPDX-License-Identifier: Apache-2.0
"""The test bed's own Kubernetes (support/cluster): each thing that other tests lean on, seen to work."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.build import SOURCE
from support.cluster import Cluster, missing, state
from support.cluster.machines import GPU, Machines, NIC, SMALL, TOLD, only, told, value_of

pytestmark = pytest.mark.plain("the bed is the same in every build")
READER = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
          "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}


def config_map(namespace, name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def test_namespace_is_compared(control_plane):
    namespace = control_plane.namespace("compared")
    assert namespace.leftovers() == []
    control_plane.api.make(config_map("compared", "left"))
    assert namespace.leftovers(0) == [("ConfigMap", "left")]
    control_plane.api.delete("v1", "ConfigMap", "left", "compared")
    assert namespace.leftovers() == []
    namespace.remove()
    assert control_plane.api.get("v1", "Namespace", "compared") is None


def test_clean_namespace_fails_when_it_is_not(control_plane):
    with pytest.raises(AssertionError, match="ConfigMap.*left"):
        with control_plane.clean_namespace("unclean", 0):
            control_plane.api.make(config_map("unclean", "left"))


def test_name_of_an_earlier_namespace(control_plane):
    with control_plane.clean_namespace("again") as namespace:
        namespace.rbac_user(READER)
    with control_plane.clean_namespace("again") as namespace:
        assert namespace.leftovers(0) == []
        namespace.rbac_user(READER)


def test_rbac_user_may_do_what_the_role_says(control_plane):
    namespace = control_plane.namespace("roles")
    path = namespace.rbac_user(READER)
    assert namespace.leftovers(0) == []

    def kubectl(*words):
        return control_plane.in_ns([control_plane.programs / "kubectl", "--kubeconfig", path, *words])
    assert "kube-root-ca.crt" in kubectl("get", "configmaps").stdout
    assert "cannot create resource" in kubectl("create", "configmap", "x").stderr
    assert "cannot list resource" in kubectl("get", "pods").stderr


def test_audit_counts_requests(control_plane):
    user = control_plane.kubeconfig("counted", ["system:masters"])
    mark = control_plane.audit.mark()
    for _ in range(3):
        control_plane.kubectl("get", "--raw", "/api/v1/namespaces/default/pods?labelSelector=counted", user="counted")
    assert user.exists()
    assert control_plane.audit.count(("user", "verb", "resource"), mark, user="counted") == {
        ("counted", "list", "pods"): 3}
    assert control_plane.audit.count(("verb",), mark, agent="kubectl/") == {("list",): 3}


def test_what_the_server_serves(control_plane):
    for version, kinds in (("resource.k8s.io/v1", "ResourceClaim"), (control_plane.plane.taint_rules, "DeviceTaintRule"),
                           ("resource.k8s.io/v1beta1", "ResourceSlice"), ("v1", "Pod")):
        assert control_plane.api.plural(version, kinds)
    gangs = control_plane.plane.gangs
    assert not gangs or not control_plane.api.plural(gangs.version, "PodGroup")


def test_api_server_restarts_on_its_data(control_plane):
    control_plane.api.make(config_map("default", "kept"))
    control_plane.apiserver.kill()
    with pytest.raises(OSError):
        control_plane.api.request("GET", "/readyz")
    control_plane.apiserver.start()
    control_plane.plane.wait_ready()
    assert control_plane.api.get("v1", "ConfigMap", "kept", "default")


def test_api_server_is_frozen(control_plane):
    address = control_plane.plane.admin
    control_plane.apiserver.freeze()
    try:
        run = control_plane.in_ns([control_plane.programs / "kubectl", "get", "--request-timeout=1s", "nodes"])
        assert run.returncode != 0 and "refused" not in run.stderr, run.stderr
    finally:
        control_plane.apiserver.thaw()
    assert address.request("GET", "/readyz")[0] == 200


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[1])
from support.cluster import Cluster
cluster = Cluster(nodes=int(sys.argv[2]))
pids = [each.process.pid for each in cluster.plane.daemons()]
pids += [pid for node in cluster.nodes for pid in (node.pid, node.process.pid)]
print(cluster.folder, *pids, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_a_killed_test():
    nodes = 0 if missing(1) else 1
    if missing(nodes):
        pytest.skip(missing(nodes))
    child = subprocess.Popen([sys.executable, "-B", "-c", KILLED, SOURCE / "tests", str(nodes)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    folder, *pids = child.stdout.readline().split()
    cgroups = Path(folder, "cgroups").read_text().split() if nodes else []
    assert len(pids) == 4 + 3 * nodes and Path(folder).is_dir()
    child.kill()
    child.communicate()
    Cluster.wait(lambda: f"{pids} of a killed test still run",
                 lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 5)
    os.utime(folder, (0, 0))  # not the fresh one of a run beside this one
    state.clean_stale()
    assert not Path(folder).exists() and not any(Path(each).exists() for each in cgroups)


def test_pod_runs_on_each_node(cluster):
    assert [node.condition() for node in cluster.nodes] == ["True", "True"]
    with cluster.clean_namespace("runs"):
        pods = [cluster.pod(f"p{i}", ["sh", "-c", "hostname; echo from $NODE"], namespace="runs", node=f"n{i}",
                            container={"env": [{"name": "NODE", "valueFrom": {
                                "fieldRef": {"fieldPath": "spec.nodeName"}}}]}).make() for i in range(2)]
        assert [pod.ended() for pod in pods] == ["p0\nfrom n0\n", "p1\nfrom n1\n"]
        for pod in pods:
            pod.delete()


def test_cost_of_a_nodes_processes(cluster, monkeypatch, tmp_path):
    """Its kubelet and its containerd have had CPU time, which the kernel tells nobody when they end with process 1."""
    monkeypatch.setenv("DRARUN_TEST_SPENT", str(tmp_path / "told"))
    node = cluster.node(0)
    state.note_spent(node.cgroups[0], node.pid)
    assert float((tmp_path / "told").read_text()) > 0.1


def test_pod_reaches_the_api(cluster):
    there = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod = cluster.pod("inside", ["sh", "-c", f"cat {there}/namespace; nslookup kubernetes.default.svc.cluster.local &&"
                                 " nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open"]).make()
    log = pod.ended()
    assert log.startswith("default") and "10.96.0.1" in log and log.endswith("open\n")


def test_images(cluster, tmp_path):
    """A volume of one image in a container of another, which lies on a third."""
    if cluster.plane.minor < 35:
        pytest.skip(f"no image volumes in Kubernetes {cluster.plane.version}")
    cluster.image("distroless")
    script = tmp_path / "hello"
    script.write_text("#!/bin/sh\n/brought/busybox ls /brought; cat /etc/hello\n")
    script.chmod(0o755)
    name = cluster.image("hello", files={"/usr/bin/hello": script, "/etc/hello": script}, base="busybox")
    pod = cluster.pod("volume", ["hello"], image=name, container={"volumeMounts": [
        {"name": "tools", "mountPath": "/brought"}]}, volumes=[
            {"name": "tools", "image": {"reference": "localhost/distroless:1", "pullPolicy": "IfNotPresent"}}]).make()
    assert pod.ended() == f"busybox\n{script.read_text()}"


def test_known_image_is_imported_once(cluster, monkeypatch):
    cluster.image("distroless")
    for node in cluster.nodes:
        monkeypatch.setattr(node, "start_import", lambda packed: pytest.fail(f"{packed} is imported again"))
    assert cluster.image("distroless") == "localhost/distroless:1" and cluster.image("drarun") == "localhost/drarun:1"


def test_network_between_two_pods_is_cut(cluster):
    """On two nodes and on one; a third pod hears both all the time."""
    pods = {name: cluster.pod(name, ["sh", "-c", "while nc -l -p 5000 -e echo hello; do :; done"], node=node).make()
            for name, node in (("a", "n0"), ("b", "n1"), ("c", "n0"))}
    for pod in pods.values():
        pod.wait_phase("Running")

    def hear():
        """The pairs (who asks, who answers) that work."""
        return {first + second for first, here in pods.items() for second, there in pods.items() if here is not there and
                here.node.run(["ip", "netns", "exec", here.network_namespace(), "busybox", "nc", "-w", "1", there.ip,
                               "5000"], input="").stdout == "hello\n"}
    def settles(wanted):
        cluster.wait(lambda: f"expected {wanted}, heard {hear()}", lambda: hear() == wanted, 60)
    everyone = {"ab", "ba", "ac", "ca", "bc", "cb"}
    settles(everyone)
    cluster.cut(pods["a"], pods["b"])
    cluster.cut(pods["a"], pods["c"])
    settles({"bc", "cb"})
    cluster.cut(pods["a"], pods["b"], mend=True)
    cluster.cut(pods["a"], pods["c"], mend=True)
    settles(everyone)
    cluster.node(0).cut()
    settles({"ac", "ca"})
    cluster.node(0).mend()
    settles(everyone)
    for pod in pods.values():
        pod.delete(grace=0)


def test_kubelet_and_containerd_restart(cluster):
    node = cluster.node(0)
    pod = cluster.pod("stays", ["sleep", "1000"], node="n0").make()
    pod.wait_phase("Running")
    started = pod.get()["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    node.stop_kubelet()
    node.stop_containerd()
    node.start_containerd()
    node.wait_containerd()
    node.start_kubelet()
    after = cluster.pod("after", ["echo", "again"], node="n0").make()
    assert after.ended() == "again\n"
    assert pod.get()["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] == started
    pod.delete(grace=0)


def test_lost_nodes_are_noticed(cluster):
    """Power, and the way to the API: the node controller tells, and both come back."""
    first, second = cluster.nodes
    first.kill()
    second.cut_api()
    for node in cluster.nodes:
        cluster.wait(f"the API server still calls {node.name} ready", lambda: node.condition() == "Unknown", 30)
    first.boot()
    second.cut_api(mend=True)
    first.wait_ready()
    second.wait_ready()
    pods = [cluster.pod(f"back-{i}", ["true"], node=f"n{i}").make() for i in range(2)]
    for pod in pods:
        pod.ended()


ROOT = "resource.kubernetes.io/pcieRoot"


def job_manifests(drarun, folder, workers, gpus, nics, **spec):
    path = folder / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {
        "workers": workers, "image": "localhost/busybox:1", "command": ["true"], "placement": {"spread": "none"}, "devices": {
            "gpus": {"count": gpus, "class": "gpu.nvidia.com"},
            "nics": {"count": nics, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'},
            "align": "required"}, **spec}}))
    items = json.loads(drarun("render", "--format", "json", path).ok().out)["items"]
    return [each for each in items if each["kind"] in ("ResourceClaim", "Pod")]


def results(claim):
    return claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])


def test_scheduler_aligns_all(drarun, control_plane, tmp_path):
    """32 workers with a GPU and a NIC each on 4 captured machines of 8: each pair on one PCIe root."""
    control_plane.fake_nodes(4, "a4-highgpu-8g")
    api = control_plane.api
    api.make(*job_manifests(drarun, tmp_path, 32, 1, 1))
    pods = control_plane.wait(lambda: control_plane.kubectl("describe", "pods"), lambda: (
        found := api.get("v1", "Pod", namespace="default"),
        all(each["status"].get("phase") == "Running" for each in found) and found)[1], 60)
    assert len(pods) == 32 and len({each["status"]["podIP"] for each in pods}) == 32
    roots = {(each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]):
             device["attributes"].get(ROOT, {}).get("string")
             for each in api.get("resource.k8s.io/v1", "ResourceSlice") for device in each["spec"]["devices"]}
    claims = api.get("resource.k8s.io/v1", "ResourceClaim", namespace="default")
    pairs = [[roots[one["driver"], one["pool"], one["device"]] for one in results(claim)] for claim in claims]
    assert len(pairs) == 32 and all(len(pair) == 2 and pair[0] == pair[1] for pair in pairs), pairs
    for pod in pods:
        api.delete("v1", "Pod", pod["metadata"]["name"], "default")
    control_plane.wait("deleted pods stay", lambda: not api.get("v1", "Pod", namespace="default"), 30)


def test_gang_is_an_option(tmp_path):
    """With the alpha gates: of three pods for two devices none is bound, of two both are."""
    with Cluster(gang=True) as cluster:
        cluster.fake_nodes(1, "small-l4-2gpu")
        for count in (3, 2):
            cluster.api.make({"apiVersion": cluster.plane.gangs.version, "kind": "PodGroup", "metadata": {
                "name": f"g{count}"}, "spec": {"schedulingPolicy": {"gang": {"minCount": count}}}})
            pods = []
            for i in range(count):
                cluster.api.make(claim(f"g{count}-{i}", ("gpu", "gpu.nvidia.com")))
                pods.append(claiming(cluster, f"g{count}-{i}", "true", "fake0",
                                     schedulingGroup={"podGroupName": f"g{count}"}).make())

            def verdict():
                group = cluster.api.get(cluster.plane.gangs.version, "PodGroup", f"g{count}", "default")
                return next((each["status"] for each in group.get("status", {}).get("conditions", ())
                             if each["type"] == cluster.plane.gangs.condition), None)
            wanted = str(count == 2)
            cluster.wait(lambda: f"gang of {count}: {verdict()}", lambda: verdict() == wanted, 20)
            cluster.wait(lambda: f"gang of {count} is {verdict()}, but its pods are not bound",
                         lambda: {"nodeName" in pod.get()["spec"] for pod in pods} == {count == 2}, 10)
            for pod in pods:
                pod.delete(grace=0)


@pytest.fixture(scope="module")
def machines(cluster):
    """Two GPUs and two NICs each."""
    made = Machines(cluster, SMALL, only(2))
    yield made
    made.stop()


def claim(name, *requests):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": kind, "exactly": {"deviceClassName": kind_of}}
                                              for kind, kind_of in requests],
                                 "constraints": [{"requests": [each[0] for each in requests], "matchAttribute": ROOT}]}}}


def claiming(cluster, name, script, node, **spec):
    """A pod with the claim of its name."""
    return cluster.pod(name, ["sh", "-c", script], nodeSelector={"kubernetes.io/hostname": node},
                       container={"resources": {"claims": [{"name": "devices"}]}},
                       resourceClaims=[{"name": "devices", "resourceClaimName": name}], **spec)


def test_claims_are_prepared_on_two_nodes(cluster, machines):
    """The devices are in the containers, and the pods hear each other over them."""
    script = TOLD.format("head -n 1 $each") + ('; ls -l /dev/nvidia? | cut -c1; ip -o -4 addr show up | grep -o "gpu.*/16"; '
                                               'while :; do nc -l -p 5000 -e hostname; done')
    pods, addresses = [], []
    for i in range(2):
        cluster.api.make(claim(f"prepared-{i}", ("gpu", GPU), ("nic", NIC)))
        pods.append(claiming(cluster, f"prepared-{i}", script, f"n{i}").make())
    for i, pod in enumerate(pods):
        pod.wait_phase("Running")
        log = cluster.wait("no log", lambda: pod.log().count("\n") == 4 and pod.log(), 10).splitlines()
        given = {device["driver"]: device for line in log[:2] for device in told(line)}
        assert value_of(given[GPU], "pcieRoot") == value_of(given[NIC], "pcieRoot") and log[2] == "c"
        name = value_of(given[NIC], "ifName")
        addresses.append(f"10.97.{i}.{int(name[3]) + 1}")
        assert log[3] == f"{name}    inet {addresses[i]}/16"
        status = cluster.wait("no status", lambda: cluster.api.get(
            "resource.k8s.io/v1", "ResourceClaim", pod.name, "default")["status"].get("devices"), 10)
        network, = [each["networkData"] for each in status if each["driver"] == NIC]
        assert (network["interfaceName"], network["ips"]) == (name, [f"{addresses[i]}/16"])
    cluster.wait("nobody answers", lambda: pods[0].node.run(["ip", "netns", "exec", pods[0].network_namespace(), "busybox", "nc", "-w", "5",
                                                             addresses[1], "5000"], input="").stdout == "prepared-1\n", 60)
    for pod in pods:
        pod.delete()
        cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", pod.name, "default")
    cluster.wait(machines[0].log, lambda: not machines[0].checkpoints(), 30)


def test_faults_of_a_plugin(cluster, machines):
    """Prepare hangs, then works; it refuses, and the pod's events say why."""
    first = machines[0]
    for name in ("hangs", "refused"):
        cluster.api.make(claim(name, ("gpu", GPU)))
    first.freeze()
    pod = claiming(cluster, "hangs", "ls /dev/nvidia?", "n0").make()
    cluster.wait("Prepare is not called", lambda: results(
        cluster.api.get("resource.k8s.io/v1", "ResourceClaim", "hangs", "default")), 20)
    assert pod.get()["status"]["phase"] == "Pending"
    first.thaw()
    assert pod.ended().startswith("/dev/nvidia")
    first.fill()
    refused = claiming(cluster, "refused", "true", "n0").make()
    cluster.wait(refused.describe, lambda: "No space left on device" in refused.describe(), 20)
    first.empty()
    refused.ended()
    for each in (pod, refused):
        each.delete()
        cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", each.name, "default")


def test_tainted_device_evicts(cluster, machines):
    """A NIC loses its link, and the taint on it takes its pod away."""
    first = machines[0]
    first.stop()
    first.configure(rescan="1s", taints={"linkDown": "NoExecute"})
    first.start().wait(2)
    cluster.api.make(claim("tainted", ("nic", NIC)))
    pod = claiming(cluster, "tainted", "sleep 1000", "n0").make()
    pod.wait_phase("Running")
    held = results(cluster.api.get("resource.k8s.io/v1", "ResourceClaim", "tainted", "default"))[0]["device"]
    link = first.tree / "sys/class/net" / value_of(first.published()[held], "ifName")
    (link / "flags").write_text("0x1003\n")
    (link / "carrier").write_text("0\n")
    cluster.wait(pod.describe, lambda: (now := pod.get()) is None or any(
        each["type"] == "DisruptionTarget" for each in now["status"]["conditions"]), 20)
    pod.delete()
    cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", "tainted", "default")
