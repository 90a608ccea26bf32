/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, and what is said when they pass. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"

#define PING_EVERY_MS 5000
#define PING_LOST_MS 30000
/* A node that is gone says nothing, and its pods stay for minutes. It is looked for with each ping:
 * both together are the longest that a loss goes unnoticed, which is to be 15 s with the end. */
#define PING_PODS_EVERY_MS 2000
#define PING_PODS_LOST_MS 12000
#define PINGS_LEAST 4
#define OVERDUE_MORE_MS 3000 /* from the drop of stalled output until agents are killed */
#define OVERDUE_READ_MS 2000 /* in which something is read of output that is not stalled */
#define NOTICE_MS 1500       /* until people hear why an agent is not reached */
#define AWAITED_SHOWN 8      /* names after the first */

static bool is_awaited(const struct job *job, const struct agent *agent)
{
    return job->state == JOB_CONNECTING ? agent->phase < AGENT_GREETED
                                        : agent->phase < AGENT_PREPARED;
}

static const struct agent *first_awaited(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (is_awaited(job, &job->agents[i]))
            return &job->agents[i];
    return NULL;
}

/* Nothing has answered the connection to it: the kernel reports that only after two minutes. */
static bool is_silent(const struct agent *agent)
{
    const struct job *job = agent->job;
    if (agent->phase != AGENT_CONNECTING || !job->remote || !request_is_elsewhere(job->request))
        return false;
    int code = remote_api()->code(job->remote, agent->index);
    return code == 0 || code == ETIMEDOUT;
}

/* Why it is not there yet, where that is known. */
static void add_why(const struct agent *agent, struct buf *text)
{
    const struct job *job = agent->job;
    const char *why = job->remote ? remote_api()->why(job->remote, agent->index) : "";
    if (is_silent(agent))
        buf_printf(text, ": no answer to the connection: %s drops packets to port %s",
                   job->request->pods ? "its node is down, or a network policy or firewall"
                                      : "its machine is down, or a firewall",
                   strrchr(agent->address, ':') + 1);
    else if (why[0])
        buf_printf(text, ": %s", why);
}

uint32_t job_describe_awaited(const struct job *job, const char *after, struct buf *text)
{
    const struct agent *first = first_awaited(job);
    struct buf others = BUF_INIT;
    uint32_t awaited = 0;
    char name[128];
    if (!first)
        return 0;
    for (uint32_t i = first->index; i < job->count; i++) {
        if (!is_awaited(job, &job->agents[i]) || awaited++ == 0 || awaited > AWAITED_SHOWN + 1)
            continue;
        agent_name(&job->agents[i], name, sizeof name);
        buf_printf(&others, "%s%s", others.len ? ", " : "", name);
    }
    agent_name(first, name, sizeof name);
    buf_printf(text, "%s %s%s", name,
               first->phase == AGENT_CONNECTING ? "is not reached"
               : first->phase == AGENT_GREETING ? "says no hello"
                                                : "is not prepared",
               after);
    add_why(first, text);
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
    const struct request_pods *pods = job->request->pods;
    int64_t limit = pods && pods->all_tries_ms ? pods->all_tries_ms : job_start_limit_ms(job);
    const char *set_by = request_is_of_spec(job->request) ? "timeouts.start" : "--start-timeout";
    const struct agent *first = first_awaited(job);
    bool perhaps_none =
        first && job->state == JOB_CONNECTING && job->request->agents && !is_silent(first);
    char after[64];
    snprintf(after, sizeof after, " after %" PRId64 " s (%s)", limit / 1000, set_by);
    job_describe_awaited(job, after, &text);
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT, "%s%s%s",
               text.data ? text.data : "an agent is awaited", text.data ? "" : after,
               perhaps_none ? "; is drarun-worker --listen running there?" : "");
    buf_done(&text);
    job_fail(job, &err);
    job_look(job);
}

