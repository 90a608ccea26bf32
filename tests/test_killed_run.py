# SPDX-License-Identifier: Apache-2.0
"""A run of scripts/test that is killed leaves nothing that makes the next one fail."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import sweep
from support.build import SOURCE, patience
from support.cluster import state

pytestmark = [pytest.mark.plain("it is about scripts/test, which is the same in each build"),
              pytest.mark.skipif(os.getuid() != 0, reason="needs root")]
BEGIN_S, RUN_S = 300, 600
# A /tmp, and processes, of its own: the lock, the folders and the ranks of these runs alone. The shell reaps orphans.
APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         "mount --make-rprivate / && mount -t tmpfs -o mode=1777 tmpfs /tmp && \"$@\"; exit $?", "sh"]
# Kills all other processes of its namespace once one runs with this word in its command line.
KILLED_ONCE = """
import os, signal, subprocess, sys, time
def names():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield int(pid), open(f"/proc/{pid}/cmdline").read()
        except OSError:
            pass
run = subprocess.Popen(sys.argv[4:], start_new_session=True)
ours = {1, os.getpid()}
end = time.monotonic() + float(sys.argv[2])
while not any(sys.argv[1] in name for pid, name in names() if pid not in ours):
    assert run.poll() is None and time.monotonic() < end, "it never came so far"
    time.sleep(0.1)
time.sleep(float(sys.argv[3]))
for _ in range(50):
    for pid, _ in names():
        if pid not in ours:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    time.sleep(0.02)
run.wait()
sys.exit(subprocess.run(sys.argv[4:]).returncode)
"""


@pytest.mark.parametrize("case,running", [
    ("test_cluster_jobs.py::test_ranks_run_and_their_output_arrives[here]", "kubelet"),
    ("test_vm.py::test_command_in_a_guest", "qemu-system"),
], ids=["cluster", "guest"])
def test_next_run_passes(case, running):
    run = subprocess.run([*APART, sys.executable, "-c", KILLED_ONCE, running, str(patience(BEGIN_S)), "2", SOURCE / "scripts/test", "--only", case],
                         capture_output=True, text=True, timeout=patience(BEGIN_S + RUN_S), env=dict(os.environ, HOME=str(Path.home())))
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    assert f"passed: {case}" in run.stdout and "left by a run that was killed, removed: folder /tmp/dt-" in run.stderr, run.stdout + run.stderr


LOOKS = """
from support import leftovers
with leftovers.alone(leftovers.run_file()) as alone, leftovers.alone(leftovers.CGROUPS) as nobody:
    print(alone, nobody)
"""


def test_run_with_a_tmp_of_its_own_sees_others():
    """Us: it may remove what is in its /tmp, and no cgroup by its name alone."""
    run = subprocess.run([*APART, sys.executable, "-B", "-c", LOOKS], cwd=SOURCE / "tests", capture_output=True, text=True)
    assert run.stdout == "True False\n", run


def test_what_is_swept(tmp_path):
    """Processes, and folders by their names, with the cgroups that those of a dead cluster list; nothing else."""
    parent, groups = tmp_path / "tmp", tmp_path / "groups"
    for name in ("dt-abcdefgh", "dr-abc12_gh", "dt-report-abcdefgh", "drarun", "dt-abc", "other-abcdefgh", "dt-cluster-dead1234", "dt-cluster-live1234"):
        (parent / name / "inside").mkdir(parents=True)
    for name in ("dt-cluster-dead1234", "dt-cluster-live1234"):
        (parent / name / "cgroups").write_text(f"{groups}/{name}-n0\n")
    for name in ("dt-cluster-dead1234-n0", "dt-cluster-live1234-n0", "dt-cluster-away1234-n0", "drarun-test-1", "other"):
        (groups / name / "kubepods").mkdir(parents=True)
    lock = state._lock(parent / "dt-cluster-live1234")
    (parent / "dt-zzzzzzzz").symlink_to(parent / "drarun")
    left = subprocess.Popen(["sleep", "1000"])
    done = sweep.sweep(parent, None, {left.pid: "sleep 1000"})
    assert left.wait(patience()) == -signal.SIGKILL
    live = f"folder {parent / 'dt-cluster-live1234'} stays: it is in use"
    assert done == [f"process {left.pid}: sleep 1000"] + [
        f"folder {parent / name}" for name in ("dr-abc12_gh", "dt-abcdefgh", "dt-cluster-dead1234")] + [
        live, f"folder {parent / 'dt-report-abcdefgh'}"]
    assert sorted(path.name for path in parent.iterdir()) == ["drarun", "dt-abc", "dt-cluster-live1234", "dt-zzzzzzzz", "other-abcdefgh"]
    assert sorted(path.name for path in groups.iterdir()) == ["drarun-test-1", "dt-cluster-away1234-n0", "dt-cluster-live1234-n0", "other"]
    os.close(lock)
    assert f"cgroup {groups / 'dt-cluster-away1234-n0'}" in sweep.sweep(parent, groups, {})
    assert [path.name for path in groups.iterdir()] == ["other"]
