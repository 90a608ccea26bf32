/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/client/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/list.h"

struct facts {
    struct cluster *cluster;
    struct kube_resource slice_resource;
    struct kube_listing *slices_call, *nodes_call;
    struct slices slices;
    bool have_slices;
    json_t *labels;
    struct drarun_error missing;
};

static void miss(struct facts *facts, const struct drarun_error *err)
{
    log_verbose("%s", err->text);
    if (!facts->missing.code)
        facts->missing = *err;
}

static void on_slices(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct facts *facts = arg;
    struct drarun_error wrong = {0};
    facts->slices_call = NULL;
    if (err) {
        miss(facts, err);
        return;
    }
    facts->have_slices =
        slices_read((json_t *)json_object_get(answer->body, "items"), &facts->slices, &wrong) == 0;
    if (!facts->have_slices)
        miss(facts, &wrong);
}

static void on_nodes(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct facts *facts = arg;
    size_t i;
    json_t *node;
    facts->nodes_call = NULL;
    if (err) {
        miss(facts, err);
        return;
    }
    facts->labels = json_object();
    json_array_foreach(json_object_get(answer->body, "items"), i, node)
    {
        json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
        if (labels)
            json_object_set(facts->labels, kube_name(node), labels);
    }
}

int facts_new(struct cluster *cluster, struct facts **ret_facts, struct drarun_error *err)
{
    /* names and labels alone: a Node lists all images that it holds */
    static const struct kube_select labels = {.metadata_only = true};
    static const struct kube_target nodes = {.resource = &kube_nodes};
    CLEANUP(facts_freep) struct facts *facts = calloc(1, sizeof *facts);
    if (!facts)
        return error_set(err, ENOMEM, "out of memory");
    facts->cluster = cluster;
    facts->slice_resource = kube_resource_slices;
    facts->slice_resource.version = cluster_claims_version(cluster);
    const struct kube_target target = {.resource = &facts->slice_resource};
    int rc = kube_list(cluster->client, &target, NULL, on_slices, facts, &facts->slices_call, err);
    if (rc == 0)
        rc = kube_list(cluster->client, &nodes, &labels, on_nodes, facts, &facts->nodes_call, err);
    if (rc == 0)
        *ret_facts = TAKE_PTR(facts);
    return rc;
}

void facts_free(struct facts *facts)
{
    if (!facts)
        return;
    kube_list_cancel(facts->slices_call);
    kube_list_cancel(facts->nodes_call);
    if (facts->have_slices)
        slices_done(&facts->slices);
    json_decref(facts->labels);
    free(facts);
}

bool facts_are_read(const struct facts *facts)
{
    return !facts->slices_call && !facts->nodes_call;
}

void facts_wait(struct facts *facts)
{
    while (!facts_are_read(facts))
        cluster_turn(facts->cluster, KUBE_CALL_MS);
}

const struct slices *facts_slices(const struct facts *facts)
{
    return facts->have_slices ? &facts->slices : NULL;
}

const json_t *facts_node_labels(const struct facts *facts)
{
    return facts->labels;
}

const char *facts_missing(const struct facts *facts)
{
    return facts->missing.text;
}
