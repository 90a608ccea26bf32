/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/attach/host_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/attach/address.h"
#include "plugin/attach/ebpf.h"
#include "plugin/attach/ethtool.h"
#include "plugin/attach/link.h"

static void host_donep(struct host_link *host)
{
    host_link_done(host);
}

/* On a kernel that names no PCI function as the interface's device: virtio's own bus, a kernel
 * before 5.14. Which function it is on told sysfs when it was discovered. */
static int find_without_function(struct netlink *n, const struct attach_order *order,
                                 struct link *link, struct drarun_error *err)
{
    int rc = link_by_name(n, order->host.name, link, err);
    bool other = rc > 0 && strchr(link->parent, ':');
    return rc > 0 && (other || !order->mac.len || !hw_addr_equal(&link->hw, &order->mac)) ? 0 : rc;
}

int host_link_read(struct attach_order *order, struct drarun_error *err)
{
    CLEANUP(host_donep) struct host_link host = {0};
    CLEANUP(netlink_done) struct netlink n = {0};
    const struct link_wanted wanted = {order->pci, order->mac, {0}, order->host.name};
    struct link link;
    int rc = netlink_open(&n, -1, NETLINK_ROUTE, err);
    rc = rc < 0 ? rc : link_find(&n, &wanted, &link, err);
    if (rc == 0 && order->pci[0])
        rc = find_without_function(&n, order, &link, err);
    if (rc == 0)
        rc = error_set(err, ENODEV, "device %s is not on this host", order->device);
    rc = rc < 0 ? rc : addresses_read(&n, link.index, &host.addresses, &host.address_count, err);
    rc = rc < 0 ? rc
                : ethtool_read(link.name, order->config.features, order->config.private_flags,
                               &host.features, &host.private_flags, err);
    if (rc < 0)
        return rc;
    memcpy(order->parent, link.parent, sizeof order->parent);
    memcpy(host.name, link.name, sizeof host.name);
    host.mtu = link.mtu;
    host.up = link.up;
    host.ebpf = ebpf_is_there(&link);
    host.hw = link.hw;
    host.gso = link.gso;
    host.gro = link.gro;
    host.gso4 = link.gso4;
    host.gro4 = link.gro4;
    host_link_done(&order->host);
    order->host = host;
    host = (struct host_link){0};
    return 0;
}
