/* SPDX-License-Identifier: Apache-2.0 */
/* Whether so many ranks can be started here at all: a job that exceeds a limit is refused before
 * any of them runs. What only the ranks know, their threads and memory, is not asked for. */
#ifndef DRARUN_WORKER_ROOM_H
#define DRARUN_WORKER_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"

#define ROOM_NO_LIMIT UINT64_MAX

/* A limit and what is used of it; a limit of ROOM_NO_LIMIT is none. */
struct room_limit {
    uint64_t limit, used;
};

struct room {
    struct room_limit files;     /* RLIMIT_NOFILE, the hard one */
    struct room_limit processes; /* RLIMIT_NPROC: threads of this user */
    /* Of the control group with the least left: its own or one above. */
    struct room_limit pids;
    struct room_limit memory; /* bytes; caches do not count as used */
};

struct room_need {
    uint64_t ranks;
    uint64_t files; /* descriptors of the agent for them */
};

/* Descriptors of an agent for that many ranks, which talk PMIx or not, and all read our input or
 * not; it has so many neighbours in the tree. */
uint64_t room_files(uint64_t ranks, bool pmix, bool all_read, uint32_t neighbours);

/* What is there for that need. It looks no further than the need asks for: counting a user's
 * threads is slow. */
void room_look(const struct room_need *need, struct room *ret_room);
/* Kind DRARUN_ERR_PREFLIGHT: one sentence with the figures and what to change. Pure. */
int room_check(const struct room *room, const struct room_need *need, struct drarun_error *err);

#endif
