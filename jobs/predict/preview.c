/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict/preview.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/claims.h"
#include "jobs/manifests/extended_claim.h"
#include "jobs/manifests/limits.h"
#include "jobs/derive/inventory/allocation.h"
#include "jobs/derive/inventory/plan_input.h"
#include "jobs/derive/placement/cliques.h"
#include "jobs/profiles/machine.h"
#include "jobs/manifests/namespace_fit.h"
#include "jobs/manifests/node_fit.h"
#include "jobs/spec/node_spread.h"
#include "jobs/manifests/pod_merge.h"
#include "jobs/predict/class_devices.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"
#include "lib/dra/node_selector.h"

#define COSTLY_PAIRS 8u

/* Pairs that take every NIC of a node need no constraint, which costs the scheduler seconds on a
 * node that has nearly enough of them (docs/design/010-claims.md). */
static const char *advise(const struct spec_role *role, const struct prediction *prediction)
{
    uint32_t pairs = role->gpus.count < role->nics.count ? role->gpus.count : role->nics.count;
    if (claims_alignment(role) != CLAIMS_ALIGNED_BY_CLAIM || pairs < COSTLY_PAIRS)
        return NULL;
    for (size_t i = 0; i < prediction->need_count; i++) {
        const struct predict_need *need = &prediction->needs[i];
        if (strncmp(need->requests, "nic", 3) == 0 && need->most_of_node > role->nics.count)
            return NULL;
    }
    return "the NICs of a worker are all that a node has: \"nics: {count: all}\" with \"align: "
           "none\" "
           "gives the same devices, and spares the scheduler the seconds that it needs to rule out "
           "a node where one of them is taken";
}

/* What keeps the pods from a node beside their own devices. */
struct room {
    const struct preview_input *in;
    struct node_fit *fit;                      /* NULL: Nodes are not known */
    struct allocation shared[SPEC_SHARED_MAX]; /* claims that all workers hold */
    size_t shared_count;
    json_t *apart; /* node -> the role whose worker is there, and lets none of this one in */
};

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

static const json_t *labels_of(const struct preview_input *in, const char *node)
{
    return json_object_get(in->node_labels, node); /* those of every Node that is given */
}

static uint32_t room_of(const char *node, const void *arg, char ret_why[PREDICT_WHY])
{
    const struct room *room = arg;
    const json_t *labels = labels_of(room->in, node);
    const char *role = json_string_value(json_object_get(room->apart, node));
    if (room->in->nodes_known && !labels) {
        snprintf(ret_why, PREDICT_WHY, "slices but no Node object");
        return 0;
    }
    if (role) {
        snprintf(ret_why, PREDICT_WHY, "a worker of role %.63s (" NODE_SPREAD_KEY ")", role);
        return 0;
    }
    for (size_t i = 0; i < room->shared_count; i++) {
        const struct allocation *held = &room->shared[i];
        if (!held->selector || node_selector_matches(held->selector, node, labels) != 0)
            continue; /* what is not known is told by note_unreached */
        snprintf(ret_why, PREDICT_WHY, "the shared claim %.50s holds devices of %.63s", held->claim,
                 held->node ? held->node : "other nodes");
        return 0;
    }
    if (room->fit)
        return node_fit_room(room->fit, node, ret_why);
    ret_why[0] = '\0';
    return UINT32_MAX;
}

/* The claim of that name that is there; NULL: it is not among those that were given. */
static json_t *given_claim(const struct preview_input *in, const char *name)
{
    size_t i;
    json_t *claim;
    json_array_foreach(in->claims, i, claim)
    {
        const json_t *metadata = json_object_get(claim, "metadata");
        const char *namespace = value_text_or(metadata, "namespace", "");
        if (strcmp(value_text_or(metadata, "name", ""), name) == 0 &&
            (!in->spec->namespace || !*namespace || strcmp(namespace, in->spec->namespace) == 0))
            return claim;
    }
    return NULL;
}

static bool is_allocated(const json_t *claim)
{
    return json_object_get(json_object_get(claim, "status"), "allocation") != NULL;
}

