/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/job/agent_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define SECRET_MAX 32u

static int refuse(struct drarun_error *err, const char *what)
{
    return error_kind(err, DRARUN_ERR_SPEC, EPROTO, "launch message: %s", what);
}

static int check(const Drarun__Wire__Launch *wire, struct drarun_error *err)
{
    if (!wire->uid[0] || strlen(wire->uid) > 64)
        return refuse(err, "no job uid, or one of more than 64 characters");
    if (strlen(wire->secret) > SECRET_MAX ||
        wire->secret[strspn(wire->secret, "abcdefghijklmnopqrstuvwxyz0123456789")])
        return refuse(err, "the namespace's secret has invalid characters, or too many");
    if (wire->n_workers == 0 || wire->n_workers > RANKMAP_WORKERS_MAX)
        return refuse(err, "no workers, or too many");
    if (wire->worker >= wire->n_workers)
        return refuse(err, "this worker's index is not below the number of workers");
    if (wire->radix == 0 || wire->radix > AGENT_RADIX_MAX)
        return refuse(err, "radix of the tree out of range");
    if (wire->mode != DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX &&
        wire->mode != DRARUN__WIRE__LAUNCH_MODE__LAUNCH_ENV &&
        wire->mode != DRARUN__WIRE__LAUNCH_MODE__LAUNCH_MPIRUN)
        return refuse(err, "unknown launch mode");
    const char *dir = wire->session_dir;
    if (!dir[0] || (dir[0] != '/' && (strchr(dir, '/') || dir[0] == '.')))
        return refuse(err, "the session directory is neither an absolute path nor a name");
    return rank_group_check_apps(wire->apps, wire->n_apps, err);
}

static int compare_hosts(const void *a, const void *b)
{
    const Drarun__Wire__Worker *const *x = a, *const *y = b;
    return strcmp((*x)->host, (*y)->host);
}

static bool is_unique(Drarun__Wire__Worker *const *sorted, size_t count,
                      const Drarun__Wire__Worker *worker)
{
    Drarun__Wire__Worker *const *at =
        bsearch(&worker, sorted, count, sizeof *sorted, compare_hosts);
    size_t i = at ? (size_t)(at - sorted) : 0;
    return (i == 0 || strcmp(sorted[i - 1]->host, worker->host) != 0) &&
           (i + 1 >= count || strcmp(sorted[i + 1]->host, worker->host) != 0);
}

/* Several workers on one host must not be taken for one node: a server would wait for ranks that
 * are not its own. */
static int name_nodes(struct agent_job *job)
{
    const Drarun__Wire__Launch *wire = job->wire;
    cleanup_free Drarun__Wire__Worker **sorted = calloc(wire->n_workers + 1, sizeof *sorted);
    job->nodes = calloc(wire->n_workers + 1, sizeof *job->nodes);
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, wire->workers, wire->n_workers * sizeof *sorted);
    qsort(sorted, wire->n_workers, sizeof *sorted, compare_hosts);
    for (size_t i = 0; job->nodes && i < wire->n_workers; i++) {
        const char *host = wire->workers[i]->host;
        int n = is_unique(sorted, wire->n_workers, wire->workers[i])
                    ? asprintf(&job->nodes[i], "%s", host)
                    : asprintf(&job->nodes[i], "%s-w%zu", host, i);
        if (n < 0) {
            job->nodes[i] = NULL;
            return -ENOMEM;
        }
    }
    return job->nodes ? 0 : -ENOMEM;
}

/* ---- groups ---- */

struct local_list {
    struct agent_job *job;
    const struct rank_group *group;
};

static void add_local(uint32_t rank, void *arg)
{
    struct local_list *list = arg;
    list->job->local[list->job->local_count++] = list->group->first + rank;
}

/* Room for one more group, its programs and its ranks here. */
static int reserve(struct agent_job *job, uint32_t apps, uint32_t locals)
{
    struct rank_group **groups =
        realloc(job->groups, (job->group_count + 1u) * sizeof *job->groups);
    job->groups = groups ? groups : job->groups;
    const Drarun__Wire__App **list = realloc(job->apps, (job->map.apps + apps + 1u) * sizeof *list);
    job->apps = list ? list : job->apps;
    uint32_t *local = realloc(job->local, (job->local_count + locals + 1u) * sizeof *local);
    job->local = local ? local : job->local;
    return groups && list && local ? 0 : -ENOMEM;
}

/* The group's map is built and is part of the job's; there is room. */
static void enter_group(struct agent_job *job, struct rank_group *group,
                        Drarun__Wire__App *const *apps)
{
    struct local_list list = {job, group};
    for (uint32_t i = 0; i < group->map.apps; i++)
        job->apps[group->first_app + i] = apps[i];
    job->groups[job->group_count++] = group;
    group->local_first = job->local_count;
    rankmap_each_local(&group->map, job->worker, add_local, &list);
    group->local_count = job->local_count - group->local_first;
}

