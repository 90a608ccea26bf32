// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/utf8.h"

static const uint32_t REPLACEMENT = 0xfffd;

/* Length of the sequence by its first byte; 0 when none begins with it. */
static size_t sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first < 0xe0)
        return 2;
    if (first >= 0xe0 && first < 0xf0)
        return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* Like cel_utf8_next, but tells an invalid sequence by 0xffffffff. */
static uint32_t decode(const char *data, size_t len, size_t *at)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)data + *at;
    size_t length = sequence_length(*p);
    uint32_t point = length == 1 ? *p : *p & (0x7fU >> length);

    if (length == 0 || length > len - *at) {
        (*at)++;
        return UINT32_MAX;
    }
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            (*at)++;
            return UINT32_MAX;
        }
        point = point << 6 | (p[i] & 0x3f);
    }
    if (point < smallest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
        (*at)++;
        return UINT32_MAX;
    }
    *at += length;
    return point;
}

uint32_t cel_utf8_next(const char *data, size_t len, size_t *at)
{
    uint32_t point = decode(data, len, at);

    return point == UINT32_MAX ? REPLACEMENT : point;
}

size_t cel_utf8_put(char *out, uint32_t point)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

bool cel_utf8_valid(const char *data, size_t len)
{
    for (size_t at = 0; at < len;)
        if (decode(data, len, &at) == UINT32_MAX)
            return false;
    return true;
}

size_t cel_utf8_count(const char *data, size_t len)
{
    size_t count = 0;

    for (size_t at = 0; at < len; count++)
        cel_utf8_next(data, len, &at);
    return count;
}

size_t cel_utf8_offset(const char *data, size_t len, size_t index)
{
    size_t at = 0;

    while (index-- > 0 && at < len)
        cel_utf8_next(data, len, &at);
    return at;
}
