# SPDX-License-Identifier: Apache-2.0
"""What a job on this machine does where something is missing that drarun can do without: each is taken away, and all cases run.
The tables of docs/measured/fallbacks.md are what a run gives; this prints them into it:
DRARUN_GOLDEN=write python3 -m pytest test_fallbacks.py test_cluster_fallbacks.py"""
import contextlib
import os
import random
import re
import signal
import tempfile
from pathlib import Path

import pytest

from support.agents import Agents
from support.build import BUILD
from support.fallbacks import WORKS, Table
from support.nodes import IPV6

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
              pytest.mark.plain("what is ours runs there in other tests")]

WORKERS = 2
THERE = "/mnt"  # where the build lies in a job's mounts, for every user
NOBODY = 65534
# all that is mounted, but for what the kernel shows
READ_ONLY = """findmnt -rno TARGET | while read -r each; do
    mountpoint -q "$each" || continue # below another one
    case $each in /proc | /proc/* | /sys | /sys/* | /dev | /dev/*) ;; *) mount -o remount,bind,ro "$each" || exit 1 ;; esac
done || exit 1
"""


class Row:
    """how: in words, and as a shell's script before drarun, in mounts of its own and further namespaces (own). under: words before
    drarun; before: those before a rank's program. forced: what a rank's shell finds true then, and false in a usual job. agents: the
    network of machines that have them. told: (status, a pattern of the message) where drarun cannot do without."""

    def __init__(self, how, script="", own=(), under=(), forced="true", before=(), env=None, agents=None, told=None):
        self.how, self.script, self.own, self.under, self.forced = how, script, own, under, forced
        self.before, self.env, self.agents, self.told = before, env or {}, agents, told


ALL = "(all is there)"
ROWS = {
    ALL: Row("a job of root's"),
    "root": Row(f"user {NOBODY}, in no group of root's", under=["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"],
                forced=f'test "$(id -u) $(id -G)" = "{NOBODY} {NOBODY}"'),
    "any capability": Row("root with an empty bounding set and no_new_privs",
                          under=["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"],
                          forced='grep -qE "^CapEff:[[:space:]]*0+$" /proc/self/status'),
    "cgroups": Row("an empty tmpfs, read-only, over /sys/fs/cgroup", "mount -t tmpfs -o ro none /sys/fs/cgroup\n",
                   forced='test -z "$(ls -A /sys/fs/cgroup)"'),
    "the topology for PMIx": Row("hwloc fails in the agent (`HWLOC_COMPONENTS=stop`), not in the ranks", env={"HWLOC_COMPONENTS": "stop"},
                                 before=["env", "-u", "HWLOC_COMPONENTS"]),
    "a root file system to write to": Row("all file systems read-only but /dev/shm", READ_ONLY,
                                          forced="for each in / /tmp /var/tmp /run; do "
                                                 "made=$(mktemp -p $each 2>/dev/null) && { rm $made; exit 1; }; done; true"),
    "any file system to write to": Row("/dev/shm read-only, too", READ_ONLY + "mount -o remount,bind,ro /dev/shm\n",
                                       told=(70, r"no place for the session directory .*: mount an emptyDir at /tmp, or set TMPDIR "
                                                 r"to a directory that the container's user may write")),
    "IPv4": Row("two machines with IPv6 addresses alone, an agent on each", agents=IPV6,
                forced='test -z "$(ip -4 -o addr show scope global)"'),
    "IPv4 on the loopback": Row("`ip addr del 127.0.0.1/8 dev lo`", "ip link set lo up && ip addr del 127.0.0.1/8 dev lo || exit 1\n",
                                own=["--net"],
                                told=(70, r"listen on 127\.0\.0\.1:0: the loopback interface has no IPv4 address; "
                                          r"ip addr add 127\.0\.0\.1/8 dev lo")),
}


class Place:
    """Where the jobs of a row run. folder: a TMPDIR that any user may write to; at the end nothing is in it. machines: with
    agents, or None."""

    def __init__(self, drarun, name, folder, key_file, machines):
        self.drarun, self.row, self.machines, self.agents = drarun, ROWS[name], machines, None
        self.folder, self.key_file = folder, key_file
        self.home = BUILD if machines else Path(THERE)
        script = f'mount --bind {BUILD} {THERE} || exit 1\n{self.row.script}cd / && exec "$@"'
        own = ["unshare", "--mount", *self.row.own, "sh", "-c", script, "sh", *self.row.under]
        self.under = machines.head.enter if machines else own
        self.env = {"TMPDIR": str(folder), **self.row.env}

    def program(self, path):
        """Where a file of the build is."""
        return self.home / Path(path).relative_to(BUILD)

    def start(self, options, *rank, workers=1, **how):
        """drarun with a program for its ranks; workers: on this machine."""
        where = ["--workers", workers]
        if self.machines:
            self.agents = Agents(self.drarun, self.key_file, [(node.address, node.enter) for node in self.machines])
            where = self.agents.options
        return self.drarun.start(*where, *options, *self.row.before, *rank, program=self.home / "bin/drarun", under=self.under,
                                 env=self.env, **how)

    def end(self, job, timeout=60):
        """Its Result, once nothing of it is left."""
        result = job.finish(timeout)
        if self.agents:
            assert [each.rc for each in self.agents.finish()] == [0] * len(self.machines)
            self.agents = None
        return result

    def run(self, options, *rank, timeout=60, **how):
        return self.end(self.start(options, *rank, **how), timeout)