/* The errno with which an agent could not be reached so far; 0: none is out of reach. */
static int reach_code(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        if (agent->phase != AGENT_CONNECTING)
            continue;
        int code = is_silent(agent) ? ETIMEDOUT : remote_api()->code(job->remote, i);
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
                   "cannot reach the agents of this machine at 127.0.0.1: the loopback interface "
                   "is down; run ip link set lo up");
        job_fail(job, &err);
        job_look(job);
        return;
    }
    if (job_describe_awaited(job, "", &text) > 0 && text.data)
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

/* A checkpoint is to be written before the end. Ranks that have not begun cannot handle a signal.
 */
static void on_warn_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    const struct job_request *request = job->request;
    (void)fd, (void)what;
    const char *name = sigabbrev_np(request->warn_signo);
    double before_s = (double)request->warn_before_ms / 1000;
    if (job->state > JOB_RUNNING)
        return;
    console_clear(job->console);
    if (job->state < JOB_RUNNING) {
        log_note("SIG%s is not sent: %g s before the job's timeout the ranks have not started",
                 name, before_s);
        return;
    }
    log_note("SIG%s sent to the ranks: the job's timeout ends them in %g s", name, before_s);
    cause_warned(job->cause, request->warn_signo, request->warn_before_ms);
    job_send_signal(job, request->warn_signo);
}

static void on_grace_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->state == JOB_ENDING)
        job_event(job, JOB_GRACE_OVER);
    job_look(job);
}

static void drop_stalled_output(struct job *job)
{
    if (output_idle(job->output))
        return;
    log_note("our output is not being read: the rest of it is dropped");
    output_discard_stalled(job->output);
}

static void kill_processes(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        if (agent->pid && !agent->reaped)
            kill(agent->pid, SIGKILL);
    }
    job->local.orphans = true;
}

/* Some of our output was read since the last look: thousands of ranks may say at once why they
 * fail, and a log or a terminal takes its time. It ends: an agent closes the pipes of ranks that
 * are gone, even if another process writes there (GIVE_UP_MS in worker/ranks). Who has interrupted
 * the job wants its end. */
static bool is_being_read(struct job *job)
{
    uint64_t before = job->overdue.written;
    job->overdue.written = output_written(job->output);
    return job->overdue.written != before && job->interrupt.signo == 0;
}

/* First what holds the agents up is taken away, then they are. */
static void on_overdue_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    bool waits = job->state == JOB_ENDING || (job->overdue.stage > 0 && !output_idle(job->output));
    if (is_being_read(job) && waits && job_start_clock(job->overdue.clock, OVERDUE_READ_MS) == 0)
        return;
    bool first = job->overdue.stage++ == 0;
    if (first)
        job_start_clock(job->overdue.clock, OVERDUE_MORE_MS);
    if (job->state == JOB_ENDING && first)
        drop_stalled_output(job);
    else if (job->state == JOB_ENDING)
        job_event(job, JOB_OVERDUE);
    else if (job->state == JOB_DRAINING && first && !agents_reaped(job))
        kill_processes(job);
    else if (job->state == JOB_DRAINING && (!agents_reaped(job) || job->local.orphans))
        job_event(job, JOB_OVERDUE);
    bool failed = cause_kind(job->cause) != CAUSE_NONE && !cause_ran_to_end(job->cause);
    if (job->state == JOB_DRAINING && failed && !first)
        drop_stalled_output(job);
    job_look(job);
}

static int64_t agent_timeout_ms(const struct job *job)
{
    if (job->request->agent_timeout_ms > 0)
        return job->request->agent_timeout_ms;
    return job->request->pods ? PING_PODS_LOST_MS : PING_LOST_MS;
}

/* Several in the time of an agent that is to be lost soon. */
static int64_t ping_every_ms(const struct job *job)
{
    int64_t usual = job->request->pods ? PING_PODS_EVERY_MS : PING_EVERY_MS;
    int64_t often = agent_timeout_ms(job) / PINGS_LEAST;
    return often < usual ? often : usual;
}

static void check_heard(struct job *job, int64_t now)
{
    int64_t limit = agent_timeout_ms(job);
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        struct drarun_error err = {0};
        if (!agent->channel || agent->phase == AGENT_DONE || now - agent->heard_ms < limit)
            continue;
        error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT,
                   "no message from it for %" PRId64 " s", limit / 1000);
        agent_lose_silent(agent, &err);
    }
}

