// SPDX-License-Identifier: Apache-2.0
#include "lib/base/array.h"
#include "lib/cel/type.h"

#include <stdlib.h>

#define PLAIN(k) [k] = {.kind = (k)}

const struct cel_type CEL_TYPES[] = {
    PLAIN(CEL_T_ERROR),  PLAIN(CEL_T_DYN),  PLAIN(CEL_T_NULL),     PLAIN(CEL_T_BOOL),
    PLAIN(CEL_T_INT),    PLAIN(CEL_T_UINT), PLAIN(CEL_T_DOUBLE),   PLAIN(CEL_T_STRING),
    PLAIN(CEL_T_BYTES),  PLAIN(CEL_T_TYPE), PLAIN(CEL_T_QUANTITY), PLAIN(CEL_T_SEMVER),
    PLAIN(CEL_T_DEVICE),
};

void cel_bindings_done(struct cel_bindings *bindings)
{
    free(bindings->bound);
    free(bindings->trail);
    *bindings = (struct cel_bindings){0};
}

const struct cel_type *cel_type_new(struct cel_arena *arena, enum cel_type_kind kind,
                                    const struct cel_type *first, const struct cel_type *second)
{
    struct cel_type *type = cel_arena_alloc(arena, sizeof(*type));

    if (!type)
        return &CEL_TYPES[CEL_T_ERROR];
    type->kind = kind;
    type->param[0] = first;
    type->param[1] = second;
    type->open = (first && first->open) || (second && second->open);
    return type;
}

const struct cel_type *cel_type_variable(struct cel_bindings *bindings)
{
    struct cel_type *type = cel_arena_alloc(bindings->arena, sizeof(*type));

    if (bindings->count == bindings->cap) {
        uint32_t cap = bindings->cap ? 2 * bindings->cap : 64;
        void *grown = cap > CEL_MAX_BINDINGS
                          ? NULL
                          : realloc(bindings->bound, cap * sizeof(*bindings->bound));
        if (!grown) {
            bindings->arena->failed = true;
            bindings->arena->no_memory = cap <= CEL_MAX_BINDINGS;
            return &CEL_TYPES[CEL_T_ERROR];
        }
        bindings->bound = grown;
        bindings->cap = cap;
    }
    if (!type)
        return &CEL_TYPES[CEL_T_ERROR];
    type->kind = CEL_T_VARIABLE;
    type->open = true;
    type->number = bindings->count;
    bindings->bound[bindings->count++] = NULL;
    return type;
}

static void bind(struct cel_bindings *bindings, uint32_t number, const struct cel_type *type)
{
    void *grown = array_room(bindings->trail, bindings->trail_count, &bindings->trail_cap,
                             sizeof *bindings->trail);
    if (!grown) {
        bindings->arena->failed = bindings->arena->no_memory = true;
        return;
    }
    bindings->trail = grown;
    bindings->trail[bindings->trail_count++] = (struct cel_trail){number, bindings->bound[number]};
    bindings->bound[number] = type;
}

static void undo(struct cel_bindings *bindings, size_t mark)
{
    while (bindings->trail_count > mark) {
        struct cel_trail *last = &bindings->trail[--bindings->trail_count];
        bindings->bound[last->number] = last->before;
    }
}

static bool too_many_steps(struct cel_bindings *bindings)
{
    if (bindings->steps < CEL_MAX_TYPE_STEPS)
        bindings->steps++;
    else
        bindings->arena->failed = true;
    return bindings->arena->failed;
}

bool cel_type_equal(const struct cel_type *a, const struct cel_type *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || a->number != b->number)
        return false;
    return cel_type_equal(a->param[0], b->param[0]) && cel_type_equal(a->param[1], b->param[1]);
}

/* Whether `inner` occurs in `type`, looking through bindings. */
static bool occurs(struct cel_bindings *bindings, const struct cel_type *inner,
                   const struct cel_type *type)
{
    if (!type || !type->open || too_many_steps(bindings))
        return false;
    if (cel_type_equal(inner, type))
        return true;
    if (type->kind == CEL_T_VARIABLE)
        return occurs(bindings, inner, bindings->bound[type->number]);
    return occurs(bindings, inner, type->param[0]) || occurs(bindings, inner, type->param[1]);
}

static bool less_specific(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_T_DYN || a->kind == CEL_T_VARIABLE || a == b)
        return true;
    if (b->kind == CEL_T_DYN || b->kind == CEL_T_VARIABLE || a->kind != b->kind)
        return false;
    if (a->kind == CEL_T_TYPE)
        return true;
    for (int i = 0; i < 2; i++)
        if (a->param[i] && b->param[i] && !less_specific(a->param[i], b->param[i]))
            return false;
    return true;
}

const struct cel_type *cel_type_general(const struct cel_type *a, const struct cel_type *b)
{
    return less_specific(a, b) ? a : b;
}

