# SPDX-License-Identifier: Apache-2.0
"""`drarun accept` on three real nodes, of which one has a slow network."""
import json
import signal
import time

import pytest

from support.api_proxy import NodesProxy
from support.build import BUILD
from support.cluster import Cluster
from support.cluster_jobs import in_namespace

pytestmark = pytest.mark.plain("the agent is linked dynamically there, and images have not its libraries")
BENCH = {"/usr/local/bin/drarun-bench": BUILD / "bin/drarun-bench",
         "/usr/local/lib/drarun/bench-mpi.so": BUILD / "lib/drarun/bench-mpi.so"}
# lines alone: they have the figure whole, the table two digits of it
COMMAND = ["sh", "-c", "exec drarun-bench all_reduce -b 32K -e 32K -n 1 -w 1 -T 120 --json-lines /proc/self/fd/3 3>&1 >/dev/null"]
SLOW, LEAST = "512kbit", "0.0002"  # 0.000064 and 0.0002 GB/s: a busy machine is faster than that
LEAST_ALONE = "0.000001"  # a floor keeps three nodes from being compared; a machine may be so busy that 32 KiB take most of a second


NVML = "/nvml/libnvidia-ml.so.1"  # a stand-in, which tells of errors on n1 alone
NO_NVML = "GPUs: no NVML in the image"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    files = {**BENCH, NVML: BUILD / "tests/nvml/libnvidia-ml.so.1"}
    for node, more in ("n0", 0), ("n1", 7), ("n2", 0):
        files[f"/gpus-{node}"] = tmp_path_factory.mktemp("gpus") / node
        files[f"/gpus-{node}"].write_text(f"gpu 0000:18:00.0 GPU-a 0 1 2 NVIDIA B200\nnvlink 0000:18:00.0 1 5 {more}\n")
    with Cluster(nodes=3, images=("busybox", "mpi", "drarun")) as made:
        made.image("bench", files=files, base="mpi")
        made.nodes[2].ok(["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", SLOW, "burst", "32kbit", "latency", "400ms"])
        yield made


@pytest.fixture
def jobs(cluster, drarun, tmp_path, request):
    with in_namespace(cluster, drarun, tmp_path, request.node.name) as made:
        made.spec = made.file(image="localhost/bench:1", ranksPerWorker=2, command=COMMAND)
        made.words = ["accept", made.spec, "--records", tmp_path / "records", "--here", "--min-alone", LEAST_ALONE, "--min-pair", LEAST]
        yield made


def accept(jobs, *more):
    return jobs.verb(*jobs.words, *more, timeout=300)


def states(result):
    return {each["name"]: each["state"] for each in json.loads(result.out)["nodes"]}


def taints(cluster, node):
    return [each["key"] for each in cluster.api.get("v1", "Node", node)["spec"].get("taints", ())]


def test_slow_node_is_named(cluster, jobs):
    result = accept(jobs, "--taint", "-o", "json")
    assert result.rc == 1 and states(result) == {"n0": "passed", "n1": "passed", "n2": "bad"}, result
    bad = json.loads(result.out)["nodes"][2]
    assert {each["notLookedAt"] for each in json.loads(result.out)["nodes"]} == {NO_NVML}
    assert "partners that are well" in bad["reason"] and bad["alone"] > float(LEAST), bad
    assert "drarun.dev/unfit" in taints(cluster, "n2") and not taints(cluster, "n0")
    low = cluster.api.get("scheduling.k8s.io/v1", "PriorityClass", "drarun-accept")
    assert low["value"] < 0 and low["preemptionPolicy"] == "Never"


def test_goes_on_where_it_was_broken_off(cluster, jobs):
    process = jobs.drarun.start(*jobs.words, "--alone", "--parallel", "1", under=cluster.under, env=jobs.env)
    record = lambda: "".join(each.read_text() for each in (jobs.folder / "records").glob("*.jsonl"))  # noqa: E731
    cluster.wait(lambda: f"no answer: {record()}", lambda: '"kind":"test"' in record(), 60)
    process.process.send_signal(signal.SIGINT)
    broken = process.finish(90)
    assert broken.rc == 130 and "goes on from here" in broken.err, broken
    known = record().count('"kind":"test"')
    begin = json.loads(record().splitlines()[0])
    assert begin["nodes"] == {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.api.get("v1", "Node")}, begin
    cluster.wait(lambda: f"left: {jobs.namespace.leftovers(0)}",
                 lambda: not cluster.api.get("v1", "Pod", namespace=jobs.namespace.name), 60)
    result = accept(jobs, "--alone", "--parallel", "1")
    assert result.rc == 0 and f"which has {known} answers" in result.err, result
    assert result.out.splitlines()[-2:] == [f"not looked at on 3 nodes: {NO_NVML}", "3 passed, 0 bad, 0 suspect, 0 unknown"]
    assert record().count('"kind":"test"') == 3  # none was run twice


