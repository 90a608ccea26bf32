# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of the table and MPICH's suite, each under its own launcher and under drarun, and reports both."""
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.launchers import DRARUN, Launcher, Missing, fetched

from . import suite
from .started import TWO_WORKERS, compare, start
from .table import PROGRAMS

HERE = Path(__file__).resolve().parent
HOME = {"Open MPI 5": "openmpi", "MPICH 5": "mpich", "Intel MPI": "impi"}
COMPILERS = {"Open MPI 4.1": ("mpicc.openmpi", "mpicxx.openmpi"), "MPICH 4.0": ("mpicc.mpich", "mpicxx.mpich")}
SUITE, SUITE_OF_TWO = "MPICH's suite", "MPICH's suite in two workers"
WORDS = {"passes": "passes", "fails": "**fails**", "unsteady": "unsteady under both", "not compared": "-"}


def missing_packages(names):
    said = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n", *names], capture_output=True, text=True).stdout
    installed = {line.split()[1] for line in said.splitlines() if line.startswith("ii ")}
    return sorted(set(names) - installed)


def install(programs):
    """The packages of the programs, by name. What cannot be installed is reported where its programs are skipped."""
    names = missing_packages(sorted({package for program in programs for package in program.packages}))
    if names:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *names], stdout=subprocess.DEVNULL)


