# SPDX-License-Identifier: Apache-2.0
"""The programs that install packages, choose tests, make mutants, add up coverage, compare versions, read workflows, judge commits, wrap
Markdown, check borders and walks, and build an earlier release."""
import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest
import yaml

from support.build import BUILD, SOURCE

sys.path.insert(0, str(SOURCE / "scripts/lib"))
import borders  # noqa: E402
import components  # noqa: E402
import coverage_table  # noqa: E402
import executed  # noqa: E402
import mutants  # noqa: E402
import select_tests  # noqa: E402
import version  # noqa: E402
import walks  # noqa: E402
import workflows  # noqa: E402
import wrap_markdown  # noqa: E402


@pytest.fixture(scope="module")
def selection():
    return select_tests.Selection(BUILD)


@pytest.mark.parametrize("path,has,lacks", [
    ("jobs/gang/gang.c", "unit.gang_test unit.gang_play_test node.test_cluster_gang", "unit.spec_test unit.cel_test mpi.test_mpi worker.test_pmix"),
    ("jobs/gang/gang_private.h", "unit.gang_test", "unit.spec_test"),
    ("launcher/cluster/follow/log.c", "cli.test_follow cli.test_follow_reader cli.test_lead node.test_cluster_faults", "unit.spec_test cli.test_output"),
    ("jobs/gang/test/gang_test.c", "unit.gang_test", "unit.gang_play_test cli.test_render"),
    ("lib/cel/fuzz/cel_fuzz.c", "fuzz.cel", "unit.cel_test"),
    ("worker/pmi1/kvs.c", "unit.pmi1_test fuzz.pmi1 worker.test_pmix mpi.test_mpi", "unit.gang_test plugin.test_attach"),
    ("plugin/discover/inventory.c", "unit.plugin_inventory_test cluster.test_plugin_slices", "cli.test_output unit.gang_test"),
    ("jobs/manifests/crd.json", "unit.crd_test", "unit.hang_test"),  # by the file that is generated from it
    ("lib/wire/wire.proto", "unit.hello_test worker.test_agents", "unit.cel_test"),
    ("docs/schema/drajob-v1alpha1.json", "unit.spec_schema_test", "unit.gang_test"),  # by an argument
    ("tests/test_render.py", "cli.test_render", "cli.test_plan"),
    ("tests/test_cluster_python.py", "node.test_cluster_jobs", "cli.test_python"),  # one program runs both
    ("tests/support/vm.py", "vm.test_vm vm.test_plug_guest", "cli.test_render"),
    ("tests/support/nodes.py", "harness.test_harness", "cli.test_validate"),  # by a fixture
    ("tests/programs/pmix_client.c", "worker.test_pmix", "cli.test_render"),
    ("tests/regress/17-judge-libfabric-over-tcp/log.txt", "cli.test_field_judge", "cli.test_render"),
    ("docs/man/drarun.1", "cli.test_man", "unit.gang_test"),
    ("README.md", "", "cli.test_man"),
    ("scripts/release", "harness.test_release", "cli.test_man"),
])
def test_selected(selection, path, has, lacks):
    names = selection.of(SOURCE / path)
    assert set(has.split()) <= names
    assert not names & set(lacks.split())


def test_selection_of_a_folder_is_that_of_its_files(selection):
    assert selection.of(SOURCE / "lib/cel") >= selection.of(SOURCE / "lib/cel/parser.c") | {"fuzz.cel"}


def test_every_file_is_known_to_the_selection(selection):
    for name in subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        selection.of(SOURCE / name)


@pytest.mark.parametrize("program,pattern", select_tests.PROGRAMS.items())
def test_programs_of_the_selection_exist(selection, program, pattern):
    assert (BUILD / program).exists()
    assert selection.tests.matching(pattern)


def select(*words):
    return subprocess.run([sys.executable, SOURCE / "scripts/lib/select_tests.py", *words],
                          cwd=SOURCE, capture_output=True, text=True, check=False)


def test_selection_of_several_is_printed(selection):
    result = select(BUILD, "jobs/gang/gang.c", "tests/test_render.py")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == sorted(selection.of(SOURCE / "jobs/gang/gang.c") | {"cli.test_render"})


def test_unknown_path_is_named(selection):
    result = select(BUILD, "jobs/gang/gang.c", "jobs/nothing.c", "/etc/passwd")
    assert (result.returncode, result.stdout) == (66, "")
    assert [line.split(":")[1:3] for line in result.stderr.splitlines()] == [
        [" jobs/nothing.c", f" no such file, and none of which {BUILD} was built"], [" /etc/passwd", f" not a file of {SOURCE}"]]


def test_selection_needs_a_build(tmp_path):
    result = select(tmp_path, "jobs/gang/gang.c")
    assert (result.returncode, result.stdout) == (66, "")
    assert f"{tmp_path}: not a build tree" in result.stderr


CODE = """\
#define TWO 2 /* not 3 */
static int table[4] = {1, 2};

/* a + b */
static int f(const char *p, int n)
{
    char text[512]; // n + 1
    struct pair x = {0};
    assert(n > 0);
    if (f("a < b", n & 1))
        n++;
    return n - 1;
}
"""


