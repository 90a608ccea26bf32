# SPDX-License-Identifier: Apache-2.0
"""One start of an MPI program under one launcher: what it printed, its exit status, and that nothing of it stays."""
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.launchers import DRARUN, Launcher
from support import leftovers

TWO_WORKERS = Launcher("drarun, two workers", DRARUN.program, ["--workers", 2])


@dataclass
class Ended:
    status: int | None  # None: no end within the limit
    output: str  # stdout and stderr as they came
    seconds: float

    def last_lines(self, count=3):
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return " / ".join(lines[-count:])[-300:]


def start(launcher, ranks, words, folder, limit, env=(), stdin=None):
    """Runs the words under the launcher in that folder, and ends all that is left of it. limit: seconds."""
    token = uuid.uuid4().hex
    tmp = tempfile.mkdtemp(prefix="drarun-programs-")
    environment = {**launcher.environment(), **dict(env), "TMPDIR": tmp, leftovers.TOKEN: token}
    began = time.monotonic()
    with open(stdin or os.devnull, "rb") as given, open(Path(tmp) / "output", "wb+") as output:
        process = subprocess.Popen(launcher.command(ranks, *words), cwd=folder, env=environment, stdin=given, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        seconds = time.monotonic() - began
        leftovers.kill(token)
        process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    shutil.rmtree(tmp, ignore_errors=True)
    return Ended(status, text, seconds)


def compare(peer, ours, rounds=3):
    """peer, ours: functions that run once and return what is wrong, "" when nothing is. Returns {verdict, peer, ours},
    the last two as lists of what was wrong in each round. Another round follows only while ours is worse: a busy machine
    makes either fail at times."""
    found = {"peer": [], "ours": []}
    for _ in range(rounds):
        found["peer"].append(peer())
        if found["peer"][-1]:
            break  # what fails under its own launcher says nothing about ours
        found["ours"].append(ours())
        if not found["ours"][-1]:
            break
    if not found["ours"]:
        return {"verdict": "not compared", **found}
    if found["peer"][-1] and any(found["ours"]):
        return {"verdict": "unsteady", **found}
    return {"verdict": "fails" if found["ours"][-1] else "passes", **found}
