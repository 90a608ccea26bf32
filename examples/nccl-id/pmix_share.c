/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_share.h"

#include <stdbool.h>
#include <string.h>

static pmix_status_t put(const char *name, void *bytes, size_t size)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = bytes; /* PMIx_Put copies */
    value.data.bo.size = size;
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, name, &value);
    return status == PMIX_SUCCESS ? PMIx_Commit() : status;
}

/* All ranks have arrived, and what each of them put is known everywhere. */
static pmix_status_t fence_collecting(void)
{
    bool collect = true;
    pmix_info_t info;
    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t status = PMIx_Fence(NULL, 0, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return status;
}

static pmix_status_t get(const pmix_proc_t *root, const char *name, void *bytes, size_t size)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(root, name, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return status;
    if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size == size)
        memcpy(bytes, value->data.bo.bytes, size);
    else
        status = PMIX_ERR_BAD_PARAM;
    PMIX_VALUE_RELEASE(value);
    return status;
}

pmix_status_t pmix_share_bytes(const pmix_proc_t *me, pmix_rank_t root, const char *name,
                               void *bytes, size_t size)
{
    pmix_proc_t source;
    pmix_status_t put_status = me->rank == root ? put(name, bytes, size) : PMIX_SUCCESS;
    /* also when root could not put: the others wait here for it */
    pmix_status_t status = fence_collecting();
    if (put_status != PMIX_SUCCESS || status != PMIX_SUCCESS)
        return put_status != PMIX_SUCCESS ? put_status : status;
    if (me->rank == root)
        return PMIX_SUCCESS;
    PMIX_LOAD_PROCID(&source, me->nspace, root);
    return get(&source, name, bytes, size);
}

pmix_status_t pmix_share_job_size(const pmix_proc_t *me, uint32_t *ret_size)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&all, me->nspace, PMIX_RANK_WILDCARD);
    pmix_status_t status = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return status;
    *ret_size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return PMIX_SUCCESS;
}

pmix_status_t pmix_share_local_rank(const pmix_proc_t *me, uint16_t *ret_local_rank)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = PMIx_Get(me, PMIX_LOCAL_RANK, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return status;
    *ret_local_rank = value->data.uint16;
    PMIX_VALUE_RELEASE(value);
    return PMIX_SUCCESS;
}
