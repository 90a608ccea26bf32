/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/slices/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

bool pool_want_take(struct pool *pool, json_t *parts)
{
    if (pool->parts && json_equal(pool->parts, parts)) {
        json_decref(parts);
        return false;
    }
    json_decref(pool->parts);
    json_decref(TAKE_PTR(pool->stored));
    pool->parts = parts;
    pool->changed = true;
    pool->wish++;
    return true;
}

void pool_done(struct pool *pool)
{
    json_decref(TAKE_PTR(pool->parts));
    json_decref(TAKE_PTR(pool->stored));
}

void pool_step_done(struct pool_step *step)
{
    json_decref(TAKE_PTR(step->object));
}

/* ---- what is held ---- */

static const char *name_of(const json_t *object)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const char *name = json_string_value(json_object_get(metadata, "name"));
    return name ? name : "";
}

static int64_t generation_of(const json_t *object)
{
    const json_t *pool = json_object_get(json_object_get(object, "spec"), "pool");
    return json_integer_value(json_object_get(pool, "generation"));
}

static json_t *find(const json_t *held, const char *name)
{
    size_t i;
    json_t *object;
    json_array_foreach(held, i, object)
    {
        if (strcmp(name_of(object), name) == 0)
            return object;
    }
    return NULL;
}

static int64_t newest(const json_t *held)
{
    size_t i;
    json_t *object;
    int64_t generation = 0;
    json_array_foreach(held, i, object)
    {
        if (generation_of(object) > generation)
            generation = generation_of(object);
    }
    return generation;
}

/* ---- what is wanted ---- */

static void index_key(size_t index, char key[24])
{
    snprintf(key, 24, "%zu", index);
}

static json_t *wanted_object(const struct pool *pool, size_t index)
{
    return slice_object(&pool->owner, pool->version, json_array_get(pool->parts, index), index,
                        json_array_size(pool->parts), pool->generation);
}

/* The content is what we want, or what the server has made of just that. */
static bool is_same(const struct pool *pool, size_t index, const json_t *held)
{
    char key[24];
    index_key(index, key);
    const json_t *spec = json_object_get(held, "spec");
    const json_t *stored = json_object_get(pool->stored, key);
    if (stored && slice_spec_same(stored, spec))
        return true;
    json_t *wanted = wanted_object(pool, index);
    bool same = wanted && slice_spec_same(json_object_get(wanted, "spec"), spec);
    json_decref(wanted);
    return same;
}

/* All is there with one generation, and nothing else: that is then the pool's. */
static bool is_settled(struct pool *pool, const json_t *held)
{
    char name[254];
    size_t count = json_array_size(pool->parts);
    int64_t generation = newest(held);
    if (json_array_size(held) != count || generation < pool->generation)
        return false;
    for (size_t i = 0; i < count; i++) {
        slice_name(&pool->owner, i, name, sizeof name);
        const json_t *object = find(held, name);
        if (!object || generation_of(object) != generation || !is_same(pool, i, object))
            return false;
    }
    pool->generation = generation;
    pool->changed = false;
    return true;
}

static void choose_generation(struct pool *pool, const json_t *held, int64_t now)
{
    int64_t seen = newest(held), next = pool->generation;
    if (!pool->changed && seen <= pool->generation)
        return;
    next = (seen > next ? seen : next) + 1;
    pool->generation = next > now ? next : now;
    pool->changed = false;
}

/* ---- steps ---- */

static bool same_taint(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"key", "value", "effect"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        if (x != y && !json_equal(x, y))
            return false;
    }
    return true;
}

static void keep_times(const json_t *device, const json_t *before)
{
    size_t i, j;
    json_t *taint, *old;
    json_array_foreach(slice_device_taints(device), i, taint)
    {
        json_array_foreach(slice_device_taints(before), j, old)
        {
            json_t *time = json_object_get(old, "timeAdded");
            if (time && same_taint(taint, old))
                json_object_set(taint, "timeAdded", time);
        }
    }
}

