# SPDX-License-Identifier: Apache-2.0
"""Puts into the wheel what is not in this folder: the declarations of libdrarun's functions, the library, and the programs. Its page on PyPI
is README.md, with links to the repository.

Library and programs are those of a build tree: DRARUN_BUILD, else one made here by cmake. Where they are static, the wheel
needs nothing of the machine but a C library of 2021 or newer."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent
sys.path.insert(0, str(HERE))
import absolute_links  # noqa: E402
import declarations  # noqa: E402

MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF file


def tree(work: Path) -> Path:
    """The build tree."""
    build = os.environ.get("DRARUN_BUILD")
    for program in ("cmake",) if build else ("cmake", "ninja", "cc"):
        if not shutil.which(program):
            sys.exit(f"setup.py: no {program}, which builds drarun: scripts/setup --build installs what the build needs, "
                     "or DRARUN_BUILD names a tree in which drarun was built")
    if build:
        if not (Path(build) / "lib/libdrarun.so.0").exists() and not (Path(build) / "lib/alone/libdrarun.so.0").exists():
            sys.exit(f"setup.py: no libdrarun.so.0 in {build}/lib: build drarun there, or unset DRARUN_BUILD")
        return Path(build)
    made = work / "cmake"
    subprocess.run(["cmake", "-S", SOURCE, "-B", made, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DDRARUN_TESTS=OFF", "-DDRARUN_EXAMPLES=OFF"], check=True)
    subprocess.run(["cmake", "--build", made], check=True)
    return made


def machine(program: Path) -> str:
    with open(program, "rb") as file:
        head = file.read(20)
    return MACHINES[int.from_bytes(head[18:20], "little")]


class Build(build_py):
    def run(self) -> None:
        package = Path(self.build_lib) / "drarun"
        shutil.rmtree(package, ignore_errors=True)  # of an earlier build: the wheel would have modules that are gone
        super().run()
        work = Path(self.get_finalized_command("build").build_temp).resolve()
        parts, build = work / "parts", tree(work)
        package.mkdir(parents=True, exist_ok=True)
        declarations.write(SOURCE / "include" / "drarun", package / "_api.py")
        shutil.rmtree(parts, ignore_errors=True)
        subprocess.run(["cmake", "--install", build, "--prefix", parts, "--strip", "--component", "wheel"],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.copyfile(parts / "lib/libdrarun.so.0", package / "libdrarun.so.0")
        # beside the interpreter, where pip puts programs: these are found by PATH, and find each other
        self.distribution.data_files = [(folder, sorted(map(str, (parts / folder).iterdir()))) for folder in ("bin", "libexec/drarun")]
        if os.environ.get("DRARUN_NOTICES"):  # of the libraries in them, by scripts/release
            self.distribution.data_files.append(("share/doc/drarun", [os.environ["DRARUN_NOTICES"]]))
        kind = "manylinux_2_34" if (build / "lib/alone").exists() else "linux"
        self.distribution.platform = f"{kind}_{machine(parts / 'bin/drarun')}"


class Wheel(bdist_wheel):
    """Any Python 3, the build's kind of machine: the library is no extension module."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", getattr(self.distribution, "platform", None) or super().get_tag()[2])


class Binary(Distribution):
    def has_ext_modules(self) -> bool:
        return True


version = re.search(r"project\(drarun VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())
# The license is not in pyproject.toml: there setuptools before 77 takes a table alone, and takes none after February 2027.
setup(version=version[1], license="Apache-2.0", long_description=absolute_links.absolute((HERE / "README.md").read_text(), "python/README.md", version[1]),
      long_description_content_type="text/markdown", cmdclass={"build_py": Build, "bdist_wheel": Wheel}, distclass=Binary)
