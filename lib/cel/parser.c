// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/parser.h"

#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/lexer.h"
#include "lib/cel/utf8.h"

static int parse_expression(struct cel_parser *p, struct cel_node **ret_node);
static int parse_unary(struct cel_parser *p, struct cel_node **ret_node);

struct cel_node *cel_node_new(struct cel_parser *p, enum cel_node_kind kind, uint32_t begin,
                              const char *name, size_t count)
{
    struct cel_node *node = cel_arena_alloc(p->arena, sizeof(*node));

    if (!node)
        return NULL;
    node->kind = kind;
    node->begin = begin;
    node->end = p->last_end;
    node->name = name;
    node->count = count;
    node->args = count ? cel_arena_alloc(p->arena, count * sizeof(struct cel_node *)) : NULL;
    return node->args || !count ? node : NULL;
}

static int no_memory(struct cel_parser *p)
{
    return error_set(p->err, ENOMEM, "out of memory");
}

static int advance(struct cel_parser *p)
{
    p->last_end = p->token->end;
    return cel_lex(p->arena, p->text, p->len, p->token->end, p->token, p->err);
}

static bool at_mark(const struct cel_parser *p, const char *mark)
{
    return p->token->kind == CEL_TOKEN_MARK && strcmp(p->token->mark, mark) == 0;
}

/* 1 and behind the mark, 0 when another token stands there. */
static int take_mark(struct cel_parser *p, const char *mark)
{
    int rc;

    if (!at_mark(p, mark))
        return 0;
    rc = advance(p);
    return rc < 0 ? rc : 1;
}

static int unexpected(struct cel_parser *p, const char *wanted)
{
    const struct cel_token *t = p->token;

    if (t->kind == CEL_TOKEN_END)
        return cel_error_at(p->err, p->text, t->begin, "the expression ends where %s should stand",
                            wanted);
    return cel_error_at(p->err, p->text, t->begin, "expected %s, got \"%.*s\"", wanted,
                        (int)(t->end - t->begin), p->text + t->begin);
}

static int expect(struct cel_parser *p, const char *mark)
{
    char wanted[8] = {'"', mark[0], mark[1], '"'};
    int rc = take_mark(p, mark);

    if (!mark[1])
        memcpy(wanted, (char[]){'"', mark[0], '"', '\0'}, 4);
    return rc == 0 ? unexpected(p, wanted) : rc < 0 ? rc : 0;
}

/* A list of arguments that grows; taken over into the arena at its end. */
struct collect {
    struct cel_node **items;
    bool *optional;
    size_t count, cap;
    bool any_optional;
};

static int collect_add(struct cel_parser *p, struct collect *c, struct cel_node *node,
                       bool optional)
{
    if (c->count == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 4;
        struct cel_node **items = cel_arena_alloc(p->arena, cap * sizeof(*items));
        bool *flags = cel_arena_alloc(p->arena, cap);
        if (!items || !flags)
            return no_memory(p);
        if (c->count) {
            memcpy(items, c->items, c->count * sizeof(*items));
            memcpy(flags, c->optional, c->count);
        }
        c->items = items;
        c->optional = flags;
        c->cap = cap;
    }
    c->optional[c->count] = optional;
    c->any_optional = c->any_optional || optional;
    c->items[c->count++] = node;
    return 0;
}

static int node_of(struct cel_parser *p, enum cel_node_kind kind, uint32_t begin, const char *name,
                   const struct collect *c, struct cel_node **ret_node)
{
    struct cel_node *node = cel_node_new(p, kind, begin, name, 0);

    if (!node)
        return no_memory(p);
    node->args = c->items;
    node->count = c->count;
    node->optional_args = c->any_optional ? c->optional : NULL;
    *ret_node = node;
    return 0;
}

/* Items up to the closing mark. entries: "key: value" pairs; flags: "?" may precede one. */
static int parse_items(struct cel_parser *p, struct collect *c, const char *close, bool entries,
                       bool flags)
{
    int rc;

    while ((rc = take_mark(p, close)) == 0) {
        struct cel_node *node = NULL;
        bool optional = false;
        if (c->count && (rc = expect(p, ",")) < 0)
            return rc;
        // cel-go's lists and maps may end in a comma, calls may not
        if (c->count && flags && (rc = take_mark(p, close)) != 0)
            break;
        if (flags && (rc = take_mark(p, "?")) < 0)
            return rc;
        optional = flags && rc > 0;
        if ((rc = parse_expression(p, &node)) < 0 || (rc = collect_add(p, c, node, optional)) < 0)
            return rc;
        if (!entries)
            continue;
        if ((rc = expect(p, ":")) < 0 || (rc = parse_expression(p, &node)) < 0 ||
            (rc = collect_add(p, c, node, optional)) < 0)
            return rc;
    }
    return rc < 0 ? rc : 0;
}

