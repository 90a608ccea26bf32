# SPDX-License-Identifier: Apache-2.0
"""`drarun-plugin discover` on captured machines: what the drivers of the field published there is what it finds."""
import json
import os
import re
import subprocess

import pytest

from support.build import BUILD, SOURCE, patience
from support.run import Runner
from support.sysfs_tree import make_tree

# a4-highgpu-8g-v1beta1 is a4-highgpu-8g with the names of early drivers
FIXTURES = sorted(path.stem for path in (SOURCE / "tests/data/fixtures").glob("*.json") if "v1beta1" not in path.stem)
# of the field's attributes those that a tree made from the fixture has to show
COMPARED = ("pcieRoot", "pciBusID", "pciAddress", "uuid", "productName", "rdma", "ifName", "encapsulation", "rdmaDevice")


@pytest.fixture
def plugin():
    runner = Runner(BUILD / "bin/drarun-plugin")
    yield runner
    runner.close()


def load(name):
    return json.loads((SOURCE / "tests/data/fixtures" / f"{name}.json").read_text())


def flat(device):
    body = device.get("basic", device)
    return {key.split("/")[-1]: next(iter(value.values())) for key, value in body["attributes"].items()}


def devices_of(slices):
    return [device for each in slices for device in each["spec"].get("devices", ())]


def found_on(plugin, root, *more):
    out = plugin("discover", "--root", root, "-o", "json", "--node", "n0", *more).ok().out
    return json.loads(out)["items"]


@pytest.mark.parametrize("name", FIXTURES)
def test_captured_machine(plugin, tmp_path, name):
    fixture = load(name)
    found = {}
    for device in devices_of(found_on(plugin, make_tree(fixture, tmp_path))):
        facts = flat(device)
        found[facts.get("pciBusID") or facts["pciAddress"]] = facts
    compared = 0
    for device in devices_of(fixture["resourceSlices"]):
        wanted = flat(device)
        address = wanted.get("pciBusID") or wanted.get("pciAddress")
        if wanted.get("type") == "mig" or address not in found:
            # a tree has no management NICs, and a channel is no function
            assert wanted.get("type") in ("mig", "channel", "daemon") or address not in fixture["truth"]["nics"], device
            continue
        for key in COMPARED:
            # later drivers tell of RoCE what earlier ones left out; a published "" says nothing
            # Hyper-V's functions lie below no /sys/devices/pci*: upstream finds no root there (the fixture's is derived)
            if key in wanted and wanted[key] != "" and not (key == "pcieRoot" and name.startswith("azure")):
                assert (key, found[address].get(key)) == (key, wanted[key]), address
                compared += 1
        if wanted.get("numaNode", -1) != -1:
            assert found[address]["numaNode"] == wanted["numaNode"]
    assert compared >= 3 * len(found)
    truth = fixture["truth"]
    assert sum(1 for facts in found.values() if "rail" in facts) == sum(
        1 for nic in truth["nics"].values() if nic["ibdev"])


def test_documentation(plugin, tmp_path):
    """Every attribute that is published stands in the design note."""
    note = (SOURCE / "docs/design/021-node-devices.md").read_text()
    table = [line for line in note.splitlines() if line.startswith("| ") and "`" in line]
    for name in FIXTURES:
        for device in devices_of(found_on(plugin, make_tree(load(name), tmp_path / name))):
            for key in (*device["attributes"], *device.get("capacity", ())):
                domain, short = key.split("/")
                assert any(f"`{key}`" in line or (f"`{domain}/" in line and f"`{short}`" in line) for line in table), key


def test_table(plugin, tmp_path):
    out = plugin("discover", "--root", make_tree(load("a4-highgpu-8g"), tmp_path)).ok().out.splitlines()
    assert len(out) == 17
    assert out[0].split() == ["NAME", "KIND", "PCIEROOT", "SWITCH", "NUMA", "INTERFACE/PRODUCT", "RDMA/UUID", "SPEED/MEMORY",
                              "STATE"]
    assert re.fullmatch(r"pci-0000-91-00-0 +NIC +pci0000:8c +0000:8d:00\.0 +0 +gpu0rdma0 +mlx5_0 +400 Gb/s +ok", out[9])


def test_shapes(plugin, tmp_path):
    root = make_tree(load("a4-highgpu-8g"), tmp_path)
    new, old = found_on(plugin, root), found_on(plugin, root, "--api-version", "v1beta1")
    assert [each["apiVersion"] for each in new + old] == ["resource.k8s.io/v1"] * 2 + ["resource.k8s.io/v1beta1"] * 2
    for one, other in zip(devices_of(new), devices_of(old)):
        assert other == {"name": one.pop("name"), "basic": one}
    as_yaml = plugin("discover", "--root", root, "-o", "yaml").ok().out
    assert "driver: nic.drarun.dev" in as_yaml


