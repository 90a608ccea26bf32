/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/base/error.h"
#include "lib/base/order.h"
#include "lib/doc/value.h"

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

/* ---- pools and devices ---- */

static uint8_t what_is(const struct slice_part *part)
{
    bool counters = json_array_size(json_object_get(part->spec, "sharedCounters")) > 0;
    bool per_device = json_is_true(json_object_get(part->spec, "perDeviceNodeSelection"));
    return (uint8_t)((counters ? PREDICT_PART_COUNTERS : 0) |
                     (per_device ? PREDICT_PART_PER_DEVICE : 0));
}

static bool any_policy(const json_t *capacities)
{
    const char *name;
    json_t *capacity;
    value_foreach(capacities, name, capacity)
    {
        if (json_object_get(capacity, "requestPolicy"))
            return true;
    }
    return false;
}

static bool same_pool(const struct slice_part *a, const struct slice_part *b)
{
    return strcmp(a->driver, b->driver) == 0 && strcmp(a->pool, b->pool) == 0;
}

static struct predict_device read_device(const struct slice_part *from, const json_t *item)
{
    const json_t *body = slice_device_body(item);
    const char *name = json_string_value(json_object_get(item, "name"));
    const json_t *attributes = json_object_get(body, "attributes");
    const json_t *consumes = json_object_get(body, "consumesCounters");
    const json_t *capacity = json_object_get(body, "capacity");
    return (struct predict_device){
        .slice = {.driver = from->driver,
                  .pool = from->pool,
                  .name = name ? name : "(no name)",
                  .node = from->node,
                  .attributes = json_is_object(attributes) ? attributes : NULL,
                  .capacity = capacity,
                  .taints = json_object_get(body, "taints")},
        .body = body,
        .multiple = json_is_true(json_object_get(body, "allowMultipleAllocations")),
        .binds = json_is_array(json_object_get(body, "bindingConditions")),
        .policy = any_policy(capacity),
        .consumes = json_array_size(consumes) > 0 ? consumes : NULL,
    };
}

static void add_devices(struct predict_inventory *inv, size_t part, struct predict_pool *pool)
{
    const struct slice_part *from = &inv->slices->parts[part];
    for (size_t i = 0; i < json_array_size(from->devices); i++) {
        struct predict_device *device = &inv->devices[inv->device_count++];
        *device = read_device(from, json_array_get(from->devices, i));
        device->current = from->generation == inv->slices->parts[pool->first].generation;
        pool->consumes = pool->consumes || device->consumes;
        inv->binding = inv->binding || device->binds;
    }
}

/* Whose a slice is decides for which nodes its pool matters. */
static void add_nodes_of(struct predict_inventory *inv, size_t part, struct predict_pool *pool)
{
    const char *node = inv->slices->parts[part].node;
    bool counters = inv->part_is[part] & PREDICT_PART_COUNTERS;
    if (counters && inv->rules.counters_everywhere)
        return;
    if (node)
        inv->locals[inv->local_count++] = (struct predict_local){node, inv->pool_count - 1};
    else if (counters)
        pool->counters_spread = true;
    else
        pool->spread = true;
}

static void add_part(struct predict_inventory *inv, size_t part)
{
    const struct slice_part *list = inv->slices->parts;
    bool first = part == 0 || !same_pool(&list[part - 1], &list[part]);
    if (first)
        inv->pools[inv->pool_count++] = (struct predict_pool){.first = part};
    struct predict_pool *pool = &inv->pools[inv->pool_count - 1];
    pool->end = part + 1;
    inv->part_first[part] = inv->device_count;
    inv->part_is[part] = what_is(&list[part]);
    add_devices(inv, part, pool);
    pool->counters = pool->counters || (inv->part_is[part] & PREDICT_PART_COUNTERS);
    add_nodes_of(inv, part, pool);
}

static int collect(struct predict_inventory *inv, struct drarun_error *err)
{
    size_t parts = inv->slices->part_count, devices = 0;
    for (size_t p = 0; p < parts; p++)
        devices += json_array_size(inv->slices->parts[p].devices);
    inv->devices = calloc(devices + 1, sizeof *inv->devices);
    inv->part_first = calloc(parts + 1, sizeof *inv->part_first);
    inv->part_is = calloc(parts + 1, sizeof *inv->part_is);
    inv->pools = calloc(parts + 1, sizeof *inv->pools);
    inv->locals = calloc(parts + 1, sizeof *inv->locals);
    if (!inv->devices || !inv->part_first || !inv->part_is || !inv->pools || !inv->locals)
        return no_memory(err);
    for (size_t p = 0; p < parts; p++)
        add_part(inv, p);
    inv->part_first[parts] = inv->device_count;
    return 0;
}

