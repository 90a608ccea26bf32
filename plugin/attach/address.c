/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/address.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <string.h>

#include "lib/base/error.h"
#include "plugin/attach/ensure.h"

struct seen_address {
    struct ip_prefix prefix;
    int index;
    uint8_t scope;
    bool failed;    /* its address was found to be somebody else's */
    bool temporary; /* RFC 8981: the kernel has made it up, and makes others */
};

static bool take_address(struct nlmsghdr *answer, struct seen_address *ret)
{
    struct nlattr *t[IFA_MAX + 1];
    if (answer->nlmsg_type != RTM_NEWADDR ||
        nlmsg_parse(answer, sizeof(struct ifaddrmsg), t, IFA_MAX, NULL) < 0)
        return false;
    const struct ifaddrmsg *head = nlmsg_data(answer);
    struct nlattr *at = t[IFA_LOCAL] ? t[IFA_LOCAL] : t[IFA_ADDRESS];
    uint32_t flags = t[IFA_FLAGS] ? nla_get_u32(t[IFA_FLAGS]) : head->ifa_flags;
    *ret = (struct seen_address){
        .prefix = {.family = head->ifa_family, .bits = head->ifa_prefixlen},
        .index = (int)head->ifa_index,
        .scope = head->ifa_scope,
        .failed = flags & (IFA_F_DADFAILED | IFA_F_TENTATIVE),
        .temporary = head->ifa_family == AF_INET6 && flags & IFA_F_TEMPORARY,
    };
    if ((head->ifa_family != AF_INET && head->ifa_family != AF_INET6) || !at ||
        (size_t)nla_len(at) != ip_prefix_size(&ret->prefix))
        return false;
    memcpy(ret->prefix.bytes, nla_data(at), (size_t)nla_len(at));
    return true;
}

static bool is(const struct ensure *ensure, const void *item, struct nlmsghdr *answer)
{
    struct seen_address seen;
    return take_address(answer, &seen) && seen.index == ensure->index && !seen.failed &&
           ip_prefix_equal(&seen.prefix, item);
}

static struct nl_msg *add(const struct ensure *ensure, const void *item)
{
    const struct ip_prefix *prefix = item;
    struct ifaddrmsg head = {
        .ifa_family = (uint8_t)prefix->family,
        .ifa_prefixlen = prefix->bits,
        .ifa_index = (uint32_t)ensure->index,
    };
    struct nl_msg *msg =
        netlink_message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
    netlink_put(msg, IFA_LOCAL, prefix->bytes, ip_prefix_size(prefix));
    netlink_put(msg, IFA_ADDRESS, prefix->bytes, ip_prefix_size(prefix));
    if (prefix->family == AF_INET6)
        netlink_put_u32(msg, IFA_FLAGS, IFA_F_NODAD);
    return msg;
}

static void text(const void *item, char *out)
{
    ip_prefix_text(item, out);
}

int addresses_ensure(struct netlink *n, int index, const struct ip_prefix *list, size_t count,
                     struct drarun_error *err)
{
    const struct ensure ensure = {.what = "address",
                                  .list = RTM_GETADDR,
                                  .items = list,
                                  .count = count,
                                  .size = sizeof *list,
                                  .index = index,
                                  .is = is,
                                  .add = add,
                                  .text = text};
    return ensure_all(n, &ensure, err);
}

struct collecting {
    int index;
    struct ip_prefix *list;
    size_t count;
    bool failed;
};

static void on_address(struct nlmsghdr *answer, void *arg)
{
    struct collecting *c = arg;
    struct seen_address seen;
    if (!take_address(answer, &seen) || seen.index != c->index || seen.scope == RT_SCOPE_LINK ||
        seen.temporary)
        return;
    for (size_t i = 0; i < c->count; i++)
        if (ip_prefix_equal(&c->list[i], &seen.prefix))
            return;
    struct ip_prefix *list = realloc(c->list, (c->count + 1) * sizeof *list);
    c->failed = c->failed || !list;
    if (!list)
        return;
    c->list = list;
    c->list[c->count++] = seen.prefix;
}

int addresses_read(struct netlink *n, int index, struct ip_prefix **ret_list, size_t *ret_count,
                   struct drarun_error *err)
{
    struct collecting c = {.index = index};
    struct ifaddrmsg head = {.ifa_family = AF_UNSPEC, .ifa_index = (unsigned)index};
    netlink_strict(n, true); /* only those, where the kernel can */
    int rc = netlink_ask_take(n, netlink_message(RTM_GETADDR, NLM_F_DUMP, &head, sizeof head),
                              on_address, &c, err);
    netlink_strict(n, false);
    if (rc == 0 && c.failed)
        rc = error_set(err, ENOMEM, "addresses: out of memory");
    if (rc < 0) {
        free(c.list);
        return rc;
    }
    *ret_list = c.list;
    *ret_count = c.count;
    return 0;
}
