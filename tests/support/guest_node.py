# SPDX-License-Identifier: Apache-2.0
"""A guest as a node: our plugin in it before a real API server and scheduler on this machine, and what the kubelet and
its runtime would do, call by call: claims are prepared over the plugin's socket, and containers get the CDI edits that
it names and start under runc, with a network namespace of their own."""
import itertools
import json

from .build import BUILD
from .cluster import fetched
from .cluster.api import wait
from .cluster.plugin import NIC, device_class
from .live_guest import LiveGuest

NODE = "vm"
API = "resource.k8s.io/v1"
HOST = "10.96.0.1"  # this machine, as the guest sees it; the API server's certificate has that address
UPLINK = ["-netdev", f"user,id=uplink,net=10.96.0.0/24,host={HOST}", "-device",
          "virtio-net-pci,bus=pcie.0,netdev=uplink,mac=52:54:00:00:00:01,romfile="]
SETUP = """
for path in /sys/class/net/eth*; do [ "$(cat $path/address)" = 52:54:00:00:00:01 ] && up=${path##*/}; done
ip link set $up name uplink up; ip address add 10.96.0.15/24 dev uplink; ip route add default via 10.96.0.1
ip link add pods type bridge; ip address add 10.98.0.1/24 dev pods; ip link set pods up
mkdir -p /run/cdi /run/root /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry; mount --bind / /run/root
"""
SANDBOX = """
ip netns add $1; ip link add $3 type veth peer name eth0 netns $1; ip link set $3 master pods up
ip -n $1 address add $2/24 dev eth0; ip -n $1 link set lo up; ip -n $1 link set eth0 up
"""
PLUGIN_S = 90
ADDRESSES = itertools.count(11)


def node_object(name=NODE):
    room = {"cpu": "8", "memory": "64Gi", "pods": "100"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": room, "allocatable": room, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Test", "message": "a guest"}]}}


