# SPDX-License-Identifier: Apache-2.0
"""Jobs on two real nodes: from `drarun run` to the exit status, and nothing left behind."""
import base64
import datetime
import json
import re
import signal

import pytest

from support import metrics
from support.build import BUILD
from support.cluster_jobs import RUN_S, Running
from support.run import Runner

HELLO = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on worker $GROUP_RANK; echo to stderr >&2"]
MODES = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])


@pytest.mark.gate
@MODES
def test_ranks_run_and_their_output_arrives(jobs, mode):
    result = jobs.run(*mode, workers=2, ranksPerWorker=2, command=HELLO).ok()
    assert sorted(result.out.splitlines()) == [f"rank {r} of 4 on worker {r // 2}" for r in range(4)]
    assert result.err.count("to stderr\n") == 4


@MODES
def test_first_failing_rank_is_the_jobs_status(jobs, mode):
    result = jobs.run(*mode, workers=2, command=["sh", "-c", "[ $RANK = 0 ] && sleep 30; exit 7"])
    assert result.rc == 7
    assert "rank 1 on worker 1" in result.err and "exited with status 7" in result.err


@MODES
def test_same_name_again_at_once(jobs, mode):
    for _ in range(2):
        assert jobs.run(*mode, command=["echo", "again"]).ok().out == "again\n"
        if not mode:
            jobs.cluster.api.delete("batch/v1", "Job", "job", jobs.namespace.name)


def test_in_the_place_of_one_that_has_ended(jobs):
    """Without the option it is in the way; one that runs is not touched."""
    assert jobs.run(command=["false"]).rc == 1
    second = jobs.run(command=["echo", "again"])
    assert second.rc == 69 and "there is a job" in second.err and "--replace" in second.err, second
    replaced = jobs.run("--replace", command=["echo", "again"]).ok()
    assert replaced.out == "again\n" and "job job had ended before: failed (1)" in replaced.err, replaced
    made = json.loads(jobs.verb("submit", "--replace", "-o", "json", jobs.file(command=["sleep", "1000"])).ok().out)
    owner = jobs.cluster.api.get("batch/v1", "Job", "job", jobs.namespace.name)
    assert made == {"name": "job", "namespace": jobs.namespace.name, "uid": owner["metadata"]["uid"]}
    assert jobs.verb("submit", "--replace", jobs.file(command=["true"])).rc == 69
    jobs.verb("cancel", "job").ok()


def test_status_list_logs_and_wait_from_the_api(jobs):
    jobs.run(workers=2, command=HELLO).ok()
    assert "succeeded" in jobs.verb("status", "job").ok().out
    assert "job" in jobs.verb("list").ok().out
    everywhere = jobs.verb("list", "-A").ok().out.splitlines()
    assert everywhere[0].split()[:2] == ["NAMESPACE", "NAME"] and [jobs.namespace.name, "job"] in [
        line.split()[:2] for line in everywhere], everywhere
    late = jobs.verb("exec", "job", 0, "--", "true")
    assert late.rc == 64 and re.search(r"job job has ended: succeeded, .* ago; drarun logs job shows its output", late.err), late
    assert jobs.verb("wait", "job").rc == 0
    assert jobs.verb("logs", "job", "--rank", "1").ok().out == "rank 1 of 2 on worker 1\n"
    assert jobs.status()["phase"] == "ended"


@pytest.mark.gate
def test_submit_and_cancel(jobs):
    made = jobs.verb("submit", jobs.file(command=["sleep", "1000"])).ok()
    assert made.out == "job\n"
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


def test_first_status_and_that_of_a_job_that_has_ended(jobs):
    """Before its launcher has told anything, and after its objects are gone."""
    jobs.verb("submit", jobs.file(workers=2, suspend=True, command=["false"])).ok()
    first = jobs.verb("status", "job").ok().out.splitlines()[0]
    assert re.fullmatch(r"\S+/job: created for (\d+ m?s), attempt 1", first), first
    jobs.verb("cancel", "job").ok()
    jobs.cluster.wait("the job stays", lambda: not jobs.cluster.api.get("v1", "ConfigMap", "job-status",
                                                                       jobs.namespace.name), 30)
    assert jobs.run(workers=2, command=["sh", "-c", "exit 7"]).rc == 7
    shown = jobs.verb("status", "job").ok().out
    assert ": failed (7), " in shown and "exited with status 7" in shown and "running" not in shown.split("times:")[0], shown
    assert " 0/2 " in jobs.verb("list").ok().out
    cancelled = jobs.verb("cancel", "job").ok()
    assert re.search(r"job job had ended before: failed \(7\), \d+ m?s ago; its remaining objects are deleted", cancelled.err)
    jobs.cluster.wait("the job stays", lambda: jobs.verb("status", "job").rc == 66, 30)


