/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC server on unix sockets, on nghttp2 in a libevent loop: unary calls and server streaming,
 * bytes in and bytes out. What the kubelet speaks to a DRA driver, and no more: no TLS, no
 * compression, no client streaming.
 *
 * The program ignores SIGPIPE. Everything runs on the loop's thread. A handler returns at once and
 * answers its call then or later; calls are independent of each other, so that one that waits holds
 * up no other. */
#ifndef DRARUN_PLUGIN_RPC_SERVER_H
#define DRARUN_PLUGIN_RPC_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include "lib/base/cleanup.h"
#include "drarun/error.h"
#include "plugin/rpc/rpc_call.h"

#define RPC_CONNECTIONS_MAX 64u
#define RPC_STREAMS_MAX 64u                 /* calls under way in a connection */
#define RPC_REQUESTS_MAX ((size_t)32 << 20) /* bytes of all requests that are not yet whole */

struct rpc_method {
    const char *path; /* "/package.Service/Method" */
    rpc_fn fn;
    bool stream; /* answered by any number of rpc_call_push */
};

struct rpc_server;

/* The methods and what they point to are borrowed for the server's life; arg goes to each. */
int rpc_server_new(struct event_base *base, const struct rpc_method *methods, size_t count,
                   void *arg, struct rpc_server **ret_server, struct drarun_error *err);

/* Listens on a socket at path, of mode 0600, in place of what was there, when that is a socket too.
 * May be called for several paths. The file is removed with the server, unless another's stands
 * there by then. Errors: -ENAMETOOLONG, those of bind(2). */
int rpc_server_listen(struct rpc_server *server, const char *path, struct drarun_error *err);

/* Calls under way lose their connections; those who hold them may still answer, into nothing. Not
 * from within a handler. */
void rpc_server_free(struct rpc_server *server);
DEFINE_CLEANUP(struct rpc_server, rpc_server_free)

#endif
