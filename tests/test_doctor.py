# SPDX-License-Identifier: Apache-2.0
"""drarun doctor: each check with what is healthy and what is broken, on trees of files and on a real API server."""
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from support.build import BUILD, SOURCE, patience
from support.cluster import Cluster
from support.cluster.devices import fake_machine, fixture
from support.sysfs_tree import make_tree
from test_input import on_terminal

DRARUN = BUILD / "bin" / "drarun"
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            {files:<20} {files:<20} files
Max locked memory         {memlock:<20} {memlock:<20} bytes
"""
CONTAINERD_2 = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\n"
CONTAINERD_17 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'
ACS = 0x000D


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, bytes):
        file.write_bytes(text)
    else:
        file.write_text(text)


def bridges(root):
    return [each for each in (root / "sys/bus/pci/devices").iterdir() if (each / "class").read_text().startswith("0x0604")]


def pci_config(control, capabilities=((0x0001, 0x140), (ACS, 0))):
    """Configuration space with extended capabilities; ACS's control word."""
    config, at = bytearray(4096), 0x100
    for identity, following in capabilities:
        struct.pack_into("<I", config, at, identity | 1 << 16 | following << 20)
        if identity == ACS:
            struct.pack_into("<H", config, at + 6, control)
        at = following
    return bytes(config)


def functions(root):
    return [each for each in (root / "sys/bus/pci/devices").iterdir() if each not in bridges(root)]


