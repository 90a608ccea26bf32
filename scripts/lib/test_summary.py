# SPDX-License-Identifier: Apache-2.0
"""test_summary.py [--costs] KIND BUILD...: one summary of the last scripts/test from the reports in the build trees, and where
its time went. A case is a pytest case, a cmocka test, or else a ctest test. A case that failed and passed in its second
chance (scripts/lib/second_chance.py) is unsteady: it is reported and does not decide. Writes profile.json beside the
reports; with --costs also tests/costs.json, by which cmake/PythonTest.cmake lets programs run beside each other.
KIND is gate, all, for, or some. Ends with 1 when a case failed, when one was skipped for a reason that is not in
tests/skips.txt, or when fewer ran than tests/least-cases.json says for KIND."""
import collections
import json
import os
import re
import shlex
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_pool  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
LANES = ("unit", "whole", "timed")
SLOWEST = 25

PASSED, FAILED, SKIPPED, UNSTEADY = "passed", "failed", "skipped", "unsteady"


def first_words(message):
    """The first line, and the next one with words in it where the first only announces it."""
    lines = [line for line in message.splitlines() if re.search(r"\w", line)] or [""]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])[:200]


def pytest_cases(report):
    """(name, verdict, reason) of every case of a file."""
    for case in xml.parse(report).iter("testcase"):
        place = case.get("classname")  # none where a file could not be read
        name = f"{place}::{case.get('name')}" if place else case.get("name")
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
    """The reason of a skipped case is what skip_for of lib/base/test/skip.h has said within it. The cases that did not pass are
    listed once more at the end."""
    words = {"OK": PASSED, "SKIPPED": SKIPPED, "FAILED": FAILED}
    seen, lacks, said = {}, {}, ""
    for word, text in re.findall(r"^\[ +(RUN|REASON|OK|SKIPPED|FAILED) +\] (.+)$", output, re.M):
        if word in ("RUN", "REASON"):
            said = text if word == "REASON" else ""
        elif re.fullmatch(r"\w+", text):
            seen[text] = words[word]
            lacks.setdefault(text, said)
    errors = " ".join(re.findall(r"^\[ +ERROR +\] --- (.+)$", output, re.M))[:200]
    for name, verdict in seen.items():
        yield f"{program}::{name}", verdict, {FAILED: errors, SKIPPED: lacks[name]}.get(verdict, "")


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
    """Of the programs that measured.py ran, as test_pool.py calls them; those that did not run keep theirs."""
    path = SOURCE / "tests/costs.json"
    kept = json.loads(path.read_text())
    for (build, program), cost in costs.items():
        if not program.startswith(("unit.", "fuzz.")):
            kept[test_pool.pooled(program, build)] = {"wall_s": round(cost["wall_s"]) or 1, "cpu_percent": round(100 * cost["cpu_s"] / cost["wall_s"])}
    path.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept)) + "\n}\n")


def second_chances(folder):
    """What failed and was repeated, as scripts/lib/second_chance.py wrote it."""
    path = folder / "second-chance.json"
    return json.loads(path.read_text()) if path.exists() else []


def forgiving(chances):
    """A function of (program, name of a case): the second chance that it passed, or None."""
    by_name = {each["name"]: each for each in chances if each["case"] and each["passed"]}
    by_program = {each["program"]: each for each in chances if not each["case"] and each["passed"]}
    return lambda program, name: by_name.get(name) or by_program.get(program)


def permitted_skips(path):
    """The patterns of tests/skips.txt."""
    return [re.compile(line) for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]


def too_few(kind, build, number):
    """A sentence where a build had fewer cases than it must have; "" where it had enough, or nothing is known."""
    least = json.loads((SOURCE / "tests/least-cases.json").read_text()).get(kind, {}).get(build, 0)
    if number >= least:
        return ""
    return f"{build}: {number} cases, at least {least} expected (tests/least-cases.json): some did not run"


def how_to_repeat(build, program, name):
    what = f"{name.replace('::', '.py::', 1)}" if "::" in name and not program.startswith(("unit.", "fuzz.")) else program
    what = what if build == "dev" else f"{build}:{what}"
    return f"scripts/test --only {shlex.quote(what)}"


def main(kind, builds, keep_costs):
    failed, unsteady, forbidden = [], [], []
    skipped, costs, total = {}, {}, 0
    permitted = permitted_skips(SOURCE / "tests/skips.txt")
    print("\n== summary")
    for build in builds:
        folder = Path("build" if build == "dev" else f"build-{build}") / "tests/report"
        count, forgiven = collections.Counter(), forgiving(second_chances(folder))
        for _, program, seconds, cases in programs_of(folder):
            costs[build, program] = cost_of(folder, program, seconds)
            for name, verdict, reason in cases:
                chance = forgiven(program, name) if verdict == FAILED else None
                if chance:
                    verdict = UNSTEADY
                    unsteady.append(f"{build}: {name}: {reason}\n    its first output: {chance['first']}")
                elif verdict == FAILED:
                    failed.append(f"{build}: {name}: {reason}\n    {how_to_repeat(build, program, name)}")
                elif verdict == SKIPPED:
                    reason = reason or "no reason given"
                    skipped.setdefault(reason, []).append(f"{build}: {name}")
                    if not any(pattern.search(reason) for pattern in permitted):
                        forbidden.append(f"{build}: {name}: skipped for a reason that tests/skips.txt does not permit: {reason}")
                count[verdict] += 1
        total += count.total()
        print(f"{build:6} {count[PASSED]:5} passed {count[FAILED]:4} failed {count[SKIPPED]:4} skipped {count[UNSTEADY]:4} unsteady")
        if lacking := too_few(kind, build, count.total()):
            forbidden.append(lacking)
        (folder / "profile.json").write_text(json.dumps(
            {program: cost for (where, program), cost in costs.items() if where == build}, indent=1) + "\n")
    for reason, names in sorted(skipped.items()):
        print(f"skipped, {len(names)}: {reason}")
        for name in names:
            print(f"    {name}")
    print_profile(costs, os.cpu_count())
    for each in unsteady:
        print(f"unsteady (it passed when it ran again alone), {each}")
    if not total:
        forbidden.append("no test ran")
    for each in failed + forbidden:
        print(f"FAILED {each}")
    if keep_costs:
        write_costs(costs)
    return 1 if failed or forbidden else 0


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--costs"]
    sys.exit(main(words[0], words[1:], "--costs" in sys.argv))
