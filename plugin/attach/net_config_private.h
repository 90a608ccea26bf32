/* SPDX-License-Identifier: Apache-2.0 */
/* What the order's file has in common with the configuration in it. Private to plugin/attach. */
#ifndef DRARUN_ATTACH_NET_CONFIG_PRIVATE_H
#define DRARUN_ATTACH_NET_CONFIG_PRIVATE_H

#include "plugin/attach/net_config.h"

#define NET_SWITCH_NAME_MAX 32 /* ETH_GSTRING_LEN, with the NUL */

/* A field_read_fn: an object of names and booleans, into a json_t * (a new reference). */
void net_switches_read(const struct reader_node *node, void *field);

/* Adds a member unless it is unset (0, none, "") ; value is taken. False when out of memory. */
bool net_put_take(json_t *object, const char *key, json_t *value);
bool net_put_count(json_t *object, const char *key, uint32_t value);
bool net_put_hw(json_t *object, const char *key, const struct hw_addr *hw);
bool net_put_prefixes(json_t *object, const char *key, const struct ip_prefix *list, size_t count);
bool net_put_switches(json_t *object, const char *key, const json_t *switches);

#endif
