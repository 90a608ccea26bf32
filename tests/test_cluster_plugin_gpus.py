# SPDX-License-Identifier: Apache-2.0
"""Pods that claim GPUs of our node plugin: device nodes, the driver's files, NVIDIA's own CDI specifications."""
import time
import types

import pytest
import yaml

from support.cluster.claiming import claiming, plugged, plugins  # noqa: F401
from support.cluster.gpus import Gpus
from support.cluster.plugin import GPU, Plugin, device_class

@pytest.fixture(scope="module")
def gpus(cluster, plugins):
    """made: of a machine with 8 GPUs, whose plugin is plugin."""
    node = cluster.node(0)
    made = Gpus(node.folder / "gpus")
    if not cluster.api.get("resource.k8s.io/v1", "DeviceClass", GPU):
        cluster.api.make(device_class(GPU, GPU))
    plugin = Plugin(node, "--drivers", "gpu", "--driver-root", made.root, name="drarun-gpus", driver=GPU, under=made.under())
    plugin.start().wait(made.count)
    yield types.SimpleNamespace(root=made.root, plugin=plugin, count=made.count)
    cluster.wait(plugin.log, lambda: not plugin.checkpoints(), 60)
    plugin.stop()


@pytest.fixture
def with_gpus(cluster, gpus):
    """with_gpus(name, script, count): a pod with so many GPUs."""
    made = []

    def make(name, script, count, make=claiming):
        cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {
            "name": name, "namespace": "default"}, "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": GPU, "count": count}}]}}})
        made.append(name)
        return make(cluster, name, f"{{ {script}; }}; echo end; sleep 600", "n0").make()
    yield make
    for name in made:
        cluster.api.delete("v1", "Pod", name, "default")
        cluster.wait(f"pod {name} does not end", lambda: not cluster.api.get("v1", "Pod", name, "default"), 60)
        cluster.api.delete("resource.k8s.io/v1", "ResourceClaim", name, "default")


def lines_of(pod):
    """What its script has said, while the pod has its claim."""
    pod.wait_phase("Running")
    return pod.node.cluster.wait(pod.describe, lambda: "end\n" in pod.log() and pod.log(), 20).splitlines()[:-1]


def given_gpus(cluster, name):
    """Numbers of the GPUs that the claim got."""
    found = cluster.api.get("resource.k8s.io/v1", "ResourceClaim", name, "default")
    names = {each["device"] for each in found["status"]["allocation"]["devices"]["results"]}
    slices = cluster.api.get("resource.k8s.io/v1", "ResourceSlice")
    return {device["attributes"]["drarun.dev/minor"]["int"] for each in slices if each["spec"]["driver"] == GPU
            for device in each["spec"]["devices"] if device["name"] in names}


def test_gpus_with_the_drivers_files(cluster, gpus, with_gpus):
    """Without NVIDIA's CDI specifications: their nodes and no others, libraries where loaders look, programs."""
    pod = with_gpus("gpus", "ls -d /dev/nvidia*; cat /usr/lib64/libcuda.so.1 /usr/lib/*-linux-gnu/libnvidia-ml.so.1; "
                    "nvidia-smi; echo > /dev/nvidiactl; env | grep NVIDIA", 2)
    lines = lines_of(pod)
    nodes = {f"/dev/nvidia{k}" for k in given_gpus(cluster, "gpus")}
    assert len(nodes) == 2 and {line for line in lines if line.startswith("/dev")} == nodes | {
        "/dev/nvidiactl", "/dev/nvidia-uvm"}, lines
    assert lines[-4:] == ["libcuda of the host", "libnvidia-ml of the host", "smi of the host", "NVIDIA_VISIBLE_DEVICES=void"]


def test_gpus_of_nvidias_specification(cluster, gpus, with_gpus):
    """Where it names the GPU and gives its nodes, it is what the container gets."""
    node, path = cluster.node(0), "/var/run/cdi/nvidia.yaml"
    spec = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": str(k), "containerEdits": {
        "deviceNodes": [{"path": f"/dev/nvidia{k}", "hostPath": "/dev/null"}], "env": [f"THEIRS_{k}=yes"]}}
        for k in range(gpus.count)]}
    node.ok(["sh", "-c", f"mkdir -p /var/run/cdi; cat > {path}"], input=yaml.safe_dump(spec))
    try:
        lines = lines_of(with_gpus("theirs", "ls -d /dev/nvidia*; env", 1))
        number, = given_gpus(cluster, "theirs")
        assert f"THEIRS_{number}=yes" in lines and "NVIDIA_VISIBLE_DEVICES=void" not in lines
        assert [line for line in lines if line.startswith("/dev/")] == [f"/dev/nvidia{number}"]
    finally:
        node.ok(["rm", path])


