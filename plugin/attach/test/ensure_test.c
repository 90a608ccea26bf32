/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration wants of a device's network, in a network namespace of each test's own. What
 * is there is read from the kernel's lists, by a reader of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/skip.h"
#include "plugin/attach/address.h"
#include "plugin/attach/ethtool.h"
#include "plugin/attach/link.h"
#include "plugin/attach/neighbor.h"
#include "plugin/attach/route.h"
#include "plugin/attach/rule.h"
#include "plugin/attach/sysctl.h"
#include "plugin/attach/vrf.h"

struct net {
    struct netlink n;
    int nic, peer; /* two ends of a pair, nic0 and nic1, both up */
    struct drarun_error err;
};

static void must(int rc, const struct drarun_error *err)
{
    if (rc != 0)
        fail_msg("%s", err->text);
}

static void up(struct net *net, int index)
{
    struct link_change change = LINK_CHANGE_NONE;
    change.up = 1;
    must(link_change(&net->n, index, &change, &net->err), &net->err);
}

static int set_up(void **state)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC};
    struct link_change name = LINK_CHANGE_NONE;
    struct link link;
    struct net *net = calloc(1, sizeof *net);
    *state = net;
    if (unshare(CLONE_NEWNET) < 0)
        return 0;
    must(netlink_open(&net->n, -1, NETLINK_ROUTE, &net->err), &net->err);
    struct nl_msg *msg = netlink_message(RTM_NEWLINK, NLM_F_CREATE, &head, sizeof head);
    netlink_put_text(msg, IFLA_IFNAME, "nic0");
    struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);
    netlink_put_text(msg, IFLA_INFO_KIND, "veth");
    nla_nest_end(msg, info);
    must(netlink_do_take(&net->n, msg, &net->err), &net->err);
    assert_int_equal(link_by_name(&net->n, "nic0", &link, &net->err), 1);
    net->nic = link.index;
    net->peer = link.peer;
    name.name = "nic1";
    must(link_change(&net->n, net->peer, &name, &net->err), &net->err);
    up(net, net->nic);
    up(net, net->peer);
    return 0;
}

static int take_down(void **state)
{
    struct net *net = *state;
    netlink_done(&net->n);
    free(net);
    return 0;
}

static struct net *net_of(void **state)
{
    struct net *net = *state;
    if (!net->n.sock)
        skip_for("needs root, with a network namespace of its own");
    return net;
}

static struct ip_prefix prefix(const char *text)
{
    struct ip_prefix parsed = {0};
    if (text &&
        !(strchr(text, '/') ? ip_prefix_parse(text, &parsed) : ip_address_parse(text, &parsed)))
        fail_msg("%s", text);
    return parsed;
}

/* ---- the kernel's lists, a line for each item ---- */

#define LIST_MAX 4096

struct list {
    const struct net *net;
    char text[LIST_MAX];
};

static void add_address(struct list *list, const char *word, int family, struct nlattr *attr,
                        int bits)
{
    char text[INET6_ADDRSTRLEN], *end = list->text + strlen(list->text);
    if (!attr)
        return;
    inet_ntop(family, nla_data(attr), text, sizeof text);
    snprintf(end, (size_t)(list->text + LIST_MAX - end), bits >= 0 ? "%s%s/%d" : "%s%s", word, text,
             bits);
}

__attribute__((format(printf, 2, 3))) static void add_text(struct list *list, const char *format,
                                                           ...)
{
    char *end = list->text + strlen(list->text);
    va_list args;
    va_start(args, format);
    vsnprintf(end, (size_t)(list->text + LIST_MAX - end), format, args);
    va_end(args);
}

/* Of unicast, made by no one but a configuration. */
static void on_route(struct nlmsghdr *answer, void *arg)
{
    struct nlattr *t[RTA_MAX + 1];
    struct list *list = arg;
    const struct rtmsg *head = nlmsg_data(answer);
    if (answer->nlmsg_type != RTM_NEWROUTE || head->rtm_protocol != RTPROT_STATIC ||
        nlmsg_parse(answer, sizeof *head, t, RTA_MAX, NULL) < 0)
        return;
    if (t[RTA_DST])
        add_address(list, "", head->rtm_family, t[RTA_DST], head->rtm_dst_len);
    else
        add_text(list, "%s", head->rtm_family == AF_INET ? "0.0.0.0/0" : "::/0");
    add_address(list, " via ", head->rtm_family, t[RTA_GATEWAY], -1);
    add_address(list, " src ", head->rtm_family, t[RTA_PREFSRC], -1);
    add_text(list, "%s table %u%s\n",
             (int)nla_get_u32(t[RTA_OIF]) == list->net->nic ? "" : " elsewhere",
             nla_get_u32(t[RTA_TABLE]), head->rtm_scope == RT_SCOPE_LINK ? " link" : "");
}

