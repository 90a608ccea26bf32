/* SPDX-License-Identifier: Apache-2.0 */
/* What has come about, and what follows from it. */
#include <inttypes.h>

#include "launcher/job/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define HEARSAY_MS 250
/* After an exit or abort, in which the end that it may be the echo of can still become known. */
#define SETTLE_MS 100
/* The longest wait after that for every agent to report the ranks that have ended: one may hang. */
#define SETTLE_ANSWERS_MS 3000

void job_event(struct job *job, enum job_event event)
{
    if (job->state == JOB_ENDED)
        return;
    const struct job_step *step = job_step_find(job->state, event);
    console_clear(job->console);
    if (!step) {
        /* our own bug; ending the job is better than going on in a state nobody thought of */
        log_error("internal error: \"%s\" while %s", job_event_name(event),
                  job_state_name(job->state));
        event_base_loopbreak(job->base);
        return;
    }
    log_verbose("job %s: %s -> %s (%s)", job->identity.uid, job_state_name(job->state),
                job_state_name(step->next), job_event_name(event));
    if (step->next != job->state)
        job->state_since_ms = clock_ms();
    job->state = step->next;
    if (job->state >= JOB_RUNNING)
        job_say_notes(job);
    job_act(job, step->action);
}

bool job_expects_words(const struct job *job)
{
    const struct request_pods *pods = job->request->pods;
    return pods && !pods->entry && !pods->kept;
}

/* How long to wait for the cluster to report why a worker is lost or leaving. 0: it has reported
 * it, or the report cannot change the cause. */
static int64_t awaits_pod_ms(const struct job *job)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        if ((agent->linger || agent->leaves) && !agent->pod_told && agent_pod_ms(agent) > most)
            most = agent_pod_ms(agent);
    }
    return job_expects_words(job) && cause_may_change(job->cause) ? most : 0;
}

/* A rank's end and its echoes reach us by different agents, in any order: an agent that runs late
 * may hold the end that all began with. */
static void ask_agents(struct job *job)
{
    Drarun__Wire__Ping ping = DRARUN__WIRE__PING__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(PING, ping, &ping);
    ping.ask = ++job->settling.asked;
    agents_send(job, &envelope);
}

static bool agents_answered(const struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct agent *agent = &job->agents[i];
        bool told = agent->channel ? agent->settled == job->settling.asked
                                   : !agent->linger || agent->awaits_pod;
        if (agent->phase < AGENT_DONE && !told)
            return false;
    }
    return true;
}

static bool settle_for(struct job_settling *settling, enum settling_stage stage, int64_t limit_ms)
{
    if (job_start_clock(settling->clock, limit_ms) < 0)
        return false;
    settling->stage = stage;
    return true;
}

/* The present stage is over; the next one that has something to wait for begins. */
static void settle_on(struct job *job)
{
    struct job_settling *settling = &job->settling;
    enum settling_stage before = settling->stage;
    settling->stage = SETTLE_NOTHING;
    event_del(settling->clock);
    if (before == SETTLE_MOMENT && !agents_answered(job) &&
        settle_for(settling, SETTLE_ANSWERS, SETTLE_ANSWERS_MS))
        return;
    int64_t pod_ms = awaits_pod_ms(job);
    if (before == SETTLE_POD || pod_ms == 0 || !settle_for(settling, SETTLE_POD, pod_ms))
        cause_settle(job->cause);
    if (job->state < JOB_ENDING)
        job_event(job, JOB_CAUSE);
}

void job_on_settle(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (job->settling.stage == SETTLE_ANSWERS)
        log_verbose("not every agent confirmed within %d ms that it has reported all exits",
                    SETTLE_ANSWERS_MS);
    settle_on(job);
    job_look(job);
}

