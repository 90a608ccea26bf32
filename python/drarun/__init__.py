# SPDX-License-Identifier: Apache-2.0
"""MPI and NCCL jobs on Kubernetes Dynamic Resource Allocation: drarun's C library in Python.

    job = drarun.Job("job.yaml")                    # or a dict, or a text; SpecError with path and line
    print(drarun.plan(job, slices="slices.json"))   # which rank would get which GPU and NIC
    status = drarun.run(job, timeout=600)           # on the cluster of the kubeconfig; Ctrl-C cancels it
    status = drarun.run_local(["./app"], ranks=4)   # on this machine, with no cluster
    drarun.env().apply()                            # the NCCL environment for what this pod holds

Errors are drarun.Error, each kind with a class of its own. Calls release the interpreter's lock; drarun.aio has
them for asyncio."""
from . import aio, step
from ._bench import bench_report, bench_verdicts
from ._cluster import Cluster, Output, Submitted, print_log, print_output, print_progress, run, submit
from ._env import Environment, Variable, env
from ._errors import (CapacityError, ClusterError, Error, Finding, InfrastructureError, InterruptedError,
                      NotExecutableError, NotFoundError, PreflightError, SpecError, TimeoutError, UsageError)
from ._job import Job, JobLike, render, validate
from ._library import version as __version__
from ._local import run_local
from ._plan import Plan, plan

__all__ = [
    "CapacityError", "Cluster", "ClusterError", "Environment", "Error", "Finding", "InfrastructureError",
    "InterruptedError", "Job", "JobLike", "NotExecutableError", "NotFoundError", "Output", "Plan", "PreflightError",
    "SpecError", "Submitted", "TimeoutError", "UsageError", "Variable", "__version__", "aio", "bench_report", "bench_verdicts",
    "env", "plan", "print_log", "print_output", "print_progress", "render", "run", "run_local", "step", "submit", "validate",
]
