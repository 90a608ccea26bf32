/* SPDX-License-Identifier: Apache-2.0 */
/* Queries about the job. Keys that a launcher cannot know are left out of the answer, as PMIx asks
 * for; when nothing is left the answer is NOT_FOUND. */
#include <string.h>

#include "worker/pmix/host_private.h"

static void add_u32(void *list, const char *key, uint32_t value)
{
    PMIx_Info_list_add(list, key, &value, PMIX_UINT32);
}

static void add_text(void *list, const char *key, const char *value)
{
    PMIx_Info_list_add(list, key, value, PMIX_STRING);
}

static void add_namespaces(const struct agent_job *job, void *list, const char *key)
{
    struct buf names = BUF_INIT;
    for (uint32_t i = 0; i < job->group_count; i++)
        buf_printf(&names, "%s%s", i > 0 ? "," : "", job->groups[i]->nspace);
    if (names.data && !names.failed)
        add_text(list, key, names.data);
    buf_done(&names);
}

/* Adds the answer to one key; false when it is not known here. */
static bool answer_key(const struct pmix_host *host, const struct rank_group *group, void *list,
                       const char *key)
{
    const struct agent_job *job = host->job;
    if (strcmp(key, PMIX_QUERY_NAMESPACES) == 0)
        add_namespaces(job, list, key);
    else if (strcmp(key, PMIX_QUERY_JOB_STATUS) == 0)
        PMIx_Info_list_add(list, key, &(pmix_status_t){PMIX_OPERATION_IN_PROGRESS}, PMIX_STATUS);
    else if (strcmp(key, PMIX_QUERY_NUM_PSETS) == 0)
        add_u32(list, key, 0);
    else if (strcmp(key, PMIX_QUERY_PSET_NAMES) == 0)
        add_text(list, key, "");
    else if (strcmp(key, PMIX_QUERY_NUM_GROUPS) == 0)
        add_u32(list, key, 0);
    else if (strcmp(key, PMIX_UNIV_SIZE) == 0)
        add_u32(list, key, agent_job_universe(job));
    else if (strcmp(key, PMIX_JOB_SIZE) == 0 || strcmp(key, PMIX_MAX_PROCS) == 0)
        add_u32(list, key, group->map.ranks);
    else if (strcmp(key, PMIX_NUM_NODES) == 0)
        add_u32(list, key, job->map.workers);
    else if (strcmp(key, PMIX_HOSTNAME) == 0)
        add_text(list, key, job->nodes[job->worker]);
    else
        return false;
    return true;
}

void pmix_on_query(struct pmix_host *host, struct upcall *upcall)
{
    void *list = PMIx_Info_list_start();
    const struct rank_group *group = agent_job_group_named(host->job, upcall->proc.nspace);
    size_t known = 0;
    if (!group)
        group = host->job->groups[0];
    for (size_t i = 0; i < upcall->query_count; i++)
        for (size_t k = 0; upcall->queries[i].keys && upcall->queries[i].keys[k]; k++)
            known += answer_key(host, group, list, upcall->queries[i].keys[k]);
    pmix_data_array_t result;
    PMIX_DATA_ARRAY_CONSTRUCT(&result, 0, PMIX_INFO);
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    if (known > 0)
        status = PMIx_Info_list_convert(list, &result);
    PMIx_Info_list_release(list);
    if (status == PMIX_SUCCESS)
        upcall_answer_info_take(upcall, status, result.array, result.size);
    else
        upcall_answer(upcall, status);
}
