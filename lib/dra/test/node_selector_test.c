/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/node_selector.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define NAME(operator, values)                                                                     \
    "{'matchFields': [{'key': 'metadata.name', 'operator': '" operator"', 'values': [" values "]}" \
                                                                      "]}"
#define LABEL(key, operator, values)                                                               \
    "{'matchExpressions': [{'key': '" key "', 'operator': '" operator"', 'values': [" values "]}]" \
                                                                     "}"
#define BOTH(value)                                                                                \
    "{'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a']}, {'key': 'rack', "   \
    "'operator': 'In', 'values': ['" value "']}]}"

/* Of the node n with the labels zone=a, rack=7, empty= */
static void test_terms(void **state)
{
    static const struct {
        const char *terms;
        int matches, without_labels;
    } rows[] = {
        {"", 0, 0},
        {"{}", 0, 0},
        {"{'matchFields': [], 'matchExpressions': []}", 0, 0},
        {NAME("In", "'n'"), 1, 1},
        {NAME("In", "'m', 'n'"), 1, 1},
        {NAME("In", "'m'"), 0, 0},
        {NAME("NotIn", "'n'"), 0, 0},
        {NAME("NotIn", "'m'"), 1, 1},
        {"{'matchFields': [{'key': 'metadata.uid', 'operator': 'Exists'}]}", -EINVAL, -EINVAL},
        {LABEL("zone", "In", "'b', 'a'"), 1, -EAGAIN},
        {LABEL("zone", "In", "'b'"), 0, -EAGAIN},
        {LABEL("zone", "In", ""), 0, -EAGAIN},
        {LABEL("none", "In", "''"), 0, -EAGAIN},
        {LABEL("empty", "In", "''"), 1, -EAGAIN},
        {LABEL("zone", "NotIn", "'a'"), 0, -EAGAIN},
        {LABEL("zone", "NotIn", "'b'"), 1, -EAGAIN},
        {LABEL("none", "NotIn", "'b'"), 1, -EAGAIN},
        {LABEL("zone", "Exists", ""), 1, -EAGAIN},
        {LABEL("empty", "Exists", ""), 1, -EAGAIN},
        {LABEL("none", "Exists", ""), 0, -EAGAIN},
        {LABEL("zone", "DoesNotExist", ""), 0, -EAGAIN},
        {LABEL("none", "DoesNotExist", ""), 1, -EAGAIN},
        {LABEL("rack", "Gt", "'6'"), 1, -EAGAIN},
        {LABEL("rack", "Gt", "'7'"), 0, -EAGAIN},
        {LABEL("rack", "Lt", "'8'"), 1, -EAGAIN},
        {LABEL("rack", "Lt", "'7'"), 0, -EAGAIN},
        {LABEL("rack", "Gt", "'-1'"), 1, -EAGAIN},
        {LABEL("rack", "Gt", "'x'"), 0, -EAGAIN},
        {LABEL("rack", "Gt", ""), 0, -EAGAIN},
        {LABEL("rack", "Lt", "'99999999999999999999'"), 0, -EAGAIN},
        {LABEL("zone", "Gt", "'1'"), 0, -EAGAIN},
        {LABEL("none", "Lt", "'1'"), 0, -EAGAIN},
        {LABEL("empty", "Lt", "'1'"), 0, -EAGAIN},
        {LABEL("zone", "Like", "'a'"), -EINVAL, -EAGAIN},
        {BOTH("7"), 1, -EAGAIN},
        {BOTH("8"), 0, -EAGAIN},
        /* both kinds in a term, which must hold; alternatives */
        {"{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['m']}], "
         "'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}]}",
         0, 0},
        {"{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n']}], "
         "'matchExpressions': [{'key': 'none', 'operator': 'Exists'}]}",
         0, -EAGAIN},
        {NAME("In", "'m'") ", " NAME("In", "'n'"), 1, 1},
        {NAME("In", "'m'") ", " LABEL("zone", "Exists", ""), 1, -EAGAIN},
        {LABEL("none", "Exists", "") ", " NAME("In", "'n'"), 1, 1},
        {LABEL("none", "Exists", "") ", " NAME("In", "'m'"), 0, -EAGAIN},
        {LABEL("zone", "Like", "'a'") ", " NAME("In", "'n'"), -EINVAL, 1},
    };
    CLEANUP(json_decrefp)
    json_t *labels = quoted_json("{'zone': 'a', 'rack': '7', 'empty': ''}", 0);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[600];
        snprintf(text, sizeof text, "{'nodeSelectorTerms': [%s]}", rows[i].terms);
        CLEANUP(json_decrefp) json_t *selector = quoted_json(text, 0);
        int with = node_selector_matches(selector, "n", labels);
        int without = node_selector_matches(selector, "n", NULL);
        if (with != rows[i].matches || without != rows[i].without_labels)
            fail_msg("%s: %d, without labels %d", text, with, without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_terms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
