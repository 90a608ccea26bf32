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


def test_every_verb_has_an_entry(build, verbs, source):
    """Of a group of verbs, such as bench, each has its own."""
    page = (source / "docs/man/drarun.1").read_text().partition(".Ss Verbs")[2].partition("\n.Sh ")[0]
    entries = {name for line in re.findall(r"^\.It (Cm .*)$", page, re.M) for name in re.findall(r"(?:^|, )Cm ([a-z]+)", line)}
    assert len(verbs) > 20 and entries == {*verbs, "help", "version", "completion"}


@pytest.mark.parametrize("launcher", ["mpirun", "mpiexec", "srun", "horovodrun"])
def test_page_of_other_launchers(build, source, launcher):
    """docs/other-launchers.md holds what "drarun help mpirun" prints: the parser's own table."""
    table = subprocess.run([build / "bin/drarun", "help", launcher], capture_output=True, text=True, check=True).stdout
    page = (source / "docs/other-launchers.md").read_text()
    assert table.count("\n| ") > 40 and table in page, f"paste what 'drarun help {launcher}' prints into the page"


def test_page_of_torchrun(build, source):
    table = subprocess.run([build / "bin/drarun", "help", "torchrun"], capture_output=True, text=True, check=True).stdout
    page = (source / "docs/other-launchers.md").read_text()
    assert table.count("\n| ") == 5 and table.strip() in page, "paste what 'drarun help torchrun' prints into the page"


def test_every_exit_status_has_an_entry(source):
    """Of ours: each kind of error ends with one."""
    statuses = set(re.findall(r"\[DRARUN_ERR_\w+\] = \{\"[\w-]+\",\s*(\d+),", (source / "lib/base/error.c").read_text()))
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


def test_pages_of_the_verbs(build, source, tmp_path):
    """scripts/verb-pages writes them from the tables of the program: each verb has one."""
    subprocess.run([build / "bin/verb-pages", tmp_path], check=True)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {"drarun-run.1", "drarun-join.1", "drarun-bench-judge.1", "verbs.md"} <= set(written) and len(written) > 24
    for name, text in written.items():
        there = source / "docs" / ("" if name == "verbs.md" else "man") / name
        assert there.read_text() == text, f"scripts/verb-pages writes {there}"
    if shutil.which("mandoc"):
        run = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *sorted(tmp_path.glob("*.1"))], capture_output=True, text=True)
        assert run.stdout == "" and run.returncode == 0


