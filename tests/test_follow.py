# SPDX-License-Identifier: Apache-2.0
"""Whose log `drarun run` takes for a job's, and when it has all of it: beside a registry of objects instead of a cluster,
which lets each thing come about in the worst order."""
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from support.build import patience
from support.following import JOB, LEASE, MAP, OUTPUT, Following, annotation, environment, is_cancelled, job_file, record, until
from support.ports import free_port
from support.registry import Registry, path_of


def test_another_launcher_tells_the_end_before_the_leaders_container_is_known(following):
    """It waits for the Lease, and finds the job ended: its log has no output."""
    read = []

    def of_the_other():
        read.append("other")
        yield b'{"event":"log","job":"job","lines":0}\n'
        until(following.registry, lambda: "status.json" in following.registry.objects[MAP]["data"])
        yield record("job-a", lines=1)
        read.append("told")
    following.pod("job-b", "running", of_the_other)
    until(following.registry, lambda: read)
    following.pod("job-a", "waiting", lambda: iter([OUTPUT, record("job-a")]))
    following.tell("job-a", exit=0)
    until(following.registry, lambda: "told" in read)
    time.sleep(0.3)  # the kubelet is slow
    following.pod("job-a", "terminated")
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_errors_of_the_launcher(drarun, tmp_path):
    """With --quiet they are all that is shown of what it says; logs without --follow shows the ranks' output alone."""
    levels = "note", "error"
    said = b"".join(json.dumps({"level": level, "text": f"it is {level}"}).encode() + b"\n" for level in levels)
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", "-q", job_file(tmp_path)])
        following.pod("job-a", "terminated", lambda: iter([OUTPUT + said, record("job-a", lines=4)]))
        following.tell("job-a", exit=0, lines=5)
        results = {"run -q": following.ended()}
        results |= {words: drarun(*words.split(), "job", env=following.env) for words in ("logs -f", "logs -f -q", "logs")}
    assert {each.out for each in results.values()} == {"of the leader\n"} and not any(each.rc for each in results.values()), results
    assert {words: [level for level in levels if f"it is {level}" in each.err] for words, each in results.items()} == {
        "run -q": ["error"], "logs -f": ["note", "error"], "logs -f -q": ["error"], "logs": []}, results


def test_log_of_a_leader_that_was_killed_before_its_record(following):
    """The stream ends where the connection was closed, and goes on; its end is that of the ended container."""
    opened = []

    def in_pieces():
        opened.append(1)
        yield OUTPUT
        if len(opened) > 1:
            yield b"[0] and on\n"
            return
        until(following.registry, lambda: "status.json" in following.registry.objects[MAP]["data"])
        time.sleep(0.2)
    following.pod("job-a", "running", in_pieces)
    until(following.registry, lambda: opened)
    following.tell("job-a", exit=0)
    until(following.registry, lambda: len(opened) > 1)
    following.pod("job-a", "terminated")
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\nand on\n"), result


READING = "drarun: the workers are up; reading the log of job-a\n"


@pytest.mark.parametrize("lines, log, says", [
    ({"lines": 2}, "late", ["NIC_UNTRIED: worker 0 (job-w-0)\n"]),
    ({"lines": 2}, "never", [READING, "messages of the launcher are missing: the log of job-a was not read: "]),
    ({"lines": 2}, "refused", ["the registry says no"]),
    ({}, "never", [])], ids=["late", "never", "refused", "older launcher"])
def test_messages_from_before_an_allocation_is_up(drarun, tmp_path, lines, log, says):
    """Its document comes another way than its log, and may be ahead of it; it tells how many lines that has by then."""
    fabric = {"opened": {"nics": 0, "good": 0, "failed": 0, "unknown": 0, "matrix": [""]}}
    warning = json.dumps({"level": "note", "text": "NIC_UNTRIED: worker 0 (job-w-0)"}).encode() + b"\n"
    words = ["bench", "fabric", "-o", "json", "--name", "job", "--job", job_file(tmp_path)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=words)

        def late():
            yield b'{"event":"log","job":"job","lines":0}\n'
            until(registry, lambda: "status.json" in registry.objects[MAP]["data"])
            time.sleep(0.5)
            yield warning
        registry.refused = {"log"} if log == "refused" else set()
        following.pod("job-a", "running", None if log == "never" else late)
        following.tell("job-a", fabric=fabric, **lines)
        until(registry, lambda: annotation(registry, "drarun.dev/alloc") == "ended")
        registry.remove(path_of("pods", "job-w-0"))
        result = following.ended()
    assert json.loads(result.out) == fabric, result
    for text in ("NIC_UNTRIED", "messages of the launcher are missing", "the registry says no"):
        assert result.err.count(text) == any(text in each for each in says), result
    assert all(each in result.err for each in says), result


