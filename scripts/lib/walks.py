# SPDX-License-Identifier: Apache-2.0
"""walks.py: what docs/design/001-walks.md says of files and functions and the code does not: a function that its file does not define, a
row that has another number than its place, a count of files ("26 files", "8 files for a local job, 14 for ..") that is not that of the rows."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/design/001-walks.md"
ROW = re.compile(r"\| (\d+) \| `([^`]+)` \| ([^|]+) \|")


def defines(text, function):
    """A definition begins in the first column, and its line does not end in a semicolon."""
    return re.search(rf"^\w[^;={{}}()]*\b{function}\([^;{{]*\)\n{{", text, re.MULTILINE)


def findings(page):
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        rows = ROW.findall(text)
        for place, (number, path, functions) in enumerate(rows, 1):
            if int(number) != place:
                yield f"{title}: row {place} has the number {number}"
            source = ROOT / path
            if not source.is_file():
                yield f"{title}: row {number}: there is no {path}"
                continue
            code = source.read_text()
            yield from (f"{title}: row {number}: {path} does not define {name}" for name in re.findall(r"`(\w+)`", functions)
                        if not defines(code, name))
        counted = re.search(r"\b(\d+) files\b(?:[^.]*?, (\d+) for)?", text)
        if not counted or int(counted[2] or counted[1]) != len({path for _, path, _ in rows}):
            yield f"{title}: the rows name {len({path for _, path, _ in rows})} files"


def main():
    found = [f"{PAGE}: {each}" for each in findings((ROOT / PAGE).read_text())]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
