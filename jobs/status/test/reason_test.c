/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/gang/gang.h"
#include "jobs/status/reason.h"

static enum reason find(const char *name)
{
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
        if (strcmp(reason_name((enum reason)i), name) == 0)
            return (enum reason)i;
    return REASON_NONE;
}

static void test_each_is_whole(void **state)
{
    (void)state;
    for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        enum reason reason = (enum reason)i;
        assert_non_null(reason_name(reason));
        assert_int_equal(find(reason_name(reason)), reason); /* no other has its name */
        assert_int_not_equal(reason_places(reason), 0);
        assert_non_null(reason_meaning(reason));
        assert_non_null(reason_cure(reason));
    }
    assert_true(reason_is_warning(REASON_TCP_FALLBACK));
    assert_false(reason_is_warning(REASON_STARTED));
}

/* A DraJob's state is the phase of its launcher: each phase that a job may be in has its words. */
static void test_each_phase_has_one(void **state)
{
    (void)state;
    for (int i = GANG_QUEUED; i < GANG_ENDED; i++) {
        char name[REASON_SIZE];
        reason_of_words(gang_phase_name((enum gang_phase)i), name, sizeof name);
        enum reason reason = find(name);
        if (reason == REASON_NONE)
            fail_msg("no reason for the phase %s", name);
        assert_true(reason_places(reason) & REASON_OF_STATUS);
    }
}

static void test_words(void **state)
{
    char text[REASON_SIZE], brief[5];
    (void)state;
    reason_of_words("node-lost", text, sizeof text);
    assert_string_equal(text, "NodeLost");
    reason_of_words("node-lost", brief, sizeof brief);
    assert_string_equal(brief, "Node");
    reason_of_words(NULL, text, sizeof text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_is_whole),
        cmocka_unit_test(test_each_phase_has_one),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
