/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the cluster between two phases: the workers are up, and their ranks are not yet
 * numbered. */
#include <errno.h>
#include <stdio.h>

#include "jobs/derive/inventory/allocation.h"
#include "jobs/manifests/claims.h"
#include "jobs/spec/k8s_name.h"
#include "launcher/cluster/lead/private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/list.h"

struct reading {
    struct lead *lead;
    struct kube_listing *claims; /* NULL: not asked for, or answered */
    struct drarun_error unread;  /* why they could not be listed; code 0: nothing */
    struct cluster_read domain;
};

static void reading_done(struct reading *r)
{
    kube_list_cancel(r->claims);
    cluster_read_drop(&r->domain);
}

static void on_claims(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct reading *r = arg;
    struct lead_domain *domain = &r->lead->domain;
    r->claims = NULL;
    if (err) {
        r->unread = *err;
        return;
    }
    json_decref(domain->claims);
    domain->claims = json_incref(json_object_get(answer->body, "items"));
}

/* Those that the workers' pods name and that have no label of ours: channels of a compute domain,
 * which NVIDIA's controller creates, and the user's claims. */
static int ask_for_claims(struct reading *r, struct drarun_error *err)
{
    struct lead *lead = r->lead;
    struct kube_resource resource = kube_resource_claims;
    const struct kube_target target = {.resource = &resource,
                                       .namespace_ = lead->options->namespace};
    if (!claims_named(lead->spec) || !lead->cluster->api)
        return 0;
    resource.version = cluster_claims_version(lead->cluster);
    return kube_list(lead->cluster->client, &target, NULL, on_claims, r, &r->claims, err);
}

static bool is_asking(const struct reading *r)
{
    const struct facts *facts = r->lead->facts;
    return r->claims || r->domain.call || (facts && !facts_are_read(facts));
}

static int await_answers(const struct reading *r)
{
    struct lead *lead = r->lead;
    while (is_asking(r) && !r->unread.code && !lead_is_stopped(lead)) {
        lead_look_for_shell(lead);
        if (!lead_is_stopped(lead))
            cluster_turn(lead->cluster, KUBE_CALL_MS);
    }
    return lead_is_stopped(lead) ? -EINTR : 0;
}

/* claims: an array of them. */
static bool has_devices(const struct slices *slices, const json_t *claims)
{
    size_t i;
    json_t *claim;
    json_array_foreach(claims, i, claim)
    {
        struct allocation a;
        bool has = true;
        if (allocation_read(claim, &a, NULL) < 0)
            continue; /* the plan says so */
        for (size_t k = 0; has && k < a.count; k++)
            has = slices_find(slices, a.results[k].driver, a.results[k].pool, a.results[k].device);
        allocation_done(&a);
        if (!has)
            return false;
    }
    return true;
}

/* claims: by worker. */
static bool is_known(const struct lead *lead, const json_t *claims)
{
    const struct slices *slices = facts_slices(lead->facts);
    const json_t *labels = facts_node_labels(lead->facts);
    const struct pod_state *workers = board_workers(lead->board, lead->render.attempt);
    for (uint32_t i = 0; i < lead->spec->workers; i++)
        if ((labels && workers[i].node && !json_object_get(labels, workers[i].node)) ||
            (slices && !has_devices(slices, json_array_get(claims, i))))
            return false;
    return true;
}

/* Nodes may have come since the job began, as an autoscaler's do, and devices of those that were
 * there. */
static int read_news(struct reading *r, struct drarun_error *err)
{
    struct lead *lead = r->lead;
    if (!lead->facts)
        return 0;
    CLEANUP(json_decrefp) json_t *claims = board_claims(lead->board, lead->render.attempt);
    if (!claims)
        return error_set(err, ENOMEM, "out of memory");
    int rc = lead_add_named_claims(lead, claims, err);
    if (rc < 0 || is_known(lead, claims))
        return rc;
    rc = facts_read_again(lead->facts, err);
    return rc < 0 ? rc : await_answers(r);
}

/* NVIDIA's controller tells the cliques of the nodes that its domain has, to whom Nodes are not
 * shown too. */
static int read_domain(struct reading *r)
{
    struct lead *lead = r->lead;
    char name[K8S_LABEL_MAX + 8];
    struct drarun_error err = {0};
    const struct kube_target target = {
        .resource = &kube_compute_domains, .namespace_ = lead->options->namespace, .name = name};
    snprintf(name, sizeof name, "%s-domain", lead->spec->name);
    int rc = cluster_read_start(lead->cluster, &target, &r->domain, &err);
    if (rc == 0 && await_answers(r) < 0)
        return -EINTR;
    if (rc == 0)
        rc = cluster_read_end(lead->cluster, &r->domain, &lead->domain.object, &err);
    if (rc < 0)
        log_note("NVLink cliques are not known, ranks are in the order of workers: %s", err.text);
    return 0;
}

int lead_read(struct lead *lead, struct drarun_error *err)
{
    CLEANUP(reading_done) struct reading r = {.lead = lead};
    lead_forget_order(lead);
    int rc = ask_for_claims(&r, err);
    if (rc == 0)
        rc = await_answers(&r);
    if (rc < 0)
        return rc;
    if (r.unread.code) {
        error_kind(err, r.unread.kind, r.unread.code, "%s", r.unread.text);
        return error_prefix(err, "the claims that the workers' pods name");
    }
    rc = read_news(&r, err);
    if (rc < 0)
        return rc;
    bool told_by_nodes = lead->facts && facts_node_labels(lead->facts);
    return lead->spec->compute_domain && !told_by_nodes ? read_domain(&r) : 0;
}
