// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/quantity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NANO = -9, INT64_DIGITS = 18, BINARY_DIGITS = 15 };

struct parts {
    bool negative;
    const char *whole, *fraction, *suffix;
    size_t whole_len, fraction_len, suffix_len;
};

static size_t digit_span(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

static bool split(const char *text, size_t len, struct parts *ret_parts)
{
    struct parts parts = {0};
    size_t at = 0, n;

    if (len && (text[0] == '-' || text[0] == '+'))
        parts.negative = text[at++] == '-';
    while (at < len && text[at] == '0')
        at++;
    parts.whole = text + at;
    parts.whole_len = digit_span(text + at, len - at);
    at += parts.whole_len;
    if (at < len && text[at] == '.') {
        parts.fraction = text + ++at;
        parts.fraction_len = digit_span(text + at, len - at);
        at += parts.fraction_len;
    }
    parts.suffix = text + at;
    parts.suffix_len = len - at;
    for (n = at; n < len && strchr("eEinumkKMGTP", text[n]) && text[n]; n++)
        continue;
    if (n < len && (text[n] == '-' || text[n] == '+'))
        n++;
    n += digit_span(text + n, len - n);
    *ret_parts = parts;
    return n == len;
}

/* "e3" or "E-3": strict, since "E" alone is a suffix of its own */
static bool exponent_of(const char *suffix, size_t len, int32_t *ret_exponent)
{
    char digits[24];
    char *end;

    if (len < 2 || len >= sizeof(digits) || (suffix[0] != 'e' && suffix[0] != 'E'))
        return false;
    if (strspn(suffix + 1, "+-0123456789") < len - 1)
        return false;
    snprintf(digits, sizeof(digits), "%.*s", (int)len - 1, suffix + 1);
    errno = 0;
    *ret_exponent = (int32_t)strtoll(digits, &end, 10); // upstream cuts it the same way
    return errno == 0 && *end == '\0' && end > digits && end[-1] != '+' && end[-1] != '-';
}

static bool suffix_of(const struct parts *parts, bool *ret_binary, int32_t *ret_exponent)
{
    static const struct {
        char text[3];
        bool binary;
        int32_t exponent;
    } suffixes[] = {
        {"", false, 0},   {"n", false, -9}, {"u", false, -6}, {"m", false, -3},
        {"k", false, 3},  {"M", false, 6},  {"G", false, 9},  {"T", false, 12},
        {"P", false, 15}, {"E", false, 18}, {"Ki", true, 10}, {"Mi", true, 20},
        {"Gi", true, 30}, {"Ti", true, 40}, {"Pi", true, 50}, {"Ei", true, 60},
    };

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (strlen(suffixes[i].text) != parts->suffix_len ||
            memcmp(suffixes[i].text, parts->suffix, parts->suffix_len) != 0)
            continue;
        *ret_binary = suffixes[i].binary;
        *ret_exponent = suffixes[i].exponent;
        return true;
    }
    *ret_binary = false;
    return exponent_of(parts->suffix, parts->suffix_len, ret_exponent);
}

static int read_digits(const char *text, size_t len, __int128 *digits)
{
    for (size_t i = 0; i < len; i++)
        if (__builtin_mul_overflow(*digits, (__int128)10, digits) ||
            __builtin_add_overflow(*digits, (__int128)(text[i] - '0'), digits))
            return -ERANGE;
    return 0;
}

/* Rounds away from zero where digits lie below 1e-9. */
static void round_to_nano(struct cel_quantity *quantity)
{
    bool lost = false;

    while (quantity->scale < NANO && quantity->digits != 0) {
        lost = lost || quantity->digits % 10 != 0;
        quantity->digits /= 10;
        quantity->scale++;
        if (quantity->digits == 0 && lost)
            break;
    }
    if (quantity->scale < NANO)
        quantity->scale = NANO;
    if (lost)
        quantity->digits++;
}

static const struct cel_quantity LARGEST = {.digits = INT64_MAX, .wide = true};

/* What does not fit into upstream's int64 form. */
static int wide_quantity(const struct parts *parts, bool binary, int32_t exponent, __int128 digits,
                         struct cel_quantity *ret_quantity)
{
    struct cel_quantity wide = {digits, -(int64_t)parts->fraction_len, false, true};

    if (!binary)
        wide.scale += exponent;
    else if (__builtin_mul_overflow(digits, (__int128)1 << exponent, &wide.digits))
        return -ERANGE;
    round_to_nano(&wide);
    if (binary && cel_quantity_compare(&wide, &LARGEST) > 0)
        wide = LARGEST;
    if (parts->negative)
        wide.digits = -wide.digits;
    *ret_quantity = wide;
    return 0;
}

