/* SPDX-License-Identifier: Apache-2.0 */
/* NodePrepareResources and NodeUnprepareResources. Their answers are built as protobuf-c would have
 * read them, so that its own function frees them. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/unconst.h"
#include "plugin/kubelet/dra.pb-c.h"
#include "plugin/kubelet/dra_private.h"

typedef Kubelet__NodePrepareResourcesResponse prepared;
typedef Kubelet__NodePrepareResourcesResponse__ClaimsEntry prepared_entry;
typedef Kubelet__NodePrepareResourceResponse prepared_claim;
typedef Kubelet__NodeUnprepareResourcesResponse unprepared;
typedef Kubelet__NodeUnprepareResourcesResponse__ClaimsEntry unprepared_entry;
typedef Kubelet__NodeUnprepareResourceResponse unprepared_claim;

/* A call with claims that are not all answered. */
struct batch {
    struct rpc_call *call;
    prepared *prepared; /* one of these two */
    unprepared *unprepared;
    size_t left; /* claims to be answered; one more while they are handed out */
    bool failed; /* out of memory */
};

struct dra_reply {
    struct batch *batch;
    size_t index;
};

static void batch_free(struct batch *batch)
{
    if (batch->prepared)
        kubelet__node_prepare_resources_response__free_unpacked(batch->prepared, NULL);
    if (batch->unprepared)
        kubelet__node_unprepare_resources_response__free_unpacked(batch->unprepared, NULL);
    free(batch);
}

static void batch_put(struct batch *batch)
{
    if (--batch->left > 0)
        return;
    if (batch->failed)
        rpc_call_fail_take(batch->call, RPC_RESOURCE_EXHAUSTED, "out of memory");
    else
        dra_answer_take(batch->call,
                        batch->prepared ? &batch->prepared->base : &batch->unprepared->base);
    batch_free(batch);
}

static void reply_done(struct dra_reply *reply)
{
    struct batch *batch = reply->batch;
    free(reply);
    batch_put(batch);
}

/* A copy, or "" with `failed` set: never NULL, as protobuf-c wants it. */
static char *copy(const char *text, bool *failed)
{
    char *own = text && *text ? strdup(text) : NULL;
    if (text && *text && !own)
        *failed = true;
    return own ? own : unconst(protobuf_c_empty_string);
}

static char **copy_all(const char *const *texts, size_t count, size_t *ret_count, bool *failed)
{
    char **all = calloc(count + 1, sizeof *all);
    if (!all) {
        *failed = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        all[i] = copy(texts[i], failed);
    *ret_count = count;
    return all;
}

/* The kubelet compares them with what containers list, which is never a subrequest: upstream's own
 * kubeletplugin drops those parts, too. */
static void drop_subrequests(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++) {
        char *slash = strchr(names[i], '/');
        if (slash)
            *slash = '\0';
    }
}

static Kubelet__Device *copy_device(const struct dra_device *device, bool *failed)
{
    Kubelet__Device *own = malloc(sizeof *own);
    if (!own) {
        *failed = true;
        return NULL;
    }
    kubelet__device__init(own);
    own->request_names =
        copy_all(device->requests, device->request_count, &own->n_request_names, failed);
    drop_subrequests(own->request_names, own->n_request_names);
    own->cdi_device_ids =
        copy_all(device->cdi_ids, device->cdi_id_count, &own->n_cdi_device_ids, failed);
    own->pool_name = copy(device->pool, failed);
    own->device_name = copy(device->name, failed);
    return own;
}

void dra_reply_prepared_take(struct dra_reply *reply, const struct dra_device *devices,
                             size_t count)
{
    struct batch *batch = reply->batch;
    prepared_claim *claim = batch->prepared->claims[reply->index]->value;
    claim->devices = calloc(count + 1, sizeof *claim->devices);
    if (!claim->devices)
        batch->failed = true;
    for (size_t i = 0; claim->devices && i < count && !batch->failed; i++)
        if ((claim->devices[i] = copy_device(&devices[i], &batch->failed)))
            claim->n_devices++;
    reply_done(reply);
}

void dra_reply_unprepared_take(struct dra_reply *reply)
{
    reply_done(reply);
}

void dra_reply_failed_take(struct dra_reply *reply, const struct drarun_error *err)
{
    struct batch *batch = reply->batch;
    if (batch->prepared)
        batch->prepared->claims[reply->index]->value->error = copy(err->text, &batch->failed);
    else
        batch->unprepared->claims[reply->index]->value->error = copy(err->text, &batch->failed);
    reply_done(reply);
}

