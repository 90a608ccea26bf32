/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/claim_status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/timestamp.h"

json_t *claim_status_network(const json_t *order)
{
    const json_t *interface = json_object_get(json_object_get(order, "config"), "interface");
    if (!json_string_value(json_object_get(interface, "name")))
        return NULL;
    json_t *network = json_object();
    json_t *mac = json_object_get(interface, "hardwareAddr");
    if (!json_string_value(mac))
        mac = json_object_get(order, "mac");
    json_object_set(network, "interfaceName", json_object_get(interface, "name"));
    if (*(json_string_value(mac) ? json_string_value(mac) : ""))
        json_object_set(network, "hardwareAddress", mac);
    if (json_array_size(json_object_get(interface, "addresses")) > 0)
        json_object_set(network, "ips", json_object_get(interface, "addresses"));
    return network;
}

static json_t *device_of(const struct checkpoint_device *device, const char *driver,
                         const char *now)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:[{s:s, s:s, s:s, s:s, s:s}]}", "driver", driver,
                              "pool", device->pool, "device", device->device, "conditions", "type",
                              "Prepared", "status", "True", "reason", "Prepared", "message",
                              device->order ? "it is attached when a container starts" : "",
                              "lastTransitionTime", now);
    const char *rdma = json_string_value(json_object_get(device->order, "rdma"));
    json_t *network = entry ? claim_status_network(device->order) : NULL;
    if (network)
        json_object_set_new(entry, "networkData", network);
    if (entry && rdma && *rdma)
        json_object_set_new(entry, "data", json_pack("{s:s}", "rdmaDevice", rdma));
    return entry;
}

/* A claim may have a device for two requests, one of them with adminAccess: it has one status. */
static bool is_first(const struct checkpoint *checkpoint, size_t index)
{
    const struct checkpoint_device *device = &checkpoint->devices[index];
    for (size_t i = 0; i < index; i++)
        if (strcmp(checkpoint->devices[i].pool, device->pool) == 0 &&
            strcmp(checkpoint->devices[i].device, device->device) == 0)
            return false;
    return true;
}

/* For server-side apply; now: as timestamp_format writes it. NULL: out of memory. */
static json_t *object_of(const struct checkpoint *checkpoint, const char *version, const char *now)
{
    char api[64];
    json_t *devices = json_array();
    snprintf(api, sizeof api, "resource.k8s.io/%s", version);
    for (size_t i = 0; i < checkpoint->count; i++)
        if (is_first(checkpoint, i) &&
            json_array_append_new(
                devices, device_of(&checkpoint->devices[i], checkpoint->driver, now)) < 0) {
            json_decref(devices);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{s:o}}", "apiVersion", api, "kind",
                     "ResourceClaim", "metadata", "namespace", checkpoint->namespace_, "name",
                     checkpoint->name, "uid", checkpoint->uid, "status", "devices", devices);
}

int claim_status_write(struct kube_client *client, const struct kube_resource *claims,
                       const struct checkpoint *checkpoint, kube_call_fn fn, void *arg,
                       struct kube_call **ret_call, struct drarun_error *err)
{
    char now[TIMESTAMP_SIZE];
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    timestamp_format((int64_t)ts.tv_sec * 1000, now, sizeof now);
    CLEANUP(json_decrefp) json_t *object = object_of(checkpoint, claims->version, now);
    const struct kube_target target = {.resource = claims,
                                       .namespace_ = checkpoint->namespace_,
                                       .name = checkpoint->name,
                                       .subresource = "status"};
    const struct kube_write options = {.manager = checkpoint->driver, .force = true};
    return object ? kube_apply(client, &target, object, &options, fn, arg, ret_call, err)
                  : error_set(err, ENOMEM, "out of memory");
}
