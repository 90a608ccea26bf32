# SPDX-License-Identifier: Apache-2.0
"""A job that asks for a compute domain, on two real nodes that show machines with chip-to-chip GPUs. NVIDIA's
resource is there and, played by a driver of the tests, its driver's channels, which our plugin does not make; the test
does what its controller does: a template of claims."""
import json

import pytest

from support.build import SOURCE
from support.cluster.devices import channels, device_class
from support.cluster.machines import GPU, Machines, RDMA, SEEDS, vendor_folders
from support.cluster_jobs import APART, Running
from test_cluster_examples import spec_of

CHANNEL = "compute-domain-default-channel.nvidia.com"
SHARED = "shared-channel"
DOMAINS = "compute-domain.nvidia.com"
CLIQUE = "nvidia.com/gpu.clique"


@pytest.fixture(scope="module")
def domains(cluster):
    channel_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CHANNEL}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'compute-domain.nvidia.com' && "
                               "device.attributes['compute-domain.nvidia.com'].type == 'channel' && "
                               "device.attributes['compute-domain.nvidia.com'].id == 0"}}]}}
    shared_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": SHARED}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'compute-domain.nvidia.com' && "
                               "device.attributes['compute-domain.nvidia.com'].type == 'channel'"}}]}}
    cluster.api.make(json.loads((SOURCE / "tests" / "cluster" / "computedomains.json").read_text()))
    with cluster.own_classes(device_class("gpu.nvidia.com", GPU), device_class("dranet", "dra.net"), channel_class, shared_class), \
            vendor_folders(cluster):
        made = Machines(cluster, "oke-gb200-v3-4", **SEEDS)
        made.channels = [cluster.driver(node.index, DOMAINS, channels()).start() for node in cluster.nodes]
        for each in made.channels:
            each.wait()
        for node in cluster.nodes:
            cluster.kubectl("label", "node", node.name, f"{CLIQUE}=one.1")
        cluster.wait("ComputeDomain is not served", lambda: domains_of(cluster, "default") is not None, 30)
        yield made
        for node in cluster.nodes:
            cluster.kubectl("label", "node", node.name, f"{CLIQUE}-")
        made.stop()
        for each in made.channels:
            each.stop()


def claimed(gpus, nics):
    """spec.devices, with the classes of the example."""
    return {"gpus": {"count": gpus, "class": "gpu.nvidia.com"}, "nics": {"count": nics, "class": "dranet", "selector": RDMA},
            "align": "none"}


def domains_of(cluster, namespace):
    status, answer = cluster.api.request("GET", f"/apis/resource.nvidia.com/v1beta1/namespaces/{namespace}/computedomains")
    return answer["items"] if status == 200 else None