static int parse_bracketed(struct cel_parser *p, uint32_t begin, bool map,
                           struct cel_node **ret_node)
{
    struct collect c = {0};
    int rc = advance(p);

    if (rc == 0)
        rc = parse_items(p, &c, map ? "}" : "]", map, true);
    return rc < 0 ? rc : node_of(p, map ? CEL_NODE_MAP : CEL_NODE_LIST, begin, NULL, &c, ret_node);
}

static int parse_call(struct cel_parser *p, uint32_t begin, const char *name,
                      struct cel_node *target, struct cel_node **ret_node)
{
    struct collect c = {0};
    int rc = target ? collect_add(p, &c, target, false) : 0;

    if (rc == 0)
        rc = advance(p);
    if (rc < 0)
        return rc;
    if (target) { // the comma rule counts from the first argument
        struct collect args = {0};
        rc = parse_items(p, &args, ")", false, false);
        for (size_t i = 0; rc == 0 && i < args.count; i++)
            rc = collect_add(p, &c, args.items[i], false);
    } else {
        rc = parse_items(p, &c, ")", false, false);
    }
    if (rc == 0)
        rc = node_of(p, CEL_NODE_CALL, begin, name, &c, ret_node);
    if (rc < 0)
        return rc;
    (*ret_node)->member = target != NULL;
    return cel_expand_macro(p, ret_node);
}

static int parse_literal(struct cel_parser *p, bool negative, uint32_t begin,
                         struct cel_node **ret_node)
{
    struct cel_token token = *p->token;
    struct cel_node *node;
    int rc;

    if (token.smallest && !negative)
        return cel_error_at(p->err, p->text, token.begin, "the integer needs more than 64 bits");
    if (negative && token.value.kind == CEL_INT && !token.smallest)
        token.value.integer = -token.value.integer;
    else if (negative && token.value.kind == CEL_DOUBLE)
        token.value.real = -token.value.real;
    rc = advance(p);
    if (rc < 0)
        return rc;
    node = cel_node_new(p, CEL_NODE_LITERAL, begin, NULL, 0);
    if (!node)
        return no_memory(p);
    node->value = token.value;
    *ret_node = node;
    return 0;
}

/* An identifier or the call of a function. */
static int parse_name(struct cel_parser *p, uint32_t begin, struct cel_node **ret_node)
{
    const char *name = p->token->value.text.data;
    int rc;

    if (p->token->kind != CEL_TOKEN_IDENT)
        return unexpected(p, "a name");
    if (p->token->reserved)
        return cel_error_at(p->err, p->text, p->token->begin, "\"%s\" is a reserved word", name);
    rc = advance(p);
    if (rc < 0)
        return rc;
    if (at_mark(p, "("))
        return parse_call(p, begin, name, NULL, ret_node);
    if (at_mark(p, "{"))
        return cel_error_at(p->err, p->text, begin, "not supported: messages such as %s{...}",
                            name);
    *ret_node = cel_node_new(p, CEL_NODE_IDENT, begin, name, 0);
    return *ret_node ? 0 : no_memory(p);
}

static int parse_global(struct cel_parser *p, uint32_t begin, struct cel_node **ret_node)
{
    int rc = advance(p);

    if (rc == 0)
        rc = parse_name(p, begin, ret_node);
    if (rc == 0 && (*ret_node)->kind == CEL_NODE_IDENT)
        (*ret_node)->global = true;
    return rc;
}

static int parse_primary(struct cel_parser *p, struct cel_node **ret_node)
{
    uint32_t begin = p->token->begin;
    int rc;

    if (p->token->kind == CEL_TOKEN_LITERAL)
        return parse_literal(p, false, begin, ret_node);
    if (at_mark(p, "["))
        return parse_bracketed(p, begin, false, ret_node);
    if (at_mark(p, "{"))
        return parse_bracketed(p, begin, true, ret_node);
    if (at_mark(p, "."))
        return parse_global(p, begin, ret_node);
    if (!at_mark(p, "("))
        return p->token->kind == CEL_TOKEN_IDENT ? parse_name(p, begin, ret_node)
                                                 : unexpected(p, "a value");
    rc = advance(p);
    if (rc == 0)
        rc = parse_expression(p, ret_node);
    if (rc == 0)
        rc = expect(p, ")");
    if (rc < 0)
        return rc;
    (*ret_node)->begin = begin;
    (*ret_node)->end = p->last_end;
    return 0;
}

