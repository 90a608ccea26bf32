# SPDX-License-Identifier: Apache-2.0
"""The environment of this pod or machine."""
from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass

from ._library import Files, Options, PathName, check, ffi, files, lib, new_error, string, taken

DERIVED = "DRARUN_DERIVED"
"""What drarun has set, NAME=VALUE a line, so that the next drarun does not take it for the user's."""


FORMATS = ("sh", "json", "docker", "nccl.conf")


@dataclass(frozen=True)
class Variable:
    """A variable that follows from the devices, and why."""

    name: str
    value: str
    rule: str
    """Its id, or the profile's name; ``user``: it was set already."""
    fact: str
    """What was seen that made the rule hold."""
    reason: str
    """Why the value is right."""
    source: str
    """Where that is written, or empty."""
    prepend: bool
    """The value goes before what a list as LD_LIBRARY_PATH has already, with a ':'."""


class Environment(Mapping[str, str]):
    """Variables and their values, as ``drarun env`` prints them; what it holds does not change, and a pickle has all of
    it."""

    def __init__(self, pointer: object) -> None:
        self._env: object | None = pointer
        self._texts: dict[tuple[str, bool], str] = {}
        self.variables: tuple[Variable, ...] = tuple(_variables(pointer))
        self._values = {each.name: each.value for each in self.variables}
        self.profile: str = string(lib.drarun_env_profile(pointer)) or ""
        """Of the machine type that was found: ``gke-a4``."""
        self.profile_fact: str = string(lib.drarun_env_profile_fact(pointer)) or ""
        """What told it."""
        self.summary: str = string(lib.drarun_env_summary(pointer)) or ""
        """``8 GPUs, 8 NICs: 8 PIX, 400 GB/s of 400``."""
        self.warnings: tuple[str, ...] = tuple(_warnings(pointer))
        """Each ``name: words``."""

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<drarun.Environment {self.profile or 'no profile'}: {self.summary}; {len(self)} variables>"

    def text(self, format: str = "sh", *, explain: bool = False) -> str:
        """As ``drarun env`` prints it. format: "sh" for eval, "json" the whole plan, "docker" for --env-file,
        "nccl.conf"; explain: each variable with rule, fact, reason and source. Raises ValueError for another."""
        if self._env is None:  # of another process
            text = self._texts.get((format, bool(explain)))
        else:
            text = taken(lib.drarun_env_text(self._env, os.fsencode(format), bool(explain)))
        if text is None:
            raise ValueError(f"{format!r} is no format: {', '.join(FORMATS)}")
        return text

    def __getstate__(self) -> dict[str, object]:
        texts = {(format, explain): self.text(format, explain=explain) for format in FORMATS for explain in (False, True)}
        return {**self.__dict__, "_env": None, "_texts": texts}

    def apply(self, environ: MutableMapping[str, str] = os.environ, *, but: Collection[str] = (),
              mark: bool = False) -> None:
        """Sets the variables. Libraries read them when they are first used: apply it before.

        but: names that are left alone.
        mark: says so in DRARUN_DERIVED, as ``drarun env`` does, for an env() or ``drarun env`` in this process or below
        it: these are then not the user's."""
        chosen = [each for each in self.variables if each.name not in but]
        if mark:
            environ[DERIVED] = "".join(f"{each.name}={each.value}\n" for each in chosen if not each.prepend
                                       and each.rule != "user" and not {"\n", "\r"} & set(each.value))
        for each in chosen:
            before = environ.get(each.name)
            if each.prepend and before:
                if before != each.value and not before.startswith(each.value + ":"):
                    environ[each.name] = f"{each.value}:{before}"
            else:
                environ[each.name] = each.value


def env(*, claims: Files = None, slices: Files = None, nodes: Files = None, pod: str | None = None,
        probe: PathName | None = None, root: PathName | None = None, network: str | None = None,
        nccl_version: str | None = None, profile: str | None = None, profiles: PathName | None = None,
        pod_interface: str | None = None, run_script: bool = True, hca_list: str | None = None,
        mpi_transport: str | None = None) -> Environment:
    """The NCCL, UCX and MPI environment for the devices that this pod or machine really holds, or that a pod whose
    claims are given would hold. What os.environ says for them already is the user's, and stays.

    claims, slices, nodes: files as ``kubectl get -o json`` or yaml prints them: the pod's ResourceClaims,
    ResourceSlices (which claims need), Nodes. None: look at this machine.
    pod: which of the Pods among the claims; None: the only one.
    probe: a file with what the pod shows, as JSON; None: look.
    root: a captured tree in place of / to look at.
    network: "rdma", refuse without it; "any", else sockets; None: rdma.
    nccl_version: of the program, "2.28.9"; None: the newest known.
    profile: fabric profile; None: detected.
    profiles: a file of the site's profiles, tried first.
    pod_interface: of the pod's network; None: that of its default route, else eth0.
    run_script: runs the vendor's script that some profiles have, with /bin/sh, up to 5 s, in a fork of this process,
    as ``drarun env`` does. False: what it would set is not known, and a warning says so.
    hca_list: whether NCCL_IB_HCA is set: "auto", as the profile says, "always", "never"; None: auto.
    mpi_transport: "auto", "tcp" or "rdma"; None: auto.

    Raises SpecError where there is no right environment (RDMA was asked for and is not there). A few milliseconds."""
    options = Options("env", claims=files(claims), slices=files(slices), nodes=files(nodes), pod=pod, probe=probe,
                      root=root, network=network, nccl_version=nccl_version, profile=profile, profiles=profiles,
                      pod_interface=pod_interface, run_script=bool(run_script), hca_list=hca_list,
                      mpi_transport=mpi_transport)
    made, err = ffi.new("struct drarun_env **"), new_error()
    check(lib.drarun_env_derive(options.pointer, made, err), err)
    return Environment(ffi.gc(made[0], lib.drarun_env_free))


def _text(text: object) -> str:
    return string(text) or ""


def _variables(pointer: object) -> Iterator[Variable]:
    for index in range(lib.drarun_env_count(pointer)):
        each = lib.drarun_env_at(pointer, index)
        yield Variable(_text(each.name), _text(each.value), _text(each.rule), _text(each.fact), _text(each.reason),
                       _text(each.source), bool(each.prepend))


def _warnings(pointer: object) -> Iterator[str]:
    index = 0
    while (text := string(lib.drarun_env_warning(pointer, index))) is not None:
        yield text
        index += 1
