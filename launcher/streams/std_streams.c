/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/std_streams.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/sigpipe.h"

struct std_stream {
    struct std_streams *streams;
    const char *name;
    bool needed; /* without its reader this process has nothing to do */
    struct sink *sink;
    bool dropped;
    bool closed; /* nobody reads it any more */
};

struct std_streams {
    struct event_base *base;
    struct std_streams_owner owner;
    struct std_stream all[2];
    size_t count;                             /* 1: both are the same file */
    struct std_stream *to[STDERR_FILENO + 1]; /* by descriptor */
    struct event *stall;
    int64_t limit_ms; /* 0: none */
    bool full, busy, failed;
};

static uint64_t queued(const struct std_stream *stream)
{
    return sink_added(stream->sink) - sink_done(stream->sink);
}

static uint64_t all_queued(const struct std_streams *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->count; i++)
        bytes += queued(&s->all[i]);
    return bytes;
}

bool std_streams_is_full(const struct std_streams *streams)
{
    return streams->full;
}

bool std_streams_is_idle(const struct std_streams *streams)
{
    return all_queued(streams) == 0;
}

/* Level-triggered: compares the queues with what the owner was told. */
static void look(struct std_streams *s)
{
    uint64_t bytes = all_queued(s);
    bool full = s->full ? bytes > STD_STREAMS_RESUME : bytes >= STD_STREAMS_FULL;
    bool was_full = s->full, was_busy = s->busy;
    struct timeval after = timeval_from_ms(s->limit_ms);
    s->full = full;
    s->busy = bytes > 0;
    if (!s->busy)
        evtimer_del(s->stall);
    else if (s->limit_ms && !evtimer_pending(s->stall, NULL))
        evtimer_add(s->stall, &after);
    if (full != was_full && s->owner.full)
        s->owner.full(s->owner.arg, full);
    if (was_busy && !s->busy && s->owner.idle)
        s->owner.idle(s->owner.arg);
}

static void on_progress(void *arg)
{
    struct std_streams *s = ((struct std_stream *)arg)->streams;
    evtimer_del(s->stall); /* starts again */
    look(s);
}

static void on_broken(void *arg, const struct drarun_error *err)
{
    struct std_stream *stream = arg;
    struct std_streams *s = stream->streams;
    stream->closed = err->code == EPIPE;
    if (stream->closed && stream->needed) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    if (stream->closed || s->failed)
        return;
    s->failed = true;
    if (s->owner.failed)
        s->owner.failed(s->owner.arg, err);
}

void std_streams_write(struct std_streams *streams, int fd, const void *data, size_t length)
{
    if (streams->owner.before)
        streams->owner.before(streams->owner.arg);
    sink_add(streams->to[fd]->sink, data, length);
    look(streams);
}

/* Also where nobody ignores SIGPIPE any more: on_broken decides what ends us. */
static void on_log(void *arg, const struct log_line *line)
{
    struct sigaction before;
    sigpipe_ignore(&before);
    std_streams_write(arg, STDERR_FILENO, line->text, line->length);
    sigpipe_restore(&before);
}

static void drop_line(void *arg, const struct log_line *line)
{
    (void)arg, (void)line;
}

void std_streams_discard(struct std_streams *streams)
{
    for (size_t i = 0; i < streams->count; i++) {
        struct std_stream *stream = &streams->all[i];
        if (queued(stream) == 0)
            continue;
        stream->dropped = true;
        sink_discard(stream->sink);
    }
    look(streams);
}

static void on_stall(evutil_socket_t fd, short what, void *arg)
{
    struct std_streams *s = arg;
    (void)fd, (void)what;
    for (size_t i = 0; i < s->count; i++)
        if (queued(&s->all[i]) > 0)
            log_note("%s has not been read for %g s: the rest of it is dropped", s->all[i].name,
                     (double)s->limit_ms / 1000);
    std_streams_discard(s);
}

void std_streams_limit(struct std_streams *streams, int64_t ms)
{
    if (streams->limit_ms)
        return;
    streams->limit_ms = ms;
    look(streams);
}

bool std_streams_has_dropped(const struct std_streams *streams)
{
    return streams->all[0].dropped || streams->all[1].dropped;
}

void std_streams_set_owner(struct std_streams *streams, const struct std_streams_owner *owner)
{
    streams->owner = owner ? *owner : (struct std_streams_owner){0};
}

static int add_stream(struct std_streams *s, int fd, const char *name, bool needed)
{
    struct std_stream *stream = &s->all[s->count++];
    const struct sink_owner owner = {on_progress, on_broken, stream};
    *stream = (struct std_stream){.streams = s, .name = name, .needed = needed};
    stream->sink = sink_new(s->base, fd, name, &owner);
    s->to[fd] = stream;
    return stream->sink ? 0 : -ENOMEM;
}

static void release(struct std_streams *s)
{
    for (size_t i = 0; i < s->count; i++)
        sink_free(s->all[i].sink);
    if (s->stall)
        event_free(s->stall);
    free(s);
}

static int add_streams(struct std_streams *s, const struct sink_reader *reader)
{
    if (add_stream(s, STDOUT_FILENO, "standard output", !reader) < 0)
        return -ENOMEM;
    if (reader)
        sink_set_reader(s->to[STDOUT_FILENO]->sink, reader);
    s->to[STDERR_FILENO] = s->to[STDOUT_FILENO];
    bool both = !reader && sink_is_same_file(STDOUT_FILENO, STDERR_FILENO);
    return both ? 0 : add_stream(s, STDERR_FILENO, "standard error", false);
}

struct std_streams *std_streams_new(struct event_base *base, const struct sink_reader *reader)
{
    struct std_streams *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->base = base;
    s->stall = evtimer_new(base, on_stall, s);
    if (!s->stall || add_streams(s, reader) < 0) {
        release(s);
        return NULL;
    }
    log_divert(on_log, s);
    return s;
}

void std_streams_end(struct std_streams *streams)
{
    struct sigaction before;
    if (!streams)
        return;
    const struct std_stream *log = streams->to[STDERR_FILENO];
    std_streams_set_owner(streams, NULL);
    sigpipe_ignore(&before);
    while (!std_streams_is_idle(streams) && event_base_loop(streams->base, EVLOOP_ONCE) == 0)
        ;
    sigpipe_restore(&before);
    log_divert(log->dropped || log->closed ? drop_line : NULL, NULL);
    release(streams);
}
