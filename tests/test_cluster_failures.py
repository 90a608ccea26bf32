# SPDX-License-Identifier: Apache-2.0
"""What the cluster does to a running job on two real nodes: said once as the first cause, and tried again."""
import json
import re
import threading
import time

import pytest

from support.build import patience
from support.timed import and_timed
from support.cluster.machines import GPU, Machines, SMALL, only
from support.cluster_jobs import Running

LOST_S = 15
LAUNCHER_LOST_S = 30
GONE_S = 60
HERE_OR_POD = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])
# says "saved" when it is told to end
SAVES = ["sh", "-c", 'trap "echo rank $RANK saved; exit 0" TERM; echo up; while :; do sleep 0.1; done']
SLEEPS = ["sh", "-c", "echo up; exec sleep 1000"]
SECOND_ENDS = ["sh", "-c", "echo up in attempt $DRARUN_ATTEMPT; [ $DRARUN_ATTEMPT = 2 ] || exec sleep 1000"]


def evict(jobs, pod):
    path = jobs.cluster.api.path("v1", "Pod", jobs.namespace.name, pod)
    jobs.cluster.api.ok("POST", f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {
        "name": pod, "namespace": jobs.namespace.name}})


def template(command, container=None, **pod):
    return {"spec": {"containers": [{"name": "main", "image": "localhost/busybox:1", "command": command,
                                     **(container or {})}], **pod}}


def what_is_left(jobs):
    """Beside what is there once for each namespace."""
    return [each for each in jobs.namespace.leftovers(0) if each[1] not in ("drarun-launcher", "drarun")]


def node_of(jobs, pod):
    return jobs.cluster.api.get("v1", "Pod", pod, jobs.namespace.name)["spec"]["nodeName"]


@HERE_OR_POD
def test_eviction_gives_every_rank_its_grace(jobs, mode):
    job = Running(jobs, *mode, workers=2, command=SAVES).wait_lines(2)
    evict(jobs, "job-w-1")
    result = job.ended()
    assert result.rc == 70, result
    assert sorted(result.out.split("\n")) == ["", "rank 0 saved", "rank 1 saved", "up", "up"], result
    assert re.search(r"worker 1 \(job-w-1 on n\d\) was evicted", result.err), result
    assert result.err.count("worker 0") == 0, result


