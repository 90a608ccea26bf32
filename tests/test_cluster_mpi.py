# SPDX-License-Identifier: Apache-2.0
"""Real programs on two real nodes: MPI libraries, PyTorch, a user's own mpirun; what images and pods may look
like; and what reaches the user of output, signals and ends."""
import json
import random
import re
import secrets
import signal

import pytest
import yaml

from support.build import BUILD
from support.cluster import programs
from support.cluster.plugin import Nics, Plugin, device_class
from support.cluster.programs import MPIS, program, starter
from support.cluster_jobs import APART

pytestmark = pytest.mark.plain("the agent is linked dynamically there, and images have not its libraries")
MODES = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
MPI, BUSYBOX = f"localhost/{programs.NAME}:1", "localhost/busybox:1"
BARE = f"localhost/{programs.BASE}:1"  # an MPI, and nothing of ours
EIGHT = {"workers": 4, "ranksPerWorker": 2}
WAYS = [(name, [] if name == "openmpi4" else ["--here"]) for name in MPIS]


@pytest.fixture(scope="session")
def cluster(mpi_cluster):
    return mpi_cluster


def template(image, command, container=None, **pod):
    first = {"name": "ranks", "image": image, "command": [str(word) for word in command], **(container or {})}
    return {"template": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [first], **pod}}}


def mpi(*command, **more):
    return template(MPI, command, topologySpreadConstraints=APART, **more)


def nodes_of(jobs):
    return {each["node"] for each in jobs.status()["workers"]["lines"]}


# ---- MPI libraries ----

@pytest.mark.parametrize("name,mode", WAYS, ids=MPIS)
def test_allreduce(jobs, name, mode):
    result = jobs.run(*mode, **EIGHT, **mpi(program(name, "allreduce"))).ok()
    assert result.out.startswith("allreduce: 8 ranks, workers: 4, hosts: 4;") and "right on every rank" in result.out
    if not mode:
        assert len(nodes_of(jobs)) == 2


def test_all_of_mpi(jobs):
    result = jobs.run("--here", **EIGHT, **mpi(program("openmpi4", "mpi_check"), "all")).ok()
    assert "ok: 8 ranks, 4 nodes\n" in result.out


def test_mpi4py(jobs):
    result = jobs.run("--here", **EIGHT, **mpi("/usr/bin/python3", "/examples/allreduce.py")).ok()
    assert result.out == "mpi4py: 8 ranks, hosts: 4, sum of 1000 doubles right on every rank\n"


@pytest.mark.parametrize("name,mode", WAYS, ids=MPIS)
def test_own_mpirun(jobs, name, mode):
    script = (f"{starter(name)} -n 8 sh -c 'RANK=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} WORLD_SIZE=8 LOCAL_WORLD_SIZE=2 "
              f"exec {program(name, 'mpi_check')} all'")
    result = jobs.run(*mode, **EIGHT, launch="mpirun", **mpi("sh", "-c", script)).ok()
    assert "ok: 8 ranks, 4 nodes\n" in result.out


# ---- ranks that ranks start ----

CHILD = re.compile(r"^child (\d) of (\d) on (\d) in ", re.M)


@MODES
def test_spawned_ranks(jobs, mode):
    """In the job's own pods: they fill the free slots of the first, then those of the second."""
    result = jobs.run(*mode, workers=2, slots=2, **mpi(program("openmpi5", "mpi_spawn"), "once")).ok()
    assert sorted(CHILD.findall(result.out)) == [("0", "2", "0"), ("1", "2", "1")], result


def test_spawned_ranks_of_a_role(jobs):
    """Each role has slots of its own: the first takes no more."""
    command = {"command": [program("openmpi5", "mpi_spawn"), "once"]}
    roles = [{"name": "head", "slots": 1, **command}, {"name": "pool", "slots": 3, **command}]
    result = jobs.run("--here", image=MPI, roles=roles).ok()
    assert sorted(CHILD.findall(result.out)) == [("0", "2", "1"), ("1", "2", "1")], result


