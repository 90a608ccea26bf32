/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices are offered and under which names, as the configuration says. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_SELECT_H
#define DRARUN_PLUGIN_DISCOVER_SELECT_H

#include "plugin/discover/config.h"
#include "plugin/discover/node_devices.h"

/* Removes from the list what is not published, renames what a rule matches (not what is away or
 * lost: it has its name) and adds the faults of links. Where an expression cannot be evaluated (an
 * attribute that the device has not) the device is not published; where a name is taken or is no
 * DNS label the device keeps its own. Both are warnings. -ENOMEM. */
int select_devices(const struct discover_config *config, struct node_devices *devices,
                   struct drarun_error *err);

#endif
