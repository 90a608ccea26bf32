// SPDX-License-Identifier: Apache-2.0
#include "lib/cel/eval.h"

#include <assert.h>
#include <string.h>

#include "lib/cel/function.h"

enum { MAX_ARGS = 8, LIST_COST = 10, MAP_COST = 30 };

/* A chain of fields and indices on the way: its value, and whether it became optional. */
struct chain {
    struct cel_value value;
    bool optional;
    bool absent; /* nothing was there: the end is optional.none() */
};

static struct cel_value resolve(struct cel_eval *eval, const struct cel_node *node);

struct cel_value cel_stop(struct cel_eval *eval, const char *text)
{
    eval->stopped = true;
    return cel_error(text);
}

/* From the limit on, everything ends. */
static void spend(struct cel_eval *eval, uint64_t cost)
{
    eval->cost += cost;
    if (eval->cost > eval->limit || eval->arena->failed)
        eval->stopped = eval->over = true;
}

static bool is_attribute(const struct cel_node *node)
{
    return node->kind == CEL_NODE_IDENT || node->kind == CEL_NODE_SELECT ||
           node->kind == CEL_NODE_INDEX || node->kind == CEL_NODE_TERNARY;
}

static struct cel_value read_slot(struct cel_eval *eval, uint32_t number)
{
    struct cel_slot *slot = &eval->slots[number];

    assert(eval->slots);
    if (slot->pending) {
        const struct cel_node *pending = slot->pending;
        slot->pending = NULL;
        slot->value = cel_eval_node(eval, pending);
    }
    return slot->value;
}

static struct cel_value no_such_key(struct cel_eval *eval, const struct cel_value *key)
{
    struct buf text = BUF_INIT;
    struct cel_value error;

    cel_print(&text, key);
    error = cel_errorf(eval->arena, "no such key: %s", text.data ? text.data : "");
    buf_done(&text);
    return error;
}

static const struct cel_value *find_in_map(struct cel_eval *eval, const struct cel_map *map,
                                           const struct cel_value *key, struct cel_value *error)
{
    static const struct cel_map nothing;
    static const struct cel_value empty = {.kind = CEL_MAP, .map = &nothing};
    const struct cel_value *found = cel_map_find(map, key);

    if (!found && map->empty_inside)
        return &empty;
    if (!found && map->text_keys && key->kind != CEL_STRING)
        *error = cel_no_overload("the key of a device's map is a string");
    else if (!found)
        *error = no_such_key(eval, key);
    return found;
}

static bool index_of(const struct cel_value *key, size_t count, size_t *ret_index)
{
    double real = key->kind == CEL_DOUBLE ? key->real : 0;

    if (key->kind == CEL_INT && key->integer >= 0 && (uint64_t)key->integer < count)
        *ret_index = (size_t)key->integer;
    else if (key->kind == CEL_UINT && key->uinteger < count)
        *ret_index = (size_t)key->uinteger;
    else if (key->kind == CEL_DOUBLE && real >= 0 && real < (double)count &&
             real == (double)(size_t)real)
        *ret_index = (size_t)real;
    else
        return false;
    return true;
}

static bool is_index(const struct cel_value *key)
{
    return key->kind == CEL_INT || key->kind == CEL_UINT ||
           (key->kind == CEL_DOUBLE && key->real > -0x1p63 && key->real < 0x1p63 &&
            key->real == (double)(int64_t)key->real);
}

/* One step into a value. With may_lack, what is not there is no error: *ret_found tells. */
static struct cel_value qualify(struct cel_eval *eval, const struct cel_value *object,
                                const struct cel_value *key, bool may_lack, bool *ret_found)
{
    struct cel_value error = cel_error("no such key");
    const struct cel_value *found = NULL;
    size_t index;

    *ret_found = true;
    if (key->kind == CEL_ERROR)
        return *key;
    if (object->kind == CEL_MAP) {
        found = find_in_map(eval, object->map, key, &error);
        if (!found && object->map->text_keys && key->kind != CEL_STRING)
            return error;
    } else if (object->kind == CEL_LIST) {
        if (!is_index(key))
            return cel_error("a list is indexed by integers");
        if (index_of(key, object->list->count, &index))
            found = &object->list->items[index];
        else
            error = cel_error("index out of bounds");
    } else if (!may_lack) {
        return no_such_key(eval, key);
    }
    *ret_found = found != NULL;
    return found ? *found : may_lack ? (struct cel_value){.kind = CEL_NULL} : error;
}

