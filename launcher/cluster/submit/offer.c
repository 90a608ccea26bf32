/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/submit/offer.h"

#include <stdio.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "lib/wire/hello.h"

/* Their objects; NULL where they cannot be read. */
static json_t *items(struct cluster *cluster, const struct kube_resource *kind)
{
    struct kube_resource resource = *kind;
    struct drarun_error err = {0};
    const struct kube_target target = {.resource = &resource};
    CLEANUP(json_decrefp) json_t *body = NULL;
    resource.version = cluster_claims_version(cluster);
    if (cluster_list(cluster, &target, NULL, &body, &err) < 0) {
        log_verbose("the agent is delivered by a volume: %s", err.text);
        return NULL;
    }
    return json_incref(json_object_get(body, "items"));
}

static void take(struct cluster *cluster, const struct agent_claim *found)
{
    char text[AGENT_CLAIM_TEXT_MAX];
    cluster->agent = *found;
    agent_claim_text(found, text);
    snprintf(cluster->agent_text, sizeof cluster->agent_text, CLUSTER_BY_CLAIM "%s", text);
    cluster->delivery = cluster->agent_text;
    log_verbose("the agent is delivered by the claims, as all nodes have it: %s", text);
}

void offer_look(struct cluster *cluster, const struct job_spec *spec)
{
    struct agent_claim found;
    struct slices slices;
    struct buf why = BUF_INIT;
    if (cluster->delivery || !cluster->api || !agent_claim_fits(spec))
        return;
    CLEANUP(json_decrefp) json_t *classes = items(cluster, &kube_device_classes);
    if (!classes || !agent_claim_concerns(spec, classes))
        return;
    CLEANUP(json_decrefp) json_t *list = items(cluster, &kube_resource_slices);
    if (!list || slices_read(list, &slices, NULL) < 0)
        return;
    if (agent_claim_find(spec, &slices, classes, WIRE_MAJOR, &found, &why))
        take(cluster, &found);
    else if (why.len > 0)
        log_note("the agent is delivered by a volume: %s", why.data);
    slices_done(&slices);
    buf_done(&why);
}
