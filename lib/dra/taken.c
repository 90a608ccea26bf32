/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken before the job comes, as foreachAllocatedDevice of the scheduler's plugin
 * dynamicresources reads it, and the taints that DeviceTaintRules add
 * (k8s.io/dynamic-resource-allocation/resourceslice/tracker). */
#include <errno.h>
#include <string.h>

#include "lib/dra/predict_private.h"
#include "lib/dra/quantity_read.h"
#include "lib/base/error.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"

static size_t find_pool(const struct predict_inventory *inv, const char *driver, const char *pool)
{
    size_t low = 0, high = inv->pool_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct slice_part *part = &inv->slices->parts[inv->pools[middle].first];
        int order = strcmp(part->driver, driver);
        if (order == 0)
            order = strcmp(part->pool, pool);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return inv->pool_count;
}

static int take_capacity(struct predict_inventory *inv, size_t device, const json_t *consumed,
                         struct drarun_error *err)
{
    const char *name;
    json_t *value;
    value_foreach(consumed, name, value)
    {
        struct cel_quantity quantity;
        int rc = quantity_read(value, "consumedCapacity of an allocated claim", &quantity, err);
        if (rc == 0 && predict_shares_add(&inv->shares, device, name, &quantity) < 0)
            rc = error_set(err, ENOMEM, "out of memory");
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The device in every generation of its pool that has it. */
static int take_result(struct predict_inventory *inv, const json_t *result,
                       struct drarun_error *err)
{
    const char *name = value_text_or(result, "device", "");
    const json_t *consumed = json_object_get(result, "consumedCapacity");
    bool share = json_string_value(json_object_get(result, "shareID")) != NULL;
    size_t at =
        find_pool(inv, value_text_or(result, "driver", ""), value_text_or(result, "pool", ""));
    if (json_is_true(json_object_get(result, "adminAccess")) || at == inv->pool_count)
        return 0;
    const struct predict_pool *pool = &inv->pools[at];
    int rc = 0;
    for (size_t d = inv->part_first[pool->first]; rc == 0 && d < inv->part_first[pool->end]; d++) {
        struct predict_device *device = &inv->devices[d];
        if (strcmp(device->slice.name, name) != 0)
            continue;
        device->taken |= share ? PREDICT_TAKEN_SHARE : PREDICT_TAKEN_WHOLE;
        if (share && json_is_object(consumed)) {
            device->taken |= PREDICT_TAKEN_CAPACITY;
            rc = take_capacity(inv, d, consumed, err);
        }
    }
    return rc;
}

int predict_take_results(struct predict_inventory *inventory, const json_t *results,
                         struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(results); i++)
        rc = take_result(inventory, json_array_get(results, i), err);
    return rc;
}

int predict_take_claims(struct predict_inventory *inventory, const json_t *claims,
                        struct drarun_error *err)
{
    for (size_t i = 0; i < json_array_size(claims); i++) {
        const json_t *claim = json_array_get(claims, i);
        const json_t *status = json_object_get(claim, "status");
        const json_t *devices = json_object_get(json_object_get(status, "allocation"), "devices");
        int rc = predict_take_results(inventory, json_object_get(devices, "results"), err);
        if (rc < 0)
            return error_prefix(err, "ResourceClaim %s",
                                value_text_or(json_object_get(claim, "metadata"), "name", ""));
    }
    return 0;
}

/* ---- DeviceTaintRules ---- */

static bool selects(const json_t *selector, const char *key, const char *value)
{
    const char *wanted = json_string_value(json_object_get(selector, key));
    return !wanted || strcmp(wanted, value) == 0;
}

/* Older versions select by class and CEL, too. */
static bool selects_otherwise(const json_t *selector)
{
    const char *key;
    json_t *value;
    value_foreach(selector, key, value)
    {
        if (strcmp(key, "driver") != 0 && strcmp(key, "pool") != 0 && strcmp(key, "device") != 0)
            return !json_is_null(value);
    }
    return false;
}

static int apply_rule(struct predict_inventory *inv, const json_t *rule, struct drarun_error *err)
{
    const json_t *spec = json_object_get(rule, "spec"), *taint = json_object_get(spec, "taint");
    const json_t *selector = json_object_get(spec, "deviceSelector");
    if (!json_is_object(selector)) /* it matches no device, an empty one matches all */
        return 0;
    if (selects_otherwise(selector)) {
        predict_note(inv,
                     "DeviceTaintRule %s selects by more than driver, pool and device: not looked "
                     "at",
                     value_text_or(json_object_get(rule, "metadata"), "name", ""));
        return 0;
    }
    for (size_t d = 0; d < inv->device_count && taint; d++) {
        struct predict_device *device = &inv->devices[d];
        if (!selects(selector, "driver", device->slice.driver) ||
            !selects(selector, "pool", device->slice.pool) ||
            !selects(selector, "device", device->slice.name))
            continue;
        if (!device->rules)
            device->rules = json_array();
        if (json_array_append(device->rules, unconst(taint)) < 0)
            return error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int predict_apply_rules(struct predict_inventory *inventory, const json_t *rules,
                        struct drarun_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(rules); i++)
        rc = apply_rule(inventory, json_array_get(rules, i), err);
    return rc;
}
