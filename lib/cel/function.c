// SPDX-License-Identifier: Apache-2.0
// The signatures are those of cel-go's common/stdlib/standard.go, cel/library.go, ext/strings.go,
// ext/sets.go and of k8s.io/apiserver's pkg/cel/library. Without time types, networks and URLs.
#include "lib/cel/function.h"

#include <string.h>

#include "lib/base/cleanup.h"

#define ORDER_OVERLOADS(name)                                                                      \
    {name, false, "bb>b", CEL_COST_ONE, cel_order},                                                \
        {name, false, "ii>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "id>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "iu>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "uu>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "ud>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "ui>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "dd>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "di>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "du>b", CEL_COST_ONE, cel_order},                                            \
        {name, false, "ss>b", CEL_COST_ORDER, cel_order},                                          \
    {                                                                                              \
        name, false, "yy>b", CEL_COST_ORDER, cel_order                                             \
    }
#define LIST_OVERLOADS(name, fn)                                                                   \
    {name, true, "li>i", CEL_COST_WALK, fn}, {name, true, "lu>u", CEL_COST_WALK, fn},              \
        {name, true, "ld>d", CEL_COST_WALK, fn}, {name, true, "lb>b", CEL_COST_WALK, fn},          \
        {name, true, "ls>s", CEL_COST_WALK, fn},                                                   \
    {                                                                                              \
        name, true, "ly>y", CEL_COST_WALK, fn                                                      \
    }
#define COMPARED(name, fn)                                                                         \
    {name, true, "qq>b", CEL_COST_ONE, fn},                                                        \
    {                                                                                              \
        name, true, "vv>b", CEL_COST_ONE, fn                                                       \
    }