def test_mutants_change_code_and_nothing_else():
    found = {(CODE[start:end], new) for start, end, replacements in mutants.sites(CODE) for new in replacements}
    assert found == {('(f("a < b", n & 1))', '(!(f(       , n & 1)))'), ("&", "|"), ("1", "2"), ("1", "0"), ("++", "--"), ("n - 1", "0"), ("-", "+")}


COUNTED = """\
#include <stdlib.h>
static int twice(int n)
{
    return n
           + n;
}
int main(int argc, char **argv)
{
    if (argc > 1)
        return twice(atoi(argv[1]));
    return 0;
}
"""


def test_lines_that_a_test_executes(tmp_path):
    """By its own counts alone; a line without code belongs to the one before it."""
    (tmp_path / "build").mkdir()
    (tmp_path / "twice.c").write_text(COUNTED)
    subprocess.run(["gcc", "--coverage", "-O0", "-c", tmp_path / "twice.c", "-o", "twice.c.o"], cwd=tmp_path / "build", check=True)
    subprocess.run(["gcc", "--coverage", "twice.c.o", "-o", "twice"], cwd=tmp_path / "build", check=True)
    for name, arguments in ("with", ["0"]), ("without", []):
        subprocess.run([tmp_path / "build/twice", *arguments], check=True)
        (tmp_path / "counts" / name).mkdir(parents=True)
        (tmp_path / "build/twice.c.gcda").rename(tmp_path / "counts" / name / "twice.c.gcda")
    (tmp_path / "counts/neither").mkdir()
    found = executed.Executed(tmp_path / "counts", tmp_path / "build")
    names = ["with", "without", "neither"]
    assert found.tests_of(names, ["twice.c.o"], "src/twice.c", 9) == {"with", "without"}
    assert found.tests_of(names, ["twice.c.o"], "src/twice.c", 4) == {"with"}
    assert found.tests_of(names, ["twice.c.o"], "src/twice.c", 5) == {"with"}
    assert found.tests_of(names, ["twice.c.o"], "src/twice.c", 11) == {"without"}
    assert found.tests_of(names, ["other.c.o"], "src/twice.c", 9) == set()


def test_mutants_are_the_same_for_a_seed():
    def first(seed):
        number, found = mutants.draw(SOURCE, seed, 3, "lib/base")["lib/base"]
        assert number == 3
        return [next(found) for _ in range(3)]
    assert first(1) == first(1) != first(2)


def test_mutant_applies_to_its_line():
    number, found = mutants.draw(SOURCE, 1, 1, "lib/base/buf.c")["lib/base/buf.c"]
    mutant = next(found)
    source = (SOURCE / mutant.file).read_text()
    old, new = source.splitlines(), mutant.apply(source).splitlines()
    assert [i for i, (a, b) in enumerate(zip(old, new), 1) if a != b] == [mutant.line]
    assert (old[mutant.line - 1].strip(), new[mutant.line - 1].strip()) == (mutant.before, mutant.after)


def test_equivalent_mutants_are_not_drawn(tmp_path):
    mutant = next(mutants.draw(SOURCE, 1, 1, "lib/base/buf.c")["lib/base/buf.c"][1])
    listed = tmp_path / "list"
    listed.write_text(f"# a comment\n{mutant}\nwhy: nobody sees it\n")
    known = mutants.read_equivalent(listed)
    assert known == {mutant.key(): "nobody sees it"}
    assert mutant not in mutants.draw(SOURCE, 1, 1, "lib/base/buf.c", known)["lib/base/buf.c"][1]
    listed.write_text("lib/base/buf.c:1\n- a\nwhy: no new line\n")
    with pytest.raises(ValueError, match=":3: 'why:' needs"):
        mutants.read_equivalent(listed)


def test_equivalent_mutants_are_of_this_tree():
    """A line that was changed since needs a new look."""
    for (file, before, _), _ in mutants.read_equivalent(SOURCE / "tests/mutants-equivalent.txt").items():
        assert before in map(str.strip, (SOURCE / file).read_text().splitlines()), f"{file}: no line {before!r}"


def test_mutants_meet_the_gate_first(selection):
    programs = {"unit.a": ({"unit", "lib"}, set()), "cli.b": ({"cli", "gate"}, {"b.py"}), "worker.c": ({"worker"}, {"c.py"}), "node.d": ({"node"}, {"d.py"}),
                "gate.c": ({"gate"}, {"c.py"}), "gate.d": ({"gate"}, {"c.py", "d.py"}), "timed.c": ({"timed"}, {"c.py"}), "mpi.e": ({"mpi"}, {"e.py"})}
    assert mutants.steps({"unit.a", "cli.b", "worker.c", "node.d", "timed.c"}, programs) == ({"unit.a"}, {"cli.b", "gate.c"}, {"worker.c"})
    assert mutants.steps(set(), programs) == (set(), set(), set())
    real = {name: (set(selection.tests.labels[name]), {word for word in command if word.endswith(".py")})
            for name, command in selection.tests.commands.items()}
    unit, gate, proof = mutants.steps(selection.of(SOURCE / "worker/pmi1/kvs.c"), real)
    assert "unit.pmi1_test" in unit and {"gate.agents", "gate.mpi"} <= gate and {"worker.test_agents", "mpi.test_mpi"} <= proof
    assert not any(name.startswith(("node.", "vm.", "timed.")) for name in unit | gate | proof)


