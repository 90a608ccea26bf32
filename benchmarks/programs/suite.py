# SPDX-License-Identifier: Apache-2.0
"""MPICH's own test suite (scripts/fetch-mpich-tests), built with each MPI library in the cache, and its testlist files."""
import fcntl
import functools
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.launchers import INTEL, LIBRARIES, MPICH4, SOURCE, Missing, fetched

FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "mpi_t", "part", "pt2pt", "rma", "spawn", "topo",
           *(f"errors/{part}" for part in ("attr", "coll", "comm", "datatype", "group", "io", "pt2pt", "rma", "spawn", "topo")),
           *(f"threads/{part}" for part in ("coll", "comm", "init", "mpi_t", "part", "pt2pt", "rma", "spawn")))
# And why: what a report says of the rest.
LEFT_OUT = {"f77, f90, f08, cxx and those below errors": "want Fortran and C++ compilers of the same library",
            "impls": "is about MPICH's own functions", "ft, errors/faults": "want ranks that live on after others have failed",
            "perf, threads/perf, basic, ckpoint, manual": "are not in the suite's own list, or measure times"}

# How each library lets a waiting rank give up its CPU. Hydra sets none of it, and ranks that spin on fewer CPUs end few tests in time; drarun
# sets it itself, and so does Open MPI's mpirun.
WAITS = {"MPICH 5": {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "10"},
         "Intel MPI": {"I_MPI_WAIT_MODE": "1"}}

# What tests that spawn want beside: "shm fabric does not support Spawns", says Intel MPI of what it takes on one node.
SPAWNS = {"Intel MPI": {"I_MPI_FABRICS": "shm:ofi"}}

# Slots for their children: these tests take MPI_UNIVERSE_SIZE, which is the slots, for a limit, and with a child less than that do nothing and say
# that they found no error. --oversubscribe leaves it as it is; Hydra has no slots.
SLOTS = 64
OPEN_MPI_SLOTS = ["--host", f"localhost:{SLOTS}"]
PEERS_SLOTS = {"Open MPI 4.1": OPEN_MPI_SLOTS, "Open MPI 5": OPEN_MPI_SLOTS}
OUR_SLOTS = ["--slots", str(SLOTS)]

# The MPI standard of each library, for lines that ask for a newer one. Open MPI hides what MPI 3 removed, though it has it.
OPEN_MPI_FLAGS = "-DOMPI_OMIT_MPI1_COMPAT_DECLS=0"
STANDARD = {"Open MPI 4.1": (3, 1), "Open MPI 5": (3, 1), "MPICH 4.0": (4, 0), "MPICH 5": (5, 0), "Intel MPI": (4, 1)}
LIBRARY = {library.name: library for library in (*LIBRARIES, MPICH4, INTEL)}


@dataclass(frozen=True)
class Test:
    """A line of a testlist file. result: how its end is judged; "" for "No Errors" and nothing else."""

    folder: str
    program: str
    ranks: int
    arguments: tuple = ()
    environment: tuple = ()
    limit: int = 180
    result: str = ""

    @property
    def spawns(self):
        return self.folder.rpartition("/")[2] == "spawn"

    def __str__(self):
        return " ".join([f"{self.folder}/{self.program}", f"-n {self.ranks}", *self.arguments, *self.environment])


def read_line(folder, line, standard):
    """The test of a line of a testlist file; None when it is expected to fail or asks for a newer MPI standard."""
    words = line.split()
    if len(words) < 2 or not words[1].isdigit():
        return None
    options = [word.partition("=")[::2] for word in words[2:] if "=" in word]
    values = {name: value for name, value in options}
    if "xfail" in values or "mem" in values:
        return None
    asked = values.get("mpiversion", "1.0")
    if tuple(int(part) for part in re.findall(r"\d+", asked)[:2]) > standard:
        return None
    return Test(folder, words[0], int(words[1]), tuple(value for name, value in options if name == "arg"),
                tuple(value for name, value in options if name == "env"), int(values.get("timeLimit", 180)), values.get("resultTest", ""))


