# SPDX-License-Identifier: Apache-2.0
"""drarun-bench under every MPI library: nccl-tests' table, right data, and what it refuses."""
import csv
import ctypes.util
import json
import pathlib
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.build import ANYWHERE, ANYWHERE_MISSING, BUILD, SOURCE, patience
from support.mpi import ALL

pytestmark = pytest.mark.plain("MPI libraries leak; what is ours has unit tests on that build")

BENCH = BUILD / "bin" / "drarun-bench"
NAMES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv",
         "hypercube", "alltoallv"]
ROOTED = {"broadcast", "reduce", "gather", "scatter"}
REDUCES = {"all_reduce", "reduce_scatter", "reduce"}
NOT_IN_PLACE = {"alltoall", "sendrecv", "alltoallv"}
# what those who read nccl-tests' text take for a row: size, count, type, redop, root, then time, algbw, busbw, #wrong twice
ROW = re.compile(r"^ *(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+)((?: +[\d.e+]+){3}) +(\d+|N/A)((?: +[\d.e+]+){3}) +(\d+|N/A)$", re.M)


@pytest.fixture(scope="session", params=ALL, ids=lambda mpi: mpi.name)
def module(request):
    """(MPI, the backend made with its compiler)."""
    mpi, folder = request.param, SOURCE / "benchmarks" / "bench"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", "-D_GNU_SOURCE", f"-I{SOURCE / 'include'}", "-lm"]
    return mpi, mpi.compile(folder / "mpi_backend.c", folder / "element.c", SOURCE / "lib/base/error.c", SOURCE / "lib/base/plain.c", flags=flags)


@pytest.fixture
def bench(drarun, module):
    mpi, path = module
    return lambda ranks, *words, env={}: drarun(
        "-n", str(ranks), BENCH, *words, env={**mpi.env, "DRARUN_BENCH_MODULE": str(path), **env})


def rows(result):
    found = ROW.findall(result.ok().out)
    assert len(found) == len([line for line in result.out.splitlines() if not line.startswith("#")]), result.out
    return found


@pytest.mark.parametrize("name", NAMES)
def test_data_is_right(bench, module, name):
    """On as many ranks as make sense, of one library also alone and with an odd number."""
    for ranks in (1, 3) if module[0].name == "openmpi4" else (2,):
        # MPICH 4.0 reads MPI_IN_PLACE as an address in a reduction to another root than 0
        some = name == "reduce" and module[0].name == "mpich4"
        result = bench(ranks, name, "-b", "8", "-e", "32K", "-f", "4096", "-n", "1", "-w", "0", "-r", "0" if some else "all")
        if name == "hypercube" and ranks == 3:
            assert result.rc == 64 and "a hypercube has a power of two of ranks" in result.err
            continue
        found = rows(result)
        roots = [-1] if name not in ROOTED else [0] if some else range(ranks)
        assert [int(row[4]) for row in found] == [root for root in roots for _ in range(2)]
        assert {row[3] for row in found} == {"sum" if name in REDUCES else "none"}
        assert {row[6] for row in found} == {"0"}
        assert {row[8] for row in found} == {"N/A" if name in NOT_IN_PLACE else "0"}
        assert "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : " in result.out
        assert module[0].version in result.out.splitlines()[0]