def test_spawned_ranks_that_have_no_slot(jobs):
    """An MPI error for the ranks that ask; the message says what the spec can."""
    spec = {"workers": 2, "slots": 2, **mpi(program("openmpi5", "mpi_spawn"), "refused", "own", "3")}
    result = jobs.run("--here", **spec).ok()
    assert "refused\n" in result.out and "child" not in result.out, result
    assert ("rank 0: spawn: 3 ranks are asked for, 2 slots are free: spec.slots: N gives each worker N, spec.oversubscribe: true starts them "
            "all the same\n") in result.err, result


# ---- over NICs that our node plugin attaches ----

COUNTED = ("for each in net1 eth0; do cd /sys/class/net/$each/statistics; echo $GROUP_RANK $each $(cat tx_bytes rx_bytes); "
           "done")
PAYLOAD = 10 << 20  # a rank of two has sent and got at least that when examples/allreduce has ended


@pytest.fixture(scope="module")
def nics(cluster):
    """One on each node."""
    cluster.api.make(device_class())
    made = []
    for node in cluster.nodes:
        Nics(node, 1, addressed=True).plug()
        made.append(Plugin(node).start())
    for each in made:
        each.wait(1)
    yield made
    for each in made:
        each.stop()


@pytest.fixture
def plugged(cluster, nics):
    yield
    for each in nics:
        cluster.wait(lambda each=each: f"{each.checkpoints()} left:\n{each.log()}", lambda each=each: not each.checkpoints(), 60)
        Nics(each.node, 1, addressed=True).plug()
        each.wait(1)


@pytest.mark.gate
@pytest.mark.parametrize("name,mode", [("openmpi4", []), ("openmpi5", ["--here"]), ("mpich5", ["--here"])],
                         ids=["openmpi4-pod", "openmpi5-here", "mpich5-here"])
def test_allreduce_over_claimed_nics(jobs, plugged, name, mode):
    """The data goes through what each worker claimed, whatever else its pod has: nobody has to say so."""
    script = f"{program(name, 'allreduce')} && {COUNTED}"
    result = jobs.run(*mode, workers=2, network="any", **template(MPI, ["sh", "-c", script]), devices={"nics": {
        "count": 1, "class": "nic.drarun.dev", "config": {"interface": {"name": "net1"}}}}).ok()
    said, = [line for line in result.out.splitlines() if line.startswith("allreduce: ")]
    assert "2 ranks, workers: 2, hosts: 2;" in said and "right on every rank" in said, result
    lines = [line.split() for line in result.out.splitlines() if not line.startswith(("allreduce: ", " "))]
    moved = {(int(worker), interface): (int(sent), int(got)) for worker, interface, sent, got in lines}
    assert len(moved) == 4
    for (_, interface), bytes_ in moved.items():
        assert min(bytes_) > PAYLOAD if interface == "net1" else max(bytes_) < PAYLOAD / 10, (moved, result)


# ---- pods that another controller made ----

PROGRAMS = ("bin/drarun", "bin/drarun-worker", "libexec/drarun/drarun-remote")


def entry_image(cluster):
    """What the example's user has: an image with drarun and the program."""
    files = {f"/usr/local/{each}": BUILD / each for each in PROGRAMS}
    files["/programs/allreduce"] = programs.files()[program("openmpi4", "allreduce")]
    return cluster.image("entry", files=files, base=programs.BASE)


def ended(cluster, space, name):
    """The end of the pod's container, whether it was started again or not."""
    pod = cluster.api.get("v1", "Pod", name, space) or {}
    for status in pod.get("status", {}).get("containerStatuses", []):
        for state in ("lastState", "state"):
            if "terminated" in status[state]:
                return status[state]["terminated"]
    return None


