# SPDX-License-Identifier: Apache-2.0
"""The site that scripts/docs makes, the check of its links, and its pages in a browser. Needs mkdocs from PyPI, once."""
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.build import SOURCE

sys.path.insert(0, str(SOURCE / "scripts/lib"))

import site_links  # noqa: E402
from site_markdown import for_mkdocs  # noqa: E402

pytestmark = pytest.mark.plain("no program of ours runs")
needs_chromium = pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium, which scripts/site-pictures takes pictures with")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All links of it lead somewhere: scripts/docs ends with 0."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    run = subprocess.run([SOURCE / "scripts/docs", folder], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"{folder}/index.html\n"), run
    return folder


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


@pytest.mark.parametrize("style,says", [
    ("@import 'b.css'; a { background: url(p.svg) url(data:image/png;base64,AA==) }", []),
    ("a { background: url('https://example.com/p.png') }", ["a.css: loads https://example.com/p.png, which is not in the site"]),
    ('@import "//example.com/b.css";', ["a.css: loads //example.com/b.css, which is not in the site"]),
])
def test_styles_are_judged(tmp_path, style, says):
    (tmp_path / "a.css").write_text(style)
    assert site_links.check(tmp_path) == says


@pytest.mark.parametrize("github,mkdocs", [
    ("a:\n- b\n- c\n\nd", "a:\n\n- b\n- c\n\nd"),
    ("1. a\n   b\n   - c\n     d\n2. e", "1. a\n    b\n    - c\n        d\n2. e"),
    ("1. a\n\n       code\n\n   b\n2. c", "1. a\n\n        code\n\n    b\n\n2. c"),
    ("- a\n\n  ```text\n    b\n\n  - c\n  ```\n- d", "- a\n\n    ```text\n      b\n\n    - c\n    ```\n\n- d"),
    ("- a\n## b", "- a\n\n## b"),
    ("a\n2026. b", "a\n2026. b"),
    ("a\n\n    - code\n      more", "a\n\n    - code\n      more"),
    ("| `a \\|\\| b` | c \\| d |", "| `a || b` | c \\| d |"),
    ("`a \\| b`", "`a \\| b`"),
])
def test_markdown_of_github(github, mkdocs):
    assert for_mkdocs(github) == mkdocs


def test_site(site):
    """Pages of the reference are those of the tables."""
    statuses = (site / "man/exit-statuses.html").read_text()
    source = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh ", (SOURCE / "docs/man/drarun.1").read_text(), re.M | re.S)[1]
    numbers = re.findall(r"^\.It (\d+)$", source, re.M)
    assert len(numbers) >= 8 and all(f">{number}<" in statuses for number in numbers)
    assert 'href="drarun-run.1.html"' in (site / "man/drarun.1.html").read_text()
    assert "docs/one-machine.html" in (site / "index.html").read_text()
    assert '<a href="one-machine.html">One machine</a>' in (site / "docs/index.html").read_text(), "a page is named by its title, not by its file"
    assert re.search(r'<a href="docs/pictures/plan.svg"><img [^>]*src="docs/pictures/plan.svg"', (site / "index.html").read_text()), "a picture is a link to itself"
    assert '<a href="../man/drajob.5.html">drajob(5)</a>' in (site / "docs/index.html").read_text(), "a command that shows a page of the site is a link to it"


def test_lists_and_tables_of_the_site(site):
    """A list that is not recognized is a paragraph with lines that begin with a mark; a table, one with lines that begin with a bar."""
    pages = {page.relative_to(site): page.read_text() for page in site.rglob("*.html")}
    paragraphs = [(name, text) for name, page in pages.items() for text in re.findall(r"<p>(.*?)</p>", page, re.S)]
    assert len(pages) > 100 and len(paragraphs) > 500
    assert [(name, text) for name, text in paragraphs if re.search(r"^([-*+]|\d+\.) |^\|", text, re.M)] == []
    assert [name for name, page in pages.items() if re.search(r"<td[^>]*>[^|]*<code>[^<]*\\\|", page)] == []
    steps = re.search(r"<article.*?<ol[^>]*>(.*)</ol>.*?</article>", (pages[Path("docs/releasing.html")]), re.S)[1]
    numbers = re.findall(r"^(\d+)\. ", (SOURCE / "docs/releasing.md").read_text(), re.M)
    assert len(re.findall(r"^<li>", steps, re.M)) == len(numbers) > 2 and "<ol" not in steps


@needs_chromium
def test_pages_in_a_browser(site, tmp_path):
    """No errors, no requests to the network, nothing wider than a window or a phone; a report of drarun bench, too."""
    run = subprocess.run([SOURCE / "scripts/site-pictures", "--site", site, tmp_path, "index", "docs/verbs", "man/drarun.1", "docs/bench/report"],
                         capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    assert len([*tmp_path.glob("*.png")]) == 4 * 2 * 2 and (tmp_path / "docs.verbs-390-dark.png").read_bytes().startswith(b"\x89PNG")


FAULTS = {  # of pages: what is said of them
    "<p>a</p>": "",
    '<img src="http://127.0.0.1:9/p.png">': "requests http://127.0.0.1:9/p.png",
    "<script>fetch('https://drarun.invalid/x').catch(() => 0)</script>": "requests https://drarun.invalid/x",
    "<script>throw new Error('mine')</script>": "throws: Error: mine",
    "<script>console.error('mine', 7)</script>": "prints an error: mine 7",
    '<img src="none.png">': "does not show file:",
    '<div style="width: 2000px">a</div>': "reaches beyond the window, to 2000 pixels: <div> a",
    '<div style="overflow: auto"><div style="width: 2000px">a</div></div>': "",
}


@needs_chromium
def test_faults_of_pages_are_seen(tmp_path):
    pages = [tmp_path / f"{i}.html" for i in range(len(FAULTS))]
    for page, body in zip(pages, FAULTS, strict=True):
        page.write_text(f'<!doctype html><meta name="viewport" content="width=device-width"><style>body {{ margin: 0 }}</style>{body}')
    run = subprocess.run([SOURCE / "scripts/site-pictures", tmp_path / "pictures", *pages], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (1, "")
    for page, says in zip(pages, FAULTS.values(), strict=True):
        seen = [line.split(": ", 1) for line in run.stdout.splitlines() if line.startswith(f"{page}, ")]
        assert bool(seen) == bool(says), run.stdout
        assert not says or [where for where, text in seen if text.startswith(says)] == [
            f"{page}, {width} pixels, {scheme}" for width in (1440, 390) for scheme in ("light", "dark")], run.stdout


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