def test_coverage_adds_up():
    counted = dict(line_covered=1, line_total=2, branch_covered=0, branch_total=3)
    files = [dict(counted, filename=name) for name in ("lib/cel/a.c", "lib/cel/b.c", "jobs/a.c", "worker/pmix/a.c")]
    rows = [line.split() for line in coverage_table.table(files)]
    assert [row[0] for row in rows] == ["folder", "jobs", "lib/cel", "worker/pmix", "total"]
    assert rows[2] == ["lib/cel", "2/4", "50.0", "%", "0/6", "0.0", "%"]
    assert rows[4][1:] == ["4/8", "50.0", "%", "0/12", "0.0", "%"]


@pytest.fixture
def versioned(tmp_path):
    """A tree of the files that have a version."""
    for name in {"CMakeLists.txt", *(name for name, _ in version.PLACES)}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, tmp_path / name)
    return tmp_path


def change(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_versions_are_compared_with_their_source(versioned):
    right = version.version(versioned)
    assert version.others(versioned) == []
    chart, page = versioned / "deploy/chart/Chart.yaml", versioned / "docs/page.md"
    change(chart, f"appVersion: {right}", "appVersion: 9.9.9")
    page.write_text(f"one ghcr.io/drarun/drarun:{right}\ntwo ghcr.io/drarun/drarun:9.9.8\n")
    line = chart.read_text().splitlines().index("appVersion: 9.9.9") + 1
    assert sorted(version.others(versioned)) == [(chart, line, "9.9.9"), (page, 2, "9.9.8")]
    version.write(versioned)
    assert version.others(versioned) == [] and f"appVersion: {right}\n" in chart.read_text()


def test_new_version_goes_everywhere(versioned):
    change(versioned / "CMakeLists.txt", f"VERSION {version.version()} ", "VERSION 9.8.7 ")
    assert {str(path.relative_to(versioned)) for path, _, _ in version.others(versioned)} == {name for name, _ in version.PLACES}
    version.write(versioned)
    assert version.version(versioned) == "9.8.7" and version.others(versioned) == []


@pytest.mark.parametrize("base,last", [
    ("0.9.9", None), ("0.9.10", "0.9.10"), ("0.10.0", "0.10.0"), ("1.0.0", "1.0.0"),
])
def test_version_after_a_release_is_above_it(versioned, base, last):
    change(versioned / "CMakeLists.txt", f"VERSION {version.version()} ", "VERSION 0.9.10 ")
    (versioned / "tests").mkdir()
    (versioned / version.RELEASED).write_text(f"# 9.9.9 in a comment\n{base} {BASE}\n")
    assert version.released(versioned) == last


def test_file_that_lost_its_version_is_named(versioned):
    change(versioned / "deploy/plugin.yaml", f"ghcr.io/drarun/drarun:{version.version()}", "ghcr.io/drarun/drarun")
    with pytest.raises(version.Missing, match=r"^deploy/plugin\.yaml: expected the version "):
        version.others(versioned)


@pytest.mark.parametrize("text,says", [
    (f"jobs:\n  a:\n    steps:\n    - uses: actions/checkout@{'0a' * 20} # v4\n    - uses: github/codeql-action/init@{'1b' * 20}\n    - run: scripts/good --all\n    - run: |\n        scripts/good .ci/run\n", []),
    ("jobs:\n  a:\n    steps:\n    - uses: actions/checkout@v4\n", [".github/workflows/x.yml:4: expected the 40 digits of an action's commit behind @, got actions/checkout@v4"]),
    ("jobs: [\n", [".github/workflows/x.yml: not YAML: "]),
    ("jobs:\n  a:\n    steps:\n    - run: scripts/gone --all\n", [".github/workflows/x.yml:4: scripts/gone: no such script"]),
    ("jobs:\n  a:\n    steps:\n    - run: scripts/good\n    - run: |\n        scripts/good\n\n        make all\n",
     [".github/workflows/x.yml:8: expected a script of this tree, got make: put what it does into one"]),
    ("jobs:\n  a:\n    steps:\n    - run: .ci/run debian:12 scripts/bad\n", [".github/workflows/x.yml:4: scripts/bad: cannot be executed"]),
    ("jobs:\n  a:\n    steps:\n    - run: scripts/../../bin/sh\n", [".github/workflows/x.yml:4: expected a script of this tree, got scripts/../../bin/sh: "]),
])
def test_workflows_only_call_scripts(tmp_path, text, says):
    for name, mode in (("scripts/good", 0o755), (".ci/run", 0o755), ("scripts/bad", 0o644), (".github/workflows/x.yml", 0o644)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    found = workflows.findings(tmp_path)
    assert len(found) == len(says) and all(each.startswith(begin) for each, begin in zip(found, says)), found


def test_other_files_of_the_forge_are_yaml(tmp_path):
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/dependabot.yml").write_text("run: make\n")
    assert workflows.findings(tmp_path) == []
    (tmp_path / ".github/dependabot.yml").write_text("a: b: c\n")
    assert len(workflows.findings(tmp_path)) == 1


def test_workflows_are_there():
    """The check of scripts/lint has something to check."""
    assert len([*(SOURCE / ".github/workflows").glob("*.yml")]) >= 6 and workflows.findings() == []


def test_hooks_call_scripts_of_the_tree():
    """pre-commit fetches nothing: all hooks are local, and programs of ours."""
    repositories = yaml.safe_load((SOURCE / ".pre-commit-config.yaml").read_text())["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    entries = [hook["entry"].split() for hook in repositories[0]["hooks"]]
    assert entries == [["scripts/format", "--check"], ["scripts/lint"], ["scripts/tidy"], ["scripts/check-commits", "--message"]]
    assert all(os.access(SOURCE / entry[0], os.X_OK) for entry in entries)


COMMITS = SOURCE / "scripts/check-commits"
GOOD = "plan: name the file\n\nNobody knew which one it was.\n"


class Repository:
    """Of a test's own, with a branch main of one commit and the branch work that is checked out."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("tests: begin\n\nSomething must be there.\n", old="".join(f"line {i}\n" for i in range(3000)))
        self.git("checkout", "-q", "-b", "work")

    def git(self, *words):
        options = "user.name=test", "user.email=test@example.org", "commit.gpgsign=false", "core.hooksPath=/dev/null"
        return subprocess.run(["git", *(word for each in options for word in ("-c", each)), *map(str, words)], cwd=self.folder,
                              capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, message, **files):
        """Files by name, "__" for a slash and "_dot_" for a point. Returns the commit's short name."""
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", message)
        return self.git("rev-parse", "HEAD")[:10]

    def check(self, *words):
        return subprocess.run([COMMITS, *map(str, words)], cwd=self.folder, capture_output=True, text=True)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


MESSAGES = [
    (GOOD, []),
    ("plan, lib/kube: name the file\n\nWhy.\n\nSigned-off-by: A <a@example.org>\n", []),
    (f"plan: {'x' * 54}\n\nWhy.\n", []),
    (f"plan: {'x' * 55}\n\nWhy.\n", ["the subject has 61 characters, and at most 60 are allowed"]),
    ("plan: name the file.\n\nWhy.\n", ["the subject ends with a full stop"]),
    ("Name the file\n\nWhy.\n", ["the subject has no area"]),
    ("plan name the file\n\nWhy.\n", ["the subject has no area"]),
    ("plan:name the file\n\nWhy.\n", ["the subject has no area"]),
    ("plan: name the file\n", ["the message has no body"]),
    ("plan: name the file\n\nSigned-off-by: A <a@example.org>\n", ["the message has no body"]),
    ("plan: name the file\nWhy.\n", ["line 2 of the message is not blank"]),
    ("Name it.\n", ["the subject has no area", "the subject ends with a full stop", "the message has no body"]),
]


@pytest.mark.parametrize("message,says", MESSAGES)
def test_messages_of_commits(repository, message, says):
    name = repository.commit(message)
    run = repository.check("main..")
    begins = [f'check-commits: {name} "{message.splitlines()[0]}": {each}' for each in says]
    found = run.stdout.splitlines() if says else []
    assert (run.returncode, run.stderr, len(found)) == (1 if says else 0, "", len(says)), run
    assert all(line.startswith(begin) for line, begin in zip(found, begins)), run.stdout


@pytest.mark.parametrize("message,says", MESSAGES)
def test_message_before_its_commit(repository, message, says):
    """As a hook of git gets it: with comments, and with the diff of commit --verbose."""
    file = repository.folder / "message"
    file.write_text(f"{message}# Please enter the message.\n# ------------------------ >8 ------------------------\ndiff of a file\n")
    run = repository.check("--message", file)
    assert (run.returncode, run.stderr) == (1 if says else 0, ""), run
    assert [line.startswith(f'check-commits: {file} "{message.splitlines()[0]}": {each}') for line, each in zip(run.stdout.splitlines(), says, strict=True)
            ] == [True] * len(says), run.stdout


def test_message_of_what_is_put_into_another_commit(repository):
    file = repository.folder / "message"
    for text in ("fixup! plan: name the file\n", "squash! plan: name the file\n\nmore\n", "amend! plan: name the file\n"):
        file.write_text(text)
        assert repository.check("--message", file).returncode == 0
    name = repository.commit("fixup! plan: name the file\n")
    run = repository.check()
    assert run.returncode == 1 and run.stdout.startswith(f'check-commits: {name} "fixup! plan: name the file": the subject has no area'), run


def lines(number):
    return "".join(f"new {i}\n" for i in range(number))


@pytest.mark.parametrize("files,counted", [
    ({"a_dot_c": lines(1000)}, 0), ({"a_dot_c": lines(1001)}, 1001), ({"a_dot_c": lines(600), "b_dot_c": lines(500)}, 1100),
    ({"a_dot_c": lines(900), "tests__data__a_dot_json": lines(900)}, 0), ({"tests__helm__go_dot_sum": lines(2000)}, 0), ({"tests__helm__go_dot_sum_dot_c": lines(1001)}, 1001),
    ({"lib__cel__fuzz__corpus__cel__a": lines(2000)}, 0), ({"docs__man__drarun-plan_dot_1": lines(2000)}, 0),
    ({"docs__man__drarun-worker_dot_1": lines(1001)}, 1001), ({"lib__schema_dot_json": lines(1001)}, 1001),
])
def test_size_of_commits(repository, files, counted):
    name = repository.commit(GOOD, **files)
    run = repository.check("main..")
    assert run.returncode == (1 if counted else 0), run
    if counted:
        largest = max(files.items(), key=lambda each: len(each[1]))[0].replace("__", "/").replace("_dot_", ".")
        assert run.stdout.startswith(f'check-commits: {name} "plan: name the file": {counted} changed lines, and at most 1000 are allowed (most in {largest} '), run
        assert run.stdout.endswith("split the commit, or end its message with the line `Large-change: REASON`\n"), run


@pytest.mark.parametrize("trailer,taken", [
    ("Large-change: one table of the API", True), ("Signed-off-by: A <a@example.org>\nLarge-change: one table\n of the API", True),
    ("Large-change:", False), ("Large-change: ", False), ("large change: one table", False), ("Large-change: one table\nand more", False)])
def test_large_change_has_a_reason(repository, trailer, taken):
    repository.commit(f"{GOOD}\n{trailer}\n", a_dot_c=lines(1001))
    assert repository.check("main..").returncode == (0 if taken else 1)


def test_moves_count_what_changed_beside(repository):
    repository.git("mv", "old", "new")
    repository.commit(GOOD)
    assert repository.check("main..").returncode == 0
    (repository.folder / "moved").mkdir()
    repository.git("mv", "new", "moved/new")
    text = (repository.folder / "moved/new").read_text()
    repository.commit(GOOD, moved__new=text.replace("line 1", "other 1"))
    run = repository.check("HEAD~1..")
    assert run.returncode == 1 and ": 2222 changed lines" in run.stdout and "(most in moved/new 2222)" in run.stdout, run


def test_range_is_that_of_the_branch(repository):
    """Merges are passed over; a range that is not given begins at origin/main, or at main."""
    repository.git("checkout", "-q", "-b", "side")
    wrong = repository.commit("Wrong\n\nWhy.\n", side="side\n")
    repository.git("checkout", "-q", "work")
    repository.commit(GOOD, work="work\n")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge it", "side")
    run = repository.check()
    assert run.returncode == 1 and [line.split()[1] for line in run.stdout.splitlines()] == [wrong], run
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD~1")  # of which wrong is no part
    assert repository.check().stdout == run.stdout
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    run = repository.check()
    assert (run.returncode, run.stdout) == (0, "check-commits: nothing found in 0 commits of origin/main..\n")
    repository.git("branch", "-D", "main")
    repository.git("update-ref", "-d", "refs/remotes/origin/main")
    run = repository.check()
    assert (run.returncode, run.stdout) == (66, "") and "neither a branch origin/main nor a branch main: name a range" in run.stderr
    run = repository.check("nosuch..")
    assert (run.returncode, run.stdout) == (66, "") and "bad revision 'nosuch..'" in run.stderr


def test_uncounted_files_are_of_this_tree():
    """A row of the table whose files are gone would excuse others."""
    names = subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    table = runpy.run_path(str(COMMITS))["UNCOUNTED"]
    assert [pattern for pattern, why in table if not why or not any(re.fullmatch(pattern, name) for name in names)] == []


def editor_settings():
    """[(pattern of paths, {key: value})] of .editorconfig, in its order."""
    parts = {r"\*\*/": "(.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\{": "(", r"\}": ")", ",": "|"}
    found = []
    for line in (SOURCE / ".editorconfig").read_text().splitlines():
        if line.startswith("["):
            glob = line[1:-1]
            regex = re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], re.escape(glob))
            found.append((re.compile(regex if "/" in glob else f"(.*/)?({regex})"), {}))
        elif " = " in line and found:
            key, value = line.split(" = ")
            found[-1][1][key] = value
    return found


def test_editors_do_what_the_tree_has():
    """.editorconfig says of no file what it is not; its width of C is that of .clang-format, and that of Python holds nearly everywhere."""
    sections = editor_settings()
    style = dict(re.findall(r"^(\w+): (\d+)$", (SOURCE / ".clang-format").read_text(), re.M))
    wrong, used, python = [], set(), []
    for name in subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        has = {}
        for k, (pattern, settings) in enumerate(sections):
            if pattern.fullmatch(name):
                has |= settings
                used.add(k)
        data = (SOURCE / name).read_bytes() if (SOURCE / name).is_file() else b""
        if name.endswith((".c", ".h")) and "/corpus/" not in name:
            assert (has["max_line_length"], has["indent_size"]) == (style["ColumnLimit"], style["IndentWidth"]), name
        python += [len(line) for line in data.splitlines() if name.endswith(".py")]
        if not data or has["charset"] == "unset":
            continue
        lines = data.decode(has["charset"]).split("\n")
        wrong += [f"{name}: does not end with a new line"] if lines[-1] else []
        wrong += [f"{name}: ends lines with CR" for line in lines[:1] if line.endswith("\r")]
        wrong += [f"{name}:{k}: blanks at the end" for k, line in enumerate(lines, 1) if has["trim_trailing_whitespace"] == "true" and line != line.rstrip()]
        wrong += [f"{name}:{k}: a tab" for k, line in enumerate(lines, 1) if has["indent_style"] == "space" and line.startswith("\t")]
    assert wrong == [] and used == {*range(len(sections))}
    most = int(next(settings["max_line_length"] for pattern, settings in sections if pattern.fullmatch("x.py") and "max_line_length" in settings))
    assert sum(length > most for length in python) < len(python) / 50


# ---- tree ----

# A parser with its macros, a connection with its calls: each is one thing.
CIRCLES = [["lib/cel/macro.c", "lib/cel/parser.c"], ["plugin/rpc/rpc_call.c", "plugin/rpc/rpc_conn.c"]]


def test_files_call_in_one_direction():
    """By the symbols of all objects: a file calls its parts, and they never call it."""
    tree = runpy.run_path(str(SOURCE / "scripts/tree"))
    calls, _ = tree["calls"](BUILD)
    assert len(calls) > 700, sorted(calls)
    found = tree["circles"](calls)
    assert [each for each in found if each not in CIRCLES] == [], "let a file below both hold what they share"
    assert found == CIRCLES, "one that is gone leaves the list"


def test_functions_have_their_own_names():
    """Not that of an attribute before them, or of a macro that defines them."""
    tree = runpy.run_path(str(SOURCE / "scripts/tree"))
    text = ("CEL_FUNCTION(cel_to_bool)\n{\n}\n\n__attribute__((format(printf, 2, 3))) static int say(int a,\n    const char *format, ...)\n"
            "{\n    int x;\n}\n\nstatic const int list[] =\n{\n};\n")
    assert list(tree["functions"](text)) == [("cel_to_bool", 2), ("say", 3)]


def test_the_longest_file():
    """Of the C files: a header that is longer does not count."""
    tree = runpy.run_path(str(SOURCE / "scripts/tree"))
    assert tree["longest"]({"lib/a.c": "int x;\n", "lib/b.c": "int x;\nint y;\n", "lib/b.h": "int x;\n" * 9}) == "2 (lib/b.c)"


def function_text(name, lines=8):
    return "\n".join([f"int {name}(void)", "{", *(f"    call_of_{name}({i});" for i in range(lines)), "}", ""])


def test_what_came_since_a_commit(tmp_path):
    """Lines that only moved, in a file or to another, are not new; a moved file counts where it is now."""
    tree = runpy.run_path(str(SOURCE / "scripts/tree"))
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=b", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]
    subprocess.run([*git, "init", "-q"], check=True)
    files = {"launcher/a.c": function_text("one") + function_text("two"), "jobs/predict.c": function_text("three"), "jobs/test/x_test.c": "int x;\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "then"], check=True)
    tree["then_and_since"].__globals__.update(ROOT=tmp_path, THEN="HEAD")
    core, model = components.CORE, components.DRA
    assert tree["then_and_since"]() == ({core: 33}, {}, {})
    (tmp_path / "lib/dra").mkdir(parents=True)
    (tmp_path / "jobs/predict.c").rename(tmp_path / "lib/dra/predict.c")
    (tmp_path / "launcher/a.c").write_text(function_text("one").replace("call_of_one(3)", "changed(3)"))
    (tmp_path / "launcher/b.c").write_text(function_text("two") + "int fresh;\nint more;\n")
    subprocess.run([*git, "add", "-A"], check=True)
    assert tree["then_and_since"]() == ({core: 22, model: 11}, {core: 3}, {core: 2})
    tree["then_and_since"].__globals__.update(THEN="0" * 40)
    assert tree["then_and_since"]() is None


# ---- borders ----

ROOMS = {  # the second links the first through a library of others, which is not a target of ours
    "lib/low": "add_library(drarun_low STATIC x.c)\n",
    "lib/middle": "add_library(drarun_middle STATIC x.c)\ntarget_link_libraries(drarun_middle PUBLIC drarun_low drarun::curl)\n",
    "worker/top": "add_library(drarun_top STATIC x.c)\ntarget_link_libraries(drarun_top PUBLIC drarun_middle)\n",
    "benchmarks/tool": "add_executable(tool x.c)\ntarget_link_libraries(tool PRIVATE drarun_middle)\n",
    "launcher": "add_executable(drarun x.c)\ntarget_link_libraries(drarun PRIVATE drarun_top)\n",
}


@pytest.mark.parametrize("source, header, finding", [
    ("lib/middle/x.c", "lib/low/x.h", None),
    ("worker/top/x.c", "lib/low/x.h", None),
    ("benchmarks/tool/x.c", "lib/low/x.h", None),
    ("lib/low/private.c", "lib/low/x_private.h", None),
    ("lib/low/test/x_test.c", "worker/top/x.h", None),
    ("lib/low/x.c", "lib/middle/x.h", "lib/low/CMakeLists.txt does not link lib/middle/"),
    ("lib/middle/x.c", "worker/top/x.h", "lib/middle/CMakeLists.txt does not link worker/top/"),
    ("benchmarks/tool/x.c", "worker/top/x.h", "benchmarks/tool/CMakeLists.txt does not link worker/top/"),
    ("lib/middle/x.c", "lib/low/x_private.h", "which is only for lib/low/"),
    ("lib/middle/test/x_test.c", "lib/low/private.h", "which is only for lib/low/"),
])
def test_borders(tmp_path, source, header, finding):
    for room, text in ROOMS.items():
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "CMakeLists.txt").write_text(text)
    (tmp_path / source).parent.mkdir(exist_ok=True)
    (tmp_path / source).write_text(f'#include <stdio.h>\n#include "{header}"\n')
    found = list(borders.findings(tmp_path, [source]))
    assert not found if finding is None else len(found) == 1 and found[0].startswith(f"{source}: includes {header}, ") and finding in found[0], found


# ---- components ----


@pytest.mark.parametrize("source, header, finding", [
    ("jobs/spec/x.c", "lib/dra/slices.h", None),
    ("plugin/discover/x.c", "lib/cel/cel.h", None),
    ("plugin/discover/x.c", "lib/kube/watch.h", None),
    ("benchmarks/bench/x.c", "lib/nvml/library.h", None),
    ("launcher/bench/x.c", "launcher/run/run.h", None),
    ("lib/dra/x.c", "lib/doc/value.h", None),
    ("lib/dra/test/x_test.c", "jobs/spec/spec.h", None),
    ("lib/dra/x.c", "lib/kube/watch.h", "lib/dra/x.c (DRA model) includes lib/kube/watch.h (launcher core)"),
    ("lib/cel/x.c", "lib/nvml/library.h", "lib/cel/x.c (DRA model) includes lib/nvml/library.h (node plugin)"),
    ("plugin/attach/x.c", "jobs/spec/spec.h", "plugin/attach/x.c (node plugin) includes jobs/spec/spec.h (launcher core)"),
    ("plugin/attach/x.c", "lib/bench/runs.h", "plugin/attach/x.c (node plugin) includes lib/bench/runs.h (benchmark and acceptance)"),
    ("launcher/run/x.c", "launcher/bench/local.h", "launcher/run/x.c (launcher core) includes launcher/bench/local.h (benchmark and acceptance)"),
    ("launcher/verbs/verbs.c", "launcher/verbs/bench_judge.h",
     "launcher/verbs/verbs.c (launcher core) includes launcher/verbs/bench_judge.h (benchmark and acceptance)"),
    ("launcher/job/x.c", "lib/nvml/library.h", "launcher/job/x.c (launcher core) includes lib/nvml/library.h (node plugin)"),
])
def test_arrows_between_components(tmp_path, source, header, finding):
    (tmp_path / source).parent.mkdir(parents=True)
    (tmp_path / source).write_text(f'#include <stdio.h>\n#include "drarun/error.h"\n#include "{header}"\n')
    assert list(components.findings(tmp_path, [source])) == [finding][:finding is not None]


def test_contributing_names_the_components():
    page = (SOURCE / "CONTRIBUTING.md").read_text()
    rows = {row[1].split(" (")[0]: row[2] for row in re.finditer(r"^\| ([^|`]+) \| ([^|]+) \| [^|]+ \|$", page, re.M)}
    for component, begins in components.COMPONENTS:
        assert set(re.findall(r"`([^`]+)`", rows[component])) == set(begins), component


# ---- walks ----

WALK = """## A walk
2 files.

| | file | functions | passes on |
|---|---|---|---|
| 1 | `lib/base/buf.c` | `buf_add`, `buf_take` | text |
| 2 | `lib/base/strlist.c` | `add_take`, `strlist_add` | a list |
"""


@pytest.mark.parametrize("old, new, finding", [
    ("", "", None),
    ("`buf_take`", "`buf_took`", "row 1: lib/base/buf.c does not define buf_took"),
    ("`add_take`", "`strdup`", "row 2: lib/base/strlist.c does not define strdup"),  # it only calls it
    ("lib/base/buf.c", "lib/base/gone.c", "row 1: there is no lib/base/gone.c"),
    ("| 2 |", "| 3 |", "row 2 has the number 3"),
    ("2 files.", "3 files.", "the rows name 2 files"),
    ("2 files.", "1 files here, 2 for all.", None),
])
def test_walks(old, new, finding):
    assert list(walks.findings(WALK.replace(old, new))) == ([f"A walk: {finding}"] if finding else [])


# ---- wrap_markdown ----

WORDS = " ".join(["words"] * 30)  # 179 columns
FIRST, SECOND = " ".join(["words"] * 16), " ".join(["words"] * 14)


@pytest.mark.parametrize("text, made", [
    (f"{WORDS}\n", f"{FIRST}\n{SECOND}\n"),
    ("two\nlines\n\nand more\n", "two lines\n\nand more\n"),
    (f"- {WORDS}\n  more\n    - deeper\n", f"- {FIRST}\n  {SECOND} more\n    - deeper\n"),
    (f"> {WORDS}\n", f"> {FIRST}\n> {SECOND}\n"),
    (f"{FIRST} 1. word\n", f"{FIRST} 1.\nword\n"),  # no list begins
    (f"{FIRST} `one two three`\n", f"{FIRST}\n`one two three`\n"),
    (f"{FIRST} [one two](three)\n", f"{FIRST}\n[one two](three)\n"),
    ("a line  \nthat ends\n", "a line  \nthat ends\n"),
], ids=["long", "short", "item", "quote", "number", "code-span", "link", "break"])
def test_markdown_is_wrapped(text, made):
    assert wrap_markdown.wrapped(text) == made and wrap_markdown.wrapped(made) == made


@pytest.mark.parametrize("text", [
    f"# {WORDS}\n", f"| {WORDS} | |\n", f"```\n{WORDS}\n\n{WORDS}\n```\n", f"text\n\n    {WORDS}\n", f"<p>{WORDS}</p>\n", f"<!-- {WORDS}\n{WORDS} -->\n",
    f"[name]: https://example.com/ \"{WORDS}\"\n", f"---\ntitle: {WORDS}\n---\n", f"- item\n\n      {WORDS}\n",
], ids=["heading", "table", "fence", "code", "html", "comment", "definition", "front", "code-of-item"])
def test_what_is_no_paragraph_stays(text):
    assert wrap_markdown.wrapped(text) == text


def test_what_is_not_wrapped_is_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"good\n\n{WORDS}\n")
    words = [sys.executable, SOURCE / "scripts/lib/wrap_markdown.py", "--check", page]
    run = subprocess.run(words, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, f"{page}:3: the lines are not as scripts/format puts them, at most 100 columns\n")
    subprocess.run([*words[:2], page], check=True)
    assert subprocess.run(words).returncode == 0 and page.read_text() == f"good\n\n{FIRST}\n{SECOND}\n"