@pytest.mark.gate
def test_a_statefulset_as_a_job(jobs, plugged, source):
    """examples/statefulset as it stands, but for the name of its image."""
    cluster, space = jobs.cluster, jobs.namespace.name
    manifests = list(yaml.safe_load_all((source / "examples/statefulset/statefulset.yaml").read_text()))
    pod = manifests[-1]["spec"]["template"]["spec"]
    pod["containers"][0]["image"] = entry_image(cluster)
    pod["terminationGracePeriodSeconds"] = 1
    for each in manifests:
        each["metadata"]["namespace"] = space
    cluster.api.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "train-key", "namespace": space},
                      "stringData": {"key": secrets.token_hex(32)}}, *manifests)

    def said(*words):
        return cluster.kubectl("logs", "-n", space, "train-0", *words)

    def state():
        return "\n".join([cluster.kubectl("describe", "pods", "-n", space), said() if ended(cluster, space, "train-0") else ""])

    ends = [cluster.wait(lambda: f"no end:\n{state()}", lambda name=name: ended(cluster, space, name), 120)
            for name in ("train-0", "train-1")]
    assert [each["exitCode"] for each in ends] == [0, 0], state()
    cluster.wait(lambda: f"no result:\n{said()}", lambda: "2 ranks, workers: 2, hosts: 2;" in said(), 60)
    cluster.kubectl("delete", "-n", space, "statefulset/train", "resourceclaimtemplate/train-nics", "service/train",
                    "secret/train-key", "--cascade=foreground")
    cluster.wait("its pods stay", lambda: not cluster.kubectl("get", "pods", "-n", space, "-o", "name"), 60)


def test_bench_over_claimed_nics(jobs, plugged, tmp_path):
    """drarun bench makes the job, brings its program into an image that has none, finds the class, and its verdict is about the
    NICs that it claimed."""
    kept = tmp_path / "run.json"
    result = jobs.verb("bench", "all_reduce", "--workers", 2, "--nics", 1, "--spread", "node", "-b", "1K", "-e", "1M", "-f", 32, "--iters", 5,
                       "--nic-gbit", 100, "-x", "UCX_TLS=tcp,self", "-x", "MY_TOKEN=hunter2", "--image", BARE, "-J", kept,
                       timeout=120).ok()
    hosts = re.findall(r"^#  Rank +\d+ Group +0 Pid +\d+ on +(\S+) device", result.out, re.M)
    assert len(hosts) == len(set(hosts)) == 2, result
    rows = re.findall(r"^ +(\d+) +\d+ +float +sum +-1 .* 0 +\S+ +\S+ +\S+ +0$", result.out, re.M)
    assert rows == ["1024", "32768", "1048576"] and "# Out of bounds values : 0 OK" in result.out, result
    assert re.search(r"^# all_reduce over 2 ranks on 2 hosts .*\n#   best .*\n"
                     r"#   limit     12\.5 GB/s: 1 NIC of 100 Gb/s a host \(what was claimed, --nic-gbit\)\n", result.out, re.M), result
    assert re.search(r"^#   rdma +NOT USED: the hosts' devices counted 0 MB by RDMA, [\d.]+ MB by network interfaces$", result.out,
                     re.M), result
    assert "drarun: NICs by claim: DeviceClass nic.drarun.dev\n" in result.err, result
    whole_result(jobs, kept, result.out, hosts)


def whole_result(jobs, kept, out, hosts):
    """What came back of the pods, and what the cluster knows of the job, in one file."""
    assert "#drarun-bench" not in out
    made = json.loads(kept.read_text())
    devices = made["config"]["devices"]
    assert [each["hostname"] for each in devices] == hosts
    nodes = {each.name for each in jobs.cluster.nodes}
    assert {each["node"] for each in devices} == nodes and [each["nic"] for each in devices] == ["nic0"] * 2, devices
    for row in made["results"]:
        for half in ("out_of_place", "in_place"):
            assert len(row[half]["per_rank_times_us"]) == 2 and row[half]["nwrong"] == 0
    about = made["about"]
    container, = about["job"]["spec"]["template"]["spec"]["containers"]
    assert container["command"][:2] == ["/.drarun/bin/drarun-bench", "all_reduce"] and "-J" not in container["command"]
    assert about["job"]["spec"]["devices"]["nics"]["class"] == "nic.drarun.dev" and {"name": "UCX_TLS", "value": "tcp,self"} in container["env"]
    assert about["job"]["spec"]["placement"] == {"spread": "node"}
    assert about["job"]["spec"]["devices"]["nics"]["count"] == 1 and "hunter2" not in kept.read_text()
    lines = about["status"]["workers"]["lines"]
    assert [line["pod"] for line in lines] == [each["hostname"] for each in devices], lines
    assert {line["node"] for line in lines} == nodes and all(line["devices"] == "1 device" for line in lines), lines
    page = jobs.drarun("bench", "report", kept).ok().out
    picture = jobs.drarun("bench", "report", "--format", "svg-hosts", kept).ok().out
    assert picture.count(">nic0</text>") == 2 and all(f">{line['node']}: {line['pod']}</text>" in picture for line in lines), picture
    assert "time of each rank against the median" in page and "hosts, ranks and their devices" in page
    assert all(f"<td>{node}</td>" in page for node in nodes) and "\n &quot;workers&quot;: 2,\n" in page


