/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/link.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "lib/base/error.h"

/* Linux 6.3's, which the headers of Debian 12 lack */
#define LINK_GSO_IPV4_MAX_SIZE 63
#define LINK_GRO_IPV4_MAX_SIZE 64
#define LINK_ATTRIBUTES 80

static void take_hw(const struct nlattr *attr, struct hw_addr *hw)
{
    *hw = (struct hw_addr){0};
    if (!attr || (size_t)nla_len(attr) > sizeof hw->bytes)
        return;
    hw->len = (uint8_t)nla_len(attr);
    memcpy(hw->bytes, nla_data(attr), hw->len);
}

static uint32_t number(struct nlattr *attr)
{
    return attr && nla_len(attr) >= (int)sizeof(uint32_t) ? nla_get_u32(attr) : 0;
}

static void take_text(const struct nlattr *attr, char *out, size_t size)
{
    if (attr)
        snprintf(out, size, "%.*s", nla_len(attr), (const char *)nla_data(attr));
    else
        out[0] = '\0';
}

static void take_info(struct nlattr *info, struct link *link)
{
    struct nlattr *t[IFLA_INFO_MAX + 1], *vrf[IFLA_VRF_MAX + 1];
    if (!info || nla_parse_nested(t, IFLA_INFO_MAX, info, NULL) < 0)
        return;
    take_text(t[IFLA_INFO_KIND], link->kind, sizeof link->kind);
    if (strcmp(link->kind, "vrf") == 0 && t[IFLA_INFO_DATA] &&
        nla_parse_nested(vrf, IFLA_VRF_MAX, t[IFLA_INFO_DATA], NULL) == 0)
        link->vrf_table = number(vrf[IFLA_VRF_TABLE]);
}

static bool take_xdp(struct nlattr *attr)
{
    struct nlattr *t[IFLA_XDP_MAX + 1];
    return attr && nla_parse_nested(t, IFLA_XDP_MAX, attr, NULL) == 0 && t[IFLA_XDP_ATTACHED] &&
           nla_get_u8(t[IFLA_XDP_ATTACHED]) != XDP_ATTACHED_NONE;
}

/* What no pod can give to a device that it makes: the addresses of functions of PCI and USB, and of
 * virtio's bus. */
static bool is_of_bus(const char *text)
{
    return strchr(text, ':') || strncmp(text, "virtio", 6) == 0;
}

static void ask_driver(int fd, struct link *link)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (char *)&info};
    memcpy(request.ifr_name, link->name, sizeof request.ifr_name);
    if (ioctl(fd, SIOCETHTOOL, &request) < 0)
        return;
    info.bus_info[sizeof info.bus_info - 1] = '\0';
    if (!is_of_bus(info.bus_info) || strlen(info.bus_info) >= sizeof link->parent)
        return;
    snprintf(link->parent, sizeof link->parent, "%.*s", (int)sizeof link->parent - 1,
             info.bus_info);
    link->by_driver = true;
}

bool link_take(struct nlmsghdr *answer, int fd, struct link *ret)
{
    struct nlattr *t[LINK_ATTRIBUTES];
    if (answer->nlmsg_type != RTM_NEWLINK ||
        nlmsg_parse(answer, sizeof(struct ifinfomsg), t, LINK_ATTRIBUTES - 1, NULL) < 0)
        return false;
    const struct ifinfomsg *head = nlmsg_data(answer);
    *ret = (struct link){
        .index = head->ifi_index,
        .up = head->ifi_flags & IFF_UP,
        .mtu = number(t[IFLA_MTU]),
        .gso = number(t[IFLA_GSO_MAX_SIZE]),
        .gro = number(t[IFLA_GRO_MAX_SIZE]),
        .gso4 = number(t[LINK_GSO_IPV4_MAX_SIZE]),
        .gro4 = number(t[LINK_GRO_IPV4_MAX_SIZE]),
        .master = (int)number(t[IFLA_MASTER]),
        .peer = (int)number(t[IFLA_LINK]),
        .peer_ns = t[IFLA_LINK_NETNSID] ? (int)number(t[IFLA_LINK_NETNSID]) : -1,
        .xdp = take_xdp(t[IFLA_XDP]),
    };
    take_text(t[IFLA_IFNAME], ret->name, sizeof ret->name);
    take_text(t[IFLA_PARENT_DEV_NAME], ret->parent, sizeof ret->parent);
    take_hw(t[IFLA_ADDRESS], &ret->hw);
    take_hw(t[IFLA_PERM_ADDRESS], &ret->permanent);
    take_info(t[IFLA_LINKINFO], ret);
    if (!ret->parent[0] && !ret->kind[0])
        ask_driver(fd, ret);
    return true;
}

