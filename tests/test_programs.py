# SPDX-License-Identifier: Apache-2.0
"""Other people's MPI programs: a few small ones of Debian, and a sample of MPICH's own test suite with every library.
scripts/soak --programs runs many more, beside the libraries' own launchers."""
import subprocess
import sys

import pytest

from support.build import SOURCE

sys.path.insert(0, str(SOURCE))

from benchmarks.harness.launchers import Missing  # noqa: E402
from benchmarks.programs import run, suite, table  # noqa: E402
from benchmarks.programs.started import Ended  # noqa: E402

WHERE = {"one": [], "two": ["--workers", 2]}
PROGRAMS = [(program, program.libraries[0]) for program in table.PROGRAMS
            if program.name in ("MUMPS dsimpletest", "PT-Scotch dgord", "NetPIPE", "OpenSHMEM hello", "ScaLAPACK xcqr")]

# Each stands for its folder; they take little time, and none is known to fail under a library's own launcher.
SAMPLE = ["attr/attrend2 5", "coll/icallreduce 5", "comm/ic1 4", "errhan/errfatal 1", "group/groupcreate 4", "info/infoenv 1",
          "init/exitst1 2", "pt2pt/icprobe 4", "topo/graphcr 4"]


@pytest.mark.matrix(1)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("program,library", PROGRAMS, ids=[f"{program.name}, {library}" for program, library in PROGRAMS])
def test_program(drarun, tmp_path, program, library, where):
    lacking = run.missing_packages(program.packages)
    if lacking:
        pytest.skip(f"no {', '.join(lacking)}; run scripts/setup --test")
    run.prepare(program, library, tmp_path)
    given = open(program.stdin, encoding="ascii").read() if program.stdin else None
    result = drarun(*WHERE[where], "-n", program.ranks, *run.words_of(program, library), cwd=tmp_path, env=run.environment_of(program, library), input=given,
                    timeout=120)
    assert run.wrong(program, Ended(result.rc, result.out + result.err, result.seconds), tmp_path) == "", repr(result)


DASK = """
from dask_mpi import initialize
initialize(nthreads=1, dashboard=False)
from dask.distributed import Client
with Client() as client:
    client.wait_for_workers(2, timeout=60)
    squares = client.map(lambda x: x * x, range(100))
    print(client.submit(sum, squares).result(), len(client.scheduler_info()["workers"]))
"""


@pytest.mark.parametrize("where", WHERE)
def test_dask_mpi(drarun, tmp_path, where):
    """Rank 0 is the scheduler, rank 1 the user's program, the others are workers; all find each other by MPI and end with the program."""
    fetched = subprocess.run([SOURCE / "scripts" / "fetch-dask"], capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"scripts/fetch-dask: {fetched.stderr.strip()[-300:]}")
    env = {"DASK_TEMPORARY_DIRECTORY": tmp_path, "HOME": tmp_path}
    result = drarun(*WHERE[where], "-n", 4, f"{fetched.stdout.strip()}/bin/python", "-B", "-c", DASK, cwd=tmp_path, env=env, timeout=120).ok()
    assert result.out == "328350 2\n", repr(result)


@pytest.fixture(scope="session")
def suite_source():
    try:
        return suite.source()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.matrix(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_mpich_suite(drarun, mpi, suite_source, tmp_path, name):
    folder = name.partition("/")[0]
    test = next(each for each in suite.tests_of(suite_source / folder, (3, 1)) if f"{folder}/{each.program} {each.ranks}" == name)
    flags = ["-w", f"-I{SOURCE}/tests/programs/mpich_suite", f"-I{suite_source}/include"]
    util = [suite_source / "util" / f"{each}.c" for each in ("mtest", "mtest_common", "mtest_single")]
    shared = mpi.compile(*util, flags=["-shared", "-fPIC", *flags])
    program = mpi.compile(suite_source / folder / f"{test.program}.c", flags=[*flags, "-Wl,--no-as-needed", str(shared)])
    result = drarun("-n", test.ranks, program, *test.arguments, env=mpi.env, cwd=tmp_path, timeout=120, clean=not test.result)
    assert suite.wrong(test, Ended(result.rc, result.out + result.err, result.seconds)) == "", repr(result)
