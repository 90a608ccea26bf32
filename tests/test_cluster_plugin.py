# SPDX-License-Identifier: Apache-2.0
"""The node plugin on real kubelets, containerd and runc: pods get their NICs, or do not start."""
import contextlib
import json
import os
import re
import subprocess
import threading
import time

import pytest
import yaml

from support.api_proxy import NodesProxy, kubeconfig
from support.build import BUILD, SOURCE, patience
from support.cluster import seeds
from support.cluster.claiming import COUNT, Claimed, claim, claimed, claiming, plugged, plugins  # noqa: F401
from support.cluster.plugin import GPU, NIC, Nics, Plugin, device_class
from support.cluster.storm import Storm

METADATA = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/{claim}/{request}/nic.drarun.dev-metadata.json"
# says so; the other end may come up, and the kernel see it, some time after the attachment
UP = "cd /sys/class/net/net1 && until grep -x up operstate; do sleep 0.1; done"


def status_of(cluster, name):
    found = cluster.api.get("resource.k8s.io/v1", "ResourceClaim", name, "default")
    return found["status"].get("devices", [])


def default_image():
    """Where it is named: for the launcher and its agents it is the same."""
    name = re.search(r'RENDER_IMAGE "([^"]+)"', (SOURCE / "jobs/manifests/render.h").read_text())[1]
    return name + re.search(r"project\(drarun VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def check_confinement(node):
    """The plugin's seccomp filter, and what of the host it may write."""
    pid = node.ok(["pgrep", "-x", "drarun-plugin"]).split()[0]
    assert "\nSeccomp:\t2\n" in node.ok(["cat", f"/proc/{pid}/status"])
    mounts = [line.split() for line in node.ok(["cat", f"/proc/{pid}/mountinfo"]).splitlines()]
    host = {each[4] for each in mounts if "rw" in each[5].split(",") and not re.match("/(proc|dev|sys|host|etc)(/|$)", each[4])}
    assert host == {"/var/lib/kubelet/plugins/gpu.drarun.dev", f"/var/lib/kubelet/plugins/{NIC}", "/var/lib/kubelet/plugins_registry",
                    "/var/run/cdi", "/var/lib/drarun", "/run/drarun", "/run/heartbeat"}, host  # the last one is the pod's own


@contextlib.contextmanager
def deployed(cluster, plugins, **probe):
    """deploy/plugin.yaml as it is, but for the image, for veths being offered, and for how often it is probed: the plugin runs with its
    account and its capabilities, and takes over from one without a pod."""
    image = cluster.image("drarun")
    objects = list(yaml.safe_load_all((SOURCE / "deploy/plugin.yaml").read_text()))
    for each in objects:
        if each["kind"] == "ConfigMap":
            each["data"]["plugin.yaml"] = plugins[0].config.read_text()
        if each["kind"] == "DaemonSet":
            container = each["spec"]["template"]["spec"]["containers"][0]
            assert container["image"] == default_image()
            container.update(image=image, imagePullPolicy="Never")
            container["livenessProbe"].update(probe)
    for plugin in plugins:
        plugin.stop()
        plugin.node.ok(["mount", "--make-shared", "/"])  # as systemd has it, and mountPropagation needs it
    try:
        for each in objects:
            if each["kind"] != "DeviceClass" or not cluster.api.get(each["apiVersion"], each["kind"], each["metadata"]["name"]):
                cluster.api.make(each)

        def ready():
            status = cluster.api.get("apps/v1", "DaemonSet", "drarun-plugin", "drarun-system")["status"]
            return status.get("numberReady") == len(cluster.nodes)
        cluster.wait(lambda: cluster.kubectl("describe", "pods", "-n", "drarun-system"), ready, 60)
        yield
    finally:
        for each in objects[::-1]:
            if each["kind"] != "DeviceClass":
                cluster.api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))
        cluster.wait("the plugin's pods do not end", lambda: not any(
            node.run(["pgrep", "-x", "drarun-plugin"]).returncode == 0 for node in cluster.nodes), 60)
        cluster.wait("the namespace stays", lambda: not cluster.api.get("v1", "Namespace", "drarun-system"), 60)
        for plugin in plugins:
            plugin.start()
        for plugin in plugins:
            plugin.wait()


def test_manifest(cluster, plugins):
    """Its pods are ready once the kubelet has registered them."""
    def logs(*options):
        return cluster.kubectl("logs", "-n", "drarun-system", "-l", "app.kubernetes.io/name=drarun-plugin", *options)
    with deployed(cluster, plugins):
        for driver in (GPU, NIC):
            assert logs("--tail=-1").count(f"{driver}: registered with the kubelet") == len(cluster.nodes)
        for node in cluster.nodes:
            check_confinement(node)
        made = Claimed(cluster)
        pod = made("by-manifest", "ip -o -4 addr show net1; sleep 600", "n0",
                   config=[{"interface": {"name": "net1", "addresses": ["10.94.7.7/16"]}}])
        pod.wait_phase("Running")
        assert "10.94.7.7/16" in cluster.wait(pod.describe, pod.log, 60)
        device = cluster.wait(logs, lambda: status_of(cluster, "by-manifest"), 10)[0]
        assert device["networkData"]["interfaceName"] == "net1"
        metrics = cluster.node(0).ok(["busybox", "wget", "-qO-", "http://127.0.0.1:9469/metrics"])
        assert f'drarun_plugin_calls_total{{driver="{NIC}",call="prepare",result="ok"}} 1\n' in metrics
        assert f'drarun_plugin_claims{{driver="{NIC}"}} 1\n' in metrics
        assert f'drarun_plugin_devices{{driver="{NIC}",fault="no"}} {COUNT}\n' in metrics
        made.end()
        cluster.wait(logs, lambda: "unprepared" in logs(), 30)
        lines = [json.loads(line) for line in logs().splitlines()]
        assert {each["node"] for each in lines} == {"n0", "n1"}
        assert not [each for each in lines if re.search(r"\b403\b", each["text"])], lines


