/* SPDX-License-Identifier: Apache-2.0 */
/* One agent: how it is called, what it is told, and what it says to people. */
#include <stdio.h>
#include <string.h>

#include "jobs/ranks/worker_ranges.h"
#include "launcher/job/private.h"
#include "lib/base/log.h"

#define RANGES_MAX 16 /* of workers in a line */

void agent_name(const struct agent *agent, char *text, size_t size)
{
    const struct request_pods *pods = agent->job->request->pods;
    if (agent->job->early)
        snprintf(text, size, "the agent");
    else if (pods && !pods->nodes[agent->index])
        snprintf(text, size, "worker %u (%s)", agent->index, pods->pods[agent->index]);
    else if (pods)
        snprintf(text, size, "worker %u (%s on %s)", agent->index, pods->pods[agent->index],
                 pods->nodes[agent->index]);
    else if (agent->host[0] && agent->job->request->agents)
        snprintf(text, size, "worker %u (%.60s, %s)", agent->index, agent->host, agent->address);
    else
        snprintf(text, size, "worker %u (%s)", agent->index, agent->address);
}

struct log_about agent_about(const struct agent *agent)
{
    const struct request_pods *pods = agent->job->request->pods;
    return (struct log_about){
        .of_worker = true,
        .worker = agent->index,
        .claim = pods && pods->claims ? pods->claims[agent->index] : NULL,
        .node = pods ? pods->nodes[agent->index] : NULL,
    };
}

const char *agent_outer_address(const struct agent *agent)
{
    return agent->outer[0] ? agent->outer : agent->address;
}

const json_t *job_inspection(const struct job *job, uint32_t worker)
{
    return job->agents[worker].inspection;
}

/* ---- what it is told ---- */

void agent_send(struct agent *agent, const Drarun__Wire__Envelope *message)
{
    if (!agent->channel)
        return;
    int rc = channel_send(agent->channel, message);
    if (rc < 0)
        log_debug("worker %u: message not sent: %s", agent->index, strerror(-rc));
}

void agents_send(struct job *job, const Drarun__Wire__Envelope *message)
{
    for (uint32_t i = 0; i < job->count; i++)
        agent_send(&job->agents[i], message);
}

void job_send_signal(struct job *job, int signo)
{
    Drarun__Wire__Signal message = DRARUN__WIRE__SIGNAL__INIT;
    message.signo = signo;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(SIGNAL, signal, &message);
    for (uint32_t i = 0; i < job->count; i++)
        if (job->agents[i].launched && job->agents[i].phase < AGENT_DONE)
            agent_send(&job->agents[i], &envelope);
}

void job_ask_vitals(struct job *job, bool ranks)
{
    Drarun__Wire__VitalsRequest request = DRARUN__WIRE__VITALS_REQUEST__INIT;
    request.ranks = ranks;
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(VITALS_REQUEST, vitals_request, &request);
    agents_send(job, &envelope);
}

/* ---- what it says to people ---- */

void job_say_note(const uint32_t *workers, uint32_t count, const char *text, void *arg)
{
    struct job *job = arg;
    struct buf ranges = BUF_INIT;
    const struct log_about about = agent_about(&job->agents[workers[0]]);
    if (job->early) {
        log_note("%s", text);
    } else if (count == 1) {
        log_about(&about, LOG_NORMAL, "worker %u: %s", workers[0], text);
    } else {
        worker_ranges(workers, count, RANGES_MAX, &ranges);
        log_note("workers %s: %s", ranges.data ? ranges.data : "?", text);
    }
    buf_done(&ranges);
}

void job_say_notes(struct job *job)
{
    event_del(job->notes.clock);
    if (job->notes.held.count > 0)
        console_clear(job->console);
    notes_take(&job->notes.held, job_say_note, job);
}
