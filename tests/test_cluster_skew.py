# SPDX-License-Identifier: Apache-2.0
"""Launcher and controller of one release, agents, image and node plugin of another, on two real nodes: this tree and tests/base-release."""
import json
import shutil
import sys

import pytest
import yaml

from support.build import SOURCE
from support.cluster.claiming import plugged, plugins  # noqa: F401
from support.cluster_jobs import IMAGE, RUN_S, Running
from support.run import Runner
from support.skew import SIDES, TREE, pairs, sides  # noqa: F401
from test_cluster_controller import API, DEPLOYMENT, KIND, applied, controller  # noqa: F401
from test_cluster_plugin_agent import ONE_NIC, limited

sys.path.insert(0, str(SOURCE / "scripts/lib"))
import oci_image  # noqa: E402

NET = "/sys/class/net/net1"
NIC = {"nics": {**ONE_NIC["nics"], "config": {"interface": {"name": "net1"}}}}
UNTIL = "until [ -e /tmp/go ]; do sleep 0.1; done; "
END = f"ls -d {NET}; echo $RANK of $WORLD_SIZE; exit $((RANK * 7))"
MODES = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])


@pytest.fixture(scope="module")
def images(cluster):
    """{side: its image} of launcher and agent."""
    root = oci_image.drarun(SIDES["base"]().build)
    try:
        return {"tree": IMAGE, "base": cluster.image("drarun-base", root=root, config=oci_image.DRARUN)}
    finally:
        shutil.rmtree(root)


def become(plugins, side):
    """The node plugins are those of a side, with what was prepared before them."""
    for plugin in plugins:
        plugin.stop()
        plugin.program, plugin.agent, plugin.hook = (side.program(f"drarun-{name}") for name in ("plugin", "worker", "attach"))
        plugin.start()
    for plugin in plugins:
        plugin.wait()


@pytest.fixture
def plugin_of(plugins):
    """plugin_of(side): become(), with the tree's again after the test."""
    yield lambda side: become(plugins, side)
    if plugins[0].program != TREE.program("drarun-plugin"):
        become(plugins, TREE)


@pytest.fixture
def drarun_of():
    """drarun_of(side): its drarun."""
    made = []

    def of(side):
        made.append(Runner(side.program()))
        return made[-1]
    yield of
    for each in made:
        each.close()


def check_output(lines):
    """Each rank has its NIC; rank 1 may end the job before rank 0 has told of its own."""
    assert NET in lines and "1 of 2" in lines and set(lines) <= {NET, "0 of 2", "1 of 2"}, lines


def held(plugins):
    return [plugin.checkpoints() for plugin in plugins]


@MODES
@pairs("launcher", "agents")
def test_job_with_claims(jobs, plugins, images, plugin_of, drarun_of, sides, mode):
    """From drarun run to the exit status; the other release's verbs tell of it."""
    plugin_of(sides[1])
    jobs.drarun, jobs.env["DRARUN_IMAGE"] = drarun_of(sides[0]), images[sides[1].name]
    result = jobs.run(*mode, **limited(END, devices=NIC))
    assert result.rc == 7 and "rank 1 on worker 1" in result.err and "exited with status 7" in result.err, result
    check_output(result.out.splitlines())
    if mode:
        return  # what a launcher from here has made goes with it
    jobs.drarun = drarun_of(sides[1])
    assert jobs.verb("wait", "job").rc == 7 and "failed (7)" in jobs.verb("status", "job").ok().out
    assert "job" in jobs.verb("list").ok().out and json.loads(jobs.verb("status", "-o", "json", "job").ok().out)["phase"] == "ended"
    assert "1 of 2\n" in jobs.verb("logs", "job").ok().out
    jobs.verb("cancel", "job").ok()


@pairs("submit", "cancel")
def test_job_is_cancelled_by_the_other_release(jobs, plugins, images, plugin_of, drarun_of, sides):
    plugin_of(sides[1])
    jobs.drarun, jobs.env["DRARUN_IMAGE"] = drarun_of(sides[0]), images[sides[1].name]
    jobs.verb("submit", jobs.file(**limited("exec sleep 1000", devices=NIC))).ok()
    jobs.cluster.wait(lambda: f"the ranks do not run: {jobs.status()}", lambda: (jobs.status() or {}).get("phase") == "running", RUN_S)
    jobs.drarun = drarun_of(sides[1])
    assert jobs.verb("exec", "job", "1", "--", "ls", "-d", NET).ok().out == f"{NET}\n"
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


