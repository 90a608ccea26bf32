# SPDX-License-Identifier: Apache-2.0
"""Which tests execute a line of the product's C, from the counts that a build with gcc's --coverage leaves of each test by itself."""
import gzip
import json
import subprocess
import tempfile
from pathlib import Path


def counts_of(gcda, gcno):
    """{line: how often} of all functions of an object's own file, as gcov says; {} where its counts cannot be read."""
    with tempfile.TemporaryDirectory() as place:
        for name, path in ("x.gcda", gcda), ("x.gcno", gcno):
            (Path(place) / name).symlink_to(path)
        done = subprocess.run(["gcov", "--json-format", "x.gcda"], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        found = [*Path(place).glob("*.gcov.json.gz")]
        if done.returncode or not found:
            return {}
        with gzip.open(found[0], "rt") as text:
            files = json.load(text)["files"]
    lines = {}
    for file in files:
        for line in file["lines"]:
            key = Path(file["file"]).name, line["line_number"]
            lines[key] = lines.get(key, 0) + line["count"]
    return lines


def is_executed(counts, file, line):
    """A line without code of its own belongs to the one before it that has some."""
    known = [number for name, number in counts if name == Path(file).name and number <= line]
    return bool(known) and counts[Path(file).name, max(known)] > 0


class Executed:
    """counts: a folder with one for each test, laid out as the build's; build: where the compiler's notes are."""

    def __init__(self, counts, build):
        self.counts, self.build, self.cache = Path(counts), Path(build), {}

    def tests_of(self, names, objects, file, line):
        """Those of the tests that execute the line. objects: those made of the file, relative to the build."""
        found = set()
        for name in names:
            for each in objects:
                gcda = (self.counts / name / each).with_suffix(".gcda")
                if not gcda.exists():
                    continue
                if gcda not in self.cache:
                    self.cache[gcda] = counts_of(gcda, (self.build / each).with_suffix(".gcno"))
                if is_executed(self.cache[gcda], file, line):
                    found.add(name)
        return found
