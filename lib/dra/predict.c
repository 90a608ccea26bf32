/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/predict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/order.h"
#include "lib/doc/value.h"

#define LONG_STEPS 1000 /* of a search whose result is worth remembering */
#define CLOSED_MAX 4    /* reasons that are told; nodes with others count under "other" */

struct closed {
    char why[PREDICT_WHY];
    size_t nodes;
};

/* Why nodes were passed over, so that a sentence can say it for thousands of them. */
struct tally {
    size_t nodes;
    size_t too_few[PREDICT_REQUESTS_MAX]; /* by request */
    size_t taken[PREDICT_REQUESTS_MAX];
    size_t no_match, used_up, broken, too_hard;
    struct closed closed[CLOSED_MAX]; /* by the cluster's gate */
    size_t other;
    char pool[200]; /* what is wrong with the first broken one */
};

struct placing {
    const struct predict_claim *claim;
    struct predict_inventory *inventory;
    struct predict_view view;
    struct predict_shapes shapes;
    const struct predict_gate *gate; /* or NULL */
    const char *spread_by;           /* or NULL */
    struct prediction *p;
    struct tally tally;
};

static void note_broken(struct placing *placing)
{
    const struct predict_view *view = &placing->view;
    for (size_t i = 0; i < view->pool_count && !placing->tally.pool[0]; i++) {
        const struct predict_pool *pool = &view->inventory->pools[view->pools[i].pool];
        if (view->pools[i].broken)
            snprintf(placing->tally.pool, sizeof placing->tally.pool, "pool %.60s %.130s",
                     view->inventory->slices->parts[pool->first].pool, view->pools[i].broken);
    }
}

static void note(struct placing *placing, enum predict_fit fit, size_t request)
{
    struct tally *tally = &placing->tally;
    tally->nodes++;
    tally->too_few[request] += fit == PREDICT_TOO_FEW;
    tally->taken[request] += fit == PREDICT_TAKEN;
    tally->no_match += fit == PREDICT_NO_MATCH;
    tally->used_up += fit == PREDICT_USED_UP;
    tally->too_hard += fit == PREDICT_TOO_HARD;
    tally->broken += fit == PREDICT_BROKEN;
    if (fit == PREDICT_BROKEN)
        note_broken(placing);
}

static void note_closed(struct tally *tally, const char *why)
{
    tally->nodes++;
    for (size_t i = 0; i < CLOSED_MAX; i++) {
        struct closed *closed = &tally->closed[i];
        if (closed->nodes == 0)
            snprintf(closed->why, sizeof closed->why, "%s", why);
        if (strcmp(closed->why, why) == 0) {
            closed->nodes++;
            return;
        }
    }
    tally->other++;
}

static void add_reason(struct buf *text, size_t *reasons, size_t nodes, const char *before,
                       const char *what, const char *after)
{
    if (nodes)
        buf_printf(text, "%s%s%s%s on %zu node%s", (*reasons)++ ? ", " : "", before, what, after,
                   nodes, nodes == 1 ? "" : "s");
}

/* Why nodes were passed over; begin: before the first reason. */
static void add_reasons(const struct placing *placing, const char *begin, struct buf *out)
{
    const struct tally *tally = &placing->tally;
    const struct predict_claim *claim = placing->claim;
    struct buf text = BUF_INIT;
    size_t n = 0;
    for (size_t r = 0; r < claim->request_count; r++) {
        const char *words = claim->requests[r].words;
        const char *name = words ? words : claim->requests[r].name;
        add_reason(&text, &n, tally->too_few[r],
                   words ? "too few devices for " : "too few devices for request ", name, "");
        add_reason(&text, &n, tally->taken[r], words ? "those for " : "those for request ", name,
                   placing->inventory->claims ? " are taken by claims or earlier workers"
                                              : " are taken by earlier workers");
    }
    const char *attribute = claim->constraint_count ? claim->constraints[0].attribute : "a value";
    bool distinct = claim->constraint_count && claim->constraints[0].distinct;
    add_reason(&text, &n, tally->no_match,
               distinct ? "no free devices differ in " : "no free devices share ", attribute,
               " as the constraints want");
    add_reason(&text, &n, tally->used_up, "shared counters or capacity of the devices are used up",
               "", "");
    add_reason(&text, &n, tally->broken, tally->pool, ", and what is left is too little", "");
    add_reason(&text, &n, tally->too_hard, "too many combinations to try", "", "");
    for (size_t i = 0; i < CLOSED_MAX; i++)
        add_reason(&text, &n, tally->closed[i].nodes, tally->closed[i].why, "", "");
    add_reason(&text, &n, tally->other, "other reasons", "", "");
    if (text.len > 0)
        buf_printf(out, "%s%s", begin, text.data);
    out->failed |= text.failed;
    buf_done(&text);
}

