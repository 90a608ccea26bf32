/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/taint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"
#include "lib/base/test/quoted_json.h"

#define A "{'key': 'a', 'value': 'x', 'effect': 'NoSchedule'}"
#define B "{'key': 'b', 'effect': 'NoExecute'}"

static void test_what_repels(void **state)
{
    static const struct {
        const char *taints, *tolerations;
        const char *key; /* that repels; NULL: none */
    } rows[] = {
        {"[]", "[]", NULL},
        {"[" A "]", "[]", "a"},
        {"[" B "]", "[]", "b"},
        {"[{'key': 'a', 'effect': 'PreferNoSchedule'}]", "[]", NULL},
        {"[{'key': 'a', 'effect': 'None'}]", "[]", NULL},
        {"[{'effect': 'NoSchedule'}]", "[]", "?"},
        {"[" A ", " B "]", "[{'key': 'a', 'operator': 'Exists'}]", "b"},
        {"[" A ", " B "]", "[{'key': 'b', 'operator': 'Exists'}]", "a"},
        {"[" A ", " B "]", "[{'key': 'b'}, {'key': 'a', 'operator': 'Exists'}]", NULL},
        {"[" A ", " B "]", "[{'operator': 'Exists'}]", NULL},
        {"[" A "]", "[{'operator': 'Exists', 'effect': 'NoSchedule'}]", NULL},
        {"[" A "]", "[{'operator': 'Exists', 'effect': 'NoExecute'}]", "a"},
        {"[" A "]", "[{'key': 'a', 'operator': 'Exists', 'effect': 'NoExecute'}]", "a"},
        {"[" A "]", "[{'key': 'a', 'operator': 'Equal', 'value': 'x'}]", NULL},
        {"[" A "]", "[{'key': 'a', 'value': 'x', 'effect': 'NoSchedule'}]", NULL},
        {"[" A "]", "[{'key': 'a', 'value': 'y'}]", "a"},
        {"[" A "]", "[{'key': 'a'}]", "a"},
        {"[" A "]", "[{}]", "a"},
        {"[" A "]", "[{'value': 'x'}]", "a"},
        {"[" B "]", "[{'key': 'b', 'operator': 'Equal'}]", NULL},
        {"[" B "]", "[{'key': 'bb', 'operator': 'Exists'}]", "b"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_decrefp) json_t *taints = quoted_json(rows[i].taints, 0);
        CLEANUP(json_decrefp) json_t *tolerations = quoted_json(rows[i].tolerations, 0);
        const char *key = taint_repelling(taints, tolerations);
        if (!key != !rows[i].key || (key && strcmp(key, rows[i].key) != 0))
            fail_msg("%s with %s: %s", rows[i].taints, rows[i].tolerations, key ? key : "none");
    }
}

static void test_without_lists(void **state)
{
    CLEANUP(json_decrefp) json_t *taints = quoted_json("[" A "]", 0);
    (void)state;
    assert_null(taint_repelling(NULL, NULL));
    assert_string_equal(taint_repelling(taints, NULL), "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_repels),
                                       cmocka_unit_test(test_without_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
