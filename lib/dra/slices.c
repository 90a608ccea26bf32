/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/array.h"
#include "lib/dra/slices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

#define SLICES_MAX 1000000u /* slices in one reading */

struct reading {
    struct slice_part *list;
    size_t count, cap;
};

void slices_done(struct slices *slices)
{
    free(slices->devices);
    free(slices->pools);
    free(slices->parts);
    free(slices->table);
    json_decref(slices->documents);
    *slices = (struct slices){0};
}

DEFINE_CLEANUP(struct slices, slices_done)

/* ---- collecting ---- */

static int add_slice(struct reading *r, const json_t *item, struct drarun_error *err)
{
    const json_t *spec = json_object_get(item, "spec"), *pool = json_object_get(spec, "pool");
    const char *name = value_text(json_object_get(item, "metadata"), "name");
    struct slice_part raw = {.name = name ? name : "(no name)",
                             .driver = value_text(spec, "driver"),
                             .pool = value_text(pool, "name"),
                             .node = value_text(spec, "nodeName"),
                             .generation = json_integer_value(json_object_get(pool, "generation")),
                             .expected =
                                 json_integer_value(json_object_get(pool, "resourceSliceCount")),
                             .spec = spec,
                             .devices = json_object_get(spec, "devices")};
    if (!raw.driver || !raw.pool)
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "ResourceSlice %s: no spec.%s", raw.name,
                          raw.driver ? "pool.name" : "driver");
    if (raw.devices && !json_is_array(raw.devices) && !json_is_null(raw.devices))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "ResourceSlice %s: spec.devices: expected an array", raw.name);
    if (r->count == SLICES_MAX)
        return error_kind(err, DRARUN_ERR_SPEC, E2BIG, "more than %u ResourceSlices", SLICES_MAX);
    struct slice_part *list = array_room(r->list, r->count, &r->cap, sizeof *list);
    if (!list)
        return error_set(err, ENOMEM, "slices: out of memory");
    r->list = list;
    r->list[r->count++] = raw;
    return 0;
}

/* depth: a List inside a List is followed once, as `kubectl get -o json` of several kinds prints */
static int collect(struct reading *r, const json_t *document, int depth, struct drarun_error *err)
{
    const json_t *items = json_is_array(document) ? document : json_object_get(document, "items");
    const char *kind = value_text(document, "kind");
    if (items) {
        size_t i;
        json_t *item;
        if (!json_is_array(items) || depth == 4)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "slices: items: expected an array of ResourceSlices");
        json_array_foreach(items, i, item)
        {
            int rc = collect(r, item, depth + 1, err);
            if (rc < 0)
                return rc;
        }
        return 0;
    }
    if (!json_is_object(document))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "slices: expected a ResourceSlice");
    if (kind && strcmp(kind, "ResourceSlice") != 0) {
        if (depth > 0)
            return 0;
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                          "slices: expected a ResourceSlice or a List of them, got kind %.60s",
                          kind);
    }
    return add_slice(r, document, err);
}

/* ---- pools and generations ---- */

static int by_pool(const void *a, const void *b)
{
    const struct slice_part *x = a, *y = b;
    int order = strcmp(x->driver, y->driver);
    if (order == 0)
        order = strcmp(x->pool, y->pool);
    if (order == 0)
        order = (x->generation < y->generation) - (x->generation > y->generation);
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* All slices, one that was read twice once. */
static int keep_parts(struct slices *slices, const struct reading *r, struct drarun_error *err)
{
    slices->parts = calloc(r->count + 1, sizeof *slices->parts);
    if (!slices->parts)
        return error_set(err, ENOMEM, "slices: out of memory");
    for (size_t i = 0; i < r->count; i++)
        if (i == 0 || by_pool(&r->list[i - 1], &r->list[i]) != 0 || r->list[i].name[0] == '(')
            slices->parts[slices->part_count++] = r->list[i];
    return 0;
}

static bool same_pool(const struct slice_part *a, const struct slice_part *b)
{
    return strcmp(a->driver, b->driver) == 0 && strcmp(a->pool, b->pool) == 0;
}

/* The slices are in order of pool, newest generation first: keeps that one, counts the rest. */
static void keep_newest(struct slices *slices, struct reading *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct slice_part *raw = &r->list[i];
        bool first = slices->pool_count == 0 || !same_pool(&r->list[i - 1], raw);
        if (first)
            slices->pools[slices->pool_count++] =
                (struct slice_pool){raw->driver, raw->pool, raw->generation, raw->expected, 0};
        struct slice_pool *pool = &slices->pools[slices->pool_count - 1];
        if (raw->generation < pool->generation)
            continue;
        if (first || strcmp(r->list[i - 1].name, raw->name) != 0)
            pool->seen++;
        /* what is compared with its predecessor stays in place: moving down keeps the order */
        r->list[kept++] = *raw;
    }
    r->count = kept;
}