def test_hung_plugin_is_restarted(cluster, plugins):
    """The kubelet ends one whose loop stands still."""
    def restarts(node):
        return [each["restartCount"] for pod in cluster.api.get("v1", "Pod", namespace="drarun-system") if pod["spec"].get("nodeName") == node
                for each in pod["status"].get("containerStatuses", ()) if each["ready"]]
    with deployed(cluster, plugins, periodSeconds=2, timeoutSeconds=30):
        cluster.node(0).ok(["sh", "-c", "kill -STOP $(grep -lz ^--heartbeat=/run/heartbeat /proc/[0-9]*/cmdline | cut -d/ -f3)"])
        cluster.wait(lambda: f"it is not restarted: {restarts('n0')}", lambda: restarts("n0") and restarts("n0")[0] > 0, 120)


@pytest.mark.gate
def test_two_pods_reach_each_other(cluster, claimed):
    pods = []
    for i in range(2):
        config = [{"interface": {"name": "net1", "addresses": [f"10.94.{i}.1/16"], "mtu": 1400}}]
        pods.append(claimed(f"reach-{i}", f"cat {METADATA.format(claim=f'reach-{i}', request='nic0')}; "
                            "ip -o addr show net1; ip -o link show net1; "
                            "while :; do nc -l -p 5000 -e hostname; done", f"n{i}", config=config))
    for i, pod in enumerate(pods):
        pod.wait_phase("Running")
        log = cluster.wait("no log", lambda: pod.log().count("\n") >= 4 and pod.log(), 60)
        assert f"inet 10.94.{i}.1/16" in log and "mtu 1400" in log and "UP" in log, log
        told = json.loads(log.splitlines()[0])
        assert told["metadata"]["name"] == f"reach-{i}" and told["apiVersion"].endswith("v1beta1")
        given = told["requests"][0]["devices"][0]
        assert given["networkData"]["interfaceName"] == "net1" and given["attributes"]["dra.net/ifName"]["string"]
    cluster.wait("nobody answers", lambda: pods[0].node.run(["ip", "netns", "exec", pods[0].network_namespace(), "busybox", "nc", "-w", "5",
                                                             "10.94.1.1", "5000"], input="").stdout == "reach-1\n", 60)
    device = cluster.wait("no status", lambda: status_of(cluster, "reach-0"), 10)[0]
    assert device["networkData"]["interfaceName"] == "net1" and device["networkData"]["ips"] == ["10.94.0.1/16"]
    assert [(each["type"], each["status"]) for each in device["conditions"]] == [("Prepared", "True")]


def test_init_container_two_containers_and_a_restart(cluster, claimed):
    """Whoever runs first has it, and all after it."""
    def make(cluster, name, script, node):
        show = {"image": "localhost/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", script],
                "resources": {"claims": [{"name": "nics"}]}}
        pod = claiming(cluster, name, f"{script}; [ -e /seen/once ] || {{ touch /seen/once; exit 1; }}; sleep 600", node,
                       container={"volumeMounts": [{"name": "seen", "mountPath": "/seen"}]},
                       volumes=[{"name": "seen", "emptyDir": {}}])
        pod.manifest["spec"]["restartPolicy"] = "OnFailure"
        pod.manifest["spec"]["initContainers"] = [{"name": "first", **show}]
        pod.manifest["spec"]["containers"].append({"name": "second", **show})
        return pod
    pod = claimed("several", UP, "n0", config=[{"interface": {"name": "net1"}}], make=make)

    def restarted():
        statuses = {each["name"]: each for each in pod.get()["status"].get("containerStatuses", ())}
        return statuses.get("main", {}).get("restartCount") == 1 and "running" in statuses["main"]["state"]
    cluster.wait(lambda: pod.describe(), restarted, 60)
    for container in ("first", "second", "main"):
        cluster.wait(lambda: pod.describe() + pod.log(container), lambda: pod.log(container) == "up\n", 60)


def test_a_container_that_lists_one_request(cluster, claimed):
    """It gets that request's NIC and no other; the container behind it that lists the claim gets all."""
    def make(cluster, name, script, node):
        pod = claiming(cluster, name, script, node)
        pod.manifest["spec"]["initContainers"] = [{
            "name": "first", "image": "localhost/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", script],
            "resources": {"claims": [{"name": "nics", "request": "nic1"}]}}]
        return pod
    pod = claimed("one-of-three", "ls -d /sys/class/net/net*", "n0", count=3,
                  config=[{"interface": {"name": f"net{k}"}} for k in range(3)], make=make)
    assert pod.ended() == "".join(f"/sys/class/net/net{k}\n" for k in range(3))
    assert pod.log("first") == "/sys/class/net/net1\n"


def test_claim_that_no_container_lists(cluster, claimed):
    """It would get no device: it does not start, and the event says which line is missing."""
    pod = claimed("unlisted", "true", "n0", make=lambda *words: claiming(*words, container={"resources": {}}))
    cluster.wait(lambda: pod.describe(), lambda: "resources: {claims: [{name: nics}]}" in pod.describe(), 30)
    assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))


@pytest.mark.parametrize("config,says", [
    ({"interface": {"name": "a/b"}}, "interface.name"),
    ({"interface": {"mtuu": 1}}, "mtuu"),
    ({"interface": {"dhcp": True}}, "dhcp"),
    ({"interface": {"addresses": ["10.0.0.1"]}}, "interface.addresses[0]"),
])
def test_wrong_configuration_is_named(cluster, claimed, config, says):
    pod = claimed("wrong", "true", "n0", config=[config])
    cluster.wait(lambda: pod.describe(), lambda: says in pod.describe(), 30)
    assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))


