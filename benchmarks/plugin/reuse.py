# SPDX-License-Identifier: Apache-2.0
"""A pod is deleted by force (grace 0) while it runs on, and the next pod, made in the same moment, gets the same NICs. From
the deletion to the start of the next pod's container. (Veths die with a pod that has ended: here they are taken from
one that has not, as it ignores SIGTERM for the kubelet's 2 s.)"""
import statistics
import time

from benchmarks.plugin.node_bed import NICS
from benchmarks.harness.report import SPREAD_COLUMNS, counted, number

GOAL_MS = 1000


def release(bed, name):
    bed.api.delete("v1", "Pod", name, "default", grace=0)
    bed.api.delete("resource.k8s.io/v1", "ResourceClaim", name, "default")


def turn(bed, number):
    """Milliseconds."""
    first, second = (f"reuse-{number}-{k}" for k in range(2))
    for name in (first, second):
        bed.api.make(bed.claim(name, NICS))
    bed.pod(first, ["sleep", "1000"], NICS).make().wait_phase("Running")
    began = time.time()
    release(bed, first)
    after = bed.pod(second, ["sleep", "1000"], NICS).make()

    def at():
        if time.time() - began > 5:  # so slow that the first pod ended before, and its veths with it
            bed.nics.replug()
        return bed.began(second)
    took = bed.cluster.wait(lambda: f"{after.describe()}\n{bed.plugin.log()}", at, 60, 0.05) - began
    release(bed, second)
    bed.again()
    return 1000 * took


def measure(bed, rounds):
    """Milliseconds; the round before the first warms up."""
    return [turn(bed, number) for number in range(rounds + 1)][1:]


def run(bed, report, scale):
    values = measure(bed, scale.rounds)
    report.heading(f"From a forced delete to the start of the next pod with the same {NICS} NICs, {counted(scale.rounds, 'round')}, ms")
    report.table(["what", *SPREAD_COLUMNS, "goal", "verdict"])
    report.row("the next pod", *report.spread("the next pod", values), number(GOAL_MS),
               report.verdict("reuse after a forced delete, ms", statistics.median(values), GOAL_MS))
