/* SPDX-License-Identifier: Apache-2.0 */
/* Routes over a device, as a configuration wants them. */
#ifndef DRARUN_ATTACH_ROUTE_H
#define DRARUN_ATTACH_ROUTE_H

#include "plugin/attach/net_config.h"
#include "plugin/attach/netlink.h"

/* The device must be up. All go into the VRF's table where there is one. An equal route over
 * another device is an error, never replaced. */
int routes_ensure(struct netlink *n, int index, const struct net_config *config,
                  struct drarun_error *err);

#endif