/* ---- devices and their table ---- */

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (h ^ 0xff) * 1099511628211u;
}

static size_t slot_of(const struct slices *slices, const char *driver, const char *pool,
                      const char *device)
{
    uint64_t h = hash_text(hash_text(hash_text(14695981039346656037u, driver), pool), device);
    size_t slot = (size_t)(h ^ (h >> 29)) & (slices->table_size - 1);
    for (; slices->table[slot]; slot = (slot + 1) & (slices->table_size - 1)) {
        const struct slice_device *d = &slices->devices[slices->table[slot] - 1];
        if (strcmp(d->name, device) == 0 && strcmp(d->pool, pool) == 0 &&
            strcmp(d->driver, driver) == 0)
            break;
    }
    return slot;
}

static int node_order(const char *a, const char *b)
{
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static int by_node(const void *a, const void *b)
{
    const struct slice_device *x = a, *y = b;
    int order = node_order(x->node, y->node);
    if (order == 0)
        order = strcmp(x->driver, y->driver);
    if (order == 0)
        order = strcmp(x->pool, y->pool);
    return order != 0 ? order : strcmp(x->name, y->name);
}

const json_t *slice_device_body(const json_t *device)
{
    const json_t *basic = json_object_get(device, "basic");
    return json_is_object(basic) ? basic : device;
}

static int add_devices(struct slices *slices, const struct slice_part *raw,
                       struct drarun_error *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(raw->devices, i, item)
    {
        const char *name = value_text(item, "name"), *node = value_text(item, "nodeName");
        const json_t *body = slice_device_body(item);
        if (!name)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "ResourceSlice %s: spec.devices[%zu]: no name", raw->name, i);
        const json_t *attributes = json_object_get(body, "attributes");
        slices->devices[slices->device_count++] = (struct slice_device){
            .driver = raw->driver,
            .pool = raw->pool,
            .name = name,
            .slice = raw->name,
            .node = node ? node : raw->node,
            .attributes = json_is_object(attributes) ? attributes : NULL,
            .capacity = json_object_get(body, "capacity"),
            .taints = json_object_get(body, "taints"),
        };
    }
    return 0;
}

/* A slice may come in two files; two versions of it would make us guess. The pool may also publish
 * a name twice, which makes it invalid for the scheduler (view.c): which device is meant, nobody
 * knows. */
static int drop_repeated(struct slices *slices, struct drarun_error *err)
{
    size_t kept = 0, end;
    for (size_t i = 0; i < slices->device_count; i = end) {
        struct slice_device *d = &slices->devices[i];
        bool differ = false;
        for (end = i + 1; end < slices->device_count && by_node(d, &slices->devices[end]) == 0;
             end++) {
            const struct slice_device *other = &slices->devices[end];
            if (d->attributes == other->attributes || json_equal(d->attributes, other->attributes))
                continue;
            if (strcmp(d->slice, other->slice) == 0)
                return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                                  "ResourceSlice %s: device %s is there twice in one generation, "
                                  "with different attributes: give the slices of one moment",
                                  d->slice, d->name);
            differ = true;
        }
        if (!differ)
            slices->devices[kept++] = *d;
    }
    slices->device_count = kept;
    return 0;
}

