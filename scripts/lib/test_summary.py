# SPDX-License-Identifier: Apache-2.0
"""test_summary.py PRESET...: one summary of the last scripts/test from the reports in the build trees.
A case is a pytest case, a cmocka test, or else a ctest test. One that failed and then passed when its program was run
once more is unsteady: neither passed nor failed. Ends with 1 when one failed."""
import collections
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

PASSED, FAILED, SKIPPED, UNSTEADY = "passed", "failed", "skipped", "unsteady"


def first_words(message):
    """The first line, and the next one with words in it where the first only announces it."""
    lines = [line for line in message.splitlines() if re.search(r"\w", line)] or [""]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])[:200]


def pytest_cases(report):
    """(name, verdict, reason) of every case of a file."""
    for case in xml.parse(report).iter("testcase"):
        name = f"{report.stem}::{case.get('name')}"
        for child in case:
            if child.tag in ("failure", "error"):
                yield name, FAILED, first_words(child.get("message", ""))
                break
            if child.tag == "skipped":
                yield name, SKIPPED, child.get("message", "")
                break
        else:
            yield name, PASSED, ""


def cmocka_cases(program, output):
    words = {"OK": PASSED, "SKIPPED": SKIPPED, "FAILED": FAILED}
    seen = {}
    for word, name in re.findall(r"^\[ +(OK|SKIPPED|FAILED) +\] (\w+)$", output, re.M):
        seen[name] = words[word]
    reasons = re.findall(r"^\[ +ERROR +\] --- (.+)$", output, re.M)
    for name, verdict in seen.items():
        yield f"{program}::{name}", verdict, " ".join(reasons)[:200] if verdict == FAILED else ""


def ctest_cases(directory):
    """(program, name, verdict, reason)"""
    for case in xml.parse(directory / "ctest.xml").iter("testcase"):
        name, status = case.get("name"), case.get("status")
        if status == "disabled":
            continue
        output = case.findtext("system-out") or ""
        report = directory / f"{name.partition('.')[2]}.xml"
        inner = list(pytest_cases(report) if report.exists() else cmocka_cases(name, output))
        yield from ((name, *each) for each in inner)
        verdict = {"run": PASSED, "fail": FAILED}.get(status, SKIPPED)
        # a program may fail without a failed case: killed, out of time, a leak at its end
        if not inner or (verdict == FAILED and not any(v == FAILED for _, v, _ in inner)):
            lines = output.strip().splitlines() or [""]
            message = case.find("failure")
            reason = message.get("message", "") if message is not None else ""
            yield name, name, verdict, reason or lines[-1][:200]


def cases_of(tests):
    """(name, verdict, reason) of every case of a build's last run; tests: its folder "tests"."""
    first, last = tests / "report.first", tests / "report"
    if not first.exists():
        return [case for _, *case in ctest_cases(last)]
    again = list(ctest_cases(last))
    good = {program for program, *_ in again} - {program for program, _, verdict, _ in again if verdict == FAILED}
    found = []
    for program, name, verdict, reason in ctest_cases(first):
        found.append((name, UNSTEADY if verdict == FAILED and program in good else verdict, reason))
    known = {name for name, verdict, _ in found if verdict == FAILED}
    return found + [(name, FAILED, reason) for _, name, verdict, reason in again if verdict == FAILED and name not in known]


def main(presets):
    named = {FAILED: [], UNSTEADY: []}
    skipped = {}
    print("\n== summary")
    for preset in presets:
        try:
            cases = cases_of(Path("build" if preset == "dev" else f"build-{preset}") / "tests")
        except FileNotFoundError:
            cases = [("ctest", FAILED, "it left no report")]
        count = collections.Counter(verdict for _, verdict, _ in cases)
        print(f"{preset:6} {count[PASSED]:5} passed {count[FAILED]:4} failed {count[SKIPPED]:4} skipped {count[UNSTEADY]:4} unsteady")
        for name, verdict, reason in cases:
            if verdict == SKIPPED:
                skipped.setdefault((reason or "no reason given"), []).append(f"{preset}: {name}")
            elif verdict in named:
                named[verdict].append(f"{preset}: {name}: {reason}")
    for reason, names in sorted(skipped.items()):
        print(f"skipped, {len(names)}: {reason}")
        for name in names:
            print(f"    {name}")
    for each in named[UNSTEADY]:
        print(f"unsteady, it failed and then passed, {each}")
    for each in named[FAILED]:
        print(f"FAILED {each}")
    return 1 if named[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
