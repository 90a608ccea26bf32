# SPDX-License-Identifier: Apache-2.0
"""drarun on a cluster of the tests: jobs run from where the API server and the pods are reached."""
import contextlib
import json

from .build import SLOWER

IMAGE = "localhost/drarun:1"
RUN_S = 60 * SLOWER


class Jobs:
    """run(spec, ...) in a namespace of its own. spec: the fields of `spec`; a job is called after its test."""

    def __init__(self, cluster, drarun, namespace, folder, kubeconfig=None):
        self.cluster, self.drarun, self.namespace, self.folder = cluster, drarun, namespace, folder
        self.kubeconfig = kubeconfig or cluster.kubeconfig(namespace=namespace.name)
        self.env = {"KUBECONFIG": str(self.kubeconfig), "DRARUN_IMAGE": IMAGE}

    def file(self, name="job", metadata=None, **spec):
        spec = {"workers": 1, "image": "localhost/busybox:1", **spec}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"apiVersion": "drarun.dev/v1alpha1", "kind": "DraJob",
                                    "metadata": {"name": name, **(metadata or {})}, "spec": spec}))
        return path

    def verb(self, *words, timeout=RUN_S, env=None, **how):
        return self.drarun(*words, under=self.cluster.under, env={**self.env, **(env or {})}, timeout=timeout, **how)

    def run(self, *options, name="job", timeout=RUN_S, **spec):
        return self.verb("run", self.file(name, **spec), *options, timeout=timeout)

    def status(self, name="job"):
        """The status document, as the launcher wrote it last."""
        found = self.cluster.api.get("v1", "ConfigMap", f"{name}-status", self.namespace.name)
        return json.loads(found["data"]["status.json"]) if found and "status.json" in found["data"] else None


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
