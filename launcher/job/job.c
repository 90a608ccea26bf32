/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/preflight/fabric.h"
#include "launcher/streams/framed.h"
#include "launcher/job/private.h"
#include "launcher/programs/programs.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/proctree.h"

#define PING_EVERY_MS 5000
#define PING_LOST_MS 30000
#define STATUS_AFTER_MS 2000
#define HEARSAY_MS 250
/* After an exit or abort, in which the end that it may be the echo of can still become known. */
#define SETTLE_MS 100
/* The longest wait after that for every agent to report the ranks that have ended: one may hang. */
#define SETTLE_ANSWERS_MS 3000
/* After the loss of a worker, until the API tells how its pod ended. */
#define SETTLE_POD_MS 3000
/* A node that is gone says nothing, and its pods stay for minutes. It is looked for with each ping:
 * both together are the longest that a loss goes unnoticed, which is to be 15 s with the end. */
#define PING_PODS_EVERY_MS 2000
#define PING_PODS_LOST_MS 12000
#define NOTICE_MS 1500   /* until people hear why an agent is not reached */
#define REACH_MS 10000   /* until agents started by hand are reached */
#define PREPARE_MS 30000 /* until an agent that was reached is prepared */
#define FILES_MIN 24
#define AWAITED_SHOWN 8       /* names after the first */
#define PREPARE_WORKER_MS 100 /* and this for each: on one machine they take turns */

/* ---- states ---- */

void job_event(struct job *job, enum job_event event)
{
    if (job->state == JOB_ENDED)
        return;
    const struct job_step *step = job_step_find(job->state, event);
    status_line_clear(job->status);
    if (!step) {
        /* our own bug; ending the job is better than going on in a state nobody thought of */
        log_error("internal error: \"%s\" while %s", job_event_name(event),
                  job_state_name(job->state));
        event_base_loopbreak(job->base);
        return;
    }
    log_verbose("job %s: %s -> %s (%s)", job->uid, job_state_name(job->state),
                job_state_name(step->next), job_event_name(event));
    if (step->next != job->state)
        job->state_since_ms = clock_ms();
    job->state = step->next;
    if (job->state >= JOB_RUNNING)
        job_say_notes(job);
    job_act(job, step->action);
}

/* The cluster will say how a pod has ended. */
static bool expects_words(const struct job *job)
{
    const struct request_pods *pods = job->request->pods;
    return pods && !pods->entry && !pods->kept;
}

/* A worker has gone, or is about to, and the cluster has not said why. */
static bool awaits_pod(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        if ((agent->linger || agent->leaves) && !agent->pod_told)
            return expects_words(job) && cause_may_change(job->cause);
    }
    return false;
}

/* A rank's end and its echoes reach us by different agents, in any order: an agent that runs late
 * may hold the end that all began with. */
static void ask_agents(struct job *job)
{
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    ping.ask = ++job->settle_ask;
    agents_send(job, &envelope);
}

static bool agents_answered(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        if (agent->channel && agent->phase < AGENT_DONE && agent->settled != job->settle_ask)
            return false;
    }
    return true;
}

static bool settle_for(struct job *job, enum settling what, int64_t limit_ms)
{
    if (job_start_clock(job->settle_clock, limit_ms) < 0)
        return false;
    job->settling = what;
    return true;
}

/* The present stage is over; the next one that has something to wait for begins. */
static void settle_on(struct job *job)
{
    enum settling before = job->settling;
    job->settling = SETTLE_NOTHING;
    event_del(job->settle_clock);
    if (before == SETTLE_MOMENT && !agents_answered(job) &&
        settle_for(job, SETTLE_ANSWERS, SETTLE_ANSWERS_MS))
        return;
    if (before == SETTLE_POD || !awaits_pod(job) || !settle_for(job, SETTLE_POD, SETTLE_POD_MS))
        cause_settle(job->cause);
    if (job->state < JOB_ENDING)
        job_event(job, JOB_CAUSE);
}

static void on_settle_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->settling == SETTLE_ANSWERS)
        log_verbose("not every agent says within %d ms that it has told all ends",
                    SETTLE_ANSWERS_MS);
    settle_on(job);
    job_look(job);
}