def test_all_types_and_operations(bench):
    found = rows(bench(2, "all_reduce", "-b", "1000", "-e", "1000", "-n", "1", "-d", "all", "-o", "all", "-u", "3"))
    assert {(row[2], row[3]) for row in found} == {(kind, op) for op in ("sum", "prod", "max", "min") for kind in (
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2")}
    assert {(row[6], row[8]) for row in found} == {("0", "0")}
    found = rows(bench(3, "reduce_scatter", "-b", "999", "-e", "4999", "-i", "2000", "-n", "1", "-d", "half", "-o", "prod"))
    assert [int(row[0]) for row in found] == [960, 2976, 4992] and {(row[6], row[8]) for row in found} == {("0", "0")}


def test_barrier(bench):
    """Moves nothing: one row of no bytes, whatever sizes are asked for."""
    row, = rows(bench(2, "barrier", "-b", "8", "-e", "1M", "-f", "2", "-n", "50"))
    assert row[:2] == ("0", "0") and row[6] == row[8] == "N/A" and float(row[5].split()[0]) > 0


def test_table_is_nccl_tests(bench):
    """Line by line as its 2.19 prints it."""
    lines = bench(2, "all_gather", "-b", "1K", "-e", "2K", "-f", "2", "-w", "0", "-n", "1").ok().out.splitlines()
    assert lines[2] == "# nThread 1 nGpus 1 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 0 iters: 1 agg iters: 1 " \
                       "validation: 1 graph: 0 unalign: 0"
    assert lines[4] == "# Using devices" and re.match(r"#  Rank  1 Group  0 Pid +\d+ on +\S+ device  0 \[mpi\] memory", lines[6])
    assert lines[8].split() == ["#", "out-of-place", "in-place"]
    assert lines[9].split() == "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong".split()
    assert lines[10].split() == "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)".split()
    assert len(lines[11]) == 118 and lines[11].startswith("        1024           128     float    none      -1  ")


def test_times_of_single_calls(bench):
    """nccl-tests' columns of -I: least, most, 99th percentile, variation."""
    lines = bench(2, "all_reduce", "-b", "1K", "-e", "1K", "-n", "9", "-I", "1", "-K", "2").ok().out.splitlines()
    assert lines[9].split()[6:] == 2 * "time algbw busbw #wrong i_min i_max i_p99 i_cv%".split()
    row = lines[11].split()
    for half in (row[5:13], row[13:21]):
        time, least, most, p99 = (float(half[i]) for i in (0, 4, 5, 6))
        assert least > 0 and least <= most == p99 and float(half[7]) >= 0 and time > 0, half


def test_latency(drarun, tmp_path):
    """One number a size: the median of calls of known length, the slower rank's; in text, JSON and CSV, and in place of a verdict."""
    document, table = tmp_path / "a.json", tmp_path / "a.csv"
    env = {"DRARUN_BENCH_MODULE": str(SLEEP), "SLEEP_FILE": str(tmp_path / "ranks"), "SLEEP_US": "2000", "SLEEP_SLOW": "1:50"}
    out = drarun("bench", "all_reduce", "-n", "2", "--latency", "-b", "8", "-e", "16", "--iters", "30", "-w", "1", "-c", "0", "-J", document,
                 "--csv", table, "--no-verdict", env=env).ok().out
    block = out.split("# Latency: of 30 single calls out of place, each behind a barrier, its slowest rank (us)\n")[1].splitlines()
    assert block[0].split()[1:] == "size type redop root median p95 p99 least most".split() and block[3] == "#"
    kept = json.loads(document.read_text())["results"]
    rows_of_csv = [row for row in csv.DictReader(table.open()) if row["place"] == "out"]
    for line, row, of_csv, size in zip(block[1:3], kept, rows_of_csv, (8, 16), strict=True):
        cells = line.split()[1:]
        median, p95, p99, least, most = map(float, cells[4:])
        assert int(cells[0]) == row["size"] == size and 3000 <= least <= median <= p95 <= p99 <= most
        assert row["latency_us"] == pytest.approx(median, abs=.01) and float(of_csv["latency_us"]) == pytest.approx(median, rel=1e-4)
        assert sorted(row["out_of_place_per_iter"]["times_us"])[14] <= row["latency_us"] <= sorted(row["out_of_place_per_iter"]["times_us"])[15]


def test_latency_has_no_verdict_of_bandwidth(drarun, tmp_path):
    """Of 8 bytes two ranks gather nothing, which takes no time and is no latency."""
    lines, text = tmp_path / "a.jsonl", tmp_path / "a.txt"
    result = drarun("-n", "2", BENCH, "all_gather", "--latency", "-n", "20", "-w", "2", "--json-lines", lines).ok()
    sizes = re.findall(r"^# +(\d+)     float    none      -1 ", result.out, re.M)
    assert sizes == [str(32 << i) for i in range(12)], result
    said = drarun("bench", "judge", lines).ok().out
    assert re.search(r"^  latency   [\d.]+ us at 32 B, the median of single calls; 95 % within [\d.]+, 99 % within [\d.]+\n", said, re.M), said
    assert "  verdict   none: of latency no limit is known\n" in said and "GB/s" not in said
    text.write_text(result.out)
    assert len(json.loads(drarun("bench", "judge", "-o", "json", text).ok().out)[0]["result"]["results"]) == 14
    barrier = drarun("bench", "barrier", "-n", "2", "--latency", "--iters", "20").ok().out
    assert re.search(r"^#   latency   [\d.]+ us at 0 B, ", barrier, re.M), barrier


def test_measurement_that_does_not_end(drarun):
    """-T: a rank that waits for others says so and ends; here it calls more than can be done in a second."""
    result = drarun("-n", "2", BENCH, "all_reduce", "-b", "1K", "-e", "1K", "-n", "100000000", "-T", "1")
    assert result.rc == 124 and "all_reduce of 1024 bytes is not done after 1 s (--timeout)" in result.err


def test_slower_than_wanted(bench):
    result = bench(2, "all_reduce", "-b", "1K", "-e", "1K", "-n", "1", "--min-busbw", "1000000")
    assert result.rc == 1 and re.search(r"# Avg bus bandwidth    : \S+ FAILED", result.out)


def test_result_files(bench, tmp_path):
    """nccl-tests' JSON with more in it, lines, CSV: the table's figures; no file that is there is lost; no secret in any."""
    secrets = {f"{prefix}{i}{suffix}": f"hidden-{i}-{prefix}" for i in range(10) for prefix, suffix in (
        ("MY_", "_TOKEN"), ("NCCL_", "_API_KEY"), ("UCX_SECRET_", ""), ("HOME_", ""), ("AWS_", "_PASSWORD"))}
    assert len(secrets) == 50
    document, lines, table = (tmp_path / name for name in ("a.json", "a.jsonl", "a.csv"))
    document.write_text("mine")
    words = ["all_reduce", "-b", "1K", "-e", "4K", "-f", "2", "-n", "6", "-I", "1", "-K", "1"]
    result = bench(2, *words, "-J", document, "--json-lines", lines, "--csv", table, env={**secrets, "NCCL_ALGO": "Ring"}).ok()
    assert document.read_text() == "mine" and f"# Writing JSON output to {document}.0" in result.out
    assert not re.search("hidden-", "".join(file.read_text() for file in tmp_path.iterdir()) + result.out + result.err)
    whole = json.loads(pathlib.Path(f"{document}.0").read_text())
    assert "NCCL_ALGO=Ring" in whole["env"] and whole["args"][1:] == [str(word) for word in words] + [
        "-J", str(document), "--json-lines", str(lines), "--csv", str(table)]
    assert whole["out_of_bounds"] == {"count": 0, "okay": "true"} and len(whole["config"]["devices"]) == 2
    found = [line.split() for line in result.out.splitlines() if re.match(" *[0-9]", line)]  # UCX says what it does not know
    assert [row["size"] for row in whole["results"]] == [int(row[0]) for row in found] == [1024, 2048, 4096]
    for row, cells in zip(whole["results"], found):
        half, calls = row["in_place"], row["in_place_per_iter"]
        assert half["time"] == pytest.approx(float(cells[13]), rel=.01, abs=.0051) and half["nwrong"] == 0
        assert half["bus_bw"] == half["alg_bw"] and len(half["per_rank_times_us"]) == 2
        assert sum(half["per_rank_times_us"]) / 2 == pytest.approx(half["time"])
        assert len(calls["times_us"]) == 6 and max(calls["times_us"][1:]) == calls["max_us"] >= calls["p99_us"] >= calls["p50_us"]
    streamed = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [line.pop("kind") for line in streamed] == ["begin", "row", "row", "row", "end"]
    assert streamed[1:4] == whole["results"]
    rows_of_csv = list(csv.DictReader(table.open()))
    assert [(row["size"], row["place"]) for row in rows_of_csv] == [(cells[0], place) for cells in found for place in ("out", "in")]
    assert float(rows_of_csv[1]["time_us"]) == pytest.approx(float(found[0][13]), rel=.01, abs=.0051)


def test_lines_are_whole_after_a_kill(drarun, tmp_path):
    """Whatever is there when it ends by SIGKILL is a line of JSON each."""
    lines = tmp_path / "a.jsonl"
    words = ["bash", "-c", f'{BENCH} all_reduce -b 8 -e 8 -n 1 -N 0 --json-lines {lines} & until [ $(wc -l < {lines}) -ge 50 ]; '
             'do sleep .01; done; kill -9 $!; wait $!']
    for _ in range(3):
        lines.unlink(missing_ok=True)
        drarun("-n", "1", *words)
        text = lines.read_text()
        assert text.endswith("\n") and len([json.loads(line) for line in text.splitlines()]) >= 50


@pytest.mark.parametrize("option", ["-J", "--json-lines", "--csv"])
def test_full_disk(drarun, option, tmp_path):
    """Said with the file's name, and the status is not 0."""
    words = ["-n", "2", BENCH, "all_reduce", "-b", "8", "-e", "8", "-n", "1", option]
    if option == "-J":  # which never writes to what is there
        result = drarun(*words, tmp_path / "no" / "x.json")
        assert result.rc == 64 and "No such file or directory" in result.err and not ROW.search(result.out)
        return
    result = drarun(*words, "/dev/full")
    assert result.rc not in (0, 1) and "/dev/full: No space left on device: the results in it are not complete" in result.err


@pytest.mark.parametrize("words,says", [
    (["all_reduce", "-o", "avg"], "MPI has no average"),
    (["all_reduce", "-y", "1"], "MPI has no CUDA stream"),
    (["all_reduce", "-R", "1"], "MPI has nothing to be registered"),
    (["broadcast", "-r", "2"], "there are 2 ranks, from 0"),
    (["all_reduce", "-e", "512G"], "TiB of memory a rank"),
    (["all_reduces"], "no such collective"),
])
def test_refused(drarun, words, says):
    """Before anything is measured, in a sentence."""
    result = drarun("-n", "2", BENCH, *words)
    assert result.rc == 64 and says in result.err and not ROW.search(result.out), result


def test_without_a_backend(drarun):
    """The package that the build lacked is named."""
    for backend, package in ("mpi", "libopenmpi-dev"), ("nccl", "for nccl: libpmix-dev"):
        result = drarun("-n", "1", BENCH, "all_reduce", "--backend", backend, env={"DRARUN_BENCH_MODULE": "/nowhere.so"})
        assert result.rc not in (0, 1) and "/nowhere.so" in result.err and package in result.err, result
    assert drarun("-n", "1", BENCH, "all_reduce", "--backend", "../x").rc not in (0, 1)
    assert "Usage: drarun-bench" in drarun("-n", "1", BENCH, "--help").ok().out


def test_from_the_launcher(drarun):
    """drarun bench: ranks and agents are the launcher's, the rest is drarun-bench's."""
    result = drarun("bench", "all_reduce", "-n", "4", "-b", "1K", "-e", "4K", "-f", "2", "--iters", "2")
    assert [int(row[0]) for row in rows(result)] == [1024, 2048, 4096] and " Rank  3 " in result.out
    assert "# Out of bounds values : 0 OK" in result.out
    assert re.search(r"\n# all_reduce over 4 ranks on 1 host .*\n#   best .*\n(#   .*\n)*#   data +right\n#   errors +none on .*\n#   verdict +none: ", result.out)
    larger = drarun("bench", "all_reduce", "-n", "2", "-b", "64K", "-e", "256K", "-f", "4", "--iters", "2").ok().out
    assert re.search(r"# +limit +[\d.]+ GB/s: memory, as fast as the slowest rank copied while all did \(measured\)\n", larger), larger
    assert re.search(r"# +verdict +[\d.]+ % of the limit", larger), larger
    linked = drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--iters", "2", "--link", "0.5").ok().out
    assert "#   limit     0.5 GB/s: 0.5 GB/s between GPUs (--link)\n" in linked and re.search(r"# +verdict +[\d.]+ % of the limit", linked)
    assert "verdict" not in drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--no-verdict").ok().out
    result = drarun("bench", "all_reduce", "-n", "2", "--workers", "2", "-b", "8", "-e", "8", "--min-percent", "50")
    assert result.rc == 1 and "FAILED: --min-percent 50" in result.out
    result = drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "1M", "-f", "131072", "--iters", "2", "--min-busbw", "10000")
    assert result.rc == 1 and "FAILED: --min-busbw 10000: the average of the sizes has " in result.out
    assert re.search(r"# Avg bus bandwidth +: \S+ FAILED", result.out), result
    result = drarun("bench", "broadcast", "--workers", "2", "-n2", "-r", "all", "-b", "8", "-e", "8")
    assert [int(row[4]) for row in rows(result)] == [0, 1]


def test_errors_of_devices(drarun, tmp_path):
    """What GPUs count while it is measured is told with its node, in the table, the verdict and the files."""
    gpus = tmp_path / "gpus"
    gpus.write_text("gpu 0000:18:00.0 GPU-a 0 1000 2 NVIDIA B200\nnvlink 0000:18:00.0 1 5 7\necc 0000:18:00.0 3 0\n")
    words = ["bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--iters", "2", "-J", tmp_path / "out.json"]
    env = {"LD_LIBRARY_PATH": str(BUILD / "tests/nvml"), "NVML_STAND_IN": str(gpus), "DRARUN_NODE": "n7"}
    said = drarun(*words, env=env).ok().out
    assert re.search(r"# Errors looked for on : RDMA ports: \d+, interfaces: \d+, GPUs: 1, NVLinks: 2\n", said), said
    assert re.search(r"# Errors of devices +: \S+: GPU 0000:18:00.0 NVLink 1 replays \+7\n", said) and "ECC" not in said
    judged = drarun("bench", "judge", tmp_path / "out.json").out
    for text in (said, judged):
        assert re.search(r"errors +COUNTED on .* GPUs: 1, NVLinks: 2\n#? +\S+: GPU 0000:18:00.0 NVLink 1 replays \+7\n", text), text
    if not ctypes.util.find_library("nvidia-ml"):
        said = drarun(*words, env={"NVML_STAND_IN": str(gpus)}).ok().out
        assert "# Errors not looked for : GPUs: no NVML in the image\n" in said and "errors    none on " in said


# nccl-tests 2.19 (src/common.cu): each option's letter and name, its default, and another value
TAKEN = [("b", "minbytes", "32M", "8"), ("e", "maxbytes", "32M", "1G"), ("i", "stepbytes", "1M", "4K"), ("f", "stepfactor", "1", "2"),
         ("n", "iters", "20", "5"), ("m", "agg_iters", "1", "4"), ("w", "warmup_iters", "1", "5"), ("N", "run_cycles", "1", "0"),
         ("c", "check", "1", "0"), ("o", "op", "sum", "all"), ("d", "datatype", "float", "bfloat16"), ("r", "root", "0", "-1"),
         ("z", "blocking", "0", "3"), ("y", "stream_null", "0", "1"), ("T", "timeout", "0", "60"), ("J", "output_file", "a.json", "b.json"),
         ("a", "average", "1", "3"), ("R", "local_register", "0", "2"), ("u", "unalign", "0", "3"), ("I", "per_iter_timing", "0", "1"),
         ("K", "per_iter_skip", "0", "1")]
REFUSED = [("t", "nthreads", "1", "2"), ("g", "ngpus", "1", "8"), ("p", "parallel_init", "0", "1"), ("G", "cudagraph", "0", "1"),
           ("C", "report_cputime", "0", "1"), ("S", "report_timestamps", "0", "1"), ("x", "cta_policy", "-1", "1"),
           ("D", "device_implementation", "0", "1"), ("V", "device_cta_count", "16", "32"), ("M", "memory", "0", "1")]


def test_options_of_nccl_tests():
    """All 32 with -h: taken, or refused with a reason but for the default; by letter and by name."""
    assert len(TAKEN) + len(REFUSED) + 1 == 32
    def run(*words):
        return subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=patience(), check=False)

    help_text = run("--help").stdout
    for letter, name, usual, other in TAKEN + REFUSED:
        assert (f"  -{letter}, --{name} " in help_text) == ((letter, name, usual, other) in TAKEN), name
        more = ["-I", "1"] if letter == "K" else []
        for value in (usual, other):
            for option in (f"-{letter}", f"--{name}"):
                result = run("broadcast", *more, option, value, "--help")
                if value == other and (letter, name, usual, other) in REFUSED:
                    assert result.returncode == 64 and re.search(rf"--{name} {other}: \w+ \w+", result.stderr), result
                else:
                    assert result.stdout == help_text, result


