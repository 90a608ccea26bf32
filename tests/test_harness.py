# SPDX-License-Identifier: Apache-2.0
"""The fixtures that other tests rely on: each must notice what it is there to notice."""
import ast
import errno
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

from support import build, leftovers, ports, run, sanitizer
from support.build import BUILD, SOURCE, patience
from support.run import Runner

sys.path.insert(0, str(SOURCE / "scripts/lib"))

import choose_tests  # noqa: E402
import test_summary  # noqa: E402


@pytest.fixture
def python():
    runner = Runner(sys.executable)
    yield lambda code, **how: runner("-c", code, **how)
    runner.close()


@pytest.fixture
def impatient(monkeypatch):
    """What these tests leave does not go, and what they await does not come."""
    monkeypatch.setattr(run, "PATIENCE", 0.2)
    monkeypatch.setattr(build, "LEAST_S", 0)


FORK = "import os, time\nif os.fork() == 0:\n    os.close(0); os.close(1); os.close(2); time.sleep(1000)\n"


def test_result(python):
    result = python("import sys; print(input()); sys.stderr.write('e'); sys.exit(3)", input="hello\n")
    assert (result.rc, result.out, result.err) == (3, "hello\n", "e")
    with pytest.raises(AssertionError, match="status 3"):
        result.ok()


def test_left_process_is_noticed_and_killed(python, impatient):
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  process"):
        python(FORK)


def test_left_file_is_noticed(python, impatient):
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  file .*/x"):
        python("import os; open(os.environ['TMPDIR'] + '/x', 'w')")


def test_left_shared_memory_is_noticed(python, impatient):
    if not leftovers._private_shm:
        pytest.skip("needs root for a /dev/shm of its own")
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  file /dev/shm/x"):
        python("open('/dev/shm/x', 'w')")


def test_deadline(python, impatient):
    with pytest.raises(pytest.fail.Exception, match="(?s)no end after .*\nstatus -9"):
        python("import time; print('begun', flush=True); time.sleep(100)", timeout=0.5)


def literal_deadlines(tree):
    """Where a process or a socket is given a number of seconds, which may have a name, or a number is added to the clock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and ast.unparse(node.left) == "time.monotonic()" and isinstance(node.right, ast.Constant):
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = [each.value for each in node.keywords if each.arg == "timeout"] + (node.args if node.func.attr == "settimeout" else [])
            if any(isinstance(each, ast.Constant) or isinstance(each, ast.Name) and each.id.isupper() for each in given) and (
                    node.func.attr in ("communicate", "settimeout") or ast.unparse(node.func.value) == "subprocess"):
                yield node.lineno


def test_deadlines_go_through_patience():
    assert list(literal_deadlines(ast.parse("subprocess.run(x, timeout=5)\nend = time.monotonic() + 5\na.settimeout(5)\na.run(timeout=5)\nsubprocess.run(x, timeout=READY_S)"))) == [1, 2, 3, 5]
    files = [*(SOURCE / "tests").glob("*.py"), *(SOURCE / "tests/support").rglob("*.py")]
    found = [f"{path.name}:{line}" for path in files for line in literal_deadlines(ast.parse(path.read_text()))]
    assert not found, f"{found}: a deadline is patience(seconds) of support/build.py"


@pytest.mark.parametrize("flags,code,report", [
    ("address", "return malloc(10) == 0", "detected memory leaks"),
    ("undefined", "return INT_MAX + argc", "signed integer overflow"),
])
def test_sanitizer_report_is_noticed(tmp_path, monkeypatch, flags, code, report):
    """Also when the report's stderr is nobody's, as with an agent."""
    monkeypatch.setattr(sanitizer, "SANITIZE", flags)
    source = tmp_path / "a.c"
    source.write_text("#include <limits.h>\n#include <stdlib.h>\n"
                      f"int main(int argc, char **argv) {{ (void)argc, (void)argv; {code}; }}\n")
    program = tmp_path / "a"
    subprocess.run(["cc", f"-fsanitize={flags}", "-fno-sanitize-recover", "-o", program, source],
                   check=True)
    runner = Runner("/bin/sh")
    with pytest.raises(pytest.fail.Exception, match=f"(?s)sanitizer report:.*{report}"):
        runner("-c", f"{program} 2>/dev/null; true")
    runner.close()


def test_foreign_environment_is_dropped(python, monkeypatch):
    monkeypatch.setenv("OMPI_MCA_pml", "x")
    monkeypatch.setenv("PMIX_RANK", "1")
    code = "import os; print([n for n in os.environ if n[:5] in ('OMPI_', 'PMIX_')])"
    assert python(code).ok().out == "[]\n"


def test_nodes(nodes):
    three = nodes(3)
    assert [node.run("hostname").strip() for node in three] == ["node0", "node1", "node2"]
    assert three.head.run("hostname").strip() == "head"
    assert "10.77.0.3/24" in three[2].run("ip", "-o", "-4", "addr", "show", "eth0")
    three[0].run("touch", "/dev/shm/here")
    assert three[1].run("ls", "/dev/shm") == ""
    # a connection from one node to another, through the bridge
    server = subprocess.Popen(
        [*three[0].enter, sys.executable, "-c",
         "import socket; s = socket.create_server(('10.77.0.1', 9)); print(flush=True); s.accept()"],
        stdout=subprocess.PIPE)
    server.stdout.readline()
    three[2].run(sys.executable, "-c", "import socket; socket.create_connection(('10.77.0.1', 9), 5)")
    assert server.wait(patience()) == 0
    server.stdout.close()


@pytest.mark.parametrize("flag", [(), ("-DX",)])
def test_compile_is_cached(mpi_named, flag, tmp_path):
    source = tmp_path / "a.c"
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_VERSION < 3; }\n")
    program = mpi_named("openmpi4").compile(source, flags=flag)
    made = program.stat().st_mtime_ns
    assert mpi_named("openmpi4").compile(source, flags=flag) == program
    assert program.stat().st_mtime_ns == made
    assert subprocess.run([program]).returncode == 0
    program.unlink()


def test_compile_error_is_shown(mpi_named, tmp_path):
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(AssertionError, match="nothing"):
        mpi_named("openmpi4").compile(source)


def reported(folder, lane, **programs):
    """A lane's report as ctest's: whether each program's only case passed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {True: "OK", False: "FAILED"}
    (folder / f"{lane}.ctest.xml").write_text("<testsuite>" + "".join(
        f'<testcase name="{name}" status="{"run" if passed else "fail"}" time="1.5">'
        f"<system-out>[  ERROR   ] --- why\n[       {words[passed]} ] case_{name}\n</system-out></testcase>"
        for name, passed in programs.items()) + "</testsuite>")