@pytest.mark.parametrize("config,says", [
    ({"interface": {"name": "net1", "hardwareAddr": "02:00:00:00:00:01"}}, "interface.hardwareAddr"),
    ({"interface": {"disableEbpfPrograms": True}}, "interface.disableEbpfPrograms"),
    ({"ethtool": {"features": {"tso": False}}, "rules": [{"table": 7}]}, "ethtool.features, rules"),
])
def test_claim_sets_what_it_may_not(cluster, claimed, plugins, config, says):
    """The event names the settings, what a claim may set, and the key of the PluginConfig that allows more."""
    pod = claimed("beyond", "true", "n0", config=[config])
    cluster.wait(pod.describe, lambda: f"configuration of request nic0: the claim may not set {says}: a claim's own configuration may set "
                 "interface.name, interface.mtu, interface.addresses, routes; the administrator allows more by claims.allow of the "
                 "PluginConfig, or sets it in the DeviceClass" in pod.describe(), 30)
    assert not plugins[0].checkpoints() and len(Nics(cluster.node(0), COUNT).here()) == COUNT


def test_claim_takes_an_address_beyond_the_plan(cluster, claimed, plugins):
    pod = claimed("spoofs", "true", "n0", config=[{"interface": {"addresses": ["10.95.0.1/16"]}}])
    cluster.wait(pod.describe, lambda: "may not have 10.95.0.1/16: the address plan (claims.addresses of the PluginConfig) has "
                 "10.94.0.0/16" in pod.describe(), 30)
    assert not plugins[0].checkpoints() and len(Nics(cluster.node(0), COUNT).here()) == COUNT


def test_class_sets_what_a_claim_may_not(cluster, claimed):
    """What an administrator writes has no limits, and a claim's own settings leave it as it is."""
    parameters = {"interface": {"hardwareAddr": "02:00:00:00:77:01", "addresses": ["10.95.0.1/16"], "mtu": 1300}}
    special = device_class("special")
    special["spec"]["config"] = [{"opaque": {"driver": NIC, "parameters": parameters}}]
    cluster.api.make(special)
    wanted = claim("special", config=[{"interface": {"name": "net1", "mtu": 1310}}])
    wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "special"
    cluster.api.make(wanted)
    claimed.names.append("special")
    try:
        said = claiming(cluster, "special", "ip addr show net1", "n0").make().ended()
        assert "mtu 1310" in said and "02:00:00:00:77:01" in said and "10.95.0.1/16" in said, said
    finally:
        cluster.api.delete(special["apiVersion"], special["kind"], "special")


def test_nic_that_does_not_come_back(cluster, claimed, plugins):
    """Its claim has ended and the hook cannot be started, then cannot take it back: the log says so, no new claim gets it, until it is back."""
    plugin, node = plugins[0], cluster.node(0)
    before, hook, broken = plugin.config.read_text(), plugin.hook, node.folder / "broken-hook"
    plugin.stop()
    plugin.hook = node.folder / "hook"
    plugin.hook.write_text(f"""#!/bin/sh
if test "$1" = restore && test -e {broken}; then
    echo "drarun-attach: nic0: it has not come back" >&2
    exit 1
fi
exec {hook} "$@"
""")
    plugin.hook.chmod(0o755)
    plugin.configure(rescan="1s", nics={"virtualPrefixes": ["nic"], "include": 'device.attributes["dra.net"].ifName == "nic0"'})
    try:
        plugin.start().wait(1)
        claimed("astray", "sleep 600", "n0").wait_phase("Running")
        broken.write_text("")
        plugin.hook.chmod(0o644)
        cluster.api.delete("v1", "Pod", "astray", "default")
        cluster.wait(plugin.log, lambda: "taints" in plugin.published()["nic0"], 60)
        assert [(each["key"], each["effect"]) for each in plugin.published()["nic0"]["taints"]] == [("drarun.dev/lost", "NoSchedule")]
        assert f"unprepare claim default/astray: run {plugin.hook}: Permission denied" in plugin.log()
        plugin.hook.chmod(0o755)
        cluster.wait(plugin.log, lambda: "unprepare claim default/astray: drarun-attach: nic0: it has not come back" in plugin.log(), 60)
        broken.unlink()
        claimed.end()
        claimed.names.clear()
        cluster.wait(plugin.log, lambda: not plugin.checkpoints(), 60)
        Nics(node, COUNT).plug()
        cluster.wait(plugin.log, lambda: "drarun.dev/lost" not in str(plugin.published().get("nic0", "drarun.dev/lost")), 30)
    finally:
        broken.unlink(missing_ok=True)
        plugin.stop()
        plugin.hook = hook
        plugin.config.write_text(before)
        plugin.start().wait(COUNT)


@pytest.fixture
def unnamed(plugins):
    """The plugin of the first node, with a configuration that names no NIC: those that the host uses are its own."""
    plugin = plugins[0]
    before = plugin.config.read_text()
    plugin.stop()
    plugin.configure(rescan="1h", nics={"virtualPrefixes": ["nic"], "exclude": '"resource.kubernetes.io" in device.attributes'})
    plugin.start().wait(COUNT)
    yield plugin
    plugin.stop()
    plugin.config.write_text(before)
    plugin.start().wait(COUNT)


def test_programs_of_the_host_stay(cluster, claimed, unnamed):
    """A DeviceClass asks for BPF programs to be taken off, and the host has some on a NIC: refused, and they are where they were."""
    node, pin = cluster.node(0), BUILD / "tests/programs/bpf_pin"
    node.ok([pin, "--tcx", "nic0"])
    special = device_class("bare")
    special["spec"]["config"] = [{"opaque": {"driver": NIC, "parameters": {"interface": {"disableEbpfPrograms": True}}}}]
    cluster.api.make(special)
    wanted = claim("bare", count=COUNT)
    for each in wanted["spec"]["devices"]["requests"]:
        each["exactly"]["deviceClassName"] = "bare"
    cluster.api.make(wanted)
    claimed.names.append("bare")
    try:
        pod = claiming(cluster, "bare", "true", "n0").make()
        cluster.wait(pod.describe, lambda: "device nic0: interface.disableEbpfPrograms: the host has BPF programs on nic0 (XDP or TCX), which would "
                     "be lost: leave it away, detach them on the host, or name the device in nics.include of the PluginConfig" in pod.describe(), 30)
        assert node.ok([pin, "--tcx-count", "nic0"]).strip() == "2" and not unnamed.checkpoints()
    finally:
        claimed.end()
        claimed.names.clear()
        cluster.api.delete(special["apiVersion"], special["kind"], "bare")
        node.ok(["ip", "link", "del", "nic0"])
        Nics(node, COUNT).plug()


