# SPDX-License-Identifier: Apache-2.0
"""Table "memory": resident memory of launcher and agent while the ranks of a local job wait."""
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

from benchmarks.harness.launchers import BENCH, DRARUN, LIBRARIES, Missing
from benchmarks.harness.processes import children
from benchmarks.harness.report import number

GOAL_LAUNCHER_KIB = 6 * 1024
GOAL_AGENT_KIB, GOAL_RANK_KIB = 8 * 1024, 8
DEADLINE = 60


def run(report, scale):
    report.heading("Resident memory, local job")
    report.line()
    report.line("MiB while all ranks wait: VmRSS now and its peak (VmHWM), and what is not file-backed (RssAnon). "
                f"Goals: launcher 6 MiB, agent 8 MiB + {GOAL_RANK_KIB} KiB a rank, for VmRSS.")
    report.table(["program", "N", "process", "VmRSS", "VmHWM", "RssAnon", "goal", "verdict"])
    for title, words, sizes in programs(report, scale):
        for ranks in sizes:
            try:
                measure(report, title, ranks, words)
            except (OSError, TimeoutError) as failure:
                report.row(title, ranks, f"failed: {failure}", *[""] * 5)
                report.missed.append(f"memory, {title}, N = {ranks}: {failure}")


def programs(report, scale):
    yield "plain", [BENCH / "hold"], [1, 64, 256]
    if (BENCH / "px").exists():
        yield "PMIx client", [BENCH / "px", "0", "0", "hold"], [1, 64, 256]
    for library in LIBRARIES:
        try:
            program = library.compile(Path(__file__).parent / "mpi_times.c")
        except Missing as missing:
            report.row(library.name, "", f"skipped: {missing}", *[""] * 5)
            continue
        yield library.name, [program, "hold"], [1, 64] if scale.large else [1, 16]


def measure(report, title, ranks, words):
    job = subprocess.Popen(DRARUN.command(ranks, *words), env=DRARUN.environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        await_ready(job, ranks)
        processes = [("launcher", job.pid), *(("agent", pid) for pid in children(job.pid))]
        for name, pid in processes:
            show(report, title, ranks, name, memory(pid))
    finally:
        job.send_signal(signal.SIGTERM)
        try:
            job.wait(20)
        except subprocess.TimeoutExpired:
            job.kill()
            report.missed.append(f"memory, {title}, N = {ranks}: no end 20 s after SIGTERM")
        job.stdout.close()


def await_ready(job, ranks):
    deadline, seen = time.monotonic() + DEADLINE, b""
    while seen.count(b"ready") < ranks:
        readable, _, _ = select.select([job.stdout], [], [], max(0, deadline - time.monotonic()))
        data = os.read(job.stdout.fileno(), 65536) if readable else None
        if not data:
            raise TimeoutError(f"{seen.count(b'ready')} of {ranks} ranks ready after {DEADLINE} s"
                               if data is None else "the job ended early")
        seen += data
    time.sleep(0.2)  # the servers finish what they do after the last answer


def memory(pid):
    """{VmRSS, VmHWM, RssAnon} in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {key: int(re.search(rf"^{key}:\s+(\d+) kB", text, re.M)[1]) for key in ("VmRSS", "VmHWM", "RssAnon")}


def show(report, title, ranks, name, kib):
    goal = GOAL_LAUNCHER_KIB if name == "launcher" else GOAL_AGENT_KIB + GOAL_RANK_KIB * ranks
    verdict = report.verdict(f"memory of the {name} in MiB, {title}, N = {ranks}", kib["VmRSS"] / 1024, goal / 1024)
    report.row(title, ranks, name, *(number(kib[key] / 1024) for key in kib), number(goal / 1024), verdict)
