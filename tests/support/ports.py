# SPDX-License-Identifier: Apache-2.0
"""Ports whose number is known before somebody listens there, or after."""
import random
import socket
from pathlib import Path


def free_ports(count, make=socket.socket, host="127.0.0.1"):
    """Ports that nobody has right now, of those that the kernel gives to no connection: one would be taken again before its
    server listens. All are held until the last one is known. make: gives a socket, which may be one of another network."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    wanted, held = random.sample(range(10000, max(first, 20000)), 1000), []
    while len(held) < count:
        each = make()
        try:
            each.bind((host, wanted.pop()))
            held.append(each)
        except OSError:
            each.close()
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def free_port(*where):
    return free_ports(1, *where)[0]
