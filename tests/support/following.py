# SPDX-License-Identifier: Apache-2.0
"""`drarun run` of a job beside a registry of objects: the test plays its launchers."""
import json
import time

from .build import patience
from .registry import path_of

JOB = path_of("batch/v1/jobs", "job")
MAP = path_of("configmaps", "job-status")
LEASE = path_of("coordination.k8s.io/v1/leases", "job")
LABELS = {"drarun.dev/job": "job", "batch.kubernetes.io/job-name": "job"}
OUTPUT = b'{"event":"log","job":"job","lines":0}\n[0] of the leader\n'


def record(launcher, status=0, lines=2):
    return json.dumps({"event": "ended", "job": "job", "launcher": launcher, "lines": lines, "status": status}).encode() + b"\n"


def job_file(folder, **spec):
    path = folder / "job.json"
    path.write_text(json.dumps({"metadata": {"name": "job"}, "spec": {"workers": 1, "image": "a", "command": ["true"], **spec}}))
    return path


def environment(registry, folder):
    return {"KUBECONFIG": str(registry.kubeconfig(folder)), "DRARUN_IMAGE": "a"}


class Following:
    """`drarun run`, or other words, of a job whose launchers the test plays. shell: a command of bash, in which {} is that. last: of the
    objects that are created."""

    def __init__(self, drarun, registry, folder, shell=None, words=None, last=path_of("pods", "job-w-0")):
        self.registry = registry
        self.env = environment(registry, folder)
        words = words or ["run", job_file(folder)]
        if shell:
            words = ["-c", shell.format(" ".join(map(str, [drarun.program, *words])))]
        self.job = drarun.start(*words, env=self.env, program="bash" if shell else None)
        registry.wait(last)
        self.uid = registry.objects[JOB]["metadata"]["uid"]

    def pod(self, name, state, log=None, owner=None, phase="Running", spec=None, **status):
        """state: waiting, running or terminated. log: yields its pieces."""
        if log is not None:
            self.registry.logs[name] = log
        self.registry.put(path_of("pods", name), {
            "metadata": {"labels": LABELS, "ownerReferences": [{"kind": "Job", "name": "job", "uid": owner or self.uid}]},
            "spec": spec or {},
            "status": {"phase": phase, "containerStatuses": [{"name": "launcher", "state": {state: {}}}], **status}})

    def tell(self, launcher, exit=None, uid=None, fabric=None, **more):
        """The status document. more: of its launcher."""
        found = self.registry.objects[MAP]
        document = {"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJobStatus", "name": "job", "uid": uid or self.uid, "attempt": 1,
                    "phase": "running" if exit is None else "ended", "launcher": {"pod": launcher, **more}, "fabric": fabric}
        if exit is not None:
            document |= {"exit": exit, "result": "failed" if exit else "succeeded"}
        self.registry.put(MAP, {**found, "data": {**found["data"], "status.json": json.dumps(document)}})

    def ended(self):
        return self.job.finish(30)


def annotation(registry, name):
    """Of the job's owner."""
    return registry.objects[JOB]["metadata"].get("annotations", {}).get(name)


def is_cancelled(registry):
    return annotation(registry, "drarun.dev/cancel") is not None


def until(registry, there):
    """A piece of a log that comes once that is so."""
    end = time.monotonic() + patience()
    while not there() and not registry.closed:
        assert time.monotonic() < end
        time.sleep(0.01)
