// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/fold.h"

#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/cel/eval.h"
#include "lib/cel/function.h"
#include "lib/cel/regex.h"

static bool all_literals(const struct cel_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->args[i]->kind != CEL_NODE_LITERAL)
            return false;
    return node->optional_args == NULL;
}

static bool is_conversion(const struct cel_node *node)
{
    static const char *const names[] = {"bool", "bytes",  "double", "dyn",
                                        "int",  "string", "type",   "uint"};

    for (size_t i = 0; node->kind == CEL_NODE_CALL && i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], node->name) == 0)
            return node->count == 1;
    return false;
}

/* cel-go turns a list of such constants into a set. */
static bool is_constant_set(const struct cel_value *value)
{
    if (value->kind != CEL_LIST)
        return false;
    for (size_t i = 0; i < value->list->count; i++) {
        enum cel_kind kind = value->list->items[i].kind;
        if (kind != CEL_BOOL && kind != CEL_INT && kind != CEL_UINT && kind != CEL_DOUBLE &&
            kind != CEL_STRING)
            return false;
    }
    return true;
}

static int fold_in(struct cel_node *node)
{
    const struct cel_node *list = node->args[1];

    if (list->kind != CEL_NODE_LITERAL || !is_constant_set(&list->value))
        return 0;
    node->constant_set = true;
    if (list->value.list->count == 0) { // false, whatever the first is
        node->kind = CEL_NODE_LITERAL;
        node->value = cel_bool(false);
        node->count = 0;
    }
    return 0;
}

static int compile_pattern(struct cel_arena *arena, const char *text, struct cel_node *node,
                           struct drarun_error *err)
{
    const struct cel_node *pattern = node->args[1];
    struct drarun_error why = {0};

    if (pattern->kind != CEL_NODE_LITERAL || pattern->value.kind != CEL_STRING)
        return 0;
    if (cel_regex_compile(arena, pattern->value.text.data, pattern->value.text.len, &node->regex,
                          &why) < 0)
        return cel_error_at(err, text, pattern->begin, "%s", why.text);
    node->ends_at_error = true; // cel-go plans it as a call of any number of arguments
    return 0;
}

int cel_fold_constant(struct cel_arena *arena, const char *text, struct cel_node *node,
                      struct drarun_error *err)
{
    struct cel_value value;

    if (node->kind == CEL_NODE_CALL && strcmp(node->name, "matches") == 0)
        return compile_pattern(arena, text, node, err);
    if (node->kind == CEL_NODE_CALL && strcmp(node->name, "@in") == 0)
        return fold_in(node);
    if (node->kind != CEL_NODE_LIST && node->kind != CEL_NODE_MAP && !is_conversion(node))
        return 0;
    if (!all_literals(node))
        return 0;
    value = cel_eval_constant(arena, node);
    if (value.kind == CEL_ERROR)
        return cel_error_at(err, text, node->begin, "%.*s", (int)value.text.len, value.text.data);
    node->kind = CEL_NODE_LITERAL;
    node->value = value;
    node->count = 0;
    return 0;
}
