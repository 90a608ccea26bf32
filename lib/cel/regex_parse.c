// SPDX-License-Identifier: Apache-2.0
// RE2's syntax as Go's regexp/syntax reads it with its Perl flags.
#include "lib/cel/regex_parse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/utf8.h"

enum { MAX_DEPTH = 200, MAX_REPEAT = 1000 };

struct flags {
    bool fold, lines, all; /* i, m, s */
};

struct reader {
    struct cel_arena *arena;
    const char *text;
    size_t len, at;
    unsigned depth;
    struct flags flags;
    struct drarun_error *err;
};

static int parse_alternatives(struct reader *r, struct rx_node **ret_node);

static int bad(struct reader *r, const char *what)
{
    return error_set(r->err, EINVAL, "the pattern \"%.*s\" has %s at character %zu",
                     r->len > 60 ? 60 : (int)r->len, r->text, what,
                     cel_utf8_count(r->text, r->at) + 1);
}

static struct rx_node *new_node(struct reader *r, enum rx_kind kind, struct rx_node *left,
                                struct rx_node *right)
{
    struct rx_node *node = cel_arena_alloc(r->arena, sizeof(*node));

    if (!node) {
        error_set(r->err, ENOMEM, "out of memory");
        return NULL;
    }
    node->kind = kind;
    node->left = left;
    node->right = right;
    node->repeats = left ? left->repeats : 1;
    if (right && right->repeats > node->repeats)
        node->repeats = right->repeats;
    return node;
}

static int peek(const struct reader *r, size_t ahead)
{
    return r->at + ahead < r->len ? (unsigned char)r->text[r->at + ahead] : -1;
}

static bool take(struct reader *r, const char *text)
{
    size_t len = strlen(text);

    if (r->len - r->at < len || memcmp(r->text + r->at, text, len) != 0)
        return false;
    r->at += len;
    return true;
}

static bool add_range(struct reader *r, struct rx_class *class, uint32_t low, uint32_t high)
{
    if (class->count == class->cap) {
        size_t cap = class->cap ? 2 * class->cap : 4;
        struct rx_range *grown = cel_arena_alloc(r->arena, cap * sizeof(*grown));
        if (!grown)
            return false;
        if (class->count)
            memcpy(grown, class->ranges, class->count * sizeof(*grown));
        class->ranges = grown;
        class->cap = cap;
    }
    class->ranges[class->count++] = (struct rx_range){low, high};
    return true;
}

/* The ranges, or what lies between them. */
static bool add_ranges(struct reader *r, struct rx_class *class, const struct rx_range *ranges,
                       size_t count, bool negated)
{
    uint32_t next = 0;

    for (size_t i = 0; i < count; i++) {
        if (!negated && !add_range(r, class, ranges[i].low, ranges[i].high))
            return false;
        if (negated && ranges[i].low > next && !add_range(r, class, next, ranges[i].low - 1))
            return false;
        next = ranges[i].high + 1;
    }
    return !negated || add_range(r, class, next, 0x10ffff);
}

/* Sorted ranges of the classes that have names. */
static const struct named {
    const char *name; /* of [[:name:]], or one letter of a backslash */
    struct rx_range ranges[5];
    size_t count;
} NAMED[] = {
    {"d", {{'0', '9'}}, 1},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 0x7f}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

static const struct named *find_named(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(NAMED) / sizeof(NAMED[0]); i++)
        if (strlen(NAMED[i].name) == len && memcmp(NAMED[i].name, name, len) == 0)
            return &NAMED[i];
    return NULL;
}

/* A class such as \d or \W at a backslash: 1 when it was one. */
static int take_perl_class(struct reader *r, struct rx_class *class)
{
    int c = peek(r, 1);
    char lower = (char)(c | 0x20);
    const struct named *named;

    if (peek(r, 0) != '\\' || c < 0 || !strchr("dDsSwW", c))
        return 0;
    named = find_named(&lower, 1);
    if (!add_ranges(r, class, named->ranges, named->count, c != lower))
        return error_set(r->err, ENOMEM, "out of memory");
    r->at += 2;
    return 1;
}

