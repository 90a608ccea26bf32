# SPDX-License-Identifier: Apache-2.0
"""Machines made of namespaces: node0, node1, ... each with a network, a host name and a /dev/shm of
its own, joined by a bridge that lives in one more, "head". Nothing of the host's is touched, and
everything is gone when the processes that hold the namespaces end, which they do with this one."""
import os
import select
import subprocess

import pytest

from .build import patience

IPV4, IPV6 = "10.77.0.{}/24", "fd77::{}/64"
HEAD = 254
READY_S = 60  # of a busy machine
HELD = "ip link set lo up && mount -t sysfs sysfs /sys; mount -t tmpfs -o mode=1777 tmpfs /dev/shm && "


class Node:
    """address: as it stands before a port."""

    def __init__(self, name, address):
        self.name, self.address = name, f"[{address}]" if ":" in address else address
        script = f"hostname {name} && {HELD} echo ready && exec sleep infinity"
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount",
             "--propagation", "private", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # --root: in a chroot, entering the mount namespace alone would leave it
        self.enter = ["nsenter", "-t", str(self.holder.pid), "--net", "--uts", "--mount", "--root",
                      f"--wdns={os.getcwd()}"]
        readable, _, _ = select.select([self.holder.stdout], [], [], patience(READY_S))
        if not readable or self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            reason = self.holder.communicate()[1].strip() or "no answer"
            pytest.skip(f"cannot make network namespaces: {reason}")

    def run(self, *argv, **how):
        """Runs a command on this node and returns its stdout."""
        command = [*self.enter, *map(str, argv)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience(), **how)
        assert done.returncode == 0, f"{self.name}: {argv}: {done.stderr}"
        return done.stdout

    def close(self):
        self.holder.kill()
        self.holder.communicate()


class Nodes:
    """Behaves as a list of nodes; head is where the launcher runs."""

    def __init__(self, count, network=IPV4):
        self.head, self.list, self.network = None, [], network
        try:
            self.head = self.machine("head", HEAD)
            self.head.run("ip", "link", "add", "br0", "type", "bridge")
            self.connect(self.head, "br0", HEAD)
            for i in range(count):
                self.add(self.machine(f"node{i}", i + 1), i)
        except BaseException:
            self.close()
            raise

    def machine(self, name, number):
        return Node(name, self.network.format(number).split("/")[0])

    def connect(self, node, device, number):
        flags = ["nodad"] if ":" in self.network else []
        node.run("ip", "addr", "add", self.network.format(number), "dev", device, *flags)
        node.run("ip", "link", "set", device, "up")

    def add(self, node, i):
        self.list.append(node)
        self.head.run("ip", "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns",
                      node.holder.pid)
        self.head.run("ip", "link", "set", f"v{i}", "master", "br0", "up")
        self.connect(node, "eth0", i + 1)

    def __iter__(self):
        return iter(self.list)

    def __len__(self):
        return len(self.list)

    def __getitem__(self, index):
        return self.list[index]

    def close(self):
        for node in [*self.list, *filter(None, [self.head])]:
            node.close()
