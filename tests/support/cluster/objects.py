# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are held against what they were before, and users with one Role."""
import contextlib
import time

from ..build import patience

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
READY_S = 90
# what controllers keep in every namespace
OWN = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
PASSING = {"Event"}


def kinds(api):
    """(kind, path prefix, plural, namespaced) of everything that can be listed and deleted."""
    for root in ("/api", "/apis"):
        for group in api.ok("GET", root, accept=DISCOVERY)["items"]:
            seen = set()
            for version in group["versions"]:  # the preferred one first
                prefix = "/".join(filter(None, (root, group["metadata"].get("name"), version["version"])))
                for each in version["resources"]:
                    if each["resource"] not in seen and {"list", "delete"} <= set(each["verbs"]):
                        seen.add(each["resource"])
                        yield each["responseKind"]["kind"], prefix, each["resource"], each["scope"] == "Namespaced"


class Namespace:
    """One namespace of a test. leftovers(): what is in it that was not there at first."""

    def __init__(self, cluster, name):
        self.cluster, self.api, self.name = cluster, cluster.api, name
        if self.api.get("v1", "Namespace", name):
            self.remove()
        self.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for kind, own in OWN:
            cluster.wait(f"no {kind} {own} in {name}", lambda: self.api.get("v1", kind, own, name), READY_S)
        self.before = set(OWN)

    def objects(self):
        """{(kind, name)} of all that is in it, by the server's own list of resources."""
        return self._objects_of(kinds(self.api))

    def _objects_of(self, some):
        found = set()
        for kind, prefix, plural, namespaced in some:
            if namespaced and kind not in PASSING:
                status, answer = self.api.request("GET", f"{prefix}/namespaces/{self.name}/{plural}", accept=METADATA)
                if status == 200:  # not for a kind whose definition has just gone
                    found |= {(kind, each["metadata"]["name"]) for each in answer["items"] or ()}
        return found

    def leftovers(self, seconds=60):
        """Sorted (kind, name) that are new and do not go within so many seconds; [] at once where all is
        as before."""
        end = time.monotonic() + (patience(seconds) if seconds else 0)
        while True:
            every = list(kinds(self.api))
            left = sorted(self._objects_of(every) - self.before)
            if not left or time.monotonic() > end:
                return left
            # to ask for every kind, some thirty requests, each time would keep half a core busy
            some = [each for each in every if each[0] in {kind for kind, _ in left}]
            while self._objects_of(some) - self.before and time.monotonic() <= end:
                time.sleep(0.25)

    def rbac_user(self, role):
        """A kubeconfig that may do what this Role says and nothing else, by a service account's token."""
        name = role["metadata"]["name"]
        there = {"name": name, "namespace": self.name}
        self.api.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": there})
        self.api.make({**role, "metadata": {**role["metadata"], "namespace": self.name}})
        self.api.make({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": there,
                       "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                       "subjects": [{"kind": "ServiceAccount", **there}]})
        token = self.token(name)
        self.before = self.objects()
        path = self.cluster.folder / f"{self.name}-{name}.conf"
        return self.cluster.keys.kubeconfig(path, self.cluster.plane.server, {"token": token}, self.name)

    def token(self, account, seconds=3600):
        """A token of this service account."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                 "spec": {"expirationSeconds": seconds}}
        path = self.api.path("v1", "ServiceAccount", self.name, account) + "/token"
        return self.api.ok("POST", path, asked)["status"]["token"]

    def remove(self, seconds=60):
        """Deletes it and waits until it is gone, which takes the namespace controller 5 s at least."""
        self.api.delete("v1", "Namespace", self.name)
        self.cluster.wait(lambda: f"namespace {self.name} does not go; in it: {sorted(self.objects())}",
                          lambda: self.api.get("v1", "Namespace", self.name) is None, seconds)


@contextlib.contextmanager
def held_to_be_clean(cluster, name, seconds):
    """A namespace in which nothing may be left at the end of the block. It stays, empty: to delete it, the namespace controller asks for
    all kinds again, twice."""
    namespace = Namespace(cluster, name)
    yield namespace
    left = namespace.leftovers(seconds)
    assert not left, f"left in namespace {name}: {left}"
