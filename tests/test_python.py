# SPDX-License-Identifier: Apache-2.0
"""The Python package as its users have it: a wheel, installed in a fresh environment, over libdrarun."""
import asyncio
import copy
import inspect
import json
import os
import pickle
import re
import shutil
import socket
import statistics
import subprocess
import sys
import sysconfig
import threading
import time
import tomllib
from pathlib import Path

import pytest

from support.build import patience
from support.nccl_tests import Run
from support.registry import Registry, path_of
from support.run import output_of as ok
from support.sysfs_tree import make_tree
from support.timed import and_timed

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")

JOB = "jobs/half-nodes-aligned.yaml"
SLICES = "clusters/a4-two-nodes.json"
SPEC = {"spec": {"workers": 2, "image": "example.org/a", "command": ["true"]}}
CURE = "scripts/setup --test installs it"


@pytest.fixture(scope="module")
def wheel(build, source, tmp_path_factory):
    for module in ("cffi", "setuptools", "wheel", "pip"):
        pytest.importorskip(module, reason=f"no python3-{module}: {CURE}")
    copy = tmp_path_factory.mktemp("source")  # setuptools writes beside its input
    shutil.copy(source / "LICENSE", copy)
    for part in ("python", "include"):
        shutil.copytree(source / part, copy / part, symlinks=True,
                        ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "_api.py"))
    shutil.copy(source / "CMakeLists.txt", copy)
    before = copy / f"python/build/lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}/drarun"  # of an earlier release, built in the same clone
    before.mkdir(parents=True)
    (before / "removed.py").touch()
    ok(sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "wheel", "--no-index", "--no-deps",
       "--no-build-isolation", "-w", copy, copy / "python", env={**os.environ, "DRARUN_BUILD": str(build)})
    return next(copy.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A fresh environment's interpreter; of others' packages it has cffi, from the machine."""
    venv = tmp_path_factory.mktemp("venv")
    ok(sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv)
    ok(sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--python", venv / "bin/python", "install",
       "--no-index", wheel)
    return venv / "bin/python"


@pytest.fixture(scope="module")
def py(python):
    """The installed package, in this process."""
    sys.path.insert(0, ok(python, "-c", "import drarun; print(drarun.__path__[0])").strip().rpartition("/")[0])
    import drarun
    yield drarun
    del sys.path[0]


@pytest.fixture(scope="module")
def machine(source, tmp_path_factory):
    """What a node with 8 GPUs and 8 NICs shows."""
    root = tmp_path_factory.mktemp("root")
    make_tree(json.loads((source / "tests/data/fixtures/a4-highgpu-8g.json").read_text()), root)
    return root


@pytest.fixture(scope="module")
def examples_dir(source):
    return source / "examples"


# ---- the package ----

def test_wheel_has_the_library_and_its_types(wheel, python):
    assert re.fullmatch(r"drarun-[\d.]+-py3-none-manylinux_2_34_\w+\.whl", wheel.name)
    listed = ok(sys.executable, "-m", "zipfile", "-l", wheel)
    for name in ("drarun/py.typed", "drarun/ray/__init__.py", "drarun/_api.py", "drarun/libdrarun.so.0"):
        assert name in listed
    assert "drarun/removed.py" not in listed
    out = ok(python, "-c", "import drarun, os; print(drarun.__file__); print(open('/proc/self/maps').read())",
             env={name: value for name, value in os.environ.items() if name != "DRARUN_LIBRARY"})
    folder = os.path.dirname(out.splitlines()[0])
    assert f"{folder}/libdrarun.so.0" in out and str(python.parent.parent) in folder


def test_license_for_every_setuptools(source, wheel, tmp_path):
    """A build takes the newest one, which is to refuse a table after February 2027; Debian's refuses a text."""
    project = tomllib.loads((source / "python/pyproject.toml").read_text())["project"]
    assert "license" in project["dynamic"] and not [each for each in project["classifiers"] if each.startswith("License ::")]
    ok(sys.executable, "-m", "zipfile", "-e", wheel, tmp_path)
    about, = tmp_path.glob("*.dist-info/METADATA")
    assert "\nLicense: Apache-2.0\n" in about.read_text()


@pytest.mark.parametrize("library,says", [
    ("/nowhere/libdrarun.so.0", "looked for DRARUN_LIBRARY: "),
    ("libc.so.6", "is version ? and too old for this package: it lacks drarun_"),
])
def test_a_wrong_library_is_refused(python, library, says):
    run = subprocess.run([python, "-c", "import drarun"], capture_output=True, text=True, timeout=patience(),
                         env={**os.environ, "DRARUN_LIBRARY": library})
    assert run.returncode == 1 and "ImportError: drarun: " in run.stderr and says in run.stderr, run.stderr


def test_cffi_is_missing(python, tmp_path):
    """As after pip install --no-deps."""
    (tmp_path / "_cffi_backend.py").write_text("raise ModuleNotFoundError(\"No module named '_cffi_backend'\", name='_cffi_backend')\n")
    run = subprocess.run([python, "-c", "import drarun"], capture_output=True, text=True, timeout=patience(), env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert run.returncode == 1 and run.stderr.endswith("ImportError: drarun: cffi is missing: pip install cffi\n"), run.stderr


def test_a_class_for_each_kind_of_error(py, source):
    from drarun import _errors, _library
    header = (source / "include/drarun/error.h").read_text()
    statuses = dict(re.findall(r"(DRARUN_ERR_\w+), +/\*.*?(\d+)(?:,[^:]*)? \*/", header))
    assert len(statuses) == 10
    for name, status in statuses.items():
        kind = getattr(_library.lib, name)
        word = _library.string(_library.lib.drarun_error_kind_name(kind))
        each = _errors.KINDS.pop(word)
        assert each is getattr(py, each.__name__) and issubclass(each, py.Error)
        assert each.exit_status == int(status) == _library.lib.drarun_exit_status(kind)
        _errors.KINDS[word] = each
    assert len(_errors.KINDS) == len(statuses)


@pytest.mark.parametrize("kind,function", [("env", "env"), ("plan", "plan"), ("render", "Job.render"), ("spec", "Job")])
def test_each_option_of_the_library_can_be_given(py, kind, function):
    from drarun._library import ffi
    members = {name.rstrip("_") for name, _ in ffi.typeof(f"struct drarun_{kind}_options").fields} - {"size", "note_arg"}
    called = py
    for name in function.split("."):
        called = getattr(called, name)
    assert members <= {name.rstrip("_") for name in inspect.signature(called).parameters}


def test_ray_workers_get_the_options_of_env(py):
    import drarun.ray
    from drarun.ray import _options
    env, given = (set(inspect.signature(each).parameters) for each in (py.env, drarun.ray.runtime_env))
    assert given - {"base"} == set(_options.NAMES) == env - {"claims", "slices", "nodes", "pod", "probe", "run_script"}


def test_all_is_documented(py):
    import drarun.ray
    for module, name in [*((py, name) for name in py.__all__), *((drarun.ray, name) for name in drarun.ray.__all__)]:
        each = getattr(module, name)
        if callable(each) and each is not py.JobLike:
            assert each.__doc__, name
            for member, function in inspect.getmembers(each, inspect.isfunction):
                assert member.startswith("_") or function.__doc__, f"{name}.{member}"


# ---- specs ----

TYPED = """
import drarun
job = drarun.Job("job.yaml")
status: int = drarun.run(job, timeout=5.0, replace=True, progress=None)
async def all() -> None:
    known: int = await drarun.aio.run(job, timeout=5.0)
    plan: drarun.Plan = await drarun.aio.plan(job, cluster=drarun.Cluster())
    lines: list[drarun.Output] = await drarun.aio.logs(await drarun.aio.submit(job, name="a"), rank=1)
    found: drarun.Submitted = await drarun.aio.job(drarun.Cluster(), "a")
    spec: str = (await drarun.aio.document(found))["kind"]
"""


@pytest.mark.parametrize("line,says", [
    ("", ""),
    ("drarun.run(job, timeot=5)", 'Unexpected keyword argument "timeot" for "run"'),
    ("drarun.submit(job, workers='2')", 'Argument "workers" to "submit" has incompatible type "str"'),
    ("drarun.render(job, namspace='a')", 'Unexpected keyword argument "namspace" for "render"'),
    ("drarun.aio.run(job, timeot=5)", 'Unexpected keyword argument "timeot"'),
    ("drarun.aio.follow(drarun.submit(job), rnk=1)", 'Unexpected keyword argument "rnk"'),
    ("drarun.aio.plan(job, slice='a')", 'Unexpected keyword argument "slice" for "plan"'),
], ids=lambda each: each.split("(")[0] or "right")
def test_type_checkers_know_each_argument(python, tmp_path, line, says):
    mypy = shutil.which("mypy")
    if not mypy:
        pytest.skip(f"no mypy: {CURE}")
    (tmp_path / "program.py").write_text(f"{TYPED}{line}\n")
    run = subprocess.run([mypy, "--strict", "--cache-dir", tmp_path.parent / "mypy", "--python-executable", python, "program.py"], cwd=tmp_path,
                         capture_output=True, text=True, timeout=patience(120))
    assert run.returncode == (1 if says else 0) and says in run.stdout, run.stdout + run.stderr


def test_a_job_from_a_file_a_text_and_a_dict(py, examples_dir):
    path = examples_dir / JOB
    jobs = [py.Job(path), py.Job(str(path)), py.Job(path.read_text())]
    jobs.append(py.Job(jobs[0].document))
    jobs.append(py.Job(json.dumps(jobs[0].document)))
    assert {(job.name, job.workers, job.namespace) for job in jobs} == {("all-gather-4x4", 4, None)}
    assert all(job.document == jobs[0].document for job in jobs)
    assert repr(jobs[0]) == "<drarun.Job all-gather-4x4, 4 workers, 4 GPUs each, 4 NICs each>"
    assert pickle.loads(pickle.dumps(jobs[0])).document == jobs[0].document
    assert py.validate(path) == ()


def test_texts_in_a_dict_arrive_as_they_are(py):
    texts = ["", " a", "yes", "0x1F", "a: b", "#", "\t\n\r", "\x01\x7f\x85", "\u2028\ufeff", "ü€😀", "'\"\\", "1e400"]
    job = py.Job({"spec": {**SPEC["spec"], "command": texts}})
    assert job.document["spec"]["command"] == texts


@pytest.mark.parametrize("change,path,says", [
    ({"workers": "two"}, "spec.workers", "expected an integer of at least 1, got \"two\""),
    ({"workers": {1}}, "spec.workers", "got set"),
    ({"workers": 10 ** 400}, "spec.workers", "expected a number of 64 bits, got 401 digits"),
    ({"workers": float("inf")}, "spec.workers", "expected a finite number, got inf"),
    ({"worker": 2}, "spec.worker", "did you mean workers?"),
    ({"command": ["a", b"b"]}, "spec.command[1]", "got bytes"),
    ({"devices": {1: "a"}}, "spec.devices", "expected keys that are texts, got int"),
    ({"failurePolicy": {"rules": [{True: {"exitCodes": [3]}}]}}, "spec.failurePolicy.rules[0]",
     "got True: PyYAML reads the keys on and off as True and False: quote them"),
    ({"command": ["a", "\udc80"]}, "spec.command[1]", "half of a surrogate pair"),
    ({"image": None}, "spec.image", ""),
    ({"devices": object()}, "spec.devices", "got object"),
])
def test_a_garbage_dict_is_refused_with_the_path(py, change, path, says):
    with pytest.raises(py.SpecError) as refused:
        py.Job({"spec": {**SPEC["spec"], **change}})
    error = refused.value
    assert error.path == path and path in str(error) and says in str(error), error
    assert (error.kind, error.exit_status, error.line, error.column) == ("spec", 65, None, None)
    assert not re.search(r":\d+:", str(error) + "".join(map(str, error.findings)))
    assert pickle.loads(pickle.dumps(error)).path == path


def test_a_dict_of_what_programs_have(py):
    """Paths, and numbers of numpy."""
    class Three:
        def __index__(self):
            return 3
    job = py.Job({"spec": {**SPEC["spec"], "workers": Three(), "command": [Path("/bin/true"), "a"]}})
    assert job.workers == 3 and job.document["spec"]["command"] == ["/bin/true", "a"]


def test_what_other_processes_get(py, machine, tmp_path):
    """A pickle has all of an environment, and a job's site profiles by their file."""
    env = py.env(root=machine)
    again = pickle.loads(pickle.dumps(env))
    assert dict(again) == dict(env) and repr(again) == repr(env) and again.variables == env.variables and again.warnings == env.warnings
    for format in ("sh", "json", "docker", "nccl.conf"):
        for explain in (False, True):
            assert again.text(format, explain=explain) == env.text(format, explain=explain)
    with pytest.raises(ValueError, match="'xml' is no format: sh, json, docker, nccl.conf"):
        again.text("xml")
    assert dict(pickle.loads(pickle.dumps(again))) == dict(env)
    site = tmp_path / "site.yaml"
    site.write_text("profiles:\n- name: ours\n  detect: {instanceType: [a4-*]}\n"
                    "  variables: [{name: NCCL_IB_TC, value: '96', reason: our switches}]\n")
    spec = {"spec": {**SPEC["spec"], "devices": {"gpus": {"count": 1}}, "nccl": {"profile": "ours"}}}
    job = py.Job(spec, profiles=site)
    for copied in (pickle.loads(pickle.dumps(job)), copy.deepcopy(job)):
        assert copied.document == job.document
    with pytest.raises(py.SpecError, match='no profile "ours"'):
        py.Job(spec)
    with pytest.raises(py.Error, match="nowhere"):  # the job is one for a step, too
        py.step.run(job, name="a", cluster=py.Cluster(kubeconfig=tmp_path / "nowhere"))
    with pytest.raises(TypeError, match="a drarun.Plan cannot be pickled: hand on its document"):
        pickle.dumps(py.plan(SPEC))


def mutated(value, random, depth=0):
    """Garbage that was a document: some value of it is another, gone, doubled or of a Python type."""
    garbage = [None, True, -1, 0, 2 ** 63, 10 ** 400, 1.5, float("nan"), "", "x" * 5000, "\0", "\udc80", "${HOME}", b"", set(), [],
               {}, [[]], {"": 1}, {1: 2}, (), object, Ellipsis, range(3), "0", "1e9", "true", "\u2028", {"spec": {}}]
    if depth and random.random() < 0.12:
        return random.choice(garbage)
    if isinstance(value, dict):
        made = {key: mutated(each, random, depth + 1) for key, each in value.items() if random.random() > 0.03}
        if random.random() < 0.06:
            made[random.choice(["", "spec", "workers", "x" * 300, "\n", 7, None])] = random.choice(garbage)
        return made
    if isinstance(value, list):
        return [mutated(each, random, depth + 1) for each in value for _ in range(random.choice([1, 1, 1, 1, 0, 2]))]
    return value


def test_garbage_dicts(py, examples_dir):
    """Each is a job, with which all can be done that a job is for, or is refused with a path."""
    from random import Random
    right = [py.Job(path).document for path in sorted((examples_dir / "jobs").glob("*.yaml"))]
    jobs = refused = 0
    for seed in range(600):
        random = Random(seed)
        try:
            job = py.Job(mutated(random.choice(right), random))
        except py.SpecError as error:
            refused += 1
            assert error.kind == "spec" and str(error).startswith("job: ") and len(error.findings) < 100, (seed, error)
            assert "\n" not in str(error) and all(each.path is None or each.path in str(each) for each in error.findings), (seed, error)
            continue
        jobs += 1
        assert py.Job(job.document).document == job.document, seed
        for call in (job.render, lambda: py.plan(job).document()):
            try:
                assert call(), seed
            except (py.SpecError, py.UsageError):
                pass
    assert refused > 300 and jobs > 5, (refused, jobs)


def test_a_dict_that_holds_itself(py):
    spec = {}
    spec["spec"] = spec
    with pytest.raises(py.SpecError, match="nested deeper than 64; does it hold itself"):
        py.Job(spec)


def test_all_findings_have_their_place(py, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("spec:\n  workers: two\n  image: a\n  command: [b]\n  colour: red\n")
    findings = py.validate(path)
    assert [(each.path, each.line, each.column) for each in findings] == [("spec.workers", 2, 12), ("spec.colour", 5, 3)]
    assert str(findings[0]).startswith(f"{path}:2:12: spec.workers: ")
    with pytest.raises(py.SpecError) as refused:
        py.render(path)
    assert refused.value.findings == findings and refused.value.line == 2


@pytest.mark.parametrize("job,error", [
    ("nowhere.yaml", "SpecError"), ("a\0b", "SpecError"), ("a: [\n", "SpecError"), ({}, "SpecError"),
    (7, "TypeError"), (None, "TypeError"), ([SPEC], "TypeError"), (b"spec:\n", "TypeError"),
])
def test_what_is_no_job(py, job, error):
    with pytest.raises(getattr(py, error, TypeError)):
        py.Job(job)


# ---- plans, manifests, environment ----

def test_the_package_and_the_program_tell_the_same(py, examples_dir, machine, drarun):
    job, slices = examples_dir / JOB, examples_dir / SLICES
    assert py.plan(job, slices=slices).text() == drarun("plan", job, "--slices", slices).ok().out
    assert py.plan(job, slices=[slices], nodes=[slices]).document(explain=True) == json.loads(
        drarun("plan", job, "--slices", slices, "--output", "json", "--explain").ok().out)
    assert py.render(job, format="json", api="v1beta1") == drarun(
        "render", job, "--format", "json", "--api", "v1beta1").ok().out
    assert py.env(root=machine).text() == drarun("env", "--root", machine).ok().out
    assert py.plan(job, slices=slices).svg(3) == drarun(
        "plan", job, "--slices", slices, "--output", "svg", "--worker", 3).ok().out


def test_the_agents_image_is_that_of_the_program(py, drarun, source, monkeypatch):
    """$DRARUN_IMAGE means the same in the library as on the command line; empty it is not set."""
    job = source / "examples/jobs/two-by-two.yaml"
    for value, image in (("localhost/own:1", "localhost/own:1"), ("", "ghcr.io/drarun/drarun:")):
        monkeypatch.setenv("DRARUN_IMAGE", value)
        rendered = py.render(job)
        assert f"image: {image}" in rendered and rendered == drarun("render", job, env={"DRARUN_IMAGE": value}).ok().out
    monkeypatch.setenv("DRARUN_IMAGE", "localhost/own:1")
    assert "localhost/own:1" not in py.render(job, image="localhost/said:1")


def test_results_as_the_program_judges_them(py, drarun, tmp_path):
    path, text = tmp_path / "out.txt", Run().text()
    path.write_text(text)
    for demands, words in (({}, ()), ({"min_busbw": 500, "min_percent": 99.5}, ("--min-busbw", 500, "--min-percent", 99.5))):
        judged = drarun("bench", "judge", path, "--output", "json", *words)
        assert py.bench_verdicts(text, **demands) == py.bench_verdicts(text.encode(), **demands) == json.loads(judged.out)
        assert judged.rc == (1 if demands else 0)
    page = drarun("bench", "report", path, "--title", "A page").ok().out  # which names the file
    assert py.bench_report(text, title="A page") == page.replace('download="out.', 'download="results.')
    with pytest.raises(py.SpecError, match="no row of nccl-tests"):
        py.bench_report("hello")
    with pytest.raises(py.UsageError, match="min_percent: expected 0 or more"):
        py.bench_verdicts(text, min_percent=float("nan"))


def test_a_plan_in_a_notebook(py, examples_dir):
    plan = py.plan(examples_dir / JOB, slices=examples_dir / SLICES).check()
    page = plan._repr_html_()
    assert page.count("<tr>") == 1 + 16 and "gpu7rdma0" in page and "0000:8f:00.0" in page and "gke-a4" in page
    full = py.plan(examples_dir / JOB, slices=examples_dir / SLICES, workers=400)
    assert page.count('src="data:image/svg+xml;base64,') == 4 and "worker 3 on a4-1" in page
    assert plan._repr_svg_() == plan.svg() != plan.svg(3)
    assert full._repr_svg_() is None and "<img" not in full._repr_html_()
    for worker, error in ((4, "expected one of the job's 4"), (-1, "expected a number from 0")):
        with pytest.raises(py.UsageError, match=error):
            plan.svg(worker)
    assert isinstance(full.verdict, py.CapacityError) and "no room" in full._repr_html_() and not full.ok
    with pytest.raises(py.CapacityError, match="worker 4 of 400 has no node"):
        full.check()
    from drarun import _html  # no job has such names, but a site's profile may have such values
    assert "<b>&" not in _html.plan({"job": "x", "workers": 1, "plan": {"env": {"A": "<b>&"}}}, None)


def test_plans_of_all_examples_in_a_notebook(py, examples_dir):
    """Jobs without a score, without devices and with roles, too; each role counts its workers from 0."""
    for path in sorted((examples_dir / "jobs").glob("*.yaml")):
        for slices in (None, examples_dir / SLICES):
            page = py.plan(path, slices=slices)._repr_html_()
            assert "None" not in page and page.startswith("<div>"), path
    page = py.plan(examples_dir / "jobs/rl-roles.yaml", slices=examples_dir / SLICES)._repr_html_()
    assert "<th>role</th>" in page and "<td>trainer</td><td>15</td><td>1</td><td>a4-1</td>" in page
    assert "role trainer: worker 0 on a4-0" in page and "role controller: worker" not in page
    assert "role trainer: profile gke-a4" in page


def test_notes_of_a_job_for_ray(py, examples_dir):
    job = py.Job({**py.Job(examples_dir / "jobs/ray-all-nic.yaml").document})
    job = py.Job({**job.document, "spec": {**job.document["spec"], "hangAfter": "5m"}})
    notes = []
    assert "kind: RayCluster" in job.render(as_="raycluster", note=notes.append)
    assert "maxReplicas: 9" in job.render(as_="raycluster", replicas="0:9")
    assert notes and all(re.match(r"\S+: spec\.\w+", each) for each in notes), notes

    def wrong(line):
        raise KeyError(line)
    with pytest.raises(KeyError, match=re.escape(notes[0])):
        job.render(as_="raycluster", note=wrong)


def test_options_that_mean_nothing(py, examples_dir):
    job = py.Job(examples_dir / JOB)
    for call, error, says in [
            (lambda: job.render(api="v7"), py.UsageError, "v7"),
            (lambda: py.plan(job, workers=-1), py.UsageError, "workers: -1 is out of range"),
            (lambda: py.plan(job, workers=0), py.UsageError, "workers: expected 1 or more, got 0"),
            (lambda: py.plan(job, slices={"kind": "List"}), py.UsageError, "objects=json.dumps(...)"),
            (lambda: py.plan(job, kubernetes="new"), py.UsageError, "expected a version such as 1.36"),
            (lambda: py.plan(job, slices="a\0b"), py.UsageError, "slices"),
            (lambda: py.plan(job, slices="nowhere.json"), py.Error, "nowhere.json"),
            (lambda: py.env(root="/nowhere"), py.SpecError, "/nowhere: No such file"),
            (lambda: py.env(network="loud"), py.UsageError, "loud"),
            (lambda: py.env(network="any").text("xml"), ValueError, "xml"),
            (lambda: py.plan(job, colour=1), TypeError, "colour")]:
        with pytest.raises(error, match=re.escape(says)):
            call()


def test_the_environment_is_a_mapping(py, machine, monkeypatch):
    env = py.env(root=machine)
    assert env.profile == "gke-a4" and env.summary == "8 GPUs, 8 NICs: 8 PIX; 400 GB/s of 400"
    assert env["NCCL_NET"] == "gIB" and dict(env) == {each.name: each.value for each in env.variables}
    chosen = {each.name: each for each in env.variables}
    assert chosen["LD_LIBRARY_PATH"].prepend and chosen["NCCL_NET"].reason
    environ = {"LD_LIBRARY_PATH": "/mine", "A": "b"}
    for _ in range(2):
        env.apply(environ)
        assert environ == {**env, "A": "b", "LD_LIBRARY_PATH": f"{env['LD_LIBRARY_PATH']}:/mine"}
    monkeypatch.setenv("NCCL_CROSS_NIC", "2")
    again = {each.name: each for each in py.env(root=machine).variables}["NCCL_CROSS_NIC"]
    assert (again.value, again.rule) == ("2", "user")


# ---- processes and threads ----

def test_it_works_after_fork(py, python, machine, examples_dir):
    text = f"""
import os, drarun
job = drarun.Job({str(examples_dir / JOB)!r})
plan = drarun.plan(job, slices={str(examples_dir / SLICES)!r})
env = drarun.env(root={str(machine)!r})
if os.fork() == 0:
    same = drarun.env(root={str(machine)!r}).text() == env.text() and drarun.Job(job.document).name == job.name
    os._exit(0 if same and plan.ok and len(plan.text()) > 1000 else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]), plan.ok)
"""
    assert ok(python, "-c", text) == "0 True\n"


def test_threads_share_a_job(py, examples_dir):
    job = py.Job(examples_dir / JOB)
    wanted = py.plan(job, slices=examples_dir / SLICES).text()
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(py.plan(job, slices=examples_dir / SLICES).text()))
               for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(patience())
    assert seen == [wanted] * 8


def test_nothing_is_left_behind(py, machine, examples_dir):
    def use():
        job = py.Job(examples_dir / JOB)
        py.plan(job, slices=examples_dir / SLICES).document()
        py.env(root=machine).text()
        py.validate({"spec": {"workers": "x"}})
        job.render()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(20):
        use()
    open_before, before = len(os.listdir("/proc/self/fd")), resident()
    for _ in range(60):
        use()
    assert len(os.listdir("/proc/self/fd")) == open_before
    assert resident() - before < 4 << 20  # a plan that stayed would be 60 times some 100 KiB


# ---- clusters that are none; tests/test_cluster_python.py has a real one ----

def kubeconfig(folder, server):
    path = folder / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [{"name": "a", "user": {}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}))
    return path


@pytest.fixture
def silent(tmp_path):
    """A kubeconfig whose server takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield kubeconfig(tmp_path, f"http://127.0.0.1:{server.getsockname()[1]}")


def test_no_cluster(py, tmp_path):
    for call in (lambda c: c.submit(SPEC), lambda c: c.run(SPEC), lambda c: c.job("a"), lambda c: c.plan(SPEC)):
        with pytest.raises(py.Error, match="nowhere"):
            call(py.Cluster(kubeconfig=tmp_path / "nowhere"))
    with pytest.raises(py.UsageError, match='has no context "b"'):
        py.Cluster(kubeconfig=kubeconfig(tmp_path, "http://127.0.0.1:1"), context="b").job("a")
    with pytest.raises(py.UsageError, match="level: expected one of error, note"):
        py.Cluster(level="loud").job("a")
    with pytest.raises(py.SpecError, match="spec.workers"):  # before anybody is asked
        py.run({"spec": {"workers": {1}}}, cluster=py.Cluster(kubeconfig="/nowhere"))
    with pytest.raises(py.UsageError, match="was not submitted by this object"):
        py.Job(SPEC).wait()


def test_what_the_library_takes_can_be_given(py):
    from drarun._library import ffi

    def members(kind):
        return {name.rstrip("_") for name, _ in ffi.typeof(f"struct drarun_{kind}_options").fields} - {"size", "arg"}

    def parameters(*functions):
        return {name for each in functions for name in inspect.signature(each).parameters}
    assert members("cluster") - {"base"} <= parameters(py.Cluster)  # a loop is in C alone
    assert members("submit") <= parameters(py.Cluster.submit) & parameters(py.Cluster.run)
    assert {each.replace("timeout_ms", "timeout") for each in members("follow") - {"once", "cancel"}} <= parameters(
        py.Submitted.follow)
    for name, function in inspect.getmembers(py.aio, inspect.iscoroutinefunction):
        assert name == "in_thread" or function.__doc__ and any(hasattr(each, name) for each in (py, py.Submitted, py.Cluster)), name


CTRL_C = """
import os, signal, sys, threading, time, drarun
signal.signal(signal.SIGINT, signal.default_int_handler)
cluster = drarun.Cluster(kubeconfig=sys.argv[1])
def press():
    for delay in (float(sys.argv[2]), 0.2):
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)
presses = threading.Thread(target=press, daemon=True)
try:
    presses.start()
    cluster.run({"spec": {"workers": 1, "image": "a", "command": ["true"]}})
