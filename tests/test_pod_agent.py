# SPDX-License-Identifier: Apache-2.0
"""The agent in a worker pod (--pod): what it tells of its worker, and whom it serves."""
import json
import os
import signal
import subprocess
import time

import pytest

from support.build import patience
from support.world import World, gpu

JOB = {"DRARUN_JOB": "0b6d3f0e", "DRARUN_ATTEMPT": "2", "DRARUN_WORKER": "1"}


# ---- what it holds ----

def test_inspection_follows_the_hello(pod, tmp_path):
    (tmp_path / "there").touch()
    caller = pod(NCCL_DEBUG="WARN", SECRET="x", **JOB).call(files=[str(tmp_path / "there"), "/no/such/file"])
    assert caller.line() == "hello launched=0 job=0b6d3f0e"
    document = caller.inspection()
    assert document["probe"]["files"] == {str(tmp_path / "there"): True, "/no/such/file": False}
    assert document["limits"]["uid"] == os.geteuid()
    caps = int(next(line.split()[1] for line in open("/proc/self/status")
                    if line.startswith("CapEff")), 16)
    assert document["limits"]["ipcLock"] == bool(caps & 1 << 14)
    assert document["environment"] == {"NCCL_DEBUG": "WARN"}
    assert document["versions"]["pmix"] and document["versions"]["drarun"]
    assert document["session"]["dir"].startswith("/tmp/dt-") and document["session"]["free"] > 0
    assert "lo" in [netdev["name"] for netdev in document["netdevs"]]


def test_limits_are_the_pods(pod):
    document = pod(under=["prlimit", "--memlock=65536:65536"]).call()
    document.line()
    assert document.inspection()["limits"]["memlock"] == 65536


def test_a_job_runs_in_a_pod(drarun, pod):
    some = pod()
    result = drarun(*some.options, "-n", 2, "sh", "-c", "echo rank $RANK").ok()
    assert sorted(result.out.splitlines()) == ["rank 0", "rank 1"] and result.err == ""
    assert some.agent.finish(20).rc == 0


def test_derived_environment(pod):
    """What the plan says of job, worker and rank; the pod's own variables stay the user's."""
    some = pod(OWN="pod's", FROM_SPEC="pod's", TEST_PATH="/image", **JOB)
    caller = some.call(worker=1)
    assert caller.line().startswith("hello")
    caller.inspection()
    caller.say("launch")
    env, lines = {0: {}, 1: {}}, []
    while (line := caller.line()) != "done":
        lines.append(line)
        if line.startswith("rank ") and "=" in line:
            name, value = line[7:].split("=", 1)
            env[int(line[5])][name] = value
    for rank in range(2):
        assert env[rank]["FROM_SPEC"] == "spec" and env[rank]["B"] == "all", lines
        assert env[rank]["OWN"] == "pod's" and env[rank]["TEST_PATH"] == "/derived:/image"
        assert "DRARUN_KEY" not in env[rank] and env[rank]["DRARUN_WORKER"] == "0"
    assert (env[0]["A"], env[1]["A"]) == ("worker", "rank")
    masks = [line.rsplit(" ", 1)[1] for line in lines if "affinity mask" in line]
    assert len(masks) == 2 and "1" in masks


# ---- files that ranks leave ----

def files(caller, *, taken):
    """The messages up to "done", each file taken as it comes, at most so many."""
    told = []
    while not (told and told[-1] == "done") and len(told) < taken:
        told.append(caller.line())
        if told[-1].startswith("file "):
            caller.say("taken")
    return told


def collecting(some, command):
    caller = some.call(worker=1)
    assert caller.line().startswith("hello")
    caller.inspection()
    caller.say(f"collect {command}")
    return caller


def test_files_of_ranks_come_in_pieces(pod):
    """Regular files alone, and none before the launcher has the one before it."""
    some = pod(**JOB)
    caller = collecting(some, "cd $COLLECTED; test $RANK = 0 || exit 0; head -c 300000 /dev/zero >a; echo b >b; : >c; ln -s /etc/passwd d; mkdir e; mkfifo f")
    told = files(caller, taken=9)
    sizes = {}
    for line in told[:-1]:
        if line.startswith("note "):  # the link is not collected
            continue
        word, name, size, cut = line.split()
        assert word == "file" and cut == "cut=0"
        sizes.setdefault(name, []).append(int(size))
    assert told[-1] == "done" and sum(line.startswith("note ") for line in told) == 1 and sizes == {"a": [262144, 37856], "b": [2], "c": [0]}
    assert some.agent.process.poll() is None  # until it is dismissed