ON_PODS = ["all_reduce", "--workers", "2", "--image", "i"]


@pytest.mark.parametrize("words,says", [
    (["all_reduce", "-b", "1x"], "-b 1x: expected a size"),
    (["all_reduce", "--worker", "2"], "unknown option --worker"),
    (["all_reduces", "-n", "2"], "no such collective"),
    (["all_reduce", "-n", "x"], "-n: expected a whole number"),
    (["all_reduce", "-n", "8", "-b", "8", "-n", "20"], "-n 20: the ranks are 8 already: -n is their number here; --iters N "),
    (["all_reduce", "--ranks", "8", "-n20"], "-n 20: the ranks are 8 already"),
    ([], "expected one collective"),
    (["all_reduce", "-n", "2", "--link", "0"], "--link: expected GB/s above 0"),
    (["all_reduce", "-n", "2", "--nic-gbit", "fast"], '--nic-gbit: expected Gb/s above 0, at most 100000, got "fast"'),
    (["all_reduce", "-n", "2", "--machine", "a5"], "--machine a5: expected one of a4-highgpu-8g, "),
    (["all_reduce", "-n", "2", "--known", "/none.yaml"], "/none.yaml: cannot be opened"),
    (["all_reduce", "-n", "2", "--toleration", "a=b", "--align", "none"],
     "--toleration applies to a job of a cluster, and no option asks for one: add --gpus, --nics, --sweep, "),
    (["all_reduce", "--name", "x"], "--name applies to a job of a cluster"),
    ([*ON_PODS, "--gpus", "1", "--gpu-class", "a.b", "--gpu-resource", "c.d/e"], "devices come by a class or by a resource: give one of them"),
    ([*ON_PODS, "--gpus", "1", "--bind", "core"], "--bind is not for a job on a cluster"),
    ([*ON_PODS, "--gpus", "1", "--agents", "a:1"], "--agents is not for a job on a cluster"),
    ([*ON_PODS, "--gpus", "1", "-n", "8"], "-n 8: on a cluster --workers and --ranks-per-worker say how many ranks there are"),
    ([*ON_PODS, "--sweep", "gpus=1", "--sweep", "gpus=2"], "--sweep gpus: it is there twice"),
    ([*ON_PODS, "--sweep", "gpus=1", "--sweep", "nics=1", "--sweep", "align=none", "--sweep", "workers=2", "--sweep", "ranks-per-worker=1"],
     "--sweep: at most 4 of them"),
    ([*ON_PODS, "--sweep", "moon=1"], "--sweep moon=1: expected NAME=VALUE,VALUE with align, gpus, nics, workers or ranks-per-worker"),
    ([*ON_PODS, "--sweep", "gpus="], "--sweep gpus=: expected NAME=VALUE,VALUE"),
])
def test_launcher_refuses(drarun, words, says):
    """Once, and before any rank is there."""
    result = drarun("bench", *words)
    assert result.rc == (65 if "--known" in words else 64) and says in result.err and len(result.err.splitlines()) == 1, result