@and_timed
def test_grace_has_an_end(jobs, timed):
    deaf = ["sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.1; done']
    job = Running(jobs, "--here", workers=2, template=template(deaf, terminationGracePeriodSeconds=4)).wait_lines(2)
    began = time.monotonic()
    evict(jobs, "job-w-1")
    result = job.ended()
    assert result.rc == 70 and "was evicted" in result.err, result
    took = job.at - began
    assert took > 1.5 and (not timed or took < 8), took


@pytest.mark.gate
def test_deleted_pod_is_the_cause(jobs):
    job = Running(jobs, "--here", workers=2, command=SAVES).wait_lines(2)
    jobs.cluster.api.delete("v1", "Pod", "job-w-0", jobs.namespace.name)
    result = job.ended()
    assert result.rc == 70 and "worker 0 (job-w-0 on n" in result.err and "was deleted" in result.err, result
    assert "rank 1 saved" in result.out, result


def test_news_of_a_deletion_come_after_the_ranks_have_ended(jobs, jobs_proxy):
    """What the cluster did is the cause, though the agents have said goodbye before."""
    news = threading.Event()

    def held(exchange):
        answer = exchange.ask()
        exchange.send(exchange.head(answer, chunked=True))
        while data := answer.read1(65536):
            news.wait()
            exchange.chunk(data)
        exchange.send(b"0\r\n\r\n")
    news.set()
    jobs_proxy.fault(held, lambda method, path: "/pods?" in path and "watch=" in path, 10 ** 6)
    job = Running(jobs, "--here", env=jobs_proxy.env, workers=2, command=SLEEPS).wait_lines(2)
    news.clear()
    jobs.cluster.api.delete("v1", "Pod", "job-w-0", jobs.namespace.name)
    # the agent has said so: the launcher waits 3 s for what the cluster says
    jobs.cluster.wait(lambda: f"the agent does not leave: {job.said}", lambda: any("is being removed" in line for line in job.said), GONE_S)
    news.set()
    result = job.ended()
    assert result.rc == 70 and re.search(r"worker 0 \(job-w-0 on n\d\) was deleted", result.err), result


def test_news_of_a_deletion_come_with_those_of_the_end(jobs, jobs_proxy):
    """The agent has left in order, with status 0: the pod did not end by itself for that."""
    over = threading.Event()

    def has_ended(event):
        statuses = event["object"].get("status", {}).get("containerStatuses", [])
        return "deletionTimestamp" in event["object"]["metadata"] and any("terminated" in each["state"] for each in statuses)

    def held(exchange):
        """All from the deletion to the container's end comes at once, and nothing more."""
        answer = exchange.ask()
        exchange.send(exchange.head(answer, chunked=True))
        kept = b""
        for line in answer:
            event = json.loads(line)
            kept += line
            if "deletionTimestamp" not in kept.decode() or has_ended(event):
                exchange.chunk(kept)
                kept = b""
            if has_ended(event):
                break
        over.wait(patience())
    jobs_proxy.fault(held, lambda method, path: "/pods?" in path and "watch=" in path, 10 ** 6)
    job = Running(jobs, "--here", env=jobs_proxy.env, workers=2, command=SLEEPS).wait_lines(2)
    jobs.cluster.api.delete("v1", "Pod", "job-w-0", jobs.namespace.name)
    try:
        result = job.ended()
    finally:
        over.set()
    assert result.rc == 70 and re.search(r"worker 0 \(job-w-0 on n\d\) was deleted", result.err), result


def test_oom_kill_is_the_cause(jobs):
    hog = ["sh", "-c", "[ $RANK = 0 ] && sleep 1000; x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo $x | wc -c"]
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    result = jobs.run("--here", workers=2, template=template(hog, limits))
    assert result.rc == 137 and "OOM" in result.err and "worker 1" in result.err, result


def test_oom_kill_that_takes_the_agent_is_the_cause(jobs):
    """As cgroup v2 does it: the container's status is all that is left to tell. No process has most of the memory."""
    hog = ["sh", "-c", "echo up; sleep 3; [ $RANK = 0 ] && sleep 1000; head -c 300000000 /dev/zero >/dev/shm/x"]
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    job = Running(jobs, "--here", workers=2, template=template(hog, limits)).wait_lines(2)
    node, mine = jobs.agent("job-w-1")
    for pid in mine:
        node.ok(["sh", "-c", f"echo 1000 >/proc/{pid}/oom_score_adj"])  # the first to go
    result = job.ended()
    assert result.rc == 137 and "worker 1 (job-w-1 on n" in result.err, result
    assert "was killed as a whole by the kernel's OOM killer" in result.err and "resources.limits.memory" in result.err, result
    assert ": ;" not in result.err, result  # why the connection ended, before the cluster tells the rest


def test_preemption_by_a_pod_of_higher_priority(jobs):
    api = jobs.cluster.api
    api.make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "above"}, "value": 1000})
    most = {"resources": {"requests": {"cpu": f"{int(api.get('v1', 'Node', 'n0')['status']['allocatable']['cpu']) * 600}m"}}}
    try:
        job = Running(jobs, "--here", workers=2, template=template(SAVES, most)).wait_lines(2)
        above = jobs.cluster.pod("above", ["sleep", "1000"], namespace=jobs.namespace.name, container=most,
                                 priorityClassName="above").make()
        result = job.ended()
        assert result.rc == 70 and re.search(r"worker \d \(job-w-\d on n\d\) was preempted", result.err), result
        assert result.out.count("saved") == 2, result
        above.delete()
    finally:
        api.delete("scheduling.k8s.io/v1", "PriorityClass", "above")


