/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/restore.h"

#include <dirent.h>
#include <errno.h>
#include <linux/net_namespace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/array.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "plugin/attach/address.h"
#include "plugin/attach/ebpf.h"
#include "plugin/attach/ethtool.h"
#include "plugin/attach/link.h"
#include "plugin/attach/netns.h"
#include "plugin/attach/place.h"
#include "plugin/attach/port.h"
#include "plugin/attach/rdma.h"

#define PCI_DEVICES "/sys/bus/pci/devices"
#define ALONE_MS 500   /* for a device to return by itself before it is looked for again */
#define ASIDE "drarun" /* and a number: its name while another device has the one it wants */

struct taking {
    const struct attach_order *order;
    struct place place; /* where it was put */
    int own;            /* the host's namespace */
    struct netlink host;
};

static void taking_done(struct taking *taking)
{
    netlink_done(&taking->host);
    close_fd(&taking->own);
}

static int taking_init(struct taking *taking, const struct attach_order *order,
                       struct drarun_error *err)
{
    *taking = (struct taking){.order = order, .own = -1};
    place_load(order, &taking->place);
    int rc = netns_own(&taking->own, err);
    return rc < 0 ? rc : netlink_open(&taking->host, -1, NETLINK_ROUTE, err);
}

static struct link_wanted wanted_as(const struct attach_order *order, const char *name)
{
    return (struct link_wanted){order->parent, order->mac, order->config.interface.hw, name};
}

/* ---- back on the host ---- */

struct port_search {
    const struct taking *taking;
    struct link found;
    unsigned count;
};

static void on_link(const struct link *link, void *arg)
{
    struct port_search *search = arg;
    const struct taking *taking = search->taking;
    /* what is on another device (peer), as IPoIB's of a partition, may have its function, too */
    if (strcmp(link->parent, taking->order->parent) != 0 || link->peer ||
        (search->count && link->index == search->found.index) ||
        port_of(link->name) != taking->place.port)
        return;
    search->found = *link;
    search->count++;
}

/* The device of its function's port under another hardware address: one that the pod has given it,
 * or that of a virtual function which was removed meanwhile and made again. */
static int find_by_port(struct taking *taking, struct link *ret, struct drarun_error *err)
{
    struct port_search search = {.taking = taking};
    if (!taking->order->parent[0] || taking->place.port < 0)
        return 0;
    int rc = link_each(&taking->host, on_link, &search, err);
    if (rc < 0 || search.count != 1)
        return rc < 0 ? rc : 0;
    *ret = search.found;
    return 1;
}

/* Where it is in no other namespace. */
static int find_at_home(struct taking *taking, struct link *ret, struct drarun_error *err)
{
    struct link_wanted wanted = wanted_as(taking->order, taking->order->host.name);
    int rc = link_find(&taking->host, &wanted, ret, err);
    return rc == 0 ? find_by_port(taking, ret, err) : rc;
}

/* ---- out of a namespace ---- */

/* The kernel would move it first and then find out. */
static int check_name_free(struct taking *taking, struct drarun_error *err)
{
    const char *name = taking->order->host.name;
    struct link link;
    int rc = link_by_name(&taking->host, name, &link, err);
    if (rc > 0)
        return error_set(err, EEXIST, "cannot come back from a pod as %s: the host has another %s",
                         name, name);
    return rc;
}

/* Whether it is looked for in this namespace. Without a place, as of an earlier release, what the
 * kernel calls its parent tells it from all that a pod can make; without that it is found nowhere.
 */
static bool may_be_in(const struct taking *taking, int ns)
{
    struct place here;
    if (!taking->place.inode)
        return taking->order->parent[0] || !taking->order->host.name[0];
    return place_of(ns, &here, NULL) == 0 && place_same(&here, &taking->place);
}

static void on_number(struct nlmsghdr *answer, void *arg)
{
    struct nlattr *t[NETNSA_MAX + 1];
    int *number = arg;
    if (answer->nlmsg_type == RTM_NEWNSID &&
        nlmsg_parse(answer, sizeof(struct rtgenmsg), t, NETNSA_MAX, NULL) == 0 && t[NETNSA_NSID])
        *number = nla_get_s32(t[NETNSA_NSID]);
}

/* How the namespace that n speaks to numbers the host's; -1: not at all. */
static int number_of_host(const struct taking *taking, struct netlink *n, int *ret_number,
                          struct drarun_error *err)
{
    struct rtgenmsg head = {.rtgen_family = AF_UNSPEC};
    struct nl_msg *msg = netlink_message(RTM_GETNSID, 0, &head, sizeof head);
    netlink_put_u32(msg, NETNSA_FD, (uint32_t)taking->own);
    *ret_number = -1;
    int rc = netlink_ask_take(n, msg, on_number, ret_number, err);
    return rc < 0 ? error_prefix(err, "the number of the host's network namespace") : 0;
}

