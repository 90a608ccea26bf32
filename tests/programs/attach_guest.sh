#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# attach_guest.sh DRARUN-ATTACH BPF-PIN: what test_attach_guest.py lets a guest do, a line "KEY: VALUE" each.
set -u
hook=$1 bpf=$2
say() { printf '%s: %s\n' "$1" "$(tr '\n' ' ' <<<"${*:2}")"; }
modprobe -a e1000e dummy vrf rdma_rxe
mkdir -p /run/netns /tmp/orders
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
await() { # COMMAND: until it succeeds; the deadline is the guest's
    until "$@" >/dev/null 2>&1; do sleep 0.05; done
}
await test -e /sys/class/net/eth0
await test -e /sys/class/net/eth1
pci=$(basename "$(readlink -f /sys/class/net/eth1/device)")
pci0=$(basename "$(readlink -f /sys/class/net/eth0/device)")
say pci "$pci"
ip link set eth1 up mtu 1400
ip addr add 10.7.0.7/24 dev eth1

# a container with this machine's files
mkdir -p /tmp/own && echo '{"root":{"path":"/"}}' >/tmp/own/config.json

order() { # NAME PCI HOST-NAME CONFIG [MORE]
    printf '{"version":1,"claim":{"namespace":"n","name":"c","uid":"u"},"device":"%s","pci":"%s",%s
"host":{"name":"%s","mtu":%s,"up":true,"addresses":[%s]},"config":%s}' "$1" "$2" "${5:-}" "$3" \
        "$(cat "/sys/class/net/$3/mtu")" "$([ "$3" = eth1 ] && echo '"10.7.0.7/24"')" "$4" >"/tmp/orders/$1"
}
entered() { [ ! "/proc/$1/ns/net" -ef /proc/$$/ns/net ]; }
pod() { # NAME: with one process
    ip netns add "$1"
    ip netns exec "$1" sleep 1000 &
    eval "pid_$1=$!"
    await entered $!
}
die() { # NAME: nothing holds its namespace any more
    local pid=pid_$1
    kill "${!pid}"; wait "${!pid}" 2>/dev/null
    ip netns del "$1"
}
attach() { # POD ORDER
    local pid=pid_$1
    echo "{\"pid\": ${!pid}, \"bundle\": \"/tmp/own\"}" | "$hook" attach "/tmp/orders/$2" 2>&1
    echo "rc=$?"
}
restore() { "$hook" restore "/tmp/orders/$1" 2>&1; echo "rc=$?"; }
host() { # how eth1 is on the host
    ip -o link show eth1 | grep -o 'mtu [0-9]*\|,UP[,>]' | tr -d ',>' | tr '\n' ' '
    ip -o -4 addr show eth1 | grep -o 'inet [^ ]*'
}

order nic1 "$pci" eth1 '{"interface":{"name":"net1","mtu":1350,"addresses":["10.9.0.2/24"]}}'
pod a
say attach "$(attach a nic1)" "$(ip -n a -o -4 addr show net1 | grep -o 'inet [^ ]*')"
say again "$(attach a nic1)"
say away "$(find /sys/bus/pci/devices/"$pci"/net -mindepth 1 2>/dev/null | wc -l)"
die a
say died "$(restore nic1)" "$(host)"
say idle "$(restore nic1)" "$(host)"

# its name in the pod is another's on the host: it comes back as devN
order nic2 "$pci" eth1 '{"interface":{"name":"eth0"}}'
pod b
say taken "$(attach b nic2)" "$(ip -n b -o link show eth0 | grep -o 'eth0')"
die b
await compgen -G "/sys/class/net/dev*"
say dev-name "$(ls /sys/bus/pci/devices/"$pci"/net)"
say dev-restored "$(restore nic2)" "$(host)"