void job_caused(struct job *job, bool first)
{
    if (!first)
        return;
    if (cause_may_change(job->cause) && settle_for(job, SETTLE_MOMENT, SETTLE_MS)) {
        ask_agents(job);
        return;
    }
    if (job->state != JOB_ENDING)
        job_event(job, JOB_CAUSE);
}

void job_fail(struct job *job, const struct drarun_error *err)
{
    bool first = cause_failure(job->cause, err);
    if (!first)
        log_verbose("%s", err->text);
    job_caused(job, first);
}

void job_fail_worker(struct agent *agent, const struct drarun_error *err)
{
    struct job *job = agent->job;
    if (!job->request->pods)
        job_fail(job, err);
    else
        job_caused(job, cause_worker_failure(job->cause, agent->index,
                                             job->request->pods->nodes[agent->index], err));
}

void job_leave(struct job *job)
{
    if (job->state >= JOB_ENDING)
        return;
    job->leaving = true;
    job->signo = SIGTERM;
    job_event(job, JOB_INTERRUPT);
}

void job_hear(struct job *job, const struct drarun_error *err)
{
    if (job->hearsay.code)
        return;
    job->hearsay = *err;
    if (job_start_clock(job->hearsay_clock, HEARSAY_MS) < 0)
        job_fail(job, err);
}

static void believe(struct job *job)
{
    struct drarun_error err = job->hearsay;
    job->hearsay.code = 0;
    event_del(job->hearsay_clock);
    if (err.code)
        job_fail(job, &err);
}

/* Some agent's connection has ended, and it will be known how. */
static bool awaits_agent(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (job->agents[i].linger)
            return true;
    return false;
}

static void on_hearsay_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (awaits_agent(job) && job_start_clock(job->hearsay_clock, HEARSAY_MS) == 0)
        return;
    believe(job);
    job_look(job);
}

/* The ranks have ended, and what the cluster may still say would be the cause. */
static bool awaits_words(const struct job *job)
{
    return job->settling != SETTLE_NOTHING && awaits_pod(job);
}

/* Agents that stay for more ranks need not any more: all have ended. */
static void release(struct job *job)
{
    Drarun__Wire__Release message = DRARUN__WIRE__RELEASE__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(RELEASE, release, &message);
    job->released = true;
    agents_send(job, &envelope);
}

static int use_checked(const struct job *job, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    return pods && pods->checked ? pods->checked(pods->arg, job, err) : 0;
}

/* Once: whatever comes of it, it is checked no more. */
static void look_checked(struct job *job)
{
    struct drarun_error refused = {0};
    if (job->reach && !job_reach_over(job->reach))
        return;
    job->checked = false;
    if ((job->reach && job_reach_judge(job->reach, &refused) < 0) || use_checked(job, &refused) < 0)
        job_fail(job, &refused);
    else
        job_event(job, JOB_CHECKED);
}

void job_look(struct job *job)
{
    if (job->settling == SETTLE_ANSWERS && agents_answered(job))
        settle_on(job);
    if (job->spawn)
        job_spawn_look(job->spawn);
    if (job->hold && !job->released && job->state == JOB_RUNNING &&
        cause_ended(job->cause) == job->map.ranks)
        release(job);
    if (job->state < JOB_DRAINING && job->gone == job->count)
        believe(job);
    if (job->state < JOB_DRAINING && job->gone == job->count)
        job_event(job, JOB_GONE);
    if (job->state == JOB_CONNECTING && job->greeted == job->count)
        job_event(job, JOB_GREETED);
    if (job->state == JOB_CHECKING && job->checked)
        look_checked(job);
    if (job->state == JOB_PREPARING && job->prepared == job->count)
        job_event(job, JOB_READY);
    if (job->state == JOB_DRAINING && output_idle(job->output) && agents_reaped(job) &&
        !agents_sweep(job) && !awaits_words(job))
        job_event(job, JOB_DRAINED);
}

/* ---- clocks ---- */

