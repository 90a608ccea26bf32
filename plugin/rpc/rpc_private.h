/* SPDX-License-Identifier: Apache-2.0 */
/* What rpc_server.c (sockets), rpc_conn.c (HTTP/2) and rpc_call.c (calls) share. */
#ifndef DRARUN_PLUGIN_RPC_PRIVATE_H
#define DRARUN_PLUGIN_RPC_PRIVATE_H

#include <event2/bufferevent.h>
#include <nghttp2/nghttp2.h>
#include "lib/base/buf.h"
#include "plugin/rpc/rpc_server.h"

struct rpc_conn {
    struct rpc_server *server;
    struct rpc_conn *next;
    struct bufferevent *bev;
    nghttp2_session *session;
    struct rpc_call *calls; /* whose streams are open */
    bool busy;              /* nghttp2 is running: what is submitted now is sent after */
    bool broken;            /* to be freed when it is not */
};

struct rpc_call {
    struct rpc_conn *conn; /* NULL: the stream is closed */
    struct rpc_call *next; /* of the connection */
    int32_t stream;
    const struct rpc_method *method; /* NULL: unknown */
    bool post, grpc;                 /* what its headers say */
    bool whole;                      /* the request has ended */
    bool held;                       /* a handler has it: freed by its answer */
    bool answered;                   /* the response is submitted */
    bool ended;                      /* nothing will be added to `out` */
    struct buf in;
    struct buf out; /* framed messages, those before `sent` are on their way */
    size_t sent;
    void (*gone)(struct rpc_call *call, void *arg);
    void *gone_arg;
};

struct rpc_server {
    struct event_base *base;
    const struct rpc_method *methods;
    size_t method_count;
    void *arg;
    struct listener *listeners;
    struct rpc_conn *conns;
    size_t conn_count;
    size_t pending; /* bytes of requests */
};

/* Takes the descriptor; nothing to undo when it fails. */
int rpc_conn_new_take(struct rpc_server *server, int fd, struct drarun_error *err);
void rpc_conn_free(struct rpc_conn *conn);
/* Sends what nghttp2 has, unless it is running. May free the connection. */
void rpc_conn_flush(struct rpc_conn *conn);

/* The stream has closed, or its connection. Frees the call, unless a handler has it. */
void rpc_call_detach(struct rpc_call *call);
/* Answers on the server's own behalf, before a handler has it. */
void rpc_call_refuse(struct rpc_call *call, enum rpc_status status, const char *why);
/* The request is whole: hands it to its method. */
void rpc_call_run(struct rpc_call *call);

#endif
