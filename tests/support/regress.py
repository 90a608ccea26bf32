# SPDX-License-Identifier: Apache-2.0
"""The inputs below tests/regress, and trees of sysfs, procfs and dev from a machine.json:

    python3 tests/support/regress.py DIR < machine.json

{"gpus": [{"path": "pci0000:10/0000:10:01.0/0000:11:00.0", "numa": 0, "vendor": "0x10de", "device": "0x2330",
           "class": "0x030200", "product": "...", "uuid": "...", "kfd": true}],
 "nics": [{"path": ..., "numa": 0, "ib": "mlx5_0", "netdev": "eth2", "link": "Ethernet", "rate": "400 Gb/sec (4X NDR)",
           "ports": [{"n": 1, "state": "4: ACTIVE", "gids": [["fe80:...", "IB/RoCE v1", "eth2"], ...]}],
           "master": "bond0", "given": true, "vendor": ..., "device": ..., "sf": "mlx5_core.sf.4"}],
 "netdevs": [{"name": "eth0", "mac": ..., "slaves": [...], "master": ...}],
 "files": {"proc/...": "text"}, "cpus": {"0": "0-31", "1": "32-63"}}

A GID is [text or null, type or null, interface or null]: without a text the entry is empty, without a type its
interface is in another network namespace.
"""
import json
import os
import sys
from pathlib import Path

REGRESS = Path(__file__).resolve().parents[1] / "regress"
ZERO_GID = ":".join(["0000"] * 8)
NVIDIA = "0x10de"
BRIDGE = ("0x060400", "0x1000", "0xc030")


def load(case):
    """The machine.json of a case."""
    return json.loads((REGRESS / case / "machine.json").read_text())


