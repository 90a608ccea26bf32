/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/node_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/kube/watch.h"

struct node_pods {
    struct kube_watch *watch;
};

/* Removes the members that are not in keys. */
static void keep(json_t *object, const char *const *keys, size_t count)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        bool kept = false;
        for (size_t i = 0; i < count; i++)
            kept |= strcmp(key, keys[i]) == 0;
        if (!kept)
            json_object_del(object, key);
    }
}
#define KEEP(object, ...)                                                                          \
    keep(object, (const char *const[]){__VA_ARGS__},                                               \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void trim_containers(json_t *list)
{
    json_t *container;
    size_t i;
    json_array_foreach(list, i, container) KEEP(container, "resources", "restartPolicy");
}

void node_pods_trim(json_t *pod)
{
    json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");
    KEEP(pod, "metadata", "spec", "status");
    KEEP(json_object_get(pod, "metadata"), "name", "namespace", "uid", "resourceVersion");
    KEEP(status, "resourceClaimStatuses", "extendedResourceClaimStatus");
    if (!json_object_get(spec, "resourceClaims") && json_object_size(status) == 0)
        json_object_clear(spec);
    KEEP(spec, "nodeName", "hostNetwork", "hostUsers", "resourceClaims", "containers",
         "initContainers", "resources");
    trim_containers(json_object_get(spec, "containers"));
    trim_containers(json_object_get(spec, "initContainers"));
}

static void on_trim(json_t *pod, void *arg)
{
    (void)arg;
    node_pods_trim(pod);
}

static void on_trouble(const struct drarun_error *err, void *arg)
{
    (void)arg;
    if (err)
        log_note("pods of the node cannot be watched and are asked for one by one: %s", err->text);
}

int node_pods_new(struct kube_client *client, const char *node, struct node_pods **ret_pods,
                  struct drarun_error *err)
{
    static const struct kube_watch_events events = {.trim = on_trim, .trouble = on_trouble};
    CLEANUP(node_pods_freep) struct node_pods *pods = calloc(1, sizeof *pods);
    struct buf fields = BUF_INIT;
    buf_printf(&fields, "spec.nodeName=%s", node);
    const struct kube_watch_options options = {.target = {.resource = &kube_pods},
                                               .select = {.fields = fields.data}};
    int rc = !pods || fields.failed
                 ? error_set(err, ENOMEM, "out of memory")
                 : kube_watch_new(client, &options, &events, pods, &pods->watch, err);
    buf_done(&fields);
    if (rc == 0)
        *ret_pods = TAKE_PTR(pods);
    return rc;
}

void node_pods_free(struct node_pods *pods)
{
    if (pods)
        kube_watch_free(pods->watch);
    free(pods);
}

const json_t *node_pods_find(const struct node_pods *pods, const char *namespace_, const char *name,
                             const char *uid)
{
    const json_t *pod = pods ? kube_watch_find(pods->watch, namespace_, name) : NULL;
    return pod && strcmp(kube_uid(pod), uid) == 0 ? pod : NULL;
}
