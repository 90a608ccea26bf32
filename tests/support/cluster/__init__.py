# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on this machine: the control plane, and nodes made of namespaces (tests/cluster)."""
import contextlib
import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ..build import SOURCE, patience
from .api import never, wait
from . import image as packing
from .audit import Audit
from .daemon import GO, Daemon
from .devices import CLASSES, Driver, fake_machine
from .guest import GuestMachine
from .keys import Authority
from .network import IPV4, Bridge, Loopback
from .node import Node, cgroups
from .objects import Namespace, held_to_be_clean
from .plane import Plane
from .pods import Pod, cut
from .state import State


@functools.cache
def fetched():
    """The directory of the programs, or None and the reason why they are not there."""
    run = subprocess.run([SOURCE / "scripts" / "fetch-cluster", "--cached"], capture_output=True, text=True)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return Path(run.stdout.strip()), ""


@functools.cache
def missing(nodes):
    """Why this machine cannot have such a cluster, or None."""
    programs, reason = fetched()
    if not programs:
        return reason
    for word in ("openssl", "setpriv", *(("ip", "nsenter", "unshare", "busybox") if nodes else ())):
        if not shutil.which(word):
            return f"no {word}; run scripts/setup --test"
    return _no_nodes() if nodes else None


def _no_nodes():
    if os.getuid() != 0:
        return "nodes of a cluster are made of namespaces and cgroups, which needs root"
    for where in cgroups().values():
        if not os.access(where, os.W_OK):
            return f"{where} cannot be written, and nodes of a cluster are cgroups"
    run = subprocess.run(["unshare", "--mount", "--net", "--uts", "--ipc", "--cgroup", "--pid", "--fork", "true"],
                         capture_output=True, text=True)
    return f"cannot make namespaces: {run.stderr.strip()}" if run.returncode else None


# Of all users' processes together: a cluster of two nodes takes 22, and a kubelet without one does not become ready.
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_LEAST = 1024  # the kernel's default is 128


def allow_inotify():
    """For as many clusters at a time as there may be, beside what else the machine does."""
    if int(INOTIFY.read_text()) < INOTIFY_LEAST and os.access(INOTIFY, os.W_OK):
        INOTIFY.write_text(f"{INOTIFY_LEAST}\n")