def summary(folder, kind="some", builds=("dev",)):
    return subprocess.run([sys.executable, SOURCE / "scripts/lib/test_summary.py", kind, *builds], cwd=folder,
                          capture_output=True, text=True)


def test_a_failure_decides(tmp_path):
    reported(tmp_path / "build/tests/report", "unit", good=True)
    assert summary(tmp_path).returncode == 0
    reported(tmp_path / "build/tests/report", "whole", better=True, bad=False)
    run = summary(tmp_path)
    assert run.returncode == 1 and "2 passed    1 failed    0 skipped    0 unsteady" in run.stdout
    assert "FAILED dev: bad::case_bad: why\n    scripts/test --only bad.py::case_bad\n" in run.stdout


def test_a_skip_needs_a_permitted_reason(tmp_path):
    report = tmp_path / "build/tests/report"
    for reason, status in (("this kernel has no VRF", 0), ("no busybox; run scripts/setup --test", 1)):
        reported(report, "whole", **{"cli.some": True})
        (report / "some.xml").write_text('<testsuite><testcase classname="some" name="test_a"/><testcase classname="some" name="test_b">'
                                         f'<skipped message="{reason}"/></testcase></testsuite>')
        run = summary(tmp_path)
        assert run.returncode == status, run.stdout
    assert "FAILED dev: some::test_b: skipped for a reason that tests/skips.txt does not permit: no busybox" in run.stdout


def test_a_skipped_case_in_c_gives_its_reason(tmp_path):
    """As skip_for says it, also within what a case calls; skip() alone gives none."""
    report = tmp_path / "build/tests/report"
    report.mkdir(parents=True)
    (report / "unit.ctest.xml").write_text("""<testsuite><testcase name="unit.a_test" status="run" time="1"><system-out>
[==========] Running 4 test(s).
[ RUN      ] as_root
[  REASON  ] needs root, to make a device node
[  SKIPPED ] as_root
[ RUN      ] good
[       OK ] good
[ RUN      ] why
[  SKIPPED ] why
[ RUN      ] with_gpu
[  REASON  ] no NVIDIA GPU with its driver on this machine
[  SKIPPED ] with_gpu
[==========] 4 test(s) run.
[  SKIPPED ] 3 test(s), listed below:
[  SKIPPED ] as_root
[  SKIPPED ] why
[  SKIPPED ] with_gpu
</system-out></testcase></testsuite>""")
    run = summary(tmp_path)
    assert run.returncode == 1 and "1 passed    0 failed    3 skipped" in run.stdout, run.stdout
    assert "skipped, 1: needs root, to make a device node\n    dev: unit.a_test::as_root\n" in run.stdout, run.stdout
    assert [line for line in run.stdout.splitlines() if line.startswith("FAILED")] == [
        "FAILED dev: unit.a_test::why: skipped for a reason that tests/skips.txt does not permit: no reason given"]


