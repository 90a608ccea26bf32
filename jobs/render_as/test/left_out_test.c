/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/render_as/left_out.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "jobs/spec/spec.h"
#include "lib/base/cleanup.h"

static const struct left_out *find(const char *path)
{
    for (size_t i = 0; i < left_out_count; i++)
        if (strcmp(left_out_fields[i].path, path) == 0)
            return &left_out_fields[i];
    return NULL;
}

/* Every leaf of the parser's table has its line. */
static size_t check_table(const struct field_table *table, const char *above)
{
    size_t leaves = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct field *field = &table->list[i];
        char path[256];
        snprintf(path, sizeof path, "%s%s%s", above, above[0] ? "." : "", field->key);
        if (field->group) {
            leaves += check_table(field->group, path);
            continue;
        }
        if (!find(path))
            fail_msg("jobs/render_as/left_out.c says nothing of %s", path);
        leaves++;
    }
    return leaves;
}

static void test_every_key_has_a_line(void **state)
{
    (void)state;
    /* and no line is of a key that is not there */
    assert_int_equal(check_table(&spec_document_fields, ""), left_out_count);
}

static size_t told_of_by(enum left_out_by system, const char *text, const char *first)
{
    struct strlist told = STRLIST_INIT;
    CLEANUP(json_decrefp) json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    left_out_tell(document, system, &told);
    if (first)
        assert_true(told.count > 0 && strncmp(told.items[0], first, strlen(first)) == 0);
    size_t count = told.count;
    strlist_done(&told);
    return count;
}

static size_t told_of(const char *text, const char *first)
{
    return told_of_by(LEFT_OUT_RAYCLUSTER, text, first);
}

static void test_systems_differ(void **state)
{
    (void)state;
    static const char text[] = "{\"spec\": {\"restarts\": 1, \"launch\": \"pmix\","
                               "\"timeouts\": {\"total\": \"1h\", \"start\": \"1m\"}}}";
    assert_int_equal(told_of_by(LEFT_OUT_RAYCLUSTER, text, "LEFT_OUT: spec.launch: "), 4);
    assert_int_equal(told_of_by(LEFT_OUT_TRAINJOB, text, "LEFT_OUT: spec.timeouts.start: "), 1);
}

static void test_what_is_there_is_told(void **state)
{
    (void)state;
    assert_int_equal(told_of("{\"spec\": {\"workers\": 2, \"nccl\": {\"profile\": \"a\"}}}", NULL),
                     0);
    assert_int_equal(told_of("{\"spec\": {\"restarts\": 1}}", "LEFT_OUT: spec.restarts: KubeRay"),
                     1);
    assert_int_equal(told_of("{\"spec\": {\"timeouts\": {\"queue\": \"1h\", \"total\": \"2h\"}}}",
                             "LEFT_OUT: spec.timeouts.queue: "),
                     2);
}

static void test_what_means_the_same_is_not_told(void **state)
{
    (void)state;
    assert_int_equal(told_of("{\"spec\": {\"onHang\": \"report\", \"hangAfter\": \"0\","
                             "\"devices\": {\"claims\": \"template\"}}}",
                             NULL),
                     0);
    assert_int_equal(told_of("{\"spec\": {\"onHang\": \"fail\", \"hangAfter\": 0,"
                             "\"devices\": {\"claims\": \"direct\"}}}",
                             "LEFT_OUT: spec.devices.claims: "),
                     2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_has_a_line),
        cmocka_unit_test(test_what_is_there_is_told),
        cmocka_unit_test(test_systems_differ),
        cmocka_unit_test(test_what_means_the_same_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