static struct cel_value key_of(struct cel_eval *eval, const struct cel_node *node)
{
    const struct cel_node *key;
    struct cel_value value;

    if (node->kind == CEL_NODE_SELECT)
        return cel_string(node->name, strlen(node->name));
    key = node->args[1];
    value = is_attribute(key) ? resolve(eval, key) : cel_eval_node(eval, key);
    if (value.kind != CEL_STRING && value.kind != CEL_INT && value.kind != CEL_UINT &&
        value.kind != CEL_DOUBLE && value.kind != CEL_BOOL && value.kind != CEL_ERROR)
        return cel_error("a key is a string, a number or a bool");
    return value;
}

static struct chain start_chain(struct cel_eval *eval, const struct cel_node *node)
{
    struct chain chain = {0};

    if (node->kind == CEL_NODE_IDENT)
        chain.value = read_slot(eval, node->slot);
    else if (node->kind == CEL_NODE_TERNARY)
        chain.value = resolve(eval, node);
    else
        chain.value = cel_eval_node(eval, node);
    if (chain.value.kind == CEL_OPTIONAL) {
        if (chain.value.inside) {
            chain.value = *chain.value.inside;
            chain.optional = true;
        } else {
            chain.absent = true;
        }
    }
    return chain;
}

/* has(): the chain's end becomes whether the field is there. */
static struct chain test_field(struct cel_eval *eval, struct chain chain,
                               const struct cel_value *key)
{
    bool found;
    struct cel_value value = qualify(eval, &chain.value, key, true, &found);

    if (value.kind == CEL_ERROR) {
        chain.value = value;
        return chain;
    }
    if (found || !chain.optional)
        spend(eval, 1);
    chain.value = cel_bool(found);
    chain.optional = false;
    return chain;
}

static struct chain follow(struct cel_eval *eval, const struct cel_node *node)
{
    struct chain chain;
    struct cel_value key;
    bool found;

    if (node->kind != CEL_NODE_SELECT && node->kind != CEL_NODE_INDEX)
        return start_chain(eval, node);
    if (node->args[0]->test_only)
        chain = (struct chain){.value = resolve(eval, node->args[0])};
    else
        chain = follow(eval, node->args[0]);
    if (chain.absent || chain.value.kind == CEL_ERROR || eval->stopped)
        return chain;
    key = key_of(eval, node);
    if (node->test_only)
        return test_field(eval, chain, &key);
    chain.optional = chain.optional || node->optional;
    chain.value = qualify(eval, &chain.value, &key, chain.optional, &found);
    chain.absent = chain.optional && !found;
    if (!chain.optional || (found && chain.value.kind != CEL_ERROR))
        spend(eval, 1);
    return chain;
}

static struct cel_value resolve_ternary(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value condition = cel_eval_node(eval, node->args[0]);
    const struct cel_node *branch;

    if (condition.kind == CEL_ERROR)
        return condition;
    if (condition.kind != CEL_BOOL)
        return cel_no_overload("the condition before \"?\" is not a bool");
    branch = node->args[condition.boolean ? 1 : 2];
    return is_attribute(branch) ? resolve(eval, branch) : cel_eval_node(eval, branch);
}

/* The value of an attribute, without the cost of the attribute itself. */
static struct cel_value resolve(struct cel_eval *eval, const struct cel_node *node)
{
    struct chain chain;

    if (node->kind == CEL_NODE_TERNARY)
        return resolve_ternary(eval, node);
    if (node->kind == CEL_NODE_IDENT)
        return read_slot(eval, node->slot);
    chain = follow(eval, node);
    if (chain.absent)
        return node->test_only ? cel_bool(false) : (struct cel_value){.kind = CEL_OPTIONAL};
    if (chain.optional && chain.value.kind != CEL_ERROR)
        return cel_optional(eval->arena, chain.value);
    return chain.value;
}