static void on_rule(struct nlmsghdr *answer, void *arg)
{
    struct nlattr *t[FRA_MAX + 1];
    struct list *list = arg;
    const struct fib_rule_hdr *head = nlmsg_data(answer);
    if (answer->nlmsg_type != RTM_NEWRULE ||
        nlmsg_parse(answer, sizeof *head, t, FRA_MAX, NULL) < 0 || !t[FRA_PRIORITY] ||
        nla_get_u32(t[FRA_PRIORITY]) == 0 || nla_get_u32(t[FRA_PRIORITY]) >= 32766)
        return; /* the namespace's own */
    add_text(list, "%s %u", head->family == AF_INET ? "inet" : "inet6",
             nla_get_u32(t[FRA_PRIORITY]));
    add_address(list, " from ", head->family, t[FRA_SRC], head->src_len);
    add_address(list, " to ", head->family, t[FRA_DST], head->dst_len);
    add_text(list, " table %u%s\n", nla_get_u32(t[FRA_TABLE]), t[FRA_FWMARK] ? " mark" : "");
}

static void on_neighbor(struct nlmsghdr *answer, void *arg)
{
    struct nlattr *t[NDA_MAX + 1];
    struct list *list = arg;
    const struct ndmsg *head = nlmsg_data(answer);
    struct hw_addr hw = {.len = 6};
    char text[HW_ADDR_TEXT];
    if (answer->nlmsg_type != RTM_NEWNEIGH ||
        nlmsg_parse(answer, sizeof *head, t, NDA_MAX, NULL) < 0 || !t[NDA_LLADDR] ||
        head->ndm_state & NUD_NOARP)
        return;
    memcpy(hw.bytes, nla_data(t[NDA_LLADDR]), 6);
    add_address(list, "", head->ndm_family, t[NDA_DST], -1);
    add_text(list, " %s%s%s\n", hw_addr_text(&hw, text),
             head->ndm_ifindex == list->net->nic ? "" : " elsewhere",
             head->ndm_state == NUD_PERMANENT ? "" : " for a while");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The kernel's order is not promised. */
static void sort_lines(char *text)
{
    char copy[LIST_MAX], *lines[64], *rest = copy;
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        lines[count++] = line;
    qsort(lines, count, sizeof *lines, by_text);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), LIST_MAX - strlen(text), "%s\n", lines[i]);
}

static void check_list(struct net *net, int type, netlink_fn fn, const char *expected)
{
    struct list list = {.net = net};
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC};
    must(netlink_ask_take(&net->n, netlink_message(type, NLM_F_DUMP, &head, sizeof head), fn, &list,
                          &net->err),
         &net->err);
    sort_lines(list.text);
    assert_string_equal(list.text, expected);
}

static void check_addresses(struct net *net, int index, const char *expected)
{
    struct ip_prefix *found = NULL;
    size_t count = 0;
    char list[LIST_MAX] = "", text[IP_PREFIX_TEXT];
    must(addresses_read(&net->n, index, &found, &count, &net->err), &net->err);
    for (size_t i = 0; i < count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\n",
                 ip_prefix_text(&found[i], text));
    free(found);
    sort_lines(list);
    assert_string_equal(list, expected);
}

/* ---- addresses ---- */

static void add_addresses(struct net *net, int index, const char *one, const char *other)
{
    const struct ip_prefix list[] = {prefix(one), prefix(other)};
    must(addresses_ensure(&net->n, index, list, other ? 2 : 1, &net->err), &net->err);
}

