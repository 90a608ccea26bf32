# SPDX-License-Identifier: Apache-2.0
"""Standard input of the ranks."""
import hashlib
import os
import pty
import subprocess
import time

import pytest

from support.build import patience

SUM = ("md5sum", "-")


def test_rank_0_by_default(drarun):
    result = drarun("-n", 3, "-l", "cat", input="a\nb\n").ok()
    assert result.out == "[0] a\n[0] b\n"


@pytest.mark.parametrize("where", [("-n", 4), ("--workers", 2, "-n", 4)])
def test_another_rank(drarun, where):
    assert drarun(*where, "--stdin", 3, "-l", "cat", input="a\n").ok().out == "[3] a\n"


@pytest.mark.parametrize("where", [("-n", 4), ("--workers", 2, "-n", 4), ("--workers", 5, "-n", 4)])
def test_all(drarun, where):
    """Also with a worker that has no rank."""
    data = b"0123456789abcdef" * 100_000
    out = drarun(*where, "--stdin", "all", *SUM, input=data, text=False).ok().out
    assert out == (hashlib.md5(data).hexdigest() + "  -\n").encode() * 4


def test_none(drarun):
    assert drarun("--stdin", "none", "cat", input="a\n").ok().out == ""


def test_none_leaves_a_shells_loop_its_input(drarun):
    loop = 'while read word; do "$@" "$word"; done'
    result = drarun("--stdin", "none", "echo", under=["sh", "-c", loop, "sh"], input="a\nb\nc\n").ok()
    assert result.out == "a\nb\nc\n"


def test_no_such_rank(drarun):
    result = drarun("-n", 2, "--stdin", 2, "true")
    assert result.rc == 64 and "ranks 0 to 1" in result.err


def test_large_file(drarun, tmp_path):
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 20) * 50)
    with open(file, "rb") as stdin:
        out = drarun(*SUM, stdin=stdin).ok().out
    assert out.split()[0] == hashlib.md5(file.read_bytes()).hexdigest()


def test_endless_input_that_is_not_read(drarun):
    with open("/dev/zero", "rb") as stdin:
        assert drarun("sh", "-c", "head -c 10 >/dev/null; sleep 0.5", stdin=stdin).ok()


def test_a_rank_that_ends_leaves_input_alone(drarun):
    """What comes after the job belongs to whoever reads next."""
    read, write = os.pipe()
    drarun("true", stdin=read).ok()
    os.write(write, b"next")
    os.close(write)
    assert os.read(read, 100) == b"next"
    os.close(read)


def test_closed(drarun):
    assert drarun("cat", under=["sh", "-c", 'exec "$@" <&-', "sh"]).ok().out == ""


def test_end_of_input_reaches_the_rank(drarun):
    assert drarun("sh", "-c", "cat; echo end", input="").ok().out == "end\n"


def on_terminal(program, *words, answer=b""):
    """Runs it as a shell on a terminal would; returns what the terminal showed and the status."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(program, [str(w) for w in (program, *words)])
    shown, deadline = b"", time.monotonic() + patience()
    os.set_blocking(master, False)
    while time.monotonic() < deadline:
        try:
            piece = os.read(master, 4096)
            shown += piece
            if not piece:
                break
        except BlockingIOError:
            if answer and b"?" in shown:
                os.write(master, answer)
                answer = b""
            time.sleep(0.01)
        except OSError:
            break
    else:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return shown, status


def test_terminal(drarun):
    shown, status = on_terminal(drarun.program, "sh", "-c", "printf 'name? '; read a; echo hello $a",
                                answer=b"you\n")
    assert b"hello you" in shown and status == 0


def test_terminal_ctrl_c(drarun):
    shown, status = on_terminal(drarun.program, "sh", "-c", "printf '?'; read a; sleep 1000",
                                answer=b"\x03")
    assert status == 130, shown


def test_a_background_job_does_not_touch_the_terminal(drarun):
    """With a shell's job control, "drarun ... &" must neither read nor stop."""
    script = f"set -m; {drarun.program} sh -c 'sleep 1; echo alive' & wait %1; echo status $?"
    shown, status = on_terminal("/bin/bash", "-c", script)
    assert b"alive" in shown and b"status 0" in shown and status == 0


def test_a_background_job_ends_with_its_terminal(drarun, tmp_path):
    """Its shell is killed, so that nobody sends it a signal: its input ends, as of every program that reads there."""
    script = f"set -m; {drarun.program} sh -c 'touch begun; cat; touch ended' >log 2>&1 & sleep 1000"
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv("/bin/bash", ["bash", "-c", script])
    def await_file(name):
        deadline = time.monotonic() + patience()
        while not (tmp_path / name).exists():
            assert time.monotonic() < deadline, f"not {name}: {(tmp_path / 'log').read_text()}"
            time.sleep(0.02)
    await_file("begun")
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(master)
    await_file("ended")


def test_stop_and_continue(drarun, tmp_path):
    os.mkfifo(tmp_path / "go")
    gate = os.open(tmp_path / "go", os.O_RDWR | os.O_NONBLOCK)  # so that nobody waits for the other end
    job = drarun.start("sh", "-c", f"echo start; head -n 1 {tmp_path}/go; echo end")
    assert job.process.stdout.readline() == "start\n"
    job.signal(20)  # SIGTSTP
    deadline = time.monotonic() + patience()
    while state(job.pid) != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    states = set()
    while not states or not states <= {"T", "D"}:  # D: in vfork, of a stopped child
        assert time.monotonic() < deadline, states
        time.sleep(0.01)
        states = {state(pid) for pid, line in job.processes().items() if line.startswith(("sh", "head"))}
    job.signal(18)  # SIGCONT
    os.write(gate, b"go\n")
    assert job.finish(timeout=10).ok().out == "go\nend\n"
    os.close(gate)


def state(pid):
    return subprocess.check_output(["ps", "-o", "stat=", "-p", str(pid)], text=True).strip()[0]