def test_nic_that_the_host_begins_to_use(cluster, claimed, unnamed):
    """Between the last reading of the devices and Prepare: the event names the use, and the NIC stays on the host. The plugin
    stands still from before the use until the claim has its devices; else it may see the use first and offer the NIC no more."""
    plugin, node, server = unnamed, cluster.node(0), None
    node.ok(["pkill", "-STOP", "-x", plugin.name])
    try:
        node.ok(["sh", "-c", "ip link set nic0 up && ip addr add 10.96.0.1/24 dev nic0"])
        server = subprocess.Popen([*node.under, "/usr/bin/python3", "-c", "import socket, time; s = socket.create_server(('10.96.0.1', 6000)); "
                                   "time.sleep(600)"])
        cluster.wait("nobody listens", lambda: "10.96.0.1:6000" in node.ok(["ss", "-tlnH"]), 10)
        pod = claimed("in-use", "true", "n0", count=COUNT)
        cluster.wait(pod.describe, lambda: "allocation" in cluster.api.get(
            "resource.k8s.io/v1", "ResourceClaim", "in-use", "default").get("status", {}), 30)
        node.ok(["pkill", "-CONT", "-x", plugin.name])
        cluster.wait(pod.describe, lambda: "device nic0: the host uses it: a process of the host listens on 10.96.0.1 port 6000 (TCP); end "
                     "that, or name the device in nics.include of the PluginConfig" in pod.describe(), 30)
        assert not plugin.checkpoints() and len(Nics(node, COUNT).here()) == COUNT
        node.ok(["ip", "route", "add", "10.97.0.0/24", "via", "10.96.0.9", "dev", "nic0"])  # which is news
        plugin.wait(COUNT - 1)
        cluster.wait(pod.describe, lambda: "device nic0: the host uses it: it has a route to 10.97.0.0/24 via 10.96.0.9; end" in pod.describe(), 60)
    finally:
        node.run(["pkill", "-CONT", "-x", plugin.name])
        if server:
            server.kill()
            server.communicate()
        claimed.end()
        claimed.names.clear()
        node.ok(["sh", "-c", "ip addr flush dev nic0; ip link set nic0 down"])


def test_all_nics_in_one_pod_and_again(cluster, claimed, plugins):
    config = [{"interface": {"name": f"net{k}"}} for k in range(COUNT)]
    for turn in range(2):
        pod = claimed(f"all-{turn}", "ls /sys/class/net", "n0", count=COUNT, config=config)
        assert set(pod.ended().split()) >= {f"net{k}" for k in range(COUNT)}
        claimed.end()
        claimed.names.clear()
        cluster.wait(lambda: plugins[0].log(), lambda: not plugins[0].checkpoints(), 30)
        Nics(cluster.node(0), COUNT).plug()


def test_plugin_killed(cluster, claimed, plugins):
    """What was prepared runs on and starts again; what was not does not start until the plugin is back."""
    first = plugins[0]
    pod = claimed("before", f"{UP}; sleep 600", "n0",
                  config=[{"interface": {"name": "net1"}}])
    pod.wait_phase("Running")
    first.kill()
    after = claimed("after", UP, "n0", config=[{"interface": {"name": "net1"}}])
    cluster.wait(lambda: after.describe(), lambda: "NodePrepareResources" in after.describe() or
                 "not registered" in after.describe() or "FailedPrepare" in after.describe(), 30)
    assert pod.get()["status"]["phase"] == "Running"
    assert not any(each.get("started") for each in after.get()["status"].get("containerStatuses", ()))
    first.start().wait()
    assert after.ended() == "up\n"


def test_kubelet_restarted(cluster, claimed, plugins):
    """It deletes the node's slices, which come back; pods run on."""
    pod = claimed("stays", "sleep 600", "n0", config=[{"interface": {"name": "net1"}}])
    pod.wait_phase("Running")
    node = cluster.node(0)
    node.stop_kubelet()
    node.start_kubelet()
    node.wait_ready()
    plugins[0].wait(COUNT)
    after = claimed("comes", UP, "n0", config=[{"interface": {"name": "net1"}}])
    assert after.ended() == "up\n"
    assert pod.get()["status"]["phase"] == "Running"
    assert pod.get()["status"]["containerStatuses"][0]["restartCount"] == 0


def test_checkpoint_damaged(cluster, claimed, plugins):
    """What the orders say is taken back, and nothing is given twice."""
    first = plugins[0]
    pod = claimed("damaged", "sleep 600", "n0", config=[{"interface": {"name": "net1"}}])
    pod.wait_phase("Running")
    first.kill()
    path = first.folder / f"{first.checkpoints()[0]}.json"
    path.write_bytes(path.read_bytes()[:100])
    first.start().wait()
    assert str(first.state / NIC / path.name) in first.log()
    claimed.end()
    claimed.names.clear()
    cluster.wait(lambda: first.log(), lambda: not first.checkpoints(), 30)
    assert cluster.node(0).ok(["ls", "/run/drarun/orders"]) == ""


