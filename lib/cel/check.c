// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/check.h"

#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/cel/estimate.h"
#include "lib/cel/fold.h"
#include "lib/cel/function.h"

struct scope {
    const struct scope *outer;
    const char *name;
    const struct cel_type *type;
    uint32_t slot;
};

struct checker {
    struct cel_arena *arena;
    const char *text;
    struct cel_bindings bindings;
    const struct scope *scope;
    struct drarun_error *err;
};

#define TYPE(k) (&CEL_TYPES[CEL_T_##k])
enum { MAX_ARGS = 8 };

static int check(struct checker *c, struct cel_node *node);

static const struct cel_type *resolve(struct checker *c, const struct cel_type *type)
{
    return cel_type_resolve(&c->bindings, type, false);
}

/* "expected bool, got list(int)" */
static int mismatch(struct checker *c, const struct cel_node *node, const struct cel_type *wanted,
                    const struct cel_type *got)
{
    struct buf text = BUF_INIT;

    buf_add_str(&text, "expected ");
    cel_type_print(&text, cel_type_resolve(&c->bindings, wanted, true));
    buf_add_str(&text, ", got ");
    cel_type_print(&text, cel_type_resolve(&c->bindings, got, true));
    cel_error_at(c->err, c->text, node->begin, "%s", text.data ? text.data : "out of memory");
    buf_done(&text);
    return -EINVAL;
}

static int unknown(struct checker *c, const struct cel_node *node, const char *what)
{
    if (cel_name_unsupported(node->name))
        return cel_error_at(c->err, c->text, node->begin, "not supported: %s", node->name);
    return cel_error_at(c->err, c->text, node->begin, "there is no %s \"%s\"%s", what, node->name,
                        strcmp(what, "variable") == 0 ? "; selectors see \"device\" alone" : "");
}

static const struct cel_type *literal_type(const struct cel_value *value)
{
    static const enum cel_type_kind kinds[] = {
        [CEL_NULL] = CEL_T_NULL,   [CEL_BOOL] = CEL_T_BOOL,     [CEL_INT] = CEL_T_INT,
        [CEL_UINT] = CEL_T_UINT,   [CEL_DOUBLE] = CEL_T_DOUBLE, [CEL_STRING] = CEL_T_STRING,
        [CEL_BYTES] = CEL_T_BYTES,
    };

    return &CEL_TYPES[kinds[value->kind]];
}

/* A type's own name is a value, too: type(x) == string */
static bool check_type_name(struct checker *c, struct cel_node *node)
{
    static const char *const names[] = {"bool", "bytes", "double",       "int",
                                        "list", "map",   "null_type",    "string",
                                        "type", "uint",  "optional_type"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], node->name) != 0)
            continue;
        node->kind = CEL_NODE_LITERAL;
        node->value = cel_string(names[i], strlen(names[i]));
        node->value.kind = CEL_TYPE;
        node->type = cel_type_new(c->arena, CEL_T_TYPE, TYPE(DYN), NULL);
        return true;
    }
    return false;
}

static int check_ident(struct checker *c, struct cel_node *node)
{
    for (const struct scope *s = c->scope; s; s = s->outer) {
        if (strcmp(s->name, node->name) != 0 || (node->global && s->outer))
            continue;
        node->type = s->type;
        node->slot = s->slot;
        return 0;
    }
    return check_type_name(c, node) ? 0 : unknown(c, node, "variable");
}

static const struct cel_type *map_of_maps(struct checker *c, const struct cel_type *inner)
{
    const struct cel_type *map = cel_type_new(c->arena, CEL_T_MAP, TYPE(STRING), inner);

    return cel_type_new(c->arena, CEL_T_MAP, TYPE(STRING), map);
}

