# SPDX-License-Identifier: Apache-2.0
"""Signals to drarun, time limits, and how soon everything is over."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.build import SLOWER, patience

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
    """The second one, if it does not come with the first."""
    job = started(drarun, "-v", "--kill-after", "1000", "-n", 2, "sh", "-c",
                  "trap '' INT TERM; " + READY + "while :; do sleep 1; done")
    job.signal(signal.SIGINT)
    while "passed on to the ranks" not in (line := job.process.stderr.readline()):
        assert line, job.finish()
    time.sleep(0.3)
    job.signal(signal.SIGINT)
    assert job.finish().rc == 130


def test_together_they_are_one(drarun):
    """systemd sends two to what is left of a login: the ranks have their time all the same."""
    program = "trap 'sleep 0.5; echo cleaned; exit 0' HUP TERM; " + READY + "while :; do sleep 0.05; done"
    job = started(drarun, "--kill-after", "60", "-n", 2, "sh", "-c", program)
    job.signal(signal.SIGTERM)
    job.signal(signal.SIGHUP)
    result = job.finish()
    assert result.rc in (128 + signal.SIGTERM, 128 + signal.SIGHUP) and result.out == "cleaned\n" * 2, result


def test_a_reader_that_goes_is_no_signal(drarun, tmp_path):
    """What ended it may end drarun next."""
    program = "trap 'touch caught; echo bye; sleep 0.5; echo cleaned; touch cleaned; exit 0' TERM; " + READY + "while :; do sleep 0.05; done"
    job = drarun.start("--frames", "--kill-after", "60", "sh", "-c", program, cwd=tmp_path)
    assert job.process.stdout.readline() == "[0] ready\n"
    job.process.stdout.close()
    job.process.stdout = None
    end = time.monotonic() + patience()
    while not (tmp_path / "caught").exists():
        assert time.monotonic() < end, "the rank was not told that nobody reads"
        time.sleep(0.01)
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 143 and (tmp_path / "cleaned").exists()


def test_ranks_may_say_that_they_end(drarun, tmp_path):
    """Their reader may have got the same Ctrl-C: it is no reason to kill them before they have cleaned up."""
    program = "trap 'touch caught; until [ -e unread ]; do sleep 0.05; done; echo saving; sleep 0.2; echo saved; touch cleaned; exit 0' TERM; " \
        + READY + "while :; do sleep 0.05; done"
    job = drarun.start("--kill-after", "60", "sh", "-c", program, cwd=tmp_path)
    assert job.process.stdout.readline() == "ready\n"
    job.signal(signal.SIGTERM)
    end = time.monotonic() + patience()
    while not (tmp_path / "caught").exists():
        assert time.monotonic() < end, "the rank did not get the signal"
        time.sleep(0.01)
    job.process.stdout.close()
    job.process.stdout = None
    (tmp_path / "unread").touch()
    assert job.finish().rc == 143 and (tmp_path / "cleaned").exists()


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


SAVES = "trap 'echo saved; exit 0' USR1; " + READY + "while :; do sleep 0.05; done"
BEGUN_S = 4 + SLOWER / 2  # the ranks must have begun by then; every case waits for it
SOON = ["--timeout", 1000 + BEGUN_S, "--signal", "USR1@1000"]


@pytest.mark.parametrize("where", [("-n", 2), ("--workers", 2, "-n", 2)])
def test_signal_before_the_timeout(drarun, where):
    result = drarun(*SOON, *where, "sh", "-c", SAVES).ok()
    assert sorted(result.out.splitlines()) == ["ready", "ready", "saved", "saved"], result
    assert result.err.count("drarun: SIGUSR1 sent to the ranks: the job's timeout ends them in 1000 s\n") == 1, result


def test_signal_before_the_timeout_of_a_spec(drarun, tmp_path):
    spec = tmp_path / "job.json"
    spec.write_text(json.dumps({"kind": "DraJob", "metadata": {"name": "saves"}, "spec": {
        "ranksPerWorker": 2, "image": "i", "command": ["sh", "-c", SAVES],
        "timeouts": {"total": f"{1000 + BEGUN_S}s", "signal": "SIGUSR1", "signalBefore": "1000s"}}}))
    result = drarun("run", "--local", spec).ok()
    assert result.out.count("saved") == 2 and "SIGUSR1 sent to the ranks" in result.err, result


def test_signal_before_the_timeout_reaches_agents(drarun, agents):
    some = agents(2)
    result = drarun(*some.options, *SOON, "-n", 2, "sh", "-c", SAVES).ok()
    assert result.out.count("saved") == 2, result
    assert [each.rc for each in some.finish()] == [0, 0]


def test_signal_that_no_program_handles(drarun):
    result = drarun(*SOON, "-n", 2, "sleep", "1000")
    assert result.rc == 128 + signal.SIGUSR1, result
    assert "drarun sent it 1000 s before the job's timeout: the program must handle it" in result.err, result


def test_ranks_that_ignore_it_end_at_the_timeout(drarun):
    result = drarun("--timeout", 1 + BEGUN_S, "--signal=SIGTERM@1", "-n", 2, "sh", "-c", "trap '' TERM; sleep 1000")
    assert result.rc == 124, result


def test_signal_is_not_sent_before_ranks_begin(drarun, agents):
    """They could not handle it yet. The agent is stopped until that is said."""
    some = agents(1)
    deadline = time.monotonic() + patience()
    while not children(some.jobs[0].pid):  # says that it listens before it has a child
        assert time.monotonic() < deadline, "the agent has no child"
        time.sleep(0.02)
    agent = children(some.jobs[0].pid)[0]
    os.kill(agent, signal.SIGSTOP)
    job = drarun.start(*some.options, "--start-timeout", patience(), "--timeout", patience(), "--signal", f"USR1@{patience() - 0.5}",
                       "sh", "-c", "echo done")
    said = job.process.stderr.readline()
    os.kill(agent, signal.SIGCONT)
    assert "SIGUSR1 is not sent: " in said and "the ranks have not started" in said
    assert job.finish().ok().out == "done\n"
    assert some.finish()[0].rc == 0


@pytest.mark.parametrize("options,said", [
    (["--signal", "USR1"], "--signal USR1@60s: it is sent before --timeout TIME"),
    (["--signal", "USR1@2m", "--timeout", 90], "--signal USR1@120s: --timeout is 90 s, so the signal cannot come 120 s before it"),
    (["--timeout", 90, "--signal", "USR1@90"], "cannot come 90 s before it"),
    (["--timeout", 90, "--signal", "KILL@5"], "expected SIG[@TIME] with one of SIGHUP"),
    (["--timeout", 90, "--signal", "B:USR1@5"], "B: signals sbatch's shell alone"),
    (["--timeout", 90, "--signal=R:USR1@5"], "prefixes are srun's, for reservations"),
    (["--timeout", 90, "--signal", "USR1@soon"], "expected a duration"),
    (["--timeout", 90, "--signal", "USR1@0"], "must be above 0")])
def test_signal_that_cannot_come(drarun, options, said):
    result = drarun(*options, "true")
    assert result.rc == 64 and said in result.err, result


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


# Its debugger neither lets it go nor takes note of its end: to its parent it has not ended.
HELD = """
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
rank, (there, here) = os.getpid(), os.pipe()
libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, any; where there is no Yama, anyone may
if os.fork() == 0:
    os.setsid()
    os.write(here, b"y" if libc.ptrace(0x4206, rank, None, None) == 0 else b"n")  # PTRACE_SEIZE
    time.sleep(1000)
