# SPDX-License-Identifier: Apache-2.0
"""A job as a step of something that repeats steps and cancels them: a pipeline, a queue of tasks.

    outcome = drarun.step.run("job.yaml", name="nightly-42")    # again after a crash: goes on with the job that is there
    outcome.check()                                             # JobError with the cause

What ends the step ends the job: SIGTERM and Ctrl-C, the timeout, a function that raises. drarun.kfp is this for Kubeflow
Pipelines."""
from __future__ import annotations

import errno
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from ._bench import bench_verdicts
from ._cluster import Cluster, Output, OutputFunction, ProgressFunction, Submitted, _milliseconds, print_output
from ._errors import ClusterError, Error, SpecError, TimeoutError, UsageError
from ._job import Job, JobLike, job_of

EXISTING = ("continue", "replace", "refuse")
KEPT = 64 << 20
"""Of rank 0's output, characters from its begin: results of benchmarks are there."""
END_S = 30.0
"""How long the end of a job that was cancelled is waited for; it ends also after that."""

LOOK_S = 2.0


class JobError(Error):
    """The job ran and failed. exit_status: its own."""

    kind = "job"

    def __init__(self, text: str, exit_status: int = 1) -> None:
        super().__init__(text)
        self.exit_status = exit_status  # type: ignore[misc]  # of others a class has one


@dataclass(frozen=True)
class Outcome:
    """A job that has ended."""

    name: str
    namespace: str
    exit_status: int
    """That of the first rank that failed, 128 + the signal, or Error's exit_status."""
    status: dict[str, Any] = field(repr=False)
    """The status document (schema/drajob-status-v1alpha1.json)."""
    output: str = field(repr=False)
    """What rank 0 wrote to its standard output: its first KEPT characters."""
    continued: bool = False
    """The job was there already."""

    @property
    def cause(self) -> str:
        """Why the job failed, in words; "" where it did not."""
        if self.exit_status == 0:
            return ""
        cause = (self.status.get("report") or {}).get("cause") or {}
        words = cause.get("text") or "drarun status and the launcher's log say why"
        return f"{words}: {cause['advice']}" if cause.get("advice") else words

    def check(self) -> Outcome:
        """The outcome itself; raises JobError with the cause where the job failed."""
        if self.exit_status == 0:
            return self
        raise JobError(f"job {self.name} in namespace {self.namespace} ended with status {self.exit_status}: {self.cause}",
                       self.exit_status)

    def verdicts(self) -> list[dict[str, Any]]:
        """Of the benchmarks in the output (drarun.bench_verdicts); empty: there are none."""
        try:
            return bench_verdicts(self.output)
        except SpecError:
            return []


def run(job: JobLike, *, cluster: Cluster | None = None, name: str | None = None, image: str | None = None,
        workers: int | None = None, existing: str = "continue", output: OutputFunction | None = print_output,
        progress: ProgressFunction | None = None, timeout: float | None = None) -> Outcome:
    """Runs a job on a cluster to its end. The same call again has the same result.

    job, cluster, name, image, workers, output, progress: as for Cluster.run. The name is what a repeated step finds its
    job by; give each run of a workflow one of its own.
    existing: what to do with a job of that name. "continue": one of the same spec that runs or has succeeded is this
    one, one that failed is replaced; one of another spec is replaced when it has ended, and refused while it runs.
    "replace": it is cancelled and deleted first. "refuse": ClusterError with code errno.EEXIST.
    timeout: seconds, of this call.

    In the main thread SIGTERM does what Ctrl-C does, and both cancel the job, wait up to END_S for its end and raise
    KeyboardInterrupt. So does the timeout, with TimeoutError, and what output or progress raises. A connection that is
    lost does not, nor another Error: the job goes on, and the step, repeated, finds it."""
    if existing not in EXISTING:
        raise UsageError(f"existing: expected one of {', '.join(EXISTING)}, got {existing!r}")
    _milliseconds(timeout)  # a wrong one is refused before there is a job
    wanted = _named(job_of(job), name, workers)
    where = _where(cluster or Cluster(), wanted)
    with _sigterm_is_ctrl_c():
        try:
            found, continued = _found_or_new(where, wanted, image, existing)
            return _followed(found, continued, output, progress, timeout)
        except BaseException as error:
            if isinstance(error, TimeoutError) or not isinstance(error, Error):
                _cancel(where, wanted)
            raise


