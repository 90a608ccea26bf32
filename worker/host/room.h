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
    uint64_t files;              /* RLIMIT_NOFILE, the hard one; ROOM_NO_LIMIT: none */
    struct room_limit processes; /* RLIMIT_NPROC: threads of this user */
    /* Of the control group with the least left: its own or one above. */
    struct room_limit pids;
    struct room_limit memory; /* bytes; caches do not count as used */
};

/* Descriptors of an agent. */
struct room_files {
    uint64_t each;   /* for a rank */
    uint64_t beside; /* for all else */
};

struct room_need {
    uint64_t ranks;
    uint64_t running; /* here already */
    /* That other agents start at the same time under the same limits; that of descriptors is each
     * agent's own. */
    uint64_t fellows;
    struct room_files files;
};

/* Of an agent whose ranks talk PMIx or not, and all read our input or not; it has so many
 * neighbours in the tree. */
struct room_files room_files(bool pmix, bool all_read, uint32_t neighbours);
uint64_t room_files_for(const struct room_files *files, uint64_t ranks);

/* What is there for that need. It looks no further than the need asks for: counting a user's
 * threads is slow. */
void room_look(const struct room_need *need, struct room *ret_room);
/* Kind DRARUN_ERR_PREFLIGHT: one sentence with the figures and what to change. Pure. */
int room_check(const struct room *room, const struct room_need *need, struct drarun_error *err);

#endif
