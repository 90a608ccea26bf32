// SPDX-License-Identifier: Apache-2.0
// Operators. Overflow is an error; numbers of different types compare, but do not add.
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"

static struct cel_value uint_value(uint64_t value)
{
    return (struct cel_value){.kind = CEL_UINT, .uinteger = value};
}

static struct cel_value double_value(double value)
{
    return (struct cel_value){.kind = CEL_DOUBLE, .real = value};
}

static struct cel_value overflow(void)
{
    return cel_error("integer overflow");
}

static struct cel_value concat(struct cel_eval *eval, const struct cel_value *a,
                               const struct cel_value *b)
{
    struct cel_value result = *a;
    char *out = cel_arena_alloc(eval->arena, a->text.len + b->text.len + 1);

    if (!out)
        return cel_error("out of memory");
    if (a->text.len)
        memcpy(out, a->text.data, a->text.len);
    if (b->text.len)
        memcpy(out + a->text.len, b->text.data, b->text.len);
    result.text = (struct cel_text){out, a->text.len + b->text.len};
    return result;
}

CEL_FUNCTION(cel_add)
{
    const struct cel_value *a = &args[0], *b = &args[1];
    int64_t sum;
    uint64_t usum;

    (void)count;
    if (a->kind != b->kind)
        return cel_no_overload(call->name);
    switch (a->kind) {
    case CEL_INT:
        return __builtin_add_overflow(a->integer, b->integer, &sum) ? overflow() : cel_int(sum);
    case CEL_UINT:
        return __builtin_add_overflow(a->uinteger, b->uinteger, &usum) ? overflow()
                                                                       : uint_value(usum);
    case CEL_DOUBLE:
        return double_value(a->real + b->real);
    case CEL_STRING:
    case CEL_BYTES:
        return concat(eval, a, b);
    case CEL_LIST:
        return cel_list_concat(eval->arena, a->list, b->list);
    default:
        return cel_no_overload(call->name);
    }
}

static struct cel_value int_arithmetic(char operation, int64_t a, int64_t b)
{
    int64_t result;

    if ((operation == '/' || operation == '%') && b == 0)
        return cel_error("division by zero");
    if ((operation == '/' || operation == '%') && a == INT64_MIN && b == -1)
        return overflow();
    switch (operation) {
    case '-':
        return __builtin_sub_overflow(a, b, &result) ? overflow() : cel_int(result);
    case '*':
        return __builtin_mul_overflow(a, b, &result) ? overflow() : cel_int(result);
    case '/':
        return cel_int(a / b);
    default:
        return cel_int(a % b);
    }
}

static struct cel_value uint_arithmetic(char operation, uint64_t a, uint64_t b)
{
    uint64_t result;

    if ((operation == '/' || operation == '%') && b == 0)
        return cel_error("division by zero");
    switch (operation) {
    case '-':
        return __builtin_sub_overflow(a, b, &result) ? overflow() : uint_value(result);
    case '*':
        return __builtin_mul_overflow(a, b, &result) ? overflow() : uint_value(result);
    case '/':
        return uint_value(a / b);
    default:
        return uint_value(a % b);
    }
}

__attribute__((no_sanitize("float-divide-by-zero"))) static double
real_arithmetic(char operation, double a, double b)
{
    return operation == '-' ? a - b : operation == '*' ? a * b : a / b;
}

CEL_FUNCTION(cel_arithmetic)
{
    char operation = call->name[1]; // "_-_"

    (void)eval;
    (void)count;
    if (args[0].kind != args[1].kind)
        return cel_no_overload(call->name);
    if (args[0].kind == CEL_INT)
        return int_arithmetic(operation, args[0].integer, args[1].integer);
    if (args[0].kind == CEL_UINT)
        return uint_arithmetic(operation, args[0].uinteger, args[1].uinteger);
    if (args[0].kind == CEL_DOUBLE && operation != '%')
        return double_value(real_arithmetic(operation, args[0].real, args[1].real));
    return cel_no_overload(call->name);
}

CEL_FUNCTION(cel_negate)
{
    (void)eval;
    (void)count;
    if (args[0].kind == CEL_DOUBLE)
        return double_value(-args[0].real);
    if (args[0].kind != CEL_INT)
        return cel_no_overload(call->name);
    return args[0].integer == INT64_MIN ? overflow() : cel_int(-args[0].integer);
}

CEL_FUNCTION(cel_not)
{
    (void)eval;
    (void)count;
    return args[0].kind == CEL_BOOL ? cel_bool(!args[0].boolean) : cel_no_overload(call->name);
}

CEL_FUNCTION(cel_not_strictly_false)
{
    (void)eval;
    (void)call;
    (void)count;
    return cel_bool(args[0].kind != CEL_BOOL || args[0].boolean);
}

CEL_FUNCTION(cel_order)
{
    bool or_equal = call->name[2] == '=';
    int order;

    (void)eval;
    (void)count;
    if (!cel_compare(&args[0], &args[1], &order))
        return cel_no_overload(call->name);
    if (order == 0)
        return cel_bool(or_equal);
    return cel_bool(call->name[1] == '<' ? order < 0 : order > 0);
}

CEL_FUNCTION(cel_equals)
{
    enum cel_equality equality = cel_equality(&args[0], &args[1]);

    (void)eval;
    (void)count;
    if (call->name[1] == '!')
        return cel_bool(equality != CEL_EQUAL);
    return equality == CEL_INCOMPARABLE ? cel_no_overload(call->name)
                                        : cel_bool(equality == CEL_EQUAL);
}

CEL_FUNCTION(cel_in)
{
    (void)eval;
    (void)count;
    if (args[1].kind == CEL_MAP)
        return cel_bool(cel_map_find(args[1].map, &args[0]) != NULL);
    if (args[1].kind != CEL_LIST)
        return cel_no_overload(call->name);
    for (size_t i = 0; i < args[1].list->count; i++)
        if (cel_equal(&args[0], &args[1].list->items[i]))
            return cel_bool(true);
    return cel_bool(false);
}

CEL_FUNCTION(cel_size_of)
{
    enum cel_kind kind = args[0].kind;

    (void)eval;
    (void)count;
    if (kind != CEL_STRING && kind != CEL_BYTES && kind != CEL_LIST && kind != CEL_MAP)
        return cel_no_overload(call->name);
    return cel_int((int64_t)cel_size(&args[0]));
}