def test_interrupted_while_messages_are_awaited(drarun, tmp_path):
    """The job is followed to its end."""
    over = threading.Event()

    def log():
        yield b'{"event":"log","job":"job","lines":0}\n'
        over.wait(patience())
        yield record("job-a", status=130, lines=1)
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["alloc", job_file(tmp_path), "--", "echo", "up"])
        following.pod("job-a", "running", log)
        following.tell("job-a", lines=2)
        assert next(line for line in following.job.process.stderr if "reading" in line) == READING
        following.job.signal(signal.SIGINT)
        until(registry, lambda: is_cancelled(registry))
        following.tell("job-a", lines=3)
        time.sleep(0.5)
        assert following.job.process.poll() is None
        over.set()
        following.tell("job-a", exit=130)
        result = following.ended()
    assert (result.rc, result.out) == (130, "") and "are kept" not in result.err, result


def allocated(drarun, registry, folder, command, **how):
    """An allocation whose worker is up, and runs that command of sh."""
    following = Following(drarun, registry, folder, words=["alloc", job_file(folder), "--through", "direct", "--", "sh", "-c", command], **how)
    worker = path_of("pods", "job-w-0")
    following.pod("job-a", "running", lambda: iter([b'{"event":"log","job":"job","lines":0}\n']))
    registry.put(worker, {**registry.objects[worker], "status": {"phase": "Running", "podIP": "127.0.0.1"}})
    following.tell("job-a")
    return following


def interrupted_at_its_end(drarun, tmp_path, answers, pause):
    """What an allocation says that is interrupted once its command has ended."""
    over = tmp_path / f"over-{pause}"
    with Registry().serving() as registry:
        following = allocated(drarun, registry, tmp_path, f"echo up; while [ ! -e {over} ]; do sleep 0.02; done; exit 3")
        assert following.job.process.stdout.readline() == "up\n"
        held = None if answers else registry.hold("PATCH", JOB)
        before = annotation(registry, "drarun.dev/alloc")
        over.touch()
        until(registry, lambda: annotation(registry, "drarun.dev/alloc") == "ended" if answers else held.count)
        assert before != "ended"
        time.sleep(pause)
        following.job.signal(signal.SIGINT)
        result = following.ended()
    assert result.rc == 3 and following.registry.objects[JOB], result
    return result.err


DELETING = "interrupted: 1 pods and claims of job are still being deleted by its launcher"
UNTOLD = "its launcher was told of the end; its workers are deleted within 60 s; drarun cancel job deletes them at once"


def test_interrupted_while_an_allocation_ends(drarun, tmp_path):
    """What its launcher deletes is not waited for; the status is the command's."""
    for pause in (0, 1, 10):  # the signal may overtake the API server's answer, which nobody else sees arrive
        said = interrupted_at_its_end(drarun, tmp_path, True, pause)
        if DELETING in said:
            break
        assert UNTOLD in said, said
    assert DELETING in said and UNTOLD not in said, said


def test_interrupted_before_the_end_of_an_allocation_is_answered(drarun, tmp_path):
    """An API server that does not answer is not waited for either."""
    said = interrupted_at_its_end(drarun, tmp_path, False, 0)
    assert UNTOLD in said and DELETING not in said, said


def test_terminal_stops_the_command_of_an_allocation(drarun, tmp_path):
    """As by ^Z: the shell that has started both gets the terminal back once both have stopped."""
    def state():
        return Path(f"/proc/{alloc}/stat").read_text().rpartition(") ")[2][0]
    with Registry().serving() as registry:
        following = allocated(drarun, registry, tmp_path, "'kill -TSTP $$; echo back'", shell="set -m; {} & echo $!; wait -f $!")
        alloc = int(following.job.process.stdout.readline())
        assert "the workers of job are deleted unless it goes on within 60 s" in next(
            line for line in following.job.process.stderr if "alloc: stopped" in line)
        until(registry, lambda: state() == "T")
        os.kill(alloc, signal.SIGCONT)
        until(registry, lambda: annotation(registry, "drarun.dev/alloc") == "ended")
        registry.remove(path_of("pods", "job-w-0"))
        result = following.ended()
    assert (result.rc, result.out) == (0, "back\n"), result


