/* SPDX-License-Identifier: Apache-2.0 */
/* The neighbours in the tree: the parent, which dials us, and the connections to all of them, which
 * stand before the ranks start. */
#include <errno.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "worker/agent/private.h"
#include "worker/mpirun/remote.h"

/* Of a neighbour, and in pods: longer than the launcher bears it (launcher/job/clocks.c), who knows
 * which of the two is gone. */
#define SILENCE_MS 35000
#define SILENCE_POD_MS 15000

/* What the user bears of an agent (Launch.agent_timeout_ms) is borne by all. Another launcher that
 * comes is newer, and is served at once, however long this one is still borne. */
static unsigned int choose_silence(const struct agent *agent, uint32_t timeout_ms)
{
    struct channel *channel = agent->launcher.channel;
    if (timeout_ms == 0)
        return agent->options.pod ? SILENCE_POD_MS : SILENCE_MS;
    if (timeout_ms > CHANNEL_AGENT_TIMEOUT_MAX_MS)
        timeout_ms = CHANNEL_AGENT_TIMEOUT_MAX_MS;
    unsigned int silence_ms = timeout_ms + CHANNEL_AGENT_BEYOND_MS;
    if (channel && !agent->launcher.lost && silence_ms > CHANNEL_SILENCE_MS)
        channel_set_silence(channel, silence_ms);
    return silence_ms;
}

static void on_prepared(struct agent *agent)
{
    if (agent->state != AGENT_PREPARING)
        return; /* the job has failed or was ended while the tree was being connected */
    agent_enter(agent, AGENT_READY);
    agent_send_ready(agent);
    if (agent->job.wire->start) {
        agent_enter(agent, AGENT_RUNNING);
        agent_start(agent);
    }
}

/* ---- messages ---- */

static void peers_message(void *arg, uint32_t from, const Drarun__Wire__Envelope *message)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    int rc = 0;
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_COLLECTIVE)
        rc = coll_message(agent->coll, from, message->collective, &err);
    else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED && agent->servers.remote &&
             remote_routed(agent->servers.remote, message->routed))
        rc = 0;
    else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED && agent->servers.pmix)
        pmix_host_routed(agent->servers.pmix, message->routed);
    else
        rc = error_set(&err, EPROTO, "a message of kind %d", message->body_case);
    if (rc < 0) {
        error_prefix(&err, "worker %u", from);
        agent_fail(agent, &err);
    }
}

static void peers_ready(void *arg)
{
    on_prepared(arg);
}

static void peers_lost(void *arg, const struct drarun_error *err)
{
    struct agent *agent = arg;
    if (agent->state == AGENT_DONE) /* at the end everyone leaves in turn */
        return;
    if (!agent->launcher.lost) {
        agent_fail(agent, err);
        return;
    }
    /* Without a launcher all agents end their ranks, and the first one to be done leaves. The ranks
     * here keep their time after SIGTERM. */
    if (agent->state == AGENT_ENDING)
        return;
    log_error("%s: ending the ranks, since no launcher is there", err->text);
    agent_end_ranks(agent, false);
}

static const struct peers_owner peers_owner = {
    .message = peers_message,
    .ready = peers_ready,
    .lost = peers_lost,
};

/* ---- the job's tree ---- */

void agent_connect_take(struct agent *agent, Drarun__Wire__Launch *launch)
{
    struct drarun_error err = {0};
    unsigned int silence_ms = choose_silence(agent, launch->agent_timeout_ms);
    int rc = agent_prepare_take(agent, launch, &err);
    if (rc == 0) {
        struct peers_owner owner = peers_owner;
        owner.arg = agent;
        owner.silence_ms = silence_ms;
        agent->peers = peers_new(agent->base, &agent->job, &agent->tree, agent->dial_tls, &owner);
        rc = agent->peers ? 0 : error_set(&err, ENOMEM, "out of memory");
    }
    if (rc == 0 && agent->parent.channel)
        rc = peers_parent_take(agent->peers, TAKE_PTR(agent->parent.channel), agent->parent.worker,
                               &err);
    if (rc == 0)
        rc = peers_connect(agent->peers, &err);
    if (rc < 0)
        agent_fail(agent, &err);
}

/* ---- the parent ---- */

void agent_refuse_take(struct channel *channel, const char *why, int code)
{
    log_error("%s turned away: %s", channel_peer(channel), why);
    listen_refuse_take(channel, why, code);
}

void agent_drop_parent(struct agent *agent, const char *why)
{
    if (agent->parent.launch)
        drarun__wire__launch__free_unpacked(TAKE_PTR(agent->parent.launch), NULL);
    if (agent->parent.channel)
        agent_refuse_take(TAKE_PTR(agent->parent.channel), why, EPROTO);
}

void agent_join(struct agent *agent)
{
    Drarun__Wire__Assignment *own = agent->parent.assignment;
    Drarun__Wire__Launch *launch = agent->parent.launch;
    if (!own || !launch || agent->state != AGENT_PREPARING || agent->peers)
        return;
    if (strcmp(launch->uid, own->uid) != 0 || launch->attempt != own->attempt) {
        agent_drop_parent(agent, "a neighbour of another job");
        return;
    }
    event_del(agent->parent.due);
    agent->parent.launch = NULL;
    launch->worker = own->worker;
    launch->local_first_slot = own->local_first_slot;
    char *dir = launch->session_dir;
    launch->session_dir = own->session_dir;
    own->session_dir = dir;
    agent_connect_take(agent, launch);
}

/* What the parent hands on before we have become a part of the tree. */
static void early_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct agent *agent = arg;
    (void)channel;
    if (message->body_case != DRARUN__WIRE__ENVELOPE__BODY_LAUNCH || agent->parent.launch) {
        agent_drop_parent(agent, "it does not speak the protocol of a neighbour");
        return;
    }
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->parent.launch = TAKE_PTR(message->launch);
    agent_join(agent);
}

static void early_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    log_error("%s turned away: %s", channel_peer(channel),
              err->code ? err->text : "it closed the connection");
    if (agent->parent.launch)
        drarun__wire__launch__free_unpacked(TAKE_PTR(agent->parent.launch), NULL);
    channel_free(TAKE_PTR(agent->parent.channel));
}

void agent_parent_take(struct agent *agent, struct channel *channel,
                       const Drarun__Wire__Hello *hello)
{
    struct drarun_error err = {0};
    bool waiting = agent->state == AGENT_IDLE || agent->state == AGENT_PREPARING;
    if (agent->options.pod && pod_check(agent->options.pod, hello, &err) < 0) {
        agent_refuse_take(channel, err.text, err.code);
        return;
    }
    if (!waiting || agent->peers || agent->parent.channel ||
        (agent->parent.assignment && strcmp(hello->job, agent->parent.assignment->uid) != 0)) {
        agent_refuse_take(channel, "a neighbour of another job", EPROTO);
        return;
    }
    agent->parent.channel = channel;
    agent->parent.worker = hello->worker;
    channel_set_callbacks(channel, early_message, early_closed, agent);
}
