/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over the agents of a job: contributions go up the tree to the lowest agent above all
 * members, are joined on the way, and the joined result comes down to the members. Only agents on
 * such paths take part; the launcher sees nothing (docs/design/004-tree.md). Loop thread only. */
#ifndef DRARUN_WORKER_COLL_H
#define DRARUN_WORKER_COLL_H

#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/ranks/rankmap.h"
#include "lib/wire/wire.pb-c.h"
#include "worker/tree/tree.h"

struct coll_range {
    uint32_t first;
    uint32_t count;
};

/* The joined data is the members' contributions in no particular order; borrowed. context is a
 * number unique in the job. status is a PMIx status. */
typedef void (*coll_done_fn)(void *arg, int status, const void *data, size_t length,
                             uint64_t context);

/* Sends to a neighbour in the tree. */
typedef void (*coll_send_fn)(void *arg, uint32_t worker, const Drarun__Wire__Collective *message);

/* Members here have not entered, and cannot: the collective failed before. The key and the ranges
 * are borrowed. */
typedef void (*coll_missed_fn)(void *arg, const char *key, const struct coll_range *ranges,
                               size_t count);

struct coll;

/* tree and map are borrowed for the life of the object. */
struct coll *coll_new(const struct tree *tree, const struct rankmap *map, coll_send_fn send,
                      void *arg);
/* Drops what is pending without calling it done. */
void coll_free(struct coll *coll);
/* Who counts the keys, and so must know of those that are given up; NULL: nobody. */
void coll_on_missed(struct coll *coll, coll_missed_fn missed, void *arg);

/* This agent's contribution, once for each key. key: equal on all members and never used twice in a
 * job. ranges: the member ranks, count 0 for all. done is called once, perhaps before this returns,
 * unless -errno is returned. */
int coll_enter(struct coll *coll, const char *key, const struct coll_range *ranges, size_t count,
               int status, const void *data, size_t length, coll_done_fn done, void *arg,
               struct drarun_error *err);

/* This agent, which has entered, waits no longer. The lowest agent above all members decides:
 * unless all parts have reached it before, the collective fails everywhere with this status, not 0,
 * and done is called as for any result, perhaps before this returns. */
void coll_give_up(struct coll *coll, const char *key, int status);

/* A message from the neighbour `from`. -EPROTO for what cannot be. */
int coll_message(struct coll *coll, uint32_t from, const Drarun__Wire__Collective *message,
                 struct drarun_error *err);

#endif
