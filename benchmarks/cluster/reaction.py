# SPDX-License-Identifier: Apache-2.0
"""How soon the launcher acts on what it sees: a pod's deletion, a rank's death, a node's."""
import time

from benchmarks.cluster.bed import OURS, realtime_of
from benchmarks.harness.spread import quantile
from benchmarks.harness.report import SPREAD_COLUMNS, number
from support.cluster.machines import Machines, claimed

BUSYBOX = "localhost/busybox:1"
NOWHERE = {"spec": {"nodeSelector": {"nowhere": "here"}, "containers": [{"name": "main", "image": BUSYBOX,
                                                                       "command": ["true"]}]}}


def event_to_action(bed, report, scale):
    """Each time a pod of a job that waits is deleted, and the job's others with it by the launcher: from the
    server getting the first request to its getting the second, so that its own work is part of it."""
    values = []
    with bed.namespace() as namespace:
        for _ in range(scale.events):
            process = bed.start(namespace, {"workers": 1, "template": NOWHERE}, "--here")
            bed.cluster.wait("no pod", lambda: bed.api.get("v1", "Pod", "job-w-0", namespace), 30, 0.01)
            time.sleep(0.05)  # its watch has it
            mark = bed.audit.mark()
            bed.api.delete("v1", "Pod", "job-w-0", namespace, grace=0)
            found = bed.cluster.wait("nothing happens", lambda: acted(bed, mark, namespace), 30, 0.02)
            values.append(found)
            process.terminate()
            process.communicate(timeout=60)
    report.heading(f"Event to action: a pod's deletion to the launcher's next request, {len(values)} times, ms")
    report.table([*SPREAD_COLUMNS, "p99", "goal", "verdict"])
    p99 = quantile(sorted(values), 0.99)
    report.row(*report.spread("event to action", values), number(p99), 10, report.verdict("event to action, p99 ms", p99, 10))


def acted(bed, mark, namespace):
    """Milliseconds, or None yet."""
    deleted = [each.received for each in bed.audit.requests(since=mark, namespace=namespace, verb="delete",
                                                            resource="pods") if not each.agent.startswith(OURS)]
    ours = [each.received for each in bed.audit.requests(since=mark, agent=OURS, namespace=namespace,
                                                         verb="deletecollection")]
    return 1000 * (min(ours) - deleted[0]) if deleted and ours else None


DEATH = "[ $RANK = 1 ] && sleep 3; read up rest </proc/uptime; [ $RANK = 1 ] && { echo $up; exit 3; }; exec sleep 1000"


def rank_death(bed, report, scale):
    """From the time that the rank prints before it ends (clock ticks of 10 ms), some time after its start: of a pod that
    has just come the kubelet waits for news. A pod that has ended, and is still to be seen, holds nothing."""
    gone, released, removed = [], [], []
    bed.cluster.device_classes()
    machines = Machines(bed.cluster)
    for _ in range(scale.rounds):
        with bed.namespace() as namespace:
            bed.install(namespace)
            outcome = bed.run(namespace, {"workers": 4, "placement": {"spread": "none"}, "image": BUSYBOX, "command": ["sh", "-c", DEATH],
                                          "devices": claimed(1, 1)})
            if outcome.status != 3:
                report.missed.append(f"rank death: status {outcome.status}: {outcome.err[-200:]}")
                continue
            died = realtime_of(float(outcome.out.split()[0]) * 1e9)
            gone.append(1000 * (outcome.ended - died))
            bed.cluster.wait("claims are held", lambda: not held(bed, namespace), 60, 0.02)
            released.append(1000 * (time.time() - died))
            bed.cluster.wait("pods remain", lambda: not workers(bed, namespace), 60, 0.02)
            removed.append(1000 * (time.time() - died))
    machines.stop()
    report.heading("A rank of 4 dies, each worker with a GPU and a NIC of its own: ms")
    report.table(["what", *SPREAD_COLUMNS, "goal", "verdict"])
    for what, values in (("to the prompt, all ranks gone", gone), ("to no claim held", released)):
        if values:
            p99 = quantile(sorted(values), 0.99)
            report.row(what, *report.spread(what, values), 2000, report.verdict(f"rank death {what}, p99 ms", p99, 2000))
    if removed:
        report.row("to no pod to be seen", *report.spread("to no pod to be seen", removed), "-", "")


def held(bed, namespace):
    """Claims with devices."""
    return [each for each in bed.api.get("resource.k8s.io/v1", "ResourceClaim", namespace=namespace)
            if "allocation" in each.get("status", {})]


def workers(bed, namespace):
    return [each for each in bed.api.get("v1", "Pod", namespace=namespace)
            if each["metadata"]["name"].startswith("job-w-")]


def node_loss(bed, report, scale):
    """A node that has a worker falls silent, as with its power: no connection is closed; to drarun's end."""
    values = []
    for _ in range(scale.losses):
        with bed.namespace() as namespace:
            process = bed.start(namespace, {"workers": 2, "template": {"spec": {
                "topologySpreadConstraints": SPREAD, "containers": [
                    {"name": "main", "image": BUSYBOX, "command": ["sleep", "1000"]}]}}}, "--here")
            bed.cluster.wait("the ranks do not run", lambda: running(bed, namespace), 60)
            node = bed.cluster.node(1)
            node.cut()
            died = time.time()
            try:
                _, err = process.communicate(timeout=120)
                values.append(time.time() - died)
                assert f"on {node.name}) was lost with its node" in err, err
            finally:
                node.mend()
                node.wait_ready()
    report.heading("A node falls silent: seconds to drarun's end with its name")
    report.table([*SPREAD_COLUMNS, "goal", "verdict"])
    report.row(*report.spread("node loss, s", values), 15, report.verdict("node loss, s", max(values), 15))


SPREAD = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
           "labelSelector": {"matchLabels": {"drarun.dev/job": "job"}}}]


def running(bed, namespace):
    import json
    found = bed.api.get("v1", "ConfigMap", "job-status", namespace)
    text = (found or {}).get("data", {}).get("status.json")
    return text and json.loads(text)["phase"] == "running"


def run(bed, report, scale):
    event_to_action(bed, report, scale)
    rank_death(bed, report, scale)
    if scale.losses:
        node_loss(bed, report, scale)
