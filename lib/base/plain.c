/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/plain.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/cleanup.h"

#define INDENT 2

size_t utf8_length(const unsigned char *p, size_t left)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0x00, 0x7f, 0x80, 0xbf, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
        size_t length = forms[f].length;
        if (p[0] < forms[f].first_low || p[0] > forms[f].first_high || length > left)
            continue;
        if (length > 1 && (p[1] < forms[f].second_low || p[1] > forms[f].second_high))
            return 0;
        for (size_t i = 2; i < length; i++)
            if (p[i] < 0x80 || p[i] > 0xbf)
                return 0;
        return length;
    }
    return 0;
}

void utf8_copy(char *dst, size_t size, const char *src)
{
    size_t end = 0, left = strlen(src);
    while (left > 0) {
        size_t length = utf8_length((const unsigned char *)src + end, left);
        if (length == 0 || end + length >= size)
            break;
        end += length;
        left -= length;
    }
    memcpy(dst, src, end);
    dst[end] = '\0';
}

size_t utf8_cut(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

void utf8_trim(char *text)
{
    size_t length = strlen(text), after = 0;
    while (after < length && after < 3 && ((unsigned char)text[length - 1 - after] & 0xc0) == 0x80)
        after++;
    if (after == length)
        return;
    char *last = text + length - 1 - after;
    if ((unsigned char)*last >= 0xc0 && utf8_length((const unsigned char *)last, after + 1) == 0)
        *last = '\0';
}

static bool is_control(const unsigned char *p, size_t length)
{
    bool c0 = length == 1 && p[0] < 0x20 && p[0] != '\t' && p[0] != '\n';
    bool c1 = length == 2 && p[0] == 0xc2 && p[1] < 0xa0;
    return c0 || c1 || (length == 1 && p[0] == 0x7f);
}

void plain_text(char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        const unsigned char *p = (const unsigned char *)text + i;
        size_t n = utf8_length(p, length - i);
        if (n == 0 || is_control(p, n)) {
            n = n ? n : 1;
            memset(text + i, '?', n);
        }
        i += n;
    }
}

size_t plain_indent(char *text, size_t length, size_t size)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '\n' || i + 1 >= length || text[i + 1] == ' ' || text[i + 1] == '\n')
            continue;
        size_t rest = length - i - 1;
        if (i + 1 + INDENT + rest > size)
            rest = size > i + 1 + INDENT ? size - i - 1 - INDENT : 0;
        if (rest == 0)
            return i;
        memmove(text + i + 1 + INDENT, text + i + 1, rest);
        memset(text + i + 1, ' ', INDENT);
        length = i + 1 + INDENT + rest;
        i += INDENT;
    }
    return length;
}