def set_iommu(root, kind):
    for k, each in enumerate(functions(root)):
        write(root, f"sys/kernel/iommu_groups/{k}/type", kind)
        link = each / "iommu_group"
        if not link.is_symlink():
            link.symlink_to(f"/sys/kernel/iommu_groups/{k}")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    root = make_tree(fixture("a4-highgpu-8g"), tmp_path_factory.mktemp("machine") / "root")
    write(root, "var/lib/kubelet/plugins_registry/nic.drarun.dev-reg.sock", "")
    write(root, "var/lib/kubelet/plugins_registry/gpu.nvidia.com-0123-reg.sock", "")
    write(root, "etc/containerd/config.toml", CONTAINERD_2)
    write(root, "sys/module/ib_core/parameters/netns_mode", "N\n")
    write(root, "proc/77/comm", "containerd\n")
    write(root, "proc/77/limits", LIMITS.format(files=1048576, memlock="unlimited"))
    write(root, "proc/meminfo", "MemTotal:       2113929216 kB\n")
    write(root, "proc/self/mounts", "proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n")
    write(root, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n")
    write(root, "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    for bridge in bridges(root):
        (bridge / "config").write_bytes(pci_config(0))
    set_iommu(root, "identity\n")
    return root


@pytest.fixture
def machine(healthy, tmp_path):
    return shutil.copytree(healthy, tmp_path / "root", symlinks=True)


def look(*words, status=0):
    run = subprocess.run([DRARUN, "doctor", "-o", "json", *map(str, words)], capture_output=True, text=True, timeout=patience())
    assert run.returncode == status, run.stderr + run.stdout
    return json.loads(run.stdout)


def of(found, check):
    return [each for each in found["checks"] if each["check"] == check]


def test_healthy_machine(healthy):
    found = look("--root", healthy)
    assert {each["state"] for each in found["checks"]} == {"ok"}, found
    assert not any("change" in each for each in found["checks"])
    assert (found["ok"], found["warnings"], found["failed"], found["unknown"]) == (len(found["checks"]), 0, 0, 0)
    assert of(found, "kubelet")[0]["seen"] == "drivers have registered: gpu.nvidia.com-0123, nic.drarun.dev"
    assert [each["check"] for each in found["checks"]] == [
        "kubelet", "cdi", "links", "port-errors", "mtu", "rdma-netns", "gpudirect", "pcie", "iommu", "acs", "memlock", "nofile",
        "hugepages", "shm"]


def remove(path):
    def do(root):
        target = root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    return do


def put(path, text):
    return lambda root: write(root, path, text)


def each_netdev(file, text):
    def do(root):
        for netdev in (root / "sys/class/net").iterdir():
            if netdev.name.startswith("gpu"):
                write(netdev, file, text)
    return do


def both(*all_of):
    def do(root):
        for one in all_of:
            one(root)
    return do


def closed_modules(root):
    """NVIDIA's own modules, without nvidia_peermem."""
    version = root / "proc/driver/nvidia/version"
    version.write_text(version.read_text().replace("Open Kernel Module", "Kernel Module"))
    shutil.rmtree(root / "sys/module/nvidia_peermem", ignore_errors=True)
    (root / "sys/module").mkdir(exist_ok=True)


BROKEN = {
    "no-kubelet": ("kubelet", remove("var/lib/kubelet"), "failed", "there is no /var/lib/kubelet/plugins_registry", "start the kubelet"),
    "no-driver": ("kubelet", lambda root: [each.unlink() for each in (root / "var/lib/kubelet/plugins_registry").iterdir()],
                  "warning", "no driver has registered", "deploy/plugin.yaml (with Helm: plugin.enabled=true)"),
    "cdi-off": ("cdi", put("etc/containerd/config.toml", CONTAINERD_17 + "  enable_cdi = false\n"), "failed",
                "enable_cdi = false", "enable_cdi = true; then systemctl restart containerd"),
    "cdi-off-beside": ("cdi", put("etc/containerd/conf.d/99.toml", "enable_cdi=false\n"), "failed", "enable_cdi = false", "enable_cdi = true"),
    "cdi-unsaid": ("cdi", put("etc/containerd/config.toml", CONTAINERD_17), "warning", "1.7 off", "enable_cdi = true"),
    "cdi-elsewhere": ("cdi", put("etc/containerd/config.toml", CONTAINERD_2 + 'cdi_spec_dirs = ["/etc/cdi"]\n'), "failed",
                      "cdi_spec_dirs lacks /var/run/cdi", '"/var/run/cdi"]'),
    "cdi-elsewhere-over-lines": ("cdi", put("etc/containerd/config.toml", CONTAINERD_2 + 'cdi_spec_dirs = [\n  "/etc/cdi",\n]\nx = "/run/cdi"\n'), "failed",
                                 "cdi_spec_dirs lacks /var/run/cdi", '"/var/run/cdi"]'),
    "no-runtime": ("cdi", remove("etc"), "unknown", "no configuration of containerd or CRI-O", "enable_cdi"),
    "port-down": ("links", put("sys/class/infiniband/mlx5_3/ports/1/state", "1: DOWN\n"), "warning",
                  "down: mlx5_3 port 1 (DOWN), of 8 RDMA ports", "ip link set dev NAME up"),
    "port-errors": ("port-errors", put("sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error", "12\n"), "warning",
                    "mlx5_3 port 1 symbol_error 12", "cable"),
    "lanes": ("pcie", put("sys/class/infiniband/mlx5_3/device/current_link_width", "8\n"), "warning",
              "NIC 0000:", "reseat"),
    "small-mtu": ("mtu", each_netdev("mtu", "1500\n"), "warning", "gpu0rdma0 1500, gpu1rdma0 1500", "mtu 9000"),
    "shared": ("rdma-netns", put("sys/module/ib_core/parameters/netns_mode", "Y\n"), "warning", "shared: each pod sees", "netns_mode=0"),
    "no-mode": ("rdma-netns", remove("sys/module/ib_core"), "unknown", "does not tell", None),
    "no-gpudirect": ("gpudirect", closed_modules, "failed", "neither nvidia_peermem", "modprobe nvidia-peermem"),
    "iommu": ("iommu", lambda root: set_iommu(root, "DMA-FQ\n"), "warning", "0000:8f:00.0", "iommu=pt"),
    "acs": ("acs", lambda root: (bridges(root)[0] / "config").write_bytes(pci_config(0x1D)), "warning",
            "up to the root: ", "ECAP_ACS+6.w=0000"),
    "acs-hidden": ("acs", lambda root: (bridges(root)[0] / "config").write_bytes(pci_config(0x1D)[:64]), "unknown",
                   "of 1 bridges cannot be read", "as root"),
    "memlock": ("memlock", put("proc/77/limits", LIMITS.format(files=1048576, memlock=65536)), "warning",
                "containerd: 65536 bytes", "LimitMEMLOCK=infinity"),
    "nofile": ("nofile", put("proc/77/limits", LIMITS.format(files=1024, memlock="unlimited")), "warning",
               "containerd: 1024 files", "LimitNOFILE=1048576"),
    "memlock-of-crio": ("memlock", both(put("proc/77/comm", "crio\n"), put("proc/77/limits", LIMITS.format(files=1048576, memlock=65536))), "warning",
                        "crio: 65536 bytes", "/etc/systemd/system/crio.service.d/limits.conf; systemctl daemon-reload; systemctl restart crio"),
    "memlock-of-k3s": ("memlock", both(put("proc/99/comm", "k3s-agent\n"), put("proc/99/limits", LIMITS.format(files=1048576, memlock=65536))), "warning",
                       "k3s-agent: 65536 bytes", "systemctl restart k3s-agent"),
    "memlock-of-rke2": ("memlock", both(put("proc/99/comm", "rke2\n"), put("proc/99/limits", LIMITS.format(files=1048576, memlock=65536)),
                                        put("proc/99/cgroup", "0::/system.slice/rke2-server.service\n")), "warning",
                        "rke2: 65536 bytes", "systemctl restart rke2-server"),
    "no-limits": ("memlock", remove("proc/77"), "unknown", "the limits of no process", None),
    "thp": ("hugepages", put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"), "warning",
            "transparent huge pages are off", "echo madvise"),
    "hugepages": ("hugepages", put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n"), "warning",
                  "all 512 reserved pages", "vm.nr_hugepages"),
    "small-shm": ("shm", put("proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n"), "warning",
                  "/dev/shm has 64 MiB", "remount,size=50%"),
    "no-shm": ("shm", put("proc/self/mounts", "proc /proc proc rw 0 0\n"), "failed", "/dev/shm is no tmpfs", "mount -t tmpfs"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_machine(machine, name):
    """The one check says so and what to change; all others stay as they were."""
    check, spoil, state, seen, change = BROKEN[name]
    spoil(machine)
    found = look("--root", machine, status=1 if state == "failed" else 0)
    (one,) = of(found, check)
    assert one["state"] == state and seen in one["seen"], one
    assert (change in one["change"]) if change else "change" not in one, one
    others = {each["check"]: each["state"] for each in found["checks"] if each["check"] != check}
    unread = {"no-limits": {"nofile": "unknown"}}.get(name, {})
    assert others == dict.fromkeys(others, "ok") | unread


def test_directories_of_cdi_over_lines(machine):
    write(machine, "etc/containerd/config.toml", CONTAINERD_2 + 'cdi_spec_dirs = [\n  "/etc/cdi",\n  "/var/run/cdi",\n]\n')
    assert of(look("--root", machine), "cdi")[0]["state"] == "ok"


def test_hostile_configuration_space(machine):
    """A chain of capabilities that leads to itself, and one that leads out, end."""
    first, second = bridges(machine)[:2]
    (first / "config").write_bytes(pci_config(0, [(0x0001, 0x100)]))
    (second / "config").write_bytes(pci_config(0, [(0x0001, 0xFFC)]))
    assert of(look("--root", machine), "acs")[0]["state"] == "ok"


def test_nics_where_there_are_none():
    """Those of a guest are test_nics_guest.py's."""
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        pytest.skip("this machine has RDMA devices")
    found = look("--nics")
    assert [(each["check"], each["state"], each["seen"]) for each in found["checks"]] == [("nics", "ok", "there is no RDMA device")]
    assert found["nics"] == []


def test_text_of_this_machine():
    run = subprocess.run([DRARUN, "doctor", "--node"], capture_output=True, text=True, timeout=patience())
    assert run.returncode in (0, 1) and run.stderr == ""
    lines = run.stdout.splitlines()
    assert all(line[:8].strip() in ("ok", "warning", "failed", "unknown", "") for line in lines[:-1])
    assert lines[-1].endswith(" unknown") and lines[-1][0].isdigit()


@pytest.mark.parametrize("words,rc,says", [
    (["--root", "/nowhere"], 66, "--root /nowhere: No such file"),
    (["--node", "--context", "x"], 64, "--node checks this machine"),
    (["--nics", "--context", "x"], 64, "--nics checks this machine"),
    (["--nics", "--root", "/"], 64, "--nics opens the devices of this machine"),
    (["machine"], 64, 'unexpected argument "machine"'),
])
def test_wrong_words(words, rc, says):
    run = subprocess.run([DRARUN, "doctor", *words], capture_output=True, text=True, timeout=patience())
    assert run.returncode == rc and says in run.stderr and run.stdout == ""


# ---- a cluster ----

@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


def ask(cluster, *words, user="admin", status=0):
    """status: None where it may be any."""
    run = cluster.in_ns([DRARUN, "doctor", "-o", "json", "--kubeconfig", cluster.kubeconfig(user), *words])
    assert status is None or run.returncode == status, run.stderr + run.stdout
    return json.loads(run.stdout)


def test_empty_cluster(cluster):
    found = ask(cluster, status=1)
    assert of(found, "api")[0] == {"check": "api", "state": "ok", "seen": "resource.k8s.io is served as v1, v1beta2, v1beta1"}
    gates = {each["seen"].split()[0]: each["seen"].split()[2][:3].rstrip(":,") for each in of(found, "feature-gate")}
    assert gates == {"DRADeviceTaintRules": "on", "MutatingAdmissionPolicy": "on", "GenericWorkload": "off"}
    assert of(found, "device-classes")[0]["state"] == "warning"
    (drivers,) = of(found, "drivers")
    assert drivers["state"] == "failed" and "no driver publishes" in drivers["seen"] and "deploy/plugin.yaml (with Helm: plugin.enabled=true)" in drivers["change"]
    (account,) = of(found, "account")
    assert account["state"] == "warning" and account["change"].startswith("drarun install -n default | kubectl apply")
    assert of(found, "rights")[0]["state"] == "ok" and of(found, "plugin")[0]["seen"] == "drarun-plugin is not installed"


def test_cluster_with_devices(cluster):
    machine, other = fake_machine("a4-highgpu-8g", "doctor-1"), fake_machine("a4-highgpu-8g", "doctor-2")
    cluster.api.make(*machine, other[0])
    cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}})
    cluster.kubectl("apply", "-f", "-", input=subprocess.run([DRARUN, "install"], capture_output=True, text=True, check=True).stdout)
    found = ask(cluster)
    assert {each["seen"] for each in of(found, "drivers")} == {"dra.net: 9 devices on 1 nodes", "gpu.nvidia.com: 8 devices on 1 nodes"}, found
    (nodes,) = of(found, "nodes")
    assert nodes["state"] == "warning" and "doctor-2" in nodes["seen"] and "doctor-1" not in nodes["seen"]
    assert of(found, "device-classes")[0]["seen"] == "gpus"
    assert of(found, "account")[0]["state"] == of(found, "pools")[0]["state"] == "ok"
    assert not of(found, "taints")


def prepared(cluster, namespace):
    """A namespace after drarun install; its Role for launchers."""
    cluster.kubectl("create", "namespace", namespace)
    run = subprocess.run([DRARUN, "install", "-n", namespace, "-o", "json"], capture_output=True, text=True, check=True)
    cluster.kubectl("apply", "-f", "-", input=run.stdout)
    return next(each for each in json.loads(run.stdout)["items"] if each["kind"] == "Role")


def test_role_of_an_older_version(cluster):
    """Which an upgrade leaves as it was, and what to do."""
    role = prepared(cluster, "older")
    rule, = (each for each in role["rules"] if each["resources"] == ["resourceclaimtemplates"])
    rule["verbs"].remove("get")
    cluster.kubectl("apply", "-f", "-", input=json.dumps(role))
    cluster.kubectl("patch", "serviceaccount", "drarun-launcher", "-n", "older", "-p", json.dumps({"imagePullSecrets": [{"name": "own"}]}))
    (account,) = of(ask(cluster, "-n", "older", status=None), "account")
    assert account == {"check": "account", "state": "warning", "change": "drarun install -n older --image-pull-secret own | kubectl apply --server-side -f -",
                       "seen": "Role drarun-launcher in namespace older is not this version's, launchers may not: get resourceclaimtemplates"}
    cluster.kubectl("delete", "role", "drarun-launcher", "-n", "older")
    (account,) = of(ask(cluster, "-n", "older", status=None), "account")
    assert account["state"] == "warning" and "has no Role drarun-launcher" in account["seen"]


def test_what_install_printed_is_removed(cluster):
    """As docs/install.md has it: by the same words, for kubectl delete."""
    def printed(*options):
        return subprocess.run([DRARUN, "install", "-n", "removed", *options], capture_output=True, text=True, check=True).stdout

    def there():
        kinds = "serviceaccounts,roles,rolebindings,networkpolicies,clusterroles,clusterrolebindings"
        found = cluster.kubectl("get", kinds, "-n", "removed", "-l", "app.kubernetes.io/name=drarun", "-o", "name").split()
        return made & {re.sub(r"\.[^/]*/", "/", each) for each in found}

    made = {"serviceaccount/drarun-launcher", "role/drarun-launcher", "role/drarun-user", "rolebinding/drarun-launcher", "networkpolicy/drarun",
            "clusterrole/drarun-launcher", "clusterrolebinding/drarun-launcher-removed"}
    cluster.kubectl("create", "namespace", "removed")
    for options in [], ["--cluster-role"], ["--user-role"]:
        cluster.kubectl("apply", "--server-side", "-f", "-", input=printed(*options))
    assert there() == made
    for options in [], ["--cluster-role"], ["--user-role"]:
        cluster.kubectl("delete", "-f", "-", input=printed(*options))
    assert there() == set()


def test_role_that_may_not_be_read(cluster):
    prepared(cluster, "unread")
    cluster.kubectl("create", "role", "reader", "-n", "unread", "--verb=get", "--resource=serviceaccounts")
    cluster.kubectl("create", "rolebinding", "reader", "-n", "unread", "--role=reader", "--user=nobody")

    def account():
        return of(ask(cluster, "-n", "unread", user="nobody", status=None), "account")[0]
    cluster.wait("the right is not there", lambda: "launcher's account" in account()["seen"], 60)
    assert account()["state"] == "ok" and "may not be read by you" in account()["seen"]


def test_pool_that_is_not_all_there(cluster):
    cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "half"}, "spec": {
        "driver": "half.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
        "devices": [{"name": "d", "taints": [{"key": "example.com/broken", "effect": "NoSchedule"}]}]}})
    found = ask(cluster)
    assert of(found, "pools")[0]["state"] == "warning" and of(found, "pools")[0]["seen"].endswith("incomplete pools: p of half.example.com")
    assert of(found, "taints")[0]["seen"] == "1 devices are taken out of use"
    cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", "half")


