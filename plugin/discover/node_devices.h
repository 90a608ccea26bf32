/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a node, as a list. */
#ifndef DRARUN_PLUGIN_DISCOVER_NODE_DEVICES_H
#define DRARUN_PLUGIN_DISCOVER_NODE_DEVICES_H

#include "drarun/error.h"
#include "lib/base/strlist.h"
#include "plugin/discover/node_device.h"

struct node_devices {
    struct node_device *list; /* GPUs by address, then NICs by address, then those without */
    size_t count, cap;
    struct strlist warnings; /* what was left out as broken or hostile, a line each */
    /* what select_devices left out since the host uses it: the name it would have, and the use */
    struct strlist spared, spared_reasons;
};

#define NODE_DEVICES_INIT                                                                          \
    {                                                                                              \
        0                                                                                          \
    }

/* A zeroed device at the end; NULL: out of memory. Pointers into the list end with it. */
struct node_device *node_devices_add(struct node_devices *devices);
/* Drops those from index on. */
void node_devices_cut(struct node_devices *devices, size_t index);
/* Drops one, keeping the order. */
void node_devices_remove(struct node_devices *devices, size_t index);
/* A copy of its own, GIDs too; without what is said of devices that are left out. -ENOMEM. */
int node_devices_copy(const struct node_devices *devices, struct node_devices *ret_copy,
                      struct drarun_error *err);
void node_devices_done(struct node_devices *devices);

/* Says of the i-th of those that the host uses why it is not published, and what to do. */
#define SPARED_TEXT 400u
void node_devices_spared_text(const struct node_devices *devices, size_t i,
                              char ret_text[SPARED_TEXT]);

/* What the host uses a NIC of this name for, which is not published for that; NULL: no such. */
const char *node_devices_spared(const struct node_devices *devices, const char *name);

/* By slice name, in the driver's devices; NULL: no such. */
const struct node_device *node_devices_find(const struct node_devices *devices, const char *driver,
                                            const char *name);

#endif
