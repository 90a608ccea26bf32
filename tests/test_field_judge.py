# SPDX-License-Identifier: Apache-2.0
"""Outputs of benchmarks from public reports, which were judged better than they are: tests/regress/16 to 18."""
import json

import pytest

from support.build import SOURCE
from support.nccl_tests import Row, Run, connections

REGRESS = SOURCE / "tests" / "regress"
CRASHED, FABRIC, ONE_HOST = (REGRESS / name for name in (
    "16-judge-crashed-run", "17-judge-libfabric-over-tcp", "18-judge-one-host-not-by-nvlink"))
LARGE = [Row(8 << 30, busbw=90.0)]


@pytest.fixture
def judge(drarun, tmp_path):
    def run(text, *words):
        file = tmp_path / "out.txt"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return drarun("bench", "judge", *words, file)
    return run


@pytest.fixture
def verdict(judge):
    def run(text, *words):
        [one] = json.loads(judge(text, "-o", "json", *words).out)
        return one
    return run


def ended_with(*lines, run=None):
    """A run that got as far as its rows, and what was written after them."""
    return "\n".join([*(run or Run(ended=False)).lines(), *lines]) + "\n"


# ---- a run that died ----

@pytest.mark.parametrize("words", [[], ["--min-busbw", "5"], ["--min-percent", "1"]])
def test_run_that_died_amid_its_sizes(judge, words):
    result = judge((CRASHED / "mid.txt").read_text(), *words)
    assert result.rc == 1 and "% of the limit" not in result.out, result
    assert "  verdict   FAILED: the run failed on a2 after 2 sizes: Test NCCL failure all_reduce.cu:44 " \
           "'remote process exited or there was a network error / '\n" in result.out


def test_run_that_died_at_its_start(judge, verdict):
    """The failure, its host and the warning before it, in text and JSON."""
    text = (CRASHED / "init.txt").read_text()
    result = judge(text)
    assert result.rc == 1 and "none: no row was measured" not in result.out, result
    assert "FAILED: the run failed on t-worker-0 before it measured anything: Test NCCL failure common.cu:961 'internal error" in result.out
    assert "before it NCCL warned on t-worker-0: Attribute arch of node cpu not found (graph/xml.h:101)\n" in result.out
    said = verdict(text)
    failed = said["result"]["failed"]
    assert said["failed"] and len(said["failures"]) == 2 and failed["kind"] == "test-nccl" and failed["host"] == "t-worker-0"
    assert failed["text"].startswith("Test NCCL failure common.cu:961") and failed["cause"].startswith("t-worker-0: Attribute arch")


@pytest.mark.parametrize("line,kind,says", [
    ("node-1: Test CUDA failure common.cu:601 'out of memory'", "test-cuda", "on node-1 after 4 sizes: Test CUDA failure common.cu:601 'out of memory'"),
    ("node-0: Test timeout (60s) common.cu:523", "test-timeout", "on node-0 after 4 sizes: Test timeout (60s) common.cu:523"),
    (" .. node-1 pid 1010: Test failure common.cu:401", "test", "on node-1 after 4 sizes: Test failure common.cu:401"),
    ("[1,9]<stdout>:node-1: Test NCCL failure common.cu:9 'unhandled system error / '", "test-nccl", "on node-1 after 4 sizes: Test NCCL failure"),
    ("mpirun noticed that process rank 3 with PID 0 on node node-1 exited on signal 9 (Killed).", "launcher", "the job failed: mpirun noticed"),
    ("prterun noticed that process rank 1 with PID 77 on node n exited on", "launcher", "the job failed: prterun noticed"),
    ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "launcher", "the job failed: =   BAD TERMINATION"),
    ("srun: error: node-1: task 9: Killed", "launcher", "the job failed: srun: error: node-1: task 9: Killed"),
    ("slurmstepd: error: *** STEP 7.0 ON node-0 CANCELLED DUE TO TIME LIMIT ***", "launcher", "the job failed: slurmstepd"),
    ("drarun: rank 2 on worker 0 (vm) was killed by signal 11 (SIGSEGV) after 1.2 s", "launcher", "the job failed: drarun: rank 2"),
    ("command terminated with exit code 137", "launcher", "the job failed: command terminated"),
])
def test_what_ended_a_run(judge, verdict, line, kind, says):
    result = judge(ended_with(line))
    assert result.rc == 1 and "  verdict   FAILED: " in result.out and says in result.out, result
    assert verdict(ended_with(line))["result"]["failed"]["kind"] == kind


