# SPDX-License-Identifier: Apache-2.0
"""Agents as in worker pods (--pod), and launchers by hand that dial them."""
import json
import os
import secrets
import select
import subprocess
import time

import pytest

from .agents import Agents
from .build import BUILD, patience


class Caller:
    """A launcher by hand (programs/wire_caller.c)."""

    def __init__(self, program, pod, words):
        self.process = subprocess.Popen([program, pod.address, pod.key_file, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rest = ""

    def line(self):
        """The next message; fails when none comes."""
        limit = patience()
        deadline = time.monotonic() + limit
        while "\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                pytest.fail(f"no message within {limit} s; so far {self.rest!r}")
            data = os.read(self.process.stdout.fileno(), 65536).decode()
            if not data:
                return "gone"
            self.rest += data
        line, self.rest = self.rest.split("\n", 1)
        return line

    def inspection(self):
        word, document = self.line().split(" ", 1)
        assert word == "inspection", document
        return json.loads(document)

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=patience())
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Pod:
    """under: a command before the agent's, as one that makes a container. program: the agent there. keep: it serves job after
    job."""

    def __init__(self, drarun, key_file, env, under=(), program=BUILD / "bin" / "drarun-worker", keep=False):
        self.key_file, self.program = key_file, BUILD / "tests" / "programs" / "wire_caller"
        if not key_file.exists():
            key_file.touch(mode=0o600)
            key_file.write_text(secrets.token_hex(32))
        self.key = key_file.read_text()
        self.callers = []
        self.agent = drarun.start("--listen", "127.0.0.1:0", "--pod", "--keep" if keep else "--once", under=under,
                                  program=program,
                                  env={"DRARUN_KEY": self.key, **env})
        self.address = f"127.0.0.1:{Agents.port(self.agent, 'stderr')}"
        self.options = ["--agents", self.address, "--key-file", str(key_file)]

    def call(self, job="0b6d3f0e", attempt=2, worker=1, generation=1, files=()):
        caller = Caller(self.program, self, [job, str(attempt), str(worker), str(generation), *files])
        self.callers.append(caller)
        return caller

    def close(self):
        for caller in self.callers:
            caller.close()
