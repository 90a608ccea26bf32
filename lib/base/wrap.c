/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/wrap.h"

#include <stdbool.h>
#include <string.h>

static const char blanks[] = " \n";

size_t wrap_columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        const char *end = text[i] == '\033' ? memchr(text + i, 'm', length - i) : NULL;
        if (end)
            i = (size_t)(end - text);
        else
            count += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return count;
}

static size_t span(const char *text, size_t length, bool of_blanks)
{
    size_t n = 0;
    while (n < length && (strchr(blanks, text[n]) != NULL) == of_blanks)
        n++;
    return n;
}

void wrap_words(const char *text, size_t length, size_t at, size_t indent, size_t width,
                struct buf *out)
{
    size_t column = at;
    bool first = true; /* word of its line */
    for (size_t i = span(text, length, true), word; i < length;
         i += word, i += span(text + i, length - i, true)) {
        word = span(text + i, length - i, false);
        size_t wide = wrap_columns(text + i, word);
        if (!first && column + 1 + wide > width) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        if (!first)
            buf_add_str(out, " ");
        buf_add(out, text + i, word);
        column += wide + !first;
        first = false;
    }
}

void wrap_add(const char *text, size_t at, size_t indent, struct buf *out)
{
    wrap_words(text, strlen(text), at, indent, WRAP_COLUMNS, out);
    buf_add_str(out, "\n");
}
