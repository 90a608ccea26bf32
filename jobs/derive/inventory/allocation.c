/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/derive/inventory/allocation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/derive/inventory/device_role.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"

void allocation_done(struct allocation *allocation)
{
    free(allocation->results);
    *allocation = (struct allocation){0};
}

/* The network data of status.devices that belongs to the result. */
static void add_network_data(const json_t *devices, struct allocation_result *result)
{
    size_t i;
    json_t *entry;
    json_array_foreach(devices, i, entry)
    {
        const char *driver = value_text(entry, "driver"), *pool = value_text(entry, "pool");
        const char *device = value_text(entry, "device");
        if (!driver || !pool || !device || strcmp(driver, result->driver) != 0 ||
            strcmp(pool, result->pool) != 0 || strcmp(device, result->device) != 0)
            continue;
        const json_t *data = json_object_get(entry, "networkData");
        result->pod_name = value_text(data, "interfaceName");
        result->ips = json_object_get(data, "ips");
        return;
    }
}

static int read_results(const json_t *status, struct allocation *a, struct drarun_error *err)
{
    const json_t *allocation = json_object_get(status, "allocation");
    const json_t *results = json_object_get(json_object_get(allocation, "devices"), "results");
    size_t i;
    json_t *entry;
    if (!json_is_object(allocation))
        return error_kind(err, DRARUN_ERR_SPEC, EAGAIN,
                          "claim %s is not allocated: no status.allocation", a->claim);
    a->results = calloc(json_array_size(results) + 1, sizeof *a->results);
    if (!a->results)
        return error_set(err, ENOMEM, "allocation: out of memory");
    json_array_foreach(results, i, entry)
    {
        struct allocation_result result = {.request = value_text(entry, "request"),
                                           .driver = value_text(entry, "driver"),
                                           .pool = value_text(entry, "pool"),
                                           .device = value_text(entry, "device")};
        if (!result.request || !result.driver || !result.pool || !result.device)
            return error_kind(err, DRARUN_ERR_SPEC, EINVAL,
                              "claim %s: status.allocation.devices.results[%zu]: expected request, "
                              "driver, pool and device",
                              a->claim, i);
        if (json_is_true(json_object_get(entry, "adminAccess")))
            continue;
        add_network_data(json_object_get(status, "devices"), &result);
        a->results[a->count++] = result;
    }
    return 0;
}

/* matchFields on metadata.name, which a node-local allocation carries. */
static const char *node_of(const json_t *selector)
{
    size_t i;
    json_t *term;
    json_array_foreach(json_object_get(selector, "nodeSelectorTerms"), i, term)
    {
        const json_t *field =
            value_find(json_object_get(term, "matchFields"), "key", "metadata.name");
        if (field)
            return json_string_value(json_array_get(json_object_get(field, "values"), 0));
    }
    return NULL;
}

/* v1 nests what v1beta1 has in the request itself under "exactly" or "firstAvailable". */
static bool class_has_gpu(const json_t *request)
{
    const char *class = value_text(request, "deviceClassName");
    size_t i;
    json_t *sub;
    if (!class)
        class = value_text(json_object_get(request, "exactly"), "deviceClassName");
    if (device_role(class) == DEVICE_GPU)
        return true;
    json_array_foreach(json_object_get(request, "firstAvailable"), i,
                       sub) if (class_has_gpu(sub)) return true;
    return false;
}

static bool asks_for_gpus(const json_t *claim)
{
    const json_t *devices = json_object_get(json_object_get(claim, "spec"), "devices");
    size_t i;
    json_t *request;
    json_array_foreach(json_object_get(devices, "requests"), i,
                       request) if (class_has_gpu(request)) return true;
    return false;
}

int allocation_read(const json_t *claim, struct allocation *ret_allocation,
                    struct drarun_error *err)
{
    const char *kind = value_text(claim, "kind");
    const char *name = value_text(json_object_get(claim, "metadata"), "name");
    const json_t *status = json_object_get(claim, "status");
    struct allocation a = {.claim = name ? name : "(no name)"};
    if (!json_is_object(claim) || (kind && strcmp(kind, "ResourceClaim") != 0))
        return error_kind(err, DRARUN_ERR_SPEC, EINVAL, "expected a ResourceClaim, got %.60s",
                          kind ? kind : "no object");
    a.selector = json_object_get(json_object_get(status, "allocation"), "nodeSelector");
    a.node = node_of(a.selector);
    a.gpu_asked = asks_for_gpus(claim);
    int rc = read_results(status, &a, err);
    if (rc < 0) {
        allocation_done(&a);
        return rc;
    }
    *ret_allocation = a;
    return 0;
}

void allocation_pod_claims(const json_t *pod, struct strlist *names)
{
    const json_t *status = json_object_get(pod, "status"), *spec = json_object_get(pod, "spec");
    const char *name;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(status, "resourceClaimStatuses"), i, entry)
    {
        name = value_text(entry, "resourceClaimName");
        if (name && !strlist_has(names, name))
            strlist_add(names, name);
    }
    json_array_foreach(json_object_get(spec, "resourceClaims"), i, entry)
    {
        name = value_text(entry, "resourceClaimName");
        if (name && !strlist_has(names, name))
            strlist_add(names, name);
    }
    name = value_text(json_object_get(status, "extendedResourceClaimStatus"), "resourceClaimName");
    if (name && !strlist_has(names, name))
        strlist_add(names, name);
}

uint32_t allocation_count_gpus(const json_t *claims)
{
    uint32_t count = 0;
    size_t i, k;
    json_t *claim, *result;
    json_array_foreach(claims, i, claim)
    {
        const json_t *allocation = json_object_get(json_object_get(claim, "status"), "allocation");
        json_array_foreach(json_object_get(json_object_get(allocation, "devices"), "results"), k,
                           result)
        {
            const char *request = json_string_value(json_object_get(result, "request"));
            count += request && strncmp(request, "gpu", 3) == 0;
        }
    }
    return count;
}
