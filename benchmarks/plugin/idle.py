# SPDX-License-Identifier: Apache-2.0
"""A plugin to which nothing happens: its memory, and what it asks the API server for."""
import re
import time

from benchmarks.plugin.node_bed import NICS
from benchmarks.cluster.bed import OURS, WRITES

RESIDENT_MIB = 6
FIELDS = ("Size", "Rss", "Private_Dirty", "Private_Clean")
MAPPING = re.compile(r"^\w+-\w+ (\S{4}) \w+ \S+ \d+ *(.*)$")


def group_of(rights, name):
    """What lies in a mapping of /proc/PID/smaps."""
    if name.startswith("/"):
        which = "code" if "x" in rights else "data" if "w" in rights else "constants"
        return which if name.endswith("/drarun-plugin") else f"{which} of libraries"
    return {"[heap]": "heap", "[stack]": "stack", "": "data"}.get(name, "the kernel's")


def memory(text):
    """{group: {field of FIELDS: KiB}} of a /proc/PID/smaps."""
    groups = {}
    for line in text.splitlines():
        if mapping := MAPPING.match(line):
            group = groups.setdefault(group_of(*mapping.groups()), dict.fromkeys(FIELDS, 0))
        elif (name := line.split(":")[0]) in FIELDS:
            group[name] += int(line.split()[1])
    return groups


def measure(bed):
    """The groups of the plugin that runs."""
    pid = bed.node.ok(["pgrep", "-x", "drarun-plugin"]).split()[0]
    return memory(bed.node.ok(["cat", f"/proc/{pid}/smaps"]))


def run(bed, report, scale):
    mark = bed.audit.mark()
    time.sleep(scale.idle_s)
    asked = bed.audit.requests(since=mark, agent=OURS)
    writes = sum(each.verb in WRITES for each in asked)
    groups = measure(bed)
    total = {field: sum(each[field] for each in groups.values()) / 1024 for field in FIELDS}
    own = total["Private_Dirty"] + total["Private_Clean"]
    report.heading(f"Idle for {scale.idle_s} s with {NICS} NICs")
    report.table(["what", "value", "goal", "verdict"])
    report.row("resident, MiB", f"{total['Rss']:.1f}", RESIDENT_MIB, report.verdict("resident MiB", total["Rss"], RESIDENT_MIB))
    report.row("of that not shared with others, MiB", f"{own:.1f}", "-", "")
    report.row("API writes", writes, 0, report.verdict("idle API writes", writes, 0))
    report.row("API reads", len(asked) - writes, "-", "")
    report.heading("Its memory by /proc/PID/smaps, KiB")
    report.table(["what", "size", "resident", "written"])
    for name, each in groups.items():
        report.row(name, each["Size"], each["Rss"], each["Private_Dirty"])
