# SPDX-License-Identifier: Apache-2.0
"""Jobs on this machine, with no cluster."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _calls
from ._calls import interruptibly
from ._cluster import LEVELS, LogFunction, OutputFunction, _milliseconds, _output_function, print_log, print_output
from ._errors import SpecError, UsageError
from ._job import Job, JobLike, job_of
from ._library import Calls, Options, PathName, _encoded, at_least_one, check, ffi, lib, new_error, string, words


class Running:
    """What Ctrl-C ends."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer

    def interrupt(self) -> None:
        lib.drarun_local_signal(self.pointer, 2)  # SIGINT


def run_local(command: Iterable[PathName] | JobLike, *, ranks: int | None = None, workers: int | None = None,
              launch: str | None = None, bind: str | None = None, directory: PathName | None = None,
              env: Mapping[str, str] | None = None, options: Iterable[str] = (),
              output: OutputFunction | None = print_output, log: LogFunction | None = print_log, level: str = "note",
              timeout: float | None = None, program: PathName | None = None) -> int:
    """Runs ranks on this machine, over PMIx as ``drarun -n 4 ./app`` does, with their output on sys.stdout and
    sys.stderr, and returns the exit status: that of the first failing rank, or 128 + its signal.

    command: a program and its arguments, in a list; or a job (as for Job), of which ranks, launch, environment and command
    are taken where nothing else here says them, and nothing that is a cluster's (image, devices). Each role of a job with
    several runs its own command in its own workers: ranks, workers and launch are refused then, and env and directory hold
    for all. ranks: None: one for each worker. workers: agents, each as if a machine of its own; None: one. launch: "pmix", or "env" for programs that find each other by variables; None: pmix. bind: to
    CPUs, as drarun --bind. directory: where the ranks run; None: here. env: beside this process' environment.
    options: further ones of ``drarun run``, word by word.
    output: called with each line (Output), on another thread; None: it is dropped. log, level: as of Cluster; why a job
    failed is a line of it.
    timeout: seconds; then TimeoutError. program: drarun; None: that of the library's installation, else of PATH.

    Ctrl-C and a function that raises end the job. Raises NotFoundError where drarun or the command is not there,
    UsageError for options that mean nothing, InfrastructureError where an agent was lost."""
    if level not in LEVELS:
        raise UsageError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    job = _job_of(command) if isinstance(command, (str, os.PathLike, Mapping, Job)) else None
    argv = [] if job else [ffi.new("char[]", _encoded("command", each)) for each in command]
    made = Options("local", ranks=at_least_one("ranks", ranks), workers=at_least_one("workers", workers), launch=launch, bind=bind, directory=directory,
                   env=_assignments(env or {}), more=words("options", options), program=program,
                   level=LEVELS.index(level), timeout_ms=_milliseconds(timeout))
    if job is not None:
        made.pointer.spec = job._spec
        made.keep.append(job)
    calls = Calls()
    if output is not None:
        made.pointer.output = _output_function(calls, output)
    if log is not None:
        made.pointer.log = _log_function(calls, log)
    return interruptibly(lambda: _run(argv, made, calls))


def _job_of(given: JobLike) -> Job:
    """Says so where a text is more likely a program than the file of a job."""
    try:
        return job_of(given)
    except SpecError as error:
        if isinstance(given, str) and "\n" not in given and _is_no_job(Path(given)):
            raise UsageError(f"command: a text is the file of a job, and {given!r} is none: a program is a list, "
                             f"{given.split()!r}") from error
        raise


def _is_no_job(path: Path) -> bool:
    """Whether it cannot be the file of a job: a program, or no file and without the suffix of one."""
    if path.is_file():
        return os.access(path, os.X_OK)
    return path.suffix not in (".yaml", ".yml", ".json")


def _assignments(env: Mapping[str, str]) -> list[str]:
    if not isinstance(env, Mapping):
        raise UsageError(f"env: expected a dict, got {env!r}")
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name:
            raise UsageError(f"env: expected the name of a variable, got {name!r}")
        if value is None:
            raise UsageError(f"env: {name}: expected a text, got None: leave it out, and it stays as it is here")
    return [f"{name}={value}" for name, value in env.items()]


def _log_function(calls: Calls, log: LogFunction) -> Any:
    return calls.function("void (*)(void *, enum drarun_loglevel, const char *)",
                          lambda _, level, text: log(LEVELS[level], string(text) or ""))


def _run(argv: list[Any], options: Options, calls: Calls) -> int:
    started, err = ffi.new("struct drarun_local **"), new_error()
    command = ffi.new("char *[]", [*argv, ffi.NULL]) if not options.pointer.spec else ffi.NULL
    check(lib.drarun_local_start(command, options.pointer, started, err), err)
    running = Running(ffi.gc(started[0], lib.drarun_local_free))
    calls.stop = running.interrupt
    interrupt = _calls.current.get()
    if interrupt is not None:
        interrupt.covers(running)
    status = ffi.new("int *")
    ended = lib.drarun_local_wait(running.pointer, status, err)
    calls.stop = None  # else the job's descriptors stay open as long as the callbacks
    calls.settle()
    check(ended, err)
    result: int = status[0]
    return result
