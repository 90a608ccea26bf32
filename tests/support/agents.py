# SPDX-License-Identifier: Apache-2.0
"""Agents started by hand, as an administrator or a test bed would."""
import re
import secrets
import select

import pytest

from .build import BUILD, patience


class Agents:
    """options: what drarun needs to use them. jobs: the agents, as support.run.Job. program: theirs."""

    def __init__(self, runner, key_file, places, once=True, program=BUILD / "bin" / "drarun-worker", env=None):
        self.key_file, self.jobs, addresses = key_file, [], []
        if not key_file.exists():
            key_file.touch(mode=0o600)
            key_file.write_text(secrets.token_hex(32) + "\n")
        for address, under in places:
            job = runner.start("--listen", f"{address}:0", "--key-file", key_file,
                               *(["--once"] if once else []), under=under,
                               program=program, env=env)
            self.jobs.append(job)
            addresses.append(f"{address}:{self.port(job)}")
        self.addresses = addresses
        self.options = ["--agents", ",".join(addresses), "--key-file", str(key_file)]

    @staticmethod
    def port(job, stream="stdout"):
        stream = getattr(job.process, stream)
        readable, _, _ = select.select([stream], [], [], patience())
        line = stream.readline() if readable else ""
        found = re.search(r"listening on port (\d+)", line)
        if not found:
            job.process.kill()
            pytest.fail(f"the agent does not listen: {line!r} {job.process.communicate()!r}")
        return int(found.group(1))

    def finish(self, timeout=20):
        """Waits for agents that were started with --once; returns their Results."""
        return [job.finish(timeout) for job in self.jobs]
