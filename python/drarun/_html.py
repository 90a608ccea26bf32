# SPDX-License-Identifier: Apache-2.0
"""A plan for a notebook: each worker's ranks with the GPU and the NIC that they use and how near those are."""
from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

ROWS = 256
"""A browser shows more, but nobody reads it: the rest is said in a line."""

COLORS = {"PIX": "#2e7d32", "PXB": "#558b2f", "PHB": "#b26a00", "NODE": "#b26a00", "SYS": "#b3261e"}
HEAD = ("rank", "worker", "node", "GPU", "PCI", "NUMA", "NIC", "path", "GDR")


def plan(document: dict[str, Any], verdict: str | None) -> str:
    """document: of `drarun plan --output json`; verdict: what speaks against the job."""
    parts = [f"<p><b>{escape(document['job'])}</b>: {document['workers']} workers</p>"]
    if verdict:
        parts.append(f'<p style="color:#b3261e"><b>{escape(verdict)}</b></p>')
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


def _cells(document: dict[str, Any]) -> Iterable[list[str]]:
    placed = (document.get("prediction") or {}).get("workers") or []
    nodes = {each["worker"]: each.get("node") for each in placed}
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
