/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a peer that may be anybody: arbitrary bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const uint8_t *body, size_t length)
{
    Drarun__Wire__Envelope *envelope = NULL;
    if (frame_decode(body, length, &envelope, NULL) < 0)
        return;
    if (envelope->body_case == DRARUN__WIRE__ENVELOPE__BODY__NOT_SET)
        abort();
    drarun__wire__envelope__free_unpacked(envelope, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size); /* as one body: a fuzzer need not find out lengths */
    while (size >= FRAME_HEADER) {
        uint32_t length = 0;
        if (frame_body_length(data, &length, NULL) < 0)
            return 0;
        if (length == 0 || length > FRAME_MAX)
            abort();
        data += FRAME_HEADER;
        size -= FRAME_HEADER;
        if (length > size)
            return 0;
        decode(data, length);
        data += length;
        size -= length;
    }
    return 0;
}
