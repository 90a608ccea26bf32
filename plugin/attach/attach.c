/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/attach.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/attach/address.h"
#include "plugin/attach/ebpf.h"
#include "plugin/attach/ethtool.h"
#include "plugin/attach/link.h"
#include "plugin/attach/neighbor.h"
#include "plugin/attach/netns.h"
#include "plugin/attach/place.h"
#include "plugin/attach/port.h"
#include "plugin/attach/rdma.h"
#include "plugin/attach/restore.h"
#include "plugin/attach/route.h"
#include "plugin/attach/rule.h"
#include "plugin/attach/sysctl.h"
#include "plugin/attach/vrf.h"

struct attaching {
    const struct attach_order *order;
    const struct net_interface *wanted; /* of the order's configuration */
    int ns;
    struct netlink host, pod;
    struct link link;   /* in the pod, once it is there */
    struct place place; /* the pod's namespace, and the device there */
    bool moved;         /* by us, now */
};

static void attaching_done(struct attaching *a)
{
    netlink_done(&a->host);
    netlink_done(&a->pod);
}

static int find_in_pod(struct attaching *a, struct drarun_error *err)
{
    int rc = a->place.index ? link_by_index(&a->pod, a->place.index, &a->link, err) : 0;
    if (rc < 0 || (rc > 0 && place_fits(&a->place, &a->link)))
        return rc;
    const struct link_wanted wanted = {a->order->parent, a->order->mac, a->wanted->hw,
                                       a->wanted->name};
    return link_find(&a->pod, &wanted, &a->link, err);
}

/* ---- moving ---- */

/* Before it goes and once it is there: where to take it back from. */
static int note_place(struct attaching *a, const struct link *link, bool arrived,
                      struct drarun_error *err)
{
    place_take(&a->place, link, arrived);
    int rc = place_save(a->order, &a->place, err);
    return rc < 0 ? error_prefix(err, "note where %s is put", link->name) : 0;
}

/* The kernel would move it first and then find out. */
static int check_name_free(struct attaching *a, struct drarun_error *err)
{
    struct link link;
    int rc = link_by_name(&a->pod, a->wanted->name, &link, err);
    if (rc > 0)
        return error_set(err, EEXIST, "the container has another device called %s already",
                         a->wanted->name);
    return rc;
}

static int move(struct attaching *a, const struct link *link, struct drarun_error *err)
{
    const struct link_change change = {
        .name = a->wanted->name,
        .mtu = a->wanted->mtu,
        .hw = a->wanted->hw,
        .gso = a->wanted->gso,
        .gro = a->wanted->gro,
        .gso4 = a->wanted->gso4,
        .gro4 = a->wanted->gro4,
        .master = -1,
        .ns = a->ns,
        .up = -1,
    };
    struct drarun_error ignored = {0};
    int rc = check_name_free(a, err);
    a->place.port = port_of(link->name);
    if (rc == 0)
        rc = note_place(a, link, false, err);
    if (rc < 0)
        return rc;
    rc = link_change(&a->host, link->index, &change, err);
    if (rc < 0) {
        a->moved = find_in_pod(a, &ignored) > 0; /* the kernel moves first and sets then */
        return error_prefix(err, "move %s into the container as %s", link->name, a->wanted->name);
    }
    a->moved = true;
    rc = find_in_pod(a, err);
    if (rc == 0)
        rc = error_set(err, ENODEV, "%s has left the host and not arrived in the container",
                       link->name);
    return rc < 0 ? rc : note_place(a, &a->link, true, err);
}

