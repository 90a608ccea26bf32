# SPDX-License-Identifier: Apache-2.0
"""What README.md and docs/README.md show is true: links lead somewhere, the commands that run on this machine print what stands
there (numbers aside), and the pictures show what the programs print today."""
import html
import re
import xml.etree.ElementTree as xml

import pytest

from support.build import BUILD, SOURCE

PAGES = ["README.md", "docs/README.md"]
LOCAL = "build/bin/drarun "  # how a page begins a command that needs this machine alone


def shown(page):
    """[(command, lines of its output)] of the blocks of a page that run here."""
    found = []
    for line in (SOURCE / page).read_text().splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
        elif line.startswith("    ") and found:
            found[-1][1].append(line[4:])
        elif found:
            found.append(("", []))
    return [(command, lines) for command, lines in found if command.startswith(LOCAL)]


def plain(text):
    """Without numbers, and without the name of the machine."""
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"worker (\d+) \(\S+\)", r"worker \1 (HOST)", text))


COMMANDS = [pytest.param(*each, id=f"{page}-{k}") for page in PAGES for k, each in enumerate(shown(page))]


@pytest.mark.parametrize("command,lines", COMMANDS)
def test_commands_print_what_is_shown(drarun, command, lines):
    """Where ranks run, numbers are those of a machine and a moment."""
    here = command.replace("build/bin/", f"{BUILD}/bin/")
    result = drarun("-c", f"exec 2>&1; {here}", program="/bin/bash", cwd=SOURCE)
    same = plain if " -n " in command else str
    assert [same(line) for line in result.out.splitlines()] == [same(line) for line in lines], result


def test_pages_show_commands():
    """The reader of blocks still finds them."""
    assert len(shown("README.md")) == 3 and len(shown("docs/README.md")) == 1


@pytest.mark.parametrize("page", PAGES + ["CONTRIBUTING.md", "docs/first-job.md", "docs/clusters.md", "docs/node-plugin.md", "docs/other-launchers.md"])
def test_links_lead_somewhere(page):
    folder = (SOURCE / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)", (SOURCE / page).read_text())
    missing = [target for target in targets if "://" not in target and not (folder / target).exists()]
    assert not missing, f"{page}: {missing}"


def test_job_of_the_readme_is_the_example(source):
    block, = re.findall(r"\n\n((?:    .*\n)*    kind: DraJob\n(?:    .*\n)*)", (source / "README.md").read_text())
    text = "".join(line[4:] for line in block.splitlines(True))
    example = (source / "examples/jobs/two-by-two.yaml").read_text()
    assert text in re.sub(r"^#.*\n", "", example, flags=re.M).replace("    align: preferred\n", "")


def test_picture_is_what_plan_draws(drarun, source):
    drawn = drarun("plan", source / "examples/jobs/two-by-two.yaml", "--slices", source / "examples/clusters/a4-two-nodes.json", "-o", "svg").ok().out
    assert drawn == (source / "docs/pictures/plan.svg").read_text(), "make it anew: drarun plan ... -o svg > docs/pictures/plan.svg"


def test_recording_is_of_its_commands(source):
    picture = (source / "docs/pictures/first-minute.svg").read_text()
    commands = [line for line in (source / "docs/pictures/first-minute.txt").read_text().splitlines() if line and line[0] != "#"]
    typed = re.findall(r'class="l t"[^>]*>\$ ([^<]*)<', picture)
    assert [html.unescape(text) for text in typed] == commands, "make it anew: scripts/record"
    xml.fromstring(picture)
    assert "unknown option" not in picture and "Traceback" not in picture