def test_slices_of_an_older_generation(cluster):
    """They are there until the driver has deleted them, and the scheduler looks at the newest generation alone."""
    names = ["old", "new-1", "new-2"]
    for name, generation, count in zip(names, (1, 2, 2), (2, 2, 2)):
        cluster.api.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": {
            "driver": "new.example.com", "nodeName": "n", "pool": {"name": "p", "generation": generation, "resourceSliceCount": count},
            "devices": [{"name": name}]}})
    assert of(ask(cluster), "pools")[0]["state"] == "ok"
    for name in names:
        cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", name)


def test_user_without_rights(cluster):
    found = ask(cluster, user="nobody", status=1)
    (rights,) = of(found, "rights")
    assert rights["state"] == "failed" and "create jobs" in rights["seen"] and "--user-role" in rights["change"]
    assert of(found, "drivers")[0]["state"] == "unknown" and "403" in of(found, "drivers")[0]["seen"]


def test_user_who_may_not_create_a_part_of_a_job(cluster):
    """All else of the role is not enough."""
    printed = subprocess.run([DRARUN, "install", "-n", "parts", "--user-role", "-o", "json"], capture_output=True, text=True, check=True)
    (role,) = json.loads(printed.stdout)["items"]
    role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["secrets"]]
    cluster.kubectl("create", "namespace", "parts")
    cluster.kubectl("apply", "-f", "-", input=json.dumps(role))
    cluster.kubectl("create", "rolebinding", "user", "-n", "parts", f"--role={role['metadata']['name']}", "--user=nobody")

    def rights():
        return of(ask(cluster, "-n", "parts", user="nobody", status=None), "rights")[0]
    cluster.wait("the role is not in force", lambda: "create jobs" not in rights()["seen"], 60)
    assert (rights()["state"], rights()["seen"]) == ("failed", "you may not: create secrets, list resourceslices (namespace parts)")


