# SPDX-License-Identifier: Apache-2.0
"""One exception a kind of error (enum drarun_errkind of drarun/error.h)."""
from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in a job spec."""

    text: str
    """With its place: ``job.yaml:5:12: spec.workers: expected ...``."""
    path: str | None
    """Of the value that is wrong: ``spec.workers``. None: of no value."""
    line: int | None
    """In the document, from 1. None: not known, or the job came as a dict."""
    column: int | None
    """In that line, from 1. None: as line."""
    code: str = "refused"
    """What kind of mistake it is: unreadable, unknown-key, wrong-value, missing or refused."""
    message: str = ""
    """The text's end, without file, place and path."""

    def __str__(self) -> str:
        return self.text


class Error(Exception):
    """What went wrong; each kind has a class of its own, and what has no kind (a file that is not there) is this."""

    kind: ClassVar[str] = "none"
    """The word that reports of drarun use: ``usage``, ``spec``, ..."""
    exit_status: ClassVar[int] = 70
    """What the program drarun ends with after an error of that kind: 64 to 130."""

    def __init__(self, text: str, *, code: int = 0, path: str | None = None, line: int | None = None,
                 column: int | None = None, findings: tuple[Finding, ...] = (), total: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        """An errno value (errno.EINVAL); 0: none."""
        self.path = path
        """Of the value that is wrong: ``spec.workers``. None: of no value."""
        self.line = line
        """Of its document, from 1. None: not known."""
        self.column = column
        """In that line, from 1. None: not known."""
        self.findings = findings
        """All that is wrong in a job spec, in the order of its lines; the first of them is this error."""
        self.findings_total = len(findings) if total is None else total
        """How many there are: of a document of nonsense not all are kept."""

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:  # it crosses processes: Ray, multiprocessing
        return (type(self), self.args, self.__dict__)


class UsageError(Error):
    """A call that means nothing: options that do not fit the job, or not each other."""

    kind, exit_status = "usage", 64


class SpecError(Error):
    """The job or its plan was refused, or there is no right environment for what is here."""

    kind, exit_status = "spec", 65


class ClusterError(Error):
    """The cluster refused a request, or there is none."""

    kind, exit_status = "cluster", 69


class InfrastructureError(Error):
    """An agent, node or connection was lost."""

    kind, exit_status = "infrastructure", 70


class CapacityError(Error):
    """No capacity, by the deadline where one was given."""

    kind, exit_status = "capacity", 75


class PreflightError(Error):
    """A worker's check refused the job."""

    kind, exit_status = "preflight", 76


class InterruptedError(Error):
    """Somebody ended it."""

    kind, exit_status = "interrupted", 130


class NotFoundError(Error):
    """The program does not exist."""

    kind, exit_status = "not-found", 127


class NotExecutableError(Error):
    """The program cannot be executed."""

    kind, exit_status = "not-executable", 126


class TimeoutError(Error, builtins.TimeoutError):
    """The time that was given is over."""

    kind, exit_status = "timeout", 124


KINDS: dict[str, type[Error]] = {each.kind: each for each in (
    UsageError, SpecError, ClusterError, InfrastructureError, CapacityError, PreflightError, InterruptedError,
    NotFoundError, NotExecutableError, TimeoutError)}
