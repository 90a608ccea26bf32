/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of the ranks here: which each is bound to, and whether they are enough. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/affinity.h"
#include "lib/base/cgroup.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/topo/cpus.h"
#include "worker/agent/private.h"

/* Those that this process may use, which a cpuset of the container may limit. */
static int read_own_cpus(struct cpus *cpus, struct drarun_error *err)
{
    cpu_set_t own[CPUS_MAX / CPU_SETSIZE];
    if (sched_getaffinity(0, sizeof own, own) < 0)
        return error_set(err, errno, "sched_getaffinity: %s", strerror(errno));
    return cpus_read(-1, own, sizeof own, cpus, err);
}

/* ids for one rank of the launch; the array is the caller's. */
static int choose_cpus(const struct agent *agent, const struct cpus *cpus, uint32_t index,
                       uint32_t **ret_ids, size_t *ret_count, bool *ret_shared,
                       struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    const struct rank_settings settings = agent_settings(agent);
    const struct bind_policy *policy = &agent_job_group_of(job, job->local[index])->bind;
    uint32_t slot = job->wire->local_first_slot + index;
    *ret_shared = false;
    if (policy->kind == BIND_NONE)
        return rank_setting_cpus(&settings, index, cpus, ret_ids, ret_count, err);
    return bind_cpus(policy, cpus, slot, agent_job_ranks_on_cpus(job), ret_ids, ret_count,
                     ret_shared, err);
}

/* It runs, or is to be started. */
static bool is_live(const struct agent *agent, uint32_t rank)
{
    struct rank_result result;
    bool runs = true;
    if (agent_job_group_of(&agent->job, rank)->released)
        return false;
    return !agent->ranks || !ranks_find(agent->ranks, rank, &result, &runs) || runs;
}

/* ---- are they enough? ---- */

/* Ranks are bound to CPUs that somebody has listed, which may be fewer than there are. */
static bool some_have_lists(const struct agent *agent)
{
    const struct agent_job *job = &agent->job;
    const struct rank_settings settings = agent_settings(agent);
    bool some = rank_setting_binds(&settings);
    for (uint32_t g = 0; g < job->group_count && !some; g++)
        some = !job->groups[g]->released && job->groups[g]->bind.kind == BIND_LIST;
    return some;
}

/* The CPUs of the live ranks here, all together; UINT32_MAX when they are not bound to some. */
static uint32_t count_bound_cpus(const struct agent *agent)
{
    const struct agent_job *job = &agent->job;
    struct cpus cpus = {0};
    cpu_set_t all[CPUS_MAX / CPU_SETSIZE] = {0};
    bool some_unbound = false, shared;
    if (!some_have_lists(agent) || read_own_cpus(&cpus, NULL) < 0)
        return UINT32_MAX;
    for (uint32_t i = 0; i < job->local_count; i++) {
        cleanup_free uint32_t *chosen = NULL;
        const uint32_t *ids = agent->rank[i].cpus;
        size_t count = agent->rank[i].cpu_count;
        uint32_t rank = job->local[i];
        if (!is_live(agent, rank))
            continue;
        if (!ids && !agent_job_group_of(job, rank)->spawned) { /* they are bound when they start */
            count = 0;
            choose_cpus(agent, &cpus, i, &chosen, &count, &shared, NULL);
            ids = chosen;
        }
        some_unbound |= !ids || count == 0; /* also after an error, which the start reports */
        for (size_t j = 0; ids && j < count; j++)
            CPU_SET_S(ids[j], sizeof all, all);
    }
    cpus_done(&cpus);
    return some_unbound ? UINT32_MAX : (uint32_t)CPU_COUNT_S(sizeof all, all);
}

bool agent_is_oversubscribed(const struct agent *agent, uint32_t own)
{
    const struct agent_job *job = &agent->job;
    uint32_t cpus = affinity_count();
    /* pods on a node may share its CPUs, and each has a quota of its own */
    uint32_t here = own + (agent->options.pod ? 0 : agent_job_others_on_host(job));
    uint32_t sharing = own + agent_job_others_on_cpus(job);
    if (cpus > 0 && (here > cpus || sharing > cpus))
        return true;
    return here > cgroup_cpu_quota() || own > count_bound_cpus(agent);
}

/* ---- binding ---- */

