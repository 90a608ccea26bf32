/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does over interfaces that are not its uplinks: routes beyond the network that an
 * interface is connected to, a default route that it falls back to among them, storage that is
 * reached through it, sockets with its addresses, and programs on it that a move would take away
 * (tc_programs.h). An address alone is no use: clouds give each RDMA NIC one. Sources: proc(5)
 * net/route, net/ipv6_route, net/{tcp,tcp6,udp,udp6}, 1/mounts; sysfs class/nvme and
 * class/iscsi_connection.
 *
 * No use, since they come with an address: the network's own route by its gateway where the address
 * is a /32 (as Google's DHCP gives it), what the kernel takes from routers' advertisements, and the
 * socket of a DHCP or NTP client. */
#ifndef DRARUN_PLUGIN_DISCOVER_LIVE_USE_H
#define DRARUN_PLUGIN_DISCOVER_LIVE_USE_H

#include "plugin/discover/host_use.h"

/* Of these interfaces those that are used, each with one reason: "it has a route to 10.6.0.0/16".
 * addresses: of this machine; NULL, as of a captured tree: no route without a gateway, no socket
 * and no program is a use. root: opened. -ENOMEM; what cannot be read is not used. */
int live_use_read(int root, const struct ifaddrs *addresses, const struct strlist *interfaces,
                  struct host_use *ret_use, struct drarun_error *err);

/* Of this machine's interfaces, for freeifaddrs(); what host_use.h and this say of a live machine
 * is wrong without them. */
int live_addresses(struct ifaddrs **ret_addresses, struct drarun_error *err);

/* The same as live_use_read of this machine now; its addresses must be readable. */
int live_use_now(const struct strlist *interfaces, struct host_use *ret_use,
                 struct drarun_error *err);

#endif
