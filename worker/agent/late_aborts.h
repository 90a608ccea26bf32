/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts of ranks that came while other ranks were dying: most likely echoes of these, so that the
 * launcher is told of them after those ends. But it must know of each before the end of the rank
 * that aborted: how that one ends then, some libraries by a crash, means nothing. Pure. */
#ifndef DRARUN_WORKER_LATE_ABORTS_H
#define DRARUN_WORKER_LATE_ABORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct late_abort;

struct late_aborts {
    TAILQ_HEAD(, late_abort) list; /* in the order in which they came */
};

typedef void (*late_abort_fn)(void *arg, uint32_t rank, int status, const char *text);

void late_aborts_init(struct late_aborts *aborts);
void late_aborts_done(struct late_aborts *aborts);
bool late_aborts_empty(const struct late_aborts *aborts);

/* It is told once so many ends were (ranks_signs, ranks_told). Of one rank only the first abort is
 * kept. -ENOMEM. */
int late_aborts_add(struct late_aborts *aborts, uint32_t rank, int status, const char *text,
                    size_t after);
/* So many ends were told: calls fn for those that have waited long enough. */
void late_aborts_tell(struct late_aborts *aborts, size_t told, late_abort_fn fn, void *arg);
/* The same for this rank's, whatever it waits for: its end is told next. */
void late_aborts_tell_of(struct late_aborts *aborts, uint32_t rank, late_abort_fn fn, void *arg);

#endif
