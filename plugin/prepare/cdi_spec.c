/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/cdi_spec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/agent_offer.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "plugin/attach/order.h"
#include "plugin/attach/verbs_nodes.h"
#include "plugin/discover/config_edits.h"

#define CLASS "claim"
#define SPEC_MAX ((size_t)1 << 20)
#define HOOK_TIMEOUT_S 25 /* the hook's own deadline is shorter, and says more */

void cdi_id(const char *driver, const char *uid, const char *device, char *ret_id, size_t size)
{
    snprintf(ret_id, size, "%s/" CLASS "=%s-%s", driver, uid, device);
}

json_t *cdi_spec_new(const char *driver)
{
    char kind[128];
    snprintf(kind, sizeof kind, "%s/" CLASS, driver);
    return json_pack("{s:s, s:s, s:[]}", "cdiVersion", "0.6.0", "kind", kind, "devices");
}

static bool add_nodes(json_t *edits, const struct node_chardev *nodes, size_t count)
{
    json_t *list = json_object_get(edits, "deviceNodes");
    for (size_t i = 0; i < count; i++) {
        json_t *node = json_pack("{s:s, s:s}", "path", nodes[i].path, "type", "c");
        if (node && (nodes[i].major || nodes[i].minor)) {
            json_object_set_new(node, "major", json_integer(nodes[i].major));
            json_object_set_new(node, "minor", json_integer(nodes[i].minor));
        }
        if (json_array_append_new(list, node) < 0)
            return false;
    }
    return true;
}

