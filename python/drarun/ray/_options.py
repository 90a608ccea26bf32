# SPDX-License-Identifier: Apache-2.0
"""Options of drarun.env() that workers get from the driver, in a variable of their environment."""
from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from .._env import Environment, env
from .._errors import SpecError, UsageError
from ._devices import held

VARIABLE = "DRARUN_RAY"
NAMES = ("network", "nccl_version", "profile", "profiles", "pod_interface", "hca_list", "mpi_transport", "root")
OF_THE_WORKER = ("profiles", "root")
"""Files that the driver need not have."""


def checked(options: Mapping[str, Any]) -> dict[str, str]:
    """Those that are given. Raises UsageError for one that means nothing."""
    given: dict[str, str] = {}
    for name, value in options.items():
        if isinstance(value, (str, os.PathLike)):
            given[name] = os.fsdecode(value)
        elif value is not None:
            raise UsageError(f"{name}: expected a text, got {type(value).__name__}")
    here: dict[str, Any] = {name: value for name, value in given.items() if name not in OF_THE_WORKER}
    if "profiles" in given:
        here.pop("profile", None)  # which may be in that file
    with tempfile.NamedTemporaryFile("w", suffix=".json") as probe:
        probe.write("{}")  # a pod that shows nothing: what is wrong then is wrong in the options
        probe.flush()
        env(**{**here, "probe": probe.name, "network": "any" if given.get("network") == "rdma" else given.get("network", "any")})
    return given


def here() -> dict[str, str]:
    """Of this worker process; empty without them. Raises UsageError for what nobody but drarun.ray writes."""
    text = os.environ.get(VARIABLE) or "{}"
    try:
        options = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{VARIABLE}: {error}: drarun.ray.runtime_env() writes it") from error
    if not isinstance(options, dict) or not all(isinstance(each, str) for each in options.values()):
        raise UsageError(f"{VARIABLE}: expected an object of texts: drarun.ray.runtime_env() writes it")
    unknown = sorted(set(options) - {*NAMES, "then"})
    if unknown:
        raise UsageError(f"{VARIABLE}: unknown {', '.join(unknown)}: the driver's drarun is newer than the worker's?")
    return options


def derive(options: Mapping[str, str], *, run_script: bool) -> Environment:
    """drarun.env(). Where it is not said which network: RDMA where there are GPUs, any where there are none."""
    given: dict[str, Any] = {name: value for name, value in options.items() if name in NAMES}
    if "network" in given:
        return env(run_script=run_script, **given)
    try:
        return env(run_script=run_script, **given, network="rdma")
    except SpecError as error:
        found = env(run_script=run_script, **given, network="any")
        if held(found).gpus:
            raise SpecError(f"{error}; drarun.ray.runtime_env(network=\"any\") would use TCP", code=error.code) from error
        return found