static bool is_hw(const struct link *link, const struct hw_addr *hw)
{
    return hw->len && (hw_addr_equal(&link->hw, hw) || hw_addr_equal(&link->permanent, hw));
}

bool link_fits(const struct link *link, const struct link_wanted *wanted)
{
    bool made = is_hw(link, &wanted->mac), now = is_hw(link, &wanted->now);
    if (!wanted->parent[0]) /* by_driver: the order of a release that did not ask it */
        return (!link->parent[0] || link->by_driver) &&
               (made || (now && strcmp(link->name, wanted->name) == 0));
    return strcmp(link->parent, wanted->parent) == 0 && (!wanted->mac.len || made || now);
}

struct search {
    const struct link_wanted *wanted;
    struct link found;
    unsigned count;
    bool named; /* found has the name */
};

static void on_link(const struct link *link, void *arg)
{
    struct search *search = arg;
    if (!link_fits(link, search->wanted) || (search->count && link->index == search->found.index))
        return;
    bool named = strcmp(link->name, search->wanted->name) == 0;
    search->count++;
    if (search->count == 1 || named)
        search->found = *link;
    search->named = search->named || named;
}

/* Without statistics, which are half of an answer. index 0: of all, or by a name. */
static struct nl_msg *link_question(int flags, int index)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    struct nl_msg *msg = netlink_message(RTM_GETLINK, flags, &head, sizeof head);
    netlink_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    return msg;
}

struct each {
    int fd;
    link_fn fn;
    void *arg;
};

static void on_each(struct nlmsghdr *answer, void *arg)
{
    const struct each *each = arg;
    struct link link;
    if (link_take(answer, each->fd, &link))
        each->fn(&link, each->arg);
}

int link_each(struct netlink *n, link_fn fn, void *arg, struct drarun_error *err)
{
    struct each each = {nl_socket_get_fd(n->sock), fn, arg};
    int rc = netlink_ask_take(n, link_question(NLM_F_DUMP, 0), on_each, &each, err);
    return rc < 0 ? error_prefix(err, "the list of network devices") : 0;
}

struct one {
    int fd;
    struct link link;
};

static void on_one(struct nlmsghdr *answer, void *arg)
{
    struct one *one = arg;
    link_take(answer, one->fd, &one->link);
}

static int ask_one_take(struct netlink *n, struct nl_msg *msg, struct link *ret,
                        struct drarun_error *err)
{
    struct one one = {.fd = nl_socket_get_fd(n->sock)};
    int rc = netlink_ask_take(n, msg, on_one, &one, err);
    if (rc == -ENODEV)
        return 0;
    if (rc < 0)
        return rc;
    if (one.link.index)
        *ret = one.link;
    return one.link.index > 0;
}

int link_by_name(struct netlink *n, const char *name, struct link *ret, struct drarun_error *err)
{
    struct nl_msg *msg = link_question(0, 0);
    netlink_put_text(msg, IFLA_IFNAME, name);
    int rc = ask_one_take(n, msg, ret, err);
    return rc < 0 ? error_prefix(err, "network device %s", name) : rc;
}

int link_by_index(struct netlink *n, int index, struct link *ret, struct drarun_error *err)
{
    int rc = ask_one_take(n, link_question(0, index), ret, err);
    return rc < 0 ? error_prefix(err, "network device %d", index) : rc;
}