def test_files_end_where_it_is_too_much(pod):
    told = files(collecting(pod(**JOB), "cd $COLLECTED; truncate -s 80M a$RANK"), taken=300)
    assert len(told) == 257 and told[-2].endswith(" 262144 cut=1") and told[-1] == "done"


def test_variable_of_the_pods_own(pod, tmp_path):
    """Its folder is where files go then, and nothing is sent."""
    folder = tmp_path / "own"
    folder.mkdir()
    caller = collecting(pod(COLLECTED=str(folder), **JOB), "echo a >$COLLECTED/a$RANK")
    assert files(caller, taken=2) == ["done"] and sorted(each.name for each in folder.iterdir()) == ["a0", "a1"]


@pytest.mark.parametrize("how", ["goes", "is replaced"])
def test_launcher_that_does_not_take_files(pod, how):
    """Nobody waits for the rest."""
    some = pod(**JOB)
    caller = collecting(some, "echo a >$COLLECTED/a$RANK")
    assert caller.line().startswith("file a")
    if how == "goes":
        caller.process.kill()
        assert some.agent.finish(patience()).rc == 70
        return
    newer = some.call(worker=1, generation=2)
    assert newer.line() == "hello launched=1 job=0b6d3f0e" and newer.line() == "done"


# ---- the vendor's script ----

@pytest.mark.parametrize("text,told", [
    ("export NCCL_X='a b' NCCL_Y=\necho noise", {"env": {"NCCL_X": "a b", "NCCL_Y": ""}}),
    ("exit 3", {"reason": "ended with status 3"}), ("LONG", {"reason": "not done after 5.0 s; killed"}),
    (None, None)], ids=["sets", "fails", "hangs", "none"])
def test_vendor_script_is_run_where_the_agent_is(pod, tmp_path, text, told):
    """In an environment of its own, and a process, which nothing that it starts outlives."""
    script, long = tmp_path / "set_env.sh", f"sleep {100000 + os.getpid()}"  # nobody else's
    if text:
        script.write_text(f"({long} &)\n{text.replace('LONG', long)}\n")
    caller = pod(**JOB).call(files=["/nowhere", str(script)])
    caller.line()
    probe = caller.inspection()["probe"]
    if not text:
        assert "script" not in probe
        return
    assert probe["script"]["path"] == str(script)
    assert probe["script"].get("env") == told.get("env") and told.get("reason", "") in probe["script"].get("reason", "")
    assert not subprocess.run(["pgrep", "-f", f"^{long}$"], capture_output=True, check=False).stdout


def test_vendor_script_holds_nobody_up(pod, tmp_path):
    """The agent serves others while it runs, and the script has all of its time."""
    script = tmp_path / "set_env.sh"
    script.write_text(f"until [ -e {tmp_path}/go ]; do sleep 0.05; done\nexport NCCL_X=1\n")
    some = pod(**JOB)
    caller = some.call(files=[str(script)])
    assert caller.line().startswith("hello")
    assert some.call(job="another").line().startswith("failure 1 ")
    (tmp_path / "go").touch()
    assert caller.inspection()["probe"]["script"]["env"] == {"NCCL_X": "1"}


def test_vendor_script_of_an_earlier_launcher_ends(pod, tmp_path):
    script, shells = tmp_path / "set_env.sh", tmp_path / "shells"
    script.write_text(f"echo $$ >>{shells}\nuntil [ -e {tmp_path}/go ]; do sleep 0.05; done\nexport NCCL_X=1\n")
    some, until = pod(**JOB), time.monotonic() + patience()
    some.call(files=[str(script)])
    while not shells.exists() or not shells.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.02)
    newer = some.call(files=[str(script)], generation=2)
    assert newer.line().startswith("hello")
    while os.path.exists(f"/proc/{shells.read_text().split()[0]}"):
        assert time.monotonic() < until
        time.sleep(0.02)
    (tmp_path / "go").touch()
    assert newer.inspection()["probe"]["script"]["env"] == {"NCCL_X": "1"}


