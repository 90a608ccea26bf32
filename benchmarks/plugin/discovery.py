# SPDX-License-Identifier: Apache-2.0
"""One reading of the devices of a machine with 16 GPUs and 32 NICs, whose files are made as tests/support/sysfs_tree.py
makes those of captured ones."""
import re
import subprocess
import tempfile
from pathlib import Path

from support.build import BUILD
from support.sysfs_tree import Tree

GOAL_MS = 10
GPUS, NICS_EACH = 16, 2


def machine(folder):
    """Each GPU below a switch of its own with two NICs, in two domains."""
    truth = {"cpu": {"arch": "x86_64", "vendor": "GenuineIntel", "family": 6, "model": 207,
                     "numa": [{"id": 0, "cpus": "0-55"}, {"id": 1, "cpus": "56-111"}]},
             "gpu": {"sm": 100, "c2c": False}, "gdr": {"dmabuf": True, "peermem": False}, "nics": {}, "pci": []}
    for i in range(GPUS):
        domain, bus = i // 8, 0x10 + 16 * (i % 8)
        children = [{"dev": f"{domain:04x}:{bus + 2 + k:02x}:00.0"} for k in range(1 + NICS_EACH)]
        for nic in children[1:]:
            number = len(truth["nics"])
            truth["nics"][nic["dev"]] = {
                "ibdev": f"mlx5_{number}", "netdev": f"gpu{number}rdma0", "linkLayer": "Ethernet", "port": 1,
                "speedMbps": 400000, "gids": [{"index": index, "type": kind, "ip": f"192.168.{number}.5"}
                                              for index, kind in ((2, "RoCE v1"), (3, "RoCE v2"))]}
        truth["pci"].append({"numa": domain, "tree": {"switch": f"{domain:04x}:{bus:02x}:00.0", "children": children}})
    return Tree({"truth": truth, "resourceSlices": []}, folder).make()


def run(report, scale):
    with tempfile.TemporaryDirectory() as folder:
        argv = [BUILD / "bin/bench/discover", machine(Path(folder)), str(scale.readings)]
        said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600).stdout
    devices, *times = re.fullmatch(r"(\d+) devices: fastest ([\d.]+) ms, median ([\d.]+) ms, CPU ([\d.]+) ms\n", said).groups()
    assert int(devices) == GPUS * (1 + NICS_EACH), said
    report.heading(f"Discovery of {GPUS} GPUs and {GPUS * NICS_EACH} NICs, {scale.readings} times, ms")
    report.table(["fastest", "median", "CPU", "goal", "verdict"])
    report.row(*times, GOAL_MS, report.verdict("discovery, median ms", float(times[1]), GOAL_MS))
