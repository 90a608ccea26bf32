/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of one driver on one node as ResourceSlices: one pool, named as the node, in as many
 * slices as its devices need. Pure: the generation is given.
 * Source: k8s.io/api/resource/v1, ResourceSliceSpec and its limits. */
#ifndef DRARUN_PLUGIN_SLICES_NODE_SLICES_H
#define DRARUN_PLUGIN_SLICES_NODE_SLICES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "plugin/discover/node_devices.h"

#define SLICE_DEVICES_MAX 128        /* ResourceSliceMaxDevices */
#define SLICE_DEVICES_MAX_TAINTED 64 /* ResourceSliceMaxDevicesWithTaintsOrConsumesCounters */

struct slices_owner {
    const char *node, *node_uid; /* node_uid NULL: no owner reference */
    const char *driver; /* the name to publish under: the devices' own, or one taken over */
};

/* spec.devices of each slice: an array of arrays, at least one, which may be empty (a pool that
 * says that it has no devices). driver: of the devices, node_device_driver. NULL: out of memory. */
json_t *slices_split(const struct node_devices *devices, const char *driver);

/* The same without the devices that have a taint, but for those that are held (a name). A new
 * reference; NULL: out of memory. */
json_t *slices_without_tainted(const json_t *parts, bool (*held)(const char *name, void *arg),
                               void *arg);

/* Adds the attribute by which a node says that it brings the agent (lib/base/agent_offer.h) to each
 * device that has room for it. False: out of memory. */
bool slices_offer_agent(json_t *parts, const char *agent);

/* The slice number `index` of `count`, in the shape of the version ("v1", "v1beta2" or "v1beta1").
 * devices: as slices_split gave them; of v1beta1 they lie below "basic". NULL: out of memory. */
json_t *slice_object(const struct slices_owner *owner, const char *version, const json_t *devices,
                     size_t index, size_t count, int64_t generation);

/* Its name: node, driver and index; a hash in the place of the node's end where that is too long.
 */
void slice_name(const struct slices_owner *owner, size_t index, char *ret_name, size_t size);

/* Of a device in a slice of any version; borrowed; NULL: it has none. */
const json_t *slice_device_taints(const json_t *device);
/* Whether a device of what was written has taints, and in the server's answer it has none. Both
 * are a slice's spec. */
bool slice_lost_taints(const json_t *written, const json_t *answer);

/* Whether what the API server holds says the same as what we want: but for the time that it adds to
 * taints, and for spec.pool.generation. Both are a slice's spec. */
bool slice_spec_same(const json_t *wanted, const json_t *held);

#endif
