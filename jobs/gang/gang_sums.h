/* SPDX-License-Identifier: Apache-2.0 */
/* How many of a gang's workers are in each condition that gang_decide asks for, and who is the
 * first: kept up to date as workers change one at a time, so that a decision does not read the
 * states of all. Pure. */
#ifndef DRARUN_JOBS_GANG_SUMS_H
#define DRARUN_JOBS_GANG_SUMS_H

#include <stdint.h>

/* A worker has any number of them. */
enum gang_mark {
    GANG_MARK_CLAIMED = 0, /* its claim exists */
    GANG_MARK_ALLOCATED,
    GANG_MARK_PRESENT, /* its pod exists */
    GANG_MARK_PLACED,
    GANG_MARK_UP, /* placed, and it runs */
    GANG_MARK_HOLDS,
    GANG_MARK_GATED,
    GANG_MARK_PENDING, /* cannot get a node: the scheduler has looked */
    GANG_MARK_NODE_COMES,
    GANG_MARK_IMAGE_COMES,
    GANG_MARK_RELEASES, /* its pod or claim is being deleted */
    GANG_MARK_LOST,
    GANG_MARK_VANISHED,
    GANG_MARK_STRANDED,   /* it has a node, and its claim no devices */
    GANG_MARK_TROUBLE,    /* what its container or claim names does not exist */
    GANG_MARK_FATAL,      /* what waiting does not cure */
    GANG_MARK_REFUSED,    /* the API server refuses its claim */
    GANG_MARK_ASKS_GROUP, /* only its PodGroup says why it waits */
    GANG_MARK_COUNT,
};

struct gang_sums {
    uint32_t count;   /* of workers */
    uint32_t *marks;  /* by worker, a bit for each mark */
    int64_t *ordered; /* by worker, pod_state.ordered_ms */
    uint32_t having[GANG_MARK_COUNT];
    int64_t ordered_ms; /* the first of them; 0: none */
};

/* No worker has any mark. -ENOMEM; gang_sums_done is fine all the same. */
int gang_sums_init(struct gang_sums *sums, uint32_t count);
void gang_sums_done(struct gang_sums *sums);
/* marks: gang_marks of its state; ordered_ms: of the same. */
void gang_sums_set(struct gang_sums *sums, uint32_t worker, uint32_t marks, int64_t ordered_ms);
/* The first worker that has the mark; UINT32_MAX: none. */
uint32_t gang_sums_first(const struct gang_sums *sums, enum gang_mark mark);

#endif
