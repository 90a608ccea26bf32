/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/device_order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/reader.h"
#include "plugin/attach/host_link.h"
#include "plugin/attach/order.h"
#include "plugin/prepare/claim_config.h"

static int parse_config(const json_t *parameters, const struct node_device *device,
                        struct net_config *ret_config, struct drarun_error *err)
{
    struct reader reader;
    reader_init(&reader, NULL, false);
    struct reader_node node = reader_value(&reader, unconst(parameters), NULL);
    if (device->netdev.name[0])
        net_config_read(&node, ret_config);
    else
        net_config_read_rdma(&node);
    int rc = reader_result(&reader, err);
    reader_done(&reader);
    return rc;
}

static int read_config(const struct task *task, const struct claimed_device *wanted,
                       const struct node_device *device, struct net_config *ret_config,
                       struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *merged = NULL;
    int rc = claim_config_check(task->preparer->config->claims, wanted->config, err);
    if (rc == 0)
        rc = claim_config_merge(wanted->of_class, wanted->config, &merged, err);
    if (rc == 0 && merged)
        rc = parse_config(merged, device, ret_config, err);
    return rc < 0 ? error_prefix(err, "configuration of request %s", wanted->request) : 0;
}

/* Those that the claim itself asks for. */
static int check_addresses(const struct task *task, const struct claimed_device *wanted,
                           const struct attach_order *order, struct drarun_error *err)
{
    if (!json_object_get(json_object_get(wanted->config, "interface"), "addresses"))
        return 0;
    int rc = claim_config_check_addresses(task->preparer->config->claims,
                                          order->config.interface.addresses,
                                          order->config.interface.address_count,
                                          order->host.addresses, order->host.address_count, err);
    return rc < 0 ? error_prefix(err, "configuration of request %s", wanted->request) : 0;
}

/* What an earlier Prepare of this claim wrote, whose checkpoint is damaged: how the device was on
 * the host is known from there alone once it is in the pod. */
static bool reuse_order(const struct task *task, const struct node_device *device,
                        struct attach_order *order)
{
    char path[512];
    struct attach_order old;
    preparer_order_path(task->preparer, task->uid, device->name, path, sizeof path);
    if (attach_order_load(AT_FDCWD, path, &old, NULL) < 0)
        return false;
    host_link_done(&order->host);
    memcpy(order->parent, old.parent, sizeof order->parent);
    order->host = old.host;
    old.host = (struct host_link){0};
    attach_order_done(&old);
    return true;
}

/* As DraNet: a NIC without addresses of the claim keeps those that it has on the host. */
static int keep_addresses(struct attach_order *order, struct drarun_error *err)
{
    struct net_interface *interface = &order->config.interface;
    const struct host_link *host = &order->host;
    if (interface->address_count > 0 || host->address_count == 0)
        return 0;
    interface->addresses = calloc(host->address_count, sizeof *interface->addresses);
    if (!interface->addresses)
        return error_set(err, ENOMEM, "out of memory");
    memcpy(interface->addresses, host->addresses,
           host->address_count * sizeof *interface->addresses);
    interface->address_count = host->address_count;
    return 0;
}

/* Since the devices were last read the host may have begun to use it. */
static int check_use(const struct task *task, const struct node_device *device,
                     struct drarun_error *err)
{
    const char *used = device->included ? NULL : host_use_of(&task->used, device->netdev.name);
    return used ? error_set(err, EBUSY, "the host uses it: %s" SPARED, used) : 0;
}

/* XDP and TCX: they survive a move, but not being taken off. Those of the host are its own. */
static int check_programs(const struct node_device *device, const struct attach_order *order,
                          struct drarun_error *err)
{
    if (device->included || !order->config.interface.no_ebpf || !order->host.ebpf)
        return 0;
    return error_set(err, EPERM,
                     "interface.disableEbpfPrograms: the host has BPF programs on %s (XDP or TCX), "
                     "which would be lost: leave it away, detach them on the host, or name the "
                     "device in nics.include of the PluginConfig",
                     order->host.name);
}

static int make_order(const struct task *task, const struct claimed_device *wanted,
                      const struct node_device *device, struct attach_order *order,
                      struct drarun_error *err)
{
    snprintf(order->claim_namespace, sizeof order->claim_namespace, "%s", task->namespace_);
    snprintf(order->claim_name, sizeof order->claim_name, "%s", task->name);
    snprintf(order->claim_uid, sizeof order->claim_uid, "%s", task->uid);
    snprintf(order->device, sizeof order->device, "%s", device->name);
    snprintf(order->pci, sizeof order->pci, "%s", device->pci.known ? device->pci.bus_id : "");
    memcpy(order->parent, order->pci, sizeof order->parent);
    snprintf(order->rdma, sizeof order->rdma, "%s", device->rdma.name);
    snprintf(order->host.name, sizeof order->host.name, "%s", device->netdev.name);
    if (device->netdev.mac[0])
        hw_addr_parse(device->netdev.mac, &order->mac);
    int rc = read_config(task, wanted, device, &order->config, err);
    if (rc < 0 || !device->netdev.name[0])
        return rc;
    if (task->claimed.host_network)
        return error_set(err, EINVAL,
                         "pod %s is on the host's network (hostNetwork: true), where %s cannot be "
                         "its own: leave hostNetwork away, or the claim",
                         task->claimed.pod, device->netdev.name);
    if (!reuse_order(task, device, order)) {
        rc = check_use(task, device, err);
        rc = rc < 0 ? rc : host_link_read(order, err);
        rc = rc < 0 ? rc : check_programs(device, order, err);
    }
    if (rc == 0)
        rc = check_addresses(task, wanted, order, err);
    if (rc == 0 && !order->config.interface.name[0])
        memcpy(order->config.interface.name, order->host.name, sizeof order->host.name);
    return rc < 0 ? rc : keep_addresses(order, err);
}

int device_order(const struct task *task, const struct claimed_device *wanted,
                 const struct node_device *device, json_t **ret_order, struct drarun_error *err)
{
    struct attach_order order = {.config = NET_CONFIG_INIT};
    *ret_order = NULL;
    if (device->kind != NODE_DEVICE_NIC || wanted->admin)
        return 0;
    int rc = make_order(task, wanted, device, &order, err);
    if (rc == 0 && !(*ret_order = attach_order_json(&order)))
        rc = error_set(err, ENOMEM, "out of memory");
    attach_order_done(&order);
    return rc;
}
