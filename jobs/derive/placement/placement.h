/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a job are: how many a worker has, their numbers, and the CPUs of each GPU's.
 * Pure. */
#ifndef DRARUN_JOBS_PLACEMENT_H
#define DRARUN_JOBS_PLACEMENT_H

#include "drarun/error.h"
#include "jobs/derive/devices/devices.h"
#include "jobs/derive/inventory/inventory.h"

struct placement_worker {
    uint32_t first_rank;
    const char **cpus; /* by GPU, in the notes; each NULL: not known */
};

struct placement {
    bool per_pod; /* one rank a pod, which drives all its GPUs */
    bool shared;  /* a worker has more ranks than GPUs, or fewer, and which uses which is its own */
    uint32_t world_size;
    struct placement_worker *workers;
    size_t worker_count;
};

/* inventories, devices: by worker. Borrows from the input and the notes. -ENOMEM. */
int placement_make(const struct plan_input *input, const struct inventory *inventories,
                   const struct devices *devices, struct plan_notes *notes,
                   struct placement *ret_placement, struct drarun_error *err);
void placement_done(struct placement *placement);

#endif
