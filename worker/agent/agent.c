/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "worker/agent/private.h"
#include "worker/mpirun/remote.h"

/* The pod is being taken away: the launcher, who knows its grace period, ends all workers' ranks.
 */
static bool tell_evicted(struct agent *agent)
{
    Drarun__Wire__Evicted message = DRARUN__WIRE__EVICTED__INIT;
    if (!agent->options.pod || !agent->launcher.channel || agent->launcher.lost)
        return false;
    message.reason = unconst("its pod got SIGTERM: it was evicted, preempted or deleted");
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
    error_kind(&err, DRARUN_ERR_INFRASTRUCTURE, ESHUTDOWN, "the agent got SIGTERM");
    agent_send_failure(agent, &err);
    agent_end_ranks(agent, false);
    if (agent->state == AGENT_DONE && agent->launcher.lost)
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
    agent->session.mark = -1;
    agent->inspection.links_end_ms = clock_ms() + AGENT_LINKS_MS;
    late_aborts_init(&agent->late_aborts);
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
    for (uint32_t i = 0; agent->servers.pmi1 && i < agent->job.group_count; i++)
        pmi1_host_free(agent->servers.pmi1[i]);
    free(agent->servers.pmi1);
    pmix_host_free(agent->servers.pmix);
    remote_free(agent->servers.remote);
    peers_free(agent->peers);
    coll_free(agent->coll);
    channel_free(agent->launcher.channel);
    channel_free(agent->parent.channel);
    if (agent->parent.launch)
        drarun__wire__launch__free_unpacked(agent->parent.launch, NULL);
    if (agent->parent.assignment)
        drarun__wire__assignment__free_unpacked(agent->parent.assignment, NULL);
    if (agent->setting)
        drarun__wire__worker_setting__free_unpacked(agent->setting, NULL);
    if (agent->parent.due)
        event_free(agent->parent.due);
    if (agent->launcher.orphan_clock)
        event_free(agent->launcher.orphan_clock);
    if (agent->launcher.await_clock)
        event_free(agent->launcher.await_clock);
    listen_close(agent->door);
    tls_context_free(agent->dial_tls);
    if (agent->sigterm)
        event_free(agent->sigterm);
    if (agent->looks.library_clock)
        event_free(agent->looks.library_clock);
    if (agent->looks.running_clock)
        event_free(agent->looks.running_clock);
    topology_free(agent->servers.topology);
    close_fd(&agent->options.control_fd);
    close_fd(&agent->options.listen_fd);
    for (uint32_t i = 0; agent->rank && i < agent->job.local_count; i++) {
        free(agent->rank[i].cpus);
        free(agent->rank[i].refusal);
    }
    free(agent->rank);
    free(agent->app_connected);
    if (agent->late_abort_clock)
        event_free(agent->late_abort_clock);
    late_aborts_done(&agent->late_aborts);
    strlist_done(&agent->environment);
    agent_job_done(&agent->job);
    free(agent);
}
