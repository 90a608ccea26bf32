# SPDX-License-Identifier: Apache-2.0
"""A plan for a notebook: each worker's ranks with the GPU and the NIC that they use and how near those are, and pictures
of the nodes."""
from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

ROWS = 256
"""A browser shows more, but nobody reads it: the rest is said in a line."""

PICTURES = 4
"""Of the first workers: the others' mostly look the same."""

COLORS = {"PIX": "#2e7d32", "PXB": "#558b2f", "PHB": "#b26a00", "NODE": "#b26a00", "SYS": "#b3261e"}
HEAD = ("rank", "worker", "node", "GPU", "PCI", "NUMA", "NIC", "path", "GDR")
PATH = HEAD.index("path")


def plan(document: dict[str, Any], verdict: str | None, pictures: Mapping[int, str] | None = None) -> str:
    """document: of `drarun plan --output json`; verdict: what speaks against the job; pictures: SVG, by the worker's number in
    the job."""
    parts = [f"<p><b>{escape(document['job'])}</b>: {document['workers']} workers</p>"]
    if verdict:
        parts.append(f'<p style="color:#b3261e"><b>{escape(verdict)}</b></p>')
    roles = document.get("roles") or [document]
    if pictures:
        parts += [_picture(place, pictures[worker], worker == min(pictures))
                  for worker, place in enumerate(_places(roles)) if worker in pictures]
    head, rows = _table(roles)
    if rows:
        parts.append(f"<table><thead><tr>{''.join(f'<th>{each}</th>' for each in head)}</tr></thead>"
                     f"<tbody>{''.join(rows[:ROWS])}</tbody></table>")
    if len(rows) > ROWS:
        parts.append(f"<p>and {len(rows) - ROWS} ranks more</p>")
    for role in roles:
        parts += _profile(role.get("role"), role.get("plan") or {})
    return f"<div>{''.join(parts)}</div>"


def _nodes(role: dict[str, Any]) -> dict[int, str | None]:
    placed = (role.get("prediction") or {}).get("workers") or []
    return {each["worker"]: each.get("node") for each in placed}


def _places(roles: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of the job's workers in their order: each, and where it is; a role counts its own from 0."""
    for role in roles:
        nodes, of = _nodes(role), f"role {role['role']}: " if "role" in role else ""
        for worker in range(role["workers"]):
            yield f"{of}worker {worker}" + (f" on {nodes[worker]}" if nodes.get(worker) else "")


def _profile(role: str | None, planned: dict[str, Any]) -> Iterator[str]:
    of = f"role {escape(role)}: " if role else ""
    if planned.get("profile"):
        score = planned.get("jobScore")
        yield f"<p>{of}profile {escape(planned['profile'])}{'' if score is None else f', score {score:.2f}'}</p>"
    if planned.get("env"):
        lines = "\n".join(f"{name}={value}" for name, value in planned["env"].items())
        yield f"<details><summary>{of}{len(planned['env'])} variables</summary><pre>{escape(lines)}</pre></details>"


def _picture(place: str, svg: str, is_first: bool) -> str:
    """As an image: its style does not reach the page, nor the page's the picture."""
    data = base64.b64encode(svg.encode()).decode()
    title = escape(place)
    return (f"<details{' open' if is_first else ''}><summary>{title}</summary>"
            f'<img alt="{title}: its GPUs and NICs" style="max-width:100%" src="data:image/svg+xml;base64,{data}"></details>')


def _table(roles: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], list[str]]:
    """Its head, and its rows; with a column for the role where there are several."""
    named = [role for role in roles if "role" in role]
    rows = [_row([role["role"]] if named else [], cells) for role in roles for cells in _cells(role)]
    return (("role", *HEAD) if named else HEAD), rows


def _cells(role: dict[str, Any]) -> Iterator[list[str]]:
    nodes = _nodes(role)
    for worker in (role.get("plan") or {}).get("workers") or []:
        for rank in worker["ranks"]:
            yield [_text(each) for each in (
                rank["rank"], worker["worker"], nodes.get(worker["worker"]), rank["gpu"], rank["pci"], rank["numa"],
                rank["nics"], rank["path"], ["yes" if each else "no" for each in rank["gdr"] or []])]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "-"
    return "-" if value is None else str(value)


def _row(before: list[str], cells: list[str]) -> str:
    color = COLORS.get(cells[PATH].split(",")[0])
    style = f' style="color:{color};font-weight:bold"' if color else ""
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in before) + "".join(
        f"<td{style if index == PATH else ''}>{escape(cell)}</td>" for index, cell in enumerate(cells)) + "</tr>"
