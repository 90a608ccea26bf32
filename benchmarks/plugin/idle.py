# SPDX-License-Identifier: Apache-2.0
"""A plugin to which nothing happens: its memory, and what it asks the API server for."""
import time

from benchmarks.plugin.node_bed import NICS
from benchmarks.cluster.bed import OURS, WRITES

RESIDENT_MIB = 6


def memory_mib(bed):
    """(resident, of that its own) of the process, in MiB."""
    pid = bed.node.ok(["pgrep", "-x", "drarun-plugin"]).split()[0]
    fields = dict(line.split(":") for line in bed.node.ok(["cat", f"/proc/{pid}/smaps_rollup"]).splitlines()[1:])
    kib = {name: int(fields[name].split()[0]) for name in ("Rss", "Private_Dirty", "Private_Clean")}
    return kib["Rss"] / 1024, (kib["Private_Dirty"] + kib["Private_Clean"]) / 1024


def run(bed, report, scale):
    mark = bed.audit.mark()
    time.sleep(scale.idle_s)
    asked = bed.audit.requests(since=mark, agent=OURS)
    writes = sum(each.verb in WRITES for each in asked)
    resident, own = memory_mib(bed)
    report.heading(f"Idle for {scale.idle_s} s with {NICS} NICs")
    report.table(["what", "value", "goal", "verdict"])
    report.row("resident, MiB", f"{resident:.1f}", RESIDENT_MIB, report.verdict("resident MiB", resident, RESIDENT_MIB))
    report.row("of that not shared with others, MiB", f"{own:.1f}", "-", "")
    report.row("API writes", writes, 0, report.verdict("idle API writes", writes, 0))
    report.row("API reads", len(asked) - writes, "-", "")
