/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/neighbor.h"

#include <linux/neighbour.h>
#include <stdio.h>
#include <string.h>

#include "plugin/attach/ensure.h"

static bool is(const struct ensure *ensure, const void *item, struct nlmsghdr *answer)
{
    const struct net_neighbor *neighbor = item;
    struct nlattr *t[NDA_MAX + 1];
    if (nlmsg_parse(answer, sizeof(struct ndmsg), t, NDA_MAX, NULL) < 0)
        return false;
    const struct ndmsg *head = nlmsg_data(answer);
    return head->ndm_ifindex == ensure->index && head->ndm_state & NUD_PERMANENT &&
           head->ndm_family == neighbor->address.family && t[NDA_DST] && t[NDA_LLADDR] &&
           (size_t)nla_len(t[NDA_DST]) == ip_prefix_size(&neighbor->address) &&
           memcmp(nla_data(t[NDA_DST]), neighbor->address.bytes, (size_t)nla_len(t[NDA_DST])) ==
               0 &&
           nla_len(t[NDA_LLADDR]) == neighbor->hw.len &&
           memcmp(nla_data(t[NDA_LLADDR]), neighbor->hw.bytes, neighbor->hw.len) == 0;
}

static struct nl_msg *add(const struct ensure *ensure, const void *item)
{
    const struct net_neighbor *neighbor = item;
    struct ndmsg head = {
        .ndm_family = (uint8_t)neighbor->address.family,
        .ndm_ifindex = ensure->index,
        .ndm_state = NUD_PERMANENT,
    };
    struct nl_msg *msg =
        netlink_message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
    netlink_put(msg, NDA_DST, neighbor->address.bytes, ip_prefix_size(&neighbor->address));
    netlink_put(msg, NDA_LLADDR, neighbor->hw.bytes, neighbor->hw.len);
    return msg;
}

static void text(const void *item, char *out)
{
    const struct net_neighbor *neighbor = item;
    char hw[HW_ADDR_TEXT], address[IP_PREFIX_TEXT];
    snprintf(out, ENSURE_TEXT, "%s (%s)", ip_address_text(&neighbor->address, address),
             hw_addr_text(&neighbor->hw, hw));
}

int neighbors_ensure(struct netlink *n, int index, const struct net_config *config,
                     struct drarun_error *err)
{
    const struct ensure ensure = {.what = "neighbour",
                                  .list = RTM_GETNEIGH,
                                  .items = config->neighbors,
                                  .count = config->neighbor_count,
                                  .size = sizeof *config->neighbors,
                                  .index = index,
                                  .is = is,
                                  .add = add,
                                  .text = text};
    return ensure_all(n, &ensure, err);
}
