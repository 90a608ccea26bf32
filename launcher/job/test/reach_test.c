/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between the agents and the check of whether NICs reach each other. What it calls is the
 * test's: the connections, the clock and the kernel's random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "jobs/preflight/fabric.h"
#include "launcher/job/private.h"
#include "launcher/job/reach.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define WORKERS 18
#define LINES_MAX 128
#define LIMIT "DRARUN_REACH_MS"

/* ---- what it calls ---- */

static struct calls {
    struct {
        uint32_t worker;
        json_t *line;
    } sent[LINES_MAX];
    size_t sent_count;
    struct buf log;
    const struct agent *agents;
    struct event *started, *stopped;
    unsigned int stops;
    int64_t now_ms, after_ms;
    bool no_random, no_event;
} calls;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret_now)
{
    (void)id;
    *ret_now =
        (struct timespec){.tv_sec = calls.now_ms / 1000, .tv_nsec = calls.now_ms % 1000 * 1000000};
    return 0;
}

ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags)
{
    (void)flags;
    errno = EIO;
    if (calls.no_random)
        return -1;
    memset(data, 7, size);
    return (ssize_t)size;
}

int __wrap_event_add(struct event *event, const struct timeval *after);
int __wrap_event_add(struct event *event, const struct timeval *after)
{
    calls.started = event;
    calls.after_ms = after->tv_sec * 1000 + after->tv_usec / 1000;
    return calls.no_event ? -1 : 0;
}

int __wrap_event_del(struct event *event);
int __wrap_event_del(struct event *event)
{
    calls.stopped = event;
    calls.stops++;
    return 0;
}

void __wrap_agent_send(struct agent *agent, const Drarun__Wire__Envelope *message);
void __wrap_agent_send(struct agent *agent, const Drarun__Wire__Envelope *message)
{
    assert_int_equal(message->body_case, DRARUN__WIRE__ENVELOPE__BODY_REACH);
    assert_false(message->reach->over);
    assert_true(calls.sent_count < LINES_MAX);
    calls.sent[calls.sent_count].worker = (uint32_t)(agent - calls.agents);
    calls.sent[calls.sent_count].line = json_loads(message->reach->line, 0, NULL);
    assert_non_null(calls.sent[calls.sent_count++].line);
}

static void on_log(void *arg, const struct log_line *line)
{
    (void)arg;
    buf_add(&calls.log, line->text + line->prefix, line->length - line->prefix);
}

/* ---- a job ---- */

/* Of workers whose one NIC is InfiniBand, which needs no address. */
struct rig {
    struct plan_nic nic;
    struct profile profile;
    struct plan_worker workers[WORKERS];
    struct plan plans[2];
    uint32_t plan_count;
    struct spec_role roles[2];
    struct job_spec spec;
    const char *pods[WORKERS], *nodes[WORKERS];
    char names[WORKERS][16];
    struct request_pods request_pods;
    struct job_request request;
    struct agent agents[WORKERS];
    struct job job;
};

static char clock_of_reach; /* stands in for the event, which nobody looks into */

static void set_up(struct rig *m, uint32_t workers)
{
    *m = (struct rig){.nic = {.found = {.ibdev = "mlx5_0", .link_layer = "InfiniBand"}},
                      .profile = {.data = PROFILE_RDMA},
                      .plan_count = 1,
                      .spec = {.network = SPEC_NETWORK_RDMA, .role_count = 1}};
    for (uint32_t w = 0; w < workers; w++) {
        m->workers[w] =
            (struct plan_worker){.nics = &m->nic, .nic_count = 1, .profile = &m->profile};
        snprintf(m->names[w], sizeof m->names[w], "t-w-%u", w);
        m->pods[w] = m->names[w];
        m->agents[w] = (struct agent){.job = &m->job, .index = w, .reaches = true};
    }
    m->nodes[0] = "node-a";
    m->plans[0] = (struct plan){.workers = m->workers, .worker_count = workers};
    m->spec.roles = m->roles;
    m->request_pods = (struct request_pods){.open_nics = true, .pods = m->pods, .nodes = m->nodes};
    m->request.pods = &m->request_pods;
    m->job.request = &m->request;
    m->job.agents = m->agents;
    m->job.count = workers;
    m->job.preflight.reach_clock = (struct event *)(void *)&clock_of_reach;
    calls = (struct calls){.agents = m->agents, .now_ms = 5000};
    unsetenv(LIMIT);
    log_setup("drarun", LOG_VERBOSE);
    log_divert(on_log, NULL);
}

