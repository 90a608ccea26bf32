# SPDX-License-Identifier: Apache-2.0
"""Workers whose agent our node plugin brings through their claim, and those where it cannot (docs/design/024-agent-by-claim.md)."""
import json
import os
import random
import re

import pytest

from support.cluster.claiming import COUNT, claimed, plug_again, plugged, plugins  # noqa: F401
from support.cluster.freezer import Freezer
from support.cluster.plugin import Nics
from support.cluster_jobs import Running

ONE_NIC = {"nics": {"count": 1, "class": "nic.drarun.dev"}}
LIMIT = 96 << 20
LIMITED = {"template": {"spec": {"containers": [{
    "name": "main", "image": "localhost/busybox:1", "imagePullPolicy": "Never",
    "resources": {"limits": {"memory": str(LIMIT)}}}]}}}


def limited(script, **spec):
    made = json.loads(json.dumps(LIMITED))
    made["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    return {"workers": 2, "ranksPerWorker": 1, "network": "any", "devices": ONE_NIC, **made, **spec}


def worker_pods(jobs):
    found = [each for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
             if any("drarun-worker" in word for word in each["spec"]["containers"][0].get("command", ()))]
    return sorted(found, key=lambda each: each["metadata"]["name"])


def volumes_of(pod):
    return {each["name"] for each in pod["spec"].get("volumes", ())}


def offers(plugin):
    return {each["attributes"].get("drarun.dev/agent", {}).get("string") for each in plugin.published().values()}


@pytest.mark.parametrize("claims,mode", [("direct", ["--here"]), ("direct", []), ("template", [])],
                         ids=["here", "pod", "template"])
def test_agent_comes_by_the_claim(cluster, jobs, plugins, claims, mode):
    """No init container and no volume; /dev/shm is as large as the container's memory, and programs in it run. The
    plugin is away meanwhile."""
    offered, = offers(plugins[0])
    assert re.fullmatch(r"v\d+-pmix-[0-9.]+", offered), offered
    script = ('grep " /dev/shm " /proc/mounts; printf "#!/bin/sh\\necho up\\n" > /dev/shm/x; chmod +x /dev/shm/x; /dev/shm/x; '
              'exec sleep 1000')
    job = Running(jobs, *mode, **limited(script, devices={**ONE_NIC, "claims": claims}))
    job.wait_lines(4, text="")
    for line in job.lines:
        assert line == "up\n" or re.fullmatch(rf"tmpfs /dev/shm tmpfs \S*\bsize={LIMIT // 1024}k\b.*\n", line), job.lines
    assert job.lines.count("up\n") == 2 and not any("noexec" in line for line in job.lines)
    made = worker_pods(jobs)
    assert len(made) == 2
    for pod in made:
        assert not pod["spec"].get("initContainers") and not pod["spec"].get("volumes"), pod["spec"]
        assert not pod["spec"]["containers"][0].get("volumeMounts")
        key, = [each for each in pod["spec"]["containers"][0]["env"] if each["name"] == "DRARUN_KEY"]
        assert set(key["valueFrom"]) == {"secretKeyRef"}
    assert "Agent: by its claim (workers 0-1)\n" in jobs.verb("describe", "job").ok().out
    for plugin in plugins:
        plugin.kill()
    assert jobs.verb("exec", "job", "1", "--", "echo", "beside").ok().out == "beside\n"
    if not mode:
        assert jobs.verb("logs", "job").ok().out.count("up\n") == 2
    for plugin in plugins:
        plugin.start()
    for plugin in plugins:
        plugin.wait()
    jobs.verb("cancel", "job").ok()
    assert job.ended().rc == 130


def test_agent_by_the_claim_in_the_next_attempt(cluster, jobs, plugins):
    """Made by the launcher, which may read no slices, with the claims of the first; plugins were upgraded between, and
    what runs keeps the agent that it has."""
    script = '[ $DRARUN_ATTEMPT = 1 ] && { until [ -e /tmp/go ]; do sleep 0.1; done; exit 3; }; echo up; exec sleep 1000'
    job = Running(jobs, **limited(script, workers=1, restarts=1)).wait_running()
    agents = [next((plugin.state / "agent").glob("*/drarun-worker")) for plugin in plugins]
    for plugin, agent in zip(plugins, agents):
        plugin.stop()
        agent.unlink()
        agent.write_bytes(b"")  # another file of that name, as an upgrade makes
        plugin.start()
    for plugin, agent in zip(plugins, agents):
        plugin.wait()
        assert agent.stat().st_size > 1 << 20
    jobs.verb("exec", "job", "0", "--", "touch", "/tmp/go").ok()

    def second():
        for node in cluster.nodes:
            Nics(node, COUNT).replug()
        return (jobs.status() or {}).get("attempt") == 2 and jobs.status()["phase"] == "running"
    cluster.wait(lambda: str(jobs.status()), second, 90)
    pod, = worker_pods(jobs)
    assert pod["metadata"]["labels"]["drarun.dev/attempt"] == "2"
    assert not pod["spec"].get("initContainers") and not pod["spec"].get("volumes")
    jobs.verb("cancel", "job").ok()
    assert job.ended().rc == 130


@pytest.fixture
def other_agent(plugins, tmp_path):
    """other_agent(text): the second node's plugin brings an agent that says this of its version; None: none."""
    plugin, own = plugins[1], plugins[1].agent

    def become(agent):
        plugin.stop()
        plugin.agent = agent
        plugin.start().wait()

    def make(version):
        path = tmp_path / "agent"
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)
        become(path if version else None)
        plugin.node.cluster.wait(lambda: str(offers(plugin)), lambda: offers(plugin) != offers(plugins[0]), 30)
    yield make
    become(own)
    plugin.node.cluster.wait(lambda: str(offers(plugin)), lambda: offers(plugin) == offers(plugins[0]), 30)


