/* SPDX-License-Identifier: Apache-2.0 */
/* What one reading cannot know: a NIC whose interface is in a pod shows its function alone, a veth
 * in a pod shows nothing at all, and a GPU that fell off the bus is not there to say so. A reading
 * is completed from the one before. Pure. */
#ifndef DRARUN_PLUGIN_DISCOVER_REMEMBER_H
#define DRARUN_PLUGIN_DISCOVER_REMEMBER_H

#include "plugin/discover/config.h"
#include "plugin/discover/node_devices.h"

/* Whether a pod was given the device of this name. */
typedef bool (*device_held_fn)(const char *driver, const char *name, void *arg);

/* Whether the machine has a function now, offered or not. */
enum function_state {
    FUNCTION_GONE,
    FUNCTION_UNBOUND, /* without a driver, as it also is on its way out of the machine */
    FUNCTION_BOUND,
};
typedef enum function_state (*function_state_fn)(struct pci_addr addr, void *arg);

struct remember_rules { /* borrowed */
    const struct discover_config *config;
    device_held_fn held; /* NULL: none is */
    void *arg;
    function_state_fn state; /* NULL: none is that was not read */
    void *state_arg;
};

/* before: the reading before, completed, with the names that were published. Of now:
 *  - a device that has lost its interface or its RDMA device keeps both, and its name: away while a
 * pod holds it and in the first reading after that, else lost;
 *  - a virtual function whose link to its PF is gone stays a virtual function: it is being removed;
 *  - one without hardware that has vanished is away while a pod holds it, else gone;
 *  - one with hardware that has vanished is lost, unless it is a virtual function that nobody
 * holds;
 *  - one whose function is there and was not read is not published any more (a PF has got VFs, the
 * host uses it): gone, or away while a pod holds it; with its driver gone, too, it is unbound,
 * since it may be about to vanish;
 *  - a GPU whose parts were put together is left out while a pod holds one of them. -ENOMEM. */
int devices_remember(const struct remember_rules *rules, const struct node_devices *before,
                     struct node_devices *now, struct drarun_error *err);

/* The same device in another list, by what it is and not by its name; NULL: not there. */
struct node_device *devices_same(const struct node_devices *devices,
                                 const struct node_device *device);

#endif