static char *describe(const struct placing *placing)
{
    struct prediction *p = placing->p;
    struct buf text = BUF_INIT;
    buf_printf(&text, "worker %u of %u has no node: ", p->placed, p->count);
    p->spread_short = placing->spread_by && p->placed > 0;
    if (p->spread_short) {
        buf_printf(&text, "%u workers, one per node by %s; %u node%s fit%s", p->count,
                   placing->spread_by, p->placed, p->placed == 1 ? "" : "s",
                   p->placed == 1 ? "s" : "");
        add_reasons(placing, "; elsewhere ", &text);
    } else if (placing->tally.nodes == 0) {
        buf_add_str(&text, placing->claim->request_count ? "no node has devices" : "there is none");
    } else {
        add_reasons(placing, "", &text);
    }
    return buf_take(&text);
}

static json_t *result_json(const struct placing *placing, const struct predict_found *found,
                           size_t i, struct drarun_error *err)
{
    const struct predict_request *request = &placing->claim->requests[found->results[i].request];
    const struct predict_choice *choice = &request->choices[found->results[i].choice];
    const struct predict_device *device = &placing->inventory->devices[found->results[i].device];
    const char *sub = choice->subrequest;
    json_t *result = json_pack(
        "{s:o, s:s, s:s, s:s}", "request", json_sprintf(sub ? "%s/%s" : "%s", request->name, sub),
        "driver", device->slice.driver, "pool", device->slice.pool, "device", device->slice.name);
    json_t *consumed = NULL;
    if (choice->admin)
        json_object_set_new(result, "adminAccess", json_true());
    if (!device->multiple)
        return result;
    if (predict_capacity_consumed(&placing->inventory->rules, device, choice->capacity, &consumed,
                                  err) < 0) {
        json_decref(result);
        return NULL;
    }
    /* the scheduler draws a random UID; that there is one tells a share from a whole device */
    json_object_set_new(result, "shareID", json_string("predicted"));
    if (json_object_size(consumed) > 0)
        json_object_set(result, "consumedCapacity", consumed);
    json_decref(consumed);
    return result;
}

static json_t *results_json(const struct placing *placing, const struct predict_found *found,
                            struct drarun_error *err)
{
    json_t *results = json_array();
    for (size_t i = 0; i < found->count; i++) {
        json_t *result = result_json(placing, found, i, err);
        if (!result) {
            json_decref(results);
            return NULL;
        }
        json_array_append_new(results, result);
        const struct predict_device *device =
            &placing->inventory->devices[found->results[i].device];
        if (device->binds)
            predict_note(placing->inventory,
                         "device %s of pool %s has binding conditions: the pod waits until they "
                         "are met",
                         device->slice.name, device->slice.pool);
    }
    return results;
}

static int search(struct placing *placing, struct predict_found *found, size_t *ret_request,
                  struct drarun_error *err)
{
    size_t steps = 0;
    enum predict_fit known =
        predict_shapes_find(&placing->shapes, placing->claim, &placing->view, ret_request);
    if (known)
        return known;
    int fit = predict_search(placing->claim, &placing->view, found, ret_request, &steps, err);
    if (fit > PREDICT_FITS && fit != PREDICT_STOPS && steps >= LONG_STEPS)
        predict_shapes_add(&placing->shapes, placing->claim, &placing->view, (enum predict_fit)fit,
                           *ret_request);
    return fit;
}

