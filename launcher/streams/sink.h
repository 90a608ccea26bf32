/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to a descriptor that others share (our stdout and stderr), or to a file, without ever
 * blocking the loop on a slow reader and without changing the flags that the descriptor shares.
 * What cannot be written yet is queued; the owner bounds it by credit. Loop thread only. */
#ifndef DRARUN_LAUNCHER_SINK_H
#define DRARUN_LAUNCHER_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"

struct sink_owner {
    /* Some of what was queued has gone: see sink_done. Never called from within sink_add. */
    void (*progress)(void *arg);
    /* Called once, also from sink_add: nothing can be written any more, with code EPIPE when the
     * reader is gone, or not to the copy. Everything queued, now and later, counts as gone. */
    void (*broken)(void *arg, const struct drarun_error *err);
    void *arg;
};

/* A file that gets what is added, too, at once and however slow the reader is. */
struct sink_copy {
    int fd;           /* the caller's */
    const char *hide; /* lines that begin so go there alone; NULL: none. Borrowed. */
};

struct sink;

/* "2>&1": what is written to one descriptor may fall into lines of the other. */
bool sink_is_same_file(int fd, int other);

/* fd stays the caller's and open. name: for messages, borrowed. NULL without memory. */
struct sink *sink_new(struct event_base *base, int fd, const char *name,
                      const struct sink_owner *owner);
/* Of what is added from now on. */
void sink_set_copy(struct sink *sink, const struct sink_copy *copy);
/* Drops what is queued. */
void sink_free(struct sink *sink);

void sink_add(struct sink *sink, const void *data, size_t length);
/* Drops what is queued and whatever comes. */
void sink_discard(struct sink *sink);

/* Bytes ever added, and those of them that are written or dropped. */
uint64_t sink_added(const struct sink *sink);
uint64_t sink_done(const struct sink *sink);

#endif
