# SPDX-License-Identifier: Apache-2.0
"""choose_tests.py DIR BUILD [PROGRAM...]: the lane of each program of the build tree DIR, a line each: "unit", "whole",
"unsteady", or "none" of a program that scripts/test does not run. BUILD is dev, asan, tsan, quick or for; tests/builds.txt
says what belongs to which, tests/unsteady.txt which programs are in the lane that does not decide. For "for", the PROGRAMs
run, and no others."""
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
UNIT = {"unit", "fuzz"}


class Wrong(Exception):
    """A line of one of the lists, or a program, that means nothing."""


def table(path, columns):
    """The rows of a list: so many words, then a sentence. Empty lines and comments are left out."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, columns)
        if len(words) <= columns:
            raise Wrong(f"{path}:{number}: expected {columns} words and a reason: {line}")
        rows.append((number, *words))
    return rows


def registered(directory):
    """{program: its labels} of a configured build tree."""
    listed = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1"], capture_output=True, text=True)
    if listed.returncode != 0:
        raise Wrong(f"ctest --test-dir {directory}: {listed.stderr.strip()}; configure it first")
    found = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        if not properties.get("DISABLED"):
            found[test["name"]] = set(properties.get("LABELS", []))
    return found


def matches(what, name, labels):
    """what: a label, or a program's name with *."""
    return fnmatch.fnmatchcase(name, what) if "." in what else what in labels


def chosen(programs, build, rows):
    """The programs that belong to a build; "dev" has all that is not for --quick alone."""
    if build == "dev":
        return {name for name, labels in programs.items() if "quick" not in labels}
    kept = set()
    for number, where, what, _ in rows:
        found = {name for name, labels in programs.items() if matches(what, name, labels)}
        if where == build:
            kept |= found
        if not found and build == "quick":  # the default build has all programs
            raise Wrong(f"tests/builds.txt:{number}: no program or label {what}")
    return kept


def lane(name, labels, unsteady):
    if name in unsteady:
        return "unsteady"
    return "unit" if labels & UNIT else "whole"


def main(directory, build, *only):
    programs = registered(directory)
    unsteady = {name for _, name, _ in table(SOURCE / "tests/unsteady.txt", 1)}
    kept = set(only) if build == "for" else chosen(programs, build, table(SOURCE / "tests/builds.txt", 2))
    for name, labels in sorted(programs.items()):
        print(lane(name, labels, unsteady) if name in kept else "none", name)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Wrong as error:
        sys.exit(f"choose_tests.py: {error}")
