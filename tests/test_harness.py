# SPDX-License-Identifier: Apache-2.0
"""The fixtures that other tests rely on: each must notice what it is there to notice."""
import subprocess
import sys

import pytest

from support import leftovers, sanitizer
from support.build import SOURCE
from support.run import Runner


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


def reported(folder, **programs):
    """A report as ctest's: whether each program's only case passed."""
    folder.mkdir(parents=True)
    words = {True: "OK", False: "FAILED"}
    (folder / "ctest.xml").write_text("<testsuite>" + "".join(
        f'<testcase name="{name}" status="{"run" if passed else "fail"}">'
        f"<system-out>[  ERROR   ] --- why\n[       {words[passed]} ] case_{name}\n</system-out></testcase>"
        for name, passed in programs.items()) + "</testsuite>")


@pytest.mark.parametrize("again,rc", [(True, 0), (False, 1)])
def test_what_passes_at_the_second_try_is_unsteady(tmp_path, again, rc):
    tests = tmp_path / "build/tests"
    reported(tests / "report.first", good=True, shaky=False)
    reported(tests / "report", shaky=again)
    summary = subprocess.run([sys.executable, SOURCE / "scripts/lib/test_summary.py", "dev"], cwd=tmp_path, capture_output=True, text=True)
    assert summary.returncode == rc, summary.stderr
    assert f"1 passed {1 - again:4} failed    0 skipped {int(again):4} unsteady" in summary.stdout
    assert ("unsteady, it failed and then passed, dev: shaky::case_shaky: why" if again else "FAILED dev: shaky::case_shaky: why") in summary.stdout
