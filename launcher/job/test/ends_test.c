/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <event2/event.h>
#include <cmocka.h>

#include "launcher/job/private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"

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

/* An agent fails in a job that is ending anyway, so that nothing follows. */
static void say_failure(struct job *job, uint32_t worker, int code, const char *text)
{
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(FAILURE, failure, &failure);
    failure.code = code;
    failure.text = unconst(text);
    failure.rank = -1;
    agent_on_message(NULL, &envelope, &job->agents[worker]);
}

/* What an agent lacks itself is the cause at once, and in place of what its peers did for it; what
 * it says of its neighbours only when these do not show what happened. */
static void test_what_an_agent_fails_for(void **state)
{
    static const struct {
        int code;
        bool own;
    } rows[] = {{ENOMEM, true},     {EAGAIN, true},  {EMFILE, true},
                {ENFILE, true},     {ENOSPC, true},  {ECONNRESET, false},
                {ETIMEDOUT, false}, {EPROTO, false}, {EPIPE, false}};
    const uint32_t ranks = 2;
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        const struct job_request request = {0};
        char host[] = "";
        struct agent agents[2] = {0};
        struct job job = {.request = &request, .agents = agents, .count = 2, .state = JOB_ENDING};
        struct drarun_error err = {0};
        bool echoed = i % 2 == 1, own = rows[i / 2].own;
        job.base = event_base_new();
        assert_non_null(job.base);
        job.remote = (struct remote *)&job; /* there is one */
        job.hearsay.clock = evtimer_new(job.base, on_time, NULL);
        job.settling.clock = evtimer_new(job.base, on_time, NULL);
        assert_int_equal(rankmap_build(&ranks, 1, 2, 1, &job.map, &err), 0);
        job.cause = cause_new(&job.map);
        assert_non_null(job.cause);
        for (uint32_t a = 0; a < 2; a++) {
            agents[a].job = &job;
            agents[a].index = a;
            agents[a].host = host;
            agents[a].phase = AGENT_PREPARED;
        }
        if (echoed)
            cause_abort(job.cause, 0, 0, "a", 1, "a peer is gone");
        say_failure(&job, 1, rows[i / 2].code, "it cannot go on");
        CLEANUP(buf_done) struct buf why = BUF_INIT;
        cause_explain(job.cause, false, &why);
        assert_int_equal(why.data && strstr(why.data, "worker 1 (): it cannot go on"), own);
        assert_int_equal(job.hearsay.error.code, own ? 0 : rows[i / 2].code);
        cause_free(job.cause);
        rankmap_done(&job.map);
        event_free(job.hearsay.clock);
        event_free(job.settling.clock);
        event_base_free(job.base);
    }
}

/* Output that cannot be written ends the job, whatever is under way: the next turn of the loop
 * takes it, or the first look of a job that has no clocks yet. */
static void test_output_that_fails(void **state)
{
    const uint32_t ranks = 1;
    (void)state;
    for (int has_clock = 0; has_clock <= 1; has_clock++) {
        const struct job_request request = {0};
        struct job job = {.request = &request, .state = JOB_ENDING, .base = event_base_new()};
        struct drarun_error err = {0};
        CLEANUP(buf_done) struct buf why = BUF_INIT;
        assert_non_null(job.base);
        job.settling.clock = evtimer_new(job.base, on_time, NULL);
        job.clocks.look = has_clock ? evtimer_new(job.base, on_time, NULL) : NULL;
        assert_int_equal(rankmap_build(&ranks, 1, 1, 1, &job.map, &err), 0);
        job.cause = cause_new(&job.map);
        assert_non_null(job.cause);
        error_set(&err, ENOSPC, "rank.0.out: no room");
        job_on_output_failed(&job, &err);
        cause_explain(job.cause, false, &why);
        assert_non_null(why.data);
        assert_non_null(strstr(why.data, "rank.0.out: no room"));
        if (has_clock) {
            assert_true(event_pending(job.clocks.look, EV_TIMEOUT, NULL));
            event_free(job.clocks.look);
        }
        cause_free(job.cause);
        rankmap_done(&job.map);
        event_free(job.settling.clock);
        event_base_free(job.base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_how_long_a_pods_end_is_awaited),
                                       cmocka_unit_test(test_what_an_agent_fails_for),
                                       cmocka_unit_test(test_output_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