# two whose names in the pod are each other's on the host
order cross1 "$pci" eth1 '{"interface":{"name":"eth0"}}'
order cross0 "$pci0" eth0 '{"interface":{"name":"eth1"}}'
pod x
say crossing "$(attach x cross1)" "$(attach x cross0)"
die x
await test -e "/sys/bus/pci/devices/$pci/net/eth0"
await test -e "/sys/bus/pci/devices/$pci0/net/eth1"
say crossed "$("$hook" restore /tmp/orders/cross1 /tmp/orders/cross0 2>&1; echo "rc=$?")" "$(host)" "$(ls "/sys/bus/pci/devices/$pci0/net")"

# the next pod wants it before it is back
pod c; pod d
say next-first "$(attach c nic1)"
die c
say next "$(attach d nic1)" "$(ip -n d -o link show net1 | grep -o net1)"
say alive "$(restore nic1)" "$(host)"

# settings that the machine of the test may lack
order nic3 "$pci" eth1 '{"interface":{"name":"net1","addresses":["10.9.0.2/24"],"vrf":{"name":"red"}},
"routes":[{"destination":"10.20.0.0/16","gateway":"10.9.0.1"}]}'
say vrf "$(attach d nic3)" "$(ip -n d -o link show net1 | grep -o 'master red')" "$(ip -n d route show table 1596 | grep -o '^10.20[^ ]*')"
say vrf-again "$(attach d nic3)"
restore nic3 >/dev/null
ip link add dum0 type dummy; ip link set dum0 address 02:00:00:00:00:09
printf '{"version":1,"claim":{"namespace":"n","name":"c","uid":"u"},"device":"dum","mac":"02:00:00:00:00:09",
"host":{"name":"dum0","mtu":1500,"up":false},"config":{"interface":{"name":"net5"}}}' >/tmp/orders/dum
pod e
say dummy "$(attach e dum)"
ip link add with-e type veth peer name e0 netns e
die e
await test ! -e /sys/class/net/with-e # all devices of a namespace end as one
say dummy-gone "$(restore dum)"

# under crun, which wants cgroup v2 alone: two containers of the pod
bundle() { # ORDER
    cat >/tmp/bundle/config.json <<J
{"ociVersion":"1.0.2","process":{"cwd":"/","args":["/bin/busybox","ip","-o","-4","addr","show","net1"],"env":[],
"user":{"uid":0,"gid":0}},"root":{"path":"rootfs"},"mounts":[{"destination":"/proc","type":"proc","source":"proc"}],
"linux":{"namespaces":[{"type":"mount"},{"type":"pid"},{"type":"network","path":"/run/netns/d"}]},
"hooks":{"createRuntime":[{"path":"$hook","args":["drarun-attach","attach","/tmp/orders/$1"]}]}}
J
}
if command -v crun >/dev/null; then
    mkdir -p /tmp/bundle/rootfs/{bin,proc,dev,sys}
    cp /bin/busybox /tmp/bundle/rootfs/bin
    bundle nic1
    for name in one two; do
        say "crun-$name" "$(crun run -b /tmp/bundle "$name" 2>&1 | grep -o 'inet [^ ]*\|drarun-attach:.*\|error.*')"
    done
    restore nic1 >/dev/null
fi

# BPF programs of the host
order nic4 "$pci" eth1 '{"interface":{"name":"net1","disableEbpfPrograms":true}}'
"$bpf" /sys/fs/bpf/pass; "$bpf" --tcx eth1
ip link set dev eth1 xdpgeneric pinned /sys/fs/bpf/pass
say bpf-before "$(ip -o link show eth1 | grep -o xdpgeneric)" "$("$bpf" --tcx-count eth1)"
say bpf "$(attach d nic4)" "$(ip -n d -o link show net1 | grep -o xdpgeneric)" "$(ip netns exec d "$bpf" --tcx-count net1)"
say bpf-again "$(attach d nic4)"
restore nic4 >/dev/null

# and of a pod
say bpf-of-pod-attach "$(attach d nic1)"
nsenter --net=/run/netns/d "$bpf" --tcx net1
nsenter --net=/run/netns/d ip link set dev net1 xdpgeneric pinned /sys/fs/bpf/pass
say bpf-of-pod "$(ip -n d -o link show net1 | grep -o xdpgeneric)" "$(nsenter --net=/run/netns/d "$bpf" --tcx-count net1)"
say bpf-left "$(restore nic1)" "$(ip -o link show eth1 | grep -o xdpgeneric)" "$("$bpf" --tcx-count eth1)"

