/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/agent_way.h"

#include <string.h>

#include "jobs/manifests/pod_merge.h"

/* Of a list of the pod's specification; NULL: there is none of that name. */
static const json_t *find(const json_t *pod, const char *list, const char *name)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(pod, "spec"), list), i, item)
    {
        const char *text = json_string_value(json_object_get(item, "name"));
        if (text && strcmp(text, name) == 0)
            return item;
    }
    return NULL;
}

void agent_way_text(const json_t *pod, struct buf *out)
{
    const json_t *container = find(pod, "initContainers", POD_MERGE_AGENT_CONTAINER);
    const json_t *volume = find(pod, "volumes", POD_MERGE_AGENT_VOLUME);
    const char *copied = json_string_value(json_object_get(container, "image"));
    const char *mounted =
        json_string_value(json_object_get(json_object_get(volume, "image"), "reference"));
    if (container)
        buf_printf(out, "copied by an init container of %s", copied ? copied : "?");
    else if (volume)
        buf_printf(out, "by an image volume of %s", mounted ? mounted : "?");
    else
        buf_add_str(out, "by its claim");
}
