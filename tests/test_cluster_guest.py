# SPDX-License-Identifier: Apache-2.0
"""Jobs on a node that is a machine of its own (support/cluster/guest.py): a kernel with cgroup v2 alone, a kubelet that takes nothing else,
containerd, and runc or crun. The launcher is outside or in a pod of that node."""
import pytest

from support.cluster import Cluster
from support.cluster.claiming import Claimed
from support.cluster.plugin import Plugin, device_class
from support.cluster_jobs import Running

pytestmark = pytest.mark.plain("the guest runs the static programs")
CPUS, RESERVED, OWN, PIDS, NICS, VFS = 4, 0, 2, 100, 2, 2
KUBELET = {"failCgroupV1": True, "cpuManagerPolicy": "static", "reservedSystemCPUs": str(RESERVED), "podPidsLimit": PIDS}
GUARANTEED = {each: {"cpu": OWN, "memory": "256Mi"} for each in ("requests", "limits")}
RUN_S = 300  # a container's start takes seconds in a guest
UP = "echo up; exec sleep 1000"
REACH_MS = 60000  # data between NICs of a guest


def claimed(virtual):
    """A NIC with RDMA that is a virtual function, or is not."""
    return {"nics": {"count": 1, "class": "nic.drarun.dev", "selector":
                     f'device.attributes["dra.net"].rdma && device.attributes["dra.net"].?isSriovVf.orValue(false) == {str(virtual).lower()}'}}


RDMA, VIRTUAL = claimed(False), claimed(True)


@pytest.fixture(scope="session")
def booted():
    with Cluster(images=("busybox", "drarun"), kubelet=KUBELET, guests=[{"cpus": CPUS, "nics": NICS, "vfs": VFS, "crun": True}]) as made:
        made.api.make(device_class())
        yield made


@pytest.fixture(scope="session", params=["runc", "crun"])
def cluster(booted, request):
    """Under one runtime and then the other, in one guest: half of its time is its boot and the kubelet's start."""
    if request.param != "runc":
        booted.nodes[0].change_runtime(request.param)
    yield booted


# what no runtime takes part in, but that it starts containers
ONE_RUNTIME = pytest.mark.parametrize("cluster", ["runc"], indirect=True)


@pytest.fixture(scope="module")
def plugin(cluster):
    made = Plugin(cluster.nodes[0]).start().wait(NICS + VFS)
    yield made
    made.stop()


def all_up(plugin):
    """What is published of the NICs, once all are up: one that has just come back from a pod is down for a moment."""
    found = plugin.published()
    states = [each["attributes"]["dra.net/state"]["string"] for each in found.values()]
    return states == ["up"] * (NICS + VFS) and found


@ONE_RUNTIME
def test_node(cluster):
    node = cluster.nodes[0]
    assert node.ok(["stat", "-fc", "%T", "/sys/fs/cgroup"]) == "cgroup2fs\n"
    assert not [line for line in node.ok(["cat", "/proc/mounts"]).splitlines() if line.split()[2] == "cgroup"]


def test_runtime(cluster):
    """The containers of pods are that runtime's: each has a format of its own for their state."""
    node = cluster.nodes[0]
    assert node.ok([node.runtime, "--version"]).startswith(f"{node.runtime.name} version ")
    pod = cluster.pod("runtime", ["sleep", "1000"]).make()
    (status,) = pod.wait_phase("Running", seconds=RUN_S)["containerStatuses"]
    listed = node.ok([node.runtime, "--root", "/run/containerd/runc/k8s.io", "list", "-q"]).split()
    assert status["containerID"].removeprefix("containerd://") in listed, (status, listed)
    pod.delete(grace=0)


def test_claimed_nics(jobs, plugin):
    """Each worker has a NIC and its RDMA device for itself, as the kernel shows it, and its ranks are told of that one. The agent comes
    by the claim. Afterwards all are back. The launcher is in a pod under runc and outside under crun: one has nothing to do with the other,
    and a job takes half a minute."""
    mode = {"runc": [], "crun": ["--here"]}[plugin.node.runtime.name]
    script = "echo $RANK $(ls /sys/class/infiniband) $(ls /dev/infiniband | grep -c uverbs) $(ls /sys/class/net | grep nic) $NCCL_IB_HCA"
    result = jobs.run(*mode, workers=2, placement={"spread": "none"}, devices=RDMA, command=["sh", "-c", script], timeout=RUN_S).ok()
    told = [line.split() for line in sorted(result.out.splitlines()) if " rxe_nic" in line]
    assert [rank for rank, *_ in told] == ["0", "1"] and {nic for *_, nic, _ in told} == {"nic0", "nic1"}, result
    assert all(words[1:] == [f"rxe_{words[3]}", "1", words[3], f"=rxe_{words[3]}:1"] for words in told), result
    jobs.cluster.wait("the NICs do not come back", lambda: not plugin.checkpoints(), RUN_S)
    assert plugin.node.ok(["sh", "-c", "ls /sys/class/infiniband"]).split() == ["rxe_nic0", "rxe_nic1", "rxe_nicvf0", "rxe_nicvf1"]