def test_leaders_pod_is_gone_with_its_log(following):
    opened = []

    def half():
        opened.append(1)
        yield OUTPUT
        until(following.registry, lambda: path_of("pods", "job-a") not in following.registry.objects)
    following.pod("job-a", "running", half)
    until(following.registry, lambda: opened)
    following.tell("job-a", exit=0, lines=3)
    following.registry.remove(path_of("pods", "job-a"))
    result = following.ended()
    assert result.rc == 70 and result.out == "of the leader\n", result
    assert "output of job job was not read to its end: pod job-a, whose log has it, is gone" in result.err, result


@pytest.mark.parametrize("first", ["end", "document"])
def test_leaders_pod_is_gone_and_its_log_was_read(following, first):
    """The document tells how long it was; it may come behind the log's end."""
    opened, registry = [], following.registry

    def whole():
        opened.append(1)
        yield OUTPUT
        until(registry, lambda: path_of("pods", "job-a") not in registry.objects)
    following.pod("job-a", "running", whole)
    until(registry, lambda: opened)
    if first == "end":
        registry.remove(path_of("pods", "job-a"))
        time.sleep(0.3)
    following.tell("job-a", exit=0, lines=2)
    registry.remove(path_of("pods", "job-a"))
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_what_an_earlier_jobs_launcher_tells_is_of_no_account(following):
    following.tell("job-old", exit=7, uid="uid-old")
    time.sleep(0.5)
    assert following.job.process.poll() is None
    following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a")]))
    following.tell("job-a", exit=0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the leader\n"), result


def test_rest_of_a_log_comes_before_its_successors(following):
    """Of a launcher that was killed, whose last lines are late."""
    opened = []

    def slow():
        opened.append(1)
        yield b'{"event":"log","job":"job","lines":0}\n[0] of the first\n'
        until(following.registry, lambda: path_of("pods", "job-b") in following.registry.objects)
        time.sleep(0.2)
        yield b"[0] last of the first\n"
    following.pod("job-a", "running", slow)
    following.tell("job-a")
    until(following.registry, lambda: opened)
    following.pod("job-a", "terminated")
    following.pod("job-b", "running", lambda: iter([OUTPUT, record("job-b")]))
    following.tell("job-b", exit=0)
    result = following.ended()
    assert (result.rc, result.out) == (0, "of the first\nlast of the first\nof the leader\n"), result


def test_wait_for_a_job_that_is_deleted_and_its_document_not_yet(drarun, following):
    """The garbage collector takes its time."""
    registry = following.registry
    following.tell("job-a")
    registry.remove(JOB)
    waited = drarun("wait", "job", env=following.env, timeout=20)
    assert waited.rc == 70 and "job job was deleted" in waited.err, waited


@pytest.mark.parametrize("holder, stays", [("job-a", True), ("job-b", False)])
def test_cancel_leaves_the_end_to_a_launcher_that_leads(drarun, following, holder, stays):
    """The kubelet has not told yet that its pod runs."""
    registry = following.registry
    following.pod("job-a", "waiting", phase="Pending")
    registry.put(LEASE, {"metadata": {}, "spec": {"holderIdentity": holder}})
    drarun("cancel", "job", env=following.env, timeout=20).ok()
    assert (JOB in registry.objects) == stays
    assert not stays or "drarun.dev/cancel" in str(registry.objects[JOB]["metadata"]["annotations"])


@pytest.mark.parametrize("verb, says", [("run", "cancelling job"), ("submit", "")])
def test_interrupted_while_it_is_submitted(drarun, tmp_path, verb, says):
    """When the first object is there, and others are not."""
    with Registry().serving() as registry:
        registry.answering.clear()
        job = drarun.start(verb, job_file(tmp_path), env=environment(registry, tmp_path))
        registry.wait(JOB)
        job.signal(signal.SIGINT)
        registry.answering.set()
        result = job.finish(20)
        assert (result.rc, result.out) == (130, "") and says in result.err, result
        assert "job is being submitted and will then be cancelled" in result.err, result
        assert JOB not in registry.objects


def test_interrupted_twice_while_it_is_submitted(drarun, tmp_path):
    with Registry().serving() as registry:
        registry.answering.clear()
        job = drarun.start("run", job_file(tmp_path), env=environment(registry, tmp_path))
        registry.wait(JOB)
        for signo in (signal.SIGINT, signal.SIGTERM):
            job.signal(signo)
        assert job.finish(20).rc in (-signal.SIGINT, -signal.SIGTERM)


DRAJOBS_SERVED = [{"metadata": {"name": "drarun.dev"}, "versions": [{"version": "v1alpha1", "resources": [{"resource": "drajobs"}]}]}]


def test_object_of_an_earlier_job_that_stays(drarun, tmp_path):
    """The cluster's garbage collector does not delete it: its owner is gone, and another Job has that one's name."""
    with Registry().serving() as registry:
        registry.groups = DRAJOBS_SERVED
        registry.put(path_of("networking.k8s.io/v1/networkpolicies", "job-w"), {
            "metadata": {"labels": {"drarun.dev/job": "job"}, "ownerReferences": [{"kind": "Job", "name": "job", "uid": "uid-of-the-earlier"}]}})
        registry.put(path_of("drarun.dev/v1alpha1/drajobs", "job"), {
            "metadata": {"generation": 1}, "spec": {"workers": 1, "image": "a", "command": ["true"]}})
        controller = drarun.start("controller", env=environment(registry, tmp_path))  # it waits 2 s for what is going; a client, 60 s
        said = next(line for line in controller.process.stderr if "still exists" in line)
        assert "default/job: NetworkPolicy job-w of an earlier job still exists after 2 s: its owner is gone or being deleted, and" in said
        controller.signal(signal.SIGTERM)
        assert controller.finish(30).rc == 0


def test_answer_to_a_creation_is_lost(drarun, tmp_path):
    """It is sent again, and finds what it has made."""
    drajob = path_of("drarun.dev/v1alpha1/drajobs", "job")
    with Registry().serving() as registry:
        registry.groups, registry.lost = DRAJOBS_SERVED, {drajob, JOB}
        words = "submit", job_file(tmp_path)
        drarun(*words, env=environment(registry, tmp_path)).ok()
        assert not registry.lost and registry.objects[JOB]["metadata"]["ownerReferences"][0]["uid"] == registry.objects[drajob]["metadata"]["uid"]
        again = drarun(*words, env=environment(registry, tmp_path))
        assert again.rc == 69 and 'there is a job "job" in namespace default already' in again.err, again


def test_interrupted_twice_while_it_is_being_cancelled(following):
    """The API server is slow with what cancels the job. Output comes all the same, and the second signal is not kept waiting."""
    registry, asked = following.registry, threading.Event()

    def log():
        yield OUTPUT
        asked.wait(patience())
        yield b"[0] and on\n"
        until(registry, lambda: False)  # it goes on
    following.pod("job-a", "running", log)
    following.tell("job-a")
    assert next(following.job.process.stdout) == "of the leader\n"
    held = registry.hold("PATCH", JOB)
    following.job.signal(signal.SIGINT)
    until(registry, lambda: held.count)
    asked.set()
    assert next(following.job.process.stdout) == "and on\n"
    following.job.signal(signal.SIGINT)
    result = following.ended()
    assert result.rc == 130 and not is_cancelled(registry), result
    assert held.count == 1, "it was asked for again, after half a minute"
    assert "cancelling job; interrupt again to leave it at once" in result.err, result


def offer_node(registry):
    ready = {"metadata": {"name": "n0"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    registry.objects["/api/v1/nodes"] = {"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": [ready]}


def test_accept_that_is_killed_while_it_ends_a_job_that_is_submitted(drarun, tmp_path):
    """Nobody but the process of the job can cancel it, and that one gets a signal for each of the two."""
    with Registry().serving() as registry:
        jobs = lambda: [path for path in registry.objects if "/jobs/accept-" in path]  # noqa: E731
        offer_node(registry)
        registry.admit = lambda path, made: "/jobs/" in path and registry.answering.clear()
        accept = drarun.start("accept", job_file(tmp_path), "--records", tmp_path / "records", "--alone", "--priority-class", "",
                              env=environment(registry, tmp_path))
        until(registry, jobs)
        accept.signal(signal.SIGTERM)
        assert any("ending 1 jobs" in line for line in accept.process.stderr)
        time.sleep(0.5)  # so that they are two
        accept.process.kill()
        accept.process.wait()
        registry.answering.set()
        until(registry, lambda: not jobs())
        accept.finish(20)


@pytest.mark.parametrize("words", [["submit"], ["run"], ["accept", "--alone", "--priority-class", ""]], ids=lambda words: words[0])
def test_empty_image_is_that_of_this_version(drarun, tmp_path, words):
    with Registry().serving() as registry:
        offer_node(registry)
        made = lambda: [each for path, each in registry.objects.items() if "/jobs/" in path]  # noqa: E731
        drarun.start(*words, job_file(tmp_path), "--image", "", env=environment(registry, tmp_path) | {"XDG_STATE_HOME": tmp_path})
        until(registry, made)
        image = made()[0]["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image.startswith("ghcr.io/"), image


NOT_SUBMITTED = "drarun: job was not submitted: the API server has not answered\n"


@pytest.mark.parametrize("words, says", [
    (["run", "{}"], NOT_SUBMITTED),
    (["submit", "{}"], NOT_SUBMITTED),
    (["alloc", "{}", "--", "true"], NOT_SUBMITTED),
    (["controller", "--all-namespaces"], ""),
])
def test_interrupted_before_the_api_server_has_answered(drarun, tmp_path, words, says):
    """As on a laptop whose cluster is stopped: nothing was made, so there is nothing to wait for."""
    with Registry().serving() as registry:
        env = environment(registry, tmp_path)
    job = drarun.start(*(word.format(job_file(tmp_path)) for word in words), env=env)
    assert "the API server does not answer, retrying" in job.process.stderr.readline()
    job.signal(signal.SIGINT)
    result = job.finish(20)
    assert (result.rc, result.err) == (-signal.SIGINT, says), result


# ---- what it waits for

def test_status_line_of_a_narrow_terminal_has_the_reason(drarun, tmp_path):
    """In 80 columns, of which the last is free; a character is one column."""
    with Registry().serving() as registry:
        words = ["stty", "cols", "80", ";", "exec", str(drarun.program), "run", str(job_file(tmp_path))]
        job = drarun.start("-qfc", " ".join(words), "/dev/null", program="script", env={
            **environment(registry, tmp_path), "TERM": "xterm"})
        registry.wait(path_of("pods", "job-w-0"))
        reason = "no device of class gpu.drarun.dev left: éé of 16 are taken by claims"
        found, name = registry.objects[MAP], "job-aaaaa"
        text = f"waiting 3 s for worker 0: {reason}; claims 0/1 allocated, pods 0/1 running"
        registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps({
            "apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "phase": "placing",
            "launcher": {"pod": name}, "waiting": {"text": text, "reasons": [{"text": reason}]}})}})
        shown, limit = "", time.monotonic() + patience()
        while "for worker 0" not in shown.rpartition("\033[K")[0] and time.monotonic() < limit:
            shown += job.process.stdout.read(1)
        registry.remove(JOB)
        job.finish(20)
    lines = [line.partition("\033")[0] for line in shown.splitlines() if "for worker 0" in line]
    assert lines[0] == "drarun: waiting 3 s for worker 0: no device of class gpu.drarun.dev left: éé...", lines


def test_each_reason_of_a_drajob_that_waits_is_told(drarun, tmp_path):
    """Nothing is made of it yet: whatever its controller says of that."""
    def says(message, **status):
        registry.put(path_of("drarun.dev/v1alpha1/drajobs", "job"), {
            "metadata": {"uid": "uid-job"}, "spec": {"workers": 1}, "status": {"message": message, **status}})

    def told():
        return next(line for line in waiting.process.stderr if "has no objects yet" in line)
    with Registry().serving() as registry:
        says("it waits for its turn")
        waiting = drarun.start("wait", "job", env=environment(registry, tmp_path))
        for message in ("it waits for its turn", "no account may make pods"):
            says(message)
            assert told() == f"drarun: DraJob job has no objects yet: {message}\n"
        says("", state="Succeeded", exitStatus=0)
        assert waiting.finish(30).rc == 0


@pytest.mark.parametrize("left", ["job", "document"])
def test_wait_for_a_drajob_that_was_applied_again(drarun, following, left):
    """The garbage collector has not come to what the one before has left, whose document tells how that ended."""
    registry, drajob = following.registry, path_of("drarun.dev/v1alpha1/drajobs", "job")
    following.tell("job-a", exit=3)
    following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a", status=3)]))
    assert following.ended().rc == 3
    if left == "document":
        registry.remove(JOB)
    registry.put(drajob, {"metadata": {"uid": "uid-again"}, "spec": {"workers": 1}, "status": {"message": "it waits for its turn"}})
    waiting = drarun.start("wait", "job", env=following.env)
    assert waiting.process.stderr.readline() == "drarun: DraJob job has no objects yet: it waits for its turn\n"
    registry.put(drajob, {**registry.objects[drajob], "status": {"message": "", "state": "Succeeded", "exitStatus": 0}})
    assert waiting.finish(30).rc == 0


def test_wait_for_a_drajob_that_was_submitted(drarun, tmp_path):
    """Submit made the objects itself, so the DraJob's status stays empty: wait reads the launcher's document."""
    with Registry().serving() as registry:
        registry.groups = DRAJOBS_SERVED
        following = Following(drarun, registry, tmp_path, words=["submit", job_file(tmp_path)])
        following.tell("job-a", exit=3)
        waited = drarun("wait", "job", env=following.env, timeout=20)
    assert waited.rc == 3 and "has no objects" not in waited.err, waited


# ---- no API server

UNANSWERED = "drarun: the API server does not answer, retrying: http://127.0.0.1:"


def test_who_only_looks_gives_a_dead_api_server_up_at_once(drarun, tmp_path):
    """Nobody takes the connection: there is nothing to wait for, and it is tried once."""
    with Registry(port=free_port()) as registry:
        env = environment(registry, tmp_path)
    job = job_file(tmp_path)
    for words in (["list"], ["status", "job"], ["describe", "job"], ["logs", "job"], ["plan", "--live", job]):
        result = drarun(*words, env=env)
        assert result.rc == 69 and "Couldn't connect to server" in result.err and "tries" not in result.err, result
        assert len(result.err.splitlines()) == 1, result


def test_who_waits_is_told_of_a_dead_api_server(drarun, tmp_path):
    with Registry(port=free_port()) as registry:
        env = environment(registry, tmp_path)
    jobs = [drarun.start(*words, env=env) for words in (["wait", "job"], ["submit", job_file(tmp_path)], ["cancel", "job"])]
    for job in jobs:
        line = job.process.stderr.readline()
        job.process.kill()
        job.finish(30)
        assert line.startswith(UNANSWERED) and "Couldn't connect" in line, (job.argv, line)


def test_api_server_that_comes_back(drarun, tmp_path):
    with Registry(port=free_port()) as registry:
        env, port = environment(registry, tmp_path), registry.server_address[1]
    waiting = drarun.start("cancel", "job", env=env)
    assert waiting.process.stderr.readline().startswith(UNANSWERED)
    with Registry(port=port).serving():
        result = waiting.finish(30)
    assert result.rc == 66 and result.err.startswith("drarun: the API server answers again\n"), result
    assert "there is no job job" in result.err, result


@pytest.mark.parametrize("spec", [
    {"command": ["echo", "own"]}, {"command": ["echo"], "args": ["own"]},
    {"command": ["echo"], "args": ["own"], "template": {"spec": {"containers": [{"name": "side", "image": "b", "command": ["own"]}]}}},
    {"template": {"spec": {"containers": [{"name": "ranks", "image": "a", "command": ["echo"], "args": ["own"]}]}}}])
def test_arguments_of_the_command_line_reach_the_launcher(drarun, tmp_path, spec):
    """By the job's document, as they are; those of another container stay."""
    path = tmp_path / "job.json"
    image = {} if "command" not in spec else {"image": "a"}
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, **image, **spec}}))
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=["run", path, "--", "$(RANK)", "$$"])
        told = json.loads(registry.objects[MAP]["data"]["job.json"])["spec"]
        following.pod("job-a", "terminated", lambda: iter([OUTPUT, record("job-a")]))
        following.tell("job-a", exit=0)
        assert following.ended().rc == 0
    containers = told.get("template", {}).get("spec", {}).get("containers", [])
    says = next((each for each in containers if each["name"] != "side"), told)
    assert says["args"] == ["$$(RANK)", "$$$"] and all(each["command"] == ["own"] for each in containers if each["name"] == "side"), told
