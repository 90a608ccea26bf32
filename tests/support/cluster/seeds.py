# SPDX-License-Identifier: Apache-2.0
"""The worker pods of manifests that people have written for DraNet (tests/data/seeds), on nodes without GPUs, without
RDMA and without their images. Claims and how pods name them stay as they were written."""
import yaml

from .pods import BUSYBOX
from ..build import SOURCE

DRIVER = "dra.net"
RDMA, VIRTUAL = '["dra.net"].rdma == true', '["dra.net"].virtual == true'
UNBALANCED, BALANCED = "< 2)\n", "< 2))\n"  # in one of the examples


def worker(name, script):
    """(DeviceClasses and ResourceClaimTemplates, the pod's specification)."""
    text = (SOURCE / "tests/data/seeds" / f"{name}.yaml").read_text().replace(RDMA, VIRTUAL)
    if "||" not in text:
        text = text.replace(UNBALANCED, BALANCED)
    documents = [each for each in yaml.safe_load_all(text) if each]
    made = [_claimed(each) for each in documents if each["kind"] in ("DeviceClass", "ResourceClaimTemplate")]
    return made, _without_hardware(_template(documents)["spec"], script)


def _template(documents):
    for each in documents:
        spec = each.get("spec", {})
        if each["kind"] == "StatefulSet":
            return spec["template"]
        if each["kind"] == "RayCluster":
            return spec["workerGroupSpecs"][0]["template"]
        if each["kind"] == "MPIJob":
            return spec["mpiReplicaSpecs"]["Worker"]["template"]
    raise AssertionError("no workload")


def _claimed(made):
    """A claim for GPUs asks for NICs that no other asks for. A configuration that stands beside `devices`, where the
    API server refuses it, comes into it."""
    if made["kind"] == "ResourceClaimTemplate":
        made["metadata"]["namespace"] = "default"
        spec = made["spec"]["spec"]
        if "config" in spec:
            spec["devices"]["config"] = spec.pop("config")
        for request in spec["devices"]["requests"]:
            if request.get("deviceClassName") == "gpu.nvidia.com":
                request.update(deviceClassName="dranet", selectors=[{"cel": {
                    "expression": 'int(device.attributes["dra.net"].ifName.substring(3, 4)) >= 6'}}])
    return made


def _without_hardware(spec, script):
    for container in spec["containers"]:
        container.update(image=BUSYBOX, imagePullPolicy="Never", command=["sh", "-c", script])
        container.pop("args", None)
        container.get("resources", {}).pop("limits", None)
        container.get("resources", {}).pop("requests", None)
    for volume in spec.get("volumes", ()):
        if "hostPath" in volume:
            del volume["hostPath"]
            volume["emptyDir"] = {}
    return {**spec, "terminationGracePeriodSeconds": 1}
