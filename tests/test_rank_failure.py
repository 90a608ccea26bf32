# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail alone (--on-rank-failure continue, failurePolicy.onRankFailure): the others go on, unless they could wait for one that
failed."""
import json
import re

import pytest

from support.build import patience

PLACES = {"one": ["-n", 4], "two": ["--workers", 2, "-n", 4]}
WAIT = "until test -e {go}; do sleep 0.05; done; "
# Rank 1 fails first. The others do what they do once a file is there, which the test makes when it has read of rank 1's end.
FARM = ('case $RANK in 1) echo "no such input" >&2; exit 3;; esac; ' + WAIT +
        'case $RANK in 2) kill -9 $$;; 3) yes whole | head -n 20000;; esac; echo done $RANK')
GOES_ON = r"rank 1 on worker 0 \(.+\) exited with status 3 after .+; the other ranks continue\n"


def job_file(folder, command, **policy):
    path = folder / "job.json"
    path.write_text(json.dumps({"kind": "DraJob", "metadata": {"name": "farm"}, "spec": {
        "ranksPerWorker": 4, "image": "i", "command": command, "failurePolicy": policy}}))
    return path


def finish_farm(job, folder):
    lines = []
    while not lines or "continue" not in lines[-1]:
        lines.append(job.process.stderr.readline())
        assert lines[-1], "".join(lines) + repr(job.finish())
    assert re.search(GOES_ON, lines[-1]), lines
    (folder / "go").touch()
    return job.finish(timeout=patience())


def judge_farm(result, report):
    """The first that failed gives the status, all are named, and the output is whole."""
    assert result.rc == 3, result
    assert sorted(result.out.splitlines()) == ["done 0", "done 3"] + 20000 * ["whole"]
    found = re.search(r"^drarun: rank 1 on worker 0 \(.+\) exited with status 3 after .+, and 1 more rank failed\n"
                      r"  its last lines on stderr:\n    no such input\n"
                      r"  other ranks that failed:\n    rank 2 on worker (\d) \(.+\) was killed by signal 9 \(SIGKILL\), after .+\n", result.err, re.M)
    assert found, result
    made = json.loads(report.read_text())
    assert made["status"] == 3 and made["ended"] == 4 and made["cause"]["kind"] == "exit" and made["cause"]["rank"] == 1, made
    assert made["failed"] == 2
    assert [(each["rank"], each["kind"], each.get("exit"), each.get("signal")) for each in made["failures"]] == \
        [(1, "exit", 3, None), (2, "signal", None, 9)], made
    assert made["failures"][0]["stderr"].strip() == "no such input" and made["failures"][1]["worker"] == int(found.group(1))


@pytest.mark.parametrize("where", PLACES)
def test_farm(drarun, tmp_path, where):
    report = tmp_path / "report.json"
    job = drarun.start("--on-rank-failure", "continue", "--report", report, *PLACES[where], "sh", "-c", FARM.format(go=tmp_path / "go"))
    judge_farm(finish_farm(job, tmp_path), report)


def test_farm_on_agents(drarun, agents, tmp_path):
    some, report = agents(2), tmp_path / "report.json"
    job = drarun.start(*some.options, "-K0", "--report", report, "-n", 4, "sh", "-c", FARM.format(go=tmp_path / "go"))
    judge_farm(finish_farm(job, tmp_path), report)
    assert [each.rc for each in some.finish()] == [0, 0]


def test_farm_of_a_spec(drarun, tmp_path):
    report = tmp_path / "report.json"
    spec = job_file(tmp_path, ["sh", "-c", FARM.replace("$", "$$").format(go=tmp_path / "go")], onRankFailure="continue")
    judge_farm(finish_farm(drarun.start("run", "--local", "--report", report, spec), tmp_path), report)


def test_all_fail(drarun):
    """Each is named up to a number, and counted beyond it."""
    result = drarun("--on-rank-failure=continue", "-n", 30, "sh", "-c", "exit 5")
    assert result.rc == 5, result
    assert re.search(r"^drarun: rank \d+ on .+ exited with status 5 after .+, and 29 more ranks failed\n  other ranks that failed:\n"
                     r"(    rank \d+ on .+\n){20}    and 9 more: --report FILE lists all of them\n\Z", result.err, re.M), result
    assert result.err.count("; the other ranks continue\n") == 20


def test_without_it_a_failure_ends_the_job(drarun):
    result = drarun("-n", 4, "sh", "-c", 'test $RANK != 1 || exit 3; sleep 1000')
    assert result.rc == 3 and "failed" not in result.err, result


@pytest.fixture
def client(build):
    program = build / "tests" / "programs" / "pmix_client"
    if not program.exists():
        pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
    return str(program)


@pytest.mark.parametrize("where", PLACES)
def test_after_finalize(drarun, client, tmp_path, where):
    """No other rank waits for one that has finalized."""
    result = drarun("--on-rank-failure", "continue", *PLACES[where], "sh", "-c",
                    f'{client} job >/dev/null || exit; test $RANK != 1 || exit 3; echo done $RANK')
    assert result.rc == 3 and sorted(result.out.splitlines()) == ["done 0", "done 2", "done 3"], result


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("case,status,said", [
    ("leave exit5", 5, "exited with status 5"), ("leave segv", 139, r"was killed by signal 11 \(SIGSEGV\)"),
    ("leave exit0", 1, "without finalizing"), ("abort", 7, "aborted the job with status 7")])
def test_others_could_wait(drarun, client, where, case, status, said):
    """They are in a fence, which would never end; and an abort is a wish, not an exit."""
    result = drarun("--on-rank-failure", "continue", *PLACES[where], client, *case.split(), timeout=30)
    assert result.rc == status and re.search(f"drarun: rank 1 .*{said}", result.err), result
    assert ("could wait for it, so it ended the job" in result.err) == (status in (5, 139)), result
    assert ("(--on-rank-failure continue)" in result.err) == (status in (5, 139)), result


def test_advice_names_the_key(drarun, client, tmp_path):
    """And not an option that nobody has typed."""
    result = drarun("run", "--local", job_file(tmp_path, [client, "leave", "exit5"], onRankFailure="continue"), timeout=30)
    assert result.rc == 5 and "ranks may only fail (failurePolicy.onRankFailure: continue) without" in result.err, result


# As an MPI program that begins a second session: rank 0 then waits for the others in a barrier, and they leave.
AGAIN = """
import os, socket
server = socket.socket(fileno=int(os.environ["PMI_FD"]))
for line in ("init pmi_version=1 pmi_subversion=1", "finalize", "init pmi_version=1 pmi_subversion=1", *(["barrier_in"] if os.environ["RANK"] == "0" else [])):
    server.sendall(f"cmd={line}\\n".encode())
    assert server.recv(4096)
"""


@pytest.mark.parametrize("where", PLACES)
def test_leaves_after_it_has_begun_again(drarun, where):
    """What it finalized was its first session: the others wait for it in the second."""
    result = drarun(*PLACES[where], "/usr/bin/python3", "-c", AGAIN, timeout=60)
    assert result.rc == 1 and re.search(r"drarun: rank [1-3] .* exited with status 0 .*without finalizing", result.err), result


@pytest.mark.parametrize("where", PLACES)
def test_fails_before_others_connect(drarun, client, tmp_path, where):
    """They wait for it in PMIx_Init, or in the first fence after it."""
    go = tmp_path / "go"
    job = drarun.start("--on-rank-failure", "continue", *PLACES[where], "sh", "-c",
                       "test $RANK != 1 || exit 3; " + WAIT.format(go=go) + f"exec {client} modex")
    result = finish_farm(job, tmp_path)
    assert result.rc == 3 and "could wait for it, so it ended the job" in result.err, result


def test_own_mpirun_has_its_own(drarun):
    result = drarun("--launch", "mpirun", "--on-rank-failure", "continue", "mpirun", "true")
    assert result.rc == 64 and "use its own option" in result.err, result
