# SPDX-License-Identifier: Apache-2.0
"""Jobs on a cluster that refuses them or breaks under them: what is said, how soon, and that nothing remains."""
import json
import re
import secrets
import time

import pytest

from support.api_proxy import Exchange
from support.timed import and_timed
from support.cluster.pods import BUSYBOX
from support.cluster_jobs import Running

HERE_AND_POD = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
SLEEP = ["sleep", "1000"]
CUT_S = 23  # 15 s of silence and 3 s between probes, 3 s in which the API may tell of a lost pod
INFRASTRUCTURE, CLUSTER, SPEC = 70, 69, 65


def start(jobs, *options, **spec):
    """A job whose ranks run."""
    return Running(jobs, *options, **{"command": SLEEP, **spec}).wait_running()


def worker(jobs, index=0):
    """The pod of a worker."""
    return jobs.cluster.api.get("v1", "Pod", f"job-w-{index}", jobs.namespace.name)


# -- answers

WRITES = ("POST", "PUT", "PATCH", "DELETE")


@HERE_AND_POD
def test_answer_to_every_write_is_lost_once(jobs, jobs_proxy, mode):
    """The server has it, and the launcher or the client does not know: it makes each again."""
    met = set()

    def first(method, path):
        write = method, path.split("?")[0]
        new = method in WRITES and write not in met
        met.update([write] if method in WRITES else [])
        return new

    jobs_proxy.fault(Exchange.lose, first, 10 ** 6)
    jobs.run(*mode, workers=2, env=jobs_proxy.env, command=["true"]).ok()
    made = {path.rsplit("/", 1)[1] for method, path in met if method == "POST"}
    assert ({"leases", "pods", "configmaps"} if mode else {"jobs", "secrets"}) <= made, met


# -- permissions

def rules_but(jobs, group, resource, verb):
    """Those of the Role that we ship, and what a client adds to it, without one verb."""
    listed = jobs.drarun("install", "-n", jobs.namespace.name, "--format", "json").ok().out
    role = next(each for each in json.loads(listed)["items"] if each["kind"] == "Role")
    rules = role["rules"] + [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
                             {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "watch", "delete"]}]
    left = []
    for each in rules:
        for name in each["resources"]:
            same = (group, resource) == (each["apiGroups"][0], name)
            verbs = [v for v in each["verbs"] if not same or v != verb]
            if verbs:
                left.append({"apiGroups": each["apiGroups"], "resources": [name], "verbs": verbs})
    return left


NEEDED = [("", "configmaps", "create"), ("", "configmaps", "patch"), ("", "configmaps", "delete"),
          ("", "secrets", "create"), ("", "pods", "create"), ("", "pods", "watch"), ("batch", "jobs", "watch"),
          ("coordination.k8s.io", "leases", "create")]


@pytest.mark.parametrize("group,resource,verb", NEEDED, ids=[f"{v}-{r}" for _, r, v in NEEDED])
def test_user_without_a_permission(jobs, group, resource, verb):
    """The message names verb, resource, namespace and the cure."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "most"},
            "rules": rules_but(jobs, group, resource, verb)}
    config = jobs.namespace.rbac_user(role)
    result = jobs.run("--here", env={"KUBECONFIG": str(config)}, command=["true"])
    assert f'cannot {verb} resource "{resource}"' in result.err, result
    assert f'in the namespace "{jobs.namespace.name}"' in result.err, result
    assert "a Role must allow it" in result.err, result
    if (resource, verb) not in {("configmaps", "patch"), ("configmaps", "delete")}:
        assert result.rc == CLUSTER, result
    if verb == "delete":
        jobs.cluster.api.delete("v1", "ConfigMap", "job-status", jobs.namespace.name)


# -- names

@pytest.mark.parametrize("name,word", [("a" * 64, "55"), ("Job", "lower"), ("a.b", "a.b")])
def test_impossible_name(jobs, name, word):
    result = jobs.run("--here", name=name, command=["true"])
    assert result.rc == SPEC and "metadata.name" in result.err and word in result.err, result


@HERE_AND_POD
def test_two_of_one_name_at_once(jobs, mode):
    """One runs; the other is told which job is in its way."""
    started = [Running(jobs, *mode, command=SLEEP) for _ in range(2)]
    jobs.cluster.wait("both go on", lambda: any(each.job.process.poll() is not None for each in started), 60)
    second, first = sorted(started, key=lambda each: each.job.process.poll() is None)
    refused = second.ended()
    assert refused.rc == CLUSTER and 'there is a job "job"' in refused.err and "drarun cancel job" in refused.err, refused
    first.wait_running()
    jobs.verb("cancel", "job").ok()
    assert first.ended().rc == 130


# -- what breaks under a job

@pytest.mark.gate
def test_agent_killed(jobs):
    job = start(jobs, "--here", workers=2)
    node, mine = jobs.agent("job-w-1")
    node.run(["kill", "-9", *mine])  # those that are left: one ends with the other
    result = job.ended()
    assert result.rc == INFRASTRUCTURE and "worker 1" in result.err, result


def workers(jobs, name, count=2):
    return [jobs.cluster.pod(f"{name}-w-{i}", namespace=jobs.namespace.name) for i in range(count)]


def held_back(folder, command):
    """A template whose agents start once there is a file `go` in the folder; their pod's network is there before."""
    before = {"name": "before", "image": BUSYBOX, "command": ["sh", "-c", "until [ -e /gate/go ]; do sleep 0.1; done"],
              "volumeMounts": [{"name": "gate", "mountPath": "/gate"}]}
    return {"spec": {"initContainers": [before], "containers": [{"name": "main", "image": BUSYBOX, "command": command}],
                     "volumes": [{"name": "gate", "hostPath": {"path": str(folder)}}]}}


