# SPDX-License-Identifier: Apache-2.0
"""borders.py: includes that cross a border. A source of a folder that has targets may include headers of another such folder only where the
folder's targets link one of the other's, directly or through others; and never another's *private.h. Prints the findings."""
import collections
import re
import subprocess
import sys
from pathlib import Path

ADD = re.compile(r"add_(?:library|executable)\((\w[\w-]*)")
LINK = re.compile(r"target_link_libraries\((\w[\w-]*)([^)]*)\)")
OURS = re.compile(r"(?<![\w:-])drarun[\w-]*(?![\w:-])")  # drarun::jansson is of others
INCLUDE = re.compile(r'^#include "([^"]+)/([^"/]+)"', re.MULTILINE)
FOLDERS = "lib", "jobs", "launcher", "worker", "plugin", "benchmarks"


def graph(root):
    """({folder: its targets}, {target: what it links})."""
    targets, links = collections.defaultdict(set), collections.defaultdict(set)
    for top in FOLDERS:
        for path in (root / top).rglob("CMakeLists.txt"):
            text = re.sub(r"#.*", "", path.read_text())
            targets[str(path.parent.relative_to(root))] |= set(ADD.findall(text))
            for target, words in LINK.findall(text):
                links[target] |= set(OURS.findall(words))
    return targets, links


def reached(target, links):
    """The targets that this one links, directly or through others, and itself."""
    found, new = set(), {target}
    while new:
        found |= new
        new = set().union(*(links[each] for each in new)) - found
    return found


def home(path, targets):
    """The folder with targets that a file belongs to, or None."""
    return next((str(parent) for parent in path.parents if str(parent) in targets), None)


def findings(root, names):
    """names: the C files to look at, relative to root. Tests may include what they do not link, but no private header either."""
    targets, links = graph(root)
    may = {folder: set().union(*(reached(each, links) for each in own)) for folder, own in targets.items()}
    for name in sorted(names):
        path = Path(name)
        folder = home(path, targets)
        if folder is None or not (root / name).exists():
            continue
        tests = bool({"test", "fuzz"} & set(path.parts))
        for place, header in sorted(set(INCLUDE.findall((root / name).read_text()))):
            other = home(Path(place) / header, targets)
            if other in (None, folder):
                continue
            if header.endswith("private.h"):
                yield f"{name}: includes {place}/{header}, which is only for {other}/"
            elif not tests and not targets[other] & may[folder]:
                yield f"{name}: includes {place}/{header}, but {folder}/CMakeLists.txt does not link {other}/"


def main():
    root = Path(__file__).resolve().parents[2]
    sources = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *(f"{each}/*.[ch]" for each in FOLDERS)],
                             check=True, capture_output=True, text=True).stdout.split()
    found = list(findings(root, sources))
    print(*found, sep="\n", end="\n" if found else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
