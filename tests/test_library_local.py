# SPDX-License-Identifier: Apache-2.0
"""Ranks on this machine through libdrarun and the Python package, with no cluster."""
import os
import signal
import subprocess
import sys
import time

import pytest

from support.build import patience
from support import python_package

HELLO = "echo rank $RANK of $WORLD_SIZE, $ADDED, in $PWD; echo bad >&2; exit 3"


@pytest.fixture
def local(build):
    """local(way, command...): tests/programs/api_local.c."""
    def run(way, *command):
        return subprocess.run([build / "tests/api_local", way, *command], capture_output=True, text=True, timeout=patience())
    return run


def gone(mark):
    """No process has it as an argument any more."""
    end = time.monotonic() + patience()
    while subprocess.run(["pgrep", "-f", mark], capture_output=True).returncode == 0:
        assert time.monotonic() < end, f"{mark} runs on"
        time.sleep(0.05)


def test_a_job_to_its_end(local):
    run = local("run", "sh", "-c", HELLO)
    lines = sorted(run.stdout.splitlines())
    assert (run.returncode, run.stderr) == (3, "")
    assert [line for line in lines if line.startswith("[0]")] == [
        "[0] rank 0: rank 0 of 2, by the caller, in /", "[0] rank 0: stderr: bad",
        "[0] rank 1: rank 1 of 2, by the caller, in /", "[0] rank 1: stderr: bad"]
    assert any(line.startswith("log: rank ") and "exited with status 3" in line for line in lines) and "status 3" in lines


def test_a_word_that_divides_programs_elsewhere(local):
    run = local("run", "sh", "-c", 'echo "$# $2"', "it", "a", ":", "b")
    assert sorted(run.stdout.splitlines()) == ["[0] rank 0: 3 :", "[0] rank 1: 3 :", "status 0"], run


def test_a_report_of_more_than_a_megabyte(local):
    """It names the program's words."""
    assert local("run", "true", *["x" * 1000] * 1200).stdout == "status 0\n"


def test_two_workers(local):
    run = local("worker", "sh", "-c", "echo $GROUP_RANK")
    assert run.returncode == 0 and sorted(run.stdout.splitlines()) == ["[0] rank 0: 0", "[0] rank 1: 1", "status 0"], run


def test_two_jobs_at_once_one_of_them_freed(local):
    run = local("two", "sh", "-c", "sleep 0.2; echo $RANK")
    assert run.returncode == 0 and sorted(run.stdout.splitlines()) == ["[1] rank 0: 0", "[1] rank 1: 1", "status 0"], run


@pytest.mark.parametrize("way,says", [
    ("signal", "error interrupted: "), ("enough", "error interrupted: "),
    ("endless", "error timeout: the job did not end within 200 ms\n")])
def test_a_job_that_is_ended(local, way, says):
    mark = f"sleep 1000.{os.getpid()}{len(way)}"
    run = local(way, "sh", "-c", f"echo up; exec {mark}")
    assert says in run.stdout and run.stdout.count("up\n") <= 2, run
    gone(mark)


