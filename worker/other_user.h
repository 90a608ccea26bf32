/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rank's process is another user's than the agent, so that its connection was refused: it is
 * in another user namespace, or su and its kin started it. Reads /proc; nothing is kept. */
#ifndef DRARUN_WORKER_OTHER_USER_H
#define DRARUN_WORKER_OTHER_USER_H

#include <stdbool.h>
#include <sys/types.h>
#include "lib/base/buf.h"

/* Adds one clause (both users as far as known, and what mends it) if a process of the rank, whose
 * first one is root, runs as uid. uid is effective and of our own user namespace. */
bool other_user_explain(pid_t root, uid_t uid, struct buf *out);

#endif
