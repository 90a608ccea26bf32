# SPDX-License-Identifier: Apache-2.0
"""What the pages for users show is true: links lead somewhere, the commands that run on this machine print what stands there (numbers
aside), no command is on a page that is neither run by a test nor left out for a reason, and the pictures show what the programs print today."""
import ast
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest
import yaml

import test_chart
import test_cluster_tutorial
import test_examples
import test_release
from support import pages
from support.build import BUILD, SOURCE

LOCAL = "build/bin/drarun "  # how a page begins a command that needs this machine alone


def plain(text):
    """Without numbers, and without the name of the machine."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"(worker \d+ \(|rank \d+ on )[^\s:)]+", r"\1HOST", text))


def pattern(lines):
    """Of the whole output: a line "..." stands for any lines, also none."""
    return "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in lines)


COMMANDS = [each for each in pages.all_commands() if each.text.startswith(LOCAL)]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: f"{each.page}: {each.text}")
def test_commands_print_what_is_shown(drarun, command):
    """Where ranks run, numbers are those of a machine and a moment."""
    here = command.text.replace("build/bin/", f"{BUILD}/bin/")
    result = drarun("-c", f"exec 2>&1; {here}", program="/bin/bash", cwd=SOURCE)
    same = plain if " -n " in command.text else str
    assert re.fullmatch(pattern(same(line) for line in command.shown), "".join(same(line) + "\n" for line in result.out.splitlines())), result


def test_every_command_is_run_or_left_out():
    """By one of the tests that read pages, or with its reason in the list of support/pages.py, which names nothing else."""
    found = {(each.page, each.text) for each in pages.all_commands()}
    run = {(each.page, each.text) for each in (*COMMANDS, *test_chart.typed_of_pages(), *test_cluster_tutorial.typed(), *test_release.typed_of_page())} | {*test_examples.typed()}
    left = {(page, text) for page, texts in pages.LEFT_OUT.items() for text in texts}
    missing, stale, twice = found - run - left, (run | left) - found, run & left
    assert not missing, "run them in a test, or say in LEFT_OUT of support/pages.py why not"
    assert not stale, "no page has them any more"
    assert not twice, "LEFT_OUT of support/pages.py says that they are not run, but they are"
    assert len(COMMANDS) >= 12 and len(run) >= 50  # the reader of blocks still finds them


def test_blocks_that_are_not_typed_are_there():
    firsts = {page: [lines[0].lstrip() for lines in pages.blocks(page)] for page in pages.NOT_TYPED}
    assert all(any(first.startswith(each) for first in firsts[page]) for page, known in pages.NOT_TYPED.items() for each in known)


def test_samples_of_the_node_plugin(drarun, tmp_path):
    """The claim is one that the shipped configuration, which has no address plan, lets through; the job is whole."""
    texts = ["\n".join(lines) for lines in pages.blocks("docs/node-plugin.md")]
    claim, _ = next([*yaml.safe_load_all(text)] for text in texts if text.startswith("apiVersion: resource.k8s.io"))
    config, = claim["spec"]["devices"]["config"]
    assert {*config["opaque"]["parameters"]} == {"interface"} and {*config["opaque"]["parameters"]["interface"]} <= {"name", "mtu"}
    (tmp_path / "job.yaml").write_text(next(text for text in texts if text.startswith("workers:")))
    drarun("validate", tmp_path / "job.yaml").ok()


def test_setup_brings_what_tests_ask_it_for():
    """What a test says that scripts/setup installs is in its list: tests/skips.txt does not know that reason."""
    texts = "".join(path.read_text() for path in sorted((SOURCE / "tests").rglob("*.py")))
    asked = set(re.findall(r'"no ([a-z][\w.+-]*)(?: when this was built)?[;:] (?:run )?scripts/setup --test', texts))
    package = {"busybox": "busybox-static", "mkfs.ext4": "e2fsprogs"}
    brought = subprocess.run([SOURCE / "scripts/setup", "--list", "--test"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert len(asked) >= 8 and {package.get(each, each) for each in asked} <= set(brought), asked


def test_reasons_name_tests():
    """A test that does what a page says in another way is there."""
    wrong = []
    for page, texts in pages.LEFT_OUT.items():
        for text, reason in texts.items():
            for file, name in re.findall(r"\b(test_\w+\.py)(?:::(\w+))?", reason):
                path = SOURCE / "tests" / file
                tree = ast.parse(path.read_text()) if path.exists() else None
                if not tree or name and name not in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}:
                    wrong.append(f"{page}: {text}: {reason}")
    assert not wrong


@pytest.mark.parametrize("text,found", [
    ("    $ drarun -n 2 a   # comment; and: drarun list\n    out\n", [("drarun -n 2 a", []), ("drarun list", ["out"])]),
    ("    cd a && make b \\\n        c=1\n", [("cd a", []), ("make b c=1", [])]),
    ("    X=1 python3 - <<EOF\n    print()\n    EOF\n    exit\n", [("X=1 python3 - <<EOF", []), ("exit", [])]),
    ("1. so:\n\n        scripts/test\n\n2. then\n    scripts/none\n", [("scripts/test", [])]),
    ("    kind: DraJob\n\n```yaml\n    make\n```\n", []),
])
def test_reader_of_blocks(tmp_path, monkeypatch, text, found):
    (tmp_path / "page.md").write_text(f"# Page\n\n{text}")
    monkeypatch.setattr(pages, "SOURCE", tmp_path)
    assert [(each.text, each.shown) for each in pages.commands("page.md")] == found


@pytest.mark.parametrize("text", ["    sometool --option\n", "```\nmake\n```\n"])
def test_block_of_no_known_kind(tmp_path, monkeypatch, text):
    (tmp_path / "page.md").write_text(f"# Page\n\n{text}")
    monkeypatch.setattr(pages, "SOURCE", tmp_path)
    with pytest.raises(AssertionError, match="page.md: "):
        pages.commands("page.md")


def anchors(text):
    """Of a page's headings, as forges and the site make them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    titles = (re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", each).lower() for each in re.findall(r"^#+ (.*)$", text, re.M))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", each.strip())) for each in titles}