/* Of the shared claims those that have devices already; the rest is told as not predicted. */
static int read_shared(struct room *room, struct drarun_error *err)
{
    const struct preview_input *in = room->in;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->role->shared.count; i++) {
        const json_t *claim = given_claim(in, in->role->shared.items[i]);
        if (!claim || !is_allocated(claim))
            continue;
        rc = allocation_read(claim, &room->shared[room->shared_count], err);
        room->shared_count += rc == 0;
    }
    return rc;
}

static struct namespace_rules rules_of(const struct preview_input *in)
{
    return (struct namespace_rules){.quotas = in->quotas,
                                    .limit_ranges = in->limit_ranges,
                                    .classes = in->classes,
                                    .classes_known = in->classes_known,
                                    .nodes = in->nodes,
                                    .minor = in->minor};
}

/* A worker's pod as it would be made, for what nodes want of it. */
static int make_pod(const struct preview_input *in, const struct spec_role *role,
                    json_t **ret_template, struct drarun_error *err)
{
    const struct render_options options = {.api = CLAIMS_API_V1, .attempt = 1};
    const struct namespace_rules rules = rules_of(in);
    bool template = in->spec->claims == SPEC_CLAIMS_TEMPLATE;
    CLEANUP(json_decrefp) json_t *made = NULL;
    int rc = pod_merge(in->spec, &options, template ? POD_MERGE_INDEXED : (int64_t)role->first,
                       &made, err);
    if (rc == 0)
        rc = namespace_default(in->spec, &rules, json_object_get(made, "spec"), err);
    if (rc == 0)
        *ret_template = TAKE_PTR(made);
    return rc;
}

static bool has_nodes(const struct preview_input *in)
{
    return in->nodes_known || json_array_size(in->nodes) > 0;
}

/* ---- roles that have their place already ---- */

/* A gang has all of its roles or none: one without room takes nothing. */
static bool is_placed(const struct preview *earlier)
{
    return earlier->predicted && !earlier->prediction.shortage;
}

static int add_pods(const struct preview_input *in, struct node_fit *fit, struct drarun_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < in->earlier_count; i++) {
        const struct preview *earlier = in->earlier[i];
        CLEANUP(json_decrefp) json_t *pod = NULL;
        if (!is_placed(earlier))
            continue;
        rc = make_pod(in, earlier->role, &pod, err);
        if (rc == 0)
            rc = node_fit_add_pods(fit, json_object_get(pod, "spec"), earlier->prediction.workers,
                                   earlier->prediction.count, err);
    }
    return rc;
}

/* Roles that keep their own workers apart keep apart from each other (docs/design/039-roles.md). */
static int keep_apart(const struct preview_input *in, json_t *apart, struct drarun_error *err)
{
    if (!node_spread_is_ours(in->spec, in->role))
        return 0;
    for (uint32_t i = 0; i < in->earlier_count; i++) {
        const struct preview *earlier = in->earlier[i];
        const struct prediction *prediction = &earlier->prediction;
        if (!is_placed(earlier) || !node_spread_is_ours(in->spec, earlier->role))
            continue;
        for (uint32_t w = 0; w < prediction->count; w++)
            if (json_object_set_new(apart, prediction->workers[w].node,
                                    json_string(earlier->role->name)) < 0)
                return no_memory(err);
    }
    return 0;
}

/* The claims that are there, and those that the workers of earlier roles would have. */
static int all_claims(const struct preview_input *in, json_t **ret_claims, struct drarun_error *err)
{
    json_t *all = *ret_claims = json_array();
    int rc = in->claims ? json_array_extend(all, unconst(in->claims)) : 0;
    for (uint32_t i = 0; i < in->earlier_count; i++) {
        const json_t *of_workers = in->earlier[i]->claims;
        if (!is_placed(in->earlier[i]))
            continue;
        for (size_t w = 0; w < json_array_size(of_workers); w++) /* each one's own comes first */
            rc |= json_array_append(all, json_array_get(json_array_get(of_workers, w), 0));
        if (in->earlier[i]->extended)
            rc |= json_array_extend(all, in->earlier[i]->extended);
    }
    return rc < 0 ? no_memory(err) : 0;
}

