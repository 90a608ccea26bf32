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
from .live_guest import CALL_S, LiveGuest

NODE = "vm"
API = "resource.k8s.io/v1"
HOST = "10.96.0.1"  # this machine, as the guest sees it; the API server's certificate has that address
UPLINK_MAC = "52:54:00:00:00:01"
UPLINK = ["-netdev", f"user,id=uplink,net=10.96.0.0/24,host={HOST}", "-device",
          f"virtio-net-pci,bus=pcie.0,netdev=uplink,mac={UPLINK_MAC},romfile="]
# a process takes a tenth of a second in a guest: one `ip` for all that it can do at once
SETUP = """
ip -batch - <<E
link set $1 name uplink up
address add 10.96.0.15/24 dev uplink
route add default via 10.96.0.1
link add pods type bridge
address add 10.98.0.1/24 dev pods
link set pods up
E
mkdir -p /run/cdi /run/root /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry; mount --bind / /run/root
"""
SANDBOX = """
ip netns add $1
ip -batch - <<E
link add $3 type veth peer name eth0 netns $1
link set $3 master pods up
E
ip -n $1 -batch - <<E
address add $2/24 dev eth0
link set lo up
link set eth0 up
E
"""
PLUGIN_S = CALL_S
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
        self.sh(SETUP, self.interface(UPLINK_MAC))

    def interface(self, mac):
        """The host's interface with this hardware address, awaited."""
        def find():
            found = self.guest.read("/sys/class/net/*/address")
            return next((path.split("/")[4] for path, text in found.items() if text.strip() == mac), None)
        return wait(f"no interface {mac} in the guest", find, PLUGIN_S)

    # ---- the plugin ----

    def start(self, *options):
        self.guest.write("/run/plugin.json", json.dumps({"claims": {"addresses": ["10.9.0.0/16"]}}))
        self.plugin = self.guest.start("sh", "-c", 'exec "$@" >>/run/plugin.log 2>&1', "sh", BUILD / "bin/drarun-plugin", "run", "-v", "--node", NODE, "--drivers", "nic",
                                       "--kubeconfig", self.kubeconfig, "--hook", BUILD / "bin/drarun-attach", "--config", "/run/plugin.json", *options,
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
        self.pods.append(PodHere(self, made, name, claim["metadata"]["uid"]))
        wait(lambda: f"not scheduled:\n{made.describe()}", lambda: made.get()["spec"].get("nodeName"), PLUGIN_S)
        return self.pods[-1]

    def clear(self):
        """Ends all pods, also those that a failed test left."""
        for each in [*self.pods]:
            if each.has_network:
                self.run("sh", "-c", 'for id in $("$1" list -q); do "$1" delete -f $id; done; ip netns del "$2"', "sh",
                         self.programs / "runc", each.name)
            if each.has_devices:
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
        self.has_devices = self.has_network = False

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
        self.has_devices = True
        answer = self.call("prepare")
        assert not answer.get("error") and answer["devices"], answer
        self.devices = [each for device in answer["devices"] for each in device["cdi_device_ids"]]
        return self

    def unprepare(self):
        answer = self.call("unprepare")
        assert not answer.get("error"), answer
        self.has_devices = False

    def sandbox(self):
        self.has_network = True
        self.node.sh(SANDBOX, self.name, self.address, f"to{self.link}")
        return self

    def network_bytes(self):
        """What the pod sent over the pod network."""
        count, = self.node.guest.read(f"/sys/class/net/to{self.link}/statistics/rx_bytes").values()
        return int(count)

    def delete(self):
        """The Pod and its claim, as if the kubelet had done all of its part. The claim goes once its devices are free: the scheduler
        looks at waiting pods again when a claim changes, not when one is deleted."""
        self.pod.delete(grace=0)
        wait(lambda: f"still allocated: {self.claim()}", lambda: "allocation" not in self.claim().get("status", {}), PLUGIN_S)
        self.node.api.delete(API, "ResourceClaim", self.name, "default")
        self.node.pods.remove(self)

    def end(self):
        """The sandbox ends: its network namespace dies with the last process in it."""
        self.node.ok("ip", "netns", "del", self.name)
        self.has_network = False

    def edits(self):
        """Of the claim's CDI devices, as a runtime finds them: the specification's own first, once."""
        found, own = {}, {}
        for path, text in self.node.guest.read("/run/cdi/*.json", "/var/run/cdi/*.json").items():
            spec = json.loads(text)
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

    def start(self, script, env=None, binds=(), seconds=CALL_S):
        """Begins a container that runs lines of bash; what this gives waits for its end and is its Result."""
        self.last = f"{self.name}-{next(self.count)}"
        bundle = f"/run/bundles/{self.last}"
        self.node.guest.write(f"{bundle}/config.json", json.dumps(self.config(script, env, binds)))
        return self.node.guest.start(self.node.programs / "runc", "run", "-b", bundle, "--pid-file", self.pid_file(), self.last, seconds=seconds)

    def pid_file(self):
        """Of the last container: there once its program runs."""
        return f"/run/bundles/{self.last}/pid"

    def runc(self, verb, *words):
        return self.node.run(self.node.programs / "runc", verb, self.last, *words)

    def await_container(self):
        """Until the last one runs."""
        wait(lambda: f"container {self.last} does not run", lambda: self.node.guest.read(self.pid_file()), PLUGIN_S)

    def kill_container(self):
        assert self.runc("kill", "KILL").rc == 0

    def run(self, script, **how):
        return self.start(script, **how)()