def test_cancel_of_an_ended_job_that_had_no_launcher_pod(jobs):
    jobs.run("--here", ttlSecondsAfterFinished=1000, command=["true"]).ok()
    assert "had ended before: succeeded, " in jobs.verb("cancel", "job").ok().err
    assert "no job job" in jobs.verb("cancel", "job").err


def test_no_such_job(jobs):
    for verb in ("status", "logs", "wait", "cancel", "describe"):
        result = jobs.verb(verb, "nothing")
        assert result.rc == 66 and "no job nothing" in result.err, result
    unnamed = jobs.verb("logs")
    assert unnamed.rc == 64 and "expected the name of one job: drarun logs [options] JOB" in unnamed.err, unnamed
    nowhere = jobs.run("--namespace", "nowhere", command=["true"])
    assert nowhere.rc == 66 and nowhere.err == "drarun: there is no namespace nowhere: kubectl create namespace nowhere makes it\n", \
        nowhere


# -- the same through libdrarun

@pytest.fixture
def api(jobs, build):
    """api(verb, file or job): tests/programs/api_caller.c, a program of somebody who uses the library."""
    runner = Runner(build / "tests" / "api_caller")
    yield lambda *words: runner(*words, under=jobs.cluster.under, env=jobs.env, timeout=RUN_S)
    runner.close()


def test_library_runs_a_job(api, jobs, tmp_path):
    """On the caller's own loop, whose events go on meanwhile."""
    command = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE; echo bad >&2; sleep 1; exit 3"]
    result = api("loop", jobs.file(workers=2, command=command), "named")
    lines = result.out.splitlines()
    assert sorted(line for line in lines if line.startswith("rank ")) == [
        "rank 0: rank 0 of 2", "rank 0: stderr: bad", "rank 1: rank 1 of 2", "rank 1: stderr: bad"], lines
    assert (result.rc, lines[-2:], result.err) == (3, ["status 3", "ticks went on"], "")
    assert any(line.startswith("log: rank ") and "exited with status 3" in line for line in lines), lines
    assert jobs.status("named")["phase"] == "ended"
    again = api("submit", jobs.file("named", command=["true"]))
    assert again.rc == 69 and again.out.startswith("error cluster: File exists: "), again
    none = api("wait", "nothing")
    assert none.rc == 64 and none.out.startswith("error usage: No such file or directory: there is no job nothing"), none
    jobs.env["KUBECONFIG"] = str(tmp_path / "none")
    nowhere = api("wait", "nothing")
    assert nowhere.rc == 64 and f"{tmp_path}/none" in nowhere.out, nowhere


@pytest.mark.parametrize("loop", ["libevent", "poll"])
def test_library_follows_several_jobs_on_one_loop(jobs, build, loop):
    """tests/programs/api_follow.c; one of them is left by its own callback."""
    files = [jobs.file("left", command=["sh", "-c", "while echo up; do sleep 1; done"])]
    files += [jobs.file(f"ends-{status}", command=["sh", "-c", f"echo {status}; sleep 1; exit {status}"]) for status in (3, 0)]
    runner = Runner(build / "tests" / "api_follow")
    result = runner(loop, *files, under=jobs.cluster.under, env=jobs.env, timeout=RUN_S)
    runner.close()
    lines = [line for line in result.out.splitlines() if line != "events left: 0"]
    assert (result.rc, result.err) == (0, "") and sorted(lines) == [
        "ends-0 rank 0: 0", "ends-0 status 0", "ends-3 rank 0: 3", "ends-3 status 3", "left rank 0: up"], result
    assert ("events left: 0" in result.out) == (loop == "libevent")


