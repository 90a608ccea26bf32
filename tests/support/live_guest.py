# SPDX-License-Identifier: Apache-2.0
"""A guest (vm.py) that a test speaks with while it runs: commands in it, and QEMU's own monitor (QMP)."""
import itertools
import json
import os
import socket
import threading
import time

from . import vm
from .build import patience
from .run import Result

CALL_S = vm.BOOT_S
KILL_S = QMP_S = 60
# An emulated processor may lose its timer's interrupt while the kernel boots, which then stalls for ever: the guest is
# started again as soon as its kernel says so. No test is about how guests boot.
BOOTS, BOOT_S = 5, 100
LOST_TIMER = "timer wakeup didn't happen"


class NotBooted(AssertionError):
    pass


class LiveGuest(vm.Guest):
    """Boots, again if it has to; commands: run, ok, sh, start; files: read, write. The options are Guest's."""

    def __init__(self, **how):
        for left in reversed(range(BOOTS)):
            try:
                self._boot(**how)
                return
            except NotBooted as error:
                if left == 0:
                    raise
                print(f"the guest is started again: {error}")

    def _boot(self, options=(), **how):
        self.answers, self.news = {}, threading.Condition()
        self.numbers = itertools.count(1)
        self.server = socket.socket(socket.AF_UNIX)
        self.address = f"\0drarun-guest-{os.getpid()}-{id(self)}"
        self.server.bind(self.address)
        self.server.listen(2)
        words = [*options]
        for name in ("calls", "qmp"):
            words += ["-chardev", f"socket,id={name},path={self.address[1:]},abstract=on,server=off"]
        words += ["-device", "virtserialport,chardev=calls,name=calls", "-mon", "chardev=qmp,mode=control"]
        super().__init__("python3", "-B", vm.GUEST / "serve.py", options=words, **how)
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self):
        """QEMU opens its connections in the order of its words."""
        self.server.settimeout(patience(BOOT_S))
        self.calls = self.server.accept()[0]
        self.monitor = self.server.accept()[0]
        self.monitor.settimeout(patience(QMP_S))
        self.told = self.monitor.makefile("rb")
        assert b"QMP" in self.told.readline()
        self.events = []
        self.qmp("qmp_capabilities")
        threading.Thread(target=self._read, args=(self.calls, self.answers), daemon=True).start()
        try:
            self._answer(0, BOOT_S, "the guest has not booted", LOST_TIMER)
        except AssertionError as error:
            raise NotBooted(error) from error

    def _read(self, calls, answers):
        for line in calls.makefile("rb"):
            answer = json.loads(line)
            with self.news:
                answers[answer["id"]] = answer
                self.news.notify_all()
        with self.news:
            answers[None] = None
            self.news.notify_all()

    def _send(self, **call):
        self.calls.sendall(json.dumps(call).encode() + b"\n")

    def _answered(self, number, seconds, hopeless=None):
        """hopeless: what the console says when no answer will come."""
        end = time.monotonic() + seconds
        with self.news:
            while number not in self.answers and None not in self.answers:
                left = end - time.monotonic()
                if left <= 0 or (hopeless and hopeless in self.text("console")):
                    return False
                self.news.wait(min(left, 1))
        return True

    def _answer(self, number, seconds, what, hopeless=None):
        began = time.monotonic()
        self._answered(number, patience(seconds), hopeless)
        with self.news:
            if number not in self.answers:
                ended = self.process.poll()
                said = f"QEMU ended with {ended}: {self.process.stdout.read()}" if ended is not None else f"after {time.monotonic() - began:.0f} s"
                raise AssertionError(f"{what}: {said}; the guest's console:\n{self.text('console')[-4000:]}\n{self.text('err')[-2000:]}")
            return self.answers.pop(number)

    def start(self, *argv, seconds=CALL_S, input="", env=None):
        """Begins a command; what this gives waits for its end: start(...)() is a Result."""
        argv, number, began, limit = [str(word) for word in argv], next(self.numbers), time.monotonic(), patience(seconds)
        self._send(id=number, argv=argv, input=input, env={name: str(value) for name, value in (env or {}).items()})

        def end():
            left, late = began + limit - time.monotonic(), ""
            if not self._answered(number, max(left, 0)):
                self._send(kill=number)
                late = f"\nkilled after {limit} s"
            answer = self._answer(number, KILL_S, f"no end of {argv} after SIGKILL")
            return Result(argv, answer["rc"], answer["out"], answer["err"] + late, time.monotonic() - began)
        return end

    def run(self, *argv, **how):
        return self.start(*argv, **how)()

    def ok(self, *argv, **how):
        """What it prints, having succeeded."""
        return self.run(*argv, **how).ok().out

    def sh(self, script, *words, **how):
        """Lines of bash; the first that fails ends it."""
        return self.ok("bash", "-ec", script, "bash", *words, **how)

    def _file(self, **call):
        number = next(self.numbers)
        self._send(id=number, **call)
        return self._answer(number, CALL_S, f"no answer to {call}")

    def read(self, *patterns):
        """{path: text} of the files that match, and can be read."""
        return self._file(read=patterns)["files"]

    def write(self, path, text):
        """Its folders are made."""
        self._file(write=str(path), text=text)

    def qmp(self, command, **arguments):
        """What QEMU answers; its events are in .events."""
        self.monitor.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        for line in self.told:
            answer = json.loads(line)
            if "event" in answer:
                self.events.append(answer)
                continue
            assert "return" in answer, f"QMP {command} {arguments}: {answer}"
            return answer["return"]
        raise AssertionError(f"QEMU ended in {command}")

    def cut_power(self):
        """As when the plug is pulled: what the guest has not written to its disks is lost."""
        self.process.kill()
        self.process.communicate()

    def close(self):
        super().close()
        for each in (self.server, getattr(self, "calls", None), getattr(self, "monitor", None)):
            if each:
                each.close()