@pytest.fixture
def claimed(cluster, jobs):
    """The parts of a pod template that claim one of two devices on each node."""
    machines = Machines(cluster, SMALL, only(2))
    cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {
        "name": "one", "namespace": jobs.namespace.name}, "spec": {"spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": GPU}}]}}}})
    yield {"resourceClaims": [{"name": "one", "resourceClaimTemplateName": "one"}],
           "container": {"resources": {"claims": [{"name": "one"}]}}}
    cluster.api.delete("resource.k8s.io/v1", "ResourceClaimTemplate", "one", jobs.namespace.name)
    cluster.wait("its claims are not gone", lambda: not cluster.api.get(
        "resource.k8s.io/v1", "ResourceClaim", namespace=jobs.namespace.name), GONE_S)
    machines.stop()


def held_device(jobs, pod):
    """What a DeviceTaintRule selects the device by that the pod's own claim has."""
    api, there = jobs.cluster.api, jobs.namespace.name
    claim = api.get("v1", "Pod", pod, there)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    found = api.get("resource.k8s.io/v1", "ResourceClaim", claim, there)["status"]["allocation"]["devices"]["results"][0]
    return {key: found[key] for key in ("driver", "pool", "device")}


def test_taint_of_a_device_moves_the_job_to_another(jobs, claimed):
    api = jobs.cluster.api
    job = Running(jobs, "--here", workers=2, restarts=1, template=template(SECOND_ENDS, **claimed)).wait_lines(2)
    faulty = held_device(jobs, "job-w-1")
    api.make({"apiVersion": jobs.cluster.plane.taint_rules, "kind": "DeviceTaintRule", "metadata": {"name": "faulty"},
              "spec": {"deviceSelector": faulty, "taint": {"key": "test/faulty", "effect": "NoExecute"}}})
    try:
        result = job.ended().ok()
    finally:
        api.delete(jobs.cluster.plane.taint_rules, "DeviceTaintRule", "faulty")
    assert "attempt 2 follows (1 of 1 restarts)" in result.err, result
    assert "ended by a taint of one of its devices" in result.err, result
    assert result.out.count("up in attempt 2") == 2, result


def test_restarts_have_a_bound_and_are_told_of(jobs):
    job = Running(jobs, workers=2, command=SLEEPS, restarts=1).wait_running()
    evict(jobs, "job-w-0")
    job.wait_running(attempt=2)
    status = jobs.status()
    assert status["restarts"] == 1 and status["history"][0]["cause"]["end"] == "evicted", status
    evict(jobs, "job-w-0")
    result = job.ended()
    assert result.rc == 70 and re.search(r"attempt 1 ended with 70: worker 0 \(job-w-0 on n\d\) was evicted.*; attempt 2 follows "
                                         r"\(1 of 1 restarts\)", result.err), result
    events = jobs.cluster.api.ok("GET", f"/api/v1/namespaces/{jobs.namespace.name}/events")["items"]
    told = [each["reason"] for each in events if each["reportingComponent"] == "drarun.dev/launcher"]
    told = [reason for reason in told if reason != "Waiting"]  # on a busy machine
    assert sorted(told) == ["Failed", "Restarted", "Started", "Started"], told


