/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"
#include "worker/agent/private.h"
#include "worker/tree/pmix_version.h"
#include "worker/mpirun/remote.h"

/* The parent is dialled by its own first, and so on up to worker 0. */
#define PARENT_DEADLINE_MS 30000
/* Of a neighbour, and in pods: longer than the launcher bears it (launcher/job/job.c), who knows
 * which of the two is gone. */
#define SILENCE_MS 35000
#define SILENCE_POD_MS 15000

static const char *const state_names[] = {
    [AGENT_IDLE] = "idle",       [AGENT_PREPARING] = "preparing", [AGENT_READY] = "ready",
    [AGENT_RUNNING] = "running", [AGENT_ENDING] = "ending",       [AGENT_DONE] = "done",
};

static bool is_kept(const struct agent *agent)
{
    return agent->options.pod && agent->options.pod->kept;
}

/* Whoever dials from now on waits for the agent of the next job: the guard's socket still listens.
 */
static void close_door(struct agent *agent)
{
    listen_close(TAKE_PTR(agent->door));
}

static void enter(struct agent *agent, enum agent_state state)
{
    log_debug("agent %u: %s -> %s", agent->tree.self, state_names[agent->state],
              state_names[state]);
    agent->state = state;
    if (state == AGENT_DONE && is_kept(agent))
        close_door(agent);
}

void agent_leave(struct agent *agent, int status)
{
    agent->status = status;
    event_base_loopbreak(agent->base);
}

void agent_end_ranks(struct agent *agent, bool at_once)
{
    agent->out_of_order = true;
    if (agent->state == AGENT_DONE)
        return;
    if (agent->state == AGENT_RUNNING)
        enter(agent, AGENT_ENDING);
    if (agent->ranks && agent->state == AGENT_ENDING)
        ranks_end(agent->ranks, at_once);
    else if (agent->state != AGENT_ENDING) {
        /* no rank has started: done at once */
        agent_clean(agent);
        enter(agent, AGENT_DONE);
        agent_send_done(agent);
    }
}

/* Ours has failed in a way that is no rank's doing. */
static void fail(struct agent *agent, const struct drarun_error *err)
{
    agent_send_failure(agent, err, -1);
    agent_end_ranks(agent, true);
}

void agent_finish(struct agent *agent)
{
    agent_clean(agent);
    enter(agent, AGENT_DONE);
    agent_send_done(agent);
    if (agent->control_lost && !agent_is_orphan(agent))
        agent_leave(agent, 70);
}

void agent_on_all_ended(void *arg)
{
    if (!agent_collect_begin(arg))
        agent_finish(arg);
}

static void on_prepared(struct agent *agent)
{
    enter(agent, AGENT_READY);
    agent_send_ready(agent);
    if (agent->job.wire->start) {
        enter(agent, AGENT_RUNNING);
        agent_start(agent);
    }
}

/* ---- neighbours ---- */

static void peers_message(void *arg, uint32_t from, const Drarun__Wire__Envelope *message)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    int rc = 0;
    if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_COLLECTIVE)
        rc = coll_message(agent->coll, from, message->collective, &err);
    else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED && agent->remote &&
             remote_routed(agent->remote, message->routed))
        rc = 0;
    else if (message->body_case == DRARUN__WIRE__ENVELOPE__BODY_ROUTED && agent->pmix)
        pmix_host_routed(agent->pmix, message->routed);
    else
        rc = error_set(&err, EPROTO, "a message of kind %d", message->body_case);
    if (rc < 0) {
        error_prefix(&err, "worker %u", from);
        fail(agent, &err);
    }
}

static void peers_ready(void *arg)
{
    on_prepared(arg);
}

static void peers_lost(void *arg, const struct drarun_error *err)
{
    struct agent *agent = arg;
    /* at the end everyone leaves in turn */
    if (agent->state != AGENT_DONE)
        fail(agent, err);
}

static const struct peers_owner peers_owner = {
    .message = peers_message,
    .ready = peers_ready,
    .lost = peers_lost,
};

/* ---- the launcher ---- */

