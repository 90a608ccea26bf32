/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "launcher/cluster/lead/course.h"
#include "lib/base/cleanup.h"

static void follow(enum course_phase phase, const enum course_event *events, size_t count,
                   enum course_phase expected)
{
    for (size_t i = 0; i < count; i++) {
        const struct course_step *step = course_step_find(phase, events[i]);
        assert_non_null(step);
        phase = step->next;
    }
    assert_int_equal(phase, expected);
}

static void test_courses(void **state)
{
    const enum course_event plain[] = {COURSE_DONE, COURSE_DONE, COURSE_END};
    const enum course_event again[] = {COURSE_DONE, COURSE_DONE, COURSE_RESTART,    COURSE_DONE,
                                       COURSE_DONE, COURSE_DONE, COURSE_TAKEN_BACK, COURSE_DONE};
    const enum course_event kept[] = {COURSE_DONE, COURSE_DONE, COURSE_CHECKED, COURSE_END};
    const enum course_event resumed[] = {COURSE_RESTART, COURSE_END};
    (void)state;
    follow(COURSE_PLACING, plain, ARRAY_LEN(plain), COURSE_OVER);
    follow(COURSE_PLACING, again, ARRAY_LEN(again), COURSE_PLACING);
    follow(COURSE_PLACING, kept, ARRAY_LEN(kept), COURSE_OVER);
    follow(COURSE_ORPHANED, resumed, ARRAY_LEN(resumed), COURSE_OVER);
}

/* Each phase may be the last one, and an attempt that is over has its three outcomes. */
static void test_every_phase_has_its_ends(void **state)
{
    (void)state;
    for (enum course_phase p = COURSE_PLACING; p < COURSE_OVER; p++) {
        assert_int_equal(course_step_find(p, COURSE_END)->next, COURSE_OVER);
        assert_int_equal(!course_step_find(p, COURSE_RESTART), course_creates(p));
        assert_int_equal(!course_step_find(p, COURSE_TAKEN_BACK), course_creates(p));
        assert_string_not_equal(course_phase_name(p), "?");
    }
    for (enum course_event e = COURSE_DONE; e <= COURSE_END; e++) {
        assert_null(course_step_find(COURSE_OVER, e));
        assert_string_not_equal(course_event_name(e), "?");
    }
    assert_null(course_step_find(COURSE_PLACING, COURSE_CHECKED));
    assert_null(course_step_find(COURSE_RUNNING, COURSE_DONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_courses),
        cmocka_unit_test(test_every_phase_has_its_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
