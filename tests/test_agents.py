# SPDX-License-Identifier: Apache-2.0
"""Agents started by hand, each on a machine of its own (network, host name and shared memory), and what
may happen to them, to the launcher and to the network between."""
import contextlib
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import types
from pathlib import Path

import pytest

from support import pages
from support.agents import Agents
from support.build import BUILD, patience
from support.timed import and_timed

READY = "echo ready $DRARUN_JOB; "
NOTING = BUILD / "tests/programs/noting_agent"


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(drarun, options, script, under=()):
    """A started job whose ranks all run; job.uid is its name."""
    count = 2 * len(options[1].split(","))
    job = drarun.start(*options, "-n", count, "sh", "-c", READY + script, under=under)
    for _ in range(count):
        words = job.process.stdout.readline().split()
        assert words[:1] == ["ready"], job.process.stderr.read()
    job.uid = words[1]
    return job


def session_dirs(job):
    return list(Path("/tmp").glob(f"drarun-{job.uid}*"))


def nothing_left(job, machines=()):
    """Of this job on its agents."""
    deadline = time.monotonic() + patience()
    while True:
        left = [str(path) for path in session_dirs(job)]
        left += [f"{node.name}:/dev/shm/{name}" for node in machines
                 for name in node.run("ls", "/dev/shm").split()]
        for pid, line in all_processes(b"DRARUN_JOB=" + job.uid.encode()):
            left.append(f"process {pid} {line}")
        if not left or time.monotonic() > deadline:
            assert not left
            return
        time.sleep(0.05)


