/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claimed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/doc/value.h"
#include "plugin/prepare/agent_config.h"

static const json_t *at(const json_t *object, const char *key)
{
    return json_object_get(object, key);
}

static bool is(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

void claimed_done(struct claimed *claimed)
{
    free(claimed->devices);
    *claimed = (struct claimed){0};
}

/* A configuration names requests by their own name, or a subrequest by "request/subrequest". */
static bool is_meant(const json_t *config, const char *request)
{
    const json_t *requests = at(config, "requests"), *item;
    size_t i, main = strcspn(request, "/");
    if (json_array_size(requests) == 0)
        return true;
    json_array_foreach(requests, i, item)
    {
        const char *name = json_string_value(item);
        if (is(name, request) ||
            (name && strlen(name) == main && strncmp(name, request, main) == 0))
            return true;
    }
    return false;
}

static void find_configs(const json_t *configs, const char *driver, struct claimed_device *device)
{
    const json_t *config;
    size_t i;
    json_array_foreach(configs, i, config)
    {
        const json_t *opaque = at(config, "opaque"), *parameters = at(opaque, "parameters");
        if (!is(value_text(opaque, "driver"), driver) || !is_meant(config, device->request) ||
            agent_config_is(parameters))
            continue;
        if (is(value_text(config, "source"), "FromClass"))
            device->of_class = parameters;
        else
            device->config = parameters;
    }
}

static int find_agent(const json_t *configs, const char *driver, struct claimed *claimed,
                      struct drarun_error *err)
{
    const json_t *config;
    size_t i;
    json_array_foreach(configs, i, config)
    {
        const json_t *parameters = at(at(config, "opaque"), "parameters");
        if (!is(value_text(at(config, "opaque"), "driver"), driver) || !agent_config_is(parameters))
            continue;
        if (is(value_text(config, "source"), "FromClass"))
            return error_set(err, EINVAL,
                             "its class asks for " AGENT_OFFER_KIND
                             ", which is a job's claim's alone to do");
        claimed->agent = parameters;
    }
    return 0;
}

/* "nic" or "nic/fast", of DNS labels: it becomes part of a file's name. */
static bool is_request(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    size_t main = strspn(text, letters), sub = text[main] ? strspn(text + main + 1, letters) : 0;
    return main > 0 && main < 64 && sub < 64 &&
           (!text[main] || (text[main] == '/' && sub > 0 && !text[main + 1 + sub]));
}

static int read_result(const json_t *result, const json_t *configs, const char *driver,
                       const char *pool, struct claimed *claimed, struct drarun_error *err)
{
    struct claimed_device *device = &claimed->devices[claimed->count];
    if (!is(value_text(result, "driver"), driver))
        return 0;
    *device = (struct claimed_device){
        .request = value_text(result, "request"),
        .pool = value_text(result, "pool"),
        .device = value_text(result, "device"),
        .admin = json_is_true(at(result, "adminAccess")),
    };
    if (!device->request || !device->pool || !device->device)
        return error_set(err, EINVAL, "a result without request, pool or device");
    if (!is_request(device->request))
        return error_set(err, EINVAL,
                         "a result of request \"%.64s\", which is no name of a request",
                         device->request);
    if (!is(device->pool, pool))
        return error_set(err, EINVAL, "its device %s is of pool %s, and this node has pool %s",
                         device->device, device->pool, pool);
    find_configs(configs, driver, device);
    claimed->count++;
    return 0;
}

static int read_results(const json_t *claim, const char *driver, const char *pool,
                        struct claimed *claimed, struct drarun_error *err)
{
    const json_t *devices = at(at(at(claim, "status"), "allocation"), "devices");
    const json_t *results = at(devices, "results"), *result;
    size_t i;
    if (!at(at(claim, "status"), "allocation"))
        return error_set(err, EAGAIN, "it is not allocated");
    claimed->devices = calloc(json_array_size(results) + 1, sizeof *claimed->devices);
    if (!claimed->devices)
        return error_set(err, ENOMEM, "out of memory");
    json_array_foreach(results, i, result)
    {
        int rc = read_result(result, at(devices, "config"), driver, pool, claimed, err);
        if (rc < 0)
            return rc;
    }
    return claimed->count > 0 ? find_agent(at(devices, "config"), driver, claimed, err)
                              : error_set(err, EINVAL, "it has no device of driver %s", driver);
}

bool claimed_take_pod(struct claimed *claimed, const json_t *claim, size_t index)
{
    const json_t *holder;
    size_t i, before = 0;
    json_array_foreach(at(at(claim, "status"), "reservedFor"), i, holder)
    {
        const char *group = value_text(holder, "apiGroup");
        const char *name = value_text(holder, "name"), *uid = value_text(holder, "uid");
        if ((group && *group) || !is(value_text(holder, "resource"), "pods") || !name || !uid ||
            before++ < index)
            continue;
        claimed->pod = name;
        claimed->pod_uid = uid;
        return true;
    }
    return false;
}

int claimed_read(const json_t *claim, const char *uid, const char *driver, const char *pool,
                 struct claimed *ret_claimed, struct drarun_error *err)
{
    const json_t *metadata = at(claim, "metadata");
    struct claimed claimed = {
        .namespace_ = value_text(metadata, "namespace"),
        .name = value_text(metadata, "name"),
        .uid = value_text(metadata, "uid"),
    };
    int rc = 0;
    if (!claimed.namespace_ || !claimed.name || !claimed.uid)
        return error_set(err, EINVAL, "the API's answer is no ResourceClaim");
    if (strcmp(claimed.uid, uid) != 0)
        rc = error_set(err, ESTALE, "it is another one by now, of UID %s; %s is asked for",
                       claimed.uid, uid);
    if (rc == 0)
        rc = read_results(claim, driver, pool, &claimed, err);
    if (rc == 0 && !claimed_take_pod(&claimed, claim, 0))
        rc = error_set(err, EAGAIN, "it is reserved for no pod");
    if (rc == 0) {
        *ret_claimed = claimed;
        return 0;
    }
    error_prefix(err, "claim %s/%s", claimed.namespace_, claimed.name);
    claimed_done(&claimed);
    return rc;
}

/* The pod's own name for the claim, which containers list; NULL: it has none. */
static const char *find_entry(const json_t *pod, const char *claim)
{
    const json_t *item;
    size_t i;
    json_array_foreach(
        at(at(pod, "status"), "resourceClaimStatuses"), i,
        item) if (is(value_text(item, "resourceClaimName"), claim)) return value_text(item, "name");
    json_array_foreach(
        at(at(pod, "spec"), "resourceClaims"), i,
        item) if (is(value_text(item, "resourceClaimName"), claim)) return value_text(item, "name");
    return NULL;
}

static bool container_lists(const json_t *container, const char *entry, const char *request)
{
    const json_t *item;
    size_t i, main = strcspn(request, "/");
    json_array_foreach(at(at(container, "resources"), "claims"), i, item)
    {
        const char *only = value_text(item, "request");
        if (is(value_text(item, "name"), entry) &&
            (!only || (strlen(only) == main && strncmp(only, request, main) == 0)))
            return true;
    }
    return false;
}

static bool is_listed(const json_t *pod, const char *entry, const char *request)
{
    static const char *const kinds[] = {"containers", "initContainers"};
    const json_t *container;
    size_t i;
    for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++)
        json_array_foreach(at(at(pod, "spec"), kinds[kind]), i,
                           container) if (container_lists(container, entry, request)) return true;
    return false;
}