static void name_group(const struct agent_job *job, struct rank_group *group)
{
    const Drarun__Wire__Launch *launch = job->wire;
    char suffix[16] = "";
    if (group->index > 0) /* of the launch's worlds or spawned: no two have one number */
        snprintf(suffix, sizeof suffix, ".s%u", group->index);
    snprintf(group->kvs, sizeof group->kvs, "drarun.%s.%u%s", launch->uid, launch->attempt, suffix);
    snprintf(group->nspace, sizeof group->nspace, "%s%s%s", group->kvs,
             launch->secret[0] ? "." : "", launch->secret);
}

/* One group of all programs, or of one. */
static int build_launched(struct agent_job *job, uint32_t app, struct drarun_error *err)
{
    const Drarun__Wire__Launch *launch = job->wire;
    bool own = launch->n_worlds > 0;
    struct rank_group *group = calloc(1, sizeof *group);
    if (!group)
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    int rc = own ? rank_group_map_app(&job->map, app, &group->map, err)
                 : rank_group_map(launch->blocks, launch->n_blocks, launch->n_apps,
                                  (uint32_t)launch->n_workers, &group->map, err);
    if (rc == 0 && reserve(job, group->map.apps, group->map.local_sizes[job->worker]) < 0)
        rc = error_set(err, ENOMEM, "out of memory for the job's ranks");
    if (rc < 0) {
        rank_group_free(group);
        return rc;
    }
    group->index = job->group_count;
    group->first = job->map.app_firsts[app];
    group->first_app = app;
    group->bind = job->bind;
    group->stop_at = launch->stop_at;
    name_group(job, group);
    enter_group(job, group, launch->apps + app);
    job->launched = job->group_count;
    return 0;
}

static int build_launched_groups(struct agent_job *job, struct drarun_error *err)
{
    const Drarun__Wire__Launch *launch = job->wire;
    if (launch->n_worlds > 0 && launch->n_worlds != launch->n_apps)
        return refuse(err, "expected one world for each program, or none");
    int rc = rank_group_map(launch->blocks, launch->n_blocks, launch->n_apps,
                            (uint32_t)launch->n_workers, &job->map, err);
    for (uint32_t app = 0; rc == 0 && app < (launch->n_worlds > 0 ? job->map.apps : 1); app++)
        rc = build_launched(job, app, err);
    return rc;
}

static int build_group(struct agent_job *job, struct rank_group *group, struct drarun_error *err)
{
    const Drarun__Wire__Group *wire = group->wire;
    *group = (struct rank_group){.index = wire->index,
                                 .first = wire->first,
                                 .first_app = job->map.apps,
                                 .spawned = true,
                                 .parent = wire->parent,
                                 .bind = job->bind,
                                 .stop_at = wire->stop_at,
                                 .wire = group->wire};
    if (wire->index != job->group_count || wire->first != job->map.ranks ||
        wire->parent >= job->map.ranks)
        return error_set(err, EPROTO, "ranks %u of group %u do not follow the job's %u in %u",
                         wire->first, wire->index, job->map.ranks, job->group_count);
    int rc = rank_group_check_apps(wire->apps, wire->n_apps, err);
    if (rc == 0 && wire->bind[0])
        rc = bind_parse(wire->bind, &group->bind, err);
    if (rc == 0)
        rc = rank_group_map(wire->blocks, wire->n_blocks, wire->n_apps, job->map.workers,
                            &group->map, err);
    if (rc == 0 && reserve(job, group->map.apps, group->map.local_sizes[job->worker]) < 0)
        rc = error_set(err, ENOMEM, "out of memory for the job's ranks");
    return rc < 0 ? rc : rankmap_append(&job->map, &group->map, err);
}

int agent_job_add_group_take(struct agent_job *job, Drarun__Wire__Group *wire,
                             struct drarun_error *err)
{
    struct rank_group *group = calloc(1, sizeof *group);
    if (!group) {
        drarun__wire__group__free_unpacked(wire, NULL);
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    }
    group->wire = wire;
    int rc = build_group(job, group, err);
    if (rc < 0) {
        rank_group_free(group);
        return rc;
    }
    name_group(job, group);
    enter_group(job, group, wire->apps);
    return 0;
}

int agent_job_drop_group(struct agent_job *job)
{
    struct rank_group *group = job->groups[job->group_count - 1];
    int rc = rankmap_truncate(&job->map, job->map.block_count - group->map.block_count);
    if (rc < 0)
        return rc;
    job->local_count = group->local_first;
    job->group_count--;
    rank_group_free(group);
    return 0;
}

void agent_job_release_group(struct agent_job *job, struct rank_group *group)
{
    static const Drarun__Wire__App forgotten = DRARUN__WIRE__APP__INIT;
    for (uint32_t i = 0; i < group->map.apps; i++)
        job->apps[group->first_app + i] = &forgotten;
    if (group->wire)
        drarun__wire__group__free_unpacked(TAKE_PTR(group->wire), NULL);
    const struct rankmap numbers = {
        .ranks = group->map.ranks, .workers = group->map.workers, .apps = group->map.apps};
    rankmap_done(&group->map); /* some bytes for each worker of the job */
    group->map = numbers;
    group->released = true;
}

uint32_t agent_job_launched_ranks(const struct agent_job *job)
{
    const struct rank_group *last = job->groups[job->launched - 1];
    return last->first + last->map.ranks;
}