static bool narrow_quantity(const struct parts *parts, bool binary, int32_t exponent,
                            __int128 digits, struct cel_quantity *ret_quantity)
{
    size_t whole = parts->whole_len ? parts->whole_len : parts->fraction_len > 0 || parts->fraction;
    int64_t room = INT64_DIGITS - (int64_t)(whole + parts->fraction_len);
    int64_t scale = binary ? 0 : exponent;
    int64_t value;

    if (binary && parts->fraction_len)
        return false;
    if (binary)
        room = BINARY_DIGITS - (int64_t)whole - exponent * 3 / 10 - 1;
    scale -= (int64_t)parts->fraction_len;
    if (room < 0 || scale < NANO ||
        __builtin_mul_overflow((int64_t)digits, binary ? INT64_C(1) << exponent : 1, &value))
        return false;
    *ret_quantity = (struct cel_quantity){parts->negative ? -value : value, scale, false, false};
    return true;
}

int cel_quantity_parse(const char *text, size_t len, struct cel_quantity *ret_quantity)
{
    struct parts parts;
    bool binary;
    int32_t exponent;
    __int128 digits = 0;

    if (len == 0 || !split(text, len, &parts) || !suffix_of(&parts, &binary, &exponent))
        return -EINVAL;
    if (read_digits(parts.whole, parts.whole_len, &digits) < 0 ||
        read_digits(parts.fraction, parts.fraction_len, &digits) < 0)
        return -ERANGE;
    if (narrow_quantity(&parts, binary, exponent, digits, ret_quantity))
        return 0;
    // upstream takes "." and "Mi" for 0, but not "Ei", which its int64 form cannot hold
    if (!parts.whole_len && !parts.fraction_len && !memchr(text, '0', len))
        return -EINVAL;
    return wide_quantity(&parts, binary, exponent, digits, ret_quantity);
}

int cel_quantity_sign(const struct cel_quantity *quantity)
{
    return (quantity->digits > 0) - (quantity->digits < 0);
}

/* digits * 10^by; false when it does not fit. */
static bool scale_up(__int128 digits, int64_t by, __int128 *ret_digits)
{
    for (; by > 0 && digits != 0; by--)
        if (__builtin_mul_overflow(digits, (__int128)10, &digits))
            return false;
    *ret_digits = digits;
    return true;
}

int cel_quantity_compare(const struct cel_quantity *a, const struct cel_quantity *b)
{
    __int128 left = a->digits, right = b->digits;

    if (cel_quantity_sign(a) != cel_quantity_sign(b))
        return cel_quantity_sign(a) < cel_quantity_sign(b) ? -1 : 1;
    // one that cannot be brought to the other's scale is the larger in magnitude
    if (!scale_up(left, a->scale - b->scale, &left))
        return cel_quantity_sign(a);
    if (!scale_up(right, b->scale - a->scale, &right))
        return -cel_quantity_sign(a);
    return (left > right) - (left < right);
}

/* Whether upstream's sum stays in its int64 form. */
static bool stays_narrow(const struct cel_quantity *a, const struct cel_quantity *b)
{
    struct cel_quantity large = a->scale > b->scale ? *a : *b;
    struct cel_quantity small = a->scale > b->scale ? *b : *a;
    __int128 scaled;
    int64_t sum;

    if (a->wide || b->wide)
        return false;
    if (a->digits == 0 || b->digits == 0)
        return true;
    return scale_up(large.digits, large.scale - small.scale, &scaled) && scaled <= INT64_MAX &&
           scaled >= INT64_MIN &&
           !__builtin_add_overflow((int64_t)scaled, (int64_t)small.digits, &sum);
}

int cel_quantity_add(const struct cel_quantity *a, const struct cel_quantity *b,
                     struct cel_quantity *ret_sum)
{
    struct cel_quantity sum = {.wide = !stays_narrow(a, b), .computed = true};
    __int128 left, right;

    if (!sum.wide && (a->digits == 0 || b->digits == 0)) {
        *ret_sum = b->digits == 0 ? *a : *b;
        ret_sum->computed = true;
        return 0;
    }
    sum.scale = a->scale < b->scale ? a->scale : b->scale;
    if (!scale_up(a->digits, a->scale - sum.scale, &left) ||
        !scale_up(b->digits, b->scale - sum.scale, &right) ||
        __builtin_add_overflow(left, right, &sum.digits))
        return -ERANGE;
    *ret_sum = sum;
    return 0;
}

int cel_quantity_sub(const struct cel_quantity *a, const struct cel_quantity *b,
                     struct cel_quantity *ret_difference)
{
    struct cel_quantity negated = *b;

    // upstream negates in int64, where the smallest number stays what it is
    if (b->wide || b->digits != INT64_MIN || !stays_narrow(a, b))
        negated.digits = -negated.digits;
    if (negated.digits > INT64_MAX)
        negated.wide = true;
    return cel_quantity_add(a, &negated, ret_difference);
}

bool cel_quantity_integer(const struct cel_quantity *quantity, int64_t *ret_integer)
{
    __int128 value;

    if (quantity->wide || quantity->scale < 0 ||
        !scale_up(quantity->digits, quantity->scale, &value) || value > INT64_MAX ||
        value < INT64_MIN)
        return false;
    *ret_integer = (int64_t)value;
    return true;
}

double cel_quantity_real(const struct cel_quantity *quantity)
{
    char power[32];

    if (quantity->scale == 0)
        return (double)quantity->digits;
    snprintf(power, sizeof(power), "1e%lld", (long long)quantity->scale);
    return (double)quantity->digits * strtod(power, NULL);
}
