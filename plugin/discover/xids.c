/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/discover/xids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "plugin/discover/faults.h"

#define SUFFIX ".json"
#define SIZE_MAX_BYTES ((size_t)4 << 10)
#define VERSION 1

/* ---- the files ---- */

static void path_of(const struct xids *xids, const struct known_xid *known, char *path, size_t size)
{
    snprintf(path, size, "%s/%s-%llu" SUFFIX, xids->dir, known->xid.bus_id,
             (unsigned long long)known->xid.xid);
}

static int write_file(const struct xids *xids, const struct known_xid *known,
                      struct drarun_error *err)
{
    char path[512];
    CLEANUP(json_decrefp)
    json_t *json = json_pack("{s:i, s:s, s:s, s:I, s:b, s:s, s:I}", "version", VERSION, "boot",
                             xids->boot, "busID", known->xid.bus_id, "xid",
                             (json_int_t)known->xid.xid, "lost", (int)known->xid.lost, "uuid",
                             known->uuid, "function", (json_int_t)known->function);
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    path_of(xids, known, path, sizeof path);
    int rc = dirs_make(xids->dir, 0700, err);
    return rc < 0 ? rc : file_replace(path, text, strlen(text), 0600, FILE_AFTER_WHOLE, err);
}

static void keep(const struct xids *xids, const struct known_xid *known)
{
    struct drarun_error err = {0};
    if (xids->dir && write_file(xids, known, &err) < 0)
        log_error("GPU %s: Xid %llu will be forgotten when the plugin restarts: %s",
                  known->xid.bus_id, (unsigned long long)known->xid.xid, err.text);
}

static void remove_file(const struct xids *xids, const struct known_xid *known)
{
    struct drarun_error err = {0};
    char path[512];
    if (!xids->dir)
        return;
    path_of(xids, known, path, sizeof path);
    if (file_remove_atomic(path, &err) < 0)
        log_error("GPU %s: Xid %llu will be back when the plugin restarts: %s", known->xid.bus_id,
                  (unsigned long long)known->xid.xid, err.text);
}

/* 0 with what the file says and of which boot; -EINVAL: it says nothing. */
static int read_file(int dir, const char *name, struct known_xid *ret, char *ret_boot, size_t size,
                     struct drarun_error *err)
{
    const char *boot = NULL, *bus_id = NULL, *uuid = NULL;
    json_int_t version = 0, xid = 0, function = 0;
    int lost = 0;
    struct buf text = BUF_INIT;
    struct pci_addr addr;
    int rc = file_read(dir, name, SIZE_MAX_BYTES, &text, err);
    CLEANUP(json_decrefp)
    json_t *json = rc == 0 && text.data ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    buf_done(&text);
    if (rc < 0)
        return rc;
    if (!json ||
        json_unpack(json, "{s:I, s:s, s:s, s:I, s:b, s:s, s:I}", "version", &version, "boot", &boot,
                    "busID", &bus_id, "xid", &xid, "lost", &lost, "uuid", &uuid, "function",
                    &function) < 0 ||
        version != VERSION || pci_addr_parse(bus_id, &addr, NULL) < 0)
        return error_set(err, EINVAL, "expected an Xid as version %d of the file has it", VERSION);
    *ret = (struct known_xid){.xid = {.xid = (uint64_t)xid, .lost = lost},
                              .function = (ino_t)function};
    pci_addr_format(addr, ret->xid.bus_id);
    snprintf(ret->uuid, sizeof ret->uuid, "%s", uuid);
    snprintf(ret_boot, size, "%s", boot);
    return 0;
}

static void load_one(struct xids *xids, int dir, const char *name)
{
    struct drarun_error err = {0};
    struct known_xid known;
    char boot[64];
    if (read_file(dir, name, &known, boot, sizeof boot, &err) < 0) {
        log_error("%s/%s: the Xid in it does not taint its GPU any more: %s", xids->dir, name,
                  err.text);
    } else if (strcmp(boot, xids->boot) != 0) {
        remove_file(xids, &known);
    } else if (xids->count < XIDS_MAX) {
        xids->list[xids->count++] = known;
        log_note("GPU %s: Xid %llu, from before the plugin started", known.xid.bus_id,
                 (unsigned long long)known.xid.xid);
    }
}

void xids_load(struct xids *xids, const char *dir, const char *boot)
{
    cleanup_dir DIR *open_dir = dir ? opendir(dir) : NULL;
    const struct dirent *entry;
    *xids = (struct xids){.dir = dir, .boot = boot};
    if (dir && !open_dir && errno != ENOENT)
        log_error("%s: Xids from before the start do not taint their GPUs any more: %s", dir,
                  strerror(errno));
    while (open_dir && (entry = readdir(open_dir))) {
        size_t length = strlen(entry->d_name), suffix = sizeof SUFFIX - 1;
        if (length > suffix && strcmp(entry->d_name + length - suffix, SUFFIX) == 0)
            load_one(xids, dirfd(open_dir), entry->d_name);
    }
}

/* ---- the list ---- */

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

struct taking {
    struct xids *xids;
    int root;
    const struct node_devices *devices;
};

static void take(const struct nvml_xid *xid, void *arg)
{
    const struct taking *taking = arg;
    struct xids *xids = taking->xids;
    if (xid_is_of_program(xid->xid) || is_known(xids, xid))
        return;
    log_error("GPU %s: Xid %llu%s", xid->bus_id, (unsigned long long)xid->xid,
              xids->count < XIDS_MAX ? "" : ", which does not taint it: too many others do");
    if (xids->count == XIDS_MAX)
        return;
    struct known_xid *known = &xids->list[xids->count++];
    *known = (struct known_xid){.xid = *xid, .function = function_of(taking->root, xid->bus_id)};
    snprintf(known->uuid, sizeof known->uuid, "%s", uuid_of(taking->devices, xid->bus_id));
    keep(xids, known);
}

bool xids_take(struct xids *xids, struct nvml *nvml, int root, const struct node_devices *devices)
{
    struct taking taking = {xids, root, devices};
    size_t before = xids->count;
    if (nvml)
        nvml_each_xid(nvml, take, &taking);
    return xids->count > before;
}

static void forget(struct xids *xids, size_t i, const char *why)
{
    log_note("GPU %s: Xid %llu is over: %s", xids->list[i].xid.bus_id,
             (unsigned long long)xids->list[i].xid.xid, why);
    remove_file(xids, &xids->list[i]);
    memmove(&xids->list[i], &xids->list[i + 1], (--xids->count - i) * sizeof *xids->list);
}

bool xids_forget_replaced(struct xids *xids, int root, const struct node_devices *now)
{
    size_t before = xids->count;
    for (size_t i = 0; i < xids->count;) {
        struct known_xid *known = &xids->list[i];
        const char *uuid = uuid_of(now, known->xid.bus_id);
        ino_t function = function_of(root, known->xid.bus_id);
        if (!known->uuid[0] && *uuid) { /* it came before the first reading */
            snprintf(known->uuid, sizeof known->uuid, "%s", uuid);
            keep(xids, known);
        }
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
