# SPDX-License-Identifier: Apache-2.0
"""`drarun run` whose standard output is not read for a while, or cannot be written: beside a registry of objects."""
import json
import signal
import threading
import time

import pytest

from support.build import patience
from support.following import JOB, OUTPUT, Following, is_cancelled, job_file, record, until
from support.nccl_tests import Run
from support.registry import Registry
from support.run import peak_memory_kib

PAUSED = 40000  # lines of a kilobyte: far more than the buffers on the way hold
STILL_S = 0.5


def line(number):
    return f"{number:9} {'x' * 1000}\n"


def is_beginning(out):
    """Of all lines, cut anywhere."""
    return out == "".join(map(line, range(len(out) // len(line(0)) + 1)))[:len(out)]


class Flood:
    """The log of a launcher whose rank prints many lines, behind others; its end comes when the test sets .end. status None: without
    a record."""

    def __init__(self, status=0, others=()):
        self.status, self.others, self.sent, self.end = status, others, 0, threading.Event()

    def __call__(self):
        yield b'{"event":"log","job":"job","lines":0}\n'
        if self.others:
            yield "".join(f"[0] {each}" for each in self.others).encode()
        for first in range(0, PAUSED, 100):
            yield "".join(f"[0] {line(number)}" for number in range(first, first + 100)).encode()
            self.sent = first + 100
        self.end.wait(patience())
        if self.status is not None:
            yield record("job-a", self.status, lines=1 + len(self.others) + PAUSED)

    def wait_held_back(self):
        """Until the buffers are full: nothing more goes for a while."""
        end, before, since = time.monotonic() + patience(), 0, 0
        while not before or time.monotonic() - since < STILL_S:
            assert time.monotonic() < end
            if self.sent != before:
                before, since = self.sent, time.monotonic()
            time.sleep(0.02)
        assert self.sent < 0.8 * PAUSED, "nothing holds it back"


def flooded(following, **how):
    log = Flood(**how)
    following.pod("job-a", "running", log)
    following.tell("job-a")
    log.wait_held_back()
    return log


def is_all(out, *more):
    """No line of them is lost, doubled or torn. (A comparison in an assertion would show the difference.)"""
    return out == "".join([*map(line, range(PAUSED)), *more])


def test_reader_that_pauses_gets_every_line(following):
    """The job ends meanwhile."""
    log = flooded(following)
    following.tell("job-a", exit=0)
    log.end.set()
    following.pod("job-a", "terminated")
    time.sleep(1.5)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out), result


@pytest.mark.plain("measures memory")
def test_what_a_paused_reader_costs(following):
    """No memory."""
    log = flooded(following)
    assert peak_memory_kib(following.job.pid) < 24 * 1024
    log.end.set()
    following.tell("job-a", exit=0)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out), result


def test_log_of_the_first_launcher_waits_for_the_reader(following):
    """For longer than the rest of the log of a launcher that is gone is awaited."""
    flooded(following, status=None).end.set()
    following.pod("job-a", "terminated")
    following.pod("job-b", "running", lambda: iter([OUTPUT, record("job-b")]))
    following.tell("job-b", exit=0)
    time.sleep(6)
    result = following.ended()
    assert result.rc == 0 and is_all(result.out, "of the leader\n"), result


@pytest.mark.parametrize("shell", [None, "exec {} 2>&1"], ids=["alone", "with stderr"])
def test_interrupted_while_its_reader_pauses(drarun, tmp_path, shell):
    """The signal cancels the job, and the job's end is seen: the reader has two seconds more."""
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, shell)
        flooded(following, status=130)
        following.job.signal(signal.SIGINT)
        until(registry, lambda: is_cancelled(registry))
        then = time.monotonic()
        following.tell("job-a", exit=130)
        following.job.process.wait(patience())
        took = time.monotonic() - then
        result = following.ended()
    assert result.rc == 130 and took > 1.5, (took, result)
    assert is_beginning("".join(each for each in result.out.splitlines(keepends=True) if not each.startswith("drarun:"))), result
    assert shell or "drarun: standard output has not been read for 2 s: the rest of it is dropped\n" in result.err, result


