/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the NICs of neighbouring workers reach each other: which pairs there are, what each
 * worker's process is told when, and what came of it (docs/design/038-open-nics.md). A pair is a
 * rail of a worker and the same rail of the next one in rank order; the first writes, the second
 * looks at what has come. Workers of another role that have no such rail are passed over. Pure: no
 * clock, no I/O. */
#ifndef DRARUN_JOBS_REACH_H
#define DRARUN_JOBS_REACH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/derive/plan.h"
#include "lib/base/buf.h"
#include "lib/verbs/reach_fault.h"

struct reach;

enum reach_result {
    REACH_OPEN = 0, /* not known yet */
    REACH_REACHED,
    REACH_FAILED,
    REACH_UNKNOWN, /* it could not be tried, or there was no answer in time */
};

struct reach_pair {
    uint32_t from, to; /* workers */
    uint32_t rail;
    enum reach_result result;
    enum reach_fault fault; /* of REACH_FAILED */
    const char *why;        /* what is wrong, for people; NULL: nothing */
    bool echo;              /* the same is told of another pair, or of a NIC alone */
};

/* A line for a worker's process; borrowed until it returns. */
typedef void (*reach_send_fn)(void *arg, uint32_t worker, const char *line);

/* workers: at least two. rank_order: of them, copied; NULL: by number. seed: makes the data.
 * limit_ms: of the whole. NULL: no memory. */
struct reach *reach_new(uint32_t workers, const uint32_t *rank_order, uint64_t seed,
                        int64_t limit_ms, reach_send_fn send, void *arg);
void reach_free(struct reach *reach);

/* Before reach_begin. The next rail of a worker. gid: index of the port's own address, which is
 * `address` in words; "": InfiniBand. untried: why it is not tried, static; NULL: it is. -ENOMEM.
 */
int reach_add_rail(struct reach *reach, uint32_t worker, const char *device, uint32_t port,
                   uint32_t gid, const char *address, const char *untried);
/* The rails that the NICs of a role's plan make, in its order: each port that carries data is one.
 * first: the role's first worker. inspections: of all workers, each may be NULL. -ENOMEM. */
int reach_add_plan(struct reach *reach, uint32_t first, uint32_t role, const struct plan *plan,
                   const json_t *const *inspections);

/* Before reach_begin, or later: nothing more comes of this worker. why: for people. */
void reach_give_up(struct reach *reach, uint32_t worker, const char *why);
/* Tells every worker's process its rails. -ENOMEM. */
int reach_begin(struct reach *reach);
/* What a worker's process tells, a line of JSON. -EPROTO: nothing that it can say now. */
int reach_take(struct reach *reach, uint32_t worker, const char *text, struct drarun_error *err);
/* The time is over: pairs that are open become unknown, and say what they waited for. */
void reach_expire(struct reach *reach);

bool reach_over(const struct reach *reach); /* no pair is open */
size_t reach_pair_count(const struct reach *reach);
const struct reach_pair *reach_pair_at(const struct reach *reach, size_t index);
/* "mlx5_3", or "mlx5_0, port 2" of one with several; borrowed. */
const char *reach_rail_label(const struct reach *reach, uint32_t worker, uint32_t rail);

/* {ms, workers, rails, pairs, reached, failed, unknown, matrix, broken}: the matrix has a word for
 * each worker by number, with a letter for each rail to the next worker: "." reached, "x" failed,
 * "?" unknown, "-" no such rail, or no other worker with it. NULL: no memory. */
json_t *reach_json(const struct reach *reach, int64_t ms);

#endif
