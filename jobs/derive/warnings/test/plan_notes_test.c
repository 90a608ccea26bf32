/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "jobs/derive/warnings/plan_notes.h"

static void texts_stay(void **state)
{
    struct plan_notes notes = {0};
    (void)state;
    const char *first = plan_notes_text(&notes, "%s", "first");
    for (int i = 0; i < 100; i++)
        plan_notes_text(&notes, "%d", i);
    assert_string_equal(first, "first");
    assert_string_equal(plan_notes_text(&notes, "%s", ""), "");
    assert_false(plan_notes_failed(&notes));
    plan_notes_done(&notes);
}

static void the_last_refusal_counts(void **state)
{
    struct plan_notes notes = {0};
    (void)state;
    assert_int_equal(notes.refusal.code, WARNING_NONE);
    assert_int_equal(plan_notes_refuse(&notes, WARN_NO_GPU, 3, "none of %d", 2), 1);
    assert_int_equal(plan_notes_refuse(&notes, WARN_NO_RDMA_NIC, WORKER_NONE, "no NIC"), 1);
    assert_int_equal(notes.refusal.code, WARN_NO_RDMA_NIC);
    assert_int_equal(notes.refusal.worker, WORKER_NONE);
    assert_string_equal(notes.refusal.detail, "no NIC");
    plan_notes_done(&notes);
    assert_null(notes.refusal.detail);
}

static void what_is_missing_is_known(void **state)
{
    struct plan_notes notes = {.warnings = {.failed = true}};
    (void)state;
    assert_true(plan_notes_failed(&notes));
    notes = (struct plan_notes){.pool = {.failed = true}};
    assert_true(plan_notes_failed(&notes));
    assert_string_equal(plan_notes_text(&notes, "x"), "");
    plan_notes_done(&notes);
    notes = (struct plan_notes){.refusal = {.code = WARN_NO_GPU}};
    assert_true(plan_notes_failed(&notes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_stay),
        cmocka_unit_test(the_last_refusal_counts),
        cmocka_unit_test(what_is_missing_is_known),
    };
    return cmocka_run_group_tests_name("plan_notes", tests, NULL, NULL);
}