def test_advice_about_rights(cluster):
    """An administrator types it with two names, and the user has the rights."""
    env = {"PATH": f"{DRARUN.parent}:{cluster.programs}:{os.environ['PATH']}"}
    cluster.kubectl("create", "namespace", "advised")

    def rights():
        return of(ask(cluster, "-n", "advised", user="nobody", status=None), "rights")[0]
    for state in "failed", "warning":
        cluster.wait(f"the rights do not become {state}", lambda: rights()["state"] == state, 60)
        command = rights()["change"].replace("NAME", "advised").replace("USER", "nobody")
        done = cluster.in_ns(["bash", "-ec", f"set -o pipefail; {command}"], env=env)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    cluster.wait("the rights are not there", lambda: rights()["state"] == "ok", 60)
    cluster.kubectl("delete", "clusterrolebinding", "advised")


def test_plugin_that_is_not_ready(cluster):
    """And its policies, which are not there, then are."""
    label = {"app.kubernetes.io/name": "drarun-plugin"}
    cluster.api.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plugin-x", "namespace": "default", "labels": label},
                      "spec": {"containers": [{"name": "a", "image": "x"}]}})
    found = ask(cluster, status=1)
    (plugin,) = of(found, "plugin")
    assert plugin["state"] == "failed" and plugin["seen"].endswith(": plugin-x") and "kubectl logs" in plugin["change"]
    assert [each["state"] for each in of(found, "admission")] == ["warning", "warning"]
    cluster.kubectl("apply", "-f", SOURCE / "deploy/admission.yaml")
    cluster.api.ok("PATCH", cluster.api.path("v1", "Pod", "default", "plugin-x") + "/status",
                   {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, content="application/merge-patch+json")
    found = ask(cluster)
    assert of(found, "plugin")[0]["state"] == "ok"
    assert [each["state"] for each in of(found, "admission")] == ["ok", "ok"]


def test_plugin_whose_pods_are_refused(cluster):
    """It is installed, though no pod of it is there; with pods, nothing lacks."""
    name, labels, where = "drarun-plugin", {"app.kubernetes.io/name": "drarun-plugin"}, {"plugin": "refused"}
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.api.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "refused", "labels": level}},
                     {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "refused", "labels": where}},
                     {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "refused", "labels": labels}, "spec": {
                         "selector": {"matchLabels": {"a": "plugin"}}, "template": {"metadata": {"labels": {"a": "plugin"}}, "spec": {
                             "nodeSelector": where, "hostNetwork": True, "containers": [{"name": "a", "image": "x"}]}}}})

    def status():
        return cluster.api.get("apps/v1", "DaemonSet", name, "refused").get("status") or {}
    cluster.wait("it wants no pod", lambda: status().get("desiredNumberScheduled") == 1, 60)
    lack = {"check": "plugin", "state": "failed", "seen": f"DaemonSet {name} in namespace refused has no pod on 1 of its 1 nodes"}
    found = of(ask(cluster, status=1), "plugin")
    assert [{key: each[key] for key in lack} for each in found if "DaemonSet" in each["seen"]] == [lack]
    assert not [each for each in found if each["state"] == "ok"]
    assert found[0]["change"].startswith(f"kubectl describe daemonset -n refused {name}: ")
    cluster.kubectl("label", "--overwrite", "namespace", "refused", "pod-security.kubernetes.io/enforce=privileged")
    cluster.kubectl("rollout", "restart", "-n", "refused", f"daemonset/{name}")
    cluster.wait("its pod is not made", lambda: status().get("currentNumberScheduled") == 1, 60)
    assert not [each for each in of(ask(cluster, status=None), "plugin") if "DaemonSet" in each["seen"]]
    cluster.api.delete("apps/v1", "DaemonSet", name, "refused")
    cluster.api.delete("v1", "Node", "refused")


