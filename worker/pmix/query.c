/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about the job, of ranks and tools. Keys that a launcher cannot know are left out of the
 * answer, as PMIx asks for; when nothing is left the answer is NOT_FOUND. */
#include <string.h>

#include "lib/base/cleanup.h"
#include "worker/pmix/host_private.h"
#include "worker/pmix/info_list.h"

/* What one pmix_query_t asks about. */
struct scope {
    const struct pmix_host *host;
    const struct rank_group *group;
    bool of_rank;
    uint32_t rank; /* of the job; with of_rank */
    const struct process_table *table;
    struct info_list *list; /* where the answer goes */
    const char *key;
};

static void add_u32(const struct scope *scope, uint32_t value)
{
    info_list_add(scope->list, scope->key, &value, PMIX_UINT32);
}

static void add_text(const struct scope *scope, const char *value)
{
    info_list_add(scope->list, scope->key, value, PMIX_STRING);
}

static bool add_buf(const struct scope *scope, struct buf *text)
{
    bool good = text->data || text->failed;
    if (good)
        info_list_add_buf(scope->list, scope->key, text);
    return good;
}

static uint32_t worker_of(const struct scope *scope)
{
    const struct agent_job *job = scope->host->job;
    return scope->of_rank ? rankmap_worker(&job->map, scope->rank) : job->worker;
}

static bool namespaces(const struct scope *scope)
{
    const struct agent_job *job = scope->host->job;
    struct buf names = BUF_INIT;
    for (uint32_t i = 0; i < job->group_count; i++)
        if (!job->groups[i]->released)
            buf_printf(&names, "%s%s", i > 0 ? "," : "", job->groups[i]->nspace);
    return add_buf(scope, &names);
}

static void command_line(const struct agent_job *job, const struct rank_group *group,
                         struct buf *out)
{
    for (uint32_t app = 0; app < group->map.apps; app++)
        for (size_t i = 0; i < job->apps[group->first_app + app]->n_argv; i++)
            buf_printf(out, "%s%s", i > 0 ? " " : (app > 0 ? " : " : ""),
                       job->apps[group->first_app + app]->argv[i]);
}

