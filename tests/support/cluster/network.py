# SPDX-License-Identifier: Apache-2.0
"""The addresses of a cluster, and the network namespace that holds its bridge.

Without nodes everything is on the loopback of where the test runs. With nodes it is in a namespace of
its own: a bridge with the API server at 10.99.0.1 and node I at 10.99.0.(10+I), whose pods have
10.98.I.0/24, routed. The API's service address is this namespace's own, so that pods reach it without
kube-proxy; no other service address works, headless services do by DNS."""
import select
import socket
import subprocess

import pytest

from ..build import patience

API = "10.99.0.1"
SERVICE = "10.96.0.1"  # the first of the service range, always the API server's
NOWHERE = "02:00:00:00:00:01"  # a hardware address that nobody has
HOLD = ("ip link set lo up && ip link add br0 type bridge forward_delay 0 && "
        f"ip addr add {API}/24 dev br0 && ip link set br0 up && ip addr add {SERVICE}/32 dev lo && "
        "ip link add br1 type bridge forward_delay 0 && ip link set br1 up && "  # joins their rails
        "echo 1 >/proc/sys/net/ipv4/ip_forward && echo ready && exec sleep infinity")


def node_address(index):
    return f"10.99.0.{10 + index}"


def pod_network(index):
    return f"10.98.{index}.0/24"


class Loopback:
    pid = None
    under = ()

    def __init__(self):
        self.api = "127.0.0.1"
        self.api_port, self.etcd_port, self.peer_port, *self.others = free_ports(6)

    def close(self):
        pass


class Bridge:
    """pid: a process that holds the namespace; under: words before a command that runs in it."""

    def __init__(self):
        self.api, self.api_port, self.etcd_port, self.peer_port = API, 443, 2379, 2380
        self.others = (10257, 10259, 10260)
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", HOLD],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, start_new_session=True)
        self.pid = self.holder.pid
        self.under = ("nsenter", "-t", str(self.pid), "--net")
        readable, _, _ = select.select([self.holder.stdout], [], [], patience())
        if not readable or self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            pytest.skip("cannot make network namespaces: " + (self.holder.communicate()[1].strip() or "no answer"))

    def run(self, *argv):
        done = subprocess.run([*self.under, *map(str, argv)], capture_output=True, text=True, timeout=patience())
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return done.stdout

    def close(self):
        self.holder.kill()
        self.holder.communicate()


def free_ports(count):
    """Ports that nobody has right now: all are held until the last one is known."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
