/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of an output, kept until its end is known. Pure. */
#ifndef DRARUN_LAUNCHER_CLUSTER_LOG_TAIL_H
#define DRARUN_LAUNCHER_CLUSTER_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/base/buf.h"

struct log_tail_line {
    int stream;
    struct buf text;
};

struct log_tail {
    struct log_tail_line *lines; /* a ring */
    size_t limit, count, first;
};

/* -ENOMEM. limit 0 keeps nothing. log_tail_done is due also on failure. */
int log_tail_init(struct log_tail *tail, size_t limit);
void log_tail_done(struct log_tail *tail);

/* A line, or a piece of one: of a line that takes the place of the oldest. False: out of memory. */
bool log_tail_add(struct log_tail *tail, int stream, const char *data, size_t length);

/* Hands the kept lines on, the oldest first, and forgets them. */
void log_tail_take(struct log_tail *tail,
                   void (*put)(void *arg, int stream, const char *data, size_t length), void *arg);

#endif
