# SPDX-License-Identifier: Apache-2.0
"""The addresses of a cluster, and the network namespace that holds its bridge.

Without nodes everything is on the loopback of where the test runs. With nodes it is in a namespace of
its own: a bridge with the API server at 10.99.0.1 and node I at 10.99.0.(10+I), whose pods have
10.98.I.0/24, routed; or the same with IPv6 alone. The API's service address is this namespace's own, so
that pods reach it without kube-proxy; no other service address works, headless services do by DNS."""
import select
import subprocess
import typing

import pytest

from ..build import patience
from ..ports import free_ports

NOWHERE = "02:00:00:00:00:01"  # a hardware address that nobody has


class Family(typing.NamedTuple):
    """The addresses of nodes and pods. service: the first of services, always the API server's."""
    api: str
    service: str
    services: str
    bits: int  # of the nodes' network
    nodes: str
    pods: str
    everywhere: str  # to listen on
    default: str  # route
    forwarding: str
    flags: str  # of an address

    def node_address(self, index):
        return self.nodes.format(10 + index)

    def pod_network(self, index):
        return self.pods.format(index)

    def url(self, host, port):
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    def hold(self):
        """A shell's words that make the bridges and hold them."""
        return ("ip link set lo up && ip link add br0 type bridge forward_delay 0 && ip link set br0 up && "
                f"ip addr add {self.api}/{self.bits} dev br0 {self.flags} && ip addr add {self.service} dev lo && "
                "ip link add br1 type bridge forward_delay 0 && ip link set br1 up && "  # joins their rails
                f"echo 1 >{self.forwarding} && echo ready && exec sleep infinity")


IPV4 = Family("10.99.0.1", "10.96.0.1", "10.96.0.0/16", 24, "10.99.0.{}", "10.98.{}.0/24", "0.0.0.0", "0.0.0.0/0",
              "/proc/sys/net/ipv4/ip_forward", "")
IPV6 = Family("fd00:99::1", "fd00:96::1", "fd00:96::/112", 64, "fd00:99::{}", "fd00:98:0:{}::/64", "::", "::/0",
              "/proc/sys/net/ipv6/conf/all/forwarding", "nodad")


class Loopback:
    pid = None
    under = ()

    def __init__(self):
        self.family, self.api = IPV4, "127.0.0.1"
        self.api_port, self.etcd_port, self.peer_port, *self.others = free_ports(6)

    def close(self):
        pass


class Bridge:
    """pid: a process that holds the namespace; under: words before a command that runs in it."""

    def __init__(self, family=IPV4):
        self.family = family
        self.api, self.api_port, self.etcd_port, self.peer_port = family.api, 443, 2379, 2380
        self.others = (10257, 10259, 10260)
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", family.hold()],
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