static void on_ping_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    struct job_watch *watch = job->liveness.watch;
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    int64_t now = clock_ms();
    (void)fd, (void)what;
    int64_t late = job_tick(job, now, watch ? job_watch_every_ms(watch) : ping_every_ms(job));
    if (watch)
        job_watch_skip(watch, late, now);
    check_heard(job, now);
    agents_send(job, &envelope);
    job_look(job);
}

static void on_reach_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    job_reach_expire(job->preflight.reach);
    job_look(job);
}

static void on_watch_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    job_watch_tick(job->liveness.watch);
    job_look(job);
}

static void on_room_clock(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    job_spawn_room_over(job->spawning.requests);
    job_look(job);
}

static void on_look_clock(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    job_look(arg);
}

int job_make_clocks(struct job *job, struct drarun_error *err)
{
    struct event_base *base = job->base;
    job->clocks.start = evtimer_new(base, on_start_clock, job);
    job->clocks.notice = evtimer_new(base, on_notice_clock, job);
    job->clocks.limit = evtimer_new(base, on_limit_clock, job);
    job->clocks.warn = evtimer_new(base, on_warn_clock, job);
    job->interrupt.grace_clock = evtimer_new(base, on_grace_clock, job);
    job->overdue.clock = evtimer_new(base, on_overdue_clock, job);
    job->notes.clock = evtimer_new(base, on_notes_clock, job);
    job->pause.clock = evtimer_new(base, job_on_stop, job);
    job->hearsay.clock = evtimer_new(base, job_on_hearsay, job);
    job->settling.clock = evtimer_new(base, job_on_settle, job);
    job->liveness.ping_clock = event_new(base, -1, EV_PERSIST, on_ping_clock, job);
    job->preflight.reach_clock = evtimer_new(base, on_reach_clock, job);
    job->liveness.watch_clock = event_new(base, -1, EV_PERSIST, on_watch_clock, job);
    job->spawning.room_clock = evtimer_new(base, on_room_clock, job);
    job->clocks.look = evtimer_new(base, on_look_clock, job);
    if (!job->clocks.start || !job->clocks.notice || !job->clocks.limit || !job->clocks.warn ||
        !job->interrupt.grace_clock || !job->overdue.clock || !job->notes.clock ||
        !job->pause.clock || !job->hearsay.clock || !job->settling.clock ||
        !job->liveness.ping_clock || !job->preflight.reach_clock || !job->liveness.watch_clock ||
        !job->spawning.room_clock || !job->clocks.look)
        return error_set(err, ENOMEM, "out of memory");
    job->liveness.ticked_ms = clock_ms();
    if (job->request->timeout_ms > 0)
        job_start_clock(job->clocks.limit, job->request->timeout_ms);
    int64_t warn_ms = job->request->timeout_ms - job->request->warn_before_ms;
    if (job->request->timeout_ms > 0 && job->request->warn_signo != 0)
        job_start_clock(job->clocks.warn, warn_ms > 0 ? warn_ms : 0); /* an attempt may be late */
    if (job->remote)
        job_start_clock(job->liveness.ping_clock, ping_every_ms(job));
    if (job->remote && !job->request->pods)
        job_start_clock(job->clocks.notice, NOTICE_MS);
    return job_start_clock(job->clocks.start, job_start_limit_ms(job));
}

void job_free_clocks(struct job *job)
{
    struct event *const clocks[] = {
        job->clocks.start,         job->clocks.notice,         job->clocks.limit,
        job->clocks.warn,          job->interrupt.grace_clock, job->overdue.clock,
        job->notes.clock,          job->pause.clock,           job->hearsay.clock,
        job->settling.clock,       job->liveness.ping_clock,   job->preflight.reach_clock,
        job->liveness.watch_clock, job->spawning.room_clock,   job->clocks.look};
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++)
        if (clocks[i])
            event_free(clocks[i]);
}
