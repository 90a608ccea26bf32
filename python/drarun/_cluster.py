# SPDX-License-Identifier: Apache-2.0
"""Jobs on a cluster."""
from __future__ import annotations

import codecs
import errno
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TextIO

from . import _calls
from ._calls import interruptibly
from ._errors import InterruptedError, UsageError
from ._job import Job, JobLike, job_of
from ._library import Calls, Options, PathName, at_least_one, check, ffi, lib, new_error, number, string, taken
from ._plan import Plan

LEVELS = ("error", "note", "verbose", "debug")


class Output(NamedTuple):
    """What a rank wrote: a line with its newline, or a piece of a long one."""

    rank: int
    text: str
    """Bytes that are no UTF-8 are replaced."""
    stderr: bool


OutputFunction = Callable[[Output], object]
ProgressFunction = Callable[[str], object]
LogFunction = Callable[[str, str], object]


def print_output(output: Output) -> None:
    """To sys.stdout and sys.stderr, as the program drarun does. What their encoding has no character for is written as an
    escape, and nothing where a program has none of them, as print() does."""
    file: TextIO | None = sys.stderr if output.stderr else sys.stdout
    if file is None:
        return
    try:
        file.write(output.text)
    except UnicodeEncodeError as error:
        file.write(output.text.encode(error.encoding, "backslashreplace").decode(error.encoding))
    file.flush()


def print_progress(text: str) -> None:
    """What is awaited, as a line on sys.stderr. As a call's `progress` it gets a text only when that changes."""
    print(f"drarun: {text}", file=sys.stderr, flush=True)


