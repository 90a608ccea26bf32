# SPDX-License-Identifier: Apache-2.0
"""Real nodes that show a captured machine: its devices in their slices, and in a pod that holds some of them its
sysfs and nodes in /dev for those. What is behind such a node is /dev/null."""
import tempfile

from ..sysfs_tree import make_tree
from .devices import NIC, ROOT, fixture

RDMA = 'device.attributes["dra.net"].rdma == true'
# of the 12 NICs of dgx-h100 the 8 that share a root with a GPU
PAIRED = f'{RDMA} && !device.attributes["dra.net"].pciAddress.startsWith("0000:29") && ' \
         '!device.attributes["dra.net"].pciAddress.startsWith("0000:aa")'
CGROUPS = "sys/fs/cgroup"  # what the runtime mounts there


def value_of(device, key):
    """Of an attribute, whatever its domain: None where it has none such."""
    for name, value in device["attributes"].items():
        if name.split("/")[-1] == key:
            return next(iter(value.values()))
    return None


def address_of(device):
    return value_of(device, "pciBusID") or value_of(device, "pciAddress")


def nodes_by_address(tree):
    """PCI address -> its node in /dev."""
    found = {}
    for path in tree.glob("proc/driver/nvidia/gpus/*/information"):
        minor = path.read_text().split("Device Minor:")[1].split()[0]
        found[path.parent.name] = f"/dev/nvidia{minor}"
    for path in tree.glob("sys/devices/**/infiniband_verbs/uverbs*"):
        found[path.parent.parent.name] = f"/dev/infiniband/{path.name}"
    return found


def edits(tree, nodes, device):
    """What CDI puts into a container that gets it. Every pod sees the functions of the whole machine, as it does
    on a real one. Of GPUs procfs says nothing: no runtime mounts anything there."""
    node = nodes.get(address_of(device))
    if value_of(device, "type") == "channel":
        node = f"/dev/nvidia-caps-imex-channels/channel{value_of(device, 'id')}"
    return {
        "deviceNodes": [{"path": node, "hostPath": "/dev/null", "type": "c", "permissions": "rw"}] if node else [],
        "mounts": [{"hostPath": str(tree / "sys"), "containerPath": "/sys", "type": "bind",
                    "options": ["rbind", "ro", "nosuid", "nodev", "noexec"]}],
    }


def captured(name, node, machine=None, slices=None):
    """{driver: what Driver takes} of the machine `name` of tests/data/fixtures for a real node, without MIG
    devices. node: a Node of the cluster, below whose folder its sysfs lies. machine(fixture) changes what it is,
    slices(fixture) what is published of it alone."""
    found = fixture(name)
    for piece in found["resourceSlices"]:
        piece["spec"]["devices"] = [each for each in piece["spec"]["devices"] if value_of(each, "type") != "mig"]
    if machine:
        machine(found)
    tree = make_tree(found, tempfile.mkdtemp(dir=node.folder))
    (tree / CGROUPS).mkdir(parents=True)
    if slices:
        slices(found)
    nodes, devices = nodes_by_address(tree), {}
    for piece in found["resourceSlices"]:
        found_here = devices.setdefault(piece["spec"]["driver"], [])
        for device in piece["spec"]["devices"]:
            found_here.append({"device": device, "edits": edits(tree, nodes, device),
                                                     **netdev(node, len(found_here), device)})
    return devices


def netdev(node, index, device):
    """A real interface for a NIC that tells its name."""
    name = value_of(device, "ifName")
    address = f"10.97.{node.index}.{index + 1}/16"
    return {"netdev": {"Name": name, "Address": address, "MTU": 1500}} if name else {}


def nics_of(machine):
    """(device of the slice, what is known of it) for each NIC of a fixture."""
    for piece in machine["resourceSlices"]:
        for device in piece["spec"]["devices"]:
            if piece["spec"]["driver"] == NIC:
                yield device, machine["truth"]["nics"][address_of(device)]


def without_pairs(machine):
    """NICs on roots on which no GPU is."""
    for device, _ in nics_of(machine):
        root = device["attributes"][ROOT]
        root["string"] = root["string"].replace("pci0000:", "pci0001:")


def without_rdma(machine):
    """Ethernet NICs that have an interface alone."""
    for device, nic in nics_of(machine):
        nic.update(ibdev=None, linkLayer="Ethernet")
        device["attributes"].pop(f"{NIC}/rdmaDevice", None)
        device["attributes"].update({f"{NIC}/rdma": {"bool": False}, f"{NIC}/ifName": {"string": nic["netdev"]}})


class Machines:
    """Real nodes as captured machines: a GPU driver and a NIC driver on each."""

    def __init__(self, cluster, name="dgx-h100"):
        self.cluster, self.name = cluster, name
        self.drivers = [cluster.driver(node.index, driver, found).start() for node in cluster.nodes
                        for driver, found in captured(name, node).items()]
        for each in self.drivers:
            each.wait()

    def become(self, **how):
        """They are changed machines from now on, as captured() says."""
        for each in self.drivers:
            each.publish(captured(self.name, each.node, **how)[each.name])
        self.cluster.wait("the devices are not published again", self.are_published, 30)

    def are_published(self):
        found = {(each["spec"]["driver"], each["spec"]["nodeName"]): each["spec"]["devices"]
                 for each in self.cluster.api.get("resource.k8s.io/v1", "ResourceSlice")}
        return all([each["attributes"] for each in found.get((driver.name, driver.node.name), [])]
                   == [each["device"]["attributes"] for each in driver.settings["Devices"]] for driver in self.drivers)

    def driver(self, name, node):
        return next(each for each in self.drivers if each.name == name and each.node.index == node)

    def stop(self):
        for each in self.drivers:
            each.stop()


def claimed(gpus=2, nics=2, selector=PAIRED, **more):
    """spec.devices of a job."""
    return {"gpus": {"count": gpus, "class": "gpu.nvidia.com"},
            "nics": {"count": nics, "class": "dranet", "selector": selector}, **more}


def shown(out):
    """By rank: the lines that it printed behind its number."""
    ranks = {}
    for line in out.splitlines():
        rank, _, text = line.partition(" ")
        ranks.setdefault(int(rank), []).append(text)
    return ranks