def test_taint_of_a_device_that_is_tolerated(jobs, claimed):
    """All GPUs are tainted: a job gets one if it says that it does not mind."""
    api, gpus = jobs.cluster.api, {"count": 1, "class": GPU}
    api.make({"apiVersion": jobs.cluster.plane.taint_rules, "kind": "DeviceTaintRule", "metadata": {"name": "worn"},
              "spec": {"deviceSelector": {"driver": GPU}, "taint": {"key": "test/worn", "value": "much", "effect": "NoSchedule"}}})
    try:
        refused = jobs.run("--here", name="minds", command=["true"], devices={"gpus": gpus}, timeouts={"allocation": "5s"})
        assert refused.rc == 75 and "test/worn" in refused.err, refused
        for toleration in ({"key": "test/worn", "operator": "Exists"}, {"key": "test/worn", "value": "much", "effect": "NoSchedule"}):
            assert jobs.run("--here", command=["echo", "runs"], devices={"gpus": {**gpus, "tolerations": [toleration]}}).ok().out == "runs\n"
    finally:
        api.delete(jobs.cluster.plane.taint_rules, "DeviceTaintRule", "worn")


RULED = ["sh", "-c", "echo up in attempt $DRARUN_ATTEMPT; [ $DRARUN_ATTEMPT = 3 ] || exit $DRARUN_ATTEMPT"]


@pytest.mark.gate
def test_rules_decide_what_an_end_means(jobs):
    """The first attempt does not count and its worker goes to another node, the second counts to the number of restarts."""
    policy = {"restarts": 1, "rules": [{"on": {"exitCodes": [1]}, "action": "ignore", "node": "avoid"}]}
    result = jobs.run(command=RULED, failurePolicy=policy).ok()
    assert "attempt 2 follows (does not count, by failurePolicy.rules[0])" in result.err, result
    assert "attempt 3 follows (1 of 1 restarts)" in result.err, result
    status = jobs.status()
    assert status["restarts"] == 2 and status["counted"] == {"restarts": 1, "infrastructureRestarts": 0}, status
    first, second = (each["cause"] for each in status["history"])
    assert (first["exit"], second["exit"]) == (1, 2) and first["node"] != second["node"], status


def test_rule_ends_the_job(jobs):
    policy = {"restarts": 5, "rules": [{"on": {"cause": "evicted"}, "action": "restart"}, {"on": {"exitCodes": [9]}, "action": "fail"}]}
    result = jobs.run(command=["sh", "-c", "exit 9"], failurePolicy=policy)
    assert result.rc == 9 and "failurePolicy.rules[1] ends the job" in result.err and "follows" not in result.err, result


FARM = ["sh", "-c", 'trap "echo rank $RANK saved; exit 0" USR1; echo up; [ $RANK != 1 ] || exit 3; while :; do sleep 0.1; done']


def test_rank_fails_alone_and_the_others_are_warned(jobs):
    """25 s after the job began, which is long after its ranks did."""
    job = Running(jobs, workers=2, ranksPerWorker=2, command=FARM, failurePolicy={"onRankFailure": "continue"},
                  timeouts={"total": "10m", "signal": "SIGUSR1", "signalBefore": "9m35s", "agent": "30s"})
    result = job.ended(120)
    assert result.rc == 3, result
    assert sorted(result.out.split("\n")) == ["", "rank 0 saved", "rank 2 saved", "rank 3 saved", *4 * ["up"]], result
    assert "SIGUSR1 sent to the ranks: the job's timeout ends them in 575 s" in result.err, result
    report = jobs.status()["report"]
    assert report["failed"] == 1 and [each["rank"] for each in report["failures"]] == [1] and report["cause"]["exit"] == 3, report


def test_infrastructure_has_a_number_of_its_own(jobs):
    job = Running(jobs, workers=2, command=SLEEPS, failurePolicy={"infrastructureRestarts": 1}).wait_running()
    evict(jobs, "job-w-0")
    job.wait_running(attempt=2)
    evict(jobs, "job-w-0")
    result = job.ended()
    assert result.rc == 70 and "attempt 2 follows (1 of 1 infrastructureRestarts)" in result.err and "attempt 3" not in result.err, result


