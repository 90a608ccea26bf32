# SPDX-License-Identifier: Apache-2.0
"""Real nodes that show a captured machine to our node plugin: its sysfs, GPUs whose device nodes are /dev/null, NICs whose
interfaces are veths. In a pod that holds some of its devices the sysfs is the machine's too. RDMA devices are in no
kernel here: the plugin's hook is told of none."""
import contextlib
import json
import os
import shutil
import stat

from ..build import BUILD, SOURCE
from ..sysfs_tree import make_tree
from .api import wait
from .devices import fixture
from .plugin import GPU, NIC, Plugin

ROOT = "resource.kubernetes.io/pcieRoot"
PROGRAMS = SOURCE / "tests/cluster"
RDMA = 'device.attributes["dra.net"].rdma == true'
# of the 12 NICs of dgx-h100 the 8 that share a root with a GPU
PAIRED = f'{RDMA} && !device.attributes["dra.net"].pciAddress.startsWith("0000:29") && ' \
         '!device.attributes["dra.net"].pciAddress.startsWith("0000:aa")'
CGROUPS = "sys/fs/cgroup"  # what the runtime mounts there
NULL = os.makedev(1, 3)
SMALL = "a4-highgpu-8g"  # with only(): its NICs have interfaces
CHANGED_S = 90
USER = "machines"  # whose requests in the audit log are the plugin's
OWN_LABELS = ("kubernetes.io/hostname", "kubernetes.io/arch", "nvidia.com/gpu.clique")  # of a captured node, not of ours


def value_of(device, key):
    """Of an attribute, whatever its domain: None where it has none such."""
    for name, value in device["attributes"].items():
        if name.split("/")[-1] == key:
            return next(iter(value.values()))
    return None


@contextlib.contextmanager
def vendor_folders(cluster):
    """What GKE's installers leave on a node, with a script of our own, which write(NODE, text) changes."""
    def write(node, text):
        node.ok(["sh", "-c", f"cat >/home/kubernetes/bin/gib/scripts/set_nccl_env.sh <<'.'\n{text}\n."])
    for node in cluster.nodes:
        node.ok(["mount", "-t", "tmpfs", "none", "/home"])
        node.ok(["mkdir", "-p", *(f"/home/kubernetes/bin/{name}" for name in ("nvidia", "gib/scripts", "gib/configs"))])
        node.ok(["touch", "/home/kubernetes/bin/gib/configs/tuner_config_a4.txtpb"])
        write(node, "echo noise\nexport NCCL_NET=gIB NCCL_IB_TC=77")
    yield write
    for node in cluster.nodes:
        node.ok(["umount", "/home"])


# ---- changes of a fixture ----

def without_interfaces(machine):
    """A veth cannot have an InfiniBand address."""
    for nic in machine["truth"]["nics"].values():
        if nic["linkLayer"] == "InfiniBand":
            nic["netdev"] = None


def only(count):
    """The machine's first GPUs and NICs, so many of each."""
    def change(machine):
        nics = sorted(machine["truth"]["nics"])[:count]
        gpus = [address for address in devices_of(machine) if address not in machine["truth"]["nics"]][:count]
        machine["truth"]["nics"] = {address: machine["truth"]["nics"][address] for address in nics}

        def cut(tree):
            if "dev" in tree:
                return tree if tree["dev"] in (*gpus, *nics) else None
            below = [kept for each in tree["children"] if (kept := cut(each))]
            return {**tree, "children": below} if below else None
        machine["truth"]["pci"] = [{**entry, "tree": kept} for entry in machine["truth"]["pci"]
                                   if (kept := cut(entry["tree"]))]
    return change


def devices_of(machine):
    """PCI addresses of all GPUs and NICs."""
    def leaves(tree):
        return [tree["dev"]] if "dev" in tree else [leaf for each in tree["children"] for leaf in leaves(each)]
    return sorted(leaf for entry in machine["truth"]["pci"] for leaf in leaves(entry["tree"]))