def _named(job: Job, name: str | None, workers: int | None) -> Job:
    document = job.document
    document["metadata"] = {**document.get("metadata", {}), "name": name or job.name}
    if workers is not None:
        document["spec"] = {**document["spec"], "workers": workers}
    return Job(document, profiles=job._profiles)


def _where(cluster: Cluster, job: Job) -> Cluster:
    """Also where a job that is there is looked for."""
    return replace(cluster, namespace=cluster.namespace or job.namespace)


@contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def pressed(signum: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background children ignore it
    signal.signal(signal.SIGTERM, pressed)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler if handler is not None else signal.SIG_DFL)


# ---- the job ----

def _found(cluster: Cluster, job: Job) -> Submitted | None:
    try:
        return cluster.job(job.name)
    except UsageError as error:
        if error.code == errno.ENOENT:
            return None
        raise


def _found_or_new(cluster: Cluster, job: Job, image: str | None, existing: str) -> tuple[Submitted, bool]:
    found = _found(cluster, job) if existing != "refuse" else None
    if found is not None:
        try:
            if existing == "continue" and _may_go_on(found, job):
                return found, True
            _delete(found)
        except UsageError as error:  # it has gone meanwhile
            if error.code != errno.ENOENT:
                raise
    return cluster.submit(job, image=image), False


def _may_go_on(found: Submitted, job: Job) -> bool:
    exit_status = found.status().get("exit")
    if _is_the_same(found, job):
        return exit_status in (None, 0)
    if exit_status is None:
        raise ClusterError(f"job {found.name} in namespace {found.namespace} runs already, with another spec: give this "
                           f"step's job another name, or say existing=\"replace\"", code=errno.EEXIST)
    return False


def _is_the_same(found: Submitted, job: Job) -> bool:
    return _without_namespace(found.document()) == _without_namespace(job.document)


def _without_namespace(document: dict[str, Any]) -> dict[str, Any]:
    """Where it is was decided when it was submitted."""
    metadata = {key: value for key, value in document.get("metadata", {}).items() if key != "namespace"}
    return {**document, "metadata": metadata}


def _delete(found: Submitted) -> None:
    """The first cancel ends a job that runs, and keeps it for readers of its status; the next one deletes that."""
    if found.status().get("exit") is None:
        _end(found)
    try:
        found.cancel()
    except Error as error:
        if error.code != errno.ENOENT:
            raise


def _end(found: Submitted) -> None:
    """A job that has a launcher ends; one that has none yet is deleted, which nobody who waits is told: so it is looked
    for in between."""
    by = time.monotonic() + END_S
    try:
        found.cancel()
        while time.monotonic() < by:
            found.status()
            with suppress(TimeoutError):
                found.wait(LOOK_S)
                return
    except Error as error:
        if error.code != errno.ENOENT:
            raise


def _cancel(cluster: Cluster, job: Job) -> None:
    """Whatever of it is there. It says what it cannot do, since something else is being raised."""
    quiet = replace(cluster, log=None)  # the reader may have gone already
    try:
        found = _found(quiet, job)
        if found is not None and _is_the_same(found, job) and found.status().get("exit") is None:
            _end(found)
    except Error as error:
        with suppress(OSError):
            print(f"drarun: job {job.name} could not be cancelled: {error}; drarun cancel {job.name} does it",
                  file=sys.stderr)


# ---- its output ----

class _Kept:
    """Passes output on and keeps rank 0's."""

    def __init__(self, further: OutputFunction | None) -> None:
        self._further, self._pieces, self._length = further, list[str](), 0

    def __call__(self, output: Output) -> None:
        if output.rank == 0 and not output.stderr and self._length < KEPT:
            self._pieces.append(output.text[:KEPT - self._length])
            self._length += len(self._pieces[-1])
        if self._further is not None:
            self._further(output)

    def text(self) -> str:
        return "".join(self._pieces)


def _followed(found: Submitted, continued: bool, output: OutputFunction | None, progress: ProgressFunction | None,
              timeout: float | None) -> Outcome:
    kept = _Kept(output)
    try:
        exit_status = found.follow(output=kept, progress=progress, timeout=timeout)
        status = found.status()
    except Error:
        status = found.status() if continued else {}
        if status.get("exit") is None:
            raise
        exit_status = int(status["exit"])  # it had ended, and its output cannot be had any more
    return Outcome(found.name, found.namespace, exit_status, status, kept.text(), continued)
