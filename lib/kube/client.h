/* SPDX-License-Identifier: Apache-2.0 */
/* The connections to one API server: libcurl's multi interface inside a libevent loop. One per
 * process. HTTP/2 where it is offered, so that all calls and watches share one connection.
 *
 * Everything of lib/kube runs on the loop's thread, and nothing blocks, but for reading small local
 * files (tokens). No callback runs before the call that registers it has returned. Every callback
 * may start, cancel and free anything of lib/kube, itself included, but not the client. */
#ifndef DRARUN_KUBE_CLIENT_H
#define DRARUN_KUBE_CLIENT_H

#include <event2/event.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/kube/config.h"

#define KUBE_CALLS_MAX 64u                 /* under way at once; others wait, but urgent ones */
#define KUBE_ANSWER_MAX ((size_t)64 << 20) /* bytes of one answer, unpacked */
#define KUBE_CONNECT_MS 10000              /* for one connection, TLS included */
#define KUBE_SILENCE_MS 30000              /* unacknowledged bytes end a connection after this */
/* When a call times out and nothing has come over its connection for so long, the next calls get a
 * new one. */
#define KUBE_UNHEARD_MS 15000
/* A socket looks so often whether anything has come since, and else sends a ping, as kubectl does:
 * what stands before the API server (HAProxy, nginx, a cloud's load balancer) ends connections on
 * which no byte has gone for a minute, or half of one. */
#define KUBE_PING_MS 5000

struct kube_client;

struct kube_client_counts { /* since the start; tries, not calls */
    uint64_t reads, writes, watches, retries, connections;
};

/* From now on the process ends with status 70 and a message as soon as libcurl gets no memory, of
 * which it loses transfers. For programs alone, before the first client. */
void kube_end_without_memory(void);

/* Opens no connection yet. The config is borrowed until kube_client_free. */
int kube_client_new(struct event_base *base, const struct kube_config *config,
                    struct kube_client **ret_client, struct drarun_error *err);
/* Cancels the calls under way without calling anybody back. Watches, streams and questions
 * (discover.h) must have been freed before. NULL is fine. */
void kube_client_free(struct kube_client *client);
DEFINE_CLEANUP(struct kube_client, kube_client_free)

/* For people, who wait: fn is told once that nothing was answered for KUBE_UNANSWERED_MS while
 * calls are under way, and why the last try has failed (without a failure after 5 s); then, with
 * NULL, that the server answers again. NULL: nobody is told. Streams and watches tell of
 * themselves. */
#define KUBE_UNANSWERED_MS 1000
typedef void (*kube_unanswered_fn)(void *arg, const char *why);
void kube_client_tell_unanswered(struct kube_client *client, kube_unanswered_fn fn, void *arg);
/* Until the server's first answer, reads are given up after so long from now, all together, and at
 * once where nobody takes the connection. */
void kube_client_limit_reads(struct kube_client *client, int64_t ms);

/* The server's clock, milliseconds since 1970, as it was told with the last answer (whole seconds)
 * and has gone on since; 0: no answer has come. */
int64_t kube_client_now(const struct kube_client *client);
void kube_client_count(const struct kube_client *client, struct kube_client_counts *ret_counts);

#endif
