/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/node_devices.h"

#include <stdlib.h>
#include <string.h>

struct node_device *node_devices_add(struct node_devices *devices)
{
    size_t count = devices->count;
    if ((count & (count - 1)) == 0) { /* full at 0 and each power of two */
        struct node_device *more =
            realloc(devices->list, (count ? count * 2 : 1) * sizeof *devices->list);
        if (!more)
            return NULL;
        devices->list = more;
    }
    struct node_device *device = &devices->list[devices->count++];
    *device = (struct node_device){0};
    return device;
}

void node_devices_done(struct node_devices *devices)
{
    for (size_t i = 0; i < devices->count; i++)
        free(devices->list[i].rdma.gids);
    free(devices->list);
    strlist_done(&devices->warnings);
    *devices = (struct node_devices)NODE_DEVICES_INIT;
}

const struct node_device *node_devices_find(const struct node_devices *devices, const char *driver,
                                            const char *name)
{
    for (size_t i = 0; i < devices->count; i++)
        if (strcmp(devices->list[i].name, name) == 0 &&
            strcmp(node_device_driver(&devices->list[i]), driver) == 0)
            return &devices->list[i];
    return NULL;
}