def test_bench_sweeps_over_claims(jobs, plugged, tmp_path):
    """A job for each value, then one table; the first is 100 %. Each takes one of the two NICs, which dies with its pod.
    What all pods have is a file's, and drarun-bench is copied by an init container."""
    base = jobs.file(image=BARE, command=["true"], ranksPerWorker=1, restarts=0)
    result = jobs.verb("bench", "all_reduce", "--nics", 1, "--sweep", "ranks-per-worker=2,1", "-b", "64K", "-e", "64K", "--iters", 2,
                       "--here", "--job", base, "-J", tmp_path / "run.json", "--csv", tmp_path / "run.csv",
                       "--json-lines", tmp_path / "run.jsonl", timeout=240, env={"DRARUN_AGENT": "copy"}).ok()
    assert result.out.count("# Out of bounds values : 0 OK") == 2 and "job 2 of 2: ranks-per-worker=1" in result.err, result
    table = result.out.split("of first  claims\n")[1].splitlines()
    assert re.fullmatch(r"# +[\d.]+ +[\d.]+ +\S+( %)? +100\.00 %  ranks-per-worker=2", table[0]), table
    assert re.fullmatch(r"# +0\.00 +0\.00 +- +- +ranks-per-worker=1", table[1]), table
    assert [line.split(",")[0] for line in (tmp_path / "run.csv").read_text().splitlines()] == ["size"] + ["65536"] * 4
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert kinds == ["begin", "row", "end"] * 2
    status = json.loads((tmp_path / "run.json").read_text())["about"]["status"]  # though the job's objects went with it
    assert status["report"]["status"] == 0 and len(status["workers"]["lines"]) == 1, status
    compared = jobs.drarun("bench", "compare", tmp_path / "run.json", tmp_path / "run.json.0").ok().out
    assert "note: ranks: 2, then 1\n" in compared and "note: spec.ranksPerWorker: 2, then 1\n" in compared, compared


def test_bench_of_roles(jobs, plugged, tmp_path):
    """The ranks of all roles with devices are one measurement; the head, which asks for none, is not made. --role measures one of them."""
    nic = {"nics": {"count": 1, "class": "nic.drarun.dev"}}
    roles = [{"name": "head", "command": ["false"], "workers": 2, "env": {"ONLY": "head"}}, {"name": "one", "command": ["false"], "devices": nic},
             {"name": "two", "command": ["false"], "devices": nic, "ranksPerWorker": 2, "env": {"MY_TOKEN": "hunter2"}}]
    spec = jobs.file(image=BARE, network="any", success="head", placement={"spread": "node"}, roles=roles)
    words = ["bench", "all_reduce", "-b", "64K", "-e", "64K", "--iters", 2, "--nic-gbit", 100, "--job", spec, "-J"]
    result = jobs.verb(*words, tmp_path / "run.json", timeout=120).ok()
    assert "role head asks for no devices and takes no part: --role head measures it alone\n" in result.err, result
    assert re.search(r"^# all_reduce over 3 ranks on 2 hosts \(3 x memory in all\).*\n#   best .*\n"
                     r"#   limit     12\.5 GB/s: 1 NIC of 100 Gb/s a host \(what was claimed, --nic-gbit\)\n", result.out, re.M), result
    about = json.loads((tmp_path / "run.json").read_text())["about"]
    assert [(each["name"], each["workers"], each["ranks"]) for each in about["status"]["roles"]] == [("one", 1, 1), ("two", 1, 2)], about
    assert about["status"]["devices"] == {"nics": "2"} and "success" not in about["job"]["spec"], about
    assert [each["template"]["spec"]["containers"][0]["env"][0]["name"] for each in about["job"]["spec"]["roles"]] == ["DRARUN_BENCH_MARKED", "MY_TOKEN"]
    assert "hunter2" not in (tmp_path / "run.json").read_text()
    result = jobs.verb(*words, tmp_path / "head.json", "--role", "head", "--name", "alone", timeout=120).ok()  # the NICs are gone with their pods
    assert re.search(r"^# all_reduce over 2 ranks on 2 hosts ", result.out, re.M) and "takes no part" not in result.err, result
    container, = json.loads((tmp_path / "head.json").read_text())["about"]["job"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "ONLY"} in container["env"], container  # its value is nobody's business


