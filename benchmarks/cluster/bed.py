# SPDX-License-Identifier: Apache-2.0
"""Two real nodes on which jobs are started, and where the times of what happens on them are read."""
import collections
import contextlib
import datetime
import json
import re
import subprocess
import time
from pathlib import Path

from benchmarks.harness.launchers import DRARUN, LIBRARIES
from support.cluster import Cluster

SOURCE = Path(__file__).resolve().parent
DEADLINE = 240  # seconds that one job may take
MPI_TIMES = SOURCE.parent / "launch" / "mpi_times.c"
IMAGE = "localhost/mpi-times:1"
OURS = "drarun/"  # the beginning of our programs' user agent
WRITES = ("create", "update", "patch", "delete", "deletecollection")

Outcome = collections.namedtuple("Outcome", "status out err began ended")


def realtime_of(monotonic_ns):
    """Seconds since 1970 of a CLOCK_MONOTONIC, which all pods share with us."""
    return time.time() + monotonic_ns / 1e9 - time.monotonic()


class Bed:
    """A context manager. cluster: one of two nodes to use; without it one is started."""

    def __init__(self, cluster=None):
        self.rank = LIBRARIES[0].compile(MPI_TIMES)
        self.stack, self.count, self.cluster = contextlib.ExitStack(), 0, cluster

    def __enter__(self):
        with self.stack:
            self.cluster = self.cluster or self.stack.enter_context(Cluster(nodes=2))
            self.folder = Path(self.cluster.folder)
            self.cluster.image("drarun")
            self.cluster.image("mpi")
            self.cluster.image("mpi-times", files={"/usr/local/bin/mpi-times": self.rank}, base="mpi")
            self.api, self.audit = self.cluster.api, self.cluster.audit
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    @contextlib.contextmanager
    def namespace(self):
        """A new one's name; what is left of the block is deleted."""
        self.count += 1
        self.api.close()  # the server may have closed a connection that was idle while images came in
        with self.cluster.clean_namespace(f"bench-{self.count}", DEADLINE) as made:
            yield made.name
            self.remove_jobs(made.name)
            # drarun's own account, role and policy, as in a namespace where it is installed, stay until now
            for version, kind in (("v1", "ServiceAccount"), ("rbac.authorization.k8s.io/v1", "Role"),
                                  ("rbac.authorization.k8s.io/v1", "RoleBinding")):
                self.api.delete(version, kind, "drarun-launcher", made.name)
            self.api.delete("networking.k8s.io/v1", "NetworkPolicy", "drarun", made.name)

    def install(self, namespace):
        """What drarun needs once in a namespace."""
        made = subprocess.run([DRARUN.program(), "install", "-n", namespace], capture_output=True, text=True, check=True)
        self.cluster.kubectl("apply", "--server-side", "-f", "-", input=made.stdout)

    def remove_jobs(self, namespace):
        """Deletes all Jobs and waits until no pod is left."""
        for each in self.api.get("batch/v1", "Job", namespace=namespace):
            self.api.delete("batch/v1", "Job", each["metadata"]["name"], namespace, propagation="Background")
        self.cluster.wait(f"pods are left in {namespace}",
                          lambda: not self.api.get("v1", "Pod", namespace=namespace), DEADLINE)

    def start(self, namespace, spec, *options, verb="run", name="job"):
        """The process of drarun VERB of a job with these fields of spec."""
        path = self.folder / f"{namespace}-{name}.json"
        path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob", "metadata": {"name": name},
                                    "spec": spec}))
        env = {**DRARUN.environment(), "KUBECONFIG": str(self.cluster.kubeconfig(namespace=namespace)),
               "DRARUN_IMAGE": "localhost/drarun:1"}
        return subprocess.Popen([*self.cluster.under, DRARUN.program(), verb, path, *options], env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, namespace, spec, *options):
        began = time.time()
        process = self.start(namespace, spec, *options)
        try:
            out, err = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        return Outcome(process.returncode, out, err, began, time.time())

    def containers(self, namespace):
        """{pod name: seconds at which its containers were started, the last one}, as containerd says."""
        found = {}
        for node in self.cluster.nodes:
            found.update(started(node.folder / "containerd.log", namespace))
        return found


FIELD = re.compile(r'([a-z]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')
SANDBOX = re.compile(r'RunPodSandbox for name:"([^"]+)" .* namespace:"([^"]+)".* returns sandbox id "([0-9a-f]+)"')
CREATED = re.compile(r'CreateContainer within sandbox "([0-9a-f]+)" for .*returns container id "([0-9a-f]+)"')
STARTED = re.compile(r'StartContainer for "([0-9a-f]+)" returns successfully')


def started(log, namespace):
    """{pod: seconds} of one node. Lines are logfmt with a time in nanoseconds."""
    sandboxes, containers, found = {}, {}, {}
    for line in log.read_text(errors="replace").splitlines():
        if "returns" not in line:
            continue
        fields = {key: text.replace('\\"', '"') or bare for key, text, bare in FIELD.findall(line)}
        words = fields.get("msg", "")
        if match := SANDBOX.search(words):
            if match[2] == namespace:
                sandboxes[match[3]] = match[1]
        elif match := CREATED.search(words):
            containers[match[2]] = sandboxes.get(match[1])
        elif match := STARTED.search(words):
            pod = containers.get(match[1])
            if pod:
                found[pod] = seconds(fields["time"])
    return found


def seconds(text):
    """Of RFC 3339 with up to nine digits behind the point."""
    head, _, rest = text.rstrip("Z").partition(".")
    return datetime.datetime.fromisoformat(f"{head}+00:00").timestamp() + float(f"0.{rest or 0}")