print("held" if os.read(there, 1) == b"y" else "free", flush=True)
time.sleep(1000)
"""


def test_rank_that_outlives_sigkill_is_named(drarun):
    """As one that hangs in a driver: the end names it, and does not wait for it."""
    job = drarun.start("-n", 2, "sh", "-c", 'test $RANK = 1 || exec sleep 1000; exec /usr/bin/python3 -c "$0"', HELD)
    if (line := job.process.stdout.readline()) == "free\n":
        job.signal(signal.SIGTERM)
        job.finish()
        pytest.skip("ptrace(2) is not permitted here")
    assert line == "held\n"
    job.signal(signal.SIGTERM)
    result = job.finish()
    assert result.rc == 143
    assert re.search(r"rank 1 on \S+ \(process \d+\) has not ended within 3 s of SIGKILL", result.err), result


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


def test_first_process_does_not_stop(drarun):
    """Nobody could continue it, and its ranks stayed stopped after ^Z."""
    job = drarun.start("sh", "-c", 'trap "echo continued; exit" CONT; echo ready; while :; do sleep 0.05; done',
                       under=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
    assert job.process.stdout.readline() == "ready\n", job.process.stderr.read()
    os.kill(int(Path(f"/proc/{job.process.pid}/task/{job.process.pid}/children").read_text()), signal.SIGTSTP)
    assert job.finish(20).ok().out == "continued\n"


def signals_caught(pid):
    return next(line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("SigCgt"))


def has_ended(pid):
    """A zombie has closed its files."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_killed_agents_leave_is_removed_by_the_next_job(drarun):
    """As after pkill -9 drarun: nobody is left who could remove it at once, and shared memory is kept."""
    job = started(drarun, "-n", 2, "sh", "-c", READY + "exec sleep 1000")
    running = started(drarun, "-n", 2, "sh", "-c", READY + "exec sleep 1000")
    pids = list(job.processes())
    for signo in (signal.SIGSTOP, signal.SIGKILL):  # nobody sees another one end
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # ranks end with their agent
                os.kill(pid, signo)
    job.process.wait(patience())
    end = time.monotonic() + patience()
    while not all(map(has_ended, pids)):  # until then what the agent made is in use
        assert time.monotonic() < end, pids
        time.sleep(0.01)
    sessions, there = list(job.tmp.glob("drarun-*")), list(running.tmp.glob("drarun-*"))
    names = {path.name for path in sessions}
    left = [*sessions, *(path for path in Path("/dev/shm").glob("drarun-*") if path.name in names | {path.name for path in there})]
    assert len(names) == 1 and len(there) == 1, (left, there)
    drarun("true").ok()
    assert not [path for path in left if path.name in names and path.exists()]
    assert [path.name for path in left if path.exists()] == [path.name for path in there] and there[0].exists()
    job.finish(clean=False)
    running.signal(signal.SIGTERM)
    running.finish()
