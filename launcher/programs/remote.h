/* SPDX-License-Identifier: Apache-2.0 */
/* Agents reached over TLS. The local job must not pay for OpenSSL, so only a second program,
 * drarun-remote, holds this code: drarun gives place to it when a job needs it. Loop thread only.
 */
#ifndef DRARUN_LAUNCHER_REMOTE_H
#define DRARUN_LAUNCHER_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <event2/event.h>
#include "drarun/error.h"
#include "lib/wire/channel.h"
#include "lib/wire/tls.h"

#define REMOTE_ADDRESS_SIZE 64

struct remote;

struct remote_owner {
    /* A TCP connection stands, with TLS begun; its channel is the owner's, who sets its receivers.
     */
    void (*connected)(void *arg, uint32_t agent, struct channel *channel);
    void *arg;
};

/* A table, since one of the two programs has none. */
struct remote_api {
    struct remote *(*open)(struct event_base *base, const struct tls_key *key, uint32_t agents,
                           const struct remote_owner *owner, struct drarun_error *err);
    void (*close)(struct remote *remote);
    /* "host:7173" as "10.0.0.7:7173". Blocks on the name service: before the loop runs. */
    int (*resolve)(const char *address, char numeric[REMOTE_ADDRESS_SIZE],
                   struct drarun_error *err);
    /* This machine's name with its domain, to be freed; NULL: it has none. Blocks too. */
    char *(*own_name)(const char *hostname);
    /* Dials until it succeeds; the owner has the deadline. address stays the caller's. */
    int (*dial)(struct remote *remote, uint32_t agent, const char *address,
                struct drarun_error *err);
    /* Stops dialling. */
    void (*give_up)(struct remote *remote, uint32_t agent);
    /* Why it has not succeeded yet, "" when nothing is known. */
    const char *(*why)(const struct remote *remote, uint32_t agent);
    /* The errno of the last attempt, 0 when it has not failed. */
    int (*code)(const struct remote *remote, uint32_t agent);
};

/* NULL in drarun. */
const struct remote_api *remote_api(void);

/* lib/program/static_setup.h, in the programs that look up names or set up TLS. */
void remote_setup(void);

/* Replaces this process by drarun-remote with the same arguments; returns only to say why not. */
int remote_become(char *const argv[], struct drarun_error *err);

#endif
