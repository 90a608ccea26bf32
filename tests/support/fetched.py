# SPDX-License-Identifier: Apache-2.0
"""The Python that a script of scripts/fetch-* puts into the cache."""
import functools
import subprocess
from pathlib import Path

from .build import SOURCE, patience


@functools.cache
def interpreter(script):
    """Its path, or None and the reason why it is not there."""
    run = subprocess.run([SOURCE / "scripts" / script], capture_output=True, text=True, timeout=patience(900))
    if run.returncode != 0:
        return None, f"scripts/{script}: {run.stderr.strip()[-300:]}"
    return Path(run.stdout.strip()) / "bin/python", ""