@pytest.mark.parametrize("way", ["free", "alarmed"])
def test_ranks_of_a_job_that_is_freed_have_their_time(local, tmp_path, way):
    local(way, "sh", "-c", f"trap 'sleep 0.5; echo saving; touch {tmp_path}/$RANK; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


@pytest.mark.parametrize("command,says", [
    (["/nowhere/at/all"], "error not-found: no program /nowhere/at/all"), (["/"], "error not-executable: ")])
def test_what_cannot_run(local, command, says):
    assert says in local("run", *command).stdout


def test_the_job_ends_with_its_program(build):
    """Also one that says nothing, and whose program was killed."""
    mark = f"sleep 1000.{os.getpid()}"
    with subprocess.Popen([build / "tests/api_local", "run", "sh", "-c", f"echo up; exec {mark}"],
                          stdout=subprocess.PIPE) as run:
        assert run.stdout.readline()
        run.kill()
    gone(mark)


# ---- in Python ----

@pytest.fixture
def python(build, tmp_path):
    pytest.importorskip("cffi", reason="no python3-cffi: scripts/setup --test installs it")
    env = {**os.environ, **python_package.in_folder(tmp_path)}
    head = f"import asyncio, os, signal, sys, threading, time, drarun\nPROGRAM = {str(build / 'bin/drarun')!r}\n"

    def run(text, **more):
        return subprocess.run([sys.executable, "-c", head + text], env={**env, **more}, capture_output=True, text=True, timeout=patience())
    return run


PLAIN = pytest.mark.plain("a Python without sanitizers cannot load a library that has them")


@PLAIN
def test_python(python):
    run = python("""
seen, told = [], []
assert drarun.run_local(["sh", "-c", "echo $RANK $ADDED; exit $RANK"], ranks=2, env={"ADDED": "x"}, program=PROGRAM,
                        output=seen.append, log=lambda level, text: told.append((level, text))) == 1
assert sorted(seen) == [drarun.Output(0, "0 x\\n", False), drarun.Output(1, "1 x\\n", False)], seen
assert told[-1][0] == "error" and "exited with status 1" in told[-1][1], told
job = drarun.Job({"spec": {"workers": 2, "ranksPerWorker": 2, "nccl": {"env": {"NCCL_DEBUG": "INFO"}}, "template": {"spec": {
    "containers": [{"name": "a", "image": "i", "command": ["sh", "-c"], "args": ["echo $GROUP_RANK $ADDED $NCCL_DEBUG"],
                    "env": [{"name": "ADDED", "value": "b=c"}, {"name": "OTHER", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}}}})
for command, options, count in ((job, {}, 4), (job.document, {"ranks": 3}, 3), (job, {"ranks": 2, "workers": 2}, 2)):
    seen.clear()
    assert drarun.run_local(command, program=PROGRAM, output=seen.append, log=None, **options) == 0
    assert len(seen) == count and {each.text for each in seen} <= {"0 b=c INFO\\n", "1 b=c INFO\\n"}, seen
seen.clear()
refers = drarun.Job({"spec": {"image": "i", "command": ["echo", "$(RANK)", "$$(RANK)"], "args": ["$(B)"], "env": [
    {"name": "A", "value": "a"}, {"name": "B", "value": "$(A)b"}]}})
for command, options in ((refers, {}), (refers, {"ranks": 1}), (["echo", "$(RANK)", "$$"], {})):
    assert drarun.run_local(command, program=PROGRAM, output=seen.append, **options) == 0
assert [each.text for each in seen] == ["0 $(RANK) ab\\n"] * 2 + ["$(RANK) $$\\n"], seen
seen.clear()
own = drarun.Job({"spec": {"launch": "mpirun", "slots": 3, "image": "i", "command": ["sh", "-c", "cat $DRARUN_HOSTFILE"]}})
assert drarun.run_local(own, program=PROGRAM, output=seen.append) == 0 and " slots=3\\n" in seen[0].text, seen
own = drarun.Job({"spec": {"reportBindings": True, "bind": "core", "image": "i", "command": ["true"]}})
for options in ({}, {"ranks": 1}):
    told.clear()
    assert drarun.run_local(own, program=PROGRAM, log=lambda level, text: told.append((level, text)), **options) == 0
    assert [text.startswith("rank 0 on ") and "CPUs " in text for level, text in told] == [True], told
try:
    drarun.run_local("nowhere.yaml")
    assert False, "it ran"
except drarun.SpecError as error:
    assert "nowhere.yaml" in str(error), error
assert drarun.run_local(["echo", "here"]) == 0  # found beside the library
assert asyncio.run(drarun.aio.run_local(["true"], program=PROGRAM)) == 0
for error, says, options in [
        (drarun.NotFoundError, "/nowhere", {"program": "/nowhere"}), (drarun.UsageError, "level", {"level": "loud"}),
        (drarun.InfrastructureError, "it ended without a word", {"program": "/bin/false"}),  # no drarun, or an older one
        (drarun.UsageError, "timeout", {"timeout": 0}), (drarun.UsageError, "--launch", {"launch": "mail"}),
        (drarun.UsageError, "unknown option", {"options": ["--nothing"]}), (drarun.UsageError, "ranks", {"ranks": -1})]:
    try:
        drarun.run_local(["true"], **{"program": PROGRAM, **options})
        assert False, says
    except error as raised:
        assert says in str(raised), raised
try:
    drarun.run_local(["sleep", "1000"], timeout=0.2, program=PROGRAM)
    assert False, "it ended"
except drarun.TimeoutError:
    pass
def wrong(output):
    raise KeyError(output.text)
try:
    drarun.run_local(["sh", "-c", "echo up; sleep 1000"], output=wrong, program=PROGRAM)
    assert False, "it ended"
except KeyError as error:
    assert error.args == ("up\\n",)
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "here\n"), run


@PLAIN
def test_python_job_with_roles(python):
    """Each role's program in its own workers, over more than one agent."""
    run = python("""
seen = []
script = "echo $DRARUN_ROLE $RANK/$WORLD_SIZE $A $ADDED $PWD"
roles = [{"name": "head", "command": ["sh", "-c", script]},
         {"name": "train", "workers": 2, "ranksPerWorker": 2, "command": ["sh", "-c", script], "env": {"A": "own"}}]
job = drarun.Job({"spec": {"image": "i", "world": "own", "env": {"A": "top"}, "roles": roles}})
assert drarun.run_local(job, program=PROGRAM, output=seen.append, env={"ADDED": "x"}, directory="/", bind="core") == 0
assert sorted(each.text for each in seen) == ["head 0/1 top x /\\n", *(f"train {r}/4 own x /\\n" for r in range(4))], seen
for options in ({"ranks": 2}, {"workers": 2}, {"launch": "env"}):
    try:
        drarun.run_local(job, program=PROGRAM, **options)
        assert False, "it ran"
    except drarun.UsageError as error:
        assert str(error).startswith(f"{[*options][0]}: the job has several roles"), error
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", ""), run


@PLAIN
def test_python_with_a_program_of_another_release(python, build, tmp_path):
    """An older drarun does not know what it is asked for; an agent of another release that speaks the protocol is fine."""
    for option in ("frames", "expand", "one-program"):
        older = tmp_path / option
        older.write_text(f'#!/bin/sh\ncase "$* " in *" --{option} "*) ;; *) exec {build}/bin/drarun "$@";; esac\n'
                         f"echo 'drarun: unknown option --{option}; --help lists them' >&2\nexit 64\n")
        older.chmod(0o755)
    run = python(f"""
def job(word):
    return drarun.Job({{"spec": {{"image": "i", "command": ["echo", word]}}}})
for command, option in ((["true"], "frames"), (job("$(RANK)"), "expand"), (job("$$"), "expand"), (["echo", ":"], "one-program")):
    try:
        drarun.run_local(command, ranks=1, program=f"{tmp_path}/{{option}}")
        assert False, "it ran"
    except drarun.InfrastructureError as error:
        assert "older than libdrarun" in str(error) and f"has no --{{option}}" in str(error), error
assert drarun.run_local(job("$(date +%s)"), ranks=1, program="{tmp_path}/expand", output=lambda out: None) == 0
os.environ["DRARUN_WORKER_PROGRAM"] = {str(build / "tests/programs/drarun_worker_next")!r}
assert drarun.run_local(["echo", "next"], program=PROGRAM) == 0
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "next\n"), run


@PLAIN
def test_python_ctrl_c_at_any_time(python):
    mark = f"1000.{os.getpid()}"
    run = python(f"""
signal.signal(signal.SIGINT, signal.default_int_handler)
for delay in (0, 0.002, 0.01, 0.03, 0.1, 0.3):
    try:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        drarun.run_local(["sleep", "{mark}"], ranks=2, program=PROGRAM)
        assert False, "it ended"
    except KeyboardInterrupt:
        pass
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("handler is as it was")
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "handler is as it was\n"), run
    gone(f"sleep {mark}")


@PLAIN
def test_python_ctrl_c_is_the_signal_that_ranks_get(python, tmp_path):
    """As include/drarun/local.h says: that very signal, not the SIGTERM that follows it."""
    program = f"for each in INT TERM; do trap \"echo $each >>{tmp_path}/got; exit\" $each; done; echo ready; while :; do sleep 0.05; done"
    run = python(f"""
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    drarun.run_local(["sh", "-c", {program!r}], program=PROGRAM, output=lambda out: os.kill(os.getpid(), signal.SIGINT))
    assert False, "it ended"
except KeyboardInterrupt:
    pass
""")
    assert (run.returncode, run.stderr) == (0, ""), run
    end = time.monotonic() + patience()
    while not (tmp_path / "got").exists() or not (tmp_path / "got").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert (tmp_path / "got").read_text() == "INT\n"


@PLAIN
def test_python_characters_in_two_pieces(python):
    """A long line comes in pieces of any number of bytes; what is no UTF-8 is replaced, also at the end."""
    run = python("""
seen = []
write = "import sys; sys.stdout.reconfigure(encoding='utf-8'); print('a' + chr(0xe9) * 200_000)"
assert drarun.run_local(["python3", "-c", write], ranks=2, program=PROGRAM, output=seen.append) == 0
for rank in range(2):
    mine = [each.text for each in seen if each.rank == rank]
    assert len(mine) > 2 and "".join(mine) == "a" + chr(0xe9) * 200_000 + "\\n", [each[-3:] for each in mine]
seen.clear()
assert drarun.run_local(["printf", r"b\\303\\nc\\303"], program=PROGRAM, output=seen.append) == 0
assert "".join(each.text for each in seen) == "b\ufffd\\nc\ufffd", seen
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", ""), run


@PLAIN
def test_python_streams_that_lack_a_character(python):
    """The job goes on: its output is no reason to end it."""
    run = python("""
assert drarun.run_local(["printf", r"caf\\303\\251\\n"], program=PROGRAM) == 0
sys.stdout.flush()
sys.stdout = None  # a program without a terminal, as pythonw
assert drarun.run_local(["echo", "unseen"], program=PROGRAM) == 0
""", PYTHONIOENCODING="ascii:strict")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", "caf\\xe9\n"), run


@PLAIN
def test_python_log_that_raises(python):
    """It ends the job, which says nothing more that would."""
    mark = f"sleep 1000.{os.getpid()}1"
    run = python(f"""
def wrong(level, text):
    raise KeyError(level)
try:
    drarun.run_local(["sh", "-c", "exec {mark}"], log=wrong, level="debug", program=PROGRAM)
    assert False, "it ended"
except KeyError as error:
    assert error.args[0] in ("verbose", "debug"), error
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", ""), run
    gone(mark)


@PLAIN
def test_python_command_that_is_no_list(python):
    run = python("""
for command, says in (("hostname", "a program is a list, ['hostname']"), ("./app --x", "a program is a list, ['./app', '--x']"),
                      ("/bin/ls", "a program is a list, ['/bin/ls']"), ("it's", "a program is a list"), (["echo", 3], "command: expected a text, got 3")):
    try:
        drarun.run_local(command, program=PROGRAM)
        assert False, command
    except drarun.UsageError as error:
        assert says in str(error), error
import pathlib, tempfile
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "train")
    path.write_text("spec: {image: i, comand: [true]}")
    try:
        drarun.run_local(str(path), program=PROGRAM)
        assert False, path
    except drarun.SpecError as error:
        assert str(path) in str(error), error
""")
    assert (run.returncode, run.stderr) == (0, ""), run


@PLAIN
def test_python_tells_why_a_job_failed(python):
    """As the program does, unless nobody wants to know."""
    run = python("""
for log in ({}, {"log": None}):
    assert drarun.run_local(["sh", "-c", "kill -9 $$"], program=PROGRAM, **log) == 137
""")
    assert run.returncode == 0 and run.stderr.count("killed by signal 9") == 1 and run.stderr.startswith("drarun: rank 0 "), run


@PLAIN
def test_python_job_as_the_program_runs_it(python):
    """Its folder, its time limit and its way to launch, too."""
    run = python("""
def job(**spec):
    return {"spec": {"image": "i", **spec}}
def output(job, **options):
    seen = []
    assert drarun.run_local(job, program=PROGRAM, output=seen.append, **options) == 0
    return "".join(each.text for each in seen)
own = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i", "command": ["pwd"], "workingDir": "/usr"}]}}}}
assert output(own) == "/usr\\n"
assert output(job(command=["sh", "-c", "cat $DRARUN_HOSTFILE"], launch="mpirun", workers=2)).count("\\n") == 2
hosts = {"command": ["sh", "-c", "cat $DRARUN_HOSTFILE"], "devices": {"gpus": {"count": 4}}}
for own, options in ((job(**hosts, launch="mpirun", workers=2), {"options": ["--kill-after", "9"]}), (job(**hosts, launch="mpirun"), {"workers": 2}),
                     (job(**hosts, workers=2), {"launch": "mpirun"}), (hosts["command"], {"launch": "mpirun", "workers": 2})):
    assert output(own, **options).count("\\n") == 2, (own, options)  # it runs once
assert output(job(command=["sh", "-c", "echo $RANK"], workers=2), options=["-n", "3"]).count("\\n") == 3  # as beside a command
try:
    drarun.run_local(job(command=["sleep", "1000"], timeouts={"total": "1s"}), program=PROGRAM)
    assert False, "it ended"
except drarun.TimeoutError:
    pass
""")
    assert (run.returncode, run.stderr) == (0, ""), run


@PLAIN
def test_python_words_behind_the_report(python):
    run = python("""
try:
    drarun.run_local(["true"], options=["--report", "/dev/full"], program=PROGRAM)
    assert False, "it is written"
except drarun.InfrastructureError as error:
    assert str(error) == "drarun: write /dev/full: No space left on device", error
assert drarun.run_local(["sh", "-c", "exit 3"], options=["--report", "/dev/full"], program=PROGRAM, log=None) == 3
""")
    assert (run.returncode, run.stderr) == (0, ""), run


@PLAIN
def test_python_child_of_a_fork(python):
    """What a child frees, signals or awaits is not its parent's job."""
    run = python("""
from drarun._library import ffi, lib
started, err = ffi.new("struct drarun_local **"), ffi.new("struct drarun_error *")
words = [ffi.new("char[]", each) for each in (b"sh", b"-c", b"sleep 1; exit 7")]
options = ffi.new("struct drarun_local_options *")
program = ffi.new("char[]", PROGRAM.encode())
options.size, options.program = ffi.sizeof("struct drarun_local_options"), program
assert lib.drarun_local_start(ffi.new("char *[]", [*words, ffi.NULL]), options, started, err) == 0, ffi.string(err.text)
child = os.fork()
if child == 0:
    lib.drarun_local_signal(started[0], signal.SIGKILL)
    refused = lib.drarun_local_wait(started[0], ffi.NULL, err) == -22 and b"child of a fork" in ffi.string(err.text)
    lib.drarun_local_free(started[0])
    os._exit(0 if refused else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
status = ffi.new("int *")
assert lib.drarun_local_wait(started[0], status, err) == 0, ffi.string(err.text)
assert status[0] == 7
lib.drarun_local_free(started[0])
""")
    assert (run.returncode, run.stderr) == (0, ""), run


@PLAIN
def test_python_options_of_wrong_types(python):
    run = python("""
class Two:  # as numpy.int64
    def __index__(self):
        return 2
seen = []
assert drarun.run_local(["true"], ranks=Two(), program=PROGRAM) == 0
for says, options in [
        ("ranks: expected a whole number, got '2'", {"ranks": "2"}), ("workers: expected a whole number, got 2.0", {"workers": 2.0}),
        ("options: expected a list of words, got the text '-v'", {"options": "-v"}), ("launch: expected a text, got 3", {"launch": 3}),
        ("env: A: expected a text, got None", {"env": {"A": None}}), ("env: expected a dict, got 'A=B'", {"env": "A=B"}),
        ("env: expected the name of a variable, got 'A=B'", {"env": {"A=B": "x"}}),
        ("ranks: expected 1 or more, got 0", {"ranks": 0}), ("workers: expected 1 or more, got 0", {"workers": 0})]:
    try:
        drarun.run_local(["true"], program=PROGRAM, **options)
        assert False, says
    except drarun.UsageError as error:
        assert str(error).startswith(says), error
""")
    assert (run.returncode, run.stderr, run.stdout) == (0, "", ""), run
