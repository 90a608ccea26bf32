# SPDX-License-Identifier: Apache-2.0
"""python3 -m support.sweep: ends and removes what a killed run of the tests left behind, and says what that was. scripts/test begins
with it. While any pytest of this user runs, which leftovers.note_run() shows, it does nothing.

A killed run can leave ranks of a job (their environment has a token), folders in /tmp, and cgroups; all else ends with its
process or namespace."""
import os
import re
import shutil
import sys
from pathlib import Path

from . import leftovers
from .cluster import state

# What tests and soaks name their folders: tempfile's eight characters after a prefix.
FOLDER = re.compile(r"(dt|dt-pytest|dt-report|dt-vm|dt-image|dt-cluster|dr|soak|soak-report)-[a-z0-9_]{8}")
CGROUP = re.compile(r"drarun-test-\d+(-.*)?|dt-cluster-[a-z0-9_]{8}-n\d+")


def folders(parent):
    """Those of this user in a directory."""
    found = []
    for path in parent.iterdir():
        try:
            if FOLDER.fullmatch(path.name) and path.lstat().st_uid == os.getuid() and path.is_dir() and not path.is_symlink():
                found.append(path)
        except OSError:
            pass  # somebody else removed it
    return sorted(found)


def cgroups(root):
    """Those at the top of each hierarchy, of version 1 and 2."""
    return sorted(path for depth in ("*", "*/*") for path in root.glob(depth) if CGROUP.fullmatch(path.name) and path.is_dir())


def sweep(parent, groups, processes):
    """[what was ended or removed], in words. processes: {pid: command line} to end."""
    done = []
    for pid, line in processes.items():
        leftovers.end(pid)
        done.append(f"process {pid}: {line[:100]}")
    for path in cgroups(groups):
        try:
            state.remove_cgroup(path, kill=True)
            done.append(f"cgroup {path}")
        except OSError as error:
            done.append(f"cgroup {path} stays: {error}")
    for path in folders(parent):
        shutil.rmtree(path, ignore_errors=True)
        done.append(f"folder {path}{' stays in part' if path.exists() else ''}")
    return done


if __name__ == "__main__":
    with leftovers.alone() as alone:
        for each in sweep(Path("/tmp"), Path("/sys/fs/cgroup"), leftovers.processes(None)) if alone else ():
            print(f"left by a run that was killed, removed: {each}", file=sys.stderr)
