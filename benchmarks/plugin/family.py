# SPDX-License-Identifier: Apache-2.0
"""What the node plugin costs: discovery, starts, calls of the kubelet, pods with NICs, and doing nothing."""
from benchmarks.harness.command import Family

from . import agent, discovery, idle, pods, prepare, reuse, starts
from .node_bed import NodeBed


class Scale:
    """rounds: of every row that starts pods; calls: of the kubelet; readings: of the devices; starts: of each program; idle: seconds."""

    def __init__(self, rounds, calls, readings, starts_each, idle_s):
        self.rounds, self.calls, self.readings, self.starts, self.idle_s = rounds, calls, readings, starts_each, idle_s


FAMILY = Family(
    "The node plugin", "One real node of tests/support/cluster on this machine beside its API server, etcd and scheduler; {rounds} "
    "in turns, the order reversed every other round.",
    {"usual": Scale(11, 500, 500, 200, 60), "smoke": Scale(1, 5, 5, 2, 2), "full": Scale(41, 5000, 2000, 1000, 3600)},
    {"discovery": discovery.run, "starts": starts.run},
    {"pods": pods.run, "agent": agent.run, "reuse": reuse.run, "idle": idle.run,
     "prepare": prepare.run},  # the last one ends the kubelet
    NodeBed, programs=["bin/drarun", "bin/drarun-plugin", "bin/bench/discover", "bin/bench/stopwatch"])
