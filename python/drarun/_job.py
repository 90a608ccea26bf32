# SPDX-License-Identifier: Apache-2.0
"""Job specs."""
from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from ._errors import Error, Finding, SpecError, UsageError
from ._library import Calls, Options, PathName, check, error_of, ffi, lib, new_error, number, string, taken

if TYPE_CHECKING:
    from ._cluster import Cluster, Output, Submitted

JobLike = Union["Job", Mapping[str, Any], str, "os.PathLike[str]"]
"""A Job, or what Job() takes."""

DEPTH = 64


class Job:
    """A job spec (a DraJob document) that was read and found right. The spec does not change; any number of threads may
    use one, and so may the child of a fork."""

    def __init__(self, source: Mapping[str, Any] | PathName, *, profiles: PathName | None = None) -> None:
        """Reads a job spec.

        source: the document as a dict, the path of a file (YAML or JSON), or the text itself: a str with a newline
        in it or a '{' at its begin. In a dict, paths are texts, and what has __index__ (numpy.int64) is a number.
        profiles: a file of the site's fabric profiles, tried before those that drarun knows: for plans and manifests. A
        job on a cluster knows only those that drarun knows, and one that names another is not submitted. A pickled job
        names the file.

        Raises SpecError with path, line and all findings where the document is wrong or cannot be read."""
        self._profiles = profiles
        options = Options("spec", profiles=profiles)
        spec, findings, err = ffi.new("struct drarun_spec **"), ffi.new("struct drarun_findings **"), new_error()
        placed = True
        if isinstance(source, Mapping):
            status, placed = _parse(_from_mapping(source), options, spec, findings, err), False
        elif isinstance(source, str) and ("\n" in source or source.lstrip().startswith("{")):
            status = _parse(_utf8(source, ""), options, spec, findings, err)
        elif isinstance(source, (str, os.PathLike)):
            path = os.fsencode(source)
            if b"\0" in path:
                raise SpecError("the path of a job has a NUL")
            status = lib.drarun_spec_load(path, options.pointer, spec, findings, err)
        else:
            raise TypeError(f"a job is a dict, a path or a text, not {type(source).__name__}")
        if status < 0:
            raise _refused(findings, err, placed)
        self._submitted: Submitted | None = None
        self._spec = ffi.gc(spec[0], lib.drarun_spec_free)
        self.name: str = string(lib.drarun_spec_name(self._spec)) or ""
        self.namespace: str | None = string(lib.drarun_spec_namespace(self._spec))
        """None: the document names none."""
        self.workers: int = lib.drarun_spec_workers(self._spec)

    @property
    def summary(self) -> str:
        """``job train, 2 workers, 8 GPUs each, 8 NICs each``."""
        return _or_memory(taken(lib.drarun_spec_summary(self._spec)))

    @property
    def document(self) -> dict[str, Any]:
        """The document with apiVersion, kind and name filled in."""
        document: dict[str, Any] = json.loads(_or_memory(taken(lib.drarun_spec_json(self._spec))))
        return document

    def render(self, *, format: str | None = None, api: str | None = None, claims: str | None = None,
               namespace: str | None = None, image: str | None = None, agent_claim: str | None = None,
               pod_groups: str | None = None, owner_uid: str | None = None, step: int | None = None,
               image_volume: bool = False, here: bool = False, as_: str | None = None, head: str | None = None,
               replicas: str | None = None,
               note: Callable[[str], None] | None = None) -> str:
        """The Kubernetes objects that the job creates, the owner of the others first. No cluster is asked.

        format: "yaml", a document each, or "json", one List; None: yaml.
        api: of resource.k8s.io, "v1", "v1beta2" or "v1beta1"; None: v1.
        claims: "direct" or "template"; None: the spec's.
        namespace: None: the spec's, else default.
        image: of agent and launcher; None: $DRARUN_IMAGE, else this version's.
        agent_claim: "DRIVER=AGENT", where the claim brings the agent.
        pod_groups: the version of scheduling.k8s.io for gangScheduling.
        owner_uid: of the first object, for owner references.
        step: of the ladder that ``align: preferred`` has, from 1.
        image_volume: mounts the agent's image instead of copying from it.
        here: no launcher Job; the launcher runs elsewhere.
        as_: "raycluster", "rayjob" or "trainjob": for that system's controller, which drarun takes no part in but by
        ``drarun env`` in the pods; None: as drarun creates the job.
        head: of a RayCluster: "plain", without devices, or "worker", the first of the workers; None: plain.
        replicas: of Ray's group of workers, "MIN:MAX", between which an autoscaler keeps it; None: no autoscaler.
        note: called with a line for each field of the job that the other system has no place for, and for a profile of
        the site's file, which drarun in the cluster does not know.

        Raises UsageError for options that do not fit the job, SpecError for a job beyond a limit."""
        options = Options("render", format=format, api=api, claims=claims, namespace_=namespace, image=image,
                          agent_claim=agent_claim, pod_groups=pod_groups, owner_uid=owner_uid, step=step,
                          image_volume=bool(image_volume), here=bool(here), head=head, replicas=replicas,
                          **{"as": as_})
        text, err, calls = ffi.new("char **"), new_error(), Calls()
        if note is not None:
            options.pointer.note = calls.function("drarun_note_fn", lambda line, _: note(string(line) or ""))
        status = lib.drarun_render(self._spec, options.pointer, text, err)
        rendered = taken(text[0]) if status == 0 else None
        calls.settle()
        check(status, err)
        return rendered or ""

    # ---- on a cluster ----

    def submit(self, *, cluster: Cluster | None = None, name: str | None = None, image: str | None = None,
               workers: int | None = None, replace: bool = False) -> Submitted:
        """Makes the job's objects on a cluster and leaves it to that: Cluster.submit. What wait(), logs(), status() and
        cancel() of this Job mean is the last one that it submitted."""
        from ._cluster import submit
        self._submitted = submit(self, cluster=cluster, name=name, image=image, workers=workers, replace=replace)
        return self._submitted

    def wait(self, timeout: float | None = None) -> int:
        """Submitted.wait: the exit status, at the job's end. timeout: seconds."""
        return self._last().wait(timeout)

    def logs(self, *, rank: int | None = None) -> list[Output]:
        """Submitted.logs: the output that there is."""
        return self._last().logs(rank=rank)

    def status(self) -> dict[str, Any]:
        """Submitted.status: the status document."""
        return self._last().status()

    def cancel(self) -> None:
        """Submitted.cancel."""
        self._last().cancel()

    def _last(self) -> Submitted:
        if self._submitted is None:
            raise UsageError(f"job {self.name} was not submitted by this object: Job.submit() first, or Cluster.job()")
        return self._submitted

    def __repr__(self) -> str:
        return f"<drarun.Job {self.summary.removeprefix('job ')}>"

    def __reduce__(self) -> tuple[object, ...]:
        return (_job_of_document, (self.document, self._profiles))


