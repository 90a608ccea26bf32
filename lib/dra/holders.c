/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the devices that a claim could use. */
#include "lib/dra/predict.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

struct holder {
    const char *namespace, *name; /* of the claim; all of it borrowed */
    const char *pod;              /* that it is reserved for; NULL: none */
    const char *node;             /* of its first device; NULL: not bound to one */
    size_t devices, pods;
};

struct usable {
    const struct slices *slices;
    bool *marks; /* by device of the slices */
};

static void mark(const struct slice_device *device, void *arg)
{
    const struct usable *usable = arg;
    const struct slice_device *found =
        slices_find(usable->slices, device->driver, device->pool, device->name);
    if (found)
        usable->marks[found - usable->slices->devices] = true;
}

static void count_devices(const json_t *status, const struct usable *usable, struct holder *holder)
{
    const json_t *allocation = json_object_get(status, "allocation");
    const json_t *results = json_object_get(json_object_get(allocation, "devices"), "results");
    const json_t *result;
    size_t i;
    json_array_foreach(results, i, result)
    {
        const struct slice_device *device =
            slices_find(usable->slices, value_text_or(result, "driver", ""),
                        value_text_or(result, "pool", ""), value_text_or(result, "device", ""));
        bool admin = json_is_true(json_object_get(result, "adminAccess"));
        if (!device || admin || !usable->marks[device - usable->slices->devices])
            continue;
        if (holder->devices++ == 0)
            holder->node = device->node;
    }
}

static void find_pod(const json_t *status, struct holder *holder)
{
    const json_t *consumer;
    size_t i;
    json_array_foreach(json_object_get(status, "reservedFor"), i, consumer)
    {
        if (strcmp(value_text_or(consumer, "resource", ""), "pods") != 0)
            continue;
        if (holder->pods++ == 0)
            holder->pod = value_text_or(consumer, "name", "");
    }
}

static int by_devices(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    if (x->devices != y->devices)
        return x->devices > y->devices ? -1 : 1;
    int order = strcmp(x->namespace, y->namespace);
    return order ? order : strcmp(x->name, y->name);
}

/* "team-b/train-w-0 (8 devices on node-1, pod train-w-0)" */
static void add_holder(const struct holder *holder, struct buf *out)
{
    buf_printf(out, "%s/%s (%zu device%s", holder->namespace, holder->name, holder->devices,
               holder->devices == 1 ? "" : "s");
    if (holder->node)
        buf_printf(out, " on %s", holder->node);
    if (holder->pod)
        buf_printf(out, ", pod %s", holder->pod);
    if (holder->pods > 1)
        buf_printf(out, " and %zu more", holder->pods - 1);
    buf_add_str(out, ")");
}

static char *describe(struct holder *holders, size_t count, size_t most)
{
    struct buf out = BUF_INIT;
    qsort(holders, count, sizeof *holders, by_devices);
    for (size_t i = 0; i < count && i < most; i++) {
        buf_add_str(&out, i > 0 ? ", " : "");
        add_holder(&holders[i], &out);
    }
    if (count > most)
        buf_printf(&out, " and %zu other claim%s", count - most, count - most == 1 ? "" : "s");
    char *text = out.failed || count == 0 ? NULL : buf_take(&out);
    buf_done(&out);
    return text;
}

char *predict_holders(const json_t *claim, const struct predict_cluster *cluster, size_t most)
{
    size_t claims = json_array_size(cluster->claims), count = 0, i;
    cleanup_free struct holder *holders = calloc(claims + 1, sizeof *holders);
    cleanup_free bool *marks = calloc(cluster->slices->device_count + 1, sizeof *marks);
    struct usable usable = {cluster->slices, marks};
    const json_t *other;
    if (!holders || !marks || predict_devices(claim, cluster, "", mark, &usable, NULL) < 0)
        return NULL;
    json_array_foreach(cluster->claims, i, other)
    {
        const json_t *metadata = json_object_get(other, "metadata");
        const json_t *status = json_object_get(other, "status");
        struct holder holder = {.namespace = value_text_or(metadata, "namespace", ""),
                                .name = value_text_or(metadata, "name", "")};
        count_devices(status, &usable, &holder);
        find_pod(status, &holder);
        if (holder.devices > 0)
            holders[count++] = holder;
    }
    return describe(holders, count, most);
}
