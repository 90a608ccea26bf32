# SPDX-License-Identifier: Apache-2.0
"""Attacks by other users of the machine: each is one that once hung, joined or ended a job of root's."""
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.build import BUILD, SLOW_BUILD, patience
from support.timed import and_timed

PROGRAMS = Path(__file__).parent / "programs"
NOBODY = 65534
RANKS = 4

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


@pytest.fixture(scope="module")
def client():
    """pmix_client and a library that lies about the user, where everybody may run them."""
    found = BUILD / "tests" / "programs" / "pmix_client"
    if not found.exists():
        pytest.skip("no libpmix-dev when this was built; run scripts/setup --test")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = Path(shutil.copy(found, folder))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", Path(folder) / "other_user.so", PROGRAMS / "other_user.c"], check=True)
        yield program


class Victim:
    """A job whose ranks meet in a barrier once they may; with started, rank 0 is there before, so that the library runs.
    case: what they do instead."""

    def __init__(self, drarun, client, folder, started, case="barrier"):
        self.folder = folder
        inside = f"if [ -e {folder}/attack.py ]; then mv {folder}/attack.py {folder}/attack; python3 {folder}/attack & fi; " # of rank 1
        wait = f"until [ -e {folder}/go ]; do [ $PMIX_RANK != 1 ] || {{ {inside} }}; sleep 0.05; done"
        if started:
            wait = f"[ $PMIX_RANK = 0 ] || {wait}"
        self.job = drarun.start("-n", RANKS, "sh", "-c", f"env | grep ^PMIX_ >{folder}/made.$PMIX_RANK; "
                                f"mv {folder}/made.$PMIX_RANK {folder}/env.$PMIX_RANK; {wait}; exec {client} {case}")
        until(lambda: all((folder / f"env.{rank}").exists() for rank in range(RANKS)), "the ranks do not begin")
        self.env = dict(line.split("=", 1) for line in (folder / "env.1").read_text().splitlines())
        self.port = int(self.env["PMIX_SERVER_URI41"].rsplit(":", 1)[1])
        self.attackers = []
        if started:
            time.sleep(1)

    def attack(self, code, inside):
        """Python by a process of the job's own user that has `target`; a process of rank 1, or one that no rank has started. Until it
        says `there()`."""
        whole = (f"import socket, struct, sys, time\ntarget = ('127.0.0.1', {self.port})\n"
                 f"def there():\n    open('{self.folder}/there', 'w').close()\n"
                 "def closed(stranger):\n    try:\n        return stranger.recv(64) == b''\n"
                 f"    except ConnectionResetError:\n        return True  # unread\n{code}")
        (self.folder / "code").write_text(whole)
        if inside:
            (self.folder / "code").rename(self.folder / "attack.py")
        else:
            self.attackers.append(subprocess.Popen(["python3", "-c", whole]))
        until((self.folder / "there").exists, "the attacker is not done")

    def finish(self):
        """Its result, and the seconds from when the ranks may go on."""
        begun = time.monotonic()
        (self.folder / "go").touch()
        result = self.job.finish()
        seconds = time.monotonic() - begun
        for each in self.attackers:
            each.kill()
            each.wait()
        return result, seconds