def test_bench_names_a_stopped_rank(jobs, cluster, tmp_path):
    """With its node, from the launcher's pod; and in the results, which end there."""
    kept = tmp_path / "run.json"
    job = jobs.drarun.start("bench", "all_reduce", "--workers", 2, "-b", "1K", "-e", "1K", "--iters", 100000000, "--image", MPI, "-J", kept,
                            under=cluster.under, env=jobs.env)
    line = ""
    while not line.startswith("#        (B)"):
        line = job.process.stdout.readline()
        assert line, job.finish(10)
    found = "grep -lz ^all_reduce /proc/[0-9]*/cmdline | cut -d/ -f3"
    node, pids = next((each, pids) for each in cluster.nodes if (pids := each.ok(["sh", "-c", found]).split()))
    node.ok(["kill", "-STOP", pids[0]])
    result = job.finish()
    assert result.rc == 124, result
    assert re.search(rf"rank [01] on worker [01] \({node.name}\) has been stopped for (?![01]\.)\d+\.\d s .*in all_reduce of 1024 bytes",
                     result.err), result
    made = json.loads(kept.read_text())
    assert made["failed"]["status"] == 124 and "has been stopped for" in made["failed"]["text"] and made["results"] == [], made
    assert "the job failed: rank " in jobs.drarun("bench", "judge", kept).out


def test_bench_needs_an_image(jobs):
    result = jobs.verb("bench", "all_reduce", "--nics", 1)
    assert result.rc == 64 and "--image, or $DRARUN_BENCH_IMAGE" in result.err


def test_bench_wants_its_file_before_the_job(jobs, tmp_path):
    result = jobs.verb("bench", "all_reduce", "--nics", 1, "--image", MPI, "-J", tmp_path / "no" / "run.json")
    assert result.rc == 64 and f"-J {tmp_path}/no/run.json: No such file or directory" in result.err, result
    assert not jobs.cluster.api.get("batch/v1", "Job", namespace=jobs.namespace.name)


# ---- PyTorch: Debian's, of the machine itself ----

def torch(*command):
    """Too big for an image of its own."""
    pytest.importorskip("torch", reason="no python3-torch; run scripts/setup --test")
    places = ("/usr", "/etc/alternatives")
    return mpi(*command, container={
        "volumeMounts": [{"name": f"host{i}", "mountPath": path} for i, path in enumerate(places)]},
        volumes=[{"name": f"host{i}", "hostPath": {"path": path}} for i, path in enumerate(places)])


def test_torch_gloo(jobs):
    result = jobs.run(workers=2, ranksPerWorker=2, launch="env", timeout=120,
                      **torch("/usr/bin/python3", "/examples/train.py")).ok()
    assert result.out == "torchrun: 4 ranks, workers: 2, y = 3.000 x -1.000, the same and right on every rank\n"