def all_processes(entry):
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if entry in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name), (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            pass


def still_serve(drarun, some, under=()):
    """The agents take the next job."""
    count = len(some.jobs)
    result = drarun(*some.options, "-n", count, "sh", "-c", "echo rank $RANK", under=under).ok()
    assert sorted(result.out.splitlines()) == [f"rank {i}" for i in range(count)]


def stop(some):
    """SIGTERM while they wait for a job; returns what they had said on stderr."""
    for job in some.jobs:
        job.signal(signal.SIGTERM)
    results = [job.finish(timeout=10) for job in some.jobs]
    assert [result.rc for result in results] == [0] * len(results)
    return "".join(result.err for result in results)


# ---- jobs over several machines ----

@pytest.mark.parametrize("count", [1, 3, 8])
def test_each_agent_knows_its_host(drarun, nodes, agents, count):
    machines = nodes(count)
    some = agents(machines)
    result = drarun(*some.options, "-n", count, "sh", "-c",
                    "echo $DRARUN_RANK $DRARUN_WORKER $(hostname) $DRARUN_HOST $MASTER_ADDR",
                    under=machines.head.enter).ok()
    assert sorted(result.out.splitlines()) == [f"{i} {i} node{i} node{i} 10.77.0.1"
                                               for i in range(count)]
    assert [agent.rc for agent in some.finish()] == [0] * count


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_port_of_rank_0(drarun, nodes, agents, where):
    """Each job draws one, since rank 0 of another job may be on the same machine."""
    machines = nodes(1)
    some = agents(machines, once=False)
    under = (machines.head if where == "elsewhere" else machines[0]).enter
    ports = drarun(*some.options, "-n", 2, "sh", "-c", "echo $MASTER_PORT", under=under).ok().out.split()
    assert len(ports) == 2 and ports[0] == ports[1] != "29500" and int(ports[0]) in range(10000, 30000), ports
    stop(some)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_own_name_is_of_the_loopback(drarun, nodes, agents, tmp_path, order):
    """As Debian's installer has it in /etc/hosts. The other machine gets an address that it can reach."""
    machines = nodes(2)
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.1.1 node0\n{machines[1].address} node1\n")
    machines[0].run("mount", "--bind", hosts, "/etc/hosts")
    key = agents(0).key_file
    some = [Agents(drarun, key, [("", node.enter)]) for node in machines]
    where = ",".join(f"node{i}{some[i].addresses[0]}" for i in order)
    result = drarun("--agents", where, "--key-file", key, "-n", 2, "sh", "-c", "echo $RANK $(hostname) $MASTER_ADDR", under=machines[0].enter).ok()
    first = machines[order[0]].address
    assert sorted(result.out.splitlines()) == [f"{rank} node{i} {first}" for rank, i in enumerate(order)] and result.err == ""
    assert [agent.rc for each in some for agent in each.finish()] == [0, 0]
    twice = drarun("--agents", f"node0:7173,{machines[0].address}:7173,node1:7173", "--key-file", key, "true", under=machines[0].enter)
    assert twice.rc == 64 and twice.err == f"drarun: --agents: {machines[0].address}:7173 is named twice\n"


def test_agents_of_the_loopback_alone_beside_another_machine(drarun, nodes, agents):
    """The parent of the second one is on its machine, and reaches it there."""
    machines = nodes(2)
    here, there = machines
    key = agents(0).key_file
    some = [Agents(drarun, key, [("127.0.0.1", here.enter)] * 2), Agents(drarun, key, [(there.address, there.enter)])]
    where = ",".join(address for each in some for address in each.addresses)
    result = drarun("--agents", where, "--key-file", key, "-n", 3, "sh", "-c", "echo $RANK $(hostname) $MASTER_ADDR", under=here.enter).ok()
    assert sorted(result.out.splitlines()) == [f"{rank} {name} {here.address}" for rank, name in enumerate(("node0", "node0", "node1"))]
    assert [agent.rc for each in some for agent in each.finish()] == [0, 0, 0]
    result = drarun("--start-timeout", "1s", "--agents", f"127.0.0.2:9,127.0.0.3:9,{there.address}:9", "--key-file", key, "true", under=here.enter)
    assert "is not reached after 1 s" in result.err and "named twice" not in result.err, result


@pytest.mark.parametrize("name", ["openmpi4", "openmpi5", "mpich4", "mpich5"])
def test_mpi_between_machines(drarun, nodes, agents, mpi_named, name):
    """Over the machines' own interfaces, shared memory only within each."""
    mpi = mpi_named(name)
    program = mpi.compile("mpi_check.c")
    machines = nodes(3)
    some = agents(machines)
    result = drarun(*some.options, "-n", 6, program, "all", under=machines.head.enter,
                    timeout=90).ok()
    assert "ok: 6 ranks, 3 nodes\n" in result.out and mpi.version in result.out
    assert result.err == ""
    assert all(agent.rc == 0 and agent.err == "" for agent in some.finish())


def test_eight_machines(drarun, nodes, agents, mpi_named):
    machines = nodes(8)
    some = agents(machines)
    result = drarun(*some.options, "-n", 8, mpi_named("openmpi4").compile("mpi_check.c"), "all",
                    under=machines.head.enter, timeout=90).ok()
    assert "ok: 8 ranks, 8 nodes\n" in result.out
    assert [agent.rc for agent in some.finish()] == [0] * 8


def test_openssl_configuration_of_an_image(drarun, tmp_path):
    """The agent reads none: this one would never end."""
    os.mkfifo(tmp_path / "openssl.cnf")
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32) + "\n")
    agent = drarun.start("--listen", "127.0.0.1:0", "--key-file", key, "--once", program=BUILD / "bin" / "drarun-worker",
                         env={"OPENSSL_CONF": tmp_path / "openssl.cnf"})
    result = drarun("--agents", f"127.0.0.1:{Agents.port(agent)}", "--key-file", key, "--start-timeout", "5", "echo", "in")
    assert result.out == "in\n", repr(result)
    assert agent.finish().rc == 0


def test_report_names_the_machine(drarun, nodes, agents):
    machines = nodes(2)
    some = agents(machines)
    result = drarun(*some.options, "-n", 4, "sh", "-c", "[ $RANK != 3 ] || exit 9; sleep 1000",
                    under=machines.head.enter)
    assert result.rc == 9
    assert "rank 3 on worker 1 (node1) exited with status 9" in result.err
    assert [agent.rc for agent in some.finish()] == [0, 0]


@pytest.fixture
def noting(drarun, tmp_path):
    """start(*scripts): a job on agents that follow tests/programs/noting_agent.c, a rank on each."""
    key, agents = tmp_path / "key", []
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32) + "\n")

    def start(*scripts):
        agents[:] = [drarun.start(key, f"n{i}", *words, program=NOTING) for i, words in enumerate(scripts)]
        places = ",".join(f"127.0.0.1:{Agents.port(each)}" for each in agents)
        return drarun.start("--agents", places, "--key-file", key, "--kill-after", "1000", "-n", len(agents), "true")
    start.agents = agents
    yield start
    for each in agents:
        each.finish()


def notes_of(result):
    return [line.removeprefix("drarun: ") for line in result.err.splitlines()]


END = ("start", "end")