@pytest.mark.parametrize("version,says", [
    ("drarun-worker 0.0.1, protocol 0.9, libpmix 4.2.2", "nic.drarun.dev of node n1 v0-pmix-4.2.2"), (None, "of node n1 none")])
def test_a_node_with_another_agent(jobs, other_agent, version, says):
    """All come by volumes, and the sentence says why: a pod is written before its node is known."""
    other_agent(version)
    job = Running(jobs, "--here", **limited("echo up; exec sleep 1000")).wait_lines(2)
    for pod in worker_pods(jobs):
        assert volumes_of(pod) == {"drarun", "drarun-shm"}
    jobs.verb("cancel", "job").ok()
    result = job.ended()
    assert "the agent is delivered by a volume: nic.drarun.dev of node n0 brings v" in result.err and says in result.err, result


def test_who_may_not_read_slices(jobs):
    """As people with the user's role: the pod's volume brings it, as ever."""
    there = jobs.namespace.name
    jobs.cluster.kubectl("apply", "-f", "-", input=jobs.verb("install", "-n", there).ok().out)
    role, = json.loads(jobs.verb("install", "-n", there, "--user-role", "--format", "json").ok().out)["items"]
    env = {"KUBECONFIG": str(jobs.namespace.rbac_user(role))}
    job = Running(jobs, env=env, **limited("echo up; exec sleep 1000", workers=1)).wait_lines(1)
    pod, = worker_pods(jobs)
    assert volumes_of(pod) == {"drarun", "drarun-shm"}
    jobs.verb("cancel", "job").ok()
    assert job.ended().rc == 130


@pytest.mark.parametrize("parameters,says", [
    ({"agent": "v1-nobody-has-it"}, "v1-nobody-has-it/drarun-worker: No such file or directory: this node has not the agent"),
    ({"agent": "../../../bin"}, "agent: expected what nodes publish as drarun.dev/agent"),
    ({"agent": "v1", "sharedMemory": {"size": "much"}}, "sharedMemory.size: expected a quantity of bytes"),
])
def test_a_wish_for_an_agent_that_cannot_be_met(cluster, claimed, parameters, says):
    pod = claimed("agentless", "true", "n0", config=[
        {"apiVersion": "drarun.dev/v1alpha1", "kind": "WorkerAgent", **parameters}])
    cluster.wait(lambda: pod.describe(), lambda: says in pod.describe(), 30)
    assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))


# (ranks' script, exit status): the slowest ends by itself, the failing one takes the other with it
ENDS = [("echo $RANK done", 0), ("sleep 3; echo $RANK done", 0), ("[ $RANK = 1 ] && exit 3; exec sleep 1000", 3)]


@pytest.mark.skipif("DRARUN_FREEZE" not in os.environ, reason="minutes of servers that stand still: scripts/soak runs it")
def test_jobs_while_servers_stand_still(cluster, jobs, plugins):
    """API server, etcd, kubelet, containerd, our plugin and the rest, each for up to two seconds at random: every job ends as it
    would, with all of its output, and has its NIC; nothing is left."""
    count = int(os.environ["DRARUN_FREEZE"])
    choose, net1 = random.Random(count), "/sys/class/net/net1"
    nic = {"nics": {**ONE_NIC["nics"], "config": {"interface": {"name": "net1"}}}}
    with Freezer(cluster.folder, count) as freezer:
        for i in range(count):
            (script, status), here = choose.choice(ENDS), choose.choice([["--here"], []])
            result = jobs.run(*here, name=f"job-{i}", timeout=300, **limited(f"ls -d {net1} && {{ {script}; }}", devices=nic))
            assert result.rc == status, (i, freezer.frozen, result)
            lines = sorted(result.out.splitlines())
            assert set(lines) <= {net1} if status else lines == [net1, net1, "0 done", "1 done"], (i, freezer.frozen, result)
            plug_again(plugins)
    print(f"stood still: {freezer.frozen}")
    assert {"etcd", "kube-apiserver", "kubelet", "drarun-plugin"} <= set(freezer.frozen), freezer.frozen