def without_pairs(machine):
    """NICs on roots on which no GPU is."""
    nics = machine["truth"]["nics"]

    def cut(tree):
        if "dev" in tree:
            return None if tree["dev"] in nics else tree
        return {**tree, "children": [kept for each in tree["children"] if (kept := cut(each))]}
    entries = []
    for entry in machine["truth"]["pci"]:
        entries.append({**entry, "tree": cut(entry["tree"]) or {"switch": "ffff:ff:00.0", "children": []}})
    apart = [{"numa": 0, "tree": {"dev": address}} for address in nics]
    machine["truth"]["pci"] = entries + apart
    for piece in machine["resourceSlices"]:
        for device in piece["spec"]["devices"]:
            if value_of(device, "pciAddress") in nics:
                device["attributes"][ROOT]["string"] = device["attributes"][ROOT]["string"].replace("pci0000:", "pci0001:")


def without_rdma(machine):
    """Ethernet NICs that have an interface alone."""
    for nic in machine["truth"]["nics"].values():
        nic.update(ibdev=None, linkLayer="Ethernet")


# ---- machines ----

def make_root(machine, folder):
    """Its tree, with the files of a GPU driver. Device nodes are /dev/null's; programs find those of any machine too."""
    tree = make_tree(machine, folder)
    for folder in (CGROUPS, "dev", "proc/driver"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
    for path in [path for path in (tree / "dev").rglob("*") if path.is_file()]:
        path.unlink()
        os.mknod(path, stat.S_IFCHR | 0o666, NULL)
    for name in ("null", "nvidiactl", "nvidia-uvm"):
        os.mknod(tree / "dev" / name, stat.S_IFCHR | 0o666, NULL)
    (tree / "usr/lib64").mkdir(parents=True)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tree / "usr/lib64" / name).write_text("of a driver that is not here\n")
    for path in tree.glob("sys/devices/**/infiniband_verbs/uverbs*"):
        (path / "dev").write_text("1:3\n")
    kernel_driver = tree / "sys/bus/pci/drivers/mlx5_core"
    kernel_driver.mkdir(parents=True)
    for address in machine["truth"]["nics"]:
        where = (tree / "sys/bus/pci/devices" / address).resolve()
        (where / "driver").symlink_to(os.path.relpath(kernel_driver, where))
    return tree