def test_library_with_a_launcher_of_another_version(api, jobs):
    """Whose status document has members, and values of members, that this library does not know."""
    document = {"apiVersion": "drarun.dev/v9", "kind": "DraJobStatus", "phase": "dreaming", "gang": "four of them",
                "attempt": {"number": 1}, "waiting": ["for what is new"], "later": {"a": [1, None]}}

    def store(**more):
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"status.json": json.dumps({**document, **more})},
                "metadata": {"name": "other-status", "namespace": jobs.namespace.name}}
    jobs.cluster.api.create(store())
    soon = api("soon", "other")
    assert soon.rc == 124 and "error timeout: " in soon.out, soon
    told = api("status", "other")
    assert told.rc == 0 and '"dreaming"' in told.out, told
    assert jobs.verb("status", "other").rc == 0 and jobs.verb("list").rc == 0
    path = f"/api/v1/namespaces/{jobs.namespace.name}/configmaps/other-status"
    jobs.cluster.api.ok("PUT", path, store(exit=4, cause={"text": "a newer reason", "kind": "dreamt"}))
    ended = api("wait", "other")
    assert ended.rc == 4 and "log: a newer reason\n" in ended.out, ended
    jobs.cluster.api.ok("PUT", path, {**store(), "data": {"status.json": "{"}})
    assert api("soon", "other").rc == 124
    jobs.cluster.api.delete("v1", "ConfigMap", "other-status", jobs.namespace.name)


def test_library_with_a_job_that_runs(api, jobs):
    """Submitted, looked at from a child too, left again, waited for in vain, cancelled."""
    file = jobs.file(command=["sh", "-c", "echo up; sleep 1000"])
    assert "job job: 1 worker, which claim no devices\n" in api("plan", file).ok().out
    assert f"submitted {jobs.namespace.name}/job\n" in api("submit", file).ok().out
    jobs.cluster.wait("the rank does not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    assert json.loads(api("status", "job").ok().out.splitlines()[0])["phase"] == "running"
    jobs.cluster.wait("no output", lambda: "rank 0: up\n" in api("logs", "job").ok().out, 30)
    left = api("interrupt", "job")
    assert left.rc == 130 and left.out.startswith("rank 0: up\nerror interrupted: Operation canceled: "), left
    forked = api("fork", "job")
    assert "open one here\nchild 64\nerror timeout: " in forked.out and forked.rc == 124, forked
    api("cancel", "job").ok()
    assert api("wait", "job").rc == 130
    enough = api("enough", file, "next")  # which cancels what it no longer follows
    assert enough.rc == 130 and "rank 0: up\nerror interrupted: " in enough.out, enough
    assert api("wait", "next").rc == 130


def test_example_of_an_embedder(jobs, build):
    """examples/embed-c/run.c: the job's exit status, and Ctrl-C."""
    runner = Runner(build / "tests" / "embed_run")
    how = {"under": jobs.cluster.under, "env": jobs.env}
    try:
        done = runner(jobs.file(workers=2, command=["sh", "-c", "echo up; sleep 1; exit 5"]), timeout=RUN_S, **how)
        assert done.rc == 5 and sorted(done.out.splitlines()) == ["0: up", "1: up"], done
        stopped = runner.start(jobs.file("stopped", command=["sh", "-c", "echo up; sleep 1000"]), **how)
        jobs.cluster.wait("the rank does not run", lambda: (jobs.status("stopped") or {}).get("phase") == "running", 30)
        stopped.process.send_signal(signal.SIGINT)
        ended = stopped.finish(RUN_S)
        assert ended.rc == 130 and "interrupted" in ended.err, ended
        assert jobs.verb("wait", "stopped").rc == 130
    finally:
        runner.close()


# -- what a killed launcher leaves

def of_job(jobs, name):
    """uids of a job's pods, which stay the same while nobody touches it."""
    return {each["metadata"]["uid"] for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
            if each["metadata"]["labels"].get("drarun.dev/job") == name
            and "deletionTimestamp" not in each["metadata"]}


def killed(jobs, name):
    """A job whose launcher was killed while its ranks ran."""
    job = Running(jobs, "--here", name=name, command=["sleep", "1000"]).wait_running()
    job.job.process.kill()
    job.ended(20, clean=False)
    return name


def age(jobs, name, past):
    """As if its Lease had been renewed last so long ago, by the launcher's clock and by the server's."""
    then = (datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=past)).strftime("%FT%T")
    api, lease = jobs.cluster.api, jobs.cluster.api.get("coordination.k8s.io/v1", "Lease", name, jobs.namespace.name)
    lease["spec"]["renewTime"] = f"{then}.000000Z"
    for each in lease["metadata"]["managedFields"]:
        each["time"] = f"{then}Z"
    path = api.path("coordination.k8s.io/v1", "Lease", jobs.namespace.name, name)
    api.ok("PUT", f"{path}?fieldManager=time", lease)


