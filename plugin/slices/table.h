/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as a table for people. Pure. */
#ifndef DRARUN_PLUGIN_SLICES_TABLE_H
#define DRARUN_PLUGIN_SLICES_TABLE_H

#include "lib/base/buf.h"
#include "plugin/discover/node_devices.h"

/* A line for each device, "-" for what is not known. */
void devices_table(const struct node_devices *devices, struct buf *out);

#endif
