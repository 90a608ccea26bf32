/* SPDX-License-Identifier: Apache-2.0 */
/* How near the GPUs and NICs of a worker are, which of them NCCL pairs with these variables, and
 * how good that is. Pure. */
#ifndef DRARUN_JOBS_PAIRS_H
#define DRARUN_JOBS_PAIRS_H

#include "drarun/error.h"
#include "jobs/derive/devices/devices.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/derive/nccl/nccl_topology.h"
#include "jobs/derive/variables/variables.h"
#include "jobs/profiles/profiles.h"

struct pairs_input {
    const struct plan_input *plan;
    uint32_t worker;
    const struct inventory *inventory;
    const struct devices *devices;
    const struct profile *profile;
    const struct variables *variables; /* NCCL reads some of them when it pairs */
    uint32_t version;                  /* of NCCL */
};

struct pairs {
    struct nccl_model *model; /* NULL: no GPU or no NIC */
    struct nccl_result *result;
    double score; /* 0 to 1; negative: none */
};

/* -ENOMEM. */
int pairs_make(const struct pairs_input *input, struct plan_notes *notes, struct pairs *ret_pairs,
               struct drarun_error *err);
void pairs_done(struct pairs *pairs);

#endif
