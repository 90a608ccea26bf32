/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a job's launcher as it is read: opened again where it broke off, changed for that of
 * another pod, and read to its end. Loop thread only. */
#ifndef DRARUN_LAUNCHER_CLUSTER_FOLLOW_LOG_H
#define DRARUN_LAUNCHER_CLUSTER_FOLLOW_LOG_H

#include "launcher/cluster/follow/log_place.h"
#include "launcher/cluster/follow/output.h"
#include "launcher/cluster/follow/state.h"
#include "launcher/streams/frames.h"
#include "lib/kube/stream.h"

struct follow_log {
    struct kube_client *client;   /* borrowed, as are state and output */
    struct follow_state *state;   /* says whose log it is, and is told of the record `ended` */
    struct follow_output *output; /* gets its lines */
    bool once;                    /* the log as it is */
    const struct kube_stream_events *events; /* of the owner, who calls follow_log_read and _end */
    void *arg;
    struct kube_stream *stream;
    struct frames frames;
    char *pod;               /* whose log is read; NULL: none yet */
    uint64_t lines;          /* of it, with those that are known to be missing */
    struct log_place at;     /* up to there it was read */
    bool marked;             /* it has said how long it is */
    bool headless;           /* it has ended without, which is not told yet */
    bool final;              /* its container had ended when it was opened */
    bool recorded;           /* it has the record `ended` */
    bool eof;                /* its last stream ended in order */
    bool closed;             /* it was read to its end */
    bool refused;            /* this user may not read it, which was said but with `once` */
    bool held;               /* nothing is read: follow_log_hold */
    int64_t heard_ms;        /* when its last bytes came */
    int64_t again_ms;        /* when to open it again; 0: not */
    int64_t change_ms;       /* by when that of another pod is opened instead; 0: it is not */
    struct drarun_error err; /* of the last try */
};

void follow_log_init(struct follow_log *log);
void follow_log_done(struct follow_log *log);

/* Bytes of the stream; and its end, as for kube_stream_events. Output's `put` is called, and must
 * not free the log. */
void follow_log_read(struct follow_log *log, const char *bytes, size_t length);
void follow_log_end(struct follow_log *log, const struct drarun_error *err);

/* Nothing more of it is read, or it is again: its lines have no room. What the API server has for
 * us stays there, and no time limit of the log runs meanwhile. */
void follow_log_hold(struct follow_log *log, bool hold);
/* It is not wanted any more, nor what was read of its last line. */
void follow_log_stop(struct follow_log *log);

/* The log of state->pod.name is to be read from now on. What a launcher that is gone has written
 * may still be on its way: it has some time. */
void follow_log_change(struct follow_log *log);
/* Opens what is due. Returns when more is; 0: never. */
int64_t follow_log_do_due(struct follow_log *log, int64_t now);

/* It was read to its end, or has as many lines as the document of the job's end says. */
bool follow_log_is_whole(const struct follow_log *log);

#endif
