/* SPDX-License-Identifier: Apache-2.0 */
/* The Xids of this node's GPUs that still count. NVML tells each once; it stays a fault of its GPU
 * until one of these:
 *   the GPU at the address is another one: another UUID, or its function was taken off the bus and
 *       came back, as a reset through the bus, a replacement or a repair do;
 *   an administrator says that it is repaired, after a reset that leaves both as they are
 *       (nvidia-smi --gpu-reset): `drarun-plugin repaired ADDRESS` leaves a file of that name;
 *   the node boots.
 * So each is kept in a file, DIR/ADDRESS-XID.json, for the next instance of the plugin. */
#ifndef DRARUN_PLUGIN_DISCOVER_XIDS_H
#define DRARUN_PLUGIN_DISCOVER_XIDS_H

#include <sys/types.h>
#include "plugin/discover/config.h"
#include "plugin/discover/node_devices.h"
#include "plugin/discover/nvml.h"

#define XIDS_MAX 64u
#define XIDS_DIR "xids"          /* of the kept ones, in the plugin's state directory */
#define XIDS_REPAIRED "repaired" /* of what an administrator says, there too */

struct known_xid {
    struct nvml_xid xid;
    char uuid[64];  /* of the GPU then; "": not known */
    ino_t function; /* its directory in sysfs then; 0: it was not there */
};

struct xids { /* zero: none, and they are not kept */
    struct known_xid list[XIDS_MAX];
    size_t count;
    const char *dir, *boot; /* borrowed; NULL: they are not kept */
};

/* First: those that an instance before this one has kept in dir during this boot of the node, which
 * are logged; from now on they are kept there. Those of an earlier boot are removed. What cannot be
 * read is logged. dir NULL: none is kept. */
void xids_load(struct xids *xids, const char *dir, const char *boot);

/* nvml may be NULL. Asks NVML, whose root is that of discovery. Whether there is a new one; it is
 * logged. */
bool xids_take(struct xids *xids, struct nvml *nvml, int root, const struct node_devices *devices);
/* Of GPUs that are other ones now. Whether there were any; they are logged. */
bool xids_forget_replaced(struct xids *xids, int root, const struct node_devices *now);
/* Of those that files in dir name, which are removed; NULL or no such directory: none. */
bool xids_forget_repaired(struct xids *xids, const char *dir);
/* As faults of their devices. */
void xids_apply(const struct xids *xids, const struct discover_config *config,
                struct node_devices *devices);

#endif