class GuestNode:
    """cluster: a control plane without nodes. rdma: "shared" or "exclusive". start() begins the plugin."""

    def __init__(self, cluster, rdma="shared", options=(), folders=(), modules=("e1000e",), **how):
        self.cluster, self.api, self.programs = cluster, cluster.api, fetched()[0]
        self.kubeconfig = cluster.folder / "guest.conf"
        if not self.kubeconfig.exists():
            cluster.keys.kubeconfig(self.kubeconfig, f"https://{HOST}:{cluster.network.api_port}",
                                    cluster.keys.certificate("admin"))
        if not self.api.get("v1", "Node", NODE):
            self.api.make(node_object(), device_class())
        self.rdma, self.modules = rdma, modules
        self.guest = LiveGuest(options=[*UPLINK, *options], folders=[cluster.folder, self.programs.resolve(), *folders], **how)
        self.run, self.ok, self.sh, self.qmp = self.guest.run, self.guest.ok, self.guest.sh, self.guest.qmp
        self.plugin, self.pods = None, []
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self):
        """In exclusive mode before any other network namespace: the mode cannot be changed then."""
        self.ok("modprobe", "ib_core", f"netns_mode={0 if self.rdma == 'exclusive' else 1}")
        self.ok("modprobe", "-a", "virtio_net", "rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "bridge", *self.modules)
        wait("no uplink in the guest", lambda: not self.run(
            "grep", "-qsx", "52:54:00:00:00:01", "/sys/class/net/eth0/address", "/sys/class/net/eth1/address",
            "/sys/class/net/eth2/address", "/sys/class/net/eth3/address", "/sys/class/net/eth4/address").rc, 30)
        self.sh(SETUP)

    def interface(self, mac):
        """The host's interface with this hardware address, awaited."""
        return wait(f"no interface {mac} in the guest", lambda: self.run(
            "sh", "-c", 'grep -lix "$1" /sys/class/net/*/address | cut -d/ -f5', "sh", mac).out.strip(), 20)

    # ---- the plugin ----

    def start(self, *options):
        self.plugin = self.guest.start("sh", "-c", 'exec "$@" >>/run/plugin.log 2>&1', "sh", BUILD / "bin/drarun-plugin", "run", "-v", "--node", NODE, "--drivers", "nic",
                                       "--kubeconfig", self.kubeconfig, "--hook", BUILD / "bin/drarun-attach", *options,
                                       seconds=3600)
        return self

    def stop(self, signal="TERM"):
        """Its end."""
        self.ok("pkill", f"-{signal}", "-x", "drarun-plugin")
        return self.plugin()

    def log(self):
        return self.run("tail", "-c", "4000", "/run/plugin.log").out

    def stuck(self):
        """Where the plugin is, for messages about calls that do not end."""
        return self.run("sh", "-c", "for each in $(pgrep -x drarun-plugin); do cat /proc/$each/status /proc/$each/stack; done; "
                                    "cat /proc/net/tcp; dmesg | tail -n 20").out

    def published(self):
        """{its name: the device}, as the API server has them."""
        return {each["name"]: each for found in self.api.get(API, "ResourceSlice") if found["spec"]["driver"] == NIC
                for each in found["spec"].get("devices", ())}

    def shown(self):
        """What is published, in short."""
        return {name: ({key: value for key, value in each["attributes"].items() if key.startswith("dra.net/")}, each.get("taints"))
                for name, each in self.published().items()}

    def wait_published(self, condition, what):
        return wait(lambda: f"{what}: {self.shown()}\n{self.log()}", lambda: condition(self.published()), PLUGIN_S)

    # ---- the kubelet ----

    def pod(self, name, selectors=(), config=None, count=1, **spec):
        """A Pod with a claim of its own name, and fields of its spec; awaited until the scheduler has allocated and bound it. A
        Pod."""
        exactly = {"deviceClassName": "nic.drarun.dev", "count": count,
                   **({"selectors": [{"cel": {"expression": each}} for each in selectors]} if selectors else {})}
        devices = {"requests": [{"name": "nic", "exactly": exactly}]}
        if config:
            devices["config"] = [{"requests": ["nic"], "opaque": {"driver": NIC, "parameters": config}}]
        claim = self.api.make({"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"},
                               "spec": {"devices": devices}})
        made = self.cluster.pod(name, ["true"], resourceClaims=[{"name": "nic", "resourceClaimName": name}], **spec,
                                container={"resources": {"claims": [{"name": "nic"}]}}).make()
        wait(lambda: f"not scheduled:\n{made.describe()}", lambda: made.get()["spec"].get("nodeName"), PLUGIN_S)
        self.pods.append(PodHere(self, made, name, claim["metadata"]["uid"]))
        return self.pods[-1]

    def clear(self):
        """Ends all pods, also those that a failed test left."""
        for each in [*self.pods]:
            self.run("sh", "-c", 'for id in $("$1" list -q); do "$1" delete -f $id; done; ip netns del "$2"', "sh",
                     self.programs / "runc", each.name)
            each.call("unprepare")
            each.delete()

    def close(self):
        self.guest.close()