static void room_done(struct room *room)
{
    for (size_t i = 0; i < room->shared_count; i++)
        allocation_done(&room->shared[i]);
    node_fit_free(room->fit);
    json_decref(room->apart);
}

/* Where some nodes have a device plugin for a resource, no claim for it is searched: a node without
 * one takes no more pods than it has devices for. */
static int count_devices(const struct preview_input *in, struct node_fit *fit,
                         struct drarun_error *err)
{
    const struct extended_cluster cluster = {in->nodes, in->classes, in->minor};
    const struct predict_cluster of = {.slices = in->slices, .classes = in->classes};
    const char *resource;
    json_t *amount;
    int rc = 0;
    value_foreach(node_fit_request(fit), resource, amount)
    {
        CLEANUP(json_decrefp) json_t *nodes = NULL;
        enum extended_source source = EXTENDED_SOURCE_PLUGIN;
        const char *class = NULL;
        if (rc == 0)
            rc = extended_claim_source(&cluster, resource, &source, &class, err);
        if (rc < 0 || source != EXTENDED_SOURCE_BOTH)
            continue;
        if (in->slices)
            rc = class_devices_serving(class, &of, &nodes, err);
        else
            nodes = json_object();
        if (rc == 0 && nodes)
            rc = node_fit_use_devices(fit, resource, nodes, err);
    }
    return rc;
}

/* pod: the spec of one of the role's pods, or NULL. */
static int room_build(struct room *room, const json_t *pod, struct drarun_error *err)
{
    const struct preview_input *in = room->in;
    room->apart = json_object();
    int rc = room->apart ? keep_apart(in, room->apart, err) : no_memory(err);
    if (rc == 0 && has_nodes(in))
        rc = node_fit_new(in->nodes, pod, &room->fit, err);
    if (rc == 0 && room->fit)
        node_fit_use_classes(room->fit, in->classes, in->minor);
    if (rc == 0 && room->fit)
        rc = count_devices(in, room->fit, err);
    if (rc == 0 && room->fit)
        rc = add_pods(in, room->fit, err);
    return rc == 0 ? read_shared(room, err) : rc;
}

/* ---- what is left open ---- */

/* A Node that was written by hand, or cut down to its labels. */
static bool lacks_amounts(const json_t *nodes)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        if (!json_object_get(json_object_get(node, "status"), "allocatable"))
            return true;
    }
    return false;
}

/* Of files that hold some Nodes alone. */
static void note_nodes(const struct preview_input *in, const struct prediction *prediction,
                       struct strlist *notes)
{
    const char *first = NULL, *last = NULL;
    size_t count = 0;
    for (uint32_t w = 0; w < prediction->placed; w++) { /* node after node */
        const char *node = prediction->workers[w].node;
        if (labels_of(in, node) || (last && strcmp(last, node) == 0))
            continue;
        first = first ? first : node;
        last = node;
        count++;
    }
    if (count == 1)
        strlist_addf(notes,
                     "whether %s takes the pods (taints, labels, CPU, memory): its Node was "
                     "not given",
                     first);
    else if (count > 1)
        strlist_addf(notes,
                     "whether %s and %zu other node%s take the pods (taints, labels, CPU, "
                     "memory): their Nodes were not given",
                     first, count - 1, count == 2 ? "" : "s");
}

/* Nodes that were taken though a shared claim may keep the workers from them. */
static void note_unreached(const struct room *room, const struct prediction *prediction,
                           struct strlist *notes)
{
    for (size_t i = 0; i < room->shared_count; i++)
        for (uint32_t w = 0; w < prediction->placed; w++) {
            const struct allocation *held = &room->shared[i];
            const char *node = prediction->workers[w].node;
            int rc = held->selector
                         ? node_selector_matches(held->selector, node, labels_of(room->in, node))
                         : 1;
            if (rc >= 0)
                continue;
            strlist_addf(notes, "whether %s reaches the devices of the shared claim %s: %s", node,
                         held->claim,
                         rc == -EAGAIN ? "labels decide: give the Nodes"
                                       : "its allocation's nodeSelector has an operator or field "
                                         "that is not known");
            break;
        }
}

