/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/xids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/log.h"
#include "plugin/discover/faults.h"

static ino_t function_of(int root, const char *address)
{
    char path[96];
    struct stat st;
    snprintf(path, sizeof path, "%ssys/bus/pci/devices/%s", root < 0 ? "/" : "", address);
    return fstatat(root < 0 ? AT_FDCWD : root, path, &st, 0) == 0 ? st.st_ino : 0;
}

static const char *uuid_of(const struct node_devices *devices, const char *address)
{
    for (size_t i = 0; i < devices->count; i++) {
        const struct node_device *device = &devices->list[i];
        if (device->kind != NODE_DEVICE_NIC && strcmp(device->pci.bus_id, address) == 0)
            return device->kind == NODE_DEVICE_MIG ? device->gpu.parent_uuid : device->gpu.uuid;
    }
    return "";
}

static bool is_known(const struct xids *xids, const struct nvml_xid *xid)
{
    for (size_t i = 0; i < xids->count; i++)
        if (strcmp(xids->list[i].xid.bus_id, xid->bus_id) == 0 && xids->list[i].xid.xid == xid->xid)
            return true;
    return false;
}

bool xids_take(struct xids *xids, struct nvml *nvml, int root, const struct node_devices *devices)
{
    struct nvml_xid found[16];
    size_t count = nvml_xids(nvml, found, ARRAY_LEN(found)), before = xids->count;
    for (size_t i = 0; i < count; i++) {
        if (xid_is_of_program(found[i].xid) || is_known(xids, &found[i]) || xids->count == XIDS_MAX)
            continue;
        log_error("GPU %s: Xid %llu", found[i].bus_id, (unsigned long long)found[i].xid);
        struct known_xid *known = &xids->list[xids->count++];
        *known =
            (struct known_xid){.xid = found[i], .function = function_of(root, found[i].bus_id)};
        snprintf(known->uuid, sizeof known->uuid, "%s", uuid_of(devices, found[i].bus_id));
    }
    return xids->count > before;
}

static void forget(struct xids *xids, size_t i, const char *why)
{
    log_note("GPU %s: Xid %llu is over: %s", xids->list[i].xid.bus_id,
             (unsigned long long)xids->list[i].xid.xid, why);
    memmove(&xids->list[i], &xids->list[i + 1], (--xids->count - i) * sizeof *xids->list);
}

bool xids_forget_replaced(struct xids *xids, int root, const struct node_devices *now)
{
    size_t before = xids->count;
    for (size_t i = 0; i < xids->count;) {
        struct known_xid *known = &xids->list[i];
        const char *uuid = uuid_of(now, known->xid.bus_id);
        ino_t function = function_of(root, known->xid.bus_id);
        if (!known->uuid[0]) /* it came before the first reading */
            snprintf(known->uuid, sizeof known->uuid, "%s", uuid);
        if (*uuid && strcmp(uuid, known->uuid) != 0)
            forget(xids, i, "the GPU is another one");
        else if (function && known->function && function != known->function)
            forget(xids, i, "the GPU has come back to the bus");
        else
            i++;
    }
    return xids->count < before;
}

bool xids_forget_repaired(struct xids *xids, const char *dir)
{
    size_t before = xids->count;
    cleanup_dir DIR *open_dir = dir ? opendir(dir) : NULL;
    const struct dirent *entry;
    while (open_dir && (entry = readdir(open_dir))) {
        if (entry->d_name[0] == '.')
            continue;
        for (size_t i = 0; i < xids->count;)
            if (strcmp(xids->list[i].xid.bus_id, entry->d_name) == 0)
                forget(xids, i, "an administrator says that the GPU is repaired");
            else
                i++;
        if (unlinkat(dirfd(open_dir), entry->d_name, 0) < 0)
            log_error("%s/%s: %s", dir, entry->d_name, strerror(errno));
    }
    return xids->count < before;
}

void xids_apply(const struct xids *xids, const struct discover_config *config,
                struct node_devices *devices)
{
    char value[24], text[96];
    for (size_t i = 0; i < devices->count; i++)
        for (size_t x = 0; x < xids->count; x++) {
            struct node_device *device = &devices->list[i];
            const struct nvml_xid *xid = &xids->list[x].xid;
            if (device->kind == NODE_DEVICE_NIC || strcmp(device->pci.bus_id, xid->bus_id) != 0)
                continue;
            snprintf(value, sizeof value, "%llu", (unsigned long long)xid->xid);
            snprintf(text, sizeof text, "Xid %s", value);
            fault_add(device, config->xid, FAULT_XID, value, text);
            if (xid->lost)
                fault_add(device, config->lost, FAULT_LOST, "", "it has fallen off the bus");
        }
}