def wait_before(jobs, name, count=2):
    """Until the pods of a job with held_back() have their network and no agent."""
    def there():
        statuses = [(each.get() or {}).get("status", {}) for each in workers(jobs, name, count)]
        return all("running" in state["state"] for status in statuses
                   for state in status.get("initContainerStatuses", [{"state": {}}])[-1:])
    jobs.cluster.wait(f"{name}'s pods do not start", there, 30)


@and_timed
def test_network_between_two_agents_is_cut(jobs, tmp_path, timed):
    """Under ranks that have nothing to say to each other, and before the agents have met: both are named, in time."""
    cut = {"starting": Running(jobs, "--here", name="starting", workers=2, template=held_back(tmp_path, SLEEP))}
    cut["running"] = start(jobs, "--here", name="running", workers=2)
    wait_before(jobs, "starting")
    for name in cut:
        jobs.cluster.cut(*workers(jobs, name))
    (tmp_path / "go").touch()
    began = time.monotonic()
    for name, job in cut.items():
        result = job.ended()
        assert result.rc == INFRASTRUCTURE, result
        assert re.search(r"worker (0|1) \(.*worker (?!\1)[01] \(", result.err), result
        assert "unknown TLS error" not in result.err, result
        assert name == "starting" or re.search(r"connection to \S+ is lost: no packet for \d+ s", result.err), result
        assert not timed or job.at - began < CUT_S + 5, (name, job.at - began)
    assert not jobs.namespace.leftovers()


STRANGER = """
import socket, sys
for first in (b"", b"GET / HTTP/1.1\\r\\n\\r\\n", b"\\x16\\x03\\x01\\x02\\x00" + b"\\xff" * 600, bytes(65536)):
    with socket.create_connection((sys.argv[1], 7173), 5) as s:
        s.settimeout(10)
        try:
            s.sendall(first)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096): pass
        except OSError:
            pass
"""


def test_strangers_at_an_agents_port(jobs, tmp_path):
    """Without the key, and with another job's: they get nothing, and the job does not notice."""
    key = tmp_path / "other.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32) + "\n")
    job = start(jobs, "--here", workers=2, command=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done; echo $RANK done"])
    ip = worker(jobs, 0)["status"]["podIP"]
    ran = jobs.cluster.in_ns(["python3", "-c", STRANGER, ip])
    assert ran.returncode == 0, ran
    other = jobs.drarun("run", "--agents", f"{ip}:7173", "--key-file", key, "--start-timeout", "3s", "echo", "mine",
                        under=jobs.cluster.under)
    assert other.rc == INFRASTRUCTURE and other.out == "" and ip in other.err, other
    for rank in range(2):
        jobs.verb("exec", "job", rank, "--", "touch", "/tmp/go").ok()
    result = job.ended()
    assert result.rc == 0 and sorted(result.out.split("\n")) == ["", "0 done", "1 done"], result

# -- containers that do not come up

def started_with(container=None, init=(), **pod):
    """A template whose containers are changed so."""
    before = [{"image": BUSYBOX, **each} for each in init]
    main = {"name": "main", "image": BUSYBOX, "command": SLEEP, **(container or {})}
    return {"spec": {"containers": [main], "initContainers": before, "terminationGracePeriodSeconds": 1, **pod}}


NO_LICENCE = {"name": "prepare", "command": ["sh", "-c", "echo no licence >/dev/termination-log; exit 3"]}
# what the template has, the exit status, and what is said
ENDS_AT_ONCE = {
    "init-fails": (started_with(init=[NO_LICENCE]), INFRASTRUCTURE, ["container prepare ended with status 3", "no licence"]),
    "no-such-user": (started_with({"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}), SPEC,
                     ["container main cannot be made", "breaks non-root policy"]),
}


def test_containers_that_end_at_once(jobs):
    """Each is named with what its container or the kubelet said, before any deadline."""
    never = {each: "1h" for each in ("allocation", "imagePull", "total")}
    ran = {name: Running(jobs, "--here", name=name, template=template, timeouts=never) for name, (template, _, _) in ENDS_AT_ONCE.items()}
    for name, job in ran.items():
        _, status, words = ENDS_AT_ONCE[name]
        result = job.ended()
        assert result.rc == status and all(word in result.err for word in words), f"{name}: {result!r}"
