# SPDX-License-Identifier: Apache-2.0
"""An actor beside its GPUs."""
from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .._errors import UsageError
from . import _options
from ._devices import VISIBLE, Gpu, Held, held
from ._version import ray

log = logging.getLogger("drarun.ray")

# A thread that is not bound yet may make another while the list is walked. More than two passes are rare; the limit is for
# a machine whose allowed CPUs change meanwhile.
PASSES_MAX = 20


@dataclass(frozen=True)
class Binding:
    """What an actor or task has, and where it was bound to."""

    gpus: tuple[Gpu, ...]
    """In the order of CUDA's devices 0, 1, ..."""
    cpus: tuple[int, ...]
    """That all threads of the process are bound to. Empty: it was left as it was."""
    why: str
    """Why it was left so, or empty."""

    @property
    def nics(self) -> tuple[str, ...]:
        """That NCCL takes for its GPUs, in their order. NCCL_IB_HCA names all of the pod, the same for each process
        there: NCCL itself takes the near ones, and must know the others' to pair them."""
        return tuple(dict.fromkeys(name for gpu in self.gpus for name in gpu.nics))

    @property
    def rails(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(rail for gpu in self.gpus for rail in gpu.rails))


def bind(*, cpus: bool = True) -> Binding:
    """In an actor or task that Ray gave GPUs, before CUDA is used: brings CUDA_VISIBLE_DEVICES, for AMD's GPUs
    HIP_VISIBLE_DEVICES, into the order of PCI addresses, and binds all threads of the process, and those to come, to the
    CPUs beside these GPUs: of the CPUs that the process may use already, its GPUs' parts of their NUMA nodes. Without GPUs
    nothing is changed. A worker process that has run a task stays bound for the next.

    cpus: False: they are left alone.

    Raises UsageError outside of a worker of Ray's, and where Ray's GPUs are not the pod's."""
    ids = gpu_ids()
    if not ids:
        return Binding((), (), "Ray gave it no GPUs")
    found = held(_options.derive({**_options.here(), "network": "any"}, run_script=False))
    gpus = chosen(found, ids)
    _order(ids, [gpu.id for gpu in gpus])
    bound, why = _bind(frozenset().union(*(gpu.cpus for gpu in gpus))) if cpus else ((), "as the caller wished")
    if cpus and why:
        log.warning("drarun: NOT_BOUND: %s", why)
    return Binding(gpus, bound, why)


def gpu_ids() -> list[str]:
    module = ray()
    if not module.is_initialized() or module.get_runtime_context().worker.mode != module.WORKER_MODE:
        raise UsageError("bind: this process is no worker of Ray's: call it in an actor or task")
    return [str(each) for each in module.get_runtime_context().get_accelerator_ids().get("GPU", [])]


def chosen(found: Held, ids: Sequence[str]) -> tuple[Gpu, ...]:
    """The GPUs of these ids, in the order of PCI addresses."""
    known = {gpu.id: gpu for gpu in found.gpus} | {gpu.uuid: gpu for gpu in found.gpus if gpu.uuid}
    for each in ids:
        if each not in known:
            raise UsageError(f"bind: Ray gave GPU {each}, and this pod holds {_list(found.gpus)}: start Ray with "
                             f"--num-gpus={len(found.gpus)} by \"drarun env -- ray start ...\", which names them")
    if any(each.isdigit() for each in ids) and os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID") != "PCI_BUS_ID":
        raise UsageError(f"bind: with CUDA_DEVICE_ORDER={os.environ['CUDA_DEVICE_ORDER']} nobody knows which GPU {ids[0]} "
                         "is: unset it")
    wanted = {known[each].id for each in ids}
    return tuple(gpu for gpu in found.gpus if gpu.id in wanted)


def _list(gpus: Iterable[Gpu]) -> str:
    return ", ".join(gpu.id for gpu in gpus) or "none"


def _order(ids: Sequence[str], wanted: Sequence[str]) -> None:
    torch = sys.modules.get("torch")
    name = next((each for each in VISIBLE if os.environ.get(each) == ",".join(ids)), None)
    if [*ids] == [*wanted] or name is None:
        return  # or somebody else than Ray has set it
    if torch is not None and torch.cuda.is_initialized():
        log.warning("drarun: NOT_ORDERED: CUDA is in use already: call bind() before")
        return
    os.environ[name] = ",".join(wanted)


def _bind(wanted: frozenset[int]) -> tuple[tuple[int, ...], str]:
    if not wanted:
        return (), "which CPUs are near its GPUs is not known"
    may = os.sched_getaffinity(0)
    cpus = tuple(sorted(wanted & may))
    if not cpus:
        return (), f"of the CPUs near its GPUs the process may use none: {_ranges(wanted)} of {_ranges(may)}"
    try:
        for _ in range(PASSES_MAX):
            if not _bind_threads(set(cpus)):
                break
    except OSError as error:
        return (), f"sched_setaffinity: {error.strerror}"
    return cpus, ""


def _bind_threads(cpus: set[int]) -> bool:
    """Whether there was one that was not bound."""
    some = False
    for thread in map(int, os.listdir("/proc/self/task")):
        try:
            if os.sched_getaffinity(thread) != cpus:
                os.sched_setaffinity(thread, cpus)
                some = True
        except ProcessLookupError:
            pass  # it has ended
    return some


def _ranges(cpus: Iterable[int]) -> str:
    """``0-3,8``."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