def test_forced_delete_and_reuse(cluster, claimed):
    """The pod runs on for the kubelet's 2 s, while its NICs are the next one's: they are taken from it. How soon, benchmarks/run plugin
    --only reuse says."""
    config = [{"interface": {"name": f"net{k}"}} for k in range(COUNT)]
    first = claimed("forced", "sleep 600", "n0", count=COUNT, config=config)
    first.wait_phase("Running")
    cluster.api.delete("v1", "Pod", "forced", "default", grace=0)
    began = time.monotonic()
    after = claimed("reused", f"ls -d {' '.join(f'/sys/class/net/net{k}' for k in range(COUNT))}", "n0", count=COUNT, config=config)
    nics = Nics(cluster.node(0), COUNT)

    def done():
        if time.monotonic() - began > 5:  # on a machine so slow that the first pod ended before, and its veths with it
            nics.replug()
        return after.get()["status"]["phase"] == "Succeeded"
    cluster.wait(lambda: after.describe(), done, 60)


def test_host_network(cluster, claimed):
    """The interface would stay the host's: the pod does not start, and its event says why."""
    pod = claimed("on-host", "true", "n0", make=lambda *words: claiming(*words, hostNetwork=True))
    cluster.wait(lambda: pod.describe(), lambda: "hostNetwork: true), where nic" in pod.describe(), 30)
    assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))


def test_checkpoints_of_other_versions(cluster, claimed, plugins):
    """After a downgrade: what this version can undo, it does; what it cannot, it says and leaves alone."""
    first = plugins[0]
    pod = claimed("newer", "sleep 600", "n0", config=[{"interface": {"name": "net1"}}])
    pod.wait_phase("Running")
    path = first.folder / f"{first.checkpoints()[0]}.json"
    document = json.loads(path.read_text())
    first.kill()
    path.write_text(json.dumps({**document, "version": 9, "readable": 9, "unheard": [{"of": 1}]}))
    newer = path.read_bytes()
    first.start().wait()
    cluster.api.delete("v1", "Pod", "newer", "default", grace=0)
    said = "only version 9 or later can undo it, this one is 1: run that one until its pods have ended"
    cluster.wait(lambda: first.log(), lambda: "unprepare claim default/newer: " in first.log(), 30)
    assert said in first.log() and path.read_bytes() == newer
    path.write_text(json.dumps({**document, "version": 9, "unheard": [{"of": 1}]}))
    cluster.wait(lambda: first.log(), lambda: not first.checkpoints(), 30)


@pytest.fixture
def older(cluster, plugins, tmp_path):
    """older("v1beta2"): the first plugin, started before an API server that has no other versions of resource.k8s.io; older(): before a
    proxy that hides nothing."""
    made, first = [], plugins[0]

    def start(*versions):
        cluster.kubectl("create", "clusterrolebinding", "older", "--clusterrole=cluster-admin", "--serviceaccount=default:default")
        proxy = NodesProxy(cluster, for_nodes=True)
        made.append(proxy)
        if versions:
            proxy.serve_only("resource.k8s.io", versions)
        first.stop()
        first.kubeconfig = kubeconfig(tmp_path / "older", proxy.url, {"token": cluster.kubectl("create", "token", "default").strip()},
                                      {"certificate-authority": str(cluster.keys.folder / "ca.crt")})
        first.start().wait(COUNT)
        return proxy
    yield start
    first.stop()
    first.kubeconfig = None
    first.start().wait()
    for each in made:
        each.close()
    cluster.kubectl("delete", "clusterrolebinding", "older")


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_cluster_with_an_older_api_of_devices(cluster, claimed, plugins, older, version):
    """Slices, claims and their status are in that version; the kubelet's own is another thing."""
    server = older(version)
    slices = [each["metadata"]["name"] for each in cluster.api.get("resource.k8s.io/v1", "ResourceSlice")
              if each["spec"].get("nodeName") == "n0"]
    cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", slices[0])
    plugins[0].wait(COUNT)
    pod = claimed("older", "ip -o -4 addr show dev net1; sleep 600", "n0",
                  config=[{"interface": {"addresses": ["10.94.9.9/16"], "name": "net1"}}])
    pod.wait_phase("Running")
    assert "10.94.9.9/16" in cluster.wait(pod.describe, pod.log, 60)
    told = cluster.wait(plugins[0].log, lambda: status_of(cluster, "older"), 20)
    assert told[0]["networkData"]["ips"] == ["10.94.9.9/16"], told
    assert server.versions_asked("resource.k8s.io") == {version}
    assert any(method == "POST" and path.split("?")[0].endswith("/resourceslices") for _, method, path, _ in server.requests)


def test_unplugged(cluster, claimed, plugins):
    """Between Prepare and the hook: the pod's event says so. While it runs: it runs on. Both are taken back all the same."""
    node, first = cluster.node(0), plugins[0]
    running = claimed("unplugged-running", "sleep 600", "n0", config=[{"interface": {"name": "net1"}}])
    running.wait_phase("Running")
    held = json.loads((first.folder / f"{first.checkpoints()[0]}.json").read_text())["devices"][0]["device"]
    node.ok(["ip", "link", "del", f"w{held}"])
    before = set(first.checkpoints())
    holds = {"name": "holds", "image": "localhost/busybox:1", "imagePullPolicy": "Never",  # without a claim, so without our hook
             "command": ["sh", "-c", "trap 'exit 0' TERM; : holds-the-pod; while :; do sleep 0.1; done"]}
    early = claimed("unplugged-early", "true", "n0", config=[{"interface": {"name": "net1"}}], initContainers=[holds])
    cluster.wait(early.describe, lambda: any(
        "running" in each["state"] for each in early.get()["status"].get("initContainerStatuses", ())), 60)
    uid, = set(first.checkpoints()) - before
    device = json.loads((first.folder / f"{uid}.json").read_text())["devices"][0]["device"]
    node.ok(["ip", "link", "del", f"w{device}"])
    node.ok(["pkill", "-TERM", "-f", "holds-the-pod"])
    said = cluster.wait(early.describe, lambda: [text for text in [early.describe()] if any(
        word in text for word in ("is neither on the host nor in the container", "Succeeded"))], 60)[0]
    assert "is neither on the host nor in the container" in said, said
    assert running.get()["status"]["containerStatuses"][0]["restartCount"] == 0
    assert running.get()["status"]["phase"] == "Running"
    claimed.end()
    claimed.names.clear()
    cluster.wait(lambda: first.log(), lambda: not first.checkpoints(), 30)


