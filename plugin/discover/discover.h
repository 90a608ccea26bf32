/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices this node could hand out, read once: PCI functions, interfaces and RDMA devices
 * from sysfs and procfs below a directory, what only the kernel or NVIDIA's library tells from
 * those. Nothing is chosen here but what must never be offered: the node's uplink, what is below
 * it, and what the host or another driver uses. docs/design/021-node-devices.md. */
#ifndef DRARUN_PLUGIN_DISCOVER_DISCOVER_H
#define DRARUN_PLUGIN_DISCOVER_DISCOVER_H

#include "plugin/discover/config.h"
#include "plugin/discover/node_devices.h"

struct nvml;
struct switch_managers;

struct discover_source { /* all borrowed */
    int root;            /* a directory that stands for "/"; -1: "/" itself */
    const struct discover_config *config;
    const char *const *addresses; /* of the node, NULL-terminated: whose interface is an uplink */
    struct nvml *nvml;            /* NULL: the driver's library is not there */
    struct switch_managers *managers; /* what earlier readings found; NULL: nothing is kept */
};

/* Reads all, under names by address; remember.h, select.h make of it what is published. Fails only
 * for a root that cannot be opened and when memory runs out; what is broken or hostile becomes a
 * warning of the list. */
int discover(const struct discover_source *source, struct node_devices *ret_devices,
             struct drarun_error *err);

/* The numbers of rails, of all NICs that the node has. -ENOMEM. Pure. */
int devices_number_rails(struct node_devices *devices);

#endif
