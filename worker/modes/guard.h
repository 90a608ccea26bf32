/* SPDX-License-Identifier: Apache-2.0 */
/* The process above an agent that was started by hand: it starts the agent, and when the agent ends
 * by a signal, or amidst a job, it removes what the agent could not: ranks, their descendants, the
 * session directory, shared memory. In a pod the container's end does that, and under drarun the
 * launcher does. */
#ifndef DRARUN_WORKER_GUARD_H
#define DRARUN_WORKER_GUARD_H

#include <stdbool.h>
#include "drarun/error.h"

struct guard;

/* Before the first guard_run. NULL without memory. */
struct guard *guard_new(void);
void guard_free(struct guard *guard);

/* Forks; the child runs agent(arg) with SIGTERM blocked and SIGINT ignored, and exits with its
 * result. Returns that result, or 70 after the child was killed; what it left is removed. SIGTERM
 * and SIGINT to this process end the child in order and set *ret_stop. */
int guard_run(struct guard *guard, int (*agent)(struct guard *guard, void *arg), void *arg,
              bool *ret_stop, struct drarun_error *err);

/* In the child: the session directory in use, NULL for none (struct agent_options.session). arg:
 * the guard. */
void guard_note_session(const char *dir, void *arg);

#endif