except KeyboardInterrupt:
    try:  # where the second one may come
        presses.join()
        time.sleep(0.2)
    except KeyboardInterrupt:
        pass
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@and_timed
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.02, 0.5])
def test_ctrl_c_twice_does_not_wait_for_a_silent_server(python, silent, delay, timed):
    begin = time.monotonic()
    assert ok(python, "-c", CTRL_C, silent, delay) == "interrupted True\n"
    assert not timed or time.monotonic() - begin < 30  # a request's deadline is 60 s


@pytest.fixture
def registry(tmp_path):
    """On which no launcher ever starts."""
    with Registry(delay=0.01).serving() as server:
        server.config = server.kubeconfig(tmp_path)
        yield server


PRESSES = """
import faulthandler, os, random, signal, sys, threading, time, drarun
faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
cluster = drarun.Cluster(kubeconfig=sys.argv[1])
sleeper = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
sleeper.start()
ways = [lambda: os.kill(os.getpid(), signal.SIGINT),
        lambda: signal.pthread_kill(sleeper.ident, signal.SIGINT)]  # the kernel may give it to any thread
for index in range(12):
    call, at = (cluster.run, cluster.submit)[index % 2], random.Random(index).random() * 0.1
    timer = threading.Timer(at, ways[index // 2 % 2])
    submitted = None
    try:
        timer.start()
        submitted = call({"metadata": {"name": f"job-{index}"}, "spec": {"workers": 1, "image": "a", "command": ["true"]}})
        timer.join()
        time.sleep(1)  # after submit had returned
        sys.exit(f"{index}: {at}: not interrupted")
    except KeyboardInterrupt:
        if submitted is not None:
            submitted.cancel()
print("interrupted")
"""


