/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/rpc/rpc_message.h"

enum rpc_status rpc_message_open(const uint8_t *body, size_t length, const uint8_t **ret_message,
                                 size_t *ret_length, const char **ret_why)
{
    if (length < RPC_PREFIX) {
        *ret_why = "the request has no message";
        return RPC_INTERNAL;
    }
    if (body[0] != 0) {
        *ret_why = "compressed requests are not supported";
        return RPC_UNIMPLEMENTED;
    }
    size_t size = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
    if (size != length - RPC_PREFIX) {
        *ret_why = "the request is not exactly one message";
        return RPC_INTERNAL;
    }
    *ret_message = body + RPC_PREFIX;
    *ret_length = size;
    return RPC_OK;
}

void rpc_message_add(struct buf *out, const void *message, size_t length)
{
    const uint8_t prefix[RPC_PREFIX] = {0, (uint8_t)(length >> 24), (uint8_t)(length >> 16),
                                        (uint8_t)(length >> 8), (uint8_t)length};
    buf_add(out, prefix, sizeof prefix);
    buf_add(out, message, length);
}

void rpc_message_escape(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text >= 0x20 && *text <= 0x7e && *text != '%')
            buf_add(out, text, 1);
        else
            buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}
