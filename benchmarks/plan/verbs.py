# SPDX-License-Identifier: Apache-2.0
"""drarun plan, render and env over captured nodes, and one pairing."""
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.harness.launchers import BENCH, DRARUN, SOURCE
from benchmarks.harness.report import SPREAD_COLUMNS, counted, number

PAIRING_US, PAIRINGS = 100, 2000
NODES = 1000
SPEC = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": "all-reduce"}, "spec": {
    "workers": NODES, "image": "example/nccl-tests", "command": ["all_reduce_perf"], "devices": {
        "gpus": {"count": 8, "class": "gpu.nvidia.com"}, "align": "preferred",
        "nics": {"count": 8, "class": "dranet", "selector": 'device.attributes["dra.net"].rdma == true'}}}}


def write(path, document):
    path.write_text(json.dumps(document))
    return path


def cluster(folder):
    """1,000 nodes of 8 GPUs and 8 NICs, as kubectl get nodes,resourceslices prints them."""
    fixture = json.loads((SOURCE / "tests/data/fixtures/a4-highgpu-8g.json").read_text())
    one = json.dumps([{"apiVersion": "v1", "kind": "Node", "metadata": fixture["node"]}, *fixture["resourceSlices"]])
    items = []
    for i in range(NODES):
        items += json.loads(one.replace(fixture["node"]["name"], f"node-{i:04d}"))
    return write(folder / "cluster.json", {"apiVersion": "v1", "kind": "List", "items": items})


def pod(folder):
    """The words of drarun env for one worker of a vector: claims, slices, node and probe."""
    vector = json.loads((SOURCE / "tests/data/vectors/02-a4-8gpu-8nic.json").read_text())
    worker = vector["input"]["workers"][0]
    fixture = json.loads((SOURCE / "tests/data/fixtures/a4-highgpu-8g.json").read_text())
    text = json.dumps(fixture).replace(fixture["node"]["name"], worker["node"])
    fixture = json.loads(text)
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": fixture["node"]}, *fixture["resourceSlices"], *worker["claims"]]
    file = write(folder / "pod.json", {"apiVersion": "v1", "kind": "List", "items": items})
    return ["--claims", file, "--slices", file, "--probe", write(folder / "probe.json", worker["probe"])]


def timed(words, rounds):
    """Seconds of each round; CPU seconds and peak MB of the last."""
    seconds = []
    for _ in range(rounds):
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds.append(time.monotonic() - began)
        if status != 0:
            raise RuntimeError(f"{words} ended with {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rows(folder):
    """(title, words, units a second, goal, goal in MB)"""
    program, spec = DRARUN.program(), write(folder / "job.json", SPEC)
    yield (f"drarun plan, {NODES} workers of 8 + 8 over {NODES} nodes, s",
           [program, "plan", "-o", "json", spec, "--slices", cluster(folder)], 1, 1.0, 300)
    yield f"drarun render, {NODES} workers, s", [program, "render", spec], 1, None, None
    yield "drarun env of a pod with 8 GPUs and 8 NICs, ms", [program, "env", *pod(folder)], 1000, 30, None
    yield "drarun topo of this machine, ms", [program, "topo"], 1000, 30, None


def verbs(report, scale):
    report.heading(f"Verbs that plan, {counted(scale.rounds, 'round')}")
    report.table(["what", *SPREAD_COLUMNS, "goal", "verdict", "CPU s", "peak MB", "goal", "verdict"])
    with tempfile.TemporaryDirectory() as name:
        for title, words, unit, goal, megabytes in rows(Path(name)):
            seconds, cpu, peak = timed(words, scale.rounds)
            values = [unit * each for each in seconds]
            report.row(title, *report.spread(title, values), goal or "-",
                       report.verdict(title, statistics.median(values), goal) if goal else "", f"{cpu:.2f}",
                       f"{peak:.0f}" if megabytes else "-", megabytes or "-",
                       report.verdict(f"{title}, MB", peak, megabytes) if megabytes else "")


def pairing(report, scale):
    out = subprocess.run([BENCH / "pairing", str(PAIRINGS)], capture_output=True, text=True, check=True).stdout
    times = [float(line) for line in out.split()]
    title = "pairing of 16 GPUs and 32 NICs"
    report.heading(f"One {title}, {len(times)} times, us")
    report.table([*SPREAD_COLUMNS, "goal", "verdict"])
    report.row(*report.spread(title, times), number(PAIRING_US), report.verdict(f"{title}, us", statistics.median(times), PAIRING_US))
