/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's devices on a machine of its profile: which NICs carry data, their speeds and rails,
 * and the NUMA nodes of the GPUs. Pure. */
#ifndef DRARUN_JOBS_DEVICES_H
#define DRARUN_JOBS_DEVICES_H

#include "drarun/error.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/profiles/profiles.h"

struct plan_nic {
    struct inventory_nic found;
    int32_t rail;
    int32_t named_rail; /* the number in its host interface's name, whatever rail is; -1 */
    double gbs;         /* its speed; found.mbps 0: the nominal one */
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

#endif
