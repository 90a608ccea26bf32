# SPDX-License-Identifier: Apache-2.0
"""Pods that claim NICs of our node plugin, and that plugin on each node of a cluster: fixtures for tests that import them."""
import pytest

from .plugin import NIC, Nics, Plugin, device_class

COUNT = 4  # NICs of a node


@pytest.fixture(scope="module")
def plugins(cluster):
    if not cluster.api.get("resource.k8s.io/v1", "DeviceClass", "nic.drarun.dev"):
        cluster.api.make(device_class())
    made = []
    for node in cluster.nodes:
        Nics(node, COUNT).plug()
        made.append(Plugin(node).start())
    for plugin in made:
        plugin.wait(COUNT)
    yield made
    for plugin in made:
        plugin.stop()


def plug_again(plugins):
    """Nothing is held, and the NICs that died with their pods are there again."""
    for plugin in plugins:
        node = plugin.node
        node.cluster.wait(lambda: f"{plugin.checkpoints()} left:\n{plugin.log()}", lambda: not plugin.checkpoints(), 60)
        Nics(node, COUNT).plug()
        plugin.wait(COUNT)


@pytest.fixture(autouse=True)
def plugged(plugins):
    """After each test."""
    yield
    plug_again(plugins)


def claim(name, count=1, config=None, namespace="default"):
    devices = {"requests": [{"name": f"nic{k}", "exactly": {"deviceClassName": "nic.drarun.dev"}}
                            for k in range(count)]}
    if config:
        devices["config"] = [{"requests": [f"nic{k}"], "opaque": {"driver": NIC, "parameters": each}}
                             for k, each in enumerate(config)]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"devices": devices}}


def claiming(cluster, name, script, node, container=None, **spec):
    """A pod with the claim of its name, in its container main."""
    return cluster.pod(name, ["sh", "-c", script], nodeSelector={"kubernetes.io/hostname": node},
                       container={"resources": {"claims": [{"name": "nics"}]}, **(container or {})},
                       resourceClaims=[{"name": "nics", "resourceClaimName": name}], **spec)


class Claimed:
    """Claims and pods of a test, deleted at its end."""

    def __init__(self, cluster):
        self.cluster, self.names = cluster, []

    def __call__(self, name, script, node, count=1, config=None, make=claiming, **how):
        self.cluster.api.make(claim(name, count, config))
        self.names.append(name)
        return make(self.cluster, name, script, node, **how).make()

    def end(self):
        for name in self.names:
            self.cluster.api.delete("v1", "Pod", name, "default")
        for name in self.names:
            self.cluster.wait(f"pod {name} does not end", lambda: not self.cluster.api.get("v1", "Pod", name, "default"), 60)
            self.cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", name, "default")


@pytest.fixture
def claimed(cluster, plugins):
    made = Claimed(cluster)
    yield made
    made.end()
