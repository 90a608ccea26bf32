# SPDX-License-Identifier: Apache-2.0
"""choose_tests.py DIR KIND BUILD [PROGRAM...]: the lane of each program of the build tree DIR, a line each: "unit", "whole",
"timed", or "none" of a program that scripts/test does not run. KIND is gate, all, or for; BUILD is dev, asan or tsan. The label
`gate` (tests/CMakeLists.txt) and tests/builds.txt say what belongs to which. For "for", the PROGRAMs run, and no others."""
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
UNIT = {"unit", "fuzz"}
TIMED = "timed"  # asserts times: alone, after everything else, in the proof


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


def listed(directory):
    """ctest's own list of a configured build tree: a dictionary for each program that is not disabled, its properties too."""
    asked = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1"], capture_output=True, text=True)
    if asked.returncode != 0:
        raise Wrong(f"ctest --test-dir {directory}: {asked.stderr.strip()}; configure it first")
    found = []
    for test in json.loads(asked.stdout)["tests"]:
        test["properties"] = {each["name"]: each["value"] for each in test.get("properties", [])}
        if not test["properties"].get("DISABLED"):
            found.append(test)
    return found


def registered(directory):
    """{program: its labels} of a configured build tree."""
    return {test["name"]: set(test["properties"].get("LABELS", [])) for test in listed(directory)}


def matches(what, name, labels):
    """what: a label, or a program's name with *."""
    return fnmatch.fnmatchcase(name, what) if "." in what else what in labels


def under(build):
    """Words before a program of a build: the thread sanitizer of gcc 12 cannot live with all layouts of newer kernels."""
    return ["setarch", "--addr-no-randomize"] if build == "tsan" else []


def only_gate(name):
    """A choice of cases for the gate; the proof runs the files whole."""
    return name.startswith("gate.")


def chosen(programs, kind, build, rows):
    """The programs that belong to a build in the gate or in the proof ("all")."""
    if build == "dev":
        return {name for name, labels in programs.items()
                if (labels & {"gate", *UNIT} and TIMED not in labels if kind == "gate" else not only_gate(name))}
    where = f"gate-{build}" if kind == "gate" else build
    return {name for name, labels in programs.items() if not only_gate(name)
            and any(row[1] == where and matches(row[2], name, labels) for row in rows)}


def lane(labels):
    return TIMED if TIMED in labels else "unit" if labels & UNIT else "whole"


def main(directory, kind, build, *only):
    programs = registered(directory)
    if kind == "for":
        kept = {name for name in only if not only_gate(name)}
    else:
        kept = chosen(programs, kind, build, table(SOURCE / "tests/builds.txt", 2))
    for name, labels in sorted(programs.items()):
        print(lane(labels) if name in kept else "none", name)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Wrong as error:
        sys.exit(f"choose_tests.py: {error}")
