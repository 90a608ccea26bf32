# SPDX-License-Identifier: Apache-2.0
"""Asks the members of a collective group before it starts."""
from __future__ import annotations

import math
import os
import re
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _library
from .._env import DERIVED
from .._errors import InfrastructureError, PreflightError, TimeoutError, UsageError
from . import _nccl, _options
from ._bind import chosen
from ._devices import held
from ._group import Group, Report, agreed
from ._version import is_client, ray

BACKENDS = ("nccl", "gloo")
REPORTED = ("NCCL_", "GLOO_")
SHOWN = 8


def check(actors: Any, *, backend: str = "nccl", timeout: float = 60.0) -> Group:
    """Whether actors may form a collective group: each says what its process and its pod have, and all must say the same
    of their machine type, number of HCAs, rails, NCCL and NCCL_* (with "gloo": of drarun's version and GLOO_*).

    actors: handles of any actors, which need not know of this, before they are busy with the group; or a placement group,
    of whose bundles each is asked before there are actors.
    backend: of the group. timeout: seconds until all must have answered.

    Raises PreflightError, with .findings, where they differ; TimeoutError with the reason where some do not answer;
    InfrastructureError where one is dead; UsageError for what is no actor."""
    module = ray()
    if backend not in BACKENDS:
        raise UsageError(f"backend: expected {' or '.join(BACKENDS)}, got {backend!r}")
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not 0 < timeout < math.inf:
        raise UsageError(f"timeout: expected seconds, more than 0, got {timeout!r}")
    end = time.monotonic() + timeout
    if is_client():
        raise UsageError("check: this driver is a Ray Client (ray://), which runs no hook: use \"ray job submit\", or call "
                         "drarun.ray.setup() in the actors")
    if not module.is_initialized():
        raise UsageError("check: Ray is not initialized: ray.init() first")
    members = _bundles(module, actors, timeout) if _is_group(actors) else _actors(module, actors)
    asked = [(name, ask(name)) for name, ask in members]
    module.wait([ref for _, ref in asked], num_returns=len(asked), timeout=max(0.0, end - time.monotonic()))
    return agreed(_answers(module, asked, timeout), backend)


def report(name: str) -> Report:
    """Of the process that runs it, a worker of Ray's."""
    context = ray().get_runtime_context()
    found = _options.derive({**_options.here(), "network": "any"}, run_script=False)
    have = held(found)
    ids = [str(each) for each in context.get_accelerator_ids().get("GPU", [])]
    known = {each for gpu in have.gpus for each in (gpu.id, gpu.uuid)}
    return Report(
        name=name, host=socket.gethostname(), address=ray().util.get_node_ip_address(), node=context.get_node_id(),
        pid=os.getpid(), drarun=_library.version, derived=DERIVED in os.environ, profile=found.profile,
        hcas=len(have.nics), rails=have.rails, gpus=chosen(have, [each for each in ids if each in known]),
        nccl=_nccl.version(),
        variables={key: value for key, value in os.environ.items() if key.startswith(REPORTED)})


def _report_of(actor: object, name: str) -> Report:
    return report(name)


# ---- whom to ask ----

def _actors(module: Any, actors: Any) -> list[tuple[str, Any]]:
    if isinstance(actors, (str, bytes)) or not isinstance(actors, Iterable):
        raise UsageError(f"actors: expected a list of actors or a placement group, got {type(actors).__name__}")
    handles = list(actors)
    if not handles:
        raise UsageError("actors: the list is empty")
    for number, each in enumerate(handles):
        if not isinstance(each, module.actor.ActorHandle):
            raise UsageError(f"actors: expected handles of actors, got {type(each).__name__} at {number}")
    return [(f"actor {number} ({_short(each)})", lambda name, each=each: each.__ray_call__.remote(_report_of, name))
            for number, each in enumerate(handles)]


def _short(handle: Any) -> str:
    """``Actor(Trainer, 3fa20c11)``"""
    return re.sub(r"([0-9a-f]{8})[0-9a-f]{8,}", r"\1", repr(handle))


def _is_group(actors: Any) -> bool:
    return type(actors).__name__ == "PlacementGroup" and hasattr(actors, "bundle_specs")


def _bundles(module: Any, group: Any, timeout: float) -> list[tuple[str, Any]]:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    if not group.wait(timeout):
        raise TimeoutError(f"the placement group has no room after {timeout:g} s: it wants {_total(group.bundle_specs)}; "
                           f"{_room(module)}")
    task = module.remote(num_cpus=0, max_retries=0)(report)
    return [(f"bundle {index}", lambda name, index=index: task.options(
        scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)).remote(name))
        for index in range(len(group.bundle_specs))]


# ---- what comes back ----

def _answers(module: Any, asked: Sequence[tuple[str, Any]], timeout: float) -> list[Report]:
    answers, late, dead = [], [], []
    for name, ref in asked:
        try:
            answers.append(module.get(ref, timeout=0))
        except module.exceptions.GetTimeoutError:
            late.append(f"{name}: {_state(ref)}")
        except module.exceptions.RayTaskError as error:
            raise PreflightError(f"{name} could not say what it has: {_first(error)}") from error
        except module.exceptions.RayError as error:
            dead.append(f"{name} is dead: {_first(error)}")
    if dead:
        raise InfrastructureError(_joined(dead))
    if late:
        raise TimeoutError(f"{len(late)} of {len(asked)} did not answer within {timeout:g} s: {_joined(late)}; "
                           f"{_room(module)}")
    return answers


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(texts[:SHOWN]) + (f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else "")


def _first(error: Exception) -> str:
    """Of a worker's end the exception that caused it, which stands last in a traceback; else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt): ", line)]
    return (raised or lines or [type(error).__name__])[-1 if raised else 0]


STATES = {
    "DEPENDENCIES_UNREADY": "waits for its arguments",
    "PENDING_CREATION": "has not started: Ray found no room for it, or its node does not start workers",
    "RESTARTING": "is being started again",
    "ALIVE": "runs, but is busy with another call: check before the group begins",
}


def _state(ref: Any) -> str:
    """In words, where this version of Ray lets one ask."""
    try:
        from ray._private import state
        found = state.actors(ref.task_id().actor_id().hex())
        return STATES.get(found["State"], str(found["State"]))
    except Exception:  # no public interface has it without Ray's dashboard
        return "no answer"


def _total(specs: Iterable[dict[str, float]]) -> str:
    return " + ".join(", ".join(f"{value:g} {name}" for name, value in sorted(spec.items())) for spec in specs)


def _room(module: Any) -> str:
    """``of 4 CPU 1 is free, of 16 GPU none``"""
    free = module.available_resources()
    kinds = [(name, total) for name, total in sorted(module.cluster_resources().items()) if name in ("CPU", "GPU")]
    return "free in the cluster: " + (", ".join(f"{free.get(name, 0):g} of {total:g} {name}" for name, total in kinds)
                                      or "nothing")