def test_which_nodes(cluster, jobs):
    cluster.nodes[1].ok(["true"])
    cluster.kubectl("cordon", "n1")
    cluster.kubectl("label", "node", "n0", "n1", "half=a")
    try:
        result = accept(jobs, "--alone", "--nodes", "half=a", "-o", "json")
        assert result.rc == 1 and states(result) == {"n0": "passed", "n1": "unknown"}, result
        assert json.loads(result.out)["nodes"][1]["reason"] == "it is cordoned"
        none = accept(jobs, "--nodes", "half=b")
        assert none.rc == 69 and "nodes with half=b: 0 nodes are there" in none.err, none
    finally:
        cluster.kubectl("uncordon", "n1")


@pytest.mark.parametrize("words,says", [
    (["--slower", "0"], 'expected a percentage above 0, at most 99, got "0"'),
    (["--min-pair", "x"], 'expected GB/s above 0, at most 1e+06, got "x"'),
    (["--parallel", "0"], "1 to 1024"),
], ids=["slower", "min-pair", "parallel"])
def test_wrong_words(jobs, words, says):
    result = accept(jobs, *words)
    assert result.rc == 64 and says in result.err, result


def test_spec_that_is_wrong(jobs):
    path = jobs.folder / "wrong.yaml"
    path.write_text("spec: {image: x, command: [y], wrkers: 2}\n")
    result = jobs.verb("accept", path)
    assert result.rc == 65 and 'wrong.yaml:1:' in result.err and "wrkers" in result.err, result


def on_one_node(jobs, command, *more, here=("--here",), env=None):
    return jobs.verb("accept", jobs.file(image="localhost/bench:1", command=command), "--records", jobs.folder / "records", *here,
                     "--alone", "-l", "kubernetes.io/hostname=n0", *more, env=env, timeout=120)


class Queued:
    """A test of n0 whose job waits in a queue: for longer than it may take."""
    limit = 40

    def __init__(self, jobs, env):
        self.jobs, self.api = jobs, jobs.cluster.api
        spec = jobs.file(image="localhost/bench:1", ranksPerWorker=2, queue="team-a", timeouts={"queue": "1h"}, command=COMMAND)
        self.process = jobs.drarun.start("accept", spec, "--records", jobs.folder / "records", "--here", "--alone",
                                         "-l", "kubernetes.io/hostname=n0", "--timeout", f"{self.limit}s",
                                         under=jobs.cluster.under, env=env)
        worker_job = lambda: next(iter(self.api.get("batch/v1", "Job", namespace=jobs.namespace.name)), None)  # noqa: E731
        self.made = jobs.cluster.wait("no worker Job", worker_job, 60)

    def admit(self):
        path = self.api.path("batch/v1", "Job", self.jobs.namespace.name, self.made["metadata"]["name"])
        self.api.ok("PATCH", path, {"spec": {"suspend": False}}, content="application/merge-patch+json")
        result = self.process.finish(120)
        assert result.rc == 0 and "1 passed" in result.out, result


def test_wait_in_a_queue_is_no_time_of_the_test(cluster, jobs):
    """Longer than the test may take: the node is not at fault."""
    queued = Queued(jobs, jobs.env)
    time.sleep(queued.limit + 5)
    queued.admit()


@pytest.fixture
def unread(cluster, jobs):
    """The API server for an administrator, behind a proxy that may refuse requests: .env."""
    account = {"kind": "ServiceAccount", "name": "default", "namespace": jobs.namespace.name}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": jobs.namespace.name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
               "subjects": [account]}
    cluster.api.make(binding)
    made = NodesProxy(cluster)
    made.env = {"KUBECONFIG": str(cluster.keys.kubeconfig(jobs.folder / "proxy.conf", made.url, {"token": jobs.namespace.token("default")},
                                                          jobs.namespace.name))}
    yield made
    made.close()
    cluster.api.delete(binding["apiVersion"], binding["kind"], jobs.namespace.name)


def test_wait_that_cannot_be_read_is_no_time_of_the_test(cluster, jobs, unread):
    """When the test's time is over: it is asked again later."""
    queued, denied = Queued(jobs, {**jobs.env, **unread.env}), []

    def deny(exchange):
        denied.append(exchange.path)
        exchange.answer(400, {"kind": "Status", "code": 400, "reason": "BadRequest", "message": "no"})
    unread.fault(deny, lambda method, path: method == "GET" and "/configmaps/accept-" in path)
    cluster.wait("the job's status was not read", lambda: denied, queued.limit + 60)
    queued.admit()


def refuse(status, reason):
    return lambda exchange: exchange.answer(status, {"kind": "Status", "code": status, "reason": reason, "message": "no"})


