# SPDX-License-Identifier: Apache-2.0
"""Jobs on two real nodes: from `drarun run` to the exit status, and nothing left behind."""
import pytest

HELLO = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on worker $GROUP_RANK; echo to stderr >&2"]
MODES = pytest.mark.parametrize("mode", [["--here"], []], ids=["here", "pod"])


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


def test_status_list_logs_and_wait_from_the_api(jobs):
    jobs.run(workers=2, command=HELLO).ok()
    assert "succeeded" in jobs.verb("status", "job").ok().out
    assert "job" in jobs.verb("list").ok().out
    assert jobs.verb("wait", "job").rc == 0
    assert jobs.verb("logs", "job", "--rank", "1").ok().out == "rank 1 of 2 on worker 1\n"
    assert jobs.status()["phase"] == "ended"


def test_submit_and_cancel(jobs):
    made = jobs.verb("submit", jobs.file(command=["sleep", "1000"])).ok()
    assert made.out == "job\n"
    jobs.cluster.wait("the ranks do not run", lambda: (jobs.status() or {}).get("phase") == "running", 30)
    jobs.verb("cancel", "job").ok()
    assert jobs.verb("wait", "job").rc == 130


def test_no_such_job(jobs):
    for verb in ("status", "logs", "wait", "cancel", "describe"):
        result = jobs.verb(verb, "nothing")
        assert result.rc == 64 and "no job nothing" in result.err, result
