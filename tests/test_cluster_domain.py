# SPDX-License-Identifier: Apache-2.0
"""A job that asks for a compute domain, on two real nodes that show machines with chip-to-chip GPUs. NVIDIA's
resource is there and its driver's channels; the test does what its controller does: a template of claims."""
import json

import pytest

from support.build import SOURCE
from support.cluster.machines import Machines, RDMA, claimed

CHANNEL = "compute-domain-default-channel.nvidia.com"
CLIQUE = "nvidia.com/gpu.clique"


@pytest.fixture(scope="module")
def domains(cluster):
    cluster.device_classes()
    cluster.api.make(
        json.loads((SOURCE / "tests" / "cluster" / "computedomains.json").read_text()),
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": CHANNEL}, "spec": {"selectors": [
            {"cel": {"expression": "device.driver == 'compute-domain.nvidia.com' && "
                                   "device.attributes['compute-domain.nvidia.com'].type == 'channel' && "
                                   "device.attributes['compute-domain.nvidia.com'].id == 0"}}]}})
    made = Machines(cluster, "oke-gb200-v3-4")
    for node in cluster.nodes:
        cluster.kubectl("label", "node", node.name, f"{CLIQUE}=one.1")
    cluster.wait("ComputeDomain is not served", lambda: domains_of(cluster, "default") is not None, 30)
    yield made
    made.stop()


def domains_of(cluster, namespace):
    status, answer = cluster.api.request("GET", f"/apis/resource.nvidia.com/v1beta1/namespaces/{namespace}/computedomains")
    return answer["items"] if status == 200 else None


def play_controller(jobs):
    """What NVIDIA's controller makes of a ComputeDomain."""
    found = jobs.cluster.wait("no ComputeDomain", lambda: domains_of(jobs.cluster, jobs.namespace.name), 30)
    assert [each["metadata"]["name"] for each in found] == ["job-domain"]
    owner = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "name": "job-domain",
             "uid": found[0]["metadata"]["uid"]}
    jobs.cluster.api.make({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {
            "name": found[0]["spec"]["channel"]["resourceClaimTemplate"]["name"], "namespace": jobs.namespace.name,
            "ownerReferences": [owner]},
        "spec": {"spec": {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL}}]}}}})
    return found[0]


@pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
def test_ranks_get_channels_of_one_domain(domains, jobs, mode):
    job = jobs.drarun.start("run", jobs.file(
        workers=2, ranksPerWorker=1, computeDomain={}, devices=claimed(4, 4, selector=RDMA, align="none"),
        command=["sh", "-c", "echo $RANK MNNVL=$NCCL_MNNVL_ENABLE $(ls /dev/nvidia-caps-imex-channels)"]), *mode,
        under=jobs.cluster.under, env=jobs.env)
    jobs.cluster.wait("the missing template is not told", lambda: "\"job-channel\" not found" in jobs.verb(
        "status", "job").out, 30)
    found = play_controller(jobs)
    result = job.finish(timeout=60).ok()
    # what GPUs these are say slices and procfs: the launcher's pod may not read those, the test has none of these
    value = 1 if mode else ""
    assert not mode or [each["kind"] for each in found["metadata"]["ownerReferences"]] == ["ConfigMap"]
    # the garbage collector hears of a new kind within half a minute, for which nobody waits here
    jobs.cluster.kubectl("delete", "computedomains,resourceclaimtemplates", "-n", jobs.namespace.name, "--all")
    assert sorted(result.out.splitlines()) == [f"{rank} MNNVL={value} channel0" for rank in range(2)]