static void forget(void)
{
    for (size_t i = 0; i < calls.sent_count; i++)
        json_decref(calls.sent[i].line);
    calls.sent_count = 0;
}

static void tear_down(struct rig *m)
{
    log_divert(NULL, NULL);
    forget();
    buf_done(&calls.log);
    job_reach_free(m->job.preflight.reach);
    fabric_free(m->job.preflight.fabric);
    unsetenv(LIMIT);
}

static int use(struct rig *m, struct drarun_error *err)
{
    return job_use_reach(&m->job, &m->spec, m->plans, m->plan_count, err);
}

static struct job_reach *begin(struct rig *m)
{
    struct drarun_error err = {0};
    if (use(m, &err) < 0)
        fail_msg("%s", err.text);
    assert_non_null(m->job.preflight.reach);
    assert_int_equal(calls.sent_count, 0);
    assert_false(job_reach_over(m->job.preflight.reach));
    assert_int_equal(job_reach_begin(m->job.preflight.reach, &err), 0);
    return m->job.preflight.reach;
}

static int take_line(struct job_reach *reach, uint32_t worker, const char *line,
                     struct drarun_error *err)
{
    Drarun__Wire__Reach message = DRARUN__WIRE__REACH__INIT;
    message.line = unconst(line);
    return job_reach_take(reach, worker, &message, err);
}

static void take(struct job_reach *reach, uint32_t worker, const char *line)
{
    struct drarun_error err = {0};
    if (take_line(reach, worker, line, &err) < 0)
        fail_msg("worker %u, %s: %s", worker, line, err.text);
}

static void take_end(struct job_reach *reach, uint32_t worker, const char *why)
{
    struct drarun_error err = {0};
    Drarun__Wire__Reach message = DRARUN__WIRE__REACH__INIT;
    message.over = true;
    message.why = unconst(why);
    assert_int_equal(job_reach_take(reach, worker, &message, &err), 0);
}

static void opens(struct job_reach *reach, uint32_t worker)
{
    char line[96];
    snprintf(line, sizeof line, "{\"rail\": 0, \"in\": {\"qp\": %u}, \"out\": {\"qp\": %u}}",
             10 * worker, 10 * worker + 1);
    take(reach, worker, line);
}

/* The last line of that kind for a worker. */
static const json_t *sent_to(uint32_t worker, const char *what)
{
    for (size_t i = calls.sent_count; i > 0; i--)
        if (calls.sent[i - 1].worker == worker && json_object_get(calls.sent[i - 1].line, what))
            return calls.sent[i - 1].line;
    fail_msg("worker %u was sent no \"%s\"", worker, what);
    return NULL;
}

static void check_sent(uint32_t worker, const char *what, int qp)
{
    const json_t *line = sent_to(worker, what);
    assert_int_equal(json_integer_value(json_object_get(line, "rail")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(line, what), "qp")), qp);
    assert_true(json_is_integer(json_object_get(line, "seed")));
}

static void check_log(const char *expected)
{
    assert_string_equal(calls.log.data ? calls.log.data : "", expected);
}

/* job_fabric's reach, which must be there. */
static json_t *told_reach(struct rig *m)
{
    CLEANUP(json_decrefp) json_t *fabric = job_fabric(&m->job);
    assert_true(json_is_object(json_object_get(fabric, "reach")));
    return json_incref(json_object_get(fabric, "reach"));
}

