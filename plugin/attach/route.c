/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/route.h"

#include <stdio.h>
#include <string.h>

#include "plugin/attach/ensure.h"

static uint32_t table_of(const struct ensure *ensure, const struct net_route *route)
{
    if (ensure->table)
        return ensure->table;
    return route->table ? route->table : RT_TABLE_MAIN;
}

static bool holds(struct nlattr *attr, const struct ip_prefix *address)
{
    if (!attr || !address->family)
        return !attr && !address->family;
    return (size_t)nla_len(attr) == ip_prefix_size(address) &&
           memcmp(nla_data(attr), address->bytes, ip_prefix_size(address)) == 0;
}

static bool is(const struct ensure *ensure, const void *item, struct nlmsghdr *answer)
{
    const struct net_route *route = item;
    struct nlattr *t[RTA_MAX + 1];
    if (nlmsg_parse(answer, sizeof(struct rtmsg), t, RTA_MAX, NULL) < 0)
        return false;
    const struct rtmsg *head = nlmsg_data(answer);
    uint32_t table = t[RTA_TABLE] ? nla_get_u32(t[RTA_TABLE]) : head->rtm_table;
    struct ip_prefix all = {0};
    return head->rtm_family == route->destination.family && head->rtm_type == RTN_UNICAST &&
           head->rtm_dst_len == route->destination.bits && table == table_of(ensure, route) &&
           t[RTA_OIF] && (int)nla_get_u32(t[RTA_OIF]) == ensure->index &&
           (head->rtm_family != AF_INET || /* IPv6 routes have none */
            head->rtm_scope == (route->link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE)) &&
           holds(t[RTA_DST], route->destination.bits ? &route->destination : &all) &&
           holds(t[RTA_GATEWAY], &route->gateway) &&
           (!route->source.family || holds(t[RTA_PREFSRC], &route->source));
}

static struct nl_msg *add(const struct ensure *ensure, const void *item)
{
    const struct net_route *route = item;
    uint32_t table = table_of(ensure, route);
    struct rtmsg head = {
        .rtm_family = (uint8_t)route->destination.family,
        .rtm_dst_len = route->destination.bits,
        .rtm_table = table < 256 ? (uint8_t)table : RT_TABLE_UNSPEC,
        .rtm_protocol = RTPROT_STATIC,
        .rtm_scope = route->link ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
        .rtm_type = RTN_UNICAST,
    };
    struct nl_msg *msg =
        netlink_message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    size_t size = ip_prefix_size(&route->destination);
    netlink_put(msg, RTA_DST, route->destination.bytes, size);
    if (route->gateway.family)
        netlink_put(msg, RTA_GATEWAY, route->gateway.bytes, size);
    if (route->source.family)
        netlink_put(msg, RTA_PREFSRC, route->source.bytes, size);
    netlink_put_u32(msg, RTA_OIF, (uint32_t)ensure->index);
    netlink_put_u32(msg, RTA_TABLE, table);
    return msg;
}

static void text(const void *item, char *out)
{
    const struct net_route *route = item;
    char via[IP_PREFIX_TEXT];
    size_t n = strlen(ip_prefix_text(&route->destination, out));
    if (route->gateway.family)
        snprintf(out + n, ENSURE_TEXT - n, " via %s", ip_address_text(&route->gateway, via));
}

int routes_ensure(struct netlink *n, int index, const struct net_config *config,
                  struct drarun_error *err)
{
    const struct ensure ensure = {.what = "route",
                                  .list = RTM_GETROUTE,
                                  .items = config->routes,
                                  .count = config->route_count,
                                  .size = sizeof *config->routes,
                                  .index = index,
                                  .table = config->interface.vrf_table,
                                  .is = is,
                                  .add = add,
                                  .text = text};
    return ensure_all(n, &ensure, err);
}
