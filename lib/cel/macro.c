// SPDX-License-Identifier: Apache-2.0
// Macros become folds over a list, as cel-go's parser/macro.go and ext/bindings.go write them.
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/cel/parser.h"

static const char ACCU[] = "@result";

static int no_memory(struct cel_parser *p)
{
    return error_set(p->err, ENOMEM, "out of memory");
}

static struct cel_node *literal(struct cel_parser *p, const struct cel_node *at,
                                struct cel_value value)
{
    struct cel_node *node = cel_node_new(p, CEL_NODE_LITERAL, at->begin, NULL, 0);

    if (node)
        node->value = value;
    return node;
}

static struct cel_node *ident(struct cel_parser *p, const struct cel_node *at, const char *name)
{
    return cel_node_new(p, CEL_NODE_IDENT, at->begin, name, 0);
}

/* A node of up to three arguments; NULL when one of them is. */
static struct cel_node *node_of(struct cel_parser *p, enum cel_node_kind kind, const char *name,
                                const struct cel_node *at, struct cel_node *const args[],
                                size_t count)
{
    struct cel_node *node = cel_node_new(p, kind, at->begin, name, count);

    for (size_t i = 0; node && i < count; i++) {
        if (!args[i])
            return NULL;
        node->args[i] = args[i];
    }
    return node;
}

#define NODE(p, kind, name, at, ...)                                                               \
    node_of(p, kind, name, at, (struct cel_node *const[]){__VA_ARGS__},                            \
            sizeof((struct cel_node *const[]){__VA_ARGS__}) / sizeof(struct cel_node *))

/* The parts of a fold; the caller fills them. */
struct fold {
    const char *item, *accu;
    struct cel_node *part[FOLD_ARGS];
};

static int make_fold(struct cel_parser *p, const struct fold *fold, struct cel_node **node)
{
    struct cel_node *made = node_of(p, CEL_NODE_FOLD, NULL, *node, fold->part, FOLD_ARGS);

    if (!made)
        return no_memory(p);
    made->end = (*node)->end;
    made->item = fold->item;
    made->accu = fold->accu;
    made->item_slot = p->slots++;
    made->accu_slot = p->slots++;
    *node = made;
    return 0;
}

static int variable_of(struct cel_parser *p, const struct cel_node *arg, const char **ret_name)
{
    if (arg->kind != CEL_NODE_IDENT)
        return cel_error_at(p->err, p->text, arg->begin, "expected the name of a variable");
    if (strcmp(arg->name, "__result__") == 0)
        return cel_error_at(p->err, p->text, arg->begin, "%s is no name for a variable", arg->name);
    *ret_name = arg->name;
    return 0;
}

/* x.all(v, test): true && test && ...; x.exists(v, test): false || test || ... */
static int expand_quantifier(struct cel_parser *p, struct cel_node **node, bool all)
{
    struct cel_node *call = *node, *accu = ident(p, call, ACCU), *go_on = ident(p, call, ACCU);
    struct fold fold = {.accu = ACCU};
    int rc = variable_of(p, call->args[1], &fold.item);

    if (rc < 0)
        return rc;
    if (!all)
        go_on = NODE(p, CEL_NODE_CALL, "!_", call, go_on);
    fold.part[FOLD_RANGE] = call->args[0];
    fold.part[FOLD_INIT] = literal(p, call, cel_bool(all));
    fold.part[FOLD_CONDITION] = NODE(p, CEL_NODE_CALL, "@not_strictly_false", call, go_on);
    fold.part[FOLD_STEP] =
        NODE(p, all ? CEL_NODE_AND : CEL_NODE_OR, NULL, call, accu, call->args[2]);
    fold.part[FOLD_RESULT] = ident(p, call, ACCU);
    return make_fold(p, &fold, node);
}

static int expand_exists_one(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *call = *node, *more;
    struct fold fold = {.accu = ACCU};
    int rc = variable_of(p, call->args[1], &fold.item);

    if (rc < 0)
        return rc;
    more = NODE(p, CEL_NODE_CALL, "_+_", call, ident(p, call, ACCU), literal(p, call, cel_int(1)));
    fold.part[FOLD_RANGE] = call->args[0];
    fold.part[FOLD_INIT] = literal(p, call, cel_int(0));
    fold.part[FOLD_CONDITION] = literal(p, call, cel_bool(true));
    fold.part[FOLD_STEP] =
        NODE(p, CEL_NODE_TERNARY, "_?_:_", call, call->args[2], more, ident(p, call, ACCU));
    fold.part[FOLD_RESULT] =
        NODE(p, CEL_NODE_CALL, "_==_", call, ident(p, call, ACCU), literal(p, call, cel_int(1)));
    return make_fold(p, &fold, node);
}

/* test may be NULL: every item is taken. */
static int expand_list(struct cel_parser *p, struct cel_node **node, struct cel_node *test,
                       struct cel_node *item)
{
    struct cel_node *call = *node, *one, *more;
    struct fold fold = {.accu = ACCU};
    int rc = variable_of(p, call->args[1], &fold.item);

    if (rc < 0)
        return rc;
    one = NODE(p, CEL_NODE_LIST, NULL, item, item);
    more = NODE(p, CEL_NODE_CALL, "_+_", call, ident(p, call, ACCU), one);
    if (test)
        more = NODE(p, CEL_NODE_TERNARY, "_?_:_", call, test, more, ident(p, call, ACCU));
    fold.part[FOLD_RANGE] = call->args[0];
    fold.part[FOLD_INIT] = cel_node_new(p, CEL_NODE_LIST, call->begin, NULL, 0);
    fold.part[FOLD_CONDITION] = literal(p, call, cel_bool(true));
    fold.part[FOLD_STEP] = more;
    fold.part[FOLD_RESULT] = ident(p, call, ACCU);
    return make_fold(p, &fold, node);
}

