# SPDX-License-Identifier: Apache-2.0
"""How the agent comes into a pod, and its key (docs/design/010-claims.md)."""
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.agents import Agents


@pytest.fixture
def worker(build):
    return build / "bin" / "drarun-worker"


def test_install(worker, tmp_path):
    folder = tmp_path / "bin"
    for _ in range(2):  # an init container may be run again
        subprocess.run([worker, "--install", folder], check=True)
        assert [each.name for each in folder.iterdir()] == ["drarun-worker"]
    copy = folder / "drarun-worker"
    assert copy.stat().st_mode & 0o777 == 0o755
    assert copy.read_bytes() == worker.read_bytes()
    version = subprocess.run([copy, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("drarun-worker ")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes other users")
def test_install_by_users_of_group_0(worker):
    """As OpenShift assigns them: one installs, another one of group 0 installs anew, and anybody runs it, whatever the umask."""
    def become(uid, gid, umask=0o077):
        return {"user": uid, "group": gid, "extra_groups": [], "umask": umask, "check": True}
    pod = Path(tempfile.mkdtemp(dir="/tmp"))  # an emptyDir
    try:
        pod.chmod(0o777)
        source = pod / "image"
        source.mkdir(mode=0o755)
        shutil.copy(worker, source)
        for uid in (1000660000, 1000670000):
            subprocess.run([source / "drarun-worker", "--install", pod / "bin"], **become(uid, 0))
            assert (pod / "bin/drarun-worker").stat().st_uid == uid
        assert (pod / "bin").stat().st_mode & 0o777 == 0o775
        subprocess.run([pod / "bin/drarun-worker", "--version"], capture_output=True, **become(4711, 4711))
        subprocess.run([source / "drarun-worker", "--install", pod / "own"], **become(4711, 4711))
        assert (pod / "own").stat().st_mode & 0o777 == 0o755
    finally:
        shutil.rmtree(pod)


def test_install_drarun(worker, tmp_path):
    """The one that lies beside the agent, wherever both were copied to."""
    beside = tmp_path / "image"
    beside.mkdir()
    copy = beside / "drarun-worker"
    copy.write_bytes(worker.read_bytes())
    copy.chmod(0o755)
    run = subprocess.run([copy, "--install-drarun", tmp_path / "bin"], capture_output=True, text=True)
    assert run.returncode == 64 and f"{beside}/drarun: No such file" in run.stderr
    (beside / "drarun").write_text("#!/bin/sh\necho here\n")
    for _ in range(2):
        subprocess.run([copy, "--install-drarun", tmp_path / "bin"], check=True)
    assert [each.name for each in (tmp_path / "bin").iterdir()] == ["drarun"]
    assert subprocess.run([tmp_path / "bin/drarun"], capture_output=True, text=True, check=True).stdout == "here\n"


def test_install_bench(worker, tmp_path):
    """The agent, drarun-bench that lies beside it, and its modules, where that looks for them."""
    beside, pod = tmp_path / "image/bin", tmp_path / "pod"
    modules = tmp_path / "image/lib/drarun"
    for folder in (beside, modules, pod):
        folder.mkdir(parents=True)
    shutil.copy(worker, beside)

    def install():
        return subprocess.run([beside / "drarun-worker", "--install-bench", pod / "bin"], capture_output=True, text=True)
    run = install()
    assert run.returncode == 64 and f"{beside}/drarun-bench: No such file" in run.stderr
    assert "DRARUN_BENCH_ANYWHERE" in run.stderr
    for path in (beside / "drarun-bench", modules / "bench-mpi-ompi.so", modules / "bench-nccl.so", modules / "libother.so"):
        path.write_text(path.name)
    for _ in range(2):  # an init container may be run again
        assert install().returncode == 0
        found = {str(path.relative_to(pod)) for path in pod.rglob("*") if path.is_file()}
        assert found == {"bin/drarun-worker", "bin/drarun-bench", "lib/drarun/bench-mpi-ompi.so", "lib/drarun/bench-nccl.so"}
    assert (pod / "lib/drarun/bench-nccl.so").read_text() == "bench-nccl.so"
    assert (pod / "bin/drarun-bench").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("folder,message", [("missing/bin", "No such file"), ("file", "Not a directory")])
def test_install_refused(worker, tmp_path, folder, message):
    (tmp_path / "file").touch()
    run = subprocess.run([worker, "--install", tmp_path / folder], capture_output=True, text=True)
    assert run.returncode == 64 and message in run.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_key_by_variable_is_wiped(drarun, worker, tmp_path):
    key = secrets.token_hex(32)
    job = drarun.start("--listen", "127.0.0.1:0", "--once", program=worker, env={"DRARUN_KEY": key})
    port = Agents.port(job)
    assert key.encode() not in Path(f"/proc/{job.pid}/environ").read_bytes()
    file = tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(key)
    result = drarun("--agents", f"127.0.0.1:{port}", "--key-file", file, "-n", 1, "sh", "-c",
                    'echo "${DRARUN_KEY-unset}"; tr "\\0" "\\n" </proc/$PPID/environ').ok()
    assert result.out.startswith("unset\n") and key not in result.out
    job.finish(20)


@pytest.mark.parametrize("key", ["", "abc", "g" * 64, "0" * 65])
def test_key_by_variable_refused(worker, key):
    run = subprocess.run([worker, "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                         env={**os.environ, "DRARUN_KEY": key})
    assert run.returncode == 64 and "DRARUN_KEY: expected a key of 64" in run.stderr
    assert key == "" or key not in run.stderr


def test_no_key(worker):
    run = subprocess.run([worker, "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                         env={k: v for k, v in os.environ.items() if k != "DRARUN_KEY"})
    assert run.returncode == 64 and "--key-file FILE, or DRARUN_KEY" in run.stderr
