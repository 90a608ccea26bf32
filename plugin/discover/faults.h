/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a device unfit, as faults of the device, which are published as taints. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_FAULTS_H
#define DRARUN_PLUGIN_DISCOVER_FAULTS_H

#include "plugin/discover/config.h"
#include "plugin/discover/node_device.h"

#define FAULT_LINK_DOWN "drarun.dev/link-down"
#define FAULT_XID "drarun.dev/xid"
#define FAULT_LOST "drarun.dev/lost"

/* An effect of FAULT_NONE adds nothing; nor does a fault that is there already or one too many. */
void fault_add(struct node_device *device, enum fault_effect effect, const char *key,
               const char *value, const char *text);

/* A NIC that has been asked to be up and has no carrier; a port of InfiniBand that is not active. A
 * RoCE port follows its interface, and one that nobody has set up yet is no fault. */
void faults_of_link(const struct discover_config *config, struct node_device *device);

/* Xids that say that the program was wrong, not the GPU: NVIDIA's "Xid Errors", application class
 * (as its DRA driver and device plugin skip them). */
bool xid_is_of_program(uint64_t xid);

#endif
