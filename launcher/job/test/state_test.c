/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "launcher/job/state.h"
#include "lib/base/cleanup.h"

static void follow(const enum job_event *events, size_t count, enum job_state expected)
{
    enum job_state state = JOB_CONNECTING;
    for (size_t i = 0; i < count; i++) {
        const struct job_step *step = job_step_find(state, events[i]);
        assert_non_null(step);
        state = step->next;
    }
    assert_int_equal(state, expected);
}

static void an_orderly_life(void **state)
{
    const enum job_event events[] = {JOB_GREETED, JOB_CHECKED, JOB_READY, JOB_GONE, JOB_DRAINED};
    (void)state;
    follow(events, ARRAY_LEN(events), JOB_ENDED);
}

static void a_life_cut_short(void **state)
{
    const enum job_event events[] = {JOB_GREETED, JOB_INTERRUPT, JOB_READY, JOB_GRACE_OVER,
                                     JOB_FINAL,   JOB_OVERDUE,   JOB_GONE,  JOB_FINAL};
    (void)state;
    follow(events, ARRAY_LEN(events), JOB_ENDED);
}

static void unknown_pairs_are_errors(void **state)
{
    (void)state;
    assert_null(job_step_find(JOB_RUNNING, JOB_GREETED));
    assert_null(job_step_find(JOB_CONNECTING, JOB_DRAINED));
    assert_null(job_step_find(JOB_ENDED, JOB_CAUSE));
    assert_null(agent_step_find(AGENT_GREETING, AGENT_READY));
    assert_null(agent_step_find(AGENT_GREETED, AGENT_HELLO));
    assert_null(agent_step_find(AGENT_GREETED, AGENT_WORK));
    assert_null(agent_step_find(AGENT_DONE, AGENT_WORK));
    assert_null(agent_step_find(AGENT_LOST, AGENT_HELLO));
}

/* What can happen at any time must be foreseen in every state but the last. */
static void causes_are_foreseen_everywhere(void **state)
{
    (void)state;
    for (enum job_state s = JOB_CONNECTING; s < JOB_ENDED; s++) {
        assert_non_null(job_step_find(s, s < JOB_ENDING ? JOB_INTERRUPT : JOB_FINAL));
        if (s != JOB_ENDING) /* whose cause is known */
            assert_non_null(job_step_find(s, JOB_CAUSE));
        if (s != JOB_DRAINING)
            assert_non_null(job_step_find(s, JOB_GONE));
    }
    for (enum agent_phase p = AGENT_CONNECTING; p <= AGENT_LOST; p++)
        assert_non_null(agent_step_find(p, AGENT_CLOSED));
}

static void each_pair_stands_once_and_has_a_name(void **state)
{
    (void)state;
    for (enum job_state s = JOB_CONNECTING; s <= JOB_ENDED; s++)
        assert_string_not_equal(job_state_name(s), "?");
    for (enum job_event e = JOB_GREETED; e <= JOB_DRAINED; e++)
        assert_string_not_equal(job_event_name(e), "?");
    for (enum agent_phase p = AGENT_CONNECTING; p <= AGENT_LOST; p++)
        assert_string_not_equal(agent_phase_name(p), "?");
    for (enum agent_event e = AGENT_CONNECTED; e <= AGENT_CLOSED; e++)
        assert_string_not_equal(agent_event_name(e), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_orderly_life),
        cmocka_unit_test(a_life_cut_short),
        cmocka_unit_test(unknown_pairs_are_errors),
        cmocka_unit_test(causes_are_foreseen_everywhere),
        cmocka_unit_test(each_pair_stands_once_and_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