static bool rooted_in_ternary(const struct cel_node *node)
{
    while (node->kind == CEL_NODE_SELECT || node->kind == CEL_NODE_INDEX)
        node = node->args[0];
    return node->kind == CEL_NODE_TERNARY;
}

static struct cel_value eval_attribute(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value value = resolve(eval, node);

    if (!node->test_only && !rooted_in_ternary(node))
        spend(eval, 1);
    else if (node->test_only && rooted_in_ternary(node) && eval->cost)
        eval->cost--; // upstream takes back what it never counted here
    return value;
}

/* "&&" (until: false) and "||" (until: true): one term that decides absorbs errors of others. */
static struct cel_value eval_logic(struct cel_eval *eval, const struct cel_node *node, bool until)
{
    struct cel_value error = {0};

    for (size_t i = 0; i < node->count; i++) {
        struct cel_value value = cel_eval_node(eval, node->args[i]);
        if (eval->stopped)
            return value;
        if (value.kind == CEL_BOOL && value.boolean == until)
            return value;
        if (value.kind == CEL_BOOL || error.kind == CEL_ERROR)
            continue;
        error = value.kind == CEL_ERROR ? value : cel_no_overload("a term is not a bool");
    }
    return error.kind == CEL_ERROR ? error : cel_bool(!until);
}

/* Takes a "?" item apart; false when it is none. */
static bool unwrap_item(const struct cel_node *node, size_t i, struct cel_value *value)
{
    if (!node->optional_args || !node->optional_args[i])
        return true;
    if (value->kind != CEL_OPTIONAL) {
        *value = cel_error("\"?\" stands before an optional value only");
        return true;
    }
    if (!value->inside)
        return false;
    *value = *value->inside;
    return true;
}

static struct cel_value build_list(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_list *list;
    struct cel_value result = cel_list_new(eval->arena, node->count, &list);
    size_t count = 0;

    for (size_t i = 0; result.kind == CEL_LIST && i < node->count; i++) {
        struct cel_value value = cel_eval_node(eval, node->args[i]);
        if (value.kind == CEL_ERROR || eval->stopped)
            return value;
        if (!unwrap_item(node, i, &value))
            continue;
        if (value.kind == CEL_ERROR)
            return value;
        list->items[count++] = value;
    }
    if (result.kind == CEL_LIST)
        list->count = count;
    return result;
}

static void put_entry(struct cel_map *map, struct cel_value key, struct cel_value value)
{
    for (size_t i = 0; i < map->count; i++) {
        // as Go's map: 1 and 1u are different keys here
        if (map->entries[i].key.kind == key.kind && cel_equal(&map->entries[i].key, &key)) {
            map->entries[i].value = value;
            return;
        }
    }
    map->entries[map->count++] = (struct cel_entry){key, value};
}

static struct cel_value build_map(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_map *map = cel_arena_alloc(eval->arena, sizeof(*map));

    if (map)
        map->entries = cel_arena_alloc(eval->arena, node->count / 2 * sizeof(*map->entries));
    if (!map || !map->entries)
        return cel_error("out of memory");
    for (size_t i = 0; i < node->count; i += 2) {
        struct cel_value key = cel_eval_node(eval, node->args[i]), value;
        if (key.kind == CEL_ERROR || eval->stopped)
            return key;
        value = cel_eval_node(eval, node->args[i + 1]);
        if (value.kind == CEL_ERROR || eval->stopped)
            return value;
        if (!unwrap_item(node, i + 1, &value))
            continue;
        if (value.kind == CEL_ERROR)
            return value;
        put_entry(map, key, value);
    }
    return (struct cel_value){.kind = CEL_MAP, .map = map};
}

