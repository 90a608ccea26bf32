/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/salvage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "plugin/discover/node_device.h"
#include "plugin/prepare/cdi_spec.h"
#include "plugin/prepare/checkpoint.h"

/* A device's name is a DNS label. */
static void add(struct strlist *devices, const char *name, size_t length)
{
    char text[NODE_DEVICE_NAME_MAX];
    if (length == 0 || length >= sizeof text ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") < length)
        return;
    snprintf(text, sizeof text, "%.*s", (int)length, name);
    if (!strlist_has(devices, text))
        strlist_add(devices, text);
}

/* "device":"NAME", as checkpoint_save writes it. */
static void from_text(const char *text, struct strlist *devices)
{
    static const char key[] = "\"device\":\"";
    for (const char *at = text; (at = strstr(at, key));) {
        at += sizeof key - 1;
        size_t length = strcspn(at, "\"");
        if (at[length] == '"')
            add(devices, at, length);
    }
}

static int from_orders(const struct salvage_place *place, struct strlist *devices,
                       struct drarun_error *err)
{
    cleanup_dir DIR *dir = opendir(place->orders_dir);
    struct dirent *entry;
    size_t uid = strlen(place->uid);
    if (!dir)
        return errno == ENOENT
                   ? 0
                   : error_set(err, errno, "%s: %s", place->orders_dir, strerror(errno));
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;
        size_t length = strlen(name);
        if (strncmp(name, place->uid, uid) == 0 && name[uid] == '.' && length > uid + 6 &&
            strcmp(name + length - 5, ".json") == 0)
            add(devices, name + uid + 1, length - uid - 6);
    }
    return 0;
}

int salvage_devices(const struct salvage_place *place, struct strlist *devices,
                    struct drarun_error *err)
{
    CLEANUP(strlist_done) struct strlist named = STRLIST_INIT;
    cleanup_free char *text = checkpoint_text(place->dir, place->uid);
    if (text)
        from_text(text, devices);
    int rc = from_orders(place, devices, err);
    if (rc == 0)
        rc = cdi_spec_devices(place->cdi_dir, place->driver, place->uid, &named, err);
    for (size_t i = 0; i < named.count; i++)
        add(devices, named.items[i], strlen(named.items[i]));
    if (rc == 0 && (devices->failed || named.failed))
        rc = error_set(err, ENOMEM, "out of memory");
    return rc;
}
