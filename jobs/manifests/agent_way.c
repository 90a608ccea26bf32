/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/manifests/agent_way.h"

#include <stdio.h>
#include <string.h>

#include "jobs/manifests/node_fit.h"
#include "jobs/manifests/pod_amounts.h"
#include "jobs/manifests/pod_merge.h"
#include "lib/base/cleanup.h"
#include "lib/doc/value.h"

/* Of a list of the pod's specification; NULL: there is none of that name. */
static const json_t *find(const json_t *pod, const char *list, const char *name)
{
    return value_find(json_object_get(json_object_get(pod, "spec"), list), "name", name);
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

/* ---- whether nodes can mount it ---- */

/* version: "1.34.2-gke.100" */
static bool is_before(const char *version, unsigned major, unsigned minor)
{
    unsigned has[2];
    return sscanf(version, "%u.%u", &has[0], &has[1]) == 2 &&
           (has[0] < major || (has[0] == major && has[1] < minor));
}

static bool mounts_images(const json_t *node)
{
    static const char containerd[] = "containerd://";
    const json_t *info = json_object_get(json_object_get(node, "status"), "nodeInfo");
    const char *kubelet = value_text_or(info, "kubeletVersion", "");
    const char *runtime = value_text_or(info, "containerRuntimeVersion", "");
    if (*kubelet == 'v' && is_before(kubelet + 1, 1, IMAGE_VOLUME_MINOR))
        return false;
    return strncmp(runtime, containerd, strlen(containerd)) != 0 ||
           !is_before(runtime + strlen(containerd), 2, 1);
}

/* The devices of a device plugin that the workers ask for. */
static bool has_devices(const json_t *node, const struct spec_role *role)
{
    const char *const names[] = {role->gpus.resource, role->nics.resource};
    const json_t *there = json_object_get(json_object_get(node, "status"), "allocatable");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        double amount = 1;
        if (names[i] && (pod_amount(there, names[i], &amount, NULL) < 0 || amount <= 0))
            return false;
    }
    return true;
}

bool agent_way_is_copy(const json_t *nodes, const struct spec_role *role)
{
    size_t i;
    json_t *node;
    json_array_foreach(nodes, i, node)
    {
        if (!mounts_images(node) && node_fit_is_chosen(spec_role_pod(role), node) &&
            has_devices(node, role))
            return true;
    }
    return false;
}
