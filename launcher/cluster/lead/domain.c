/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/plan_input.h"
#include "jobs/derive/placement/cliques.h"
#include "launcher/cluster/lead/private.h"
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
    json_array_foreach(claims, i, other)
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

int lead_add_named_claims(struct lead *lead, json_t *claims, struct drarun_error *err)
{
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    size_t i;
    json_t *claim;
    json_array_foreach(lead->domain.claims, i, claim)
    {
        if (add(lead, workers, claim, claims) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

/* ---- cliques ---- */

void lead_forget_order(struct lead *lead)
{
    free(TAKE_PTR(lead->domain.cliques));
    free(TAKE_PTR(lead->domain.rank_order));
    json_decref(TAKE_PTR(lead->domain.object));
}

static const char *clique_told(const json_t *domain, const char *node)
{
    size_t i;
    json_t *told;
    const json_t *nodes = json_object_get(json_object_get(domain, "status"), "nodes");
    json_array_foreach(nodes, i, told)
    {
        const char *name = json_string_value(json_object_get(told, "name"));
        const char *clique = json_string_value(json_object_get(told, "cliqueID"));
        if (name && node && strcmp(name, node) == 0)
            return clique && clique[0] ? clique : NULL;
    }
    return NULL;
}

int lead_order_ranks(struct lead *lead, struct drarun_error *err)
{
    const json_t *labels = lead->facts ? facts_node_labels(lead->facts) : NULL;
    uint32_t count = lead->spec->workers;
    if (!lead->spec->compute_domain)
        return 0;
    lead->domain.cliques = calloc(count, sizeof *lead->domain.cliques);
    if (!lead->domain.cliques)
        return error_set(err, ENOMEM, "out of memory");
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *own = workers[i].node ? json_object_get(labels, workers[i].node) : NULL;
        lead->domain.cliques[i] = labels
                                      ? json_string_value(json_object_get(own, PLAN_CLIQUE_LABEL))
                                      : clique_told(lead->domain.object, workers[i].node);
    }
    return cliques_order(lead->domain.cliques, count, &lead->domain.rank_order, err);
}