def test_sweep_without_a_cluster(drarun, tmp_path):
    """It ends with the first job, since the others would find no kubeconfig, either."""
    result = drarun("bench", "all_reduce", "--workers", 2, "--image", "i", "--sweep", "gpus=1,2", "--kubeconfig", tmp_path / "none")
    assert result.rc == 66 and "job 1 of 2" in result.err and "job 2 of 2" not in result.err, result


def test_no_module(drarun):
    """One rank says it, in words that tell what to do."""
    result = drarun("bench", "all_reduce", "-n", "3", env={"DRARUN_BENCH_MODULE": "/nowhere.so"})
    assert result.rc == 70 and result.out == ""
    assert result.err.splitlines()[0].startswith("drarun-bench: backend mpi: there is no /nowhere.so: build drarun where ")
    assert "rank 0 on worker 0" in result.err.splitlines()[1]


# ---- who is missing ----

@pytest.fixture
def running(drarun):
    """Starts a measurement that does not end by itself, and waits for its table: (job, {rank: pid})."""
    def start(*words):
        job = drarun.start("bench", "all_reduce", "-b", "1K", "-e", "1K", "--iters", "100000000", *words)
        pids, deadline = {}, time.monotonic() + patience()
        while not (pids and line.startswith("#        (B)")):
            assert time.monotonic() < deadline, "no table after 30 s"
            line = job.process.stdout.readline()
            if found := re.match(r"#  Rank +(\d+) Group +0 Pid +(\d+)", line):
                pids[int(found[1])] = int(found[2])
        return job, pids
    return start


def test_stopped_rank_is_named(running, drarun, tmp_path):
    """With its node, while all others wait in a call that has no end; and in the lines that programs read."""
    lines = tmp_path / "a.jsonl"
    job, pids = running("--workers", "2", "-n", "4", "--json-lines", lines)
    time.sleep(1)  # it is in the middle of it
    os.kill(pids[2], signal.SIGSTOP)
    result = job.finish()
    assert result.rc == 124
    # MPI's ranks may complain of each other as they are ended
    assert re.search(r"^drarun: rank 2 on worker 1 \(\S+\) has been stopped for \d+\.\d s .*in all_reduce of 1024 bytes$",
                     result.err, re.MULTILINE), result
    begin, failed = map(json.loads, lines.read_text().splitlines())
    assert begin["kind"] == "begin" and failed["kind"] == "failed" and failed["failed"]["status"] == 124, failed
    assert failed["failed"]["kind"] == "failure" and failed["failed"]["text"] in result.err
    said = drarun("bench", "judge", lines)
    assert said.rc == 1 and "  verdict   FAILED: the job failed: rank 2 on worker 1 " in said.out, said
    page = drarun("bench", "report", lines)
    assert page.rc == 1 and "the job failed: rank 2 on worker 1 " in page.out, page


def test_silent_agent_is_named(running):
    """As when its node is gone without a word."""
    job, pids = running("--workers", "2", "-n", "4")
    agent = int(Path(f"/proc/{pids[3]}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(agent, signal.SIGSTOP)
    try:
        result = job.finish()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGCONT)
    assert result.rc == 70
    assert re.search(r"worker 1 \(\S+\) was lost: no message from it for (?![0-3]\.)\d+\.\d s$", result.err, re.MULTILINE), result


def test_without_the_program(drarun, tmp_path):
    """As a wheel brings drarun: what to install is said."""
    shutil.copy(BUILD / "bin/drarun", tmp_path)
    result = drarun("bench", "all_reduce", "-n", "2", program=tmp_path / "drarun")
    assert result.rc == 70 and result.err == (
        f"drarun: bench: drarun-bench is neither in {tmp_path} nor in libexec/drarun beside it: install it, or set DRARUN_BENCH "
        "(the Debian package drarun-bench and a release's tarball have it)\n"), result


def test_rank_that_never_comes_is_named(drarun, tmp_path):
    """It has not even opened the backend; MPI alone would wait forever."""
    late = tmp_path / "late"
    late.write_text(f'#!/bin/sh\n[ "$RANK" != 1 ] || exec sleep 1000\nexec {BENCH} "$@"\n')
    late.chmod(0o755)
    began = time.monotonic()
    result = drarun("bench", "all_reduce", "-n", "3", "-b", "8", "-e", "8", env={"DRARUN_BENCH": str(late)})
    assert time.monotonic() - began >= 4 and result.rc == 124
    assert re.search(r"drarun: rank 1 on worker 0 \(\S+\) has not begun after (?![0-3]\.)\d+\.\d s, and the others wait", result.err), result
    result = drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--hang-after", "1h")
    assert result.rc == 0 and "hang" not in result.err


def test_leaves_standard_input_alone(drarun, tmp_path):
    """No rank reads it: a shell's `while read` loop may run it."""
    given = tmp_path / "given"
    given.write_text("next\n")
    with open(given, encoding="ascii") as stdin:
        result = drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--iters", "1", "-c", "0", "-w", "0", "--no-verdict", stdin=stdin,
                        env={"DRARUN_BENCH_MODULE": str(SLEEP), "SLEEP_FILE": str(tmp_path / "ranks"), "SLEEP_US": "10000"})
        assert result.ok() and os.lseek(stdin.fileno(), 0, os.SEEK_CUR) == 0