@pairs("plugin", "upgrade")
def test_plugin_is_upgraded_under_a_job(jobs, plugins, plugin_of, sides):
    """Its devices stay, the job ends as it would, and its claims are given back by the plugin that did not prepare them."""
    plugin_of(sides[0])
    job = Running(jobs, **limited(f"echo up; {UNTIL}{END}", devices=NIC)).wait_lines(2)
    before = held(plugins)
    assert sum(map(len, before)) == 2, before
    logs = [plugin.node.folder / f"{plugin.name}.log" for plugin in plugins]
    sizes = [log.stat().st_size for log in logs]
    plugin_of(sides[1])
    assert held(plugins) == before
    for log, size, claims in zip(logs, sizes, before):  # it names the file of a checkpoint that it cannot read, and makes do without
        said = log.read_bytes()[size:].decode()
        assert said and not any(f"{uid}.json" in said for uid in claims), said
    for rank in range(2):
        assert jobs.verb("exec", "job", rank, "--", "sh", "-c", f"touch /tmp/go; ls -d {NET}").ok().out == f"{NET}\n"
    result = job.ended()
    assert result.rc == 7, result
    check_output([line for line in result.out.splitlines() if line != "up"])
    jobs.verb("cancel", "job").ok()
    jobs.cluster.wait(lambda: f"claims are held: {held(plugins)}\n{plugins[0].log()}", lambda: not any(held(plugins)), RUN_S)


# ---- the controller ----

def install(cluster, side):
    """The definition and the controller's account of a side, over what is there."""
    for name in ("crd.yaml", "controller.yaml"):
        text = yaml.safe_dump_all(each for each in yaml.safe_load_all((side.source / "deploy" / name).read_text()) if each["kind"] != DEPLOYMENT)
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    cluster.wait("DraJobs are not served", lambda: cluster.api.plural(API, KIND), RUN_S)


def claiming(script):
    """Of an applied job."""
    return {"workers": 2, "ranksPerWorker": 1, "network": "any", "devices": NIC, "command": ["sh", "-c", script]}


@pytest.fixture(scope="module")
def served(cluster):
    """DraJobs, as the base has them at first."""
    install(cluster, SIDES["base"]())
    yield cluster
    for name in ("controller.yaml", "crd.yaml"):
        cluster.kubectl("delete", "--ignore-not-found", "-f", SOURCE / "deploy" / name, timeout=120)


@pairs("controller", "agents")
def test_applied_job(applied, plugins, images, plugin_of, sides):
    """From kubectl apply to the exit status in the object."""
    install(applied.cluster, sides[0])
    plugin_of(sides[1])
    with controller(applied, program=sides[0].program(), image=images[sides[1].name]):
        assert applied.apply(**claiming(END)) == ""
        status = applied.wait("Failed")
        assert (status["exitStatus"], status["reason"], status["workers"]["count"]) == (7, "Exit", 2), status
        assert "rank 1" in status["message"] and "1 of 2\n" in applied.verb("logs", "job").ok().out
        applied.remove()


@pairs("first", "second")
def test_controller_is_upgraded_under_a_job(applied, plugins, images, plugin_of, sides):
    """The next one tells the end of a job that it did not start, with the definition of its own release."""
    install(applied.cluster, sides[0])
    with controller(applied, "first", program=sides[0].program(), image=images[sides[0].name]):
        assert applied.apply(**claiming(f"{UNTIL}{END}")) == ""
        before = applied.wait("Running")
    spec = applied.get()["spec"]
    install(applied.cluster, sides[1])
    with controller(applied, "second", program=sides[1].program(), image=images[sides[1].name]):
        for worker in range(2):
            applied.cluster.kubectl("exec", f"job-w-{worker}", "-n", applied.namespace, "--", "touch", "/tmp/go")
        status = applied.wait("Failed")
        assert (status["exitStatus"], status["launcherUID"], status["attempt"]) == (7, before["launcherUID"], 1), status
        assert applied.get()["spec"] == spec
        applied.remove()