def test_next_run_takes_away_what_a_killed_launcher_left(jobs):
    """Of one whose Lease is over; not of two that live, nor of one that was killed just now."""
    living = [Running(jobs, "--here", name=name, command=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done; echo $RANK done"])
              for name in ("left", "right")]
    for each in living:
        each.wait_running()
    killed(jobs, "fresh")
    age(jobs, killed(jobs, "old"), 90)
    before = {name: of_job(jobs, name) for name in ("left", "right", "fresh")}
    assert all(before.values()) and of_job(jobs, "old")
    result = jobs.run("--here", name="next", command=["true"]).ok()
    assert "job old: its launcher, a drarun run --here, is gone" in result.err, result
    jobs.cluster.wait("the killed job remains", lambda: not of_job(jobs, "old"), 30)
    assert {name: of_job(jobs, name) for name in before} == before
    refused = jobs.run(name="left", command=["true"])  # also from another kind of launcher, which has another owner
    assert refused.rc != 0 and "there is a job \"left\" in namespace" in refused.err and "waiting for" not in refused.err, refused
    for each in living:
        jobs.verb("exec", each.name, 0, "--", "touch", "/tmp/go").ok()
        assert each.ended().out == "0 done\n"
    age(jobs, "fresh", 61)
    again = jobs.run(name="fresh", command=["echo", "of its name"])  # its pods are still going
    assert again.rc == 0 and again.out == "of its name\n" and "job fresh: its launcher" in again.err, again
    assert again.err.index("job fresh: its launcher") < (again.err + "waiting for").index("waiting for"), again


def test_job_of_a_launcher_pod_is_not_taken_away(jobs):
    """Its Job makes another launcher, however old the Lease."""
    jobs.verb("submit", jobs.file(command=["sleep", "1000"])).ok()
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    before = of_job(jobs, "job")
    age(jobs, "job", 1000)
    jobs.run("--here", name="next", command=["true"]).ok()
    jobs.verb("submit", jobs.file(name="more", command=["true"])).ok()
    jobs.verb("wait", "more", timeout=RUN_S).ok()
    assert of_job(jobs, "job") == before
    jobs.verb("cancel", "job").ok()


def test_a_pod_too_many_of_the_launchers_job(jobs):
    """The Job's controller may make one, for a name that was just free: whose log is read is the one that leads."""
    api, space = jobs.cluster.api, jobs.namespace.name
    job = Running(jobs, workers=1, command=["sh", "-c", "echo up; until [ -e /tmp/go ]; do sleep 0.2; done; echo done"]).wait_lines(1)
    image = api.get("v1", "Pod", "job-w-0", space)["spec"]["containers"][0]["image"]
    api.make({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "job-other", "namespace": space, "labels": {"drarun.dev/job": "job", "batch.kubernetes.io/job-name": "job"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": api.get("batch/v1", "Job", "job", space)["metadata"]["uid"]}]},
        "spec": {"containers": [{"name": "launcher", "image": image, "imagePullPolicy": "Never",
                                 "command": ["sh", "-c", "echo of the other; exec sleep 1000"]}], "terminationGracePeriodSeconds": 0}})
    jobs.cluster.wait("the other pod does not run", lambda: api.get("v1", "Pod", "job-other", space)["status"]["phase"] == "Running", 60)
    jobs.cluster.kubectl("exec", "job-w-0", "-n", space, "--", "touch", "/tmp/go")
    result = job.ended()
    assert (result.rc, result.out) == (0, "up\ndone\n"), result
    api.delete("v1", "Pod", "job-other", space)


ENOUGH = {"cpu": "100m", "memory": "64Mi"}
TEMPLATE = {"spec": {"containers": [{"name": "worker", "image": "localhost/busybox:1", "command": ["echo", "ran"],
                                     "resources": {"requests": ENOUGH, "limits": ENOUGH}}]}}


def test_launcher_pod_fits_a_quota_and_lands_where_the_spec_says(jobs):
    """A quota of CPU and memory refuses pods that do not say what they take, and evictions begin with those."""
    api, space = jobs.cluster.api, jobs.namespace.name
    hard = {f"{what}.{of}": much for what in ("requests", "limits") for of, much in (("cpu", "2"), ("memory", "2Gi"))}
    api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": space}, "spec": {"hard": hard}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in api.get("v1", "ResourceQuota", "team", space).get("status", {}), 30)
    jobs.cluster.kubectl("taint", "node", "n1", "only=launchers:NoSchedule")
    try:
        jobs.verb("submit", jobs.file(template=TEMPLATE, launcher={
            "tolerations": [{"key": "only", "operator": "Exists"}], "nodeSelector": {"kubernetes.io/hostname": "n1"},
            "annotations": {"karpenter.sh/do-not-disrupt": "false", "team": "a"}})).ok()
        jobs.verb("wait", "job", timeout=RUN_S).ok()
        pod = api.get("v1", "Pod", launcher_of(jobs), space)
        assert (pod["spec"]["nodeName"], pod["status"]["qosClass"]) == ("n1", "Guaranteed"), pod
        assert pod["metadata"]["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                                                  "karpenter.sh/do-not-disrupt": "false", "team": "a"}
        assert jobs.verb("logs", "job").ok().out == "ran\n"
        unsaid = jobs.run("--here", name="unsaid", command=["true"])
        assert unsaid.rc == 69 and "quota" in unsaid.err and "team" in unsaid.err, unsaid
    finally:
        jobs.cluster.kubectl("taint", "node", "n1", "only-")
        api.delete("v1", "ResourceQuota", "team", space)


# -- logs

def log_of(jobs, pod, container):
    """Lines of our own in a pod's log."""
    path = jobs.cluster.api.path("v1", "Pod", jobs.namespace.name, pod)
    text = jobs.cluster.api.ok("GET", f"{path}/log?container={container}", accept="*/*")
    lines = text.splitlines() if isinstance(text, str) else [json.dumps(text)]  # one line is a whole document
    return [json.loads(line) for line in lines if not line.startswith("[")]


def launcher_of(jobs, name="job"):
    return next(each["metadata"]["name"] for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
                if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == name)


def test_own_lines_in_pods_are_json(jobs):
    """Of the agent, and of the launcher: which job, attempt, worker and node they are about."""
    jobs.verb("submit", jobs.file(workers=2, command=["sh", "-c", "echo up; exec sleep 1000"])).ok()
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    api, there = jobs.cluster.api, jobs.namespace.name
    pods = [api.get("v1", "Pod", f"job-w-{i}", there) for i in range(2)]
    stranger = "import socket, sys; s = socket.create_connection((sys.argv[1], 7173), 5); s.sendall(b'hello'*99); s.recv(9)"
    jobs.cluster.in_ns(["python3", "-c", stranger, pods[0]["status"]["podIP"]])
    container = pods[0]["spec"]["containers"][0]["name"]
    jobs.cluster.wait("the agent does not tell of the stranger", lambda: len(log_of(jobs, "job-w-0", container)) > 1, 20)
    said = log_of(jobs, "job-w-0", container)
    for line in said:
        assert line.items() >= {"job": "job", "attempt": 1, "worker": 0, "node": pods[0]["spec"]["nodeName"]}.items()
    assert [(line["level"], line["text"].split()[0]) for line in said[:1]] == [("note", "listening")], said
    assert said[1]["level"] == "error" and "refused" in said[1]["text"] and said[1]["time"], said
    api.delete("v1", "Pod", "job-w-1", there)
    waited = jobs.verb("wait", "job")
    assert waited.rc == 70 and re.match(r"drarun: worker 1 \(job-w-1 on n\d\) was deleted\n  \S", waited.err), waited.err
    lines = log_of(jobs, launcher_of(jobs), "launcher")
    assert (lines[0]["event"], lines[0]["lines"]) == ("log", 0), lines[0]
    assert all(line["job"] == "job" for line in lines), lines
    assert all(line["attempt"] == 1 and line["time"] for line in lines if line.get("event") != "log"), lines
    # one of them says that the pod is taken away, where its deletion was seen before its connection ended
    about = [line for line in lines if line.get("worker") == 1 and "node" in line]
    assert {line["node"] for line in about} <= {pods[1]["spec"]["nodeName"]}, lines
    assert (lines[-1]["event"], lines[-1]["worker"], lines[-1]["status"]) == ("ended", 1, 70), lines[-1]


# -- metrics

def parsed(text):
    """{(metric, other labels): value} of one job."""
    values = {}
    for name, labels, value in metrics.samples(text):
        assert labels.pop("job") == "job" and labels.pop("namespace"), (name, labels)
        values[name, *labels.values()] = value
    return values


def launcher_ip(jobs):
    """The kubelet tells it later than the launcher its phase."""
    return jobs.cluster.wait("the launcher has no address", lambda: jobs.cluster.api.get(
        "v1", "Pod", launcher_of(jobs), jobs.namespace.name)["status"].get("podIP"), 30)


def test_metrics_are_served_while_the_job_runs(jobs):
    jobs.verb("submit", jobs.file(workers=2, ranksPerWorker=3, command=["sleep", "1000"])).ok()
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    pod = jobs.cluster.api.get("v1", "Pod", launcher_of(jobs), jobs.namespace.name)
    assert pod["spec"]["containers"][0]["ports"] == [{"name": "metrics", "containerPort": 7172, "protocol": "TCP"}]
    ip = launcher_ip(jobs)
    status, content, text = metrics.scrape(jobs.cluster, ip)
    assert (status, content) == (200, "text/plain; version=0.0.4; charset=utf-8"), text
    values = parsed(text)
    assert values["drarun_job_phase", "running"] == 1 and values["drarun_job_phase", "placing"] == 0, text
    assert values["drarun_job_workers", "wanted"] == values["drarun_job_workers", "running"] == 2, text
    assert values["drarun_job_ranks",] == 6 and values["drarun_job_restarts_total",] == 0, text
    key = jobs.cluster.api.get("v1", "Secret", namespace=jobs.namespace.name)[0]["data"]["key"]
    assert base64.b64decode(key).decode() not in text
    then = values["drarun_job_phase_seconds", "running"]
    assert parsed(metrics.scrape(jobs.cluster, ip)[2])["drarun_job_phase_seconds", "running"] > then  # of now, not of the last phase
    assert metrics.scrape(jobs.cluster, ip, path="/")[0] == 404 and metrics.scrape(jobs.cluster, ip, method="DELETE")[0] >= 400
    assert metrics.scrape(jobs.cluster, ip, method="HEAD")[0] == 200
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


def test_metrics_elsewhere_and_nowhere(jobs):
    """DRARUN_METRICS."""
    bad = jobs.verb("submit", jobs.file(command=["true"]), env={"DRARUN_METRICS": "seven"})
    assert bad.rc == 64 and 'DRARUN_METRICS: expected a port or off, got "seven"' in bad.err, bad
    jobs.verb("submit", jobs.file(command=["sleep", "1000"]), env={"DRARUN_METRICS": "9400"}).ok()
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    assert "drarun_job_ranks" in metrics.scrape(jobs.cluster, launcher_ip(jobs), 9400)[2]
    jobs.verb("cancel", "job").ok()
    jobs.verb("wait", "job")
    off = jobs.file(name="off", command=["sleep", "1000"])
    jobs.verb("submit", off, env={"DRARUN_METRICS": "off"}).ok()
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status("off") or {}).get("phase") == "running", 30)
    pod = jobs.cluster.api.get("v1", "Pod", launcher_of(jobs, "off"), jobs.namespace.name)
    assert "ports" not in pod["spec"]["containers"][0], pod
    jobs.verb("cancel", "off").ok()


# -- the right to it

CLUSTER_WIDE = {"nodes", "resourceslices", "deviceclasses", "devicetaintrules", "selfsubjectreviews"}
NOT_TRIED = {("computedomains", "get"), ("computedomains", "create"),  # no such API here
             *(("drajobs", verb) for verb in ("create", "delete", "watch", "patch")),  # likewise; patch: kubectl apply
             ("podgroups", "get"), ("podgroups", "create"), ("networkpolicies", "get"),
             ("resourceclaims", "get"), ("resourceclaimtemplates", "get"), ("pods", "get"),  # of what is in the way
             ("pods", "delete"),  # of a node that does not answer
             ("jobs", "list"), ("resourceclaims", "list"), ("pods/exec", "create"),  # other versions of the server
             ("pods/portforward", "get"), ("pods/portforward", "create")}  # of alloc: test_cluster_alloc.py


def test_user_role_is_enough_and_not_more(jobs, cluster):
    """What `drarun install --user-role` prints, counted against what its user asked the API server for."""
    cluster.device_classes()
    there = jobs.namespace.name
    cluster.kubectl("apply", "-f", "-", input=jobs.verb("install", "--namespace", there).ok().out)
    listed = json.loads(jobs.verb("install", "-n", there, "--user-role", "--format", "json").ok().out)
    (role,) = listed["items"]
    mine = {"KUBECONFIG": str(jobs.namespace.rbac_user(role))}
    mark = cluster.audit.mark()

    def drarun(*words, **how):
        return jobs.verb(*words, env=mine, **how)
    assert jobs.run(workers=2, env=mine, command=["echo", "mine"]).ok().out == "mine\n" * 2
    again = jobs.run(workers=1, env=mine, command=["true"])
    assert again.rc == 69 and 'there is a job "job"' in again.err, again
    for verb in ("status", "describe", "list", "logs", "wait"):
        assert drarun(verb, *(["job"] if verb != "list" else [])).ok()
    drarun("cancel", "job").ok()
    drarun("submit", jobs.file(name="long", command=["sh", "-c", "echo up; exec sleep 1000"])).ok()
    cluster.wait("the ranks do not run", lambda: (jobs.status("long") or {}).get("phase") == "running", 30)
    assert drarun("exec", "long", "0", "--", "echo", "beside").ok().out == "beside\n"
    drarun("cancel", "long").ok()
    assert drarun("wait", "long").rc == 130
    for mode in ("direct", "template"):  # the devices are nowhere
        drarun("submit", jobs.file(name=mode, command=["true"], devices={
            "claims": mode, "gpus": {"count": 1, "class": "gpu.nvidia.com"}})).ok()
        cluster.wait("it does not wait", lambda: "waiting" in drarun("status", mode).ok().out, 30)
        drarun("cancel", mode).ok()
    here = Running(jobs, "--here", name="here", command=["sleep", "1000"]).wait_running()  # another's
    drarun("cancel", "here").ok()
    assert here.ended().rc == 130
    killed(jobs, "left")
    age(jobs, "left", 90)
    assert "job left: its launcher" in drarun("submit", jobs.file(name="last", command=["true"])).ok().err
    asked = [each for each in cluster.audit.requests(since=mark, user=f"system:serviceaccount:{there}:drarun-user")
             if each.resource and each.resource not in CLUSTER_WIDE]
    assert not [each for each in asked if each.code == 403], asked
    used = {(f"{each.resource}/{each.subresource}" if each.subresource else each.resource, each.verb) for each in asked}
    given = {(name, verb) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}
    assert given - used <= NOT_TRIED and used <= given, (given - used, used - given)


def test_image_for_another_architecture(jobs, tmp_path):
    """What a node says of an agent's image that is not for it."""
    program = tmp_path / "drarun-worker"
    head = bytearray((BUILD / "bin/drarun-worker").read_bytes()[:4096])
    head[18:20] = (183 if head[18] == 62 else 62).to_bytes(2, "little")  # e_machine: arm64, or amd64
    program.write_bytes(head)
    program.chmod(0o755)
    image = jobs.cluster.image("foreign", files={"/bin/drarun-worker": program}, config={"User": "65532:65532"})
    for way, said in (("copy", "its image has no program for the architecture of this node (exec /bin/drarun-worker: exec format error"),
                      ("volume", "an image for another architecture than the node's has no agent for it")):
        if way == "volume" and jobs.cluster.plane.minor < 35:
            continue  # its pods have no image volumes
        result = jobs.run("--here", env={"DRARUN_IMAGE": image, "DRARUN_AGENT": way}, name=way, command=["true"])
        assert result.rc == 70 and said in result.err, result