static int expand_has(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *select = (*node)->args[0];

    if (select->kind != CEL_NODE_SELECT || select->optional || select->test_only)
        return cel_error_at(p->err, p->text, select->begin,
                            "has() takes a field, as in has(device.attributes[\"domain\"].name)");
    select->test_only = true;
    select->begin = (*node)->begin;
    select->end = (*node)->end;
    *node = select;
    return 0;
}

/* A fold over nothing whose accumulator is the variable: evaluated when first used, or never. */
static int bind_variable(struct cel_parser *p, const char *name, struct cel_node *value,
                         struct cel_node *body, struct cel_node **node)
{
    struct fold fold = {.item = "#unused", .accu = name};

    fold.part[FOLD_RANGE] = cel_node_new(p, CEL_NODE_LIST, (*node)->begin, NULL, 0);
    fold.part[FOLD_INIT] = value;
    fold.part[FOLD_CONDITION] = literal(p, *node, cel_bool(false));
    fold.part[FOLD_STEP] = ident(p, *node, name);
    fold.part[FOLD_RESULT] = body;
    return make_fold(p, &fold, node);
}

static int expand_bind(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *call = *node;
    const char *name = NULL;
    int rc = variable_of(p, call->args[1], &name);

    return rc < 0 ? rc : bind_variable(p, name, call->args[2], call->args[3], node);
}

/* Deep copy with variables of its own. */
static struct cel_node *copy_tree(struct cel_parser *p, const struct cel_node *node)
{
    struct cel_node *copy = cel_node_new(p, node->kind, node->begin, node->name, node->count);
    struct cel_node **args;

    if (!copy)
        return NULL;
    args = copy->args;
    *copy = *node;
    copy->args = args;
    if (node->kind == CEL_NODE_FOLD) {
        copy->item_slot = p->slots++;
        copy->accu_slot = p->slots++;
    }
    for (size_t i = 0; i < node->count; i++) {
        args[i] = copy_tree(p, node->args[i]);
        if (!args[i])
            return NULL;
    }
    return copy;
}

/* x.optMap(v, expr): x.hasValue() ? optional.of(bind v = x.value() in expr) : optional.none() */
static int expand_opt_map(struct cel_parser *p, struct cel_node **node, bool flat)
{
    struct cel_node *call = *node, *target = call->args[0], *value, *has, *body = call, *none;
    const char *name = NULL;
    int rc = variable_of(p, call->args[1], &name);

    if (rc < 0)
        return rc;
    value = NODE(p, CEL_NODE_CALL, "value", call, copy_tree(p, target));
    has = NODE(p, CEL_NODE_CALL, "hasValue", call, target);
    none = cel_node_new(p, CEL_NODE_CALL, call->begin, "optional.none", 0);
    if (!value || !has || !none)
        return no_memory(p);
    value->member = has->member = true;
    rc = bind_variable(p, name, value, call->args[2], &body);
    if (rc < 0)
        return rc;
    if (!flat)
        body = NODE(p, CEL_NODE_CALL, "optional.of", call, body);
    *node = NODE(p, CEL_NODE_TERNARY, "_?_:_", call, has, body, none);
    if (!*node)
        return no_memory(p);
    (*node)->end = call->end;
    return 0;
}

static bool is_call(const struct cel_node *call, const char *name, size_t args)
{
    return strcmp(call->name, name) == 0 && call->count == args + 1;
}

static int refuse(struct cel_parser *p, const struct cel_node *call, const char *what)
{
    return cel_error_at(p->err, p->text, call->args[call->count - 1]->begin, "not supported: %s %s",
                        call->name, what);
}

/* Those of the API server that we have not. */
static int check_unsupported(struct cel_parser *p, const struct cel_node *call)
{
    static const char *const quantifiers[] = {"all", "exists", "exists_one", "existsOne"};
    static const char *const others[] = {"transformList", "transformMap", "transformMapEntry"};

    for (size_t i = 0; i < 4; i++)
        if (is_call(call, quantifiers[i], 3))
            return refuse(p, call, "with two variables");
    for (size_t i = 0; i < 3; i++)
        if (is_call(call, others[i], 3) || is_call(call, others[i], 4))
            return refuse(p, call, "(a macro of two variables)");
    if (is_call(call, "sortBy", 2))
        return refuse(p, call, "(a macro)");
    return 0;
}

int cel_expand_macro(struct cel_parser *p, struct cel_node **node)
{
    struct cel_node *call = *node;

    if (!call->member)
        return strcmp(call->name, "has") == 0 && call->count == 1 ? expand_has(p, node) : 0;
    if (is_call(call, "bind", 3) && call->args[0]->kind == CEL_NODE_IDENT &&
        strcmp(call->args[0]->name, "cel") == 0)
        return expand_bind(p, node);
    if (is_call(call, "all", 2) || is_call(call, "exists", 2))
        return expand_quantifier(p, node, call->name[0] == 'a');
    if (is_call(call, "exists_one", 2))
        return expand_exists_one(p, node);
    if (is_call(call, "filter", 2))
        return expand_list(p, node, call->args[2], call->args[1]);
    if (is_call(call, "map", 2))
        return expand_list(p, node, NULL, call->args[2]);
    if (is_call(call, "map", 3))
        return expand_list(p, node, call->args[2], call->args[3]);
    if (is_call(call, "optMap", 2) || is_call(call, "optFlatMap", 2))
        return expand_opt_map(p, node, call->name[3] == 'F');
    return check_unsupported(p, call);
}