def _job_of_document(document: Mapping[str, Any], profiles: PathName | None) -> Job:
    return Job(document, profiles=profiles)


def job_of(job: JobLike, profiles: PathName | None = None) -> Job:
    return job if isinstance(job, Job) else Job(job, profiles=profiles)


def validate(job: JobLike, *, profiles: PathName | None = None) -> tuple[Finding, ...]:
    """All that is wrong in a job spec, in the order of its lines; empty: it is right.

    job and profiles: as for Job. Reading takes about a millisecond; no cluster is asked."""
    try:
        job_of(job, profiles)
    except SpecError as error:
        return error.findings or (Finding(str(error), error.path, error.line, error.column),)
    return ()


def render(job: JobLike, *, profiles: PathName | None = None, format: str | None = None, api: str | None = None,
           claims: str | None = None, namespace: str | None = None, image: str | None = None,
           agent_claim: str | None = None, pod_groups: str | None = None, owner_uid: str | None = None,
           step: int | None = None, image_volume: bool = False, here: bool = False, as_: str | None = None,
           head: str | None = None, replicas: str | None = None, note: Callable[[str], None] | None = None) -> str:
    """The Kubernetes objects that a job creates: Job.render."""
    return job_of(job, profiles).render(
        format=format, api=api, claims=claims, namespace=namespace, image=image, agent_claim=agent_claim,
        pod_groups=pod_groups, owner_uid=owner_uid, step=step, image_volume=image_volume, here=here, as_=as_, head=head,
        replicas=replicas, note=note)


