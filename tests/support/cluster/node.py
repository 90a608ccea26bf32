# SPDX-License-Identifier: Apache-2.0
"""A node: one set of namespaces (mount, network, uts, ipc, pid, cgroup) with a containerd and a kubelet of
its own. Its process 1 takes everything along: kill() is a power loss."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from .api import wait
from .daemon import GO
from .image import IMPORT, copy_store
from .network import NOWHERE
from .state import note_spent, remove_cgroup
from ..build import SOURCE, patience

READY_S = 90
SANDBOX = "localhost/pause:1"
ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'  # cgroups, then a command


def cgroups():
    """{controllers: (mount point, path)} of this process, "" for the unified hierarchy."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        wanted = set(controllers.split(",")) - {""}
        for _, where, kind, options, *_ in mounts:
            if kind == "cgroup2" and not wanted or kind == "cgroup" and wanted and wanted <= set(options.split(",")):
                found[controllers] = Path(where) / path.lstrip("/")
                break
    return found


class Node:
    """name, address, folder. run() runs a command in it as a daemon of the node would."""

    ready_s = READY_S

    def __init__(self, cluster, index):
        self.cluster, self.index = cluster, index
        self.family = cluster.network.family
        self.name, self.address = f"n{index}", self.family.node_address(index)
        self.folder = cluster.folder / self.name
        self.process, self.pid = None, None
        self.cgroups = self._make_cgroups()

    @property
    def runtime(self):
        """The OCI runtime that containerd calls."""
        return self.cluster.programs / "runc"

    def _make_cgroups(self):
        made = []
        for where in cgroups().values():
            path = where / f"{self.cluster.folder.name}-{self.name}"
            path.mkdir(exist_ok=True)
            self.cluster.state.note_cgroup(path)
            if (path / "cpuset.cpus").exists() and (path / "tasks").exists():  # v1 starts with none
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (path / file).write_text((where / file).read_text())
            made.append(path)
        return made

    def start(self, store):
        """With the images of this store; the kubelet is started once the API server is there."""
        for name in ("kubelet", "log", "cni", "bin"):
            (self.folder / name).mkdir(parents=True)
        copy_store(store, self.folder / "containerd")
        shutil.copy(self.cluster.programs / "pause", self.folder / "bin" / "pause")
        self._write_settings()
        self._boot()

    def boot(self):
        """Power is back after kill(): the disk is as it was, /run is empty."""
        self._boot()
        self.start_kubelet()

    def _boot(self):
        """Makes the namespaces and starts containerd."""
        go = self.folder / "go"
        go.unlink(missing_ok=True)
        init = [SOURCE / "tests/cluster/node-init.sh", self.folder, self.name, f"{self.address}/{self.family.bits}", self.family.api]
        with open(self.folder / "init.log", "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.cluster.under, "sh", "-c", ENTER, "sh",
                 *map(str, self.cgroups), "--", "unshare", "--mount", "--net", "--uts", "--ipc", "--cgroup", "--pid",
                 "--fork", "--kill-child", "--mount-proc", *map(str, init)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.pid = wait(self._tail, self._find_init, 60, 0.01)
        for path in self.cgroups:
            if (path / "cgroup.controllers").exists():  # version 2: groups below one that has processes get no controllers
                (path.parent / "cgroup.procs").write_text(f"{self.process.pid}\n")
        self._cable()
        go.touch()
        wait(self._tail, self._settled, 60, 0.01)
        for other in self.cluster.nodes:
            if other is not self:
                self.ok(["ip", "route", "add", self.family.pod_network(other.index), "via", other.address])
        self.start_containerd()

    def _find_init(self):
        """The pid, seen from here, of process 1 once it is in a network of its own."""
        assert self.process.poll() is None, self._tail()
        try:
            child = int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())
            there, here = (os.readlink(f"/proc/{pid}/ns/net") for pid in (child, self.cluster.network.pid))
            return child if there != here else None
        except (OSError, ValueError):
            return None

    def _settled(self):
        assert self.process.poll() is None, self._tail()
        return Path(f"/proc/{self.pid}/comm").read_text() == "pause\n"

    def _tail(self):
        return f"node {self.name} does not start:\n" + "".join(
            f"-- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in self.folder.glob("*.log"))

    def _cable(self):
        """eth0 to the API server and the other nodes, rail0 to the rails of the other nodes."""
        run = self.cluster.network.run
        for end, name, bridge in ((f"v{self.name}", "eth0", "br0"), (f"r{self.name}", "rail0", "br1")):
            # after a power loss the old one goes when the kernel gets to it
            subprocess.run([*self.cluster.under, "ip", "link", "del", end], capture_output=True)
            run("ip", "link", "add", end, "type", "veth", "peer", "name", name, "netns", self.pid)
            run("ip", "link", "set", end, "master", bridge, "up")
        run("ip", "route", "replace", self.family.pod_network(self.index), "via", self.address)

    def _write_settings(self):
        programs, folder, keys = self.cluster.programs, self.folder, self.cluster.keys
        keys.sign(self.name, f"/O=system:nodes/CN=system:node:{self.name}", [f"DNS:{self.name}", f"IP:{self.address}"])
        keys.kubeconfig(folder / "kubeconfig", self.cluster.plane.server, keys.certificate(self.name))
        (folder / "resolv.conf").write_text(f"nameserver {self.family.api}\n")
        (folder / "containerd.toml").write_text(CONTAINERD.format(
            sandbox=SANDBOX, programs=programs, folder=folder, runtime=self.runtime))
        (folder / "cni" / "10-bridge.conflist").write_text(json.dumps({
            "cniVersion": "1.0.0", "name": "pods", "plugins": [{
                "type": "bridge", "bridge": "cni0", "isGateway": True, "mtu": 1500, "ipam": {
                    "type": "host-local", "dataDir": "/run/cni-ipam", "routes": [{"dst": self.family.default}],
                    "ranges": [[{"subnet": self.family.pod_network(self.index)}]]}}]}))
        (folder / "kubelet.yaml").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": self.family.everywhere,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(keys.folder / "ca.crt")}},
            "authorization": {"mode": "Webhook"}, "tlsCertFile": str(keys.folder / f"{self.name}.crt"),
            "tlsPrivateKeyFile": str(keys.folder / f"{self.name}.key"),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,  # from 1.35 the kubelet refuses it unless told not to
            "failSwapOn": False, "oomScoreAdj": 0, "clusterDomain": "cluster.local", "clusterDNS": [self.family.api],
            "resolvConf": str(folder / "resolv.conf"), "podLogsDir": "/var/log/pods",
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100, "enforceNodeAllocatable": ["pods"], "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "2s", "volumePluginDir": "/var/lib/kubelet/volume-plugins",
            "featureGates": {}, **self.cluster.kubelet}))

    @property
    def under(self):
        """Words before a command that runs in all of the node's namespaces."""
        return ["nsenter", "-t", str(self.pid), "-m", "-n", "-u", "-i", "-C", "-p", "--wdns=/"]

    def _inside(self):
        """Words before a command that runs in the node's cgroups. From outside: where namespaces delegate (nsdelegate of version
        2) nobody enters one from within."""
        found = [path / "init" if (path / "init").exists() else path for path in self.cgroups]
        return ["sh", "-c", ENTER, "sh", *map(str, found), "--"]

    def run(self, argv, timeout=60, inside=False, **how):
        """Runs a command on the node, with its programs and sockets, inside: in its cgroups, too; its CompletedProcess."""
        env = {**os.environ, "PATH": f"{self.cluster.programs}:{os.environ['PATH']}",
               "KUBECONFIG": str(self.folder / "kubeconfig"), **(how.pop("env", None) or {})}
        return subprocess.run([*(self._inside() if inside else ()), *self.under, *map(str, argv)], capture_output=True, text=True,
                              timeout=patience(timeout), env=env, **how)

    def ok(self, argv, timeout=60, **how):
        """run()'s output, with status 0."""
        done = self.run(argv, timeout, **how)
        assert done.returncode == 0, f"{self.name}: {argv}: {done.stderr}{done.stdout}"
        return done.stdout

    def path(self, path):
        """A path of the node's, from here."""
        return Path(f"/proc/{self.pid}/root{path}")

    def daemon(self, name, argv):
        """Starts argv as a child of process 1, in the node's cgroups, its output added to NAME.log."""
        script = 'log=$1; shift; setsid "$@" >>"$log" 2>&1 </dev/null &'
        self.ok(["sh", "-c", script, "sh", self.folder / f"{name}.log", *argv], inside=True, env=GO)

    def kill_daemon(self, name):
        """SIGKILL to what daemon() started from this program, and waits for its end."""
        self.run(["pkill", "-KILL", "-x", name[:15]])
        wait(f"{name} on {self.name} survives SIGKILL", lambda: self.run(["pgrep", "-x", name[:15]]).returncode, 60)

    def start_containerd(self):
        self.daemon("containerd", [self.cluster.programs / "containerd", "--config", self.folder / "containerd.toml"])

    def stop_containerd(self):
        """Containers go on; the kubelet cannot reach them."""
        self.kill_daemon("containerd")

    def wait_containerd(self):
        wait(self._tail, lambda: self.run(["ctr", "version"]).returncode == 0, self.ready_s, 0.03)

    def start_import(self, packed):
        """The process that imports an image."""
        self.wait_containerd()
        return subprocess.Popen([*self.under, self.cluster.programs / "ctr", *IMPORT, packed], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start_kubelet(self):
        again = 'while "$@"; [ $? = 1 ]; do sleep 0.2; done'  # as systemd does: it ends when containerd is not whole yet
        self.daemon("kubelet", [
            "sh", "-c", again, "sh", self.cluster.programs / "kubelet", "--config", self.folder / "kubelet.yaml", "--kubeconfig",
            self.folder / "kubeconfig", "--hostname-override", self.name, "--node-ip", self.address,
            "--root-dir", "/var/lib/kubelet", "--cert-dir", "/var/lib/kubelet/pki"])

    def stop_kubelet(self):
        """Containers go on; nobody speaks for the node."""
        self.kill_daemon("kubelet")

    def condition(self, kind="Ready"):
        """The status of a condition of the Node object: "True", "False", "Unknown" or None."""
        node = self.cluster.api.get("v1", "Node", self.name)
        return next((each["status"] for each in (node or {}).get("status", {}).get("conditions", ())
                     if each["type"] == kind), None)

    def wait_ready(self, seconds=None):
        wait(self._tail, lambda: self.condition() == "True", seconds or self.ready_s, 0.03)

    def cut(self):
        """Takes the node's cable out: the API, other nodes and their pods are out of reach."""
        self.cluster.network.run("ip", "link", "set", f"v{self.name}", "down")

    def mend(self):
        self.cluster.network.run("ip", "link", "set", f"v{self.name}", "up")

    def cut_api(self, mend=False):
        """Only the API server and DNS are out of reach, in silence; what is on the node goes on."""
        self.ok(["ip", "neigh", "del" if mend else "replace", self.family.api,
                 *([] if mend else ["lladdr", NOWHERE, "nud", "permanent"]), "dev", "eth0"])

    def kill(self):
        """Power loss: everything on the node ends at once, its disk stays."""
        self.end()
        self.wait_end()
        for path in self.cgroups:  # a kubelet takes 3 s for each container's that it finds at its start and knows nothing of
            for left in path.iterdir():
                if left.is_dir():
                    remove_cgroup(left, kill=False)

    def end(self):
        """kill() without waiting."""
        if self.pid is not None:
            note_spent(self.cgroups[0], self.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.kill()

    def wait_end(self):
        if self.process is not None:
            self.process.wait()
        if self.pid is not None:
            wait(f"process 1 of {self.name} survives SIGKILL", lambda: not Path(f"/proc/{self.pid}").exists(), 60, 0.01)
        self.process = self.pid = None


CONTAINERD = """version = 3
root = '/var/lib/containerd'
state = '/run/containerd'
disabled_plugins = ['io.containerd.tracing.processor.v1.otlp', 'io.containerd.internal.v1.tracing',
    'io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.erofs']
[grpc]
address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '{sandbox}'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{programs}']
conf_dir = '{folder}/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '{runtime}'
SystemdCgroup = false
[plugins.'io.containerd.nri.v1.nri']
disable = false
# as etcd, which does not sync here either: kill() ends processes, and the machine keeps what they wrote
[plugins.'io.containerd.metadata.v1.bolt']
no_sync = true
"""