static bool has_device(const json_t *spec, const char *wanted)
{
    const json_t *device;
    size_t i;
    json_array_foreach(json_object_get(spec, "devices"), i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        if (name && strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

bool cdi_spec_add_take(json_t *spec, const char *uid, const char *device, json_t *edits)
{
    char name[CDI_ID_MAX];
    snprintf(name, sizeof name, "%s-%s", uid, device);
    bool ok = edits;
    if (ok && has_device(spec, name)) { /* for two requests, one of them with adminAccess */
        json_decref(edits);
        return true;
    }
    if (ok && json_array_size(json_object_get(edits, "deviceNodes")) == 0)
        json_object_del(edits, "deviceNodes"); /* an empty list is no valid one */
    if (ok && json_object_size(edits) == 0)    /* nor are empty edits */
        ok = json_object_set_new(edits, "env", json_pack("[s]", "DRARUN_DEVICE=1")) == 0;
    return json_array_append_new(json_object_get(spec, "devices"),
                                 json_pack("{s:s, s:o}", "name", name, "containerEdits", edits)) ==
               0 &&
           ok;
}

bool cdi_spec_add(json_t *spec, const char *uid, const struct node_device *device,
                  const json_t *more)
{
    char mark[ATTACH_MARK_MAX];
    attach_order_mark(uid, device->name, mark, sizeof mark);
    json_t *edits = json_pack("{s:[], s:[s+]}", "deviceNodes", "env", mark, "=1");
    bool ok = edits && config_edits_add(more, edits) &&
              add_nodes(edits, device->chardevs, device->chardev_count) &&
              add_nodes(edits, device->rdma.chardevs, device->rdma.chardev_count);
    return cdi_spec_add_take(spec, uid, device->name, edits) && ok;
}

/* ---- for all devices of the claim ---- */

/* The specification's own edits: the runtime applies them once for a container, however many of the
 * devices it has. Borrowed; NULL: out of memory. */
static json_t *own_edits(json_t *spec)
{
    json_t *edits = json_object_get(spec, "containerEdits");
    if (!edits && (edits = json_object()) && json_object_set_new(spec, "containerEdits", edits) < 0)
        return NULL;
    return edits;
}

bool cdi_spec_add_order(json_t *spec, const char *hook, const char *order)
{
    json_t *edits = own_edits(spec), *hooks = json_object_get(edits, "hooks");
    if (edits && !hooks)
        hooks = json_pack("[{s:s, s:s, s:[s, s], s:i}]", "hookName", "createRuntime", "path", hook,
                          "args", "drarun-attach", "attach", "timeout", HOOK_TIMEOUT_S);
    else
        json_incref(hooks);
    bool ok = edits && json_array_append_new(json_object_get(json_array_get(hooks, 0), "args"),
                                             json_string(order)) == 0;
    return json_object_set_new(edits, "hooks", hooks) == 0 && ok;
}

bool cdi_spec_add_spares(json_t *spec, const char *uid)
{
    json_t *edits = own_edits(spec), *nodes = json_array();
    bool ok = edits && nodes;
    for (int i = 0; ok && i < VERBS_SPARES; i++) {
        char path[128];
        snprintf(path, sizeof path, VERBS_NODES_DIR "/" VERBS_SPARES_PREFIX "%s/uverbs%d", uid, i);
        ok = json_array_append_new(nodes,
                                   json_pack("{s:s, s:s, s:i, s:i}", "path", path, "type", "c",
                                             "major", VERBS_MAJOR, "minor", VERBS_MINOR + i)) == 0;
    }
    return json_object_set_new(edits, "deviceNodes", nodes) == 0 && ok;
}

void cdi_metadata_id(const char *driver, const char *uid, const char *request, char *ret_id,
                     size_t size)
{
    snprintf(ret_id, size, "%s/" CLASS "=%s_metadata_%.*s", driver, uid, (int)strcspn(request, "/"),
             request);
}

bool cdi_spec_add_metadata(json_t *spec, const char *uid, const char *request, const char *file,
                           const char *container)
{
    char name[CDI_ID_MAX];
    snprintf(name, sizeof name, "%s_metadata_%s", uid, request);
    return json_array_append_new(json_object_get(spec, "devices"),
                                 json_pack("{s:s, s:{s:[{s:s, s:s, s:[s, s, s, s]}]}}", "name",
                                           name, "containerEdits", "mounts", "hostPath", file,
                                           "containerPath", container, "options", "ro", "nosuid",
                                           "nodev", "bind")) == 0;
}

/* As the kubelet mounts a volume in memory, and not noexec, which a container's own /dev/shm is:
 * programs map what they have compiled there. */
static json_t *shm_mount(int64_t bytes)
{
    char size[48];
    if (bytes > 0)
        snprintf(size, sizeof size, "size=%" PRId64, bytes);
    else
        snprintf(size, sizeof size, "size=100%%");
    return json_pack("{s:s, s:s, s:s, s:[s, s, s, s]}", "hostPath", "tmpfs", "containerPath",
                     "/dev/shm", "type", "tmpfs", "options", "nosuid", "nodev", "mode=1777", size);
}

static void agent_name(const char *uid, char *ret_name, size_t size)
{
    snprintf(ret_name, size, "%s_agent", uid);
}

bool cdi_spec_add_agent(json_t *spec, const char *uid, const char *file, bool shm,
                        int64_t shm_bytes)
{
    char name[CDI_ID_MAX];
    agent_name(uid, name, sizeof name);
    return json_array_append_new(json_object_get(spec, "devices"),
                                 json_pack("{s:s, s:{s:[{s:s, s:s, s:[s, s, s, s]}, o*]}}", "name",
                                           name, "containerEdits", "mounts", "hostPath", file,
                                           "containerPath", AGENT_OFFER_PROGRAM, "options", "ro",
                                           "nosuid", "nodev", "bind",
                                           shm ? shm_mount(shm_bytes) : NULL)) == 0;
}

const char *cdi_agent_file(const json_t *spec, const char *uid)
{
    char wanted[CDI_ID_MAX];
    const json_t *device;
    size_t i;
    agent_name(uid, wanted, sizeof wanted);
    json_array_foreach(json_object_get(spec, "devices"), i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        const json_t *mounts = json_object_get(json_object_get(device, "containerEdits"), "mounts");
        if (name && strcmp(name, wanted) == 0)
            return json_string_value(json_object_get(json_array_get(mounts, 0), "hostPath"));
    }
    return NULL;
}

bool cdi_agent_id(const json_t *spec, const char *driver, const char *uid, char *ret_id,
                  size_t size)
{
    snprintf(ret_id, size, "%s/" CLASS "=%s_agent", driver, uid);
    return cdi_agent_file(spec, uid);
}

static void path_of(const char *dir, const char *driver, const char *uid, char *ret_path,
                    size_t size)
{
    snprintf(ret_path, size, "%s/%s-" CLASS "_%s.json", dir, driver, uid);
}

/* The directory is a tmpfs that a reboot empties. */
static int make_dir(const char *dir, struct drarun_error *err)
{
    return mkdir(dir, 0755) == 0 || errno == EEXIST
               ? 0
               : error_set(err, errno, "make %s: %s", dir, strerror(errno));
}

int cdi_spec_write(const json_t *spec, const char *dir, const char *driver, const char *uid,
                   struct drarun_error *err)
{
    char path[512];
    struct buf old = BUF_INIT;
    path_of(dir, driver, uid, path, sizeof path);
    cleanup_free char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return error_set(err, ENOMEM, "out of memory");
    bool same = file_read(AT_FDCWD, path, SPEC_MAX, &old, NULL) == 0 && old.data &&
                strcmp(old.data, text) == 0;
    buf_done(&old);
    int rc = same ? 0 : make_dir(dir, err);
    return same || rc < 0 ? rc
                          : file_replace(path, text, strlen(text), 0644, FILE_AFTER_ANYTHING, err);
}

int cdi_spec_remove(const char *dir, const char *driver, const char *uid, struct drarun_error *err)
{
    char path[512];
    path_of(dir, driver, uid, path, sizeof path);
    return file_remove_atomic(path, err);
}

int cdi_spec_devices(const char *dir, const char *driver, const char *uid, struct strlist *names,
                     struct drarun_error *err)
{
    char path[512];
    struct buf text = BUF_INIT;
    const json_t *device;
    size_t i, length = strlen(uid);
    path_of(dir, driver, uid, path, sizeof path);
    int rc = file_read(AT_FDCWD, path, SPEC_MAX, &text, NULL);
    CLEANUP(json_decrefp)
    json_t *spec = rc == 0 && text.data ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    buf_done(&text);
    if (rc == -ENOENT)
        return 0;
    if (!json_is_array(json_object_get(spec, "devices")))
        return error_set(err, EUCLEAN, "%s: it is no CDI specification of ours", path);
    json_array_foreach(json_object_get(spec, "devices"), i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        if (name && strncmp(name, uid, length) == 0 && name[length] == '-')
            strlist_add(names, name + length + 1);
    }
    return 0;
}
