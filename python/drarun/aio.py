# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio: each call runs on a thread of its own, and the loop goes on meanwhile.

    status = await drarun.aio.run("job.yaml", timeout=600)
    status = await drarun.aio.wait(await drarun.aio.job(drarun.Cluster(), "train"))

Arguments, results and errors are those of the functions and methods of the same name; a method's object comes first.
Cancelling a call ends it as Ctrl-C does: it first tidies up, a job that run() had submitted is cancelled, one that is
only awaited goes on. Functions for output and progress are called on that thread, not on the loop's."""
from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from . import _cluster, _env, _job, _local, _plan
from ._calls import in_thread
from ._cluster import Cluster, Submitted
from ._errors import UsageError
from ._job import JobLike, job_of
from ._library import Files, PathName
from ._plan import Plan

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(function: Callable[P, T], undo: Callable[[T], object] | None = None) -> Callable[P, Coroutine[Any, Any, T]]:
    """The function on a thread, with its own signature. undo: as of in_thread."""

    @functools.wraps(function)
    async def call(*args: P.args, **options: P.kwargs) -> T:
        return await in_thread(lambda: function(*args, **options), undo)

    call.__module__, call.__doc__ = __name__, f"drarun.{function.__qualname__}"
    return call


async def plan(job: JobLike, *, cluster: Cluster | None = None, slices: Files = None, nodes: Files = None,
               classes: Files = None, claims: Files = None, objects: str | None = None, nccl_version: str | None = None,
               workers: int | None = None, profiles: PathName | None = None, kubernetes: str | None = None) -> Plan:
    """drarun.plan, or with a cluster Cluster.plan, which files do not go with."""
    files = {"slices": slices, "nodes": nodes, "classes": classes, "claims": claims, "objects": objects}
    if cluster is None:
        return await in_thread(lambda: _plan.plan(
            job, slices=slices, nodes=nodes, classes=classes, claims=claims, objects=objects, nccl_version=nccl_version,
            workers=workers, profiles=profiles, kubernetes=kubernetes))
    given = [name for name, value in files.items() if value is not None]
    if given:
        raise UsageError(f"{given[0]}: the objects are the cluster's: leave out {given[0]} or cluster")
    on = cluster
    return await in_thread(lambda: on.plan(job_of(job, profiles), nccl_version=nccl_version, workers=workers,
                                           kubernetes=kubernetes))


validate = _awaited(_job.validate)
render = _awaited(_job.render)
env = _awaited(_env.env)
run = _awaited(_cluster.run)
run_local = _awaited(_local.run_local)
submit = _awaited(_cluster.submit, Submitted.cancel)
job = _awaited(Cluster.job)
wait = _awaited(Submitted.wait)
follow = _awaited(Submitted.follow)
logs = _awaited(Submitted.logs)
status = _awaited(Submitted.status)
document = _awaited(Submitted.document)
cancel = _awaited(Submitted.cancel)