def test_notes_of_several_agents(noting):
    """Equal ones are one line, those of one agent stay in their order, and what comes while ranks run is said at once."""
    result = noting(("note:b", "note:a", "note:same", "ready", *END), ("note:same", "ready", *END),
                    ("note:same", "note:own", "ready", "start", "note:same", "end")).finish()
    assert result.rc == 0 and notes_of(result) == ["worker 0: b", "worker 0: a", "workers 0-2: same", "worker 2: own", "worker 2: same"], result


def test_notes_delay_no_failure(noting):
    """It ends the job at once, and what was noted before is said before it."""
    result = noting(("note:same", "sleep:60000"), ("note:same", "failure:it cannot")).finish()
    said = notes_of(result)
    assert result.rc == 65 and said[0] in ("workers 0-1: same", "worker 1: same"), result  # 65: no start that took too long
    assert any("it cannot" in line for line in said[1:]), result


def test_notes_of_a_slow_start(noting):
    """They are not kept until the last agent is ready: they may say what is awaited. No rank runs yet that a signal would give time."""
    job = noting(("note:early", "ready", *END), ("sleep:60000",))
    readable, _, _ = select.select([job.process.stderr], [], [], patience())
    assert readable and job.process.stderr.readline() == "drarun: worker 0: early\n"
    job.signal(signal.SIGINT)
    result = job.finish()
    assert result.rc == 130, result  # and not 70, after the start took too long
    assert noting.agents.pop().finish().err == "told to end\n"  # and not left to itself for --kill-after


