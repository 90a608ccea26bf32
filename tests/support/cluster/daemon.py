# SPDX-License-Identifier: Apache-2.0
"""A server of the test bed: one process that tests stop, freeze and start again."""
import os
import pathlib
import signal
import subprocess

from .api import wait

# For Go's programs. By default each walks its whole heap whenever that has doubled, which is much of what a server does that
# starts, serves for a minute and ends. Memory is there: a cluster of two nodes takes some hundred MiB more.
GO = {"GOGC": "400"}


class Daemon:
    """argv is run in a session of its own with its output added to log. It ends with the thread that
    started it, so start() belongs to the main thread."""

    def __init__(self, name, argv, log, env=None):
        self.name, self.log, self.env = name, log, env
        self.argv = ["setpriv", "--pdeathsig", "KILL", *map(str, argv)]
        self.process = None

    def start(self):
        assert not self.running(), f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, env={**(self.env or os.environ), **GO})
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def check(self):
        """Fails with the end of its log when it has ended by itself."""
        assert self.running(), f"{self.name} ended with {self.process.returncode}:\n{self.tail()}"

    def tail(self, size=3000):
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""

    def kill(self):
        """SIGKILL; its connections break at once."""
        if self.running():
            os.killpg(self.process.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def freeze(self):
        """SIGSTOP: connections stay open, nothing answers."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        wait(f"{self.process.pid} goes on after SIGSTOP", self._frozen, 60)

    def _frozen(self):
        """A thread that runs stops when it next enters the kernel, on a busy machine some time after the signal."""
        states = [path.read_text().rsplit(")", 1)[1].split()[0]
                  for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/stat")]
        return all(state == "T" for state in states)

    def thaw(self):
        os.killpg(self.process.pid, signal.SIGCONT)
