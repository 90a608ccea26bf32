/* SPDX-License-Identifier: Apache-2.0 */
/* What API server, scheduler and controllers have written into an object that kubectl get prints:
 * it is about the pods that they made of it, and no part of what its author wants. */
#include <string.h>

#include "jobs/import/parts.h"
#include "lib/base/buf.h"

#define TOKEN_VOLUME "kube-api-access-" /* of the API server's admission */

void import_written(const struct reader_node *metadata, const char *part, const json_t *pod,
                    json_t *kept)
{
    const char *key = NULL;
    json_t *value = NULL;
    void *next = NULL;
    struct buf gone = BUF_INIT;
    json_object_foreach_safe(kept, next, key, value)
    {
        if (!import_is_written(key, pod))
            continue;
        buf_printf(&gone, "%s%s", gone.len ? ", " : "", key);
        json_object_del(kept, key);
    }
    metadata->reader->texts.failed |= gone.failed;
    if (gone.len)
        reader_fail_key(metadata, part, "left out, as another controller sets them: %.300s",
                        gone.data);
    buf_done(&gone);
}

static void remove_mounts(json_t *containers, const char *volume)
{
    size_t i, k;
    json_t *container, *mount;
    json_array_foreach(containers, i, container)
    {
        json_t *mounts = json_object_get(container, "volumeMounts");
        json_array_foreach(mounts, k, mount)
        {
            const char *name = json_string_value(json_object_get(mount, "name"));
            if (name && strcmp(name, volume) == 0)
                json_array_remove(mounts, k--);
        }
        if (mounts && json_array_size(mounts) == 0)
            json_object_del(container, "volumeMounts");
    }
}

static void remove_token(const struct reader_node *pod, json_t *spec)
{
    struct reader_node list;
    json_t *volumes = json_object_get(spec, "volumes");
    if (!reader_get(pod, "volumes", &list))
        return;
    for (size_t i = json_array_size(list.value); i-- > 0;) {
        struct reader_node item = reader_item(&list, i);
        const char *name = json_is_object(item.value) ? import_text(&item, "name") : "";
        if (strncmp(name, TOKEN_VOLUME, strlen(TOKEN_VOLUME)) != 0)
            continue;
        reader_fail(&item, "left out: the API server gives each pod its own");
        remove_mounts(json_object_get(spec, "containers"), name);
        remove_mounts(json_object_get(spec, "initContainers"), name);
        json_array_remove(volumes, i);
    }
    if (volumes && json_array_size(volumes) == 0)
        json_object_del(spec, "volumes");
}

void import_placed(const struct reader_node *object, const struct reader_node *pod,
                   json_t *template)
{
    static const char *const keys[][2] = {
        {"nodeName", "the scheduler chose it for this pod"},
        {"priority", "the API server takes it from priorityClassName"},
        {"preemptionPolicy", "the API server takes it from priorityClassName"},
    };
    json_t *spec = json_object_get(template, "spec");
    if (!import_is_pod(object) ||
        !json_object_get(json_object_get(object->value, "metadata"), "uid"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_del(spec, keys[i][0]) == 0)
            reader_fail_key(pod, keys[i][0], "left out: %s", keys[i][1]);
    remove_token(pod, spec);
}
