# SPDX-License-Identifier: Apache-2.0
"""test_pool.py make LANE BUILD...: writes a ctest project with the programs of that lane of all these builds, by their files
report/lanes, and prints its folder; prints nothing when there are none. So ctest runs them beside each other, the longest first,
whatever their build. A program is called there as in its build, those of sanitizers with @asan or @tsan behind.
test_pool.py share LANE BUILD...: what ctest reported there, as a report of each build."""
import copy
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import alone  # noqa: E402
import choose_tests  # noqa: E402

MARK = "@"
REPORT = "report.xml"  # in the project's folder
NOT_BUILT = "a-program-that-was-not-built"  # ctest cannot find it, which is a failure


def folder_of(lane):
    return alone.tree("dev") / "tests/pool" / lane


def reports(build):
    return alone.tree(build) / "tests/report"


def pooled(name, build):
    return name if build == "dev" else f"{name}{MARK}{build}"


def members(lane, build):
    """The names of a build's programs in a lane, as choose_tests.py wrote them."""
    rows = [line.split(None, 1) for line in (reports(build) / "lanes").read_text().splitlines()]
    return {name for where, name in rows if where == lane}


def quoted(word):
    """For CMake, as it stands."""
    level = "="
    while f"]{level}]" in word:
        level += "="
    return f"[{level}[{chr(10) if word.startswith(chr(10)) else ''}{word}]{level}]"


def value_of(value):
    if isinstance(value, list):
        return ";".join(value)
    return {True: "TRUE", False: "FALSE"}[value] if isinstance(value, bool) else str(value)


def entry(test, build):
    """Of one program, for CTestTestfile.cmake."""
    name = quoted(pooled(test["name"], build))
    words = [*choose_tests.under(build), *test.get("command", [NOT_BUILT])]
    properties = [word for key, value in test["properties"].items() for word in (key, quoted(value_of(value)))]
    return f"add_test({name} {' '.join(map(quoted, words))})\nset_tests_properties({name} PROPERTIES {' '.join(properties)})\n"


def make(lane, builds):
    """The folder; None: no program is in that lane."""
    text = ""
    for build in builds:
        wanted = members(lane, build)
        text += "".join(entry(test, build) for test in (choose_tests.listed(alone.tree(build)) if wanted else ()) if test["name"] in wanted)
    if not text:
        return None
    folder = folder_of(lane)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REPORT).unlink(missing_ok=True)
    (folder / "CTestTestfile.cmake").write_text(text)
    return folder


def share(lane, builds):
    """Nothing where ctest ran no program, as with options that choose none."""
    path = folder_of(lane) / REPORT
    if not path.exists():
        return
    suite = xml.parse(path).getroot()
    for build in builds:
        own = xml.Element(suite.tag, suite.attrib)
        for case in suite.iter("testcase"):
            name, _, where = case.get("name").partition(MARK)
            if (where or "dev") == build:
                case = copy.copy(case)
                case.set("name", name)
                own.append(case)
        if len(own):
            xml.ElementTree(own).write(reports(build) / f"{lane}.ctest.xml", encoding="unicode", xml_declaration=True)


def main(what, lane, *builds):
    if what == "make":
        folder = make(lane, builds)
        print(folder or "")
    else:
        share(lane, builds)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except choose_tests.Wrong as error:
        sys.exit(f"test_pool.py: {error}")