/* What decides over pods, too, and was not given or is not modelled. */
static void note_unseen(const struct preview_input *in, struct strlist *notes)
{
    const json_t *pod = spec_role_pod(in->role);
    const json_t *affinity = json_object_get(pod, "affinity");
    bool others = json_object_get(affinity, "podAffinity") ||
                  json_object_get(affinity, "podAntiAffinity") ||
                  json_object_get(pod, "topologySpreadConstraints");
    if (!has_nodes(in))
        strlist_add(notes, "whether nodes take the pods (taints, labels, CPU, memory): give the "
                           "Nodes");
    else
        strlist_add(notes, "how much of the nodes' CPU and memory other pods use");
    if (!in->rules_known && json_array_size(in->quotas) == 0 &&
        json_array_size(in->limit_ranges) == 0)
        strlist_add(notes, "quotas and limit ranges of the namespace");
    if (lacks_amounts(in->nodes))
        strlist_add(notes, "CPU, memory and devices of plugins on Nodes that are given without "
                           "status.allocatable");
    for (size_t i = 0; i < in->role->shared.count; i++) {
        const char *name = in->role->shared.items[i];
        const json_t *claim = given_claim(in, name);
        if (!claim)
            strlist_addf(notes,
                         "the shared claim %s, which was not given: whether it exists, on "
                         "which nodes its devices are and which they are",
                         name);
        else if (!is_allocated(claim))
            strlist_addf(notes,
                         "the shared claim %s, which is not allocated yet: on which nodes "
                         "its devices will be and which they are",
                         name);
    }
    if (json_array_size(json_object_get(pod, "resourceClaims")) > 0)
        strlist_add(notes, "the claims that the template names itself");
    if (in->profile_ask && in->profile_ask[0])
        strlist_add(notes, in->profile_ask);
    if (others)
        strlist_add(notes, "the template's pod affinity and topology spread");
}

/* The claim, with what the scheduler's own asks for beside it: one search finds devices for all
 * claims of a pod. *ret_whole NULL: nothing is claimed. */
static int read_whole(const struct preview_input *in, const json_t *claim, const json_t *pod,
                      json_t **ret_whole, json_t *resources, struct strlist *notes,
                      struct drarun_error *err)
{
    const struct extended_cluster cluster = {in->nodes, in->classes, in->minor};
    CLEANUP(json_decrefp) json_t *more = NULL;
    CLEANUP(json_decrefp)
    json_t *whole = claim ? json_deep_copy(claim) : json_pack("{s:{s:[]}}", "devices", "requests");
    json_t *requests = json_object_get(json_object_get(whole, "devices"), "requests");
    int rc = pod ? extended_claim(pod, &cluster, &more, resources, notes, err) : 0;
    bool fit = json_array_size(requests) + json_array_size(more) <= LIMIT_CLAIM_REQUESTS;
    if (rc == 0 && json_array_size(more) > 0 && (!in->slices || !fit))
        strlist_addf(notes, "devices that serve the pods' extended resources: %s",
                     fit ? "give the ResourceSlices" : "there are too many requests of claims");
    else if (rc == 0 && (!requests || (more && json_array_extend(requests, more) < 0)))
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0 && json_array_size(requests) > 0)
        *ret_whole = TAKE_PTR(whole);
    return rc;
}

/* The results of the role's own claim, or those of the scheduler's. */
static json_t *results_of(const json_t *results, bool extended)
{
    json_t *list = json_array(), *result;
    size_t i;
    json_array_foreach(results, i, result)
    {
        if (extended_claim_has(value_text_or(result, "request", "")) == extended)
            json_array_append(list, result);
    }
    return list;
}

