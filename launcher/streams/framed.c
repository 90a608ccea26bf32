/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/streams/framed.h"

#include <jansson.h>
#include <string.h>

#include "lib/base/cleanup.h"

void framed_count(struct framed *framed, const char *data, size_t length)
{
    const char *newline;
    for (; (newline = memchr(data, '\n', length)); data = newline + 1) {
        length -= (size_t)(newline + 1 - data);
        framed->lines++;
    }
}

void framed_mark(struct framed *framed, struct buf *out)
{
    if (framed->lines > 0 && framed->lines - framed->marked < FRAMED_MARK_LINES)
        return;
    CLEANUP(json_decrefp)
    json_t *mark = json_pack("{s:s, s:s*, s:I}", "event", FRAMED_MARK_EVENT, "job", framed->who.job,
                             "lines", (json_int_t)framed->lines);
    cleanup_free char *text = mark ? json_dumps(mark, JSON_COMPACT) : NULL;
    if (text)
        buf_printf(out, "%s\n", text);
    framed->marked = framed->lines;
}