def prepare(program, library, folder):
    cc, cxx = COMPILERS.get(library, ("", ""))
    script = program.prepare.replace("{here}", str(HERE)).replace("{cc}", cc).replace("{cxx}", cxx)
    done = subprocess.run(["sh", "-e", "-c", script], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{program.name}: {script}: {done.stderr.strip()[-300:]}")


def values_of(library):
    values = {"here": HERE}
    if library in HOME:
        home = fetched() / HOME[library]
        values |= {"fetched": fetched(), "home": home, "python": home / "bin" / "python"}
    return values


def words_of(program, library):
    return [word.format(**values_of(library)) for word in shlex.split(program.command)]


def environment_of(program, library):
    return {name: value.format(**values_of(library)) for name, value in program.env.items()}


def wrong(program, ended, folder):
    """What is wrong with the end of a program; "" when nothing."""
    output = ended.output
    if program.writes and (Path(folder) / program.writes).exists():
        output += (Path(folder) / program.writes).read_text(errors="replace")
    if ended.status is None:
        return f"no end after {ended.seconds:.0f} s: {ended.last_lines()}"
    if ended.status not in program.statuses:
        return f"status {ended.status}: {ended.last_lines()}"
    if re.search(program.never, output):
        return f"its output has {program.never}: {ended.last_lines()}"
    missing = [pattern for pattern in program.shows if not re.search(pattern, output)]
    return f"its output has no {missing[0]}: {ended.last_lines()}" if missing else ""


def once(program, library, launcher):
    """A function that runs the program once, in a folder of its own, and returns what is wrong."""
    def run():
        with tempfile.TemporaryDirectory(prefix="drarun-program-") as folder:
            prepare(program, library, folder)
            env = {"PYTHONDONTWRITEBYTECODE": "1", **environment_of(program, library)}
            ended = start(launcher, program.ranks, words_of(program, library), folder, program.limit, env, program.stdin or None)
            return wrong(program, ended, folder)
    return run


def report_programs(out, programs=PROGRAMS, only="", rounds=3):
    """A row for each program and library whose names match. Returns the rows that fail under drarun alone."""
    out("| program | library | ranks | own launcher | drarun | drarun, two workers |")
    out("|---|---|---|---|---|---|")
    remarks, failed = [], []
    for program in programs:
        for library in program.libraries:
            name = f"{program.name}, {library}"
            if not re.search(only, name):
                continue
            lacking = missing_packages(program.packages)
            if lacking:
                out(f"| {program.name} | {library} | {program.ranks} | not installed: {', '.join(lacking)} | - | - |")
                continue
            peer = suite.LIBRARY[library].launcher
            cells = {}
            for ours in (DRARUN, TWO_WORKERS):
                found = compare(once(program, library, peer), once(program, library, ours), rounds)
                cells.setdefault("peer", "fails" if all(found["peer"]) else "passes")
                cells[ours.name] = WORDS[found["verdict"]]
                said = [f"{who.name} said: {what}" for who, key in ((peer, "peer"), (ours, "ours")) for what in found[key] if what]
                if said:
                    remarks.append(f"- {name}, {ours.name}, {found['verdict']} after {len(found['ours'])}: {'; '.join(said)}")
                    print(remarks[-1], file=sys.stderr, flush=True)  # in case it is ended before the end
                if found["verdict"] == "fails":
                    failed.append(f"{name}, {ours.name}")
            out(f"| {program.name} | {library} | {program.ranks} | {cells['peer']} | {cells[DRARUN.name]} | {cells[TWO_WORKERS.name]} |")
    for remark in remarks:
        out(remark)
    return failed


def report_suite(out, names, options, ours, rounds=3):
    """The tests that fit in options.time minutes for each library, drawn by the seed. Returns those that fail under drarun alone."""
    out("| library | tests in its lists | run | not compiled | fail under its own launcher | pass under drarun, of the others | fail under drarun |")
    out("|---|---|---|---|---|---|---|")
    remarks, failed = [], []
    for name in names:
        try:
            built = suite.Built(name)
            built.build([])
            tests = built.tests()
            random.Random(options.seed).shuffle(tests)
            count, listed = run_tests(built, tests, options, ours, rounds)
        except Missing as missing:
            out(f"| {name} | {missing} | - | - | - | - | - |")
            continue
        out(f"| {name} | {len(tests)} | {count['run']} | {count['not compiled']} | {count['not compared']} | "
            f"{count['passes'] + count['unsteady']} | {count['fails']} |")
        remarks += listed
        failed += [remark for remark in listed if ", fails:" in remark]
    out("")
    for remark in remarks:
        out(remark)
    return failed


def run_tests(built, tests, options, ours, rounds):
    count, remarks, own = Counter(), [], built.library.launcher
    peer = Launcher(own.name, own.program, own.options, own.env | suite.WAITS.get(built.name, {}))
    step = 40  # programs are compiled as they are drawn, so that a short run compiles few
    ends = time.monotonic() + options.time * 60
    for begin in range(0, len(tests), step):
        built.build(tests[begin:begin + step])
        for test in tests[begin:begin + step]:
            if time.monotonic() > ends:
                return count, remarks
            count["run"] += 1
            if not built.program(test).exists():
                count["not compiled"] += 1
                continue
            theirs, mine = peer, ours
            if test.spawns:
                theirs, mine = with_options(peer, suite.PEERS_SLOTS.get(built.name, [])), with_options(ours, suite.OUR_SLOTS)
            found = compare(test_once(built, test, theirs, options.limit), test_once(built, test, mine), rounds)
            count[found["verdict"]] += 1
            if found["verdict"] != "passes" or len(found["ours"]) > 1:
                said = [f"{who} said: {what}" for who, key in ((peer.name, "peer"), (ours.name, "ours")) for what in found[key] if what]
                remarks.append(f"- {built.name}, {test}, {found['verdict']}: {'; '.join(said)}")
    return count, remarks


def with_options(launcher, options):
    return Launcher(launcher.name, launcher.program, [*launcher.options, *options], launcher.env)


def test_once(built, test, launcher, limit=120):
    """A function that runs the test once, in a folder of its own in which the program is, too: those that spawn start "./spawn1"."""
    def run():
        folder = tempfile.mkdtemp(prefix="drarun-program-")
        program = built.program(test)
        (Path(folder) / program.name).symlink_to(program)
        env = dict(pair.partition("=")[::2] for pair in test.environment) | built.environment | {"MPIEXEC_TIMEOUT": str(min(test.limit, limit))}
        if test.spawns:
            env |= suite.SPAWNS.get(built.name, {})
        ended = start(launcher, test.ranks, [program, *test.arguments], folder, min(test.limit, limit) + 30, env)
        shutil.rmtree(folder, ignore_errors=True)
        return suite.wrong(test, ended)
    return run


def report(out, options):
    """All of it; returns an exit status. options: those of scripts/soak."""
    out("# Other people's programs")
    out()
    out(machine.sentence(machine.describe()))
    out()
    out("Each row ran under the MPI library's own launcher and under drarun, in turns. What fails under drarun is repeated, up to three times, "
        "as long as it passes under its own launcher. Two workers are beside the library's own launcher on one node.")
    out()
    failed = []
    programs = chosen(options.only)
    if programs:
        failed += report_programs(out, programs, options.only)
        out()
    for ours, title in (DRARUN, SUITE), (TWO_WORKERS, SUITE_OF_TWO):
        names = chosen_libraries(title, options.only) if options.time else []
        if not names:
            continue
        out(f"## {title}")
        out()
        out(f"Of Debian 12's source package, at most {options.time:g} minutes for each library, the tests drawn by seed {options.seed}; {ours.name}, beside "
            f"the library's own launcher on one node. What its own launcher does not end within {options.limit:g} s counts as failing under it. Under "
            f"Hydra too a waiting rank gives up its CPU: {', '.join(f'{each}=1' for each in (*list(suite.WAITS['MPICH 5'])[:1], *suite.WAITS['Intel MPI']))}. "
            f"Folders of the suite that are left out: {'; '.join(f'{which} {why}' for which, why in suite.LEFT_OUT.items())}.")
        out()
        failed += report_suite(out, names, options, ours)
        out()
    out("Nothing fails under drarun alone." if not failed else f"Fails under drarun alone: {len(failed)}.")
    for each in failed:
        out(f"- {each.removeprefix('- ')}")
    return int(bool(failed))


def chosen(only):
    """The programs of which a row matches, installed as far as they can be."""
    programs = [program for program in PROGRAMS if any(re.search(only, f"{program.name}, {library}") for library in program.libraries)]
    install(programs)
    return programs


def chosen_libraries(title, only):
    """Those with which that part of the suite is asked for."""
    if title == SUITE_OF_TWO and not only:
        return []
    return [name for name in suite.LIBRARY if re.search(only, f"{title}, {name}")]
