/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/unanswered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/clock.h"

#define LATER_MS 1000000
#define LEAST_MS 1000 /* that a read has in any case */

static void test_without_a_limit(void **state)
{
    struct unanswered u = {0};
    (void)state;
    assert_false(unanswered_is_limited(&u));
    assert_int_equal(unanswered_begin(&u, true, 7), 7);
    assert_int_equal(unanswered_begin(&u, false, 8), 8);
    unanswered_done(&u);
}

/* Of reads alone, until the server has answered one. */
static void test_limit_of_reads(void **state)
{
    struct unanswered u = {0};
    const int64_t before = clock_ms(), limit = before + LATER_MS, end = limit + LATER_MS;
    (void)state;
    u.reads_end_ms = limit;
    assert_true(unanswered_is_limited(&u));
    assert_int_equal(unanswered_begin(&u, true, end), limit);
    assert_int_equal(unanswered_begin(&u, true, limit - 1), limit - 1);
    assert_int_equal(unanswered_begin(&u, false, end), end);
    u.reads_end_ms = before - 1; /* which is over */
    int64_t least = unanswered_begin(&u, true, end);
    assert_in_range(least, before + LEAST_MS, clock_ms() + LEAST_MS);
    unanswered_note_failure(&u, "no route to host");
    assert_true(unanswered_is_limited(&u));
    unanswered_note_answer(&u);
    assert_false(unanswered_is_limited(&u));
    assert_string_equal(u.why, "");
    assert_int_equal(unanswered_begin(&u, true, end), end);
    unanswered_done(&u);
}

/* Since the first call that has none, or the last answer while others are under way. */
static void test_since_when(void **state)
{
    struct unanswered u = {0};
    (void)state;
    const int64_t before = clock_ms();
    unanswered_begin(&u, true, LATER_MS);
    const int64_t first = u.since_ms;
    assert_in_range(first, before, clock_ms());
    u.since_ms = first - 5; /* a while ago */
    unanswered_begin(&u, true, LATER_MS);
    assert_int_equal(u.since_ms, first - 5);
    unanswered_note_answer(&u);
    assert_true(u.since_ms >= first);
    unanswered_note_idle(&u);
    assert_int_equal(u.since_ms, 0);
    unanswered_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_a_limit),
                                       cmocka_unit_test(test_limit_of_reads),
                                       cmocka_unit_test(test_since_when)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
