# SPDX-License-Identifier: Apache-2.0
"""The site that scripts/docs makes, and the check of its links. Needs mkdocs from PyPI, once."""
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.build import SOURCE

sys.path.insert(0, str(SOURCE / "scripts/lib"))

import site_links  # noqa: E402

pytestmark = pytest.mark.plain("no program of ours runs")


@pytest.mark.parametrize("page,says", [
    ('<p id="here"><a href="#here">a</a> <a href="b.html#there">b</a> <a href="https://example.com/">c</a><img src="p.svg">', []),
    ('<a href="c.html">', ["a.html: c.html leads nowhere"]),
    ('<a href="../out.html">', ["a.html: ../out.html leads nowhere"]),
    ('<a href="#where">', ["a.html: #where has no such anchor"]),
    ('<a href="b.html#where">', ["a.html: b.html#where has no such anchor"]),
    ('<script src="https://example.com/x.js"></script>', ["a.html: loads https://example.com/x.js, which is not in the site"]),
    ('<link rel="stylesheet" href="//example.com/x.css">', ["a.html: loads //example.com/x.css, which is not in the site"]),
    ('<img src="q.svg">', ["a.html: q.svg leads nowhere"]),
])
def test_links_are_judged(tmp_path, page, says):
    (tmp_path / "out.html").touch()
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text(page)
    (site / "b.html").write_text('<h1 id="there">b</h1>')
    (site / "p.svg").touch()
    assert site_links.check(site) == says


def test_site(tmp_path):
    """All links of it lead somewhere: scripts/docs ends with 0. Pages of the reference are those of the tables."""
    site = tmp_path / "site"
    run = subprocess.run([SOURCE / "scripts/docs", site], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"{site}/index.html\n"), run
    statuses = (site / "man/exit-statuses.html").read_text()
    source = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh ", (SOURCE / "docs/man/drarun.1").read_text(), re.M | re.S)[1]
    numbers = re.findall(r"^\.It (\d+)$", source, re.M)
    assert len(numbers) >= 8 and all(f">{number}<" in statuses for number in numbers)
    assert 'href="drarun-run.1.html"' in (site / "man/drarun.1.html").read_text()
    assert "docs/one-machine.html" in (site / "index.html").read_text()


@pytest.mark.parametrize("more", [(), ("docs/new.md",), ("examples/new/README.md",)])
def test_every_page_has_its_place(more):
    """In the navigation: one that nobody gave a place is an error. Lists of folders are found by the pages that link them."""
    docs = runpy.run_path(str(SOURCE / "scripts/docs"))
    pages = [*docs["pages_of_source"](), *map(Path, more)]
    names = docs["man_pages"]()
    staging = SimpleNamespace(made={*map(str, pages), *(f"man/{name}" for name in docs["PARTS"]), *(f"man/{name}.md" for name in names), "examples/index.md"})
    docs["navigation"].__globals__["pages_of_source"] = lambda: pages
    man = {name: SimpleNamespace(title=name) for name in names}
    if more:
        with pytest.raises(SystemExit, match=f"docs: {more[0]} has no place in the navigation"):
            docs["navigation"](staging, man)
    else:
        assert docs["navigation"](staging, man)[4]["Explanation"][-1] == {"Files": ["examples/index.md"]}


def test_folder_of_something_else_stays(tmp_path):
    (tmp_path / "mine").write_text("kept")
    run = subprocess.run([SOURCE / "scripts/docs", tmp_path], capture_output=True, text=True)
    assert run.returncode == 1 and "holds something else than a site" in run.stderr
    assert (tmp_path / "mine").read_text() == "kept"
