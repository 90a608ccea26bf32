# SPDX-License-Identifier: Apache-2.0
"""nccl-tests' text as its versions print it (src/common.cu, src/util.cu from 2.0.0 to 2.19.6), from figures of our own."""
from dataclasses import dataclass, field

HAS_OP = {"all_reduce", "reduce_scatter", "reduce"}
HAS_ROOT = {"broadcast", "reduce", "gather", "scatter"}


@dataclass
class Row:
    size: int
    time: float = 100.0
    algbw: float = 10.0
    busbw: float = 15.0
    wrong: object = 0
    in_place: tuple = None  # time, algbw, busbw, wrong; like the other half


@dataclass
class Run:
    version: str = "2.19"
    collective: str = "all_reduce"
    rows: list = field(default_factory=lambda: [Row(8 << i, time=50.0 + i, algbw=.5 + i, busbw=.75 + 1.5 * i) for i in range(4)])
    hosts: int = 2
    gpus: int = 8
    model: str = "NVIDIA H200"
    each: bool = False
    ended: bool = True

    def old(self):
        return tuple(int(part) for part in self.version.split(".")) < (2, 13)

    def head(self):
        version = tuple(int(part) for part in self.version.split("."))
        if version >= (2, 17):
            yield f"# nccl-tests version {self.version}.6 nccl-headers=22703 nccl-library=22703"
            yield f"# Collective test starting: {self.collective}_perf"
        yield f"# nThread 1 nGpus 1 minBytes {self.rows[0].size if self.rows else 8} maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 " \
              + ("" if version < (2, 13) else "agg iters: 1 ") + "validation: 1 " + ("" if version < (2, 13) else "graph: 0")
        yield "#"
        yield "# Using devices"
        for rank in range(self.hosts * self.gpus):
            group = "" if version < (2, 16) else " Group  0"
            name = f"#   Rank {rank:2}" if version < (2, 16) else f"#  Rank {rank:2}"
            gpu = rank % self.gpus
            address = f"0000:{0x8f + gpu:02x}:00" if version >= (2, 17) else f"0x{0x8f + gpu:02x}"
            yield f"{name}{group} Pid {1000 + rank:6} on {f'node-{rank // self.gpus}':>10} device {gpu:2} [{address}] {self.model}"
        yield "#"
        if version < (2, 17):
            yield "NCCL version 2.27.3+cuda12.8"

    def columns(self):
        names = ["size", "count", "type"]
        if not self.old() or self.collective in HAS_OP:
            names.append("redop")
        if not self.old() or self.collective in HAS_ROOT:
            names.append("root")
        half = ["time", "algbw", "busbw", "error" if self.old() else "#wrong"]
        half += ["i_min", "i_max", "i_p99", "i_cv%"] if self.each else []
        return names, half

    def heading(self):
        names, half = self.columns()
        yield "#" + " " * 50 + "out-of-place                       in-place          "
        yield "# " + "  ".join(f"{word:>8}" for word in names + half + half)
        yield "# " + "  ".join(f"{word:>8}" for word in ["(B)", "(elements)", ""])

    def half(self, time, algbw, busbw, wrong):
        wrong = wrong if wrong == "N/A" else f"{wrong:5.0e}" if self.old() else f"{wrong:6g}"
        text = f"  {time:7.2f}  {algbw:6.2f}  {busbw:6.2f}  {wrong:>5}"
        return text + ("     1.00     9.00     8.00    10.00" if self.each else "")

    def row(self, row):
        names, _ = self.columns()
        text = f"{row.size:12}  {row.size // 4:12}  {'float':>8}"
        if "redop" in names:
            text += f"  {'sum' if self.collective in HAS_OP else 'none':>6}"
        if "root" in names:
            text += f"  {0 if self.collective in HAS_ROOT else -1:6}"
        first = (row.time, row.algbw, row.busbw, row.wrong)
        return text + self.half(*first) + self.half(*(row.in_place or first))

    def foot(self):
        wrong = sum(bool(row.wrong not in (0, "N/A")) for row in self.rows)
        average = sum(row.busbw for row in self.rows) / max(1, len(self.rows))
        yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
        yield f"# Avg bus bandwidth    : {average:g} "
        yield "#"

    def lines(self):
        return [*self.head(), *self.heading(), *(self.row(row) for row in self.rows), *(self.foot() if self.ended else [])]

    def text(self):
        return "\n".join(self.lines()) + "\n"


def connections(network="IB", gpudirect=True, count=8):
    """What NCCL 2.27 logs of hosts that are connected."""
    yield "node-0:1000:1000 [0] NCCL INFO cudaDriverVersion 12080"
    yield "node-0:1000:1050 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.2<0>"
    yield f"node-0:1000:1050 [0] NCCL INFO Using network {network}"
    yield "node-0:1000:1050 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"
    for i in range(count):
        suffix = "/GDRDMA" if gpudirect and network != "Socket" else ""
        yield f"node-{i % 2}:{1000 + i}:1050 [{i}] NCCL INFO Channel {i:02}/0 : {i}[{i}] -> {i + 8}[{i}] [send] via NET/{network}/{i}{suffix}"
