/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a NIC from its two sources: the DeviceClass, which an administrator writes,
 * and the claim, whose settings the administrator bounds (plugin/discover/claim_limits.h). Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_CLAIM_CONFIG_H
#define DRARUN_PLUGIN_PREPARE_CLAIM_CONFIG_H

#include <jansson.h>
#include "drarun/error.h"
#include "plugin/discover/claim_limits.h"

/* -EPERM where the claim's own configuration (NULL: none) sets what it may not: the text names the
 * settings, what is allowed, and how to allow more. */
int claim_config_check(const struct claim_limits *limits, const json_t *claim,
                       struct drarun_error *err);

/* The claim's settings over those of the class: a setting is one key of `interface` or `ethtool`,
 * or a whole list. Either may be NULL. *ret_config is a new reference, NULL where both are. */
int claim_config_merge(const json_t *class_, const json_t *claim, json_t **ret_config,
                       struct drarun_error *err);

/* -EPERM for an address of the claim that is neither in the address plan nor the NIC's own on the
 * host. */
int claim_config_check_addresses(const struct claim_limits *limits, const struct ip_prefix *wanted,
                                 size_t wanted_count, const struct ip_prefix *own, size_t own_count,
                                 struct drarun_error *err);

#endif
