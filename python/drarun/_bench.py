# SPDX-License-Identifier: Apache-2.0
"""What the output of benchmarks is worth."""
from __future__ import annotations

import json
from typing import Any

from ._job import _or_memory
from ._library import Options, check, ffi, lib, new_error, taken


def bench_verdicts(text: str | bytes, *, min_busbw: float = 0, min_best_busbw: float = 0, min_percent: float = 0,
                   require_rdma: bool = False) -> list[dict[str, Any]]:
    """A verdict for each run of nccl-tests or drarun-bench in a text, as ``drarun bench judge --output json`` has them:
    ``average`` and ``best`` bus bandwidth in GB/s, ``limit``, ``percent`` of it, ``data``, ``failed`` and ``failures``.

    text: their output, or that of rank 0 of a job; also as bytes, as subprocess has it.
    min_busbw: GB/s on average over the sizes; 0: none is demanded, as in the next two.
    min_best_busbw: GB/s of the best size. min_percent: of the limit.
    require_rdma: it must be proven, between hosts.

    Raises SpecError for a text without a run, UsageError for a demand below 0."""
    options = Options("bench", min_busbw=float(min_busbw), min_best_busbw=float(min_best_busbw),
                      min_percent=float(min_percent), require_rdma=bool(require_rdma))
    verdicts: list[dict[str, Any]] = json.loads(_read(lib.drarun_bench_verdicts, text, options))
    return verdicts


def bench_report(text: str | bytes, *, title: str | None = None) -> str:
    """A page (HTML) about the runs in a text that loads nothing else, as ``drarun bench report`` makes it.

    text: as for bench_verdicts. title: the heading; None: Collectives. Raises SpecError for a text without a run."""
    return _read(lib.drarun_bench_report, text, Options("bench", title=title))


def _read(function: Any, text: str | bytes, options: Options) -> str:
    data = text if isinstance(text, bytes) else text.encode(errors="replace")
    result, err = ffi.new("char **"), new_error()
    check(function(data, len(data), options.pointer, result, err), err)
    return _or_memory(taken(result[0]))
