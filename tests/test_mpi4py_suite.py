# SPDX-License-Identifier: Apache-2.0
"""The whole test-suite of mpi4py, some 2,000 tests, under 4 ranks on 2 agents; without its parts for
MPI_Comm_spawn and dynamic processes, which take minutes more: test_spawn.py has those."""
import pytest


@pytest.mark.plain("minutes of other people's tests")
def test_suite(drarun, mpi_named):
    mpi = mpi_named("openmpi5")
    suite = mpi.root() / "mpi4py"
    result = drarun("--workers", 2, "-n", 4, "-x", "OMPI_MCA_osc=^ucx", mpi.python, "test/main.py",
                    "-q", "-e", "spawn", "-e", "dynproc", "-x", "testGetFortranInfo", cwd=suite,
                    timeout=280, clean=False)
    assert result.rc == 0, result.err[-3000:]
    assert result.err.count("\nOK") == 4 and "Ran 2" in result.err
