# SPDX-License-Identifier: Apache-2.0
"""`drarun -n` on pods that `drarun alloc` keeps, beside the same ranks on this machine. The goal is for the launch; what
MPI_Init takes longer between pods is the MPI library's, which has no shared memory there (start.py measures it alone)."""
import contextlib
import statistics
import subprocess
import time

from benchmarks.cluster.bed import DEADLINE, IMAGE
from benchmarks.harness.launchers import DRARUN
from benchmarks.harness.report import SPREAD_COLUMNS
from benchmarks.harness.turns import sampled

RANKS, WORKERS, ROUNDS = 8, 2, 3  # as many rounds for each of the others'
GOAL, LAUNCH = 1.5, "true"
KEPT, HERE, AGENTS = "on two kept pods", "on this machine", f"on this machine, --workers {WORKERS}"


@contextlib.contextmanager
def kept(bed, namespace, through):
    """What DRARUN_ALLOC is in an allocation's shell."""
    spec = {"image": IMAGE, "workers": WORKERS, "ranksPerWorker": RANKS // WORKERS}
    process = bed.start(namespace, spec, "--through", through, "--", "sh", "-c", "echo $DRARUN_ALLOC; exec sleep 1000 >&- 2>&-",
                        verb="alloc")
    try:
        folder = process.stdout.readline().strip()
        if not folder:
            raise RuntimeError(process.communicate(timeout=DEADLINE)[1])
        yield folder
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE)


def launch(bed, program, *options, folder=None):
    """Milliseconds of one drarun -n."""
    env = {**DRARUN.environment(), **({"DRARUN_ALLOC": folder} if folder else {})}
    began = time.monotonic()
    subprocess.run([*bed.cluster.under, DRARUN.program(), *options, "-n", str(RANKS), program], env=env, check=True, timeout=DEADLINE,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - began)


def programs(bed):
    """{what: (in the pods, here)}."""
    return {LAUNCH: ("true", "true"), "MPI_Init to MPI_Finalize": ("mpi-times", bed.rank)}


def table(bed, report, rounds, through, folder):
    for what, (there, here) in programs(bed).items():
        values = sampled({KEPT: lambda there=there: launch(bed, there, folder=folder), HERE: lambda here=here: launch(bed, here),
                          AGENTS: lambda here=here: launch(bed, here, "--workers", str(WORKERS))}, rounds)
        base = statistics.median(values[HERE])
        for row, times in values.items():
            ratio = statistics.median(times) / base
            judged = row == KEPT and through == "direct" and what == LAUNCH
            report.row(f"{what}, {row}", *report.spread(row, times), f"{ratio:.2f}", GOAL if judged else "-",
                       report.verdict(f"{what}, {row}: times the local launch", ratio, GOAL) if judged else "")


def run(bed, report, scale):
    for through in ("direct", "api"):
        with bed.namespace() as namespace:
            bed.install(namespace)
            with kept(bed, namespace, through) as folder:
                report.heading(f"{RANKS} ranks again on the pods of an allocation, reached {through}: milliseconds")
                report.table(["what", *SPREAD_COLUMNS, "times local", "goal", "verdict"])
                table(bed, report, scale.rounds * ROUNDS, through, folder)
