/* SPDX-License-Identifier: Apache-2.0 */
/* A GET whose bytes are handed on as they come: a pod's log that is followed. Not tried again once
 * it has begun: only the owner knows from where. */
#ifndef DRARUN_KUBE_STREAM_H
#define DRARUN_KUBE_STREAM_H

#include "lib/kube/call.h"
#include "lib/kube/resource.h"

struct kube_stream;

struct kube_stream_events { /* borrowed as long as the stream */
    void (*data)(const char *bytes, size_t length, void *arg);
    /* err NULL: the server ended it in order. Called once; the stream is gone when it returns. */
    void (*ended)(const struct drarun_error *err, void *arg);
};

/* Only method GET; timeout_ms bounds the time to the first byte of the answer's head. */
int kube_stream_open(struct kube_client *client, const struct kube_request *request,
                     const struct kube_stream_events *events, void *arg,
                     struct kube_stream **ret_stream, struct drarun_error *err);
/* No callback afterwards. NULL is fine. */
void kube_stream_free(struct kube_stream *stream);
DEFINE_CLEANUP(struct kube_stream, kube_stream_free)
/* Holds the bytes back at the server while the owner's own reader is slow: no more than a
 * connection's buffers is under way, and other requests go on. */
void kube_stream_pause(struct kube_stream *stream, bool pause);

struct kube_log {                             /* borrowed for the call */
    const char *namespace_, *pod, *container; /* container NULL: the only one */
    bool follow, previous, timestamps;
    int64_t tail;           /* lines; negative: all */
    const char *since_time; /* RFC 3339; NULL */
};

int kube_log_open(struct kube_client *client, const struct kube_log *log,
                  const struct kube_stream_events *events, void *arg,
                  struct kube_stream **ret_stream, struct drarun_error *err);

#endif