static int hex(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* behind "\x" */
static int take_hex(struct reader *r, uint32_t *ret_point)
{
    uint32_t value = 0;

    if (take(r, "{")) {
        if (hex(peek(r, 0)) < 0)
            return bad(r, "an escape that is none");
        while (hex(peek(r, 0)) >= 0 && value <= 0x10ffff)
            value = value * 16 + (uint32_t)hex((unsigned char)r->text[r->at++]);
        if (value > 0x10ffff || !take(r, "}"))
            return bad(r, "an escape that is none");
    } else {
        if (hex(peek(r, 0)) < 0 || hex(peek(r, 1)) < 0)
            return bad(r, "an escape that is none");
        value = (uint32_t)(hex(peek(r, 0)) * 16 + hex(peek(r, 1)));
        r->at += 2;
    }
    *ret_point = value;
    return 0;
}

/* A single code point behind a backslash. */
static int take_escape(struct reader *r, uint32_t *ret_point)
{
    static const char letters[] = "afnrtv", meaning[] = "\a\f\n\r\t\v";
    int c = peek(r, 1);
    bool octal = c == '0' || (c >= '1' && c <= '7' && peek(r, 2) >= '0' && peek(r, 2) <= '7');
    uint32_t value = 0;

    if (c < 0)
        return bad(r, "a backslash with nothing behind it");
    if (c == 'p' || c == 'P' || c == 'C' || c == 'Q')
        return bad(r, c == 'C' || c == 'Q' ? "\\C or \\Q, which is not supported,"
                                           : "\\p, which is not supported,");
    r->at++;
    if (octal) {
        for (int i = 0; i < 3 && peek(r, 0) >= '0' && peek(r, 0) <= '7'; i++)
            value = value * 8 + (uint32_t)(r->text[r->at++] - '0');
        *ret_point = value;
        return 0;
    }
    if (c == 'x') {
        r->at++;
        return take_hex(r, ret_point);
    }
    if (strchr(letters, c)) {
        r->at++;
        *ret_point = (uint32_t)(unsigned char)meaning[strchr(letters, c) - letters];
        return 0;
    }
    if (c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
        return bad(r, "an escape that is none");
    *ret_point = cel_utf8_next(r->text, r->len, &r->at);
    return 0;
}

static int take_point(struct reader *r, uint32_t *ret_point)
{
    if (peek(r, 0) == '\\')
        return take_escape(r, ret_point);
    if (r->at >= r->len)
        return bad(r, "a class without its \"]\"");
    *ret_point = cel_utf8_next(r->text, r->len, &r->at);
    return 0;
}

/* [:alpha:] inside of a class: 1 when it was one. */
static int take_posix_class(struct reader *r, struct rx_class *class)
{
    const char *name = r->text + r->at + 2, *end;
    const struct named *named;
    bool negated;

    if (peek(r, 0) != '[' || peek(r, 1) != ':')
        return 0;
    end = memmem(name, r->len - r->at - 2, ":]", 2);
    if (!end)
        return 0;
    negated = end > name && *name == '^';
    name += negated;
    named = end - name > 1 ? find_named(name, (size_t)(end - name)) : NULL;
    if (!named)
        return bad(r, "an unknown class");
    if (!add_ranges(r, class, named->ranges, named->count, negated))
        return error_set(r->err, ENOMEM, "out of memory");
    r->at = (size_t)(end + 2 - r->text);
    return 1;
}

static int take_range(struct reader *r, struct rx_class *class)
{
    uint32_t low, high;
    int rc = take_point(r, &low);

    if (rc < 0)
        return rc;
    high = low;
    if (peek(r, 0) == '-' && peek(r, 1) != ']' && peek(r, 1) >= 0) {
        r->at++;
        rc = take_point(r, &high);
        if (rc < 0)
            return rc;
        if (high < low)
            return bad(r, "a range whose end lies before its begin");
    }
    return add_range(r, class, low, high) ? 0 : error_set(r->err, ENOMEM, "out of memory");
}

static int parse_class(struct reader *r, struct rx_node **ret_node)
{
    struct rx_node *node = new_node(r, RX_CLASS, NULL, NULL);
    bool first = true;

    if (!node)
        return -ENOMEM;
    node->class.fold = r->flags.fold;
    r->at++;
    node->class.negated = take(r, "^");
    while (first || peek(r, 0) != ']') {
        int rc = peek(r, 0) < 0 ? bad(r, "a class without its \"]\"") : 0;
        if (rc == 0)
            rc = take_posix_class(r, &node->class);
        if (rc == 0)
            rc = take_perl_class(r, &node->class);
        if (rc == 0)
            rc = take_range(r, &node->class);
        if (rc < 0)
            return rc;
        first = false;
    }
    r->at++;
    *ret_node = node;
    return 0;
}

static int one_of(struct reader *r, uint32_t low, uint32_t high, struct rx_node **ret_node)
{
    struct rx_node *node = new_node(r, RX_CLASS, NULL, NULL);

    if (!node || !add_range(r, &node->class, low, high))
        return error_set(r->err, ENOMEM, "out of memory");
    node->class.fold = r->flags.fold;
    *ret_node = node;
    return 0;
}

static int any_point(struct reader *r, struct rx_node **ret_node)
{
    int rc = one_of(r, '\n', '\n', ret_node);

    r->at++;
    if (rc == 0) {
        (*ret_node)->class.negated = true;
        if (r->flags.all)
            (*ret_node)->class.count = 0;
    }
    return rc;
}

static int assertion(struct reader *r, enum rx_assertion which, size_t length,
                     struct rx_node **ret_node)
{
    *ret_node = new_node(r, RX_ASSERT, NULL, NULL);
    if (!*ret_node)
        return -ENOMEM;
    (*ret_node)->assertion = which;
    r->at += length;
    return 0;
}

/* Behind "(?": flags up to ":" or ")". */
static int take_flags(struct reader *r, bool *ret_group)
{
    struct flags flags = r->flags;
    bool value = true, any = false;

    for (;; r->at++) {
        int c = peek(r, 0);
        if (c == 'i')
            flags.fold = value;
        else if (c == 'm')
            flags.lines = value;
        else if (c == 's')
            flags.all = value;
        else if (c == '-' && value)
            value = any = false;
        else if ((c == ':' || c == ')') && (value || any))
            break;
        else if (c != 'U') // which of the matches is of no interest here
            return bad(r, "a group of unknown kind");
        any = any || c != '-';
    }
    *ret_group = peek(r, 0) == ':';
    r->at++;
    r->flags = flags;
    return 0;
}

static int take_name(struct reader *r)
{
    size_t begin = r->at;

    while (peek(r, 0) == '_' || (peek(r, 0) >= '0' && peek(r, 0) <= '9') ||
           ((peek(r, 0) | 0x20) >= 'a' && (peek(r, 0) | 0x20) <= 'z'))
        r->at++;
    return r->at > begin && take(r, ">") ? 0 : bad(r, "a group with a bad name");
}

static int parse_group(struct reader *r, struct rx_node **ret_node)
{
    struct flags outer = r->flags;
    bool group = true;
    int rc = 0;

    r->at++;
    if (++r->depth > MAX_DEPTH)
        return bad(r, "groups nested too deep");
    if (take(r, "?P<") || take(r, "?<"))
        rc = take_name(r);
    else if (take(r, "?"))
        rc = take_flags(r, &group);
    if (rc < 0)
        return rc;
    if (!group) { // "(?i)" holds up to the end of the group around it
        r->depth--;
        *ret_node = new_node(r, RX_EMPTY, NULL, NULL);
        return *ret_node ? 0 : -ENOMEM;
    }
    rc = parse_alternatives(r, ret_node);
    if (rc < 0)
        return rc;
    r->depth--;
    r->flags = outer;
    return take(r, ")") ? 0 : bad(r, "a group without its \")\"");
}

static int parse_backslash(struct reader *r, struct rx_node **ret_node)
{
    uint32_t point;
    int rc;

    switch (peek(r, 1)) {
    case 'A':
        return assertion(r, RX_BEGIN, 2, ret_node);
    case 'z':
        return assertion(r, RX_END, 2, ret_node);
    case 'b':
        return assertion(r, RX_WORD, 2, ret_node);
    case 'B':
        return assertion(r, RX_NOT_WORD, 2, ret_node);
    default:
        break;
    }
    rc = one_of(r, 0, 0, ret_node);
    if (rc < 0)
        return rc;
    (*ret_node)->class.count = 0;
    rc = take_perl_class(r, &(*ret_node)->class);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = take_escape(r, &point);
    return rc < 0 ? rc : one_of(r, point, point, ret_node);
}

static int parse_atom(struct reader *r, struct rx_node **ret_node)
{
    uint32_t point;

    switch (peek(r, 0)) {
    case '(':
        return parse_group(r, ret_node);
    case '[':
        return parse_class(r, ret_node);
    case '.':
        return any_point(r, ret_node);
    case '^':
        return assertion(r, r->flags.lines ? RX_LINE_BEGIN : RX_BEGIN, 1, ret_node);
    case '$':
        return assertion(r, r->flags.lines ? RX_LINE_END : RX_END, 1, ret_node);
    case '\\':
        return parse_backslash(r, ret_node);
    case '*':
    case '+':
    case '?':
        return bad(r, "a repetition of nothing");
    default:
        point = cel_utf8_next(r->text, r->len, &r->at);
        return one_of(r, point, point, ret_node);
    }
}

static bool take_number(struct reader *r, int *ret_number)
{
    int number = 0;

    if (peek(r, 0) < '0' || peek(r, 0) > '9')
        return false;
    while (peek(r, 0) >= '0' && peek(r, 0) <= '9') {
        if (number <= MAX_REPEAT)
            number = number * 10 + (r->text[r->at] - '0');
        r->at++;
    }
    *ret_number = number;
    return true;
}

/* {3}, {3,}, {3,5}; anything else is text. */
static bool take_braces(struct reader *r, int *min, int *max)
{
    size_t begin = r->at++;

    if (take_number(r, min)) {
        *max = *min;
        if (take(r, ",") && !take_number(r, max))
            *max = -1;
        if (take(r, "}"))
            return true;
    }
    r->at = begin;
    return false;
}

static bool take_repeat(struct reader *r, int *min, int *max)
{
    int c = peek(r, 0);

    if (c == '{')
        return take_braces(r, min, max);
    if (c != '*' && c != '+' && c != '?')
        return false;
    r->at++;
    *min = c == '+';
    *max = c == '?' ? 1 : -1;
    return true;
}

/* What repeats nothing, or never, is nothing: an automaton would be made of it again and again
 * without growing to its limit. */
static struct rx_node *new_repeat(struct reader *r, struct rx_node *of, int min, int max)
{
    assert(of);
    bool empty = of->kind == RX_EMPTY || max == 0;
    struct rx_node *repeat = new_node(r, empty ? RX_EMPTY : RX_REPEAT, of, NULL);
    int most = max < 0 ? min : max;

    if (!repeat)
        return NULL;
    repeat->min = min;
    repeat->max = max;
    if (most > 1)
        repeat->repeats *= most;
    return repeat;
}

static int parse_repeated(struct reader *r, struct rx_node **ret_node)
{
    int min = 0, max = 0, rc = parse_atom(r, ret_node);
    struct rx_node *repeat;

    if (rc < 0 || !take_repeat(r, &min, &max))
        return rc;
    if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
        return bad(r, "a repetition out of bounds");
    take(r, "?"); // the shortest match is a match, too
    repeat = new_repeat(r, *ret_node, min, max);
    if (!repeat)
        return -ENOMEM;
    if (repeat->repeats > MAX_REPEAT) // as RE2 and Go
        return bad(r, "repetitions within repetitions, more than 1000 in all,");
    *ret_node = repeat;
    return take_repeat(r, &min, &max) ? bad(r, "a repetition of a repetition") : 0;
}

static struct rx_node *follow(struct reader *r, struct rx_node *before, struct rx_node *next)
{
    assert(before && next);
    bool first_empty = before->kind == RX_EMPTY;
    struct rx_node *kept = first_empty ? next : before, *gone = first_empty ? before : next;

    if (gone->kind != RX_EMPTY)
        return new_node(r, RX_CAT, before, next);
    if (gone->repeats > kept->repeats) // of nothing, and yet within a limit
        kept->repeats = gone->repeats;
    return kept;
}

static int parse_sequence(struct reader *r, struct rx_node **ret_node)
{
    struct rx_node *sequence = new_node(r, RX_EMPTY, NULL, NULL);

    while (sequence && r->at < r->len && peek(r, 0) != '|' && peek(r, 0) != ')') {
        struct rx_node *next = NULL;
        int rc = parse_repeated(r, &next);
        if (rc < 0)
            return rc;
        sequence = follow(r, sequence, next);
    }
    *ret_node = sequence;
    return sequence ? 0 : -ENOMEM;
}

static int parse_alternatives(struct reader *r, struct rx_node **ret_node)
{
    int rc = parse_sequence(r, ret_node);

    while (rc == 0 && take(r, "|")) {
        struct rx_node *left = *ret_node, *right;
        rc = parse_sequence(r, &right);
        if (rc == 0 && !(*ret_node = new_node(r, RX_ALT, left, right)))
            rc = -ENOMEM;
    }
    return rc;
}

int rx_parse(struct cel_arena *arena, const char *pattern, size_t len, struct rx_node **ret_root,
             struct drarun_error *err)
{
    struct reader r = {.arena = arena, .text = pattern, .len = len, .err = err};
    int rc = cel_utf8_valid(pattern, len) ? parse_alternatives(&r, ret_root)
                                          : bad(&r, "text that is not UTF-8");

    if (rc == 0 && r.at < r.len)
        rc = bad(&r, "a \")\" too many");
    return rc;
}
