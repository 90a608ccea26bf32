/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait for a debugger (docs/debuggers.md). An agent says so to the others when all of
 * its ranks of a group wait; when all of the group do, each tells its tools by one
 * PMIX_READY_FOR_DEBUG. Tools let them go on by PMIX_DEBUGGER_RELEASE, which goes the way of any
 * event, or the user by SIGCONT. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

struct waiting {
    struct waiting *next;
    const struct rank_group *group;
    uint32_t here;  /* ranks of this agent that wait */
    uint32_t count; /* ranks of agents whose ranks all wait */
    bool told;      /* tools of this agent */
    bool rank[];    /* those that wait, by their place among the group's here */
};

static struct waiting *waiting_of(struct pmix_host *host, const struct rank_group *group)
{
    struct waiting *waiting = host->waiting;
    while (waiting && waiting->group != group)
        waiting = waiting->next;
    if (waiting)
        return waiting;
    waiting = calloc(1, sizeof *waiting + group->local_count * sizeof *waiting->rank);
    if (!waiting) {
        log_error("PMIx: out of memory: tools are not notified that ranks wait for a debugger");
        return NULL;
    }
    waiting->group = group;
    waiting->next = host->waiting;
    host->waiting = waiting;
    return waiting;
}

void pmix_drop_waiting(struct pmix_host *host)
{
    while (host->waiting) {
        struct waiting *next = host->waiting->next;
        free(host->waiting);
        host->waiting = next;
    }
}

void pmix_forget_waiting(struct pmix_host *host, const struct rank_group *group)
{
    struct waiting **at = &host->waiting;
    while (*at && (*at)->group != group)
        at = &(*at)->next;
    struct waiting *gone = *at;
    if (gone)
        *at = gone->next;
    free(gone);
}

static const char *breakpoint_of(const struct rank_group *group)
{
    switch (group->stop_at) {
    case DRARUN__WIRE__STOP_AT__STOP_AT_EXEC:
        return "exec";
    case DRARUN__WIRE__STOP_AT__STOP_AT_INIT:
        return "pmix-init"; /* as libpmix says itself */
    case DRARUN__WIRE__STOP_AT__STOP_AT_APP:
        return "mpi-init"; /* as Open MPI does */
    default:
        return "unknown";
    }
}

static void release(pmix_status_t status, void *cbdata)
{
    pmix_info_t *info = cbdata;
    (void)status;
    PMIX_INFO_FREE(info, 2);
}

/* To what is connected here. libpmix keeps it for tools that ask for such events later. */
static void notify_here(pmix_status_t code, const pmix_proc_t *source, const char *breakpoint)
{
    pmix_info_t *info;
    PMIX_INFO_CREATE(info, 2);
    if (!info) {
        log_error("PMIx: out of memory: %s is not notified", PMIx_Error_string(code));
        return;
    }
    PMIX_INFO_LOAD(&info[0], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_BREAKPOINT, breakpoint, PMIX_STRING);
    pmix_status_t status =
        PMIx_Notify_event(code, source, PMIX_RANGE_LOCAL, info, 2, release, info);
    if (status == PMIX_SUCCESS)
        return;
    log_error("PMIx: %s is not notified: %s", PMIx_Error_string(code), PMIx_Error_string(status));
    release(status, info);
}

static void tell_tools(struct pmix_host *host, struct waiting *waiting)
{
    pmix_proc_t ranks;
    if (waiting->told || !host->started || waiting->count < waiting->group->map.ranks)
        return;
    waiting->told = true;
    PMIX_LOAD_PROCID(&ranks, waiting->group->nspace, PMIX_RANK_WILDCARD);
    notify_here(PMIX_READY_FOR_DEBUG, &ranks, breakpoint_of(waiting->group));
}

void pmix_tell_waiting(struct pmix_host *host)
{
    for (struct waiting *waiting = host->waiting; waiting; waiting = waiting->next)
        tell_tools(host, waiting);
}

/* All ranks of the group here wait. */
static void all_wait_here(struct pmix_host *host, struct waiting *waiting)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Notify notify = DRARUN__WIRE__NOTIFY__INIT;
    notify.code = PMIX_READY_FOR_DEBUG;
    notify.rank = host->job->local[waiting->group->local_first];
    notify.range = PMIX_RANGE_RM;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_NOTIFY;
    message.notify = &notify;
    if (host->tree->size > 1)
        host->owner.route(host->owner.arg, &message, true);
    waiting->count += waiting->group->local_count;
    tell_tools(host, waiting);
}

bool pmix_is_waiting(const Drarun__Wire__Routed *message)
{
    return message->body_case == DRARUN__WIRE__ROUTED__BODY_NOTIFY &&
           message->notify->code == PMIX_READY_FOR_DEBUG && !message->notify->nspace[0];
}

void pmix_others_wait(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    uint32_t rank = message->notify->rank;
    if (rank >= host->job->map.ranks)
        return;
    const struct rank_group *group = agent_job_group_of(host->job, rank);
    if (group->released)
        return;
    uint32_t worker = rankmap_worker(&group->map, rank - group->first);
    struct waiting *waiting = waiting_of(host, group);
    if (!waiting || worker == host->job->worker)
        return;
    waiting->count += group->map.local_sizes[worker];
    tell_tools(host, waiting);
}

void pmix_host_waits(struct pmix_host *host, uint32_t rank)
{
    const struct rank_group *group = agent_job_group_of(host->job, rank);
    int64_t index = agent_job_local_index(host->job, rank);
    struct waiting *waiting = index < 0 ? NULL : waiting_of(host, group);
    if (!waiting || waiting->rank[index - group->local_first])
        return;
    waiting->rank[index - group->local_first] = true;
    host->owner.waits(host->owner.arg, rank);
    if (++waiting->here == group->local_count)
        all_wait_here(host, waiting);
}

void pmix_host_stopped(struct pmix_host *host, const struct rank_group *group)
{
    pmix_host_announce(host);
    for (uint32_t i = 0; i < group->local_count; i++)
        pmix_host_waits(host, host->job->local[group->local_first + i]);
}

static bool is_among(const struct rank_group *group, const pmix_proc_t *procs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_NSPACE(procs[i].nspace, group->nspace))
            return true;
    return false;
}

/* Events without a range of their own are for everybody. */
static bool is_target(const struct rank_group *group, const pmix_info_t *info, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const pmix_value_t *value = &info[i].value;
        if (!PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE))
            continue;
        if (value->type == PMIX_PROC)
            return is_among(group, value->data.proc, 1);
        if (value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_PROC)
            return is_among(group, value->data.darray->array, value->data.darray->size);
    }
    return true;
}

void pmix_released(struct pmix_host *host, const pmix_info_t *info, size_t count)
{
    for (uint32_t i = 0; i < host->job->group_count; i++)
        if (is_target(host->job->groups[i], info, count))
            host->owner.released(host->owner.arg, host->job->groups[i]);
}

void pmix_host_release(struct pmix_host *host)
{
    const struct agent_job *job = host->job;
    bool some = false;
    for (uint32_t i = host->released; i < job->group_count; i++)
        some = some || job->groups[i]->stop_at > DRARUN__WIRE__STOP_AT__STOP_AT_EXEC;
    host->released = job->group_count;
    if (!some || !host->started)
        return; /* those that have not asked for their job's data yet will not be told to wait */
    pmix_proc_t server;
    PMIX_LOAD_PROCID(&server, "drarun.server", host->tree->self);
    notify_here(PMIX_DEBUGGER_RELEASE, &server, "released");
}