int job_start_clock(struct event *clock, int64_t ms)
{
    struct timeval after = timeval_from_ms(ms);
    return event_add(clock, &after);
}

int64_t job_start_limit_ms(const struct job *job)
{
    if (job->request->start_timeout_ms > 0)
        return job->request->start_timeout_ms;
    if (request_is_elsewhere(job->request) && job->state == JOB_CONNECTING)
        return REACH_MS;
    return PREPARE_MS + (int64_t)job->count * PREPARE_WORKER_MS;
}

static bool is_awaited(const struct job *job, const struct agent *agent)
{
    return job->state == JOB_CONNECTING ? agent->phase < AGENT_GREETED
                                        : agent->phase < AGENT_PREPARED;
}

/* Says in text which agent is awaited and for what; returns how many are. */
static uint32_t describe_awaited(const struct job *job, struct buf *text)
{
    const struct agent *first = NULL;
    struct buf others = BUF_INIT;
    uint32_t awaited = 0;
    char name[128];
    for (uint32_t i = 0; i < job->count; i++) {
        if (!is_awaited(job, &job->agents[i]))
            continue;
        if (!first)
            first = &job->agents[i];
        else if (awaited <= AWAITED_SHOWN) {
            agent_name(&job->agents[i], name, sizeof name);
            buf_printf(&others, "%s%s", others.len ? ", " : "", name);
        }
        awaited++;
    }
    if (!first)
        return 0;
    const char *why = job->remote ? remote_api()->why(job->remote, first->index) : "";
    agent_name(first, name, sizeof name);
    buf_printf(text, "%s %s%s%s", name,
               first->phase == AGENT_CONNECTING ? "is not reached"
               : first->phase == AGENT_GREETING ? "says no hello"
                                                : "is not prepared",
               why[0] ? ": " : "", why);
    if (awaited > 1)
        buf_printf(text, " (nor %s", others.data ? others.data : "others");
    if (awaited > AWAITED_SHOWN + 1)
        buf_printf(text, " and %u more", awaited - 1 - AWAITED_SHOWN);
    if (awaited > 1)
        buf_add_str(text, ")");
    buf_done(&others);
    return awaited;
}

static void on_start_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    (void)fd, (void)what;
    if (job->state > JOB_PREPARING)
        return;
    bool refused = job->state == JOB_CONNECTING && job->request->agents;
    describe_awaited(job, &text);
    const struct request_pods *pods = job->request->pods;
    int64_t limit = pods && pods->all_tries_ms ? pods->all_tries_ms : job_start_limit_ms(job);
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, "%s after %" PRId64 " s (%s)%s",
               text.data ? text.data : "an agent is awaited", limit / 1000, "--start-timeout",
               refused ? "; is drarun-worker --listen running there?" : "");
    buf_done(&text);
    job_fail(job, &err);
    job_look(job);
}

/* The errno with which an agent could not be reached so far; 0: none is out of reach. */
static int reach_code(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        int code =
            job->agents[i].phase == AGENT_CONNECTING ? remote_api()->code(job->remote, i) : 0;
        if (code != 0)
            return code;
    }
    return 0;
}

/* A wait gives its reason within two seconds. Our own agents listen on the loopback: when that is
 * down, nothing changes by waiting. Of pods the launcher of the cluster gives the reason. */
static void on_notice_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    struct drarun_error err = {0};
    struct buf text = BUF_INIT;
    (void)fd, (void)what;
    int code = job->state == JOB_CONNECTING ? reach_code(job) : 0;
    if (code == 0)
        return;
    if (!job->request->agents && code == ENETUNREACH) {
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENETUNREACH,
                   "the agents of this machine are not reached at 127.0.0.1: the loopback "
                   "interface is down; ip link set lo up");
        job_fail(job, &err);
        job_look(job);
        return;
    }
    if (describe_awaited(job, &text) > 0 && text.data)
        log_note("waiting: %s", text.data);
    buf_done(&text);
}

static void on_notes_clock(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    job_say_notes(arg);
}