uint32_t agent_job_launched_here(const struct agent_job *job)
{
    const struct rank_group *last = job->groups[job->launched - 1];
    return last->local_first + last->local_count;
}

uint32_t agent_job_universe(const struct agent_job *job)
{
    uint32_t ranks = agent_job_launched_ranks(job);
    return job->wire->universe > ranks ? job->wire->universe : ranks;
}

const struct rank_group *agent_job_group_of(const struct agent_job *job, uint32_t rank)
{
    uint32_t low = 0, high = job->group_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (job->groups[middle]->first <= rank)
            low = middle;
        else
            high = middle;
    }
    return job->groups[low];
}

const struct rank_group *agent_job_group_named(const struct agent_job *job, const char *nspace)
{
    for (uint32_t i = 0; i < job->group_count; i++)
        if (!job->groups[i]->released && strcmp(job->groups[i]->nspace, nspace) == 0)
            return job->groups[i];
    return NULL;
}

/* ---- workers that share ---- */

typedef bool match_fn(const Drarun__Wire__Worker *own, const Drarun__Wire__Worker *other);

static bool is_of_host(const Drarun__Wire__Worker *own, const Drarun__Wire__Worker *other)
{
    return strcmp(own->host, other->host) == 0;
}

static bool shares_cpus(const Drarun__Wire__Worker *own, const Drarun__Wire__Worker *other)
{
    return own->cpus ? own->cpus == other->cpus : is_of_host(own, other);
}

/* Of the other workers that have this in common with the agent's own. */
static uint32_t count_others(const struct agent_job *job, const struct rankmap *map,
                             match_fn *match)
{
    Drarun__Wire__Worker *const *workers = job->wire->workers;
    uint32_t ranks = 0;
    for (uint32_t w = 0; w < map->workers; w++)
        if (w != job->worker && match(workers[job->worker], workers[w]))
            ranks += map->local_sizes[w];
    return ranks;
}

static uint32_t count_others_left(const struct agent_job *job, match_fn *match)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < job->group_count; i++)
        if (!job->groups[i]->released)
            ranks += count_others(job, &job->groups[i]->map, match);
    return ranks;
}

uint32_t agent_job_ranks_on_cpus(const struct agent_job *job)
{
    uint32_t ranks = agent_job_launched_here(job);
    for (uint32_t i = 0; i < job->launched; i++)
        ranks += count_others(job, &job->groups[i]->map, shares_cpus);
    return ranks;
}

uint32_t agent_job_group_before(const struct agent_job *job, const struct rank_group *group)
{
    Drarun__Wire__Worker *const *workers = job->wire->workers;
    uint32_t ranks = 0;
    for (uint32_t w = 0; w < job->worker; w++)
        if (shares_cpus(workers[job->worker], workers[w]))
            ranks += group->map.local_sizes[w];
    return ranks;
}

uint32_t agent_job_others_on_cpus(const struct agent_job *job)
{
    return count_others_left(job, shares_cpus);
}

uint32_t agent_job_others_on_host(const struct agent_job *job)
{
    return count_others_left(job, is_of_host);
}

/* ---- life ---- */

int agent_job_init_take(struct agent_job *job, Drarun__Wire__Launch *launch,
                        struct drarun_error *err)
{
    *job = (struct agent_job){.wire = launch, .worker = launch->worker};
    int rc = check(launch, err);
    if (rc == 0)
        rc = bind_parse(launch->bind[0] ? launch->bind : "none", &job->bind, err);
    if (rc == 0)
        rc = build_launched_groups(job, err);
    if (rc < 0)
        return rc;
    job->pmix = launch->mode == DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    job->mpirun = launch->mode == DRARUN__WIRE__LAUNCH_MODE__LAUNCH_MPIRUN;
    if (job->mpirun && job->map.ranks != job->map.workers)
        return refuse(err, "mpirun wants one rank for each worker");
    job->host = launch->workers[job->worker]->host;
    return name_nodes(job) < 0 ? error_set(err, ENOMEM, "out of memory for the job's ranks") : 0;
}

void agent_job_done(struct agent_job *job)
{
    for (uint32_t i = 0; i < job->group_count; i++)
        rank_group_free(job->groups[i]);
    free(job->groups);
    free(job->apps);
    rankmap_done(&job->map);
    free(job->local);
    for (size_t i = 0; job->nodes && job->nodes[i]; i++)
        free(job->nodes[i]);
    free(job->nodes);
    if (job->wire)
        drarun__wire__launch__free_unpacked(job->wire, NULL);
    *job = (struct agent_job){0};
}

char **agent_job_argv(const struct agent_job *job, uint32_t app)
{
    const Drarun__Wire__App *wire = job->apps[app];
    char **argv = calloc(wire->n_argv + 1, sizeof *argv);
    for (size_t i = 0; argv && i < wire->n_argv; i++)
        argv[i] = wire->argv[i];
    return argv;
}

int64_t agent_job_local_index(const struct agent_job *job, uint32_t rank)
{
    uint32_t low = 0, high = job->local_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (job->local[middle] == rank)
            return middle;
        if (job->local[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