/* Takes the ids. */
static int keep_cpus(struct agent *agent, uint32_t index, uint32_t **ids, size_t count, bool shared)
{
    struct agent_rank *rank = &agent->rank[index];
    free(rank->cpus);
    rank->cpus = TAKE_PTR(*ids);
    rank->cpu_count = count;
    rank->cpus_shared = shared;
    return agent->servers.pmix && count > 0
               ? pmix_host_set_cpus(agent->servers.pmix, agent->job.local[index], rank->cpus, count)
               : 0;
}

static int bind_launched(struct agent *agent, const struct rank_group *group,
                         const struct cpus *cpus, struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < group->local_count; i++) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0;
        bool shared = false;
        rc = choose_cpus(agent, cpus, group->local_first + i, &ids, &count, &shared, err);
        if (rc == 0)
            rc = keep_cpus(agent, group->local_first + i, &ids, count, shared);
    }
    return rc;
}

static void add_used(uint32_t *used, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        used[ids[i]]++;
}

/* Those that run here, and of the launch those of other workers that have our CPUs: what has ended
 * there is not known, nor which CPUs later ranks there have. */
static int count_used(const struct agent *agent, const struct cpus *cpus, uint32_t *used,
                      struct drarun_error *err)
{
    const struct agent_job *job = &agent->job;
    uint32_t launched = agent_job_ranks_on_cpus(job), here = agent_job_launched_here(job);
    int rc = 0;
    for (uint32_t slot = 0; rc == 0 && slot < launched; slot++) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0;
        bool shared;
        if (slot - job->wire->local_first_slot < here)
            continue;
        rc = bind_cpus(&job->bind, cpus, slot, launched, &ids, &count, &shared, err);
        add_used(used, ids, count);
    }
    for (uint32_t i = 0; i < job->local_count; i++)
        if (agent->rank[i].cpus && is_live(agent, job->local[i]))
            add_used(used, agent->rank[i].cpus, agent->rank[i].cpu_count);
    return rc;
}

/* Each agent chooses for the ranks of all workers that have its CPUs, in the workers' order. */
static int bind_later(struct agent *agent, const struct rank_group *group, const struct cpus *cpus,
                      struct drarun_error *err)
{
    uint32_t before = agent_job_group_before(&agent->job, group);
    cleanup_free uint32_t *used = calloc(CPUS_MAX, sizeof *used);
    int rc = used ? count_used(agent, cpus, used, err)
                  : error_set(err, ENOMEM, "binding: out of memory");
    for (uint32_t i = 0; rc == 0 && i < before + group->local_count; i++) {
        cleanup_free uint32_t *ids = NULL;
        size_t count = 0;
        bool shared = false;
        rc = bind_free_cpus(&group->bind, cpus, used, &ids, &count, &shared, err);
        add_used(used, ids, count);
        if (rc == 0 && i >= before)
            rc = keep_cpus(agent, group->local_first + i - before, &ids, count, shared);
    }
    return rc;
}

int agent_bind_group(struct agent *agent, const struct rank_group *group, struct drarun_error *err)
{
    const struct rank_settings settings = agent_settings(agent);
    struct cpus cpus = {0};
    if (group->bind.kind == BIND_NONE && !rank_setting_binds(&settings))
        return 0;
    int rc = read_own_cpus(&cpus, err);
    if (rc == 0 && group->spawned && group->bind.kind != BIND_NONE)
        rc = bind_later(agent, group, &cpus, err);
    else if (rc == 0)
        rc = bind_launched(agent, group, &cpus, err);
    cpus_done(&cpus);
    return rc;
}

/* What the kernel says of its process, which a cpuset may narrow. */
void agent_report_binding(struct agent *agent, uint32_t index)
{
    const struct agent_rank *known = &agent->rank[index];
    const struct pod *pod = agent->options.pod;
    uint32_t rank = agent->job.local[index];
    CLEANUP(buf_done) struct buf text = BUF_INIT;
    CLEANUP(buf_done) struct buf cpus = BUF_INIT;
    bool found = cpulist_of_process(ranks_pid(agent->ranks, rank), &cpus) == 0 && cpus.data;
    buf_printf(&text, "rank %u on %s", rank, agent->job.host);
    if (pod && pod->node[0] && strcmp(pod->node, agent->job.host) != 0)
        buf_printf(&text, " (node %s)", pod->node);
    buf_printf(&text, ": CPUs %s%s", found ? cpus.data : "not known",
               known->cpu_count == 0 ? " (not bound)"
               : known->cpus_shared  ? " (shared with other ranks)"
                                     : "");
    if (!text.failed)
        agent_send_note(agent, text.data);
}
