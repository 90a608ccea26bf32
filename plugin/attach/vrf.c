/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/vrf.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"

static int make(struct netlink *n, const char *name, uint32_t table, struct drarun_error *err)
{
    struct ifinfomsg head = {.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    struct nl_msg *msg =
        netlink_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    netlink_put_text(msg, IFLA_IFNAME, name);
    struct nlattr *info = msg ? nla_nest_start(msg, IFLA_LINKINFO) : NULL;
    netlink_put_text(msg, IFLA_INFO_KIND, "vrf");
    struct nlattr *data = info ? nla_nest_start(msg, IFLA_INFO_DATA) : NULL;
    netlink_put_u32(msg, IFLA_VRF_TABLE, table);
    if (data)
        nla_nest_end(msg, data);
    if (info)
        nla_nest_end(msg, info);
    int rc = netlink_do_take(n, msg, err);
    return rc == -EEXIST ? 0 : rc; /* the hook for another device was first */
}

static int check(const struct link *link, uint32_t table, struct drarun_error *err)
{
    if (strcmp(link->kind, "vrf") != 0)
        return error_set(err, EEXIST, "a device of that name is there and is no VRF");
    if (link->vrf_table != table)
        return error_set(err, EEXIST, "is there with table %u, expected %u", link->vrf_table,
                         table);
    return 0;
}

int vrf_ensure(struct netlink *n, const char *name, uint32_t table, int *ret_index,
               struct drarun_error *err)
{
    struct link link;
    int rc = link_by_name(n, name, &link, err);
    if (rc == 0) {
        rc = make(n, name, table, err);
        rc = rc < 0 ? rc : link_by_name(n, name, &link, err);
        if (rc == 0)
            rc = error_set(err, ENODEV, "the kernel made it and does not list it");
    }
    if (rc > 0)
        rc = check(&link, table, err);
    if (rc == 0 && !link.up) {
        struct link_change up = LINK_CHANGE_NONE;
        up.up = 1;
        rc = link_change(n, link.index, &up, err);
    }
    if (rc < 0)
        return error_prefix(err, "VRF %s", name);
    *ret_index = link.index;
    return 0;
}
