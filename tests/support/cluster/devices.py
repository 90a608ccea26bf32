# SPDX-License-Identifier: Apache-2.0
"""Devices of nodes that are objects only, from captured machines; and of a driver of others on real nodes. What our node
plugin serves is in machines.py."""
import json

from .api import wait
from ..build import SOURCE
from .plugin import GPU, NIC, device_class

FAKE = "test.drarun.dev/fake"
READY_S = 90


CLASSES = [device_class(name, driver) for name, driver in (("gpu.nvidia.com", "gpu.nvidia.com"), ("dranet", "dra.net"),
                                                            (GPU, GPU), (NIC, NIC))]


def channels(count=1):
    """What Driver takes of the driver compute-domain.nvidia.com: the channels of a node, whose device nodes are /dev/null."""
    return [{"device": {"name": f"channel-{k}", "attributes": {"type": {"string": "channel"}, "id": {"int": k}}},
             "edits": {"deviceNodes": [{"path": f"/dev/nvidia-caps-imex-channels/channel{k}", "hostPath": "/dev/null", "type": "c",
                                        "permissions": "rw"}]}} for k in range(count)]


class Driver:
    """A DRA driver of others on a real node, whose devices our node plugin does not make: what channels() gives, or a list
    like its."""

    def __init__(self, node, name, devices):
        self.node, self.name = node, name
        self.file = node.folder / f"{name}.json"
        self.devices = devices

    def start(self):
        """Then wait()."""
        self._write()
        cluster = self.node.cluster
        self.node.daemon(self.name, [cluster.programs / "dra-driver", f"-driver={self.name}", f"-node={self.node.name}",
                                     f"-settings={self.file}", f"-kubeconfig={cluster.kubeconfig()}"])
        return self

    def wait(self):
        """Until its devices are published and the kubelet has taken it."""
        wait(lambda: f"{self.name} publishes nothing:\n{self.log()}", self.published, READY_S)
        wait(lambda: f"the kubelet does not take {self.name}:\n{self.log()}", self.registered, READY_S)
        return self

    def published(self):
        """Names of its devices that the API server has."""
        return [each["name"] for found in self.node.cluster.api.get("resource.k8s.io/v1", "ResourceSlice")
                if found["spec"]["driver"] == self.name and found["spec"].get("nodeName") == self.node.name
                for each in found["spec"].get("devices", ())]

    def registered(self):
        """The kubelet keeps a connection to the socket of a driver that it knows."""
        sockets = self.node.ok(["ss", "-xH", "state", "connected", "src", f"/var/lib/kubelet/plugins/{self.name}/dra.sock"])
        return bool(sockets.strip())

    def log(self):
        return (self.node.folder / f"{self.name}.log").read_text(errors="replace")[-3000:]

    def _write(self):
        fresh = self.file.with_suffix(".tmp")
        fresh.write_text(json.dumps({"Devices": self.devices}))
        fresh.rename(self.file)

    def publish(self, devices):
        """Replaces its devices."""
        self.devices = devices
        self._write()
        self._signal("HUP")

    def _signal(self, name):
        return self.node.run(["pkill", f"-{name}", "-f", f"^[^ ]*dra-driver -driver={self.name} "])

    def stop(self):
        """SIGKILL. Its slices stay; the kubelet takes them away half a minute later."""
        self._signal("KILL")
        wait(f"{self.name} survives SIGKILL", lambda: self._signal("0").returncode == 1, 60)


def fixture(machine):
    """tests/data/fixtures: a captured machine with its node and its slices."""
    return json.loads((SOURCE / "tests/data/fixtures" / f"{machine}.json").read_text())


def fake_machine(machine, name, resources=None):
    """The objects of one node of a captured type, under this name; without the slices that its Node object
    owns where it is real. resources: more of its allocatable resources, as {"nvidia.com/gpu": 8}."""
    found = fixture(machine)
    slices = json.loads(json.dumps(found["resourceSlices"]).replace(found["node"]["name"], name))
    for each in slices:
        each["metadata"] = {"name": f"{name}-{each['spec']['driver']}"}
    room = {"cpu": "192", "memory": "2Ti", "pods": "1000", **{key: str(value) for key, value in (resources or {}).items()}}
    node = {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {**found["node"]["labels"], "kubernetes.io/hostname": name, FAKE: "yes"}},
            "status": {"capacity": room, "allocatable": room, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Fake", "message": "an object only"}]}}
    return [node, *slices]

