/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "launcher/cluster/lead/lost.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"

#define WORKERS 6

static void keep_line(void *arg, const struct log_line *line)
{
    buf_add(arg, line->text, line->length);
}

static bool look(struct lost *lost, const struct pod_state *workers)
{
    for (uint32_t i = lost->count; i > 0; i--)
        lost_look(lost, i - 1, &workers[i - 1]);
    return lost_tell(lost, workers);
}

static void assert_told(struct lost *lost, const struct pod_state *workers, const char *expected)
{
    struct buf text = BUF_INIT;
    log_divert(keep_line, &text);
    bool changed = look(lost, workers);
    log_divert(NULL, NULL);
    assert_string_equal(text.data ? text.data : "", expected);
    assert_true(changed || !*expected);
    buf_done(&text);
}

static void test_each_reason_once(void **state)
{
    struct pod_state workers[WORKERS];
    struct lost lost;
    (void)state;
    for (int i = 0; i < WORKERS; i++)
        workers[i] = (struct pod_state){.phase = POD_RUNNING};
    assert_int_equal(lost_init(&lost, WORKERS), 0);
    assert_told(&lost, workers, "");
    workers[0].phase = workers[1].phase = workers[4].phase = POD_ABSENT;
    workers[2].not_ready = true;
    assert_told(&lost, workers,
                "drarun: workers 0-1,4 are lost: the pod was deleted\n"
                "drarun: worker 2 is lost: the node stopped answering\n");
    assert_told(&lost, workers, "");
    workers[3] = (struct pod_state){
        .phase = POD_ENDED, .end = POD_END_OOM, .message = "its container used too much memory"};
    assert_told(&lost, workers, "drarun: worker 3 is lost: its container used too much memory\n");
    workers[1] = (struct pod_state){.phase = POD_RUNNING};
    assert_true(look(&lost, workers));
    workers[1].deleting = true;
    assert_told(&lost, workers, "drarun: worker 1 is lost: the pod is being deleted\n");
    workers[2].not_ready = false; /* its node is back, and another one goes */
    workers[5].not_ready = true;
    assert_told(&lost, workers, "drarun: worker 5 is lost: the node stopped answering\n");
    lost_done(&lost);
}

static void test_a_worker_that_is_back_is_a_change(void **state)
{
    struct pod_state workers[] = {{.phase = POD_RUNNING, .not_ready = true}};
    struct lost lost;
    (void)state;
    assert_int_equal(lost_init(&lost, 1), 0);
    assert_told(&lost, workers, "drarun: worker 0 is lost: the node stopped answering\n");
    workers[0].not_ready = false;
    assert_true(look(&lost, workers));
    assert_false(look(&lost, workers));
    lost_done(&lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_reason_once),
        cmocka_unit_test(test_a_worker_that_is_back_is_a_change),
    };
    log_setup("drarun", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
