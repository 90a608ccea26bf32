# SPDX-License-Identifier: Apache-2.0
"""alone.py NAME...: runs test programs (cli.test_alloc) or cases (test_alloc.py::test_x[a]), each in a process of its own,
with the environment and the deadline that ctest gives them; "asan:" or "tsan:" before a name chooses the build. Shows
their output. Ends with 1 when one failed. scripts/lib/second_chance.py uses the same functions."""
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import choose_tests  # noqa: E402

BUILDS = ("dev", "asan", "tsan")


class Unknown(Exception):
    pass


def tree(build):
    return Path("build" if build == "dev" else f"build-{build}").resolve()


def split(name):
    """(build, the rest) of "asan:cli.test_alloc"."""
    build, colon, rest = name.partition(":")
    return (build, rest) if colon and build in BUILDS else ("dev", name)


class Programs:
    """What ctest knows of a build tree."""

    def __init__(self, build):
        self.build = build
        self.tests = {test["name"]: test for test in choose_tests.listed(tree(build))}

    def named(self, name):
        """The program of a name, with or without its label, or of a case; its test file for that.
        A program of the gate holds a choice of cases: another one with the same file comes first."""
        file, _, case = name.partition("::")
        found = [each for each in self.tests if each == name or each.partition(".")[2] == name] if not case else [
            each for each, test in self.tests.items() if file in test.get("command", ())]
        if not found:
            raise Unknown(f"{self.build}: no test program or case {name}")
        return self.tests[min(found, key=lambda each: (choose_tests.only_gate(each), each))]

    def command(self, test, case, report):
        """Words that run the program, or one of its cases; report: pytest's own, other than that of the whole run."""
        words = test["command"]
        if "pytest" not in words:
            return words
        begin = words.index("pytest")
        python = words[begin - 3:begin + 1]  # python3 -B -m pytest
        if case:
            return [*python, "-p", "no:cacheprovider", "-q", "-ra", "--tb=short", f"--junitxml={report}", case]
        return [*python, *(f"--junitxml={report}" if word.startswith("--junitxml=") else word for word in words[begin + 1:])]

    def run(self, test, case, folder, stdout=None):
        """Runs it, with its report in a folder. True when it passed: it ended with 0, and at least one case ran."""
        folder.mkdir(parents=True, exist_ok=True)
        report = folder / "report.xml"
        report.unlink(missing_ok=True)
        properties = test["properties"]
        environment = dict(os.environ, **dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", [])))
        command = self.command(test, case, report)
        process = subprocess.Popen([*choose_tests.under(self.build), *command], env=environment, cwd=properties.get("WORKING_DIRECTORY"), stdin=subprocess.DEVNULL,
                                   stdout=stdout, stderr=subprocess.STDOUT if stdout else None, start_new_session=True)
        try:
            status = process.wait(properties.get("TIMEOUT", 900))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # what it left in its session, too
            except ProcessLookupError:
                pass
            process.wait()
        return status == 0 and ("pytest" not in command or ran(report))


def ran(report):
    return report.exists() and any(case.find("skipped") is None for case in xml.parse(report).iter("testcase"))


def main(*names):
    status = 0
    for name in names:
        build, rest = split(name)
        programs = Programs(build)
        test = programs.named(rest)
        print(f"== {build}: {rest}", flush=True)
        if not programs.run(test, rest if "::" in rest else None, tree(build) / "tests/report/alone"):
            print(f"FAILED {build}: {rest}", flush=True)
            status = 1
    print(f"{'FAILED' if status else 'passed'}: {' '.join(names)}")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (Unknown, choose_tests.Wrong) as error:
        sys.exit(f"alone.py: {error}")
