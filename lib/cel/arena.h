/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once: one arena holds a compiled program, a device, or what one
 * evaluation makes. Failure to allocate is remembered. Not thread-safe. */
#ifndef DRARUN_CEL_ARENA_H
#define DRARUN_CEL_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct cel_arena_chunk;

struct cel_arena {
    struct cel_arena_chunk *chunks; /* newest first */
    char *next;                     /* free bytes of the newest, or of the caller's first buffer */
    size_t left;
    size_t total; /* bytes asked of malloc */
    size_t limit; /* of total; more is a failure */
    bool failed;
    bool no_memory; /* the reason: not the limit, but malloc */
};

/* buffer (may be NULL) serves before the first malloc and must outlive the arena. */
void cel_arena_init(struct cel_arena *arena, void *buffer, size_t size, size_t limit);
void cel_arena_done(struct cel_arena *arena);
/* Zeroed, aligned for any type; NULL when failed. */
void *cel_arena_alloc(struct cel_arena *arena, size_t size);
/* NUL-terminated copy. */
char *cel_arena_copy(struct cel_arena *arena, const char *data, size_t len);

#endif
