# SPDX-License-Identifier: Apache-2.0
"""drarun bench judge: the output of anyone's nccl-tests, and what it is worth."""
import json
import random
import re
import shlex
import shutil
import subprocess
import urllib.parse
from collections import Counter
from xml.etree import ElementTree

import pytest

from support.build import SOURCE
from support.nccl_tests import Row, Run, connections

VERSIONS = ["2.9", "2.10", "2.13", "2.16", "2.19"]
COLLECTIVES = ["all_reduce", "all_gather", "broadcast", "reduce", "alltoall"]


@pytest.fixture
def judge(drarun, tmp_path):
    def run(text, *words):
        (tmp_path / "out.txt").write_text(text)
        return drarun("bench", "judge", *words, tmp_path / "out.txt")
    return run


@pytest.fixture
def verdicts(judge):
    """Of runs that are complete; status 1 is that of one that is not."""
    def run(text, *words, rc=0):
        result = judge(text, "-o", "json", *words)
        assert result.rc == rc, result
        return json.loads(result.out)
    return run


def rows_of(verdict):
    return [(row["size"], row["out_of_place"] and row["out_of_place"]["bus_bw"], row["in_place"] and row["in_place"]["bus_bw"])
            for row in verdict["result"]["results"]]


def expected(run):
    return [(row.size, pytest.approx(row.busbw, abs=.006), pytest.approx((row.in_place or (0, 0, row.busbw))[2], abs=.006))
            for row in run.rows]


# ---- anyone's text ----

@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_all_versions(verdicts, version, collective):
    run = Run(version=version, collective=collective)
    run.rows[2].in_place = (12452.0, 86.23, 64.67, "N/A")
    [verdict] = verdicts(f"$ mpirun -np 16 ./build/{collective}_perf -b 8 -e 64\n" + run.text())
    assert verdict["collective"] == collective and verdict["ranks"] == 16 and verdict["hosts"] == 2
    assert rows_of(verdict) == expected(run) and verdict["best"] == {"busbw": 64.67, "size": 32, "in_place": True}
    row, result = verdict["result"]["results"][2], verdict["result"]
    assert row["in_place"]["nwrong"] is None and row["out_of_place"]["nwrong"] == (None if run.old() else 0)
    assert verdict["data"] == "right" and result["library"] == "NCCL 2.27.3" and not verdict["notes"]
    assert result["config"]["warmup_iters"] == 5 and result["config"]["iterations"] == 20
    device = result["config"]["devices"][9]
    assert (device["hostname"], device["device"], device["device_info"], device["pid"]) == ("node-1", 1, "NVIDIA H200", 1009)
    assert device["device_hex"] == ("0000:90:00" if version == "2.19" else "0x90")


def labelled(label):
    return lambda run: "".join(f"{label}{line}\n" for line in run.lines())


def within_rows(run):
    """mpiexec -l and NCCL's lines between the two halves of a row, which are flushed on their own."""
    for line in run.lines():
        if line.startswith("#") or len(line.split()) < 13:
            yield line + "\n"
            continue
        cut = 12 + 2 + 12 + 2 + 8 + 2 + 6 + 2 + 6
        yield f"[0]{line[:cut]}[0]{line[cut:cut + 32]}[0]{line[cut + 32:]}\n"


def interrupted(run):
    for line in run.lines():
        if line.startswith("#") or len(line.split()) < 13:
            yield line + "\n"
            continue
        cut = 12 + 2 + 12 + 2 + 8 + 2 + 6 + 2 + 6
        yield line[:cut] + "node-0:1000:1050 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
        yield "node-1:1008:1051 [0] NCCL INFO Connected all rings\n" + line[cut:] + "\n"


@pytest.mark.parametrize("dress", [
    labelled("[1,0]<stdout>:"), labelled("[0] "), labelled("0: "), labelled("2026-07-22T10:00:00.123456789Z "), labelled("    "),
    lambda run: "".join(within_rows(run)), lambda run: "".join(interrupted(run)),
    lambda run: run.text().replace("\n", "\r\n"), lambda run: run.text().replace("#", ""),
    lambda run: "\n".join(line for each in run.lines() for line in (each, *connections(count=3))),
    lambda run: run.text() + "\n" + "x" * 100000 + "\n\0\xff\n",
], ids=["mpirun", "hydra", "srun", "kubectl", "indented", "labels-in-rows", "nccl-in-rows", "crlf", "no-hash", "nccl-between", "junk"])
def test_as_it_is_kept(verdicts, dress):
    run = Run(rows=[Row(1 << i, time=1.5 * i, algbw=.5 * i, busbw=.75 * i) for i in range(10, 20)])
    [verdict] = verdicts(dress(run))
    assert rows_of(verdict) == expected(run) and verdict["ranks"] == 16 and verdict["collective"] == "all_reduce"
    assert verdict["data"] == "right" and not verdict["notes"]


def test_several_runs(verdicts):
    first, second, third = Run(), Run(version="2.10", collective="broadcast", hosts=1), Run(collective="alltoall", ended=False)
    found = verdicts("".join(run.text() for run in (first, second, third)) + Run().text(), rc=1)
    assert [verdict["ranks"] for verdict in found] == [16, 8, 16, 16]
    assert [verdict["result"]["results"][0]["root"].strip() for verdict in found] == ["-1", "0", "-1", "-1"]
    assert [verdict["failed"] for verdict in found] == [False, False, True, False] and not any(verdict["notes"] for verdict in found)
    assert "the run did not end, after 4 sizes: its end (Avg bus bandwidth) is missing" in found[2]["failures"][0]


def test_times_of_single_calls(verdicts):
    run = Run(each=True)
    [verdict] = verdicts(run.text())
    assert rows_of(verdict) == expected(run)


def test_cut_off_anywhere(judge):
    """What is there is shown, and no figure that is not: each prefix of a text. Without its end the run has failed."""
    run = Run(rows=[Row(1024, time=123.45, algbw=777.77, busbw=888.88), Row(2048, time=234.56, algbw=555.55, busbw=666.66)])
    text = run.text()
    begin = text.index("        1024")
    for end in range(begin, len(text), 7):
        result = judge(text[:end], "-o", "json")
        [verdict] = json.loads(result.out)
        for _, out, inside in rows_of(verdict):
            assert out in (None, 888.88, 666.66) and inside in (None, 888.88, 666.66), text[begin:end]
        assert result.rc == 1 or end > text.index("# Avg"), text[begin:end]
        assert result.rc == verdict["failed"] == bool(verdict["failures"]), text[begin:end]


def test_built_without_mpi(verdicts):
    lines = Run(hosts=1, gpus=1, rows=[Row(8, busbw=0.0)]).lines()
    device = next(i for i, line in enumerate(lines) if "Rank" in line)
    [verdict] = verdicts("\n".join(lines[:device] + 4 * [lines[device]] + lines[device + 1:]), rc=1)
    assert any("rank 0 stands 4 times" in why and "MPI=1" in why for why in verdict["failures"]) and not verdict["notes"]


# ---- JSON ----

def test_json_of_nccl_tests(verdicts):
    """Its own shape: environment with secrets, texts for booleans and roots, nan."""
    half = {"time": 269368.0, "alg_bw": 31.89, "bus_bw": 31.89, "nwrong": 0.0}
    document = {"version": 3, "start_time": "2026-07-09 10:00:00", "args": ["./build/all_reduce_perf", "-b", "8G"],
                "env": ["NCCL_DEBUG=INFO", "AWS_SECRET_ACCESS_KEY=hidden"], "nccl_version": 22703,
                "config": {"nthreads": 1, "iterations": 20, "blocking_collectives": "false", "devices": [
                    {"rank": i, "group": 0, "pid": 7, "hostname": f"w-{i}", "device": 0, "device_hex": "0000:cc:00",
                     "device_info": "NVIDIA H200"} for i in range(2)]},
                "results": [{"size": 8 << 30, "count": 2 << 30, "type": "float", "redop": "sum", "root": "    -1",
                             "out_of_place": half, "in_place": {**half, "time": "nan", "bus_bw": "nan", "nwrong": None}}],
                "out_of_bounds": {"count": 0, "okay": "true"},
                "average_bus_bandwidth": {"bandwidth": 31.89, "okay": "unchecked"}, "end_time": "2026-07-09 10:01:00"}
    [verdict] = verdicts(json.dumps(document))
    assert verdict["collective"] == "all_reduce" and verdict["percent"] == pytest.approx(63.78)
    assert verdict["result"]["library"] == "NCCL 2.27.3" and verdict["result"]["env"] == ["NCCL_DEBUG=INFO"]
    assert verdict["result"]["results"][0]["in_place"] is None