def test_torchrun(jobs):
    job = torch("/usr/bin/torchrun", "--nproc_per_node", 2, "/examples/train.py")
    # Debian's torchrun fails without (examples/torchrun/README.md)
    job["template"]["spec"]["containers"][0]["env"] = [{"name": name, "value": "9:1"}
                                                       for name in ("PET_REDIRECTS", "PET_TEE")]
    result = jobs.run("--here", workers=2, launch="env", timeout=120, **job).ok()
    assert "torchrun: 4 ranks, workers: 2, y = 3.000 x -1.000, the same and right on every rank\n" in result.out


# ---- pods and images ----

def test_several_containers(jobs):
    shared = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    job = template(BUSYBOX, ["sh", "-c", "until [ -e /shared/up ]; do sleep 0.05; done; cat /shared/up"], shared,
                   volumes=[{"name": "shared", "emptyDir": {}}])
    containers = job["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": BUSYBOX, **shared,
                       "command": ["sh", "-c", "echo from the side >/shared/.up; mv /shared/.up /shared/up; sleep 1000"]})
    job["template"]["metadata"] = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    assert jobs.run("--here", workers=2, **job).ok().out == "from the side\n" * 2


STRICT = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True, "runAsUser": 4711,
          "runAsGroup": 4711, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize("name", ["openmpi4", "mpich5"])
def test_nobody_on_a_read_only_root(jobs, name):
    result = jobs.run("--here", **EIGHT,
                      **mpi(program(name, "allreduce"), container={"securityContext": STRICT})).ok()
    assert "right on every rank" in result.out


def test_user_without_an_entry(jobs):
    result = jobs.run(workers=2, **template(BUSYBOX, ["sh", "-c", "echo $(id -u) $(id -g)"],
                                            securityContext={"runAsUser": 1234, "runAsGroup": 1234})).ok()
    assert result.out == "1234 1234\n" * 2


def test_distroless(jobs):
    image = jobs.cluster.image("distroless")
    assert jobs.run("--here", workers=2, **template(image, ["/busybox", "echo", "alone"])).ok().out == "alone\n" * 2


def test_host_network(jobs):
    job = mpi(program("openmpi4", "allreduce"), hostNetwork=True)
    assert "right on every rank" in jobs.run("--here", **EIGHT, **job).ok().out
    shown = jobs.run("--here", workers=2, **template(BUSYBOX, ["sh", "-c", "echo $MASTER_PORT"], hostNetwork=True)).ok().out.split()
    assert len(shown) == 2 and shown[0] == shown[1] != "29500", shown  # which another job on the node may use


def test_command_args_and_arguments(jobs):
    job = template(BUSYBOX, ["echo", "of the image"], {"args": ["of the spec"]})
    assert jobs.run("--here", **job).ok().out == "of the image of the spec\n"
    assert jobs.run("--here", "--", "-n", "of the  line", **job).ok().out == "of the image -n of the  line\n"


def worker_pod(jobs, index=0):
    return jobs.cluster.wait(f"no pod of worker {index}", lambda: jobs.cluster.api.get(
        "v1", "Pod", f"job-w-{index}", jobs.namespace.name), 30)


@pytest.mark.parametrize("way", ["volume", "copy"])
def test_agent_comes_by(jobs, way):
    """Also in the second attempt, whose pods the launcher makes."""
    script = "echo up; [ $DRARUN_ATTEMPT = 2 ] && sleep 1000; exit 3"
    job = jobs.drarun.start("run", jobs.file(command=["sh", "-c", script], restarts=1), under=jobs.cluster.under,
                            env={**jobs.env, "DRARUN_AGENT": way})
    lines = [job.process.stdout.readline() for _ in range(2)]
    assert lines == ["up\n"] * 2, (lines, job.finish(60))
    pod = worker_pod(jobs)
    assert pod["metadata"]["labels"]["drarun.dev/attempt"] == "2"
    assert bool(pod["spec"].get("initContainers")) == (way == "copy")
    job.signal(signal.SIGINT)
    assert job.finish(30).rc == 130


def test_agent_comes_by_no_other_way(jobs):
    result = jobs.run(command=["true"], env={"DRARUN_AGENT": "magic"})
    assert result.rc == 64 and 'DRARUN_AGENT: expected volume, copy or claim:DRIVER=AGENT, got "magic"' in result.err


