# SPDX-License-Identifier: Apache-2.0
"""The programs: a row each. Add one by adding a row."""
import sysconfig
from dataclasses import dataclass, field

SYSTEM = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
OPEN4, OPEN5, MPICH4, MPICH5, INTEL = "Open MPI 4.1", "Open MPI 5", "MPICH 4.0", "MPICH 5", "Intel MPI"
FETCHED = (OPEN5, MPICH5, INTEL)
INTEL_LIBRARY = {"LD_LIBRARY_PATH": "{fetched}/impi/lib"}  # its programs have no path to it


@dataclass(frozen=True)
class Program:
    """packages: of Debian, that have the program. libraries: with which it is linked, one comparison each. ranks: how many.
    command: words, after expansion of {here} (benchmarks/programs), {python}, {fetched} (scripts/fetch-mpi) and {home} (that
    library's folder in it). prepare: a shell script that runs first in the program's empty folder, where {cc} and {cxx} compile.
    shows: regular expressions that its output must match. never: one that it must not match. writes: a file in which
    its output is, too. statuses: with which it may end."""

    name: str
    packages: tuple
    libraries: tuple
    ranks: int
    command: str
    shows: tuple
    prepare: str = ""
    never: str = r"\bFAILED\b"
    stdin: str = ""
    writes: str = ""
    statuses: tuple = (0,)
    env: dict = field(default_factory=dict)
    limit: int = 300


def scalapack(program, library, folder, ranks=4):
    return Program(f"ScaLAPACK {program}", ("scalapack-mpi-test", "scalapack-test-common"), (library,), ranks,
                   f"{SYSTEM}/scalapack/{folder}-tests/{program}", (r"[1-9]\d* tests completed and passed residual checks", "END OF TESTS"),
                   prepare="cp /usr/share/scalapack/*.dat .", never=r"[1-9]\d* tests completed and failed")


