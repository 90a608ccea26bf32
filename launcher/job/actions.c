/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/private.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"

#define OVERDUE_MS 2000 /* beyond --kill-after: until stalled output is dropped */
#define REAP_MS 1000    /* from an agent's dismissal to its process's end */

static int prepare(struct job *job, struct drarun_error *err)
{
    const struct request_pods *pods = job->request->pods;
    return pods && pods->prepare ? pods->prepare(pods->arg, job, err) : 0;
}

static void do_check(struct job *job)
{
    struct drarun_error refused = {0};
    int rc = prepare(job, &refused);
    if (rc == 0 && job->preflight.reach)
        rc = job_reach_begin(job->preflight.reach, &refused);
    if (rc < 0)
        job_fail(job, &refused);
    else
        job->preflight.checked = true;
    if (job->preflight.reach)
        event_del(job->clocks.start); /* it has its own deadline */
}

static void do_launch(struct job *job)
{
    job_start_clock(job->clocks.start, job_start_limit_ms(job));
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        struct drarun_error err = {0};
        if (!agent->launched && agent_send_launch(agent, &err) < 0) {
            job_fail(job, &err);
            return;
        }
    }
}

static void do_start(struct job *job)
{
    Drarun__Wire__Start start = DRARUN__WIRE__START__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(START, start, &start);
    event_del(job->clocks.start);
    if (!job->early)
        agents_send(job, &envelope);
    if (job->input.source)
        input_start(job->input.source);
    if (job->request->hang_after_ms > 0 &&
        !(job->liveness.watch = job_watch_new(job, job->request->hang_after_ms)))
        log_error("the ranks are not watched: out of memory");
    if (job->request->pods && job->request->pods->started)
        job->request->pods->started(job->request->pods->arg);
}

static void agent_release(struct agent *agent)
{
    agent_dismiss(agent);
    agent_lose(agent, NULL);
}

static void end_agent(struct agent *agent, const Drarun__Wire__Envelope *message)
{
    if (agent->phase >= AGENT_DONE)
        return;
    if (agent->launched && agent->phase > AGENT_GREETING)
        agent_send(agent, message);
    else
        agent_release(agent); /* it holds nothing of ours yet, or may never answer */
}

static void start_overdue(struct job *job, int64_t after_ms)
{
    job->overdue.stage = 0;
    job->overdue.written = output_written(job->output);
    job_start_clock(job->overdue.clock, after_ms);
}

static void do_end(struct job *job, bool at_once)
{
    Drarun__Wire__End end = DRARUN__WIRE__END__INIT;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(END, end, &end);
    /* after the loss of an agent nothing useful can come of waiting for the ranks of the others */
    end.at_once = at_once || job->phases.lost > 0 || job->interrupt.leaving;
    end.reason = unconst(at_once ? "asked to end at once" : "the job ends");
    event_del(job->clocks.start);
    event_del(job->interrupt.grace_clock);
    start_overdue(job, OVERDUE_MS + (end.at_once ? 0 : job->request->kill_after_ms));
    if (job->input.source)
        input_stop(job->input.source);
    for (uint32_t i = 0; i < job->count; i++)
        end_agent(&job->agents[i], &envelope);
}

static void do_forward(struct job *job)
{
    const struct job_interrupt *interrupt = &job->interrupt;
    int64_t ms = interrupt->leaving ? job->request->pods->grace_ms : job->request->kill_after_ms;
    job_send_signal(job, interrupt->signo);
    job_start_clock(interrupt->grace_clock, ms);
}

/* Before the start no rank runs, except that an early agent starts its own at once. */
static void do_cancel(struct job *job)
{
    if (job->early && job->agents[0].launched)
        do_forward(job);
    else
        do_end(job, false);
}

static void do_drop(struct job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        char name[128];
        if (agent->phase >= AGENT_DONE)
            continue;
        agent_name(agent, name, sizeof name);
        const struct log_about about = agent_about(agent);
        log_about(&about, LOG_QUIET, "%s did not end when asked to: %s", name,
                  agent->pid ? "killed" : "disconnected; its ranks may still run");
        agent_lose(agent, NULL);
    }
}

/* Agents wait for this, since those that are done first must not seem lost to the others. */
static void do_drain(struct job *job)
{
    cause_conclude(job->cause);
    event_del(job->clocks.start);
    event_del(job->interrupt.grace_clock);
    event_del(job->liveness.ping_clock);
    if (job->input.source)
        input_stop(job->input.source);
    for (uint32_t i = 0; i < job->count; i++) {
        struct agent *agent = &job->agents[i];
        if (agent->channel)
            job->facts.wire_bytes += channel_bytes(agent->channel);
        agent_dismiss(agent);
    }
    output_finish(job->output); /* of agents that were lost, no rank's end was reported */
    start_overdue(job, REAP_MS);
}

void job_act(struct job *job, enum job_action action)
{
    switch (action) {
    case JOB_DO_NOTHING:
        return;
    case JOB_DO_CHECK:
        do_check(job);
        return;
    case JOB_DO_LAUNCH:
        do_launch(job);
        return;
    case JOB_DO_START:
        do_start(job);
        return;
    case JOB_DO_END:
        do_end(job, false);
        return;
    case JOB_DO_END_NOW:
        do_end(job, true);
        output_discard(job->output);
        return;
    case JOB_DO_CANCEL:
        do_cancel(job);
        return;
    case JOB_DO_FORWARD:
        do_forward(job);
        return;
    case JOB_DO_DROP:
        do_drop(job);
        return;
    case JOB_DO_DRAIN:
        do_drain(job);
        return;
    case JOB_DO_LEAVE:
        event_base_loopbreak(job->base);
        return;
    }
}
