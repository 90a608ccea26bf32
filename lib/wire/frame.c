/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/frame.h"

#include <errno.h>

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

int frame_decode(const uint8_t *body, size_t length, Drarun__Wire__Envelope **ret_envelope,
                 struct drarun_error *err)
{
    Drarun__Wire__Envelope *envelope = drarun__wire__envelope__unpack(NULL, length, body);
    if (!envelope)
        return error_set(err, EPROTO, "a frame of %zu bytes that is no message", length);
    if (envelope->body_case == DRARUN__WIRE__ENVELOPE__BODY__NOT_SET) {
        drarun__wire__envelope__free_unpacked(envelope, NULL);
        return error_set(err, EPROTO, "a message of an unknown kind");
    }
    *ret_envelope = envelope;
    return 0;
}
