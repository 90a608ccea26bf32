/* SPDX-License-Identifier: Apache-2.0 */
/* The node's devices, kept up to date: read at the start, when the kernel tells of interfaces, RDMA
 * devices or PCI functions (netlink: rtnetlink's links, kobject uevents; at most once a second),
 * and every `rescan` of the configuration, since a port of InfiniBand changes its state in silence.
 * Xids are asked of NVML every 5 s. One loop's thread; a reading takes some milliseconds of it. */
#ifndef DRARUN_PLUGIN_DISCOVER_INVENTORY_H
#define DRARUN_PLUGIN_DISCOVER_INVENTORY_H

#include <event2/event.h>
#include "plugin/discover/discover.h"
#include "plugin/discover/remember.h"

#define INVENTORY_XID_MS 5000
#define INVENTORY_QUIET_MS 100  /* after the kernel's last word */
#define INVENTORY_PAUSE_MS 1000 /* between two readings that the kernel asks for */

struct inventory;

/* Something is published that was not, or otherwise: after inventory_new for the first time. */
typedef void (*inventory_changed_fn)(const struct node_devices *devices, void *arg);

struct inventory_options { /* borrowed as long as the inventory */
    struct event_base *base;
    struct discover_source source;
    const char *xids_dir, *boot; /* of xids_load; NULL: Xids are not kept */
    const char *repaired_dir;    /* of xids_forget_repaired; NULL: none */
    void (*look)(void *arg);     /* before held is asked of one reading's devices; may be NULL */
    device_held_fn held;         /* NULL: no pod holds anything */
    device_held_fn stuck;        /* one that could not be taken back from its pod; NULL: none */
    inventory_changed_fn changed;
    void *arg; /* of all these */
};

/* Reads once; fails where that fails. `changed` is not called before this returns. */
int inventory_new(const struct inventory_options *options, struct inventory **ret_inventory,
                  struct drarun_error *err);
void inventory_free(struct inventory *inventory); /* NULL is fine */

/* As last read: borrowed until the loop runs again or inventory_rescan. */
const struct node_devices *inventory_devices(const struct inventory *inventory);

/* A device as it was on the host when a pod was given it, under its name, from the checkpoint: what
 * a plugin that starts again while it is in the pod cannot see. Of a GPU that is still on the host
 * the name. Before the first reading shows it otherwise; rescan afterwards. -ENOMEM. */
int inventory_know(struct inventory *inventory, const struct node_device *device,
                   struct drarun_error *err);
/* Reads now; calls `changed` where something did. */
int inventory_rescan(struct inventory *inventory, struct drarun_error *err);

#endif
