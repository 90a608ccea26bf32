# SPDX-License-Identifier: Apache-2.0
"""A DRA driver's sockets under calls of the kubelet's own client library, and of clients that know no rules.
The driver is plugin/kubelet with claims that are played (programs/dra_player.c)."""
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from support.build import BUILD, SANITIZE
from support.cluster import fetched
from support.run import Runner

PLAYER = BUILD / "tests" / "dra_player"
LOADED_KIB = 40 * 1024  # after 20,000 claims in a call, an answer of 40,000 devices and 2,000 calls at a time


@pytest.fixture
def player():
    if not PLAYER.exists():
        pytest.fail(f"no {PLAYER}", pytrace=False)
    runner = Runner(PLAYER)
    yield runner
    runner.close()


def ready(job):
    assert job.process.stdout.readline() == "ready\n"
    return job


def end(job):
    job.signal(signal.SIGTERM)
    result = job.finish()
    assert result.rc == 0, result
    return result


def memory(pid):
    return int(re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{pid}/status").read())[1])


def test_kubelets_calls(player, tmp_path):
    programs, reason = fetched()
    if not programs:
        pytest.skip(reason)
    job = ready(player.start(tmp_path))
    client = subprocess.Popen([programs / "kubelet-calls", tmp_path / "proto.example-reg.sock"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    limit = threading.Timer(100, client.kill)
    limit.start()
    lines = []
    for line in client.stdout:
        lines.append(line)
        if line == "note change it now\n":
            job.signal(signal.SIGUSR1)
    limit.cancel()
    text = "".join(lines)
    assert client.wait() == 0, text
    assert len([line for line in lines if line.startswith("ok ")]) == 45, text
    if not SANITIZE:
        assert memory(job.pid) < LOADED_KIB
    assert "registered 1 \n" in end(job).out


def test_sockets_are_roots_alone(player, tmp_path):
    job = ready(player.start(tmp_path))
    for path in (tmp_path / "proto.example-reg.sock", tmp_path / "proto.example" / "dra.sock"):
        assert path.stat().st_mode & 0o777 == 0o600
    end(job)
    assert [path.name for path in tmp_path.iterdir()] == ["proto.example"]
    assert not list((tmp_path / "proto.example").iterdir())


def test_sockets_of_the_dead_are_replaced_and_of_others_left(player, tmp_path):
    job = ready(player.start(tmp_path))
    os.kill(job.pid, signal.SIGKILL)
    job.finish(clean=False)
    old = ready(player.start(tmp_path))
    new = ready(player.start(tmp_path))  # as in an update: it takes the names over
    end(old)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(tmp_path / "proto.example-reg.sock"))
    end(new)


def test_sockets_of_killed_instances_are_removed(player, tmp_path, monkeypatch):
    """Those that its like has left, each under the UID of its pod: the kubelet would try to register them for as long as they are there."""
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    os.mkdir("proto.example")
    listening = []

    def leave(path, age_s=3600, alive=False):
        made = socket.socket(socket.AF_UNIX)
        made.bind(path)
        made.listen()
        os.utime(path, (time.time() - age_s,) * 2)
        listening.append(made) if alive else made.close()
        return path

    uids = [f"0f8e7a5c-1111-4222-8333-00000000000{i}" for i in range(4)]
    dead = [leave(f"./proto.example-{uids[0]}-reg.sock"), leave(f"./proto.example/dra-{uids[0]}.sock")]
    others = [leave(f"./proto.example-{uids[1]}-reg.sock", alive=True), leave(f"./proto.example/dra-{uids[1]}.sock", alive=True),
              leave(f"./proto.example-{uids[2]}-reg.sock", age_s=0),  # it is about to listen
              leave("./proto.example-second-reg.sock"), leave(f"./other.example-{uids[3]}-reg.sock")]
    result = end(ready(player.start(".")))
    assert [os.path.exists(path) for path in dead + others] == [False] * 2 + [True] * 5, result
    assert all(f"{path} removed" in result.err for path in dead), result


def test_what_is_no_socket_is_not_replaced(player, tmp_path):
    (tmp_path / "proto.example").mkdir()
    (tmp_path / "proto.example" / "dra.sock").write_text("mine")
    result = player(tmp_path)
    assert result.rc == 70 and "driver proto.example: " in result.err and "is no socket" in result.err
    assert (tmp_path / "proto.example" / "dra.sock").read_text() == "mine"


def test_path_too_long(player, tmp_path):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    result = player(deep)
    assert result.rc == 70 and "longer than the 107 bytes of a socket's path" in result.err
