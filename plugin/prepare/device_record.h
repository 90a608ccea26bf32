/* SPDX-License-Identifier: Apache-2.0 */
/* A NIC as it was on the host when a pod was given it, for the checkpoint: what a plugin that
 * starts while the device is in the pod cannot see, and has to publish. Of a GPU or a MIG device
 * which one it is and its name, which it keeps as long as the claim has it. Pure. */
#ifndef DRARUN_PLUGIN_PREPARE_DEVICE_RECORD_H
#define DRARUN_PLUGIN_PREPARE_DEVICE_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include "plugin/discover/node_device.h"

/* A new reference; NULL: out of memory. GIDs, which a pod changes, are left out. */
json_t *device_record(const struct node_device *device);
/* False, and *ret_device untouched, when it is none: what is missing is as not known. */
bool device_record_read(const json_t *record, struct node_device *ret_device);

#endif