PROGRAMS = [
    Program("hpcc", ("hpcc",), (OPEN4,), 4, "hpcc", (r"(?s)(PASSED.*){11}", r"Success=1"), writes="hpccoutf.txt",
            prepare="sed 6s/1000/200/ /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt"),
    *[scalapack(name, OPEN4, "openmpi") for name in ("xslu", "xdqr", "xcqr", "xdinv", "xsls", "xzsep", "xdhrd", "xdtrd")],
    # two ranks: a waiting rank of MPICH 4.0 spins, and four on two CPUs take minutes, also under Hydra
    *[scalapack(name, MPICH4, "mpich", 2) for name in ("xslu", "xcqr")],
    Program("MUMPS dsimpletest", ("mumps-test",), (OPEN4,), 2, "/usr/lib/mumps/dsimpletest", (r"Solution is .*0\.99999999|Solution is +1\.0",),
            stdin="/usr/lib/mumps/input_simpletest_real"),
    Program("MUMPS zsimpletest", ("mumps-test",), (OPEN4,), 3, "/usr/lib/mumps/zsimpletest", (r"Solution is",),
            stdin="/usr/lib/mumps/input_simpletest_cmplx"),
    Program("LAMMPS melt", ("lammps", "lammps-examples"), (OPEN4,), 2, "lmp -log none -in /usr/share/lammps/examples/melt/in.melt",
            (r"1 by 1 by 2 MPI processor grid", r"Total wall time")),
    Program("LAMMPS min", ("lammps", "lammps-examples"), (OPEN4,), 3, "lmp -log none -in /usr/share/lammps/examples/min/in.min",
            (r"Minimization stats", r"Total wall time")),
    Program("Quantum ESPRESSO pw.x", ("quantum-espresso", "quantum-espresso-data"), (OPEN4,), 2, "pw.x -in {here}/si.in",
            (r"running on +2 processors", r"!    total energy +=     -15\.614353", r"JOB DONE")),
    Program("PT-Scotch dgpart", ("ptscotch",), (OPEN4,), 2, "dgpart -vm 4 grid.grf grid.map", (r"(?m)^576$",), writes="grid.map",
            prepare="/usr/bin/python3 {here}/grid.py 24 >grid.grf"),
    Program("PT-Scotch dgord", ("ptscotch",), (OPEN4,), 4, "dgord grid.grf grid.ord", (r"(?m)^576$",), writes="grid.ord",
            prepare="/usr/bin/python3 {here}/grid.py 24 >grid.grf"),
    Program("NetPIPE", ("netpipe-openmpi",), (OPEN4,), 2, "NPopenmpi -u 4096 -n 50", (r"4096 bytes +50 times",)),
    Program("NetPIPE", ("netpipe-mpich2",), (MPICH4,), 2, "NPmpich2 -u 4096 -n 50", (r"4096 bytes +50 times",)),
    Program("PETSc KSP (petsc4py)", ("python3-petsc4py",), (OPEN4,), 2, "/usr/bin/python3 -B {here}/petsc_cg.py",
            (r"2 ranks, error below 1e-06: True",),
            env={"PYTHONPATH": f"/usr/lib/petscdir/petsc3.18/{sysconfig.get_config_var('MULTIARCH')}-real/lib/python3/dist-packages"}),
    Program("Boost.MPI", ("libboost-mpi-dev", "g++"), (OPEN4,), 3, "./boost_mpi", (r"rank 2 of 3, sum 6",),
            prepare="{cxx} -o boost_mpi {here}/boost_mpi.cpp -lboost_mpi -lboost_serialization"),
    Program("OpenSHMEM hello", ("libopenmpi-dev",), (OPEN4,), 2, "./shmem_hello", (r"hello from 0 of 2, got 2", r"hello from 1 of 2, got 1"),
            prepare="oshcc -o shmem_hello {here}/shmem_hello.c",
            statuses=(0, 1)),  # shmem_global_exit(0) is an abort to drarun, which never ends with 0 (docs/design/006)
    Program("PnetCDF ncmpidiff", ("pnetcdf-bin",), (OPEN4,), 2, "ncmpidiff a.nc b.nc", (r"DIFF.*SAME|same|exactly",), never="DIFFER",
            prepare="printf 'netcdf a { dimensions: x = 8; variables: int v(x); data: v = 1,2,3,4,5,6,7,8; }' >a.cdl && "
                    "ncmpigen -o a.nc a.cdl && cp a.nc b.nc"),
    Program("IQ-TREE", ("iqtree",), (OPEN4,), 2, "iqtree2-mpi -s {here}/six.phy -m JC -redo -seed 1 -nt 1 -pre tree",
            (r"MPI: +2 processes|2 processes|BEST SCORE FOUND",)),
    Program("mpi4py bench", (), FETCHED, 2, "{python} -m mpi4py.bench pingpong -n 4096 --loop 20", (r"4096",)),
    Program("mpi4py bench, ring", (), FETCHED, 4, "{python} -m mpi4py.bench ringtest -n 64 -l 10 -s 1", (r"time for 10 loops",)),
    Program("mpi4py's suite", (), FETCHED, 2, "{python} -B {fetched}/mpi4py/test/main.py -q -e spawn -e dynproc -x testGetFortranInfo",
            (r"Ran \d{4} tests", r"(?m)^OK"), env={"OMPI_MCA_osc": "^ucx"}, limit=900),
    Program("OSU latency (mpi4py)", (), FETCHED, 2, "{python} -B {fetched}/mpi4py/demo/osu_latency.py", (r"(?m)^ *1024 +\d",), limit=600),
    Program("OSU barrier (mpi4py)", (), FETCHED, 3, "{python} -B {fetched}/mpi4py/demo/osu_barrier.py", (r"(?m)^ *0 +\d+\.\d+",), limit=600),
    Program("IMB-MPI1", (), (INTEL,), 2, "{home}/bin/IMB-MPI1 -iter 20 -msglog 4:8 PingPong Allreduce Bcast Alltoall Barrier",
            (r"All processes entering MPI_Finalize",), env=INTEL_LIBRARY),
    Program("IMB-NBC", (), (INTEL,), 4, "{home}/bin/IMB-NBC -iter 5 -msglog 4:6 Iallreduce Ibcast", (r"All processes entering MPI_Finalize",), env=INTEL_LIBRARY),
    Program("IMB-RMA", (), (INTEL,), 2, "{home}/bin/IMB-RMA -iter 20 -msglog 4:6 Unidir_put All_get_all", (r"All processes entering MPI_Finalize",), env=INTEL_LIBRARY),
]