static bool is_pair(const struct link *link)
{
    return strcmp(link->kind, "veth") == 0 || strcmp(link->kind, "netkit") == 0;
}

/* A pod can make a virtual device of its own under any name, address and number, whose other end
 * (of a pair, a tunnel, a tap) it keeps: with that on the host it would hold a cable into it. It
 * makes none whose other end or lower device is in the host's namespace. Hardware nobody makes, and
 * a dummy has no other end. */
static int is_of_host(const struct taking *taking, struct netlink *n, const struct link *link,
                      struct drarun_error *err)
{
    struct netlink host = taking->host;
    struct link other;
    int number = -1;
    if (!link->kind[0] || strcmp(link->kind, "dummy") == 0)
        return 1;
    int rc = link->peer_ns >= 0 ? number_of_host(taking, n, &number, err) : 0;
    if (rc < 0 || number < 0 || number != link->peer_ns)
        return rc < 0 ? rc : 0;
    if (!is_pair(link))
        return 1;
    rc = link_by_index(&host, link->peer, &other, err);
    return rc > 0 ? strcmp(other.kind, link->kind) == 0 && other.peer == link->index : rc;
}

/* By its function, else by its number there, whatever hardware address the pod has given it. */
static int find_of_function(const struct taking *taking, struct netlink *n, struct link *ret,
                            struct drarun_error *err)
{
    const struct attach_order *order = taking->order;
    struct link_wanted wanted = wanted_as(order, order->config.interface.name);
    int rc = link_find(n, &wanted, ret, err);
    if (rc != 0 || !order->parent[0] || !taking->place.index)
        return rc;
    rc = link_by_index(n, taking->place.index, ret, err);
    return rc > 0 ? strcmp(ret->parent, order->parent) == 0 : rc;
}

static int find_in_place(const struct taking *taking, struct netlink *n, struct link *ret,
                         struct drarun_error *err)
{
    const struct attach_order *order = taking->order;
    const struct place *place = &taking->place;
    struct link_wanted wanted = wanted_as(order, order->config.interface.name);
    if (order->parent[0] || !place->inode)
        return find_of_function(taking, n, ret, err);
    int rc =
        place->index ? link_by_index(n, place->index, ret, err) : link_find(n, &wanted, ret, err);
    if (rc <= 0)
        return rc;
    return place_fits(place, ret) ? is_of_host(taking, n, ret, err) : 0;
}

struct upper {
    int index, peer_ns;
};

struct uppers { /* that may be of one device, in the namespace that it has left */
    int lower;
    struct upper *list;
    size_t count, cap;
    bool failed;
};

static void uppers_done(struct uppers *uppers)
{
    free(uppers->list);
}

static void on_upper(const struct link *link, void *arg)
{
    struct uppers *uppers = arg;
    if (!link->kind[0] || is_pair(link) || link->peer != uppers->lower || link->peer_ns < 0)
        return;
    struct upper *list = array_room(uppers->list, uppers->count, &uppers->cap, sizeof *list);
    uppers->failed = uppers->failed || !list;
    if (!list)
        return;
    uppers->list = list;
    uppers->list[uppers->count++] = (struct upper){link->index, link->peer_ns};
}

/* A macvlan or a VLAN that a pod has made on the device stays on it wherever the device goes: a pod
 * that lives on would share it with the next one. Once it has left, the pod makes no more. */
static int drop_uppers(struct taking *taking, struct netlink *n, struct drarun_error *err)
{
    CLEANUP(uppers_done) struct uppers uppers = {0};
    struct link lower;
    int number = -1, rc = find_at_home(taking, &lower, err);
    if (rc <= 0)
        return rc;
    uppers.lower = lower.index;
    rc = link_each(n, on_upper, &uppers, err);
    if (rc == 0 && uppers.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && uppers.count > 0)
        rc = number_of_host(taking, n, &number, err);
    for (size_t i = 0; rc == 0 && i < uppers.count; i++)
        if (uppers.list[i].peer_ns == number)
            rc = link_delete(n, uppers.list[i].index, err);
    return rc < 0 ? error_prefix(err, "take off %s what a pod has put on it", lower.name) : 0;
}

static int pull(struct taking *taking, struct netlink *n, struct drarun_error *err)
{
    const struct attach_order *order = taking->order;
    struct link_change change = LINK_CHANGE_NONE;
    struct link link;
    int rc = find_in_place(taking, n, &link, err);
    if (rc <= 0)
        return rc;
    change.name = order->host.name;
    change.ns = taking->own;
    rc = check_name_free(taking, err);
    if (rc < 0)
        return rc;
    rc = link_change(n, link.index, &change, err);
    if (rc == -ENODEV) /* its namespace has let it go meanwhile */
        return 0;
    if (rc < 0)
        return error_prefix(err, "pull %s out of a pod", link.name);
    rc = drop_uppers(taking, n, err);
    return rc < 0 ? rc : 1;
}

