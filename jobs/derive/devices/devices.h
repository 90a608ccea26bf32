/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's devices on a machine of its profile: which NICs carry data, their speeds and rails,
 * and the NUMA nodes of the GPUs. Pure. */
#ifndef DRARUN_JOBS_DEVICES_H
#define DRARUN_JOBS_DEVICES_H

#include "drarun/error.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/profiles/profiles.h"

struct plan_nic {
    struct device device;
    const char *label; /* IB device, else interface, else the DRA name */
    const char *ibdev; /* NULL: not known */
    const char *link_layer;
    const struct topo_port *ports; /* the probe's; NULL: not known */
    size_t port_count;
    uint32_t data_ports; /* bit i: ports[i] carries data */
    int32_t gid;         /* of a probe that tells the index alone; -1 unknown */
    int32_t rail;
    int32_t named_rail; /* the number in its host interface's name; -1 */
    double gbs;
    bool speed_known;
};

struct devices {
    struct device *gpus; /* as in the inventory, with their NUMA nodes */
    size_t gpu_count;
    struct plan_nic *nics; /* in PCI order */
    size_t nic_count;
    const char *tcp_interfaces; /* of claimed NICs without RDMA that have addresses; NULL */
    bool c2c;                   /* GPUs on a chip-to-chip link, by the profile or the product */
};

/* Borrows from the inventory and the notes. 1: refused. -ENOMEM. */
int devices_settle(const struct plan_input *input, uint32_t worker,
                   const struct inventory *inventory, const struct profile *profile,
                   struct plan_notes *notes, struct devices *ret_devices, struct drarun_error *err);
void devices_done(struct devices *devices);

/* The ports of a NIC that carry data, at most DATA_NIC_PORTS_MAX; 0: not known, so its first. */
size_t plan_nic_ports(const struct plan_nic *nic, const struct topo_port **ret_ports);

#endif
