# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio: each call runs on a thread of its own, and the loop goes on meanwhile.

    status = await drarun.aio.run("job.yaml", timeout=600)

Arguments, results and errors are those of the functions and methods of the same name. Cancelling a call ends it as
Ctrl-C does: it first tidies up, a job that run() had submitted is cancelled, one that is only awaited goes on. Functions
for output and progress are called on that thread, not on the loop's."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _cluster, _env, _errors, _job, _local, _plan
from ._calls import in_thread
from ._cluster import Cluster, Output, Submitted
from ._job import JobLike
from ._library import PathName


async def validate(job: JobLike, **options: Any) -> tuple[_errors.Finding, ...]:
    """drarun.validate"""
    return await in_thread(lambda: _job.validate(job, **options))


async def render(job: JobLike, **options: Any) -> str:
    """drarun.render"""
    return await in_thread(lambda: _job.render(job, **options))


async def plan(job: JobLike, *, cluster: Cluster | None = None, **options: Any) -> _plan.Plan:
    """drarun.plan, or with a cluster Cluster.plan"""
    return await in_thread(lambda: cluster.plan(job, **options) if cluster else _plan.plan(job, **options))


async def env(**options: Any) -> _env.Environment:
    """drarun.env"""
    return await in_thread(lambda: _env.env(**options))


async def run(job: JobLike, **options: Any) -> int:
    """drarun.run"""
    return await in_thread(lambda: _cluster.run(job, **options))


async def run_local(command: Iterable[PathName] | JobLike, **options: Any) -> int:
    """drarun.run_local"""
    return await in_thread(lambda: _local.run_local(command, **options))


async def submit(job: JobLike, **options: Any) -> Submitted:
    """drarun.submit"""
    return await in_thread(lambda: _cluster.submit(job, **options), Submitted.cancel)


async def wait(job: Submitted, timeout: float | None = None) -> int:
    """Submitted.wait"""
    return await in_thread(lambda: job.wait(timeout))


async def follow(job: Submitted, **options: Any) -> int:
    """Submitted.follow"""
    return await in_thread(lambda: job.follow(**options))


async def logs(job: Submitted, *, rank: int | None = None) -> list[Output]:
    """Submitted.logs"""
    return await in_thread(lambda: job.logs(rank=rank))


async def status(job: Submitted) -> dict[str, Any]:
    """Submitted.status"""
    return await in_thread(job.status)


async def cancel(job: Submitted) -> None:
    """Submitted.cancel"""
    await in_thread(job.cancel)