/* ---- whether it is done at all ---- */

static void needed(void **state)
{
    enum change {
        NOTHING,
        NO_CLUSTER,
        NICS_STAY_SHUT,
        ONE_WORKER,
        A_WORKER_UNPLANNED,
        NO_NIC,
        NO_PROFILE,
        NO_RDMA,
        ONE_NIC_OF_ALL,
        TWO_ROLES,
        RAIL_IN_ONE_ROLE,
        RAIL_NOWHERE,
    };
    static const struct {
        enum change change;
        bool reach;
    } rows[] = {
        {NOTHING, true},     {NO_CLUSTER, false},   {NICS_STAY_SHUT, false},
        {ONE_WORKER, false}, {NO_NIC, false},       {A_WORKER_UNPLANNED, false},
        {NO_PROFILE, false}, {NO_RDMA, false},      {ONE_NIC_OF_ALL, true},
        {TWO_ROLES, true},   {RAIL_NOWHERE, false}, {RAIL_IN_ONE_ROLE, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum change change = rows[i].change;
        struct drarun_error err = {0};
        struct rig m;
        set_up(&m, change == ONE_WORKER ? 1 : 2);
        if (change == NO_CLUSTER)
            m.request.pods = NULL;
        m.request_pods.open_nics = change != NICS_STAY_SHUT;
        if (change == A_WORKER_UNPLANNED)
            m.plans[0].worker_count = 1;
        for (uint32_t w = 0; w < 2; w++) {
            if (change == NO_NIC || change == RAIL_NOWHERE || (change == ONE_NIC_OF_ALL && w == 0))
                m.workers[w].nic_count = 0;
            if (change == NO_PROFILE)
                m.workers[w].profile = NULL;
        }
        if (change == NO_RDMA)
            m.profile.data = PROFILE_NETDEV;
        if (change == TWO_ROLES || change == RAIL_IN_ONE_ROLE || change == RAIL_NOWHERE) {
            m.plan_count = m.spec.role_count = 2;
            m.plans[0].worker_count = 1;
            m.plans[1] = (struct plan){.workers = &m.workers[1], .worker_count = 1};
            m.roles[1].first = 1;
        }
        if (change == RAIL_IN_ONE_ROLE)
            m.workers[1].nic_count = 0;
        assert_int_equal(use(&m, &err), 0);
        if (rows[i].reach != (m.job.preflight.reach != NULL))
            fail_msg("row %zu", i);
        tear_down(&m);
    }
}

/* DRARUN_REACH_MS, or 2 s: the deadline here, and what the processes are told. */
static void limit(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* 0: refused */
        int code;
        const char *why;
    } rows[] = {
        {NULL, 2000, 0, NULL},
        {"1", 1, 0, NULL},
        {"600000", 600000, 0, NULL},
        {"0", 0, ERANGE, LIMIT ": expected 1 to 600000, got 0"},
        {"600001", 0, ERANGE, LIMIT ": expected 1 to 600000, got 600001"},
        {"2s", 0, EINVAL, LIMIT ": expected a whole number from 1 to 600000, got \"2s\""},
        {"", 0, EINVAL, LIMIT ": expected a whole number from 1 to 600000, got \"\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        struct rig m;
        set_up(&m, 2);
        if (rows[i].text)
            setenv(LIMIT, rows[i].text, 1);
        if (rows[i].ms) {
            begin(&m);
            assert_ptr_equal(calls.started, m.job.preflight.reach_clock);
            assert_int_equal(calls.after_ms, rows[i].ms);
            assert_int_equal(calls.sent_count, 2);
            for (uint32_t w = 0; w < 2; w++) {
                CLEANUP(json_decrefp)
                json_t *expected =
                    json_pack("{s:[{s:s, s:i, s:i}], s:I}", "rails", "device", "mlx5_0", "port", 1,
                              "gid", 0, "limitMs", (json_int_t)rows[i].ms);
                assert_int_equal(calls.sent[w].worker, w);
                assert_true(json_equal(calls.sent[w].line, expected));
            }
        } else {
            assert_int_equal(use(&m, &err), -rows[i].code);
            assert_int_equal(err.kind, DRARUN_ERR_USAGE);
            assert_string_equal(err.text, rows[i].why);
            assert_null(m.job.preflight.reach);
        }
        tear_down(&m);
    }
}

static void system_failures(void **state)
{
    struct drarun_error err = {0};
    struct rig m;
    (void)state;
    set_up(&m, 2);
    calls.no_random = true;
    assert_int_equal(use(&m, &err), -EIO);
    assert_string_equal(err.text, "getrandom: Input/output error");
    assert_null(m.job.preflight.reach);
    calls.no_random = false;
    assert_int_equal(use(&m, &err), 0);
    calls.no_event = true;
    assert_int_equal(job_reach_begin(m.job.preflight.reach, &err), -ENOMEM);
    assert_string_equal(err.text, "out of memory");
    tear_down(&m);
}

/* ---- from the first line to the judgement ---- */

static void all_reached(void **state)
{
    struct drarun_error err = {0};
    struct rig m;
    (void)state;
    set_up(&m, 2);
    assert_null(job_fabric(&m.job));
    struct job_reach *reach = begin(&m);
    job_use_fabric_take(&m.job, fabric_new(&m.plans[0]));
    job_use_fabric_take(&m.job, fabric_new(&m.plans[0])); /* in place of the first */
    forget();
    opens(reach, 0);
    assert_int_equal(calls.sent_count, 0);
    opens(reach, 1);
    assert_int_equal(calls.sent_count, 2); /* the receivers, each with its writer's address */
    check_sent(1, "accept", 1);
    check_sent(0, "accept", 11);
    for (uint32_t w = 0; w < 2; w++) {
        take(reach, 1 - w, "{\"rail\": 0, \"accepted\": true}");
        assert_int_equal(calls.sent_count, 3 + w);
        check_sent(w, "write", w == 0 ? 10 : 0);
        assert_true(json_equal(json_object_get(sent_to(w, "write"), "seed"),
                               json_object_get(sent_to(1 - w, "accept"), "seed")));
        take(reach, w, "{\"rail\": 0, \"wrote\": true}");
        assert_false(job_reach_over(reach));
        CLEANUP(json_decrefp) json_t *early = job_fabric(&m.job);
        assert_true(json_is_null(json_object_get(early, "reach")));
        assert_int_equal(calls.stops, 0);
        calls.now_ms = 5037 - (w == 0);
        take(reach, 1 - w, "{\"rail\": 0, \"saw\": true}");
    }
    assert_true(job_reach_over(reach));
    assert_ptr_equal(calls.stopped, m.job.preflight.reach_clock);
    calls.now_ms = 9000; /* what comes later counts no more */
    take_end(reach, 0, "");
    job_reach_expire(reach);
    assert_int_equal(calls.stops, 1);
    assert_int_equal(job_reach_judge(reach, &err), 0);
    check_log("the NICs of 2 workers reach each other: 2 pairs, 37 ms\n");
    CLEANUP(json_decrefp) json_t *told = told_reach(&m);
    CLEANUP(json_decrefp)
    json_t *expected = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[s, s], s:[]}", "ms", 37,
                                 "workers", 2, "rails", 1, "pairs", 2, "reached", 2, "failed", 0,
                                 "unknown", 0, "matrix", ".", ".", "broken");
    assert_true(json_equal(told, expected));
    tear_down(&m);
}

