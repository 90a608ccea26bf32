# SPDX-License-Identifier: Apache-2.0
"""An image with MPI libraries and programs: what Debian has comes from the root "mpi", the libraries of
scripts/fetch-mpi stand where they stand here, since their environments hold their own paths."""
from ..build import BUILD, SOURCE
from ..mpi import BY_NAME

NAME, BASE = "mpi-programs", "mpi"
PROGRAMS = {"allreduce": SOURCE / "examples" / "allreduce" / "allreduce.c", "mpi_check": "mpi_check.c",
            "mpi_spawn": "mpi_spawn.c"}
MPIS = ("openmpi4", "openmpi5", "mpich5")  # mpich4 hangs between pods: docs/design/002-mpi-libraries.md
BENCH_MODULE = "/usr/local/lib/drarun/bench-mpi.so"  # Open MPI 4's, where drarun-bench looks for it
PARTS = ("bin", "lib", "etc", "share")


def program(mpi, name):
    """Where a program built with that library stands in the image."""
    return f"/programs/{name}-{mpi}"


def starter(mpi):
    """That library's own mpirun in the image."""
    found = BY_NAME[mpi]
    return f"/usr/bin/mpirun.{found.debian}" if found.debian else str(found.home() / "bin" / "mpiexec")


def library_files(mpi):
    """{path in the image: file} of what the root "mpi" has not: all of an environment but its Python. Of Intel MPI, which is large, what a rank
    needs."""
    if mpi.debian:
        return {}
    if mpi.name == "impi":
        return {str(path): path for path in (mpi.home() / "lib/libmpi.so.12", *(mpi.home() / "opt/mpi/etc").glob("tuning_generic_*.dat"))}
    found = (path for part in PARTS for path in (mpi.home() / part).rglob("*"))
    return {str(path): path for path in found if path.is_file() and "python" not in str(path.relative_to(mpi.home()))}


def bench_files():
    """{path in the image: file} of drarun-bench on Open MPI 4, which the root "mpi" has."""
    bench = SOURCE / "benchmarks" / "bench"
    return {"/usr/local/bin/drarun-bench": BUILD / "bin" / "drarun-bench",
            BENCH_MODULE: BY_NAME["openmpi4"].compile(
                bench / "mpi_backend.c", bench / "element.c", SOURCE / "lib/base/error.c", SOURCE / "lib/base/plain.c",
                flags=["-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-I{SOURCE / 'include'}", "-lm"])}


def files():
    """{path in the image: file}."""
    found = bench_files()
    found |= {f"/examples/{path.name}": path for path in (SOURCE / "examples/mpi4py/allreduce.py",
                                                         SOURCE / "examples/torchrun/train.py")}
    for name in MPIS:
        mpi = BY_NAME[name]
        found |= {program(name, each): mpi.compile(source) for each, source in PROGRAMS.items()}
        found |= library_files(mpi)
    return found