static int device_field(struct checker *c, const struct cel_node *node,
                        const struct cel_type **ret_type)
{
    if (strcmp(node->name, "driver") == 0)
        *ret_type = TYPE(STRING);
    else if (strcmp(node->name, "allowMultipleAllocations") == 0)
        *ret_type = TYPE(BOOL);
    else if (strcmp(node->name, "attributes") == 0)
        *ret_type = map_of_maps(c, TYPE(DYN));
    else if (strcmp(node->name, "capacity") == 0)
        *ret_type = map_of_maps(c, TYPE(QUANTITY));
    else
        return cel_error_at(c->err, c->text, node->begin,
                            "a device has no field \"%s\", but driver, attributes, capacity, "
                            "allowMultipleAllocations",
                            node->name);
    return 0;
}

static int field_type(struct checker *c, const struct cel_node *node, const struct cel_type *target,
                      const struct cel_type **ret_type)
{
    switch (target->kind) {
    case CEL_T_MAP:
        *ret_type = target->param[1];
        return 0;
    case CEL_T_DEVICE:
        return device_field(c, node, ret_type);
    case CEL_T_VARIABLE:
        cel_type_assignable(&c->bindings, TYPE(DYN), target);
        *ret_type = TYPE(DYN);
        return 0;
    case CEL_T_DYN:
    case CEL_T_ERROR:
        *ret_type = TYPE(DYN);
        return 0;
    default: {
        struct buf text = BUF_INIT;
        cel_type_print(&text, target);
        cel_error_at(c->err, c->text, node->begin, "a %s has no fields, so no \"%s\"",
                     text.data ? text.data : "value", node->name);
        buf_done(&text);
        return -EINVAL;
    }
    }
}

static int check_select(struct checker *c, struct cel_node *node)
{
    const struct cel_type *target, *result = NULL;
    bool wrapped;
    int rc = check(c, node->args[0]);

    if (rc < 0)
        return rc;
    target = resolve(c, node->args[0]->type);
    wrapped = target->kind == CEL_T_OPTIONAL;
    rc = field_type(c, node, wrapped ? target->param[0] : target, &result);
    if (rc < 0)
        return rc;
    if (wrapped || node->optional)
        result = cel_type_new(c->arena, CEL_T_OPTIONAL, result, NULL);
    node->type = node->test_only ? TYPE(BOOL) : resolve(c, result);
    return 0;
}

/* Reads one type of a signature; variables are made fresh for a call. */
static const struct cel_type *read_type(struct checker *c, const char **at,
                                        const struct cel_type *fresh[2])
{
    static const char letters[] = "biudsyDqv", composed[] = "lmot";
    static const enum cel_type_kind kinds[] = {CEL_T_BOOL,   CEL_T_INT,      CEL_T_UINT,
                                               CEL_T_DOUBLE, CEL_T_STRING,   CEL_T_BYTES,
                                               CEL_T_DYN,    CEL_T_QUANTITY, CEL_T_SEMVER};
    static const enum cel_type_kind heads[] = {CEL_T_LIST, CEL_T_MAP, CEL_T_OPTIONAL, CEL_T_TYPE};
    char letter = *(*at)++;
    const struct cel_type *first, *second = NULL;

    if (letter == 'A' || letter == 'B') {
        if (!fresh[letter - 'A'])
            fresh[letter - 'A'] = cel_type_variable(&c->bindings);
        return fresh[letter - 'A'];
    }
    if (strchr(letters, letter))
        return &CEL_TYPES[kinds[strchr(letters, letter) - letters]];
    first = read_type(c, at, fresh);
    if (letter == 'm')
        second = read_type(c, at, fresh);
    return cel_type_new(c->arena, heads[strchr(composed, letter) - composed], first, second);
}

/* Tries one overload; yields its result type on a match. */
static const struct cel_type *try_overload(struct checker *c, const struct cel_overload *overload,
                                           const struct cel_type *const args[], size_t count)
{
    const struct cel_type *fresh[2] = {NULL, NULL}, *params[MAX_ARGS], *result;
    const char *at = overload->signature;
    size_t n = 0;

    while (*at != '>' && n < MAX_ARGS)
        params[n++] = read_type(c, &at, fresh);
    if (n != count || !cel_types_assignable(&c->bindings, args, params, count))
        return NULL;
    at++;
    result = read_type(c, &at, fresh);
    return resolve(c, result);
}

