/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of agents for people that were not printed yet: equal words of several workers are one
 * line. Knows no job, prints nothing. */
#ifndef DRARUN_LAUNCHER_JOB_NOTES_H
#define DRARUN_LAUNCHER_JOB_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTES_MAX 4096                    /* that are kept */
#define NOTES_BYTES_MAX ((size_t)1 << 20) /* of their words */

struct notes { /* zero: none */
    struct note *list;
    size_t count, cap, bytes;
};

/* -ENOMEM, or -ENOSPC: take what there is first. */
int notes_add(struct notes *notes, uint32_t worker, const char *text);
/* workers: ascending, each once. */
typedef void (*note_fn)(const uint32_t *workers, uint32_t count, const char *text, void *arg);
/* Each wording once, in the order of the first worker that has it and of its arrival, and forgets
 * them. Without memory, once for each worker. */
void notes_take(struct notes *notes, note_fn fn, void *arg);
void notes_done(struct notes *notes);

#endif
