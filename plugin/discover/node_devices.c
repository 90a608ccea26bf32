/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/node_devices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/error.h"

struct node_device *node_devices_add(struct node_devices *devices)
{
    struct node_device *more =
        array_room(devices->list, devices->count, &devices->cap, sizeof *more);
    if (!more)
        return NULL;
    devices->list = more;
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

static bool copy_gids(struct node_rdma *rdma)
{
    const struct topo_gid *gids = rdma->gids;
    size_t size = rdma->gid_count * sizeof *gids;
    rdma->gids = size ? malloc(size) : NULL;
    if (rdma->gids)
        memcpy(rdma->gids, gids, size);
    return size == 0 || rdma->gids;
}

int node_devices_copy(const struct node_devices *devices, struct node_devices *ret_copy,
                      struct drarun_error *err)
{
    struct node_devices copy = NODE_DEVICES_INIT;
    for (size_t i = 0; i < devices->count; i++) {
        struct node_device *device = node_devices_add(&copy);
        if (device)
            *device = devices->list[i];
        if (!device || !copy_gids(&device->rdma)) {
            node_devices_done(&copy);
            return error_set(err, ENOMEM, "devices: out of memory");
        }
    }
    *ret_copy = copy;
    return 0;
}

void node_devices_done(struct node_devices *devices)
{
    node_devices_cut(devices, 0);
    free(devices->list);
    strlist_done(&devices->warnings);
    strlist_done(&devices->spared);
    strlist_done(&devices->spared_reasons);
    *devices = (struct node_devices)NODE_DEVICES_INIT;
}

void node_devices_spared_text(const struct node_devices *devices, size_t i,
                              char ret_text[SPARED_TEXT])
{
    snprintf(ret_text, SPARED_TEXT,
             "%s is not published: the host uses it: %s; end that, or name it in nics.include of "
             "the PluginConfig",
             devices->spared.items[i], devices->spared_reasons.items[i]);
}

const char *node_devices_spared(const struct node_devices *devices, const char *name)
{
    for (size_t i = 0; i < devices->spared.count && i < devices->spared_reasons.count; i++)
        if (strcmp(devices->spared.items[i], name) == 0)
            return devices->spared_reasons.items[i];
    return NULL;
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
