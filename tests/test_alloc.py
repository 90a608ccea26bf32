# SPDX-License-Identifier: Apache-2.0
"""`drarun alloc`: a shell whose drarun -n runs again and again on the same agents."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.build import patience
from support.cluster.api import wait


@pytest.fixture
def alloc(drarun):
    """alloc(SCRIPT): a shell's script in an allocation of two workers; $D is drarun."""
    def run(script, *options, start=False, **how):
        how["env"] = {"D": drarun.program, **how.get("env", {})}
        call = drarun.start if start else drarun
        return call("alloc", *(options or ("--workers", 2)), "--", "sh", "-c", script, **how)
    return run


def test_job_after_job(alloc, tmp_path):
    """With the shell's own environment and folder, as a local job has them."""
    result = alloc('for i in 1 2 3; do FOO=$i $D -n 4 sh -c \'echo $DRARUN_RANK $DRARUN_WORKER $FOO $(pwd) $DRARUN_ALLOC\'; '
                   'done; exit 7', cwd=tmp_path)
    assert result.rc == 7 and result.err == ""
    assert sorted(result.out.splitlines()) == sorted(
        f"{rank} {rank // 2} {i} {tmp_path}" for i in (1, 2, 3) for rank in range(4))


def test_a_working_directory_is_the_shells(alloc, tmp_path):
    (tmp_path / "x" / "sub").mkdir(parents=True)
    lines = "$D -n 1 --wd . pwd; $D -n 1 --chdir=sub pwd; $D -n 1 --wd / pwd; $D -n 1 --wd sub pwd : -n 1 pwd"
    result = alloc(f"cd x; {lines}", cwd=tmp_path).ok()
    assert result.out.splitlines()[:3] == [f"{tmp_path}/x", f"{tmp_path}/x/sub", "/"]
    assert sorted(result.out.splitlines()[3:]) == [f"{tmp_path}/x", f"{tmp_path}/x/sub"]


def test_limits_are_the_shells(alloc):
    """As those of a job on agents of its own; and each job's are its own."""
    cpu = str(min(os.sched_getaffinity(0)))
    show = "$D -n 1 sh -c 'umask; ulimit -Sc; ulimit -Ss; ulimit -Sn; ulimit -Hn; taskset -cp $$ | sed s/.*:.//'"
    script = f"{show}; umask 077; ulimit -c 100; ulimit -Ss 4000; ulimit -Sn 555; ulimit -Hn 2000; taskset -cp {cpu} $$ >&2; {show}"
    plain = alloc(script.replace("$D -n", "$D --workers 1 -n")).ok()
    assert plain.out.splitlines()[6:] == ["0077", "100", "4000", "555", "2000", cpu]
    assert alloc(script).ok().out == plain.out
    last = alloc(f"(umask 077; ulimit -Sc 0; $D -n 2 true); {show}").ok()
    assert last.out.splitlines() == plain.out.splitlines()[:6]
    bound = alloc(f"taskset -cp {cpu} $$ >&2; $D -n 1 --bind core --report-bindings true").ok()
    assert f"CPUs {cpu}\n" in bound.err


def test_the_same_agents(alloc):
    result = alloc("for i in 1 2; do $D -n 2 sh -c 'cut -d\" \" -f4 </proc/$PPID/stat'; done").ok()
    first, second = result.out.split()[:2], result.out.split()[2:]
    assert sorted(first) == sorted(second) and len(set(first)) == 2  # the guards, each of which forks an agent for each job


def test_where_the_end_of_children_is_ignored(alloc):
    """As below a daemon that awaits none of its own."""
    assert alloc("$D -n 2 true && exit 3", under=["env", "--ignore-signal=CHLD"]).rc == 3


def test_an_mpi_program_twice(alloc, examples):
    result = alloc(f"$D -n 4 {examples}/allreduce && $D -n 2 {examples}/allreduce").ok()
    assert "4 ranks, workers: 2" in result.out and "2 ranks, workers: 2" in result.out


def test_a_failed_job_leaves_the_allocation(alloc):
    result = alloc("$D -n 2 sh -c 'exit 3'; echo $?; $D --timeout 0.3 -n 2 sleep 1000; echo $?; $D -n 1 echo fine").ok()
    assert result.out.split() == ["3", "124", "fine"]


