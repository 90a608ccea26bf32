# SPDX-License-Identifier: Apache-2.0
"""Makes the files that a machine of tests/data/fixtures would show: sysfs, procfs, /dev.

    python3 tests/support/sysfs_tree.py tests/data/fixtures/a4-highgpu-8g.json DIR [ADDRESS...]

The addresses are the PCI functions whose nodes are under /dev, as in a pod that was given them; all
of them by default. What a fixture's `truth` does not say (ids of bridges, root ports) is made up, in
the shape that Linux shows.
"""
import json
import os
import sys
from pathlib import Path

GPU_IDS = {80: "0x20b2", 89: "0x27b8", 90: "0x2330", 100: "0x2901"}
IB_RATES = {100000: "100 Gb/sec (4X EDR)", 200000: "200 Gb/sec (4X HDR)", 400000: "400 Gb/sec (4X NDR)"}
ZERO_GID = ":".join(["0000"] * 8)


def attributes(fixture):
    """PCI address -> attributes of the device in a slice, without their domains."""
    found = {}
    for piece in fixture["resourceSlices"]:
        for device in piece["spec"]["devices"]:
            raw = device.get("basic", device).get("attributes", {})
            flat = {name.split("/")[-1]: next(iter(value.values())) for name, value in raw.items()}
            address = flat.get("pciBusID") or flat.get("pciAddress")
            if address and flat.get("type") != "mig":  # a MIG device tells its parent's address
                found[address] = flat
    return found


def leaves(tree, switches=()):
    if "dev" in tree:
        yield tree["dev"], switches
    for child in tree.get("children", []):
        yield from leaves(child, (*switches, tree["switch"]))


def cpu_ids(text):
    ids = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        ids += range(int(low), int(high or low) + 1)
    return sorted(ids)


