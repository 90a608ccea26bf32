/* SPDX-License-Identifier: Apache-2.0 */
/* What to write next so that the API server holds a pool as it is wanted: slices that are missing,
 * changed by somebody, or too many. Pure; the owner feeds what is held and does the writes.
 *
 * Generations: a new content gets one above all that were seen, and at least the milliseconds of
 * the clock, so that it goes up over restarts too, also when the slices were deleted meanwhile (the
 * kubelet does so). The same content written again, after somebody has deleted a slice, keeps its
 * generation. A scheduler uses a pool only when all slices of its newest generation are there. */
#ifndef DRARUN_PLUGIN_SLICES_POOL_H
#define DRARUN_PLUGIN_SLICES_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include "plugin/slices/node_slices.h"
#include "drarun/error.h"

struct pool {
    struct slices_owner owner; /* borrowed */
    const char *version;       /* "v1"; borrowed */
    json_t *parts;             /* wanted: as slices_split; NULL: nothing is wanted yet */
    json_t *stored; /* what the server made of them: index (as text): spec; it may drop what it has
                       not */
    int64_t generation; /* of parts; 0: not known */
    bool changed;       /* parts need a generation of their own */
    uint64_t wish;      /* how many there were: parts is the last of them */
    bool drops_taints;  /* the server has answered a write without the taints that were in it */
};

/* Takes parts, on failure too. True: they are not what was wanted before. */
bool pool_want_take(struct pool *pool, json_t *parts);
void pool_done(struct pool *pool);

enum pool_step_kind { POOL_SETTLED = 1, POOL_CREATE, POOL_REPLACE, POOL_DELETE };

struct pool_step {
    enum pool_step_kind kind;
    size_t index;   /* of the slice; not for POOL_DELETE */
    uint64_t wish;  /* of the pool that it came from; likewise */
    json_t *object; /* to write; owned. POOL_DELETE: NULL */
    char name[254];
    char uid[64]; /* POOL_DELETE */
};

/* held: an array of all slices of this driver and node. now: milliseconds since 1970. -ENOMEM. */
int pool_next(struct pool *pool, const json_t *held, int64_t now, struct pool_step *ret_step,
              struct drarun_error *err);
/* The server's answer to a create or replace, also where something else is wanted meanwhile. */
void pool_written(struct pool *pool, const struct pool_step *step, const json_t *object);
void pool_step_done(struct pool_step *step);

#endif
