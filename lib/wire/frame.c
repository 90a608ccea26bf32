/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/frame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/error.h"

int frame_body_length(const uint8_t header[FRAME_HEADER], uint32_t *ret_length,
                      struct drarun_error *err)
{
    uint32_t length = (uint32_t)header[0] << 24 | (uint32_t)header[1] << 16 |
                      (uint32_t)header[2] << 8 | header[3];
    if (length == 0 || length > FRAME_MAX)
        return error_set(err, EMSGSIZE,
                         "a frame of %u bytes announced, expected 1 to %u: not a drarun peer",
                         length, FRAME_MAX);
    *ret_length = length;
    return 0;
}

static void *allocate(void *failed, size_t size)
{
    void *memory = malloc(size);
    *(bool *)failed |= !memory;
    return memory;
}

static void release(void *failed, void *memory)
{
    (void)failed;
    free(memory);
}

int frame_decode(const uint8_t *body, size_t length, Drarun__Wire__Envelope **ret_envelope,
                 struct drarun_error *err)
{
    bool failed = false;
    ProtobufCAllocator allocator = {allocate, release, &failed};
    Drarun__Wire__Envelope *envelope = drarun__wire__envelope__unpack(&allocator, length, body);
    if (!envelope && failed)
        return error_set(err, ENOMEM, "out of memory for a message of %zu bytes", length);
    if (!envelope)
        return error_set(err, EPROTO, "a frame of %zu bytes that is no message", length);
    if (envelope->body_case == DRARUN__WIRE__ENVELOPE__BODY__NOT_SET) {
        drarun__wire__envelope__free_unpacked(envelope, NULL);
        return error_set(err, EPROTO, "a message of an unknown kind");
    }
    *ret_envelope = envelope;
    return 0;
}