static void fail_total(struct job *job)
{
    struct drarun_error err = {0};
    error_kind(&err, DRARUN_ERR_TIMEOUT, ETIMEDOUT,
               "the job did not end within %" PRId64 " s (spec.timeouts.total)",
               job->request->pods->total_ms / 1000);
    job_fail(job, &err);
}

static void on_limit_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->request->pods && !job->request->pods->kept)
        fail_total(job);
    else
        job_caused(job, cause_timeout(job->cause, job->request->timeout_ms));
    if (job->state == JOB_DRAINING)
        job_event(job, JOB_FINAL);
    job_look(job);
}

static void on_grace_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->state == JOB_ENDING)
        job_event(job, JOB_GRACE_OVER);
    job_look(job);
}

static int64_t ping_every_ms(const struct job *job)
{
    return job->request->pods ? PING_PODS_EVERY_MS : PING_EVERY_MS;
}

/* The cluster takes most of a minute to say that a node does not answer. */
void agent_lose_silent(struct agent *agent, const struct drarun_error *why)
{
    const struct request_pods *pods = agent->job->request->pods;
    if (!pods || pods->entry) {
        agent_lose(agent, why);
        return;
    }
    const struct cause_pod pod = {
        .worker = agent->index,
        .pod = pods->pods[agent->index],
        .node = pods->nodes[agent->index],
        .end = POD_END_NODE_LOST,
        .message = why->text,
        .exit_code = -1,
    };
    job_pod_ended(agent->job, &pod);
}

static void check_heard(struct job *job, int64_t now)
{
    int64_t limit = job->request->pods ? PING_PODS_LOST_MS : PING_LOST_MS;
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        struct drarun_error err = {0};
        if (!agent->channel || agent->phase == AGENT_DONE || now - agent->heard_ms < limit)
            continue;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT,
                   "nothing was heard from it for %" PRId64 " s", limit / 1000);
        agent_lose_silent(agent, &err);
    }
}

void job_tick(struct job *job, int64_t now)
{
    int64_t every = job->watch ? job_watch_every_ms(job->watch) : ping_every_ms(job);
    int64_t late = now - job->ticked_ms - every;
    job->ticked_ms = now;
    if (late <= 0)
        return;
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        agent->heard_ms = now - agent->heard_ms < late ? now : agent->heard_ms + late;
    }
    if (job->watch)
        job_watch_skip(job->watch, late, now);
}

static void on_ping_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    int64_t now = clock_ms();
    (void)fd, (void)what;
    job_tick(job, now);
    check_heard(job, now);
    agents_send(job, &envelope);
    job_look(job);
}

static void on_status(void *arg, struct buf *text)
{
    const struct job *job = arg;
    int64_t waited = clock_ms() - job->state_since_ms;
    struct buf what = BUF_INIT;
    if (waited < STATUS_AFTER_MS)
        return;
    if (job->state == JOB_CHECKING && job->reach) {
        buf_printf(text,
                   "drarun: waiting %" PRId64
                   " s: the NICs of neighbouring workers write to each other",
                   waited / 1000);
    } else if (job->state <= JOB_PREPARING) {
        describe_awaited(job, &what);
        buf_printf(text, "drarun: waiting %" PRId64 " s: %s", waited / 1000,
                   what.data ? what.data : "");
    } else if (job->state == JOB_ENDING) {
        buf_printf(text, "drarun: ending the ranks for %" PRId64 " s: %u of %u workers are done",
                   waited / 1000, job->gone, job->count);
    } else if (job->state == JOB_DRAINING && !output_idle(job->output)) {
        buf_printf(text, "drarun: waiting %" PRId64 " s for someone to read our output",
                   waited / 1000);
    }
    buf_done(&what);
}

static void on_output_idle(void *arg)
{
    job_look(arg);
}

static void on_log(void *arg, const struct log_line *line)
{
    struct job *job = arg;
    struct buf json = BUF_INIT;
    if (job->request->framed)
        log_json_line(&job->request->framed->who, line, &json);
    bool framed = json.len > 0 && !json.failed;
    output_say(job->output, framed ? json.data : line->text, framed ? json.len : line->length);
    buf_done(&json);
}

