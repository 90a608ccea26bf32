# SPDX-License-Identifier: Apache-2.0
"""From a pod's binding to its container's start: without a claim, with NICs, and what the moves of those NICs cost in one
`ip -batch` on the same node. Pods have no volume, whose wait would hide what claims cost."""
import statistics

from benchmarks.plugin.node_bed import NICS
from benchmarks.harness.report import SPREAD_COLUMNS, counted, number
from benchmarks.harness.turns import in_turns

MS_FOR_ONE, MS_ABOVE_MOVES = 40, 20
MOVES = f"the moves of {NICS} NICs in one `ip -batch`"


def row_of(count):
    return f"pod with {count} NIC{'s' if count > 1 else ''}" if count else "pod without a claim"


def bound(bed, mark, name):
    """When the server got the request that binds it."""
    return next((each.received for each in bed.audit.requests(since=mark, resource="pods", subresource="binding")
                 if each.name == name), None)


def start(bed, name, count):
    """Milliseconds."""
    mark = bed.audit.mark()
    if count:
        bed.api.make(bed.claim(name, count))
    pod = bed.pod(name, ["sleep", "1000"], count).make()
    began = bed.cluster.wait(lambda: pod.describe(), lambda: bed.began(name), 60, 0.1)
    when = bound(bed, mark, name)
    pod.delete(0)
    if count:
        bed.api.delete("resource.k8s.io/v1", "ResourceClaim", name, "default")
    bed.again()
    return 1000 * (began - when)


def moves(bed):
    """Milliseconds of the same moves as the hook does, into a namespace that is thrown away."""
    name = "bench-moves"
    bed.node.ok(["ip", "netns", "add", name])
    bed.node.ok(["ip", "-batch", "-"], input="".join(f"link set nic{k} down\n" for k in range(NICS)))
    batch = "".join(f"link set nic{k} name net{k} netns {name}\n" for k in range(NICS))
    out = bed.node.ok(["bash", "-c", "b=$EPOCHREALTIME; ip -batch -; e=$EPOCHREALTIME; echo $(( ${e/./} - ${b/./} ))"],
                      input=batch)
    bed.node.ok(["ip", "netns", "del", name])
    bed.cluster.wait("the NICs do not go", lambda: not bed.nics.here(), 30)
    bed.again()
    return int(out) / 1000


def measure(bed, rounds):
    """{row: milliseconds}"""
    rows = {row: [] for row in (*map(row_of, (0, 1, NICS)), MOVES)}
    turns = {row_of(count): lambda number, count=count: start(bed, f"bench-{number + 1}-{count}", count)
             for count in (0, 1, NICS)}
    turns[MOVES] = lambda number: moves(bed)
    for number, row in in_turns(rows, rounds):
        value = turns[row](number)
        if number >= 0:
            rows[row].append(value)
    return rows


def run(bed, report, scale):
    rows = measure(bed, scale.rounds)
    middle = {row: statistics.median(values) for row, values in rows.items()}
    goals = {row_of(1): MS_FOR_ONE, row_of(NICS): middle[MOVES] + MS_ABOVE_MOVES}
    report.heading(f"From a pod's binding to its container's start, {counted(scale.rounds, 'round')}, ms")
    report.table(["what", *SPREAD_COLUMNS, "more than without", "goal", "verdict"])
    for row, values in rows.items():
        more = middle[row] - middle[row_of(0)]
        goal = goals.get(row)
        report.row(row, *report.spread(row, values), number(more) if goal else "-", number(goal) if goal else "-",
                   report.verdict(f"{row}, ms more than without", more, goal) if goal else "")
