# SPDX-License-Identifier: Apache-2.0
"""benchmarks/harness: turns, intervals, reports; and the command that all families share."""
import json
import random
import statistics
import subprocess
import sys

import pytest

from support.build import BUILD, SOURCE, patience

sys.path.insert(0, str(SOURCE))

from benchmarks.harness.processes import children  # noqa: E402
from benchmarks.harness.report import Report  # noqa: E402
from benchmarks.harness.spread import Spread, midmean, ratio  # noqa: E402
from benchmarks.harness.turns import in_turns, sampled  # noqa: E402
from benchmarks.plugin import idle  # noqa: E402


def run(*words, before=None):
    more = {"DRARUN_BEFORE": str(before)} if before else {}
    return subprocess.run([SOURCE / "benchmarks/run", *words], env={"DRARUN_BUILD": str(BUILD), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **more},
                          capture_output=True, text=True, timeout=patience(300), check=False)


def test_order_is_reversed_every_other_round():
    assert "".join(name for _, name in in_turns("ab", 3)) == "baabbaab"
    values = iter(range(100))
    assert sampled({"a": lambda: next(values), "b": lambda: next(values)}, 2) == {"a": [2, 5], "b": [3, 4]}


def test_interval_holds_the_true_median():
    """In about 95 of 100 samples."""
    rng, held = random.Random(7), 0
    for _ in range(2000):
        spread = Spread([rng.lognormvariate(0, 1) for _ in range(25)])
        held += spread.low <= 1 <= spread.high
        assert spread.min <= spread.low <= spread.median <= spread.high <= spread.max
    assert 0.93 <= held / 2000 <= 0.995, held


def test_ratio_of_medians():
    rng = random.Random(3)
    ours, theirs = [rng.gauss(2, 0.1) for _ in range(41)], [rng.gauss(4, 0.2) for _ in range(41)]
    value, low, high = ratio(ours, theirs)
    assert value == statistics.median(ours) / statistics.median(theirs) and low <= value <= high
    assert 0.48 < low <= 0.5 <= high < 0.52


def test_midmean_leaves_the_outer_quarters_out():
    assert midmean([0.2, 0.21, 0.21, 0.2, 0.21, 90, 0.21, 0.1]) == pytest.approx(0.2075) and midmean([3]) == 3


def test_memory_is_told_by_what_lies_there():
    lines = [("00401000-00890000 r-xp 00001000 fe:00 935181                             /usr/sbin/drarun-plugin", 4668, 2900, 0),
             ("00890000-009ed000 r--p 00490000 fe:00 935181                             /usr/sbin/drarun-plugin", 1396, 704, 0),
             ("009ed000-00a57000 r--p 005ed000 fe:00 935181                             /usr/sbin/drarun-plugin", 424, 424, 8),
             ("00a57000-00a60000 rw-p 00657000 fe:00 935181                             /usr/sbin/drarun-plugin", 36, 36, 32),
             ("00a60000-00a6a000 rw-p 00000000 00:00 0 ", 40, 24, 24),
             ("0bd61000-0bee8000 rw-p 00000000 00:00 0                                  [heap]", 1564, 1072, 1072),
             ("7fa0cfe00000-7fa0cfe28000 r-xp 00026000 fe:00 9123                       /usr/lib/x86_64-linux-gnu/libc.so.6", 160, 80, 0),
             ("7fffa59db000-7fffa59fc000 rw-p 00000000 00:00 0                          [stack]", 132, 32, 32),
             ("7f401ed03000-7f401ed05000 r-xp 00000000 00:00 0                          [vdso]", 8, 4, 0)]
    told = "".join(f"{line}\nSize: {size:17} kB\nRss: {rss:17} kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: {dirty:9} kB\nVmFlags: rd ex\n"
                   for line, size, rss, dirty in lines)
    found = {name: (each["Size"], each["Rss"], each["Private_Dirty"]) for name, each in idle.memory(told).items()}
    assert found == {"code": (4668, 2900, 0), "constants": (1820, 1128, 8), "data": (76, 60, 56), "heap": (1564, 1072, 1072),
                     "code of libraries": (160, 80, 0), "stack": (132, 32, 32), "the kernel's": (8, 4, 0)}