@ONE_RUNTIME
def test_virtual_functions(jobs, plugin):
    """Each worker has a VF of one physical function and its RDMA device for itself; data go from one to the other. Afterwards all are on
    the host as they were, with the driver and the addresses that they had."""
    node, of_host = plugin.node, "ls -d /sys/class/net/pf/device/virtfn*/net/*; ls /sys/class/infiniband; ip -o -4 address | grep nic"
    before, offered = node.ok(["sh", "-c", of_host]), jobs.cluster.wait(lambda: f"not all are up: {plugin.published()}", lambda: all_up(plugin), RUN_S)
    assert before.split()[:VFS] == [f"/sys/class/net/pf/device/virtfn{i}/net/nicvf{i}" for i in range(VFS)], before
    show = 'cd /sys/class/net/*nic*; of() { basename $(readlink -f device/$1); }; ' \
        'echo $RANK ${PWD##*/} $(ls /sys/class/infiniband) $NCCL_IB_HCA $(of driver) $(of physfn/driver)'
    result = jobs.run("--here", "-v", workers=2, placement={"spread": "none"}, devices=VIRTUAL, preflight={"fabric": "reach"},
                      command=["sh", "-c", show], timeout=RUN_S, env={"DRARUN_REACH_MS": REACH_MS})
    assert result.rc == 0, f"{result!r}\n{node.ok(['dmesg'])[-4000:]}"
    assert "the NICs of 2 workers reach each other: 2 pairs" in result.err and "its NIC" not in result.err, result.out + result.err
    told = [line.split() for line in sorted(result.out.splitlines()) if " rxe_nic" in line]
    assert [rank for rank, *_ in told] == ["0", "1"] and {nic for _, nic, *_ in told} == {f"nicvf{i}" for i in range(VFS)}, result
    assert all(words[2:] == [f"rxe_{words[1]}", f"=rxe_{words[1]}:1", "igbvf", "igb"] for words in told), result
    jobs.cluster.wait("the virtual functions do not come back", lambda: not plugin.checkpoints(), RUN_S)
    assert node.ok(["sh", "-c", of_host]) == before
    jobs.cluster.wait(lambda: f"{plugin.published()} is published", lambda: plugin.published() == offered, RUN_S)


def test_refused_hook(cluster, plugin):
    """A name that is taken in the pod: runc passes on why, crun the exit status alone. The NIC is on the host again."""
    node, links = plugin.node, "ip -o link | cut -d: -f2 | grep nic"
    before, claimed = node.ok(["sh", "-c", links]), Claimed(cluster)
    pod = claimed("refused", "true", node.name, config=[{"interface": {"name": "eth0"}}])
    (status,) = pod.wait_phase("Failed", seconds=RUN_S)["containerStatuses"]
    said = {"runc": ": the container has another device called eth0 already", "crun": "error executing hook"}[node.runtime.name]
    assert said in status["state"]["terminated"]["message"], status
    claimed.end()
    cluster.wait("the claim is still held", lambda: not plugin.checkpoints(), RUN_S)
    assert node.ok(["sh", "-c", links]) == before


def test_oom_kill(jobs):
    """The kernel ends the container whole, as kubelets set it on cgroup v2: its status tells, which may take the kubelet seconds."""
    hog = "[ $RANK = 0 ] && sleep 1000; x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo $x | wc -c"
    limits = {"limits": {"memory": "64Mi"}}
    result = jobs.run("--here", workers=2, command=["sh", "-c", hog], resources=limits, timeout=RUN_S)
    assert result.rc == 137 and "worker 1 (job-w-1 on n0)" in result.err, result
    assert "was killed as a whole by the kernel's OOM killer" in result.err and "resources.limits.memory" in result.err, result


@ONE_RUNTIME
def test_more_ranks_than_processes(jobs):
    """The limit is the pod's, which a container does not see: said where it is met, with the kubelet's word for it."""
    result = jobs.run("--here", ranksPerWorker=PIDS, command=["sleep", "1000"], resources={"limits": {"memory": "256Mi"}}, timeout=RUN_S)
    assert result.rc == 70 and "too many processes: " in result.err and "podPidsLimit" in result.err, result


@ONE_RUNTIME
def test_bound_ranks(jobs):
    """To CPUs of those that the kubelet gives the worker alone, which its cgroup names."""
    show = "echo $(awk '/^Cpus_allowed_list/{print $2}' /proc/self/status) $(cat /sys/fs/cgroup/cpuset.cpus.effective)"
    result = jobs.run("--here", resources=GUARANTEED, command=["sh", "-c", show], bind="core", ranksPerWorker=OWN, timeout=RUN_S).ok()
    told = [line.split() for line in result.out.splitlines()]
    (free,) = {free for _, free in told}
    own = {int(cpu) for cpu in free.replace("-", ",").split(",")}  # "1-2" or "1,3": they are two
    assert len(own) == OWN and RESERVED not in own and {int(cpu) for cpu, _ in told} == own, result


@ONE_RUNTIME
def test_kubelet_goes_and_comes(jobs, plugin, cluster):
    """A job with a claim runs on meanwhile, and the next one finds all as it was."""
    node, held = cluster.nodes[0], "ls /sys/class/net | grep -c nic"
    job = Running(jobs, "--here", devices=RDMA, command=["sh", "-c", f"{held}; {UP}"]).wait_lines(1)
    node.stop_kubelet()
    cluster.wait("the node is not lost", lambda: node.condition() != "True", RUN_S)
    node.start_kubelet()
    node.wait_ready()
    plugin.wait()
    assert job.job.process.poll() is None and job.lines == ["1\n", "up\n"]
    job.job.signal(2)
    assert job.ended(RUN_S).rc == 130
    assert jobs.run("--here", name="next", devices=RDMA, command=["sh", "-c", held], timeout=RUN_S).ok().out == "1\n"
