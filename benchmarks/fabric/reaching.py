# SPDX-License-Identifier: Apache-2.0
"""Table "reach": `drarun bench fabric --reach` on agents of two and of four workers with two NICs each."""
import functools
import json
import secrets

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.report import SPREAD_COLUMNS, counted
from benchmarks.harness.turns import sampled
from support.rail_guest import RailGuest

RAILS, PORT, KEY = 2, 7100, "/run/fabric-key"
COUNTS = (2, 4)
LIMIT_MS = 60_000


def reach(guest, workers):
    """Milliseconds that the launcher waited for all pairs."""
    places = [f"10.77.0.{i + 1}:{PORT}" for i in range(workers)]
    agents = [guest.pod(name, BUILD / "bin/drarun-worker", "--once", "--listen", place, "--key-file", KEY)
              for name, place in zip(guest.workers, places)]
    said = guest.ok("ip", "netns", "exec", "a", BUILD / "bin/drarun", "bench", "fabric", "--reach", "-o", "json", "--agents", ",".join(places),
                    "--key-file", KEY, env={"DRARUN_REACH_MS": LIMIT_MS})
    for agent in agents:
        agent()
    found = json.loads(said)["reach"]
    assert found["reached"] == found["pairs"] == RAILS * workers, found
    return found["ms"]


def run(report, scale):
    guest = RailGuest(workers=max(COUNTS), rails=RAILS)
    try:
        guest.write(KEY, secrets.token_hex(32))
        guest.sh(f"chmod 600 {KEY}")
        times = sampled({count: functools.partial(reach, guest, count) for count in COUNTS}, scale.rounds)
    finally:
        guest.close()
    report.heading(f"Reach over {RAILS} rails, {counted(scale.rounds, 'round')}, ms")
    report.line()
    report.line("From the plan to the last pair's answer: each NIC writes 32 KiB to the next worker's on its rail. Without RDMA nothing is started.")
    report.table(["workers", *SPREAD_COLUMNS])
    for count, values in times.items():
        report.row(count, *report.spread(f"{count} workers", values))