static int no_overload(struct checker *c, const struct cel_node *node)
{
    struct buf text = BUF_INIT;
    const char *name = node->name;

    for (size_t i = 0; i < node->count; i++) {
        buf_add_str(&text, i ? ", " : "");
        cel_type_print(&text, cel_type_resolve(&c->bindings, node->args[i]->type, true));
    }
    cel_error_at(c->err, c->text, node->begin, "%s does not take (%s)%s", name,
                 text.data ? text.data : "", node->member ? ", the first before the dot" : "");
    buf_done(&text);
    return -EINVAL;
}

static int resolve_call(struct checker *c, struct cel_node *node)
{
    const struct cel_type *args[MAX_ARGS], *result = NULL;
    size_t matches = 0;
    uint32_t bit = 1;

    if (node->count > MAX_ARGS)
        return cel_error_at(c->err, c->text, node->begin, "%s has too many arguments", node->name);
    for (size_t i = 0; i < node->count; i++)
        args[i] = node->args[i]->type;
    for (const struct cel_overload *o = NULL; (o = cel_overload_next(node->name, o)); bit <<= 1) {
        const struct cel_type *type;
        if (o->member != node->member || !(type = try_overload(c, o, args, node->count)))
            continue;
        matches++;
        node->overloads |= bit;
        if (!result)
            result = type;
        else if (result->kind != CEL_T_DYN && !cel_type_equal(result, type))
            result = TYPE(DYN);
        node->overload = o;
    }
    if (!matches)
        return no_overload(c, node);
    node->type = result;
    node->cost = matches == 1 || node->overload->cost >= CEL_COST_BY_NAME ? node->overload->cost
                                                                          : CEL_COST_ONE;
    // cel-go dispatches such calls by a function of any number of arguments; operators have their
    // own
    node->ends_at_error = node->count > 2 || (matches > 1 && node->name[0] >= 'a');
    return 0;
}

