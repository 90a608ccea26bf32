/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/job/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"

#define DISMISSED_MS 2000

static void on_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    (void)channel, (void)message, (void)arg;
}

static void on_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct job *job = arg;
    (void)err;
    channel_free(channel);
    job->dismissed--;
}

/* It goes when it has heard: were we the first, a reset could overtake what we say. */
static void tell(struct agent *agent)
{
    struct job *job = agent->job;
    struct buf text = BUF_INIT;
    Drarun__Wire__Ended ended = DRARUN__WIRE__ENDED__INIT;
    cause_explain(job->cause, false, &text);
    ended.status = cause_status(job->cause);
    if (text.data && !text.failed)
        ended.text = text.data;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(ENDED, ended, &ended);
    agent_send(agent, &envelope);
    buf_done(&text);
    channel_set_callbacks(TAKE_PTR(agent->channel), on_message, on_closed, job);
    job->dismissed++;
}

void agent_dismiss(struct agent *agent)
{
    const struct job *job = agent->job;
    const struct request_pods *pods = job->request->pods;
    if (agent->channel && pods && pods->entry && agent->phase > AGENT_GREETING &&
        (job_gathered(job) || job->hopeless || pods->all_tries_ms > 0))
        tell(agent);
    else
        channel_free(TAKE_PTR(agent->channel));
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    bool *late = arg;
    (void)fd, (void)what;
    *late = true;
}

void job_await_dismissed(struct job *job)
{
    bool late = false;
    struct timeval limit = timeval_from_ms(DISMISSED_MS);
    struct event *clock = job->dismissed ? evtimer_new(job->base, on_late, &late) : NULL;
    if (!clock)
        return;
    if (evtimer_add(clock, &limit) == 0)
        while (job->dismissed > 0 && !late && event_base_loop(job->base, EVLOOP_ONCE) == 0)
            continue;
    event_free(clock);
}
