# SPDX-License-Identifier: Apache-2.0
"""How many requests client and launcher make of the API server for one job, from its audit log."""
import collections

from bed import OURS, WRITES

GOAL_WRITES, GOAL_WATCHES = 8, 4
DRIVER, GPUS = "gpu.nvidia.com", 32  # on each node
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
        found = collections.defaultdict(collections.Counter)
        for each in bed.audit.requests(since=mark, agent=OURS):
            if each.namespace in ("", namespace) and not (each.resource in UNCOUNTED and each.verb in WRITES):
                found["launcher" if each.user.startswith("system:serviceaccount:") else "client"][each.verb] += 1
        return found, "" if outcome.status == 0 else f"status {outcome.status}: {outcome.err[-300:]}"


def gpus(devices):
    """GPUS of them, which is more than one bus in sixteen has room for."""
    found = devices.gpus(GPUS)
    for k, each in enumerate(found):
        each["device"]["attributes"].update({devices.BUS: {"string": f"0000:{k:02x}:00.0"},
                                             devices.ROOT: {"string": f"pci0000:{k:02x}"}})
    return found


def words(counter):
    return ", ".join(f"{number} {verb}" for verb, number in sorted(counter.items())) or "-"


def run(bed, report, scale):
    from support.cluster import devices
    bed.cluster.device_classes()
    drivers = [bed.cluster.driver(i, DRIVER, gpus(devices)).start() for i in range(2)]
    for each in drivers:
        each.wait()
    bed.api.make(*SLICES)  # the optional right that the launcher's account has beside its Role
    report.heading("Requests for one job that claims a device for each worker (Events not counted)")
    report.table(["claims", "workers", "client", "launcher", "writes", "goal", "verdict", "watches", "goal", "verdict"])
    for claims in ("direct", "template"):
        for workers in scale.counted:
            found, failure = count(bed, {"workers": workers, "image": "localhost/busybox:1", "command": ["true"],
                                         "devices": {"claims": claims, "gpus": {"count": 1, "class": DRIVER}}})
            what = f"{claims} mode, {workers} workers"
            writes = sum(number for each in found.values() for verb, number in each.items() if verb in WRITES)
            watches = found["launcher"]["watch"]
            goal = GOAL_WRITES + (2 * workers if claims == "direct" else 0)
            if failure:
                report.missed.append(f"{what}: {failure}")
                continue
            report.row(claims, workers, words(found["client"]), words(found["launcher"]), writes, goal,
                       report.verdict(f"{what}: writes", writes, goal), watches, GOAL_WATCHES,
                       report.verdict(f"{what}: the launcher's watches", watches, GOAL_WATCHES))
    for each in SLICES:
        bed.api.delete(each["apiVersion"], each["kind"], "slices")
    for each in drivers:
        each.stop()
