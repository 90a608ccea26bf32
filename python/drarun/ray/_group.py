# SPDX-License-Identifier: Apache-2.0
"""What the members of a collective group say of themselves, and whether they fit."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._errors import Finding, PreflightError
from ._devices import Gpu


@dataclass(frozen=True)
class Report:
    """One actor, or one bundle of a placement group."""

    name: str
    """``actor 3 (Actor(Trainer, 3fa20c11))``, ``bundle 0``"""
    host: str
    address: str
    """Of its Ray node."""
    node: str
    """That node's id."""
    pid: int
    drarun: str
    """The version."""
    derived: bool
    """Whether its environment is drarun's: by the hook, setup() or ``drarun env``."""
    profile: str
    hcas: int
    """RDMA NICs of its pod or machine."""
    rails: tuple[int, ...]
    """That those are on."""
    gpus: tuple[Gpu, ...]
    """That Ray gave it."""
    nccl: str | None
    """The version, ``2.28.9``; None: it has no NCCL."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """NCCL_* and GLOO_* of its environment."""


class Rule(NamedTuple):
    what: str
    value: Callable[[Report], Any]
    cure: str


RULES = (
    Rule("drarun", lambda report: report.drarun, "install one version on all nodes"),
    Rule("environment by drarun", lambda report: "yes" if report.derived else "no",
         "give ray.init() drarun.ray.runtime_env(), and let all of the actors be of that job"),
)
NCCL_RULES = (
    Rule("machine type", lambda report: report.profile or "none",
         "nodes of different fabrics cannot share one RDMA network: choose nodes of one kind"),
    Rule("HCAs", lambda report: report.hcas,
         "NCCL pairs the NICs of two nodes by their number: give every pod the same claim, on nodes of one kind"),
    Rule("rails", lambda report: _numbers(report.rails),
         "a NIC reaches those of its own rail: give every pod NICs of the same rails"),
    Rule("NCCL", lambda report: report.nccl or "none", "use one image, or install one version of NCCL on all nodes"),
)
OF_THE_NODE = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE", "NCCL_TOPO_FILE",
               "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_HOSTID", "NCCL_CONF_FILE",
               "NCCL_IGNORE_CPU_AFFINITY", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "GLOO_SOCKET_IFNAME")
"""Names, files and logs: they may differ."""
SHOWN = 8


def _numbers(values: Sequence[int]) -> str:
    return ",".join(map(str, values)) or "none"


def _hca_names(report: Report) -> str:
    names = report.variables.get("NCCL_IB_HCA")
    return "not set" if names is None else f"{names.lstrip('^=').count(',') + 1} of them"


def _rules(reports: Sequence[Report], backend: str) -> list[Rule]:
    prefix = "NCCL_" if backend == "nccl" else "GLOO_"
    names = sorted({name for report in reports for name in report.variables if name.startswith(prefix)})
    made = [*RULES, *(NCCL_RULES if backend == "nccl" else ())]
    if "NCCL_IB_HCA" in names:
        made.append(Rule("NCCL_IB_HCA", _hca_names, "leave it to drarun, or name as many on every node"))
    for name in names:
        if name not in OF_THE_NODE:
            made.append(Rule(name, lambda report, name=name: report.variables.get(name, "not set"),
                             "leave it to drarun on every node, or set it in the runtime_env for all of them"))
    return made


@dataclass(frozen=True)
class Group:
    """Members that agree."""

    reports: tuple[Report, ...]
    """In the order in which they were given."""

    @property
    def order(self) -> tuple[int, ...]:
        """The members' numbers, node by node in the order in which the nodes come first, on a node in the order of their
        GPUs: with ranks in that order, neighbours in a ring share a node wherever they can, and rails meet."""
        nodes = list(dict.fromkeys(report.node for report in self.reports))

        def place(number: int) -> tuple[int, str, int]:
            report = self.reports[number]
            first = report.gpus[0].pci or report.gpus[0].id if report.gpus else "~"
            return nodes.index(report.node), first, number

        return tuple(sorted(range(len(self.reports)), key=place))

    @property
    def summary(self) -> str:
        """``4 on 2 nodes: 8 HCAs each, NCCL 2.28.9, gke-a4``"""
        first = self.reports[0]
        nodes = len({report.node for report in self.reports})
        return (f"{len(self.reports)} on {nodes} node{'s' if nodes > 1 else ''}: {first.hcas} HCAs each, "
                f"{'NCCL ' + first.nccl if first.nccl else 'no NCCL'}, {first.profile or 'no profile'}")


def agreed(reports: Sequence[Report], backend: str) -> Group:
    """Raises PreflightError with one finding for each thing in which they differ."""
    findings = tuple(finding for rule in _rules(reports, backend) if (finding := _finding(rule, reports)))
    if findings:
        more = f" (and {len(findings) - 1} more: .findings)" if len(findings) > 1 else ""
        raise PreflightError(f"they do not fit into one {backend} group: {findings[0].text}{more}",
                             path=findings[0].path, findings=findings)
    return Group(tuple(reports))


def _finding(rule: Rule, reports: Sequence[Report]) -> Finding | None:
    """The most frequent value first, so that what follows names who is different."""
    groups: dict[Any, list[int]] = {}
    for number, report in enumerate(reports):
        groups.setdefault(rule.value(report), []).append(number)
    if len(groups) < 2:
        return None
    by_size = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))
    said = "; ".join(f"{value} on {_who(numbers, reports)}" for value, numbers in by_size)
    return Finding(f"{rule.what}: {said}: {rule.cure}", rule.what, None, None)


def _who(numbers: Sequence[int], reports: Sequence[Report]) -> str:
    shown = ", ".join(f"{reports[number].name} on {reports[number].host} ({reports[number].address})"
                      for number in numbers[:SHOWN])
    return shown + (f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")
