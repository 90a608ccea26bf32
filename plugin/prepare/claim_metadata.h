/* SPDX-License-Identifier: Apache-2.0 */
/* Device metadata (KEP-5304): what a container is told of the devices of a claim, a file for each
 * request, mounted read-only. Paths and format as k8s.io/dynamic-resource-allocation v0.37
 * (api/metadata, kubeletplugin/metadata.go) has them. Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_CLAIM_METADATA_H
#define DRARUN_PLUGIN_PREPARE_CLAIM_METADATA_H

#include <jansson.h>
#include "lib/base/buf.h"
#include "plugin/discover/node_device.h"
#include "plugin/prepare/claimed.h"

/* Adds a device to list, an array of {request, container, document}, with an entry for its request
 * when there is none yet: `container` is the file's path there. order: the NIC's, or NULL. driver:
 * as it is called in the claim. Nothing is added for a claim that the pod does not name itself
 * (extended resources). False: out of memory. */
bool claim_metadata_add(json_t *list, const struct claimed *claimed,
                        const struct claimed_device *wanted, const char *driver,
                        const struct node_device *device, const json_t *order);

/* The file's text: the document once for each version of the API, newest first. */
void claim_metadata_text(const json_t *entry, struct buf *out);

/* Of the list, the entry of a request ("nic" of "nic/fast"); NULL. */
const json_t *claim_metadata_find(const json_t *list, const char *request);

#endif