def test_mesh_that_refuses_other_connections(cluster):
    """Istio's, by the policy of the namespace or else of the whole mesh, where pods get sidecars."""
    group, kind = "security.istio.io", "PeerAuthentication"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    cluster.api.make({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"peerauthentications.{group}"},
                      "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "peerauthentications", "kind": kind},
                               "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}})
    cluster.wait("the policies are not served", lambda: cluster.api.plural(f"{group}/v1", kind), 60)

    def policy(namespace, mode, **spec):
        cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": f"{group}/v1", "kind": kind, "metadata": {
            "name": "default", "namespace": namespace}, "spec": {"mtls": {"mode": mode}, **spec}}))

    def mesh():
        return of(ask(cluster, "-n", "meshed", status=None), "mesh")
    for name in "meshed", "istio-system":
        cluster.kubectl("create", "namespace", name)
    assert mesh() == []
    policy("istio-system", "STRICT")
    assert mesh() == []  # nor are there sidecars
    cluster.kubectl("label", "namespace", "meshed", "istio-injection=enabled")
    cluster.wait("it is not told", mesh, 60)  # the list of what is served may be older than the kind
    (found,) = mesh()
    assert found["state"] == "warning" and "PeerAuthentication default in namespace istio-system is STRICT" in found["seen"], found
    policy("meshed", "PERMISSIVE")
    assert mesh() == []
    policy("meshed", "PERMISSIVE", selector={"matchLabels": {"app": "web"}})
    assert len(mesh()) == 1
    policy("meshed", "STRICT")
    (found,) = mesh()
    assert "in namespace meshed is STRICT" in found["seen"], found
    cluster.kubectl("label", "namespace", "meshed", "istio-injection-", "istio.io/rev=stable")
    assert len(mesh()) == 1
    cluster.kubectl("label", "namespace", "meshed", "istio-injection=disabled")
    assert mesh() == []