def launcher_pod(jobs, name):
    """The one that is not on its way out."""
    found = [each for each in jobs.cluster.api.get("v1", "Pod", namespace=jobs.namespace.name)
             if each["metadata"]["labels"].get("batch.kubernetes.io/job-name") == name
             and each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"]]
    return found[0] if len(found) == 1 else None


def test_job_goes_on_with_another_launcher(jobs):
    """Of two jobs the launcher is killed, or evicted: the Job's next pod comes 10 s later."""
    both = [Running(jobs, name=name, workers=2, command=SLEEPS, restarts=1) for name in ("killed", "evicted")]
    before = [launcher_pod(jobs, each.wait_running().wait_lines(2).name) for each in both]
    there = next(each for each in jobs.cluster.nodes if each.name == before[0]["spec"]["nodeName"])
    there.ok(["pkill", "-KILL", "-f", "run --job killed$"])
    evict(jobs, before[1]["metadata"]["name"])
    for job, earlier in zip(both, before):
        job.wait_running(attempt=2).wait_lines(4)
        assert launcher_pod(jobs, job.name)["metadata"]["name"] != earlier["metadata"]["name"]
        assert jobs.status(job.name)["history"][0]["cause"]["kind"] == "launcher-lost", jobs.status(job.name)
        jobs.verb("cancel", job.name).ok()
        result = job.ended()
        lost = re.findall(rf"launcher {earlier['metadata']['name']} was lost, and its ranks were ended", result.err)
        assert result.rc == 130 and len(lost) == 1 and "; attempt 2 follows (1 of 1 restarts)" in result.err, result
        assert result.out == "up\n" * 4, result


def test_lost_launcher_is_told_once(jobs):
    """Of a job that has no restarts, by the next launcher, which cannot know for how long there was none."""
    job = Running(jobs, workers=2, command=SLEEPS).wait_running()
    lost = launcher_pod(jobs, job.name)
    there = next(each for each in jobs.cluster.nodes if each.name == lost["spec"]["nodeName"])
    there.ok(["pkill", "-KILL", "-f", f"run --job {job.name}$"])
    result = job.ended()
    told = f"drarun: the launcher {lost['metadata']['name']} was lost, and its ranks were ended\n"
    assert result.rc == 70 and result.err.count(told) == result.err.count(" was lost") == 1 and "\n\n" not in result.err, result


ENDS_ONCE = "echo up; [ $DRARUN_ATTEMPT = 1 ] || exit 0; until [ -e /tmp/go ]; do sleep 0.1; done; exit 3"


@HERE_OR_POD
def test_quota_is_used_up_at_a_restart(jobs, mode):
    """By others, who give it back: that ends no job with restarts left, and its reason is said."""
    api, there = jobs.cluster.api, jobs.namespace.name
    job = Running(jobs, *mode, workers=2, restarts=1, timeouts={"allocation": "5m"},
                  template=template(["sh", "-c", ENDS_ONCE])).wait_lines(2)
    api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": there},
              "spec": {"hard": {"pods": "1"}}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in api.get("v1", "ResourceQuota", "few", there).get("status", {}), 30)
    jobs.cluster.kubectl("exec", "job-w-0", "-n", there, "--", "touch", "/tmp/go")
    told = r"the workers of attempt \d+ cannot be created: .*exceeded quota: few"
    jobs.cluster.wait(lambda: f"it does not say why: {job.said}", lambda: re.search(told, "".join(job.said)), 60)
    api.delete("v1", "ResourceQuota", "few", there)
    result = job.ended()
    assert result.rc == 0 and result.out.split() == ["up"] * 4, result


