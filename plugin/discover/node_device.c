/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/node_device.h"

const char *node_device_driver(const struct node_device *device)
{
    return device->kind == NODE_DEVICE_NIC ? NODE_DRIVER_NIC : NODE_DRIVER_GPU;
}

const char *node_device_kind_name(enum node_device_kind kind)
{
    static const char *const names[] = {"?", "GPU", "MIG", "NIC"};
    return names[kind];
}

bool node_device_is_bare(const struct node_device *device)
{
    return device->kind == NODE_DEVICE_NIC && !device->netdev.name[0] && !device->rdma.name[0];
}
