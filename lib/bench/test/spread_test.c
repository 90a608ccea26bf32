/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/bench/spread.h"

static void test_known(void **state)
{
    double times[] = {5, 1, 3, 3};
    struct spread s;
    (void)state;
    spread_of(times, 4, &s);
    assert_true(s.least == 1 && s.most == 5 && s.p99 == 5 && s.p50 == 3 && s.mean == 3);
    assert_float_equal(spread_variation(&s), 47.140452, 1e-5); /* sqrt(2) over 3 */
}

static void test_ranks(void **state)
{
    double times[200];
    struct spread s;
    (void)state;
    for (size_t i = 0; i < 200; i++)
        times[i] = 200 - (double)i;
    spread_of(times, 200, &s);
    assert_true(s.p99 == 198 && s.p95 == 190);
    spread_of(times, 1, &s);
    assert_true(s.least == 1 && s.p99 == 1 && spread_variation(&s) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