def test_failure_after_the_end(judge):
    """A program that fails when everything was measured has failed; a launcher's word alone is a note."""
    result = judge(Run().text() + "node-1: Test CUDA failure common.cu:1200 'an illegal memory access was encountered'\n")
    assert result.rc == 1 and "FAILED: the run failed on node-1: Test CUDA failure common.cu:1200" in result.out, result
    said = judge(Run().text() + "srun: error: node-1: task 9: Exited with exit code 1\n").ok().out
    assert "  note      it ended badly after it had measured: srun: error: node-1: task 9" in said


def test_failure_before_any_line_of_a_table(judge):
    result = judge("w-0: Test CUDA failure common.cu:1100 'no CUDA-capable device is detected'\n .. w-0 pid 7: Test failure common.cu:1000\n")
    assert result.rc == 1 and "FAILED: the run failed on w-0 before it measured anything: Test CUDA failure common.cu:1100 'no CUDA" in result.out


def test_first_cause_of_several(verdict):
    """What other ranks ran into because of it is an echo, and so is the trace behind it."""
    said = verdict(ended_with(
        "node-0:1000:1040 [0] misc/socket.cc:29 NCCL WARN socketProgressOpt: Call to recv failed : Connection reset by peer",
        "node-1:1009:1041 [1] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion with error 12, opcode 0",
        "node-0: Test NCCL failure common.cu:44 'remote process exited or there was a network error / '",
        " .. node-0 pid 1000: Test failure common.cu:401",
        "node-1: Test NCCL failure common.cu:44 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '",
        "node-0: Test CUDA failure common.cu:77 'unspecified launch failure'"))
    failed = said["result"]["failed"]
    assert failed["host"] == "node-1" and "unhandled system error" in failed["text"], failed
    assert failed["cause"] == "node-1: NET/IB : Got completion with error 12, opcode 0 (transport/net_ib.cc:1298)"


def test_failure_behind_half_a_row(verdict):
    lines = Run(ended=False).lines()
    said = verdict("\n".join([*lines[:-1], lines[-1][:50] + "node-1: Test NCCL failure all_reduce.cu:44 'internal error / '"]) + "\n")
    assert said["result"]["failed"]["host"] == "node-1" and "after 3 sizes" in said["failures"][0], said


def test_failure_of_one_run_among_several(judge):
    """Each run has its own end; one without devices is told apart from the next one."""
    died = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n" \
           "w-0: Test NCCL failure common.cu:1005 'unhandled system error / '\n"
    result = judge(died + Run().text() + Run(collective="alltoall", ended=False).text() + Run().text(), "-o", "json")
    found = json.loads(result.out)
    assert result.rc == 1 and [each["failed"] for each in found] == [True, False, True, False], result
    assert "w-0" in found[0]["failures"][0] and "the run did not end, after 4 sizes: its end (Avg bus bandwidth) is missing" in found[2]["failures"][0]


def test_warning_of_a_run_without_an_end(judge):
    result = judge(ended_with("node-1:1008:1050 [0] transport/net_ib.cc:77 NCCL WARN NET/IB : timeout"))
    assert result.rc == 1 and "its end (Avg bus bandwidth) is missing; NCCL's last warning: node-1: NET/IB : timeout" in result.out


