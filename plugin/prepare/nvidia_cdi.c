/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/nvidia_cdi.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/topo/root.h"

#define FILES_MAX 4096u
#define SPEC_MAX ((size_t)4 << 20)
#define CAPS "/dev/nvidia-caps/"

static const char *const folders[] = {"/etc/cdi", "/run/cdi", "/var/run/cdi"};

/* "/dev/nvidia3": of one GPU, unlike nvidiactl */
static bool is_gpu_node(const char *path)
{
    static const char start[] = "/dev/nvidia";
    return strncmp(path, start, sizeof start - 1) == 0 &&
           isdigit((unsigned char)path[sizeof start - 1]);
}

static bool is_cap_of(const struct node_device *device, const char *path)
{
    for (size_t i = 0; i < device->chardev_count; i++)
        if (strcmp(device->chardevs[i].path, path) == 0)
            return true;
    return false;
}

/* Whether a device of a specification gives this GPU and nothing of another. */
static bool is_entry_of(const json_t *entry, const struct node_device *device)
{
    const json_t *edits = json_object_get(entry, "containerEdits"), *node;
    char own[64];
    size_t i, gpus = 0, caps = 0;
    snprintf(own, sizeof own, "/dev/nvidia%d", device->gpu.minor);
    json_array_foreach(json_object_get(edits, "deviceNodes"), i, node)
    {
        const char *path = json_string_value(json_object_get(node, "path"));
        if (!path)
            continue;
        if (is_gpu_node(path)) {
            if (strcmp(path, own) != 0)
                return false;
            gpus++;
        } else if (strncmp(path, CAPS, sizeof CAPS - 1) == 0) {
            if (!is_cap_of(device, path))
                return false;
            caps++;
        }
    }
    return device->gpu.minor >= 0 && gpus == 1 &&
           caps == (device->kind == NODE_DEVICE_MIG ? 2u : 0u);
}

struct hunt {
    const struct node_device *device;
    char *id;
    size_t size;
    bool found, by_uuid, wrong;
    struct buf *why;
};

static void look_at(struct hunt *h, const char *file, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (!name || strlen(NVIDIA_CDI_KIND "=") + strlen(name) >= h->size)
        return;
    bool by_uuid = h->device->gpu.uuid[0] && strcmp(name, h->device->gpu.uuid) == 0;
    if (is_entry_of(entry, h->device)) {
        bool other = !by_uuid && h->device->gpu.uuid[0] &&
                     (strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0);
        if (!other && (!h->found || (by_uuid && !h->by_uuid))) {
            snprintf(h->id, h->size, NVIDIA_CDI_KIND "=%s", name);
            h->found = true;
            h->by_uuid = by_uuid;
        }
    } else if (by_uuid) {
        h->wrong = true;
        buf_reset(h->why);
        buf_printf(h->why, "%s gives %s other device nodes than /dev/nvidia%d: make it again", file,
                   name, h->device->gpu.minor);
    }
}

struct nvidia_cdi {
    struct nvidia_cdi *next;
    struct doc *doc; /* NULL: no file, as in the head of a list */
};

static bool is_nvidias(const struct doc *doc)
{
    const char *kind =
        doc_count(doc) > 0 ? json_string_value(json_object_get(doc_root(doc, 0), "kind")) : NULL;
    return kind && strcmp(kind, NVIDIA_CDI_KIND) == 0;
}

struct nvidia_cdi *nvidia_cdi_take(struct doc *doc)
{
    struct nvidia_cdi *cdi = is_nvidias(doc) ? calloc(1, sizeof *cdi) : NULL;
    if (cdi)
        cdi->doc = doc;
    else
        doc_free(doc);
    return cdi;
}

static void read_file(struct nvidia_cdi *cdi, int folder, const char *path, const char *name)
{
    char file[512];
    struct buf text = BUF_INIT;
    struct nvidia_cdi *entry = NULL;
    struct doc *doc = NULL;
    snprintf(file, sizeof file, "%s/%s", path, name);
    if (file_read(folder, name, SPEC_MAX, &text, NULL) == 0 && text.data &&
        strstr(text.data, NVIDIA_CDI_KIND) &&
        doc_parse(file, text.data, text.len, DOC_FORMAT_GUESS, NULL, &doc, NULL) == 0)
        entry = nvidia_cdi_take(doc);
    if (entry) {
        entry->next = cdi->next;
        cdi->next = entry;
    }
    buf_done(&text);
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);
    return length > wanted && strcmp(text + length - wanted, end) == 0;
}

struct nvidia_cdi *nvidia_cdi_read(int root)
{
    struct nvidia_cdi *cdi = calloc(1, sizeof *cdi);
    for (size_t f = 0; cdi && f < ARRAY_LEN(folders); f++) {
        CLEANUP(strlist_done) struct strlist names = STRLIST_INIT;
        cleanup_close int folder = root_open(root, folders[f], O_RDONLY | O_DIRECTORY, NULL);
        if (folder < 0 || root_list(root, folders[f], FILES_MAX, &names, NULL) < 0)
            continue;
        for (size_t i = 0; i < names.count; i++)
            if (ends_in(names.items[i], ".json") || ends_in(names.items[i], ".yaml"))
                read_file(cdi, folder, folders[f], names.items[i]);
    }
    return cdi;
}

void nvidia_cdi_free(struct nvidia_cdi *cdi)
{
    while (cdi) {
        struct nvidia_cdi *next = cdi->next;
        doc_free(cdi->doc);
        free(cdi);
        cdi = next;
    }
}

bool nvidia_cdi_find(const struct nvidia_cdi *cdi, const struct node_device *device, char *ret_id,
                     size_t size, struct buf *why)
{
    struct hunt h = {.device = device, .id = ret_id, .size = size, .why = why};
    for (; cdi; cdi = cdi->next) {
        if (!cdi->doc)
            continue;
        const json_t *list = json_object_get(doc_root(cdi->doc, 0), "devices"), *entry;
        size_t i;
        if (why->len == 0)
            buf_printf(why, "%s does not name it", doc_name(cdi->doc));
        json_array_foreach(list, i, entry) look_at(&h, doc_name(cdi->doc), entry);
    }
    return h.found && (h.by_uuid || !h.wrong);
}