void job_tell_leave(const struct agent *agent)
{
    struct job *job = agent->job;
    const struct log_about about = agent_about(agent);
    const struct request_pods *pods = job->request->pods;
    const char *name = pods->pods ? pods->pods[agent->index] : NULL;
    if (!job->interrupt.leave_told && !pods->entry && !pods->kept)
        log_about(&about, LOG_NORMAL,
                  "worker %u (%s) is being removed: every rank gets SIGTERM, and %" PRId64 " s",
                  agent->index, name ? name : "?", pods->grace_ms / 1000);
    job->interrupt.leave_told = true;
}

void job_leave(struct job *job)
{
    if (job->state >= JOB_ENDING)
        return;
    job->interrupt.leaving = true;
    job->interrupt.signo = SIGTERM;
    job_event(job, JOB_INTERRUPT);
}

/* What has been noted of the job's end is taken. */
static void take_cause(struct job *job)
{
    if (!job->caused)
        return;
    job->caused = false;
    if (cause_may_change(job->cause) && settle_for(&job->settling, SETTLE_MOMENT, SETTLE_MS))
        ask_agents(job);
    else if (job->state != JOB_ENDING)
        job_event(job, JOB_CAUSE);
}

void job_hear(struct job *job, const struct drarun_error *err)
{
    if (job->hearsay.error.code)
        return;
    job->hearsay.error = *err;
    if (job_start_clock(job->hearsay.clock, HEARSAY_MS) < 0)
        job_fail(job, err);
}

static void believe(struct job *job)
{
    struct drarun_error err = job->hearsay.error;
    job->hearsay.error.code = 0;
    event_del(job->hearsay.clock);
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

void job_on_hearsay(evutil_socket_t fd, short what, void *arg)
{
    struct job *job = arg;
    (void)fd, (void)what;
    if (awaits_agent(job) && job_start_clock(job->hearsay.clock, HEARSAY_MS) == 0)
        return;
    believe(job);
    job_look(job);
}

/* The ranks have ended, and what the cluster may still say would be the cause. */
static bool awaits_words(const struct job *job)
{
    return job->settling.stage != SETTLE_NOTHING && awaits_pod_ms(job) > 0;
}

/* Agents that stay for more ranks need not any more: all have ended. */
static void release(struct job *job)
{
    Drarun__Wire__Release message = DRARUN__WIRE__RELEASE__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(RELEASE, release, &message);
    job->spawning.released = true;
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
    const struct job_reach *reach = job->preflight.reach;
    if (reach && !job_reach_over(reach))
        return;
    job->preflight.checked = false;
    if ((reach && job_reach_judge(reach, &refused) < 0) || use_checked(job, &refused) < 0)
        job_fail(job, &refused);
    else
        job_event(job, JOB_CHECKED);
}

static void look_once(struct job *job)
{
    if (job->settling.stage == SETTLE_ANSWERS && agents_answered(job))
        settle_on(job);
    if (job->spawning.requests)
        job_spawn_look(job->spawning.requests);
    if (job->spawning.hold && !job->spawning.released && job->state == JOB_RUNNING &&
        cause_ended(job->cause) == job->map.ranks)
        release(job);
    if (job->state < JOB_DRAINING && job->phases.gone == job->count)
        believe(job);
    take_cause(job);
    if (job->state < JOB_DRAINING && job->phases.gone == job->count)
        job_event(job, JOB_GONE);
    if (job->state == JOB_CONNECTING && job->phases.greeted == job->count)
        job_event(job, JOB_GREETED);
    if (job->state == JOB_CHECKING && job->preflight.checked)
        look_checked(job);
    if (job->state == JOB_PREPARING && job->phases.prepared == job->count)
        job_event(job, JOB_READY);
    if (job->state == JOB_DRAINING && output_idle(job->output) && agents_reaped(job) &&
        !agents_sweep(job) && !awaits_words(job))
        job_event(job, JOB_DRAINED);
}

/* What follows may itself be what ends the job. */
void job_look(struct job *job)
{
    do {
        take_cause(job);
        look_once(job);
    } while (job->caused);
}

void job_stop(struct job *job, const struct drarun_error *why)
{
    job_fail(job, why);
    job_look(job);
}
