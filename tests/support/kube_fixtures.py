# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of lib/kube: a cluster for each file, a namespace for each test."""
import re

import pytest

from .api_proxy import ApiProxy, kubeconfig
from .cluster import Cluster
from .kube_probe import Probe

ADMIN = "kube-test-admin"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


@pytest.fixture
def space(cluster, request):
    """A namespace of the test's own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:63].strip("-")
    made = cluster.namespace(name)
    yield made
    cluster.api.delete("v1", "Namespace", name)


@pytest.fixture
def probe_of(tmp_path):
    """probe_of("--kubeconfig", ..., env=) gives a Probe that is held to end well."""
    probes = []

    def start(*args, **options):
        probes.append(Probe(*args, **options))
        return probes[-1]
    yield start
    for each in probes:
        rc, err = each.close()
        assert rc == 0, err


@pytest.fixture
def probe(cluster, space, probe_of):
    return probe_of("--kubeconfig", cluster.kubeconfig())


@pytest.fixture(scope="module")
def admin_token(cluster):
    """Of a service account that may do everything."""
    cluster.api.make({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ADMIN}},
                     {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                      "metadata": {"name": ADMIN},
                      "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                      "subjects": [{"kind": "ServiceAccount", "name": ADMIN, "namespace": "default"}]})
    path = cluster.api.path("v1", "ServiceAccount", "default", ADMIN) + "/token"
    return cluster.api.ok("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                         "spec": {"expirationSeconds": 3600}})["status"]["token"]


@pytest.fixture
def proxy(cluster):
    """An ApiProxy before the cluster's API server; .ca is the path of its authority."""
    keys = cluster.keys
    if not (keys.folder / "proxy.crt").exists():
        keys.sign("proxy", "/CN=api.test", ["IP:127.0.0.1", "DNS:api.test"])
    made = ApiProxy(cluster.network.api_port, keys.folder)
    made.ca = str(keys.folder / "ca.crt")
    yield made
    made.close()


@pytest.fixture
def behind(proxy, admin_token, tmp_path, probe_of):
    """A Probe that speaks to the proxy, as the administrator."""
    path = kubeconfig(tmp_path / "behind", proxy.url, {"token": admin_token}, {"certificate-authority": proxy.ca})
    return probe_of("--kubeconfig", path)
