# SPDX-License-Identifier: Apache-2.0
"""What a plan says that this pod or machine holds."""
from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .._env import Environment


VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
"""Which GPUs a process uses: of NVIDIA's, of AMD's. Ray sets it, actor by actor."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of this pod or machine, and what is near it."""

    id: str
    """As VISIBLE and Ray name it: a number in the order of PCI addresses, or a UUID; of AMD's ROCm's number."""
    uuid: str | None
    pci: str | None
    """``0000:8f:00.0``."""
    numa: int | None
    nics: tuple[str, ...]
    """That NCCL takes for it, by their RDMA devices' names."""
    paths: tuple[str, ...]
    """To each of them: PIX, PXB, PHB, SYS."""
    rails: tuple[int, ...]
    """Of each of them."""
    cpus: frozenset[int]
    """Its part of the CPUs of its NUMA node."""


@dataclass(frozen=True)
class Held:
    gpus: tuple[Gpu, ...]
    """In the order of PCI addresses."""
    nics: tuple[str, ...]

    @property
    def rails(self) -> tuple[int, ...]:
        return tuple(sorted({rail for gpu in self.gpus for rail in gpu.rails if rail >= 0}))


def cpus_of(text: str | None) -> frozenset[int]:
    """``0-3,8``."""
    ranges = (part.partition("-") for part in (text or "").split(",") if part)
    return frozenset(cpu for low, _, high in ranges for cpu in range(int(low), int(high or low) + 1))


def _gpu(id: str, rank: dict[str, Any]) -> Gpu:
    return Gpu(id, rank.get("uuid"), rank.get("pci"), rank.get("numa"), tuple(rank["nics"]), tuple(rank["path"]),
               tuple(rank["rails"]), cpus_of(rank.get("cpus")))


def held(found: Environment) -> Held:
    worker = json.loads(found.text("json"))["workers"][0]
    named = next((worker["env"][name] for name in VISIBLE if worker["env"].get(name)), "")
    ids = named.split(",") if named else []  # none of another vendor's
    gpus = tuple(_gpu(ids[index] if index < len(ids) else str(index), rank) for index, rank in enumerate(worker["ranks"]))
    nics = worker.get("nics") or dict.fromkeys(name for gpu in gpus for name in gpu.nics)
    return Held(gpus, tuple(nics))
