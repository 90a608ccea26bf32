# SPDX-License-Identifier: Apache-2.0
"""The node plugin before an API server that serves resource.k8s.io as v1beta1 alone. Today's scheduler and kubelet know
v1 only: the claim is allocated by hand, and its calls come from the kubelet's own client."""
import json

from support.cluster import Cluster
from support.cluster.plugin import NIC, Nics, Plugin

VERSION = "v1beta1"
API = f"resource.k8s.io/{VERSION}"
SOCKET = f"/var/lib/kubelet/plugins/{NIC}/dra.sock"


def allocated(cluster, plugin, pod):
    """A claim with the plugin's device, reserved for the pod."""
    config = {"opaque": {"driver": NIC, "parameters": {"interface": {"name": "net1", "addresses": ["10.94.9.9/16"]}}}}
    made = cluster.api.make({"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "old", "namespace": "default"}, "spec": {
        "devices": {"requests": [{"name": "nic", "deviceClassName": "nic.drarun.dev"}], "config": [config]}}})
    result = {"request": "nic", "driver": NIC, "pool": plugin.node.name, "device": next(iter(plugin.published()))}
    owner = pod.make().get()["metadata"]
    made["status"] = {"allocation": {"devices": {"results": [result], "config": [{**config, "source": "FromClaim"}]}},
                      "reservedFor": [{"resource": "pods", "name": owner["name"], "uid": owner["uid"]}]}
    cluster.api.ok("PUT", cluster.api.path(API, "ResourceClaim", "default", "old") + "/status", made)
    return made["metadata"]["uid"]


def test_published_prepared_and_told():
    with Cluster(nodes=1, claims=VERSION) as cluster:
        assert cluster.api.plural("resource.k8s.io/v1", "ResourceClaim") is None
        node = cluster.node(0)
        Nics(node, 1).plug()
        plugin = Plugin(node)
        plugin.api = API
        plugin.start().wait(1)
        assert next(iter(plugin.published().values()))["basic"]["attributes"]["dra.net/ifName"] == {"string": "nic0"}
        pod = cluster.pod("old", ["true"], node="n0", container={"resources": {"claims": [{"name": "nics"}]}},
                          resourceClaims=[{"name": "nics", "resourceClaimName": "old"}])
        uid = allocated(cluster, plugin, pod)

        def call(verb):
            return json.loads(node.ok([cluster.programs / "dra-calls", SOCKET, verb, "default", "old", uid]))
        answer = call("prepare")
        assert "error" not in answer and answer["devices"][0]["cdi_device_ids"][0].startswith(f"{NIC}/claim={uid}"), answer
        device = cluster.wait(plugin.log, lambda: cluster.api.get(API, "ResourceClaim", "old", "default")["status"].get("devices"), 20)[0]
        assert device["networkData"]["interfaceName"] == "net1" and device["conditions"][0]["status"] == "True"
        assert plugin.checkpoints() == [uid] and "error" not in call("unprepare") and plugin.checkpoints() == []
        plugin.stop()
