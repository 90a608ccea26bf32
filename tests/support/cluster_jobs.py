# SPDX-License-Identifier: Apache-2.0
"""drarun on a cluster of the tests: jobs run from where the API server and the pods are reached."""
import contextlib
import json
import re
import threading
import time
import zlib

IMAGE = "localhost/drarun:1"
RUN_S = 60
RUNNING_S = 60
# for a pod's topologySpreadConstraints: the workers of "job" share the nodes evenly. The launcher's pod has the job's label
# too, and does not count: else two workers could be on one node.
APART = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {
    "matchLabels": {"drarun.dev/job": "job"}, "matchExpressions": [{"key": "drarun.dev/worker", "operator": "Exists"}]}}]


class Jobs:
    """run(spec, ...) in a namespace of its own. spec: the fields of `spec`; a job is called after its test."""

    def __init__(self, cluster, drarun, namespace, folder, kubeconfig=None):
        self.cluster, self.drarun, self.namespace, self.folder = cluster, drarun, namespace, folder
        self.kubeconfig = kubeconfig or cluster.kubeconfig(namespace=namespace.name)
        self.env = {"KUBECONFIG": str(self.kubeconfig), "DRARUN_IMAGE": IMAGE}

    def file(self, name="job", metadata=None, variables=None, **spec):
        """variables: the spec's env, which is the client's own to the others."""
        spec = {"workers": 1, **({"env": variables} if variables else {}), **({} if "template" in spec else {"image": "localhost/busybox:1"}), **spec}
        path, written = self.folder / f"{name}.json", self.folder / f".{name}.json"
        written.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob",
                                       "metadata": {"name": name, **(metadata or {})}, "spec": spec}))
        return written.replace(path)  # another drarun may be reading the one that was there

    def verb(self, *words, timeout=RUN_S, env=None, **how):
        return self.drarun(*words, under=self.cluster.under, env={**self.env, **(env or {})}, timeout=timeout, **how)

    def run(self, *options, name="job", timeout=RUN_S, env=None, input=None, **spec):
        return self.verb("run", self.file(name, **spec), *options, timeout=timeout, env=env, input=input)

    def printed(self, *options):
        """The objects that `drarun install` prints for the namespace."""
        return json.loads(self.verb("install", "-n", self.namespace.name, *options, "--format", "json").ok().out)["items"]

    def install(self):
        """Makes those of launchers, and gives them."""
        items = self.printed()
        self.cluster.api.make(*items)
        return items

    def agent(self, pod):
        """(node, pids of the agent there, as the node counts) of a worker's pod."""
        found = self.cluster.api.get("v1", "Pod", pod, self.namespace.name)
        node = next(each for each in self.cluster.nodes if each.name == found["spec"]["nodeName"])
        pids = node.ok(["sh", "-c", "grep -l drarun-worker /proc/[0-9]*/cmdline | cut -d/ -f3"]).split()
        uid = found["metadata"]["uid"].replace("-", "[-_]")
        mine = [pid for pid in pids if re.search(uid, node.run(["cat", f"/proc/{pid}/cgroup"]).stdout)]
        assert mine, f"no agent of {pod} on {node.name}"
        return node, mine

    def status(self, name="job"):
        """The status document, as the launcher wrote it last."""
        found = self.cluster.api.get("v1", "ConfigMap", f"{name}-status", self.namespace.name)
        return json.loads(found["data"]["status.json"]) if found and "status.json" in found["data"] else None


class Running:
    """A job under way, its output (lines) and messages (said) read as they come. ended(): its result; at: when that was."""

    def __init__(self, jobs, *options, name="job", env=None, **spec):
        self.jobs, self.name, self.lines, self.said, self.at = jobs, name, [], [], None
        self.job = jobs.drarun.start("run", jobs.file(name, **spec), *options, under=jobs.cluster.under,
                                     env={**jobs.env, **(env or {})})
        process = self.job.process
        self.pipes = [process.stdout, process.stderr]
        process.stdout, process.stderr = None, None
        self.readers = [threading.Thread(target=self._read, args=each, daemon=True)
                        for each in zip(self.pipes, (self.lines, self.said))]
        for each in self.readers:
            each.start()

    def _read(self, pipe, lines):
        for line in pipe:
            lines.append(line)
        if lines is self.lines:
            self.at = time.monotonic()

    def wait_running(self, attempt=1):
        def there():
            self._alive()
            status = self.jobs.status(self.name) or {}
            return status.get("phase") == "running" and status["attempt"] == attempt
        self.jobs.cluster.wait(f"the ranks of attempt {attempt} do not run", there, RUNNING_S)
        return self

    def wait_lines(self, count, text="up"):
        def there():
            return sum(text in line for line in self.lines) >= count or self._alive()
        self.jobs.cluster.wait(f"{text!r} does not come {count} times", there, RUNNING_S)
        return self

    def _alive(self):
        assert self.job.process.poll() is None, self.ended()

    def ended(self, seconds=60, clean=True):
        result = self.job.finish(seconds, clean=clean)
        for reader, pipe in zip(self.readers, self.pipes):
            reader.join(seconds)
            pipe.close()
        result.out, result.err = "".join(self.lines), "".join(self.said)
        return result


# A pod's grace period. A container's first process gets no signal before it has a handler: when a pod is deleted while runc
# starts our program, the kernel drops the kubelet's SIGTERM, and the pod stays that long.
GRACE_S = 30


@contextlib.contextmanager
def in_namespace(cluster, drarun, folder, test):
    """Jobs in a namespace that must be as it was once the owners of all jobs are gone."""
    cluster.image("drarun")
    name = "".join(c if c.isalnum() else "-" for c in test.lower())
    if len(name) > 40:  # tests whose names end alike have namespaces of their own
        name = f"{name[-31:]}-{zlib.crc32(test.encode()):08x}"
    name = name.strip("-")
    with cluster.clean_namespace(name, GRACE_S + 10) as namespace:
        yield Jobs(cluster, drarun, namespace, folder)
        owners = cluster.api.ok("GET", f"/apis/batch/v1/namespaces/{name}/jobs")["items"]
        for each in owners:
            cluster.api.delete("batch/v1", "Job", each["metadata"]["name"], name)
        for kind, api in (("ServiceAccount", "v1"), ("Role", "rbac.authorization.k8s.io/v1"),
                          ("RoleBinding", "rbac.authorization.k8s.io/v1")):
            cluster.api.delete(api, kind, "drarun-launcher", name)
        cluster.api.delete("networking.k8s.io/v1", "NetworkPolicy", "drarun", name)
