/* SPDX-License-Identifier: Apache-2.0 */
/* What follows when a deadline of the job passes. What the clocks call is the test's: it notes the
 * calls. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <event2/event.h>
#include <cmocka.h>

#include "launcher/job/private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define CLOCKS 15
#define AGENTS 12

/* ---- what the clocks call ---- */

static struct calls {
    struct buf text;
    int64_t now_ms;
    const struct event *started[CLOCKS];
    int64_t after_ms[CLOCKS];
    size_t started_count;
    bool idle;
    uint64_t written;
    int codes[AGENTS];
    const char *whys[AGENTS];
} calls;

static void note(const char *text)
{
    buf_printf(&calls.text, "%s%s", calls.text.len ? "; " : "", text);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = calls.now_ms / 1000, .tv_nsec = calls.now_ms % 1000 * 1000000};
    return 0;
}

int __wrap_event_add(struct event *event, const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after)
{
    assert_true(calls.started_count < CLOCKS);
    calls.started[calls.started_count] = event;
    calls.after_ms[calls.started_count++] = after->tv_sec * 1000 + after->tv_usec / 1000;
    return 0;
}

void __wrap_job_look(struct job *job);
void __wrap_job_look(struct job *job)
{
    (void)job;
    note("look");
}

void __wrap_job_event(struct job *job, enum job_event event);
void __wrap_job_event(struct job *job, enum job_event event)
{
    (void)job;
    note(job_event_name(event));
}

void __wrap_job_fail(struct job *job, const struct drarun_error *err);
void __wrap_job_fail(struct job *job, const struct drarun_error *err)
{
    char text[640];
    (void)job;
    snprintf(text, sizeof text, "fail %d %d %s", err->kind, err->code, err->text);
    note(text);
}

void __wrap_job_send_signal(struct job *job, int signo);
void __wrap_job_send_signal(struct job *job, int signo)
{
    char text[32];
    (void)job;
    snprintf(text, sizeof text, "signal %d", signo);
    note(text);
}

void __wrap_agent_lose_silent(struct agent *agent, const struct drarun_error *err);
void __wrap_agent_lose_silent(struct agent *agent, const struct drarun_error *err)
{
    char text[640];
    snprintf(text, sizeof text, "lose %u %d %d %s", agent->index, err->kind, err->code, err->text);
    note(text);
}

void __wrap_agents_send(struct job *job, const Drarun__Wire__Envelope *message);
void __wrap_agents_send(struct job *job, const Drarun__Wire__Envelope *message)
{
    (void)job;
    note(message->body_case == DRARUN__WIRE__ENVELOPE__BODY_PING ? "ping" : "another");
}

void __wrap_console_clear(struct console *console);
void __wrap_console_clear(struct console *console)
{
    (void)console;
}

bool __wrap_output_idle(const struct output *output);
bool __wrap_output_idle(const struct output *output)
{
    (void)output;
    return calls.idle;
}

uint64_t __wrap_output_written(const struct output *output);
uint64_t __wrap_output_written(const struct output *output)
{
    (void)output;
    return calls.written;
}

void __wrap_output_discard_stalled(struct output *output);
void __wrap_output_discard_stalled(struct output *output)
{
    (void)output;
    note("discard");
}

static const char *why_of(const struct remote *remote, uint32_t agent)
{
    (void)remote;
    return calls.whys[agent] ? calls.whys[agent] : "";
}

static int code_of(const struct remote *remote, uint32_t agent)
{
    (void)remote;
    return calls.codes[agent];
}

const struct remote_api *remote_api(void)
{
    static const struct remote_api api = {.why = why_of, .code = code_of};
    return &api;
}

static void on_line(void *arg, const struct log_line *line)
{
    char text[512];
    (void)arg;
    if (line->level > LOG_NORMAL)
        return;
    snprintf(text, sizeof text, "log %.*s", (int)(line->length - line->prefix - 1),
             line->text + line->prefix);
    note(text);
}

/* ---- a job ---- */

struct made {
    struct job_request request;
    struct request_pods pods;
    struct agent agents[AGENTS];
    struct job job;
};

static const char *const pod_names[AGENTS] = {"p0", "p1", "p2", "p3", "p4",  "p5",
                                              "p6", "p7", "p8", "p9", "p10", "p11"};
static const char *const node_names[AGENTS] = {"n0", "n1", "n2", "n3", "n4",  "n5",
                                               "n6", "n7", "n8", "n9", "n10", "n11"};

