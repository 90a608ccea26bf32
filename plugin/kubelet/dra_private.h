/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a DRA driver share. */
#ifndef DRARUN_PLUGIN_KUBELET_DRA_PRIVATE_H
#define DRARUN_PLUGIN_KUBELET_DRA_PRIVATE_H

#include <protobuf-c/protobuf-c.h>
#include "plugin/kubelet/dra_driver.h"
#include "plugin/rpc/rpc_server.h"

struct dra_driver {
    const struct dra_handler *handler;
    void *arg;
    struct rpc_server *server;
    struct event *heartbeat;
    struct stream *streams; /* of health */
    char name[64];
    char endpoint[256]; /* the path of the socket that serves the calls */
};

/* dra_registration.c, dra_claims.c, dra_streams.c: methods of struct rpc_method; arg is the driver
 */
void dra_get_info(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);
void dra_notify(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);
void dra_prepare(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);
void dra_unprepare(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);
void dra_watch(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);

void dra_streams_end(struct dra_driver *driver);

/* Ends the call with a message, or with the error that it is none. */
void dra_answer_take(struct rpc_call *call, const ProtobufCMessage *message);
void dra_bad_message_take(struct rpc_call *call);

#endif
