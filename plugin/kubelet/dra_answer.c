/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plugin/kubelet/dra_private.h"
#include "lib/base/cleanup.h"

void dra_answer_take(struct rpc_call *call, const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    cleanup_free uint8_t *bytes = malloc(length + 1);
    if (!bytes) {
        rpc_call_fail_take(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    protobuf_c_message_pack(message, bytes);
    rpc_call_answer_take(call, bytes, length);
}

void dra_bad_message_take(struct rpc_call *call)
{
    rpc_call_fail_take(call, RPC_INVALID_ARGUMENT,
                       "the request is not the message that this method takes");
}