static bool assignable(struct cel_bindings *bindings, const struct cel_type *a,
                       const struct cel_type *b);

/* Whether `variable` may stand for `type`; tells whether it stood for something already. */
static bool substitutes(struct cel_bindings *bindings, const struct cel_type *type,
                        const struct cel_type *variable, bool *ret_bound)
{
    const struct cel_type *now = bindings->bound[variable->number];

    *ret_bound = true;
    if (cel_type_equal(type, variable))
        return true;
    if (!now) {
        *ret_bound = false;
        if (occurs(bindings, variable, type))
            return false;
        bind(bindings, variable->number, type);
        return true;
    }
    if (cel_type_equal(type, now))
        return true;
    if (!assignable(bindings, type, now))
        return false;
    now = cel_type_general(type, now);
    if (!occurs(bindings, variable, now))
        bind(bindings, variable->number, now);
    return true;
}

static bool any(const struct cel_type *type)
{
    return type->kind == CEL_T_DYN || type->kind == CEL_T_ERROR;
}

static bool nullable(const struct cel_type *type)
{
    return type->kind == CEL_T_NULL || type->kind == CEL_T_OPTIONAL ||
           type->kind == CEL_T_QUANTITY || type->kind == CEL_T_SEMVER || type->kind == CEL_T_DEVICE;
}

static bool assignable(struct cel_bindings *bindings, const struct cel_type *a,
                       const struct cel_type *b)
{
    bool bound;

    if (too_many_steps(bindings))
        return false;
    if (a == b && !a->open)
        return true;
    if (b->kind == CEL_T_VARIABLE) {
        if (substitutes(bindings, a, b, &bound))
            return true;
        if (bound)
            return false;
    }
    if (a->kind == CEL_T_VARIABLE)
        return substitutes(bindings, b, a, &bound);
    if (any(a) || any(b))
        return true;
    if (a->kind == CEL_T_NULL)
        return nullable(b);
    if (b->kind == CEL_T_NULL)
        return nullable(a);
    if (a->kind != b->kind)
        return false;
    if (a->kind == CEL_T_TYPE)
        return true;
    for (int i = 0; i < 2; i++)
        if (a->param[i] && !assignable(bindings, a->param[i], b->param[i]))
            return false;
    return true;
}

bool cel_types_assignable(struct cel_bindings *bindings, const struct cel_type *const a[],
                          const struct cel_type *const b[], size_t count)
{
    size_t mark = bindings->trail_count;

    for (size_t i = 0; i < count; i++) {
        if (!assignable(bindings, a[i], b[i])) {
            undo(bindings, mark);
            return false;
        }
    }
    return true;
}

bool cel_type_assignable(struct cel_bindings *bindings, const struct cel_type *a,
                         const struct cel_type *b)
{
    return cel_types_assignable(bindings, &a, &b, 1);
}

const struct cel_type *cel_type_resolve(struct cel_bindings *bindings, const struct cel_type *type,
                                        bool final)
{
    const struct cel_type *param[2] = {NULL, NULL};

    if (!type->open || too_many_steps(bindings))
        return type;
    while (type->kind == CEL_T_VARIABLE && bindings->bound[type->number])
        type = bindings->bound[type->number];
    if (type->kind == CEL_T_VARIABLE)
        return final ? &CEL_TYPES[CEL_T_DYN] : type;
    if (!type->open)
        return type;
    for (int i = 0; i < 2; i++)
        if (type->param[i])
            param[i] = cel_type_resolve(bindings, type->param[i], final);
    if (param[0] == type->param[0] && param[1] == type->param[1])
        return type;
    return cel_type_new(bindings->arena, type->kind, param[0], param[1]);
}

void cel_type_print(struct buf *out, const struct cel_type *type)
{
    static const char *const names[] = {
        [CEL_T_ERROR] = "error",       [CEL_T_DYN] = "dyn",           [CEL_T_NULL] = "null",
        [CEL_T_BOOL] = "bool",         [CEL_T_INT] = "int",           [CEL_T_UINT] = "uint",
        [CEL_T_DOUBLE] = "double",     [CEL_T_STRING] = "string",     [CEL_T_BYTES] = "bytes",
        [CEL_T_LIST] = "list",         [CEL_T_MAP] = "map",           [CEL_T_TYPE] = "type",
        [CEL_T_OPTIONAL] = "optional", [CEL_T_QUANTITY] = "quantity", [CEL_T_SEMVER] = "semver",
        [CEL_T_DEVICE] = "device",     [CEL_T_VARIABLE] = "any type",
    };

    buf_add_str(out, names[type->kind]);
    if (!type->param[0])
        return;
    buf_add_str(out, "(");
    cel_type_print(out, type->param[0]);
    if (type->param[1]) {
        buf_add_str(out, ", ");
        cel_type_print(out, type->param[1]);
    }
    buf_add_str(out, ")");
}
