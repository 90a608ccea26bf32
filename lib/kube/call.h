/* SPDX-License-Identifier: Apache-2.0 */
/* One request to the API server with its answer, tried again where that is right:
 *
 *   not processed for certain (no connection; 429; 503 with Retry-After)      any request
 *   perhaps processed (connection lost half way, 5xx, deadline of a try)      .repeat, and always
 *                                                                             GET, PUT, DELETE
 *   401                                            once, with credentials asked for again
 *   401 and 403 that may pass: the server has not read its roles yet (refusal.h)
 *
 * with pauses from 100 ms, doubling, to 5 s, jitter of a half, at least what Retry-After says,
 * until timeout_ms is over. Other answers (403, 404, 409, 410, 422) go to the caller at once. */
#ifndef DRARUN_KUBE_CALL_H
#define DRARUN_KUBE_CALL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "lib/kube/client.h"

#define KUBE_CALL_MS 60000 /* timeout_ms when it is 0: with all tries and pauses */

struct kube_call;

struct kube_request {         /* borrowed for the call of kube_call_start */
    const char *method;       /* "GET" */
    const char *path;         /* "/api/v1/namespaces/x/pods", escaped (kube_path) */
    const char *query;        /* "limit=500&continue=..", escaped (kube_query_add); may be NULL */
    const json_t *body;       /* may be NULL; written out at once */
    const char *content_type; /* NULL: application/json */
    const char *accept;       /* NULL: application/json */
    const char *what;         /* for errors: "create pods in namespace x"; NULL: method and path */
    int64_t timeout_ms;
    size_t answer_max; /* bytes of its answer, unpacked; 0: KUBE_ANSWER_MAX */
    bool repeat;       /* the request may be sent again though it was perhaps processed */
    bool urgent;       /* it waits for none of KUBE_CALLS_MAX others, nor counts as one */
};

struct kube_answer {
    int status;         /* HTTP; 0: none came (err says why) */
    const json_t *body; /* JSON, borrowed until the callback returns; NULL when there is none */
    const char *reason; /* of a Status object: "AlreadyExists", "Conflict", ..; else "" */
    unsigned tries;     /* from 1; with more, AlreadyExists may be our own doing, and so may 404 */
    bool lost;          /* the answer to an earlier try was lost: it may have been processed */
    const struct strlist *warnings; /* of the server, for people; as body */
};

/* Of the error of a call: no connection to the API server came about, or it broke, or no answer
 * came in time. No error of anything else may have such a code and the kind
 * DRARUN_ERR_INFRASTRUCTURE, where the two must be told apart. Pure. */
bool kube_is_away(const struct drarun_error *err);
/* Likewise, or the server has answered that it cannot do its work now (429, 5xx; not 501 and 505):
 * the same call may do later. Pure. */
bool kube_may_answer_later(const struct drarun_error *err);

/* err is NULL for a 2xx with a readable body. Else its code is
 *   EACCES 401, 403   ENOENT 404   EEXIST 409 AlreadyExists   EBUSY 409 else   ESTALE 410
 *   EINVAL 400, 422   EAGAIN 429, 504   EIO other 5xx   ENOTSUP 501, 505 and other statuses
 *   ETIMEDOUT deadline   EPROTO no JSON   EFBIG too large   ECONNREFUSED and others: no connection
 * and its text "create pods in namespace x: 403: ...". Called exactly once, unless cancelled; the
 * call is gone when it returns. */
typedef void (*kube_call_fn)(const struct kube_answer *answer, const struct drarun_error *err,
                             void *arg);

/* ret_call: for kube_call_cancel, valid until fn is called; may be NULL. Fails only
 * without memory or with an invalid request; fn is not called then. */
int kube_call_start(struct kube_client *client, const struct kube_request *request, kube_call_fn fn,
                    void *arg, struct kube_call **ret_call, struct drarun_error *err);
/* fn will not be called. NULL is fine. A write may or may not have been processed. */
void kube_call_cancel(struct kube_call *call);

#endif