static void addresses_are_added_beside_others(void **state)
{
    struct net *net = net_of(state);
    check_addresses(net, net->nic, ""); /* the link-local one is the kernel's */
    add_addresses(net, net->peer, "10.0.0.2/24", "fd00::2/64");
    add_addresses(net, net->nic, "10.0.0.2/25", "10.0.0.3/24");
    for (int i = 0; i < 2; i++) {
        add_addresses(net, net->nic, "10.0.0.2/24", "fd00::2/64");
        check_addresses(net, net->nic, "10.0.0.2/24\n10.0.0.2/25\n10.0.0.3/24\nfd00::2/64\n");
        check_addresses(net, net->peer, "10.0.0.2/24\nfd00::2/64\n");
    }
    must(addresses_ensure(&net->n, net->nic, NULL, 0, &net->err), &net->err);
}

static void refused_address_is_named(void **state)
{
    struct net *net = net_of(state);
    const struct ip_prefix list[] = {prefix("fd00::2/64"), prefix("10.0.0.2/24")};
    assert_int_equal(addresses_ensure(&net->n, 9999, list, 2, &net->err), -ENODEV);
    assert_int_equal(strncmp(net->err.text, "address fd00::2/64: No such device", 34), 0);
}

/* ---- routes ---- */

struct route {
    const char *destination, *gateway, *source;
    bool link;
    uint32_t table;
};

static int add_routes(struct net *net, int index, const struct route *routes, size_t count,
                      uint32_t vrf_table)
{
    struct net_route list[8] = {0};
    const struct net_config config = {
        .interface.vrf_table = vrf_table, .routes = list, .route_count = count};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct net_route){prefix(routes[i].destination), prefix(routes[i].gateway),
                                     prefix(routes[i].source), routes[i].link, routes[i].table};
    return routes_ensure(&net->n, index, &config, &net->err);
}

static void routes_are_added_once(void **state)
{
    static const struct route wanted[] = {{"10.7.0.0/16", NULL, NULL, true, 0},
                                          {"10.9.0.0/16", "10.0.0.7", NULL, false, 0},
                                          {"10.9.0.0/16", "10.0.0.7", "10.0.0.2", false, 300},
                                          {"0.0.0.0/0", "10.0.0.7", NULL, false, 0},
                                          {"fd09::/32", "fd00::7", NULL, false, 0},
                                          {"fd09::/32", "fd00::7", NULL, false, 255},
                                          {"::/0", "fd00::7", NULL, false, 256}};
    struct net *net = net_of(state);
    add_addresses(net, net->nic, "10.0.0.2/24", "fd00::2/64");
    for (int i = 0; i < 2; i++) {
        must(add_routes(net, net->nic, wanted, ARRAY_LEN(wanted), 0), &net->err);
        check_list(net, RTM_GETROUTE, on_route,
                   "0.0.0.0/0 via 10.0.0.7 table 254\n"
                   "10.7.0.0/16 table 254 link\n"
                   "10.9.0.0/16 via 10.0.0.7 src 10.0.0.2 table 300\n"
                   "10.9.0.0/16 via 10.0.0.7 table 254\n"
                   "::/0 via fd00::7 table 256\n"
                   "fd09::/32 via fd00::7 table 254\n"
                   "fd09::/32 via fd00::7 table 255\n");
    }
}

/* Each differs in one thing from what is there. */
static void like_routes_are_not_taken_for_it(void **state)
{
    static const struct route there[] = {{"10.9.0.0/16", "10.0.0.7", NULL, false, 100}};
    static const struct route wanted[] = {{"10.9.0.0/17", "10.0.0.7", NULL, false, 100},
                                          {"10.8.0.0/16", "10.0.0.7", NULL, false, 100},
                                          {"10.9.0.0/16", "10.0.0.7", NULL, false, 101}};
    struct net *net = net_of(state);
    add_addresses(net, net->nic, "10.0.0.2/24", "fd00::2/64");
    must(add_routes(net, net->nic, there, ARRAY_LEN(there), 0), &net->err);
    must(add_routes(net, net->nic, wanted, ARRAY_LEN(wanted), 0), &net->err);
    check_list(net, RTM_GETROUTE, on_route,
               "10.8.0.0/16 via 10.0.0.7 table 100\n"
               "10.9.0.0/16 via 10.0.0.7 table 100\n"
               "10.9.0.0/16 via 10.0.0.7 table 101\n"
               "10.9.0.0/17 via 10.0.0.7 table 100\n");
}