static int parse_select(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *select, *target = *node;
    const char *name;
    uint32_t begin = target->begin;
    int optional, rc = advance(p);

    optional = rc < 0 ? rc : take_mark(p, "?");
    if (optional < 0)
        return optional;
    if (p->token->kind != CEL_TOKEN_IDENT)
        return unexpected(p, "the name of a field");
    name = p->token->value.text.data;
    rc = advance(p);
    if (rc < 0)
        return rc;
    if (at_mark(p, "(") && !optional)
        return parse_call(p, begin, name, target, node);
    select = cel_node_new(p, CEL_NODE_SELECT, begin, name, 1);
    if (!select)
        return no_memory(p);
    select->args[0] = target;
    select->optional = optional;
    *node = select;
    return 0;
}

static int parse_index(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *index, *key = NULL;
    int optional, rc = advance(p);

    optional = rc < 0 ? rc : take_mark(p, "?");
    if (optional < 0)
        return optional;
    rc = parse_expression(p, &key);
    if (rc == 0)
        rc = expect(p, "]");
    if (rc < 0)
        return rc;
    index = cel_node_new(p, CEL_NODE_INDEX, (*node)->begin, optional ? "_[?_]" : "_[_]", 2);
    if (!index)
        return no_memory(p);
    index->args[0] = *node;
    index->args[1] = key;
    index->optional = optional;
    *node = index;
    return 0;
}

/* The fields, indices and calls behind a value. */
static int parse_links(struct cel_parser *p, struct cel_node **ret_node)
{
    unsigned links = 0;
    int rc = 0;

    while (rc == 0 && (at_mark(p, ".") || at_mark(p, "["))) {
        if (++links > CEL_MAX_DEPTH)
            return cel_error_at(p->err, p->text, p->token->begin,
                                "more than %d selections in a row", CEL_MAX_DEPTH);
        rc = at_mark(p, ".") ? parse_select(p, ret_node) : parse_index(p, ret_node);
    }
    return rc;
}

static int parse_member(struct cel_parser *p, struct cel_node **ret_node)
{
    int rc = parse_primary(p, ret_node);

    return rc < 0 ? rc : parse_links(p, ret_node);
}

static int call_of(struct cel_parser *p, const char *name, struct cel_node *a, struct cel_node *b,
                   struct cel_node **ret_node)
{
    struct cel_node *node = cel_node_new(p, CEL_NODE_CALL, a->begin, name, b ? 2 : 1);

    if (!node)
        return no_memory(p);
    node->args[0] = a;
    if (b)
        node->args[1] = b;
    *ret_node = node;
    return 0;
}

/* "!" and "-": two of a kind are none, as in cel-go. */
static int parse_unary(struct cel_parser *p, struct cel_node **ret_node)
{
    char mark[2] = {at_mark(p, "!") ? '!' : '-', '\0'};
    uint32_t begin = p->token->begin;
    unsigned count = 0;
    int rc = 0;

    if (!at_mark(p, "!") && !at_mark(p, "-"))
        return parse_member(p, ret_node);
    while (rc == 0 && at_mark(p, mark)) {
        count++;
        rc = advance(p);
    }
    if (rc < 0)
        return rc;
    if (mark[0] == '-' && count == 1 && p->token->kind == CEL_TOKEN_LITERAL &&
        (p->token->value.kind == CEL_INT || p->token->value.kind == CEL_DOUBLE)) {
        rc = parse_literal(p, true, begin, ret_node);
        return rc < 0 ? rc : parse_links(p, ret_node);
    }
    rc = parse_member(p, ret_node);
    if (rc < 0 || count % 2 == 0)
        return rc;
    rc = call_of(p, mark[0] == '!' ? "!_" : "-_", *ret_node, NULL, ret_node);
    if (rc == 0)
        (*ret_node)->begin = begin;
    return rc;
}

/* Binary operators by how tightly they bind, loosest first. */
static const struct operators {
    struct {
        char mark[3];
        const char *name;
    } one[8];
    enum cel_node_kind kind;
} LEVELS[] = {
    {{{"||", NULL}}, CEL_NODE_OR},
    {{{"&&", NULL}}, CEL_NODE_AND},
    {{{"<", "_<_"},
      {"<=", "_<=_"},
      {">", "_>_"},
      {">=", "_>=_"},
      {"==", "_==_"},
      {"!=", "_!=_"},
      {"in", "@in"}},
     CEL_NODE_CALL},
    {{{"+", "_+_"}, {"-", "_-_"}}, CEL_NODE_CALL},
    {{{"*", "_*_"}, {"/", "_/_"}, {"%", "_%_"}}, CEL_NODE_CALL},
};
enum { LEVEL_COUNT = sizeof(LEVELS) / sizeof(LEVELS[0]) };

