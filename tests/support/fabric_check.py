# SPDX-License-Identifier: Apache-2.0
"""`drarun bench fabric` on agents in the pods of a guest (rail_guest.py)."""
import json
import secrets

from .build import BUILD, patience

LIMIT_MS = 1000 * int(patience(20))
KEY, PORT = "/run/fabric-key", 7100
WORKER = BUILD / "bin/drarun-worker"


def checked(guest, *words, second=None, workers=2, under=(), opened=None, **env):
    """Its Result, and what it found. second: rails of the second worker, opened: those of them whose device file it has, under: around it."""
    guest.write(KEY, secrets.token_hex(32))
    guest.sh(f"chmod 600 {KEY}")
    places = [f"10.77.0.{i + 1}:{PORT}" for i in range(workers)]
    others = {"rails": second, "opened": opened, "under": under}
    agents = [guest.pod(name, WORKER, "--listen", place, "--key-file", KEY, **(others if name == "b" else {}))
              for name, place in zip(guest.workers, places)]
    result = guest.run("ip", "netns", "exec", "a", BUILD / "bin/drarun", "bench", "fabric", "-o", "json", *words, "--agents",
                       ",".join(places), "--key-file", KEY, env={"DRARUN_REACH_MS": LIMIT_MS, **env})
    guest.run("pkill", "-f", f"^{WORKER} --listen")  # also where nobody has called them
    for agent in agents:
        agent()
    return result, json.loads(result.out) if result.out else None
