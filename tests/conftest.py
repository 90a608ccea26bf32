# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of whole programs; tests/README.md describes them."""
import json
import os
import shutil
import signal
import tempfile

import pytest
import yaml

from support import leftovers
from support.agents import Agents
from support.build import BUILD, MACHINE, SANITIZE, SOURCE
from support.cluster import Cluster, programs
from support.cluster.machines import Machines
from support.api_proxy import NodesProxy, kubeconfig
from support.cluster_jobs import in_namespace
from support.following import Following
from support.matrix import chosen
from support.mpi import ALL, BY_NAME
from support.nodes import Nodes
from support.pods import Pod
from support.registry import Registry
from support.run import Runner


def heed_interrupts():
    """A shell starts what runs in the background with these ignored, and so would be every program under test."""
    for signo, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(signo) is signal.SIG_IGN:
            signal.signal(signo, handler)


# By these git works on the repository whose hook runs the tests, wherever it is called, or as the user has set it up for one command:
# `git rev-parse --local-env-vars`, which is not asked, for a machine without git has tests to run.
GIT_LOCAL = {f"GIT_{each}" for each in """
    ALTERNATE_OBJECT_DIRECTORIES COMMON_DIR CONFIG CONFIG_COUNT CONFIG_PARAMETERS DIR GRAFT_FILE IMPLICIT_WORK_TREE INDEX_FILE
    INTERNAL_SUPER_PREFIX NO_REPLACE_OBJECTS OBJECT_DIRECTORY PREFIX REPLACE_REF_BASE SHALLOW_FILE WORK_TREE""".split()}