/* The next worker is the next in the order of ranks. */
static void rank_order(void **state)
{
    static const uint32_t order[] = {2, 0, 1};
    struct rig m;
    (void)state;
    set_up(&m, 3);
    m.request_pods.rank_order = order;
    struct job_reach *reach = begin(&m);
    forget();
    opens(reach, 2);
    opens(reach, 0);
    assert_int_equal(calls.sent_count, 1);
    check_sent(0, "accept", 21);
    tear_down(&m);
}

/* Workers of another role that have no such rail are passed over, and a role's workers begin with
 * its first. */
static void roles(void **state)
{
    struct rig m;
    (void)state;
    set_up(&m, 3);
    m.plan_count = m.spec.role_count = 2;
    m.plans[0].worker_count = 1;
    m.plans[1] = (struct plan){.workers = &m.workers[1], .worker_count = 2};
    m.roles[1].first = 1;
    m.workers[1].nic_count = 0;
    struct job_reach *reach = begin(&m);
    assert_int_equal(calls.sent_count, 2);
    assert_int_equal(calls.sent[0].worker, 0);
    assert_int_equal(calls.sent[1].worker, 2);
    forget();
    opens(reach, 0);
    opens(reach, 2);
    assert_int_equal(calls.sent_count, 2);
    check_sent(2, "accept", 1);
    check_sent(0, "accept", 21);
    tear_down(&m);
}

