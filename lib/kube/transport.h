/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's multi interface on a libevent loop. Nothing of ours runs inside a callback of libcurl:
 * what it brings is kept and handed on when libcurl has returned, in the same turn of the loop, so
 * that every callback may start and cancel exchanges. Private to lib/kube. */
#ifndef DRARUN_KUBE_TRANSPORT_H
#define DRARUN_KUBE_TRANSPORT_H

#include <curl/curl.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/buf.h"
#include "lib/base/strlist.h"

struct transport;
struct exchange;

/* One request on the wire. */
struct exchange_request {
    const char *method;
    const char *url;
    const char *connect_to;     /* CURLOPT_CONNECT_TO, NULL */
    const char *proxy;          /* "": none */
    struct curl_slist *headers; /* borrowed until done */
    const char *body;           /* borrowed until done; NULL: none */
    size_t body_length;
    size_t answer_max;                   /* bytes that are kept of an answer, unpacked */
    int64_t timeout_ms;                  /* 0: none, but for connecting */
    const struct buf *ca;                /* PEM, borrowed until done; NULL: the system's */
    const struct buf *certificate, *key; /* NULL: none */
    bool insecure;
    bool stream;       /* data() gets the body of a 2xx; other bodies are kept */
    bool alone;        /* a connection of its own, of HTTP/1.1: a pause fills that and no more */
    bool connect_only; /* a connection of its own, TLS and proxies done; nothing is sent on it */
};

struct exchange_result {
    CURLcode code;
    const char *text;               /* libcurl's, for people; never empty */
    int status;                     /* 0: no answer's head came */
    int64_t retry_after_ms;         /* negative: not said */
    int64_t date_ms;                /* the server's clock, since 1970; 0: not said */
    bool sent;                      /* the request, or some of it, may have reached the server */
    const struct buf *body;         /* of what was kept */
    const struct strlist *warnings; /* what the server warns of */
};

struct exchange_events { /* any but done may be NULL */
    /* Of one that is connect_only; done() comes only without a connection. */
    void (*connected)(void *arg);
    /* A stream's head has come, a 2xx; before all data. */
    void (*head)(void *arg);
    void (*data)(const char *bytes, size_t length, void *arg);
    /* The exchange is gone when it returns. */
    void (*done)(const struct exchange_result *result, void *arg);
};

int transport_new(struct event_base *base, struct transport **ret_transport,
                  struct drarun_error *err);
void transport_free(struct transport *t); /* no exchange may be left */

int exchange_start(struct transport *t, const struct exchange_request *request,
                   const struct exchange_events *events, void *arg, struct exchange **ret_exchange,
                   struct drarun_error *err);
/* No callback afterwards. NULL is fine. */
void exchange_cancel(struct exchange *x);
/* Of one that is `alone`: of a paused HTTP/2 stream libcurl 7.88 still takes 32 MiB. */
void exchange_pause(struct exchange *x, bool pause);

/* From connected() on. Bytes, 0 at the end of the stream, -EAGAIN, or -EIO. */
int exchange_socket(const struct exchange *x);
ssize_t exchange_read(struct exchange *x, void *bytes, size_t length);
ssize_t exchange_write(struct exchange *x, const void *bytes, size_t length);

uint64_t transport_connections(const struct transport *t);

#endif
