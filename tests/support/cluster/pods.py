# SPDX-License-Identifier: Apache-2.0
"""Pods of tests, and what a test does to one."""
from .network import NOWHERE

BUSYBOX = "localhost/busybox:1"
PHASE_S = 60


class Pod:
    """manifest: its first container may be given as command and image. make() creates it."""

    def __init__(self, cluster, name, command=None, namespace="default", image=BUSYBOX, node=None, container=None,
                 **spec):
        self.cluster, self.name, self.namespace = cluster, name, namespace
        first = {"name": "main", "image": image, "imagePullPolicy": "Never", **(container or {})}
        if command:
            first["command"] = [str(word) for word in command]
        self.manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
                         "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [first],
                                  **({"nodeName": node} if node else {}), **spec}}

    def make(self):
        self.cluster.api.make(self.manifest)
        return self

    def get(self):
        return self.cluster.api.get("v1", "Pod", self.name, self.namespace)

    @property
    def ip(self):
        return self.get()["status"]["podIP"]

    @property
    def node(self):
        """The Node on which it runs."""
        name = self.get()["spec"]["nodeName"]
        return next(each for each in self.cluster.nodes if each.name == name)

    def wait_phase(self, *phases, seconds=PHASE_S):
        """Waits for one of these phases; the Pod's status."""
        def there():
            status = (self.get() or {}).get("status", {})
            return status if status.get("phase") in phases else None
        return self.cluster.wait(lambda: f"pod {self.name} is not {' or '.join(phases)}:\n{self.describe()}", there,
                                 seconds)

    def describe(self):
        return self.cluster.kubectl("describe", "pod", "-n", self.namespace, self.name)

    def log(self, container="main"):
        return self.cluster.api.ok("GET", self.cluster.api.path("v1", "Pod", self.namespace, self.name) +
                                   f"/log?container={container}", accept="*/*")

    def ended(self, seconds=PHASE_S):
        """Its log after its end with status 0."""
        status = self.wait_phase("Succeeded", "Failed", seconds=seconds)
        assert status["phase"] == "Succeeded", f"{self.describe()}\n{self.log()}"
        return self.log()

    def delete(self, grace=None, seconds=PHASE_S):
        """Deletes it and waits until it is gone. grace: seconds; with 0 nobody waits for its node."""
        self.cluster.api.delete("v1", "Pod", self.name, self.namespace, grace)
        self.cluster.wait(lambda: f"pod {self.name} does not go:\n{self.describe()}", lambda: self.get() is None,
                          seconds)

    def network_namespace(self):
        """The name that `ip netns` on its node has for its network."""
        node, ip = self.node, self.ip
        for name in node.ok(["ls", "/run/netns"]).split():
            if f" {ip}/" in node.ok(["ip", "-n", name, "-4", "-o", "addr"]):
                return name
        raise AssertionError(f"no network namespace on {node.name} has {ip}")


def cut(first, second, mend=False):
    """Packets between two pods get lost in silence in both directions, as on a broken link; mend: no more.
    Each believes that the other is on its own wire, at an address that nobody has."""
    change = "del" if mend else "replace"
    for here, there in ((first, second), (second, first)):
        ip = ["ip", "-n", here.network_namespace()]
        here.node.ok([*ip, "route", change, f"{there.ip}/32", "dev", "eth0"])
        address = [] if mend else ["lladdr", NOWHERE, "nud", "permanent"]
        here.node.ok([*ip, "neigh", change, there.ip, *address, "dev", "eth0"])
