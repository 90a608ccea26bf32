/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/ranks/tail.h"

#include <stdlib.h>
#include <string.h>

void tail_add(struct tail *tail, const void *data, size_t length)
{
    if (length > 0 && !tail->data)
        tail->data = malloc(TAIL_MAX);
    tail->lost |= length > 0 && !tail->data;
    if (length == 0 || !tail->data)
        return;
    const char *from = data;
    if (length > TAIL_MAX) {
        from += length - TAIL_MAX;
        length = TAIL_MAX;
        tail->cut = true;
    }
    if (tail->length + length > TAIL_MAX) {
        size_t drop = tail->length + length - TAIL_MAX;
        memmove(tail->data, tail->data + drop, tail->length - drop);
        tail->length -= drop;
        tail->cut = true;
    }
    memcpy(tail->data + tail->length, from, length);
    tail->length += length;
}

const char *tail_text(const struct tail *tail, size_t *ret_length)
{
    static const char lost[] = "(out of memory)\n";
    if (!tail->data && tail->lost) {
        *ret_length = sizeof lost - 1;
        return lost;
    }
    const char *text = tail->data;
    size_t length = tail->length;
    const char *line = text && tail->cut ? memchr(text, '\n', length) : NULL;
    if (line && line + 1 < text + length) {
        length -= (size_t)(line + 1 - text);
        text = line + 1;
    }
    *ret_length = length;
    return text ? text : "";
}

void tail_done(struct tail *tail)
{
    free(tail->data);
    *tail = (struct tail){0};
}
