# SPDX-License-Identifier: Apache-2.0
"""drarun.kfp with the real SDK of Kubeflow Pipelines: what is compiled, and what is refused. tests/test_cluster_kfp.py
runs jobs."""
import json
import os
import re
import subprocess

import pytest
import yaml

from support import kfp, python_package
from support.build import SOURCE, patience
from support.nccl_tests import Row, Run

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")

LOCAL = """
import sys
from kfp import dsl, local
from drarun.kfp import drarun_check, drarun_job
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[1], raise_on_error=False)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """python(program, *arguments): run with kfp and the package, and no cluster."""
    folder = tmp_path_factory.mktemp("kfp")
    interpreter, env = kfp.environment(folder)

    def run(*words, cwd=folder, **more):
        return subprocess.run([interpreter, *words], capture_output=True, text=True, timeout=patience(120), cwd=cwd,
                              env={**env, "KUBECONFIG": str(folder / "none"), **more})

    return run


@pytest.fixture(scope="module")
def compiled(python, source, tmp_path_factory):
    """The example's pipeline, as the SDK's compiler writes it."""
    path = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    run = python(source / "examples/kfp/pipeline.py", path)
    assert run.returncode == 0, run.stderr
    return yaml.safe_load(path.read_text())


def test_the_package_needs_no_kfp(tmp_path):
    env = {**os.environ, **python_package.in_folder(tmp_path)}
    run = subprocess.run(["/usr/bin/python3", "-c", "import drarun, drarun.step; import drarun.kfp"], env=env,
                         capture_output=True, text=True, timeout=patience())
    assert run.stderr.splitlines()[-1] == \
        "ImportError: drarun.kfp needs Kubeflow's SDK: pip install 'kfp>=2,<3'", run.stderr


def test_compiled_components(compiled):
    job = compiled["components"]["comp-drarun-job"]
    assert {name: each["parameterType"] for name, each in job["inputDefinitions"]["parameters"].items()} == {
        "job": "STRING", "spec": "STRUCT", "name": "STRING", "namespace": "STRING", "image": "STRING",
        "existing": "STRING", "timeout": "NUMBER_DOUBLE", "fail": "BOOLEAN"}
    assert job["inputDefinitions"]["artifacts"]["document"]["isOptional"]
    kinds = {name: each["artifactType"]["schemaTitle"] for name, each in job["outputDefinitions"]["artifacts"].items()}
    assert kinds == {"status": "system.Artifact", "metrics": "system.Metrics", "report": "system.HTML",
                     "summary": "system.Markdown", "output": "system.Artifact"}
    assert job["outputDefinitions"]["parameters"]["Output"]["parameterType"] == "NUMBER_INTEGER"
    for each in (*job["inputDefinitions"]["parameters"].values(),
                 *compiled["components"]["comp-drarun-check"]["inputDefinitions"]["parameters"].values()):
        assert each["isOptional"] and each["description"]


def test_compiled_steps(compiled):
    executors = compiled["deploymentSpec"]["executors"]
    for name in ("drarun-job", "drarun-check"):
        container = executors[f"exec-{name}"]["container"]
        assert re.fullmatch(r"ghcr.io/drarun/drarun-python:[\d.]+", container["image"])
        shell = container["command"][2]
        assert "exec python3 -m kfp.dsl.executor_main" in shell and "pip" not in shell  # a signal reaches the step
    tasks = compiled["root"]["dag"]["tasks"]
    assert "{{$.pipeline_job_uuid}}" in json.dumps(tasks["drarun-job"]["inputs"]["parameters"]["name"])
    assert "enableCache" not in tasks["drarun-job"].get("cachingOptions", {})
    assert tasks["drarun-job"]["retryPolicy"]["maxRetryCount"] == 2
    assert tasks["drarun-check"]["inputs"]["artifacts"]["results"]["taskOutputArtifact"] == {
        "outputArtifactKey": "output", "producerTask": "drarun-job"}
    assert compiled["root"]["inputDefinitions"]["parameters"]["minimum"]["defaultValue"] == 300.0


def test_the_example_is_a_job(drarun, source):
    out = drarun("validate", source / "examples/kfp/job.yaml").ok()
    assert "2 workers, 8 GPUs each, 8 NICs each" in out.out + out.err


def test_other_images(python, tmp_path):
    run = python("-c", """