static void made_init(struct made *m, uint32_t count)
{
    static char host[] = "";
    const uint32_t ranks = 1;
    struct drarun_error err = {0};
    *m = (struct made){.pods = {.pods = pod_names, .nodes = node_names}};
    m->job.request = &m->request;
    m->job.agents = m->agents;
    m->job.count = count;
    m->job.state = JOB_CONNECTING;
    m->job.base = event_base_new();
    assert_non_null(m->job.base);
    for (uint32_t i = 0; i < AGENTS; i++) {
        m->agents[i] =
            (struct agent){.job = &m->job, .index = i, .phase = AGENT_CONNECTING, .host = host};
        snprintf(m->agents[i].address, sizeof m->agents[i].address, "10.0.0.%u:7173", i);
    }
    assert_int_equal(rankmap_build(&ranks, 1, 1, 1, &m->job.map, &err), 0);
    m->job.cause = cause_new(&m->job.map);
    assert_non_null(m->job.cause);
    buf_done(&calls.text);
    calls = (struct calls){.text = BUF_INIT, .now_ms = 5000000};
}

static void made_done(struct made *m)
{
    job_free_clocks(&m->job);
    cause_free(m->job.cause);
    rankmap_done(&m->job.map);
    event_base_free(m->job.base);
}

static void remote_job(struct made *m)
{
    m->job.remote = (struct remote *)m; /* there is one */
}

static void is_said(const char *expected)
{
    assert_string_equal(calls.text.data ? calls.text.data : "", expected);
    buf_reset(&calls.text);
}

static int64_t ms_of(const struct event *clock)
{
    for (size_t i = 0; i < calls.started_count; i++)
        if (calls.started[i] == clock)
            return calls.after_ms[i];
    return -1;
}

/* The clock is due. */
static void pass(struct made *m, struct event *clock)
{
    calls.started_count = 0;
    event_active(clock, EV_TIMEOUT, 1);
    event_base_loop(m->job.base, EVLOOP_NONBLOCK);
}

/* ---- which clocks run ---- */

static void clocks_that_run_from_the_beginning(void **state)
{
    static const struct {
        bool remote, pods;
        int64_t timeout_ms, warn_before_ms, start_timeout_ms, agent_timeout_ms;
        int warn_signo;
        int64_t limit, warn, ping, notice, start; /* -1: does not run */
    } rows[] = {
        {false, false, 0, 0, 0, 0, 0, -1, -1, -1, -1, 30200},
        {false, false, 1, 0, 0, 0, 0, 1, -1, -1, -1, 30200},
        {false, false, 90000, 30000, 7, 0, 0, 90000, -1, -1, -1, 7},
        {false, false, 90000, 30000, 0, 0, SIGUSR1, 90000, 60000, -1, -1, 30200},
        {false, false, 90000, 90000, 0, 0, SIGUSR1, 90000, 0, -1, -1, 30200},
        {false, false, 90000, 90001, 0, 0, SIGUSR1, 90000, 0, -1, -1, 30200}, /* late */
        {false, false, 0, 30000, 0, 0, SIGUSR1, -1, -1, -1, -1, 30200},
        {true, false, 0, 0, 0, 0, 0, -1, -1, 5000, 1500, 30200},
        {true, false, 0, 0, 0, 19999, 0, -1, -1, 4999, 1500, 30200},
        {true, false, 0, 0, 0, 20004, 0, -1, -1, 5000, 1500, 30200},
        {true, true, 0, 0, 0, 0, 0, -1, -1, 2000, -1, 10000},
        {true, true, 0, 0, 0, 7999, 0, -1, -1, 1999, -1, 10000},
        {true, true, 0, 0, 0, 60000, 0, -1, -1, 2000, -1, 10000},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        made_init(&m, 2);
        m.request.pods = rows[i].pods ? &m.pods : NULL;
        m.request.timeout_ms = rows[i].timeout_ms;
        m.request.warn_before_ms = rows[i].warn_before_ms;
        m.request.warn_signo = rows[i].warn_signo;
        m.request.start_timeout_ms = rows[i].start_timeout_ms;
        m.request.agent_timeout_ms = rows[i].agent_timeout_ms;
        if (rows[i].remote)
            remote_job(&m);
        assert_int_equal(job_make_clocks(&m.job, &err), 0);
        assert_int_equal(ms_of(m.job.clocks.limit), rows[i].limit);
        assert_int_equal(ms_of(m.job.clocks.warn), rows[i].warn);
        assert_int_equal(ms_of(m.job.liveness.ping_clock), rows[i].ping);
        assert_int_equal(ms_of(m.job.clocks.notice), rows[i].notice);
        assert_int_equal(ms_of(m.job.clocks.start), rows[i].start);
        size_t expected = 1 + (rows[i].limit >= 0) + (rows[i].warn >= 0) + (rows[i].ping >= 0) +
                          (rows[i].notice >= 0);
        assert_int_equal(calls.started_count, expected);
        assert_int_equal(m.job.liveness.ticked_ms, 5000000);
        made_done(&m);
    }
}

