# SPDX-License-Identifier: Apache-2.0
"""Tables "open" and "start": two workers with up to eight NICs each."""
import functools
import json
import os
import secrets
import statistics
from pathlib import Path

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS, counted, number
from benchmarks.harness.turns import sampled
from support.rail_guest import RailGuest

RAILS = 8
COUNTS = (1, 4, 8)
FURTHER = 0.5  # of the first NIC's cost
LIMIT_MS = 60_000
NOTHING = 1.1  # "pays nothing", as far as times in an emulation tell

# The milliseconds that a command takes, by the guest's clock, and what it prints
TIMED = 'a=$EPOCHREALTIME; said=$("$@"); b=$EPOCHREALTIME; echo $(((${b/./} - ${a/./}) / 10)); echo "$said"'


def timed(words):
    return ["bash", "-ec", TIMED, "timed", *words]


def taken(result):
    """(milliseconds, what it printed)"""
    first, _, said = result.ok().out.partition("\n")
    return int(first) / 100, said.strip()


def open_nics(guest, count):
    took, said = taken(guest.pod("a", *timed([BUILD / "bin/drarun-worker", "--nics"]), rails=range(count))())
    nics = [json.loads(line) for line in said.splitlines()]
    assert len(nics) == count and all(step["done"] for nic in nics for step in nic["steps"].values()), nics
    return took


def opening(report, scale):
    guest = RailGuest(workers=1, rails=RAILS, memory_mib=2048)
    try:
        times = sampled({count: functools.partial(open_nics, guest, count) for count in COUNTS}, scale.rounds)
    finally:
        guest.close()
    report.heading(f"Opening NICs, {counted(scale.rounds, 'round')}, ms")
    report.line()
    report.line("`drarun-worker --nics`, which an agent starts where its pod has RDMA devices: the process, and for each device its facts, a completion "
                "queue, a queue pair and 64 MiB registered. A further NIC's part of the first is (all - first) / (number - 1) / first.")
    report.table(["NICs", *SPREAD_COLUMNS, "a further one's part of the first", "goal", "verdict"])
    first = statistics.median(times[1])
    for count, values in times.items():
        part = (statistics.median(values) - first) / (count - 1) / first if count > 1 else None
        judged = [number(part), FURTHER, report.verdict(f"a further of {count} NICs", part, FURTHER)] if count > 1 else ["-", "-", ""]
        report.row(count, *report.spread(f"{count} NICs", values), *judged)


class Job:
    """Two workers of `drarun exec`, of the tree `build`, whose ranks do nothing. rails: NICs of each."""

    def __init__(self, guest, build, rails, network):
        self.guest, self.build, self.rails, self.network = guest, build, rails, network

    def __call__(self):
        env = {"DRARUN_KEY": secrets.token_hex(32), "DRARUN_REACH_MS": LIMIT_MS}
        words = [self.build / "bin/drarun", "exec", "--network", self.network, "--workers", 2, "--", "true"]
        other = self.guest.pod("b", *words, rails=range(self.rails), **env)
        first = self.guest.pod("a", *timed(words), rails=range(self.rails), **env)
        took, _ = taken(first())
        other().ok()
        return took


def contenders(guest, before):
    """{row: (job, what it is compared with)}"""
    found = {"without RDMA": Job(guest, BUILD, 0, "any")}
    if before:
        found["without RDMA, before"] = Job(guest, before, 0, "any")
    found[f"{RAILS} NICs, opened"] = Job(guest, BUILD, RAILS, "any")
    found[f"{RAILS} NICs, opened and reached"] = Job(guest, BUILD, RAILS, "rdma")
    if before:
        found[f"{RAILS} NICs, before"] = Job(guest, before, RAILS, "rdma")
    return found


def run(report, scale):
    before = os.environ.get("DRARUN_BEFORE")
    before = Path(before).resolve() if before else None
    guest = RailGuest(workers=2, rails=RAILS, memory_mib=2048, folders=[before] if before else [])
    try:
        times = sampled(contenders(guest, before), scale.rounds)
    finally:
        guest.close()
    report.heading(f"Two workers of `drarun exec` from the start to the end of ranks that do nothing, {counted(scale.rounds, 'round')}, ms")
    report.line()
    report.line("Before: the build tree that DRARUN_BEFORE names, of a commit that opens no NICs." if before else
                "Nothing to compare with: DRARUN_BEFORE may name the build tree of a commit that opens no NICs.")
    report.table(["job", *SPREAD_COLUMNS])
    for row, values in times.items():
        report.row(row, *report.spread(row, values))
    report.table(["job", "against", *RATIO_COLUMNS])
    for row, against, goal in (("without RDMA", "without RDMA, before", NOTHING), (f"{RAILS} NICs, opened", f"{RAILS} NICs, before", None),
                               (f"{RAILS} NICs, opened and reached", f"{RAILS} NICs, before", None),
                               (f"{RAILS} NICs, opened", "without RDMA", None), (f"{RAILS} NICs, opened and reached", "without RDMA", None)):
        if against in times:
            report.row(row, against, *report.ratio(f"{row}, against {against}", times[row], times[against], goal))
