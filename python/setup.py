# SPDX-License-Identifier: Apache-2.0
"""Puts into the wheel what is not in this folder: the library and the declarations of its functions.

The library is that of a build tree: DRARUN_BUILD, else one made here by cmake."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent
sys.path.insert(0, str(HERE))
import declarations  # noqa: E402


def library(work: Path) -> Path:
    build = os.environ.get("DRARUN_BUILD")
    if not build:
        for program in ("cmake", "ninja", "cc"):
            if not shutil.which(program):
                sys.exit(f"setup.py: no {program}, which builds libdrarun: scripts/setup --build installs what the build needs, "
                         "or DRARUN_BUILD names a tree in which drarun was built")
        build = work / "cmake"
        subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DDRARUN_TESTS=OFF", "-DDRARUN_EXAMPLES=OFF"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "drarun_shared"], check=True)
    found = Path(build) / "lib" / "libdrarun.so.0"
    if not found.exists():
        sys.exit(f"setup.py: no {found}: build drarun there, or unset DRARUN_BUILD")
    return found


class Build(build_py):
    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "drarun"
        package.mkdir(parents=True, exist_ok=True)
        declarations.write(SOURCE / "include" / "drarun", package / "_api.py")
        shutil.copyfile(library(Path(self.get_finalized_command("build").build_temp).resolve()),
                        package / "libdrarun.so.0")


class Wheel(bdist_wheel):
    """Any Python 3, this kind of machine: the library is no extension module."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


class Binary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


version = re.search(r"project\(drarun VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())
setup(version=version[1], cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Binary)