// In cel-go's order: of several that fit a type which is not known, the first binds it.
static const struct cel_overload OVERLOADS[] = {
    {"_+_", false, "yy>y", CEL_COST_CONCAT, cel_add},
    {"_+_", false, "dd>d", CEL_COST_ONE, cel_add},
    {"_+_", false, "ii>i", CEL_COST_ONE, cel_add},
    {"_+_", false, "lAlA>lA", CEL_COST_ONE, cel_add},
    {"_+_", false, "ss>s", CEL_COST_CONCAT, cel_add},
    {"_+_", false, "uu>u", CEL_COST_ONE, cel_add},
    {"_-_", false, "dd>d", CEL_COST_ONE, cel_arithmetic},
    {"_-_", false, "ii>i", CEL_COST_ONE, cel_arithmetic},
    {"_-_", false, "uu>u", CEL_COST_ONE, cel_arithmetic},
    {"_*_", false, "dd>d", CEL_COST_ONE, cel_arithmetic},
    {"_*_", false, "ii>i", CEL_COST_ONE, cel_arithmetic},
    {"_*_", false, "uu>u", CEL_COST_ONE, cel_arithmetic},
    {"_/_", false, "dd>d", CEL_COST_ONE, cel_arithmetic},
    {"_/_", false, "ii>i", CEL_COST_ONE, cel_arithmetic},
    {"_/_", false, "uu>u", CEL_COST_ONE, cel_arithmetic},
    {"_%_", false, "ii>i", CEL_COST_ONE, cel_arithmetic},
    {"_%_", false, "uu>u", CEL_COST_ONE, cel_arithmetic},
    {"-_", false, "d>d", CEL_COST_ONE, cel_negate},
    {"-_", false, "i>i", CEL_COST_ONE, cel_negate},
    {"!_", false, "b>b", CEL_COST_ONE, cel_not},
    {"@not_strictly_false", false, "b>b", CEL_COST_ONE, cel_not_strictly_false},
    ORDER_OVERLOADS("_<_"),
    ORDER_OVERLOADS("_<=_"),
    ORDER_OVERLOADS("_>_"),
    ORDER_OVERLOADS("_>=_"),
    {"_==_", false, "AA>b", CEL_COST_EQUAL, cel_equals},
    {"_!=_", false, "AA>b", CEL_COST_EQUAL, cel_equals},
    {"@in", false, "AlA>b", CEL_COST_IN_LIST, cel_in},
    {"@in", false, "AmAB>b", CEL_COST_ONE, cel_in},
    // the evaluator knows these three itself
    {"_?_:_", false, "bAA>A", CEL_COST_ONE, NULL},
    {"_[_]", false, "lAi>A", CEL_COST_ONE, NULL},
    {"_[_]", false, "mABA>B", CEL_COST_ONE, NULL},
    {"_[_]", false, "olAi>oA", CEL_COST_ONE, NULL},
    {"_[_]", false, "omABA>oB", CEL_COST_ONE, NULL},
    {"_[?_]", false, "lAi>oA", CEL_COST_ONE, NULL},
    {"_[?_]", false, "olAi>oA", CEL_COST_ONE, NULL},
    {"_[?_]", false, "mABA>oB", CEL_COST_ONE, NULL},
    {"_[?_]", false, "omABA>oB", CEL_COST_ONE, NULL},
    {"size", false, "y>i", CEL_COST_ONE, cel_size_of},
    {"size", true, "y>i", CEL_COST_ONE, cel_size_of},
    {"size", false, "lA>i", CEL_COST_ONE, cel_size_of},
    {"size", true, "lA>i", CEL_COST_ONE, cel_size_of},
    {"size", false, "mAB>i", CEL_COST_ONE, cel_size_of},
    {"size", true, "mAB>i", CEL_COST_ONE, cel_size_of},
    {"size", false, "s>i", CEL_COST_ONE, cel_size_of},
    {"size", true, "s>i", CEL_COST_ONE, cel_size_of},
    {"type", false, "A>tA", CEL_COST_ONE, cel_to_type},
    {"bool", false, "b>b", CEL_COST_ONE, cel_to_bool},
    {"bool", false, "s>b", CEL_COST_ONE, cel_to_bool},
    {"bytes", false, "y>y", CEL_COST_ONE, cel_to_bytes},
    {"bytes", false, "s>y", CEL_COST_FIRST, cel_to_bytes},
    {"double", false, "d>d", CEL_COST_ONE, cel_to_double},
    {"double", false, "i>d", CEL_COST_ONE, cel_to_double},
    {"double", false, "s>d", CEL_COST_ONE, cel_to_double},
    {"double", false, "u>d", CEL_COST_ONE, cel_to_double},
    {"dyn", false, "A>D", CEL_COST_ONE, cel_to_dyn},
    {"int", false, "i>i", CEL_COST_ONE, cel_to_int},
    {"int", false, "d>i", CEL_COST_ONE, cel_to_int},
    {"int", false, "s>i", CEL_COST_ONE, cel_to_int},
    {"int", false, "u>i", CEL_COST_ONE, cel_to_int},
    {"string", false, "s>s", CEL_COST_ONE, cel_to_string},
    {"string", false, "b>s", CEL_COST_ONE, cel_to_string},
    {"string", false, "y>s", CEL_COST_FIRST, cel_to_string},
    {"string", false, "d>s", CEL_COST_ONE, cel_to_string},
    {"string", false, "i>s", CEL_COST_ONE, cel_to_string},
    {"string", false, "u>s", CEL_COST_ONE, cel_to_string},
    {"uint", false, "u>u", CEL_COST_ONE, cel_to_uint},
    {"uint", false, "d>u", CEL_COST_ONE, cel_to_uint},
    {"uint", false, "i>u", CEL_COST_ONE, cel_to_uint},
    {"uint", false, "s>u", CEL_COST_ONE, cel_to_uint},
    {"contains", true, "ss>b", CEL_COST_CONTAINS, cel_contains},
    {"startsWith", true, "ss>b", CEL_COST_SECOND, cel_starts_with},
    {"endsWith", true, "ss>b", CEL_COST_SECOND, cel_ends_with},
    {"matches", false, "ss>b", CEL_COST_MATCHES, cel_matches},
    {"matches", true, "ss>b", CEL_COST_MATCHES, cel_matches},
    {"charAt", true, "si>s", CEL_COST_ONE, cel_char_at},
    {"indexOf", true, "ss>i", CEL_COST_WALK, cel_index_of},
    {"indexOf", true, "ssi>i", CEL_COST_WALK, cel_index_of},
    {"indexOf", true, "lAA>i", CEL_COST_WALK, cel_index_of},
    {"lastIndexOf", true, "ss>i", CEL_COST_WALK, cel_last_index_of},
    {"lastIndexOf", true, "ssi>i", CEL_COST_WALK, cel_last_index_of},
    {"lastIndexOf", true, "lAA>i", CEL_COST_WALK, cel_last_index_of},
    {"join", true, "ls>s", CEL_COST_RESULT_TWICE, cel_join},
    {"join", true, "lss>s", CEL_COST_RESULT_TWICE, cel_join},
    {"lowerAscii", true, "s>s", CEL_COST_NAMED_FIRST, cel_change_case},
    {"upperAscii", true, "s>s", CEL_COST_NAMED_FIRST, cel_change_case},
    {"replace", true, "sss>s", CEL_COST_FIRST_TWICE, cel_replace},
    {"replace", true, "sssi>s", CEL_COST_FIRST_TWICE, cel_replace},
    {"split", true, "ss>ls", CEL_COST_FIRST_TWICE, cel_split},
    {"split", true, "ssi>ls", CEL_COST_FIRST_TWICE, cel_split},
    {"substring", true, "si>s", CEL_COST_NAMED_FIRST, cel_substring},
    {"substring", true, "sii>s", CEL_COST_NAMED_FIRST, cel_substring},
    {"trim", true, "s>s", CEL_COST_NAMED_FIRST, cel_trim},
    {"strings.quote", false, "s>s", CEL_COST_FIRST, cel_quote},
    {"isSorted", true, "li>b", CEL_COST_WALK, cel_is_sorted},
    {"isSorted", true, "lu>b", CEL_COST_WALK, cel_is_sorted},
    {"isSorted", true, "ld>b", CEL_COST_WALK, cel_is_sorted},
    {"isSorted", true, "lb>b", CEL_COST_WALK, cel_is_sorted},
    {"isSorted", true, "ls>b", CEL_COST_WALK, cel_is_sorted},
    {"isSorted", true, "ly>b", CEL_COST_WALK, cel_is_sorted},
    {"sum", true, "li>i", CEL_COST_WALK, cel_sum},
    {"sum", true, "lu>u", CEL_COST_WALK, cel_sum},
    {"sum", true, "ld>d", CEL_COST_WALK, cel_sum},
    LIST_OVERLOADS("max", cel_extreme),
    LIST_OVERLOADS("min", cel_extreme),
    {"includes", true, "DD>b", CEL_COST_WALK, cel_includes},
    {"first", true, "lA>oA", CEL_COST_ONE, cel_end_item},
    {"last", true, "lA>oA", CEL_COST_ONE, cel_end_item},
    {"slice", true, "lAii>lA", CEL_COST_NEW_LIST, cel_slice},
    {"reverse", true, "lA>lA", CEL_COST_NEW_LIST, cel_reverse},
    {"distinct", true, "lA>lA", CEL_COST_DISTINCT, cel_distinct},
    {"lists.range", false, "i>li", CEL_COST_NEW_LIST, cel_range},
    {"sets.contains", false, "lAlA>b", CEL_COST_SETS, cel_sets_contains},
    {"sets.equivalent", false, "lAlA>b", CEL_COST_SETS_TWICE, cel_sets_equivalent},
    {"sets.intersects", false, "lAlA>b", CEL_COST_SETS, cel_sets_intersects},
    {"optional.of", false, "A>oA", CEL_COST_ONE, cel_optional_of},
    {"optional.ofNonZeroValue", false, "A>oA", CEL_COST_ONE, cel_optional_non_zero},
    {"optional.none", false, ">oA", CEL_COST_ONE, cel_optional_none},
    {"value", true, "oA>A", CEL_COST_ONE, cel_optional_value},
    {"hasValue", true, "oA>b", CEL_COST_ONE, cel_optional_has_value},
    // the evaluator takes their second argument only when it needs it
    {"or", true, "oAoA>oA", CEL_COST_ONE, NULL},
    {"orValue", true, "oAA>A", CEL_COST_ONE, NULL},
    {"quantity", false, "s>q", CEL_COST_NAMED_FIRST, cel_quantity},
    {"isQuantity", false, "s>b", CEL_COST_NAMED_FIRST, cel_is_quantity},
    {"asInteger", true, "q>i", CEL_COST_ONE, cel_quantity_to_int},
    {"isInteger", true, "q>b", CEL_COST_ONE, cel_quantity_is_int},
    {"asApproximateFloat", true, "q>d", CEL_COST_ONE, cel_quantity_to_double},
    {"sign", false, "q>i", CEL_COST_ONE, cel_quantity_sign_of},
    {"add", true, "qq>q", CEL_COST_ONE, cel_quantity_sum},
    {"add", true, "qi>q", CEL_COST_ONE, cel_quantity_sum},
    {"sub", true, "qq>q", CEL_COST_ONE, cel_quantity_sum},
    {"sub", true, "qi>q", CEL_COST_ONE, cel_quantity_sum},
    {"compareTo", true, "qq>i", CEL_COST_ONE, cel_compare_to},
    {"compareTo", true, "vv>i", CEL_COST_ONE, cel_compare_to},
    COMPARED("isGreaterThan", cel_is_greater),
    COMPARED("isLessThan", cel_is_less),
    {"semver", false, "s>v", CEL_COST_NAMED_FIRST, cel_semver},
    {"semver", false, "sb>v", CEL_COST_NAMED_FIRST, cel_semver},
    {"isSemver", false, "s>b", CEL_COST_NAMED_FIRST, cel_is_semver},
    {"isSemver", false, "sb>b", CEL_COST_NAMED_FIRST, cel_is_semver},
    {"major", true, "v>i", CEL_COST_ONE, cel_semver_part},
    {"minor", true, "v>i", CEL_COST_ONE, cel_semver_part},
    {"patch", true, "v>i", CEL_COST_ONE, cel_semver_part},
};

