# SPDX-License-Identifier: Apache-2.0
"""An agent that misbehaves in ways in which the real one cannot be made to."""
import pytest

from support.build import BUILD

FAKE = BUILD / "tests" / "fake_agent"

CASES = {
    "garbage": "no message",
    "huge": "a frame of 4294967295 bytes announced",
    "half": "exited with 0",
    "silent": "says no hello after 1 s (--start-timeout)",
    "deaf": "is not prepared after 1 s (--start-timeout)",
    "major": "speaks protocol version 99.0",
    "close": "exited with 0",
    "crash": "was killed by SIGSEGV",
    "stranger": "a rank that it does not have",
    "early-done": "was done before 2 of its ranks had ended",
    "never-ready": "is not prepared after 1 s (--start-timeout)",
    "twice": "its message \"hello\" came while greeted",
}


@pytest.fixture
def play(drarun):
    def run(misdeed, *args, **how):
        env = {"DRARUN_WORKER_PROGRAM": FAKE, "FAKE_AGENT": misdeed}
        return drarun("--start-timeout", 1, "-n", 2, *args, env=env, timeout=20, **how)
    return run


def test_it_can_behave(play):
    result = play("", "play", "line:a", "part:b", "line:c", "exit:0").ok()
    assert sorted(result.out.split()) == ["a", "a", "bc", "bc"]


@pytest.mark.parametrize("misdeed", CASES)
def test_misdeed(play, misdeed):
    result = play(misdeed, "play", "line:a")
    assert result.rc == 70, repr(result)
    assert CASES[misdeed] in result.err
    assert result.err.count("\n") <= 2


def test_output_without_credit(play):
    result = play("greedy", "play", "flood:1000000000", text=False,
                  under=["sh", "-c", '"$@" | (sleep 2; cat >/dev/null); exit ${PIPESTATUS:-70}', "sh"])
    assert b"more output than it was given room for" in result.err


def test_input_that_was_never_given(play):
    result = play("greedy", "play", "stdin", input="x\n")
    assert result.rc == 70 and "was not given" in result.err


def test_never_done(play):
    result = play("never-done", "--timeout", "0.5", "play", "line:a")
    assert result.rc == 124 and "did not end when asked to: killed" in result.err


def test_no_agent_program(drarun):
    for name in ("DRARUN_WORKER_PROGRAM", "DRARUN_WORKER"):  # the latter is its former name
        result = drarun("true", env={name: "/nonexistent"})
        assert result.rc == 70 and f"{name}=/nonexistent: No such file" in result.err
    result = drarun("true", env={"DRARUN_WORKER_PROGRAM": "/etc", "DRARUN_WORKER": "/nonexistent"})
    assert result.rc == 70 and "DRARUN_WORKER_PROGRAM=/etc: Permission denied" in result.err


def test_the_number_of_a_worker_is_no_agent_program(drarun):
    drarun("true", env={"DRARUN_WORKER": "0"}).ok()


def test_too_few_descriptors(drarun):
    result = drarun("--workers", 20, "true", under=["sh", "-c", 'ulimit -n 16; exec "$@"', "sh"],
                    timeout=20)
    assert result.rc == 70 and "open files" in result.err