static int index_devices(struct slices *slices, const struct reading *r, struct drarun_error *err)
{
    size_t devices = 0, size = 16;
    for (size_t i = 0; i < r->count; i++)
        devices += json_array_size(r->list[i].devices);
    while (size < 2 * devices)
        size *= 2;
    slices->devices = calloc(devices + 1, sizeof *slices->devices);
    slices->table = calloc(size, sizeof *slices->table);
    slices->table_size = size;
    if (!slices->devices || !slices->table)
        return error_set(err, ENOMEM, "slices: out of memory");
    for (size_t i = 0; i < r->count; i++) {
        int rc = add_devices(slices, &r->list[i], err);
        if (rc < 0)
            return rc;
    }
    qsort(slices->devices, slices->device_count, sizeof *slices->devices, by_node);
    int rc = drop_repeated(slices, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < slices->device_count; i++) {
        const struct slice_device *d = &slices->devices[i];
        slices->table[slot_of(slices, d->driver, d->pool, d->name)] = (uint32_t)i + 1;
    }
    return 0;
}

int slices_read(json_t *document, struct slices *ret_slices, struct drarun_error *err)
{
    struct reading r = {0};
    struct slices slices = {.documents = json_incref(document)};
    CLEANUP(slices_donep) struct slices *undo = &slices;
    int rc = collect(&r, document, 0, err);
    cleanup_free struct slice_part *list = r.list;
    if (rc < 0)
        return rc;
    slices.pools = calloc(r.count + 1, sizeof *slices.pools);
    if (!slices.pools)
        return error_set(err, ENOMEM, "slices: out of memory");
    if (r.count > 0)
        qsort(list, r.count, sizeof *list, by_pool);
    rc = keep_parts(&slices, &r, err);
    if (rc < 0)
        return rc;
    keep_newest(&slices, &r);
    rc = index_devices(&slices, &r, err);
    if (rc < 0)
        return rc;
    undo = NULL;
    *ret_slices = slices;
    return 0;
}

/* ---- of two times ---- */

/* Of a pool in which `later` has more. */
static int mark(json_t *pools, const char *driver, const char *pool)
{
    json_t *of_driver = json_object_get(pools, driver);
    if (!of_driver && json_object_set_new(pools, driver, of_driver = json_object()) < 0)
        return -ENOMEM;
    return json_object_get(of_driver, pool)
               ? 0
               : json_object_set_new(of_driver, pool, json_pack("{s:{}, s:[]}", "there", "gone"));
}

/* NULL: the pool is not marked. */
static json_t *marked(const json_t *pools, const char *driver, const char *pool)
{
    return json_object_get(json_object_get(pools, driver), pool);
}

static json_t *device_again(const struct slice_device *d)
{
    return json_pack("{s:s, s:s*, s:O*, s:O*, s:O*}", "name", d->name, "nodeName", d->node,
                     "attributes", d->attributes, "capacity", d->capacity, "taints", d->taints);
}

static int note_there(const struct slice_part *part, json_t *there)
{
    size_t i;
    json_t *item;
    int rc = 0;
    json_array_foreach(part->devices, i, item)
    {
        rc |= json_object_set_new(there, value_text_or(item, "name", ""), json_true());
    }
    return rc;
}

/* In marked pools: the devices that `later` lacks, by whatever slice. */
static int note_gone(const struct slices *earlier, const struct slices *later, const json_t *pools)
{
    int rc = 0;
    int64_t newest = 0;
    for (size_t i = 0; i < later->part_count; i++) {
        const struct slice_part *part = &later->parts[i];
        json_t *grown = marked(pools, part->driver, part->pool);
        if (i == 0 || !same_pool(&later->parts[i - 1], part))
            newest = part->generation;
        if (grown && part->generation == newest)
            rc |= note_there(part, json_object_get(grown, "there"));
    }
    for (size_t i = 0; i < earlier->device_count; i++) {
        const struct slice_device *device = &earlier->devices[i];
        json_t *grown = marked(pools, device->driver, device->pool);
        if (grown && !json_object_get(json_object_get(grown, "there"), device->name))
            rc |= json_array_append_new(json_object_get(grown, "gone"), device_again(device));
    }
    return rc;
}

/* It has not all attributes any more that it had. */
static bool is_taken_back(const struct slice_device *before, const struct slice_device *now)
{
    const char *key;
    json_t *value;
    value_foreach(before->attributes, key, value)
    {
        if (!json_object_get(now->attributes, key))
            return true;
    }
    return false;
}

