# SPDX-License-Identifier: Apache-2.0
"""A node that is a machine of its own: a guest (../vm.py) with a kernel of its own and cgroup v2 alone, cabled to the
bridge of the API server and the other nodes. A kubelet, a containerd and runc or crun run in it as on any machine."""
import os
import subprocess
import threading
from pathlib import Path

from .daemon import GO
from .image import IMPORT, fetched_root
from .node import Node
from .. import vm
from ..live_guest import LiveGuest

# Cold code is some thirty times slower in a guest than here.
READY_S = 400
COMMAND_S = 300
# Debian 12's crun takes no configuration of containerd 2; a newer one wants the C library that comes with it.
CRUN = """#!/bin/sh
libraries={root}/usr/lib/x86_64-linux-gnu
exec $libraries/ld-linux-x86-64.so.2 --library-path $libraries {root}/usr/bin/crun "$@"
"""
PF = "52:54:00:00:03:ff"  # of the NIC that has virtual functions
# The kubelet insists on these six, and a pod network on being a router.
SETTLE = """
shared=$1 name=$2 address=$3 gateway=$4 mac=$5 store=$6 nics=$7 pf=$8 vfs=$9 number=0
hostname "$name"
mkdir -p "$shared"
mount --bind /run/vm/job "$shared"
[ -z "$nics$vfs" ] || modprobe ib_core netns_mode=0  # cannot change once there are network namespaces
modprobe -a virtio_net overlay veth bridge
until card=$(grep -l "$mac" /sys/class/net/*/address); do sleep 0.1; done
card=${card%/address}
ip -batch - <<I
link set ${card##*/} name eth0
link set eth0 up
address add $address dev eth0
route add default via $gateway
link add rails type bridge forward_delay 0
link set rails up
I
cd /proc/sys
echo 1 >net/ipv4/ip_forward
echo 1 >vm/overcommit_memory
echo 0 >vm/panic_on_oom
echo 10 >kernel/panic
echo 1 >kernel/panic_on_oops
echo 1000000 >kernel/keys/root_maxkeys
echo 25000000 >kernel/keys/root_maxbytes
cd /sys/fs/cgroup
for each in $(cat cgroup.controllers); do echo "+$each" >cgroup.subtree_control; done
for each in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log; do
    mkdir -p $each
    mount -t tmpfs -o mode=755,size=100% tmpfs $each
done
mount --make-rshared /var/lib/kubelet
mkdir -p /run/cdi /run/containerd
cp -a "$store/." /var/lib/containerd/
[ -z "$nics$vfs" ] || modprobe -a e1000e rdma_rxe ib_uverbs
if [ -n "$pf" ]; then
    modprobe igb
    until card=$(grep -lx "$pf" /sys/class/net/*/address); do sleep 0.1; done
    card=${card%/address}
    ip link set ${card##*/} name pf up
    echo $(wc -w <<<"$vfs") >/sys/class/net/pf/device/sriov_numvfs
    modprobe igbvf
    for each in $vfs; do
        IFS=, read -r _ mac _ <<<"$each"
        until card=$(ls /sys/class/net/pf/device/virtfn$number/net 2>/dev/null); do sleep 0.1; done
        ip link set $card address $mac
        : $((number++))
    done
fi
for each in $nics $vfs; do
    IFS=, read -r nic mac own <<<"$each"
    until card=$(grep -lx "$mac" /sys/class/net/*/address); do sleep 0.1; done
    card=${card%/address}
    ip -batch - <<I
link set ${card##*/} name $nic mtu 4200
link set $nic up
address add $own dev $nic
I
    rdma link add rxe_$nic type rxe netdev $nic
done
"""


def words(nics):
    """For a line of the shell."""
    return " ".join(",".join(each) for each in nics)


class Import:
    """What start_import gives: of a process, wait and stderr are asked for."""

    def __init__(self, end):
        self.result, self.end = None, end
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def _wait(self):
        self.result = self.end()

    def wait(self, seconds):
        self.thread.join(seconds)
        return self.result.rc if self.result else None

    @property
    def stderr(self):
        return self

    def read(self):
        return self.result.err if self.result else "it has not ended"

    def close(self):
        pass


