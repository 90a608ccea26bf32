/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/served.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/nearest.h"
#include "lib/doc/value.h"

struct kube_served *served_new(void)
{
    struct kube_served *served = calloc(1, sizeof *served);
    if (served && !(served->groups = json_object())) {
        free(served);
        return NULL;
    }
    return served;
}

void served_free(struct kube_served *served)
{
    if (!served)
        return;
    json_decref(served->groups);
    free(served);
}

/* The group's versions, made when they are missing; borrowed. */
static json_t *versions_of(struct kube_served *served, const char *group)
{
    json_t *versions = json_object_get(served->groups, group);
    if (!versions && json_object_set_new(served->groups, group, json_object()) == 0)
        versions = json_object_get(served->groups, group);
    return versions;
}

static json_t *resources_of(const json_t *version)
{
    json_t *plurals = json_object(), *resource;
    size_t i;
    json_array_foreach(json_object_get(version, "resources"), i, resource)
        json_object_set_new(plurals, value_text_or(resource, "resource", ""), json_true());
    return plurals;
}

static int add_group(struct kube_served *served, const char *group, const json_t *list, bool whole)
{
    json_t *versions = versions_of(served, group), *version;
    size_t i;
    if (!versions)
        return -ENOMEM;
    json_array_foreach(list, i, version)
    {
        json_t *resources = whole ? resources_of(version) : json_null();
        if (json_object_set_new(versions, value_text_or(version, "version", ""), resources) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int add_core(struct kube_served *served, const json_t *list)
{
    json_t *versions = versions_of(served, ""), *version;
    size_t i;
    if (!versions)
        return -ENOMEM;
    json_array_foreach(list, i,
                       version) if (json_is_string(version) &&
                                    json_object_set_new(versions, json_string_value(version),
                                                        json_null()) < 0) return -ENOMEM;
    return 0;
}

int served_add(struct kube_served *served, const json_t *answer, struct drarun_error *err)
{
    const char *kind = value_text_or(answer, "kind", "");
    size_t i;
    json_t *group;
    int rc = 0;
    if (strcmp(kind, "APIGroupDiscoveryList") == 0) {
        json_array_foreach(json_object_get(answer, "items"), i, group) rc =
            rc ? rc
               : add_group(served, value_text_or(json_object_get(group, "metadata"), "name", ""),
                           json_object_get(group, "versions"), true);
    } else if (strcmp(kind, "APIGroupList") == 0) {
        json_array_foreach(json_object_get(answer, "groups"), i, group) rc =
            rc ? rc
               : add_group(served, value_text_or(group, "name", ""),
                           json_object_get(group, "versions"), false);
    } else if (strcmp(kind, "APIVersions") == 0) {
        rc = add_core(served, json_object_get(answer, "versions"));
    } else {
        return error_kind(err, DRARUN_ERR_CLUSTER, EPROTO,
                          "discovery: expected an APIGroupDiscoveryList, got kind \"%.40s\"", kind);
    }
    return rc < 0 ? error_set(err, ENOMEM, "out of memory") : 0;
}

/* resources: of a version, NULL when it is not served */
static bool has(const json_t *resources, const char *plural)
{
    return resources && (!plural || json_is_null(resources) || json_object_get(resources, plural));
}

bool kube_serves(const struct kube_served *served, const char *group, const char *version,
                 const char *plural)
{
    const json_t *versions = json_object_get(served->groups, group);
    return has(json_object_get(versions, version), plural);
}

const char *kube_serves_one_of(const struct kube_served *served, const char *group,
                               const char *versions, const char *plural, size_t *ret_length)
{
    const json_t *known = json_object_get(served->groups, group);
    size_t length = 0;
    for (const char *word; (word = words_next(&versions, &length));) {
        if (!has(json_object_getn(known, word, length), plural))
            continue;
        *ret_length = length;
        return word;
    }
    return NULL;
}

const char *kube_version_with(const struct kube_served *served, const char *group,
                              const char *plural)
{
    json_t *versions = json_object_get(served->groups, group), *resources;
    const char *version;
    json_object_foreach(versions, version,
                        resources) if (json_object_get(resources, plural)) return version;
    return NULL;
}