def test_sandbox_killed(cluster, claimed, plugins):
    """The kubelet makes a new one without another Prepare, and its containers have the NIC, which comes back to the host
    when the old one's network ends; a veth dies then, and is plugged in again here."""
    def make(*words):
        pod = claiming(*words)
        pod.manifest["spec"]["restartPolicy"] = "Always"
        return pod
    node, first = cluster.node(0), plugins[0]
    pod = claimed("sandbox", f"{UP}; sleep 600", "n0", config=[{"interface": {"name": "net1"}}],
                  make=make)
    pod.wait_phase("Running")
    uid, = first.checkpoints()
    order = json.loads((first.folder / f"{uid}.json").read_text())["devices"][0]["order"]
    name, before = order["host"]["name"], pod.get()["status"]["containerStatuses"][0]["containerID"]
    written = (first.folder / f"{uid}.json").stat().st_mtime_ns
    node.ok(["pkill", "-KILL", "-x", "pause"])

    def again():
        links = node.ok(["ip", "-o", "link"])
        if f" {name}@" not in links and f" w{name}@" not in links:
            node.run(["ip", "link", "add", name, "address", order["mac"], "type", "veth", "peer", "name", f"w{name}"])
            node.run(["ip", "link", "set", f"w{name}", "master", "rails", "up"])
        status = pod.get()["status"]["containerStatuses"][0]
        return status["containerID"] != before and "running" in status["state"]
    cluster.wait(lambda: f"{pod.describe()}\n{first.log()}", again, 90)
    assert cluster.wait(pod.describe, pod.log, 60) == "up\n"
    assert (first.folder / f"{uid}.json").stat().st_mtime_ns == written


def test_node_rebooted(cluster, claimed, plugins):
    """/run is empty then and the checkpoint is there: the kubelet asks again, and the pod's container has its NIC again."""
    def make(*words):
        pod = claiming(*words)
        pod.manifest["spec"]["restartPolicy"] = "Always"
        return pod
    node, first = cluster.node(0), plugins[0]
    pod = claimed("rebooted", "ip -4 -o addr show net1; sleep 600", "n0", make=make,
                  config=[{"interface": {"name": "net1", "addresses": ["10.94.9.9/16"]}}])
    pod.wait_phase("Running")
    uid, = first.checkpoints()
    order = json.loads((first.folder / f"{uid}.json").read_text())["devices"][0]["order"]
    before = pod.get()["status"]["containerStatuses"][0]["containerID"]
    node.kill()
    node.boot()
    for name in Nics(node, COUNT).names:
        address = ["address", order["mac"]] if name == order["host"]["name"] else []
        node.ok(["ip", "link", "add", name, *address, "type", "veth", "peer", "name", f"w{name}"])
        node.ok(["ip", "link", "set", f"w{name}", "master", "rails", "up"])
    first.start().wait(COUNT)
    node.wait_ready()

    def again():
        status = pod.get()["status"]["containerStatuses"][0]
        return status["containerID"] != before and "running" in status["state"]
    cluster.wait(lambda: f"{pod.describe()}\n{first.log()}", again, 90)
    assert "10.94.9.9/16" in cluster.wait(pod.describe, pod.log, 60)
    assert first.checkpoints() == [uid]


def call(cluster, plugin, name, uid):
    """What the plugin answers when it is called as by the kubelet, which must be an error."""
    run = plugin.node.run([cluster.programs / "prepare-times", "-socket", f"/var/lib/kubelet/plugins/{NIC}/dra.sock", "-name",
                           name, "-uid", uid, "-rounds=1", "-checkpoint=/nonexistent"])
    assert run.returncode == 1 and "prepare: " in run.stderr, run
    return run.stderr


@pytest.mark.parametrize("change, says", [
    ({"driver": "gpu.nvidia.com"}, "it has no device of driver nic.drarun.dev"),
    ({"pool": "n1"}, "its device nic0 is of pool n1, and this node has pool n0"),
    ({"reserved": None}, "it is reserved for no pod"),
    # whose reservation Kubernetes' own controller takes away, sooner or later
    ({"reserved": {"uid": "00000000-0000-0000-0000-000000000000"}}, "is another one by now|it is reserved for no pod"),
    ({"reserved": {"name": "gone"}}, 'pods \\"gone\\" not found|it is reserved for no pod'),
    ({"node": "n1"}, "is on node n1, not on n0"),
    ({"node": "n0"}, "does not name claim attack"),
    ({"uid": "00000000-0000-0000-0000-000000000000"}, "it is another one by now"),
    ({"uid": "../../../../etc/passwd"}, "is no UID"),
    ({"uid": "recreated"}, "it is another one by now"),
    ({"allocated": False}, "it is not allocated"),
    ({"claim": "none"}, 'resourceclaims.resource.k8s.io \\"none\\" not found'),
], ids=range(12))
def test_claims_of_others(cluster, plugins, change, says):
    """Whoever reaches the socket gets nothing that the API does not give to a pod of this node; nothing is written."""
    api, claims = cluster.api, "resource.k8s.io/v1"
    pod = cluster.pod("attack", ["sleep", "600"], schedulerName="none", **(
        {"node": change["node"]} if "node" in change else {}))
    pod.make()
    made = api.make(claim("attack"))
    try:
        result = {"request": "nic0", "driver": NIC, "pool": "n0", "device": "nic0",
                  **{key: change[key] for key in ("driver", "pool", "device") if key in change}}
        holder = {"resource": "pods", "name": "attack", "uid": pod.get()["metadata"]["uid"], **(change.get("reserved") or {})}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [holder]}
        if "reserved" in change and change["reserved"] is None:
            del status["reservedFor"]
        if change.get("allocated", True):
            api.ok("PUT", api.path(claims, "ResourceClaim", "default", "attack") + "/status", {**made, "status": status})
        uid = change.get("uid", made["metadata"]["uid"])
        if uid == "recreated":
            uid = made["metadata"]["uid"]
            api.patch_status(claims, "ResourceClaim", "attack", {"reservedFor": None, "allocation": None}, "default")
            api.delete(claims, "ResourceClaim", "attack", "default")
            cluster.wait("the claim does not go", lambda: not api.get(claims, "ResourceClaim", "attack", "default"), 20)
            api.make(claim("attack"))
        said = call(cluster, plugins[0], change.get("claim", "attack"), uid)
        assert any(each in said for each in says.split("|")), said
        assert not plugins[0].checkpoints()
    finally:
        pod.delete(0)
        api.patch_status(claims, "ResourceClaim", "attack", {"reservedFor": None, "allocation": None}, "default")
        api.delete(claims, "ResourceClaim", "attack", "default")


