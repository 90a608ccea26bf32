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

static int join(struct facts *facts, const struct slices *later, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *document = slices_join(&facts->slices, later);
    struct slices joined;
    int rc = document ? slices_read(document, &joined, err)
                      : error_set(err, ENOMEM, "slices: out of memory");
    if (rc < 0)
        return rc;
    slices_done(&facts->slices);
    facts->slices = joined;
    return 0;
}

static int take_slices(struct facts *facts, json_t *items, struct drarun_error *err)
{
    struct slices now;
    int rc = slices_read(items, &now, err);
    if (rc < 0)
        return rc;
    if (!facts->have_slices) {
        facts->slices = now;
        facts->have_slices = true;
        return 0;
    }
    rc = join(facts, &now, err);
    slices_done(&now);
    return rc;
}

static void on_slices(const struct kube_answer *answer, const struct drarun_error *err, void *arg)
{
    struct facts *facts = arg;
    struct drarun_error wrong = {0};
    facts->slices_call = NULL;
    if (err)
        miss(facts, err);
    else if (take_slices(facts, json_object_get(answer->body, "items"), &wrong) < 0)
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
    if (!facts->labels)
        facts->labels = json_object();
    json_array_foreach(json_object_get(answer->body, "items"), i, node)
    {
        json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels");
        if (labels)
            json_object_set(facts->labels, kube_name(node), labels);
    }
}

int facts_read_again(struct facts *facts, struct drarun_error *err)
{
    /* names and labels alone: a Node lists all images that it holds */
    static const struct kube_select labels = {.metadata_only = true};
    static const struct kube_target nodes = {.resource = &kube_nodes};
    struct kube_client *client = facts->cluster->client;
    const struct kube_target slices = {.resource = &facts->slice_resource};
    int rc = kube_list(client, &slices, NULL, on_slices, facts, &facts->slices_call, err);
    return rc < 0 ? rc
                  : kube_list(client, &nodes, &labels, on_nodes, facts, &facts->nodes_call, err);
}

int facts_new(struct cluster *cluster, struct facts **ret_facts, struct drarun_error *err)
{
    CLEANUP(facts_freep) struct facts *facts = calloc(1, sizeof *facts);
    if (!facts)
        return error_set(err, ENOMEM, "out of memory");
    facts->cluster = cluster;
    facts->slice_resource = kube_resource_slices;
    facts->slice_resource.version = cluster_claims_version(cluster);
    int rc = facts_read_again(facts, err);
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
