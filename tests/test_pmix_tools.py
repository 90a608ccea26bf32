# SPDX-License-Identifier: Apache-2.0
"""Tools over PMIx (docs/debuggers.md): what they are told of a job of two agents with two ranks each, and who may be one. Asked by
tests/programs/pmix_tool.c, and by OpenPMIx' own tools where they are installed."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support.build import BUILD, patience

NOBODY = 65534
RUNNING, CONNECTED = 5, 6  # PMIX_PROC_STATE_*


@pytest.fixture(scope="module")
def programs():
    """pmix_client and pmix_tool, where everybody may run them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in "pmix_client", "pmix_tool":
            found = BUILD / "tests" / "programs" / name
            if not found.exists():
                pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
            shutil.copy(found, folder)
        yield Path(folder)


def until(there, what):
    end = time.monotonic() + patience()
    while not there():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Job:
    """Ranks that wait until the test is done; connected: to PMIx before that."""

    def __init__(self, drarun, programs, folder, *options, connected=False, workers=2):
        self.folder, self.tool = folder, programs / "pmix_tool"
        before = f"{programs}/pmix_client job >{folder}/connected.$RANK || exit; " if connected else ""
        self.job = drarun.start("--workers", workers, "-n", 4, *options, "bash", "-c",
                                f"{before}env >{folder}/made.$RANK; mv {folder}/made.$RANK {folder}/env.$RANK; "
                                f"until [ -e {folder}/go ]; do sleep 0.1; done; echo end $RANK")
        until(lambda: len(list(folder.glob("env.*"))) == 4, "the ranks do not begin")
        self.env = dict(line.split("=", 1) for line in (folder / "env.1").read_text().splitlines() if "=" in line)
        self.namespace = self.env["PMIX_NAMESPACE"]
        self.session = Path(re.search(r"^PMIX_SERVER_TMPDIR=(.*)$", (folder / "env.0").read_text(), re.M).group(1))  # of worker 0
        until(lambda: list(self.session.glob(f"pmix.*.tool.{self.job.process.pid}")), "the agent does not say where tools find the job")
        self.hosts = [re.search(r"^PMIX_HOSTNAME=(.*)$", (folder / f"env.{rank}").read_text(), re.M).group(1) for rank in range(4)]

    def ask(self, *args, before=(), **how):
        """pmix_tool's output and status. It finds the job by the process that the user started, where a search in all of /tmp takes long."""
        asked = subprocess.run([*before, self.tool, *how.pop("options", ()), str(self.job.process.pid), *map(str, args)],
                               env={**os.environ, "PMIX_SYSTEM_TMPDIR": str(self.session)}, stdout=subprocess.PIPE, text=True,
                               timeout=patience(), **how)
        return asked.stdout, asked.returncode

    def answers(self, *args):
        out, rc = self.ask(*args)
        assert rc == 0 and out.startswith(f"tool {self.namespace}.tool.0."), (out, rc)
        return out.split("\n", 1)[1]

    def finish(self):
        (self.folder / "go").touch()
        result = self.job.finish().ok()
        assert sorted(line for line in result.out.splitlines() if line.startswith("end")) == [f"end {rank}" for rank in range(4)], repr(result)
        return result


@pytest.fixture
def job(drarun, programs, tmp_path):
    return Job(drarun, programs, tmp_path)


def pids(job):
    """Of the ranks, by rank: what the kernel says. A child of a rank's shell is the same shell until it becomes its program."""
    found, parents = {}, {}
    for pid in job.job.processes():
        try:
            env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            exe = os.readlink(f"/proc/{pid}/exe")
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        rank = [int(each[5:]) for each in env if each.startswith(b"RANK=")]
        if rank and exe.endswith("bash"):
            found.setdefault(rank[0], []).append(pid)
    return {rank: next(pid for pid in shells if parents[pid] not in shells) for rank, shells in found.items()}