def test_storm(cluster, plugins):
    """Plugin killed, stopped, restarted, its disk full, its checkpoints truncated, kubelet and containerd killed: no pod
    starts without its NIC or loses it, no NIC is given twice, nothing is left. More pods: DRARUN_STORM."""
    count = int(os.environ.get("DRARUN_STORM", 8))
    with Storm(plugins, [Nics(node, COUNT) for node in cluster.nodes], count, seed=count, every=0.7) as storm:
        problems = storm.run()
        cluster.wait(lambda: f"left: {storm.leftovers()}\n{storm.summary()}", lambda: not storm.leftovers(), 90)
        print(storm.summary())
        assert not problems, "\n".join([storm.summary(), *problems])
        assert storm.tally["pods that had their NIC to the end"] > count / 4, storm.summary()


SEEDS = {"gpu-nic-2x2": ("nic", {"gpu0rdma0", "gpu1rdma0", "gpu6rdma0", "gpu7rdma0"}),
         "rdma-8x8": ("rdma-net-interface", {f"gpu{k}rdma0" for k in range(8)}),
         "ray-all-nic": ("nics", {f"gpu{k}rdma0" for k in range(8)}),
         "mpijob-1x1": ("worker-rdma-nic", {"dranet0"})}
RAILS = 8


@pytest.fixture(scope="module")
def taken(cluster, plugins):
    """A plugin that serves dra.net, beside the other, on the first node."""
    node = cluster.node(0)
    Nics(node, RAILS, "gpu{}rdma0").plug()
    made = Plugin(node, "--takeover", seeds.DRIVER, name="drarun-takeover", driver=seeds.DRIVER, prefix="gpu")
    made.start().wait(RAILS)
    yield made
    made.stop()


@pytest.fixture(params=[False, True], ids=["no-policy", "policy"], scope="module")
def policy(cluster, request):
    objects = [each for each in yaml.safe_load_all((SOURCE / "deploy/admission.yaml").read_text())
               if each["metadata"]["name"] == "drarun-plugin-claims"]
    if request.param:
        if not cluster.api.plural(objects[0]["apiVersion"], objects[0]["kind"]):
            pytest.skip(f"no MutatingAdmissionPolicies in Kubernetes {cluster.plane.version}")
        cluster.api.make(*objects)
        probe = claiming(cluster, "probe", "true", "n0", container={"resources": {}}).manifest
        cluster.wait("the policy does not work", lambda: "claims" in cluster.api.request(
            "POST", "/api/v1/namespaces/default/pods?dryRun=All", probe)[1]["spec"]["containers"][0]["resources"], 30)
    yield request.param
    if request.param:
        for each in objects[::-1]:
            cluster.api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"])


@pytest.mark.parametrize("name", SEEDS)
def test_manifests_written_for_dranet(cluster, taken, policy, name):
    """They work unchanged with the policy; without it their pods are refused with the line to add."""
    claim, nics = SEEDS[name]
    objects, spec = seeds.worker(name, "ls /sys/class/net; sleep 600")
    cluster.api.make(*objects)
    pod = cluster.pod(f"seed-{name}", **spec)
    pod.manifest["spec"] = spec
    try:
        pod.make()
        if policy:
            pod.wait_phase("Running")
            container = spec["containers"][0]["name"]
            assert nics <= set(cluster.wait(pod.describe, lambda: pod.log(container), 10).split())
        else:
            line = f"{{name: {claim}}}]}}"
            cluster.wait(pod.describe, lambda: line in pod.describe(), 30)
            assert not any(each.get("started") for each in pod.get()["status"].get("containerStatuses", ()))
    finally:
        pod.delete()
        for each in objects:
            cluster.api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], each["metadata"].get("namespace"))
        cluster.wait(taken.log, lambda: not taken.checkpoints(), 60)
        Nics(taken.node, RAILS, "gpu{}rdma0").plug()
        taken.wait(RAILS)


