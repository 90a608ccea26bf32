# SPDX-License-Identifier: Apache-2.0
"""Verbs, options, exit statuses and the report."""
import json
import os
import socket
import subprocess

import pytest


def test_help_and_version(drarun):
    for words in (["help"], ["--help"], ["run", "--help"], ["-h"], ["-n", 3, "-h"]):
        assert drarun(*words).ok().out.startswith("Usage: drarun [run] [options] program")
    for words in (["version"], ["--version"], ["-V"]):
        assert drarun(*words).ok().out.startswith("drarun 0.")


def test_verbs_are_words_in_first_place_only(drarun):
    assert drarun("run", "echo", "help").ok().out == "help\n"
    assert drarun("--", "env", "-i", "echo", "x").ok().out == "x\n"
    assert drarun("env", "-i", "echo", "x").rc == 64  # the verb
    assert drarun("-n", 1, "help").rc == 127
    assert drarun("--", "run").rc == 127


def test_completion(drarun):
    script = drarun("completion", "bash").ok().out
    script += "\nCOMP_WORDS=(drarun --outp) COMP_CWORD=1; _drarun; echo ${COMPREPLY[@]}\n"
    assert subprocess.check_output(["bash", "-c", script], text=True) == "--output-dir --output\n"
    result = drarun("completion", "csh")
    assert result.rc == 64 and "drarun completion bash" in result.err


@pytest.mark.parametrize("words, part", [
    ([], "no program given"),
    (["--workers"], "--workers needs a value"),
    (["--nonsense", "x"], "unknown option --nonsense"),
    (["-n", 0, "x"], "expected 1 to 1000000, got 0"),
    (["-n", -3, "x"], "expected 1 to 1000000, got -3"),
    (["-n", 10**30, "x"], "expected 1 to 1000000"),
    (["run", "job.yaml", "-n", "train"], "got \"train\"; for run it is the number of ranks: --namespace train is the"),
    (["run", "-n", "train", "job.yaml"], "--namespace train is the namespace"),
    (["-n", "4.5", "x"], "expected a whole number from 1 to 1000000, got \"4.5\"\n"),
    (["job.yaml", "-n", 4], "-n 4: a job's spec says how many ranks a worker has"),
    (["job.yaml", "-x", "A=1"], "--env: what a job's ranks get is in its spec"),
    (["job.yaml"], "job.yaml: cannot be opened: No such file"),
    (["job.yaml", "--here", "word"], "unexpected argument \"word\": what is for the ranks comes behind --"),
    (["--agents", "a:1,b", "--key-file", "/nonexistent", "x"], "--agents"),
    (["-n", 9, "--ranks-per-worker", 2, "x"], "9"),
])
def test_usage(drarun, words, part):
    result = drarun(*words)
    assert result.rc in (64, 65, 70) and part in result.err
    assert len(result.err.splitlines()) == 1


def test_status_of_the_first_cause(drarun):
    assert drarun("sh", "-c", "exit 42").rc == 42
    assert drarun("sh", "-c", "kill -9 $$").rc == 137
    assert drarun("/nonexistent/program").rc == 127
    assert drarun("/etc/passwd").rc == 126
    assert drarun("/").rc == 126


def test_ranks_default_to_one_a_worker(drarun):
    assert drarun("--workers", 3, "sh", "-c", "echo $RANK/$WORLD_SIZE").ok().out.count("/3\n") == 3
    result = drarun("--workers", 2, "--ranks-per-worker", 2, "sh", "-c", "echo $WORLD_SIZE").ok()
    assert result.out == "4\n" * 4


def test_programs(drarun, tmp_path):
    result = drarun("-l", "-n", 2, "-x", "A=1", "sh", "-c", "echo a $A$B", ":",
                    "-n", 1, "-x", "B=2", "--wd", tmp_path, "sh", "-c", "echo b $A$B; pwd").ok()
    assert sorted(result.out.splitlines()) == ["[0] a 1", "[1] a 1", "[2] " + str(tmp_path), "[2] b 2"]


def test_environment(drarun):
    env = {"SEEN": "yes", "PASSED": "on"}
    for where in ((), ("--workers", 2, "-n", 1)):
        result = drarun(*where, "-x", "PASSED", "-x", "ODD=a=b c", "-x", "NOT_THERE", "sh", "-c",
                        'echo "$SEEN $PASSED $ODD ${NOT_THERE-unset}"', env=env).ok()
        assert result.out == "yes on a=b c unset\n"
        assert "-x NOT_THERE: there is no such variable" in result.err


def test_environment_of_agents_by_hand(drarun, agents):
    agents = agents(1)
    result = drarun(*agents.options, "-x", "PASSED", "sh", "-c", 'echo "${SEEN-unset} $PASSED"',
                    env={"SEEN": "yes", "PASSED": "on"}).ok()
    assert result.out == "unset on\n"


