#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""version.py [--check | --write]: prints the version of drarun, which CMakeLists.txt has. Programs, libraries, packages and the wheel take
it from there; a few files for users spell it out. --check prints each line of these that has another one, and CMakeLists.txt where its
version is released already, and ends with 1 if there is one; --write puts the version there."""
import argparse
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
IMAGE = r"ghcr\.io/drarun/drarun:([\w.-]+)"

# Files that must spell out the version, with what stands around it.
PLACES = (
    ("deploy/chart/Chart.yaml", r"^version: (\S+)"),
    ("deploy/chart/Chart.yaml", r"^appVersion: (\S+)"),
    ("deploy/controller.yaml", IMAGE),
    ("deploy/plugin.yaml", IMAGE),
    ("docs/install.md", r"export VERSION=(\S+)"),
    ("docs/one-machine.md", r"drarun-bench version (\S+)"),
    ("docs/releasing.md", r"export VERSION=(\S+)"),
)
RELEASED = "tests/base-release"  # names the last release
# Everything that users read or copy: where the image has a version, it must be this one.
READ = ("deploy", "docs", "examples", "python")


class Missing(Exception):
    """A file does not have the version where it should be."""


def version(source=SOURCE):
    """That of CMakeLists.txt."""
    found = re.search(r"^project\(drarun VERSION ([0-9]+\.[0-9]+\.[0-9]+)\b", (source / "CMakeLists.txt").read_text(), re.M)
    if not found:
        raise Missing(f"{source / 'CMakeLists.txt'}: expected project(drarun VERSION X.Y.Z ...)")
    return found[1]


def released(source=SOURCE):
    """The released version that CMakeLists.txt should be above and is not, else None. What is built after a release must not call itself that release: its
    image would be another's, and agents of both would take each other for the same."""
    found = re.search(r"^(\d+\.\d+\.\d+) ", (source / RELEASED).read_text(), re.M)
    return found[1] if found and numbers(version(source)) <= numbers(found[1]) else None


def numbers(text):
    return tuple(map(int, text.split(".")))


def places(source):
    """[(file, pattern)] of all that may have the version; those that name the image and are in PLACES too come once."""
    named = {name for name, pattern in PLACES if pattern is IMAGE}
    found = [(source / name, pattern) for name, pattern in PLACES]
    for path in [*source.glob("*.md"), *(each for folder in READ for each in (source / folder).rglob("*") if each.is_file())]:
        if str(path.relative_to(source)) not in named and re.search(IMAGE.encode(), path.read_bytes()):
            found.append((path, IMAGE))
    return found


def others(source=SOURCE):
    """[(file, line, what it has)] of the places that have another version."""
    right, found = version(source), []
    for path, pattern in places(source):
        text = path.read_text()
        matches = [*re.finditer(pattern, text, re.M)]
        if not matches:
            raise Missing(f"{path.relative_to(source)}: expected the version {right}, as {pattern}")
        found += [(path, text.count("\n", 0, match.start(1)) + 1, match[1]) for match in matches if match[1] != right]
    return found


def write(source=SOURCE):
    right = version(source)
    for path, pattern in places(source):
        text = path.read_text()
        new = re.sub(pattern, lambda match: match[0][:match.start(1) - match.start()] + right, text, flags=re.M)
        if new != text:
            path.write_text(new)
            print(path.relative_to(source))


def main():
    parser = argparse.ArgumentParser(prog="version.py", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    options = parser.parse_args()
    try:
        if options.write:
            write()
        elif options.check:
            wrong = sorted({*others()})
            for path, line, has in wrong:
                print(f"{path.relative_to(SOURCE)}:{line}: has version {has}, expected {version()}, that of CMakeLists.txt: scripts/lib/version.py --write")
            last = released()
            if last:
                print(f"CMakeLists.txt: has version {version()}, and {last} is released ({RELEASED}): set the next version, then scripts/lib/version.py --write")
            return 1 if wrong or last else 0
        else:
            print(version())
    except Missing as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
