/* SPDX-License-Identifier: Apache-2.0 */
/* Who may speak to the agent: one launcher, the newest, and its parent in the tree. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"
#include "worker/agent/private.h"

/* ---- launchers ---- */

/* hello: NULL on a socketpair, where it comes later. */
static void control_take(struct agent *agent, struct channel *channel,
                         const Drarun__Wire__Hello *hello)
{
    struct agent_launcher *launcher = &agent->launcher;
    if (launcher->orphan_clock)
        event_del(launcher->orphan_clock);
    if (launcher->await_clock)
        event_del(launcher->await_clock);
    launcher->channel = channel;
    launcher->lost = false;
    launcher->generation = hello ? hello->generation : 0;
    /* what it did not launch it cannot go on with; it can end it */
    launcher->heir = agent->state != AGENT_IDLE;
    if (launcher->heir)
        agent_forgive_output(agent);
    channel_set_callbacks(channel, agent_control_message, agent_control_closed, agent);
    agent_send_hello(agent);
    /* in a pod always: the launcher awaits it */
    bool asked = hello && hello->fabric == DRARUN__WIRE__FABRIC__FABRIC_OPEN;
    if (hello && !launcher->heir && (agent->options.pod || asked))
        agent_send_inspection(agent, hello);
    if (agent_collect_drop(agent)) /* the one before it did not take them all */
        agent_finish(agent);
    else if (agent->state == AGENT_DONE)
        agent_send_done(agent);
}

static void replace(struct agent *agent, const Drarun__Wire__Hello *hello)
{
    char why[160];
    snprintf(why, sizeof why,
             "a newer launcher (generation %" PRIu64 ", this one is %" PRIu64 ") has taken over",
             hello->generation, agent->launcher.generation);
    agent_refuse_take(TAKE_PTR(agent->launcher.channel), why, ESTALE);
}

/* 0, or why this launcher is not served. */
static int check_launcher(const struct agent *agent, const Drarun__Wire__Hello *hello,
                          struct drarun_error *err)
{
    bool served = agent->launcher.channel && !agent->launcher.lost;
    int rc = agent->options.pod ? pod_check(agent->options.pod, hello, err) : 0;
    if (rc < 0)
        return rc;
    if (hello->generation < agent->launcher.generation)
        return error_set(err, ESTALE,
                         "this agent serves a newer launcher: generation %" PRIu64
                         ", the caller's is %" PRIu64,
                         agent->launcher.generation, hello->generation);
    if (served && hello->generation == agent->launcher.generation)
        return error_set(err, EBUSY, "this agent already has a launcher");
    return 0;
}

static void launcher_take(struct agent *agent, struct channel *channel,
                          const Drarun__Wire__Hello *hello)
{
    struct drarun_error err = {0};
    if (check_launcher(agent, hello, &err) < 0) {
        agent_refuse_take(channel, err.text, err.code);
        return;
    }
    if (agent->options.entry && hello_check_release(hello, &err) < 0) {
        log_error("worker 0 (%s): %s", agent->options.entry, err.text);
        agent->launcher.other_release = true;
    }
    if (agent->launcher.channel && !agent->launcher.lost)
        replace(agent, hello);
    channel_free(TAKE_PTR(agent->launcher.channel));
    agent_reach_drop(agent);
    if (agent->state == AGENT_IDLE)
        agent_drop_parent(agent, "its launcher was replaced");
    control_take(agent, channel, hello);
}

/* ---- the door ---- */

void agent_guest_take(struct channel *channel, const Drarun__Wire__Hello *hello, void *arg)
{
    struct agent *agent = arg;
    if (hello->role == DRARUN__WIRE__ROLE__ROLE_LAUNCHER)
        launcher_take(agent, channel, hello);
    else if (hello->role == DRARUN__WIRE__ROLE__ROLE_PEER)
        agent_parent_take(agent, channel, hello);
    else
        agent_refuse_take(channel, "neither a launcher nor a neighbour", EPROTO);
}

/* ---- an entry point's agent ---- */

static void on_nobody(evutil_socket_t fd, short what, void *arg)
{
    struct agent *agent = arg;
    (void)fd, (void)what;
    log_error("worker 0 (%s) has not connected within %" PRId64
              " s (--start-timeout): does its pod run "
              "drarun join with as many workers, and do network policies let it reach this port?",
              agent->options.entry, agent->options.await_ms / 1000);
    agent_leave(agent, 70);
}

static int await_launcher(struct agent *agent, struct drarun_error *err)
{
    struct timeval limit = timeval_from_ms(agent->options.await_ms);
    if (!agent->options.entry)
        return 0;
    agent->launcher.await_clock = evtimer_new(agent->base, on_nobody, agent);
    if (!agent->launcher.await_clock || evtimer_add(agent->launcher.await_clock, &limit) < 0)
        return error_set(err, ENOMEM, "out of memory");
    return 0;
}

int agent_open_connections(struct agent *agent, struct drarun_error *err)
{
    struct agent_options *o = &agent->options;
    if (o->control_fd >= 0) {
        struct channel *channel =
            channel_new_take(agent->base, take_fd(&o->control_fd), agent_control_message,
                             agent_control_closed, agent);
        if (!channel)
            return error_set(err, ENOMEM, "out of memory");
        control_take(agent, channel, NULL);
    }
    if (o->listen_fd >= 0) {
        tls_ignore_configuration();
        agent->dial_tls = tls_context_new(o->key, TLS_CLIENT, err);
        if (!agent->dial_tls)
            return -err->code;
        agent->door = listen_open_take(agent->base, take_fd(&o->listen_fd), o->key,
                                       agent_guest_take, agent, err);
        if (!agent->door)
            return -err->code;
    }
    return await_launcher(agent, err);
}