def test_process_table(job):
    """Of all agents, from one of them."""
    table = job.answers(job.namespace, -1, "pmix.qry.ptable").splitlines()
    bash = os.path.realpath(shutil.which("bash"))
    assert table[0] == "pmix.qry.ptable 4"
    real = pids(job)
    for rank, line in enumerate(table[1:]):
        number, host, pid, executable, state, code = line.split(" ")
        assert (int(number), host, int(pid), executable, code) == (rank, job.hosts[rank], real[rank], bash, "0")
        assert int(state) == RUNNING
    assert job.hosts[0] != job.hosts[2]
    assert len(job.answers(job.namespace, -1, "pmix.qry.lptable").splitlines()) == 3
    assert job.finish().err == ""


def test_facts(job):
    assert job.answers("", -1, "pmix.qry.ns") == f"pmix.qry.ns {job.namespace}\n"
    assert job.answers(job.namespace, -1, "pmix.num.nodes") == "pmix.num.nodes 2\n"
    assert job.answers(job.namespace, -1, "pmix.nlist") == f"pmix.nlist {job.hosts[0]},{job.hosts[2]}\n"
    assert job.answers(job.namespace, 3, "pmix.hname", "pmix.ppid") == f"pmix.hname {job.hosts[3]}\npmix.ppid {pids(job)[3]}\n"
    assert "bash" in job.answers("", -1, "pmix.qry.nsinfo")
    out, rc = job.ask("", -1, "pmix.qry.qlst")  # no scheduler's queues
    assert rc == 3 and out.endswith("nothing\n")
    out, rc = job.ask("drarun.none.0", -1, "pmix.qry.ptable")
    assert rc == 3 and out.endswith("nothing\n")
    assert job.finish().err == ""


def test_states_and_bindings(drarun, programs, tmp_path):
    job = Job(drarun, programs, tmp_path, "--bind", f"{min(os.sched_getaffinity(0))}", connected=True)
    cpu = str(min(os.sched_getaffinity(0)))
    for rank in range(4):
        assert job.answers(job.namespace, rank, "pmix.cpuset", "pmix.proc.state") == f"pmix.cpuset {cpu}\npmix.proc.state {CONNECTED}\n"
    os.kill(pids(job)[2], signal.SIGSTOP)  # asked of its agent, which is not stopped
    assert len(job.answers(job.namespace, -1, "pmix.qry.ptable").splitlines()) == 5
    os.kill(pids(job)[2], signal.SIGCONT)
    job.finish()


def test_signal_to_a_rank_of_another_agent(job):
    real = pids(job)[3]
    def state():
        return Path(f"/proc/{real}/stat").read_text().rsplit(")", 1)[1].split()[0]
    assert job.ask(job.namespace, 3, "--signal", int(signal.SIGSTOP))[1] == 0
    until(lambda: state() == "T", "it is not stopped")
    assert job.ask(job.namespace, 3, "--signal", int(signal.SIGCONT))[1] == 0
    until(lambda: state() != "T", "it does not go on")
    job.finish()


def test_files_by_which_tools_find_a_job(job):
    """Below folders of mode 0700, without the namespace in their names; they go with the job."""
    files = sorted(job.session.glob("pmix.*.tool.*"))
    assert job.session.stat().st_mode & 0o777 == 0o700 and len(files) == 2
    assert str(job.job.process.pid) in {each.name.rsplit(".", 1)[1] for each in files}
    for each in files:
        assert each.stat().st_mode & 0o777 == 0o600
        assert each.read_text().startswith(f"{job.namespace}.server.0;tcp4://127.0.0.1:")
        assert job.namespace.rsplit(".", 1)[1] not in each.name
    assert not list(job.session.parent.glob(f"{job.session.name[:-1]}1/pmix.*.tool.*"))  # of the other agent on this machine
    job.finish()
    assert not job.session.exists()


# ---- who may be one ----

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


def is_refused(job, asked, note):
    out, rc = asked
    assert rc != 0 and "ptable" not in out, (out, rc)
    result = job.finish()
    assert result.err.count(note) == 1, repr(result)


