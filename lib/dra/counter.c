/* SPDX-License-Identifier: Apache-2.0 */
/* Shared counters of partitionable devices (KEP-4815): a pool's counter sets, what allocated
 * devices use of them, and what the devices of a search would (checkAvailableCounters in
 * structured/internal/experimental). A device fits while no counter of its whole pool is used
 * beyond what is there. */
#include <errno.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/dra/predict_private.h"
#include "lib/dra/quantity_read.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

static struct predict_counter *find(struct predict_view *view, const struct predict_view_pool *pool,
                                    const char *set, const char *name)
{
    for (size_t i = 0; i < pool->counter_count; i++) {
        struct predict_counter *counter = &view->counters[pool->first_counter + i];
        if (strcmp(counter->set, set) == 0 && (!name || strcmp(counter->name, name) == 0))
            return counter;
    }
    return NULL;
}

static int add_counter(struct predict_view *view, struct predict_view_pool *pool, const char *set,
                       const char *name, const json_t *counter, struct drarun_error *err)
{
    struct cel_quantity value, zero;
    int rc = quantity_read(json_object_get(counter, "value"), name, &value, err);
    if (rc < 0)
        return rc;
    void *list =
        array_room(view->counters, view->counter_count, &view->counter_cap, sizeof *view->counters);
    if (!list)
        return error_set(err, ENOMEM, "out of memory");
    view->counters = list;
    cel_quantity_parse("0", 1, &zero);
    view->counters[view->counter_count++] =
        (struct predict_counter){(size_t)(pool - view->pools), set, name, value, zero};
    pool->counter_count++;
    return 0;
}

