/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/prepare/node_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/doc/value.h"
#include "lib/kube/watch.h"

struct node_pods {
    struct kube_watch *watch;
};

#define VALUES_MAX 4000 /* of what is left of a pod: 64 containers with 16 claims have 3,600 */
#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Limits may be of any number of extended resources. */
static void trim_resources(json_t *holder)
{
    value_keep_at(holder, "resources", KEYS("claims", "limits"));
    value_keep_at(json_object_get(holder, "resources"), "limits", KEYS("memory"));
}

static void trim_containers(json_t *list)
{
    json_t *container;
    size_t i;
    json_array_foreach(list, i, container)
    {
        value_keep(container, KEYS("resources", "restartPolicy"));
        trim_resources(container);
    }
}

/* Claims of its own, or of the extended resources that it asks for. */
static bool has_claims(const json_t *spec, const json_t *status)
{
    return json_array_size(json_object_get(spec, "resourceClaims")) > 0 ||
           json_object_get(status, "extendedResourceClaimStatus");
}

static void drop(json_t *pod)
{
    json_object_del(pod, "spec");
    json_object_del(pod, "status");
}

void node_pods_trim(json_t *pod)
{
    json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");
    value_keep(pod, KEYS("metadata", "spec", "status"));
    value_keep_at(pod, "metadata", KEYS("name", "namespace", "uid", "resourceVersion"));
    if (!has_claims(spec, status)) {
        drop(pod);
        return;
    }
    value_keep(status, KEYS("resourceClaimStatuses", "extendedResourceClaimStatus"));
    value_keep(spec, KEYS("nodeName", "hostNetwork", "hostUsers", "resourceClaims", "containers",
                          "initContainers", "resources"));
    trim_resources(spec);
    trim_containers(json_object_get(spec, "containers"));
    trim_containers(json_object_get(spec, "initContainers"));
    if (value_count(pod, VALUES_MAX) == VALUES_MAX)
        drop(pod);
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
    /* nothing is prepared for a pod that has ended; any number of them may be there */
    buf_printf(&fields, "spec.nodeName=%s,status.phase!=Failed,status.phase!=Succeeded", node);
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
