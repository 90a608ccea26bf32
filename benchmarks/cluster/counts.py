# SPDX-License-Identifier: Apache-2.0
"""How many requests client and launcher make of the API server for one job, from its audit log."""
import collections

from benchmarks.cluster.bed import OURS, WRITES
from support.cluster.machines import Machines, USER, claimed

GOAL_WRITES, GOAL_WATCHES = 8, 4
UNCOUNTED = {"events"}


RBAC = "rbac.authorization.k8s.io"
SLICES = [{"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "slices"}, "rules": [
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]},
          {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "slices"},
           "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "slices"},
           "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:serviceaccounts"}]}]


def count(bed, spec):
    """({"client": Counter of verbs, "launcher": ...}, why it failed)."""
    with bed.namespace() as namespace:
        bed.install(namespace)
        mark = bed.audit.mark()
        outcome = bed.run(namespace, spec)
        if outcome.status:
            return {}, f"status {outcome.status}: {outcome.err[-300:]}"
        # the launcher tells the end before it cleans up
        bed.cluster.wait("the launcher does not end", lambda: ended(bed, namespace), 60, 0.1)
        found = collections.defaultdict(collections.Counter)
        for each in bed.audit.requests(since=mark, agent=OURS):
            if each.user != USER and each.namespace in ("", namespace) and not (each.resource in UNCOUNTED and each.verb in WRITES):
                verb = f"{each.verb} as a dry run" if "dryRun=All" in each.uri else each.verb  # nothing is written then
                found["launcher" if each.user.startswith("system:serviceaccount:") else "client"][verb] += 1
        return found, ""


def ended(bed, namespace):
    job = bed.api.get("batch/v1", "Job", "job", namespace)
    return job and any(each["type"] in ("Complete", "Failed") for each in job.get("status", {}).get("conditions", ()))


def words(counter):
    return ", ".join(f"{number} {verb}" for verb, number in sorted(counter.items())) or "-"


def run(bed, report, scale):
    bed.cluster.device_classes()
    machines = Machines(bed.cluster)  # eight GPUs, each with a NIC, on either node
    bed.api.make(*SLICES)  # the optional right that the launcher's account has beside its Role
    report.heading("Requests for one job that claims a device for each worker (Events not counted)")
    report.table(["claims", "workers", "client", "launcher", "writes", "goal", "verdict", "watches", "goal", "verdict"])
    for claims in ("direct", "template"):
        for workers in scale.counted:
            found, failure = count(bed, {"workers": workers, "image": "localhost/busybox:1", "command": ["true"],
                                         "placement": {"spread": "none"}, "devices": claimed(1, 1, claims=claims)})
            what = f"{claims} mode, {workers} workers"
            if failure:
                report.missed.append(f"{what}: {failure}")
                continue
            writes = sum(number for each in found.values() for verb, number in each.items() if verb in WRITES)
            watches = found["launcher"]["watch"]
            goal = GOAL_WRITES + (2 * workers if claims == "direct" else 0)
            report.row(claims, workers, words(found["client"]), words(found["launcher"]), writes, goal,
                       report.verdict(f"{what}: writes", writes, goal), watches, GOAL_WATCHES,
                       report.verdict(f"{what}: the launcher's watches", watches, GOAL_WATCHES))
    for each in SLICES:
        bed.api.delete(each["apiVersion"], each["kind"], "slices")
    machines.stop()
