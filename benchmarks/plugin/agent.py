# SPDX-License-Identifier: Apache-2.0
"""How the agent comes into a worker's pod: by an init container and a volume, by a volume that is its image, or by the
claim's CDI edits. From the pod's creation to the start of the container that is the agent, which listens some
milliseconds later in each case, and to the first word of a rank, for which it was dialled."""
import json
import statistics
import subprocess

from benchmarks.cluster.bed import DEADLINE, realtime_of, started
from benchmarks.harness.launchers import DRARUN
from benchmarks.harness.report import SPREAD_COLUMNS, counted, number
from benchmarks.harness.turns import sampled
from support.cluster.plugin import NIC

SOONER_MS = 250
CLAIM, COPY, VOLUME = "by the claim", "by an init container and a volume", "by an image volume"
WAYS = {CLAIM: None, COPY: "copy", VOLUME: "volume"}  # DRARUN_AGENT; by the claim: as it finds out itself
WORKER = {"name": "main", "image": "localhost/busybox:1", "command": ["sh", "-c", "cut -d' ' -f1 /proc/uptime"]}
DEVICES = {"nics": {"count": 1, "class": NIC}}


def created(bed, mark, name, resource):
    return min(each.received for each in bed.audit.requests(since=mark, verb="create", resource=resource)
               if each.name == name)


def spec(bed):
    """Of a job on the bed's node."""
    template = {"spec": {"containers": [WORKER], "nodeSelector": {"kubernetes.io/hostname": bed.node.name}}}
    return {"workers": 1, "ranksPerWorker": 1, "network": "any", "devices": DEVICES, "template": template}


def start(bed, way):
    """Milliseconds: (pod created to agent started, pod created to the rank's first word)."""
    bed.cluster.image("drarun")
    path = bed.cluster.folder / "agent.json"
    path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": "agent"},
                                "spec": spec(bed)}))
    env = {**DRARUN.environment(), "KUBECONFIG": str(bed.cluster.kubeconfig(namespace="default")),
           "DRARUN_IMAGE": "localhost/drarun:1", **({"DRARUN_AGENT": WAYS[way]} if WAYS[way] else {})}
    words = [*bed.cluster.under, DRARUN.program()]
    mark = bed.audit.mark()
    run = subprocess.Popen([*words, "run", "--here", path], env=env, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = run.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        status = subprocess.run([*words, "status", "agent"], env=env, capture_output=True, text=True, timeout=DEADLINE)
        pods = bed.cluster.kubectl("describe", "pods", "-n", "default")
        run.kill()
        raise AssertionError(f"{way}: no end after {DEADLINE} s\n{run.communicate()[1]}\n{status.stdout}{status.stderr}\n{pods}\n"
                             f"{bed.plugin.log()}") from None
    assert run.returncode == 0, f"{way}: {err}"
    spoke = realtime_of(float(out) * 1e9)
    made = created(bed, mark, "agent-w-0", "pods")
    began = bed.cluster.wait("containerd does not say when it began",
                             lambda: started(bed.node.folder / "containerd.log", "default").get("agent-w-0"), 10)
    bed.cluster.wait("the pod stays", lambda: not bed.api.get("v1", "Pod", "agent-w-0", "default"), 60)
    bed.again()
    return 1000 * (began - made), 1000 * (spoke - made)


def measure(bed, rounds):
    """{way: [(ms, ms)]}"""
    return sampled({way: lambda way=way: start(bed, way) for way in WAYS}, rounds)


def run(bed, report, scale):
    rows = measure(bed, scale.rounds)
    for at, what in enumerate(("the agent's start", "the first word of a rank")):
        middle = {way: statistics.median(value[at] for value in values) for way, values in rows.items()}
        report.heading(f"From a worker pod's creation to {what}, {counted(scale.rounds, 'round')}, ms")
        report.table(["the agent comes", *SPREAD_COLUMNS, "later than by the claim", "goal", "verdict"])
        for way, values in rows.items():
            later = middle[way] - middle[CLAIM]
            judged = way == COPY
            report.row(way, *report.spread(way, [value[at] for value in values]), number(later) if way != CLAIM else "-",
                       f"at least {SOONER_MS}" if judged else "-",
                       report.verdict(f"{what}: ms that the claim is slower than {SOONER_MS} sooner", SOONER_MS - later, 0)
                       if judged else "")
