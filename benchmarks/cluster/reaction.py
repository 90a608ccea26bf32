# SPDX-License-Identifier: Apache-2.0
"""How soon the launcher acts on what it sees."""
import time

from bed import OURS
from measure import quantile
from report import SPREAD_COLUMNS, number, spread_cells

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
    report.row(*spread_cells(values), number(p99), 10, report.verdict("event to action, p99 ms", p99, 10))


def acted(bed, mark, namespace):
    """Milliseconds, or None yet."""
    deleted = [each.received for each in bed.audit.requests(since=mark, namespace=namespace, verb="delete",
                                                            resource="pods") if not each.agent.startswith(OURS)]
    ours = [each.received for each in bed.audit.requests(since=mark, agent=OURS, namespace=namespace,
                                                         verb="deletecollection")]
    return 1000 * (min(ours) - deleted[0]) if deleted and ours else None


def run(bed, report, scale):
    event_to_action(bed, report, scale)