def test_interrupted_twice_while_its_reader_pauses(following):
    """The job goes on."""
    flooded(following)
    following.job.signal(signal.SIGINT)
    until(following.registry, lambda: is_cancelled(following.registry))
    following.job.signal(signal.SIGINT)
    following.job.process.wait(patience())
    result = following.ended()
    assert result.rc == 130 and is_beginning(result.out), result


def test_logs_interrupted_while_their_reader_pauses(drarun, following):
    """Which ends them alone."""
    log = Flood()
    following.pod("job-a", "running", log)
    following.tell("job-a")
    logs = drarun.start("logs", "-f", "job", env=following.env)
    log.wait_held_back()
    logs.signal(signal.SIGINT)
    logs.process.wait(patience())
    result = logs.finish(20)
    assert result.rc == 130 and is_beginning(result.out), result
    assert not is_cancelled(following.registry)


def test_interrupted_while_the_rest_is_written(following):
    """The job has ended well, and its output was read: what the reader does not take is lost."""
    small = [f"[0] {line(number)}".encode() for number in range(200)]
    following.pod("job-a", "running", lambda: iter([b'{"event":"log","job":"job","lines":0}\n', *small, record("job-a", lines=201)]))
    following.tell("job-a", exit=0)
    time.sleep(1.5)
    assert following.job.process.poll() is None
    following.job.signal(signal.SIGINT)
    following.job.process.wait(patience())
    result = following.ended()
    assert result.rc == 130 and is_beginning(result.out), result
    assert JOB in following.registry.objects, "it was cancelled"


@pytest.mark.parametrize("shell, rc, says", [
    ("exec {} >/dev/full", 70, "cannot write to standard output: No space left on device; job job goes on"),
    ("set -o pipefail; {} | head -n 1", 128 + signal.SIGPIPE, "")], ids=["full", "gone"])
def test_output_that_cannot_be_written(drarun, tmp_path, shell, rc, says):
    """The job goes on."""
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, shell)
        log = Flood()
        following.pod("job-a", "running", log)
        following.tell("job-a")
        result = following.ended()
        assert result.rc == rc and says in result.err, result
        assert JOB in registry.objects and not is_cancelled(registry)


BENCH = ["bench", "all_reduce", "--workers", "1", "--image", "a", "--name", "job", "--no-verdict"]


def test_bench_whose_job_fails_and_whose_results_cannot_be_written(drarun, tmp_path):
    """Both are said, and the exit status is the job's."""
    table = [f"[0] {each}".encode() for each in Run().text().splitlines(keepends=True)]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=[*BENCH, "--csv", "/dev/full"])
        following.pod("job-a", "running", lambda: iter([OUTPUT.splitlines(keepends=True)[0], *table, record("job-a", 3, lines=1 + len(table))]))
        following.tell("job-a", exit=3)
        result = following.ended()
    assert result.rc == 3 and "bench: /dev/full: No space left on device: the results in it are not complete" in result.err, result


@pytest.mark.parametrize("end", [0, 130], ids=["goes on", "interrupted"])
def test_bench_while_its_reader_pauses(drarun, tmp_path, end):
    """It keeps a copy of the output, with lines that are for nobody else."""
    kept, table = tmp_path / "run.json", Run().text()
    others = [*table.splitlines(keepends=True), "#drarun-bench 0.{}\n"]
    with Registry().serving() as registry:
        following = Following(drarun, registry, tmp_path, words=[*BENCH, "-J", kept])
        log = Flood(end, others)
        following.pod("job-a", "running", log)
        following.tell("job-a")
        log.wait_held_back()
        if end:
            following.job.signal(signal.SIGINT)
            until(registry, lambda: is_cancelled(registry))
        log.end.set()
        following.tell("job-a", exit=end)
        if end:
            following.job.process.wait(patience())
        result = following.ended()
    assert result.rc == end and result.out.startswith(table), result
    out = result.out[len(table):]
    assert is_beginning(out) if end else is_all(out) and json.loads(kept.read_text())["results"], result