# ---- the release that tests of version skew run ----

BASE = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("clone,line,says", [
    (True, f"0.1.0 {BASE}", f"this clone has no commit {BASE} (release 0.1.0, tests/base-release): git fetch --unshallow"),
    (False, f"0.1.0 {BASE}", "is no clone of the repository, and release 0.1.0 is built from its history"),
    (True, "0.1.0 HEAD", "tests/base-release: expected one line 'VERSION COMMIT'"),
    (True, f"0.1.0 {BASE}\n0.2.0 {BASE}", "tests/base-release: expected one line 'VERSION COMMIT'"),
], ids=["no commit", "no clone", "no hash", "two lines"])
def test_earlier_release_that_cannot_be_built(tmp_path, clone, line, says):
    shutil.copytree(SOURCE / "scripts", tmp_path / "copy/scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "copy/tests").mkdir()
    (tmp_path / "copy/tests/base-release").write_text(f"# a comment\n{line}\n")
    if clone:
        subprocess.run(["git", "init", "--quiet", tmp_path / "copy"], check=True)
    env = {**os.environ, "DRARUN_CACHE": str(tmp_path / "cache"), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    run = subprocess.run([tmp_path / "copy/scripts/fetch-base"], env=env, capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout == "" and run.stderr.startswith("fetch-base: ") and says in run.stderr, run
    assert not list((tmp_path / "cache").glob("base-*"))


def test_packages_while_the_machine_installs_others(tmp_path):
    """As unattended-upgrades does for minutes after a start. On a machine without package lists, too."""
    apt = """#!/bin/sh
fail() { echo "E: $*" >&2; exit 100; }
case $* in
"-q update")
    echo update >>"$0.updates"
    [ -z "$UPDATES_FAIL" ] || fail "The list of sources could not be read."
    [ $(wc -l <"$0.updates") -gt 1 ] || fail "Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
    touch "$0.lists" ;;
*"-o DPkg::Lock::Timeout="*)
    [ -e "$0.lists" ] || fail "Unable to locate package ninja-build"
    echo "waited for: $*" >&2 ;;
*) fail "Could not get lock /var/lib/dpkg/lock-frontend." ;;
esac
"""
    for name, text in (("apt-get", apt), ("dpkg-query", "#!/bin/sh\nexit 1\n"), ("sudo", '#!/bin/sh\nexec "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def setup(**env):
        return subprocess.run([SOURCE / "scripts/setup", "--packages", "--build"], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **env})

    run = setup(UPDATES_FAIL="1")
    assert run.returncode == 1 and "E: The list of sources could not be read.\n" in run.stderr, run
    assert (tmp_path / "apt-get.updates").read_text() == "update\n"  # waiting would not help
    (tmp_path / "apt-get.updates").unlink()
    run = setup()
    assert run.returncode == 0 and re.search("^waited for: install .* ninja-build", run.stderr, re.M), run
    assert (tmp_path / "apt-get.updates").read_text() == "update\n" * 2