static int add_device(const struct slices *earlier, const struct slices *later,
                      const struct slice_part *part, json_t *item, json_t *devices)
{
    const char *name = value_text_or(item, "name", "");
    const struct slice_device *before = slices_find(earlier, part->driver, part->pool, name);
    const struct slice_device *now = slices_find(later, part->driver, part->pool, name);
    return before && now && is_taken_back(before, now)
               ? json_array_append_new(devices, device_again(before))
               : json_array_append(devices, item);
}

static int add_part(const struct slice_part *part, json_t *spec_take, json_t *list)
{
    return json_array_append_new(list,
                                 json_pack("{s:s, s:{s:s}, s:o}", "kind", "ResourceSlice",
                                           "metadata", "name", part->name, "spec", spec_take));
}

/* A slice of a marked pool. The pool's first one, of its newest generation, has what is gone. */
static int add_grown(const struct slices *earlier, const struct slices *later,
                     const struct slice_part *part, const json_t *gone, json_t *list)
{
    json_t *devices = json_array(), *spec = json_copy(value_unconst(part->spec)), *item;
    size_t i;
    int rc = 0;
    json_array_foreach(part->devices, i, item)
    {
        rc |= add_device(earlier, later, part, item, devices);
    }
    if (gone)
        rc |= json_array_extend(devices, value_unconst(gone));
    rc |= json_object_set_new(spec, "devices", devices);
    return add_part(part, spec, list) | rc;
}

static int add_parts(const struct slices *earlier, const struct slices *later, const json_t *pools,
                     json_t *list)
{
    int rc = 0;
    for (size_t i = 0; i < earlier->part_count; i++) {
        const struct slice_part *part = &earlier->parts[i];
        if (!marked(pools, part->driver, part->pool))
            rc |= add_part(part, json_incref(value_unconst(part->spec)), list);
    }
    for (size_t i = 0; i < later->part_count; i++) {
        const struct slice_part *part = &later->parts[i];
        const json_t *grown = marked(pools, part->driver, part->pool);
        bool first = i == 0 || !same_pool(&later->parts[i - 1], part);
        if (grown)
            rc |= add_grown(earlier, later, part, first ? json_object_get(grown, "gone") : NULL,
                            list);
    }
    return rc;
}

json_t *slices_join(const struct slices *earlier, const struct slices *later)
{
    CLEANUP(json_decrefp) json_t *pools = json_object(), *list = json_array();
    int rc = pools && list ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < later->device_count; i++) {
        const struct slice_device *device = &later->devices[i];
        if (!slices_find(earlier, device->driver, device->pool, device->name))
            rc = mark(pools, device->driver, device->pool);
    }
    if (rc == 0)
        rc = note_gone(earlier, later, pools);
    if (rc == 0)
        rc = add_parts(earlier, later, pools, list);
    return rc != 0 ? NULL : TAKE_PTR(list);
}

/* ---- looking up ---- */

const struct slice_device *slices_find(const struct slices *slices, const char *driver,
                                       const char *pool, const char *device)
{
    if (slices->table_size == 0)
        return NULL;
    uint32_t entry = slices->table[slot_of(slices, driver, pool, device)];
    return entry ? &slices->devices[entry - 1] : NULL;
}

const struct slice_pool *slices_pool(const struct slices *slices, const char *driver,
                                     const char *pool)
{
    for (size_t i = 0; i < slices->pool_count; i++)
        if (strcmp(slices->pools[i].name, pool) == 0 &&
            strcmp(slices->pools[i].driver, driver) == 0)
            return &slices->pools[i];
    return NULL;
}

bool slice_pool_incomplete(const struct slice_pool *pool)
{
    return pool->seen < pool->expected;
}

const struct slice_device *slices_of_node(const struct slices *slices, const char *node,
                                          size_t *ret_count)
{
    size_t low = 0, high = slices->device_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (node_order(slices->devices[middle].node, node) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < slices->device_count && node_order(slices->devices[end].node, node) == 0)
        end++;
    *ret_count = end - low;
    return slices->devices ? &slices->devices[low] : NULL;
}