static void on_written(void *arg, const char *data, size_t length)
{
    framed_count(((struct job *)arg)->request->framed, data, length);
}

void job_mark_log(struct job *job)
{
    struct buf mark = BUF_INIT;
    if (job->request->framed)
        framed_mark(job->request->framed, &mark);
    if (mark.len > 0 && !mark.failed)
        output_say(job->output, mark.data, mark.len);
    buf_done(&mark);
}

static void on_output_before(void *arg)
{
    struct job *job = arg;
    status_line_clear(job->status);
}

/* ---- making ---- */

static int make_clocks(struct job *job, struct drarun_error *err)
{
    struct event_base *base = job->base;
    job->start_clock = evtimer_new(base, on_start_clock, job);
    job->notice_clock = evtimer_new(base, on_notice_clock, job);
    job->limit_clock = evtimer_new(base, on_limit_clock, job);
    job->grace_clock = evtimer_new(base, on_grace_clock, job);
    job->overdue_clock = evtimer_new(base, job_on_overdue, job);
    job->notes_clock = evtimer_new(base, on_notes_clock, job);
    job->stop_clock = evtimer_new(base, job_on_stop, job);
    job->hearsay_clock = evtimer_new(base, on_hearsay_clock, job);
    job->settle_clock = evtimer_new(base, on_settle_clock, job);
    job->ping_clock = event_new(base, -1, EV_PERSIST, on_ping_clock, job);
    if (!job->start_clock || !job->notice_clock || !job->limit_clock || !job->grace_clock ||
        !job->overdue_clock || !job->notes_clock || !job->stop_clock || !job->hearsay_clock ||
        !job->settle_clock || !job->ping_clock)
        return error_set(err, ENOMEM, "out of memory");
    job->ticked_ms = clock_ms();
    if (job->request->timeout_ms > 0)
        job_start_clock(job->limit_clock, job->request->timeout_ms);
    if (job->remote)
        job_start_clock(job->ping_clock, ping_every_ms(job));
    if (job->remote && !job->request->pods)
        job_start_clock(job->notice_clock, NOTICE_MS);
    return job_start_clock(job->start_clock, job_start_limit_ms(job));
}

/* Its mpirun, and one rank on each other worker that starts what it asks for. */
static int map_mpirun(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    if (request->program_count > 1 || request->programs[0].ranks > 1)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--launch mpirun takes one program, which runs once: tell your mpirun "
                          "how many processes (-n) it is to start");
    return rankmap_build(&job->count, 1, job->count, 1, &job->map, err);
}

/* Programs with workers of their own. */
static int map_parts(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    cleanup_free struct rank_part *parts = calloc(request->program_count, sizeof *parts);
    if (!parts)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < request->program_count; i++)
        parts[i] = (struct rank_part){request->programs[i].ranks, request->programs[i].workers};
    return rankmap_build_parts(parts, request->program_count,
                               request->pods ? request->pods->rank_order : NULL, &job->map, err);
}

static int map_programs(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    if (request->programs[0].workers > 0)
        return map_parts(job, err);
    cleanup_free uint32_t *counts = calloc(request->program_count, sizeof *counts);
    if (!counts)
        return error_set(err, ENOMEM, "out of memory");
    uint32_t each = request->per_worker > 0 ? request->per_worker : 1;
    for (size_t i = 0; i < request->program_count; i++)
        counts[i] = request->programs[i].ranks ? request->programs[i].ranks : job->count * each;
    return rankmap_build_ordered(counts, request->program_count, job->count, request->per_worker,
                                 request->pods ? request->pods->rank_order : NULL, &job->map, err);
}

static int check_stop(const struct job_request *request, struct drarun_error *err)
{
    if (request->launch_mpirun)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--stop-at: --launch mpirun leaves the ranks to your mpirun: tell it to "
                          "stop them");
    if (request->launch_env && request->stop_at != DRARUN__WIRE__STOP_AT__STOP_AT_EXEC)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL,
                          "--stop-at: --launch env has no PMIx in which ranks could wait: say "
                          "--stop-at exec");
    log_note("ranks will wait for a debugger: kill -CONT %d lets them go on", (int)getpid());
    return 0;
}