def test_warning_from_a_file_of_its_own(judge, tmp_path):
    log = tmp_path / "nccl.log"
    log.write_text("node-0:1:2 [0] init.cc:1 NCCL WARN other\nnode-1:1:2 [0] init.cc:1 NCCL WARN Cuda failure 'out of memory'\n")
    text = ended_with("node-1: Test NCCL failure common.cu:44 'unhandled cuda error / '", "node-0: more")
    assert "before it NCCL warned on node-1: Cuda failure 'out of memory' (init.cc:1)\n" in judge(text, "--nccl-log", log).out


@pytest.mark.parametrize("change,says", [
    (lambda d: d.pop("end_time"), "the run did not end, after 1 size: its end_time is missing"),
    (lambda d: d.update(results=[]), "no row was measured"),
    (lambda d: d["results"][0].update(out_of_place=None), "no row was measured"),
    (lambda d: d.update(failed={"kind": "signal", "text": "rank 3 was killed by signal 9", "status": 137}), "the job failed: rank 3 was killed"),
    (lambda d: d["average_bus_bandwidth"].update(okay="false"), "the benchmark's own check failed: the average, 1.5 GB/s"),
])
def test_json_of_a_run_that_is_not_complete(judge, change, says):
    document = {"args": ["all_reduce_perf"], "results": [{"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "-1",
                                                         "out_of_place": {"time": 5.0, "alg_bw": 1.5, "bus_bw": 1.5, "nwrong": 0}, "in_place": None}],
                "average_bus_bandwidth": {"bandwidth": 1.5, "okay": "true"}, "end_time": "2026-07-09 10:01:00"}
    assert judge(json.dumps(document)).rc == 0
    change(document)
    if not document["results"] or not document["results"][0]["out_of_place"]:
        del document["average_bus_bandwidth"]
    result = judge(json.dumps(document))
    assert result.rc == 1 and "FAILED: " in result.out and says in result.out, result
    cut = judge(json.dumps(document)[:-30])
    assert cut.rc == 65 and "it is cut off: the run that wrote it did not end" in cut.err and cut.out == ""


def test_lines_without_an_end(judge):
    lines = ['{"kind": "begin", "collective": "all_reduce"}', '{"kind": "row", "size": 8, "out_of_place": {"time": 5, "alg_bw": 1, "bus_bw": 1.5}}',
             '{"kind": "end", "end_time": "x"}']
    assert judge("\n".join(lines) + "\n").rc == 0
    for text, says in [("\n".join(lines[:2]) + "\n", "its line of kind end is missing"), ("\n".join(lines)[:-5], "its last line is cut off")]:
        result = judge(text)
        assert result.rc == 1 and f"FAILED: the run did not end, after 1 size: {says}" in result.out, result


def test_rows_without_a_figure(judge):
    """An average alone, as documents quote it, is one; rows of which none was measured are not."""
    text = Run(rows=LARGE).text()
    assert "average   90.00 GB/s over sizes that it does not show" in judge("\n".join(
        line for line in text.splitlines() if not line.startswith(" "))).ok().out
    result = judge(text.replace("  90.00", "    nan"))
    assert result.rc == 1 and "FAILED: no row was measured\n" in result.out, result


def test_check_of_its_own(judge):
    """nccl-tests with NCCL_TESTS_MIN_BW ends with 1, and says so behind its average."""
    text = Run(rows=LARGE).text()
    assert judge(text.replace("Avg bus bandwidth    : 90 ", "Avg bus bandwidth    : 90 OK")).rc == 0
    result = judge(text.replace("Avg bus bandwidth    : 90 ", "Avg bus bandwidth    : 90 FAILED"))
    assert result.rc == 1 and "FAILED: the benchmark's own check failed: the average, 90 GB/s, is below" in result.out