@pytest.fixture
def place(drarun, nodes, tmp_path):
    """place(row): its Place."""
    with contextlib.ExitStack() as stack:
        def make(name):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dt-", dir="/tmp")))
            folder.chmod(0o1777)
            machines = nodes(WORKERS, ROWS[name].agents) if ROWS[name].agents else None
            return Place(drarun, name, folder, tmp_path / "key", machines)
        yield make


# ---- cases: each runs a job to its end, and says what it must be like ----

def mpi(name):
    def run(place, mpi_named):
        program = place.program(mpi_named(name).compile("mpi_check.c"))
        return place.run(["-n", 4], program, "all", workers=WORKERS, timeout=90)
    return run


def right(result):
    assert "ok: 4 ranks, 2 nodes\n" in result.ok().out and result.err == "", result


FAILS = 'test $RANK != 1 || { echo "cannot open data.bin" >&2; exit 3; }; sleep 1000'


def failing(place, mpi_named):
    return place.run(["-n", 2], "sh", "-c", FAILS)


def named(result):
    assert result.rc == 3, result
    assert re.search(r"^drarun: rank 1 on worker \d \(.+\) exited with status 3 after .*\n  its last lines on stderr:\n    cannot open data.bin$",
                     result.err, re.M), result


def with_children(then):
    return f"setsid sleep 1000 & sleep 1000 & {then}; wait"


def limited(place, mpi_named):
    return place.run(["-n", 2, "--timeout", "1s"], "sh", "-c", with_children("true"))


def out_of_time(result):
    assert result.rc == 124 and "the job did not end within 1.00 s (--timeout)" in result.err, result


def cancelled(place, mpi_named):
    job = place.start(["-n", 2], "sh", "-c", with_children("echo up"))
    if all(job.process.stdout.readline() == "up\n" for _ in range(2)):
        job.signal(signal.SIGINT)
    return place.end(job)


def interrupted(result):
    assert result.rc == 130, result


MANY = 1 << 20
WRITES = (f"import os, random, sys; r = int(os.environ['RANK']); random.seed(r); "
          f"(sys.stderr if r else sys.stdout).buffer.write(random.randbytes({MANY}) + b'end')")


def writing(place, mpi_named):
    return place.run(["-n", 2], "/usr/bin/python3", "-B", "-c", WRITES, text=False)


def whole(result):
    assert result.rc == 0, result.err[-2000:]
    for rank, got in enumerate((result.out, result.err)):
        random.seed(rank)
        assert got == random.randbytes(MANY) + b"end", f"rank {rank}: {len(got)} bytes"


def measuring(place, mpi_named):
    return place.run(["-n", 2], place.home / "bin/drarun-bench", "all_reduce", "-b", "1K", "-e", "4K", "-f", "2", "--iters", "2", timeout=90)


def measured(result):
    assert re.findall(r"^ +(\d+) .*", result.ok().out, re.M) == ["1024", "2048", "4096"], result
    assert "# Out of bounds values : 0 OK" in result.out, result


CASES = {
    "MPI over PMIx (Open MPI 4)": (mpi("openmpi4"), right),
    "MPI over PMI-1 (MPICH 4)": (mpi("mpich4"), right),
    "a failed rank is named": (failing, named),
    "a time limit ends all": (limited, out_of_time),
    "a cancel ends all": (cancelled, interrupted),
    "output is whole": (writing, whole),
    "`drarun-bench`": (measuring, measured),
}
MESSAGE = "the user is told"
TABLE = Table("On one machine", {name: row.how for name, row in ROWS.items()}, [*CASES, MESSAGE])


def told(row, result):
    """What the user reads in place of a job; without what differs from machine to machine."""
    status, pattern = row.told
    err = result.err if isinstance(result.err, str) else result.err.decode()
    said = re.search(pattern, err)
    assert result.rc == status and said and not result.out, result
    return re.sub(r" [(].*?[)]:", ":", said[0])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ROWS)
def test_without(place, mpi_named, name, case):
    here, (run, check) = place(name), CASES[case]
    result = run(here, mpi_named)
    message = told(here.row, result) if here.row.told else check(result) or "-"
    assert os.listdir(here.folder) == []
    TABLE.hold(name, case, f"ends with {here.row.told[0]}" if here.row.told else WORKS)
    TABLE.hold(name, MESSAGE, message)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.forced != "true"])
def test_it_is_forced(place, name):
    """A rank sees that it is missing, and one of a usual job that it is there."""
    forced = ROWS[name].forced
    place(name).run(["-n", 2], "sh", "-c", forced).ok()
    if name != "IPv4":  # of which this machine may have none
        assert place(ALL).run(["-n", 2], "sh", "-c", forced).rc == 1


def test_the_page_has_these_rows():
    TABLE.check()
