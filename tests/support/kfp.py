# SPDX-License-Identifier: Apache-2.0
"""The Kubeflow Pipelines SDK and what runs notebooks: a Python of scripts/fetch-kfp with the package of this tree."""
import os

import pytest

from . import fetched, python_package
from .build import BUILD, SOURCE


def environment(folder):
    """(interpreter, environment) of a program with kfp, the package and the program drarun; skips where there is no kfp."""
    pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")
    python, reason = fetched.interpreter("fetch-kfp")
    if python is None:
        pytest.skip(reason)
    mine = {"PATH": f"{BUILD / 'bin'}:{python.parent}:{os.environ['PATH']}", "HOME": str(folder), "NO_COLOR": "1",
            "LANG": "C.UTF-8"}
    return python, {**mine, **python_package.in_folder(folder / "package")}