class Tree:
    def __init__(self, fixture, root, given=None):
        self.truth, self.root = fixture["truth"], Path(root)
        self.name = fixture.get("fixture", "")
        self.attributes = attributes(fixture)
        self.given = given
        self.ports = {}      # switch -> downstream ports so far
        self.root_ports = {}  # root -> root ports so far
        self.minor = self.uverbs = 0

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def link(self, path, target):
        """A relative link, as sysfs has them, to a path of the tree."""
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(self.root / target, path.parent))

    def is_given(self, address):
        return self.given is None or address in self.given

    # ---- PCI

    def function(self, path, class_code, vendor, device, numa, width=16, speed="32.0 GT/s PCIe"):
        if (self.root / path / "class").exists():
            return
        values = {"class": class_code, "vendor": vendor, "device": device, "subsystem_vendor": vendor,
                  "subsystem_device": "0x0000", "numa_node": numa, "current_link_speed": speed,
                  "max_link_speed": speed, "current_link_width": width, "max_link_width": width}
        for name, value in values.items():
            self.write(f"{path}/{name}", value)
        self.link(f"sys/bus/pci/devices/{path.split('/')[-1]}", path)

    def bridge(self, path, numa):
        self.function(path, "0x060400", "0x1000", "0xc030", numa)

    def pcie_root(self, address, switches):
        top = switches[0] if switches and not switches[0].startswith("ffff") else address
        known = self.attributes.get(address, {}).get("pcieRoot")
        return known or f"pci{top.rsplit(':', 1)[0]}"

    def place(self, address, switches, numa):
        """The function's directory; makes the bridges above it."""
        switches = [switch for switch in switches if not switch.startswith("ffff")]  # of a topology file
        root = self.pcie_root(address, switches)
        path = f"sys/devices/{root}"
        if self.name.startswith("azure"):  # Hyper-V passes each function through as a bus of its own
            return (f"sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/"
                    f"{address[:4]}5d20-0000-0000-0000-000000000000/{root}/{address}")
        if address.startswith(root[3:] + ":"):
            return f"{path}/{address}"
        ports = self.root_ports.setdefault(root, {})
        key = switches[0] if switches else address.rsplit(":", 1)[0]
        ports.setdefault(key, f"{root[3:]}:{len(ports) + 1:02x}.0")
        path += f"/{ports[key]}"
        self.bridge(path, numa)
        for switch, below in zip(switches, [*switches[1:], address]):
            path += f"/{switch}"
            self.bridge(path, numa)
            downstream = self.ports.setdefault(switch, {})
            downstream.setdefault(below, f"{switch.rsplit(':', 1)[0]}:{16 + len(downstream):02x}.0")
            path += f"/{downstream[below]}"
            self.bridge(path, numa)
        return f"{path}/{address}"

    # ---- devices

    def gpu(self, address, path, numa):
        gpu, known = self.truth["gpu"], self.attributes.get(address, {})
        device = "0x2941" if gpu["c2c"] else GPU_IDS[gpu["sm"]]
        self.function(path, "0x030200", "0x10de", device, numa)
        uuid = known.get("uuid", f"GPU-00000000-0000-0000-0000-{self.minor:012d}")
        product = known.get("productName", "NVIDIA GB200" if gpu["c2c"] else "NVIDIA GPU")
        self.write(f"proc/driver/nvidia/gpus/{address}/information",
                   f"Model: \t\t {product}\nIRQ:   \t\t 64\nGPU UUID: \t {uuid}\nBus Type: \t PCIe\n"
                   f"Bus Location: \t {address}\nDevice Minor: \t {self.minor}\nGPU Excluded:\t No")
        if self.is_given(address):
            self.write(f"dev/nvidia{self.minor}", "")
        self.minor += 1

    def nic(self, address, path, nic, numa):
        efa, ib = nic["linkLayer"] == "EFA", nic["linkLayer"] == "InfiniBand"
        vendor, device = ("0x1d0f", "0xefa1") if efa else ("0x15b3", "0x1021")
        if not nic["ibdev"]:
            vendor, device = "0x1ae0", "0x0042"
        self.function(path, "0x020700" if ib else "0x020000", vendor, device, numa)
        number = len(list((self.root / "sys/class/net").iterdir())) if (self.root / "sys/class/net").exists() else 0
        if nic["netdev"]:
            self.netdev(path, nic, f"02:00:00:00:00:{number:02x}", ib)
        if nic["ibdev"]:
            self.rdma(address, path, nic, efa)

    def netdev(self, path, nic, mac, ib):
        base = f"{path}/net/{nic['netdev']}"
        values = {"address": f"00:00:10:49:fe:80:00:00:00:00:00:00:00:00:{mac}" if ib else mac,
                  "mtu": 4092 if ib else 8896, "speed": nic["speedMbps"], "operstate": "up",
                  "type": 32 if ib else 1}
        for name, value in values.items():
            self.write(f"{base}/{name}", value)
        self.link(f"{base}/device", path)
        self.link(f"sys/class/net/{nic['netdev']}", base)

    def rdma(self, address, path, nic, efa):
        base = f"{path}/infiniband/{nic['ibdev']}"
        port = f"{base}/ports/{nic['port']}"
        self.write(f"{base}/node_guid", f"{int(address.replace(':', '').replace('.', ''), 16):016x}"[:16])
        self.write(f"{base}/fw_ver", "0.0.0.0" if efa else "28.41.1000")
        self.write(f"{port}/state", "4: ACTIVE")
        self.write(f"{port}/phys_state", "5: LinkUp")
        self.write(f"{port}/link_layer", "Unspecified" if efa else nic["linkLayer"])
        self.write(f"{port}/rate", IB_RATES[nic["speedMbps"]])
        for index in range(8):
            self.write(f"{port}/gids/{index}", ZERO_GID)
        if efa or nic["linkLayer"] == "InfiniBand":  # the subnet's prefix and the port's own number; EFA's driver has one, too
            self.write(f"{port}/gids/0", f"fe80:0000:0000:0000:0000:0000:0000:{self.uverbs + 1:04x}")
        for gid in nic.get("gids", []):
            self.gid(port, nic, gid)
        self.link(f"{base}/device", path)
        self.link(f"sys/class/infiniband/{nic['ibdev']}", base)
        uverbs = f"uverbs{self.uverbs}"
        self.uverbs += 1
        self.write(f"{path}/infiniband_verbs/{uverbs}/ibdev", nic["ibdev"])
        if self.is_given(address):
            self.write(f"dev/infiniband/{uverbs}", "")
            self.write("dev/infiniband/rdma_cm", "")

    def gid(self, port, nic, gid):
        a, b, c, d = map(int, gid["ip"].split("."))
        text = f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"
        self.write(f"{port}/gids/{gid['index']}", text)
        kind = "RoCE v2" if gid["type"] == "RoCE v2" else "IB/RoCE v1"
        self.write(f"{port}/gid_attrs/types/{gid['index']}", kind)
        self.write(f"{port}/gid_attrs/ndevs/{gid['index']}", nic["netdev"])

    # ---- the rest

    def cpus(self):
        cpu = self.truth["cpu"]
        ids = sorted(i for node in cpu["numa"] for i in cpu_ids(node["cpus"]))
        self.write("sys/devices/system/cpu/online", f"0-{ids[-1]}")
        self.write("sys/devices/system/node/online", f"0-{len(cpu['numa']) - 1}" if len(cpu["numa"]) > 1 else "0")
        for node in cpu["numa"]:
            self.write(f"sys/devices/system/node/node{node['id']}/cpulist", node["cpus"])
        if cpu["arch"] == "x86_64":
            self.write("proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {cpu['vendor']}\n"
                       f"cpu family\t: {cpu['family']}\nmodel\t\t: {cpu['model']}\nmodel name\t: x")
        else:
            self.write("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41")

    def modules(self):
        gdr, arch = self.truth["gdr"], self.truth["cpu"]["arch"]
        kind = "Open Kernel Module for" if gdr["dmabuf"] else ""
        kind = f"{kind} {arch} " if kind else f"{arch} Kernel Module "
        self.write("proc/driver/nvidia/version",
                   f"NVRM version: NVIDIA UNIX {kind} 570.133.20  Release Build\nGCC version: 12")
        self.write("proc/sys/kernel/osrelease", "6.8.0-1024")
        (self.root / "sys/module").mkdir(parents=True, exist_ok=True)
        if gdr["peermem"]:
            self.write("sys/module/nvidia_peermem/version", "570.133.20")
        if "fabric" in self.truth:
            self.write("dev/nvidia-caps-imex-channels/channel0", "")

    def make(self):
        self.cpus()
        self.modules()
        for entry in self.truth["pci"]:
            for address, switches in leaves(entry["tree"]):
                path, nic = self.place(address, switches, entry["numa"]), self.truth["nics"].get(address)
                if nic:
                    self.nic(address, path, nic, entry["numa"])
                else:
                    self.gpu(address, path, entry["numa"])
        for path, there in self.truth.get("files", {}).items():
            if there:
                self.write(path.lstrip("/"), "")
        return self.root


def make_tree(fixture, root, given=None):
    return Tree(fixture, root, given).make()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as text:
        make_tree(json.load(text), sys.argv[2], set(sys.argv[3:]) or None)