static void prepare_take(struct agent *agent, Drarun__Wire__Launch *launch)
{
    struct drarun_error err = {0};
    int rc = agent_prepare_take(agent, launch, &err);
    if (rc == 0) {
        struct peers_owner owner = peers_owner;
        owner.arg = agent;
        owner.silence_ms = agent->options.pod ? SILENCE_POD_MS : SILENCE_MS;
        agent->peers = peers_new(agent->base, &agent->job, &agent->tree, agent->dial_tls, &owner);
        rc = agent->peers ? 0 : error_set(&err, ENOMEM, "out of memory");
    }
    if (rc == 0 && agent->early.channel)
        rc = peers_parent_take(agent->peers, TAKE_PTR(agent->early.channel), agent->early.worker,
                               &err);
    if (rc == 0)
        rc = peers_connect(agent->peers, &err);
    if (rc < 0)
        fail(agent, &err);
}

/* Puts together what the parent handed on and what the launcher assigned, once both are there. */
void agent_join(struct agent *agent)
{
    Drarun__Wire__Assignment *own = agent->assignment;
    Drarun__Wire__Launch *launch = agent->early.launch;
    if (!own || !launch || agent->state != AGENT_PREPARING || agent->peers)
        return;
    if (strcmp(launch->uid, own->uid) != 0 || launch->attempt != own->attempt) {
        agent_drop_parent(agent, "a neighbour of another job");
        return;
    }
    event_del(agent->parent_due);
    agent->early.launch = NULL;
    launch->worker = own->worker;
    launch->local_first_slot = own->local_first_slot;
    char *dir = launch->session_dir;
    launch->session_dir = own->session_dir;
    own->session_dir = dir;
    Drarun__Wire__WorkerSetting *setting = launch->own;
    launch->own = own->own;
    own->own = setting;
    prepare_take(agent, launch);
}

/* False when this agent has a job. */
static bool begin_job(struct agent *agent)
{
    struct drarun_error err = {0};
    if (agent->state == AGENT_IDLE) {
        agent_reach_drop(agent);
        enter(agent, AGENT_PREPARING);
        return true;
    }
    error_set(&err, EPROTO, "a second launch message");
    fail(agent, &err);
    return false;
}

static void on_launch(struct agent *agent, Drarun__Wire__Envelope *message)
{
    if (!begin_job(agent))
        return;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    prepare_take(agent, TAKE_PTR(message->launch));
}

static void on_parent_overdue(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT,
               "worker %u was not dialled by its neighbour within %d s: can the agents reach each "
               "other's ports?",
               agent->assignment->worker, PARENT_DEADLINE_MS / 1000);
    fail(agent, &err);
}

static void on_assignment(struct agent *agent, Drarun__Wire__Envelope *message)
{
    struct timeval limit = timeval_from_ms(PARENT_DEADLINE_MS);
    struct drarun_error err = {0};
    if (!begin_job(agent))
        return;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->assignment = TAKE_PTR(message->assignment);
    agent->parent_due = evtimer_new(agent->base, on_parent_overdue, agent);
    if (!agent->parent_due || evtimer_add(agent->parent_due, &limit) < 0) {
        error_set(&err, ENOMEM, "out of memory");
        fail(agent, &err);
        return;
    }
    agent_join(agent);
}

static void on_end(struct agent *agent, const Drarun__Wire__End *end)
{
    log_debug("agent %u: told to end: %s", agent->tree.self, end->reason);
    agent_end_ranks(agent, end->at_once);
}

/* The launcher has ended, and so do we. */
static void on_ended(struct agent *agent, const Drarun__Wire__Ended *ended)
{
    const char *text = ended->text;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        length--;
    if (length > 0 && agent->options.entry && agent->options.pod->worker != 0) /* who has said it */
        log_error("the job has ended with %d: %.*s", ended->status, (int)length, text);
    agent_clean(agent);
    agent_leave(agent, ended->status & 0xff);
}