bool dra_reply_unwanted(const struct dra_reply *reply)
{
    return rpc_call_gone(reply->batch->call);
}

static bool add_prepared(prepared *response, const char *uid)
{
    bool failed = false;
    prepared_entry *entry = malloc(sizeof *entry);
    if (!entry)
        return false;
    kubelet__node_prepare_resources_response__claims_entry__init(entry);
    response->claims[response->n_claims++] = entry;
    entry->key = copy(uid, &failed);
    entry->value = malloc(sizeof *entry->value);
    if (!entry->value)
        return false;
    kubelet__node_prepare_resource_response__init(entry->value);
    return !failed;
}

static bool add_unprepared(unprepared *response, const char *uid)
{
    bool failed = false;
    unprepared_entry *entry = malloc(sizeof *entry);
    if (!entry)
        return false;
    kubelet__node_unprepare_resources_response__claims_entry__init(entry);
    response->claims[response->n_claims++] = entry;
    entry->key = copy(uid, &failed);
    entry->value = malloc(sizeof *entry->value);
    if (!entry->value)
        return false;
    kubelet__node_unprepare_resource_response__init(entry->value);
    return !failed;
}

static bool begin_prepared(struct batch *batch, size_t count)
{
    batch->prepared = malloc(sizeof *batch->prepared);
    if (!batch->prepared)
        return false;
    kubelet__node_prepare_resources_response__init(batch->prepared);
    batch->prepared->claims = calloc(count + 1, sizeof(prepared_entry *));
    return batch->prepared->claims;
}

static bool begin_unprepared(struct batch *batch, size_t count)
{
    batch->unprepared = malloc(sizeof *batch->unprepared);
    if (!batch->unprepared)
        return false;
    kubelet__node_unprepare_resources_response__init(batch->unprepared);
    batch->unprepared->claims = calloc(count + 1, sizeof(unprepared_entry *));
    return batch->unprepared->claims;
}

typedef void (*handle_fn)(const struct dra_claim *claim, struct dra_reply *reply, void *arg);

/* Each claim to its handler; a response with a place for each is there. */
static void hand_out(struct batch *batch, Kubelet__Claim *const *claims, size_t count,
                     handle_fn handle, void *arg)
{
    batch->left = 1;
    for (size_t i = 0; i < count && !batch->failed; i++) {
        bool added = batch->prepared ? add_prepared(batch->prepared, claims[i]->uid)
                                     : add_unprepared(batch->unprepared, claims[i]->uid);
        struct dra_reply *reply = added ? malloc(sizeof *reply) : NULL;
        if (!reply) {
            batch->failed = true;
            break;
        }
        *reply = (struct dra_reply){batch, i};
        batch->left++;
        handle(&(struct dra_claim){claims[i]->namespace_, claims[i]->name, claims[i]->uid}, reply,
               arg);
    }
    batch_put(batch);
}

static struct batch *batch_new(struct rpc_call *call, size_t count, bool prepare)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch && (prepare ? begin_prepared(batch, count) : begin_unprepared(batch, count))) {
        batch->call = call;
        return batch;
    }
    if (batch)
        batch_free(batch);
    rpc_call_fail_take(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
    return NULL;
}

void dra_prepare(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    struct dra_driver *driver = arg;
    Kubelet__NodePrepareResourcesRequest *request =
        kubelet__node_prepare_resources_request__unpack(NULL, length, message);
    if (!request) {
        dra_bad_message_take(call);
        return;
    }
    struct batch *batch = batch_new(call, request->n_claims, true);
    if (batch)
        hand_out(batch, request->claims, request->n_claims, driver->handler->prepare, driver->arg);
    kubelet__node_prepare_resources_request__free_unpacked(request, NULL);
}

void dra_unprepare(struct rpc_call *call, const uint8_t *message, size_t length, void *arg)
{
    struct dra_driver *driver = arg;
    Kubelet__NodeUnprepareResourcesRequest *request =
        kubelet__node_unprepare_resources_request__unpack(NULL, length, message);
    if (!request) {
        dra_bad_message_take(call);
        return;
    }
    struct batch *batch = batch_new(call, request->n_claims, false);
    if (batch)
        hand_out(batch, request->claims, request->n_claims, driver->handler->unprepare,
                 driver->arg);
    kubelet__node_unprepare_resources_request__free_unpacked(request, NULL);
}
