/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <event2/event.h>
#include <cmocka.h>

#include "launcher/job/private.h"
#include "lib/base/cleanup.h"

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* A connection that the node's kernel closed shows that the node is up and will report the pod. */
static void test_how_long_a_pods_end_is_awaited(void **state)
{
    static const struct {
        int code;
        int64_t ms;
    } rows[] = {{0, JOB_POD_ENDED_MS},     {ECONNRESET, JOB_POD_ENDED_MS},
                {EPIPE, JOB_POD_ENDED_MS}, {EPROTO, JOB_POD_ENDED_MS},
                {ETIMEDOUT, JOB_POD_MS},   {EHOSTUNREACH, JOB_POD_MS},
                {ENETUNREACH, JOB_POD_MS}};
    struct event_base *base = event_base_new();
    struct agent agent = {0};
    (void)state;
    assert_non_null(base);
    assert_int_equal(agent_pod_ms(&agent), JOB_POD_MS); /* a leaving one */
    agent.linger = evtimer_new(base, on_time, NULL);
    assert_non_null(agent.linger);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        agent.why.code = rows[i].code;
        assert_int_equal(agent_pod_ms(&agent), rows[i].ms);
    }
    event_free(agent.linger);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_how_long_a_pods_end_is_awaited)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