def test_vitals(pod):
    """What a busy rank and a sleeping one do, and what the worker moves."""
    some = pod(**JOB)
    caller = some.call()
    assert caller.line().startswith("hello")
    caller.inspection()
    caller.say("launch echo up; if [ $RANK = 0 ]; then while :; do :; done; else sleep 1000; fi")
    assert sorted(caller.line() for _ in range(2)) == ["rank 0 up", "rank 1 up"]
    busy, asleep, words, end = "", "", {"cpu": "0"}, time.monotonic() + patience()
    while not (int(words["cpu"]) >= 10000 and asleep.startswith("rank 1 is S: ")) and time.monotonic() < end:  # a sleep that has begun
        time.sleep(0.1)
        caller.say("vitals")
        words = dict(word.split("=") for word in caller.line().split()[1:])
        busy, asleep = caller.line(), caller.line()
    assert int(words["output"]) == 6 and int(words["cpu"]) >= 10000, words
    assert busy.startswith("rank 0 is R: sh in ") and asleep.startswith("rank 1 is S: "), (busy, asleep)
    caller.say("end")
    assert caller.line() == "done"


# ---- whom it serves ----

@pytest.mark.parametrize("wanted,words", [
    ({"job": "another"}, "the caller wants worker 1 of job another, attempt 2"),
    ({"attempt": 3}, "the caller wants worker 1 of job 0b6d3f0e, attempt 3"),
    ({"worker": 0}, "the caller wants worker 0 of job 0b6d3f0e, attempt 2"),
])
def test_other_jobs_are_refused(pod, wanted, words):
    some = pod(**JOB)
    caller = some.call(**wanted)
    line = caller.line()
    assert line.startswith("failure 1 this is worker 1 of job 0b6d3f0e, attempt 2; ") and words in line
    assert caller.line().startswith("closed")
    assert some.call().line().startswith("hello")  # its own is served


def test_index_of_an_indexed_job(pod):
    some = pod(JOB_COMPLETION_INDEX="4")
    assert "this is worker 4 of job" in some.call(worker=1).line()
    assert some.call(worker=4).line().startswith("hello")


@pytest.mark.parametrize("name", ["DRARUN_WORKER", "DRARUN_ATTEMPT", "JOB_COMPLETION_INDEX"])
def test_bad_identity(build, name):
    run = subprocess.run([build / "bin" / "drarun-worker", "--listen", "127.0.0.1:0", "--pod"],
                         capture_output=True, text=True, timeout=patience(),
                         env={**os.environ, "DRARUN_KEY": "0" * 64, name: "x1"})
    assert run.returncode == 64 and f'{name}: expected a whole number' in run.stderr


def test_newer_launcher_takes_over(pod):
    some = pod(**JOB)
    first = some.call(generation=3)
    assert first.line().startswith("hello")
    first.inspection()
    older = some.call(generation=2)
    assert older.line() == ("failure 116 this agent serves a newer launcher: generation 3, "
                            "the caller's is 2")
    same = some.call(generation=3)
    assert same.line() == "failure 16 this agent already has a launcher"
    newer = some.call(generation=4)
    assert newer.line() == "hello launched=0 job=0b6d3f0e"
    newer.inspection()
    assert first.line() == ("failure 116 a newer launcher (generation 4, this one is 3) "
                            "has taken over")
    assert first.line().startswith("closed")
    # the older one stays refused when the newer is gone, and an equal one may come back
    newer.close()
    again = some.call(generation=3)
    assert again.line().startswith("failure 116")
    assert some.call(generation=4).line() == "hello launched=0 job=0b6d3f0e"


def wait_for_text(job, text):
    line = job.process.stdout.readline()
    assert line == text, job.process.stderr.read()


def test_ranks_outlive_their_launcher(drarun, pod):
    """Another launcher finds the job, and ends it in order."""
    some = pod()
    job = drarun.start(*some.options, "--orphan-wait", "30s", "--kill-after", "10s", "-n", 1, "sh", "-c",
                       'trap "echo saved >$TMPDIR/saved; exit 0" TERM; echo up; '
                       'while :; do sleep 0.05; done')
    wait_for_text(job, "up\n")
    job.signal(signal.SIGKILL)
    heir = some.call(generation=5)
    assert heir.line() == "hello launched=1 job="
    assert "drarun-" in "".join(os.listdir(some.agent.tmp))
    heir.say("end")
    assert heir.line() == "done"
    assert (some.agent.tmp / "saved").read_text() == "saved\n"
    (some.agent.tmp / "saved").unlink()
    heir.close()
    assert some.agent.finish(20).rc == 0
    job.finish(clean=False)


