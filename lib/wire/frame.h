/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: a 32-bit big-endian length, at most FRAME_MAX, then a packed Envelope. Pure. */
#ifndef DRARUN_WIRE_FRAME_H
#define DRARUN_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include "drarun/error.h"
#include "lib/wire/wire.pb-c.h"

#define FRAME_HEADER 4u
#define FRAME_MAX (16u * 1024 * 1024)
/* Data in one message stays below this, so that no frame comes near FRAME_MAX. */
#define FRAME_DATA_MAX (4u * 1024 * 1024)
/* Bytes of File that an agent sends in all. */
#define WIRE_COLLECT_MAX (64u * 1024 * 1024)
#define WIRE_COLLECT_FILES_MAX 4096u /* likewise */

/* Length of the frame's body from its FRAME_HEADER bytes; -EMSGSIZE when it is 0 or too large. */
int frame_body_length(const uint8_t header[FRAME_HEADER], uint32_t *ret_length,
                      struct drarun_error *err);

/* Unpacks one body. The result is the caller's, freed with drarun__wire__envelope__free_unpacked
 * (NULL allocator). -EPROTO when the bytes are no Envelope or carry no known message. */
int frame_decode(const uint8_t *body, size_t length, Drarun__Wire__Envelope **ret_envelope,
                 struct drarun_error *err);

#endif
