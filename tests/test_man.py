# SPDX-License-Identifier: Apache-2.0
"""Man pages, help and completion tell of the same options: the program's own table."""
import re
import shutil
import subprocess

import pytest

PAGES = {"drarun": "1", "drarun-worker": "1", "drarun-plugin": "8", "drarun-attach": "8"}
VERBS = {"drarun-plugin": ["run", "discover", "repaired"]}  # whose options the page has, beside the program's


def words(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.fixture(params=PAGES)
def program(request, build):
    return build / "bin" / request.param


def help_text(program):
    own = ["run"] if program.name == "drarun" else []  # drarun's own help shows the verbs
    return "".join(subprocess.run([program, *verb, "--help"], capture_output=True, text=True, check=True).stdout
                   for verb in [own, *([verb] for verb in VERBS.get(program.name, ()))])


def path(program, source):
    return source / "docs" / "man" / f"{program.name}.{PAGES[program.name]}"


def documented(page):
    """The options that have an entry: ".It Fl n , -ranks Ar N"."""
    entries = re.findall(r"^\.It Fl (.*)$", page, re.M)
    return {f"--{name}" for entry in entries for name in re.findall(r"(?:^|[ ,])-([a-z][a-z-]*)", entry)}


def test_every_option_has_an_entry(program, source):
    # for the agent: the options as its help lists them, without those of drarun in its text
    listed = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_text(program), re.M))
    if program.name == "drarun-attach":  # it has words
        listed = words(help_text(program))
    assert len(listed) > 5 or program.name == "drarun-attach" and listed == {"--help", "--version"}
    assert documented(path(program, source).read_text()) == listed


@pytest.mark.parametrize("launcher", ["mpirun", "mpiexec", "srun", "horovodrun"])
def test_page_of_other_launchers(build, source, launcher):
    """docs/other-launchers.md holds what "drarun help mpirun" prints: the parser's own table."""
    table = subprocess.run([build / "bin/drarun", "help", launcher], capture_output=True, text=True, check=True).stdout
    page = (source / "docs/other-launchers.md").read_text()
    assert table.count("\n| ") > 40 and table in page, f"paste what 'drarun help {launcher}' prints into the page"


def test_every_exit_status_has_an_entry(source):
    """Of ours: each kind of error ends with one."""
    statuses = set(re.findall(r"\[DRARUN_ERR_\w+\] = \{\"[\w-]+\", (\d+)\}", (source / "lib/base/error.c").read_text()))
    page = (source / "docs/man/drarun.1").read_text().partition(".Sh EXIT STATUS")[2].partition("\n.Sh ")[0]
    listed = set(re.findall(r"\d+", " ".join(re.findall(r"^\.It (\d+(?: , \d+)*)$", page, re.M))))
    assert {"64", "65", "69", "70", "75", "76"} <= statuses and statuses - listed == {"130"}  # 128 + SIGINT


def test_page_is_well_formed(program, source):
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc; run scripts/setup --test")
    run = subprocess.run(["mandoc", "-Tlint", "-Wwarning", path(program, source)], capture_output=True, text=True)
    assert run.stdout == "" and run.returncode == 0


def test_page_of_the_library(source):
    """drarun(3) names every function that is exported, and no other."""
    page = source / "docs/man/drarun.3"
    exported = set(re.findall(r"^    (drarun_\w+);", (source / "launcher/api/libdrarun.map").read_text(), re.M))
    named = set(re.findall(r"Fn (drarun_[a-z_]+)(?!\.)\b", page.read_text()))
    assert len(exported) > 20 and named == exported
    if shutil.which("mandoc"):
        run = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
        assert run.stdout == "" and run.returncode == 0


def test_pages_of_its_functions(source):
    """scripts/man3 writes them from the headers: each exported function has one."""
    run = subprocess.run([source / "scripts/man3", "--check"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    pages = {path.stem: path for path in (source / "docs/man").glob("drarun_*.3")}
    assert set(pages) == set(re.findall(r"^    (drarun_\w+);", (source / "launcher/api/libdrarun.map").read_text(), re.M))
    if shutil.which("mandoc"):
        whole = [path for path in pages.values() if not path.read_text().startswith(".so ")]
        run = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *whole], capture_output=True, text=True)
        assert run.stdout == "" and run.returncode == 0


def test_completion_knows_every_option(build):
    drarun = build / "bin" / "drarun"
    script = subprocess.run([drarun, "completion", "bash"], capture_output=True, text=True,
                            check=True).stdout
    options = words(re.search(r'compgen -W "(--[^"]*)"', script).group(1))
    assert options == set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_text(drarun), re.M))


@pytest.mark.parametrize("line,expected", [
    ("drarun --work", {"--workers"}),
    ("drarun --bind ", {"none", "core", "numa"}),
    ("drarun vers", {"version"}),
    ("drarun --launch e", {"env"}),
])
def test_completion_in_bash(build, line, expected):
    script = f"""
        source <({build}/bin/drarun completion bash)
        read -ra COMP_WORDS <<<'{line}'; [[ '{line}' != *' ' ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _drarun; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd="/proc/self/fdinfo")
    assert run.stderr == ""
    assert expected <= set(run.stdout.split())
