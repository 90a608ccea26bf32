# SPDX-License-Identifier: Apache-2.0
"""The MPI libraries that jobs are tested with (docs/design/002-mpi-libraries.md)."""
import functools
import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from .build import BUILD, SANITIZE, SOURCE


@functools.cache
def fetched():
    """Where scripts/fetch-mpi puts its libraries, or the reason why they are not there."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-mpi"], capture_output=True, text=True)
    if run.returncode != 0:
        return None, f"scripts/fetch-mpi: {run.stderr.strip()[-300:]}"
    return Path(run.stdout.strip()), ""


class Mpi:
    """name: openmpi4 mpich4 openmpi5 mpich5 impi. api: how its ranks find us, "pmix" or "pmi1".
    version: a part of MPI_Get_library_version, so that a test knows what it ran with."""

    def __init__(self, name, api, version, debian=None, folder=None):
        self.name, self.api, self.version = name, api, version
        self.debian, self.folder = debian, folder

    def root(self):
        root, reason = fetched()
        if not root:
            pytest.skip(reason)
        return root

    def home(self):
        return self.root() / self.folder

    @property
    def python(self):
        """A Python with mpi4py for this library; see python_env."""
        folder = {"openmpi4": "openmpi", "mpich4": "mpich"}.get(self.name, self.folder)
        return self.root() / folder / "bin" / "python"

    @property
    def python_env(self):
        """What that Python needs. The wheels' mpi4py takes Debian's libraries too, but wants libmpi.so.12
        where Debian has libmpich.so.12."""
        if not self.debian:
            return self.env
        system = Path("/usr/lib") / sysconfig.get_config_var("MULTIARCH")
        if self.name == "openmpi4":
            return {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": str(system / "libmpi.so.40")}
        folder = BUILD / "tests" / "programs" / self.name / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / "libmpi.so.12"
        if not link.is_symlink():
            link.symlink_to(system / "libmpich.so.12")
        return {"MPI4PY_LIBMPI": str(link), "LD_LIBRARY_PATH": str(folder)}

    @property
    def env(self):
        """What a job needs to run a program compiled with this library."""
        if self.name == "impi":
            return {"LD_LIBRARY_PATH": str(self.home() / "lib")}
        return {}

    def compiler(self):
        if self.debian:
            found = shutil.which(f"mpicc.{self.debian}")
            if not found:
                pytest.skip(f"no mpicc.{self.debian}; run scripts/setup --test")
            return found
        # Intel MPI has MPICH's ABI and no compiler of its own
        folder = "mpich" if self.name == "impi" else self.folder
        return str(self.root() / folder / "bin" / "mpicc")

    def compile(self, *sources, flags=()):
        """The program made of C files (paths from tests/programs, or absolute). Compiled once: the
        result is kept in the build tree under a name that holds what it was made of."""
        paths = [SOURCE / "tests" / "programs" / s for s in sources]
        command = [self.compiler(), "-O1", "-g", "-Wall", "-Wextra", f"-I{SOURCE}", *flags]
        made_of = hashlib.sha256(repr(command).encode())
        for path in paths:
            for part in (path, *sorted(path.parent.glob("*.h"))):
                made_of.update(part.read_bytes())
        folder = BUILD / "tests" / "programs" / self.name
        program = folder / f"{paths[0].stem}-{made_of.hexdigest()[:12]}"
        if not program.exists():
            folder.mkdir(parents=True, exist_ok=True)
            fresh = program.with_suffix(f".{os.getpid()}")
            libraries = [flag for flag in command if flag.startswith("-l")]
            run = subprocess.run([*command, "-o", fresh, *paths, *libraries], capture_output=True,
                                 text=True)
            assert run.returncode == 0, f"{' '.join(command)}:\n{run.stderr}"
            fresh.rename(program)
        return program


ALL = [
    Mpi("openmpi4", "pmix", "Open MPI v4.1", debian="openmpi"),
    Mpi("mpich4", "pmi1", "4.0", debian="mpich"),
    Mpi("openmpi5", "pmix", "Open MPI v5", folder="openmpi"),
    Mpi("mpich5", "pmi1", "5.0", folder="mpich"),
    Mpi("impi", "pmi1", "Intel(R) MPI Library", folder="impi"),
]
BY_NAME = {mpi.name: mpi for mpi in ALL}
# One for each API of the agent's. To the agent the others are like one of them: a sanitizer has these alone, and the Open MPI that starts faster.
EACH_API = [BY_NAME["openmpi4" if SANITIZE else "openmpi5"], BY_NAME["mpich5"]]
EVERY = EACH_API if SANITIZE else ALL
