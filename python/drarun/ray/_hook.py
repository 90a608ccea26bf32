# SPDX-License-Identifier: Apache-2.0
"""The environment of Ray's worker processes."""
from __future__ import annotations

import importlib
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from .._env import Environment
from .._errors import UsageError
from .._library import PathName
from . import _options
from ._devices import VISIBLE, held
from ._version import FIELD, NESTED, is_client, numbers_of, ray

log = logging.getLogger("drarun.ray")
HOOK = "drarun.ray.hook"


def runtime_env(base: Mapping[str, Any] | None = None, *, network: str | None = None, nccl_version: str | None = None,
                profile: str | None = None, profiles: PathName | None = None, pod_interface: str | None = None,
                hca_list: str | None = None, mpi_transport: str | None = None,
                root: PathName | None = None) -> dict[str, Any]:
    """For ray.init(runtime_env=...), which alone runs hooks, or as JSON for ``ray job submit``: each worker process
    begins with drarun.ray.hook. All nodes must have this package.

    base: a runtime_env with whatever else is wanted. Its env_vars are the user's, and stay; a hook that it names runs
    after ours.
    network: "rdma", workers without it do not start; "any", else sockets. None: rdma where the pod has GPUs.
    The others are those of drarun.env(), files being the workers'.

    Raises UsageError for options that mean nothing, and where Ray is missing or too old; SpecError for a profile that
    nobody knows."""
    module = ray()
    if is_client() or os.environ.get("RAY_ADDRESS", "").startswith("ray://"):
        log.warning("drarun: Ray Client (ray://) runs no hook, so that workers get nothing of this: use \"ray job submit\", or "
                    "call drarun.ray.setup() in the actors")
    if numbers_of(module) < NESTED:
        log.warning("drarun: Ray %s ends a ray.init() inside a worker (vLLM's, for example) with \"is not permitted because it is "
                    "reserved\" where the job has a hook: use Ray %s or newer, or start Ray with \"drarun env -- ray start\"",
                    module.__version__, ".".join(map(str, NESTED)))
    made = _base(base)
    options = _options.checked(dict(network=network, nccl_version=nccl_version, profile=profile, profiles=profiles,
                                    pod_interface=pod_interface, hca_list=hca_list, mpi_transport=mpi_transport,
                                    root=root))
    then = made.get(FIELD)
    if then is not None and not (isinstance(then, str) and "." in then):
        raise UsageError(f"{FIELD}: {then!r} is there already: give its name, as \"package.module.function\", or call "
                         "drarun.ray.setup() in it and pass it to ray.init() alone")
    if then and then != HOOK:
        options["then"] = then
    made["env_vars"] = {**made.get("env_vars", {}), _options.VARIABLE: json.dumps(options)}
    made[FIELD] = HOOK
    return made


def _base(base: Mapping[str, Any] | None) -> dict[str, Any]:
    if base is not None and not isinstance(base, Mapping):
        raise UsageError(f"a runtime_env is a dict, not {type(base).__name__}")
    made = dict(base or {})
    if not isinstance(made.get("env_vars", {}), Mapping):
        raise UsageError(f"env_vars: expected a dict, got {type(made['env_vars']).__name__}")
    return made


def hook() -> None:
    """Ray's worker_process_setup_hook, with the options of runtime_env(). What it raises is the reason that Ray gives
    for the worker that did not start."""
    options = _options.here()
    _apply(_options.derive(options, run_script=True))
    then = options.get("then")
    if then:
        module, _, name = then.rpartition(".")
        getattr(importlib.import_module(module), name)()


def setup(**options: str) -> Environment:
    """What hook() does, for a hook of one's own or the first line of an actor whose process has no hook; options: those
    of drarun.env() that runtime_env() takes too."""
    unknown = sorted(set(options) - set(_options.NAMES))
    if unknown:
        raise UsageError(f"unknown {', '.join(unknown)}; known: {', '.join(_options.NAMES)}")
    return _apply(_options.derive(options or _options.here(), run_script=True))


def _apply(found: Environment) -> Environment:
    late = [each for each in found.variables if each.prepend and each.name == "LD_LIBRARY_PATH"
            and each.value not in os.environ.get("LD_LIBRARY_PATH", "")]
    found.apply(but=VISIBLE, mark=True)
    for words in found.warnings:
        if held(found).gpus or not words.startswith("NO_RDMA_NIC"):  # which goes without saying where nothing is held
            log.warning("drarun: %s", words)
    for each in late:
        log.warning("drarun: LATE_LIBRARY_PATH: %s is read when a process starts, before this one could set it: start "
                    "Ray with \"drarun env -- ray start ...\", or put %s into the image's", each.name, each.value)
    log.info("drarun: %s (%s): %s", found.profile, found.profile_fact, found.summary)
    return found