def test_configuration(plugin, tmp_path):
    config = tmp_path / "config.yaml"
    root = make_tree(load("dgx-h100"), tmp_path / "root")
    config.write_text("""
nics:
  include: device.attributes["drarun.dev"].speed == 400000
  excludePrefixes: [eth9]
names:
- match: 'device.driver == "nic.drarun.dev"'
  name: rail-{rail}
""")
    names = [each["name"] for each in devices_of(found_on(plugin, root, "--config", config))]
    assert [name for name in names if name.startswith("rail-")] and all(
        re.fullmatch(r"rail-\d+|gpu-0000-..-00-0", name) for name in names)


def test_live(tmp_path):
    """On this kernel: virtual interfaces tell what they are, and the one with the node's address stays the host's."""
    if os.getuid() != 0:
        pytest.skip("a network namespace with interfaces needs root")
    config = tmp_path / "config.yaml"
    config.write_text("nics: {virtualPrefixes: [rail, node]}\n")
    script = """
mount -t sysfs sysfs /sys
for name in rail0 rail1 rail2 node0; do ip link add $name type veth peer name far-$name; ip link set $name up; done
ip link set far-rail1 up
ip address add 10.1.2.3/24 dev rail1
ip address add 192.0.2.7/24 dev node0
ip link add bridge0 type bridge
ip link set rail2 master bridge0
exec "$@"
"""
    argv = ["unshare", "--net", "--mount", "sh", "-ec", script, "sh", BUILD / "bin/drarun-plugin", "discover", "-o", "json",
            "--node-ip", "192.0.2.7", "--config", config]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=patience())
    assert done.returncode == 0, done.stderr
    devices = {each["name"]: each for each in devices_of(json.loads(done.stdout)["items"])}
    assert sorted(name for name in devices if not name.startswith("pci-")) == ["rail0", "rail1"]
    assert flat(devices["rail0"])["type"] == "veth"
    assert "node0 is not published: the host uses it: it has the node's address" in done.stderr
    assert "rail2 is not published: the host uses it: it is part of bridge0" in done.stderr
    # its peer is down
    assert [each["key"] for each in devices["rail0"]["taints"]] == ["drarun.dev/link-down"]
    assert "taints" not in devices["rail1"] and flat(devices["rail1"])["ipv4"] == "10.1.2.3/24"


USES = """
mount -t sysfs sysfs /sys
ip link set lo up
for k in 0 1 2 3 4 5 6 7 8; do
    ip link add rail$k type veth peer name far$k; ip link set far$k up; ip link set rail$k up
    test $k = 0 || ip address add 10.5.$k.2/24 dev rail$k
done
ip address add 192.168.1.5/32 dev rail0
ip route add 192.168.1.1 dev rail0 scope link
ip route add 192.168.1.0/24 via 192.168.1.1 dev rail0
ip route add default via 10.5.6.1 dev rail6
ip route add default via 10.5.8.1 dev rail8 metric 1024
ip route add 10.6.0.0/16 via 10.5.1.1 dev rail1
tc qdisc add dev rail7 clsact
tc filter add dev rail7 egress bpf bytecode "1,6 0 0 4294967295"
tc qdisc add dev rail5 clsact
exec "$@"
"""
SOCKETS = """
import os, socket, sys
kept = []
def bound(kind, address, port):
    kept.append(socket.socket(socket.AF_INET, kind))
    kept[-1].bind((address, port))
    return kept[-1]
bound(socket.SOCK_STREAM, "10.5.2.2", 0).listen()
bound(socket.SOCK_DGRAM, "10.5.3.2", 0).connect(("10.5.3.9", 2049))
for port in (68, 123):
    bound(socket.SOCK_DGRAM, "10.5.4.2", port)
bound(socket.SOCK_STREAM, "0.0.0.0", 0).listen()
for each in kept:
    os.set_inheritable(each.fileno(), True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_used_by_the_host(tmp_path):
    """Of nine NICs with addresses those are not offered that a route, a socket or a BPF program uses, and the uplink; those that are
    named are. So is the uplink's substitute."""
    if os.getuid() != 0:
        pytest.skip("a network namespace with interfaces needs root")
    config = tmp_path / "config.yaml"

    def look(text):
        config.write_text(text)
        argv = ["unshare", "--net", "--mount", "sh", "-ec", USES, "sh", "/usr/bin/python3", "-c", SOCKETS, BUILD / "bin/drarun-plugin",
                "discover", "-o", "json", "--config", config]
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=patience())
        assert done.returncode == 0, done.stderr
        return sorted(each["name"] for each in devices_of(json.loads(done.stdout)["items"]) if each["name"].startswith("rail")), done.stderr
    names, said = look("nics: {virtualPrefixes: [rail]}\n")
    assert names == ["rail0", "rail4", "rail5"], said
    for part in ("rail1 is not published: the host uses it: it has a route to 10.6.0.0/16 via 10.5.1.1; end that, or name it in nics.include",
                 "rail2 is not published: the host uses it: a process of the host listens on 10.5.2.2 port ",
                 "rail3 is not published: the host uses it: a process of the host is connected from 10.5.3.2 to 10.5.3.9 port 2049 (UDP)",
                 "rail7 is not published: the host uses it: it has a BPF program (tc, bpf), which would be lost on the way into a pod; end that",
                 "rail6 is not published: the host uses it: it has the default route",
                 "rail8 is not published: the host uses it: it has a default route via 10.5.8.1 (metric 1024); end that, or name it in"):
        assert part in said, said
    names, said = look("nics: {virtualPrefixes: [rail], include: 'device.attributes[\"dra.net\"].ifName in [\"rail1\", \"rail2\", \"rail6\", \"rail7\", \"rail8\"]'}\n")
    assert names == ["rail1", "rail2", "rail7", "rail8"], said


