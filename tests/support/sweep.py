# SPDX-License-Identifier: Apache-2.0
"""python3 -m support.sweep: ends and removes what a killed run of the tests left behind, and says what that was. scripts/test begins
with it. While any pytest of this user runs, which leftovers.note_run() shows, it does nothing.

A killed run can leave ranks of a job (their environment has a token), folders in /tmp, and cgroups; all else ends with its
process or namespace. A run in namespaces of its own sees neither the folders nor the processes of others, but their cgroups:
by its name alone one is removed only while no pytest at all runs."""
import os
import re
import shutil
import sys
from pathlib import Path

from . import leftovers
from .cluster import state

# What tests and soaks name their folders: tempfile's eight characters after a prefix.
FOLDER = re.compile(r"(dt|dt-pytest|dt-report|dt-vm|dt-image|dt-cluster|dr|soak|soak-report)-[a-z0-9_]{8}")
CGROUP = re.compile(r"drarun-test-\d+(-.*)?|drarun-mutate-\d+-.+|dt-cluster-[a-z0-9_]{8}-n\d+")


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


def remove(path):
    """A folder; what becomes of it, in words. That of a cluster names its cgroups, and is locked while the cluster lives."""
    if path.name.startswith(state.PREFIX):
        try:
            if not state.remove_left(path):
                return "stays: it is in use"
        except OSError as error:
            return f"stays: {error}"
    shutil.rmtree(path, ignore_errors=True)
    return "stays in part" if path.exists() else ""


def sweep(parent, groups, processes):
    """[what was ended or removed], in words. groups: where cgroups are removed by their names; None: nowhere. processes:
    {pid: command line} to end."""
    done = []
    for pid, line in processes.items():
        leftovers.end(pid)
        done.append(f"process {pid}: {line[:100]}")
    for path in folders(parent):
        done.append(f"folder {path} {remove(path)}".rstrip())
    for path in cgroups(groups) if groups else ():
        try:
            state.remove_cgroup(path, kill=True)
            done.append(f"cgroup {path}")
        except OSError as error:
            done.append(f"cgroup {path} stays: {error}")
    return done


def main():
    with leftovers.alone(leftovers.run_file()) as alone, leftovers.alone(leftovers.CGROUPS) as nobody:
        groups = leftovers.CGROUPS if nobody else None
        for each in sweep(Path("/tmp"), groups, leftovers.processes(None)) if alone else ():
            print(f"left by a run that was killed, removed: {each}", file=sys.stderr)


if __name__ == "__main__":
    main()
