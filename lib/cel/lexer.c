// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/lexer.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/utf8.h"

struct lexer {
    struct cel_arena *arena;
    const char *text;
    size_t len;
    uint32_t at;
    struct drarun_error *err;
};

/* A place as people count: "line 2, column 7" or, on one line, "column 7". */
static const char *place_of(const char *text, uint32_t offset, char out[48])
{
    unsigned line = 1;
    uint32_t start = 0;
    bool lines = strchr(text, '\n') != NULL;

    for (uint32_t i = 0; i < offset && text[i]; i++) {
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    size_t column = cel_utf8_count(text + start, offset - start) + 1;
    if (lines)
        snprintf(out, 48, "line %u, column %zu", line, column);
    else
        snprintf(out, 48, "column %zu", column);
    return out;
}

int cel_error_at(struct drarun_error *err, const char *text, uint32_t offset, const char *format,
                 ...)
{
    char place[48], what[400];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "%s: %s", place_of(text, offset, place), what);
}

static char peek(const struct lexer *l, uint32_t ahead)
{
    return l->at + ahead < l->len ? l->text[l->at + ahead] : '\0';
}

static void skip_space(struct lexer *l)
{
    while (l->at < l->len) {
        char c = l->text[l->at];
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f')
            l->at++;
        else if (c == '/' && peek(l, 1) == '/')
            l->at += (uint32_t)strcspn(l->text + l->at, "\n");
        else
            return;
    }
}

