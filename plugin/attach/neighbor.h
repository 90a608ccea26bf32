/* SPDX-License-Identifier: Apache-2.0 */
/* Permanent neighbours (ARP, NDP) of a device, as a configuration wants them. */
#ifndef DRARUN_ATTACH_NEIGHBOR_H
#define DRARUN_ATTACH_NEIGHBOR_H

#include "plugin/attach/net_config.h"
#include "plugin/attach/netlink.h"

/* The device must be up: going up and down forgets them. */
int neighbors_ensure(struct netlink *n, int index, const struct net_config *config,
                     struct drarun_error *err);

#endif