def test_quota_is_used_up_at_a_restart_of_an_indexed_job(jobs):
    """Where the Job controller meets it, and tells by Events: the workers that it could make are given back meanwhile."""
    api, there = jobs.cluster.api, jobs.namespace.name
    job = Running(jobs, "--here", workers=2, restarts=1, timeouts={"allocation": "5m"}, devices={"claims": "template"},
                  template=template(["sh", "-c", ENDS_ONCE])).wait_lines(2)
    api.make({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": there},
              "spec": {"hard": {"pods": "1"}}})
    jobs.cluster.wait("the quota does not hold", lambda: "hard" in api.get("v1", "ResourceQuota", "few", there).get("status", {}), 30)
    first = next(each["metadata"]["name"] for each in api.get("v1", "Pod", namespace=there) if each["metadata"]["name"].startswith("job-w-0-"))
    jobs.cluster.kubectl("exec", first, "-n", there, "--", "touch", "/tmp/go")
    jobs.cluster.wait(lambda: f"it does not say why: {job.said}", lambda: re.search(
        r"its pod is refused: .*exceeded quota: few", "".join(job.said)), 60)
    jobs.cluster.wait(lambda: f"nothing is given back: {jobs.status()}", lambda: jobs.status()["tries"] > 0 or job._alive(), 60)
    api.delete("v1", "ResourceQuota", "few", there)
    result = job.ended(120)
    assert result.rc == 0 and result.out.split() == ["up"] * 4, result


def test_failing_rank_is_tried_again(jobs):
    command = ["sh", "-c", "echo attempt $DRARUN_ATTEMPT; [ $DRARUN_ATTEMPT = 2 ] || exit 9"]
    for job in [Running(jobs, "--here", name=claims, workers=2, command=command, restarts=1, devices={"claims": claims})
                for claims in ("direct", "template")]:
        result = job.ended().ok()
        assert result.out.count("attempt 2") == 2 and "attempt 1 ended with 9: attempt 2 follows" in result.err, result


def test_cancel_of_a_job_led_from_here(jobs):
    job = Running(jobs, "--here", workers=2, command=SAVES).wait_running()
    jobs.verb("cancel", "job").ok()
    result = job.ended()
    assert result.rc == 130, result


def test_total_deadline_under_running_ranks(jobs):
    result = jobs.run("--here", command=SLEEPS, timeouts={"total": "15s"})
    assert result.rc == 124 and "spec.timeouts.total" in result.err, result
    assert result.out == "up\n", result


def test_name_of_an_expired_job_is_free(jobs):
    def again(name, seconds):
        result = jobs.run("--here", name=name, command=["true"], ttlSecondsAfterFinished=seconds)
        assert result.rc == 0 or "there is a job" in result.err, result
        return result.rc == 0
    assert again("kept", 1000) and not again("kept", 1000)
    jobs.verb("cancel", "kept").ok()
    assert again("job", 2)
    jobs.cluster.wait("its name stays taken", lambda: again("job", 2), GONE_S, 0.5)
    jobs.cluster.wait("it stays", lambda: "no jobs" in jobs.verb("list").ok().err, GONE_S, 0.5)


def test_ended_job_is_shown_for_its_time_to_live(jobs):
    both = [Running(jobs, *mode, name=name, workers=1, command=["sh", "-c", "exit 3"], ttlSecondsAfterFinished=20)
            for name, mode in (("here", ["--here"]), ("pod", []))]
    for each in both:
        assert each.ended().rc == 3
    for name in ("here", "pod"):
        assert "failed" in jobs.verb("status", name).ok().out and jobs.verb("wait", name).rc == 3
        assert f"{name} " in jobs.verb("list").ok().out

    def gone():
        return "no jobs" in jobs.verb("list").ok().err and not what_is_left(jobs)
    jobs.cluster.wait(lambda: f"it stays: {what_is_left(jobs)}", gone, 20 + GONE_S, 0.2)


@pytest.mark.parametrize("mode,kind,owner", [(["--here"], ("v1", "ConfigMap"), "job-status"),
                                             ([], ("batch/v1", "Job"), "job")], ids=["here", "pod"])
