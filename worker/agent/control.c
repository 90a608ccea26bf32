/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher says, and that it is gone. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"
#include "worker/agent/private.h"
#include "worker/tree/pmix_version.h"

/* The parent is dialled by its own first, and so on up to worker 0, and each prepares the job
 * before it dials: at least this, or as long as the launcher waits for that. */
#define PARENT_DEADLINE_MS 30000u

/* False when this agent has a job. */
static bool begin_job(struct agent *agent)
{
    struct drarun_error err = {0};
    if (agent->state == AGENT_IDLE) {
        agent_reach_drop(agent);
        agent_enter(agent, AGENT_PREPARING);
        return true;
    }
    error_set(&err, EPROTO, "a second launch message");
    agent_fail(agent, &err);
    return false;
}

static void on_launch(struct agent *agent, Drarun__Wire__Envelope *message)
{
    if (!begin_job(agent))
        return;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->setting = TAKE_PTR(message->launch->own);
    agent_connect_take(agent, TAKE_PTR(message->launch));
}

static uint32_t parent_deadline_ms(const Drarun__Wire__Assignment *assignment)
{
    return assignment->prepare_ms > PARENT_DEADLINE_MS ? assignment->prepare_ms
                                                       : PARENT_DEADLINE_MS;
}

static void on_parent_overdue(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    struct drarun_error err = {0};
    (void)fd, (void)what;
    error_kind(
        &err, DRARUN_ERR_INFRASTRUCTURE, ETIMEDOUT,
        "worker %u got no connection from its neighbour within %u s: can the agents reach each "
        "other's ports?",
        agent->parent.assignment->worker, parent_deadline_ms(agent->parent.assignment) / 1000);
    agent_fail(agent, &err);
}

static void on_assignment(struct agent *agent, Drarun__Wire__Envelope *message)
{
    struct timeval limit = timeval_from_ms(parent_deadline_ms(message->assignment));
    struct drarun_error err = {0};
    if (!begin_job(agent))
        return;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->parent.assignment = TAKE_PTR(message->assignment);
    agent->setting = TAKE_PTR(agent->parent.assignment->own);
    agent->parent.due = evtimer_new(agent->base, on_parent_overdue, agent);
    if (!agent->parent.due || evtimer_add(agent->parent.due, &limit) < 0) {
        error_set(&err, ENOMEM, "out of memory");
        agent_fail(agent, &err);
        return;
    }
    agent_join(agent);
}

static void on_end(struct agent *agent, const Drarun__Wire__End *end)
{
    log_debug("agent %u: asked to end: %s", agent->tree.self, end->reason);
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
    agent->launcher.asked = ping->ask;
    if (agent->servers.pmix)
        pmix_host_drain(agent->servers.pmix);
    ranks_settle(agent->ranks);
}

static void take_input(struct agent *agent, const Drarun__Wire__Input *input)
{
    struct drarun_error err = {0};
    int rc = 0;
    if (input->data.len > 0)
        rc = ranks_input(agent->ranks, input->data.data, input->data.len);
    if (rc != -ENOMEM && input->eof)
        rc = ranks_input(agent->ranks, NULL, 0);
    if (rc != -ENOMEM)
        return; /* nobody reads it any more, at most */
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ENOMEM, "out of memory for standard input");
    agent_fail(agent, &err);
}

/* Of the user's own mpirun, which is rank 0, the other workers' ranks are our servers. A signal
 * that is passed on is mpirun's: it knows what its processes are to get, and most would end a
 * server. */
static void take_signal(struct agent *agent, int signo)
{
    bool stops = signo == SIGSTOP || signo == SIGCONT;
    if (agent->ranks && signo > 0 && signo < NSIG && (stops || !agent_mpirun_serves(agent)))
        ranks_signal(agent->ranks, signo);
    if (signo == SIGCONT)
        agent_release_ranks(agent);
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
        if (ranks)
            take_input(agent, message->input);
        else if (message->input->data.len > 0) /* no rank is here: it has room for more */
            agent_on_input_done(agent, message->input->data.len);
        return true;
    case DRARUN__WIRE__ENVELOPE__BODY_SIGNAL:
        take_signal(agent, message->signal->signo);
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
            agent_fail(agent, &err);
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
            agent_enter(agent, AGENT_RUNNING);
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
    case DRARUN__WIRE__ENVELOPE__BODY_MEET_REPLY:
        agent_met(agent, message->meet_reply);
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
        agent_fail(agent, &err);
    }
}

/* The launcher is gone. After the end that is how it dismisses us; before, another may come. */
void agent_control_closed(struct channel *channel, const struct drarun_error *err, void *arg)
{
    struct agent *agent = arg;
    const char *why = err->code ? err->text : "connection closed";
    (void)channel;
    agent->launcher.lost = true;
    agent_forgive_output(agent);
    agent_reach_drop(agent);
    agent_names_drop(agent);
    if (agent_is_kept(agent) &&
        agent->state == AGENT_IDLE) { /* it only wanted to know what we hold */
        agent->launcher.generation = 0;
        return;
    }
    if (agent_is_kept(agent))
        agent_close_door(agent);
    bool collecting = agent_collect_drop(agent); /* nobody takes files any more */
    if (agent_wait_for_heir(agent))
        log_note("the launcher is gone (%s): waiting for another", why);
    if (collecting)
        agent_finish(agent);
    if (collecting || agent_is_orphan(agent))
        return;
    if (agent->state == AGENT_DONE || agent->state == AGENT_IDLE) {
        if (err->code == ENOMEM) /* it is not the launcher that has ended */
            log_error("%s", err->text);
        agent_leave(agent, agent->state == AGENT_DONE ? 0 : 70);
        return;
    }
    log_error("the launcher is gone (%s): ending its ranks", why);
    agent_end_ranks(agent, true);
    if (agent->state == AGENT_DONE)
        agent_leave(agent, 70);
}
