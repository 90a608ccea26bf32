/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups: what MPI sessions of Open MPI 5 make communicators from. Members exchange their
 * endpoint data, and the group gets a context number that is unique in the job. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/unconst.h"
#include "worker/pmix/host_private.h"
#include "worker/pmix/info_list.h"

static void add_result(struct info_list *list, const struct upcall *upcall, const void *data,
                       size_t length, size_t context)
{
    pmix_data_array_t members = {PMIX_PROC, upcall->proc_count, upcall->procs};
    pmix_byte_object_t bytes = {unconst(data), length};
    info_list_add(list, PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
    info_list_add(list, PMIX_GROUP_MEMBERSHIP, &members, PMIX_DATA_ARRAY);
    if (length > 0)
        info_list_add(list, PMIX_GROUP_ENDPT_DATA, &bytes, PMIX_BYTE_OBJECT);
}

static void group_done(void *arg, int status, const void *data, size_t length, uint64_t context)
{
    struct upcall *upcall = arg;
    if (status != PMIX_SUCCESS || upcall->detail != PMIX_GROUP_CONSTRUCT) {
        upcall_answer(upcall, pmix_collective_status(status));
        return;
    }
    pmix_data_array_t result;
    struct info_list list = info_list_new();
    add_result(&list, upcall, data, length, context);
    status = info_list_convert_take(&list, &result);
    if (status == PMIX_SUCCESS) {
        upcall_answer_info_take(upcall, status, result.array, result.size);
    } else {
        PMIX_DATA_ARRAY_DESTRUCT(&result);
        upcall_answer(upcall, status);
    }
}

void pmix_on_group(struct pmix_host *host, struct upcall *upcall)
{
    cleanup_free struct coll_range *ranges = NULL;
    size_t count = 0, length = 0;
    const char *data = NULL;
    const pmix_info_t *endpoints = upcall_info(upcall, PMIX_GROUP_ENDPT_DATA);
    if (endpoints && endpoints->value.type == PMIX_BYTE_OBJECT) {
        data = endpoints->value.data.bo.bytes;
        length = endpoints->value.data.bo.size;
    }
    int rc = pmix_members(host, upcall->procs, upcall->proc_count, &ranges, &count);
    if (rc == -EINVAL) {
        upcall_answer(upcall, PMIX_ERR_NOT_SUPPORTED);
        return;
    }
    const char *kind = upcall->detail == PMIX_GROUP_CONSTRUCT ? "group" : "ungroup";
    cleanup_free char *key =
        rc == 0 ? pmix_collective_key(host, kind, upcall->text, ranges, count) : NULL;
    pmix_enter(host, upcall, kind, key, ranges, count, PMIX_SUCCESS, data, length, group_done);
}
