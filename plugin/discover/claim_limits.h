/* SPDX-License-Identifier: Apache-2.0 */
/* What a claim's own configuration may set on a NIC: PluginConfig's `claims`. A claim is written by
 * the author of a pod; what comes from a DeviceClass is the administrator's and has no such
 * limits.
 *
 *     claims:
 *       allow: [interface.name, interface.mtu, interface.addresses, routes]  # the default
 *       addresses: [10.9.0.0/16]  # the address plan; default: none but the NIC's own on the host
 *
 * A key names a setting of a NIC's configuration (plugin/attach/net_config.h), or, as `interface`
 * and `ethtool`, all below it. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_CLAIM_LIMITS_H
#define DRARUN_PLUGIN_DISCOVER_CLAIM_LIMITS_H

#include "lib/base/buf.h"
#include "lib/doc/reader.h"
#include "plugin/attach/ip_prefix.h"

struct claim_limits {
    uint32_t allowed;            /* a bit for each setting */
    struct ip_prefix *addresses; /* networks that a claim may take addresses of; owned */
    size_t address_count;
};

/* For tables of fields (lib/doc/fields.h): a list of settings into the uint32_t that is allowed; a
 * list of networks into a struct claim_limits. */
void claim_limits_read_allow(const struct reader_node *node, void *field);
void claim_limits_read_addresses(const struct reader_node *node, void *field);
/* The settings that are allowed without a word of the configuration. */
uint32_t claim_limits_default(void);
void claim_limits_done(struct claim_limits *limits);

/* Whether a claim may set it: "interface.mtu", "routes". True for what is no setting: the reader
 * of the configuration refuses that. */
bool claim_limits_allow(const struct claim_limits *limits, const char *setting);
/* Whether an address lies in a network of the plan. */
bool claim_limits_have(const struct claim_limits *limits, const struct ip_prefix *address);

/* For messages: "interface.name, routes", or "nothing"; "10.9.0.0/16", or "no network". */
void claim_limits_list(const struct claim_limits *limits, struct buf *out);
void claim_limits_plan(const struct claim_limits *limits, struct buf *out);

#endif
