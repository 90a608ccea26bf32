/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/avoid_node.h"

#include <errno.h>
#include <stdbool.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

/* The member, an object or list made where there is none. NULL without memory. */
static json_t *member(json_t *object, const char *key, bool list)
{
    json_t *value = json_object_get(object, key);
    if (list ? json_is_array(value) : json_is_object(value))
        return value;
    value = list ? json_array() : json_object();
    return json_object_set_new(object, key, value) < 0 ? NULL : value;
}

static bool has(const json_t *list, const json_t *value)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (json_equal(entry, value))
            return true;
    }
    return false;
}

static int avoid_in_term(json_t *term, const char *const *nodes, size_t count)
{
    json_t *fields = member(term, "matchFields", true);
    for (size_t i = 0; i < count; i++) {
        CLEANUP(json_decrefp)
        json_t *field = json_pack("{s:s, s:s, s:[s]}", "key", "metadata.name", "operator", "NotIn",
                                  "values", nodes[i]);
        if (!fields || !field)
            return -1;
        if (!has(fields, field) && json_array_append(fields, field) < 0)
            return -1;
    }
    return 0;
}

static int avoid_in(json_t *spec, const char *const *nodes, size_t count)
{
    json_t *affinity = member(spec, "affinity", false);
    json_t *node = affinity ? member(affinity, "nodeAffinity", false) : NULL;
    json_t *required =
        node ? member(node, "requiredDuringSchedulingIgnoredDuringExecution", false) : NULL;
    json_t *terms = required ? member(required, "nodeSelectorTerms", true) : NULL;
    int rc = terms ? 0 : -1;
    bool none = json_array_size(terms) == 0;
    if (rc == 0 && none)
        rc = json_array_append_new(terms, json_object());
    for (size_t i = 0; rc == 0 && i < json_array_size(terms); i++) {
        json_t *term = json_array_get(terms, i);
        /* an empty term matches no node (core/v1, NodeSelectorTerm), and must go on to */
        if (none || json_object_size(term) > 0)
            rc = avoid_in_term(term, nodes, count);
    }
    return rc;
}

int avoid_nodes(json_t *pod_spec, const char *const *nodes, size_t count, struct drarun_error *err)
{
    if (count == 0)
        return 0;
    if (count > AVOID_NODES_MAX)
        return error_set(err, E2BIG, "%zu nodes to avoid: more than %d", count, AVOID_NODES_MAX);
    CLEANUP(json_decrefp) json_t *affinity = json_deep_copy(json_object_get(pod_spec, "affinity"));
    CLEANUP(json_decrefp) json_t *copy = json_object();
    int rc = copy ? 0 : -1;
    if (rc == 0 && affinity)
        rc = json_object_set(copy, "affinity", affinity);
    if (rc == 0)
        rc = avoid_in(copy, nodes, count);
    if (rc == 0)
        rc = json_object_set(pod_spec, "affinity", json_object_get(copy, "affinity"));
    return rc < 0 ? error_set(err, ENOMEM, "nodes to avoid: out of memory") : 0;
}