/* With the node that the pods name, which files need not have. */
static int nodes_to_try(const struct preview_input *in, const json_t *pod, json_t **ret_labels,
                        struct drarun_error *err)
{
    const char *name = value_text_or(pod, "nodeName", "");
    bool add = *name && !in->nodes_known && !labels_of(in, name);
    if (!in->node_labels && !add)
        return 0;
    *ret_labels = in->node_labels ? json_copy(unconst(in->node_labels)) : json_object();
    bool failed =
        !*ret_labels || (add && json_object_set_new(*ret_labels, name, json_object()) < 0);
    return failed ? no_memory(err) : 0;
}

static int predict_step(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    json_decref(p->claim);
    p->claim = NULL;
    if (p->predicted)
        prediction_done(&p->prediction);
    p->predicted = false;
    json_decref(p->labels);
    p->labels = NULL;
    bool claims = claims_wanted_by(in->role);
    int rc = claims ? claims_spec(in->role, CLAIMS_API_V1, p->step, &p->claim, err) : 0;
    if (rc < 0 || (claims ? !in->slices : !has_nodes(in)))
        return rc;
    CLEANUP(json_decrefp) json_t *pod = NULL;
    CLEANUP(json_decrefp) json_t *whole = NULL;
    CLEANUP(json_decrefp) json_t *held = NULL;
    CLEANUP(json_decrefp) json_t *resources = json_object();
    CLEANUP(room_done) struct room room = {.in = in};
    CLEANUP(strlist_done) struct strlist open = STRLIST_INIT;
    if (!resources)
        return no_memory(err);
    rc = has_nodes(in) ? make_pod(in, in->role, &pod, err) : 0;
    if (rc == 0)
        rc = room_build(&room, json_object_get(pod, "spec"), err);
    if (rc == 0)
        rc = nodes_to_try(in, json_object_get(pod, "spec"), &p->labels, err);
    if (rc == 0)
        rc = all_claims(in, &held, err);
    const struct predict_gate gate = {.room = room_of, .arg = &room};
    struct predict_cluster cluster = {.slices = in->slices,
                                      .classes = in->classes,
                                      .classes_known = in->classes_known,
                                      .node_labels = p->labels,
                                      .claims = held,
                                      .taint_rules = in->taint_rules,
                                      .minor = in->minor,
                                      .request_words = resources,
                                      .gate = &gate};
    if (rc == 0)
        rc = node_spread_predict(in->spec, in->role, &cluster, err);
    if (rc == 0)
        rc = read_whole(in, p->claim, json_object_get(pod, "spec"), &whole, resources, &open, err);
    if (rc == 0)
        rc = predict(whole, in->role->workers, &cluster, &p->prediction, err);
    p->predicted = rc == 0;
    if (p->predicted)
        note_unseen(in, &p->prediction.notes);
    for (size_t i = 0; p->predicted && i < open.count; i++)
        strlist_add(&p->prediction.notes, open.items[i]);
    if (p->predicted && has_nodes(in))
        note_nodes(in, &p->prediction, &p->prediction.notes);
    if (p->predicted)
        note_unreached(&room, &p->prediction, &p->prediction.notes);
    if (p->predicted && claims && p->step == 0)
        p->advice = advise(in->role, &p->prediction);
    return rc;
}

/* To the first step that places all workers, or else the most of them: what is short may be nodes,
 * and not what the claims ask of them. */
static int climb(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    unsigned best = 0;
    uint32_t most = 0;
    bool absent = false;
    p->steps = claims_attempts_of(in->role);
    for (p->step = 0; p->step < p->steps; p->step++) {
        int rc = predict_step(in, p, err);
        if (rc < 0 || !p->predicted || !p->prediction.shortage)
            return rc;
        if (p->step == 0) {
            p->placed_first = p->prediction.placed;
            absent = absent_nodes_lack_class(&p->prediction);
        }
        if (p->prediction.placed > most) {
            most = p->prediction.placed;
            best = p->step;
        }
    }
    p->step = most > 0 ? best : absent ? 0 : p->steps - 1;
    return p->step + 1 < p->steps ? predict_step(in, p, err) : 0;
}