/* Each element is an array of a namespace and its command line. */
static bool namespace_info(const struct scope *scope)
{
    const struct agent_job *job = scope->host->job;
    size_t count = 0, filled = 0;
    for (uint32_t i = 0; i < job->group_count; i++)
        count += !job->groups[i]->released;
    pmix_data_array_t *all = PMIx_Data_array_create(count, PMIX_INFO);
    pmix_info_t *info = all ? all->array : NULL;
    for (uint32_t i = 0; info && i < job->group_count; i++) {
        if (job->groups[i]->released)
            continue;
        struct buf line = BUF_INIT;
        struct info_list part = info_list_new();
        pmix_data_array_t pair;
        command_line(job, job->groups[i], &line);
        info_list_add_text(&part, PMIX_NSPACE, job->groups[i]->nspace);
        info_list_add_buf(&part, PMIX_CMD_LINE, &line);
        if (info_list_convert_take(&part, &pair) == PMIX_SUCCESS)
            PMIX_INFO_LOAD(&info[filled++], PMIX_QUERY_NAMESPACE_INFO, &pair, PMIX_DATA_ARRAY);
        else
            scope->list->failed = true;
        PMIX_DATA_ARRAY_DESTRUCT(&pair);
    }
    scope->list->failed |= !info;
    if (!all)
        return true;
    info_list_add(scope->list, scope->key, all, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_FREE(all);
    return true;
}

static bool job_status(const struct scope *scope)
{
    info_list_add(scope->list, scope->key, &(pmix_status_t){PMIX_OPERATION_IN_PROGRESS},
                  PMIX_STATUS);
    return true;
}

static bool none(const struct scope *scope)
{
    add_u32(scope, 0);
    return true;
}

static bool no_names(const struct scope *scope)
{
    add_text(scope, "");
    return true;
}

static bool debug_support(const struct scope *scope)
{
    add_text(scope, PMIX_DEBUG_STOP_ON_EXEC "," PMIX_DEBUG_STOP_IN_INIT "," PMIX_DEBUG_STOP_IN_APP);
    return true;
}

static bool universe(const struct scope *scope)
{
    add_u32(scope, agent_job_universe(scope->host->job));
    return true;
}

static bool size(const struct scope *scope)
{
    add_u32(scope, scope->group->map.ranks);
    return true;
}

static bool programs(const struct scope *scope)
{
    add_u32(scope, scope->group->map.apps);
    return true;
}

static bool nodes(const struct scope *scope)
{
    add_u32(scope, scope->host->job->map.workers);
    return true;
}

/* Those with ranks of the namespace. */
static bool node_list(const struct scope *scope)
{
    const struct rankmap *map = &scope->group->map;
    struct buf names = BUF_INIT;
    for (uint32_t worker = 0; worker < map->workers; worker++)
        if (map->local_sizes[worker] > 0)
            buf_printf(&names, "%s%s", names.len > 0 ? "," : "", scope->host->job->nodes[worker]);
    return add_buf(scope, &names);
}

static bool host_name(const struct scope *scope)
{
    add_text(scope, scope->host->job->nodes[worker_of(scope)]);
    return true;
}

static bool node_number(const struct scope *scope)
{
    add_u32(scope, worker_of(scope));
    return true;
}

static bool local_size(const struct scope *scope)
{
    add_u32(scope, scope->group->map.local_sizes[worker_of(scope)]);
    return true;
}

static bool local_peers(const struct scope *scope)
{
    struct buf peers = BUF_INIT;
    rankmap_peers_text(&scope->group->map, worker_of(scope), &peers);
    return add_buf(scope, &peers);
}

/* Of a rank: what its process is. */
static const Drarun__Wire__Process *process(const struct scope *scope)
{
    return scope->of_rank ? pmix_process_of(scope->table, scope->rank) : NULL;
}

static bool cpus(const struct scope *scope)
{
    const Drarun__Wire__Process *found = process(scope);
    if (!found || !found->cpus[0])
        return false;
    add_text(scope, found->cpus);
    return true;
}

static bool pid(const struct scope *scope)
{
    const Drarun__Wire__Process *found = process(scope);
    if (!found || found->pid == 0)
        return false;
    info_list_add(scope->list, scope->key, &(pid_t){(pid_t)found->pid}, PMIX_PID);
    return true;
}

static pmix_proc_state_t state_of(const Drarun__Wire__Process *process)
{
    if (!process || process->pid == 0)
        return PMIX_PROC_STATE_UNDEF;
    if (process->ended)
        return process->code > 128  ? PMIX_PROC_STATE_ABORTED_BY_SIG
               : process->code != 0 ? PMIX_PROC_STATE_TERM_NON_ZERO
                                    : PMIX_PROC_STATE_TERMINATED;
    return process->connected ? PMIX_PROC_STATE_CONNECTED : PMIX_PROC_STATE_RUNNING;
}

static bool state(const struct scope *scope)
{
    pmix_proc_state_t found = state_of(process(scope));
    if (!scope->of_rank)
        return false;
    info_list_add(scope->list, scope->key, &found, PMIX_PROC_STATE);
    return true;
}

/* The program, where the process is not to be seen. */
static const char *executable_of(const struct agent_job *job, uint32_t rank,
                                 const Drarun__Wire__Process *process)
{
    const Drarun__Wire__App *app = job->apps[rankmap_place(&job->map, rank).app];
    if (process && process->executable[0])
        return process->executable;
    return app->n_argv > 0 ? app->argv[0] : "";
}

static void fill_process(const struct scope *scope, uint32_t rank, pmix_proc_info_t *info)
{
    const struct agent_job *job = scope->host->job;
    const Drarun__Wire__Process *process = pmix_process_of(scope->table, rank);
    info->proc = pmix_proc_of(scope->host, rank);
    info->hostname = strdup(job->nodes[rankmap_worker(&job->map, rank)]);
    info->executable_name = strdup(executable_of(job, rank, process));
    info->pid = process ? (pid_t)process->pid : 0;
    info->exit_code = process && process->ended ? process->code : 0;
    info->state = state_of(process);
}

/* The ranks of the namespace, of this agent alone or of all. */
static bool add_processes(const struct scope *scope, bool here_only)
{
    const struct rank_group *group = scope->group;
    uint32_t here = scope->host->job->worker;
    size_t count = here_only ? group->map.local_sizes[here] : group->map.ranks, filled = 0;
    pmix_data_array_t *array = PMIx_Data_array_create(count, PMIX_PROC_INFO);
    if (!array) {
        scope->list->failed = true;
        return true;
    }
    for (uint32_t rank = 0; rank < group->map.ranks && filled < count; rank++)
        if (!here_only || rankmap_worker(&group->map, rank) == here)
            fill_process(scope, group->first + rank, &((pmix_proc_info_t *)array->array)[filled++]);
    info_list_add(scope->list, scope->key, array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_FREE(array);
    return true;
}

static bool process_table(const struct scope *scope)
{
    return add_processes(scope, false);
}

static bool local_process_table(const struct scope *scope)
{
    return add_processes(scope, true);
}

static bool supported_keys(const struct scope *scope);

static const struct key {
    const char *name;
    bool (*answer)(const struct scope *scope); /* false: it is not known */
    bool of_processes;                         /* which all agents are asked for first */
} keys[] = {
    {PMIX_QUERY_NAMESPACES, namespaces, false},
    {PMIX_QUERY_NAMESPACE_INFO, namespace_info, false},
    {PMIX_QUERY_JOB_STATUS, job_status, false},
    {PMIX_QUERY_PROC_TABLE, process_table, true},
    {PMIX_QUERY_LOCAL_PROC_TABLE, local_process_table, true},
    {PMIX_QUERY_SPAWN_SUPPORT, no_names, false},
    {PMIX_QUERY_DEBUG_SUPPORT, debug_support, false},
    {PMIX_QUERY_NUM_PSETS, none, false},
    {PMIX_QUERY_PSET_NAMES, no_names, false},
    {PMIX_QUERY_NUM_GROUPS, none, false},
    {PMIX_QUERY_SUPPORTED_KEYS, supported_keys, false},
    {PMIX_UNIV_SIZE, universe, false},
    {PMIX_JOB_SIZE, size, false},
    {PMIX_MAX_PROCS, size, false},
    {PMIX_JOB_NUM_APPS, programs, false},
    {PMIX_NUM_NODES, nodes, false},
    {PMIX_NODE_LIST, node_list, false},
    {PMIX_HOSTNAME, host_name, false},
    {PMIX_NODEID, node_number, false},
    {PMIX_LOCAL_SIZE, local_size, false},
    {PMIX_LOCAL_PEERS, local_peers, false},
    {PMIX_CPUSET, cpus, true},
    {PMIX_PROC_PID, pid, true},
    {PMIX_PROC_STATE_STATUS, state, true},
};

static bool supported_keys(const struct scope *scope)
{
    struct buf names = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        buf_printf(&names, "%s%s", i > 0 ? "," : "", keys[i].name);
    return add_buf(scope, &names);
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(name, keys[i].name) == 0)
            return &keys[i];
    return NULL;
}

/* false: about nothing of this job. A tool that names nothing asks about the job's first ranks. */
static bool read_scope(const struct upcall *upcall, const pmix_query_t *query, struct scope *scope)
{
    const struct agent_job *job = scope->host->job;
    pmix_proc_t about = upcall->proc;
    about.rank = PMIX_RANK_WILDCARD;
    if (!agent_job_group_named(job, about.nspace))
        PMIX_LOAD_NSPACE(about.nspace, job->groups[0]->nspace);
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        if (PMIX_CHECK_KEY(info, PMIX_PROCID) && info->value.type == PMIX_PROC)
            about = *info->value.data.proc;
        else if (PMIX_CHECK_KEY(info, PMIX_NSPACE) && info->value.type == PMIX_STRING)
            PMIX_LOAD_NSPACE(about.nspace, info->value.data.string);
        else if (PMIX_CHECK_KEY(info, PMIX_RANK) && info->value.type == PMIX_PROC_RANK)
            about.rank = info->value.data.rank;
    }
    scope->group = agent_job_group_named(job, about.nspace);
    scope->of_rank = scope->group && about.rank < scope->group->map.ranks;
    scope->rank = scope->of_rank ? scope->group->first + about.rank : 0;
    return scope->group && (scope->of_rank || about.rank > PMIX_RANK_VALID);
}