def test_json_that_is_none(judge):
    """Truncated, of another kind: the place and what was expected; nothing on stdout."""
    document = json.dumps({"results": [{"size": 8, "out_of_place": {"bus_bw": 1.5}}], "config": {"devices": []}})
    for end in range(1, len(document), 5):
        result = judge(document[:end])
        assert result.rc == 65 and result.out == "" and "out.txt:" in result.err, document[:end]
    for text, says in [('{"a": 1}', "out.txt: results: expected it"), ("", "it is empty"), ("hello\n", "no row of nccl-tests in its 1 lines"),
                       ('{"kind": "row", "size": 8}\n', 'expected a line with "kind": "begin" first'),
                       ('{"results": [{"size": -8}]}', "results[0].size: expected a whole number")]:
        result = judge(text)
        assert result.rc == 65 and result.out == "" and says in result.err, (text, result.err)


@pytest.mark.plain("MPI libraries leak; every reader of lines has unit tests and a fuzzer on that build")
def test_lines_of_a_run_that_was_killed(drarun, build, tmp_path):
    """Every prefix of drarun-bench's lines is read; the last line, cut off, does not count, and the run has failed."""
    lines = tmp_path / "run.jsonl"
    drarun("-n", "2", build / "bin" / "drarun-bench", "all_reduce", "-b", "1K", "-e", "4K", "-f", "2", "-n", "2", "-w", "0",
           "--json-lines", lines).ok()
    text = lines.read_text()
    begin = text.index("\n") + 1
    for end in [begin, begin + 1, begin + 30, text.index("\n", begin), text.index("\n", begin) + 1, len(text) - 2, len(text)]:
        (tmp_path / "cut.jsonl").write_text(text[:end])
        result = drarun("bench", "judge", "-o", "json", tmp_path / "cut.jsonl")
        [verdict] = json.loads(result.out)
        assert len(verdict["result"]["results"]) == sum(line.startswith('{"kind":"row"') and line.endswith("}")
                                                        for line in text[:end].split("\n"))
        assert result.rc == verdict["failed"] == bool(verdict["failures"]) == (end < len(text)) and verdict["data"] in ("right", "not checked")


# ---- the verdict ----

def test_per_cent_of_which_limit(judge, verdicts):
    run = Run(rows=[Row(8 << 30, busbw=340.0)])
    result = judge(run.text()).ok()
    assert "340.00 GB/s bus bandwidth at 8 GiB; 340.00 on average over 1 sizes" in result.out
    assert "limit     400.0 GB/s: 8 NICs of 400 Gb/s a host (a NIC for each GPU), as h200-8 has them; this is assumed" in result.out
    assert "verdict   85.0 % of the limit" in result.out
    [verdict] = verdicts(run.text(), "--nics", "8", "--nic-gbit", "200")
    assert verdict["limit"] == {"busbw": 200.0, "assumed": False, "why": "8 NICs of 200 Gb/s a host (--nics, --nic-gbit)"}
    assert "above the limit: switches that reduce" in verdict["notes"][0]
    [verdict] = verdicts(run.text(), "--nics", "4", "--nic-gbit", "200")
    assert verdict["percent"] == pytest.approx(340) and "NVLink connects the hosts (NCCL_DEBUG=INFO shows it;" in verdict["notes"][0]
    unknown = Run(rows=run.rows, model="NVIDIA A10G")
    assert "limit     not known: nothing is known of the NICs: say --nics N --nic-gbit GBIT, or --machine" in judge(unknown.text()).ok().out
    assert "verdict   none: there is no limit to compare it with" in judge(unknown.text()).ok().out
    [verdict] = verdicts(unknown.text(), "--machine", "h200-8")
    assert verdict["percent"] == pytest.approx(85.0)
    one = Run(rows=run.rows, hosts=1)
    assert "limit     450.0 GB/s: NVLink of 450 GB/s each direction, as h200-8 has it" in judge(one.text()).ok().out
    assert "479.98 GB/s at 8 GiB" in judge(one.text()).ok().out
    [verdict] = verdicts(Run(rows=run.rows, hosts=1, gpus=1).text())
    assert "one rank" in verdict["limit"]["why"]


def test_limit_of_what_the_run_knows(drarun, tmp_path):
    """drarun-bench writes each rank's share of its worker's NICs: no known machine is needed, and none is assumed."""
    devices = [{"rank": i, "hostname": f"w-{i // 4}", "device_info": "NVIDIA H200", "nic": "mlx5_0,mlx5_1", "nic_gbit": 100.0} for i in range(8)]
    [verdict] = json.loads(drarun("bench", "judge", "-o", "json", document(tmp_path, "a", config={"devices": devices})).ok().out)
    assert verdict["limit"] == {"busbw": 50.0, "assumed": False, "why": "NICs of 400 Gb/s a host (NCCL_IB_HCA and the speed of their ports)"}


@pytest.mark.parametrize("collective,limit", [
    ("all_reduce", 400), ("broadcast", 400), ("sendrecv", 50), ("alltoall", 50 * 15 / 8)])
def test_limit_of_collectives(verdicts, collective, limit):
    """alltoall: 8 of 15 others are on the other host, so what NICs carry is 8/15 of what bus bandwidth counts."""
    [verdict] = verdicts(Run(collective=collective, rows=[Row(8 << 30)]).text())
    assert verdict["limit"]["busbw"] == pytest.approx(limit)


def test_demands(judge):
    text = Run(rows=[Row(8 << 30, busbw=340.0), Row(1 << 20, busbw=60.0)]).text()
    for words, rc in [(["--min-busbw", "200"], 0), (["--min-busbw", "200.1"], 1), (["--min-best-busbw", "340"], 0),
                      (["--min-best-busbw", "340.1"], 1), (["--min-percent", "85"], 0), (["--min-percent", "86"], 1),
                      (["--require-rdma"], 1)]:
        result = judge(text, *words)
        assert result.rc == rc and ("FAILED" in result.out) == bool(rc), words
    assert "FAILED: --min-busbw 250: the average of the sizes has 200\n" in judge(text, "--min-busbw", "250").out
    assert "FAILED: --min-best-busbw 350: the best size has 340\n" in judge(text, "--min-best-busbw", "350").out
    result = judge(Run(model="some GPU").text(), "--min-percent", "1")
    assert result.rc == 1 and "FAILED: --min-percent 1: there is no per cent of a limit" in result.out


def test_warm_up(drarun, tmp_path):
    """Slow first calls are said to be that; calls that differ all along, or that are alike, are not."""
    file = document(tmp_path, "calls", noise=0.05)
    result = json.loads(file.read_text())
    notes = {}
    for name, calls in [("alike", {}), ("cold", {0: 4, 1: 3, 2: 2}), ("one", {0: 1.2}), ("uneven", {i: 4 for i in range(0, 40, 5)})]:
        changed = json.loads(json.dumps(result))
        times = changed["results"][1]["out_of_place_per_iter"]["times_us"]
        for i, factor in calls.items():
            times[i] *= factor
        file.write_text(json.dumps(changed))
        [verdict] = json.loads(drarun("bench", "judge", "-o", "json", file).ok().out)
        notes[name] = [note for note in verdict["notes"] if "not warm" in note]
    assert not notes["alike"] and not notes["one"] and not notes["uneven"]
    assert re.search("the first 3 of the timed calls at 1 MiB take up to [34][.][0-9] times .* raise --warmup_iters by 3", notes["cold"][0])


