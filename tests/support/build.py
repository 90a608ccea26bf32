# SPDX-License-Identifier: Apache-2.0
"""The build under test: DRARUN_BUILD, else build/ beside the source."""
import os
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DRARUN_BUILD", SOURCE / "build")).resolve()


def cached(name):
    """A variable of the CMake cache, '' where it is unset or the tree was not configured."""
    try:
        text = (BUILD / "CMakeCache.txt").read_text()
    except FileNotFoundError:
        return ""
    found = re.search(rf"^{re.escape(name)}:[A-Z]+=(.*)$", text, re.M)
    return found.group(1) if found else ""


SANITIZE = cached("DRARUN_SANITIZE")

# Deadlines of tests are for a plain build on an idle machine of two cores.
if "thread" in SANITIZE:
    SLOWER = 10
elif SANITIZE:
    SLOWER = 4
else:
    SLOWER = 1
