# SPDX-License-Identifier: Apache-2.0
"""From a job's creation to its ranks' work, and from their end to the prompt, beside a plain Indexed Job."""
import statistics

from benchmarks.cluster.bed import IMAGE, OURS, realtime_of
from benchmarks.harness.report import SPREAD_COLUMNS
from benchmarks.harness.turns import in_turns

SPEC = {"image": IMAGE, "command": ["mpi-times"]}
MODES = {"drarun run": (), "drarun run --here": ("--here",)}
FLOOR = "plain Indexed Job: last container started"
MPI_INIT, ONE_POD = "mpirun over as many pods: MPI_Init, first rank in to last rank out", "mpirun in one pod: MPI_Init"
PROGRAM = "mpirun in one pod: MPI_Init to MPI_Finalize"
TO_PROMPT = "job created to the prompt"


class Failed(Exception):
    """A run that gives no times."""


def stamps(out, ranks):
    """[(init begin, init end, finalize end)] of mpi_times.c, in ns of CLOCK_MONOTONIC."""
    found = [line.split() for line in out.splitlines() if line.startswith("mpi ")]
    if len(found) != ranks:
        raise Failed(f"{len(found)} of {ranks} ranks told their times: {out[-300:]}")
    return [(int(each[4]), int(each[5]), int(each[7])) for each in found]


class Rows:
    """What one number of workers gives: lists of milliseconds by row."""

    def __init__(self):
        self.values, self.failures = {}, []

    def add(self, row, begin, end):
        self.values.setdefault(row, []).append(1000 * (end - begin))

    def median(self, row):
        return statistics.median(self.values[row]) if self.values.get(row) else None


def created(bed, mark, namespace):
    """When the server got the request that makes the job's owner."""
    return min(each.received for each in bed.audit.requests(since=mark, namespace=namespace, verb="create")
               if each.resource in ("jobs", "configmaps"))


def plain(bed, workers, rows):
    with bed.namespace() as namespace:
        mark = bed.audit.mark()
        bed.api.make({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain", "namespace": namespace},
                      "spec": {"parallelism": workers, "completions": workers, "completionMode": "Indexed",
                               "backoffLimit": 0, "template": {"spec": {
                                   "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [
                                       {"name": "main", "image": IMAGE, "command": ["sleep", "1000"]}]}}}})
        bed.cluster.wait(f"{workers} pods do not start", lambda: len(bed.containers(namespace)) == workers, 60)
        rows.add(FLOOR, created(bed, mark, namespace), max(bed.containers(namespace).values()))


def over_pods(bed, workers, rows):
    """One rank a pod under Open MPI's own mpirun, which drarun lets into the pods (launch: mpirun): what MPI_Init
    costs where ranks reach each other by TCP alone."""
    with bed.namespace() as namespace:
        outcome = bed.run(namespace, {"image": IMAGE, "workers": workers, "ranksPerWorker": 1, "launch": "mpirun",
                                      "command": ["mpirun", "-n", str(workers), "mpi-times"]}, "--here")
        if outcome.status != 0:
            raise Failed(f"mpirun over {workers} pods: status {outcome.status}: {outcome.err[-300:]}")
        times = stamps(outcome.out, workers)
        rows.add(MPI_INIT, min(each[0] for each in times) / 1e9, max(each[1] for each in times) / 1e9)


def bare(bed, workers, rows):
    """All ranks under Open MPI's own mpirun in one pod."""
    with bed.namespace() as namespace:
        pod = bed.cluster.pod("bare", ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", workers, "mpi-times"],
                              namespace=namespace, image=IMAGE).make()
        times = stamps(pod.ended(), workers)
        began = min(each[0] for each in times) / 1e9
        rows.add(ONE_POD, began, max(each[1] for each in times) / 1e9)
        rows.add(PROGRAM, began, max(each[2] for each in times) / 1e9)
        pod.delete(0)


def ours(bed, workers, rows, mode):
    with bed.namespace() as namespace:
        bed.install(namespace)
        mark = bed.audit.mark()
        outcome = bed.run(namespace, {**SPEC, "workers": workers}, *MODES[mode])
        if outcome.status != 0:
            raise Failed(f"{mode}: status {outcome.status}: {outcome.err[-300:]}")
        times = stamps(outcome.out, workers)
        passed = realtime_of(max(each[1] for each in times))
        first = created(bed, mark, namespace)
        pods = [when for pod, when in bed.containers(namespace).items() if pod.startswith("job-w-")]
        rows.add(f"{mode}: command to job created", outcome.began, first)
        rows.add(f"{mode}: job created to last worker started", first, max(pods))
        rows.add(f"{mode}: job created to all past MPI_Init", first, passed)
        rows.add(f"{mode}: last worker started to all past MPI_Init", max(pods), passed)
        rows.add(f"{mode}: MPI_Init, first rank in to last rank out", min(each[0] for each in times) / 1e9,
                 max(each[1] for each in times) / 1e9)
        rows.add(f"{mode}: last rank's end to the prompt", realtime_of(max(each[2] for each in times)), outcome.ended)
        rows.add(f"{mode}: {TO_PROMPT}", first, outcome.ended)
        assert all(request.code != 409 for request in bed.audit.requests(since=mark, agent=OURS, namespace=namespace))


def measure(bed, workers, rounds):
    """The contenders in turns."""
    turns = [plain, bare, over_pods, *[lambda bed, n, rows, mode=mode: ours(bed, n, rows, mode) for mode in MODES]]
    rows, warming = Rows(), Rows()
    for number, turn in in_turns(turns, rounds):
        try:
            turn(bed, workers, rows if number >= 0 else warming)
        except Failed as failed:
            rows.failures.append(str(failed))
    return rows


def goals(rows):
    """{row: milliseconds at most}, where the run gave what they are made of."""
    floor, own = rows.median(FLOOR), rows.median(MPI_INIT)
    found = {f"{mode}: last rank's end to the prompt": 100 for mode in MODES}
    if floor is not None and own is not None:
        for mode in MODES:
            found[f"{mode}: job created to all past MPI_Init"] = floor + own + 150
            found[f"{mode}: last worker started to all past MPI_Init"] = own + 100
    program = rows.median(PROGRAM)
    if floor is not None and program is not None:
        found |= {f"{mode}: {TO_PROMPT}": floor + program + 400 for mode in MODES}
    return found


def run(bed, report, scale):
    for workers in scale.workers:
        rows = measure(bed, workers, scale.rounds)
        report.heading(f"{workers} workers, one rank each, two nodes: milliseconds")
        report.table(["what", *SPREAD_COLUMNS, "goal", "verdict"])
        limits = goals(rows)
        for row, values in sorted(rows.values.items()):
            goal = limits.get(row)
            verdict = report.verdict(f"{workers} workers, {row}", rows.median(row), goal) if goal else ""
            report.row(row, *report.spread(row, values), f"{goal:.0f}" if goal else "-", verdict)
        for text in rows.failures:
            report.missed.append(f"{workers} workers: {text}")
