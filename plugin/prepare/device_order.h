/* SPDX-License-Identifier: Apache-2.0 */
/* What the hook is to do with one device of a claim. */
#ifndef DRARUN_PLUGIN_PREPARE_DEVICE_ORDER_H
#define DRARUN_PLUGIN_PREPARE_DEVICE_ORDER_H

#include "plugin/prepare/preparer_private.h"

/* The order as a document, with the device as it is on the host now; *ret_order NULL for one that
 * needs none. Errors name the request's configuration or the device. */
int device_order(const struct task *task, const struct claimed_device *wanted,
                 const struct node_device *device, json_t **ret_order, struct drarun_error *err);

#endif
