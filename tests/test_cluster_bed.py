# SPDX-License-Identifier: Apache-2.0
"""The test bed's own Kubernetes (support/cluster): each thing that other tests lean on, seen to work."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.build import SOURCE
from support.cluster import Cluster, missing, state

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
print(cluster.folder, *pids, flush=True)
sys.stdin.read()
"""


def test_nothing_outlives_a_killed_test():
    if missing(0):
        pytest.skip(missing(0))
    child = subprocess.Popen([sys.executable, "-B", "-c", KILLED, SOURCE / "tests", "0"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    folder, *pids = child.stdout.readline().split()
    assert len(pids) == 4 and Path(folder).is_dir()
    child.kill()
    child.communicate()
    Cluster.wait(lambda: f"{pids} of a killed test still run",
                 lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 5)
    os.utime(folder, (0, 0))  # not the fresh one of a run beside this one
    state.clean_stale()
    assert not Path(folder).exists()


def test_pod_runs_on_each_node(cluster):
    assert [node.condition() for node in cluster.nodes] == ["True", "True"]
    with cluster.clean_namespace("runs"):
        pods = [cluster.pod(f"p{i}", ["sh", "-c", "hostname; echo from $NODE"], namespace="runs", node=f"n{i}",
                            container={"env": [{"name": "NODE", "valueFrom": {
                                "fieldRef": {"fieldPath": "spec.nodeName"}}}]}).make() for i in range(2)]
        assert [pod.ended() for pod in pods] == ["p0\nfrom n0\n", "p1\nfrom n1\n"]
        for pod in pods:
            pod.delete()


def test_pod_reaches_the_api(cluster):
    there = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod = cluster.pod("inside", ["sh", "-c", f"cat {there}/namespace; nslookup kubernetes.default.svc.cluster.local &&"
                                 " nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open"]).make()
    log = pod.ended()
    assert log.startswith("default") and "10.96.0.1" in log and log.endswith("open\n")


def test_image_volume(cluster):
    cluster.image("distroless")
    pod = cluster.pod("volume", ["/brought/busybox", "ls", "/brought"], container={"volumeMounts": [
        {"name": "tools", "mountPath": "/brought"}]}, volumes=[
            {"name": "tools", "image": {"reference": "localhost/distroless:1", "pullPolicy": "IfNotPresent"}}]).make()
    assert pod.ended() == "busybox\n"


def listening(cluster, name, node):
    return cluster.pod(name, ["sh", "-c", "while nc -l -p 5000 -e echo hello; do :; done"], node=node).make()


@pytest.mark.parametrize("places", [("n0", "n1"), ("n0", "n0")], ids=["two-nodes", "one-node"])
def test_network_between_two_pods_is_cut(cluster, places):
    pods = [listening(cluster, f"{name}-{places[1]}", node) for name, node in zip("ab", places)]
    for pod in pods:
        pod.wait_phase("Running")

    def heard(here, there):
        argv = ["ip", "netns", "exec", here.network_namespace(), "busybox", "nc", "-w", "2", there.ip, "5000"]
        return here.node.run(argv, input="").stdout
    assert heard(*pods) == heard(*reversed(pods)) == "hello\n"
    cluster.cut(*pods)
    assert heard(*pods) == heard(*reversed(pods)) == ""
    cluster.cut(*pods, mend=True)
    assert heard(*pods) == heard(*reversed(pods)) == "hello\n"
    for pod in pods:
        pod.delete()


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
    pod.delete()


def test_lost_nodes_are_noticed():
    """Power, cable, and the way to the API: the node controller tells each, and the last two come back."""
    with Cluster(nodes=3) as cluster:
        first, second, third = cluster.nodes
        first.kill()
        second.cut()
        third.cut_api()
        for node in cluster.nodes:
            cluster.wait(f"the API server still calls {node.name} ready", lambda: node.condition() == "Unknown", 30)
        second.mend()
        third.cut_api(mend=True)
        second.wait_ready()
        third.wait_ready()
        folder, groups = cluster.folder, (cluster.folder / "cgroups").read_text().split()
    assert not folder.exists() and groups and not any(Path(each).exists() for each in groups)
