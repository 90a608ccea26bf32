# SPDX-License-Identifier: Apache-2.0
"""What cmake/Hardening.cmake states, read from the built programs and libraries."""
import platform
import re
import subprocess
from pathlib import Path

import pytest

from support.build import BUILD, SOURCE

pytestmark = pytest.mark.plain("flags of a plain build")

STATIC = ["bin/drarun", "bin/drarun-worker", "bin/drarun-attach", "bin/drarun-plugin", "libexec/drarun/drarun-remote", "libexec/drarun/drarun-cluster"]
DYNAMIC = ["libexec/drarun/drarun-nvml", "bin/drarun-bench", "lib/libdrarun.so.0", "lib/alone/libdrarun.so.0", "lib/drarun/bench-mpi.so",
           "lib/drarun/bench-nccl.so"]
ANYWHERE = [str(each.relative_to(BUILD)) for folder in ("bin", "lib/drarun") for each in sorted((BUILD / "anywhere" / folder).glob("*"))]
ALL = STATIC + DYNAMIC + ANYWHERE

def readelf(*words):
    return subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True, check=True).stdout


def segments(path):
    """{type: (address, size, flags)} of a program's headers."""
    line = re.compile(r"^  ([A-Z_]+) +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) ([RWE ]{3}) ", re.M)
    return {kind: (int(address, 16), int(size, 16), flags) for kind, address, size, flags in line.findall(readelf("-l", path))}


def symbols(path):
    """(name, binding, visibility, section) of each symbol."""
    found = re.findall(r"^ +\d+: \w+ +\w+ \w+ +(\w+) +(\w+) +(\w+) (\S+)", readelf("-s", path), re.M)
    return [(name.split("@")[0], bind, visible, where) for bind, visible, where, name in found]


@pytest.mark.parametrize("name", ALL)
def test_no_stack_is_executable(name):
    assert segments(BUILD / name)["GNU_STACK"][2] == "RW "


@pytest.mark.parametrize("name", ALL)
def test_tables_of_addresses_are_read_only(name):
    """Before main: the whole table is within what is made read-only, and nothing is left to be bound later."""
    begin, size, flags = segments(BUILD / name)["GNU_RELRO"]
    assert flags == "R  "
    tables = re.findall(r"\] (\.got|\.got\.plt|\.init_array|\.data\.rel\.ro) +\w+ +(\w+) \w+ (\w+)", readelf("-S", BUILD / name))
    assert ".got" in {table for table, _, _ in tables}
    for table, address, length in tables:
        assert begin <= int(address, 16) and int(address, 16) + int(length, 16) <= begin + size, table
    if name not in STATIC:
        assert re.search(r"\((?:FLAGS|BIND_NOW)\).*(?:BIND_NOW)|\(FLAGS_1\).*NOW", readelf("-d", BUILD / name))


@pytest.mark.parametrize("name", ["libexec/drarun/drarun-nvml", "bin/drarun-bench"])
def test_programs_that_load_libraries_lie_anywhere(name):
    assert "Type:                              DYN (Position-Independent" in readelf("-h", BUILD / name)


@pytest.mark.parametrize("name", [each for each in ALL if not each.startswith("anywhere/lib")])
def test_overflows_are_found(name):
    """The stack protector, and functions of glibc that know how much room there is."""
    names = {symbol for symbol, *_ in symbols(BUILD / name)}
    assert "__stack_chk_fail" in names
    assert any(re.fullmatch(r"__\w+_chk", each) for each in names)


# A program is protected when all of its objects are.
ARCHIVES = ["lib/base/libdrarun_base.a", "lib/wire/libdrarun_wire.a", "lib/wire/libdrarun_wire_messages.a", "jobs/spec/libdrarun_spec.a",
            "launcher/run/libdrarun_launcher_run.a", "worker/agent/libdrarun_worker_agent.a", "plugin/attach/libdrarun_attach.a",
            "benchmarks/bench/libdrarun_bench.a"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="control-flow protection of x86-64")
@pytest.mark.parametrize("name", ARCHIVES)
def test_every_object_has_control_flow_protection(name):
    members = readelf("-n", BUILD / name).split("File: ")[1:]
    assert members and all("x86 feature: IBT, SHSTK" in each for each in members)


def test_libdrarun_exports_what_its_map_lists():
    listed = set(re.findall(r"^ +(drarun_\w+);", (SOURCE / "launcher/api/libdrarun.map").read_text(), re.M))
    for name in ("lib/libdrarun.so.0", "lib/alone/libdrarun.so.0"):
        lines = re.findall(r"^ +\d+: \w+ +\d+ (?:FUNC|OBJECT|TLS) +(?:GLOBAL|WEAK) +DEFAULT +\d+ (\w+)", readelf("--dyn-syms", BUILD / name), re.M)
        assert listed and set(lines) == listed


@pytest.mark.parametrize("name", ARCHIVES)
def test_what_is_not_for_users_is_hidden(name):
    """In the objects already, so that a library without a version script exports no more either."""
    ours = [(symbol, visible) for symbol, bind, visible, where in symbols(BUILD / name)
            if bind in ("GLOBAL", "WEAK") and where not in ("UND", "COM")]
    assert len(ours) > 0 and [symbol for symbol, visible in ours if visible != "HIDDEN"] == []
