/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that were started together and are one MPI_COMM_WORLD: those of the Launch, of one of its
 * worlds (docs/design/039-roles.md), or those that a rank asked for later
 * (docs/design/037-spawn.md). Within the job, ranks and programs are numbered
 * on through all groups; within its group each counts from 0, and that is what the MPI libraries
 * see. Read-only after building, but for `oversubscribed` and its release. */
#ifndef DRARUN_WORKER_RANK_GROUP_H
#define DRARUN_WORKER_RANK_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "jobs/ranks/binding.h"
#include "jobs/ranks/rankmap.h"
#include "lib/wire/wire.pb-c.h"

struct rank_group {
    uint32_t index;     /* the Launch's come first */
    uint32_t first;     /* its first rank in the job */
    uint32_t first_app; /* its first program in the job */
    struct rankmap map; /* its own ranks and programs; where released their numbers alone */
    uint32_t local_first, local_count; /* its ranks here, in agent_job.local */
    struct bind_policy bind;
    Drarun__Wire__StopAt stop_at; /* where its ranks wait for a debugger */
    char kvs[144];                /* PMI-1's key-value space */
    char nspace[256];             /* PMIx' namespace */
    bool spawned;                 /* a rank asked for it */
    uint32_t parent;              /* rank of the job that asked; where spawned */
    Drarun__Wire__Group *wire;    /* owned; NULL where not spawned, or released */
    bool oversubscribed; /* fewer CPUs here than ranks with these: they leave theirs while they
                          * wait; set by the agent before they start */
    bool released;       /* all its ranks have ended, and its names mean nothing any more */
};

/* From blocks that came over the wire, which are checked. -EPROTO, -ENOMEM. */
int rank_group_map(Drarun__Wire__Block *const *wire, size_t count, size_t apps, uint32_t workers,
                   struct rankmap *ret_map, struct drarun_error *err);
/* Of the job's ranks, those of one program. -ENOMEM. */
int rank_group_map_app(const struct rankmap *job, uint32_t app, struct rankmap *ret_map,
                       struct drarun_error *err);
int rank_group_check_apps(Drarun__Wire__App *const *apps, size_t count, struct drarun_error *err);
void rank_group_free(struct rank_group *group);

static inline bool rank_group_has(const struct rank_group *group, uint32_t rank)
{
    return rank - group->first < group->map.ranks;
}

#endif