def until(there, what):
    end = time.monotonic() + patience()
    while not there():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def connections(victim, user, count, said=b""):
    """A process of that user that has so many, has said that on each, and stays; its Popen."""
    code = ("import resource, socket, sys, time\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\n"
            f"kept = [socket.create_connection(('127.0.0.1', {victim.port})) for _ in range({count})]\n"
            f"for each in kept:\n    try:\n        each.sendall({said!r})\n    except OSError:\n        pass\n"
            "print('there', flush=True)\ntime.sleep(1000)\n")
    process = subprocess.Popen(["python3", "-c", code], user=user, group=user, extra_groups=[], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"there\n"
    return process


def handshake(namespace, rank, uid, size=8, bfrops="v41", version="4.2.6", security="native"):
    """What a client of libpmix sends: a header, then its security module, credential, kind, name and modules."""
    credential = struct.pack("=II", uid, uid)
    body = (security.encode() + b"\0" + struct.pack("!I", size) + credential + b"\0" + namespace.encode() + b"\0" + struct.pack("!I", rank) +
            version.encode() + b"\0" + bfrops.encode() + b"\0" + b"\1" + b"hash\0")
    return struct.pack("=iIQ", -1, 0, len(body)) + body


@pytest.fixture
def victim(drarun, client, tmp_path, request):
    return Victim(drarun, client, tmp_path, request.param == "started")


both = pytest.mark.parametrize("victim", ["before the library", "started"], indirect=True)


@both
@pytest.mark.parametrize("count,said", [
    (1, b""), (1, b"\x00\x00\x00\x01\x00"), (1, bytes(range(256)) * 64), (1000, b"")], ids=["silent", "half", "garbage", "crowd"])
@and_timed
def test_connections_of_another_user(victim, count, said, timed):
    """They cost the job nothing, and are gone."""
    stranger = connections(victim, NOBODY, count, said)
    result, seconds = victim.finish()
    stranger.kill()
    stranger.wait()
    assert result.rc == 0 and result.out.startswith(f"barrier ok on {RANKS} ranks"), repr(result)
    assert not timed or seconds < 10
    assert result.err.count("refused a connection of user 65534") == 1, repr(result)


@both
@pytest.mark.parametrize("claimed", [NOBODY, 0], ids=["honest", "claims-root"])
@and_timed
def test_client_of_another_user(victim, client, claimed, timed):
    """With all that a rank has in its environment, whatever user it says it is."""
    env = {**os.environ, **victim.env, "LD_PRELOAD": str(client.parent / "other_user.so"), "OTHER_USER": str(claimed)}
    with subprocess.Popen([client, "abort"], env=env, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as stranger:
        try:
            stranger.wait(5)
        except subprocess.TimeoutExpired:
            pass  # a library that asks forever
        result, seconds = victim.finish()
        stranger.kill()
    assert result.rc == 0 and result.out.startswith(f"barrier ok on {RANKS} ranks"), repr(result)
    assert not timed or seconds < 10


@both
@pytest.mark.parametrize("count", [1, 100])
@and_timed
def test_silent_connections_of_the_same_user(victim, count, timed):
    """They cost nothing: the library sees none that has not begun its handshake."""
    silent = [socket.create_connection(("127.0.0.1", victim.port)) for _ in range(count)]
    result, seconds = victim.finish()
    assert result.rc == 0 and (not timed or seconds < 5), repr(result)
    for each in silent:
        each.close()


def is_whole(result):
    return result.rc == 0 and result.out.startswith(f"barrier ok on {RANKS} ranks")


OF_WHOM = pytest.mark.parametrize("inside", [False, True], ids=["no-rank", "a-rank"])
REFUSED = "refused a process of our user"


@both
@OF_WHOM
@pytest.mark.parametrize("said", [b"\0\0\0\1\0", handshake("x", 1, 0)[:-5], bytes(64)], ids=["half-header", "half", "garbage"])
def test_bad_handshake_of_the_same_user(victim, said, inside):
    """Half of one costs a descriptor, and the library does not see it: two hundred would hold it up for minutes."""
    victim.attack(f"""kept = []
for _ in range(200):
    kept.append(socket.create_connection(target))
    kept[-1].sendall({said!r})
there()
time.sleep(1000)
""", inside)
    result, _ = victim.finish()
    assert is_whole(result), repr(result)


@both
def test_client_that_no_rank_has_started(victim, client):
    """Of the job's own user, with all that a rank has in its environment."""
    with subprocess.Popen([client, "abort"], env={**os.environ, **victim.env}, cwd="/",
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as stranger:
        try:
            stranger.wait(5)
        except subprocess.TimeoutExpired:
            pass  # a library that asks forever
        result, _ = victim.finish()
        stranger.kill()
    assert is_whole(result), repr(result)
    assert result.err.count(REFUSED) == 1 and "that rank 1 has not started" in result.err, repr(result)


@both
def test_rank_that_says_it_is_another(victim):
    victim.attack(f"""stranger = socket.create_connection(target)
stranger.sendall({handshake(victim.env["PMIX_NAMESPACE"], 2, 0)!r})
assert closed(stranger)
there()
""", inside=True)
    result, _ = victim.finish()
    assert is_whole(result) and "that rank 2 has not started" in result.err, repr(result)


@pytest.mark.parametrize("wrapper", [
    "{client} barrier; exit $?", "setsid -w {client} barrier", "sh -c 'sh -c \"{client} barrier\"; exit $?'; exit $?",
    "(setsid sh -c '{client} barrier; echo $? >{folder}/status.$PMIX_RANK' &); until [ -s {folder}/status.$PMIX_RANK ]; do sleep 0.05; done",
    "unshare --fork --pid --mount-proc {client} barrier"], ids=["shell", "session", "two-shells", "orphan", "pid-namespace"])
def test_ranks_behind_wrappers(drarun, client, tmp_path, wrapper):
    """What a rank starts is the rank."""
    result = drarun("-n", RANKS, "sh", "-c", wrapper.format(client=client, folder=tmp_path), timeout=60)
    assert is_whole(result) and result.err == "", repr(result)


@both
@pytest.mark.parametrize("wrong", [{"security": "none"}, {"bfrops": "none"}, {"size": 1 << 31}, {"version": "5", "security": "none"}, {"namespace": "other"}],
                         ids=lambda wrong: next(iter(wrong)))
def test_refused_client_of_a_rank(victim, wrong):
    """A process of rank 1 names it and is refused by the library; the rank itself connects after it."""
    said = {"namespace": victim.env["PMIX_NAMESPACE"], "rank": 1, "uid": 0, **wrong}
    victim.attack(f"""for _ in range(3):
    stranger = socket.create_connection(target)
    stranger.sendall({handshake(**said)!r})
    assert closed(stranger)
there()
""", inside=True)
    result, _ = victim.finish()
    assert is_whole(result), repr(result)
    assert REFUSED not in result.err, repr(result)


@pytest.mark.parametrize("started", [False, True], ids=["before the library", "started"])
def test_client_that_leaves_in_its_handshake(drarun, client, tmp_path, started):
    """As a rank that is killed while it connects: its answer reaches nobody. (A barrier would miss it where it was just let in.)"""
    victim = Victim(drarun, client, tmp_path, started, case="job")
    victim.attack(f"""for _ in range(10):
    stranger = socket.create_connection(target)
    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.05)
    stranger.sendall({handshake(victim.env["PMIX_NAMESPACE"], 1, 0)!r})
    stranger.close()
there()
""", inside=True)
    result, _ = victim.finish()
    assert result.rc == 0 and f" on {RANKS} ranks" in result.out, repr(result)


# ---- the namespace ----

def names_under(*folders):
    """Without what tests keep for themselves, which on some machines is a hundred times the rest. Others may make folders
    deeper than os.walk can follow, and remove them meanwhile."""
    left = list(folders)
    while left:
        try:
            entries = list(os.scandir(left.pop()))
        except OSError:
            continue
        for entry in entries:
            if not entry.name.startswith(("pytest-of-", "dt-pytest-")):
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)


def test_namespace_is_in_no_name(drarun, mpi, tmp_path):
    """Of a file or folder, whose names everybody sees: not as a whole, not in the part that the job's name does not give."""
    program = mpi.compile("mpi_check.c")
    secrets = []
    for turn in range(2):
        job = drarun.start("-n", 2, "sh", "-c", f"echo $PMIX_NAMESPACE $DRARUN_JOB >{tmp_path}/{turn}.$RANK; {program} all; "
                           f"until [ -e {tmp_path}/go{turn} ]; do sleep 0.05; done")
        until(lambda: len(list(tmp_path.glob(f"{turn}.*"))) == 2, "the ranks do not begin")
        seen = set()
        for _ in range(30):
            seen.update(names_under("/tmp", "/dev/shm", "/run"))
            time.sleep(0.02)
        (tmp_path / f"go{turn}").touch()
        job.finish().ok()
        namespace, uid = (tmp_path / f"{turn}.0").read_text().split()
        known = f"drarun.{uid}.0."
        assert namespace.startswith(known) and any(uid in name for name in seen)
        secrets.append(namespace.removeprefix(known))
        assert len(secrets[-1]) == 16 and not [name for name in seen if secrets[-1] in name]
    assert secrets[0] != secrets[1]


# ---- the port of an agent ----

# Keeps 2,000 connections, each with the start of a first message of 128 KiB; a closed one is made again.
CROWD = """
import resource, selectors, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
target, count, said = ("127.0.0.1", int(sys.argv[1])), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
events = selectors.DefaultSelector()
def come():
    stranger = socket.create_connection(target)
    stranger.setblocking(False)
    try:
        stranger.send(said)
    except OSError:
        pass
    events.register(stranger, selectors.EVENT_READ)
for _ in range(count):
    come()
print("there", flush=True)
while True:
    for key, _ in events.select():
        events.unregister(key.fileobj)
        key.fileobj.close()
        come()
"""
FIRST_MESSAGE = bytes.fromhex("1603012f00" "0101fffc" "0303") + bytes(0x2f00 - 6)


@contextmanager
def crowd(agents, count, said):
    port = agents.addresses[0].rsplit(":", 1)[1]
    with subprocess.Popen(["python3", "-c", CROWD, port, str(count), said.hex()], user=NOBODY, group=NOBODY, extra_groups=[],
                          stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"there\n"
            yield
        finally:
            process.kill()


# As many to each port that stands on its standard input, which stay and say nothing.
CROWD_OF_EACH = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
kept = []
for port in sys.stdin:
    kept += [socket.create_connection(("127.0.0.1", int(port))) for _ in range(350)]
"""
LISTENING = "0A"


def sockets(state):
    """(port, the other end's port, inode) of all that are bound to the loopback's IPv4 address."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, ours, other, its_state, *_, inode = line.split()[:10]
        if its_state == state and ours.startswith("0100007F:"):
            yield int(ours[9:], 16), int(other[9:], 16), inode


def listening_ports(job):
    inodes = set()
    for pid in job.processes():
        with suppress(OSError):  # it ends meanwhile
            inodes.update(os.readlink(entry) for entry in os.scandir(f"/proc/{pid}/fd"))
    return {port for port, _, inode in sockets(LISTENING) if f"socket:[{inode}]" in inodes}


@pytest.mark.plain("strace traces it, and so does the leak check")
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace; run scripts/setup --test")
def test_crowd_at_a_local_job(drarun):
    """A crowd fills the port of each agent before the launcher and the other agents connect. They connect slowly, as on a busy machine."""
    slow = ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=connect", "-e", "inject=connect:delay_exit=300000"]
    with subprocess.Popen(["python3", "-c", CROWD_OF_EACH], user=NOBODY, group=NOBODY, extra_groups=[], stdin=subprocess.PIPE,
                          text=True, bufsize=1) as crowd:
        job = drarun.start("--workers", 3, "-n", 3, "echo", "in", under=slow)
        attacked = set()
        while len(attacked) < 3 and job.process.poll() is None:
            for port in listening_ports(job) - attacked:
                attacked.add(port)
                crowd.stdin.write(f"{port}\n")
            time.sleep(0.02)
        result = job.finish()
        crowd.kill()
    assert result.rc == 0 and result.out == "in\n" * 3, repr(result)
    assert len(attacked) >= 3


def cost(job):
    """Of the agent: its memory in MB and the seconds of CPU it has used."""
    memory = seconds = 0
    for pid in job.processes():
        status = Path(f"/proc/{pid}/status").read_text()
        memory += int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024
        times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        seconds += (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    return memory, seconds


@pytest.mark.parametrize("said", [b"", FIRST_MESSAGE], ids=["silent", "long"])
@and_timed
def test_crowd_at_an_agent(drarun, agents, said, timed):
    """The launcher gets in, and the crowd costs little memory."""
    some = agents(1)
    before, _ = cost(some.jobs[0])
    with crowd(some, 2000, said):
        memory, _ = cost(some.jobs[0])
        result = drarun(*some.options, "--start-timeout", patience(), "-n", 2, "echo", "in")
    assert result.out == "in\nin\n", repr(result)
    assert not timed or result.seconds < 2
    assert SLOW_BUILD > 1 or memory - before < 25  # the address sanitizer keeps up to 256 MB of what was freed
    agent, = some.finish()
    assert agent.rc == 0 and agent.err.count("\n") < 400, repr(agent)


def settled(job):
    """Its processes, once the one that served the first job has given place to the next."""
    until, last, since = time.monotonic() + patience(), None, 0
    while time.monotonic() < until:
        now = sorted(job.processes())
        if now != last:
            last, since = now, time.monotonic()
        if len(now) > 1 and time.monotonic() - since > 1.5 * SLOW_BUILD:
            return now
        time.sleep(0.05)
    raise AssertionError(f"its processes do not settle: {last}")


@and_timed
def test_crowd_at_an_agent_without_descriptors(drarun, agents, timed):
    """The loop does not turn for connections that it cannot take."""
    some = agents(1, once=False)
    drarun(*some.options, "true").ok()
    pids = settled(some.jobs[0])
    pid = max(pids, key=lambda pid: len(os.listdir(f"/proc/{pid}/fd")))
    used = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, most))
    strangers = [socket.create_connection(("127.0.0.1", int(some.addresses[0].rsplit(":", 1)[1]))) for _ in range(400)]
    _, start = cost(some.jobs[0])
    time.sleep(1)
    _, end = cost(some.jobs[0])
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    result = drarun(*some.options, "-n", 2, "echo", "in")
    assert end - start < 0.3 * SLOW_BUILD  # of CPU, in a second
    assert result.out == "in\nin\n" and (not timed or result.seconds < 2), repr(result)
    for stranger in strangers:
        stranger.close()
    some.jobs[0].signal(signal.SIGTERM)
    assert some.finish()[0].rc == 0