def test_ctrl_c_at_any_moment_leaves_no_job(python, registry):
    assert ok(python, "-c", PRESSES, registry.config, patience(40)) == "interrupted\n"
    jobs = [path for path in registry.objects if path.split("/")[-2] == "jobs" and not path.endswith("-w")]
    assert not jobs, jobs


CANCELS = """
import asyncio, random, sys, drarun
cluster = drarun.Cluster(kubeconfig=sys.argv[1])
async def main():
    for index in range(8):
        job = {"metadata": {"name": f"job-{index}"}, "spec": {"workers": 1, "image": "a", "command": ["true"]}}
        task = asyncio.create_task((drarun.aio.run, drarun.aio.submit)[index % 2](job, cluster=cluster))
        chance = random.Random(index)
        await asyncio.sleep(chance.random() * 0.1)
        for _ in range(3):  # as a time limit within a group of tasks that ends
            task.cancel()
            await asyncio.sleep(chance.random() * 0.02)
        try:
            submitted = await task
            submitted.cancel()  # it was there first
        except asyncio.CancelledError:
            pass
asyncio.run(main())
print("cancelled")
"""


def test_cancelling_again_and_again_leaves_no_job(python, registry):
    assert ok(python, "-c", CANCELS, registry.config) == "cancelled\n"
    jobs = [path for path in registry.objects if path.split("/")[-2] == "jobs" and not path.endswith("-w")]
    assert not jobs, jobs


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "600"])
def test_a_wrong_time_limit_makes_no_job(py, registry, timeout):
    cluster = py.Cluster(kubeconfig=registry.config, log=None)
    spec = {"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "a", "command": ["true"]}}
    for call in (lambda: cluster.run(spec, timeout=timeout), lambda: py.step.run(spec, cluster=cluster, timeout=timeout)):
        with pytest.raises(py.UsageError, match="timeout: expected seconds"):
            call()
    assert not [path for path in registry.objects if "/jobs/" in path]


def test_a_profile_of_the_site_is_not_submitted(py, registry, tmp_path):
    """The launcher of the job would not know it."""
    site = tmp_path / "site.yaml"
    site.write_text("profiles:\n- {name: ours, variables: []}\n- {name: generic-ib, variables: []}\n")
    cluster = py.Cluster(kubeconfig=registry.config)
    for name in ("ours", "generic-ib"):
        job = py.Job({"metadata": {"name": "job"}, "spec": {**SPEC["spec"], "nccl": {"profile": name}}}, profiles=site)
        with pytest.raises(py.SpecError, match=f"built-in profiles, not {name} of the site's file"):
            cluster.submit(job)
    assert not [path for path in registry.objects if "/jobs/" in path]
    spec = {"metadata": {"name": "job"}, "spec": {**SPEC["spec"], "nccl": {"profile": "generic-roce"}}}
    cluster.submit(py.Job(spec, profiles=site))


def test_a_plan_is_by_the_quotas_of_the_specs_namespace(py, registry):
    """In which its job would be, and not by those of the context's."""
    registry.groups = [{"metadata": {"name": "resource.k8s.io"}, "versions": [{"version": "v1", "resources": [{"resource": "resourceclaims"}]}]}]
    nodes = [{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "100"}}}]
    for path, items in (("/apis/resource.k8s.io/v1/resourceslices", []), ("/api/v1/nodes", nodes)):
        registry.objects[path] = {"kind": "List", "metadata": {}, "items": items}
    for namespace in ("default", "team-a"):
        registry.put(path_of("resourcequotas", f"of-{namespace}", namespace), {"metadata": {"namespace": namespace}, "status": {
            "hard": {"pods": "0"}, "used": {"pods": "0"}}, "spec": {"hard": {"pods": "0"}}})
    cluster = py.Cluster(kubeconfig=registry.config, log=None)
    for namespace, metadata in (("team-a", {"namespace": "team-a"}), ("default", {})):
        text = cluster.plan({"metadata": {"name": "job", **metadata}, "spec": {"workers": 1, "image": "a", "command": ["true"]}}).text()
        assert re.findall(r"ResourceQuota (\S+): pods", text) == [f"of-{namespace}"], text


