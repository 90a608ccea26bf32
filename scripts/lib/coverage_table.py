# SPDX-License-Identifier: Apache-2.0
"""coverage_table.py FILE: one line for each folder, and the total, from a JSON summary of gcovr."""
import json
import sys
from pathlib import PurePath

COUNTS = "line_covered", "line_total", "branch_covered", "branch_total"


def folder_of(file):
    """lib/X and the folders of the programs; deeper ones count for these."""
    return "/".join(PurePath(file).parts[:-1][:2])


def share(covered, total):
    return f"{covered:6}/{total:<6} {100 * covered / total if total else 100:5.1f} %"


def table(files):
    folders = {}
    for file in files:
        sums = folders.setdefault(folder_of(file["filename"]), dict.fromkeys(COUNTS, 0))
        for name in COUNTS:
            sums[name] += file[name]
    total = {name: sum(sums[name] for sums in folders.values()) for name in COUNTS}
    yield f"{'folder':20} {'lines':>21}  {'branches':>21}"
    for folder, sums in [*sorted(folders.items()), ("total", total)]:
        yield f"{folder:20} {share(sums['line_covered'], sums['line_total'])}  {share(sums['branch_covered'], sums['branch_total'])}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as summary:
        print("\n".join(table(json.load(summary)["files"])))