def test_ranks_end_when_no_launcher_comes(drarun, pod):
    some = pod()
    job = drarun.start(*some.options, "--orphan-wait", "1s", "-n", 1, "sh", "-c", "echo up; sleep 1000")
    wait_for_text(job, "up\n")
    started = time.monotonic()
    job.signal(signal.SIGKILL)
    agent = some.agent.finish(20)
    assert agent.rc == 70 and time.monotonic() - started > 0.9
    assert "no other launcher connected in time: ending the ranks" in agent.err
    job.finish(clean=False)


def test_each_rank_has_its_time_when_no_launcher_comes(drarun, pod, tmp_path):
    """Also where a neighbour's ranks needed none of it, and its agent has left."""
    pods = [pod(), pod()]
    job = drarun.start("--agents", ",".join(each.address for each in pods), "--key-file", pods[0].key_file, "--orphan-wait", "1s", "--kill-after", "50s",
                       "-n", 2, "sh", "-c", f'trap "[ $RANK = 0 ] || until [ -e {tmp_path}/left ]; do sleep 0.05; done; sleep 0.5; echo saved >{tmp_path}/saved$RANK; exit 0" TERM; '
                       'echo up; while :; do sleep 0.05; done')
    wait_for_text(job, "up\n")
    wait_for_text(job, "up\n")
    job.signal(signal.SIGKILL)
    assert pods[0].agent.finish(60, clean=False).rc == 70  # what its neighbour has is still there
    (tmp_path / "left").touch()
    assert pods[1].agent.finish(60).rc == 70
    assert {path.name for path in tmp_path.glob("saved*")} == {"saved0", "saved1"}
    job.finish(clean=False)


def test_a_second_drarun_ends_what_the_first_left(drarun, pod):
    some = pod()
    job = drarun.start(*some.options, "--orphan-wait", "30s", "-n", 1, "sh", "-c", "echo up; sleep 1000")
    wait_for_text(job, "up\n")
    job.signal(signal.SIGKILL)
    job.finish(clean=False)
    second = drarun(*some.options, "-n", 1, "true")
    assert second.rc == 70 and "still has the job of a launcher that is gone" in second.err
    assert some.agent.finish(20).rc == 0


# ---- eviction ----

def test_eviction_reaches_every_rank(drarun, pod):
    """One pod is told to end: the ranks of both get SIGTERM and their time."""
    pods = [pod(), pod()]
    job = drarun.start("--agents", ",".join(each.address for each in pods), "--key-file",
                       pods[0].key_file, "--kill-after", "10s", "-n", 2, "sh", "-c",
                       'trap "echo saved $RANK; exit 0" TERM; echo up; while :; do sleep 0.05; done')
    wait_for_text(job, "up\n")
    wait_for_text(job, "up\n")
    pods[1].agent.signal(signal.SIGTERM)
    result = job.finish(30)
    assert sorted(result.out.splitlines()) == ["saved 0", "saved 1"]
    assert result.rc == 70 and "worker 1 (" in result.err and "is being removed: its pod got SIGTERM" in result.err
    for each in pods:
        assert each.agent.finish(20).rc == 0


def test_eviction_before_the_launch(pod):
    some = pod()
    caller = some.call()
    assert caller.line().startswith("hello")
    caller.inspection()
    some.agent.signal(signal.SIGTERM)
    assert caller.line().startswith("evicted its pod got SIGTERM")
    caller.close()
    assert some.agent.finish(20).rc == 0


def test_eviction_without_a_launcher(pod):
    some = pod()
    some.agent.signal(signal.SIGTERM)
    assert some.agent.finish(20).rc == 0


# ---- pods that an allocation keeps ----

