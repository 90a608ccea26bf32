/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/slices/node_slices.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/agent_offer.h"
#include "lib/base/cleanup.h"
#include "lib/base/fnv.h"
#include "lib/base/unconst.h"
#include "lib/doc/value.h"
#include "plugin/discover/device_json.h"

#define NAME_MAX_DNS 253u

/* ---- the split ---- */

static bool has_taints(const struct node_devices *devices, const char *driver)
{
    for (size_t i = 0; i < devices->count; i++)
        if (devices->list[i].fault_count > 0 &&
            strcmp(node_device_driver(&devices->list[i]), driver) == 0)
            return true;
    return false;
}

json_t *slices_split(const struct node_devices *devices, const char *driver)
{
    size_t limit = has_taints(devices, driver) ? SLICE_DEVICES_MAX_TAINTED : SLICE_DEVICES_MAX;
    json_t *parts = json_array(), *part = json_array();
    bool failed = json_array_append_new(parts, part) < 0;
    for (size_t i = 0; !failed && i < devices->count; i++) {
        const struct node_device *device = &devices->list[i];
        if (strcmp(node_device_driver(device), driver) != 0)
            continue;
        if (json_array_size(part) == limit) {
            part = json_array();
            failed = json_array_append_new(parts, part) < 0;
        }
        failed = failed || json_array_append_new(part, device_json(device)) < 0;
    }
    if (failed)
        json_decref(TAKE_PTR(parts));
    return parts;
}

json_t *slices_without_tainted(const json_t *parts, bool (*held)(const char *name, void *arg),
                               void *arg)
{
    size_t p, d;
    json_t *part, *device, *result = json_array();
    bool ok = result;
    json_array_foreach(parts, p, part)
    {
        json_t *kept = json_array();
        json_array_foreach(part, d, device)
        {
            const char *name = json_string_value(json_object_get(device, "name"));
            if (!json_object_get(device, "taints") || held(name, arg))
                ok = json_array_append(kept, device) == 0 && ok;
        }
        ok = json_array_append_new(result, kept) == 0 && ok;
    }
    if (!ok)
        json_decref(TAKE_PTR(result));
    return result;
}

static bool offer_agent(json_t *device, const char *agent)
{
    json_t *attributes = json_object_get(device, "attributes");
    size_t count =
        json_object_size(attributes) + json_object_size(json_object_get(device, "capacity"));
    return count >= DEVICE_ATTRIBUTES_MAX ||
           json_object_set_new(attributes, AGENT_OFFER_ATTRIBUTE,
                               json_pack("{s:s}", "string", agent)) == 0;
}

bool slices_offer_agent(json_t *parts, const char *agent)
{
    json_t *part, *device;
    size_t p, d;
    json_array_foreach(parts, p, part)
        json_array_foreach(part, d, device) if (!offer_agent(device, agent)) return false;
    return true;
}

/* ---- one slice ---- */

void slice_name(const struct slices_owner *owner, size_t index, char *ret_name, size_t size)
{
    char end[96];
    int end_len = snprintf(end, sizeof end, "-%s-%zu", owner->driver, index);
    size_t room = NAME_MAX_DNS - (size_t)end_len;
    if (strlen(owner->node) <= room)
        snprintf(ret_name, size, "%s%s", owner->node, end);
    else
        snprintf(ret_name, size, "%.*s-%08x%s", (int)room - 9, owner->node,
                 fnv1a_32(owner->node, strlen(owner->node)), end);
}

/* v1beta1 has all but the name of a device below "basic", and a quantity as a text. */
static json_t *old_device(const json_t *device)
{
    const char *key;
    json_t *value, *basic = json_object();
    json_t *old = json_pack("{s:O, s:o}", "name", json_object_get(device, "name"), "basic", basic);
    value_foreach(device, key, value)
    {
        if (old && strcmp(key, "name") != 0 && json_object_set(basic, key, value) < 0)
            json_decref(TAKE_PTR(old));
    }
    return old;
}

static json_t *devices_of(const char *version, const json_t *devices)
{
    size_t i;
    json_t *device, *list;
    if (strcmp(version, "v1beta1") != 0)
        return json_incref(unconst(devices));
    list = json_array();
    json_array_foreach(devices, i, device)
    {
        if (list && json_array_append_new(list, old_device(device)) < 0)
            json_decref(TAKE_PTR(list));
    }
    return list;
}

static json_t *metadata_of(const struct slices_owner *owner, size_t index)
{
    char name[NAME_MAX_DNS + 1];
    slice_name(owner, index, name, sizeof name);
    if (!owner->node_uid)
        return json_pack("{s:s}", "name", name);
    return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s, s:b}]}", "name", name, "ownerReferences",
                     "apiVersion", "v1", "kind", "Node", "name", owner->node, "uid",
                     owner->node_uid, "controller", 1);
}

json_t *slice_object(const struct slices_owner *owner, const char *version, const json_t *devices,
                     size_t index, size_t count, int64_t generation)
{
    char api[64];
    snprintf(api, sizeof api, "resource.k8s.io/%s", version);
    return json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:{s:s, s:I, s:I}, s:o}}", "apiVersion", api,
                     "kind", "ResourceSlice", "metadata", metadata_of(owner, index), "spec",
                     "driver", owner->driver, "nodeName", owner->node, "pool", "name", owner->node,
                     "generation", (json_int_t)generation, "resourceSliceCount", (json_int_t)count,
                     "devices", devices_of(version, devices));
}

/* ---- the same? ---- */

const json_t *slice_device_taints(const json_t *device)
{
    const json_t *basic = json_object_get(device, "basic");
    return json_object_get(basic ? basic : device, "taints");
}

bool slice_lost_taints(const json_t *written, const json_t *answer)
{
    const json_t *got = json_object_get(answer, "devices");
    size_t i;
    json_t *device;
    json_array_foreach(json_object_get(written, "devices"), i, device)
    {
        if (json_array_size(slice_device_taints(device)) > 0 &&
            json_array_size(slice_device_taints(json_array_get(got, i))) == 0)
            return true;
    }
    return false;
}

static bool same(const json_t *wanted, const json_t *held);

static bool is_servers(const char *key)
{
    return strcmp(key, "timeAdded") == 0 || strcmp(key, "generation") == 0;
}

static bool same_object(const json_t *wanted, const json_t *held)
{
    const char *key;
    json_t *value;
    size_t common = 0, more = 0;
    value_foreach(wanted, key, value)
    {
        if (is_servers(key))
            continue;
        if (!same(value, json_object_get(held, key)))
            return false;
        common++;
    }
    value_foreach(held, key, value)
    {
        more += !is_servers(key);
    }
    return more == common;
}

static bool same(const json_t *wanted, const json_t *held)
{
    size_t i;
    json_t *value;
    if (json_is_object(wanted) && json_is_object(held))
        return same_object(wanted, held);
    if (!json_is_array(wanted) || !json_is_array(held))
        return json_equal(wanted, held);
    if (json_array_size(wanted) != json_array_size(held))
        return false;
    json_array_foreach(wanted, i, value)
    {
        if (!same(value, json_array_get(held, i)))
            return false;
    }
    return true;
}

/* An empty list of devices is left out by the server. */
bool slice_spec_same(const json_t *wanted, const json_t *held)
{
    const json_t *devices = json_object_get(wanted, "devices");
    if (json_array_size(devices) > 0 || json_object_get(held, "devices"))
        return same(wanted, held);
    json_t *copy = json_copy(unconst(wanted));
    json_object_del(copy, "devices");
    bool result = copy && same(copy, held);
    json_decref(copy);
    return result;
}