static struct cel_value eval_fold(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value range = cel_eval_node(eval, node->args[FOLD_RANGE]);
    struct cel_slot *accu = &eval->slots[node->accu_slot], *item = &eval->slots[node->item_slot];
    size_t count = 0;

    assert(eval->slots);
    if (range.kind == CEL_ERROR || eval->stopped)
        return range;
    if (range.kind == CEL_LIST)
        count = range.list->count;
    else if (range.kind == CEL_MAP)
        count = range.map->count;
    else
        return cel_error("a macro needs a list or a map");
    accu->pending = node->args[FOLD_INIT];
    for (size_t i = 0; i < count && !eval->stopped; i++) {
        struct cel_value go_on, next;
        item->value = range.kind == CEL_LIST ? range.list->items[i] : range.map->entries[i].key;
        go_on = cel_eval_node(eval, node->args[FOLD_CONDITION]);
        if (go_on.kind == CEL_BOOL && !go_on.boolean)
            break;
        next = cel_eval_node(eval, node->args[FOLD_STEP]);
        accu->pending = NULL;
        accu->value = next;
    }
    return cel_eval_node(eval, node->args[FOLD_RESULT]);
}

static bool is_lazy(const struct cel_node *node)
{
    return !node->overload->fn && node->member;
}

/* or() and orValue(): no cost, and the alternative only where it is needed */
static struct cel_value eval_alternative(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value first = cel_eval_node(eval, node->args[0]);

    if (first.kind == CEL_ERROR || eval->stopped)
        return first;
    if (first.kind != CEL_OPTIONAL)
        return cel_no_overload("or() and orValue() belong to an optional value");
    if (!first.inside)
        return cel_eval_node(eval, node->args[1]);
    return strcmp(node->name, "or") == 0 ? first : *first.inside;
}

static struct cel_value eval_set_test(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value value = cel_eval_node(eval, node->args[0]);
    const struct cel_list *list = node->args[1]->value.list;

    if (value.kind == CEL_ERROR || eval->stopped)
        return value;
    // cel-go's set is a Go map: such keys make it panic, which nothing absorbs
    if (value.kind == CEL_BYTES || value.kind == CEL_SEMVER)
        return cel_stop(eval, "a version or bytes cannot be looked for in a list of constants");
    for (size_t i = 0; i < list->count; i++)
        if (cel_equal(&value, &list->items[i]))
            return cel_bool(true);
    return cel_bool(false);
}

static struct cel_value eval_call(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value args[MAX_ARGS], result = {0};

    if (is_lazy(node))
        return eval_alternative(eval, node);
    if (node->constant_set)
        return eval_set_test(eval, node);
    for (size_t i = 0; i < node->count; i++) {
        args[i] = cel_eval_node(eval, node->args[i]);
        if (eval->stopped)
            return args[i];
        if (args[i].kind == CEL_ERROR && result.kind != CEL_ERROR)
            result = args[i];
        if (args[i].kind == CEL_ERROR && node->ends_at_error) {
            if (i + 1 < node->count)
                return result; // at no cost of its own
        }
    }
    if (result.kind != CEL_ERROR || strcmp(node->name, "@not_strictly_false") == 0)
        result = node->overload->fn(eval, node, args, node->count);
    spend(eval, cel_call_cost(node, args, &result));
    return result;
}

struct cel_value cel_eval_node(struct cel_eval *eval, const struct cel_node *node)
{
    struct cel_value value;

    if (eval->stopped)
        return cel_error("stopped");
    switch (node->kind) {
    case CEL_NODE_LITERAL:
        return node->value;
    case CEL_NODE_IDENT:
    case CEL_NODE_SELECT:
    case CEL_NODE_INDEX:
    case CEL_NODE_TERNARY:
        return eval_attribute(eval, node);
    case CEL_NODE_AND:
    case CEL_NODE_OR:
        return eval_logic(eval, node, node->kind == CEL_NODE_OR);
    case CEL_NODE_CALL:
        return eval_call(eval, node);
    case CEL_NODE_LIST:
    case CEL_NODE_MAP:
        value = node->kind == CEL_NODE_LIST ? build_list(eval, node) : build_map(eval, node);
        spend(eval, node->kind == CEL_NODE_LIST ? LIST_COST : MAP_COST);
        return value;
    case CEL_NODE_FOLD:
        return eval_fold(eval, node);
    }
    return cel_stop(eval, "unknown kind of expression");
}

struct cel_value cel_eval_constant(struct cel_arena *arena, const struct cel_node *node)
{
    struct cel_eval eval = {.arena = arena, .limit = UINT64_MAX};

    return cel_eval_node(&eval, node);
}
