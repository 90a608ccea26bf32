# SPDX-License-Identifier: Apache-2.0
"""The fixtures that other tests rely on: each must notice what it is there to notice."""
import json
import os
import re
import subprocess
import sys

import pytest

from support import leftovers, sanitizer
from support.build import SOURCE
from support.run import Runner

sys.path.insert(0, str(SOURCE / "scripts/lib"))

import choose_tests  # noqa: E402


@pytest.fixture
def python():
    runner = Runner(sys.executable)
    yield lambda code, **how: runner("-c", code, **how)
    runner.close()


FORK = "import os, time\nif os.fork() == 0:\n    os.close(0); os.close(1); os.close(2); time.sleep(60)\n"


def test_result(python):
    result = python("import sys; print(input()); sys.stderr.write('e'); sys.exit(3)", input="hello\n")
    assert (result.rc, result.out, result.err) == (3, "hello\n", "e")
    with pytest.raises(AssertionError, match="status 3"):
        result.ok()


def test_left_process_is_noticed_and_killed(python):
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  process"):
        python(FORK)


def test_left_file_is_noticed(python):
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  file .*/x"):
        python("import os; open(os.environ['TMPDIR'] + '/x', 'w')")


def test_left_shared_memory_is_noticed(python):
    if not leftovers._private_shm:
        pytest.skip("needs root for a /dev/shm of its own")
    with pytest.raises(pytest.fail.Exception, match="left behind:\n  file /dev/shm/x"):
        python("open('/dev/shm/x', 'w')")


def test_deadline(python):
    with pytest.raises(pytest.fail.Exception, match="(?s)no end after .*\nstatus -9"):
        python("import time; print('begun', flush=True); time.sleep(100)", timeout=0.5)


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
    assert server.wait(10) == 0
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


def summary(folder):
    return subprocess.run([sys.executable, SOURCE / "scripts/lib/test_summary.py", "dev"], cwd=folder,
                          capture_output=True, text=True)


def test_a_failure_decides(tmp_path):
    reported(tmp_path / "build/tests/report", "unit", good=True)
    assert summary(tmp_path).returncode == 0
    reported(tmp_path / "build/tests/report", "whole", better=True, bad=False)
    run = summary(tmp_path)
    assert run.returncode == 1 and "2 passed    1 failed    0 skipped    0 unsteady" in run.stdout
    assert "FAILED dev: bad::case_bad: why" in run.stdout


def test_the_lane_of_the_unsteady_does_not_decide(tmp_path):
    reported(tmp_path / "build/tests/report", "whole", good=True)
    reported(tmp_path / "build/tests/report", "unsteady", shaky=False)
    run = summary(tmp_path)
    assert run.returncode == 0 and "1 passed    0 failed    0 skipped    1 unsteady" in run.stdout
    assert "unsteady, and known to be (tests/unsteady.txt), dev: shaky::case_shaky: why" in run.stdout


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


@pytest.mark.parametrize("build,kept", [("dev", "abc"), ("asan", "a"), ("quick", "bd")])
def test_which_programs_belong_to_a_build(build, kept):
    programs = {"unit.a": {"unit", "lib"}, "cli.b": {"cli"}, "node.c": {"node"}, "quick.d": {"quick"}}
    rows = [(1, "asan", "unit", "why"), (2, "quick", "cli.b*", "why"), (3, "quick", "quick", "why")]
    assert {name[-1] for name in choose_tests.chosen(programs, build, rows)} == set(kept)


def test_a_list_that_names_nothing(tmp_path):
    with pytest.raises(choose_tests.Wrong, match=r"builds.txt:7: no program or label node.c"):
        choose_tests.chosen({"unit.a": {"unit"}}, "quick", [(7, "quick", "node.c", "why")])
    (tmp_path / "list").write_text("# a comment\n\nasan unit\n")
    with pytest.raises(choose_tests.Wrong, match="list:3: expected 2 words and a reason: asan unit"):
        choose_tests.table(tmp_path / "list", 2)


def test_lanes():
    assert [choose_tests.lane(name, labels, {"node.c"}) for name, labels in
            (("unit.a", {"unit"}), ("cli.b", {"cli"}), ("node.c", {"node"}))] == ["unit", "whole", "unsteady"]