@pytest.mark.parametrize("page", pages.pages())
def test_links_lead_somewhere(page):
    text, wrong = (SOURCE / page).read_text(), []
    for target, _, anchor in (each.partition("#") for each in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (SOURCE / page).parent / target if target else SOURCE / page
        if not path.exists() or anchor and anchor not in anchors(path.read_text()):
            wrong.append(f"{target}#{anchor}" if anchor else target)
    assert not wrong, f"{page}: {wrong}"


TOPS = ("benchmarks", "build", "cmake", "deploy", "docs", "examples", "include", "jobs", "launcher", "lib", "plugin", "python", "scripts", "tests", "worker")


def test_guide_for_developers_names_what_is_there():
    """Its paths, where words in capitals stand for any name; its tests, and other names of the code."""
    page = SOURCE / "docs/developing.md"
    code = (inline or line.partition(" #")[0] for inline, line in re.findall(r"`([^`]+)`|^    (.*)$", page.read_text(), re.M))
    words = {word.rstrip("/") for each in code for word in each.split()}
    paths = {word for word in words if re.match(rf"({'|'.join(TOPS)}|FOLDER)/", word)}
    patterns = {path: re.sub("MACHINE|NAME|NN", "*", path.replace("FOLDER", "[jlpw]*/*")) for path in paths}
    patterns = {path: each for path, each in patterns.items() if not each.startswith("build/tests/*")}
    wrong = [path for path, each in patterns.items() if not next((BUILD if each.startswith("build/") else SOURCE).glob(each.removeprefix("build/")), None)]

    sources = [path for top in TOPS if top != "build" for path in (SOURCE / top).rglob("*") if path.suffix in (".c", ".h", ".py", ".cmake") or path.name == "CMakeLists.txt"]
    known = {word for path in sources for word in (path.stem, *re.findall(r"\w+", path.read_text()))}
    defined = {name for path in (SOURCE / "tests").glob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)}
    names = {word.removeprefix("unit.") for word in words - paths if re.fullmatch(r"(unit\.)?\w+_\w+", word)}
    wrong += [name for name in names if name not in (defined if name.startswith("test_") else known)]
    assert len(paths) > 60 and len(names) > 30 and not wrong, f"{page.name}: {sorted(wrong)}: no such file, test or name"


def test_job_of_the_readme_is_the_example(source):
    block, = re.findall(r"\n\n((?:    .*\n)*    kind: DraJob\n(?:    .*\n)*)", (source / "README.md").read_text())
    text = "".join(line[4:] for line in block.splitlines(True))
    example = (source / "examples/jobs/two-by-two.yaml").read_text()
    assert text in re.sub(r"^#.*\n", "", example, flags=re.M).replace("    align: preferred\n", "")


def test_first_job_is_the_example(source):
    assert test_cluster_tutorial.job_of_the_page() == re.sub(r"^#.*\n", "", (source / "examples/jobs/hello.yaml").read_text(), flags=re.M)


def test_picture_is_what_plan_draws(drarun, source):
    drawn = drarun("plan", source / "examples/jobs/two-by-two.yaml", "--slices", source / "examples/clusters/a4-two-nodes.json", "-o", "svg").ok().out
    assert drawn == (source / "docs/pictures/plan.svg").read_text(), "make it anew: drarun plan ... -o svg > docs/pictures/plan.svg"


def test_picture_is_what_bench_report_draws(drarun, source):
    drawn = drarun("bench", "report", "-o", "svg", source / "docs/bench/nccl-tests.txt").ok().out
    assert drawn == (source / "docs/pictures/bandwidth.svg").read_text(), "make it anew: drarun bench report -o svg ... > docs/pictures/bandwidth.svg"


def by_command(lines):
    """[(command, lines of its output)] of a session."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_recording_is_complete_without_its_animation(source):
    """Some viewers have none, and some readers want none: text may be hidden by the animation alone."""
    style = re.search(r"<style>(.*?)</style>", (source / "docs/pictures/first-minute.svg").read_text(), re.S)[1]
    still = re.sub(r"@keyframes \w+\{(?:[^{}]*\{[^{}]*\})*\}", "", style)
    assert "opacity" in style and "opacity" not in still and "@media (prefers-reduced-motion:reduce){.l,.m{animation:none}}" in still


def test_recording_is_what_its_commands_print(drarun, source):
    """In one shell, in their order. Where ranks run, numbers are those of a machine and a moment, and so is where a long line is broken."""
    picture = xml.fromstring((source / "docs/pictures/first-minute.svg").read_text())
    lines = [(each.text, "t" in each.get("class").split()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    recorded = by_command(text for text, _ in lines)
    assert [text for text, typed in lines if typed] == [f"$ {command}" for command, _ in recorded]
    assert [command for command, _ in recorded] == [
        line for line in (source / "docs/pictures/first-minute.txt").read_text().splitlines() if line and line[0] != "#"], "make it anew: scripts/record"
    now = by_command(drarun("--text", program=source / "scripts/record", env={"DRARUN_BUILD": BUILD}).ok().out.splitlines())
    for (command, old), (again, new) in zip(recorded, now, strict=True):
        if " -n " in command:
            old, new = plain("".join(old)), plain("".join(new))
        assert (command, old) == (again, new), "make it anew: scripts/record"
