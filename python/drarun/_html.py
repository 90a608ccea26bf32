# SPDX-License-Identifier: Apache-2.0
"""A plan for a notebook: each worker's ranks with the GPU and the NIC that they use and how near those are, and pictures
of the nodes."""
from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

ROWS = 256
"""A browser shows more, but nobody reads it: the rest is said in a line."""

PICTURES = 4
"""Of the first workers: the others' mostly look the same."""

COLORS = {"PIX": "#2e7d32", "PXB": "#558b2f", "PHB": "#b26a00", "NODE": "#b26a00", "SYS": "#b3261e"}
HEAD = ("rank", "worker", "node", "GPU", "PCI", "NUMA", "NIC", "path", "GDR")


def plan(document: dict[str, Any], verdict: str | None, pictures: Sequence[str] = ()) -> str:
    """document: of `drarun plan --output json`; verdict: what speaks against the job; pictures: SVG, of the first workers."""
    parts = [f"<p><b>{escape(document['job'])}</b>: {document['workers']} workers</p>"]
    if verdict:
        parts.append(f'<p style="color:#b3261e"><b>{escape(verdict)}</b></p>')
    nodes = _nodes(document)
    parts += [_picture(worker, nodes.get(worker), svg) for worker, svg in enumerate(pictures)]
    rows = [_row(cells) for cells in _cells(document)]
    if rows:
        head = "".join(f"<th>{each}</th>" for each in HEAD)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows[:ROWS])}</tbody></table>")
    if len(rows) > ROWS:
        parts.append(f"<p>and {len(rows) - ROWS} ranks more</p>")
    planned = document.get("plan") or {}
    if planned.get("profile"):
        parts.append(f"<p>profile {escape(planned['profile'])}, score {planned['jobScore']:.2f}</p>")
    if planned.get("env"):
        lines = "\n".join(f"{name}={value}" for name, value in planned["env"].items())
        parts.append(f"<details><summary>{len(planned['env'])} variables</summary>"
                     f"<pre>{escape(lines)}</pre></details>")
    return f"<div>{''.join(parts)}</div>"


def _nodes(document: dict[str, Any]) -> dict[int, str | None]:
    placed = (document.get("prediction") or {}).get("workers") or []
    return {each["worker"]: each.get("node") for each in placed}


def _picture(worker: int, node: str | None, svg: str) -> str:
    """As an image: its style does not reach the page, nor the page's the picture."""
    data = base64.b64encode(svg.encode()).decode()
    title = escape(f"worker {worker} on {node}")
    return (f"<details{' open' if worker == 0 else ''}><summary>{title}</summary>"
            f'<img alt="{title}: its GPUs and NICs" style="max-width:100%" src="data:image/svg+xml;base64,{data}"></details>')


def _cells(document: dict[str, Any]) -> Iterable[list[str]]:
    nodes = _nodes(document)
    for worker in (document.get("plan") or {}).get("workers") or []:
        for rank in worker["ranks"]:
            yield [_text(each) for each in (
                rank["rank"], worker["worker"], nodes.get(worker["worker"]), rank["gpu"], rank["pci"], rank["numa"],
                rank["nics"], rank["path"], ["yes" if each else "no" for each in rank["gdr"] or []])]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "-"
    return "-" if value is None else str(value)


def _row(cells: list[str]) -> str:
    color = COLORS.get(cells[7].split(",")[0])
    style = f' style="color:{color};font-weight:bold"' if color else ""
    return "<tr>" + "".join(f"<td{style if index == 7 else ''}>{escape(cell)}</td>"
                            for index, cell in enumerate(cells)) + "</tr>"
