# SPDX-License-Identifier: Apache-2.0
"""The build under test: DRARUN_BUILD, else build/ beside the source."""
import os
import re
import shutil
import subprocess
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

# How much slower the build is than a plain one.
if "thread" in SANITIZE:
    SLOW_BUILD = 10
elif SANITIZE:
    SLOW_BUILD = 4
else:
    SLOW_BUILD = 1

# Deadlines of tests are for a plain build on an idle machine of two cores. With other programs beside this one they are
# longer by DRARUN_TEST_LOAD (cmake/PythonTest.cmake), on a slow machine by DRARUN_TEST_MACHINE (scripts/lib/machine_factor.py).
MACHINE = int(os.environ.get("DRARUN_TEST_MACHINE", "1"))
SLOWER = SLOW_BUILD * int(os.environ.get("DRARUN_TEST_LOAD", "1")) * MACHINE
LEAST_S = 60


def patience(seconds=LEAST_S):
    """After how many seconds a test gives up what must come. It ends hangs and decides nothing else, so it is a minute at least."""
    return max(LEAST_S, seconds * SLOWER)


def copy_source(folder):
    """The files of this tree, changed ones too, into a new folder."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if name and os.path.lexists(SOURCE / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, folder / name, follow_symlinks=False)


def with_ccache(top):
    """(options of cmake, the environment) of a build right below top, a tree of these sources: what any such build has compiled with the same
    options, as scripts/test builds (scripts/lib/stage.sh), comes from the cache."""
    env = {**os.environ, "CCACHE_BASEDIR": str(top), "CCACHE_NOHASHDIR": "1"}
    return (["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []), env


# drarun-bench for the images of others (benchmarks/bench/CMakeLists.txt); only in plain builds, and with scripts/fetch-zig.
ANYWHERE = BUILD / "anywhere"
ANYWHERE_MISSING = "" if (ANYWHERE / "bin/drarun-bench").exists() else (
    "sanitizer build: drarun-bench for the images of others is plain" if SANITIZE else
    "no build/anywhere: DRARUN_BENCH_ANYWHERE is off, or scripts/fetch-zig failed when the tree was configured")