def test_a_job_that_is_found_again(py, registry):
    """In another process, by a pickle; in asyncio, by its name."""
    cluster = py.Cluster(kubeconfig=registry.config)
    submitted = cluster.submit({"metadata": {"name": "job"}, **SPEC})
    other = pickle.loads(pickle.dumps(submitted))
    assert (other.name, other.namespace) == (submitted.name, submitted.namespace) and other.document() == submitted.document()

    async def find():
        found = await py.aio.job(cluster, "job")
        return found, await py.aio.document(found)
    found, document = asyncio.run(find())
    assert found.name == "job" and document == submitted.document()
    for rank in (-1, "0", 2 ** 32):
        with pytest.raises(py.UsageError, match="rank: expected a number from 0, got"):
            found.logs(rank=rank)
    other.cancel()
    assert path_of("batch/v1/jobs", "job") not in registry.objects


HANDLER = """
import faulthandler, os, signal, sys, threading, drarun
faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
cluster = drarun.Cluster(kubeconfig=sys.argv[1])
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
def ended(signum, frame):
    raise SystemExit(3)
signal.signal(signal.SIGTERM, ended)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
try:
    cluster.run({"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "a", "command": ["true"]}})
except SystemExit as error:
    assert os.read(read, 10) == bytes([signal.SIGTERM]) and signal.set_wakeup_fd(-1) == write
    print("ended", error.code)
"""


