# SPDX-License-Identifier: Apache-2.0
"""The control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, with nodes,
CoreDNS; each a Daemon that can be killed, frozen and started again on its data."""
import functools
import json
import subprocess
import typing

import pytest

from .api import Api, wait
from .audit import POLICY
from .daemon import Daemon

READY_S = 120  # alone 3 s; the machine may be busy with a build
# PodGroups of a minor version of Kubernetes and of later ones: gates, the version of their API, the condition of a group that waits. 1.35 has
# gangs of another shape (Workloads of v1alpha1)
GANGS = {36: ("GenericWorkload=true,GangScheduling=true", "scheduling.k8s.io/v1alpha2", "PodGroupScheduled"),
         37: ("GenericWorkload=true", "scheduling.k8s.io/v1beta1", "PodGroupInitiallyScheduled")}
APIS = ["resource.k8s.io/v1beta1=true", "resource.k8s.io/v1beta2=true"]
# What the tests want beside the defaults of a minor version and of later ones: gates, the API that serves rules of taints
TAINTS = {34: ("DRADeviceTaints=true", "resource.k8s.io/v1alpha3"),
          35: ("DRADeviceTaints=true,DRADeviceTaintRules=true", "resource.k8s.io/v1alpha3"),
          36: ("DRADeviceTaintRules=true", "resource.k8s.io/v1beta2")}
NO_TAINTS = {34: "DRADeviceTaints=false", 35: "DRADeviceTaints=false,DRADeviceTaintRules=false"}  # as 34 and 35 have it by default


@functools.cache
def version(programs):
    """Of the Kubernetes of these programs: "v1.37.2"."""
    said = subprocess.run([programs / "kube-apiserver", "--version"], check=True, capture_output=True, text=True).stdout
    return said.split()[1]


class Gangs(typing.NamedTuple):
    gates: str
    version: str
    condition: str


def _of_minor(table, minor):
    """The entry of the latest version up to it; None: it is older than all."""
    return table.get(max((each for each in table if each <= minor), default=None))


