# SPDX-License-Identifier: Apache-2.0
"""The Python package without pip: its source and the declarations that a wheel has, in a folder for PYTHONPATH."""
import shutil
import subprocess
import sys

from .build import BUILD, SOURCE, patience


def in_folder(folder):
    """The environment with which Debian's python3 has the package of this tree, over the library of this build."""
    shutil.copytree(SOURCE / "python/drarun", folder / "drarun", ignore=shutil.ignore_patterns("__pycache__", "_api.py"))
    subprocess.run([sys.executable, "-B", SOURCE / "python/declarations.py", SOURCE / "include/drarun",
                    folder / "drarun/_api.py"], check=True, timeout=patience(), stdout=subprocess.DEVNULL)
    return {"PYTHONPATH": str(folder), "DRARUN_LIBRARY": str(BUILD / "lib/libdrarun.so.0"), "PYTHONDONTWRITEBYTECODE": "1"}
