// SPDX-License-Identifier: Apache-2.0
// Only the upper bound of a cost is kept: the lower one decides nothing. Sizes have both, since the
// size of what is replaced divides.
#include "lib/cel/estimate.h"

#include <math.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/cel/function.h"

#define UNBOUNDED UINT64_MAX
#define TRAVERSAL 0.1 // of one character or byte
#define PATTERN 0.25  // of one character of a pattern

struct size {
    uint64_t min, max;
};

/* Of what a list or map holds; a list's key is its index. */
struct entry {
    bool list;
    struct size key, value;
};

/* What is below "device", where a size is known. */
enum place {
    PLACE_NONE, /* somewhere else */
    PLACE_DEVICE,
    PLACE_DRIVER,
    PLACE_MULTIPLE,
    PLACE_ATTRIBUTES,
    PLACE_ATTRIBUTES_OF, /* of a domain */
    PLACE_ATTRIBUTE,
    PLACE_CAPACITIES,
    PLACE_CAPACITIES_OF,
    PLACE_CAPACITY,
    PLACE_DOMAIN,
    PLACE_ID,
};

struct cel_size_note {
    enum place place;
    bool has_size, has_entry;
    struct size size;
    struct entry entry;
};

/* A variable of a macro. */
struct local {
    const struct local *outer;
    const char *name;
    enum place place;
    bool has_size, has_entry;
    struct size size;
    struct entry entry;
};

struct estimator {
    struct cel_arena *arena;
    struct cel_bindings *bindings;
    const struct local *locals;
};

static uint64_t cost(struct estimator *e, struct cel_node *node);

// ---- numbers that stop at UINT64_MAX

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t scaled(uint64_t a, double factor)
{
    double up = ceil((double)a * factor);

    return up >= 0x1p64 ? UINT64_MAX : (uint64_t)up;
}

static struct size sum_of(struct size a, struct size b)
{
    return (struct size){plus(a.min, b.min), plus(a.max, b.max)};
}

static struct size product_of(struct size a, struct size b)
{
    return (struct size){times(a.min, b.min), times(a.max, b.max)};
}

static struct size span(struct size a, struct size b)
{
    return (struct size){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
}

static struct size exactly(uint64_t size)
{
    return (struct size){size, size};
}

static const struct size UNKNOWN = {0, UNBOUNDED};

// ---- places

static enum place item_of(enum place place)
{
    switch (place) {
    case PLACE_ATTRIBUTES:
        return PLACE_ATTRIBUTES_OF;
    case PLACE_ATTRIBUTES_OF:
        return PLACE_ATTRIBUTE;
    case PLACE_CAPACITIES:
        return PLACE_CAPACITIES_OF;
    case PLACE_CAPACITIES_OF:
        return PLACE_CAPACITY;
    default:
        return PLACE_NONE;
    }
}

static enum place key_of(enum place place)
{
    switch (place) {
    case PLACE_ATTRIBUTES:
    case PLACE_CAPACITIES:
        return PLACE_DOMAIN;
    case PLACE_ATTRIBUTES_OF:
    case PLACE_CAPACITIES_OF:
        return PLACE_ID;
    default:
        return PLACE_NONE;
    }
}

/* By name only the device's fields are known, and the attributes of a domain. */
static enum place field_of(enum place place, const char *name)
{
    static const struct {
        const char *name;
        enum place place;
    } fields[] = {{"driver", PLACE_DRIVER},
                  {"allowMultipleAllocations", PLACE_MULTIPLE},
                  {"attributes", PLACE_ATTRIBUTES},
                  {"capacity", PLACE_CAPACITIES}};

    if (place == PLACE_ATTRIBUTES_OF)
        return PLACE_ATTRIBUTE;
    for (size_t i = 0; place == PLACE_DEVICE && i < ARRAY_LEN(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].place;
    return PLACE_NONE;
}

/* resource.k8s.io: 63 bytes of a domain or driver, 32 of an identifier, 64 of an attribute's text,
 * 32 attributes and capacities. What is no text, list or map has none. */
static const uint64_t LARGEST[] = {
    [PLACE_DRIVER] = 63,        [PLACE_MULTIPLE] = 1,   [PLACE_ATTRIBUTES] = 32,
    [PLACE_ATTRIBUTES_OF] = 32, [PLACE_ATTRIBUTE] = 64, [PLACE_CAPACITIES] = 32,
    [PLACE_CAPACITIES_OF] = 32, [PLACE_DOMAIN] = 63,    [PLACE_ID] = 32,
};

// ---- sizes

static const struct cel_type *type_of(struct estimator *e, const struct cel_node *node)
{
    const struct cel_type *type = cel_type_resolve(e->bindings, node->type, true);

    return type ? type : &CEL_TYPES[CEL_T_DYN];
}

static struct cel_size_note *note_of(struct estimator *e, struct cel_node *node)
{
    static struct cel_size_note none;

