/* SPDX-License-Identifier: Apache-2.0 */
/* As whom requests are made, kept fresh: a fixed token or certificate, files that rotate, an exec
 * plugin. Private to lib/kube. */
#ifndef DRARUN_KUBE_CREDENTIALS_H
#define DRARUN_KUBE_CREDENTIALS_H

#include <event2/event.h>
#include <sys/queue.h>
#include "lib/kube/config_private.h"

struct credentials;

struct identity { /* borrowed: until the next call of credentials_get; NULL: none of it */
    const char *token;
    const struct buf *ca, *certificate, *key;
    unsigned generation;
};

struct credential_waiter { /* the caller's, until fn was called or it was withdrawn */
    TAILQ_ENTRY(credential_waiter) link;
    /* Ask again; or err, why there are none. */
    void (*fn)(const struct drarun_error *err, void *arg);
    void *arg;
    bool waiting;
    unsigned round; /* credentials.c's */
};

int credentials_new(struct event_base *base, const struct kube_config *config,
                    struct credentials **ret_credentials, struct drarun_error *err);
void credentials_free(struct credentials *c);

/* 0; -EINPROGRESS when the waiter will be called, never from inside; else -errno. */
int credentials_get(struct credentials *c, struct identity *ret_identity,
                    struct credential_waiter *waiter, struct drarun_error *err);
void credentials_withdraw(struct credentials *c, struct credential_waiter *waiter);
/* The server took the identity of this generation for nobody (401). True when asking again may give
 * another one. */
bool credentials_refused(struct credentials *c, unsigned generation);

#endif
