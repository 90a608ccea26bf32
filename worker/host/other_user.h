/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rank's process is another user's than the agent, so that its connection was refused: it is
 * in another user namespace, or a program such as su started it. Reads /proc. */
#ifndef DRARUN_WORKER_OTHER_USER_H
#define DRARUN_WORKER_OTHER_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "lib/base/buf.h"

/* Adds one clause (both users as far as known, and what mends it) if a process of the rank, whose
 * first one is root, runs as uid. uid is effective and of our own user namespace. */
bool other_user_explain(pid_t root, uid_t uid, struct buf *out);

#define OTHER_USER_SEARCHES 16u    /* of all ranks in a job, and two more for each of them */
#define OTHER_USER_STRANGE_MS 1000 /* for so long one that no rank has is not searched for */

/* Which refused connections make us search the processes of all ranks: those that a stranger makes
 * at once are one search, and cost the ranks no more. */
struct other_users {
    unsigned searches;
    uid_t strange;      /* the last whom no rank had */
    int64_t strange_ms; /* when; 0: there was none */
};
bool other_users_may_search(struct other_users *users, uint32_t ranks, uid_t uid, int64_t now_ms);
void other_users_note_strange(struct other_users *users, uid_t uid, int64_t now_ms);

#endif
