/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/predict/class_devices.h"

#include <errno.h>
#include <stdbool.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"

#define SERVING "serving"

struct devices_of {
    json_t *nodes;
    bool anywhere; /* there is a device that is not of one node */
    bool failed;
};

static void on_device(const struct slice_device *device, void *arg)
{
    struct devices_of *of = arg;
    of->anywhere |= !device->node;
    if (!device->node)
        return;
    json_int_t count = json_integer_value(json_object_get(of->nodes, device->node));
    of->failed |= json_object_set_new(of->nodes, device->node, json_integer(count + 1)) < 0;
}

int class_devices(const json_t *claim, const struct predict_cluster *cluster, const char *requests,
                  json_t **ret_nodes, struct drarun_error *err)
{
    CLEANUP(json_decrefp) json_t *nodes = json_object();
    struct devices_of of = {.nodes = nodes, .failed = !nodes};
    int rc = predict_devices(claim, cluster, requests, on_device, &of, err);
    if (rc == 0 && of.failed)
        rc = error_set(err, ENOMEM, "out of memory");
    if (rc == 0)
        *ret_nodes = of.anywhere ? NULL : TAKE_PTR(nodes);
    return rc;
}

int class_devices_serving(const char *class, const struct predict_cluster *cluster,
                          json_t **ret_nodes, struct drarun_error *err)
{
    /* as the scheduler makes for an extended resource, of whatever count */
    CLEANUP(json_decrefp)
    json_t *claim = json_pack("{s:{s:[{s:s, s:{s:s}}]}}", "devices", "requests", "name", SERVING,
                              "exactly", "deviceClassName", class);
    return claim ? class_devices(claim, cluster, SERVING, ret_nodes, err)
                 : error_set(err, ENOMEM, "out of memory");
}