# ---- input and output ----

def test_no_input(jobs):
    assert jobs.run("--here", command=["sh", "-c", "cat; echo end"], input="nothing").ok().out == "end\n"


def test_label(jobs):
    result = jobs.run("--label", workers=2, command=["sh", "-c", "echo out $RANK; echo err $RANK >&2"]).ok()
    assert sorted(result.out.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert {"[0] err 0", "[1] err 1"} <= set(result.err.splitlines())
    assert jobs.verb("logs", "job", "--rank", 1, text=False).ok().out == b"out 1\n"


MANY = 3 << 20


@MODES
def test_much_output_in_order_and_whole(jobs, mode):
    """Random bytes have all of them, NUL too, lines of all lengths, and most likely no newline at their end.
    containerd keeps no \\r before \\n in a pod's log."""
    script = ("import os,random,sys; r=int(os.environ['RANK']); random.seed(r); f=sys.stdout if r==0 else sys.stderr; "
              f"f.buffer.write(random.randbytes({MANY})+b'end')")
    result = jobs.verb("run", jobs.file(workers=2, **mpi("/usr/bin/python3", "-c", script)), *mode, "--quiet",
                       text=False, timeout=120)
    assert result.rc == 0, result.err[-2000:]
    err = re.sub(rb"^drarun: namespace [^\n]*\n", b"", result.err)
    for rank, got in enumerate((result.out, err)):
        random.seed(rank)
        wanted = random.randbytes(MANY) + b"end"
        wanted = wanted if mode else wanted.replace(b"\r\n", b"\n")
        if got != wanted:
            same = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
            pytest.fail(f"rank {rank}: {len(got)} of {len(wanted)} bytes, the same to {same}: {got[same - 20:same + 60]}, "
                        f"not {wanted[same - 20:same + 60]}")


def test_follow_one_rank(jobs):
    script = "for i in 1 2 3; do echo $RANK:$i; sleep 0.2; done; echo last $RANK >&2"
    jobs.verb("submit", jobs.file(workers=2, command=["sh", "-c", script])).ok()
    result = jobs.verb("logs", "-f", "job", "--rank", 1)
    assert result.rc == 0 and result.out == "1:1\n1:2\n1:3\n" and "last 1\n" in result.err and "last 0" not in result.err
    assert jobs.verb("logs", "job", "--rank", "0").ok().out == "0:1\n0:2\n0:3\n"


# ---- ends ----

def test_signal(jobs):
    result = jobs.run(workers=2, command=["sh", "-c", "[ $RANK = 1 ] && kill -SEGV $$$$; sleep 100"])
    assert result.rc == 139 and "rank 1 on worker 1" in result.err and "SIGSEGV" in result.err, result


def test_no_program(jobs):
    result = jobs.run("--here", command=["/nowhere"])
    assert result.rc == 127 and "/nowhere" in result.err, result


def test_abort(jobs):
    result = jobs.run("--here", **EIGHT, **mpi(program("openmpi4", "mpi_check"), "abort"))
    assert result.rc == 7 and "aborted the job with status 7" in result.err, result


@MODES
def test_interrupt(jobs, mode):
    command = ["sh", "-c", "trap 'echo got it; exit 0' INT; echo up; while :; do sleep 0.05; done"]
    job = jobs.drarun.start("run", jobs.file(workers=2, command=command), *mode, under=jobs.cluster.under, env=jobs.env)
    assert [job.process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    job.signal(signal.SIGINT)
    result = job.finish(30)
    assert result.rc == 130 and result.out == "got it\n" * 2, result


def test_wait_has_a_deadline(jobs):
    jobs.verb("submit", jobs.file(command=["sleep", "1000"])).ok()
    jobs.cluster.wait("it does not run", lambda: (jobs.status() or {}).get("phase") == "running", 60)  # else nothing of it is kept
    result = jobs.verb("wait", "job", "--timeout", "1s")
    assert result.rc == 124 and "the job job has not ended within 1 s" in result.err
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job", "--timeout", "30s").rc == 130