def print_log(level: str, text: str) -> None:
    """A line on sys.stderr, as the program drarun writes it: why a job failed, what it advises, and what it waits for."""
    if sys.stderr is not None:
        print(f"drarun: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cluster:
    """Which cluster, and as whom. It holds no connection: calls open their own, so that any thread and the child of a
    fork may use it."""

    kubeconfig: PathName | None = None
    """A file. None: $KUBECONFIG, ~/.kube/config, the pod's service account."""
    context: str | None = None
    """Of the kubeconfig. None: the current one."""
    namespace: str | None = None
    """Of jobs. None: the spec's, else the context's."""
    log: LogFunction | None = print_log
    """Called with a level ("error", "note", "verbose", "debug") and a line that ``drarun`` would write to stderr, from
    within calls and on any thread. What it raises ends the call. None: they go nowhere."""
    level: str = "note"
    """The most that log gets."""

    def plan(self, job: JobLike, *, nccl_version: str | None = None, workers: int | None = None,
             kubernetes: str | None = None) -> Plan:
        """Plans a job on the slices, nodes, classes and claims of the cluster as they are now, by the rules of its own
        scheduler or of another version (kubernetes, "1.37"). Raises ClusterError where the cluster refuses or does not
        answer, UsageError without a kubeconfig, SpecError for a wrong job."""
        spec = job_of(job)

        def call() -> Plan:
            connection = Connection(self)
            options = Options("plan", nccl_version=nccl_version, workers=at_least_one("workers", workers), kubernetes=kubernetes)
            made, err = ffi.new("struct drarun_plan **"), new_error()
            connection.check(lib.drarun_cluster_plan(connection.pointer, spec._spec, options.pointer, made, err), err)
            return Plan(ffi.gc(made[0], lib.drarun_plan_free))

        return interruptibly(call)

    def submit(self, job: JobLike, *, name: str | None = None, image: str | None = None, workers: int | None = None,
               replace: bool = False) -> Submitted:
        """Makes the job's objects and leaves it to the cluster.

        job: as for Job. name, workers: in place of the spec's. image: of agent and launcher; None: $DRARUN_IMAGE, else this
        version's. replace: deletes a job of that name first if it has ended.

        Raises ClusterError, with code errno.EEXIST where there is a job of that name. When it fails, and after Ctrl-C,
        nothing of the job is left."""
        spec = job_of(job)
        return interruptibly(lambda: _submit(self, spec, name, image, workers, replace), Submitted.cancel)

    def job(self, name: str) -> Submitted:
        """A job that somebody has submitted, of Cluster.namespace. Raises UsageError with code errno.ENOENT where there
        is none of that name."""
        return interruptibly(lambda: _opened(self, name))

    def run(self, job: JobLike, *, name: str | None = None, image: str | None = None, workers: int | None = None,
            replace: bool = False, output: OutputFunction | None = print_output,
            progress: ProgressFunction | None = print_progress, timeout: float | None = None) -> int:
        """Submits a job and follows it to its end: Submitted.follow. Where that ends before the job does (Ctrl-C, the
        timeout, a function that raises), the job is cancelled."""
        spec = job_of(job)
        _milliseconds(timeout)  # a wrong one is refused before there is a job

        def call() -> int:
            submitted = _submit(self, spec, name, image, workers, replace)
            return submitted._follow(output, progress, None, timeout, cancel=True)

        return interruptibly(call)


class Connection:
    """An open drarun_cluster: one thread at a time, of the process that opened it."""

    def __init__(self, cluster: Cluster) -> None:
        if cluster.level not in LEVELS:
            raise UsageError(f"level: expected one of {', '.join(LEVELS)}, got {cluster.level!r}")
        self.lock = threading.Lock()
        self.pid = os.getpid()
        self.interrupted = False
        self.calls = Calls()
        options = Options("cluster", kubeconfig=cluster.kubeconfig, context=cluster.context,
                          namespace_=cluster.namespace, level=LEVELS.index(cluster.level))
        log = cluster.log
        if log is not None:
            options.pointer.log = self.calls.function(
                "void (*)(void *, enum drarun_loglevel, const char *)",
                lambda _, level, text: log(LEVELS[level], string(text) or ""))
        made, err = ffi.new("struct drarun_cluster **"), new_error()
        check(lib.drarun_cluster_open(options.pointer, made, err), err)
        self.pointer = ffi.gc(made[0], lib.drarun_cluster_close)
        interrupt = weakref.WeakMethod(self.interrupt)  # in a circle of references the connection would stay open

        def stop() -> None:
            found = interrupt()
            if found is not None:
                found()

        self.calls.stop = stop
        self.covered()

    def covered(self) -> None:
        """By what ends the call that this thread is in."""
        interrupt = _calls.current.get()
        if interrupt is not None:
            interrupt.covers(self)

    def interrupt(self) -> None:
        self.interrupted = True  # which the next call would end of, when this one is over already
        lib.drarun_cluster_interrupt(self.pointer)

    def check(self, status: int, err: Any) -> None:
        raised, self.calls.raised = self.calls.raised, None
        if raised is not None:
            raise raised
        check(status, err)

    def job(self, name: str) -> Any:
        made, err = ffi.new("struct drarun_job **"), new_error()
        self.check(lib.drarun_job_open(self.pointer, _name(name), made, err), err)
        return ffi.gc(made[0], lib.drarun_job_free)


class Submitted:
    """A job of a cluster; it goes on when this is gone. Threads may use it at the same time, and so may the child of a
    fork and a process that gets it pickled: a call that comes while it is in use, and another process, opens a connection
    of its own."""

    def __init__(self, cluster: Cluster, connection: Connection, pointer: Any) -> None:
        self.name: str = string(lib.drarun_job_name(pointer)) or ""
        self.namespace: str = string(lib.drarun_job_namespace(pointer)) or ""
        self._cluster = replace(cluster, namespace=self.namespace)
        self._connection: Connection | None = connection
        self._job = pointer

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None, "_job": None}

    def __repr__(self) -> str:
        return f"<drarun.Submitted {self.namespace}/{self.name}>"

    def status(self) -> dict[str, Any]:
        """The status document (schema/drajob-status-v1alpha1.json); empty before there is one."""
        def call() -> dict[str, Any]:
            with self._open() as (connection, job):
                text, err = ffi.new("char **"), new_error()
                connection.check(lib.drarun_job_status(job, text, err), err)
                document: dict[str, Any] = json.loads(taken(text[0]) or "{}")
                return document

        return interruptibly(call)

    def document(self) -> dict[str, Any]:
        """What it was submitted as: Job.document."""
        def call() -> dict[str, Any]:
            with self._open() as (connection, job):
                text, err = ffi.new("char **"), new_error()
                connection.check(lib.drarun_job_document(job, text, err), err)
                document: dict[str, Any] = json.loads(taken(text[0]) or "{}")
                return document

        return interruptibly(call)

    def wait(self, timeout: float | None = None) -> int:
        """Until the job ends: its exit status, that of the first rank that failed, 128 + the signal, or Error's
        exit_status. timeout: seconds. Raises TimeoutError; the job goes on then, and after Ctrl-C."""
        return interruptibly(lambda: self._follow(None, None, None, timeout))

    def follow(self, *, output: OutputFunction | None = print_output,
               progress: ProgressFunction | None = print_progress,
               rank: int | None = None, timeout: float | None = None) -> int:
        """As wait, with the job's output from its begin.

        output: called with each line, in another thread than this one. None: the output is not read.
        progress: called once a second before the ranks run with what is awaited, in words; print_progress only when they
        change. None: it is not told.
        rank: output of this one alone. timeout: seconds.

        What the functions raise ends the call and is raised; the job goes on."""
        return interruptibly(lambda: self._follow(output, progress, rank, timeout))

    def logs(self, *, rank: int | None = None) -> list[Output]:
        """The output that there is, of all ranks or one, without waiting for more."""
        lines: list[Output] = []
        interruptibly(lambda: self._follow(lines.append, None, rank, None, once=True))
        return lines

    def cancel(self) -> None:
        """Ranks get SIGINT, 5 s later SIGTERM, and the job ends with 130; what is kept of an ended job is deleted. Does not
        wait for the end."""
        def call() -> None:
            with self._open() as (connection, job):
                err = new_error()
                connection.check(lib.drarun_job_cancel(job, err), err)

        interruptibly(call)

    @contextmanager
    def _open(self) -> Iterator[tuple[Connection, Any]]:
        own = self._connection
        mine = own is not None and own.pid == os.getpid() and not own.interrupted
        if own is not None and mine and own.lock.acquire(blocking=False):
            try:
                own.covered()
                yield own, self._job
            finally:
                own.lock.release()
        else:
            connection = Connection(self._cluster)
            yield connection, connection.job(self.name)

    def _follow(self, output: OutputFunction | None, progress: ProgressFunction | None, rank: int | None,
                timeout: float | None, once: bool = False, cancel: bool = False) -> int:
        calls = Calls()
        options = Options("follow", timeout_ms=_milliseconds(timeout), once=once, cancel=cancel)
        if rank is not None:
            whole = number(rank)
            if whole is None or not 0 <= whole < 2**32:
                raise UsageError(f"rank: expected a number from 0, got {rank!r}")
            options.keep.append(ffi.new("unsigned *", whole))
            options.pointer.rank = options.keep[-1]
        if output is not None:
            options.pointer.output = _output_function(calls, output)
        with self._open() as (connection, job):
            if progress is not None:
                options.pointer.progress = _progress_function(calls, progress, connection)
            status, err = ffi.new("int *"), new_error()
            ended = lib.drarun_job_follow(job, options.pointer, status, err)
            calls.settle()
            connection.check(ended, err)
            result: int = status[0]
            return result