class Cluster:
    """nodes=0: the control plane alone, on the loopback; nodes are objects. close() ends all of it. claims: the one
    version of resource.k8s.io that is served. kubelet: more of each node's KubeletConfiguration. family: of the addresses of
    nodes and pods (network.IPV6). images: those that nodes have from their start, which is cheaper than to import them later: what
    changes most often last. guests: nodes that are machines of their own, behind the others: for each what GuestMachine takes.
    taints: whether the API server keeps the taints of devices.

    api: requests as the administrator. under: words before a command that runs in the network namespace
    of the API server. etcd, apiserver, controllers, scheduler: their Daemons. audit: the audit log."""

    def __init__(self, nodes=0, gang=False, images=("busybox",), claims=None, kubelet=None, family=IPV4, guests=(), taints=True):
        reason = missing(nodes + len(guests))
        if reason:
            pytest.skip(reason)
        self.programs = fetched()[0]
        self.state, self.network, self.plane, self.kubelet = None, None, None, kubelet or {}
        self.nodes, self.fake_kubelet, self.imported = [], None, set(images)
        try:
            self._start(nodes, gang, images, claims, family, guests, taints)
        except BaseException:
            self.close()
            raise

    def _start(self, nodes, gang, wanted, claims, family, guests, taints):
        self.state = State()
        self.folder = self.state.path
        allow_inotify()
        self.network = Bridge(family) if nodes or guests else Loopback()
        self.under = list(self.network.under)
        self.keys = Authority(self.folder / "keys")
        self.plane = Plane(self.programs, self.folder, self.network, self.keys, not (nodes or guests), gang, claims, taints)
        self.api, self.audit = self.plane.admin, Audit(self.plane.audit_log)
        self.etcd, self.apiserver = self.plane.etcd, self.plane.apiserver
        self.controllers, self.scheduler = self.plane.controllers, self.plane.scheduler
        self.plane.start_servers()
        self.nodes = [Node(self, i) for i in range(nodes)]
        self.nodes += [GuestMachine(self, nodes + i, **each) for i, each in enumerate(guests)]
        store = self._store(wanted) if self.nodes else None
        for node in self.nodes:
            node.start(store)
        self.plane.wait_ready()
        self.plane.start_others()
        for node in self.nodes:
            node.start_kubelet()
        self.plane.wait_accounts()
        for node in self.nodes:
            node.wait_ready()

    def _store(self, wanted):
        """A containerd directory with the images that every node has from its start."""
        return packing.store(self.programs, [packing.image(name, self.programs) for name in ("pause", *wanted)])

    def node(self, index):
        return self.nodes[index]

    def image(self, name, root=None, files=None, base=None, config=None):
        """Imports an image into every node; its full name. name: one that image.py knows, which is imported once; or any other,
        for what the directory root holds, or files, {path in the image: file}, on top of the image base."""
        if not root and not files:
            return f"localhost/{name}:1" if name in self.imported else self._import(packing.image(name, self.programs), name)
        below = packing.image(base, self.programs) if base else None
        if base and base not in self.imported:
            self._import(below, base)
        made = None if root else packing.copied(files)
        try:
            return self._import(packing.pack(f"localhost/{name}:1", root or made, config, below), name)
        finally:
            if made:
                shutil.rmtree(made)

    def _import(self, packed, name):
        imports = [node.start_import(packed) for node in self.nodes]
        for each in imports:
            assert each.wait(patience(packing.IMPORT_S)) == 0, f"{packed} is not imported: {each.stderr.read()}"
            each.stderr.close()
        self.imported.add(name)
        return f"localhost/{name}:1"

    def kubeconfig(self, user="admin", groups=(), namespace="default"):
        """A kubeconfig with a client certificate of this user; "admin" may do everything."""
        path = self.folder / f"{user}-{namespace}.conf"
        if not path.exists():
            if not (self.keys.folder / f"{user}.crt").exists():
                self.keys.sign(user, "".join(f"/O={group}" for group in groups) + f"/CN={user}")
            self.keys.kubeconfig(path, self.plane.server, self.keys.certificate(user), namespace)
        return path

    def in_ns(self, argv, timeout=60, **how):
        """Runs a command where the API server is reached, as the administrator unless env says otherwise;
        its CompletedProcess."""
        env = {**os.environ, **GO, "KUBECONFIG": str(self.kubeconfig()), **(how.pop("env", None) or {})}
        return subprocess.run([*self.under, *map(str, argv)], capture_output=True, text=True, timeout=patience(timeout), env=env,
                              **how)

    def kubectl(self, *words, timeout=60, user="admin", input=None):
        """kubectl's output."""
        run = self.in_ns([self.programs / "kubectl", "--kubeconfig", self.kubeconfig(user), *words], timeout,
                         input=input)
        assert run.returncode == 0, f"kubectl {' '.join(map(str, words))}: {run.stderr}"
        return run.stdout

    wait, never = staticmethod(wait), staticmethod(never)

    def namespace(self, name):
        """A new namespace, with .leftovers(), .rbac_user(role), .token(account) and .remove()."""
        return Namespace(self, name)

    def clean_namespace(self, name, seconds=60):
        """with cluster.clean_namespace("x") as namespace: fails when anything is left in it at the end."""
        return held_to_be_clean(self, name, seconds)

    def device_classes(self):
        """Makes the classes gpu.nvidia.com and dranet, once."""
        for each in CLASSES:
            if not self.api.get("resource.k8s.io/v1", "DeviceClass", each["metadata"]["name"]):
                self.api.make(each)

    @contextlib.contextmanager
    def own_classes(self, *classes):
        """With these DeviceClasses in place of those of their names; none of them is left."""
        names = {each["metadata"]["name"] for each in classes}

        def drop():
            for found in self.api.get("resource.k8s.io/v1", "DeviceClass"):
                if found["metadata"]["name"] in names:
                    self.api.delete("resource.k8s.io/v1", "DeviceClass", found["metadata"]["name"])
        drop()
        self.api.make(*classes)
        yield
        drop()

    def driver(self, index, name, devices):
        """A Driver for real node index, not yet started: devices.gpus(8), devices.nics(8, index)."""
        return Driver(self.nodes[index], name, devices)

    def fake_nodes(self, count, machine, resources=None, prefix="fake", alter=None):
        """Adds nodes that are objects: a captured machine's slices and labels. Pods bound to them run, in
        what the API says, until they are deleted or the seconds of their annotation
        test.drarun.dev/ends have passed; with test.drarun.dev/stays they never start. alter(node, *slices) changes
        the objects of one before."""
        assert not self.nodes, "nodes that nobody speaks for are lost beside real ones"
        self.device_classes()
        if self.fake_kubelet is None:
            self.fake_kubelet = Daemon("fake-kubelet", [self.programs / "fake-kubelet", "-kubeconfig",
                                                        self.kubeconfig()], self.folder / "fake-kubelet.log").start()
        for i in range(count):
            objects = fake_machine(machine, f"{prefix}{i}", resources)
            if alter:
                alter(*objects)
            self.api.make(*objects)

    def pod(self, name, command=None, **how):
        """A Pod, not yet made: image=, node="n0", namespace=, container={...}, and fields of its spec."""
        return Pod(self, name, command, **how)

    cut = staticmethod(cut)

    def logs(self):
        return "\n".join(f"== {each.name}\n{each.tail()}" for each in self.plane.daemons())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for node in self.nodes:
            node.end()
        for node in self.nodes:
            node.wait_end()
        if self.fake_kubelet:
            self.fake_kubelet.kill()
        for part in (self.plane, self.network, self.state):
            if part:
                part.close()
        self.state = self.network = self.plane = None
