/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives the ranks: processes that they left behind, orphans and sessions of their own
 * included. Nothing is searched for unless this process, a child subreaper, has a child left. */
#ifndef DRARUN_WORKER_REMAINS_H
#define DRARUN_WORKER_REMAINS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* From SIGTERM to SIGKILL where the ranks ended by themselves. */
#define REMAINS_TERM_MS 200
/* SIGKILL is repeated, for those that were forked meanwhile. */
#define REMAINS_REPEAT_MS 50
/* One that is still there so long after SIGKILL hangs in the kernel: it is given up. */
#define REMAINS_STUCK_MS 5000

enum remains_state {
    REMAINS_UNSEEN = 0,
    REMAINS_ASKED,  /* SIGTERM was sent */
    REMAINS_KILLED, /* SIGKILL was sent */
    REMAINS_GONE,   /* no child is left, or was given up */
};

struct remains {
    enum remains_state state;
    int64_t since_us; /* when the first signal of this state was sent, or the last child was gone */
    int64_t again_us; /* when SIGKILL is due again */
};

/* Looks, and does what is due at now_us; the result depends on nothing but the arguments and on
 * which processes there are. Call it whenever a child was reaped, and at the time that it returns
 * (0: it is done). All ranks must have been reaped. Descendants get SIGTERM, except those that skip
 * (may be NULL) says have had it, and SIGKILL from kill_us on, which may change between calls. */
int64_t remains_step(struct remains *remains, int64_t kill_us, int64_t now_us,
                     bool (*skip)(pid_t pid, void *arg), void *arg);

/* Whether this process has a child, alive or not reaped. */
bool remains_any(void);

#endif
