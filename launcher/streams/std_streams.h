/* SPDX-License-Identifier: Apache-2.0 */
/* This process's standard output and standard error, written without blocking the loop (sink.h).
 * What a slow reader has not taken yet is queued, and the owner pauses its source while the queue
 * is full. Lines of lib/base/log.h go the same way. One per process; loop thread only. */
#ifndef DRARUN_LAUNCHER_STD_STREAMS_H
#define DRARUN_LAUNCHER_STD_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "launcher/streams/sink.h"

#define STD_STREAMS_FULL (256u * 1024)  /* queued bytes from which the source is to pause */
#define STD_STREAMS_RESUME (64u * 1024) /* and down to which it stays paused */

struct std_streams_owner {
    /* The queue is full: the source pauses; or it is no longer: the source goes on. Also called
     * from within a write. */
    void (*full)(void *arg, bool full);
    /* About to write. May be NULL. */
    void (*before)(void *arg);
    /* Nothing is queued any more: written, or dropped after std_streams_limit. May be NULL. */
    void (*idle)(void *arg);
    /* A stream cannot be written, and not because its reader is gone; called once, also from within
     * a write. */
    void (*failed)(void *arg, const struct drarun_error *err);
    void *arg;
};

struct std_streams;

/* Diverts the log. reader: of what is for standard output; NULL: none. NULL without memory. When
 * nobody reads standard output any more, a write ends the process by SIGPIPE, but with a reader,
 * which goes on; lines for a closed standard error are dropped. */
struct std_streams *std_streams_new(struct event_base *base, const struct sink_reader *reader);
/* NULL: none, as at first. */
void std_streams_set_owner(struct std_streams *streams, const struct std_streams_owner *owner);

/* fd: STDOUT_FILENO or STDERR_FILENO. */
void std_streams_write(struct std_streams *streams, int fd, const void *data, size_t length);
bool std_streams_is_full(const struct std_streams *streams);
bool std_streams_is_idle(const struct std_streams *streams);

/* From now on, what is queued while nobody has read for so long is dropped, with a note. */
void std_streams_limit(struct std_streams *streams, int64_t ms);
/* Drops the streams that have something queued: this, and whatever comes. */
void std_streams_discard(struct std_streams *streams);
/* Something was dropped that somebody might have read. */
bool std_streams_has_dropped(const struct std_streams *streams);

/* Runs the loop until all is written or dropped, and frees. The log goes to standard error as
 * before, or nowhere where that was dropped, since a write would block, or is closed, since a write
 * would end the process. NULL is fine. */
void std_streams_end(struct std_streams *streams);

#endif