@pytest.mark.parametrize("text,message", [
    ("nics: {includes: x}\n", "config.yaml:1:8: nics.includes: unknown key; did you mean include?"),
    ("nics: {include: 'device.attributes['}\n", "config.yaml:1:17: nics.include: "),
    ("rescan: 10ms\n", "config.yaml:1:1: rescan: expected at least 1s"),
    ("kind: DraJob\n", "config.yaml:1:1: kind: expected PluginConfig"),
    ("nics:\n  include: device.attributes['dra.net'].ifName.split('').map(c, c + c).size() > 3\n", "there is no bound"),
    ("names: [{name: 'a_{rail}'}]\n", "config.yaml:1:16: names[0].name: expected lower-case letters, digits and -"),
    ("taints: {xid: Sometimes}\n", "config.yaml:1:15: taints.xid: expected"),
])
def test_bad_configuration(plugin, tmp_path, text, message):
    config = tmp_path / "config.yaml"
    config.write_text(text)
    done = plugin("discover", "--root", tmp_path, "--config", config)
    assert done.rc == 65 and message in done.err, done


@pytest.mark.parametrize("args,message", [
    (["--root", "/nonexistent"], "--root /nonexistent: No such file or directory"),
    (["-o", "xml"], '-o: expected one of "table json yaml", got "xml"'),
    (["--api-version", "v2"], '--api-version: expected one of "v1 v1beta2 v1beta1", got "v2"'),
    (["more"], "unexpected argument more"),
    (["--nod", "n"], "unknown option --nod; did you mean --node?"),
    (["--nvml", "/nonexistent.so", "--root", "/"], "--nvml: /nonexistent.so: cannot open shared object file"),
])
def test_bad_command_line(plugin, args, message):
    done = plugin("discover", *args)
    assert done.rc == 64 and message in done.err, done


@pytest.mark.parametrize("args,message", [
    ([], "no argument: expected a verb; see drarun-plugin --help"),
    (["serve"], "serve: no such verb: expected a verb"),
    (["run"], "expected the node's name: --node NAME, or the variable NODE_NAME"),
    (["run", "--node", "n", "more"], "unexpected argument more"),
    (["run", "--node", "n", "--drivers", "cpu"], "--drivers cpu: expected gpu, nic or gpu,nic"),
    (["run", "--node", "n", "--takeover", "dra_net"], "--takeover dra_net: expected a driver's name, like dra.net"),
    (["run", "--node", "n", "--takeover", "dra..net"], "expected a driver's name"),
    (["run", "--node", "n", "--takeover", "a" * 64], "expected a driver's name"),
    (["run", "--node", "n", "--drivers", "gpu", "--takeover", "dra.net"], "--takeover serves NICs, and --drivers has none"),
    (["repaired"], "repaired: expected ADDRESS..."),
    (["repaired", "--state-dir", "{}", "mlx5_0"], "repaired: mlx5_0: expected a GPU's PCI address, as 0000:8f:00.0"),
    (["repaired", "--state-dir", "/" + "a" * 256, "0000:8f:00.0"], "repaired: --state-dir: the path is too long"),
])
def test_bad_use_of_verbs(plugin, tmp_path, args, message):
    done = plugin(*[word.format(tmp_path) for word in args], env={"NODE_NAME": ""})
    assert done.rc == 64 and message in done.err and not any(path.is_file() for path in tmp_path.rglob("*")), done


def test_repaired_gpus_are_left_to_the_plugin(plugin, tmp_path):
    plugin("repaired", "--state-dir", tmp_path, "8F:00.0", "0001:8f:00.0").ok()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["0000:8f:00.0", "0001:8f:00.0"]
