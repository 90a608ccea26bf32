/* SPDX-License-Identifier: Apache-2.0 */
/* A device as an entry of spec.devices of a ResourceSlice (resource.k8s.io/v1 and v1beta2): its
 * attributes under the standard domain, ours, and those that claims in the field use (dra.net,
 * gpu.nvidia.com), its capacity, a taint for each fault. The table of them:
 * docs/design/021-node-devices.md. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_DEVICE_JSON_H
#define DRARUN_PLUGIN_DISCOVER_DEVICE_JSON_H

#include <jansson.h>
#include "plugin/discover/node_device.h"

#define DEVICE_ATTRIBUTES_MAX 32 /* with capacities (ResourceSliceMaxAttributesAndCapacities..) */
#define DEVICE_TEXT_MAX 64       /* DeviceAttributeMaxValueLength */

/* A new reference; NULL: out of memory. */
json_t *device_json(const struct node_device *device);

/* "580.126.09" as a version of SemVer 2.0.0, "580.126.9"; false when it is none. */
bool version_normalize(const char *text, char *ret_version, size_t size);
/* Bytes as a quantity with the largest binary suffix that divides them: "183359Mi". */
void bytes_format(uint64_t bytes, char *ret_text, size_t size);

#endif
