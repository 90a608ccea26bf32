# SPDX-License-Identifier: Apache-2.0
"""Ranks that are another user than the agent, or seem to be: in a user namespace of their own, in another group, under
su (tests/regress/21-*)."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")

NOBODY = 65534
OWN_NAMESPACE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
WITHOUT_MAP = ["unshare", "--user"]  # 65534 inside
OTHER_GROUP = ["setpriv", "--regid", "1000", "--clear-groups"]
OTHER_USER = ["setpriv", "--reuid", str(NOBODY), "--clear-groups"]


def need_user_namespaces():
    if subprocess.run([*OWN_NAMESPACE, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no user namespaces")


@pytest.fixture
def public():
    """public(program): a copy that everybody may run."""
    with tempfile.TemporaryDirectory(prefix="dt-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield lambda program: Path(shutil.copy(program, folder))


@pytest.mark.parametrize("under", [OWN_NAMESPACE, WITHOUT_MAP, OTHER_GROUP], ids=["user-namespace", "no-uid-map", "group"])
@pytest.mark.parametrize("name", ["openmpi4", "openmpi5"])  # whose ranks go over PMIx
def test_the_same_user_by_another_number(drarun, mpi_named, name, under):
    """To the kernel these ranks are the job's own user, whatever they call themselves."""
    mpi = mpi_named(name)
    if under is not OTHER_GROUP:
        need_user_namespaces()
    program = mpi.compile("mpi_check.c")
    run = drarun("-n", 3, "--", *under, program, "all", env=mpi.env).ok()
    assert "ok: 3 ranks" in run.out, run


def test_some_ranks_in_a_user_namespace(drarun, mpi_named):
    """One has its own, the others the agent's; data goes between them."""
    need_user_namespaces()
    program = mpi_named("openmpi4").compile("mpi_check.c")
    under = " ".join(OWN_NAMESPACE)
    drarun("-n", 3, "sh", "-c", f"test $RANK != 1 || exec {under} {program} all; exec {program} all").ok().out.index("ok: 3 ranks")


@pytest.mark.parametrize("name", ["openmpi4", "openmpi5"])
def test_a_program_of_another_user(drarun, mpi_named, name, public):
    """It is refused, and the end says who it was and what mends it, not the MPI library's words alone."""
    mpi = mpi_named(name)
    program = public(mpi.compile("mpi_check.c"))
    result = drarun("-n", 1, "--output", "json", "--", *OTHER_USER, program, "all", env=mpi.env)
    assert result.rc != 0
    report = json.loads(result.err.splitlines()[-1])
    advice = report["cause"]["advice"]
    assert f"runs as user {NOBODY}, and only processes of user 0, who started the job, may connect to PMIx: start the job as " \
           f"user {NOBODY} (in a pod: securityContext.runAsUser)" in advice, advice
    assert result.err.count("PMIx: refused a connection of rank 0: its process ") == 1


def test_a_program_that_its_namespace_makes_another_user(drarun, mpi_named, public):
    need_user_namespaces()
    program = public(mpi_named("openmpi4").compile("mpi_check.c"))
    result = drarun("-n", 1, "--", *OTHER_USER, "unshare", "--user", "--map-user=5", program, "all")
    assert result.rc != 0
    assert f"is in another user namespace, as user 5 there, which is user {NOBODY} here, and only processes of user 0" in result.err, result
    assert "map user 0 to the program's user in its uid_map (unshare --map-user, podman run --userns=keep-id)" in result.err
