# SPDX-License-Identifier: Apache-2.0
"""Signals to drarun, time limits, and how soon everything is over."""
import os
import signal
import subprocess
import time

import pytest

from support.build import patience

READY = "echo ready; "


def started(drarun, *args):
    job = drarun.start(*args)
    for _ in range(2):
        assert job.process.stdout.readline() == "ready\n"
    return job


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_end(drarun, signo, where):
    job = started(drarun, *where, "sh", "-c", READY + "sleep 1000; echo late")
    job.signal(signo)
    result = job.finish()
    assert result.rc == 128 + signo
    assert "late" not in result.out


def test_ranks_get_that_very_signal_and_time(drarun):
    program = "trap 'echo caught; sleep 0.3; echo cleaned; exit 0' INT; " + READY + \
              "while :; do sleep 0.05; done"
    job = started(drarun, "-n", 2, "sh", "-c", program)
    job.signal(signal.SIGINT)
    result = job.finish()
    assert result.rc == 130
    assert result.out.count("caught") == 2 and result.out.count("cleaned") == 2


def test_ranks_that_ignore_everything(drarun):
    job = started(drarun, "-n", 2, "sh", "-c", "trap '' INT TERM; " + READY + "while :; do sleep 1; done")
    job.signal(signal.SIGINT)
    assert job.finish().rc == 130


def test_twice_is_final(drarun):
    job = started(drarun, "--kill-after", "1000", "-n", 2, "sh", "-c",
                  "trap '' INT TERM; " + READY + "while :; do sleep 1; done")
    job.signal(signal.SIGINT)
    time.sleep(0.3)
    job.signal(signal.SIGINT)
    assert job.finish().rc == 130


@pytest.mark.parametrize("signo", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH])
def test_forwarded(drarun, signo):
    program = f"trap 'echo got; exit 0' {signo.name[3:]}; {READY} while :; do sleep 0.05; done"
    job = started(drarun, "--workers", 2, "-n", 2, "sh", "-c", program)
    job.signal(signo)
    assert job.finish().ok().out == "got\ngot\n"


def test_nohup(drarun):
    job = drarun.start("sh", "-c", "echo ready; sleep 0.5; echo end", under=["nohup"])
    assert job.process.stdout.readline() == "ready\n"
    job.signal(signal.SIGHUP)
    assert job.finish().ok().out == "end\n"


def test_timeout(drarun):
    result = drarun("--timeout", "0.5", "-n", 2, "sleep", "1000")
    assert result.rc == 124
    assert "--timeout" in result.err


def test_first_failure_ends_the_others(drarun):
    program = "if [ $RANK = 1 ]; then exit 9; fi; (sleep 1001 & sleep 1002 & setsid sleep 1003 & wait)"
    result = drarun("--workers", 2, "-n", 4, "sh", "-c", program)
    assert result.rc == 9


def test_signal_before_anything_runs(drarun):
    for wait in (0, 0.0005, 0.001, 0.002, 0.004):
        job = drarun.start("-n", 4, "sleep", "1000")
        time.sleep(wait)
        job.signal(signal.SIGTERM)
        assert job.finish(timeout=30).rc in (143, -15)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_agent_killed(drarun, where):
    job = started(drarun, *where, "sh", "-c", READY + "setsid sleep 1000 & sleep 1001")
    victim = children(job.pid)[0]
    os.kill(victim, signal.SIGKILL)
    result = job.finish()
    assert result.rc == 70
    assert "killed by SIGKILL" in result.err


@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_launcher_killed(drarun, where):
    job = started(drarun, *where, "sh", "-c", READY + "setsid sleep 1000 & sleep 1001")
    job.signal(signal.SIGKILL)
    assert job.finish().rc == -9


def test_agent_stopped_is_killed_at_the_end(drarun):
    job = started(drarun, "-n", 2, "sh", "-c", READY + "sleep 1000")
    agent = children(job.pid)[0]
    os.kill(agent, signal.SIGSTOP)
    job.signal(signal.SIGTERM)
    result = job.finish(timeout=20)
    assert result.rc == 143
    assert "did not end when asked to" in result.err


def test_stalled_reader_does_not_hold_up_the_end(drarun):
    job = drarun.start("-n", 2, "sh", "-c", "cat /dev/zero", text=False)
    time.sleep(0.5)
    job.signal(signal.SIGTERM)
    job.process.wait(patience())
    assert job.process.returncode == 143
    job.finish()


def test_no_more_processes_allowed(drarun):
    if os.getuid() == 0:
        under = ["setpriv", "--reuid", "65534", "--clear-groups", "prlimit", "--nproc=6"]
    else:
        under = ["prlimit", "--nproc=6"]
    probe = subprocess.run([*under, drarun.program, "--version"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"cannot limit processes here: {probe.stderr!r}")
    result = drarun("-n", 16, "sleep", "1000", under=under, timeout=30)
    assert result.rc == 76 and result.out == ""
    assert "16 ranks on this worker are more than the user may start, 6 processes and threads" in result.err, result


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_first_process_ends_before_it_has_a_job(drarun, signo):
    """A container's first process has no signal's default action: a pod deleted early stayed for its grace period."""
    job = drarun.start("validate", "-", under=["unshare", "--pid", "--fork", "--kill-child"], stdin=subprocess.PIPE)
    end = time.monotonic() + patience()
    parent = f"/proc/{job.process.pid}/task/{job.process.pid}/children"
    while not (first := open(parent).read().split()) or "drarun" not in open(f"/proc/{first[0]}/comm").read():
        assert time.monotonic() < end, "it does not start"
        time.sleep(0.01)
    while not int(signals_caught(first[0]), 16) >> signo - 1 & 1:
        assert job.process.poll() is None and time.monotonic() < end, "it has no handler"
        time.sleep(0.01)
    os.kill(int(first[0]), signo)
    assert job.finish(10).rc == 128 + signo


def signals_caught(pid):
    return next(line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("SigCgt"))
