/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses of a device. Those of IPv6 skip duplicate detection: they are used at once. */
#ifndef DRARUN_ATTACH_ADDRESS_H
#define DRARUN_ATTACH_ADDRESS_H

#include "plugin/attach/ip_prefix.h"
#include "plugin/attach/netlink.h"

int addresses_ensure(struct netlink *n, int index, const struct ip_prefix *list, size_t count,
                     struct drarun_error *err);
/* All but link-local ones and temporary ones of IPv6, *ret_list malloc'ed. */
int addresses_read(struct netlink *n, int index, struct ip_prefix **ret_list, size_t *ret_count,
                   struct drarun_error *err);

#endif