class GuestMachine(Node):
    """A Node; its folder is shared with the guest under the same path, and everything else of the guest's is its own.
    memory_mib, cpus: of the guest. nics: PCI NICs nic0, nic1, ..., joined by a hub, each with a soft-RoCE device that goes with it from one
    network namespace to another. vfs: virtual functions nicvf0, nicvf1, ... of one more NIC of that hub, pf; they have such devices, too.
    crun: whether containerd may be told to call crun (change_runtime); at first it calls runc."""

    ready_s = READY_S

    def __init__(self, cluster, index, memory_mib=3072, cpus=2, nics=0, vfs=0, crun=False):
        super().__init__(cluster, index)
        self.guest = None
        self.crun, self.calls_crun = fetched_root("crun") if crun else None, False
        self.nics = [(f"nic{i}", f"52:54:00:00:02:{i:02x}", f"10.94.{index}.{i + 1}/16") for i in range(nics)]
        self.vfs = [(f"nicvf{i}", f"52:54:00:00:03:{i:02x}", f"10.94.{index}.{nics + i + 1}/16") for i in range(vfs)]
        self.size = {"memory_mib": memory_mib, "cpus": cpus}
        self.tap, self.mac = f"dt{os.getpid() % 10**7}t{index}", f"52:54:00:00:01:{index:02x}"

    def _make_cgroups(self):
        return []

    @property
    def runtime(self):
        return self.folder / "crun" if self.calls_crun else super().runtime

    def _write_settings(self):
        super()._write_settings()
        if self.calls_crun:
            self.runtime.write_text(CRUN.format(root=self.crun))
            self.runtime.chmod(0o755)

    def start(self, store):
        if self.nics or self.vfs:
            vm.need_movable_rdma()
        rails = [word for name, mac, _ in self.nics for word in (
            "-netdev", f"hubport,hubid=0,id={name}", "-device", f"e1000e,bus=pcie.0,netdev={name},mac={mac},romfile=")]
        if self.vfs:
            rails += ["-netdev", "hubport,hubid=0,id=pf", "-device", "pcie-root-port,id=vfs,bus=pcie.0,chassis=1", "-device",
                      f"igb,bus=vfs,netdev=pf,mac={PF}"]
        self.guest = LiveGuest(
            options=[*rails, "-netdev", f"tap,id=cable,ifname={self.tap},script=no,downscript=no", "-device",
                     f"virtio-net-pci,bus=pcie.0,netdev=cable,mac={self.mac},romfile="],
            folders=[self.cluster.folder, self.cluster.programs.resolve().parent, *([self.crun] if self.crun else [])], **self.size)
        self.folder = self.guest.folder / self.name
        (self.folder / "cni").mkdir(parents=True)
        self._write_settings()
        self._cable()
        self.guest.sh(SETTLE, self.guest.folder, self.name, f"{self.address}/{self.family.bits}", self.family.api, self.mac, store,
                      words(self.nics), PF if self.vfs else "", words(self.vfs), seconds=COMMAND_S)
        for other in self.cluster.nodes:
            if other is not self:
                self.ok(["ip", "route", "add", self.family.pod_network(other.index), "via", other.address])
        self.start_containerd()

    def _cable(self):
        """QEMU has made the far end of the guest's card here: it goes where the bridge is."""
        subprocess.run(["ip", "link", "set", self.tap, "netns", str(self.cluster.network.pid)], check=True)
        run = self.cluster.network.run
        run("ip", "link", "set", self.tap, "master", "br0", "up")
        run("ip", "route", "replace", self.family.pod_network(self.index), "via", self.address)

    def run(self, argv, timeout=60, inside=False, env=None, input="", **how):
        assert not how, how
        env = {"PATH": f"{self.cluster.programs}:{os.environ['PATH']}", "KUBECONFIG": self.folder / "kubeconfig", **(env or {})}
        done = self.guest.run(*argv, seconds=timeout + COMMAND_S, env=env, input=input)
        return subprocess.CompletedProcess(argv, done.rc, done.out, done.err)

    def daemon(self, name, argv):
        self.guest.start("sh", "-c", 'log=$1; shift; exec "$@" >>"$log" 2>&1', "sh", self.folder / f"{name}.log", *argv,
                         env={"PATH": f"{self.cluster.programs}:{os.environ['PATH']}", "KUBECONFIG": self.folder / "kubeconfig", **GO})

    def change_runtime(self, name):
        """What containerd calls, runc or crun: the node is another one then, of the same name. No pod may be left."""
        self.stop_kubelet()
        self.stop_containerd()
        self.cluster.api.delete("v1", "Node", self.name)  # else it would be ready before it is
        self.calls_crun = name == "crun"
        self._write_settings()
        self.start_containerd()
        self.start_kubelet()
        self.wait_ready()

    def start_import(self, packed):
        self.wait_containerd()
        return Import(self.guest.start(self.cluster.programs / "ctr", *IMPORT, packed, seconds=COMMAND_S))

    def path(self, path):
        return Path(path)  # of its folder, which both have

    def cut(self):
        self.cluster.network.run("ip", "link", "set", self.tap, "down")

    def mend(self):
        self.cluster.network.run("ip", "link", "set", self.tap, "up")

    def end(self):
        """Power loss; nothing is kept."""
        if self.guest:
            self.guest.close()
            self.guest = None

    def wait_end(self):
        pass