def test_report_of_a_run_that_died(drarun):
    """The page says that it failed and no per cent, and the status does; a bare picture or table has no place for that."""
    result = drarun("bench", "report", CRASHED / "mid.txt")
    page = result.out
    assert result.rc == 1 and "mid.txt: FAILED: the run failed on a2 after 2 sizes: Test NCCL failure" in result.err, result
    assert '<p class="big failed">FAILED</p>' in page and "of the limit</span>" not in page and "the run failed on a2 after 2 sizes" in page
    for kind in ("svg", "csv"):
        result = drarun("bench", "report", "--format", kind, CRASHED / "mid.txt")
        assert result.rc == 65 and result.out == "" and "the run failed on a2 after 2 sizes" in result.err, result


def test_compare_with_a_run_that_died(drarun, tmp_path):
    """As far as it came; never as if it were the whole."""
    (tmp_path / "good.txt").write_text((CRASHED / "mid.txt").read_text().split("a2: Test")[0] + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 170\n")
    assert drarun("bench", "compare", tmp_path / "good.txt", tmp_path / "good.txt").rc == 0
    for files in ([tmp_path / "good.txt", CRASHED / "mid.txt"], [CRASHED / "mid.txt", tmp_path / "good.txt"]):
        result = drarun("bench", "compare", "--max-slower", "5", *files)
        assert result.rc == 1 and "0 of 4 measurements are more than 5 % slower\nFAILED: " in result.out, result
        assert "mid.txt: the run failed on a2 after 2 sizes: Test NCCL failure" in result.out
        [one] = json.loads(drarun("bench", "compare", "-o", "json", *files).out)
        assert one["failed"] and "mid.txt: the run failed" in one["failures"][0]
    nothing = drarun("bench", "compare", tmp_path / "good.txt", CRASHED / "init.txt")
    assert nothing.rc == 65 and "init.txt: the run failed on t-worker-0" in nothing.err


# ---- what is RDMA ----

def fabric(provider, network="AWS Libfabric", word="provider", before=True):
    """Two hosts by libfabric, whose provider is named before or behind the connections."""
    lines = [f"node-{i}:10:20 [0] NCCL INFO NET/OFI Selected {word} is {provider}, fabric is x (found 2 nics)" for i in range(2)] if provider else []
    linked = list(connections(network=network))
    return Run(rows=LARGE).text() + "\n".join(lines + linked if before else linked + lines) + "\n"


def test_libfabric_over_tcp(judge, verdict):
    text = (FABRIC / "log.txt").read_text()
    result = judge(text, "--require-rdma")
    assert result.rc == 1 and "proven by" not in result.out and "FAILED: RDMA is not used" in result.out, result
    assert "  rdma      NOT USED: TCP, AWS Libfabric with provider tcp;ofi_rxm (NCCL's log)\n" in result.out
    said = verdict(text)
    assert said["rdma"] == "not used" and said["connections"]["rdma"] == 0 and said["connections"]["tcp"] == 8, said
    assert not said["failed"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("provider,network,rdma", [
    ("efa", "AWS Libfabric", "proven"), ("efa", "Libfabric", "proven"), ("verbs;ofi_rxm", "AWS Libfabric", "proven"), ("verbs", "Libfabric", "proven"),
    ("cxi", "AWS Libfabric", "proven"), ("tcp", "Libfabric", "not used"), ("sockets", "AWS Libfabric", "not used"), ("udp;ofi_rxd", "Libfabric", "not used"),
    ("psm3", "AWS Libfabric", "not proven"), ("opx", "Libfabric", "not proven"), ("verbsish", "Libfabric", "not proven"), ("", "Libfabric", "not proven"),
])
def test_libfabric_by_its_provider(judge, verdict, provider, network, rdma, before):
    for word in ("provider", "Provider"):
        text = fabric(provider, network, word, before)
        assert verdict(text)["rdma"] == rdma
        assert judge(text, "--require-rdma").rc == (0 if rdma == "proven" else 1)
    words = f"{network} with provider {provider}" if provider else f"{network}, of which no line names the provider"
    assert rdma == "proven" or words in judge(text).out


@pytest.mark.parametrize("line,rdma", [
    ("NCCL INFO NET/OFI Setting provider_filter to efa", "proven"), ("NCCL INFO NET/OFI Setting provider_filter to tcp", "not used"),
    ("+ mpirun -x FI_PROVIDER=efa -x FI_EFA_USE_DEVICE_RDMA=1 ./all_reduce_perf", "proven"), ("export FI_PROVIDER=\"verbs;ofi_rxm\"", "proven"),
    ("mpirun -x FI_PROVIDER=tcp ./x", "not used"), ("mpirun -x FI_PROVIDER=efa,tcp ./x", "not proven"), ("mpirun -x FI_PROVIDER=^tcp ./x", "not proven"),
    ("mpirun -x FI_PROVIDER=$P ./x", "not proven"), ("mpirun -x FI_PROVIDER= ./x", "not proven"), ("mpirun -x FI_PROVIDER ./x", "not proven")])
def test_libfabric_by_the_only_provider_that_may_be(judge, verdict, line, rdma):
    """No line says what was chosen, as with NCCL_DEBUG=INFO for INIT alone."""
    text = line + "\n" + fabric("", "Libfabric")
    assert verdict(text)["rdma"] == rdma
    assert judge(text, "--require-rdma").rc == (0 if rdma == "proven" else 1)
    both = verdict(text + "node-0:1:2 [0] NCCL INFO NET/OFI Selected provider is tcp, fabric is x (found 1 nics)\n")
    assert both["rdma"] == ("not proven" if rdma == "proven" else "not used")


def test_hosts_with_different_providers(judge):
    text = fabric("efa") + "node-1:10:20 [0] NCCL INFO NET/OFI Selected provider is tcp;ofi_rxm, fabric is y (found 1 nics)\n"
    result = judge(text, "--require-rdma")
    assert result.rc == 1 and "RDMA is not proven: 8 connections go over AWS Libfabric with provider tcp;ofi_rxm\n" in result.out, result


@pytest.mark.parametrize("network,rdma", [
    ("IB", "proven"), ("IBext", "proven"), ("IBext_v8", "proven"), ("gIB", "proven"), ("Socket", "not used"), ("FasTrak", "not proven"),
    ("GPUDirectTCPX_v7", "not proven"), ("FastSocket", "not proven"), ("IBsomething", "not proven"), ("netdedup", "not proven"), ("PSM2", "not proven")])
def test_network_by_its_name(judge, verdict, network, rdma):
    text = Run(rows=LARGE).text() + "\n".join(connections(network=network)) + "\n"
    assert verdict(text)["rdma"] == rdma
    result = judge(text, "--require-rdma")
    assert result.rc == (0 if rdma == "proven" else 1), result
    assert rdma != "not proven" or f"RDMA is not proven: 8 connections go over {network}\n" in result.out
    log = judge("\n".join(connections(network=network)) + "\n", "--require-rdma")  # the log alone
    assert log.rc == result.rc and (rdma != "not proven" or f"RDMA is not proven: 8 of 8 connections go over {network}\n" in log.out), log


UCX = "[1716920651.160128] [node-0:259:0]      ucp_worker.c:1783 UCX  INFO    "


@pytest.mark.parametrize("line,rdma", [
    (UCX + "ucp_context_0 inter-node cfg#2 rma_am(rc_mlx5/mlx5_0:1) am(rc_mlx5/mlx5_0:1)", "proven"),
    (UCX + "ep_cfg[4]: tag(dc_mlx5/mlx5_0:1)", "proven"), (UCX + "ep_cfg[4]: tag(tcp/ib0 tcp/docker0)", "not used"),
    (UCX + "ucp_context_0 inter-node cfg#2 rma_am(rc_mlx5/mlx5_0:1) am(tcp/eth0)", "not proven"),
    (UCX + "ucp_context_0 intra-node cfg#1 tag(sysv/memory rc_mlx5/mlx5_0:1)", "not proven"),
    ("node-0:1:2 [0] NCCL INFO NCCL_UCX_TLS set by environment to rc,cuda_copy", "proven"), ("mpirun -x UCX_TLS=dc_x,cuda ./all_reduce_perf", "proven"),
    ("mpirun -x UCX_TLS=tcp,cuda_copy ./x", "not used"), ("mpirun -x UCX_TLS=rc,tcp ./x", "not proven"), ("mpirun -x UCX_TLS=^tcp ./x", "not proven"),
    ("mpirun -x UCX_TLS=all ./x", "not proven"), ("", "not proven")])
def test_ucx_by_its_transports(judge, verdict, line, rdma):
    text = line + "\n" + Run(rows=LARGE).text() + line + "\n" + "\n".join(connections(network="UCX")) + "\n"
    assert verdict(text)["rdma"] == rdma
    assert judge(text, "--require-rdma").rc == (0 if rdma == "proven" else 1)


def test_counters_prove_what_a_name_does_not(judge):
    text = Run(rows=LARGE).text() + "# Traffic of the hosts  : rdma=68719476736 net=1048576 bytes\n" + "\n".join(connections(network="Libfabric")) + "\n"
    assert "  rdma      proven: the hosts' devices counted" in judge(text, "--require-rdma").ok().out


def test_log_alone_of_libfabric_over_tcp(judge):
    log = "\n".join(line for line in (FABRIC / "log.txt").read_text().splitlines() if "NCCL INFO" in line) + "\n"
    result = judge(log, "--require-rdma")
    assert result.rc == 1 and "verdict   TCP: none of 4 connections uses RDMA\n" in result.out, result
    assert "hint      libfabric chose the provider tcp;ofi_rxm" in result.out and "AWS Libfabric/0: 4 ends, TCP\n" in result.out
    unsaid = judge("\n".join(line for line in log.splitlines() if "Selected" not in line), "-o", "json", "--require-rdma")
    [one] = json.loads(unsaid.out)
    assert unsaid.rc == 1 and one["verdict"] == "not proven" and one["connections"]["unproven"] == 4 and one["connections"]["rdma"] == 0


def test_log_alone_with_many_networks(judge):
    """What finds no place in the table counts as nobody knows what."""
    log = "".join(f"a:1:2 [0] NCCL INFO Channel {i:02}/0 : 0[0] -> {i + 1}[0] [send] via NET/net{i}/0\n" for i in range(40))
    result = judge(log, "--require-rdma")
    assert result.rc == 1 and "RDMA is not proven: 40 of 40 connections go over net0\n" in result.out, result
    table = judge(Run(rows=LARGE).text() + log.replace("-> ", "-> 10"), "--require-rdma")
    assert table.rc == 1 and "RDMA is not proven: 40 connections go over net0\n" in table.out, table


# ---- GPUs of one host ----

@pytest.mark.parametrize("name,words,within", [
    ("shm", "shared memory", {"p2p": 0, "shm": 8, "net": 0}), ("net", "the network", {"p2p": 0, "shm": 0, "net": 32})])
def test_host_whose_gpus_do_not_use_nvlink(judge, verdict, name, words, within):
    text = (ONE_HOST / f"{name}.txt").read_text()
    said = judge(text).ok().out
    assert f" go through {words}, not P2P: no line says why: NCCL_P2P_DISABLE or NCCL_P2P_LEVEL is set, ACS or the IOMMU is in the way, " \
           "or a container does not see the other GPU" in said, said
    assert "as h200-8 has it; this is assumed; the GPUs do not use it\n" in said
    assert f"; the GPUs do not use that link: they are connected by {words}\n" in said
    document = verdict(text)
    assert document["within"] == within and document["limit"]["unused"] is True and document["rdma"] == "one host", document


@pytest.mark.parametrize("busbw,percent", [(0.01, "0.0"), (2.0, "0.4"), (45.0, "10.0")])
def test_share_of_a_link_that_is_not_used(judge, busbw, percent):
    """However small: that the GPUs do not use the link explains it."""
    log = [line for line in (ONE_HOST / "shm.txt").read_text().splitlines() if "NCCL INFO" in line]
    text = "\n".join([*log, *Run(hosts=1, rows=[Row(8 << 30, busbw=busbw)]).lines()]) + "\n"
    said = judge(text).ok().out
    assert f"  verdict   {percent} % of the limit, and less than others saw; the GPUs do not use that link: " \
           "they are connected by shared memory\n" in said, said


@pytest.mark.parametrize("line,why", [
    ("NCCL_P2P_DISABLE set by environment to 1.", "NCCL_P2P_DISABLE is 1: unset it"), ("NCCL_P2P_DISABLE set by environment to 0.", "no line says why"),
    ("NCCL_P2P_LEVEL set by environment to LOC", "NCCL_P2P_LEVEL allows no P2P: unset it"), ("NCCL_P2P_LEVEL set by environment to NVL", "no line says why"),
    ("P2P is disabled between connected GPUs 0 and 1. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.", "the driver refuses P2P"),
    ("Could not enable P2P between dev 0(=41000) and dev 1(=81000)", "the driver refuses P2P"),
])
def test_why_gpus_do_not_use_nvlink(judge, line, why):
    text = (ONE_HOST / "shm.txt").read_text() + f"h1:10:20 [0] NCCL INFO {line}\n"
    assert f"8 of 8 connections between GPUs of a host go through shared memory, not P2P: {why}" in judge(text).ok().out
    log = "\n".join(each for each in text.splitlines() if "NCCL INFO" in each) + "\n"
    assert f"GPUs of a host do not use P2P: {why}" in judge(log).ok().out


def test_network_within_a_host_since_shared_memory_is_off(judge):
    text = (ONE_HOST / "net.txt").read_text() + "h1:10:20 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n" \
                                                "h1:10:20 [0] NCCL INFO NCCL_SHM_DISABLE set by environment to 1.\n"
    assert "NCCL_P2P_DISABLE is 1: unset it; NCCL_SHM_DISABLE is 1, too" in judge(text).ok().out


def test_log_alone_of_one_host_by_the_network(judge):
    log = "\n".join(line for line in (ONE_HOST / "net.txt").read_text().splitlines() if "NCCL INFO" in line) + "\n"
    result = judge(log, "--require-rdma").ok()
    assert "within    0 by P2P, 0 by shared memory, 16 by the network\n" in result.out
    assert "verdict   one host, whose GPUs are connected by the network\n" in result.out and "hint      GPUs of a host do not use P2P" in result.out


def test_network_within_one_of_two_hosts(verdict):
    """Ranks of the same host are told from those of two, so that nothing within one proves RDMA between them."""
    text = Run(rows=LARGE).text() + "node-0:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA\n"
    said = verdict(text)
    assert said["within"]["net"] == 1 and said["rdma"] == "not proven" and "connections" not in said
    both = verdict(text + "node-0:1:2 [7] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA\n")
    assert both["connections"]["rdma"] == 1 and both["rdma"] == "proven"
    assert any("1 of 1 connections between GPUs of a host go through the network" in note for note in both["notes"])


def test_some_pairs_without_p2p(judge):
    """A link that some pairs use is what this run is held against; where GPUs have none, shared memory is no fault."""
    lines = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\nh:1:2 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[2] via SHM/direct/direct\n"
    said = judge(Run(hosts=1, rows=LARGE).text() + lines).ok().out
    assert "  gpus      connections within a host: 1 by P2P, 1 by shared memory (NCCL's log)\n" in said
    assert "1 of 2 connections between GPUs of a host go through shared memory" in said and "do not use" not in said
    plain = judge(Run(hosts=1, rows=LARGE, model="NVIDIA A10G").text() + lines).ok().out
    assert "1 by shared memory (NCCL's log)" in plain and "  note " not in plain
    good = judge(Run(hosts=1, rows=LARGE).text() + lines.splitlines()[0] + "\n").ok().out
    assert "  note " not in good and "do not use" not in good


# ---- as outputs are kept ----

def docker(text, stream="stdout"):
    return "".join(json.dumps({"log": line, "stream": stream, "time": "2026-07-22T10:00:00.123456789Z"}) + "\n" for line in text.splitlines(keepends=True))


def docker_in_pieces(text):
    """Lines of more than 16 KiB are cut, and the other stream's stand between."""
    for line in text.splitlines(keepends=True):
        half = len(line) // 2
        yield docker(line[:half]) + docker("something else\n", "stderr") + docker(line[half:])


def colours(text):
    return "".join(f"\033[36m(Worker pid=7)\033[0m \033[1;32m{line}\033[0m\n" for line in text.splitlines())


DRESSES = {
    "docker": docker, "docker-pieces": lambda text: "".join(docker_in_pieces(text)), "docker-cut": lambda text: docker(text) + '{"log":"# Avg bus ban',
    "powershell": lambda text: "\ufeff".encode("utf-16-le") + text.replace("\n", "\r\n").encode("utf-16-le"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"), "utf-16-unmarked": lambda text: text.encode("utf-16-le"),
    "utf-8-mark": lambda text: b"\xef\xbb\xbf" + text.encode(), "colours": colours, "colours-pasted": lambda text: colours(text).replace("\033", ""),
    "title": lambda text: "\033]0;user@host\007" + text, "kubelet": lambda text: "".join(f"2026-07-22T10:00:00.123Z stdout F {line}\n" for line in text.splitlines()),
    "docker-of-colours": lambda text: docker(colours(text)),
}


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES.keys())
def test_as_it_is_kept(verdict, dress):
    """The verdict is that of the text: of a run that is complete, of one that died, and of NCCL's log."""
    run = Run(rows=[Row(1 << i, time=1.5 * i, algbw=.5 * i, busbw=.75 * i) for i in range(10, 20)])
    text = run.text() + "\n".join(connections(count=3)) + "\n"
    plain, dressed = verdict(text), verdict(dress(text))
    assert not dressed["failed"] and dressed["rdma"] == "proven" and not dressed["notes"], dressed
    assert dressed["result"]["results"] == plain["result"]["results"] and dressed["best"] == plain["best"] and dressed["ranks"] == 16
    died = verdict(dress((CRASHED / "init.txt").read_text()))
    assert died["result"]["failed"]["host"] == "t-worker-0" and died["result"]["failed"]["cause"].startswith("t-worker-0: Attribute arch"), died


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES.keys())
def test_log_as_it_is_kept(verdict, dress):
    log = verdict(dress("\n".join(connections()) + "\n"))
    assert log["verdict"] == "gpudirect" and log["connections"]["rdma"] == 8, log


@pytest.mark.parametrize("dress", [docker, lambda text: text.encode("utf-16")], ids=["docker", "powershell"])
def test_json_as_it_is_kept(verdict, dress):
    document = {"args": ["all_reduce_perf"], "results": [{"size": 8, "out_of_place": {"time": 5.0, "alg_bw": 1.5, "bus_bw": 1.5}, "in_place": None}],
                "end_time": "x"}
    assert verdict(dress(json.dumps(document, indent=1) + "\n"))["best"]["busbw"] == 1.5


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES.keys())
def test_file_of_nccl_as_it_is_kept(drarun, tmp_path, dress):
    """The second file of a verdict, and both of a comparison."""
    log, table = tmp_path / "nccl.log", tmp_path / "out.txt"
    for file, text in ((log, "\n".join(connections()) + "\n"), (table, Run(rows=LARGE).text())):
        dressed = dress(text)
        file.write_bytes(dressed if isinstance(dressed, bytes) else dressed.encode())
    said = drarun("bench", "judge", "--nccl-log", log, "--require-rdma", table).ok().out
    assert "proven by NCCL's log: 8 connections over IB, 8 with GPUDirect" in said
    assert "0 of 2 measurements are more than 5 % slower\n" in drarun("bench", "compare", table, table).ok().out
