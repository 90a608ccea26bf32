/* SPDX-License-Identifier: Apache-2.0 */
/* How long the words for why a job waits are held back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "launcher/cluster/client/job_clock.h"
#include "launcher/cluster/lead/private.h"

/* The PodGroup is asked for again and again while a slow look at the slices goes on. */
static void test_a_read_beside_another(void **state)
{
    char call = 0; /* is never looked into */
    struct lead lead = {0};
    (void)state;
    assert_true(lead_answer_ms(&lead) == 0);
    lead_begin_read(&lead);
    assert_true(lead.asked_ms > 0 && lead.asked_ms <= lead_now());
    assert_true(lead_answer_ms(&lead) == 0);

    lead.group.call = (void *)&call;
    lead.asked_ms = 1000;
    lead_begin_read(&lead);
    assert_true(lead_answer_ms(&lead) == 3000);

    lead.group.call = NULL;
    lead_begin_read(&lead);
    assert_true(lead.asked_ms > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_read_beside_another)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