def test_calls_under_way_are_answered_before_the_end(cluster, plugins, older):
    """SIGTERM while a Prepare waits for the API server: it is done first, then the plugin ends."""
    first, node, api, claims = plugins[0], cluster.node(0), cluster.api, "resource.k8s.io/v1"
    asked, go = threading.Event(), threading.Event()

    def held(exchange):
        asked.set()
        go.wait()
        exchange.forward()
    older().fault(held, lambda method, path: method == "GET" and "/resourceclaims/drain" in path)
    node.stop_kubelet()
    cluster.wait("the kubelet's connection stays", lambda: not first.registered(), 60)
    pod = claiming(cluster, "drain", "true", "n0")
    pod.manifest["spec"]["nodeName"] = "n0"
    made = api.make(claim("drain"))
    holder = {"resource": "pods", "name": "drain", "uid": pod.make().get()["metadata"]["uid"]}
    result = {"request": "nic0", "driver": NIC, "pool": "n0", "device": "nic0"}
    api.ok("PUT", api.path(claims, "ResourceClaim", "default", "drain") + "/status", {
        **made, "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [holder]}})
    try:
        asking = subprocess.Popen([*node.under, cluster.programs / "prepare-times", "-socket",
                                   f"/var/lib/kubelet/plugins/{NIC}/dra.sock", "-name", "drain", "-uid",
                                   made["metadata"]["uid"], "-rounds=1", "-checkpoint=/nonexistent"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert asked.wait(patience()), first.log()
        node.ok(["pkill", "-TERM", "-x", first.name])
        cluster.never("it has ended", lambda: node.run(["pgrep", "-x", first.name]).returncode, 1)
    finally:
        go.set()
        node.start_kubelet()
    said = asking.communicate(timeout=patience())[1]
    cluster.wait("it does not end", lambda: node.run(["pgrep", "-x", first.name]).returncode, 15)
    assert "/nonexistent" in said, said  # answered, and what the tool does then
    assert first.checkpoints() == [made["metadata"]["uid"]]
    first.start().wait()
    pod.wait_phase("Succeeded")
    pod.delete()
    api.delete(claims, "ResourceClaim", "drain", "default")


def test_claim_that_is_allocated_anew(cluster, plugins, older):
    """The same claim with another device: what it had is reclaimed first. While the API server does not answer, what was
    prepared counts, also for a plugin that has just started."""
    first, node, api, claims = plugins[0], cluster.node(0), cluster.api, "resource.k8s.io/v1"
    server, go = older(), threading.Event()
    node.stop_kubelet()
    cluster.wait("the kubelet's connection stays", lambda: not first.registered(), 60)
    pod = claiming(cluster, "anew", UP.replace("net1", "nic1"), "n0")
    pod.manifest["spec"]["nodeName"] = "n0"
    uid = api.make(claim("anew"))["metadata"]["uid"]
    holder = {"resource": "pods", "name": "anew", "uid": pod.make().get()["metadata"]["uid"]}

    def allocate(device):
        api.patch_status(claims, "ResourceClaim", "anew", {"reservedFor": None, "allocation": None}, "default")
        result = {"request": "nic0", "driver": NIC, "pool": "n0", "device": device}
        api.patch_status(claims, "ResourceClaim", "anew", {"allocation": {"devices": {"results": [result]}}, "reservedFor": [holder]}, "default")

    def ask():
        return json.loads(node.ok([cluster.programs / "dra-calls", f"/var/lib/kubelet/plugins/{NIC}/dra.sock", "prepare", "default", "anew", uid]))

    def prepare():
        answer = ask()
        assert "error" not in answer, answer
        orders = [each for each in node.ok(["ls", "/run/drarun/orders"]).split() if each.startswith(f"{uid}.") and each.endswith(".json")]
        assert first.checkpoints() == [uid] and orders == [f"{uid}.{each['device_name']}.json" for each in answer["devices"]], orders
        return [each["device_name"] for each in answer["devices"]]

    def held(exchange):
        go.wait()
        exchange.forward()
    try:
        allocate("nic0")
        assert prepare() == prepare() == ["nic0"]
        # as its first pod has it
        pid = node.ok(["sh", "-c", "unshare --net sleep 600 >/dev/null 2>&1 & echo $!"]).strip()
        attach = f"echo '{{\"pid\": {pid}}}' | {first.hook} attach /run/drarun/orders/{uid}.nic0.json"
        cluster.wait("the NIC does not leave", lambda: node.run(["sh", "-c", attach]).returncode == 0, 30)
        assert "nic0" not in Nics(node, COUNT).here()
        allocate("nic1")
        node.ok(["ip", "link", "add", "nic0", "type", "bridge"])
        assert "it has other devices now, and those that it had could not be reclaimed" in ask()["error"]
        node.ok(["ip", "link", "del", "nic0"])
        assert prepare() == prepare() == ["nic1"]
        assert "nic0" in Nics(node, COUNT).here(), "it is still in the first pod"
        node.ok(["kill", pid])
        allocate("nic2")
        server.fault(held, lambda method, path: method == "GET" and "/resourceclaims/anew" in path, times=1000)
        assert prepare() == ["nic1"]
        first.stop()
        first.start()
        cluster.wait(lambda: first.log(), lambda: node.ok(["ss", "-xlH", "src", f"/var/lib/kubelet/plugins/{NIC}/dra.sock"]).strip(), 60)
        assert prepare() == ["nic1"]
        server.faults.clear()
        go.set()
        assert prepare() == ["nic2"]
        allocate("nic1")
    finally:
        go.set()
        node.start_kubelet()
    first.wait()
    pod.wait_phase("Succeeded")
    pod.delete()
    api.delete(claims, "ResourceClaim", "anew", "default")


def test_rolling_update(cluster, plugins):
    """Two instances at once, again and again, under pods that come and go: no Prepare fails, and what the one gave the
    other gives to nobody and takes back."""
    before = {each["metadata"]["uid"] for each in cluster.api.get("v1", "Event")}
    storm = Storm(plugins[:1], [Nics(cluster.node(0), COUNT)], 6, seed=3, every=0.4)
    storm.faults = ("roll",)
    try:
        problems = storm.run()
        assert not problems and storm.tally["fault: roll"] >= 2, "\n".join([storm.summary(), *problems])
        cluster.wait(lambda: f"left: {storm.leftovers()}\n{storm.plugins[0].log()}", lambda: not storm.leftovers(), 60)
    finally:
        storm.plugins[0].stop()
        plugins[0].start().wait()
    failed = [each["message"] for each in cluster.api.get("v1", "Event") if each["metadata"]["uid"] not in before
              and each["reason"] == "FailedPrepareDynamicResources"]
    # a veth that died with the pod before is made again by the test; one that went since the last look is not on the host
    assert all(re.search("is not on this (node|host)", message) for message in failed), failed