import sys
from drarun.kfp import components
from kfp import compiler
job, _ = components(base_image="example.org/mine", packages_to_install=["drarun==0.1.0"])
compiler.Compiler().compile(job, sys.argv[1])
""", tmp_path / "job.yaml")
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "job.yaml").read_text()
    assert "image: example.org/mine" in text and "drarun==0.1.0" in text and "kfp==2." in text
    # what Kubernetes starts and sends SIGTERM is the step in the end, and no shell that has installed the packages
    container = yaml.safe_load(text)["deploymentSpec"]["executors"]["exec-drarun-job"]["container"]
    for name, program in (("pip", ""), ("python3", 'case "$*" in *"-m pip "*) ;; *) echo $$ ;; esac')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{program}\n")
        (tmp_path / name).chmod(0o755)
    step = subprocess.Popen([*container["command"], *container["args"]], stdout=subprocess.PIPE, text=True,
                            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)})
    said, _ = step.communicate(timeout=patience())
    assert (step.returncode, said) == (0, f"{step.pid}\n")


def test_bad_input_fails_the_step_with_the_cause(python, tmp_path):
    """Really run, by the SDK's own runner."""
    given = [({}, "UsageError: job (a text), spec (a dict), document (an artifact): expected one of them, got none"),
             ({"job": "a: 1", "spec": {"a": 1}}, "expected one of them, got job and spec"),
             ({"spec": {"spec": {"workers": "two", "image": "a", "command": ["b"]}}},
              "SpecError: job: spec.workers: expected an integer"),
             ({"job": "spec: {workers: 2, image: a, command: [b], nics: 3}"}, "job:1:44: spec.nics: unknown key"),
             ({"job": "/etc/passwd"}, "SpecError: job:1:1: "),
             ({"spec": {"spec": {"workers": 2.5, "image": "a", "command": ["b"]}}}, "spec.workers: expected an integer"),
             ({"spec": {"spec": {"workers": 2, "image": "a", "command": ["b"]}}, "existing": "guess"},
              "UsageError: existing: expected one of continue, replace, refuse, got 'guess'"),
             ({"job": "spec: {workers: 2, image: a, command: [b]}"}, "UsageError: no kubeconfig: looked at ")]
    run = python("-c", LOCAL + f"for each in {[each for each, _ in given]!r}:\n    drarun_job(**each)\n    print('=====')\n",
                 tmp_path / "out")
    assert run.returncode == 0, run.stderr
    parts = run.stdout.split("=====")
    assert len(parts) == len(given) + 1
    for part, (_, says) in zip(parts, given):
        assert says in part, f"{says!r} is not in\n{part}"
    assert run.stdout.count("FAILURE") == len(given) and not run.stderr, run.stderr


PIPELINE = """
import sys
from kfp import dsl, local
from drarun.kfp import drarun_job

@dsl.component(install_kfp_package=False, base_image="python")
def write(text: str, made: dsl.Output[dsl.Artifact]):
    with open(made.path, "w") as file:
        file.write(text)

@dsl.pipeline
def two(text: str):
    drarun_job(document=write(text=text).outputs["made"])

local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[1], raise_on_error=False)
two(text="spec:\\n  workers: 2\\n  image: a\\n  command: b\\n")
"""


