# SPDX-License-Identifier: Apache-2.0
"""What CMake says of a libpmix that jobs would be exposed with, or that is missing; what a part of the tree links; how a program knows its commit."""
import os
import re
import shutil
import subprocess

import pytest

from support.build import patience

pytestmark = pytest.mark.plain("CMake reads the same files for every build")


def configure(source, folder, *options, **environment):
    return subprocess.run(["cmake", "-S", source, "-B", folder / "build", "-G", "Ninja", *options], capture_output=True, text=True,
                          timeout=patience(120), env={**os.environ, **environment})


@pytest.fixture
def libpmix(tmp_path):
    """One of somebody else's, as far as CMake looks."""
    for name, text in {"include/pmix_server.h": "", "lib/libpmix.a": "",
                       "include/pmix_version.h": "#define PMIX_VERSION_MAJOR 5L\n#define PMIX_VERSION_MINOR 0L\n#define PMIX_VERSION_RELEASE 7L\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def sentence(text):
    return " ".join(text.split())


def test_unpatched_library(source, tmp_path, libpmix):
    run = configure(source, tmp_path, f"-DDRARUN_PMIX_DIR={libpmix}")
    assert run.returncode != 0
    assert "every user of a machine can hang, join and abort a job" in sentence(run.stderr)
    assert "-DDRARUN_PMIX_UNPATCHED=ON" in run.stderr


def test_unpatched_library_that_is_wanted(source, tmp_path, libpmix):
    run = configure(source, tmp_path, f"-DDRARUN_PMIX_DIR={libpmix}", "-DDRARUN_PMIX_UNPATCHED=ON")
    assert run.returncode == 0, run.stderr
    assert "every user of a machine can hang, join and abort the jobs" in sentence(run.stderr)


def test_patched_library_is_not_called_unpatched(source, tmp_path):
    run = configure(source, tmp_path, "-DDRARUN_PMIX_UNPATCHED=ON")
    assert run.returncode != 0 and "set DRARUN_PMIX_UNPATCHED=OFF" in sentence(run.stderr)


def test_nothing_is_fetched(source, tmp_path):
    run = configure(source, tmp_path, DRARUN_CACHE=str(tmp_path / "cache"))
    assert run.returncode != 0 and "libpmix is missing; run scripts/fetch-pmix" in sentence(run.stderr)
    built = subprocess.run([source / "scripts/fetch-pmix", "--cached"], capture_output=True, text=True, check=True).stdout.split()[0]
    run = configure(source, tmp_path, f"-DDRARUN_PMIX_DIR={built}", DRARUN_CACHE=str(tmp_path / "cache"))
    assert run.returncode != 0 and "libcurl is missing; run scripts/fetch-curl" in sentence(run.stderr)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("script", ["fetch-pmix", "fetch-curl"])
def test_cache_with_a_blank_in_its_path(source, tmp_path, script):
    """As a home folder may have it. Nothing is fetched for a build that must fail."""
    run = subprocess.run([source / "scripts" / script], capture_output=True, text=True, timeout=patience(),
                         env={**os.environ, "DRARUN_CACHE": str(tmp_path / "a b")})
    assert run.returncode == 1 and run.stderr == (
        f"{script}: libraries cannot be built in {tmp_path}/a b: its path has a blank; set DRARUN_CACHE to a folder without one\n"), run
    assert not (tmp_path / "a b").exists()


@pytest.mark.parametrize("without", [("LAUNCHER", "PLUGIN", "BENCH"), ("LAUNCHER", "PLUGIN"), ("LAUNCHER",), ("PLUGIN",), ("PLUGIN", "BENCH")], ids="-".join)
def test_a_part_links_what_it_builds(source, tmp_path, without):
    """A library of a part that is left out would be a name for the linker, which no configuration complains of."""
    run = configure(source, tmp_path, *[f"-DDRARUN_{each}=OFF" for each in without])
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "build/build.ninja").read_text()
    assert set(re.findall(r"(?<=\s)-ldrarun\S*", text)) == set()
    assert re.search(r"\blibdrarun_base\.a\b", text)


SMALL = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
include(cmake/Commit.cmake)
add_executable(asked asked.c)
drarun_commit(asked commit_id)
add_executable(other other.c)
""",
    "asked.c": "#include <stdio.h>\nextern const char commit_id[];\nint main(void) { return puts(commit_id) < 0; }\n",
    "other.c": "int main(void) { return 0; }\n",
}


class Small:
    """A tree with a program that knows its commit, and one that does not."""

    def __init__(self, folder):
        self.folder, self.made = folder, folder / "build"

    def git(self, *words):
        options = "user.name=test", "user.email=test@example.org", "commit.gpgsign=false", "core.hooksPath=/dev/null", "core.logAllRefUpdates=true"
        return subprocess.run(["git", *(word for each in options for word in ("-c", each)), *words], cwd=self.folder, capture_output=True, check=True).stdout

    def commit(self):
        """Returns its name."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "small: a commit")
        return self.git("rev-parse", "HEAD").decode().strip()

    def build(self):
        """What the program says, and when each of the two was linked."""
        if not self.made.exists():
            assert configure(self.folder, self.folder).returncode == 0
        run = subprocess.run(["cmake", "--build", self.made], capture_output=True, text=True, timeout=patience())
        assert run.returncode == 0, run.stdout
        said = subprocess.run([self.made / "asked"], capture_output=True, text=True, check=True).stdout.strip()
        return said, *((self.made / name).stat().st_mtime_ns for name in ("asked", "other"))

    def has_work(self):
        run = subprocess.run(["cmake", "--build", self.made, "--", "-n"], capture_output=True, text=True, timeout=patience(), check=True)
        return "no work to do" not in run.stdout


@pytest.fixture
def small(source, tmp_path):
    tree = Small(tmp_path / "a tree")
    (tree.folder / "cmake").mkdir(parents=True)
    for name in (".gitattributes", "cmake/Commit.cmake", "cmake/CommitFile.cmake"):
        shutil.copy(source / name, tree.folder / name)
    for name, text in {**SMALL, ".gitignore": "/build/\n/below*/\n"}.items():
        (tree.folder / name).write_text(text)
    tree.git("init", "-q")
    return tree


def test_commit_of_a_clone(small):
    """Each one is named, without configuring again; it links the program that names it, and no other."""
    first = small.commit()
    said, asked, other = small.build()
    assert said == first and not small.has_work()
    second = small.commit()
    said, again, same = small.build()
    assert said == second != first and again > asked and same == other and not small.has_work()
    small.git("checkout", "-q", "-b", "work")  # the same commit
    assert small.build() == (second, again, same) and not small.has_work()


def test_commit_of_a_worktree(small, tmp_path):
    small.commit()
    small.git("worktree", "add", "-q", "-b", "work", str(tmp_path / "worktree"))
    tree = Small(tmp_path / "worktree")
    for _ in range(2):
        commit = tree.commit()
        assert tree.build()[0] == commit


def test_commit_of_an_archive(small):
    """By the archive itself, wherever it is unpacked."""
    first = small.commit()
    below = Small(small.folder / "below")
    below.folder.mkdir()
    subprocess.run(["tar", "-C", below.folder, "-x"], input=small.git("archive", "HEAD"), check=True)
    assert small.commit() != first and below.build()[0] == first


def test_commit_of_a_copy_without_git_is_not_known(small):
    """Not that of a repository in which it happens to lie."""
    small.commit()
    below = Small(small.folder / "below")
    shutil.copytree(small.folder, below.folder, ignore=shutil.ignore_patterns(".git", "below"))
    assert below.build()[0] == "" and not below.has_work()
