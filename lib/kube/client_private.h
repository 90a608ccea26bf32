/* SPDX-License-Identifier: Apache-2.0 */
/* What calls, watches and streams share. Private to lib/kube. */
#ifndef DRARUN_KUBE_CLIENT_PRIVATE_H
#define DRARUN_KUBE_CLIENT_PRIVATE_H

#include <stdbool.h>
#include <sys/queue.h>
#include "lib/kube/client.h"
#include "lib/kube/config_private.h"
#include "lib/kube/credentials.h"
#include "lib/kube/refusal.h"
#include "lib/kube/transport.h"
#include "lib/kube/unanswered.h"

struct kube_call;
struct kube_served;
struct attempt;

struct kube_client {
    struct event_base *base;
    const struct kube_config *config;
    struct transport *transport;
    struct credentials *credentials;
    char *connect_to, *host_header; /* for tls-server-name */
    char *url;                      /* the server's, with the name that TLS verifies */
    char *proxy;                    /* "": none */
    struct kube_client_counts counts;
    struct refusals *refusals;
    int64_t date_ms, dated_ms;  /* what the server's clock said, and when by clock_ms(); 0 */
    bool pages_only;            /* the server does not stream its lists */
    struct kube_served *served; /* NULL: never asked */
    int64_t served_until_ms;    /* by clock_ms(): when it is asked again */
    struct unanswered unanswered;
    int64_t ping_ms;            /* of sockets: KUBE_PING_MS, but in tests */
    unsigned under_way;         /* attempts, but for streams */
    TAILQ_HEAD(, attempt) line; /* attempts that wait for their turn */
    TAILQ_HEAD(, kube_call) calls;
};

/* client_refusal.c. Whether what the server answers, 401 or 403 with this Status (NULL: none), may
 * be another answer in a moment (refusal.h). */
bool client_refusal_passes(struct kube_client *client, const char *verb, const char *path,
                           int status, const json_t *problem);
/* An attempt has ended so, or has been answered with this status. */
void client_note_answer(struct kube_client *client, const char *verb, const char *path, int status);
void client_note_loss(struct kube_client *client);

#endif
