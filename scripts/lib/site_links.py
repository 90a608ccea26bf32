# SPDX-License-Identifier: Apache-2.0
"""Looks at the links of a site in a folder. What a page or a style loads (scripts, styles, pictures) must lie in the folder; what a page links
there must exist, with its anchor. Links to other sites are not followed."""
import html.parser
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
LOADING = ("stylesheet", "icon", "preload", "preconnect", "modulepreload", "manifest", "dns-prefetch")  # of <link>; others only name a page
LOADED_BY_STYLE = re.compile(r"""(?:url\(\s*|@import\s+(?=["']))["']?([^"')\s]+)""")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        where = values.get(LOADED.get(tag, ""))
        if where and (tag != "link" or set((values.get("rel") or "").split()) & set(LOADING)):
            self.loads.append(where)
        elif tag == "a" and values.get("href"):
            self.links.append(values["href"])


def check(site):
    """One line for each link of the folder that leads nowhere, and each thing that comes from elsewhere."""
    site = Path(site).resolve()
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    wrong = [f"{style.relative_to(site)}: loads {where}, which is not in the site" for style in sorted(site.rglob("*.css"))
             for where in LOADED_BY_STYLE.findall(style.read_text()) if urlsplit(where).netloc]
    for path, page in pages.items():
        own = path == site / "404.html"  # its links begin at the server's root, wherever that is
        for where, loads in [(each, False) for each in page.links] + [(each, True) for each in page.loads]:
            parts = urlsplit(where)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            name = path.relative_to(site)
            if parts.scheme or parts.netloc:
                if loads:
                    wrong.append(f"{name}: loads {where}, which is not in the site")
                continue
            target = path
            if parts.path:
                target = (site / parts.path.lstrip("/") if own else path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target = target / "index.html"
            if not target.is_file() or site not in target.parents:
                wrong.append(f"{name}: {where} leads nowhere")
            elif parts.fragment and target in pages and not loads and unquote(parts.fragment) not in pages[target].ids:
                wrong.append(f"{name}: {where} has no such anchor")
    return wrong