/* Never replaced: an equal route over another device or another gateway. */
static void another_route_in_its_place_is_told(void **state)
{
    static const struct route there[] = {{"10.9.0.0/16", "10.0.0.7", NULL, false, 0},
                                         {"10.7.0.0/16", NULL, NULL, true, 0}};
    static const struct {
        bool peer;
        struct route route;
        const char *finding;
    } rows[] = {
        {true,
         {"10.7.0.0/16", NULL, NULL, true, 0},
         "route 10.7.0.0/16: another one is in its place"},
        {false,
         {"10.9.0.0/16", "10.0.0.8", NULL, false, 0},
         "route 10.9.0.0/16 via 10.0.0.8: another one is in its place"},
        {false,
         {"10.7.0.0/16", NULL, NULL, false, 0},
         "route 10.7.0.0/16: another one is in its place"},
        {false,
         {"10.9.0.0/16", "10.0.0.7", "10.0.0.2", false, 0},
         "route 10.9.0.0/16 via 10.0.0.7: another one is in its place"},
    };
    struct net *net = net_of(state);
    add_addresses(net, net->nic, "10.0.0.2/24", "fd00::2/64");
    must(add_routes(net, net->nic, there, ARRAY_LEN(there), 0), &net->err);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(add_routes(net, rows[i].peer ? net->peer : net->nic, &rows[i].route, 1, 0),
                         -EEXIST);
        assert_string_equal(net->err.text, rows[i].finding);
    }
    check_list(net, RTM_GETROUTE, on_route,
               "10.7.0.0/16 table 254 link\n10.9.0.0/16 via 10.0.0.7 table 254\n");
}

static void routes_of_a_vrf_are_in_its_table(void **state)
{
    static const struct route wanted[] = {{"10.9.0.0/16", NULL, NULL, true, 0},
                                          {"fd09::/32", NULL, NULL, true, 0}};
    struct net *net = net_of(state);
    for (int i = 0; i < 2; i++) {
        must(add_routes(net, net->nic, wanted, ARRAY_LEN(wanted), 1000), &net->err);
        check_list(net, RTM_GETROUTE, on_route,
                   "10.9.0.0/16 table 1000 link\nfd09::/32 table 1000\n");
    }
}

static void unreachable_gateway_is_told(void **state)
{
    static const struct route wanted[] = {{"10.9.0.0/16", "10.99.0.7", NULL, false, 0}};
    struct net *net = net_of(state);
    add_addresses(net, net->nic, "10.0.0.2/24", NULL);
    assert_int_equal(add_routes(net, net->nic, wanted, 1, 0), -ENETUNREACH);
    assert_int_equal(
        strncmp(net->err.text, "route 10.9.0.0/16 via 10.99.0.7: Network is unreachable", 55), 0);
    check_list(net, RTM_GETROUTE, on_route, "");
}

/* ---- rules ---- */

struct rule {
    const char *source, *destination;
    uint32_t priority, table;
};

static int add_rules(struct net *net, const struct rule *rules, size_t count)
{
    struct net_rule list[8] = {0};
    const struct net_config config = {.rules = list, .rule_count = count};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct net_rule){prefix(rules[i].source), prefix(rules[i].destination),
                                    rules[i].priority, rules[i].table};
    return rules_ensure(&net->n, &config, &net->err);
}

static void rules_are_added_once(void **state)
{
    static const struct rule wanted[] = {{"10.0.0.2/32", NULL, 100, 300},
                                         {NULL, "10.9.0.0/16", 100, 300},
                                         {"10.0.0.2/32", "10.9.0.0/16", 100, 300},
                                         {"fd00::2/128", "fd09::/32", 101, 1000},
                                         {NULL, NULL, 102, 255},
                                         {NULL, "fd09::/32", 103, 256},
                                         {"0.0.0.0/0", "10.9.0.0/16", 104, 300}};
    struct net *net = net_of(state);
    for (int i = 0; i < 2; i++) {
        must(add_rules(net, wanted, ARRAY_LEN(wanted)), &net->err);
        check_list(net, RTM_GETRULE, on_rule,
                   "inet 100 from 10.0.0.2/32 table 300\n"
                   "inet 100 from 10.0.0.2/32 to 10.9.0.0/16 table 300\n"
                   "inet 100 to 10.9.0.0/16 table 300\n"
                   "inet 102 table 255\n"
                   "inet 104 to 10.9.0.0/16 table 300\n"
                   "inet6 101 from fd00::2/128 to fd09::/32 table 1000\n"
                   "inet6 103 to fd09::/32 table 256\n");
    }
}

