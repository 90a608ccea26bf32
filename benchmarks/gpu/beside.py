# SPDX-License-Identifier: Apache-2.0
"""The same collective of the same sizes by drarun-bench and by nccl-tests, in turns. DRARUN_NCCL_TESTS names the folder of
nccl-tests' programs; libnccl and libcudart are found as programs find them (LD_LIBRARY_PATH)."""
import os
import re
import subprocess
import time
from pathlib import Path

from benchmarks.harness.launchers import BUILD
from benchmarks.harness.machine import said
from benchmarks.harness.report import RATIO_COLUMNS, middle, quarters
from benchmarks.harness.turns import in_turns

NAMES = ("all_gather", "all_reduce", "broadcast", "reduce_scatter", "alltoall", "sendrecv")
GOAL = 1.05
WHOLE = ("all_gather", "all_reduce")
WHOLE_GOAL = 1.5
LIMIT_S = 300  # of a start
TIMES = r" +([\d.]+) +[\d.]+ +[\d.]+ +(\S+)"
ROW = re.compile(rf"^ +(\d+) +\d+ +float +\w+ +-?\d+{TIMES}{TIMES}$", re.M)
PLACES = ("out of place", "in place")


def gpus():
    return len(re.findall(r"\bGPU \d+:", said("nvidia-smi", "-L")))


def started(words):
    """{(bytes, place): us} of one start; fails where data were wrong."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    found = {}
    for size, out, wrong, within, wrong_within in ROW.findall(done.stdout):
        if {wrong, wrong_within} - {"0", "N/A"}:
            raise RuntimeError(f"{' '.join(map(str, words))}: wrong data at {size} bytes")
        found |= {(int(size), PLACES[0]): float(out), (int(size), PLACES[1]): float(within)}
    return found


def contenders(name, count, *sizes):
    theirs = Path(os.environ.get("DRARUN_NCCL_TESTS", "/usr/local/bin")) / f"{name}_perf"
    return {"drarun-bench": [BUILD / "bin/drarun", "-n", count, BUILD / "bin/drarun-bench", name, "--backend", "nccl", *sizes],
            "nccl-tests": [theirs, "-t", count, "-g", 1, *sizes]}


def missing(count, words):
    """Why they can't be compared here, or None."""
    if not count:
        return "nvidia-smi shows no GPU"
    theirs = Path(words["nccl-tests"][0])
    return None if theirs.exists() else f"no {theirs}: build nccl-tests and let DRARUN_NCCL_TESTS name its folder"


def table(name):
    def run(report, scale):
        report.heading(f"{name}, us")
        count = gpus()
        words = contenders(name, count, "-b", "8K", "-e", scale.largest, "-f", "8")
        why = missing(count, words)
        if why:
            report.line()
            report.line(f"Skipped: {why}.")
            return
        times = {who: {} for who in words}
        for number, who in in_turns(words, scale.rounds):
            for key, us in started(words[who]).items() if number >= 0 else ():
                times[who].setdefault(key, []).append(us)
        report.table(["bytes", "place", "drarun-bench", "p25-p75", "nccl-tests", "p25-p75", *RATIO_COLUMNS])
        for size, place in times["drarun-bench"]:
            ours, theirs = (times[who].get((size, place), []) for who in words)
            nothing = count == 1 and place == PLACES[1]  # is moved: a call alone
            report.row(size, place, middle(ours), quarters(ours), middle(theirs), quarters(theirs),
                       *report.ratio(f"{name} of {size} bytes, {place}", ours, theirs, None if nothing else GOAL))
    return run


def whole(report, scale):
    """From the command to its end: starting, making data, moving it, checking it."""
    report.heading("A whole start with data that are checked, s")
    count = gpus()
    starts = {name: contenders(name, count, "-b", scale.whole, "-e", scale.whole, "-n", 1, "-w", 0) for name in WHOLE}
    why = missing(count, starts[WHOLE[0]])
    if why:
        report.line()
        report.line(f"Skipped: {why}.")
        return
    report.table(["collective", "bytes", "drarun-bench", "p25-p75", "nccl-tests", "p25-p75", *RATIO_COLUMNS])
    for name, words in starts.items():
        took = {who: [] for who in words}
        for number, who in in_turns(words, scale.rounds):
            began = time.monotonic()
            started(words[who])
            if number >= 0:
                took[who].append(time.monotonic() - began)
        ours, theirs = took.values()
        report.row(name, scale.whole, middle(ours), quarters(ours), middle(theirs), quarters(theirs),
                   *report.ratio(f"a start of {name}, {scale.whole}", ours, theirs, WHOLE_GOAL))