def test_too_few_cases_are_a_failure(tmp_path):
    reported(tmp_path / "build/tests/report", "unit", good=True)
    run = summary(tmp_path, "gate")
    assert run.returncode == 1 and re.search(r"FAILED dev: 1 cases, at least \d+ expected \(tests/least-cases.json\)", run.stdout)


def test_versions_table(tmp_path):
    """A row tells what did not pass, and why; other versions keep theirs; a program that did not run is not passed over."""
    versions = runpy.run_path(str(SOURCE / "scripts/versions"))
    report = tmp_path / "build/tests/report"
    reported(report, "whole", **{name: name != "node.test_cluster_gang" for name in versions["PROGRAMS"] if "roles" not in name})
    (report / "test_cluster_plugin.xml").write_text(
        '<testsuite><testcase classname="p" name="test_a"/><testcase classname="p" name="test_b"><skipped message="no a|b"/></testcase>'
        '<testcase classname="p" name="test_c"><failure message="why"/></testcase></testsuite>')
    (report / "second-chance.json").write_text(json.dumps(
        [{"program": "node.test_cluster_plugin", "case": "p.py::test_c", "name": "p::test_c", "passed": True}]))
    made = list(versions["rows"]("1.35.4", "2026-01-02", versions["verdicts"](tmp_path / "build")))
    assert made == [
        "| 1.35.4 | 2026-01-02 | the bed itself: `test_cluster_bed` | 1 | 1 passed |",
        "| 1.35.4 | 2026-01-02 | run: `test_cluster_jobs`, `test_cluster_roles`, `test_cluster_devices` | 2 | 2 passed; "
        "`node.test_cluster_roles` did not run |",
        "| 1.35.4 | 2026-01-02 | faults: `test_cluster_failures` | 1 | 1 passed |",
        "| 1.35.4 | 2026-01-02 | plugin: `test_cluster_plugin` | 3 | 1 passed; unsteady: `test_c`; 1 skipped: no a\\|b |",
        "| 1.35.4 | 2026-01-02 | gang: `test_cluster_gang` | 1 | failed: `node.test_cluster_gang` |"]
    page = f"text\n{versions['RULE']}\n| 1.37.2 | new |\n| 1.35.3 | one |\n| 1.35.3 | two |\n| 1.34.4 | old |\n\nmore\n"
    assert versions["with_rows"](page, "1.35", ["| 1.35.4 | a |"]) == (
        f"text\n{versions['RULE']}\n| 1.37.2 | new |\n| 1.35.4 | a |\n| 1.34.4 | old |\n\nmore\n")


BED = """\
import pathlib, pytest

def count(name):
    path = pathlib.Path(__file__).parent / name
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_good(): pass
@pytest.mark.parametrize("how", ["a b"])
def test_once(how): assert count("once") > 1, "the first time"
def test_twice(): assert count("twice") > 2
def test_never(): assert count("never") > 10
def test_absent(): pytest.skip("this kernel has no VRF")
"""


