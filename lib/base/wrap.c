/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/wrap.h"

#include <stdbool.h>
#include <string.h>

static size_t columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xc0) != 0x80;
    return count;
}

void wrap_add(const char *text, size_t at, size_t indent, struct buf *out)
{
    static const char blanks[] = " \n";
    size_t column = at, length;
    bool first = true; /* word of its line */
    for (text += strspn(text, blanks); *text; text += length + strspn(text + length, blanks)) {
        length = strcspn(text, blanks);
        size_t width = columns(text, length);
        if (!first && column + 1 + width > WRAP_COLUMNS) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        if (!first)
            buf_add_str(out, " ");
        buf_add(out, text, length);
        column += width + !first;
        first = false;
    }
    buf_add_str(out, "\n");
}
