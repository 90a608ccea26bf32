# SPDX-License-Identifier: Apache-2.0
"""Every allocation that launcher, agent, plugin or verb makes fails in turn, the first and the last time: each ends soon, whole or
with an error in words, and leaves nothing behind. The programs are the real ones, with another malloc (programs/failing_alloc.c)."""
import json
import os
import re
import shutil
import signal
from collections import Counter

import pytest

from support import failing_alloc
from support.agents import Agents
from support.build import BUILD, SOURCE
from support.failing_alloc import FOLDER, Program
from support.run import Result
from support.sysfs_tree import make_tree

pytestmark = [pytest.mark.plain("sanitizers have an allocator of their own"),
              pytest.mark.skipif(not FOLDER.exists(), reason="DRARUN_STATIC is off")]

DRARUN = FOLDER / "bin" / "drarun"
CLIENT = BUILD / "tests" / "programs" / "pmix_client_inside"
# how many of our functions above lib/base tell a place from another
DEPTH = int(os.environ.get("DRARUN_ALLOC_DEPTH", "1"))
TWO = ("--workers", 2, "-n", 4)
# {name: words of a job}
JOBS = {
    "output": ("-n", 2, "--tag-output", "sh", "-c", "echo said; echo cried >&2; cat"),
    **{case: (*TWO, CLIENT, case) for case in (
        "job", "modex", "subset", "dmodex", "publish", "connect", "group", "event", "query", "log", "control", "spawn")},
}
# of ranks that are killed while they connect; published names of a launcher that ends at once, which the next one removes
LEAVES = ("pmix.*.tool.*", f"drarun-{os.getuid()}")
MEMORY = re.compile(r"memory|NO-?MEM", re.I)
CRASH = re.compile(r"SIG(SEGV|ABRT|BUS|FPE|ILL|TRAP)|signal (4|5|6|7|8|11)\b|stack smashing|Assertion|: bug:")


def normal(result):
    """What a run promises: the same whatever order ranks speak in."""
    return result.rc, sorted(result.out.splitlines())


def judge(result, expected):
    """What is wrong with the end of a program one of whose allocations has failed; "": nothing."""
    if CRASH.search(result.err):
        return "crash"
    if result.rc == expected[0] and normal(result) == expected:
        return ""
    if result.rc < 0 or result.rc in (134, 135, 136, 139):
        return "crash"
    if result.rc == 0:
        return "wrong success"
    words = result.err if result.err.strip() else result.out  # findings are what validate prints
    if not words.strip():
        return "an error without words"
    return "" if MEMORY.search(words) and "does not fit" not in words else "an error that names no memory"


class Sweep:
    """run(env): a Result of the program. Fails each place of each program in turn, but for those of earlier sweeps, and notes what
    goes wrong."""
    seen = set()

    def __init__(self, folder, run):
        self.folder, self.run = folder, run
        self.wrong, self.failed, self.ends = [], 0, Counter()

    def expected(self):
        trace = self.folder / "trace"
        trace.mkdir()
        return normal(self.run(failing_alloc.environment(trace))), trace

    def fail(self, program, site, nth, expected, then_on=False):
        try:
            result = self.run(failing_alloc.environment(self.folder, program.name, site, nth, then_on))
            fault = judge(result, expected)
            self.ends[result.rc] += 1
        except pytest.fail.Exception as failure:
            result, fault = failure, "left over or no end"
        mark = self.folder / "failed"
        self.failed += mark.exists()
        if fault and mark.exists():
            self.wrong.append(f"{fault}: {program.name}, time {nth} of {program.describe(site)}\n{result}")
        elif fault:
            raise AssertionError(f"{fault}, and no allocation failed: {result}")
        mark.unlink(missing_ok=True)

    def all(self, then_on=()):
        """then_on: programs in which all later allocations fail too, once more."""
        expected, trace = self.expected()
        before = len(self.seen)
        for path in sorted(trace.iterdir()):
            program = Program(path.name)
            for site, times in program.sites(path, DEPTH).items():
                if (program.name, site) in self.seen:
                    continue
                self.seen.add((program.name, site))
                for nth in program.turns(site, times):
                    self.fail(program, site, nth, expected)
                if program.name in then_on:
                    self.fail(program, site, 1, expected, True)
        shutil.rmtree(trace)
        assert not self.wrong, f"{len(self.wrong)} of {self.failed}\n" + "\n\n".join(self.wrong)
        assert self.failed or len(self.seen) == before, "nothing failed"


