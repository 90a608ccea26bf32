// SPDX-License-Identifier: Apache-2.0
// Conversions between types, as cel-go's common/types and Go's strconv do them.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"
#include "lib/cel/utf8.h"

static struct cel_value cannot(struct cel_eval *eval, const struct cel_node *call,
                               const struct cel_value *value)
{
    return cel_errorf(eval->arena, "%s() cannot convert this %s", call->name, cel_kind_name(value));
}

static bool text_is(const struct cel_text *text, const char *word)
{
    return strlen(word) == text->len && memcmp(text->data, word, text->len) == 0;
}

CEL_FUNCTION(cel_to_bool)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

    (void)count;
    if (args[0].kind == CEL_BOOL)
        return args[0];
    for (size_t i = 0; args[0].kind == CEL_STRING && i < 6; i++) {
        if (text_is(&args[0].text, yes[i]))
            return cel_bool(true);
        if (text_is(&args[0].text, no[i]))
            return cel_bool(false);
    }
    return cannot(eval, call, &args[0]);
}

CEL_FUNCTION(cel_to_bytes)
{
    struct cel_value result = args[0];

    (void)count;
    if (args[0].kind != CEL_STRING && args[0].kind != CEL_BYTES)
        return cannot(eval, call, &args[0]);
    result.kind = CEL_BYTES;
    return result;
}

/* Whether Go's ParseFloat takes it: strtod takes blanks and "nan(...)" in addition. */
static bool parse_real(const struct cel_text *text, double *ret_real)
{
    char copy[512];
    char *end;
    const char *digits;

    if (text->len == 0 || text->len >= sizeof(copy) || memchr(text->data, '\0', text->len))
        return false;
    memcpy(copy, text->data, text->len);
    copy[text->len] = '\0';
    digits = copy + (copy[0] == '-' || copy[0] == '+');
    if (strchr(copy, '(') || strspn(digits, " \t\n\v\f\r") > 0)
        return false;
    if (strcasecmp(digits, "nan") == 0 && digits != copy)
        return false;
    if (strncasecmp(digits, "0x", 2) == 0 && !strpbrk(digits, "pP"))
        return false;
    errno = 0;
    *ret_real = strtod(copy, &end);
    return *end == '\0' && !(errno == ERANGE && isinf(*ret_real));
}

CEL_FUNCTION(cel_to_double)
{
    struct cel_value result = {.kind = CEL_DOUBLE};

    (void)count;
    switch (args[0].kind) {
    case CEL_DOUBLE:
        return args[0];
    case CEL_INT:
        result.real = (double)args[0].integer;
        return result;
    case CEL_UINT:
        result.real = (double)args[0].uinteger;
        return result;
    case CEL_STRING:
        return parse_real(&args[0].text, &result.real) ? result : cannot(eval, call, &args[0]);
    default:
        return cannot(eval, call, &args[0]);
    }
}

CEL_FUNCTION(cel_to_dyn)
{
    (void)eval;
    (void)call;
    (void)count;
    return args[0];
}

/* Decimal digits alone, behind an optional sign. */
static bool parse_integer(const struct cel_text *text, bool sign, bool *ret_negative,
                          uint64_t *ret_magnitude)
{
    size_t at = sign && text->len && (text->data[0] == '-' || text->data[0] == '+');
    uint64_t value = 0;

    if (at == text->len)
        return false;
    *ret_negative = at && text->data[0] == '-';
    for (; at < text->len; at++) {
        char c = text->data[at];
        if (c < '0' || c > '9' || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
            return false;
    }
    *ret_magnitude = value;
    return true;
}

static bool text_to_int(const struct cel_text *text, int64_t *ret_integer)
{
    uint64_t magnitude;
    bool negative;

    if (!parse_integer(text, true, &negative, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_integer = negative ? (int64_t)-magnitude : (int64_t)magnitude;
    return true;
}

CEL_FUNCTION(cel_to_int)
{
    int64_t integer;

    (void)count;
    switch (args[0].kind) {
    case CEL_INT:
        return args[0];
    case CEL_UINT:
        if (args[0].uinteger <= INT64_MAX)
            return cel_int((int64_t)args[0].uinteger);
        break;
    case CEL_DOUBLE:
        if (args[0].real > -0x1p63 && args[0].real < 0x1p63)
            return cel_int((int64_t)args[0].real);
        break;
    case CEL_STRING:
        if (text_to_int(&args[0].text, &integer))
            return cel_int(integer);
        break;
    default:
        break;
    }
    return cannot(eval, call, &args[0]);
}

CEL_FUNCTION(cel_to_uint)
{
    struct cel_value result = {.kind = CEL_UINT};
    bool negative;

    (void)count;
    switch (args[0].kind) {
    case CEL_UINT:
        return args[0];
    case CEL_INT:
        result.uinteger = (uint64_t)args[0].integer;
        if (args[0].integer >= 0)
            return result;
        break;
    case CEL_DOUBLE:
        if (args[0].real >= 0 && args[0].real < 0x1p64) {
            result.uinteger = (uint64_t)args[0].real;
            return result;
        }
        break;
    case CEL_STRING:
        if (parse_integer(&args[0].text, false, &negative, &result.uinteger))
            return result;
        break;
    default:
        break;
    }
    return cannot(eval, call, &args[0]);
}

/* Go's %g: the fewest digits that read back as the same number. */
static void print_real(double real, char out[48])
{
    char digits[40];
    int precision = 0, exponent;

    if (isnan(real) || isinf(real)) {
        snprintf(out, 48, "%s", isnan(real) ? "NaN" : real < 0 ? "-Inf" : "+Inf");
        return;
    }
    do
        snprintf(digits, sizeof(digits), "%.*e", precision, real);
    while (strtod(digits, NULL) != real && ++precision < 17);
    exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 6)
        snprintf(out, 48, "%s", digits);
    else
        snprintf(out, 48, "%.*f", precision > exponent ? precision - exponent : 0, real);
}

static struct cel_value printed(struct cel_eval *eval, const char *text)
{
    return cel_string(cel_arena_copy(eval->arena, text, strlen(text)), strlen(text));
}

CEL_FUNCTION(cel_to_string)
{
    struct cel_value result = args[0];
    char text[48];

    (void)count;
    switch (args[0].kind) {
    case CEL_STRING:
        return args[0];
    case CEL_BOOL:
        return printed(eval, args[0].boolean ? "true" : "false");
    case CEL_BYTES:
        result.kind = CEL_STRING;
        if (cel_utf8_valid(result.text.data, result.text.len))
            return result;
        return cel_error("these bytes are not UTF-8");
    case CEL_INT:
        snprintf(text, sizeof(text), "%" PRId64, args[0].integer);
        return printed(eval, text);
    case CEL_UINT:
        snprintf(text, sizeof(text), "%" PRIu64, args[0].uinteger);
        return printed(eval, text);
    case CEL_DOUBLE:
        print_real(args[0].real, text);
        return printed(eval, text);
    default:
        return cannot(eval, call, &args[0]);
    }
}

CEL_FUNCTION(cel_to_type)
{
    const char *name = cel_kind_name(&args[0]);
    struct cel_value result = cel_string(name, strlen(name));

    (void)eval;
    (void)call;
    (void)count;
    result.kind = CEL_TYPE;
    return result;
}