/* "a && b && c" is one node of three, so that long chains nest no deeper than short ones. */
static int parse_logic(struct cel_parser *p, size_t level, struct cel_node **ret_node);

static int match_operator(const struct cel_parser *p, const struct operators *level)
{
    for (int i = 0; i < 8 && level->one[i].mark[0]; i++)
        if (at_mark(p, level->one[i].mark))
            return i;
    return -1;
}

static int parse_level(struct cel_parser *p, size_t level, struct cel_node **ret_node)
{
    unsigned terms = 0;
    int rc, found;

    if (level == LEVEL_COUNT)
        return parse_unary(p, ret_node);
    if (LEVELS[level].kind != CEL_NODE_CALL)
        return parse_logic(p, level, ret_node);
    rc = parse_level(p, level + 1, ret_node);
    while (rc == 0 && (found = match_operator(p, &LEVELS[level])) >= 0) {
        struct cel_node *right;
        if (++terms > CEL_MAX_DEPTH)
            return cel_error_at(p->err, p->text, p->token->begin, "more than %d operators in a row",
                                CEL_MAX_DEPTH);
        rc = advance(p);
        if (rc == 0)
            rc = parse_level(p, level + 1, &right);
        if (rc == 0)
            rc = call_of(p, LEVELS[level].one[found].name, *ret_node, right, ret_node);
    }
    return rc;
}

static int parse_logic(struct cel_parser *p, size_t level, struct cel_node **ret_node)
{
    struct collect terms = {0};
    int rc = parse_level(p, level + 1, ret_node);

    if (rc < 0 || match_operator(p, &LEVELS[level]) < 0)
        return rc;
    rc = collect_add(p, &terms, *ret_node, false);
    while (rc == 0 && match_operator(p, &LEVELS[level]) >= 0) {
        rc = advance(p);
        if (rc == 0)
            rc = parse_level(p, level + 1, ret_node);
        if (rc == 0)
            rc = collect_add(p, &terms, *ret_node, false);
    }
    return rc < 0 ? rc
                  : node_of(p, LEVELS[level].kind, terms.items[0]->begin, NULL, &terms, ret_node);
}

static int parse_ternary(struct cel_parser *p, struct cel_node **ret_node)
{
    struct cel_node *node, *yes = NULL, *no = NULL;
    int rc = parse_level(p, 0, ret_node), question;

    if (rc < 0)
        return rc;
    question = take_mark(p, "?");
    if (question <= 0)
        return question;
    if ((rc = parse_level(p, 0, &yes)) < 0 || (rc = expect(p, ":")) < 0 ||
        (rc = parse_expression(p, &no)) < 0)
        return rc;
    node = cel_node_new(p, CEL_NODE_TERNARY, (*ret_node)->begin, "_?_:_", 3);
    if (!node)
        return no_memory(p);
    node->args[0] = *ret_node;
    node->args[1] = yes;
    node->args[2] = no;
    *ret_node = node;
    return 0;
}

static int parse_expression(struct cel_parser *p, struct cel_node **ret_node)
{
    int rc;

    if (++p->depth > CEL_MAX_DEPTH)
        return cel_error_at(p->err, p->text, p->token->begin, "nested more than %d deep",
                            CEL_MAX_DEPTH);
    rc = parse_ternary(p, ret_node);
    p->depth--;
    return rc;
}

int cel_parse(struct cel_arena *arena, const char *text, size_t len, struct cel_node **ret_root,
              uint32_t *ret_slots, struct drarun_error *err)
{
    struct cel_token token = {0};
    struct cel_parser p = {
        .arena = arena, .text = text, .len = len, .token = &token, .slots = 1, .err = err};
    struct cel_node *root = NULL;
    int rc;

    if (!cel_utf8_valid(text, len))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "the expression is not UTF-8");
    rc = cel_lex(arena, text, len, 0, &token, err);
    if (rc == 0)
        rc = parse_expression(&p, &root);
    if (rc == 0 && token.kind != CEL_TOKEN_END)
        rc = unexpected(&p, "an operator or the end");
    if (rc == 0 && arena->failed)
        rc = no_memory(&p);
    if (rc < 0)
        return rc;
    *ret_root = root;
    *ret_slots = p.slots;
    return 0;
}
