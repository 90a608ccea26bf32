/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/copy.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"

void *wire_copy(const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    cleanup_free uint8_t *packed = malloc(length + 1);
    if (!packed)
        return NULL;
    protobuf_c_message_pack(message, packed);
    return protobuf_c_message_unpack(message->descriptor, NULL, length, packed);
}