/* ---- who is awaited ---- */

static void agents_that_are_awaited(void **state)
{
    static const struct {
        enum job_state state;
        bool remote, pods;
        uint32_t count, first, last; /* those that are awaited */
        enum agent_phase phase;      /* in which they are */
        int code;
        const char *why, *text;
    } rows[] = {
        {JOB_CONNECTING, false, false, 3, 3, 3, AGENT_CONNECTING, 0, "", ""},
        {JOB_CONNECTING, false, false, 3, 1, 1, AGENT_CONNECTING, 0, "no",
         "worker 1 (10.0.0.1:7173) is not reached after all"},
        {JOB_CONNECTING, false, false, 3, 2, 2, AGENT_GREETING, 0, "",
         "worker 2 (10.0.0.2:7173) says no hello after all"},
        {JOB_CONNECTING, false, false, 3, 3, 3, AGENT_GREETED, 0, "", ""},
        {JOB_PREPARING, false, false, 3, 0, 0, AGENT_GREETED, 0, "",
         "worker 0 (10.0.0.0:7173) is not prepared after all"},
        {JOB_PREPARING, false, false, 3, 3, 3, AGENT_PREPARED, 0, "", ""},
        {JOB_CONNECTING, true, true, 2, 0, 1, AGENT_CONNECTING, ECONNREFUSED, "refused",
         "worker 0 (p0 on n0) is not reached after all: refused (nor worker 1 (p1 on n1))"},
        {JOB_CONNECTING, true, true, 2, 0, 0, AGENT_CONNECTING, 0, "refused",
         "worker 0 (p0 on n0) is not reached after all: no answer to the connection: its node is "
         "down, or a network policy or firewall drops packets to port 7173"},
        {JOB_CONNECTING, true, true, 2, 0, 0, AGENT_CONNECTING, ETIMEDOUT, "timed out",
         "worker 0 (p0 on n0) is not reached after all: no answer to the connection: its node is "
         "down, or a network policy or firewall drops packets to port 7173"},
        {JOB_CONNECTING, true, true, 2, 0, 0, AGENT_GREETING, 0, "it says nothing",
         "worker 0 (p0 on n0) says no hello after all: it says nothing"},
        {JOB_CONNECTING, true, false, 2, 0, 0, AGENT_CONNECTING, ENETUNREACH, "no route",
         "worker 0 (10.0.0.0:7173) is not reached after all: no route"},
        {JOB_CONNECTING, true, false, 2, 0, 0, AGENT_CONNECTING, 0, "",
         "worker 0 (10.0.0.0:7173) is not reached after all"}, /* of this machine */
        {JOB_CONNECTING, true, true, 12, 2, 10, AGENT_GREETING, 0, "",
         "worker 2 (p2 on n2) says no hello after all (nor worker 3 (p3 on n3), worker 4 (p4 on "
         "n4), worker 5 (p5 on n5), worker 6 (p6 on n6), worker 7 (p7 on n7), worker 8 (p8 on n8), "
         "worker 9 (p9 on n9), worker 10 (p10 on n10))"},
        {JOB_CONNECTING, true, true, 12, 0, 9, AGENT_GREETING, 0, "",
         "worker 0 (p0 on n0) says no hello after all (nor worker 1 (p1 on n1), worker 2 (p2 on "
         "n2), worker 3 (p3 on n3), worker 4 (p4 on n4), worker 5 (p5 on n5), worker 6 (p6 on n6), "
         "worker 7 (p7 on n7), worker 8 (p8 on n8) and 1 more)"},
        {JOB_CONNECTING, true, true, 12, 0, 11, AGENT_GREETING, 0, "",
         "worker 0 (p0 on n0) says no hello after all (nor worker 1 (p1 on n1), worker 2 (p2 on "
         "n2), worker 3 (p3 on n3), worker 4 (p4 on n4), worker 5 (p5 on n5), worker 6 (p6 on n6), "
         "worker 7 (p7 on n7), worker 8 (p8 on n8) and 3 more)"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        made_init(&m, rows[i].count);
        m.request.pods = rows[i].pods ? &m.pods : NULL;
        m.job.state = rows[i].state;
        if (rows[i].remote)
            remote_job(&m);
        for (uint32_t a = 0; a < rows[i].count; a++) {
            bool awaited = a >= rows[i].first && a <= rows[i].last;
            m.agents[a].phase = awaited ? rows[i].phase : AGENT_PREPARED;
            calls.codes[a] = rows[i].code;
            calls.whys[a] = rows[i].why;
        }
        uint32_t awaited = job_describe_awaited(&m.job, " after all", &text);
        assert_string_equal(text.data ? text.data : "", rows[i].text);
        assert_int_equal(awaited, rows[i].text[0] ? rows[i].last - rows[i].first + 1 : 0);
        made_done(&m);
    }
}

/* Other people's agents: a firewall, or nobody has started them. */
static void agents_that_do_not_answer_in_time(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    char list[] = "a:1,b:1";
    char expected[640];
    (void)state;
    made_init(&m, 2);
    remote_job(&m);
    m.request.agents = list;
    m.request.start_timeout_ms = 2500;
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    snprintf(expected, sizeof expected,
             "fail %d %d worker 0 (10.0.0.0:7173) is not reached after 2 s (--start-timeout): no "
             "answer to the connection: its machine is down, or a firewall drops packets to port "
             "7173 (nor worker 1 (10.0.0.1:7173)); look",
             DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT);
    pass(&m, m.job.clocks.start);
    is_said(expected);
    calls.codes[0] = ECONNREFUSED;
    calls.whys[0] = "refused";
    m.agents[1].phase = AGENT_GREETED;
    snprintf(expected, sizeof expected,
             "fail %d %d worker 0 (10.0.0.0:7173) is not reached after 2 s (--start-timeout): "
             "refused; is drarun-worker --listen running there?; look",
             DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT);
    pass(&m, m.job.clocks.start);
    is_said(expected);
    m.job.state = JOB_PREPARING;
    snprintf(expected, sizeof expected,
             "fail %d %d worker 0 (10.0.0.0:7173) is not reached after 2 s (--start-timeout): "
             "refused (nor worker 1 (10.0.0.1:7173)); look",
             DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT);
    pass(&m, m.job.clocks.start);
    is_said(expected);
    m.agents[0].phase = m.agents[1].phase = AGENT_PREPARED;
    snprintf(expected, sizeof expected,
             "fail %d %d an agent is awaited after 2 s (--start-timeout); look",
             DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT);
    pass(&m, m.job.clocks.start);
    is_said(expected);
    m.job.state = JOB_RUNNING;
    pass(&m, m.job.clocks.start);
    is_said("");
    made_done(&m);
}

/* The limit that is told is the one that somebody has set. */
static void pods_that_do_not_answer_in_time(void **state)
{
    static const struct {
        bool entry, kept;
        int64_t all_tries_ms;
        const char *after;
    } rows[] = {{false, false, 0, "10 s (timeouts.start)"},
                {false, false, 61000, "61 s (timeouts.start)"},
                {true, false, 0, "10 s (--start-timeout)"},
                {false, true, 0, "10 s (--start-timeout)"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        char expected[640];
        made_init(&m, 1);
        m.pods.entry = rows[i].entry;
        m.pods.kept = rows[i].kept;
        m.pods.all_tries_ms = rows[i].all_tries_ms;
        m.request.pods = &m.pods;
        m.agents[0].phase = AGENT_GREETING;
        assert_int_equal(job_make_clocks(&m.job, &err), 0);
        pass(&m, m.job.clocks.start);
        snprintf(expected, sizeof expected,
                 "fail %d %d worker 0 (p0 on n0) says no hello after %s; look",
                 DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, rows[i].after);
        is_said(expected);
        made_done(&m);
    }
}

/* People hear soon what is awaited; when the loopback is down, nothing comes of waiting. */
static void a_wait_gives_its_reason_soon(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    char list[] = "a:1,b:1", expected[256];
    (void)state;
    log_divert(on_line, NULL);
    made_init(&m, 2);
    remote_job(&m);
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    pass(&m, m.job.clocks.notice);
    is_said(""); /* nothing has failed yet */
    m.agents[0].phase = AGENT_GREETED;
    calls.codes[0] = ECONNREFUSED; /* before */
    pass(&m, m.job.clocks.notice);
    is_said("");
    calls.codes[1] = ECONNREFUSED;
    calls.whys[1] = "refused";
    pass(&m, m.job.clocks.notice);
    is_said("log waiting: worker 1 (10.0.0.1:7173) is not reached: refused");
    calls.codes[1] = ENETUNREACH;
    pass(&m, m.job.clocks.notice);
    snprintf(expected, sizeof expected,
             "fail %d %d cannot reach the agents of this machine at 127.0.0.1: the loopback "
             "interface is down; run ip link set lo up; look",
             DRARUN_ERR_INFRASTRUCTURE, ENETUNREACH);
    is_said(expected);
    m.job.state = JOB_CHECKING;
    pass(&m, m.job.clocks.notice);
    is_said("");
    m.job.state = JOB_CONNECTING;
    m.request.agents = list;
    pass(&m, m.job.clocks.notice);
    is_said("log waiting: worker 1 (10.0.0.1:7173) is not reached: refused");
    calls.codes[1] = 0;
    pass(&m, m.job.clocks.notice);
    is_said("log waiting: worker 1 (10.0.0.1:7173) is not reached: no answer to the connection: "
            "its machine is down, or a firewall drops packets to port 7173");
    made_done(&m);
    log_divert(NULL, NULL);
}

/* ---- the job's timeout ---- */

static void jobs_that_take_too_long(void **state)
{
    static const struct {
        bool pods, kept;
        enum job_state state;
        const char *said;
        bool caused;
    } rows[] = {
        {false, false, JOB_RUNNING, "look", true},
        {false, false, JOB_DRAINING, "final; look", true},
        {true, true, JOB_RUNNING, "look", true},
        {true, false, JOB_RUNNING, NULL, false},
    };
    char total[128];
    (void)state;
    snprintf(total, sizeof total,
             "fail %d %d the job did not end within 3601 s (spec.timeouts.total); look",
             DRARUN_ERR_TIMEOUT, ETIMEDOUT);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        char expected[128];
        made_init(&m, 1);
        m.request.pods = rows[i].pods ? &m.pods : NULL;
        m.request.timeout_ms = 1000;
        m.pods.kept = rows[i].kept;
        m.pods.total_ms = 3601999;
        m.job.state = rows[i].state;
        assert_int_equal(job_make_clocks(&m.job, &err), 0);
        snprintf(expected, sizeof expected, "%s", rows[i].said ? rows[i].said : total);
        if (rows[i].state == JOB_DRAINING)
            snprintf(expected, sizeof expected, "%s; look", job_event_name(JOB_FINAL));
        pass(&m, m.job.clocks.limit);
        is_said(expected);
        assert_int_equal(m.job.caused, rows[i].caused);
        assert_int_equal(cause_kind(m.job.cause), rows[i].caused ? CAUSE_TIMEOUT : CAUSE_NONE);
        made_done(&m);
    }
}

static void ranks_are_warned_of_the_timeout(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    char expected[128];
    (void)state;
    log_divert(on_line, NULL);
    made_init(&m, 1);
    m.request.warn_signo = SIGUSR1;
    m.request.warn_before_ms = 1500;
    m.request.timeout_ms = 2000;
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    m.job.state = JOB_PREPARING;
    pass(&m, m.job.clocks.warn);
    is_said("log SIGUSR1 is not sent: 1.5 s before the job's timeout the ranks have not started");
    m.job.state = JOB_RUNNING;
    pass(&m, m.job.clocks.warn);
    snprintf(expected, sizeof expected,
             "log SIGUSR1 sent to the ranks: the job's timeout ends them in 1.5 s; signal %d",
             SIGUSR1);
    is_said(expected);
    m.job.state = JOB_ENDING;
    pass(&m, m.job.clocks.warn);
    is_said("");
    made_done(&m);
    log_divert(NULL, NULL);
}

/* ---- the end ---- */

static void ranks_that_had_their_grace(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    char expected[64];
    (void)state;
    made_init(&m, 1);
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    m.job.state = JOB_ENDING;
    pass(&m, m.job.interrupt.grace_clock);
    snprintf(expected, sizeof expected, "%s; look", job_event_name(JOB_GRACE_OVER));
    is_said(expected);
    m.job.state = JOB_DRAINING;
    pass(&m, m.job.interrupt.grace_clock);
    is_said("look");
    made_done(&m);
}

/* First what holds the agents up is taken away, then they are; output that is being read may take
 * its time. */
static void ends_that_take_too_long(void **state)
{
    static const char dropped[] =
        "log our output is not being read: the rest of it is dropped; discard";
    static const struct {
        enum job_state state;
        uint32_t stage;
        bool idle, read, interrupted, orphans, failed;
        bool overdue;     /* the agents are taken away */
        bool discards;    /* the rest of the output is dropped */
        int64_t again_ms; /* of the clock; -1: it is not started */
        uint32_t next;    /* stage */
    } rows[] = {
        {JOB_ENDING, 0, false, false, false, false, false, false, true, 3000, 1},
        {JOB_ENDING, 0, true, false, false, false, false, false, false, 3000, 1},
        {JOB_ENDING, 1, false, false, false, false, false, true, false, -1, 2},
        {JOB_ENDING, 0, false, true, false, false, false, false, false, 2000, 0},
        {JOB_ENDING, 1, true, true, false, false, false, false, false, 2000, 1},
        {JOB_ENDING, 0, false, true, true, false, false, false, true, 3000, 1},
        {JOB_DRAINING, 0, false, false, false, false, false, false, false, 3000, 1},
        {JOB_DRAINING, 0, false, true, false, false, false, false, false, 3000, 1},
        {JOB_DRAINING, 1, false, true, false, false, false, false, false, 2000, 1},
        {JOB_DRAINING, 1, true, true, false, false, false, false, false, -1, 2},
        {JOB_DRAINING, 1, false, false, false, false, false, false, false, -1, 2},
        {JOB_DRAINING, 1, false, false, false, true, false, true, false, -1, 2},
        {JOB_DRAINING, 0, false, false, false, true, false, true, false, 3000, 1},
        {JOB_DRAINING, 0, false, false, false, false, true, false, false, 3000, 1},
        {JOB_DRAINING, 1, false, false, false, false, true, false, true, -1, 2},
        {JOB_DRAINING, 1, true, false, false, false, true, false, false, -1, 2},
        {JOB_RUNNING, 1, false, false, false, true, true, false, false, -1, 2},
    };
    (void)state;
    log_divert(on_line, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        char expected[256];
        made_init(&m, 1);
        assert_int_equal(job_make_clocks(&m.job, &err), 0);
        if (rows[i].failed) {
            error_set(&err, EIO, "broken");
            cause_failure(m.job.cause, &err);
        }
        m.job.state = rows[i].state;
        m.job.overdue.stage = rows[i].stage;
        m.job.overdue.written = 7;
        m.job.local.orphans = rows[i].orphans;
        m.job.interrupt.signo = rows[i].interrupted ? SIGINT : 0;
        calls.written = rows[i].read ? 8 : 7;
        calls.idle = rows[i].idle;
        pass(&m, m.job.overdue.clock);
        snprintf(expected, sizeof expected, "%s%s%s%s%s",
                 rows[i].overdue ? job_event_name(JOB_OVERDUE) : "", rows[i].overdue ? "; " : "",
                 rows[i].discards ? dropped : "", rows[i].discards ? "; " : "",
                 rows[i].again_ms == 2000 ? "" : "look");
        if (strcmp(calls.text.data ? calls.text.data : "", expected) != 0)
            fail_msg("row %zu: %s", i, calls.text.data ? calls.text.data : "");
        assert_int_equal(ms_of(m.job.overdue.clock), rows[i].again_ms);
        assert_int_equal(m.job.overdue.stage, rows[i].next);
        assert_int_equal(m.job.overdue.written, calls.written);
        made_done(&m);
    }
    log_divert(NULL, NULL);
}

/* Of ours, which are dismissed and stay: first they are killed. */
static void processes_that_stay(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    char expected[64];
    int status = 0;
    (void)state;
    made_init(&m, 2);
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    m.job.state = JOB_DRAINING;
    m.agents[0].pid = getpid(); /* of a process that is gone */
    m.agents[0].reaped = true;
    m.agents[1].pid = fork();
    assert_true(m.agents[1].pid >= 0);
    if (m.agents[1].pid == 0) {
        for (;;)
            pause();
    }
    pass(&m, m.job.overdue.clock);
    is_said("look");
    assert_int_equal(waitpid(m.agents[1].pid, &status, 0), m.agents[1].pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(m.job.local.orphans);
    m.job.local.orphans = false;
    pass(&m, m.job.overdue.clock);
    snprintf(expected, sizeof expected, "%s; look", job_event_name(JOB_OVERDUE));
    is_said(expected);
    made_done(&m);
}

/* ---- agents that say nothing ---- */

static void agents_that_are_silent(void **state)
{
    static const struct {
        bool pods;
        int64_t agent_timeout_ms, silent_ms;
        enum agent_phase phase;
        bool connected, lost;
        int64_t limit_s;
    } rows[] = {
        {false, 0, 29999, AGENT_PREPARED, true, false, 0},
        {false, 0, 30000, AGENT_PREPARED, true, true, 30},
        {true, 0, 11999, AGENT_PREPARED, true, false, 0},
        {true, 0, 12000, AGENT_PREPARED, true, true, 12},
        {true, 3500, 3499, AGENT_GREETED, true, false, 0},
        {true, 3500, 3500, AGENT_GREETED, true, true, 3},
        {true, 0, 12000, AGENT_DONE, true, false, 0},
        {true, 0, 12000, AGENT_CONNECTING, false, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct made m;
        struct drarun_error err = {0};
        char expected[256];
        made_init(&m, 2);
        m.request.pods = rows[i].pods ? &m.pods : NULL;
        m.request.agent_timeout_ms = rows[i].agent_timeout_ms;
        assert_int_equal(job_make_clocks(&m.job, &err), 0);
        m.agents[0].heard_ms = calls.now_ms;
        m.agents[1].heard_ms = calls.now_ms - rows[i].silent_ms;
        for (int a = 0; a < 2; a++) {
            m.agents[a].phase = rows[i].phase;
            m.agents[a].channel = rows[i].connected ? (struct channel *)&m : NULL;
        }
        snprintf(expected, sizeof expected,
                 "lose 1 %d %d no message from it for %" PRId64 " s; ping; look",
                 DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, rows[i].limit_s);
        pass(&m, m.job.liveness.ping_clock);
        is_said(rows[i].lost ? expected : "ping; look");
        made_done(&m);
    }
}

/* The time in which we were late does not count as an agent's silence. */
static void silence_while_we_were_late(void **state)
{
    struct made m;
    struct drarun_error err = {0};
    (void)state;
    made_init(&m, 2);
    m.request.pods = &m.pods;
    assert_int_equal(job_make_clocks(&m.job, &err), 0);
    m.agents[0].heard_ms = calls.now_ms - 11000;
    m.agents[1].heard_ms = calls.now_ms;
    calls.now_ms += 2900; /* 900 ms late */
    for (int a = 0; a < 2; a++) {
        m.agents[a].phase = AGENT_PREPARED;
        m.agents[a].channel = (struct channel *)&m;
    }
    pass(&m, m.job.liveness.ping_clock);
    assert_int_equal(m.agents[0].heard_ms, 5000000 - 11000 + 900);
    assert_int_equal(m.agents[1].heard_ms, 5000000 + 900);
    assert_int_equal(m.job.liveness.ticked_ms, 5002900);
    assert_non_null(strstr(calls.text.data, "lose 0"));
    assert_null(strstr(calls.text.data, "lose 1"));
    made_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_run_from_the_beginning),
        cmocka_unit_test(agents_that_are_awaited),
        cmocka_unit_test(agents_that_do_not_answer_in_time),
        cmocka_unit_test(pods_that_do_not_answer_in_time),
        cmocka_unit_test(a_wait_gives_its_reason_soon),
        cmocka_unit_test(jobs_that_take_too_long),
        cmocka_unit_test(ranks_are_warned_of_the_timeout),
        cmocka_unit_test(ranks_that_had_their_grace),
        cmocka_unit_test(ends_that_take_too_long),
        cmocka_unit_test(processes_that_stay),
        cmocka_unit_test(agents_that_are_silent),
        cmocka_unit_test(silence_while_we_were_late),
    };
    log_setup("t", LOG_NORMAL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
