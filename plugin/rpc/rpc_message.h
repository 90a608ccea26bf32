/* SPDX-License-Identifier: Apache-2.0 */
/* What gRPC puts into an HTTP/2 stream: length-prefixed messages and status texts ("gRPC over
 * HTTP2", grpc/doc/PROTOCOL-HTTP2.md). Pure. */
#ifndef DRARUN_PLUGIN_RPC_MESSAGE_H
#define DRARUN_PLUGIN_RPC_MESSAGE_H

#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"

#define RPC_PREFIX 5u                     /* bytes before a message: flag, length */
#define RPC_MESSAGE_MAX ((size_t)4 << 20) /* as gRPC's own default */

/* The codes of gRPC that are ours to send (grpc/doc/statuscodes.md). */
enum rpc_status {
    RPC_OK = 0,
    RPC_CANCELLED = 1,
    RPC_INVALID_ARGUMENT = 3,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_UNIMPLEMENTED = 12,
    RPC_INTERNAL = 13,
    RPC_UNAVAILABLE = 14,
};

/* A request's body must be exactly one uncompressed message. RPC_OK: *ret_message points into the
 * body; else *ret_why says what is wrong with it. */
enum rpc_status rpc_message_open(const uint8_t *body, size_t length, const uint8_t **ret_message,
                                 size_t *ret_length, const char **ret_why);

/* Appends a message with its prefix; `length` at most RPC_MESSAGE_MAX. */
void rpc_message_add(struct buf *out, const void *message, size_t length);

/* Appends a status text as grpc-message wants it: percent-encoded, all but printable ASCII. */
void rpc_message_escape(struct buf *out, const char *text);

#endif