static int check_args(struct checker *c, struct cel_node *node)
{
    for (size_t i = 0; i < node->count; i++) {
        int rc = check(c, node->args[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* "a.b.c" of a chain of fields; false when it is none, or too long to be a function of ours. */
static bool dotted_name(const struct cel_node *node, char *out, size_t size)
{
    size_t len;

    if (node->kind == CEL_NODE_IDENT) {
        len = strlen(node->name);
        if (len >= size)
            return false;
        memcpy(out, node->name, len + 1);
        return true;
    }
    if (node->kind != CEL_NODE_SELECT || node->test_only || node->optional ||
        !dotted_name(node->args[0], out, size))
        return false;
    len = strlen(out);
    if (len + 1 + strlen(node->name) >= size)
        return false;
    out[len] = '.';
    memcpy(out + len + 1, node->name, strlen(node->name) + 1);
    return true;
}

/* optional.of(x) is no method of a variable "optional". */
static int check_namespaced(struct checker *c, struct cel_node *node)
{
    char name[64];
    const struct cel_overload *overload;
    size_t len;

    if (!node->member || !dotted_name(node->args[0], name, sizeof(name) - 1))
        return 0;
    len = strlen(name);
    if (len + 1 + strlen(node->name) >= sizeof(name))
        return 0;
    name[len] = '.';
    memcpy(name + len + 1, node->name, strlen(node->name) + 1);
    if (cel_name_unsupported(name))
        return cel_error_at(c->err, c->text, node->begin, "not supported: %s", name);
    overload = cel_overload_next(name, NULL);
    if (!overload)
        return 0;
    node->name = overload->name;
    node->member = false;
    node->args++;
    node->count--;
    return 0;
}

static int check_call(struct checker *c, struct cel_node *node)
{
    int rc = check_namespaced(c, node);

    if (rc == 0)
        rc = check_args(c, node);
    if (rc < 0)
        return rc;
    if (!cel_overload_next(node->name, NULL))
        return unknown(c, node, "function");
    return resolve_call(c, node);
}

static int check_logic(struct checker *c, struct cel_node *node)
{
    int rc = check_args(c, node);

    for (size_t i = 0; rc == 0 && i < node->count; i++)
        if (!cel_type_assignable(&c->bindings, node->args[i]->type, TYPE(BOOL)))
            rc = mismatch(c, node->args[i], TYPE(BOOL), node->args[i]->type);
    node->type = TYPE(BOOL);
    return rc;
}

/* Adds an element's type to that of a literal's others. */
static int join(struct checker *c, const struct cel_node *node, const struct cel_type *type,
                const struct cel_type **joined)
{
    if (!*joined)
        *joined = type;
    else if (cel_type_assignable(&c->bindings, *joined, type))
        *joined = cel_type_general(*joined, type);
    else
        return mismatch(c, node, *joined, type);
    return 0;
}

static int element_type(struct checker *c, const struct cel_node *literal, size_t i,
                        const struct cel_type **ret_type)
{
    const struct cel_type *type = literal->args[i]->type;
    bool key = literal->kind == CEL_NODE_MAP && i % 2 == 0;

    *ret_type = type;
    if (key || !literal->optional_args || !literal->optional_args[i])
        return 0;
    if (type->kind == CEL_T_OPTIONAL)
        *ret_type = type->param[0];
    else if (type->kind != CEL_T_DYN)
        return cel_error_at(c->err, c->text, literal->args[i]->begin,
                            "\"?\" stands before an optional value only");
    else // the API server's validator fails on it
        return cel_error_at(c->err, c->text, literal->args[i]->begin,
                            "\"?\" before a value whose type is not known");
    return 0;
}

static int check_literal_parts(struct checker *c, struct cel_node *node)
{
    const struct cel_type *joined[2] = {NULL, NULL};
    bool map = node->kind == CEL_NODE_MAP;

    for (size_t i = 0; i < node->count; i++) {
        const struct cel_type *type = NULL;
        int rc = check(c, node->args[i]);
        if (rc == 0)
            rc = element_type(c, node, i, &type);
        if (rc == 0)
            rc = join(c, node->args[i], type, &joined[map && i % 2]);
        if (rc < 0)
            return rc;
    }
    for (int i = 0; i < 2; i++)
        if (!joined[i])
            joined[i] = cel_type_variable(&c->bindings);
    node->type = map ? cel_type_new(c->arena, CEL_T_MAP, joined[0], joined[1])
                     : cel_type_new(c->arena, CEL_T_LIST, joined[0], NULL);
    return 0;
}

static int item_type(struct checker *c, const struct cel_node *range,
                     const struct cel_type **ret_type)
{
    const struct cel_type *type = resolve(c, range->type);

    if (type->kind == CEL_T_LIST || type->kind == CEL_T_MAP) {
        *ret_type = type->param[0];
        return 0;
    }
    *ret_type = TYPE(DYN);
    if (type->kind == CEL_T_VARIABLE)
        cel_type_assignable(&c->bindings, TYPE(DYN), type);
    else if (type->kind != CEL_T_DYN && type->kind != CEL_T_ERROR)
        return mismatch(c, range, cel_type_new(c->arena, CEL_T_LIST, TYPE(DYN), NULL), type);
    return 0;
}

static int check_part(struct checker *c, struct cel_node *part, const struct cel_type *wanted)
{
    int rc = check(c, part);

    if (rc == 0 && !cel_type_assignable(&c->bindings, wanted, part->type))
        rc = mismatch(c, part, wanted, part->type);
    return rc;
}

static int check_fold(struct checker *c, struct cel_node *node)
{
    const struct scope *outer = c->scope;
    struct scope accu = {outer, node->accu, NULL, node->accu_slot};
    struct scope item = {&accu, node->item, NULL, node->item_slot};
    int rc = check(c, node->args[FOLD_RANGE]);

    if (rc == 0)
        rc = check(c, node->args[FOLD_INIT]);
    if (rc == 0)
        rc = item_type(c, node->args[FOLD_RANGE], &item.type);
    if (rc < 0)
        return rc;
    accu.type = node->args[FOLD_INIT]->type;
    c->scope = &item;
    rc = check_part(c, node->args[FOLD_CONDITION], TYPE(BOOL));
    if (rc == 0)
        rc = check_part(c, node->args[FOLD_STEP], accu.type);
    c->scope = &accu;
    if (rc == 0)
        rc = check(c, node->args[FOLD_RESULT]);
    c->scope = outer;
    if (rc == 0)
        node->type = resolve(c, node->args[FOLD_RESULT]->type);
    return rc;
}

static int check(struct checker *c, struct cel_node *node)
{
    int rc;

    switch (node->kind) {
    case CEL_NODE_LITERAL:
        node->type = literal_type(&node->value);
        return 0;
    case CEL_NODE_IDENT:
        return check_ident(c, node);
    case CEL_NODE_SELECT:
        return check_select(c, node);
    case CEL_NODE_CALL:
        return check_call(c, node);
    case CEL_NODE_AND:
    case CEL_NODE_OR:
        return check_logic(c, node);
    case CEL_NODE_LIST:
    case CEL_NODE_MAP:
        return check_literal_parts(c, node);
    case CEL_NODE_FOLD:
        return check_fold(c, node);
    case CEL_NODE_INDEX:
    case CEL_NODE_TERNARY:
        rc = check_args(c, node);
        return rc < 0 ? rc : resolve_call(c, node);
    }
    return -EINVAL;
}

/* A list or map literal holds one type, and dyn is another than int. */
static int check_uniform(struct checker *c, const struct cel_node *node)
{
    size_t step = node->kind == CEL_NODE_MAP ? 2 : 1;

    for (size_t i = step; i < node->count; i++) {
        const struct cel_type *first, *type;
        int rc = element_type(c, node, i % step, &first);
        if (rc == 0)
            rc = element_type(c, node, i, &type);
        if (rc < 0)
            return rc;
        first = cel_type_resolve(&c->bindings, first, true);
        type = cel_type_resolve(&c->bindings, type, true);
        if (!cel_type_equal(first, type))
            return mismatch(c, node->args[i], first, type);
    }
    return 0;
}

/* What the API server looks at once all types are known. */
static int check_finished(struct checker *c, struct cel_node *node)
{
    int rc;

    for (size_t i = 0; i < node->count; i++)
        if ((rc = check_finished(c, node->args[i])) < 0)
            return rc;
    if (node->kind == CEL_NODE_LIST || node->kind == CEL_NODE_MAP)
        if ((rc = check_uniform(c, node)) < 0)
            return rc;
    return cel_fold_constant(c->arena, c->text, node, c->err);
}

static int check_result(struct checker *c, const struct cel_node *root)
{
    const struct cel_type *type = cel_type_resolve(&c->bindings, root->type, true);

    if (type->kind == CEL_T_BOOL || type->kind == CEL_T_DYN)
        return 0;
    return mismatch(c, root, TYPE(BOOL), type);
}

int cel_check(struct cel_arena *arena, const char *text, struct cel_node *root,
              uint64_t *ret_estimate, struct drarun_error *err)
{
    const struct scope device = {NULL, "device", TYPE(DEVICE), 0};
    struct checker c = {
        .arena = arena, .text = text, .bindings.arena = arena, .scope = &device, .err = err};
    int rc = check(&c, root);

    if (rc == 0)
        rc = check_result(&c, root);
    if (rc == 0)
        *ret_estimate = cel_estimate(arena, &c.bindings, root);
    if (rc == 0)
        rc = check_finished(&c, root);
    cel_bindings_done(&c.bindings);
    if (arena->no_memory)
        rc = error_set(err, ENOMEM, "out of memory for an expression");
    else if (arena->failed)
        rc = error_kind(err, DRARUN_ERR_SPEC, E2BIG, "the expression is too complex");
    return rc;
}