/* ---- nodes ---- */

static int by_node(const void *a, const void *b)
{
    const struct predict_local *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order ? order : (x->pool > y->pool) - (x->pool < y->pool);
}

static bool any_spread(const struct predict_inventory *inv)
{
    for (size_t p = 0; p < inv->pool_count; p++)
        if (inv->pools[p].spread)
            return true;
    return false;
}

/* Those that slices name and, where devices are for several nodes, all that are known. */
static int name_nodes(struct predict_inventory *inv, struct drarun_error *err)
{
    bool spread = any_spread(inv);
    size_t known = spread ? json_object_size(inv->node_labels) : 0, kept = 0;
    size_t devices = spread ? inv->device_count : 0;
    inv->nodes = calloc(inv->local_count + known + devices + 1, sizeof *inv->nodes);
    if (!inv->nodes)
        return no_memory(err);
    for (size_t i = 0; i < inv->local_count; i++)
        inv->nodes[inv->node_count++] = inv->locals[i].node;
    for (size_t d = 0; d < devices; d++) {
        const char *own = json_string_value(json_object_get(inv->devices[d].body, "nodeName"));
        if (own)
            inv->nodes[inv->node_count++] = own;
    }
    const char *name;
    json_t *labels;
    if (known)
        value_foreach(inv->node_labels, name, labels) inv->nodes[inv->node_count++] = name;
    qsort(inv->nodes, inv->node_count, sizeof *inv->nodes, order_texts);
    for (size_t i = 0; i < inv->node_count; i++)
        if (i == 0 || strcmp(inv->nodes[i], inv->nodes[i - 1]) != 0)
            inv->nodes[kept++] = inv->nodes[i];
    inv->node_count = kept;
    if (spread && !known)
        predict_note(inv, "some devices are for several nodes, of which only those that slices "
                          "name are known: give the Nodes");
    return 0;
}

/* docs/design/014-prediction.md, "Versions" */
static void note_older(struct predict_inventory *inv, unsigned minor)
{
    if (minor == 0 || minor >= PREDICT_MINOR_OLDEST)
        return;
    predict_note(inv,
                 "where the allocator of Kubernetes 1.%u differs from that of 1.%u, which is "
                 "followed: it takes pools in no fixed order, so the devices may be others%s",
                 minor, PREDICT_MINOR_OLDEST,
                 minor < 35 ? ", gives devices of pools that are being updated, and fails the "
                              "claim at a pool that lists a name twice"
                            : "");
}

int predict_inventory_build(const struct predict_cluster *cluster,
                            struct predict_inventory *ret_inventory, struct drarun_error *err)
{
    struct predict_inventory inv = {.slices = cluster->slices,
                                    .rules = predict_rules_of(cluster->minor),
                                    .node_labels = cluster->node_labels,
                                    .classes_known = cluster->classes_known,
                                    .claims = json_array_size(cluster->claims) > 0};
    note_older(&inv, cluster->minor);
    int rc = collect(&inv, err);
    if (rc == 0 && inv.local_count > 0)
        qsort(inv.locals, inv.local_count, sizeof *inv.locals, by_node);
    if (rc == 0)
        rc = name_nodes(&inv, err);
    if (rc == 0)
        rc = predict_take_claims(&inv, cluster->claims, err);
    if (rc == 0)
        rc = predict_apply_rules(&inv, cluster->taint_rules, err);
    if (rc < 0)
        predict_inventory_done(&inv);
    else
        *ret_inventory = inv;
    return rc;
}

void predict_inventory_done(struct predict_inventory *inventory)
{
    for (size_t d = 0; d < inventory->device_count; d++)
        json_decref(inventory->devices[d].rules);
    free(inventory->devices);
    free(inventory->part_first);
    free(inventory->part_is);
    free(inventory->pools);
    free(inventory->locals);
    free(inventory->nodes);
    free(inventory->shares.list);
    strlist_done(&inventory->notes);
    *inventory = (struct predict_inventory){0};
}