def rows_of_messages(text):
    """[[code, ..., meaning, what to do]]"""
    return [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| `")]


def test_page_of_the_messages(build, source, tmp_path):
    """scripts/message-page writes it from the tables beside the code; no row lacks a meaning or what to do."""
    subprocess.run([build / "bin/message-page", tmp_path / "messages.md"], check=True)
    text = (tmp_path / "messages.md").read_text()
    assert (source / "docs/messages.md").read_text() == text, "scripts/message-page writes docs/messages.md"
    rows = rows_of_messages(text)
    assert len(rows) > 120 and all(len(row) in (3, 4) and row[-2] and row[-1] for row in rows) and "(null)" not in text
    assert {"`NO_RDMA_NIC`", "`MEMLOCK`", "`no-init`, `NoInit`", "`node-lost`", "`TcpFallback`", "`NameInUse`", "`76`"} <= {row[0] for row in rows}


def test_help_of_a_code(build, source):
    """drarun help tells each row of the page, in any case of letters; no code is the name of a verb or of another launcher."""
    for row in rows_of_messages((source / "docs/messages.md").read_text()):
        for code in re.findall(r"`([^`]+)`", row[0]):
            said = subprocess.run([build / "bin/drarun", "help", code.lower()], capture_output=True, text=True, check=True).stdout
            assert f"  meaning: {row[-2]}\n  what to do: {row[-1]}\n" in said.replace("|", "\\|").replace("<", "\\<"), (code, said)


def test_help_of_the_status_of_checks(build, source):
    """1 is not only a rank's: the verbs that check something end with it."""
    said = subprocess.run([build / "bin/drarun", "help", "1"], capture_output=True, text=True, check=True).stdout
    page = (source / "docs/man/drarun.1").read_text().partition(".Sh EXIT STATUS")[2]
    for each in ("doctor", "accept", "bench"):
        assert each in said and each in page.partition(".It 1\n")[2].partition(".It ")[0]


@pytest.fixture(scope="module")
def verbs(build):
    screen = subprocess.run([build / "bin/drarun", "help"], capture_output=True, text=True, check=True).stdout
    return [each[:10].strip() for line in screen.splitlines()[2:-2] for each in (line[2:40], line[40:]) if line[0] == " " and each]


def options_of(build, verb):
    text = subprocess.run([build / "bin/drarun", verb, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text.partition("And those of drarun-bench")[0], re.M))


class Shell:
    """What TAB offers at the end of a line, without a terminal."""

    def __init__(self, name, build, folder):
        self.name, self.build, self.folder = name, build, folder
        (folder / "job.yaml").touch()
        (folder / "a file.yaml").touch()
        (folder / "drarun").write_text('#!/bin/sh\n[ "$*" = "list -o name" ] || exit 1\nprintf \'ours\\nother\\n$(touch${IFS}made)\\n*\\n\'\n')
        (folder / "kubectl").write_text('#!/bin/sh\n[ "$*" = "get namespaces -o name" ] || exit 1\nprintf \'namespace/train\\nnamespace/$(touch${IFS}made)\\nnamespace/*\\n\'\n')
        for file in ("drarun", "kubectl"):
            (folder / file).chmod(0o755)
        (folder / "script").write_text(subprocess.run([build / "bin/drarun", "completion", name], capture_output=True, text=True, check=True).stdout)

    def offered(self, line):
        split = line.split(" ")
        script = {
            "bash": f"source script; COMP_WORDS=({' '.join(map(repr, split))}); COMP_CWORD={len(split) - 1}; _drarun; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            "zsh": "compdef() {:}; _files() { print -l ${cur}*(N) }; _command_names() {:}\n"
                   "compadd() { shift; local each found=1; for each; do if [[ $each = ${cur}* ]]; then print -- $each; found=0; fi; done; return $found }\n"
                   f"source ./script; words=({' '.join(map(repr, split))}); CURRENT={len(split)}; _drarun",
            "fish": f"source script; complete -C {line!r}",
        }[self.name]
        run = subprocess.run([self.name, *(["--no-config"] if self.name == "fish" else []), "-c", script], capture_output=True, text=True, cwd=self.folder,
                             env={"PATH": f"{self.folder}:/usr/bin:/bin", "HOME": str(self.folder)})
        assert run.stderr == "", run
        return {each.partition("\t")[0] for each in run.stdout.splitlines()} - {""}


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def shell(request, build, tmp_path_factory):
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param}; run scripts/setup --test")
    return Shell(request.param, build, tmp_path_factory.mktemp(request.param))


def test_completion_knows_every_option(build, verbs, shell):
    for verb in verbs:
        offered = shell.offered(f"drarun {verb} --")
        assert {each for each in offered if each.startswith("--")} == options_of(build, verb), verb
    assert shell.offered("drarun --work") >= {"--workers"}


@pytest.mark.parametrize("line, some, none", [
    ("drarun vers", {"version"}, {"job.yaml", "validate"}),
    ("drarun val", {"validate"}, {"version"}),
    ("drarun -v val", {"validate"}, {"version"}),
    ("drarun --namespace x val", {"validate"}, {"version"}),
    ("drarun --bind ", {"none", "core", "numa"}, {"job.yaml"}),
    ("drarun run --launch e", {"env"}, {"pmix"}),
    ("drarun status ", {"ours", "other"}, {"job.yaml", "validate"}),
    ("drarun logs -f o", {"ours", "other"}, {"job.yaml"}),
    ("drarun cancel ours ot", {"other"}, {"ours"}),
    ("drarun list -o ", {"text", "wide", "json", "yaml", "name"}, {"ours"}),
    ("drarun list --namespace ", {"train"}, {"ours"}),
    ("drarun validate j", {"job.yaml"}, {"ours"}),
    ("drarun plan --slices j", {"job.yaml"}, {"ours"}),
    ("drarun completion ", {"bash", "zsh", "fish"}, {"ours"}),
    ("drarun help pl", {"plan"}, {"ours"}),
    ("drarun bench j", {"judge"}, {"ours"}),
    ("drarun init n", {"nccl-tests"}, {"job.yaml", "mpi"}),
    ("drarun import j", {"job.yaml"}, {"jobs"}),
    ("drarun -n 2 --lab", {"--label"}, set()),
    ("drarun -np 2 --mca btl self --lab", {"--label"}, set()),
    ("drarun -n 2 ./a --lab", set(), {"--label"}),
    ("drarun -n 2 ./a --bind ", set(), {"core"}),
    ("drarun run -x A=b --wd . ./a j", {"job.yaml"}, {"judge"}),
    ("drarun -n 1 ./a x : --lab", {"--label"}, set()),
    ("drarun run job.yaml --lab", {"--label"}, set()),
    ("drarun validate a", {"a file.yaml"}, set()),
])
def test_completion_of_a_line(shell, line, some, none):
    offered = shell.offered(line)
    assert some <= offered and not none & offered, offered


@pytest.mark.parametrize("line", ["drarun status ", "drarun list --namespace ", "drarun list -n "])
def test_completion_does_not_run_what_it_offers(shell, line):
    """A job's name, which anybody who may write a ConfigMap may have chosen, is no shell code."""
    assert {"$(touch${IFS}made)", "*"} <= shell.offered(line)
    assert not (shell.folder / "made").exists()


def test_page_of_the_job_spec(source):
    """docs/man/drajob.5 is made of the schema, which the parser is held against."""
    check = subprocess.run([source / "scripts/job-page", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr
