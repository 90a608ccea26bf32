# SPDX-License-Identifier: Apache-2.0
"""drarun-bench's NCCL path over stand-ins for libnccl and libcudart, which NVIDIA's own wheels are held against."""
import functools
import re
import subprocess

import pytest

from support.build import ANYWHERE, ANYWHERE_MISSING, BUILD, SOURCE, patience
from test_bench import NAMES, NOT_IN_PLACE, REDUCES, ROOTED, ROW, rows

pytestmark = pytest.mark.plain("the module has no sanitizer; what is pure of it has unit tests on that build")

BENCH = BUILD / "bin" / "drarun-bench"
STANDIN = BUILD / "tests" / "standin"
OWN = SOURCE / "benchmarks" / "bench"


def libraries(*folders):
    return {"LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders)}


FULL = libraries(STANDIN / "nccl", STANDIN / "cudart")
FACTORS = ("avg", "mulsum")  # which NCCL makes of sums and a factor


@pytest.fixture
def bench(drarun):
    return lambda ranks, *words, env=FULL: drarun("-n", str(ranks), BENCH, *words, "--backend", "nccl", env=env)


@functools.cache
def fetched():
    run = subprocess.run([SOURCE / "scripts" / "fetch-nccl"], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.skip(f"scripts/fetch-nccl: {run.stderr.strip()[-300:]}")
    return SOURCE.__class__(run.stdout.strip())


@pytest.mark.parametrize("name", NAMES)
def test_data_is_right(bench, name):
    for ranks in (1, 3, 4):
        result = bench(ranks, name, "-b", "8", "-e", "288K", "-f", "192", "-n", "2", "-w", "0", "-r", "all")
        if name == "hypercube" and ranks == 3:
            assert result.rc == 64 and "a hypercube has a power of two of ranks" in result.err
            continue
        found = rows(result)
        roots = range(ranks) if name in ROOTED else [-1]
        assert [int(row[4]) for row in found] == [root for root in roots for _ in range(3)]
        assert {row[3] for row in found} == {"sum" if name in REDUCES else "none"}
        assert {row[6] for row in found} == {"0"}
        assert {row[8] for row in found} == {"N/A" if name in NOT_IN_PLACE else "0"}
        assert result.out.startswith("# drarun-bench version") and "stand-in for NCCL 2.32.3 CUDA 12.9\n" in result.out
        for rank in range(ranks):
            assert re.search(rf"^#  Rank  {rank} .* device  {rank} \[0000:{16 + rank:02x}:00.0\] drarun stand-in, not a GPU$", result.out,
                             re.M)


def test_barrier(bench):
    row, = rows(bench(3, "barrier", "-n", "50"))
    assert row[:2] == ("0", "0") and row[6] == row[8] == "N/A" and float(row[5].split()[0]) > 0


@pytest.mark.parametrize("name", ["alltoall", "gather", "scatter"])
def test_nccl_without_the_newer_collectives(bench, name):
    """They are made of sends and receives in a group."""
    result = bench(3, name, "-b", "48", "-e", "300K", "-f", "1024", "-n", "2", "-r", "all", env=libraries(
        STANDIN / "nccl_old", STANDIN / "cudart"))
    assert {row[6] for row in rows(result)} == {"0"} and "NCCL 2.10.3 CUDA" in result.out


def test_all_types_and_operations(bench):
    found = rows(bench(3, "all_reduce", "-b", "1000", "-e", "1000", "-n", "1", "-d", "all", "-o", "all", "-u", "3"))
    both = {(kind, op) for op in ("sum", "prod", "max", "min", "avg", "mulsum") for kind in (
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2")}
    assert {(row[2], row[3]) for row in found} == {(kind, op) for kind, op in both if not (kind[:2] == "f8" and op in FACTORS)}
    assert {(row[6], row[8]) for row in found} == {("0", "0")}


@pytest.mark.parametrize("op", FACTORS)
def test_floats_of_8_bits_have_no_factor(bench, op):
    result = bench(2, "all_reduce", "-b", "1000", "-e", "1000", "-d", "f8e5m2", "-o", op)
    assert result.rc == 64 and "NCCL refuses avg and mulsum of floats of 8 bits" in result.err and not ROW.search(result.out), result


@pytest.mark.parametrize("words", [["-y", "1"], ["-R", "1"], ["-R", "2", "-u", "1"], ["-m", "3"], ["-m", "3", "-z", "1"], ["-z", "2"],
                                   ["-z", "3"]], ids=" ".join)
def test_ways_to_measure(bench, words):
    """With each the data is right; aggregated calls are one group, registered buffers are given back."""
    for name in ("all_reduce", "alltoall", "sendrecv"):
        result = bench(3, name, "-b", "100K", "-e", "100K", "-n", "3", *words)
        assert {row[6] for row in rows(result)} == {"0"} and "stand-in:" not in result.err


def test_times_of_single_calls(bench):
    """By events on the stream: their sum is the time of all, and no call waits for the one before to be known."""
    result = bench(2, "all_reduce", "-b", "256K", "-e", "256K", "-n", "20", "-I", "1", "-a", "3")
    row = result.ok().out.splitlines()[11].split()
    for half in (row[5:13], row[13:21]):
        time, least, most, p99 = (float(half[i]) for i in (0, 4, 5, 6))
        assert 0 < least <= time * 1.01 and least <= p99 <= most, half


def test_what_old_nccl_has_not(bench):
    old = libraries(STANDIN / "nccl_old", STANDIN / "cudart")
    result = bench(2, "all_reduce", "-b", "1000", "-e", "1000", "-o", "mulsum", env=old)
    assert result.rc == 64 and "since 2.11" in result.err and not ROW.search(result.out)
    result = bench(2, "all_gather", "-b", "1000", "-e", "1000", "-d", "f8e5m2", env=old)
    assert result.rc == 64 and "since 2.24" in result.err and not ROW.search(result.out)
    for registers in "1", "2":
        result = bench(2, "all_gather", "-b", "1000", "-e", "1000", "-R", registers, env=old)
        assert result.rc == 64 and "NCCL has it since 2.19" in result.err and result.err.count("drarun-bench: ") <= 2, result


def test_wrong_data_is_seen(bench):
    """One rank gets one wrong byte in each call."""
    result = bench(3, "all_gather", "-b", "1K", "-e", "1K", "-n", "1", env={**FULL, "STANDIN_WRONG": "1"})
    assert result.rc == 1 and re.search(r"# Out of bounds values : [1-9]\d* FAILED", result.out)
    assert [row[6] for row in ROW.findall(result.out)] == ["1"]
    assert re.search(r"^# Wrong data of        : rank 1 on \S+ \(drarun stand-in, not a GPU 0000:11:00.0\): \d elements?$", result.out, re.M)
    assert re.search(r"^drarun: rank 1 on worker 0 \(\S+\) exited with status 1", result.err, re.M) and "rank 1 received wrong data" in result.err


@pytest.mark.parametrize("env,says", [
    (libraries(), "no NCCL: libnccl.so.2: cannot open shared object file: No such file or directory; install libnccl2"),
    (libraries(STANDIN / "nccl"), "no CUDA runtime: none of libcudart.so.13, .12, .11.0 and libcudart.so can be loaded"),
    ({**FULL, "STANDIN_CUDA_ERROR": "35"}, "no NVIDIA driver here: libcuda.so.1: cannot open shared object file"),
    ({**FULL, "STANDIN_GPUS": "0", "CUDA_VISIBLE_DEVICES": "7"}, "libcudart.so.12: no GPU here (CUDA_VISIBLE_DEVICES=7)"),
    ({**FULL, "STANDIN_CUDA_ERROR": "2"}, "libcudart.so.12: cudaGetDeviceCount: out of memory"),
    ({**FULL, "STANDIN_NCCL_VERSION": "2804"}, "libnccl.so.2 is NCCL 2.8.4: expected 2.10.0 or newer"),
    ({**FULL, "NCCL_TESTS_DEVICE": "4"}, "NCCL_TESTS_DEVICE"),
], ids=["no nccl", "no cudart", "no driver", "no device", "broken", "too old", "no such device"])
def test_what_is_missing(bench, env, says):
    """Said once, in words, by one of the ranks, all of which have it."""
    result = bench(3, "all_reduce", env=env)
    assert result.rc == 70 and result.err.count("drarun-bench: ") <= 2 and "Rank" not in result.out, result
    assert re.search(rf"^drarun-bench: rank 0 on \S+ \(and all other ranks\): .*{re.escape(says)}", result.err, re.M), result.err


def test_more_ranks_than_devices(bench):
    result = bench(3, "all_reduce", env={**FULL, "STANDIN_GPUS": "2"})
    assert result.rc == 70 and "no GPU is left for it: the node shows 2, and this is rank 2 of it, from 0" in result.err
    result = bench(2, "all_reduce", env={**FULL, "STANDIN_GPUS": "1"})
    assert result.rc == 70 and re.search(r"ranks 0 and 1 both have GPU 0000:10:00.0 of \S+: NCCL wants one for each rank", result.err)


@pytest.mark.parametrize("variable,value,says", [
    ("STANDIN_NCCL_VERSION", "22304", r"different versions of NCCL: rank 0 on \S+ has 2\.32\.3, rank 2 on \S+ has 2\.23\.4 "
                                      r"\(1 of 4 differ from rank 0\): use one image"),
    ("STANDIN_GPUS", "0", r"rank 2 on \S+: libcudart.so.12: no GPU here"),
], ids=["versions", "no device"])
def test_one_rank_is_unlike_the_others(drarun, variable, value, says):
    """Nobody waits for it."""
    script = f'[ $PMIX_RANK != 2 ] || export {variable}={value}; exec "$0" "$@"'
    result = drarun("-n", "4", "sh", "-c", script, BENCH, "all_reduce", "--backend", "nccl", env=FULL)
    assert result.rc == 70 and re.search(says, result.err), result.err


def test_device_memory(bench):
    result = bench(2, "all_reduce", "-b", "1M", "-e", "1M", env={**FULL, "STANDIN_ROOM": "1000000"})
    assert result.rc == 64 and "rank 0 on " in result.err and not ROW.search(result.out)
    assert "-e 1048576 needs 3 MiB of the device's memory a rank, and 976.6 KiB are free: give a smaller -e" in result.err


def test_one_rank_has_no_room(drarun):
    """The others do not wait for it, and it is named, though rank 0 has room."""
    script = '[ $PMIX_RANK != 1 ] || export STANDIN_ROOM=1000000; exec "$0" "$@"'
    result = drarun("-n", "3", "sh", "-c", script, BENCH, "all_reduce", "-b", "1M", "-e", "1M", "--backend", "nccl", env=FULL)
    assert result.rc == 64 and re.search(r"drarun-bench: rank 1 on \S+: -e 1048576 needs 3 MiB of the device's memory", result.err), result


def test_pattern_that_is_not_known(bench):
    result = bench(2, "alltoallv", env={**FULL, "NCCL_TESTS_ALLTOALLV_SPREAD": "0.5"})
    assert result.rc == 64 and "NCCL_TESTS_ALLTOALLV_MATRIX_FILE and _SPREAD are not known here" in result.err


def test_alone(drarun):
    """Without a launcher it is one rank."""
    run = subprocess.run([BENCH, "all_reduce", "-b", "1K", "-e", "1K", "--backend", "nccl"], capture_output=True, text=True, timeout=patience(),
                         env={"PATH": "/usr/bin:/bin", **FULL})
    assert run.returncode == 0 and ROW.search(run.stdout) and "#  Rank  0 " in run.stdout, run


# ---- NVIDIA's own ----

def test_the_real_libraries(drarun):
    """Without a GPU they say so; with one this is a measurement of one rank."""
    nvidia = fetched()
    result = drarun("-n", "1", BENCH, "all_reduce", "-b", "1M", "-e", "1M", "--backend", "nccl",
                    env=libraries(nvidia / "nccl/lib", nvidia / "cuda_runtime/lib"))
    if result.rc == 0:
        assert "NCCL 2.32.3 CUDA 12.9\n" in result.out and {row[6] for row in rows(result)} == {"0"}
    else:
        assert result.rc == 70 and re.search(r"rank 0 on \S+: (no NVIDIA driver here|libcudart.so.12: (no GPU here|CUDA driver))",
                                             result.err), result.err


def plain(prototype):
    """"int f(int*, void*)": enums are ints, and neither names nor default values count."""
    text = re.sub(r"\b(ncclResult_t|ncclDataType_t|ncclRedOp_t|ncclScalarResidence_t|cudaError_t|enum cudaMemcpyKind)\b", "int", prototype)
    text = re.sub(r"\b__dv\([^)]*\)|\bextern\b|\b__host__\b|\b__cudart_builtin__\b|\bCUDARTAPI\b", "", text).replace("unsigned int", "unsigned")
    text = re.sub(r"\bstruct cudaDeviceProp\b", "void", text)
    head, parameters = re.match(r"\s*(.*?)\s*\((.*)\)\s*$", text, re.S).groups()
    parameters = [re.sub(r"(?<=[\s*])\w+\s*$", "", each.strip()) if each.strip() != "void" else "void" for each in (parameters.strip() or "void").split(",")]
    return re.sub(r"\s+", "", head), [re.sub(r"\bconst\b", "const ", re.sub(r"\s+", "", each)) for each in parameters]


def own_prototypes(header):
    text = (OWN / header).read_text().replace("\\\n", " ")
    found = re.findall(r"CALL\(([\w *]+),\s*(\w+),\s*(\((?:[^()]|\n)*\))\)", text)
    return {name: plain(f"{result} {name} {parameters}") for result, name, parameters in found}


@pytest.mark.parametrize("own,folder,header,library", [
    ("nccl_api.h", "nccl", "nccl.h", "libnccl.so.2"),
    ("cuda_api.h", "cuda_runtime", "cuda_runtime_api.h", "libcudart.so.12"),
])
def test_prototypes_and_symbols(own, folder, header, library):
    nvidia = fetched() / folder
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (nvidia / "include" / header).read_text(), flags=re.S)
    symbols = subprocess.run(["nm", "-D", "--defined-only", nvidia / "lib" / library], capture_output=True, text=True, check=True).stdout
    prototypes = own_prototypes(own)
    assert len(prototypes) > 12
    for name, mine in prototypes.items():
        theirs = re.search(rf"[^;{{}}#\n]*\b{name}\s*\([^;]*\)", text)
        assert theirs, f"{header} has no {name}"
        assert plain(theirs.group()) == mine, name
        assert re.search(rf" [TW] {name}(@@\S+)?$", symbols, re.M), f"{library} has no {name}"


def test_numbers(tmp_path):
    """Types, operations and errors are numbered as in NVIDIA's headers."""
    nvidia = fetched()
    types = {"INT8": "ncclInt8", "UINT8": "ncclUint8", "INT32": "ncclInt32", "UINT32": "ncclUint32", "INT64": "ncclInt64",
             "UINT64": "ncclUint64", "HALF": "ncclHalf", "FLOAT": "ncclFloat", "DOUBLE": "ncclDouble", "BFLOAT16": "ncclBfloat16",
             "F8E4M3": "ncclFloat8e4m3", "F8E5M2": "ncclFloat8e5m2"}
    same = {f"ELEMENT_{ours}": theirs for ours, theirs in types.items()}
    same |= {"REDUCE_SUM": "ncclSum", "REDUCE_PROD": "ncclProd", "REDUCE_MAX": "ncclMax", "REDUCE_MIN": "ncclMin", "REDUCE_AVG": "ncclAvg"}
    enums = "\n".join(re.findall(r"^enum \{.*?\};", (OWN / "nccl_api.h").read_text() + (OWN / "cuda_api.h").read_text(), re.S | re.M))
    same |= {"NCCL_SUCCESS": "ncclSuccess", "NCCL_IN_PROGRESS": "ncclInProgress", "NCCL_HOST_IMMEDIATE": "ncclScalarHostImmediate",
             "CUDA_SUCCESS": "cudaSuccess", "CUDA_OLD_DRIVER": "cudaErrorInsufficientDriver", "CUDA_NO_DEVICE": "cudaErrorNoDevice",
             "CUDA_NOT_READY": "cudaErrorNotReady", "CUDA_COPY_ANY": "cudaMemcpyDefault",
             "CUDA_STREAM_NON_BLOCKING": "cudaStreamNonBlocking", "NCCL_SYMMETRIC": "NCCL_WIN_COLL_SYMMETRIC"}
    asserts = "".join(f'_Static_assert((int){ours} == (int){theirs}, "{ours}");\n' for ours, theirs in same.items())
    program = tmp_path / "numbers.c"
    program.write_text(f'#include "benchmarks/bench/element.h"\n{enums}\n#include <stddef.h>\n#include <nccl.h>\n{asserts}'
                       '_Static_assert(offsetof(struct cudaDeviceProp, name) == 0 && sizeof(struct cudaDeviceProp) <= 8192, "name");\n'
                       '_Static_assert(sizeof(ncclUniqueId) == 128, "id");\n')
    # headers that belong to the compiler of CUDA, which nobody needs here
    for header in ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"):
        (tmp_path / header).write_text("#include <cuda_runtime_api.h>\n")
    (tmp_path / "crt").mkdir()
    words = ("__host__", "__device__", "__device_builtin__", "__cudart_builtin__", "CUDARTAPI", "__device_builtin_texture_type__",
             "__device_builtin_surface_type__")
    (tmp_path / "crt" / "host_defines.h").write_text("".join(f"#define {word}\n" for word in words) +
                                                     "#define __builtin_align__(n) __attribute__((aligned(n)))\n"
                                                     "#define __align__(n) __builtin_align__(n)\n")
    run = subprocess.run(["cc", "-fsyntax-only", f"-I{SOURCE}", f"-I{tmp_path}", f"-I{nvidia}/nccl/include", f"-I{nvidia}/cuda_runtime/include",
                          program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# ---- drarun-bench for the images of others: its ranks meet over PMI-1 ----

@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_in_any_image(drarun):
    """Without a libpmix; sizes enough that keys are put again, and shared values that are longer than one of PMI-1's."""
    result = drarun("-n", "4", ANYWHERE / "bin/drarun-bench", "all_reduce", "--backend", "nccl", "-b", "8", "-e", "1M", "-f", "2", "-n", "2",
                    env=FULL)
    assert len(rows(result)) == 18 and {row[6] for row in rows(result)} == {"0"}
    assert re.findall(r"^#  Rank +(\d) .* device  (\d)", result.out, re.M) == [
        (str(rank), str(rank)) for rank in range(4)], result.out


@pytest.mark.skipif(bool(ANYWHERE_MISSING), reason=ANYWHERE_MISSING)
def test_in_any_image_without_nccl(drarun):
    result = drarun("-n", "3", ANYWHERE / "bin/drarun-bench", "all_reduce", "--backend", "nccl", env=libraries(STANDIN / "cudart"))
    assert result.rc == 70 and "(and all other ranks): no NCCL: libnccl.so.2" in result.err, result
    foreign = drarun("all_reduce", "--backend", "nccl", program=ANYWHERE / "bin/drarun-bench", env={**FULL, "PMIX_NAMESPACE": "prte-1"})
    assert foreign.rc == 70 and "PMI_FD is not set" in foreign.err and "start them with drarun" in foreign.err, foreign