# ---- who is slow ----

SLOW_RUNS = int(os.environ.get("DRARUN_SLOW_RUNS", 1))
SLEEP = BUILD / "tests" / "standin" / "sleep" / "sleep_backend.so"


def named_slow(drarun, file, slow=None):
    """The ranks that 64 sleeping ones are told apart by; slow: (rank, per cent)."""
    file.unlink(missing_ok=True)
    env = {"DRARUN_BENCH_MODULE": str(SLEEP), "SLEEP_FILE": str(file), "SLEEP_US": "10000"}
    if slow:
        env["SLEEP_SLOW"] = f"{slow[0]}:{slow[1]}"
    result = drarun("bench", "all_reduce", "-n", "64", "-b", "8", "-e", "8", "--iters", "1", "-c", "0", "-w", "0", "--pairs", "--no-verdict",
                    env=env, timeout=120).ok()
    assert "# All pairs of ranks   : 2016 measured" in result.out, result
    return [int(rank) for rank in re.findall(r"^# Slow rank            : (\d+) on \S+ \(none\): its pairs take ", result.out, re.M)]


@pytest.mark.timed
def test_slow_rank_is_named(drarun, tmp_path):
    """10 % of 10 ms, on as few cores as there are: that rank alone, and none when none is slow. scripts/soak: 200 of each."""
    drawn = random.Random(7)
    for _ in range(SLOW_RUNS):
        rank = drawn.randrange(64)
        assert named_slow(drarun, tmp_path / "ranks", (rank, 10)) == [rank]
        assert named_slow(drarun, tmp_path / "ranks") == []


