# SPDX-License-Identifier: Apache-2.0
"""NodePrepareResources for a claim of all GPUs and NICs, durable, beside one synced write of as many bytes as its
checkpoints have on the same disk. The calls come from the kubelet's client library while the kubelet itself is away."""
import json

from benchmarks.harness.report import SPREAD_COLUMNS, number
from benchmarks.harness.spread import quantile
from benchmarks.plugin.node_bed import NICS
from support.cluster.gpus import Gpus
from support.cluster.plugin import GPU, NIC, Plugin, device_class

NAME = "prepared"
PAUSE = "300ms"  # the claims' status is written meanwhile, so that no call is measured that has spared it


def with_gpus(bed):
    """The bed's plugin makes way for one that has GPUs too."""
    gpus = Gpus(bed.node.folder / "gpus")
    if not bed.api.get("resource.k8s.io/v1", "DeviceClass", GPU):
        bed.api.make(device_class(GPU, GPU))
    bed.plugin.stop()
    plugin = Plugin(bed.node, "--driver-root", gpus.root, gpus=True, under=gpus.under(nics=True))
    plugin.start().wait(NICS)
    return plugin, gpus


def allocate(bed, plugin, gpus):
    """The claim's uid, which has devices and is reserved for a pod of the node, as scheduler and kubelet see to it."""
    manifest = bed.claim(NAME, NICS)
    manifest["spec"]["devices"]["requests"].append(
        {"name": "gpu", "exactly": {"deviceClassName": GPU, "count": gpus.count}})
    made = bed.api.make(manifest)
    pod = bed.pod(NAME, ["true"], NICS)
    pod.manifest["spec"]["nodeName"] = bed.node.name
    uid = pod.make().get()["metadata"]["uid"]
    given = {GPU: sorted(plugin.published(GPU)), NIC: sorted(plugin.published())}
    results = [{"request": f"nic{k}" if driver == NIC else "gpu", "driver": driver, "pool": bed.node.name, "device": name}
               for driver, names in given.items() for k, name in enumerate(names)]
    config = [{"source": "FromClaim", **each} for each in made["spec"]["devices"]["config"]]
    made["status"] = {"allocation": {"devices": {"results": results, "config": config}},
                      "reservedFor": [{"resource": "pods", "name": NAME, "uid": uid}]}
    bed.api.ok("PUT", bed.api.path("resource.k8s.io/v1", "ResourceClaim", "default", NAME) + "/status", made)
    return made["metadata"]["uid"]


def measure(bed, calls):
    """[{prepare, write, unprepare: microseconds}]"""
    plugin, gpus = with_gpus(bed)
    bed.node.stop_kubelet()
    uid = allocate(bed, plugin, gpus)
    sockets = ",".join(f"/var/lib/kubelet/plugins/{driver}/dra.sock" for driver in (GPU, NIC))
    checkpoints = ",".join(str(plugin.state / driver / f"{uid}.json") for driver in (GPU, NIC))
    lines = []
    while len(lines) < calls:  # in pieces: the server hangs up on who asks nothing for long
        lines += bed.node.ok([
            bed.cluster.programs / "prepare-times", "-socket", sockets, "-name", NAME, "-checkpoint", checkpoints, "-uid", uid,
            f"-rounds={min(100, calls - len(lines))}", f"-pause={PAUSE}", f"-devices={NICS + gpus.count}"], timeout=600).splitlines()
        bed.api.get("v1", "Pod", NAME, "default")
    bed.api.delete("v1", "Pod", NAME, "default", grace=0)
    bed.api.delete("resource.k8s.io/v1", "ResourceClaim", NAME, "default")
    return [json.loads(line) for line in lines]


def run(bed, report, scale):
    rounds = measure(bed, scale.calls)
    report.heading(f"NodePrepareResources of {Gpus.count} GPUs and {NICS} NICs, {len(rounds)} times, ms")
    report.table(["what", *SPREAD_COLUMNS, "p99", "goal", "verdict"])
    times = {what: [each[what] / 1000 for each in rounds] for what in rounds[0]}
    p99 = {what: quantile(sorted(values), 0.99) for what, values in times.items()}
    goal = max(3, 2 * p99["write"])
    report.row("one synced write of the same bytes", *report.spread("write", times["write"]), number(p99["write"]), "-", "")
    report.row("prepare", *report.spread("prepare", times["prepare"]), number(p99["prepare"]), number(goal),
               report.verdict("prepare, p99 ms", p99["prepare"], goal))
    report.row("unprepare", *report.spread("unprepare", times["unprepare"]), number(p99["unprepare"]), "-", "")
