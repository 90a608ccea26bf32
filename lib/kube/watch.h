/* SPDX-License-Identifier: Apache-2.0 */
/* A collection kept up to date: the objects that are there, then each change as it comes.
 *
 * Where the server streams its lists (WatchList, Kubernetes 1.32 and later) that is one request;
 * else a list in pages and a watch behind it. A dropped watch resumes where it was; after 410 all
 * is read again, and the owner sees the difference. It never gives up: what it cannot do it tells
 * by trouble(), and tries again with pauses from 100 ms to 5 s (30 s when it is refused).
 *
 * The callbacks get objects that the watch owns: until they change or are deleted, and whole but
 * for metadata.managedFields. added, changed and deleted run as soon as the bytes are there. */
#ifndef DRARUN_KUBE_WATCH_H
#define DRARUN_KUBE_WATCH_H

#include "lib/kube/object.h"

struct kube_watch;

struct kube_watch_events { /* any may be NULL; borrowed as long as the watch */
    void (*added)(const json_t *object, void *arg);
    /* before: valid until the callback returns. Not called when resourceVersion is the same. */
    void (*changed)(const json_t *object, const json_t *before, void *arg);
    void (*deleted)(const json_t *object, void *arg); /* as it was last; valid until it returns */
    /* Everything that was there has been shown by added(): once, after the first complete list. */
    void (*synced)(void *arg);
    /* It cannot watch, and why; code EACCES: refused (401, 403), EAGAIN: refused, which may pass
     * (refusal.h), ENOENT: no such resource. Once for each new reason. err NULL: it can again.
     * Between the two the objects may be out of date. */
    void (*trouble)(const struct drarun_error *err, void *arg);
    /* Removes from a new object what its owner never reads, before all others; it shall not touch
     * metadata.{name,namespace,uid,resourceVersion}. */
    void (*trim)(json_t *object, void *arg);
};

struct kube_watch_options {    /* borrowed for the call */
    struct kube_target target; /* name: watches this one alone */
    struct kube_select select;
    bool forget; /* keeps of each object only its metadata after its callback: events */
};

int kube_watch_new(struct kube_client *client, const struct kube_watch_options *options,
                   const struct kube_watch_events *events, void *arg, struct kube_watch **ret_watch,
                   struct drarun_error *err);
/* No callback afterwards; may be called from one. NULL is fine. */
void kube_watch_free(struct kube_watch *watch);
DEFINE_CLEANUP(struct kube_watch, kube_watch_free)

bool kube_watch_synced(const struct kube_watch *watch);
/* namespace_ may be NULL for the watch's own; NULL when there is none. */
const json_t *kube_watch_find(const struct kube_watch *watch, const char *namespace_,
                              const char *name);
size_t kube_watch_count(const struct kube_watch *watch);
/* In no order. fn must not free the watch. */
void kube_watch_each(const struct kube_watch *watch, void (*fn)(const json_t *object, void *arg),
                     void *arg);

#endif