/* Another's rule of the same numbers that takes only marked packets. */
static void add_marked_rule(struct net *net)
{
    struct fib_rule_hdr head = {.family = AF_INET, .src_len = 32, .action = FR_ACT_TO_TBL};
    const struct ip_prefix source = prefix("10.0.0.2/32");
    struct nl_msg *msg =
        netlink_message(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    netlink_put(msg, FRA_SRC, source.bytes, 4);
    netlink_put_u32(msg, FRA_PRIORITY, 100);
    netlink_put_u32(msg, FRA_TABLE, 300);
    netlink_put_u32(msg, FRA_FWMARK, 1);
    must(netlink_do_take(&net->n, msg, &net->err), &net->err);
}

static void like_rules_are_not_taken_for_it(void **state)
{
    static const struct rule there[] = {{"10.0.0.2/31", NULL, 100, 300},
                                        {"10.0.0.3/32", NULL, 100, 300},
                                        {NULL, "10.0.0.2/32", 100, 300},
                                        {"10.0.0.2/32", NULL, 101, 300},
                                        {"10.0.0.2/32", NULL, 100, 301}};
    static const struct rule wanted[] = {{"10.0.0.2/32", NULL, 100, 300}};
    struct net *net = net_of(state);
    must(add_rules(net, there, ARRAY_LEN(there)), &net->err);
    add_marked_rule(net);
    must(add_rules(net, wanted, 1), &net->err);
    check_list(net, RTM_GETRULE, on_rule,
               "inet 100 from 10.0.0.2/31 table 300\n"
               "inet 100 from 10.0.0.2/32 table 300\n"
               "inet 100 from 10.0.0.2/32 table 300 mark\n"
               "inet 100 from 10.0.0.2/32 table 301\n"
               "inet 100 from 10.0.0.3/32 table 300\n"
               "inet 100 to 10.0.0.2/32 table 300\n"
               "inet 101 from 10.0.0.2/32 table 300\n");
}

/* ---- neighbours ---- */

static int add_neighbor(struct net *net, int index, const char *address, const char *hw)
{
    struct net_neighbor neighbor = {.address = prefix(address)};
    const struct net_config config = {.neighbors = &neighbor, .neighbor_count = 1};
    assert_true(hw_addr_parse(hw, &neighbor.hw));
    return neighbors_ensure(&net->n, index, &config, &net->err);
}

static void neighbors_are_permanent(void **state)
{
    struct net *net = net_of(state);
    struct ndmsg head = {.ndm_family = AF_INET, .ndm_ifindex = net->nic, .ndm_state = NUD_STALE};
    const struct ip_prefix other = prefix("10.0.0.9");
    struct nl_msg *msg = netlink_message(RTM_NEWNEIGH, NLM_F_CREATE, &head, sizeof head);
    netlink_put(msg, NDA_DST, other.bytes, 4);
    netlink_put(msg, NDA_LLADDR, "\2\0\0\0\0\x9", 6);
    must(netlink_do_take(&net->n, msg, &net->err), &net->err);
    must(add_neighbor(net, net->peer, "10.0.0.8", "02:00:00:00:00:08"), &net->err);
    must(add_neighbor(net, net->nic, "10.0.0.7", "02:00:00:00:00:08"), &net->err);
    for (int i = 0; i < 2; i++) {
        must(add_neighbor(net, net->nic, "10.0.0.8", "02:00:00:00:00:08"), &net->err);
        must(add_neighbor(net, net->nic, "10.0.0.9", "02:00:00:00:00:09"), &net->err);
        must(add_neighbor(net, net->nic, "fd00::8", "02:00:00:00:00:08"), &net->err);
        check_list(net, RTM_GETNEIGH, on_neighbor,
                   "10.0.0.7 02:00:00:00:00:08\n"
                   "10.0.0.8 02:00:00:00:00:08\n"
                   "10.0.0.8 02:00:00:00:00:08 elsewhere\n"
                   "10.0.0.9 02:00:00:00:00:09\n"
                   "fd00::8 02:00:00:00:00:08\n");
    }
    /* one of another hardware address is replaced */
    must(add_neighbor(net, net->nic, "10.0.0.7", "02:00:00:00:00:07"), &net->err);
    check_list(net, RTM_GETNEIGH, on_neighbor,
               "10.0.0.7 02:00:00:00:00:07\n"
               "10.0.0.8 02:00:00:00:00:08\n"
               "10.0.0.8 02:00:00:00:00:08 elsewhere\n"
               "10.0.0.9 02:00:00:00:00:09\n"
               "fd00::8 02:00:00:00:00:08\n");
    assert_int_equal(add_neighbor(net, 9999, "10.0.0.8", "02:00:00:00:00:08"), -ENODEV);
    assert_int_equal(strncmp(net->err.text, "neighbour 10.0.0.8 (02:00:00:00:00:08): ", 40), 0);
}

/* ---- a VRF ---- */

static void vrf_is_shared_by_name(void **state)
{
    struct net *net = net_of(state);
    struct link link;
    int index = -1, again = -1;
    assert_int_equal(vrf_ensure(&net->n, "nic1", 10, &index, &net->err), -EEXIST);
    assert_string_equal(net->err.text, "VRF nic1: a device of that name is there and is no VRF");
    assert_int_equal(index, -1);
    int rc = vrf_ensure(&net->n, "red", 10, &index, &net->err);
    if (rc == -EOPNOTSUPP) { /* a kernel without VRFs */
        assert_int_equal(strncmp(net->err.text, "VRF red: ", 9), 0);
        assert_int_equal(index, -1);
        return;
    }
    must(rc, &net->err);
    must(vrf_ensure(&net->n, "red", 10, &again, &net->err), &net->err);
    assert_int_equal(index, again);
    assert_int_equal(link_by_name(&net->n, "red", &link, &net->err), 1);
    assert_int_equal(link.index, index);
    assert_int_equal(link.vrf_table, 10);
    assert_true(link.up);
    assert_int_equal(vrf_ensure(&net->n, "red", 11, &again, &net->err), -EEXIST);
    assert_string_equal(net->err.text, "VRF red: is there with table 10, expected 11");
}

/* ---- kernel settings ---- */

static int read_setting(const char *path)
{
    char text[32] = "";
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    return atoi(text);
}

static void settings_are_written(void **state)
{
    struct net *net = net_of(state);
    struct drarun_error *err = &net->err;
    for (int value = 2; value >= 0; value--) {
        must(sysctl_ensure_device("ipv4", "nic0", "arp_ignore", value, err), err);
        must(sysctl_ensure_device("ipv4", "nic0", "arp_ignore", value, err), err);
        assert_int_equal(read_setting("/proc/sys/net/ipv4/conf/nic0/arp_ignore"), value);
        assert_int_equal(read_setting("/proc/sys/net/ipv4/conf/nic1/arp_ignore"), 0);
    }
    must(sysctl_ensure("ipv4", "ip_forward", 1, err), err);
    assert_int_equal(read_setting("/proc/sys/net/ipv4/ip_forward"), 1);
    /* nobody may write this one, which begins with a name */
    must(sysctl_ensure("ipv4", "tcp_available_congestion_control", 0, err), err);
}

static void setting_that_is_refused_is_named(void **state)
{
    static const struct {
        const char *name;
        int value, code;
        const char *finding;
    } rows[] = {
        {"none", 1, ENOENT, "/proc/sys/net/ipv4/none: No such file or directory"},
        {"ip_unprivileged_port_start", 70000, EINVAL,
         "/proc/sys/net/ipv4/ip_unprivileged_port_start: write 70000: Invalid argument"},
        {"tcp_available_congestion_control", 1, EACCES,
         "/proc/sys/net/ipv4/tcp_available_congestion_control: Permission denied"},
    };
    struct net *net = net_of(state);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(sysctl_ensure("ipv4", rows[i].name, rows[i].value, &net->err),
                         -rows[i].code);
        assert_string_equal(net->err.text, rows[i].finding);
    }
}