    if (!node->note) {
        node->note = cel_arena_alloc(e->arena, sizeof(*node->note));
        if (node->note)
            *node->note = (struct cel_size_note){0};
    }
    return node->note ? node->note : &none;
}

static const struct local *local_of(const struct estimator *e, const struct cel_node *node)
{
    if (node->kind != CEL_NODE_IDENT)
        return NULL;
    for (const struct local *l = e->locals; l; l = l->outer)
        if (strcmp(l->name, node->name) == 0)
            return l;
    return NULL;
}

static enum place place_of(struct estimator *e, struct cel_node *node)
{
    const struct local *local = local_of(e, node);

    return local ? local->place : note_of(e, node)->place;
}

static bool literal_size(const struct cel_node *node, struct size *ret_size)
{
    if (node->kind == CEL_NODE_LIST || node->kind == CEL_NODE_MAP) {
        *ret_size = exactly(node->kind == CEL_NODE_MAP ? node->count / 2 : node->count);
        return true;
    }
    if (node->kind != CEL_NODE_LITERAL || node->value.kind == CEL_TYPE)
        return false;
    if (node->value.kind == CEL_STRING)
        *ret_size = exactly(cel_size(&node->value));
    else if (node->value.kind == CEL_BYTES)
        *ret_size = exactly(node->value.text.len);
    else
        *ret_size = exactly(1);
    return true;
}

static bool is_scalar(const struct cel_type *type)
{
    while (type->kind == CEL_T_OPTIONAL)
        type = type->param[0];
    return type->kind == CEL_T_BOOL || type->kind == CEL_T_INT || type->kind == CEL_T_UINT ||
           type->kind == CEL_T_DOUBLE;
}

static void set_size(struct estimator *e, struct cel_node *node, struct size size)
{
    struct cel_size_note *note = note_of(e, node);

    if (node->note) {
        note->has_size = true;
        note->size = size;
    }
}

static bool size_of(struct estimator *e, struct cel_node *node, struct size *ret_size)
{
    const struct cel_size_note *note = note_of(e, node);
    const struct local *local = local_of(e, node);
    enum place place = place_of(e, node);

    if (note->has_size)
        *ret_size = note->size;
    else if (literal_size(node, ret_size))
        return true;
    else if (place != PLACE_NONE) {
        *ret_size = (struct size){0, LARGEST[place]};
        set_size(e, node, *ret_size);
    } else if (is_scalar(type_of(e, node)))
        *ret_size = exactly(1);
    else if (local && local->has_size)
        *ret_size = local->size;
    else
        return false;
    return true;
}

static struct size size_or_unknown(struct estimator *e, struct cel_node *node)
{
    struct size size;

    return size_of(e, node, &size) ? size : UNKNOWN;
}

static bool entry_of(struct estimator *e, struct cel_node *node, struct entry *ret_entry)
{
    const struct cel_size_note *note = note_of(e, node);
    const struct local *local = local_of(e, node);

    if (note->has_entry)
        *ret_entry = note->entry;
    else if (local && local->has_entry)
        *ret_entry = local->entry;
    else
        return false;
    return true;
}

static void set_entry(struct estimator *e, struct cel_node *node, const struct entry *entry)
{
    struct cel_size_note *note = note_of(e, node);

    if (node->note) {
        note->has_entry = true;
        note->entry = *entry;
    }
}

/* What both may hold. */
static void span_entries(struct estimator *e, struct cel_node *node, struct cel_node *a,
                         struct cel_node *b)
{
    struct entry left, right;

