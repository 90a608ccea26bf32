/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "launcher/cluster/lead_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* The worker whose pod the claim is reserved for; -1: none of ours. */
static int64_t worker_of(const struct lead *lead, const struct pod_state *workers,
                         const json_t *consumer)
{
    const char *uid = json_string_value(json_object_get(consumer, "uid"));
    for (uint32_t i = 0; uid && i < lead->spec->workers; i++)
        if (workers[i].uid && strcmp(workers[i].uid, uid) == 0)
            return i;
    return -1;
}

static bool is_there(const json_t *claims, const json_t *claim)
{
    size_t i;
    json_t *other;
    json_array_foreach((json_t *)claims, i, other)
    {
        if (strcmp(kube_uid(other), kube_uid(claim)) == 0)
            return true;
    }
    return false;
}

static int add(const struct lead *lead, const struct pod_state *workers, json_t *claim,
               json_t *claims)
{
    size_t i;
    json_t *consumer;
    const json_t *status = json_object_get(claim, "status");
    json_array_foreach(json_object_get(status, "reservedFor"), i, consumer)
    {
        int64_t worker = worker_of(lead, workers, consumer);
        json_t *own = worker < 0 ? NULL : json_array_get(claims, (size_t)worker);
        if (own && !is_there(own, claim) && json_array_append(own, claim) < 0)
            return -ENOMEM;
    }
    return 0;
}

int lead_read_channels(struct lead *lead, struct drarun_error *err)
{
    struct kube_resource resource = kube_resource_claims;
    const struct kube_target target = {.resource = &resource,
                                       .namespace_ = lead->options->namespace};
    CLEANUP(json_decrefp) json_t *body = NULL;
    if (!lead->spec->compute_domain || !lead->cluster->api)
        return 0;
    resource.version = cluster_claims_version(lead->cluster);
    int rc = cluster_list(lead->cluster, &target, NULL, &body, err);
    if (rc < 0)
        return error_prefix(err, "the channels of the compute domain");
    json_decref(lead->all_claims);
    lead->all_claims = json_incref(json_object_get(body, "items"));
    return 0;
}

int lead_add_channels(struct lead *lead, json_t *claims, struct drarun_error *err)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    size_t i;
    json_t *claim;
    json_array_foreach(lead->all_claims, i, claim)
    {
        if (add(lead, workers, claim, claims) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}
