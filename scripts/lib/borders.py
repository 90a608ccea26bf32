# SPDX-License-Identifier: Apache-2.0
"""borders.py: includes that cross a border. A source of a folder that has targets may include headers of another such folder only where the
folder's targets link one of the other's, directly or through others. Prints the findings."""
import collections
import re
import subprocess
import sys
from pathlib import Path

ADD = re.compile(r"add_(?:library|executable)\((\w[\w-]*)")
LINK = re.compile(r"target_link_libraries\((\w[\w-]*)([^)]*)\)")
INCLUDE = re.compile(r'^#include "([^"]+)/[^"/]+"', re.MULTILINE)
FOLDERS = "lib", "jobs", "launcher", "worker", "plugin"


def graph(root):
    """({folder: its targets}, {target: what it links})."""
    targets, links = collections.defaultdict(set), collections.defaultdict(set)
    for top in FOLDERS:
        for path in (root / top).rglob("CMakeLists.txt"):
            text = re.sub(r"#.*", "", path.read_text())
            targets[str(path.parent.relative_to(root))] |= set(ADD.findall(text))
            for target, words in LINK.findall(text):
                links[target] |= set(re.findall(r"drarun[\w-]*", words))
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


def main():
    root = Path(__file__).resolve().parents[2]
    targets, links = graph(root)
    may = {folder: set().union(*(reached(each, links) for each in own)) for folder, own in targets.items()}
    sources = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", *(f"{each}/*.[ch]" for each in FOLDERS)],
                             check=True, capture_output=True, text=True).stdout.split()
    for name in sorted(sources):
        path = Path(name)
        folder = home(path, targets)
        if folder is None or {"test", "fuzz"} & set(path.parts) or not (root / name).exists():
            continue
        for included in sorted(set(INCLUDE.findall((root / name).read_text()))):
            other = home(Path(included) / "header", targets)
            if other not in (None, folder) and not targets[other] & may[folder]:
                print(f"{name}: includes a header of {included}/, which {folder}/CMakeLists.txt does not link")
    return 0


if __name__ == "__main__":
    sys.exit(main())