def test_wrong_data_has_no_figure(judge, verdicts):
    run = Run(rows=[Row(1024, busbw=111.11), Row(2048, busbw=222.22, wrong=3), Row(4096, busbw=333.33)])
    result = judge(run.text())
    assert result.rc == 1 and "data is wrong, first at 2 KiB: no bandwidth of this run counts" in result.out
    assert not any(figure in result.out for figure in ("111", "222.2", "333"))
    whose = "".join(f"# Wrong data of        : rank {rank} on host-1 (NVIDIA H200 0000:18:00): 2 elements\n" for rank in range(9, 12))
    result = judge(run.text().replace("# Out of bounds", whose + "# Out of bounds"))
    assert re.search(r"  data      WRONG: rank 9 on \S+ \(NVIDIA H200 .*\): 2 elements\n            rank 10 .*\n            rank 11 ", result.out), result
    many = "".join(f"# Wrong data of        : rank {rank} on host-0 (NVIDIA H200 0000:18:00): 2 elements\n" for rank in range(9))
    result = judge(run.text().replace("# Out of bounds", many + "# Out of bounds"))
    assert re.search(r"            rank 7 .*\n            1 more rank\n", result.out), result
    old = judge(Run(version="2.10", rows=[Row(1024, busbw=111.11, wrong=2.0)]).text())  # has differences, counts only at its end
    assert old.rc == 1 and "data      WRONG" in old.out and "111" not in old.out
    assert "data      not checked" in judge(Run(rows=[Row(8, wrong="N/A")], ended=False).text()).out


def test_groups_are_judged_each(judge, verdicts):
    """nccl-tests' NCCL_TESTS_SPLIT="MOD 8": 8 groups of 2 ranks share the NICs, and what others saw of 16 ranks is no measure."""
    run = Run(model="NVIDIA H100 80GB HBM3", rows=[Row(8 << 30, busbw=47.7)])
    split = re.sub(r"Rank +(\d+) Group  0", lambda at: f"Rank {int(at[1]):2} Group {int(at[1]) % 8:2}", run.text())
    [verdict] = verdicts(split, "--nics", "8", "--nic-gbit", "400")
    assert verdict["limit"]["busbw"] == 50 and verdict["percent"] == pytest.approx(95.4) and "others" not in verdict
    said = judge(split, "--nics", "8", "--nic-gbit", "400").out
    assert " over 16 ranks on 2 hosts in 8 groups " in said and ", for each of 8 groups" in said
    [whole] = verdicts(run.text(), "--nics", "8", "--nic-gbit", "400")
    assert whole["limit"]["busbw"] == 400