static int map_ranks(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    int rc = request->launch_mpirun ? map_mpirun(job, err) : map_programs(job, err);
    if (rc < 0)
        return rc;
    if (request->stdin_rank >= 0 && (uint32_t)request->stdin_rank >= job->map.ranks)
        return error_kind(err, DRARUN_ERR_USAGE, EINVAL, "--stdin %d: the job has ranks 0 to %u",
                          request->stdin_rank, job->map.ranks - 1);
    if (request->stop_at != DRARUN__WIRE__STOP_AT__STOP_AT_NOTHING && check_stop(request, err) < 0)
        return -err->code;
    job->first_ranks = job->map.ranks;
    job->hold = job->count > 1 && !request->launch_env && !request->launch_mpirun &&
                (request->slots > 0 || request->oversubscribe);
    job->spawn = job_spawn_new(job);
    job->names = job_names_new();
    job->rank_ended = calloc(job->map.ranks, 1);
    job->cause = cause_new(&job->map);
    if (!job->rank_ended || !job->cause || !job->spawn || !job->names)
        return error_set(err, ENOMEM, "out of memory");
    if (expects_words(job))
        cause_expect_pods(job->cause);
    if (request->success_count > 0)
        cause_decide_by(job->cause, request->success_first, request->success_count);
    return 0;
}

static void on_reader_gone(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    event_del(job->reader);
    log_verbose("nobody reads our frames any more");
    job_interrupt(job, SIGTERM);
}

/* Of a pipe's end that is written to, epoll says so when its reader has gone. A file has none. */
static void watch_reader(struct job *job)
{
    if (!job->request->frames)
        return;
    job->reader = event_new(job->base, STDOUT_FILENO, EV_READ | EV_PERSIST, on_reader_gone, job);
    if (job->reader && event_add(job->reader, NULL) < 0)
        event_free(TAKE_PTR(job->reader));
}

static int make_streams(struct job *job, struct drarun_error *err)
{
    const struct job_request *request = job->request;
    struct output_owner out = {
        .credit = job_on_credit,
        .closed = job_on_output_closed,
        .failed = job_on_output_failed,
        .before = on_output_before,
        .written = request->framed ? on_written : NULL,
        .idle = on_output_idle,
        .arg = job,
    };
    struct input_owner in = {.data = job_on_input, .arg = job};
    enum output_form form = request->framed  ? OUTPUT_FRAMED
                            : request->label ? OUTPUT_LABELLED
                                             : OUTPUT_PLAIN;
    job->output = output_new(job->base, job->map.ranks, form, request->output_dir, &out, err);
    if (!job->output)
        return -err->code;
    log_divert(on_log, job);
    watch_reader(job);
    job->stdin_rank = input_is_there() ? request->stdin_rank : REQUEST_STDIN_NONE;
    if (job->stdin_rank == REQUEST_STDIN_NONE)
        return 0;
    bool all = job->stdin_rank == REQUEST_STDIN_ALL;
    job->stdin_left = all ? job->map.ranks : 1;
    job->input = input_new(job->base, all ? job->count : 1, &in);
    return job->input ? 0 : error_set(err, ENOMEM, "out of memory");
}

static int make_base(struct job *job, struct drarun_error *err)
{
    local_agent_raise_limit(&job->local);
    if (job->local.files.rlim_max < FILES_MIN) /* libevent would end the process */
        return error_kind(err, DRARUN_ERR_INFRASTRUCTURE, EMFILE,
                          "the limit of open files (ulimit -n) is %ju; raise it to %d at least",
                          (uintmax_t)job->local.files.rlim_max, FILES_MIN);
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME |
                                          EVENT_BASE_FLAG_IGNORE_ENV);
        job->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    return job->base ? 0 : error_set(err, ENOMEM, "cannot make an event loop: out of memory");
}

/* Name and loop: our own, or the cluster's. */
static int make_identity(struct job *job, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    gethostname(job->hostname, sizeof job->hostname - 1);
    if (pods) {
        job->uid = pods->uid;
        job->attempt = pods->attempt;
        job->base = pods->base;
        return 0;
    }
    job->uid = job->own_uid;
    int rc = identity_make(job->own_uid, err);
    return rc < 0 ? rc : make_base(job, err);
}