def test_deleting_the_owner_alone_removes_everything(jobs, mode, kind, owner):
    job = Running(jobs, *mode, workers=2, command=SLEEPS).wait_lines(2)
    jobs.cluster.api.delete(*kind, owner, jobs.namespace.name)
    result = job.ended()
    assert result.rc in (69, 70) and "delete" in result.err, result
    jobs.cluster.wait(lambda: f"it leaves {what_is_left(jobs)}", lambda: not what_is_left(jobs), GONE_S)


@and_timed
def test_silent_node_is_noticed_and_avoided(jobs, timed):
    job = Running(jobs, "--here", workers=1, command=SECOND_ENDS, restarts=1).wait_lines(1)
    lost = next(each for each in jobs.cluster.nodes if each.name == node_of(jobs, "job-w-0"))
    began = time.monotonic()
    lost.cut()
    try:
        job.wait_lines(1, "attempt 2")
        took = time.monotonic() - began
        assert not timed or took < LOST_S + 5, took  # and the next attempt's start
        result = job.ended().ok()
        assert f"(job-w-0 on {lost.name}) was lost with its node" in result.err, result
        jobs.cluster.wait("its pods are not gone while the node is silent", lambda: not jobs.cluster.api.get(
            "v1", "Pod", namespace=jobs.namespace.name), GONE_S)
    finally:
        lost.mend()
        lost.wait_ready()


def test_silent_node_may_come_back(jobs):
    """For timeouts.agent: longer than the usual 12 s, and than the 30 s after which a kernel ends a connection."""
    job = Running(jobs, "--here", workers=1, command=["sh", "-c", "echo up; sleep 50; echo done"], timeouts={"agent": "4m"}).wait_lines(1)
    node = next(each for each in jobs.cluster.nodes if each.name == node_of(jobs, "job-w-0"))
    began = time.monotonic()
    node.cut()
    try:
        while time.monotonic() - began < 40:
            assert job.job.process.poll() is None, job.ended()
            time.sleep(0.5)
    finally:
        node.mend()
        node.wait_ready()
    result = job.ended(120).ok()
    assert result.out == "up\ndone\n" and "lost" not in result.err, result


@and_timed
def test_node_of_the_launcher_is_silent(jobs, timed):
    """Said within 30 s by the client, list and status; cancel ends the job without its launcher, and nothing of it stays."""
    job = Running(jobs, workers=2, command=SLEEPS, placement={"spread": "node"}, restarts=1).wait_running()
    pod = launcher_pod(jobs, "job")
    tolerated = {each["key"]: each.get("tolerationSeconds") for each in pod["spec"]["tolerations"]}
    assert {tolerated[f"node.kubernetes.io/{key}"] for key in ("not-ready", "unreachable")} == {20}, tolerated
    lost = next(each for each in jobs.cluster.nodes if each.name == pod["spec"]["nodeName"])
    words = f"launcher {pod['metadata']['name']} on {lost.name} has not renewed its Lease for "
    began = time.monotonic()
    lost.cut()
    try:
        jobs.cluster.wait(lambda: f"it is not said: {job.said}", lambda: any(words in line for line in job.said), 60)
        took = time.monotonic() - began
        assert not timed or took < LAUNCHER_LOST_S + 10, took
        assert words in jobs.verb("list").ok().out
        assert words in jobs.verb("status", "job").ok().out
        told = json.loads(jobs.verb("status", "job", "--output", "json").ok().out)["silence"]
        assert (told["launcher"], told["node"]) == (pod["metadata"]["name"], lost.name) and told["seconds"] >= 25, told
        cancelled = jobs.verb("cancel", "job").ok()
        assert words in cancelled.err and "its node does not answer; job job is cancelled without it" in cancelled.err, cancelled
        result = job.ended()
        assert result.rc == 70 and "the job job was deleted" in result.err, result
        jobs.cluster.wait(lambda: f"it leaves {what_is_left(jobs)}", lambda: not what_is_left(jobs), GONE_S)
    finally:
        lost.mend()
        lost.wait_ready()