class _Texts:
    """The text of each rank's streams: a long line comes in pieces, which end anywhere in a character."""

    def __init__(self, output: OutputFunction) -> None:
        self._output = output
        self._decoders: dict[tuple[int, bool], codecs.IncrementalDecoder] = {}

    def add(self, rank: int, stderr: bool, data: bytes) -> None:
        decoder = self._decoders.get((rank, stderr))
        if decoder is None:
            decoder = self._decoders[rank, stderr] = codecs.getincrementaldecoder("utf-8")("replace")
        self._hand_on(rank, stderr, decoder.decode(data))

    def end(self) -> None:
        for (rank, stderr), decoder in self._decoders.items():
            self._hand_on(rank, stderr, decoder.decode(b"", final=True))

    def _hand_on(self, rank: int, stderr: bool, text: str) -> None:
        if text:
            self._output(Output(rank, text, stderr))


def _output_function(calls: Calls, output: OutputFunction) -> Any:
    texts = _Texts(output)

    def call(_: Any, rank: int, is_stderr: int, data: Any, length: int) -> int:
        texts.add(rank, bool(is_stderr), ffi.buffer(data, length)[:])
        return 0

    calls.last = texts.end
    return calls.function("int (*)(void *, unsigned, int, const char *, size_t)", call, 1)


