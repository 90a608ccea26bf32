/* SPDX-License-Identifier: Apache-2.0 */
/* PMIx_Spawn: what MPI_Comm_spawn of Open MPI is. A registered rank of the job asks, and nobody
 * else can (docs/design/037-spawn.md). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "worker/host/mpi_library.h"
#include "worker/pmix/host_private.h"

/* Our names for the library's keys, of which the value is a text. */
static const struct {
    const char *pmix, *key;
} texts[] = {
    {PMIX_HOST, "host"},
    {PMIX_WDIR, "wdir"},
    {PMIX_BINDTO, "bind"},
    {PMIX_MAPBY, "map_by"},
};

static int add_envar(struct spawn_program *program, const pmix_envar_t *envar)
{
    strlist_addf(&program->env, "%s=%s", envar->envar, envar->value ? envar->value : "");
    return program->env.failed ? -ENOMEM : 0;
}

static const struct {
    const char *pmix;
    Drarun__Wire__StopAt stop_at;
} stops[] = {
    {PMIX_DEBUG_STOP_ON_EXEC, DRARUN__WIRE__STOP_AT__STOP_AT_EXEC},
    {PMIX_DEBUG_STOP_IN_INIT, DRARUN__WIRE__STOP_AT__STOP_AT_INIT},
    {PMIX_DEBUG_STOP_IN_APP, DRARUN__WIRE__STOP_AT__STOP_AT_APP},
};

/* All ranks wait, or none: -EINVAL for some of them. */
static int take_stop(struct spawn_request *request, const pmix_info_t *info)
{
    const pmix_value_t *value = &info->value;
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        if (!PMIX_CHECK_KEY(info, stops[i].pmix))
            continue;
        bool all = value->type == PMIX_PROC_RANK ? value->data.rank == PMIX_RANK_WILDCARD
                                                 : value->type == PMIX_BOOL;
        if (!all)
            return -EINVAL;
        if (value->type == PMIX_PROC_RANK || value->data.flag)
            request->stop_at = stops[i].stop_at;
    }
    return 0;
}

static int take_info(struct spawn_request *request, struct spawn_program *program,
                     const pmix_info_t *info, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const pmix_value_t *value = &info[i].value;
        for (size_t k = 0; k < ARRAY_LEN(texts) && rc == 0; k++)
            if (PMIX_CHECK_KEY(&info[i], texts[k].pmix) && value->type == PMIX_STRING)
                rc = value->data.string /* NULL stays NULL on its way */
                         ? spawn_request_info(request, program, texts[k].key, value->data.string)
                         : -EINVAL;
        if (PMIX_CHECK_KEY(&info[i], PMIX_SET_ENVAR) && value->type == PMIX_ENVAR)
            rc = add_envar(program, &value->data.envar);
        if (rc == 0)
            rc = take_stop(request, &info[i]);
    }
    return rc;
}

static int take_app(struct spawn_request *request, const struct upcall *upcall,
                    const pmix_app_t *app)
{
    struct spawn_program *program = spawn_request_add(request);
    if (!program)
        return -ENOMEM;
    if (!app->cmd[0] || app->maxprocs <= 0)
        return -EINVAL;
    program->count = (uint32_t)app->maxprocs;
    strlist_add(&program->argv, app->cmd);
    for (size_t i = 1; app->argv && app->argv[0] && app->argv[i]; i++)
        strlist_add(&program->argv, app->argv[i]);
    strlist_add_all(&program->env, app->env);
    int rc = app->cwd ? spawn_request_info(request, program, "wdir", app->cwd) : 0;
    if (rc == 0)
        rc = take_info(request, program, upcall->info, upcall->info_count);
    if (rc == 0)
        rc = take_info(request, program, app->info, app->ninfo);
    return rc == 0 && (program->argv.failed || program->env.failed) ? -ENOMEM : rc;
}

/* MPI_Comm_spawn of Open MPI waits at a port of which it tells the children; of programs that are
 * not to call MPI_Init (info key ompi_non_mpi), it is empty. */
static bool has_port(const struct spawn_request *request)
{
    static const char name[] = "OMPI_PARENT_PORT=";
    bool found = false;
    for (size_t i = 0; i < request->count && !found; i++) {
        const struct strlist *env = &request->programs[i].env;
        for (size_t k = 0; k < env->count; k++) /* the last one counts */
            if (strncmp(env->items[k], name, sizeof name - 1) == 0)
                found = env->items[k][sizeof name - 1] != '\0';
    }
    return found;
}

/* PMIx_Spawn waits for no rank, but those who call it may. MPICH does so in a fence with all
 * children, which no part of its request shows. */
static bool is_awaited(struct pmix_host *host, const struct spawn_request *request, uint32_t rank)
{
    return has_port(request) ||
           mpi_library_is_not_open_mpi(host->owner.pid_of(host->owner.arg, rank));
}

/* Open MPI 4 returns the error on the rank that asked alone. Which ranks take part in the call is
 * not known; they would never end, so the job ends. */
static void refuse(struct pmix_host *host, struct upcall *upcall, pmix_status_t status,
                   const char *why)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (why && rank >= 0 && agent_job_group_of(host->job, (uint32_t)rank)->map.ranks > 1 &&
        mpi_library_is_open_mpi_4(host->owner.pid_of(host->owner.arg, (uint32_t)rank))) {
        CLEANUP(buf_done) struct buf text = BUF_INIT;
        buf_printf(&text,
                   "%s; Open MPI 4 would return this error on this rank alone and leave the other "
                   "ranks waiting; Open MPI 5 returns it on all",
                   why);
        host->owner.abort(host->owner.arg, (uint32_t)rank, 1, text.failed ? why : text.data);
    }
    upcall_answer(upcall, status);
}

void pmix_on_spawn(struct pmix_host *host, struct upcall *upcall)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank < 0 || agent_job_local_index(host->job, (uint32_t)rank) < 0) {
        upcall_answer(upcall, PMIX_ERR_NO_PERMISSIONS);
        return;
    }
    struct spawn_request *request = spawn_request_new((uint32_t)rank);
    int rc = request ? 0 : -ENOMEM;
    for (size_t i = 0; i < upcall->app_count && rc == 0; i++)
        rc = take_app(request, upcall, &upcall->apps[i]);
    if (request)
        request->unawaited = !is_awaited(host, request, (uint32_t)rank);
    if (rc == 0)
        host->owner.spawn(host->owner.arg, request, upcall);
    else if (rc == -EINVAL)
        refuse(host, upcall, PMIX_ERR_BAD_PARAM,
               "spawn: no program, no number of ranks, or an impossible value of an info key");
    else
        refuse(host, upcall, PMIX_ERR_NOMEM, "spawn: out of memory");
    spawn_request_free(request);
}

void pmix_host_spawned(struct pmix_host *host, void *token, const struct rank_group *group,
                       const char *why, bool no_slots)
{
    if (group)
        upcall_answer_spawn(token, group->nspace);
    else
        refuse(host, token, no_slots ? PMIX_ERR_OUT_OF_RESOURCE : PMIX_ERR_JOB_FAILED_TO_LAUNCH,
               why);
}