int link_find(struct netlink *n, const struct link_wanted *wanted, struct link *ret,
              struct drarun_error *err)
{
    struct search search = {.wanted = wanted};
    struct link named = {0};
    int rc = wanted->name[0] ? link_by_name(n, wanted->name, &named, err) : 0;
    if (rc > 0 && link_fits(&named, wanted)) { /* without the list, which is long on a full node */
        *ret = named;
        return 1;
    }
    if (rc < 0)
        return rc;
    rc = link_each(n, on_link, &search, err);
    if (rc < 0)
        return rc;
    if (search.count > 1 && !search.named)
        return error_set(err, EEXIST, "%u devices fit, %s among them, and none is called %s",
                         search.count, search.found.name, wanted->name);
    if (search.count)
        *ret = search.found;
    return search.count > 0;
}

static int await(struct netlink *n, struct netlink *news, const struct link_wanted *wanted,
                 int64_t until_ms, struct link *ret, struct drarun_error *err)
{
    int rc = netlink_follow_links(news, err);
    while (rc == 0) {
        rc = link_find(n, wanted, ret, err);
        if (rc == 0 && !netlink_wait(news, until_ms))
            return 0;
    }
    return rc;
}

int link_await(struct netlink *n, const struct link_wanted *wanted, int64_t until_ms,
               struct link *ret, struct drarun_error *err)
{
    struct netlink news = {0};
    int rc = link_find(n, wanted, ret, err);
    if (rc != 0)
        return rc;
    rc = netlink_open(&news, -1, NETLINK_ROUTE, err);
    if (rc == 0)
        rc = await(n, &news, wanted, until_ms, ret, err);
    netlink_done(&news);
    return rc;
}

static void put_numbers(struct nl_msg *msg, const struct link_change *change)
{
    const struct {
        int type;
        uint32_t value;
    } numbers[] = {
        {IFLA_MTU, change->mtu},
        {IFLA_GSO_MAX_SIZE, change->gso},
        {IFLA_GRO_MAX_SIZE, change->gro},
        {LINK_GSO_IPV4_MAX_SIZE, change->gso4},
        {LINK_GRO_IPV4_MAX_SIZE, change->gro4},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value)
            netlink_put_u32(msg, numbers[i].type, numbers[i].value);
}

static void put_no_xdp(struct nl_msg *msg)
{
    int32_t none = -1;
    struct nlattr *xdp = msg ? nla_nest_start(msg, IFLA_XDP | NLA_F_NESTED) : NULL;
    if (!xdp)
        return;
    netlink_put(msg, IFLA_XDP_FD, &none, sizeof none);
    nla_nest_end(msg, xdp);
}

int link_change(struct netlink *n, int index, const struct link_change *change,
                struct drarun_error *err)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    if (change->up >= 0) {
        head.ifi_change = IFF_UP;
        head.ifi_flags = change->up ? IFF_UP : 0;
    }
    struct nl_msg *msg = netlink_message(RTM_NEWLINK, 0, &head, sizeof head);
    if (change->ns >= 0)
        netlink_put_u32(msg, IFLA_NET_NS_FD, (uint32_t)change->ns);
    if (change->name)
        netlink_put_text(msg, IFLA_IFNAME, change->name);
    if (change->hw.len)
        netlink_put(msg, IFLA_ADDRESS, change->hw.bytes, change->hw.len);
    if (change->master >= 0)
        netlink_put_u32(msg, IFLA_MASTER, (uint32_t)change->master);
    if (change->no_xdp)
        put_no_xdp(msg);
    put_numbers(msg, change);
    return netlink_do_take(n, msg, err);
}

int link_delete(struct netlink *n, int index, struct drarun_error *err)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_index = index};
    int rc = netlink_do_take(n, netlink_message(RTM_DELLINK, 0, &head, sizeof head), err);
    return rc == -ENODEV ? 0 : rc;
}
