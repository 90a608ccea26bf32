/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that the public API hands out. */
#ifndef DRARUN_LAUNCHER_API_TEXT_H
#define DRARUN_LAUNCHER_API_TEXT_H

#include <jansson.h>
#include "lib/base/buf.h"

/* Takes what is in the buffer, or the value as indented JSON. NULL: out of memory. */
char *text_take(struct buf *text);
char *text_of_json_take(json_t *json);

#endif