static void on_ping(struct agent *agent, const Drarun__Wire__Ping *ping)
{
    if (ping->ask == 0 || !agent->ranks) {
        agent_send_pong(agent, ping->ask);
        return;
    }
    agent->settle_ask = ping->ask;
    if (agent->pmix)
        pmix_host_drain(agent->pmix);
    ranks_settle(agent->ranks);
}

/* Messages that need running ranks; false for other kinds. */
static bool on_rank_message(struct agent *agent, const Drarun__Wire__Envelope *message)
{
    struct ranks *ranks = agent->ranks;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT_ACK:
        if (ranks)
            ranks_output_done(ranks, message->output_ack->bytes);
        return true;
    case DRARUN__WIRE__ENVELOPE__BODY_OUTPUT_CLOSED:
        if (ranks)
            ranks_output_closed(ranks, (enum rank_stream)message->output_closed->stream);
        return true;
    case DRARUN__WIRE__ENVELOPE__BODY_INPUT:
        if (ranks && message->input->data.len > 0)
            ranks_input(ranks, message->input->data.data, message->input->data.len);
        if (ranks && message->input->eof)
            ranks_input(ranks, NULL, 0);
        return true;
    case DRARUN__WIRE__ENVELOPE__BODY_SIGNAL:
        if (ranks && message->signal->signo > 0 && message->signal->signo < NSIG)
            ranks_signal(ranks, message->signal->signo);
        if (message->signal->signo == SIGCONT)
            agent_release_ranks(agent);
        return true;
    default:
        return false;
    }
}

void agent_control_message(struct channel *channel, Drarun__Wire__Envelope *message, void *arg)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    (void)channel;
    if (on_rank_message(agent, message))
        return;
    switch (message->body_case) {
    case DRARUN__WIRE__ENVELOPE__BODY_HELLO:
        if (hello_check(message->hello, pmix_version(), &err) < 0)
            fail(agent, &err);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_REACH:
        agent_reach_take(agent, message->reach);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_LAUNCH:
        on_launch(agent, message);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_ASSIGNMENT:
        on_assignment(agent, message);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_START:
        if (agent->state == AGENT_READY) {
            enter(agent, AGENT_RUNNING);
            agent_start(agent);
        }
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_END:
        on_end(agent, message->end);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_VITALS_REQUEST:
        agent_send_vitals(agent, message->vitals_request->ranks);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_SPAWN_REFUSED:
        agent_spawn_refused(agent, message->spawn_refused);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_NAME_REPLY:
        agent_name_answered(agent, message->name_reply);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP:
        agent_group_come(agent, message);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP_START:
        agent_group_start(agent, message->group_start->index);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_GROUP_CANCEL:
        agent_group_cancel(agent, message->group_cancel->index);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_RELEASE:
        if (agent->ranks)
            ranks_release(agent->ranks);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_ENDED:
        on_ended(agent, message->ended);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_PING:
        on_ping(agent, message->ping);
        break;
    case DRARUN__WIRE__ENVELOPE__BODY_FILE_TAKEN:
        if (agent_collect_taken(agent))
            agent_finish(agent);
        break;
    default:
        error_set(&err, EPROTO, "a message of kind %d from the launcher", message->body_case);
        fail(agent, &err);
    }
}

/* The launcher is gone. After the end that is how it dismisses us; before, another may come. */
void agent_control_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    const char *why = err->code ? err->text : "connection closed";
    (void)channel;
    agent->control_lost = true;
    agent_reach_drop(agent);
    agent_names_drop(agent);
    if (is_kept(agent) && agent->state == AGENT_IDLE) { /* it only wanted to know what we hold */
        agent->generation = 0;
        return;
    }
    if (is_kept(agent))
        close_door(agent);
    bool collecting = agent_collect_drop(agent); /* nobody takes files any more */
    if (agent_wait_for_heir(agent))
        log_note("the launcher is gone (%s): waiting for another", why);
    if (collecting)
        agent_finish(agent);
    if (collecting || agent_is_orphan(agent))
        return;
    if (agent->state == AGENT_DONE || agent->state == AGENT_IDLE) {
        agent_leave(agent, agent->state == AGENT_DONE ? 0 : 70);
        return;
    }
    log_error("the launcher is gone (%s): ending its ranks", why);
    agent_end_ranks(agent, true);
    if (agent->state == AGENT_DONE)
        agent_leave(agent, 70);
}

