/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a job: of all its ranks, of each worker's, and of each rank, by the tables of
 * profiles and the rules of docs/design/011-derivation.md. Pure. */
#ifndef DRARUN_JOBS_VARIABLES_H
#define DRARUN_JOBS_VARIABLES_H

#include "drarun/error.h"
#include "jobs/derive/devices/devices.h"
#include "jobs/derive/inventory/inventory.h"
#include "jobs/derive/placement/placement.h"
#include "jobs/derive/profile/profile_choice.h"
#include "jobs/derive/variables/plan_vars.h"

struct variables_input {
    const struct plan_input *plan;
    const struct inventory *inventories; /* by worker, as devices */
    const struct devices *devices;
    const struct profile_choice *choice; /* of all workers */
    const struct placement *placement;
    uint32_t version; /* of NCCL */
};

struct variables_worker {
    struct plan_vars env;    /* the same for every rank of the worker */
    struct plan_vars *ranks; /* for each GPU; NULL where the pod is one rank */
    size_t rank_count;
};

struct variables {
    struct plan_vars env, prepend; /* the same for the whole job */
    struct variables_worker *workers;
    size_t worker_count;
    bool roce_ipv6; /* the RoCE NICs use their IPv6 addresses */
};

/* Borrows from the input and the notes. -ENOMEM. */
int variables_make(const struct variables_input *input, struct plan_notes *notes,
                   struct variables *ret_variables, struct drarun_error *err);
void variables_done(struct variables *variables);

/* The user sets it. */
bool variables_user(const struct plan_input *input, const char *name, const char **ret_value);
/* The user's value or that of the whole job; NULL: neither. */
const char *variables_effective(const struct plan_input *input, const struct variables *variables,
                                const char *name);

#endif