DROPPED = {"LANG", "LANGUAGE", *GIT_LOCAL}
DROPPED_FAMILIES = ("LC_", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")


def have_plain_environment():
    """In another language, others' programs (readelf, ldd) say the same in other words, and with another umask what tests install or
    unpack is not for everybody."""
    for name in [*os.environ]:
        if name in DROPPED or name.startswith(DROPPED_FAMILIES):
            del os.environ[name]
    os.environ["LC_ALL"] = "C.UTF-8"
    os.umask(0o022)


def read_yaml_by_libyaml():
    """Its loaders make the same as those of their names, which take seconds for the definition of DraJobs."""
    for name in ("SafeLoader", "BaseLoader"):
        setattr(yaml, name, getattr(yaml, f"C{name}", getattr(yaml, name)))


_folder = None  # of tmp_path, when it is ours to remove


def have_own_folder(config):
    """By itself, each pytest that ends removes what others of this user have left in a folder for all, however long that takes."""
    global _folder
    if not config.option.basetemp:
        _folder = config.option.basetemp = tempfile.mkdtemp(prefix="dt-pytest-", dir="/tmp")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(exitstatus):
    """What a failed case wrote stays."""
    if _folder and exitstatus != pytest.ExitCode.TESTS_FAILED:
        shutil.rmtree(_folder, ignore_errors=True)


def pytest_configure(config):
    have_plain_environment()
    read_yaml_by_libyaml()
    have_own_folder(config)
    heed_interrupts()
    leftovers.note_run()
    leftovers.make_shm_private()
    config.addinivalue_line("markers", "gate: stands for its family in the gate (scripts/test)")
    config.addinivalue_line("markers", "timed: asserts how long something takes; runs alone in programs with the label timed (scripts/test --all)")
    config.addinivalue_line("markers", "plain: skipped in sanitizer builds, with the reason given")
    config.addinivalue_line("markers", "matrix(n): in sanitizer builds each n values of its parameters meet once, unless DRARUN_SOAK is set")


def leave_out_of_matrix(config, items):
    """What a sanitizer sees depends on the values, hardly on all that meet; the plain build runs every case."""
    tests, out = {}, set()
    for item in items:
        if SANITIZE and not os.environ.get("DRARUN_SOAK") and item.get_closest_marker("matrix"):
            tests.setdefault(item.function, []).append(item)
    for each in tests.values():
        cases = [{name: repr(value) for name, value in item.callspec.params.items()} for item in each]
        kept = chosen(cases, each[0].get_closest_marker("matrix").args[0])
        out |= {item for item, case in zip(each, cases) if case not in kept}
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def leave_out_timed(config, items):
    """Unless they are chosen, by -m timed or by name."""
    if "timed" in config.option.markexpr or any("::" in word for word in config.args):
        return
    out = [item for item in items if item.get_closest_marker("timed")]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


def why_times_say_nothing():
    if SANITIZE:
        return "sanitizer build: its times say nothing"
    return f"the machine is slower than usual now, by a factor of about {MACHINE}: times say nothing" if MACHINE > 1 else ""


def pytest_collection_modifyitems(config, items):
    leave_out_of_matrix(config, items)
    leave_out_timed(config, items)
    for item in items:
        if item.get_closest_marker("timed") and (why := why_times_say_nothing()):
            item.add_marker(pytest.mark.skip(reason=why))
        marker = item.get_closest_marker("plain")
        if marker and SANITIZE:
            item.add_marker(pytest.mark.skip(reason=f"sanitizer build: {marker.args[0]}"))


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def build():
    return BUILD


@pytest.fixture(scope="session")
def examples():
    return BUILD / "bin" / "examples"


@pytest.fixture
def drarun():
    runner = Runner()
    if not runner.program.exists():
        pytest.fail(f"no {runner.program}: build first, or set DRARUN_BUILD", pytrace=False)
    yield runner
    runner.close()


@pytest.fixture(params=[mpi.name for mpi in ALL])
def mpi(request):
    """The test runs once with each MPI library."""
    return BY_NAME[request.param]


@pytest.fixture
def mpi_named():
    """mpi_named("openmpi5"): one of them."""
    return BY_NAME.__getitem__


@pytest.fixture
def nodes():
    """nodes(3): three machines made of namespaces, in one network; nodes(3, IPV6): of support/nodes.py."""
    made = []

    def make(count, *network):
        made.append(Nodes(count, *network))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def agents(drarun, tmp_path):
    """agents(2): two agents on the loopback. agents(nodes(3)): one on each node. They serve one job
    each; once=False: job after job. Give .options to drarun."""

    def start(where, once=True):
        if isinstance(where, int):
            places = [("127.0.0.1", ())] * where
        else:
            places = [(node.address, node.enter) for node in where]
        return Agents(drarun, tmp_path / "key", places, once)

    return start


@pytest.fixture(scope="session")
def control_plane():
    """A Kubernetes without nodes; nodes are objects."""
    with Cluster() as made:
        yield made


@pytest.fixture(scope="session")
def cluster():
    """A Kubernetes with two real nodes."""
    with Cluster(nodes=2, images=("busybox", "drarun")) as made:
        yield made


@pytest.fixture(scope="session")
def mpi_cluster():
    """One whose nodes have every MPI library."""
    with Cluster(nodes=2, images=("busybox", programs.BASE, "drarun")) as made:
        made.image(programs.NAME, files=programs.files(), base=programs.BASE)
        yield made


@pytest.fixture(scope="module")
def machines(cluster):
    """The nodes of `cluster` as captured machines, whose devices our node plugin publishes and prepares."""
    made = Machines(cluster)
    yield made
    made.stop()


@pytest.fixture
def jobs(cluster, drarun, tmp_path, request):
    """Jobs in a namespace of the test's own that must be as it was once they, their launchers and owners are gone."""
    with in_namespace(cluster, drarun, tmp_path, request.node.name) as made:
        yield made


@pytest.fixture
def jobs_proxy(jobs):
    """The API server behind a proxy, for one who may submit and lead jobs: .env."""
    there = jobs.namespace.name
    roles = [each for items in (jobs.install(), jobs.printed("--user-role")) for each in items if each["kind"] == "Role"]
    jobs.namespace.rbac_user({**roles[-1], "rules": [rule for role in roles for rule in role["rules"]]})
    made = NodesProxy(jobs.cluster)
    made.env = {"KUBECONFIG": str(jobs.cluster.keys.kubeconfig(
        jobs.folder / "proxy.conf", made.url, {"token": jobs.namespace.token("drarun-user")}, there))}
    yield made
    made.close()


ALL_RIGHTS = {"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "all"},
              "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}


@pytest.fixture
def serving(jobs, tmp_path):
    """serving("resource.k8s.io", "v1beta1"): an API server that has no other versions of that group; .env leads there. It stands
    before the real one."""
    made = []

    def start(group, *versions):
        proxy = NodesProxy(jobs.cluster)
        made.append(proxy)
        proxy.serve_only(group, versions)
        jobs.namespace.rbac_user(ALL_RIGHTS)
        config = kubeconfig(tmp_path / "served", proxy.url, {"token": jobs.namespace.token("all")},
                            {"certificate-authority": str(jobs.cluster.keys.folder / "ca.crt")}, jobs.namespace.name)
        proxy.env = {"KUBECONFIG": str(config)}
        return proxy
    yield start
    for each in made:
        each.close()


@pytest.fixture
def following(drarun, tmp_path):
    """`drarun run` of a job on a registry of objects, whose launchers the test plays."""
    with Registry().serving() as registry:
        yield Following(drarun, registry, tmp_path)


@pytest.fixture
def group(request):
    """The folder of a control group of version 1 with a limit: the parameter is its controller, file and value."""
    controller, file, limit = request.param
    place = f"/sys/fs/cgroup/{controller}/drarun-test-{os.getpid()}"
    try:
        os.mkdir(place)
        with open(f"{place}/{file}", "w") as f:
            f.write(limit)
    except OSError as e:
        pytest.skip(f"no control group of version 1 to be made here: {e}")
    yield place
    os.rmdir(place)


@pytest.fixture
def machine(source, tmp_path):
    """machine("a4-highgpu-8g", 2): options for so many nodes of that type."""
    def make(name, nodes=1):
        folders = source / "tests/data/fixtures", source / "tests/data/vectors/fixtures"
        fixture = json.loads(next(path for path in (folder / f"{name}.json" for folder in folders) if path.exists()).read_text())
        slices, objects = [], []
        for i in range(nodes):
            text = json.dumps(fixture["resourceSlices"]).replace(fixture["node"]["name"], f"node-{i}")
            slices += json.loads(text)
            labels = fixture["node"]["labels"] | {"kubernetes.io/hostname": f"node-{i}"}
            objects.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i}", "labels": labels}})
        words = []
        for option, items in (("--slices", slices), ("--nodes", objects)):
            path = tmp_path / f"{name}{option}.json"
            path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            words += [option, path]
        return words
    return make


@pytest.fixture
def pod(drarun, tmp_path):
    """pod(NAME=value...): an agent as in a pod with that environment; under, program and
    keep as for support.pods.Pod. All have one key."""
    made = []

    def make(under=(), program=BUILD / "bin" / "drarun-worker", keep=False, **env):
        made.append(Pod(drarun, tmp_path / "key", env, under, program, keep))
        return made[-1]

    yield make
    for each in made:
        each.close()