    if (!entry_of(e, a, &left) || !entry_of(e, b, &right))
        return;
    left.key = span(left.key, right.key);
    left.value = span(left.value, right.value);
    set_entry(e, node, &left);
}

static void copy_sizes(struct estimator *e, struct cel_node *to, struct cel_node *from)
{
    struct size size;
    struct entry entry;

    if (size_of(e, from, &size))
        set_size(e, to, size);
    if (entry_of(e, from, &entry))
        set_entry(e, to, &entry);
}

// ---- calls

/* A call as a function sees it: what stands before the dot, and the arguments. */
struct call {
    struct cel_node *node, *target, **args;
    size_t count;
};

struct result {
    uint64_t cost; /* without that of the arguments */
    bool sized;
    struct size size;
};

static struct result costs(uint64_t cost)
{
    return (struct result){.cost = cost};
}

static struct result costs_and_has(uint64_t cost, struct size size)
{
    return (struct result){cost, true, size};
}

/* Every element of the target is compared once. */
static struct result walk(struct estimator *e, const struct call *call)
{
    const struct cel_type *type = type_of(e, call->target), *item = type->param[0];
    struct size size = size_or_unknown(e, call->target);
    uint64_t each = 1;

    if (!item)
        return costs(strcmp(call->node->name, "includes") == 0 ? size.max
                                                               : scaled(size.max, TRAVERSAL));
    if (item->kind == CEL_T_STRING || item->kind == CEL_T_BYTES) {
        enum place place = item_of(place_of(e, call->target));
        uint64_t longest = place == PLACE_NONE ? UNBOUNDED : LARGEST[place];
        each = plus(1, scaled(longest, TRAVERSAL));
    }
    return costs(times(size.max, each));
}

/* As often as it can be, by the longest there is; an empty text is replaced around each character.
 */
static struct result replace(struct estimator *e, const struct call *call)
{
    struct size text = size_or_unknown(e, call->target);
    struct size old = size_or_unknown(e, call->args[0]), new = size_or_unknown(e, call->args[1]);
    struct size count = {0, 0}, kept = {0, 0};

    if (old.min == 0) {
        count.max = plus(text.max, 1);
        kept.max = text.max;
    } else if (new.max <= old.min) {
        kept.max = text.max;
    } else {
        count.max = scaled(text.max, 1.0 / (double)old.min);
    }
    if (old.max == 0) {
        count.min = plus(text.min, 1);
        kept.min = text.min;
    } else if (old.max <= new.min) {
        kept.min = text.min;
    } else {
        count.min = scaled(text.min, 1.0 / (double)old.max);
    }
    return costs_and_has(scaled(text.max, 2 * TRAVERSAL), sum_of(product_of(count, new), kept));
}

static struct result split(struct estimator *e, const struct call *call)
{
    struct size text = size_or_unknown(e, call->target), size = {0, text.max};
    const struct cel_node *limit = call->count > 1 ? call->args[1] : NULL;

    if (limit && limit->kind == CEL_NODE_LITERAL && limit->value.kind == CEL_INT)
        size.max = (uint64_t)limit->value.integer;
    return costs_and_has(scaled(text.max, 2 * TRAVERSAL), size);
}

static struct result join(struct estimator *e, const struct call *call)
{
    struct size list = size_or_unknown(e, call->target), size = {0, 0};

    if (type_of(e, call->target)->param[0]) {
        enum place place = item_of(place_of(e, call->target));
        struct size item = place == PLACE_NONE ? UNKNOWN : (struct size){0, LARGEST[place]};
        size = product_of(list, item);
    }
    if (call->count > 0) {
        struct size gaps = {list.min ? list.min - 1 : 0, list.max ? list.max - 1 : 0};
        size = sum_of(size, product_of(size_or_unknown(e, call->args[0]), gaps));
    }
    return costs_and_has(scaled(size.max, TRAVERSAL), size);
}

/* A literal number of an argument, 0 for what is below. */
static uint64_t number_of(const struct cel_node *node, uint64_t otherwise)
{
    if (node->kind != CEL_NODE_LITERAL || node->value.kind != CEL_INT)
        return otherwise;
    return node->value.integer < 0 ? 0 : (uint64_t)node->value.integer;
}

/* slice, reverse and lists.range. */
static struct result new_list(struct estimator *e, const struct call *call)
{
    struct size size;

    if (!call->target)
        size = exactly(number_of(call->args[0], UNBOUNDED));
    else if (call->count == 0)
        size = size_or_unknown(e, call->target);
    else // it wraps around there, too
        size = exactly(number_of(call->args[1], size_or_unknown(e, call->target).max) -
                       number_of(call->args[0], 0));
    return costs_and_has(plus(scaled(size.max, 1), 11), size);
}

static struct result distinct(struct estimator *e, const struct call *call)
{
    struct size size = size_or_unknown(e, call->target), square = product_of(size, size);