def test_a_handler_of_the_program_ends_the_job_too(python, registry):
    """Its own wakeup descriptor, as an event loop has one, gets the signal."""
    assert ok(python, "-c", HANDLER, registry.config, patience(40)) == "ended 3\n"
    assert path_of("batch/v1/jobs", "job") not in registry.objects


NOT_CANCELLED = """
import os, signal, sys, drarun
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    drarun.run({"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "a", "command": ["true"]}},
               cluster=drarun.Cluster(kubeconfig=sys.argv[1]), progress=lambda _: os.kill(os.getpid(), signal.SIGINT))
except KeyboardInterrupt as error:
    print(repr(error.__cause__))
"""


def test_ctrl_c_tells_that_the_job_could_not_be_cancelled(python, registry):
    registry.refused.add("PATCH")
    said = ok(python, "-c", NOT_CANCELLED, registry.config)
    assert said.startswith("ClusterError(") and "the registry says no" in said, said
    assert path_of("batch/v1/jobs", "job") in registry.objects


def test_a_log_function_that_raises_leaves_no_job(py, registry):
    """As print_log does when nobody reads standard error any more."""
    registry.warning = "would violate PodSecurity"

    def log(level, text):
        raise BrokenPipeError(text)
    cluster = py.Cluster(kubeconfig=registry.config, log=log)
    for call in (cluster.submit, cluster.run):
        with pytest.raises(BrokenPipeError, match="would violate PodSecurity"):
            call({"metadata": {"name": "job"}, **SPEC})
        assert path_of("batch/v1/jobs", "job") not in registry.objects