@pytest.mark.parametrize("job", JOBS)
def test_local_job(drarun, tmp_path, job):
    def run(env):
        return drarun(*JOBS[job], program=DRARUN, env=env, input="typed\n", timeout=20, leaves=LEAVES)
    Sweep(tmp_path, run).all(then_on=("drarun",))


def keys_of(value):
    """The shape of a JSON document, whatever times and sizes it has."""
    if isinstance(value, dict):
        return {key: keys_of(each) for key, each in sorted(value.items())}
    return [keys_of(each) for each in value] if isinstance(value, list) else type(value).__name__


def test_report_and_files(drarun, tmp_path):
    """Of a job whose rank fails: the report has all of its parts, and the files all lines."""
    report, folder = tmp_path / "report", tmp_path / "out"

    def run(env):
        report.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        result = drarun("-n", 1, "--report", report, "--output-dir", folder, "sh", "-c", "echo said; echo cried >&2; exit 3", ":",
                        "-n", 1, "cat", program=DRARUN, env=env, timeout=20)
        if report.exists():
            result.out = f"{keys_of(json.loads(report.read_text()))}\n"
            result.out += "".join(sorted(f"{path.name} {path.read_text()}" for path in folder.rglob("*") if path.is_file()))
        return result
    Sweep(tmp_path, run).all(then_on=("drarun",))


def test_job_of_a_spec(drarun, tmp_path):
    spec = tmp_path / "job.yaml"
    spec.write_text("metadata: {name: two}\nspec: {workers: 2, ranksPerWorker: 1, image: i, env: {A: b}, command: [sh, -c, 'echo $A']}\n")

    def run(env):
        return drarun("run", "--local", spec, program=DRARUN, env=env, timeout=20)
    Sweep(tmp_path, run).all()


def test_pmi1(drarun, tmp_path, mpi_named):
    mpi = mpi_named("mpich4")
    program = mpi.compile("mpi_check.c")

    def run(env):
        return drarun(*TWO, program, program=DRARUN, env={**mpi.env, **env}, timeout=20)
    Sweep(tmp_path, run).all()


def test_job_over_tls(drarun, tmp_path):
    """Agents started by hand, each with a guard; the launcher is drarun-remote."""
    def run(env):
        try:
            there = Agents(drarun, tmp_path / "key", [("127.0.0.1", ())] * 2, program=FOLDER / "bin/drarun-worker", env=env)
        except pytest.fail.Exception as failure:  # it does not even listen, and says why
            return Result(["drarun-worker"], 70, "", str(failure), 0)
        result = drarun(*there.options, "-n", 4, CLIENT, "modex", program=DRARUN, env=env, timeout=20)
        for job in there.jobs:
            if result.rc != 0:  # it may wait for a launcher that has never come
                job.signal(signal.SIGTERM)
            agent = job.finish(20)
            result.err += agent.err
            assert agent.rc in (0, 70, 143, -signal.SIGTERM), agent
        return result
    Sweep(tmp_path, run).all()


DATA = SOURCE / "tests/data"
VERBS = {
    "plan": ("plan", DATA / "render/aligned.job.yaml", "{machine}"),
    "plan-json": ("plan", "-o", "json", DATA / "render/roles.job.yaml", "{machine}"),
    "render": ("render", DATA / "render/roles.job.yaml"),
    "render-template": ("render", DATA / "render/template.job.yaml"),
    "validate": ("validate", DATA / "render/roles.job.yaml"),
    "import": ("import", DATA / "import/mpijob-spread.yaml", DATA / "import/jobset-mpirun.yaml"),
    "install": ("install",),
    "install-secret": ("install", "--image-pull-secret", "a"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verb(drarun, tmp_path, machine, verb):
    words = [each for word in VERBS[verb] for each in (machine("a4-highgpu-8g", 2) if word == "{machine}" else (word,))]

    def run(env):
        return drarun(*words, program=DRARUN, env=env)
    Sweep(tmp_path, run).all(then_on=("drarun",))


def test_discovery(drarun, tmp_path):
    """What the node plugin would publish of a captured machine."""
    fixture = json.loads((DATA / "fixtures/a4-highgpu-8g.json").read_text())
    root = make_tree(fixture, tmp_path / "root")

    def run(env):
        return drarun("discover", "--root", root, "-o", "json", "--node", "n0", program=FOLDER / "bin/drarun-plugin", env=env)
    Sweep(tmp_path, run).all(then_on=("drarun-plugin",))