def _progress_function(calls: Calls, progress: ProgressFunction, connection: Connection) -> Any:
    said = ""

    def call(_: Any, pointer: Any) -> None:
        nonlocal said
        before, said = said, string(pointer) or ""
        if said == before and progress is print_progress:
            return
        try:
            progress(said)
        except BaseException:
            connection.interrupt()
            raise

    return calls.function("void (*)(void *, const char *)", call)


def _submit(cluster: Cluster, spec: Job, name: str | None, image: str | None, workers: int | None,
            replace: bool) -> Submitted:
    connection = Connection(cluster)
    options = Options("submit", name=name, image=image, workers=at_least_one("workers", workers), replace=bool(replace))
    made, err = ffi.new("struct drarun_job **"), new_error()
    status = lib.drarun_job_submit(connection.pointer, spec._spec, options.pointer, made, err)
    job = ffi.gc(made[0], lib.drarun_job_free) if status == 0 else None
    interrupt = _calls.current.get()
    interrupted = interrupt is not None and interrupt.fired
    if job is not None and (interrupted or connection.calls.raised is not None):  # nobody gets to know this job
        check(lib.drarun_job_cancel(job, err), err)
    connection.check(status, err)
    if interrupted:
        raise InterruptedError("interrupted while the job was submitted; it is cancelled", code=errno.ECANCELED)
    return Submitted(cluster, connection, job)


def _opened(cluster: Cluster, name: str) -> Submitted:
    connection = Connection(cluster)
    return Submitted(cluster, connection, connection.job(name))


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    try:
        if isinstance(seconds, str) or not 0 < float(seconds) < 1e12:
            raise ValueError
    except (TypeError, ValueError):
        raise UsageError(f"timeout: expected seconds, more than 0, got {seconds!r}") from None
    return max(1, round(float(seconds) * 1000))


def _name(name: str) -> bytes:
    data = os.fsencode(name)
    if b"\0" in data:
        raise UsageError("name: a text without a NUL is expected")
    return data


def submit(job: JobLike, *, cluster: Cluster | None = None, name: str | None = None, image: str | None = None,
           workers: int | None = None, replace: bool = False) -> Submitted:
    """Cluster.submit, on the cluster of the kubeconfig where none is given."""
    return (cluster or Cluster()).submit(job, name=name, image=image, workers=workers, replace=replace)


def run(job: JobLike, *, cluster: Cluster | None = None, name: str | None = None, image: str | None = None,
        workers: int | None = None, replace: bool = False, output: OutputFunction | None = print_output,
        progress: ProgressFunction | None = print_progress, timeout: float | None = None) -> int:
    """Runs a job on a cluster to its end, with its output on sys.stdout and sys.stderr, and returns its exit status:
    Cluster.run, on the cluster of the kubeconfig where none is given."""
    return (cluster or Cluster()).run(job, name=name, image=image, workers=workers, replace=replace, output=output,
                                      progress=progress, timeout=timeout)


