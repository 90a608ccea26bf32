# SPDX-License-Identifier: Apache-2.0
"""What a job on a cluster does where something is missing that drarun can do without: each is taken away, and all cases run, each
with a NIC that every worker claims. The table is in docs/measured/fallbacks.md; test_fallbacks.py says how it is written."""
import re
import signal

import pytest

from support.cluster import Cluster, programs
from support.cluster.network import IPV4, IPV6
from support.cluster.plugin import RAILS, RAILS_OF_IPV6, Nics, Plugin, device_class
from support.cluster.programs import program
from support.cluster_jobs import Running
from support.fallbacks import WORKS, Table

pytestmark = pytest.mark.plain("the agent is linked dynamically there, and images have not its libraries")

USER = 4711
CLAIMED = {"nics": {"count": 1, "class": "nic.drarun.dev", "config": {"interface": {"name": "net1"}}}}


class Row:
    """how: in words. security, env, mounts: of the container that runs the ranks; volumes: of its pod. forced: what a rank's shell
    finds true. hidden: a group and the versions of it that the API server has, all others being hidden by a proxy."""

    def __init__(self, how, security=None, env=(), mounts=(), volumes=(), before="", forced="true", hidden=None, family="ipv4"):
        self.how, self.before, self.forced, self.hidden, self.family = how, before, forced, hidden, family
        self.container = {"securityContext": security or {}, "env": list(env), "volumeMounts": list(mounts)}
        self.pod = {"volumes": list(volumes)}

    def spec(self, then):
        script = f"{{ {self.forced}; }} || {{ echo it is there >&2; exit 99; }}; {then}"
        container = {"name": "ranks", "image": f"localhost/{programs.NAME}:1", "command": ["sh", "-c", script], **self.container}
        return {"workers": 2, "network": "any", "devices": CLAIMED,
                "template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **self.pod}}}


ALL, GROUPS = "(all is there)", "PodGroups"
DEVICES = "resource.k8s.io"
ROWS = {
    ALL: Row("usual pods, led by a launcher's pod; a scheduler with PodGroups"),
    "root": Row(f"`runAsUser: {USER}`", {"runAsUser": USER, "runAsGroup": USER, "runAsNonRoot": True}, forced=f'test "$(id -u)" = {USER}'),
    "any capability, under seccomp's default profile": Row(
        f"`drop: [ALL]`, `RuntimeDefault`, no privilege escalation, user {USER}",
        {"runAsUser": USER, "runAsGroup": USER, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
         "seccompProfile": {"type": "RuntimeDefault"}},
        forced="test $(grep -cE '^Cap(Eff|Bnd):[[:space:]]*0+$' /proc/self/status) = 2 && grep -qE '^Seccomp:[[:space:]]*2$' /proc/self/status"),
    "a root file system to write to": Row("`readOnlyRootFilesystem: true`", {"readOnlyRootFilesystem": True},
                                          forced="! touch /drarun 2>/dev/null && ! touch /tmp/drarun 2>/dev/null"),
    "cgroups": Row("an empty volume, read-only, over /sys/fs/cgroup", mounts=[{"name": "none", "mountPath": "/sys/fs/cgroup", "readOnly": True}],
                   volumes=[{"name": "none", "emptyDir": {}}], forced='test -z "$(ls -A /sys/fs/cgroup)"'),
    "the topology for PMIx": Row("hwloc fails in the agent (`HWLOC_COMPONENTS=stop`), not in the ranks",
                                 env=[{"name": "HWLOC_COMPONENTS", "value": "stop"}], before="env -u HWLOC_COMPONENTS ",
                                 forced='test "$HWLOC_COMPONENTS" = stop'),
    GROUPS: Row("an API server without the resource podgroups; led from outside", hidden=("scheduling.k8s.io", "v1")),
    f"{DEVICES}/v1 and v1beta2": Row(f"an API server that has {DEVICES}/v1beta1 alone; led from outside", hidden=(DEVICES, "v1beta1")),
    "IPv4": Row("API server, nodes, pods and claimed NICs with IPv6 addresses alone", family="ipv6",
                forced="test -n \"$(grep -v ' lo$' /proc/net/if_inet6)\" && test $(wc -l </proc/net/route) -le 1"),
}


@pytest.fixture(scope="module")
def cluster(request):
    """Of one family of addresses after the other."""
    with Cluster(nodes=2, gang=True, images=("busybox", programs.BASE, "drarun"), family={"ipv4": IPV4, "ipv6": IPV6}[request.param]) as made:
        made.image(programs.NAME, files=programs.files(), base=programs.BASE)
        yield made


@pytest.fixture(scope="module")
def nics(cluster):
    """One on each node, and the plugin."""
    cluster.api.make(device_class())
    made = [(Nics(node, 1, addressed=True, rails=RAILS_OF_IPV6 if cluster.network.family is IPV6 else RAILS), Plugin(node))
            for node in cluster.nodes]
    for nic, plugin in made:
        nic.plug()
        plugin.start()
    for _, plugin in made:
        plugin.wait(1)
    yield made
    for _, plugin in made:
        plugin.stop()


@pytest.fixture
def jobs(jobs, nics):
    """Nothing is held after the test, and the NICs that died with their pods are there again."""
    yield jobs
    for nic, plugin in nics:
        jobs.cluster.wait(lambda plugin=plugin: f"{plugin.checkpoints()} left:\n{plugin.log()}",
                          lambda plugin=plugin: not plugin.checkpoints(), 60)
        nic.plug()
        plugin.wait(1)


def mpi(jobs, row, options, env):
    result = jobs.run(*options, env=env, timeout=120, **row.spec(f"exec {row.before}{program('openmpi4', 'allreduce')}")).ok()
    assert "2 ranks, workers: 2, hosts: 2;" in result.out and "right on every rank" in result.out, result


def failing(jobs, row, options, env):
    then = "test $RANK != 1 || { echo cannot open data.bin >&2; exit 3; }; sleep 1000"
    result = jobs.run(*options, env=env, timeout=120, **row.spec(then))
    assert result.rc == 3 and re.search(r"rank 1 on worker 1 \(\S+\) exited with status 3 ", result.err), result
    assert "cannot open data.bin\n" in result.err, result


def cancelled(jobs, row, options, env):
    """Its namespace, and what the plugin holds, are looked at after the test."""
    job = Running(jobs, *options, env=env, **row.spec("echo up; setsid sleep 1000 & sleep 1000")).wait_lines(2)
    groups = jobs.cluster.api.get(jobs.cluster.plane.gangs.version, "PodGroup", namespace=jobs.namespace.name)
    assert bool(groups) == (row is not ROWS[GROUPS])
    job.job.signal(signal.SIGINT)
    result = job.ended(120)
    assert result.rc == 130, result


CASES = {"MPI over claimed NICs": mpi, "a failed rank is named": failing, "a cancel leaves nothing": cancelled}
TABLE = Table("On a cluster", {name: row.how for name, row in ROWS.items()}, CASES)


@pytest.mark.parametrize("cluster,name", [(row.family, name) for name, row in ROWS.items()], indirect=["cluster"], scope="module",
                         ids=ROWS.keys())
@pytest.mark.parametrize("case", CASES)
def test_without(jobs, serving, name, case):
    row = ROWS[name]
    server = serving(*row.hidden) if row.hidden else None
    CASES[case](jobs, row, ["--here"] if server else [], server.env if server else None)
    if server and row.hidden[0] == DEVICES:
        assert server.versions_asked(DEVICES) == set(row.hidden[1:])
    TABLE.hold(name, case, WORKS)


def test_the_page_has_these_rows():
    TABLE.check()
