/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/extended_claim.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/manifests/pod_amounts.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/order.h"
#include "lib/doc/value.h"
#include "lib/dra/extended_resource.h"

#define PREFIX "container-"

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

bool extended_claim_has(const char *request)
{
    return strncmp(request, PREFIX, strlen(PREFIX)) == 0;
}

/* ---- where devices come from ---- */

int extended_claim_source(const struct extended_cluster *cluster, const char *resource,
                          enum extended_source *ret_source, const char **ret_class,
                          struct drarun_error *err)
{
    bool plugin = false, none = false, unknown = json_array_size(cluster->nodes) == 0;
    size_t i;
    json_t *node;
    *ret_source = EXTENDED_SOURCE_PLUGIN;
    *ret_class = extended_resource_class(cluster->classes, resource, cluster->minor);
    if (!*ret_class)
        return 0;
    json_array_foreach(cluster->nodes, i, node)
    {
        const json_t *status = json_object_get(node, "status");
        const json_t *allocatable = json_object_get(status, "allocatable");
        double much;
        int rc = pod_amount(allocatable, resource, &much, err);
        if (rc < 0)
            return rc;
        unknown |= !allocatable;
        plugin |= much > 0;
        none |= allocatable && much <= 0;
    }
    *ret_source = plugin && none ? EXTENDED_SOURCE_BOTH
                  : unknown      ? EXTENDED_SOURCE_UNKNOWN
                  : plugin       ? EXTENDED_SOURCE_PLUGIN
                                 : EXTENDED_SOURCE_CLASS;
    return 0;
}

static void note_source(enum extended_source source, const char *resource, const char *class,
                        struct strlist *notes)
{
    if (!notes || (source != EXTENDED_SOURCE_BOTH && source != EXTENDED_SOURCE_UNKNOWN))
        return;
    strlist_addf(notes, "devices of DeviceClass %s for %s: %s", class, resource,
                 source == EXTENDED_SOURCE_BOTH
                     ? "some nodes have a device plugin for it, others have none"
                     : "whether a device plugin serves it is in status.allocatable of the Nodes");
}

/* ---- requests ---- */

/* A container, in the order of initial containers and others. */
struct user {
    const json_t *requests, *limits;
    bool ends; /* before others start */
};

/* A limit is a request, too, where none is given. */
static int amount_of(const struct user *user, const char *resource, uint32_t *ret_count,
                     struct drarun_error *err)
{
    const json_t *list = json_object_get(user->requests, resource) ? user->requests : user->limits;
    double much;
    int rc = pod_amount(list, resource, &much, err);
    if (rc == 0)
        *ret_count = much < 0 ? 0 : much < UINT32_MAX ? (uint32_t)much : UINT32_MAX;
    return rc;
}

/* The resource's place among those that the container requests, by name. */
static unsigned place_of(const struct user *user, const char *resource)
{
    unsigned before = 0;
    const char *name;
    json_t *value;
    value_foreach(user->requests, name, value)
    {
        before += strcmp(name, resource) < 0;
    }
    value_foreach(user->limits, name, value)
    {
        before += strcmp(name, resource) < 0 && !json_object_get(user->requests, name);
    }
    return before;
}

/* Requests are in the order of their names. */
static int add_request(const struct user *users, size_t at, const char *resource, const char *class,
                       uint32_t count, json_t *requests, struct drarun_error *err)
{
    char name[64];
    size_t i = 0;
    snprintf(name, sizeof name, PREFIX "%zu-request-%u", at, place_of(&users[at], resource));
    while (i < json_array_size(requests) &&
           strcmp(value_text_or(json_array_get(requests, i), "name", ""), name) < 0)
        i++;
    json_t *request =
        json_pack("{s:s, s:{s:s, s:s, s:I}}", "name", name, "exactly", "deviceClassName", class,
                  "allocationMode", "ExactCount", "count", (json_int_t)count);
    return request && json_array_insert_new(requests, i, request) == 0 ? 0 : no_memory(err);
}

/* As createRequestsAndMappings: containers that end use what those after them hold, and together
 * the most that one of them needs beyond that. */
static int add_resource(const struct user *users, size_t count, const char *resource,
                        const char *class, json_t *requests, struct drarun_error *err)
{
    uint64_t later = 0;
    uint32_t most = 0;
    size_t by = 0;
    for (size_t i = count; i-- > 0;) {
        uint32_t own = 0;
        int rc = amount_of(&users[i], resource, &own, err);
        if (rc == 0 && own > 0 && !users[i].ends)
            rc = add_request(users, i, resource, class, own, requests, err);
        if (rc < 0)
            return rc;
        if (!users[i].ends) {
            later += own;
        } else if (own > later && own - later >= most) {
            most = own - (uint32_t)later;
            by = i;
        }
    }
    return most > 0 ? add_request(users, by, resource, class, most, requests, err) : 0;
}

static void read_users(const json_t *pod, struct user *users, size_t initial, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool first = i < initial;
        const json_t *list = json_object_get(pod, first ? "initContainers" : "containers");
        const json_t *container = json_array_get(list, first ? i : i - initial);
        const json_t *resources = json_object_get(container, "resources");
        users[i] = (struct user){
            .requests = json_object_get(resources, "requests"),
            .limits = json_object_get(resources, "limits"),
            .ends = first && strcmp(value_text_or(container, "restartPolicy", ""), "Always") != 0};
    }
}

int extended_claim(const json_t *pod, const struct extended_cluster *cluster, json_t **ret_requests,
                   json_t *resources, struct strlist *notes, struct drarun_error *err)
{
    size_t initial = json_array_size(json_object_get(pod, "initContainers"));
    size_t count = initial + json_array_size(json_object_get(pod, "containers"));
    CLEANUP(json_decrefp) json_t *sums = json_object();
    CLEANUP(json_decrefp) json_t *requests = json_array();
    cleanup_free struct user *users = calloc(count + 1, sizeof *users);
    if (!sums || !requests || !users)
        return no_memory(err);
    read_users(pod, users, initial, count);
    int rc = pod_requests(pod, sums, err);
    size_t name_count = 0;
    cleanup_free const char **names = calloc(json_object_size(sums) + 1, sizeof *names);
    if (rc == 0 && !names)
        rc = no_memory(err);
    const char *name;
    json_t *sum;
    json_object_foreach(sums, name, sum)
    {
        if (rc == 0 && json_real_value(sum) > 0)
            names[name_count++] = name;
    }
    if (rc == 0)
        qsort(names, name_count, sizeof *names, order_texts);
    for (size_t i = 0; rc == 0 && i < name_count; i++) {
        enum extended_source source;
        const char *class;
        rc = extended_claim_source(cluster, names[i], &source, &class, err);
        if (rc == 0)
            note_source(source, names[i], class, notes);
        if (rc == 0 && source == EXTENDED_SOURCE_CLASS)
            rc = add_resource(users, count, names[i], class, requests, err);
        for (size_t r = 0; rc == 0 && resources && r < json_array_size(requests); r++) {
            const char *request = value_text(json_array_get(requests, r), "name");
            if (!json_object_get(resources, request) &&
                json_object_set_new(resources, request, json_string(names[i])) < 0)
                rc = no_memory(err);
        }
    }
    if (rc == 0)
        *ret_requests = TAKE_PTR(requests);
    return rc;
}