def test_a_step_whose_function_raises_leaves_no_job(py, registry):
    """As Cluster.run does; one whose Error is drarun's leaves it to the repeated step."""
    cluster = py.Cluster(kubeconfig=registry.config, log=None)

    def raising(error):
        def progress(_):
            raise error
        return progress
    for name, error, is_left in (("a", ValueError("no"), False), ("b", SystemExit(3), False), ("c", py.ClusterError("lost"), True)):
        with pytest.raises(type(error)):
            py.step.run({"metadata": {"name": name}, **SPEC}, cluster=cluster, progress=raising(error))
        assert (path_of("batch/v1/jobs", name) in registry.objects) == is_left, error


def test_asyncio_goes_on_beside_a_silent_server(py, silent):
    async def main():
        waiting = asyncio.create_task(py.aio.plan(SPEC, cluster=py.Cluster(kubeconfig=silent)))
        plan, env = await asyncio.gather(py.aio.plan(SPEC), py.aio.env(network="any"))
        assert plan.document()["workers"] == 2 and env["NCCL_NET"] == "Socket" and not waiting.done()
        with pytest.raises(py.SpecError, match="spec.workers"):
            await py.aio.render({"spec": {**SPEC["spec"], "workers": "x"}})
        return waiting
    loop = asyncio.new_event_loop()
    assert not loop.run_until_complete(main()).done()
    loop.close()


