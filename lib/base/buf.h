/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer. Failure to allocate is remembered (`failed`) so that a chain of appends
 * needs one check at its end. Not thread-safe. */
#ifndef DRARUN_BASE_BUF_H
#define DRARUN_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data; /* NUL-terminated whenever it is not NULL */
    size_t len; /* bytes in use, without the NUL */
    size_t cap;
    bool failed; /* an allocation failed: contents are incomplete */
};

#define BUF_INIT                                                                                   \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

void buf_done(struct buf *b);
void buf_reset(struct buf *b); /* empties, keeps the memory */
/* Room for `more` further bytes; false when out of memory. */
bool buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_str(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* Hands the text over (malloc'ed, never NULL unless out of memory) and leaves an empty buffer. */
char *buf_take(struct buf *b);

#endif
