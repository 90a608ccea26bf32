# SPDX-License-Identifier: Apache-2.0
"""Pods that claim NICs, on real nodes, while everything below them is killed, stopped, filled up and damaged.

A pod looks itself whether its interface is there with its address, at its start and at its end; the storm looks at
checkpoints for a device that two claims have."""
import collections
import json
import random
import time

from .plugin import NIC

POD_S = 240      # from a pod's creation to its end, through all faults
LANES = 3        # pods at a time on a node
SCRIPT = """look() {{ ip -4 -o addr show net1 | grep -qF " {address} " || {{ echo "$1: $(ip -o addr)"; exit $2; }}; }}
look "started without its NIC" 7; sleep {seconds}; look "its NIC was taken away" 8"""
STATE_SIZE = "256k"
ORDERS = "/run/drarun/orders"


class Storm:
    """plugins: one for each node, running, with their Nics in nics. faults: names of this class' methods."""

    faults = ("kill", "stop", "end", "fill", "truncate", "kubelet", "containerd")

    def __init__(self, plugins, nics, count, seed, every=2.0):
        self.plugins, self.nics, self.count, self.every = plugins, nics, count, every
        self.cluster, self.random = plugins[0].node.cluster, random.Random(seed)
        self.tally = collections.Counter()
        self.problems, self.took, self.failed = [], [], []
        self.alive = {}  # name: (node index, created)
        self.made, self.rolled, self.deck = 0, 0, []
        self.struck = set()

    def __enter__(self):
        """The plugins keep their state on a disk that can be full."""
        self.remount(["mount", "-t", "tmpfs", "-o", f"size={STATE_SIZE},mode=700", "tmpfs"])
        return self

    def __exit__(self, *_):
        self.remount(["umount"])

    def remount(self, words):
        for plugin in self.plugins:
            plugin.stop()
            for folder in (plugin.state / NIC, ORDERS):
                plugin.node.ok(["mkdir", "-p", "-m", "700", folder])
                plugin.node.ok([*words, folder])
            plugin.start()
        for plugin in self.plugins:
            plugin.wait()

    # ---- faults: each leaves the plugin running ----

    def kill(self, plugin):
        plugin.kill()
        self.pause(1)
        plugin.start()

    def end(self, plugin):
        plugin.stop()
        plugin.start()

    def stop(self, plugin):
        plugin.node.ok(["pkill", "-STOP", "-x", plugin.name])
        self.pause(3)
        plugin.node.ok(["pkill", "-CONT", "-x", plugin.name])

    def fill(self, plugin):
        """No space for checkpoints, or for orders when the checkpoint is there."""
        full = f"{self.random.choice((plugin.state / NIC, ORDERS))}/full"
        plugin.node.run(["sh", "-c", f"cat /dev/zero >{full}"])
        self.pause(3)
        plugin.node.ok(["rm", full])

    def truncate(self, plugin):
        """A checkpoint ends at any byte, as after a crash of a file system without order."""
        plugin.kill()
        found = plugin.checkpoints()
        if found:
            path = plugin.folder / f"{self.random.choice(found)}.json"
            whole = path.read_bytes()
            path.write_bytes(whole[:self.random.randrange(len(whole))])
            self.tally["checkpoints truncated"] += 1
        plugin.start()

    def kubelet(self, plugin):
        plugin.node.stop_kubelet()
        self.pause(1)
        plugin.node.start_kubelet()

    def containerd(self, plugin):
        plugin.node.stop_containerd()
        self.pause(1)
        plugin.node.start_containerd()

    def strike(self, plugin):
        """Each fault once before one comes again."""
        self.deck = self.deck or self.random.sample(self.faults, len(self.faults))
        name = self.deck.pop()
        self.tally[f"fault: {name}"] += 1
        self.struck.add(name)
        getattr(self, name)(plugin)

    def roll(self, plugin):
        """As a rolling update: the next one serves before the last one goes. Not one of faults: no Prepare may fail."""
        self.rolled += 1
        after = type(plugin)(plugin.node, name=f"plugin-{self.rolled}", instance=f"u{self.rolled}").start().wait()
        self.pause(1)
        self.plugins[self.plugins.index(plugin)] = after
        plugin.stop()

    def pause(self, longest):
        end = time.monotonic() + self.random.uniform(0, longest)
        while time.monotonic() < end:
            self.look()
            time.sleep(0.1)

    # ---- pods ----

    def make_pod(self, node):
        name, address = f"storm-{self.made}", f"10.94.{100 + self.made // 250}.{1 + self.made % 250}/16"
        self.made += 1
        parameters = {"interface": {"name": "net1", "addresses": [address]}}
        self.cluster.api.make({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {
                "requests": [{"name": "nic", "exactly": {"deviceClassName": NIC}}],
                "config": [{"requests": ["nic"], "opaque": {"driver": NIC, "parameters": parameters}}]}}})
        script = SCRIPT.format(address=address, seconds=f"{self.random.uniform(0, 2):.2f}")
        self.cluster.pod(name, ["sh", "-c", script], container={"resources": {"claims": [{"name": "nics"}]}},
                         nodeSelector={"kubernetes.io/hostname": self.plugins[node].node.name},
                         resourceClaims=[{"name": "nics", "resourceClaimName": name}]).make()
        self.alive[name] = node, time.monotonic()

    def remove(self, name, grace=None):
        self.cluster.api.delete("v1", "Pod", name, "default", grace)
        self.cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", name, "default")

    def judge(self, pod):
        name, phase = pod["metadata"]["name"], pod["status"].get("phase")
        node, created = self.alive[name]
        if phase == "Succeeded":
            self.tally["pods that had their NIC to the end"] += 1
            self.took.append(time.monotonic() - created)
        elif phase == "Failed":
            self.judge_failed(name, pod)
        elif time.monotonic() - created > POD_S:
            self.problems.append(f"{name} is {phase} after {POD_S} s:\n" +
                                 self.cluster.kubectl("describe", "pod", name) + self.plugins[node].log())
        elif self.random.random() < 0.01 and phase == "Running":
            self.tally["pods deleted by force"] += 1
        else:
            return
        del self.alive[name]
        self.remove(name, 0 if phase == "Running" else None)

    def judge_failed(self, name, pod):
        """7 and 8 are the pod's own words for what must not be; a runtime that was killed has others."""
        ended = [each["state"].get("terminated", {}) for each in pod["status"].get("containerStatuses", ())]
        code = ended[0].get("exitCode") if ended else None
        if code in (7, 8):
            self.problems.append(f"{name}: {self.cluster.kubectl('logs', name)}{json.dumps(ended)}")
        why = (ended[0].get("message") or ended[0].get("reason")) if ended else pod["status"].get("reason")
        self.failed.append(f"{name}: {why}")
        self.tally["pods that failed by a fault"] += 1

    # ---- what must always be so ----

    def holders(self, plugin):
        """{(device, claim's UID)}, of checkpoints that can be read."""
        found = set()
        for path in plugin.folder.glob("*.json"):
            try:
                found |= {(each["device"], path.stem) for each in json.loads(path.read_text())["devices"]}
            except (OSError, ValueError):
                continue
        return found

    def look(self):
        """Looked at twice: while one looks, one claim may go and the next one come."""
        for plugin in self.plugins:
            held = self.holders(plugin)
            if len({device for device, _ in held}) < len(held):
                held &= self.holders(plugin)
            if len({device for device, _ in held}) < len(held):
                self.problems.append(f"{plugin.node.name}: a device is given twice: {sorted(held)}\n{plugin.log()}")
        for nics in self.nics:
            nics.replug()

    def turn(self):
        """One look at all pods, and new ones in the place of those that have ended."""
        self.look()
        for pod in self.cluster.api.get("v1", "Pod"):
            if pod["metadata"]["name"] in self.alive and not pod["metadata"].get("deletionTimestamp"):
                self.judge(pod)
        for node in range(len(self.plugins)):
            if self.more() and sum(each == node for each, _ in self.alive.values()) < LANES:
                self.make_pod(node)

    def more(self):
        """Whether pods are wanted still: so many, and until each fault has struck."""
        return self.made < self.count or len(self.struck) < len(self.faults)

    def run(self):
        """Problems, as texts."""
        fault = time.monotonic() + self.every
        while (self.more() or self.alive) and len(self.problems) < 5:
            self.turn()
            if time.monotonic() > fault and self.more():
                self.strike(self.random.choice(self.plugins))
                fault = time.monotonic() + self.random.uniform(0.5, 1.5) * self.every
            time.sleep(0.1)
        for name in list(self.alive):
            self.remove(name, 0)
        return self.problems

    def leftovers(self):
        """What is still there of claims that have all ended."""
        found = []
        for plugin in self.plugins:
            for folder in (plugin.state / NIC, ORDERS, "/var/run/cdi"):
                found += [f"{plugin.node.name}: {folder}/{name}" for name in plugin.node.ok(["ls", folder]).split()]
            there = json.loads(plugin.node.ok(["ip", "-j", "addr"]))
            found += [f"{plugin.node.name}: {each['ifname']} {address['local']}" for each in there
                      for address in each["addr_info"] if address["local"].startswith("10.94.") and each["ifname"] != "rail0"]
            found += [f"{plugin.node.name}: {each['ifname']}" for each in there
                      if each["ifname"].startswith("net1") or each["ifname"].startswith("dev")]
        return found


    def summary(self):
        took, log = sorted(self.took), "".join((each.node.folder / f"{each.name}.log").read_text(errors="replace")
                                               for each in self.plugins)
        self.tally["Prepare failed without space"] = log.count("No space left")
        self.tally["damaged checkpoints seen"] = log.count("undone by its orders") + log.count("written again")
        return "; ".join(f"{count} {what}" for what, count in sorted(self.tally.items())) + (
            f"; from a pod's creation to its end: median {took[len(took) // 2]:.1f} s, p90 "
            f"{took[len(took) * 9 // 10]:.1f} s, longest {took[-1]:.1f} s" if took else "") + "".join(f"\n{each}" for each in self.failed)
