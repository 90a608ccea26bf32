/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/follow/log_place.h"

static bool pass(struct log_place *place, const char *text)
{
    return log_place_pass(place, text, strlen(text));
}

static void test_goes_on_behind_the_last_line(void **state)
{
    (void)state;
    struct log_place place = {0};
    char since[TIMESTAMP_SIZE];
    assert_null(log_place_resume(&place, since));
    assert_true(pass(&place, "2026-11-21T15:24:42.000000001Z"));
    assert_true(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_true(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_true(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_string_equal(log_place_resume(&place, since), "2026-11-21T15:24:42.000Z");
    assert_false(pass(&place, "2026-11-21T15:24:42.000000001Z"));
    assert_false(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_false(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_true(pass(&place, "no time"));
    assert_false(pass(&place, "2026-11-21T15:24:42.000000002Z"));
    assert_true(pass(&place, "2026-11-21T15:24:42.000000002Z")); /* a fourth one */
    assert_true(pass(&place, "2026-11-21T15:24:41.5Z"));         /* the node's clock was set */
    assert_true(pass(&place, "2026-11-21T16:24:43.25+01:00"));
    assert_string_equal(log_place_resume(&place, since), "2026-11-21T15:24:43.000Z");
    assert_false(pass(&place, "2026-11-21T15:24:43.249999999Z"));
    assert_true(pass(&place, "2026-11-21T15:24:44Z"));
    assert_true(pass(&place, "2026-11-21T15:24:40Z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_on_behind_the_last_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
