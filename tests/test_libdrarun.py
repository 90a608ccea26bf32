# SPDX-License-Identifier: Apache-2.0
"""libdrarun as its users have it: installed, found by pkg-config and by CMake, with the ABI that libdrarun.map says."""
import os
import platform
import re
import shutil
import subprocess

import pytest

from support.build import patience
from support.run import output_of as ok

pytestmark = pytest.mark.plain("a program of somebody else's is a plain build")

JOB = "jobs/half-nodes-aligned.yaml"
SLICES = "clusters/a4-two-nodes.json"


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    """The two parts of an installation that are the library, moved from where they were installed."""
    first, moved = tmp_path_factory.mktemp("a") / "first", tmp_path_factory.mktemp("b") / "moved"
    for part in ("lib", "dev"):
        ok("cmake", "--install", build, "--prefix", first, "--component", part)
        (build / f"install_manifest_{part}.txt").unlink()
    first.rename(moved)
    return moved


@pytest.fixture(scope="module")
def library(prefix):
    found = [each for each in prefix.rglob("libdrarun.so.0") if each.is_symlink()]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def embed(source, library, tmp_path_factory):
    """Made by the command that its README has for a prefix of its own."""
    folder = tmp_path_factory.mktemp("embed") / "embed-c"
    shutil.copytree(source / "examples/embed-c", folder)
    command, = re.findall(r"`([^`]*/opt/drarun/[^`]*)`", (folder / "README.md").read_text())
    ok("sh", "-c", command.replace("/opt/drarun/lib", str(library.parent)), cwd=folder, env={**os.environ, "CFLAGS": "-Werror"})
    return folder / "embed"


def test_only_the_abi_is_exported(source, library):
    text = (source / "launcher/api/libdrarun.map").read_text()
    listed = set(re.findall(r"^    (drarun_\w+);", text, re.M))
    lines = ok("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    exported = {line.split()[2] for line in lines if line.split()[1] != "A"}
    assert exported == {f"{name}@@DRARUN_0" for name in listed}
    declared = set()
    for header in (source / "include/drarun").glob("*.h"):
        declared |= set(re.findall(r"^DRARUN_API [^;(]*?\b(drarun_\w+)\(", header.read_text(), re.M))
    assert declared == listed


@pytest.mark.parametrize("header,change,breaks", [
    (None, None, False),
    ("job.h", ("enum drarun_loglevel {", "DRARUN_API int drarun_new(void);\nenum drarun_loglevel {"), False),
    ("spec.h", ("profiles;", "profiles; const char *later;"), False),
    ("env.h", ("const char *pod;", ""), True),
    ("error.h", ("text[512]", "text[600]"), True),
    ("error.h", ("DRARUN_ERR_CAPACITY,", ""), True),
    ("job.h", ("DRARUN_LOG_NOTE,", "DRARUN_LOG_NEW, DRARUN_LOG_NOTE,"), True),
    ("job.h", ("long long timeout_ms, int *ret", "int timeout_ms, int *ret"), True),
], ids=["as it is", "more functions", "more options", "an option less", "a larger error", "a kind less", "a level between", "another argument"])
def test_abi_stays(source, tmp_path, header, change, breaks):
    """scripts/abi: what programs were built with."""
    if not shutil.which("abidiff"):
        pytest.skip("no abigail-tools: scripts/setup --test installs it")
    if platform.machine() != "x86_64":
        pytest.skip("launcher/api/libdrarun.abi is that of x86-64")
    shutil.copytree(source / "include", tmp_path / "include")
    if header:
        path = tmp_path / "include/drarun" / header
        text = path.read_text()
        assert change[0] in text
        path.write_text(text.replace(*change))
    run = subprocess.run([source / "scripts/abi", "--headers", tmp_path / "include"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1 if breaks else 0, ""), run
    assert ("programs built with earlier headers would break" in run.stdout) == breaks


def test_what_it_needs(library):
    """Nothing of ours beside it, and no path into the build."""
    lines = ok("objdump", "-p", library).splitlines()
    assert [line.split()[1] for line in lines if "SONAME" in line] == ["libdrarun.so.0"]
    assert not any("RUNPATH" in line or "RPATH" in line for line in lines)
    assert not any("drarun" in line for line in lines if "NEEDED" in line)


def test_example_of_an_embedder(embed, source):
    out = ok(embed, source / "examples" / JOB, source / "examples" / SLICES)
    assert ": job all-gather-4x4, 4 workers, 4 GPUs each, 4 NICs each\n" in out
    assert "4 GPUs, 4 NICs: 4 PIX" in out and "NCCL_" in out


@pytest.mark.parametrize("change,status,says", [
    (("workers: 4", "workers: two"), 65, "line 10, spec.workers\n"),
    (("workers: 4", "workers: 400"), 75, "no room: "),
    (("workers: 4", "worker: 4"), 65, "did you mean workers?"),
    (("workers: 4", "workers: ["), 65, "the document\n"),
])
def test_example_tells_what_is_wrong(embed, source, tmp_path, change, status, says):
    text = (source / "examples" / JOB).read_text()
    assert change[0] in text
    (tmp_path / "job.yaml").write_text(text.replace(*change))
    run = subprocess.run([embed, tmp_path / "job.yaml", source / "examples" / SLICES], capture_output=True, text=True)
    assert run.returncode == status and says in run.stderr, run


def test_example_and_program_tell_the_same(embed, source, drarun):
    plan = drarun("plan", source / "examples" / JOB, "--slices", source / "examples" / SLICES).ok().out
    assert plan in ok(embed, source / "examples" / JOB, source / "examples" / SLICES)


def test_example_with_ranks_on_this_machine(embed, build):
    """The library has no drarun beside it here, and takes that of PATH."""
    env = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run([embed.parent / "ranks", "2", "sh", "-c", "echo $RANK; exit $RANK"], capture_output=True, text=True,
                         env=env, timeout=patience())
    assert (run.returncode, sorted(run.stdout.splitlines()), run.stderr) == (1, ["0: 0", "1: 1"], "")
    env["PATH"] = "/nowhere"
    lacking = subprocess.run([embed.parent / "ranks", "2", "true"], capture_output=True, text=True, env=env, timeout=patience())
    assert lacking.returncode == 127 and "it comes with drarun: install it" in lacking.stderr, lacking


def test_found_by_cmake_and_leaves_nothing(source, prefix, tmp_path):
    ok("cmake", "-S", source / "tests/programs/embed", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    ok("cmake", "--build", tmp_path)
    run = subprocess.run([tmp_path / "consumer", source / "examples" / JOB], capture_output=True, text=True, timeout=patience())
    assert (run.returncode, run.stderr) == (0, "") and re.fullmatch(r"libdrarun \S+ left nothing behind\n", run.stdout)
