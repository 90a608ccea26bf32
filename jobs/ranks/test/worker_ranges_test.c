/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/ranks/worker_ranges.h"
#include "lib/base/cleanup.h"

static void ranges(void **state)
{
    (void)state;
    static const uint32_t workers[] = {0, 1, 2, 3, 7, 9, 10};
    static const struct {
        uint32_t count, max;
        const char *text;
    } cases[] = {{7, 10, "0-3,7,9-10"}, {7, 2, "0-3,7,..."}, {0, 2, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf text = BUF_INIT;
        worker_ranges(workers, cases[i].count, cases[i].max, &text);
        cleanup_free char *got = buf_take(&text);
        assert_non_null(got);
        assert_string_equal(got, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
