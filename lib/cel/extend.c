// SPDX-License-Identifier: Apache-2.0
// Optional values (cel-go's cel/library.go), quantities and versions (apiserver's library).
#include <errno.h>
#include <string.h>

#include "lib/cel/eval.h"
#include "lib/cel/function.h"
#include "lib/cel/quantity.h"
#include "lib/cel/semver.h"

CEL_FUNCTION(cel_optional_of)
{
    (void)call;
    (void)count;
    return cel_optional(eval->arena, args[0]);
}

static bool is_zero(const struct cel_value *value)
{
    switch (value->kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !value->boolean;
    case CEL_INT:
    case CEL_UINT:
        return value->integer == 0;
    case CEL_DOUBLE:
        return value->real == 0;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_MAP:
        return cel_size(value) == 0;
    case CEL_OPTIONAL:
        return !value->inside;
    default:
        return false;
    }
}

CEL_FUNCTION(cel_optional_non_zero)
{
    (void)call;
    (void)count;
    return is_zero(&args[0]) ? (struct cel_value){.kind = CEL_OPTIONAL}
                             : cel_optional(eval->arena, args[0]);
}

CEL_FUNCTION(cel_optional_none)
{
    (void)eval;
    (void)call;
    (void)args;
    (void)count;
    return (struct cel_value){.kind = CEL_OPTIONAL};
}

CEL_FUNCTION(cel_optional_value)
{
    (void)eval;
    (void)count;
    if (args[0].kind != CEL_OPTIONAL)
        return cel_no_overload(call->name);
    return args[0].inside ? *args[0].inside : cel_error("optional.none() has no value");
}

CEL_FUNCTION(cel_optional_has_value)
{
    (void)eval;
    (void)count;
    if (args[0].kind != CEL_OPTIONAL)
        return cel_no_overload(call->name);
    return cel_bool(args[0].inside != NULL);
}

static struct cel_value quantity_value(struct cel_eval *eval, int rc,
                                       const struct cel_quantity *quantity)
{
    struct cel_quantity *copy;

    if (rc == -ERANGE)
        return cel_stop(eval, "not supported: a quantity of more than 38 digits");
    if (rc < 0)
        return cel_error("not a quantity");
    copy = cel_arena_alloc(eval->arena, sizeof(*copy));
    if (!copy)
        return cel_error("out of memory");
    *copy = *quantity;
    return (struct cel_value){.kind = CEL_QUANTITY, .quantity = copy};
}

CEL_FUNCTION(cel_quantity)
{
    struct cel_quantity quantity;
    int rc;

    (void)count;
    if (args[0].kind != CEL_STRING)
        return cel_no_overload(call->name);
    rc = cel_quantity_parse(args[0].text.data, args[0].text.len, &quantity);
    return quantity_value(eval, rc, &quantity);
}

CEL_FUNCTION(cel_is_quantity)
{
    struct cel_quantity quantity;

    (void)eval;
    (void)count;
    if (args[0].kind != CEL_STRING)
        return cel_no_overload(call->name);
    return cel_bool(cel_quantity_parse(args[0].text.data, args[0].text.len, &quantity) != -EINVAL);
}

CEL_FUNCTION(cel_quantity_to_int)
{
    int64_t integer;

    (void)eval;
    (void)count;
    if (args[0].kind != CEL_QUANTITY)
        return cel_no_overload(call->name);
    return cel_quantity_integer(args[0].quantity, &integer)
               ? cel_int(integer)
               : cel_error("the quantity is not an integer");
}

CEL_FUNCTION(cel_quantity_is_int)
{
    int64_t integer;

    (void)eval;
    (void)count;
    if (args[0].kind != CEL_QUANTITY)
        return cel_no_overload(call->name);
    return cel_bool(cel_quantity_integer(args[0].quantity, &integer));
}