/* The pod is being taken away: the launcher, who knows its grace period, ends all workers' ranks.
 */
static bool tell_evicted(struct agent *agent)
{
    Drarun__Wire__Evicted message = DRARUN__WIRE__EVICTED__INIT;
    if (!agent->options.pod || !agent->control || agent->control_lost)
        return false;
    message.reason = (char *)"its pod was told to end (SIGTERM): evicted, preempted or deleted";
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(EVICTED, evicted, &message);
    agent_send(agent, &envelope);
    return true;
}

static void on_sigterm(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    agent->told_to_end = true;
    bool evicted = tell_evicted(agent);
    if (agent->state == AGENT_IDLE && !evicted) {
        agent_leave(agent, 0);
        return;
    }
    if (evicted)
        return;
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ESHUTDOWN, "the agent was told to end (SIGTERM)");
    agent_send_failure(agent, &err, -1);
    agent_end_ranks(agent, false);
    if (agent->state == AGENT_DONE && agent->control_lost)
        agent_leave(agent, 70);
}

struct agent *agent_new(struct event_base *base, const struct agent_options *options,
                        struct drarun_error *err)
{
    struct agent *agent = calloc(1, sizeof *agent);
    if (!agent) {
        error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    agent->base = base;
    agent->options = *options;
    agent->state = AGENT_IDLE;
    agent->sigterm = evsignal_new(base, SIGTERM, on_sigterm, agent);
    int rc = agent->sigterm && evsignal_add(agent->sigterm, NULL) == 0
                 ? agent_open_connections(agent, err)
                 : error_set(err, ENOMEM, "out of memory");
    if (rc < 0) {
        agent_free(agent);
        return NULL;
    }
    return agent;
}

int agent_run(struct agent *agent)
{
    agent->status = 70;
    event_base_dispatch(agent->base);
    return agent->status;
}

void agent_free(struct agent *agent)
{
    if (!agent)
        return;
    agent_drop_inspection(agent);
    agent_reach_drop(agent);
    agent_collect_free(agent);
    agent_clean(agent);
    ranks_free(agent->ranks);
    agent_spawn_drop(agent);
    for (uint32_t i = 0; agent->pmi1 && i < agent->job.group_count; i++)
        pmi1_host_free(agent->pmi1[i]);
    free(agent->pmi1);
    pmix_host_free(agent->pmix);
    remote_free(agent->remote);
    peers_free(agent->peers);
    coll_free(agent->coll);
    channel_free(agent->control);
    channel_free(agent->early.channel);
    if (agent->early.launch)
        drarun__wire__launch__free_unpacked(agent->early.launch, NULL);
    if (agent->assignment)
        drarun__wire__assignment__free_unpacked(agent->assignment, NULL);
    if (agent->parent_due)
        event_free(agent->parent_due);
    if (agent->orphan_clock)
        event_free(agent->orphan_clock);
    if (agent->await_clock)
        event_free(agent->await_clock);
    listen_close(agent->door);
    tls_context_free(agent->dial_tls);
    if (agent->sigterm)
        event_free(agent->sigterm);
    if (agent->look)
        event_free(agent->look);
    if (agent->still_running)
        event_free(agent->still_running);
    topology_free(agent->topology);
    close_fd(&agent->options.control_fd);
    close_fd(&agent->options.listen_fd);
    for (uint32_t i = 0; agent->rank && i < agent->job.local_count; i++) {
        free(agent->rank[i].cpus);
        free(agent->rank[i].refusal);
    }
    free(agent->rank);
    free(agent->app_connected);
    if (agent->late_abort.timer)
        event_free(agent->late_abort.timer);
    free(agent->late_abort.text);
    strlist_done(&agent->environment);
    agent_job_done(&agent->job);
    free(agent);
}
