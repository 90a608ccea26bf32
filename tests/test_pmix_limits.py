# SPDX-License-Identifier: Apache-2.0
"""Text that ranks log by PMIx, and how much of it, and of what they publish, put and send, is taken (docs/design/007-pmix-server.md):
asked by tests/programs/pmix_client.c."""
import re
import time

import pytest

from support.pmix_clients import CLIENTS, PLACES, client, where  # noqa: F401
from support.run import peak_memory_kib


def test_rank_that_publishes_too_much(client):
    """It is refused the rest, and the others are not; its agent's memory is not the rank's."""
    result = client("publish-much", where="two", timeout=300).ok()  # a file for each key
    assert result.err == "drarun-worker: rank 0: PMIx: it has published more than 4096 keys or 16777216 bytes: the rest is rejected\n"


# As MPICH's MPI sessions, one after the other, each with names of its own: more keys than a rank may have at a time.
SESSIONS = """
import os, socket
server, rank, size = socket.socket(fileno=int(os.environ["PMI_FD"])), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def ask(line, expected="rc=0"):
    server.sendall(f"cmd={line}\\n".encode())
    answer = ""
    while not answer.endswith("\\n"):
        came = server.recv(4096).decode()
        assert came, (line, answer)
        answer += came
    assert expected in answer, (line, answer)

for session in range(12):
    ask("init pmi_version=1 pmi_subversion=1")
    for i in range(400):
        ask(f"put key={session}-{rank}-{i} value={'v' * 100}")
    ask("barrier_in", "barrier_out")
    for other in range(size):
        ask(f"get key={session}-{other}-399")
        ask(f"get key={session - 1}-{other}-0", "rc=-1")
    ask("get key=PMI_process_mapping")
    ask("finalize", "finalize_ack")
"""


@pytest.mark.parametrize("where", ["one", "two"])
def test_rank_that_begins_again_and_again(drarun, where):
    """Its agent keeps what belongs to the last session, and the rank may put as much in each."""
    drarun(*PLACES[where], "/usr/bin/python3", "-c", SESSIONS).ok()


@pytest.mark.matrix(1)
def test_log_becomes_output_of_the_rank(client, where):
    result = client("log", where=where).ok()
    ranks = PLACES[where][-1]
    assert sorted(result.err.splitlines()) == [f"logged by {rank}" for rank in range(ranks)]


@pytest.mark.matrix(1)
def test_logs_keep_their_place_among_the_output(client, where):
    """Of each rank every other line is logged: whole, and where it was."""
    out = client("log-turns", where=where).ok().out
    for rank in range(PLACES[where][-1]):
        numbers = [line.split(":") for line in out.splitlines() if line.startswith(f"{rank}:")]
        assert [(int(number), len(rest)) for _, number, rest in numbers] == [(i, i % 300 + 1) for i in range(400)]


@pytest.mark.matrix(1)
def test_a_long_log_is_whole(client, where):
    """Each rank waits for the answer to one request of 1.2 MB."""
    result = client("log-long", where=where).ok()
    assert len(re.findall("^x{1023}$", result.out, re.M)) == PLACES[where][-1] * 2 * 600
    assert "drarun" not in result.err


def memory_kib(job):
    """The most of drarun's own processes."""
    ours = [pid for pid, line in job.processes().items() if re.match(r"(\S*/)?drarun(-worker)?( |$)", line)]
    return max(peak_memory_kib(pid) for pid in ours)


@pytest.mark.plain("measures memory")
def test_a_slow_reader_slows_what_is_logged(drarun):
    job = drarun.start("-n", 4, *CLIENTS[1].command(), "log-flood", text=False)
    time.sleep(1)
    size = 0
    while size < 240_000_000:  # the rest is more than all may hold: they are there yet
        size += len(job.process.stdout.read(1 << 20))
    assert memory_kib(job) < 48 * 1024, "KiB: logs pile up"
    size += len(job.process.stdout.read())
    assert 256_000_000 < size < 256_001_000
    job.finish().ok()


@pytest.mark.plain("measures memory")
def test_who_does_not_wait_may_log_so_much(drarun):
    """Each request is answered; the rest of the text is rejected and not kept."""
    job = drarun.start("-n", 2, *CLIENTS[1].command(), "log-unwaited")
    time.sleep(1)
    assert memory_kib(job) < 64 * 1024, "KiB: logs pile up"
    result = job.finish().ok()
    rejected = sum(map(int, re.findall(r"^rejected (\d+)$", result.err, re.M)))
    assert rejected > 0 and len(re.findall("^x{1023}$", result.out, re.M)) == 2 * 20000 - rejected
    assert len(re.findall(r"^drarun(?:-worker)?: rank \d: PMIx: more of what it logs waits for its reader than drarun keeps: ", result.err, re.M)) == 1


@pytest.mark.matrix(1)
def test_what_no_message_carries_is_refused(client, where):
    """17 MiB by direct modex: an answer, not a hang."""
    result = client("dmodex-too-big", where=where).ok()
    assert ("a fence that collects data has no such limit" in result.err) == (where != "one")