const struct cel_overload *cel_overload_next(const char *name, const struct cel_overload *after)
{
    const struct cel_overload *end = OVERLOADS + ARRAY_LEN(OVERLOADS);

    for (const struct cel_overload *o = after ? after + 1 : OVERLOADS; o < end; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

bool cel_name_unsupported(const char *name)
{
    static const char *const names[] = {
        "duration",
        "timestamp",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getFullYear",
        "getHours",
        "getMilliseconds",
        "getMinutes",
        "getMonth",
        "getSeconds",
        "url",
        "isURL",
        "getScheme",
        "getHost",
        "getHostname",
        "getPort",
        "getEscapedPath",
        "getQuery",
        "ip",
        "isIP",
        "ip.isCanonical",
        "cidr",
        "isCIDR",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "containsIP",
        "containsCIDR",
        "masked",
        "prefixLength",
        "find",
        "findAll",
        "format",
        "format.named",
        "validate",
        "flatten",
        "sort",
        "optional.unwrap",
        "unwrapOpt",
        "path",
        "group",
        "serviceAccount",
        "resource",
        "subresource",
        "namespace",
        "check",
        "allowed",
        "reason",
        "errored",
        "error",
        "fieldSelector",
        "labelSelector",
        "kubernetes",
        "google",
        "net",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