static int fetch(struct attaching *a, int64_t until_ms, struct drarun_error *err)
{
    const struct attach_order *order = a->order;
    const struct link_wanted wanted = {order->parent, order->mac, a->wanted->hw, order->host.name};
    char mac[HW_ADDR_TEXT];
    struct link link;
    int rc = find_in_pod(a, err);
    if (rc > 0 && !a->place.index) /* killed on the way, or an earlier release */
        return note_place(a, &a->link, true, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = link_await(&a->host, &wanted, until_ms, &link, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return error_set(err, ENODEV,
                         "%s (%s) is neither on the host nor in the container, after "
                         "waiting for it",
                         order->host.name,
                         order->pci[0] ? order->pci : hw_addr_text(&order->mac, mac));
    if (link.master)
        return error_set(err, EBUSY, "%s is in use on the host: it belongs to another device",
                         link.name);
    return move(a, &link, err);
}

/* ---- settings ---- */

static int set_sysctls(const struct net_interface *wanted, struct drarun_error *err)
{
    const char *device = wanted->name;
    bool six = false;
    int rc = 0;
    for (size_t i = 0; i < wanted->address_count; i++)
        six = six || wanted->addresses[i].family == AF_INET6;
    if (wanted->arp_ignore >= 0)
        rc = sysctl_ensure_device("ipv4", device, "arp_ignore", wanted->arp_ignore, err);
    if (rc == 0 && wanted->arp_announce >= 0)
        rc = sysctl_ensure_device("ipv4", device, "arp_announce", wanted->arp_announce, err);
    if (rc == 0 && wanted->forwarding)
        rc = sysctl_ensure_device("ipv4", device, "forwarding", 1, err);
    /* runtimes turn IPv6 off in pods of a cluster without it; the claim asks for it here */
    if (rc == 0 && six)
        rc = sysctl_ensure_device("ipv6", device, "disable_ipv6", 0, err);
    if (rc == 0 && wanted->forwarding) {
        rc = sysctl_ensure_device("ipv6", device, "forwarding", 1, err);
        rc = rc == -ENOENT ? 0 : rc; /* a kernel without IPv6 */
    }
    if (rc == 0 && wanted->vrf[0])
        rc = sysctl_ensure("ipv4", "tcp_l3mdev_accept", 1, err);
    if (rc == 0 && wanted->vrf[0])
        rc = sysctl_ensure("ipv4", "udp_l3mdev_accept", 1, err);
    return rc;
}

static uint32_t differs(uint32_t wanted, uint32_t is)
{
    return wanted && wanted != is ? wanted : 0;
}

/* What of the link's own is not as wanted; false: all is. */
static bool find_differences(const struct attaching *a, struct link_change *ret)
{
    const struct net_interface *wanted = a->wanted;
    const struct link *link = &a->link;
    *ret = (struct link_change)LINK_CHANGE_NONE;
    ret->name = strcmp(wanted->name, link->name) ? wanted->name : NULL;
    ret->mtu = differs(wanted->mtu, link->mtu);
    ret->gso = differs(wanted->gso, link->gso);
    ret->gro = differs(wanted->gro, link->gro);
    ret->gso4 = differs(wanted->gso4, link->gso4);
    ret->gro4 = differs(wanted->gro4, link->gro4);
    if (wanted->hw.len && !hw_addr_equal(&wanted->hw, &link->hw))
        ret->hw = wanted->hw;
    return ret->name || ret->mtu || ret->gso || ret->gro || ret->gso4 || ret->gro4 || ret->hw.len;
}

static int repair(struct attaching *a, struct drarun_error *err)
{
    struct link_change change, down = LINK_CHANGE_NONE;
    int rc = 0;
    down.up = 0;
    if (!find_differences(a, &change))
        return 0;
    if (a->link.up && (change.name || change.hw.len))
        rc = link_change(&a->pod, a->link.index, &down, err);
    rc = rc < 0 ? rc : link_change(&a->pod, a->link.index, &change, err);
    if (rc < 0)
        return error_prefix(err, "repair %s in the container", a->link.name);
    rc = find_in_pod(a, err);
    return rc < 0 ? rc : 0;
}

/* Before the addresses: joining a VRF takes a device down and up. */
static int join_vrf(struct attaching *a, struct drarun_error *err)
{
    struct link_change change = LINK_CHANGE_NONE;
    if (!a->wanted->vrf[0])
        return 0;
    int rc = vrf_ensure(&a->pod, a->wanted->vrf, a->wanted->vrf_table, &change.master, err);
    if (rc < 0 || change.master == a->link.master)
        return rc;
    rc = link_change(&a->pod, a->link.index, &change, err);
    return rc < 0 ? error_prefix(err, "join VRF %s", a->wanted->vrf) : 0;
}

static int enter_and_set_sysctls(struct attaching *a, struct drarun_error *err)
{
    int back = -1, rc = netns_enter(a->ns, &back, err);
    if (rc < 0)
        return rc;
    rc = set_sysctls(a->wanted, err);
    netns_leave(back);
    return rc;
}

static int bring_up(struct attaching *a, struct drarun_error *err)
{
    struct link_change up = LINK_CHANGE_NONE;
    up.up = 1;
    if (a->link.up)
        return 0;
    int rc = link_change(&a->pod, a->link.index, &up, err);
    return rc < 0 ? error_prefix(err, "bring %s up", a->wanted->name) : 0;
}

static int configure(struct attaching *a, struct drarun_error *err)
{
    const struct net_config *config = &a->order->config;
    int index = a->link.index;
    int rc = enter_and_set_sysctls(a, err);
    rc = rc < 0
             ? rc
             : ethtool_ensure(a->ns, a->wanted->name, config->features, config->private_flags, err);
    if (rc == 0 && a->wanted->no_ebpf)
        rc = ebpf_remove(&a->pod, a->ns, &a->link, err);
    rc = rc < 0 ? rc : join_vrf(a, err);
    rc = rc < 0 ? rc
                : addresses_ensure(&a->pod, index, a->wanted->addresses, a->wanted->address_count,
                                   err);
    rc = rc < 0 ? rc : bring_up(a, err);
    rc = rc < 0 ? rc : neighbors_ensure(&a->pod, index, config, err);
    rc = rc < 0 ? rc : routes_ensure(&a->pod, index, config, err);
    return rc < 0 ? rc : rules_ensure(&a->pod, config, err);
}

/* Drivers round, refuse silently, or go down again. */
static int verify(struct attaching *a, struct drarun_error *err)
{
    struct link_change change;
    int rc = find_in_pod(a, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return error_set(err, ENODEV, "%s has left the container again", a->wanted->name);
    if (!a->link.up)
        return error_set(err, ENETDOWN, "%s does not stay up in the container", a->wanted->name);
    if (a->wanted->no_ebpf && a->link.xdp)
        return error_set(err, EBUSY, "%s still has an XDP program", a->wanted->name);
    if (!find_differences(a, &change))
        return 0;
    if (change.mtu)
        return error_set(err, EINVAL, "the device took MTU %u as %u", change.mtu, a->link.mtu);
    return error_set(err, EINVAL, "the device did not take its %s",
                     change.name     ? "name"
                     : change.hw.len ? "hardware address"
                                     : "largest segments (gsoMaxSize and the like)");
}

/* ---- the device ---- */

static int attach_link(struct attaching *a, int64_t until_ms, struct drarun_error *err)
{
    int rc = netlink_open(&a->host, -1, NETLINK_ROUTE, err);
    rc = rc < 0 ? rc : netlink_open(&a->pod, a->ns, NETLINK_ROUTE, err);
    rc = rc < 0 ? rc : fetch(a, until_ms, err);
    rc = rc < 0 ? rc : repair(a, err);
    rc = rc < 0 ? rc : configure(a, err);
    return rc < 0 ? rc : verify(a, err);
}

static int attach_rdma(struct attaching *a, int64_t until_ms, struct drarun_error *err)
{
    const char *name = a->order->rdma;
    int rc = rdma_shared(err);
    if (rc < 0)
        return error_prefix(err, "RDMA device %s", name);
    bool shared = rc > 0;
    rc = shared ? 0 : rdma_is_in(a->ns, name, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = rdma_await(name, shared ? 0 : until_ms, err);
    if (rc == 0)
        return error_set(err, ENODEV, "no RDMA device %s on the host%s", name,
                         shared ? "" : " nor in the container, after waiting for it");
    if (rc < 0 || shared)
        return rc < 0 ? rc : 0;
    rc = a->order->host.name[0] ? 0 : place_save(a->order, &a->place, err);
    return rc < 0 ? rc : rdma_move(-1, a->ns, name, a->order->path, err);
}

/* What was attached before stays: a container of the pod may be running on it. */
static void undo(struct attaching *a, struct drarun_error *err)
{
    struct drarun_error second = {0};
    if (!a->moved || attach_take_back(a->order, a->ns, &second) == 0 || !err)
        return;
    size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, "; and it is left half attached: %s",
             second.text);
}

/* What is known of the device in this namespace; of another one nothing is. */
static int find_place(struct attaching *a, struct drarun_error *err)
{
    struct place last;
    int rc = place_of(a->ns, &a->place, err);
    place_load(a->order, &last);
    if (rc == 0 && place_same(&last, &a->place))
        a->place = last;
    return rc;
}

/* Prepare looks at the first pod of a claim alone, and the kubelet calls it for no other: one that
 * shares the claim comes to the hook unseen. What has no interface is the host's to use. */
static int check_host_network(const struct attach_order *order, struct drarun_error *err)
{
    if (!order->host.name[0])
        return 0;
    return error_set(err, EINVAL,
                     "the container is on the host's network (hostNetwork: true), where %s cannot "
                     "be its own: leave hostNetwork away, or the claim",
                     order->host.name);
}

int attach_device(const struct attach_order *order, int ns, int64_t until_ms,
                  struct drarun_error *err)
{
    CLEANUP(attaching_done)
    struct attaching a = {.order = order, .wanted = &order->config.interface, .ns = ns};
    cleanup_close int own = -1;
    int rc = netns_own(&own, err);
    if (rc < 0)
        return rc;
    if (netns_same(own, ns))
        return check_host_network(order, err);
    rc = find_place(&a, err);
    if (rc == 0 && order->host.name[0])
        rc = attach_link(&a, until_ms, err);
    if (rc == 0 && order->rdma[0])
        rc = attach_rdma(&a, until_ms, err);
    if (rc < 0)
        undo(&a, err);
    return rc;
}
