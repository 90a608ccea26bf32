# SPDX-License-Identifier: Apache-2.0
"""drarun.kfp on a cluster of a real node: its steps as the SDK's own runner starts them."""
import json
import os
import signal

import pytest

from support import fetched, kfp
from support.cluster import Cluster, programs
from support.run import Runner

pytestmark = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")
BENCH = "bench"
STEP_S = 90
LEAVES = ["tmp.*", "kfp-workspace-*"]  # kfp's own: each step's program
HEAD = """
import json, sys
from kfp import local
from drarun.kfp import drarun_job
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[1], raise_on_error=False)
def job(command, workers=1):
    return {"metadata": {"name": "made"}, "spec": {"workers": workers, "image": "localhost/busybox:1",
                                                   "command": ["sh", "-c", command]}}
def uid(step):
    return json.load(open(step.outputs["status"].path))["uid"]
"""


@pytest.fixture(scope="session")
def cluster():
    found, reason = fetched.interpreter("fetch-kfp")
    if found is None:
        pytest.skip(reason)
    with Cluster(nodes=1, images=("busybox", programs.BASE, "drarun")) as made:
        made.image(BENCH, files=programs.bench_files(), base=programs.BASE)
        yield made


@pytest.fixture
def steps(jobs, tmp_path):
    """steps.start(program): a program with kfp where the cluster can be reached."""
    python, env = kfp.environment(tmp_path)

    class Steps(Runner):
        def start(self, text, **how):
            return super().start("-c", text, tmp_path / "out", under=jobs.cluster.under, env={**env, **jobs.env}, **how)

        def __call__(self, text):
            return self.start(text).finish(STEP_S, leaves=LEAVES)

    runner = Steps(python)
    yield runner
    runner.close()


def bench_spec():
    """Of examples/kfp/job.yaml what can run here: two ranks in two pods, over TCP."""
    container = {"name": "ranks", "image": f"localhost/{BENCH}:1",
                 "command": ["drarun-bench", "all_reduce", "-b", "1K", "-e", "64K", "-f", "8", "--iters", "5"],
                 "env": [{"name": "DRARUN_BENCH_MARKED", "value": "1"}, {"name": "UCX_TLS", "value": "tcp,self"}]}
    return {"metadata": {"name": "accept"}, "spec": {"workers": 2, "template": {"spec": {
        "terminationGracePeriodSeconds": 1, "containers": [container]}}}}


def written(folder, component):
    """{artifact: its text}, and the metadata of its artifacts, of each run of a component, the first one first."""
    runs = sorted(folder.glob(f"out/*/{component}"), key=lambda each: each.parent.name)
    for run in runs:
        output = run / "executor_output.json"
        artifacts = json.loads(output.read_text())["artifacts"] if output.exists() else {}
        metadata = {name: each["artifacts"][0].get("metadata", {}) for name, each in artifacts.items()}
        yield {each.name: each.read_text() for each in run.iterdir() if each.is_file()}, metadata


def test_the_example_with_its_threshold(steps, source, tmp_path):
    """The example's pipeline with a job for this machine: it passes what it reaches, and fails above that."""
    result = steps(f"""
import sys
sys.path.insert(0, {str(source / "examples/kfp")!r})
from kfp import local
from pipeline import accept_nodes
local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=sys.argv[1], raise_on_error=False)
for minimum in (1e-6, 1e6):
    accept_nodes(job={bench_spec()!r}, minimum=minimum)
    print("=====")
""").ok()
    passed, failed, _ = result.out.split("=====")
    assert "#drarun-bench" in passed and "finished with status" in passed and "FAILURE" not in passed, result
    assert "JobError: the benchmark does not reach what is demanded: all_reduce: --min-busbw 1e+06: " in failed, result
    runs = list(written(tmp_path, "drarun-job"))
    assert len(runs) == 2
    for files, metadata in runs:
        status, figures = json.loads(files["status"]), metadata["metrics"]
        assert status["result"] == "succeeded" and status["name"].startswith("accept-"), status
        assert figures["exit_status"] == 0 and figures["ranks"] == figures["workers"] == 2
        assert 0 < figures["busbw"] <= figures["busbw_best"] and figures["seconds_running"] > 0, figures
        assert files["report"].startswith("<!doctype html>") and "all_reduce" in files["report"]
        assert "**all_reduce** over 2 ranks on 2 hosts: " in files["summary"]
        assert "# Out of bounds values : 0 OK" in files["output"]
    assert runs[0][0]["status"] != runs[1][0]["status"]
    (first, _), (second, _) = written(tmp_path, "drarun-check")
    assert [json.loads(each["verdict"])[0]["failed"] for each in (first, second)] == [False, True]


