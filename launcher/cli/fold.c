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

/* Of the first two blanks from here on; length: there are none. */
static size_t gap_of(const char *line, size_t from, size_t length)
{
    for (size_t i = from; i + 1 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return i;
    return length;
}

static bool is_row(const char *line, size_t length)
{
    return gap_of(line, indent_of(line, length), length) < length;
}

/* Where the sentence after a label begins, which is one word and two blanks or more; 0: this is
 * no such line. */
static size_t sentence_of(const char *line, size_t length)
{
    size_t label = indent_of(line, length), gap = gap_of(line, label, length);
    if (gap == length || memchr(line + label, ' ', gap - label))
        return 0;
    size_t sentence = gap + indent_of(line + gap, length - gap);
    return sentence < length && gap_of(line, sentence, length) == length ? sentence : 0;
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
    size_t sentence = sentence_of(line, length), indent = indent_of(line, length);
    size_t begin = sentence ? sentence : indent, column = wrap_columns(line, begin);
    buf_add(out, line, begin);
    wrap_words(line + begin, length - begin, column, sentence ? column : indent + HANG, width, out);
}

void fold_add(const char *text, size_t length, size_t width, struct buf *out)
{
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        if (wrap_columns(text, line) <= width || is_variable(text, line) ||
            (is_row(text, line) && !sentence_of(text, line)))
            buf_add(out, text, line);
        else
            fold_line(text, line, width, out);
        if (newline)
            buf_add_str(out, "\n");
        text += line + (newline != NULL);
    }
}
