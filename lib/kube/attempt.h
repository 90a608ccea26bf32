/* SPDX-License-Identifier: Apache-2.0 */
/* One try of a request: waits for its turn and for credentials, and asks for new ones once when
 * the server answers 401. Private to lib/kube. */
#ifndef DRARUN_KUBE_ATTEMPT_H
#define DRARUN_KUBE_ATTEMPT_H

#include "lib/kube/client_private.h"

struct attempt_request { /* the texts are borrowed until done */
    const char *method, *path, *query;
    const char *content_type, *accept; /* NULL: application/json */
    const char *body;
    size_t body_length;
    size_t answer_max;  /* 0: KUBE_ANSWER_MAX */
    int64_t timeout_ms; /* 0: none */
    bool urgent;        /* has no turn to wait for */
    bool stream;        /* has none either */
    bool alone;         /* as an exchange's: it may be paused */
    bool connect_only;  /* as an exchange's; nor has this, and method and body are not used */
};

struct attempt_events { /* as those of an exchange */
    /* headers: those that the request would carry, as lines; "Name:" alone for none of it. */
    void (*connected)(struct exchange *exchange, const struct curl_slist *headers, void *arg);
    void (*head)(void *arg);
    void (*data)(const char *bytes, size_t length, void *arg);
    /* err: there was no exchange (no credentials, no memory), and result is NULL. */
    void (*done)(const struct exchange_result *result, const struct drarun_error *err, void *arg);
};

/* events are borrowed until done. No callback comes before this has returned. */
int attempt_start(struct kube_client *client, const struct attempt_request *request,
                  const struct attempt_events *events, void *arg, struct attempt **ret_attempt,
                  struct drarun_error *err);
void attempt_cancel(struct attempt *attempt);
void attempt_pause(struct attempt *attempt, bool pause);

#endif
