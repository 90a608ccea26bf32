# SPDX-License-Identifier: Apache-2.0
"""Small machines for the derivation: a vector (tests/data/vectors/README.md) made of a few words, and what the
real code derives from it."""
import copy
import json
import subprocess

from .build import patience

GPU_DRIVER, NIC_DRIVER, DOMAIN_DRIVER = "gpu.nvidia.com", "dra.net", "compute-domain.nvidia.com"
KEYS = {
    GPU_DRIVER: {"pci": "resource.kubernetes.io/pciBusID", "root": "resource.kubernetes.io/pcieRoot",
                 "numa": "resource.kubernetes.io/numaNode"},
    NIC_DRIVER: {"pci": "dra.net/pciAddress", "root": "resource.kubernetes.io/pcieRoot", "numa": "dra.net/numaNode",
                 "ifName": "dra.net/ifName", "rdma": "dra.net/rdma", "rdmaDevice": "dra.net/rdmaDevice"},
    DOMAIN_DRIVER: {},
}


def value(raw):
    kind = "bool" if isinstance(raw, bool) else "int" if isinstance(raw, int) else "string"
    return {kind: raw}


def attributes(driver, device):
    return {KEYS[driver].get(key, key): value(raw) for key, raw in device.items()
            if key not in ("name", "ib", "claimed") and raw is not None}


def gpu(i, root="pci0000:10", numa=None, pci=None, **more):
    pci = pci or f"0000:{0x11 + i:02x}:00.0"
    return dict({"name": f"gpu-{i}", "pci": pci, "root": root, "numa": numa, "type": "gpu", "uuid": f"GPU-{i:04d}",
                 "productName": "NVIDIA H100 80GB HBM3"}, **more)


def nic(i, root="pci0000:10", numa=0, pci=None, **more):
    """ib: what the pod's sysfs shows of it; None: the probe does not have it."""
    pci = pci or f"0000:{0x31 + i:02x}:00.0"
    return dict({"name": "pci-" + pci.replace(":", "-").replace(".", "-"), "pci": pci, "root": root, "numa": numa,
                 "rdma": True, "ib": {"name": f"mlx5_{i}", "port": 1, "linkLayer": "InfiniBand", "speedMbps": 400000}},
                **more)


class World:
    """One machine type; each worker has a node of it, holds what is claimed, and shows a probe."""

    def __init__(self, gpus, nics, labels=(), workers=1, version="2.28.9", channel=False, **launcher):
        self.gpus, self.nics, self.channel, self.claimed = gpus, nics, channel, True
        self.labels = dict(labels)
        self.launcher = dict({"network": "rdma", "ranksPerPod": "gpu", "ncclVersion": version,
                              "masterAddr": "w-0", "podInterface": "eth0"}, **launcher)
        self.workers = [self.worker(w) for w in range(workers)]

    def worker(self, w):
        claimed = [n for n in self.nics if n.get("claimed", True)]
        shown = [n for n in claimed if n.get("ib")]
        return {
            "node": f"node-{w}", "gpus": [g["name"] for g in self.gpus if g.get("claimed", True)],
            "nics": [n["name"] for n in claimed], "channel": self.channel, "labels": dict(self.labels),
            "probe": {
                "visibleIbdevs": [n["ib"]["name"] for n in shown],
                "ibdevs": {n["ib"]["name"]: dict({k: v for k, v in n["ib"].items() if k != "name"}, pci=n["pci"])
                           for n in shown},
                "gdr": {"peermem": False, "dmabuf": True}, "nvlink": True,
                "visibleGpus": sum(g.get("claimed", True) for g in self.gpus),
                "numaCpus": {"0": "0-7,16-23", "1": "8-15,24-31"}, "interSocketGBs": 22.0}}

    def fixture(self, worker):
        devices = {GPU_DRIVER: self.gpus, NIC_DRIVER: self.nics,
                   DOMAIN_DRIVER: [{"name": "channel-0", "type": "channel", "id": 0}]}
        return {"node": {"name": worker["node"], "labels": worker["labels"]}, "resourceSlices": [
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"x-{driver}"},
             "spec": {"driver": driver, "nodeName": worker["node"],
                      "pool": {"name": worker["node"], "generation": 1, "resourceSliceCount": 1},
                      "devices": [{"name": d["name"], "attributes": attributes(driver, d)} for d in list_]}}
            for driver, list_ in devices.items()]}

    @staticmethod
    def claims(w, worker):
        made = []
        for request, driver, names in (("gpu", GPU_DRIVER, worker["gpus"]), ("nic", NIC_DRIVER, worker["nics"]),
                                       ("channel", DOMAIN_DRIVER, ["channel-0"] if worker["channel"] else [])):
            results = [{"request": request, "driver": driver, "pool": worker["node"], "device": name}
                       for name in names]
            spec = {"devices": {"requests": [{"name": request, "exactly": {"deviceClassName": driver}}]}}
            made.append({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                         "metadata": {"name": f"w-{w}-{request}"}, "spec": spec,
                         "status": {"allocation": {"devices": {"results": results}},
                                    "devices": worker.get("status", [])}})
        return made

    def derive(self, program, folder):
        vector = {"nodes": {}, "input": {"launcher": self.launcher, "workers": []}}
        for w, worker in enumerate(self.workers):
            file = folder / f"{worker['node']}.json"
            file.write_text(json.dumps(self.fixture(worker)))
            vector["nodes"][worker["node"]] = {"fixture": file.name}
            entry = {"pod": f"w-{w}", "node": worker["node"]}
            if self.claimed:
                entry["claims"] = self.claims(w, worker)
            if worker["probe"] is not None:
                entry["probe"] = worker["probe"]
            vector["input"]["workers"].append(copy.deepcopy(entry))
        path = folder / "vector.json"
        path.write_text(json.dumps(vector))
        done = subprocess.run([program, "--show", path], capture_output=True, text=True, timeout=patience())
        assert done.stderr == "", done.stderr
        return json.loads(done.stdout)