# RDMA: rxe goes when its own netdev leaves, so the device of eth1 is sent along with eth0
rdma link add rxe1 type rxe netdev eth1
order rdma "$pci0" eth0 '{"interface":{"name":"net1"}}' '"rdma":"rxe1",'
say shared "$(attach d rdma)" "$(rdma dev | grep -o rxe1)"
say shared-restored "$(restore rdma)" "$(rdma dev | grep -o rxe1)"
die d
await rdma system set netns exclusive
say mode "$(rdma system)"
pod f
# only a patched driver moves software devices (tests/vm/rxe-netns.patch)
ip netns add h
movable=$(rdma dev set rxe1 netns h 2>&1 && echo yes)
ip netns del h
await rdma dev show rxe1
say movable "$movable"
say exclusive "$(attach f rdma)" "host=$(rdma dev | grep -o rxe1)" "pod=$(ip netns exec f rdma dev | grep -o rxe1)"
say exclusive-host "$(ip -o link show eth0 | grep -o eth0)"
if [ "$movable" = yes ]; then
    say exclusive-again "$(attach f rdma)"
    say exclusive-pulled "$(restore rdma)" "host=$(rdma dev | grep -o rxe1)" "$(ip -o link show eth0 | grep -o eth0)"
    say exclusive-next "$(attach f rdma)"
    die f
    pod i
    say exclusive-other "$(attach i rdma)"
    die i
    # under crun: the node of the number before is there, and spare ones, of which the hook takes the right one
    if command -v crun >/dev/null; then
        ip netns add j; ip -n j link set lo up
        restore rdma >/dev/null
        node() { printf '{"path":"/dev/infiniband/%s","type":"c","major":231,"minor":%s,"fileMode":438}' "$1" "$2"; }
        cat >/tmp/bundle/config.json <<J
{"ociVersion":"1.0.2","process":{"cwd":"/","args":["/bin/busybox","sh","-c","busybox ls -A /dev/infiniband; busybox stat -c %t:%T /dev/infiniband/uverbs*"],
"env":[],"user":{"uid":0,"gid":0}},"root":{"path":"rootfs"},"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
{"destination":"/dev","type":"tmpfs","source":"tmpfs"}],
"linux":{"namespaces":[{"type":"mount"},{"type":"pid"},{"type":"network","path":"/run/netns/j"}],"devices":[
$(node uverbs7 199),$(node .drarun-u/uverbs0 192),$(node .drarun-u/uverbs1 193)]},
"hooks":{"createRuntime":[{"path":"$hook","args":["drarun-attach","attach","/tmp/orders/rdma"]}]}}
J
        say crun-nodes "$(crun run -b /tmp/bundle nodes 2>&1)"
        restore rdma >/dev/null; ip netns del j
        ip netns add i; attach i rdma >/dev/null; ip netns del i
    fi
    say exclusive-died "$(restore rdma)" "host=$(rdma dev | grep -o rxe1)"
fi

# let go by its driver, or unplugged, while a pod has it
pod g
driver=$(readlink -f /sys/bus/pci/devices/"$pci"/driver)
attach g nic1 >/dev/null
echo "$pci" >"$driver/unbind"
say unbound "$(restore nic1)"
echo "$pci" >"$driver/bind"
await test -e /sys/bus/pci/devices/"$pci"/net
ip link set "$(ls /sys/bus/pci/devices/"$pci"/net)" name eth1
say rebound "$(attach g nic1)"
echo 1 >/sys/bus/pci/devices/"$pci"/remove
cp /tmp/orders/nic1 /tmp/orders/nic1-too # a lock of its own
say unplugged "$(attach g nic1-too)" &
attaching=$!
say unplugged-restore "$(restore nic1)"
wait "$attaching"