static void lines_not_due(void **state)
{
    struct drarun_error err = {0};
    struct rig m;
    (void)state;
    set_up(&m, 2);
    assert_int_equal(use(&m, &err), 0);
    assert_int_equal(take_line(m.job.preflight.reach, 0, "{\"rail\": 0, \"saw\": true}", &err),
                     -EPROTO);
    assert_string_equal(err.text, "lines of NICs that were not asked for");
    assert_int_equal(job_reach_begin(m.job.preflight.reach, &err), 0);
    assert_int_equal(take_line(m.job.preflight.reach, 0, "{\"rail\": 1, \"saw\": true}", &err),
                     -EPROTO);
    assert_string_equal(err.text, "its process for NICs reports on a rail that it was not given: "
                                  "{\"rail\": 1, \"saw\": true}");
    assert_int_equal(take_line(m.job.preflight.reach, 0, "{\"rail\": 0, \"saw\": true}", &err),
                     -EPROTO);
    assert_string_equal(err.text, "its process for NICs reports a step that is not due: "
                                  "{\"rail\": 0, \"saw\": true}");
    assert_false(job_reach_over(m.job.preflight.reach));
    tear_down(&m);
}

/* Each pair of a worker that says nothing is unknown: a warning, which names it and its reason. */
static void unknown(void **state)
{
#define TO_1                                                                                       \
    "worker 0 (t-w-0 on node-a): it is not known whether its NIC mlx5_0 reaches worker 1 (t-w-1) " \
    "mlx5_0: "
#define TO_0                                                                                       \
    "worker 1 (t-w-1): it is not known whether its NIC mlx5_0 reaches worker 0 (t-w-0 on node-a) " \
    "mlx5_0: "
#define CURE ": preflight: {fabric: open} in the job leaves it out\n"
#define BOTH(why) TO_1 why CURE TO_0 why CURE
    enum how { OLD_AGENT, ENDED, ENDED_SO, EXPIRED };
    static const struct {
        enum how how;
        size_t sent;
        const char *log;
    } rows[] = {
        {OLD_AGENT, 0, BOTH("worker 1: its agent is of an older release, which cannot test NICs")},
        {ENDED, 2, BOTH("worker 1: its process ended")},
        {ENDED_SO, 2, BOTH("worker 1: killed by signal 9")},
        {EXPIRED, 2, BOTH("after 2 s worker 1 had not opened mlx5_0")},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        struct rig m;
        set_up(&m, 2);
        m.agents[1].reaches = rows[i].how != OLD_AGENT;
        struct job_reach *reach = begin(&m);
        job_use_fabric_take(&m.job, fabric_new(&m.plans[0]));
        assert_int_equal(calls.sent_count, rows[i].sent);
        assert_int_equal(job_reach_over(reach), rows[i].how == OLD_AGENT);
        if (rows[i].how == ENDED || rows[i].how == ENDED_SO)
            take_end(reach, 1, rows[i].how == ENDED ? "" : "killed by signal 9");
        if (rows[i].how == EXPIRED) {
            opens(reach, 0);
            calls.now_ms += 2000;
            job_reach_expire(reach);
        }
        assert_true(job_reach_over(reach));
        assert_int_equal(calls.stops, 1);
        assert_int_equal(job_reach_judge(reach, &err), 0);
        check_log(rows[i].log);
        CLEANUP(json_decrefp) json_t *told = told_reach(&m);
        assert_int_equal(json_integer_value(json_object_get(told, "unknown")), 2);
        assert_int_equal(json_integer_value(json_object_get(told, "ms")),
                         rows[i].how == EXPIRED ? 2000 : 0);
        tear_down(&m);
    }
}