def test_connections_of_groups(verdicts):
    """NCCL numbers the ranks of each communicator from 0, the table those of all groups: "MOD 8" has a rank of each host, "DIV 6" parts of hosts."""
    def connected(run, group, pairs):
        split = re.sub(r"Rank +(\d+) Group  0", lambda at: f"Rank {int(at[1]):2} Group {group(int(at[1])):2}", run.text())
        lines = [f"{name}{each}[0] -> {other}[0] [send] via NET/IB/0/GDRDMA" for name, each, other in pairs]
        return verdicts(split + "\n".join(lines), "--require-rdma")[0]

    def line(rank, gpus=8):
        return f"node-{rank // gpus}:{1000 + rank}:1050 [{rank % gpus}] NCCL INFO Channel 00/0 : "
    rows = [Row(8 << 30, busbw=47.7)]
    between = connected(Run(rows=rows), lambda rank: rank % 8, [(line(rank), rank // 8, 1 - rank // 8) for rank in range(16)])
    assert between["connections"]["rdma"] == 16 and between["rdma"] == "proven" and "within" not in between
    cut = "[0] NCCL INFO Channel 00/0 : "  # of nobody: no host is known
    three = connected(Run(rows=rows, hosts=3, gpus=4), lambda rank: rank // 6, [(line(7, 4), 1, 2), (line(9, 4), 3, 4), (line(3, 4), 3, 4), (cut, 0, 1)])
    assert three["connections"]["rdma"] == 3 and three["within"]["net"] == 1, three


def test_figures_that_are_nan(judge, verdicts):
    """The end is there, and elements that were wrong count without a bandwidth."""
    run = Run(rows=[Row(1024, busbw=111.11), Row(2048, time=float("nan"), algbw=float("nan"), busbw=float("nan"))])
    result = judge(run.text())
    assert "Avg bus bandwidth    : nan" in run.text() and "end (Avg bus bandwidth) is missing" not in result.out, result
    assert "its average is nan: of a size or more nothing was measured" in result.out
    run.rows[1].wrong = 5
    text = run.text().replace("Out of bounds values : 1 FAILED", "Out of bounds values : 0 OK")
    assert judge(text).rc == 1 and "data is wrong, first at 2 KiB" in judge(text).out
    [verdict] = verdicts(text, rc=1)
    half = verdict["result"]["results"][1]["out_of_place"]
    assert verdict["data"] == "wrong" and half == {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": 5}
    [again] = verdicts(json.dumps(verdict["result"]), rc=1)
    assert again["data"] == "wrong"


@pytest.mark.parametrize("each", [False, True])
def test_rows_in_place_alone(verdicts, each):
    """nccl-tests' rows of a replayed trace: blanks stand for the half out of place (src/util.cu, writeBenchMarkLineNullBody)."""
    run = Run(rows=[Row(1024, busbw=111.11), Row(2048, busbw=222.22)], each=each)
    half = len(run.half(1.0, 1.0, 1.0, 0))
    lines = [line[:-2 * half] + " " * 32 + line[-half:] if re.match(" +[0-9]", line) else line for line in run.lines()]
    [verdict] = verdicts("\n".join(lines) + "\n")
    assert rows_of(verdict) == [(1024, None, 111.11), (2048, None, 222.22)] and not any("cut off" in note for note in verdict["notes"])
    assert verdict["best"] == {"busbw": 222.22, "size": 2048, "in_place": True}


def test_rdma(judge, verdicts):
    run = Run(rows=[Row(8 << 30, busbw=90.0)])
    proven = judge("\n".join([*run.head(), *connections(), *run.lines()[len(list(run.head())):]]), "--require-rdma").ok()
    assert "proven by NCCL's log: 8 connections over IB, 8 with GPUDirect" in proven.out
    assert "2 NICs of 400 Gb/s a host (their number from NCCL's log), as h200-8 has them; this is assumed" in proven.out
    host = judge(run.text() + "\n".join(connections(gpudirect=False)))
    assert "8 of 8 RDMA connections go without GPUDirect, first node-0 rank 0" in host.out
    tcp = judge(run.text() + "\n".join(connections(network="Socket")), "--require-rdma")
    assert tcp.rc == 1 and "NOT USED: TCP" in tcp.out and "RDMA is not used" in tcp.out
    provider = "\nnode-0:1000:1050 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 8 nics)\n"
    named = judge(run.text() + provider + "\n".join(connections(network="AWS Libfabric")), "--require-rdma").ok()
    assert "8 connections over AWS Libfabric, 8 with GPUDirect" in named.out
    nothing = judge(run.text(), "--require-rdma")
    assert nothing.rc == 1 and "RDMA is not proven: run with NCCL_DEBUG=INFO" in nothing.out


def mnnvl(rank, other, via="via P2P/MNNVL"):
    """Ranks of hosts with 4 GPUs."""
    return f"node-{rank // 4}:{1000 + rank}:1050 [{rank % 4}] NCCL INFO Channel 00/0 : {rank}[{rank % 4}] -> {other}[{other % 4}] {via}"


def test_nvlink_domains(verdicts):
    """NCCL says MNNVL of all P2P where ranks share an NVLink domain, that within a host, too: it proves nothing of other hosts."""
    def of(hosts, lines, *words):
        run = Run(model="NVIDIA GB200", hosts=hosts, gpus=4, rows=[Row(8 << 30, busbw=180.0)])
        [verdict] = verdicts("\n".join([*run.lines(), *lines]), *words)
        return verdict
    within = [mnnvl(rank, rank ^ 1) for rank in range(8)]
    network = [mnnvl(3, 8, "[send] via NET/IB/3/GDRDMA"), mnnvl(8, 3, "[send] via NET/IB/3")]
    one = of(1, within[:4])
    assert one["rdma"] == "one host" and one["within"]["p2p"] == 4 and one["limit"]["busbw"] == 900
    apart = of(2, within + [line.replace("8[0]", "4[0]") for line in network])
    assert apart["limit"]["busbw"] == 200 and apart["percent"] == pytest.approx(90), apart
    assert apart["rdma"] == "proven" and apart["within"]["p2p"] == 8 and any("1 of 2 RDMA connections go without" in note for note in apart["notes"])
    joined = of(2, [*within, mnnvl(3, 4)])
    assert joined["rdma"] == "not needed" and joined["within"]["p2p"] == 8 and "(between hosts too: NCCL's log)" in joined["limit"]["why"]
    larger = of(3, [*within, mnnvl(3, 4), *network])
    assert larger["rdma"] == "proven" and "percent" not in larger and larger["limit"]["why"].startswith("NVLink connects some of the hosts, and")
    assert of(3, [*within, mnnvl(3, 4), *network], "--link", "900")["limit"]["busbw"] == 900


@pytest.mark.parametrize("rdma,net,word,status", [
    (64 << 30, 1 << 20, "proven: the hosts' devices counted 6.872e+04 MB by RDMA, 1.049 MB by", 0),
    (0, 64 << 30, "NOT USED: the hosts' devices counted 0 MB by RDMA", 1),
    (1 << 30, 1 << 30, "not proven: there are no lines", 1),
    (1000, 0, "not proven: there are no lines", 1),
], ids=["rdma", "tcp", "both", "little"])
def test_rdma_by_counters(judge, verdicts, rdma, net, word, status):
    """Those that drarun-bench reads, where NCCL's log is silent; in the table and in JSON."""
    run = Run(rows=[Row(8 << 30, busbw=90.0)])
    text = f"{run.text()}# Traffic of the hosts  : rdma={rdma} net={net} bytes\n"
    result = judge(text, "--require-rdma")
    assert result.rc == status and f"  rdma      {word}" in result.out, result
    assert verdicts(text)[0]["result"]["traffic"] == {"rdma": rdma, "net": net}
    log = judge(text + "\n".join(connections()))
    assert "proven by NCCL's log" in log.out, log


@pytest.mark.parametrize("nodes,size,busbw,line,standing", [
    (248, 8 << 30, 300, "300.00 to 350.00 GB/s at 8 GiB (nccl-tests issue 283: about 350, at times below 300); this run: 300.00, within\n", "within"),
    (248, 8 << 30, 299, "; this run: 299.00, below\n", "below"),
    (1, 8 << 30, 432, "479.98 GB/s at 8 GiB (Azure/AI-benchmarking-guide, reduced in the switch (NVLS)); expected: 431.98 to 527.98; this run: 432.00, within\n", "within"),
    (1, 8 << 30, 528, "; this run: 528.00, above\n", "above"),
    (1, 1 << 20, 40, "52.96 GB/s at 1 MiB (Azure/AI-benchmarking-guide, reduced in the switch (NVLS)); expected: 47.66 to 58.26; this run: 40.00, below\n", "below"),
    (1, 1 << 21, 40, "479.98 GB/s at 8 GiB (Azure/AI-benchmarking-guide, reduced in the switch (NVLS)); expected: 431.98 to 527.98\n", None),
    (3, 8 << 30, 300, None, None),
])
def test_what_others_saw(judge, verdicts, drarun, tmp_path, nodes, size, busbw, line, standing):
    """A source's range as it is, 10 % around a single figure; at the largest size that both have."""
    text = Run(hosts=nodes, rows=[Row(1 << 12, busbw=1.0), Row(size, busbw=float(busbw))]).text()
    said = judge(text).ok().out
    assert (line or "") in said and ("  others " in said) == bool(line), said
    assert (", and less than others saw" in said) == (standing == "below")
    others = verdicts(text)[0].get("others")
    assert (others or {}).get("standing") == standing
    (tmp_path / "out.txt").write_text(text)
    badges = re.findall(r'<span class="badge (\w+)">([^<]*)<', drarun("bench", "report", tmp_path / "out.txt").ok().out)
    assert badges == [{"below": ("low", "below what others measured"), "within": ("good", "as others measured"),
                       "above": ("good", "above what others measured")}[standing]] if standing else not badges
    if standing:
        assert others["this"] == busbw and (others["low"] <= busbw <= others["high"]) == (standing == "within")


@pytest.mark.parametrize("model,gpus,busbw,hint", [
    ("NVIDIA H200", 1, 31.89, True), ("NVIDIA H200", 1, 47.0, False), ("NVIDIA H200", 1, 20.0, False), ("NVIDIA H200", 2, 31.89, False),
    ("NVIDIA B200", 1, 29.68, True), ("NVIDIA B200", 1, 46.9, False), ("NVIDIA H100 80GB HBM3", 1, 31.89, False)])
def test_hint_at_misaligned_devices(judge, model, gpus, busbw, hint):
    """The figure of a published recipe whose claim takes any GPU and any NIC; it is no expectation."""
    said = judge(Run(hosts=2, gpus=gpus, model=model, rows=[Row(8 << 30, busbw=busbw)]).text()).ok().out
    assert ("with GPUs and NICs that share no PCIe switch (" in said) == hint, said
    assert "28.70" not in "".join(line for line in said.splitlines() if line.startswith("  others")), said


def test_h100_within_a_node(judge):
    said = judge(Run(hosts=1, model="NVIDIA H100 80GB HBM3", rows=[Row(8 << 30, busbw=475.0)]).text()).ok().out
    assert "  others    479.72 GB/s at 8 GiB (AI @ Georgia Tech on HGX H100, NCCL 2.24; " in said and "this run: 475.00, within\n" in said


def test_log_of_its_own(drarun, judge, tmp_path):
    (tmp_path / "nccl.log").write_text("\n".join(connections()))
    assert "8 with GPUDirect" in judge(Run().text(), "--nccl-log", tmp_path / "nccl.log").ok().out
    (tmp_path / "nccl.log").write_text("nothing of NCCL\n")
    result = judge(Run().text(), "--nccl-log", tmp_path / "nccl.log")
    assert result.rc == 65 and "expected lines with NCCL INFO" in result.err


def test_machines_of_a_site(judge, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("machines:\n- {name: mine, gpu: NVIDIA H200, gpus: 8, nics: 4, nicGbit: 200, nvlinkGBs: 450, seen: [\n"
                    "  {collective: all_reduce, nodes: 2, gpus: 8, bytes: 64, busbw: 80, source: last week}]}\n")
    result = judge(Run(rows=[Row(64, busbw=60.0)]).text(), "--known", site).ok()
    assert "limit     100.0 GB/s: 4 NICs of 200 Gb/s a host (a NIC for each GPU), as mine has them" in result.out
    assert "  others    80.00 GB/s at 64 B (last week); expected: 72.00 to 88.00; this run: 60.00, below\n" in result.out
    assert "  verdict   60.0 % of the limit, and less than others saw\n" in result.out
    for text, says in [("machines: 5\n", "site.yaml:1:11: machines: expected a list"), ("machines: []\n", "expected a list"),
                       ("{}\n", "site.yaml:1:1: expected machines: a list"), ("machine: []\n", "machine: unknown key"),
                       ("machines:\n- {name: x}\n", "machines[0]: expected name, gpu and gpus"),
                       ("machines:\n- {name: x, gpu: g1, gpus: 8, nicGbit: fast}\n", "machines[0].nicGbit: expected a number above 0"),
                       ("machines:\n- {name: x, gpu: g1, gpus: 8, nicGbits: 5}\n", "nicGbits"),
                       ("machines:\n- {name: x, gpu: g1, gpus: 8, nvlinkBetweenNodes: true}\n",
                        "machines[0].nvlinkBetweenNodes: has no effect: NCCL's log of a run shows whether its hosts are connected by NVLink"),
                       ("machines:\n- {name: x, gpu: g1, gpus: 8, seen: [{collective: z}]}\n", "seen[0]: expected collective, nodes"),
                       *[(f"machines:\n- {{name: x, gpu: g1, gpus: 8, seen: [{{collective: all_reduce, nodes: 1, gpus: 8, source: s, {bad}}}]}}\n",
                          "source, and busbw or low and high") for bad in ("low: 5", "high: 5", "low: 5, high: 4", "busbw: 5, low: 4, high: 6")]]:
        site.write_text(text)
        result = judge(Run().text(), "--known", site)
        assert result.rc == 65 and result.out == "" and says in result.err, (text, result.err)
    assert judge(Run().text(), "--machine", "none-such").rc == 64


@pytest.mark.parametrize("words,says", [
    ([], "expected one file"), (["--min-percent", "x", "f"], '--min-percent: expected a percentage above 0, at most 1000, got "x"'),
    (["--nic-gbit", "-1", "f"], "--nic-gbit: expected Gb/s above 0"), (["--collective", "all", "f"], "no such collective"),
    (["/no/such/file"], "/no/such/file: cannot be opened: No such file or directory"),
])
def test_refused(drarun, words, says):
    result = drarun("bench", "judge", *words)
    assert result.rc in (64, 65) and says in result.err and result.out == ""


def test_from_stdin_and_to_a_full_disk(drarun, tmp_path):
    (tmp_path / "out.txt").write_text(Run().text())
    with open(tmp_path / "out.txt", encoding="utf-8") as text:
        assert "all_reduce over 16 ranks" in drarun("bench", "judge", "-", stdin=text).ok().out
    result = drarun("bench", "judge", tmp_path / "out.txt", under=["bash", "-c", 'exec "$@" > /dev/full', "bash"])
    assert result.rc not in (0, 1) and "No space left on device" in result.err


def test_what_cannot_be_read_is_never_a_crash(drarun, tmp_path):
    """Random damage with fixed seeds: a verdict or a sentence."""
    source = Run().text() + "\n".join(connections(count=4)) + "\n" + Run(version="2.10").text()
    for seed in range(40):
        dice = random.Random(seed)
        text = bytearray(source.encode())
        for _ in range(dice.randrange(1, 60)):
            at = dice.randrange(len(text))
            text[at:at + dice.randrange(4)] = bytes(dice.randrange(256) for _ in range(dice.randrange(4)))
        (tmp_path / "out.txt").write_bytes(bytes(text))
        result = drarun("bench", "judge", "-o", "json", tmp_path / "out.txt")
        assert result.rc in (0, 1, 65), (seed, result)
        assert result.rc == 65 or json.loads(result.out)


# ---- compare ----

def document(tmp_path, name, factor=1.0, noise=0.01, seed=1, calls=True, collective="all_reduce", sizes=(1024, 1 << 20), **more):
    dice = random.Random(seed)
    rows = []
    for size in sizes:
        times = [factor * size / 1000 * (1 + dice.gauss(0, noise)) for _ in range(40)]
        half = {"time": sum(times) / 40, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": 0}
        row = {"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": half, "in_place": None}
        if calls:
            row["out_of_place_per_iter"] = {"skipped_iterations": 0, "times_us": times}
        rows.append(row)
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps({"args": [f"{collective}_perf"], "results": rows, "end_time": "x", **more}))
    return file


def test_compare_shows_what_it_compares(drarun, tmp_path):
    """One slow call moves the mean by any amount, the median and the change by none."""
    first, second = document(tmp_path, "first", sizes=(1024,)), document(tmp_path, "second", sizes=(1024,))
    slow = json.loads(second.read_text())
    slow["results"][0]["out_of_place_per_iter"]["times_us"][7] = 20000.0
    slow["results"][0]["out_of_place"]["time"] = 500.0
    second.write_text(json.dumps(slow))
    [compared] = json.loads(drarun("bench", "compare", "-o", "json", first, second).ok().out)
    [one] = compared["measurements"]
    values = [value for key, value in one.items() if key.startswith(("first", "second"))]
    assert len(values) == 2 and max(values) < 1.1 * min(values), one
    assert one["change_percent"] == pytest.approx(100 * (values[1] / values[0] - 1), abs=0.01)
    assert abs(one["change_percent"]) < 1


def test_compare(drarun, tmp_path):
    """What is 3 % slower is found through 1 % of noise; the same is not; and what else differs is said."""
    first = document(tmp_path, "first", env=["NCCL_ALGO=Ring"], nccl_version=22703)
    for seed in range(2, 12):
        same = drarun("bench", "compare", "--max-slower", "1", first, document(tmp_path, "same", seed=seed))
        assert same.rc == 0 and "0 of 2 measurements are more than 1 % slower" in same.out, same
        slower = drarun("bench", "compare", "--max-slower", "1", first, document(tmp_path, "slow", factor=1.03, seed=seed))
        assert slower.rc == 1 and slower.out.count("SLOWER") == 2, slower
    other = document(tmp_path, "other", nccl_version=22800, calls=False, sizes=(1024, 4096))
    result = drarun("bench", "compare", first, other).ok()
    for says in ["library: NCCL 2.27.3, then NCCL 2.28.0", "only the first: NCCL_ALGO=Ring",
                 "1 measurements stand only in the first, 1 only in the second",
                 "nobody knows whether 1 of 1 changes are more than chance"]:
        assert says in result.out
    [compared] = json.loads(drarun("bench", "compare", "-o", "json", first, document(tmp_path, "slow", factor=1.2, seed=3)).ok().out)
    assert compared["slower"] == 2 and compared["measurements"][0]["interval_percent"][0] > 18
    assert compared["measurements"][0]["change_percent"] == pytest.approx(20, abs=1)


def test_repeated_rows_are_compared_in_their_order(drarun, tmp_path):
    """Of cycles (-N 2) each row has its own partner: a run beside itself has no change."""
    first = document(tmp_path, "first", sizes=(1024, 1 << 20, 1024, 1 << 20), noise=0.3)
    [compared] = json.loads(drarun("bench", "compare", "-o", "json", first, first).ok().out)
    assert [one["change_percent"] for one in compared["measurements"]] == [0, 0, 0, 0] and compared["only_second"] == 0
    once = document(tmp_path, "once")
    [compared] = json.loads(drarun("bench", "compare", "-o", "json", once, first).ok().out)
    assert len(compared["measurements"]) == 2 and (compared["only_first"], compared["only_second"]) == (0, 2)


@pytest.mark.parametrize("how,says", [
    (dict(collective="all_gather"), "is of all_reduce and"), (dict(sizes=(3,)), "have no size, type, operation and root in common"),
    (dict(out_of_bounds={"count": 2}), "second.json: its data was wrong"), (dict(stand_in=True), "second.json: measured with a stand-in"),
])
def test_nothing_to_compare(drarun, tmp_path, how, says):
    result = drarun("bench", "compare", document(tmp_path, "first"), document(tmp_path, "second", **how))
    assert result.rc == 65 and says in result.err and result.out == ""


def test_compare_is_refused(drarun, tmp_path):
    first = document(tmp_path, "first")
    for words, says in [([first], "expected two files"), ([first, first, "--max-slowe", "2"], "did you mean --max-slower"),
                        ([first, first, "--max-slower", "-3"], "expected a percentage")]:
        result = drarun("bench", "compare", *words)
        assert result.rc == 64 and says in result.err and result.out == ""


def test_stand_in_is_refused(drarun, tmp_path):
    """What moved no data over real links has no figure."""
    result = drarun("bench", "judge", document(tmp_path, "first", stand_in=True))
    assert result.rc == 1 and "measured with a stand-in" in result.out and "GB/s" not in result.out
    lines = Run().lines()
    (tmp_path / "table.txt").write_text("\n".join(["# drarun-bench version 0.1.0 stand-in for NCCL 2.27.3", *lines[1:]]))
    result = drarun("bench", "judge", tmp_path / "table.txt")
    assert result.rc == 1 and "measured with a stand-in" in result.out and "GB/s" not in result.out


# ---- report ----

def seen_by_readers(page):
    """The page's text, and what it would load."""
    page = re.sub("<meta [^>]*>", "", page)
    loads = [value for value in re.findall(r"""(?:src|href|url|@import)\s*[=(]?\s*["']?([^"')>\s]+)""", page) if value != "none"]
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.S), loads


def test_report(drarun, tmp_path):
    """One file that loads nothing, with the verdict, pictures and rows; names from a file stay text."""
    source, page = tmp_path / "out.txt", tmp_path / "report.html"
    source.write_text(Run(rows=[Row(1 << i, busbw=i * 10.0) for i in range(10, 34)], model="NVIDIA H200").text()
                      .replace("node-1", "<script>alert(1)</script>"))
    assert drarun("bench", "report", source, "--file", page, "--title", "May & June").ok().out == ""
    text, loads = seen_by_readers(page.read_text())
    assert all(each.startswith("data:") for each in loads) and "<script" not in page.read_text() and "May &amp; June" in text
    for says in ["82.5 % of the limit", "limit 400.0 GB/s (assumed)", "330.00 GB/s bus bandwidth at 8 GiB", "out of place", "rank 15"]:
        assert says in " ".join(text.split()), says
    assert page.read_text().count("<svg") == 3 and page.read_text().count("prefers-color-scheme:dark") == 4
    both = drarun("bench", "report", source, source).ok().out
    assert both.count("<h2>") == 2 and both.startswith("<!doctype html>") and both.endswith("</body></html>\n")


def test_report_on_a_phone(drarun, source):
    """Rules for a narrow window replace those above them, so that they are the last; there, pictures are scrolled and keep their size."""
    page = drarun("bench", "report", source / "docs/bench/nccl-tests.txt").ok().out
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    wide, narrow = style.split("@media (max-width:600px){")
    for rule in re.findall(r"(?<=[{}])[^{}]+(?=\{)", "}" + narrow):
        assert rule in wide or rule == ".wide svg", rule
    assert ".wide svg{width:860px}" in narrow and narrow.endswith("}}")
    outside = re.sub(r'<div class="wide">.*?</div>', "", page, flags=re.S)
    assert page.count("<svg") == 3 and "<svg" not in outside and "<table" not in outside


def test_report_has_no_columns_for_what_was_not_measured(drarun, tmp_path):
    page = drarun("bench", "report", document(tmp_path, "once")).ok().out
    assert ">out of place</th>" in page and ">in place</th>" not in page and page.count("<th>busbw</th>") == 1


def test_what_a_reader_of_the_report_saves(drarun, judge, tmp_path):
    """The page carries its rows, as the other verbs write them."""
    source = tmp_path / "a.txt"
    source.write_text(Run(rows=[Row(1 << i, busbw=i * 10.0) for i in range(10, 34)]).text())
    page = drarun("bench", "report", source).ok().out
    saved = {name: urllib.parse.unquote(data) for name, data in re.findall(r'<a download="([^"]*)" href="data:[^,]*,([^"]*)"', page)}
    assert saved["a.csv"] == drarun("bench", "report", "-o", "csv", source).ok().out
    assert json.loads(saved["a.json"]) == json.loads(drarun("bench", "judge", "-o", "json", source).ok().out)[0] and len(saved) == 2


def test_several_runs_in_one_picture(drarun, tmp_path):
    for name, factor in ("tuesday", 10), ("wednesday", 7):
        (tmp_path / f"{name}.txt").write_text(Run(rows=[Row(1 << i, busbw=float(i * factor)) for i in range(10, 34)]).text())
    page = drarun("bench", "report", tmp_path / "tuesday.txt", tmp_path / "wednesday.txt").ok().out
    first = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, re.S)[0])
    assert first.get("aria-label") == "bus bandwidth of several runs" and page.count("<svg") == 1 + 2 * 3
    texts = [node.text for node in first.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["tuesday", "wednesday"] and len([*first.iter("{http://www.w3.org/2000/svg}polyline")]) == 2
    assert "several runs" not in drarun("bench", "report", tmp_path / "tuesday.txt").ok().out
    twice = tmp_path / "twice.txt"
    twice.write_text((tmp_path / "tuesday.txt").read_text() + (tmp_path / "wednesday.txt").read_text())
    assert ">twice-1<" in drarun("bench", "report", twice).ok().out


def test_time_over_size(drarun, tmp_path):
    """Both scales are logarithmic: what takes ten times as long is as far away everywhere."""
    source = tmp_path / "out.txt"
    source.write_text(Run(rows=[Row(1 << (10 + 2 * i), busbw=1.0, time=10.0 ** (1 + i)) for i in range(4)]).text())
    picture = ElementTree.fromstring(drarun("bench", "report", "-o", "svg-latency", source).ok().out)
    points = [float(point.split(",")[1]) for point in next(picture.iter("{http://www.w3.org/2000/svg}polyline")).get("points").split()]
    steps = [before - after for before, after in zip(points, points[1:])]
    assert len(points) == 4 and max(steps) - min(steps) < .2 and min(steps) > 50
    labels = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"10", "100", "1000", "10000", "us"} <= {*labels}


@pytest.mark.parametrize("theme,paper", [("light", "#ffffff"), ("dark", "#15181d")])
@pytest.mark.parametrize("kind", ["svg", "svg-ranks", "svg-hosts"])
def test_pictures(drarun, tmp_path, kind, theme, paper):
    """Documents of their own, which a renderer draws; slow ranks are told apart."""
    devices = [{"rank": i, "hostname": f"w-{i // 2}", "device_info": "NVIDIA H200", "nic": f"mlx5_{i}"} for i in range(4)]
    file = document(tmp_path, "ranks", config={"iterations": 1, "devices": devices})
    result = json.loads(file.read_text())
    for row in result["results"]:
        row["out_of_place"]["per_rank_times_us"] = [100, 101, 120, 99]
    file.write_text(json.dumps(result))
    picture = drarun("bench", "report", "--format", kind, "--theme", theme, file).ok().out
    texts = [node.text for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert paper in picture and "prefers" not in picture
    if kind == "svg-ranks":
        assert "rank 2  w-1 mlx5_2" in texts and "+18.8 %" in texts
    if kind == "svg-hosts":
        assert {"w-0", "w-1", "rank 2", "mlx5_2"} <= set(texts) and picture.count("f-paper s-limit") == 1
    if shutil.which("rsvg-convert"):
        (tmp_path / "x.svg").write_text(picture)
        png = subprocess.run(["rsvg-convert", tmp_path / "x.svg"], capture_output=True, check=True).stdout
        assert png.startswith(b"\x89PNG") and len(png) > 1000


def test_names_of_ranks_fit(drarun, tmp_path):
    """Names of GKE's nodes are long, and those of a pool differ at their end alone; AWS's differ at the start."""
    nodes = [f"gke-training-cluster-a4-highgpu-8g-pool-7f3d91c2-{end}" for end in ("ax9q", "bx9q")] + ["ip-10-0-17-2.us-west-2.compute.internal", "n7"]
    devices = [{"rank": i, "hostname": f"w-{i}", "node": node, "device_info": "NVIDIA B200", "nic": f"gpu{i}rdma0"} for i, node in enumerate(nodes)]
    devices[0].update(nic=",".join(f"gpu{i}rdma0" for i in range(8)), nic_nearest="gpu0rdma0")
    file = document(tmp_path, "long", config={"iterations": 1, "devices": devices})
    result = json.loads(file.read_text())
    for row in result["results"]:
        row["out_of_place"]["per_rank_times_us"] = [100, 101, 120, 99]
    file.write_text(json.dumps(result))
    picture = ElementTree.fromstring(drarun("bench", "report", "-o", "svg-ranks", file).ok().out)
    labels = [(node.text, float(node.get("x"))) for node in picture.iter("{http://www.w3.org/2000/svg}text") if node.text.startswith("rank ")]
    assert [text.split()[1] for text, _ in labels] == ["0", "1", "2", "3"]
    assert all(text.endswith(f" gpu{i}rdma0") for i, (text, _) in enumerate(labels)) and "rank 3  n7 gpu3rdma0" in dict(labels)
    assert "7f3d91c2-ax9q" in labels[0][0] and "7f3d91c2-bx9q" in labels[1][0] and "ip-10-0-17-2." in labels[2][0]
    assert all(x - 6.2 * len(text) >= 0 for text, x in labels), labels  # 6.2: of a letter of DejaVu Sans at this size, the widest of the fonts
    cells = [float(node.get("x")) for node in picture.iter("{http://www.w3.org/2000/svg}rect") if node.get("fill-opacity")]
    assert min(cells) > max(x for _, x in labels) and {"1 KiB", "1 MiB"} <= {node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")}


def picture_of(drarun, file, *words):
    """{text: how often}, [colour of each line between a GPU and a NIC]."""
    picture = drarun("bench", "report", "--format", "svg-hosts", *words, file).ok().out
    texts = [node.text for node in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    return Counter(texts), re.findall(r'<line class="s-(\w+)"[^>]* y1="[\d.]+" x2="[\d.]+" y2="[\d.]+" stroke-width="2.5"', picture)[4:], picture


def test_devices_that_were_claimed(drarun, tmp_path):
    """As the ranks saw them: who has which NIC, and how far it is; a slow one in red."""
    near = [("mlx5_0", "PIX"), ("mlx5_1", "PXB"), ("mlx5_0", "SYS"), ("", "")]
    devices = [{"rank": i, "hostname": "w-0", "node": "n7", "device_info": "NVIDIA H200", "device_hex": f"0000:1{i}:00.0", "numa": 0,
                "nic": "mlx5_0,mlx5_1,mlx5_2", "nic_nearest": nic, "nic_path": path} for i, (nic, path) in enumerate(near)]
    file = document(tmp_path, "claimed", config={"iterations": 1, "devices": devices}, pairs={
        "measured": 6, "rails": {"each": 4, "hosts": 1, "measured": 6}, "slow": [
            {"what": "nic", "rank": 1, "rail": 1, "host": "w-0", "nic": "mlx5_1", "time": 15, "usual": 10}]})
    texts, links, picture = picture_of(drarun, file)
    assert texts["n7: w-0"] == texts["mlx5_0"] == texts["mlx5_1"] == texts["mlx5_2"] == texts["PIX"] == texts["PXB"] == 1, texts
    assert texts["SYS"] == 0 and links == ["seen", "one", "limit"] and picture.count('class="f-paper s-limit"') == 2
    assert "NVIDIA H200 0000:12:00.0, NUMA node 0, to its NIC: SYS" in picture


def test_report_with_a_plan(drarun, source, tmp_path):
    """What the output of anyone's nccl-tests does not say comes from a plan over slices; one of another job is refused."""
    job, plan, run = tmp_path / "job.yaml", tmp_path / "plan.json", source / "docs" / "bench" / "nccl-tests.txt"
    example = (source / "examples" / "jobs" / "two-by-two.yaml").read_text()
    slices = source / "examples" / "clusters" / "a4-two-nodes.json"
    job.write_text(example.replace("count: 2", "count: 8"))
    plan.write_text(drarun("plan", job, "--slices", slices, "-o", "json").ok().out)
    texts, links, _ = picture_of(drarun, run, "--plan", plan)
    assert links == ["seen"] * 16 and texts["PIX"] == 16 and texts["gpu7rdma0"] == 2 and texts["a4-1: nccl-gib-test-1"] == 1, texts
    assert "gpu7rdma0" in drarun("bench", "report", "--plan", plan, run).ok().out
    planned = json.loads(plan.read_text())
    first, last = planned["plan"]["workers"]
    for worker, offset in ((first, 8), (last, -8)):  # as where the second worker's NVLink domain comes first
        for rank in worker["ranks"]:
            rank["rank"] += offset
    plan.write_text(json.dumps(planned))
    texts, _, _ = picture_of(drarun, run, "--plan", plan)
    assert texts["a4-1: nccl-gib-test-0"] == texts["a4-0: nccl-gib-test-1"] == 1, texts
    last.update(ranks=[], pluginGpus=2, nics=["mlx5_9"], firstRank=0)
    for i, rank in enumerate(first["ranks"]):
        rank["rank"] = 2 + i
    first["ranks"] += [dict(first["ranks"][0], rank=10 + i) for i in range(6)]
    plan.write_text(json.dumps(planned))
    texts, _, picture = picture_of(drarun, run, "--plan", plan)
    assert texts["mlx5_9"] == 1 and texts["a4-1: nccl-gib-test-0"] == 1, texts
    plan.write_text(drarun("plan", source / "examples" / "jobs" / "two-by-two.yaml", "--slices", slices, "-o", "json").ok().out)
    result = drarun("bench", "report", "--plan", plan, run)
    assert result.rc == 65 and "plan.json plans 4 ranks, and the run has 16" in result.err, result
    for text, says in [("{}", "plan.workers: expected a list of workers, as drarun plan -o json writes it with --slices"), ("[", "plan.json:")]:
        plan.write_text(text)
        result = drarun("bench", "report", "--plan", plan, run)
        assert result.rc == 65 and says in result.err, result


def test_report_as_csv(drarun, tmp_path):
    source = tmp_path / "out.txt"
    source.write_text(Run().text())
    lines = drarun("bench", "report", "--format", "csv", source).ok().out.splitlines()
    assert len(lines) == 9 and lines[0].startswith("size,count,type,") and lines[1] == "8,2,float,sum,-1,out,50,0.5,0.75,0,,,,,,,,"


def test_report_of_what_has_no_figure(drarun, tmp_path):
    """Wrong data, a stand-in: no bandwidth, no time; files that cannot be written; nothing to draw."""
    source = tmp_path / "out.txt"
    source.write_text(Run(rows=[Row(8, time=44.44, busbw=111.11), Row(16, time=55.55, busbw=222.22, wrong=1)]).text())
    result = drarun("bench", "report", source)
    assert result.rc == 1 and "FAILED" in result.out and "data is wrong" in result.out
    assert not any(figure in result.out for figure in ("111.1", "222.2", "44.44", "166."))
    for kind in ("svg", "csv"):
        result = drarun("bench", "report", "--format", kind, source)
        assert result.rc == 65 and result.out == "" and "data is wrong" in result.err
    stand_in = document(tmp_path, "stand-in", stand_in=True)
    result = drarun("bench", "report", stand_in)
    assert result.rc == 1 and "GB/s" not in result.out
    assert drarun("bench", "report", "--format", "svg", stand_in).rc == 65
    result = drarun("bench", "report", "--format", "svg-ranks", document(tmp_path, "good"))
    assert result.rc == 65 and "there is nothing to draw" in result.err
    good = document(tmp_path, "good")
    assert drarun("bench", "report", good, "--file", tmp_path / "no" / "x.html").rc not in (0, 1)
    result = drarun("bench", "report", good, under=["bash", "-c", 'exec "$@" > /dev/full', "bash"])
    assert result.rc not in (0, 1) and "No space left on device" in result.err
    two = drarun("bench", "report", "--format", "svg", good, good)
    assert two.rc == 64 and "-o svg shows one run: expected one file, got 2" in two.err, two
    source.write_text(Run().text() * 2)
    both = drarun("bench", "report", "--format", "csv", source)
    assert both.rc == 64 and both.out == "" and f"-o csv shows one run; {source} holds 2 runs" in both.err, both
    assert drarun("bench", "report").rc == 64


def test_report_of_a_hostile_name(drarun, tmp_path):
    """A collective's name in somebody's file is text: no element of the page, no line and no colour of the verdict, in whatever alphabet."""
    file = document(tmp_path, "hostile")
    result = json.loads(file.read_text())
    for name, shown in [("a\n  <b/onload=x>", "a?  <b/onload=x>"), ("\x1b]0;title\x07", "?]0;title?"), (30 * "\u00e9", 31 * "?")]:
        file.write_text(json.dumps({**result, "collective": name}))
        assert "<b/" not in drarun("bench", "report", file).ok().out
        assert drarun("bench", "judge", file).ok().out.startswith(f"{shown}, nccl-tests\n  best ")
        [verdict] = json.loads(drarun("bench", "judge", "-o", "json", file).ok().out)
        assert verdict["collective"] == shown, verdict


def test_report_of_numbers_that_nobody_measured(drarun, tmp_path):
    """No scale can be drawn for them: refused, or not counted in a text; the smallest has one of its own."""
    file = document(tmp_path, "huge")
    result = json.loads(file.read_text())
    result["results"][0]["out_of_place"]["bus_bw"] = 1.7e308
    file.write_text(json.dumps(result))
    refused = drarun("bench", "report", file, timeout=20)
    assert refused.rc == 65 and "huge.json: results[0].out_of_place.bus_bw: expected a number of at most 1e30" in refused.err, refused
    for row in result["results"]:
        row["out_of_place"]["bus_bw"] = 1e-323
    file.write_text(json.dumps(result))
    assert "<svg" in drarun("bench", "report", file, timeout=20).ok().out
    text = tmp_path / "huge.txt"
    text.write_text(Run(rows=[Row(8, busbw=1.0), Row(16, time=1e60)]).text())
    shown = drarun("bench", "judge", "-o", "json", text)
    assert [row["out_of_place"] and row["out_of_place"]["bus_bw"] for row in json.loads(shown.out)[0]["result"]["results"]] == [1.0, None], shown


def test_sample_report(drarun, source):
    """The page in docs is what the program makes of the text beside it."""
    sample = source / "docs" / "bench"
    command, = re.findall(r"`drarun (bench report [^`]*)`", (sample / "README.md").read_text())
    made = drarun(*shlex.split(command), cwd=sample).ok().out
    assert made == (sample / "report.html").read_text()


# ---- NCCL's log alone ----

LOGS = SOURCE / "lib/bench/fuzz/corpus/bench_nccl_report"  # in the forms of public logs: docs/design/026-verdict.md


@pytest.fixture
def log(judge):
    def run(name, *words):
        text = (LOGS / f"{name}.txt").read_text()
        return judge(text, *words), json.loads(judge(text, "-o", "json").ok().out)[0]
    return run


def connections_of(document):
    return {key: count for key, count in document["connections"].items() if count}


def nics_of(document):
    return {host.get("host", ""): {(nic["network"], nic.get("index"), nic.get("device", "")): (nic["ends"], nic["gpudirect"]) for nic in host["nics"]}
            for host in document["hosts"] if host["nics"]}


def test_log_of_ray_on_gib(log):
    """Colours and names of actors before NCCL's lines; both ends of a connection are one."""
    text, document = log("ray-gib", "--require-rdma")
    assert "verdict   RDMA with GPUDirect, 4 of 4 connections\n" in text.ok().out and "hint" not in text.out
    assert connections_of(document) == {"rdma": 4, "gpudirect": 4, "p2p": 4} and document["ranks"] == 16
    nics = {("gIB", 0, "mlx5_0:1/RoCE"): (2, 2), ("gIB", 2, "mlx5_2:1/RoCE"): (2, 2)}
    assert nics_of(document) == {"ray-head-x1": nics, "ray-group-worker-pbkpw": nics}
    assert document["versions"] == ["2.26.6+cuda12.8"] and document["plugins"] == ["gIB v1.0.6"] and document["networks"] == ["gIB"]
    assert document["verdict"] == "gpudirect" and document["hints"] == []


def test_log_of_torchrun_on_efa(log):
    _, document = log("torchrun-efa", "--require-rdma")
    assert connections_of(document) == {"rdma": 4, "gpudirect": 4} and document["plugins"] == ["aws-ofi-nccl 1.14.0"]
    assert set(nics_of(document)) == {"ip-10-0-0-1", "ip-10-0-0-2"} and document["networks"] == ["AWS Libfabric"]


def test_log_of_tcp(log):
    text, document = log("mpirun-tcp", "--require-rdma")
    assert text.rc == 1 and "verdict   TCP: none of 4 connections uses RDMA\n" in text.out
    assert "hint      NCCL found no RDMA device on worker-0: claim NICs for the pod" in text.out
    assert connections_of(document) == {"tcp": 4} and document["verdict"] == "tcp"
    assert nics_of(document) == {name: {("Socket", 0, "eth0"): (3, 0)} for name in ("worker-0", "worker-1")}
    assert log("mpirun-tcp")[0].rc == 0


@pytest.mark.parametrize("line,says", [
    ("NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE is 1: unset it"),
    ("NCCL_NET set by environment to Socket", "NCCL_NET is Socket: unset it"),
    ("Failed to open libibverbs.so[.1]", "the image has no libibverbs"),
    ("", "no line says why TCP was chosen"),
])
def test_hints_for_tcp(judge, line, says):
    lines = [f"a:1:2 [0] NCCL INFO {each}" for each in (line, "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0")]
    hints = judge("\n".join(lines)).ok().out.split("  hint ")[1]
    assert says in hints and hints.count("\n") == 1


def test_log_of_one_host_without_gpudirect(log):
    """What is known of one end counts; SHARP's plugin, and why GPUDirect is off."""
    text, document = log("hpcx-no-gdr", "--require-rdma")
    assert "RDMA, but 1 of 2 connections go without GPUDirect\n" in text.ok().out
    assert all(hint in text.out for hint in ("load nvidia-peermem", "align: required", "NCCL warned 1 time, first: NET/IB : Got completion"))
    assert connections_of(document) == {"rdma": 2, "gpudirect": 1, "shm": 1, "inNetwork": 1} and document["plugins"] == ["IBext", "SHARP"]
    assert nics_of(document)["dgx-a"] == {("IBext", 0, "mlx5_0:1/IB/SHARP"): (1, 0), ("IBext", 1, "mlx5_1:1/IB/SHARP"): (1, 1)}


def test_log_with_several_records_in_a_line(log):
    """As pages paste them; with NCCL 2.4's rings, and what Ray left out."""
    text, document = log("joined")
    assert connections_of(document) == {"rdma": 3, "gpudirect": 3, "unproven": 1, "p2p": 1} and document["linesLeftOut"] == 27
    assert "RDMA is not proven: 1 of 4 connections go over AWS Libfabric, of which no line names the provider\n" in text.out
    assert set(nics_of(document)) == {"VM-1", "ip-172-32-38-1", ""} and "RAY_DEDUP_LOGS=0" in text.out


def test_log_of_several_communicators(judge):
    """Ranks of the same numbers are connected again; a log of both ends has each connection twice."""
    def end(host, way):
        return f"{host}:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [{way}] via NET/IB/0/GDRDMA\n"
    document = json.loads(judge((end("a", "send") + end("b", "receive")) * 3, "-o", "json").ok().out)[0]
    assert connections_of(document) == {"rdma": 3, "gpudirect": 3}


def test_log_of_an_nvlink_domain(judge):
    """Senders write such lines, so that a rank which sends from a host is on it; of lines without a host nothing is known."""
    within = [mnnvl(rank, (rank + 1) % 4) for rank in range(4)]
    one = judge("\n".join(within))
    assert "verdict   one host: no network is used\n" in one.ok().out and "  within    4 by P2P" in one.out and "node-0: 4 P2P" in one.out
    ring = [mnnvl(rank, (rank + 1) % 8) for rank in range(8)]
    two = judge("\n".join(ring))
    assert "verdict   NVLink between hosts" in two.ok().out and "2 by NVLink\n  within    6 by P2P" in two.out, two
    cut = judge("\n".join(line[line.index("[") :] for line in within))
    assert "verdict   NVLink between hosts" in cut.ok().out, cut


def test_table_beside_the_log_counts(judge, verdicts):
    run = Run(rows=[Row(8 << 30, busbw=90.0)])
    text = run.text() + "\n".join(connections())
    assert "best" in verdicts(text)[0] and "kind" not in verdicts(text)[0]
    assert judge("nothing of NCCL's").rc == 65
    unknown = judge("a:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n", "--require-rdma")
    assert unknown.rc == 1 and "not known: no line says how hosts are connected" in unknown.out
    alone = judge("a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n", "--require-rdma")
    assert "one host: no network is used" in alone.ok().out


@pytest.mark.parametrize("demand,says", [
    (["--min-busbw", "300"], "--min-busbw 300: NCCL's log has no bandwidth"), (["--min-best-busbw", "1"], "--min-best-busbw 1: NCCL's log has"),
    (["--min-percent", "80"], "--min-percent 80: NCCL's log has"), (["--require-rdma"], "RDMA is not used"),
])
def test_demands_of_a_log_alone(judge, demand, says):
    """A benchmark that ended before its table has reached nothing that was demanded of it."""
    text = "\n".join(connections(network="Socket"))
    said, shown = judge(text, *demand), judge(text, "-o", "json", *demand)
    assert said.rc == shown.rc == 1 and f"  FAILED    {says}" in said.out, said
    [document] = json.loads(shown.out)
    assert document["kind"] == "nccl-log" and document["failed"] and [each.startswith(says) for each in document["failures"]] == [True]
    [document] = json.loads(judge(text, "-o", "json").ok().out)
    assert not document["failed"] and document["failures"] == [] and "FAILED" not in judge(text).out
