# SPDX-License-Identifier: Apache-2.0
"""Table "strangers": 64 ranks meet over PMIx while another user of the machine crowds the job's port."""
import os
import subprocess
import sys

from benchmarks.harness.launchers import BENCH, DRARUN
from benchmarks.harness.report import RATIO_COLUMNS, SPREAD_COLUMNS
from benchmarks.harness.stopwatch import Contender, interleave
from benchmarks.launch.pmix import check

RANKS = 64
STRANGERS = 1000
DEADLINE = 60
GOAL = 1.2
NOBODY = 65534

# Watches for a new port of that user on the loopback, as anybody can, and opens so many connections to it. Says how many it has
# made when its stdin ends.
STRANGER = """
import resource, select, socket, sys
uid, count = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
def ports():
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return {int(row[1][9:], 16) for row in rows if row[1].startswith("0100007F:") and row[3] == "0A" and row[7] == uid}
known, kept, made = ports(), [], 0
print("there", flush=True)
while not select.select([sys.stdin], [], [], 0.002)[0]:
    for port in ports() - known:
        known.add(port)
        for _ in range(count):
            try:
                kept.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                made += 1
            except OSError:
                break
print(made, flush=True)
"""


class Crowded(Contender):
    """A contender beside a stranger who makes so many connections; that they were made is part of a good run."""

    def __init__(self, name, strangers, *words, **how):
        super().__init__(DRARUN, *words, **how)
        self.name, self.strangers = name, strangers

    def run_once(self, deadline, keep=True):
        bad_before = self.bad_in_a_row
        with subprocess.Popen([sys.executable, "-c", STRANGER, str(os.geteuid()), str(self.strangers)], user=NOBODY, group=NOBODY,
                              extra_groups=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as stranger:
            stranger.stdout.readline()
            sample = super().run_once(deadline, keep=False)
            made = int(stranger.communicate()[0])
        if sample.good and made < self.strangers:
            sample.failure = f"only {made} of {self.strangers} connections were made"
            self.bad.append(sample)
            self.bad_in_a_row = bad_before + 1
        elif sample.good and keep:
            self.samples.append(sample)
        return sample


def run(report, scale):
    report.heading(f"PMIx client, {RANKS} ranks, beside a stranger")
    report.line()
    report.line(f"Milliseconds of the whole job. Another user (nobody) watches for the job's port and makes {STRANGERS} connections to it, which say "
                "nothing; beside the other contender the same process watches and makes none.")
    if os.geteuid() != 0:
        report.line("Skipped: only root can be another user, too")
        return
    if not (BENCH / "px").exists():
        report.line("Skipped: no PMIx client: run scripts/setup --bench and build again")
        return
    words = (RANKS, BENCH / "px", "all", 20)
    attacked, alone = (Crowded(name, count, *words, check=check(RANKS, 20)) for name, count in
                       ((f"{STRANGERS} strangers", STRANGERS), ("a watcher alone", 0)))
    interleave([attacked, alone], scale.rounds, DEADLINE)
    report.table(["beside", *SPREAD_COLUMNS, "failed / hung"])
    for each in (attacked, alone):
        report.row(each.name, *report.spread(each.name, each.values("wall")), report.bad("strangers", each, True))
    report.table(["what", "against", *RATIO_COLUMNS])
    report.row("whole job", alone.name, *report.ratio("strangers, whole job", attacked.values("wall"), alone.values("wall"), GOAL))