class Machine(Plugin):
    """A node as a captured machine, and the plugin on it."""

    def __init__(self, node, name, change=None, options=(), driver=NIC):
        self.machine, self.tree = name, node.folder / "machine"
        super().__init__(node, "--driver-root", self.tree, *options, driver=driver, gpus=True, hook=node.folder / "attach",
                         agent=None, under=["unshare", "--mount", PROGRAMS / "as-machine.sh", self.tree])
        mounts = {"edits": {"mounts": [{"hostPath": str(self.tree / "sys"), "containerPath": "/sys",
                                        "options": ["rbind", "ro", "nosuid", "nodev", "noexec"]}]}}
        self.configure(gpus=mounts, nics=mounts)
        self.hook.write_text(f"#!/bin/sh\nexec {PROGRAMS}/attach-no-rdma.sh {BUILD}/bin/drarun-attach \"$@\"\n")
        self.hook.chmod(0o755)
        self.user = (USER, ["system:masters"])
        self.state = node.folder / "state"  # of so many bytes that fill() can take them all
        self.state.mkdir()
        node.ok(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.state])
        self.labels = {key: value for key, value in fixture(name)["node"]["labels"].items() if key not in OWN_LABELS}
        node.cluster.kubectl("label", "--overwrite", "node", node.name, *(f"{key}={value}" for key, value in self.labels.items()))
        self.build(change)

    def leave(self):
        """The node is no machine any more."""
        self.stop()
        self.node.cluster.kubectl("label", "node", self.node.name, *(f"{key}-" for key in self.labels))
        self.node.ok(["umount", self.state])
        self.state.rmdir()

    def build(self, change):
        """Makes the machine, and its NICs."""
        found = fixture(self.machine)
        if change:
            change(found)
        without_interfaces(found)
        self.node.run(["pkill", "-f", "plug-nics.sh"])
        shutil.rmtree(self.tree, ignore_errors=True)
        nics = [nic for _, nic in sorted(found["truth"]["nics"].items()) if nic["netdev"]]
        addresses = [f"10.97.{self.node.index}.{k + 1}" for k in range(len(nics))]
        for nic, address in zip(nics, addresses):
            for gid in nic.get("gids", []):
                gid["ip"] = address  # as the kernel makes them
        make_root(found, self.tree)
        words = []
        for k, nic in enumerate(nics):
            link, mac = self.tree / "sys/class/net" / nic["netdev"], f"02:00:00:00:{self.node.index:02x}:{k:02x}"
            (link / "address").write_text(f"{mac}\n")
            words.append(f"{nic['netdev']},{mac},{(link / 'mtu').read_text().strip()},{addresses[k]}/16")
        if words:
            self.node.daemon("plug-nics", [PROGRAMS / "plug-nics.sh", *words])
            wait("the NICs are not there", lambda: not self.node.run(
                ["sh", "-c", f"ip -o addr show | grep -q '10.97.{self.node.index}.{len(words)}/16'"]).returncode, 10)

    def become(self, change):
        """Another machine from now on, once nothing of this one is held."""
        wait(lambda: f"{self.checkpoints()} stay:\n{self.log()}", lambda: not self.checkpoints(), CHANGED_S)
        self.stop()
        self.build(change)
        self.start()

    def shown(self):
        """{driver: {device: its attributes}} that the plugin finds."""
        out = self.node.ok([*self.under, self.program, "discover", "--config", self.config, "--node",
                            self.node.name, "--node-ip", self.node.address, "-o", "json"])
        names = dict(zip((GPU, NIC), self.drivers))
        return {names[each["spec"]["driver"]]: {device["name"]: device["attributes"] for device in each["spec"]["devices"]}
                for each in json.loads(out)["items"]}

    def wait(self, count=None):
        super().wait(count)
        shown = self.shown()
        wait(lambda: f"{self.node.name} publishes other devices than it has:\n{self.log()}", lambda: all(
            {name: each["attributes"] for name, each in self.published(driver).items()} == found
            for driver, found in shown.items()), CHANGED_S)
        return self

    def fill(self):
        """No room is left for what the plugin writes down; empty() ends it."""
        self.node.run(["dd", "if=/dev/zero", f"of={self.state}/full", "bs=4k"])

    def empty(self):
        (self.node.ok(["rm", "-f", f"{self.state}/full"]))

    def freeze(self):
        self.node.ok(["pkill", "-STOP", "-x", self.name])

    def thaw(self):
        self.node.ok(["pkill", "-CONT", "-x", self.name])


SEEDS = {"options": ("--takeover", "dra.net"), "driver": "dra.net"}  # under the name of what examples are written for


class Machines:
    """All nodes of a cluster as captured machines of one kind."""

    def __init__(self, cluster, name="dgx-h100", change=None, options=(), driver=NIC):
        self.cluster = cluster
        cluster.device_classes()
        self.list = [Machine(node, name, change, options, driver).start() for node in cluster.nodes]
        for each in self.list:
            each.wait()

    def __getitem__(self, index):
        return self.list[index]

    def __iter__(self):
        return iter(self.list)

    def become(self, change=None):
        for each in self.list:
            each.become(change)
        for each in self.list:
            each.wait()

    def stop(self):
        """What they published is gone, too: a kubelet lets it stand for 30 s, in which a pod of who comes next is given it."""
        for each in self.list:
            each.leave()
        mine = {driver for each in self.list for driver in each.drivers}
        for found in self.cluster.api.get("resource.k8s.io/v1", "ResourceSlice"):
            if found["spec"]["driver"] in mine and found["spec"].get("nodeName"):
                self.cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", found["metadata"]["name"])


def claimed(gpus=2, nics=2, selector=PAIRED, **more):
    """spec.devices of a job."""
    return {"gpus": {"count": gpus, "class": GPU}, "nics": {"count": nics, "class": NIC, "selector": selector}, **more}


# what a container is told of its devices, a line for each claim's request
TOLD = 'for each in $(find /var/run/kubernetes.io/dra-device-attributes -name "*-metadata.json"); do {}; done'


def told(text):
    """The devices of a line that TOLD made."""
    return [device for request in json.loads(text)["requests"] for device in request["devices"]]


def shown(out):
    """By rank: the lines that it printed behind its number."""
    ranks = {}
    for line in out.splitlines():
        rank, _, text = line.partition(" ")
        ranks.setdefault(int(rank), []).append(text)
    return ranks