static bool is_from_template(const json_t *pod, const char *entry)
{
    const json_t *item;
    size_t i;
    json_array_foreach(at(at(pod, "spec"), "resourceClaims"), i,
                       item) if (is(value_text(item, "name"),
                                    entry)) return value_text(item, "resourceClaimTemplateName");
    return false;
}

int claimed_check_pod(struct claimed *claimed, const json_t *pod, const char *node,
                      struct drarun_error *err)
{
    const json_t *extended = at(at(pod, "status"), "extendedResourceClaimStatus");
    const char *uid = value_text(at(pod, "metadata"), "uid");
    const char *where = value_text(at(pod, "spec"), "nodeName");
    claimed->host_network = json_is_true(at(at(pod, "spec"), "hostNetwork"));
    claimed->user_namespace = json_is_false(at(at(pod, "spec"), "hostUsers"));
    if (!is(uid, claimed->pod_uid))
        return error_set(err, ESTALE,
                         "pod %s/%s is another one by now, of UID %s; claim %s is "
                         "reserved for %s",
                         claimed->namespace_, claimed->pod, uid ? uid : "-", claimed->name,
                         claimed->pod_uid);
    if (!is(where, node))
        return error_set(err, EINVAL, "pod %s/%s, which holds claim %s, is on node %s, not on %s",
                         claimed->namespace_, claimed->pod, claimed->name, where ? where : "-",
                         node);
    if (is(value_text(extended, "resourceClaimName"), claimed->name))
        return 0; /* the kubelet maps its requests to containers itself */
    const char *entry = find_entry(pod, claimed->name);
    if (!entry)
        return error_set(err, EINVAL, "pod %s/%s does not name claim %s", claimed->namespace_,
                         claimed->pod, claimed->name);
    snprintf(claimed->entry, sizeof claimed->entry, "%s", entry);
    claimed->from_template = is_from_template(pod, entry);
    for (size_t i = 0; i < claimed->count; i++) {
        const char *request = claimed->devices[i].request;
        if (!is_listed(pod, entry, request))
            return error_set(err, EINVAL,
                             "no container of pod %s/%s lists request %.*s of claim %s, so none "
                             "would have its devices; add to the container: resources: {claims: "
                             "[{name: %s}]}",
                             claimed->namespace_, claimed->pod, (int)strcspn(request, "/"), request,
                             claimed->name, entry);
    }
    return 0;
}
