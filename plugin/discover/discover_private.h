/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of discover(): each adds to the list under construction. All return 0 or -ENOMEM with
 * the error set. */
#ifndef DRARUN_PLUGIN_DISCOVER_DISCOVER_PRIVATE_H
#define DRARUN_PLUGIN_DISCOVER_DISCOVER_PRIVATE_H

#include <ifaddrs.h>
#include "plugin/discover/discover.h"
#include "plugin/discover/host_use.h"

struct discovery {
    const struct discover_source *source;
    int root;                        /* opened */
    const struct topo_host *host;    /* what lib/topo reads */
    const struct host_use *use;      /* never offered */
    const struct host_use *live;     /* offered where the configuration names it */
    const struct ifaddrs *addresses; /* of this machine; NULL: of a tree nothing is known */
    struct node_devices *devices;    /* under construction */
    bool failed;                     /* out of memory: facts are missing */
    struct drarun_error *err;
};

int discover_nomem(struct discovery *d);
/* Control characters become '?'. */
void discover_warn(struct discovery *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A device with its PCI function (index into host->pci, or TOPO_NONE) and its address as name;
 * NULL: out of memory. */
struct node_device *discover_add(struct discovery *d, enum node_device_kind kind, size_t pci);

/* All of a function; a zeroed one for TOPO_NONE. */
void pci_facts_read(struct discovery *d, size_t index, struct node_pci *ret_pci);
/* The kernel driver of a function, "" when it has none, as pci_facts_read. */
void pci_driver_read(struct discovery *d, size_t pci, char *ret_driver, size_t size);
/* A driver that keeps a function for user space or for virtual machines. */
bool pci_driver_is_passthrough(const char *driver);

/* A function that no pod may have: switch_managers.h. */
bool discover_is_switch_manager(struct discovery *d, size_t pci);

/* What sysfs says of an interface beyond lib/topo. False: it is gone. */
bool netdev_facts_read(struct discovery *d, const struct topo_netdev *net,
                       struct node_netdev *ret_netdev);

/* An RDMA device's port as a NIC has it; port from 1. */
int rdma_facts_read(struct discovery *d, const struct topo_rdma *rdma, uint32_t port,
                    struct node_rdma *ret_rdma);

/* Adds a character device of the tree with its numbers, when it is there. dev: its "MAJ:MIN" file
 * in sysfs, NULL: from the node itself. */
void chardev_add(struct discovery *d, const char *path, const char *dev, struct node_chardev *list,
                 size_t *count);

int discover_gpus(struct discovery *d);
int discover_nics(struct discovery *d);

#endif