CEL_FUNCTION(cel_quantity_to_double)
{
    (void)eval;
    (void)count;
    if (args[0].kind != CEL_QUANTITY)
        return cel_no_overload(call->name);
    return (struct cel_value){.kind = CEL_DOUBLE, .real = cel_quantity_real(args[0].quantity)};
}

CEL_FUNCTION(cel_quantity_sign_of)
{
    (void)eval;
    (void)count;
    if (args[0].kind != CEL_QUANTITY)
        return cel_no_overload(call->name);
    return cel_int(cel_quantity_sign(args[0].quantity));
}

/* add() and sub() of a quantity or an int */
CEL_FUNCTION(cel_quantity_sum)
{
    struct cel_quantity other, sum;
    int rc;

    (void)count;
    if (args[0].kind != CEL_QUANTITY || (args[1].kind != CEL_QUANTITY && args[1].kind != CEL_INT))
        return cel_no_overload(call->name);
    if (args[1].kind == CEL_INT)
        other = (struct cel_quantity){.digits = args[1].integer};
    else
        other = *args[1].quantity;
    rc = call->name[0] == 'a' ? cel_quantity_add(args[0].quantity, &other, &sum)
                              : cel_quantity_sub(args[0].quantity, &other, &sum);
    return quantity_value(eval, rc, &sum);
}

static bool order_of(const struct cel_value *args, int *ret_order)
{
    if (args[0].kind != args[1].kind)
        return false;
    if (args[0].kind == CEL_QUANTITY)
        *ret_order = cel_quantity_compare(args[0].quantity, args[1].quantity);
    else if (args[0].kind == CEL_SEMVER)
        *ret_order = cel_semver_compare(args[0].semver, args[1].semver);
    else
        return false;
    return true;
}

CEL_FUNCTION(cel_compare_to)
{
    int order;

    (void)eval;
    (void)count;
    return order_of(args, &order) ? cel_int(order) : cel_no_overload(call->name);
}

CEL_FUNCTION(cel_is_greater)
{
    int order;

    (void)eval;
    (void)count;
    return order_of(args, &order) ? cel_bool(order > 0) : cel_no_overload(call->name);
}

CEL_FUNCTION(cel_is_less)
{
    int order;

    (void)eval;
    (void)count;
    return order_of(args, &order) ? cel_bool(order < 0) : cel_no_overload(call->name);
}

/* -EDOM: arguments of other types */
static int parse_version(struct cel_eval *eval, const struct cel_value *args, size_t count,
                         struct cel_semver *ret_version)
{
    if (args[0].kind != CEL_STRING || (count > 1 && args[1].kind != CEL_BOOL))
        return -EDOM;
    return cel_semver_parse(eval->arena, args[0].text.data, args[0].text.len,
                            count > 1 && args[1].boolean, ret_version);
}

CEL_FUNCTION(cel_semver)
{
    struct cel_semver *version = cel_arena_alloc(eval->arena, sizeof(*version));
    int rc = version ? parse_version(eval, args, count, version) : -ENOMEM;

    if (rc == -EDOM)
        return cel_no_overload(call->name);
    if (rc < 0)
        return cel_error(rc == -ENOMEM ? "out of memory" : "not a semantic version");
    return (struct cel_value){.kind = CEL_SEMVER, .semver = version};
}

CEL_FUNCTION(cel_is_semver)
{
    struct cel_semver version;
    int rc = parse_version(eval, args, count, &version);

    if (rc == -EDOM)
        return cel_no_overload(call->name);
    return rc == -ENOMEM ? cel_error("out of memory") : cel_bool(rc == 0);
}

/* major(), minor(), patch() */
CEL_FUNCTION(cel_semver_part)
{
    (void)eval;
    (void)count;
    if (args[0].kind != CEL_SEMVER)
        return cel_no_overload(call->name);
    if (strcmp(call->name, "major") == 0)
        return cel_int((int64_t)args[0].semver->major);
    return cel_int((int64_t)(call->name[0] == 'm' ? args[0].semver->minor : args[0].semver->patch));
}