def test_a_gpu_without_its_node(cluster, gpus, with_gpus):
    (gpus.root / "dev/nvidia-uvm").rename(gpus.root / "dev/away")
    try:
        pod = with_gpus("nodeless", "true", 1)
        cluster.wait(lambda: pod.describe(), lambda: "the host has no device node /dev/nvidia-uvm: load" in pod.describe(), 30)
        assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))
    finally:
        (gpus.root / "dev/away").rename(gpus.root / "dev/nvidia-uvm")


def test_gpus_of_a_pod_that_was_deleted_by_force(cluster, gpus, with_gpus):
    """The next pod starts when its containers have ended: nothing takes the device nodes out of them."""
    def stubborn(*words):
        return claiming(*words, terminationGracePeriodSeconds=8)  # and the shell, as the first process of its namespace, ignores SIGTERM
    first = with_gpus("forced", "sh -c 'sleep 600; :' forced-mark & true", gpus.count, make=stubborn)
    lines_of(first)
    node = cluster.node(0)
    assert node.run(["pgrep", "-f", "forced-mark"]).returncode == 0
    cluster.api.delete("v1", "Pod", "forced", "default", grace=0)
    lines_of(with_gpus("after-forced", "true", gpus.count))
    assert node.run(["pgrep", "-f", "forced-mark"]).returncode == 1
    assert "stays with claim default/forced, whose pod was deleted by force" in gpus.plugin.log()


def test_names_change_while_a_gpu_is_claimed(cluster, gpus, with_gpus):
    """It keeps its name: under the new one it would be offered a second time."""
    plugin = gpus.plugin
    lines_of(with_gpus("named", "true", 1))
    had = cluster.api.get("resource.k8s.io/v1", "ResourceClaim", "named", "default")["status"]["allocation"]["devices"]["results"][0]["device"]
    before, config = set(plugin.published()), plugin.config.read_text()
    renamed = {name.replace("gpu-", "new-") for name in before}
    try:
        plugin.stop()
        plugin.configure(names=[{"name": "new-{address}"}])
        plugin.start().wait()
        cluster.wait(lambda: f"published: {set(plugin.published())}", lambda: set(plugin.published()) == {had} | renamed - {had.replace("gpu-", "new-")}, 60)
        cluster.api.delete("v1", "Pod", "named", "default")
        cluster.wait(lambda: f"published: {set(plugin.published())}", lambda: set(plugin.published()) == renamed, 90)
    finally:
        plugin.stop()
        plugin.config.write_text(config)
        plugin.start().wait()
        cluster.wait(lambda: f"published: {set(plugin.published())}", lambda: set(plugin.published()) == before, 60)


def past_the_scheduler(cluster, name, script, node):
    pod = claiming(cluster, name, script, node)
    del pod.manifest["spec"]["nodeSelector"]
    pod.manifest["spec"]["nodeName"] = node
    return pod


def test_checkpoint_of_a_gpu_damaged(cluster, gpus, with_gpus):
    """Nothing else than the checkpoint keeps a GPU from a second claim: a node of /dev is as good for two."""
    plugin = gpus.plugin
    pod = with_gpus("damaged", "true", 1)
    pod.wait_phase("Running")
    had = cluster.api.get("resource.k8s.io/v1", "ResourceClaim", "damaged", "default")["status"]["allocation"]
    device = had["devices"]["results"][0]["device"]
    plugin.kill()
    path = plugin.folder / f"{plugin.checkpoints()[0]}.json"
    path.write_bytes(path.read_bytes()[:-1])
    plugin.start().wait()
    assert f"given to no other: {device} until" in plugin.log(), plugin.log()
    mark = cluster.audit.mark()
    thief = with_gpus("thief", "true", 1, make=past_the_scheduler)
    cluster.api.patch_status("resource.k8s.io/v1", "ResourceClaim", "thief", {"allocation": had, "reservedFor": [
        {"resource": "pods", "name": "thief", "uid": thief.get()["metadata"]["uid"]}]}, "default")
    cluster.wait(lambda: f"{thief.describe()}\n{plugin.log()}", lambda: [each for each in cluster.audit.requests(
        since=mark, verb="get", resource="resourceclaims", agent="drarun/") if each.name == "thief"], 60)
    time.sleep(1)  # it decides when it has the claim
    assert "prepared for pod thief" not in plugin.log() and len(plugin.checkpoints()) == 1
    assert not any(each.get("started") for each in thief.get()["status"].get("containerStatuses", ()))
    pod.delete(0)  # the kubelet has the first one taken back, and the other may have it
    thief.wait_phase("Running")
