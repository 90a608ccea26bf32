/* SPDX-License-Identifier: Apache-2.0 */
/* How many ranks another launcher starts on which workers, as a job of equal workers. Pure. */
#ifndef DRARUN_JOBS_IMPORT_RANKS_H
#define DRARUN_JOBS_IMPORT_RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

struct import_ranks { /* 0: not said */
    uint64_t workers; /* pods, at least 1 */
    uint64_t slots;   /* of each in the hostfile */
    uint64_t ranks;   /* -np */
    uint64_t each;    /* -npernode, -ppn, ppr:N:node */
    uint64_t nodes;   /* srun -N */
    bool by_node;     /* round robin over workers, not slot after slot */
    bool may_exceed;  /* --oversubscribe, and Hydra: more ranks than slots start */
};

/* workers and slots of what starts, slots 0 where nothing says them. -EINVAL where workers would
 * have different numbers of ranks, or the launcher itself would refuse; the text is the reason. */
int import_spread(const struct import_ranks *asked, uint64_t *ret_workers, uint64_t *ret_each,
                  struct drarun_error *err);

#endif