@pytest.mark.skipif(os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"), reason="this machine has RDMA devices")
def test_check_of_nics_that_are_not_there(drarun, agents):
    """Refused as a job with network: rdma is, and the agents take the next job."""
    some = agents(2, once=False)
    for words in ((), ("--reach",), ("--reach", "-o", "json")):
        result = drarun("bench", "fabric", *words, *some.options)
        assert (result.rc, result.out) == (76, "") and f"NO_RDMA_NIC: worker 0 ({some.addresses[0]})" in result.err, result
    still_serve(drarun, some)
    assert stop(some) == ""


@pytest.mark.parametrize("words,said", [
    ((), "no workers given"),
    (("--agents", "a:1"), "--agents needs --key-file FILE, the key of the agents"),
    (("--agents", "127.0.0.1:1", "--key-file", "key", "--reach"), "--reach: one agent has no other whose NICs it could reach"),
    (("--agents", "127.0.0.1:1,127.0.0.1:1", "--key-file", "key"), "--agents: 127.0.0.1:1 is named twice"),
    (("--job", "x", "--key-file", "key"), "a job has its own key"),
    (("--agents", "a:1", "--key-file", "key", "--workers", "3"), "are for --job"),
    (("all_reduce",), 'unexpected argument "all_reduce"'),
], ids=["nobody", "no key", "alone", "twice", "key", "workers", "word"])
def test_words_of_the_check_of_nics(drarun, words, said):
    result = drarun("bench", "fabric", *words)
    assert result.rc == 64 and said in result.err and result.out == "", result


def test_where_the_end_of_children_is_ignored(drarun, tmp_path):
    """As below a daemon that awaits none of its own: the guard hears of its agent's end all the same."""
    some = Agents(drarun, tmp_path / "key", [("127.0.0.1", ["env", "--ignore-signal=CHLD"])])
    drarun(*some.options, "-n", 1, "true").ok()
    assert [agent.rc for agent in some.finish()] == [0]


def test_job_after_job(drarun, agents):
    """The same agents, by launchers that follow each other without a pause."""
    some = agents(2, once=False)
    for i in range(10):
        result = drarun(*some.options, "-n", 2, "sh", "-c", f"exit {i}")
        assert result.rc == i
    still_serve(drarun, some)
    assert stop(some) == ""


@pytest.fixture
def ipv6():
    """The loopback has it; a kernel that knows it may have it switched off."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")


@pytest.mark.usefixtures("ipv6")
def test_over_ipv6(drarun, agents, tmp_path):
    some = agents(1)
    six = drarun.start("--listen", "[::1]:0", "--key-file", some.key_file, "--once",
                       program=drarun.program.parent / "drarun-worker")
    where = f"[::1]:{some.port(six)},{some.addresses[0]}"
    result = drarun("--agents", where, "--key-file", some.key_file, "-n", 2, "sh", "-c",
                    "echo $DRARUN_WORKERS").ok()
    assert result.out == "2\n2\n"
    assert six.finish().rc == 0
    assert some.finish()[0].rc == 0


@pytest.mark.usefixtures("ipv6")
def test_on_all_addresses(drarun, agents, tmp_path):
    """One agent is reached at addresses of both families, as in a pod that has either, and names each as what it is."""
    key, other = agents(0).key_file, tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text(secrets.token_hex(32))
    agent = drarun.start("--listen", ":0", "--key-file", key, program=drarun.program.parent / "drarun-worker")
    port = Agents.port(agent)
    for host in ("127.0.0.1", "[::1]"):
        drarun("--agents", f"{host}:{port}", "--key-file", key, "-n", 1, "true").ok()
        assert drarun("--agents", f"{host}:{port}", "--key-file", other, "-n", 1, "true").rc == 70
    agent.signal(signal.SIGTERM)
    result = agent.finish()
    named = re.findall(r"^\S+ (\S+):\d+ refused", result.err, re.M)
    assert result.rc == 0 and list(dict.fromkeys(named)) == ["127.0.0.1", "[::1]"], result


def test_program_that_an_agent_does_not_find(drarun, agents, tmp_path):
    """mpirun passes PATH and directory on. With them the user has done what there is to do."""
    some = agents(1, once=False)
    path, folder = "; PATH is the agent's: -x PATH passes yours on\n", ", where its agent was started: --wd DIR is another place\n"
    for words, end in ((["nowhere-to-be"], " no program nowhere-to-be in PATH" + path), (["./nowhere"], f" in {os.getcwd()}" + folder),
                       (["-x", "PATH", "nowhere-to-be"], " in PATH\n"), (["--wd", tmp_path, "./nowhere"], f" in {tmp_path}\n"),
                       (["-x", "PATH=/bin*", "nowhere-to-be"], " in PATH\n"), (["-x", "PAT*", "nowhere-to-be"], " in PATH\n"),
                       (["-x", "PATHEXT=.py", "nowhere-to-be"], path), (["-x", "PATH_TO_DATA=/", "nowhere-to-be"], path),
                       (["-x", "HOME*", "nowhere-to-be"], path)):
        result = drarun(*some.options, *words)
        assert result.rc == 127 and result.err.endswith(end), result
    assert drarun("nowhere-to-be").err == "drarun: no program nowhere-to-be in PATH\n"
    stop(some)


# ---- keys ----

def test_wrong_key(drarun, agents, tmp_path):
    some = agents(2, once=False)
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_text(secrets.token_hex(32))
    result = drarun("--agents", some.options[1], "--key-file", other, "-n", 2, "true", timeout=20)
    assert result.rc == 70
    assert "does it have the same --key-file" in result.err
    still_serve(drarun, some)
    assert "does it hold this job's key?" in stop(some)


def test_missing_key(drarun, build):
    result = drarun("--agents", "127.0.0.1:7173", "-n", 1, "true")
    assert result.rc == 64 and "--key-file" in result.err
    result = drarun("--listen", "127.0.0.1:0", program=build / "bin" / "drarun-worker")
    assert result.rc == 64 and "--key-file" in result.err


def test_port_alone(drarun, build):
    result = drarun("--listen", "7173", program=build / "bin" / "drarun-worker")
    assert result.rc == 64 and result.err == "drarun-worker: --listen 7173: a port is written as :7173\n"


@pytest.mark.parametrize("make,said", [
    (lambda path: path.write_text("ab" * 32) and path.chmod(0o644), "chmod 600"),
    (lambda path: path.write_text("ab" * 31) and path.chmod(0o600), "64 hexadecimal digits"),
    (lambda path: None, "No such file"),
], ids=["readable", "short", "absent"])
def test_bad_key_file(drarun, build, tmp_path, make, said):
    key = tmp_path / "bad"
    make(key)
    for program, where in (("drarun", ["--agents", "127.0.0.1:7173"]),
                           ("drarun-worker", ["--listen", "127.0.0.1:0"])):
        words = [*where, "--key-file", key] + (["-n", 1, "true"] if program == "drarun" else [])
        result = drarun(*words, program=build / "bin" / program)
        assert result.rc == 64 and said in result.err and str(key) in result.err
        assert "abab" not in result.err  # most of a key


# ---- agents that cannot be had ----

def test_unreachable_agent_is_named(drarun, agents):
    some = agents(1, once=False)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # nobody listens there
        where = f"127.0.0.1:{door.getsockname()[1]}"
        result = drarun("--agents", f"{some.addresses[0]},{where}", "--key-file", some.key_file, "-n",
                        2, "true", timeout=30)
    assert result.rc == 70
    assert "worker 1" in result.err and where in result.err
    first, *_ = result.err.splitlines()
    assert first.startswith("drarun: waiting: worker 1 (") and "is not reached: " in first and "refused" in first, result.err
    still_serve(drarun, some)
    stop(some)


def test_loopback_is_down(drarun):
    """Agents that drarun starts itself listen there; waiting changes nothing."""
    if os.getuid() != 0:
        pytest.skip("a network namespace needs root")
    result = drarun("--workers", 2, "-n", 2, "true", under=["unshare", "--net"], timeout=20)
    assert result.rc == 70 and "the loopback interface is down; run ip link set lo up" in result.err, result


def test_agents_that_cannot_reach_each_other(drarun, nodes, agents):
    """The launcher reaches both; who tries to reach whom is said, and both serve on."""
    machines = nodes(2)
    some = agents(machines, once=False)
    other = some.addresses[1].rsplit(":", 1)[0]
    machines[0].run("ip", "route", "add", "unreachable", f"{other}/32")
    result = drarun(*some.options, "-n", 2, "true", under=machines.head.enter, timeout=60)
    assert result.rc == 70
    assert "worker 0 (node0, " in result.err and "worker 1" in result.err, result.err
    machines[0].run("ip", "route", "del", "unreachable", f"{other}/32")
    still_serve(drarun, some, under=machines.head.enter)
    stop(some)


def test_something_else_listens_there(drarun, agents):
    """It accepts, and says nothing at all, or not what an agent says."""
    some = agents(1, once=False)
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(patience())
        where = f"127.0.0.1:{door.getsockname()[1]}"

        def answer():
            guest, _ = door.accept()
            guest.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            guest.recv(10)

        thread = threading.Thread(target=answer)
        thread.start()
        result = drarun("--agents", where, "--key-file", some.key_file, "-n", 1, "true", timeout=30)
        thread.join(patience())
        assert result.rc == 70 and where in result.err
        result = drarun("--agents", where, "--key-file", some.key_file, "-n", 1, "true", timeout=30)
        assert result.rc == 70 and where in result.err
        assert result.seconds > 8  # the deadline for agents to answer
    still_serve(drarun, some)
    stop(some)


def test_same_agent_twice(drarun, agents):
    some = agents(1, once=False)
    result = drarun("--agents", f"{some.addresses[0]},{some.addresses[0]}", "--key-file",
                    some.key_file, "-n", 2, "true")
    assert result.rc == 64 and "named twice" in result.err
    still_serve(drarun, some)
    stop(some)


def test_port_is_taken(drarun, agents, build):
    some = agents(1, once=False)
    result = drarun("--listen", some.addresses[0], "--key-file", some.key_file,
                    program=build / "bin" / "drarun-worker")
    assert result.rc == 70
    assert some.addresses[0] in result.err and "in use" in result.err
    stop(some)


def test_second_launcher_is_turned_away(drarun, agents):
    some = agents(2, once=False)
    job = running(drarun, some.options, "sleep 1000")
    second = drarun(*some.options, "-n", 2, "true", timeout=30)
    named = "|".join(rf"{worker} \({re.escape(where)}\)" for worker, where in enumerate(some.addresses))
    assert second.rc == 70, second
    assert re.search(rf"^drarun: worker ({named}) refused this launcher: it already serves another one$", second.err, re.MULTILINE), second
    assert "was lost" not in second.err
    assert job.process.poll() is None
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 143
    nothing_left(job)
    still_serve(drarun, some)
    assert "already has a launcher" in stop(some)


# ---- strangers at the port of an agent that runs a job ----

def strangers(address):
    """Sockets of peers that are up to no good."""
    host, port = address.rsplit(":", 1)
    made = []
    for words in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"\xff\xff\xff\xff",
                  os.urandom(4096), b"\x16\x03\x03\xff\xff" + os.urandom(70000)):
        peer = socket.create_connection((host, int(port)), timeout=5)
        peer.setblocking(False)
        try:
            peer.sendall(words)
        except BlockingIOError:
            pass
        made.append(peer)
    return made


def test_strangers_do_not_disturb_a_job(drarun, agents, mpi_named):
    """While MPI starts and runs, they come, say garbage, half a record or nothing, and stay."""
    program = mpi_named("openmpi4").compile("mpi_check.c")
    some = agents(2, once=False)
    stayed, stopped = [], threading.Event()

    def molest():
        while not stopped.is_set() and len(stayed) < 600:
            for address in some.addresses:
                stayed.extend(strangers(address))
            stopped.wait(0.02)

    thread = threading.Thread(target=molest)
    thread.start()
    try:
        for _ in range(2):
            result = drarun(*some.options, "-n", 4, program, "all").ok()
            assert "ok: 4 ranks, 2 nodes\n" in result.out and result.err == ""
    finally:
        stopped.set()
        thread.join(patience())
    assert len(stayed) > 12
    for peer in stayed:
        peer.close()
    still_serve(drarun, some)
    assert "refused" in stop(some)


def test_slow_stranger_is_dropped(drarun, agents):
    """One byte of TLS a second: out after ten, while a job runs on."""
    some = agents(1, once=False)
    job = running(drarun, some.options, "sleep 1000")
    host, port = some.addresses[0].rsplit(":", 1)
    began = time.monotonic()
    with socket.create_connection((host, int(port)), timeout=5) as peer:
        for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(20):
            try:
                peer.sendall(bytes([byte]))
            except OSError:
                break
            readable, _, _ = select.select([peer], [], [], 1)
            if readable and peer.recv(100) == b"":
                break
    assert time.monotonic() - began > 8
    assert job.process.poll() is None
    job.signal(signal.SIGTERM)
    assert job.finish().rc == 143
    assert "no hello within 10 s" in stop(some)


# ---- deaths ----

@pytest.mark.parametrize("worker", [0, 1])
def test_agent_is_killed(drarun, nodes, agents, worker):
    """Its guard removes what it left, and serves the next job."""
    machines = nodes(2)
    some = agents(machines, once=False)
    job = running(drarun, some.options, "echo x > /dev/shm/left-$RANK; setsid sleep 1001 & sleep 1000",
                  under=machines.head.enter)
    agent, = children(some.jobs[worker].pid)
    os.kill(agent, signal.SIGKILL)
    result = job.finish(timeout=20)
    assert result.rc == 70
    assert f"worker {worker} (node{worker}, {some.addresses[worker]}) was lost" in result.err
    assert "no message from it" not in result.err, result.err  # its connection tells, not silence
    assert result.err.count("drarun: ") == 1, result.err
    # what ranks themselves make under names of their own is theirs; the agent's own files are gone
    for node in machines:
        node.run("sh", "-c", "rm -f /dev/shm/left-*")
    nothing_left(job, machines)
    still_serve(drarun, some, under=machines.head.enter)
    assert "the agent was killed by signal 9" in stop(some)


def test_agent_and_guard_are_killed(drarun, agents):
    """As when the machine's administrator kills both: the ranks go with them."""
    some = agents(2, once=False)
    job = running(drarun, some.options, "setsid sleep 1001 & sleep 1000")
    agent, = children(some.jobs[1].pid)
    os.kill(some.jobs[1].pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    result = job.finish(timeout=20, clean=False)
    assert result.rc == 70
    assert f"worker 1 ({socket.gethostname()}, {some.addresses[1]}) was lost" in result.err
    assert "no message from it" not in result.err, result.err  # its connection tells, not silence
    some.jobs[1].finish(clean=False)
    for path in session_dirs(job) + list(Path("/dev/shm").glob(f"drarun-{job.uid}*")):
        assert path.name.endswith(".1")  # nobody was left to remove it
        shutil.rmtree(path)
    nothing_left(job)
    some.jobs.pop().close()
    some.addresses.pop()
    some.options[1] = some.addresses[0]
    still_serve(drarun, some)
    stop(some)


def test_guard_is_killed(drarun, agents):
    some = agents(2, once=False)
    job = running(drarun, some.options, "setsid sleep 1001 & sleep 1000")
    os.kill(some.jobs[0].pid, signal.SIGKILL)
    result = job.finish(timeout=20)
    assert result.rc == 70
    assert "the agent got SIGTERM" in result.err
    nothing_left(job)
    assert some.jobs.pop(0).finish().rc == -9
    stop(some)


def test_agent_is_told_to_end(drarun, agents):
    some = agents(2, once=False)
    job = running(drarun, some.options, "setsid sleep 1001 & sleep 1000")
    some.jobs[1].signal(signal.SIGTERM)
    result = job.finish(timeout=20)
    assert result.rc == 70
    assert "worker 1" in result.err and "got SIGTERM" in result.err
    nothing_left(job)
    assert some.jobs.pop().finish().rc == 0
    stop(some)


def test_launcher_is_killed(drarun, nodes, agents):
    machines = nodes(2)
    some = agents(machines, once=False)
    job = running(drarun, some.options, "setsid sleep 1001 & sleep 1000", under=machines.head.enter)
    os.kill(job.pid, signal.SIGKILL)
    assert job.finish().rc == -9
    nothing_left(job, machines)
    still_serve(drarun, some, under=machines.head.enter)
    assert "the launcher is gone" in stop(some)


def written(uid):
    """What its processes have written so far, in bytes."""
    found = {}
    for pid, _ in all_processes(b"DRARUN_JOB=" + uid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found[pid] = int(re.search(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[1])
    return found


def test_launcher_is_killed_amidst_output(drarun, agents, tmp_path):
    """Nobody reads it, and more than it had taken was on its way: the agents read their ranks' pipes to the end all the same."""
    some, (unread, output) = agents(2, once=False), os.pipe()
    script = f"echo $DRARUN_JOB >{tmp_path}/$RANK.new; mv {tmp_path}/$RANK.new {tmp_path}/$RANK; exec yes"
    with subprocess.Popen([BUILD / "bin/drarun", *some.options, "-n", "4", "sh", "-c", script], stdout=output, stdin=subprocess.DEVNULL) as launcher:
        os.close(output)
        end, before, now = time.monotonic() + patience(), {}, {}
        while len(now) < 4 or now != before:  # until all wait in write
            assert time.monotonic() < end, now
            time.sleep(0.3)
            uid = (tmp_path / "0").read_text().strip().encode() if len([*tmp_path.glob("[0-3]")]) == 4 else b"none yet"
            before, now = now, written(uid)
        launcher.kill()
    os.close(unread)
    job = types.SimpleNamespace(uid=uid.decode())
    nothing_left(job)
    still_serve(drarun, some)
    stop(some)


def test_interrupt_from_the_agents_terminal(agents):
    """It reaches the guard and the agent at the same time, and both end in order."""
    some = agents(1, once=False)
    os.killpg(some.jobs[0].pid, signal.SIGINT)
    result = some.jobs[0].finish(timeout=10)
    assert result.rc == 0 and "signal" not in result.err, result


def test_binding_counts_the_ranks_of_a_machine(drarun, agents):
    """Two agents of one machine divide its cores as two workers of a local job do."""
    show = ("-n", 2, "--bind", "core", "sh", "-c", "echo $RANK $(grep Cpus_allowed_list /proc/self/status)")
    by_hand = drarun(*agents(2).options, *show).ok().out
    assert sorted(by_hand.splitlines()) == sorted(drarun("--workers", 2, *show).ok().out.splitlines())


def test_report_of_bindings(drarun, agents, tmp_path):
    """What the kernel lets each rank use, also of one that is not bound: its agent may have fewer CPUs than the machine."""
    host, cpus = socket.gethostname(), sorted(os.sched_getaffinity(0))[:2]
    some = Agents(drarun, tmp_path / "key", [("127.0.0.1", ["taskset", "-c", str(cpu)]) for cpu in cpus])
    result = drarun(*some.options, "-n", len(cpus), "--report-bindings", "true").ok()
    assert sorted(result.err.splitlines()) == [
        f"drarun: worker {i}: rank {i} on {host}: CPUs {cpu} (not bound)" for i, cpu in enumerate(cpus)]
    show = "echo $RANK $(sed -n 's/^Cpus_allowed_list://p' /proc/self/status)"
    result = drarun(*agents(2).options, "-n", 2, "--bind", "core", "--report-bindings", "sh", "-c", show).ok()
    told = re.findall(rf"^drarun: worker (\d): rank \1 on {re.escape(host)}: CPUs (\S+)(?: \(shared with other ranks\))?$", result.err, re.M)
    assert sorted(told) == sorted(tuple(line.split()) for line in result.out.splitlines()) and len(told) == 2, result


@pytest.mark.parametrize("name", ["openmpi4", "mpich5"])
def test_agent_is_killed_under_mpi(drarun, nodes, agents, mpi_named, name):
    """With shared memory and sockets of the library in use."""
    program = mpi_named(name).compile("mpi_check.c")
    machines = nodes(2)
    some = agents(machines, once=False)
    job = drarun.start(*some.options, "-n", 4, "sh", "-c",
                       f"{READY} exec {program} forever", under=machines.head.enter)
    for _ in range(4):
        job.uid = job.process.stdout.readline().split()[1]
    assert job.process.stdout.readline() == "running\n"
    os.kill(children(some.jobs[1].pid)[0], signal.SIGKILL)
    result = job.finish(timeout=20)
    assert result.rc == 70, repr(result)
    assert "worker 1 (node1, " in result.err
    nothing_left(job, machines)
    still_serve(drarun, some, under=machines.head.enter)
    stop(some)


def test_agent_is_silent_for_as_long_as_it_may(drarun, agents):
    """A process that is stopped, whose machine acknowledges all it gets."""
    some = agents(2, once=False)
    job = running(drarun, [*some.options, "--agent-timeout", "5s"], "sleep 1000")
    os.kill(children(some.jobs[1].pid)[0], signal.SIGSTOP)
    result = job.finish(timeout=60, clean=False)  # what the stopped agent holds is there until it runs
    os.kill(children(some.jobs[1].pid)[0], signal.SIGCONT)
    assert result.rc == 70 and re.search(r"worker 1 \(.*\) was lost: no message from it for 5 s", result.err), result
    nothing_left(job)
    stop(some)


@pytest.mark.plain("it waits for more than 30 s of silence")
def test_machine_is_cut_off_for_a_while(drarun, nodes, agents, tmp_path):
    """As while a virtual machine is moved: neither launcher nor agents nor their kernels give it up, if the user says so."""
    machines, go = nodes(2), tmp_path / "go"
    some = agents(machines)
    job = running(drarun, [*some.options, "--agent-timeout", "5m"], f"until test -e {go}; do sleep 0.1; done; echo done $RANK",
                  under=machines.head.enter)
    machines[1].run("ip", "link", "set", "eth0", "down")
    began = time.monotonic()
    while time.monotonic() - began < 45 and job.process.poll() is None:
        time.sleep(0.2)
    assert job.process.poll() is None, job.finish()
    machines[1].run("ip", "link", "set", "eth0", "up")
    go.touch()
    result = job.finish(timeout=120)
    assert sorted(result.ok().out.splitlines()) == [f"done {rank}" for rank in range(4)], result
    assert [each.rc for each in some.finish()] == [0, 0]


@pytest.mark.plain("it waits for 30 s of silence")
@and_timed
def test_network_goes_away(drarun, nodes, agents, timed):
    """No reset, no packet: silence of 30 s is a loss, on both sides."""
    machines = nodes(2)
    some = agents(machines, once=False)
    job = running(drarun, some.options, "sleep 1000", under=machines.head.enter)
    began = time.monotonic()
    machines[1].run("ip", "link", "set", "eth0", "down")
    result = job.finish(timeout=60)
    assert result.rc == 70
    assert "worker 1 (node1, " in result.err
    took = time.monotonic() - began
    assert took > 20 and (not timed or took < 45), took
    deadline = time.monotonic() + patience()  # the agent notices by itself, too
    while list(all_processes(b"DRARUN_JOB=" + job.uid.encode())) and time.monotonic() < deadline:
        time.sleep(0.2)
    nothing_left(job, machines)
    machines[1].run("ip", "link", "set", "eth0", "up")
    # the one cut off hears of its launcher's end with the next packet that gets through
    while drarun(*some.options, "-n", 2, "true", under=machines.head.enter).rc != 0:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    still_serve(drarun, some, under=machines.head.enter)
    stop(some)


def test_page_of_several_machines(drarun, nodes, tmp_path):
    """Its commands as they stand there, with an ssh that enters a machine made of namespaces."""
    machines = nodes(2)
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node.address} {node.name}\n" for node in machines))
    tools = tmp_path / "tools"
    tools.mkdir()
    for node in (machines.head, *machines):
        node.run("mount", "--bind", hosts, "/etc/hosts")
        (tmp_path / node.name).mkdir()
        (tools / f"on-{node.name}").write_text("#!/bin/sh\nexec " + " ".join(node.enter) + ' "$@"\n')
    (tools / "ssh").write_text(f'#!/bin/sh\nhost=$1; shift\nexec {tools}/on-$host sh -c "cd {tmp_path}/$host && $*"\n')
    (tools / "scp").write_text(f'#!/bin/sh\n[ "$1" = -p ] && exec cp -p "$2" "{tmp_path}/${{3%:}}/"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    lines = [each.text for title in ("A key", "Agents", "Ranks") for each in pages.commands("docs/machines.md", title)]
    assert len(lines) == 6
    path = f"{tools}:{BUILD}/bin:{os.environ['PATH']}"
    result = drarun("-c", "\n".join(["set -e", f"cd {tmp_path}/head", *lines]), program="/bin/bash", under=machines.head.enter, env={"PATH": path}).ok()
    assert sorted(result.out.splitlines()) == ["[0] rank 0 on node0", "[1] rank 1 on node0", "[2] rank 2 on node1", "[3] rank 3 on node1"], result