/* One worker on the node of the view; 1, 0 or -errno. */
static int place_one(struct placing *placing, struct drarun_error *err)
{
    struct predict_found found;
    struct drarun_error why = {0};
    size_t request = 0;
    int fit = search(placing, &found, &request, &why);
    if (fit < 0 || (fit == PREDICT_STOPS && why.kind != DRARUN_ERR_CAPACITY)) {
        if (err)
            *err = why;
        return -why.code;
    }
    if (fit == PREDICT_STOPS && !placing->p->shortage) {
        placing->p->shortage = strdup(why.text);
        return placing->p->shortage ? 0 : error_set(err, ENOMEM, "out of memory");
    }
    if (fit != PREDICT_FITS) {
        note(placing, (enum predict_fit)fit, request);
        return 0;
    }
    if (placing->p->placed == placing->p->count)
        return 0;
    json_t *results = results_json(placing, &found, err);
    if (!results)
        return -EINVAL;
    placing->p->workers[placing->p->placed++] =
        (struct predict_worker){placing->view.node, results};
    int rc = predict_take_results(placing->inventory, results, err);
    return rc < 0 ? rc : 1;
}

/* A node that is not needed still ends it all when the scheduler stops there: it looks at many
 * nodes at once. */
static bool can_stop(const struct predict_claim *claim, const struct predict_rules *rules)
{
    for (size_t r = 0; r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++) {
            const struct predict_choice *choice = &claim->requests[r].choices[c];
            if (choice->all || claim->kinds[choice->kind].failing ||
                (choice->capacity && !rules->whole_capacity))
                return true;
        }
    return false;
}

static uint32_t room_of(const struct placing *placing, const char *node, char *ret_why)
{
    const struct predict_gate *gate = placing->gate;
    return gate ? gate->room(node, gate->arg, ret_why) : UINT32_MAX;
}

/* Node after node, each until it is full: what does not fit now never will, since devices are only
 * given away. */
static int place(struct placing *placing, struct drarun_error *err)
{
    struct prediction *p = placing->p;
    struct predict_inventory *inventory = placing->inventory;
    bool to_the_end = can_stop(placing->claim, &inventory->rules);
    int rc = 0;
    for (size_t n = 0; rc >= 0 && n < inventory->node_count && !p->shortage; n++) {
        if (p->placed == p->count && !to_the_end)
            break;
        char why[PREDICT_WHY] = "";
        uint32_t room = room_of(placing, inventory->nodes[n], why), placed = p->placed;
        if (placing->spread_by && room > 1)
            room = 1;
        bool more = room > 0;
        while (more) {
            rc = predict_view_build(&placing->view, inventory, inventory->nodes[n], err);
            if (rc == 0 && placing->view.pool_count > 0)
                rc = place_one(placing, err);
            more = rc == 1 && p->placed < p->count && p->placed - placed < room;
        }
        bool is_own = placing->spread_by && p->placed > placed;
        if (p->placed < p->count && p->placed - placed == room && !is_own)
            note_closed(&placing->tally, why);
    }
    if (rc >= 0 && p->placed < p->count && !p->shortage)
        p->shortage = describe(placing);
    return rc < 0 ? rc : 0;
}

