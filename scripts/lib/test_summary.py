# SPDX-License-Identifier: Apache-2.0
"""test_summary.py PRESET...: one summary of the last scripts/test from the reports in the build trees.
A case is a pytest case, a cmocka test, or else a ctest test. Ends with 1 when one failed."""
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


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
    for case in xml.parse(directory / "ctest.xml").iter("testcase"):
        name, status = case.get("name"), case.get("status")
        if status == "disabled":
            continue
        output = case.findtext("system-out") or ""
        report = directory / f"{name.partition('.')[2]}.xml"
        inner = list(pytest_cases(report) if report.exists() else cmocka_cases(name, output))
        yield from inner
        verdict = {"run": PASSED, "fail": FAILED}.get(status, SKIPPED)
        # a program may fail without a failed case: killed, out of time, a leak at its end
        if not inner or (verdict == FAILED and not any(v == FAILED for _, v, _ in inner)):
            lines = output.strip().splitlines() or [""]
            message = case.find("failure")
            reason = message.get("message", "") if message is not None else ""
            yield name, verdict, reason or lines[-1][:200]


def main(presets):
    failed = []
    skipped = {}
    print("\n== summary")
    for preset in presets:
        directory = Path("build" if preset == "dev" else f"build-{preset}") / "tests" / "report"
        try:
            cases = list(ctest_cases(directory))
        except FileNotFoundError:
            cases = [("ctest", FAILED, "it left no report")]
        count = {verdict: sum(v == verdict for _, v, _ in cases) for verdict in (PASSED, FAILED, SKIPPED)}
        print(f"{preset:6} {count[PASSED]:5} passed {count[FAILED]:4} failed {count[SKIPPED]:4} skipped")
        failed += [(preset, name, reason) for name, v, reason in cases if v == FAILED]
        for name, v, reason in cases:
            if v == SKIPPED:
                skipped.setdefault((reason or "no reason given"), []).append(f"{preset}: {name}")
    for reason, names in sorted(skipped.items()):
        print(f"skipped, {len(names)}: {reason}")
        for name in names:
            print(f"    {name}")
    for preset, name, reason in failed:
        print(f"FAILED {preset}: {name}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