static int make(struct job *job, struct drarun_error *err)
{
    int rc = make_identity(job, err);
    if (rc == 0)
        rc = agents_new(job, err);
    if (rc == 0)
        rc = map_ranks(job, err);
    if (rc == 0)
        rc = make_streams(job, err);
    if (rc < 0)
        return rc;
    job->signals = signals_new(job->base, job_on_signal, job, err);
    if (!job->signals)
        return -err->code;
    proctree_adopt_orphans();
    if (!request_is_elsewhere(job->request))
        job->shm = shm_clean_begin();
    rc = agents_start(job, err);
    if (rc == 0)
        rc = make_clocks(job, err);
    job->status = job->request->quiet ? NULL : status_line_new(job->base, on_status, job);
    return rc;
}

struct job *job_new(const struct job_request *request, char *const env[], struct drarun_error *err)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    job->request = request;
    job->env = env;
    job->started_us = clock_us();
    job->state = JOB_CONNECTING;
    job->state_since_ms = clock_ms();
    if (make(job, err) < 0) {
        job_free(job);
        return NULL;
    }
    return job;
}

void job_run(struct job *job)
{
    struct drarun_error err = {0};
    job_look(job);
    event_base_dispatch(job->base);
    if (job->state != JOB_ENDED) {
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, EINVAL,
                   "internal error: the loop ended while %s", job_state_name(job->state));
        cause_failure(job->cause, &err);
    }
    job_await_dismissed(job);
    agents_remove_remains(job);
    log_divert(NULL, NULL);
    /* from here on a signal may end us: the report is written however slow its reader */
    signals_free(TAKE_PTR(job->signals));
    if (job->mpi_library_ranks > 0)
        cause_singletons(job->cause, job->mpi_library_ranks);
    job->facts.ran_us = clock_us() - job->started_us;
}

static void free_clock(struct event *clock)
{
    if (clock)
        event_free(clock);
}

void job_free(struct job *job)
{
    if (!job)
        return;
    log_divert(NULL, NULL);
    job_watch_free(job->watch);
    job_reach_free(job->reach);
    fabric_free(job->fabric);
    job_files_free(job->files);
    agents_free(job);
    job_spawn_free(job->spawn);
    job_names_free(job->names);
    status_line_free(job->status);
    input_free(job->input);
    free_clock(job->reader);
    output_free(job->output);
    signals_free(job->signals);
    launch_message_free(job->launch);
    shm_clean_free(job->shm);
    free_clock(job->start_clock);
    free_clock(job->notice_clock);
    free_clock(job->limit_clock);
    free_clock(job->grace_clock);
    free_clock(job->overdue_clock);
    free_clock(job->notes_clock);
    free_clock(job->stop_clock);
    free_clock(job->hearsay_clock);
    free_clock(job->settle_clock);
    free_clock(job->ping_clock);
    notes_done(&job->notes);
    cause_free(job->cause);
    free(job->rank_ended);
    rankmap_done(&job->map);
    if (job->base) {
        /* freed connections with a callback under way hold on to themselves until the loop's turn
         */
        event_base_loop(job->base, EVLOOP_NONBLOCK);
        if (!job->request->pods)
            event_base_free(job->base);
    }
    free(job);
}

void job_stop(struct job *job, const struct drarun_error *why)
{
    job_fail(job, why);
    job_look(job);
}

void job_interrupt(struct job *job, int signo)
{
    job_on_signal(job, signo);
}

bool job_gathered(const struct job *job)
{
    return job->greeted == job->count;
}

bool job_is_hopeless(const struct job *job)
{
    return job->hopeless;
}

const struct cause *job_cause(const struct job *job)
{
    return job->cause;
}

void job_facts(const struct job *job, struct job_facts *ret_facts)
{
    *ret_facts = job->facts;
    ret_facts->uid = job->uid;
    ret_facts->ranks = job->map.ranks;
    ret_facts->workers = job->count;
}
