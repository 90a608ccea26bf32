# SPDX-License-Identifier: Apache-2.0
"""Ports whose number is known before somebody listens there, or after."""
import contextlib
import random
import socket
from pathlib import Path


LOWEST, TRIES = 10000, 1000
DEFAULT_FIRST = 32768  # of the kernel's own range, in a network whose setting nobody has changed


def _below(first):
    """The end of the choice, where the kernel's own range begins at first. If that leaves little, as `1024 65535` does, a port of
    that range: a connection may then take it before its server listens, which of ten thousand is unlikely."""
    return max(min(first, DEFAULT_FIRST), 2 * LOWEST)


def free_ports(count, make=socket.socket, host="127.0.0.1"):
    """Ports that nobody has right now, of those that the kernel gives to no connection (but see _below): one would be taken again
    before its server listens. All are held until the last one is known. make: gives a socket, which may be one of another network,
    whose range is its own."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    held = []
    with contextlib.ExitStack() as sockets:
        for port in random.sample(range(LOWEST, _below(first)), TRIES):
            each = sockets.enter_context(make())
            try:
                each.bind((host, port))
                held.append(port)
            except OSError as err:
                each.close()
                last = err
            if len(held) == count:
                return held
    raise last


def free_port(*where):
    return free_ports(1, *where)[0]