def test_cluster_that_is_away(tmp_path):
    config = tmp_path / "config"
    config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x",
                                  "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
                                  "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {}}]}))
    found = look("--kubeconfig", config, status=1)
    assert found["failed"] == 1 and "127.0.0.1" in found["checks"][0]["seen"] and "kubectl cluster-info" in found["checks"][0]["change"]


def test_colours_are_for_terminals(tmp_path, monkeypatch):
    """Of words that say how something is, and of our name before an error; the text is the same without."""
    def shown(*words, **environment):
        for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
            monkeypatch.setenv(name, value)
        return on_terminal(DRARUN, *words)[0].decode().replace("\r\n", "\n")
    (tmp_path / "root").mkdir()
    words = "doctor", "--node", "--root", tmp_path / "root"
    painted = shown(*words)
    plain = subprocess.run([DRARUN, *words], capture_output=True, text=True, env={**os.environ, "TERM": "xterm"}).stdout
    assert "\x1b[31mfailed\x1b[0m   kubelet" in painted and "\x1b" not in plain and re.sub(r"\x1b\[\d+m", "", painted).split() == plain.split()
    assert shown("statu").startswith("\x1b[1;31mdrarun:\x1b[0m drarun has no verb statu")
    for refusal in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        assert shown(*words, **refusal).split() == plain.split() and shown("statu", **refusal).startswith("drarun: drarun has no verb")
