// SPDX-License-Identifier: Apache-2.0
// Functions of lists: apiserver's library/lists.go, cel-go's ext/sets.go, and of ext/lists.go
// first, last, slice, reverse, distinct and lists.range.
#include "lib/cel/list.h"

#include <assert.h>
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"

enum { MAX_RANGE = 1000000 }; // ext/lists.go: defaultMaxRangeSize

struct cel_value cel_list_index(const struct cel_list *list, const struct cel_value *item,
                                bool last)
{
    int64_t found = -1;

    for (size_t i = 0; i < list->count; i++) {
        if (!cel_equal(&list->items[i], item))
            continue;
        found = (int64_t)i;
        if (!last)
            break;
    }
    return cel_int(found);
}

static bool holds(const struct cel_list *list, const struct cel_value *item)
{
    return cel_list_index(list, item, false).integer >= 0;
}

CEL_FUNCTION(cel_is_sorted)
{
    int order;

    (void)eval;
    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    for (size_t i = 1; i < args[0].list->count; i++) {
        const struct cel_value *item = &args[0].list->items[i];
        if (!cel_compare(item - 1, item, &order))
            continue;
        if (order > 0)
            return cel_bool(false);
    }
    return cel_bool(true);
}

CEL_FUNCTION(cel_sum)
{
    struct cel_value sum = cel_int(0);

    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    if (call->type && call->type->kind == CEL_T_UINT)
        sum = (struct cel_value){.kind = CEL_UINT};
    else if (call->type && call->type->kind == CEL_T_DOUBLE)
        sum = (struct cel_value){.kind = CEL_DOUBLE};
    else if (args[0].list->count) // of a type known only now
        sum = (struct cel_value){.kind = args[0].list->items[0].kind};
    for (size_t i = 0; i < args[0].list->count && sum.kind != CEL_ERROR; i++) {
        struct cel_value pair[2] = {sum, args[0].list->items[i]};
        sum = cel_add(eval, call, pair, 2);
    }
    return sum;
}

/* max() and min() */
CEL_FUNCTION(cel_extreme)
{
    const struct cel_value *best = NULL;
    int wanted = call->name[1] == 'a' ? 1 : -1, order;

    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    if (args[0].list->count == 0)
        return cel_errorf(eval->arena, "%s called on an empty list", call->name);
    for (size_t i = 0; i < args[0].list->count; i++) {
        const struct cel_value *item = &args[0].list->items[i];
        if (!best || (cel_compare(item, best, &order) && order == wanted))
            best = item;
    }
    assert(best);
    return *best;
}

CEL_FUNCTION(cel_includes)
{
    (void)eval;
    (void)call;
    (void)count;
    if (args[0].kind == CEL_LIST)
        return cel_bool(holds(args[0].list, &args[1]));
    return cel_bool(cel_equal(&args[0], &args[1]));
}

/* first() and last() */
CEL_FUNCTION(cel_end_item)
{
    const struct cel_list *list = args[0].list;

    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    if (list->count == 0)
        return (struct cel_value){.kind = CEL_OPTIONAL};
    return cel_optional(eval->arena, list->items[call->name[0] == 'f' ? 0 : list->count - 1]);
}

CEL_FUNCTION(cel_slice)
{
    const struct cel_list *from = args[0].list;
    struct cel_list *part;
    struct cel_value value;

    (void)count;
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_INT || args[2].kind != CEL_INT)
        return cel_no_overload(call->name);
    int64_t start = args[1].integer, end = args[2].integer;
    if (start < 0 || end < 0 || start > end || (uint64_t)end > from->count)
        return cel_errorf(eval->arena, "cannot slice(%lld, %lld) of a list of %zu",
                          (long long)start, (long long)end, from->count);
    value = cel_list_new(eval->arena, (size_t)(end - start), &part);
    for (size_t i = 0; value.kind == CEL_LIST && i < part->count; i++)
        part->items[i] = from->items[(size_t)start + i];
    return value;
}

CEL_FUNCTION(cel_reverse)
{
    struct cel_list *turned;
    struct cel_value value;

    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    value = cel_list_new(eval->arena, args[0].list->count, &turned);
    for (size_t i = 0; value.kind == CEL_LIST && i < turned->count; i++)
        turned->items[i] = args[0].list->items[turned->count - 1 - i];
    return value;
}

CEL_FUNCTION(cel_distinct)
{
    const struct cel_list *from = args[0].list;
    struct cel_list *kept;
    struct cel_value value;
    size_t n = 0;

    (void)count;
    if (args[0].kind != CEL_LIST)
        return cel_no_overload(call->name);
    value = cel_list_new(eval->arena, from->count, &kept);
    for (size_t i = 0; value.kind == CEL_LIST && i < from->count; i++) {
        bool seen = false;
        for (size_t j = 0; j < n && !seen; j++)
            seen = cel_equal(&from->items[i], &kept->items[j]);
        if (!seen)
            kept->items[n++] = from->items[i];
    }
    if (value.kind == CEL_LIST)
        kept->count = n;
    return value;
}

CEL_FUNCTION(cel_range)
{
    struct cel_list *numbers;
    struct cel_value value;

    (void)count;
    if (args[0].kind != CEL_INT)
        return cel_no_overload(call->name);
    if (args[0].integer < 0 || args[0].integer > MAX_RANGE)
        return cel_errorf(eval->arena, "lists.range(%lld): expected 0 to %d",
                          (long long)args[0].integer, MAX_RANGE);
    value = cel_list_new(eval->arena, (size_t)args[0].integer, &numbers);
    for (size_t i = 0; value.kind == CEL_LIST && i < numbers->count; i++)
        numbers->items[i] = cel_int((int64_t)i);
    return value;
}

static bool holds_all(const struct cel_list *list, const struct cel_list *items)
{
    for (size_t i = 0; i < items->count; i++)
        if (!holds(list, &items->items[i]))
            return false;
    return true;
}

static bool two_lists(const struct cel_value *args)
{
    return args[0].kind == CEL_LIST && args[1].kind == CEL_LIST;
}

CEL_FUNCTION(cel_sets_contains)
{
    (void)eval;
    (void)count;
    if (!two_lists(args))
        return cel_no_overload(call->name);
    return cel_bool(holds_all(args[0].list, args[1].list));
}

CEL_FUNCTION(cel_sets_equivalent)
{
    (void)eval;
    (void)count;
    if (!two_lists(args))
        return cel_no_overload(call->name);
    return cel_bool(holds_all(args[0].list, args[1].list) && holds_all(args[1].list, args[0].list));
}

CEL_FUNCTION(cel_sets_intersects)
{
    (void)eval;
    (void)count;
    if (!two_lists(args))
        return cel_no_overload(call->name);
    for (size_t i = 0; i < args[1].list->count; i++)
        if (holds(args[0].list, &args[1].list->items[i]))
            return cel_bool(true);
    return cel_bool(false);
}
