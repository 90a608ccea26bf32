# SPDX-License-Identifier: Apache-2.0
"""drarun.ray in real Ray (scripts/fetch-ray), on two machines made of namespaces, and its examples."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

from support import fetched, ray_nodes, regress
from support.build import BUILD, patience
from support.nodes import Nodes
from support.python_package import in_folder
from support.run import output_of

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")

DRIVER_S = 200  # of a busy machine
PROLOGUE = """\
import json, os, socket, sys
import drarun, drarun.ray as dr, ray
address, root = sys.argv[1:3]

def start(base=None, **options):
    ray.init(address, runtime_env=dr.runtime_env(base, **options), logging_level="warning")

def tell(*values):
    print("TOLD", json.dumps(values))

def on(number):
    # an option: on that machine
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
    return On(next(each["NodeID"] for each in ray.nodes() if each["NodeManagerHostname"] == f"node{number}"), soft=False)

def refusal(call):
    try:
        call()
    except drarun.Error as error:
        return [type(error).__name__, str(error), [each.text for each in error.findings]]

@ray.remote(num_cpus=1, num_gpus=2, scheduling_strategy="SPREAD")
class Actor:
    def bind(self):
        bound = dr.bind()
        return dict(gpus=[gpu.id for gpu in bound.gpus], nics=bound.nics, rails=bound.rails, cpus=bound.cpus,
                    visible=os.environ.get("CUDA_VISIBLE_DEVICES"), host=socket.gethostname(), why=bound.why,
                    threads=[sorted(os.sched_getaffinity(int(each))) for each in os.listdir("/proc/self/task")])
    def environ(self):
        return dict(os.environ)
    def set(self, **values):
        os.environ.update(values)
    def forget(self, name):
        del os.environ[name]
    def traced(self):
        import tracemalloc
        return tracemalloc.is_tracing()
    def sleep(self):
        import time; time.sleep(3600)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")
    return in_folder(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def python():
    found, reason = fetched.interpreter("fetch-ray")
    return found or pytest.skip(reason)


@pytest.fixture(scope="module")
def cluster(package, python):
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    nodes = Nodes(2)
    made = ray_nodes.RayNodes(nodes, python, package)
    yield made
    made.close()
    nodes.close()


@pytest.fixture
def drive(cluster, drarun, tmp_path):
    """drive(code, "a4"): runs it on the first node, with the nodes showing that machine; what it tells, and all it says."""

    def run(code, shown="a4"):
        script = tmp_path / "driver.py"
        script.write_text(PROLOGUE + textwrap.dedent(code))
        done = drarun(script, cluster.address, cluster.root(shown), program=cluster.python, under=cluster.enter,
                      env=cluster.env, timeout=DRIVER_S).ok()
        told = next(line for line in done.out.splitlines() if line.startswith("TOLD "))  # Ray's own lines may come around it
        return json.loads(told.removeprefix("TOLD ")), done.out + done.err

    return run


@pytest.fixture
def example(cluster, drarun, source):
    def run(path, *words, timeout=DRIVER_S):
        return drarun(source / "examples" / path, "--address", cluster.address, *words, program=cluster.python,
                      under=cluster.enter, env=cluster.env, timeout=timeout)

    return run


def in_python(interpreter, environment, code):
    return output_of(interpreter, "-B", "-c", code, env={**os.environ, **environment})


# ---- without a cluster ----

def test_the_package_loads_no_ray(package):
    out = in_python(sys.executable, package, "import sys, drarun, drarun.ray; print(*[m for m in sys.modules if m == 'ray'])")
    assert out.strip() == ""


REFUSED = """
import drarun, drarun.ray, errno
for call in (drarun.ray.runtime_env, drarun.ray.bind, lambda: drarun.ray.check([])):
    try:
        call()
    except drarun.UsageError as error:
        print(errno.errorcode[error.code], error)
"""


def test_without_ray(package):
    out = in_python(sys.executable, package, REFUSED).splitlines()
    assert len(out) == 3 and all(re.match(r"ENOENT ray: No module named 'ray': install Ray 2\.9 or newer", line) for line in out)


@pytest.mark.parametrize("version,fields,says", [
    ("2.6.3", "set()", "version 2.6.3 has no worker_process_setup_hook: drarun.ray needs Ray 2.9 or newer"),
    ("2.8.1", "{'worker_process_setup_hook'}",
     "version 2.8.1 has no worker_process_setup_hook by name: drarun.ray needs Ray 2.9 or newer"),
    ("9.0.0", "set()", "version 9.0.0 has no worker_process_setup_hook: "),
])
def test_a_ray_without_the_hook_is_refused(package, tmp_path, version, fields, says):
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/__init__.py").write_text(f"__version__ = {version!r}\n")
    (tmp_path / "ray/runtime_env.py").write_text(f"class RuntimeEnv:\n    known_fields = {fields}\n")
    environment = {**package, "PYTHONPATH": f"{tmp_path}:{package['PYTHONPATH']}"}
    out = in_python(sys.executable, environment, REFUSED).splitlines()
    assert len(out) == 3 and all(f"ray: {says}" in line and line.startswith("ENOTSUP ") for line in out)


WARNED = """
import drarun, drarun.ray
drarun.ray.runtime_env()
try:
    drarun.ray.check([])
except drarun.UsageError as error:
    print(error)
"""


@pytest.mark.parametrize("version,connected,address,warns,says", [
    ("2.54.0", False, "", "Ray 2.54.0 ends a ray.init() inside a worker", "Ray is not initialized"),
    ("2.55.0", False, "ray://head:10001", "Ray Client (ray://) runs no hook", "Ray is not initialized"),
    ("2.55.0", True, "", "Ray Client (ray://) runs no hook", "this driver is a Ray Client (ray://), which runs no hook"),
    ("2.55.0", False, "", "", "Ray is not initialized"),
])
def test_where_no_hook_can_run(package, tmp_path, version, connected, address, warns, says):
    for folder in ("ray", "ray/util", "ray/util/client"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "ray/__init__.py").write_text(f"__version__ = {version!r}\ndef is_initialized(): return False\n")
    (tmp_path / "ray/runtime_env.py").write_text("class RuntimeEnv:\n    known_fields = {'worker_process_setup_hook'}\n")
    (tmp_path / "ray/util/client/__init__.py").write_text(f"class ray:\n    is_connected = staticmethod(lambda: {connected})\n")
    environment = {**os.environ, **package, "PYTHONPATH": f"{tmp_path}:{package['PYTHONPATH']}", "RAY_ADDRESS": address}
    run = subprocess.run([sys.executable, "-B", "-c", WARNED], env=environment, capture_output=True, text=True, timeout=patience())
    assert run.returncode == 0 and says in run.stdout and (warns in run.stderr if warns else not run.stderr), run


def test_a_runtime_env_keeps_what_the_user_has_set(package, python):
    out = in_python(python, package, """if True:
        import drarun, drarun.ray as dr, json
        def refused(call):
            try: return call()
            except (drarun.Error, TypeError) as error: return f"{type(error).__name__}: {error}"
        print(json.dumps([
            dr.runtime_env(),
            dr.runtime_env({"env_vars": {"NCCL_DEBUG": "INFO"}, "working_dir": ".", "worker_process_setup_hook": "mine.f"},
                           network="any", profiles="/site.json", profile="of-the-site"),
            dr.runtime_env(dr.runtime_env()),
            *map(refused, (
                lambda: dr.runtime_env({"worker_process_setup_hook": print}),
                lambda: dr.runtime_env({"worker_process_setup_hook": "mine"}), lambda: dr.runtime_env([]),
                lambda: dr.runtime_env({"env_vars": "A=b"}), lambda: dr.runtime_env(network="loud"),
                lambda: dr.runtime_env(network=3), lambda: dr.runtime_env(profile="nobody"),
                lambda: dr.runtime_env(nccl_version="new"), lambda: dr.setup(networks="any"),
                lambda: dr.bind(), lambda: dr.check([1]), lambda: dr.check([], backend="mpi"),
                lambda: dr.check([], timeout=-1)))]))
        """)
    plain, more, twice, *refused = json.loads(out)
    assert plain == twice == {"env_vars": {"DRARUN_RAY": "{}"}, "worker_process_setup_hook": "drarun.ray.hook"}
    assert more["working_dir"] == "." and more["env_vars"]["NCCL_DEBUG"] == "INFO"
    assert json.loads(more["env_vars"]["DRARUN_RAY"]) == {
        "network": "any", "profile": "of-the-site", "profiles": "/site.json", "then": "mine.f"}
    for text, says in zip(refused, (
            "UsageError: worker_process_setup_hook: <built-in function print> is there already: give its name",
            "UsageError: worker_process_setup_hook: 'mine' is there already: give its name",
            "UsageError: a runtime_env is a dict, not list", "UsageError: env_vars: expected a dict, got str",
            "UsageError: network: expected rdma or any, got \"loud\"", "UsageError: network: expected a text, got int",
            "SpecError: no profile \"nobody\"", "UsageError: NCCL version: expected one like", "UsageError: unknown networks",
            "UsageError: bind: this process is no worker of Ray's", "UsageError: check: Ray is not initialized",
            "UsageError: backend: expected nccl or gloo, got 'mpi'", "UsageError: timeout: expected seconds"), strict=True):
        assert text.startswith(says), text


DERIVES_AGAIN = """
import drarun, drarun.ray as dr, os, sys
os.environ["NCCL_CROSS_NIC"] = "2"
dr.setup(root=sys.argv[1])
again = dr.setup(root=sys.argv[1])
assert {each.name for each in again.variables if each.rule == "user"} == {"NCCL_CROSS_NIC"}, again.text(explain=True)
assert os.environ["LD_LIBRARY_PATH"].count("/usr/local/gib/lib64") == 1
for wrong in ("{", "[]", '{"then": 3}', '{"later": "x"}'):
    os.environ["DRARUN_RAY"] = wrong
    try:
        dr.hook()
    except drarun.UsageError as error:
        print(error)
"""


def test_what_drarun_has_set_is_not_the_users(package, tmp_path):
    """An outer drarun env, or a setup() before."""
    ray_nodes.machine(tmp_path / "a4")
    out = output_of(sys.executable, "-B", "-c", DERIVES_AGAIN, tmp_path / "a4", env={**os.environ, **package}).splitlines()
    assert len(out) == 4 and all(line.startswith("DRARUN_RAY: ") for line in out), out
    assert out[3] == "DRARUN_RAY: unknown later: the driver's drarun is newer than the worker's?"


BINDS = """
import os, threading
from drarun.ray import _bind
all_of_them, shown = os.listdir, []
def listed(path):  # a thread is made while the list is walked: the first one lacks it
    now = all_of_them(path)
    shown.append(now)
    return [str(os.getpid())] if len(shown) == 1 else now
end = threading.Event()
other = threading.Thread(target=end.wait)
other.start()
os.listdir = listed
first = min(os.sched_getaffinity(0))
print(_bind._bind(frozenset({first})) == ((first,), ""), os.sched_getaffinity(other.native_id) == {first})
end.set()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: there is nothing to bind to")
def test_a_thread_that_is_made_meanwhile_is_bound(package):
    out = output_of(sys.executable, "-B", "-c", BINDS, env={**os.environ, **package})
    assert out == "True True\n"


CHOOSES = """
import drarun, os, sys
from drarun.ray import _bind, _devices
held = _devices.held(drarun.env(root=sys.argv[1]))
print(*[gpu.id for gpu in _bind.chosen(held, ["5", "3"])], *[gpu.id for gpu in _bind.chosen(held, [held.gpus[6].uuid])])
os.environ["CUDA_VISIBLE_DEVICES"] = "5,3"
_bind._order(["5", "3"], ["3", "5"])
print(os.environ["CUDA_VISIBLE_DEVICES"])
_bind._order(["1", "0"], ["0", "1"])
print(os.environ["CUDA_VISIBLE_DEVICES"])
before = os.sched_getaffinity(0)
print(_bind._bind(frozenset({4000, 4001, 4003})), _bind._bind(frozenset()), os.sched_getaffinity(0) == before)
for ids, order in (["8"], "PCI_BUS_ID"), (["GPU-0"], "PCI_BUS_ID"), (["1"], "FASTEST_FIRST"):
    os.environ["CUDA_DEVICE_ORDER"] = order
    try:
        _bind.chosen(held, ids)
    except drarun.UsageError as error:
        print(error)
"""


def test_which_gpus_an_actor_has(package, tmp_path):
    ray_nodes.machine(tmp_path / "a4")
    chosen, ordered, others, bound, *wrong = output_of(sys.executable, "-B", "-c", CHOOSES, tmp_path / "a4",
                                                       env={**os.environ, **package}).splitlines()
    assert chosen == "3 5 6" and ordered == others == "3,5"  # what somebody else than Ray has set is left alone
    assert "the process may use none: 4000-4001,4003 of " in bound and "is not known" in bound and bound.endswith(" True")
    assert wrong == ["bind: Ray gave GPU 8, and this pod holds 0, 1, 2, 3, 4, 5, 6, 7: start Ray with --num-gpus=8 by "
                     "\"drarun env -- ray start ...\", which names them",
                     wrong[0].replace("GPU 8", "GPU GPU-0"),
                     "bind: with CUDA_DEVICE_ORDER=FASTEST_FIRST nobody knows which GPU 1 is: unset it"]


ROCM = """
import drarun, drarun.ray, os, sys
from drarun.ray import _bind, _devices
made = drarun.ray.setup(root=sys.argv[1], network="any")
print(made["HIP_VISIBLE_DEVICES"], "HIP_VISIBLE_DEVICES" in os.environ)
held = _devices.held(made)
print(*[gpu.pci for ids in (["0"], ["1"]) for gpu in _bind.chosen(held, ids)])
os.environ["HIP_VISIBLE_DEVICES"] = "0,1"
_bind._order(["0", "1"], [gpu.id for gpu in _bind.chosen(held, ["0", "1"])])
print(os.environ["HIP_VISIBLE_DEVICES"])
"""


def test_which_of_amds_gpus_an_actor_has(package, tmp_path):
    """Ray has ROCm's numbers, in the order of the KFD's nodes, and sets HIP's variable."""
    nodes = [(0, 0, 64), (0x23, 129, 0), (0x13, 128, 0)]
    regress.make_tree({
        "gpus": [{"path": f"pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{bus + 3:02x}:00.0", "vendor": "0x1002", "class": "0x120000"}
                 for bus in (0x10, 0x20)],
        "nics": [], "netdevs": [{"name": "eth0"}],
        "files": {f"sys/class/kfd/kfd/topology/nodes/{number}/properties":
                  f"cpu_cores_count {cpus}\nsimd_count {0 if cpus else 1216}\nlocation_id {bus << 8}\ndomain 0\n"
                  f"drm_render_minor {render}\nunique_id 1234" for number, (bus, render, cpus) in enumerate(nodes)},
    }, tmp_path / "amd")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_VISIBLE_DEVICES")}
    out = output_of(sys.executable, "-B", "-c", ROCM, tmp_path / "amd", env={**environment, **package}).splitlines()
    assert out == ["1,0 False", "0000:23:00.0 0000:13:00.0", "1,0"]


# ---- workers ----

def test_each_worker_has_the_environment_of_its_node(drive, cluster, drarun):
    """What drarun env says there, but for what the user has set, and for the GPUs, which Ray gives out."""
    (first, second, traced), said = drive("""
        start({"env_vars": {"NCCL_CROSS_NIC": "2", "MINE": "1"}, "worker_process_setup_hook": "tracemalloc.start"}, root=root)
        actors = [Actor.remote() for _ in range(2)]
        first, second = ray.get([actor.environ.remote() for actor in actors])
        tell(first, second, ray.get(actors[0].traced.remote()))
        """)
    text = drarun("env", "--root", cluster.root("a4"), "--format", "docker", under=cluster.enter).ok().out
    derived = dict(line.partition("=")[::2] for line in text.splitlines())
    assert derived.pop("CUDA_VISIBLE_DEVICES") == "0,1,2,3,4,5,6,7" and derived["NCCL_NET"] == "gIB"
    for environ in first, second:
        assert {name: environ.get(name) for name in derived} == {**derived, "NCCL_CROSS_NIC": "2"}
        assert environ["MINE"] == "1" and environ["CUDA_VISIBLE_DEVICES"] == "0,1"
        assert "NCCL_CROSS_NIC" not in environ["DRARUN_DERIVED"] and "NCCL_NET=gIB\n" in environ["DRARUN_DERIVED"]
    assert traced  # by the user's own hook, which runs after ours
    assert "drarun: USER_OVERRIDES_PROFILE: NCCL_CROSS_NIC=2 (gke-a4: 0)" in said
    assert "drarun: LATE_LIBRARY_PATH: LD_LIBRARY_PATH is read when a process starts" in said


def test_nodes_without_devices_are_no_error(drive):
    (environ, bound, wrong), said = drive("""
        start(root=root)
        actor = Actor.options(num_gpus=0).remote()
        tell(ray.get(actor.environ.remote()), ray.get(actor.bind.remote()),
             refusal(lambda: ray.get(Actor.remote().bind.remote())))
        """, "bare")
    assert bound["gpus"] == bound["cpus"] == [] and bound["why"] == "Ray gave it no GPUs"
    assert wrong[0].endswith("(UsageError)") and "bind: Ray gave GPU 0, and this pod holds none: " in wrong[1]
    assert environ["NCCL_NET"] == "Socket" and "DRARUN_DERIVED" in environ and "drarun: " not in said


def test_gpus_without_rdma_do_not_start(drive):
    """The second node has GPUs and no NIC: its workers end with the reason, which check tells."""
    (kind, text, _), said = drive("""
        start(root=root)
        actors = [Actor.options(scheduling_strategy=on(i)).remote() for i in (0, 1)]
        tell(*refusal(lambda: dr.check(actors, timeout=150)))
        """, "tcp")
    assert kind == "InfrastructureError", said
    assert re.match(r"actor 1 \(Actor\(Actor, \w+\)\) is dead: drarun\S*SpecError: refused: NO_RDMA_NIC: .*"
                    r"runtime_env\(network=\"any\"\) would use TCP", text), text


def test_actors_are_bound_beside_their_gpus(drive):
    """Four actors with two GPUs each fill a machine: each has the NICs of its GPUs and the CPU of their NUMA node, on
    every thread; CUDA's devices are in the order of PCI addresses."""
    (bound, order, summary, hosts), said = drive("""
        start(root=root)
        actors = [Actor.options(scheduling_strategy=on(i % 2)).remote() for i in range(6)]
        group = dr.check(actors, timeout=150)
        tell(ray.get([actor.bind.remote() for actor in actors]), group.order, group.summary,
             [report.host for report in group.reports])
        """)
    assert hosts == ["node0", "node1"] * 3 and [each["host"] for each in bound] == hosts
    assert summary == "6 on 2 nodes: 8 HCAs each, no NCCL, gke-a4"
    online = os.sched_getaffinity(0)
    for each in bound:
        numbers = [int(gpu) for gpu in each["gpus"]]
        assert each["visible"] == ",".join(each["gpus"]) and numbers == sorted(numbers) and len(numbers) == 2
        assert each["nics"] == [f"mlx5_{number}" for number in numbers] and each["rails"] == numbers
        near = {number // 4 for number in numbers} & online
        assert each["cpus"] == sorted(near) and all(thread == sorted(near) for thread in each["threads"]) or not near, each
    for host in ("node0", "node1"):
        mine = [bound[number]["gpus"] for number in order if hosts[number] == host]
        assert mine == sorted(mine) and sorted(sum(mine, [])) == [str(number) for number in range(6)]
    assert [hosts[number] for number in order] == ["node0"] * 3 + ["node1"] * 3


# ---- groups ----

def test_actors_that_differ_are_named(drive):
    (uneven, changed, gloo, agreed), _ = drive(f"""
        start(root=root)
        actors = [Actor.options(scheduling_strategy=on(i % 2)).remote() for i in range(3)]
        uneven = refusal(lambda: dr.check(actors, timeout=150))
        one = [actors[0], actors[0]]
        agreed = dr.check(one).summary
        ray.get(actors[1].set.remote(NCCL_NET_GDR_LEVEL="SYS", NCCL_ALGO="Tree", NCCL_DEBUG="WARN", GLOO_X="1",
                                     LD_LIBRARY_PATH="{BUILD}/tests/standin/nccl_old"))
        ray.get(actors[2].forget.remote("DRARUN_DERIVED"))
        changed = refusal(lambda: dr.check(actors))
        gloo = refusal(lambda: dr.check(actors, backend="gloo"))
        tell(uneven, changed, gloo, agreed)
        """, "uneven")
    kind, text, findings = uneven
    assert kind == "PreflightError" and text.startswith("they do not fit into one nccl group: HCAs: 8 on actor 0 "), text
    assert re.search(r"; 7 on actor 1 \(Actor\(Actor, \w{8}\)\) on node1 \(10\.77\.0\.2\): ", text) and "the same claim" in text
    assert any(line.startswith("rails: 0,1,2,3,4,5,6,7 on actor") and "; 0,1,2,3,4,5,6 on actor" in line for line in findings)
    said = "\n".join(changed[2])
    assert "NCCL_ALGO: not set on actor 0" in said and "; Tree on actor 1 (Actor(Actor, " in said
    assert re.search(r"^NCCL_NET_GDR_LEVEL: PIX on actor 0 .*; SYS on actor 1 .*: leave it to drarun", said, re.M)
    assert re.search(r"^NCCL: none on actor 0 .*; 2\.10\.3 on actor 1 .*: use one image", said, re.M)
    assert re.search(r"^environment by drarun: yes on actor 0 .*; no on actor 2 .*: give ray\.init\(\)", said, re.M)
    assert "NCCL_DEBUG" not in said and [line.partition(":")[0] for line in gloo[2]] == ["environment by drarun", "GLOO_X"]
    assert agreed.startswith("2 on 1 node: 8 HCAs each, ")


def test_peers_that_never_come(drive):
    """A deadline, and what each waits for."""
    (waiting, busy, bundles, garbage), _ = drive("""
        from ray.util.placement_group import placement_group
        start(root=root)
        big, actor = Actor.options(num_cpus=100).remote(), Actor.remote()
        dr.check([actor], timeout=150)
        waiting = refusal(lambda: dr.check([actor, big], timeout=8))
        actor.sleep.remote()
        busy = refusal(lambda: dr.check([actor], timeout=1))
        room = placement_group([{"CPU": 1}, {"CPU": 64, "GPU": 9}])
        tell(waiting, busy, refusal(lambda: dr.check(room, timeout=1)),
             [refusal(lambda: dr.check(each)) for each in ([], "actors", 3, [actor, None])])
        """, "bare")
    assert waiting[0] == busy[0] == bundles[0] == "TimeoutError"
    assert re.match(r"1 of 2 did not answer within 8 s: actor 1 \(Actor\(Actor, \w+\)\): has not started: Ray found no room for "
                    r"it.*; free in the cluster: [\d.]+ of 8 CPU, \d+ of 16 GPU$", waiting[1]), waiting
    assert "runs, but is busy with another call: check before the group begins" in busy[1]
    assert bundles[1].startswith("the placement group has no room after 1 s: it wants 1 CPU + 64 CPU, 9 GPU; free in the cluster")
    assert [each[:2] for each in garbage] == [
        ["UsageError", text] for text in (
            "actors: the list is empty", "actors: expected a list of actors or a placement group, got str",
            "actors: expected a list of actors or a placement group, got int",
            "actors: expected handles of actors, got NoneType at 1")]


# ---- examples ----

@pytest.fixture
def torch(python):
    if output_of(python, "-c", "import importlib.util; print(importlib.util.find_spec('torch'))").strip() == "None":
        pytest.skip("no torch in Debian's python3; run scripts/setup --test")


@pytest.mark.parametrize("name,actors,total", [("all_reduce", 4, 10), ("all_reduce_torch", 2, 3)])
def test_all_reduce(example, torch, name, actors, total):
    out = example(f"ray/{name}.py", "--actors", actors).ok().out
    assert f"{name}: {actors} on 2 nodes: 0 HCAs each, no NCCL, socket; gloo: 1048576 elements, sum {total}, right on every rank" in out


def test_training(example, torch):
    out = example("ray-train/train.py").ok().out
    assert out.count("loss") == 10
    assert "ray-train: 2 workers on 2 nodes, y = 3.000 x -1.000, the same and right on every one" in out


def test_training_without_room(example, torch):
    done = example("ray-train/train.py", "--workers", 40, "--timeout", 1)
    assert done.rc == 1 and "the placement group has no room after 1 s" in done.err


# ---- the end ----

def test_nothing_of_ray_is_left(cluster):
    folder = cluster.folder
    assert any("raylet" in line for line in cluster.processes().values())
    assert cluster.close() == {} and not folder.exists()
