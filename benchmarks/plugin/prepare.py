# SPDX-License-Identifier: Apache-2.0
"""NodePrepareResources for a claim of all NICs, durable, beside one synced write of as many bytes as its checkpoint has
on the same disk. The calls come from the kubelet's client library while the kubelet itself is away."""
import json

from benchmarks.harness.spread import quantile
from benchmarks.plugin.node_bed import NICS
from benchmarks.harness.report import SPREAD_COLUMNS, number
from support.cluster.plugin import NIC

NAME = "prepared"


def allocate(bed):
    """The claim's uid, which has devices and is reserved for a pod of the node, as scheduler and kubelet see to it."""
    made = bed.api.make(bed.claim(NAME, NICS))
    pod = bed.pod(NAME, ["true"], NICS)
    pod.manifest["spec"]["nodeName"] = bed.node.name
    uid = pod.make().get()["metadata"]["uid"]
    results = [{"request": f"nic{k}", "driver": NIC, "pool": bed.node.name, "device": name}
               for k, name in enumerate(sorted(bed.plugin.published()))]
    config = [{"source": "FromClaim", **each} for each in made["spec"]["devices"]["config"]]
    made["status"] = {"allocation": {"devices": {"results": results, "config": config}},
                      "reservedFor": [{"resource": "pods", "name": NAME, "uid": uid}]}
    bed.api.ok("PUT", bed.api.path("resource.k8s.io/v1", "ResourceClaim", "default", NAME) + "/status", made)
    return made["metadata"]["uid"]


def measure(bed, calls):
    """[{prepare, write, unprepare: microseconds}]"""
    bed.node.stop_kubelet()
    uid = allocate(bed)
    out = bed.node.ok([
        bed.cluster.programs / "prepare-times", "-socket", f"/var/lib/kubelet/plugins/{NIC}/dra.sock", "-name", NAME,
        "-checkpoint", bed.plugin.state / NIC / f"{uid}.json", "-uid", uid, f"-rounds={calls}", f"-devices={NICS}"], timeout=600)
    bed.api.delete("v1", "Pod", NAME, "default", grace=0)
    bed.api.delete("resource.k8s.io/v1", "ResourceClaim", NAME, "default")
    return [json.loads(line) for line in out.splitlines()]


def run(bed, report, scale):
    rounds = measure(bed, scale.calls)
    report.heading(f"NodePrepareResources of {NICS} NICs, {len(rounds)} times, ms")
    report.table(["what", *SPREAD_COLUMNS, "p99", "goal", "verdict"])
    times = {what: [each[what] / 1000 for each in rounds] for what in rounds[0]}
    p99 = {what: quantile(sorted(values), 0.99) for what, values in times.items()}
    goal = max(3, 2 * p99["write"])
    report.row("one synced write of the same bytes", *report.spread("write", times["write"]), number(p99["write"]), "-", "")
    report.row("prepare", *report.spread("prepare", times["prepare"]), number(p99["prepare"]), number(goal),
               report.verdict("prepare, p99 ms", p99["prepare"], goal))
    report.row("unprepare", *report.spread("unprepare", times["unprepare"]), number(p99["unprepare"]), "-", "")