def play_controller(jobs, channel=CHANNEL):
    """What NVIDIA's controller makes of a ComputeDomain."""
    found = jobs.cluster.wait("no ComputeDomain", lambda: domains_of(jobs.cluster, jobs.namespace.name), 30)
    assert [each["metadata"]["name"] for each in found] == ["job-domain"]
    owner = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "name": "job-domain",
             "uid": found[0]["metadata"]["uid"]}
    jobs.cluster.api.make({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {
            "name": found[0]["spec"]["channel"]["resourceClaimTemplate"]["name"], "namespace": jobs.namespace.name,
            "ownerReferences": [owner]},
        "spec": {"spec": {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": channel}}]}}}})
    return found[0]


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
def test_ranks_get_channels_of_one_domain(domains, jobs, mode):
    job = jobs.drarun.start("run", jobs.file(
        workers=2, ranksPerWorker=1, computeDomain={}, devices=claimed(4, 4),
        command=["sh", "-c", "echo $RANK MNNVL=$NCCL_MNNVL_ENABLE $(ls /dev/nvidia-caps-imex-channels)"]), *mode,
        under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait("the missing template is not told", lambda: "\"job-channel\" not found" in jobs.verb(
        "status", "job").out, 30)
    found = play_controller(jobs)
    result = job.finish(timeout=60).ok()
    # of which clique the GPUs are say slices, which the launcher's pod may not read, and procfs, which the test has not: auto
    value = 1 if mode else 2
    assert not mode or [each["kind"] for each in found["metadata"]["ownerReferences"]] == ["ConfigMap"]
    # the garbage collector hears of a new kind within half a minute, for which nobody waits here
    jobs.cluster.kubectl("delete", "computedomains,resourceclaimtemplates", "-n", jobs.namespace.name, "--all")
    assert sorted(result.out.splitlines()) == [f"{rank} MNNVL={value} channel0" for rank in range(2)]


def test_example(domains, jobs, source):
    """examples/jobs/compute-domain.yaml, with as many workers as there are nodes."""
    spec = spec_of(source, "compute-domain", 2)
    job = Running(jobs, "--here", **{**spec, "command": ["sh", "-c", "echo $RANK $WORLD_SIZE $NCCL_MNNVL_ENABLE "
                                                         "$(ls /dev/nvidia-caps-imex-channels)"]})
    jobs.cluster.wait("no ComputeDomain", lambda: domains_of(jobs.cluster, jobs.namespace.name), 30)
    play_controller(jobs)
    result = job.ended().ok()
    assert sorted(result.out.splitlines()) == sorted(f"{rank} 8 1 channel0" for rank in range(8)), result
    jobs.cluster.kubectl("delete", "computedomains,resourceclaimtemplates", "-n", jobs.namespace.name, "--all")


def publish(domains, count):
    for each in domains.channels:
        each.publish(channels(count))
    domains.cluster.wait("the channels are not published", lambda: all(
        len(each.published()) == count for each in domains.channels), 30)


@pytest.fixture
def two_cliques(domains):
    """The nodes are of two cliques, and take several workers each. NVIDIA's driver publishes one channel a node: with four,
    which no node has, two nodes do for what takes four."""
    publish(domains, 4)
    for node in domains.cluster.nodes:
        domains.cluster.kubectl("label", "node", node.name, f"{CLIQUE}=one.{node.index + 1}", "--overwrite")
    yield domains
    for node in domains.cluster.nodes:
        domains.cluster.kubectl("label", "node", node.name, f"{CLIQUE}=one.1", "--overwrite")
    publish(domains, 1)


def tell_cliques(jobs):
    """As NVIDIA's controller does, for a launcher that may not read Nodes."""
    nodes = [{"name": node.name, "ipAddress": "10.0.0.1", "index": 0, "status": "Ready", "cliqueID": f"one.{node.index + 1}"}
             for node in jobs.cluster.nodes]
    jobs.cluster.kubectl("patch", "-n", jobs.namespace.name, "computedomain/job-domain", "--subresource=status",
                         "--type=merge", "-p", json.dumps({"status": {"status": "Ready", "nodes": nodes}}))


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
def test_ranks_of_a_clique_follow_one_another(two_cliques, jobs, mode):
    job = Running(jobs, *mode, workers=6, ranksPerWorker=2, computeDomain={}, devices={
        "gpus": {"count": 1, "class": "gpu.nvidia.com"}}, network="any", template={"spec": {
            "topologySpreadConstraints": APART, "terminationGracePeriodSeconds": 2, "containers": [{
                "name": "worker", "image": "localhost/busybox:1", "command": [
                    "sh", "-c", "echo up $RANK $(hostname) $GROUP_RANK; exec sleep 1000"]}]}})
    jobs.cluster.wait("no ComputeDomain", lambda: domains_of(jobs.cluster, jobs.namespace.name), 30)
    tell_cliques(jobs)
    play_controller(jobs, SHARED)
    job.wait_running().wait_lines(12)
    status = jobs.status()
    nodes = {each["pod"]: each["node"] for each in status["workers"]["lines"]}
    said = sorted((int(rank), pod, int(group)) for _, rank, pod, group in (line.split() for line in job.lines if "up" in line))
    places = [nodes[pod] for _, pod, _ in said]
    assert len(places) == 12 and places == sorted(places, key=places.index), (said, nodes)
    assert [group for _, _, group in said] == [rank // 2 for rank in range(12)]
    assert [each["ranks"] for each in status["cliques"]] == ["0-5", "6-11"], status["cliques"]
    assert "NVLink: one." in jobs.verb("status", "job").ok().out
    assert jobs.verb("exec", "job", "5", "--", "hostname").ok().out.split() == [said[5][1]]
    job.job.signal(2)
    assert job.ended().rc == 130
    jobs.cluster.kubectl("delete", "computedomains,resourceclaimtemplates", "-n", jobs.namespace.name, "--all")