/* A refusal is the error and is not logged, too; with network: any it is a warning. */
static void failed(void **state)
{
#define LOST                                                                                       \
    "worker 0 (t-w-0 on node-a): its NIC mlx5_0 -> worker 1 (t-w-1) mlx5_0: the receiver refused " \
    "the write: remote access error: look at the counters of both NICs and of the switch ports "   \
    "between them"
#define CUT TO_0 "worker 1: its process ended" CURE
    (void)state;
    for (int any = 0; any < 2; any++) {
        struct drarun_error err = {0};
        struct rig m;
        set_up(&m, 2);
        m.spec.network = any ? SPEC_NETWORK_ANY : SPEC_NETWORK_RDMA;
        struct job_reach *reach = begin(&m);
        opens(reach, 0);
        opens(reach, 1);
        take(reach, 1, "{\"rail\": 0, \"accepted\": true}");
        take(reach, 0,
             "{\"rail\": 0, \"wrote\": false, \"fault\": \"access\", \"code\": 10, \"why\": "
             "\"remote access error\"}");
        take_end(reach, 1, "");
        assert_true(job_reach_over(reach));
        assert_int_equal(job_reach_judge(reach, &err), any ? 0 : -EPERM);
        if (!any) {
            assert_int_equal(err.kind, DRARUN_ERR_PREFLIGHT);
            assert_string_equal(err.text, LOST);
        }
        check_log(any ? LOST "\n" CUT : CUT);
        tear_down(&m);
    }
}

/* The first 16 pairs are logged; the report has all. */
static void many_pairs(void **state)
{
    static const struct {
        uint32_t workers;
        size_t lines;
        const char *end;
    } rows[] = {{16, 16, CURE},
                {17, 17, "\nand 1 more pair of NICs\n"},
                {18, 17, "\nand 2 more pairs of NICs\n"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct drarun_error err = {0};
        struct rig m;
        size_t lines = 0;
        set_up(&m, rows[i].workers);
        struct job_reach *reach = begin(&m);
        job_reach_expire(reach);
        assert_int_equal(job_reach_judge(reach, &err), 0);
        for (const char *at = calls.log.data; (at = strchr(at, '\n')); at++)
            lines++;
        assert_int_equal(lines, rows[i].lines);
        assert_true(calls.log.len > strlen(rows[i].end));
        assert_string_equal(calls.log.data + calls.log.len - strlen(rows[i].end), rows[i].end);
        tear_down(&m);
    }
}

static void free_nothing(void **state)
{
    (void)state;
    job_reach_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needed),          cmocka_unit_test(limit),
        cmocka_unit_test(system_failures), cmocka_unit_test(all_reached),
        cmocka_unit_test(rank_order),      cmocka_unit_test(roles),
        cmocka_unit_test(lines_not_due),   cmocka_unit_test(unknown),
        cmocka_unit_test(failed),          cmocka_unit_test(many_pairs),
        cmocka_unit_test(free_nothing),
    };
    return cmocka_run_group_tests_name("launcher/job/reach", tests, NULL, NULL);
}
