# SPDX-License-Identifier: Apache-2.0
"""second_chance.py SECONDS BUILD...: runs again, alone, what failed in the last scripts/test: pytest's cases one by one, a C
program whole, each up to two times, in a fresh process (and a fresh cluster). Starts nothing later than SECONDS from now.
Writes second-chance.json beside the reports of each build: a list of {program, case, name, passed, tries, first}; `first`
is the file with the output of the first failure. scripts/lib/test_summary.py reads it. Always ends with 0."""
import json
import re
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import alone  # noqa: E402
import test_summary  # noqa: E402

TRIES = 2


def node_of(name):
    """What pytest is told to run, of a case's name in a summary: test_alloc.py::test_x[a] of test_alloc::test_x[a]."""
    file, _, case = name.partition("::")
    return f"{file.replace('.', '/')}.py::{case}"


def failures(programs, folder):
    """(test, case or None, name) of what failed in a build; None: the program is repeated whole."""
    for _, program, _, cases in test_summary.programs_of(folder):
        test = programs.tests[program]
        failed = [name for name, verdict, _ in cases if verdict == test_summary.FAILED]
        if failed and ("pytest" not in test["command"] or any("::" not in name for name in failed)):
            yield test, None, program
        else:
            for name in failed:
                yield test, node_of(name), name


def outputs(folder):
    """{program: what it printed in the run}"""
    return {case.get("name"): case.findtext("system-out") or ""
            for lane in test_summary.LANES if (report := folder / f"{lane}.ctest.xml").exists()
            for case in xml.parse(report).iter("testcase")}


def main(seconds, *builds):
    end = time.monotonic() + float(seconds)
    for build in builds:
        programs, folder, made = alone.Programs(build), alone.tree(build) / "tests/report", []
        printed = outputs(folder)
        for test, case, name in failures(programs, folder):
            place = folder / "second" / re.sub(r"[^\w.-]+", "_", name)[:120]
            place.mkdir(parents=True, exist_ok=True)
            first = place / "first.log"
            first.write_text(printed.get(test["name"], ""))
            passed, tries = False, 0
            while not passed and tries < TRIES and time.monotonic() < end:
                tries += 1
                began = time.monotonic()
                with open(place / f"again-{tries}.log", "w") as log:
                    passed = programs.run(test, case, place, log)
                print(f"== again, alone: {build}: {name} {'passed' if passed else 'FAILED'} in {time.monotonic() - began:.0f} s",
                      flush=True)
                if not passed:
                    print((place / f"again-{tries}.log").read_text()[-8000:], flush=True)
            made.append({"program": test["name"], "case": case, "name": name, "passed": passed, "tries": tries, "first": str(first)})
        (folder / "second-chance.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
