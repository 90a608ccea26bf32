/* SPDX-License-Identifier: Apache-2.0 */
/* What calls, watches and streams share. Private to lib/kube. */
#ifndef DRARUN_KUBE_CLIENT_PRIVATE_H
#define DRARUN_KUBE_CLIENT_PRIVATE_H

#include <stdbool.h>
#include <sys/queue.h>
#include "lib/kube/client.h"
#include "lib/kube/config_private.h"
#include "lib/kube/credentials.h"
#include "lib/kube/transport.h"

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
    char *proxy;
    struct kube_client_counts counts;
    int64_t unreachable_ms;     /* when a connection failed last, on clock_ms(); 0: never */
    int64_t date_ms, dated_ms;  /* what the server's clock said, and when by clock_ms(); 0 */
    bool pages_only;            /* the server does not stream its lists */
    struct kube_served *served; /* NULL: never asked */
    unsigned under_way;         /* attempts, but for streams */
    TAILQ_HEAD(, attempt) line; /* attempts that wait for their turn */
    TAILQ_HEAD(, kube_call) calls;
};

/* Has the server just come back? For a moment it then refuses (401, 403) what it allows, as it has
 * not read its roles yet. */
bool client_is_unsettled(const struct kube_client *client);

#endif