def test_its_folder_is_where_temporary_files_go(alloc, tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    assert alloc("echo $DRARUN_ALLOC; $D -n 2 true", env={"TMPDIR": str(deep)}).ok().out.startswith(f"{deep}/drarun-alloc-")
    assert not list(deep.iterdir())


def test_ended_while_it_is_made(drarun):
    """Nothing is left: neither its folder, with the key, nor agents."""
    alloc = drarun.start("alloc", "--workers", 64, "--", "sleep", 1000)
    wait("no allocation is begun", lambda: list(alloc.tmp.glob("drarun-alloc-*")), 20)
    alloc.signal(signal.SIGTERM)
    assert alloc.finish().rc == 143


def test_other_agents_are_asked_for(alloc):
    assert alloc("$D --workers 3 -n 3 sh -c 'echo $DRARUN_WORKERS'").ok().out.split() == ["3"] * 3


def test_by_its_folder(drarun, alloc):
    shell = alloc("echo $DRARUN_ALLOC; exec sleep 1000", start=True)
    folder = shell.process.stdout.readline().strip()
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert sorted(drarun("--alloc", folder, "-n", 2, "sh", "-c", "echo $DRARUN_WORKER").ok().out.split()) == ["0", "1"]
    shell.signal(signal.SIGTERM)
    assert shell.finish().rc == 143
    ended = drarun("--alloc", folder, "-n", 2, "true")
    assert ended.rc == 64 and "is no allocation, or one that has ended" in ended.err
    stale = drarun("-n", 2, "true", env={"DRARUN_ALLOC": folder})
    assert stale.rc == 64 and "or unset DRARUN_ALLOC" in stale.err


def is_agent(pid):
    """By its command line: an agent's environment is for root alone to read."""
    try:
        return b"drarun-worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_it_is_killed(alloc):
    """Its agents go with it."""
    shell = alloc("echo ready; exec sleep 1000", start=True)
    assert shell.process.stdout.readline() == "ready\n"
    agents = [pid for pid in Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split() if is_agent(pid)]
    assert agents  # one may be about to start
    shell.signal(signal.SIGKILL)
    deadline = time.monotonic() + patience()
    while any(map(is_agent, agents)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_a_killed_allocation_leaves(alloc, drarun):
    """Its shell's jobs are told at once, and the next allocation removes its folder, with the key."""
    shell = alloc("echo $DRARUN_ALLOC; read go; $D -n 1 true; echo $?", start=True, stdin=subprocess.PIPE)
    folder = shell.process.stdout.readline().strip()
    drarun("alloc", "--", "true", env={"TMPDIR": shell.tmp}).ok()
    assert Path(folder).is_dir()
    shell.signal(signal.SIGKILL)
    shell.process.wait(patience())
    shell.process.stdin.write("go\n")
    shell.process.stdin.flush()
    assert shell.process.stdout.readline() == "64\n"
    drarun("alloc", "--", "true", env={"TMPDIR": shell.tmp}).ok()
    assert not Path(folder).exists()
    stale = shell.finish(clean=False)
    assert f"the allocation {folder} has ended, since its drarun alloc was killed: leave its shell" in stale.err, stale


def test_two_jobs_at_once(alloc, tmp_path):
    """The second one is told why, and by drarun alone."""
    script = """mkfifo up; $D -n 1 sh -c 'echo >up; while ! test -e end; do sleep 0.05; done' & read line <up
$D -n 2 true; echo $?; $D --workers 1 -n 1 echo elsewhere; touch end; wait; $D -n 1 echo next"""
    result = alloc(script, cwd=tmp_path)
    assert result.out.splitlines() == ["75", "elsewhere", "next"], result
    assert len(result.err.splitlines()) == 1 and "another drarun runs in this allocation" in result.err
    assert "wait for it, or use --workers N" in result.err


KILL = """guard=$(tr ' ' '\\n' </proc/$PPID/task/$PPID/children | grep -v "^$$\\$" | head -n 1)
agent=$(cat /proc/$guard/task/$guard/children)
kill -9 $guard
for each in $agent; do while readlink /proc/$each/exe >/dev/null; do sleep 0.05; done; done
$D --start-timeout 2 -n 2 true; echo $?"""


def test_an_agent_that_was_killed(alloc):
    result = alloc(KILL, clean=False)
    assert result.out == "70\n" and "the agent of worker 0 has ended" in result.err
    assert "worker 0 (127.0.0.1:" in result.err and "is not reached" in result.err


@pytest.mark.parametrize("words,says", [
    (["alloc", "true"], "there is no file true; a command is given after --: drarun alloc -- true"),
    (["alloc", "job.yaml", "more"], 'unexpected argument "more"'),
    (["alloc", "--namespace", "x", "--", "true"], "--namespace applies to pods, and without a job FILE"),
    (["alloc", "--workers", "0"], "--workers"),
    (["--alloc", "/x", "--workers", "2", "true"], "give one of them"),
])
def test_wrong_lines(drarun, words, says):
    result = drarun(*words)
    assert result.rc == 64 and says in result.err


def test_one_in_another(alloc):
    result = alloc("$D alloc -- true")
    assert result.rc == 64 and "this shell has an allocation" in result.err
