/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a client. Its holder answers it exactly once, by one of the functions that end
 * in _take, which free it; also when the client has gone meanwhile, which only rpc_call_on_gone
 * tells. A call of a streaming method is pushed to any number of times and then ended. */
#ifndef DRARUN_PLUGIN_RPC_CALL_H
#define DRARUN_PLUGIN_RPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "plugin/rpc/rpc_message.h"

/* Bytes that a slow client of a stream may leave unread. */
#define RPC_PUSHED_MAX ((size_t)1 << 20)

struct rpc_call;

/* A whole request: the message's bytes are borrowed until it returns. */
typedef void (*rpc_fn)(struct rpc_call *call, const uint8_t *message, size_t length, void *arg);

/* Ends the call with one message; the bytes are copied. */
void rpc_call_answer_take(struct rpc_call *call, const void *message, size_t length);
/* Ends the call with a status other than RPC_OK and a text for people. */
void rpc_call_fail_take(struct rpc_call *call, enum rpc_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends a stream. */
void rpc_call_end_take(struct rpc_call *call);

/* A message of a stream; false when it is not sent, as the client has gone or reads too slowly. */
bool rpc_call_push(struct rpc_call *call, const void *message, size_t length);
/* fn runs once when the client has gone; the call is to be ended still, then or later. */
void rpc_call_on_gone(struct rpc_call *call, void (*fn)(struct rpc_call *call, void *arg),
                      void *arg);

/* Whether the client has gone, or has taken the call back. */
bool rpc_call_gone(const struct rpc_call *call);

#endif
