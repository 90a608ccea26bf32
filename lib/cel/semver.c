// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/semver.h"

#include <errno.h>
#include <string.h>

struct piece {
    const char *data;
    size_t len;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool all_digits(const struct piece *piece)
{
    for (size_t i = 0; i < piece->len; i++)
        if (!is_digit(piece->data[i]))
            return false;
    return true;
}

static bool is_word(const struct piece *piece)
{
    for (size_t i = 0; i < piece->len; i++) {
        char c = piece->data[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-')
            return false;
    }
    return piece->len > 0;
}

/* Decimal without leading zeros. */
static bool number_of(const struct piece *piece, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (piece->len == 0 || !all_digits(piece) || (piece->len > 1 && piece->data[0] == '0'))
        return false;
    for (size_t i = 0; i < piece->len; i++)
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(piece->data[i] - '0'), &number))
            return false;
    *ret_number = number;
    return true;
}

/* Takes what stands before the separator off *rest; all of it where there is none. */
static struct piece take(struct piece *rest, char separator, bool *ret_more)
{
    const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
    struct piece first = {rest->data, end ? (size_t)(end - rest->data) : rest->len};

    *ret_more = end != NULL;
    rest->data += first.len + (end != NULL);
    rest->len -= first.len + (end != NULL);
    return first;
}

static bool check_pieces(struct piece list, bool numbers_strict)
{
    bool more = true;

    while (more) {
        struct piece piece = take(&list, '.', &more);
        uint64_t number;
        if (!is_word(&piece) ||
            (numbers_strict && all_digits(&piece) && !number_of(&piece, &number)))
            return false;
    }
    return true;
}

static int parse_strict(struct piece rest, struct cel_semver *ret_version)
{
    struct cel_semver version = {0};
    struct piece major, minor, pre, patch;
    bool more, has_build, has_pre;

    major = take(&rest, '.', &more);
    if (!more)
        return -EINVAL;
    minor = take(&rest, '.', &more);
    if (!more)
        return -EINVAL;
    pre = take(&rest, '+', &has_build); // what is left of rest is the build metadata
    patch = take(&pre, '-', &has_pre);
    if (!number_of(&major, &version.major) || !number_of(&minor, &version.minor) ||
        !number_of(&patch, &version.patch))
        return -EINVAL;
    if ((has_pre && !check_pieces(pre, true)) || (has_build && !check_pieces(rest, false)))
        return -EINVAL;
    version.pre = pre.data;
    version.pre_len = has_pre ? pre.len : 0;
    *ret_version = version;
    return 0;
}

/* Appends the part without its leading zeros. */
static size_t put_part(char *out, struct piece part)
{
    size_t put = 0;

    if (part.len > 1) {
        while (part.len && part.data[0] == '0') {
            part.data++;
            part.len--;
        }
        if (part.len == 0 || !is_digit(part.data[0]))
            out[put++] = '0';
    }
    if (part.len)
        memcpy(out + put, part.data, part.len);
    return put + part.len;
}

static int normalized(struct cel_arena *arena, struct piece *text)
{
    struct piece rest = *text;
    char *out = cel_arena_alloc(arena, text->len + 8);
    size_t len = 0;
    bool more = true;

    if (!out)
        return -ENOMEM;
    if (rest.len && rest.data[0] == 'v') {
        rest.data++;
        rest.len--;
    }
    for (int part = 0; part < 3; part++) {
        struct piece piece = {"0", 1};
        if (more && part == 2)
            piece = rest;
        else if (more) {
            piece = take(&rest, '.', &more);
            if (!more && (memchr(piece.data, '+', piece.len) || memchr(piece.data, '-', piece.len)))
                return -EINVAL;
        }
        if (part)
            out[len++] = '.';
        len += put_part(out + len, piece);
    }
    *text = (struct piece){out, len};
    return 0;
}

int cel_semver_parse(struct cel_arena *arena, const char *text, size_t len, bool normalize,
                     struct cel_semver *ret_version)
{
    struct piece piece = {text, len};
    struct cel_semver version;
    int rc = normalize ? normalized(arena, &piece) : 0;

    if (rc == 0)
        rc = parse_strict(piece, &version);
    if (rc < 0)
        return rc;
    version.pre = cel_arena_copy(arena, version.pre, version.pre_len);
    if (!version.pre)
        return -ENOMEM;
    *ret_version = version;
    return 0;
}

static int number_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int piece_order(const struct piece *a, const struct piece *b)
{
    uint64_t x, y;
    bool x_number = number_of(a, &x), y_number = number_of(b, &y);
    size_t len = a->len < b->len ? a->len : b->len;
    int order;

    if (x_number != y_number)
        return x_number ? -1 : 1;
    if (x_number)
        return number_order(x, y);
    order = memcmp(a->data, b->data, len);
    return order ? (order > 0) - (order < 0) : number_order(a->len, b->len);
}

static int pre_order(struct piece a, struct piece b)
{
    bool more_a = true, more_b = true;

    while (more_a && more_b) {
        struct piece x = take(&a, '.', &more_a), y = take(&b, '.', &more_b);
        int order = piece_order(&x, &y);
        if (order)
            return order;
    }
    return more_a - more_b;
}

int cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b)
{
    int order = number_order(a->major, b->major);

    if (!order)
        order = number_order(a->minor, b->minor);
    if (!order)
        order = number_order(a->patch, b->patch);
    if (order)
        return order;
    if (!a->pre_len || !b->pre_len)
        return (a->pre_len == 0) - (b->pre_len == 0);
    return pre_order((struct piece){a->pre, a->pre_len}, (struct piece){b->pre, b->pre_len});
}
