/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/agent_job.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

static int refuse(struct drarun_error *err, const char *what)
{
    return error_kind(err, DRARUN_ERR_SPEC, EPROTO, "launch message: %s", what);
}

static int check(const Drarun__Wire__Launch *wire, struct drarun_error *err)
{
    if (!wire->uid[0] || strlen(wire->uid) > 64)
        return refuse(err, "no job uid, or one of more than 64 characters");
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
    for (size_t i = 0; i < wire->n_apps; i++)
        if (wire->apps[i]->n_argv == 0 || !wire->apps[i]->argv[0][0])
            return refuse(err, "a program without a name");
    for (size_t i = 0; i < wire->n_blocks; i++)
        if (wire->blocks[i]->app >= wire->n_apps)
            return refuse(err, "ranks of a program that is not there");
    return 0;
}

static int build_map(struct agent_job *job, struct drarun_error *err)
{
    size_t count = job->wire->n_blocks;
    cleanup_free struct rank_block *blocks = calloc(count + 1, sizeof *blocks);
    if (!blocks)
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    for (size_t i = 0; i < count; i++) {
        const Drarun__Wire__Block *block = job->wire->blocks[i];
        blocks[i] = (struct rank_block){block->first, block->count, block->worker, block->app};
    }
    return rankmap_from_blocks(blocks, count, (uint32_t)job->wire->n_workers, &job->map, err);
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

static void add_local(uint32_t rank, void *arg)
{
    struct agent_job *job = arg;
    job->local[job->local_count++] = rank;
}

int agent_job_init_take(struct agent_job *job, Drarun__Wire__Launch *launch,
                        struct drarun_error *err)
{
    *job = (struct agent_job){.wire = launch, .worker = launch->worker};
    int rc = check(launch, err);
    if (rc == 0)
        rc = build_map(job, err);
    if (rc == 0)
        rc = bind_parse(launch->bind[0] ? launch->bind : "none", &job->bind, err);
    if (rc < 0)
        return rc;
    job->pmix = launch->mode == DRARUN__WIRE__LAUNCH_MODE__LAUNCH_PMIX;
    job->mpirun = launch->mode == DRARUN__WIRE__LAUNCH_MODE__LAUNCH_MPIRUN;
    if (job->mpirun && job->map.ranks != job->map.workers)
        return refuse(err, "mpirun wants one rank for each worker");
    job->host = launch->workers[job->worker]->host;
    snprintf(job->nspace, sizeof job->nspace, "drarun.%s.%u", launch->uid, launch->attempt);
    job->local = calloc(job->map.local_sizes[job->worker] + 1, sizeof *job->local);
    if (!job->local || name_nodes(job) < 0)
        return error_set(err, ENOMEM, "out of memory for the job's ranks");
    rankmap_each_local(&job->map, job->worker, add_local, job);
    return 0;
}

void agent_job_done(struct agent_job *job)
{
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
    const Drarun__Wire__App *wire = job->wire->apps[app];
    char **argv = calloc(wire->n_argv + 1, sizeof *argv);
    for (size_t i = 0; argv && i < wire->n_argv; i++)
        argv[i] = wire->argv[i];
    return argv;
}

bool agent_job_oversubscribed(const struct agent_job *job)
{
    cpu_set_t cpus[CPUS_MAX / CPU_SETSIZE];
    uint32_t ranks = job->wire->same_host ? job->map.ranks : job->local_count;
    if (sched_getaffinity(0, sizeof cpus, cpus) < 0)
        return false;
    return ranks > (uint32_t)CPU_COUNT_S(sizeof cpus, cpus);
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