def _or_memory(text: str | None) -> str:
    if text is None:
        raise MemoryError("drarun: out of memory")
    return text


def _parse(data: bytes, options: Options, spec: Any, findings: Any, err: Any) -> int:
    status: int = lib.drarun_spec_parse(b"job", data, len(data), options.pointer, spec, findings, err)
    return status


def _refused(findings: Any, err: Any, placed: bool) -> Error:
    """placed: the document has lines that its author knows."""
    if not placed:
        err.line = err.column = 0
    kept: list[Finding] = []
    total = 0
    if findings[0]:
        total = lib.drarun_findings_total(findings[0])
        for index in range(lib.drarun_findings_count(findings[0])):
            each = lib.drarun_findings_at(findings[0], index)
            text = string(each.text) or ""
            if not placed:
                text = re.sub(r"^job:\d+:\d+: ", "job: ", text)
            kept.append(Finding(text, string(each.path) or None, (placed and each.line) or None,
                                (placed and each.column) or None, string(each.code) or "refused",
                                string(each.message) or ""))
        lib.drarun_findings_free(findings[0])
    error = error_of(err, tuple(kept), total)
    if not placed:
        error.args = (re.sub(r"^job:\d+:\d+: ", "job: ", str(error)),)
    return error


# ---- a dict as a document ----

def _utf8(text: str, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"job: {path or 'the document'}: expected text, got half of a surrogate pair",
                        path=path or None) from error


def _from_mapping(source: Mapping[str, Any]) -> bytes:
    return json.dumps(_plain(source, "", 0), ensure_ascii=False).encode()


def _wrong(path: str, expected: str, value: Any) -> SpecError:
    text = f"{path or 'the document'}: expected {expected}, got {type(value).__name__}"
    return SpecError(f"job: {text}", path=path or None)


def _plain(value: Any, path: str, depth: int) -> Any:
    """The value in JSON's types; its path is that of the error where it has none."""
    if value is None or isinstance(value, bool):
        return value
    whole = number(value)
    if whole is not None:
        if -2**63 <= whole < 2**63:
            return whole
        raise SpecError(f"job: {path}: expected a number of 64 bits, got {len(str(whole))} digits", path=path)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        _utf8(value, path)
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise SpecError(f"job: {path}: expected a finite number, got {value}", path=path)
    if depth == DEPTH:
        raise SpecError(f"job: {path}: nested deeper than {DEPTH}; does it hold itself?", path=path)
    if isinstance(value, Mapping):
        plain = {}
        for key, each in value.items():
            if isinstance(key, bool):
                raise SpecError(f"job: {path or 'the document'}: expected keys that are texts, got {key}: PyYAML reads "
                                "the keys on and off as True and False: quote them, or give Job() the file", path=path or None)
            if not isinstance(key, str):
                raise _wrong(path, "keys that are texts", key)
            _utf8(key, path)
            shown = key if key.isprintable() else key.encode("unicode_escape").decode()
            plain[key] = _plain(each, f"{path}.{shown}" if path else shown, depth + 1)
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]
    raise _wrong(path, "a text, number, boolean, list or dict", value)