def kept(folder, pods, spec=None, slices=None, **more):
    """What `drarun alloc job.yaml` writes for them; tests/test_cluster_alloc.py has real ones."""
    spec = {"workers": len(pods), "image": "none", "command": ["true"], "network": "any", **(spec or {"ranksPerWorker": 2})}
    folder.mkdir(mode=0o700)
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_text(pods[0].key)
    (folder / "kept.json").write_text(json.dumps({
        "job": "job", "namespace": "n", "uid": JOB["DRARUN_JOB"], "attempt": 2, "document": {
            "apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": "job"}, "spec": spec},
        **({"slices": slices} if slices else {}),
        "workers": [{"pod": f"job-w-{i}", "node": f"node-{i}", "address": pod.address, "dial": pod.address, "claims": [], **more}
                    for i, pod in enumerate(pods)]}))
    return {"DRARUN_ALLOC": str(folder)}


@pytest.fixture
def pods(pod):
    made = [pod(keep=True, **{**JOB, "DRARUN_WORKER": str(i)}) for i in range(2)]
    yield made
    for each in made:
        each.agent.signal(signal.SIGTERM)
        assert each.agent.finish(20).rc == 0


def test_job_after_job_in_kept_pods(drarun, pods, tmp_path):
    """At once behind each other, whatever ended the one before."""
    env = kept(tmp_path / "alloc", pods)
    script = f"""for i in 1 2 3 4 5; do {drarun.program} sh -c "echo $i" || exit; {drarun.program} -n 2 sh -c 'exit 3'; done"""
    result = drarun("-c", script, program="/bin/sh", env=env)
    assert result.rc == 3 and sorted(result.out.split()) == sorted("12345" * 4), result
    job = drarun.start("-n", 2, "sh", "-c", "echo up; exec sleep 1000", env=env)
    assert [job.process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
    busy = drarun("-n", 2, "true", env=env)
    assert busy.rc == 75 and "another drarun runs in this allocation" in busy.err, busy
    job.signal(signal.SIGKILL)
    job.finish(clean=False)
    assert drarun("-n", 2, "true", env=env).rc == 0


@pytest.mark.parametrize("command,typed,seen", [
    ("torchrun", "app", ["MIG-0", "MIG-1"]), ("app", "torchrun", ["MIG-0,MIG-1"]),
    ("app", "--ranks-per-worker 1 app", ["MIG-0,MIG-1"]), ("torchrun", "--ranks-per-worker 2 torchrun", ["MIG-0", "MIG-1"])])
def test_a_plan_for_the_typed_program(drarun, pod, tmp_path, command, typed, seen):
    """As many ranks as it has, with their devices, whatever the spec's own command is."""
    some = pod(keep=True, **{**JOB, "DRARUN_WORKER": "0"})
    world = World([gpu(i, type="mig", uuid=f"MIG-{i}", parentUUID=f"GPU-{i}") for i in range(2)], [])
    claim = world.claims(0, world.workers[0])[0]
    spec = {"devices": {"gpus": {"count": 2}}, "command": [command]}
    env = kept(tmp_path / "alloc", [some], spec, world.fixture(world.workers[0])["resourceSlices"], claims=[claim])
    for name in "app", "torchrun":
        (tmp_path / name).write_text("#!/bin/sh\necho $CUDA_VISIBLE_DEVICES\n")
        (tmp_path / name).chmod(0o755)
    *options, program = typed.split()
    result = drarun(*options, tmp_path / program, env=env).ok()
    assert sorted(result.out.split()) == seen, result
    some.agent.signal(signal.SIGTERM)
    assert some.agent.finish(20).rc == 0


def test_kept_pods_serve_their_allocation(drarun, pods, tmp_path):
    env = kept(tmp_path / "alloc", pods)
    path = tmp_path / "alloc" / "kept.json"
    path.write_text(path.read_text().replace(JOB["DRARUN_JOB"], "0b6d3f0"))
    result = drarun("-n", 2, "true", env=env)
    assert result.rc == 70 and " of job 0b6d3f0e, attempt 2; the caller wants" in result.err, result
    path.write_text(path.read_text().replace('"dial"', '"lost": "its pod was deleted", "dial"'))
    result = drarun("-n", 2, "true", env=env)
    assert result.rc == 70 and "worker 0 (pod job-w-0 on node-0) of the allocation job is lost: its pod was deleted" in result.err
    (tmp_path / "alloc" / "key").chmod(0o644)
    result = drarun("-n", 2, "true", env=env)
    assert result.rc == 64 and "key" in result.err, result
