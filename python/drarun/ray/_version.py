# SPDX-License-Identifier: Apache-2.0
"""Ray itself, where it is new enough."""
from __future__ import annotations

import errno
import re
from typing import Any

from .._errors import UsageError

LEAST = (2, 9)
"""The first that takes worker_process_setup_hook by name, has actors run a function that is given to them, and tells
the ids of their GPUs."""
NESTED = (2, 55)
"""The first whose workers may call ray.init() where the job has a hook (ray-project/ray 61473)."""
FIELD = "worker_process_setup_hook"


def ray() -> Any:
    """The module. Raises UsageError with code errno.ENOENT where it cannot be imported, errno.ENOTSUP where it is too
    old."""
    least = ".".join(map(str, LEAST))
    try:
        import ray
        import ray.runtime_env
    except ImportError as error:
        raise UsageError(f"ray: {error}: install Ray {least} or newer (pip install ray)", code=errno.ENOENT) from error
    version, numbers = str(getattr(ray, "__version__", "?")), numbers_of(ray)
    lacking = FIELD not in getattr(ray.runtime_env.RuntimeEnv, "known_fields", ())
    if numbers < LEAST or lacking:
        raise UsageError(f"ray: version {version} has no {FIELD}{'' if lacking else ' by name'}: drarun.ray needs Ray "
                         f"{least} or newer", code=errno.ENOTSUP)
    return ray


def numbers_of(ray: Any) -> tuple[int, ...]:
    """(2, 55)"""
    return tuple(int(each) for each in re.findall(r"\d+", str(getattr(ray, "__version__", "?")))[:2])


def is_client() -> bool:
    """Whether this driver is connected by Ray Client, for which Ray runs no hook."""
    try:
        from ray.util import client
    except ImportError:
        return False
    return bool(client.ray.is_connected())
