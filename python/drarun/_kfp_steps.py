# SPDX-License-Identifier: Apache-2.0
"""What the components of drarun.kfp do, in their pods. Needs no kfp: artifacts are what has a path."""
from __future__ import annotations

import json
import os
import re
import time
from html import escape
from pathlib import Path
from typing import Any

from . import _bench, step
from ._cluster import Cluster
from ._errors import InterruptedError, SpecError, UsageError
from ._job import Job
from ._library import version

TAIL = 40
"""Lines of output in a summary."""
AGAIN_S = 60.0


def run_job(*, job: str, spec: dict[str, Any], document: Any, name: str, namespace: str, image: str, existing: str,
            timeout: float, fail: bool, status: Any, metrics: Any, report: Any, summary: Any, output: Any) -> int:
    """The step drarun_job; the last five are artifacts that it writes, also when it fails then."""
    read = _job(job, spec, document)
    print(f"drarun {version}: {read.summary}", flush=True)
    cluster = Cluster(namespace=namespace or None, log=lambda level, line: print(f"drarun: {line}", flush=True))
    try:
        outcome = step.run(read, cluster=cluster, name=name or None, image=image or os.environ.get("DRARUN_IMAGE"),
                           existing=existing, progress=_Progress(), timeout=timeout or None)
    except KeyboardInterrupt:
        raise InterruptedError(f"the step was cancelled, and with it job {name or read.name}") from None
    verdicts = outcome.verdicts()
    _write(status, json.dumps(outcome.status, indent=2) + "\n")
    _write(output, outcome.output)
    for key, value in _figures(outcome, verdicts).items():
        metrics.log_metric(key, value)
    _write(report, _page(outcome, bool(verdicts)))
    _write(summary, _summary(outcome, verdicts))
    if fail:
        outcome.check()
    return outcome.exit_status


def check_results(*, results: Any, min_busbw: float, min_best_busbw: float, min_percent: float, require_rdma: bool,
                  verdict: Any) -> float:
    """The step drarun_check."""
    verdicts = _bench.bench_verdicts(_read(results), min_busbw=min_busbw, min_best_busbw=min_best_busbw,
                                     min_percent=min_percent, require_rdma=require_rdma)
    _write(verdict, json.dumps(verdicts, indent=2) + "\n")
    failures = [f"{each['collective']}: {text}" for each in verdicts for text in each["failures"]]
    for each in verdicts:
        print(f"{each['collective']} over {each['ranks']} ranks on {each['hosts']} hosts: "
              f"{each.get('average', 0):.4g} GB/s on average, data {each['data']}", flush=True)
    if failures:
        raise step.JobError("the benchmark does not reach what is demanded: " + "; ".join(failures), 1)
    return float(verdicts[-1].get("average", 0.0))


def _write(artifact: Any, text: str) -> None:
    """Whatever the image's locale is: the page says that it is UTF-8."""
    Path(artifact.path).write_text(text, encoding="utf-8")


def _read(artifact: Any) -> str:
    return Path(artifact.path).read_text(encoding="utf-8", errors="replace")


class _Progress:
    """What the job waits for, in the step's log: when it is something else, and every AGAIN_S."""

    def __init__(self) -> None:
        self._said, self._at = "", 0.0

    def __call__(self, text: str) -> None:
        awaited, now = re.sub(r"\d+", "", text), time.monotonic()  # seconds and counts change all the time
        if awaited != self._said or now - self._at >= AGAIN_S:
            print(f"drarun: {text}", flush=True)
            self._said, self._at = awaited, now


# ---- the job, of one of three inputs ----

def _job(job: str, spec: dict[str, Any], document: Any) -> Job:
    given = [name for name, value in (("job", job), ("spec", spec), ("document", document)) if value]
    if len(given) != 1:
        raise UsageError(f"job (a text), spec (a dict), document (an artifact): expected one of them, got "
                         f"{' and '.join(given) or 'none'}")
    if spec:
        return Job(_whole(spec))
    if job:
        return Job(job if "\n" in job else job + "\n")  # never a file's name: the step has no files of the author's
    return Job(_read(document) + "\n")  # with which it is no file's name


def _whole(value: Any) -> Any:
    """Pipelines keep numbers as doubles: 2 comes as 2.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


# ---- what is shown ----

def _figures(outcome: step.Outcome, verdicts: list[dict[str, Any]]) -> dict[str, float]:
    """Of several runs of benchmarks the last one's."""
    status = outcome.status
    figures = {"exit_status": outcome.exit_status, "ranks": status.get("ranks"), "restarts": status.get("restarts"),
               "workers": (status.get("workers") or {}).get("count")}
    figures |= {f"seconds_{phase}": ms / 1000 for phase, ms in (status.get("timings") or {}).items()}
    if verdicts and not verdicts[-1]["failed"]:  # else they are of a part
        last = verdicts[-1]
        figures |= {"busbw": last.get("average"), "busbw_best": (last.get("best") or {}).get("busbw"),
                    "busbw_limit": last["limit"].get("busbw"), "percent_of_limit": last.get("percent")}
    return {key: float(value) for key, value in figures.items() if value is not None}


def _title(outcome: step.Outcome) -> str:
    end = "succeeded" if outcome.exit_status == 0 else f"ended with status {outcome.exit_status}"
    return f"Job {outcome.name} {end}"


def _rows(outcome: step.Outcome) -> list[tuple[str, str, str]]:
    """Workers that have the same line are in one: 0-3,7."""
    lines = (outcome.status.get("workers") or {}).get("lines") or []
    return [(str(line.get("workers", line.get("index", "-"))), str(line.get("node") or "-"),
             str(line.get("devices") or "-")) for line in lines]


def _page(outcome: step.Outcome, has_results: bool) -> str:
    if has_results:
        return _bench.bench_report(outcome.output, title=_title(outcome))
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in _rows(outcome))
    cause = f"<p>{escape(outcome.cause)}</p>" if outcome.cause else ""
    return (f"<!DOCTYPE html><html><head><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">"
            f"<title>{escape(_title(outcome))}</title></head><body><h1>{escape(_title(outcome))}</h1>{cause}"
            f"<table><tr><th>worker</th><th>node</th><th>devices</th></tr>{rows}</table>"
            f"<pre>{escape(_tail(outcome))}</pre></body></html>\n")


def _tail(outcome: step.Outcome) -> str:
    return "\n".join(outcome.output.splitlines()[-TAIL:])


def _summary(outcome: step.Outcome, verdicts: list[dict[str, Any]]) -> str:
    """Markdown."""
    parts = [f"# {_title(outcome)}", ""]
    parts += [_cell(outcome.cause), ""] if outcome.cause else []
    for each in verdicts:
        if each["failed"]:
            parts += [f"**{each['collective']}** FAILED: {_cell('; '.join(each['failures']))}", ""]
            continue
        limit = f", {each['percent']:.3g} % of the limit" if "percent" in each else ""
        parts += [f"**{each['collective']}** over {each['ranks']} ranks on {each['hosts']} hosts: "
                  f"{each.get('average', 0):.4g} GB/s bus bandwidth on average{limit}; data {each['data']}", ""]
    parts += ["| worker | node | devices |", "|---|---|---|"]
    parts += ["| " + " | ".join(map(_cell, row)) + " |" for row in _rows(outcome)]
    tail = _tail(outcome).replace("```", "'''")
    return "\n".join([*parts, "", "```", tail, "```", ""])


def _cell(text: str) -> str:
    for each in "\\|*_`<>[]":
        text = text.replace(each, "\\" + each)
    return text.replace("\n", " ")