def on_hosts(drarun, file, *words, **slow):
    """16 sleeping ranks on four hosts; slow: which of them is slower by half, in what."""
    file.unlink(missing_ok=True)
    env = {"DRARUN_BENCH_MODULE": str(SLEEP), "SLEEP_FILE": str(file), "SLEEP_US": "10000", "SLEEP_HOST": "4",
           **{name: f"{rank}:50" for name, rank in slow.items()}}
    script = 'hostname host$((RANK / 4)); exec "$0" "$@"'
    result = drarun("-n", "16", "unshare", "-ru", "sh", "-c", script, BUILD / "bin" / "drarun-bench", "all_reduce", "-b", "8", "-e", "8", "-n", "1",
                    "-c", "0", "-w", "0", "--pairs", *words, env=env, timeout=120).ok()
    return result, re.findall(r"^# (Slow .*?) +: (.*?): its pairs take .* us, others' .*: \+\d", result.out, re.M)


def for_programs(drarun, lines, document):
    """The slow NIC in lines and in a document, and in what is made of them."""
    whole = json.loads(document.read_text())
    assert json.loads(lines.read_text().splitlines()[-1])["pairs"] == whole["pairs"]
    assert whole["pairs"]["measured"] == 96 and whole["pairs"]["rails"] == {"each": 4, "hosts": 4, "measured": 24}
    rank, nic = whole["pairs"]["slow"]
    assert (rank["what"], rank["rank"], rank["host"], nic["what"], nic["rank"], nic["rail"], nic["host"]) == (
        "rank", 6, "host1", "nic", 6, 2, "host1") and 20 < nic["percent"] < 80 and nic["time"] > nic["usual"], whole["pairs"]
    del whole["stand_in"]  # which nobody may judge
    document.write_text(json.dumps(whole))
    said = drarun("bench", "judge", document).ok().out
    assert re.search(r"^  slow      rank 6 on host1 \(none\): \+\d\d\.\d %\n            NIC rail 2 of host1 \(its NIC, rank 6\): \+", said, re.M), said
    again, = json.loads(drarun("bench", "judge", "-o", "json", document).ok().out)
    assert again["result"]["pairs"]["slow"][1] == pytest.approx(nic) and again["result"]["pairs"]["rails"] == whole["pairs"]["rails"]
    page = drarun("bench", "report", document).ok().out
    assert "NIC rail 2 of host1 (its NIC, rank 6): +" in page and page.count('class="f-paper s-limit"') == 1


@pytest.mark.timed
def test_slow_nic_is_named(drarun, tmp_path):
    """By its rail and host, where its rank is as fast as others at home; else the rank alone. Nobody, where nobody is slow."""
    file, lines, document = (tmp_path / name for name in ("ranks", "a.jsonl", "a.json"))
    result, named = on_hosts(drarun, file, "--json-lines", lines, "-J", document, SLEEP_SLOW_NIC=6)
    assert named == [("Slow rank", "6 on host1 (none)"), ("Slow NIC", "rail 2 of host1 (its NIC, rank 6)")], result
    for_programs(drarun, lines, document)
    result, named = on_hosts(drarun, file, SLEEP_SLOW=9)
    assert named == [("Slow rank", "9 on host2 (none)")] and "no NIC is slower than the rest\n" in result.out, result
    result, named = on_hosts(drarun, file)
    assert named == [] and "# Rails of the hosts   : 4 on each of 4 hosts, 24 pairs measured; no NIC is slower" in result.out, result