/* table: NULL where no key needs it. Takes the upcall. */
static void answer_query(struct pmix_host *host, struct upcall *upcall,
                         const struct process_table *table)
{
    struct info_list list = info_list_new();
    struct scope scope = {.host = host, .table = table, .list = &list};
    size_t known = 0;
    for (size_t i = 0; i < upcall->query_count; i++) {
        if (!read_scope(upcall, &upcall->queries[i], &scope))
            continue;
        for (size_t k = 0; upcall->queries[i].keys && upcall->queries[i].keys[k]; k++) {
            const struct key *key = find_key(upcall->queries[i].keys[k]);
            scope.key = key ? key->name : NULL;
            known += key && key->answer(&scope);
        }
    }
    pmix_data_array_t result;
    pmix_status_t status = info_list_convert_take(&list, &result);
    if (known == 0)
        status = PMIX_ERR_NOT_FOUND;
    if (status == PMIX_SUCCESS) {
        upcall_answer_info_take(upcall, status, result.array, result.size);
    } else {
        PMIX_DATA_ARRAY_DESTRUCT(&result);
        upcall_answer(upcall, status);
    }
}

void pmix_on_query(struct pmix_host *host, struct upcall *upcall)
{
    bool of_processes = false;
    for (size_t i = 0; i < upcall->query_count; i++)
        for (size_t k = 0; upcall->queries[i].keys && upcall->queries[i].keys[k]; k++) {
            const struct key *key = find_key(upcall->queries[i].keys[k]);
            of_processes = of_processes || (key && key->of_processes);
        }
    if (of_processes)
        pmix_collect_processes(host, upcall, answer_query);
    else
        answer_query(host, upcall, NULL);
}