    return costs_and_has(plus(scaled(square.max, 2), 11), square);
}

static struct result equality(struct estimator *e, const struct call *call)
{
    const struct cel_type *left = type_of(e, call->args[0]), *right = type_of(e, call->args[1]);
    uint64_t a = size_or_unknown(e, call->args[0]).max, b = size_or_unknown(e, call->args[1]).max;
    bool plain =
        left->kind == right->kind && (left->kind == CEL_T_QUANTITY || left->kind == CEL_T_SEMVER);

    if (plain && strcmp(call->node->name, "_==_") == 0)
        return costs(1);
    return costs(scaled(a < b ? a : b, TRAVERSAL));
}

/* Of texts, bytes or lists. */
static struct result concat(struct estimator *e, const struct call *call, bool list)
{
    struct size size = sum_of(size_or_unknown(e, call->args[0]), size_or_unknown(e, call->args[1]));

    span_entries(e, call->node, call->args[0], call->args[1]);
    return costs_and_has(list ? 1 : scaled(size.max, TRAVERSAL), size);
}

/* Conversions between text and bytes, and quotes. */
static struct result convert(struct estimator *e, const struct call *call)
{
    struct size from = size_or_unknown(e, call->args[0]), to = from;

    if (strcmp(call->node->name, "bytes") == 0)
        to.max = from.max * 4; // it wraps around there, too
    else if (strcmp(call->node->name, "string") == 0)
        to.min = from.min / 4;
    else
        to = (struct size){from.min + 2, from.max * 2 + 2};
    return costs_and_has(scaled(from.max, TRAVERSAL), to);
}

static struct result matches(struct estimator *e, const struct call *call)
{
    struct cel_node *text = call->target ? call->target : call->args[0];
    struct cel_node *pattern = call->args[call->count - 1];
    uint64_t length = plus(size_or_unknown(e, text).max, 1);

    return costs(
        times(scaled(length, TRAVERSAL), scaled(size_or_unknown(e, pattern).max, PATTERN)));
}

static struct result sets(struct estimator *e, const struct call *call, double factor)
{
    struct size both =
        product_of(size_or_unknown(e, call->args[0]), size_or_unknown(e, call->args[1]));

    return costs(plus(scaled(both.max, factor), 1));
}

/* quantity(text), or text.trim(), whose result is as long. */
static struct result traverse(struct estimator *e, const struct call *call)
{
    struct size size = size_or_unknown(e, call->target ? call->target : call->args[0]);
    uint64_t all = scaled(size.max, TRAVERSAL);

