/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/metrics/metrics_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/cleanup.h"

static void test_head(void **state)
{
    struct buf text = BUF_INIT;
    (void)state;
    metrics_add_head(&text, "jobs", "gauge", "Jobs that run.");
    assert_string_equal(text.data, "# HELP jobs Jobs that run.\n# TYPE jobs gauge\n");
    buf_done(&text);
}

static void test_values_of_labels(void **state)
{
    static const char *const rows[][2] = {
        {"node-0", "node-0"},         {"\"", "\\\""},
        {"a\\b", "a\\\\b"},           {"\\n", "\\\\n"},
        {"a\nb\n", "a\\nb\\n"},       {"{le=\"1\"} 5\nother 7", "{le=\\\"1\\\"} 5\\nother 7"},
        {"\xc3\xa4\t", "\xc3\xa4\t"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_INIT;
        metrics_add_escaped(&text, rows[i][0]);
        assert_string_equal(text.data, rows[i][1]);
        buf_done(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_head),
                                       cmocka_unit_test(test_values_of_labels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