/* As the scheduler would leave it. */
static json_t *allocated(const struct preview *p, const char *name, const struct predict_worker *w)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:O, s:{s:{s:{s:o}}}}", "apiVersion",
                     claims_api_version(CLAIMS_API_V1), "kind", "ResourceClaim", "metadata", "name",
                     name, "spec", p->claim, "status", "allocation", "devices", "results",
                     results_of(w->results, false));
}

/* The claims that the scheduler would make itself: they hold their devices, and no plan knows whose
 * they are. */
static int hold_extended(struct preview *p, struct drarun_error *err)
{
    p->extended = json_array();
    for (uint32_t i = 0; p->extended && i < p->prediction.placed; i++) {
        json_t *results = results_of(p->prediction.workers[i].results, true);
        if (json_array_size(results) == 0)
            json_decref(results);
        else if (json_array_append_new(p->extended,
                                       json_pack("{s:{s:{s:{s:o}}}}", "status", "allocation",
                                                 "devices", "results", results)) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return p->extended ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* The channel that NVIDIA's driver adds to each worker of a ComputeDomain; NULL where the node's
 * slices show none. */
static json_t *channel_claim(const struct preview_input *in, const char *name, const char *node)
{
    size_t count = 0;
    const struct slice_device *list = slices_of_node(in->slices, node, &count);
    for (size_t i = 0; i < count; i++) {
        struct device device;
        if (device_read(&list[i], &device, NULL) < 0 || device.kind != DEVICE_CHANNEL)
            continue;
        return json_pack("{s:s, s:s, s:{s:o}, s:{s:{s:{s:[{s:s, s:s, s:s, s:s}]}}}}", "apiVersion",
                         claims_api_version(CLAIMS_API_V1), "kind", "ResourceClaim", "metadata",
                         "name", json_sprintf("%s-channel", name), "status", "allocation",
                         "devices", "results", "request", "channel", "driver", list[i].driver,
                         "pool", list[i].pool, "device", list[i].name);
    }
    return NULL;
}

static int make_workers(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    uint32_t count = in->role->workers;
    p->claims = json_array();
    p->workers = calloc(count + 1u, sizeof *p->workers);
    for (uint32_t i = 0; p->workers && i < count; i++)
        strlist_addf(&p->pods, "%s-w-%u", in->spec->name, in->role->first + i);
    if (!p->workers || !p->claims || p->pods.failed)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        const struct predict_worker *w = &p->prediction.workers[i];
        json_t *list = json_array();
        json_array_append_new(list, allocated(p, p->pods.items[i], w));
        json_t *channel =
            in->spec->compute_domain ? channel_claim(in, p->pods.items[i], w->node) : NULL;
        if (channel)
            json_array_append_new(list, channel);
        for (size_t k = 0; k < in->role->shared.count; k++) {
            json_t *claim = given_claim(in, in->role->shared.items[k]);
            if (claim && is_allocated(claim))
                json_array_append(list, claim);
        }
        json_array_append_new(p->claims, list);
        p->workers[i] =
            (struct plan_worker_input){.pod = p->pods.items[i], .node = w->node, .claims = list};
    }
    return 0;
}

/* In a compute domain, as the launcher does. */
static int order_ranks(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    uint32_t count = in->role->workers;
    cleanup_free const char **cliques = calloc(count + 1u, sizeof *cliques);
    if (!cliques)
        return error_set(err, ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        const json_t *labels = json_object_get(in->node_labels, p->workers[i].node);
        cliques[i] = json_string_value(json_object_get(labels, PLAN_CLIQUE_LABEL));
    }
    return in->spec->compute_domain ? cliques_order(cliques, count, &p->rank_order, err) : 0;
}

static bool is_mounted(const struct spec_role *role, const char *path)
{
    const json_t *mounts = json_object_get(spec_role_container(role), "volumeMounts");
    return value_find(mounts, "mountPath", path) != NULL;
}

/* The machine is known here, but not yet when the pods are made, since others of another could take
 * them: what its vendor keeps on the node is mounted into pods of jobs that name it. */
static int warn_unnamed(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    const struct profile *found = p->plan.profile;
    CLEANUP(buf_done) struct buf paths = BUF_INIT;
    struct machine machine;
    if (in->role->machine.profile || !found)
        return 0;
    int rc = machine_read(in->profiles, found->name, &machine, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < MACHINE_MOUNTS_MAX && machine.mounts[i].name; i++)
        if (!is_mounted(in->role, machine.mounts[i].pod))
            buf_printf(&paths, "%s%s", paths.len ? ", " : "", machine.mounts[i].pod);
    machine_done(&machine);
    if (paths.len)
        warnings_add(&p->plan.warnings, WARN_PROFILE_NOT_NAMED, WORKER_NONE,
                     "not mounted into the pods: %s: set nccl: {profile: %s}, or have them in the "
                     "image",
                     paths.data, found->name);
    warnings_sort(&p->plan.warnings);
    return paths.failed || p->plan.warnings.failed ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* What has no Node and no slice yet may have room. */
static void ask_autoscalers(const struct preview_input *in, struct preview *p)
{
    if (!p->predicted || !p->prediction.shortage)
        return;
    p->absent = absent_nodes_words(&p->prediction, &in->absent, claims_wanted(in->spec));
    if (p->absent)
        strlist_addf(&p->prediction.notes, "nodes that do not exist yet: %s", p->absent);
}

/* A job that finds room, or of which that is not known, and that the namespace does not admit has
 * none. */
static int ask_namespace(const struct preview_input *in, struct preview *p,
                         struct drarun_error *err)
{
    const struct namespace_rules rules = rules_of(in);
    bool given = json_array_size(in->quotas) > 0 || json_array_size(in->limit_ranges) > 0;
    char *why = NULL;
    if (p->prediction.shortage || (!p->predicted && !given))
        return 0;
    int rc = namespace_fit(in->spec, &rules, &why, &p->prediction.notes, err);
    p->prediction.shortage = why;
    return rc;
}

static int make_plan(const struct preview_input *in, struct preview *p, struct drarun_error *err)
{
    const struct job_spec *spec = in->spec;
    int rc = make_workers(in, p, err);
    if (rc < 0)
        return rc;
    struct plan_input input = plan_input_of(spec, in->role, NULL);
    if (in->nccl_version)
        input.nccl_version = in->nccl_version;
    input.ranks_each = in->role->ranks_per_worker;
    input.slices = in->slices;
    input.node_labels = in->node_labels;
    input.profiles = in->profiles;
    input.profile_fact = in->profile_fact;
    input.workers = p->workers;
    input.worker_count = in->role->workers;
    rc = order_ranks(in, p, err);
    if (rc < 0)
        return rc;
    input.rank_order = p->rank_order;
    rc = plan_build(&input, &p->plan, err);
    p->planned = rc == 0;
    return rc == 0 ? warn_unnamed(in, p, err) : rc;
}

int preview_build(const struct preview_input *input, struct preview *ret_preview,
                  struct drarun_error *err)
{
    struct preview p = {.role = input->role};
    bool claims = claims_wanted_by(input->role);
    int rc = claims ? climb(input, &p, err) : predict_step(input, &p, err);
    if (rc == 0 && p.predicted)
        rc = hold_extended(&p, err);
    if (rc == 0)
        ask_autoscalers(input, &p);
    if (rc == 0)
        rc = ask_namespace(input, &p, err);
    if (rc == 0 && claims && p.predicted && !p.prediction.shortage)
        rc = make_plan(input, &p, err);
    if (rc == 0 && p.prediction.notes.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc < 0)
        preview_done(&p);
    else
        *ret_preview = p;
    return rc;
}

void preview_done(struct preview *preview)
{
    if (preview->planned)
        plan_done(&preview->plan);
    prediction_done(&preview->prediction);
    json_decref(preview->claim);
    json_decref(preview->claims);
    json_decref(preview->extended);
    json_decref(preview->labels);
    free(preview->workers);
    free(preview->rank_order);
    free(preview->absent);
    strlist_done(&preview->pods);
    *preview = (struct preview){0};
}