def test_what_fails_gets_two_more_chances_alone(tmp_path):
    """A real ctest project: cases of pytest one by one, a program that is no pytest whole."""
    build = tmp_path / "build"
    (tmp_path / "test_bed.py").write_text(BED)
    (tmp_path / "program").write_text(f"#!/bin/sh\necho x >>{tmp_path}/runs\ntest $(wc -l <{tmp_path}/runs) -gt 1\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(bed NONE)\nenable_testing()\n"
        f"add_test(NAME cli.test_bed COMMAND {sys.executable} -B {SOURCE}/scripts/lib/measured.py {build}/tests/report/test_bed.cost.json"
        f" {sys.executable} -B -m pytest -p no:cacheprovider -q --junitxml={build}/tests/report/test_bed.xml test_bed.py"
        f" WORKING_DIRECTORY {tmp_path})\nadd_test(NAME unit.program COMMAND {tmp_path}/program)\n")
    for words in (["cmake", "-S", ".", "-B", "build"],
                  ["ctest", "--test-dir", "build", "--test-output-size-failed", "100000", "--output-junit", "tests/report/whole.ctest.xml"]):
        subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=patience())
    again = subprocess.run([sys.executable, SOURCE / "scripts/lib/second_chance.py", "60", "dev"], cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    tried = {each["name"]: (each["tries"], each["passed"]) for each in json.loads((build / "tests/report/second-chance.json").read_text())}
    assert tried == {"test_bed::test_once[a b]": (1, True), "test_bed::test_twice": (2, True), "test_bed::test_never": (2, False),
                     "unit.program": (1, True)}
    assert len((tmp_path / "never").read_text()) == 3
    run = summary(tmp_path)
    assert run.returncode == 1 and "1 passed    1 failed    1 skipped    3 unsteady" in run.stdout, run.stdout
    assert "FAILED dev: test_bed::test_never: " in run.stdout and "scripts/test --only test_bed.py::test_never" in run.stdout
    first, = re.findall(r"^unsteady .* dev: test_bed::test_once\[a b\]: .*the first time.*\n    its first output: (.*)", run.stdout, re.M)
    assert "the first time" in open(first).read()


def test_no_second_chance_after_the_deadline(tmp_path):
    """What was not repeated has failed."""
    reported(tmp_path / "build/tests/report", "whole", bad=False)
    (tmp_path / "build/tests/report/second-chance.json").write_text(json.dumps(
        [{"program": "bad", "case": None, "name": "bad", "passed": False, "tries": 0, "first": "x"}]))
    run = summary(tmp_path)
    assert run.returncode == 1 and "FAILED dev: bad::case_bad: why\n" in run.stdout


def test_nothing_that_ran_is_a_failure(tmp_path):
    (tmp_path / "build/tests/report").mkdir(parents=True)
    run = summary(tmp_path)
    assert run.returncode == 1 and "FAILED no test ran" in run.stdout


def test_the_profile_names_who_waits(tmp_path):
    report = tmp_path / "build/tests/report"
    reported(report, "whole", **{"node.idle": True, "node.busy": True})
    for name, used in (("idle", 0), ("busy", 3 * os.cpu_count())):
        (report / f"{name}.cost.json").write_text(json.dumps({"wall_s": 3, "cpu_s": used}))
    run = summary(tmp_path)
    assert re.search(r"3\.0 +0\.0 +100%  dev node\.idle\n", run.stdout) and re.search(r" 0%  dev node\.busy\n", run.stdout)
    assert json.loads((report / "profile.json").read_text())["node.idle"] == {"wall_s": 3, "cpu_s": 0}


def test_cost_counts_all_processes(tmp_path):
    """Also one that its parent left to init, and the program's end is passed on."""
    code = """if True:
        import os, time
        ours, theirs = os.pipe()
        if os.fork() == 0:
            if pid := os.fork():
                os.write(theirs, str(pid).encode())
                os._exit(0)
            while time.process_time() < 0.3:
                pass
            os._exit(0)
        orphan = os.read(ours, 20).decode()
        while os.path.exists(f"/proc/{orphan}"):
            time.sleep(0.01)
        os.kill(os.getpid(), 15)
        """
    words = [sys.executable, SOURCE / "scripts/lib/measured.py", tmp_path / "cost.json", sys.executable, "-c", code]
    assert subprocess.run(words).returncode == -15
    cost = json.loads((tmp_path / "cost.json").read_text())
    assert 0.3 < cost["cpu_s"] < cost["wall_s"] + 0.2


def test_cost_of_what_is_in_no_account(tmp_path):
    """As a node's processes, which end with its pid namespace."""
    code = "import os; open(os.environ['DRARUN_TEST_SPENT'], 'a').write('100.5\\n0.25\\n')"
    words = [sys.executable, SOURCE / "scripts/lib/measured.py", tmp_path / "x.cost.json", sys.executable, "-c", code]
    assert subprocess.run(words).returncode == 0
    assert 100.75 <= json.loads((tmp_path / "x.cost.json").read_text())["cpu_s"] < 110 and [path.name for path in tmp_path.iterdir()] == ["x.cost.json"]


@pytest.mark.parametrize("kind,build,kept", [("gate", "dev", "abe"), ("gate", "asan", "a"), ("all", "dev", "abcdf"), ("all", "asan", "ac")])
def test_which_programs_belong_to_a_build(kind, build, kept):
    programs = {"unit.a": {"unit", "lib"}, "cli.b": {"cli", "gate"}, "node.c": {"node"}, "node.d": {"node"}, "gate.e": {"gate"}, "timed.f": {"timed", "lib"}}
    rows = [(1, "asan", "unit", "why"), (2, "asan", "node.c*", "why"), (3, "gate-asan", "unit", "why")]
    assert {name[-1] for name in choose_tests.chosen(programs, kind, build, rows)} == set(kept)


def test_a_list_that_names_nothing(tmp_path):
    (tmp_path / "list").write_text("# a comment\n\nasan unit\n")
    with pytest.raises(choose_tests.Wrong, match="list:3: expected 2 words and a reason: asan unit"):
        choose_tests.table(tmp_path / "list", 2)
    programs = choose_tests.registered(BUILD)
    for number, _, what, _ in choose_tests.table(SOURCE / "tests/builds.txt", 2):
        assert any(choose_tests.matches(what, *each) for each in programs.items()), f"tests/builds.txt:{number}: no program or label {what}"


def test_lanes():
    assert [choose_tests.lane(labels) for labels in ({"unit"}, {"cli"}, {"fuzz", "lib"}, {"timed", "lib"})] == ["unit", "whole", "unit", "timed"]


def test_one_pool_of_two_builds(tmp_path):
    """Each program runs as its build's ctest knows it, and is in its build's report; one that was not built has failed."""
    odd = 'a ]=] $b ; "c"'
    for build, programs in (("build", ("a", "b", "c")), ("build-asan", ("a", "c"))):
        report = tmp_path / build / "tests/report"
        report.mkdir(parents=True)
        (report / "lanes").write_text("".join(f"{'none' if each == 'c' else 'whole'} cli.{each}\n" for each in programs))
        (tmp_path / build / "CTestTestfile.cmake").write_text("".join(
            f'add_test([=[cli.{each}]=] {"/nowhere" if each == "b" else "/bin/sh"} -c [==[echo "$WHERE: $1"; exit $STATUS]==] sh [==[{odd}]==])\n'
            f"set_tests_properties([=[cli.{each}]=] PROPERTIES ENVIRONMENT [=[WHERE={build};STATUS={int(build == 'build')}]=] LABELS cli)\n"
            for each in programs))

    def pool(*words):
        run = subprocess.run([sys.executable, "-B", SOURCE / "scripts/lib/test_pool.py", *words], cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()
    assert pool("make", "timed", "dev", "asan") == ""
    folder = pool("make", "whole", "dev", "asan")
    subprocess.run(["ctest", "--test-dir", folder, "--output-junit", "report.xml"], capture_output=True, timeout=patience())
    pool("share", "whole", "dev", "asan")
    found = {build: {case.get("name"): (case.get("status"), case.findtext("system-out")) for case in
                     xml.parse(tmp_path / build / "tests/report/whole.ctest.xml").iter("testcase")} for build in ("build", "build-asan")}
    said = {build: f"{build}: {odd}\n" for build in found}
    assert {*found["build"]} == {"cli.a", "cli.b"} and {*found["build-asan"]} == {"cli.a"}, found
    assert found["build"]["cli.a"] == ("fail", said["build"]) and found["build-asan"]["cli.a"] == ("run", said["build-asan"])
    run = summary(tmp_path, builds=("dev", "asan"))
    assert run.returncode == 1 and re.findall(r"^FAILED (dev|asan): (cli\.\w)", run.stdout, re.M) == [("dev", "cli.a"), ("dev", "cli.b")], run.stdout


TIMES = """
import pytest
def test_plain(): pass
@pytest.mark.timed
def test_takes_a_second(): pass
@pytest.mark.parametrize("timed", TIMED)
def test_both(timed): assert timed in (False, True)
"""


@pytest.mark.parametrize("words,machine,passed,skipped", [
    (["test_times.py"], 1, {"test_plain", "test_both[does]"}, set()),
    (["test_times.py", "-m", "timed"], 1, {"test_takes_a_second", "test_both[in time]"}, set()),
    (["test_times.py", "-m", "timed"], 2, set(), {"test_takes_a_second", "test_both[in time]"}),
    (["test_times.py::test_takes_a_second"], 1, {"test_takes_a_second"}, set()),
], ids=["others", "timed", "slow machine", "by name"])
def test_cases_that_assert_times(tmp_path, words, machine, passed, skipped):
    (tmp_path / "conftest.py").write_text("from conftest_of_tests import *\n")
    (tmp_path / "conftest_of_tests.py").symlink_to(SOURCE / "tests/conftest.py")
    (tmp_path / "test_times.py").write_text("from support.timed import TIMED\n" + TIMES)
    run = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rs", *words], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(SOURCE / "tests"), "DRARUN_TEST_MACHINE": str(machine)})
    found = dict(re.findall(r"^test_times\.py::(test_.*?) (PASSED|SKIPPED)", run.stdout, re.M))
    assert found == {**dict.fromkeys(passed, "PASSED"), **dict.fromkeys(skipped, "SKIPPED")}, run.stdout + run.stderr
    reasons = re.findall(r"^SKIPPED \[\d+\] .*?: (the machine .*)$", run.stdout, re.M)
    assert bool(reasons) == bool(skipped) and all(any(pattern.search(each) for pattern in test_summary.permitted_skips(SOURCE / "tests/skips.txt"))
                                                  for each in reasons), run.stdout


PLAIN = """
import os
def test_environment():
    assert not {each for each in os.environ if each.startswith(("GIT_", "LANG", "LC_M"))} and os.environ["LC_ALL"] == "C.UTF-8"
    assert os.umask(0o022) == 0o022
"""


def test_what_a_shell_has_set_decides_nothing(tmp_path):
    (tmp_path / "conftest.py").symlink_to(SOURCE / "tests/conftest.py")
    (tmp_path / "test_plain.py").write_text(PLAIN)
    local = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True).stdout.split()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**kept, **dict.fromkeys(local, str(tmp_path)),
           "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": str(tmp_path), "PYTHONPATH": str(SOURCE / "tests"),
           "LANG": "de_DE.UTF-8", "LANGUAGE": "de", "LC_MESSAGES": "de_DE.UTF-8"}
    run = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_plain.py"], cwd=tmp_path, env=env, umask=0o077,
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("first, end", [(32768, 32768), (20001, 20001), (1024, 20000), (60000, 32768)])
def test_ports_below_the_kernels_own(first, end):
    """Another network's may begin lower than this one's."""
    assert ports._below(first) == end


