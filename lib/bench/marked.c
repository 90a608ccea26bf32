/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/bench/marked.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/bench/written.h"

#define MARKED_LENGTH (sizeof MARKED - 1)
#define GOES_ON '+'
#define LAST '.'

int marked_write(FILE *out, const char *name, const char *line, struct drarun_error *err)
{
    size_t all = strlen(line), at = 0;
    struct buf piece = BUF_INIT;
    int rc = 0;
    do {
        size_t length = all - at < MARKED_PIECE ? all - at : MARKED_PIECE;
        buf_reset(&piece);
        buf_printf(&piece, "%s%zu%c%.*s\n", MARKED, at, at + length < all ? GOES_ON : LAST,
                   (int)length, line + at);
        if (piece.failed)
            rc = error_set(err, ENOMEM, "out of memory");
        else
            fwrite(piece.data, 1, piece.len, out); /* at once: libraries write there too */
        rc = rc < 0 ? rc : written(out, name, err);
        at += length;
    } while (rc == 0 && at < all);
    buf_done(&piece);
    return rc;
}

/* Behind its offset; NULL: it has no mark. */
static const char *offset_of(const char *line, size_t length, size_t *ret_offset)
{
    const char *at = line + MARKED_LENGTH, *end = line + length;
    size_t offset = 0;
    if (length <= MARKED_LENGTH || memcmp(line, MARKED, MARKED_LENGTH) != 0 ||
        !isdigit((unsigned char)*at))
        return NULL;
    for (; at < end && isdigit((unsigned char)*at) && offset < SIZE_MAX / 16; at++)
        offset = 10 * offset + (size_t)(*at - '0');
    if (at == end || (*at != GOES_ON && *at != LAST))
        return NULL;
    *ret_offset = offset;
    return at;
}

static void cut(struct buf *b, size_t length)
{
    b->len = length;
    if (b->data)
        b->data[length] = '\0';
}

/* begun: where the line of this piece begins in lines. */
static void add_piece(size_t offset, const char *piece, size_t length, struct buf *lines,
                      size_t *begun)
{
    if (offset == 0)
        cut(lines, *begun); /* the rest of another one is lost */
    if (offset != lines->len - *begun) {
        cut(lines, *begun);
        return;
    }
    buf_add(lines, piece + 1, length - 1);
    if (piece[0] == LAST) {
        buf_add_str(lines, "\n");
        *begun = lines->len;
    }
}

bool marked_split(const char *text, size_t length, struct buf *lines, struct buf *rest)
{
    const char *end = text + length;
    size_t begun = lines->len, offset = 0;
    bool any = false;
    for (const char *at = text, *next; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline ? newline : end;
        const char *piece = offset_of(at, (size_t)(line_end - at), &offset);
        next = newline ? newline + 1 : end;
        if (!piece)
            buf_add(rest, at, (size_t)(next - at));
        else if (newline) /* else it is cut off */
            add_piece(offset, piece, (size_t)(newline - piece), lines, &begun);
        any = any || piece;
    }
    cut(lines, begun);
    return any;
}