static int pull_from(int ns, void *arg, struct drarun_error *err)
{
    CLEANUP(netlink_done) struct netlink n = {0};
    if (!may_be_in(arg, ns))
        return 0;
    int rc = netlink_open(&n, ns, NETLINK_ROUTE, err);
    return rc < 0 ? rc : pull(arg, &n, err);
}

static int pull_rdma_from(int ns, void *arg, struct drarun_error *err)
{
    const struct taking *taking = arg;
    if (!may_be_in(taking, ns))
        return 0;
    int rc = rdma_is_in(ns, taking->order->rdma, err);
    if (rc > 0)
        rc = rdma_move(ns, taking->own, taking->order->rdma, taking->order->path, err);
    if (rc == -ENODEV) /* its namespace has let it go meanwhile */
        return 0;
    return rc < 0 ? rc : (rc == 0 && rdma_is_in(-1, taking->order->rdma, err) > 0);
}

/* ---- as it was ---- */

static uint32_t differs(uint32_t was, uint32_t is)
{
    return was && was != is ? was : 0;
}

/* Another device has its name on the host, and may itself be one that wants this device's name:
 * gives that name up. A failure shows in the next try. */
static void step_aside(struct netlink *n, const struct link *link)
{
    struct link_change aside = LINK_CHANGE_NONE;
    aside.name = ASIDE "%d"; /* the kernel's first free number */
    if (strncmp(link->name, ASIDE, sizeof ASIDE - 1) != 0)
        (void)link_change(n, link->index, &aside, NULL);
}

/* Of a virtual function that was made again the PF, or nobody, may decide the address. */
static int change_link(struct netlink *n, int index, struct link_change *change, bool is_other,
                       struct drarun_error *err)
{
    struct drarun_error refused = {0};
    int rc = link_change(n, index, change, &refused);
    if (rc < 0 && rc != -EEXIST && is_other && change->hw.len) {
        change->hw.len = 0;
        return link_change(n, index, change, err);
    }
    return rc < 0 ? error_set(err, -rc, "%s", refused.text) : 0;
}

/* is_other: its hardware address is another one. */
static int settle_link(const struct host_link *host, struct netlink *n, const struct link *link,
                       bool is_other, struct drarun_error *err)
{
    struct link_change change = LINK_CHANGE_NONE, down = LINK_CHANGE_NONE;
    down.up = 0;
    change.mtu = differs(host->mtu, link->mtu);
    change.gso = differs(host->gso, link->gso);
    change.gro = differs(host->gro, link->gro);
    change.gso4 = differs(host->gso4, link->gso4);
    change.gro4 = differs(host->gro4, link->gro4);
    if (strcmp(host->name, link->name) != 0)
        change.name = host->name;
    if (host->hw.len && !hw_addr_equal(&host->hw, &link->hw))
        change.hw = host->hw;
    bool rename = change.name || change.hw.len;
    if (!rename && !change.mtu && !change.gso && !change.gro && !change.gso4 && !change.gro4)
        return 0;
    /* kernels before 6.2 rename, and many drivers readdress, only what is down */
    int rc = rename && link->up ? link_change(n, link->index, &down, err) : 0;
    rc = rc < 0 ? rc : change_link(n, link->index, &change, is_other, err);
    if (rc != -EEXIST)
        return rc < 0 ? error_prefix(err, "set %s as it was", link->name) : 0;
    step_aside(n, link);
    return error_set(err, EEXIST, "cannot be called %s again: the host has another %s", host->name,
                     host->name);
}

static int settle(const struct attach_order *order, struct netlink *n, struct link *link,
                  struct drarun_error *err)
{
    const struct host_link *host = &order->host;
    struct link_wanted wanted = wanted_as(order, host->name);
    struct link_change change = LINK_CHANGE_NONE;
    /* a pod's programs would see the next one's packets */
    int rc = host->ebpf ? 0 : ebpf_remove(n, -1, link, err);
    rc = rc < 0 ? rc : settle_link(host, n, link, !link_fits(link, &wanted), err);
    rc = rc < 0 ? rc : ethtool_ensure(-1, host->name, host->features, host->private_flags, err);
    rc = rc < 0 ? rc : addresses_ensure(n, link->index, host->addresses, host->address_count, err);
    rc = rc < 0 ? rc : link_by_index(n, link->index, link, err);
    if (rc == 0)
        rc = error_set(err, ENODEV, "has left the host again");
    if (rc > 0 && link->up != host->up) {
        change.up = host->up;
        rc = link_change(n, link->index, &change, err);
    }
    return rc < 0 ? rc : 0;
}

/* ---- the actions ---- */