/* The same for pods that claim nothing, on all nodes that are known. */
static int place_unclaimed(struct placing *placing, const json_t *node_labels,
                           struct drarun_error *err)
{
    struct prediction *p = placing->p;
    cleanup_free const char **nodes = calloc(json_object_size(node_labels) + 1, sizeof *nodes);
    const char *name;
    json_t *labels;
    size_t count = 0;
    if (!nodes)
        return error_set(err, ENOMEM, "out of memory");
    value_foreach(node_labels, name, labels) nodes[count++] = name;
    qsort(nodes, count, sizeof *nodes, order_texts);
    for (size_t n = 0; n < count && p->placed < p->count; n++) {
        char why[PREDICT_WHY] = "";
        uint32_t room = room_of(placing, nodes[n], why);
        bool is_own = placing->spread_by && room > 0;
        for (room = is_own ? 1 : room; room > 0 && p->placed < p->count; room--) {
            struct predict_worker *worker = &p->workers[p->placed++];
            *worker = (struct predict_worker){nodes[n], json_array()};
            if (!worker->results)
                return error_set(err, ENOMEM, "out of memory");
        }
        if (p->placed < p->count && !is_own)
            note_closed(&placing->tally, why);
    }
    if (p->placed == p->count)
        return 0;
    p->shortage = describe(placing);
    return p->shortage ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* The devices of one node that a kind admits, in one of the pools that it has slices in. */
static size_t admitted_locally(const struct predict_kind *kind,
                               const struct predict_inventory *inventory,
                               const struct predict_local *local)
{
    const struct predict_pool *pool = &inventory->pools[local->pool];
    size_t count = 0;
    for (size_t d = inventory->part_first[pool->first]; d < inventory->part_first[pool->end]; d++) {
        const struct predict_device *device = &inventory->devices[d];
        count += device->current && kind->admits[d] == PREDICT_ADMITTED && device->slice.node &&
                 strcmp(device->slice.node, local->node) == 0;
    }
    return count;
}

static void count_of_nodes(struct predict_claim *claim, const struct predict_inventory *inventory)
{
    const struct predict_local *list = inventory->locals;
    for (size_t k = 0; k < claim->kind_count; k++) {
        struct predict_need *need = &claim->kinds[k].need;
        size_t count = 0;
        for (size_t i = 0; i < inventory->local_count; i++) {
            bool same_node = i > 0 && strcmp(list[i].node, list[i - 1].node) == 0;
            count = same_node ? count : 0;
            if (!same_node || list[i].pool != list[i - 1].pool)
                count += admitted_locally(&claim->kinds[k], inventory, &list[i]);
            need->most_of_node = count > need->most_of_node ? count : need->most_of_node;
        }
    }
}

static int take_needs(struct predict_claim *claim, struct prediction *p, struct drarun_error *err)
{
    p->needs = calloc(claim->kind_count + 1, sizeof *p->needs);
    if (!p->needs) /* they stay with the claim */
        return error_set(err, ENOMEM, "out of memory");
    for (size_t k = 0; k < claim->kind_count; k++)
        p->needs[p->need_count++] = claim->kinds[k].need;
    return 0;
}

static void need_done(struct predict_need *need)
{
    for (size_t t = 0; t < need->term_count; t++) {
        free(need->terms[t].where);
        free(need->terms[t].text);
    }
    free(need->terms);
    free(need->requests);
}

static int predict_in(const json_t *claim, const struct predict_cluster *cluster,
                      struct predict_claim *read, struct predict_inventory *inventory,
                      struct prediction *p, struct drarun_error *err)
{
    struct placing placing = {.claim = read,
                              .inventory = inventory,
                              .gate = cluster->gate,
                              .spread_by = cluster->spread_by,
                              .p = p};
    if (!claim)
        return place_unclaimed(&placing, cluster->node_labels, err);
    int rc = predict_claim_read(claim, read, err);
    for (size_t r = 0; rc == 0 && r < read->request_count; r++)
        read->requests[r].words = value_text(cluster->request_words, read->requests[r].name);
    if (rc == 0)
        rc = predict_inventory_build(cluster, inventory, err);
    if (rc == 0)
        rc = predict_admit(read, inventory, cluster->classes, err);
    if (rc == 0)
        count_of_nodes(read, inventory);
    if (rc == 0) {
        rc = place(&placing, err);
        predict_view_done(&placing.view);
        predict_shapes_done(&placing.shapes);
    }
    p->notes = inventory->notes;
    inventory->notes = (struct strlist)STRLIST_INIT;
    return rc == 0 ? take_needs(read, p, err) : rc;
}

static bool is_kind_of(const struct predict_claim *claim, size_t kind, const char *requests)
{
    for (size_t r = 0; r < claim->request_count; r++)
        for (size_t c = 0; c < claim->requests[r].choice_count; c++)
            if (claim->requests[r].choices[c].kind == kind &&
                strncmp(claim->requests[r].name, requests, strlen(requests)) == 0)
                return true;
    return false;
}

int predict_devices(const json_t *claim, const struct predict_cluster *cluster,
                    const char *requests, void (*fn)(const struct slice_device *device, void *arg),
                    void *arg, struct drarun_error *err)
{
    cleanup_free struct predict_claim *read = calloc(1, sizeof *read);
    struct predict_inventory inventory = {0};
    if (!read)
        return error_set(err, ENOMEM, "out of memory");
    int rc = predict_claim_read(claim, read, err);
    if (rc == 0)
        rc = predict_inventory_build(cluster, &inventory, err);
    if (rc == 0)
        rc = predict_admit(read, &inventory, cluster->classes, err);
    for (size_t d = 0; rc == 0 && d < inventory.device_count; d++) {
        bool admitted = false;
        for (size_t k = 0; k < read->kind_count; k++)
            admitted |=
                (read->kinds[k].admits[d] & PREDICT_ADMITTED) && is_kind_of(read, k, requests);
        if (admitted && inventory.devices[d].current)
            fn(&inventory.devices[d].slice, arg);
    }
    for (size_t k = 0; k < read->kind_count; k++)
        need_done(&read->kinds[k].need);
    predict_claim_done(read);
    predict_inventory_done(&inventory);
    return rc;
}

static int predict_once(const json_t *claim, uint32_t workers,
                        const struct predict_cluster *cluster, struct prediction *ret_prediction,
                        struct drarun_error *err)
{
    cleanup_free struct predict_claim *read = calloc(1, sizeof *read);
    struct predict_inventory inventory = {0};
    struct prediction p = {.count = workers};
    p.workers = calloc(workers + 1u, sizeof *p.workers);
    if (!read || !p.workers) {
        free(p.workers);
        return error_set(err, ENOMEM, "out of memory");
    }
    int rc = predict_in(claim, cluster, read, &inventory, &p, err);
    for (size_t k = 0; rc < 0 && k < read->kind_count; k++)
        need_done(&read->kinds[k].need);
    predict_claim_done(read);
    predict_inventory_done(&inventory);
    if (rc < 0)
        prediction_done(&p);
    else
        *ret_prediction = p;
    return rc;
}

/* Says how all workers would have a node, where sharing nodes is what it takes. */
static int add_remedy(const json_t *claim, const struct predict_cluster *cluster,
                      struct prediction *p, struct drarun_error *err)
{
    struct predict_cluster shared = *cluster;
    struct prediction packed = {0};
    struct buf text = BUF_INIT;
    shared.spread_by = NULL;
    int rc = predict_once(claim, p->count, &shared, &packed, err);
    if (rc < 0)
        return rc;
    if (!packed.shortage) {
        buf_printf(&text, "%s; %s packs them", p->shortage, cluster->spread_off);
        free(p->shortage);
        p->shortage = buf_take(&text);
        rc = p->shortage ? 0 : error_set(err, ENOMEM, "out of memory");
    }
    prediction_done(&packed);
    return rc;
}

int predict(const json_t *claim, uint32_t workers, const struct predict_cluster *cluster,
            struct prediction *ret_prediction, struct drarun_error *err)
{
    struct prediction p = {0};
    int rc = predict_once(claim, workers, cluster, &p, err);
    if (rc == 0 && p.spread_short && cluster->spread_off) {
        rc = add_remedy(claim, cluster, &p, err);
        if (rc < 0)
            prediction_done(&p);
    }
    if (rc == 0)
        *ret_prediction = p;
    return rc;
}

bool predict_need_is_absent(const struct predict_need *need)
{
    size_t of_class = 0;
    for (size_t t = 0; t < need->term_count; t++)
        if (strncmp(need->terms[t].where, "class ", strlen("class ")) == 0)
            of_class += need->terms[t].ruled_out;
    return need->admitted == 0 && need->tainted == 0 && of_class == need->devices;
}

void prediction_done(struct prediction *prediction)
{
    for (uint32_t i = 0; prediction->workers && i < prediction->count; i++)
        json_decref(prediction->workers[i].results);
    for (size_t k = 0; k < prediction->need_count; k++)
        need_done(&prediction->needs[k]);
    free(prediction->workers);
    free(prediction->needs);
    free(prediction->shortage);
    free(prediction->holders);
    strlist_done(&prediction->notes);
    *prediction = (struct prediction){0};
}
