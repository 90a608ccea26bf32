# SPDX-License-Identifier: Apache-2.0
"""test_summary.py [--costs] BUILD...: one summary of the last scripts/test from the reports in the build trees, and where
its time went. A case is a pytest case, a cmocka test, or else a ctest test. A failure in the lane of the unsteady programs
(tests/unsteady.txt) is reported and does not decide. Writes profile.json beside the reports; with --costs also
tests/costs.json, by which cmake/PythonTest.cmake lets programs run beside each other. Ends with 1 when a case failed, or
when there was none."""
import collections
import json
import os
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
LANES = ("unit", "whole", "unsteady")
SLOWEST = 25

PASSED, FAILED, SKIPPED, UNSTEADY = "passed", "failed", "skipped", "unsteady"


def first_words(message):
    """The first line, and the next one with words in it where the first only announces it."""
    lines = [line for line in message.splitlines() if re.search(r"\w", line)] or [""]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])[:200]


def pytest_cases(report):
    """(name, verdict, reason) of every case of a file."""
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname') or report.stem}::{case.get('name')}"
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


def ctest_cases(report):
    """(program, seconds, [(name, verdict, reason)]) of every program of a lane's report."""
    for case in xml.parse(report).iter("testcase"):
        name, status = case.get("name"), case.get("status")
        if status == "disabled":
            continue
        output = case.findtext("system-out") or ""
        inside = report.parent / f"{name.partition('.')[2]}.xml"
        cases = list(pytest_cases(inside) if inside.exists() else cmocka_cases(name, output))
        verdict = {"run": PASSED, "fail": FAILED}.get(status, SKIPPED)
        # a program may fail without a failed case: killed, out of time, a leak at its end
        if not cases or (verdict == FAILED and not any(v == FAILED for _, v, _ in cases)):
            lines = output.strip().splitlines() or [""]
            message = case.find("failure")
            reason = message.get("message", "") if message is not None else ""
            cases.append((name, verdict, reason or lines[-1][:200]))
        yield name, float(case.get("time") or 0), cases


def programs_of(folder):
    """(lane, program, seconds, cases) of a build's last run; folder: its tests/report."""
    for lane in LANES:
        if (report := folder / f"{lane}.ctest.xml").exists():
            for program, seconds, cases in ctest_cases(report):
                yield lane, program, seconds, cases


def cost_of(folder, program, seconds):
    """Wall and CPU seconds. A unit test, whose CPU time is not measured, is taken to compute all the time."""
    measured = folder / f"{program.partition('.')[2]}.cost.json"
    if not measured.exists():
        return {"wall_s": seconds, "cpu_s": seconds}
    return json.loads(measured.read_text())


def waiting(cost, cores):
    """The share of the cores' time that a program left to others."""
    return max(0.0, 1 - cost["cpu_s"] / (cost["wall_s"] * cores)) if cost["wall_s"] else 0.0


def print_profile(costs, cores):
    """costs: {(build, program): its cost}"""
    print(f"\n== the slowest of {len(costs)} programs: {sum(c['wall_s'] for c in costs.values()):.0f} s of programs, "
          f"{sum(c['cpu_s'] for c in costs.values()):.0f} s of CPU")
    print(f"{'wall s':>8} {'CPU s':>8} {'waiting':>8}  program")
    for (build, program), cost in sorted(costs.items(), key=lambda item: -item[1]["wall_s"])[:SLOWEST]:
        print(f"{cost['wall_s']:8.1f} {cost['cpu_s']:8.1f} {waiting(cost, cores):8.0%}  {build} {program}")


def write_costs(costs):
    """Of the default build's programs that measured.py ran; those that did not run keep theirs."""
    path = SOURCE / "tests/costs.json"
    kept = json.loads(path.read_text())
    for (build, program), cost in costs.items():
        if build == "dev" and not program.startswith(("unit.", "fuzz.")):
            kept[program] = {"wall_s": round(cost["wall_s"]) or 1, "cpu_percent": round(100 * cost["cpu_s"] / cost["wall_s"])}
    path.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept)) + "\n}\n")


def main(builds, keep_costs):
    named = {FAILED: [], UNSTEADY: []}
    skipped, costs, total = {}, {}, 0
    print("\n== summary")
    for build in builds:
        folder = Path("build" if build == "dev" else f"build-{build}") / "tests/report"
        count = collections.Counter()
        for lane, program, seconds, cases in programs_of(folder):
            costs[build, program] = cost_of(folder, program, seconds)
            for name, verdict, reason in cases:
                verdict = UNSTEADY if verdict == FAILED and lane == "unsteady" else verdict
                count[verdict] += 1
                if verdict == SKIPPED:
                    skipped.setdefault(reason or "no reason given", []).append(f"{build}: {name}")
                elif verdict in named:
                    named[verdict].append(f"{build}: {name}: {reason}")
        total += count.total()
        print(f"{build:6} {count[PASSED]:5} passed {count[FAILED]:4} failed {count[SKIPPED]:4} skipped {count[UNSTEADY]:4} unsteady")
        (folder / "profile.json").write_text(json.dumps(
            {program: cost for (where, program), cost in costs.items() if where == build}, indent=1) + "\n")
    for reason, names in sorted(skipped.items()):
        print(f"skipped, {len(names)}: {reason}")
        for name in names:
            print(f"    {name}")
    print_profile(costs, os.cpu_count())
    for each in named[UNSTEADY]:
        print(f"unsteady, and known to be (tests/unsteady.txt), {each}")
    for each in named[FAILED]:
        print(f"FAILED {each}")
    if not total:
        print("FAILED no test ran")
    if keep_costs:
        write_costs(costs)
    return 1 if named[FAILED] or not total else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main([word for word in words if word != "--costs"], "--costs" in words))