/* It ends with its namespace; any other comes back by itself. */
static bool is_virtual(const struct attach_order *order)
{
    return !order->parent[0] && !order->pci[0];
}

/* 1 with the device on the host, 0 when it is nowhere. */
static int bring_home(struct taking *taking, int64_t until_ms, struct link *ret,
                      struct drarun_error *err)
{
    struct link_wanted wanted = wanted_as(taking->order, taking->order->host.name);
    int64_t alone = 0; /* first without waiting: a pod that was deleted by force runs on */
    for (;;) {
        int rc = link_await(&taking->host, &wanted, alone < until_ms ? alone : until_ms, ret, err);
        if (rc != 0)
            return rc;
        int pulled = netns_each_other(pull_from, taking, err);
        rc = pulled < 0 ? pulled : find_at_home(taking, ret, err);
        if (rc != 0 || pulled > 0 || is_virtual(taking->order) || clock_ms() >= until_ms)
            return rc;
        alone = clock_ms() + ALONE_MS;
    }
}

/* Unplugged, or let go by its driver, which takes its network device from whichever namespace has
 * it. */
static bool is_unplugged(const char *pci)
{
    char path[96];
    if (!*pci || access(PCI_DEVICES, X_OK) < 0)
        return false;
    snprintf(path, sizeof path, PCI_DEVICES "/%s/driver", pci);
    return access(path, F_OK) < 0 && errno == ENOENT;
}

static int restore_link(struct taking *taking, int64_t until_ms, enum restore_outcome *outcome,
                        struct drarun_error *err)
{
    int64_t from = clock_ms();
    struct link link;
    int rc = is_unplugged(taking->order->pci) ? 0 : bring_home(taking, until_ms, &link, err);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return settle(taking->order, &taking->host, &link, err);
    if (!is_virtual(taking->order) && !(taking->order->pci[0] && is_unplugged(taking->order->pci)))
        return error_set(err, ENODEV,
                         "%s (%s) has not come back to the host within %.1f s and is not in the "
                         "network namespace that it was put into",
                         taking->order->host.name,
                         taking->order->pci[0] ? taking->order->pci : taking->order->parent,
                         (double)(clock_ms() - from) / 1e3);
    *outcome = RESTORE_GONE;
    return 0;
}

/* Of those that are on the host: sysfs does not show others. */
static bool function_has_rdma(const char *pci)
{
    char path[96];
    const struct dirent *entry = NULL;
    snprintf(path, sizeof path, PCI_DEVICES "/%s/infiniband", pci);
    cleanup_dir DIR *dir = *pci ? opendir(path) : NULL;
    while (dir && (entry = readdir(dir)) && entry->d_name[0] == '.')
        ;
    return entry;
}

static int restore_rdma(struct taking *taking, int64_t until_ms, struct drarun_error *err)
{
    const char *name = taking->order->rdma;
    int rc = rdma_shared(err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    for (;;) {
        int64_t alone = clock_ms() + ALONE_MS;
        rc = rdma_await(name, alone < until_ms ? alone : until_ms, err);
        rc = rc == 0 ? netns_each_other(pull_rdma_from, taking, err) : rc;
        if (rc != 0)
            return rc < 0 ? rc : 0;
        /* under another name: it was made again with its function, or udev has renamed it */
        if (function_has_rdma(taking->order->pci))
            return 0;
        if (clock_ms() >= until_ms)
            return error_set(err, ENODEV,
                             "RDMA device %s has not come back to the host in time and is in no "
                             "namespace of a process",
                             name);
    }
}

int attach_restore(const struct attach_order *order, int64_t until_ms,
                   enum restore_outcome *ret_outcome, struct drarun_error *err)
{
    CLEANUP(taking_done) struct taking taking;
    enum restore_outcome outcome = RESTORE_DONE;
    int rc = taking_init(&taking, order, err);
    if (rc == 0 && order->host.name[0])
        rc = restore_link(&taking, until_ms, &outcome, err);
    if (rc == 0 && order->rdma[0] && outcome == RESTORE_DONE)
        rc = restore_rdma(&taking, until_ms, err);
    if (rc == 0)
        *ret_outcome = outcome;
    return rc;
}

int attach_take_back(const struct attach_order *order, int ns, struct drarun_error *err)
{
    CLEANUP(taking_done) struct taking taking;
    struct link_wanted wanted = wanted_as(order, order->host.name);
    struct link link;
    int rc = taking_init(&taking, order, err);
    rc = rc < 0 ? rc : pull_from(ns, &taking, err);
    rc = rc < 0 ? rc : link_find(&taking.host, &wanted, &link, err);
    if (rc == 0)
        rc = error_set(err, ENODEV, "%s is not on the host", order->host.name);
    return rc < 0 ? rc : settle(order, &taking.host, &link, err);
}