CLONES = """import ctypes, os, platform, signal
def clone(signo):
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    pid = ctypes.CDLL(None).syscall(*map(ctypes.c_long, (number, signo, 0, 0, 0, 0)))
    return pid or os._exit(len(os.read(0, 1)))
print(clone(0), clone(signal.SIGCHLD), flush=True)
os.read(0, 1)
"""


def test_helpers_of_a_sanitizer_are_no_children():
    """The soak kills children of a launcher, which would hang when it lost the one by which it looks for leaks."""
    with subprocess.Popen([sys.executable, "-c", CLONES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        helper, child = map(int, parent.stdout.readline().split())
        assert 0 < helper != child > 0
        assert children(parent.pid) == [child]
    assert children(parent.pid) == []


def test_missed_goal_is_told(tmp_path, capsys):
    report = Report()
    report.begin("Title", "Words.")
    report.heading("Rows")
    report.table(["what", "median", "95 %", "min", "p25-p75", "max", "verdict"])
    report.row("a", *report.spread("a", [1, 2, 3]), report.verdict("a", 2, 1))
    report.row("b", *report.spread("b", []), report.verdict("b", 2, 2))
    report.summary()
    report.write(tmp_path / "r.md")
    report.write_json(tmp_path / "r.json")
    text, data = (tmp_path / "r.md").read_text(), json.loads((tmp_path / "r.json").read_text())
    assert "| a | 2.00 | 1.00-3.00 | 1.00 | 1.50-2.50 | 3.00 | **not met** |" in text and capsys.readouterr().out == text
    assert "- not met: a: 2.00, goal 1.00" in text and "1 met, 1 not met." in text
    assert data["samples"][0] == {"heading": "Rows", "what": "a", "values": [1, 2, 3]}
    assert data["goals"] == {"met": 1, "missed": ["a: 2.00, goal 1.00"]} and data["machine"]["cpus"] > 0
    assert data["tables"][0]["rows"][1][0] == "b"


def test_family_is_measured(tmp_path):
    done = run("plan", "--only", "pairing", "--json", tmp_path / "plan.json")
    assert done.returncode in (0, 1) and "# Planning" in done.stdout, done.stderr
    data = json.loads((tmp_path / "plan.json").read_text())
    assert len(data["samples"][0]["values"]) == 2000 and data["goals"]["met"] + len(data["goals"]["missed"]) == 1


def test_starts_are_measured(tmp_path):
    """Of each program, and of another build tree beside it."""
    for before in (None, BUILD):
        done = run("plugin", "--smoke", "--only", "starts", "--json", tmp_path / "starts.json", before=before)
        assert done.returncode in (0, 1) and "times in turns" in done.stdout, done.stderr
        found = {each["what"]: each["values"] for each in json.loads((tmp_path / "starts.json").read_text())["samples"]}
        names = ["drarun-cluster", "drarun-remote", "drarun-plugin"]
        assert sorted(found) == sorted(names + [f"{name}, before" for name in names if before]), found
        assert all(len(values) == 2 and min(values) > 0 for values in found.values()), found


def test_command_line():
    assert "Families: attach, bench, cluster, fabric, gpu, launch, plan, plugin." in run("--help").stdout
    unknown = run("plam")
    assert unknown.returncode == 1 and "no family plam: there are attach" in unknown.stderr
    assert "invalid choice: 'x' (choose from 'verbs', 'pairing')" in run("plan", "--only", "x").stderr
    for family in ("attach", "bench", "cluster", "fabric", "gpu", "launch", "plan", "plugin"):
        assert "--smoke" in run(family, "--help").stdout, family
