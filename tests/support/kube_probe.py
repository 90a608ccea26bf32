# SPDX-License-Identifier: Apache-2.0
"""lib/kube as a process that is asked by lines of JSON (tests/programs/kube_probe.c)."""
import json
import queue
import subprocess
import threading
import time

from .build import BUILD, patience
from .run import peak_memory_kib

PROGRAM = BUILD / "tests" / "kube_probe"


class Probe:
    """ask(do=...) gives the answer; start(do=...) an id whose events next(id) gives in turn."""

    def __init__(self, *args, env=None, stderr=subprocess.PIPE):
        self.process = subprocess.Popen([PROGRAM, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=stderr, text=True, errors="replace", env=env)
        self.last = 0
        self.queues = {}
        self.errors = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._read, daemon=True),
                        threading.Thread(target=self._read_errors, daemon=True)]
        for each in self.threads:
            each.start()

    def _queue(self, number):
        with self.lock:
            return self.queues.setdefault(number, queue.Queue())

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self._queue(event["id"]).put(event)

    def _read_errors(self):
        self.errors.extend(self.process.stderr or [])

    def start(self, **line):
        self.last += 1
        self.process.stdin.write(json.dumps({"id": self.last, **line}) + "\n")
        self.process.stdin.flush()
        return self.last

    def next(self, number, timeout=20):
        try:
            return self._queue(number).get(timeout=patience(timeout))
        except queue.Empty:
            raise AssertionError(f"no event of {number} within {patience(timeout)} s; stderr: {''.join(self.errors)}") from None

    def until(self, number, event, timeout=20):
        """All events of it up to the first of that name."""
        end = time.monotonic() + patience(timeout)
        found = []
        while not found or found[-1]["event"] != event:
            assert time.monotonic() < end, f"no {event} within {patience(timeout)} s, but {found}"
            found.append(self.next(number, timeout))
        return found

    def quiet(self, number, seconds):
        """Asserts that nothing comes for so long."""
        try:
            event = self._queue(number).get(timeout=seconds)
        except queue.Empty:
            return
        raise AssertionError(f"nothing was expected, got {event}")

    def ask(self, timeout=20, **line):
        return self.next(self.start(**line), timeout)

    def all(self, lines, timeout=60):
        """The answers to all of them, asked side by side; none may be an error."""
        answers = [self.next(number, timeout) for number in [self.start(**line) for line in lines]]
        assert all(each["err"] is None for each in answers), next(each["err"] for each in answers if each["err"])
        return answers

    def counts(self):
        return self.ask(do="counts")

    def memory_kib(self):
        return peak_memory_kib(self.process.pid)

    def close(self):
        """Its exit status; stderr as text."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            rc = self.process.wait(timeout=patience())
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"kube_probe did not end: {''.join(self.errors)}") from None
        for each in self.threads:
            each.join(timeout=patience())
        return rc, "".join(self.errors)
