# SPDX-License-Identifier: Apache-2.0
"""Which NCCL this process uses, or would."""
from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

NAME = "libnccl.so.2"
ASK = """import ctypes, sys
number = ctypes.c_int()
if ctypes.CDLL(sys.argv[1]).ncclGetVersion(ctypes.byref(number)) == 0:
    print(number.value)"""
ASK_S = 30


def version() -> str | None:
    """``2.28.9``; None: there is none. The library that the process has; else the one of NVIDIA's Python package, which
    PyTorch takes; else the loader's, both asked in a process of their own, so that this one may still choose."""
    loaded = _loaded()
    if loaded is not None:
        return _text(_call(loaded))
    packaged = _packaged()
    return _text(_ask(str(packaged) if packaged else NAME))


def _loaded() -> str | None:
    found = re.search(r" (/\S*/libnccl\.so[.\d]*)$", Path("/proc/self/maps").read_text(errors="replace"), re.M)
    return found[1] if found else None


def _packaged() -> Path | None:
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except (ImportError, ValueError):
        return None
    places = list(package.submodule_search_locations or ()) if package else []
    return next((path for place in places if (path := Path(place) / "lib" / NAME).exists()), None)


def _call(path: str) -> int:
    number = ctypes.c_int()
    return number.value if ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number)) == 0 else 0


def _ask(path: str) -> int:
    try:
        asked = subprocess.run([sys.executable, "-c", ASK, path], capture_output=True, text=True, timeout=ASK_S)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return int(asked.stdout) if asked.returncode == 0 and asked.stdout.strip().isdigit() else 0


def _text(number: int) -> str | None:
    """As ncclGetVersion codes it: 2804 before 2.9, 22809 since."""
    if number <= 0:
        return None
    major = 1000 if number < 10000 else 10000
    return f"{number // major}.{number % major // 100}.{number % 100}"
