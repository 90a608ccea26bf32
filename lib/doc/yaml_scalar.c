/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/doc/yaml_scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/nearest.h"

#define NUMBER_MAX 400 /* longer digits are a text */
#define EXACT_MAX                                                                                  \
    9007199254740992.0 /* 2^53: beyond, a real need not be the whole number it shows */

/* strconv.ParseInt(text, 0, 64) without its underscores: decimal, 0x, 0o, 0b, and 0 for octal. */
static enum yaml_kind whole(const char *text, json_int_t *ret_value)
{
    const char *digits = text + (*text == '+' || *text == '-');
    int base = 10;
    if (digits[0] == '0' && digits[1]) {
        char mark = (char)tolower((unsigned char)digits[1]);
        base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
        digits += mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1;
    }
    if (!isxdigit((unsigned char)digits[0]))
        return YAML_KIND_TEXT;
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, base);
    if (*end)
        return YAML_KIND_TEXT;
    bool negative = *text == '-';
    if (errno || value > (unsigned long long)INT64_MAX + negative)
        return YAML_KIND_TOO_LARGE;
    *ret_value = negative ? (json_int_t)(0 - value) : (json_int_t)value;
    return YAML_KIND_INTEGER;
}

/* ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$ */
static bool is_float(const char *p)
{
    p += *p == '-' || *p == '+';
    size_t before = strspn(p, "0123456789"), after = 0;
    p += before;
    if (*p == '.') {
        after = strspn(p + 1, "0123456789");
        p += 1 + after;
    }
    if (before + after == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        size_t exponent = strspn(p, "0123456789");
        if (exponent == 0)
            return false;
        p += exponent;
    }
    return *p == '\0';
}

static struct yaml_scalar number(const char *text, size_t len)
{
    struct yaml_scalar s = {.kind = YAML_KIND_TEXT};
    char plain[NUMBER_MAX];
    size_t n = 0;
    if (len >= sizeof plain)
        return s;
    for (size_t i = 0; i < len; i++) {
        bool between = i > 0 && i + 1 < len && isdigit((unsigned char)text[i - 1]) &&
                       isdigit((unsigned char)text[i + 1]);
        if (text[i] != '_')
            plain[n++] = text[i];
        else if (text[0] == '.' && !between) /* Go's ParseFloat is stricter than goyaml */
            return s;
    }
    plain[n] = '\0';
    s.kind = text[0] == '.' ? YAML_KIND_TEXT : whole(plain, &s.integer);
    if (s.kind != YAML_KIND_TEXT || !is_float(plain))
        return s;
    s.real = strtod(plain, NULL);
    if (!isfinite(s.real))
        return s; /* as goyaml: out of range is a text */
    s.kind = YAML_KIND_REAL;
    if (s.real == floor(s.real) && fabs(s.real) < EXACT_MAX) { /* JSON writes it without a point */
        s.kind = YAML_KIND_INTEGER;
        s.integer = (json_int_t)s.real;
    }
    return s;
}

struct yaml_scalar yaml_resolve(const char *text, size_t len)
{
    static const struct {
        const char *words;
        struct yaml_scalar is;
    } table[] = {
        {"~ null Null NULL", {.kind = YAML_KIND_NULL}},
        {"y Y yes Yes YES true True TRUE on On ON", {.kind = YAML_KIND_BOOL, .boolean = true}},
        {"n N no No NO false False FALSE off Off OFF", {.kind = YAML_KIND_BOOL, .boolean = false}},
        {".nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF",
         {.kind = YAML_KIND_NO_JSON}},
        {"<<", {.kind = YAML_KIND_MERGE}},
    };
    if (len == 0)
        return (struct yaml_scalar){.kind = YAML_KIND_NULL};
    for (size_t i = 0; len <= 5 && i < sizeof table / sizeof table[0]; i++)
        if (words_index(table[i].words, text, len) >= 0)
            return table[i].is;
    if (strchr("+-.0123456789", text[0]))
        return number(text, len);
    return (struct yaml_scalar){.kind = YAML_KIND_TEXT};
}