# ---- speed ----

def cost(*functions, times=60):
    """Milliseconds of processor time of each, in each of many rounds: other programs on the machine don't count, and
    nothing of this waits. In turn, so that what slows a machine for a while slows all of a round."""
    rounds = []
    for _ in range(times):
        rounds.append([])
        for function in functions:
            begin = time.thread_time()
            function()
            rounds[-1].append((time.thread_time() - begin) * 1e3)
    return rounds


@pytest.mark.timed
def test_env_is_fast_and_costs_little_more_than_in_c(py, machine):
    from drarun._library import Options, ffi, lib
    options, made, err = Options("env", root=machine), ffi.new("struct drarun_env **"), ffi.new("struct drarun_error *")

    def in_c():
        assert lib.drarun_env_derive(options.pointer, made, err) == 0
        lib.drarun_env_free(made[0])

    rounds = cost(lambda: py.env(network="any"), lambda: py.env(root=machine), in_c)
    here, in_python, alone = map(min, zip(*rounds))
    more = statistics.median(each[1] - each[2] for each in rounds)
    print(f"\ndrarun.env(): {here:.2f} ms on this machine, {in_python:.2f} ms with 8 GPUs and 8 NICs, "
          f"of which the C call {alone:.2f} ms; in Python {more:.2f} ms more")
    assert max(here, in_python) < 30
    assert more < 1


def test_a_locale_with_a_decimal_comma(python, source, tmp_path):
    """A program's locale is its own: documents have points."""
    if not shutil.which("localedef") or not os.path.exists("/usr/share/i18n/locales/de_DE"):
        pytest.skip(f"no package locales: {CURE}")
    ok("localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8")
    code = f"""
import drarun, locale
def all():
    job = drarun.Job({{"spec": {{"workers": 1, "image": "a", "command": ["true"], "timeouts": {{"queue": "1.5m"}}}}}})
    plan = drarun.plan({str(source / "examples" / JOB)!r}, slices={str(source / "examples" / SLICES)!r})
    return job.document, job.render(), plan.document(), plan.text(explain=True)
plain = all()
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert all() == plain, (plain, all())
assert locale.format_string("%.1f", 1.5) == "1,5"
"""
    ok(python, "-c", code, env={**os.environ, "LOCPATH": str(tmp_path)})
