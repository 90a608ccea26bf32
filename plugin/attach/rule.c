/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/rule.h"

#include <linux/fib_rules.h>
#include <stdio.h>
#include <string.h>

#include "plugin/attach/ensure.h"

static int family_of(const struct net_rule *rule)
{
    if (rule->source.family)
        return rule->source.family;
    return rule->destination.family ? rule->destination.family : AF_INET; /* as DraNet */
}

static bool holds(struct nlattr *attr, unsigned bits, const struct ip_prefix *prefix)
{
    if (!prefix->family || prefix->bits == 0)
        return bits == 0;
    return attr && bits == prefix->bits && (size_t)nla_len(attr) == ip_prefix_size(prefix) &&
           memcmp(nla_data(attr), prefix->bytes, ip_prefix_size(prefix)) == 0;
}

static bool is(const struct ensure *ensure, const void *item, struct nlmsghdr *answer)
{
    const struct net_rule *rule = item;
    struct nlattr *t[FRA_MAX + 1];
    (void)ensure;
    if (nlmsg_parse(answer, sizeof(struct fib_rule_hdr), t, FRA_MAX, NULL) < 0)
        return false;
    const struct fib_rule_hdr *head = nlmsg_data(answer);
    uint32_t table = t[FRA_TABLE] ? nla_get_u32(t[FRA_TABLE]) : head->table;
    uint32_t priority = t[FRA_PRIORITY] ? nla_get_u32(t[FRA_PRIORITY]) : 0;
    return head->family == family_of(rule) && head->action == FR_ACT_TO_TBL &&
           table == rule->table && priority == rule->priority && !t[FRA_FWMARK] &&
           !t[FRA_IIFNAME] && !t[FRA_OIFNAME] && holds(t[FRA_SRC], head->src_len, &rule->source) &&
           holds(t[FRA_DST], head->dst_len, &rule->destination);
}

static struct nl_msg *add(const struct ensure *ensure, const void *item)
{
    const struct net_rule *rule = item;
    struct fib_rule_hdr head = {
        .family = (uint8_t)family_of(rule),
        .src_len = rule->source.bits,
        .dst_len = rule->destination.bits,
        .action = FR_ACT_TO_TBL,
    };
    struct nl_msg *msg =
        netlink_message(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof head);
    (void)ensure;
    if (rule->source.bits)
        netlink_put(msg, FRA_SRC, rule->source.bytes, ip_prefix_size(&rule->source));
    if (rule->destination.bits)
        netlink_put(msg, FRA_DST, rule->destination.bytes, ip_prefix_size(&rule->destination));
    netlink_put_u32(msg, FRA_PRIORITY, rule->priority);
    netlink_put_u32(msg, FRA_TABLE, rule->table);
    return msg;
}

static void text(const void *item, char *out)
{
    const struct net_rule *rule = item;
    char from[IP_PREFIX_TEXT] = "all", to[IP_PREFIX_TEXT] = "all";
    if (rule->source.family)
        ip_prefix_text(&rule->source, from);
    if (rule->destination.family)
        ip_prefix_text(&rule->destination, to);
    snprintf(out, ENSURE_TEXT, "%u from %s to %s lookup %u", rule->priority, from, to, rule->table);
}

int rules_ensure(struct netlink *n, const struct net_config *config, struct drarun_error *err)
{
    const struct ensure ensure = {.what = "rule",
                                  .list = RTM_GETRULE,
                                  .items = config->rules,
                                  .count = config->rule_count,
                                  .size = sizeof *config->rules,
                                  .is = is,
                                  .add = add,
                                  .text = text};
    return ensure_all(n, &ensure, err);
}
