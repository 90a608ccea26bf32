# SPDX-License-Identifier: Apache-2.0
"""A guest of pods, each in a network namespace with NICs that have soft-RoCE devices, whose cables go to a hub for each rail."""
import json

from . import vm
from .live_guest import LiveGuest

DOMAIN = "web.train.svc.cluster.local"
# the RDMA subsystem's mode cannot change once there are network namespaces
SETUP = """
domain=$1 count=$2
modprobe ib_core netns_mode=0
modprobe -a rdma_rxe ib_uverbs veth bridge
ip link add pods type bridge
ip link set pods up
modprobe e1000e
last=0
for worker in $3; do
    last=$((last + 1))
    ip netns add $worker
    ip link add up_$worker type veth peer name eth0 netns $worker
    ip link set up_$worker master pods up
    ip -n $worker -batch - <<EOF
link set lo up
link set eth0 up
address add 10.77.0.$last/24 dev eth0
EOF
    ip netns exec $worker sysctl -qw net.ipv4.conf.all.arp_ignore=1  # as NICs that are apart: only its own address
    printf '127.0.0.1 localhost\\n' >/run/hosts-$worker
    for i in $(seq $count); do echo 10.77.0.$i web-$((i - 1)).$domain; done >>/run/hosts-$worker
    sed -i "s/10.77.0.$last .*/& web-$((last - 1))/" /run/hosts-$worker
done
for each in $4; do
    IFS=, read name mac worker rail last <<<$each
    until old=$(grep -lx $mac /sys/class/net/*/address); do sleep 0.1; done
    old=${old%/address}
    ip link set ${old##*/} name $name mtu 4200 up
    rdma link add rxe_$name type rxe netdev $name
    ip link set $name netns $worker
    rdma dev set rxe_$name netns $worker
    ip -n $worker -batch - <<EOF
link set $name up
address add 10.9.$rail.$last/24 dev $name
EOF
    gid=$(printf 0a09:%02x%02x $rail $last)
    ip netns exec $worker sh -c "until grep -qs $gid /sys/class/infiniband/rxe_$name/ports/1/gids/*; do sleep 0.1; done"
done
"""
# A container of a pod. The metadata file stands for the driver, since software RDMA shows no PCI device
POD = """
hostname web-$1; mount --bind /run/hosts-$2 /etc/hosts
mount -t tmpfs none /dev/infiniband
for each in /sys/class/infiniband_verbs/uverbs*; do
    read name <$each/ibdev; IFS=: read major minor <$each/dev
    case " $3 " in *" $name "*) mknod -m 666 /dev/infiniband/${each##*/} c $major $minor ;; esac
done
mkdir -p /run/kubernetes.io; mount -t tmpfs none /run/kubernetes.io
folder=/run/kubernetes.io/dra-device-attributes/resourceclaims/nics/nic
mkdir -p $folder; printf %s "$METADATA" >$folder/nic.example.com-metadata.json
shift 3; exec "$@"
"""


def metadata(worker, rails):
    """Of its NICs, in the order of their PCI addresses."""
    devices = []
    for place, rail in enumerate(rails):
        values = {"resource.kubernetes.io/pciBusID": f"0000:{place + 1:02x}:00.0", "rdmaDevice": f"rxe_{worker}{rail}", "ifName": f"{worker}{rail}"}
        devices.append({"driver": "nic.example.com", "pool": "vm", "name": f"nic-{rail}",
                        "attributes": {name: {"string": value} for name, value in values.items()}})
    return json.dumps({"kind": "DeviceMetadata", "apiVersion": "metadata.resource.k8s.io/v1beta1",
                       "metadata": {"name": "nics", "namespace": "train", "generation": 1}, "requests": [{"name": "nic", "devices": devices}]})


class RailGuest(LiveGuest):
    """Workers "a", "b" and so on, at 10.77.0.1 and on. Their interfaces are a0, a1, b0 and so on, their devices rxe_a0 and so on, at
    10.9.RAIL.WORKER. how: the guest's options."""

    def __init__(self, workers=4, rails=2, **how):
        vm.need_movable_rdma()
        self.workers, self.rails = "abcdefgh"[:workers], range(rails)
        nics = [(f"{worker}{rail}", f"52:54:00:00:{i:02x}:{rail:02x}", worker, rail, i + 1)
                for i, worker in enumerate(self.workers) for rail in self.rails]
        super().__init__(options=[word for name, mac, _, rail, _ in nics for word in (
            "-netdev", f"hubport,hubid={rail},id={name}", "-device", f"e1000e,bus=pcie.0,netdev={name},mac={mac},romfile=")], **how)
        try:
            self.sh(SETUP, DOMAIN, workers, " ".join(self.workers), " ".join(",".join(map(str, each)) for each in nics))
        except BaseException:
            self.close()
            raise

    def pod(self, worker, *argv, rails=None, opened=None, under=(), **env):
        """Starts a command in the pod of a worker, whose NICs are those of the hubs `rails`, in their order. opened: the rails whose device
        files it has, where not all; under: around the pod. What it gives is start's."""
        rails = self.rails if rails is None else rails
        opened = rails if opened is None else opened
        return self.start(*under, "ip", "netns", "exec", worker, "unshare", "--uts", "--mount", "bash", "-ec", POD, "pod",
                          self.workers.index(worker), worker, " ".join(f"rxe_{worker}{rail}" for rail in opened), *argv,
                          env={**env, "METADATA": metadata(worker, rails)})
