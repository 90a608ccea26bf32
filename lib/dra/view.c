/* SPDX-License-Identifier: Apache-2.0 */
/* What a node sees of the pools, after GatherPools in structured/internal/experimental: the newest
 * generation among the slices that matter to the node, whole or not, devices by pool, slice and
 * place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/dra/node_selector.h"
#include "lib/dra/predict_private.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/order.h"

/* What chooses nodes, a slice or one of its devices, and whether it chooses this one; < 0: an
 * error. Labels that are not known are noted and match nothing. */
static int chosen(struct predict_view *view, const json_t *from, const char *pool,
                  struct drarun_error *err)
{
    const char *name = json_string_value(json_object_get(from, "nodeName"));
    const json_t *selector = json_object_get(from, "nodeSelector");
    const json_t *labels = json_object_get(view->inventory->node_labels, view->node);
    if (name && name[0])
        return strcmp(name, view->node) == 0;
    if (json_is_true(json_object_get(from, "allNodes")))
        return 1;
    if (!json_is_object(selector))
        return 0;
    int rc = node_selector_matches(selector, view->node, labels);
    if (rc == -EAGAIN) {
        predict_note(view->inventory,
                     "pool %.64s is for nodes by their labels, which are not known of every node: "
                     "give the Nodes",
                     pool);
        return 0;
    }
    return rc < 0 ? error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                               "pool %s: a node selector with an operator or field that is not "
                               "known",
                               pool)
                  : rc;
}

static bool is(const struct predict_view *view, size_t part, uint8_t what)
{
    return view->inventory->part_is[part] & what;
}

static int relevant(struct predict_view *view, size_t at, struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    const struct slice_part *part = &inv->slices->parts[at];
    if (is(view, at, PREDICT_PART_COUNTERS) && inv->rules.counters_everywhere)
        return 1;
    int rc = part->node ? strcmp(part->node, view->node) == 0
                        : chosen(view, part->spec, part->pool, err);
    if (rc != 0 || !is(view, at, PREDICT_PART_PER_DEVICE))
        return rc;
    for (size_t d = inv->part_first[at]; rc == 0 && d < inv->part_first[at + 1]; d++)
        rc = chosen(view, inv->devices[d].body, part->pool, err);
    return rc;
}

static int check_names(const struct predict_view *view, struct predict_view_pool *pool,
                       size_t first, struct drarun_error *err)
{
    size_t count = view->count - first;
    cleanup_free const char **names = calloc(count + 1, sizeof *names);
    if (!names)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        names[i] = view->inventory->devices[view->candidates[first + i].device].slice.name;
    qsort(names, count, sizeof *names, order_texts);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            pool->broken = "has two devices of one name";
    return 0;
}

static int add_candidates(struct predict_view *view, size_t at, struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    const struct slice_part *part = &inv->slices->parts[at];
    if (is(view, at, PREDICT_PART_COUNTERS))
        return 0;
    for (size_t d = inv->part_first[at]; d < inv->part_first[at + 1]; d++) {
        int here = is(view, at, PREDICT_PART_PER_DEVICE)
                       ? chosen(view, inv->devices[d].body, part->pool, err)
                       : 1;
        if (here < 0)
            return here;
        void *list = array_room(view->candidates, view->count, &view->candidate_cap,
                                sizeof *view->candidates);
        if (!list)
            return error_set(err, ENOMEM, "out of memory");
        view->candidates = list;
        view->candidates[view->count++] = (struct predict_candidate){.device = d, .here = here};
    }
    return 0;
}

/* The slices that matter here, of the newest generation among them; returns how many. */
static int select_parts(struct predict_view *view, const struct predict_pool *pool, size_t *parts,
                        struct drarun_error *err)
{
    const struct slice_part *list = view->inventory->slices->parts;
    int count = 0;
    for (size_t p = pool->first; p < pool->end; p++) {
        if (count > 0 && list[p].generation != list[parts[0]].generation)
            break; /* older: they are in the order of generations */
        int rc = relevant(view, p, err);
        if (rc < 0)
            return rc;
        if (rc)
            parts[count++] = p;
    }
    return count;
}

/* 1: whole, of the generation of the selected slices; 0: not whole; -1: a newer generation is on
 * its way, and the pool is passed over. */
static int completeness(const struct predict_inventory *inv, const struct predict_pool *pool,
                        const size_t *parts, size_t count, bool *ret_all)
{
    const struct slice_part *list = inv->slices->parts, *first = &list[parts[0]];
    int64_t there = 0;
    *ret_all = false;
    if ((int64_t)count == first->expected)
        return 1;
    if (list[pool->first].generation > first->generation)
        return -1;
    for (size_t p = pool->first; p < pool->end; p++)
        there += list[p].generation == first->generation;
    *ret_all = true;
    return there == first->expected;
}