def test_a_repeated_step(steps, jobs):
    """It goes on with a job that runs or has succeeded, and replaces one that failed."""
    result = steps(HEAD + """
first = drarun_job(spec=job("echo done"), name="same")
again = drarun_job(spec=job("echo done"), name="same")
assert uid(first) == uid(again) and open(again.outputs["output"].path).read() == "done\\n"
anew = drarun_job(spec=job("echo done"), name="same", existing="replace")
other = drarun_job(spec=job("echo other"), name="same")
assert len({uid(first), uid(anew), uid(other)}) == 3 and open(other.outputs["output"].path).read() == "other\\n"
failed = drarun_job(spec=job("echo bad; exit 3"), name="failed", fail=False)
assert failed.outputs["Output"] == 3 and failed.outputs["metrics"].metadata["exit_status"] == 3
assert "exited with status 3" in open(failed.outputs["summary"].path).read()
print("=====")
drarun_job(spec=job("echo bad; exit 3"), name="failed")
print("=====")
drarun_job(spec=job("true"), name="same", existing="refuse")
""").ok()
    passed, failed, refused = result.out.split("=====")
    assert "FAILURE" not in passed, result
    assert "JobError: job failed in namespace" in failed and "ended with status 3: rank 0" in failed, result
    assert "ClusterError" in refused and 'there is a job "same"' in refused, result


def executor(job):
    """The process of a step."""
    return next((pid for pid, line in job.processes().items() if "kfp.dsl.executor_main" in line and "sh -ec" not in line), None)


def started(steps, jobs, name):
    """A step whose job's ranks run."""
    job = steps.start(HEAD + f"drarun_job(spec=job('echo up; sleep 1000'), name={name!r})")
    jobs.cluster.wait("the ranks do not run",
                      lambda: (jobs.status(name) or {}).get("phase") == "running" or job.process.poll() is not None, 60)
    assert job.process.poll() is None, job.finish(10, leaves=LEAVES)
    return job


def test_a_step_that_waits_says_so_until_its_timeout(steps, jobs):
    """And leaves no job, here one that never began."""
    result = steps(HEAD + """
waits = job("true")
waits["spec"]["suspend"] = True
drarun_job(spec=waits, timeout=15.0)
""").ok()
    assert "drarun: waiting for the launcher to start: the job is suspended (spec.suspend)\n" in result.out, result
    assert "TimeoutError: the job made has" in result.out, result
    jobs.cluster.wait("the job stays", lambda: jobs.status("made") is None, 30)


@pytest.mark.parametrize("how", ["SIGTERM to the step", "Ctrl-C"])
def test_a_cancelled_step_cancels_its_job(steps, jobs, how):
    job = started(steps, jobs, "cancelled")
    if how == "Ctrl-C":
        os.killpg(job.pid, signal.SIGINT)
    else:
        os.kill(executor(job), signal.SIGTERM)
    jobs.cluster.wait("the step goes on", lambda: not executor(job), 60)
    result = job.finish(60, leaves=LEAVES)
    if how != "Ctrl-C":  # of which kfp itself ends, and no longer shows what the step says
        assert "InterruptedError: the step was cancelled, and with it job cancelled" in result.out, result
    status = jobs.status("cancelled")
    assert (status["phase"], status["exit"], status["result"]) == ("ended", 130, "cancelled"), status


def test_a_killed_step_is_repeated(steps, jobs):
    """Its job goes on; the next step of the same job takes it over, one of another job does not."""
    job = started(steps, jobs, "killed")
    uid = jobs.status("killed")["uid"]
    os.kill(executor(job), signal.SIGKILL)
    job.finish(60, leaves=LEAVES)
    assert jobs.status("killed")["phase"] == "running"
    result = steps(HEAD + """
drarun_job(spec=job("echo other"), name="killed")
drarun_job(spec=job("echo up; sleep 1000"), name="killed", timeout=15.0)
""")
    assert "ClusterError: job killed in namespace" in result.out and "runs already, with another spec" in result.out, result
    assert "TimeoutError" in result.out and "up\n" in result.out, result
    status = jobs.status("killed")
    assert (status["uid"], status["exit"], status["result"]) == (uid, 130, "cancelled"), status
