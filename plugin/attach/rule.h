/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that choose a routing table, as a configuration wants them. They are the namespace's, not a
 * device's, and stay in it. */
#ifndef DRARUN_ATTACH_RULE_H
#define DRARUN_ATTACH_RULE_H

#include "plugin/attach/net_config.h"
#include "plugin/attach/netlink.h"

int rules_ensure(struct netlink *n, const struct net_config *config, struct drarun_error *err);

#endif