/* A taint that stays has the time since when it is there: pods may tolerate it for a while. */
static void keep_all_times(json_t *object, const json_t *held)
{
    size_t i, p, d;
    json_t *device, *piece, *before;
    json_array_foreach(json_object_get(json_object_get(object, "spec"), "devices"), i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        json_array_foreach(held, p, piece)
        {
            json_array_foreach(json_object_get(json_object_get(piece, "spec"), "devices"), d,
                               before)
            {
                const char *other = json_string_value(json_object_get(before, "name"));
                if (name && other && strcmp(name, other) == 0)
                    keep_times(device, before);
            }
        }
    }
}

static int make_write(struct pool *pool, size_t index, const json_t *before, const json_t *held,
                      struct pool_step *ret_step, struct drarun_error *err)
{
    json_t *plain = wanted_object(pool, index);
    json_t *object = json_deep_copy(plain); /* its taints get their times; those of parts do not */
    json_decref(plain);
    json_t *version = json_object_get(json_object_get(before, "metadata"), "resourceVersion");
    if (!object || (version && json_object_set(json_object_get(object, "metadata"),
                                               "resourceVersion", version) < 0)) {
        json_decref(object);
        return error_set(err, ENOMEM, "slices: out of memory");
    }
    keep_all_times(object, held);
    *ret_step = (struct pool_step){.kind = before ? POOL_REPLACE : POOL_CREATE,
                                   .index = index,
                                   .wish = pool->wish,
                                   .object = object};
    slice_name(&pool->owner, index, ret_step->name, sizeof ret_step->name);
    return 0;
}

static bool is_wanted(const struct pool *pool, const char *name)
{
    char wanted[254];
    for (size_t i = 0; i < json_array_size(pool->parts); i++) {
        slice_name(&pool->owner, i, wanted, sizeof wanted);
        if (strcmp(wanted, name) == 0)
            return true;
    }
    return false;
}

static void find_extra(const struct pool *pool, const json_t *held, struct pool_step *ret_step)
{
    size_t i;
    json_t *object;
    json_array_foreach(held, i, object)
    {
        if (is_wanted(pool, name_of(object)))
            continue;
        const char *uid =
            json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));
        *ret_step = (struct pool_step){.kind = POOL_DELETE};
        snprintf(ret_step->name, sizeof ret_step->name, "%s", name_of(object));
        snprintf(ret_step->uid, sizeof ret_step->uid, "%s", uid ? uid : "");
        return;
    }
}

int pool_next(struct pool *pool, const json_t *held, int64_t now, struct pool_step *ret_step,
              struct drarun_error *err)
{
    char name[254];
    struct pool_step step = {.kind = POOL_SETTLED};
    if (!pool->parts || is_settled(pool, held)) {
        *ret_step = step;
        return 0;
    }
    choose_generation(pool, held, now);
    for (size_t i = 0; i < json_array_size(pool->parts); i++) {
        slice_name(&pool->owner, i, name, sizeof name);
        const json_t *before = find(held, name);
        if (!before || generation_of(before) != pool->generation || !is_same(pool, i, before))
            return make_write(pool, i, before, held, ret_step, err);
    }
    find_extra(pool, held, &step); /* last: until then the pool is whole */
    *ret_step = step;
    return 0;
}

void pool_written(struct pool *pool, const struct pool_step *step, const json_t *object)
{
    char key[24];
    pool->drops_taints =
        pool->drops_taints ||
        slice_lost_taints(json_object_get(step->object, "spec"), json_object_get(object, "spec"));
    if (step->wish != pool->wish) /* it is not what the server makes of the parts of now */
        return;
    index_key(step->index, key);
    if (!pool->stored)
        pool->stored = json_object();
    json_object_set(pool->stored, key, json_object_get(object, "spec"));
}