/* ---- features ---- */

/* As ethtool's first releases asked, without names. */
static bool is_on(uint32_t command)
{
    struct ethtool_value value = {.cmd = command};
    struct ifreq request = {.ifr_name = "nic0", .ifr_data = (char *)&value};
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(ioctl(fd, SIOCETHTOOL, &request), 0);
    return value.data;
}

static int turn(struct net *net, const char *name, bool on)
{
    CLEANUP(json_decrefp) json_t *features = json_pack("{s:b}", name, on);
    return ethtool_ensure(-1, "nic0", features, NULL, &net->err);
}

static void features_are_turned(void **state)
{
    static const struct {
        const char *group, *longer;
        uint32_t command;
    } rows[] = {{"tso", "tcp-segmentation-offload", ETHTOOL_GTSO},
                {"sg", "scatter-gather", ETHTOOL_GSG},
                {"gso", "generic-segmentation-offload", ETHTOOL_GGSO},
                {"gro", "generic-receive-offload", ETHTOOL_GGRO},
                {"rx", "rx-checksumming", ETHTOOL_GRXCSUM},
                {"tx", "tx-checksumming", ETHTOOL_GTXCSUM}};
    struct net *net = net_of(state);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int round = 0; round < 2; round++) {
            must(turn(net, rows[i].group, false), &net->err);
            must(turn(net, rows[i].longer, false), &net->err);
            assert_false(is_on(rows[i].command));
            must(turn(net, round ? rows[i].group : rows[i].longer, true), &net->err);
            if (!is_on(rows[i].command))
                fail_msg("%s is off", rows[i].group);
        }
    must(turn(net, "rx-gro", false), &net->err); /* the kernel's own name */
    assert_false(is_on(ETHTOOL_GGRO));
    assert_true(is_on(ETHTOOL_GTSO));
}

