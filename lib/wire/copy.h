/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of messages. */
#ifndef DRARUN_LIB_WIRE_COPY_H
#define DRARUN_LIB_WIRE_COPY_H

#include <protobuf-c/protobuf-c.h>

/* A message of the same type with all that it holds, as it would come from the wire; the caller
 * frees it with its type's free_unpacked. message: the member `base`. NULL: out of memory. */
void *wire_copy(const ProtobufCMessage *message);

#endif