class Plane:
    """fake: nodes are objects only, which nothing ages and no kubelet taints. claims: the one version of resource.k8s.io
    that is served; None: all of them. The scheduler of this version needs v1. taints: whether devices have them."""

    def __init__(self, programs, folder, network, keys, fake, gang, claims=None, taints=True):
        self.programs, self.folder, self.network, self.keys = programs, folder, network, keys
        self.server = network.family.url(network.api, network.api_port)
        self.audit_log = folder / "audit.log"
        self.version = version(programs)
        self.minor = int(self.version.split(".")[1])
        found, (taint_gates, self.taint_rules) = _of_minor(GANGS, self.minor), _of_minor(TAINTS, self.minor)
        self.gangs = Gangs(*found) if found else None
        if gang and not found:
            pytest.skip(f"no PodGroups in Kubernetes {self.version}")
        self.gates = ",".join([taint_gates if taints else _of_minor(NO_TAINTS, self.minor)] + ([self.gangs.gates] if gang else []))
        self.apis = APIS + [f"{self.taint_rules}/devicetaintrules={str(taints).lower()}"] + ([f"{self.gangs.version}=true"] if gang else [])
        self.ready = "/readyz"
        if claims:
            # today's API server waits for its own informer of v1 slices
            self.ready = "/readyz?exclude=informer-sync"
            self.apis = [each for each in self.apis if not each.startswith("resource.k8s.io/")]
            self.apis += [f"resource.k8s.io/{version}={str(version == claims).lower()}" for version in ("v1", "v1beta2", "v1beta1")]
        self._make_keys()
        self.etcd = self._etcd()
        self.apiserver = self._apiserver(fake)
        self.controllers = self._controllers(fake)
        self.scheduler = self._scheduler()
        self.dns = None if fake else self._dns()
        self.admin = self.api_of("admin")

    def api_of(self, name):
        return Api(self._reached(), self.keys.folder / "ca.crt", self.keys.folder / name, pid=self.network.pid)

    def api_with(self, token):
        return Api(self._reached(), self.keys.folder / "ca.crt", token=token, pid=self.network.pid)

    def _reached(self):
        return self.network.api, self.network.api_port

    def _make_keys(self):
        hosts = ["DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default", "DNS:kubernetes.default.svc",
                 "DNS:kubernetes.default.svc.cluster.local", f"IP:{self.network.family.service}", "IP:127.0.0.1", f"IP:{self.network.api}"]
        self.keys.sign("apiserver", "/CN=kube-apiserver", hosts)
        self.keys.sign("admin", "/O=system:masters/CN=admin")
        self.keys.sign("controllers", "/CN=system:kube-controller-manager")
        self.keys.sign("scheduler", "/CN=system:kube-scheduler")
        self.keys.signing_pair("accounts")
        for name in ("admin", "controllers", "scheduler"):
            self.keys.kubeconfig(self.folder / f"{name}.conf", self.server, self.keys.certificate(name))

    def _daemon(self, name, *options):
        return Daemon(name, [*self.network.under, self.programs / name, *options], self.folder / f"{name}.log")

    def _etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.network.etcd_port, self.network.peer_port))
        return self._daemon(
            "etcd", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}")

    def _apiserver(self, fake):
        keys = self.keys.folder
        policy = self.folder / "audit.json"
        policy.write_text(json.dumps(POLICY))
        return self._daemon(
            "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.network.etcd_port}",
            "--bind-address", "127.0.0.1" if fake else self.network.family.everywhere, "--advertise-address", self.network.api,
            "--secure-port", self.network.api_port, "--cert-dir", self.folder,
            "--tls-cert-file", keys / "apiserver.crt", "--tls-private-key-file", keys / "apiserver.key",
            "--client-ca-file", keys / "ca.crt",
            "--kubelet-client-certificate", keys / "admin.crt", "--kubelet-client-key", keys / "admin.key",
            "--kubelet-preferred-address-types", "InternalIP",
            "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", keys / "accounts.pub",
            "--service-account-signing-key-file", keys / "accounts.key",
            "--service-cluster-ip-range", self.network.family.services, "--authorization-mode", "Node,RBAC",
            "--enable-admission-plugins", "NodeRestriction",
            *(["--disable-admission-plugins", "TaintNodesByCondition"] if fake else []),
            # 1.37 has no endpoints on the loopback, and ends with that
            *(["--endpoint-reconciler-type", "none"] if fake and self.minor >= 37 else []),
            "--audit-policy-file", policy, "--audit-log-path", self.audit_log,
            "--allow-privileged", "--profiling=false", "--runtime-config", ",".join(self.apis),
            "--feature-gates", self.gates)

    def _controllers(self, fake):
        keys = self.keys.folder
        return self._daemon(
            "kube-controller-manager", "--kubeconfig", self.folder / "controllers.conf", "--leader-elect=false",
            "--bind-address", "127.0.0.1", "--secure-port", self.network.others[0], "--cert-dir", self.folder,
            "--use-service-account-credentials", "--service-account-private-key-file", keys / "accounts.key",
            "--root-ca-file", keys / "ca.crt",
            # the default of 20 requests a second makes its start 5 s
            "--kube-api-qps", 300, "--kube-api-burst", 600, "--profiling=false",
            "--controllers", "*,-node-lifecycle-controller" if fake else "*",
            # a lost node is noticed in seconds, as in clusters that are set up for it
            "--node-monitor-period", "1s", "--node-monitor-grace-period", "8s",
            "--feature-gates", self.gates)

    def _scheduler(self):
        return self._daemon(
            "kube-scheduler", "--kubeconfig", self.folder / "scheduler.conf", "--leader-elect=false",
            "--bind-address", "127.0.0.1", "--secure-port", self.network.others[1], "--cert-dir", self.folder,
            "--profiling=false", "--feature-gates", self.gates)

    def _dns(self):
        corefile = self.folder / "Corefile"
        corefile.write_text(f"cluster.local:53 {{\n bind {self.network.api}\n errors\n"
                            f" kubernetes {{\n  kubeconfig {self.folder / 'admin.conf'}\n }}\n}}\n")
        return self._daemon("coredns", "-conf", corefile)

    def daemons(self):
        return [each for each in (self.etcd, self.apiserver, self.controllers, self.scheduler, self.dns) if each]

    def start_servers(self):
        self.etcd.start()
        self.apiserver.start()

    def start_others(self):
        """What needs a ready API server."""
        for each in (self.controllers, self.scheduler, self.dns):
            if each:
                each.start()

    def wait_ready(self, seconds=READY_S):
        def ready():
            self.etcd.check()
            self.apiserver.check()
            try:
                return self.admin.request("GET", self.ready)[0] == 200
            except OSError:
                return False
        wait(lambda: f"the API server is not ready:\n{self.apiserver.tail()}", ready, seconds)

    def wait_accounts(self):
        """New pods in the namespace default are taken from here on."""
        wait(lambda: f"no default service account:\n{self.controllers.tail()}",
             lambda: self.admin.get("v1", "ServiceAccount", "default", "default"), READY_S)

    def close(self):
        for each in reversed(self.daemons()):
            each.kill()
        self.admin.close()
