/* SPDX-License-Identifier: Apache-2.0 */
/* Events that a rank raises for others: the library delivers them on this agent; other agents get
 * them by broadcast along the tree and deliver to theirs. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/base/unconst.h"
#include "worker/pmix/host_private.h"

static pmix_status_t pack(const struct upcall *upcall, pmix_data_buffer_t *buffer)
{
    pmix_status_t status = PMIX_SUCCESS;
    for (size_t i = 0; status == PMIX_SUCCESS && i < upcall->info_count; i++)
        status = PMIx_Data_pack(NULL, buffer, &upcall->info[i], 1, PMIX_INFO);
    return status;
}

/* Ranks wait for a debugger. libpmix 5.0.5 keeps to itself what each says, counts them, and tells
 * of all ranks here at once; later releases may do both. */
static bool take_waiting(struct pmix_host *host, const struct upcall *upcall)
{
    const struct rank_group *group = agent_job_group_named(host->job, upcall->proc.nspace);
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (upcall->status != PMIX_READY_FOR_DEBUG || !group)
        return false;
    if (rank >= 0)
        pmix_host_waits(host, (uint32_t)rank);
    else if (upcall->proc.rank == PMIX_RANK_LOCAL_PEERS)
        pmix_host_stopped(host, group);
    return true;
}

void pmix_on_notify(struct pmix_host *host, struct upcall *upcall)
{
    if (take_waiting(host, upcall)) {
        upcall_answer(upcall, PMIX_SUCCESS);
        return;
    }
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Notify notify = DRARUN__WIRE__NOTIFY__INIT;
    pmix_data_buffer_t buffer;
    if (upcall->status == PMIX_DEBUGGER_RELEASE)
        pmix_released(host, upcall->info, upcall->info_count);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = pack(upcall, &buffer);
    if (buffer.bytes_used > PMIX_ROUTED_MAX)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    bool here_only = upcall->detail == PMIX_RANGE_LOCAL || upcall->detail == PMIX_RANGE_PROC_LOCAL;
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (status == PMIX_SUCCESS && host->tree->size > 1 && !here_only) {
        notify.code = upcall->status;
        notify.rank = rank < 0 ? upcall->proc.rank : (uint32_t)rank;
        notify.nspace = rank < 0 ? upcall->proc.nspace : unconst("");
        notify.range = (uint32_t)upcall->detail;
        notify.data.data = (uint8_t *)buffer.base_ptr;
        notify.data.len = buffer.bytes_used;
        message.body_case = DRARUN__WIRE__ROUTED__BODY_NOTIFY;
        message.notify = &notify;
        host->owner.route(host->owner.arg, &message, true);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    upcall_answer(upcall, status);
}

static void release(pmix_status_t status, void *cbdata)
{
    pmix_data_array_t *array = cbdata;
    (void)status;
    PMIX_DATA_ARRAY_FREE(array);
}

/* NULL: out of memory. */
static pmix_data_array_t *unpack(const Drarun__Wire__Notify *notify)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_byte_object_t bytes = {(char *)notify->data.data, notify->data.len};
    void *list = PMIx_Info_list_start();
    pmix_status_t status = list ? PMIx_Data_embed(&buffer, &bytes) : PMIX_ERR_NOMEM;
    while (status == PMIX_SUCCESS) {
        int32_t one = 1;
        pmix_info_t info;
        PMIX_INFO_CONSTRUCT(&info);
        status = PMIx_Data_unpack(NULL, &buffer, &info, &one, PMIX_INFO);
        if (status == PMIX_SUCCESS && PMIx_Info_list_xfer(list, &info) == PMIX_ERR_NOMEM)
            status = PMIX_ERR_NOMEM;
        PMIX_INFO_DESTRUCT(&info);
    }
    /* at the end of the data it is another error */
    pmix_data_array_t *array = status == PMIX_ERR_NOMEM ? NULL : calloc(1, sizeof *array);
    pmix_status_t converted = array ? PMIx_Info_list_convert(list, array) : PMIX_ERR_NOMEM;
    if (converted == PMIX_ERR_EMPTY)
        *array = (pmix_data_array_t){.type = PMIX_INFO};
    else if (converted != PMIX_SUCCESS)
        free(TAKE_PTR(array));
    if (list)
        PMIx_Info_list_release(list);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return array;
}

void pmix_notified(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    const Drarun__Wire__Notify *notify = message->notify;
    pmix_proc_t source;
    if (notify->nspace[0])
        PMIX_LOAD_PROCID(&source, notify->nspace, notify->rank);
    else
        source = pmix_proc_of(host, notify->rank);
    pmix_data_array_t *array = unpack(notify);
    pmix_status_t status = PMIX_ERR_NOMEM;
    if (array && notify->code == PMIX_DEBUGGER_RELEASE)
        pmix_released(host, array->array, array->size);
    if (array)
        status = PMIx_Notify_event(notify->code, &source, (pmix_data_range_t)notify->range,
                                   array->array, array->size, release, array);
    if (status != PMIX_SUCCESS)
        log_error("an event of rank %u could not be delivered: %s", notify->rank,
                  PMIx_Error_string(status));
    if (array && status != PMIX_SUCCESS)
        release(status, array);
}