static void features_are_read_by_the_kernels_names(void **state)
{
    struct net *net = net_of(state);
    CLEANUP(json_decrefp)
    json_t *asked = json_pack("{s:b, s:b, s:b, s:b}", "gro", 1, "sg", 1, "loopback", 1, "x", 1);
    CLEANUP(json_decrefp) json_t *features = NULL, *flags = NULL;
    CLEANUP(json_decrefp)
    json_t *expected = json_pack("{s:b, s:b, s:b}", "rx-gro", 0, "tx-scatter-gather", 1,
                                 "tx-scatter-gather-fraglist", 1);
    must(turn(net, "gro", false), &net->err);
    must(ethtool_read("nic0", asked, NULL, &features, &flags, &net->err), &net->err);
    assert_true(json_equal(features, expected));
    assert_null(flags);
}

static void features_that_cannot_be(void **state)
{
    static const struct {
        const char *name;
        bool on;
        const char *finding; /* NULL: as it is */
    } rows[] = {
        {"loopback", false, NULL},
        {"loopback", true, "the device keeps \"loopback\" fixed at off"},
        {"lro", false, NULL},
        {"lro", true, "the device keeps \"lro\" fixed at off"},
        {"rx-gr", true, "the device has no feature \"rx-gr\"; did you mean \"rx-gro\"?"},
        {"zzzzzzzzzzzz", true, "the device has no feature \"zzzzzzzzzzzz\""},
    };
    struct net *net = net_of(state);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int rc = turn(net, rows[i].name, rows[i].on);
        assert_int_equal(rc, rows[i].finding ? -EINVAL : 0);
        if (rows[i].finding)
            assert_string_equal(net->err.text, rows[i].finding);
    }
}

static void devices_without_private_flags(void **state)
{
    struct net *net = net_of(state);
    CLEANUP(json_decrefp) json_t *asked = json_pack("{s:b}", "tso", 1);
    assert_int_equal(ethtool_ensure(-1, "nic0", NULL, asked, &net->err), -EINVAL);
    assert_string_equal(net->err.text, "the device has no private flag \"tso\"");
    assert_int_equal(ethtool_ensure(-1, "none", asked, NULL, &net->err), -ENODEV);
    assert_string_equal(net->err.text, "ethtool: No such device");
    must(ethtool_ensure(-1, "none", NULL, NULL, &net->err), &net->err); /* nothing is asked */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, take_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(addresses_are_added_beside_others),
        CASE(refused_address_is_named),
        CASE(routes_are_added_once),
        CASE(like_routes_are_not_taken_for_it),
        CASE(another_route_in_its_place_is_told),
        CASE(routes_of_a_vrf_are_in_its_table),
        CASE(unreachable_gateway_is_told),
        CASE(rules_are_added_once),
        CASE(like_rules_are_not_taken_for_it),
        CASE(neighbors_are_permanent),
        CASE(vrf_is_shared_by_name),
        CASE(settings_are_written),
        CASE(setting_that_is_refused_is_named),
        CASE(features_are_turned),
        CASE(features_are_read_by_the_kernels_names),
        CASE(features_that_cannot_be),
        CASE(devices_without_private_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
