# SPDX-License-Identifier: Apache-2.0
"""Carries out one plan and says what was wrong with how it went."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.launchers import BENCH, DRARUN
from benchmarks.harness.processes import children
from support import leftovers, sanitizer
from support.build import SLOWER

DEADLINE = 30 * SLOWER   # seconds for a launch
PATIENCE = 2 * SLOWER    # seconds after the launcher's end, in which all else must have gone


@dataclass
class Outcome:
    """problems: (class, text); the classes are those of the summary."""
    plan: object
    launcher: str
    seconds: float = 0.0
    problems: list = field(default_factory=list)
    note: str = ""

    def add(self, kind, text):
        self.problems.append((kind, text))


class Job:
    def __init__(self, plan, launcher=DRARUN):
        self.plan, self.launcher = plan, launcher
        self.token = uuid.uuid4().hex
        self.tmp = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
        self.reports = Path(tempfile.mkdtemp(prefix="soak-report-", dir="/tmp"))
        self.shm = leftovers.shm_names()
        self.killed = None
        program = BENCH / ("soak-rank-pmix" if plan.pmix else "soak-rank")
        env = {**launcher.environment(), **sanitizer.environment(self.reports), "TMPDIR": str(self.tmp),
               leftovers.TOKEN: self.token}
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.command(program), env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.texts = {}
        self.readers = [threading.Thread(target=self.read, args=(name,), daemon=True) for name in ("stdout", "stderr")]
        for reader in self.readers:
            reader.start()

    def command(self, program):
        words = self.launcher.command(self.plan.ranks, program, *self.plan.words)
        if self.launcher is DRARUN and self.plan.workers > 1:
            words[1:1] = ["--workers", str(self.plan.workers)]
        return words

    def read(self, name):
        self.texts[name] = b""
        stream = getattr(self.process, name)
        while data := os.read(stream.fileno(), 65536):
            self.texts[name] += data
            if name == "stdout" and self.plan.kill_rank >= 0 and self.killed is None:
                self.kill_rank()

    def kill_rank(self):
        found = re.search(rb"^rank %d (\d+)\n" % self.plan.kill_rank, self.texts["stdout"], re.M)
        if found:
            self.killed = int(found[1])
            kill(self.killed)

    def interfere(self):
        """Sends the signal that the plan has for the launcher or an agent."""
        if self.plan.signal:
            number, ms = self.plan.signal
            time.sleep(ms / 1e3 * SLOWER)
            self.process.send_signal(number)
        if self.plan.kill:
            who, ms = self.plan.kill
            time.sleep(ms / 1e3 * SLOWER)
            victims = [self.process.pid] if who == "launcher" else self.agents()
            if victims:
                self.killed = victims[self.plan.number % len(victims)]
                kill(self.killed)

    def agents(self):
        """The children of the launcher; waits for the first."""
        while self.process.poll() is None:
            found = children(self.process.pid)
            if found:
                return found
        return []

    def run(self):
        outcome = Outcome(self.plan, self.launcher.name)
        try:
            self.interfere()
            self.process.wait(max(0.1, self.started + DEADLINE - time.monotonic()))
        except subprocess.TimeoutExpired:
            outcome.add("hung", f"no end after {DEADLINE} s\n{stacks(self.token)}")
        outcome.seconds = time.monotonic() - self.started
        if not outcome.problems:
            self.check_leftovers(outcome)
        self.close()
        if not outcome.problems or outcome.problems[0][0] != "hung":
            self.check(outcome)
        if outcome.problems:
            outcome.note = self.text("stderr")[-1500:]
        return outcome

    def text(self, name):
        return self.texts.get(name, b"").decode(errors="replace")

    def check_leftovers(self, outcome):
        left = leftovers.describe(self.token, self.tmp, (), self.shm, PATIENCE)
        for kind, word in (("orphans", "process"), ("files left", "file")):
            lines = [line for line in left if line.startswith(word)]
            if lines:
                more = f" and {len(lines) - 10} more" if len(lines) > 10 else ""
                outcome.add(kind, "\n".join(lines[:10]) + more)

    def check(self, outcome):
        plan, status = self.plan, self.process.returncode
        expected = plan.statuses
        if plan.kill and self.killed is None:
            expected = {0}  # the job was over before
        if status not in expected:
            outcome.add("wrong status", f"status {status}, expected one of {sorted(expected)}")
        if plan.complete:
            self.check_output(outcome)
        ours = self.launcher is DRARUN
        if ours and plan.names_rank and not re.search(rf"rank ({'|'.join(map(str, plan.names_rank))})\b", self.text("stderr")):
            outcome.add("wrong report", f"the report does not name rank {plan.names_rank}")
        found = sanitizer.reports(self.reports) if self.reports.exists() else self.sanitized
        if found:
            outcome.add("sanitizer", found)

    def check_output(self, outcome):
        lines = self.text("stdout").splitlines()
        ranks = sorted(int(line.split()[1]) for line in lines if re.fullmatch(r"rank \d+ \d+", line))
        printed = sum(line.startswith("line ") for line in lines)
        if ranks != list(range(self.plan.ranks)) or printed != self.plan.lines * self.plan.ranks:
            outcome.add("output lost", f"{len(ranks)} of {self.plan.ranks} first lines, "
                        f"{printed} of {self.plan.lines * self.plan.ranks} others")

    def close(self):
        leftovers.kill(self.token)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        self.sanitized = sanitizer.reports(self.reports)
        shutil.rmtree(self.tmp, ignore_errors=True)
        shutil.rmtree(self.reports, ignore_errors=True)
        for name in leftovers.shm_names() - self.shm:
            (leftovers.SHM / name).unlink(missing_ok=True) if not (leftovers.SHM / name).is_dir() else \
                shutil.rmtree(leftovers.SHM / name, ignore_errors=True)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stacks(token):
    """What the launcher and the agents of a hung job are doing."""
    texts, others = [], Counter()
    for pid, line in leftovers.processes(token).items():
        try:
            program = os.readlink(f"/proc/{pid}/exe").rsplit("/", 1)[-1]
        except OSError:
            program = ""
        if program in ("drarun", "drarun-remote", "drarun-worker") and shutil.which("gdb"):
            texts += [f"{pid} {line[:100]}", stack(pid)]
        else:
            others[line[:100]] += 1
    return "\n".join([*texts, *(f"{count} x {line}" for line, count in others.items())])


def stack(pid):
    try:
        done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all bt"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        return "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread")))
    except subprocess.TimeoutExpired:
        return "gdb hangs"
