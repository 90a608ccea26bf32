# SPDX-License-Identifier: Apache-2.0
"""Our node plugin on a real node, with NICs that are one end of a veth pair. Such an end dies with the network
namespace that it is in, unlike a NIC of hardware: Nics.plug() makes it again."""
import json
from pathlib import Path

from .api import wait
from ..build import BUILD

GPU, NIC = "gpu.drarun.dev", "nic.drarun.dev"
READY_S = 90
RAILS, RAILS_OF_IPV6 = "10.94.{node}.{nic}/16", "fd00:94::{node}:{nic}/64"
PLAN = {"addresses": ["10.94.0.0/16"]}  # what claims of tests may choose from


def device_class(name="nic.drarun.dev", driver=NIC):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {
        "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}}


class Nics:
    """nic0, nic1, ... of a node, with addresses of one network or none; their other ends are on the bridge that joins
    all nodes."""

    def __init__(self, node, count, name="nic{}", addressed=False, rails=RAILS):
        self.node, self.names = node, [name.format(k) for k in range(count)]
        self.addressed, self.rails = addressed, rails

    def plug(self):
        """Makes those that are not there; how many."""
        made = 0
        for k, name in enumerate(self.names):
            if self.node.run(["ip", "link", "show", name]).returncode:
                self.node.run(["ip", "link", "del", f"w{name}"])
                made += self.node.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"w{name}"]).returncode == 0
                self.node.run(["ip", "link", "set", f"w{name}", "master", "rails", "up"])
                if self.addressed:
                    self.node.run(["ip", "addr", "add", self.rails.format(node=self.node.index, nic=k + 1), "dev", name,
                                   *(["nodad"] if ":" in self.rails else [])])
        return made

    def replug(self):
        """Makes those that have died, and no other: the far end of one that lives in a pod is there."""
        there = {each["ifname"] for each in json.loads(self.node.ok(["ip", "-j", "link"]))}
        for name in self.names:
            if f"w{name}" not in there and name not in there:
                self.node.run(["sh", "-c", f"ip link add {name} type veth peer name w{name} && ip link set w{name} master rails up"])

    def here(self):
        """Those that are on the host."""
        return [name for name in self.names if not self.node.run(["ip", "link", "show", name]).returncode]


class Plugin:
    """drarun-plugin on a node, for the NICs whose names begin with prefix, and with gpus for its GPUs. options: further words
    for it; under: words before it. name: what its process is called. driver: of the NICs. agent: what it brings into the
    pods of jobs, or None. instance: of several of one driver at a time, which have names of their own."""

    def __init__(self, node, *options, name="drarun-plugin", driver=NIC, prefix="nic", agent=BUILD / "bin" / "drarun-worker",
                 instance=None, under=(), gpus=False, hook=BUILD / "bin" / "drarun-attach"):
        options = (*options, "--instance", instance) if instance else options
        self.socket = f"dra-{instance}.sock" if instance else "dra.sock"
        self.node, self.name, self.options, self.driver, self.agent = node, name, options, driver, agent
        self.drivers, self.hook, self.under = ((GPU, driver) if gpus else (driver,)), hook, under
        self.state = node.folder / "drarun"
        self.user = ("admin",)  # and its groups
        self.kubeconfig = None  # or what leads elsewhere than to the API server
        self.api = "resource.k8s.io/v1"
        self.program = BUILD / "bin" / "drarun-plugin"
        if name != self.program.name:
            link = node.folder / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.program)
            self.program = link
        self.config = node.folder / f"{name}.yaml"
        self.configure(nics={"virtualPrefixes": [prefix], "include": f'device.attributes["dra.net"].ifName.startsWith("{prefix}")'})

    def configure(self, **config):
        """For its next start."""
        self.config.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "PluginConfig",
                                           "claims": PLAN, **config}))

    def start(self, *options):
        """options: for this time."""
        cluster = self.node.cluster
        self.node.daemon(self.name, [
            *self.under, self.program, "run", "--node", self.node.name, "--node-ip", self.node.address, "--drivers",
            "gpu,nic" if len(self.drivers) > 1 else "nic", "--config", self.config, "--kubeconfig", self.kubeconfig or cluster.kubeconfig(*self.user),
            "--hook", self.hook, "--state-dir", self.state, "--agent-dir", self.state / "agent",
            *(["--agent-from", self.agent] if self.agent else []), *self.options, *options])
        return self

    def wait(self, count=None):
        """Until the kubelet has taken it and so many devices, those that the host has now, are published."""
        wait(lambda: f"the kubelet does not take {self.name}:\n{self.log()}", self.registered, READY_S)
        if count is not None:
            wait(lambda: f"{self.name} publishes {self.published()}:\n{self.log()}",
                 lambda: len(self.published()) == count and self.of_now(), READY_S)
        return self

    def of_now(self):
        """What is published about NICs of the host is not about others that had their names before."""
        there = {each["ifname"]: each.get("address") for each in json.loads(self.node.ok(["ip", "-j", "link"]))}
        facts = [each.get("attributes", {}) for each in self.published().values()]
        return all(fact.get("dra.net/mac", {}).get("string") == there[name] for fact in facts
                   for name in [fact.get("dra.net/ifName", {}).get("string")] if name in there)

    def published(self, driver=None):
        """{its name: the device} of a driver, or of that of its NICs, as the API server has them."""
        return {each["name"]: each for found in self.node.cluster.api.get(self.api, "ResourceSlice")
                if found["spec"]["driver"] == (driver or self.driver) and found["spec"].get("nodeName") == self.node.name
                for each in found["spec"].get("devices") or ()}  # 1.34 writes null for none

    def registered(self):
        """The kubelet keeps a connection to the socket of a driver that it knows."""
        return all(self.node.ok(["ss", "-xH", "state", "connected", "src",
                                 f"/var/lib/kubelet/plugins/{driver}/{self.socket}"]).strip() for driver in self.drivers)

    @property
    def folder(self):
        """Of its checkpoints, as the node sees it."""
        return self.node.path(self.state / self.driver)

    def checkpoints(self):
        """Of all its drivers."""
        return sorted(path.stem for driver in self.drivers for path in (self.folder.parent / driver).glob("*.json"))

    def log(self):
        return (self.node.folder / f"{self.name}.log").read_text(errors="replace")[-4000:]

    def kill(self):
        """SIGKILL."""
        self.node.kill_daemon(self.name)

    def stop(self):
        """SIGTERM; it ends, and no sanitizer has a word to say."""
        self.node.ok(["pkill", "-TERM", "-x", self.name])
        wait(lambda: f"{self.name} survives SIGTERM:\n{self.log()}",
             lambda: self.node.run(["pgrep", "-x", self.name]).returncode, 60)
        assert "ending on signal 15" in self.log() and "Sanitizer" not in self.log(), self.log()
