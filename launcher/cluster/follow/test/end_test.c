/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "launcher/cluster/follow/end.h"
#include "lib/base/cleanup.h"

#define LATE FOLLOW_END_SILENT_MS
#define GONE FOLLOW_END_GONE_MS

static void test_judge(void **state)
{
    static const struct {
        const char *what;
        struct follow_end_facts facts;
        enum follow_end end;
    } rows[] = {
        {"the leader's log has its record",
         {"a", "a", .recorded = true, .pods_known = true, .leader_is_there = true},
         FOLLOW_END_READ},
        {"it was read to its end, and the pod is gone since",
         {"a", "a", .closed = true, .pods_known = true},
         FOLLOW_END_READ},
        {"another launcher has told the end again",
         {"a", "b", .recorded = true, .open = true, .pods_known = true, .leader_is_there = true},
         FOLLOW_END_AWAITED},
        {"another launcher's log has ended",
         {"a", "b", .closed = true, .pods_known = true, .leader_is_there = true},
         FOLLOW_END_AWAITED},
        {"the leader's container has not begun, says the API",
         {"a", .pods_known = true, .leader_is_there = true, .pod_is_coming = true},
         FOLLOW_END_AWAITED},
        {"so for long",
         {"a", .pods_known = true, .leader_is_there = true, .silent_ms = LATE},
         FOLLOW_END_LOST},
        {"the log goes on",
         {"a", "a", .open = true, .pods_known = true, .leader_is_there = true, .silent_ms = 6000},
         FOLLOW_END_AWAITED},
        {"pods are not known yet", {"a"}, FOLLOW_END_AWAITED},
        {"the leader's pod is not in the list yet", {"a", .pods_known = true}, FOLLOW_END_AWAITED},
        {"it is gone", {"a", .pods_known = true, .silent_ms = GONE}, FOLLOW_END_LOST},
        {"it was there, and is gone", {"a", "a", .pods_known = true}, FOLLOW_END_LOST},
        {"it is gone while another one is read",
         {"a", "b", .recorded = true, .pods_known = true, .silent_ms = GONE},
         FOLLOW_END_LOST},
        {"it is gone, and its last bytes may come",
         {"a", "a", .open = true, .pods_known = true, .silent_ms = GONE},
         FOLLOW_END_AWAITED},
        {"logs are refused",
         {"a", "a", .pods_known = true, .leader_is_there = true, .refused = true},
         FOLLOW_END_LOST},
        {"run --here", {"host_12", .pods_known = true}, FOLLOW_END_READ},
        {"nobody led it", {.pods_known = true}, FOLLOW_END_READ},
        {"an older launcher may", {.pods_known = true, .pod_is_coming = true}, FOLLOW_END_AWAITED},
        {"an older launcher does", {NULL, "a", .recorded = true}, FOLLOW_END_READ},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (follow_end_judge(&rows[i].facts) != rows[i].end)
            fail_msg("%s", rows[i].what);
}

/* The time is never in the past: a client that waits for it would spin. */
static void test_next(void **state)
{
    (void)state;
    assert_int_equal(follow_end_next_ms(0), GONE);
    assert_int_equal(follow_end_next_ms(GONE - 1), 1);
    assert_int_equal(follow_end_next_ms(GONE), LATE - GONE);
    assert_int_equal(follow_end_next_ms(LATE - 1), 1);
    assert_int_equal(follow_end_next_ms(LATE), 0);
    assert_int_equal(follow_end_next_ms(LATE + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_judge), cmocka_unit_test(test_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