def test_a_job_that_another_step_wrote(python, tmp_path):
    (tmp_path / "two.py").write_text(PIPELINE)
    run = python(tmp_path / "two.py", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert "SpecError: job:4:12: spec.command: expected " in run.stdout, run.stdout + run.stderr


def test_job_whose_benchmark_died(python, tmp_path):
    """Figures of a part are no metrics, and the summary says why."""
    run = python("-c", """
import json, sys, types
from drarun import _kfp_steps, bench_verdicts
for text in (open(sys.argv[1]).read(), open(sys.argv[2]).read()):
    outcome = types.SimpleNamespace(status={}, exit_status=0, name="j", cause="", output=text)
    verdicts = bench_verdicts(text)
    print(json.dumps([_kfp_steps._figures(outcome, verdicts), _kfp_steps._summary(outcome, verdicts)]))
""", SOURCE / "docs/bench/nccl-tests.txt", SOURCE / "tests/regress/16-judge-crashed-run/mid.txt")
    assert run.returncode == 0, run.stderr
    (good, whole), (died, part) = map(json.loads, run.stdout.splitlines())
    assert good["percent_of_limit"] > 60 and "% of the limit; data right" in whole and "FAILED" not in whole
    assert not {"busbw", "busbw_best", "percent_of_limit"} & set(died) and died["exit_status"] == 0
    assert "**all_reduce** FAILED: the run failed on a2 after 2 sizes: Test NCCL failure" in part and "% of the limit" not in part


def test_workers_of_the_job(python):
    """As docs/schema/drajob-status-v1alpha1.json has them: each by itself, or those that are alike."""
    run = python("-c", """
import json, types
from drarun import _kfp_steps
lines = [{"index": 0, "node": "a", "devices": "gpu-0"}, {"index": 1, "workers": "1-3,7", "count": 4}]
outcome = types.SimpleNamespace(status={"workers": {"lines": lines}}, exit_status=0, name="j", cause="", output="")
print(json.dumps([_kfp_steps._summary(outcome, []), _kfp_steps._page(outcome, False)]))
""")
    assert run.returncode == 0, run.stderr
    summary, page = json.loads(run.stdout)
    assert "\n| 0 | a | gpu-0 |\n| 1-3,7 | - | - |\n" in summary
    assert "<tr><td>0</td><td>a</td><td>gpu-0</td></tr><tr><td>1-3,7</td><td>-</td><td>-</td></tr>" in page


def test_artifacts_in_any_locale(python, tmp_path):
    """An image may have one that lacks a character; an artifact of another step may be no UTF-8."""
    (tmp_path / "other").write_bytes(b"caf\xe9\n" + Run(rows=[Row(1 << 20, busbw=160.0)]).text().encode())
    (tmp_path / "job").write_text("/etc/hostname")
    run = python("-c", f"""
import types
from drarun import _kfp_steps as steps
made, other, job = (types.SimpleNamespace(path={str(tmp_path)!r} + name) for name in ("/made", "/other", "/job"))
steps._write(made, "caf\\u00e9")
print(steps.check_results(results=other, verdict=made, min_busbw=1.0, min_best_busbw=0.0, min_percent=0.0, require_rdma=False))
try:
    steps._job("", {{}}, job)
except Exception as error:
    print(error)
steps._write(made, "caf\\u00e9")
""", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert run.returncode == 0, run.stderr
    assert "160.0\n" in run.stdout and "job:1:1: " in run.stdout, run.stdout
    assert (tmp_path / "made").read_bytes() == b"caf\xc3\xa9"


def test_results_are_judged(python, tmp_path):
    """By the step's own function; its artifacts are files."""
    (tmp_path / "results").write_text("hello\n" + Run(rows=[Row(1 << 20, busbw=160.0)]).text() + "bye\n")
    (tmp_path / "other").write_text("hello\n")
    run = python("-c", f"""
import types
from drarun import _kfp_steps as steps
def check(name, **demands):
    demands = {{"min_busbw": 0.0, "min_best_busbw": 0.0, "min_percent": 0.0, "require_rdma": False, **demands}}
    try:
        print(steps.check_results(results=types.SimpleNamespace(path={str(tmp_path)!r} + "/" + name),
                                  verdict=types.SimpleNamespace(path={str(tmp_path / "verdict")!r}), **demands))
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}")
check("results")
check("results", min_busbw=160.0, min_best_busbw=160.0)
check("results", min_busbw=161.0)
check("results", min_busbw=-1.0)
check("other")
""")
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if not line.startswith("all_reduce over")]
    assert lines[:2] == ["160.0", "160.0"]
    assert lines[2].startswith("JobError: the benchmark does not reach what is demanded: all_reduce: "), lines
    assert "161" in lines[2] and lines[3] == "UsageError: min_busbw: expected 0 or more, got -1"
    assert lines[4].startswith("SpecError: results: no row of nccl-tests"), lines
    assert json.loads((tmp_path / "verdict").read_text())[0]["failed"]
