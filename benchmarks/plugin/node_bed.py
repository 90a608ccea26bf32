# SPDX-License-Identifier: Apache-2.0
"""A real node with the plugin and NICs, on which pods are started and the driver is called."""
import contextlib
import json
from pathlib import Path

from benchmarks.cluster.bed import started
from support.cluster import Cluster
from support.cluster.plugin import NIC, Nics, Plugin, device_class

NICS = 8


class NodeBed:
    """A context manager. cluster: one to use, its first node; without it one of one node is started. under: words before the plugin."""

    def __init__(self, cluster=None, under=()):
        self.stack, self.cluster, self.under = contextlib.ExitStack(), cluster, under

    def __enter__(self):
        with self.stack:
            self.cluster = self.cluster or self.stack.enter_context(Cluster(nodes=1))
            self.api, self.audit, self.node = self.cluster.api, self.cluster.audit, self.cluster.nodes[0]
            if not self.api.get("resource.k8s.io/v1", "DeviceClass", NIC):
                self.api.make(device_class())
            self.nics = Nics(self.node, NICS)
            self.nics.plug()
            self.plugin = Plugin(self.node, under=self.under).start().wait(NICS)
            self.stack.callback(self.plugin.stop)
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def claim(self, name, count):
        """The manifest of a claim of so many NICs, which are net0, net1, … of the pod."""
        requests = [{"name": f"nic{k}", "exactly": {"deviceClassName": NIC}} for k in range(count)]
        config = [{"requests": [f"nic{k}"], "opaque": {"driver": NIC, "parameters": {"interface": {"name": f"net{k}"}}}}
                  for k in range(count)]
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {
            "name": name, "namespace": "default"}, "spec": {"devices": {"requests": requests, "config": config}}}

    def pod(self, name, command, count=0):
        """Not made yet; count: NICs of the claim of its name."""
        claims = {"resourceClaims": [{"name": "nics", "resourceClaimName": name}]} if count else {}
        return self.cluster.pod(name, command, automountServiceAccountToken=False, **claims,
                                nodeSelector={"kubernetes.io/hostname": self.node.name},
                                container={"resources": {"claims": [{"name": "nics"}]}} if count else None)

    def again(self):
        """All NICs are there for the next pod."""
        self.cluster.wait(lambda: f"{self.plugin.checkpoints()} left:\n{self.plugin.log()}",
                          lambda: not self.plugin.checkpoints(), 60)
        self.nics.plug()
        self.cluster.wait(lambda: f"plugged, and published: {self.macs()}\n{self.plugin.log()}", self.is_published, 60)

    def macs(self):
        """({NIC: MAC} of the host, of the slices)"""
        here = {each["ifname"]: each["address"] for each in json.loads(self.node.ok(["ip", "-j", "link"]))
                if each["ifname"] in self.nics.names}
        there = {each["attributes"]["dra.net/ifName"]["string"]: each["attributes"]["dra.net/mac"]["string"]
                 for each in self.plugin.published().values()}
        return here, there

    def is_published(self):
        """The NICs of now, not their predecessors of the same names."""
        here, there = self.macs()
        return len(here) == NICS and here == there

    def began(self, name):
        """Seconds since 1970 at which the pod's container was started, as containerd says; None before."""
        return started(Path(self.node.folder) / "containerd.log", "default").get(name)
