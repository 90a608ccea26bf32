# SPDX-License-Identifier: Apache-2.0
"""A job before it runs."""
from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from . import _html
from ._errors import Error, UsageError
from ._job import JobLike, _or_memory, job_of
from ._library import Files, Options, PathName, at_least_one, check, error_of, ffi, files, lib, new_error, taken


class Plan:
    """What each worker would claim and, where ResourceSlices were given, which devices it would get, which rank uses
    which, and the environment that follows. A notebook shows it as a table, with pictures of the first workers' nodes."""

    def __init__(self, pointer: object) -> None:
        self._plan = pointer

    @property
    def verdict(self) -> Error | None:
        """None: nothing speaks against the job. SpecError: the plan is refused; CapacityError: the cluster has no
        room for it."""
        err = new_error()
        return error_of(err) if lib.drarun_plan_verdict(self._plan, err) < 0 else None

    @property
    def ok(self) -> bool:
        """Nothing speaks against the job."""
        return self.verdict is None

    def check(self) -> Plan:
        """The plan itself; raises its verdict where there is one."""
        verdict = self.verdict
        if verdict is not None:
            raise verdict
        return self

    def text(self, *, explain: bool = False) -> str:
        """As ``drarun plan`` prints it; explain: each variable with rule, fact, reason and source."""
        return _or_memory(taken(lib.drarun_plan_text(self._plan, bool(explain))))

    def document(self, *, explain: bool = False) -> dict[str, Any]:
        """As ``drarun plan --output json`` has it."""
        document: dict[str, Any] = json.loads(_or_memory(taken(lib.drarun_plan_json(self._plan, bool(explain)))))
        return document

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a drarun.Plan cannot be pickled: hand on its document() or text(), or plan the job there")

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        verdict = self.verdict
        return f"<drarun.Plan of {self.document()['job']}: {verdict or 'nothing speaks against it'}>"

    def svg(self, worker: int = 0) -> str:
        """A picture of the node that a worker, counted from 0, would be on: its devices by NUMA node and host bridge,
        those of the worker marked and paired. It has a background of its own.

        Raises UsageError where there is no such worker, or without slices or devices no node; CapacityError where the
        workers have no room."""
        if not 0 <= worker < 2**32:
            raise UsageError(f"worker: expected a number from 0, got {worker}")
        text, err = ffi.new("char **"), new_error()
        check(lib.drarun_plan_svg(self._plan, worker, text, err), err)
        return _or_memory(taken(text[0]))

    def _repr_svg_(self) -> str | None:
        try:
            return self.svg()
        except Error:
            return None

    def _pictures(self, document: dict[str, Any]) -> dict[int, str]:
        """Of the first workers that have devices, by their number in the job."""
        pictures: dict[int, str] = {}
        first = 0
        for role in document.get("roles") or [document]:
            for worker in range(first, first + min(role["workers"], _html.PICTURES - len(pictures))):
                with suppress(Error):  # no devices, or not placed: the verdict says why
                    pictures[worker] = self.svg(worker)
            first += role["workers"]
        return pictures

    def _repr_html_(self) -> str:
        verdict, document = self.verdict, self.document()
        return _html.plan(document, str(verdict) if verdict else None, self._pictures(document))


def plan(job: JobLike, *, slices: Files = None, nodes: Files = None, classes: Files = None, claims: Files = None,
         objects: str | None = None, nccl_version: str | None = None, workers: int | None = None,
         profiles: PathName | None = None, kubernetes: str | None = None) -> Plan:
    """Plans a job. A job that would find no room is a plan too: see Plan.verdict.

    job and profiles: as for Job.
    slices, nodes, classes, claims: files as ``kubectl get -o json`` or yaml prints them, with ResourceSlices, and
    further Nodes, DeviceClasses and ResourceClaims (which hold devices); one may have objects of every kind. Without
    slices the allocation is not predicted.
    objects: the same as text, in place of a file of slices.
    nccl_version: of the image's NCCL, "2.28.9"; None: the spec's, else the newest known.
    workers: in place of the spec's.
    kubernetes: whose scheduler's rules count, "1.36"; None: that of the Nodes' newest kubelet, else the newest known.

    Raises SpecError for a wrong job, UsageError for options that mean nothing. Some milliseconds for two nodes."""
    spec = job_of(job, profiles)
    options = Options("plan", slices=files(slices), nodes=files(nodes), classes=files(classes), claims=files(claims),
                      objects=objects, nccl_version=nccl_version, workers=at_least_one("workers", workers), kubernetes=kubernetes)
    made, err = ffi.new("struct drarun_plan **"), new_error()
    check(lib.drarun_plan_build(spec._spec, options.pointer, made, err), err)
    return Plan(ffi.gc(made[0], lib.drarun_plan_free))
