/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/claim_usage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/manifests/limits.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "lib/dra/extended_resource.h"

#define RESOURCE_MAX 320

static int no_memory(struct drarun_error *err)
{
    return error_set(err, ENOMEM, "out of memory");
}

/* "All" counts as many as a claim can hold, however many a node has. */
static double devices_of(const json_t *request)
{
    const json_t *count = json_object_get(request, "count");
    bool all = strcmp(value_text_or(request, "allocationMode", ""), "All") == 0;
    return all ? LIMIT_CLAIM_RESULTS : count ? (double)json_integer_value(count) : 1;
}

static int raise_to(json_t *sums, const char *name, double much, struct drarun_error *err)
{
    if (json_real_value(json_object_get(sums, name)) >= much)
        return 0;
    return json_object_set_new(sums, name, json_real(much)) < 0 ? no_memory(err) : 0;
}

static int add(json_t *sums, const char *name, double much, struct drarun_error *err)
{
    return raise_to(sums, name, json_real_value(json_object_get(sums, name)) + much, err);
}

/* Of alternatives, the most that any takes of each class. */
static int add_request(const json_t *request, json_t *by_class, struct drarun_error *err)
{
    const json_t *exactly = json_object_get(request, "exactly");
    CLEANUP(json_decrefp) json_t *most = json_object();
    size_t i;
    json_t *choice, *much;
    const char *class;
    int rc = most ? 0 : no_memory(err);
    if (rc == 0 && exactly)
        rc =
            raise_to(most, value_text_or(exactly, "deviceClassName", ""), devices_of(exactly), err);
    json_array_foreach(json_object_get(request, "firstAvailable"), i, choice)
    {
        if (rc == 0)
            rc = raise_to(most, value_text_or(choice, "deviceClassName", ""), devices_of(choice),
                          err);
    }
    json_object_foreach(most, class, much)
    {
        if (rc == 0)
            rc = add(by_class, class, json_real_value(much), err);
    }
    return rc;
}

/* Two classes may have one extended resource: the server charges either, which one is left to
 * chance. */
static int charge_extended(const char *class, double much, const json_t *classes, json_t *extended,
                           struct drarun_error *err)
{
    char resource[RESOURCE_MAX];
    const char *name = extended_resource_name(classes, class);
    snprintf(resource, sizeof resource, "requests." EXTENDED_RESOURCE_OF_CLASS "%.253s", class);
    int rc = raise_to(extended, resource, much, err);
    if (rc < 0 || !name)
        return rc;
    snprintf(resource, sizeof resource, "requests.%.300s", name);
    return raise_to(extended, resource, much, err);
}

int claim_usage(const json_t *claim, const json_t *classes, unsigned minor, json_t *usage,
                struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *by_class = json_object();
    CLEANUP(json_decrefp) json_t *extended = json_object();
    size_t i;
    json_t *request, *much;
    const char *name;
    int rc = by_class && extended ? add(usage, "count/resourceclaims.resource.k8s.io", 1, err)
                                  : no_memory(err);
    json_array_foreach(json_object_get(json_object_get(claim, "devices"), "requests"), i, request)
    {
        if (rc == 0)
            rc = add_request(request, by_class, err);
    }
    json_object_foreach(by_class, name, much)
    {
        char resource[RESOURCE_MAX];
        snprintf(resource, sizeof resource, "%.253s.deviceclass.resource.k8s.io/devices", name);
        if (rc == 0)
            rc = add(usage, resource, json_real_value(much), err);
        if (rc == 0 && extended_resource_by_class(minor))
            rc = charge_extended(name, json_real_value(much), classes, extended, err);
    }
    json_object_foreach(extended, name, much)
    {
        if (rc == 0)
            rc = add(usage, name, json_real_value(much), err);
    }
    return rc;
}
