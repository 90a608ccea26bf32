/* SPDX-License-Identifier: Apache-2.0 */
/* Publish, lookup and unpublish, as a rank's agent asks worker 0 for them along the tree. */
#include <string.h>

#include "lib/base/log.h"
#include "worker/pmix/host_private.h"

/* Other jobs of the user may know it. */
static bool is_far(const struct upcall *upcall)
{
    const pmix_info_t *range = upcall_info(upcall, PMIX_RANGE);
    return !range || range->value.data.range == PMIX_RANGE_SESSION ||
           range->value.data.range == PMIX_RANGE_GLOBAL;
}

static bool is_for_one(const struct upcall *upcall)
{
    const pmix_info_t *persist = upcall_info(upcall, PMIX_PERSISTENCE);
    return persist && persist->value.data.persist == PMIX_PERSIST_FIRST_READ;
}

static bool is_directive(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix.", 5) == 0;
}

/* The publisher, the persistence, and each datum. */
static pmix_status_t pack_publish(const struct upcall *upcall, pmix_data_buffer_t *buffer)
{
    pmix_proc_t proc = upcall->proc;
    bool first_read = is_for_one(upcall);
    pmix_status_t status = PMIx_Data_pack(NULL, buffer, &proc, 1, PMIX_PROC);
    if (status == PMIX_SUCCESS)
        status = PMIx_Data_pack(NULL, buffer, &first_read, 1, PMIX_BOOL);
    for (size_t i = 0; status == PMIX_SUCCESS && i < upcall->info_count; i++)
        if (!is_directive(&upcall->info[i]))
            status = PMIx_Data_pack(NULL, buffer, &upcall->info[i], 1, PMIX_INFO);
    return status;
}

static void ask(struct pmix_host *host, struct upcall *upcall, Drarun__Wire__Routed *message)
{
    message->destination = 0;
    message->id = pmix_pend(host, upcall);
    if (message->id == 0)
        upcall_answer(upcall, PMIX_ERR_NOMEM);
    else
        pmix_route(host, message);
}

void pmix_on_publish(struct pmix_host *host, struct upcall *upcall)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Publish publish = DRARUN__WIRE__PUBLISH__INIT;
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    pmix_status_t status = rank < 0 ? PMIX_ERR_BAD_PARAM : pack_publish(upcall, &buffer);
    if (status == PMIX_SUCCESS && buffer.bytes_used > PMIX_ROUTED_MAX)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    if (status == PMIX_SUCCESS) {
        publish.rank = (uint32_t)rank;
        publish.far = is_far(upcall);
        publish.shared = publish.far && !is_for_one(upcall);
        publish.data.data = (uint8_t *)buffer.base_ptr;
        publish.data.len = buffer.bytes_used;
        message.body_case = DRARUN__WIRE__ROUTED__BODY_PUBLISH;
        message.publish = &publish;
        ask(host, upcall, &message);
    } else {
        upcall_answer(upcall, status);
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

static size_t count_keys(char **keys)
{
    size_t count = 0;
    while (keys && keys[count])
        count++;
    return count;
}

void pmix_on_lookup(struct pmix_host *host, struct upcall *upcall)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Lookup lookup = DRARUN__WIRE__LOOKUP__INIT;
    int64_t timeout_s = upcall_number(upcall, PMIX_TIMEOUT);
    int64_t wanted = upcall_number(upcall, PMIX_WAIT); /* 0: all */
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank < 0) {
        upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
        return;
    }
    lookup.rank = (uint32_t)rank;
    lookup.n_keys = count_keys(upcall->keys);
    lookup.keys = upcall->keys;
    lookup.wait = upcall_info(upcall, PMIX_WAIT) != NULL;
    if (wanted > 0 && wanted < (int64_t)lookup.n_keys)
        lookup.may_lack = (uint32_t)((int64_t)lookup.n_keys - wanted);
    if (timeout_s > 0)
        lookup.timeout_s = timeout_s < INT32_MAX ? (uint32_t)timeout_s : INT32_MAX;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_LOOKUP;
    message.lookup = &lookup;
    ask(host, upcall, &message);
}

void pmix_on_unpublish(struct pmix_host *host, struct upcall *upcall)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__Unpublish unpublish = DRARUN__WIRE__UNPUBLISH__INIT;
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank < 0) {
        upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
        return;
    }
    unpublish.rank = (uint32_t)rank;
    unpublish.n_keys = count_keys(upcall->keys);
    unpublish.keys = upcall->keys;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_UNPUBLISH;
    message.unpublish = &unpublish;
    ask(host, upcall, &message);
}

static void answer_lookup(struct upcall *upcall, const Drarun__Wire__DataReply *reply)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_byte_object_t bytes = {(char *)reply->data.data, reply->data.len};
    size_t limit = count_keys(upcall->keys), used = 0;
    pmix_pdata_t *found;
    PMIX_PDATA_CREATE(found, limit + 1);
    pmix_status_t status = found ? PMIx_Data_embed(&buffer, &bytes) : PMIX_ERR_NOMEM;
    while (status == PMIX_SUCCESS && used < limit) {
        int32_t one = 1;
        pmix_info_t info;
        PMIX_INFO_CONSTRUCT(&info);
        status = PMIx_Data_unpack(NULL, &buffer, &found[used].proc, &one, PMIX_PROC);
        if (status == PMIX_SUCCESS)
            status = PMIx_Data_unpack(NULL, &buffer, &info, &one, PMIX_INFO);
        if (status != PMIX_SUCCESS)
            break;
        PMIX_LOAD_KEY(found[used].key, info.key);
        PMIX_VALUE_XFER_DIRECT(status, &found[used].value, &info.value);
        used++;
        PMIX_INFO_DESTRUCT(&info);
    }
    if (status == PMIX_ERR_NOMEM)
        upcall_answer(upcall, status);
    else if (used > 0)
        upcall_answer_pdata(upcall, found, used);
    else
        upcall_answer(upcall, PMIX_ERR_NOT_FOUND);
    if (found)
        PMIX_PDATA_FREE(found, limit + 1);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
}

/* Open MPI tells the error to this rank alone, and those that connect with it would wait
 * indefinitely: so the job ends. */
static void refuse_to_connect(struct pmix_host *host, const struct upcall *upcall)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank >= 0)
        host->owner.abort(host->owner.arg, (uint32_t)rank, 1,
                          "it cannot connect to the port of another job, which has ended");
}

void pmix_data_reply(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    struct upcall *upcall = pmix_unpend(host, message->id);
    if (!upcall) {
        log_error("an answer from worker %u to no request", message->source);
        return;
    }
    if (message->body_case == DRARUN__WIRE__ROUTED__BODY_DMODEX_REPLY) {
        const Drarun__Wire__DmodexReply *reply = message->dmodex_reply;
        if (upcall->modex_cb)
            upcall_answer_data(upcall, reply->status, reply->data.data, reply->data.len);
        else
            upcall_answer(upcall, PMIX_ERR_BAD_PARAM);
        return;
    }
    if (upcall->lookup_cb && message->data_reply->status == PMIX_ERR_LOST_CONNECTION)
        refuse_to_connect(host, upcall);
    if (upcall->lookup_cb && message->data_reply->status == PMIX_SUCCESS)
        answer_lookup(upcall, message->data_reply);
    else
        upcall_answer(upcall, message->data_reply->status);
}
