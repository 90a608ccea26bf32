/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that come while the job runs (docs/design/037-spawn.md): the launcher tells all agents of
 * the new group. Each checks its share, and when all can start theirs, all do. With it comes which
 * groups have ended. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "worker/agent/private.h"

static struct rank_group *last_group(const struct agent *agent)
{
    return agent->job.groups[agent->job.group_count - 1];
}

static void forget_cpus(struct agent *agent, const struct rank_group *group)
{
    for (uint32_t i = 0; i < group->local_count; i++)
        free(TAKE_PTR(agent->rank[group->local_first + i].cpus));
}

static bool runs_here(const struct agent *agent, const struct rank_group *group)
{
    for (uint32_t i = 0; agent->ranks && i < group->local_count; i++)
        if (ranks_pid(agent->ranks, agent->job.local[group->local_first + i]) > 0)
            return true;
    return false;
}

/* All its ranks have ended, on all agents, and were told: the servers keep nothing for it. */
static void release(struct agent *agent, uint32_t index)
{
    struct agent_job *job = &agent->job;
    struct rank_group *group = index < job->group_count ? job->groups[index] : NULL;
    if (!group || !group->spawned || group->released || agent->spawns.prepared == index ||
        runs_here(agent, group))
        return;
    struct pmi1_host **pmi1 = &agent->servers.pmi1[index];
    if (*pmi1 && !pmi1_host_in_barrier(*pmi1))
        pmi1_host_free(TAKE_PTR(*pmi1));
    if (agent->servers.pmix)
        pmix_host_release_group(agent->servers.pmix, group);
    forget_cpus(agent, group);
    agent_job_release_group(job, group);
}

/* Everything but the job's own list of groups. */
static int prepare(struct agent *agent, struct rank_group *group, struct drarun_error *err)
{
    struct agent_job *job = &agent->job;
    if (agent_reserve_ranks(agent, group->index) < 0)
        return error_set(err, ENOMEM, "out of memory");
    if (group->local_count == 0 && agent->state != AGENT_RUNNING)
        return 0; /* it only passes on what others say */
    if (agent->state != AGENT_RUNNING || !agent->ranks)
        return error_kind(err, DRARUN_ERR_INTERRUPTED, ESHUTDOWN,
                          "worker %u takes no more ranks: those that it had have ended",
                          job->worker);
    uint32_t own = (uint32_t)ranks_running(agent->ranks) + group->local_count;
    int rc = agent_check_programs(agent, group, err);
    if (rc == 0)
        rc = agent_check_room(agent, group->local_count, group->map.ranks, err);
    if (rc == 0)
        rc = agent_bind_group(agent, group, err);
    if (rc == 0) {
        group->oversubscribed = group->local_count > 0 && agent_is_oversubscribed(agent, own);
        rc = agent_open_group(agent, group, err);
    }
    if (rc == 0 && ranks_add(agent->ranks, group->local_count) < 0) {
        agent_close_group(agent, group);
        rc = error_set(err, ENOMEM, "out of memory");
    }
    if (rc < 0)
        forget_cpus(agent, group);
    agent->spawns.opened = rc == 0;
    return rc;
}

static void send_ready(struct agent *agent, uint32_t index, const struct drarun_error *refusal)
{
    Drarun__Wire__GroupReady ready = DRARUN__WIRE__GROUP_READY__INIT;
    Drarun__Wire__Failure failure = DRARUN__WIRE__FAILURE__INIT;
    ready.index = index;
    if (refusal) {
        failure.kind = refusal->kind;
        failure.code = refusal->code;
        failure.text = unconst(refusal->text);
        failure.rank = -1;
        ready.refusal = &failure;
    }
    Drarun__Wire__Envelope envelope = WIRE_ENVELOPE(GROUP_READY, group_ready, &ready);
    agent_send(agent, &envelope);
}

void agent_group_come(struct agent *agent, Drarun__Wire__Envelope *message)
{
    struct drarun_error err = {0};
    uint32_t index = message->group->index;
    message->body_case = DRARUN__WIRE__ENVELOPE__BODY__NOT_SET; /* ours now */
    agent->spawns.opened = false;
    for (size_t i = 0; i < message->group->n_ended; i++)
        release(agent, message->group->ended[i]);
    int rc = agent_job_add_group_take(&agent->job, TAKE_PTR(message->group), &err);
    if (rc == 0) {
        rc = prepare(agent, last_group(agent), &err);
        if (rc < 0)
            agent_job_drop_group(&agent->job);
        else
            agent->spawns.prepared = index;
    }
    send_ready(agent, index, rc < 0 ? &err : NULL);
}

/* The ranks of the launch, whose first group is 0, are never asked for. */
static bool is_prepared(const struct agent *agent, uint32_t index)
{
    return index > 0 && agent->spawns.prepared == index;
}

void agent_group_start(struct agent *agent, uint32_t index)
{
    struct drarun_error err = {0};
    if (!is_prepared(agent, index))
        return;
    agent->spawns.prepared = 0;
    struct rank_group *group = last_group(agent);
    int rc = agent->state == AGENT_RUNNING ? agent_start_group(agent, group, &err) : 0;
    if (rc == 0) {
        agent_spawn_started(agent, group);
        return;
    }
    agent_fail(agent, &err);
}

void agent_group_cancel(struct agent *agent, uint32_t index)
{
    if (!is_prepared(agent, index))
        return;
    agent->spawns.prepared = 0;
    struct rank_group *group = last_group(agent);
    if (agent->spawns.opened) {
        ranks_drop(agent->ranks, group->local_count);
        agent_close_group(agent, group);
        forget_cpus(agent, group);
    }
    agent_job_drop_group(&agent->job);
}