def test_ports_of_a_network_that_has_none_free():
    class Taken(socket.socket):
        def bind(self, _):
            raise OSError(errno.EADDRINUSE, "taken")
    with pytest.raises(OSError, match="taken"):
        ports.free_ports(1, Taken)
    assert len({*ports.free_ports(3)}) == 3


# ---- SECURITY.md

def cases_of(path):
    """The names of the tests of a file: those that run."""
    text = (SOURCE / path).read_text()
    if path.endswith(".py"):
        return set(re.findall(r"^def (test_\w+)\(", text, re.M))
    defined = re.findall(r"^static void (\w+)\(void \*\*state\)", text, re.M)
    return {name for name in defined if len(re.findall(rf"\b{name}\b", text)) > 1}


def named_in(page):
    """(file, names) of each "`FILE` name, name; `FILE` name" at the end of a table's row."""
    for row in re.findall(r"^\|.*\| (.*) \|$", page, re.M):
        for part in row.split("; "):
            if found := re.fullmatch(r"`((?:[\w-]+/)+(?:test_\w+\.py|\w+_test\.c))` ?(.*)", part):
                yield found[1], [name for name in found[2].split(", ") if name]


def missing_in(page):
    missing = [path for path in re.findall(r"[`(]((?:[\w.-]+/)+[\w.-]+\.\w+)[`)]", page) if not (SOURCE / path).exists() and
               not path.startswith("/")]
    for path, names in named_in(page):
        if (SOURCE / path).exists():
            missing += [f"{path} {name}" for name in names if name not in cases_of(path)]
    everywhere = set().union(*(cases_of(f"tests/{path.name}") for path in (SOURCE / "tests").glob("test_*.py")))
    return missing + [name for name in re.findall(r"`(test_\w+)`", page) if name not in everywhere]


def test_tests_that_the_security_page_names():
    page = (SOURCE / "SECURITY.md").read_text()
    assert sum(len(names) for _, names in named_in(page)) > 60 and missing_in(page) == []
    row = "| who | answer | `tests/test_harness.py` test_result, test_nothing; `lib/base/test/file_test.c` no_such; `tests/test_no.py` test_x |\n"
    assert missing_in(row + "(`test_result`, `test_gone`)") == [
        "tests/test_no.py", "tests/test_harness.py test_nothing", "lib/base/test/file_test.c no_such", "test_gone"]
