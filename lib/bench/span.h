/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of what a program printed, which nothing ends but its length; and words in it. Borrowed.
 * Pure. */
#ifndef DRARUN_LIB_BENCH_SPAN_H
#define DRARUN_LIB_BENCH_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *at, *end;
};

static inline size_t span_length(struct span s)
{
    return (size_t)(s.end - s.at);
}

/* What is left of it from there. */
static inline struct span span_from(struct span s, const char *at)
{
    return (struct span){at, s.end};
}

/* The word's first place; NULL: it is not there. */
static inline const char *span_find(struct span s, const char *word)
{
    return memmem(s.at, span_length(s), word, strlen(word));
}

/* The same, behind the word. */
static inline const char *span_after(struct span s, const char *word)
{
    const char *at = span_find(s, word);
    return at ? at + strlen(word) : NULL;
}

static inline bool span_is(struct span s, const char *word)
{
    return span_length(s) == strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

/* Up to one of the letters of `until`, and what there is room for; nothing that a terminal would
 * take for more than text. */
static inline void span_copy(struct span s, const char *until, char *to, size_t size)
{
    size_t length = 0;
    for (; s.at < s.end && length + 1 < size && !strchr(until, *s.at); s.at++)
        to[length++] = *s.at >= ' ' && *s.at <= '~' ? *s.at : '?';
    to[length] = '\0';
}

#endif
