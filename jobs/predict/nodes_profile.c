/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict/nodes_profile.h"

#include <stdio.h>

#include "lib/doc/value.h"

struct node_devices {
    const struct slice_device *list;
    size_t count;
};

static const json_t *labels_of(const json_t *node)
{
    return json_object_get(json_object_get(node, "metadata"), "labels");
}

static const char *name_of(const json_t *node)
{
    return value_text_or(json_object_get(node, "metadata"), "name", "");
}

static bool has_attribute(const char *key, bool (*match)(const char *value, const void *arg),
                          const void *arg, const void *node)
{
    const struct node_devices *devices = node;
    for (size_t i = 0; i < devices->count; i++) {
        const char *text = value_text(json_object_get(devices->list[i].attributes, key), "string");
        if (text && text[0] && match(text, arg))
            return true;
    }
    return false;
}

static const struct profile *of_node(const struct profiles *profiles, const json_t *node,
                                     const struct node_devices *devices, char *ret_why, size_t size)
{
    const struct profile_facts facts = {
        .labels = labels_of(node),
        .has_attribute = has_attribute,
        .node = devices,
        .arch = value_text(labels_of(node), "kubernetes.io/arch"),
    };
    return profiles_detect(profiles, &facts, ret_why, size);
}

struct nodes_profile nodes_profile_find(const struct profiles *profiles, const json_t *nodes,
                                        const struct slices *slices, nodes_profile_fn *wanted,
                                        void *arg)
{
    struct nodes_profile result = {0};
    const char *first = NULL;
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        struct node_devices devices;
        devices.list = slices_of_node(slices, name_of(node), &devices.count);
        if (!wanted(node, devices.list, devices.count, arg))
            continue;
        char why[sizeof result.why];
        const struct profile *own = of_node(profiles, node, &devices, why, sizeof why);
        if (own && first && own != result.found) {
            snprintf(result.why, sizeof result.why, "node %.80s is of %s, and node %.80s of %s",
                     first, result.found->name, name_of(node), own->name);
            result.found = NULL;
            return result;
        }
        if (!own) {
            snprintf(result.why, sizeof result.why,
                     "no label and no device of node %.150s names its machine", name_of(node));
            result.found = NULL;
            return result;
        }
        if (!first)
            snprintf(result.why, sizeof result.why, "%s", why);
        result.found = own;
        first = first ? first : name_of(node);
    }
    if (!first)
        snprintf(result.why, sizeof result.why, "no node has such devices");
    return result;
}
