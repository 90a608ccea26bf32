# SPDX-License-Identifier: Apache-2.0
"""drarun on a cluster of the tests: jobs run from where the API server and the pods are reached."""
import contextlib
import json
import re
import threading
import time

from .build import SLOWER

IMAGE = "localhost/drarun:1"
RUN_S = 60 * SLOWER
RUNNING_S = 30 * SLOWER


class Jobs:
    """run(spec, ...) in a namespace of its own. spec: the fields of `spec`; a job is called after its test."""

    def __init__(self, cluster, drarun, namespace, folder, kubeconfig=None):
        self.cluster, self.drarun, self.namespace, self.folder = cluster, drarun, namespace, folder
        self.kubeconfig = kubeconfig or cluster.kubeconfig(namespace=namespace.name)
        self.env = {"KUBECONFIG": str(self.kubeconfig), "DRARUN_IMAGE": IMAGE}

    def file(self, name="job", metadata=None, **spec):
        spec = {"workers": 1, **({} if "template" in spec else {"image": "localhost/busybox:1"}), **spec}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob",
                                    "metadata": {"name": name, **(metadata or {})}, "spec": spec}))
        return path

    def verb(self, *words, timeout=RUN_S, env=None, **how):
        return self.drarun(*words, under=self.cluster.under, env={**self.env, **(env or {})}, timeout=timeout, **how)

    def run(self, *options, name="job", timeout=RUN_S, env=None, input=None, **spec):
        return self.verb("run", self.file(name, **spec), *options, timeout=timeout, env=env, input=input)

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
    """A job under way, its output read as it comes. ended(): its result; at: when that was."""

    def __init__(self, jobs, *options, name="job", env=None, **spec):
        self.jobs, self.name, self.lines, self.at = jobs, name, [], None
        self.job = jobs.drarun.start("run", jobs.file(name, **spec), *options, under=jobs.cluster.under,
                                     env={**jobs.env, **(env or {})})
        self.out, self.job.process.stdout = self.job.process.stdout, None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.out:
            self.lines.append(line)
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

    def ended(self, seconds=60):
        result = self.job.finish(seconds)
        self.reader.join(seconds)
        self.out.close()
        result.out = "".join(self.lines)
        return result


@contextlib.contextmanager
def in_namespace(cluster, drarun, folder, test):
    """Jobs in a namespace that must be as it was once the owners of all jobs are gone."""
    cluster.image("drarun")
    name = "".join(c if c.isalnum() else "-" for c in test.lower())[-40:].strip("-")
    with cluster.clean_namespace(name) as namespace:
        yield Jobs(cluster, drarun, namespace, folder)
        owners = cluster.api.ok("GET", f"/apis/batch/v1/namespaces/{name}/jobs")["items"]
        for each in owners:
            cluster.api.delete("batch/v1", "Job", each["metadata"]["name"], name)
        for kind, api in (("ServiceAccount", "v1"), ("Role", "rbac.authorization.k8s.io/v1"),
                          ("RoleBinding", "rbac.authorization.k8s.io/v1")):
            cluster.api.delete(api, kind, "drarun-launcher", name)
        cluster.api.delete("networking.k8s.io/v1", "NetworkPolicy", "drarun", name)
