# SPDX-License-Identifier: Apache-2.0
"""Attacks on the PMIx port of a job's pod by those who share its network: a sidecar, and a pod on the node's network; of another
user and of the job's own (root, as most images have it)."""
import shutil
import subprocess
from pathlib import Path

import pytest

from support.build import BUILD
from support.cluster import Cluster
from support.cluster_jobs import Running

PROGRAMS = Path(__file__).parent / "programs"
NOBODY, RANKS = 65534, 4
MPI = "localhost/mpi:1"  # has libpmix
GARBAGE = bytes(range(256)).hex()

# From one environment of a rank on; each attempt to end the job says how it ended.
ATTACK = """
cd /strangers
until [ -e env.1 ]; do sleep 0.1; done
PORT=$(sed -n 's/^PMIX_SERVER_URI41=.*://p' env.1)
for each in "1" "1 0000000100" "1 {garbage}" "1000"; do
    n=$((n + 1))
    ./crowd $PORT $each >said.$n 2>&1 &
    until grep -q . said.$n; do sleep 0.1; done
done
for user in $(id -u) {nobody} 0; do
    timeout 5 env $(cat env.1) LD_PRELOAD=/strangers/other_user.so OTHER_USER=$user ./pmix_client abort
    echo "as $user: $?" >>ends
done
mv ends attacked
sleep 1000
"""
# Rank 0 is there before, so that the server runs.
RANK = """
env | grep ^PMIX_ >/strangers/made.$PMIX_RANK
mv /strangers/made.$PMIX_RANK /strangers/env.$PMIX_RANK
[ $PMIX_RANK = 0 ] || until [ -e /strangers/go ]; do sleep 0.05; done
exec /strangers/pmix_client barrier
"""


@pytest.fixture(scope="session")
def cluster():
    with Cluster(nodes=2, images=("busybox", "mpi", "drarun")) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    """What both see as /strangers: the nodes have this machine's files."""
    client = BUILD / "tests" / "programs" / "pmix_client"
    if not client.exists():
        pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
    made = tmp_path / "strangers"
    made.mkdir()
    made.chmod(0o777)
    shutil.copy(client, made)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made / "other_user.so", PROGRAMS / "other_user.c"], check=True)
    subprocess.run(["cc", "-o", made / "crowd", PROGRAMS / "crowd.c"], check=True)
    return made


@pytest.mark.parametrize("user", [NOBODY, 0], ids=["other-user", "same-user"])
@pytest.mark.parametrize("where", ["sidecar", "host-network"])
def test_who_shares_the_network_of_a_job(cluster, jobs, folder, where, user):
    """The job's ranks meet though each attack was made."""
    volumes = {"volumes": [{"name": "strangers", "hostPath": {"path": str(folder)}}]}
    mounts = {"volumeMounts": [{"name": "strangers", "mountPath": "/strangers"}]}
    attack = ["sh", "-c", ATTACK.format(garbage=GARBAGE, nobody=NOBODY)]
    security = {"securityContext": {"runAsUser": user, "runAsGroup": user}}
    ranks = {"name": "ranks", "image": MPI, "command": ["sh", "-c", RANK], **mounts}
    sidecar = {"name": "stranger", "image": MPI, "imagePullPolicy": "Never", "command": attack, **mounts, **security}
    spec = {"terminationGracePeriodSeconds": 1, "nodeName": "n0", "hostNetwork": where == "host-network", **volumes,
            "containers": [ranks] if where == "host-network" else [ranks, sidecar]}
    job = Running(jobs, "--here", ranksPerWorker=RANKS, template={"spec": spec})
    if where == "host-network":
        cluster.pod("stranger", attack, namespace=jobs.namespace.name, image=MPI, node="n0", container={**mounts, **security},
                    hostNetwork=True, **volumes).make()
    cluster.wait("the stranger is not done", lambda: (folder / "attacked").exists(), 120)
    (folder / "go").touch()
    result = job.ended(120)
    ends = (folder / "attacked").read_text()
    assert result.rc == 0 and f"barrier ok on {RANKS} ranks" in result.out, f"{result!r}\n{ends}"
    assert ends.count("as ") == 3 and ": 0\n" not in ends
    if where == "host-network":
        cluster.api.delete("v1", "Pod", "stranger", jobs.namespace.name, 0)