static int fill_pool(struct predict_view *view, struct predict_view_pool *pool, const size_t *parts,
                     size_t count, struct drarun_error *err)
{
    size_t first = view->count, first_use = view->use_count;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = add_candidates(view, parts[i], err);
    if (rc == 0)
        rc = check_names(view, pool, first, err);
    if (rc == 0 && !pool->broken)
        rc = predict_counters_build(view, pool, parts, count, first, err);
    if (pool->broken) {
        view->count = first;
        view->use_count = first_use;
    }
    return rc;
}

static int add_pool(struct predict_view *view, size_t at, bool only_binding,
                    struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    const struct predict_pool *pool = &inv->pools[at];
    size_t few[16];
    cleanup_free size_t *many = NULL;
    size_t *parts = few;
    if (pool->end - pool->first > ARRAY_LEN(few)) {
        parts = many = calloc(pool->end - pool->first, sizeof *parts);
        if (!many)
            return error_set(err, ENOMEM, "out of memory");
    }
    int count = select_parts(view, pool, parts, err);
    if (count <= 0)
        return count;
    bool all, binding = false;
    int whole = completeness(inv, pool, parts, (size_t)count, &all);
    for (int i = 0; inv->binding && whole == 1 && i < count; i++)
        for (size_t d = inv->part_first[parts[i]]; d < inv->part_first[parts[i] + 1]; d++)
            binding =
                binding || (!is(view, parts[i], PREDICT_PART_COUNTERS) && inv->devices[d].binds);
    if (whole < 0 || binding != only_binding)
        return 0;
    void *list = array_room(view->pools, view->pool_count, &view->pool_cap, sizeof *view->pools);
    if (!list)
        return error_set(err, ENOMEM, "out of memory");
    view->pools = list;
    struct predict_view_pool *made = &view->pools[view->pool_count++];
    *made = (struct predict_view_pool){
        .pool = at, .all = all, .generation = inv->slices->parts[parts[0]].generation};
    if (whole == 1)
        return fill_pool(view, made, parts, (size_t)count, err);
    made->broken = "is being updated: not all of its slices are there";
    return 0;
}

static const struct predict_local *first_local(const struct predict_inventory *inv,
                                               const char *node)
{
    size_t low = 0, high = inv->local_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(inv->locals[middle].node, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return &inv->locals[low];
}

/* Pools in their order: the node's own and those that are for all, merged. */
static int add_pools(struct predict_view *view, bool only_binding, struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    const struct predict_local *own = first_local(inv, view->node);
    const struct predict_local *end = inv->locals + inv->local_count;
    size_t shared = 0;
    int rc = 0;
    while (rc == 0) {
        bool is_own = own < end && strcmp(own->node, view->node) == 0;
        bool is_shared = shared < view->shared_count;
        if (!is_own && !is_shared)
            break;
        size_t pool = is_own && (!is_shared || own->pool < view->shared[shared])
                          ? own->pool
                          : view->shared[shared];
        rc = add_pool(view, pool, only_binding, err);
        while (own < end && own->pool == pool && strcmp(own->node, view->node) == 0)
            own++;
        shared += is_shared && view->shared[shared] == pool;
    }
    return rc;
}

/* By counters_everywhere, slices with counters are looked at from every node, where they give no
 * device: of the pools that are otherwise other nodes', only one that is broken has any effect (on
 * allocationMode All), and it is broken for all nodes alike. */
static int matters_elsewhere(struct predict_view *view, size_t pool, struct drarun_error *err)
{
    view->node = "";
    int rc = add_pool(view, pool, false, err);
    bool broken = view->pool_count > 0 && view->pools[0].broken;
    view->pool_count = view->count = view->counter_count = view->use_count = 0;
    return rc < 0 ? rc : broken;
}

static int list_shared(struct predict_view *view, struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    view->shared = calloc(inv->pool_count + 1, sizeof *view->shared);
    if (!view->shared)
        return error_set(err, ENOMEM, "out of memory");
    for (size_t p = 0; p < inv->pool_count; p++) {
        int rc = inv->pools[p].spread || inv->pools[p].counters_spread;
        if (!rc && inv->pools[p].counters && inv->rules.counters_everywhere)
            rc = matters_elsewhere(view, p, err);
        if (rc < 0)
            return rc;
        if (rc)
            view->shared[view->shared_count++] = p;
    }
    return 0;
}

int predict_view_build(struct predict_view *view, struct predict_inventory *inventory,
                       const char *node, struct drarun_error *err)
{
    view->inventory = inventory;
    view->pool_count = view->count = view->counter_count = view->use_count = 0;
    int rc = view->shared ? 0 : list_shared(view, err);
    view->node = node;
    if (rc == 0)
        rc = add_pools(view, false, err);
    if (rc == 0 && inventory->binding)
        rc = add_pools(view, true, err);
    return rc;
}

void predict_view_done(struct predict_view *view)
{
    free(view->pools);
    free(view->candidates);
    free(view->counters);
    free(view->uses);
    free(view->shared);
    *view = (struct predict_view){0};
}