def tests_of(folder, standard, name="testlist", called=None):
    """Those of a testlist file; what configure has not filled in yet lies beside it as testlist.in. called: the folder's name in the suite."""
    path = next(path for path in (folder / name, folder / f"{name}.in") if path.exists())
    lines = (read_line(called or folder.name, line, standard) for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    return [test for test in lines if test]


def wrong(test, ended):
    """What MPICH's runtests would say against the end of a test; "" when nothing."""
    if ended.status is None:
        return f"no end after {ended.seconds:.0f} s: {ended.last_lines()}"
    if test.result in ("TestStatus", "TestErrFatal"):  # these must end with another status than 0
        return "" if ended.status != 0 else "status 0"
    lines = [line.strip() for line in ended.output.splitlines() if line.strip() and "FORTRAN STOP" not in line]
    said = any(re.fullmatch("No [Ee]rrors", line) for line in lines)
    unexpected = [line for line in lines if not re.fullmatch(r"No [Ee]rrors|Test Passed", line)]
    if ended.status != 0:
        return f"status {ended.status}: {ended.last_lines()}"
    if unexpected:
        return f"unexpected output: {' / '.join(unexpected)[:300]}"
    return "" if said else "ended without No Errors"


@functools.cache
def source():
    done = subprocess.run([SOURCE / "scripts" / "fetch-mpich-tests"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"scripts/fetch-mpich-tests: {done.stderr.strip()[-200:]}")
    return Path(done.stdout.strip())


class Built:
    """The suite built with one library, beside its source in the cache. Intel MPI runs what was built with MPICH 5, whose
    ABI it has."""

    def __init__(self, name):
        self.name, self.library = name, LIBRARY[name]
        self.compiled_with = LIBRARY["MPICH 5"] if name == "Intel MPI" else self.library
        self.folder = source().with_name(f"{source().name}-{self.compiled_with.name.replace(' ', '-').lower()}")

    @property
    def environment(self):
        return {"LD_LIBRARY_PATH": str(fetched() / "impi" / "lib")} if self.name == "Intel MPI" else {}

    def make(self, *words):
        flags = "-O1 -w" + (f" {OPEN_MPI_FLAGS}" if "Open MPI" in self.name else "")
        with open(self.folder / "make.log", "a") as log:
            return subprocess.run(["nice", "-n", "10", "make", "-k", f"-j{os.cpu_count()}", f"CFLAGS={flags}", *words], cwd=self.folder,
                                  stdout=log, stderr=subprocess.STDOUT).returncode

    def build(self, tests):
        """Compiles the programs of these tests; those that a library cannot compile are missing then."""
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.configure()
            wanted = {}
            for test in tests:
                if not self.program(test).exists():
                    wanted.setdefault(test.folder, set()).add(test.program)
            for folder, programs in sorted(wanted.items()):
                self.make("-C", folder, *sorted(programs))

    def configure(self):
        if (self.folder / ".configured").exists():
            return
        with open(self.folder / "configure.log", "w") as log:
            done = subprocess.run(["nice", "-n", "10", source() / "configure", f"MPICC={self.compiled_with.compiler()}", "CC=gcc",
                                   "--disable-fortran", "--disable-cxx"], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)
        if done.returncode != 0 or self.make("-C", "dtpools") != 0 or self.make("-C", "util") != 0:
            raise Missing(f"MPICH's tests cannot be built with {self.name}: see configure.log and make.log in {self.folder}")
        (self.folder / ".configured").touch()

    def program(self, test):
        return self.folder / test.folder / test.program

    def tests(self, folders=FOLDERS):
        """Of the testlist files; configure writes some of them, from what it finds."""
        found = []
        for folder in folders:
            written = self.folder / folder
            found += tests_of(written if (written / "testlist").exists() else source() / folder, STANDARD[self.name], called=folder)
            if (written / "testlist.dtp").exists():
                found += tests_of(written, STANDARD[self.name], "testlist.dtp", folder)
        return list(dict.fromkeys(found))
