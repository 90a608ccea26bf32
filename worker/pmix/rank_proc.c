/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of the job as processes of the library. */
#include "worker/pmix/host_private.h"

int64_t pmix_rank_of(const struct pmix_host *host, const pmix_proc_t *proc)
{
    const struct rank_group *group = agent_job_group_named(host->job, proc->nspace);
    return group && proc->rank < group->map.ranks ? (int64_t)group->first + proc->rank : -1;
}

pmix_proc_t pmix_proc_of(const struct pmix_host *host, uint32_t rank)
{
    pmix_proc_t proc;
    const struct rank_group *group = agent_job_group_of(host->job, rank);
    PMIX_LOAD_PROCID(&proc, group->nspace, rank - group->first);
    return proc;
}
