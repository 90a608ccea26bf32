// SPDX-License-Identifier: Apache-2.0
// Costs of calls: cel-go's interpreter/runtimecost.go and apiserver's pkg/cel/library/cost.go.
#include <math.h>
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"

static uint64_t tenth(double size)
{
    return (uint64_t)ceil(size * 0.1);
}

/* Cost of looking at every element once. */
static uint64_t walk(const struct cel_value *value)
{
    uint64_t cost = 0;

    switch (value->kind) {
    case CEL_STRING:
    case CEL_BYTES:
        return (uint64_t)((double)value->text.len * 0.1);
    case CEL_LIST:
        for (size_t i = 0; i < value->list->count; i++)
            cost += walk(&value->list->items[i]);
        return cost;
    case CEL_MAP:
        for (size_t i = 0; i < value->map->count; i++)
            cost += walk(&value->map->entries[i].key) + walk(&value->map->entries[i].value);
        return cost;
    default:
        return 1;
    }
}

static uint64_t smaller_tenth(const struct cel_value *args)
{
    size_t a = cel_size(&args[0]), b = cel_size(&args[1]);

    return tenth((double)(a < b ? a : b));
}

static uint64_t equality(const struct cel_node *call, const struct cel_value *args)
{
    bool one = args[0].kind == CEL_QUANTITY || args[0].kind == CEL_SEMVER;

    return one && strcmp(call->name, "_==_") == 0 ? 1 : smaller_tenth(args);
}

/* In double, as there: size * 2 * 0.1 is not size * 0.2. */
static uint64_t two_tenths(const struct cel_value *value)
{
    return (uint64_t)ceil((double)cel_size(value) * 2 * 0.1);
}

/* Comparing all items with all. */
static uint64_t distinct(const struct cel_value *list)
{
    size_t size = cel_size(list);
    bool text = list->kind == CEL_LIST && size > 0 &&
                (list->list->items[0].kind == CEL_STRING || list->list->items[0].kind == CEL_BYTES);

    return (uint64_t)((double)(size * size) * (text ? 2.1 : 2.0)) + 11;
}

uint64_t cel_call_cost(const struct cel_node *call, const struct cel_value *args,
                       const struct cel_value *result)
{
    switch ((enum cel_cost)call->cost) {
    case CEL_COST_EQUAL:
        return equality(call, args);
    case CEL_COST_ORDER:
        return smaller_tenth(args);
    case CEL_COST_CONCAT:
        return tenth((double)(cel_size(&args[0]) + cel_size(&args[1])));
    case CEL_COST_IN_LIST:
        return cel_size(&args[1]);
    case CEL_COST_SECOND:
        return tenth((double)cel_size(&args[1]));
    case CEL_COST_FIRST:
    case CEL_COST_NAMED_FIRST:
        return tenth((double)cel_size(&args[0]));
    case CEL_COST_CONTAINS:
        return tenth((double)cel_size(&args[0])) * tenth((double)cel_size(&args[1]));
    case CEL_COST_MATCHES:
        return tenth(1.0 + (double)cel_size(&args[0])) *
               (uint64_t)ceil((double)cel_size(&args[1]) * 0.25);
    case CEL_COST_SETS:
        return 1 + cel_size(&args[0]) * cel_size(&args[1]);
    case CEL_COST_SETS_TWICE:
        return 1 + 2 * cel_size(&args[0]) * cel_size(&args[1]);
    case CEL_COST_WALK:
        return walk(&args[0]);
    case CEL_COST_FIRST_TWICE:
        return two_tenths(&args[0]);
    case CEL_COST_RESULT_TWICE:
        return two_tenths(result);
    case CEL_COST_NEW_LIST:
        return cel_size(result) + 11;
    case CEL_COST_DISTINCT:
        return distinct(&args[0]);
    case CEL_COST_ONE:
        break;
    }
    return 1;
}