class Tree:
    def __init__(self, root):
        self.root = str(root)
        self.uverbs = 0

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(f"{text}\n")

    def values(self, folder, values):
        for name, text in values.items():
            self.write(os.path.join(folder, name), text)

    def link(self, path, target):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(os.path.relpath(os.path.join(self.root, target), os.path.dirname(path)), path)

    def function(self, path, ids, numa):
        """A PCI function with the bridges above it; ids: class, vendor, device."""
        parts = path.split("/")
        for i in range(1, len(parts)):
            folder = "sys/devices/" + "/".join(parts[:i + 1])
            if os.path.exists(os.path.join(self.root, folder, "class")):
                continue
            values = dict(zip(("class", "vendor", "device"), ids if i == len(parts) - 1 else BRIDGE))
            self.values(folder, dict(values, numa_node=numa, max_link_speed="32.0 GT/s PCIe", max_link_width=16,
                                     current_link_speed="32.0 GT/s PCIe", current_link_width=16))
            self.link(f"sys/bus/pci/devices/{parts[i]}", folder)
        return "sys/devices/" + path

    def gpu(self, index, gpu):
        vendor = gpu.get("vendor", NVIDIA)
        self.function(gpu["path"], (gpu.get("class", "0x030200"), vendor, gpu.get("device", "0x2330")),
                      gpu.get("numa", 0))
        if vendor != NVIDIA:
            self.write(f"dev/dri/renderD{128 + index}", "")
            if gpu.get("kfd", True):
                self.write("dev/kfd", "")
            return
        address = gpu["path"].split("/")[-1]
        uuid = gpu.get("uuid", "GPU-00000000-0000-0000-0000-%012d" % index)
        self.write(f"proc/driver/nvidia/gpus/{address}/information",
                   f"Model: \t\t {gpu.get('product', 'NVIDIA H100 80GB HBM3')}\nGPU UUID: \t {uuid}\n"
                   f"Bus Location: \t {address}\nDevice Minor: \t {index}")
        self.write(f"dev/nvidia{index}", "")

    def interface(self, function, nic, name):
        folder = f"{function}/net/{name}"
        self.values(folder, {"address": nic.get("mac", "02:00:00:00:00:%02x" % self.uverbs),
                             "mtu": nic.get("mtu", 9000), "operstate": nic.get("operstate", "up"),
                             "speed": nic.get("speed", 400000)})
        self.link(f"{folder}/device", function)
        self.link(f"sys/class/net/{name}", folder)
        if nic.get("master"):
            self.link(f"{folder}/master", f"sys/devices/virtual/net/{nic['master']}")

    def port(self, device, nic, port):
        folder = f"{device}/ports/{port['n']}"
        self.values(folder, {"state": port.get("state", "4: ACTIVE"),
                             "link_layer": port.get("link", nic.get("link", "Ethernet")),
                             "rate": port.get("rate", nic.get("rate", "400 Gb/sec (4X NDR)"))})
        os.makedirs(os.path.join(self.root, folder, "gids"), exist_ok=True)
        for index, (text, kind, netdev) in enumerate(port.get("gids", [])):
            self.write(f"{folder}/gids/{index}", text or ZERO_GID)
            if text and kind:
                self.write(f"{folder}/gid_attrs/types/{index}", kind)
            if text and netdev:
                self.write(f"{folder}/gid_attrs/ndevs/{index}", netdev)

    def nic(self, nic):
        function = self.function(nic["path"], (nic.get("class", "0x020000"), nic.get("vendor", "0x15b3"),
                                               nic.get("device", "0x1021")), nic.get("numa", 0))
        if nic.get("sf"):
            function = f"{function}/{nic['sf']}"
        names = nic.get("netdev") or []
        for name in [names] if isinstance(names, str) else names:
            self.interface(function, nic, name)
        if not nic.get("ib"):
            return
        device = f"{function}/infiniband/{nic['ib']}"
        self.link(f"{device}/device", function)
        self.link(f"sys/class/infiniband/{nic['ib']}", device)
        if nic.get("node_type"):
            self.write(f"{device}/node_type", nic["node_type"])
        self.values(device, {"node_guid": "0200:0000:0000:%04x" % self.uverbs, "fw_ver": "28.39.1002",
                             "board_id": "MT_0000000838"})
        self.write(f"{function}/infiniband_verbs/uverbs{self.uverbs}/ibdev", nic["ib"])
        if nic.get("given", True):
            self.write(f"dev/infiniband/uverbs{self.uverbs}", "")
        self.uverbs += 1
        for port in nic.get("ports", [{"n": 1}]):
            self.port(device, nic, port)

    def netdev(self, netdev):
        folder = f"sys/devices/virtual/net/{netdev['name']}"
        self.values(folder, {"address": netdev.get("mac", "0a:58:0a:00:00:01"), "mtu": netdev.get("mtu", 1500),
                             "operstate": netdev.get("operstate", "up")})
        for name in netdev.get("slaves", []):
            self.link(f"{folder}/lower_{name}", f"sys/class/net/{name}")
        if netdev.get("master"):
            self.link(f"{folder}/master", f"sys/devices/virtual/net/{netdev['master']}")
        self.link(f"sys/class/net/{netdev['name']}", folder)

    def host(self, cpus):
        for node, cpulist in cpus.items():
            self.values(f"sys/devices/system/node/node{node}", {"cpulist": cpulist, "distance": "10 21"})
        self.values("", {
            "sys/devices/system/node/online": f"0-{len(cpus) - 1}", "sys/devices/system/cpu/online": "0-63",
            "sys/module/nvidia_peermem/version": "1",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20",
            "proc/sys/kernel/osrelease": "6.8.0", "proc/version": "Linux version 6.8.0",
            "proc/self/limits": "Max locked memory         unlimited            unlimited            bytes"})


def make_tree(machine, root):
    tree = Tree(root)
    for index, gpu in enumerate(machine.get("gpus", [])):
        tree.gpu(index, gpu)
    for nic in machine.get("nics", []):
        tree.nic(nic)
    for netdev in machine.get("netdevs", []):
        tree.netdev(netdev)
    tree.host(machine.get("cpus", {"0": "0-31", "1": "32-63"}))
    for path, text in machine.get("files", {}).items():
        tree.write(path, text)
    return root


if __name__ == "__main__":
    make_tree(json.load(sys.stdin), sys.argv[1])