static bool is_ident(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_base(struct lexer *l, int digits, int base, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (int i = 0; i < digits; i++) {
        int digit = hex_digit(peek(l, 0));
        if (digit < 0 || digit >= base)
            return cel_error_at(l->err, l->text, l->at, "the escape needs %d digits of base %d",
                                digits, base);
        value = value * (uint32_t)base + (uint32_t)digit;
        l->at++;
    }
    *ret_value = value;
    return 0;
}

/* What stands behind a backslash; appends it. */
static int take_escape(struct lexer *l, bool bytes, char *out, size_t *len)
{
    static const char plain[] = "abfnrtv\\?\"'`", meaning[] = "\a\b\f\n\r\t\v\\?\"'`";
    uint32_t begin = l->at - 1, value = 0;
    char c = peek(l, 0);
    const char *found = c ? strchr(plain, c) : NULL;
    bool point = c == 'u' || c == 'U';
    int rc;

    if (found) {
        l->at++;
        out[(*len)++] = meaning[found - plain];
        return 0;
    }
    if (point && bytes)
        return cel_error_at(l->err, l->text, begin, "\\%c has no meaning in bytes", c);
    if (c >= '0' && c <= '3') {
        rc = take_base(l, 3, 8, &value);
    } else if (point || c == 'x' || c == 'X') {
        l->at++;
        rc = take_base(l, c == 'U' ? 8 : c == 'u' ? 4 : 2, 16, &value);
    } else {
        return cel_error_at(l->err, l->text, begin, "no such escape in a string");
    }
    if (rc < 0)
        return rc;
    if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return cel_error_at(l->err, l->text, begin, "no such code point");
    if (bytes)
        out[(*len)++] = (char)value;
    else
        *len += cel_utf8_put(out + *len, value);
    return 0;
}

static bool ends_here(const struct lexer *l, char quote, bool triple)
{
    return peek(l, 0) == quote && (!triple || (peek(l, 1) == quote && peek(l, 2) == quote));
}

static int take_string(struct lexer *l, bool raw, bool bytes, struct cel_token *token)
{
    char quote = peek(l, 0);
    bool triple = peek(l, 1) == quote && peek(l, 2) == quote;
    char *out = cel_arena_alloc(l->arena, l->len - l->at + 8);
    size_t len = 0;

    if (!out)
        return error_set(l->err, ENOMEM, "out of memory");
    l->at += triple ? 3 : 1;
    while (!ends_here(l, quote, triple)) {
        if (l->at >= l->len || (!triple && (peek(l, 0) == '\n' || peek(l, 0) == '\r')))
            return cel_error_at(l->err, l->text, token->begin, "the string has no end");
        char c = l->text[l->at++];
        if (c == '\\' && !raw) {
            int rc = take_escape(l, bytes, out, &len);
            if (rc < 0)
                return rc;
        } else if (c == '\r') { // as cel-go: a line ends by \n alone
            out[len++] = '\n';
            l->at += peek(l, 0) == '\n';
        } else {
            out[len++] = c;
        }
    }
    l->at += triple ? 3 : 1;
    token->kind = CEL_TOKEN_LITERAL;
    token->value = cel_string(out, len);
    if (bytes)
        token->value.kind = CEL_BYTES;
    return 0;
}

/* r, R, b, B in any order before a quote; false: an identifier begins here. */
static bool string_prefix(const struct lexer *l, uint32_t *ret_length, bool *raw, bool *bytes)
{
    uint32_t n = 0;

    *raw = *bytes = false;
    for (; n < 2; n++) {
        char c = (char)(peek(l, n) | 0x20);
        if (c == 'r' && !*raw)
            *raw = true;
        else if (c == 'b' && !*bytes && !*raw)
            *bytes = true;
        else
            break;
    }
    *ret_length = n;
    return peek(l, n) == '"' || peek(l, n) == '\'';
}

static uint32_t count_digits(const struct lexer *l, uint32_t from)
{
    uint32_t n = from;

    while (isdigit((unsigned char)peek(l, n)))
        n++;
    return n - from;
}

/* Length of the fraction and exponent behind `whole` digits; 0: an integer. */
static uint32_t real_tail(const struct lexer *l, uint32_t whole)
{
    uint32_t n = whole, exponent;

    if (peek(l, n) == '.' && count_digits(l, n + 1))
        n += 1 + count_digits(l, n + 1);
    if ((peek(l, n) | 0x20) == 'e') {
        exponent = n + 1 + (peek(l, n + 1) == '+' || peek(l, n + 1) == '-');
        if (count_digits(l, exponent))
            n = exponent + count_digits(l, exponent);
    }
    return n - whole;
}

static int take_real(struct lexer *l, uint32_t length, struct cel_token *token)
{
    char digits[64];
    char *copy = length < sizeof(digits) ? digits : cel_arena_alloc(l->arena, length + 1);

    if (!copy)
        return error_set(l->err, ENOMEM, "out of memory");
    memcpy(copy, l->text + l->at, length);
    copy[length] = '\0';
    token->value = (struct cel_value){.kind = CEL_DOUBLE, .real = strtod(copy, NULL)};
    if (token->value.real > 1.7976931348623157e308)
        return cel_error_at(l->err, l->text, l->at, "the number is too large for a double");
    l->at += length;
    return 0;
}

static int take_integer(struct lexer *l, uint32_t length, int base, struct cel_token *token)
{
    uint64_t value = 0;
    uint32_t begin = l->at;

    for (uint32_t i = base == 16 ? 2 : 0; i < length; i++)
        if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)hex_digit(peek(l, i)), &value))
            return cel_error_at(l->err, l->text, begin, "the integer needs more than 64 bits");
    l->at += length;
    if ((peek(l, 0) | 0x20) == 'u') {
        l->at++;
        token->value = (struct cel_value){.kind = CEL_UINT, .uinteger = value};
        return 0;
    }
    token->smallest = value == UINT64_C(1) << 63;
    if (value > INT64_MAX && !token->smallest)
        return cel_error_at(l->err, l->text, begin, "the integer needs more than 64 bits");
    token->value = cel_int((int64_t)value);
    return 0;
}