def test_pairs_of_ranks(drarun):
    """Two have one pair, which is slower than nobody's; ranks that share CPUs are not told apart."""
    cpus = len(os.sched_getaffinity(0))
    result = drarun("bench", "all_reduce", "-n", cpus + 1, "-b", "8", "-e", "8", "--min-busbw", "1000000")
    assert result.rc == 1 and "# All pairs of ranks   : not measured: ranks share CPUs" in result.out
    if cpus > 1:
        result = drarun("bench", "all_reduce", "-n", "2", "-b", "8", "-e", "8", "--pairs")
        assert "# All pairs of ranks   : 1 measured; none is slower than the rest\n" in result.ok().out


# ---- drarun-bench for the images of others ----

anywhere = pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@anywhere
def test_needs_an_old_libc_alone():
    """Nothing newer than glibc 2.28, no other library, and no copy of a variable that is one of two names of it."""
    files = [path for path in ANYWHERE.rglob("*") if path.is_file()]
    assert {path.name for path in files} == {"drarun-bench", "bench-nccl.so", "bench-mpi-ompi.so", "bench-mpi-mpich.so"}
    for path in files:
        symbols = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, each.split("."))) for each in re.findall(r"GLIBC_([\d.]+\d)", symbols)}
        assert versions and max(versions) <= (2, 28), (path, max(versions))
        dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        assert "libc.so.6" in needed and needed <= LIBC, (path, needed)
        relocations = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
        assert "_COPY" not in relocations, path


@pytest.fixture
def found(drarun):
    """drarun-bench for any image, with the MPI that it finds by itself."""
    return lambda ranks, *words, env={}: drarun("-n", str(ranks), ANYWHERE / "bin/drarun-bench", *words, env=env)


@anywhere
@pytest.mark.parametrize("mpi", ALL, ids=lambda mpi: mpi.name)
def test_finds_the_mpi_of_its_image(found, mpi):
    """The library beside mpirun, or the one that the loader knows; the module is chosen by its ABI."""
    env = {"PATH": f"{mpi.home() / 'bin'}:{os.environ['PATH']}"} if not mpi.debian else {}
    if mpi.name == "mpich4":  # Debian's mpirun is Open MPI's here
        env["DRARUN_BENCH_LIBMPI"] = "libmpich.so.12"
    elif mpi.name == "openmpi4" and not Path("/usr/bin/mpirun").exists():
        pytest.skip("no Open MPI of Debian's; run scripts/setup --test")
    result = found(3, "all_reduce", "-b", "8", "-e", "8K", "-f", "32", "-n", "2", "-o", "all", "-d", "half", env=env)
    assert {row[6] for row in rows(result)} == {"0"} and mpi.version in result.out.splitlines()[0], result.out


@anywhere
def test_an_image_without_mpi(found, tmp_path):
    (tmp_path / "none.so").write_text("no library")
    result = found(2, "all_reduce", env={"DRARUN_BENCH_LIBMPI": str(tmp_path / "none.so")})
    assert result.rc == 70 and f"DRARUN_BENCH_LIBMPI: {tmp_path}/none.so: " in result.err, result
    result = found(2, "all_reduce", env={"DRARUN_BENCH_LIBMPI": "libm.so.6"})
    assert result.rc == 70 and "has no MPI_Init: libm.so.6" in result.err, result


# $1: a root. All that is written goes to memory.
ON_ROOT = """
set -e
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o "lowerdir=$1,upperdir=/mnt/upper,workdir=/mnt/work" /mnt/root
mkdir /mnt/root/.drarun
cp -r "$2"/* /mnt/root/.drarun
cp "$3"/drarun "$3"/drarun-worker /mnt/root/.drarun/bin
mount -t proc proc /mnt/root/proc
mount --bind /dev /mnt/root/dev
shift 3
exec chroot /mnt/root env -i PATH=/usr/bin:/bin "$@"
"""


@anywhere
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for mounts and chroot")
def test_runs_on_an_older_glibc(build):
    """Debian 11: glibc 2.31 and Open MPI 4.1.0; what was linked here with this machine's does not start there."""
    fetched = subprocess.run([SOURCE / "scripts/fetch-roots", "bullseye"], capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"scripts/fetch-roots bullseye: {fetched.stderr.strip()[-300:]}")
    root = fetched.stdout.split()[1]
    run = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ON_ROOT, "sh", root, ANYWHERE, build / "bin",
                          "/.drarun/bin/drarun", "-n", "2", "/.drarun/bin/drarun-bench", "all_reduce", "-b", "1K", "-e", "1K", "-n", "2"],
                         capture_output=True, text=True, timeout=patience(120))
    assert run.returncode == 0 and "Open MPI v4.1.0" in run.stdout and "# Out of bounds values : 0 OK" in run.stdout, run
    libc = next(Path(root).glob("lib/*-linux-gnu/libc.so.6"))
    assert b"GNU C Library (Debian GLIBC 2.31" in libc.read_bytes()
