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
#include "lib/base/buf.h"

struct sink_owner {
    /* Some of what was queued has gone: see sink_done. Never called from within sink_add. */
    void (*progress)(void *arg);
    /* Called once, also from sink_add: nothing can be written any more, with code EPIPE when the
     * reader is gone, or the code of sink_reader.read. Everything queued, now and later, counts as
     * gone. */
    void (*broken)(void *arg, const struct drarun_error *err);
    void *arg;
};

/* Gets what is added before it is written, at once, however slow the reader of the descriptor is,
 * and decides what is written. */
struct sink_reader {
    /* Appends to shown what is to be written of these bytes, or later. -errno: it cannot go on. */
    int (*read)(void *arg, const char *data, size_t length, struct buf *shown);
    /* Nothing follows: appends what was held back. */
    void (*end)(void *arg, struct buf *shown);
    void *arg;
};

struct sink;

/* "2>&1": what is written to one descriptor may fall into lines of the other. */
bool sink_is_same_file(int fd, int other);

/* fd stays the caller's and open. name: for messages, borrowed. NULL without memory. */
struct sink *sink_new(struct event_base *base, int fd, const char *name,
                      const struct sink_owner *owner);
/* Of what is added from now on; reader is copied. */
void sink_set_reader(struct sink *sink, const struct sink_reader *reader);
/* Drops what is queued. */
void sink_free(struct sink *sink);

void sink_add(struct sink *sink, const void *data, size_t length);
/* Drops what is queued and whatever comes. */
void sink_discard(struct sink *sink);

/* The reader that is gone was a terminal. */
bool sink_has_hung_up(const struct sink *sink);

/* Bytes ever added, those of them that are written or dropped, and those that are written. */
uint64_t sink_added(const struct sink *sink);
uint64_t sink_done(const struct sink *sink);
uint64_t sink_written(const struct sink *sink);

#endif
