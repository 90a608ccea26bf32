# SPDX-License-Identifier: Apache-2.0
"""scripts/tidy, on a tree of one file."""
import os
import shutil
import subprocess

import pytest

from support.build import SOURCE, patience

NINJA = """rule cc
  command = cc -I{root} -O2 -Werror -Wlogical-op -fcf-protection -DNDEBUG -MD -MF $out.d -o $out -c $in
build half.c.o: cc {root}/lib/base/half.c
"""
HEADER = "int half(int whole, int parts);\n"
GOOD = '#include <assert.h>\n#include "lib/base/half.h"\nint half(int whole, int parts)\n{\n    assert(parts != 0);\n    return parts == 0 ? whole / parts : 0;\n}\n'


class Tree:
    def __init__(self, root):
        self.root = root
        for folder in ("scripts", "lib/base", "build"):
            (root / folder).mkdir(parents=True)
        shutil.copy(SOURCE / "scripts/tidy", root / "scripts")
        shutil.copy(SOURCE / ".clang-tidy", root)
        (root / "build/build.ninja").write_text(NINJA.format(root=root))
        self.write("half.h", HEADER)
        self.write("half.c", GOOD)

    def write(self, name, text):
        (self.root / "lib/base" / name).write_text(text)

    def tidy(self, *words):
        environment = {**os.environ, "DRARUN_CACHE": str(self.root.parent / "cache")}
        environment.pop("DRARUN_BUILD", None)
        return subprocess.run([self.root / "scripts/tidy", *words], cwd=self.root, capture_output=True, text=True, env=environment,
                              timeout=patience(60))


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "tree")


def passed(run, checked):
    return (run.returncode, run.stdout) == (0, f"tidy: files: 1, checked now: {checked}, with findings: 0\n")


def test_a_file_that_passed_is_skipped_until_something_changes(tree):
    assert passed(tree.tidy(), 1) and passed(tree.tidy(), 0)
    tree.write("half.h", HEADER + "\n")
    assert passed(tree.tidy(), 1) and passed(tree.tidy(), 0)
    tree.write("half.c", GOOD + "\n")
    assert passed(tree.tidy(), 1)
    checks = tree.root / ".clang-tidy"
    checks.write_text(checks.read_text() + "# other\n")
    assert passed(tree.tidy(), 1)
    ninja = tree.root / "build/build.ninja"
    ninja.write_text(ninja.read_text().replace("-O2", "-O2 -DMORE"))
    assert passed(tree.tidy("lib/base/half.c"), 1)


def test_another_clone_knows_what_passed(tree, tmp_path):
    assert passed(tree.tidy(), 1)
    assert passed(Tree(tmp_path / "other").tidy(), 0)


def test_a_finding_fails_each_time(tree):
    tree.write("half.c", GOOD.replace("    assert(parts != 0);\n", ""))
    for _ in range(2):
        run = tree.tidy()
        assert run.returncode == 1
        assert "lib/base/half.c:5:31: error: Division by zero [clang-analyzer-core.DivideZero,-warnings-as-errors]" in run.stdout
        assert run.stdout.endswith("tidy: files: 1, checked now: 1, with findings: 1\n")


def test_a_finding_in_a_header_is_one(tree):
    tree.write("half.h", HEADER.replace("whole", "all"))
    run = tree.tidy()
    assert run.returncode == 1 and "lib/base/half.h:1:5: error: function 'half' has a definition with different parameter names" in run.stdout


def test_what_does_not_compile_is_a_finding(tree):
    tree.write("half.c", GOOD.replace("half.h", "third.h"))
    run = tree.tidy()
    assert run.returncode == 1 and "lib/base/half.c:2:10: error: 'lib/base/third.h' file not found" in run.stdout


def test_files_that_are_not_built(tree):
    tree.write("other.c", "")
    run = tree.tidy("lib/base/other.c", "lib/base/half.c")
    assert passed(run, 1) and run.stderr.startswith("tidy: lib/base/other.c: skipped: the build in ")
    run = tree.tidy("lib/base/none.c")
    assert (run.returncode, run.stderr) == (66, "tidy: lib/base/none.c: no such file\n")


def test_no_build(tree):
    (tree.root / "build/build.ninja").unlink()
    run = tree.tidy()
    assert run.returncode == 69 and "build first: cmake --preset dev" in run.stderr


def test_headers_of_others_are_left_alone(tree):
    """Also in a folder that is called like one of ours, as /usr/lib is."""
    other = tree.root.parent / "usr/lib/other"
    other.mkdir(parents=True)
    (other / "other.h").write_text("int other(int);\nint other(int);\n")
    ninja = tree.root / "build/build.ninja"
    ninja.write_text(ninja.read_text().replace("-O2", f"-O2 -I{other}"))
    tree.write("half.c", GOOD.replace("#include <assert.h>", '#include <assert.h>\n#include "other.h"'))
    assert passed(tree.tidy(), 1)
