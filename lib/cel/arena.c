// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 16 << 10 };

struct cel_arena_chunk {
    struct cel_arena_chunk *older;
    alignas(max_align_t) char data[];
};

void cel_arena_init(struct cel_arena *arena, void *buffer, size_t size, size_t limit)
{
    size_t skip = -(uintptr_t)buffer % alignof(max_align_t);

    *arena = (struct cel_arena){.limit = limit};
    if (buffer && size > skip) {
        arena->next = (char *)buffer + skip;
        arena->left = size - skip;
    }
}

void cel_arena_done(struct cel_arena *arena)
{
    while (arena->chunks) {
        struct cel_arena_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    *arena = (struct cel_arena){0};
}

static bool add_chunk(struct cel_arena *arena, size_t size)
{
    size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    struct cel_arena_chunk *chunk = NULL;

    if (bytes <= arena->limit && arena->total <= arena->limit - bytes) {
        chunk = malloc(sizeof(*chunk) + bytes);
        arena->no_memory |= !chunk;
    }
    if (!chunk) {
        arena->failed = true;
        return false;
    }
    chunk->older = arena->chunks;
    arena->chunks = chunk;
    arena->next = chunk->data;
    arena->left = bytes;
    arena->total += bytes;
    return true;
}

void *cel_arena_alloc(struct cel_arena *arena, size_t size)
{
    void *result;

    if (size > arena->limit) {
        arena->failed = true;
        return NULL;
    }
    size = (size + alignof(max_align_t) - 1) & -alignof(max_align_t);
    if (size > arena->left && !add_chunk(arena, size))
        return NULL;
    result = arena->next;
    arena->next += size;
    arena->left -= size;
    return memset(result, 0, size);
}

char *cel_arena_copy(struct cel_arena *arena, const char *data, size_t len)
{
    char *copy = cel_arena_alloc(arena, len + 1);

    if (copy && len)
        memcpy(copy, data, len);
    return copy;
}
