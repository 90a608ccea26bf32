# SPDX-License-Identifier: Apache-2.0
"""drarun and the launchers beside which it is measured: how each starts N ranks on this machine."""
import functools
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DRARUN_BUILD", SOURCE / "build")).resolve()
BENCH = BUILD / "bin" / "bench"

# What an outer launcher or a user sets must not reach a job that is measured.
DROPPED = ("OMPI_", "PMIX_", "PMI_", "PRTE_", "DRARUN_", "NCCL_", "UCX_", "FI_", "I_MPI_", "MPICH_",
           "HYDRA_", "SLURM_")


class Missing(Exception):
    """A part that this machine does not have; the text says what to install."""


@functools.cache
def fetched():
    """The directory of scripts/fetch-mpi."""
    done = subprocess.run([SOURCE / "scripts" / "fetch-mpi"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"scripts/fetch-mpi: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


def in_path(name):
    found = shutil.which(name)
    if not found:
        raise Missing(f"no {name}: run scripts/setup --bench")
    return found


class Launcher:
    """name: as in tables. program: makes the path of it, or raises Missing. options: between the
    program and "-n N". env: what it wants beside the caller's environment."""

    def __init__(self, name, program, options=(), env=()):
        self.name, self.program, self.options, self.env = name, program, options, dict(env)

    def command(self, ranks, *words):
        """The whole command line for that many ranks of the program in words."""
        return [str(w) for w in (self.program(), *self.options, "-n", ranks, *words)]

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(DROPPED)}
        return {**kept, **self.env}

    def reason_missing(self):
        """Why it cannot be used here, '' when it can."""
        try:
            program = Path(self.program())
        except Missing as missing:
            return str(missing)
        return "" if program.exists() else f"no {program}"


ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

FLOOR = Launcher("posix_spawn loop", lambda: BENCH / "floor")
FLOOR.command = lambda ranks, *words: [str(w) for w in (BENCH / "floor", ranks, *words)]
DRARUN = Launcher("drarun", lambda: BUILD / "bin" / "drarun")
HYDRA = Launcher("Hydra 5", lambda: fetched() / "mpich/bin/mpiexec.hydra")
HYDRA4 = Launcher("Hydra 4.0", lambda: in_path("mpiexec.mpich"))
INTEL_HYDRA = Launcher("Intel's mpiexec", lambda: fetched() / "impi/bin/mpiexec.hydra")
OPENMPI5 = Launcher("Open MPI 5 mpirun", lambda: fetched() / "openmpi/bin/mpirun",
                    ["--oversubscribe"], ROOT)
OPENMPI4 = Launcher("Open MPI 4.1 mpirun", lambda: in_path("mpirun.openmpi"), ["--oversubscribe"], ROOT)


class Library:
    """An MPI library with the launcher that it comes with. flags: a function, for a compiler that does
    not know the library."""

    def __init__(self, name, launcher, compiler, flags=lambda: ()):
        self.name, self.launcher, self.compiler, self.flags = name, launcher, compiler, flags

    def compile(self, source):
        """The program made of a C file. Compiled once; again when the source is newer."""
        compiler = self.compiler()
        program = BENCH / f"{source.stem}.{self.name.replace(' ', '-').lower()}"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            done = subprocess.run([compiler, "-O2", "-o", program, source, *self.flags()], capture_output=True, text=True)
            if done.returncode != 0:
                raise Missing(f"{compiler}: {done.stderr.strip()[-300:]}")
        return program


LIBRARIES = [
    Library("Open MPI 4.1", OPENMPI4, lambda: in_path("mpicc.openmpi")),
    Library("Open MPI 5", OPENMPI5, lambda: fetched() / "openmpi/bin/mpicc"),
    Library("MPICH 5", HYDRA, lambda: fetched() / "mpich/bin/mpicc"),
]

# Without a part in most launch tables: MPICH 4.0 starts as MPICH 5 does, and Intel MPI has no compiler of its own.
MPICH4 = Library("MPICH 4.0", HYDRA4, lambda: in_path("mpicc.mpich"))
INTEL = Library("Intel MPI", INTEL_HYDRA, lambda: in_path("cc"),
                lambda: [f"-I{fetched()}/mpich/include", fetched() / "impi/lib/libmpi.so",
                         f"-Wl,-rpath,{fetched()}/impi/lib"])
