/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli/fold.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/wrap.h"

#define HANG 4 /* columns, of what goes on below a line */

static size_t indent_of(const char *line, size_t length)
{
    size_t indent = 0;
    while (indent < length && line[indent] == ' ')
        indent++;
    return indent;
}

static bool is_row(const char *line, size_t length)
{
    for (size_t i = indent_of(line, length); i + 1 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return true;
    return false;
}

static bool is_variable(const char *line, size_t length)
{
    size_t i = indent_of(line, length), begin = i;
    while (i < length && (isalnum((unsigned char)line[i]) || line[i] == '_'))
        i++;
    return i > begin && i < length && line[i] == '=';
}

static void fold_line(const char *line, size_t length, size_t width, struct buf *out)
{
    size_t indent = indent_of(line, length);
    buf_add(out, line, indent);
    wrap_words(line + indent, length - indent, indent, indent + HANG, width, out);
}

void fold_add(const char *text, size_t length, size_t width, struct buf *out)
{
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        if (wrap_columns(text, line) <= width || is_row(text, line) || is_variable(text, line))
            buf_add(out, text, line);
        else
            fold_line(text, line, width, out);
        if (newline)
            buf_add_str(out, "\n");
        text += line + (newline != NULL);
    }
}
