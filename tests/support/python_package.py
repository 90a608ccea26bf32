# SPDX-License-Identifier: Apache-2.0
"""The Python package without pip: its source and the declarations that a wheel has, in a folder for PYTHONPATH."""
import shutil
import subprocess
import sys

from .build import BUILD, SOURCE, patience


def in_folder(folder, source=SOURCE, library=BUILD / "lib/libdrarun.so.0"):
    """The environment with which Debian's python3 has the package of a source tree, over a library: both this tree's, if not told."""
    shutil.copytree(source / "python/drarun", folder / "drarun", ignore=shutil.ignore_patterns("__pycache__", "_api.py"))
    subprocess.run([sys.executable, "-B", source / "python/declarations.py", source / "include/drarun",
                    folder / "drarun/_api.py"], check=True, timeout=patience(), stdout=subprocess.DEVNULL)
    return {"PYTHONPATH": str(folder), "DRARUN_LIBRARY": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