static int take_number(struct lexer *l, struct cel_token *token)
{
    uint32_t whole = count_digits(l, 0), tail, n = 2;

    token->kind = CEL_TOKEN_LITERAL;
    if (peek(l, 0) == '0' && peek(l, 1) == 'x' && hex_digit(peek(l, 2)) >= 0) {
        while (hex_digit(peek(l, n)) >= 0)
            n++;
        return take_integer(l, n, 16, token);
    }
    tail = real_tail(l, whole);
    return tail ? take_real(l, whole + tail, token) : take_integer(l, whole, 10, token);
}

static bool is_word(const char *word, size_t len, const char *const words[])
{
    for (; *words; words++)
        if (strlen(*words) == len && memcmp(*words, word, len) == 0)
            return true;
    return false;
}

static void take_ident(struct lexer *l, struct cel_token *token)
{
    static const char *const reserved[] = {
        "as",  "break", "const",   "continue",  "else",   "for", "function", "if",    "import",
        "let", "loop",  "package", "namespace", "return", "var", "void",     "while", NULL};
    const char *word = l->text + l->at;
    size_t len = 1;

    while (is_ident(peek(l, (uint32_t)len), false))
        len++;
    l->at += (uint32_t)len;
    token->kind = CEL_TOKEN_LITERAL;
    if (is_word(word, len, (const char *const[]){"true", "false", NULL})) {
        token->value = cel_bool(len == 4);
    } else if (is_word(word, len, (const char *const[]){"null", NULL})) {
        token->value = (struct cel_value){.kind = CEL_NULL};
    } else if (is_word(word, len, (const char *const[]){"in", NULL})) {
        token->kind = CEL_TOKEN_MARK;
        memcpy(token->mark, "in", 3);
    } else {
        token->kind = CEL_TOKEN_IDENT;
        token->reserved = is_word(word, len, reserved);
        token->value = cel_string(cel_arena_copy(l->arena, word, len), len);
    }
}

static int take_mark(struct lexer *l, struct cel_token *token)
{
    static const char *const marks[] = {"&&", "||", "==", "!=", "<=", ">=", NULL};
    char pair[3] = {peek(l, 0), peek(l, 1), '\0'};

    token->kind = CEL_TOKEN_MARK;
    if (is_word(pair, 2, marks)) {
        memcpy(token->mark, pair, 3);
        l->at += 2;
        return 0;
    }
    if (strchr("<>!+-*/%?:.,()[]{}", pair[0])) {
        token->mark[0] = pair[0];
        l->at++;
        return 0;
    }
    if (pair[0] == '`')
        return cel_error_at(l->err, l->text, l->at, "not supported: names in backquotes");
    if (isprint((unsigned char)pair[0]))
        return cel_error_at(l->err, l->text, l->at, "'%c' is not part of CEL", pair[0]);
    return cel_error_at(l->err, l->text, l->at, "byte 0x%02x is not part of CEL",
                        (unsigned char)pair[0]);
}

int cel_lex(struct cel_arena *arena, const char *text, size_t len, uint32_t at,
            struct cel_token *ret_token, struct drarun_error *err)
{
    struct lexer l = {arena, text, len, at, err};
    struct cel_token token = {0};
    uint32_t prefix;
    bool raw, bytes;
    int rc = 0;

    skip_space(&l);
    token.begin = token.end = l.at;
    if (l.at >= len) {
        *ret_token = token;
        return 0;
    }
    if (string_prefix(&l, &prefix, &raw, &bytes)) {
        l.at += prefix;
        rc = take_string(&l, raw, bytes, &token);
    } else if (is_ident(peek(&l, 0), true)) {
        take_ident(&l, &token);
    } else if (isdigit((unsigned char)peek(&l, 0)) ||
               (peek(&l, 0) == '.' && isdigit((unsigned char)peek(&l, 1)))) {
        rc = take_number(&l, &token);
    } else {
        rc = take_mark(&l, &token);
    }
    if (rc < 0)
        return rc;
    token.end = l.at;
    *ret_token = token;
    return 0;
}
