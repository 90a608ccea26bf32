/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an expression may call: one table for checker, evaluator and cost. */
#ifndef DRARUN_CEL_FUNCTION_H
#define DRARUN_CEL_FUNCTION_H

#include "lib/cel/ast.h"

struct cel_eval;

typedef struct cel_value (*cel_function_fn)(struct cel_eval *eval, const struct cel_node *call,
                                            const struct cel_value *args, size_t count);

/* How the API server counts a call: cel-go's interpreter/runtimecost.go by overload, then
 * apiserver's library/cost.go by name. The former apply only where the checker found one overload.
 */
enum cel_cost {
    CEL_COST_ONE,
    CEL_COST_EQUAL,    /* a tenth of the shorter's size */
    CEL_COST_ORDER,    /* the same */
    CEL_COST_CONCAT,   /* a tenth of both sizes */
    CEL_COST_IN_LIST,  /* the list's size */
    CEL_COST_SECOND,   /* a tenth of the second's size */
    CEL_COST_FIRST,    /* a tenth of the first's size */
    CEL_COST_CONTAINS, /* the product of the tenths */
    CEL_COST_MATCHES,
    CEL_COST_SETS,                    /* 1 + the product of the sizes */
    CEL_COST_SETS_TWICE,              /* 1 + twice that */
    CEL_COST_BY_NAME,                 /* those below hold for every overload of the name */
    CEL_COST_WALK = CEL_COST_BY_NAME, /* all elements of the first */
    CEL_COST_NAMED_FIRST,
    CEL_COST_FIRST_TWICE,
    CEL_COST_RESULT_TWICE, /* two tenths of the result's size */
    CEL_COST_NEW_LIST,     /* 11 + the size of the result */
    CEL_COST_DISTINCT,     /* 11 + twice the square of the size, a tenth more of texts */
};

struct cel_overload {
    const char *name;
    bool member;
    /* Types of arguments ">" type of the result, in prefix form: b bool, i int, u uint, d double,
     * s string, y bytes, D dyn, q quantity, v semver, lX list, mKV map, oX optional, tX type,
     * A and B any. */
    const char *signature;
    uint8_t cost;
    cel_function_fn fn;
};

/* The next overload of the name behind `after` (NULL: the first). */
const struct cel_overload *cel_overload_next(const char *name, const struct cel_overload *after);
/* Whether the API server knows the function, or an identifier of that name, and we do not. */
bool cel_name_unsupported(const char *name);

/* Operators and conversions: operator.c, convert.c; the others as their files say. */
#define CEL_FUNCTION(name)                                                                         \
    struct cel_value name(struct cel_eval *eval, const struct cel_node *call,                      \
                          const struct cel_value *args, size_t count)
CEL_FUNCTION(cel_add);
CEL_FUNCTION(cel_arithmetic);
CEL_FUNCTION(cel_negate);
CEL_FUNCTION(cel_not);
CEL_FUNCTION(cel_not_strictly_false);
CEL_FUNCTION(cel_order);
CEL_FUNCTION(cel_equals);
CEL_FUNCTION(cel_in);
CEL_FUNCTION(cel_size_of);
CEL_FUNCTION(cel_to_bool);
CEL_FUNCTION(cel_to_bytes);
CEL_FUNCTION(cel_to_double);
CEL_FUNCTION(cel_to_dyn);
CEL_FUNCTION(cel_to_int);
CEL_FUNCTION(cel_to_string);
CEL_FUNCTION(cel_to_type);
CEL_FUNCTION(cel_to_uint);
CEL_FUNCTION(cel_contains);
CEL_FUNCTION(cel_starts_with);
CEL_FUNCTION(cel_ends_with);
CEL_FUNCTION(cel_matches);
CEL_FUNCTION(cel_char_at);
CEL_FUNCTION(cel_index_of);
CEL_FUNCTION(cel_last_index_of);
CEL_FUNCTION(cel_join);
CEL_FUNCTION(cel_change_case);
CEL_FUNCTION(cel_replace);
CEL_FUNCTION(cel_split);
CEL_FUNCTION(cel_substring);
CEL_FUNCTION(cel_trim);
CEL_FUNCTION(cel_quote);
CEL_FUNCTION(cel_is_sorted);
CEL_FUNCTION(cel_sum);
CEL_FUNCTION(cel_extreme);
CEL_FUNCTION(cel_includes);
CEL_FUNCTION(cel_end_item);
CEL_FUNCTION(cel_slice);
CEL_FUNCTION(cel_reverse);
CEL_FUNCTION(cel_distinct);
CEL_FUNCTION(cel_range);
CEL_FUNCTION(cel_sets_contains);
CEL_FUNCTION(cel_sets_equivalent);
CEL_FUNCTION(cel_sets_intersects);
CEL_FUNCTION(cel_optional_of);
CEL_FUNCTION(cel_optional_non_zero);
CEL_FUNCTION(cel_optional_none);
CEL_FUNCTION(cel_optional_value);
CEL_FUNCTION(cel_optional_has_value);
CEL_FUNCTION(cel_quantity);
CEL_FUNCTION(cel_is_quantity);
CEL_FUNCTION(cel_quantity_to_int);
CEL_FUNCTION(cel_quantity_is_int);
CEL_FUNCTION(cel_quantity_to_double);
CEL_FUNCTION(cel_quantity_sign_of);
CEL_FUNCTION(cel_quantity_sum);
CEL_FUNCTION(cel_compare_to);
CEL_FUNCTION(cel_is_greater);
CEL_FUNCTION(cel_is_less);
CEL_FUNCTION(cel_semver);
CEL_FUNCTION(cel_is_semver);
CEL_FUNCTION(cel_semver_part);

#endif
