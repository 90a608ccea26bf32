/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/node_devices.h"

#include <stdlib.h>
#include <string.h>

struct node_device *node_devices_add(struct node_devices *devices)
{
    if (devices->count == devices->cap) {
        size_t cap = devices->cap ? devices->cap * 2 : 16;
        struct node_device *more = realloc(devices->list, cap * sizeof *more);
        if (!more)
            return NULL;
        devices->list = more;
        devices->cap = cap;
    }
    struct node_device *device = &devices->list[devices->count++];
    *device = (struct node_device){0};
    return device;
}

void node_devices_cut(struct node_devices *devices, size_t index)
{
    while (devices->count > index)
        free(devices->list[--devices->count].rdma.gids);
}

void node_devices_remove(struct node_devices *devices, size_t index)
{
    struct node_device *at = &devices->list[index];
    free(at->rdma.gids);
    memmove(at, at + 1, (devices->count - index - 1) * sizeof *at);
    devices->count--;
}

void node_devices_done(struct node_devices *devices)
{
    node_devices_cut(devices, 0);
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
