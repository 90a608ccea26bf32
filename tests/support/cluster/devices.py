# SPDX-License-Identifier: Apache-2.0
"""Devices: of nodes that are objects only, from captured machines, and of real nodes by a test driver."""
import json

from .api import wait
from ..build import SOURCE

GPU, NIC = "gpu.nvidia.com", "dra.net"
ROOT, BUS = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/pciBusID"
FAKE = "test.drarun.dev/fake"
READY_S = 30


def device_class(name, driver):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {
        "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}}


CLASSES = [device_class("gpu.nvidia.com", GPU), device_class("dranet", NIC)]


def gpus(count):
    """What Driver takes: GPU k is the device node /dev/nvidiaK, which is /dev/null to the kernel."""
    return [{"device": {"name": f"gpu-{k}", "attributes": {
        "type": {"string": "gpu"}, "productName": {"string": "Test GPU"}, "uuid": {"string": f"GPU-{k:08x}"},
        BUS: {"string": f"0000:{16 * k:02x}:00.0"}, ROOT: {"string": f"pci0000:{16 * k:02x}"}},
        "capacity": {"memory": {"value": "80Gi"}}}, "edits": {"deviceNodes": [
            {"path": f"/dev/nvidia{k}", "hostPath": "/dev/null", "type": "c", "permissions": "rw"}]}}
            for k in range(count)]


def nics(count, node=0):
    """What Driver takes: NIC k is the interface gpuKrdma0 of the pod, 10.97.NODE.(k+1), and on GPU k's PCIe
    root. They are listed in reverse, so that order is no help in finding pairs."""
    return [{"device": {"name": f"nic-{k}", "attributes": {
        f"{NIC}/rdma": {"bool": True}, f"{NIC}/ifName": {"string": f"gpu{k}rdma0"}, f"{NIC}/mtu": {"int": 1500},
        BUS: {"string": f"0000:{16 * k + 1:02x}:00.0"}, ROOT: {"string": f"pci0000:{16 * k:02x}"}}},
        "netdev": {"Name": f"gpu{k}rdma0", "Address": f"10.97.{node}.{k + 1}/16", "MTU": 1500}}
            for k in reversed(range(count))]


class Driver:
    """A DRA driver on a real node, whose devices are what gpus() and nics() give, or a list like theirs."""

    def __init__(self, node, name, devices):
        self.node, self.name = node, name
        self.file = node.folder / f"{name}.json"
        self.settings, self.register = {"Devices": devices}, True

    def start(self, register=True):
        """register=False: the kubelet does not know of it. Then wait()."""
        self.register = register
        self._write()
        cluster = self.node.cluster
        self.node.daemon(self.name, [cluster.programs / "dra-driver", f"-driver={self.name}", f"-node={self.node.name}",
                                     f"-settings={self.file}", f"-kubeconfig={cluster.kubeconfig()}",
                                     f"-register={str(register).lower()}"])
        return self

    def wait(self):
        """Until its devices are published and, where it registers, the kubelet has taken it."""
        wait(lambda: f"{self.name} publishes nothing:\n{self.log()}", self.published, READY_S)
        if self.register:
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
        fresh.write_text(json.dumps(self.settings))
        fresh.rename(self.file)

    def fault(self, refuse="", hang=False):
        """From now on Prepare fails with this text, or hangs; fault() ends it."""
        self.settings.update(Refuse=refuse, Hang=hang)
        self._write()

    def publish(self, devices):
        """Replaces its devices."""
        self.settings["Devices"] = devices
        self._write()
        self._signal("HUP")

    def _signal(self, name):
        return self.node.run(["pkill", f"-{name}", "-f", f"^[^ ]*dra-driver -driver={self.name} "])

    def stop(self):
        """SIGKILL. Its slices stay; the kubelet takes them away half a minute later."""
        self._signal("KILL")
        wait(f"{self.name} survives SIGKILL", lambda: self._signal("0").returncode == 1, 10)


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