@only_root
def test_tool_of_another_user(job):
    """It finds no file; and where it knows the address, the kernel says whose it is."""
    port = int(job.env["PMIX_SERVER_URI41"].rsplit(":", 1)[1])
    knock = f"import socket\nassert socket.create_connection(('127.0.0.1', {port})).recv(1) == b''"
    subprocess.run(["python3", "-c", knock], user=NOBODY, group=NOBODY, extra_groups=[], check=True, timeout=patience())
    is_refused(job, job.ask(job.namespace, -1, "pmix.qry.ptable", user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"),
               "refused a connection of user 65534")


@only_root
def test_tool_in_another_container(job):
    """Of the same user and on the same network, as a sidecar: it cannot signal the ranks, and learns nothing."""
    is_refused(job, job.ask(job.namespace, -1, "pmix.qry.ptable", before=("unshare", "--pid", "--fork", "--kill-child")), "refused a tool of our user")


@pytest.mark.parametrize("rank", [1, 77], ids=["a-rank", "no-rank"])
def test_tool_in_the_jobs_name(job, rank):
    is_refused(job, job.ask(job.namespace, -1, "pmix.qry.ptable", options=("--as", job.namespace, str(rank))), "refused a tool of our user")


def test_tool_in_a_name_of_its_own(job):
    out, rc = job.ask("", -1, "pmix.qry.ns", options=("--as", "mine", "3"))
    assert (out, rc) == (f"tool mine\npmix.qry.ns {job.namespace}\n", 0)
    job.finish()


def test_tools_that_leave_without_a_word(job):
    """Each killed after it has asked; what they cost the agent is bounded."""
    for _ in range(20):
        asked = subprocess.Popen([job.tool, str(job.job.process.pid), job.namespace, "-1", "pmix.qry.ptable"], stdout=subprocess.PIPE,
                                 env={**os.environ, "PMIX_SYSTEM_TMPDIR": str(job.session)})
        assert asked.stdout.readline().startswith(b"tool ")
        asked.kill()
        asked.communicate()
    assert len(job.answers(job.namespace, -1, "pmix.qry.ptable").splitlines()) == 5
    job.finish()


def test_more_tools_than_an_agent_serves(job):
    """The 257th is refused, with one line; the ranks do not notice."""
    env = {**os.environ, "PMIX_SYSTEM_TMPDIR": str(job.session)}
    asked = subprocess.run([job.tool, "--times", "256", str(job.job.process.pid)], env=env, stdout=subprocess.PIPE, text=True,
                           timeout=patience(300))
    assert asked.returncode == 0 and asked.stdout.count("tool ") == 256, asked
    for _ in range(2):
        out, rc = job.ask("", -1, "pmix.qry.ns")
        assert rc != 0 and job.namespace not in out, (out, rc)
    result = job.finish()
    assert result.err.count("this agent has served 256 tools and accepts no more") == 1, repr(result)


def test_agent_that_does_not_answer(job):
    """Stopped, or of a release that does not know the question: the tool is told after a while, and the user which one it is."""
    status = Path(f"/proc/{pids(job)[3]}/status").read_text()
    other = int(re.search(r"^PPid:\s*(\d+)$", status, re.M).group(1))
    os.kill(other, signal.SIGSTOP)
    try:
        out, rc = job.ask(job.namespace, -1, "pmix.qry.ptable")
        assert rc == 2 and "TIMEOUT" in out, (out, rc)
        assert job.answers("", -1, "pmix.qry.ns") == f"pmix.qry.ns {job.namespace}\n"  # asked of nobody else
    finally:
        os.kill(other, signal.SIGCONT)
    assert len(job.answers(job.namespace, -1, "pmix.qry.ptable").splitlines()) == 5
    assert job.finish().err.count("nothing came from the agent of worker 1 ") == 1


# ---- tools of OpenPMIx ----

def test_pps(job):
    if not shutil.which("pps"):
        pytest.skip("no libpmix-bin; run scripts/setup --test")
    env = {**os.environ, "PMIX_SYSTEM_TMPDIR": str(job.session)}  # there may be other jobs of this user
    asked = subprocess.run(["pps"], env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=patience())
    assert asked.returncode == 0 and job.namespace in asked.stdout, asked
    job.finish()
