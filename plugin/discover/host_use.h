/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces that the host itself uses, with the reason: those of the default route, those with an
 * address of the node, ports of bridges and bonds, and all that lies below one of them. Sources:
 * proc(5) net/route (the main table), net/ipv6_route; sysfs-class-net: master, lower_*, upper_*,
 * and iflink of IPoIB's. As DraNet has it, of several default routes those with the smallest metric
 * count. */
#ifndef DRARUN_PLUGIN_DISCOVER_HOST_USE_H
#define DRARUN_PLUGIN_DISCOVER_HOST_USE_H

#include <ifaddrs.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/topo/host.h"

struct host_use {
    struct strlist names;   /* of interfaces */
    struct strlist reasons; /* one for each name */
};

struct host_use_source {                  /* borrowed */
    int root;                             /* opened */
    const struct ifaddrs *addresses_here; /* of this machine; NULL: of a tree nothing is known */
    const struct topo_host *host;
    const struct strlist
        *virtual_prefixes;         /* other interfaces without hardware are not looked at */
    const struct strlist *uplinks; /* instead of the default route's, when one of them exists */
    const char *const *addresses;  /* of the node, NULL-terminated, or NULL */
};

int host_use_read(const struct host_use_source *source, struct host_use *ret_use,
                  struct drarun_error *err);
void host_use_done(struct host_use *use);

/* Whether it is looked at: a node has an interface for each pod, of which none is ever offered. */
bool host_use_matters(const struct host_use_source *source, const struct topo_netdev *net);

/* Why the host uses it, borrowed; NULL: it does not. */
const char *host_use_of(const struct host_use *use, const char *name);

#endif