def test_report(drarun, tmp_path):
    file = tmp_path / "report.json"
    result = drarun("-n", 2, "--output", "json", "--report", file, "sh", "-c", "exit $((RANK * 7))")
    report = json.loads(result.err)
    assert result.rc == 7 and report == json.loads(file.read_text())
    assert report["status"] == 7 and report["ranks"] == 2 and report["workers"] == 1
    assert report["cause"]["kind"] == "exit" and report["cause"]["rank"] == 1
    assert report["cause"]["host"] == socket.gethostname()
    assert report["programs"] == [["sh", "-c", "exit $((RANK * 7))"]]
    assert report["max_rss_kib"] > 0


def test_report_when_all_went_well(drarun, tmp_path):
    file = tmp_path / "report.json"
    result = drarun("--report", file, "true").ok()
    assert result.err == ""
    assert json.loads(file.read_text())["cause"] is None
    assert drarun("--report", "/nonexistent/r", "true").rc == 70
    assert json.loads(drarun("--report", "/dev/stderr", "true").ok().err)["status"] == 0
    assert json.loads(drarun("--output", "json", "true").ok().err)["status"] == 0


def test_report_of_words_that_are_not_utf8(drarun):
    report = json.loads(drarun("--output", "json", "true", os.fsdecode(b"\xff\xc3\x28")).ok().err)
    assert report["programs"] == [["true", "??("]]


def test_verbose_and_quiet(drarun):
    result = drarun("-v", "true").ok()
    assert "connecting -> preparing" in result.err and "draining -> ended" in result.err
    assert drarun("-q", "-x", "NOT_THERE", "true").ok().err == ""
    assert drarun("-q", "sh", "-c", "exit 3").err.startswith("drarun: rank 0")


def test_agents_by_hand(drarun, agents):
    three = agents(3)
    result = drarun(*three.options, "-n", 6, "sh", "-c", "echo $DRARUN_WORKER").ok()
    assert sorted(result.out.split()) == ["0", "0", "1", "1", "2", "2"]
    for agent in three.finish():
        agent.ok()


def test_agents_that_cannot_be_reached(drarun, agents):
    one = agents(1)
    result = drarun("--start-timeout", 1, "--agents", one.addresses[0] + ",127.0.0.1:9", "--key-file",
                    one.key_file, "true")
    assert result.rc == 70
    assert "worker 1 (127.0.0.1:9) is not reached: Connection refused after 1 s" in result.err
    assert "--start-timeout" in result.err and 1 <= result.seconds < 20


def test_agents_named_twice_or_wrongly(drarun, agents):
    key = agents(0).key_file
    options = ["--key-file", key, "true"]
    assert "named twice" in drarun("--agents", "127.0.0.1:9,localhost:9", *options).err
    assert "cannot look up nowhere.invalid" in drarun("--agents", "nowhere.invalid:9", *options).err
    assert "expected HOST:PORT" in drarun("--agents", "127.0.0.1", *options).err
    key.chmod(0o644)
    result = drarun("--agents", "127.0.0.1:9", *options)
    assert result.rc == 64 and "chmod 600" in result.err


def test_wrong_key(drarun, agents, tmp_path):
    one = agents(1, once=False)
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text("00" * 32)
    result = drarun("--agents", one.addresses[0], "--key-file", other, "true")
    assert result.rc == 70 and "does it hold the same --key-file" in result.err
    assert result.seconds < 20
    drarun(*one.options, "true").ok()


def test_not_an_agent(drarun, agents):
    key = agents(0).key_file
    with socket.create_server(("127.0.0.1", 0)) as server:
        job = drarun.start("--agents", f"127.0.0.1:{server.getsockname()[1]}", "--key-file", key, "true")
        peer, _ = server.accept()
        peer.sendall(b"220 mail.example.org ESMTP\r\n")
        result = job.finish()
        peer.close()
    assert result.rc == 70 and "127.0.0.1" in result.err


def test_nothing_is_loaded(drarun):
    """The local job pays for no library, not even the loader."""
    if subprocess.run(["ldd", drarun.program], capture_output=True).returncode == 0:
        pytest.skip("linked dynamically, for a sanitizer")
    job = drarun.start("sleep", 0.5)
    libraries = [line for line in open(f"/proc/{job.pid}/maps") if ".so" in line]
    assert libraries == []
    job.finish().ok()


@pytest.mark.parametrize("words", [
    ["help"], ["completion", "bash"], ["topo"], ["plan", "{jobs}/two-by-two.yaml"], ["plan", "--help"],
    ["validate", "{jobs}/two-by-two.yaml"], ["render", "{jobs}/two-by-two.yaml", "--format", "json"],
    ["env", "--network", "any"], ["import", "{seeds}/gpu-2x2.yaml"],
], ids=lambda words: words[0])
def test_full_disk_behind_stdout(drarun, source, words):
    """What cannot be written is said."""
    folders = {"jobs": source / "examples/jobs", "seeds": source / "tests/data/seeds"}
    words = [word.format(**folders) for word in words]
    result = drarun("-c", 'exec "$0" "$@" > /dev/full', drarun.program, *words, program="/bin/sh")
    assert result.rc == 70, result
    assert f"{words[0]}: cannot write to stdout: No space left on device" in result.err, result