static int add_sets(struct predict_view *view, struct predict_view_pool *pool,
                    const struct slice_part *part, struct drarun_error *err)
{
    const json_t *sets = json_object_get(part->spec, "sharedCounters");
    for (size_t i = 0; i < json_array_size(sets); i++) {
        const json_t *set = json_array_get(sets, i);
        const char *set_name = value_text_or(set, "name", ""), *name;
        json_t *counter;
        if (find(view, pool, set_name, NULL))
            pool->broken = "has two counter sets of one name";
        json_object_foreach(json_object_get(set, "counters"), name, counter)
        {
            int rc = add_counter(view, pool, set_name, name, counter, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* Calls what for each counter that a device consumes; stops at a negative answer. */
static int each_use(struct predict_view *view, struct predict_view_pool *pool,
                    const struct predict_device *device,
                    int (*what)(struct predict_view *view, struct predict_counter *counter,
                                const struct cel_quantity *quantity),
                    struct drarun_error *err)
{
    for (size_t i = 0; i < json_array_size(device->consumes); i++) {
        const json_t *set = json_array_get(device->consumes, i);
        const char *name;
        json_t *counter;
        json_object_foreach(json_object_get(set, "counters"), name, counter)
        {
            struct predict_counter *found =
                find(view, pool, value_text_or(set, "counterSet", ""), name);
            struct cel_quantity quantity;
            if (!found) {
                pool->broken = "has a device that consumes a counter which is in no counter set";
                return 0;
            }
            int rc = quantity_read(json_object_get(counter, "value"), device->slice.name, &quantity,
                                   err);
            if (rc == 0 && (rc = what(view, found, &quantity)) < 0)
                rc = error_kind(err, DRARUN_ERR_SPEC, -rc,
                                "device %s: counters of more than 38 digits", device->slice.name);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int check_only(struct predict_view *view, struct predict_counter *counter,
                      const struct cel_quantity *quantity)
{
    (void)view;
    (void)counter;
    (void)quantity;
    return 0;
}

static int subtract(struct predict_view *view, struct predict_counter *counter,
                    const struct cel_quantity *quantity)
{
    (void)view;
    return cel_quantity_sub(&counter->available, quantity, &counter->available);
}

static int add_use(struct predict_view *view, struct predict_counter *counter,
                   const struct cel_quantity *quantity)
{
    void *list = array_room(view->uses, view->use_count, &view->use_cap, sizeof *view->uses);
    if (!list)
        return -ENOMEM;
    view->uses = list;
    view->uses[view->use_count++] =
        (struct predict_use){(size_t)(counter - view->counters), *quantity};
    return 0;
}

/* Of the slices of the pool, those that are looked at for counters. */
static bool is_seen(const struct predict_view *view, const struct predict_view_pool *pool,
                    const size_t *parts, size_t part_count, size_t part)
{
    bool seen = pool->all;
    for (size_t i = 0; !seen && i < part_count; i++)
        seen = parts[i] == part;
    return seen && view->inventory->slices->parts[part].generation == pool->generation;
}

int predict_counters_build(struct predict_view *view, struct predict_view_pool *pool,
                           const size_t *parts, size_t part_count, size_t first_candidate,
                           struct drarun_error *err)
{
    const struct predict_inventory *inv = view->inventory;
    const struct predict_pool *own = &inv->pools[pool->pool];
    int rc = 0;
    pool->first_counter = view->counter_count;
    if (!own->counters && !own->consumes)
        return 0;
    for (size_t p = own->first; rc == 0 && own->counters && p < own->end; p++)
        if (is_seen(view, pool, parts, part_count, p))
            rc = add_sets(view, pool, &inv->slices->parts[p], err);
    for (size_t p = own->first; rc == 0 && !pool->broken && p < own->end; p++) {
        if (!is_seen(view, pool, parts, part_count, p))
            continue;
        for (size_t d = inv->part_first[p]; rc == 0 && d < inv->part_first[p + 1]; d++) {
            bool counts = inv->devices[d].taken && !(inv->part_is[p] & PREDICT_PART_COUNTERS);
            rc = each_use(view, pool, &inv->devices[d], counts ? subtract : check_only, err);
        }
    }
    for (size_t c = first_candidate; rc == 0 && !pool->broken && c < view->count; c++) {
        view->candidates[c].first_use = view->use_count;
        rc = each_use(view, pool, &inv->devices[view->candidates[c].device], add_use, err);
        view->candidates[c].use_count = view->use_count - view->candidates[c].first_use;
    }
    return rc;
}

static const char *name_of(const struct predict_view *view, const struct predict_view_pool *pool)
{
    const struct predict_inventory *inv = view->inventory;
    return inv->slices->parts[inv->pools[pool->pool].first].pool;
}

/* The pool whose counters a device of this one takes: itself or, by counters_by_name, the first
 * pool of its name that was asked. */
static struct predict_view_pool *owner_of(struct predict_view *view, size_t at)
{
    struct predict_view_pool *pool = &view->pools[at];
    if (!pool->asked && view->inventory->rules.counters_by_name)
        for (size_t i = 0; i < view->pool_count && !pool->asked; i++)
            if (view->pools[i].asked &&
                strcmp(name_of(view, &view->pools[i]), name_of(view, pool)) == 0) {
                pool->owner = view->pools[i].owner;
                pool->asked = true;
            }
    if (!pool->asked)
        pool->owner = at;
    pool->asked = true;
    return &view->pools[pool->owner];
}

/* What a device takes of a counter, in the pool whose counters count; NULL: it has none of that
 * name, and nobody asks. */
static struct cel_quantity *used_of(struct predict_view *view,
                                    const struct predict_view_pool *owner,
                                    const struct predict_use *use)
{
    struct predict_counter *counter = &view->counters[use->counter];
    if (&view->pools[counter->pool] != owner)
        counter = find(view, owner, counter->set, counter->name);
    return counter ? &counter->used : NULL;
}

int predict_counters_take(struct predict_view *view, size_t candidate)
{
    const struct predict_candidate *c = &view->candidates[candidate];
    if (c->use_count == 0)
        return 1;
    const struct predict_view_pool *pool =
        owner_of(view, view->counters[view->uses[c->first_use].counter].pool);
    for (size_t i = 0; i < c->use_count; i++) {
        const struct predict_use *use = &view->uses[c->first_use + i];
        struct cel_quantity *used = used_of(view, pool, use);
        if (used && cel_quantity_add(used, &use->quantity, used) < 0)
            return -ERANGE;
    }
    for (size_t i = 0; i < pool->counter_count; i++) {
        const struct predict_counter *counter = &view->counters[pool->first_counter + i];
        if (cel_quantity_compare(&counter->available, &counter->used) < 0) {
            predict_counters_return(view, candidate);
            return 0;
        }
    }
    return 1;
}

void predict_counters_return(struct predict_view *view, size_t candidate)
{
    const struct predict_candidate *c = &view->candidates[candidate];
    for (size_t i = 0; i < c->use_count; i++) {
        const struct predict_use *use = &view->uses[c->first_use + i];
        struct cel_quantity *used =
            used_of(view, owner_of(view, view->counters[use->counter].pool), use);
        if (used)
            cel_quantity_sub(used, &use->quantity, used);
    }
}