def test_taint_of_a_node_that_others_write(cluster, jobs, unread):
    """Its kubelet and controllers do, at any moment. What cannot be taken off is no success."""
    patched = lambda method, path: method == "PATCH" and path.startswith("/api/v1/nodes/n0")  # noqa: E731
    cluster.kubectl("taint", "node", "n0", "drarun.dev/unfit=accept:NoSchedule")
    unread.fault(refuse(422, "Invalid"), patched)
    kept = on_one_node(jobs, COMMAND, "--taint", env=unread.env)
    assert kept.rc == 69 and "1 passed" in kept.out and taints(cluster, "n0") == ["drarun.dev/unfit"], kept
    assert "node n0: the taint drarun.dev/unfit:NoSchedule is not taken off: " in kept.err, kept
    unread.fault(refuse(409, "Conflict"), patched, 2)
    taken = on_one_node(jobs, COMMAND, "--taint", env=unread.env)
    assert taken.rc == 0 and "the taint drarun.dev/unfit:NoSchedule is taken off" in taken.err and not taints(cluster, "n0"), taken


def test_priority_class_that_is_there(jobs, unread):
    """Who may not create one does with an administrator's."""
    on_one_node(jobs, COMMAND).ok()  # makes it
    unread.fault(refuse(403, "Forbidden"), lambda method, path: method == "POST" and "/priorityclasses" in path, 1000)
    assert "1 passed" in on_one_node(jobs, COMMAND, env=unread.env).ok().out


def test_job_that_hangs(jobs):
    """Though it has waited for its pod for a moment."""
    result = on_one_node(jobs, ["sleep", "1000"], "--timeout", "15s")
    assert result.rc == 1 and "it had not ended after 15 s" in result.out, result


def test_its_jobs_end_with_it(cluster, jobs):
    """Also where it is killed."""
    spec = jobs.file(image="localhost/bench:1", command=["sleep", "1000"])
    process = jobs.drarun.start("accept", spec, "--records", jobs.folder / "records", "--here", "--alone", "-l", "kubernetes.io/hostname=n0",
                                under=cluster.under, env=jobs.env)
    pods = lambda: cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)  # noqa: E731
    cluster.wait("no pod runs", lambda: any(each["status"].get("phase") == "Running" for each in pods()), 60)
    process.process.kill()
    cluster.wait(lambda: f"left: {jobs.namespace.leftovers(0)}", lambda: not pods(), 60)
    process.finish(30)


def test_launcher_that_does_not_start(jobs):
    """It need not run on the node of the test, which is not at fault."""
    spec = jobs.file(image="localhost/bench:1", command=["true"], launcher={"nodeSelector": {"none": "such"}}, timeouts={"allocation": "1h"})
    result = jobs.verb("accept", spec, "--records", jobs.folder / "records", "--alone", "-l", "kubernetes.io/hostname=n0",
                       "--timeout", "5s", "--tries", "1", "-o", "json", timeout=120)
    assert result.rc == 1 and states(result)["n0"] == "unknown", result
    assert "its launcher had not started after 5 s" in json.loads(result.out)["nodes"][0]["reason"], result


def test_errors_of_a_nodes_gpu(jobs):
    """It is as fast as the others, but its NVLink counts errors while it is measured."""
    spec = jobs.file(image="localhost/bench:1", ranksPerWorker=2, command=[
        "sh", "-c", "LD_LIBRARY_PATH=/nvml NVML_STAND_IN=/gpus-$DRARUN_NODE exec " + COMMAND[2].removeprefix("exec ")])
    result = jobs.verb("accept", spec, "--records", jobs.folder / "records", "--here", "--alone", "--min-alone", LEAST_ALONE, "-o", "json", timeout=300)
    assert result.rc == 1 and states(result) == {"n0": "passed", "n1": "bad", "n2": "passed"}, result
    reason = json.loads(result.out)["nodes"][1]["reason"]
    assert reason == "alone, twice: errors were counted while it ran: n1: GPU 0000:18:00.0 NVLink 1 replays +7"
    assert not any("notLookedAt" in each for each in json.loads(result.out)["nodes"])


@pytest.mark.parametrize("here", [["--here"], []], ids=["here", "pod"])
def test_benchmark_that_fails(jobs, here):
    result = on_one_node(jobs, ["sh", "-c", "echo no GPU >&2; exit 1"], here=here)
    assert result.rc == 1 and "exited with status 1" in result.out and ": no GPU" in result.out, result


def test_launcher_in_the_cluster(jobs):
    result = on_one_node(jobs, COMMAND, here=())
    assert result.rc == 0 and "1 passed" in result.out, result


def test_wrong_options_of_the_benchmark_are_no_nodes_fault(jobs):
    result = on_one_node(jobs, ["drarun-bench", "all_reduce", "-b", "x"])
    assert result.rc == 65 and "the job of a test is refused: rank 0" in result.err and "-b x: expected a size" in result.err, result
