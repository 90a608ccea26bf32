/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/host_use.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/cleanup.h"
#include "lib/topo/default_route.h"
#include "lib/topo/root.h"
#include "plugin/discover/config.h"

#define UPLINKS_PLAUSIBLE 2u /* one, or two for redundancy */
#define ENTRIES_MAX 256u     /* in the folder of an interface */

/* ---- what is used ---- */

static void add(struct host_use *use, const char *name, const char *reason)
{
    if (strlist_has(&use->names, name))
        return;
    strlist_add(&use->names, name);
    strlist_add(&use->reasons, reason);
}

/* The interfaces that `name` is made of: ports of a bridge, members of a bond, the device below a
 * VLAN, the HCA's own below one of a partition. */
static void add_below(const struct host_use_source *source, struct host_use *use, const char *name)
{
    char path[160], reason[160];
    struct strlist entries = STRLIST_INIT;
    snprintf(path, sizeof path, "sys/class/net/%.63s", name);
    if (root_list(source->root, path, ENTRIES_MAX, &entries, NULL) < 0)
        return;
    snprintf(reason, sizeof reason, "it is below %.63s", name);
    for (size_t i = 0; i < entries.count; i++)
        if (strncmp(entries.items[i], "lower_", 6) == 0)
            add(use, entries.items[i] + 6, reason);
    for (size_t i = 0; i < source->host->netdev_count; i++) {
        const struct topo_netdev *net = &source->host->netdevs[i];
        if (net->partition_of[0] && strcmp(net->name, name) == 0)
            add(use, net->partition_of, reason);
    }
    strlist_done(&entries);
}

/* In use by the host whatever its routes: something lies above it. A move deletes a VLAN or
 * macvlan, and takes IPoIB's interfaces of partitions down. */
static void add_if_covered(const struct host_use_source *source, struct host_use *use,
                           const char *name)
{
    char path[160], reason[160];
    struct strlist entries = STRLIST_INIT;
    snprintf(path, sizeof path, "sys/class/net/%.63s", name);
    if (root_list(source->root, path, ENTRIES_MAX, &entries, NULL) < 0)
        return;
    for (size_t i = 0; i < entries.count; i++)
        if (strncmp(entries.items[i], "upper_", 6) == 0) {
            snprintf(reason, sizeof reason, "it is part of %.63s", entries.items[i] + 6);
            add(use, name, reason);
        }
    if (strlist_has(&entries, "master"))
        add(use, name, "it is part of a bridge or bond");
    for (size_t i = 0; i < source->host->netdev_count; i++)
        if (strcmp(source->host->netdevs[i].partition_of, name) == 0) {
            snprintf(reason, sizeof reason, "it is part of %.63s", source->host->netdevs[i].name);
            add(use, name, reason);
        }
    strlist_done(&entries);
}

static bool is_address_of(const char *const *addresses, const struct sockaddr *sa)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (sa->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, text,
                  sizeof text);
    else if (sa->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, text,
                  sizeof text);
    for (size_t i = 0; text[0] && addresses[i]; i++)
        if (strcmp(addresses[i], text) == 0)
            return true;
    return false;
}

static void add_addresses(const struct host_use_source *source, struct host_use *use)
{
    for (const struct ifaddrs *i = source->addresses_here; i && source->addresses; i = i->ifa_next)
        if (i->ifa_addr && is_address_of(source->addresses, i->ifa_addr))
            add(use, i->ifa_name, "it has the node's address");
}

static bool is_there(const struct topo_host *host, const char *name)
{
    for (size_t i = 0; i < host->netdev_count; i++)
        if (strcmp(host->netdevs[i].name, name) == 0)
            return true;
    return false;
}

/* A list of uplinks serves nodes of several shapes: names that are not here are passed over; when
 * none is, it is a mistake that must not hand out the real uplink. */
static int add_uplinks(const struct host_use_source *source, struct host_use *use,
                       struct drarun_error *err)
{
    struct strlist names = STRLIST_INIT;
    char reason[200];
    int rc = 0;
    for (size_t i = 0; source->uplinks && i < source->uplinks->count; i++)
        if (is_there(source->host, source->uplinks->items[i]))
            add(use, source->uplinks->items[i], "the configuration says that it is an uplink");
    if (use->names.count > 0)
        return 0;
    rc = default_routes_read(source->root, false, &names, err);
    if (rc == 0)
        rc = default_routes_read(source->root, true, &names, err);
    snprintf(reason, sizeof reason, "it has the default route");
    if (names.count > UPLINKS_PLAUSIBLE)
        snprintf(reason, sizeof reason,
                 "it has a default route, as %zu interfaces have: if routers advertise them to "
                 "RDMA NICs, name the real uplinks in the configuration",
                 names.count);
    for (size_t i = 0; i < names.count; i++)
        add(use, names.items[i], reason);
    if (rc == 0 && names.failed)
        rc = error_set(err, ENOMEM, "routes: out of memory");
    strlist_done(&names);
    return rc;
}

bool host_use_matters(const struct host_use_source *source, const struct topo_netdev *net)
{
    return net->pci != TOPO_NONE || config_has_prefix(source->virtual_prefixes, net->name);
}

int host_use_read(const struct host_use_source *source, struct host_use *ret_use,
                  struct drarun_error *err)
{
    struct host_use use = {0};
    int rc = add_uplinks(source, &use, err);
    add_addresses(source, &use);
    for (size_t i = 0; rc == 0 && i < use.names.count; i++) /* it grows */
        add_below(source, &use, use.names.items[i]);
    for (size_t i = 0; rc == 0 && i < source->host->netdev_count; i++)
        if (host_use_matters(source, &source->host->netdevs[i]))
            add_if_covered(source, &use, source->host->netdevs[i].name);
    if (rc == 0 && (use.names.failed || use.reasons.failed))
        rc = error_set(err, ENOMEM, "interfaces in use: out of memory");
    if (rc < 0)
        host_use_done(&use);
    else
        *ret_use = use;
    return rc;
}

void host_use_done(struct host_use *use)
{
    strlist_done(&use->names);
    strlist_done(&use->reasons);
}

const char *host_use_of(const struct host_use *use, const char *name)
{
    for (size_t i = 0; i < use->names.count; i++)
        if (strcmp(use->names.items[i], name) == 0)
            return use->reasons.items[i];
    return NULL;
}