    return call->target ? costs_and_has(all, size) : costs(all);
}

static struct result overload_cost(struct estimator *e, const struct call *call,
                                   const struct cel_overload *overload)
{
    switch ((enum cel_cost)overload->cost) {
    case CEL_COST_EQUAL:
        return equality(e, call);
    case CEL_COST_ORDER: {
        uint64_t a = size_or_unknown(e, call->args[0]).max;
        uint64_t b = size_or_unknown(e, call->args[1]).max;
        return costs(scaled(a < b ? a : b, TRAVERSAL));
    }
    case CEL_COST_CONCAT:
        return concat(e, call, false);
    case CEL_COST_IN_LIST:
        return costs(size_or_unknown(e, call->args[1]).max);
    case CEL_COST_SECOND:
        return costs(scaled(size_or_unknown(e, call->args[0]).max, TRAVERSAL));
    case CEL_COST_FIRST:
        return convert(e, call);
    case CEL_COST_CONTAINS:
        return costs(times(scaled(size_or_unknown(e, call->target).max, TRAVERSAL),
                           scaled(size_or_unknown(e, call->args[0]).max, TRAVERSAL)));
    case CEL_COST_MATCHES:
        return matches(e, call);
    case CEL_COST_SETS:
        return sets(e, call, 1);
    case CEL_COST_SETS_TWICE:
        return sets(e, call, 2);
    case CEL_COST_WALK:
        return walk(e, call);
    case CEL_COST_NAMED_FIRST:
        return traverse(e, call);
    case CEL_COST_FIRST_TWICE:
        return strcmp(call->node->name, "split") == 0 ? split(e, call) : replace(e, call);
    case CEL_COST_RESULT_TWICE:
        return join(e, call);
    case CEL_COST_NEW_LIST:
        return new_list(e, call);
    case CEL_COST_DISTINCT:
        return distinct(e, call);
    case CEL_COST_ONE:
        break;
    }
    return strcmp(overload->name, "_+_") == 0 && overload->signature[0] == 'l'
               ? concat(e, call, true)
               : costs(1);
}

/* What an index leads to; of both kinds where the type is not known, a map's last. */
static bool index_place(struct estimator *e, const struct call *call,
                        const struct cel_overload *overload, struct result *result)
{
    struct entry entry;

    if (strcmp(overload->name, "_[_]") != 0 || overload->signature[0] == 'o')
        return false;
    note_of(e, call->node)->place = item_of(place_of(e, call->args[0]));
    result->sized = entry_of(e, call->args[0], &entry);
    if (result->sized)
        result->size = entry.value;
    return true;
}

/* The worst of all overloads that the call may have. */
static uint64_t worst_overload(struct estimator *e, const struct call *call)
{
    struct result all = {0};
    uint32_t bit = 1;

    for (const struct cel_overload *o = NULL; (o = cel_overload_next(call->node->name, o));
         bit <<= 1) {
        if (!(call->node->overloads & bit))
            continue;
        struct result one = overload_cost(e, call, o);
        all.cost = one.cost > all.cost ? one.cost : all.cost;
        if (one.sized) {
            all.size = all.sized ? span(all.size, one.size) : one.size;
            all.sized = true;
        }
        index_place(e, call, o, &all);
        if (!all.sized)
            all.sized = size_of(e, call->node, &all.size);
    }
    if (all.sized)
        set_size(e, call->node, all.size);
    return all.cost;
}

static uint64_t cost_of_args(struct estimator *e, const struct cel_node *node)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->count; i++)
        sum = plus(sum, cost(e, node->args[i]));
    return sum;
}

static uint64_t cost_of_call(struct estimator *e, struct cel_node *node)
{
    struct cel_node **rest = node->member ? node->args + 1 : node->args; /* NULL without any */
    struct call call = {node, node->member ? node->args[0] : NULL, rest,
                        node->count - node->member};
    uint64_t args = cost_of_args(e, node);

    if (strcmp(node->name, "dyn") == 0) {
        copy_sizes(e, node, node->args[0]);
        return plus(args, 1);
    }
    return plus(args, worst_overload(e, &call));
}

static uint64_t cost_of_ternary(struct estimator *e, struct cel_node *node)
{
    uint64_t test = cost(e, node->args[0]), yes = cost(e, node->args[1]),
             no = cost(e, node->args[2]);

    span_entries(e, node, node->args[1], node->args[2]);
    set_size(e, node, span(size_or_unknown(e, node->args[1]), size_or_unknown(e, node->args[2])));
    return plus(test, yes > no ? yes : no);
}

// ---- the other nodes

static uint64_t cost_of_ident(struct estimator *e, struct cel_node *node)
{
    const struct local *local = local_of(e, node);
    enum place root = strcmp(node->name, "device") == 0 ? PLACE_DEVICE : PLACE_NONE;
    struct cel_size_note *note = note_of(e, node);

    if (node->note)
        note->place = local ? local->place : root;
    return 1;
}

static uint64_t cost_of_select(struct estimator *e, struct cel_node *node)
{
    uint64_t operand = cost(e, node->args[0]);
    enum cel_type_kind kind = type_of(e, node->args[0])->kind;

    if (node->test_only)
        return operand;
    if (node->optional) // a call
        return plus(operand, 1);
    note_of(e, node)->place = field_of(place_of(e, node->args[0]), node->name);
    return plus(operand, kind == CEL_T_MAP || kind == CEL_T_DEVICE);
}

static uint64_t cost_of_literal_parts(struct estimator *e, struct cel_node *node)
{
    bool map = node->kind == CEL_NODE_MAP;
    struct size least = {node->count ? UINT64_MAX : 0, 0};
    struct entry entry = {!map, map ? least : exactly(1), least};
    uint64_t sum = cost_of_args(e, node);

    for (size_t i = 0; i < node->count; i++) {
        struct size *part = map && i % 2 == 0 ? &entry.key : &entry.value;
        *part = span(*part, size_or_unknown(e, node->args[i]));
    }
    set_entry(e, node, &entry);
    return plus(sum, map ? 30 : 10);
}

