/* SPDX-License-Identifier: Apache-2.0 */
/* Direct modex: a rank asks for what one rank on another agent has put, without a fence. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "worker/pmix/far.h"
#include "worker/pmix/host_private.h"

/* Of another job: what came when it was connected with. */
static void answer_far(struct pmix_host *host, struct upcall *upcall)
{
    const struct buf *modex = far_modex(host, &upcall->proc);
    if (modex)
        upcall_answer_data(upcall, PMIX_SUCCESS, modex->data, modex->len);
    else
        upcall_answer(upcall, PMIX_ERR_NOT_FOUND);
}

void pmix_on_dmodex(struct pmix_host *host, struct upcall *upcall)
{
    int64_t rank = pmix_rank_of(host, &upcall->proc);
    if (rank < 0) {
        answer_far(host, upcall);
        return;
    }
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__DmodexRequest request = DRARUN__WIRE__DMODEX_REQUEST__INIT;
    message.id = pmix_pend(host, upcall);
    if (message.id == 0) {
        upcall_answer(upcall, PMIX_ERR_NOMEM);
        return;
    }
    request.rank = (uint32_t)rank;
    message.destination = rankmap_worker(&host->job->map, (uint32_t)rank);
    message.body_case = DRARUN__WIRE__ROUTED__BODY_DMODEX_REQUEST;
    message.dmodex_request = &request;
    pmix_route(host, &message);
}

static void reply(struct pmix_host *host, const struct upcall *upcall)
{
    Drarun__Wire__Routed message = DRARUN__WIRE__ROUTED__INIT;
    Drarun__Wire__DmodexReply answer = DRARUN__WIRE__DMODEX_REPLY__INIT;
    answer.status = upcall->status;
    answer.data.data = (uint8_t *)upcall->data;
    answer.data.len = upcall->length;
    if (upcall->length > PMIX_ROUTED_MAX && upcall->source != host->tree->self) {
        log_error(
            "direct modex: rank %u has put %zu bytes, and %u fit into a message; a fence that "
            "collects data has no such limit",
            upcall->proc.rank, upcall->length, PMIX_ROUTED_MAX);
        answer.status = PMIX_ERR_OUT_OF_RESOURCE;
        answer.data.len = 0;
    }
    message.destination = upcall->source;
    message.id = upcall->id;
    message.body_case = DRARUN__WIRE__ROUTED__BODY_DMODEX_REPLY;
    message.dmodex_reply = &answer;
    pmix_route(host, &message);
}

/* On PMIx' thread. */
static void on_library_answer(pmix_status_t status, char *data, size_t size, void *cbdata)
{
    struct upcall *upcall = cbdata;
    upcall->status = status;
    upcall->data = size > 0 ? malloc(size) : NULL;
    if (upcall->data) {
        memcpy(upcall->data, data, size);
        upcall->length = size;
    } else if (size > 0) {
        upcall->status = PMIX_ERR_NOMEM;
    }
    upcall_post_take(upcall);
}

bool pmix_ask_modex(struct pmix_host *host, uint32_t rank, enum upcall_kind kind, uint64_t id,
                    uint32_t source)
{
    struct upcall *upcall = calloc(1, sizeof *upcall);
    if (!upcall)
        return false;
    upcall->kind = kind;
    upcall->id = id;
    upcall->source = source;
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    if (host->registered && rank < host->job->map.ranks &&
        !agent_job_group_of(host->job, rank)->released) {
        upcall->proc = pmix_proc_of(host, rank);
        status = PMIx_server_dmodex_request(&upcall->proc, on_library_answer, upcall);
    }
    if (status != PMIX_SUCCESS)
        on_library_answer(status, NULL, 0, upcall);
    return true;
}

void pmix_dmodex_request(struct pmix_host *host, const Drarun__Wire__Routed *message)
{
    const struct upcall lost = {
        .id = message->id, .source = message->source, .status = PMIX_ERR_NOMEM};
    if (!pmix_ask_modex(host, message->dmodex_request->rank, UPCALL_LOCAL_MODEX, message->id,
                        message->source))
        reply(host, &lost);
}

void pmix_on_local_modex(struct pmix_host *host, struct upcall *upcall)
{
    reply(host, upcall);
    upcall_free(upcall);
}
