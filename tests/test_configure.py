# SPDX-License-Identifier: Apache-2.0
"""What CMake says of a libpmix that jobs would be exposed with, or that is missing; what a part of the tree links."""
import os
import re
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


@pytest.mark.parametrize("without", [("LAUNCHER", "PLUGIN", "BENCH"), ("LAUNCHER", "PLUGIN"), ("LAUNCHER",), ("PLUGIN",), ("PLUGIN", "BENCH")], ids="-".join)
def test_a_part_links_what_it_builds(source, tmp_path, without):
    """A library of a part that is left out would be a name for the linker, which no configuration complains of."""
    run = configure(source, tmp_path, *[f"-DDRARUN_{each}=OFF" for each in without])
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "build/build.ninja").read_text()
    assert set(re.findall(r"(?<=\s)-ldrarun\S*", text)) == set()
    assert re.search(r"\blibdrarun_base\.a\b", text)
