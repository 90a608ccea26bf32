/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/discover/discover_private.h"
#include "plugin/discover/live_use.h"

static int discover_all(struct discovery *d)
{
    int rc = discover_gpus(d);
    if (rc == 0)
        rc = discover_nics(d);
    if (rc == 0 && devices_number_rails(d->devices) < 0)
        rc = discover_nomem(d);
    return rc;
}

/* Of the interfaces that may be offered. */
static int read_live(struct discovery *d, const struct host_use_source *source,
                     const struct host_use *use, struct host_use *ret_live)
{
    struct strlist interfaces = STRLIST_INIT;
    for (size_t i = 0; i < source->host->netdev_count; i++) {
        const struct topo_netdev *net = &source->host->netdevs[i];
        if (host_use_matters(source, net) && !host_use_of(use, net->name))
            strlist_add(&interfaces, net->name);
    }
    int rc = interfaces.failed ? discover_nomem(d)
                               : live_use_read(source->root, source->addresses_here, &interfaces,
                                               ret_live, d->err);
    strlist_done(&interfaces);
    return rc;
}

static int with_host(struct discovery *d, struct topo_host *host)
{
    struct host_use use = {0}, live = {0};
    const struct host_use_source source = {
        .root = d->root,
        .addresses_here = d->addresses,
        .host = host,
        .virtual_prefixes = &d->source->config->virtual_prefixes,
        .uplinks = &d->source->config->uplinks,
        .addresses = d->source->addresses,
    };
    d->host = host;
    strlist_add_all(&d->devices->warnings, host->warnings.items);
    int rc = host_use_read(&source, &use, d->err);
    d->use = &use;
    d->live = &live;
    if (rc == 0)
        rc = read_live(d, &source, &use, &live);
    if (rc == 0)
        rc = discover_all(d);
    if (rc == 0 && (d->failed || d->devices->warnings.failed))
        rc = discover_nomem(d);
    d->host = NULL;
    d->use = d->live = NULL;
    host_use_done(&use);
    host_use_done(&live);
    return rc;
}

int discover(const struct discover_source *source, struct node_devices *ret_devices,
             struct drarun_error *err)
{
    struct node_devices devices = NODE_DEVICES_INIT;
    struct topo_host host;
    cleanup_close int slash = -1;
    if (source->root < 0) {
        slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (slash < 0)
            return error_set(err, errno, "open /: %s", strerror(errno));
    }
    int root = source->root < 0 ? slash : source->root;
    int rc = host_read_devices(root, &host, err);
    if (rc < 0)
        return rc;
    struct ifaddrs *addresses = NULL;
    if (source->root < 0)
        rc = live_addresses(&addresses, err);
    struct discovery d = {source, root, .addresses = addresses, .devices = &devices, .err = err};
    if (rc == 0)
        rc = with_host(&d, &host);
    if (addresses)
        freeifaddrs(addresses);
    host_done(&host);
    if (rc < 0)
        node_devices_done(&devices);
    else
        *ret_devices = devices;
    return rc;
}
