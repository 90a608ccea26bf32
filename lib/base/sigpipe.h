/* SPDX-License-Identifier: Apache-2.0 */
/* SIGPIPE while what is written matters less than what follows: a write to a pipe whose reader is
 * gone then fails with EPIPE, and does not end the process. */
#ifndef DRARUN_BASE_SIGPIPE_H
#define DRARUN_BASE_SIGPIPE_H

#include <signal.h>
#include <stddef.h>

/* ret_before: what was done on it, for sigpipe_restore. */
static inline void sigpipe_ignore(struct sigaction *ret_before)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, ret_before);
}

static inline void sigpipe_restore(const struct sigaction *before)
{
    sigaction(SIGPIPE, before, NULL);
}

#endif
