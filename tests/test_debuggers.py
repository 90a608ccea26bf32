# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for a debugger (docs/debuggers.md): stopped before their first instruction, in PMIx_Init, or in the MPI library, until
a tool over PMIx or SIGCONT lets them go on. tests/programs/pmix_debugger.c does what a parallel debugger does, with gdb for each rank."""
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from support import pages
from support.build import BUILD, SOURCE, patience

WAITS = re.compile(r"^drarun: (?:worker \d+: )?rank (\d+) on (\S+): process (\d+) waits for a debugger, (.*)$")


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def variable(pid, name):
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if entry.startswith(name.encode() + b"="):
            return entry.split(b"=", 1)[1].decode()
    return None


class Stopped:
    """A job whose ranks wait for a debugger, once all of them have said so."""

    def __init__(self, drarun, place, ranks, *command, workers=2, env=None):
        self.job = drarun.start("--workers", workers, "-n", ranks, "--stop-at", place, *command, env=env)
        self.said, self.pids, self.where = [], {}, set()
        hang = threading.Timer(patience(), self.job.process.kill)
        hang.start()
        while len(self.pids) < ranks:
            line = self.job.process.stderr.readline()
            assert line, f"not all of {ranks} ranks wait: {self.said}"
            self.said.append(line)
            found = WAITS.match(line.rstrip("\n"))
            if found:
                self.pids[int(found.group(1))] = int(found.group(3))
                self.where.add(found.group(4))
        hang.cancel()
        assert sorted(self.pids) == list(range(ranks))

    def debug(self, *options):
        """What pmix_debugger says of them, line by line."""
        program = BUILD / "tests" / "programs" / "pmix_debugger"
        env = {**os.environ, "PMIX_SYSTEM_TMPDIR": variable(self.pids[0], "PMIX_SERVER_TMPDIR")}
        namespace = variable(self.pids[0], "PMIX_NAMESPACE")
        asked = subprocess.run([program, *options, str(self.job.pid), namespace], env=env, stdout=subprocess.PIPE, text=True, timeout=patience(180))
        assert asked.returncode == 0, asked
        return asked.stdout.splitlines()


@pytest.fixture(autouse=True)
def tools():
    if not (BUILD / "tests" / "programs" / "pmix_debugger").exists():
        pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
    if not shutil.which("gdb"):
        pytest.skip("no gdb; run scripts/setup --test")
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and int(scope.read_text()) > 0 and os.geteuid() != 0:
        pytest.skip("kernel.yama.ptrace_scope lets a user attach to children alone")


def seen_by_gdb(lines, pids):
    """rank -> all that gdb said of it; of the process that we know it is."""
    seen = {}
    for line in lines:
        found = re.match(r"rank (\d+) (\d+): (.*)", line)
        if found:
            assert int(found.group(2)) == pids[int(found.group(1))]
            seen[int(found.group(1))] = seen.get(int(found.group(1)), "") + found.group(3) + "\n"
    assert sorted(seen) == sorted(pids)
    return seen


def test_parallel_debugger_before_the_first_instruction(drarun):
    """All ranks of both agents are stopped in the dynamic linker, and end as usual once they are let go on."""
    stopped = Stopped(drarun, "exec", 4, "sh", "-c", "echo end $RANK")
    assert stopped.where == {"before its first instruction"}
    assert all(state_of(pid) == "T" for pid in stopped.pids.values())
    lines = stopped.debug("--resume")
    assert lines[0] == "ready -2 exec" and lines[-1] == "released"
    for said in seen_by_gdb(lines, stopped.pids).values():
        assert "_start" in said, said
    result = stopped.job.finish().ok()
    assert sorted(result.out.splitlines()) == [f"end {rank}" for rank in range(4)]


def test_parallel_debugger_in_pmix_init(drarun):
    stopped = Stopped(drarun, "init", 4, BUILD / "tests" / "programs" / "pmix_client", "modex")
    assert stopped.where == {"in PMIx_Init"}
    lines = stopped.debug()
    assert lines[0] == "ready -2 pmix-init" and lines[-1] == "released"
    seen_by_gdb(lines, stopped.pids)
    result = stopped.job.finish().ok()
    assert result.out.startswith("modex ok on 4 ranks")


def test_mpi_program_in_its_init(drarun, mpi):
    """With every library, over PMIx and over PMI-1, where the agent holds its first answer back."""
    stopped = Stopped(drarun, "init", 2, mpi.compile("mpi_check.c"), "all", workers=1, env=mpi.env)
    assert stopped.where == {"in PMI_Init" if mpi.api == "pmi1" else "in PMIx_Init"}
    lines = stopped.debug()
    assert lines[0] == "ready -2 pmix-init" and lines[-1] == "released"
    assert "ok: 2 ranks, 1 nodes\n" in stopped.job.finish(90).ok().out


def test_mpi_program_where_its_library_waits(drarun, mpi_named):
    """Open MPI 5, in MPI_Init. Rank 1 comes later than rank 0: nobody is told before it waits, too."""
    mpi = mpi_named("openmpi5")
    program = mpi.compile("mpi_check.c")
    stopped = Stopped(drarun, "app", 2, "sh", "-c", 'test $RANK = 0 || sleep 2; exec "$0" all', program, workers=1, env=mpi.env)
    assert stopped.where == {"where its MPI library does"}
    assert {os.readlink(f"/proc/{pid}/exe") for pid in stopped.pids.values()} == {os.path.realpath(program)}
    lines = stopped.debug()
    assert lines[0] == "ready -2 mpi-init" and lines[-1] == "released"
    assert "ok: 2 ranks, 1 nodes\n" in stopped.job.finish(90).ok().out


@pytest.mark.parametrize("place", ["exec", "init"])
def test_sigcont_lets_all_go_on(drarun, place):
    """Without any tool: what drarun says to type."""
    stopped = Stopped(drarun, place, 4, BUILD / "tests" / "programs" / "pmix_client", "modex")
    assert f"kill -CONT {stopped.job.pid} lets them go on" in "".join(stopped.said)
    stopped.job.signal(signal.SIGCONT)
    assert stopped.job.finish().ok().out.startswith("modex ok on 4 ranks")


@pytest.mark.parametrize("place", ["exec", "init"])
def test_end_of_a_job_that_waits(drarun, place):
    """Stopped ranks are ended as others are."""
    stopped = Stopped(drarun, place, 4, BUILD / "tests" / "programs" / "pmix_client", "modex")
    stopped.job.signal(signal.SIGTERM)
    result = stopped.job.finish()
    assert result.rc == 128 + signal.SIGTERM, repr(result)


def test_programs_of_every_kind_stop(drarun):
    """Also where drarun serves no PMIx, and a program that links nothing."""
    stopped = Stopped(drarun, "exec", 2, "--launch", "env", "/bin/true", workers=1)
    assert all(state_of(pid) == "T" for pid in stopped.pids.values())
    stopped.job.signal(signal.SIGCONT)
    stopped.job.finish().ok()


def test_what_cannot_wait(drarun):
    result = drarun("--stop-at", "init", "--launch", "env", "true")
    assert result.rc == 64 and "launch mode env has no PMIx" in result.err, repr(result)
    result = drarun("--stop-at", "exec", "--launch", "mpirun", "true")
    assert result.rc == 64 and "your mpirun starts the ranks" in result.err, repr(result)
    result = drarun("--stop-at", "exec", "-n", 2, "/nonexistent/program")
    assert result.rc == 127 and "/nonexistent/program" in result.err, repr(result)


def gdb_of_the_page():
    """The words of docs/debuggers.md that start gdb around a rank, without its program."""
    line, = (each.text for each in pages.commands("docs/debuggers.md") if " gdb -batch " in each.text)
    words = shlex.split(line)
    return words[words.index("gdb"):words.index("./a.out")]


def test_gdb_around_each_rank(drarun):
    """Whose job ends as it would without it; a crash shows where, and fails the job. A spec's command has the same words."""
    words = gdb_of_the_page()
    assert f"command: [{', '.join(words)}, ./a.out]" in (SOURCE / "docs/debuggers.md").read_text()
    result = drarun("-n", 2, *words, BUILD / "tests/programs/pmix_client", "modex").ok()
    assert "modex ok on 2 ranks" in result.out
    assert drarun("-n", 2, *words, "/bin/sh", "-c", "exit 7").rc == 7
    crashed = drarun("-n", 2, *words, "/bin/sh", "-c", 'test "$RANK" = 0 || kill -SEGV $$; exec sleep 60')
    assert crashed.rc == 255 and "received signal SIGSEGV" in crashed.out and re.search(r"^#0 ", crashed.out, re.M), crashed


def test_processes_of_a_rank(drarun):
    """As docs/debuggers.md looks for them beside a rank, where drarun exec leaves out what makes a process the rank."""
    line, = (each.text for each in pages.commands("docs/debuggers.md") if "PMIX_RANK" in each.text)
    words = shlex.split(line)
    job = drarun.start("-n", 4, "-l", "sh", "-c", "echo $$; exec sleep 100")
    pids = dict(re.match(r"\[(\d)\] (\d+)\n", job.process.stdout.readline()).groups() for _ in range(4))
    beside = subprocess.run([BUILD / "bin/drarun-worker", "--beside", "3", *words[words.index("--"):]], capture_output=True, text=True, timeout=patience())
    found = {rank for rank, pid in pids.items() if f"/proc/{pid}/environ" in beside.stdout.splitlines()}  # others may have such ranks, too
    assert found == {"3"}, beside
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 128 + signal.SIGTERM