class PodHere:
    """A pod on the guest: prepare(), sandbox(), containers, end(), unprepare(), as the kubelet orders them."""

    SOCKET = f"/var/lib/kubelet/plugins/{NIC}/dra.sock"

    def __init__(self, node, pod, name, uid):
        self.node, self.pod, self.name, self.uid = node, pod, name, uid
        self.address = f"10.98.0.{next(ADDRESSES)}"
        self.link = self.address.rpartition(".")[2]  # short enough for an interface's name
        self.devices, self.count, self.last = [], itertools.count(), None

    def claim(self):
        return self.node.api.get(API, "ResourceClaim", self.name, "default")

    def words(self, verb):
        """The kubelet's call as a command of the guest."""
        return [self.node.programs / "dra-calls", self.SOCKET, verb, "default", self.name, self.uid]

    def call(self, verb):
        """What the driver answers of the claim."""
        done = self.node.run(*self.words(verb))
        assert done.rc == 0, f"{done}\n{self.node.log()}\n{self.node.stuck()}"
        return json.loads(done.out)

    def prepare(self):
        answer = self.call("prepare")
        assert not answer.get("error") and answer["devices"], answer
        self.devices = [each for device in answer["devices"] for each in device["cdi_device_ids"]]
        return self

    def unprepare(self):
        answer = self.call("unprepare")
        assert not answer.get("error"), answer

    def sandbox(self):
        self.node.sh(SANDBOX, self.name, self.address, f"to{self.link}")
        return self

    def network_bytes(self):
        """What the pod sent over the pod network."""
        return int(self.node.ok("cat", f"/sys/class/net/to{self.link}/statistics/rx_bytes"))

    def delete(self):
        """The Pod and its claim, as if the kubelet had done all of its part."""
        self.pod.delete(grace=0)
        self.node.api.delete(API, "ResourceClaim", self.name, "default")
        self.node.pods.remove(self)

    def end(self):
        """The sandbox ends: its network namespace dies with the last process in it."""
        self.node.sh("ip netns del $1", self.name)

    def edits(self):
        """Of the claim's CDI devices, as a runtime finds them: the specification's own first, once."""
        found, own = {}, {}
        for path in self.node.ok("sh", "-c", "ls /run/cdi/*.json /var/run/cdi/*.json 2>/dev/null || true").split():
            spec = json.loads(self.node.ok("cat", path))
            found |= {f"{spec['kind']}={each['name']}": each["containerEdits"] for each in spec["devices"]}
            own |= {f"{spec['kind']}={each['name']}": (path, spec.get("containerEdits", {})) for each in spec["devices"]}
        return [*dict(own[name] for name in self.devices).values(), *(found[name] for name in self.devices)]

    def config(self, script, env, binds):
        """The container's OCI configuration: this machine's files, the sandbox' network, the claim's edits."""
        granted = [f"CAP_{name}" for name in ("NET_RAW", "IPC_LOCK", "SYS_RESOURCE", "KILL", "SETUID", "SETGID")]
        plain = ["nosuid", "nodev"]
        bound = [{"destination": str(path), "type": "bind", "source": str(path), "options": ["rbind", "ro"]}
                 for path in (*binds, BUILD)]
        made = {"ociVersion": "1.0.2", "hostname": self.name, "root": {"path": "/run/root", "readonly": True},
                "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}, "args": ["bash", "-c", script],
                            "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                                    *(f"{key}={value}" for key, value in (env or {}).items())],
                            "capabilities": {each: granted for each in ("bounding", "effective", "permitted")},
                            "rlimits": [{"type": "RLIMIT_MEMLOCK", "soft": 1 << 62, "hard": 1 << 62}]},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                           {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*plain, "ro"]},
                           {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                           {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": plain},
                           {"destination": "/run", "type": "tmpfs", "source": "tmpfs", "options": plain},
                           {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": plain}, *bound],
                "linux": {"namespaces": [*({"type": kind} for kind in ("pid", "ipc", "uts", "mount")),
                                         {"type": "network", "path": f"/run/netns/{self.name}"}],
                          "resources": {"devices": [{"allow": False, "access": "rwm"}]}, "devices": []}}
        for edit in self.edits():
            self._apply(edit, made)
        return made

    def _apply(self, edit, made):
        for node in edit.get("deviceNodes", ()):
            major, minor = node.get("major", 0), node.get("minor", 0)
            if not major:
                major, minor = (int(word, 16) for word in self.node.ok("stat", "-c", "%t %T", node["path"]).split())
            made["linux"]["devices"].append({"path": node["path"], "type": "c", "major": major, "minor": minor, "fileMode": 0o666})
            made["linux"]["resources"]["devices"].append(
                {"allow": True, "type": "c", "major": major, "minor": minor, "access": "rwm"})
        for hook in edit.get("hooks", ()):
            made.setdefault("hooks", {}).setdefault(hook["hookName"], []).append(
                {key: value for key, value in hook.items() if key != "hookName"})
        for mount in edit.get("mounts", ()):
            made["mounts"].append({"destination": mount["containerPath"], "type": "bind", "source": mount["hostPath"],
                                   "options": mount["options"]})
        made["process"]["env"] += edit.get("env", [])

    def start(self, script, env=None, binds=(), seconds=60):
        """Begins a container that runs lines of bash; what this gives waits for its end and is its Result."""
        self.last = f"{self.name}-{next(self.count)}"
        bundle = f"/run/bundles/{self.last}"
        self.node.ok("mkdir", "-p", bundle)
        self.node.guest.write(f"{bundle}/config.json", json.dumps(self.config(script, env, binds)))
        return self.node.guest.start(self.node.programs / "runc", "run", "-b", bundle, self.last, seconds=seconds)

    def runc(self, verb, *words):
        return self.node.run(self.node.programs / "runc", verb, self.last, *words)

    def await_container(self):
        """Until the last one runs."""
        wait(lambda: f"container {self.last} does not run", lambda: '"status": "running"' in self.runc("state").out, PLUGIN_S)

    def kill_container(self):
        assert self.runc("kill", "KILL").rc == 0

    def run(self, script, **how):
        return self.start(script, **how)()