static struct local accumulator(struct estimator *e, const struct cel_node *fold)
{
    struct cel_node *init = fold->args[FOLD_INIT];
    struct local accu = {.outer = e->locals, .name = fold->accu, .place = place_of(e, init)};

    accu.has_size = size_of(e, init, &accu.size);
    accu.has_entry = entry_of(e, init, &accu.entry);
    return accu;
}

static struct local item_variable(struct estimator *e, const struct cel_node *fold)
{
    struct cel_node *range = fold->args[FOLD_RANGE];
    struct entry entry;
    bool known = entry_of(e, range, &entry);
    bool list = known ? entry.list : type_of(e, range)->kind == CEL_T_LIST;
    enum place place = place_of(e, range);
    struct local item = {.name = fold->item, .has_size = known};

    if (known)
        item.size = list ? entry.value : entry.key;
    item.place = list ? item_of(place) : key_of(place);
    return item;
}

static bool is_binding(const struct cel_node *fold)
{
    const struct cel_node *range = fold->args[FOLD_RANGE], *go_on = fold->args[FOLD_CONDITION];

    return range->kind == CEL_NODE_LIST && range->count == 0 && go_on->kind == CEL_NODE_LITERAL &&
           go_on->value.kind == CEL_BOOL && !go_on->value.boolean;
}

static uint64_t cost_of_binding(struct estimator *e, struct cel_node *node)
{
    const struct local *outer = e->locals;
    uint64_t sum = plus(cost(e, node->args[FOLD_RANGE]), cost(e, node->args[FOLD_INIT]));
    struct local variable = accumulator(e, node);

    e->locals = &variable;
    sum = plus(sum, cost(e, node->args[FOLD_RESULT]));
    e->locals = outer;
    copy_sizes(e, node, node->args[FOLD_RESULT]);
    return sum;
}

/* The size of a fold is that of what it makes: one value, or as many items as it goes through. */
static void size_fold(struct estimator *e, struct cel_node *node, struct size rounds)
{
    struct cel_node *init = node->args[FOLD_INIT];
    struct size size;
    struct entry entry;

    if (init->kind == CEL_NODE_LITERAL) {
        if (size_of(e, init, &size))
            set_size(e, node, size);
    } else if (init->kind == CEL_NODE_LIST || init->kind == CEL_NODE_MAP) {
        set_size(e, node, rounds);
        if (entry_of(e, node->args[FOLD_STEP], &entry))
            set_entry(e, node, &entry);
    }
}

static uint64_t cost_of_fold(struct estimator *e, struct cel_node *node)
{
    const struct local *outer = e->locals;

    if (is_binding(node))
        return cost_of_binding(e, node);
    uint64_t sum = plus(cost(e, node->args[FOLD_RANGE]), cost(e, node->args[FOLD_INIT]));
    struct local accu = accumulator(e, node);
    e->locals = &accu;
    struct local item = item_variable(e, node);
    item.outer = &accu;
    e->locals = &item;
    uint64_t round = plus(cost(e, node->args[FOLD_CONDITION]), cost(e, node->args[FOLD_STEP]));
    e->locals = &accu;
    sum = plus(sum, cost(e, node->args[FOLD_RESULT]));
    e->locals = outer;
    struct size rounds = size_or_unknown(e, node->args[FOLD_RANGE]);
    size_fold(e, node, rounds);
    return plus(sum, times(rounds.max, round));
}

static uint64_t cost(struct estimator *e, struct cel_node *node)
{
    switch (node->kind) {
    case CEL_NODE_LITERAL:
        return node->value.kind == CEL_TYPE; // a type's name is an identifier there
    case CEL_NODE_IDENT:
        return cost_of_ident(e, node);
    case CEL_NODE_SELECT:
        return cost_of_select(e, node);
    case CEL_NODE_INDEX:
    case CEL_NODE_CALL:
        return cost_of_call(e, node);
    case CEL_NODE_AND:
    case CEL_NODE_OR:
        return cost_of_args(e, node);
    case CEL_NODE_TERNARY:
        return cost_of_ternary(e, node);
    case CEL_NODE_LIST:
    case CEL_NODE_MAP:
        return cost_of_literal_parts(e, node);
    case CEL_NODE_FOLD:
        return cost_of_fold(e, node);
    }
    return 0;
}

uint64_t cel_estimate(struct cel_arena *arena, struct cel_bindings *bindings, struct cel_node *root)
{
    struct estimator e = {arena, bindings, NULL};

    return cost(&e, root);
}
